// SPDX-License-Identifier: GPL-2.0
/*
 * shares: a load with known shares, for a profiler; and what perf_event_open() says of an event.
 *
 * usage: shares SECONDS NAME=PERCENT...
 *        shares --open ID
 *
 * The load is one task that calls itself by one name after the other, each for its share of the
 * time. The pieces are of random length, from 0 to 4 ms per 10 %, so that they are not in step with
 * any timer. At the end it prints a line for each name, with the time on the processor in ns.
 *
 * --open opens the tracepoint event of this number as an unprivileged user, to count its own hits,
 * and then as root, and prints both results.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAMES_MAX	8

static long long cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void try(unsigned long long id, uid_t uid)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .config = id };

	if (fork()) {
		wait(NULL);
		return;
	}
	if (uid && setuid(uid))
		exit(1);
	if (syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) >= 0)
		printf("opened\n");
	else
		printf("%s\n", strerrorname_np(errno));
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	char *names[NAMES_MAX];
	long long spent[NAMES_MAX] = {}, end;
	int percent[NAMES_MAX], n = argc - 2;

	if (argc == 3 && !strcmp(argv[1], "--open")) {
		try(strtoull(argv[2], NULL, 0), 65534);
		try(strtoull(argv[2], NULL, 0), 0);
		return 0;
	}
	if (n < 1 || n > NAMES_MAX)
		return 2;
	for (int i = 0; i < n; i++) {
		char *percents = strchr(argv[i + 2], '=');

		if (!percents)
			return 2;
		*percents = 0;
		names[i] = argv[i + 2];
		percent[i] = atoi(percents + 1);
	}
	srandom(getpid());
	end = cpu_time() + atoll(argv[1]) * 1000000000LL;
	for (int i = 0; cpu_time() < end; i = (i + 1) % n) {
		long long begin, until;

		prctl(PR_SET_NAME, names[i]);
		begin = cpu_time();
		until = begin + percent[i] * (random() % 400000LL);
		while (cpu_time() < until)
			;
		spent[i] += cpu_time() - begin;
	}
	for (int i = 0; i < n; i++)
		printf("%s %lld\n", names[i], spent[i]);
	return 0;
}
