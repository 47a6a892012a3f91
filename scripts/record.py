# SPDX-License-Identifier: GPL-2.0
"""
The record: the last result of each job, and of each test on a kernel, with its inputs. The lab
keeps this machine's record.
"""

import fcntl
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from inputs import Inputs
from pieces import TOP, narrowed, needed
from sessions import lab, say


class Entry(NamedTuple):
    passed: int
    failed: int
    skipped: int
    seconds: float
    commit: str
    # Seconds since 1970.
    when: int
    # Hashes of the inputs; the lab's is None if a part of it was missing.
    files: str
    lab: str
    # True if it had failed with these inputs, and passed when repeated: at once, or in another run.
    repeated: bool = False


class Record(dict):
    """Entries by key. The file can be carried to another machine, and merged there."""

    def __init__(self, path=None, jobs=()):
        self.path = Path(path or f"{lab('path', 'lab')}/record.json")
        self.jobs, self.before, self.begun = jobs, Inputs(jobs) if jobs else None, {}
        super().__init__(read(self.path))

    def merge(self, other):
        """Merges entries, keeping the newest of each key."""
        for name, entry in other.items():
            if entry and (name not in self or entry.when >= self[name].when):
                self[name] = entry

    def put(self, entries):
        """Adds them to the file, which other runs may have changed meanwhile."""
        with open(f"{self.path}.lock", "a", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.merge(read(self.path))
            self.merge(entries)
            write(self.path, dict(sorted(self.items())))

    def begin(self, job):
        """
        Notes the parts of the lab that a job begins with: another checkout may make a kernel
        anew while its guest runs.
        """
        self.begun[job.name] = Inputs(self.jobs, sources=()).of_lab(job)

    def inputs(self, job):
        """Hashes of the inputs with which a job began, as a text."""
        return repr([(files, self.begun[job.name]) for files, _ in self.before.of(job).values()])

    def keep(self, job, results, seconds):
        """
        Keeps results of one of the jobs, except results whose files have changed since all
        jobs began, or whose lab has since this one began. Returns true if all were kept.
        """
        then, now, at = self.before.of(job), Inputs(self.jobs).of(job), commit()
        self.merge(read(self.path))
        names = dict(zip([test.name for test in job.tests] or [job.name], now))
        found = {names[name]: result for name, result in results.items() if name in names}
        same = {name for name in now if then[name][0] == now[name][0] and self.begun.get(job.name) in (None, now[name][1])}
        self.put({
            name: Entry(result.passed, result.failed, result.skipped, round(result.seconds if job.tests else seconds, 1),
                        at, self.time_of(name), *now[name], not result.failed and self.has_failed(name, now[name]))
            for name, result in found.items()
            # A copy outside a repository cannot add a commit.
            if name in same and (at or result.failed or not self.has_passed(name, now[name]))})
        return len(same) == len(now)

    def time_of(self, name):
        """
        Now; but later than the known result, which may come from a machine whose clock is ahead
        of this one's.
        """
        return max(int(time.time()), self[name].when + 1 if name in self else 0)

    def has_failed(self, name, inputs):
        """Returns whether it has failed with these inputs, even if it has passed since."""
        entry = self.get(name)
        return bool(entry) and (entry.files, entry.lab) == inputs and bool(entry.failed or entry.repeated)

    def has_passed(self, name, inputs):
        """
        Returns true if it passed last with these inputs. A missing piece of the lab is assumed to
        be the one that would be made.
        """
        entry, (files, of_lab) = self.get(name), inputs
        return bool(entry) and not entry.failed and entry.files == files and of_lab in (None, entry.lab)


def unpassed(job, inputs, record, durations, words=("",)):
    """
    Returns a job with its tests that have not passed with their inputs and have one of the
    words in their key; or None.
    """
    return narrowed(job, [test for test, (name, known) in zip(job.tests or [job], inputs.of(job).items())
                            if any(word in name for word in words) and not record.has_passed(name, known)], durations)


def changed(found, durations):
    """
    Returns the jobs, or tests of them, that have not passed on this machine with their inputs,
    and the jobs that they need.
    """
    inputs, record = Inputs(found), Record()
    wanted = [left for job in found if (left := unpassed(job, inputs, record, durations))]
    total, left = (len({name for job in each for name in inputs.of(job)}) for each in (found, wanted))
    say(f"{total - left} of {total} tests are left out: they have passed, and nothing that they depend on has changed")
    return needed(found, wanted)


def read(path):
    """
    Reads entries; None for tests that were not run. A broken file is not overwritten: it may be
    half of a merge.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except json.JSONDecodeError as error:
        sys.exit(f"test: {path} holds no results: {error}; put it right, or remove it")
    return {name: Entry(*entry) if entry else None for name, entry in found.items()}


def write(path, entries):
    """One line for each."""
    part = Path(f"{path}.part")
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
    part.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    part.rename(path)


def git(*words):
    """Returns git's output; empty outside a repository."""
    if not (TOP / ".git").exists():
        return ""
    return subprocess.run(
        ["git", *words], cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip()


def commit():
    """Returns the commit, with a plus if files differ from it."""
    return git("rev-parse", "--short=7", "HEAD") + "+" * bool(git("status", "--porcelain", "--", ".", ":!Documentation/tested.*"))
