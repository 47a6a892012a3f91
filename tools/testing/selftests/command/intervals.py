# SPDX-License-Identifier: GPL-2.0
"""
Intervals of rhist are exact, and add up to the total: of each key and column, beside other
readers of the same histograms, and when another program clears or removes a trigger. If they do
not, it says so.
"""

import collections
import json
import os
import shutil
import signal
import subprocess
import threading
import time

from instance import counts_hits, folder_of, until
from tap import finish, ok

RHIST = os.environ["RHIST_COMMAND"]
KERNEL, TRACING = os.environ["KERNEL"], os.environ["TRACING"]
WORK = f"{os.environ.get('TMPDIR', '/tmp')}/intervals.{os.getpid()}"
EVENT = "rhist_events/run"
QUESTION = ["count", "rhist_events:run", "--by", "next_key", "--dist", "total", "--sum", "part"]


def same(got, expected, name):
    ok(got == expected, name, f"expected: {expected}", f"got:      {got}")


def fire(first, count, keys):
    """Fires an event with each of `keys` totals from first², in turn."""
    with open("/dev/rhist_events", "w", encoding="ascii") as file:
        file.write(f"run task 0 {first} {count} {keys}")


class Measurement:
    """A process of rhist that prints lines of JSON, until stop()."""

    def __init__(self, *command, root=TRACING):
        self.root = root
        self.out = open(f"{WORK}/out.{time.monotonic_ns()}", "w+", encoding="utf-8")
        self.err = open(f"{WORK}/err.{time.monotonic_ns()}", "w+", encoding="utf-8")
        self.process = subprocess.Popen([RHIST, *command], stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err)
        until(lambda: self.process.poll() is not None or self.is_active())

    def folder(self):
        return folder_of(self.process, self.root)

    def is_active(self):
        return counts_hits(self.folder(), EVENT)

    def trigger(self, change):
        """Changes the trigger, as another program would do."""
        path = f"{self.folder()}/events/{EVENT}/trigger"
        with open(path, encoding="utf-8") as file:
            command = file.read().split(" [")[0]
        # Without O_CREAT.
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.write(file, change(command).encode())
        os.close(file)

    def lines(self):
        self.out.flush()
        with open(self.out.name, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def said(self):
        with open(self.err.name, encoding="utf-8") as file:
            return file.read()

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.process.wait()


def add(lines):
    """The sum of lines of JSON: events; and by key: hits, sum of parts, sum of totals, buckets, and
    the largest total."""
    events = 0
    keys = collections.defaultdict(lambda: [0, 0, 0, collections.Counter(), 0])
    for line in lines:
        events += line["cost"]["events"]
        for row in line["rows"]:
            found = keys[row["keys"][0]]
            part, dist = sorted(row["values"], key=lambda value: isinstance(value, dict))
            found[0] += row["hits"]
            found[1] += part
            found[2] += dist["sum"]
            found[3] += collections.Counter(count=dist["count"], zero=dist["zero"])
            found[3] += collections.Counter({(low, high): number for low, high, number in dist["buckets"]})
            found[4] = max(found[4], dist["max"] or 0)
    return events, dict(keys)


def extremes_are_known(lines, name):
    """
    Differences of totals have a maximum only if it is a new one of the whole run, and load() fires
    ever smaller numbers.
    """
    found = [value["max"] for line in lines for row in line["rows"] for value in row["values"] if isinstance(value, dict)]
    ok(found and None not in found, f"{name}: each maximum is known", found)


def follow(lines, name):
    times = [(line["from"]["realtime_ns"], line["to"]["realtime_ns"]) for line in lines]
    ok(all(one[1] == two[0] for one, two in zip(times, times[1:])), f"{name}: each begins with the end of the one before", times)


def counted(path):
    """Hits, sum of parts, and sum and maximum of totals by key, in the kernel's hist_jsonl."""
    keys = {}
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    for line in lines:
        if line["type"] == "entry":
            part, dist = sorted(line["values"][1:], key=lambda value: isinstance(value, dict))
            keys[line["keys"][0]] = [line["values"][0], part, dist["sum"], dist["max"]]
    return keys


class Reader(threading.Thread):
    """Another program that reads the intervals of a run, and adds up their hits."""

    def __init__(self, path, pause):
        super().__init__(daemon=True)
        self.file = os.open(path, os.O_RDONLY)
        self.pause, self.hits, self.rounds, self.is_over = pause, 0, 0, False
        self.start()

    def round(self):
        text = b""
        while piece := os.read(self.file, 1 << 16):
            text += piece
        for line in text.splitlines():
            self.hits += json.loads(line).get("hits", 0)
        self.rounds += 1

    def run(self):
        while not self.is_over:
            self.round()
            time.sleep(self.pause)


def load(rounds):
    """
    Fires ever smaller numbers from one CPU, for some intervals. Returns the number of events.
    """
    fired = 0
    for number in range(rounds):
        fire(rounds - number, 3000 + number, 45 - number % 5)
        fired += 3000 + number
        time.sleep(0.02)
    return fired


os.makedirs(f"{WORK}/run")
os.environ |= {"RHIST_RUN": f"{WORK}/run", "HOME": WORK}
os.sched_setaffinity(0, {0})
subprocess.run(["insmod", os.environ["RHIST_EVENTS"]], check=True)
JSON = ["--format", "json", "-q"]

# --- two of them, and others that read the same histogram

one = Measurement(*QUESTION, "-i", "0.1", *JSON)
two = Measurement(*QUESTION, "-i", "0.03", *JSON)
readers = [Reader(f"{one.folder()}/events/{EVENT}/hist_delta_jsonl", pause) for pause in (0, 0.05, 3600)]
fired = load(60)
for reader in readers:
    reader.is_over = True
for reader in readers[:2]:
    reader.join()
for reader in readers:
    reader.round()
    os.close(reader.file)
same([one.stop(), two.stop()], [0, 0], "two runs at once end well")
for name, run in (("the one", one), ("the other", two)):
    *intervals, total = run.lines()
    same(run.said(), "", f"{name}: nothing is to be said")
    ok(len(intervals) >= 10 and all(line["type"] == "interval" for line in intervals), f"{name}: {len(intervals)} intervals")
    same(add(intervals), add([total]), f"{name}: their sum is the total, of each key and column")
    same(add([total])[0], fired, f"{name}: which is what was fired")
    extremes_are_known(intervals, name)
    follow(intervals, name)
same([reader.hits for reader in readers], [fired] * 3, f"and other readers have all hits, in {[reader.rounds for reader in readers]} rounds")

# --- top

top = Measurement("top", *QUESTION, "-i", "0.05", *JSON)
fired = load(30)
totals = counted(f"{top.folder()}/events/{EVENT}/hist_jsonl")
same((top.stop(), top.said()), (0, ""), "top ends well")
lines = top.lines()
ok(len(lines) >= 10 and all(line["type"] == "interval" for line in lines), f"top: {len(lines)} intervals")
events, keys = add(lines)
same(events, fired, "top: all hits are in one")
same({key: [hits, part, total, most] for key, (hits, part, total, _, most) in keys.items()}, totals,
     "top: their sum is the kernel's total, of each key and column")
extremes_are_known(lines, "top")
follow(lines, "top")

# --- a recording

record = Measurement("record", f"{WORK}/a.jsonl", *QUESTION, "-i", "0.05", "-q")
fired = load(20)
same((record.stop(), record.said()), (0, ""), "a recording ends well")
with open(f"{WORK}/a.jsonl", encoding="utf-8") as file:
    lines = file.readlines()
exact = '{"key":"rhist.intervals","value":{"stringValue":"exact"}}'
ok(lines and all(exact in line for line in lines), f"each of {len(lines)} lines tells that it is exact")
report = subprocess.run([RHIST, "report", "-i", f"{WORK}/a.jsonl", *JSON], capture_output=True, text=True, check=True)
*intervals, total = [json.loads(line) for line in report.stdout.splitlines()]
same(add(intervals), add([total]), "its intervals are the total")
same(add([total])[0], fired, "which is what was fired")

# --- another program clears the trigger, and removes it

run = Measurement(*QUESTION, "-i", "0.05", *JSON)
fired = load(5)
run.trigger(lambda command: command.replace(" if ", ":clear if "))
fired += load(5)
until(lambda: "cleared a trigger of this run" in run.said())
same(run.stop(), 0, "a run whose trigger is cleared goes on")
*intervals, total = run.lines()
same((add([total])[0], add(intervals)), (fired, add([total])), "and no hit is missing")
same(len(run.said().splitlines()), 1, "which is told once")

run = Measurement(*QUESTION, "-i", "0.05", *JSON)
fired = load(5)
run.trigger(lambda command: f"!{command}")
same(run.process.wait(), 1, "one whose trigger is removed ends")
same(add(run.lines())[0], fired, "with all hits until then")
ok("another program removed a trigger" in run.said() and "a trigger of this run was removed" in run.said(), "which is told", run.said())

# --- a histogram with a hit that no interval has, which only a bug of the kernel makes

for command in (["top", *QUESTION], QUESTION):
    run = Measurement(*command, "-i", "0.05", *JSON)
    fired = load(5)
    path = f"{run.folder()}/events/{EVENT}/hist_jsonl"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(f"{WORK}/hist_jsonl", "w", encoding="utf-8") as file:
        file.write(text.replace(f'"hits":{fired}', f'"hits":{fired + 1}'))
    # The run's own file, for all who open it.
    subprocess.run(["mount", "--bind", f"{WORK}/hist_jsonl", path], check=True)
    run.stop()
    same(run.said(), f"rhist: warning: the sum of the intervals is not the total: {EVENT}: hits: "
         f"the intervals add up to {fired}, the histogram has {fired + 1}\n", f"{command[0]}: it is told")

# --- where the kernel cuts no intervals

if os.path.exists(f"{KERNEL}/events/{EVENT}/hist"):
    question = ["count", "rhist_events:run", "--by", "next_key", "--backend", "c"]
    run = Measurement(*question, "-i", "0.05", *JSON, root=KERNEL)
    fired = load(5)
    until(lambda: sum(line["cost"]["events"] for line in run.lines()) == fired)
    run.trigger(lambda command: command.replace(" if ", ":clear if "))
    fire(0, 7, 7)
    until(lambda: "another program cleared a trigger of this run" in run.said())
    fire(0, 50, 7)
    until(lambda: sum(line["cost"]["events"] for line in run.lines()) >= fired + 50)
    same(run.stop(), 0, "C: a run whose trigger is cleared goes on")
    *intervals, total = run.lines()
    # An interval may have begun between the clear and the hits after it.
    events = sum(line["cost"]["events"] for line in intervals)
    ok(events in (fired + 50, fired + 57), "without the hits of one interval", events)
    ok(all(row["hits"] > 0 for line in intervals for row in line["rows"]), "and no number is below zero")
subprocess.run(["rmmod", "rhist_events"], check=True)
shutil.rmtree(WORK)
finish()
