# SPDX-License-Identifier: GPL-2.0
"""
Stacks of programs by the rules that the command writes, compared with gdb's: programs that sleep
in a system call, deep in their stacks. The files of each are known from a run that has ended
before.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tap import finish, ok, skip

TOP = Path(__file__).resolve().parents[4]
sys.path.append(str(TOP / "tools" / "testing" / "unwind"))

from comparison import Tools, differences, running, wait_until_asleep  # noqa: E402
from interpreted import PERL, PYTHON  # noqa: E402

RHIST = os.environ["RHIST_COMMAND"]
TRACING = Path(os.environ["TRACING"])
CLIENTS = os.environ.get("RHIST_CLIENTS", "")
# Whether points that user-mode Linux tests are to be left out.
REST_ONLY = bool(os.environ.get("RHIST_REST")) and os.path.exists(f"{os.environ['KERNEL']}/kprobe_events")
# Most words of a stack.
DEPTH = 31
# Most runs of a program until its files have rules: a file is known when the rules of the files
# above it on the stack lead there.
ROUNDS = 6
BASH = "outer() { inner; }; inner() { read -r line; }; outer"


class Objects:
    """The objects that words name, by user_objects/list."""

    def __init__(self):
        self.kinds, self.files = {}, {}
        for line in (TRACING / "user_objects" / "list").read_text(encoding="ascii").splitlines():
            if line.startswith("#"):
                continue
            number, kind, _, inode, _, size, *_ = line.split()
            self.kinds[int(number)] = kind
            if kind == "file":
                # With overlayfs, /proc/PID/maps has another device.
                self.files[int(number)] = (int(inode), int(size))

    def addresses(self, pid, words):
        """Returns where a program has these words; 0 for a word that it does not have."""
        mappings = []
        for line in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines():
            found = re.match(r"(\w+)-(\w+) ..x. (\w+) \S+ (\d+) *(.*)", line)
            if found:
                begin, end, offset = (int(text, 16) for text in found.groups()[:3])
                size = os.stat(found[5]).st_size if found[5].startswith("/") else 0
                mappings.append((begin, end, offset, (int(found[4]), size), found[5]))
        return [self.address(mappings, word["object"], word["offset"]) for word in words]

    def address(self, mappings, number, offset):
        for begin, end, first, file, name in mappings:
            is_it = name == "[vdso]" if self.kinds.get(number) == "vdso" else file == self.files.get(number)
            if is_it and first <= offset <= first + end - begin:
                return begin + offset - first
        return 0


@contextlib.contextmanager
def counting(event, comm):
    """Counts the stacks of programs with this name at a system call."""
    trigger = TRACING / "events" / "syscalls" / f"sys_enter_{event}" / "trigger"
    trigger.write_text(f'hist:keys=common_pid,common_ustack if comm == "{comm}"', encoding="ascii")
    try:
        yield
    finally:
        trigger.write_text("", encoding="ascii")


def stacks_of(event, pid):
    """Returns the stacks of a thread that were counted: words, and how each one ended."""
    text = (TRACING / "events" / "syscalls" / f"sys_enter_{event}" / "hist_jsonl").read_text(encoding="ascii")
    entries = [line for line in map(json.loads, text.splitlines()) if line["type"] == "entry"]
    return [(stack["ustack"], stack["end"]) for number, stack in (entry["keys"] for entry in entries) if number == pid]


def compare(tools, name, command, event, least, **more):
    """Compares the stack of a program in this system call, which has at least so many frames."""
    comm = Path(command[0]).name
    for _ in range(ROUNDS):
        with counting(event, comm):
            with running(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, **more) as process:
                wait_until_asleep(process, process.pid)
            # Its files are compiled when it is gone.
            done = subprocess.run([RHIST, "unwind", "--once"], capture_output=True, text=True, check=False)
        print(f"# {name}: {done.stdout.strip()}")
        # A file that was released, as the program took so long, is read after the next hit.
        if done.returncode or not re.search(r"\b[1-9]\d* (given|not readable) ", done.stdout):
            break
    ok(done.returncode == 0, f"{name}: its files have rules", done.stdout, done.stderr)
    with counting(event, comm):
        with running(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, **more) as process:
            wait_until_asleep(process, process.pid)
            _, frames, _ = tools.by_gdb(process.pid)
            objects = Objects()
            stacks = [(objects.addresses(process.pid, words), end) for words, end in stacks_of(event, process.pid)]
    different = [differences(frames[:DEPTH], addresses) for addresses, _ in stacks]
    ends = [end for (_, end), lines in zip(stacks, different) if not lines]
    print(f"# {name}: {len(frames)} frames by gdb, {len(stacks)} stacks")
    ok(any(not lines for lines in different), f"{name}: all frames are gdb's", *different, stacks)
    ok(ends == ["whole" if len(frames) < DEPTH else "depth"], f"{name}: and then the stack ends", stacks)
    ok(len(frames) >= least, f"{name}: it has {least} frames or more", frames)


def main():
    if not Path(f"{CLIENTS}/usr/bin/gdb").exists():
        skip("stacks as gdb has them", "no gdb")
        return finish()
    libraries = f"{CLIENTS}/usr/lib/x86_64-linux-gnu"
    gdb = ["env", f"LD_LIBRARY_PATH={libraries}", f"{CLIENTS}/usr/bin/gdb", f"--data-directory={CLIENTS}/usr/share/gdb"]
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(None, None, gdb, folder)
        compare(tools, "python3", ["python3", "-c", PYTHON], "clock_nanosleep", 40)
        if REST_ONLY:
            return finish()
        compare(tools, "perl", ["perl", "-e", PERL], "clock_nanosleep", 10)
        compare(tools, "bash", ["bash", "-c", BASH], "read", 15)
        compare(tools, "gdb, in C++", [*gdb[2:], "-batch", "-nx", "-ex", "shell sleep 1000"], "wait4", 8,
                env={**os.environ, "LD_LIBRARY_PATH": libraries})
    return finish()


main()
