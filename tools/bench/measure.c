// SPDX-License-Identifier: GPL-2.0
// Measures histograms of the kernel and of rhist side by side. It obeys the lines of /cases, and
// prints a line of numbers for each round of each:
//
//   event NAME|EVENT|CPUS|KEYS|SHARED|COUNT|SYSTEM/EVENT|TRIGGER[|EXTRA]...
//           ns: without a listener; an empty probe; C; rhist; and the source of rhist's hits
//   nobody NAME|EVENT|CPUS|KEYS|SHARED|COUNT
//           ns: before rhist is loaded, and after
//   create NAME|SYSTEM/EVENT|TRIGGER
//           ns: of a write to trigger, C and rhist
//   read NAME|EVENT|CPUS|KEYS|SHARED|COUNT|SYSTEM/EVENT|TRIGGER
//           ns: of reading hist, C and rhist
//   cut NAME|EVENT|CPUS|KEYS|SHARED|COUNT|SYSTEM/EVENT|TRIGGER|READERS
//           ns that workers run for a cut of the intervals, after so many events on each CPU; one
//           of so many open files reads
//   worst NAME|EVENT|FIRST|LAST|||SYSTEM/EVENT|TRIGGER[|EXTRA]...
//           ns of one event, where the map has FIRST places, and grows to LAST: "KEYS known" or
//           "KEYS new", their median, the longest time, and the index of its key; one round
//   sight NAME|EVENT|||||SYSTEM/EVENT|TRIGGER
//           ns of one event whose stack has 20 frames (frames.h), with other addresses in each
//           round: without a listener; with rhist; and once more
//   memory NAME|HISTOGRAMS|SYSTEM/EVENT|TRIGGER
//           bytes that are less free for each, C and rhist
//   module NAME
//           bytes of text and data of rhist; one line
//   peer NAME|EVENT|CPUS|KEYS|SHARED|COUNT|COMMAND
//           ns: without a listener, and with COMMAND; then the number of events while COMMAND
//           surely listened, and in all; and the output of COMMAND, after ">"
//   sample NAME|spin|FREQUENCY|||COUNT|rhist/sample|TRIGGER
//           ns that a loop of COUNT turns takes for each sample: without samples; with a timer that
//           only counts; nan; and with FREQUENCY samples per second of rhist
//   sampler NAME|spin|FREQUENCY|||COUNT|COMMAND
//           likewise with a COMMAND that samples so often, printed as for peer
//   groups 16
//           makes control groups with a sleeping task in each, for the event "grouped"
//   machine NAME|LOAD|COMMAND|||||[|EXTRA]...
//           ns and switches of the command LOAD, and the recorded number: without, C, rhist, and
//           COMMAND if given
//
// Each EXTRA is set up before the trigger of an event, and not counted as its cost:
//
//   synthetic DEFINITION    a synthetic event
//   dynamic DEFINITION      a probe, TYPE:GROUP/NAME…
//   SYSTEM/EVENT TRIGGER    another trigger, of the same side
//   fire EVENT KEYS         events, which are fired without being timed after the trigger is set
//   intervals               a reader of the event's intervals, which has read one, in rhist
//   ignored                 the trigger ignores all timed events, since a reference is not found
//   counted                 the cost of each EXTRA counts as well
//   frames                  they are fired at the end of 20 functions without frame pointers
//   mappings                they are fired at the end of 127 functions, each in another mapping
//   ours                    C refuses the trigger: its number is nan
//
// A backslash stands for a "|" in a word.
//
// Under QEMU's -icount a nanosecond is an instruction.
//
// With the words "sample PROGRAM FREQUENCY" it is another command instead: it runs the pinned BPF
// program that often on the first CPU, like the profilers of bcc, until it is ended.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PARAMETERS "/sys/module/rhist_bench/parameters/"

enum side { C, RHIST, SIDES };

static const char *const tracing[SIDES] = { "/sys/kernel/tracing", "/sys/kernel/tracing/rhist" };

static int rounds = 5;
static char *case_name;

static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("failed: %s: ", case_name ?: "begin");
	vprintf(format, args);
	printf(": %s\n", strerror(errno));
	va_end(args);
	exit(1);
}

static const char *pathf(const char *format, ...)
{
	static char path[4][300];
	static int next;
	char *to = path[next++ % 4];
	va_list args;

	va_start(args, format);
	vsnprintf(to, sizeof(path[0]), format, args);
	va_end(args);
	return to;
}

