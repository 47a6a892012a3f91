// SPDX-License-Identifier: GPL-2.0
/*
 * Connecting the probes of rust/probe to the tracepoints of events.
 */
#include <linux/module.h>
#include <linux/panic.h>
#include <linux/string.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>

#include "probe.h"
#include "record.h"
#include "synthetic.h"
#include "syscalls.h"
#include "../compat.h"
#include "../synthetic.h"

#define RHIST_EVENTS(header) \
	void rhist_events_##header(void (*visit)(const struct rhist_probe *probe, void *arg), void *arg);
#include "event_headers_generated.h"
#undef RHIST_EVENTS

/* Call @visit for each of rhist's probes. Task context. */
static void for_each_probe(void (*visit)(const struct rhist_probe *probe, void *arg), void *arg)
{
#define RHIST_EVENTS(header) rhist_events_##header(visit, arg);
#include "event_headers_generated.h"
#undef RHIST_EVENTS
}

/*
 * Return whether the definition of a static event may differ from the one of the same name that its
 * probe was compiled from: it belongs to a module that was not built from the source of this
 * kernel.
 */
static bool is_foreign(const struct trace_event_call *call)
{
	const struct module *module = call->module;

	return module && test_bit(TAINT_OOT_MODULE, &module->taints);
}

struct search {
	const struct trace_event_call *call;
	const struct rhist_probe *found;
};

/* Return whether all fields of the records have the same types, sizes and offsets. */
static bool same_fields(const struct trace_event_fields *ours, const struct trace_event_fields *theirs)
{
	for (; ours->type && theirs->type; ours++, theirs++) {
		if (strcmp(ours->type, theirs->type) || strcmp(ours->name, theirs->name) ||
		    ours->size != theirs->size || ours->align != theirs->align ||
		    ours->is_signed != theirs->is_signed)
			return false;
	}
	return ours->type == theirs->type;
}

static void match_probe(const struct rhist_probe *probe, void *arg)
{
	struct search *search = arg;
	const struct trace_event_class *class = search->call->class;

	if (!strcmp(probe->name, search->call->tp->name) && !strcmp(probe->system, class->system) &&
	    same_fields(probe->fields, class->fields_array))
		search->found = probe;
}

/*
 * Find the probe for @call. NULL if it is neither a static event nor a synthetic one, if its
 * definition is not the kernel's or could not be compiled, or if its fields differ from the ones
 * that this module was compiled with. Task context; the event is referenced.
 */
void *rhist_probe_find(struct trace_event_call *call)
{
	struct search search = { .call = call };

	if (!(call->flags & TRACE_EVENT_FL_TRACEPOINT))
		return rhist_syscall_find(call);
	if (IS_ENABLED(CONFIG_SYNTH_EVENTS) && rhist_is_synthetic(call))
		return rhist_synthetic_find(call);
	if (call->class->reg != trace_event_reg || is_foreign(call))
		return NULL;
	for_each_probe(match_probe, &search);
	return search.found ? search.found->probe : NULL;
}

/* Register @probe with @probed as its private data for @call. Task context, may sleep. */
int rhist_probe_connect(struct trace_event_call *call, void *probe, struct rhist_probed *probed)
{
	if (!(call->flags & TRACE_EVENT_FL_TRACEPOINT))
		return rhist_syscall_connect(call, probe, probed);
	if (rhist_is_synthetic(call))
		rhist_synthetic_fields(call, &probed->n_fields);
	return tracepoint_probe_register(call->tp, probe, probed);
}

void rhist_probe_disconnect(struct trace_event_call *call, void *probe, struct rhist_probed *probed)
{
	if (!(call->flags & TRACE_EVENT_FL_TRACEPOINT))
		rhist_syscall_disconnect(call, probe);
	else
		tracepoint_probe_unregister(call->tp, probe, probed);
}
