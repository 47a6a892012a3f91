// SPDX-License-Identifier: GPL-2.0
/*
 * rhist_events: trace events with fields of every kind, fired in every context, for tests that know
 * the right result. A line written to /dev/rhist_events is obeyed when the write returns:
 *
 *	EVENT CONTEXT CPU FIRST COUNT KEYS
 *
 * COUNT times the EVENT (numbers, strings, arrays, stacks, wake, run, stop, nested, outer, beyond,
 * cycles) is fired on that CPU, the i-th with the fields that rhist_events.h and values.h make of
 * FIRST + i % KEYS. The CONTEXT is task (then CPU has to be the one that the writer is bound to),
 * softirq, hardirq or nmi; the last three interrupt whatever runs on that CPU, a few events at a
 * time, and can be fired at one CPU together.
 *
 * The event nested is for tasks. While its record is made, a softirq fires it; while that makes its
 * record, a hard interrupt does, and then an NMI: four times in all. With PREEMPT_RT softirqs are
 * tasks and interrupt nothing, and not every machine has NMIs: the parameter nesting has a bit for
 * each of the contexts. The event outer fires nested, once, while its record is made.
 *
 * Reading gives four numbers: how many of those interruptions (and equal pieces of the tasks'
 * events) began while none, one, two or three others were at work on the same CPU.
 *
 * The parameter stacks measures the use of stacks. A write fills the free part of the stacks of
 * interrupts and of NMIs on this CPU with a number; tasks do so with their own stack while they
 * obey a line. A read gives the least number of bytes left since then on the stacks of tasks, of
 * interrupts, softirqs among them, and of NMIs.
 *
 * With the parameter counters, the module is the performance monitoring unit (PMU) of processors
 * that have none. The event cycles, which is not one of tracing, adds FIRST + i % KEYS to the
 * counter of its CPU, and interrupts as the PMU does if a period is over by then. It is to be fired
 * in hard interrupts or NMIs.
 *
 * Where modules may make a file in tracefs, rhist_events is there, too: tests need one that goes
 * with its module.
 */

#include <linux/cpu.h>
#include <linux/dcache.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/kprobes.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>
#include <linux/tracefs.h>
#ifdef CONFIG_X86_LOCAL_APIC
#include <asm/apic.h>
#include <asm/irq_regs.h>
#include <asm/nmi.h>
#endif
#if defined(CONFIG_X86_LOCAL_APIC) && defined(CONFIG_PERF_EVENTS)
#define HAVE_COUNTERS
#endif
#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
#define HAVE_STACKS
#include <asm/unwind.h>
#endif

#define CREATE_TRACE_POINTS
/* Defines events with the names of another module's events. */
#include <trace/events/watchdog.h>
#include "rhist_events.h"

/* Events fired by one interruption: enough to leave the next one time to interrupt them. */
#define PIECE 128

const char *const rhist_names[4] = { "zero", "one", "two", "three" };

enum context { TASK, SOFTIRQ, HARDIRQ, NMI, CONTEXTS };

/* A bit for each context in which the event nested is fired. */
static unsigned int nesting;
module_param(nesting, uint, 0444);

/* Duration of this module's init after its events exist, and whether it fails then. */
static unsigned int init_ms;
module_param(init_ms, uint, 0);
static bool init_fails;
module_param(init_fails, bool, 0);

static const char *const contexts[CONTEXTS] = { "task", "softirq", "hardirq", "nmi" };

static void numbers(u64 k)
{
	trace_numbers(k);
}

static void strings(u64 k)
{
	char text[RHIST_TEXT + 1];
	size_t length = rhist_text(k, text);

	trace_strings(k, text, length);
}

static void arrays(u64 k)
{
	trace_arrays(k);
}

static void stacks(u64 k)
{
	trace_stacks(k);
}

static void wake(u64 k)
{
	trace_wake(k, rhist_names[k % 4]);
}

static void run(u64 k)
{
	trace_run(k, rhist_names[k % 4]);
}

static void stop(u64 k)
{
	trace_stop(k, rhist_names[k % 4]);
}

