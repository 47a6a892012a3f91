# SPDX-License-Identifier: GPL-2.0
"""
Rooms: for each job a folder build/ of its own, which holds only the products of the job and
of the jobs that it needs.
"""

import os
import shutil
from pathlib import Path

# Logs of guests stay in their one usual folder.
LOGS = "vm"
# Mounted in the command's own namespace, so that it finds all files at their usual paths.
ENTER = 'mount --bind "$1/{0}" "$2/{0}" && mount --rbind "$2" "$1" && shift 2 && exec "$@"'.format(LOGS)


class Rooms:
    """
    Commands see hard links to the output of the jobs that they need in build/, and nothing
    else. For root.
    """

    def __init__(self, build):
        self.build = Path(build)

    def of(self, job):
        return self.build / "rooms" / job.log().stem

    def command(self, job, needs, inputs=""):
        """
        Returns the command of a job, to run in its room. The room begins with the products of
        the needed jobs, and of their own needs; and, to avoid compiling anew, with the job's
        own from an earlier run, if others need it and the inputs were the same.
        """
        room, known = self.of(job), self.made_of(job)
        if job.counts or not inputs or not known.exists() or known.read_text(encoding="ascii") != inputs:
            shutil.rmtree(room, ignore_errors=True)
        known.unlink(missing_ok=True)
        for folder in (self.build / LOGS, room / LOGS):
            folder.mkdir(parents=True, exist_ok=True)
        for need in needs:
            link(self.of(need), room)
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh", str(self.build), str(room), *job.command]

    def keep(self, job, inputs):
        """Notes that a job has passed: its room holds its product from these inputs."""
        self.made_of(job).write_text(inputs, encoding="ascii")

    def made_of(self, job):
        return self.of(job).with_suffix(".inputs")


def link(source, target):
    """Puts hard links to all files of source into the folder target, replacing older files."""
    with os.scandir(source) as entries:
        for entry in entries:
            place = target / entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name != LOGS:
                    place.mkdir(exist_ok=True)
                    link(entry.path, place)
            elif not os.path.lexists(place) or place.lstat().st_ino != entry.inode():
                place.unlink(missing_ok=True)
                os.link(entry.path, place, follow_symlinks=False)
