// SPDX-License-Identifier: GPL-2.0
/*
 * As many readers of intervals as a histogram may have, while all CPUs count in every context: for
 * each of them the sum of its intervals is the histogram, to the digit, in each column of each row;
 * and the hits, dropped, unresolved and rejected ones, over all lives of the histogram, are the
 * events. Where entries are taken out, that is true of the sums over all rows and `other`. Readers
 * read at random times; one waits by poll(), and some are stopped for a while.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "events.h"
#include "intervals.h"

#define MODULE "rhist_events"
#define WAKE MODULE "/wake"
#define RUN MODULE "/run"
#define STACKS MODULE "/stacks"
#define BEYOND MODULE "/beyond"

/* --- events in every context of every CPU */

static int n_cpus, n_contexts;

struct order {
	pthread_t thread;
	const char *event, *context;
	int cpu, error;
	unsigned long keys, drift, piece, fired;
};

/* So many lives that ended are kept for a reader who is stopped, twice. */
#define CLEARS 8

static volatile bool stop;
static double began;	/* when the keys began to drift */

/* Fires piece after piece until `stop` is set. */
static void *obey(void *arg)
{
	struct order *o = arg;

	pin(o->cpu);
	while (!stop && !o->error) {
		unsigned long first = 1 + (now() - began) * o->drift;

		o->error = append("/dev/" MODULE, pathf("%s %s %d %lu %lu %lu", o->event, o->context, o->cpu, first, o->piece, o->keys));
		o->fired += o->error ? 0 : o->piece;
	}
	return NULL;
}

/* Hits of an event that its source could not pass on, as hist_stats tells. */
static unsigned long long lost(const char *event)
{
	char *text = slurp(pathf("%s/hist_stats", tracing_dir())), column[64], *line, *rest = text;
	unsigned long long count = 0;

	snprintf(column, sizeof(column), "%s ", event);
	*strchr(column, '/') = ':';
	while ((line = strsep(&rest, "\n")))
		if (!strncmp(line, column, strlen(column)))
			sscanf(line + strlen(column), " %*[a-z_], %llu lost", &count);
	free(text);
	return count;
}

/* --- readers */

/* The result of a reader, for its parent. */
struct result {
	int ready, done;
	unsigned long rounds, intervals, waits;
	/* all events of the first histogram: hits, losses and rejected ones */
	unsigned long long counted;
	int lives;
	char wrong[400];
};

static struct shared {
	int stop;
	struct result readers[READERS];
} *shared;

struct load {
	const char *name, *event;	/* the event that is read */
	const char *triggers[3];
	const char *clears;		/* the first trigger is cleared meanwhile, by this */
	const char *other, *other_trigger;	/* another event that is fired, too */
	unsigned long keys;
	unsigned long few_keys;		/* those on a kernel that looks for faults */
	unsigned long drift;		/* new keys in a second; as many are not hit any more */
};

static void wrong(struct result *t, const char *what)
{
	if (!*t->wrong)
		snprintf(t->wrong, sizeof(t->wrong), "%s", what);
}

/* Reads a round; with O_NONBLOCK, waits by poll(). */
static char *next_round(int fd, struct result *t, bool polls)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;

	if (polls) {
		ssize_t got = read(fd, &byte, 1);

		/* Before the triggers are added. */
		if (!got)
			return strdup("");
		if (got > 0 || errno != EAGAIN) {
			wrong(t, "O_NONBLOCK: a read that asks is not EAGAIN");
			return NULL;
		}
		t->waits++;
		if (poll(&p, 1, 60000) != 1 || p.revents != POLLIN)
			wrong(t, "poll() does not say POLLIN");
	}
	return round_of(fd);
}

/*
 * Reads the whole histograms while they count: their hits, and these with all losses, are never
 * fewer than at the last read.
 */
