// SPDX-License-Identifier: GPL-2.0
/*
 * Nothing is lost in silence: with a thread on every CPU firing a known number of events, hits
 * equal the sum of the hitcounts, and hits and drops together equal the events, to the digit. The
 * same goes for the values in the buckets of a distribution together with those outside them, and
 * for hits together with the events that a filter has rejected.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "tracing.h"

#define EVENT "syscalls/sys_enter_getpgid"

static pthread_barrier_t start;

struct firing {
	int cpu;
	unsigned long first, keys, events;	/* key of event i: first + i % keys */
};

static void *fire(void *arg)
{
	struct firing *f = arg;

	pin(f->cpu);
	pthread_barrier_wait(&start);
	for (unsigned long i = 0; i < f->events; i++)
		syscall(SYS_getpgid, f->first + i % f->keys);
	return NULL;
}

static volatile bool stop_reading;
static unsigned long reads, bad_reads;

/* Reads under load: every text must be whole, and no sum may exceed the number of events fired. */
static void *read_on(void *most)
{
	const char *path = pathf("%s/events/" EVENT "/hist", tracing_dir());
	struct totals t;

	while (!stop_reading) {
		if (!read_totals(path, &t) || t.lines != t.entries || t.sum > *(unsigned long *)most)
			bad_reads++;
		reads++;
		sched_yield();
	}
	return NULL;
}

/*
 * keys: number of different ones; shared: all threads use the same ones; size: of the map, which
 * limits the entries.
 */
static void count(const char *name, unsigned long keys, bool shared, unsigned long per_thread, unsigned long size,
		  bool reading)
{
	const char *trigger = pathf("%s/events/" EVENT "/trigger", tracing_dir());
	const char *hist = pathf("%s/events/" EVENT "/hist", tracing_dir());
	int threads = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned long events = per_thread * threads;
	unsigned long distinct = shared ? keys : keys * threads;
	unsigned long entries = distinct < size ? distinct : size;
	pthread_t thread[threads], reader;
	struct firing firing[threads];
	struct totals t;
	int error;

	truncate_file(trigger);
	error = append(trigger, pathf("hist:keys=pid:size=%lu", size));
	if (error) {
		ok(false, "%s: %s", name, errno_name(error));
		return;
	}
	pthread_barrier_init(&start, NULL, threads);
	for (int i = 0; i < threads; i++) {
		firing[i] = (struct firing){ i, shared ? 1 : 1 + i * keys, keys, per_thread };
		pthread_create(&thread[i], NULL, fire, &firing[i]);
	}
	stop_reading = false;
	reads = bad_reads = 0;
	if (reading)
		pthread_create(&reader, NULL, read_on, &events);
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	if (reading) {
		stop_reading = true;
		pthread_join(reader, NULL);
		ok(reads && !bad_reads, "%s: %lu of %lu reads meanwhile were sound", name, reads - bad_reads, reads);
	}
	if (!read_totals(hist, &t)) {
		ok(false, "%s: the histogram can be read", name);
		return;
	}
	ok(t.hits == t.sum, "%s: %llu hits are the sum of the hitcounts", name, t.hits);
	if (t.hits != t.sum)
		note("sum %llu", t.sum);
	ok(t.hits + t.dropped == events, "%s: %llu hits and %llu drops are %lu events", name, t.hits, t.dropped, events);
	ok(t.entries == entries && t.lines == entries, "%s: %llu entries", name, t.entries);
	if (distinct <= size)
		ok(!t.dropped, "%s: none dropped while there is room", name);
	/* Every key is fired equally often when nothing is dropped. */
	if (distinct <= size && per_thread % keys == 0) {
		unsigned long each = per_thread / keys * (shared ? threads : 1);
		char *text = slurp(hist), *p = text;
		unsigned long wrong = 0;

		while (p && (p = strstr(p, " hitcount: "))) {
			p += strlen(" hitcount: ");
			wrong += strtoul(p, NULL, 10) != each;
		}
		ok(text && !wrong, "%s: each key %lu times", name, each);
		free(text);
	}
	truncate_file(trigger);
}

