# SPDX-License-Identifier: GPL-2.0
"""Stacks of each kind that programs and the C library make, also in files that are gone."""

import ctypes
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

from comparison import compare, compare_each_step, ok, running, stop, wait_until_asleep

HERE = Path(__file__).resolve().parent
OPTIONS = ["-O2", "-fomit-frame-pointer", "-Wall", "-Werror"]
# Compilers, linkers, and options that make other forms of frames, of calls, or of files.
BUILDS = {
    "not optimized": ["gcc", "-O0", "-fomit-frame-pointer"],
    "for size": ["gcc", "-Os"],
    "optimized much": ["gcc", "-O3", "-flto"],
    "with frame pointers": ["gcc", "-O2", "-fno-omit-frame-pointer"],
    "pushed arguments": ["gcc", "-O2", "-maccumulate-outgoing-args", "-fstack-clash-protection", "-fno-plt"],
    "for CET": ["gcc", "-O2", "-fcf-protection=full", "-Wl,-z,ibtplt", "-Wl,-z,lazy"],
    "profiled": ["gcc", "-O2", "-pg"],
    "not relocated": ["gcc", "-O2", "-no-pie"],
    "static, relocated": ["gcc", "-O2", "-static-pie"],
    "no index of frames": ["gcc", "-O2", "-Wl,--no-eh-frame-hdr"],
    "by clang": ["clang-19", "-O2"],
    "by clang and lld": ["clang-19", "-O2", "-fuse-ld=lld-19"],
    "code beside data": ["gcc", "-O2", "-Wl,-z,noseparate-code"],
}


# Number of the system call (x86-64).
TGKILL = 234
# As in the traces that Go prints of its goroutines.
GO_FRAME = re.compile(r" pc=(0x[0-9a-f]+)$", re.MULTILINE)


def build(folder, name, sources, *options, compiler=("gcc", *OPTIONS)):
    program = f"{folder}/{name}"
    subprocess.run([*compiler, *options, "-o", program, *(HERE / source for source in sources)], check=True)
    return program


def compare_kinds(tools):
    folder = tools.folder
    program = build(folder, "kinds", ["kinds.c"])
    by_signal = "innermost", "on_last"
    frames = compare(tools, "handlers within handlers", [program, "handlers"], 12, [*by_signal, "on_next", "on_first", "handlers", "main"])
    ok("handlers within handlers: three of a signal", frames.count(None) == 3, frames)
    frames = compare(tools, "a fault", [program, "fault"], 7, [*by_signal, "fault", "main"])
    ok("a fault: one of a signal", frames.count(None) == 1, frames)
    compare(tools, "a wrong call", [program, "wrong call"], 8, [*by_signal, "wrong_call", "main"])
    compare(tools, "jumps", [program, "jumps"], 6, ["innermost", "jumps", "main"])
    compare(tools, "contexts", [program, "contexts"], 4, ["innermost", "in_last"], ends="NoRules")
    compare(tools, "a thread", [program, "thread"], 5, ["innermost", "in_thread"], ["thread 2"])
    compare(tools, "a child of vfork()", [program, "vfork"], 5, ["innermost", "by_vfork", "main"], has_child=True)
    fifo = f"{folder}/fifo"
    os.mkfifo(fifo)
    compare(tools, "a child of posix_spawn()", [program, "spawn", fifo], 3, has_child=True)
    compare_each_step(tools, "a parent in vfork()", [program, "vfork", "later"], 5, "catch syscall vfork")
    compare_each_step(tools, "a parent in posix_spawn()", [program, "spawn", fifo, "later"], 6, "catch syscall clone3")
    compare_each_step(tools, "a new thread", [program, "thread", "later"], 6, "catch syscall clone3")
    through = "innermost", "by_memory", "main"
    compare(tools, "code in memory, with frame pointers", [program, "memory with frame pointers"], 8, through, is_guessed=True)
    compare(tools, "code in memory, without", [program, "memory without"], 3, ["innermost"], ends="NoRules")
    libraries(tools, program)
    files(tools)
    builds(tools)
    git(tools)
    go(tools)


def libraries(tools, program):
    """Libraries that are loaded at run time, and one that takes the addresses of another one."""
    one, other = (build(tools.folder, f"{size}.so", ["library.c"], "-shared", "-fPIC", f"-DSIZE={size}") for size in (1000, 2000))
    through = "innermost", "library_inner", "library_outer", "by_libraries", "main"
    compare(tools, "a library loaded at run time", [program, "libraries", one], 8, through)
    compare(tools, "a library in the place of another one", [program, "libraries", one, other], 8, through)


