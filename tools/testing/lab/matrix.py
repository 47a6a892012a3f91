#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Tests which files scripts/test takes for the inputs of a job, which results it keeps, and which
batches make matrix runs next.
"""

import contextlib
import functools
import io
import re
import shutil
import sys
import tempfile
import unittest
import unittest.mock
from dataclasses import replace
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
import inputs
import matrix
import pieces
import record
import runner
import selftests

BASIC, FILES = selftests.Test("hist", "basic", "what"), selftests.Test("hist", "files", "")
SUITE = "tools/testing/selftests/hist"
SOURCES = ("src/rhist.rs", "rust/module.c", f"{SUITE}/basic.c", f"{SUITE}/files.sh", f"{SUITE}/fuzz.sh", f"{SUITE}/rows.h",
           "Documentation/guide.rst", "Documentation/tested.json", "scripts/vm", "tools/rhist/Cargo.toml")
STATUS = "Package: rustc\nVersion: 1\nDepends: x\n\nPackage: less\nVersion: 1\n"


def guest(*tests, rest=False):
    return pieces.Job("hist on um: some", ["scripts/vm", "--timeout", "9", "--", "run", "hist", *(test.name for test in tests)],
                        after=["module for um", "programs of hist"], tests=list(tests), kernel="um", rest=rest, takes=600)


MODULE = pieces.Job("module for um", ["make", "KERNEL=um"], after=["kernel um"])
PROGRAMS = pieces.Job("programs of hist", ["make"])


class Folder(unittest.TestCase):
    """Makes a checkout and a lab of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name in SOURCES:
            self.write(name, name)
        self.write("lab/root/var/lib/dpkg/status", STATUS)
        for name in ("um", "crates", "source", "clients", "arch"):
            self.write(f"lab/{name}.recipe", name)
        self.write("lab/um/tools", "CC=gcc-14")
        self.write("lab/arch/tools", "CC=gcc-16")
        self.recipes = {"um": ("stock", "1 um.config"), "arch": ("7.2.13+deb14-amd64", "1 arch.config")}
        self.path = self.folder / "record.json"

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def known(self, *found):
        """Returns all hashes of these jobs."""
        now = inputs.Inputs([MODULE, PROGRAMS, *found], self.folder, SOURCES, self.folder / "lab", self.recipes)
        return {name: hashes for job in found for name, hashes in now.of(job).items()}


