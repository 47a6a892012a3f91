#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Tests that scripts/vm restarts a guest that hangs before it has booted, and no other.
"""

import contextlib
import io
import sys
import tempfile
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

sys.dont_write_bytecode = True
path = Path(__file__).resolve().parents[3] / "scripts" / "vm"
sys.path.insert(0, str(path.parent))
loader = SourceFileLoader("vm", str(path))
vm = module_from_spec(spec_from_loader("vm", loader))
loader.exec_module(vm)
vm.PAUSE = 0.2


def guests(scripts):
    """Guests with shell scripts in place of a kernel: one for each boot."""

    class Guest(vm.Bare):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.patience = 1

        def arguments(self, image):
            return ["sh", "-c", scripts.pop(0)]

    return Guest


def outcome(*scripts):
    """Returns the output, the status, and the number of boots left."""
    scripts, lines = list(scripts), io.StringIO()
    vm.Bare = guests(scripts)
    sys.argv = ["vm", "--kernel", "um", "--initramfs", "/dev/null", "--timeout", "3"]
    with contextlib.redirect_stdout(lines), contextlib.redirect_stderr(io.StringIO()):
        status = vm.main()
    return lines.getvalue().split(), status, len(scripts)


STALLS, STOPS, WORKS = "echo SeaBIOS; exec sleep 60", "kill -STOP $$", "echo begin; sleep 1.5; echo measured; echo end 0"
CASES = {
    "works": ((WORKS, WORKS), (["measured"], 0, 1)),
    "stalls once": ((STALLS, WORKS), (["measured"], 0, 0)),
    "is stopped once": ((STOPS, WORKS), (["measured"], 0, 0)),
    "stalls always: the last one has all the time there is": ((STALLS,) * 4, ([], vm.TIMEOUT, 1)),
    "crashes: not tried again": (("echo begin; echo half", WORKS), (["half"], vm.NO_GUEST, 1)),
    "crashes before it begins: not tried again": (("echo Kernel panic", WORKS), ([], vm.REPORT, 1)),
    "hangs: not tried again": (("echo begin; exec sleep 60", WORKS), ([], vm.TIMEOUT, 1)),
    "fails": (("echo begin; echo half; echo end 1", WORKS), (["half"], 1, 1)),
    "the kernel says something between": (("echo begin; echo '[    1.234567] x'; echo end 0",), ([], 0, 0)),
    "the kernel reports a fault": (("echo begin; echo '[    1.234567] WARNING: x'; echo end 0",), ([], vm.REPORT, 0)),
}

with tempfile.TemporaryDirectory() as folder:
    failed = 0
    for number, (name, (scripts, expected)) in enumerate(CASES.items()):
        # Two guests of one process that begin in the same second have logs of the same name.
        vm.LOGS = Path(folder) / str(number)
        vm.LOGS.mkdir()
        found = outcome(*scripts)
        if found != expected:
            failed += 1
            print(f"{name}: {found}, expected {expected}")
sys.exit(bool(failed))
