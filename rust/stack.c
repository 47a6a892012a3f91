// SPDX-License-Identifier: GPL-2.0
/*
 * The stack of the running task, from a function on that has been left behind.
 *
 * The kernel's stack_trace_save() begins at itself, and what it unwinds takes time: one frame as much
 * as all else that a hit does. Its unwinders for x86 are exported too, and can begin anywhere. That of
 * user-mode Linux is not, and looks at each word of the stack; but there a frame leads to the next.
 */
#include <linux/sched.h>
#include <linux/stacktrace.h>

#include "helpers.h"

#ifdef RHIST_STACK_UNWINDER
#include <asm/unwind.h>
#elif defined(RHIST_STACK_FRAMES)
#include <asm/stacktrace.h>
#endif

/*
 * Fills @entries with up to @n addresses: one in the function that @frame is of, if that is known,
 * then those that it and its callers return to. Returns how many there are. Any context, NMI included.
 */
unsigned int rhist_stack_save(const struct rhist_frame *frame, unsigned long *entries,
			      unsigned int n)
{
#if defined(RHIST_STACK_UNWINDER) || defined(RHIST_STACK_FRAMES)
	struct rhist_frame here;
	unsigned int len = 1;

	if (!frame) {
		rhist_frame_of_caller(&here);
		frame = &here;
	}
	entries[0] = frame->ip;
#endif
#ifdef RHIST_STACK_UNWINDER
	struct unwind_state state;
	/* All that an unwinder reads of the registers; the others are those of the functions called since. */
	struct pt_regs regs = {
		.ip = frame->ip,
		.sp = frame->sp,
		.bp = frame->bp,
		.cs = __KERNEL_CS,
	};

	for (unwind_start(&state, current, &regs, NULL); !unwind_done(&state);
	     unwind_next_frame(&state)) {
		unsigned long address = unwind_get_return_address(&state);

		if (!address)
			break;
		entries[len++] = address;
		if (len == n)
			break;
	}
	return len;
#elif defined(RHIST_STACK_FRAMES)
	const unsigned long end = round_up(frame->sp, THREAD_SIZE);
	unsigned long below = frame->sp, bp = frame->bp;

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