class Inputs(Folder):
    def changed_by(self, name, text="other"):
        """Returns the keys whose hashes change with the text of a file."""
        found = guest(BASIC, FILES), pieces.Job("layers", []), pieces.Job("unheard of", []), MODULE
        before = self.known(*found)
        self.write(name, text)
        return sorted(key for key, hashes in self.known(*found).items() if hashes != before[key])

    def test_own_and_through_needs(self):
        self.assertEqual(self.changed_by("rust/module.c"), ["layers", "module for um", "um: hist.basic", "um: hist.files", "unheard of"])
        self.assertEqual(self.changed_by(f"{SUITE}/rows.h"), ["um: hist.basic", "um: hist.files", "unheard of"])
        self.assertEqual(self.changed_by("scripts/vm"), ["um: hist.basic", "um: hist.files", "unheard of"])

    def test_another_test(self):
        self.assertEqual(self.changed_by(f"{SUITE}/basic.c"), ["um: hist.basic", "unheard of"])
        self.assertEqual(self.changed_by(f"{SUITE}/fuzz.sh"), ["unheard of"])

    def test_another_test_that_it_starts(self):
        self.write(f"{SUITE}/files.sh", '"$OUT/basic"')
        self.assertEqual(self.changed_by(f"{SUITE}/basic.c"), ["um: hist.basic", "um: hist.files", "unheard of"])

    def test_how_a_kernel_is_made(self):
        """Also while the lab has the kernel from an older recipe, or lacks it."""
        found = guest(BASIC), pieces.Job("layers", []), MODULE, pieces.Job("module for arch", [], after=["kernel arch"])
        before, self.recipes["um"] = self.known(*found), ("stock", "1 um.config CC=clang")
        now = self.known(*found)
        self.assertEqual([key for key in now if now[key][0] != before[key][0]], ["um: hist.basic", "module for um"])
        self.assertEqual([key for key in now if now[key][1] != before[key][1]], [])

    def test_what_the_lab_has_made_a_kernel_by(self):
        self.assertEqual(self.changed_by("lab/um/tools"), ["module for um", "um: hist.basic", "um: hist.files"])

    def test_recipes(self):
        """Stands in for scripts/lab's list of kernels before it has made one."""
        def changed(name, old, new):
            path = self.folder / name
            text = path.read_text(encoding="utf-8")
            self.assertIn(old, text)
            path.write_text(text.replace(old, new), encoding="utf-8")
            now = recipes()
            path.write_text(text, encoding="utf-8")
            return {kernel for kernel in now if now[kernel] != before[kernel]}

        def recipes():
            with unittest.mock.patch("sessions.LAB", self.folder / "scripts/lab"), \
                    unittest.mock.patch.dict("os.environ", RHIST_LAB=str(self.folder / "empty")):
                return inputs.read_recipes()

        shutil.copytree(pieces.TOP / "scripts", self.folder / "scripts", dirs_exist_ok=True)
        before = recipes()
        self.assertEqual(set(before), {"bench", *selftests.OWN, *selftests.SHAPES})
        self.assertEqual(before, inputs.read_recipes())
        by_file = {path.name: changed(f"scripts/config/{path.name}", "\n", "\n\n") for path in (self.folder / "scripts/config").iterdir()}
        self.assertTrue(all(by_file.values()), by_file)
        self.assertEqual(by_file["um.Kconfig"], {"um", "umdebug"})
        self.assertEqual(by_file["debug.config"], {"debug", "kcsan", "debug-6.12", "debug-orc"})
        self.assertEqual(changed("scripts/headers", "import", "import "), {"ubuntu", "arch"})
        self.assertEqual(changed("scripts/lab", "CFLAGS_MODULE=", "CFLAGS="), {"umdebug"})
        self.assertEqual(changed("scripts/lab", 'image=linux options="ARCH=um packaged"', 'image=linux options="ARCH=um LLVM=-19"'), {"um"})
        self.assertEqual(changed("scripts/lab", "kcfi) options=LLVM=-19", "kcfi) options=LLVM=-20"), {"kcfi"})
        self.assertEqual(changed("scripts/lab", 'recipe_own="4', 'recipe_own="5'), {"bench", *selftests.OWN})
        self.assertEqual(changed("scripts/kernels", "7.2.13+deb14-amd64", "7.2.14+deb14-amd64"), {"ubuntu", "arch"})

    def test_what_nobody_reads(self):
        self.assertEqual(self.changed_by("Documentation/guide.rst"), ["unheard of"])

    def test_what_an_editor_leaves(self):
        """
        A dangling link, a link to a folder, and a file that was removed before it was read.
        """
        found = pieces.Job("unheard of", [])
        (self.folder / "lock").symlink_to("nobody@nowhere")
        (self.folder / "link").symlink_to("src")
        names, one = [*SOURCES, "lock", "link", "gone"], "unheard of"
        first = inputs.Inputs([found], self.folder, names, self.folder / "lab").of(found)[one]
        (self.folder / "link").unlink()
        (self.folder / "link").symlink_to("rust")
        self.assertNotEqual(inputs.Inputs([found], self.folder, names, self.folder / "lab").of(found)[one], first)

    def test_the_table_itself(self):
        self.assertEqual(self.changed_by("Documentation/tested.json"), [])

    def test_the_row_of_a_test(self):
        changed = [self.known(guest(replace(BASIC, **more))) == self.known(guest(BASIC)) for more in ({"about": "x"}, {"skips": {"um": 1}})]
        self.assertEqual(changed, [True, False])

    def test_the_command(self):
        for words, same in ((["--timeout", "8"], True), (["--cpus", "4", "--timeout", "9"], False)):
            self.assertEqual(self.known(replace(guest(BASIC), command=["scripts/vm", *words])) == self.known(guest(BASIC)), same)
        module = replace(MODULE, command=["make", "RHIST_EVENT_HEADERS=irq"])
        few = inputs.Inputs([module, guest(BASIC)], self.folder, SOURCES, self.folder / "lab")
        self.assertEqual(list(few.of(guest(BASIC))), ["um: hist.basic (few probes)"])

    def test_the_lab(self):
        self.assertEqual(self.changed_by("lab/um.recipe"), ["module for um", "um: hist.basic", "um: hist.files"])
        newer = STATUS.replace("1", "2", 1)
        self.assertEqual(len(self.changed_by("lab/root/var/lib/dpkg/status", newer)), 5)
        self.assertEqual(self.changed_by("lab/root/var/lib/dpkg/status", newer.replace("1", "2")), [])
        # The root file system depends on the release whose source and compilers are used.
        self.recipes["um"] = ("7.2.13+deb14-amd64", "1 um.config")
        self.write("lab/7.2.13+deb14-amd64.kernel", "builder=root-next\n")
        self.assertEqual(self.changed_by("lab/root-next/var/lib/dpkg/status", STATUS), ["module for um", "um: hist.basic", "um: hist.files"])
        self.assertEqual(len(self.changed_by("lab/root-next/var/lib/dpkg/status", newer)), 3)
        (self.folder / "lab/um.recipe").unlink()
        self.assertEqual(self.known(MODULE)["module for um"][1], None)

    def test_own_table(self):
        """Every path in the table exists, and every job of make test has a row."""
        now = inputs.Inputs(pieces.all_jobs({}, long=True))
        for _, files, _ in inputs.JOBS:
            for place in files:
                self.assertTrue(now.below(place) or place in inputs.NEVER, place)
        tests = {f"{test.suite}.{test.name}" for test in selftests.read()}
        self.assertLessEqual(set(inputs.TESTS), tests)
        for place in " ".join(inputs.TESTS.values()).split():
            self.assertTrue(now.below(place), place)
        # That one depends on all files, as it tests the whole table.
        self.assertEqual([name for name in now.jobs if not inputs.row_of(name)], ["lab: inputs"])