static void watch(const char *event, struct result *t)
{
	static struct part last[2];
	char *text = slurp(in_event(event, "hist_jsonl"));
	struct accounts accounts = { 0 };
	const char *error = add_text(&accounts, text);
	struct part p[2];
	int n = parts_of(text, p, 2);

	for (int i = 0; i < n && !error; i++) {
		if (p[i].life == last[i].life &&
		    (p[i].hits < last[i].hits || p[i].dropped < last[i].dropped || p[i].rejected < last[i].rejected ||
		     p[i].unresolved < last[i].unresolved))
			error = pathf("%llu hits and %llu dropped, and later %llu and %llu", last[i].hits, last[i].dropped,
				      p[i].hits, p[i].dropped);
		last[i] = p[i];
	}
	if (error)
		wrong(t, error);
	free_accounts(&accounts);
	free(text);
}

/* One reader: a process. `late`: it begins while nothing is counted, but something was before. */
static void read_intervals(const struct load *load, struct result *t, int nth, bool late)
{
	bool polls = nth == 0;
	int fd = open(in_event(load->event, "hist_delta_jsonl"), O_RDONLY | O_CLOEXEC | (polls ? O_NONBLOCK : 0));
	struct accounts accounts = { 0 }, before = { 0 }, whole = { 0 };
	unsigned int seed = nth + 1;
	const char *error = NULL;
	bool last = false;
	char *text;

	if (fd < 0) {
		wrong(t, strerror(errno));
		return;
	}
	if (late) {
		text = slurp(in_event(load->event, "hist_jsonl"));
		error = add_text(&before, text);
		free(text);
	}
	__atomic_store_n(&t->ready, 1, __ATOMIC_RELEASE);
	while (!error && !last) {
		/* A read after the load has ended gets all that is left. */
		last = __atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE);
		text = next_round(fd, t, polls);
		if (!text)
			wrong(t, strerror(errno));
		error = add_text(&accounts, text);
		t->rounds++;
		free(text);
		if (nth == 1 && t->rounds % 4 == 0)
			watch(load->event, t);
		if (!last)
			usleep(rand_r(&seed) % 100000);
	}
	text = slurp(in_event(load->event, "hist_jsonl"));
	if (!error)
		error = add_text(&whole, text);
	free(text);
	if (!error && !whole.n)
		error = "there is no histogram";
	/* For the last life of each histogram, the sum of the intervals is the histogram. */
	for (int i = 0; i < whole.n && !error; i++) {
		struct account *of = NULL, *then = NULL;

		for (int j = 0; j < accounts.n; j++)
			if (!strcmp(accounts.all[j].trigger, whole.all[i].trigger) && accounts.all[j].life == whole.all[i].life)
				of = &accounts.all[j];
		for (int j = 0; j < before.n; j++)
			if (before.all[j].life == whole.all[i].life)
				then = &before.all[j];
		error = of ? difference(of, &whole.all[i], then) : "a histogram was not read";
	}
	for (int i = 0; i < accounts.n; i++) {
		struct account *a = &accounts.all[i];

		t->intervals += a->intervals;
		if (strcmp(a->trigger, accounts.all[0].trigger))
			continue;
		t->lives++;
		t->counted += sum_named(a, "hits") + sum_named(a, "dropped") + sum_named(a, "unresolved") + sum_named(a, "rejected");
	}
	if (error)
		wrong(t, error);
	close(fd);
}

static pid_t readers[READERS];

static void begin_readers(const struct load *load, int from, int to)
{
	for (int i = from; i < to; i++) {
		readers[i] = fork();
		if (readers[i])
			continue;
		read_intervals(load, &shared->readers[i], i, from);
		__atomic_store_n(&shared->readers[i].ready, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&shared->readers[i].done, 1, __ATOMIC_RELEASE);
		_exit(0);
	}
	for (int i = from; i < to; i++)
		while (!__atomic_load_n(&shared->readers[i].ready, __ATOMIC_ACQUIRE))
			sleep_ms(1);
}

/*
 * Fires for a while, and meanwhile halts readers for a moment, and clears. Adds up the events, and
 * the other events.
 */
