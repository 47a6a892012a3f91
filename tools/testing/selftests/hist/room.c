// SPDX-License-Identifier: GPL-2.0
/*
 * Maps that grow (size=A..B), forget (expire(), full(recycle)), and sum hits without a place in
 * `other` (full(other)): the hits of rows and of `other`, dropped and unresolved hits are the
 * events, at each step and for each column. Their worker is tested by tended.c.
 */
#define _GNU_SOURCE
#include "events.h"
#include "intervals.h"

#define MODULE "rhist_events"
#define WAKE MODULE "/wake"
#define RUN MODULE "/run"

/* Fires WAKE or RUN for the numbers from `first` on: `count` times, `keys` different ones. */
static void fire_at(const char *event, const char *context, unsigned long first, unsigned long count, unsigned long keys)
{
	int error = append("/dev/" MODULE, pathf("%s %s 0 %lu %lu %lu", event, context, first, count, keys));

	if (error)
		die("%s in %s: %s", event, context, errno_name(error));
}

static void fire(unsigned long first, unsigned long count)
{
	fire_at("wake", "task", first, count, count);
}

/* --- a histogram as hist_jsonl has it */

struct other {
	unsigned long long hits, amount;
};

struct room {
	struct part p;
	unsigned long long rows, hits, amount;	/* of the rows */
	struct other folded, expired, recycled;
	unsigned long long expired_entries, recycled_entries, expired_set;
	char *text;
};

/* The hits and the first sum of one kind of `other`. */
static struct other other_of(const char *trailer, const char *end, const char *kind)
{
	const char *at = memmem(trailer, end - trailer, kind, strlen(kind));
	struct other other = { 0 };

	if (at)
		sscanf(at + strlen(kind), "{\"hitcount\":%llu,\"values\":[%*u,%llu", &other.hits, &other.amount);
	return other;
}

/* Reads the first histogram of a text, whose first value is `amount` if it has one. */
static bool room_of(char *text, struct room *r)
{
	const char *line, *end;

	memset(r, 0, sizeof(*r));
	r->text = text;
	if (!part_of(text, &r->p))
		return false;
	for (line = r->p.rows; !strncmp(line, "{\"type\":\"entry\"", 15); line = strchr(line, '\n') + 1) {
		unsigned long long hits = 0, amount = 0;

		sscanf(strstr(line, "\"values\":["), "\"values\":[%llu,%llu", &hits, &amount);
		r->rows++;
		r->hits += hits;
		r->amount += amount;
	}
	end = r->p.rest;
	r->folded = other_of(line, end, "\"folded\":");
	r->expired = other_of(line, end, "\"expired\":");
	r->recycled = other_of(line, end, "\"recycled\":");
	r->expired_entries = number_of(line, end, "\"expired_entries\":");
	r->recycled_entries = number_of(line, end, "\"recycled_entries\":");
	r->expired_set = number_of(line, end, "\"expired_set\":");
	return true;
}

static struct room read_room(const char *event, const char *file)
{
	struct room r;

	if (!room_of(slurp(in_event(event, file)), &r))
		die("%s of %s is not whole", file, event);
	return r;
}

static unsigned long long others(const struct room *r)
{
	return r->folded.hits + r->expired.hits + r->recycled.hits;
}

static unsigned long long other_amounts(const struct room *r)
{
	return r->folded.amount + r->expired.amount + r->recycled.amount;
}

/* The line of hits in hist_stats has the numbers of hist_jsonl. These may change between both. */
static bool has_line(const char *event)
{
	bool has = false;

	for (int i = 0; i < 50 && !has; i++) {
		struct room r = read_room(event, "hist_jsonl");
		char *text = slurp(pathf("%s/hist_stats", tracing_dir()));

		has = text && strstr(text, pathf("hist 1: %llu hits, %llu of entries, %llu folded, %llu expired, %llu recycled, "
						 "%llu dropped, %llu unresolved\n", r.p.hits, r.hits, r.folded.hits,
						 r.expired.hits, r.recycled.hits, r.p.dropped, r.p.unresolved));
		free(text);
		free(r.text);
	}
	return has;
}

