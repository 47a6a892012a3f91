# SPDX-License-Identifier: GPL-2.0
"""
Jobs: the commands that tests are run by, their dependencies, and which of them each make target
runs.
"""

import contextlib
import fcntl
import functools
import math
import os
import re
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

import selftests
from selftests import OWN, SLOW, USER_MODE, in_order
from sessions import LAB, is_foreign, say
from sessions import lab as ask

# Asks scripts/lab for a path, once, as it does not change during a run.
lab = functools.cache(ask)
TOP = Path(__file__).resolve().parent.parent
OUT = TOP / "build" / "test"
# Runs rustfmt or clippy, and knows the version of Rust whose findings count.
LINT = str(TOP / "scripts" / "lint")


@dataclass
class Job:
    """
    One command with tests, or one that others need. It has failed if its status is not 0.
    """

    name: str
    command: list
    # Jobs that have to succeed before this one begins.
    after: list = field(default_factory=list)
    # Expected duration in seconds, and the number of processors that it keeps busy.
    takes: float = 10
    cores: int = 1
    # Ends it after so many seconds, and after so many without output.
    limit: int = 1200
    patience: int = 1200
    # For a guest: its tests, whose names it prints as they end; its kernel, and the kind of run.
    tests: list = field(default_factory=list)
    kernel: str = ""
    rest: bool = False
    long: bool = False
    # Pieces of the lab, which an archive may lack; then this one is left out.
    lab: list = field(default_factory=list)
    # Its last total counts; otherwise it counts as one test.
    counts: bool = True
    # Variables for the environment of the command.
    environment: dict = field(default_factory=dict)

    def log(self):
        return OUT / f"{re.sub('[^a-z0-9_-]+', '-', self.name.lower()).strip('-')}.log"


def chroot(*command, enter=("chroot",), **variables):
    """
    A command in a root file system of the lab, by default the lab's own. Compiled files are kept
    in the lab.
    """
    return [str(LAB), *enter, "--", "env", *(f"{name}={value}" for name, value in variables.items()), *command]


def target(name):
    return f"{lab('path', 'lab')}/cargo-target/{name}"


def make(*arguments):
    return ["make", "--no-print-directory", *arguments]


def module(kernel, headers=None):
    """With headers, rhist has probes for their events only."""
    options = [f"RHIST_EVENT_HEADERS={headers}"] if headers else []
    return [
        *(lab_kernel(kernel) if kernel in OWN else []),
        Job(f"module for {kernel}", make(f"KERNEL={kernel}", *options), takes=60 if kernel in OWN or headers else 200, counts=False,
              after=[f"kernel {kernel}"]),
        Job(f"events for {kernel}", make(f"KERNEL={kernel}", "events"), takes=10, counts=False,
              after=[f"module for {kernel}"]),
    ]


def lab_kernel(kernel):
    """A kernel that is compiled in the lab, beside other jobs, if it is missing."""
    return [Job(f"kernel {kernel}", [str(LAB), kernel], takes=300, limit=7200, counts=False)]


def samples(kernel):
    """Modules from the kernel's source that its own tests load."""
    return [Job(f"samples for {kernel}", make(f"KERNEL={kernel}", "samples"), takes=10, counts=False)]


def orc(kernel):
    """Modules that compare the rules for walking stacks with the kernel's own tables."""
    return [Job(f"orc for {kernel}", make(f"KERNEL={kernel}", "orc"), takes=5, counts=False)]


def programs(kernel="stock"):
    """
    The tests that have to be compiled, and the command, which some of them run. Another
    architecture needs other tools.
    """
    out, more = f"{TOP}/build/selftests", {}
    if is_foreign(kernel):
        out, more = f"{out}/aarch64", {"enter": ("enter", f"{lab('path', 'lab')}/cross"), **CROSS}
    return [
        Job(programs_of(suite, kernel),
              chroot("make", "-s", f"-j{os.cpu_count()}", "-C", f"tools/testing/selftests/{suite}", f"OUT={out}/{suite}",
                     RHIST_CLIENTS=f"{lab('path', 'lab')}/clients", **more), takes=takes, counts=False)
        for suite, takes in (("hist", 8), ("user_events", 20), ("hostile", 5), ("command", 5))
    ] + command(kernel)


def programs_of(suite, kernel):
    return f"programs of {suite}" + (" for arm64" if is_foreign(kernel) else "")


