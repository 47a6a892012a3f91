// SPDX-License-Identifier: GPL-2.0
/*
 * Events whose fields are known to the bit, fired in known numbers from tasks, softirqs, hard
 * interrupts and NMIs: the histogram equals the table computed here, and C's.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "../../events/values.h"
#include "errorlog.h"

#define SYSTEM "rhist_events"
/* different fields of the events fired: fewer than the smallest map has entries */
#define KEYS 96

static int cpus;

/* Fires; 0 or a negative errno. */
static int fire(const char *event, const char *context, int cpu, unsigned long first, unsigned long count,
		unsigned long keys)
{
	if (!strcmp(context, "task"))
		pin(cpu);
	return append("/dev/" SYSTEM, pathf("%s %s %d %lu %lu %lu", event, context, cpu, first, count, keys));
}

static const char *file(const char *dir, const char *event, const char *name)
{
	return pathf("%s/events/" SYSTEM "/%s/%s", dir, event, name);
}

/* --- contents of the fields */

#define NUMBER(name, type) \
	static uint64_t name(uint64_t k) { return (type)(rhist_number(k) >> (64 - 8 * sizeof(type))); }
NUMBER(u8, uint8_t)
NUMBER(s8, int8_t)
NUMBER(u16, uint16_t)
NUMBER(s16, int16_t)
NUMBER(u32, uint32_t)
NUMBER(s32, int32_t)
NUMBER(u64, uint64_t)
NUMBER(s64, int64_t)
static uint64_t flag(uint64_t k) { return k % 2; }
static uint64_t letter(uint64_t k) { return 'a' + k % 26; }
static uint64_t colour(uint64_t k) { return k % 3; }
/* Arrays and structures of a number's size are read as numbers. */
static uint64_t four(uint64_t k) { return (int8_t)k * 0x01010101; }
static uint64_t eight(uint64_t k) { return (uint8_t)k * 0x0101010101010101; }
static uint64_t pair(uint64_t k) { return (uint32_t)k | (uint64_t)~(uint32_t)k << 32; }

#define KEY 256		/* bytes of a string as a key, the NUL included */

static void cut_to(uint64_t k, char key[KEY], size_t most)
{
	char text[RHIST_TEXT + 1];
	size_t length = rhist_text(k, text);

	memcpy(key, text, length < most ? length : most);
}

static void fixed(uint64_t k, char key[KEY]) { cut_to(k, key, 15); }
/* A key keeps a NUL, even in place of a character. */
static void full(uint64_t k, char key[KEY]) { cut_to(k, key, 7); }
static void bytes(uint64_t k, char key[KEY]) { cut_to(k, key, 12); }
static void counted(uint64_t k, char key[KEY]) { cut_to(k, key, 8); }
static void dynamic(uint64_t k, char key[KEY]) { cut_to(k, key, 255); }
/* Bytes behind the NUL are part of the key. */
static void dirty(uint64_t k, char key[KEY])
{
	char text[RHIST_TEXT + 1];
	size_t length = rhist_text(k, text);

	memset(key, (int)k, 15);
	cut_to(k, key, 3);
	key[length < 3 ? length : 3] = 0;
}