/* Rows and `other` have all events, and the sum of the amounts, unless that is ~0. */
static void adds_up(const char *name, const char *event, unsigned long long events, unsigned long long amount)
{
	struct room r = read_room(event, "hist_jsonl");
	unsigned long long sum = r.hits + others(&r) + r.p.dropped + r.p.unresolved + r.p.rejected;

	if (!ok(sum == events && r.p.hits == r.hits + others(&r), "%s: %llu of %llu rows, %llu other, %llu dropped are the %llu events",
		name, r.hits, r.rows, others(&r), r.p.dropped, events))
		note("hits %llu, sum %llu, unresolved %llu, rejected %llu", r.p.hits, sum, r.p.unresolved, r.p.rejected);
	if (amount != ~0ull)
		ok(r.amount + other_amounts(&r) == amount, "%s: amounts %llu + %llu are %llu", name, r.amount, other_amounts(&r), amount);
	ok(has_line(event), "%s: hist_stats tells the same", name);
	free(r.text);
}

/* The sum of 10 * k for `count` numbers from `first` on. */
static unsigned long long amounts(unsigned long long first, unsigned long long count)
{
	return 10 * (first * count + count * (count - 1) / 2);
}

static bool has_row(const struct room *r, unsigned long key)
{
	return strstr(r->p.rows, pathf("\"keys\":[%lu]", key));
}

/* Waits until at most `most` rows are left. Returns the seconds it took; -1 after `limit`. */
static double wait_for_rows(const char *event, unsigned long long most, double limit)
{
	double began = now();
	struct room r;

	for (;;) {
		r = read_room(event, "hist_jsonl");
		free(r.text);
		if (r.rows <= most)
			return now() - began;
		if (now() - began > limit)
			return -1;
		sleep_ms(20);
	}
}

static void done(const char *event)
{
	truncate_file(in_event(event, "trigger"));
}

/* --- growth */

static void grows(void)
{
	int n_contexts = contexts_there();
	unsigned long fired = 0, step = 128;
	struct room r;

	add_trigger(WAKE, "hist:keys=level:vals=amount:size=128..65536");
	sleep_ms(100);
	/* From rest, each burst has three times as many new keys as the map has. */
	fire(0, 128);
	fired = 128;
	for (int i = 0; fired + 3 * step <= 65536; i++) {
		sleep_ms(200);
		fire_at("wake", contexts[i % n_contexts], fired, 3 * step, 3 * step);
		fired += 3 * step;
		r = read_room(WAKE, "hist_jsonl");
		ok(!r.p.dropped && r.rows == fired, "a burst of %lu new keys in %s: %llu rows, %llu dropped", 3 * step,
		   contexts[i % n_contexts], r.rows, r.p.dropped);
		free(r.text);
		step = fired;
	}
	adds_up("grown", WAKE, fired, amounts(0, fired));
	fire(0, fired);
	r = read_room(WAKE, "hist_jsonl");
	ok(r.rows == fired && r.p.hits == 2 * fired, "all keys are found again: %llu hits of %llu rows", r.p.hits, r.rows);
	free(r.text);
	done(WAKE);

	/* Beyond B. */
	add_trigger(WAKE, "hist:keys=level:vals=amount:size=128..256");
	sleep_ms(100);
	fire(0, 1000);
	adds_up("more keys than B", WAKE, 1000, ~0ull);
	r = read_room(WAKE, "hist_jsonl");
	ok(r.rows == 256 && r.p.dropped == 744, "%llu rows, %llu dropped", r.rows, r.p.dropped);
	free(r.text);
	done(WAKE);
}