# Settings by which the tests' makefiles, pkg-config and cargo compile for arm64.
CROSS = {
    "CC": "aarch64-linux-gnu-gcc",
    "PKG_CONFIG_LIBDIR": "/usr/lib/aarch64-linux-gnu/pkgconfig",
    "CARGO_BUILD_TARGET": "aarch64-unknown-linux-gnu",
    "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER": "aarch64-linux-gnu-gcc",
}


# Seconds that a guest takes beyond its tests.
BOOT = {"um": 3, "umdebug": 10, "debug": 120, "debug-6.12": 120, "debug-orc": 120, "kcsan": 120}
# Most seconds for the tests of a guest together: few guests, since each has to boot, for which an
# emulated one takes 25 seconds of a processor, but enough to keep all processors busy until the
# end. Guests that look for faults are to be small, so that little is lost if a run is ended.
MOST = {"um": 60, "umdebug": 300, "debug": 600, "debug-6.12": 600, "debug-orc": 600, "kcsan": 600}
# A test that has not been measured yet.
UNKNOWN = {"um": 5, "umdebug": 40, "debug": 200, "debug-6.12": 200, "debug-orc": 200, "kcsan": 200}


def guest(kernel, tests, durations, cpus=2, cores=1, rest=False, long=False, patience=None, turns=False, seed=None):
    """
    A guest with these tests of one suite; user-mode Linux has one processor. With rest, points
    shown by user-mode Linux are skipped. With turns, only one processor runs at a time. A seed
    draws the order of the tests.
    """
    suite, names = tests[0].suite, [test.name for test in tests]
    takes = BOOT.get(kernel, 30) + sum(measured(durations, kernel, test, rest, long) for test in tests)
    # This machine may be slow, or busy.
    patience = max(patience or (3600 if long or kernel in SLOW else 600), *(test.limit for test in tests))
    limit = int(max(600, 5 * takes) + patience)
    memory = next((test.memory for test in tests if test.memory), "")
    options = [] if kernel in USER_MODE else [
        "--cpus", str(max(cpus, *(test.cpus for test in tests))), *["--turns"] * turns, *["--tsc"] * tests[0].tsc,
        *["--memory", memory] * bool(memory),
    ]
    shown = names if len(names) < 5 else [*names[:2], "…", names[-1]]
    return Job(
        " ".join([f"{suite} on {kernel}:", *shown, *["--long"] * long]),
        ["scripts/vm", "--kernel", kernel, *options, "--timeout", str(limit), "--",
         "tools/testing/selftests/run", suite, *["--long"] * long, *(test.name for test in in_order(tests, seed))],
        after=[f"events for {kernel}", programs_of(suite, kernel), *[command_for(kernel)] * (suite == COMMAND),
               *(f"{test.needs} for {kernel}" for test in tests if test.needs)],
        takes=takes, cores=cores, limit=limit + 60, patience=patience + BOOT.get(kernel, 30) + 60,
        tests=list(tests), kernel=kernel, rest=rest, long=long,
        environment={"RHIST_BUILT": "1", "TEST_TIMEOUT": str(patience), **({"RHIST_REST": "1"} if rest else {})},
    )


def narrowed(job, tests, durations):
    """Returns a job with only these of its tests; None without any."""
    if not job.tests or len(tests) in (0, len(job.tests)):
        return job if tests else None
    # In the order of the command.
    names = [name for name in job.command[-len(job.tests) :] if name in {test.name for test in tests}]
    gone = sum(measured(durations, job.kernel, test, job.rest, job.long) for test in job.tests if test not in tests)
    return replace(job, name=" ".join([f"{job.name.split(':')[0]}:", *names, *["--long"] * job.long]), tests=tests,
                   takes=max(1, job.takes - gone), command=[*job.command[: -len(job.tests)], *names])


def measured(durations, kernel, test, rest, long):
    """Seconds that a test takes."""
    return durations.get(key(kernel, test, rest, long)) or UNKNOWN.get(kernel, 20)


def key(kernel, test, rest, long):
    """Key of a test on a kernel, for its duration and its result."""
    return f"{kernel}{' rest' * rest}{' long' * long}: {test.suite}.{test.name}"


