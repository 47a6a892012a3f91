/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_STACK_H
#define RHIST_STACK_H

#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/types.h>

/* The way in which rhist_stack_save() begins at a given frame; neither is defined if it cannot. */
#if defined(CONFIG_UNWINDER_ORC) || defined(CONFIG_UNWINDER_FRAME_POINTER)
#define RHIST_STACK_UNWINDER
#elif defined(CONFIG_UML_X86) && defined(CONFIG_FRAME_POINTER)
#define RHIST_STACK_FRAMES
#endif

/* A stack frame: registers of a function that has not returned yet. */
struct rhist_frame {
	unsigned long ip, sp, bp;
};

/* Get the frame of the caller of the function that this is inlined into. */
static __always_inline void rhist_frame_of_caller(struct rhist_frame *frame)
{
#if defined(RHIST_STACK_UNWINDER) || defined(RHIST_STACK_FRAMES)
	const unsigned long *here = __builtin_frame_address(0);

	frame->bp = here[0];
	frame->ip = here[1];
	frame->sp = (unsigned long)&here[2];
#endif
}

void rhist_frame_here(struct rhist_frame *frame);
unsigned int rhist_stack_unwind(const struct rhist_frame *frame, unsigned long *entries, unsigned int n);
bool rhist_interrupt_stack_suffices(void);
bool rhist_stack_suffices_outlined(void);

/*
 * Maximum stack usage from one call of rhist_stack_suffices() to the next nested one: emitting a
 * synthetic event, its probes (rhist's and others), and the hit. The test "chains" measures it.
 */
#define RHIST_HIT_STACK	(THREAD_SIZE * 5 / 16)

/*
 * Return whether enough of the stack is left to emit an event within a hit: RHIST_HIT_STACK for the
 * hits that nest in it, until these call this function themselves. On the stack of an interrupt
 * also INTERRUPT_STACK for each context that may interrupt it on the same stack. A task is
 * interrupted on another stack. Any context, with preemption off.
 */
static __always_inline bool rhist_stack_suffices(void)
{
	unsigned long left = current_stack_pointer - (unsigned long)task_stack_page(current);

	return likely(left < THREAD_SIZE) ? left >= RHIST_HIT_STACK : rhist_interrupt_stack_suffices();
}

#endif
