// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of cycles, by perf: one of a CPU's performance monitoring unit (PMU).
 *
 * The counter is pinned: it counts all the time, or fails at once if other pinned ones have taken
 * all that the CPU has, as the kernel's NMI watchdog takes one. No counter of software stands in
 * for it.
 */
#include <linux/err.h>
#include <linux/perf_event.h>

#include "counter.h"

#ifdef CONFIG_PERF_EVENTS

/* The number of interrupts of a stopped counter: MAX_INTERRUPTS (kernel/events/core.c). */
#define THROTTLED (~0ULL)

static notrace void overflow(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
	struct rhist_counter *counter = event->overflow_handler_context;

	/* The PMU's handler has added up the cycles before. */
	counter->overflow(counter, local64_read(&event->count), event->hw.interrupts == THROTTLED, regs);
}

/*
 * Start a counter: task context, may sleep, while hotplug of CPUs is locked or calls this.
 *
 * Returns 0; -EOPNOTSUPP if the CPU lacks such a counter; -EBUSY if others use all of them; or
 * another negative errno.
 */
int rhist_counter_start(struct rhist_counter *counter, unsigned int cpu, u64 period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.sample_period = period,
		.pinned = 1,
	};
	struct perf_event *event = perf_event_create_kernel_counter(&attr, cpu, NULL, overflow, counter);
	int err = 0;

	if (IS_ERR(event)) {
		switch (PTR_ERR(event)) {
		case -EINVAL:
		case -ENODEV:
		case -ENOENT:
			return -EOPNOTSUPP;
		default:
			return PTR_ERR(event);
		}
	}
	if (is_software_event(event))
		err = -EOPNOTSUPP;
	else if (READ_ONCE(event->state) < PERF_EVENT_STATE_INACTIVE)
		err = -EBUSY;
	if (err)
		perf_event_release_kernel(event);
	else
		counter->event = event;
	return err;
}

/*
 * Stop a counter that was started, and wait for its interrupt. Returns the number of cycles. In the
 * context of rhist_counter_start().
 */
u64 rhist_counter_stop(struct rhist_counter *counter)
{
	u64 cycles;

	perf_event_disable(counter->event);
	cycles = rhist_counter_read(counter);
	perf_event_release_kernel(counter->event);
	counter->event = NULL;
	return cycles;
}

/* Return the cycles since a counter was started. In the context of rhist_counter_start(). */
u64 rhist_counter_read(const struct rhist_counter *counter)
{
	u64 enabled, running;

	return perf_event_read_value(counter->event, &enabled, &running);
}

/*
 * Return whether a counter that was started counts no more, since the kernel has given it to
 * another user. In the context of rhist_counter_start().
 */
bool rhist_counter_failed(const struct rhist_counter *counter)
{
	return READ_ONCE(counter->event->state) < PERF_EVENT_STATE_INACTIVE;
}

#else

int rhist_counter_start(struct rhist_counter *counter, unsigned int cpu, u64 period)
{
	return -EOPNOTSUPP;
}

u64 rhist_counter_stop(struct rhist_counter *counter)
{
	return 0;
}

u64 rhist_counter_read(const struct rhist_counter *counter)
{
	return 0;
}

bool rhist_counter_failed(const struct rhist_counter *counter)
{
	return false;
}

#endif
