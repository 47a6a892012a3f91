# SPDX-License-Identifier: GPL-2.0
"""Runs jobs of tests side by side, and prints the results."""

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
# Seconds that a job gets to clean up.
PATIENCE = 10
# A state of a job.
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
    """Jobs or tests that are not run, since the archive lacks something that they need."""

    names: list
    why: str
    # True if a run without them is a failure.
    fails: bool = False


class Durations(dict):
    """Last durations of passed jobs and tests in seconds, kept in the lab."""

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


def judge(job, status, text):
    """
    Counts the output of a job: returns one Result for each of its tests, or one under its own
    name.
    """
    lines = text.splitlines()
    reports = sum(int(match[1] or 1) for match in map(REPORTED.match, lines) if match)
    if job.tests:
        results = judge_tests(job, lines)
    elif not job.counts:
        results = {job.name: Result(int(status == 0), int(status != 0))}
    else:
        result = total_of(lines)
        if not result.failed and not result.passed:
            result.failed = 1
        results = {job.name: result}
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


def judge_tests(job, lines):
    """
    A test fails if the guest did not reach it, if none of its points passed, or if it skipped
    another number than it should.
    """
    done = {match[1]: match for match in map(OF_TEST.match, lines) if match}
    results = {}
    for test in job.tests:
        match = done.get(test.name)
        if not match:
            results[test.name] = Result(failed=1, why="it did not run to its end")
            continue
        result = Result(*(int(number) for number in match.groups()[1:4]), seconds=float(match[5]))
        expected = test.skipped_on(job.kernel, job.rest)
        if not result.failed and not result.passed:
            result.failed, result.why = 1, "nothing was tested"
        elif not result.failed and result.skipped != expected:
            result.failed, result.why = 1, f"{result.skipped} points were skipped, and not {expected}: see {selftests.TABLE.relative_to(selftests.TOP)}"
        results[test.name] = result
    return results


