// SPDX-License-Identifier: GPL-2.0
/* Triggers come and go, and are read, under events from every CPU. */
#define _GNU_SOURCE
#include <pthread.h>

#include "tracing.h"

#define EVENT "syscalls/sys_enter_getpgid"

static volatile bool stop;
static const char *const sources[] = { EVENT, "kprobes/rhist_l", "sched/sched_waking", "sched/sched_switch" };

/* Load: system calls, and with them the probe; sleeping makes the scheduler's events. */
static void *fire_load(void *cpu)
{
	struct timespec t = { 0, 1000 };

	pin((long)cpu);
	for (unsigned long i = 0; !stop; i++) {
		syscall(SYS_getpgid, i % 300);
		if (i % 64 == 0)
			nanosleep(&t, NULL);
	}
	return NULL;
}

struct worker {
	pthread_t thread;
	const char *event, *keys;
	unsigned long done, wrong;
	char why[160];
};

static void wrong(struct worker *w, const char *what, const char *detail)
{
	if (!w->wrong++)
		snprintf(w->why, sizeof(w->why), "%s: %s", what, detail);
}

/*
 * Adds one histogram, reads it, and removes it, while others do so with other keys of the same
 * event.
 */
static void *add_and_remove(void *arg)
{
	struct worker *w = arg;
	char trigger[PATH_MAX], hist[PATH_MAX];
	int error;

	snprintf(trigger, sizeof(trigger), "%s/events/%s/trigger", tracing_dir(), w->event);
	snprintf(hist, sizeof(hist), "%s/events/%s/hist", tracing_dir(), w->event);
	while (!stop) {
		char *text;

		error = append(trigger, pathf("hist:keys=%s:size=128", w->keys));
		if (error)
			wrong(w, "add", errno_name(error));
		text = slurp(hist);
		if (!text || !strstr(text, pathf("hist:keys=%s:", w->keys)))
			wrong(w, "hist has it", text ? text : strerror(errno));
		free(text);
		error = append(trigger, pathf("!hist:keys=%s", w->keys));
		if (error)
			wrong(w, "remove", errno_name(error));
		w->done++;
	}
	return NULL;
}

/* Reads all files of an event; each is whole or empty. */
static void *read_all(void *arg)
{
	struct worker *w = arg;
	/* what each histogram begins and ends with */
	static const struct { const char *name, *head, *tail; } files[] = {
		{ "hist", "# event histogram\n", "\nTotals:\n" },
		{ "trigger", NULL, NULL },
		{ "hist_debug", NULL, NULL },
		{ "hist_jsonl", "{\"type\":\"header\",", ",\"complete\":true}\n" },
		{ "hist_delta", "# event histogram\n", "\nTotals:\n" },
		{ "hist_delta_jsonl", "{\"type\":\"header\",", ",\"complete\":true}\n" },
	};

	while (!stop) {
		for (unsigned int i = 0; i < sizeof(files) / sizeof(*files); i++) {
			const char *path = pathf("%s/events/%s/%s", tracing_dir(), w->event, files[i].name);
			char *text = slurp(path), *p;
			unsigned int heads = 0, tails = 0;

			if (!text) {
				if (i < 2)
					wrong(w, files[i].name, strerror(errno));
				continue;
			}
			for (p = text; files[i].head && (p = strstr(p, files[i].head)); p++)
				heads++;
			for (p = text; files[i].tail && (p = strstr(p, files[i].tail)); p++)
				tails++;
			if (heads != tails)
				wrong(w, "a torn text", pathf("%s: %u heads, %u tails", files[i].name, heads, tails));
			free(text);
		}
		w->done++;
		sched_yield();
	}
	return NULL;
}

