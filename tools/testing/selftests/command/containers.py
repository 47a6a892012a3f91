# SPDX-License-Identifier: GPL-2.0
"""
Counts by control groups, containers and units of systemd, and of one of these only: loads of
known size run in groups with the names that runtimes give them. Two containers that share a
CPU wait behind each other, as often as the kernel says that they were preempted.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import time

from instance import counts_hits, folder_of, until
from tap import finish, ok

RHIST = os.environ["RHIST_COMMAND"]
KERNEL, TRACING = os.environ["KERNEL"], os.environ["TRACING"]
WORK = f"{os.environ.get('TMPDIR', '/tmp')}/containers.{os.getpid()}"
TOP = "/sys/fs/cgroup"
# As Docker names containers, without and with systemd.
ONE, OTHER = "1f0ce8a65b3d" + "0" * 52, "2e" * 32
FIRST, SECOND = f"/docker/{ONE}", f"/system.slice/docker-{OTHER}.scope"
BELOW, UNIT = f"{FIRST}/init.scope", "/system.slice/rhist_test.service"
HITS = {FIRST: 3, BELOW: 4, SECOND: 5, UNIT: 6}
RENAME = ["count", "task:task_rename", "--where", 'newcomm == "rhist_group"']


def same(got, expected, name):
    ok(got == expected, name, f"expected: {expected}", f"got:      {got}")


def enter(group):
    with open(f"{TOP}{group}/cgroup.procs", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))


def within(group, what):
    """Forks a process that does something in a group. Returns its process id."""
    child = os.fork()
    if child:
        return child
    try:
        enter(group)
        what()
    finally:
        os._exit(0)


def rename(count):
    for _ in range(count):
        with open("/proc/self/comm", "w", encoding="ascii") as file:
            file.write("rhist_group")


def hit():
    for group, count in HITS.items():
        os.waitpid(within(group, lambda count=count: rename(count)), 0)


def measure(event, load, *command):
    """Runs a load while rhist measures. Returns its status and output."""
    process = subprocess.Popen([RHIST, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: process.poll() is not None or counts_hits(folder_of(process, TRACING), event))
    if process.poll() is None:
        load()
        process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    return process.returncode, out, err


def table(event, load, *command):
    """Returns the rows of a measurement: by its keys, the hits."""
    status, out, err = measure(event, load, *command, "--format", "json")
    if status:
        raise RuntimeError(err)
    total = json.loads(out.splitlines()[-1])
    return {tuple(text(key) for key in row["keys"]): row["hits"] for row in total["rows"]}


def refused(name, why, *command):
    run = subprocess.run([RHIST, *command, "-d", "1"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300)
    ok(run.returncode == 2 and why in run.stderr, name, run.returncode, run.stderr)


def text(key):
    return key["text"] if isinstance(key, dict) else key


def renamed(*options):
    return table("task/task_rename", hit, *RENAME, *options)


def by_group():
    same(renamed("--by", "cgroup"), {(group,): count for group, count in HITS.items()}, "--by cgroup: hits of each group")
    of_first = HITS[FIRST] + HITS[BELOW]
    expected = {(FIRST,): of_first, (SECOND,): HITS[SECOND], (UNIT,): HITS[UNIT]}
    same(renamed("--by", "container"), expected, "--by container: with the groups below it")
    _, out, _ = measure("task/task_rename", hit, *RENAME, "--by", "container")
    shown = {words[0] for words in map(str.split, out.splitlines()) if words}
    names = {ONE[:12], OTHER[:12], "rhist_test.service"}
    ok(names <= shown, "people see the first digits, and units", out)
    same(renamed("--cgroup", FIRST), {(): of_first}, "--cgroup: only a group, and those below it")
    same(renamed("--container", ONE[:6], "--by", "cgroup"), {(FIRST,): HITS[FIRST], (BELOW,): HITS[BELOW]}, "--container: by its first digits")
    for option, value, why in (
        ("--container", "3c", "no control group below /sys/fs/cgroup"),
        ("--container", "", "no control group below /sys/fs/cgroup"),
        ("--cgroup", "/nosuch", "the kernel rejected this"),
        ("--cgroup", "docker", "expected a path below the root of cgroup v2"),
    ):
        refused(f"{option} {value!r} is refused", why, *RENAME, option, value)
    if os.path.exists(f"{KERNEL}/events/task/task_rename"):
        refused("C cannot do that, which is said", "load rhist", *RENAME, "--by", "container", "--backend", "c")
    refused("nor can a filter know the group of another task", "count --by cgroup instead", "runqlat", "--cgroup", FIRST)


def spin(seconds, path):
    """Uses CPU 0, and notes how often it was preempted meanwhile: it waits each time."""
    os.sched_setaffinity(0, [0])

    def preempted():
        return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw

    begin, end = preempted(), time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    with open(path, "w", encoding="ascii") as file:
        file.write(str(preempted() - begin))


def fight():
    """Two containers on one CPU. Returns how often each was preempted."""
    paths = {group: f"{WORK}/{group.replace('/', '_')}" for group in (FIRST, SECOND)}
    children = [within(group, lambda path=path: spin(1.5, path)) for group, path in paths.items()]
    for child in children:
        os.waitpid(child, 0)
    turns = {}
    for group, path in paths.items():
        with open(path, encoding="ascii") as file:
            turns[group] = int(file.read())
    return turns


def who_waits():
    turns = {}
    for name, options in (("", []), (", through a synthetic event", ["--faster", "1h"])):
        rows = table("sched/sched_switch", lambda: turns.update(fight()), "runqlat", "--by", "victim,culprit", *options)
        for victim, culprit in ((FIRST, SECOND), (SECOND, FIRST)):
            waits = sum(hits for keys, hits in rows.items() if keys[0] == victim)
            # It is also switched when it enters the group, and after it has noted the number.
            ok(turns[victim] <= waits <= turns[victim] + 50, f"a container waits as often as it is preempted{name}", victim, waits, turns, rows)
            behind = rows.get((victim, culprit), 0)
            ok(behind >= 3, f"also behind the other one{name}", victim, rows)


def main():
    os.mkdir(WORK)
    mounted = os.path.exists(f"{TOP}/cgroup.procs")
    if not mounted:
        subprocess.run(["mount", "-t", "cgroup2", "none", TOP], check=True)
    try:
        made = [group for group in ("/docker", "/system.slice", *HITS) if not os.path.exists(f"{TOP}{group}")]
        for group in made:
            os.mkdir(f"{TOP}{group}")
        by_group()
        who_waits()
        for group in reversed(made):
            os.rmdir(f"{TOP}{group}")
    finally:
        if not mounted:
            subprocess.run(["umount", "-l", TOP], check=False)
        shutil.rmtree(WORK)
    finish()


if __name__ == "__main__":
    main()
