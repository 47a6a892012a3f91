// SPDX-License-Identifier: GPL-2.0
/*
 * Frames of each form that compilers and the kernel make, one inside another: a callback of a
 * library, a stack that grows by a variable number of bytes, one that is aligned, and a signal
 * handler with a stack of its own. It sleeps in the innermost; or, with an argument, it waits
 * first, starts another program, and then returns from all of them to main(), and stays there.
 */
#include <alloca.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif

static volatile int sink;
static int is_to_return;
/* Set by a debugger. */
volatile int is_awake;

KEPT static void asleep(void)
{
	if (!is_to_return)
		pause();
	sink++;
}

KEPT static void on_signal(int number)
{
	asleep();
	sink += number;
}

KEPT static void with_signal(void)
{
	raise(SIGUSR1);
	sink++;
}

/* Vectors of 64 bytes, which have to be aligned more than the stack is. */
KEPT static void aligned(int number)
{
	struct { char bytes[64]; } vector __attribute__((aligned(64)));

	memset(&vector, number, sizeof(vector));
	__asm__ volatile("" : : "r" (&vector) : "memory");
	with_signal();
	sink += vector.bytes[number];
}

KEPT static void of_variable_size(int number)
{
	char *bytes = alloca(100 * number);

	memset(bytes, number, 100 * number);
	__asm__ volatile("" : : "r" (bytes) : "memory");
	aligned(number);
	sink += bytes[number];
}

KEPT static int compare(const void *one, const void *other)
{
	of_variable_size(*(const int *)one + 3);
	return *(const int *)one - *(const int *)other;
}

KEPT static void recursive(int depth)
{
	int numbers[] = { 2, 1 };

	if (depth)
		recursive(depth - 1);
	else
		qsort(numbers, 2, sizeof(*numbers), compare);
	sink += numbers[0];
}

int main(int argc, char **argv)
{
	static char place[1 << 16];
	const stack_t stack = { .ss_sp = place, .ss_size = sizeof(place) };
	const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	if (argc > 1) {
		is_to_return = 1;
		while (!is_awake)
			usleep(10000);
		sink += system(":");
	}
	recursive(5);
	while (is_to_return)
		sink++;
	return sink + (argv[0] == NULL);
}
