// SPDX-License-Identifier: GPL-2.0
// Events of programs are trace events like any other, as long as they have users.
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>

#include "client.h"

static unsigned int bits[8];

/* Returns true if the file contains the text. */
static bool has(const char *path, const char *text)
{
	char *all = slurp(path);
	bool found;

	if (testing_c() && all && strstr(path, "/format"))
		without_lengths(all);
	found = all && strstr(all, text);
	if (!found)
		note("%s: %s", path, all ? all : strerror(errno));
	free(all);
	return found;
}

static const char *trace_file(const char *name)
{
	return pathf("%s/%s", kernel_dir(), name);
}

static void texts(int fd)
{
	static const char what[] = "ev_all u8 c;s16 h;u32 w;u64 x;char[8] s;__rel_loc char[] r;"
				   "__data_loc char[] d;__rel_loc u8[] a;struct my_type m 3;char p";
	struct {
		unsigned char c; short h; unsigned int w; unsigned long long x; char s[8];
		unsigned int r, d, a; char m[3]; char p; char text[12];
	} __attribute__((packed)) e = {
		.c = 7, .h = -2, .w = 0xfffffffe, .x = 5, .s = "static",
		.m = "abc", .p = 'Z', .text = "rel\0d\xc3ta\0\1\2\3",
	};
	int index;

	/* Counted from behind the field, and from the beginning of the record. */
	e.r = DYN_LOC(offsetof(typeof(e), text) - offsetof(typeof(e), r) - 4, 4);
	e.d = DYN_LOC(8 + offsetof(typeof(e), text) + 4, 5);
	e.a = DYN_LOC(offsetof(typeof(e), text) + 9 - offsetof(typeof(e), a) - 4, 3);
	ok(!reg(fd, what, &bits[0], &index), "an event with fields of all kinds");
	ok(has(event_file("ev_all", "format"),
	       "\tfield:u8 c;\toffset:8;\tsize:1;\tsigned:0;\n"
	       "\tfield:s16 h;\toffset:9;\tsize:2;\tsigned:1;\n"
	       "\tfield:u32 w;\toffset:11;\tsize:4;\tsigned:0;\n"
	       "\tfield:u64 x;\toffset:15;\tsize:8;\tsigned:0;\n"
	       "\tfield:char s[];\toffset:23;\tsize:8;\tsigned:1;\n"
	       "\tfield:__rel_loc char r[];\toffset:31;\tsize:4;\tsigned:1;\n"
	       "\tfield:__data_loc char[] d;\toffset:35;\tsize:4;\tsigned:1;\n"
	       "\tfield:__rel_loc u8 a[];\toffset:39;\tsize:4;\tsigned:1;\n"
	       "\tfield:struct my_type m;\toffset:43;\tsize:3;\tsigned:1;\n"
	       "\tfield:char p;\toffset:46;\tsize:1;\tsigned:1;\n"
	       "\nprint fmt: \"c=%u h=%d w=%u x=%llu s=%s r=%s d=%s a=%llu m=%llu p=%d\", "
	       "REC->c, REC->h, REC->w, REC->x, REC->s, __get_rel_str(r), __get_str(d), REC->a, "
	       "REC->m, REC->p\n"), "its format");
	truncate_file(trace_file("trace"));
	ok(!enable("ev_all", true) && bits[0] == 1, "it is enabled, and the bit says so");
	ok(emit(fd, index, &e, sizeof(e)) == 4 + sizeof(e), "it is written");
	ok(has(trace_file("trace"),
	       ": ev_all: c=(7) h=0xfffe (65534) w=0xfffffffe (-2) x=0x5 (5) s=static "
	       "r=rel d=d.ta. (64:c3:74:61:00) a=01,02,03 m=<INVALID-SIZE> p='Z'(90)\n"),
	   "its text in trace");
	e.r += 1;
	ok(emit(fd, index, &e, sizeof(e)) == -EFAULT, "a string that does not end in a NUL");
	ok(!enable("ev_all", false) && bits[0] == 0, "it is disabled, and the bit says so");
	ok(!unreg(fd, &bits[0], 0), "it is unregistered");
}

