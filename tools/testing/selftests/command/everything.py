# SPDX-License-Identifier: GPL-2.0
"""
Everything at once: rhist serve is scraped a thousand times and pushes, while its configuration is
read again, the module is upgraded, the disk of its queue is full and its receiver is away. No
counter falls, the receiver gets all counts, memory is bounded, and nothing is left. In the end
the receiver is away until the queue is full, and only the oldest batches are lost.
"""

import atexit
import collections
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time

from receiver import Receiver, free_port, metrics
from scrape import OPEN, TEXT, Server, begin, fire, instances, is_counter, parse_text, same, soon
from tap import finish, ok

SCRAPES = 1000
# Seconds without the receiver: it is tried again after 1, 2, 4, 8 and 16 seconds, or up to a half
# less.
AWAY = 30
# The most memory of the service, in MiB: without batches, and with 4 MiB of batches that it cannot
# write.
MEMORY, MEMORY_HELD = 20, 32
MODULE = os.environ.get("RHIST_KO", "")

work = tempfile.mkdtemp()
state = f"{work}/state"
os.environ.update(RHIST_RUN=f"{work}/run", RHIST_STATE=state, HOME=work)
begin()
# A disk of its own, so that filling it affects nothing else.
os.mkdir(state)
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "none", state], check=True)
atexit.register(lambda: subprocess.run(["umount", "-l", state], check=False, stderr=subprocess.DEVNULL))
server = Server(work)
receiver = Receiver(free_port())

CONFIG = f"""
[push]
to = "http://127.0.0.1:{receiver.port}"
interval = 1

[histogram.runs]
budget = "100%"
count = "rhist_events:run --by next_who --dist total"

[histogram.keys]
budget = "100%"
count = "rhist_events:run --by next_key --sum part"
limit = 2

[histogram.waits]
budget = "100%"
between = "rhist_events:wake rhist_events:run --on key=next_key --by next_who"
unit = "s"
"""
EXTRA = '\n[histogram.extra]\ncount = "rhist_events:run --by next_key"\nbudget = "100%"\n'
MANY = '\n[histogram.many]\ncount = "rhist_events:numbers --by u64 --dist u64,s32"\nlimit = 1000\nsize = 4096\nbudget = "100%"\n'


class Scraper:
    """Scrapes until it is told to stop, each format in turn, and holds counters to never falling."""

    def __init__(self):
        self.scrapes = 0
        self.wrong = []
        self.memory = self.queued = 0
        # The last counts of each format, since each format is kept for a second.
        self.last = {"text": {}, "native": {}}
        self.is_over = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_over:
            try:
                self.scrape()
            except Exception as error:  # pylint: disable=broad-except
                self.wrong.append(repr(error))
            self.scrapes += 1
            time.sleep(0.02)

    def scrape(self):
        match self.scrapes % 3:
            case 0:
                status, _, body = server.get(accept=TEXT)
                samples, kinds = parse_text(body.decode())
                self.memory = max(self.memory, samples["process_resident_memory_bytes", ()] / (1 << 20))
                self.queued = max(self.queued, samples.get(("rhist_push_queue_bytes", ()), 0))
                self.hold("text", {key: value for key, value in samples.items() if is_counter(key[0], kinds)})
            case 1:
                status, _, body = server.get(accept=OPEN)
                if not body.endswith(b"# EOF\n"):
                    self.wrong.append(("cut off", body[-80:]))
            case _:
                status = 200
                counts = {}
                for key, one in server.native().items():
                    counts.update({(*key, "count"): one.count, (*key, "sum"): one.sum, (*key, "since"): one.created})
                    counts.update({(*key, index): count for index, count in one.buckets().items()})
                self.hold("native", counts)
        if status != 200:
            self.wrong.append(status)

    def hold(self, kind, counts):
        """
        Checks that no count has fallen. Histograms that come and go with the configuration are
        exempt.
        """
        last = self.last[kind]
        for key, before in last.items():
            if "extra" not in str(key) and counts.get(key, -1) < before:
                self.wrong.append((kind, key, before, counts.get(key)))
        self.last[kind] = counts


class Load:
    """Fires events until it is stopped; within `with`, it waits."""

    def __init__(self):
        self.fired = 0
        self.random = random.Random(1)
        self.pause = threading.Lock()
        self.is_over = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_over:
            with self.pause:
                count = self.random.randrange(1, 200)
                fire(f"wake task 0 1 {count} {count}")
                fire(f"run task 0 1 {count} {count}")
                self.fired += count
            time.sleep(0.1)

    def __enter__(self):
        self.pause.acquire()

    def __exit__(self, *_):
        self.pause.release()


