/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Records of hits. A probe of rhist makes the record of a hit as the kernel's probe of the event
 * does, but on the stack or in memory of this CPU instead of a ring buffer, and passes it to
 * rhist_probe_hit().
 */
#ifndef RHIST_PROBE_RECORD_H
#define RHIST_PROBE_RECORD_H

#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/trace_events.h>

#include "../compat.h"

struct rhist_frame;

/* Private data that a probe is registered with. */
struct rhist_probed {
	/* Type number of the event, for common_type of the records. */
	unsigned short type;
	/* Whether a trigger reads common_flags or common_preempt_count. */
	bool context;
	/*
	 * Whether it belongs to a handler of rhist: on the slow path, the kernel's handler gets its
	 * hits.
	 */
	bool handler;
	/* Number of fields of a synthetic event; 0 for other events. */
	unsigned int n_fields;
};

/* Size of the longest record in bytes. In C it has to fit into a page of the ring buffer. */
#define RHIST_RECORD_SIZE (PAGE_SIZE - sizeof(struct task_struct *))

/* Maximum size of a record on the stack in bytes. */
#define RHIST_SHORT_MAX 128

/*
 * Size of the memory on the stack for a record in bytes: 0 if it is too long for that, or has
 * dynamic fields.
 */
#define RHIST_SHORT_SIZE(size, dynamic) \
	(!(dynamic) && (size) <= RHIST_SHORT_MAX ? ALIGN(size, sizeof(u64)) : 0)

/*
 * Zero the fields of a record on the stack, of a constant size; except the common ones, which all
 * their readers fill in. Word by word, so that the compiler leaves out each word that the probe
 * assigns in any case: with memset() all or none.
 */
static __always_inline void *rhist_zero_fields(void *record, size_t size)
{
	u64 *words = record;

	BUILD_BUG_ON(sizeof(struct trace_entry) != sizeof(*words) || size > 16 * sizeof(*words));
#define ZERO(n) do { if (size > (n) * sizeof(*words)) words[n] = 0; } while (0)
	ZERO(1); ZERO(2); ZERO(3); ZERO(4); ZERO(5); ZERO(6); ZERO(7); ZERO(8);
	ZERO(9); ZERO(10); ZERO(11); ZERO(12); ZERO(13); ZERO(14); ZERO(15);
#undef ZERO
	return record;
}

/* The last of the first four arguments of a tracepoint that is a task; NULL if none is. */
#define RHIST_TASK_ARG(args...) RHIST_TASK_ARG_OF(args, 0, 0, 0)
#define RHIST_TASK_ARG_OF(a, b, c, d, ...) \
	RHIST_IF_TASK(d, RHIST_IF_TASK(c, RHIST_IF_TASK(b, RHIST_IF_TASK(a, NULL))))
#define RHIST_IF_TASK(arg, other) \
	_Generic((arg), struct task_struct *: (arg), const struct task_struct *: (arg), default: (other))

/* 1 if a tracepoint has an argument that is a task, else 0: a constant. */
#define RHIST_HAS_TASK_ARG(args...) \
	_Generic(RHIST_TASK_ARG(args), struct task_struct *: 1, const struct task_struct *: 1, default: 0)

/* Number of contexts: task, softirq, hard irq, NMI. */
#define RHIST_CONTEXTS 4

/* Records of a CPU, one for each context, in a page with the task before it. */
struct rhist_records {
	struct {
		const struct task_struct *task;
		char record[RHIST_RECORD_SIZE] __aligned(8);
	} of[RHIST_CONTEXTS];
};

/* The probe of an event. */
struct rhist_probe {
	const char *system;
	const char *name;
	/* Like fields_array of the event's class: the last one has a NULL type. */
	const struct trace_event_fields *fields;
	void *probe;
};

DECLARE_PER_CPU(struct rhist_records *, rhist_records);
/* A bit for each context in which a hit is in progress. */
DECLARE_PER_CPU(unsigned char, rhist_hit_contexts);

/* In Rust; any context, with preemption off. */
/*
 * Count a hit: on the fast path, in which hits cannot nest and of the common fields only common_pid
 * is read, or by calling rhist_probe_hit_slow().
 */
void rhist_probe_hit(const struct rhist_probed *probed, void *record, size_t size, unsigned int cpu);
/* As above, with a task that the tracepoint was called with right before the record. */
void rhist_probe_hit_task(const struct rhist_probed *probed, void *record, size_t size,
			  unsigned int cpu);
/*
 * Slow path: pass a hit with a complete record to all triggers; one at a time in each context,
 * except for synthetic events. @tasked is @record if a task is before it, else NULL.
 */
void rhist_probe_hit_all(const struct rhist_probed *probed, const void *record, size_t size,
			 unsigned int cpu, const void *tasked, const struct rhist_frame *frame);
/* Count such a hit with a stack that begins in @frame itself; without a stack if that is NULL. */
void rhist_sample_hit_all(const struct rhist_probed *probed, const void *record, size_t size,
			  unsigned int cpu, const struct rhist_frame *frame);
/* Count a hit as lost: its record is too long, or another hit is in progress in this context. */
void rhist_probe_lost(const struct rhist_probed *probed);

/* In record.c; the definition of each function states its calling context. */
void rhist_probe_hit_slow(const struct rhist_probed *probed, void *record, size_t size,
			  const void *tasked);
void rhist_probe_hit_at(const struct rhist_probed *probed, void *record, size_t size,
			const struct rhist_frame *frame);
int rhist_records_init(void);
void rhist_records_exit(void);

/*
 * Begin a hit, or return false if another one is in progress in this context: hits that nest in
 * their own kind would never end. Sets @level and @context, which is its bit. Preemption is off.
 */
static __always_inline bool rhist_hit_begin(unsigned int *level, unsigned char *context)
{
	unsigned char contexts = __this_cpu_read(rhist_hit_contexts);

	*level = 0;
	if (unlikely(preempt_count() & (NMI_MASK | HARDIRQ_MASK | SOFTIRQ_OFFSET)))
		*level = interrupt_context_level();
	*context = 1 << *level;
	if (unlikely(contexts & *context))
		return false;
	/* A hit that interrupts this restores it. */
	__this_cpu_write(rhist_hit_contexts, contexts | *context);
	barrier();
	return true;
}

static __always_inline void rhist_hit_end(unsigned char context)
{
	barrier();
	__this_cpu_write(rhist_hit_contexts, __this_cpu_read(rhist_hit_contexts) & ~context);
}

/*
 * Begin a hit and return memory for its record, or count it as lost and return NULL. Preemption is
 * off.
 */
static __always_inline void *rhist_record_begin(const struct rhist_probed *probed, size_t size,
						unsigned char *context)
{
	unsigned int level;

	if (unlikely(size > RHIST_RECORD_SIZE || !rhist_hit_begin(&level, context))) {
		rhist_probe_lost(probed);
		return NULL;
	}
	/* Not as an element of the array, for which the compiler would check the level. */
	return (char *)__this_cpu_read(rhist_records) + level * PAGE_SIZE +
	       offsetof(struct rhist_records, of[0].record);
}

/*
 * Count a hit, with a task before its record if @task. @context is 0 if the record is on the stack:
 * then the hit has not begun.
 */
static __always_inline void rhist_record_end(const struct rhist_probed *probed, void *record,
					     size_t size, bool task, unsigned char context)
{
	if (task)
		rhist_probe_hit_task(probed, record, size, raw_smp_processor_id());
	else
		rhist_probe_hit(probed, record, size, raw_smp_processor_id());
	if (context)
		rhist_hit_end(context);
}

#endif
