// SPDX-License-Identifier: GPL-2.0
/*
 * rhist_bench: fires trace events in a tight loop, and reports the cost of one.
 *
 * Orders are written to /sys/module/rhist_bench/parameters:
 *
 *	fire	EVENT CPUS KEYS SHARED COUNT
 *	each	EVENT FIRST KEYS AGAIN
 *	probe	EVENT, or none
 *	tasks	PID...
 *	spin	COUNT
 *	timer	HERTZ
 *
 * fire has each of the first CPUS processors fire COUNT of the EVENT, with KEYS different keys one
 * after the other, which all processors have in common if SHARED is 1. All keys were fired before,
 * untimed. Reading it gives the number of all fired events, timed or not, and the cost of an event,
 * as the mean of the processors: picoseconds. The COUNT is fired in pieces, and the piece with the
 * median time counts: others may include other work of a processor, which for an emulated one can
 * also be to wait for a real one.
 *
 * each fires the EVENT one by one, with KEYS different keys from index FIRST on; and then, if AGAIN
 * is 1, with all keys from index 0 on. Interrupts are off during an event, and preemption
 * throughout: no worker runs. Reading it gives the median time of an event, the longest, and the
 * index of its key: of the first KEYS, and of all again. The unit is a tick of the time stamp
 * counter, which under QEMU's -icount is an instruction.
 *
 * probe connects a probe to the event that counts and does nothing else, which is the least cost of
 * any probe, or disconnects it.
 *
 * tasks sets 16 sleeping tasks, which the event "grouped" puts into the run queue. Other events
 * are about memory that looks like tasks, which nobody finds by pid.
 *
 * spin executes a short loop COUNT times, with preemption off. Only interrupts run meanwhile, such
 * as a profiler's. Reading it gives the nanoseconds that this took.
 *
 * timer interrupts the processor HERTZ times per second; the handler only counts, which is the
 * least cost of any sample. 0 stops it.
 *
 * With one CPU the writer fires, so that the stack trace is a system call's; otherwise a thread for
 * each.
 */

#include <linux/completion.h>
#include <linux/fprobe.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/rcupdate_trace.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/sort.h>
#include <linux/srcu.h>
#include <linux/tracepoint.h>
#include <linux/vmalloc.h>
#include <trace/events/kmem.h>
#include <trace/events/power.h>

#define CREATE_TRACE_POINTS
#include "compat.h"
/* This replaces the module with these events: rhist has probes for them. */
#include <trace/events/watchdog.h>
#include "rhist_bench.h"

#define CPUS 64
#define NAMES 16		/* different tasks, devices, call sites */
#define WARM 4096		/* events before the timed ones, at least */
#define PIECES 63
#define EACH_MAX (1 << 20)	/* events that are timed one by one */
#define PID 1000		/* of the first task */

static struct task_struct *tasks[NAMES];
/* Tasks that exist, if any. */
static struct task_struct *sleepers[NAMES];
static struct irqaction devices[NAMES];
static char device_names[NAMES][16];
static struct pt_regs regs;
static struct watchdog_device dog;

/* Tracepoints that the kernel does not export, found by name. */
static struct tracepoint *sched_waking, *sched_wakeup, *sched_switch, *irq_handler_entry, *sys_enter;
/* Some kernels lack it. */
static struct tracepoint *sched_ext_bypass_lb;

/* Fires a tracepoint like code without static calls. PROTO and the arguments are the event's. */
#define call(tp, proto, ...)							\
	do {									\
		if (static_key_enabled(&(tp)->key)) {				\
			rhist_guard_tracepoint();				\
			((int (*)(void *, proto))(tp)->iterator)(NULL, __VA_ARGS__); \
		}								\
	} while (0)

#define TYPES(...) __VA_ARGS__

struct worker {
	const struct event *event;
	unsigned int cpu;
	u32 first, keys;
	u64 count, ps;
	u64 pieces[PIECES];
	struct completion done;
};

/*
 * One loop for each event: k counts up to keys - 1 and from 0 again and again, and key is computed
 * from it, so that neighbouring keys do not follow each other.
 */
#define EVENT(name, fire)							\
	static noinline u32 fire_##name(u32 first, u32 keys, u32 k, u64 count)	\
	{									\
		for (u64 i = 1; i <= count; i++) {				\
			u32 key __maybe_unused = (first + k) * 0x9e3779b1u;	\
										\
			fire;							\
			OPTIMIZER_HIDE_VAR(k);					\
			if (++k == keys)					\
				k = 0;						\
		}								\
		return k;							\
	}