def samples():
    """A separate scrape, after the service's copy of the last one has expired."""
    time.sleep(1.1)
    return parse_text(server.get(accept=TEXT)[2].decode())[0]


def own():
    """Lines about pushing and about the process only: with many keys, parsing all takes long."""
    lines = server.get(accept=TEXT)[2].decode().splitlines()
    return parse_text("\n".join(line for line in lines if line.startswith(("rhist_push", "process"))))[0]


def total(name, found):
    return sum(value for (one, _), value in found.items() if one == name)


def running():
    return {labels[0][1]: value for (name, labels), value in samples().items() if name == "rhist_serve_running"}


def reload(text):
    """Gives the service another configuration."""
    server.write(text)
    return server.reload()


def upgrade():
    """Unloads the module, with all its counts, and loads it. Hits meanwhile are not counted."""
    with load:
        # Wait until all fired events are read.
        samples()
        # Otherwise, the service's files of intervals keep the module loaded.
        server.reload()
        if not soon(lambda: subprocess.run(["rmmod", "rhist"], capture_output=True, check=False).returncode == 0):
            return False
        fire("run task 0 1 50 50")
        soon(lambda: not any(running().values()))
        subprocess.run(["insmod", MODULE], check=True)
        return soon(lambda: all(running().values()))


def fill():
    """Fills the disk of the queue."""
    with open(f"{state}/full", "wb") as file:
        try:
            while True:
                file.write(bytes(4096))
                file.flush()
        except OSError:
            pass


class Arrived:
    """Returns the batches accepted since the last call."""

    def __init__(self):
        self.batches = 0
        self.hits = collections.Counter()
        # By histogram, labels, and Prometheus' index; and by histogram and labels.
        self.buckets = collections.Counter()
        self.sums = collections.Counter()
        # Begins and ends of a histogram's intervals.
        self.spans = collections.defaultdict(set)

    def of(self, name):
        """Hits of a histogram until now."""
        bodies = receiver.take()
        self.batches += len(bodies)
        for metric in metrics(bodies):
            histogram, _, what = metric["name"].partition(".")
            if what == "hits":
                for point in metric["sum"]["dataPoints"]:
                    self.hits[histogram] += point["asInt"]
            if what == "duration":
                # Each interval has a point, also without hits.
                for point in metric["gauge"]["dataPoints"]:
                    whose = next(one["value"]["stringValue"] for one in point["attributes"] if one["key"] == "rhist.name")
                    self.spans[whose].add((point["startTimeUnixNano"], point["timeUnixNano"]))
            for point in metric.get("exponentialHistogram", {}).get("dataPoints", []):
                labels = tuple((one["key"], one["value"]["stringValue"]) for one in point["attributes"])
                # Values below zero have no bucket.
                self.sums[histogram, labels] += point.get("sum", 0)
                positive = point.get("positive", {})
                for place, count in enumerate(positive.get("bucketCounts", [])):
                    if count:
                        self.buckets[histogram, labels, positive.get("offset", 0) + place + 1] += count
        return self.hits[name]


# --- all of it at once

server.write(CONFIG)
server.start()
ok(soon(lambda: running() == {"runs": 1, "keys": 1, "waits": 1}), "it runs", server.said())
load, scraper, arrived = Load(), Scraper(), Arrived()
rounds = retries = 0
while scraper.scrapes < SCRAPES or not rounds:
    rounds += 1
    since = time.monotonic()
    receiver.end()
    done = [reload(CONFIG + EXTRA), not reload("[histogram.x]\nnonsense = 1\n") or "not taken" in server.said()]
    time.sleep(3)
    fill()
    done += [upgrade(), reload(CONFIG), reload(CONFIG.replace("limit = 2\n", 'limit = 2\nbudget = "1%"\n'))]
    time.sleep(max(0, since + AWAY / 2 - time.monotonic()))
    os.unlink(f"{state}/full")
    time.sleep(max(0, since + AWAY - time.monotonic()))
    known, retries = retries, samples()["rhist_push_retries_total", ()]
    receiver.begin()
    done += [upgrade(), soon(lambda: samples()["rhist_push_queue_batches", ()] <= 1)]
    ok(all(done) and retries - known >= 3, f"round {rounds}: reloads, upgrades, a full disk, {retries - known:.0f} attempts in vain",
       done, server.said())
    print(f"# {scraper.scrapes} scrapes, {time.monotonic() - since:.0f} s", flush=True)
