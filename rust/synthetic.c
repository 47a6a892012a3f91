// SPDX-License-Identifier: GPL-2.0
/*
 * Synthetic events: events that are defined by a command, and hit by actions of hist triggers,
 * which pass the values of their fields.
 */
#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>
#include <linux/srcu.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>
#include <asm/local.h>

#include "compat.h"
#include "stack/stack.h"
#include "synthetic.h"
#include "layouts_generated.h"

#ifdef CONFIG_SYNTH_EVENTS

/* A probe of a synthetic event: it finds the value of field i in vals[idx[i]]. */
typedef void (*synth_probe_t)(void *data, u64 *vals, unsigned int *idx);

/* Return whether an event is a synthetic one, as opposed to a probe in that group. Any context. */
bool rhist_is_synthetic(struct trace_event_call *call)
{
	return call->data + SYNTH_EVENT__CLASS == call->class;
}

/*
 * Add to the number of users of a synthetic event. While it is not 0, the kernel refuses to delete
 * the event, and to delete all events. Called with event_mutex held.
 */
void rhist_synthetic_count(struct trace_event_call *call, int users)
{
	*(int *)(call->data + SYNTH_EVENT__REF) += users;
}

/*
 * Return the array of the fields of a synthetic event, and set @n to their number.
 * Both are constant until the event is deleted. Any context.
 */
struct synth_field **rhist_synthetic_fields(struct trace_event_call *call, unsigned int *n)
{
	*n = *(unsigned int *)(call->data + SYNTH_EVENT__N_FIELDS);
	return *(struct synth_field ***)(call->data + SYNTH_EVENT__FIELDS);
}

/*
 * Number of records of a CPU that may be incomplete in a ring buffer: above that the kernel warns
 * (MAX_NEST).
 */
#define INCOMPLETE_MAX	5

/*
 * Return whether the ring buffer of an instance has room for one more record of this CPU while the
 * others are incomplete, and for records of @more contexts that may interrupt this one. Any
 * context, with preemption off.
 */
static bool has_room(struct trace_array *tr, unsigned int more)
{
	void *buffer = READ_ONCE(*(void **)((void *)tr + TRACE_ARRAY__ARRAY_BUFFER + ARRAY_BUFFER__BUFFER));
	void **cpus = *(void ***)(buffer + TRACE_BUFFER__BUFFERS);
	void *cpu = cpus[raw_smp_processor_id()];

	return !cpu || local_read((local_t *)(cpu + RING_BUFFER_PER_CPU__COMMITTING)) + 1 + more <= INCOMPLETE_MAX;
}

/* An event that is being emitted. */
struct emission {
	const struct tracepoint *tp;
	/* The hit on whose behalf it is emitted. */
	const void *origin;
	/* The context in which it is emitted. */
	unsigned char level;
	/* The event that it nests in, or interrupts. */
	const struct emission *outer;
};

/* The innermost one on each CPU. */
static DEFINE_PER_CPU(const struct emission *, emission);

static void call_probes(struct tracepoint *tp, const u64 *vals, const unsigned int *idx, const void *origin)
{
	const struct emission this = {
		.tp = tp,
		.origin = origin,
		.level = interrupt_context_level(),
		.outer = __this_cpu_read(emission),
	};
	struct tracepoint_func *func;
	synth_probe_t probe;

	rhist_guard_probes();
	func = rcu_dereference_raw(tp->funcs);
	if (!func)
		return;
	/* A context that interrupts this restores it. */
	__this_cpu_write(emission, &this);
	barrier();
	/* If an allocation fails, the kernel replaces a removed probe in place. */
	while ((probe = READ_ONCE(func->func))) {
		probe(func->data, (u64 *)vals, (unsigned int *)idx);
		func++;
	}
	barrier();
	__this_cpu_write(emission, this.outer);
}

/*
 * Return the origin of the event that is being emitted: NULL if it has none, or if C emits the
 * event in this context, not rhist. Called by its probes; any context, with preemption off.
 */
const void *rhist_synthetic_origin(const struct tracepoint *tp)
{
	const struct emission *last = __this_cpu_read(emission);

	return last && last->tp == tp && last->level == interrupt_context_level() ? last->origin : NULL;
}

/**
 * rhist_synthetic_emit - call the probes of a synthetic event
 * @tp: its tracepoint
 * @tr: the instance in which rhist's histograms get the events
 * @vals: values
 * @idx: for each field of the event, which of @vals it gets
 * @origin: the result of rhist_synthetic_origin() meanwhile
 *
 * The kernel exports no function that emits a synthetic event; hist triggers of C call the probes
 * themselves, too. Probes only read @vals and @idx.
 *
 * The array of probes is freed after a grace period of tracepoint_srcu, and so is the probes' data.
 * C does not enter a read-side section here, because the hit that emits the event is in one. But
 * that holds only for hits of tracepoints, not of kprobes.
 *
 * The kernel reserves the record of such an event in the ring buffer of @tr, and commits it after
 * rhist's histograms were updated: so the records of nested events, and of events in interrupts,
 * are incomplete at the same time. If there might be too many, interrupts are disabled, and if that
 * does not suffice, the event is not emitted. Nor is it if too little of the stack is left.
 *
 * Return: whether the probes were called.
 *
 * Context: any, NMI included, with preemption off: the probes use per-CPU data, and assume that
 * preempt_count is one higher than at the hit. RCU does not watch a CPU that is offline.
 */
bool rhist_synthetic_emit(struct tracepoint *tp, struct trace_array *tr, const u64 *vals,
			  const unsigned int *idx, const void *origin)
{
	/* Number of contexts that may interrupt this one: softirq, hard interrupt and NMI. */
	unsigned int above = 3 - interrupt_context_level();
	unsigned long flags;
	bool fits;

	if (!rhist_stack_suffices() || !cpu_online(raw_smp_processor_id()))
		return false;
	if (likely(has_room(tr, above))) {
		call_probes(tp, vals, idx, origin);
		return true;
	}
	raw_local_irq_save(flags);
	fits = has_room(tr, min(above, 1u));
	if (fits)
		call_probes(tp, vals, idx, origin);
	raw_local_irq_restore(flags);
	return fits;
}

#else

/* No event is synthetic, so nothing else here is called. */
bool rhist_is_synthetic(struct trace_event_call *call)
{
	return false;
}

void rhist_synthetic_count(struct trace_event_call *call, int users)
{
}

struct synth_field **rhist_synthetic_fields(struct trace_event_call *call, unsigned int *n)
{
	*n = 0;
	return NULL;
}

bool rhist_synthetic_emit(struct tracepoint *tp, struct trace_array *tr, const u64 *vals,
			  const unsigned int *idx, const void *origin)
{
	return false;
}

const void *rhist_synthetic_origin(const struct tracepoint *tp)
{
	return NULL;
}

#endif
