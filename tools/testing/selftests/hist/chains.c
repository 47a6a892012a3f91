// SPDX-License-Identifier: GPL-2.0
/*
 * Variables and actions while all CPUs are at work on them, in every context: readers get each
 * value of a read-once variable at most once, strings are whole, saved fields belong to their
 * maximum, and losses are counted, with or without other listeners. Then chains of triggers leave
 * part of each stack free, come and go under load, and leave nothing behind.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "../../events/values.h"
#include "events.h"

#define MODULE "rhist_events"
#define WAKING "sched/sched_waking"
#define SWITCH "sched/sched_switch"
#define INSTANCE "instances/rhist_x"

/* A key that all events have in common. */
#define ONE_KEY "common_type.buckets=65536"

static volatile bool stop;

static void reset(const char *event)
{
	truncate_file(in_event(event, "trigger"));
}

static int define(const char *text)
{
	return append(pathf("%s/synthetic_events", kernel_dir()), text);
}

static bool idle(const char *event)
{
	char *text = slurp(in_event(event, "trigger"));
	bool is = text && !strncmp(text, "# Available triggers:\n", 22);

	if (!is)
		note("%s: %s", event, text ? text : "");
	free(text);
	return is;
}

/* --- counts of an event */

struct account {
	unsigned long long hits, entries, dropped, unresolved, missed, lost;
};

/* Reads the account of the first trigger of an event in the top directory. */
static struct account account(const char *event)
{
	struct account a = { 0 };
	char *text = slurp(pathf("%s/hist_stats", tracing_dir())), column[64], *line, *rest = text;
	unsigned long long unresolved, missed;
	struct totals t;
	unsigned int n;

	snprintf(column, sizeof(column), "%s", event);
	*strchr(column, '/') = ':';
	while ((line = strsep(&rest, "\n"))) {
		char *at = line + strlen(column);

		if (strncmp(line, column, strlen(column)) || *at != ' ' || strstr(line, ", instances/"))
			continue;
		at += strspn(at, " ");
		if (sscanf(at, "hist %u: %llu unresolved, %llu missed", &n, &unresolved, &missed) == 3) {
			a.unresolved = unresolved;
			a.missed = missed;
		} else if (sscanf(at, "%*[a-z_], %llu lost", &unresolved) == 1) {
			a.lost = unresolved;
		}
	}
	free(text);
	if (read_totals(in_event(event, "hist"), &t)) {
		a.hits = t.hits;
		a.entries = t.entries;
		a.dropped = t.dropped;
		if (t.sum != t.hits)
			ok(false, "%s: %llu hits are the sum of the hitcounts", event, t.hits);
	} else {
		ok(false, "%s has a histogram", event);
	}
	return a;
}

static void note_account(const char *event, const struct account *a)
{
	note("%s: %llu hits, %llu entries, %llu dropped, %llu unresolved, %llu missed, %llu lost", event, a->hits, a->entries,
	     a->dropped, a->unresolved, a->missed, a->lost);
}

/* --- events in every context of every CPU */

struct order {
	pthread_t thread;
	const char *event, *context;
	int cpu, error;
	unsigned long first, count, keys;
};

#define ORDERS 64

static int n_cpus, n_contexts = 4;

static void *obey(void *arg)
{
	struct order *o = arg;

	pin(o->cpu);
	o->error = append("/dev/" MODULE, pathf("%s %s %d %lu %lu %lu", o->event, o->context, o->cpu, o->first, o->count,
						o->keys));
	return NULL;
}

/* Obeys all at once. */
static void fire(struct order *orders, int n)
{
	for (int i = 0; i < n; i++)
		pthread_create(&orders[i].thread, NULL, obey, &orders[i]);
	for (int i = 0; i < n; i++) {
		pthread_join(orders[i].thread, NULL);
		if (orders[i].error)
			ok(false, "%s in %s on CPU %d: %s", orders[i].event, orders[i].context, orders[i].cpu,
			   errno_name(orders[i].error));
	}
}

/*
 * Makes an order for each context of each CPU: producers in one context of each CPU, another one on
 * the next, consumers in the others. The events of an order have numbers of their own. Returns the
 * number of orders.
 */
static int orders(struct order all[ORDERS], int round, const char *producer, const char *consumer, unsigned long count)
{
	int n = 0;

	for (int cpu = 0; cpu < n_cpus; cpu++)
		for (int context = 0; context < n_contexts; context++, n++)
			all[n] = (struct order){
				.event = context == (cpu + round) % n_contexts ? producer : consumer,
				.context = contexts[context], .cpu = cpu,
				.first = 1 + n * count, .count = count, .keys = count,
			};
	return n;
}

static unsigned long events_of(const struct order *all, int n, const char *event)
{
	unsigned long count = 0;

	for (int i = 0; i < n; i++)
		if (!strcmp(all[i].event, event))
			count += all[i].count;
	return count;
}

/* --- threads that do something meanwhile */

struct worker {
	pthread_t thread;
	unsigned int seed;
	unsigned long done, refused, wrong;
	char why[200];
};

