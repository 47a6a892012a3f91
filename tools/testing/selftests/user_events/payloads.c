// SPDX-License-Identifier: GPL-2.0
// Wherever a payload lies, all listeners get it, once and whole; or none does.
#define _GNU_SOURCE
#include "client.h"

enum { TEXT = 700, REFUSED = 77, RING = 64 };

/* Payload, from the index on. */
struct payload {
	int index;
	unsigned int number, text;
	char bytes[TEXT];
};

static struct payload good;
static long page;
static int data, perf;
static struct perf_event_mmap_page *ring;
static char *instance;

/* Counts the whole records in a trace. Returns -1 if others are there. */
static long traced(const char *dir)
{
	char *text = slurp(pathf("%s/trace", dir)), *at = text, *expected;
	long all = 0, whole = 0;

	if (!text || asprintf(&expected, ": pl_text: number=0x%x (%d) text=%s\n", good.number, good.number,
			      good.bytes) < 0)
		return -1;
	while (at && (at = strstr(at, ": pl_text: "))) {
		whole += !strncmp(at, expected, strlen(expected));
		all++;
		at++;
	}
	free(text);
	free(expected);
	truncate_file(pathf("%s/trace", dir));
	return all == whole ? whole : -1;
}

static void on_ftrace(void)
{
	enable("pl_text", true);
}

static void off_ftrace(void)
{
	enable("pl_text", false);
}

static long of_ftrace(void)
{
	return traced(kernel_dir());
}

/* If a filter may refuse a record, the kernel makes it in a per-CPU page first. */
static void on_filter(void)
{
	append(event_file("pl_text", "filter"), pathf("number != %d", REFUSED));
	enable("pl_text", true);
}

static void off_filter(void)
{
	enable("pl_text", false);
	append(event_file("pl_text", "filter"), "0");
}

static void on_instance(void)
{
	mkdir(instance, 0700);
	append(pathf("%s/events/user_events/pl_text/enable", instance), "1");
}

static void off_instance(void)
{
	rmdir(instance);
}

static long of_instance(void)
{
	return traced(instance);
}

/* A histogram with a condition reads a record that is discarded later. */
static void trigger(const char *dir, const char *remove)
{
	append(pathf("%s/events/user_events/pl_text/trigger", dir),
	       pathf("%shist:keys=number if number != %d", remove, REFUSED));
}

/* Returns the hits since the last call. */
static long counted(const char *dir, unsigned long long *before)
{
	struct totals now;
	long more;

	if (!read_totals(pathf("%s/events/user_events/pl_text/hist", dir), &now))
		return -1;
	more = now.hits - *before;
	*before = now.hits;
	return more;
}

static unsigned long long hits_of_kernel, hits_of_rhist;

static void on_kernels_hist(void)
{
	hits_of_kernel = 0;
	trigger(kernel_dir(), "");
}

static void off_kernels_hist(void)
{
	trigger(kernel_dir(), "!");
}

static long of_kernels_hist(void)
{
	return counted(kernel_dir(), &hits_of_kernel);
}

static void on_hist(void)
{
	hits_of_rhist = 0;
	trigger(tracing_dir(), "");
}

static void off_hist(void)
{
	trigger(tracing_dir(), "!");
}

static long of_hist(void)
{
	return counted(tracing_dir(), &hits_of_rhist);
}

static void on_perf(void)
{
	perf = perf_open("pl_text");
	ring = mmap(NULL, (1 + RING) * page, PROT_READ | PROT_WRITE, MAP_SHARED, perf, 0);
	if (perf < 0 || ring == MAP_FAILED)
		die("perf: %s", strerror(errno));
}

static void off_perf(void)
{
	munmap(ring, (1 + RING) * page);
	close(perf);
}

/* Returns a byte of perf's output, counted from the beginning. */
static char recorded(unsigned long long at)
{
	return ((char *)ring)[page + at % (RING * page)];
}

static long of_perf(void)
{
	unsigned long long at = ring->data_tail, head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
	long whole = 0;

	while (at < head) {
		/* A header, the size of the raw data, the head of the record. */
		unsigned long long fields = at + sizeof(struct perf_event_header) + 4 + 8;
		struct perf_event_header header;

		for (size_t i = 0; i < sizeof(header); i++)
			((char *)&header)[i] = recorded(at + i);
		for (size_t i = 4; i < sizeof(good); i++)
			if (recorded(fields + i - 4) != ((char *)&good)[i])
				return -1;
		at += header.size;
		whole++;
	}
	__atomic_store_n(&ring->data_tail, head, __ATOMIC_RELEASE);
	return whole;
}

