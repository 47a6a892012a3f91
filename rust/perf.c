// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's probe for perf, made to call us.
 *
 * perf_trace_NAME() of a static event makes a record in memory that perf has for each processor and each
 * context, and shows it to each struct perf_event on the list of the struct trace_event_call that it is
 * registered with. Here that is a copy of the event's own, with a list that has one on it, which is
 * never opened: perf knows nothing of it, and no list of perf's has it.
 *
 * What the kernel reads on that way (kernel/events/core.c): of the copy perf_events, prog_array and
 * event.type; of the perf_event attr, state, count, hw, filter, parent, prog, event_limit, fasync and
 * overflow_handler.
 */
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>

#include "helpers.h"
#include "probe/probe.h"

/* With CFI, a function that is called must have the arguments of the tracepoint. */
#if defined(CONFIG_PERF_EVENTS) && !defined(CONFIG_CFI)

struct rhist_perf_cpu {
	struct hlist_head listeners;
	struct perf_event listener;
};

struct rhist_perf {
	struct trace_event_call call;
	const struct rhist_probed *probed;
	struct rhist_perf_cpu __percpu *cpus;
	/* While perf has any event, it has memory for records. */
	struct perf_event *memory;
};

/*
 * A hit, with preemption and interrupts off. For events that tell perf of another task, the kernel goes
 * on to look for perf events of the record's type: the real one would have those told twice.
 */
static void hit(struct perf_event *listener, struct perf_sample_data *data, struct pt_regs *regs)
{
	const struct rhist_probed *probed = listener->overflow_handler_context;
	struct trace_entry *entry = data->raw->frag.data;
	const size_t size = data->raw->frag.size;
	const void *quiet = rhist_quiet(probed);
	unsigned short type;

	if (likely(quiet)) {
		rhist_probe_hit_quietly(probed, quiet, entry, size, raw_smp_processor_id());
		return;
	}
	type = entry->type;
	entry->type = probed->type;
	/* As tracing_gen_ctx_dec(): the probe itself switched preemption off once. */
	entry->preempt_count -= IS_ENABLED(CONFIG_PREEMPTION);
	rhist_probe_hit(probed, entry, size, raw_smp_processor_id(), NULL);
	entry->type = type;
}

/*
 * Called before the probe, which makes no record while perf makes another one in the same context of the
 * same task.
 */
static notrace void before(void *data)
{
	struct rhist_perf *perf = data;

	if (unlikely(current->perf_recursion[interrupt_context_level()]))
		rhist_probe_lost(perf->probed);
}

/* A perf event that counts what happens hardly ever, and is not even enabled. */
static struct perf_event *reserve_memory(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.disabled = 1,
	};
	struct trace_event_file *file = trace_get_event_file(NULL, "module", "module_load");
	struct perf_event *event;

	if (IS_ERR(file))
		return ERR_CAST(file);
	attr.config = file->event_call->event.type;
	event = perf_event_create_kernel_counter(&attr, raw_smp_processor_id(), NULL, NULL, NULL);
	trace_put_event_file(file);
	return event;
}

/* The address of the probe for perf of a static event, or 0. */
unsigned long rhist_perf_probe(struct trace_event_call *call)
{
	if (!(call->flags & TRACE_EVENT_FL_TRACEPOINT) || call->class->reg != trace_event_reg)
		return 0;
	return (unsigned long)call->class->perf_probe;
}

/*
 * Has each hit of @call counted, as by a probe of ours that is registered with @probed. Task context,
 * sleeps; the event is referenced.
 *
 * Return: NULL if the event has no such probe, or an error.
 */
struct rhist_perf *rhist_perf_connect(struct trace_event_call *call,
				      const struct rhist_probed *probed)
{
	struct rhist_perf *perf;
	int err = -ENOMEM, cpu;

	if (!rhist_perf_probe(call))
		return NULL;
	perf = kzalloc(sizeof(*perf), GFP_KERNEL);
	if (!perf)
		return ERR_PTR(err);
	perf->probed = probed;
	perf->cpus = alloc_percpu(struct rhist_perf_cpu);
	if (!perf->cpus)
		goto no_cpus;
	for_each_possible_cpu(cpu) {
		struct rhist_perf_cpu *here = per_cpu_ptr(perf->cpus, cpu);

		here->listener.state = PERF_EVENT_STATE_ACTIVE;
		/* Is to be called for every hit, whatever it counts for. */
		here->listener.attr.sample_period = 1;
		here->listener.attr.sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_PERIOD;
		here->listener.overflow_handler = hit;
		here->listener.overflow_handler_context = (void *)probed;
		hlist_add_head(&here->listener.hlist_entry, &here->listeners);
	}
	perf->call.class = call->class;
	perf->call.tp = call->tp;
	perf->call.flags = TRACE_EVENT_FL_TRACEPOINT;
	perf->call.perf_events = &perf->cpus->listeners;
	perf->memory = reserve_memory();
	err = PTR_ERR_OR_ZERO(perf->memory);
	if (err)
		goto no_memory;
	err = tracepoint_probe_register_prio(perf->call.tp, before, perf, TRACEPOINT_DEFAULT_PRIO + 1);
	if (err)
		goto no_before;
	err = tracepoint_probe_register(perf->call.tp, call->class->perf_probe, &perf->call);
	if (!err)
		return perf;
	tracepoint_probe_unregister(perf->call.tp, before, perf);
	tracepoint_synchronize_unregister();
no_before:
	perf_event_release_kernel(perf->memory);
no_memory:
	free_percpu(perf->cpus);
no_cpus:
	kfree(perf);
	return ERR_PTR(err);
}

/* No more calls begin. Task context, sleeps. */
void rhist_perf_disconnect(struct rhist_perf *perf)
{
	tracepoint_probe_unregister(perf->call.tp, perf->call.class->perf_probe, &perf->call);
	tracepoint_probe_unregister(perf->call.tp, before, perf);
}

/* After the last call has ended. Task context, sleeps. */
void rhist_perf_free(struct rhist_perf *perf)
{
	perf_event_release_kernel(perf->memory);
	free_percpu(perf->cpus);
	kfree(perf);
}

#else

unsigned long rhist_perf_probe(struct trace_event_call *call)
{
	return 0;
}

struct rhist_perf *rhist_perf_connect(struct trace_event_call *call,
				      const struct rhist_probed *probed)
{
	return NULL;
}

void rhist_perf_disconnect(struct rhist_perf *perf)
{
}

void rhist_perf_free(struct rhist_perf *perf)
{
}
#endif