static void beyond(u64 k)
{
	trace_beyond(k);
}

#ifdef HAVE_COUNTERS

static bool counters;
module_param(counters, bool, 0444);

/* A bit for each CPU whose counter is in use by others. */
static unsigned long counters_taken;
module_param(counters_taken, ulong, 0600);

/* If set, handlers of counters see that the kernel has throttled them. */
static bool throttling;
module_param(throttling, bool, 0600);

/* The only counter of a CPU, if it is in use. */
static DEFINE_PER_CPU(struct perf_event *, counter);
static DEFINE_PER_CPU(struct pt_regs *, nmi_regs);

static int counter_init(struct perf_event *event)
{
	bool counts = event->attr.type == PERF_TYPE_HARDWARE && event->attr.config == PERF_COUNT_HW_CPU_CYCLES;

	return counts && is_sampling_event(event) && event->cpu >= 0 ? 0 : -ENOENT;
}

static void counter_start(struct perf_event *event, int flags)
{
	event->hw.state = 0;
}

static void counter_stop(struct perf_event *event, int flags)
{
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int counter_add(struct perf_event *event, int flags)
{
	if (this_cpu_read(counter) || READ_ONCE(counters_taken) & BIT(smp_processor_id()))
		return -EAGAIN;
	local64_set(&event->hw.period_left, event->attr.sample_period);
	event->hw.state = flags & PERF_EF_START ? 0 : PERF_HES_STOPPED | PERF_HES_UPTODATE;
	this_cpu_write(counter, event);
	return 0;
}

static void counter_del(struct perf_event *event, int flags)
{
	this_cpu_write(counter, NULL);
	counter_stop(event, flags);
}

/* The count is always up to date. */
static void counter_read(struct perf_event *event)
{
}

static struct pmu pmu = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_invalid_context,
	.event_init = counter_init,
	.add = counter_add,
	.del = counter_del,
	.start = counter_start,
	.stop = counter_stop,
	.read = counter_read,
};

/*
 * This CPU has run for @k cycles. If several periods are over by now, they share one interrupt, as
 * by the PMUs of x86. This does for such a counter as perf_event_overflow(), which is not exported.
 */
static void cycles(u64 k)
{
	struct perf_event *event = this_cpu_read(counter);
	struct pt_regs *regs = in_nmi() ? this_cpu_read(nmi_regs) : get_irq_regs();
	struct perf_sample_data data;
	s64 left;

	if (!in_hardirq() || !event || event->hw.state)
		return;
	local64_add(k, &event->count);
	left = local64_sub_return(k, &event->hw.period_left);
	if (left > 0)
		return;
	left += event->attr.sample_period;
	if (left <= 0)
		left = event->attr.sample_period;
	local64_set(&event->hw.period_left, left);
	perf_sample_data_init(&data, 0, event->attr.sample_period);
	event->hw.interrupts = READ_ONCE(throttling) ? ~0ULL : 0;
	event->overflow_handler(event, &data, regs);
	event->hw.interrupts = 0;
}

/* Fails if the processors have a PMU. */
static int prepare_counters(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.disabled = 1,
	};
	struct perf_event *event;

	if (!counters)
		return 0;
	event = perf_event_create_kernel_counter(&attr, 0, NULL, NULL, NULL);
	if (!IS_ERR(event)) {
		perf_event_release_kernel(event);
		return -EEXIST;
	}
	/* The type of the PMU of processors. */
	return perf_pmu_register(&pmu, "rhist_events", PERF_TYPE_RAW);
}

static void unprepare_counters(void)
{
	if (counters)
		perf_pmu_unregister(&pmu);
}

static void set_nmi_regs(struct pt_regs *regs)
{
	this_cpu_write(nmi_regs, regs);
}

#else

static void cycles(u64 k)
{
}

static int prepare_counters(void)
{
	return 0;
}

static void unprepare_counters(void)
{
}

static inline void set_nmi_regs(struct pt_regs *regs)
{
}

#endif

