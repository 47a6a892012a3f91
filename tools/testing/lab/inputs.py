#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
inputs.py [JOB…]: runs jobs of make test, by default cheap ones of each kind, in a copy of
this checkout, and fails if one reads a file there that scripts/inputs.py does not list for it.
Needs the same as these jobs.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "scripts"))
import pieces
import selftests
from inputs import Inputs

CHEAP = ["layers", "dkms", "rustfmt", "crates"]
GUESTS = ["hist.files", "hist.manual", "command.exec", "user_events.requests", "command.basic"]
# Inputs of every job in the table. The lab's products are known by its recipes, and the rows of
# tests are inputs one by one.
ALWAYS = ("scripts/lab", "scripts/crates", "scripts/config/", "tools/testing/selftests/tests.toml")


def unlisted(job, inputs, copy):
    """
    Returns the files that it reads without being listed. The kernel updates a file's time of
    access if that is older than its last change.
    """
    for name in inputs.files:
        os.utime(copy / name, ns=(0, (copy / name).stat().st_mtime_ns))
    words = [str(word).replace(str(TOP), str(copy)) for word in job.command]
    environment = {**os.environ, **job.environment, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(words, cwd=copy, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    read = {name for name in inputs.files if (copy / name).stat().st_atime_ns}
    if done.returncode or not read:
        print(f"# {job.name}: status {done.returncode}, {len(read)} files read\n" + "\n".join(done.stdout.splitlines()[-20:]))
        return None
    return sorted(name for name in read - inputs.read_by(job) if not name.startswith(ALWAYS))


def main():
    found = {job.name: job for job in pieces.all_jobs({}, tests=[])}
    for test in selftests.read():
        if (name := f"{test.suite}.{test.name}") in (sys.argv[1:] or GUESTS):
            found[name] = pieces.guest("um", [test], {})
    inputs = Inputs(found.values())
    reader = pieces.Job("dkms", ["cat", "README.md", "scripts/package/dkms.conf"])
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        subprocess.run(["sh", "-ec", f'mount -t tmpfs -o relatime inputs "$1"; scripts/sources | xargs -0 cp -p --parents -t "$1"; '
                        'mkdir -p "$1/build" build; mount --bind build "$1/build"', "sh", copy], cwd=TOP, check=True)
        try:
            for job, expected in ((reader, ["README.md"]), *((found[name], []) for name in sys.argv[1:] or CHEAP + GUESTS)):
                result = unlisted(job, inputs, copy)
                passed, failed = passed + (result == expected), failed + (result != expected)
                print(f"{'ok' if result == expected else 'not ok'} - {job.name} reads what scripts/inputs.py lists" +
                      (f": and {', '.join(result)}" if result else ""), flush=True)
        finally:
            subprocess.run(["umount", "-R", copy], check=False)
    print(f"{passed} passed, {failed} failed")
    return int(bool(failed))


if __name__ == "__main__":
    # In a mount namespace of its own, so that all mounts end with this program.
    if not os.environ.get("RHIST_MOUNTS"):
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", "env", "RHIST_MOUNTS=1", sys.executable, *sys.argv])
    sys.exit(main())