def files(tools):
    """Files that are replaced or deleted while a program runs, and files of a container."""
    folder, through = tools.folder, ["innermost", "main"]

    def with_files(name, change, **more):
        program = build(folder, "program", ["kinds.c"])
        library = build(folder, "library.so", ["library.c"], "-shared", "-fPIC", "-DSIZE=1000")
        other = build(folder, "other", ["kinds.c"], "-O0", "-fno-omit-frame-pointer")
        other_library = build(folder, "other.so", ["library.c"], "-shared", "-fPIC", "-DSIZE=2000")
        command = [program, "libraries", library]
        between = change(command, (program, other), (library, other_library))
        compare(tools, name, command, 8, through, between=between, **more)

    def replaced(_, *pairs):
        return lambda: [os.rename(new, old) for old, new in pairs]

    def deleted(_, *pairs):
        return lambda: [os.unlink(old) for old, _ in pairs]

    def contained(command, *pairs):
        """The program has other files at the same paths in a root of its own."""
        root = folder / "root"
        needed = subprocess.run(["ldd", pairs[0][0]], stdout=subprocess.PIPE, text=True, check=True).stdout
        libraries = [word for word in needed.split() if word.startswith("/")]
        for file in [*libraries, *(old for old, _ in pairs)]:
            place = root / file.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)
        command[:0] = ["unshare", "--mount", "--propagation", "unchanged", "--pid", "--fork", f"--root={root}"]
        for old, new in pairs:
            os.rename(new, old)

    with_files("files that were replaced", replaced)
    with_files("files that were deleted", deleted)
    with_files("a container", contained, before=["set sysroot /proc/{pid}/root"], has_child=True)


def builds(tools):
    """The same functions in other frames."""
    for name, compiler in BUILDS.items():
        program = build(tools.folder, "build", ["frames.c"], "-Wall", "-Werror", compiler=compiler)
        compare(tools, f"frames, {name}", [program], 18)
    program = build(tools.folder, "build", ["kinds.c"], "-fno-asynchronous-unwind-tables")
    compare(tools, "no unwind information", [program, "plain"], 2, ["innermost"], ends="NoRules")
    # With debug information, gdb also prints functions that are inlined.
    rust = build(tools.folder, "kinds-rust", ["kinds.rs"], compiler=["rustc", "-O", "-C", "panic=unwind", "-C", "strip=symbols"])
    compare(tools, "a thread in Rust", [rust], 15, before=["thread 2"])


def git(tools):
    """git, which reads names of objects."""
    client = [*tools.gdb[:-2], str(tools.clients / "bin/git"), f"--exec-path={tools.clients}/lib/git-core"]
    repository = f"{tools.folder}/repository"
    subprocess.run([*client, "init", "-q", "--template=", repository], check=True)
    compare(tools, "git", [*client, "-C", repository, "cat-file", "--batch"], 8)


def go(tools):
    """
    fzf, in Go, whose code has frame pointers and lacks .eh_frame. gdb has to guess its frames, but
    Go prints them, apart from the two innermost ones in a system call. Of these, the first lacks a
    frame, so the second is not found.
    """
    with running([tools.clients / "bin/fzf", "--filter", "x"], env=os.environ | {"GOTRACEBACK": "crash"}, stdin=subprocess.PIPE,
                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        wait_until_asleep(process, process.pid)
        stop(process)
        registers, _, _ = tools.by_gdb(process.pid)
        addresses, end = tools.by_rules(process.pid, registers)
        process.send_signal(signal.SIGCONT)
        # To its first thread: another one would know less about the call.
        ctypes.CDLL(None).syscall(TGKILL, process.pid, process.pid, int(signal.SIGQUIT))
        text = process.communicate(timeout=120)[1].decode()
    goroutine = re.search(r"^goroutine .* \[syscall\]:\n(?:.+\n)*", text, re.MULTILINE)
    frames = [int(address, 16) for address in GO_FRAME.findall(goroutine[0])] if goroutine else []
    print(f"# Go: {len(frames)} frames by Go, {len(addresses)} by rules, end: {end}")
    ok("Go: all frames are Go's", addresses[2:] == frames[1:], addresses, text)
    ok("Go: its end is Whole", end == "Whole", end)
    ok("Go: it has 8 frames or more", len(addresses) >= 8, addresses)