static bool in_context(enum context context)
{
	switch (context) {
	case TASK:
		return in_task();
	case SOFTIRQ:
		return in_serving_softirq() && !in_hardirq() && !in_nmi();
	case HARDIRQ:
		return in_hardirq() && !in_nmi();
	default:
		return in_nmi();
	}
}

/* An address in a function, for stacks. */
unsigned long rhist_frame(u64 k)
{
	static void (*const functions[])(u64 k) = { numbers, strings, arrays, stacks };

	return (unsigned long)functions[k % ARRAY_SIZE(functions)] + k % 5;
}

/*
 * One event, in each context while the one before it makes its record. On one CPU, with preemption
 * off.
 */
struct nest {
	u64 k;
	/* the first probe that makes a record allows an interruption */
	bool armed[CONTEXTS];
	bool done[CONTEXTS];
	bool nmi;			/* one has been sent */
	bool failed;
	struct tasklet_struct tasklet;
	struct irq_work irq_work;
};

static DEFINE_PER_CPU(struct nest, nests);

static void fire_nested(enum context context)
{
	struct nest *nest = this_cpu_ptr(&nests);

	nest->armed[context] = true;
	if (!in_context(context))
		nest->failed = true;
	trace_nested(nest->k, context);
	smp_store_release(&nest->done[context], true);
}

static void nested(u64 k)
{
	this_cpu_write(nests.k, k);
	fire_nested(TASK);
}

static void outer(u64 k)
{
	trace_outer(k);
}

static void nested_in_softirq(struct tasklet_struct *tasklet)
{
	fire_nested(SOFTIRQ);
}

static void nested_in_hardirq(struct irq_work *work)
{
	fire_nested(HARDIRQ);
}

static int send_nmi(int cpu);

#ifdef HAVE_STACKS

#define FREE	0x5eadbeef5eadbeefUL

static DEFINE_MUTEX(stacks_lock);
static bool filling;		/* tasks fill their stacks */
static unsigned long task_left;

/* Lowest addresses of the filled stacks of interrupts and NMIs. */
static DEFINE_PER_CPU(unsigned long *, interrupt_stack);
static DEFINE_PER_CPU(unsigned long *, nmi_stack);
static DEFINE_PER_CPU(bool, fill_in_nmi);
static DEFINE_PER_CPU(struct irq_work, fill_work);

/* Fills the unused part of the current stack. Returns its lowest address. */
static noinline __no_sanitize_address unsigned long *fill_stack(void)
{
	struct unwind_state state;
	unsigned long *begin, *at;

	unwind_start(&state, current, NULL, NULL);
	/* The first word of a task's stack is STACK_END_MAGIC. */
	begin = state.stack_info.begin + 1;
	/* Call nothing meanwhile: its frame would be overwritten. */
	for (at = begin; (unsigned long)(at + 8) < current_stack_pointer; at++)
		WRITE_ONCE(*at, FREE);
	return begin;
}

static __no_sanitize_address unsigned long stack_left(const unsigned long *begin)
{
	const unsigned long *at = begin;

	while (READ_ONCE(*at) == FREE)
		at++;
	return (at - begin) * sizeof(*at);
}

static void fill_in_interrupt(struct irq_work *work)
{
	smp_store_release(this_cpu_ptr(&interrupt_stack), fill_stack());
}

static int stacks_set(const char *value, const struct kernel_param *param)
{
	u64 end = local_clock() + NSEC_PER_SEC;
	bool filled;

	guard(mutex)(&stacks_lock);
	WRITE_ONCE(filling, true);
	task_left = THREAD_SIZE;
	guard(preempt)();
	this_cpu_write(interrupt_stack, NULL);
	this_cpu_write(nmi_stack, NULL);
	irq_work_queue(this_cpu_ptr(&fill_work));
	smp_store_release(this_cpu_ptr(&fill_in_nmi), true);
	if (send_nmi(smp_processor_id()))
		return -EOPNOTSUPP;
	do {
		cpu_relax();
		filled = smp_load_acquire(this_cpu_ptr(&interrupt_stack)) && smp_load_acquire(this_cpu_ptr(&nmi_stack));
	} while (!filled && local_clock() < end);
	return filled ? 0 : -ETIMEDOUT;
}

