/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stacks of a program whose code lacks frame pointers, but has rules: 20 functions in three files
 * call each other, and the last one calls write(). They are made here, for their rules to be
 * known.
 *
 * Each file has FUNCTIONS functions of 32 bytes, with a row of rules each, as many as a page of a
 * large library has. Every second function saves the frame pointer. A chain of 20 of them is used
 * once only, so many are made.
 *
 * And the dearest stack of a hostile program: as many functions as are kept, each in a mapping of
 * its own, in code without rules. A walk remembers fewer mappings.
 */
#ifndef RHIST_BENCH_FRAMES_H
#define RHIST_BENCH_FRAMES_H

#include <sys/mman.h>

enum { FRAMES = 20, FRAME_FILES = 3, FUNCTION = 32, FUNCTIONS = 2048, IN_FILE = 7, CHAINS = FUNCTIONS / IN_FILE };

static unsigned char *frame_code[FRAME_FILES];

/* The first function of a chain; none before they were made. */
static write_fn frame_chain(unsigned int chain)
{
	return frame_code[0] ? (write_fn)(frame_code[0] + chain % CHAINS * IN_FILE * FUNCTION) : NULL;
}

/* The place of a frame of a chain; frame 0 is called first. */
static unsigned int frame_function(unsigned int chain, int frame)
{
	return chain * IN_FILE + frame % IN_FILE;
}

static unsigned char *frame_address(unsigned int chain, int frame)
{
	return frame_code[frame / IN_FILE] + frame_function(chain, frame) * FUNCTION;
}

static bool saves_frame_pointer(unsigned int function)
{
	return function % 2;
}

static void put_code(unsigned char **to, const char *code, size_t size)
{
	memcpy(*to, code, size);
	*to += size;
}

#define CODE(to, text)		put_code(&(to), text, sizeof(text) - 1)

static void make_function(unsigned char *to, unsigned int chain, int frame)
{
	const unsigned char *callee;

	if (frame == FRAMES - 1) {
		/* mov $SYS_write, %eax; syscall; ret */
		CODE(to, "\xb8\x01\x00\x00\x00\x0f\x05\xc3");
		return;
	}
	callee = frame_address(chain, frame + 1);
	if (saves_frame_pointer(frame_function(chain, frame)))
		CODE(to, "\x55\x48\x83\xec\x10"); /* push %rbp; sub $16, %rsp */
	else
		CODE(to, "\x48\x83\xec\x18"); /* sub $24, %rsp */
	CODE(to, "\x48\xb8"); /* movabs $callee, %rax */
	put_code(&to, (const char *)&callee, sizeof(callee));
	CODE(to, "\xff\xd0"); /* call *%rax */
	if (saves_frame_pointer(frame_function(chain, frame)))
		CODE(to, "\x48\x83\xc4\x10\x5d\xc3"); /* add $16, %rsp; pop %rbp; ret */
	else
		CODE(to, "\x48\x83\xc4\x18\xc3"); /* add $24, %rsp; ret */
}

/* Rules, with the numbers of a row: see src/user_stack/rules.rs. */
enum { GAP, BEGIN, LEAF, PLAIN, SAVED, RULES };

static void write_rules(int file, int number)
{
	static const unsigned int rules[RULES][3] = {
		[BEGIN] = { 1, 0, 0 },
		[LEAF] = { 2, 0xffff, 8 },
		[PLAIN] = { 2, 0xffff, 32 },
		[SAVED] = { 2 | 0xfffeu << 16, 0xffff, 32 },
	};
	unsigned int words[6 + 3 * RULES + 1 + FUNCTIONS] = { 0x31525552, 62 | RULES << 16, FUNCTIONS, 0, 1, 0 };
	unsigned int *row = words + 6 + 3 * RULES + 1;
	const char *path = pathf("%s/user_objects/%d/rules", tracing[RHIST], number);
	int fd = open(path, O_WRONLY);

	memcpy(words + 6, rules, sizeof(rules));
	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		int frame = file * IN_FILE + i % IN_FILE;
		unsigned int rule = saves_frame_pointer(i) ? SAVED : PLAIN;

		rule = frame == 0 ? BEGIN : frame == FRAMES - 1 ? LEAF : rule;
		*row++ = i * FUNCTION | rule << 16;
	}
	if (fd < 0 || write(fd, words, sizeof(words)) != sizeof(words))
		die("%s", path);
	close(fd);
}

