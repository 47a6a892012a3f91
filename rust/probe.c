// SPDX-License-Identifier: GPL-2.0
/*
 * Connecting the probes of rust/probe to the tracepoints of events.
 */
#include <linux/module.h>
#include <linux/panic.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "compat.h"
#include "probe.h"
#include "stack.h"
#include "synthetic.h"
#include "probe/probe.h"

DEFINE_PER_CPU(struct rhist_records *, rhist_records);
DEFINE_PER_CPU(unsigned char, rhist_hit_contexts);

/*
 * Fill in common_flags and common_preempt_count as tracing_gen_ctx_dec() does. The probe has added
 * one to the preemption count of the traced function.
 */
static void record_context(struct trace_entry *entry)
{
	unsigned int count = preempt_count();
	unsigned char flags = 0;

	if (irqs_disabled())
		flags |= TRACE_FLAG_IRQS_OFF;
	if (count & NMI_MASK)
		flags |= TRACE_FLAG_NMI;
	if (count & HARDIRQ_MASK)
		flags |= TRACE_FLAG_HARDIRQ;
	if (in_serving_softirq())
		flags |= TRACE_FLAG_SOFTIRQ;
	if (softirq_count() >> (SOFTIRQ_SHIFT + 1))
		flags |= TRACE_FLAG_BH_OFF;
	if (tif_need_resched())
		flags |= TRACE_FLAG_NEED_RESCHED;
	if (test_preempt_need_resched())
		flags |= TRACE_FLAG_PREEMPT_RESCHED;
	if (IS_ENABLED(CONFIG_ARCH_HAS_PREEMPT_LAZY) && tif_test_bit(TIF_NEED_RESCHED_LAZY))
		flags |= TRACE_FLAG_NEED_RESCHED_LAZY;
	entry->flags = flags;
	entry->preempt_count = min(count & 0xff, 0xfU) - IS_ENABLED(CONFIG_PREEMPTION);
#ifdef CONFIG_SMP
	entry->preempt_count |= min(current->migration_disabled + 0U, 0xfU) << 4;
#endif
}

/*
 * Slow path of a hit: fill in the common fields of its record, except common_pid, and pass it on.
 * If the record is not in the memory of this CPU, the hit begins here, unless another one is in
 * progress in this context. Hits of synthetic events do not begin: they nest in the hit that emits
 * them, which limits how deep. Any context, with preemption off.
 *
 * A hit of a handler is not counted here: setting the type in the record makes the handler call the
 * kernel's.
 */
notrace void rhist_probe_hit_slow(const struct rhist_probed *probed, void *record, size_t size)
{
	bool begins = !probed->n_fields &&
		      record - (void *)__this_cpu_read(rhist_records) >= sizeof(struct rhist_records);
	struct trace_entry *entry = record;
	struct rhist_frame frame __uninitialized;
	unsigned char context;
	unsigned int level;

	entry->type = probed->type;
	if (probed->handler)
		return;
	rhist_frame_of_caller(&frame);
	if (begins && !rhist_hit_begin(&level, &context)) {
		rhist_probe_lost(probed);
		return;
	}
	if (READ_ONCE(probed->context))
		record_context(entry);
	rhist_probe_hit_all(probed, record, size, raw_smp_processor_id(), &frame);
	if (begins)
		rhist_hit_end(context);
}

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

/* Free the memory for records. No probe may be connected. */
void rhist_probes_exit(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		kvfree(per_cpu(rhist_records, cpu));
		per_cpu(rhist_records, cpu) = NULL;
	}
}

/*
 * Allocate memory for records. Task context, may sleep, not concurrently. No probe may be connected
 * before this, or after rhist_probes_exit().
 */
int rhist_probes_init(void)
{
	unsigned int cpu;

	if (raw_cpu_read(rhist_records))
		return -EBUSY;
	for_each_possible_cpu(cpu) {
		struct rhist_records *records = kvzalloc_node(sizeof(*records), GFP_KERNEL, cpu_to_node(cpu));

		if (!records) {
			rhist_probes_exit();
			return -ENOMEM;
		}
		per_cpu(rhist_records, cpu) = records;
	}
	return 0;
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
