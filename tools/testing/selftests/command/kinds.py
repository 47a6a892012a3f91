# SPDX-License-Identifier: GPL-2.0
"""
Stacks of programs of each kind, with the names of their functions: all in one run, each as often
as it was called. Most of their files are not where they were when the run begins.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

from instance import has_begun, until
from tap import ok

RHIST, OUT = os.environ["RHIST_COMMAND"], os.environ["OUT"]
# As in kinds.c.
COUNT = 57


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


def mounted(folder):
    """Somebody else's file is mounted where the names of the code that it makes would be."""
    stolen = Path(folder) / "stolen"
    stolen.write_text("1000 7ffffffff000 stolen\n", encoding="ascii")
    path = "/tmp/perf-$$.map"
    command = f'touch {path} && mount --bind {stolen} {path} && exec "$@"'
    shutil.copy(f"{OUT}/kinds", f"{folder}/kind_mounted")
    return Load(folder, "mounted", ["memory"], before=["unshare", "--mount", "--propagation", "unchanged", "sh", "-c", command, "sh"])


class Run:
    """The recipe, and its output: a line for each second, and the last one for all."""

    def __init__(self, folder, *words):
        self.out, self.err = open(f"{folder}/out", "w+", encoding="utf-8"), open(f"{folder}/err", "w+", encoding="utf-8")
        command = [RHIST, "count", "raw_syscalls:sys_enter", "--by", "comm,ustack", "--format", "json", "-i", "1", *words]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err)
        until(lambda: self.process.poll() is not None or has_begun(self.process))

    def last(self):
        """
        Returns the stacks in the last line, and how often each was counted: the name of the
        program, and its functions, the outermost one first.
        """
        self.out.seek(0)
        # The last line may not be whole yet.
        lines = self.out.read().split("\n")[:-1]
        rows = json.loads(lines[-1])["rows"] if lines else []
        stacks = [(row["keys"][0], row["keys"][1]["stack"], row["hits"]) for row in rows]
        return {(comm, *(frame["symbol"] for frame in reversed(stack))): hits for comm, stack, hits in stacks}

    def wait_for(self, expected):
        """
        Waits until a second has the stacks of these programs, whole and with these functions: then
        all files have been read.
        """
        def is_there():
            stacks = self.last()
            return self.process.poll() is not None or all(
                any(stack[:2] == (name, "_start") and function in stack for stack in stacks) for name, function in expected.items())

        try:
            until(is_there, 120)
        except RuntimeError as error:
            self.err.seek(0)
            ok(False, f"stacks of {expected}: {error}", self.last(), self.err.read())

    def end(self):
        """Returns its status, the stacks of all, and its errors."""
        self.process.terminate()
        self.process.wait(timeout=300)
        self.err.seek(0)
        return self.process.returncode, self.last(), self.err.read()


def has(stack, functions):
    return any(stack[n:n + len(functions)] == functions for n in range(len(stack)))


def compare(stacks, name, *parts, last="getpgid"):
    """Compares the stack of a program: each part is functions that call each other."""
    found = {stack[1:]: count for stack, count in stacks.items() if stack[0] == name and "counted" in stack}
    ok(list(found.values()) == [COUNT], f"{name}: each call has the same stack", found or stacks)
    stack = next(iter(found), ("",))
    ok(all(has(stack, part) for part in parts), f"{name}: of {parts}", stack)
    ok(stack[0] == "_start" and last in stack[-1], f"{name}: whole", stack)


def kinds(folder):
    """All kinds, in one run."""
    getpgid, vfork = subprocess.check_output([f"{OUT}/kinds", "numbers"], text=True).split()
    library = Load(folder, "library", ["library", f"{OUT}/first.so", f"{OUT}/second.so"])
    loads = [library, Load(folder, "signal", ["signal"]), replaced(folder), deleted(folder), boxed(folder), mounted(folder)]
    expected = {"library": "first", "signal": "on_signal", "replaced": "innermost", "deleted": "innermost", "boxed": "made_at_run_time"}
    if vfork != "-1":
        loads.append(Load(folder, "vfork", ["vfork"]))
        expected["vfork"] = "by_vfork"
    run = Run(folder, "--where", f'comm ~ "kind_*" && (id == {getpgid} || id == {vfork})')
    run.wait_for({f"kind_{name}": function for name, function in expected.items()})
    library.go_on()
    place = library.process.stdout.readline()
    # A library that nobody has read before, where another one was.
    run.wait_for({"kind_library": "second"})
    for load in loads:
        load.go_on()
    ends = [load.end() for load in loads]
    status, stacks, errors = run.end()
    ok(status == 0 and not any(ends), "a run beside programs of all kinds", status, ends, errors)
    ok(place == "same\n", "a library has the addresses of another one", place)
    compare(stacks, "kind_library", ("main", "counted", "by_library", "library_call", "second", "innermost"))
    compare(stacks, "kind_signal", ("main", "counted", "by_signal"), ("on_signal", "innermost"))
    for name in "replaced", "deleted":
        compare(stacks, f"kind_{name}", ("main", "counted", "innermost"))
    compare(stacks, "kind_boxed", ("main", "counted", "by_memory", "made_at_run_time", "innermost"))
    of_mounted = [stack for stack in stacks if stack[0] == "kind_mounted"]
    ok(any("counted" in stack for stack in of_mounted) and not any("stolen" in stack for stack in of_mounted),
       "kind_mounted: without names of a mounted file", of_mounted)
    if vfork != "-1":
        compare(stacks, "kind_vfork", ("main", "counted", "by_vfork"), last="vfork")
