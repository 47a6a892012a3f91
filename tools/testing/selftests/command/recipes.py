# SPDX-License-Identifier: GPL-2.0
"""
Counts of recipes for loads of known shape.

Each recipe runs twice at the same time, with the histograms of rhist and with C's, so that both
see the same events and have to count the same. Exact numbers are compared exactly. For a time the
load knows bounds: not shorter than the requested time, nor longer than the load itself measured
around it.
"""

import fcntl
import glob
import json
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import time

from instance import has_begun, until
from tap import finish, ok

TOP = os.path.dirname(os.path.abspath(__file__))
OUT = os.environ.get("OUT", f"{TOP}/../../../../build/selftests/command")
RHIST = os.environ.get("RHIST_COMMAND", f"{TOP}/../../../../build/command/rhist")
KERNEL = "/sys/kernel/tracing"
WORK = f"{os.environ.get('TMPDIR', '/tmp')}/recipes.{os.getpid()}"
HAVE_PROBES = os.path.exists(f"{KERNEL}/kprobe_events")
# Leave out tests that already ran on user-mode Linux.
REST_ONLY = bool(os.environ.get("RHIST_REST")) and HAVE_PROBES
BACKENDS = ("rhist", "c")
# User-mode Linux has a clock that advances only with each tick.
TICK = 0 if HAVE_PROBES else 10_000_000
MS = 1_000_000
SIZE = "2048"
# Many runs at once that read their tables twice a second keep an emulated processor from all else.
INTERVALS = [] if REST_ONLY else ["-i", "0.5"]


def plain(key):
    """A key as text."""
    if isinstance(key, dict):
        for name in ("name", "comm", "syscall", "symbol", "address", "text"):
            if name in key:
                return str(key[name])
        if "stack" in key:
            stack = ";".join(re.sub(r"\+0x.*", "", plain(frame)) for frame in key["stack"])
            # On some kernels, C has functions of its own before the traced one.
            return re.sub(r"^.*;__schedule;", "__schedule;", stack)
    return str(key)


class Total:
    """Final counts of a run."""

    def __init__(self, line):
        self.all = line
        self.rows = {tuple(plain(key) for key in row["keys"]): row for row in line["rows"]}
        self.losses = line["losses"]

    def traced(self, text):
        """Returns true if a trigger or probe of the run has this text."""
        return any(text in line for line in self.all["triggers"])

    @property
    def hits(self):
        return sum(row["hits"] for row in self.all["rows"])

    def table(self):
        return {keys: row["hits"] for keys, row in self.rows.items()}

    def of(self, *keys):
        """Hits of the rows with these keys, or with these first keys."""
        return sum(row["hits"] for found, row in self.rows.items() if found[: len(keys)] == keys)

    def sum(self, column=0):
        """Sum of a value, as C or rhist has it."""
        values = [row["values"][column] for row in self.all["rows"]]
        return sum(value["sum"] if isinstance(value, dict) else value for value in values)

    def low(self):
        """Returns a lower bound of all values."""
        values = [row["values"][0] for row in self.all["rows"] if row["hits"]]
        return min(value["min"] if value["min"] is not None else value["buckets"][0][0] for value in values)

    def high(self, *keys):
        """
        Returns an upper bound of the values of rows with these first keys. C knows the bucket
        only.
        """
        rows = [row for found, row in self.rows.items() if row["hits"] and found[: len(keys)] == keys]
        values = [row["values"][0] for row in rows]
        return max(value["buckets"][-1][1] if value["max"] is None else value["max"] for value in values)


class Run:
    """A recipe that runs."""

    def __init__(self, words, backend):
        # With a small map, since C makes all of its elements first, and the loads have few keys.
        self.command = [RHIST, *words, "--size", SIZE, "--backend", backend, "--format", "json", *INTERVALS]
        self.out, self.err = (tempfile.TemporaryFile("w+", dir=WORK) for _ in range(2))
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err)

    def fail(self):
        self.err.seek(0)
        raise RuntimeError(f"{' '.join(self.command)}: {self.process.returncode} {self.err.read()}")

    def wait(self):
        """Waits until it counts, which its journal says."""
        until(lambda: self.process.poll() is not None or has_begun(self.process), 900)
        if self.process.poll() is not None:
            self.fail()

    def stop(self):
        self.process.send_signal(signal.SIGINT)

    def total(self):
        self.process.wait()
        self.out.seek(0)
        lines = [json.loads(line) for line in self.out]
        if self.process.returncode or not lines or lines[-1]["type"] != "total":
            self.fail()
        return Total(lines[-1])