EVENT(frequency, trace_cpu_frequency(key, i))
EVENT(number, trace_number(key, i, 3))
EVENT(ping, dog.id = key; trace_watchdog_ping(&dog, i))
EVENT(kmalloc, trace_kmalloc((unsigned long)schedule + 16 * k, NULL, 100, 128, GFP_KERNEL, NUMA_NO_NODE))
EVENT(waking, call(sched_waking, struct task_struct *, tasks[k % NAMES]))
EVENT(switch, call(sched_switch, TYPES(bool, struct task_struct *, struct task_struct *, unsigned int),
		   false, current, tasks[k % NAMES], 0))
EVENT(irq, call(irq_handler_entry, TYPES(int, struct irqaction *), k, &devices[k % NAMES]))

/* Fires the events of a task that is woken up, and runs. */
static __always_inline void call_wakeup(struct task_struct *task)
{
	call(sched_waking, struct task_struct *, task);
	call(sched_switch, TYPES(bool, struct task_struct *, struct task_struct *, unsigned int), false, current, task, 0);
}
EVENT(wakeup, call_wakeup(tasks[k % NAMES]))

/* Fires the events of a task that is put into the run queue, and runs since this one sleeps. */
static __always_inline void call_queued(struct task_struct *task)
{
	call(sched_wakeup, struct task_struct *, task);
	__set_current_state(TASK_INTERRUPTIBLE);
	call(sched_switch, TYPES(bool, struct task_struct *, struct task_struct *, unsigned int), false, current, task,
	     TASK_INTERRUPTIBLE);
	__set_current_state(TASK_RUNNING);
}
EVENT(queued, call_queued(tasks[k % NAMES]))
EVENT(grouped, call_queued(sleepers[k % NAMES]))

/* An event with eight 32-bit numbers. */
static __always_inline void call_balance(u32 key)
{
	call(sched_ext_bypass_lb, TYPES(u32, u32, u32, u32, u32, u32, u32, u32), key, key + 1, key + 2, key + 3,
	     key + 4, key + 5, key + 6, key + 7);
}
EVENT(balance, call_balance(key))

/* Its probes may fault, so another lock protects them. */
static void call_sys_enter(long id)
{
	if (static_key_enabled(&sys_enter->key)) {
		rhist_guard_faultable();
		((int (*)(void *, struct pt_regs *, long))sys_enter->iterator)(NULL, &regs, id);
	}
}
EVENT(syscall, call_sys_enter(k))

/* Target of kprobes and fprobes. */
void rhist_bench_probed(u32 key);
noinline void rhist_bench_probed(u32 key)
{
	barrier_data(&key);
}
EVENT(kprobe, rhist_bench_probed(key))

static struct tracepoint *const cpu_frequency = &__tracepoint_cpu_frequency;
static struct tracepoint *const ping = &__tracepoint_watchdog_ping;
static struct tracepoint *const number = &__tracepoint_number;
static struct tracepoint *const kmalloc_tracepoint = &__tracepoint_kmalloc;

static DEFINE_PER_CPU(u64, counter);

/* Ignores its arguments. Counts may get lost, as nobody reads them. */
static void count_one(void *data)
{
	raw_cpu_inc(counter);
}

#ifdef CONFIG_KPROBES
static int count_kprobe(struct kprobe *kprobe, struct pt_regs *regs)
{
	raw_cpu_inc(counter);
	return 0;
}

static struct kprobe kprobe;

static int connect_kprobe(bool connect)
{
	if (!connect) {
		unregister_kprobe(&kprobe);
		return 0;
	}
	/* Clear the state of an earlier registration. */
	kprobe = (struct kprobe){ .symbol_name = "rhist_bench_probed", .pre_handler = count_kprobe };
	return register_kprobe(&kprobe);
}
#endif

#ifdef CONFIG_FPROBE
static int count_fprobe(struct fprobe *fprobe, unsigned long ip, unsigned long ret_ip, struct ftrace_regs *regs, void *data)
{
	raw_cpu_inc(counter);
	return 0;
}

static struct fprobe fprobe;

static int connect_fprobe(bool connect)
{
	if (!connect)
		return unregister_fprobe(&fprobe);
	fprobe = (struct fprobe){ .entry_handler = count_fprobe };
	return register_fprobe(&fprobe, "rhist_bench_probed", NULL);
}
#endif

