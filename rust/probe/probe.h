/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Probes of our own for the events of include/trace/events: each makes the record of a hit as the
 * kernel's probe of the event does, but in memory of this processor instead of a ring buffer, and
 * calls rhist_probe_hit() with it.
 */
#ifndef RHIST_PROBE_H
#define RHIST_PROBE_H

#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/trace_events.h>

#include "../helpers.h"

/* Bytes of the longest record; an event that is recorded has to fit a page of the ring buffer. */
#define RHIST_RECORD_SIZE 4096

/* Task, softirq, hard irq, NMI. */
#define RHIST_CONTEXTS 4

/* One record for each context of a processor. */
struct rhist_records {
	char record[RHIST_CONTEXTS][RHIST_RECORD_SIZE] __aligned(8);
};

/* What is known of an event. */
struct rhist_probe {
	const char *system;
	const char *name;
	/* As that of the event's class: ends with one that has no type. */
	const struct trace_event_fields *fields;
	void *probe;
};

/* The events of one header. */
struct rhist_probes {
	const char *header;
	const struct rhist_probe *probes;
	size_t n;
};

extern struct rhist_records __percpu *rhist_records;
/* A bit for each context with a hit that is not done. */
DECLARE_PER_CPU(unsigned char, rhist_hit_contexts);

/* In Rust; any context, with preemption off. */
void rhist_probe_hit(const struct rhist_probed *probed, const void *record, size_t size,
		     unsigned int cpu);
/* A hit whose record could not be made: it is too long, or one of this context is not done. */
void rhist_probe_lost(const struct rhist_probed *probed);

/* syscalls.c */
void *rhist_syscall_find(struct trace_event_call *call);
int rhist_syscall_connect(struct trace_event_call *call, void *probe, struct rhist_probed *probed);
void rhist_syscall_disconnect(struct trace_event_call *call, void *probe);

/* The record of a hit in this context, or NULL. Preemption is off. */
static __always_inline void *rhist_record_begin(const struct rhist_probed *probed, size_t size,
						unsigned char *context)
{
	unsigned char level = interrupt_context_level();
	unsigned char contexts = __this_cpu_read(rhist_hit_contexts);

	*context = 1 << level;
	if (unlikely(contexts & *context || size > RHIST_RECORD_SIZE)) {
		rhist_probe_lost(probed);
		return NULL;
	}
	/* Who interrupts puts it back as it was. */
	__this_cpu_write(rhist_hit_contexts, contexts | *context);
	barrier();
	return this_cpu_ptr(rhist_records)->record[level];
}

/* Counts it, and gives the memory back. */
static __always_inline void rhist_record_end(const struct rhist_probed *probed, const void *record,
					     size_t size, unsigned char context)
{
	rhist_probe_hit(probed, record, size, raw_smp_processor_id());
	barrier();
	__this_cpu_write(rhist_hit_contexts, __this_cpu_read(rhist_hit_contexts) & ~context);
}

/* The common fields, as of a record that the kernel's probe makes (tracing_gen_ctx_dec()). */
static __always_inline void rhist_record_common(struct trace_entry *entry, unsigned short type)
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
	entry->type = type;
	entry->flags = flags;
#ifdef CONFIG_SMP
	entry->preempt_count = min(current->migration_disabled + 0U, 0xfU) << 4;
#else
	entry->preempt_count = 0;
#endif
	/* The probe has added one to what it was where the event is. */
	entry->preempt_count |= min(count & 0xff, 0xfU) - IS_ENABLED(CONFIG_PREEMPTION);
	entry->pid = current->pid;
}

#endif