/* A payload can neither end a line of trace nor send control characters to a terminal. */
static void one_line(int fd)
{
	static const struct { char text[12], plain[4]; unsigned char c; } e = { "a\nev_b: c=1", "\x1b[H", '\n' };
	int index;

	reg(fd, "ev_line char[12] s;char[4] t;u8 c", &bits[0], &index);
	truncate_file(trace_file("trace"));
	enable("ev_line", true);
	emit(fd, index, &e, sizeof(e));
	enable("ev_line", false);
	ours(has(trace_file("trace"), ": ev_line: s=a.ev_b: c=1 (61:0a:65:76:5f:62:3a:20:63:3d:31) t=.[H (1b:5b:48) "
				      "c=(10)\n"), "what a string holds stays in its line");
	unreg(fd, &bits[0], 0);
}

/*
 * A value that looks like the place of a string in the record, but was not checked, is no string
 * for a filter or in trace.
 */
static void no_string(int fd)
{
	static const struct { unsigned int a, b; } e = { DYN_LOC(0x1000, 8), 0 };
	int index;

	reg(fd, "ev_place struct x__data_loc_char a 4;__data_loc cpumask_t b", &bits[0], &index);
	ours(append(event_file("ev_place", "filter"), "a == \"x\"") == -EINVAL, "only checked places are followed");
	truncate_file(trace_file("trace"));
	enable("ev_place", true);
	emit(fd, index, &e, sizeof(e));
	enable("ev_place", false);
	ours(has(trace_file("trace"), ": ev_place: a=0x81000 (528384) b=\n"), "nor are they shown");
	unreg(fd, &bits[0], 0);
}

/* Returns the hitcount that a hist file shows for key @key, or -1. */
static long hist_count(const char *path, int key)
{
	char *text = slurp(path), *at = text ? strstr(text, pathf("{ key: %10d } hitcount:", key)) : NULL;
	long count = at ? strtol(strstr(at, "hitcount:") + 9, NULL, 10) : -1;

	if (!at)
		note("%s: %s", path, text ? text : strerror(errno));
	free(text);
	return count;
}

static void listeners(int fd)
{
	static const char *const hists[] = { "hist:keys=key", "!hist:keys=key" };
	char *instance = strdup(pathf("%s/instances/ev", kernel_dir()));
	unsigned int key = 3;
	int index, perf, i;

	ok(!reg(fd, "ev_key u32 key", &bits[1], &index), "an event with a key");
	ok(!append(event_file("ev_key", "trigger"), hists[0]) && bits[1] == 1,
	   "a hist trigger of the kernel enables it");
	emit(fd, index, &key, 4);
	ours(!append(pathf("%s/events/user_events/ev_key/trigger", tracing_dir()), hists[0]),
	   "and one of rhist");
	for (i = 0; i < 4; i++)
		emit(fd, index, &key, 4);
	ok(hist_count(event_file("ev_key", "hist"), 3) == 5, "the kernel counted 5");
	ours(hist_count(pathf("%s/events/user_events/ev_key/hist", tracing_dir()), 3) == 4,
	   "rhist counted 4");
	ok(has(pathf("%s/user_events_status", tracing_dir()), "ev_key # Used by ftrace\n"),
	   "user_events_status says who listens");
	append(event_file("ev_key", "trigger"), hists[1]);
	ours(bits[1] == 1, "one of two is not all");
	append(pathf("%s/events/user_events/ev_key/trigger", tracing_dir()), hists[1]);
	ok(bits[1] == 0, "both are");

	if (have_perf()) {
		perf = perf_open("ev_key");
		ok(perf >= 0 && bits[1] == 1, "perf enables it");
		ok(has(pathf("%s/user_events_status", tracing_dir()), "ev_key # Used by perf\n"), "and is told of");
		close(perf);
		ok(bits[1] == 0, "and disables it");
	} else {
		skip("no perf", "perf enables it");
	}

	mkdir(instance, 0700);
	append(pathf("%s/events/user_events/ev_key/filter", instance), "key > 5");
	append(pathf("%s/events/user_events/ev_key/enable", instance), "1");
	ok(bits[1] == 1, "another trace instance enables it");
	emit(fd, index, &key, 4);
	key = 6;
	emit(fd, index, &key, 4);
	ok(has(pathf("%s/trace", instance), ": ev_key: key=0x6 (6)\n"), "which gets what it filters for");
	key = 3;
	ok(!strstr(slurp(pathf("%s/trace", instance)), "key=0x3"), "and nothing else");
	ok(!rmdir(instance) && bits[1] == 0, "its end disables it");
	free(instance);
	ok(!unreg(fd, &bits[1], 0), "it is unregistered");
}

