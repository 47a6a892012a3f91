# SPDX-License-Identifier: GPL-2.0
"""
Inputs: the files of this checkout, and the parts of the lab, that the result of a job depends
on, each as one hash.
"""

import functools
import hashlib
import os
import re
from dataclasses import asdict, replace
from pathlib import Path

import sessions
from pieces import TOP, key, sources_of_checkout
from sessions import lab

# Files and folders that several jobs read.
GUEST = ("scripts/vm scripts/guest scripts/guest-um scripts/faults.py scripts/kernel-faults scripts/sessions.py scripts/selftests.py "
         "scripts/tap.awk tools/testing/lab/stale_int3")
LINT = "scripts/lint scripts/toolchain"
KBUILD = "Makefile scripts/kbuild"
MODULE = (f"{KBUILD} Kbuild src rust include scripts/Makefile.crates scripts/Makefile.kcsan scripts/boot-btf scripts/btf-header "
          "scripts/event-headers scripts/event-sources scripts/private_types.py scripts/probe-cc scripts/rust-imports "
          "scripts/short-names")
SUITE = "tools/testing/selftests"
TAP = f"tools/testing/build {SUITE}/lib/tap.sh"
PURE = ("src rust tools/testing/host tools/testing/selftests/hist/errors.tsv "
        "tools/testing/selftests/hist/scenes")
TESTED = "Documentation/tested.json Documentation/tested.rst"

# Rows by the whole name of a job, which the first pattern matches: files that it reads itself,
# besides the files of the jobs that it needs; and pieces of the lab. A \1 there stands for the
# parentheses' match. A job without a row depends on all files.
JOBS = [(re.compile(pattern), files.split(), of_lab.split()) for pattern, files, of_lab in (
    (r"kernel (\S+)", "", r"\1"),
    (r"module for (\S+)", MODULE, r"\1 crates"),
    (r"clippy of the module", f"{MODULE} {LINT}", "stock crates"),
    (r"events for (\S+)", f"{KBUILD} include tools/testing/events", r"\1"),
    (r"orc for (\S+)", f"{KBUILD} rust tools/testing/lab/orc", r"\1"),
    (r"samples for (\S+)", KBUILD, r"\1 source"),
    (r"programs of \w+(?: for arm64)?",
     f"include {SUITE}/lib tools/testing/events/values.h tools/user_events tools/testing/clients", "source clients"),
    (r"copy of the sources", "", ""),
    (r"command: tests", "tools/rhist Documentation/command.rst", "rust"),
    (r"command for arm64", "tools/rhist", "rust-arm64 cross"),
    (r"(?:\w+ of the )?command|command: \w+", f"tools/rhist {LINT}", "rust deny"),
    (r"rustfmt", f"src rust tools/testing tools/user_events .rustfmt.toml {LINT}", ""),
    (r"clippy of host(?:/bench)?", f"{PURE} {LINT}", ""),
    (r"fuzzing", f"{PURE} tools/rhist {LINT}", "rust"),
    (r"clippy of clients", f"tools/testing/clients {LINT}", ""),
    (r"host tests: \w+", f"{PURE} Documentation/hist_jsonl.rst Documentation/hist_jsonl.schema.json", "source"),
    (r"words", "README.md CONTRIBUTING.rst Documentation src rust scripts tools", ""),
    (r"layers", "src rust tools/rhist tools/testing/layers tools/testing/layers.toml", ""),
    (r"links", "Makefile Kbuild README.md CONTRIBUTING.rst COPYING NEWS .ci .gitignore .rustfmt.toml Documentation include rust "
     "scripts src tools", ""),
    (r"layouts of (\S+)", f"{TAP} scripts/btf-header", r"\1 source"),
    (r"boot-btf", f"{TAP} scripts/boot-btf scripts/btf-header scripts/kbuild", "source stock"),
    (r"needs", f"{TAP} src rust scripts/needs scripts/needs.exports scripts/btf-header scripts/sessions.py scripts/selftests.py", "source stock"),
    (r"crates", f"{TAP} scripts/crates scripts/rust-imports", "source"),
    (r"event sources", f"{TAP} scripts/event-sources scripts/private_types.py rust", "source stock"),
    (r"objects", f"{TAP} {MODULE} scripts/lab", "source stock crates"),
    (r"dkms", f"{TAP} scripts/package scripts/sources rust/module.c", "source"),
    (r"frames", "tools/testing/frames", "stock"),
    (r"instructions", f"{MODULE} {GUEST} scripts/bench tools/bench {SUITE}/lib", "source stock"),
    (r"unwind", "tools/testing/unwind", "clients"),
    (r"lab on (\S+)", f"Makefile scripts tools/testing/lab tools/testing/layers "
     f"tools/testing/layers.toml tools/testing/host {SUITE} tools/rhist src rust", r"\1 source"),
    (r"lab: archive: \w+", f"scripts tools/testing/lab/archive tools/rhist/Cargo.toml tools/rhist/test {SUITE}/lib/tap.sh", "source"),
    (r"lab: waits", f".ci scripts tools/testing/lab {SUITE}", "source um stock"),
    # It checks that all paths of this table exist.
    (r"lab: matrix", "Makefile Kbuild README.md .ci .rustfmt.toml Documentation include rust scripts src tools", ""),
    (r"(?:hist|user_events|hostile|command) on (\S+):.*", f"{GUEST} {SUITE}/run {SUITE}/lib", r"\1 source clients"),
)]
# Files that single tests read besides the programs of their suite.
TESTS = {
    "hist.files": "rust/module.c",
    "hist.manual": "Documentation/man",
    "command.basic": "rust/module.c",
    "command.guide": "Documentation/guide.rst",
    "command.peers": "tools/rhist/recipes",
    "command.prometheus": "tools/rhist/fleet",
    "command.recipes": "tools/rhist/recipes",
}
# Files that do not count for jobs that depend on all files: recording results changes nothing
# that is tested.
NEVER = {*TESTED.split(), "NEWS"}
# The compilers, and the emulators.
TOOLS = {"rustc", "bindgen", "gcc-14", "gcc-16", "gcc-14-aarch64-linux-gnu", "clang-19", "qemu-system-x86", "qemu-system-arm"}
# Root file systems with compilers, besides the lab's own.
BUILDERS = ("root-next", "cross")