static void under_load(long ms)
{
	static struct worker workers[] = {
		{ .event = EVENT, .keys = "pid" },
		{ .event = EVENT, .keys = "common_pid" },
		{ .event = "kprobes/rhist_l", .keys = "pid" },
		{ .event = "sched/sched_waking", .keys = "comm" },
		{ .event = "sched/sched_switch", .keys = "next_pid" },
		{ .event = EVENT },
		{ .event = "sched/sched_waking" },
	};
	const unsigned int n = sizeof(workers) / sizeof(*workers);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t loads[cpus];

	for (long i = 0; i < cpus; i++)
		pthread_create(&loads[i], NULL, fire_load, (void *)i);
	for (unsigned int i = 0; i < n; i++)
		pthread_create(&workers[i].thread, NULL, workers[i].keys ? add_and_remove : read_all, &workers[i]);
	sleep_ms(ms);
	stop = true;
	for (unsigned int i = 0; i < n; i++)
		pthread_join(workers[i].thread, NULL);
	for (long i = 0; i < cpus; i++)
		pthread_join(loads[i], NULL);
	for (unsigned int i = 0; i < n; i++) {
		struct worker *w = &workers[i];

		ok(w->done && !w->wrong, "%s %s on %s: %lu times", w->keys ? "added and removed" : "read",
		   w->keys ? w->keys : "all", w->event, w->done);
		if (w->wrong)
			note("%lu wrong, the first: %s", w->wrong, w->why);
	}
	stop = false;
}

/* The text of the trigger file of an event without triggers. */
static bool idle(const char *event)
{
	char *text = slurp(pathf("%s/events/%s/trigger", tracing_dir(), event));
	bool is = text && !strncmp(text, "# Available triggers:\n", 22);

	free(text);
	return is;
}

/* Truncation against addition: the last one wins, and nothing breaks. */
static void *truncate_on(void *arg)
{
	struct worker *w = arg;
	int error;

	while (!stop) {
		error = truncate_file(pathf("%s/events/" EVENT "/trigger", tracing_dir()));
		if (error)
			wrong(w, "truncate", errno_name(error));
		w->done++;
		sched_yield();
	}
	return NULL;
}

static void *add_on(void *arg)
{
	struct worker *w = arg;
	int error;

	while (!stop) {
		error = append(pathf("%s/events/" EVENT "/trigger", tracing_dir()), "hist:keys=pid:size=128");
		if (error && error != -EEXIST)
			wrong(w, "add", errno_name(error));
		w->done++;
	}
	return NULL;
}

static void truncation(long ms)
{
	static struct worker workers[4];
	pthread_t loads;

	pthread_create(&loads, NULL, fire_load, 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&workers[i].thread, NULL, i < 2 ? truncate_on : add_on, &workers[i]);
	sleep_ms(ms);
	stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(workers[i].thread, NULL);
	pthread_join(loads, NULL);
	stop = false;
	for (int i = 0; i < 4; i++) {
		ok(workers[i].done && !workers[i].wrong, "%s %lu times", i < 2 ? "truncated" : "added", workers[i].done);
		if (workers[i].wrong)
			note("%s", workers[i].why);
	}
	truncate_file(pathf("%s/events/" EVENT "/trigger", tracing_dir()));
	ok(idle(EVENT), "and nothing is left");
}