static const struct field {
	const char *event, *name;
	int width;				/* bytes of a number; negative if it is signed */
	uint64_t (*number)(uint64_t k);		/* contents of the field: this, */
	/* or this; if both are missing, only C knows */
	void (*text)(uint64_t k, char key[KEY]);
} fields[] = {
	{ "numbers", "u8", 1, u8, NULL },
	{ "numbers", "s8", -1, s8, NULL },
	{ "numbers", "u16", 2, u16, NULL },
	{ "numbers", "s16", -2, s16, NULL },
	{ "numbers", "u32", 4, u32, NULL },
	{ "numbers", "s32", -4, s32, NULL },
	{ "numbers", "u64", 8, u64, NULL },
	{ "numbers", "s64", -8, s64, NULL },
	{ "numbers", "flag", 1, flag, NULL },
	{ "numbers", "letter", 1, letter, NULL },
	{ "numbers", "colour", 4, colour, NULL },
	{ "numbers", "pointer", 8, u64, NULL },
	{ "numbers", "name", 8, NULL, NULL },
	{ "strings", "fixed", 0, NULL, fixed },
	{ "strings", "full", 0, NULL, full },
	{ "strings", "dirty", 0, NULL, dirty },
	{ "strings", "bytes", 0, NULL, bytes },
	{ "strings", "dynamic", 0, NULL, dynamic },
	{ "strings", "counted", 0, NULL, counted },
	{ "strings", "raw", 0, NULL, dynamic },
	{ "strings", "relative", 0, NULL, dynamic },
	{ "arrays", "four", -4, four, NULL },
	{ "arrays", "eight", 8, eight, NULL },
	{ "arrays", "pair", 8, pair, NULL },
	{ "arrays", "list", 4, NULL, NULL },
	{ "arrays", "bits", 4, NULL, NULL },
	{ "arrays", "cpus", 4, NULL, NULL },
	{ "arrays", "others", 4, NULL, NULL },
};

/* --- the expected table */

struct entry {
	char key[KEY];
	uint64_t number, hits, sum;
	bool found;
};

struct table {
	const struct field *key, *value;	/* sorted by the value, if set */
	bool descending;
	struct entry entries[KEYS];
	unsigned int used;
	uint64_t hits;
};

static void count(struct table *table, uint64_t k)
{
	struct entry new = { .hits = 0 }, *e;

	if (table->key->number)
		new.number = table->key->number(k);
	else
		table->key->text(k, new.key);
	for (e = table->entries; e < table->entries + table->used; e++)
		if (e->number == new.number && !memcmp(e->key, new.key, KEY))
			break;
	if (e == table->entries + table->used) {
		*e = new;
		table->used++;
	}
	e->hits++;
	table->hits++;
	if (table->value)
		e->sum += table->value->number(k);
}

/* Returns true if a may precede b. */
static bool ordered(const struct table *table, const struct entry *a, const struct entry *b)
{
	if (table->descending) {
		const struct entry *swap = a;

		a = b;
		b = swap;
	}
	if (table->value)
		return a->sum <= b->sum;
	if (!table->key->number)
		return strcmp(a->key, b->key) <= 0;
	return table->key->width < 0 ? (int64_t)a->number <= (int64_t)b->number : a->number <= b->number;
}

/* Returns true if the line shows this entry. */
static bool is_line(const struct table *table, const struct entry *e, const char *line, size_t len)
{
	char key[KEY + 100], value[100] = "", expected[KEY + 300];

	if (table->key->number)
		snprintf(key, sizeof(key), "%10llu", (unsigned long long)e->number);
	else
		snprintf(key, sizeof(key), "%-50s", e->key);
	if (table->value)
		snprintf(value, sizeof(value), "  %s: %10llu", table->value->name, (unsigned long long)e->sum);
	snprintf(expected, sizeof(expected), "{ %s: %s } hitcount: %10llu%s", table->key->name, key,
		 (unsigned long long)e->hits, value);
	return strlen(expected) == len && !memcmp(line, expected, len);
}

/*
 * Returns true if a histogram's text has each line of the table once, in a right order, and its
 * totals.
 */
static bool is_table(struct table *table, const char *text)
{
	const struct entry *last = NULL;
	unsigned int lines = 0;
	struct totals t;

	for (unsigned int i = 0; i < table->used; i++)
		table->entries[i].found = false;
	for (const char *line = text; *line && strncmp(line, "Totals:", 7); line += strcspn(line, "\n") + 1) {
		size_t len = strcspn(line, "\n");
		struct entry *e = table->entries;

		if (!line[len])
			return false;
		if (strncmp(line, "{ ", 2))
			continue;
		/* Finds each of several entries that look the same once. */
		while (e < table->entries + table->used && (e->found || !is_line(table, e, line, len)))
			e++;
		if (e == table->entries + table->used || (last && !ordered(table, last, e))) {
			note("%s: %.*s", last ? "not expected here" : "not expected", (int)len, line);
			return false;
		}
		e->found = true;
		last = e;
		lines++;
	}
	if (!parse_totals(text, &t) || t.hits != table->hits || t.entries != table->used || t.dropped) {
		note("expected %llu hits, %u entries, no drops", (unsigned long long)table->hits, table->used);
		return false;
	}
	return lines == table->used;
}