static double nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void pause_ms(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

typedef ssize_t (*write_fn)(int fd, const void *from, size_t n);

// The function that writes to files: the C library's, or one that is made (frames.h).
static write_fn writes = write;

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_APPEND);
	ssize_t n;

	if (fd < 0)
		die("%s", path);
	n = writes(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

static void load(const char *module)
{
	int fd = open(module, O_RDONLY);

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		die("%s", module);
	close(fd);
}

// Returns the time of an event, and the number of events.
static double fire(const char *order, unsigned long long *fired)
{
	unsigned long long ps;
	FILE *file;

	if (write_file(PARAMETERS "fire", order))
		die("fire %s", order);
	file = fopen(PARAMETERS "fire", "r");
	if (!file || fscanf(file, "%llu %llu", fired, &ps) != 2)
		die("what was fired");
	fclose(file);
	return ps / 1e3;
}

// Times of events that were fired one by one.
struct each {
	unsigned long long median, longest;
	unsigned int key;
};

// Fires events with these keys one by one; then, before a worker runs, all up to these again if
// their times are asked for.
static struct each fire_each(const char *event, unsigned int first, unsigned int keys, struct each *again)
{
	struct each each, unused;
	FILE *file;

	if (write_file(PARAMETERS "each", pathf("%s %u %u %d", event, first, keys, !!again)))
		die("each %s", event);
	again = again ?: &unused;
	file = fopen(PARAMETERS "each", "r");
	if (!file || fscanf(file, "%llu %llu %u %llu %llu %u", &each.median, &each.longest, &each.key,
			    &again->median, &again->longest, &again->key) != 6)
		die("what was fired");
	fclose(file);
	return each;
}

static void probe(const char *event)
{
	if (write_file(PARAMETERS "probe", event))
		die("probe %s", event);
}

static void attach(enum side side, const char *event, const char *trigger)
{
	if (write_file(pathf("%s/events/%s/trigger", tracing[side], event), trigger))
		die("%s of %s in %s", trigger, event, tracing[side]);
}

static void detach(enum side side, const char *event, const char *trigger)
{
	attach(side, event, pathf("!%s", trigger));
}

// Reads all of hist. Returns the number of hits in it, and sets the number of lost ones; values
// outside of all buckets count as lost.
static unsigned long long read_hist(enum side side, const char *event, unsigned long long *dropped)
{
	static char buffer[1 << 16];
	char end[400] = "", *totals;
	unsigned long long hits, without;
	size_t kept = 0;
	ssize_t n;
	int fd = open(pathf("%s/events/%s/hist", tracing[side], event), O_RDONLY);

	while ((n = read(fd, buffer, sizeof(buffer))) > 0) {
		size_t more = n < 200 ? n : 200;

		if (kept > 190) {
			memmove(end, end + kept - 190, 190);
			kept = 190;
		}
		memcpy(end + kept, buffer + n - more, more);
		kept += more;
		end[kept] = 0;
	}
	close(fd);
	totals = strstr(end, "Hits: ");
	if (n || !totals || sscanf(totals, "Hits: %llu Entries: %*u Dropped: %llu", &hits, dropped) != 2)
		die("hist of %s in %s ends with %s", event, tracing[side], end);
	totals = strstr(totals, "Without bucket: ");
	if (totals && sscanf(totals, "Without bucket: %llu", &without) == 1)
		*dropped += without;
	return hits;
}

#ifdef __x86_64__
#include "frames.h"
#endif

static char source[20];

// Reads the source of an event's hits from hist_stats: "SYSTEM:EVENT  SOURCE, N lost", where N must
// be 0, and if it has variables "SYSTEM:EVENT  hist N: N unresolved, N missed", likewise.
static void read_source(const char *event)
{
	const char *slash = strchr(event, '/');
	unsigned long long lost = 1, missed = 0;
	char line[200], name[100];
	FILE *file = fopen("/sys/kernel/tracing/rhist/hist_stats", "r");

	snprintf(name, sizeof(name), "%.*s:%s", (int)(slash - event), event, slash + 1);
	source[0] = 0;
	while (file && fgets(line, sizeof(line), file)) {
		const char *rest = line + strlen(name);

		if (strncmp(line, name, strlen(name)) || *rest != ' ')
			continue;
		rest += strspn(rest, " ");
		if (!strncmp(rest, "hist ", 5))
			sscanf(rest, "hist %*u: %*u unresolved, %llu", &missed);
		else
			sscanf(rest, "%19[^,], %llu", source, &lost);
	}
	if (!file || !source[0] || lost || missed)
		die("hist_stats says of %s: %s, %llu lost, %llu missed", event, source, lost, missed);
	fclose(file);
}

static char *words[20];

// Calls a function with each EXTRA: its first word, and the rest.
static void each_else(void (*f)(enum side, const char *, const char *), enum side side, bool backwards)
{
	int n = 8;

	while (words[n])
		n++;
	for (int i = 8; i < n; i++) {
		char line[1000], *rest = line, *what;

		snprintf(line, sizeof(line), "%s", words[backwards ? n + 7 - i : i]);
		what = strsep(&rest, " ");
		f(side, what, rest);
	}
}

static void define(enum side side, const char *what, const char *rest)
{
	if (!strcmp(what, "synthetic") && write_file(pathf("%s/synthetic_events", tracing[C]), rest))
		die("synthetic event %s", rest);
	if (!strcmp(what, "dynamic") && write_file(pathf("%s/dynamic_events", tracing[C]), rest))
		die("probe %s", rest);
}

static void undefine(enum side side, const char *what, const char *rest)
{
	if (!strcmp(what, "synthetic"))
		define(side, what, pathf("!%s", rest));
	if (!strcmp(what, "dynamic")) {
		const char *name = strchr(rest, ':');

		define(side, what, pathf("-%.*s", (int)strcspn(name, " "), name));
	}
}

static void attach_else(enum side side, const char *what, const char *rest)
{
	if (strchr(what, '/'))
		attach(side, what, rest);
}

static void detach_else(enum side side, const char *what, const char *rest)
{
	if (strchr(what, '/'))
		detach(side, what, rest);
}

// From now on, events are fired in a chain of functions, if some were made.
static void call_in_frames(unsigned int chain)
{
#ifdef __x86_64__
	writes = frame_chain(chain);
#endif
}

// Makes the functions, if they are missing, and calls them.
static void begin_frames(const char *event, const char *order)
{
#ifdef __x86_64__
	make_frames(event, order);
	call_in_frames(0);
#else
	die("frames");
#endif
}

// From now on, events are fired at the end of a stack of as many functions as are kept, each in a
// mapping of its own.
static void begin_mappings(void)
{
#ifdef __x86_64__
	make_mappings();
	writes = write_from_mappings;
#else
	die("mappings");
#endif
}

static void fire_else(enum side side, const char *what, const char *rest)
{
	unsigned long long fired;
	unsigned int keys;
	char event[16];

	if (!strcmp(what, "fire") && sscanf(rest, "%15s %u", event, &keys) == 2)
		fire(pathf("%s 1 %u 1 1000", event, keys), &fired);
}

static unsigned long long expected;
static bool ignored, counted, ours, framed, hostile;

static void ignore(enum side side, const char *what, const char *rest)
{
	ignored |= !strcmp(what, "ignored");
	counted |= !strcmp(what, "counted");
	ours |= !strcmp(what, "ours");
	framed |= !strcmp(what, "frames");
	hostile |= !strcmp(what, "mappings");
}

// Makes control groups and puts a task into each, which sleeps from now on.
static void make_groups(void)
{
	char pids[16 * 12] = "";

	if (mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL))
		die("cgroup2");
	for (int i = 0; i < 16; i++) {
		const char *group = pathf("/sys/fs/cgroup/some-group-%d", i);
		pid_t pid = fork();

		if (!pid)
			for (;;)
				pause();
		snprintf(pids + strlen(pids), sizeof(pids) - strlen(pids), "%d ", pid);
		if (pid < 0 || mkdir(group, 0755) ||
		    write_file(pathf("%s/cgroup.procs", group), pathf("%d", pid)))
			die("%s", group);
	}
	// They fall asleep.
	pause_ms(1000);
	if (write_file(PARAMETERS "tasks", pids))
		die("tasks %s", pids);
}