class Inputs:
    """Inputs of these jobs, and of the jobs among them that they need, as the files are now."""

    def __init__(self, jobs, top=TOP, sources=None, folder=None, recipes=None):
        self.jobs = {job.name: job for job in jobs}
        self.top, self.folder = Path(top), Path(folder or lab("path", "lab"))
        names = sources_of_checkout() if sources is None else sources
        self.files = {name: hash_of(self.top / name) for name in names}
        self.recipes = read_recipes() if recipes is None else recipes

    def of(self, job):
        """
        Returns two hashes for each result of a job, by its key, in the order of its tests: of
        files, and of the lab, which is None if a part of that is missing. Passing with few probes
        does not count as passing with all.
        """
        few = any(word.startswith("RHIST_EVENT_HEADERS=") for each in self.closure(job) for word in each.command)
        return {name + " (few probes)" * few: (digest(self.contents(one)), self.of_lab(one))
                for one in singles(job) for name in keys(one)}

    def closure(self, job):
        """
        Returns the job, and the jobs that it needs. Of an unknown one, only the name is set.
        """
        found, names = [], [job.name]
        for name in names:
            unknown = replace(job, name=name, command=[], after=[], tests=[])
            found.append(each := job if name == job.name else self.jobs.get(name, unknown))
            names += [other for other in each.after if other not in names]
        return found

    def read_by(self, job):
        """Returns the files that it, or a job that it needs, may read."""
        places, others = set(), set()
        for each in self.closure(job):
            if not (row := row_of(each.name)):
                return set(self.files) - NEVER
            places.update(row[1])
            if match := re.match(r"programs of (\w+)", each.name):
                places.add(f"{SUITE}/{match[1]}")
        for test in job.tests:
            places.update([f"{SUITE}/{test.suite}", *TESTS.get(f"{test.suite}.{test.name}", "").split()])
        if len(job.tests) == 1:
            others = self.other_tests(job.tests[0])
        return {name for place in places for name in self.below(place)} - others

    def other_tests(self, test):
        """Returns the programs of other tests of its suite, except the ones that it starts."""
        folder = f"{SUITE}/{test.suite}"
        script = f"{folder}/{test.name}.sh"
        text = (self.top / script).read_text(encoding="utf-8") if script in self.files else ""
        started = {test.name, *re.findall(r"\$OUT/(\$|\w+)", text)}
        return {name for name in self.below(folder)
                if re.search(r"\.(c|sh)$", name) and "$" not in started and Path(name).stem not in started}

    @functools.cache
    def below(self, place):
        return [name for name in self.files if name == place or name.startswith(f"{place}/")]

    def contents(self, job):
        """
        Returns all that goes into the hash of files. A kernel that the lab compiles is
        represented by its recipe, as the lab may not have made it by this one yet.
        """
        return [
            *(f"{name} {self.files[name]}" for name in sorted(self.read_by(job))),
            *(self.portable(each) for each in self.closure(job) if not each.name.startswith("kernel ")),
            *(self.recipes[name][1] for each in self.closure(job) if (name := each.name.removeprefix("kernel ")) in self.recipes),
            # Variables of other jobs affect only their output, not their products.
            *(f"{name}={value}" for name, value in sorted(job.environment.items()) if name != "TEST_TIMEOUT"),
            *(repr(sorted({**asdict(test), "about": ""}.items())) for test in job.tests),
        ]

    def portable(self, job):
        """
        Its command, as in any checkout on any machine; for a guest, without names of tests and
        time limits.
        """
        words = job.command[: job.command.index("--timeout")] if job.tests else job.command
        return re.sub(r"-j\d+", "", " ".join(map(str, words)).replace(str(self.top), "TOP").replace(str(self.folder), "LAB"))

    def of_lab(self, job):
        wanted = {"root"}
        for each in self.closure(job):
            if row := row_of(each.name):
                match = row[0].fullmatch(each.name)
                wanted.update(match.expand(word) for word in row[2])
        states = [self.lab_piece(name) for name in sorted(wanted)]
        return None if None in states else digest(states)

    @functools.cache
    def lab_piece(self, name):
        """Identifies how a piece was made; None if it is missing."""
        try:
            if name in ("root", *BUILDERS):
                status = (self.folder / name / "var/lib/dpkg/status").read_text(encoding="utf-8")
                versions = re.findall(r"^Package: (\S+)$(?:\n.+)*?\nVersion: (.*)", status, re.MULTILINE)
                return repr(sorted(found for found in versions if found[0] in TOOLS))
            recipe = (self.folder / f"{name}.recipe").read_text(encoding="ascii")
            tools = (self.folder / f"{name}/tools").read_text(encoding="ascii") if name in self.recipes else ""
        except FileNotFoundError:
            return None
        # Modules for some kernels are compiled in another root file system, which depends on the
        # kernel's release.
        facts = self.folder / f"{self.recipes.get(name, (name,))[0]}.kernel"
        builder = facts.exists() and re.search(rf"^builder=({'|'.join(BUILDERS)})$", facts.read_text(encoding="ascii"), re.MULTILINE)
        # Not in its recipe: the version of the Rust of backports.
        return repr((name, recipe, tools, sorted(path.name for path in (self.folder / name).glob("usr/lib/*/librustc_driver*")),
                     builder and self.lab_piece(builder[1])))


