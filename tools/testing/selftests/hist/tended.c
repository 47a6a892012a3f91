// SPDX-License-Identifier: GPL-2.0
/*
 * Histograms that grow or lose entries: hits of every context wake their worker, also hits of its
 * own wakeup; they may be cleared, removed and unloaded at any step, beside readers of intervals.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "events.h"

#define EVENT "rhist_events/wake"
#define GROWS "hist:keys=level:size=128..16384"

/* Fires an event `count` times, with as many keys from `first` on. */
static void fire(const char *context, unsigned long first, unsigned long count)
{
	const char *order = pathf("wake %s 0 %lu %lu %lu", context, first, count, count);

	if (write(event_source, order, strlen(order)) < 0)
		die("%s: %s", order, strerror(errno));
}

static void reset(void)
{
	truncate_file(in_event(EVENT, "trigger"));
}

/* Each context makes a map grow from 128 places to 16,384. */
static void grows(void)
{
	for (int i = 0; i < contexts_there(); i++) {
		unsigned long fired = 0, next = 100;
		struct totals t = {};

		add_trigger(EVENT, GROWS);
		while (fired < 16384) {
			if (fired + next > 16384)
				next = 16384 - fired;
			if (!await_stat(EVENT, AHEAD, next)) {
				note("%lu keys, %ld places ahead", fired, stat_of(EVENT, AHEAD));
				break;
			}
			fire(contexts[i], fired, next);
			fired += next;
			next = 3 * fired;
		}
		if (!ok(read_totals(in_event(EVENT, "hist"), &t) && t.entries == 16384 && t.hits == 16384 && !t.dropped,
			"hits in %s make a histogram grow, from 128 entries to 16,384, and none is dropped", contexts[i]))
			note("%llu entries, %llu hits, %llu dropped", t.entries, t.hits, t.dropped);
		reset();
	}
}

/* Without pauses: some hits may be dropped, and none is lost. */
static void floods(void)
{
	struct totals t = {};

	add_trigger(EVENT, GROWS);
	for (int round = 0; round < 4; round++)
		for (int i = 0; i < contexts_there(); i++)
			for (unsigned long first = 0; first < 20000; first += 1000)
				fire(contexts[i], first, 1000);
	if (!ok(read_totals(in_event(EVENT, "hist"), &t) && t.hits == t.sum && t.entries == t.lines &&
		t.hits + t.dropped == 80000ull * contexts_there(), "in a flood, hits and drops are the events"))
		note("%llu hits, %llu dropped, %llu entries", t.hits, t.dropped, t.entries);
	reset();
}

/* Events that are fired while the worker is woken, and by the worker itself. */
static const struct { const char *event, *keys; } on[] = {
	{ "ipi/ipi_send_cpu", "callsite" }, { "msr/write_msr", "msr,val" },
	{ "irq_vectors/irq_work_entry", "vector,common_pid" }, { "irq_vectors/irq_work_exit", "vector,common_pid" },
	{ "kprobes/rhist_t", "common_timestamp" }, { "fprobes/rhist_t", "common_timestamp" },
	{ "workqueue/workqueue_execute_start", "work,common_timestamp" },
	{ "workqueue/workqueue_execute_end", "work,common_timestamp" },
	{ "workqueue/workqueue_queue_work", "work,common_timestamp" },
	{ "workqueue/workqueue_activate_work", "work,common_timestamp" },
	{ "sched/sched_waking", "common_timestamp" }, { "sched/sched_switch", "common_timestamp" },
	{ "timer/timer_start", "common_timestamp" }, { "timer/hrtimer_start", "common_timestamp" },
};

static const char *const rooms[] = { "size=128..131072", "size=128:full(recycle)", "size=128..1024:expire(1s):full(recycle,other)" };

