# SPDX-License-Identifier: GPL-2.0
"""Points of a test in the Test Anything Protocol, for the tests of this suite in Python."""

points = failures = 0


def ok(good, name, *details):
    """Prints a point; and the details if it fails."""
    global points, failures
    points += 1
    failures += not good
    print("ok" if good else "not ok", points, "-", name, flush=True)
    if not good:
        for detail in details:
            print("#  ", str(detail).replace("\n", "\n#   "), flush=True)


def finish():
    """Ends the test."""
    print(f"1..{points}")
    print(f"# {points - failures} passed, {failures} failed")
    raise SystemExit(failures > 0)