/*
 * Fields with the names of common fields: the event's own are meant, and common_pid stays the
 * task's.
 */
static void names(int fd)
{
	static const char all[] = "hist:keys=cpu,comm:vals=stacktrace,hitcount if CPU == 9 && comm == 5";
	static const char pids[] = "hist:keys=common_pid,common_cpu if common_pid == 1 || comm == 5";
	char *ours_dir = strdup(pathf("%s/events/user_events/ev_names", tracing_dir()));
	const unsigned int e[] = { 4711, 5, 7, 9, 3 };
	char *of[2][2] = {};
	int index;

	ok(!reg(fd, "ev_names u32 cpu;u32 comm;u32 stacktrace;u32 CPU;u32 hitcount", &bits[1], &index),
	   "fields are called cpu, comm, stacktrace, CPU and hitcount");
	for (int i = 0; i < 2; i++) {
		const char *dir = i ? ours_dir : event_file("ev_names", "");
		char *trigger = strdup(pathf("%s/trigger", dir)), *hist = strdup(pathf("%s/hist", dir));

		for (int j = 0; j < 2; j++) {
			append(trigger, j ? pids : all);
			emit(fd, index, e, sizeof(e));
			of[i][j] = slurp(hist);
			append(trigger, pathf("!%s", j ? pids : all));
		}
		free(trigger);
		free(hist);
	}
	if (!ok(of[0][0] && of[1][0] && strstr(of[1][0], "{ cpu:       4711, comm:          5 } hitcount:          1  "
						"stacktrace:          7") && !strcmp(of[0][0], of[1][0]),
		"which keys, values and filters mean, as with C"))
		note_difference(of[0][0] ?: "", of[1][0] ?: "");
	ok(of[1][1] && strstr(of[1][1], pathf("{ common_pid: %10d, common_cpu: ", getpid())),
	   "what begins with common_ is the kernel's");
	for (int i = 0; i < 4; i++)
		free(of[i / 2][i % 2]);
	free(ours_dir);
	unreg(fd, &bits[1], 0);
}

/* Returns true if the event with this field owns the directory, which two events may want. */
static bool is_of(const char *field)
{
	return has(event_file("ev_same", "format"), field) &&
	       has(pathf("%s/events/user_events/ev_same/format", tracing_dir()), field);
}

/* Counts the directories of that name. */
static int folders_of(const char *event)
{
	DIR *dir = opendir(pathf("%s/events/user_events", kernel_dir()));
	struct dirent *entry;
	int found = 0;

	while (dir && (entry = readdir(dir)))
		found += !strcmp(entry->d_name, event);
	if (dir)
		closedir(dir);
	return found;
}