static void wrong(struct worker *w, const char *what, const char *detail)
{
	if (!w->wrong++)
		snprintf(w->why, sizeof(w->why), "%s: %s", what, detail);
}

/* --- read-once variables */

/*
 * All consumers ask for the same four variables, which producers set all the time. The values they
 * got are keys of the synthetic event. Hits take the fast path if @reference, the expression that
 * they read, is a difference.
 */
static void taken_at_most_once(const char *reference)
{
	unsigned long count = long_run() ? 40000 : slow_kernel() ? 1000 : 4000, sets = 0, asked = 0;
	struct account set, got, once;
	struct order all[ORDERS];

	add_trigger(MODULE "/wake", "hist:keys=key:v=amount:size=128");
	add_trigger(MODULE "/run", pathf("hist:keys=next_key:x=%s:onmatch(" MODULE ".wake).trace(rhist_once,$x):size=128", reference));
	add_trigger("synthetic/rhist_once", "hist:keys=x:size=131072");
	for (int round = 0; round < n_contexts; round++) {
		int n = orders(all, round, "wake", "run", count);

		for (int i = 0; i < n; i++)
			all[i].first += (unsigned long)round * n * count;
		fire(all, n);
		sets += events_of(all, n, "wake");
		asked += events_of(all, n, "run");
	}
	set = account(MODULE "/wake");
	got = account(MODULE "/run");
	once = account("synthetic/rhist_once");
	ok(set.hits + set.lost == sets && !set.dropped, "read once as %s: set %llu times", reference, set.hits);
	ok(got.hits + got.unresolved + got.lost == asked && !got.dropped,
	   "read once as %s: of %lu hits %llu found a value, %llu did not", reference, asked, got.hits, got.unresolved);
	ok(got.hits && got.hits <= set.hits, "read once as %s: not more than there were", reference);
	ok(once.hits + got.missed + once.lost == got.hits, "read once as %s: %llu were passed on, %llu missed, %llu lost",
	   reference, once.hits, got.missed, once.lost);
	ok(once.entries == once.hits && !once.dropped, "read once as %s: each value was taken by one hit", reference);
	if (once.entries != once.hits) {
		note_account("wake", &set);
		note_account("run", &got);
		note_account("once", &once);
	}
	reset(MODULE "/run");
	reset(MODULE "/wake");
	reset("synthetic/rhist_once");
}

/*
 * Variables of many keys are set, and then all consumers ask for all of them: one hit gets each.
 * @reference is as above.
 */
static void taken_exactly_once(const char *reference)
{
	const unsigned long keys = 900;
	int rounds = long_run() ? 50 : slow_kernel() ? 2 : 5, n;
	unsigned long asked = 0, wrong = 0;
	struct order all[ORDERS];
	struct account got;

	add_trigger(MODULE "/beyond", "hist:keys=k:v=k:size=1024");
	add_trigger(MODULE "/stacks", pathf("hist:keys=k:x=%s:size=1024", reference));
	for (int round = 0; round < rounds; round++) {
		struct order set = { .event = "beyond", .context = contexts[round % n_contexts], .cpu = round % n_cpus,
				     .first = 1, .count = keys, .keys = keys };

		fire(&set, 1);
		n = orders(all, round, "stacks", "stacks", keys);
		for (int i = 0; i < n; i++)
			all[i].first = 1;
		fire(all, n);
		asked += n * keys;
		got = account(MODULE "/stacks");
		wrong += got.hits + got.lost != (round + 1) * keys;
	}
	ok(!wrong && got.entries == keys, "exactly once as %s: %d times %lu values were taken by %llu hits", reference, rounds, keys,
	   got.hits);
	ok(got.hits + got.unresolved + got.lost == asked, "exactly once as %s: %llu of %lu came too late", reference, got.unresolved,
	   asked);
	reset(MODULE "/stacks");
	reset(MODULE "/beyond");
}

/* --- others that listen */

/*
 * Listeners that attach to a synthetic event and detach from it, in turns rather than all at once.
 */
static void *listen(void *arg)
{
	const char *own = in_event("synthetic/rhist_heard", "trigger"), *own_dir = pathf("%s/events/synthetic/rhist_heard", kernel_dir());
	const char *theirs = pathf("%s/trigger", own_dir), *enable = pathf("%s/enable", own_dir);
	struct worker *w = arg;

	for (unsigned int i = 0; !stop; i++) {
		const char *path = i % 3 == 0 ? own : i % 3 == 1 ? theirs : enable;
		const char *begin = i % 3 == 2 ? "1" : "hist:keys=x.log2:size=128";
		const char *end = i % 3 == 2 ? "0" : "!hist:keys=x.log2:size=128";
		int error = append(path, begin);

		if (error)
			wrong(w, path, errno_name(error));
		usleep(rand_r(&w->seed) % 2000);
		error = append(path, end);
		if (error)
			wrong(w, path, errno_name(error));
		usleep(rand_r(&w->seed) % 2000);
		w->done++;
	}
	return NULL;
}