/* The buckets of distributions grow, too, with their histogram and by themselves. */
static void buckets_grow(void)
{
	unsigned long long lost = 0, more;
	struct room r;

	add_trigger(WAKE, "hist:keys=level:vals=amount.dist:buckets(1):size=128..65536");
	sleep_ms(100);
	for (unsigned long first = 0, n = 128; first < 20000; first += n, n = first) {
		sleep_ms(200);
		fire(first, n);
		/* The same values in other buckets. */
		fire(first, n);
	}
	sleep_ms(200);
	r = read_room(WAKE, "hist_jsonl");
	lost = r.p.no_bucket;
	free(r.text);
	fire(40000, 5000);
	r = read_room(WAKE, "hist_jsonl");
	more = r.p.no_bucket - lost;
	ok(!lost && !more && !r.p.dropped, "buckets grow with their histogram: %llu rows, %llu values lost, %llu more", r.rows, lost, more);
	free(r.text);
	done(WAKE);
	/* Few rows, many buckets. */
	add_trigger(WAKE, "hist:keys=key:vals=level.dist=5:buckets(1):size=128..65536");
	sleep_ms(100);
	/* Each time 4 keys with 32 new buckets. */
	fire(0, 64);
	for (unsigned long first = 64; first < 1 << 18; first *= 2) {
		sleep_ms(200);
		fire(first, first);
	}
	r = read_room(WAKE, "hist_jsonl");
	ok(!r.p.no_bucket, "also by themselves: %llu rows, %llu values lost", r.rows, r.p.no_bucket);
	free(r.text);
	done(WAKE);
}

/* --- full(other) */

static void folds(void)
{
	struct room r;
	char *text;

	add_trigger(WAKE, "hist:keys=level:vals=amount,level.dist:size=128:full(other):sort=hitcount.descending");
	fire(0, 1000);
	fire(500, 500);
	adds_up("full(other)", WAKE, 1500, amounts(0, 1000) + amounts(500, 500));
	r = read_room(WAKE, "hist_jsonl");
	ok(r.rows == 128 && !r.p.dropped && r.folded.hits == 1500 - 128 && !r.expired.hits && !r.recycled.hits,
	   "%llu rows, %llu dropped, %llu folded", r.rows, r.p.dropped, r.folded.hits);
	ok(!r.p.no_bucket, "each value of other is in a bucket: %llu are not", r.p.no_bucket);
	free(r.text);
	text = slurp(in_event(WAKE, "hist"));
	ok(text && strstr(text, "{ other } hitcount:") && strstr(text, "\n    Folded: 1372\n"), "hist has a row for it");
	if (text) {
		const char *other = strstr(text, "{ other }"), *last = strstr(text, "\n{ level:"), *next;

		while (last && (next = strstr(last + 1, "\n{ level:")))
			last = next;
		ok(other && last && other > last, "which is the last one, although it has most hits");
	}
	free(text);
	add_trigger(WAKE, "hist:keys=level:vals=amount,level.dist:size=128:full(other):sort=hitcount.descending:clear");
	adds_up("cleared", WAKE, 0, 0);
	fire(2000, 200);
	adds_up("and again", WAKE, 200, amounts(2000, 200));
	done(WAKE);

	/* Variables are not set in `other`. */
	add_trigger(WAKE, "hist:keys=level:v=amount:size=128:full(other)");
	fire(0, 300);
	r = read_room(WAKE, "hist_jsonl");
	ok(r.p.missed == 172 && r.folded.hits == 172, "variables in other are missed: %llu of %llu", r.p.missed, r.folded.hits);
	free(r.text);
	done(WAKE);
}

/* --- expire(TIME) */

