# SPDX-License-Identifier: GPL-2.0
"""
What recipes count of loads of known shape.

Each recipe runs twice at the same time, with the histograms of rhist and with those of C, so that both see the same events
and have to count the same. What is exact is compared exactly. Of a time, the load knows bounds: it cannot have been shorter
than what was asked for, nor longer than what the load itself measured around it.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.abspath(__file__))
OUT = os.environ.get("OUT", f"{TOP}/../../../../build/selftests/command")
RHIST = os.environ.get("RHIST_COMMAND", f"{TOP}/../../../../build/command/rhist")
KERNEL = "/sys/kernel/tracing"
WORK = f"{os.environ.get('TMPDIR', '/tmp')}/recipes.{os.getpid()}"
HAVE_PROBES = os.path.exists(f"{KERNEL}/kprobe_events")
# What user-mode Linux has tested is left out.
REST_ONLY = bool(os.environ.get("RHIST_REST")) and HAVE_PROBES
BACKENDS = ("rhist", "c")
# User-mode Linux has a clock that goes on with each tick only.
TICK = 0 if HAVE_PROBES else 10_000_000
MS = 1_000_000

points = failures = 0


def ok(good, name, *details):
    global points, failures
    points += 1
    failures += not good
    print("ok" if good else "not ok", points, "-", name, flush=True)
    if not good:
        for detail in details:
            print("#  ", detail)


def plain(key):
    """A key as text."""
    if isinstance(key, dict):
        for name in ("name", "comm", "syscall", "symbol", "address", "text"):
            if name in key:
                return str(key[name])
        if "stack" in key:
            stack = ";".join(re.sub(r"\+0x.*", "", plain(frame)) for frame in key["stack"])
            # C has functions of its own before the one that was traced, on some kernels.
            return re.sub(r"^.*;__schedule;", "__schedule;", stack)
    return str(key)


class Total:
    """What a run has counted in the end."""

    def __init__(self, line):
        self.all = line
        self.rows = {tuple(plain(key) for key in row["keys"]): row for row in line["rows"]}
        self.losses = line["losses"]

    @property
    def hits(self):
        return sum(row["hits"] for row in self.all["rows"])

    def table(self):
        return {keys: row["hits"] for keys, row in self.rows.items()}

    def of(self, *keys):
        """Hits of the rows with these keys, or with these first keys."""
        return sum(row["hits"] for found, row in self.rows.items() if found[: len(keys)] == keys)

    def sum(self, column=0):
        """Of a value: what C and rhist have of it."""
        values = [row["values"][column] for row in self.all["rows"]]
        return sum(value["sum"] if isinstance(value, dict) else value for value in values)

    def low(self):
        """What no value is below."""
        values = [row["values"][0] for row in self.all["rows"] if row["hits"]]
        return min(value["min"] if value["min"] is not None else value["buckets"][0][0] for value in values)

    def high(self):
        return max(row["values"][0]["max"] for row in self.all["rows"] if row["hits"])


class Run:
    """A recipe that runs."""

    def __init__(self, words, backend):
        self.command = [RHIST, *words, "--backend", backend, "--format", "json", "-i", "0.5"]
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait(self):
        """Until an interval is over, as all triggers are there then."""
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(self.command)}: {self.process.stderr.read()}")

    def stop(self):
        self.process.send_signal(signal.SIGINT)

    def total(self):
        out, said = self.process.communicate()
        lines = [json.loads(line) for line in out.splitlines()]
        if self.process.returncode or not lines or lines[-1]["type"] != "total":
            raise RuntimeError(f"{' '.join(self.command)}: {self.process.returncode} {said}")
        return Total(lines[-1])


class Case:
    """A recipe, and what it has to count: checks take the totals and what the loads have said."""

    def __init__(self, words, check, same=True):
        self.words, self.check, self.same = words.split(), check, same
        self.name = words
        self.checks = {}

    def equal(self, what, got, expected):
        self.add(what, got == expected, f"{got}, expected {expected}")

    def within(self, what, low, got, high):
        self.add(what, low <= got <= high, f"{low} <= {got} <= {high}")

    def add(self, what, good, detail):
        self.checks.setdefault(what, []).append((good, f"{self.backend}: {detail}"))

    def judge(self, totals, known):
        for self.backend, total in totals.items():
            self.equal("nothing is lost", (total.losses["dropped"], total.losses["no_bucket"] or 0, total.losses["missed"] or 0), (0, 0, 0))
            try:
                self.check(self, total, known)
            except (KeyError, IndexError, ValueError, TypeError) as error:
                self.add("all of it is there", False, f"{error!r}: {total.all['rows'][:3]}")
        tables = [total.table() for total in totals.values()]
        if self.same and len(tables) == 2:
            self.add("C counts the same", tables[0] == tables[1], f"{tables}")
        for what, found in self.checks.items():
            ok(all(good for good, _ in found), f"{self.name}: {what}", *[detail for good, detail in found if not good])


class Known(dict):
    """What loads have said."""

    def load(self, comm, kind, count=1, arg="0"):
        command = [f"{WORK}/load", comm, kind, str(count), str(arg)]
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        self[comm] = {name: int(number) for name, number in (line.split() for line in said.splitlines())}


def group(cases, load, backends=BACKENDS):
    """Runs recipes at once, and the loads meanwhile."""
    known = Known()
    runs = {}
    began = time.monotonic()
    try:
        for case in cases:
            for backend in backends:
                runs[case, backend] = Run(case.words, backend)
        for run in runs.values():
            run.wait()
        ready = time.monotonic()
        load(known)
        loaded = time.monotonic()
        for run in runs.values():
            run.stop()
        totals = {which: run.total() for which, run in runs.items()}
    finally:
        for run in runs.values():
            if run.process.poll() is None:
                run.process.kill()
    for case in cases:
        case.judge({backend: totals[case, backend] for backend in backends}, known)
    print(f"# {ready - began:.1f} s to begin, {loaded - ready:.1f} s of loads, {time.monotonic() - loaded:.1f} s to end")


# --- tasks and CPUs

SLEEPS, SLEEP = 20, 20 * MS


def waits(case, total, known):
    """Each time that a task was switched out, it waits once until it runs again."""
    sleeper = known["ld_sleep"]
    case.within("each wait is counted once", sleeper["switches"], total.hits, sleeper["outer_switches"])
    case.within("times", 0, total.sum(), sleeper["wall"] - SLEEPS * SLEEP + SLEEPS * TICK)


def runs_(case, total, known):
    spinner = known["ld_spin"]
    case.within("each run is counted once", spinner["switches"], total.hits, spinner["outer_switches"])
    # It runs unless it sleeps: that is one millisecond for each five that it spins.
    case.within("times", spinner["cpu"] * 0.9 - TICK * 20, total.sum(), spinner["wall"] - 20 * MS + 20 * TICK + 5 * MS)


def away(case, total, known):
    sleeper = known["ld_sleep"]
    case.within("each period is counted once", sleeper["switches"], total.hits, sleeper["outer_switches"])
    least = (sleeper["wall"] - sleeper["cpu"]) * 0.97
    case.within("times: those in which it did not run", least - SLEEPS * TICK, total.sum(), sleeper["wall"] + SLEEPS * TICK + 5 * MS)
    stacks = sum(row["hits"] for keys, row in total.rows.items() if "nanosleep" in keys[0])
    case.within("stacks: where it sleeps", SLEEPS, stacks, sleeper["outer_switches"])


def blocked(case, total, known):
    sleeper = known["ld_sleep"]
    case.within("each sleep is counted once", SLEEPS, total.hits, sleeper["outer_switches"])


def woken(case, total, known):
    case.equal("each time that it is woken is counted once", total.of("ld_kid", "ld_ring"), 30)
    # It sleeps from one byte to the next, and has nothing else to do.
    times = sum(row["values"][0]["sum"] for keys, row in total.rows.items() if keys == ("ld_kid", "ld_ring"))
    case.within("times", 30 * 4 * MS - 30 * TICK, times, known["ld_ring"]["wall"] + 30 * TICK)


def expired(case, total, known):
    alarms = total.rows[("it_real_fn",)] if ("it_real_fn",) in total.rows else total.rows[("posix_timer_fn",)]
    case.equal("each expiration is counted once", alarms["hits"], 25)
    case.within("times", 0, alarms["values"][0]["sum"], known["ld_alarm"]["late"] + 25 * TICK)


def sched():
    def load(known):
        known.load("ld_sleep", "sleep", SLEEPS, SLEEP // 1000)
        known.load("ld_spin", "spin", 20, 5000)
        known.load("ld_ring", "ring", 30, "ld_kid")
        known.load("ld_alarm", "alarm", 25, 3000)

    group([
        Case("runqlat -c ld_sleep", waits),
        Case("cpudist -c ld_spin", runs_),
        Case("offcputime -c ld_sleep", away),
        Case("offcputime --blocked -c ld_sleep", blocked),
        Case("wakeuptime -c ld_kid --by comm,waker", woken),
        Case("timerlag", expired, same=False),
    ], load)


# --- system calls, signals, and others that programs cause

def calls(case, total, known):
    case.equal("each call is counted once", total.of("getpgid"), 1234)


def errors(case, total, known):
    case.equal("each error is counted once", total.table(), {("close", "EBADF"): 321})


def latencies(case, total, known):
    sleeper = known["ld_naps"]
    name, = [keys for keys in total.rows if "nanosleep" in keys[0]]
    row = total.rows[name]
    case.equal("each call is counted once", row["hits"], 10)
    case.within("times", 10 * 20 * MS - 10 * TICK, row["values"][0]["sum"], sleeper["wall"] + 10 * TICK)


def signalled(case, total, known):
    case.equal("each signal is counted once", total.of("SIGUSR1", "ld_signal"), 77)


def executed(case, total, known):
    case.equal("each program is counted once", total.of(f"{WORK}/true"), 9)


def allocated(case, total, known):
    # The pipe, and its buffers.
    case.equal("each allocation is counted once", total.of("alloc_pipe_info"), 2 * 50)
    asked, taken = total.rows[("alloc_pipe_info",)]["values"]
    case.within("bytes that were asked for, and that are taken", 1, asked, taken)


def synced(case, total, known):
    case.equal("each call is counted once", total.of("ld_sync"), 8)
    case.within("times", 0, total.sum(), known["ld_sync"]["wall"] + 8 * TICK)


def written(case, total, known):
    case.equal("each write is counted once", total.hits, 41)


def queued(case, total, known):
    row = total.rows[("flush_to_ldisc",)]
    # The line, and its echo. Others may have terminals, too.
    case.within("each item is counted once", 2 * 60, row["hits"], 2 * 60 + 4)
    case.within("times", 0, row["values"][0]["sum"], known["ld_tty"]["wall"] + 120 * TICK)


def programs():
    shutil.copy("/bin/true", f"{WORK}/true")

    # An event that has to be there before anybody can count it.
    command = [f"{WORK}/load", "ld_user", "user", "41"]
    user = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    user.stdout.readline()

    def load(known):
        known.load("ld_calls", "getpgid", 1234)
        known.load("ld_bad", "badfd", 321)
        known.load("ld_naps", "sleep", 10, 20000)
        known.load("ld_signal", "signal", 77)
        known.load("ld_exec", "exec", 9, f"{WORK}/true")
        known.load("ld_pipe", "pipe", 50)
        known.load("ld_sync", "sync", 8, f"{WORK}/file")
        known.load("ld_tty", "tty", 60)
        user.communicate("\n")

    group([
        Case("syscount -c ld_calls", calls),
        Case("syscount --errors -c ld_bad", errors),
        Case("syscall-latency -c ld_naps", latencies),
        Case("signals -c ld_signal", signalled),
        Case("execs", executed, same=False),
        Case("kmem -c ld_pipe", allocated),
        Case("fsync-latency -c ld_sync", synced),
        Case("user-event rhist_load", written),
        Case("wqlat", queued, same=False),
        Case("wqlat --run", queued, same=False),
    ], load)


def main():
    os.mkdir(WORK)
    try:
        # What is started many times is in memory.
        shutil.copy(f"{OUT}/load", f"{WORK}/load")
        for part in (sched, programs):
            part()
    finally:
        shutil.rmtree(WORK)
    print(f"1..{points}")
    print(f"# {points - failures} passed, {failures} failed")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
