/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads hist_delta_jsonl, and adds up its intervals. Define _GNU_SOURCE before <stdio.h> is
 * included.
 */
#ifndef INTERVALS_H
#define INTERVALS_H

#include <pthread.h>

#include "tracing.h"

/* Number of open files that a histogram can have. */
#define READERS 32

/* One histogram in a file. */
struct part {
	char trigger[512];
	bool paused;
	unsigned long long life;	/* when the histogram began to count, in ns since boot */
	unsigned long long begin, end;	/* the edges, likewise; 0 in hist_jsonl */
	char ended[16];			/* "cleared", "removed"; empty while it counts */
	unsigned long long lost;
	unsigned long long hits, entries, dropped, no_bucket, unresolved, missed, rejected;
	const char *values, *rows, *rest;	/* columns, entries, and the text behind it */
	const char *other;		/* hits without an entry, by kind, or NULL */
	bool forgets;			/* entries are taken out, */
	unsigned long long gone;	/* so many */
};

/* The number behind a name in a text up to `end`; 0 if it is not there. */
__maybe static unsigned long long number_of(const char *text, const char *end, const char *name)
{
	const char *at = memmem(text, end - text, name, strlen(name));

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* Copies the string behind a name; empty for null. */
__maybe static void string_of(const char *text, const char *end, const char *name, char *to, size_t size)
{
	const char *at = memmem(text, end - text, name, strlen(name));

	*to = 0;
	if (at && at[strlen(name)] == '"') {
		at += strlen(name) + 1;
		snprintf(to, size, "%.*s", (int)strcspn(at, "\""), at);
	}
}

/* Reads the first histogram of a text. Returns false without a whole one. */
__maybe static bool part_of(const char *text, struct part *p)
{
	static const char head[] = "{\"type\":\"header\",", tail[] = "{\"type\":\"trailer\",", complete[] = ",\"complete\":true}\n";
	const char *line, *edges, *trailer;

	memset(p, 0, sizeof(*p));
	if (!text || strncmp(text, head, strlen(head)) || !(line = strchr(text, '\n')) || !(trailer = strstr(line, tail)))
		return false;
	p->rows = line + 1;
	p->rest = strstr(trailer, complete);
	if (!p->rest)
		return false;
	p->rest += strlen(complete);
	p->values = memmem(text, line - text, "\"values\":[", 10);
	string_of(text, line, "\"trigger\":", p->trigger, sizeof(p->trigger));
	p->paused = memmem(text, line - text, "\"paused\":true", 13);
	edges = memmem(text, line - text, ",\"begin\":{", 10);
	p->life = edges ? number_of(edges, line, "\"boottime_ns\":") : 0;
	edges = memmem(text, line - text, "\"interval\":{", 12);
	if (edges) {
		const char *end = memmem(edges, line - edges, "\"end\":", 6);

		p->begin = number_of(edges, line, "\"boottime_ns\":");
		p->end = end ? number_of(end, line, "\"boottime_ns\":") : 0;
		string_of(edges, line, "\"ended\":", p->ended, sizeof(p->ended));
		p->lost = number_of(edges, line, "\"lost_histograms\":");
	}
	p->hits = number_of(trailer, p->rest, "\"hits\":");
	p->entries = number_of(trailer, p->rest, "\"entries\":");
	p->dropped = number_of(trailer, p->rest, "\"dropped\":");
	p->no_bucket = number_of(trailer, p->rest, "\"no_bucket\":");
	p->unresolved = number_of(trailer, p->rest, "\"unresolved\":");
	p->missed = number_of(trailer, p->rest, "\"missed\":");
	p->rejected = number_of(trailer, p->rest, "\"rejected\":");
	p->other = memmem(trailer, p->rest - trailer, "\"other\":{", 9);
	p->forgets = memmem(trailer, p->rest - trailer, "\"expired\":{", 11) ||
		     memmem(trailer, p->rest - trailer, "\"recycled\":{", 12);
	p->gone = number_of(trailer, p->rest, "\"expired_entries\":") + number_of(trailer, p->rest, "\"recycled_entries\":");
	return true;
}

/* Reads at most `most` histograms of a text. Returns their number; -1 if the text is not whole. */
__maybe static int parts_of(const char *text, struct part *parts, int most)
{
	int n = 0;

	while (text && *text) {
		if (n == most || !part_of(text, &parts[n]))
			return -1;
		text = parts[n++].rest;
	}
	return n;
}

/* Reads a file up to its end, which is the rest of a round. NULL and errno if that fails. */
__maybe static char *round_of(int fd)
{
	size_t used = 0, size = 1 << 14;
	char *text = malloc(size);
	ssize_t got;

	while ((got = read(fd, text + used, size - used - 1)) > 0) {
		used += got;
		if (size - used < 4096)
			text = realloc(text, size *= 2);
	}
	if (got < 0) {
		int error = errno;

		free(text);
		errno = error;
		return NULL;
	}
	text[used] = 0;
	return text;
}

__maybe static unsigned long long boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* --- sums of intervals */

/* A number of a histogram: of a column in a row, of a bucket, or a total. */
struct sum {
	char *name;
	long long number;
	enum how { SUM, MINIMUM, MAXIMUM } how;
};

/* The numbers of one life of a histogram, in a hash table. */
struct account {
	char trigger[512];
	unsigned long long life, begin, end;
	bool ended;
	unsigned long intervals;
	struct sum *sums;
	size_t size, used;
};

struct accounts {
	struct account *all;
	int n;
};

static struct sum *sum_of(struct account *a, const char *name)
{
	unsigned long hash = 5381;

	for (const char *at = name; *at; at++)
		hash = hash * 33 + *at;
	for (;; hash++) {
		struct sum *sum = &a->sums[hash & (a->size - 1)];

		if (!sum->name || !strcmp(sum->name, name))
			return sum;
	}
}

static void add_sum(struct account *a, const char *name, enum how how, long long number)
{
	struct sum *sum;

	if (2 * a->used >= a->size) {
		struct sum *old = a->sums;
		size_t size = a->size;

		a->size = size ? 2 * size : 256;
		a->sums = calloc(a->size, sizeof(*a->sums));
		for (size_t i = 0; i < size; i++)
			if (old[i].name)
				*sum_of(a, old[i].name) = old[i];
		free(old);
	}
	sum = sum_of(a, name);
	if (!sum->name) {
		*sum = (struct sum){ strdup(name), number, how };
		a->used++;
	} else if (how == SUM) {
		sum->number += number;
	} else if (how == MINIMUM ? number < sum->number : number > sum->number) {
		sum->number = number;
	}
}

/* Adds the numbers of a distribution. Returns the text behind it. */
static const char *add_distribution(struct account *a, const char *row, int column, const char *at)
{
	char group[64] = "", name[64];

	for (at++; *at != '}' || *group; ) {
		if (*at == ',' || *at == '}') {
			if (*at++ == '}')
				*group = 0;
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 1, "\""), at + 1);
		at += strlen(name) + 3;
		if (*at == '{') {
			snprintf(group, sizeof(group), "%s", name);
			at++;
			continue;
		}
		if (strcmp(group, "quantiles") && strcmp(name, "scale") && *at != 'n')
			add_sum(a, pathf("%s value %d %s %s", row, column, group, name),
				!strcmp(name, "min") ? MINIMUM : !strcmp(name, "max") ? MAXIMUM : SUM, strtoll(at, NULL, 10));
		at += strcspn(at, ",}");
	}
	return at + 1;
}