def guests(kernel, tests, durations, rest=False, long=False, **more):
    """Guests for these tests, each on a kernel that can run it."""
    jobs = []
    groups = {}
    for test in tests:
        if test.can_run_on(kernel) and (long or not test.long):
            # User-mode Linux yields its processor while a test sleeps.
            kind = test.asleep if kernel == "um" else kernel != "umdebug" and (test.cpus, test.long, test.tsc, take_turns(test, kernel, rest))
            groups.setdefault((test.suite, kind), []).append(test)
    for group in groups.values():
        settings = {"rest": rest, "long": long, **more}
        if kernel == "um":
            settings["cores"] = 0 if group[0].asleep else 1
        elif kernel != "umdebug":
            # Beside another guest, a guest with more threads than this machine has processors
            # spends half of the time on waiting for locks whose holder does not run: so a guest has
            # no more processors than it needs.
            settings["cores"] = 2 if max(test.cpus for test in group) > 2 else 1
            settings["turns"] = take_turns(group[0], kernel, rest)
        for part in parts(group, kernel, durations, rest, long):
            jobs.append(guest(kernel, part, durations, **settings))
    return jobs


def take_turns(test, kernel, rest):
    """Only in make test, and where they are too many: in longer runs all processors run at once."""
    return test.turns and (test.cpus > 128 or kernel == "stock" and rest)


def parts(tests, kernel, durations, rest, long):
    """
    Splits tests into parts of similar duration, as few as possible; each in the order of the
    table.
    """
    takes = {test: measured(durations, kernel, test, rest, long) for test in tests}
    count = max(1, math.ceil(sum(takes.values()) / MOST.get(kernel, 400)))
    found = [[] for _ in range(count)]
    for test in sorted(tests, key=takes.get, reverse=True):
        min(found, key=lambda part: sum(takes[other] for other in part)).append(test)
    return [sorted(part, key=tests.index) for part in found if part]


# A part takes one to five minutes.
PARTS = 24
# Tests that say most about a kernel in a few minutes: files, texts, numbers and user events.
SHORT = [("hist", "basic files sidebyside"), ("user_events", "requests")]
# Kernels without a C to compare with.
ALONE = [("hist", "basic files counts jsonl"), ("user_events", "requests")]
# The probes for all events would take longer to build than the tests.
SHORT_HEADERS = "irq kmem sched signal task timer"
# Tests that find most faults on user-mode Linux within a minute.
FAST = "hist.basic hist.errors hist.scenarios hist.sidebyside"


# --- what cargo compiles
#
# Cargo identifies a file by path and modification time, so it would compile everything again in
# each checkout. So it works in a copy of the checkout that is kept in the lab, in which only
# changed files are written.

SOURCES = "copy of the sources"


def copy_of_sources():
    copy = copied()
    copy.mkdir(exist_ok=True)
    return Job(
        SOURCES, chroot("rsync", "-rlp", "--checksum", "--delete", "--delete-excluded", "--exclude=/build",
                        "--exclude=/.git", "--exclude=target", f"{TOP}/", f"{copy}/"), takes=2, counts=False)


def copied():
    return Path(lab("path", "lab")) / "checkout"


# Set for all children of a run of scripts/test: the checkout of the run.
WITHIN = "RHIST_TESTED"


@contextlib.contextmanager
def locks(found):
    """
    Held as long as these jobs run: other runs in this checkout would use the same build/, and
    runs in another one the same copy of the sources. A run that a job starts is a part of that
    job.
    """
    with contextlib.ExitStack() as held:
        if os.environ.get(WITHIN) != str(TOP):
            OUT.mkdir(parents=True, exist_ok=True)
            held.enter_context(lock(OUT / "lock", "another run of scripts/test is at work in this checkout"))
        if any(job.name == SOURCES for job in found):
            held.enter_context(lock(f"{copied()}.lock", "a run in another checkout uses the copy of the sources, which all share"))
        yield