class Runner:
    """
    Runs jobs, as many at once as the machine has processors: the longest first; or, with a
    seed, in an order that is drawn, and each in a room of its own, so that none depends on files
    that another one happened to make before.
    """

    def __init__(self, jobs, shown=False, durations=None, seed=None, record=None):
        # Several parts may need the same job.
        self.jobs = list({job.name: job for job in jobs}.values())
        self.shown, self.durations, self.record = shown, durations, record
        self.waiting = list(self.jobs)
        self.rooms = Rooms(TOP / "build") if seed is not None else None
        if self.rooms:
            random.Random(seed).shuffle(self.waiting)
        self.running, self.results, self.states, self.failures = {}, {}, {}, {}
        self.processes, self.busy = [], {}
        self.changed = threading.Condition()
        self.free = self.cores = os.cpu_count()
        self.began = time.monotonic()

    def ready(self):
        """Returns the job to begin next, or None. Drops jobs that cannot be run any more."""
        best = None
        names = {job.name for job in self.jobs}
        for job in list(self.waiting):
            needs = [self.states.get(name) for name in job.after if name in names]
            if "failed" in needs or NOT_RUN in needs:
                self.waiting.remove(job)
                self.finish(job, None, {name: Result(failed=1) for name in names_of(job)})
            elif None not in needs and min(job.cores, self.cores) <= self.free:
                if not best or not self.rooms and self.urgency(job) > self.urgency(best):
                    best = job
        return best

    def urgency(self, job):
        """Seconds until the end of all jobs that wait for it, itself included."""
        return job.takes + max((self.urgency(other) for other in self.jobs if job.name in other.after), default=0)

    def run(self):
        try:
            return self.run_all()
        finally:
            # If the run is ended early, the jobs end too: each is a session of its own. Their end
            # is not a result.
            self.record = None
            end(*self.processes, patience=PATIENCE)

    def run_all(self):
        with self.changed:
            while self.waiting or self.running:
                while job := self.ready():
                    self.waiting.remove(job)
                    self.free -= min(job.cores, self.cores)
                    thread = threading.Thread(target=self.one, args=[job], daemon=True)
                    self.running[job.name] = (job, time.monotonic())
                    thread.start()
                if not self.running:
                    # The waiting ones were dropped, as they could not be run any more; or they wait
                    # for each other.
                    if self.waiting:
                        raise RuntimeError(f"no job can begin: {[job.name for job in self.waiting]}")
                    break
                if not self.changed.wait(HEARTBEAT) and not self.shown:
                    now = time.monotonic()
                    busy = ", ".join(f"{name} ({now - began:.0f} s)" for name, (_, began) in self.running.items())
                    say(f"   … {now - self.began:.0f} s, {len(self.waiting)} jobs wait; running: {busy}")
        return self.results

    def one(self, job):
        status, text = None, ""
        began = time.monotonic()
        try:
            if self.record is not None:
                self.record.begin(job)
            status = self.execute(job)
            text = job.log().read_text(encoding="utf-8", errors="replace")
            results = judge(job, status, text)
        except Exception as error:  # Whatever it is, the others go on, and all end.
            text += f"\nnot ok - scripts/test itself failed: {error!r}\n"
            results = {name: Result(failed=1) for name in names_of(job)}
        seconds = time.monotonic() - began
        with self.changed:
            self.free += min(job.cores, self.cores)
            del self.running[job.name]
            self.changed.notify()
            self.finish(job, status, results, seconds, text)

    def execute(self, job):
        OUT.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, **job.environment, WITHIN: str(TOP)}
        for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
            environment.pop(name, None)
        command = job.command
        if self.rooms:
            inputs = "" if self.record is None else self.record.inputs(job)
            command = self.rooms.command(job, [other for other in self.jobs if other.name in job.after], inputs)
        with open(job.log(), "wb") as log:
            process = subprocess.Popen(
                command, cwd=TOP, env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
            self.processes.append(process)
            try:
                with Watchdog(process, job, log) as watchdog:
                    while data := os.read(process.stdout.fileno(), 65536):
                        watchdog.heard()
                        log.write(data)
                        log.flush()
                        if self.shown:
                            os.write(1, data)
                if not watchdog.ended:
                    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
                    self.busy[job.name] = processor_time(process.pid)
                return process.wait()
            finally:
                end(process, patience=PATIENCE)
                process.stdout.close()
                # Its pid may be reused from now on.
                self.processes.remove(process)

    def finish(self, job, status, results, seconds=0.0, text=""):
        total = Result()
        for result in results.values():
            total.add(result)
        state = NOT_RUN if status is None and not text else "failed" if total.failed else "passed"
        self.states[job.name] = state
        self.results[job.name] = (state, results, seconds)
        done = f"[{len(self.results)}/{len(self.jobs)}]"
        if state == NOT_RUN:
            say(f"{done} NOT RUN {job.name}: a job that it needs has failed")
        else:
            busy = f" ({self.busy[job.name]:.0f} s of a processor)" if job.name in self.busy else ""
            say(f"{done} {'' if state == 'passed' else 'FAILED '}{job.name}: {total}, {seconds:.0f} s{busy}")
        for line in text.splitlines():
            if line.startswith("lint: "):
                say(f"      {line}")
        if state == "failed":
            self.failures[job.name] = self.failures_of(job, status, text, results)
            say("\n".join(self.failures[job.name]))
        # Last, so that the result is printed and others go on even if it cannot be kept.
        if status is not None:
            self.keep(job, results, seconds)

    def keep(self, job, results, seconds):
        """Durations of passed ones; and in the record, failures, too."""
        if self.record is not None:
            same = self.record.keep(job, results, seconds)
            if self.rooms and same and self.states[job.name] == "passed":
                self.rooms.keep(job, self.record.inputs(job))
        passed = {name: result for name, result in results.items() if not result.failed}
        if job.tests:
            tests = {test.name: key(job.kernel, test, job.rest, job.long) for test in job.tests}
            passed = {tests[name]: result for name, result in passed.items() if name in tests}
            measured = {name: result.seconds for name, result in passed.items()}
        else:
            measured = {name: seconds for name in passed}
        if self.durations is not None:
            self.durations.put(measured)

    @staticmethod
    def notes_before(lines, i):
        """Returns at most 4 lines of notes that end before line i."""
        begin = i
        while begin > max(i - 4, 0) and re.match(r"# (?!test:|Totals:)", lines[begin - 1]):
            begin -= 1
        return lines[begin:i]

    @staticmethod
    def failures_of(job, status, text, results):
        """Returns the lines about failures."""
        lines = text.splitlines()
        shown, end = [], 0
        for i, line in enumerate(lines):
            panicked = re.match(r" *thread '.*' .*panicked at ", line)
            if panicked or re.match(r"not ok|vm: |rhist: |lab: |error|warning: unused|FAILED|test \S+ has been running", line):
                # Notes before a failed point, and its details; a panic's message, up to its
                # backtrace; or why cargo failed.
                if line.startswith("not ok"):
                    shown += Runner.notes_before(lines, i)[-(i - end) :] if i > end else []
                shown.append(line)
                end = i + 1
                of_it = r"#(?! test:)|    "
                if panicked:
                    of_it = r"(?! *note: | *stack backtrace:).*\S"
                elif line.startswith("error: failed to run custom build command"):
                    of_it = r"$|note: |Caused by:|  (?!thread)"
                for more in lines[i + 1 : i + 12]:
                    if not re.match(of_it, more):
                        break
                    shown.append(more)
                    end += 1
        reasons = [f"{name}: {result.why}" for name, result in results.items() if result.why]
        shown = reasons + (shown or ([] if reasons else lines[-25:]))[:FAILURES_SHOWN]
        shown.append(f"status {status}; all it said: {job.log().relative_to(TOP)}")
        return [f"      {line[:300]}" for line in shown]


class Watchdog:
    """
    Ends a process that takes too long, or prints nothing for too long; and notes that in its log.
    """

    def __init__(self, process, job, log):
        self.process, self.job, self.log = process, job, log
        self.began = self.last = time.monotonic()
        self.done, self.ended = threading.Event(), False
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def heard(self):
        self.last = time.monotonic()

    def watch(self):
        while not self.done.wait(1):
            now = time.monotonic()
            if now - self.last > self.job.patience:
                why = f"it printed nothing for {self.job.patience} s"
            elif now - self.began > self.job.limit:
                why = f"it took more than {self.job.limit} s"
            else:
                continue
            self.ended = True
            self.log.write(f"not ok - {self.job.name}: ended, since {why}\n".encode())
            end(self.process, patience=PATIENCE)
            return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def names_of(job):
    """Of its results."""
    return [test.name for test in job.tests] or [job.name]


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
    for job in runner.jobs:
        state, results, _ = runner.results[job.name]
        if not job.counts:
            continue
        where = job.name.split(":")[0] if job.tests else ""
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
    Prints the jobs that took more CPU seconds than they may. It is a failure if the sum is
    larger than other load on the machine can explain.
    """
    taken, most, over = ceilings.compare(runner.busy, runner.jobs, selftests.ceilings())
    for sentence in over:
        say(sentence)
    say(f"all jobs took {taken:.0f} s of a processor, and may take {most:.0f}")
    right = taken <= most * ceilings.SLACK
    return Result(int(right), int(not right))


def run(jobs, shown=False, durations=None, seed=None, tabled=False, left_out=(), limited=False):
    """
    Runs jobs, and prints the results, on request also as a table, and the ones in LeftOut. If
    limited, all jobs together must not take much more CPU time than their ceilings. Returns the
    exit status.
    """
    if seed is not None:
        say(f"jobs run in an order that is drawn, each in a folder build/ of its own: --seed {seed}")
    with locks(jobs):
        began = time.monotonic()
        runner = Runner(jobs, shown, durations, seed, Record(jobs=jobs))
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
    return int(bool(total.failed or missed) or bool(jobs) and not total.passed)