static const struct event {
	const char *name;
	u32 (*fire)(u32 first, u32 keys, u32 k, u64 count);
	struct tracepoint *const *tracepoint;
	/* If it has none. */
	int (*connect)(bool connect);
} events[] = {
	{ "frequency", fire_frequency, &cpu_frequency },
	{ "ping", fire_ping, &ping },
	{ "number", fire_number, &number },
	{ "kmalloc", fire_kmalloc, &kmalloc_tracepoint },
	{ "waking", fire_waking, &sched_waking },
	{ "switch", fire_switch, &sched_switch },
	{ "wakeup", fire_wakeup, &sched_switch },
	{ "queued", fire_queued, &sched_switch },
	{ "grouped", fire_grouped, &sched_switch },
	{ "irq", fire_irq, &irq_handler_entry },
	{ "balance", fire_balance, &sched_ext_bypass_lb },
	{ "syscall", fire_syscall, &sys_enter },
#ifdef CONFIG_KPROBES
	{ "kprobe", fire_kprobe, .connect = connect_kprobe },
#endif
#ifdef CONFIG_FPROBE
	{ "fprobe", fire_kprobe, .connect = connect_fprobe },
#endif
};

static const struct event *find_event(const char *name)
{
	for (int i = 0; i < ARRAY_SIZE(events); i++)
		if (!strcmp(events[i].name, name) && (events[i].connect || *events[i].tracepoint))
			return &events[i];
	return NULL;
}

static struct worker workers[CPUS];
static unsigned int nr_workers;
static atomic_t ready;
static u64 fired, ps;

static int compare(const void *a, const void *b)
{
	return cmp_int(*(const u64 *)a, *(const u64 *)b);
}

static void work(struct worker *w)
{
	u64 size = w->count / PIECES;
	u32 k = w->event->fire(w->first, w->keys, 0, max(w->keys, WARM));

	atomic_inc(&ready);
	while (atomic_read(&ready) < nr_workers)
		cpu_relax();
	for (int i = 0; i < PIECES; i++) {
		u64 began = ktime_get_ns();

		k = w->event->fire(w->first, w->keys, k, size);
		w->pieces[i] = ktime_get_ns() - began;
	}
	sort(w->pieces, PIECES, sizeof(w->pieces[0]), compare, NULL);
	w->ps = div64_u64(1000 * w->pieces[PIECES / 2], size);
}

static int work_thread(void *data)
{
	struct worker *w = data;

	work(w);
	complete(&w->done);
	return 0;
}

static int start_threads(void)
{
	struct task_struct *threads[CPUS];
	unsigned int cpu;

	for (cpu = 0; cpu < nr_workers; cpu++) {
		init_completion(&workers[cpu].done);
		threads[cpu] = kthread_create(work_thread, &workers[cpu], "rhist_bench/%u", cpu);
		if (IS_ERR(threads[cpu])) {
			int error = PTR_ERR(threads[cpu]);

			while (cpu--)
				kthread_stop(threads[cpu]);
			return error;
		}
		kthread_bind(threads[cpu], cpu);
	}
	for (cpu = 0; cpu < nr_workers; cpu++)
		wake_up_process(threads[cpu]);
	for (cpu = 0; cpu < nr_workers; cpu++)
		wait_for_completion(&workers[cpu].done);
	return 0;
}

/* One order at a time: parameters are written under a lock. */
static int set_fire(const char *line, const struct kernel_param *kp)
{
	const struct event *event;
	unsigned int cpus, shared;
	unsigned long long count;
	char name[16];
	int error = 0;
	u32 keys;

	if (sscanf(line, "%15s %u %u %u %llu", name, &cpus, &keys, &shared, &count) != 5)
		return -EINVAL;
	event = find_event(name);
	if (event && event->fire == fire_grouped && !sleepers[NAMES - 1])
		return -ESRCH;
	if (!event || !cpus || cpus > min(CPUS, num_online_cpus()) || !keys || count < PIECES)
		return -EINVAL;
	nr_workers = cpus;
	atomic_set(&ready, 0);
	for (unsigned int cpu = 0; cpu < cpus; cpu++) {
		workers[cpu].event = event;
		workers[cpu].first = shared ? 0 : cpu * keys;
		workers[cpu].keys = keys;
		workers[cpu].count = count;
	}
	if (cpus == 1)
		work(&workers[0]);
	else
		error = start_threads();
	if (error)
		return error;
	ps = 0;
	for (unsigned int cpu = 0; cpu < cpus; cpu++)
		ps += workers[cpu].ps;
	ps /= cpus;
	fired = cpus * (count / PIECES * PIECES + max(keys, WARM));
	return 0;
}

