// SPDX-License-Identifier: GPL-2.0
/*
 * Records of a removed event are never shown as another event's, and its user is charged as long as
 * they exist.
 */
#define _GNU_SOURCE
#include "client.h"

#define MAX_USER_KB "/proc/sys/kernel/user_events_max_user_kb"

enum { USER = 1001 };

static volatile unsigned int bits[2];
static const char *instance;

struct record {
	unsigned long long number;
	unsigned int text;
	char bytes[4];
};

/*
 * Registers an event as a user, records it in a directory, and gives it up. Its records contain the
 * number.
 */
static void record(const char *dir, const char *event, unsigned long long number)
{
	struct record r = { number, DYN_LOC(0, 4), "abc" };
	const char *enable = strdup(pathf("%s/events/user_events/%s/enable", dir, event));
	int go[2], status;
	char byte;
	pid_t pid;

	if (pipe(go))
		die("pipe");
	pid = fork();
	if (!pid) {
		int fd, index = -1;

		become_user(USER);
		fd = open_data();
		if (reg(fd, pathf("%s u64 number;__rel_loc char[] text", event), &bits[0], &index) ||
		    write(go[1], "r", 1) != 1 || !within_seconds(60, bits[0]) || emit(fd, index, &r, 16) != 20)
			_exit(1);
		_exit(0);
	}
	close(go[1]);
	if (read(go[0], &byte, 1) != 1 || append(enable, "1"))
		die("%s is recorded", event);
	if (waitpid(pid, &status, 0) != pid || status || append(enable, "0"))
		die("%s is written", event);
	if (!within_seconds(60, !exists(event)))
		die("%s is removed", event);
	close(go[0]);
	free((char *)enable);
}

/* How often a file has a text. */
static int shown(const char *file, const char *text)
{
	char *all = slurp(file), *at = all;
	int count = 0;

	while (at && (at = strstr(at, text))) {
		count++;
		at++;
	}
	free(all);
	return count;
}

/* Registers 16 events, so that one gets the number of a removed event. Returns their file. */
static int others(void)
{
	int fd = open_data();

	for (int i = 0; i < 16; i++)
		if (reg_flags(fd, pathf("re_other%d u32 a;u32 b;u32 c;u32 d", i), &bits[1], 4, i, 0, NULL))
			die("other events");
	return fd;
}

static void give_up(int fd)
{
	for (int i = 0; i < 16; i++)
		unreg(fd, &bits[1], i);
	close(fd);
	within_seconds(60, !exists("re_other15"));
}

/*
 * Returns 0 if a user can register one more event, or a positive errno. Each event is charged 4 kB.
 */
static int may_register(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		become_user(USER);
		_exit(-reg(open_data(), "re_more", &bits[0], NULL));
	}
	waitpid(pid, &status, 0);
	within_seconds(60, !exists("re_more"));
	return WEXITSTATUS(status);
}

static void shown_as_it_was(void)
{
	const char *trace = strdup(pathf("%s/trace", kernel_dir()));
	int fd;

	record(kernel_dir(), "re_old", 0x1234);
	fd = others();
	ok(shown(trace, ": re_old: number=0x1234 (4660) text=abc\n") == 1 && !shown(trace, "re_other"),
	   "a record of an event that was removed is shown as it was, whatever events come");
	append(pathf("%s/options/fields", kernel_dir()), "1");
	ok(shown(trace, ": re_old: ") == 1 && !shown(trace, "re_other"), "also field by field");
	append(pathf("%s/options/fields", kernel_dir()), "0");
	give_up(fd);

	record(kernel_dir(), "re_old", 0x4321);
	fd = others();
	ok(shown(trace, ": re_old: ") == 2, "and of the next one with its name");
	give_up(fd);
	truncate_file(trace);
}

static void stays_for(const char *what, const char *file)
{
	int fd = others();

	if (!ok(shown(file, ": re_held: number=0x77 (119) text=abc\n") == 1 && !shown(file, "re_other") &&
		may_register() == EDQUOT, "%s: it is shown as it was, and its user charged", what))
		note("%s", slurp(file));
	give_up(fd);
}

