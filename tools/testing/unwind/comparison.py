# SPDX-License-Identifier: GPL-2.0
"""Comparisons of a program's stack, walked by the module's code, with gdb's."""

import contextlib
import itertools
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

# Seconds for a program to begin to sleep, or for gdb.
PATIENCE = 120
# Seconds for which a program that sleeps has to be in the same system call.
CALM = 1
# Stops of a busy program: the more, the more kinds of instructions, in prologues for example.
STOPS = 25

passed = failed = 0


def ok(name, condition, *why):
    global passed, failed
    if condition:
        passed += 1
        print(f"ok - {name}", flush=True)
    else:
        failed += 1
        print(f"not ok - {name}", *why, sep="\n# ", flush=True)


class Tools:
    """The programs of the test, and the tables that they have compiled so far."""

    def __init__(self, walk, rules, gdb, folder):
        self.walk, self.rules, self.gdb, self.folder = walk, rules, gdb, Path(folder)
        # Where more programs are.
        self.clients = Path(gdb[-2]).parent.parent
        self.tables = {}

    def table(self, path, name):
        """Returns a file with the rules of this file; None if it has none."""
        status = os.stat(path)
        # Another file may get the inode of one that is gone.
        identity = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
        if identity not in self.tables:
            table = self.folder / f"{len(self.tables)}.rules"
            with table.open("wb") as out:
                done = subprocess.run([self.rules, path], stdout=out, stderr=subprocess.PIPE, text=True, check=False)
            print(f"# {done.stderr.strip().replace(str(path), name)}")
            self.tables[identity] = None if done.returncode else table
        return self.tables[identity]

    def by_gdb(self, pid, *before):
        """
        Returns the registers, for each frame its address, None for a frame of a signal, and the
        names of the functions, after these commands of gdb.
        """
        text = self.ask_gdb(pid, *before, "echo == here\\n", "info registers rip rsp rbp rdi", "bt -frame-arguments none")
        # To choose a thread prints its first frame, too.
        text = text.rpartition("== here\n")[2]
        return registers_of(text), frames_of(text), re.findall(r"^#\d+ +0x[0-9a-f]+ in (\S+) ", text, re.MULTILINE)

    def ask_gdb(self, pid, *commands):
        """Returns what gdb, attached to a program, prints for these commands."""
        settings = ["debuginfod enabled off", "backtrace past-main on", "backtrace past-entry on", "width 0", "height 0"]
        script = self.folder / "script"
        script.write_text("\n".join([*(f"set {setting}" for setting in settings), *commands]), encoding="ascii")
        done = subprocess.run([*self.gdb, "-p", str(pid), "-batch", "-nx", "-x", script], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=PATIENCE, check=False)
        return done.stdout

    def by_rules(self, pid, registers):
        """Returns the addresses, and how the stack ended."""
        done = subprocess.run([self.walk, str(pid), *registers], input=self.list_tables(pid), stdout=subprocess.PIPE, text=True,
                              timeout=PATIENCE, check=True)
        return walk_of(done.stdout)

    def list_tables(self, pid):
        """Returns the tables of the files that a program has mapped, as the walk reads them."""
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
        # The link leads to the file even if another one has its path now, or here.
        files = {f"{device} {inode}": (f"/proc/{pid}/map_files/{begin.lstrip('0')}-{end.lstrip('0')}", path) for begin, end, device, inode, path
                 in re.findall(r"^([^-]+)-(\S+) ..x\S* \S+ (\S+) ([1-9]\d*) +(.*)$", maps, re.MULTILINE)}
        if vdso := re.search(r"^(\S+)-(\S+) .* \[vdso\]$", maps, re.MULTILINE):
            begin, end = (int(address, 16) for address in vdso.groups())
            copy = self.folder / "vdso"
            with open(f"/proc/{pid}/mem", "rb") as memory:
                memory.seek(begin)
                copy.write_bytes(memory.read(end - begin))
            files["[vdso]"] = copy, "[vdso]"
        tables = {file: self.table(*image) for file, image in sorted(files.items())}
        return "".join(f"{file}\t{table}\n" for file, table in tables.items() if table)


