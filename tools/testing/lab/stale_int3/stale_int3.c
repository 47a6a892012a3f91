// SPDX-License-Identifier: GPL-2.0
/*
 * Carries on when QEMU executes a breakpoint that memory no longer holds.
 *
 * The kernel changes code under running CPUs by putting an int3 in its place for a moment
 * (smp_text_poke_batch_finish(), arch/x86/kernel/alternative.c). When a virtual CPU stores the
 * first byte of the final instruction, QEMU drops the translations of that code first and stores
 * then. Another CPU, on a thread of its own, may translate the old byte in between, and this
 * translation stays: from then on an int3 is executed that no memory holds, and the kernel, which
 * knows nothing of it, dies ("Oops: int3"). On a machine with fewer processors than the guest this
 * happens about once in a hundred runs of the selftests.
 *
 * The instruction is executed again, with the resume flag (RF) set. QEMU has other translations for
 * code with this flag, so it translates what memory holds now, and then clears the flag. Memory may
 * hold any instruction, since a kprobe may just have been removed from it.
 *
 * If memory does hold an int3, the next change of that code may just have begun: then it is
 * executed again, for the kernel to take. One that comes twice in a row is not ours: a kprobe, for
 * example.
 *
 * All this has to happen before kprobe_int3_handler(), and so ftrace calls this module at its
 * start. At a function with a kprobe that uses ftrace, it takes any int3 for a hit, and continues
 * with the kprobe's copy of the instruction, but such a kprobe has none
 * (arch_prepare_kprobe_ftrace()): the CPU would jump to address 0. A notifier, which the kernel
 * calls later, does the same when ftrace does not: on kernels without such kprobes, while
 * kernel.ftrace_enabled is 0, and when ftrace itself was interrupted.
 */

#include <linux/ftrace.h>
#include <linux/kdebug.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <asm/processor-flags.h>
#include <asm/text-patching.h>

/* The last int3 that a CPU has executed, if memory did hold it. */
static DEFINE_PER_CPU(const u8 *, held);
static DEFINE_PER_CPU(bool, printing);

/* Returns whether the CPU is to execute the instruction at the int3 again. */
static notrace bool again(struct pt_regs *regs)
{
	const u8 *code = (const u8 *)regs->ip - INT3_INSN_SIZE;

	if (user_mode(regs))
		return false;
	if (READ_ONCE(*code) == INT3_INSN_OPCODE) {
		if (this_cpu_xchg(held, code) == code)
			return false;
		regs->ip = (unsigned long)code;
		return true;
	}
	this_cpu_write(held, NULL);
	regs->ip = (unsigned long)code;
	regs->flags |= X86_EFLAGS_RF;
	/* Printing may execute another one. */
	if (!this_cpu_xchg(printing, true)) {
		pr_info_ratelimited("stale_int3: at %pS\n", code);
		this_cpu_write(printing, false);
	}
	return true;
}

static int stale_int3(struct notifier_block *block, unsigned long event, void *data)
{
	struct pt_regs *regs = ((struct die_args *)data)->regs;

	return event == DIE_INT3 && again(regs) ? NOTIFY_STOP : NOTIFY_DONE;
}

static struct notifier_block block = { .notifier_call = stale_int3, .priority = INT_MAX };

#ifdef CONFIG_KPROBES_ON_FTRACE

/* Stands in for kprobe_int3_handler(). */
static notrace int handled(struct pt_regs *regs)
{
	return 1;
}

static notrace void before_kprobes(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
				   struct ftrace_regs *fregs)
{
	if (again((struct pt_regs *)ftrace_regs_get_argument(fregs, 0)))
		ftrace_regs_set_instruction_pointer(fregs, (unsigned long)handled);
}

static struct ftrace_ops ops = { .func = before_kprobes, .flags = FTRACE_OPS_FL_IPMODIFY };

static int hook(void)
{
	static unsigned char name[] = "kprobe_int3_handler";

	return ftrace_set_filter(&ops, name, strlen(name), 1) ?: register_ftrace_function(&ops);
}

static void unhook(void)
{
	unregister_ftrace_function(&ops);
}

#else

static int hook(void)
{
	return 0;
}

static void unhook(void)
{
}

#endif

static int __init stale_int3_init(void)
{
	int error = register_die_notifier(&block);

	if (error)
		return error;
	error = hook();
	if (error)
		unregister_die_notifier(&block);
	return error;
}
module_init(stale_int3_init);

static void __exit stale_int3_exit(void)
{
	unhook();
	unregister_die_notifier(&block);
}
module_exit(stale_int3_exit);

MODULE_DESCRIPTION("Carries on where QEMU executes a breakpoint that is no longer there");
MODULE_LICENSE("GPL");