/* A trigger keeps its event. */
static void event_in_use(void)
{
	const char *trigger = "events/kprobes/rhist_l/trigger";
	char synthetic[PATH_MAX], *text;

	snprintf(synthetic, sizeof(synthetic), "%s/synthetic_events", kernel_dir());

	ok(!append(pathf("%s/%s", tracing_dir(), trigger), "hist:keys=pid"), "a trigger on a kprobe event");
	ok(append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_l") == -EBUSY, "which cannot be deleted then: EBUSY");
	syscall(SYS_getpgid, 7);
	text = slurp(pathf("%s/events/kprobes/rhist_l/hist", tracing_dir()));
	ok(text && strstr(text, "{ pid:          7 } hitcount:          1\n"), "and goes on counting");
	free(text);
	ok(!append(pathf("%s/%s", tracing_dir(), trigger), "!hist:keys=pid"), "the trigger is removed");
	ok(!append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_l"), "and the event can be deleted");
	ok(access(pathf("%s/events/kprobes/rhist_l", tracing_dir()), F_OK) && errno == ENOENT, "it is gone");

	ok(!append(synthetic, "rhist_k u64 a") && !append(synthetic, "rhist_l u64 a"), "a synthetic event, behind another");
	ok(!append(pathf("%s/events/synthetic/rhist_l/trigger", tracing_dir()), "hist:keys=a"), "takes a trigger");
	ok(append(synthetic, "!rhist_l") == -EBUSY, "cannot be deleted then: EBUSY");
	ok(truncate_file(synthetic) == -EBUSY, "nor can all of them");
	ok(!append(synthetic, "!rhist_k"), "which leaves those that are listed before it");
	ok(!truncate_file(pathf("%s/events/synthetic/rhist_l/trigger", tracing_dir())), "the trigger goes by truncation");
	ok(!truncate_file(synthetic), "and all events can be deleted");
}

/* Returns whether an event was deleted meanwhile; ESTALE: in both walks of the VFS to its file. */
static bool is_gone(int error)
{
	return error == -ENOENT || error == -ENODEV || error == -ESTALE;
}

/* Events of the same name come and go while their files are opened, read and written. */
static void *make_and_delete(void *arg)
{
	struct worker *w = arg;
	int error;

	while (!stop) {
		error = append(pathf("%s/kprobe_events", kernel_dir()), "p:rhist_m " SYS_FUNCTION("getpgid") " pid=" SYS_ARGUMENT ":u64");
		if (error && error != -EEXIST)
			wrong(w, "make", errno_name(error));
		do
			error = append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_m");
		while (error == -EBUSY && !stop);
		if (error && error != -EBUSY)
			wrong(w, "delete", errno_name(error));
		w->done++;
	}
	return NULL;
}

static void *use(void *arg)
{
	struct worker *w = arg;
	const char *dir = pathf("%s/events/kprobes/rhist_m", tracing_dir());
	int error;

	while (!stop) {
		error = append(pathf("%s/trigger", dir), "hist:keys=pid:size=128");
		if (error && !is_gone(error) && error != -EEXIST)
			wrong(w, "add", errno_name(error));
		free(slurp(pathf("%s/hist", dir)));
		free(slurp(pathf("%s/hist_debug", dir)));
		free(slurp(pathf("%s/hist_jsonl", dir)));
		free(slurp(pathf("%s/hist_delta", dir)));
		error = append(pathf("%s/trigger", dir), "!hist:keys=pid");
		if (error && !is_gone(error))
			wrong(w, "remove", errno_name(error));
		w->done++;
		syscall(SYS_getpgid, 7);
	}
	return NULL;
}

static void coming_and_going(long ms)
{
	static struct worker maker, users[2];

	pthread_create(&maker.thread, NULL, make_and_delete, &maker);
	for (int i = 0; i < 2; i++)
		pthread_create(&users[i].thread, NULL, use, &users[i]);
	sleep_ms(ms);
	stop = true;
	pthread_join(maker.thread, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(users[i].thread, NULL);
	stop = false;
	ok(maker.done && !maker.wrong, "an event made and deleted %lu times", maker.done);
	if (maker.wrong)
		note("%s", maker.why);
	for (int i = 0; i < 2; i++) {
		ok(users[i].done && !users[i].wrong, "while it was used %lu times", users[i].done);
		if (users[i].wrong)
			note("%s", users[i].why);
	}
	append(pathf("%s/events/kprobes/rhist_m/trigger", tracing_dir()), "!hist:keys=pid");
	append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_m");
	ok(access(pathf("%s/events/kprobes/rhist_m", tracing_dir()), F_OK), "and it is gone in the end");
}

int main(void)
{
	long scale = long_run() ? 20 : 1;

	append(pathf("%s/kprobe_events", kernel_dir()), "p:rhist_l " SYS_FUNCTION("getpgid") " pid=" SYS_ARGUMENT ":u64");
	for (unsigned int i = 0; i < sizeof(sources) / sizeof(*sources); i++)
		truncate_file(pathf("%s/events/%s/trigger", tracing_dir(), sources[i]));
	under_load(8000 * scale);
	for (unsigned int i = 0; i < sizeof(sources) / sizeof(*sources); i++)
		ok(idle(sources[i]), "nothing is left on %s", sources[i]);
	truncation(3000 * scale);
	event_in_use();
	coming_and_going(4000 * scale);
	append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_l");
	finish();
}
