# SPDX-License-Identifier: GPL-2.0
"""
Pushed histograms equal the kernel's: all buckets, by all keys, also when the receiver is away for
a while and rhist is killed meanwhile, and nothing twice.

If the kernel has no network, as user-mode Linux, all stays in the queue, and the test reads it
there.
"""

import collections
import glob
import json
import os
import shutil
import signal
import subprocess
import time

from instance import counts_hits, folder_of, until
from receiver import Receiver, free_port, metrics
from tap import finish, ok

RHIST = os.environ["RHIST_COMMAND"]
KERNEL, TRACING = os.environ["KERNEL"], os.environ["TRACING"]
WORK = f"{os.environ.get('TMPDIR', '/tmp')}/push.{os.getpid()}"
EVENT = "rhist_events/numbers"
QUESTION = ["count", EVENT.replace("/", ":"), "--by", "u8", "--dist", "u64,s32"]


class Push:
    """A process `rhist push`, until stop()."""

    def __init__(self, *options, question=QUESTION, event=EVENT):
        self.event = event
        self.err = open(f"{WORK}/err", "w+", encoding="utf-8")
        command = [RHIST, "push", "--to", URL, "--queue", f"{WORK}/state", *options, *question, "-i", "0.3"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=self.err)
        until(lambda: self.process.poll() is not None or self.is_active())
        if self.process.poll() is not None:
            raise RuntimeError(self.said())

    def folder(self):
        return folder_of(self.process, TRACING)

    def is_active(self):
        return counts_hits(self.folder(), self.event)

    def counted(self):
        """Returns the kernel's counts."""
        return histogram(f"{self.folder()}/events/{EVENT}/hist_jsonl")

    def said(self):
        self.err.seek(0)
        return self.err.read()

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.process.wait()


def fire(count, first=0):
    for order in (f"numbers task 0 {first} {count} {count}", f"numbers task 0 {first} {count // 3} 7"):
        with open("/dev/rhist_events", "w", encoding="ascii") as file:
            file.write(order)


def histogram(path):
    """
    Reads hist_jsonl. Returns by value and key: counts by bucket, sum, scale and zeros; and the
    hits of keys.
    """
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    names = [value["name"] for value in lines[0]["values"]]
    found = collections.Counter()
    for entry in lines[1:-1]:
        key = entry["keys"][0]
        found["hits", key] += entry["values"][0]
        for name, value in zip(names[1:], entry["values"][1:]):
            found[name, key, "count"] += value["count"]
            found[name, key, "zero"] += value["zero_count"]
            found[name, key, "scale"] = value["scale"]
            for sign in ("positive", "negative"):
                for index, count in value[sign].items():
                    found[name, key, sign, int(index)] += count
    return +found


def key_of(point):
    (attribute,) = point["attributes"]
    assert attribute["key"] == "u8", attribute
    return attribute["value"]["intValue"]


def pushed(bodies, is_total=False):
    """Like histogram(), from the sum of deltas, or from the last totals."""
    found = collections.Counter()

    def add(name, number):
        if is_total:
            found[name] = number
        else:
            found[name] += number

    for metric in metrics(bodies):
        name = metric["name"].removeprefix("count.")
        if name == "hits":
            for point in metric["sum"]["dataPoints"]:
                add(("hits", key_of(point)), point["asInt"])
        for point in metric.get("exponentialHistogram", {}).get("dataPoints", []):
            key = key_of(point)
            add((name, key, "count"), point["count"])
            add((name, key, "zero"), point.get("zeroCount", 0))
            found[name, key, "scale"] = point.get("scale", 0)
            for sign in ("positive", "negative"):
                buckets = point.get(sign, {})
                for i, count in enumerate(buckets.get("bucketCounts", [])):
                    add((name, key, sign, buckets.get("offset", 0) + i), count)
    return +found


def same(name, found, expected):
    different = [key for key in found.keys() | expected.keys() if found[key] != expected[key]]
    ok(expected and not different, name, f"{len(expected)} numbers", *[(key, found[key], expected[key]) for key in different[:5]])


def files():
    """Of the queue."""
    return sorted(glob.glob(f"{WORK}/state/push/*/*/*"))


def queued():
    """
    Returns the bodies in the queue, of which nothing is sent now. A file is a line, and a body.
    """
    bodies = []
    for path in files():
        with open(path, "rb") as file:
            line, body = file.readline().split(), file.read()
        # Skip a file that is still being written.
        if len(line) == 5 and len(body) == int(line[3]):
            bodies.append((f"application/{line[2].decode()}", body))
    return bodies


def plus(a, b):
    """Adds two results; scales are taken over."""
    total = a + b
    for name in total:
        if name[-1] == "scale":
            total[name] = a[name] or b[name]
    return total


def killed():
    """Kills rhist while nobody receives. Returns the kernel's counts until then."""
    push = Push()
    fire(60)
    time.sleep(1)
    fire(40, 30)
    counted = push.counted()
    until(lambda: sum_hits(pushed(queued())) == sum_hits(counted))
    # A batch is in the queue before it is sent.
    until(lambda: "does not accept batches, which are kept" in push.said())
    push.stop(signal.SIGKILL)
    same("the queue has all of it while nobody receives, and that is said", pushed(queued()), counted)
    return counted


def sum_hits(counts):
    return sum(count for name, count in counts.items() if name[0] == "hits")