/* An event of the kernel's own user events, and one of rhist's, of the same name. */
static void same_names(int fd)
{
	int kernels = open(pathf("%s/user_events_data", kernel_dir()), O_RDWR | O_CLOEXEC), flags = USER_EVENT_REG_MULTI_FORMAT;
	const char *trigger = pathf("%s/events/user_events/ev_same/trigger", tracing_dir()), *hist = "hist:keys=a";
	static volatile unsigned int of_kernel[2], of_rhist[2];

	trigger = strdup(trigger);
	ok(!reg(kernels, "ev_same u32 a", &of_kernel[0], NULL), "an event of the kernel's user events");
	ok(reg(fd, "ev_same u32 a;u32 b", &of_rhist[0], NULL) == -EADDRINUSE &&
	   reg(fd, "ev_same u32 a", &of_rhist[0], NULL) == -EADDRINUSE, "has its name for itself");
	ok(folders_of("ev_same") == 1 && is_of("u32 a"), "and its directory");
	ok(!reg_flags(kernels, "ev_same u32 a", &of_kernel[1], 4, 0, flags, NULL) &&
	   !reg_flags(fd, "ev_same u32 a", &of_rhist[1], 4, 0, flags, NULL), "with any formats, each has one");
	unreg(kernels, &of_kernel[1], 0);
	unreg(fd, &of_rhist[1], 0);
	unreg(kernels, &of_kernel[0], 0);
	close(kernels);
	ok(within_seconds(10, !folders_of("ev_same")), "it goes");

	kernels = open(pathf("%s/user_events_data", kernel_dir()), O_RDWR | O_CLOEXEC);
	ok(!reg(fd, "ev_same u32 a;u32 b", &of_rhist[0], NULL) && !reg(kernels, "ev_same u64 a", &of_kernel[0], NULL),
	   "now the kernel's comes second, which rhist cannot refuse");
	ok(folders_of("ev_same") == 2 && is_of("u32 b"), "the path is that of the first one");
	ok(!append(trigger, hist) && of_rhist[0] && !of_kernel[0], "a histogram there counts the first one");
	append(trigger, pathf("!%s", hist));
	ok(!enable("ev_same", true) && of_rhist[0] && !of_kernel[0], "which is enabled there");
	enable("ev_same", false);
	unreg(fd, &of_rhist[0], 0);
	/* The open file keeps the event, too. */
	close(fd);
	ok(within_seconds(10, folders_of("ev_same") == 1 && is_of("u64 a")), "when it is gone, the path is the other's");
	ok(!append(trigger, hist) && within_seconds(10, of_kernel[0]), "whose histogram it is then");
	append(trigger, pathf("!%s", hist));
	unreg(kernels, &of_kernel[0], 0);
	close(kernels);
	ok(within_seconds(10, !folders_of("ev_same")), "until that is gone");
	free((char *)trigger);
}

static void sizes(int fd)
{
	static char big[70000];
	int index, perf;

	memset(big, 1, sizeof(big));
	ok(!reg(fd, "ev_size u8 first", &bits[2], &index), "an event that may be long");
	truncate_file(trace_file("trace"));
	enable("ev_size", true);
	ok(emit(fd, index, big, 2000) == 2004, "2000 bytes");
	ok(emit(fd, index, big, 4000) == 4004, "4000 bytes");
	/* C loses them silently. */
	ok(emit(fd, index, big, 5000) == (testing_c() ? 5004 : -E2BIG), "5000 bytes are too many for ftrace");
	ok(emit(fd, index, big, 70000) == (testing_c() ? 70004 : -E2BIG), "70000 bytes for anybody");
	enable("ev_size", false);
	if (have_perf()) {
		perf = perf_open("ev_size");
		ok(emit(fd, index, big, 8184) == 8188, "8184 bytes for perf");
		/* And warns. */
		ours(emit(fd, index, big, 8185) == -E2BIG, "8185 bytes are too many for it");
		close(perf);
	} else {
		skip("no perf", "8184 bytes for perf");
	}
	ok(!unreg(fd, &bits[2], 0), "it is unregistered");
}

static void many_indices(int fd)
{
	unsigned int wrong = 0, i;
	int index;

	for (i = 0; i < 200; i++) {
		int err = reg_flags(fd, pathf("ev_many%u u32 a", i), &bits[4 + i / 32 % 2], 4, i % 32, 0,
				    &index);

		if (i >= 64)
			err = err == -EADDRINUSE ? 0 : -1;
		else if (index != (int)i + 5)
			err = -1;
		wrong += !!err;
	}
	ok(!wrong, "indices count on, with a bit each");
	enable("ev_many63", true);
	ok(bits[5] == 1u << 31 && !bits[4], "the last one is enabled alone");
	index = 4;
	ok(emit(fd, 68, &index, 4) == 8 && emit(fd, 67, &index, 4) == -EBADF, "and written by its index");
	enable("ev_many63", false);
	for (i = 0; i < 64; i++)
		wrong += !!unreg(fd, &bits[4 + i / 32], i % 32);
	ok(!wrong, "all are unregistered");
}