/* A histogram counts all hits of a synthetic event while other listeners come and go. */
static void listened(void)
{
	unsigned long count = long_run() ? 40000 : slow_kernel() ? 1000 : 4000, asked = 0;
	struct worker worker = { .seed = 1 };
	struct account got, heard;
	struct order all[ORDERS];

	add_trigger(MODULE "/wake", "hist:keys=key:v=amount:size=128");
	add_trigger(MODULE "/run", "hist:keys=next_key:x=next_key:onmatch(" MODULE ".wake).trace(rhist_heard,$x):size=128");
	add_trigger("synthetic/rhist_heard", "hist:keys=x:size=128");
	stop = false;
	pthread_create(&worker.thread, NULL, listen, &worker);
	/* until each has come twice */
	for (int round = 0; round < 400 && worker.done < 6; round++) {
		int n = orders(all, round, "run", "run", count);

		fire(all, n);
		asked += events_of(all, n, "run");
	}
	stop = true;
	pthread_join(worker.thread, NULL);
	got = account(MODULE "/run");
	heard = account("synthetic/rhist_heard");
	ok(worker.done >= 6 && !worker.wrong, "listened: others came and went %lu times", worker.done);
	if (worker.wrong)
		note("%lu wrong, the first: %s", worker.wrong, worker.why);
	ok(got.hits + got.lost == asked && !got.dropped, "listened: %llu hits", got.hits);
	ok(heard.hits + got.missed + heard.lost == got.hits && heard.entries == 4, "listened: %llu were heard, %llu missed, %llu lost",
	   heard.hits, got.missed, heard.lost);
	reset(MODULE "/run");
	reset(MODULE "/wake");
	reset("synthetic/rhist_heard");
}

/* --- strings */

/* Returns true if the text is one of the stored ones: a letter, repeated. */
static bool is_whole(const char *text, size_t len, unsigned long first, unsigned long last)
{
	char whole[RHIST_TEXT + 1];

	for (unsigned long k = first; k <= last; k++) {
		size_t size = rhist_text(k, whole);

		if (len == (size < 255 ? size : 255) && !memcmp(text, whole, len))
			return true;
	}
	return false;
}

static void whole_strings(void)
{
	unsigned long count = long_run() ? 20000 : slow_kernel() ? 500 : 3000, written = 0, asked = 0, lines = 0, torn = 0;
	struct account set, got, passed;
	struct order all[ORDERS];
	char *trace, *p;

	add_trigger(MODULE "/strings", "hist:keys=" ONE_KEY ":s=dynamic:size=128");
	add_trigger(MODULE "/stacks", "hist:keys=" ONE_KEY ":onmatch(" MODULE ".strings).trace(rhist_torn,$s):size=128");
	add_trigger("synthetic/rhist_torn", "hist:keys=s:size=128");
	truncate_file(pathf("%s/trace", kernel_dir()));
	append(pathf("%s/events/synthetic/rhist_torn/enable", kernel_dir()), "1");
	for (int round = 0; round < n_contexts; round++) {
		int n = orders(all, round, "strings", "stacks", count);

		for (int i = 0; i < n; i++) {
			/*
			 * Strings have 16 bytes for number 5, 254 for 6, and 255 for 7 and 8: for
			 * long the same ones, or another one each time.
			 */
			bool one = (i + round) % 2;

			all[i].first = one ? 6 + i % 2 : 5;
			all[i].keys = one ? 1 : 4;
		}
		fire(all, n);
		written += events_of(all, n, "strings");
		asked += events_of(all, n, "stacks");
	}
	append(pathf("%s/events/synthetic/rhist_torn/enable", kernel_dir()), "0");
	trace = slurp(pathf("%s/trace", kernel_dir()));
	for (p = trace; p && (p = strstr(p, "rhist_torn: s=")); lines++) {
		p += strlen("rhist_torn: s=");
		if (!is_whole(p, strcspn(p, "\n"), 5, 8) && !torn++)
			note("%.*s", (int)strcspn(p, "\n"), p);
	}
	free(trace);
	ok(lines && !torn, "strings: each of the last %lu is whole", lines);
	trace = slurp(in_event("synthetic/rhist_torn", "hist"));
	for (lines = torn = 0, p = trace; p && (p = strstr(p, "{ s: ")); lines++) {
		size_t len;

		p += strlen("{ s: ");
		len = strcspn(p, " \n");
		if (!is_whole(p, len, 5, 8) && !torn++)
			note("%.*s", (int)len, p);
	}
	free(trace);
	set = account(MODULE "/strings");
	got = account(MODULE "/stacks");
	passed = account("synthetic/rhist_torn");
	/* with one CPU, readers are interrupted by no writer */
	ok(lines && lines <= 4 && (lines == 4 || n_cpus == 1) && !torn && passed.entries == lines && !passed.dropped, "strings: all %llu are, of %lu kinds", passed.hits, lines);
	ok(set.hits + set.lost == written && !set.dropped, "strings: %llu hits, of which %llu could not store theirs", set.hits,
	   set.missed);
	ok(got.hits + got.unresolved + got.lost == asked, "strings: %llu hits read one, %llu found none", got.hits, got.unresolved);
	ok(passed.hits + passed.lost + got.missed == got.hits, "strings: %llu were passed on, %llu could not be read", passed.hits,
	   got.missed);
	/* After the load, new values are stored and read. */
	all[0] = (struct order){ .event = "strings", .context = "task", .first = 4, .count = 1, .keys = 1 };
	all[1] = (struct order){ .event = "stacks", .context = "task", .first = 1, .count = 1, .keys = 1 };
	fire(&all[0], 1);
	fire(&all[1], 1);
	trace = slurp(in_event("synthetic/rhist_torn", "hist"));
	ok(trace && strstr(trace, "{ s: 444444444444444 "), "strings: one that comes afterwards is stored and read");
	free(trace);
	reset(MODULE "/stacks");
	reset(MODULE "/strings");
	reset("synthetic/rhist_torn");
}