static void count(const struct load *load, double seconds, unsigned long *clears, unsigned long fired[2])
{
	struct order orders[64];
	unsigned int seed = 1;
	double until = now() + seconds;
	int n = 0, halted = -1, left = CLEARS;

	stop = false;
	for (int cpu = 0; cpu < n_cpus; cpu++)
		for (int context = 0; context < n_contexts; context++, n++) {
			bool other = load->other && (cpu + context) % 2;

			orders[n] = (struct order){
				.event = strchr(other ? load->other : load->event, '/') + 1, .context = contexts[context],
				.cpu = cpu, .keys = slow_kernel() && load->few_keys ? load->few_keys : load->keys,
				.drift = load->drift, .piece = slow_kernel() ? 200 : 1000,
			};
		}
	for (int i = 0; i < n; i++)
		pthread_create(&orders[i].thread, NULL, obey, &orders[i]);
	while (now() < until) {
		/* never the one that waits by poll() */
		if (halted >= 0)
			kill(readers[halted], SIGCONT);
		halted = 1 + rand_r(&seed) % (READERS / 2 - 1);
		kill(readers[halted], SIGSTOP);
		sleep_ms(20 + rand_r(&seed) % 200);
		if (load->clears && left) {
			add_trigger(load->event, load->clears);
			(*clears)++;
			left--;
		}
	}
	stop = true;
	for (int i = 0; i < n; i++) {
		pthread_join(orders[i].thread, NULL);
		if (orders[i].error)
			ok(false, "%s in %s on CPU %d: %s", orders[i].event, orders[i].context, orders[i].cpu,
			   errno_name(orders[i].error));
		fired[!!strcmp(orders[i].event, strchr(load->event, '/') + 1)] += orders[i].fired;
	}
	if (halted >= 0)
		kill(readers[halted], SIGCONT);
}

static void play(const struct load *load)
{
	unsigned long fired[2] = { 0 }, clears = 0, rounds = 0, intervals = 0, waits = 0;
	double seconds = long_run() ? 20 : slow_kernel() ? 4 : 1.5;
	unsigned long long at_source = lost(load->event), others_lost = load->other ? lost(load->other) : 0;
	int bad = 0, uneven = 0, late = READERS / 2;
	struct part p;
	char *text;

	memset(shared, 0, sizeof(*shared));
	/* Half of the readers are there first. */
	begin_readers(load, 0, READERS / 2);
	if (load->other)
		add_trigger(load->other, load->other_trigger);
	for (int i = 0; i < 3 && load->triggers[i]; i++)
		add_trigger(load->event, load->triggers[i]);
	began = now();
	count(load, seconds, &clears, fired);
	begin_readers(load, late, READERS);
	count(load, seconds, &clears, fired);
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < READERS; i++)
		waitpid(readers[i], NULL, 0);
	at_source = lost(load->event) - at_source;
	text = slurp(in_event(load->event, "hist_jsonl"));
	if (!part_of(text, &p))
		die("%s: hist_jsonl", load->name);
	for (int i = 0; i < READERS; i++) {
		struct result *t = &shared->readers[i];

		rounds += t->rounds;
		intervals += t->intervals;
		waits += t->waits;
		if ((*t->wrong || !t->done) && !bad++)
			note("reader %d: %s", i, *t->wrong ? t->wrong : "has not ended");
		if (i < late && t->counted + at_source != fired[0] && !uneven++)
			note("reader %d: %llu counted in %d lives, %llu lost by the source, %lu fired", i, t->counted, t->lives,
			     at_source, fired[0]);
	}
	ok(!bad, "%s: %d readers, for each the sum of its intervals is the histogram", load->name, READERS);
	ok(!uneven, "%s: hits, dropped, unresolved and rejected ones are the %lu events", load->name, fired[0]);
	if (strstr(load->triggers[0], " if "))
		ok(p.rejected, "%s: %llu of them were rejected by the filter", load->name, p.rejected);
	ok(rounds >= 3 * READERS && waits >= 3, "%s: %lu rounds, %lu intervals, one reader waited %lu times by poll()", load->name,
	   rounds, intervals, waits);
	if (p.forgets && !load->clears)
		ok(p.gone, "%s: %llu entries were taken out meanwhile", load->name, p.gone);
	note("the last life: %llu hits, %llu entries, %llu dropped, %llu without a bucket, %llu unresolved, %llu rejected; %lu clears",
	     p.hits, p.entries, p.dropped, p.no_bucket, p.unresolved, p.rejected, clears);
	free(text);
	if (load->other) {
		struct accounts accounts = { 0 };
		const char *error = add_text(&accounts, text = slurp(in_event(load->other, "hist_jsonl")));

		if (!ok(!error && part_of(text, &p) && p.hits + p.dropped + lost(load->other) - others_lost == fired[1],
			"%s: and those of the other event are its %lu", load->name, fired[1]))
			note("%s: %llu hits, %llu dropped", error ?: "events", p.hits, p.dropped);
		free_accounts(&accounts);
		free(text);
	}
	truncate_file(in_event(load->event, "trigger"));
	if (load->other)
		truncate_file(in_event(load->other, "trigger"));
}

