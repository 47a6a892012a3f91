# SPDX-License-Identifier: GPL-2.0
"""
The table of selftests: tools/testing/selftests/tests.toml, whose header explains its columns.

usage: python3 scripts/selftests.py TABLE SUITE [all]

Prints the names of a suite's tests, those for long runs only with "all", for selftests/run.
"""

import functools
import random
import re
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
FOLDER = TOP / "tools" / "testing" / "selftests"
TABLE = FOLDER / "tests.toml"

# Lab kernels of their own configuration. Others are Debian's, called "stock" or by their release;
# or shapes.
OWN = ("um", "umdebug", "debug", "kcsan")
USER_MODE = ("um", "umdebug")
# They look for faults.
SLOW = ("umdebug", "debug", "debug-6.12", "debug-orc", "kcsan")
# Kernels in the shapes of other distributions, and further debug kernels, with the series of their
# C.
SHAPES = {"ubuntu": "7.2", "arch": "7.2", "nixos": "6.12", "kcfi": "", "debug-6.12": "6.12", "debug-orc": ""}
# In the table, "stock" without points that user-mode Linux has shown.
REST = "rest"
# Common names of releases in the table: 7.2.12, and 7.2, of 7.2.12+deb13-amd64.
SERIES = re.compile(r"(\d+\.\d+)(?:\.\d+)?")


@dataclass(frozen=True, eq=False)
class Test:
    suite: str
    name: str
    about: str
    on: tuple = ("um", "stock")
    short: tuple = ()
    races: bool = False
    long: bool = False
    limit: int = 0
    needs: str = ""
    lab: str = ""
    cpus: int = 2
    memory: str = ""
    asleep: bool = False
    turns: bool = False
    last: bool = False
    tsc: bool = False
    skips: dict = field(default_factory=dict)
    without: dict = field(default_factory=dict)

    def can_run_on(self, kernel):
        if kernel in self.without:
            return False
        like = {"umdebug": "um", "debug": "stock", "kcsan": "stock"}.get(kernel, kernel if kernel in OWN else "stock")
        return kernel in self.on or like in self.on

    def skipped_on(self, kernel, rest):
        """Returns the number of its points that are skipped there."""
        like = {"um": ["um"], "umdebug": ["umdebug", "um"], "debug": ["debug", REST, "stock"], "kcsan": ["kcsan", REST, "stock"],
                "debug-orc": ["debug", REST, "stock"]}
        series = SERIES.match(SHAPES.get(kernel, kernel))
        names = like.get(kernel, [*[kernel] * (kernel in SHAPES), *([series[0], series[1]] if series else []), *([REST] if rest else []), "stock"])
        return next((self.skips[name] for name in names if name in self.skips), 0)


@functools.cache
def load(path):
    with open(path, "rb") as file:
        return tomllib.load(file)


def ceilings():
    """Returns the ceilings of single jobs, and of all guests of a suite on a kernel."""
    return load(TABLE)["ceilings"]


def read(path=TABLE):
    """All tests, in the order of the table; exits with a sentence if the table is wrong."""
    tests = []
    for suite, rows in load(path).items():
        if suite == "ceilings":
            continue
        for name, row in rows.items():
            try:
                row = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
                test = Test(suite, name, **row)
            except TypeError as error:
                sys.exit(f"{path}: {suite}.{name}: {error}")
            if unknown := {*test.on, *test.short} - {*OWN, "stock"}:
                sys.exit(f"{path}: {suite}.{name}: unknown kernel: {', '.join(unknown)}")
            if unknown := {*test.without} - {*OWN, *SHAPES, "stock"}:
                sys.exit(f"{path}: {suite}.{name}: without {', '.join(unknown)}?")
            if unknown := {name for name in {*test.skips} - {*OWN, *SHAPES, "stock", REST} if not SERIES.fullmatch(name)}:
                sys.exit(f"{path}: {suite}.{name}: skips on {', '.join(unknown)}?")
            tests.append(test)
        programs = {file.stem for file in path.with_name(suite).iterdir() if file.suffix in (".c", ".sh")}
        if missing := programs - rows.keys():
            sys.exit(f"{path}: no row for {', '.join(f'{suite}.{name}' for name in sorted(missing))}")
    return tests


def short_on(tests, kernel):
    """Returns the tests of make test on "um" or "stock"."""
    return [test for test in tests if kernel in (test.short or test.on) and not test.long]


def in_order(tests, seed=None):
    """
    Returns the tests in the order of the table; or in one that a seed draws, except the ones that
    run after all others.
    """
    if seed is None:
        return list(tests)
    drawn = list(tests)
    random.Random(seed).shuffle(drawn)
    return sorted(drawn, key=lambda test: test.last and 1 + tests.index(test))


if __name__ == "__main__":
    table, wanted, *words = sys.argv[1:]
    print(*(test.name for test in read(Path(table)) if test.suite == wanted and (words or not test.long)))
