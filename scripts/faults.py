#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
faults: finds the reports of faults in a kernel's log. Used by scripts/vm and selftests/run.

usage: scripts/faults.py LOG

Prints the reports that count as failures; exit status 1 if LOG has one. Reports within the kernel
itself do not count: data races with no module on either stack, known leaks of the kernel's own
parsers, and known faults of user-mode Linux.
"""

import re
import sys
from pathlib import Path

# Lines that belong to a report, if its end is not known.
REPORT_LINES = 40
# First words of the kernel's messages about faults.
FAULTS = Path(__file__).resolve().with_name("kernel-faults").read_text(encoding="utf-8").splitlines()
FAULT = re.compile("|".join(line for line in FAULTS if not line.startswith("#")))
# A stack alone counts as one, too, whatever the message above it; arm64 prints it in lower case.
STACK = re.compile(r"Call [Tt]race:")
# But a stack without a fault is also dumped when a test has made memory scarce.
SCARCE = re.compile(
    r"page allocation failure|FAULT_INJECTION: |vmalloc error|vmap allocation .* failed"
    r"| invoked oom-killer: |oom_reaper: unable to reap"
)
# A report of KCSAN ends with such a line. It concerns rhist if it has frames of a module, or of a
# module that was unloaded.
RACE, RACE_END = "BUG: KCSAN: ", "=" * 20
MODULE = re.compile(r" +(?:\[<[0-9a-f]+>\] )?(?:\? )?\S+\+0x[0-9a-f]+/0x[0-9a-f]+ \[\w+\]| +0x[0-9a-f]{16}$")
# A report of kmemleak, which has one stack. C forgets to free a text when a second one of its kind
# follows ("hist:keys=pid:keys=pid"); and, in 6.12, the field of a synthetic event that is one too
# many. The objects are listed at the end of the log, after a line with their number.
LEAK, LEAKS = "unreferenced object 0x", re.compile(r"kmemleak: \d+ new suspected")
FORGETFUL = re.compile(r" +event_hist_trigger_parse\+0x")
OLD, FORGETFUL_OLD = re.compile(r"Linux version 6\."), re.compile(r" +__create_synth_event\+0x")
# In 6.12, a uprobe that set_event_pid applies to reads per-CPU data while it may be moved to
# another CPU.
MOVABLE, OF_UPROBE = "BUG: using smp_processor_id() in preemptible", re.compile(r" +__uprobe_trace_func\+0x")
# A process that is killed while it makes an instance gets no more pages for the buffers, and the
# kernel warns. This happens in C's own directory and in rhist's.
NO_BUFFER, OF_INSTANCE = re.compile(r"WARNING: .* trace_rb_cpu_prepare\+0x"), re.compile(r" +instance_mkdir\+0x")
# The end of a report, or the begin of another one.
ENDS = re.compile(rf"{FAULT.pattern}| *</TASK>")
# User-mode Linux itself causes reports: before the first program runs; when it calls strerror() of
# the C library with a lock held; and when it walks through the mappings of another process without
# a lock, to change them on the host.
OWN_BOOT = re.compile(r"Linux version \S+-um(debug)? ")
FIRST_PROGRAM = re.compile(r"Run \S+ as init process")
ASLEEP, OF_LIBRARY = "BUG: sleeping function called from invalid context", re.compile(r" \[<[0-9a-f]+>\] __wrap_malloc\+0x")
UNLOCKED, OF_MAPPINGS = "WARNING: suspicious RCU usage", re.compile(r" \[<[0-9a-f]+>\] flush_tlb_mm\+0x")
# Time of a line, and its caller.
STAMP = re.compile(r"^(?:<\d+>)?\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? ?")


def messages(log):
    """The lines of a kernel log without their timestamps."""
    return [STAMP.sub("", line.rstrip("\r")) for line in log.split("\n")]


def first_program(lines):
    """
    Index of the line in which user-mode Linux starts its first program; 0 for other kernels,
    whose faults all count.
    """
    if not any(OWN_BOOT.match(line) for line in lines[:200]):
        return 0
    return next((i for i, line in enumerate(lines) if FIRST_PROGRAM.match(line)), 0)


def is_old(lines):
    """Returns whether a log is of a kernel with 6.12's faults."""
    return any(OLD.match(line) for line in lines[:200])


def is_elsewhere(lines, i):
    """
    Returns whether line i begins the report of a race, or of a known fault, without a module's
    part in it.
    """
    if i < first_program(lines):
        return True
    if LEAKS.match(lines[i]):
        return any(line.startswith(LEAK) for line in lines[i:])
    if lines[i].startswith(LEAK):
        end = next((j for j in range(i + 1, len(lines)) if not lines[j].startswith(" ")), len(lines))
        known = any(FORGETFUL.match(line) or is_old(lines) and FORGETFUL_OLD.match(line) for line in lines[i:end])
    elif lines[i].startswith(MOVABLE):
        end = next((j for j in range(i + 1, len(lines)) if lines[j].strip() == "</TASK>"), len(lines))
        known = is_old(lines) and any(OF_UPROBE.match(line) for line in lines[i:end])
    elif NO_BUFFER.match(lines[i]):
        end = next((j for j in range(i + 1, len(lines)) if ENDS.match(lines[j]) or OF_INSTANCE.match(lines[j])), i)
        # Without memory, it is another fault.
        known = OF_INSTANCE.match(lines[end]) and not any(SCARCE.search(line) for line in lines[:i])
    elif lines[i].startswith(RACE):
        end = next((j for j in range(i, len(lines)) if lines[j].startswith(RACE_END)), len(lines))
        known = True
    elif lines[i].startswith(ASLEEP):
        end = i + REPORT_LINES
        known = any(OF_LIBRARY.match(line) for line in lines[i:end])
    elif lines[i].startswith(UNLOCKED):
        # This kernel's stacks are long; the next report begins behind.
        end = next((j for j in range(i + 1, min(i + 3 * REPORT_LINES, len(lines))) if FAULT.match(lines[j])), i + 3 * REPORT_LINES)
        known = any(OWN_BOOT.match(line) for line in lines[:200]) and any(OF_MAPPINGS.match(line) for line in lines[i:end])
    else:
        return False
    return known and not any(MODULE.match(line) for line in lines[i:end])


def elsewhere(log):
    """
    The first lines of the reports of races and other faults within the kernel itself, each once.
    """
    lines = messages(log)
    found = (
        line for i, line in enumerate(lines)
        if FAULT.match(line) and is_elsewhere(lines, i) and not LEAKS.match(line)
    )
    return list(dict.fromkeys(re.sub(LEAK + "[0-9a-f]+", LEAK[:-3], line) for line in found))


def reports(log):
    """Returns the reports of a kernel log, each as a list of lines from its start."""
    lines = messages(log)
    found, last = [], -REPORT_LINES
    for i, line in enumerate(lines):
        stack = STACK.match(line)
        if not stack and not FAULT.match(line):
            continue
        if is_elsewhere(lines, i):
            last = i
            continue
        start = i
        if stack:
            # Most often it belongs to the report above it, or is about scarce memory.
            if i - last < REPORT_LINES or any(SCARCE.search(before) for before in lines[max(0, i - 12) : i]):
                continue
            start = max(0, i - 4)
        last = i
        found.append([text for text in lines[start : i + REPORT_LINES] if text.strip()])
    return found


def main(path):
    found = reports(Path(path).read_text(encoding="utf-8", errors="replace"))
    print("\n\n".join("\n".join(report) for report in found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