load.is_over = True
load.thread.join()
scraper.is_over = True
scraper.thread.join()
ok(scraper.scrapes >= SCRAPES and not scraper.wrong, f"{scraper.scrapes} scrapes: no counter falls", len(scraper.wrong), *scraper.wrong[:5])
ok("is kept in memory" in server.said() and "accepts batches again" in server.said(), "the disk was full, the receiver away", server.said())
last = samples()
same([total(name, last) for name in ("rhist_runs_total_count", "rhist_keys_total")], [load.fired] * 2, "all is counted that happened")
ok(soon(lambda: arrived.of("runs") == load.fired), "and has arrived, nothing twice", arrived.hits, load.fired)
natives = {(name.split("_")[1], labels): one for (name, labels), one in server.native().items()}
expected = {(*key, index): count for key, one in natives.items() for index, count in one.buckets().items()}
same(dict(arrived.buckets), expected, "in the same buckets as in the scrapes")
# Sums in seconds would differ in their last digits.
same({labels: number for (name, labels), number in arrived.sums.items() if name == "runs"},
     {labels: one.sum for (name, labels), one in natives.items() if name == "runs"}, "with the same sums")
same(arrived.hits["waits"], total("rhist_waits_seconds_count", last), "of all histograms")
# It goes on pushing.
before = arrived.batches + len(receiver.bodies)
batches = {labels[0][1]: value for (name, labels), value in samples().items() if name == "rhist_push_batches_total"}
after = arrived.batches + len(receiver.bodies)
ok(before - 1 <= batches["accepted"] == sum(batches.values()) <= after, "all batches are accepted", before, batches, after)
ok(0 < scraper.queued <= 64 << 20, "the queue was within its limit", scraper.queued)
ok(scraper.memory < MEMORY, f"in at most {MEMORY} MiB", scraper.memory)
print(f"# {scraper.memory:.1f} MiB of memory, at most {scraper.queued / 1024:.0f} KiB in the queue")

# --- more batches than the queue holds

reload(CONFIG + MANY)
ok(soon(lambda: running().get("many") == 1), "one with many keys", server.said())
ok(soon(lambda: fire("numbers task 0 0 1000 1000") or arrived.of("many") > 0), "is pushed", server.said())
receiver.end()
fill()
since = time.monotonic()
memory, last = [], {}


def is_dropped():
    fire("numbers task 0 0 1000 1000")
    time.sleep(1.1)
    found = own()
    memory.append(found["process_resident_memory_bytes", ()] / (1 << 20))
    fallen = [key for key, value in last.items() if "total" in key[0] and found[key] < value]
    last.update(found)
    return fallen or found["rhist_push_batches_total", (("result", "dropped"),)] > 8


ok(soon(is_dropped), "if there is no room, batches are dropped", last)
print(f"# after {time.monotonic() - since:.0f} s, with {last['rhist_push_queue_bytes', ()] / 1024:.0f} KiB in the queue", flush=True)
os.unlink(f"{state}/full")
receiver.begin()
ok(soon(lambda: arrived.of("many") and own()["rhist_push_queue_batches", ()] <= 1), "the others arrive", own(), server.said())
ok("the oldest batches are dropped" in server.said(), "which is told", server.said())
spans = sorted(arrived.spans["many"])
gaps = [place for place, ((_, end), (begin, _)) in enumerate(zip(spans, spans[1:])) if begin != end]
# A batch that is being sent is not dropped: it may lie between dropped ones.
ok(len(gaps) == 1 or len(gaps) == 2 and gaps[1] == gaps[0] + 1, "what is missing is in one piece, but for what was being sent",
   [(begin - spans[0][0], end - spans[0][0]) for begin, end in spans], own())
missing = sum(spans[place + 1][0] - spans[place][1] for place in gaps)
ok(max(memory) < MEMORY_HELD, f"in at most {MEMORY_HELD} MiB", memory)
print(f"# {min(memory):.1f} to {max(memory):.1f} MiB of memory; {missing / 1e9:.0f} s are missing")

# --- the end

same(server.stop(), 0, "it ends")
files = [name for _, _, names in os.walk(f"{state}/push") for name in names]
same((instances(), os.listdir(f"{work}/run"), files), ([], [], []), "and nothing is left")
receiver.end()
subprocess.run(["umount", state], check=True)
shutil.rmtree(work)
finish()
