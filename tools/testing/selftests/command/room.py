# SPDX-License-Identifier: GPL-2.0
"""
Histograms of rhist grow; hits of keys without an entry are in other, the last row; keys that are
idle are taken out, and rhist serve removes their series. Whatever happens, all rows together have
every hit. C's histograms can do none of it, and are not asked to.
"""

import atexit
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time

from instance import counts_hits, folder_of
from scrape import OPEN, RHIST, TRACING, Server, fire, same, soon
from tap import finish, ok, skip

work = tempfile.mkdtemp()
os.environ.update(RHIST_RUN=f"{work}/run", HOME=work)
subprocess.run(["insmod", os.environ["RHIST_EVENTS"]], check=True)
atexit.register(lambda: subprocess.run(["rmmod", "rhist_events"], check=False))


def measure(words, *steps):
    """Runs rhist with these words. Each step is a line to fire, or seconds to wait. Its output."""
    command = [RHIST, *words.split(), "-q"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        ok(soon(lambda: counts_hits(folder_of(process, TRACING), "rhist_events/numbers")), f"{words}: it counts")
        time.sleep(0.2)
        for step in steps:
            if isinstance(step, str):
                fire(step)
            else:
                time.sleep(step)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=180)
    same(err, "", f"{words}: without a warning")
    return out


def lines(words, *steps):
    """The lines of JSON of a run."""
    return [json.loads(line) for line in measure(f"{words} --format json", *steps).splitlines()]


def rows(line):
    """Hits of own keys, in a list, and of others, by the reason."""
    own = [row["hits"] for row in line["rows"] if "other" not in str(row["keys"][0])]
    others = {row["keys"][0]["other"]: row["hits"] for row in line["rows"][len(own):]}
    return own, others


# --- growth, and hits without a place

by_number = "count rhist_events:numbers --by u32"
total = lines(f"{by_number} --size 65..256", "numbers task 0 1 1000 500")[-1]
own, others = rows(total)
ok(128 <= len(own) <= 256, "it has grown to its limit", total["fill"])
same((sum(own) + sum(others.values()), list(others), total["losses"]["dropped"]), (1000, ["folded"], 0),
     "other has the hits without a place, and nothing is dropped")
text = measure(f"{by_number} --size 65..256", "numbers task 0 1 1000 500").splitlines()
place = next(n for n, line in enumerate(text) if line.startswith("all "))
ok(re.match(r"other, \d\d % +\d+ ", text[place - 1]), "other is the last line, with its part of all", text[place - 2:place + 1])
total = lines(f"{by_number} --size 100", "numbers task 0 1 1000 500")[-1]
same((sum(rows(total)[0]) + total["losses"]["dropped"], rows(total)[1]), (1000, {}), "a number is a fixed size, as in C")

# --- keys that are idle

steps = ["numbers task 0 1 40 40", 4, "numbers task 0 1 10 10"]
own, others = rows(lines(f"{by_number} --expire 1s", *steps)[-1])
same((own, others), ([1] * 10, {"expired": 40}), "idle keys are taken out, and begin with 0 when they come again")
found = lines(f"{by_number} --expire 1s -i 0.3", *steps, 0.5)
intervals = [sum(sum(hits) for hits in (rows(line)[0], rows(line)[1].values())) for line in found[:-1]]
own, others = rows(found[-1])
same((sum(intervals), sum(own) + sum(others.values())), (50, 50), "intervals and the total have all hits")
ok(all(not rows(line)[1] for line in found[:-1]), "intervals have no earlier hits of keys that were taken out", found[:-1])

# --- keys that come and go for long, at most 4,096 within the time of expire()

KEYS = 10_000_000 if os.environ.get("LONG") else 20_000
BATCH = 400  # each 0.125 s