/*
 * Adds values, from the bracket on, to the sums of a row. Averages are left out: sums and hits are
 * there. Returns the hits.
 */
static unsigned long long add_values(struct account *a, const struct part *p, const char *row, const char *at)
{
	const char *modifier = p->values;
	unsigned long long hits = strtoull(++at, NULL, 10);

	for (int column = 0; *at && *at != ']'; column++) {
		modifier = strstr(modifier, "\"modifier\":") + strlen("\"modifier\":");
		if (*at == '{') {
			at = add_distribution(a, row, column, at);
		} else {
			if (*at != 'n' && strncmp(modifier, "\"avg\"", 5))
				add_sum(a, pathf("%s value %d", row, column),
					!strncmp(modifier, "\"min\"", 5) ? MINIMUM : !strncmp(modifier, "\"max\"", 5) ? MAXIMUM : SUM,
					strtoll(at, NULL, 10));
			at += strcspn(at, ",]");
		}
		at += *at == ',';
	}
	return hits;
}

/* A row of a histogram that forgets may be in `other` later: the sums over all of them stay. */
static unsigned long long add_row(struct account *a, const struct part *p, const char *line)
{
	static const char before[] = "\"keys\":[", between[] = "],\"values\":";
	const char *keys = strstr(line, before), *values = strstr(line, between);
	char row[256] = "all";

	keys += strlen(before);
	if (!p->forgets)
		snprintf(row, sizeof(row), "key %.*s", (int)(values - keys), keys);
	return add_values(a, p, row, values + strlen(between));
}

/* Adds hits without an entry, of each kind. */
static unsigned long long add_other(struct account *a, const struct part *p)
{
	static const char *const kinds[] = { "\"folded\":{", "\"expired\":{", "\"recycled\":{" };
	unsigned long long hits = 0;

	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const char *kind = p->other ? memmem(p->other, p->rest - p->other, kinds[i], strlen(kinds[i])) : NULL;

		if (kind)
			hits += add_values(a, p, p->forgets ? "all" : "folded", strstr(kind, "\"values\":[") + strlen("\"values\":"));
	}
	return hits;
}