def read_recipes():
    """
    Returns for each kernel that the lab compiles the release whose source and compilers it uses,
    and its recipe.
    """
    folder = sessions.LAB.parent
    files = [folder / name for name in ("lab", "kernels", "headers")] + sorted((folder / "config").iterdir())
    return recipes_of(folder, *map(hash_of, files))


@functools.cache
def recipes_of(folder, *_):
    """
    Cached by the hashes of files in scripts/, as scripts/lab takes longer than hashing them.
    """
    return {match[1]: (match[2], match[3]) for match in re.finditer(r"^(\S+) of (\S+): (.*)$", lab("recipes"), re.MULTILINE)}


def hash_of(path):
    """
    Hash of a file; of a link, hash of its target's path; empty for a file that is gone meanwhile,
    such as an editor's.
    """
    try:
        return hashlib.sha256(path.read_bytes() if not path.is_symlink() else os.fsencode(os.readlink(path))).hexdigest()
    except FileNotFoundError:
        return ""


def row_of(name):
    return next((row for row in JOBS if row[0].fullmatch(name)), None)


def keys(job):
    """Of its results."""
    return [key(job.kernel, test, job.rest, job.long) for test in job.tests] or [job.name + " long" * job.long]


def singles(job):
    """Returns the job once for each of its tests alone, or the job."""
    return [replace(job, tests=[test]) for test in job.tests] or [job]


def digest(lines):
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:10]
