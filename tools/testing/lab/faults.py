#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Tests which lines of a kernel's log scripts/faults.py takes for a report of a fault.

With "faults", only prints a message for each kind of fault.
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import faults

LIST = SCRIPTS / "kernel-faults"
TRACE = "CPU: 0 UID: 0 PID: 152 Comm: sh\nCall Trace:\n <TASK>\n panic+0x6b/0x70\n </TASK>"

FAULTS = [
    "Kernel panic - not syncing: sysrq triggered crash",
    "BUG: kernel NULL pointer dereference, address: 0000000000000010",
    "Oops: Oops: 0000 [#1] SMP NOPTI",
    "kernel BUG at kernel/trace/trace.c:1!",
    "invalid opcode: 0000 [#1] SMP NOPTI",
    "divide error: 0000 [#1] SMP NOPTI",
    "stack segment: 0000 [#1] SMP NOPTI",
    "double fault: 0000 [#1] SMP NOPTI",
    "int3: 0000 [#1] SMP NOPTI",
    "traps: PANIC: double fault, error_code: 0x0",
    "Unable to handle kernel NULL pointer dereference at virtual address 0000000000000010",
    "Internal error: Oops: 0000000096000004 [#1] SMP",
    "WARNING: kernel/trace/trace_events.c:2 at f+0x1/0x2, CPU#1: rmmod/3",
    "WARNING: possible recursive locking detected",
    "WARNING: possible circular locking dependency detected",
    "WARNING: suspicious RCU usage",
    "WARNING: inconsistent lock state",
    "BUG: KASAN: slab-use-after-free in f+0x1/0x2",
    "BUG kmalloc-64 (Tainted: G           O       ): Poison overwritten",
    "KASAN: null-ptr-deref in range [0x0000000000000010-0x0000000000000017]",
    "CFI failure at f+0x1/0x2 (target: g+0x1/0x2; expected type: 0x12345678)",
    "UBSAN: array-index-out-of-bounds in kernel/x.c:1:2",
    "BUG: sleeping function called from invalid context at mm/x.c:1",
    "BUG: scheduling while atomic: sh/152/0x00000002",
    "INFO: task rmmod:152 blocked for more than 120 seconds.",
    "INFO: trying to register non-static key.",
    "rcu: INFO: rcu_preempt self-detected stall on CPU",
    "INFO: rcu_tasks detected stalls on tasks:",
    "rcu: rcu_preempt kthread starved for 2103 jiffies! g1 f0x0 RCU_GP_WAIT_FQS(5)",
    "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [sh:152]",
    "Watchdog detected hard LOCKUP on cpu 0",
    "workqueue: f [rhist] hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND",
    "DEBUG_LOCKS_WARN_ON(1)",
    "general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1] SMP",
    "list_del corruption. prev->next should be ffff, but was 0000",
    "refcount_t: underflow; use-after-free.",
    "ODEBUG: free active (active state 0) object: 0 object type: work_struct",
    "unreferenced object 0xffff888104a2c800 (size 64):",
    "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "sysfs: cannot create duplicate filename '/x'",
    "kobject: can not set name properly!",
    "VFS: Busy inodes after unmount of tracefs (tracefs)",
    "VFS: Close: file count is 0 (f_op=0xffff888104a2c800)",
    "Duplicates detected: 1",
    "rust_kernel: panicked at src/map/mod.rs:1:2:",
]

RACE = """==================================================================
BUG: KCSAN: data-race in f / g

write to 0xffff888104a2c800 of 8 bytes by task 152 on cpu 0:
 {}+0x1/0x2{}
 h+0x1/0x2

read to 0xffff888104a2c800 of 8 bytes by interrupt on cpu 1:
 g+0x1/0x2

Reported by Kernel Concurrency Sanitizer on:
CPU: 1 UID: 0 PID: 153 Comm: sh
=================================================================="""

LEAK = """unreferenced object 0xffff888104a2c800 (size 8):
  comm "errors", pid 477, jiffies 4294999009
  hex dump (first 8 bytes):
    70 69 64 00 80 88 ff ff                          pid.....
  backtrace (crc 9d423b16):
    kstrdup+0x3a/0xa0
    {}+0x96c/0x3d40{}
    vfs_write+0x1e4/0x990"""
# From user-mode Linux, when a call of the host fails.
ASLEEP = """BUG: sleeping function called from invalid context at include/linux/sched/mm.h:322
in_atomic(): 1, irqs_disabled(): 1, non_block: 0, pid: 51, name: stty
Call Trace:
 [<60191012>] __might_sleep+0x72/0xd0
 [<601005c3>] uml_kmalloc+0x13/0x20
 [<6011137c>] __wrap_malloc+0x2c/0x70
 [<600fff6c>] ? um_request_irq+0x43c/0x6b0{}
 [<6010ac6c>] ? line_setup_irq+0x7c/0x130"""
