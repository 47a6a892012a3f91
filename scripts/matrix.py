# SPDX-License-Identifier: GPL-2.0
"""
The matrix: all tests on all kernels, in batches; and the table of passed tests, with the commit
and the time of each.
"""

import argparse
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pieces
import selftests
from inputs import SUITE, Inputs, keys
from pieces import TOP, Job, guests, module, narrowed, needed, orc, programs, samples, timed
from record import Record, git, read, unpassed, write
from runner import NOT_RUN, Durations, Runner
from selftests import OWN, SHAPES, SLOW
from sessions import NOT_THERE, is_foreign, known_kernels, lab, make_in_lab, say

TABLE, PAGE = TOP / "Documentation" / "tested.json", TOP / "Documentation" / "tested.rst"
# Most seconds of a batch, unless it is a single test.
BATCH = 1200
# Number of recent commits whose changes are tested first.
RECENT = 30
COLUMNS = ("build", "hist", "user_events", "hostile", "command", "long", "lab")
ABOUT = """\
.. SPDX-License-Identifier: GPL-2.0

==============
Tested kernels
==============

``scripts/test matrix --write`` makes this page from ``tested.json``, with which ``make matrix`` continues: see "What has passed" in
``tools/testing/README.rst``. Rows are kernels; columns are the build of the module, the suites, their long forms, and the lab. A
cell has the points that passed, and those that failed, the minutes that they took, and the commit of the test with the oldest
result; with a plus, if files differed from that commit. A test only runs again when a file changes that it depends on. ``3/8``:
only 3 of 8 tests have run. ``-``: no test for this kernel. ``stock`` is the newest plain kernel of ``scripts/kernels``.

The x86 processors that QEMU emulates have no counter of cycles. There, ``hist.cycles`` shows that they are refused, and tests the
rest with a counter that the module ``rhist_events`` emulates, by a call of its handler from an NMI. Counters of real x86
processors were not tried. For arm64, QEMU emulates counters, and the test takes these.

Tests that need no kernel, or choose one themselves, are below::

"""
# Rows other than kernels.
HOST = ("host", "packages")
# Seconds to make a kernel.
MAKE = {"um": 300, "umdebug": 600, **dict.fromkeys(("debug", "kcsan", *SHAPES), 1200)}


def kernels():
    stock = lab("path", "release", "stock")
    return ["um", "stock", "umdebug", "debug", "kcsan", *SHAPES, *(name for name in known_kernels() if name != stock)]


def on_kernel(kernel, durations, seed=None):
    """The tests of a kernel, by column; the jobs that only others need come first, without a column."""
    tests = [test for test in selftests.read() if not test.long and (test.races or kernel != "kcsan")]
    slow = {"rest": kernel != "umdebug"} if kernel in SLOW else {"patience": 1200}
    yield "", [*module(kernel)[:-2], *programs(kernel), *orc(kernel), *samples(kernel)]
    yield "build", module(kernel)[-2:] + (pieces.layouts(kernel) if kernel not in OWN and not is_foreign(kernel) else [])
    for guest in guests(kernel, tests, durations, seed=seed, **slow):
        yield guest.tests[0].suite, [guest]
    if kernel in ("um", "stock"):
        yield "long", guests(kernel, selftests.read(), durations, long=True, seed=seed, **({"cpus": 4} if kernel == "stock" else {}))
    if kernel in ("stock", *OWN):
        yield "lab", pieces.lab_tests(kernel)


def on_host(durations):
    """
    Returns the jobs that need no kernel, or choose one of their own: everything else in make
    test-long, and fuzzing.
    """
    others = {job.name for kernel in ("um", "stock") for _, found in on_kernel(kernel, durations) for job in found}
    built = ["events for stock", "command"]
    return [
        *(job for job in pieces.all_jobs(durations, long=True, tests=[]) if job.name not in {*others, "lab: matrix"}),
        *pieces.fuzz(),
        Job("what is pushed", ["tools/testing/otlp/run", "stock"], takes=120, after=built),
        Job("fleet", ["tools/testing/fleet/run", "stock"], takes=600, after=built, lab=["prometheus"]),
    ]


def packages():
    """
    A row of its own, as they make the command themselves, and wait for the copy of the sources
    until no other job uses it.
    """
    variables = {"upgrade": {"BEFORE": lab("own")}, "arm64": {"ARM64": next(filter(is_foreign, known_kernels()))}}
    return [Job(f"packages: {tests}", ["tools/testing/packages/run", *tests.split()], takes=takes, limit=7200, patience=3600,
                  environment=variables.get(tests, {}), lab=list(variables.get(tests, {}).values()))
            for tests, takes in (("recipes modules tools service debian dkms", 900), ("upgrade", 600), ("arm64", 600))]