def entry(when, failed=0, files="f", of_lab="l", commit="abc", **more):
    return record.Entry(3, failed, 0, 60.0, commit, when, files, of_lab, **more)


class Record(Folder):
    def test_the_newest_counts(self):
        here, there = record.Record(self.path), record.Record(self.folder / "other")
        here.put({"a": entry(1), "b": entry(5)})
        there.put({"a": entry(2, failed=1), "b": entry(4, failed=1), "c": entry(1)})
        here.put(record.read(there.path) | {"d": None})
        self.assertEqual({name: (each.when, each.failed) for name, each in record.read(self.path).items()}, {"a": (2, 1), "b": (5, 0), "c": (1, 0)})

    def test_a_clock_that_was_ahead(self):
        found = pieces.Job("one", ["true"])
        kept = record.Record(self.path, [found])
        kept.put({"one": entry(1 << 40)})
        for failed in (1, 0):
            record.Record(self.path, [found]).keep(found, {"one": runner.Result(1, failed)}, 1)
            self.assertEqual(record.read(self.path)["one"].failed, failed)

    def test_repeated(self):
        """A failed job counts as failed until its inputs change, whichever run repeats it."""
        found, said = pieces.Job("one", ["true"]), []
        for failed, text in ((0, "a"), (1, "a"), (0, "a"), (0, "a"), (0, "b")):
            self.write("text", text)
            self.addCleanup(setattr, record, "Inputs", record.Inputs)
            record.Inputs = lambda found: inputs.Inputs(found, self.folder, ["text"], self.folder / "lab", {})
            record.Record(self.path, [found]).keep(found, {"one": runner.Result(1, failed)}, 1)
            said.append(record.read(self.path)["one"].repeated)
        self.assertEqual(said, [False, False, True, True, False])

    def test_a_broken_file(self):
        self.assertEqual(record.read(self.path), {})
        self.write("record.json", "<<<<<<< HEAD")
        with self.assertRaisesRegex(SystemExit, "record.json holds no results"):
            record.read(self.path)

    def test_two_at_once(self):
        one, two = record.Record(self.path), record.Record(self.path)
        one.put({"a": entry(1)})
        two.put({"b": entry(1)})
        self.assertEqual(set(record.read(self.path)), {"a", "b"})

    def test_passed(self):
        for now, passed in (
            (entry(1, failed=1), False), (entry(1, files="g"), False), (entry(1, of_lab="m"), False), (entry(1), True),
        ):
            self.path.unlink(missing_ok=True)
            kept = record.Record(self.path)
            kept.put({"a": now})
            self.assertEqual(kept.has_passed("a", ("f", "l")), passed)
        # This machine lacks that part of the lab.
        self.assertTrue(kept.has_passed("a", ("f", None)))
        self.assertFalse(kept.has_passed("b", ("f", "l")))