static void check_hits(enum side side, const char *event, const char *trigger)
{
	unsigned long long dropped, hits = read_hist(side, event, &dropped);

	// C drops a hit, rarely, if two CPUs bring a key for the first time at once. Other hits are
	// the guest's own, and those on events fired before.
	if (ignored ? hits > 1000 + expected / 10 : hits + dropped < expected || (dropped && side == RHIST))
		die("%llu of %llu events hit %s in %s, %llu dropped", hits, expected, event, tracing[side], dropped);
}

// The trigger's action hits a synthetic event.
static void check_else(enum side side, const char *what, const char *rest)
{
	if (!strncmp(what, "synthetic/", strlen("synthetic/")))
		check_hits(side, what, rest);
}

// An open file of intervals, or -1.
static int reader = -1;

// Reads one interval: up to EOF.
static void read_interval(int fd)
{
	char buf[65536];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		;
	if (n < 0)
		die("hist_delta");
}

static int open_intervals(const char *event)
{
	int fd = open(pathf("%s/events/%s/hist_delta", tracing[RHIST], event), O_RDONLY);

	if (fd < 0)
		die("hist_delta");
	return fd;
}

static void begin_reading(enum side side, const char *what, const char *rest)
{
	if (!strcmp(what, "intervals") && side == RHIST) {
		reader = open_intervals(words[6]);
		read_interval(reader);
	}
}

