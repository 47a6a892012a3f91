// SPDX-License-Identifier: GPL-2.0
/*
 * Clocks that are inline functions or macros, and the clock "global" where it needs no lock.
 */
#include <linux/jump_label.h>
#include <linux/sched/clock.h>
#include <linux/trace_clock.h>
#ifdef CONFIG_X86
#include <asm/hypervisor.h>
#include <asm/kvm_para.h>
#include <asm/msr.h>
#include <asm/processor.h>
#include <asm/tsc.h>
#endif

#include "clock.h"
#include "compat.h"

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

#ifdef CONFIG_X86

/* The clocks of all CPUs are one as long as the time stamp counter is not marked as unstable. */
static DEFINE_STATIC_KEY_FALSE(one_clock);

/*
 * Whether sched_clock_stable(), which is not exported, stays true as long as the time stamp counter is not marked as
 * unstable. That ends it on real processors (mark_tsc_unstable()); on KVM, the host says whether its clock can be relied on
 * (kvm_sched_clock_init()). What other hypervisors have in its place is not known here.
 */
static bool follows_tsc(void)
{
	u32 base;

	if (x86_hyper_type == X86_HYPER_NATIVE)
		return true;
	if (x86_hyper_type != X86_HYPER_KVM)
		return false;
	base = cpuid_base_hypervisor(KVM_SIGNATURE, 0);
	return base && cpuid_eax(base | KVM_CPUID_FEATURES) & BIT(KVM_FEATURE_CLOCKSOURCE_STABLE_BIT);
}

#endif

/* Finds out what rhist_global_clock() can do. Task context, may sleep, once, before it is read. */
void rhist_clock_init(void)
{
#ifdef CONFIG_X86
	if (follows_tsc())
		static_branch_enable(&one_clock);
#endif
}

/*
 * Reads the clock "global". trace_clock_global() keeps the latest time that any CPU has read, and a lock for it, so that no
 * CPU is behind another one: each reading writes to memory that all CPUs share. If they have one clock, a reading is not
 * behind another one that was made before, which is all that it is for; the fence keeps the processor from reading the
 * counter earlier, while it waits for what another CPU has stored. Any context, NMI included.
 */
notrace u64 rhist_global_clock(void)
{
#ifdef CONFIG_X86
	if (static_branch_likely(&one_clock) && likely(!check_tsc_unstable())) {
		rmb();
		return local_clock();
	}
#endif
	return trace_clock_global();
}