/* The number behind `name` in the only entry; -1 if it is not there. */
static double number(const char *text, const char *name)
{
	const char *entry = text ? strstr(text, "\n{ ") : NULL, *p = entry ? strstr(entry, name) : NULL;

	return p && p < strchr(entry + 1, '\n') ? strtod(p + strlen(name), NULL) : -1;
}

/* Reads under load: extremes, average and quantiles are in their order. */
static void *read_values(void *unused)
{
	const char *path = pathf("%s/events/" EVENT "/hist", tracing_dir());

	(void)unused;
	while (!stop_reading) {
		char *text = slurp(path);
		double hits = number(text, "hitcount: "), min = number(text, "pid.min: "), max = number(text, "pid.max: ");
		double avg = number(text, "pid.avg: "), count = number(text, " count: "), p50 = number(text, " p50: ");
		double least = number(text, "  min: ");

		/* An empty histogram is fine. */
		if (hits > 0 && !(min <= avg && avg <= max && count == hits && min <= p50 && p50 <= max && least == min))
			bad_reads++;
		reads++;
		free(text);
		sched_yield();
	}
	return NULL;
}

/* The values in all buckets of the only entry, by hist_jsonl. */
static unsigned long long in_buckets(void)
{
	char *text = slurp(pathf("%s/events/" EVENT "/hist_jsonl", tracing_dir())), *p;
	unsigned long long sum = 0;

	p = text ? strstr(text, "\"positive\":{") : NULL;
	for (p = p ? strchr(p, '{') : NULL; p && *p != '}'; p += strcspn(p, ",}")) {
		p = strchr(p, ':');
		if (p)
			sum += strtoull(++p, &p, 10);
	}
	free(text);
	return sum;
}

/*
 * Each thread fires the values from 1 to `most` equally often. With `buckets` for each of 128
 * entries there may be too few.
 */
static void distribution(const char *name, const char *dist, unsigned long most, unsigned long per_thread, bool few)
{
	const char *trigger = pathf("%s/events/" EVENT "/trigger", tracing_dir());
	int threads = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned long events = per_thread * threads;
	pthread_t thread[threads], reader;
	struct firing firing[threads];
	unsigned long long sum;
	char *text, *p;
	double lost;
	int error;

	truncate_file(trigger);
	error = append(trigger, pathf("hist:keys=__syscall_nr:vals=pid.min,pid.max,pid.avg,pid.%s:buckets(1):size=128", dist));
	if (error) {
		ok(false, "%s: %s", name, errno_name(error));
		return;
	}
	pthread_barrier_init(&start, NULL, threads);
	for (int i = 0; i < threads; i++) {
		firing[i] = (struct firing){ i, 1, most, per_thread };
		pthread_create(&thread[i], NULL, fire, &firing[i]);
	}
	stop_reading = false;
	reads = bad_reads = 0;
	pthread_create(&reader, NULL, read_values, NULL);
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	stop_reading = true;
	pthread_join(reader, NULL);
	ok(reads && !bad_reads, "%s: %lu of %lu reads meanwhile were sound", name, reads - bad_reads, reads);
	text = slurp(pathf("%s/events/" EVENT "/hist", tracing_dir()));
	p = text ? strstr(text, "Without bucket: ") : NULL;
	lost = p ? strtod(p + strlen("Without bucket: "), NULL) : -1;
	sum = in_buckets();
	ok(number(text, "hitcount: ") == events && number(text, " count: ") == events, "%s: %lu values", name, events);
	ok(sum + lost == events && (lost > 0) == few, "%s: %llu in buckets, %.0f without", name, sum, lost);
	ok(number(text, "pid.min: ") == 1 && number(text, "pid.max: ") == most &&
	   number(text, "pid.avg: ") == (1 + most) / 2, "%s: extremes and average", name);
	if (!few) {
		double p50 = number(text, " p50: "), p99 = number(text, " p99: ");

		/* Values of these ranks. */
		double half = (most + 1) / 2, most_of = (most * 99 + 99) / 100;

		ok(p50 >= half / 1.0443 && p50 <= half * 1.0443 && p99 >= most_of / 1.0443 && p99 <= most_of * 1.0443,
		   "%s: p50 is %.1f, p99 is %.1f of %lu", name, p50, p99, most);
	}
	free(text);
	truncate_file(trigger);
}