static void lives(void)
{
	int fd = open_data(), other = open_data(), index, file;

	ok(!reg(fd, "ev_life u32 a", &bits[6], NULL) && exists("ev_life"), "an event lives");
	close(fd);
	ok(!within_seconds(0.3, !exists("ev_life")), "as long as it has a bit");
	ok(del(other, "ev_life") == -EBUSY, "and is not deleted so far");
	enable("ev_life", true);
	ok(bits[6] == 1 && !unreg(other, &bits[6], 0) && !bits[6], "the bit is given back, by any file");
	ok(!within_seconds(0.3, !exists("ev_life")) && del(other, "ev_life") == -EBUSY,
	   "it lives as long as somebody listens");
	enable("ev_life", false);
	ok(within_seconds(5, !exists("ev_life")), "then it goes by itself");

	fd = open_data();
	reg(fd, "ev_life u32 a", &bits[6], NULL);
	unreg(fd, &bits[6], 0);
	ok(!within_seconds(0.3, !exists("ev_life")), "it lives as long as a file has its index");
	ok(!append(pathf("%s/events/user_events/ev_life/trigger", tracing_dir()), "hist:keys=a"),
	   "a histogram of it");
	close(fd);
	ok(!within_seconds(0.3, !exists("ev_life")), "keeps it");
	append(pathf("%s/events/user_events/ev_life/trigger", tracing_dir()), "!hist:keys=a");
	ok(within_seconds(5, !exists("ev_life")), "until that goes");

	fd = open_data();
	ok(!reg_flags(fd, "ev_stay u32 a", &bits[6], 4, 0, USER_EVENT_REG_PERSIST, &index), "one that stays");
	unreg(fd, &bits[6], 0);
	close(fd);
	close(other);
	ok(!within_seconds(0.3, !exists("ev_stay")), "stays");
	if (testing_c())
		skip("C is no module", "and keeps the module");
	else
		ok(syscall(SYS_delete_module, "rhist", O_NONBLOCK) && errno == EWOULDBLOCK,
		   "and keeps the module");
	other = open_data();
	file = open(event_file("ev_stay", "enable"), O_RDONLY);
	ok(!del(other, "ev_stay") && !exists("ev_stay"), "until it is deleted");
	ok(file < 0 || !close(file), "with a file of it open");
	ok(del(other, "ev_stay") == -ENOENT, "once");
	close(other);
}

static volatile unsigned int told, written, done;
static int first_fd, first_index;
/* With one processor the thread rarely runs at the right time, and is in the way of others. */
static unsigned int rounds;

/* Writes once each time a listener comes, as soon as the bit shows that. */
static void *write_first(void *unused)
{
	unsigned int key = 1, round = 0;

	while (round < rounds) {
		while (!told)
			;
		if (emit(first_fd, first_index, &key, 4) == 8)
			written++;
		round++;
		while (told)
			;
		done = round;
	}
	return unused;
}

/* A program's bit is set when a new histogram counts, not before. */
static void first_writes(void)
{
	const char *dir = pathf("%s/events/user_events/ev_first", tracing_dir());
	char *trigger = strdup(pathf("%s/trigger", dir)), *hist = strdup(pathf("%s/hist", dir));
	unsigned int round, lost = 0;
	struct totals totals;
	pthread_t thread;

	rounds = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 100 : 5;
	first_fd = open_data();
	if (reg(first_fd, "ev_first u32 key", &told, &first_index) || pthread_create(&thread, NULL, write_first, NULL))
		die("ev_first");
	for (round = 1; round <= rounds; round++) {
		if (append(trigger, "hist:keys=key:size=128") || !within_seconds(10, written == round))
			die("round %d: %d written", round, written);
		lost += !read_totals(hist, &totals) || totals.hits != 1;
		append(trigger, "!hist:keys=key:size=128");
		/* The thread might not run for a while, and miss the change. */
		if (!within_seconds(10, done == round))
			die("round %d: %d done", round, done);
	}
	pthread_join(thread, NULL);
	ok(!lost, "the first write after the bit is set is counted: %u of %u were not", lost, rounds);
	unreg(first_fd, &told, 0);
	close(first_fd);
	ok(within_seconds(5, !exists("ev_first")), "the event goes with its last use");
	free(trigger);
	free(hist);
}

