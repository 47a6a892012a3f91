// SPDX-License-Identifier: GPL-2.0
/*
 * The event rhist:sample: at regular times, the task and the function that run on a CPU.
 *
 * While the event is connected, each CPU has a pinned timer, which expires in a hard interrupt. The
 * ticks of a CPU are the points of a grid, a period apart; the grids of the CPUs are shifted
 * against each other, so that the CPUs are not all interrupted at once. Each point of the grid is
 * counted once, in one of three ways:
 *
 *   passed	the timer has expired, and the sample was passed on to the histograms
 *   late	the timer expired only after the next point, or even later: one sample was
 *		passed on for several points, and the others are late
 *   off	the CPU was without a timer: offline, or isolated (isolcpus=, nohz_full=)
 *
 * The sum of these is the number of points up to now, which the clock gives, too.
 *
 * The kernel lists the event, and users may enable it, but only histograms of rhist start the
 * timers. Its records never get into a ring buffer, and perf cannot open it.
 */
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/seqlock.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/trace_events.h>
#include <asm/irq_regs.h>

#include "compat.h"
#include "sample.h"
#include "probe/record.h"
#include "stack/stack.h"

/* The record. */
struct record {
	struct trace_entry ent;
	/* The interrupted instruction; 0 in user mode. */
	unsigned long ip;
	int cpu;
	int pid;
	int tgid;
	char mode[8];
	char comm[TASK_COMM_LEN];
};

#define FIELD(_type, _name, _is_signed)							\
	{										\
		.type = #_type,								\
		.name = #_name,								\
		.size = sizeof_field(struct record, _name),				\
		.align = __alignof__(_type),						\
		.is_signed = _is_signed,						\
		.filter_type = FILTER_OTHER,						\
	}

#define TEXT(_name, _len)								\
	{										\
		.type = "char[" __stringify(_len) "]",					\
		.name = #_name,								\
		.size = sizeof_field(struct record, _name),				\
		.align = 1,								\
		.is_signed = is_signed_type(char),					\
		.filter_type = FILTER_OTHER,						\
	}

static struct trace_event_fields fields[] = {
	FIELD(unsigned long, ip, false),
	FIELD(int, cpu, true),
	FIELD(int, pid, true),
	FIELD(int, tgid, true),
	TEXT(mode, 8),
	TEXT(comm, 16),
	{}
};

static_assert(sizeof_field(struct record, mode) == 8 && sizeof_field(struct record, comm) == 16);

/*
 * class->reg(): called with event_mutex held. Users may enable the event, as any other, but perf
 * may not count it: perf would let everybody start the timers.
 */
