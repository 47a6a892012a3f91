# SPDX-License-Identifier: GPL-2.0
"""Runs scripts/lab, and processes in sessions of their own."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

LAB = Path(__file__).resolve().parent / "lab"


def say(text=""):
    print(text, flush=True)


def is_foreign(kernel):
    """Whether a kernel is for another architecture than the lab's machine: for arm64."""
    return bool(re.fullmatch(r".*-arm64(-16k)?", kernel))


def lab(*arguments):
    """Returns the output of scripts/lab. If it fails, it has printed why, and this program ends, too."""
    done = subprocess.run([LAB, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout.strip()


def end(process, patience=3):
    """Ends a process that leads a session, with all that it has started: asks, waits so many seconds, and kills."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
        time.sleep(0.2)