class Matrix:
    """Returns all its jobs, and the jobs that they need, by row and column."""

    def __init__(self, durations, rows=None, seed=None):
        self.durations = durations
        self.rows = {kernel: list(on_kernel(kernel, durations, seed)) for kernel in rows or kernels()}
        if not rows:
            self.rows |= {"host": [("host", on_host(durations))], "packages": [("host", packages())]}
        self.jobs = timed([job for row in self.rows.values() for _, found in row for job in found], durations)

    def batches(self, record, words=("",), changes=()):
        """
        Returns the batches with tests that have not passed with their inputs, and have one of the
        words in their key; the riskiest first.
        """
        inputs, found = Inputs(self.jobs), []
        for row, columns in self.rows.items():
            parts = [part for column, each in columns if column for job in each
                     if (left := unpassed(job, inputs, record, self.durations, words))
                     for part in by_change(left, changes, self.durations)]
            parts.sort(key=lambda part: risk(row, part, record, changes))
            batch = None
            for part in parts:
                if not batch or batch.takes() + part.takes > BATCH:
                    found.append(batch := Batch(row, [], risk(row, part, record, changes)))
                batch.jobs.append(part)
        return sorted(found, key=lambda batch: batch.risk)

    def table(self, record):
        """Returns an entry, or None, for each key."""
        return {name: record.get(name) for row in self.rows.values() for column, found in row if column
                for job in found for name in keys(job)}


@dataclass
class Batch:
    row: str
    jobs: list
    risk: tuple

    def takes(self):
        return sum(job.takes for job in self.jobs)

    def setup(self, folder):
        """
        Seconds until its kernel and the module are made, if they are missing. They do not count
        as the batch's own.
        """
        if self.row in HOST:
            return 0
        kernel = 0 if (folder / f"{self.row}.recipe").exists() else MAKE.get(self.row, 180)
        return kernel + (0 if (TOP / "build" / self.row / "rhist.ko").exists() else 200)


def in_time(batches, seconds, folder, clock=time.monotonic):
    """Yields the batches that would be done within these seconds, when it is their turn."""
    end = clock() + seconds
    return (batch for batch in batches if clock() + batch.takes() + batch.setup(folder) <= end)


def is_changed(test, changes):
    return any(f"{SUITE}/{test.suite}/{test.name}.{suffix}" in changes for suffix in ("c", "sh", "py"))


def by_change(job, changes, durations):
    """Separates tests that were changed themselves."""
    first = [test for test in job.tests if is_changed(test, changes)]
    others = [test for test in job.tests or [job] if test not in first]
    return [part for tests in (first, others) if (part := narrowed(job, tests, durations))]


def risk(row, job, record, changes):
    """
    Sort key, less is riskier: changed tests; on a kernel that looks for faults; then the oldest
    result.
    """
    return (not any(is_changed(test, changes) for test in job.tests), row not in SLOW,
            min(record[name].when if name in record else 0 for name in keys(job)))


def attempt(wanted, everything, durations, record):
    """Runs jobs. Returns the runner, and the jobs that failed, with their failed tests."""
    chosen = needed(everything, wanted)
    with pieces.locks(chosen):
        runner = Runner(chosen, durations=durations, record=record)
        found = runner.run()
    failed = {job.name: [name for name, result in found[job.name][1].items() if result.failed]
              for job in chosen if found[job.name][0] == "failed"}
    return runner, [narrowed(job, [test for test in job.tests or [job] if test.name in failed[job.name]], durations)
                    for job in wanted if job.name in failed]


def possible(batch, everything, leave_out):
    """Returns the jobs of a batch that can be run here, and the ones left out."""
    names = {job.name for job in batch.jobs}
    chosen, left = leave_out(needed(everything, [replace(job) for job in batch.jobs]))
    return [job for job in chosen if job.name in names], left


def run_batch(batch, everything, durations, record):
    """
    Runs a batch, and repeats failures once. Returns the number of passed points; the keys that
    failed twice, or could not be run; and the keys that passed when repeated.
    """
    runner, failed = attempt(batch.jobs, everything, durations, record())
    bad = [name for job in batch.jobs if runner.states.get(job.name) == NOT_RUN for name in keys(job)]
    again, repeated = [], []
    if failed:
        say(f"repeated once: {', '.join(name for job in failed for name in keys(job))}")
        _, again = attempt(failed, everything, durations, record())
        bad += [name for job in again for name in keys(job)]
        repeated = [name for job in failed for name in keys(job) if name not in bad]
    kept = record()
    return sum(kept[name].passed for job in batch.jobs for name in keys(job) if name in kept and name not in bad), bad, repeated


def rows_of_part(rows, part):
    """Returns the rows of part I/N."""
    number, count = map(int, part.split("/"))
    if not 0 < number <= count:
        raise ValueError
    return rows[number - 1 :: count]


# --- the table