static int stacks_get(char *buffer, const struct kernel_param *param)
{
	unsigned long interrupts = THREAD_SIZE, nmis = THREAD_SIZE, *begin;
	int cpu;

	guard(mutex)(&stacks_lock);
	for_each_possible_cpu(cpu) {
		begin = smp_load_acquire(per_cpu_ptr(&interrupt_stack, cpu));
		if (begin)
			interrupts = min(interrupts, stack_left(begin));
		begin = smp_load_acquire(per_cpu_ptr(&nmi_stack, cpu));
		if (begin)
			nmis = min(nmis, stack_left(begin));
	}
	return sysfs_emit(buffer, "%lu %lu %lu\n", task_left, interrupts, nmis);
}

static const struct kernel_param_ops stacks_ops = {
	.set = stacks_set,
	.get = stacks_get,
};
module_param_cb(stacks, &stacks_ops, NULL, 0600);

/* Before and after a task obeys a line. */
static unsigned long *begin_task(void)
{
	return READ_ONCE(filling) ? fill_stack() : NULL;
}

static void end_task(unsigned long *begin)
{
	if (!begin)
		return;
	guard(mutex)(&stacks_lock);
	task_left = min(task_left, stack_left(begin));
}

static int fill_nmi_stack(void)
{
	if (!smp_load_acquire(this_cpu_ptr(&fill_in_nmi)))
		return NMI_DONE;
	this_cpu_write(fill_in_nmi, false);
	smp_store_release(this_cpu_ptr(&nmi_stack), fill_stack());
	return NMI_HANDLED;
}

#else

static unsigned long *begin_task(void)
{
	return NULL;
}

static void end_task(unsigned long *begin)
{
}

static inline int fill_nmi_stack(void)
{
	return 0;
}

#endif

/* Called while a record of the event nested is made. */
void rhist_nest(unsigned int context)
{
	struct nest *nest = this_cpu_ptr(&nests);
	enum context next = context + 1;
	u64 end = local_clock() + NSEC_PER_SEC;

	if (!nest->armed[context])
		return;
	nest->armed[context] = false;
	while (next < CONTEXTS && !(nesting & BIT(next)))
		next++;
	if (next == CONTEXTS)
		return;
	smp_store_release(&nest->done[next], false);
	switch (next) {
	case SOFTIRQ:
		local_bh_disable();
		tasklet_schedule(&nest->tasklet);
		local_bh_enable();
		break;
	case HARDIRQ:
		irq_work_queue(&nest->irq_work);
		break;
	default:
		smp_store_release(&nest->nmi, true);
		if (send_nmi(smp_processor_id()))
			nest->failed = true;
	}
	while (!nest->failed && !smp_load_acquire(&nest->done[next])) {
		cpu_relax();
		if (local_clock() > end)
			nest->failed = true;
	}
}

static const struct event {
	const char *name;
	void (*fire)(u64 k);
} events[] = {
	{ "numbers", numbers },
	{ "strings", strings },
	{ "arrays", arrays },
	{ "stacks", stacks },
	{ "wake", wake },
	{ "run", run },
	{ "stop", stop },
	{ "nested", nested },
	{ "outer", outer },
	{ "beyond", beyond },
	{ "cycles", cycles },
};

/* The events to fire in one context on one CPU. */
struct post {
	struct mutex lock;		/* one order at a time */
	enum context context;
	const struct event *event;
	u64 first, fired, count, keys;
	bool pending;			/* an interruption was requested and is not over */
	bool misplaced;			/* it ran in the wrong context */
	struct tasklet_struct tasklet;
	struct irq_work irq_work;
};

static DEFINE_PER_CPU(struct post[CONTEXTS], posts);
static DEFINE_PER_CPU(unsigned int, depth);
static atomic_long_t begun[CONTEXTS];

