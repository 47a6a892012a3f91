/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_CLOCK_H
#define RHIST_CLOCK_H

#include <linux/types.h>

/* Properties of the CPUs' clock: see CpuClock in src/event/clock.rs. */
struct rhist_cpu_clock {
	bool native;
	bool kvm;
	bool stable_bit_valid;
	bool has_pvclock;
	u8 pvclock_flags;
};

u64 rhist_tsc(void);
u64 rhist_local_clock(void);
void rhist_cpu_clock(struct rhist_cpu_clock *clock);
bool rhist_static_key_enabled(unsigned long key);
void rhist_clock_use_lockless(void);
bool rhist_clock_is_lockless(void);
u64 rhist_global_clock(void);

#endif
