# SPDX-License-Identifier: GPL-2.0
"""Runs pieces of tests side by side, and prints the results."""

import fcntl
import json
import os
import random
import re
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import ceilings
import selftests
from pieces import OUT, TOP, WITHIN, key, locks
from record import Record
from rooms import Rooms
from sessions import end, lab, say

HEARTBEAT = 30
# Seconds that a piece gets to clean up.
PATIENCE = 10
# A state of a piece.
NOT_RUN = "not run"
FAILURES_SHOWN = 40

TOTAL = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")
# Counts points.
TAP = TOP / "scripts" / "tap.awk"
# Line of tools/testing/selftests/run after each test.
OF_TEST = re.compile(r"^# (\S+): (\d+) passed, (\d+) failed, (\d+) skipped, (\d+) s$")
REPORTED = re.compile(r"^vm: the kernel reported (\d+) fault|^not ok - \S+: the kernel reports:")


@dataclass
class Result:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    reports: int = 0
    seconds: float = 0.0
    # Reason of a failure, if no point has one.
    why: str = ""

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.reports += other.reports
        self.seconds += other.seconds

    def __str__(self):
        said = f"{self.passed} passed, {self.failed} failed"
        if self.skipped:
            said += f", {self.skipped} skipped"
        return said


@dataclass
class LeftOut:
    """Pieces or tests that are not run, since the archive lacks something that they need."""

    names: list
    why: str
    # True if a run without them is a failure.
    fails: bool = False


class Durations(dict):
    """Last durations of passed pieces and tests in seconds, kept in the lab."""

    def __init__(self):
        self.path = Path(lab("path", "lab")) / "durations.json"
        try:
            super().__init__(json.loads(self.path.read_text(encoding="utf-8")))
        except (FileNotFoundError, json.JSONDecodeError):
            super().__init__()

    def put(self, measured):
        """Adds results to the file, which other runs may have changed meanwhile."""
        with open(f"{self.path}.lock", "a", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.update({**Durations(), **measured})
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps(self, indent=1, sort_keys=True), encoding="utf-8")
            part.rename(self.path)


def judge(piece, status, text):
    """
    Counts the output of a piece: returns one Result for each of its tests, or one under its own
    name.
    """
    lines = text.splitlines()
    reports = sum(int(match[1] or 1) for match in map(REPORTED.match, lines) if match)
    if piece.tests:
        results = judge_tests(piece, lines)
    elif not piece.counts:
        results = {piece.name: Result(int(status == 0), int(status != 0))}
    else:
        result = total_of(lines)
        if not result.failed and not result.passed:
            result.failed = 1
        results = {piece.name: result}
    # A guest with a fault has failed, whatever its tests report; any of them may be the cause, as
    # of a leak found in the end.
    if status and not any(result.failed for result in results.values()):
        for result in results.values():
            result.failed += 1
    next(iter(results.values())).reports += reports
    return results


def total_of(lines):
    """Returns the last total in the output. Without one, counts its points."""
    if totals := [match for match in map(TOTAL.match, lines) if match]:
        return Result(*(int(number or 0) for number in totals[-1].groups()))
    judged = subprocess.run(["awk", "-f", TAP], input="\n".join(lines), stdout=subprocess.PIPE, text=True, check=True).stdout
    return Result(*map(int, judged.split()[:3]))


def judge_tests(piece, lines):
    """
    A test fails if the guest did not reach it, if none of its points passed, or if it skipped
    another number than it should.
    """
    done = {match[1]: match for match in map(OF_TEST.match, lines) if match}
    results = {}
    for test in piece.tests:
        match = done.get(test.name)
        if not match:
            results[test.name] = Result(failed=1, why="it did not run to its end")
            continue
        result = Result(*(int(number) for number in match.groups()[1:4]), seconds=float(match[5]))
        expected = test.skipped_on(piece.kernel, piece.rest)
        if not result.failed and not result.passed:
            result.failed, result.why = 1, "nothing was tested"
        elif not result.failed and result.skipped != expected:
            result.failed, result.why = 1, f"{result.skipped} points were skipped, and not {expected}: see {selftests.TABLE.relative_to(selftests.TOP)}"
        results[test.name] = result
    return results