/* --- the same triggers on C's event and on ours */

enum answer { ACCEPTED, REFUSED, WRONG };

/* Writes a trigger to both. WRONG: their answers differ. */
static enum answer attach(const char *event, const char *trigger)
{
	char *c, *ours = NULL;
	enum answer answer;
	int c_error, error;

	truncate_file(pathf("%s/error_log", kernel_dir()));
	c_error = append(file(kernel_dir(), event, "trigger"), trigger);
	c = slurp(pathf("%s/error_log", kernel_dir()));
	if (testing_c()) {
		free(c);
		return c_error ? REFUSED : ACCEPTED;
	}
	truncate_file(pathf("%s/error_log", tracing_dir()));
	error = append(file(tracing_dir(), event, "trigger"), trigger);
	ours = slurp(pathf("%s/error_log", tracing_dir()));
	if (error == c_error && same_log(c, ours, error)) {
		answer = error ? REFUSED : ACCEPTED;
	} else {
		note("%s on %s", trigger, event);
		note("C:    %s\n%s", errno_name(c_error), c ?: "");
		note("ours: %s\n%s", errno_name(error), ours ?: "");
		answer = WRONG;
	}
	free(c);
	free(ours);
	return answer;
}

static void detach(const char *event)
{
	truncate_file(file(kernel_dir(), event, "trigger"));
	if (!testing_c())
		truncate_file(file(tracing_dir(), event, "trigger"));
}

static size_t line_length(const char *text)
{
	size_t length = strcspn(text, "\n");

	return text[length] ? length + 1 : length;
}

/*
 * Returns true if two hist files are the same. Where the compiler made a function of a tracepoint's
 * call, C's stacks begin there, one before the traced function, and may end one earlier therefore.
 * On an older kernel, C's stacks end after 16 functions.
 */
static bool same_text(const char *c, const char *ours)
{
	static const char frame[] = "         ", helper[] = "         __do_trace_";
	unsigned int functions = 0;
	bool late = false;

	while (*c && *ours) {
		size_t of_c = line_length(c), of_ours = line_length(ours);

		if (of_c == of_ours && !strncmp(c, ours, of_c)) {
			functions = strncmp(c, frame, strlen(frame)) ? 0 : functions + 1;
			late &= *c != '}';
			c += of_c;
			ours += of_ours;
		} else if (!strncmp(c, helper, strlen(helper))) {
			functions++;
			late = true;
			c += of_c;
		} else if (!c_walks_far() && functions == 16 && *c == '}' && !strncmp(ours, frame, strlen(frame))) {
			ours += of_ours;
		} else if (late && *c == '}' && !strncmp(ours, frame, strlen(frame))) {
			late = false;
			ours += of_ours;
		} else {
			return false;
		}
	}
	return !*c && !*ours;
}

/*
 * Compares the texts of both sides, except for known differences. Prints remarks and returns false
 * if they differ.
 */
static bool same_as_c(const char *event, const char *name)
{
	char *c = slurp(file(kernel_dir(), event, name)), *ours = slurp(file(tracing_dir(), event, name));
	bool same;

	if (c && !testing_c())
		without_differences(c);
	same = c && ours && *c && same_text(c, ours);
	if (!same)
		note_difference(c ?: "(unreadable)", ours ?: "(unreadable)");
	free(c);
	free(ours);
	return same;
}

#define TABLES 4

/*
 * Attaches a trigger for each table to both sides, fires in all contexts, and checks both after
 * each. C alone is the measure for an event whose tables cannot be computed here.
 */