static void formats(void)
{
	unsigned int at[3];
	int fd = open_data(), index[3];
	char *name;

	ok(!reg_flags(fd, "ev_multi u32 a", &at[0], 4, 0, USER_EVENT_REG_MULTI_FORMAT, &index[0]) &&
	   !reg_flags(fd, "ev_multi u32 b", &at[1], 4, 0, USER_EVENT_REG_MULTI_FORMAT, &index[1]) &&
	   !reg_flags(fd, "ev_multi u32 a;", &at[2], 4, 0, USER_EVENT_REG_MULTI_FORMAT, &index[2]),
	   "three of one name with two formats");
	ok(index[0] == index[2] && index[0] != index[1], "are two events");
	ok(reg(fd, "ev_multi u32 c", &bits[7], NULL) == 0, "beside one that has but one format");
	name = slurp(pathf("%s/user_events_status", tracing_dir()));
	ok(name && strstr(name, "ev_multi.") && strstr(name, "\nActive: 3\nBusy: 0\n"),
	   "user_events_status has them by their own names");
	free(name);
	unreg(fd, &at[0], 0);
	unreg(fd, &at[1], 0);
	unreg(fd, &at[2], 0);
	unreg(fd, &bits[7], 0);
	close(fd);
}

/* Counts the formats of a name in user_events_status, and finds the number of the newest one. */
static unsigned int formats_of(const char *name, unsigned int *newest)
{
	char *text = slurp(pathf("%s/user_events_status", tracing_dir()));
	const char *beginning = pathf("%s.", name);
	unsigned int count = 0, number;

	*newest = 0;
	for (char *at = text; at && (at = strstr(at, beginning)); count++) {
		at += strlen(beginning);
		number = strtoul(at, NULL, 16);
		if (*newest < number)
			*newest = number;
	}
	free(text);
	return count;
}

/* One name, three persistent formats, the second one in use. */
static void deleted_formats(void)
{
	const int flags = USER_EVENT_REG_MULTI_FORMAT | USER_EVENT_REG_PERSIST;
	int fd = open_data(), other = open_data();
	unsigned int at[3], newest, left;

	ok(!reg_flags(other, "ev_many u32 a", &at[0], 4, 0, flags, NULL) &&
	   !reg_flags(fd, "ev_many u32 b", &at[1], 4, 0, flags, NULL) &&
	   !reg_flags(other, "ev_many u32 c", &at[2], 4, 0, flags, NULL) &&
	   !unreg(other, &at[0], 0) && !unreg(other, &at[2], 0) && !close(other) &&
	   formats_of("ev_many", &newest) == 3, "three formats that stay");
	/* C drops its references a little later. */
	ok(within_seconds(5, del(fd, "ev_many") == -EBUSY && formats_of("ev_many", &left) == 2) && left < newest,
	   "the newer one is deleted if one is in use: of %x, %x is left", newest, left);
	unreg(fd, &at[1], 0);
	close(fd);
	other = open_data();
	ok(within_seconds(5, !del(other, "ev_many")) && !formats_of("ev_many", &left), "and all, if none is");
	close(other);
}

/* A user with access to the file, and nothing else. */
static void nobody(void)
{
	int fd = open_data(), status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		if (setgid(65534) || setuid(65534))
			_exit(1);
		if (reg(fd, "ev_user u32 a", &bits[6], NULL))
			_exit(2);
		if (reg_flags(fd, "ev_user_stays", &bits[6], 4, 1, USER_EVENT_REG_PERSIST, NULL) != -EPERM)
			_exit(3);
		_exit(0);
	}
	ok(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status),
	   "without capabilities, events can be registered, but not to stay");
	if (WEXITSTATUS(status))
		note("step %d", WEXITSTATUS(status));
	ok(exists("ev_user"), "and have their directory");
	close(fd);
	ok(within_seconds(5, !exists("ev_user")), "until the end");
}