class Churn:
    """A run in which keys come and go, with the sums of its lines so far."""

    def __init__(self):
        command = [RHIST, *"count rhist_events:numbers --by u64 --size 4096 --expire 1s -i 1 --format json -q".split()]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        # Hits of all intervals: of rows, and of entries that were taken out between two reads.
        self.own, self.others, self.dropped = 0, 0, 0
        self.last = None
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        """Adds up the intervals."""
        for text in self.process.stdout:
            if self.last:
                own, others = rows(self.last)
                self.own += sum(own)
                self.others += sum(others.values())
            self.last = json.loads(text)
            self.dropped = max(self.dropped, self.last["losses"]["dropped"])

    def fire(self, first):
        """Fires a batch of keys. Sleeps before others."""
        fire(f"numbers task 0 {first} {BATCH} {BATCH}")
        time.sleep(0.125)

    def memory(self):
        """Bytes of the histogram in the kernel, and of the command."""
        with open(f"{TRACING}/hist_stats", encoding="utf-8") as file:
            found = re.search(r"rhist_events:numbers .* room: .*, (\d+) bytes", file.read())
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return found and int(found[1]), int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def end(self):
        """Ends it. Hits of all rows of the total."""
        self.process.send_signal(signal.SIGINT)
        self.reader.join()
        own, others = rows(self.last)
        return sum(own) + sum(others.values())


churn = Churn()
ok(soon(lambda: counts_hits(folder_of(churn.process, TRACING), "rhist_events/numbers")), "keys that come and go: it counts")
time.sleep(0.2)
memory = None
# The first keys are the edges of all widths.
for key in range(1000, 1000 + KEYS, BATCH):
    churn.fire(key)
    if key - 1000 < KEYS / 4 <= key - 1000 + BATCH:
        memory = churn.memory()
later = churn.memory()
total = churn.end()
same(total, KEYS, f"{KEYS} keys that come and go, at most 4096 in a second: all are counted")
same(churn.dropped, 0, "and none is dropped")
same(churn.own + churn.others, KEYS, "each in one interval, as a row or in other")
ok(memory[0] == later[0] and later[1] < memory[1] * 1.25 + (1 << 20), "in memory that does not grow", memory, later)

# --- clauses of triggers, and C

for words, expected in [("--by common_pid", ":size=2048..131072:full(other)'"), ("--by u32", "=u32'"), ("--by common_pid --backend c", "=common_pid'")]:
    found = subprocess.run([RHIST, *"count rhist_events:numbers --dry-run".split(), *words.split()], capture_output=True, text=True, check=True)
    ok(expected in found.stdout, f"{words}: clauses of the trigger", found.stdout)
for words in "--size 100..1000", "--expire 1s":
    found = subprocess.run([RHIST, *by_number.split(), *words.split(), "--backend", "c"], capture_output=True, text=True, check=False)
    ok(found.returncode == 2 and "load it" in found.stderr, f"{words}: C has no such histograms", found)

# --- series of rhist serve

server = Server(work)


def series():
    """Series of the histogram, by their labels; hits in no series; all hits."""
    samples = server.scrape()
    keys = {dict(labels)["u32"]: value for (name, labels), value in samples.items() if name == "rhist_keys_total"}
    named = {name: value for (name, labels), value in samples.items() if dict(labels).get("histogram") == "keys"}
    server.forget("keys")
    return keys, named.get("rhist_serve_expired_total"), named.get("rhist_serve_events_total")


def created(key):
    """Created timestamp of a series."""
    found = re.search(rf'rhist_keys_created{{u32="{key}"}} (\S+)', server.get(accept=OPEN)[2].decode())
    return found and float(found[1])


def serve():
    """Series that are idle are removed, and begin with 0 when they come again."""
    server.write(f'[histogram.keys]\ncount = "{by_number[6:]}"\nsize = "65..256"\nexpire = "2s"\nbudget = "100%"\n')
    server.start()
    ok(server.runs("keys"), "serve: it counts")
    fire("numbers task 0 1 20 20")
    keys, expired, events = series()
    same((set(keys.values()), len(keys), expired, events), ({1}, 20, 0, 20), "serve: a series for each key")
    key = min(keys)
    before = created(key)
    ok(soon(lambda: not series()[0]), "serve: idle series are removed")
    same(series()[1:], (20, 20), "serve: their hits are counted as expired")
    fire("numbers task 0 1 60 20")
    keys, expired, events = series()
    same((keys.get(key), sum(keys.values()) + expired, events), (3, 80, 80), "serve: a series that comes again begins with 0")
    after = created(key)
    ok(before and after and after > before + 2, "serve: with another created timestamp", before, after)
    same(server.stop(), 0, "serve: it ends")


# User-mode Linux lacks these sockets.
if subprocess.run(["ip", "link", "set", "lo", "up"], capture_output=True, check=False).returncode == 0:
    serve()
else:
    skip("serve: idle series", "no loopback")
finish()