def registers_of(text):
    registers = dict(re.findall(r"^(rip|rsp|rbp|rdi) +(0x[0-9a-f]+)", text, re.MULTILINE))
    if len(registers) != 4:
        raise ValueError(f"gdb: no registers: {text}")
    return [registers[name] for name in ("rip", "rsp", "rbp", "rdi")]


def frames_of(text):
    frames = []
    for line in re.findall(r"^#\d+ .*", text, re.MULTILINE):
        address = re.match(r"#\d+ +(0x[0-9a-f]+) in ", line)
        if not address and "<signal handler called>" not in line:
            raise ValueError(f"gdb: a frame without an address: {line}")
        frames.append(int(address[1], 16) if address else None)
    return frames


def walk_of(text):
    *addresses, end = text.split()
    return [0 if address == "?" else int(address, 16) for address in addresses], end


def call_of(pid):
    """Returns the system call that a program is in, with its stack pointer; None if it runs."""
    call = Path(f"/proc/{pid}/syscall").read_text(encoding="ascii").split()
    return None if call[0] in ("running", "-1") else (call[0], *call[-2:])


def wait_until_asleep(process, pid):
    """Waits until a program does not come back from a system call."""
    deadline, calm, last = time.monotonic() + PATIENCE, 0, None
    while calm < 20:
        if process.poll() is not None or time.monotonic() > deadline:
            raise ValueError(f"{process.args}: does not begin to sleep: {process.returncode}")
        call = call_of(pid)
        calm, last = calm + 1 if call and call == last else 0, call
        time.sleep(CALM / 20)


