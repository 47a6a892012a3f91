#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# hist_jsonl: printed as hist prints it, it equals hist, with keys and values of every kind; its
# other members; a reader that stops early; and 131,072 entries.
. "$(dirname "$0")/../lib/tracing.sh"

E=$TRACING/events
GETPGID_EVENT=syscalls/sys_enter_getpgid

if [ "$TRACING" = "$KERNEL" ]; then
	skip "hist_jsonl" "this is not rhist"
	finish
fi
cd "$E" || exit 1

clean() { remove_triggers $GETPGID_EVENT sched/sched_switch sched/sched_waking task/task_rename raw_syscalls/sys_enter; }
clean 2>/dev/null

# Reads hist_jsonl, and hist to compare it with.
cat >"$work/jsonl.py" <<'EOF'
import json
import os


class Histogram:
    """What a file says of a histogram: the header, the entries, and the trailer, which there has to be."""

    def __init__(self, lines):
        self.header = next(lines)
        assert self.header["type"] == "header" and self.header["schema"] == 1, self.header
        self.entries = []
        for line in lines:
            if line["type"] == "trailer":
                self.trailer = line
                break
            assert line["type"] == "entry", line
            for column in ("keys", "values", "variables", "actions"):
                assert len(line[column]) == len(self.header[column]), line
            self.entries.append(line)
        assert self.trailer["complete"] is True
        assert self.trailer["shown"] == len(self.entries)


def histograms(path):
    with open(path, encoding="utf-8") as file:
        lines = iter([json.loads(line) for line in file])
    found = []
    while (first := next(lines, None)) is not None:
        found.append(Histogram(iter([first, *take(lines)])))
    return found


def take(lines):
    """The lines up to a trailer."""
    for line in lines:
        yield line
        if line["type"] == "trailer":
            return


def string(said):
    """The bytes of a string."""
    if isinstance(said, str):
        return said.encode()
    assert said["text"] == bytes.fromhex(said["bytes"]).decode(errors="replace"), said
    return bytes.fromhex(said["bytes"])


def number(value, form="10"):
    """A number as C prints it: without a sign."""
    return format(value % 2**64, form).encode()


def key(column, said):
    """A key as hist prints it."""
    name, modifier = string(column["name"]), column["modifier"]
    if isinstance(said, int):
        return name + b": " + number(said, "x" if modifier == "hex" else "10")
    if isinstance(said, str) or "bytes" in said:
        return name + b": " + string(said).ljust(50)
    if "comm" in said:
        return name + b": " + string(said["comm"]).ljust(16) + b"[" + number(said["value"]) + b"]"
    if "syscall" in said:
        return name + b": " + (said["syscall"] or "unknown_syscall").encode().ljust(30) + b"[" + number(said["value"], "3") + b"]"
    if "first" in said:
        if modifier == "log2":
            power = ((said["last"] - 1) % 2**64).bit_length() if said["first"] else 0
            return name + b": ~ 2^" + str(power).encode().ljust(2)
        if modifier.startswith("buckets"):
            # The last bucket wraps around.
            first, width = said["first"] % 2**64, int(modifier.partition("=")[2])
            return name + f": ~ {first}-{(first + width - 1) % 2**64}".encode()
        return name + f": ~ {said['first']}-{said['last']}".encode()
    if "address" in said:
        width = 55 if modifier == "sym-offset" else 45
        symbol = (said["symbol"] or said["address"]).encode().ljust(width)
        return name + b": [" + said["address"].removeprefix("0x").encode() + b"] " + symbol
    frames = b"".join(b"         " + (frame["symbol"] or frame["address"]).encode() + b"\n" for frame in said["stack"])
    return name + (b":\n" if name == b"common_stacktrace" else b".stacktrace") + frames


