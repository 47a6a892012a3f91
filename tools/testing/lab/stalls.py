#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Tests that scripts/bench starts a guest again that stands still before there is something to measure, and no other."""

import sys
import tempfile
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

sys.dont_write_bytecode = True
path = Path(__file__).resolve().parents[3] / "scripts" / "bench"
sys.path.insert(0, str(path.parent))
loader = SourceFileLoader("bench", str(path))
bench = module_from_spec(spec_from_loader("bench", loader))
loader.exec_module(bench)
bench.PATIENCE, bench.BOOTS = 1, 3


class Guest(bench.Guest):
    """Shell scripts in place of QEMU: one for each boot."""

    def __init__(self, folder, *scripts):
        self.log, self.scripts, self.kernel = folder / "log", list(scripts), "um"

    def command(self, cpus, icount):
        return ["sh", "-c", self.scripts.pop(0)]


def outcome(*scripts):
    """What came of it: the lines, "exit" if they are not all, and how many boots were left."""
    with tempfile.TemporaryDirectory() as folder:
        guest, lines = Guest(Path(folder), *scripts), []
        try:
            lines.extend(guest.run(4))
        except SystemExit:
            lines.append("exit")
        return lines, len(guest.scripts)


STALLS, WORKS = "echo SeaBIOS; exec sleep 60", "echo begin; sleep 2; echo measured; echo end 0"
CASES = {
    "works": ((WORKS, WORKS), (["measured"], 1)),
    "stalls once": ((STALLS, WORKS), (["measured"], 0)),
    "stalls always: the last one has all the time there is": ((STALLS,) * 4, (["exit"], 1)),
    "crashes: not tried again": (("echo begin; echo half", WORKS), (["half", "exit"], 1)),
    "crashes before it measures: not tried again": (("echo panic", WORKS), (["exit"], 1)),
    "hangs: not tried again": (("echo begin; exec sleep 60", WORKS), (["exit"], 1)),
    "fails": (("echo begin; echo half; echo end 1", WORKS), (["half", "exit"], 1)),
}

failed = 0
for name, (scripts, expected) in CASES.items():
    found = outcome(*scripts)
    if found != expected:
        failed += 1
        print(f"{name}: {found}, expected {expected}")
sys.exit(bool(failed))
