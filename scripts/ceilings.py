# SPDX-License-Identifier: GPL-2.0
"""
Ceilings: the CPU seconds of each job of make test, so that all of it stays a matter of minutes.
"""

import re

RELEASE = re.compile(r"(?<=for |.on )\d[\w.+-]*")
# All jobs together on a new machine, which compiles first: the 40 minutes of two processors that
# .ci/run may take.
MOST = 4800
# CPU seconds differ from machine to machine, and with its other load. Only more than this factor is
# a failure.
SLACK = 2


def row_of(job):
    """
    Returns the row of the table that a job belongs to: its own, or the row of all guests of its
    suite and kernel. A kernel that has a release for its name is "own": Debian 13's.
    """
    name = job.name.split(":")[0] if job.tests else job.name
    return RELEASE.sub("own", name)


def compare(busy, jobs, ceilings):
    """
    Compares the CPU seconds of jobs with the table. Returns the sums of both over the jobs
    that were run, and a sentence for each row that took more.
    """
    taken = {}
    for job in jobs:
        if job.name in busy:
            taken[row_of(job)] = taken.get(row_of(job), 0) + busy[job.name]
    taken = {row: seconds for row, seconds in taken.items() if row in ceilings}
    over = [f"{row} took {seconds:.0f} s of a processor, and may take {ceilings[row]}"
            for row, seconds in taken.items() if seconds > ceilings[row]]
    return sum(taken.values()), sum(ceilings[row] for row in taken), over
