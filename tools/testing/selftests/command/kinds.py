# SPDX-License-Identifier: GPL-2.0
"""
Stacks of programs of each kind, with the names of their functions: all in one run, each as often
as it was called. Most of their files are not where they were when the run begins.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

from instance import has_begun, until
from tap import ok

RHIST, OUT, TRACING = os.environ["RHIST_COMMAND"], os.environ["OUT"], Path(os.environ["TRACING"])
# As in kinds.c.
COUNT = 57
# Seconds for which the list of files is the same when all have been read.
CALM = 1


class Load:
    """A program of one kind, which waits for lines."""

    def __init__(self, folder, name, words, program="kinds", before=()):
        self.name, self.path = f"kind_{name}", f"{folder}/kind_{name}"
        if not before:
            shutil.copy(f"{OUT}/{program}", self.path)
        self.process = subprocess.Popen([*before, self.path, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self):
        self.process.communicate(timeout=300)
        return self.process.returncode


def replaced(folder):
    """Another program has its path now."""
    load = Load(folder, "replaced", ["plain"])
    other = f"{folder}/other"
    shutil.copy(f"{OUT}/nested", other)
    os.rename(other, load.path)
    return load


def deleted(folder):
    load = Load(folder, "deleted", ["plain"])
    os.unlink(load.path)
    return load


def boxed(folder):
    """
    In a root and namespaces of its own, and linked statically. Outside, another program has that
    path. It makes code, whose names are in a file there, with its number there.
    """
    root = Path(folder) / "root"
    (root / "tmp").mkdir(parents=True)
    inside = root / f"{folder}/kind_boxed".lstrip("/")
    inside.parent.mkdir(parents=True)
    shutil.copy(f"{OUT}/kinds_static", inside)
    shutil.copy(f"{OUT}/nested", f"{folder}/kind_boxed")
    return Load(folder, "boxed", ["memory", "named"], before=["unshare", "--mount", "--propagation", "unchanged", "--pid", "--fork", f"--root={root}"])


def wait_for_files():
    """Waits until the files of all stacks have been read."""
    last, since = None, time.monotonic()

    def is_calm():
        nonlocal last, since
        text = (TRACING / "user_objects" / "list").read_text(encoding="ascii")
        # Files are held for some seconds only.
        now = [line.rsplit(maxsplit=1)[0] + str("rules" in line) for line in text.splitlines()]
        if now != last:
            last, since = now, time.monotonic()
        return time.monotonic() > since + CALM

    until(is_calm, 60)


def stacks_of(text, name):
    """Returns the numbers of a program's stacks, without its name, that were counted."""
    rows = (line.rsplit(" ", 1) for line in text.splitlines())
    stacks = {tuple(stack.split(";")): int(count) for stack, count in rows}
    return {stack[1:]: count for stack, count in stacks.items() if stack[0] == name and "counted" in stack}


def has(stack, functions):
    return any(stack[n:n + len(functions)] == functions for n in range(len(stack)))


def compare(text, name, *parts, last="getpgid"):
    """Compares the stack of a program: each part is functions that call each other."""
    stacks = stacks_of(text, name)
    ok(list(stacks.values()) == [COUNT], f"{name}: each call has the same stack", stacks or text)
    stack = next(iter(stacks), ("",))
    ok(all(has(stack, part) for part in parts), f"{name}: of {parts}", stack)
    ok(stack[0] == "_start" and last in stack[-1], f"{name}: whole", stack)


def kinds(folder):
    """All kinds, in one run."""
    getpgid, vfork = subprocess.check_output([f"{OUT}/kinds", "numbers"], text=True).split()
    library = Load(folder, "library", ["library", f"{OUT}/first.so", f"{OUT}/second.so"])
    loads = [library, Load(folder, "signal", ["signal"]), replaced(folder), deleted(folder), boxed(folder)]
    if vfork != "-1":
        loads.append(Load(folder, "vfork", ["vfork"]))
    command = [RHIST, "count", "raw_syscalls:sys_enter", "--by", "comm,ustack", "--format", "folded",
               "--where", f'comm ~ "kind_*" && (id == {getpgid} || id == {vfork})']
    with open(f"{folder}/out", "w+", encoding="utf-8") as out, open(f"{folder}/err", "w+", encoding="utf-8") as err:
        run = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        until(lambda: run.poll() is not None or has_begun(run))
        wait_for_files()
        library.go_on()
        place = library.process.stdout.readline()
        # A library that nobody has read before, where another one was.
        wait_for_files()
        for load in loads:
            load.go_on()
        ends = [load.end() for load in loads]
        time.sleep(0.5)
        run.terminate()
        run.wait(timeout=300)
        out.seek(0)
        err.seek(0)
        text, errors = out.read(), err.read()
    ok(run.returncode == 0 and not any(ends), "a run beside programs of all kinds", run.returncode, ends, errors)
    ok(place == "same\n", "a library has the addresses of another one", place)
    compare(text, "kind_library", ("main", "counted", "by_library", "library_call", "second", "innermost"))
    compare(text, "kind_signal", ("main", "counted", "by_signal"), ("on_signal", "innermost"))
    for name in "replaced", "deleted":
        compare(text, f"kind_{name}", ("main", "counted", "innermost"))
    compare(text, "kind_boxed", ("main", "counted", "by_memory", "made_at_run_time", "innermost"))
    if vfork != "-1":
        compare(text, "kind_vfork", ("main", "counted", "by_vfork"), last="vfork")
