// SPDX-License-Identifier: GPL-2.0
/*
 * Everything that happens to maps that grow and forget, for a while, or for long: all CPUs count in
 * every context, three readers read intervals, entries expire and are recycled, triggers are
 * cleared, paused, and removed, in instances that come and go. After each step, hits, `other` and
 * drops are the events. Then many keys that each live for a moment.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "events.h"
#include "intervals.h"

#define EVENT "rhist_events/wake"
#define INSTANCE "instances/rhist_soak"
#define FILES 3

static const char *const triggers[] = {
	"hist:keys=level:vals=amount,level.max:size=128..16384",
	"hist:keys=level:vals=amount,amount.dist:size=256..4096:expire(1s)",
	"hist:keys=level:vals=amount,level.min:size=256:full(recycle,other)",
	"hist:keys=level,key:vals=amount:v0=amount:size=128..1024:expire(1s):full(other)",
};

/* Parts of these texts as they are printed. */
static const char *const sizes[] = { ":size=128..16384", ":size=256..4096", ":size=256:", ":size=128..1024" };

#define TRIGGERS (sizeof(triggers) / sizeof(*triggers))

static const char *event;	/* EVENT, perhaps in an instance */
static unsigned long first;	/* the next keys */
static bool paused[TRIGGERS];
/* Events that were counted, in the present life of each trigger and in all. */
static unsigned long long expected[TRIGGERS], all[TRIGGERS];

/* --- events of one step */

struct post {
	pthread_t thread;
	const char *context;
	int cpu, error;
};

#define PIECES 4
#define PIECE 500

static void *fire(void *arg)
{
	struct post *p = arg;

	pin(p->cpu);
	for (int i = 0; i < PIECES && !p->error; i++)
		p->error = append("/dev/rhist_events", pathf("wake %s %d %lu %d 100", p->context, p->cpu, first + 40 * i, PIECE));
	return NULL;
}

static struct post posts[64];
static int n_posts;

static void begin_fire(void)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);

	n_posts = 0;
	for (int cpu = 0; cpu < cpus && cpu < 16; cpu++)
		for (int i = 0; i < contexts_there(); i++, n_posts++) {
			posts[n_posts] = (struct post){ .context = contexts[i], .cpu = cpu };
			pthread_create(&posts[n_posts].thread, NULL, fire, &posts[n_posts]);
		}
}

static void end_fire(void)
{
	for (int i = 0; i < n_posts; i++) {
		pthread_join(posts[i].thread, NULL);
		if (posts[i].error)
			die("%s on CPU %d: %s", posts[i].context, posts[i].cpu, errno_name(posts[i].error));
	}
	first += 40 * PIECES;
}

/* --- readers */

/* Returns the number of events that a reader has read of a trigger, in all its lives. */
static unsigned long long read_of(struct interval_reader *r, const char *size)
{
	unsigned long long events = 0;

	for (int i = 0; i < r->accounts.n; i++) {
		struct account *a = &r->accounts.all[i];

		if (strstr(a->trigger, size))
			events += sum_named(a, "hits") + sum_named(a, "dropped");
	}
	return events;
}

/* --- steps */

static unsigned long long counted[TRIGGERS];

/* Reads what each trigger has counted. Returns the mistake in a text, or NULL. */
static const char *read_all(void)
{
	char *text = slurp(in_event(event, "hist_jsonl"));
	struct accounts accounts = { 0 };
	const char *error = add_text(&accounts, text);
	struct part p[TRIGGERS];

	if (!error && parts_of(text, p, TRIGGERS) != TRIGGERS)
		error = "a histogram is missing";
	for (unsigned int i = 0; i < TRIGGERS && !error; i++)
		counted[i] = p[i].hits + p[i].dropped;
	free_accounts(&accounts);
	free(text);
	return error;
}

static void command(unsigned int i, const char *what)
{
	add_trigger(event, pathf("%s:%s", triggers[i], what));
}

static unsigned long steps, clears, pauses, faults;

static void step(unsigned int *seed)
{
	unsigned int what = rand_r(seed) % 8, of = rand_r(seed) % (TRIGGERS - 1);
	const char *error;
	bool cleared = false;

	if (what == 0) {
		command(of, paused[of] ? "continue" : "pause");
		paused[of] = !paused[of];
		pauses++;
	}
	begin_fire();
	if (what == 1 || what == 2) {
		/* While the events are fired. */
		command(of, "clear");
		cleared = true;
		clears++;
	}
	if (what == 3)
		read_all();
	end_fire();
	if (what == 4)
		sleep_ms(1500);
	error = read_all();
	for (unsigned int i = 0; i < TRIGGERS; i++) {
		unsigned long fired = paused[i] ? 0 : n_posts * PIECES * PIECE;

		expected[i] += fired;
		all[i] += fired;
		if (cleared && i == of && counted[i] <= fired)
			expected[i] = counted[i];
		if (!error && counted[i] != expected[i])
			error = pathf("%s: %llu counted of %llu", triggers[i], counted[i], expected[i]);
		expected[i] = counted[i];
	}
	if (error && !faults++)
		note("step %lu, after %u on %s: %s", steps, what, triggers[of], error);
	steps++;
}