static void check(const char *event, const char *what, char triggers[TABLES][200], struct table *tables)
{
	unsigned int attached = 0;

	for (; attached < TABLES && *triggers[attached]; attached++) {
		enum answer answer = attach(event, triggers[attached]);

		if (answer == ACCEPTED)
			continue;
		ok(false, "%s is %s", triggers[attached], answer == WRONG ? "answered as in C" : "refused");
		detach(event);
		return;
	}
	for (int context = 0; context < contexts_there(); context++) {
		unsigned int first = context * 5;
		struct totals totals;
		char *text, *at;
		int error;

		/* Fired from tasks only, it reaches the other contexts by itself. */
		if (context && !strcmp(event, "nested"))
			break;
		/* every CPU gets its turn, and every context other numbers */
		error = fire(event, contexts[context], context % cpus, first, 2 * (KEYS - 20), KEYS - 20);
		if (error) {
			ok(false, "%s from %s: %s", what, contexts[context], errno_name(error));
			continue;
		}
		if (!c_compares_all() && !strcmp(what, "dirty"))
			skip("C's keys end at the NUL", "%s from %s: C's text", what, contexts[context]);
		else
			ok(same_as_c(event, "hist") && read_totals(file(tracing_dir(), event, "hist"), &totals) && totals.hits,
			   "%s from %s: C's text", what, contexts[context]);
		if (!tables)
			continue;
		text = slurp(file(tracing_dir(), event, "hist"));
		for (unsigned int i = 0; i < attached; i++) {
			for (unsigned int n = 0; n < 2 * (KEYS - 20); n++)
				count(&tables[i], first + n % (KEYS - 20));
			at = text ? strstr(text, pathf("# trigger info: %s", triggers[i])) : NULL;
			ok(at && is_table(&tables[i], at), "%s from %s: the table of %s", what, contexts[context],
			   triggers[i]);
		}
		free(text);
	}
	detach(event);
}

/* Each field as a key, as a value and to sort by, up and down. */
static void check_field(const struct field *field)
{
	static const struct field by_letter = { "numbers", "letter", 1, letter, NULL };
	static struct table tables[TABLES];
	char triggers[TABLES][200] = { "" };

	memset(tables, 0, sizeof(tables));
	/* as their lines begin */
	for (unsigned int i = 0; i < TABLES; i++) {
		const char *down = i % 2 ? ".descending" : "";

		tables[i].descending = i % 2;
		if (i < 2) {
			tables[i].key = field;
			snprintf(triggers[i], sizeof(triggers[i]), "hist:keys=%s:vals=hitcount:sort=%s%s:size=128",
				 field->name, field->name, down);
		} else if (!strcmp(field->event, "numbers") && strcmp(field->name, "letter")) {
			tables[i].key = &by_letter;
			tables[i].value = field;
			snprintf(triggers[i], sizeof(triggers[i]), "hist:keys=letter:vals=hitcount,%s:sort=%s%s:size=128",
				 field->name, field->name, down);
		}
	}
	check(field->event, field->name, triggers, field->number || field->text ? tables : NULL);
}

/* Triggers whose expected result can only come from C. */
static const struct { const char *event, *trigger; } others[] = {
	{ "numbers", "hist:keys=s8,u16,letter:sort=s8,letter.descending" },
	{ "numbers", "hist:keys=pointer.hex,flag:vals=s64,s32" },
	{ "numbers", "hist:keys=name.sym-offset" },
	{ "numbers", "hist:keys=u32.log2:vals=u64.hex" },
	{ "numbers", "hist:keys=s16.buckets=100:vals=colour.percent" },
	{ "numbers", "hist:keys=s16+u8:vals=s64-u64,u32*letter" },
	{ "numbers", "hist:keys=letter if name ~ \"t*\"" },
	{ "numbers", "hist:keys=letter if s8 < 0 && u64 > 0x8000000000000000 || !(s16 >= -5)" },
	{ "numbers", "hist:keys=colour if pointer & 0xff00 && flag == 1" },
	{ "numbers", "hist:keys=s32 if s64 <= -1 || colour == 2" },
	{ "numbers", "hist:keys=common_stacktrace" },
	{ "strings", "hist:keys=fixed,relative" },
	{ "strings", "hist:keys=full,counted:sort=counted.descending,full" },
	{ "strings", "hist:keys=dynamic if relative ~ \"[1]*\" || counted == \"22222222\"" },
	{ "strings", "hist:keys=raw if bytes != \"777777777777\" && dynamic ~ \"*7\"" },
	{ "strings", "hist:keys=fixed if full ~ \"[4]*\"" },
	{ "arrays", "hist:keys=four,eight:vals=pair" },
	{ "arrays", "hist:keys=four if cpus & CPUS{0}" },
	{ "arrays", "hist:keys=eight if cpus == CPUS{1} || four > 30" },
	{ "nested", "hist:keys=context,common_stacktrace:sort=context" },
	{ "stacks", "hist:keys=k" },
	{ "stacks", "hist:keys=stack.stacktrace" },
	{ "stacks", "hist:keys=stack.stacktrace,k:sort=k" },
};

