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
	unsigned char contexts = __this_cpu_read(rhist_hit_contexts);
	unsigned int level = 0;

	if (unlikely(preempt_count() & (NMI_MASK | HARDIRQ_MASK | SOFTIRQ_OFFSET)))
		level = interrupt_context_level();
	*context = 1 << level;
	if (unlikely(contexts & *context || size > RHIST_RECORD_SIZE)) {
		rhist_probe_lost(probed);
		return NULL;
	}
	/* Who interrupts puts it back as it was. */
	__this_cpu_write(rhist_hit_contexts, contexts | *context);
	barrier();
	return (char *)this_cpu_ptr(rhist_records) + level * RHIST_RECORD_SIZE;
}

/* Counts it, and gives the memory back. */
static __always_inline void rhist_record_end(const struct rhist_probed *probed, const void *record,
					     size_t size, unsigned char context)
{
	rhist_probe_hit(probed, record, size, raw_smp_processor_id());
	barrier();
	__this_cpu_write(rhist_hit_contexts, __this_cpu_read(rhist_hit_contexts) & ~context);
}

/* probe.c: the common fields that tell of the context. Any context. */
void rhist_record_context(struct trace_entry *entry);

static __always_inline void rhist_record_common(const struct rhist_probed *probed,
						struct trace_entry *entry)
{
	entry->type = probed->type;
	entry->pid = current->pid;
	if (unlikely(READ_ONCE(probed->context)))
		rhist_record_context(entry);
}

#endif
