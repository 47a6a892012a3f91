// SPDX-License-Identifier: GPL-2.0
/*
 * kinds KIND [LIBRARY OTHER]: calls getpgid() again and again, in functions with known names, by a
 * stack of one of these kinds:
 *
 * plain	of functions;
 * signal	of a handler on another stack;
 * memory	of code that was made at run time. With a word more, it writes the name of that to
 *		its perf map;
 * library	of a function of LIBRARY, which calls back; from the first line on, of OTHER, which
 *		has the addresses of LIBRARY then: it says so, "same" or "moved".
 *
 * "vfork" calls vfork() instead, for a child that ends at once.
 *
 * It begins with functions named waiting(). After a line on standard input, it calls by counted()
 * COUNT times, and ends. A kind "library" needs one line more. "numbers" prints the numbers of the
 * two system calls.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_vfork
#define SYS_vfork -1
#endif

#define COUNT 57

/* A function with a frame of its own, which a compiler neither inlines nor leaves by a jump. */
#define FUNCTION	static __attribute__((noinline, noclone))
#define KEEP()		__asm__ volatile("" ::: "memory")

typedef void call(void (*function)(void));

static void (*in_handler)(void);
static call *library_call, *code;

FUNCTION void innermost(void)
{
	getpgid(1);
	KEEP();
}

FUNCTION void on_signal(int number)
{
	(void)number;
	in_handler();
	KEEP();
}

FUNCTION void by_signal(void)
{
	in_handler = innermost;
	raise(SIGUSR1);
	KEEP();
}

FUNCTION void by_library(void)
{
	library_call(innermost);
	KEEP();
}

FUNCTION void by_memory(void)
{
	code(innermost);
	KEEP();
}

FUNCTION void by_vfork(void)
{
	if (!vfork())
		_exit(0);
	KEEP();
}

FUNCTION void waiting(void (*kind)(void))
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	char line;

	while (!poll(&input, 1, 20))
		kind();
	/* Not by stdio, which would read all lines. */
	while (read(0, &line, 1) == 1 && line != '\n')
		;
	KEEP();
}

FUNCTION void counted(void (*kind)(void))
{
	for (int i = 0; i < COUNT; i++)
		kind();
	KEEP();
}

static void set_handler(void)
{
	static char place[1 << 16];
	const stack_t stack = { .ss_sp = place, .ss_size = sizeof(place) };
	const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
}

static void fail(const char *why)
{
	fprintf(stderr, "kinds: %s\n", why);
	exit(2);
}

static void *load(const char *file)
{
	void *library = dlopen(file, RTLD_NOW);

	library_call = library ? (call *)dlsym(library, "library_call") : NULL;
	if (!library_call)
		fail(dlerror());
	return library;
}

/* A function with a frame pointer, which calls its argument. */
static void make_code(int has_name)
{
#ifdef __x86_64__
	/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
	static const uint8_t bytes[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
#else
	/* stp x29, x30, [sp, -16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], 16; ret */
	static const uint32_t bytes[] = { 0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0 };
#endif
	uint8_t *begin = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char name[64];
	FILE *map;

	if (begin == MAP_FAILED)
		fail("no memory for code");
	memcpy(begin + 64, bytes, sizeof(bytes));
	__builtin___clear_cache((char *)begin, (char *)begin + 4096);
	code = (call *)(begin + 64);
	if (!has_name)
		return;
	snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
	map = fopen(name, "w");
	if (!map)
		fail("no perf map");
	fprintf(map, "%lx %lx made_at_run_time\n", (unsigned long)(begin + 64), (unsigned long)sizeof(bytes));
	fclose(map);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	void (*kind)(void) = NULL;

	if (!strcmp(name, "numbers")) {
		printf("%d %d\n", SYS_getpgid, SYS_vfork);
		return 0;
	}
	if (!strcmp(name, "plain")) {
		kind = innermost;
	} else if (!strcmp(name, "signal")) {
		set_handler();
		kind = by_signal;
	} else if (!strcmp(name, "vfork")) {
		kind = by_vfork;
	} else if (!strcmp(name, "memory")) {
		make_code(argc > 2);
		kind = by_memory;
	} else if (!strcmp(name, "library") && argc > 3) {
		void *library = load(argv[2]);
		call *before = library_call;

		kind = by_library;
		waiting(kind);
		dlclose(library);
		load(argv[3]);
		puts(library_call == before ? "same" : "moved");
		fflush(stdout);
	} else {
		fail("which kind?");
	}
	waiting(kind);
	counted(kind);
	return 0;
}
