// SPDX-License-Identifier: GPL-2.0
/*
 * kinds KIND [FILE…] [later]: sleeps in innermost(), in a stack of one of the kinds that programs
 * and the C library make. FILEs are libraries of library.c, or FIFOs. With "later", it waits for a
 * debugger first, which sets is_awake.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

/* A function with a frame of its own, which a compiler neither inlines nor leaves by a jump. */
#define KEPT __attribute__((noipa))

static volatile int sink;
volatile int is_awake;

KEPT static void innermost(void)
{
	pause();
	sink++;
}

/* A handler on the other stack that is interrupted by one on the same, and that by a third. */
KEPT static void on_last(int number)
{
	innermost();
	sink += number;
}

KEPT static void on_next(int number)
{
	raise(SIGALRM);
	sink += number;
}

KEPT static void on_first(int number)
{
	raise(SIGUSR2);
	sink += number;
}

static void handle(int number, void (*handler)(int), int flags)
{
	const struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	sigaction(number, &action, NULL);
}

static void set_other_stack(void)
{
	static char place[1 << 16];
	const stack_t stack = { .ss_sp = place, .ss_size = sizeof(place) };

	sigaltstack(&stack, NULL);
}

KEPT static void handlers(void)
{
	set_other_stack();
	handle(SIGUSR1, on_first, SA_ONSTACK);
	handle(SIGUSR2, on_next, SA_ONSTACK);
	handle(SIGALRM, on_last, 0);
	raise(SIGUSR1);
	sink++;
}

/* An instruction that faults, after some that did not. */
KEPT static void fault(void)
{
	set_other_stack();
	handle(SIGSEGV, on_last, SA_ONSTACK);
	sink += *(volatile int *)(uintptr_t)(sink + 8);
	sink++;
}

/* A call of an address without code. */
KEPT static void wrong_call(void)
{
	void (*volatile nowhere)(void) = NULL;

	handle(SIGSEGV, on_last, 0);
	nowhere();
	sink++;
}

static sigjmp_buf back;

KEPT static void on_jump(int number)
{
	siglongjmp(back, number);
}

KEPT static void jump_down(int depth)
{
	if (depth)
		jump_down(depth - 1);
	else if (sink < 5)
		longjmp(back, 1);
	else
		raise(SIGUSR1);
	sink++;
}

/* Jumps out of calls, and out of a handler on another stack. */
KEPT static void jumps(void)
{
	int by;

	set_other_stack();
	handle(SIGUSR1, on_jump, SA_ONSTACK);
	by = sigsetjmp(back, 1);
	if (by != SIGUSR1) {
		sink++;
		jump_down(7);
	}
	innermost();
	sink++;
}

static ucontext_t of_main, of_other, of_last;

KEPT static void in_last(int number)
{
	innermost();
	sink += number;
}

KEPT static void in_other(int number)
{
	swapcontext(&of_other, &of_last);
	sink += number;
}

static void make(ucontext_t *context, void (*function)(int), ucontext_t *next)
{
	getcontext(context);
	context->uc_stack.ss_size = 1 << 16;
	context->uc_stack.ss_sp = malloc(context->uc_stack.ss_size);
	context->uc_link = next;
	makecontext(context, (void (*)(void))function, 1, 1);
}

/* Stacks in the heap, of which each begins with a function of its own. */
KEPT static void contexts(void)
{
	make(&of_other, in_other, &of_main);
	make(&of_last, in_last, &of_other);
	swapcontext(&of_main, &of_other);
	sink++;
}

KEPT static void *in_thread(void *argument)
{
	innermost();
	sink++;
	return argument;
}

KEPT static void thread(void)
{
	pthread_t other;

	pthread_create(&other, NULL, in_thread, NULL);
	pthread_join(other, NULL);
	sink++;
}

/* A child that has the parent's memory and its stack, until it ends. */
KEPT static void by_vfork(void)
{
	if (!vfork()) {
		innermost();
		_exit(0);
	}
	sink++;
}

/* A child that has the parent's memory: it sleeps as it opens a FIFO. */
KEPT static void by_spawn(char *fifo)
{
	char *words[] = { "true", NULL };
	posix_spawn_file_actions_t actions;
	pid_t child;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, fifo, 0, 0);
	posix_spawn(&child, "/bin/true", &actions, NULL, words, NULL);
	sink++;
}

typedef void library_call(void (*function)(void));

static library_call *load(void **library, const char *file)
{
	*library = dlopen(file, RTLD_NOW);
	if (!*library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return (library_call *)dlsym(*library, "library_outer");
}

static void quickly(void)
{
	sink++;
}

/* Calls by the second library, which has the addresses that the first one had. */
KEPT static void by_libraries(char **files)
{
	void *library;
	library_call *first = load(&library, files[0]), *call = first;

	if (files[1]) {
		call(quickly);
		dlclose(library);
		call = load(&library, files[1]);
		if (call != first)
			exit(1);
	}
	call(innermost);
	sink++;
}

/* Code that the program makes: a function with a frame pointer, or one without. */
KEPT static void by_memory(int has_frame_pointer)
{
	/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
	static const uint8_t with[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
	/* push %rbx; xor %ebp, %ebp; call *%rdi; pop %rbx; ret */
	static const uint8_t without[] = { 0x53, 0x31, 0xed, 0xff, 0xd7, 0x5b, 0xc3 };
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code, has_frame_pointer ? with : without, has_frame_pointer ? sizeof(with) : sizeof(without));
	((library_call *)code)(innermost);
	sink++;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";

	while (!strcmp(argv[argc - 1], "later") && !is_awake)
		usleep(10000);
	if (!strcmp(kind, "plain"))
		innermost();
	else if (!strcmp(kind, "handlers"))
		handlers();
	else if (!strcmp(kind, "fault"))
		fault();
	else if (!strcmp(kind, "wrong call"))
		wrong_call();
	else if (!strcmp(kind, "jumps"))
		jumps();
	else if (!strcmp(kind, "contexts"))
		contexts();
	else if (!strcmp(kind, "thread"))
		thread();
	else if (!strcmp(kind, "vfork"))
		by_vfork();
	else if (!strcmp(kind, "spawn") && argc > 2)
		by_spawn(argv[2]);
	else if (!strcmp(kind, "libraries") && argc > 2)
		by_libraries(argv + 2);
	else if (!strcmp(kind, "memory with frame pointers"))
		by_memory(1);
	else if (!strcmp(kind, "memory without"))
		by_memory(0);
	else
		return 2;
	return sink == 0;
}
