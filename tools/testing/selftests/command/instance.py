# SPDX-License-Identifier: GPL-2.0
"""The tracing instance that a process of rhist counts in, and its journal."""

import glob
import os
import time


def until(condition, seconds=180):
    """Waits for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError("that takes too long")
        time.sleep(0.02)


def folder_of(process, root):
    """Returns the folder of the instance; None without one."""
    # The first instance: the cost of a hit is measured in another one.
    return next(iter(sorted(glob.glob(f"{root}/instances/rhist-{process.pid}_*"), key=len)), None)


def counts_hits(folder, event):
    """Returns whether hits of an event are counted in the instance."""
    path = f"{folder}/events/{event}/trigger"
    if not os.path.exists(path):
        return False
    # Hits are counted only after that file is emptied.
    with open(path, encoding="utf-8") as file, open(f"{folder}/set_event_pid", encoding="utf-8") as tasks:
        return "[active]" in file.read() and not tasks.read().strip().isdigit()


def has_begun(process):
    """Returns whether all triggers of a process count, whatever they are: its journal says so."""
    # The first journal: the cost of a hit is measured by another run.
    path = min(glob.glob(f"{os.environ['RHIST_RUN']}/{process.pid}_*.journal"), key=len, default=None)
    try:
        with open(path or os.devnull, encoding="utf-8") as file:
            return "\nbegun\n" in file.read()
    except FileNotFoundError:
        return False