/* Returns the number of the object with this inode. */
static int object_of(unsigned long inode)
{
	const char *path = pathf("%s/user_objects/list", tracing[RHIST]);
	FILE *list = fopen(path, "r");
	unsigned long found;
	char line[200];
	int number;

	while (list && fgets(line, sizeof(line), list)) {
		if (sscanf(line, "%d file %*s %lu", &number, &found) == 2 && found == inode) {
			fclose(list);
			return number;
		}
	}
	die("no object %lu in %s", inode, path);
	return 0;
}

/* Makes the files, and writes their rules; `event` is fired by `order`. Then stacks are theirs. */
static void make_frames(const char *event, const char *order)
{
	static const char trigger[] = "hist:keys=common_ustack";
	size_t size = FUNCTION * FUNCTIONS;
	unsigned long inodes[FRAME_FILES];
	unsigned long long fired;

	if (frame_code[0])
		return;
	for (int file = FRAME_FILES; file--; ) {
		const char *path = pathf("/frames%d", file);
		int to = open(path, O_WRONLY | O_CREAT, 0755), fd = open(path, O_RDONLY);
		unsigned char *code = calloc(1, size), *at;
		struct stat stat;

		at = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
		frame_code[file] = at;
		for (int frame = file * IN_FILE; frame < (file + 1) * IN_FILE && frame < FRAMES; frame++)
			for (unsigned int chain = 0; chain < CHAINS; chain++)
				make_function(code + frame_function(chain, frame) * FUNCTION, chain, frame);
		if (at == MAP_FAILED || write(to, code, size) != (ssize_t)size || fstat(fd, &stat))
			die("%s", path);
		inodes[file] = stat.st_ino;
		free(code);
		close(to);
		/* A hit holds no file that is open for writing. */
		close(fd);
	}
	/* Without rules a stack ends in the first file: so from the last one on. */
	for (int file = FRAME_FILES; file--; ) {
		attach(RHIST, event, trigger);
		writes = frame_chain(0);
		fire(order, &fired);
		writes = write;
		detach(RHIST, event, trigger);
		write_rules(file, object_of(inodes[file]));
	}
}

enum { MAPPINGS = 128, BETWEEN_MAPPINGS = 1 << 17 };

/* The stack: from half of it on, a frame pointer and a return address for each function. */
static unsigned long *hostile_stack;

static void make_mappings(void)
{
	unsigned long *frame;
	char *code;

	if (hostile_stack)
		return;
	code = mmap(NULL, MAPPINGS * BETWEEN_MAPPINGS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	hostile_stack = calloc(4, 2 * MAPPINGS * sizeof(*hostile_stack));
	frame = hostile_stack + 4 * MAPPINGS;
	for (int i = 0; i < MAPPINGS; i++, frame += 2) {
		mprotect(code + i * BETWEEN_MAPPINGS, 4096, PROT_READ | PROT_EXEC);
		frame[0] = (unsigned long)(frame + 2);
		frame[1] = (unsigned long)(code + i * BETWEEN_MAPPINGS + 64);
	}
}

/* write() from there. */
static ssize_t write_from_mappings(int fd, const void *from, size_t n)
{
	ssize_t result;

	__asm__ volatile("mov %%rbp, %%r12\n\tmov %%rsp, %%r13\n\tmov %2, %%rsp\n\tlea %c3(%%rsp), %%rbp\n\tsyscall\n\t"
			 "mov %%r12, %%rbp\n\tmov %%r13, %%rsp"
			 : "=a"(result)
			 : "0"((long)SYS_write), "r"(hostile_stack), "i"(4 * MAPPINGS * sizeof(*hostile_stack)),
			   "D"((long)fd), "S"(from), "d"(n)
			 : "rcx", "r11", "r12", "r13", "cc", "memory");
	return result;
}

#endif
