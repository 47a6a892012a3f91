/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_COUNTER_H
#define RHIST_COUNTER_H

#include <linux/types.h>

struct perf_event;
struct pt_regs;

/* A counter of the cycles of a CPU, which interrupts that CPU after each period. */
struct rhist_counter {
	/* NULL while it is stopped. */
	struct perf_event *event;
	/*
	 * Called after each period with the number of cycles so far, and whether the kernel has
	 * stopped the counter until the next tick of its clock, since it interrupts too often. In
	 * an NMI or a hard interrupt, with the registers of the interrupted code.
	 */
	void (*overflow)(struct rhist_counter *counter, u64 cycles, bool throttled, struct pt_regs *regs);
};

int rhist_counter_start(struct rhist_counter *counter, unsigned int cpu, u64 period);
u64 rhist_counter_stop(struct rhist_counter *counter);
u64 rhist_counter_read(const struct rhist_counter *counter);
bool rhist_counter_failed(const struct rhist_counter *counter);

#endif
