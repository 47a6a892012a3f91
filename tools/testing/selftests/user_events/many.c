// SPDX-License-Identifier: GPL-2.0
// A program with very many bits, or formats of an event, does not slow down others.
#define _GNU_SOURCE
#include "client.h"

enum { ROUNDS = 3, TIMES = 20, WORDS = 1024 };

static volatile unsigned int bit;
static volatile unsigned long long words[WORDS];
static int data;

static double read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void enable_and_disable(void)
{
	enable("mn_one", true);
	enable("mn_one", false);
}

static void fork_and_exit(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

/* Returns the time of the fastest round, to ignore other load. */
static double seconds(void (*what)(void), clockid_t clock)
{
	double least = 1e9;

	for (int round = 0; round < ROUNDS; round++) {
		double begin = read_clock(clock), took;

		for (int i = 0; i < TIMES; i++)
			what();
		took = read_clock(clock) - begin;
		least = took < least ? took : least;
	}
	return least;
}

static void registers(int ready, int end, unsigned int count)
{
	int fd = open_data(), wrong = 0;
	char byte;

	for (unsigned int i = 0; i < count; i++)
		wrong |= reg_flags(fd, "mn_many", &words[i / 64], 8, i % 64, 0, NULL);
	byte = wrong ? 'n' : 'y';
	if (write(ready, &byte, 1) != 1)
		_exit(1);
	/* Until the other end is closed. */
	_exit(read(end, &byte, 1) != 0);
}

static const char *format_of(unsigned int number)
{
	return pathf("mn_formats u32 a%u", number);
}

/* The last registered one, which is compared last if all are. */
static unsigned int formats;

static void register_a_format(void)
{
	for (int i = 0; i < TIMES; i++) {
		reg_flags(data, format_of(formats - 1), &words[0], 8, 0, USER_EVENT_REG_MULTI_FORMAT, NULL);
		unreg(data, &words[0], 0);
	}
}

/* A request for a name with many formats takes no longer, as others wait for it. */
static void many_formats(unsigned int count)
{
	double alone, then;
	int other;

	formats = 1;
	alone = seconds(register_a_format, CLOCK_PROCESS_CPUTIME_ID);
	other = open_data();
	for (; formats < count; formats++) {
		if (reg_flags(other, format_of(formats), &words[1], 8, 0, USER_EVENT_REG_MULTI_FORMAT, NULL))
			break;
		unreg(other, &words[1], 0);
	}
	ok(formats == count, "an event with %u formats", formats);
	then = seconds(register_a_format, CLOCK_PROCESS_CPUTIME_ID);
	note("%u times register and unregister: %.0f ms, then %.0f ms", TIMES * TIMES, 1000 * alone, 1000 * then);
	ok(then < 3 * alone + 0.02, "one of them is registered as fast as the only one");
	close(other);
}

/* Counts the formats that are kept. */
static int kept(void)
{
	char *text = slurp(pathf("%s/user_events_status", tracing_dir())), *at = text;
	int count = 0;

	while (at && (at = strstr(at, "mn_kept"))) {
		count++;
		at++;
	}
	free(text);
	return count;
}

enum { INSTANCES = 16 };

/* Registers `count` persistent formats of an event. */
static void keep(int count)
{
	int fd = open_data(), wrong = 0;

	for (int i = 0; i < count; i++) {
		wrong |= reg_flags(fd, pathf("mn_kept u32 a%d", i), &words[1], 8, 0,
				   USER_EVENT_REG_MULTI_FORMAT | USER_EVENT_REG_PERSIST, NULL);
		unreg(fd, &words[1], 0);
	}
	close(fd);
	if (wrong || kept() != count)
		die("formats that are kept");
}

/* A program that deletes very many formats, each from many instances, can be killed. */
static void killed_while_deleting(int count)
{
	double began, whole, took = 0;
	int begin[2], left = 0;
	pid_t pid;
	char byte;

	for (int i = 0; i < INSTANCES; i++)
		if (mkdir(pathf("%s/instances/mn_%d", kernel_dir(), i), 0700))
			die("an instance");
	keep(count);
	began = now();
	if (del(data, "mn_kept"))
		die("they are deleted");
	whole = now() - began;
	keep(count);
	if (pipe(begin))
		die("pipe");
	/* Sooner, if all were deleted before: the first time may have been long by accident. */
	for (int part = 4; part <= 256; part *= 4) {
		pid = fork();
		if (!pid)
			_exit(write(begin[1], "b", 1) != 1 || del(data, "mn_kept"));
		if (read(begin[0], &byte, 1) != 1)
			die("a process");
		usleep(whole * 1e6 / part);
		began = now();
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		took = now() - began;
		left = kept();
		if (left)
			break;
		keep(count);
	}
	ok(left > 0, "who deletes %d formats in %.0f ms is killed, in %.0f ms: %d are left", count, 1000 * whole, 1000 * took, left);
	ok(!del(data, "mn_kept") && !kept(), "the rest can be deleted");
	for (int i = 0; i < INSTANCES; i++)
		rmdir(pathf("%s/instances/mn_%d", kernel_dir(), i));
}

int main(void)
{
	unsigned int count = slow_kernel() ? 2000 : 64 * WORDS;
	double enabled, forked, enabled_then, forked_then;
	int ready[2], end[2];
	char byte = 'n';
	pid_t pid;

	data = open_data();
	if (pipe(ready) || pipe(end) || reg(data, "mn_one", &bit, NULL))
		die("an event");
	/* CPU time, to leave out waiting for other processors. */
	enabled = seconds(enable_and_disable, CLOCK_PROCESS_CPUTIME_ID);
	forked = seconds(fork_and_exit, CLOCK_MONOTONIC);
	pid = fork();
	if (!pid) {
		close(end[1]);
		registers(ready[1], end[0], count);
	}
	ok(read(ready[0], &byte, 1) == 1 && byte == 'y', "a program registers %u bits", count);
	enabled_then = seconds(enable_and_disable, CLOCK_PROCESS_CPUTIME_ID);
	forked_then = seconds(fork_and_exit, CLOCK_MONOTONIC);
	note("%u times enable and disable: %.0f ms, then %.0f ms", TIMES, 1000 * enabled, 1000 * enabled_then);
	note("%u times fork and exit: %.0f ms, then %.0f ms", TIMES, 1000 * forked, 1000 * forked_then);
	/* User-mode Linux measures in hundredths of a second. */
	ok(enabled_then < 3 * enabled + 0.02, "another event is enabled as fast");
	ok(forked_then < 2 * forked + 0.02, "another program forks as fast");
	close(end[1]);
	ok(waitpid(pid, NULL, 0) == pid, "it exits");
	many_formats(slow_kernel() ? 300 : 3000);
	killed_while_deleting(slow_kernel() ? 500 : 4000);
	unreg(data, &bit, 0);
	close(data);
	ok(within_seconds(slow_kernel() ? 300 : 60, !exists("mn_many") && !exists("mn_one") &&
			      strstr(slurp(pathf("%s/user_events_status", tracing_dir())), "\nActive: 0\n")),
	   "and all is gone");
	finish();
}