static void end_reading(void)
{
	if (reader >= 0)
		close(reader);
	reader = -1;
}

// Measures the cost of a trigger, without its EXTRAs.
static double measure_hist(enum side side, const char *order, const char *event, const char *trigger, double off,
			   bool check)
{
	double ns;

	each_else(attach_else, side, false);
	if (words[8] && !counted)
		off -= fire(order, &expected);
	else
		off = 0;
	attach(side, event, trigger);
	each_else(fire_else, side, false);
	each_else(begin_reading, side, false);
	ns = fire(order, &expected);
	end_reading();
	if (check && !strstr(trigger, " if ")) {
		check_hits(side, event, trigger);
		each_else(check_else, side, false);
	}
	if (side == RHIST)
		read_source(event);
	detach(side, event, trigger);
	each_else(detach_else, side, true);
	return ns + off;
}

static void measure_event(void)
{
	unsigned long long fired;
	char order[100];

	snprintf(order, sizeof(order), "%s %s %s %s %s", words[1], words[2], words[3], words[4], words[5]);
	ignored = counted = ours = framed = hostile = false;
	each_else(ignore, C, false);
	each_else(define, C, false);
	if (framed)
		begin_frames(words[6], order);
	if (hostile)
		begin_mappings();
	for (int round = 0; round < rounds; round++) {
		double off = fire(order, &fired), floor, ns[SIDES];

		probe(words[1]);
		floor = fire(order, &fired);
		probe("none");
		for (int i = 0; i < SIDES; i++) {
			// In turns, so that neither is always the first.
			enum side side = (i + round) % SIDES;

			ns[side] = side == C && ours ? NAN : measure_hist(side, order, words[6], words[7], off, !round);
		}
		printf("%s|%.3f|%.3f|%.3f|%.3f|%s\n", case_name, off, floor, ns[C], ns[RHIST], source);
	}
	writes = write;
	each_else(undefine, C, true);
}

// Stacks whose addresses are all new, of mappings that are known. Each is of one event.
static void measure_sight(void)
{
	unsigned long long off, first, again;
	char order[100];

	snprintf(order, sizeof(order), "%s 1 1 1 1000", words[1]);
	begin_frames(words[6], order);
	attach(RHIST, words[6], words[7]);
	for (int round = 1; round <= rounds; round++) {
		detach(RHIST, words[6], words[7]);
		call_in_frames(round);
		off = fire_each(words[1], 0, 1, NULL).longest;
		writes = write;
		attach(RHIST, words[6], words[7]);
		// The mappings become known.
		call_in_frames(0);
		fire(order, &(unsigned long long){ 0 });
		call_in_frames(round);
		first = fire_each(words[1], 0, 1, NULL).longest;
		again = fire_each(words[1], 0, 1, NULL).longest;
		writes = write;
		printf("%s|%llu|%llu|%llu\n", case_name, off, first, again);
	}
	detach(RHIST, words[6], words[7]);
}

// Returns the time of the loop.
static double spin(const char *count)
{
	unsigned long long ns;
	FILE *file;

	if (write_file(PARAMETERS "spin", count))
		die("spin");
	file = fopen(PARAMETERS "spin", "r");
	if (!file || fscanf(file, "%llu", &ns) != 1)
		die("how long it was");
	fclose(file);
	return ns;
}

// Returns the number of samples of rhist:sample that came too late to be one each.
static unsigned long long late_samples(void)
{
	unsigned long long late;
	char line[200];
	FILE *file = fopen("/sys/kernel/tracing/rhist/hist_stats", "r");

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "rhist:sample %*u Hz for %*[^,], %*u ticks, %llu late", &late) == 1) {
			fclose(file);
			return late;
		}
	}
	die("hist_stats has no ticks");
	return 0;
}