# Also from there, when the memory of another process is unmapped.
UNLOCKED = """WARNING: suspicious RCU usage
7.3.4-umdebug #1 Tainted: G        W  O
lib/maple_tree.c:720 suspicious rcu_dereference_check() usage!
Call Trace:
 [<607baddb>] mas_find+0x27b/0x480
 [<6010373a>] flush_tlb_mm+0x5a/0x1a0
 [<604dc9f2>] tlb_flush_mmu+0x62/0x3a0{}
 [<6061c0f1>] aio_free_ring+0x61/0x280"""
# From 6.12, when a process in set_event_pid hits a uprobe.
MOVABLE = """BUG: using smp_processor_id() in preemptible [00000000] code: fire/153
caller is debug_smp_processor_id+0x1b/0x20
Call Trace:
 <TASK>
 trace_event_buffer_reserve+0x10f/0x310
 __uprobe_trace_func+0x123/0x2c0
 uprobe_notify_resume+0xc1c/0x2010{}
 asm_exc_int3+0x3e/0x50
 </TASK>"""
# When a process is killed while it makes an instance.
NO_BUFFER = """WARNING: kernel/trace/ring_buffer.c:8109 at trace_rb_cpu_prepare+0xd7/0xf0, CPU#0: rhist/370
Call Trace:
 <TASK>
 cpuhp_invoke_callback+0x9a/0x490
 alloc_buffer+0x2e3/0x640{}
 instance_mkdir+0x60/0xa0
 tracefs_syscall_mkdir+0x71/0xb0
 vfs_mkdir+0xc9/0x240
 rhist_mkdir+0x5d/0xa0 [rhist]
 </TASK>"""
LEAKS = "kmemleak: 2 new suspected memory leaks (see /sys/kernel/debug/kmemleak)"

HARMLESS = [
    "rhist: loading out-of-tree module taints kernel.",
    "rhist: module verification failed: signature and/or required key missing - tainting kernel",
    "virtme-ng-init: WARNING: failed to run: x",
    "Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on, data leaks possible",
    "random: crng init done",
    "kmemleak: Kernel memory leak detector initialized",
    "traps: io[152] trap divide error ip:401000 sp:7ffc error:0 in io",
    "FAULT_INJECTION: forcing a failure.\nname failslab, interval 1, probability 0, space 0, times 0\n" + TRACE,
    "sh: page allocation failure: order:9, mode:0xcc0(GFP_KERNEL)\n" + TRACE,
]


def log(*messages):
    """Returns a log with a boot's usual lines around the messages, each with a time."""
    lines = [line for message in ("Linux version 7.3.4", *messages, "reboot: Power down") for line in message.split("\n")]
    return "".join(f"[{i:5d}.{i:06d}] {line}\r\n" for i, line in enumerate(lines))


