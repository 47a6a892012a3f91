// SPDX-License-Identifier: GPL-2.0
/*
 * Clocks that are inline functions or macros, and the clock "global" without a lock, if possible.
 *
 * A hit reads them, so neither they nor their callees may be traced: a hit would add to a trace of
 * functions.
 */
#include <linux/jump_label.h>
#include <linux/sched/clock.h>
#include <linux/smp.h>
#include <linux/trace_clock.h>
#ifdef CONFIG_X86
#include <asm/hypervisor.h>
#include <asm/kvm_para.h>
#include <asm/msr.h>
#include <asm/processor.h>
#include <asm/pvclock.h>
#include <asm/tsc.h>
#endif

#include "clock.h"
#include "compat.h"

/* Read the time stamp counter, for the trace clock x86-tsc. Any context, NMI included. */
notrace u64 rhist_tsc(void)
{
#ifdef CONFIG_X86
	return rdtsc_ordered();
#else
	return 0;
#endif
}

/*
 * Read the clock of this CPU, as local_clock() does. If local_clock() is a function, it can be
 * traced, and trace_clock() calls functions that can. Any context, NMI included.
 */
notrace u64 rhist_local_clock(void)
{
#ifdef CONFIG_HAVE_UNSTABLE_SCHED_CLOCK
	return sched_clock_cpu(raw_smp_processor_id());
#else
	return local_clock();
#endif
}

/* Get the properties of the CPUs' clock. Task context. */
void rhist_cpu_clock(struct rhist_cpu_clock *clock)
{
	*clock = (struct rhist_cpu_clock){};
#ifdef CONFIG_X86
	clock->native = x86_hyper_type == X86_HYPER_NATIVE;
	clock->kvm = x86_hyper_type == X86_HYPER_KVM;
	if (clock->kvm) {
		struct pvclock_vsyscall_time_info *page = pvclock_get_pvti_cpu0_va();
		u32 base = cpuid_base_hypervisor(KVM_SIGNATURE, 0);

		clock->stable_bit_valid =
			base && cpuid_eax(base | KVM_CPUID_FEATURES) & BIT(KVM_FEATURE_CLOCKSOURCE_STABLE_BIT);
		clock->has_pvclock = page;
		/* The host may write to the page at any time. */
		clock->pvclock_flags = page ? READ_ONCE(page->pvti.flags) : 0;
	}
#endif
}

/* Return whether the static key at the address @key is enabled. Any context. */
bool rhist_static_key_enabled(unsigned long key)
{
	return static_key_enabled((struct static_key *)key);
}

#ifdef CONFIG_X86
/* Set if all CPUs share one clock while the time stamp counter is not marked as unstable. */
static DEFINE_STATIC_KEY_FALSE(one_clock);
#endif

/*
 * Make rhist_global_clock() read the clock of the CPUs, which share one while the time stamp
 * counter is not marked as unstable. Task context, may sleep; once, before the clock is read.
 */
void rhist_clock_use_lockless(void)
{
#ifdef CONFIG_X86
	static_branch_enable(&one_clock);
#endif
}

/* Return whether rhist_global_clock() takes no lock. Any context, NMI included. */
notrace bool rhist_clock_is_lockless(void)
{
#ifdef CONFIG_X86
	return static_branch_likely(&one_clock) && likely(!check_tsc_unstable());
#else
	return false;
#endif
}

/*
 * Read the clock "global". trace_clock_global() keeps the latest time that any CPU has read, and a
 * lock for it, so that no CPU is behind another one: each reading writes to memory that all CPUs
 * share. If the CPUs share one clock, a reading is not behind an earlier one on another CPU anyway.
 * The fence keeps the processor from reading the counter too early, while it waits for a value that
 * another CPU has stored. Any context, NMI included.
 */
notrace u64 rhist_global_clock(void)
{
	if (rhist_clock_is_lockless()) {
		rmb();
		return rhist_local_clock();
	}
	return trace_clock_global();
}