/* --- saved fields */

struct watched {
	const char *label;
	bool grows;
	unsigned long long last[4];
	unsigned long reads, wrong;
};

/*
 * The saved amount is ten times the tracked number, whose last two bits are in the name and the
 * key.
 */
static void watch_once(struct watched *w)
{
	char *text = slurp(in_event(MODULE "/wake", "hist")), *p = text;

	while (p && (p = strstr(p, "{ key: "))) {
		unsigned long long key = strtoull(p + strlen("{ key: "), NULL, 10), tracked = 0, amount = 0, who = 0;
		char last, *end = strchr(p + 1, '{'), *at = strstr(p, w->label);

		p++;
		if (!at || (end && at > end))
			continue;
		/* not yet stored */
		if (sscanf(at + strlen(w->label), " 0 amount: 0 who: (nul%c", &last) == 1 && !w->last[key % 4])
			continue;
		if (sscanf(at + strlen(w->label), " %llu amount: %llu who: task-%llu", &tracked, &amount, &who) != 3 ||
		    amount != tracked * 10 || who != tracked % 4 || key != tracked % 4 || (w->grows && tracked < w->last[key])) {
			if (!w->wrong++)
				note("after %llu: %.150s", w->last[key % 4], p);
		}
		w->last[key % 4] = tracked;
	}
	w->reads++;
	free(text);
}

static void *watch(void *arg)
{
	while (!stop) {
		watch_once(arg);
		sched_yield();
	}
	return NULL;
}

static void saved(const char *handler, const char *label, bool grows)
{
	unsigned long count = long_run() ? 40000 : slow_kernel() ? 1000 : 4000, highest = 0;
	struct watched w = { .label = label, .grows = grows };
	struct order all[ORDERS];
	struct account a;
	pthread_t reader;
	bool right = true;
	int n;

	add_trigger(MODULE "/wake", pathf("hist:keys=key:m=level:%s($m).save(amount,who):size=128", handler));
	stop = false;
	pthread_create(&reader, NULL, watch, &w);
	n = orders(all, 0, "wake", "wake", count);
	/* each order is ahead of the others for a while */
	for (int i = 0; i < n; i++) {
		all[i].first = 1 + i * (count / n);
		highest = all[i].first + count - 1;
	}
	fire(all, n);
	stop = true;
	pthread_join(reader, NULL);
	watch_once(&w);
	a = account(MODULE "/wake");
	ok(!w.wrong, "%s: what is saved belongs to what is tracked, %lu times", handler, w.reads);
	ok(a.hits + a.lost == n * count && !a.dropped, "%s: %llu hits, %llu could not be stored", handler, a.hits, a.missed);
	for (unsigned int i = 0; i < 4 && grows; i++)
		right = right && w.last[(highest - i) % 4] == highest - i;
	ok(right || a.missed, "%s: the last is the largest of all, or one is counted as missed", handler);
	/* Afterwards the cell still works. */
	all[0] = (struct order){ .event = "wake", .context = "task", .first = highest + 1, .count = 4, .keys = 4 };
	fire(all, 1);
	watch_once(&w);
	for (unsigned int i = 1; i <= 4; i++)
		right = w.last[(highest + i) % 4] == highest + i && !w.wrong;
	ok(right, "%s: one that comes afterwards is stored", handler);
	reset(MODULE "/wake");
}

/* --- chains */

#define DEEP 4		/* synthetic events that nest on a CPU */