static int reg(struct trace_event_call *call, enum trace_reg type, void *data)
{
	switch (type) {
	case TRACE_REG_REGISTER:
	case TRACE_REG_UNREGISTER:
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static enum print_line_t print(struct trace_iterator *iter, int flags, struct trace_event *event)
{
	return TRACE_TYPE_HANDLED;
}

static struct trace_event_functions funcs = { .trace = print };

static struct trace_event_class class = {
	.system = "rhist",
	.fields_array = fields,
	.fields = LIST_HEAD_INIT(class.fields),
	.raw_init = trace_event_raw_init,
	.reg = reg,
};

struct trace_event_call rhist_sample_call = {
	.class = &class,
	.name = "sample",
	.event.funcs = &funcs,
	.print_fmt = "\"cpu=%d comm=%s pid=%d tgid=%d mode=%s ip=%lx\", REC->cpu, REC->comm, REC->pid, "
		     "REC->tgid, REC->mode, REC->ip",
};

/* Return whether an event is rhist:sample. Any context. */
bool rhist_is_sample(const struct trace_event_call *call)
{
	return call == &rhist_sample_call;
}

/*
 * The timer of a CPU, and its ticks. Written on that CPU, with interrupts disabled; or before the
 * timers are started.
 */
struct sampler {
	struct hrtimer timer;
	seqcount_t seq;
	/* Whether it has a grid: the CPU is or was present. */
	bool present;
	/* Whether its timer is started. */
	bool runs;
	/* The first point of the grid, and the first one that is not counted yet. */
	ktime_t first, next;
	/* Numbers of points. */
	u64 passed, late, off;
};

/* Protects the variables below. */
static DEFINE_MUTEX(lock);
static unsigned int frequency = 99;

/* Constant while the timers run. Per-CPU variables of modules are few: these are allocated. */
static struct sampler __percpu *samplers;
static struct rhist_probed *receiver;
static u64 period;
static enum cpuhp_state hotplug;
static pid_t tgid;
static char comm[TASK_COMM_LEN];

/* Return the number of points of a grid from @next up to @now. */
static u64 points(ktime_t next, ktime_t now)
{
	return now < next ? 0 : div64_u64(ktime_sub(now, next), period) + 1;
}

/* Return the mode of the CPU when it was interrupted. */
static notrace const char *mode_of(struct pt_regs *regs)
{
	if (regs && user_mode(regs))
		return "user\0\0\0";
	/* The idle task is current while an interrupt of it is handled, too. */
	if (is_idle_task(current) && !in_serving_softirq())
		return "idle\0\0\0";
	return "kernel\0";
}

/* Get the frame of the interrupted function. Returns false if it is not known. */
static notrace bool frame_of(struct rhist_frame *frame, struct pt_regs *regs)
{
	if (!regs || user_mode(regs) || !instruction_pointer(regs))
		return false;
	frame->ip = instruction_pointer(regs);
#if defined(RHIST_STACK_UNWINDER)
	frame->sp = regs->sp;
	frame->bp = regs->bp;
#elif defined(RHIST_STACK_FRAMES)
	frame->sp = PT_REGS_SP(regs);
	frame->bp = PT_REGS_BP(regs);
#endif
	return true;
}

/* Pass a sample on to the histograms. Hard interrupt. */
static notrace void hit(struct pt_regs *regs)
{
	struct rhist_frame frame = {};
	bool known = frame_of(&frame, regs);
	struct record record = {
		.ent.pid = current->pid,
		.ip = known ? frame.ip : 0,
		.cpu = raw_smp_processor_id(),
		.pid = current->pid,
		.tgid = current->tgid,
	};

	memcpy(record.mode, mode_of(regs), sizeof(record.mode));
	memcpy(record.comm, current->comm, sizeof(record.comm));
	rhist_probe_hit_at(receiver, &record, sizeof(record), known ? &frame : NULL);
}

static notrace enum hrtimer_restart rhist_sample_tick(struct hrtimer *timer)
{
	struct sampler *sampler = container_of(timer, struct sampler, timer);
	u64 n = hrtimer_forward(timer, ktime_get(), ns_to_ktime(period));

	/* 0: the time was set back a little, as it may be while the CPU's clock is calibrated. */
	if (!n)
		return HRTIMER_RESTART;
	raw_write_seqcount_begin(&sampler->seq);
	sampler->passed++;
	sampler->late += n - 1;
	sampler->next = hrtimer_get_expires(timer);
	preempt_disable_notrace();
	hit(get_irq_regs());
	preempt_enable_notrace();
	raw_write_seqcount_end(&sampler->seq);
	return HRTIMER_RESTART;
}

/* Return whether a CPU has been set aside for work that is not to be interrupted. */
static bool is_isolated(unsigned int cpu)
{
	return !housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN) || !housekeeping_test_cpu(cpu, HK_TYPE_TICK);
}

/* Define the grid of a CPU: its first point is the first one after @begin. */
static void define_grid(struct sampler *sampler, unsigned int cpu, ktime_t begin)
{
	sampler->first = ktime_add_ns(begin, period + div_u64(period * cpu, nr_cpu_ids));
	sampler->next = sampler->first;
	sampler->present = true;
}

/* A CPU has come online, or is online when the event is connected. Called on that CPU. */
static int cpu_up(unsigned int cpu)
{
	struct sampler *sampler = this_cpu_ptr(samplers);
	unsigned long flags;
	u64 off;

	local_irq_save(flags);
	raw_write_seqcount_begin(&sampler->seq);
	if (!sampler->present)
		define_grid(sampler, cpu, ktime_get());
	if (!is_isolated(cpu)) {
		off = points(sampler->next, ktime_get());
		sampler->off += off;
		sampler->next = ktime_add_ns(sampler->next, off * period);
		sampler->runs = true;
		hrtimer_start(&sampler->timer, sampler->next, HRTIMER_MODE_ABS_PINNED_HARD);
	}
	raw_write_seqcount_end(&sampler->seq);
	local_irq_restore(flags);
	return 0;
}

/* A CPU goes offline, or the event is disconnected. Called on that CPU. */
static int cpu_down(unsigned int cpu)
{
	struct sampler *sampler = this_cpu_ptr(samplers);
	unsigned long flags;
	u64 late;

	if (!sampler->runs)
		return 0;
	hrtimer_cancel(&sampler->timer);
	local_irq_save(flags);
	raw_write_seqcount_begin(&sampler->seq);
	late = points(sampler->next, ktime_get());
	sampler->late += late;
	sampler->next = ktime_add_ns(sampler->next, late * period);
	sampler->runs = false;
	raw_write_seqcount_end(&sampler->seq);
	local_irq_restore(flags);
	return 0;
}

/*
 * Start the timers, which pass samples on to @probed. Task context, may sleep; not while it is
 * connected. Returns 0 or a negative errno.
 */
int rhist_sample_connect(struct rhist_probed *probed)
{
	unsigned int cpu;
	ktime_t begin;
	int state;

	mutex_lock(&lock);
	samplers = alloc_percpu(struct sampler);
	if (!samplers) {
		mutex_unlock(&lock);
		return -ENOMEM;
	}
	period = NSEC_PER_SEC / frequency;
	receiver = probed;
	begin = ktime_get();
	for_each_possible_cpu(cpu) {
		struct sampler *sampler = per_cpu_ptr(samplers, cpu);

		seqcount_init(&sampler->seq);
		hrtimer_setup(&sampler->timer, rhist_sample_tick, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
		if (cpu_present(cpu))
			define_grid(sampler, cpu, begin);
	}
	/* Calls cpu_up() on each CPU that is online. */
	state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "rhist:sample", cpu_up, cpu_down);
	if (state < 0) {
		receiver = NULL;
		free_percpu(samplers);
	} else {
		hotplug = state;
		tgid = current->tgid;
		memcpy(comm, current->comm, sizeof(comm));
		comm[sizeof(comm) - 1] = 0;
	}
	mutex_unlock(&lock);
	return min(state, 0);
}

/* Stop the timers, and wait for samples that are being passed on. Task context, sleeps. */
void rhist_sample_disconnect(void)
{
	mutex_lock(&lock);
	/* Calls cpu_down() on each CPU that is online. */
	cpuhp_remove_state(hotplug);
	receiver = NULL;
	free_percpu(samplers);
	mutex_unlock(&lock);
}

/* Add the ticks of a CPU up to @now. */
static void add_ticks(struct rhist_ticks *ticks, const struct sampler *sampler)
{
	u64 passed, late, off, due, more;
	unsigned int seq;

	do {
		/* Waits for a sample that is being passed on. */
		seq = read_seqcount_begin(&sampler->seq);
		/* A CPU without a timer passes its points unseen. */
		more = sampler->present && !sampler->runs ? points(sampler->next, ktime_get()) : 0;
		due = div64_u64(ktime_sub(sampler->next, sampler->first), period) + more;
		passed = sampler->passed;
		late = sampler->late;
		off = sampler->off + more;
	} while (read_seqcount_retry(&sampler->seq, seq));
	ticks->due += due;
	ticks->passed += passed;
	ticks->late += late;
	ticks->off += off;
}

/*
 * Get the ticks so far. The counts of each CPU are of one moment, between two samples. Task
 * context, may sleep.
 */
void rhist_sample_ticks(struct rhist_ticks *ticks)
{
	unsigned int cpu;

	*ticks = (struct rhist_ticks){};
	mutex_lock(&lock);
	ticks->frequency = frequency;
	if (receiver) {
		ticks->tgid = tgid;
		memcpy(ticks->comm, comm, sizeof(comm));
		for_each_possible_cpu(cpu)
			add_ticks(ticks, per_cpu_ptr(samplers, cpu));
	}
	mutex_unlock(&lock);
}

/* Return the number of ticks per second. Task context. */
unsigned int rhist_sample_frequency(void)
{
	return READ_ONCE(frequency);
}

/*
 * Set the number of ticks per second. Task context, may sleep. Returns 0; -EINVAL if the number is
 * too low or too high; -EBUSY if the event is connected, and has another one.
 */
int rhist_sample_set_frequency(unsigned int new)
{
	int err = 0;

	if (!new || new > RHIST_SAMPLE_FREQUENCY_MAX)
		return -EINVAL;
	mutex_lock(&lock);
	if (!receiver)
		WRITE_ONCE(frequency, new);
	else if (new != frequency)
		err = -EBUSY;
	mutex_unlock(&lock);
	return err;
}