/* Fires the next piece of an order. On its CPU, with preemption off. */
static void fire_piece(struct post *post)
{
	unsigned int below = this_cpu_inc_return(depth) - 1;
	u64 end = min(post->fired + PIECE, post->count);

	atomic_long_inc(&begun[min(below, CONTEXTS - 1u)]);
	if (in_context(post->context)) {
		for (; post->fired < end; post->fired++)
			post->event->fire(post->first + post->fired % post->keys);
	} else {
		post->misplaced = true;
	}
	if (post->event->fire == nested && this_cpu_xchg(nests.failed, false))
		post->misplaced = true;
	this_cpu_dec(depth);
	smp_store_release(&post->pending, false);
}

static void fire_in_softirq(struct tasklet_struct *tasklet)
{
	fire_piece(container_of(tasklet, struct post, tasklet));
}

static void fire_in_hardirq(struct irq_work *work)
{
	struct post *post = container_of(work, struct post, irq_work);

	if (post->context == SOFTIRQ)
		tasklet_schedule(&post->tasklet);
	else
		fire_piece(post);
}

/*
 * Interrupts are off, but possibly outside of an interrupt: on the caller's own CPU, and on an idle
 * one. There PREEMPT_RT warns if a softirq is raised.
 */
static void interrupt(void *info)
{
	struct post *post = info;

	if (post->context == SOFTIRQ && !IS_ENABLED(CONFIG_PREEMPT_RT))
		tasklet_schedule(&post->tasklet);
	else
		irq_work_queue(&post->irq_work);
}

#ifdef CONFIG_X86_LOCAL_APIC

static int fire_in_nmi(unsigned int type, struct pt_regs *regs)
{
	struct post *post = this_cpu_ptr(&posts[NMI]);
	struct nest *nest = this_cpu_ptr(&nests);
	int handled = fill_nmi_stack();

	set_nmi_regs(regs);
	if (smp_load_acquire(&nest->nmi)) {
		nest->nmi = false;
		fire_nested(NMI);
		handled++;
	}
	if (smp_load_acquire(&post->pending)) {
		fire_piece(post);
		handled++;
	}
	return handled;
}

static bool have_nmis(void)
{
	return boot_cpu_has(X86_FEATURE_APIC);
}

static int send_nmi(int cpu)
{
	if (!have_nmis())
		return -EOPNOTSUPP;
	apic->send_IPI(cpu, NMI_VECTOR);
	return 0;
}

static int prepare_nmi(void)
{
	return register_nmi_handler(NMI_LOCAL, fire_in_nmi, 0, "rhist_events");
}

static void unprepare_nmi(void)
{
	unregister_nmi_handler(NMI_LOCAL, "rhist_events");
}

#else

static bool have_nmis(void)
{
	return false;
}

static int send_nmi(int cpu)
{
	return -EOPNOTSUPP;
}

static int prepare_nmi(void)
{
	return 0;
}

static void unprepare_nmi(void)
{
}

#endif

/* Fires one piece on a CPU that stays online. */
static int fire_at(struct post *post, int cpu)
{
	unsigned long end = jiffies + 10 * HZ;
	int error = 0;

	smp_store_release(&post->pending, true);
	switch (post->context) {
	case TASK:
		preempt_disable();
		if (smp_processor_id() == cpu)
			fire_piece(post);
		else
			error = -EXDEV;
		preempt_enable();
		break;
	case NMI:
		error = send_nmi(cpu);
		break;
	default:
		/* A tasklet of this CPU runs as soon as softirqs are enabled. */
		local_bh_disable();
		error = smp_call_function_single(cpu, interrupt, post, true);
		local_bh_enable();
	}
	while (!error && smp_load_acquire(&post->pending)) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		usleep_range(10, 50);
	}
	return error ?: post->misplaced ? -EIO : 0;
}

static int fire(enum context context, const struct event *event, int cpu, u64 first, u64 count, u64 keys)
{
	struct post *post = per_cpu_ptr(&posts[context], cpu);
	int error = 0;

	cpus_read_lock();
	mutex_lock(&post->lock);
	post->event = event;
	post->first = first;
	post->count = count;
	post->keys = keys;
	post->fired = 0;
	post->misplaced = false;
	if (!cpu_online(cpu))
		error = -ENXIO;
	while (!error && post->fired < count) {
		error = fire_at(post, cpu);
		if (!error && fatal_signal_pending(current))
			error = -EINTR;
		cond_resched();
	}
	mutex_unlock(&post->lock);
	cpus_read_unlock();
	return error;
}

