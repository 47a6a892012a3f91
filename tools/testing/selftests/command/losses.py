# SPDX-License-Identifier: GPL-2.0
"""
Losses: whether the counts that a tool prints add up to the events that happened.

Each tool counts system calls by number, one tool after the other, while two processes make a
known number of calls at full rate. They call numbers that do not exist, each for some
milliseconds: so the calls of one number fall into few intervals, and calls that a tool loses do
not make up for calls that it counts twice. Intervals of rhist have to add up exactly; what other
tools lose is only printed, for the table in Documentation/performance.rst.
"""

import collections
import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from peers import ROOT, Load, Peer
from recipes import KERNEL, OUT, RHIST, WORK
from tap import finish, ok, skip

TRACING = os.environ.get("TRACING", f"{KERNEL}/rhist")
LTTNG = os.environ.get("RHIST_LTTNG", "")
EVENT = "events/raw_syscalls/sys_exit"
CPUS = (0, 1)
# The first number of a system call, and the calls of each number on a processor.
FIRST, CALLS = 1000, 5000
# Seconds between two readings.
PAUSE = 0.02


class Tool:
    """
    A tool that runs.

    kind            the kind of its load
    numbers         the size of that load, in numbers: larger for a tool with longer intervals
    step()          waits; takes an interval if the tool does not do that by itself
    end()           ends the tool, and yields {key: count} of each interval
    remove()        ends processes and removes triggers that are left, also after a failure
    """

    kind, numbers = "enosys", 1000

    def step(self):
        time.sleep(0.1)


class Program(Tool):
    """A program that prints intervals by itself."""

    def __init__(self, name, words, parse, program=None, numbers=Tool.numbers):
        self.name, self.parse, self.numbers = name, parse, numbers
        self.peer = Peer(words, program)
        self.peer.wait()

    def end(self):
        self.peer.stop()
        return self.parse(self.peer.said())

    def remove(self):
        if self.peer.process.poll() is None:
            self.peer.process.kill()
            self.peer.process.wait()


def of_bpftrace(text):
    """Parses JSON of bpftrace: a map for each interval."""
    for line in text.splitlines():
        if line.startswith('{"type": "map"'):
            yield {int(key): count for key, count in json.loads(line)["data"]["@"].items()}
        elif "lost" in line:
            print(f"# bpftrace: {line}")


def of_syscount(text):
    """Parses syscount: intervals end with an empty line."""
    for part in text.split("\n\n"):
        # It does not know the newest system calls, either.
        yield {int(number): int(count) for number, count in re.findall(r"^\[unknown: (\d{4,})\] +(\d+)$", part, re.M)}


