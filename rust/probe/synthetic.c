// SPDX-License-Identifier: GPL-2.0
/*
 * rhist's probe for synthetic events whose fields are all numbers. Events with strings or stacks
 * have long records, so rhist uses the kernel's probe for them; likewise for events that a module
 * has defined, which a reference then keeps.
 */
#include <linux/bug.h>
#include <linux/cpumask.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>

#include "record.h"
#include "synthetic.h"
#include "../synthetic.h"
#include "layouts_generated.h"

#define FIELDS_MAX ((RHIST_SHORT_MAX - sizeof(struct trace_entry)) / sizeof(u64))

/*
 * The record (struct synth_trace_event): a word for each field. Smaller ones are at its beginning.
 */
struct record {
	struct trace_entry ent;
	u64 fields[FIELDS_MAX];
};

/*
 * Called by actions of hist triggers, rhist's and C's, in any context with preemption off. Field i
 * has the value vals[idx[i]]. It only reads the arrays, but a kernel that checks indirect calls
 * requires the type by which C calls it (synth_probe_func_t).
 */
static notrace void rhist_synthetic(void *data, u64 *vals, unsigned int *idx)
{
	const struct rhist_probed *probed = data;
	struct record record __uninitialized;

	for (unsigned int i = 0; i < probed->n_fields; i++)
		record.fields[i] = vals[idx[i]];
	record.ent.pid = current->pid;
	rhist_probe_hit(probed, &record, struct_size(&record, fields, probed->n_fields), raw_smp_processor_id());
}

/*
 * Return the private data of the probe above, if that is the only listener of a synthetic event,
 * otherwise NULL. It stays while preemption is off, but other listeners may have come by then. Any
 * context, with preemption off; RCU does not watch a CPU that is offline.
 */
notrace const struct rhist_probed *rhist_synthetic_listener(struct tracepoint *tp)
{
	struct tracepoint_func *funcs;

	if (!cpu_online(raw_smp_processor_id()))
		return NULL;
	rhist_guard_probes();
	funcs = rcu_dereference_raw(tp->funcs);
	/* If an allocation fails, the kernel replaces a removed probe in place. */
	if (!funcs || READ_ONCE(funcs[0].func) != (void *)rhist_synthetic || READ_ONCE(funcs[1].func))
		return NULL;
	return funcs[0].data;
}

/* The probe for a synthetic event, or NULL. Task context; the event is referenced. */
void *rhist_synthetic_find(struct trace_event_call *call)
{
	unsigned int n;
	struct synth_field **fields = rhist_synthetic_fields(call, &n);

	if (IS_ENABLED(CONFIG_CPU_BIG_ENDIAN) || n > FIELDS_MAX ||
	    *(struct module **)(call->data + SYNTH_EVENT__MOD))
		return NULL;
	for (unsigned int i = 0; i < n; i++) {
		if (fields[i]->is_string || fields[i]->is_stack)
			return NULL;
	}
	return rhist_synthetic;
}