/* Triggers from their begin to their removal, with their readers. */
static unsigned long epoch(bool in_instance, int length, unsigned int *seed)
{
	struct interval_reader readers[FILES] = { 0 };
	unsigned long rounds = 0;

	event = EVENT;
	if (in_instance) {
		event = "../" INSTANCE "/events/" EVENT;
		if (mkdir(pathf("%s/" INSTANCE, tracing_dir()), 0755))
			die("an instance: %s", strerror(errno));
	}
	memset(paused, 0, sizeof(paused));
	memset(expected, 0, sizeof(expected));
	memset(all, 0, sizeof(all));
	for (int i = 0; i < FILES; i++) {
		readers[i].fd = open(in_event(event, "hist_delta_jsonl"), O_RDONLY | O_CLOEXEC);
		if (readers[i].fd < 0)
			die("hist_delta_jsonl: %s", strerror(errno));
		readers[i].pause_ms = 10 + readers[i].fd * 37 % 150;
		pthread_create(&readers[i].thread, NULL, add_intervals, &readers[i]);
	}
	for (unsigned int i = 0; i < TRIGGERS; i++)
		add_trigger(event, triggers[i]);
	for (int i = 0; i < length; i++)
		step(seed);
	truncate_file(in_event(event, "trigger"));
	for (int i = 0; i < FILES; i++) {
		struct interval_reader *r = &readers[i];

		__atomic_store_n(&r->last, true, __ATOMIC_RELEASE);
		pthread_join(r->thread, NULL);
		for (unsigned int t = 0; t < TRIGGERS && !r->error; t++)
			if (read_of(r, sizes[t]) != all[t])
				r->error = pathf("%s: %llu read of %llu", triggers[t], read_of(r, sizes[t]), all[t]);
		if (r->error && !faults++)
			note("a reader: %s", r->error);
		rounds += r->rounds;
		close(r->fd);
		free_accounts(&r->accounts);
	}
	if (in_instance && rmdir(pathf("%s/" INSTANCE, tracing_dir())))
		die("the instance stays: %s", strerror(errno));
	return rounds;
}

static void lives(double seconds)
{
	unsigned long rounds = 0, epochs = 0;
	double until = now() + seconds;
	unsigned int seed = 1;

	do
		rounds += epoch(epochs++ % 2, 30, &seed);
	while ((now() < until || epochs < 2) && !faults);
	ok(!faults, "hits, other and drops are the events, in each of %lu steps and for 3 readers in %lu rounds", steps, rounds);
	ok(clears && pauses && epochs > 1, "with %lu clears, %lu pauses, and %lu removals", clears, pauses, epochs);
}

/* --- many keys, of which few are alive */

#define A_SECOND 2500

static void flow(unsigned long keys)
{
	unsigned long fired = 0, piece;
	long bytes = 0, early = 0, late = 0;
	unsigned long long hits = 0;
	double began = now(), at = began, looked = began;
	const char *error = NULL;
	struct totals t = { 0 };

	event = EVENT;
	add_trigger(event, "hist:keys=level:vals=amount:size=4096:expire(1s)");
	while (fired < keys && !error) {
		sleep_ms(10);
		/* Time that this task did not get is not made up for. */
		piece = (now() - at) * A_SECOND;
		at = now();
		piece = piece < A_SECOND / 10 ? piece : A_SECOND / 10;
		if (piece && append("/dev/rhist_events", pathf("wake task 0 %lu %lu %lu", fired, piece, piece)))
			error = "no event";
		fired += piece;
		if (now() < looked + 2)
			continue;
		looked = now();
		bytes = stat_of(event, "variables set", "variables set, %ld bytes");
		if (looked < began + 10)
			early = bytes > early ? bytes : early;
		else
			late = bytes > late ? bytes : late;
		if (!read_totals(in_event(event, "hist"), &t))
			error = "no totals";
		if (t.hits != fired || t.hits < hits || t.dropped)
			error = pathf("%llu hits of %lu, %llu dropped", t.hits, fired, t.dropped);
		hits = t.hits;
	}
	if (!ok(!error && t.entries <= 5120 && fired >= keys,
		"%lu keys went through 4,096 places in %.0f s: none is dropped, and no count falls", fired, now() - began))
		note("%s; %llu entries", error ?: "entries", t.entries);
	ok(early > 0 && late > 0 && late <= early, "in as much memory as in the first seconds: %ld bytes and %ld", early, late);
	if (!ok(await_stat(event, EXPIRED, fired) && stat_of(event, EXPIRED) == (long)fired, "and all have expired"))
		note("%ld of %lu", stat_of(event, EXPIRED), fired);
	truncate_file(in_event(event, "trigger"));
}

int main(void)
{
	if (testing_c()) {
		skip("this is C", "maps that grow and forget");
		finish();
	}
	load_events();
	if (event_source < 0)
		die("the module rhist_events");
	lives(long_run() ? 600 : 15);
	pin(0);
	/* 10,000,000 keys take an hour. */
	flow(!long_run() ? 50000 : user_mode_linux() ? 10000000 : 1000000);
	unload_events();
	finish();
}