def place(name):
    """Returns row and column of a key."""
    if match := re.fullmatch(r"(\S+?)( rest)?( long)?: (\w+)\.\S+", name):
        return match[1], "long" if match[3] else match[4]
    if match := re.fullmatch(r"(?:module|events|layouts) (?:for|of) (\S+)|lab on (\S+)", name):
        return match[1] or match[2], "build" if match[1] else "lab"
    return "host", name


def cell(entries):
    """
    Returns a cell: how many tests have run, if not all; points, minutes, and the commit of the
    oldest.
    """
    ran = [entry for entry in entries if entry]
    if not ran:
        return "not run" if entries else "-"
    failed = sum(entry.failed for entry in ran)
    return " ".join([
        *[f"{len(ran)}/{len(entries)}"] * (len(ran) < len(entries)), f"{sum(entry.passed for entry in ran)}",
        *[f"{failed} failed"] * bool(failed), f"{sum(entry.seconds for entry in ran) / 60:.1f}m",
        min(ran, key=lambda entry: entry.when).commit])


def printed(table):
    """
    Returns the lines of the table: kernels with a column for each suite; jobs without a kernel;
    and failed or repeated tests.
    """
    cells = {}
    for name, entry in table.items():
        row, column = place(name)
        cells.setdefault(row, {}).setdefault(column, []).append(entry)
    host = cells.pop("host", {})
    rows = [("kernel", *COLUMNS), *((row, *(cell(found.get(column, [])) for column in COLUMNS)) for row, found in cells.items())]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    width = max(map(len, host), default=0)
    return [
        *("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows), "",
        *(f"{name:{width}}  {cell(entries)}" for name, entries in host.items()), "",
        "failed: " + (", ".join(name for name, entry in table.items() if entry and entry.failed) or "none"),
        "passed when repeated: " + (", ".join(name for name, entry in table.items() if entry and entry.repeated) or "none"),
    ]


def page(table):
    """Returns Documentation/tested.rst, made from the table alone."""
    return ABOUT + "".join(f"    {line}".rstrip() + "\n" for line in printed(table))


def matrix(words, seed, leave_out):
    """
    Runs scripts/test matrix. The seed draws the order of tests in a guest. leave_out returns the
    jobs that can be run here, and the ones left out.
    """
    parser = argparse.ArgumentParser(prog="scripts/test matrix")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("words", nargs="*", default=[""])
    options = parser.parse_args(words)
    durations, began = Durations(), time.monotonic()
    whole = Matrix(durations, seed=seed)
    try:
        rows = rows_of_part(list(whole.rows), options.part)
    except ValueError:
        parser.error("--part: I/N is part I of N")
    if not any(word in name for name in whole.table({}) for word in options.words):
        parser.error(f"no key has {' or '.join(options.words)} in it: see {TABLE.relative_to(TOP)}")
    # Results of other machines count.
    for table in {TABLE, options.table}:
        Record().put(read(table))
    changes = git("log", f"-{RECENT}", "--format=", "--name-only").split("\n")
    batches = [batch for batch in whole.batches(Record(), options.words, changes) if batch.row in rows]
    say(f"{len(batches)} batches, about {sum(batch.takes() for batch in batches) / 60:.0f} minutes, besides making kernels that are not there")
    total, failed, repeated, impossible, without, done = 0, [], [], {}, {}, 0
    for batch in in_time(batches, 60 * options.minutes - (time.monotonic() - began), Path(lab("path", "lab"))):
        since = time.monotonic()
        if batch.row not in {*HOST, *impossible}:
            status, why = make_in_lab(batch.row)
            if status:
                impossible[batch.row] = why
            if status not in (0, NOT_THERE):
                failed.append(batch.row)
        if batch.row in impossible:
            continue
        batch.jobs, left = possible(batch, whole.jobs, leave_out)
        for each in left:
            without.setdefault(each.why, []).extend(each.names)
        if not batch.jobs:
            continue
        say(f"\n{batch.row}: {', '.join(job.name for job in batch.jobs)}: about {batch.takes() / 60:.0f} minutes, "
            f"{(time.monotonic() - since) / 60:.0f} for the kernel")
        passed, bad, again = run_batch(batch, whole.jobs, durations, lambda: Record(jobs=whole.jobs))
        total, failed, repeated, done = total + passed, failed + bad, repeated + again, done + 1
        if options.table != TABLE:
            write(options.table, whole.table(Record()))
    table = whole.table(Record())
    if options.write:
        write(TABLE, table)
        PAGE.write_text(page(table), encoding="utf-8")
    say("\n".join(["", *printed(table), "", f"{len(batches) - done} of {len(batches)} batches were not begun",
                   *(f"not possible: {row}: {why}" for row, why in impossible.items()),
                   *(f"left out: {', '.join(names)}: {why}" for why, names in without.items()),
                   f"now passed when repeated: {', '.join(repeated) or 'none'}", f"now failed: {', '.join(failed) or 'none'}"]))
    say(f"{total} passed, {len(failed)} failed")
    return int(bool(failed))
