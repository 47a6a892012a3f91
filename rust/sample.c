// SPDX-License-Identifier: GPL-2.0
/*
 * The event rhist:sample: at regular times, the task and the function that run on a CPU.
 *
 * It has two sources, of which one is chosen. While the event is connected, each CPU has for the
 *
 *   clock	a pinned timer, which expires in a hard interrupt. The ticks of a CPU are the
 *		points of a grid, a period apart; the grids of the CPUs are shifted against each
 *		other, so that the CPUs are not all interrupted at once.
 *   cycles	a counter of its cycles, which interrupts it after each period of them: in an
 *		NMI, if the machine has these (counter.c). If a CPU lacks one when the event is
 *		connected, all have timers instead.
 *
 * Each point of the grid, and each period of the counter, is counted once, in one of three ways:
 *
 *   passed	the interrupt came, and the sample was passed on to the histograms
 *   late	the interrupt came only after the next point, or even later: one sample was
 *		passed on for several points, and the others are late
 *   off	the CPU was without a timer: offline, or isolated (isolcpus=, nohz_full=). Cycles of
 *		a CPU without a counter are not known.
 *
 * The sum of these is the number of points up to now, which the clock gives, too. So do the
 * counters, but one period more or less of each CPU may be counted: see count_periods().
 *
 * The kernel lists the event, and users may enable it, but only histograms of rhist start the
 * timers and counters. Its records never get into a ring buffer, and perf cannot open it.
 */
#include <linux/cpu.h>
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
#include "counter.h"
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
 * may not count it: perf would let everybody start the timers or counters.
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
 * The timer or the counter of a CPU, and its ticks. Written on that CPU, with interrupts disabled,
 * or while its counter is stopped; or before they are started.
 */
struct sampler {
	struct hrtimer timer;
	struct rhist_counter counter;
	seqcount_t seq;
	/* Whether it has a grid: the CPU is or was present. */
	bool present;
	/* Whether its timer or counter is started. */
	bool runs;
	/* The first point of the grid, and the first one that is not counted yet. */
	ktime_t first, next;
	/* Numbers of points, or periods. */
	u64 passed, late, off;
	/* Periods of earlier counters. */
	u64 before;
	/* How often the kernel has stopped the counter until the next tick of its clock. */
	u64 throttled;
};

/* Protects the variables below. */
static DEFINE_MUTEX(lock);
static enum rhist_sample_source chosen = RHIST_SAMPLE_CLOCK;
static unsigned int frequency = 99;
/* 150 times per second at 3 GHz. No multiple of anything that programs count in. */
static unsigned int cycles = 20000003;

/*
 * Constant while the event is connected, as all below. Per-CPU variables of modules are few: these
 * are allocated.
 */
static struct sampler __percpu *samplers;
static struct rhist_probed *receiver;
static enum rhist_sample_source source;
/* Nanoseconds, or cycles. */
static u64 period;
static enum cpuhp_state hotplug;
static pid_t tgid;
static char comm[TASK_COMM_LEN];
/* If timers stand in for counters: the CPU that lacks one, and the errno for it. */
static unsigned int lacking_cpu;
static int lacking;

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
	/*
	 * The idle task is current while an interrupt of it is handled, too. An NMI may come during
	 * one, and counts itself as one, as a hard interrupt does.
	 */
	if (is_idle_task(current) && !in_serving_softirq() && hardirq_count() == HARDIRQ_OFFSET)
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

/* Pass a sample on to the histograms. Hard interrupt or NMI. */
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

/*
 * Count the periods of a CPU up to @n, which are more than one if the interrupt came late. After an
 * interrupt that came more than a period late, the PMU begins its periods anew, and they no longer
 * begin at multiples of the period. Then one more may be counted.
 */
static notrace void count_periods(struct sampler *sampler, u64 n)
{
	u64 counted = sampler->passed + sampler->late - sampler->before;

	if (n > counted)
		sampler->late += n - counted;
}

/* A period of the counter is over: see struct rhist_counter. */
static notrace void rhist_sample_overflow(struct rhist_counter *counter, u64 n, bool throttled,
					  struct pt_regs *regs)
{
	struct sampler *sampler = container_of(counter, struct sampler, counter);

	raw_write_seqcount_begin(&sampler->seq);
	sampler->passed++;
	sampler->throttled += throttled;
	count_periods(sampler, div64_u64(n, period));
	preempt_disable_notrace();
	hit(regs);
	preempt_enable_notrace();
	raw_write_seqcount_end(&sampler->seq);
}

