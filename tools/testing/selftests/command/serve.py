# SPDX-License-Identifier: GPL-2.0
"""
rhist serve: scrapes equal the kernel's counts, whatever happens meanwhile: the configuration is
read again, the module is unloaded and loaded, a histogram costs too much, clients are slow or
hostile, the service is killed, another one reads the same histogram. Many histograms share a cut.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from receiver import Receiver, free_port, metrics
from scrape import KERNEL, OPEN, PROTOBUF, RHIST, TEXT, TRACING, Server, begin, fire, instances, same, soon
from tap import finish, ok

work = tempfile.mkdtemp()
os.environ.update(RHIST_RUN=f"{work}/run", HOME=work)
begin()
server = Server(work)

# With budgets that hits do not exceed on an emulated processor, either.
CONFIG = """
[histogram.runs]
budget = "100%"
count = "rhist_events:run --by next_who --dist total"

[histogram.few]
budget = "100%"
count = "rhist_events:run --by next_key.hex --sum part"
limit = 2

[histogram.waits]
budget = "100%"
between = "rhist_events:wake rhist_events:run --on key=next_key --by next_who"
unit = "s"
labels = { next_who = "who" }

[histogram.plain]
budget = "100%"
event = "rhist_events:run"
trigger = "hist:keys=next_task:vals=change.dist"
"""


def trigger_of(text):
    """The instance whose trigger of rhist_events:run has this text."""
    for name in instances():
        path = f"{TRACING}/instances/{name}/events/rhist_events/run"
        with open(f"{path}/trigger", encoding="utf-8") as file:
            if text in file.read():
                return path
    return None


def jsonl(text):
    """
    Entries of the histogram with this text in its trigger: the first value of each, by the first
    key.
    """
    with open(f"{trigger_of(text)}/hist_jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return {str(line["keys"][0]): line["values"] for line in lines if line["type"] == "entry"}


def readers():
    """Readers of intervals and cuts of each histogram of the service."""
    with open(f"{TRACING}/hist_stats", encoding="utf-8") as file:
        return [tuple(map(int, pair)) for pair in re.findall(r"(\d+) readers of intervals, (\d+) cuts.*instances/rhist-", file.read())]


def hits(name="rhist_runs_total_count"):
    return sum(value for (found, _), value in server.scrape().items() if found == name)


# --- check

server.write(CONFIG)
found = subprocess.run([RHIST, "check", f"{server.folder}/a.toml"], capture_output=True, text=True, check=False)
same((found.returncode, found.stdout), (0, "4 histograms: this machine supports all of them\n"), "check: all can be made")
server.write('[histogram.a]\ncount = "rhist_events:run --by next_whom"\n', "wrong.toml")
found = subprocess.run([RHIST, "check", f"{server.folder}/wrong.toml"], capture_output=True, text=True, check=False)
ok(found.returncode == 2 and "wrong.toml:2:32" in found.stderr and "did you mean next_who?" in found.stderr,
   "check: what is wrong, and where", found)
os.unlink(f"{server.folder}/wrong.toml")

# --- scrapes equal the kernel's counts

same(server.start(), b"READY=1", "it is ready")
same(server.get("/healthz")[::2], (200, b"ok\n"), "/healthz")
same(len(instances()), 4, "each has an instance of its own")
fire("wake task 0 1 40 40")
fire("run task 0 1 40 40")
fire("run task 0 7 3 3")
samples = server.scrape()
truth = jsonl("total.dist")
native = server.native()
wrong = []
for who, (number, dist) in truth.items():
    got = native["rhist_runs_total", (("next_who", who),)]
    expected = {int(index) + 1: count for index, count in dist["positive"].items()}
    if (got.buckets(), got.schema, got.zero, got.count, got.sum) != (
            expected, dist["scale"], dist["zero_count"], number, dist["sum"]):
        wrong.append((who, got.__dict__, number, dist))
    if samples["rhist_runs_total_count", (("next_who", who),)] != number:
        wrong.append((who, number, "classic"))
ok(len(truth) == 4 and not wrong, "native buckets are those of hist_jsonl, with its index and one", *wrong)
truth = jsonl("change.dist")
wrong = []
for task, (_, dist) in truth.items():
    got = native["rhist_plain_change", (("next_task", task),)]
    for sign in ("positive", "negative"):
        if got.buckets(sign) != {int(index) + 1: count for index, count in dist[sign].items()}:
            wrong.append((task, sign, got.buckets(sign), dist))
ok(len(truth) == 4 and not wrong, "also negative ones, and those of a trigger as text", *wrong)
waits = {labels: histogram for (name, labels), histogram in native.items() if name == "rhist_waits_seconds"}
truth = jsonl("unit(s)")
ok({(("who", who),): (values[0], {int(index) + 1: count for index, count in values[1]["positive"].items()})
    for who, values in truth.items()} == {labels: (one.count, one.buckets()) for labels, one in waits.items()}
   and sum(one.count for one in waits.values()) > 0, "seconds are those of unit(s)", truth, waits)
ok(all(abs(one.sum - truth[labels[0][1]][1]["sum"] / 1e9) < 1e-9 for labels, one in waits.items()), "and so are their sums")
ok(all(one.created and abs(one.created - time.time()) < 600 for one in native.values()), "all say since when")

counted = {labels[0][1]: value for (name, labels), value in samples.items() if name == "rhist_few_total"}
ok(len(counted) == 3 and sum(counted.values()) == 43, "of four keys, two have labels, and the others are other", counted)
ok(all(label == "other" or re.fullmatch("0x[0-9a-f]+", label) for label in counted),
   "labels of keys with .hex", counted)
same(samples["rhist_serve_folded_total", (("histogram", "few"),)], counted.get("other"), "how many that are is told")
same(samples["rhist_serve_unresolved_total", (("histogram", "waits"),)],
     43 - sum(one.count for one in waits.values()), "so are ends without a start")
_, content, body = server.get(accept=OPEN)
text = body.decode()
ok(text.endswith("# EOF\n") and content.startswith("application/openmetrics-text") and "rhist_runs_total_created" in text
   and "# UNIT rhist_waits_seconds seconds" in text, "OpenMetrics", text[-300:])

# --- intervals

before = readers()
ok(len(before) >= 4 and {number for number, _ in before} == {1}, "the service reads intervals of all histograms", before)
server.scrape()
added = [now - then for (_, then), (_, now) in zip(before, readers())]
ok(len(added) == len(before) and len(set(added)) == 1 and added[0] > 0, "a read cuts all of them", added)
refused = subprocess.run(["rmmod", "rhist"], capture_output=True, text=True, check=False)
ok(refused.returncode != 0 and "in use" in refused.stderr, "which keep the module loaded", refused)

# --- the configuration changes

kept = trigger_of("total.dist")
server.write(CONFIG.replace("limit = 2", "limit = 3").replace("[histogram.plain]", "[histogram.other_plain]"))
ok(server.reload(), "it reads its configuration again", server.said())
same({number for number, _ in readers()}, {0}, "and lets go of all intervals")
server.forget("few", "plain")
server.runs("runs", "few", "waits", "other_plain")
same(trigger_of("total.dist"), kept, "what is the same goes on")
fire("run task 0 1 8 8")
after = server.scrape()
same(sum(value for (name, _), value in after.items() if name == "rhist_runs_total_count"), 51, "and counts on")
same(sum(value for (name, _), value in after.items() if name == "rhist_few_total"), 8, "what is another one begins anew")
ok(any(name == "rhist_other_plain_change_count" for name, _ in after) and not any("rhist_plain" in name for name, _ in after),
   "one is gone, and one is new")
server.write("[histogram.x]\nnonsense = 1\n")
ok(server.reload() and "unknown key" in server.said() and len(instances()) == 4, "a wrong one is told, and not taken", server.said())
same(server.scrape()["rhist_serve_config_last_reload_successful", ()], 0, "also in metrics")
server.write(CONFIG)
server.reload()
server.forget("few", "other_plain")
server.runs("runs", "few", "waits", "plain")
same(server.scrape()["rhist_serve_config_last_reload_successful", ()], 1, "a right one is taken")

# --- the module is unloaded and loaded

module = os.environ.get("RHIST_KO", "")


def unloaded():
    return subprocess.run(["rmmod", "rhist"], capture_output=True, check=False).returncode == 0


server.reload()
if soon(unloaded):
    fire("run task 0 1 100 100")
    gone = server.scrape()
    same(sum(value for (name, _), value in gone.items() if name == "rhist_runs_total_count"), 51, "without the module, nothing is forgotten")
    soon(lambda: server.scrape()["rhist_serve_running", (("histogram", "runs"),)] == 0)
    ok(not instances() and "cannot count now" in server.said(), "nothing is left of what is gone", instances(), server.said())
    subprocess.run(["insmod", module], check=True)
    ok(server.runs("runs", "few", "waits", "plain"), "with the module, all are there again", server.said())
    fire("run task 0 1 4 4")
    after = server.scrape()
    same(sum(value for (name, _), value in after.items() if name == "rhist_runs_total_count"), 55, "and go on from where they were")
    same(after["rhist_serve_starts_total", (("histogram", "runs"),)], 2, "which is told")
else:
    ok(False, "the module can be unloaded")

# --- intervals again

rounds = []


def is_cut():
    """Returns whether all are cut again. Each call fires four times."""
    fire("run task 0 1 4 4")
    rounds.append(server.scrape())
    return {number for number, _ in readers()} == {1}


ok(soon(is_cut), "after a minute, it reads intervals again", readers(), server.said())
fire("run task 0 1 4 4")
fired = 55 + 4 * len(rounds) + 4
same(hits(), fired, "and nothing is lost or counted twice")

# --- a user clears a trigger

with open(f"{trigger_of('total.dist')}/trigger", encoding="utf-8") as file:
    command = next(line.split(" [")[0] for line in file if "total.dist" in line)
fd = os.open(f"{trigger_of('total.dist')}/trigger", os.O_WRONLY | os.O_APPEND)
os.write(fd, command.replace(" if ", ":clear if ", 1).encode())
os.close(fd)
# More of one of the four keys than before.
fire("run task 0 4 400 400")
fired += 400
same(hits(), fired, "what has come since is added to what there was")
ok("another program cleared a trigger" in server.said() and server.runs("runs", "few", "waits", "plain"), "which is told", server.said())
fire("run task 0 1 4 4")
server.reload()
fire("run task 0 1 4 4")
fired += 8
same(hits(), fired, "and a reload counts on from there")

# --- clients

slow = []
for _ in range(20):  # They ask, and read nothing.
    one = socket.create_connection(("127.0.0.1", server.port))
    one.sendall(f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: {TEXT}\r\n\r\n".encode())
    slow.append(one)
for text in (b"GET /metrics HT", b"", b"\0\x01\x02", b"GET " + b"a" * 100_000, b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n",
             b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 1000, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200):
    for _ in range(4):
        one = socket.create_connection(("127.0.0.1", server.port))
        try:
            one.sendall(text)
        except OSError:
            pass
        slow.append(one)
asked = time.monotonic()
status, _, _ = server.get(accept=TEXT)
took = time.monotonic() - asked
ok(status == 200 and took < 5, "slow and hostile clients keep nobody waiting", took)
same([server.get(path, method=method)[0] for path, method in
      (("/nothing", "GET"), ("/metrics", "POST"), ("/metrics", "HEAD"), ("/", "GET"))], [404, 405, 200, 200], "status of others")
for one in slow:
    one.close()
names = ("localhost", f"{socket.gethostname()}:9953", "[::1]", "rebound.example", "localhost.rebound.example:9953")
found = [server.get(host=name) for name in names]
same([status for status, _, _ in found], [200, 200, 200, 403, 403], "a page of another site, whose name has become this address, is refused")
ok(not any(b"rhist_" in body for status, _, body in found if status == 403), "and reads nothing", found[-1])

counts = []
# On an emulated processor, all of them take a minute.
ROUNDS = 250 if os.environ.get("LONG") else 50


def scrapes():
    for n in range(ROUNDS):
        status, _, body = server.get(accept=(TEXT, OPEN, PROTOBUF)[n % 3])
        counts.append((status, len(body) > 1000))


threads = [threading.Thread(target=scrapes) for _ in range(4)]
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads):
    fire("run task 0 1 20 20")
    fired += 20
    server.scrape()
for thread in threads:
    thread.join()
same((len(counts), set(counts)), (4 * ROUNDS, {(200, True)}), f"{4 * ROUNDS} scrapes are answered")
after = server.scrape()
same(sum(value for (name, _), value in after.items() if name == "rhist_runs_total_count"), fired, "all is counted meanwhile")
resident = after["process_resident_memory_bytes", ()] / (1 << 20)
print(f"# {resident:.1f} MiB, {after['process_cpu_seconds_total', ()]:.2f} s of a CPU")
ok(resident < 20, "in at most 20 MiB", resident)

# --- a histogram that costs too much

server.write(CONFIG + '\n[histogram.costly]\ncount = "rhist_events:run --by next_key"\nbudget = "0.000001%"\n')
server.reload()


def is_paused():
    fire("run task 0 1 1000 4")
    return server.scrape()["rhist_serve_paused", (("histogram", "costly"),)] == 1


if ("rhist_serve_event_cost_seconds", (("histogram", "costly"),)) in server.scrape():
    ok(soon(is_paused), "one that costs more than its budget is paused", server.said())
    ok("costly: cost" in server.said() and len(instances()) == 4, "which is told, and the others go on", server.said())
    print("#", next(line for line in server.said().splitlines() if "its budget" in line))
    before = server.scrape()
    fire("run task 0 1 1000 4")
    after = server.scrape()
    counted = [sum(value for (name, _), value in one.items() if name == "rhist_costly_total") for one in (before, after)]
    ok(counted[0] == counted[1] > 0, "it keeps what it has counted", counted)
else:
    ok(False, "the cost of a hit is known", server.said())

# --- a receiver of pushed batches

def sent(name):
    """Received hits of a histogram."""
    found = [metric for metric in metrics(receiver.bodies) if metric["name"] == f"{name}.hits"]
    return sum(point["asInt"] for metric in found for point in metric["sum"]["dataPoints"])


os.environ["RHIST_STATE"] = f"{work}/state"
server.stop()
port = free_port()
PUSH = f'\n[push]\nto = "http://127.0.0.1:{port}"\ninterval = 1\njson = true\n'
server.write(CONFIG + PUSH)
server.start()
fire("run task 0 1 30 30")
ok(soon(lambda: server.scrape()["rhist_push_queue_batches", ()] >= 4), "without a receiver, batches are queued", server.said())
stopping = time.monotonic()
fire("run task 0 1 5 5")
same(server.stop(), 0, "SIGTERM ends it")
took = time.monotonic() - stopping
ok(took < 10 and not instances(), "within seconds", took)
receiver = Receiver(port)
server.start()
ok(soon(lambda: (sent("runs"), sent("plain")) == (35, 35)), "the next one pushes what the one before has left", sent("runs"), server.said())
fire("run task 0 1 7 7")
server.write(CONFIG.replace("limit = 2", "limit = 3") + PUSH)
ok(server.reload() and server.runs("runs", "few", "waits", "plain"), "it reads its configuration again", server.said())
server.forget("few")
fire("run task 0 1 2 2")
ok(soon(lambda: (sent("runs"), sent("few")) == (44, 44)), "all of it arrives", sent("runs"), sent("few"), server.said())
server.reload()
if soon(unloaded):
    soon(lambda: server.scrape()["rhist_serve_running", (("histogram", "runs"),)] == 0)
    subprocess.run(["insmod", module], check=True)
    server.runs("runs", "few", "waits", "plain")
    fire("run task 0 1 6 6")
    ok(soon(lambda: sent("runs") == 50) and hits() == 15, "also when the module is loaded again, nothing twice", sent("runs"), hits())
else:
    ok(False, "the module can be unloaded")
server.write(CONFIG)
server.reload()
server.forget("few")
server.runs("runs", "few", "waits", "plain")

# --- the end

empty = [f"{KERNEL}/instances/empty{n}" for n in range(len(instances()))]
for name in empty:
    os.mkdir(name)
removing = time.monotonic()
for name in empty:
    os.rmdir(name)
stopping = time.monotonic()
same(server.stop(), 0, "SIGTERM ends it")
took = time.monotonic() - stopping
same((instances(), os.listdir(f"{work}/run")), ([], []), "and nothing is left")
# The kernel removes an empty instance in some milliseconds if the processor is not emulated.
print(f"# {len(empty)} histograms end in {took:.2f} s, empty instances in {stopping - removing:.2f} s")
ok(took < 10 * (stopping - removing) + 1,
   "in at most ten times as long as empty instances, so that 100 need seconds", took)
server.write(CONFIG)
server.start()
server.stop(signal.SIGKILL)
same(len(instances()), 4, "killed, it leaves what it has made")
subprocess.run([RHIST], capture_output=True, check=False)
same((instances(), os.listdir(f"{work}/run")), ([], []), "which the next rhist removes")
server.start()
server.stop(signal.SIGKILL)
server.start()
ok(server.said().count("removed the objects of a run") == 4 and len(instances()) == 4, "or the next service", server.said())
same(server.stop(signal.SIGINT), 0, "SIGINT ends it, too")
same(instances(), [], "and nothing is left then")
server.write("".join(f'[histogram.h{n}]\nrecipe = "runqlat"\nbudget = "100%"\n' for n in range(12)))
with open(server.log, "w", encoding="utf-8") as log:
    server.process = subprocess.Popen([RHIST, "serve", "--listen", "127.0.0.1:0", "--config", server.folder], stderr=log)
soon(lambda: ": counts" in server.said())
same(server.stop(), 0, "SIGTERM ends it while it makes its histograms")
made = server.said().count(": counts")
ok(made < 12 and not instances(), "it makes no more then, and nothing is left", made, instances())

# --- thirty histograms share their cuts

port = free_port()
receiver = Receiver(port)
thirty = [f"h{n}" for n in range(30)]
server.write("".join(f'[histogram.{name}]\ncount = "rhist_events:run --by next_key"\nbudget = "100%"\n' for name in thirty)
             + f'\n[push]\nto = "http://127.0.0.1:{port}"\ninterval = 2\n')
server.start()
ok(soon(lambda: server.runs(*thirty)), "thirty histograms count", server.said())


def cuts():
    """The ends of all intervals with hits, by histogram: when the kernel has cut them."""
    ends = {name: set() for name in thirty}
    for metric in metrics(receiver.bodies):
        name = metric["name"].removesuffix(".hits")
        if name != metric["name"]:
            ends[name].update(point["timeUnixNano"] for point in metric["sum"]["dataPoints"])
    return ends


def have_rounds():
    fire("run task 0 1 8 4")
    return receiver.requests - before >= 6 * len(thirty)


before = receiver.requests
ok(soon(have_rounds), "all are pushed", server.said())
ends = cuts()
different = set.union(*ends.values())
rounds = max(len(one) for one in ends.values())
print(f"# {rounds} rounds, {len(different)} ends")
# On a busy machine, some ask only after a cut has begun, and share the next one.
ok(len(different) <= 5 * rounds, "each round has one end for all, or few, not thirty",
   {name: sorted(one) for name, one in ends.items()})
same(server.stop(), 0, "SIGTERM ends it")

# --- two services read one histogram

pair = [Server(f"{work}/{name}") for name in ("one", "two")]
for each in pair:
    each.write('[histogram.both]\nevent = "rhist_events:run"\ntrigger = "hist:keys=next_key:vals=total.dist:name=both"\nbudget = "100%"\n')
    each.start()
    ok(each.runs("both"), "each of two services counts", each.said())
same({number for number, _ in readers()}, {2}, "both read the intervals of one histogram")
is_over = False


def scrape_on(each):
    while not is_over:
        each.scrape()


threads = [threading.Thread(target=scrape_on, args=[each]) for each in pair]
for thread in threads:
    thread.start()
fired = 0
for number in range(200):
    fire(f"run task 0 {number} 500 16")
    fired += 500
    time.sleep(0.02)
is_over = True
for thread in threads:
    thread.join()
truth = {key: (values[0], values[1]["sum"], {int(index) + 1: count for index, count in values[1]["positive"].items()})
         for key, values in jsonl("name=both").items()}
# Each event is a hit of both triggers.
same(sum(number for number, _, _ in truth.values()), 2 * fired, "the histogram has the hits of both triggers")
for each in pair:
    each.scrape()
    got = {labels[0][1]: (one.count, int(one.sum), one.buckets())
           for (name, labels), one in each.native().items() if name == "rhist_both_total"}
    same(got, truth, "the sum of each service's intervals is the total, of each key and bucket")
    ok("another program" not in each.said(), "no service disturbs the other", each.said())
for each in pair:
    same(each.stop(), 0, "SIGTERM ends it")
same(instances(), [], "and nothing is left")
shutil.rmtree(work)
finish()
