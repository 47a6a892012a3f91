#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Tests how scripts/vm notices a fault of the emulator, which logs it keeps, and its options.
"""

import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
PATH = Path(__file__).resolve().parents[3] / "scripts" / "vm"
sys.path.insert(0, str(PATH.parent))
LOADER = importlib.machinery.SourceFileLoader("vm", str(PATH))
vm = importlib.util.module_from_spec(importlib.util.spec_from_loader("vm", LOADER))
LOADER.exec_module(vm)


def log(*messages):
    """Returns a log of these lines."""
    return "".join(f"[    1.000000] {line}\r\n" for line in messages)



class Emulator(unittest.TestCase):
    STALL = "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:"
    TIMER = "rcu: \tPossible timer handling issue on cpu=2 timer-softirq=129"
    BEGUN = "virtme-ng-init: starting script"

    def test_a_processor_without_a_timer(self):
        self.assertEqual(
            vm.emulator_fault(log(self.STALL, self.TIMER, self.BEGUN)), "Possible timer handling issue on cpu=2")

    def test_an_assertion(self):
        said = "qemu-system-x86_64: ../x.c:1: f: Assertion `x' failed."
        self.assertEqual(vm.emulator_fault(f"SeaBIOS\n{said}\n"), said)

    def test_not_its_fault(self):
        for lines in ([self.BEGUN, self.STALL, self.TIMER], [self.STALL, self.BEGUN], ["BUG: x", self.BEGUN], []):
            with self.subTest(lines):
                self.assertIsNone(vm.emulator_fault(log(*lines)))


class Logs(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def ended(self, kernel, number):
        """Makes a guest's log, a second younger than the log of the number before."""
        path = self.folder / f"{kernel}-20261124-000000-{number}.log"
        path.write_text("Linux version\n", encoding="ascii")
        os.utime(path, (number, number))
        return path

    def test_the_newest_are_kept(self):
        for number in range(vm.LOGS_KEPT + 10):
            self.ended("stock", number)
        last = self.ended("stock", 10_000)
        vm.keep(last, "stock")
        self.assertEqual(len(list(self.folder.iterdir())), vm.LOGS_KEPT)
        self.assertEqual((self.folder / "stock-last.log").resolve(), last.resolve())

    def test_a_log_that_is_gone(self):
        """The last log of a kernel that has not run for long, with a dash in its name."""
        release = "7.3.4+deb13-rt-amd64"
        gone = self.ended(release, 1)
        vm.keep(gone, release)
        gone.unlink()
        vm.keep(self.ended("um", 2), "um")
        self.assertTrue((self.folder / "um-last.log").exists())

    def test_guests_that_end_at_once(self):
        failures = []

        def end(number):
            try:
                for i in range(vm.LOGS_KEPT):
                    vm.keep(self.ended("um", number * vm.LOGS_KEPT + i), "um")
            except OSError as error:
                failures.append(error)

        threads = [threading.Thread(target=end, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertTrue((self.folder / "um-last.log").is_symlink())


class Arguments(unittest.TestCase):
    def test_command_is_kept(self):
        options, command = vm.parse(["--cpus", "3", "--", "sh", "-c", "x -- y"])
        self.assertEqual((options.cpus, options.kernel, command), (3, "stock", ["sh", "-c", "x -- y"]))

    def test_refused(self):
        sys.stderr, kept = open("/dev/null", "w", encoding="ascii"), sys.stderr
        try:
            for arguments in ([], ["--"], ["--kernel", "x", "--", "true"], ["--cpus", "0", "--", "true"], ["true"]):
                with self.subTest(arguments), self.assertRaises(SystemExit) as raised:
                    vm.parse(arguments)
                self.assertEqual(raised.exception.code, vm.USAGE)
        finally:
            sys.stderr.close()
            sys.stderr = kept


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    bad = len(result.failures) + len(result.errors)
    print(f"{max(0, result.testsRun - bad)} passed, {bad} failed")
    sys.exit(bool(bad))
