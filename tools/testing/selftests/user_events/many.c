// SPDX-License-Identifier: GPL-2.0
// A program with very many bits is nothing that others notice: what they do takes no longer.
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

/* The time of the fastest round: others may be at work. */
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
	/* Processor time: not that of waiting for other processors. */
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
	unreg(data, &bit, 0);
	close(data);
	ok(within_seconds(60, !exists("mn_many") && !exists("mn_one")), "and all is gone");
	finish();
}