/* A trigger on a synthetic event that fires the same event. */
static void self_feeding(void)
{
	unsigned long count = slow_kernel() ? 500 : 2000;
	struct account start, again;
	struct order all[ORDERS];
	int n;

	add_trigger(MODULE "/wake", "hist:keys=key:w=amount:onmatch(" MODULE ".wake).trace(rhist_self,$w):size=128");
	add_trigger("synthetic/rhist_self", "hist:keys=" ONE_KEY ":w=x:onmatch(synthetic.rhist_self).trace(rhist_self,$w):size=128");
	all[0] = (struct order){ .event = "wake", .context = "task", .first = 1, .count = count, .keys = count };
	fire(all, 1);
	start = account(MODULE "/wake");
	again = account("synthetic/rhist_self");
	ok(slow_kernel() ? start.hits == count && again.hits <= DEEP * count :
	   start.hits == count && !start.missed && again.hits == DEEP * count && again.missed == count,
	   "an event that makes itself happen does so %d times, and the rest is counted", DEEP);
	note_account("wake", &start);
	note_account("rhist_self", &again);
	n = orders(all, 0, "wake", "wake", count);
	fire(all, n);
	start = account(MODULE "/wake");
	again = account("synthetic/rhist_self");
	/* each hit wants to make one more happen */
	ok(start.hits + start.lost == (n + 1) * count && start.missed + again.missed + again.lost == start.hits,
	   "from all contexts at once, too");
	note_account("wake", &start);
	note_account("rhist_self", &again);
	reset("synthetic/rhist_self");
	ok(idle("synthetic/rhist_self"), "its trigger can be removed");
	reset(MODULE "/wake");
}

static void chain(void)
{
	unsigned long count = slow_kernel() ? 500 : 2000, missed = 0, lost = 0;
	struct order all[ORDERS];
	struct account a;
	char *text;
	int n;

	add_trigger(MODULE "/wake", "hist:keys=key:w=amount:onmatch(" MODULE ".wake).trace(rhist_1,$w):size=128");
	for (int i = 1; i < DEEP; i++)
		add_trigger(pathf("synthetic/rhist_%d", i),
		    pathf("hist:keys=x:w=x:onmatch(synthetic.rhist_%d).trace(rhist_%d,$w):size=2048", i, i + 1));
	add_trigger("synthetic/rhist_4", "hist:keys=x:size=2048");
	/* the stack of NMIs is too small for all of it */
	for (int i = 0; i < 3; i++) {
		all[0] = (struct order){ .event = "wake", .context = contexts[i], .cpu = i % n_cpus, .first = 1, .count = count,
					 .keys = 500 };
		fire(all, 1);
	}
	a = account("synthetic/rhist_4");
	text = slurp(in_event("synthetic/rhist_4", "hist"));
	/* with KASAN, the stack is too small for all of it, too */
	ok(slow_kernel() ? a.hits <= 3 * count :
	   a.hits == 3 * count && a.entries == 500 && text && strstr(text, "{ x:       5000 }"),
	   "a chain of four events works to its end in tasks and interrupts");
	free(text);
	if (a.hits != 3 * count)
		note_account("rhist_4", &a);
	n = orders(all, 0, "wake", "wake", count);
	for (int i = 0; i < n; i++) {
		all[i].first = 1;
		all[i].keys = 500;
	}
	fire(all, n);
	a = account(MODULE "/wake");
	missed += a.missed;
	for (int i = 1; i <= DEEP; i++) {
		a = account(pathf("synthetic/rhist_%d", i));
		missed += a.missed;
		lost += a.lost;
	}
	ok(a.hits + missed + lost == (n + 3) * count, "from all contexts at once %llu, %lu were missed", a.hits, missed);
	for (int i = DEEP; i; i--)
		reset(pathf("synthetic/rhist_%d", i));
	reset(MODULE "/wake");
}

/*
 * Chains in interrupts that nest inside the making of a record. The records with strings go through
 * the ring buffer of one instance, which has space for five per CPU; the kernel warns if there are
 * more.
 */
static void interrupted(bool strings)
{
	const char *name = strings ? "rhist_s" : "rhist_n", *var = strings ? ",c=s" : "", *param = strings ? ",$c" : "";
	unsigned long count = slow_kernel() ? 100 : 500, missed, lost;
	struct account start, end;
	struct order order = { .event = "nested", .context = "task", .first = 1, .count = count, .keys = 100 };

	add_trigger(MODULE "/nested", pathf("hist:keys=k:w=k%s:onmatch(" MODULE ".nested).trace(%s1,$w%s):size=2048",
				    strings ? ",c=common_comm" : "", name, param));
	for (int i = 1; i < DEEP; i++)
		add_trigger(pathf("synthetic/%s%d", name, i),
		    pathf("hist:keys=x:w=x%s:onmatch(synthetic.%s%d).trace(%s%d,$w%s):size=2048", var, name, i, name,
			  i + 1, param));
	add_trigger(pathf("synthetic/%s4", name), "hist:keys=x:size=2048");
	fire(&order, 1);
	start = account(MODULE "/nested");
	end = account(pathf("synthetic/%s4", name));
	missed = start.missed;
	lost = end.lost;
	for (int i = 1; i < DEEP; i++) {
		struct account a = account(pathf("synthetic/%s%d", name, i));

		missed += a.missed;
		lost += a.lost;
	}
	ok(start.hits + start.lost == __builtin_popcount(nesting()) * count, "%s: %llu hits in all contexts", name, start.hits);
	/* as above, the stack may be too small */
	ok(end.hits + missed + lost == start.hits && (slow_kernel() || end.hits >= count),
	   "%s: %llu come to the end of the chain, %lu are missed", name, end.hits, missed);
	for (int i = DEEP; i; i--)
		reset(pathf("synthetic/%s%d", name, i));
	reset(MODULE "/nested");
}