static int get_fire(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%llu %llu\n", fired, ps);
}

static const struct kernel_param_ops fire_ops = { .set = set_fire, .get = get_fire };
module_param_cb(fire, &fire_ops, NULL, 0600);

/* Names the task and the device of the key with this index. Later ones get the same memory. */
static void name(u32 k)
{
	struct task_struct *task = tasks[k % NAMES];

	/* All 16 bytes are the key. */
	memset(task->comm, 0, TASK_COMM_LEN);
	scnprintf(task->comm, TASK_COMM_LEN, "some-worker/%u", k);
	task->pid = PID + k;
	scnprintf(device_names[k % NAMES], sizeof(device_names[0]), "device-%u", k);
}

/* The time of an event, which comes from a task with the pid that belongs to its key. */
static u64 time_one(const struct event *event, u32 k)
{
	pid_t pid = current->pid;
	unsigned long flags;
	u64 began, ended;

	local_irq_save(flags);
	current->pid = PID + k;
	began = get_cycles();
	event->fire(0, U32_MAX, k, 1);
	ended = get_cycles();
	current->pid = pid;
	local_irq_restore(flags);
	return ended - began;
}

/* The times of events. */
static struct times {
	u64 median, longest;
	u32 longest_key;
} times_first, times_again;

/* Events with neighbouring keys, and the time of each. */
struct series {
	u32 first, keys;
	u64 *times;
};

static noinline void time_series(const struct event *event, const struct series *s)
{
	for (u32 i = 0; i < s->keys; i++) {
		name(s->first + i);
		s->times[i] = time_one(event, s->first + i);
	}
}

static struct times sum_up(const struct series *s)
{
	struct times all = {};

	for (u32 i = 0; i < s->keys; i++) {
		if (s->times[i] <= all.longest)
			continue;
		all.longest = s->times[i];
		all.longest_key = s->first + i;
	}
	sort(s->times, s->keys, sizeof(s->times[0]), compare, NULL);
	all.median = s->keys ? s->times[s->keys / 2] : 0;
	return all;
}

static int set_each(const char *line, const struct kernel_param *kp)
{
	const struct event *event;
	char event_name[16];
	struct series all[2];
	unsigned int series = ARRAY_SIZE(all);
	u32 first, keys, again;
	u64 *times;

	if (sscanf(line, "%15s %u %u %u", event_name, &first, &keys, &again) != 4)
		return -EINVAL;
	event = find_event(event_name);
	if (!event || first > EACH_MAX || keys > EACH_MAX || !(first + keys))
		return -EINVAL;
	if (again)
		again = first + keys;
	times = vmalloc_array(keys + again, sizeof(*times));
	if (!times)
		return -ENOMEM;
	all[0] = (struct series){ first, keys, times };
	all[1] = (struct series){ 0, again, times + keys };
	/* One call, not two, so that all events have the same stack. */
	OPTIMIZER_HIDE_VAR(series);
	preempt_disable();
	for (unsigned int i = 0; i < series; i++)
		time_series(event, &all[i]);
	preempt_enable();
	times_first = sum_up(&all[0]);
	times_again = sum_up(&all[1]);
	vfree(times);
	for (int i = 0; i < NAMES; i++)
		name(i);
	return 0;
}

static int get_each(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%llu %llu %u\n%llu %llu %u\n", times_first.median, times_first.longest,
			  times_first.longest_key, times_again.median, times_again.longest, times_again.longest_key);
}

static const struct kernel_param_ops each_ops = { .set = set_each, .get = get_each };
module_param_cb(each, &each_ops, NULL, 0600);

static const struct event *probed;

static void disconnect_probe(void)
{
	if (!probed)
		return;
	if (probed->connect)
		probed->connect(false);
	else
		tracepoint_probe_unregister(*probed->tracepoint, count_one, NULL);
	tracepoint_synchronize_unregister();
	probed = NULL;
}

static int set_probe(const char *line, const struct kernel_param *kp)
{
	const struct event *event;
	char name[16];
	int error;

	disconnect_probe();
	if (sscanf(line, "%15s", name) != 1)
		return -EINVAL;
	if (!strcmp(name, "none"))
		return 0;
	event = find_event(name);
	if (!event)
		return -EINVAL;
	if (event->connect)
		error = event->connect(true);
	else
		error = tracepoint_probe_register(*event->tracepoint, count_one, NULL);
	if (!error)
		probed = event;
	return error;
}

static const struct kernel_param_ops probe_ops = { .set = set_probe };
module_param_cb(probe, &probe_ops, NULL, 0200);

