// SPDX-License-Identifier: GPL-2.0
/*
 * The stack of the running task: its frames, the kernel's unwinder for them, and whether enough of
 * it is left.
 */
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#ifdef CONFIG_ARM64
#include <asm/cpufeature.h>
#endif

#include "stack.h"

#ifdef RHIST_STACK_UNWINDER
#include <asm/unwind.h>
#endif

/* Get the frame of the caller, if that cannot inline rhist_frame_of_caller(). Any context. */
noinline void rhist_frame_here(struct rhist_frame *frame)
{
	rhist_frame_of_caller(frame);
}

#ifdef RHIST_STACK_UNWINDER

/*
 * Fill @entries with up to @n addresses by the kernel's unwinder: see rhist_stack_save(). Any
 * context, NMI included.
 */
noinline unsigned int rhist_stack_unwind(const struct rhist_frame *frame, unsigned long *entries, unsigned int n)
{
	struct unwind_state state;
	/*
	 * The unwinders read only these registers of a kernel frame; the others are unknown by now.
	 */
	struct pt_regs regs = {
		.ip = frame->ip,
		.sp = frame->sp,
		.bp = frame->bp,
		.cs = __KERNEL_CS,
	};
	unsigned int len = 1;

	entries[0] = frame->ip;
	for (unwind_start(&state, current, &regs, NULL); len < n && !unwind_done(&state);
	     unwind_next_frame(&state)) {
		unsigned long address = unwind_get_return_address(&state);

		if (!address)
			break;
		entries[len++] = address;
	}
	return len;
}

#endif

/*
 * Maximum stack usage of an interrupt, with a hit that emits no event. The test "chains" measures
 * it.
 */
#define INTERRUPT_STACK	(THREAD_SIZE / 4)

#ifdef RHIST_STACK_UNWINDER

/* Lowest address of the CPU's stack of interrupts, which is constant; 0 until it was looked up. */
static DEFINE_PER_CPU(unsigned long, irq_stack);

static noinline unsigned long look_up_left(void)
{
	struct unwind_state state;
	unsigned long begin;

	unwind_start(&state, current, NULL, NULL);
	begin = (unsigned long)state.stack_info.begin;
	switch (state.stack_info.type) {
	case STACK_TYPE_UNKNOWN:
		return 0;
	case STACK_TYPE_IRQ:
		__this_cpu_write(irq_stack, begin);
		fallthrough;
	default:
		return current_stack_pointer - begin;
	}
}

/* Return the bytes left on the current stack, which is not a task's. Preemption is off. */
static unsigned long interrupt_stack_left(void)
{
	unsigned long left = current_stack_pointer - __this_cpu_read(irq_stack);

	/* Other stacks, such as an NMI's, are looked up each time, which is slow. */
	return left < IRQ_STACK_SIZE ? left : look_up_left();
}

#else

/* On arm64 and in user-mode Linux, stacks of interrupts have the size and alignment of a task's. */
static unsigned long interrupt_stack_left(void)
{
	return current_stack_pointer % THREAD_SIZE;
}

#endif

/*
 * Return how many contexts may interrupt the current one on the same stack, which is not a task's.
 */
static unsigned int interruptions(void)
{
	/* A hard interrupt may interrupt a softirq. On x86, NMIs have another stack. */
	unsigned int most = 2, level = interrupt_context_level();

#ifdef CONFIG_ARM64
	if (system_uses_irq_prio_masking())
		most = 3;
#endif
	return level < most ? most - level : 0;
}

/* Slow path of rhist_stack_suffices(), on the stack of an interrupt, NMI or exception. */
bool rhist_interrupt_stack_suffices(void)
{
	return interrupt_stack_left() >= RHIST_HIT_STACK + interruptions() * INTERRUPT_STACK;
}

/* For Rust, which inlines no C. */
bool rhist_stack_suffices_outlined(void)
{
	return rhist_stack_suffices();
}