static const struct listener {
	const char *name;
	void (*on)(void), (*off)(void);
	long (*records)(void);
} ftrace = { "ftrace", on_ftrace, off_ftrace, of_ftrace },
	filter = { "ftrace with a filter", on_filter, off_filter, of_ftrace },
	other = { "an instance", on_instance, off_instance, of_instance },
	kernels_hist = { "the kernel's histogram", on_kernels_hist, off_kernels_hist, of_kernels_hist },
	hist = { "a histogram", on_hist, off_hist, of_hist },
	of_all_records = { "perf", on_perf, off_perf, of_perf };

static const struct listener *const sets[][4] = {
	{ &ftrace }, { &filter }, { &other }, { &kernels_hist }, { &hist }, { &of_all_records },
	{ &ftrace, &kernels_hist }, { &ftrace, &of_all_records }, { &ftrace, &other },
	{ &filter, &other, &of_all_records },
};

static const struct listener *const *set;

static bool can_listen(const struct listener *const *all)
{
	for (int i = 0; i < 4 && all[i]; i++)
		if (all[i] == &of_all_records && !have_perf())
			return false;
	return true;
}

/* Returns true if each listener has got `expected` records since the last call. */
static bool all_have(long expected)
{
	bool all = true;

	for (int i = 0; i < 4 && set[i]; i++) {
		long got = set[i]->records();

		if (got != expected)
			note("%s: %ld records", set[i]->name, got);
		all &= got == expected;
	}
	return all;
}

static int answer(ssize_t done)
{
	return done < 0 ? -errno : (int)done;
}

/* Writes the payload by writev(), in n pieces. */
static int pieces(const struct payload *p, int n)
{
	struct iovec io[8];

	for (int i = 0; i < n; i++) {
		size_t from = sizeof(*p) * i / n, to = sizeof(*p) * (i + 1) / n;

		io[i] = (struct iovec){ .iov_base = (char *)p + from, .iov_len = to - from };
	}
	return answer(writev(data, io, n));
}

/* Places the payload at the end of a page, with `before` bytes in it. */
static struct payload *across(char *pages, size_t before)
{
	return (struct payload *)(pages + page - before);
}

/* The payload across two pages; the second one belongs to a file, and is not present yet. */
static char *absent(size_t before)
{
	char name[] = "/tmp/rhist-XXXXXX";
	int file = mkstemp(name);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	unlink(name);
	memcpy(across(pages, before), &good, before);
	if (ftruncate(file, page) ||
	    pwrite(file, (char *)&good + before, sizeof(good) - before, 0) != (ssize_t)(sizeof(good) - before) ||
	    mmap(pages + page, page, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED)
		die("a file: %s", strerror(errno));
	close(file);
	return pages;
}

static void present(void)
{
	ok(answer(write(data, &good, sizeof(good))) == sizeof(good) && all_have(1), "by write()");
	ok(pieces(&good, 2) == sizeof(good) && pieces(&good, 7) == sizeof(good) && all_have(2), "in pieces");
}

static void not_there(void)
{
	static const size_t before[] = { 2, 4, 10, 300, sizeof(good) - 1 };
	bool written = true;

	for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++) {
		char *pages = absent(before[i]);

		written &= answer(write(data, across(pages, before[i]), sizeof(good))) == sizeof(good);
		munmap(pages, 2 * page);
		pages = absent(before[i]);
		written &= pieces(across(pages, before[i]), 3) == sizeof(good);
		munmap(pages, 2 * page);
	}
	ok(written && all_have(2 * sizeof(before) / sizeof(*before)), "from pages that are not there yet");
}

static void refused(void)
{
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static const size_t before[] = { 4, 12, 300, sizeof(good) - 1 };
	struct payload bad = good;
	int wrong = 0, i;

	munmap(pages + page, page);
	for (i = 0; i < 40; i++) {
		struct payload *p = across(pages, before[i % 4]);

		memcpy(p, &good, before[i % 4]);
		wrong += answer(write(data, p, sizeof(*p))) != -EFAULT;
		wrong += pieces(p, 3) != -EFAULT;
	}
	munmap(pages, page);
	ok(!wrong && all_have(0), "what ends where memory does, 80 times");

	bad.bytes[TEXT - 1] = 'x';
	for (i = 0; i < 40; i++)
		wrong += answer(write(data, &bad, sizeof(bad))) != -EFAULT;
	bad.text = DYN_LOC(0, TEXT + 1);
	for (i = 0; i < 40; i++)
		wrong += answer(write(data, &bad, sizeof(bad))) != -EFAULT;
	ok(!wrong && all_have(0), "what says something wrong of itself, 80 times");
}