class Case:
    """A recipe and its expected counts: checks take the totals and the numbers of the loads."""

    def __init__(self, words, check, same=True):
        self.words, self.check, self.same = words.split(), check, same
        self.name = words
        self.checks = {}

    def equal(self, what, got, expected):
        self.add(what, got == expected, f"{got}, expected {expected}")

    def all_ends(self, total, expected=0):
        """Checks that all ends except `expected` have found their start; C does not report that."""
        self.add("ends find their starts", total.losses["unresolved"] in (expected, None), total.losses)

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
    """Numbers that loads have printed about themselves."""

    def load(self, comm, kind, count=1, arg="0"):
        command = [f"{WORK}/load", comm, kind, str(count), str(arg)]
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        numbers = {name: int(number) for name, number in (line.split() for line in said.splitlines())}
        # The clock of the events, which C reads, runs by the time stamp counter. On an emulated
        # processor the kernel cannot measure how fast that is.
        self[comm] = {**numbers, "most": int(numbers["outer_wall"] * 1.03)}


def with_less_room():
    """
    The recipes, with less room for starts: C makes all elements first, 16,384 or more for each
    trigger, which takes an emulated processor a second.
    """
    folder = f"{WORK}/config/rhist/recipes"
    os.makedirs(folder)
    for path in glob.glob(f"{TOP}/../../../rhist/recipes/*.toml"):
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"^size = \d+\n", "", file.read(), flags=re.MULTILINE)
        with open(f"{folder}/{os.path.basename(path)}", "w", encoding="utf-8") as file:
            file.write(re.sub(r"^\[\[(?:.*\.)?start\]\]$", r"\g<0>\nsize = 1024", text, flags=re.MULTILINE))
    os.environ["XDG_CONFIG_HOME"] = f"{WORK}/config"


def group(cases, load, known=None, after=None, backends=BACKENDS):
    """Runs recipes and loads at the same time."""
    known = Known() if known is None else known
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
    if after:
        after(known)
    for case in cases:
        case.judge({backend: totals[case, backend] for backend in backends}, known)
    print(f"# {ready - began:.1f} s to begin, {loaded - ready:.1f} s of loads, {time.monotonic() - loaded:.1f} s to end")


# --- tasks and CPUs

SLEEPS, SLEEP = 20, 20 * MS


def waits(case, total, known):
    """Each time the task is switched out, it waits once until it runs again."""
    sleeper = known["ld_sleep"]
    case.within("each wait is counted once", sleeper["switches"], total.hits, sleeper["outer_switches"])
    case.within("times", 0, total.sum(), sleeper["most"] - SLEEPS * SLEEP + SLEEPS * TICK)


def runs_(case, total, known):
    spinner = known["ld_spin"]
    case.within("each run is counted once", spinner["switches"], total.hits, spinner["outer_switches"])
    # It runs unless it sleeps: one millisecond for each five that it spins.
    case.within("times", spinner["cpu"] * 0.9 - TICK * 20, total.sum(), spinner["most"] - 20 * MS + 20 * TICK + 5 * MS)


def away(case, total, known):
    sleeper = known["ld_sleep"]
    case.within("each period is counted once", sleeper["switches"], total.hits, sleeper["outer_switches"])
    least = (sleeper["wall"] - sleeper["cpu"]) * 0.97
    case.within("times: those in which it did not run", least - SLEEPS * TICK, total.sum(), sleeper["most"] + SLEEPS * TICK + 5 * MS)
    stacks = sum(row["hits"] for keys, row in total.rows.items() if "nanosleep" in keys[0])
    case.within("stacks: where it sleeps", SLEEPS, stacks, sleeper["outer_switches"])


def blocked(case, total, known):
    sleeper = known["ld_sleep"]
    # A task that is preempted after setting its state, but before it sleeps, could have run. When
    # it does run, its time may be over.
    case.within("each sleep is counted once", SLEEPS - 2, total.hits, sleeper["outer_switches"])


CHILDREN, APART = 5, 300 * MS


def left(case, total, known):
    """A child exits, and the next one gets its pid."""
    states = [keys[1] for keys in total.rows]
    case.add("dead tasks do not come back", not {"X", "Z"} & set(states), states)
    case.add("there are some", total.hits >= CHILDREN, total.hits)


def made(case, total, known):
    """
    Each child returns from the call that made it, too, and has the pid of the last one, which was
    in exit_group. On user-mode Linux it is not seen to return.
    """
    row = total.rows[("clone3",)]
    case.equal("each call is counted once", row["hits"], CHILDREN)
    # It is not called while the load sleeps.
    awake = known["ld_reuse"]["most"] - CHILDREN * APART + 2 * CHILDREN * TICK
    case.within("times", 0, row["values"][0]["sum"], awake)
    case.equal("what does not return is not counted", total.of("exit_group"), 0)