/* --- stacks */

#define STACKS "/sys/module/" MODULE "/parameters/stacks"
#define LEFT 1536	/* bytes of a stack that must stay free */

/* Fills the free part of each CPU's stacks, to see how much of it stays free. */
static void fill_stacks(void)
{
	for (int cpu = 0; cpu < n_cpus; cpu++) {
		int error;

		pin(cpu);
		error = append(STACKS, "1");
		if (error)
			ok(false, STACKS ": %s", errno_name(error));
	}
}

/* Checks how much of the stacks of tasks, interrupts and NMIs stayed free. */
static bool stacks_left(unsigned int least, const char *who)
{
	unsigned long left[3] = { 0 };
	char *text = slurp(STACKS);
	bool right = text && sscanf(text, "%lu %lu %lu", &left[0], &left[1], &left[2]) == 3;

	note("%s: %lu bytes are left of a task's stack, %lu of an interrupt's, %lu of an NMI's", who, left[0], left[1], left[2]);
	for (unsigned int i = 0; i < 3; i++)
		right = right && left[i] >= least;
	free(text);
	return right;
}

/*
 * Chains with large users of the stack: keys of a string and a stack, and saved stacks. First in
 * each context; then in all at once; and then in softirqs with a hard interrupt at every frame of
 * each stack that they unwind.
 */
static void deep(void)
{
	unsigned long count = 300, missed = 0, lost = 0;
	struct order all[ORDERS];
	struct account start, a;
	int n = 0;

	if (slow_kernel() || access(STACKS, F_OK)) {
		skip("how deep stacks are used is not known", "stacks");
		return;
	}
	add_trigger(MODULE "/strings", "hist:keys=dynamic,common_stacktrace:s=dynamic,st=common_stacktrace,n=common_timestamp:"
	    "onmax($n).save(common_stacktrace,dynamic):onmatch(" MODULE ".strings).trace(rhist_d1,$s,$st,$n):size=2048");
	for (int i = 1; i < DEEP; i++)
		add_trigger(pathf("synthetic/rhist_d%d", i),
		    pathf("hist:keys=s,st.stacktrace:s2=s,st2=st,n2=n:onmax($n2).save(common_stacktrace):"
			  "onmatch(synthetic.rhist_d%d).trace(rhist_d%d,$s2,$st2,$n2):size=2048", i, i + 1));
	add_trigger("synthetic/rhist_d4", "hist:keys=s,st.stacktrace:n2=n:onmax($n2).save(common_stacktrace):size=2048");

	fill_stacks();
	for (int context = 0; context < n_contexts; context++) {
		all[0] = (struct order){ .event = "strings", .context = contexts[context], .cpu = context % n_cpus,
					 .first = RHIST_LONGEST, .count = count, .keys = 1 };
		fire(all, 1);
	}
	ok(stacks_left(LEFT, "in each context"), "stacks: chains leave some of them in each context");
	a = account("synthetic/rhist_d4");
	ok(a.hits >= count, "stacks: in tasks they come to their end");
	if (a.hits < count)
		note_account("rhist_d4", &a);
	fill_stacks();
	for (int cpu = 0; cpu < n_cpus; cpu++)
		for (int context = 0; context < n_contexts; context++, n++)
			all[n] = (struct order){ .event = "strings", .context = contexts[context], .cpu = cpu,
						 .first = RHIST_LONGEST, .count = count, .keys = 1 };
	fire(all, n);
	ok(stacks_left(LEFT, "in all contexts"), "stacks: and in all of them at once");

	fill_stacks();
	append("/sys/module/" MODULE "/parameters/interrupting", "1");
	ok(!append("/sys/module/" MODULE "/parameters/calls", "unwind_get_return_address"), "stacks: the unwinder is interrupted");
	all[0] = (struct order){ .event = "strings", .context = "softirq", .first = RHIST_LONGEST, .count = 20, .keys = 1 };
	fire(all, 1);
	append("/sys/module/" MODULE "/parameters/calls", "\n");
	append("/sys/module/" MODULE "/parameters/interrupting", "0");
	ok(stacks_left(LEFT, "interrupted"), "stacks: with hard interrupts in the deepest softirqs, too");

	start = account(MODULE "/strings");
	missed = start.missed;
	for (int i = 1; i <= DEEP; i++) {
		a = account(pathf("synthetic/rhist_d%d", i));
		missed += a.missed;
		lost += a.lost;
	}
	/* Missed chains include strings and stacks that could not be stored. */
	ok(start.hits > (n_contexts + n) * count && a.hits + missed + lost >= start.hits,
	   "stacks: of %llu chains, %llu come to their end, and %lu are missed", start.hits, a.hits, missed);
	for (int i = DEEP; i; i--)
		reset(pathf("synthetic/rhist_d%d", i));
	reset(MODULE "/strings");
}