// The interrupts are part of the cost. A sample that stands for several ticks is one.
static void measure_sample(void)
{
	static const char event[] = "rhist/sample";
	double frequency = atof(words[2]) / 1e9;

	if (write_file(pathf("%s/events/%s/frequency", tracing[RHIST], event), words[2]))
		die("frequency");
	for (int round = 0; round < rounds; round++) {
		double off = spin(words[5]), floor, on, samples;
		unsigned long long before, hits, late, dropped;

		if (write_file(PARAMETERS "timer", words[2]))
			die("timer");
		floor = spin(words[5]);
		write_file(PARAMETERS "timer", "0");
		attach(RHIST, event, words[7]);
		// The first sample of each function takes longer.
		for (int i = 0; i < 3; i++)
			spin(words[5]);
		before = read_hist(RHIST, event, &dropped);
		late = late_samples();
		on = spin(words[5]);
		late = late_samples() - late;
		hits = read_hist(RHIST, event, &dropped) - before;
		samples = on * frequency - late;
		if (late > samples / 50 || dropped || hits + 2 < samples)
			die("%llu of %.0f samples, %llu late, %llu dropped", hits, samples, late, dropped);
		detach(RHIST, event, words[7]);
		printf("%s|%.3f|%.3f|nan|%.3f|timer\n", case_name, off / samples, floor / samples, on / samples);
	}
}

// Prints the cost of events one by one, less their cost without a listener.
static void print_each(const char *kind, unsigned int keys, struct each each, unsigned long long off)
{
	printf("%s|%u %s|%llu|%llu|%u\n", case_name, keys, kind, each.median - off, each.longest - off, each.key);
}

static void fill(unsigned int known, unsigned int new, unsigned long long off)
{
	struct each again, of_new = fire_each(words[1], known, new, &again);

	if (new)
		print_each("new", new, of_new, off);
	print_each("known", known + new, again, off);
}

// Room for keys of the guest's own events.
#define OWN_KEYS 100

// A map that grows has its next table ready, with four times the places. They are filled before
// its worker runs. Then it comes, and makes the next table ready. If it takes out entries as well,
// no key is surely known after that.
static void measure_worst(void)
{
	unsigned int places = atoi(words[2]), last = atoi(words[3]), known = 0, all, more = 4 * OWN_KEYS;
	bool recycles = strstr(words[7], "full(recycle)"), leaves = recycles || strstr(words[7], "expire(taken)");
	unsigned long long off = fire_each(words[1], 0, 1000, NULL).median, dropped;

	each_else(define, C, false);
	each_else(attach_else, RHIST, false);
	attach(RHIST, words[6], words[7]);
	do {
		places = 4 * places < last ? 4 * places : last;
		all = places - OWN_KEYS;
		fill(known, all - known, off);
		pause_ms(leaves ? 1500 : 500);
		known = leaves ? 0 : all;
		fill(known, all - known, off);
	} while (places < last);
	read_hist(RHIST, words[6], &dropped);
	if (dropped)
		die("%llu dropped", dropped);
	// Now some find all places taken, again and again: also a quarter more, of which an eighth is
	// free then.
	more += recycles ? last / 4 : 0;
	print_each("new", more, fire_each(words[1], all, more, NULL), off);
	if (recycles)
		pause_ms(500);
	fill(known, all - known, off);
	detach(RHIST, words[6], words[7]);
	each_else(detach_else, RHIST, true);
	each_else(undefine, C, true);
}

static void measure_nobody(const char *when)
{
	unsigned long long fired;
	char order[100];

	snprintf(order, sizeof(order), "%s %s %s %s %s", words[1], words[2], words[3], words[4], words[5]);
	for (int round = 0; round < rounds; round++)
		printf("%s|%s|%.3f\n", case_name, when, fire(order, &fired));
}

static void measure_create(void)
{
	for (int round = 0; round < rounds; round++) {
		double ns[SIDES];

		for (int i = 0; i < SIDES; i++) {
			enum side side = (i + round) % SIDES;
			double began = nanoseconds();

			attach(side, words[1], words[2]);
			ns[side] = nanoseconds() - began;
			detach(side, words[1], words[2]);
		}
		printf("%s|%.0f|%.0f\n", case_name, ns[C], ns[RHIST]);
	}
}

static void measure_read(void)
{
	char order[100];

	snprintf(order, sizeof(order), "%s %s %s %s %s", words[1], words[2], words[3], words[4], words[5]);
	for (int round = 0; round < rounds; round++) {
		double ns[SIDES];

		for (int i = 0; i < SIDES; i++) {
			enum side side = (i + round) % SIDES;
			unsigned long long fired, dropped;
			double began;

			attach(side, words[6], words[7]);
			fire(order, &fired);
			began = nanoseconds();
			if (read_hist(side, words[6], &dropped) != fired || dropped)
				die("hits are missing in %s", tracing[side]);
			ns[side] = nanoseconds() - began;
			detach(side, words[6], words[7]);
		}
		printf("%s|%.0f|%.0f\n", case_name, ns[C], ns[RHIST]);
	}
}

