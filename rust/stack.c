// SPDX-License-Identifier: GPL-2.0
/*
 * The stack of the running task, from a function on that has been left behind.
 *
 * The kernel's stack_trace_save() begins at itself, and what it unwinds takes time: one frame as much
 * as all else that a hit does. Its unwinders for x86 are exported too, and can begin anywhere.
 */
#include <linux/sched.h>
#include <linux/stacktrace.h>
#if defined(CONFIG_UNWINDER_ORC) || defined(CONFIG_UNWINDER_FRAME_POINTER)
#include <asm/unwind.h>
#endif

#include "helpers.h"

/*
 * Fills @entries with up to @n addresses: one in the function that @frame is of, if that is known,
 * then those that it and its callers return to. Returns how many there are. Any context, NMI included.
 */
unsigned int rhist_stack_save(const struct rhist_frame *frame, unsigned long *entries,
			      unsigned int n)
{
#if defined(CONFIG_UNWINDER_ORC) || defined(CONFIG_UNWINDER_FRAME_POINTER)
	struct unwind_state state;
	struct rhist_frame here;
	unsigned int len = 1;

	if (!frame) {
		rhist_frame_here(&here);
		frame = &here;
	}
	/* All that an unwinder reads of the registers; the others are those of the functions called since. */
	struct pt_regs regs = {
		.ip = frame->ip,
		.sp = frame->sp,
		.bp = frame->bp,
		.cs = __KERNEL_CS,
	};

	entries[0] = frame->ip;
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
#else
	return stack_trace_save(entries, n, 0);
#endif
}