class Durations(dict):
    put = dict.update


class Batches(Folder):
    """Runs batches for real, by shells in place of guests."""

    def setUp(self):
        super().setUp()
        self.kept, pieces.OUT, runner.OUT, runner.TOP = (pieces.OUT, runner.TOP), self.folder, self.folder, self.folder
        self.addCleanup(self.restore)

    def restore(self):
        pieces.OUT, runner.TOP = self.kept
        runner.OUT = pieces.OUT

    def shell(self, name, command, *tests, **more):
        # Its tests' names follow, as in a real command.
        words = ["sh", "-c", command, "--timeout", *(test.name for test in tests)]
        return pieces.Job(name, words, tests=list(tests), kernel="um", **more)

    def run_batch(self, *found):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            batch = matrix.Batch("um", list(found), ())
            result = matrix.run_batch(batch, list(found), Durations(), lambda: record.Record(self.path, found))
        return result, record.read(self.path), said.getvalue()

    def say(self, *states):
        return "; ".join(f"echo '# {name}: {passed} passed, {failed} failed, 0 skipped, 1 s'" for name, passed, failed in states)

    def test_passes(self):
        result, kept, _ = self.run_batch(
            self.shell("one", "echo 5 passed, 0 failed"), self.shell("two", self.say(("basic", 2, 0)), BASIC))
        self.assertEqual(result, (7, [], []))
        self.assertEqual({name: each[:3] for name, each in kept.items()}, {"one": (5, 0, 0), "um: hist.basic": (2, 0, 0)})
        self.assertFalse(any(each.repeated for each in kept.values()))

    def test_fails_once(self):
        first, then = self.say(("files", 4, 0), ("basic", 1, 1)), self.say(("basic", 2, 0))
        once = f"if [ -e {self.folder}/again ]; then {then}; else touch {self.folder}/again; {first}; fi"
        result, kept, said = self.run_batch(self.shell("two", once, FILES, BASIC))
        self.assertEqual(result, (4 + 2, [], ["um: hist.basic"]))
        self.assertEqual({name: (each.failed, each.repeated) for name, each in kept.items()},
                         {"um: hist.files": (0, False), "um: hist.basic": (0, True)})
        self.assertIn("repeated once: um: hist.basic\n", said)

    def test_fails_twice(self):
        result, kept, _ = self.run_batch(
            self.shell("one", "echo 5 passed, 1 failed; exit 1"), self.shell("two", self.say(("basic", 2, 0)), BASIC))
        self.assertEqual(result, (2, ["one"], []))
        self.assertEqual((kept["one"].failed, kept["um: hist.basic"].failed), (1, 0))

    def test_what_it_needs_fails(self):
        (_, bad, _), kept, _ = self.run_batch(
            self.shell("one", "exit 1", counts=False), self.shell("two", self.say(("basic", 2, 0)), BASIC, after=["one"]))
        self.assertEqual((sorted(bad), set(kept)), (["one", "um: hist.basic"], {"one"}))

    def test_changed(self):
        one, three, four = (self.shell(name, "true", counts=False) for name in ("one", "three", "four"))
        two = self.shell("two", self.say(("files", 5, 0)), FILES, BASIC, after=["three"])
        self.run_batch(one, two, three)
        kept, record.Record = record.Record, functools.partial(record.Record, self.path)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            left = record.changed([one, two, three, four], {})
        record.Record = kept
        # A job that it needs runs again, since its product may be missing in this checkout.
        self.assertEqual([job.name for job in left], ["three", "two: basic", "four"])
        self.assertIn("3 of 5 tests are left out", said.getvalue())

    def test_no_repository(self):
        found = self.shell("one", "true", counts=False)
        self.addCleanup(setattr, record, "commit", record.commit)
        for commit in ("abc", ""):
            record.commit = lambda: commit
            self.run_batch(found)
        self.assertEqual(record.read(self.path)["one"].commit, "abc")

    def test_files_that_change_meanwhile(self):
        found = self.shell("one", "true", counts=False)
        kept = record.Record(self.path, [found])
        kept.before.files["README.md"] = "other"
        kept.keep(found, {"one": runner.Result(passed=1)}, 1)
        self.assertEqual(record.read(self.path), {})

    def test_a_kernel_that_is_made_anew_meanwhile(self):
        found = self.shell("module for um", "true", counts=False)
        self.addCleanup(setattr, record, "Inputs", record.Inputs)
        record.Inputs = lambda found, sources=SOURCES: inputs.Inputs(found, self.folder, sources, self.folder / "lab", {})
        for recipes, kept in ((("old", "new"), False), (("new", "new"), True)):
            known = record.Record(self.path, [found])
            self.write("lab/um.recipe", recipes[0])
            known.begin(found)
            self.write("lab/um.recipe", recipes[1])
            known.keep(found, {found.name: runner.Result(passed=1)}, 1)
            self.assertEqual(found.name in record.read(self.path), kept)

    def whole(self, *rows):
        made = matrix.Matrix.__new__(matrix.Matrix)
        made.durations, made.rows = {}, {row: [("hist", [job])] for row, job in rows}
        made.jobs = [job for _, job in rows]
        return made

    def test_long_and_short_forms_of_a_test(self):
        """Jobs with the same name would be mixed up."""
        names = []
        for long in (False, True):
            whole = pieces.guest("um", [BASIC, FILES], {}, long=long)
            names += [whole.name, *(pieces.narrowed(whole, [test], {}).name for test in (BASIC, FILES))]
        self.assertEqual(len(set(names)), 6, names)

    def test_an_order_is_drawn_for_each_guest(self):
        """For make matrix and make test-long, also with only a part of its tests left."""
        def orders(found):
            return {job.name: job.command[-len(job.tests) :] for job in found if len(job.tests) > 2}

        for made in (lambda seed: matrix.Matrix({}, ["um", "debug"], seed=seed).jobs, lambda seed: pieces.all_jobs({}, long=True, seed=seed)):
            drawn = [orders(made(seed)) for seed in (*range(5), 0)]
            self.assertEqual(drawn[0], drawn[-1])
            for name, first in drawn[0].items():
                self.assertGreater(len({tuple(each[name]) for each in drawn}), 1, name)
                self.assertEqual({tuple(sorted(each[name])) for each in drawn}, {tuple(sorted(first))})
            for job in made(3):
                if len(job.tests) > 2:
                    left = pieces.narrowed(job, job.tests[1:], {})
                    self.assertEqual(left.command[-len(left.tests) :], [name for name in job.command[-len(job.tests) :] if name != job.tests[0].name])

    def test_goes_on_where_it_was_ended(self):
        found = self.shell("one", "echo 5 passed, 0 failed"), self.shell("two", self.say(("basic", 2, 0)), FILES, BASIC)
        self.run_batch(*found)
        # Only the test that the guest did not reach is left.
        (batch,) = self.whole(("host", found[0]), ("um", found[1])).batches(record.Record(self.path))
        self.assertEqual([test.name for job in batch.jobs for test in job.tests], ["files"])
        self.assertEqual(batch.jobs[0].command[-1], "files")

    def test_what_no_archive_has(self):
        """Is left out of a batch with the tests that need it, and reported."""
        maker, user = self.shell("maker", "true", lab=["rust"]), self.shell("user", "true", after=["maker"])
        both = self.shell("both", "true", FILES, BASIC)

        def leave_out(found):
            for job in found:
                job.tests = [test for test in job.tests if test is BASIC]
            return [job for job in found if job.name == "both"], ["left"]

        kept, left = matrix.possible(matrix.Batch("um", [user, both], ()), [maker, user, both], leave_out)
        self.assertEqual(([(job.name, job.tests) for job in kept], left), ([("both", [BASIC])], ["left"]))
        # Jobs of other batches are unchanged.
        self.assertEqual(both.tests, [FILES, BASIC])

    def refused(self, *words):
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
            matrix.matrix(words, 0, None)
        return said.getvalue()

    def test_packages_are_for_kernels(self):
        self.assertEqual([job.lab == list(job.environment.values()) for job in matrix.packages()], [True] * 3)
        self.assertEqual([len(job.lab) for job in matrix.packages()], [0, 1, 1])

    def test_words(self):
        self.assertIn("no key has um:hist in it", self.refused("um:hist"))
        for part in ("0/2", "3/2", "2"):
            self.assertIn("--part: I/N is part I of N", self.refused("--part", part))
        self.assertEqual([matrix.rows_of_part("abcde", part) for part in ("1/2", "2/2", "1/1")], ["ace", "bd", "abcde"])

    def test_order(self):
        basic, files = guest(BASIC), guest(FILES)
        on_debug, on_stock = (replace(job, kernel=kernel, name=f"hist on {kernel}: some")
                              for job, kernel in ((basic, "debug"), (files, "stock")))
        whole = self.whole(("um", guest(BASIC, FILES)), ("debug", on_debug), ("stock", on_stock))
        kept = record.Record(self.path)
        kept.merge({"stock: hist.files": entry(5), "um: hist.basic": entry(9), "um: hist.files": entry(9), "debug: hist.basic": entry(10)})
        order = [(batch.row, [test.name for job in batch.jobs for test in job.tests])
                 for batch in whole.batches(kept, changes={f"{SUITE}/files.sh"})]
        # Changed tests first; then the kernel that looks for faults; then the batch that has not
        # run for the longest time.
        self.assertEqual(order, [("stock", ["files"]), ("um", ["files", "basic"]), ("debug", ["basic"])])
        self.assertEqual([batch.row for batch in whole.batches(kept)], ["debug", "stock", "um"])

    def test_jobs_are_short(self):
        for batch in matrix.Matrix({}, ["um", "stock", "debug", "6.12.117+deb13-amd64"]).batches(record.Record(self.path)):
            self.assertTrue(batch.takes() <= matrix.BATCH or len(batch.jobs) == 1 and len(batch.jobs[0].tests) == 1, batch)

    def test_no_job_is_begun_that_would_end_too_late(self):
        batches, now, done = [matrix.Batch("host", [replace(MODULE, takes=takes)], ()) for takes in (50, 40, 30, 20)], [0], []
        for batch in matrix.in_time(batches, 100, self.folder, clock=lambda: now[0]):
            done.append(batch.takes())
            # Each takes longer than expected.
            now[0] += batch.takes() + 25
        self.assertEqual(done, [50, 20])