// The time that unbound workers have run.
static double worker_ns(void)
{
	unsigned long long all = 0, ns;
	char comm[20];
	glob_t tasks;

	if (glob("/proc/[0-9]*", 0, NULL, &tasks))
		die("/proc");
	for (size_t i = 0; i < tasks.gl_pathc; i++) {
		FILE *file = fopen(pathf("%s/comm", tasks.gl_pathv[i]), "r");
		bool is_worker = file && fgets(comm, sizeof(comm), file) && !strncmp(comm, "kworker/u", 9);

		if (file)
			fclose(file);
		file = is_worker ? fopen(pathf("%s/schedstat", tasks.gl_pathv[i]), "r") : NULL;
		if (file && fscanf(file, "%llu", &ns) == 1)
			all += ns;
		if (file)
			fclose(file);
	}
	globfree(&tasks);
	return all;
}

static void measure_cut(void)
{
	int fds[32], readers = atoi(words[8]);
	unsigned long long fired;
	char order[100];
	double began;

	if (readers < 1 || readers > 32)
		die("%d readers", readers);
	snprintf(order, sizeof(order), "%s %s %s %s %s", words[1], words[2], words[3], words[4], words[5]);
	attach(RHIST, words[6], words[7]);
	for (int i = 0; i < readers; i++)
		fds[i] = open_intervals(words[6]);
	fire(order, &fired);
	read_interval(*fds);
	for (int round = 0; round < rounds; round++) {
		fire(order, &fired);
		began = worker_ns();
		read_interval(*fds);
		printf("%s|%.0f\n", case_name, worker_ns() - began);
	}
	while (readers)
		close(fds[--readers]);
	detach(RHIST, words[6], words[7]);
}

// Free pages, in bytes, with those on per-CPU lists, which MemFree leaves out.
static double free_memory(void)
{
	unsigned long pages = 0, n;
	char line[200];
	glob_t slabs;
	FILE *file;

	// Detached triggers are freed later, and slabs keep pages without objects.
	sleep(1);
	if (!glob("/sys/kernel/slab/*/shrink", 0, NULL, &slabs)) {
		for (size_t i = 0; i < slabs.gl_pathc; i++)
			write_file(slabs.gl_pathv[i], "1");
		globfree(&slabs);
	}
	file = fopen("/proc/zoneinfo", "r");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, " nr_free_pages %lu", &n) == 1 || sscanf(line, " count: %lu", &n) == 1)
			pages += n;
	if (!pages)
		die("/proc/zoneinfo");
	fclose(file);
	return pages * (double)sysconf(_SC_PAGESIZE);
}

// Histograms that differ only in a filter.
static void measure_memory(void)
{
	int count = atoi(words[1]);

	for (int round = 0; round < rounds; round++) {
		double bytes[SIDES];

		for (int i = 0; i < SIDES; i++) {
			enum side side = (i + round) % SIDES;
			double before;

			// The first histogram of an event makes parts that stay: do not count them.
			attach(side, words[2], pathf("%s if common_pid == 1", words[3]));
			before = free_memory();
			for (int j = 0; j < count; j++)
				attach(side, words[2], pathf("%s if common_pid == %d", words[3], 2 + j));
			bytes[side] = (before - free_memory()) / count;
			for (int j = -1; j < count; j++)
				detach(side, words[2], pathf("%s if common_pid == %d", words[3], 2 + j));
		}
		printf("%s|%.0f|%.0f\n", case_name, bytes[C], bytes[RHIST]);
	}
}

// Returns the number that sscanf() finds with this format in a line of a file. It is not 0.
static unsigned long long number_in(const char *path, const char *format)
{
	unsigned long long n = 0;
	char line[4096];
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file) && sscanf(line, format, &n) != 1)
		;
	if (!n)
		die("%s", path);
	fclose(file);
	return n;
}

static void measure_module(void)
{
	printf("%s|%llu\n", case_name, number_in("/proc/modules", "rhist %llu"));
}