/* Adds an interval, or a whole histogram. Returns NULL, or the mistake in it. */
__maybe static const char *add_part(struct accounts *accounts, const struct part *p)
{
	struct account *a = NULL;
	unsigned long long hits = 0;
	const char *line;

	for (int i = 0; i < accounts->n; i++)
		if (accounts->all[i].life == p->life && !strcmp(accounts->all[i].trigger, p->trigger))
			a = &accounts->all[i];
	if (!a) {
		accounts->all = realloc(accounts->all, (accounts->n + 1) * sizeof(*a));
		a = &accounts->all[accounts->n++];
		*a = (struct account){ .life = p->life, .begin = p->begin, .end = p->begin };
		snprintf(a->trigger, sizeof(a->trigger), "%s", p->trigger);
	}
	if (a->ended)
		return "a histogram goes on after its end";
	if (p->begin != a->end)
		return "an interval does not begin where the last one ended";
	if (p->end < p->begin)
		return "an interval ends before it begins";
	a->end = p->end;
	a->ended = *p->ended;
	a->intervals++;
	for (line = p->rows; !strncmp(line, "{\"type\":\"entry\"", 15); line = strchr(line, '\n') + 1)
		hits += add_row(a, p, line);
	hits += add_other(a, p);
	if (p->other && hits != p->hits)
		return pathf("the rows and other have %llu hits of %llu", hits, p->hits);
	add_sum(a, "hits", SUM, p->hits);
	add_sum(a, "dropped", SUM, p->dropped);
	add_sum(a, "no bucket", SUM, p->no_bucket);
	add_sum(a, "unresolved", SUM, p->unresolved);
	add_sum(a, "missed", SUM, p->missed);
	add_sum(a, "rejected", SUM, p->rejected);
	return NULL;
}

/* Adds all histograms of a text. Returns NULL, or the mistake in it. */
__maybe static const char *add_text(struct accounts *accounts, const char *text)
{
	while (text && *text) {
		struct part p;
		const char *wrong = part_of(text, &p) ? add_part(accounts, &p) : "a text is not whole";

		if (wrong)
			return wrong;
		text = p.rest;
	}
	return text ? NULL : "a text cannot be read";
}

__maybe static void free_accounts(struct accounts *accounts)
{
	for (int i = 0; i < accounts->n; i++) {
		for (size_t n = 0; n < accounts->all[i].size; n++)
			free(accounts->all[i].sums[n].name);
		free(accounts->all[i].sums);
	}
	free(accounts->all);
	*accounts = (struct accounts){ 0 };
}

/* A thread that reads the intervals of an event, and adds them up. */
struct interval_reader {
	pthread_t thread;
	int fd;
	unsigned int pause_ms;		/* between two rounds */
	bool last;			/* set by others: the next round is the last one */
	unsigned long rounds;
	const char *error;		/* the first mistake, or NULL */
	struct accounts accounts;
};

__maybe static void *add_intervals(void *arg)
{
	struct interval_reader *r = arg;
	bool last;

	do {
		char *text;

		last = __atomic_load_n(&r->last, __ATOMIC_ACQUIRE);
		text = round_of(r->fd);
		if (!r->error) {
			const char *error = add_text(&r->accounts, text);

			r->error = error ? strdup(error) : NULL;
		}
		r->rounds++;
		free(text);
		sleep_ms(last ? 0 : r->pause_ms);
	} while (!last);
	return NULL;
}

/* Returns the sum with this name, or 0. */
__maybe static long long sum_named(struct account *a, const char *name)
{
	struct sum *sum = a->size ? sum_of(a, name) : NULL;

	return sum && sum->name ? sum->number : 0;
}

/*
 * Compares the sums of intervals with a whole histogram, less its counts `before` the first
 * of them (or NULL): extremes are not compared then. Returns NULL if they are equal, or the
 * first difference.
 */
__maybe static const char *difference(struct account *intervals, struct account *whole, struct account *before)
{
	for (int side = 0; side < 2; side++) {
		struct account *of = side ? intervals : whole;

		for (size_t i = 0; i < of->size; i++) {
			const char *name = of->sums[i].name;
			long long expected, got;

			if (!name || (before && of->sums[i].how != SUM))
				continue;
			expected = sum_named(whole, name) - (before ? sum_named(before, name) : 0);
			got = sum_named(intervals, name);
			if (expected != got)
				return pathf("%s: %lld in the histogram, %lld in %lu intervals", name, expected, got,
					     intervals->intervals);
		}
	}
	return NULL;
}

#endif
