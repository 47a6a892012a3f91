// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for the records of hits, and the slow path of a hit.
 */
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/trace_events.h>

#include "record.h"
#include "../stack/stack.h"

DEFINE_PER_CPU(struct rhist_records *, rhist_records);
DEFINE_PER_CPU(unsigned char, rhist_hit_contexts);

/*
 * Fill in common_flags and common_preempt_count as tracing_gen_ctx_dec() does. The probe has added
 * one to the preemption count of the traced function.
 */
static __always_inline void record_context(struct trace_entry *entry)
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
 * them, which limits how deep. @tasked is @record if a task is before it, else NULL. Any context,
 * with preemption off.
 *
 * Without a stack protector, as in the probes: the frame has a fixed size.
 *
 * A hit of a handler is not counted here: setting the type in the record makes the handler call the
 * kernel's.
 */
notrace __no_stack_protector void rhist_probe_hit_slow(const struct rhist_probed *probed, void *record,
						       size_t size, const void *tasked)
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
	rhist_probe_hit_all(probed, record, size, raw_smp_processor_id(), tasked, &frame);
	if (begins)
		rhist_hit_end(context);
}

/*
 * Count a hit whose record is complete but for the other common fields, and whose stack begins at
 * @frame; NULL if the stack is not known. On the slow path: for events with few hits. Any context,
 * with preemption off.
 */
notrace void rhist_probe_hit_at(const struct rhist_probed *probed, void *record, size_t size,
				const struct rhist_frame *frame)
{
	struct trace_entry *entry = record;
	unsigned char context;
	unsigned int level;

	entry->type = probed->type;
	if (!rhist_hit_begin(&level, &context)) {
		rhist_probe_lost(probed);
		return;
	}
	if (READ_ONCE(probed->context))
		record_context(entry);
	rhist_sample_hit_all(probed, record, size, raw_smp_processor_id(), frame);
	rhist_hit_end(context);
}

/* Free the memory for records. No probe may be connected. */
void rhist_records_exit(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		kvfree(per_cpu(rhist_records, cpu));
		per_cpu(rhist_records, cpu) = NULL;
	}
}

/*
 * Allocate memory for records. Task context, may sleep, not concurrently. No probe may be connected
 * before this, or after rhist_records_exit().
 */
int rhist_records_init(void)
{
	unsigned int cpu;

	if (raw_cpu_read(rhist_records))
		return -EBUSY;
	for_each_possible_cpu(cpu) {
		struct rhist_records *records = kvzalloc_node(sizeof(*records), GFP_KERNEL, cpu_to_node(cpu));

		if (!records) {
			rhist_records_exit();
			return -ENOMEM;
		}
		per_cpu(rhist_records, cpu) = records;
	}
	return 0;
}