static void filtered(void)
{
	struct payload p = good;

	p.number = REFUSED;
	ok(answer(write(data, &p, sizeof(p))) == sizeof(p) && all_have(0), "what is filtered out");
}

static void listeners(void)
{
	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
		set = sets[i];
		if (!can_listen(set)) {
			skip("no perf", "%s", set[0]->name);
			continue;
		}
		for (int j = 0; j < 4 && set[j]; j++) {
			note("%s%s", j ? "and " : "", set[j]->name);
			set[j]->on();
		}
		good.number = i + 1;
		all_have(0);
		present();
		not_there();
		refused();
		if (!set[1] && (set[0] == &filter || set[0] == &kernels_hist || set[0] == &hist))
			filtered();
		present();
		for (int j = 0; j < 4 && set[j]; j++)
			set[j]->off();
	}
}

/* --- triggers: each is called once for a written payload, and not for a refused one --- */

enum { SHOTS = 9 };
#define TARGET "syscalls:sys_enter_getpgid"

static const struct kind {
	const char *name;
	/* True if it needs the record first, and is called behind it. */
	bool after;
	/*
	 * File that the trigger changes; the test changes it back before a write, as only then the
	 * trigger counts its call.
	 */
	const char *file, *text;
} kinds[] = {
	{ "traceon", false, "tracing_on", "0" }, { "traceoff", true, "tracing_on", "1" },
	{ "snapshot", false, NULL, NULL }, { "stacktrace", true, NULL, NULL },
	{ "enable_event:" TARGET, false, "events/syscalls/sys_enter_getpgid/enable", "0" },
	{ "disable_event:" TARGET, false, "events/syscalls/sys_enter_getpgid/enable", "1" },
};

static int written_at_once(void)
{
	return answer(write(data, &good, sizeof(good)));
}

static int written_later(void)
{
	char *pages = absent(300);
	int done = answer(write(data, across(pages, 300), sizeof(good)));

	munmap(pages, 2 * page);
	return done;
}

static int filtered_out(void)
{
	struct payload p = good;

	p.number = REFUSED;
	return answer(write(data, &p, sizeof(p)));
}

static int without_end(void)
{
	struct payload bad = good;

	bad.bytes[TEXT - 1] = 'x';
	return answer(write(data, &bad, sizeof(bad)));
}

static int beyond_end(void)
{
	struct payload bad = good;

	bad.text = DYN_LOC(0, TEXT + 1);
	return pieces(&bad, 3);
}

static int unreadable(void)
{
	return emit(data, good.index, NULL, sizeof(good) - 4);
}

static int too_short(void)
{
	return answer(write(data, &good, 11));
}

static int too_long(void)
{
	size_t len = 70000;
	char *bytes = calloc(1, len);
	int done;

	memcpy(bytes, &good, sizeof(good));
	done = answer(write(data, bytes, len));
	free(bytes);
	return done;
}

static const struct way {
	const char *name;
	int (*write)(void);
	int done;
	/* C calls triggers that do not need a record before it reads the payload. */
	enum { WRITTEN, FILTERED, REFUSED_LATE, REFUSED_AT_ONCE } what;
} ways[] = {
	{ "written at once", written_at_once, sizeof(good), WRITTEN },
	{ "written when a page has come", written_later, sizeof(good), WRITTEN },
	{ "filtered out", filtered_out, sizeof(good), FILTERED },
	{ "a text without an end", without_end, -EFAULT, REFUSED_LATE },
	{ "a text beyond the end", beyond_end, -EFAULT, REFUSED_LATE },
	{ "too long", too_long, -E2BIG, REFUSED_LATE },
	{ "unreadable", unreadable, -EFAULT, REFUSED_AT_ONCE },
	{ "too short", too_short, -EINVAL, REFUSED_AT_ONCE },
};

static const struct mode {
	const char *name;
	bool enabled, recording, other_instance, other_task;
} modes[] = {
	{ "nothing else", false, true, false, false },
	{ "a recorded event", true, true, false, false },
	{ "a recorded event, recording off", true, false, false, false },
	{ "an event recorded in two instances", true, true, true, false },
	{ "an event of another task", true, true, false, true },
};

/* Counts a trigger's calls by a write; -1 if the write's result was wrong. */
static int calls(const struct kind *kind, const char *shots, const struct way *way)
{
	char *trigger = strdup(event_file("pl_text", "trigger")), *text, *left;
	int done, called;

	if (kind->file)
		append(pathf("%s/%s", kernel_dir(), kind->file), kind->text);
	append(trigger, shots);
	done = way->write();
	text = slurp(trigger);
	left = text ? strstr(text, ":count=") : NULL;
	called = left ? SHOTS - atoi(left + strlen(":count=")) : -1;
	append(trigger, pathf("!%s", shots));
	if (done != way->done && !(testing_c() && way->what == REFUSED_LATE)) {
		note("%s: %s", way->name, errno_name(done));
		called = -1;
	}
	free(text);
	free(trigger);
	return called;
}