/* Fields that cannot be keys, values or operands. */
static const struct { const char *event, *field; } unfit[] = {
	{ "arrays", "args" }, { "arrays", "words" }, { "arrays", "three" }, { "arrays", "wide" },
	{ "stacks", "args" }, { "strings", "k" },
};

static void refusals(void)
{
	static const char *const forms[] = {
		"hist:keys=%s", "hist:keys=%s.hex", "hist:keys=%s.log2", "hist:keys=common_pid,%s", "hist:keys=-%s",
		"hist:keys=common_pid:vals=%s", "hist:keys=common_pid:vals=hitcount,%s", "hist:keys=common_pid:vals=%s+1",
		"hist:keys=common_pid:sort=%s", "hist:keys=common_pid if %s == 1", "hist:keys=common_pid if %s ~ \"x\"",
		"hist:keys=common_pid if %s & CPUS{0}",
	};

	for (unsigned int i = 0; i < sizeof(unfit) / sizeof(*unfit); i++)
		for (unsigned int f = 0; f < sizeof(forms) / sizeof(*forms); f++) {
			char *trigger;
			enum answer answer;

			if (asprintf(&trigger, forms[f], unfit[i].field) < 0)
				abort();
			answer = attach(unfit[i].event, trigger);
			ok(answer != WRONG, "%s on %s is %s", trigger, unfit[i].event,
			   answer == REFUSED ? "refused" : "taken as in C");
			detach(unfit[i].event);
			free(trigger);
		}
}

/* --- all at once */

static unsigned long long nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Each record is made while one of a lower context is being made: their hits nest, on every CPU. */
static void nest(void)
{
	unsigned long each = long_run() && !slow_kernel() ? 5000 : 500;
	char *text, expected[1000], *at;
	int error = 0;

	ok(!append(file(tracing_dir(), "nested", "trigger"), "hist:keys=context:vals=k:sort=context:size=128"),
	   "a trigger on the event that is interrupted");
	for (int cpu = 0; cpu < cpus && !error; cpu++)
		error = fire("nested", "task", cpu, 1, each, 10);
	ok(!error, "%lu events in each context, one in the other: %s", each * cpus, errno_name(error));
	at = expected;
	for (unsigned int context = 0; context < 4; context++)
		if (nesting() & 1u << context)
			at += sprintf(at, "{ context: %10u } hitcount: %10lu  k: %10lu\n", context, each * cpus,
				      each / 10 * 55 * cpus);
	sprintf(at, "\nTotals:\n    Hits: %lu\n    Entries: %d\n    Dropped: 0\n",
		__builtin_popcount(nesting()) * each * cpus, __builtin_popcount(nesting()));
	text = slurp(file(tracing_dir(), "nested", "hist"));
	at = text ? strchr(text, '{') : NULL;
	if (!ok(at && !strcmp(at, expected), "the hits of all of them"))
		note("%s", text ?: "unreadable");
	free(text);
	truncate_file(file(tracing_dir(), "nested", "trigger"));
}

