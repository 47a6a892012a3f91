// SPDX-License-Identifier: GPL-2.0
/*
 * Clocks that are inline functions or macros.
 */
#include <linux/sched/clock.h>
#ifdef CONFIG_X86
#include <asm/msr.h>
#include <asm/tsc.h>
#endif

#include "clock.h"

/* Read the time stamp counter, for the trace clock x86-tsc. Any context, NMI included. */
u64 rhist_tsc(void)
{
#ifdef CONFIG_X86
	return rdtsc_ordered();
#else
	return 0;
#endif
}

/* local_clock() is inline without CONFIG_HAVE_UNSTABLE_SCHED_CLOCK. Any context. */
u64 rhist_local_clock(void)
{
	return local_clock();
}
