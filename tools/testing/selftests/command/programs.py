# SPDX-License-Identifier: GPL-2.0
"""
Stacks of programs with the names of their functions, in recipes: of a program whose functions
call each other in a known way, so many times, or for so long. It is gone when its stacks are
shown.
"""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import time

import otlp
from instance import has_begun, until
from kinds import kinds
from receiver import Receiver, free_port
from scrape import Server, soon
from tap import finish, ok, skip

RHIST = os.environ["RHIST_COMMAND"]
OUT = os.environ["OUT"]
WORK = f"{os.environ.get('TMPDIR', '/tmp')}/programs.{os.getpid()}"
HAVE_PROBES = os.path.exists(f"{os.environ['KERNEL']}/kprobe_events")
# User-mode Linux has the registers of a program from its last call, also in a sample.
HAVE_SAMPLES = HAVE_PROBES
CALLS = 321


class Run:
    """A recipe, and the load that it measures."""

    def __init__(self, words, kind, *arguments):
        self.comm = f"nested_{kind}"
        shutil.copy(f"{OUT}/nested", f"{WORK}/{self.comm}")
        self.load = subprocess.Popen([f"{WORK}/{self.comm}", kind, *map(str, arguments)], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)
        self.out, self.err = open(f"{WORK}/out", "w+", encoding="utf-8"), open(f"{WORK}/err", "w+", encoding="utf-8")
        self.words = [*words, "-c", self.comm]
        self.process = subprocess.Popen([RHIST, *self.words], stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err)
        until(lambda: self.process.poll() is not None or has_begun(self.process))
        # Some hits more, for files that the first ones did not lead to.
        time.sleep(1)

    def go(self):
        """Lets the load do its work, to its end. Returns its output."""
        return self.load.communicate("\n", timeout=300)[0]

    def end(self):
        """Ends the run. Returns its output."""
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(timeout=300)
        self.out.seek(0)
        self.err.seek(0)
        text, errors = self.out.read(), self.err.read()
        ok(status == 0, f"rhist {' '.join(self.words)}", status, errors)
        return text


def folded(text):
    """Returns the number for each stack, the outermost function first."""
    lines = (line.rsplit(" ", 1) for line in text.splitlines())
    return {tuple(stack.split(";")): int(count) for stack, count in lines}


def has(stack, *functions):
    """Returns whether these functions call each other in a stack."""
    return any(stack[n:n + len(functions)] == functions for n in range(len(stack)))


def calls(name, *options):
    """Each call is counted, by all of its functions, when the program is gone."""
    run = Run(["count", "syscalls:sys_enter_getpgid", "--by", "comm,ustack", "--format", "folded", *options], "calls", CALLS)
    run.go()
    time.sleep(0.5)
    stacks = folded(run.end())
    found = {stack: count for stack, count in stacks.items() if "called_inner" in stack}
    ok(list(found.values()) == [CALLS], f"{name}: each call has the same stack", found or stacks)
    stack = next(iter(found), ())
    ok(has(stack, "main", "called_outer", "called_middle", "called_inner"), f"{name}: of all its functions", stack)
    ok(stack[:1] == (run.comm,) and stack[1:2] == ("_start",), f"{name}: from the first one", stack)
    ok("getpgid" in stack[-1], f"{name}: to the one that called the kernel", stack)
    return stack


def recorded():
    """A recording has the names."""
    file = f"{WORK}/recording"
    run = Run(["record", file, "count", "syscalls:sys_enter_getpgid", "--by", "ustack"], "calls", CALLS)
    run.go()
    # The next interval has all.
    time.sleep(2)
    run.end()
    text = subprocess.run([RHIST, "report", file, "--format", "folded"], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = {stack: count for stack, count in folded(text).items() if "called_inner" in stack}
    ok(list(found.values()) == [CALLS], "a recording has each call with the names of its functions", text)


def page():
    """The page for people has the innermost function first."""
    run = Run(["count", "syscalls:sys_enter_getpgid", "--by", "ustack"], "calls", CALLS)
    run.go()
    text = run.end()
    ok(re.search(r"\n +called_inner\n +called_middle\n +called_outer\n +main\n", text), "people see the functions", text)


def sleeps():
    """Off-CPU time belongs to the function that sleeps."""
    number, ms = 20, 30
    run = Run(["offcputime", "--format", "json"], "sleeps", number, ms)
    took = int(run.go())
    time.sleep(0.5)
    text = run.end()
    total = json.loads(text.splitlines()[-1])
    rows = []
    for row in total["rows"]:
        comm, program, kernel = row["keys"]
        functions = [frame["symbol"] for frame in program["stack"]]
        if "slept_inner" in functions:
            rows.append((row["hits"], row["values"][0]["sum"], functions, [frame["symbol"] for frame in kernel["stack"]]))
    ok(sum(hits for hits, *_ in rows) >= number, "each sleep is counted", rows or text)
    spent = sum(spent for _, spent, *_ in rows)
    ok(number * ms * 1000000 <= spent <= took, f"for its time: {spent} ns of {took}", rows)
    ok(rows and all(has(tuple(functions), "slept_inner", "slept_outer", "main") for _, _, functions, _ in rows),
       "by its functions", rows)
    ok(rows and all("schedule" in " ".join(kernel) for *_, kernel in rows), "and by the kernel's", rows)


def shares():
    """Samples belong to the function that runs."""
    run = Run(["profile", "-F", "499", "--format", "folded"], "spins", 6)
    spent = {name: int(ns) for name, ns in (line.split() for line in run.go().splitlines())}
    stacks = folded(run.end())
    samples = {name: sum(count for stack, count in stacks.items() if name in stack) for name in spent}
    all_samples, all_spent = sum(samples.values()), sum(spent.values())
    ok(all_samples > 200, f"there are samples: {samples}", stacks)
    for name, ns in spent.items():
        share = ns / all_spent
        sigma = math.sqrt(share * (1 - share) / max(all_samples, 1))
        got = samples[name] / max(all_samples, 1)
        ok(abs(got - share) <= 5 * sigma, f"{name} has its share: {got:.3f} of samples, {share:.3f} of the time", samples)
    whole = sum(count for stack, count in stacks.items() if has(stack, "_start") and has(stack, "main", "spin_all"))
    ok(whole >= 0.98 * all_samples, f"{whole} of {all_samples} stacks are whole", stacks)


def own():
    """Processes that read files do not count, and names that come late do not make the run longer."""
    command = [RHIST, "count", "raw_syscalls:sys_enter", "--by", "comm,ustack", "--format", "json", "-i", "1", "-d", "4"]
    with open(f"{WORK}/out", "w+", encoding="utf-8") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL)
        number = 0
        while process.poll() is None:
            number += 1
            name = f"{WORK}/other_{number}"
            shutil.copy(f"{OUT}/nested", name)
            subprocess.run([name, "calls", "10"], stdin=subprocess.DEVNULL, check=True)
            os.unlink(name)
        out.seek(0)
        lines = [json.loads(line) for line in out]
    total = lines[-1]
    comms = {row["keys"][0] for row in total["rows"]}
    ok(process.returncode == 0 and total["type"] == "total", f"a run beside {number} programs", process.returncode)
    ok(any(comm.startswith("other_") for comm in comms), "which it counts", comms)
    ok(not any(comm.startswith("rhist") or comm == "exe" for comm in comms), "without its own processes", comms)
    # An emulated processor is busy for longer.
    ok(HAVE_PROBES or total["seconds"] < 5, f"in {total['seconds']} s", [line["seconds"] for line in lines])
    hits = sum(row["hits"] for line in lines[:-1] for row in line["rows"])
    ok(hits == sum(row["hits"] for row in total["rows"]), "its intervals add up")