/* Of the only trigger of an event: its hits, and how many its filter has rejected. */
static void told(const char *event, unsigned long long *hits, unsigned long long *rejected)
{
	char *text = slurp(pathf("%s/events/%s/hist_jsonl", tracing_dir(), event)), *p;

	p = text ? strstr(text, "\"type\":\"trailer\"") : NULL;
	if (!p || sscanf(p, "\"type\":\"trailer\",\"hits\":%llu", hits) != 1)
		*hits = -1;
	p = p ? strstr(p, "\"rejected\":") : NULL;
	if (!p || sscanf(p, "\"rejected\":%llu", rejected) != 1)
		*rejected = -1;
	free(text);
}

static void fire_on_all(unsigned long per_thread)
{
	int threads = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t thread[threads];
	struct firing firing[threads];

	pthread_barrier_init(&start, NULL, threads);
	for (int i = 0; i < threads; i++) {
		firing[i] = (struct firing){ i, 1, 4, per_thread };
		pthread_create(&thread[i], NULL, fire, &firing[i]);
	}
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
}

/* Checks an event's numbers of hits and of rejected hits. */
static void filtered(const char *name, const char *event, unsigned long long hits, unsigned long long rejected)
{
	unsigned long long h, r;

	told(event, &h, &r);
	ok(h == hits && r == rejected, "%s: %llu hits, %llu rejected", name, hits, rejected);
	if (h != hits || r != rejected)
		note("told: %lld hits, %lld rejected", h, r);
}

/* Some of the calls are rejected, on each path that a hit can take to a filter. */
static void rejected(unsigned long per_thread)
{
	static const struct {
		const char *name, *trigger;
	} ways[] = {
		{ "a range", "hist:keys=pid if pid != 2" },
		{ "an expression", "hist:keys=pid if pid == 1 || pid > 2" },
		{ "a key that is no field", "hist:keys=pid.log2,common_pid if pid != 2" },
		{ "a key that is a stack", "hist:keys=common_stacktrace if pid != 2" },
		{ "a stack beside another key", "hist:keys=common_stacktrace,pid if pid != 2" },
		{ "a name of a task", "hist:keys=pid if COMM != \"-\" && pid != 2" },
		{ "a variable is set", "hist:keys=pid:ts0=common_timestamp.usecs if pid != 2" },
	};
	static const char enter[] = EVENT, exit[] = "syscalls/sys_exit_getpgid";
	unsigned long long calls = per_thread * sysconf(_SC_NPROCESSORS_ONLN);
	char trigger[PATH_MAX], at_exit[PATH_MAX], synthetic[PATH_MAX], *stats;

	snprintf(trigger, sizeof(trigger), "%s/events/%s/trigger", tracing_dir(), enter);
	snprintf(at_exit, sizeof(at_exit), "%s/events/%s/trigger", tracing_dir(), exit);
	snprintf(synthetic, sizeof(synthetic), "%s/synthetic_events", kernel_dir());
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		truncate_file(trigger);
		if (append(trigger, ways[i].trigger)) {
			ok(false, "rejected, %s: the trigger is made", ways[i].name);
			continue;
		}
		fire_on_all(per_thread);
		filtered(pathf("rejected, %s", ways[i].name), enter, calls / 4 * 3, calls / 4);
	}
	truncate_file(trigger);
	ok(!append(trigger, "hist:keys=pid:name=rhist_c if pid == 2") && !append(trigger, "hist:keys=__syscall_nr if pid == 2"),
	   "two triggers");
	fire_on_all(per_thread);
	filtered("rejected, two triggers", enter, calls / 4, calls / 4 * 3);
	ok(!append(trigger, "!hist:keys=__syscall_nr if pid == 2"), "one is removed");
	stats = slurp(pathf("%s/hist_stats", tracing_dir()));
	ok(stats && strstr(stats, pathf(" 0 unresolved, 0 missed, %llu rejected\n", calls / 4 * 3)), "hist_stats has it, too");
	free(stats);
	ok(!append(trigger, "hist:keys=pid:name=rhist_c:clear if pid == 2"), "it is cleared");
	filtered("cleared", enter, 0, 0);
	fire_on_all(per_thread);
	filtered("cleared, then rejected", enter, calls / 4, calls / 4 * 3);
	ok(!append(trigger, "hist:keys=pid:name=rhist_c:pause if pid == 2"), "it is paused");
	fire_on_all(per_thread);
	filtered("paused", enter, calls / 4, calls / 4 * 3);
	truncate_file(trigger);

	/* Paths that would read a variable. */
	ok(!append(trigger, "hist:keys=pid:ts0=common_timestamp.usecs") && !append(synthetic, "rhist_c u64 lat"),
	   "a variable, and a synthetic event");
	for (int traced = 0; traced < 2; traced++) {
		const char *command = pathf("hist:keys=ret:lat=common_timestamp.usecs-$ts0%s if ret == 1000000",
					    traced ? ":onmatch(syscalls.sys_enter_getpgid).trace(rhist_c,$lat)" : "");

		ok(!append(at_exit, command), "%s", command);
		fire_on_all(per_thread);
		filtered(pathf("rejected, a variable is read%s", traced ? " and passed on" : ""), exit, 0, calls);
		truncate_file(at_exit);
	}
	truncate_file(trigger);
	ok(!append(synthetic, "!rhist_c"), "the synthetic event can be removed");
}

