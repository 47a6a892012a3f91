// SPDX-License-Identifier: GPL-2.0
/*
 * Stacks of programs: this program calls the kernel from functions with frame pointers, which need
 * no rules, and from code that leads nowhere. It knows where its functions return to, and compares
 * that with keys, variables and saved fields.
 */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>

#include "tracing.h"

#define EVENT "syscalls/sys_enter_getpgid"

/* A function with a frame pointer, also where its callers have none. */
#define FRAMED __attribute__((noinline, noclone, optimize("no-omit-frame-pointer")))

/* The addresses of the chain: of the instruction behind the system call, then return addresses. */
static uintptr_t chain[4];

/* Calls getpgid() by an instruction of its own. Stores the address behind that. */
FRAMED static long call_kernel(void)
{
	uintptr_t behind;
	long result;

#ifdef __aarch64__
	register long number __asm__("x8") = SYS_getpgid, argument __asm__("x0") = 0;

	__asm__ volatile("adr %1, 1f\n\tsvc #0\n1:" : "+r"(argument), "=&r"(behind) : "r"(number) : "memory");
	result = argument;
#else
	__asm__ volatile("lea 1f(%%rip), %1\n\tsyscall\n1:"
			 : "=a"(result), "=&r"(behind) : "0"(SYS_getpgid), "D"(0) : "rcx", "r11", "memory");
#endif
	chain[0] = behind;
	chain[1] = (uintptr_t)__builtin_return_address(0);
	return result;
}

FRAMED static long inner(void)
{
	long result = call_kernel();

	chain[2] = (uintptr_t)__builtin_return_address(0);
	return result;
}

FRAMED static long outer(void)
{
	long result = inner();

	chain[3] = (uintptr_t)__builtin_return_address(0);
	return result;
}

/* Calls the chain, which is the same for all its callers. */
FRAMED static long call_chain(void)
{
	long result = outer();

	__asm__ volatile("" : "+r"(result));
	return result;
}

/* The return addresses of functions that call each other, more than a stack has words. */
#define LEVELS 130
static uintptr_t above[LEVELS];

#define LEVEL(n, callee) \
	FRAMED static long level_##n(void) \
	{ \
		long result = callee(); \
\
		above[n] = (uintptr_t)__builtin_return_address(0); \
		return result; \
	}
