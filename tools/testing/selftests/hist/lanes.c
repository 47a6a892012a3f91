// SPDX-License-Identifier: GPL-2.0
/*
 * Every CPU counts in every context: hits and sums are exact, in the histograms and in the
 * intervals of a reader; also if the map grows, or is full and sums up the rest. More than 31 CPUs
 * share counters.
 */
#define _GNU_SOURCE
#include "events.h"
#include "intervals.h"

#define EVENT "rhist_events/wake"
#define MOST_CPUS 512

/* Events of a CPU in each context, and their keys. */
#define COUNT 1000
#define KEYS 100

static const char *const triggers[] = {
	"hist:keys=key:vals=amount,level.min,level.max:size=128", "hist:keys=level,task:vals=amount,level.dist:size=128..1024",
	"hist:keys=common_cpu,level:vals=amount:size=128:full(other)",
};

#define TRIGGERS (sizeof(triggers) / sizeof(*triggers))

struct post {
	pthread_t thread;
	int cpu, error;
};

/* Neighbours are in different contexts at the same time. */
static void *fire(void *arg)
{
	struct post *p = arg;
	int all = contexts_there();

	pin(p->cpu);
	for (int i = 0; i < all && !p->error; i++)
		p->error = append("/dev/rhist_events",
				  pathf("wake %s %d 1 %d %d", contexts[(p->cpu + i) % all], p->cpu, COUNT, KEYS));
	return NULL;
}

/* Adds the hits and the amounts of a row, or of `other`. */
static void add(const char *text, unsigned long long *hits, unsigned long long *sum)
{
	unsigned long long of[2] = { 0 };

	sscanf(strstr(text, "\"values\":["), "\"values\":[%llu,%llu", &of[0], &of[1]);
	*hits += of[0];
	*sum += of[1];
}

static void adds_up(int cpus, const struct part *p)
{
	unsigned long long events = (unsigned long long)cpus * contexts_there() * COUNT;
	unsigned long long amount = events / KEYS * 10 * (KEYS * (KEYS + 1) / 2);
	unsigned long long hits = 0, sum = 0;
	const char *line;

	for (line = p->rows; !strncmp(line, "{\"type\":\"entry\"", 15); line = strchr(line, '\n') + 1)
		add(line, &hits, &sum);
	if (p->other)
		add(p->other, &hits, &sum);
	if (!ok(hits == events && p->hits == events && sum == amount && !p->dropped,
		"%s: %llu hits on %d CPUs, with amounts of %llu", p->trigger, events, cpus, amount))
		note("%llu hits, %llu in rows and other, %llu dropped, amounts of %llu", p->hits, hits, p->dropped, sum);
}

int main(void)
{
	static struct post posts[MOST_CPUS];
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct accounts whole = { 0 };
	struct interval_reader reader = { .pause_ms = 100 };
	struct part p[TRIGGERS];
	const char *error;
	char *text;

	load_events();
	if (event_source < 0)
		die("the module rhist_events");
	cpus = cpus < MOST_CPUS ? cpus : MOST_CPUS;
	reader.fd = open(in_event(EVENT, "hist_delta_jsonl"), O_RDONLY | O_CLOEXEC);
	for (unsigned int i = 0; i < TRIGGERS; i++)
		add_trigger(EVENT, triggers[i]);
	pthread_create(&reader.thread, NULL, add_intervals, &reader);
	for (int cpu = 0; cpu < cpus; cpu++) {
		posts[cpu].cpu = cpu;
		pthread_create(&posts[cpu].thread, NULL, fire, &posts[cpu]);
	}
	for (int cpu = 0; cpu < cpus; cpu++) {
		pthread_join(posts[cpu].thread, NULL);
		if (posts[cpu].error)
			ok(false, "CPU %d: %s", cpu, errno_name(posts[cpu].error));
	}
	__atomic_store_n(&reader.last, true, __ATOMIC_RELEASE);
	pthread_join(reader.thread, NULL);
	text = slurp(in_event(EVENT, "hist_jsonl"));
	error = reader.error ?: add_text(&whole, text);
	if (ok(parts_of(text, p, TRIGGERS) == TRIGGERS, "all histograms are whole"))
		for (unsigned int i = 0; i < TRIGGERS; i++)
			adds_up(cpus, &p[i]);
	for (int i = 0; i < whole.n && !error; i++) {
		struct account *of = NULL;

		for (int j = 0; j < reader.accounts.n; j++)
			if (!strcmp(reader.accounts.all[j].trigger, whole.all[i].trigger))
				of = &reader.accounts.all[j];
		error = of ? difference(of, &whole.all[i], NULL) : "a histogram was not read";
	}
	if (!ok(!error && whole.n == TRIGGERS && reader.rounds > 1,
		"the sums of %lu intervals of each are the histograms", reader.rounds))
		note("%s", error ?: "few rounds");
	free(text);
	close(reader.fd);
	truncate_file(in_event(EVENT, "trigger"));
	unload_events();
	finish();
}
