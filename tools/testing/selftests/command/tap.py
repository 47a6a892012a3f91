# SPDX-License-Identifier: GPL-2.0
"""Points of a test in Python, by the kernel's own ksft.py."""

import os
import subprocess
import sys
from pathlib import Path

LAB = Path(__file__).resolve().parents[4] / "scripts" / "lab"
FOLDER = os.environ.get("RHIST_KSELFTEST") or subprocess.run(
    [LAB, "path", "source"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip() + "/tools/testing/selftests"
sys.path.append(f"{FOLDER}/kselftest")
sys.dont_write_bytecode = True

import ksft  # noqa: E402

sys.stdout.reconfigure(line_buffering=True)
ksft.print_header()


def ok(good, name, *details):
    """Prints a point; and the details if it fails."""
    ksft.test_result(good, name)
    if not good:
        for detail in details:
            ksft.print_msg("  " + str(detail).replace("\n", "\n#   "))


def skip(name, reason):
    ksft.test_result_skip(f"{name} ({reason})")


def finish():
    """Ends the test."""
    ksft.set_plan(ksft.ksft_test_number - 1)
    ksft.finished()