def lock(path, why):
    """Locks a file. If another program holds the lock, says so, and waits."""
    file = open(path, "a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"test: {why}: waiting for it")
        fcntl.flock(file, fcntl.LOCK_EX)
    return file


def within(folder, *command, enter=("chroot",), **variables):
    """A command in a folder of the copy of the sources."""
    return ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", str(copied() / folder), *chroot(*command, enter=enter, **variables)]


# --- the command rhist
#
# It is compiled by the Rust of backports, the module by Debian 13's own.

COMMAND = "command"


def rust(kernel):
    """Returns the piece of the lab that compiles the command for the architecture of a kernel."""
    return "rust-arm64" if is_foreign(kernel) else "rust"


def in_workspace(*command, rust="rust", **more):
    folder = lab("path", "lab")
    return within("tools/rhist", *command, CARGO_TARGET_DIR=target("command"), CARGO_INCREMENTAL="0",
                  PATH=f"{folder}/{rust}/bin:{folder}/deny/bin:/usr/bin:/bin", **more)


def command(kernel="stock"):
    """The program, for guests and packages, in build/command; for arm64, in a subfolder."""
    out, built, more, fetched, of_lab = f"{TOP}/build/command", "release", {}, [], [rust(kernel)]
    if is_foreign(kernel):
        out, built = f"{out}/aarch64", f"{CROSS['CARGO_BUILD_TARGET']}/release"
        # That root file system lacks certificates.
        more = {"enter": ("enter", f"{lab('path', 'lab')}/cross"), "CARGO_NET_OFFLINE": "true", **CROSS}
        fetched = [Job("crates of the command", in_workspace("cargo", "fetch", "--locked", rust=rust(kernel)), counts=False,
                         after=[SOURCES], lab=of_lab)]
    return [
        copy_of_sources(),
        *fetched,
        Job(command_for(kernel),
              in_workspace("sh", "-c", 'cargo build --quiet --release --locked --package rhist && install -D -t "$2" "$1"', "sh",
                           f"{target('command')}/{built}/rhist", out, rust=rust(kernel), **more),
              takes=60, counts=False, after=[SOURCES, *(job.name for job in fetched)], lab=of_lab),
    ]


def pages():
    """
    Files packaged with the program: manual pages, and the licences of the crates linked into it.
    """
    out = f"{TOP}/build/command"
    return [
        copy_of_sources(),
        Job("pages of the command",
              in_workspace("sh", "-ec", 'rm -rf "$1/man"; cargo run -q --locked -p rhist-pages recipes "$1/man"; ./licences >"$1/licences"',
                           "sh", out),
              takes=10, counts=False, after=[SOURCES, "command: tests"], lab=["rust"]),
    ]


def command_for(kernel):
    return COMMAND + (" for arm64" if is_foreign(kernel) else "")


def command_lints():
    return [
        Job("rustfmt of the command", in_workspace(LINT, "command", "cargo", "fmt", "--all", "--check"), takes=2, counts=False, after=[SOURCES],
              lab=["rust"]),
        Job("clippy of the command",
              in_workspace(LINT, "command", "cargo", "clippy", "-q", "--locked", "--workspace", "--all-targets"),
              takes=5, counts=False, after=[SOURCES, "command: tests"], lab=["rust"]),
    ]


def command_tests(*names):
    return [
        Job(f"command: {name}", in_workspace("./test", name), takes=10, after=[SOURCES, *[COMMAND] * (name == "size")],
              environment={"PROPTEST_RNG_SEED": "1"}, lab=["rust", *["deny"] * (name == "deny")])
        for name in names
    ]


def sources_of_checkout():
    found = subprocess.run(["scripts/sources"], cwd=TOP, stdout=subprocess.PIPE, text=True, check=True).stdout
    return sorted(found.split("\0")[:-1])


def lints():
    def clippy(folder, *after):
        return Job(f"clippy of {folder}",
                     within(f"tools/testing/{folder}", LINT, "module", "cargo", "clippy", "-q", "--locked", "--all-targets",
                            CARGO_TARGET_DIR=target(folder)),
                     takes=5, counts=False, after=[SOURCES, *after])

    sources = [source for source in sources_of_checkout() if source.endswith(".rs") and not source.startswith("tools/rhist/")]
    return [
        Job("rustfmt", chroot(LINT, "module", "rustfmt", "--check", *sources), takes=3, counts=False),
        Job("clippy of the module", make("clippy"), takes=40, counts=False),
        clippy("host", "host tests: tests"),
        clippy("host/bench"),
        clippy("clients"),
        *command_lints(),
    ]


def host_tests(names, long=False):
    """
    Each suite has a target folder of its own, except the first two, which share one. Properties
    are tried with the same inputs each time; in a long run with others each time, and with the
    full number under the memory checkers.
    """
    takes = {"loom": 40, "tests": 40, "memory": 80}
    more = {"loom": {"RHIST_TEST_LONG": "1"}, "memory": {"RHIST_TEST_ROUNDS": "100", "PROPTEST_CASES": "256"}}
    return [
        Job(f"host tests: {name}",
              within("tools/testing/host", "./test", name, CARGO_TARGET_DIR=target("host"),
                     RHIST_KERNEL_SOURCE=lab("path", "source")),
              takes=takes.get(name, 20), after=[SOURCES] + ["host tests: tests"] * (name == "unlocked"),
              environment=more.get(name, {}) if long else {"PROPTEST_RNG_SEED": "1"}, long=long)
        for name in names
    ]


def host(long=False, whole=True):
    """
    With whole, memory is checked, too, and scrapes and the compilation of unwind information are
    measured, for which the command is compiled once more.
    """
    return [
        copy_of_sources(),
        *lints(),
        Job("layers", ["tools/testing/layers"], takes=1),
        Job("words", ["tools/testing/words"], takes=1),
        Job("links", ["tools/testing/links"], takes=2),
        *layouts("stock"),
        *host_tests(["tests", "unlocked", "loom", "threads", *["memory"] * whole], long),
        *command(),
        *pages(),
        *command_tests("tests", "deny", "size", *["rules", "scrapes"] * whole),
    ]


def layouts(kernel):
    """For a kernel that may be missing so far."""
    path = 'exec scripts/lab chroot -- tools/testing/build/btf-header.sh "$(scripts/lab path btf "$1")"'
    return [Job(f"layouts of {kernel}", ["sh", "-c", path, "sh", kernel], takes=10)]


def boot_btf():
    folder = lab("path", "folder")
    return [Job("boot-btf", chroot("tools/testing/build/boot-btf.sh", lab("path", "btf"), f"{folder}/image"), takes=8)]


def lab_tests(kernel="stock"):
    return [Job(f"lab on {kernel}", ["tools/testing/lab/run"], takes={"stock": 60, "um": 25}.get(kernel, 100),
                  after=[f"kernel {kernel}"], environment={"RHIST_KERNEL": kernel})]


def matrix():
    return [Job("lab: matrix", ["tools/testing/lab/matrix.py"], takes=5)]


def inputs():
    """Runs some jobs once more, and checks which files they read."""
    return [Job("lab: inputs", ["tools/testing/lab/inputs.py"], takes=40,
                  after=["events for um", *(programs_of(suite, "um") for suite in ("hist", "user_events", COMMAND)), COMMAND])]


def archive():
    """Most of the time, they wait for apt."""
    return [Job(f"lab: archive: {name}", [f"tools/testing/lab/archive/{name}"], takes=takes, cores=0)
            for name, takes in (("kernels", 60), ("mirror", 60), ("rust", 25))]


def waits():
    """Uses no processor: it waits for time limits."""
    return [Job("lab: waits", ["tools/testing/lab/run", "waits"], takes=40, cores=0, after=["kernel um"])]


def needs():
    folder = lab("path", "folder")
    return [Job("needs", chroot(str(TOP / "tools/testing/build/needs.sh"), f"{folder}/Module.symvers", f"{folder}/vmlinux",
                                  str(TOP / "build/stock")), takes=10, after=["module for stock"])]


def crates():
    return [Job("crates", chroot(str(TOP / "tools/testing/build/crates.sh"), lab("path", "source")), takes=5)]


def event_sources():
    places = (lab("path", key) for key in ("source", "kdir", "btf", "modules"))
    return [Job("event sources", chroot("tools/testing/build/event-sources.sh", *places), takes=10)]


def objects():
    return [Job("objects", ["tools/testing/build/objects.sh"], takes=40, after=["module for stock"])]


def dkms():
    return [Job("dkms", ["tools/testing/build/dkms.sh"], takes=1)]


def frames():
    return [Job("frames", chroot(str(TOP / "tools/testing/frames"), str(TOP / "build/stock/rhist.ko")), takes=5,
                  after=["module for stock"])]


def count():
    return [Job("instructions", ["scripts/bench", "check"], takes=150, after=["module for stock"])]


def unwind():
    """Compares stacks of running programs, by rules of their files, with gdb's."""
    clients = f"{lab('path', 'lab')}/clients/usr"
    gdb = ["env", f"LD_LIBRARY_PATH={clients}/lib/x86_64-linux-gnu", f"{clients}/bin/gdb", f"--data-directory={clients}/share/gdb"]
    programs = [f"{target(name)}/debug/examples/{program}" for name, program in (("host", "walk"), ("command", "rules"))]
    return [Job("unwind", chroot(str(TOP / "tools/testing/unwind/run"), *programs, *gdb), takes=160,
                after=["host tests: tests", "command: tests"], lab=["clients"])]


def fuzz(*arguments):
    folder = lab("path", "lab")
    return [Job("fuzzing", chroot("tools/testing/host/fuzz/run", *arguments, PATH=f"{folder}/fuzz/bin:/usr/bin:/bin",
                                    CARGO_TARGET_DIR=target("fuzz"), FUZZ_TIME=os.environ.get("FUZZ_TIME", ""),
                                    FUZZ_SEED=os.environ.get("FUZZ_SEED", ""), FUZZ_RUST=f"{folder}/rust/bin"),
                  takes=600, cores=2, limit=20000, lab=["fuzz", "rust"])]


def all_jobs(durations, long=False, tests=None, seed=None):
    """
    Returns the jobs of make test, or of make test-long; a seed draws the order of tests;
    `tests` limits the selftests.
    """
    tests = selftests.read() if tests is None else tests
    if long:
        of_guests = [
            *guests("um", tests, durations, long=True, seed=seed), *guests("stock", tests, durations, long=True, cpus=4, seed=seed),
        ]
    else:
        of_guests = [
            *guests("um", selftests.short_on(tests, "um"), durations),
            *guests("stock", selftests.short_on(tests, "stock"), durations, rest=True),
        ]
    return timed([
        *module("stock"), *module("um"), *programs(), *orc("stock"), *(samples("stock") if long else []), *of_guests,
        *lab_tests(), *lab_tests("um"), *archive(), *matrix(), *inputs(), *waits(), *needs(), *crates(), *event_sources(),
        *objects(), *boot_btf(), *dkms(), *frames(), *count(), *host(long, whole=long), *unwind(),
    ], durations)


# Most seconds of a cheap job, and of each job that it needs.
CHEAP = 5


def cheap_jobs(durations):
    """
    Returns jobs of make test that can be tried in many orders. Guests are excluded: each has
    tests for minutes.
    """
    found = all_jobs(durations)
    names = {job.name: job for job in found}

    def is_cheap(job):
        return not job.tests and job.takes <= CHEAP and all(is_cheap(names[name]) for name in job.after if name in names)

    return [job for job in found if is_cheap(job)]


def kernel_jobs(kernel, durations):
    """Returns all guest tests on one kernel, which may be slow to emulate."""
    slow = kernel in SLOW
    of_guests = guests(kernel, selftests.read(), durations, rest=slow, patience=None if slow else 1200)
    return timed([*module(kernel), *orc(kernel), *programs(kernel), *layouts(kernel), *of_guests], durations)


def short_jobs(kernel, durations):
    tests = {f"{test.suite}.{test.name}": test for test in selftests.read()}
    of_suites = [
        guest(kernel, [tests[f"{suite}.{name}"] for name in names.split()], durations, patience=1200)
        for suite, names in (SHORT if tests["hist.sidebyside"].can_run_on(kernel) else ALONE)
    ]
    return timed([*module(kernel, SHORT_HEADERS), *of_suites], durations)


def fast_jobs(durations):
    tests = [test for test in selftests.read() if f"{test.suite}.{test.name}" in FAST.split()]
    return timed([
        *module("um"), *programs(), copy_of_sources(), *lints(), *host_tests(["tests"]), *guests("um", tests, durations),
    ], durations)


def debug_jobs(durations):
    """
    Returns all guest tests: on user-mode Linux if possible, and on the debug kernel for the rest.
    """
    tests = selftests.read()
    return timed([
        *module("debug"), *module("umdebug"), *orc("debug"), *programs(),
        *guests("umdebug", tests, durations), *guests("debug", tests, durations, rest=True),
        *lab_tests("debug"), *lab_tests("umdebug"),
    ], durations)


def part_jobs(durations, number):
    """
    Returns a part of the guest tests on user-mode Linux that looks for faults: the next number
    selects another part, and PARTS numbers all of them. Measured times do not change the parts,
    and neighbours in the table, which are of a kind, are in different ones.
    """
    tests = [test for test in selftests.read() if test.can_run_on("umdebug")]
    part = tests[number % PARTS :: PARTS]
    return timed([*module("umdebug"), *programs(), *guests("umdebug", part, durations)], durations)


def kcsan_jobs(durations):
    tests = [test for test in selftests.read() if test.races]
    return timed([
        *module("kcsan"), *programs(), *lab_tests("kcsan"), *guests("kcsan", tests, durations, rest=True),
    ], durations)


def needed(jobs, wanted):
    """Returns these jobs, and the jobs that they need."""
    names = {job.name: job for job in jobs}
    chosen = {}

    def add(job):
        for name in job.after:
            if name in names:
                add(names[name])
        chosen[job.name] = job

    for job in wanted:
        add(job)
    return list(chosen.values())


def timed(jobs, durations):
    """Stores in jobs their last durations. For guests, that is the sum of their tests."""
    for job in jobs:
        if not job.tests:
            job.takes = durations.get(job.name) or job.takes
    return jobs