/* Ignore a period: for counters that are started to see whether a CPU has one. */
static notrace void rhist_sample_ignore(struct rhist_counter *counter, u64 n, bool throttled, struct pt_regs *regs)
{
}

/*
 * Get the first CPU that lacks a counter. Returns the errno for it, or 0 if all CPUs that are
 * online, and not isolated, have one. Task context, may sleep.
 */
static int find_lacking(unsigned int *without)
{
	struct rhist_counter counter = { .overflow = rhist_sample_ignore };
	unsigned int cpu;
	int err = 0;

	cpus_read_lock();
	for_each_online_cpu(cpu) {
		if (is_isolated(cpu))
			continue;
		err = rhist_counter_start(&counter, cpu, RHIST_SAMPLE_CYCLES_MAX);
		if (err) {
			*without = cpu;
			break;
		}
		rhist_counter_stop(&counter);
	}
	cpus_read_unlock();
	return err;
}

/* Start the counter of a CPU, as cpu_up() does a timer. */
static int cpu_up_cycles(unsigned int cpu)
{
	struct sampler *sampler = per_cpu_ptr(samplers, cpu);

	if (is_isolated(cpu))
		return 0;
	/* Without a counter, the CPU comes online nevertheless. */
	sampler->runs = !rhist_counter_start(&sampler->counter, cpu, period);
	return 0;
}