def served():
    """A service without capabilities labels series with the functions."""
    server, comm = Server(WORK), "nested_served"
    server.write(f"""[histogram.calls]
budget = "100%"
count = "syscalls:sys_enter_getpgid --by ustack --comm {comm}"
""")
    server.start()
    shutil.copy(f"{OUT}/nested", f"{WORK}/{comm}")
    with subprocess.Popen([f"{WORK}/{comm}", "calls", str(CALLS)], stdin=subprocess.PIPE) as load:
        # The first ones, until the files have been read, end early.
        known = soon(lambda: any("_start;" in str(labels) for _, labels in server.scrape()))
        load.communicate(b"\n", timeout=300)

    def found():
        samples = server.scrape().items()
        return {labels: value for (name, labels), value in samples if name == "rhist_calls_total" and "called_inner" in str(labels)}

    ok(known and soon(lambda: sum(found().values()) == CALLS, 20), "a service counts each call", found(), server.said())
    labels = [str(labels) for labels in found()]
    ok(labels and all(re.search(r"_start;.*;main;called_outer;called_middle;called_inner;", one) for one in labels),
       "with the names of its functions", labels)

    def has_list():
        # A file may be closed meanwhile.
        listed = subprocess.run(["ls", "-l", f"/proc/{server.process.pid}/fd"], stdout=subprocess.PIPE, text=True, check=False)
        return "/user_objects/list\n" in listed.stdout

    before = has_list()
    ok(before and server.reload() and not has_list(), "and holds no file of the module after a reload", before)
    server.stop()


def pushed():
    """Profiles have each call, with its functions and the name of the task."""
    receiver = Receiver(free_port())
    words = ["push", "--profiles", "--to", f"127.0.0.1:{receiver.port}", "--queue", f"{WORK}/queue"]
    run = Run([*words, "-i", "1", "count", "syscalls:sys_enter_getpgid", "--by", "comm,ustack"], "calls", CALLS)
    run.go()
    time.sleep(0.5)
    run.end()
    ok(receiver.paths == {"/v1development/profiles"}, "profiles have a path of their own", receiver.paths)
    found = list(otlp.samples(receiver.take()))
    calls_ = [sample for sample in found if ("called_inner", "native") in sample[2]]
    ok(sum(value for *_, value in calls_) == CALLS, "profiles have each call", calls_ or found)
    ok(all(kind == ("count.hits", "count") and attributes == {"comm": run.comm} for kind, attributes, *_ in calls_),
       "as hits of the task", calls_)
    functions = [[name for name, _ in stack] for _, _, stack, _ in calls_]
    ok(functions and all(has(tuple(reversed(stack)), "main", "called_outer", "called_middle", "called_inner") and stack[-1] == "_start"
                         for stack in functions), "by all of its functions, the innermost first", functions)
    receiver.end()


def refused():
    """A stack of a program where none can be had."""
    for words, why in [
            (["runqlat", "--by", "ustack"], "ustack"),
            (["count", "sched:sched_switch", "--by", "ustack", "--backend", "c"], "no stacks of programs"),
            (["push", "--profiles", "count", "sched:sched_switch", "--by", "comm"], "profiles are of stacks"),
    ]:
        done = subprocess.run([RHIST, *words, "-d", "1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        ok(done.returncode != 0 and why in done.stdout, f"rhist {' '.join(words)} is refused", done.stdout)


def main():
    os.mkdir(WORK)
    os.environ["RHIST_RUN"] = f"{WORK}/run"
    try:
        calls("count")
        recorded()
        page()
        kinds(WORK)
        own()
        refused()
        if HAVE_SAMPLES:
            sleeps()
            shares()
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            served()
            pushed()
        else:
            skip("offcputime, profile, serve", "no probes, no registers of programs in samples, and no network")
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
    finish()


main()
