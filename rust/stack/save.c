// SPDX-License-Identifier: GPL-2.0
/*
 * Save the stack of the running task, beginning at a given frame.
 *
 * stack_trace_save() unwinds from its own frame, and each frame takes as long as the rest of a hit.
 * The unwinders of x86 are exported and can begin at any frame. User-mode Linux exports none, and
 * its own scans every word of the stack; with frame pointers, following them is enough.
 */
#include <linux/sched.h>
#include <linux/stacktrace.h>

#include "orc.h"
#include "save.h"
#include "stack.h"

#ifdef RHIST_STACK_FRAMES
#include <asm/stacktrace.h>
#endif

/*
 * Fill @entries with up to @n addresses: one in the function of @frame, then the return addresses
 * of that function and its callers. Without an unwinder, @frame is ignored and the stack begins as
 * stack_trace_save() does. @n must not be 0. Returns the number of addresses. Any context, NMI
 * included, with preemption off.
 */
unsigned int rhist_stack_save(const struct rhist_frame *frame, unsigned long *entries, unsigned int n)
{
#ifdef RHIST_STACK_UNWINDER
	int len = rhist_orc_walk(frame, entries, n);

	return likely(len >= 0) ? len : rhist_stack_unwind(frame, entries, n);
#elif defined(RHIST_STACK_FRAMES)
	const unsigned long end = round_up(frame->sp, THREAD_SIZE);
	unsigned long below = frame->sp, bp = frame->bp;
	unsigned int len = 1;

	entries[0] = frame->ip;
	for (; len < n && bp >= below && bp <= end - sizeof(struct stack_frame); len++) {
		const struct stack_frame *caller = (const struct stack_frame *)bp;

		entries[len] = caller->return_address;
		below = bp + 1;
		bp = (unsigned long)caller->next_frame;
	}
	return len;
#else
	return stack_trace_save(entries, n, 0);
#endif
}