static void expires(void)
{
	/* Longer than a read takes on a kernel that looks for faults. */
	int seconds = slow_kernel() ? 8 : 1;
	const char *trigger = pathf("hist:keys=level:vals=amount,level.max,level.dist:v=amount:size=128:expire(%ds)", seconds);
	unsigned long long events = 0, amount = 0;
	struct room r;
	double took;
	char *text;

	add_trigger(WAKE, trigger);
	fire(0, 100);
	events += 100;
	amount += amounts(0, 100);
	/* The first 10 live on. */
	for (int i = 0; i < 25 * seconds; i++) {
		sleep_ms(100);
		fire(0, 10);
		events += 10;
		amount += amounts(0, 10);
	}
	took = wait_for_rows(WAKE, 10, 5 * seconds);
	r = read_room(WAKE, "hist_jsonl");
	ok(r.rows == 10 && has_row(&r, 0) && has_row(&r, 9), "the entries that are hit stay: %llu rows, after %.1f s more", r.rows, took);
	ok(r.expired_entries == 90 && r.expired.hits == 90 && r.expired_set == 90, "%llu expired, with %llu hits, %llu with a variable",
	   r.expired_entries, r.expired.hits, r.expired_set);
	free(r.text);
	adds_up("expire", WAKE, events, amount);
	text = slurp(in_event(WAKE, "hist"));
	ok(text && strstr(text, "\n    Expired: 90\n"), "hist says so");
	free(text);

	/* Numbers are used again: none of the old entries shows in new ones. */
	for (int round = 0; round < 5; round++) {
		if (wait_for_rows(WAKE, 0, 8 * seconds) < 0)
			ok(false, "entries stay");
		/* Their places are free a grace period after their rows are gone. */
		await_stat(WAKE, AHEAD, 100);
		fire(1000 * (round + 1), 100);
		events += 100;
		amount += amounts(1000 * (round + 1), 100);
		adds_up("new keys", WAKE, events, amount);
		r = read_room(WAKE, "hist_jsonl");
		ok(r.rows == 100 && strstr(r.p.rows, pathf("\"keys\":[%d],\"values\":[1,%d,%d,", 1000 * (round + 1) + 5,
							    10 * (1000 * (round + 1) + 5), 1000 * (round + 1) + 5)),
		   "round %d: %llu rows, each as if it were the first one", round, r.rows);
		free(r.text);
	}
	done(WAKE);
}

/* --- expire(taken) */

/* Variables that were set when their entries were taken out, as hist_stats tells. */
#define SET "recycled", "recycled %*u, %ld variables set"

static void taken(void)
{
	struct room r;

	/* wake sets two variables for tasks 100 to 103; run takes one of them for 100 and 101. */
	add_trigger(WAKE, "hist:keys=task:v=amount,kept=level:size=128:expire(taken)");
	add_trigger(RUN, "hist:keys=next_task:x=$v+1:vals=total:size=128");
	fire(0, 4);
	fire_at("run", "task", 0, 2, 2);
	ok(wait_for_rows(WAKE, 2, 10) >= 0, "entries whose variable was taken go");
	sleep_ms(2000);
	r = read_room(WAKE, "hist_jsonl");
	ok(r.rows == 2 && has_row(&r, 102) && has_row(&r, 103), "the others stay: %llu rows", r.rows);
	ok(r.expired_entries == 2 && !r.expired_set, "%llu expired, %llu of them before a variable was taken", r.expired_entries, r.expired_set);
	ok(await_stat(WAKE, SET, 2) && stat_of(WAKE, SET) == 2, "their other variables were still set: %ld", stat_of(WAKE, SET));
	free(r.text);
	adds_up("taken", WAKE, 4, ~0ull);
	/* An entry that comes again is resolved. */
	fire(0, 4);
	fire_at("run", "task", 0, 4, 4);
	r = read_room(RUN, "hist_jsonl");
	ok(r.p.hits == 6 && !r.p.unresolved, "all are resolved: %llu hits, %llu unresolved", r.p.hits, r.p.unresolved);
	free(r.text);
	done(RUN);
	done(WAKE);

	/* Only numbers are taken. */
	add_trigger(WAKE, "hist:keys=level:v=amount:n=path:st=common_stacktrace:size=128:expire(taken)");
	fire(0, 50);
	sleep_ms(2500);
	r = read_room(WAKE, "hist_jsonl");
	ok(r.rows == 50 && !r.expired_entries, "a string and a stack are no variables that are taken: %llu rows", r.rows);
	free(r.text);
	done(WAKE);
}

/* --- full(recycle) */

static void recycles(void)
{
	unsigned long long events = 0, amount = 0, last = 0;
	struct room r;

	add_trigger(WAKE, "hist:keys=level:vals=amount:size=128:full(recycle,other)");
	/* An eighth of the places is kept free: 20 of 160. */
	for (int round = 0; round < 30; round++) {
		fire(round * 16, 16);
		events += 16;
		amount += amounts(round * 16, 16);
		last = round * 16;
		sleep_ms(1100);
	}
	adds_up("recycle", WAKE, events, amount);
	r = read_room(WAKE, "hist_jsonl");
	ok(has_row(&r, last) && has_row(&r, last + 15), "the latest keys have rows, of %llu", r.rows);
	ok(r.recycled_entries + r.rows == events && !r.folded.hits, "%llu were recycled, %llu hits found no place",
	   r.recycled_entries, r.folded.hits);
	free(r.text);
	/* More than that at once: the rest is folded. */
	fire(10000, 100);
	adds_up("more than is free", WAKE, events + 100, amount + amounts(10000, 100));
	r = read_room(WAKE, "hist_jsonl");
	ok(r.folded.hits >= 70 && r.folded.hits <= 84, "%llu of 100 hits found no place", r.folded.hits);
	free(r.text);
	done(WAKE);
}