/* Lost hits of an event, by hist_stats. */
static unsigned long long lost_of(const char *event)
{
	char *stats = testing_c() ? NULL : slurp(pathf("%s/hist_stats", tracing_dir()));
	char *line = stats ? strstr(stats, pathf("rhist_events:%s ", event)) : NULL, *comma;
	unsigned long long lost = 0;

	comma = line ? strchr(line, ',') : NULL;
	if (comma && sscanf(comma, ", %llu lost", &lost) != 1)
		lost = 0;
	free(stats);
	return lost;
}

/* An event that another one fires while its record is made, in the same context. */
static void brings_forth(void)
{
	struct totals outer = {}, nested = {};
	unsigned long long lost;
	int error;

	ok(!append(file(tracing_dir(), "outer", "trigger"), "hist:keys=common_pid") &&
	   !append(file(tracing_dir(), "nested", "trigger"), "hist:keys=common_pid"),
	   "triggers on an event and on what it brings forth");
	error = fire("outer", "task", 0, 1, 100, 1);
	read_totals(file(tracing_dir(), "outer", "hist"), &outer);
	read_totals(file(tracing_dir(), "nested", "hist"), &nested);
	lost = lost_of("nested");
	ok(!error && outer.hits == 100 && nested.hits + lost == 100,
	   "%llu hits, which bring forth %llu and %llu that are lost and counted", (unsigned long long)outer.hits,
	   (unsigned long long)nested.hits, lost);
	truncate_file(file(tracing_dir(), "outer", "trigger"));
	truncate_file(file(tracing_dir(), "nested", "trigger"));
}

/* Every hit has its own time, whatever it interrupts. */
static void times(void)
{
	unsigned long long hits = 0, before, after;
	bool sound = true;
	char *text;

	if (testing_c()) {
		skip("C's clock is that of the instance", "the times of hits");
		return;
	}
	ok(!append(file(tracing_dir(), "nested", "trigger"), "hist:keys=common_timestamp:clock=mono:size=4096"),
	   "a trigger on times");
	before = nanoseconds();
	for (int cpu = 0; cpu < cpus; cpu++)
		sound &= !fire("nested", "task", cpu, 0, 100, 1);
	after = nanoseconds();
	text = slurp(file(tracing_dir(), "nested", "hist"));
	for (char *at = text; at && (at = strstr(at, "{ common_timestamp: ")); at++) {
		unsigned long long time = 0, count = 0;

		sound &= sscanf(at, "{ common_timestamp: %llu } hitcount: %llu", &time, &count) == 2 &&
			 before <= time && time <= after;
		hits += count;
	}
	ok(sound && hits == 100ull * __builtin_popcount(nesting()) * cpus, "%llu hits have a time between %llu and %llu", hits, before, after);
	free(text);
	truncate_file(file(tracing_dir(), "nested", "trigger"));
}

struct volley {
	const char *context;
	int cpu;
	unsigned long first, count, keys;
	int error;
};

static pthread_barrier_t start;

static void *fire_volley(void *arg)
{
	struct volley *v = arg;

	/* From another CPU than the one to interrupt. */
	pin(strcmp(v->context, "task") ? (v->cpu + 1) % cpus : v->cpu);
	pthread_barrier_wait(&start);
	v->error = fire("numbers", v->context, v->cpu, v->first, v->count, v->keys);
	return NULL;
}

static volatile bool stop_reading;
static unsigned long reads, bad_reads;

static void *read_on(void *most)
{
	struct totals t;

	while (!stop_reading) {
		if (!read_totals(file(tracing_dir(), "numbers", "hist"), &t) || t.lines != t.entries ||
		    t.sum > *(unsigned long *)most)
			bad_reads++;
		reads++;
		sched_yield();
	}
	return NULL;
}

static unsigned long interruptions;

/* Reads how often firing began while others were at work on the same CPU. */
static bool nested(unsigned long begun[4])
{
	char *text = slurp("/dev/" SYSTEM);
	bool read = text && sscanf(text, "%lu %lu %lu %lu", &begun[0], &begun[1], &begun[2], &begun[3]) == 4;

	free(text);
	return read;
}