/* --- coming and going */

static const struct link {
	const char *event, *text;
} links[] = {
	{ WAKING, "hist:keys=pid:ts0=common_timestamp.usecs:size=512" },
	{ SWITCH, "hist:keys=next_pid:lat=common_timestamp.usecs-$ts0:"
		  "onmatch(sched.sched_waking).trace(rhist_lat,$lat,next_pid,next_comm):size=512" },
	{ "synthetic/rhist_lat", "hist:keys=pid:l=lat:p=pid:onmax($l).save(comm):onmatch(synthetic.rhist_lat).trace(rhist_far,$l,$p):size=512" },
	{ "synthetic/rhist_far", "hist:keys=pid:m=lat:onchange($m).save(lat):vals=lat:size=512" },
	/* One with a helper on the first event, and a second user of the variable. */
	{ SWITCH, "hist:keys=next_pid:wait=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).trace(rhist_far,$wait,prio):size=512" },
};

#define LINKS (sizeof(links) / sizeof(*links))

/* Tasks that wake each other up, so that all links of the chain get hits. */
static void *fire_load(void *cpu)
{
	struct timespec t = { 0, 50000 };

	pin((long)cpu);
	while (!stop) {
		for (int i = 0; i < 50; i++)
			sched_yield();
		nanosleep(&t, NULL);
	}
	return NULL;
}

static void *change(void *arg)
{
	struct worker *w = arg;

	while (!stop) {
		const struct link *link = &links[rand_r(&w->seed) % LINKS];
		const char *trigger = in_event(link->event, "trigger");
		int error;

		switch (rand_r(&w->seed) % 8) {
		case 0 ... 3:
			/* The trigger that it refers to may be missing. */
			error = append(trigger, link->text);
			if (error && error != -EEXIST && error != -EINVAL)
				wrong(w, link->text, errno_name(error));
			break;
		case 4 ... 6:
			/* Another trigger may refer to it. */
			error = append(trigger, pathf("!%s", link->text));
			if (error && error != -EBUSY && error != -EINVAL)
				wrong(w, pathf("!%s", link->text), errno_name(error));
			break;
		default:
			error = truncate_file(trigger);
			if (error && error != -EBUSY)
				wrong(w, "truncation", errno_name(error));
		}
		if (error)
			w->refused++;
		else
			w->done++;
	}
	return NULL;
}

static void *look(void *arg)
{
	static const char *const files[] = { "hist", "hist_debug", "hist_jsonl", "hist_delta", "hist_delta_jsonl", "trigger" };
	struct worker *w = arg;

	while (!stop) {
		const struct link *link = &links[rand_r(&w->seed) % LINKS];
		const char *path = in_event(link->event, files[rand_r(&w->seed) % 6]);
		char *text;

		if (rand_r(&w->seed) % 8 == 0)
			path = pathf("%s/%s", tracing_dir(), rand_r(&w->seed) % 2 ? "hist_stats" : "show_event_triggers");
		text = slurp(path);
		if (!text && errno != ENOENT)
			wrong(w, path, errno_name(errno));
		free(text);
		w->done++;
		sched_yield();
	}
	return NULL;
}

/* An instance with a chain of its own; the chain keeps the instance. */
static void *make_and_remove(void *arg)
{
	struct worker *w = arg;
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s/" INSTANCE, tracing_dir());
	while (!stop) {
		int added = 0, error;

		if (mkdir(dir, 0755))
			wrong(w, "mkdir", errno_name(errno));
		for (unsigned int i = 0; i < 2; i++) {
			error = append(pathf("%s/events/%s/trigger", dir, links[i].event), links[i].text);
			if (error)
				wrong(w, links[i].text, errno_name(error));
			added += !error;
			if (!rmdir(dir) || errno != EBUSY)
				wrong(w, "rmdir with variables", errno_name(errno));
		}
		free(slurp(pathf("%s/events/" SWITCH "/hist", dir)));
		error = append(pathf("%s/events/" WAKING "/trigger", dir), pathf("!%s", links[0].text));
		if (added == 2 && error != -EBUSY)
			wrong(w, "removal of what is referenced", errno_name(error));
		for (int i = 1; i >= 0; i--) {
			error = append(pathf("%s/events/%s/trigger", dir, links[i].event), pathf("!%s", links[i].text));
			if (error)
				wrong(w, pathf("!%s", links[i].text), errno_name(error));
		}
		if (rmdir(dir)) {
			wrong(w, "rmdir", errno_name(errno));
			break;
		}
		w->done++;
	}
	return NULL;
}