static void trigger_calls(const struct kind *kind, bool with_filter, const struct mode *mode)
{
	const char *shots = strdup(pathf("%s:%d%s", kind->name, SHOTS, with_filter ? pathf(" if number != %d", REFUSED) : ""));
	bool of_record = with_filter || kind->after, right = true;

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		const struct way *way = &ways[i];
		bool written = way->what == WRITTEN || (way->what == FILTERED && !with_filter);
		int expected = written && !(of_record && mode->other_task), called;

		if (way->what == REFUSED_LATE && testing_c() && !of_record)
			expected = 1;
		append(pathf("%s/tracing_on", kernel_dir()), mode->recording ? "1" : "0");
		called = calls(kind, shots, way);
		if (called != expected)
			note("%s: called %d times", way->name, called);
		right &= called == expected;
	}
	ok(right, "%s on %s", shots, mode->name);
	free((char *)shots);
}

static void triggers(void)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		const struct mode *mode = &modes[i];

		if (mode->enabled)
			on_ftrace();
		if (mode->other_instance)
			on_instance();
		if (mode->other_task)
			append(pathf("%s/set_event_pid", kernel_dir()), "1");
		for (size_t j = 0; j < 2 * sizeof(kinds) / sizeof(*kinds); j++) {
			const struct kind *kind = &kinds[j / 2];

			/* These need recording in their own state. */
			if (!mode->recording && kind->file && !strcmp(kind->file, "tracing_on"))
				continue;
			trigger_calls(kind, j % 2, mode);
		}
		append(pathf("%s/tracing_on", kernel_dir()), "1");
		truncate_file(pathf("%s/set_event_pid", kernel_dir()));
		if (mode->other_instance)
			off_instance();
		append(pathf("%s/events/syscalls/sys_enter_getpgid/enable", kernel_dir()), "0");
		append(pathf("%s/snapshot", kernel_dir()), "0");
		off_ftrace();
		traced(kernel_dir());
	}
}

/* Listeners that discard everything. */
static void nobody_takes(unsigned int *bit)
{
	int index = 0;

	enable("pl_text", true);
	append(pathf("%s/tracing_on", kernel_dir()), "0");
	traced(kernel_dir());
	ok(answer(write(data, &good, sizeof(good))) == sizeof(good), "written while recording is off");
	ok(pieces(across(absent(300), 300), 3) == sizeof(good), "from a page that is not there");
	ok(emit(data, good.index, NULL, sizeof(good) - 4) == -EFAULT, "or is never there");
	append(pathf("%s/tracing_on", kernel_dir()), "1");
	ok(traced(kernel_dir()) == 0, "nothing is recorded");
	enable("pl_text", false);

	/* C frees the event while the trigger still has a reference. */
	if (testing_c()) {
		skip("use after free in C", "an event that another one enables");
		return;
	}
	ok(!reg(data, "pl_trigger", bit + 1, &index) &&
	   !append(event_file("pl_trigger", "trigger"), "enable_event:user_events:pl_text") && bit[0] == 1,
	   "an event that another one enables has a listener");
	ok(answer(write(data, &good, sizeof(good))) == sizeof(good) && traced(kernel_dir()) == 0,
	   "who takes nothing");
	ok(emit(data, index, NULL, 0) == 4 && answer(write(data, &good, sizeof(good))) == sizeof(good) &&
	   traced(kernel_dir()) == 1, "until the other one was written");
	append(event_file("pl_trigger", "trigger"), "!enable_event:user_events:pl_text");
	/* The event that it has enabled stays so. */
	enable("pl_text", false);
	unreg(data, bit + 1, 0);
}

int main(void)
{
	static unsigned int bits[2];

	page = sysconf(_SC_PAGESIZE);
	instance = strdup(pathf("%s/instances/pl", kernel_dir()));
	data = open_data();
	for (int i = 0; i < TEXT - 1; i++)
		good.bytes[i] = 'a' + i % 26;
	good.text = DYN_LOC(0, TEXT);
	ok(!reg(data, "pl_text u32 number;__rel_loc char[] text", &bits[0], &good.index), "an event with a text");
	listeners();
	triggers();
	nobody_takes(bits);
	ok(!unreg(data, &bits[0], 0) && !close(data) &&
	   within_seconds(5, !exists("pl_text") && !exists("pl_trigger")), "both go in the end");
	finish();
}