static void woken(void)
{
	int there = 0;

	append(pathf("%s/kprobe_events", kernel_dir()), "p:rhist_t irq_work_queue");
	append(pathf("%s/dynamic_events", kernel_dir()), "f:fprobes/rhist_t irq_work_queue");
	for (unsigned int room = 0; room < sizeof(rooms) / sizeof(*rooms); room++) {
		for (unsigned int i = 0; i < sizeof(on) / sizeof(*on); i++)
			if (!append(in_event(on[i].event, "trigger"), pathf("hist:keys=%s:%s", on[i].keys, rooms[room])))
				there++;
		add_trigger(EVENT, GROWS);
		for (unsigned long first = 0; first < 16384; first += 512) {
			fire(contexts[first / 512 % contexts_there()], first, 512);
			sleep_ms(5);
		}
		for (unsigned int i = 0; i < sizeof(on) / sizeof(*on); i++) {
			struct totals t;

			if (read_totals(in_event(on[i].event, "hist"), &t) && t.lines > t.entries + 1)
				ok(false, "%s, %s: %llu lines of %llu entries", on[i].event, rooms[room], t.lines, t.entries);
			truncate_file(in_event(on[i].event, "trigger"));
		}
		reset();
	}
	append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_t");
	append(pathf("%s/dynamic_events", kernel_dir()), "-:fprobes/rhist_t");
	ok(there, "events of its own wakeup wake the worker: %d histograms of them", there);
}

/* Returns the hits of the named histogram, with drops. */
static unsigned long long all_hits(void)
{
	struct totals t = {};

	read_totals(in_event(EVENT, "hist"), &t);
	return t.hits + t.dropped;
}

/*
 * A full histogram of the worker's own events: each has a key that finds no place, and so asks the
 * worker, which does not work on for that.
 */
static void rests(void)
{
	static const char *const full[] = { "size=128:full(recycle)", "size=128:expire(1h)", "size=128..256:expire(1h):full(recycle,other)" };

	append(pathf("%s/kprobe_events", kernel_dir()), "p:rhist_t irq_work_queue");
	for (unsigned int room = 0; room < sizeof(full) / sizeof(*full); room++) {
		char *trigger = strdup(pathf("hist:name=rhist_t:keys=common_timestamp:%s", full[room]));
		const char *most = "none";
		unsigned long long hits, highest = 0;

		for (unsigned int i = 0; i < sizeof(on) / sizeof(*on); i++) {
			/* Others fire these all the time. */
			if (!strncmp(on[i].event, "timer/hr", 8) || !strncmp(on[i].event, "msr/", 4))
				continue;
			add_trigger(EVENT, trigger);
			if (!append(in_event(on[i].event, "trigger"), trigger)) {
				for (int n = 0; n < 3; n++, sleep_ms(300))
					fire("task", 0, 2000);
				hits = all_hits();
				sleep_ms(1000);
				hits = all_hits() - hits;
				if (hits > highest) {
					highest = hits;
					most = on[i].event;
				}
				truncate_file(in_event(on[i].event, "trigger"));
			}
			reset();
		}
		free(trigger);
		ok(highest < 2000, "%s, full of events of its worker: at most %llu in a second, of %s", full[room], highest, most);
	}
	append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_t");
}

/* While all triggers of a histogram are paused, no time passes for its entries. */
static void pauses(void)
{
	static const char trigger[] = "hist:keys=level:size=128:expire(1s)";
	struct totals t = {};

	add_trigger(EVENT, trigger);
	fire("task", 0, 100);
	ok(await_stat(EVENT, EXPIRED, 100), "entries without hits expire after a second");
	ok(read_totals(in_event(EVENT, "hist"), &t) && t.entries == 0, "they are gone");
	fire("task", 0, 100);
	append(in_event(EVENT, "trigger"), pathf("%s:pause", trigger));
	sleep_ms(3000);
	ok(read_totals(in_event(EVENT, "hist"), &t) && t.entries == 100 && stat_of(EVENT, EXPIRED) == 100, "none expires while the trigger is paused");
	append(in_event(EVENT, "trigger"), pathf("%s:cont", trigger));
	ok(await_stat(EVENT, EXPIRED, 200), "they expire when it goes on");
	reset();
	/* Two triggers of one histogram: one that is not paused is enough. */
	add_trigger(EVENT, pathf("%s:name=rhist_t", trigger));
	add_trigger(EVENT, "hist:keys=level:name=rhist_t:pause if level > 1000");
	fire("task", 0, 100);
	ok(await_stat(EVENT, EXPIRED, 100), "entries of several triggers expire unless all are paused");
	append(in_event(EVENT, "trigger"), pathf("%s:name=rhist_t:pause", trigger));
	append(in_event(EVENT, "trigger"), "hist:keys=level:name=rhist_t:cont if level > 1000");
	fire("task", 2000, 100);
	ok(await_stat(EVENT, EXPIRED, 200), "of either");
	reset();
}