/*
 * At every CPU, from every context, count events with as many different keys. shared: the same ones
 * for all.
 */
static void storm(const char *name, unsigned long keys, bool shared, unsigned long per_volley)
{
	int all = contexts_there(), volleys = all * cpus;
	unsigned long begun[4] = { 0 }, before[4] = { 0 }, fired = per_volley * volleys;
	unsigned long distinct = shared ? keys : keys * volleys;
	pthread_t thread[volleys], reader;
	struct volley volley[volleys];
	struct totals t;
	bool sound = true;

	if (append(file(tracing_dir(), "numbers", "trigger"), "hist:keys=u64:size=128")) {
		ok(false, "%s: a trigger", name);
		return;
	}
	sound = nested(before);
	pthread_barrier_init(&start, NULL, volleys);
	for (int i = 0; i < volleys; i++) {
		volley[i] = (struct volley){ contexts[i % all], i / all, shared ? 1000 : 1000 * (i + 1), per_volley, keys, 0 };
		pthread_create(&thread[i], NULL, fire_volley, &volley[i]);
	}
	stop_reading = false;
	reads = bad_reads = 0;
	pthread_create(&reader, NULL, read_on, &fired);
	for (int i = 0; i < volleys; i++) {
		pthread_join(thread[i], NULL);
		if (volley[i].error) {
			note("%s at CPU %d: %s", volley[i].context, volley[i].cpu, errno_name(volley[i].error));
			sound = false;
		}
	}
	stop_reading = true;
	pthread_join(reader, NULL);
	ok(sound && nested(begun), "%s: %lu events at %d CPUs from all contexts", name, fired, cpus);
	ok(reads && !bad_reads, "%s: %lu of %lu reads meanwhile were sound", name, reads - bad_reads, reads);
	for (unsigned int i = 0; i < 4; i++)
		begun[i] -= before[i];
	note("%s: began upon none %lu, one %lu, two %lu, three %lu", name, begun[0], begun[1], begun[2], begun[3]);
	interruptions += begun[1] + begun[2] + begun[3];
	if (!read_totals(file(tracing_dir(), "numbers", "hist"), &t)) {
		ok(false, "%s: the histogram can be read", name);
	} else {
		ok(t.hits == t.sum && t.hits + t.dropped == fired, "%s: %llu hits and %llu drops are %lu events", name,
		   t.hits, t.dropped, fired);
		ok(t.entries == (distinct < 128 ? distinct : 128) && t.lines == t.entries, "%s: %llu entries", name,
		   t.entries);
		if (distinct <= 128)
			ok(!t.dropped, "%s: none dropped while there is room", name);
		else
			ok(t.dropped, "%s: the map is full", name);
	}
	if (distinct <= 128 && per_volley % keys == 0) {
		unsigned long each = fired / distinct, wrong = 0;
		char *text = slurp(file(tracing_dir(), "numbers", "hist"));

		for (char *p = text; p && (p = strstr(p, " hitcount: ")); ) {
			p += strlen(" hitcount: ");
			wrong += strtoul(p, NULL, 10) != each;
		}
		ok(text && !wrong, "%s: each key %lu times", name, each);
		free(text);
	}
	truncate_file(file(tracing_dir(), "numbers", "trigger"));
}

/* --- coming and going */

static int load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error = 0;

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		error = -errno;
	if (fd >= 0)
		close(fd);
	return error;
}

/* Retries while the last users are leaving. */
static int unload(bool patient)
{
	for (int i = 0; i < 50; i++) {
		if (!syscall(SYS_delete_module, SYSTEM, O_NONBLOCK))
			return 0;
		if (!patient || errno != EAGAIN)
			break;
		sleep_ms(100);
	}
	return -errno;
}

static bool there(const char *dir)
{
	return !access(pathf("%s/events/" SYSTEM, dir), F_OK);
}

