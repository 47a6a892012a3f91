// SPDX-License-Identifier: GPL-2.0
/*
 * nested: a load in functions with known names, for stacks of programs. Compiled without frame
 * pointers.
 *
 * usage: nested calls N | sleeps N MS | spins SECONDS
 *
 * Until a line comes on standard input, it calls getpgid() and sleeps, again and again, so that a
 * run finds its files. Then
 *
 * calls	calls getpgid() N times, from called_inner(), called_middle() and called_outer();
 * sleeps	sleeps N times for MS milliseconds, from slept_inner() and slept_outer(), and prints
 *		the time that this took, in ns;
 * spins	computes in spin_50(), spin_30() and spin_20(), called by spin_all(), each for about
 *		that part of the time, and prints for each its time on the processor in ns.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A function with a frame of its own, which a compiler neither inlines nor leaves by a jump. */
#define FUNCTION	static __attribute__((noinline, noclone))
#define KEEP()		__asm__ volatile("" ::: "memory")

static long long now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

FUNCTION void called_inner(void)
{
	getpgid(1);
	KEEP();
}

FUNCTION void called_middle(int n)
{
	for (int i = 0; i < n; i++)
		called_inner();
	KEEP();
}

FUNCTION void called_outer(int n)
{
	called_middle(n);
	KEEP();
}

FUNCTION void slept_inner(int n, long ms)
{
	for (int i = 0; i < n; i++)
		pause_ms(ms);
	KEEP();
}

FUNCTION void slept_outer(int n, long ms)
{
	slept_inner(n, ms);
	KEEP();
}

static volatile unsigned long sum;

/* Computes for so many ns of the processor's time, which is added to *spent. */
#define SPIN(name)								\
FUNCTION void name(long long ns, long long *spent)				\
{										\
	long long begin = now(CLOCK_THREAD_CPUTIME_ID), at;			\
										\
	do {									\
		for (unsigned long i = 0; i < 20000; i++)			\
			sum += i * i;						\
		at = now(CLOCK_THREAD_CPUTIME_ID);				\
	} while (at - begin < ns);						\
	*spent += at - begin;							\
	KEEP();									\
}

SPIN(spin_50)
SPIN(spin_30)
SPIN(spin_20)

FUNCTION void spin_all(int seconds)
{
	long long end = now(CLOCK_MONOTONIC) + seconds * 1000000000LL, spent[3] = {};

	/* Of random length, so that they are not in step with any timer. */
	while (now(CLOCK_MONOTONIC) < end) {
		long long part = random() % 4000000;

		spin_50(part * 5, &spent[0]);
		spin_30(part * 3, &spent[1]);
		spin_20(part * 2, &spent[2]);
	}
	printf("spin_50 %lld\nspin_30 %lld\nspin_20 %lld\n", spent[0], spent[1], spent[2]);
	KEEP();
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	const char *kind = argc > 2 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	while (!poll(&input, 1, 10)) {
		getpgid(1);
		pause_ms(1);
	}
	if (!strcmp(kind, "calls")) {
		called_outer(n);
	} else if (!strcmp(kind, "sleeps") && argc > 3) {
		long long begin = now(CLOCK_MONOTONIC);

		slept_outer(n, atol(argv[3]));
		printf("%lld\n", now(CLOCK_MONOTONIC) - begin);
	} else if (!strcmp(kind, "spins")) {
		spin_all(n);
	} else {
		fprintf(stderr, "usage: nested calls N | sleeps N MS | spins SECONDS\n");
		return 2;
	}
	return 0;
}