def woken(case, total, known):
    # On a slow or busy machine, it may not sleep again yet when the next byte comes. It also sleeps
    # when it exits, and may have to wait for a lock.
    least = min(known["ld_ring"]["slept"] - 2, 28)
    case.within("each time that it is woken from sleep is counted once", least, total.of("ld_kid", "ld_ring"), 30)
    # It sleeps from one byte to the next, without other work.
    times = sum(row["values"][0]["sum"] for keys, row in total.rows.items() if keys == ("ld_kid", "ld_ring"))
    case.within("times", 10 * 4 * MS if HAVE_PROBES else 0, times, known["ld_ring"]["most"] + 30 * TICK)


def expired(case, total, known):
    alarms = total.rows[("it_real_fn",)] if ("it_real_fn",) in total.rows else total.rows[("posix_timer_fn",)]
    case.equal("each expiration is counted once", alarms["hits"], 25)
    case.within("times", 0, alarms["values"][0]["sum"], known["ld_alarm"]["late"] + 25 * TICK)


def sched():
    def load(known):
        known.load("ld_sleep", "sleep", SLEEPS, SLEEP // 1000)
        known.load("ld_ring", "ring", 30, "ld_kid")
        if not REST_ONLY:
            known.load("ld_spin", "spin", 20, 5000)
            known.load("ld_alarm", "alarm", 25, 3000)
            known.load("ld_reuse", "reuse", CHILDREN, APART // 1000)

    cases = [
        Case("runqlat -c ld_sleep", waits),
        Case("offcputime -c ld_sleep --by stack", away),
        Case("wakeuptime -c ld_kid --by comm,waker", woken),
    ]
    if not REST_ONLY:
        cases += [
            Case("cpudist -c ld_spin", runs_),
            Case("offcputime --blocked -c ld_sleep --by stack", blocked),
            Case("offcputime -c ld_reuse --by comm,state", left),
            Case("offcputime --blocked -c ld_reuse --by comm,state", left),
            Case("syscall-latency -c ld_reuse", made),
            Case("timerlag", expired, same=False),
        ]
    group(cases, load)


# --- system calls, signals, and other effects of programs

def calls(case, total, known):
    case.equal("each call is counted once", total.of("getpgid"), 1234)


def errors(case, total, known):
    case.equal("each error is counted once", total.table(), {("close", "EBADF"): 321})


def latencies(case, total, known):
    sleeper = known["ld_naps"]
    name, = [keys for keys in total.rows if "nanosleep" in keys[0]]
    row = total.rows[name]
    case.equal("each call is counted once", row["hits"], 10)
    case.within("times", 10 * 20 * MS - 10 * TICK, row["values"][0]["sum"], sleeper["most"] + 10 * TICK)


def interrupted(case, total, known):
    """
    A handler of a signal returns by a system call of its own, with the rest of the interrupted
    one.
    """
    calls = [keys[0] for keys in total.rows]
    case.add("each call is one", all(re.match("[a-z]", call) for call in calls), calls)
    case.add("there are some", "clock_nanosleep" in calls, calls)


def signalled(case, total, known):
    case.equal("each signal is counted once", total.of("SIGUSR1", "ld_signal"), 77)


def executed(case, total, known):
    case.equal("each program is counted once", total.of(f"{WORK}/true"), 9)


def allocated(case, total, known):
    # One for the pipe, and one for its buffers.
    case.equal("each allocation is counted once", total.of("alloc_pipe_info"), 2 * 50)
    asked, taken = total.rows[("alloc_pipe_info",)]["values"]
    case.within("bytes that were asked for, and that are taken", 1, asked, taken)


def synced(case, total, known):
    case.equal("each call is counted once", total.of("ld_sync"), 8)
    case.within("times", 0, total.sum(), known["ld_sync"]["most"] + 8 * TICK)


def written(case, total, known):
    case.equal("each write is counted once", total.hits, 41)


def queued(case, total, known):
    row = total.rows[("flush_to_ldisc",)]
    # The line, and its echo. Others may use terminals, too.
    case.within("each item is counted once", 2 * 60, row["hits"], 2 * 60 + 4)
    case.within("times", 0, row["values"][0]["sum"], known["ld_tty"]["most"] + 120 * TICK)


def programs():
    shutil.copy("/bin/true", f"{WORK}/true")

    def load(known):
        known.load("ld_calls", "getpgid", 1234)
        known.load("ld_bad", "badfd", 321)
        known.load("ld_naps", "sleep", 10, 20000)
        known.load("ld_signal", "signal", 77)
        known.load("ld_exec", "exec", 9, f"{WORK}/true")
        known.load("ld_pipe", "pipe", 50)
        known.load("ld_sync", "sync", 8, f"{WORK}/file")
        known.load("ld_tty", "tty", 60)
        known.load("ld_handler", "handler", 10, 5000)

    group([
        Case("syscount -c ld_calls", calls),
        Case("syscount --errors -c ld_bad", errors),
        Case("syscall-latency -c ld_naps", latencies),
        Case("syscall-latency -c ld_handler", interrupted),
        Case("syscount --errors -c ld_handler", interrupted),
        Case("signals -c ld_signal", signalled),
        Case("execs", executed, same=False),
        Case("kmem -c ld_pipe", allocated),
        Case("fsync-latency -c ld_sync", synced),
        Case("wqlat", queued, same=False),
        Case("wqlat --run", queued, same=False),
    ], load)


def user_events():
    # A user event, which must exist before it can be counted.
    command = [f"{WORK}/load", "ld_user", "user", "41"]
    user = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    user.stdout.readline()
    group([Case("user-event rhist_load", written)], lambda known: user.communicate("\n"))


# --- interrupts: counts from /proc, inside of the run and around it

def softirqs():
    with open("/proc/softirqs", encoding="ascii") as file:
        next(file)
        return {name.strip(): sum(map(int, counts.split())) for name, counts in (line.split(":") for line in file)}


def interrupts():
    with open("/proc/interrupts", encoding="ascii") as file:
        cpus = len(next(file).split())
        lines = [line.split(":", 1) for line in file]
    return {int(name): sum(map(int, rest.split()[:cpus])) for name, rest in lines if name.strip().isdigit()}


def between(known, name, which):
    """
    Returns the counts while all ran, and from before the first began until after the last ended.
    """
    before, begin, end, after = (known[when][which].get(name, 0) for when in ("before", "begin", "end", "after"))
    return end - begin, after - before


def handled(case, total, known):
    for key, in total.rows:
        number = next(row["keys"][0] for row in total.all["rows"] if plain(row["keys"][0]) == key)
        number = number["value"] if isinstance(number, dict) else int(number)
        # User-mode Linux leaves its clock's interrupts out of /proc.
        if number == 0 and not HAVE_PROBES:
            continue
        least, most = between(known, number, "interrupts")
        case.within("each interrupt is counted once", least, total.of(key), most)
    case.add("there are some", total.hits > 0, "none")


def processed(case, total, known):
    for key, in total.rows:
        least, most = between(known, key, "softirqs")
        case.within("each softirq is counted once", least, total.of(key), most)
    case.add("there are some", total.hits > 0, "none")


def raised(case, total, known):
    for key, in total.rows:
        least, most = between(known, key, "softirqs")
        # Softirqs raised before the triggers existed.
        case.within("each softirq that was raised is counted once", least - 2 * os.cpu_count(), total.of(key), most)


def sampled(case, total, known):
    # Ticks come 100 to 1000 times a second, possibly late.
    cpu = known["ld_tick"]["cpu"]
    case.within("samples of a program that runs", cpu // (20 * MS), total.of("ld_tick"), cpu // MS + 2)


def idle(case, total, known):
    for keys, row in total.rows.items():
        case.within("no CPU was idle for longer than the run", 0, row["values"][0]["sum"], total.all["seconds"] * 1e9 + 2 * TICK)
    case.add("there are some", total.hits > 0, "none")


def irqs():
    def counts():
        return {"softirqs": softirqs(), "interrupts": interrupts()}

    def load(known):
        known["begin"] = counts()
        known.load("ld_tick", "spin", 10, 30000)
        # The guest asks its host for these files, which answers by interrupts.
        for number in range(8):
            os.path.exists(f"{TOP}/no file {os.getpid()} {number}")
        known["end"] = counts()

    def after(known):
        known["after"] = counts()

    cases = [
        Case("hardirqs", handled, same=False),
        Case("softirqs", processed, same=False),
        Case("softirqs --wait", raised, same=False),
    ]
    # User-mode Linux lacks this tick.
    if HAVE_PROBES:
        cases.append(Case("profile --by comm", sampled, same=False))
    if os.path.exists(f"{KERNEL}/events/power/cpu_idle"):
        cases.append(Case("cpuidle --by cpu", idle, same=False))
    group(cases, load, Known(before=counts()), after)


# --- block devices: one that needs 20 milliseconds for each request

READS, DELAY = 25, 20 * MS


def requests(case, total, known):
    row = total.rows[("nullb0", "read")]
    case.equal("each request is counted once", row["hits"], READS)
    case.within("times", READS * DELAY, row["values"][0]["sum"], known["ld_read"]["most"])


def flushed(case, total, known):
    requests(case, total, known)
    # A request for a flush is completed, too, without having been issued.
    case.equal("each flush is counted once", total.of("nullb0", "flush"), 5)
    case.within("times of flushes", 0, total.high("nullb0", "flush"), known["ld_bsync"]["most"])
    case.all_ends(total)


def of_one_disk(case, total, known):
    """By the address of the request, as without a filter; the other way has other keys."""
    case.equal("requests of this disk", total.table(), {("nullb1", "read"): READS})
    case.equal("they are matched in the exact way", (total.all["notes"], total.traced(" rq comm=")), ([], True))
    case.all_ends(total)


def sizes(case, total, known):
    row = total.rows[("ld_read",)]
    case.equal("each request is counted once", row["hits"], READS)
    case.equal("bytes", row["values"][0]["sum"], READS * 4096)
    low, high = row["values"][0]["buckets"][0][:2]
    case.within("its size is in the bucket", low, 4096, high)


def issued(case, total, known):
    case.equal("requests of this task", total.table(), {("ld_read", "nullb0"): READS})
    case.equal("bytes", total.sum(), READS * 4096)


def map_device(command, targets=()):
    """
    A command to the device mapper about the device "rhist", with rows of start, length, type and
    parameters.
    """
    table = b""
    for start, length, kind, parameters in targets:
        parameters = parameters.encode() + b"\0"
        parameters += bytes(-len(parameters) % 8)
        table += struct.pack("QQiI16s", start, length, 0, 40 + len(parameters), kind.encode()) + parameters
    head = struct.pack("3I2IIiIIIQ128s129s7x", 4, 0, 0, 312 + len(table), 312, len(targets), 0, 0, 0, 0, 0, b"rhist", b"")
    with open("/dev/mapper/control", "rb") as control:
        fcntl.ioctl(control, 3 << 30 | 312 << 16 | 0xFD << 8 | command, bytearray(head + table))


CREATE, REMOVE, RESUME, LOAD = 3, 4, 6, 9
# Sector in the middle of the second read, which is split there.
BORDER = 12


def bios(case, total, known):
    row = total.rows[("dm-0", "read")]
    case.equal("each bio is counted once, also one that is split", row["hits"], READS)
    # It waits by ticks.
    case.within("times", READS * (DELAY - 10 * MS), row["values"][0]["sum"], known["ld_bios"]["most"])
    case.equal("the disk below has its parts", total.of("ram0", "read"), READS + 1)
    # Below it, nothing waits.
    case.within("times of the disk below", 0, total.rows[("ram0", "read")]["values"][0]["sum"], row["values"][0]["sum"])
    case.equal("disks with requests have no bios here", total.of("nullb0"), 0)


def bios_of_one_disk(case, total, known):
    case.equal("bios given to this disk", total.table(), {("dm-0", "read"): READS})


def given(case, total, known):
    case.equal("bios of this task", total.table(), {("ld_bios", "dm-0"): READS})
    case.equal("bytes", total.sum(), READS * 4096)


def sizes_of_bios(case, total, known):
    row = total.rows[("ld_bios",)]
    case.equal("each bio is counted once", row["hits"], READS)
    low, high = row["values"][0]["buckets"][0][:2]
    case.within("its size is in the bucket", low, 4096, high)


def on_disk(case, total, known):
    case.equal("each call is counted once", total.of("ld_bsync"), 5)
    case.within("times", 5 * DELAY, total.sum(), known["ld_bsync"]["most"])


def block():
    # A bio-based disk with the same delay, on top of another one.
    subprocess.run("modprobe brd rd_nr=1 rd_size=4096".split(), check=True)
    subprocess.run("modprobe -a dm_mod dm_delay".split(), check=True)
    map_device(CREATE)
    map_device(LOAD, [(start, length, "delay", f"/dev/ram0 {start} {DELAY // MS}") for start, length in ((0, BORDER), (BORDER, 1024))])
    map_device(RESUME)
    # With a cache, so that flushes happen.
    options = f"nr_devices=2 gb=1 irqmode=2 completion_nsec={DELAY} queue_mode=2 memory_backed=1 cache_size=8"
    subprocess.run(["modprobe", "null_blk", *options.split()], check=True)
    try:
        subprocess.run(["udevadm", "settle"], check=False)

        def load(known):
            known.load("ld_read", "read", READS, "/dev/nullb0")
            known.load("ld_bsync", "sync", 5, "/dev/nullb0")
            known.load("ld_bios", "read", READS, "/dev/dm-0")
            known.load("ld_other", "read", READS, "/dev/nullb1")

        def number_of(disk):
            """The number of a device, as the kernel encodes it."""
            number = os.stat(f"/dev/{disk}").st_rdev
            return os.major(number) << 20 | os.minor(number)

        number = number_of("nullb1")
        group([
            Case("biolatency --by disk,op", flushed),
            Case("biolatency --queued --by disk,op", requests),
            *(Case(f"biolatency {queued}--where dev=={number} --by disk,op", of_one_disk) for queued in ("", "--queued ")),
            Case("biolatency --by comm,disk", lambda case, total, known: case.equal("by who issues them", total.of("ld_read", "nullb0"), READS)),
            Case("bitesize -c ld_read", sizes),
            Case("biotop -c ld_read --by comm,disk", issued),
            Case("fsync-latency -c ld_bsync", on_disk),
            Case("biolatency --bios --by disk,op", bios),
            Case(f"biolatency --bios --where dev=={number_of('dm-0')} --by disk,op", bios_of_one_disk),
            Case("biotop --bios -c ld_bios --by comm,disk", given),
            Case("bitesize --bios -c ld_bios", sizes_of_bios),
        ], load)
    finally:
        subprocess.run(["rmmod", "null_blk"], check=False)
        map_device(REMOVE)
        subprocess.run("rmmod brd".split(), check=False)


# --- the network: the loopback, on which each packet takes 20 milliseconds

CONNECTS, SENDS, DROPS = 5, 10, 12


def connected(case, total, known):
    case.equal("each connection is counted once", total.table(), {("127.0.0.1", str(known["ld_connect"]["port"])): CONNECTS})
    # There and back.
    case.within("times", CONNECTS * 40 * MS, total.sum(), known["ld_connect"]["most"])


def not_connected(case, total, known):
    case.equal("a connection of another program is none that has failed", total.hits, 0)


def connected_by(case, total, known):
    case.equal("by who connects", total.table(), {("ld_connect", str(known["ld_connect"]["pid"])): CONNECTS})


def connected6(case, total, known):
    # C has the contents of the kernel's field for IPv4.
    address = "::1" if case.backend == "rhist" else "0.0.0.0"
    case.equal("each connection is counted once", total.table(), {(address, str(known["ld_connect6"]["port"])): CONNECTS})


def lived_by_address(case, total, known):
    # Both ends of each connection are on this machine. The kernel's field for IPv4 is empty for the
    # connecting end.
    addresses = ("::1",) if case.backend == "rhist" else ("127.0.0.6", "0.0.0.0")
    case.equal("by IPv6", sum(map(total.of, addresses)), 2 * CONNECTS)
    case.within("by IPv4", 2 * CONNECTS, total.of("127.0.0.1"), 3 * CONNECTS)
    if case.backend == "rhist":
        saved = total.rows[("::1",)]["worst"]["saved"]
        case.equal("the address is saved", plain(saved["daddr_v6.ip"]), "::1")


def only_by_ipv6(case, total, known):
    case.equal("mapped addresses are in the network, too", {keys[0] for keys in total.rows}, {"::1", "127.0.0.1"})
    # With the one that ld_timewait6 makes.
    case.equal("both ends of each connection", total.of("::1"), 2 * (CONNECTS + 1))


def answered(case, total, known):
    case.within("segments by the address in a socket address", SENDS, total.of("127.0.0.1"), total.hits)


def of_udp(total, key):
    """Hits with this key that functions of UDP have made."""
    rows = total.rows.items()
    return sum(row["hits"] for keys, row in rows if keys[0] == key and keys[1].startswith("udp"))


def dropped_by_socket(case, total, known):
    packets = of_udp(total, "127.0.0.1")
    case.equal("packets that a filter of their socket drops, of UDP", packets, DROPS)
    case.within("and of TCP", 1, total.of("127.0.0.1") - packets, total.hits)


def dropped_late(case, total, known):
    for address in ("127.0.0.1", "::1"):
        case.within(f"what comes for {address} in TIME_WAIT", 1, total.of(address), 10)
    case.equal("and nothing else", total.of("127.0.0.1") + total.of("::1"), total.hits)


def lived(case, total, known):
    row = total.rows[(str(known["ld_connect"]["port"]),)]
    case.equal("each connection is counted once", row["hits"], CONNECTS)
    # The last packets may still be on the way when the program ends.
    case.within("times", CONNECTS * 30 * MS, row["values"][0]["sum"], known["ld_connect"]["most"] + CONNECTS * 200 * MS)
    # Neither the socket that listened, nor the refused ones.
    case.all_ends(total)


def sent_again(case, total, known):
    least, most = between(known, "RetransSegs", "tcp")
    case.within("each segment is counted once", max(1, least), total.hits, most)
    case.within("by port", 1, total.of("127.0.0.1", str(known["ld_lose"]["port"])), most)


def dropped(case, total, known):
    case.equal("each packet is counted once", of_udp(total, "SOCKET_FILTER"), DROPS)


def transferred(case, total, known):
    row = total.rows[("ld_send",)]
    case.equal("each call is counted once", row["hits"], 4 * SENDS)
    case.equal("bytes that were sent, and that were received", row["values"], [SENDS * 1001] * 2)


def round_trips(case, total, known):
    row = total.rows[(str(known["ld_send"]["port"]),)]
    case.within("each segment that is received is counted once", SENDS, row["hits"], 2 * SENDS + 4)
    buckets = row["values"][0]["buckets"]
    # The kernel smooths it, starting with the time of the handshake.
    case.within("times in microseconds", 40000, buckets[-1][1], known["ld_send"]["most"] // 1000)


def tcp_counters():
    with open("/proc/net/snmp", encoding="ascii") as file:
        names, counts = (line.split()[1:] for line in file if line.startswith("Tcp:"))
    return {"tcp": dict(zip(names, map(int, counts)))}


def network():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run("tc qdisc add dev lo root netem delay 20ms".split(), check=True)
    try:
        def load(known):
            known["begin"] = tcp_counters()
            known.load("ld_refuse", "refuse", 4 * CONNECTS)
            known.load("ld_connect", "connect", CONNECTS)
            known.load("ld_connect6", "connect6", CONNECTS)
            known.load("ld_send", "send", SENDS, 1000)
            known.load("ld_drop", "drop", DROPS)
            known.load("ld_lose", "lose", 1)
            # Let packets on the way arrive, and connections close.
            time.sleep(0.3)
            known["end"] = tcp_counters()

        def after(known):
            known["after"] = tcp_counters()

        group([
            Case("tcpconnlat -c ld_connect", connected),
            Case("tcpconnlat -c ld_connect --by comm,pid", connected_by),
            Case("tcpconnlat -c ld_refuse", not_connected),
            Case("tcpconnlat -c ld_connect6", connected6, same=False),
            Case("tcplife --by lport", lived),
            Case("tcplife --by address", lived_by_address, same=False),
            # TCP's timers continue while one run ends after the other.
            Case("tcpretrans --by address,port", sent_again, same=False),
            Case("tcpdrop", dropped, same=False),
            Case("tcptop -c ld_send --by comm", transferred),
            Case("tcprtt --by port", round_trips),
        ], load, Known(before=tcp_counters()), after)

        def by_address(known):
            known.load("ld_connect", "connect", CONNECTS)
            known.load("ld_connect6", "connect6", CONNECTS)
            known.load("ld_send", "send", SENDS, 1000)
            known.load("ld_lose", "lose", 1)
            known.load("ld_drop", "drop", DROPS)
            known.load("ld_timewait", "timewait", 1)
            known.load("ld_timewait6", "timewait6", 1)
            time.sleep(0.3)

        # C's histograms cannot have these keys.
        group([
            Case("tcplife --by address --where daddr_v6.ip==::/8&&sport!=0", only_by_ipv6),
            Case("tcprtt --by address", answered),
            Case("tcpdrop --sockets --by address,function", dropped_by_socket),
            Case("tcpdrop --sockets --by address --where state==6", dropped_late),
        ], by_address, backends=("rhist",))
    finally:
        subprocess.run("tc qdisc del dev lo root".split(), check=False)


# --- memory, locks, and functions of the kernel

GROUPS = f"{WORK}/groups"
GROUP = f"{GROUPS}/rhist_recipes"


def moved(case, total, known):
    case.equal("each move is counted once", total.table(), {("ld_move",): 20})


def faulted(case, total, known):
    toucher = known["ld_touch"]
    case.within("each fault is counted once", 200, total.hits, toucher["outer_faults"] + 4)


def killed(case, total, known):
    case.equal("each victim is counted once", total.of("ld_fill"), 1)


def reclaimed(case, total, known):
    # Before it has this name, the task may reclaim some memory, too.
    case.within("each reclaim is counted once", known["reclaims"] - 4, total.of("ld_dd"), known["reclaims"])
    case.within("times", 1, total.sum(), known["dd"])


def locked(case, total, known):
    case.equal("each wait is counted once", total.of("ld_lock"), 2)
    case.within("times", 2 * 50 * MS, total.sum(), known["ld_lock"]["most"])


def locked_again(case, total, known):
    case.equal("each wait is counted once", total.of("ld_mutex"), 2)
    case.within("times: also before somebody else has taken it", 2 * 2 * 50 * MS, total.sum(), known["ld_mutex"]["most"])


def called(case, total, known):
    case.equal("each call is counted once", total.of("ld_nap"), 10)
    case.within("times", 10 * 20 * MS, total.sum(), known["ld_nap"]["most"])


def nested(case, total, known):
    """Functions that call each other: each of them sleeps."""
    case.add("there are several", len(total.rows) > 1, total.table())
    for (function,), row in total.rows.items():
        case.equal("each call is counted once", (function, row["hits"]), (function, 10))
        case.within("times", 10 * 20 * MS, row["values"][0]["sum"], known["ld_nap"]["most"])
    case.all_ends(total)


def recursive(case, total, known):
    # Three calls, one of which was made by another one.
    case.equal("the innermost call is counted", total.hits, 2)
    case.all_ends(total, 1)


THREADS = 100


def returned(case, total, known):
    """Calls that are active at once; by default a kretprobe has room for ten."""
    case.equal("each return is counted", total.hits, THREADS)
    case.equal("none is missed", total.losses["missed_hits"] or 0, 0)


def nest_epolls():
    first, second, third = (select.epoll() for _ in range(3))
    second.register(third)
    first.register(second)
    for poll in (first, second, third):
        poll.close()


def functions(case, total, known):
    case.equal("each call is counted once", total.table(), {("vfs_open",): 3, ("vfs_read",): 6, ("vfs_write",): 9})


def within_limit(*command):
    """Runs a command in a control group limited to 8 MiB. Returns its status."""
    return subprocess.run(["sh", "-c", f'echo $$ >{GROUP}/cgroup.procs && exec "$@"', "sh", *command], check=False,
                          stderr=subprocess.DEVNULL).returncode


def limit_reached():
    with open(f"{GROUP}/memory.events", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("max "))


def kernel():
    shutil.copy("/bin/dd", f"{WORK}/ld_dd")
    for name in ("file", "disk"):
        open(f"{WORK}/{name}", "wb").close()
    os.truncate(f"{WORK}/disk", 24 << 20)
    os.mkfifo(f"{WORK}/fifo")
    subprocess.run(["modprobe", "loop"], check=False)
    disk = subprocess.run(["losetup", "-f", "--show", f"{WORK}/disk"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    os.mkdir(GROUPS)
    subprocess.run(["mount", "-t", "cgroup2", "none", GROUPS], check=True)
    with open(f"{GROUPS}/cgroup.subtree_control", "w", encoding="ascii") as file:
        file.write("+memory")
    os.mkdir(GROUP)
    try:
        for name, text in (("memory.max", "8M"), ("memory.swap.max", "0")):
            if os.path.exists(f"{GROUP}/{name}"):
                with open(f"{GROUP}/{name}", "w", encoding="ascii") as file:
                    file.write(text)

        def load(known):
            known.load("ld_move", "move", 20)
            known.load("ld_touch", "touch", 200)
            known.load("ld_lock", "lock", 2, f"{WORK}/file")
            known.load("ld_mutex", "lock", 2, f"{WORK}/fifo")
            known.load("ld_nap", "sleep", 10, 20000)
            known.load("ld_vfs", "vfs", 3, f"{WORK}/file")
            known.load("ld_many", "many", THREADS, 500_000)
            nest_epolls()
            reached, began = limit_reached(), time.monotonic_ns()
            within_limit(f"{WORK}/ld_dd", f"if={disk}", "of=/dev/null", "bs=64k")
            known["dd"] = time.monotonic_ns() - began
            known["reclaims"] = limit_reached() - reached
            if within_limit(f"{WORK}/load", "ld_fill", "fill") != -signal.SIGKILL:
                raise RuntimeError("nobody has killed ld_fill")

        group([
            Case("migrations -c ld_move", moved),
            Case("pagefaults -c ld_touch", faulted),
            Case("lockwait -c ld_lock --by comm --slower 40ms", locked),
            Case("lockwait -c ld_mutex --by comm --slower 40ms", locked_again),
            Case("funclatency hrtimer_nanosleep -c ld_nap --by comm", called),
            Case("funclatency *nanosleep -c ld_nap --by function", nested),
            Case(f"funclatency ep_loop_check_proc -p {os.getpid()}", recursive),
            Case("vfsstat -c ld_vfs", functions),
            Case("count kretprobe:hrtimer_nanosleep -c ld_many", returned),
            Case("between kprobe:hrtimer_nanosleep kretprobe:hrtimer_nanosleep -c ld_many", returned),
            Case("reclaim --by comm -c ld_dd", reclaimed),
            Case("oomkills", killed),
        ], load)
    finally:
        subprocess.run(["losetup", "-d", disk], check=False)
        os.rmdir(GROUP)
        subprocess.run(["umount", GROUPS], check=True)


def main():
    os.mkdir(WORK)
    os.environ["RHIST_RUN"] = f"{WORK}/run"
    try:
        # In memory, since it is started many times.
        shutil.copy(f"{OUT}/load", f"{WORK}/load")
        if REST_ONLY:
            with_less_room()
        else:
            programs()
            user_events()
            irqs()
        sched()
        if HAVE_PROBES:
            block()
            network()
            kernel()
    finally:
        shutil.rmtree(WORK)
    finish()


if __name__ == "__main__":
    main()
