#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Tests scripts/test with jobs that hang, fail, or pass by doing nothing; and with wrong tables of
tests.
"""

import contextlib
import copy
import importlib.machinery
import importlib.util
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
import ceilings
import pieces
import runner
import selftests
import sessions

TEST = selftests.Test("hist", "files", "", skips={"um": 2, "stock": 1})
OTHER = selftests.Test("hist", "basic", "")
GOOD = "echo '# files: 5 passed, 0 failed, 2 skipped, 1 s'"


def job(command, *tests, **more):
    return pieces.Job("job", ["sh", "-c", command], tests=list(tests), kernel="um", **more)


def outcome(*of_jobs):
    """Returns the results of jobs, and the output."""
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said):
        kept, pieces.OUT, runner.OUT, runner.TOP = pieces.OUT, Path(folder), Path(folder), Path(folder)
        try:
            results = runner.Runner(list(of_jobs)).run()
        finally:
            pieces.OUT = kept
    return {name: value for _, found, _ in results.values() for name, value in found.items()}, said.getvalue()


class Judged(unittest.TestCase):
    def failed(self, command, *tests, **more):
        results, said = outcome(job(command, *tests, **more))
        self.assertEqual(sum(result.failed for result in results.values()), 1, results)
        return said

    def test_passes(self):
        results, _ = outcome(job(GOOD, TEST))
        self.assertEqual((results["files"].passed, results["files"].failed, results["files"].skipped), (5, 0, 2))

    def test_nothing_tested(self):
        self.assertIn("nothing was tested", self.failed("echo '# files: 0 passed, 0 failed, 0 skipped, 1 s'", TEST))

    def test_everything_skipped(self):
        self.assertIn("nothing was tested", self.failed("echo '# files: 0 passed, 0 failed, 2 skipped, 1 s'", TEST))

    def test_a_new_skip(self):
        self.assertIn("3 points were skipped, and not 2", self.failed("echo '# files: 5 passed, 0 failed, 3 skipped, 1 s'", TEST))

    def test_a_skip_that_is_gone(self):
        self.failed("echo '# files: 5 passed, 0 failed, 1 skipped, 1 s'", TEST)

    def test_not_got_to(self):
        self.assertIn("basic: it did not run to its end", self.failed(GOOD, TEST, OTHER))

    def test_report_after_the_last_point(self):
        self.failed(GOOD + "; exit 70", TEST)

    def test_report_that_any_test_may_have_caused(self):
        both = GOOD + "; echo '# basic: 1 passed, 0 failed, 0 skipped, 1 s'; exit 70"
        results, _ = outcome(job(both, TEST, OTHER))
        self.assertEqual({name: result.failed for name, result in results.items()}, {"files": 1, "basic": 1})

    def test_guest_does_not_boot(self):
        self.failed("exit 71", TEST)

    def test_not_even_started(self):
        missing = job("", TEST)
        missing.command = ["/nonexistent"]
        results, said = outcome(missing)
        self.assertEqual(results["files"].failed, 1)
        self.assertIn("scripts/test itself failed", said)

    def test_no_total(self):
        self.failed("echo hello")

    def test_points(self):
        results, _ = outcome(job("echo ok 1 - a; echo 'ok 2 - b # SKIP no'; echo ok 3 - c; echo 1..3"))
        self.assertEqual((results["job"].passed, results["job"].failed, results["job"].skipped), (2, 0, 1))

    def test_a_point_fails(self):
        self.failed("echo ok 1 - a; echo not ok 2 - b; echo 1..2; exit 1")

    def test_a_failed_point_is_shown_with_the_notes_around_it(self):
        lines = ["ok 1", "# of 1", "# before 2", "not ok 2", "# behind 2", "not ok 3", "# Totals: 3", "not ok 4"]
        _, said = outcome(job("; ".join(f"echo '{line}'" for line in lines) + "; exit 1"))
        shown = said.split("s of a processor)\n")[1].splitlines()[:-1]
        self.assertEqual([line.removeprefix("      ") for line in shown if "status" not in line], [*lines[1:6], *lines[6:]])

    def test_a_panic_is_shown_with_its_reason(self):
        """As cargo test prints it."""
        lines = ["test top::q ... ok", "test top::keys has been running for over 60 seconds", "---- top::keys stdout ----", "",
                 "thread 'top::keys' (123) panicked at cli/tests/top.rs:7:5:", "assertion `left == right` failed", "  left: 1",
                 " right: 2", "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace", "", "failures:",
                 "    top::keys"]
        said = self.failed("cat <<'END'\n" + "\n".join(lines) + "\n\n1 passed, 1 failed\nEND\nexit 1")
        shown = said.split("s of a processor)\n")[1].splitlines()[:-1]
        self.assertEqual([line.removeprefix("      ") for line in shown], [lines[1], *lines[4:8]])

    def test_a_failed_build_script_is_shown_with_its_reason(self):
        """As cargo prints it."""
        reason = ["error: failed to run custom build command for `rhist`", "note: To improve backtraces", "", "Caused by:",
                  "  process did not exit successfully: `build-script-build` (exit status: 101)", "  --- stderr",
                  "  thread ~main~ (123) panicked at build.rs:17:10:", "  the folder of recipes: NotFound"]
        lines = [line.replace("~", chr(39)) for line in [*reason, "  stack backtrace:", "     0: main"]]
        _, said = outcome(job("cat <<'end'\n" + "\n".join(lines) + "\nend\nexit 101"))
        shown = [line.removeprefix("      ") for line in said.split("s of a processor)\n")[1].splitlines()]
        self.assertEqual(shown[:-1], lines[:-2])

    def test_fewer_points_than_planned(self):
        self.failed("echo ok 1 - a; echo 1..2")

    def test_points_without_a_plan(self):
        self.failed("echo ok 1 - a")

    def test_zero_total(self):
        self.failed("echo '0 passed, 0 failed'")

    def test_what_cannot_be_kept_is_said(self):
        class Full:
            def begin(self, _):
                pass

            def keep(self, *_):
                raise OSError("no space left on device")

        first, second = job("exit 1", counts=False), job("true", counts=False)
        second.name = "second"
        began, said = time.monotonic(), io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said), unittest.mock.patch("threading.excepthook"):
            with unittest.mock.patch("pieces.OUT", Path(folder)), unittest.mock.patch("runner.OUT", Path(folder)), \
                    unittest.mock.patch("runner.TOP", Path(folder)), unittest.mock.patch("os.cpu_count", lambda: 1):
                runner.Runner([first, second], record=Full()).run()
        self.assertIn("FAILED job", said.getvalue())
        self.assertIn("] second", said.getvalue())
        self.assertLess(time.monotonic() - began, 10)

    def test_silent(self):
        began = time.monotonic()
        said = self.failed("echo before; sleep 60", TEST, patience=1)
        self.assertLess(time.monotonic() - began, 20)
        self.assertIn("it printed nothing for 1 s", said)

    def test_endless(self):
        began = time.monotonic()
        said = self.failed("while sleep 0.2; do echo more; done", TEST, limit=2)
        self.assertLess(time.monotonic() - began, 20)
        self.assertIn("it took more than 2 s", said)

    def test_several_that_do_not_want_to_end(self):
        """All are asked to end at once, not one after another."""
        command = ["sh", "-c", "trap '' TERM; echo; while :; do sleep 1; done"]
        stubborn = [subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) for _ in range(3)]
        for process in stubborn:
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.kill)
            process.stdout.readline()
        began = time.monotonic()
        sessions.end(*stubborn, patience=2)
        self.assertLess(time.monotonic() - began, 4)
        self.assertEqual({process.returncode for process in stubborn}, {-signal.SIGKILL})

    def test_what_has_ended_is_not_ended_again(self):
        """Its pid may belong to another process by then."""
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()), \
                unittest.mock.patch.multiple("runner", OUT=Path(folder), TOP=Path(folder)), unittest.mock.patch("pieces.OUT", Path(folder)):
            of_all = runner.Runner([job("true", counts=False)])
            of_all.run()
        self.assertEqual((of_all.states, of_all.processes), ({"job": "passed"}, []))

    def test_what_needs_it_is_not_run(self):
        first, second = job("exit 1", counts=False), job(GOOD, TEST, after=["job"])
        second.name = "second"
        results, said = outcome(first, second)
        self.assertEqual(results["files"].failed, 1)
        self.assertIn("NOT RUN second", said)


class Rooms(unittest.TestCase):
    """Jobs in an order drawn by a seed, each with a folder build/ of its own."""

    def run_with(self, seed, *of_jobs):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
            kept, pieces.OUT, runner.OUT, runner.TOP = pieces.OUT, Path(folder) / "logs", Path(folder) / "logs", Path(folder)
            (Path(folder) / "build").mkdir()
            try:
                results = runner.Runner(list(of_jobs), seed=seed).run()
            finally:
                pieces.OUT = kept
            left = {str(path.relative_to(folder)) for path in Path(folder, "build").rglob("*") if path.is_file()}
        return {name: state for name, (state, *_) in results.items()}, said.getvalue(), left

    def shell(self, name, command, *after, counts=False):
        return pieces.Job(name, ["sh", "-ec", command], after=list(after), counts=counts)

    def test_what_is_needed_is_there_and_nothing_else(self):
        first = self.shell("first", "mkdir build/a; echo 1 >build/a/one")
        other = self.shell("other", "echo 2 >build/two")
        second = self.shell("second", "cat build/a/one; echo 3 >build/a/three; test ! -e build/two", "first")
        # A need's own needs are there, too.
        third = self.shell("third", "cat build/a/one build/a/three; rm build/a/one; echo 4 >build/vm/log", "second")
        for seed in range(6):
            states, said, left = self.run_with(seed, first, other, second, third)
            self.assertEqual(set(states.values()), {"passed"}, said)
            # A job that removes its copy of a file has not taken it from others; logs of guests
            # are at their usual place.
            self.assertLessEqual({"build/rooms/second/a/one", "build/vm/log"}, left)

    def test_a_need_that_is_not_declared(self):
        maker, user = self.shell("maker", "echo 1 >build/one"), self.shell("user", "cat build/one")
        for seed in range(6):
            states, *_ = self.run_with(seed, maker, user)
            self.assertEqual(states, {"maker": "passed", "user": "failed"})
        self.assertEqual(self.run_with(None, maker, self.shell("user", "cat build/one", "maker"))[0]["user"], "passed")

    def test_a_room_begins_with_what_its_needs_have_made(self):
        """
        And with the results of a job that others need from an earlier run with the same inputs,
        if it passed.
        """
        with tempfile.TemporaryDirectory() as folder:
            rooms = runner.Rooms(folder)
            for counts, before, now, passed, left in (
                (False, "a", "a", True, True), (False, "a", "b", True, False), (False, "a", "a", False, False),
                (False, "", "", True, False), (True, "a", "a", True, False),
            ):
                made = self.shell("made", "", counts=counts)
                rooms.command(made, [], before)
                (rooms.of(made) / "file").touch()
                if passed:
                    rooms.keep(made, before)
                rooms.command(made, [], now)
                self.assertEqual((rooms.of(made) / "file").exists(), left, (counts, before, now, passed))

    def test_what_was_made_in_an_earlier_run_is_gone(self):
        """
        Files that only an older source made are gone, even for jobs that use them without
        declaring the need.
        """
        class Known(dict):
            def begin(self, _):
                pass

            def inputs(self, _):
                return repr([job.command for job in of_all.jobs])

            def keep(self, *_):
                return True

        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()), \
                unittest.mock.patch.multiple("runner", OUT=Path(folder) / "logs", TOP=Path(folder)), \
                unittest.mock.patch("pieces.OUT", Path(folder) / "logs"):
            (Path(folder) / "build").mkdir()
            states = []
            for made in ("echo made >>build/count; touch build/old", "echo made >>build/count; touch build/old", "touch build/new"):
                of_all = runner.Runner([self.shell("maker", made), self.shell("user", "cat build/old", "maker")], seed=1, record=Known())
                of_all.run()
                states.append(of_all.states)
                if "count" in made:
                    again = (Path(folder) / "build/rooms/maker/count").read_text()
        self.assertEqual([state["user"] for state in states], ["passed", "passed", "failed"])
        # Nothing is compiled anew.
        self.assertEqual(again, "made\nmade\n")

    def test_orders_differ(self):
        orders = set()
        for seed in range(6):
            _, said, _ = self.run_with(seed, *(self.shell(f"p{i}", "true") for i in range(5)))
            orders.add(tuple(line.split()[1] for line in said.splitlines() if line.startswith("[")))
        self.assertGreater(len(orders), 1)


class Locked(unittest.TestCase):
    """Two runs in one checkout."""

    def test_the_second_one_says_so_and_waits(self):
        done = []

        def second():
            with pieces.locks([]):
                done.append("second")

        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("pieces.OUT", Path(folder) / "test"), \
                unittest.mock.patch.dict("os.environ"), contextlib.redirect_stdout(io.StringIO()) as said:
            os.environ.pop(pieces.WITHIN, None)
            waiting = threading.Thread(target=second)
            with pieces.locks([]):
                waiting.start()
                waiting.join(1)
                self.assertEqual(said.getvalue(), "test: another run of scripts/test is at work in this checkout: waiting for it\n")
                os.environ[pieces.WITHIN] = str(pieces.TOP)
                # A run started by a job of this one does not wait.
                with pieces.locks([]):
                    done.append("first")
            waiting.join(10)
        self.assertEqual(done, ["first", "second"])

    def test_what_a_job_runs_is_part_of_it(self):
        results, _ = outcome(job(f"[ ${pieces.WITHIN} = $PWD ]", counts=False))
        self.assertEqual(results["job"].failed, 0)

    def test_a_whole_run(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()), \
                unittest.mock.patch.multiple("runner", OUT=Path(folder), TOP=Path(folder), Record=lambda **_: None), \
                unittest.mock.patch("pieces.OUT", Path(folder)), unittest.mock.patch.dict("os.environ"):
            os.environ.pop(pieces.WITHIN, None)
            self.assertEqual(runner.run([job(f"! flock -n {folder}/lock true", counts=False)]), 0)
            subprocess.run(["flock", "-n", f"{folder}/lock", "true"], check=True)

    def test_what_failed_stands_at_the_end_too(self):
        failing, last = job("echo 'not ok 1 - two are one'; exit 1", counts=False), job("true", counts=False)
        last.name = "last"
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said, \
                unittest.mock.patch.multiple("runner", OUT=Path(folder), TOP=Path(folder), Record=lambda **_: None), \
                unittest.mock.patch("pieces.OUT", Path(folder)):
            self.assertEqual(runner.run([failing, last]), 1)
        end = said.getvalue().rpartition("] last")[2]
        self.assertIn("FAILED job\n      not ok 1 - two are one\n      status 1", end)


class Ceilings(unittest.TestCase):
    """CPU seconds that the jobs of make test may take."""

    def test_each_job_has_one_and_all_fit_into_the_time_of_ci(self):
        known = selftests.ceilings()
        found = {ceilings.row_of(job) for job in pieces.all_jobs({})}
        found |= {ceilings.row_of(job) for job in pieces.short_jobs(pieces.lab("own"), {})}
        self.assertEqual(found, set(known))
        self.assertLessEqual(sum(known.values()), ceilings.MOST)

    def test_compare(self):
        guest, other = job("", TEST), pieces.Job("other", [])
        guest.name, known = "hist on um: files", {"hist on um": 10, "other": 5, "not run": 7}
        taken, most, over = ceilings.compare({guest.name: 12, "other": 4}, [guest, other], known)
        self.assertEqual((taken, most), (16, 15))
        self.assertEqual(over, ["hist on um took 12 s of a processor, and may take 10"])


class Table(unittest.TestCase):
    def read(self, text, *programs):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "hist").mkdir()
            for program in programs:
                (Path(folder) / "hist" / program).touch()
            path = Path(folder) / "tests.toml"
            path.write_text(text, encoding="utf-8")
            return selftests.read(path)

    def test_own(self):
        tests = {f"{test.suite}.{test.name}": test for test in selftests.read()}
        self.assertGreater(len(tests), 60)
        # Each runs somewhere, and make test runs it if one of its two kernels can.
        for name, test in tests.items():
            self.assertTrue(any(test.can_run_on(kernel) for kernel in (*selftests.OWN, "stock")), name)
            if not test.long and ("um" in test.on or "stock" in test.on):
                self.assertTrue(any(selftests.short_on([test], kernel) for kernel in ("um", "stock")), name)
            for kernel in test.short:
                self.assertTrue(test.can_run_on(kernel), name)

    def test_program_without_a_row(self):
        with self.assertRaisesRegex(SystemExit, "no row for hist.new"):
            self.read("[hist.files]\nabout = ''\n", "files.sh", "new.c", "README.rst")

    def test_unknown_column(self):
        with self.assertRaisesRegex(SystemExit, "hist.files: .*skipps"):
            self.read("[hist.files]\nabout = ''\nskipps = 1\n", "files.sh")

    def test_unknown_kernel(self):
        with self.assertRaisesRegex(SystemExit, "unknown kernel: umm"):
            self.read("[hist.files]\nabout = ''\non = ['umm']\n", "files.sh")

    def test_where(self):
        self.assertEqual([TEST.can_run_on(kernel) for kernel in ("um", "umdebug", "debug", "7.2.12+deb13-amd64")], [True] * 4)
        only = selftests.Test("hist", "failslab", "", on=("umdebug",))
        self.assertEqual([only.can_run_on(kernel) for kernel in ("um", "umdebug", "debug", "stock")], [False, True, False, False])
        without = selftests.Test("hist", "files", "", without={"debug": "too slow"})
        self.assertEqual([without.can_run_on(kernel) for kernel in ("stock", "debug")], [True, False])

    def test_skips(self):
        self.assertEqual([TEST.skipped_on("um", False), TEST.skipped_on("umdebug", False)], [2, 2])
        self.assertEqual([TEST.skipped_on("stock", rest) for rest in (True, False)], [1, 1])
        rest = selftests.Test("hist", "files", "", skips={"rest": 3, "stock": 1})
        self.assertEqual([rest.skipped_on("stock", True), rest.skipped_on("debug", True), rest.skipped_on("7.2", False)], [3, 3, 1])

    def test_every_test_is_in_one_guest(self):
        for kernel in (*selftests.OWN, "stock"):
            tests = selftests.read()
            for long in (False, True):
                found = [test for guest in pieces.guests(kernel, tests, {}, long=long) for test in guest.tests]
                self.assertEqual(len(found), len(set(found)))
                self.assertEqual(set(found), {test for test in tests if test.can_run_on(kernel) and (long or not test.long)})

    def test_processors_take_turns_in_make_test_only(self):
        for kernel, rest in (("stock", True), ("stock", False), ("debug", True), ("um", True)):
            for guest in pieces.guests(kernel, selftests.read(), {}, rest=rest):
                turns = {test.turns and (kernel, rest) == ("stock", True) for test in guest.tests}
                self.assertEqual(turns, {"--turns" in guest.command}, guest.name)

    def test_the_others_need_the_module(self):
        for seed in (None, *range(20)):
            for guest in pieces.guests("stock", selftests.read(), {}, seed=seed):
                names = [name for name in guest.command if name in {test.name for test in guest.tests}]
                self.assertEqual(len(names), len(guest.tests))
                last = [name for name in ("unload", "lockdown") if name in names]
                self.assertEqual(names[len(names) - len(last) :], last)

    def test_an_order_is_drawn(self):
        tests = selftests.read()
        self.assertEqual(selftests.in_order(tests), tests)
        orders = [[test.name for test in selftests.in_order(tests, seed)] for seed in (1, 1, 2)]
        self.assertEqual(orders[0], orders[1])
        self.assertNotEqual(orders[0], orders[2])
        self.assertEqual(sorted(orders[0]), sorted(test.name for test in tests))


class NotThere(unittest.TestCase):
    """Tests left out by scripts/test if the lab cannot have a piece."""

    @classmethod
    def setUpClass(cls):
        cls.all = {long: pieces.all_jobs({}, long=long) + pieces.fuzz() for long in (False, True)}

    def left(self, lacks, whole=True, long=False):
        kept, left = test_program().leave_out(copy.deepcopy(self.all[long]), lacks, whole)
        self.assertTrue(kept)
        self.assertTrue(all(after in {job.name for job in kept} for job in kept for after in job.after if after not in OTHERS))
        return kept, {name: found for found in left for name in found.names}

    def test_nothing(self):
        kept, left = self.left({})
        self.assertEqual(left, {})
        self.assertEqual(len(kept), len(self.all[False]))

    def test_rust(self):
        kept, left = self.left({"rust": "none"})
        # Left out: tests of the program, which needs the compiler.
        self.assertIn("command", left)
        self.assertTrue(any(name.startswith("command on stock") for name in left))
        self.assertTrue(any(job.name.startswith("hist on um") for job in kept))
        self.assertTrue(left["command: tests"].fails)
        self.assertEqual(left["command"].why, "none")

    def test_clients(self):
        kept, left = self.left({"clients": "none"})
        self.assertEqual(set(left), {"command.exec", "command.unwind", "hist.clients", "hist.beside_perf", "unwind"})
        self.assertTrue(left["hist.clients"].fails)
        for job in kept:
            self.assertFalse(set(left) & {f"{test.suite}.{test.name}" for test in job.tests})
            self.assertTrue({test.name for test in job.tests} <= set(job.command))
            self.assertFalse(job.name.startswith("command on") and "exec" in job.command)

    def test_what_make_test_is_not_about(self):
        _, left = self.left({"prometheus": "none", "fuzz": "none"}, long=True)
        self.assertEqual(set(left), {"command.prometheus", "fuzzing"})
        self.assertFalse(any(found.fails for found in left.values()))

    def test_what_the_lab_is_asked_for(self):
        of_lab = test_program().of_lab
        self.assertEqual(of_lab(self.all[False]), ["clients", "deny", "fuzz", "rust"])
        self.assertEqual(of_lab(self.all[True]), ["clients", "deny", "fuzz", "peers", "prometheus", "rust"])
        self.assertIn("rust-arm64", of_lab(pieces.kernel_jobs("7.3.4+deb13-arm64", {})))

    def test_part_of_the_tests(self):
        _, left = self.left({"rust": "none"}, whole=False)
        self.assertFalse(any(found.fails for found in left.values()))

    def closing(self, *left):
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said):
            kept, pieces.OUT, runner.OUT, runner.TOP = pieces.OUT, Path(folder), Path(folder), Path(folder)
            try:
                # This machine's record stays unchanged.
                with unittest.mock.patch("runner.Record", lambda **_: None):
                    status = runner.run([job(GOOD, TEST)], left_out=left)
            finally:
                pieces.OUT = kept
        return status, said.getvalue()

    def test_it_is_said_and_counted(self):
        status, said = self.closing(runner.LeftOut(["one", "other"], "the archive has it not"))
        self.assertEqual(status, 0)
        self.assertIn("left out: one, other: the archive has it not\n", said)
        self.assertEqual(said.splitlines()[-1], "5 passed, 0 failed, 4 skipped")

    def test_make_test_fails(self):
        status, said = self.closing(runner.LeftOut(["one"], "the archive has it not", True))
        self.assertEqual(status, 1)
        self.assertIn("test: this run fails", said)

    def test_what_the_lab_says(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "lab"
            program.write_text("#!/bin/sh\necho 'lab: first' >&2\necho \"lab: no $1\" >&2\ncase $1 in a) exit 3 ;; b) exit 1 ;; esac\n")
            program.chmod(0o755)
            test = test_program()
            with unittest.mock.patch("sessions.LAB", program), contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(test.missing("a", "c"), {"a": "no a"})
                with self.assertRaises(SystemExit):
                    test.missing("b")
                # With several kernels, one that no archive has is not a failure; one that cannot be
                # made is, though another one passes.
                with unittest.mock.patch.multiple(
                        test, short_jobs=lambda kernel, _: [pieces.Job(f"module for {kernel}", ["true"], counts=False),
                                                              pieces.Job("one", ["echo", "1 passed, 0 failed"])],
                        programs=lambda _: [], compilers=lambda _: "", Record=lambda **_: None, Durations=lambda: None), \
                        unittest.mock.patch("pieces.OUT", Path(folder)), unittest.mock.patch("runner.OUT", Path(folder)), \
                        unittest.mock.patch("runner.TOP", Path(folder)):
                    self.assertEqual([test.on_kernels(kernels) for kernels in (["a", "c"], ["b", "c"], ["a"], ["c"])], [0, 1, 1, 0])
                with self.assertRaises(SystemExit) as ended:
                    test.ensure("a")
                self.assertEqual(ended.exception.code, 3)


# Debian's own kernels need no piece.
OTHERS = {"kernel stock"}


def test_program():
    loader = importlib.machinery.SourceFileLoader("test_program", str(pieces.TOP / "scripts" / "test"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Continuous(unittest.TestCase):
    """.ci/run, with made-up commits and machines."""

    def run_with(self, git="echo 000007", apt="true", free=20000000, make="echo 5 passed, 0 failed", lab="true"):
        with tempfile.TemporaryDirectory() as folder:
            top = Path(folder)
            for name, command in (("bin/git", git), ("bin/apt-get", apt), ("bin/df", f"echo Avail; echo {free}"),
                                  ("bin/make", f'[ "$RHIST_LAB" ] && echo fresh; echo "$@"; {make}'), ("scripts/lab", f'[ "$1" = path ] && echo /nonexistent || {lab}')):
                (top / name).parent.mkdir(exist_ok=True)
                (top / name).write_text(f"#!/bin/sh\n{command}\n")
                (top / name).chmod(0o755)
            (top / ".ci").mkdir()
            (top / ".ci/run").write_bytes((pieces.TOP / ".ci/run").read_bytes())
            environment = {"PATH": f"{top}/bin:/usr/bin:/bin", "TMPDIR": folder}
            done = subprocess.run(["bash", top / ".ci/run"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            self.assertEqual([path.name for path in top.iterdir() if path.name.startswith(("rhist-lab", "tmp"))], [])
        return done.returncode, done.stdout

    def test_the_lab_that_is_there(self):
        for more, seed, said in (
            ({}, 7, ""), ({"git": "exit 128"}, 1, ""), ({"git": "echo 0000081"}, 8, "fresh"),
            ({"git": "echo 000008", "apt": "echo E: no network; echo E: more; exit 100"}, 8, "does not answer, so the lab that is there is used: E: no network"),
            ({"git": "echo 000008", "free": 14000000}, 8, "has less than 15 GB free"),
            # The archive answers, and disappears while the lab is made; or something else goes
            # wrong then.
            ({"git": "echo 000008", "lab": "{ echo lab: it is gone >&2; exit 3; }"}, 8,
             "an empty lab cannot be filled, so the lab that is there is used: lab: it is gone"),
            ({"git": "echo 000008", "lab": "exit 1"}, 8, "fresh"),
        ):
            status, out = self.run_with(**more)
            self.assertEqual(status, 0, out)
            self.assertIn(f"test SEED={seed}\n", out)
            self.assertIn(said, out)
            # Either all is made from nothing, or a part of the other tests is run.
            self.assertEqual(said == "fresh", "fresh\n" in out)
            self.assertEqual(said == "fresh", "test-part\n" not in out)
            self.assertEqual(out.splitlines()[-1], "5 passed, 0 failed" if said == "fresh" else "10 passed, 0 failed")

    def test_what_is_fetched(self):
        wanted = re.search(r"for piece in (.*); do", (pieces.TOP / ".ci/run").read_text(encoding="utf-8"))[1]
        self.assertEqual(wanted.split(), ["stock", *test_program().of_lab(pieces.all_jobs({}))])

    def test_what_fails(self):
        for make in ("echo 5 passed, 0 failed; exit 2", "true", "echo 5 passed, 1 failed; exit 2"):
            self.assertEqual(self.run_with(make=make)[0], 1, make)


class Words(unittest.TestCase):
    """Command lines of scripts/test."""

    OPTIONS = {"kernel": "um", "seed": "3", "long": None, "anew": None}

    @classmethod
    def setUpClass(cls):
        cls.program = test_program()

    def taken(self, *words):
        """Returns the options and words of a mode; or the sentence of a refusal."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            try:
                return self.program.read_words(list(words))
            except SystemExit as ended:
                self.assertEqual(ended.code, 2)
        return said.getvalue().splitlines()[-1]

    def test_each_mode_takes_the_options_that_its_usage_names_and_no_other(self):
        usage = [line.split("scripts/test ")[1] for line in self.program.__doc__.split("\n\n")[1].splitlines()]
        lines = {mode: line for line in usage for mode in line.split()[0].strip("[]").split("|")}
        self.assertEqual(set(lines), set(self.program.TAKES))
        for mode, takes in self.program.TAKES.items():
            words = {"suite": ["hist"], "only": ["x"]}.get(mode, [])
            self.assertEqual(self.taken(mode, *words)[0].mode, mode)
            if mode in self.program.OWN_OPTIONS:
                self.assertEqual(self.taken(mode, "--seed", "3")[1], ["--seed", "3"])
            else:
                self.assertEqual({name for name in self.OPTIONS if f"--{name}" in lines[mode]}, takes)
            for name, value in self.OPTIONS.items():
                given = [f"--{name}", *[value] * (value is not None)]
                # Also before a mode that has options of its own.
                said = self.taken(*given, mode, *words)
                if name in takes and (mode, name) != ("all", "kernel"):
                    self.assertEqual(str(getattr(said[0], name)), value or "True")
                else:
                    self.assertIn("--kernel: all tests run on" if name in takes else f"{mode} does not take --{name}", said)

    def test_orders_of_the_cheap_jobs(self):
        durations = {job.name: 2 for job in pieces.all_jobs({})} | {"needs": 6, "module for stock": 60}
        names = {job.name for job in pieces.cheap_jobs(durations)}
        self.assertLessEqual({"layers", "events for um", "module for um", "programs of hist", "lab: matrix"}, names)
        # Slow jobs, jobs that need them, and guests are left out.
        self.assertFalse({"needs", "module for stock", "frames", "events for stock"} & names)
        self.assertFalse([name for name in names if " on um:" in name or " on stock:" in name])
        done, said = [], io.StringIO()
        with contextlib.redirect_stdout(said):
            status = self.program.in_orders(lambda seed: done.append(seed) or seed == 4, 3, 3)
        self.assertEqual((status, done, said.getvalue()), (1, [3, 4, 5], "\nfailed with the seeds: 4\n2 passed, 1 failed\n"))
        for words in ("many", "0", "2 3"):
            self.assertIn("seeds: COUNT has to be a number", self.taken("seeds", *words.split()))

    def test_what_is_not_there(self):
        for words, sentence in ((["fats"], "unknown mode fats"), (["kernels", "--sede", "3"], "unknown option --sede"),
                                (["only", "-x"], "unknown option -x"), (["suite"], "suite: missing argument"), (["fast", "um"], "fast: unexpected argument um")):
            self.assertIn(sentence, self.taken(*words))

    def test_several_kernels_in_the_order_of_a_seed(self):
        seeds, others = [], {"programs": lambda _: [], "compilers": lambda _: "", "Record": lambda **_: None, "Durations": lambda: None}

        class Seen(runner.Runner):
            def __init__(self, *arguments, seed=None, **more):
                seeds.append(seed)
                super().__init__(*arguments, **more)

        with unittest.mock.patch.multiple(
                self.program, make_in_lab=lambda _: (0, ""), Runner=Seen,
                short_jobs=lambda kernel, _: [pieces.Job(f"module for {kernel}", ["true"], counts=False)], **others), \
                tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()), \
                unittest.mock.patch("pieces.OUT", Path(folder)), unittest.mock.patch("runner.OUT", Path(folder)), \
                unittest.mock.patch("runner.TOP", Path(folder)):
            self.program.on_kernels(["a"], 3)
        self.assertEqual(seeds, [3])

    def refused(self, *words):
        # If the mode accepted the option, it would refuse the missing kernel.
        done = subprocess.run(
            [pieces.TOP / "scripts" / "test", *words, "--kernel", "none"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_unknown_test(self):
        self.assertIn("no test of hist matches nosuch", self.refused("suite", "hist", "basic", "nosuch"))

    def test_behind_one_with_the_name_of_a_mode(self):
        self.assertIn("no test of hist matches nosuch", self.refused("suite", "hist", "fuzz", "nosuch"))


if __name__ == "__main__":
    unittest.main()