// Starts a command in a process group of its own, with its output in a file.
static pid_t start(const char *command)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		int out = open("/output", O_WRONLY | O_CREAT | O_TRUNC, 0600);

		setpgid(0, 0);
		dup2(open("/dev/null", O_RDONLY), 0);
		dup2(out, 1);
		dup2(out, 2);
		execl("/bin/busybox", "sh", "-c", command, NULL);
		_exit(127);
	}
	if (pid < 0)
		die("fork");
	setpgid(pid, pid);
	return pid;
}

// Prints its output, without lines that only repeat the one before.
static void print_output(void)
{
	static char lines[2][1 << 20];
	FILE *file = fopen("/output", "r");

	for (int i = 0; file && fgets(lines[i], sizeof(lines[i]), file); i = !i)
		if (strcmp(lines[0], lines[1]))
			printf("> %s%s", lines[i], strchr(lines[i], '\n') ? "" : "\n");
	if (file)
		fclose(file);
}

// Interrupts it like a terminal, upon which it prints its results.
static void stop(pid_t pid)
{
	int status, ms;

	kill(-pid, SIGINT);
	for (ms = 0; ms < 120000; ms += 100) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return;
		pause_ms(100);
	}
	kill(-pid, SIGKILL);
	print_output();
	die("does not end");
}

// Pauses while a command gets ready, which does not end yet.
static void pause_beside(pid_t pid)
{
	int status;

	pause_ms(250);
	if (waitpid(pid, &status, WNOHANG) == pid) {
		print_output();
		die("ended early, with status %#x", status);
	}
}

// Ends the wait for a command that listens.
static void must_listen(bool listens)
{
	if (!listens) {
		print_output();
		die("does not listen");
	}
	pause_ms(2000);
}

// Waits until an event takes longer, that is until a command listens to it. Returns the number of
// fired events.
static unsigned long long wait_until_listened(pid_t pid, const char *event, double off)
{
	unsigned long long fired, all = 0;
	int seen = 0;

	for (int ms = 0; ms < 300000 && seen < 2; ms += 250) {
		pause_beside(pid);
		seen = fire(pathf("%s 1 16 1 630", event), &fired) > 1.2 * off + 8 ? seen + 1 : 0;
		all += fired;
	}
	must_listen(seen == 2);
	return all;
}

// Interpreted BPF programs would look slower than usual.
static void check_jit(void)
{
	int jit = 0;
	FILE *file = fopen("/proc/sys/net/core/bpf_jit_enable", "r");

	if (!file || fscanf(file, "%d", &jit) != 1 || jit != 1)
		die("bpf_jit_enable is %d", jit);
	fclose(file);
}

// Waits until a loop takes longer, by at least 500 ns a sample.
static void wait_until_sampled(pid_t pid, double off)
{
	int seen = 0;

	for (int ms = 0; ms < 300000 && seen < 2; ms += 250) {
		pause_beside(pid);
		seen = spin(words[5]) > off * (1 + 500 * atof(words[2]) / 1e9) ? seen + 1 : 0;
	}
	must_listen(seen == 2);
}

// Samples are counted by the time of the loop.
static void measure_sampler(void)
{
	double frequency = atof(words[2]) / 1e9, surely = 0, off, on, began;
	pid_t pid;

	check_jit();
	off = spin(words[5]);
	began = nanoseconds();
	pid = start(words[6]);
	wait_until_sampled(pid, off);
	for (int round = 0; round < rounds; round++) {
		on = spin(words[5]);
		surely += on * frequency;
		printf("%s|%.3f|%.3f\n", case_name, off / (on * frequency), on / (on * frequency));
	}
	stop(pid);
	printf("%s|%.0f|%.0f\n", case_name, 0.99 * surely, (nanoseconds() - began) * frequency);
	print_output();
}

static void measure_peer(void)
{
	unsigned long long fired, all, surely = 0;
	char order[100];
	double off;
	pid_t pid;

	snprintf(order, sizeof(order), "%s %s %s %s %s", words[1], words[2], words[3], words[4], words[5]);
	check_jit();
	off = fire(order, &fired);
	pid = start(words[6]);
	all = wait_until_listened(pid, words[1], off);
	for (int round = 0; round < rounds; round++) {
		printf("%s|%.3f|", case_name, off);
		printf("%.3f\n", fire(order, &fired));
		surely += fired;
	}
	stop(pid);
	printf("%s|%llu|%llu\n", case_name, surely, all + surely);
	print_output();
}

// Returns the number of context switches on all processors.
static unsigned long long switches(void)
{
	return number_in("/proc/stat", "ctxt %llu");
}