/* Records were searched just before, so wait for another search. */
static void goes(const char *what)
{
	int refused = may_register();

	if (!ok(!refused, "%s: then it is not charged any more", what))
		note("%s", errno_name(-refused));
}

/*
 * The user's limit allows the event, which takes 4 kB and 192 bytes for each field, its bit and its
 * file.
 */
static void charged(void)
{
	const char *trace = strdup(pathf("%s/trace", kernel_dir()));
	const char *snapshot = strdup(pathf("%s/snapshot", kernel_dir()));
	const char *traced = strdup(pathf("%s/trace", instance));
	char *limit = slurp(MAX_USER_KB);
	cpu_set_t all;

	ok(!append(MAX_USER_KB, "7") && within_seconds(20, !may_register()), "a user may have one event");

	record(kernel_dir(), "re_held", 0x77);
	stays_for("in a buffer", trace);
	truncate_file(trace);
	goes("emptied");

	record(kernel_dir(), "re_held", 0x77);
	append(snapshot, "1");
	stays_for("in a snapshot", snapshot);
	append(snapshot, "1");
	stays_for("swapped back", trace);
	append(snapshot, "0");
	truncate_file(trace);
	goes("both emptied");

	/* Each processor has its own buffer: overwrite the one with the record. */
	sched_getaffinity(0, sizeof(all), &all);
	pin(0);
	record(kernel_dir(), "re_held", 0x77);
	ok(may_register() == EDQUOT, "in a buffer that is overwritten");
	/*
	 * Only a record that is newer by more than processors' clocks may differ proves that the
	 * old one was overwritten.
	 */
	sleep_ms(1200);
	for (int i = 0; i < 200000 && shown(trace, "re_held"); i++) {
		char mark[1000];

		memset(mark, 'm', sizeof(mark) - 1);
		mark[sizeof(mark) - 1] = 0;
		for (int j = 0; j < 100; j++)
			append(pathf("%s/trace_marker", kernel_dir()), mark);
	}
	sched_setaffinity(0, sizeof(all), &all);
	goes("overwritten");
	truncate_file(trace);

	if (mkdir(instance, 0700))
		die("%s", instance);
	record(instance, "re_held", 0x77);
	stays_for("in an instance", traced);
	rmdir(instance);
	goes("that is removed");

	append(MAX_USER_KB, limit);
	free(limit);
}

/* --- very many removed events */

enum { MANY = 300, MANY_INSTANCES = 5 };

static const char *many_instance(int i)
{
	return i ? pathf("%s/instances/re_%d", kernel_dir(), i) : kernel_dir();
}

static void enable_many(bool on)
{
	for (int i = 0; i < MANY_INSTANCES; i++)
		append(pathf("%s/events/user_events/enable", many_instance(i)), on ? "1" : "0");
}

/* Like record(), for many events in several instances. */
static void record_many(int count)
{
	static volatile unsigned int enabled[MANY];
	static int index[MANY];
	int go[2], enabled_all[2], status;
	char byte;
	pid_t pid;

	if (pipe(go) || pipe(enabled_all))
		die("pipe");
	pid = fork();
	if (!pid) {
		unsigned int number = 1;
		int fd, wrong = 0;

		become_user(USER);
		fd = open_data();
		for (int i = 0; i < count; i++)
			wrong |= reg(fd, pathf("re_many%d u32 number", i), &enabled[i], &index[i]);
		if (write(go[1], "r", 1) != 1 || read(enabled_all[0], &byte, 1) != 1)
			_exit(1);
		for (int i = 0; i < count; i++)
			wrong |= !within_seconds(60, enabled[i]) || emit(fd, index[i], &number, 4) != 8;
		_exit(!!wrong);
	}
	if (read(go[0], &byte, 1) != 1)
		die("many events");
	enable_many(true);
	if (write(enabled_all[1], "e", 1) != 1)
		die("many events are enabled");
	if (waitpid(pid, &status, 0) != pid || status)
		die("many events are recorded");
	enable_many(false);
	if (!within_seconds(300, !exists(pathf("re_many%d", count - 1))))
		die("many events are removed");
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(enabled_all[i]);
	}
}

/*
 * Resizes buffers while a user's requests make the module search them all the time. Returns the
 * number of failures.
 */