static void forget_tasks(void)
{
	for (int i = 0; i < NAMES; i++) {
		if (sleepers[i])
			put_task_struct(sleepers[i]);
		sleepers[i] = NULL;
	}
}

static int set_tasks(const char *line, const struct kernel_param *kp)
{
	int number, length;

	forget_tasks();
	for (int i = 0; i < NAMES; i++) {
		struct pid *pid;

		if (sscanf(line, "%d%n", &number, &length) != 1)
			return -EINVAL;
		line += length;
		pid = find_get_pid(number);
		sleepers[i] = get_pid_task(pid, PIDTYPE_PID);
		put_pid(pid);
		if (!sleepers[i])
			return -ESRCH;
	}
	return 0;
}

static const struct kernel_param_ops tasks_ops = { .set = set_tasks };
module_param_cb(tasks, &tasks_ops, NULL, 0200);

static noinline void spin(u64 count)
{
	while (count--)
		OPTIMIZER_HIDE_VAR(count);
}

static u64 spun;

static int set_spin(const char *line, const struct kernel_param *kp)
{
	u64 count, began;
	int error = kstrtou64(line, 10, &count);

	if (error)
		return error;
	preempt_disable();
	began = ktime_get_ns();
	spin(count);
	spun = ktime_get_ns() - began;
	preempt_enable();
	return 0;
}

static int get_spin(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%llu\n", spun);
}

static const struct kernel_param_ops spin_ops = { .set = set_spin, .get = get_spin };
module_param_cb(spin, &spin_ops, NULL, 0600);

static struct hrtimer timer;
static ktime_t timer_period;

static enum hrtimer_restart count_tick(struct hrtimer *expired)
{
	raw_cpu_inc(counter);
	hrtimer_forward_now(expired, timer_period);
	return HRTIMER_RESTART;
}

static int set_timer(const char *line, const struct kernel_param *kp)
{
	unsigned int hertz;
	int error = kstrtouint(line, 10, &hertz);

	if (error)
		return error;
	hrtimer_cancel(&timer);
	if (!hertz)
		return 0;
	timer_period = ns_to_ktime(NSEC_PER_SEC / hertz);
	hrtimer_start(&timer, timer_period, HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}

static const struct kernel_param_ops timer_ops = { .set = set_timer };
module_param_cb(timer, &timer_ops, NULL, 0200);

static void find_tracepoint(struct tracepoint *tp, void *data)
{
	if (!strcmp(tp->name, "sched_waking"))
		sched_waking = tp;
	else if (!strcmp(tp->name, "sched_wakeup"))
		sched_wakeup = tp;
	else if (!strcmp(tp->name, "sched_switch"))
		sched_switch = tp;
	else if (!strcmp(tp->name, "irq_handler_entry"))
		irq_handler_entry = tp;
	else if (!strcmp(tp->name, "sys_enter"))
		sys_enter = tp;
	else if (!strcmp(tp->name, "sched_ext_bypass_lb"))
		sched_ext_bypass_lb = tp;
}

static void free_tasks(void)
{
	for (int i = 0; i < NAMES; i++)
		vfree(tasks[i]);
}

static int __init rhist_bench_init(void)
{
	hrtimer_setup(&timer, count_tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	for_each_kernel_tracepoint(find_tracepoint, NULL);
	if (!sched_waking || !sched_wakeup || !sched_switch || !irq_handler_entry || !sys_enter)
		return -ENOENT;
	for (int i = 0; i < NAMES; i++) {
		/* Memory with the members that the events read, in place of tasks. */
		tasks[i] = vzalloc(sizeof(struct task_struct));
		if (!tasks[i]) {
			free_tasks();
			return -ENOMEM;
		}
		tasks[i]->prio = 120;
#ifdef CONFIG_CGROUPS
		/* The root, which this task never leaves. */
		RCU_INIT_POINTER(tasks[i]->cgroups, rcu_dereference_raw(init_task.cgroups));
#endif
		devices[i].name = device_names[i];
		name(i);
	}
	return 0;
}

static void __exit rhist_bench_exit(void)
{
	hrtimer_cancel(&timer);
	disconnect_probe();
	forget_tasks();
	free_tasks();
}

module_init(rhist_bench_init);
module_exit(rhist_bench_exit);
MODULE_DESCRIPTION("Fires trace events in a loop and takes the time");
MODULE_LICENSE("GPL");
/* rhist has probes only for modules of the kernel's own source. */
MODULE_INFO(intree, "Y");
