#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
shell.py KERNEL: tests that scripts/vm --shell gives a terminal a shell in a guest, and restores
the terminal.
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
BOOT, ANSWER = 180, 30
PROMPT = r"# (\x1b\[[^m]*m)?$"
failed = 0


def check(name, ok, *said):
    global failed
    if not ok:
        failed += 1
        print(name, *said, sep=": ")


class User:
    """A user at a terminal of 40 rows, who starts a shell in a guest."""

    def __init__(self, *options):
        self.terminal, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 132, 0, 0))
        self.before = termios.tcgetattr(end)
        self.vm = subprocess.Popen(
            [TOP / "scripts/vm", "--shell", "--no-module", *options], stdin=end, stdout=end, stderr=end, start_new_session=True)
        self.end = end
        self.shown = ""
        self.waits_for(PROMPT, BOOT)

    def waits_for(self, what, seconds=ANSWER):
        """Waits for `what`. Returns the output up to it."""
        deadline = time.monotonic() + seconds
        while not re.search(what, self.shown) and (left := deadline - time.monotonic()) > 0:
            if select.select([self.terminal], [], [], left)[0]:
                self.shown += os.read(self.terminal, 65536).decode(errors="replace").replace("\r", "")
        shown, self.shown = self.shown, ""
        return shown

    def types(self, text, wait=PROMPT):
        os.write(self.terminal, text.encode())
        return self.waits_for(wait) if wait else None

    def leaves(self):
        """Returns the status of scripts/vm; None if it had to be terminated."""
        try:
            status = self.vm.wait(ANSWER)
        except subprocess.TimeoutExpired:
            self.vm.terminate()
            status = None
        check("the terminal is as it was", termios.tcgetattr(self.end) == self.before)
        return status


def main(kernel):
    user = User("--kernel", kernel)
    said = user.types('pwd; stty size; id -u; mountpoint -q /sys/kernel/tracing && echo "${PATH##*:}"\r')
    check("a shell in the checkout, with its command", f"{TOP}\n40 132\n0\n{TOP}/build/command\n" in said, said)
    user.types("sh -c 'echo sleeps; exec sleep 1000'\r", wait="sleeps\n")
    said = user.types("\x03") + user.types("echo status $?\r")
    check("Ctrl-C ends what it runs, and no more", "status 130\n" in said, said)
    said = user.types("echo asks; read answer; echo said $answer\r", wait="asks\n") + user.types("yes\r")
    check("programs read what is typed", "said yes\n" in said, said)
    user.types("exit 7\r", wait="")
    check("the status is that of the shell", (status := user.leaves()) == 7, status)

    if kernel == "um":
        user = User("--kernel", kernel)
        user.types("sh -c 'echo sleeps; exec sleep 1000'\r", wait="sleeps\n")
        user.types("\x1d", wait="")
        check("Ctrl-] ends the guest", (status := user.leaves()) == 71, status)

    done = subprocess.run([TOP / "scripts/vm", "--shell"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    check("no shell without a terminal", done.returncode == 2 and b"needs a terminal" in done.stderr, done)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
