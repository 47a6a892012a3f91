# SPDX-License-Identifier: GPL-2.0
"""
Recipes beside their peers: the tools of bcc's libbpf-tools that answer the same question.

Both watch the same load at the same time, so they see the same events. The counts of rhist have
to equal the known counts of the load. The peer's count has to be the same, or to differ by the
number in the row of the table, for the reason that the manual page of the recipe gives (`peers`
in its file). Peers print powers of two, or a line for each event: a quantile of rhist has to be
in the bucket of the peer's, or in one beside it.

To compare one more recipe, add a row to a group at the end of this file, and `[[peers]]` to the
recipe.
"""

import fcntl
import os
import pty
import re
import shutil
import signal
import subprocess
import threading
import time
import tomllib

from recipes import MS, OUT, TOP, WORK, Run
from tap import finish, ok, skip

ROOT = os.environ.get("RHIST_PEERS", "")
RECIPES = f"{TOP}/../../../rhist/recipes"
COMPARED = set()
US = 1000


class Said:
    """Result of a tool for one key: count, total and buckets."""

    def __init__(self, count=None, total=None, buckets=()):
        self.buckets = sorted(buckets)
        self.count = sum(n for _, _, n in self.buckets) if count is None and self.buckets else count
        self.total = total
        self.largest = None

    def add(self, value, unit):
        """Adds a value of rhist, from one more row with this key."""
        self.total += value["sum"] * unit
        buckets = [(low * unit, high * unit, n) for low, high, n in value["buckets"]]
        if zeros := value["count"] - sum(n for _, _, n in buckets):
            buckets.append((0, 0, zeros))
        self.buckets = sorted([*self.buckets, *buckets])
        if value["max"] is not None:
            self.largest = max(self.largest or 0, value["max"] * unit)

    def quantile(self, part):
        """
        Returns the bucket of a quantile; for 1, the bucket of the largest value, or the value
        itself.
        """
        if part == 1 and self.largest is not None:
            return self.largest, self.largest
        rank, seen = max(1, -(-part * self.count // 1)), 0
        for low, high, n in self.buckets:
            seen += n
            if seen >= rank:
                return low, high
        return None


def of_values(values):
    """Result of a tool that prints a line for each event."""
    values = list(values)
    return Said(len(values), sum(values), [(value, value, 1) for value in values])


# --- parsers of the peers' output: {key: Said}, in nanoseconds

UNITS = {"nsec": 1, "nsecs": 1, "usec": US, "usecs": US, "msecs": MS, "Kbytes": 1024}


def histograms(text):
    """
    Parses the histograms of print_log2_hist(), by the key behind the `=` of the line in front.
    """
    found, key, unit = {}, "", 1
    for line in text.splitlines():
        if match := re.match(r"\s*(\S+)\s*: count\s+distribution", line):
            unit = UNITS[match[1]]
            found[key] = []
        elif match := re.match(r"\s*(\d+) -> (\d+)\s*: (\d+)", line):
            low, high, n = map(int, match.groups())
            if n:
                # Times are rounded down, so a bucket reaches up to its next unit.
                found[key].append((low * unit, (high + 1) * unit - 1, n))
        elif line.strip() and "Hit Ctrl-C" not in line:
            key = line.split("=")[-1].strip()
    return {key: Said(buckets=buckets) for key, buckets in found.items() if buckets}


def lines(text, pattern):
    return (match.groups() for match in re.finditer(pattern, text, re.M))


# syscount's own names of system calls.
RENAMED = {"fstat": "newfstat"}


def by_syscall(text):
    """Parses syscount: a name, a number, with -L the time in microseconds."""
    return {RENAMED.get(name, name): Said(int(count), float(time) * US if time else None)
            for name, count, time in lines(text, r"^([a-z]\w+) +(\d+)(?: +([\d.]+))?$")}


def only(key, found):
    return {key: found[key]} if key in found else {}


def stacks(text):
    """Parses offcputime and wakeuptime: below each stack, its time in microseconds."""
    times = [int(time) * US for time, in lines(text, r"^\s+(\d+)$")]
    return {"": Said(total=sum(times))} if times else {}


# --- what runs

class Peer:
    """A running peer, on a terminal, so that it prints without buffering."""

    def __init__(self, words, program=None):
        """By default, the program is the tool of bcc with this name."""
        self.words = words
        program = program or f"{ROOT}/usr/sbin/{words[0]}-libbpf"
        ours, theirs = pty.openpty()
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{ROOT}/usr/lib/x86_64-linux-gnu"}
        self.process = subprocess.Popen([program, *words[1:]], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                                        env=environment, start_new_session=True)
        os.close(theirs)
        self.text = ""
        self.reader = threading.Thread(target=self.read, args=(ours,), daemon=True)
        self.reader.start()

    def read(self, file):
        while True:
            try:
                data = os.read(file, 65536)
            except OSError:
                # All users of the terminal have closed it.
                break
            self.text += data.decode(errors="replace").replace("\r", "")
        os.close(file)

    def fail(self):
        raise RuntimeError(f"{' '.join(self.words)}: {self.process.returncode} {self.text}")

    def wait(self):
        """Waits until it has printed its first line: then it listens."""
        end = time.monotonic() + 120
        while not self.text.count("\n"):
            if self.process.poll() is not None or time.monotonic() > end:
                self.fail()
            time.sleep(0.1)

    def stop(self):
        self.process.send_signal(signal.SIGINT)

    def said(self):
        self.process.wait(180)
        self.reader.join(10)
        return self.text


class Load:
    """A program of lib/load.c that waits for its start, so that its pid is known before."""

    def __init__(self, comm, kind, count, arg="0", cpu=None):
        self.comm = comm
        pinned = [] if cpu is None else ["taskset", "-c", str(cpu)]
        self.process = subprocess.Popen(
            [*pinned, "sh", "-c", 'read go && exec "$@"', "sh", f"{WORK}/load", comm, kind, str(count), str(arg)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self):
        """Starts the load. Returns its own numbers."""
        said = self.process.communicate("\n")[0]
        if self.process.returncode:
            raise RuntimeError(f"{self.comm}: {self.process.returncode}")
        return {name: int(number) for name, number in (line.split() for line in said.splitlines())}


class Interrupts:
    """
    Interrupts without other sources: two seconds of update interrupts of the clock on the
    mainboard.
    """

    RTC_UIE_ON, RTC_UIE_OFF = 0x7003, 0x7004

    @staticmethod
    def count():
        with open("/proc/interrupts", encoding="ascii") as file:
            cpus = len(next(file).split())
            return sum(sum(map(int, line.split()[1 : cpus + 1])) for line in file if line.endswith(" rtc0\n"))

    def run(self):
        before = self.count()
        with open("/dev/rtc0", "rb", buffering=0) as clock:
            fcntl.ioctl(clock, self.RTC_UIE_ON)
            for _ in range(2):
                clock.read(8)
            fcntl.ioctl(clock, self.RTC_UIE_OFF)
        return {"interrupts": self.count() - before}


class Row:
    """
    A recipe, a peer, and the load that both watch.

    recipe, peer    command lines, in which {pid} is the pid of the load
    read            makes {key: Said} of the peer's output
    key             makes the same key of the keys of a row of rhist, or None for a row that is
                    not compared
    truth           the right count by key: a function of the load's numbers, a count, or the
                    least and the most
    more            by how many rhist counts more than the peer, by key; or the least and the most
    alone           keys that only rhist has
    apart           by what part the totals may differ
    unit            of rhist's values, in nanoseconds
    shown           how values are printed
    """

    def __init__(self, recipe, peer, load, read, truth, *, key=lambda *keys: "", more=None, alone=(), apart=0.25, unit=1,
                 shown=None):
        self.recipe, self.peer, self.load, self.read, self.truth = recipe, peer, load, read, truth
        self.key, self.more, self.alone, self.apart, self.unit = key, more or {}, alone, apart, unit
        self.shown = shown or duration
        self.name = f"{recipe.split()[0]} beside {peer.split()[0]}"
        COMPARED.add(self.name)

    def start(self):
        pid = self.load.process.pid if isinstance(self.load, Load) else 0
        self.runs = [Run(self.recipe.format(pid=pid).split(), "rhist"), Peer(self.peer.format(pid=pid).split())]

    def of_rhist(self, total):
        found = {}
        for keys, row in total.rows.items():
            key = self.key(*keys)
            if key is None:
                continue
            said = found.setdefault(key, Said(0, 0))
            said.count += row["hits"]
            for value in row["values"][:1]:
                if isinstance(value, dict):
                    said.add(value, self.unit)
        return found

    def judge(self, known):
        total = self.runs[0].total()
        ours, text = self.of_rhist(total), self.runs[1].said()
        theirs = self.read(text)
        wrong = []
        for key in sorted({*ours, *theirs} | self.truth.keys()):
            our, their = ours.get(key, Said(0)), theirs.get(key, Said(0))
            wrong += self.counts(key, our, their, known)
            if key in self.truth or not key:
                table(self, key, our, their)
                wrong += self.times(key, our, their)
        losses = {name: n for name, n in total.losses.items() if n and name != "unresolved"}
        ok(not losses, f"{self.name}: nothing is lost", losses)
        ok(ours and theirs, f"{self.name}: both have counted", total.all["rows"][:3], text)
        ok(not wrong, f"{self.name}: they say the same, but for what the manual says", *wrong, known, text)

    @staticmethod
    def range(number):
        return number if isinstance(number, tuple) else (number, number)

    def counts(self, key, our, their, known):
        if key in self.truth:
            truth = self.truth[key]
            least, most = self.range(truth(known) if callable(truth) else truth)
            if not least <= our.count <= most:
                yield f"{key}: rhist counts {our.count}, and it were {least} to {most}"
        if key in self.alone and their.count:
            yield f"{key}: the peer counts {their.count}"
        least, most = self.range(self.more.get(key, 0))
        if key not in self.alone and their.count is not None and not least <= our.count - their.count <= most:
            yield f"{key}: rhist counts {our.count}, the peer {their.count}"

    def times(self, key, our, their):
        if our.total and their.total and abs(our.total - their.total) > self.apart * max(our.total, their.total):
            yield f"{key}: rhist adds up to {our.total}, the peer to {their.total}"
        for name, part in QUANTILES:
            if our.buckets and their.buckets:
                low, high = our.quantile(part)
                # Few values may lie at the border of the quantile.
                least, most = their.quantile(part - NEAR * (part < 1))[0], their.quantile(min(part + NEAR, 1))[1]
                # The bucket beside it counts as equal: powers of two. If the peer has the value
                # itself, the slack covers the time between the two.
                slack = SLACK if name != "p50" else 0
                if high < least / 2 - slack or low > most * 2 + slack:
                    yield f"{key}: {name} of rhist is {low} to {high}, that of the peer {least} to {most}"


QUANTILES = (("p50", 0.5), ("p99", 0.99), ("max", 1))
NEAR = 0.05
# An emulated processor may stand still after one of the two has taken the time, and before the
# other one.
SLACK = 10 * MS


def duration(ns):
    unit, name = next((unit, name) for unit, name in ((MS, "ms"), (US, "µs"), (1, "ns")) if ns >= unit or unit == 1)
    return f"{ns / unit:,.{max(0, 2 - len(str(int(ns / unit))) + 1)}f} {name}"


def number(n):
    return f"{n:,.0f}"


def table(row, key, our, their):
    """Prints both results beside each other, in the form of Documentation/command.rst."""
    for who, said in ((row.recipe, our), (row.peer, their)):
        cells = ["–" if said.count is None else f"{said.count:,}"]
        for _, part in QUANTILES:
            low, high = said.quantile(part) if said.buckets and said.count else (None, None)
            if low is None:
                cells.append("–")
            elif said is our or low == high:
                cells.append(row.shown((low + high) / 2 if said.largest is None else min((low + high) / 2, said.largest)))
            else:
                cells.append(f"{row.shown(low)} – {row.shown(high)}")
        cells.append(row.shown(said.total) if said.total else "–")
        print("#", " ".join(f"{cell:20}" for cell in cells), f"{who.replace(' -p {pid}', '')}: {key}".strip(" :"), flush=True)


def group(*rows):
    """Compares them at once."""
    began = time.monotonic()
    try:
        for row in rows:
            row.start()
        for row in rows:
            for run in row.runs:
                run.wait()
        time.sleep(1)
        ready = time.monotonic()
        known = {row: row.load.run() for row in rows}
        loaded = time.monotonic()
        for row in rows:
            for run in row.runs:
                run.stop()
        for row in rows:
            row.judge(known[row])
        print(f"# {ready - began:.1f} s to begin, {loaded - ready:.1f} s of loads, {time.monotonic() - loaded:.1f} s to end")
    finally:
        for row in rows:
            for run in getattr(row, "runs", ()):
                if run.process.poll() is None:
                    run.process.kill()


# --- the table

def first(key, *_):
    return key


def tasks():
    hog = subprocess.Popen(["taskset", "-c", "0", "sh", "-c", "while :; do :; done"])
    true = shutil.copy("/bin/true", f"{WORK}/true")
    try:
        group(
            Row("syscount -p {pid}", "syscount -p {pid} -T 1000", Load("ld_calls", "getpgid", 1234), by_syscall,
                {"getpgid": 1234, "exit_group": 1}, key=first, alone=["exit_group"], more={"read": -1}),
            Row("syscall-latency -p {pid}", "syscount -L -p {pid} -T 1000", Load("ld_naps", "sleep", 20, 20000), by_syscall,
                {"clock_nanosleep": 20}, key=first),
            # The task is hardly ever preempted on its way to sleep.
            Row("runqlat -p {pid}", "runqlat -p {pid}", Load("ld_wait", "getpgid", 10000, cpu=0), histograms, {"": (10, 1000)},
                more={"": (0, 3)}),
            Row("cpudist -p {pid} --by state", "cpudist -p {pid}", Load("ld_spin", "spin", 20, 10000, cpu=0),
                lambda text: {"R": histograms(text)[""]}, {"R": (1, 1000), "S": (20, 40)}, key=lambda state: state[0], alone=["S", "D", "X", "Z"],
                more={"R": (0, 5)}),
            Row("offcputime -p {pid} --by comm", "offcputime -p {pid}", Load("ld_off", "sleep", 20, 20000), stacks, {}),
            Row("wakeuptime -p {pid} --by comm", "wakeuptime -p {pid}", Load("ld_wake", "sleep", 20, 20000), stacks, {}),
            Row("funclatency hrtimer_nanosleep -p {pid}", "funclatency -u -p {pid} hrtimer_nanosleep",
                Load("ld_func", "sleep", 20, 20000), histograms, {"": 20}),
            Row("execs", "execsnoop", Load("ld_exec", "exec", 9, true),
                lambda text: {true: Said(len(list(lines(text, rf"^true +\d+ +\d+ +0 +{true}"))))}, {true: 9},
                key=lambda file: file if file == true else None),
            Row("hardirqs", "hardirqs -d", Interrupts(), lambda text: only("rtc0", histograms(text)),
                {"rtc0": lambda known: known["interrupts"]}, key=lambda irq: irq if irq == "rtc0" else None),
        )
    finally:
        hog.kill()


OPERATIONS = {"Sync-Read": "read", "Sync-Write": "write", "PreFlush-Flush": "flush"}


def by_operation(text):
    return {OPERATIONS.get(key, key): said for key, said in histograms(text).items()}


def block():
    options = f"nr_devices=1 gb=1 irqmode=2 completion_nsec={20 * MS} queue_mode=2 memory_backed=1 cache_size=8"
    subprocess.run(["modprobe", "null_blk", *options.split()], check=True)
    subprocess.run(["udevadm", "settle"], check=False)
    disk = "/dev/nullb0"
    try:
        group(
            Row("biolatency --by op", "biolatency -D -F", Load("ld_read", "read", 25, disk), by_operation,
                {"read": 50, "write": 5, "flush": 5}, key=first),
            # A flush is requested by a write of 0 bytes.
            Row("biolatency --by op --queued", "biolatency -D -F -Q", Load("ld_sync", "sync", 5, disk), by_operation,
                {"read": 50, "write": 10, "flush": 0}, key=first, more={"write": 5, "flush": -5}),
            Row("bitesize -c ld_size", "bitesize -c ld_size", Load("ld_size", "read", 25, disk), histograms, {"ld_size": 25}, key=first,
                shown=number),
        )
    finally:
        subprocess.run(["rmmod", "null_blk"], check=False)


def connections(text, pattern):
    """By whether anybody listened at the port: its number, and milliseconds."""
    found = {}
    for port, ms in lines(text, pattern):
        found.setdefault(listens(port), []).append(float(ms) * MS)
    return {key: of_values(values) for key, values in found.items()}


def listens(port):
    return "refused" if port == "1" else "established"


def softirqs(text):
    """Parses -C: a name, nanoseconds, and a count."""
    found = {name: Said(int(count), int(time)) for name, time, count in lines(text, r"^([a-z_]+) +(\d+) +(\d+)$")}
    return {name: said for name, said in found.items() if name.startswith("net_")}


def network():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run("tc qdisc add dev lo root netem delay 20ms".split(), check=True)
    try:
        group(
            Row("tcpconnlat", "tcpconnlat", Load("ld_connect", "connect", 5),
                lambda text: connections(text, r"^\d+ +\S+ +4 +\S+ +\S+ +(\d+) +([\d.]+)$"),
                {"established": 6, "refused": 0}, key=lambda address, port: listens(port), more={"refused": -3}),
            # Both ends of each.
            Row("tcplife", "tcplife", Load("ld_refuse", "refuse", 3),
                lambda text: connections(text, r"^\d+ +\S+ +\S+ +\d+ +\S+ +(\d+) +\S+ +\S+ +([\d.]+)$"),
                {"established": 12, "refused": 0}, key=lambda address, port: listens(port), more={"refused": -3}),
            Row("tcprtt", "tcprtt", Load("ld_rtt", "send", 10, 1000), lambda text: {"": histograms(text)["******"]},
                {"": (10, 24)}, unit=US),
            # The verifier of newer kernels refuses its histograms.
            Row("softirqs", "softirqs -C -N", Load("ld_soft", "sleep", 10, 30000), softirqs, {"net_rx": (1, 1000)},
                key=lambda name: name.lower() if name.startswith("NET_") else None, apart=0.5),
        )
    finally:
        subprocess.run("tc qdisc del dev lo root".split(), check=False)


def explained():
    """Names the pairs of recipe and tool that the manual has a text about."""
    for name in sorted(os.listdir(RECIPES)):
        if name.endswith(".toml"):
            with open(f"{RECIPES}/{name}", "rb") as file:
                yield from (f"{name[:-5]} beside {peer['tool']}" for peer in tomllib.load(file).get("peers", ()))


def main():
    if not os.path.exists(f"{ROOT}/usr/sbin/syscount-libbpf"):
        skip("the tools of bcc", "the lab has them not: scripts/lab peers")
        finish()
    os.mkdir(WORK)
    try:
        # In memory, since it is started many times.
        shutil.copy(f"{OUT}/load", f"{WORK}/load")
        tasks()
        block()
        network()
    finally:
        shutil.rmtree(WORK)
    ok(set(explained()) == COMPARED, "the manual explains all that is compared here, and nothing else", set(explained()) ^ COMPARED)
    finish()


if __name__ == "__main__":
    main()