/* A trigger keeps the module of its event; without one the module can go, even with open files. */
static void life(const char *path)
{
	char trigger[PATH_MAX];
	int open_trigger, open_hist;
	char byte;

	snprintf(trigger, sizeof(trigger), "%s", file(tracing_dir(), "numbers", "trigger"));
	ok(!append(trigger, "hist:keys=s8:size=128"), "a trigger on an event of a module");
	ok(unload(false) == -EAGAIN && there(tracing_dir()), "the module is in use");
	ok(!append(trigger, "hist:keys=u8:size=128") && !append(trigger, "!hist:keys=s8") && unload(false) == -EAGAIN,
	   "as long as there is one");
	ok(!append(trigger, "!hist:keys=u8") && !unload(true), "it can be unloaded without");
	ok(!there(tracing_dir()) && !there(kernel_dir()), "its events leave the tree");
	ok(append(trigger, "hist:keys=s8") == -ENOENT, "there is nothing to write to");
	ok(!load(path) && there(tracing_dir()), "they come back with it");
	ok(!append(trigger, "hist:keys=s8:size=128") && !fire("numbers", contexts[contexts_there() - 1], 0, 0, 10, 1), "and count again");
	truncate_file(trigger);

	open_trigger = open(trigger, O_RDWR | O_APPEND | O_CLOEXEC);
	open_hist = open(file(tracing_dir(), "numbers", "hist"), O_RDONLY | O_CLOEXEC);
	ok(open_trigger >= 0 && open_hist >= 0 && !unload(true), "it goes while files of its events are open");
	ok(read(open_hist, &byte, 1) <= 0 && write(open_trigger, "hist:keys=s8", 12) < 0,
	   "what was open is good for nothing");
	ok(!load(path) && !append(trigger, "hist:keys=s8:size=128") && !append(trigger, "!hist:keys=s8"),
	   "it comes back while they still are");
	close(open_trigger);
	close(open_hist);
	for (int i = 0; i < (long_run() && !slow_kernel() ? 200 : 5); i++)
		if (append(trigger, "hist:keys=u64:size=128") || fire("numbers", contexts[contexts_there() - 1], i % cpus, 0, 100, 10) ||
		    append(trigger, "!hist:keys=u64") || unload(true) || there(tracing_dir()) || load(path)) {
			ok(false, "round %d of loading, counting and unloading", i);
			break;
		}
}

int main(void)
{
	const char *path = getenv("RHIST_EVENTS");
	unsigned long n = slow_kernel() ? 1000 : long_run() ? 40000 : 4000;
	int error;

	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unload(true);
	if (!path || access(path, R_OK)) {
		skip("no module: make events", "events with fields of every kind");
		finish();
	}
	error = load(path);
	if (error)
		die("%s: %s", path, errno_name(error));
	for (unsigned int i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		check_field(&fields[i]);
	for (unsigned int i = 0; i < sizeof(others) / sizeof(*others); i++) {
		char triggers[TABLES][200] = { "" };

#ifndef __x86_64__
		/* C leaves out a fixed number of functions, the one that fits x86: see moments. */
		if (strstr(others[i].trigger, "common_stacktrace")) {
			skip("C's stacks do not begin at the traced function", "%s", others[i].trigger);
			continue;
		}
#endif
		snprintf(triggers[0], sizeof(triggers[0]), "%s", sized(others[i].trigger));
		check(others[i].event, others[i].trigger, triggers, NULL);
	}
	refusals();
	nest();
	brings_forth();
	times();
	storm("a few keys for all", 4, true, n);
	storm("100 keys for all", 100, true, n);
	storm("keys of their own", 128 / (contexts_there() * cpus) ?: 1, false, n);
	storm("more keys than size", 1000, true, n);
	storm("a full map", 500, false, n);
	if (cpus > 1)
		ok(interruptions, "%lu pieces of storms interrupted others", interruptions);
	else
		skip("one CPU", "pieces of storms interrupt others");
	if (testing_c())
		skip("C lets the module go, and warns", "a trigger keeps the module of its event");
	else
		life(path);
	unload(true);
	finish();
}
