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
 * Memory holds one of the few instructions that the kernel patches with instead. The notifier
 * emulates this instruction. If memory does hold an int3, the next change of that code may just
 * have begun: then it is executed again, for the kernel to take. One that stays is not ours.
 */

#include <linux/kdebug.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <asm/nops.h>
#include <asm/text-patching.h>

static const u8 nop2[] = { BYTES_NOP2 };
static const u8 nop5[] = { BYTES_NOP5 };
/* A static call of __static_call_return0() is patched to xor %eax, %eax. */
static const u8 return0[] = { 0x2e, 0x2e, 0x2e, 0x31, 0xc0 };

/* Number of int3 that a CPU has executed and memory holds, since the last stale one. */
#define AGAIN_MAX 1000
static DEFINE_PER_CPU(unsigned int, again);

/* Returns whether the instruction at @ip is one that the kernel patches with. */
static bool emulate(struct pt_regs *regs, unsigned long ip)
{
	const u8 *code = (const u8 *)ip;
	s32 displacement;

	switch (code[0]) {
	case JMP8_INSN_OPCODE:
		int3_emulate_jmp(regs, ip + JMP8_INSN_SIZE + (s8)code[1]);
		return true;
	case JMP32_INSN_OPCODE:
		memcpy(&displacement, code + 1, sizeof(displacement));
		int3_emulate_jmp(regs, ip + JMP32_INSN_SIZE + displacement);
		return true;
	case CALL_INSN_OPCODE:
		memcpy(&displacement, code + 1, sizeof(displacement));
		/* int3_emulate_call(), whose arguments depend on the version. */
		int3_emulate_push(regs, ip + CALL_INSN_SIZE);
		int3_emulate_jmp(regs, ip + CALL_INSN_SIZE + displacement);
		return true;
	case RET_INSN_OPCODE:
		int3_emulate_ret(regs);
		return true;
	}
	if (code[0] == 0x0f && (code[1] & 0xf0) == 0x80) { /* a conditional jump */
		memcpy(&displacement, code + 2, sizeof(displacement));
		int3_emulate_jcc(regs, code[1] & 0xf, ip + 6, displacement);
		return true;
	}
	if (!memcmp(code, nop2, sizeof(nop2))) {
		int3_emulate_jmp(regs, ip + sizeof(nop2));
		return true;
	}
	if (!memcmp(code, nop5, sizeof(nop5))) {
		int3_emulate_jmp(regs, ip + sizeof(nop5));
		return true;
	}
	if (!memcmp(code, return0, sizeof(return0))) {
		regs->ax = 0;
		int3_emulate_jmp(regs, ip + sizeof(return0));
		return true;
	}
	return false;
}

static int stale_int3(struct notifier_block *block, unsigned long event, void *data)
{
	struct pt_regs *regs = ((struct die_args *)data)->regs;
	unsigned long ip = regs->ip - INT3_INSN_SIZE;

	if (event != DIE_INT3 || user_mode(regs))
		return NOTIFY_DONE;
	if (READ_ONCE(*(const u8 *)ip) == INT3_INSN_OPCODE) {
		if (this_cpu_inc_return(again) > AGAIN_MAX)
			return NOTIFY_DONE;
		regs->ip = ip;
		return NOTIFY_STOP;
	}
	this_cpu_write(again, 0);
	if (!emulate(regs, ip))
		return NOTIFY_DONE;
	pr_info_ratelimited("stale_int3: at %pS\n", (void *)ip);
	return NOTIFY_STOP;
}

static struct notifier_block block = { .notifier_call = stale_int3, .priority = INT_MAX };

static int __init stale_int3_init(void)
{
	return register_die_notifier(&block);
}
module_init(stale_int3_init);

static void __exit stale_int3_exit(void)
{
	unregister_die_notifier(&block);
}
module_exit(stale_int3_exit);

MODULE_DESCRIPTION("Carries on where QEMU executes a breakpoint that is no longer there");
MODULE_LICENSE("GPL");