static ssize_t rhist_events_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	char line[128], event_name[16], context_name[16];
	const struct event *event = NULL;
	unsigned long long first, count, keys;
	int context, error;
	unsigned long *stack;
	unsigned int cpu;

	if (len >= sizeof(line))
		return -E2BIG;
	if (copy_from_user(line, from, len))
		return -EFAULT;
	line[len] = 0;
	if (sscanf(line, "%15s %15s %u %llu %llu %llu", event_name, context_name, &cpu, &first, &count, &keys) != 6)
		return -EINVAL;
	for (int i = 0; i < ARRAY_SIZE(events); i++)
		if (!strcmp(event_name, events[i].name))
			event = &events[i];
	context = match_string(contexts, CONTEXTS, context_name);
	if (!event || context < 0 || !keys || cpu >= nr_cpu_ids || !cpu_possible(cpu) ||
	    (event->fire == nested && context != TASK))
		return -EINVAL;
	stack = begin_task();
	error = fire(context, event, cpu, first, count, keys);
	end_task(stack);
	return error ?: len;
}

static ssize_t rhist_events_read(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	char line[100];
	int size = scnprintf(line, sizeof(line), "%ld %ld %ld %ld\n", atomic_long_read(&begun[0]),
			     atomic_long_read(&begun[1]), atomic_long_read(&begun[2]), atomic_long_read(&begun[3]));

	return simple_read_from_buffer(to, len, pos, line, size);
}

static const struct file_operations rhist_events_fops = {
	.owner = THIS_MODULE,
	.write = rhist_events_write,
	.read = rhist_events_read,
};

static struct miscdevice rhist_events_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rhist_events",
	.fops = &rhist_events_fops,
	.mode = 0600,
};

static struct dentry *rhist_events_file;

#ifdef CONFIG_KPROBES
/*
 * The parameter "calls" counts the calls of any function that a kprobe can be on, also of functions
 * unknown to ftrace, which kprobe events refuse. Written: the name of the function, or nothing.
 * Read: the calls since then.
 *
 * With the parameter interrupting, a hard interrupt fires the event strings as soon as such a call
 * in a softirq goes on.
 */
static DEFINE_MUTEX(calls_lock);
static char calls_of[64];
static atomic_long_t calls;
static bool interrupting;
module_param(interrupting, bool, 0600);
static DEFINE_PER_CPU(struct irq_work, interruption);

static void strings_on_top(struct irq_work *work)
{
	strings(RHIST_LONGEST);
}

static int called(struct kprobe *p, struct pt_regs *regs)
{
	atomic_long_inc(&calls);
	if (READ_ONCE(interrupting) && in_serving_softirq() && !in_hardirq() && !in_nmi())
		irq_work_queue(this_cpu_ptr(&interruption));
	return 0;
}

static struct kprobe calls_probe;

static int calls_set(const char *value, const struct kernel_param *param)
{
	int error = 0;

	guard(mutex)(&calls_lock);
	if (calls_of[0])
		unregister_kprobe(&calls_probe);
	strscpy(calls_of, value);
	strim(calls_of);
	atomic_long_set(&calls, 0);
	if (calls_of[0]) {
		calls_probe = (struct kprobe){ .symbol_name = calls_of, .pre_handler = called };
		error = register_kprobe(&calls_probe);
		if (error)
			calls_of[0] = '\0';
	}
	return error;
}

static int calls_get(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%ld\n", atomic_long_read(&calls));
}

static const struct kernel_param_ops calls_ops = {
	.set = calls_set,
	.get = calls_get,
};
module_param_cb(calls, &calls_ops, NULL, 0600);

#else

static DEFINE_PER_CPU(struct irq_work, interruption);

static void strings_on_top(struct irq_work *work) {}

static void calls_set(const char *value, const struct kernel_param *param) {}

#endif

#ifdef CONFIG_UML

