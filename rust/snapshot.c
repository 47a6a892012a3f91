// SPDX-License-Identifier: GPL-2.0
/*
 * Conditional snapshots. The functions are exported, but declared only in
 * kernel/trace/trace.h. They do not exist without CONFIG_TRACER_SNAPSHOT.
 */
#include <linux/errno.h>
#include <linux/types.h>

#include "snapshot.h"

#ifdef CONFIG_TRACER_SNAPSHOT

int tracing_snapshot_cond_enable(struct trace_array *tr, void *cond_data, rhist_update_t update);
int tracing_snapshot_cond_disable(struct trace_array *tr);
void tracing_snapshot_cond(struct trace_array *tr, void *cond_data);

/**
 * rhist_snapshot_enable - enable the conditional snapshot of an instance
 * @tr: the instance, with a reference until rhist_snapshot_disable()
 * @update: the condition
 *
 * @cond_data of the snapshot itself is NULL: hist triggers of C in the same instance
 * would take it for their own, and read it for their hist file and when they are removed.
 *
 * Context: task, may sleep; takes trace_types_lock.
 *
 * Return: 0, -EBUSY, -ENOMEM, or -ENODEV if the kernel lacks snapshots.
 */
int rhist_snapshot_enable(struct trace_array *tr, rhist_update_t update)
{
	return tracing_snapshot_cond_enable(tr, NULL, update);
}

/*
 * Disable the conditional snapshot. Task context with interrupts on. The condition is not called
 * afterwards.
 */
void rhist_snapshot_disable(struct trace_array *tr)
{
	tracing_snapshot_cond_disable(tr);
}

/*
 * Take a snapshot if the condition is true for @cond_data. Any context with preemption off; in NMI
 * the kernel does not call the condition, and leaves a note in the trace.
 */
void rhist_snapshot_take(struct trace_array *tr, void *cond_data)
{
	tracing_snapshot_cond(tr, cond_data);
}

#else

int rhist_snapshot_enable(struct trace_array *tr, rhist_update_t update)
{
	return -ENODEV;
}

void rhist_snapshot_disable(struct trace_array *tr)
{
}

void rhist_snapshot_take(struct trace_array *tr, void *cond_data)
{
}

#endif
