# SPDX-License-Identifier: GPL-2.0
"""Programs that interpreters sleep in, or are busy with, deep in their stacks."""

PYTHON = """
import time
def nested(depth):
    return sorted([2, 1], key=lambda number: nested(depth - 1) if depth else time.sleep(1000))
nested(6)
"""
BASH = 'outer() { inner; }; inner() { read -r line < <(sleep 1000); }; outer'
PERL = 'sub nested { my $depth = shift; return join(",", map { $depth ? nested($depth - 1) : sleep(1000) } 1) } nested(6)'
# Interpreter, C functions that call back, hashes, regular expressions, and memory in all sizes.
BUSY = """
import hashlib, json, random, re
def busy(depth):
    if depth:
        return max([1, 2], key=lambda number: busy(depth - 1))
    words = [str(random.random()) for _ in range(300)]
    json.loads(json.dumps(words))
    re.sub("[0-4]+", "x", " ".join(sorted(words)))
    return hashlib.sha256("".join(words).encode() * 20).digest()[0]
busy(5)
print(flush=True)
while True:
    busy(5)
"""