/*
 * User-mode Linux lacks an interrupt for irq_work, which waits for the next tick. Each change to
 * triggers waits for such work, twice. To save these 20 milliseconds, a timer looks for it more
 * often while the module is loaded.
 */
static struct hrtimer irq_work_timer;

static enum hrtimer_restart run_irq_work(struct hrtimer *timer)
{
	irq_work_run();
	hrtimer_forward_now(timer, us_to_ktime(250));
	return HRTIMER_RESTART;
}

static void hurry_irq_work(void)
{
	hrtimer_setup(&irq_work_timer, run_irq_work, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	hrtimer_start(&irq_work_timer, us_to_ktime(250), HRTIMER_MODE_REL_HARD);
}

static void leave_irq_work(void)
{
	hrtimer_cancel(&irq_work_timer);
}

#else

static void hurry_irq_work(void)
{
}

static void leave_irq_work(void)
{
}

#endif

static int __init rhist_events_init(void)
{
	typeof(&tracefs_create_file) create_file;
	int cpu, error;

	msleep(init_ms);
	if (init_fails)
		return -EIO;
	for_each_possible_cpu(cpu) {
		struct nest *nest = per_cpu_ptr(&nests, cpu);

		tasklet_setup(&nest->tasklet, nested_in_softirq);
		nest->irq_work = IRQ_WORK_INIT_HARD(nested_in_hardirq);
		*per_cpu_ptr(&interruption, cpu) = IRQ_WORK_INIT_HARD(strings_on_top);
#ifdef HAVE_STACKS
		*per_cpu_ptr(&fill_work, cpu) = IRQ_WORK_INIT_HARD(fill_in_interrupt);
#endif
		for (enum context context = 0; context < CONTEXTS; context++) {
			struct post *post = per_cpu_ptr(&posts[context], cpu);

			mutex_init(&post->lock);
			post->context = context;
			tasklet_setup(&post->tasklet, fire_in_softirq);
			post->irq_work = IRQ_WORK_INIT_HARD(fire_in_hardirq);
		}
	}
	nesting = BIT(TASK) | BIT(HARDIRQ);
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		nesting |= BIT(SOFTIRQ);
	if (have_nmis())
		nesting |= BIT(NMI);
	error = prepare_nmi();
	if (error)
		return error;
	error = prepare_counters();
	if (error) {
		unprepare_nmi();
		return error;
	}
	error = misc_register(&rhist_events_device);
	if (error) {
		unprepare_counters();
		unprepare_nmi();
		return error;
	}
	/*
	 * Linux 6.12 does not export it, and the file is missing then. With a weak symbol, arm64
	 * would not load the module.
	 */
	create_file = symbol_get(tracefs_create_file);
	if (create_file) {
		rhist_events_file = create_file("rhist_events", 0400, NULL, NULL, &rhist_events_fops);
		symbol_put(tracefs_create_file);
	}
	hurry_irq_work();
	return 0;
}

static void __exit rhist_events_exit(void)
{
	int cpu;

	if (!IS_ERR_OR_NULL(rhist_events_file))
		simple_recursive_removal(rhist_events_file, NULL);
	leave_irq_work();
	calls_set("", NULL);
	for_each_possible_cpu(cpu)
		irq_work_sync(per_cpu_ptr(&interruption, cpu));
	misc_deregister(&rhist_events_device);
	unprepare_counters();
	unprepare_nmi();
	/* Work whose end a write has not waited for. */
	for_each_possible_cpu(cpu) {
		struct nest *nest = per_cpu_ptr(&nests, cpu);

		irq_work_sync(&nest->irq_work);
		tasklet_kill(&nest->tasklet);
		for (enum context context = 0; context < CONTEXTS; context++) {
			struct post *post = per_cpu_ptr(&posts[context], cpu);

			irq_work_sync(&post->irq_work);
			tasklet_kill(&post->tasklet);
		}
	}
}

module_init(rhist_events_init);
module_exit(rhist_events_exit);

MODULE_DESCRIPTION("Trace events with fields of every kind, fired in every context");
MODULE_LICENSE("GPL");