class Runner:
    """
    Runs pieces, as many at once as the machine has processors: the longest first; or, with a
    seed, in an order that is drawn, and each in a room of its own, so that none depends on files
    that another one happened to make before.
    """

    def __init__(self, pieces, shown=False, durations=None, seed=None, record=None):
        # Several parts may need the same piece.
        self.pieces = list({piece.name: piece for piece in pieces}.values())
        self.shown, self.durations, self.record = shown, durations, record
        self.waiting = list(self.pieces)
        self.rooms = Rooms(TOP / "build") if seed is not None else None
        if self.rooms:
            random.Random(seed).shuffle(self.waiting)
        self.running, self.results, self.states, self.failures = {}, {}, {}, {}
        self.processes, self.busy = [], {}
        self.changed = threading.Condition()
        self.free = self.cores = os.cpu_count()
        self.began = time.monotonic()

    def ready(self):
        """Returns the piece to begin next, or None. Drops pieces that cannot be run any more."""
        best = None
        names = {piece.name for piece in self.pieces}
        for piece in list(self.waiting):
            needs = [self.states.get(name) for name in piece.after if name in names]
            if "failed" in needs or NOT_RUN in needs:
                self.waiting.remove(piece)
                self.finish(piece, None, {name: Result(failed=1) for name in names_of(piece)})
            elif None not in needs and min(piece.cores, self.cores) <= self.free:
                if not best or not self.rooms and self.urgency(piece) > self.urgency(best):
                    best = piece
        return best

    def urgency(self, piece):
        """Seconds until the end of all pieces that wait for it, itself included."""
        return piece.takes + max((self.urgency(other) for other in self.pieces if piece.name in other.after), default=0)

    def run(self):
        try:
            return self.run_all()
        finally:
            # If the run is ended early, the pieces end too: each is a session of its own. Their end
            # is not a result.
            self.record = None
            end(*self.processes, patience=PATIENCE)

    def run_all(self):
        with self.changed:
            while self.waiting or self.running:
                while piece := self.ready():
                    self.waiting.remove(piece)
                    self.free -= min(piece.cores, self.cores)
                    thread = threading.Thread(target=self.one, args=[piece], daemon=True)
                    self.running[piece.name] = (piece, time.monotonic())
                    thread.start()
                if not self.running:
                    # The waiting ones were dropped, as they could not be run any more; or they wait
                    # for each other.
                    if self.waiting:
                        raise RuntimeError(f"no piece can begin: {[piece.name for piece in self.waiting]}")
                    break
                if not self.changed.wait(HEARTBEAT) and not self.shown:
                    now = time.monotonic()
                    busy = ", ".join(f"{name} ({now - began:.0f} s)" for name, (_, began) in self.running.items())
                    say(f"   … {now - self.began:.0f} s, {len(self.waiting)} pieces wait; running: {busy}")
        return self.results

    def one(self, piece):
        status, text = None, ""
        began = time.monotonic()
        try:
            if self.record is not None:
                self.record.begin(piece)
            status = self.execute(piece)
            text = piece.log().read_text(encoding="utf-8", errors="replace")
            results = judge(piece, status, text)
        except Exception as error:  # Whatever it is, the others go on, and all end.
            text += f"\nnot ok - scripts/test itself failed: {error!r}\n"
            results = {name: Result(failed=1) for name in names_of(piece)}
        seconds = time.monotonic() - began
        with self.changed:
            self.free += min(piece.cores, self.cores)
            del self.running[piece.name]
            self.changed.notify()
            self.finish(piece, status, results, seconds, text)

    def execute(self, piece):
        OUT.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, **piece.environment, WITHIN: str(TOP)}
        for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
            environment.pop(name, None)
        command = piece.command
        if self.rooms:
            inputs = "" if self.record is None else self.record.inputs(piece)
            command = self.rooms.command(piece, [other for other in self.pieces if other.name in piece.after], inputs)
        with open(piece.log(), "wb") as log:
            process = subprocess.Popen(
                command, cwd=TOP, env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
            self.processes.append(process)
            try:
                with Watchdog(process, piece, log) as watchdog:
                    while data := os.read(process.stdout.fileno(), 65536):
                        watchdog.heard()
                        log.write(data)
                        log.flush()
                        if self.shown:
                            os.write(1, data)
                if not watchdog.ended:
                    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
                    self.busy[piece.name] = processor_time(process.pid)
                return process.wait()
            finally:
                end(process, patience=PATIENCE)
                process.stdout.close()
                # Its pid may be reused from now on.
                self.processes.remove(process)

    def finish(self, piece, status, results, seconds=0.0, text=""):
        total = Result()
        for result in results.values():
            total.add(result)
        state = NOT_RUN if status is None and not text else "failed" if total.failed else "passed"
        self.states[piece.name] = state
        self.results[piece.name] = (state, results, seconds)
        done = f"[{len(self.results)}/{len(self.pieces)}]"
        if state == NOT_RUN:
            say(f"{done} NOT RUN {piece.name}: a piece that it needs has failed")
        else:
            busy = f" ({self.busy[piece.name]:.0f} s of a processor)" if piece.name in self.busy else ""
            say(f"{done} {'' if state == 'passed' else 'FAILED '}{piece.name}: {total}, {seconds:.0f} s{busy}")
        for line in text.splitlines():
            if line.startswith("lint: "):
                say(f"      {line}")
        if state == "failed":
            self.failures[piece.name] = self.failures_of(piece, status, text, results)
            say("\n".join(self.failures[piece.name]))
        # Last, so that the result is printed and others go on even if it cannot be kept.
        if status is not None:
            self.keep(piece, results, seconds)

    def keep(self, piece, results, seconds):
        """Durations of passed ones; and in the record, failures, too."""
        if self.record is not None:
            same = self.record.keep(piece, results, seconds)
            if self.rooms and same and self.states[piece.name] == "passed":
                self.rooms.keep(piece, self.record.inputs(piece))
        passed = {name: result for name, result in results.items() if not result.failed}
        if piece.tests:
            tests = {test.name: key(piece.kernel, test, piece.rest, piece.long) for test in piece.tests}
            passed = {tests[name]: result for name, result in passed.items() if name in tests}
            measured = {name: result.seconds for name, result in passed.items()}
        else:
            measured = {name: seconds for name in passed}
        if self.durations is not None:
            self.durations.put(measured)

    @staticmethod
    def failures_of(piece, status, text, results):
        """Returns the lines about failures."""
        lines = text.splitlines()
        shown = []
        for i, line in enumerate(lines):
            panicked = re.match(r"thread '.*' .*panicked at ", line)
            if panicked or re.match(r"not ok|vm: |rhist: |lab: |error|warning: unused|FAILED|test \S+ has been running", line):
                shown.append(line)
                # The details of a failed point, or a panic's message, up to its backtrace.
                of_it = r"(?!note: |stack backtrace:).*\S" if panicked else r"#(?! test:)|    "
                for more in lines[i + 1 : i + 12]:
                    if not re.match(of_it, more):
                        break
                    shown.append(more)
        reasons = [f"{name}: {result.why}" for name, result in results.items() if result.why]
        shown = reasons + (shown or ([] if reasons else lines[-25:]))[:FAILURES_SHOWN]
        shown.append(f"status {status}; all it said: {piece.log().relative_to(TOP)}")
        return [f"      {line[:300]}" for line in shown]


class Watchdog:
    """
    Ends a process that takes too long, or prints nothing for too long; and notes that in its log.
    """

    def __init__(self, process, piece, log):
        self.process, self.piece, self.log = process, piece, log
        self.began = self.last = time.monotonic()
        self.done, self.ended = threading.Event(), False
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def heard(self):
        self.last = time.monotonic()

    def watch(self):
        while not self.done.wait(1):
            now = time.monotonic()
            if now - self.last > self.piece.patience:
                why = f"it printed nothing for {self.piece.patience} s"
            elif now - self.began > self.piece.limit:
                why = f"it took more than {self.piece.limit} s"
            else:
                continue
            self.ended = True
            self.log.write(f"not ok - {self.piece.name}: ended, since {why}\n".encode())
            end(self.process, patience=PATIENCE)
            return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def names_of(piece):
    """Of its results."""
    return [test.name for test in piece.tests] or [piece.name]


def processor_time(pid):
    """
    CPU seconds of an ended process, including the children that it has waited for. See
    proc_pid_stat(5).
    """
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def table(runner):
    """Returns per test: passed, failed, not run, reports."""
    rows = []
    for piece in runner.pieces:
        state, results, _ = runner.results[piece.name]
        if not piece.counts:
            continue
        where = piece.name.split(":")[0] if piece.tests else ""
        for test, result in results.items():
            unseen = result.failed if state == NOT_RUN else 0
            rows.append((f"{where + ': ' if where else ''}{test}", result.passed, result.failed - unseen, unseen,
                         result.skipped, result.reports, result.seconds))
    width = max((len(row[0]) for row in rows), default=0)
    say(f"\n{'':{width}} {'passed':>8} {'failed':>8} {NOT_RUN:>8} {'skipped':>8} {'reports':>8} {'seconds':>8}")
    for name, *numbers in rows:
        say(f"{name:{width}} " + " ".join(f"{number or '-':>8.0f}" if number else f"{'-':>8}" for number in numbers))


def within_ceilings(runner):
    """
    Prints the pieces that took more CPU seconds than they may. It is a failure if the sum is
    larger than other load on the machine can explain.
    """
    taken, most, over = ceilings.compare(runner.busy, runner.pieces, selftests.ceilings())
    for sentence in over:
        say(sentence)
    say(f"all pieces took {taken:.0f} s of a processor, and may take {most:.0f}")
    right = taken <= most * ceilings.SLACK
    return Result(int(right), int(not right))


def run(pieces, shown=False, durations=None, seed=None, tabled=False, left_out=(), limited=False):
    """
    Runs pieces, and prints the results, on request also as a table, and the ones in LeftOut. If
    limited, all pieces together must not take much more CPU time than their ceilings. Returns the
    exit status.
    """
    if seed is not None:
        say(f"pieces run in an order that is drawn, each in a folder build/ of its own: --seed {seed}")
    with locks(pieces):
        began = time.monotonic()
        runner = Runner(pieces, shown, durations, seed, Record(pieces=pieces))
        runner.run()
    total = Result()
    for _, results, _ in runner.results.values():
        for result in results.values():
            total.add(result)
    if tabled:
        table(runner)
    failed = [name for name, (state, *_) in runner.results.items() if state != "passed"]
    for name, lines in runner.failures.items():
        # Repeated here, at the end of a long log.
        say("\n".join([f"\nFAILED {name}", *lines]))
    if failed:
        say("\nfailed or not run: " + "; ".join(failed))
    for left in left_out:
        say(f"\nleft out: {', '.join(left.names)}: {left.why}")
        total.skipped += len(left.names)
    missed = [left for left in left_out if left.fails]
    if missed:
        say("test: this run fails, because tests that it should run were left out: see above")
    say(f"\nall of it took {time.monotonic() - began:.0f} s")
    if limited:
        total.add(within_ceilings(runner))
    say(str(total))
    return int(bool(total.failed or missed) or bool(pieces) and not total.passed)