/* Writes one command to dynamic_events. Returns 0 or a negative errno. */
static int command(const char *text)
{
	return append(trace_file("dynamic_events"), text);
}

static void commands(void)
{
	int fd, index;

	ok(!command("u:ev_dyn u32 a;struct x b 20\n") && exists("ev_dyn"), "u: makes an event");
	ok(has(trace_file("dynamic_events"), "u:ev_dyn u32 a; struct x b 20\n"), "which is listed");
	ok(has(pathf("%s/user_events_status", tracing_dir()), "ev_dyn\n"), "here, too");
	ok(command("u:ev_dyn u32 b") == -EADDRINUSE, "not with other fields");
	ok(!command("u:ev_dyn u32 a; struct x b 20"), "but once more with the same");
	ok(command("u:ev_bad long a") == -EINVAL, "what is no event is refused");
	ours(command("u: ") == -EINVAL && command("u:a/b") == -EINVAL && command("u:enable") == -EINVAL &&
	     command("u:filter u32 a") == -EINVAL && command("u:ev_bad u32 a\tb") == -EINVAL &&
	     command("u:ev_bad u32 common_pid") == -EINVAL, "nor has a name");
	ok(!append(trace_file("events/user_events/enable"), "0") && !append(trace_file("events/user_events/filter"), "0"),
	   "the control files of the system are there");
	ok(command("-:ev_dyn") == -ENOENT && command("-:ev_dyn u32 a") == -ENOENT &&
	   command("-:kprobes/ev_dyn u32 a; struct x b 20") == -ENOENT, "its end takes its fields and system");
	fd = open_data();
	ok(!reg(fd, "ev_dyn u32 a; struct x b 20", &bits[6], &index), "a program has it");
	ok(command("-:ev_dyn u32 a; struct x b 20") == -EBUSY, "so it stays");
	ok(!unreg(fd, &bits[6], 0) && !close(fd), "until the program has done");
	ok(!within_seconds(0.3, !exists("ev_dyn")), "and longer");
	enable("ev_dyn", true);
	ok(command("-:ev_dyn u32 a; struct x b 20") == -EBUSY, "or somebody listens");
	enable("ev_dyn", false);
	ok(!command("-:user_events/ev_dyn u32 a; struct x b 20") && !exists("ev_dyn"), "then it goes");
	ok(command("-:ev_dyn u32 a; struct x b 20") == -ENOENT, "once");
	ok(!command("u:ev_dyn") && !command("!u:ev_dyn") && !exists("ev_dyn"), "! is another way");
	fd = open_data();
	ok(!command("u:ev_dyn") && !del(fd, "ev_dyn") && !exists("ev_dyn"), "the ioctl one more");
	ok(!reg(fd, "ev_auto u32 a", &bits[6], &index) &&
	   has(trace_file("dynamic_events"), "u:ev_auto u32 a\n"), "one of a program is listed as well");
	ok(!command("s:ev_synth u32 a") && !command("u:ev_dyn u8 c"), "among others");
	unreg(fd, &bits[6], 0);
	close(fd);
	within_seconds(5, !exists("ev_auto"));
	ok(!truncate_file(trace_file("dynamic_events")) && !exists("ev_dyn"), "which all go when it is emptied");
	ok(command("z:ev_dyn") == -EINVAL, "other commands are as they were");
}

int main(void)
{
	int fd = open_data();

	texts(fd);
	one_line(fd);
	no_string(fd);
	listeners(fd);
	sizes(fd);
	many_indices(fd);
	names(fd);
	close(fd);
	ok(within_seconds(5, strstr(slurp(pathf("%s/user_events_status", tracing_dir())), "\nActive: 0\n")),
	   "with the file go the events");
	if (kernel_has_own())
		same_names(open_data());
	else
		skip("one kind of user events", "two of one name");
	lives();
	first_writes();
	formats();
	deleted_formats();
	ok(within_seconds(5, strstr(slurp(pathf("%s/user_events_status", tracing_dir())), "\nActive: 0\n")),
	   "nothing is left");
	nobody();
	if (kernel_has_own())
		skip("the kernel has them", "commands of dynamic_events");
	else
		commands();
	finish();
}