class Command(Tool):
    """`rhist count -i`."""

    def __init__(self, name):
        self.name = name
        self.out = tempfile.TemporaryFile("w+", dir=WORK)
        words = ["count", "raw_syscalls:sys_exit", "--by", "id", "--where", f"id >= {FIRST}", "--size", "8192"]
        self.process = subprocess.Popen([RHIST, *words, "-i", "0.05", "--format", "json"], stdin=subprocess.DEVNULL, stdout=self.out)
        while not os.fstat(self.out.fileno()).st_size:
            if self.process.poll() is not None:
                raise RuntimeError(f"rhist count: {self.process.returncode}")
            time.sleep(0.1)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(180)
        self.out.seek(0)
        for line in map(json.loads, self.out):
            if line["type"] == "interval":
                yield {row["keys"][0]: row["hits"] for row in line["rows"]}

    def remove(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Trigger(Tool):
    """A hist trigger whose histogram is read here, and parsed at the end."""

    def __init__(self, name, directory):
        self.name, self.read = name, []
        self.directory = f"{directory}/{EVENT}"
        self.text = f"hist:keys=id:size=8192 if id >= {FIRST}"

    def write(self, text):
        with open(f"{self.directory}/trigger", "a", encoding="ascii") as file:
            file.write(text)

    def remove(self):
        self.write(f"!{self.text}")


class Cleared(Trigger):
    """Reads `hist`, then clears it."""

    def __init__(self, name, directory):
        super().__init__(name, directory)
        self.write(self.text)

    def step(self):
        time.sleep(PAUSE)
        with open(f"{self.directory}/hist", "rb") as file:
            self.read.append(file.read())
        self.write(self.text.replace(" if ", ":clear if "))

    def end(self):
        for text in self.read:
            yield {int(number): int(count) for number, count in re.findall(rb"^\{ id: +(\d+) \} hitcount: +(\d+)", text, re.M)}


class Delta(Trigger):
    """Reads `hist_delta_jsonl`, which is open before the trigger is added."""

    def __init__(self, name, directory):
        super().__init__(name, directory)
        self.file = open(f"{self.directory}/hist_delta_jsonl", "rb", buffering=0)
        self.write(self.text)

    def step(self):
        time.sleep(PAUSE)
        chunks = []
        while chunk := self.file.read(1 << 16):
            chunks.append(chunk)
        self.read.append(b"".join(chunks))

    def end(self):
        lost = collections.Counter()
        for text in self.read:
            lines = [json.loads(line) for line in text.splitlines()]
            for line in lines:
                for loss in ("dropped", "missed"):
                    lost[loss] += line.get(loss) or 0
                lost["histograms"] += line.get("interval", {}).get("lost_histograms", 0)
            yield {line["keys"][0]: line["values"][0] for line in lines if line["type"] == "entry"}
        ok(not +lost, f"{self.name}: nothing is lost", lost)

    def remove(self):
        self.file.close()
        super().remove()


class Lttng(Tool):
    """
    A map of counters of LTTng, which its command prints and clears. It counts by names of system
    calls, so its load calls getpgid(2), as many times.
    """

    kind, numbers = "getpgid", 2000

    def __init__(self, name):
        self.name, self.read = name, []
        home = f"{WORK}/lttng"
        os.mkdir(home)
        self.environment = {
            **os.environ, "HOME": home, "LTTNG_HOME": home, "LD_LIBRARY_PATH": f"{LTTNG}/root/usr/lib/x86_64-linux-gnu",
            "LTTNG_SESSION_CONFIG_XSD_PATH": f"{LTTNG}/root/usr/share/xml/lttng",
            "LTTNG_CONSUMERD64_BIN": f"{LTTNG}/root/usr/lib/x86_64-linux-gnu/lttng/libexec/lttng-consumerd"}
        # The daemon looks for its modules in the folder of the kernel's own.
        script = """
            modules=/lib/modules/$(uname -r)
            mount -t tmpfs none "$modules" && cp "$RHIST_LTTNG"/modules/*.ko "$modules" || exit
            touch "$modules/modules.order" "$modules/modules.builtin" "$modules/modules.builtin.modinfo"
            depmod && exec "$RHIST_LTTNG/root/usr/bin/lttng-sessiond" --kmod-probes=none"""
        self.log = open(f"{WORK}/lttng.log", "wb")
        self.daemon = subprocess.Popen(["unshare", "-m", "sh", "-c", script], env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=self.log, stderr=self.log)
        end = time.monotonic() + 120
        while self.lttng("create", "s", "--no-output", check=False).returncode:
            if self.daemon.poll() is not None or time.monotonic() > end:
                with open(self.log.name, encoding="utf-8") as log:
                    raise RuntimeError(f"lttng-sessiond: {self.daemon.returncode} {log.read()}")
            time.sleep(1)
        self.lttng("add-map-channel", "--type=kernel", "m")
        self.lttng("add-trigger", "--condition=event-rule-matches", "--type=kernel:syscall:exit", "--name=getpgid",
                   "--action=incr-map-value", "--type=kernel", "--session=s", "--channel=m", "--key={event_name}")
        self.lttng("start")

    def lttng(self, *words, check=True):
        return subprocess.run([f"{LTTNG}/root/usr/bin/lttng", "--no-sessiond", *words], env=self.environment, check=check,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log)

    def step(self):
        time.sleep(PAUSE)
        self.read.append(self.lttng("show-maps").stdout)
        self.lttng("clear")

    def end(self):
        for text in self.read:
            yield {0: int(count.replace(b",", b"")) for count in re.findall(rb"syscall_exit_getpgid +\| +([\d,]+)", text)}

    def remove(self):
        self.daemon.terminate()
        self.daemon.wait(180)
        self.log.close()


def known(tool):
    """Calls of the load by key."""
    if tool.kind == "getpgid":
        return {0: len(CPUS) * tool.numbers * CALLS}
    return dict.fromkeys(range(FIRST, FIRST + tool.numbers), len(CPUS) * CALLS)


def loads(tool):
    """A load for each processor, which waits for its start."""
    times = (tool.numbers * CALLS,) if tool.kind == "getpgid" else (tool.numbers, CALLS)
    return [Load(f"ld_{cpu}", tool.kind, *times, cpu=cpu) for cpu in CPUS]


def measure(tool, exact=False):
    """Runs the load beside a tool, and prints what that lost and counted twice."""
    with contextlib.ExitStack() as stack:
        stack.callback(tool.remove)
        workers = stack.enter_context(concurrent.futures.ThreadPoolExecutor())
        tool.step()
        began = time.monotonic()
        running = [workers.submit(load.run) for load in loads(tool)]
        while not all(load.done() for load in running):
            tool.step()
        took = time.monotonic() - began
        for load in running:
            load.result()
        tool.step()
        intervals = [interval for interval in tool.end() if interval]
    counted, real = sum(map(collections.Counter, intervals), collections.Counter()), collections.Counter(known(tool))
    lost, twice, calls = (real - counted).total(), (counted - real).total(), real.total()
    n = len(intervals)
    print(f"# {tool.name}: {calls:,} calls in {took:.0f} s, {n:,} intervals, lost {lost:,} ({lost / calls:.2%}), twice {twice:,}; "
          f"per 1,000 intervals {1000 * lost / max(n, 1):,.0f} and {1000 * twice / max(n, 1):,.0f}", flush=True)
    ok(n and counted.total() > calls / 10, f"{tool.name}: it has counted", n, counted.most_common(5), calls)
    if exact:
        wrong = [f"{key}: {counted[key]} of {real[key]}" for key in sorted(real | counted) if counted[key] != real[key]]
        ok(not wrong, f"{tool.name}: intervals add up to what happened", f"lost {lost}, twice {twice}", *wrong[:9])


BPFTRACE = ("tracepoint:raw_syscalls:sys_exit /args.id >= %d/ { @[args.id] = count(); } "
            "interval:ms:20 { print(@); clear(@); }" % FIRST)


def main():
    os.mkdir(WORK)
    try:
        shutil.copy(f"{OUT}/load", f"{WORK}/load")
        measure(Delta("rhist, hist_delta_jsonl", TRACING), exact=True)
        measure(Command("rhist count -i"), exact=True)
        measure(Cleared("C, hist and clear", KERNEL))
        if os.path.exists(f"{ROOT}/usr/sbin/syscount-libbpf"):
            measure(Program("bpftrace, print() and clear()", ["bpftrace", "-f", "json", "-e", BPFTRACE], of_bpftrace,
                            f"{ROOT}/usr/bin/bpftrace"))
            measure(Program("bcc, syscount -i 1", ["syscount", "-i", "1", "-T", "10000"], of_syscount, numbers=4000))
            measure(Program("bcc, syscount without -i", ["syscount", "-T", "10000"], of_syscount))
        else:
            skip("bpftrace and bcc", "the lab has them not: scripts/lab peers")
        if LTTNG:
            measure(Lttng("LTTng, show-maps and clear"))
    finally:
        shutil.rmtree(WORK)
    finish()


if __name__ == "__main__":
    main()