static volatile bool stop;

/*
 * On a slow kernel it sleeps, too: a task that is always preempted within the kernel holds up a
 * grace period of RCU tasks there for minutes, and with it the end of a kprobe or an fprobe.
 */
static void *fire_always(void *arg)
{
	for (unsigned long first = 0; !stop; first = (first + 500) % 100000) {
		fire("task", first, 500);
		if (slow_kernel())
			sleep_ms(1);
	}
	return arg;
}

/* Reads intervals, so that cuts come while tables are replaced. */
static void *read_always(void *rounds)
{
	while (!stop) {
		int fd = open(in_event(EVENT, "hist_delta"), O_RDONLY | O_CLOEXEC);
		char buffer[65536];

		for (int round = 0; fd >= 0 && round < 3 && !stop; round++) {
			while (read(fd, buffer, sizeof(buffer)) > 0)
				;
			++*(unsigned long *)rounds;
		}
		close(fd);
		sched_yield();
	}
	return NULL;
}

/* Histograms are cleared and removed at any step, with readers of intervals. */
static void cleared(void)
{
	static const char *const rooms[] = {
		"size=128..65536", "size=1024:expire(1s)", "size=128..4096:expire(1s):full(recycle)", "size=256:full(recycle,other)",
	};
	double until = now() + (long_run() ? 60 : 10);
	unsigned long rounds = 0, clears = 0;
	pthread_t load, reader;

	stop = false;
	pthread_create(&load, NULL, fire_always, NULL);
	pthread_create(&reader, NULL, read_always, &rounds);
	while (now() < until) {
		const char *trigger = pathf("hist:keys=level:vals=amount,amount.dist:%s", rooms[clears % 4]);

		add_trigger(EVENT, trigger);
		for (int i = 0; i < 6; i++) {
			sleep_ms(clears * 7 % 40);
			append(in_event(EVENT, "trigger"), pathf("%s:clear", trigger));
			clears++;
		}
		reset();
	}
	stop = true;
	pthread_join(load, NULL);
	pthread_join(reader, NULL);
	ok(clears && rounds, "cleared %lu times at any step, and removed, beside %lu rounds of intervals", clears, rounds);
}

static char ko[PATH_MAX];

/* The module is unloaded at any step. */
static void unloaded(int rounds)
{
	int error = 0, round;
	pthread_t firing;
	char *text;

	stop = false;
	pthread_create(&firing, NULL, fire_always, NULL);
	for (round = 0; round < rounds && !error; round++) {
		add_trigger(EVENT, GROWS);
		add_trigger(EVENT, "hist:keys=level:vals=amount.dist:size=1024..8192:expire(1s)");
		add_trigger(EVENT, "hist:keys=amount:size=128:full(recycle)");
		sleep_ms(round * 13 % 300);
		error = syscall(SYS_delete_module, "rhist", O_NONBLOCK) ? -errno : load_module(ko);
	}
	stop = true;
	pthread_join(firing, NULL);
	if (!ok(!error, "the module is unloaded %d times, at any step", round))
		note("%s", errno_name(error));
	ok(!error && !syscall(SYS_delete_module, "rhist", O_NONBLOCK), "and once more");
	text = slurp("/proc/vmallocinfo");
	ok(text && !strstr(text, "[rhist]"), "no memory of the module's is left in vmalloc");
	free(text);
	ok(!load_module(ko), "and it can be loaded again");
}

int main(void)
{
	const char *module = getenv("RHIST_KO");

	load_events();
	if (event_source < 0)
		die("rhist_events: %s", strerror(errno));
	pin(0);
	grows();
	floods();
	woken();
	rests();
	pauses();
	cleared();
	snprintf(ko, sizeof(ko), "%s", module ?: "");
	unloaded(repeats(20, 10, 200));
	unload_events();
	finish();
}