static void run_load(const char *who)
{
	unsigned long long before = switches();
	double began = nanoseconds();
	int status = system(pathf("%s >/dev/null", words[1]));

	if (status)
		die("%s: status %#x", words[1], status);
	printf("%s|%s|%.0f|%llu\n", case_name, who, nanoseconds() - began, switches() - before);
}

static unsigned long long recorded;

static void read_recorded(enum side side, const char *what, const char *rest)
{
	unsigned long long dropped;

	if (strchr(what, '/'))
		recorded = read_hist(side, what, &dropped);
}

static void measure_machine(void)
{
	unsigned long long fired;
	bool command = words[2][0];

	check_jit();
	each_else(define, C, false);
	// The first run reads all files from the disk.
	run_load("first");
	for (int round = 0; round < rounds; round++) {
		// In turns, so that none is always the first.
		for (int i = 0; i < 3 + command; i++) {
			int who = (i + round) % (3 + command);

			if (who == 0) {
				run_load("without");
			} else if (who <= SIDES) {
				enum side side = who - 1;

				each_else(attach_else, side, false);
				run_load(side == C ? "C" : "rhist");
				each_else(read_recorded, side, false);
				printf("%s|%s recorded|%llu\n", case_name, side == C ? "C" : "rhist", recorded);
				each_else(detach_else, side, true);
			} else {
				double off = fire("queued 1 16 1 630", &fired);
				pid_t pid = start(words[2]);

				wait_until_listened(pid, "queued", off);
				run_load("command");
				stop(pid);
				print_output();
			}
		}
	}
	each_else(undefine, C, true);
}

static void each_case(bool rhist)
{
	char line[4000];
	FILE *cases = fopen("/cases", "r");

	if (!cases)
		die("/cases");
	while (fgets(line, sizeof(line), cases)) {
		char *rest = line, *kind = strsep(&rest, " ");
		int n = 0;

		if (!strcmp(kind, "rounds")) {
			rounds = atoi(rest);
			continue;
		}
		rest[strcspn(rest, "\n")] = 0;
		while (rest && n < 19)
			words[n++] = strsep(&rest, "|");
		words[n] = NULL;
		for (int i = 0; i < n; i++)
			for (char *c = strchr(words[i], '\\'); c; c = strchr(c, '\\'))
				*c = '|';
		case_name = words[0];
		if (!strcmp(kind, "groups") && !rhist)
			make_groups();
		else if (!strcmp(kind, "groups"))
			continue;
		else if (!strcmp(kind, "nobody"))
			measure_nobody(rhist ? "after" : "before");
		else if (!rhist)
			continue;
		else if (!strcmp(kind, "event"))
			measure_event();
		else if (!strcmp(kind, "sight"))
			measure_sight();
		else if (!strcmp(kind, "create"))
			measure_create();
		else if (!strcmp(kind, "read"))
			measure_read();
		else if (!strcmp(kind, "cut"))
			measure_cut();
		else if (!strcmp(kind, "worst"))
			measure_worst();
		else if (!strcmp(kind, "memory"))
			measure_memory();
		else if (!strcmp(kind, "module"))
			measure_module();
		else if (!strcmp(kind, "peer"))
			measure_peer();
		else if (!strcmp(kind, "sample"))
			measure_sample();
		else if (!strcmp(kind, "sampler"))
			measure_sampler();
		else if (!strcmp(kind, "machine"))
			measure_machine();
		else
			die("no such kind: %s", kind);
		fflush(stdout);
	}
	fclose(cases);
	case_name = NULL;
}

// Runs a pinned BPF program by the software clock of perf.
static int run_samples(const char *program, const char *frequency)
{
	struct perf_event_attr event = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(event),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = atoi(frequency),
		.freq = 1,
	};
	union bpf_attr get = { .pathname = (unsigned long)program };
	int fd = syscall(SYS_bpf, BPF_OBJ_GET, &get, sizeof(get));
	int sampler = syscall(SYS_perf_event_open, &event, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 || sampler < 0 || ioctl(sampler, PERF_EVENT_IOC_SET_BPF, fd) || ioctl(sampler, PERF_EVENT_IOC_ENABLE, 0))
		die("%s", program);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 4 && !strcmp(argv[1], "sample"))
		return run_samples(argv[2], argv[3]);
	// The workaround for the emulator is there if the guest has several processors.
	if (!access("/stale_int3.ko", F_OK))
		load("/stale_int3.ko");
	load("/rhist_bench.ko");
	// For a while after boot the kernel uses slow clocks: it still checks the time stamp
	// counter.
	sleep(5);
	each_case(false);
	load("/rhist.ko");
	each_case(true);
	return 0;
}