/* The counts of a CPU stay after it goes offline. */
static void hotplug(void)
{
	const char *hist = pathf("%s/events/" EVENT "/hist", tracing_dir());
	const char *trigger = pathf("%s/events/" EVENT "/trigger", tracing_dir());
	int last = sysconf(_SC_NPROCESSORS_CONF) - 1;
	char online[64];
	struct totals t;

	snprintf(online, sizeof(online), "/sys/devices/system/cpu/cpu%d/online", last);
	if (last < 1 || access(online, W_OK)) {
		skip("no CPU can go offline", "counts of a CPU that goes");
		return;
	}
	if (append(trigger, "hist:keys=pid:size=128"))
		die("a trigger");
	pin(last);
	for (int i = 0; i < 1000; i++)
		syscall(SYS_getpgid, i % 10);
	pin(0);
	ok(!put_len(online, 0, "0", 1), "CPU %d goes offline", last);
	ok(read_totals(hist, &t) && t.hits == 1000 && t.sum == 1000 && t.entries == 10, "its 1000 hits stay");
	for (int i = 0; i < 1000; i++)
		syscall(SYS_getpgid, i % 10);
	ok(!append(trigger, "hist:keys=common_pid:size=128"), "a trigger is made meanwhile");
	ok(!put_len(online, 0, "1", 1), "CPU %d comes back", last);
	pin(last);
	for (int i = 0; i < 1000; i++)
		syscall(SYS_getpgid, i % 10);
	pin(0);
	ok(read_totals(hist, &t) && t.hits == 3000, "and goes on counting: %llu hits", t.hits);
	ok(!append(trigger, "!hist:keys=pid") && read_totals(hist, &t) && t.hits == 1000 && t.sum == 1000 && t.entries == 1,
	   "in the new one too");
	truncate_file(trigger);
}

int main(void)
{
	unsigned long n = long_run() ? 200000 : 20000;

	count("one key on all CPUs", 1, true, n, 2048, false);
	count("4 keys on all CPUs", 4, true, n, 2048, false);
	count("4 keys, read meanwhile", 4, true, n, 128, true);
	count("1000 keys on all CPUs", 1000, true, n, 1024, false);
	count("32 keys for each CPU, a full map", 32, false, n, 128, false);
	count("500 keys for each CPU, read meanwhile", 500, false, n, 2048, true);
	count("more keys than size", 1000, true, n, 128, false);
	count("more keys than size, read meanwhile", 1000, false, n, 128, true);
	count("one key more than size", 129, true, n, 128, false);
	count("many keys, a big map", 10000, false, 10000, 65536, false);
	if (!testing_c()) {
		distribution("a distribution", "dist", 1000, n, false);
		distribution("one value", "dist", 1, n, false);
		distribution("a distribution without room", "dist=5", 10000, n, true);
		rejected(n);
	}
	hotplug();
	/* The race for the last places, again and again. */
	for (int i = 0; i < (long_run() ? 200 : 10); i++)
		count(pathf("race for the last places %d", i), 200, true, 200, 128, false);
	finish();
}