def child_of(process):
    """Returns the child that a program starts; None: it has ended without."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        if children := Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split():
            return int(children[0])
        time.sleep(0.01)
    raise ValueError(f"{process.args}: starts no child: {process.returncode}")


@contextlib.contextmanager
def running(command, **more):
    """A program, and all that it starts."""
    more = {"stderr": subprocess.DEVNULL} | more
    with subprocess.Popen(command, start_new_session=True, **more) as process:
        try:
            yield process
        finally:
            # It may have failed.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


# Instead of an address: no frame.
NO_FRAME = -1


def differences(frames, addresses):
    """Returns a line for each frame that differs; none if all are the same."""
    pairs = itertools.zip_longest(frames, addresses, fillvalue=NO_FRAME)
    # An address of gdb's that is None is a signal's.
    return [f"{nth}: gdb {frame or 0:#x}, rules {address:#x}" for nth, (frame, address) in enumerate(pairs)
            if address == NO_FRAME or frame not in (None, address)]


def stop(process):
    """Stops a program at any instruction."""
    process.send_signal(signal.SIGSTOP)
    deadline = time.monotonic() + PATIENCE
    while not is_stopped(process.pid):
        if time.monotonic() > deadline:
            raise ValueError("a program does not stop")
        time.sleep(0.01)


def is_stopped(pid):
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] == "T"


def compare_anywhere(tools, name, command, least):
    """Compares stacks of a busy program, which prints a line first, stopped at any instruction."""
    different, ends, depths, addresses = [], [], [], set()
    with running(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        for _ in range(STOPS):
            time.sleep(random.random() / 10)
            stop(process)
            registers, frames, _ = tools.by_gdb(process.pid)
            found, end = tools.by_rules(process.pid, registers)
            if not is_stopped(process.pid):
                raise ValueError("gdb has continued a stopped program")
            process.send_signal(signal.SIGCONT)
            different += [f"{registers}: {line}" for line in differences(frames, found)]
            ends.append(end)
            depths.append(len(found))
            addresses.add(found[0])
    print(f"# {name}: {STOPS} stacks of {min(depths)} to {max(depths)} frames, at {len(addresses)} instructions")
    ok(f"{name}: all frames are gdb's", not different, *different)
    ok(f"{name}: the stacks are whole", set(ends) == {"Whole"}, ends)
    ok(f"{name}: they have {least} frames or more", min(depths) >= least, depths)
    ok(f"{name}: they begin at different instructions", len(addresses) > STOPS // 2, addresses)


def compare_each_step(tools, name, command, least, first, steps=1):
    """
    Compares the stack at so many instructions of a program that waits for a debugger, from the
    first stop on, which a command of gdb says.
    """
    with running(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        wait_until_asleep(process, process.pid)
        (tools.folder / "tables").write_text(tools.list_tables(process.pid), encoding="utf-8")
        walk = f'shell {tools.walk} {process.pid} %#lx %#lx %#lx %#lx <{tools.folder}/tables'
        text = tools.ask_gdb(
            process.pid, "handle SIGUSR1 SIGCHLD nostop noprint pass", first, "set {int}&is_awake = 1", "continue", "delete", f"set $left = {steps}",
            "while $left > 0", "echo \\n== step\\n", "info registers rip rsp rbp rdi", "bt -frame-arguments none", "echo == walk\\n",
            f'eval "{walk}", $rip, $rsp, $rbp, $rdi', "set $left = $left - 1", "if $left > 0", "stepi", "end", "end", "kill")
    different, ends, depths = [], {}, []
    for step in text.split("\n== step\n")[1:]:
        by_gdb, by_rules = step.split("== walk\n")
        by_rules = re.match(r"(?:0x[0-9a-f]+\n)*\w+\n", by_rules)
        found, end = walk_of(by_rules[0]) if by_rules else ([], "none")
        registers = registers_of(by_gdb)
        different += [f"{registers}: {line}" for line in differences(frames_of(by_gdb), found)]
        ends.setdefault(end, registers)
        depths.append(len(found))
    print(f"# {name}: {len(depths)} steps, stacks of {min(depths, default=0)} to {max(depths, default=0)} frames")
    ok(f"{name}: {steps} steps", len(depths) == steps, len(depths), text[-2000:])
    ok(f"{name}: all frames are gdb's", not different, *different[:40])
    ok(f"{name}: the stacks are whole", set(ends) == {"Whole"}, ends)
    ok(f"{name}: they have {least} frames or more", min(depths, default=0) >= least, depths)


def is_code(pid, address):
    """Whether a return address is in an executable mapping."""
    maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    return any(int(begin, 16) < address <= int(end, 16) for begin, end in re.findall(r"^(\S+)-(\S+) ..x", maps, re.MULTILINE))


def compare(tools, name, command, least, through=(), before=(), has_child=False, between=None, ends="Whole", is_guessed=False):
    """
    Compares the stack of a program that sleeps, or of its child, and has at least so many frames,
    of which gdb names some, the innermost first. `before` are commands of gdb; `between` is done
    while the program sleeps, before its stack is walked. If the stack ends before it is whole, gdb
    may guess more frames; if it guesses all, it may also take words for addresses that are none.
    """
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        pid = child_of(process) if has_child else process.pid
        wait_until_asleep(process, pid)
        registers, frames, names = tools.by_gdb(pid, *(command.format(pid=pid) for command in before))
        if is_guessed:
            frames = [frame for frame in frames if frame is None or is_code(pid, frame)]
        if between:
            between()
        addresses, end = tools.by_rules(pid, registers)
    print(f"# {name}: {len(frames)} frames by gdb, {len(addresses)} by rules, end: {end}")
    different = differences(frames if ends == "Whole" else frames[:len(addresses)], addresses)
    ok(f"{name}: all frames are gdb's", not different, *different)
    ok(f"{name}: its end is {ends}", end == ends, end)
    ok(f"{name}: it has {least} frames or more", len(addresses) >= least, addresses)
    if through:
        left = iter(names)
        ok(f"{name}: through {', '.join(through)}", all(name in left for name in through), names)
    return frames