def value(column, said, total, largest):
    """A value as hist prints it; None: it does not."""
    name, modifier = string(column["name"]), column["modifier"]
    if modifier in ("min", "max", "avg"):
        return name + f".{modifier}: {said:>10}".encode()
    if modifier == "percent":
        part = said * 10000 // total
        return name + f" (%): {part // 100:>3}.{part % 100:02}".encode()
    if modifier == "graph":
        return name + b": " + (b"#" * (said * 10000 // largest * 20 // 10000)).ljust(20)
    if isinstance(said, dict):
        shown = f".dist:  count: {said['count']:>10}  min: {said['min']:>10}"
        for quantile, estimate in said["quantiles"].items():
            shown += f"  p{quantile}: {estimate:>10}"
        average = int(said["sum"] / said["count"])
        lost = f"  without bucket: {said['no_bucket']:>10}" if said["no_bucket"] else ""
        return name + (shown + f"  max: {said['max']:>10}  avg: {average:>10}{lost}").encode()
    return name + b": " + number(said, "10x" if modifier == "hex" else "10")


def entries(histogram):
    """The entries as hist prints them."""
    columns = histogram.header["values"]
    sums = [[entry["values"][n] for entry in histogram.entries] for n in range(len(columns))]
    for entry in histogram.entries:
        keys = b", ".join(map(key, histogram.header["keys"], entry["keys"]))
        stacks = any(isinstance(said, dict) and "stack" in said for said in entry["keys"])
        line = b"{ " + keys + (b"}" if stacks else b" }")
        hidden = ":nohitcount" in histogram.header["trigger"]
        for n, (column, said) in enumerate(zip(columns, entry["values"])):
            # hist hides the hitcount, and expressions without parentheses.
            if hidden and not n:
                continue
            if not set("+*/") & set(column["name"]) or column["name"].startswith("("):
                plain = not isinstance(said, dict)
                line += (b"  " if n else b" ") + value(column, said, plain and sum(sums[n]), plain and max(sums[n]))
        for action, said in zip(histogram.header["actions"], entry["actions"]):
            if action["action"] == "save":
                what = "max" if action["handler"] == "onmax" else "changed"
                line += f"\n\t{what}: {said['value']:>10}".encode()
                for name, saved in zip(action["saved"], said["saved"]):
                    line += b"  " + name.encode() + b": "
                    line += number(saved) if isinstance(saved, int) else string(saved).ljust(32)
        yield line


def text(path):
    """The file hist as it would be, as far as it can be known."""
    out = b""
    for n, histogram in enumerate(histograms(path)):
        out += b"\n\n" if n else b""
        state = b"paused" if histogram.header["paused"] else b"active"
        out += b"# event histogram\n#\n# trigger info: " + string(histogram.header["trigger"]) + b" [" + state + b"]\n#\n\n"
        out += b"".join(line + b"\n" for line in entries(histogram))
        trailer = histogram.trailer
        out += f"\nTotals:\n    Hits: {trailer['hits']}\n    Entries: {trailer['entries']}\n".encode()
        out += f"    Dropped: {trailer['dropped']}\n".encode()
        if "limit(" in histogram.header["trigger"]:
            out += f"    Not shown: {trailer['entries'] - trailer['shown']}\n".encode()
        if trailer["no_bucket"] is not None:
            out += f"    Without bucket: {trailer['no_bucket']}\n".encode()
    return out
EOF
# py CODE [ARG...]: Python with the above
py()
{
	code=$1
	shift
	PYTHONPATH=$work python3 -B -c "from jsonl import *
import sys
$code" "$@"
}
# keep EVENT NAME: keeps copies of both files, to be compared later, since Python takes long to
# start. Nothing may be counted meanwhile.
kept=0
keep()
{
	kept=$((kept + 1))
	cat "$1/hist_jsonl" >"$work/$kept.jsonl"
	cat "$1/hist" >"$work/$kept.hist"
	printf '%s\n' "$2" >"$work/$kept.name"
}
# compare: checks for all kept files that hist_jsonl, printed like hist, equals hist
compare()
{
	py 'for path in sys.argv[1:]:
	with open(path.removesuffix("jsonl") + "printed", "wb") as file:
		file.write(text(path))' "$work"/*.jsonl 2>"$work/said" || sed 's/^/# /' "$work/said"
	for n in $(seq $kept); do
		same "$work/$n.printed" "$(cat "$work/$n.name")" <"$work/$n.hist"
	done
	is "$(grep -L '^{ ' "$work"/*.hist)" "" "all of these have entries"
}
# add EVENT TRIGGER: adds it with a filter for the hits of this test only
add() { echo "$2 if pid >= 1000" >>$1/trigger; }

# --- what hist says

for keys in pid pid.hex pid.log2 pid.buckets=7 pid.log2=3 pid.syscall pid.sym pid.sym-offset common_cpu common_comm \
	common_pid.execname common_stacktrace common_stacktrace,pid pid,pid.hex,pid.log2,pid.syscall; do
	: >$GETPGID_EVENT/trigger
	add $GETPGID_EVENT "hist:keys=$keys"
	fire getpgid 1000:3 1001 1030:7 5000:2 18446744073709551615:5
	keep $GETPGID_EVENT "$keys"
done
for vals in pid pid.hex hitcount.percent,hitcount.graph pid.min,pid.max,pid.avg 'pid+1,(pid+1),(pid+1).max' pid.dist \
	pid.dist=0,pid.dist=5:'quantiles(10,50,99.99)' pid.dist:'unit(us)':'buckets(2)' pid:nohitcount hitcount:'limit(2)'; do
	: >$GETPGID_EVENT/trigger
	add $GETPGID_EVENT "hist:keys=pid.buckets=100:vals=$vals"
	fire getpgid 1000:3 1001 1030:7 5000:2 80000:5
	keep $GETPGID_EVENT "$vals"
done
: >$GETPGID_EVENT/trigger
for trigger in keys=pid keys=common_pid:name=rhist_j:pause 'keys=pid:x=pid:onmax($x).save(pid,common_comm)'; do
	add $GETPGID_EVENT "hist:$trigger"
done
fire getpgid 1000:3 1001 70000
keep $GETPGID_EVENT "several histograms, one of them paused, with a name, and actions"
: >$GETPGID_EVENT/trigger
compare

# --- its other members

echo 'hist:keys=newcomm:c=newcomm,s=common_stacktrace,t=common_timestamp.usecs if newcomm ~ "rhist*"' >task/task_rename/trigger
fire name rhist_plain name "$(printf 'rhist\351\t"\\')"
is "$(py 'for entry in sorted(histograms(sys.argv[1])[0].entries, key=lambda entry: str(entry["keys"])):
	print(string(entry["keys"][0]), string(entry["variables"][0]), len(entry["variables"][1]["stack"]) > 1, entry["variables"][2] > 0)' \
	task/task_rename/hist_jsonl)" 'b'\''rhist_plain'\'' b'\''rhist_plain'\'' True True
b'\''rhist\xe9\t"\\'\'' b'\''rhist\xe9\t"\\'\'' True True' "strings with any bytes; variables"
is "$(py 'header = histograms(sys.argv[1])[0].header
print(header["system"], header["event"], header["filter"], header["variables"], header["clock"], header["keys"])' \
	task/task_rename/hist_jsonl)" "task task_rename newcomm ~ \"rhist*\" ['c', 's', 't'] global \
[{'name': 'newcomm', 'type': 'char[TASK_COMM_LEN]', 'modifier': None, 'unit': None}]" "the header"
is "$(py 'import time
before = time.time_ns(), time.monotonic_ns()
header = histograms(sys.argv[1])[0].header
after = time.time_ns(), time.monotonic_ns()
# On some machines, clocks of the kernel are only as fine as a tick.
tick = 20000000
print(before[0] - tick <= header["realtime_ns"] <= after[0] + tick, before[1] - tick <= header["monotonic_ns"] <= after[1] + tick)
print(header["boot_id"] == open("/proc/sys/kernel/random/boot_id").read().strip())' task/task_rename/hist_jsonl)" "True True
True" "the times, and the boot id"
is "$(py 'import ctypes
import time
event, number = sys.argv[1], int(sys.argv[2])
trigger = "hist:keys=pid"
# As above.
tick = 20000000

def now():
	return time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.time_ns()

def during(step):
	"""Takes a step. Returns a function that tells whether a time lies in it."""
	time.sleep(0.05)
	before = now()
	step()
	after = now()
	return lambda said, clock=0: before[clock] - tick <= said <= after[clock] + tick

def command(attribute):
	with open(event + "/trigger", "a", encoding="utf-8") as file:
		file.write(trigger + attribute + " if pid >= 1000")

def hit(pid):
	return during(lambda: ctypes.CDLL(None).syscall(number, ctypes.c_ulong(pid)))

def begins(histogram, created, hits):
	begin = histogram.header["begin"]
	yield created(begin["boottime_ns"]) and created(begin["realtime_ns"], 1)
	for entry in histogram.entries:
		pid, = entry["keys"]
		yield pid, hits[pid](entry["begin_boottime_ns"])

created = during(lambda: command(""))
hits = {1000: hit(1000), 1001: hit(1001)}
hit(1000)
print(*begins(*histograms(event + "/hist_jsonl"), created, hits))
created = during(lambda: command(":clear"))
hits = {1000: hit(1000)}
print(*begins(*histograms(event + "/hist_jsonl"), created, hits))' $GETPGID_EVENT $GETPGID)" "True (1001, True) (1000, True)
True (1000, True)" "a histogram begins when it is created or cleared, an entry with the first hit of its key"
: >$GETPGID_EVENT/trigger
is "$(cat sched/sched_waking/hist_jsonl)" "" "without a trigger it is empty"
echo 'hist:keys=pid' >sched/sched_waking/trigger
is "$(py 'histogram, = histograms(sys.argv[1])
print(sum(entry["values"][0] for entry in histogram.entries) == histogram.trailer["hits"] > 0)' sched/sched_waking/hist_jsonl)" True \
	"while events happen: the sum of the hitcounts is that of the hits"
: >sched/sched_waking/trigger

# --- signs: hist has C's numbers

adj=oom/oom_score_adj_update
for trigger in keys=oom_score_adj.buckets=10 keys=oom_score_adj.log2 'keys=oom_score_adj:vals=(10-oom_score_adj).max' \
	'keys=common_type:vals=(10-oom_score_adj).min,(10-oom_score_adj).max'; do
	echo "hist:$trigger" >>$adj/trigger
done
fire oom -5 4 -12 20
is "$(sed -n 's/.* oom_score_adj: ~ \([^ ]*\).*hitcount: *\([0-9]*\)/\1 \2/p' $adj/hist | sort)" "0-9 1
18446744073709551600-18446744073709551609 1
18446744073709551610-3 1
20-29 1
2^2 1
2^5 1
2^64 2" "negative keys in buckets are shown as in C"
is "$(py 'for histogram in histograms(sys.argv[1]):
	print(sorted((*(key.values() if isinstance(key, dict) else [key]), *entry["values"]) for entry in histogram.entries for key in entry["keys"][:1])
		if histogram.header["keys"][0]["name"] == "oom_score_adj" else histogram.entries[0]["values"])' $adj/hist_jsonl)" \
"[(-16, -7, 1), (-6, -1, 1), (0, 9, 1), (20, 29, 1)]
[(-9223372036854775807, -1, 2), (3, 4, 1), (17, 32, 1)]
[(-12, 1, 22), (-5, 1, 15), (4, 1, 6), (20, 1, -10)]
[4, -10, 22]" "and here as they are, as are differences"
: >$adj/trigger

# --- values without a bucket

echo 'hist:keys=pid:vals=pid.dist=5:buckets(1):size=128' >$GETPGID_EVENT/trigger
py 'import ctypes
getpgid = ctypes.CDLL(None).syscall
for pid in range(1000, 1512):
	getpgid('$GETPGID', ctypes.c_ulong(pid))'
is "$(py 'histogram, = histograms(sys.argv[1])
lost = [entry["values"][1]["no_bucket"] for entry in histogram.entries]
counts = [sum(entry["values"][1]["positive"].values()) + entry["values"][1]["no_bucket"] for entry in histogram.entries]
print(sum(lost) == histogram.trailer["no_bucket"] == 0, set(counts))' $GETPGID_EVENT/hist_jsonl)" "True {1}" "each value has its bucket"
: >$GETPGID_EVENT/trigger
echo 'hist:keys=common_type:vals=pid.dist=5:buckets(1):size=128' >$GETPGID_EVENT/trigger
py 'import ctypes
getpgid = ctypes.CDLL(None).syscall
for pid in range(0, 60000, 13):
	getpgid('$GETPGID', ctypes.c_ulong(pid << 8))'
is "$(py 'histogram, = histograms(sys.argv[1])
of_entry = histogram.entries[0]["values"][1]
print(of_entry["no_bucket"] == histogram.trailer["no_bucket"] > 0, of_entry["no_bucket"])' $GETPGID_EVENT/hist_jsonl)" \
	"True $(sed -n 's/^{.*  without bucket: *//p' $GETPGID_EVENT/hist)" "an entry says how many values of it have none, as hist does"
: >$GETPGID_EVENT/trigger

# --- opening and reading

is "$(io open sched/sched_waking/hist_jsonl w) $(io open sched/sched_waking/hist_jsonl r)" "$(io open sched/sched_waking/hist w) OK" \
	"it is opened as hist is"
is "$(py 'import select
file = open(sys.argv[1])
try:
	select.epoll().register(file)
except PermissionError:
	print("EPERM")' sched/sched_waking/hist_jsonl)" EPERM "it cannot be polled"
reads=$(sed -n 's/^reads: //p' "$TRACING/hist_stats")
cat sched/sched_waking/hist_jsonl task/task_rename/hist_jsonl >/dev/null
is "$(sed -n 's/^reads: //p' "$TRACING/hist_stats")" $((reads + 2)) "hist_stats counts its readers"
mkdir "$TRACING/instances/rhist_j"
echo 'hist:keys=pid' >"$TRACING/instances/rhist_j/events/$GETPGID_EVENT/trigger"
fire getpgid 7:3
is "$(py 'print([histogram.trailer["hits"] for path in sys.argv[1:] for histogram in histograms(path)])' \
	"$TRACING/instances/rhist_j/events/$GETPGID_EVENT/hist_jsonl" $GETPGID_EVENT/hist_jsonl)" "[3]" "each instance has its own"
rmdir "$TRACING/instances/rhist_j"

# --- 131,072 entries

echo 'hist:keys=pid:vals=pid.max:sort=pid:size=131072 if pid >= 1000' >$GETPGID_EVENT/trigger
py 'import ctypes
getpgid = ctypes.CDLL(None).syscall
for pid in range(1000, 1000 + 131072):
	getpgid('$GETPGID', ctypes.c_ulong(pid))'
is "$(py 'histogram, = histograms(sys.argv[1])
print(len(histogram.entries), histogram.trailer["entries"], histogram.trailer["dropped"])
print([entry["keys"][0] for entry in histogram.entries] == list(range(1000, 1000 + 131072)))
print(all(entry["values"] == [1, entry["keys"][0]] for entry in histogram.entries))' $GETPGID_EVENT/hist_jsonl)" "131072 131072 0
True
True" "all of 131,072 entries, in their order"
is "$(py 'file = os.open(sys.argv[1], os.O_RDONLY)
part = os.read(file, 100000).decode()
*whole, rest = part.split("\n")
print(all(json.loads(line)["type"] != "trailer" for line in whole), rest != "")
os.system("echo \"!hist:keys=pid:vals=pid.max:sort=pid\" >>" + sys.argv[2])
while more := os.read(file, 100000):
	part += more.decode()
lines = part.splitlines()
print(len(lines), json.loads(lines[-1])["shown"])' $GETPGID_EVENT/hist_jsonl $GETPGID_EVENT/trigger)" "True True
131074 131072" "who stops has no trailer; who goes on has it, also if the trigger is gone"
clean
finish