int main(void)
{
	static const struct load loads[] = {
		{ .name = "columns, and a distribution", .event = WAKE, .keys = 1000,
		  .triggers = { "hist:keys=key,small:vals=amount,level,level.min,level.max,level.avg:size=2048 if level != 7",
				"hist:keys=key:vals=level.dist,small.dist:size=128" } },
		{ .name = "more keys than there is room for", .event = BEYOND, .keys = 1000,
		  .triggers = { "hist:keys=k:vals=k:size=128" } },
		{ .name = "more buckets than there is room for", .event = WAKE, .keys = 10000,
		  .triggers = { "hist:keys=key:vals=level.dist=5,level.min,level.max:buckets(1):size=128" } },
		{ .name = "stacks beside other keys", .event = STACKS, .keys = 100, .few_keys = 30,
		  .triggers = { "hist:keys=k,stack.stacktrace:vals=k,k.max:size=256",
				"hist:keys=k,stack.stacktrace,common_type:vals=k:size=128",
				"hist:keys=k.log2,stack.stacktrace:vals=k.dist:size=256:full(other)" } },
		{ .name = "variables that are read once", .event = RUN, .keys = 1000, .other = WAKE,
		  .other_trigger = "hist:keys=key:v=amount:size=128",
		  .triggers = { "hist:keys=next_key:x=$v+1:vals=total:size=128" } },
		{ .name = "cleared meanwhile", .event = WAKE, .keys = 200,
		  .triggers = { "hist:keys=level:vals=amount,level.max:size=512", "hist:keys=key:vals=amount:size=128" },
		  .clears = "hist:keys=level:vals=amount,level.max:size=512:clear" },
		{ .name = "maps that grow", .event = WAKE, .keys = 100, .drift = 200,
		  .triggers = { "hist:keys=level:vals=amount,level.min,level.max:size=128..65536 if level & 3",
				"hist:keys=level:vals=level.dist,amount.max:size=128..8192" } },
		{ .name = "a map that grows and forgets", .event = WAKE, .keys = 100, .drift = 600,
		  .triggers = { "hist:keys=level:vals=amount,level.min,level.max,level.dist:size=128..65536:expire(1s)" } },
		{ .name = "the oldest make room", .event = WAKE, .keys = 100, .drift = 300,
		  .triggers = { "hist:keys=level:vals=amount,level.min,level.max:size=256:full(recycle,other)",
				"hist:keys=level:vals=amount,small.dist:size=128:full(other) if level & 1" } },
		{ .name = "growing, forgetting, and cleared meanwhile", .event = WAKE, .keys = 100, .drift = 600,
		  .triggers = { "hist:keys=level:vals=amount,level.dist,level.max:size=128..4096:expire(1s):full(other)",
				"hist:keys=level:vals=amount:size=128..1024:full(recycle)" },
		  .clears = "hist:keys=level:vals=amount,level.dist,level.max:size=128..4096:expire(1s):full(other):clear" },
		{ .name = "entries whose variable was taken", .event = RUN, .keys = 100, .drift = 600, .other = WAKE,
		  .other_trigger = "hist:keys=key:v=amount:size=128:expire(taken)",
		  .triggers = { "hist:keys=next_key,total:x=$v+1:vals=total:size=128..1024:expire(1s):full(recycle,other)" } },
	};

	if (testing_c()) {
		skip("this is C", "intervals that add up");
		finish();
	}
	load_events();
	if (event_source < 0)
		die("the module rhist_events");
	n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	n_contexts = contexts_there();
	if (n_cpus > 16)
		n_cpus = 16;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	note("%d CPUs, %d contexts", n_cpus, n_contexts);
	for (unsigned int i = 0; i < sizeof(loads) / sizeof(*loads); i++)
		play(&loads[i]);
	unload_events();
	finish();
}