/* Stop the counter of a CPU, as cpu_down() does a timer. */
static int cpu_down_cycles(unsigned int cpu)
{
	struct sampler *sampler = per_cpu_ptr(samplers, cpu);
	u64 n;

	if (!sampler->runs)
		return 0;
	n = div64_u64(rhist_counter_stop(&sampler->counter), period);
	count_periods(sampler, n);
	sampler->before += n;
	sampler->runs = false;
	return 0;
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
 * Define the source. Returns 0 or a negative errno. If a CPU lacks a counter of cycles, it is the
 * clock.
 */
static int define_source(void)
{
	lacking = chosen == RHIST_SAMPLE_CYCLES ? find_lacking(&lacking_cpu) : 0;
	if (lacking && lacking != -EOPNOTSUPP && lacking != -EBUSY)
		return lacking;
	source = lacking ? RHIST_SAMPLE_CLOCK : chosen;
	period = source == RHIST_SAMPLE_CYCLES ? cycles : NSEC_PER_SEC / frequency;
	return 0;
}

/* Start the timers or counters. Returns 0 or a negative errno. */
static int start(void)
{
	bool counts = source == RHIST_SAMPLE_CYCLES;
	ktime_t begin = ktime_get();
	unsigned int cpu;
	int state;

	for_each_possible_cpu(cpu) {
		struct sampler *sampler = per_cpu_ptr(samplers, cpu);

		seqcount_init(&sampler->seq);
		sampler->counter.overflow = rhist_sample_overflow;
		hrtimer_setup(&sampler->timer, rhist_sample_tick, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
		if (cpu_present(cpu))
			define_grid(sampler, cpu, begin);
	}
	/* Calls cpu_up() on each CPU that is online. */
	state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "rhist:sample", counts ? cpu_up_cycles : cpu_up,
				  counts ? cpu_down_cycles : cpu_down);
	hotplug = state;
	return min(state, 0);
}

/*
 * Start the timers or counters, which pass samples on to @probed. Task context, may sleep; not
 * while it is connected. Returns 0 or a negative errno.
 */
int rhist_sample_connect(struct rhist_probed *probed)
{
	int err;

	mutex_lock(&lock);
	err = define_source();
	if (err)
		goto out;
	err = -ENOMEM;
	samplers = alloc_percpu(struct sampler);
	if (!samplers)
		goto out;
	receiver = probed;
	err = start();
	if (err) {
		receiver = NULL;
		free_percpu(samplers);
	} else {
		tgid = current->tgid;
		memcpy(comm, current->comm, sizeof(comm));
		comm[sizeof(comm) - 1] = 0;
	}
out:
	mutex_unlock(&lock);
	return err;
}

/*
 * Stop the timers or counters, and wait for samples that are being passed on. Task context, sleeps.
 */
void rhist_sample_disconnect(void)
{
	mutex_lock(&lock);
	/* Calls cpu_down() on each CPU that is online. */
	cpuhp_remove_state(hotplug);
	receiver = NULL;
	free_percpu(samplers);
	mutex_unlock(&lock);
}

/* Add the ticks of a CPU up to now. */
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
 * Number of times that a counter is read until no period ends meanwhile, and the interrupts of all
 * but the last one have come: the one that reads the counter may come before them, except NMIs.
 */
#define TRIES 32

/* Get the cycles of a CPU up to now, and add its periods. Hotplug is locked. */
static void add_cycles(struct rhist_ticks *ticks, struct rhist_cycles *of, unsigned int cpu)
{
	const struct sampler *sampler = per_cpu_ptr(samplers, cpu);
	unsigned int seq, tries = 0;
	u64 now, n;

	do {
		seq = read_seqcount_begin(&sampler->seq);
		of->passed = sampler->passed;
		of->late = sampler->late;
		of->throttled = sampler->throttled;
		/* It interrupts the CPU. */
		now = sampler->runs ? rhist_counter_read(&sampler->counter) : 0;
		n = sampler->before + div64_u64(now, period);
	} while ((read_seqcount_retry(&sampler->seq, seq) || n > of->passed + of->late + 1) && ++tries < TRIES);
	of->counts = sampler->runs && !rhist_counter_failed(&sampler->counter);
	of->lacks = cpu_online(cpu) && !of->counts;
	of->cycles = sampler->before * period + now;
	of->periods = n;
	ticks->due += of->periods;
	ticks->passed += of->passed;
	ticks->late += of->late;
	ticks->throttled += of->throttled;
}

/*
 * Get the ticks so far. The counts of each CPU are of one moment, between two samples; unless the
 * source is cycles, and a period ended during each try. With that source, @of_cpus, which has an
 * element for each of nr_cpu_ids CPUs, is filled in, too. Task context, may sleep.
 */
void rhist_sample_ticks(struct rhist_ticks *ticks, struct rhist_cycles *of_cpus)
{
	unsigned int cpu;

	*ticks = (struct rhist_ticks){};
	mutex_lock(&lock);
	if (receiver) {
		ticks->source = source;
		ticks->rate = source == RHIST_SAMPLE_CYCLES ? cycles : frequency;
		ticks->lacking_cpu = lacking_cpu;
		ticks->lacking = lacking;
		ticks->tgid = tgid;
		memcpy(ticks->comm, comm, sizeof(comm));
		cpus_read_lock();
		for_each_possible_cpu(cpu) {
			if (source == RHIST_SAMPLE_CYCLES)
				add_cycles(ticks, &of_cpus[cpu], cpu);
			else
				add_ticks(ticks, per_cpu_ptr(samplers, cpu));
		}
		cpus_read_unlock();
	}
	mutex_unlock(&lock);
}

/* Return the source that samples come from. Task context, while it is connected. */
enum rhist_sample_source rhist_sample_source(void)
{
	return source;
}

/* Return the source that was chosen. Task context. */
enum rhist_sample_source rhist_sample_chosen(void)
{
	return READ_ONCE(chosen);
}

/*
 * Choose the source. Task context, may sleep. Returns 0; -EBUSY if the event is connected, and
 * another one is chosen; or, if a CPU lacks a counter, sets @without to that CPU, and returns an
 * errno as rhist_counter_start() does.
 */
int rhist_sample_choose(enum rhist_sample_source new, unsigned int *without)
{
	int err = 0;

	*without = nr_cpu_ids;
	mutex_lock(&lock);
	if (new != chosen) {
		if (receiver)
			err = -EBUSY;
		else if (new == RHIST_SAMPLE_CYCLES)
			err = find_lacking(without);
		if (!err)
			WRITE_ONCE(chosen, new);
	}
	mutex_unlock(&lock);
	return err;
}

/* Set a number that is constant while the event is connected: see the callers. */
static int set(unsigned int *number, unsigned int new)
{
	int err = 0;

	mutex_lock(&lock);
	if (!receiver)
		WRITE_ONCE(*number, new);
	else if (new != *number)
		err = -EBUSY;
	mutex_unlock(&lock);
	return err;
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
	return new && new <= RHIST_SAMPLE_FREQUENCY_MAX ? set(&frequency, new) : -EINVAL;
}

/* Return the number of cycles of a period. Task context. */
unsigned int rhist_sample_cycles(void)
{
	return READ_ONCE(cycles);
}

/* Set the number of cycles of a period, as rhist_sample_set_frequency() does. */
int rhist_sample_set_cycles(unsigned int new)
{
	return new >= RHIST_SAMPLE_CYCLES_MIN && new <= RHIST_SAMPLE_CYCLES_MAX ? set(&cycles, new) : -EINVAL;
}