#define TEN(tens, callee) \
	LEVEL(tens##0, callee) LEVEL(tens##1, level_##tens##0) LEVEL(tens##2, level_##tens##1) \
	LEVEL(tens##3, level_##tens##2) LEVEL(tens##4, level_##tens##3) LEVEL(tens##5, level_##tens##4) \
	LEVEL(tens##6, level_##tens##5) LEVEL(tens##7, level_##tens##6) LEVEL(tens##8, level_##tens##7) \
	LEVEL(tens##9, level_##tens##8)

TEN(, call_kernel)
TEN(1, level_9)
TEN(2, level_19)
TEN(3, level_29)
TEN(4, level_39)
TEN(5, level_49)
TEN(6, level_59)
TEN(7, level_69)
TEN(8, level_79)
TEN(9, level_89)
TEN(10, level_99)
TEN(11, level_109)
TEN(12, level_119)

/* A mapping of this process. */
struct mapping {
	uintptr_t begin, end;
	unsigned long offset, inode;
	unsigned int major, minor;
	char path[PATH_MAX];
};

/* Finds the mapping of an address. */
static struct mapping mapping_of(uintptr_t address)
{
	struct mapping found = { 0 };
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[PATH_MAX + 128];

	while (maps && fgets(line, sizeof(line), maps)) {
		struct mapping one = { 0 };

		if (sscanf(line, "%lx-%lx %*s %lx %x:%x %lu %4095[^\n]", &one.begin, &one.end, &one.offset,
			   &one.major, &one.minor, &one.inode, one.path) >= 6 &&
		    address >= one.begin && address < one.end)
			found = one;
	}
	if (maps)
		fclose(maps);
	return found;
}

/*
 * Returns the line of user_objects/list for the file of a mapping, from its number on; NULL if it
 * has none. An inode may have been used before: the last line counts. The caller frees it.
 */
static char *listed(const struct mapping *mapping)
{
	char *list = slurp(pathf("%s/user_objects/list", tracing_dir())), *found = NULL;
	char wanted[128];

	snprintf(wanted, sizeof(wanted), " file %u:%u %lu ", mapping->major, mapping->minor, mapping->inode);
	for (char *line = list; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = strcspn(line, "\n");
		char *at = memmem(line, len, wanted, strlen(wanted));

		if (at) {
			free(found);
			found = strndup(line, len);
		}
	}
	free(list);
	return found;
}

/* Returns the number of the object of a mapping, or -1. */
static long object_of(const struct mapping *mapping)
{
	char *line = listed(mapping);
	long number = line ? strtol(line, NULL, 10) : -1;

	free(line);
	return number;
}

/* Writes the words of the chain, separated by `gap`. The caller frees it. */
static char *expected(const char *gap)
{
	struct mapping mapping = mapping_of(chain[0]);
	long object = object_of(&mapping);
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	for (unsigned int i = 0; i < sizeof(chain) / sizeof(*chain); i++)
		fprintf(to, "%s%ld+%#lx", i ? gap : "", object,
			(unsigned long)(chain[i] - mapping.begin + mapping.offset));
	fclose(to);
	return text;
}

/* Writes the first `words` words of a call of a level, separated by `gap`. The caller frees it. */
static char *expected_levels(int words, const char *gap)
{
	struct mapping mapping = mapping_of(chain[0]);
	long object = object_of(&mapping);
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	for (int i = 0; i < words; i++)
		fprintf(to, "%s%ld+%#lx", i ? gap : "", object,
			(unsigned long)((i < 2 ? chain[i] : above[i - 2]) - mapping.begin + mapping.offset));
	fclose(to);
	return text;
}

/* Adds a trigger for this process. */
static void add(const char *text)
{
	add_trigger(EVENT, pathf("%s if common_pid == %d", text, getpid()));
}

/* Prints the expected text, and the text that was found. */
static void differ(const char *expected, const char *got)
{
	note("expected:\n%s\ngot:\n%s", expected, got ? got : "nothing");
}

static char *read_hist(void)
{
	return slurp(in_event(EVENT, "hist"));
}

static void remove_all(void)
{
	truncate_file(in_event(EVENT, "trigger"));
}

/* Counts a text in another one. */
static int times(const char *text, const char *wanted)
{
	int n = 0;

	for (const char *at = text; at && (at = strstr(at, wanted)); at++)
		n++;
	return n;
}

static void with_frame_pointers(void)
{
	char *text, *words, *row;

	add("hist:keys=common_ustack");
	/* From one place. */
	for (volatile int i = 0; i < 3; i++)
		call_chain();
	text = read_hist();
	words = expected("\n         ");
	ok(asprintf(&row, "{ common_ustack:\n         %s\n", words) > 0 && text && times(text, row) == 1 &&
	   strstr(text, "hitcount:          3"), "a stack by frame pointers is a key");
	if (!text || !strstr(text, row))
		differ(row, text);
	ok(text && times(text, "\n         (") == 1, "and says how it ended");
	free(text);
	free(row);
	remove_all();

	add("hist:keys=common_ustack,common_pid");
	call_chain();
	text = read_hist();
	ok(text && times(text, words) == 1, "beside another key");
	free(text);
	remove_all();

	add("hist:keys=common_ustack:ustack(2)");
	call_chain();
	text = read_hist();
	*strchr(strchr(words, '\n') + 1, '\n') = 0;
	ok(asprintf(&row, "{ common_ustack:\n         %s\n}", words) > 0 && text && strstr(text, row),
	   "ustack(2) has two words, and no end");
	if (!text || !strstr(text, row))
		differ(row, text);
	free(text);
	free(row);
	free(words);
	remove_all();

	words = expected(";");
	add("hist:keys=common_pid:n=common_timestamp:s=common_ustack:onmax($n).save(common_ustack)");
	call_chain();
	text = read_hist();
	ok(text && strstr(text, words), "saved");
	if (!text || !strstr(text, words))
		differ(words, text);
	free(text);
	text = slurp(in_event(EVENT, "hist_jsonl"));
	ok(text && times(text, "{\"ustack\":[{\"object\":") == 2, "in a variable");
	free(text);
	free(words);
	remove_all();
}

/* Returns true if `wanted` entries have a stack of so many levels, with `behind` at its end. */
static bool has_levels(const char *text, int words, const char *gap, const char *behind, int wanted)
{
	char *levels = expected_levels(words, gap), *stack;
	bool has = asprintf(&stack, "%s%s", levels, behind) > 0 && text && times(text, stack) == wanted;

	if (!has)
		differ(stack, text);
	free(stack);
	free(levels);
	return has;
}

/* Stacks of many functions: all of them, in their order, up to 127. */
static void of_many_functions(void)
{
	static const char *const keys[] = {
		"common_ustack", "common_comm,common_ustack", "common_ustack,common_stacktrace,common_pid",
	};
	static const char gap[] = "\n         ";
	char *text, *clause;
	int accepted = 0, fd;
	size_t len = 0;
	ssize_t n;

	for (int words = 1; words <= 127; words++) {
		bool shown;

		add(pathf("hist:keys=common_ustack:ustack(%d)", words));
		clause = strdup(pathf(":sort=hitcount:ustack(%d):size=", words));
		text = slurp(in_event(EVENT, "trigger"));
		shown = text && strstr(text, words == 31 ? ":sort=hitcount:size=" : clause);
		if (!shown)
			differ(clause, text);
		accepted += shown;
		free(text);
		free(clause);
		remove_all();
	}
	ok(accepted == 127, "1 to 127 words are accepted");

	for (unsigned int i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		add(pathf("hist:keys=%s:ustack(127)", keys[i]));
		level_97();
		text = read_hist();
		ok(has_levels(text, 100, gap, gap, 1), "100 functions in keys=%s", keys[i]);
		free(text);
		for (int calls = 0; calls < 2; calls++)
			level_129();
		text = read_hist();
		ok(has_levels(text, 127, gap, "\n", 1) && strstr(text, "hitcount:          2"), "127 of them");
		free(text);
		text = slurp(in_event(EVENT, "hist_jsonl"));
		ok(text && times(text, "\"exact\":true") == 2 && times(text, "\"end\":\"depth\"") == 1,
		   "which is its depth");
		free(text);
		remove_all();
	}

	add("hist:keys=common_ustack:ustack(100)");
	level_97();
	level_97();
	text = read_hist();
	ok(has_levels(text, 99, gap, gap, 2) && has_levels(text, 100, gap, "\n}", 1) && strstr(text, "Entries: 2\n"),
	   "two stacks that differ in their last function are two entries");
	free(text);
	remove_all();

	add("hist:keys=common_ustack:ustack(127)");
	fd = open(in_event(EVENT, "hist_delta_jsonl"), O_RDONLY | O_CLOEXEC);
	level_97();
	text = calloc(1, 1 << 16);
	while (text && (n = read(fd, text + len, (1 << 16) - 1 - len)) > 0)
		len += n;
	ok(text && times(text, "{\"object\":") >= 100 && times(text, "\"exact\":true") == 1,
	   "readers of intervals see them");
	if (text && times(text, "{\"object\":") < 100)
		differ("100 functions", text);
	free(text);
	close(fd);
	remove_all();

	add("hist:keys=common_pid:n=common_timestamp:s=common_ustack:ustack(127):"
	    "onmax($n).save(common_comm,common_ustack,common_cpu)");
	level_97();
	text = read_hist();
	ok(has_levels(text, 100, ";", ";", 1) && strstr(text, "common_cpu:"), "saved");
	free(text);
	/* Another time, also by a coarse clock. */
	sleep_ms(50);
	level_129();
	text = read_hist();
	ok(has_levels(text, 127, ";", "  common_cpu:", 1), "and saved again");
	free(text);
	text = slurp(in_event(EVENT, "hist_jsonl"));
	ok(text && times(text, "\"end\":\"depth\"") == 2, "in a variable");
	free(text);
	remove_all();
}

/* The same stack has the same words in a child, and after it. */
static void of_all_processes(void)
{
	char *text, *words;
	int status;

	add_trigger(EVENT, pathf("hist:keys=common_ustack if comm == \"ustack\""));
	call_chain();
	for (int i = 0; i < 2; i++) {
		pid_t child = fork();

		if (!child) {
			call_chain();
			_exit(0);
		}
		waitpid(child, &status, 0);
	}
	text = read_hist();
	words = expected("\n         ");
	/* All of them return to their caller's loop from different places. */
	*strrchr(words, '\n') = 0;
	ok(text && times(text, words) == 2 && strstr(text, "hitcount:          2"), "children have the words of their parent");
	if (!text || times(text, words) != 2)
		differ(words, text);
	free(text);
	free(words);
	remove_all();
}

/* Calls the kernel with another frame pointer, and maybe another stack pointer. */
FRAMED static void call_from(uintptr_t fp, uintptr_t sp)
{
#ifdef __aarch64__
	__asm__ volatile("mov x20, x29\n\tmov x21, sp\n\tmov x29, %0\n\tmov sp, %1\n\tmov x0, #0\n\tmov x8, %2\n\tsvc #0\n\t"
			 "mov x29, x20\n\tmov sp, x21"
			 : : "r"(fp), "r"(sp ? sp : (uintptr_t)__builtin_frame_address(0) - 256), "r"((long)SYS_getpgid)
			 : "x0", "x8", "x20", "x21", "memory");
#else
	__asm__ volatile("mov %%rbp, %%r12\n\tmov %%rsp, %%r13\n\ttest %1, %1\n\tcmovz %%rsp, %1\n\tmov %1, %%rsp\n\t"
			 "mov %0, %%rbp\n\txor %%edi, %%edi\n\tsyscall\n\tmov %%r12, %%rbp\n\tmov %%r13, %%rsp"
			 : : "r"(fp), "r"(sp), "a"((long)SYS_getpgid)
			 : "rcx", "r11", "r12", "r13", "rdi", "cc", "memory");
#endif
}

/* Whether a stack of one word and this end was counted. */
static bool ended(const char *end)
{
	char *text = read_hist(), *row;
	bool found = asprintf(&row, "\n         (%s)\n}", end) > 0 && text && strstr(text, row);

	if (!found)
		differ(end, text);
	free(text);
	free(row);
	remove_all();
	return found;
}

static void that_lead_nowhere(void)
{
	uintptr_t *memory = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* Above every stack pointer there, and without memory. */
	uintptr_t hole = (uintptr_t)memory + (1 << 15);
	char *text;

	munmap((void *)hole, 1 << 15);
	add("hist:keys=common_ustack");
	call_from(hole, (uintptr_t)memory + 4096);
	ok(ended("not in memory"), "a frame pointer to no memory");

	add("hist:keys=common_ustack");
	call_from((uintptr_t)memory, (uintptr_t)memory + 4096);
	ok(ended("no rules"), "a frame pointer below the stack pointer");

	/* A return address that is data. */
	memory[1024] = (uintptr_t)&memory[2048];
	memory[1025] = (uintptr_t)memory;
	add("hist:keys=common_ustack");
	call_from((uintptr_t)&memory[1024], (uintptr_t)&memory[512]);
	ok(ended("no rules"), "a return address without code");

	/* Each frame is its own caller, and two are each other's. */
	memory[1024] = (uintptr_t)&memory[1024];
	memory[1025] = (uintptr_t)that_lead_nowhere + 1;
	add("hist:keys=common_ustack");
	call_from((uintptr_t)&memory[1024], (uintptr_t)&memory[512]);
	ok(ended("no rules"), "a circle of frames");

	/* A stack that is higher than any other. */
	for (int i = 0; i < 64; i++) {
		memory[1024 + 2 * i] = (uintptr_t)&memory[1026 + 2 * i];
		memory[1025 + 2 * i] = (uintptr_t)that_lead_nowhere + 1;
	}
	add("hist:keys=common_ustack");
	call_from((uintptr_t)&memory[1024], (uintptr_t)&memory[512]);
	text = read_hist();
	ok(text && times(text, "\n         ") == 31 && !strstr(text, "("), "more frames than are kept");
	free(text);
	remove_all();

	for (unsigned int i = 0; i < 4; i++) {
		static const uintptr_t places[] = { 8, 0x7fffffffeff8, 0xffff800000000000, ~0ul - 7 };

		add("hist:keys=common_ustack");
		call_from(places[i], places[i] - 64);
		text = read_hist();
		ok(text && times(text, "\n         ") == 2 && strstr(text, "\n         ("), "a stack at %#lx",
		   (unsigned long)places[i]);
		free(text);
		remove_all();
	}
	munmap(memory, 1 << 15);
}

/* Whether user_objects/list has these words, for a task with CAP_SYS_PTRACE or without. */
static bool lists(const char *wanted, bool may_trace)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct all[2], less[2];
	char *list;
	bool found;

	if (syscall(SYS_capget, &header, all))
		return false;
	memcpy(less, all, sizeof(all));
	if (!may_trace)
		less[0].effective &= ~(1u << CAP_SYS_PTRACE);
	if (syscall(SYS_capset, &header, less))
		return false;
	list = slurp(pathf("%s/user_objects/list", tracing_dir()));
	found = !syscall(SYS_capset, &header, all) && list && strstr(list, wanted);
	free(list);
	return found;
}

/* Code without a file is an object of its process. */
static void of_generated_code(void)
{
	struct mapping mapping;
	char *text, *list, wanted[64];
	long object = -1;
#ifdef __aarch64__
	static const unsigned int code[] = {
		/* stp x29, x30, [sp, #-16]!; mov x29, sp; mov x0, #0; mov x8, #155; svc #0 */
		/* ldp x29, x30, [sp], #16; ret */
		0xa9bf7bfd, 0x910003fd, 0xd2800000, 0xd2801368, 0xd4000001, 0xa8c17bfd, 0xd65f03c0,
	};
	const unsigned long behind = 20;
#else
	/* push %rbp; mov %rsp, %rbp; xor %edi, %edi; mov $121, %eax; syscall; pop %rbp; ret */
	static const unsigned char code[] = {
		0x55, 0x48, 0x89, 0xe5, 0x31, 0xff, 0xb8, SYS_getpgid, 0, 0, 0, 0x0f, 0x05, 0x5d, 0xc3,
	};
	const unsigned long behind = 13;
#endif
	char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(memory + 4096, code, sizeof(code));
	mprotect(memory, 8192, PROT_READ | PROT_EXEC);
	__builtin___clear_cache(memory, memory + 8192);
	add("hist:keys=common_ustack");
	((void (*)(void))(memory + 4096))();
	mapping = mapping_of((uintptr_t)memory + 4096);
	list = slurp(pathf("%s/user_objects/list", tracing_dir()));
	snprintf(wanted, sizeof(wanted), " memory - - - - - %d ", getpid());
	for (char *line = list; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (memmem(line, strcspn(line, "\n"), wanted, strlen(wanted)))
			object = strtol(line, NULL, 10);
	snprintf(wanted, sizeof(wanted), "\n         %ld+%#lx\n", object,
		 (unsigned long)memory + 4096 + behind - mapping.begin);
	text = read_hist();
	ok(object > 0 && text && strstr(text, wanted), "code without a file");
	if (!text || !strstr(text, wanted))
		differ(wanted, text);
	free(text);
	free(list);
	snprintf(wanted, sizeof(wanted), " memory - - - - - %d %lx ", getpid(), (unsigned long)mapping.begin);
	ok(lists(wanted, true), "the list says where it begins");
	snprintf(wanted, sizeof(wanted), " memory - - - - - %d - ", getpid());
	ok(lists(wanted, false), "but not to a task that may not see the mappings of others");
	remove_all();
	munmap(memory, 8192);
}

/* Maps and unmaps code until `end` is set. */
static void *change_mappings(void *end)
{
	while (!__atomic_load_n((bool *)end, __ATOMIC_RELAXED)) {
		char *memory = mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		mprotect(memory + 4096, 4096, PROT_READ | PROT_EXEC);
		munmap(memory, 1 << 16);
	}
	return NULL;
}

/* While other threads change the mappings, a stack is right as far as it goes. */
static void of_changing_mappings(void)
{
	int calls = repeats(20000, 5000, 1000000), right = 0, all = 0;
	pthread_t threads[2];
	char *text, *words;
	bool end = false;

	add_trigger(EVENT, pathf("hist:keys=common_ustack if common_pid == %d", getpid()));
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, change_mappings, &end);
	for (int i = 0; i < calls; i++)
		call_chain();
	__atomic_store_n(&end, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	text = read_hist();
	words = expected("\n         ");
	for (char *row = text; row && (row = strstr(row, "{ common_ustack:\n         ")); ) {
		char *first = row + strlen("{ common_ustack:\n         "), *behind = strstr(first, "\n}"), *cut = behind;
		int hits = 0;

		if (!behind || sscanf(behind, "\n} hitcount: %d", &hits) != 1)
			break;
		/* Up to the last line, which says how it ended. */
		for (*behind = 0; cut > first && cut[-1] != '\n'; cut--)
			;
		all += hits;
		if (!strncmp(first, words, strlen(words)) ||
		    (!strcmp(cut, "(mapping in change)") &&
		     (cut == first || !strncmp(first, words, cut - first - 1))))
			right += hits;
		else
			differ(words, first);
		row = behind + 1;
	}
	ok(all == calls && right == calls, "%d stacks of %d while mappings change", right, calls);
	note("%d in change", times(text, "(mapping in change)"));
	free(text);
	free(words);
	remove_all();
}

/* Hits of an event that were lost where they came from, by hist_stats. */
static long lost(const char *event)
{
	char *text = slurp(pathf("%s/hist_stats", tracing_dir())), name[128], *at;
	long number = -1;

	snprintf(name, sizeof(name), "%s", event);
	*strchrnul(name, '/') = ':';
	at = text ? strstr(text, name) : NULL;
	if (at && (at = strchr(at, ',')))
		number = strtol(at + 1, NULL, 10);
	free(text);
	return number;
}

/*
 * A hit that a walk causes, by the events of the tree of mappings, takes no stack. With a probe of
 * rhist it is lost, as any hit within a hit, and counted.
 */
static void in_themselves(void)
{
	const char *event = "maple_tree/ma_read";
	char *text;

	if (access(in_event(event, "trigger"), F_OK)) {
		skip("this kernel has no such event", "a hit in a walk");
		return;
	}
	add_trigger(event, pathf("hist:keys=common_ustack if common_pid == %d", getpid()));
	add("hist:keys=common_ustack");
	for (int i = 0; i < 100; i++) {
		/* Walks look for mappings again after one has changed. */
		munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
		call_chain();
	}
	text = slurp(in_event(event, "hist"));
	ok(text && (strstr(text, "\n         (nested)\n") || lost(event) >= 100), "a hit in a walk takes no stack");
	free(text);
	truncate_file(in_event(event, "trigger"));
	text = read_hist();
	ok(text && strstr(text, "hitcount:        100"), "and the walk goes on");
	free(text);
	remove_all();
}

/* Threads of the kernel, and programs of 32 bits: only the reason is shown. */
static void of_others(void)
{
	const char *event = "workqueue/workqueue_execute_start", *caller = pathf("%s/caller32", getenv("OUT") ?: ".");
	char *text;
	int status;

	add_trigger(event, "hist:keys=common_ustack");
	for (int i = 0; i < 50; i++) {
		sync();
		sleep_ms(20);
	}
	text = slurp(in_event(event, "hist"));
	ok(text && times(text, "{ common_ustack") == 1 && strstr(text, "{ common_ustack:\n         (no program)\n}"),
	   "a thread of the kernel has no program");
	free(text);
	truncate_file(in_event(event, "trigger"));

	if (access(caller, X_OK) || user_mode_linux()) {
		skip("they cannot run here", "programs of 32 bits are foreign");
		return;
	}
	/* Their calls are not among the events of each call. */
	event = "raw_syscalls/sys_enter";
	add_trigger(event, "hist:keys=common_ustack if comm == \"caller32\" && id == 132");
	status = system(pathf("%s getpgid 0 >/dev/null", caller));
	text = slurp(in_event(event, "hist"));
	ok(!status && text && strstr(text, "{ common_ustack:\n         (foreign)\n} hitcount:          1\n"),
	   "programs of 32 bits are foreign");
	if (!text || !strstr(text, "(foreign)"))
		differ("(foreign)", text);
	free(text);
	truncate_file(in_event(event, "trigger"));
}

/* A mapped file is held for some seconds, and not longer. */
static void that_let_go_of_files(void)
{
	char folder[] = "/tmp/ustackXXXXXX", path[PATH_MAX], *line, *self;
	size_t len;
	double begin, mounted;
	int status, error;
	pid_t child;
	bool read;

	if (!mkdtemp(folder) || mount("ustack", folder, "tmpfs", 0, NULL)) {
		ok(false, "a file system: %s", strerror(errno));
		return;
	}
	snprintf(path, sizeof(path), "%s/ustack", folder);
	self = slurp_len("/proc/self/exe", &len);
	error = put_len(path, O_CREAT, self, len);
	chmod(path, 0700);
	add_trigger(EVENT, "hist:keys=common_ustack if comm == \"ustack\"");
	begin = now();
	child = fork();
	if (!child) {
		execl(path, "ustack", "--call", NULL);
		_exit(1);
	}
	waitpid(child, &status, 0);
	ok(!error && !status, "a program on it has run");
	struct stat file;
	struct mapping mapping = { 0 };

	stat(path, &file);
	mapping.major = major(file.st_dev);
	mapping.minor = minor(file.st_dev);
	mapping.inode = file.st_ino;
	line = listed(&mapping);
	ok(line && strstr(line, "readable"), "its file can be read when it has ended");
	if (line) {
		size_t got;
		char *image = slurp_len(pathf("%s/user_objects/%ld/image", tracing_dir(), object_of(&mapping)), &got);

		read = image && got == len && !memcmp(image, self, len);
		ok(read, "and is the program: %s", image ? "" : strerror(errno));
		free(image);
	}
	free(line);
	ok(umount(folder) && errno == EBUSY, "its file system is in use");
	while ((error = umount(folder)) && errno == EBUSY && now() - begin < 60)
		sleep_ms(100);
	mounted = now() - begin;
	ok(!error && mounted < 13, "for %.1f seconds", mounted);
	rmdir(folder);
	free(self);
	remove_all();
}

/* Whether this program's object is called and its image can be read. Sets its number. */
static bool reads_itself(long *number)
{
	struct mapping mapping;
	size_t len, got;
	char *image, *self = slurp_len("/proc/self/exe", &len);
	bool same;

	call_chain();
	mapping = mapping_of(chain[0]);
	*number = object_of(&mapping);
	image = slurp_len(pathf("%s/user_objects/%ld/image", tracing_dir(), *number), &got);
	same = self && image && got == len && !memcmp(image, self, len);
	if (!same)
		note("image of %ld: %s", *number, image ? "another one" : strerror(errno));
	free(image);
	free(self);
	return same;
}

/*
 * A table that is more than half full is replaced when nobody uses it. Files of the old one that
 * are held by their paths do not stand in the way of new ones with the same numbers.
 */
static void of_a_new_table(void)
{
#ifdef __aarch64__
	static const unsigned int code[] = { 0xd2800000, 0xd2801368, 0xd4000001, 0xd65f03c0 };
#else
	/* xor %edi, %edi; mov $121, %eax; syscall; ret */
	static const unsigned char code[] = { 0x31, 0xff, 0xb8, SYS_getpgid, 0, 0, 0, 0x0f, 0x05, 0xc3 };
#endif
	enum { OBJECTS = 2200, HELD = 512 };
	size_t page = sysconf(_SC_PAGESIZE);
	char *place = mmap(NULL, 2 * OBJECTS * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int held[HELD], holding = 0;
	long before, after;
	bool read;

	memcpy(at, code, sizeof(code));
	mprotect(at, page, PROT_READ | PROT_EXEC);
	__builtin___clear_cache(at, at + page);
	add("hist:keys=common_ustack:size=8192");
	call_chain();
	/* The same code in many places. */
	for (int i = 0; i < OBJECTS && at != MAP_FAILED; i++) {
		at = mremap(at, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, place + 2 * i * page);
		if (at != MAP_FAILED)
			((void (*)(void))at)();
	}
	read = reads_itself(&before);
	for (int i = 1; i <= HELD; i++)
		holding += (held[i - 1] = open(pathf("%s/user_objects/%d/image", tracing_dir(), i), O_PATH | O_CLOEXEC)) >= 0;
	ok(at != MAP_FAILED && before > 0 && holding > HELD / 2, "%d objects of an old table are held", holding);
	note("of this program: %ld, %sread", before, read ? "" : "not ");
	remove_all();

	add("hist:keys=common_ustack");
	read = reads_itself(&after);
	ok(read && after <= HELD && held[after - 1] >= 0, "an object of the new one can be read: %ld", after);
	for (int i = 0; i < HELD; i++)
		if (held[i] >= 0)
			close(held[i]);
	remove_all();
	munmap(place, 2 * OBJECTS * page);
}

/* Calls the kernel from code in a file that is mapped. Returns the mapping. */
static struct mapping call_from_file(int fd)
{
#ifdef __aarch64__
	static const unsigned int code[] = { 0xd2800000, 0xd2801368, 0xd4000001, 0xd65f03c0 };
#else
	static const unsigned char code[] = { 0x31, 0xff, 0xb8, SYS_getpgid, 0, 0, 0, 0x0f, 0x05, 0xc3 };
#endif
	struct mapping mapping;
	void *at;

	if (pwrite(fd, code, sizeof(code), 0) != sizeof(code) && errno != EBADF)
		note("pwrite: %s", strerror(errno));
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return (struct mapping) { 0 };
	((void (*)(void))at)();
	mapping = mapping_of((uintptr_t)at);
	munmap(at, 4096);
	return mapping;
}

/* Files are held as their programs have opened them for a second only, and never for writing. */
static void that_hold_files(void)
{
	/* Not on overlayfs, where a mapping shows another device than the list. */
	char *path = strdup(pathf("%s/ustackXXXXXX", getenv("TMPDIR") ?: "/tmp")), *line;
	int writes = mkstemp(path), reads, other;
	struct mapping mapping;
	double begin;

	add("hist:keys=common_ustack");
	mapping = call_from_file(writes);
	line = listed(&mapping);
	ok(line && strstr(line, " released"), "a file that is open for writing is not held");
	if (!line || !strstr(line, " released"))
		differ("released", line);
	free(line);
	/* Another size makes another object. */
	if (ftruncate(writes, 8192))
		note("ftruncate: %s", strerror(errno));
	close(writes);

	reads = open(path, O_RDONLY | O_CLOEXEC);
	other = open(path, O_RDONLY | O_CLOEXEC);
	flock(reads, LOCK_EX);
	mapping = call_from_file(reads);
	line = listed(&mapping);
	ok(line && strstr(line, " readable"), "a file that is open for reading is held");
	if (!line || !strstr(line, " readable"))
		differ("readable", line);
	free(line);
	begin = now();
	close(reads);
	while (flock(other, LOCK_EX | LOCK_NB) && now() - begin < 20)
		sleep_ms(50);
	ok(now() - begin < 4, "its lock is kept for %.1f seconds", now() - begin);
	line = listed(&mapping);
	ok(line && strstr(line, " readable"), "and it can be read for longer");
	free(line);
	close(other);
	unlink(path);
	remove_all();
}

/* The hits whose innermost word is this offset of an object. */
static int hits_in(const char *text, long object, unsigned long offset)
{
	int all = 0, hits;
	char *row;

	if (asprintf(&row, "{ common_ustack:\n         %ld+%#lx\n", object, offset) < 0)
		return -1;
	for (const char *at = text; at && (at = strstr(at, row)); at++) {
		const char *end = strstr(at, "\n} hitcount:");

		if (end && sscanf(end, "\n} hitcount: %d", &hits) == 1)
			all += hits;
	}
	free(row);
	return all;
}

/* Makes a file in a file system without layers, with the code of a call at its begin. */
static int code_file(char *path)
{
#ifdef __aarch64__
	static const unsigned int code[] = { 0xd2800000, 0xd2801368, 0xd4000001, 0xd65f03c0 };
#else
	static const unsigned char code[] = { 0x31, 0xff, 0xb8, SYS_getpgid, 0, 0, 0, 0x0f, 0x05, 0xc3 };
#endif
	char zeros[4096] = { 0 };
	int fd;

	snprintf(path, PATH_MAX, "%s/ustackXXXXXX", getenv("TMPDIR") ?: "/tmp");
	fd = mkstemp(path);
	memcpy(zeros, code, sizeof(code));
	if (write(fd, zeros, sizeof(zeros)) != sizeof(zeros))
		note("write: %s", strerror(errno));
	close(fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Calls the kernel three times by the code at an address. Returns how many hits its file has. */
static int hits_of_calls(void *at, long *object)
{
#ifdef __aarch64__
	const unsigned long behind = 12;
#else
	const unsigned long behind = 9;
#endif
	struct mapping mapping;
	char *text;
	int hits;

	for (volatile int i = 0; i < 3; i++)
		((void (*)(void))at)();
	mapping = mapping_of((uintptr_t)at);
	*object = object_of(&mapping);
	text = read_hist();
	hits = hits_in(text, *object, behind);
	free(text);
	return hits;
}

/*
 * Mappings are forgotten in time: another file at the same address, the same file after it was
 * changed, and another program at the same addresses are other objects at once.
 */
static void of_what_comes_in_its_place(void)
{
	char path[2][PATH_MAX], *text, *self;
	int fd[2] = { code_file(path[0]), code_file(path[1]) }, writes, error = 0, status, calls = 0, hits[4];
	const struct timespec times[2] = { { 1, 2 }, { 3, 4 } };
	unsigned long offset;
	long object[4];
	cpu_set_t cpus, old;
	struct mapping mapping;
	size_t len;
	void *at;

	/* On one CPU, which remembers mappings. */
	sched_getaffinity(0, sizeof(old), &old);
	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	add("hist:keys=common_ustack");
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd[0], 0);
	hits[0] = hits_of_calls(at, &object[0]);
	at = mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd[1], 0);
	hits[1] = hits_of_calls(at, &object[1]);
	ok(hits[0] == 3 && hits[1] == 3 && object[0] != object[1],
	   "a file that is mapped over another one: %d hits in %ld, %d in %ld", hits[0], object[0], hits[1], object[1]);
	writes = open(path[1], O_WRONLY | O_CLOEXEC);
	error = futimens(writes, times);
	hits[2] = hits_of_calls(at, &object[2]);
	ok(!error && hits[2] == 3 && object[2] > 0 && object[2] != object[1],
	   "the same file with another time: %d hits in %ld", hits[2], object[2]);
	error = ftruncate(writes, 8192) || futimens(writes, times);
	hits[3] = hits_of_calls(at, &object[3]);
	ok(!error && hits[3] == 3 && object[3] > 0 && object[3] != object[2],
	   "and with another size: %d hits in %ld", hits[3], object[3]);
	close(writes);
	munmap(at, 4096);
	remove_all();

	/* Copies of this program, at the same addresses. */
	self = slurp_len("/proc/self/exe", &len);
	add_trigger(EVENT, "hist:keys=common_ustack if comm == \"ustack\"");
	for (int i = 0; i < 2; i++) {
		close(fd[i]);
		unlink(path[i]);
		strcat(path[i], "p");
		error |= put_len(path[i], O_CREAT, self, len);
		chmod(path[i], 0700);
	}
	for (int i = 0; i < 6; i++) {
		pid_t child = fork();

		if (!child) {
			personality(ADDR_NO_RANDOMIZE);
			prctl(PR_SET_NAME, "other");
			/* A name of its own counts, not the file's. */
			execl(path[i % 2], "ustack", "--call", "ustack", NULL);
			_exit(1);
		}
		waitpid(child, &status, 0);
		calls += !status;
	}
	call_chain();
	mapping = mapping_of(chain[0]);
	offset = chain[0] - mapping.begin + mapping.offset;
	text = read_hist();
	for (int i = 0; i < 2; i++) {
		struct stat file;

		stat(path[i], &file);
		mapping = (struct mapping){ .major = major(file.st_dev), .minor = minor(file.st_dev), .inode = file.st_ino };
		object[i] = object_of(&mapping);
		hits[i] = hits_in(text, object[i], offset);
		unlink(path[i]);
	}
	ok(!error && calls == 6 && hits[0] == 3 && hits[1] == 3 && object[0] != object[1],
	   "programs at the same addresses: %d calls, %d hits in %ld, %d in %ld", calls, hits[0], object[0], hits[1], object[1]);
	free(text);
	free(self);
	remove_all();
	sched_setaffinity(0, sizeof(old), &old);
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "--call"))
		prctl(PR_SET_NAME, argv[2]);
	if (argc > 1 && !strcmp(argv[1], "--call"))
		return call_chain() < 0;
	tap_begin();
	if (testing_c()) {
		skip("this is not rhist", "stacks of programs");
		finish();
	}
	open_kernel_log();
	with_frame_pointers();
	of_many_functions();
	of_all_processes();
	that_lead_nowhere();
	of_generated_code();
	of_others();
	of_changing_mappings();
	in_themselves();
	that_let_go_of_files();
	that_hold_files();
	of_what_comes_in_its_place();
	of_a_new_table();
	char *report = kernel_report();

	ok(!report, "no report of the kernel");
	if (report)
		note("%s", report);
	finish();
}