def without_network():
    first = killed()
    push = Push()
    fire(60, 7)
    second = push.counted()
    ok(push.stop() == 1, "it ends with 1 if not all was accepted")
    same("the next one adds to the queue", pushed(queued()), plus(first, second))
    extremes(queued)
    outliers(queued)
    own_threads(queued)


def with_network(port):
    first = killed()
    receiver = Receiver(port, unavailable=(2, 3))
    push = Push()
    fire(60, 7)
    second = push.counted()
    until(lambda: not files())
    ok(push.stop() == 0, "all is accepted after some attempts", push.said())
    bodies = receiver.take()
    same("what was left, and what came, was received", pushed(bodies), plus(first, second))
    ok(receiver.requests == len(bodies) + 2 and len(set(bodies)) == len(bodies), "nothing of it twice", receiver.requests, len(bodies))

    for options, kind in ((["--temporality", "cumulative"], "cumulative"), (["--json"], "JSON")):
        push = Push(*options)
        fire(30)
        time.sleep(1)
        fire(60, 7)
        counted = push.counted()
        ok(push.stop() == 0, f"{kind}: all is accepted", push.said())
        same(f"{kind}: what came is what was counted", pushed(receiver.take(), kind == "cumulative"), counted)
    extremes(receiver.take)
    outliers(receiver.take)
    own_threads(receiver.take)
    if os.path.exists(f"{KERNEL}/events/cgroup"):
        containers(receiver.take)


def containers(bodies):
    """A control group with a name like a container runtime's."""
    container = "0123456789abcdef" * 4
    os.mkdir(f"{WORK}/groups")
    subprocess.run(["mount", "-t", "cgroup2", "none", f"{WORK}/groups"], check=True)
    try:
        push = Push(question=["count", "cgroup:cgroup_mkdir", "--by", "path"], event="cgroup/cgroup_mkdir")
        os.mkdir(f"{WORK}/groups/docker-{container}.scope")
        push.stop()
        os.rmdir(f"{WORK}/groups/docker-{container}.scope")
    finally:
        subprocess.run(["umount", f"{WORK}/groups"], check=True)
    found = [{attribute["key"]: attribute["value"]["stringValue"] for attribute in point["attributes"]}
             for metric in metrics(bodies()) if metric["name"] == "count.hits" for point in metric["sum"]["dataPoints"]]
    ok(found == [{"path": f"/docker-{container}.scope", "container.id": container}], "the container of a group is told", found)


def extremes(bodies):
    """
    The kernel cuts the intervals: it knows the least and the largest value of each. Differences of
    totals have them only if they are new ones of the whole run, as in the first interval.
    """
    push = Push("--name", "cut", question=[*QUESTION[:-1], "s32"])
    # On a slow machine, an interval takes longer than was asked for.
    for _ in range(8):
        fire(60)
        time.sleep(0.7)
    push.stop()
    points = [point for metric in metrics(bodies()) if metric["name"] == "cut.s32"
              for point in metric["exponentialHistogram"]["dataPoints"] if point["count"]]
    ends = {point["timeUnixNano"] for point in points}
    unknown = [point for point in points if point.get("min") is None or point.get("max") is None]
    ok(len(ends) >= 3 and not unknown, "the extremes of each interval are known", len(ends), len(unknown), unknown[:1])


def outliers(bodies):
    """The longest time and its saved fields. `bodies` returns the pushed batches."""
    push = Push(question=["runqlat"], event="sched/sched_switch")
    for _ in range(20):
        subprocess.run(["true"], check=True)
    push.stop()
    found = [point for metric in metrics(bodies()) if metric["name"] == "runqlat.value"
             for point in metric["exponentialHistogram"]["dataPoints"] if point.get("exemplars")]
    # The saved fields are read after the numbers, and may belong to a longer wait that came
    # meanwhile.
    ok(found and all(point["exemplars"][0]["asInt"] >= point["max"] for point in found), "the longest wait is an exemplar", found[:1])
    saved = {attribute["key"] for point in found for attribute in point["exemplars"][0]["filteredAttributes"]}
    ok({"next_comm", "prev_comm"} <= saved, "with what was saved of it", saved)


def own_threads(bodies):
    """
    rhist's sending threads are not counted: among the threads that end while a histogram runs,
    none is rhist's.
    """
    push = Push("--name", "ended", question=["count", "sched:sched_process_exit", "--by", "comm"], event="sched/sched_process_exit")
    for _ in range(10):
        subprocess.run(["true"], check=True)
        time.sleep(0.2)
    push.stop()
    ended = {attribute["value"]["stringValue"] for metric in metrics(bodies()) if metric["name"] == "ended.hits"
             for point in metric["sum"]["dataPoints"] for attribute in point["attributes"]}
    ok("true" in ended and "rhist" not in ended, "pushing makes no threads that are counted", ended)


def main():
    global URL
    os.mkdir(WORK)
    os.environ.update(HOME=WORK, RHIST_RUN=f"{WORK}/run")
    os.sched_setaffinity(0, [0])
    try:
        subprocess.run(["insmod", os.environ["RHIST_EVENTS"]], check=True)
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], stderr=subprocess.DEVNULL, check=False)
            port = free_port()
        except OSError:
            port = 0
        URL = f"http://127.0.0.1:{port or 4318}/v1/metrics"
        if port:
            with_network(port)
        else:
            without_network()
        subprocess.run([RHIST, "clean"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["rmmod", "rhist_events"], check=True)
    finally:
        shutil.rmtree(WORK)
    finish()


if __name__ == "__main__":
    main()
