# SPDX-License-Identifier: GPL-2.0
"""Runs scripts/lab, and processes in sessions of their own."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from selftests import SHAPES

LAB = Path(__file__).resolve().parent / "lab"
# Status of scripts/lab if an archive lacks the piece to make.
NOT_THERE = 3


def say(text=""):
    print(text, flush=True)


def is_foreign(kernel):
    """Returns whether a kernel is for another architecture than the lab's machine: for arm64."""
    return bool(re.fullmatch(r".*-arm64(-16k)?", kernel))


def lab(*arguments):
    """
    Returns the output of scripts/lab. If it fails, it has printed why, and this program ends,
    too.
    """
    done = subprocess.run([LAB, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout.strip()


def known_kernels():
    lines = LAB.with_name("kernels").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def make_in_lab(piece):
    """Runs scripts/lab. Returns its exit status, and the last sentence of its output."""
    is_kernel = piece[0].isdigit() or piece in SHAPES
    last = "see above"
    with subprocess.Popen([LAB, *["source"] * is_kernel, piece], stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stderr:
                say(line.rstrip())
                if line.startswith("lab: "):
                    last = line[5:].strip()
        except BaseException:
            process.terminate()
            raise
    return process.returncode, last


def end(*processes, patience=3):
    """
    Ends processes that lead sessions, with all their descendants: asks all of them, waits up to
    `patience` seconds, and kills.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        processes = [process for process in processes if asked(process, number)]
        deadline = time.monotonic() + patience
        for process in processes:
            try:
                process.wait(max(0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
        if processes:
            time.sleep(0.2)


def asked(process, number):
    """Sends a signal to a session. Returns whether a process of it is left."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    return True