class Reports(unittest.TestCase):
    def test_faults(self):
        for fault in FAULTS:
            with self.subTest(fault):
                found = faults.reports(log(fault + "\n" + TRACE))
                self.assertEqual(len(found), 1)
                self.assertEqual(found[0][0], fault)
                self.assertIn(" panic+0x6b/0x70", found[0])

    def test_harmless(self):
        for message in HARMLESS:
            with self.subTest(message):
                self.assertEqual(faults.reports(log(message)), [])

    def test_stack_alone(self):
        for trace in (TRACE, TRACE.replace("Call Trace", "Call trace")):
            found = faults.reports(log("sysrq: Show backtrace of all active CPUs\n" + trace))
            self.assertEqual(len(found), 1)
            self.assertIn("sysrq: Show backtrace of all active CPUs", found[0])

    def test_each_expression(self):
        """Each expression of the list finds one of these faults, and grep agrees with Python."""
        expressions = [line for line in LIST.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        for expression in expressions:
            with self.subTest(expression):
                self.assertTrue([fault for fault in FAULTS if re.match(expression, fault)])
        lines = [line for message in (*FAULTS, *HARMLESS) for line in message.split("\n")]
        found = subprocess.run(
            ["grep", "-E", "\n".join(expressions)], input="\n".join(lines), stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(found.stdout.splitlines(), FAULTS)

    def test_fault_after_harmless(self):
        found = faults.reports(log(HARMLESS[-2], "BUG: KASAN: double-free in f+0x1/0x2"))
        self.assertEqual([report[0] for report in found], ["BUG: KASAN: double-free in f+0x1/0x2"])

    def test_races(self):
        ours = RACE.format("f", " [rhist]")
        self.assertEqual([report[0] for report in faults.reports(log(ours))], ["BUG: KCSAN: data-race in f / g"])
        # A module that was unloaded meanwhile has lost its names.
        self.assertEqual(len(faults.reports(log(ours.replace("f+0x1/0x2 [rhist]", "0xffffffffc0201000")))), 1)
        self.assertEqual(faults.elsewhere(log(ours)), [])

    def test_races_elsewhere(self):
        race = RACE.format("f", "")
        self.assertEqual(faults.reports(log(race, race)), [])
        self.assertEqual(faults.elsewhere(log(race, race)), ["BUG: KCSAN: data-race in f / g"])
        # Lines after a report are judged separately.
        self.assertEqual(len(faults.reports(log(race, RACE.format("f", " [rhist]")))), 1)
        self.assertEqual(len(faults.reports(log(race, "BUG: KASAN: double-free in f+0x1/0x2 [rhist]"))), 1)

    def test_leaks(self):
        known = LEAK.format("event_hist_trigger_parse", "")
        self.assertEqual(faults.reports(log(LEAKS, known, known)), [])
        self.assertEqual(faults.elsewhere(log(LEAKS, known, known)), ["unreferenced object (size 8):"])
        for other in (
            LEAK.format("event_trigger_write", ""),
            LEAK.format("event_hist_trigger_parse", " [rhist]"),
            known.replace("vfs_write+0x1e4/0x990", "0xffffffffc0201000"),
        ):
            with self.subTest(other):
                self.assertEqual([report[0] for report in faults.reports(log(LEAKS, known, other))], [other.split("\n")[0]])

    def test_leaks_of_old_kernels(self):
        known = LEAK.format("__create_synth_event", "")
        self.assertEqual(faults.reports(log("Linux version 6.12.117-debug-6.12", LEAKS, known)), [])
        self.assertEqual(len(faults.reports(log("Linux version 7.3.4-debug", LEAKS, known))), 1)
        module = LEAK.format("__create_synth_event", " [rhist]")
        self.assertEqual(len(faults.reports(log("Linux version 6.12.117-debug-6.12", LEAKS, module))), 1)

    def test_uprobes_of_old_kernels(self):
        name, known = "Linux version 6.12.117-debug-6.12", MOVABLE.format("")
        self.assertEqual(faults.reports(log(name, known)), [])
        self.assertEqual(len(faults.reports(log("Linux version 7.3.4-debug", known))), 1)
        for other in (MOVABLE.format(" [rhist]"), known.replace("__uprobe_trace_func", "f")):
            with self.subTest(other):
                self.assertEqual(len(faults.reports(log(name, known, other))), 1)

    def test_killed_while_an_instance_is_made(self):
        known = NO_BUFFER.format("")
        self.assertEqual(faults.reports(log(known, known)), [])
        self.assertEqual(len(faults.elsewhere(log(known))), 1)
        for before in ("modprobe: page allocation failure: order:0", "rhist invoked oom-killer: gfp_mask=0x1"):
            with self.subTest(before):
                self.assertEqual(len(faults.reports(log(before, known))), 1)
        elsewhere = known.replace(" instance_mkdir+0x60/0xa0\n", "") + "\n instance_mkdir+0x60/0xa0"
        for other in (
            elsewhere, NO_BUFFER.format(" [rhist]"), known.replace("trace_rb_cpu_prepare", "f"), known.replace("instance_mkdir", "f"),
        ):
            with self.subTest(other):
                self.assertEqual(len(faults.reports(log(known, other))), 1)

    def test_user_mode_linux(self):
        name, begin = "Linux version 7.3.4-umdebug (root@vm)", "Run /bin/sh as init process"
        own = ASLEEP.format("")
        self.assertEqual(faults.reports(log(name, "WARNING: bad unlock balance detected!", begin, own)), [])
        self.assertEqual(len(faults.elsewhere(log(name, "WARNING: bad unlock balance detected!", begin, own))), 2)
        unlocked = UNLOCKED.format("")
        self.assertEqual(faults.reports(log(name, begin, unlocked)), [])
        self.assertEqual(len(faults.reports(log("Linux version 7.3.4-debug", begin, unlocked))), 1)
        self.assertEqual(len(faults.reports(log(name, begin, unlocked, "BUG: KASAN: slab-use-after-free in f+0x1/0x2"))), 1)
        for fault in (
            "WARNING: bad unlock balance detected!", ASLEEP.format(" [rhist]"), own.replace("__wrap_malloc", "f"),
            UNLOCKED.format(" [rhist]"), unlocked.replace("flush_tlb_mm", "f"),
        ):
            with self.subTest(fault):
                self.assertEqual(len(faults.reports(log(name, begin, fault))), 1)
        # On another kernel, all faults before that count.
        self.assertEqual(len(faults.reports(log("Linux version 7.3.4-debug", "WARNING: possible recursive locking detected", begin))), 1)

    def test_without_time_or_with_caller(self):
        self.assertEqual(len(faults.reports("BUG: x\n")), 1)
        self.assertEqual(len(faults.reports("[    1.000000][  T152] WARNING: x\n")), 1)
        self.assertEqual(len(faults.reports("<4>[    1.000000] WARNING: x\n")), 1)


if __name__ == "__main__":
    if sys.argv[1:] == ["faults"]:
        print("\n".join(FAULTS))
        sys.exit()
    result = unittest.main(exit=False, verbosity=2).result
    bad = len(result.failures) + len(result.errors)
    print(f"{max(0, result.testsRun - bad)} passed, {bad} failed")
    sys.exit(bool(bad))