static int resized(void)
{
	int failed = 0;
	pid_t pid = fork();

	if (!pid) {
		int fd;

		become_user(USER);
		fd = open_data();
		for (;;)
			reg(fd, "re_more", &bits[0], NULL);
	}
	for (double end = now() + 4; now() < end;) {
		failed += !!append(pathf("%s/buffer_size_kb", many_instance(1)), "68");
		failed += !!append(pathf("%s/buffer_size_kb", many_instance(1)), "64");
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return failed;
}

/* Buffers can be resized, with any number of removed events and searches. */
static void many(void)
{
	char *limit = slurp(MAX_USER_KB);
	int failed;

	for (int i = 1; i < MANY_INSTANCES; i++)
		if (mkdir(many_instance(i), 0700) || append(pathf("%s/buffer_size_kb", many_instance(i)), "64"))
			die("%s", many_instance(i));
	record_many(slow_kernel() ? 60 : MANY);
	append(MAX_USER_KB, "1");
	failed = resized();
	ok(!failed, "a buffer with records of many events that were removed can be resized: %d times it could not", failed);
	append(MAX_USER_KB, limit);
	free(limit);
}

static void without_many(void)
{
	for (int i = 1; i < MANY_INSTANCES; i++)
		rmdir(many_instance(i));
}

/* Older records survive when an event is removed and another one deleted. */
static void buffers_stay(void)
{
	const char *trace = strdup(pathf("%s/trace", kernel_dir()));
	const char *synthetic = strdup(pathf("%s/synthetic_events", kernel_dir()));
	int fd;

	append(pathf("%s/trace_marker", kernel_dir()), "re_mark");
	record(kernel_dir(), "re_gone", 1);
	ok(!append(synthetic, "re_synth u32 a") && !append(synthetic, "!re_synth u32 a") && shown(trace, "re_mark") == 1,
	   "no program has the buffers emptied, by an event that it removes");
	fd = open_data();
	if (reg(fd, "re_idle u32 a", &bits[0], NULL) || enable("re_idle", true) || enable("re_idle", false) ||
	    unreg(fd, &bits[0], 0) || close(fd) || !within_seconds(60, !exists("re_idle")))
		die("re_idle");
	ok(!append(synthetic, "re_synth u32 a") && !append(synthetic, "!re_synth u32 a") && shown(trace, "re_mark") == 1,
	   "nor by one that was enabled, but not written");
	truncate_file(trace);
}

/* The records cannot be printed after the module is gone. */
static void unloaded(void)
{
	const char *trace = strdup(pathf("%s/trace", kernel_dir()));
	const char *emptied = strdup(pathf("%s/trace", instance));
	double began;
	char *log;
	int fd;

	if (mkdir(instance, 0700))
		die("%s", instance);
	record(instance, "re_other", 1);
	truncate_file(emptied);
	/* Newer by more than the difference of the processors' clocks. */
	usleep(1500000);
	append(pathf("%s/trace_marker", instance), "re_mark");
	record(kernel_dir(), "re_last", 1);
	log = slurp(trace);
	if (!ok(log && strstr(log, "re_last"), "a record is there"))
		return;
	began = now();
	if (!ok(within_seconds(60, !syscall(SYS_delete_module, "rhist", O_NONBLOCK) || errno == ENOENT),
		"the module is unloaded"))
		return;
	/* It waits for writers once for each buffer, not for each event. */
	if (!ok(now() - began < 10, "soon"))
		note("after %.1f s", now() - began);
	ok(!shown(trace, "re_last") && !shown(trace, "Unknown"), "and with it the records");
	ok(shown(emptied, "re_mark"), "but none of a buffer that was emptied before");
	rmdir(instance);
	fd = open(getenv("RHIST_KO"), O_RDONLY | O_CLOEXEC);
	ok(!syscall(SYS_finit_module, fd, "", 0), "the module anew");
}

int main(void)
{
	instance = strdup(pathf("%s/instances/re", kernel_dir()));
	open_to_group(true);
	append(pathf("%s/buffer_size_kb", kernel_dir()), "64");
	truncate_file(pathf("%s/trace", kernel_dir()));
	shown_as_it_was();
	charged();
	buffers_stay();
	many();
	unloaded();
	without_many();
	open_to_group(false);
	finish();
}