class Keys(unittest.TestCase):
    def test_forms(self):
        """
        Results with the same key in make test and in make matrix are of the same thing: otherwise
        each would undo the other's record.
        """
        def contents(found):
            now = inputs.Inputs(found)
            return {name: now.contents(one) for job in found for one in inputs.singles(job) for name in inputs.keys(one)}

        whole = contents(matrix.Matrix({}).jobs)
        for found in (pieces.all_jobs({}), pieces.all_jobs({}, long=True), pieces.debug_jobs({}), pieces.kcsan_jobs({})):
            known = contents(found)
            self.assertEqual([name for name in known if name in whole and known[name] != whole[name]], [])
            self.assertGreater(len(known.keys() & whole.keys()), 20)


class Table(unittest.TestCase):
    def test_cells(self):
        table = {
            "um: hist.basic": entry(7, commit="old"), "um: hist.files": entry(9), "um long: hist.basic": None,
            "debug rest: command.push": entry(1, failed=2), "lab on um": entry(1, repeated=True), "module for um": entry(1),
            "layers": entry(1), "packages: dkms": None,
        }
        lines = matrix.printed(table)
        self.assertEqual(re.split("   *", lines[1]), ["um", "3 1.0m abc", "6 2.0m old", "-", "-", "-", "not run", "3 1.0m abc"])
        self.assertIn("3 2 failed 1.0m abc", lines[2])
        self.assertEqual([line.split()[-1] for line in lines[4:6]], ["abc", "run"])
        self.assertEqual(lines[-2:], ["failed: debug rest: command.push", "passed when repeated: lab on um"])

    def test_part_of_a_cell(self):
        self.assertEqual(matrix.cell([entry(1), None]), "1/2 3 1.0m abc")

    def test_the_page_is_of_the_table(self):
        self.assertEqual(matrix.PAGE.read_text(encoding="utf-8"), matrix.page(record.read(matrix.TABLE)))

    def test_every_key_has_its_cell(self):
        for row in ("um", "stock", "kcsan", "7.3.4+deb13-arm64-16k"):
            whole = matrix.Matrix({}, [row])
            for column, found in whole.rows[row]:
                for name in (name for job in found for name in inputs.keys(job) if column):
                    self.assertEqual(matrix.place(name), (row, column))
                    self.assertIn(column, matrix.COLUMNS)


if __name__ == "__main__":
    done = unittest.main(exit=False).result
    failed = len(done.failures) + len(done.errors)
    print(f"{done.testsRun - failed} passed, {failed} failed")
    sys.exit(bool(failed))
