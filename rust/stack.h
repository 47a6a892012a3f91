/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_STACK_H
#define RHIST_STACK_H

#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/types.h>

/* How rhist_stack_save() begins at a given frame; neither is defined if it cannot. */
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

unsigned int rhist_stack_save(const struct rhist_frame *frame, unsigned long *entries,
			      unsigned int n);
bool rhist_interrupt_stack_suffices(void);
bool rhist_stack_suffices_outlined(void);

/*
 * What a hit of a synthetic event takes of the stack at most until it asks again, with the probe that it is in, and with
 * what others do in theirs. A test measures that.
 */
#define RHIST_HIT_STACK	(THREAD_SIZE * 5 / 16)

/*
 * Whether enough of the stack is left for an event that happens within a hit. Hits nest in that, so this is asked before
 * anything of it is on the stack, and says no unless as much is left as these take until they ask in turn, and then as
 * those take who may interrupt them there. Interrupts of a task have another stack. Any context, with preemption off.
 */
static __always_inline bool rhist_stack_suffices(void)
{
	unsigned long left = current_stack_pointer - (unsigned long)task_stack_page(current);

	return likely(left < THREAD_SIZE) ? left >= RHIST_HIT_STACK : rhist_interrupt_stack_suffices();
}

#endif