static void coming_and_going(long ms)
{
	static struct worker workers[4] = { { .seed = 1 }, { .seed = 2 }, { .seed = 3 }, { .seed = 4 } };
	static void *(*const jobs[])(void *) = { change, change, look, make_and_remove };
	static const char *const names[] = { "added and removed", "added and removed", "read", "an instance made and removed" };
	pthread_t loads[n_cpus];
	bool nothing = true;
	struct account last;
	char *text;

	stop = false;
	for (long i = 0; i < n_cpus; i++)
		pthread_create(&loads[i], NULL, fire_load, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_create(&workers[i].thread, NULL, jobs[i], &workers[i]);
	sleep_ms(ms);
	stop = true;
	for (int i = 0; i < 4; i++) {
		pthread_join(workers[i].thread, NULL);
		ok(workers[i].done && !workers[i].wrong, "%s %lu times, %lu refused", names[i], workers[i].done, workers[i].refused);
		if (workers[i].wrong)
			note("%lu wrong, the first: %s", workers[i].wrong, workers[i].why);
	}
	stop = false;
	for (long i = 0; i < n_cpus; i++)
		pthread_join(loads[i], NULL);

	/* from the end of the chain */
	for (int i = LINKS - 1; i >= 0; i--)
		if (append(in_event(links[i].event, "trigger"), pathf("!%s", links[i].text)) == -EBUSY)
			nothing = false;
	for (unsigned int i = 0; i < LINKS; i++)
		nothing = idle(links[i].event) && nothing;
	ok(nothing, "all can be removed, and nothing is left");

	/* The chain still works. */
	for (unsigned int i = 0; i < LINKS; i++)
		add_trigger(links[i].event, links[i].text);
	for (long i = 0; i < n_cpus; i++)
		pthread_create(&loads[i], NULL, fire_load, (void *)i);
	sleep_ms(500);
	stop = true;
	for (long i = 0; i < n_cpus; i++)
		pthread_join(loads[i], NULL);
	last = account("synthetic/rhist_far");
	ok(last.hits, "made once more, the chain works to its end: %llu hits", last.hits);
	ok(define("!rhist_far") == -EBUSY && define("!rhist_lat") == -EBUSY, "its synthetic events cannot be deleted");
	ok(truncate_file(pathf("%s/synthetic_events", kernel_dir())) == -EBUSY && define("rhist_once u32 x") == -EEXIST,
	   "nor all, which leaves the others, too");
	ok(append(in_event(WAKING, "trigger"), pathf("!%s", links[0].text)) == -EBUSY, "nor its first trigger");
	for (int i = LINKS - 1; i >= 0; i--)
		append(in_event(links[i].event, "trigger"), pathf("!%s", links[i].text));
	text = slurp(pathf("%s/hist_stats", tracing_dir()));
	ok(text && !strstr(text, "unresolved"), "in the end there are no triggers with variables");
	free(text);
}

static const char *const synthetic[] = {
	"rhist_once u32 x", "rhist_heard u64 x", "rhist_torn char s[]", "rhist_self u32 x", "rhist_1 u32 x", "rhist_2 u32 x", "rhist_3 u32 x",
	"rhist_4 u32 x", "rhist_n1 u64 x", "rhist_n2 u64 x", "rhist_n3 u64 x", "rhist_n4 u64 x",
	"rhist_s1 u64 x; char s[]", "rhist_s2 u64 x; char s[]", "rhist_s3 u64 x; char s[]", "rhist_s4 u64 x; char s[]",
	"rhist_d1 char s[]; long[] st; u64 n", "rhist_d2 char s[]; long[] st; u64 n", "rhist_d3 char s[]; long[] st; u64 n",
	"rhist_d4 char s[]; long[] st; u64 n",
	"rhist_lat u64 lat; pid_t pid; char comm[16]",
	"rhist_far u64 lat; s32 pid",
};

int main(void)
{
	unsigned int deleted = 0;

	if (testing_c()) {
		skip("C loses some", "chains");
		finish();
	}
	n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	n_cpus = n_cpus < ORDERS / 4 ? n_cpus : ORDERS / 4;
	n_contexts = contexts_there();
	for (unsigned int i = 0; i < sizeof(synthetic) / sizeof(*synthetic); i++)
		if (define(synthetic[i]))
			die("%s", synthetic[i]);
	load_events();
	if (event_source < 0) {
		skip("the module with the events is not there: make events", "variables in every context");
	} else {
		taken_at_most_once("$v+0");
		taken_at_most_once("$v-0");
		taken_exactly_once("$v+0");
		taken_exactly_once("$v-0");
		listened();
		whole_strings();
		saved("onmax", "max:", true);
		saved("onchange", "changed:", false);
		self_feeding();
		chain();
		for (int strings = 0; strings < 2; strings++)
			interrupted(strings);
		deep();
		unload_events();
		ok(access(in_event(MODULE "/wake", "trigger"), F_OK), "nothing holds the module of the events");
	}
	coming_and_going(long_run() ? 120000 : 6000);
	for (unsigned int i = 0; i < sizeof(synthetic) / sizeof(*synthetic); i++)
		deleted += !define(pathf("!%.*s", (int)strcspn(synthetic[i], " "), synthetic[i]));
	ok(deleted == sizeof(synthetic) / sizeof(*synthetic), "the synthetic events can be deleted");
	finish();
}