/* --- set_event_pid */

/* Hits of tasks that it leaves out are in no row, not in `other`, and no losses. */
static void selects(void)
{
	const char *list = strdup(pathf("%s/set_event_pid", kernel_dir()));
	unsigned long long events = 0, amount = 0;
	int status = -1;
	pid_t child;

	add_trigger(WAKE, "hist:keys=level:vals=amount:size=128..256:expire(1s):full(other)");
	for (int round = 0; round < 3; round++) {
		/* In the second round only this task counts. */
		int error = round == 1 ? append(list, pathf("%d\n", getpid())) : 0;

		if (error)
			die("set_event_pid: %s", errno_name(error));
		child = fork();
		if (!child) {
			fire(5000 * round, 300);
			_exit(0);
		}
		if (waitpid(child, &status, 0) != child || status)
			die("a task that fires events: %d", status);
		fire(5000 * round + 200, 500);
		events += 500 + (round == 1 ? 0 : 300);
		amount += amounts(5000 * round + 200, 500) + (round == 1 ? 0 : amounts(5000 * round, 300));
		adds_up(round == 1 ? "set_event_pid" : "all tasks", WAKE, events, amount);
		truncate_file(list);
	}
	ok(wait_for_rows(WAKE, 0, 8) >= 0, "and when they expire");
	adds_up("all expired", WAKE, events, amount);
	done(WAKE);
}

/* --- readers of intervals */

static void intervals(void)
{
	unsigned long long sum = 0, amount = 0, events = 0, expired = 0;
	int fd;
	struct room r;

	add_trigger(WAKE, "hist:keys=level:vals=amount:size=128..1024:expire(1s)");
	fd = open(in_event(WAKE, "hist_delta_jsonl"), O_RDONLY | O_CLOEXEC);
	for (int round = 0; round < 8; round++) {
		unsigned long n = 20 << round % 6;

		fire(10000 * round, n);
		events += n;
		amount += amounts(10000 * round, n);
		/* Some rows expire between two reads. */
		sleep_ms(round % 2 ? 2500 : 50);
		if (!room_of(round_of(fd), &r))
			die("an interval is not whole");
		if (r.p.hits != r.hits + others(&r))
			ok(false, "hits of an interval: %llu, rows %llu, other %llu", r.p.hits, r.hits, others(&r));
		sum += r.p.hits + r.p.dropped;
		amount -= r.amount + other_amounts(&r);
		expired += r.expired.hits;
		free(r.text);
	}
	ok(sum == events, "intervals add up to %llu of %llu events", sum, events);
	ok(!amount, "and their amounts: %lld are left", (long long)amount);
	ok(expired > 0, "hits of %llu were in entries that had expired before they were read", expired);
	close(fd);
	done(WAKE);
}

/* --- name= */

static void shares(void)
{
	add_trigger(WAKE, "hist:name=room:keys=task:vals=amount:size=128..512:expire(1h):full(other)");
	ok(!append(in_event(MODULE "/stop", "trigger"), "hist:name=room:keys=task:vals=amount"),
	   "another trigger of the same name may leave the clauses out");
	done(MODULE "/stop");
	ok(append(in_event(MODULE "/stop", "trigger"), "hist:name=room:keys=task:vals=amount:size=128..256:expire(1h):full(other)"),
	   "and not have others");
	done(WAKE);
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
	pin(0);
	grows();
	buckets_grow();
	folds();
	expires();
	taken();
	recycles();
	selects();
	intervals();
	shares();
	unload_events();
	finish();
}
