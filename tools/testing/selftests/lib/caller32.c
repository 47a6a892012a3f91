// SPDX-License-Identifier: GPL-2.0
/*
 * One system call of a 32-bit program, without a 32-bit C library.
 *
 *   caller32 CALL PATH|FD [ARGUMENT [TEXT]]
 *
 * Opens a path for reading, or for writing if TEXT is given; a number is a descriptor that is open
 * already. Prints the return value of the call, a colon, and the bytes that were read.
 */
#include <asm/unistd_32.h>

typedef unsigned int u32;
typedef unsigned long long u64;

struct vec {
	void *at;
	u32 len;
};

static char buffer[1 << 16], answer[1 << 17];

static int call(int nr, long a, long b, long c, long d, long e, long f)
{
	struct {
		long a, f;
	} first = { a, f };
	int result;

	/* All registers are in use: also ebp, for the sixth argument. */
	__asm__ volatile("pushl %%ebx; pushl %%ebp; movl 4(%%ebx), %%ebp; movl (%%ebx), %%ebx; int $0x80; popl %%ebp; popl %%ebx"
			 : "=a"(result) : "a"(nr), "b"(&first), "c"(b), "d"(c), "S"(d), "D"(e) : "memory");
	return result;
}

static u32 length(const char *text)
{
	u32 len = 0;

	while (text[len])
		len++;
	return len;
}

static int equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static u32 number(const char *text)
{
	u32 value = 0;

	while (*text >= '0' && *text <= '9')
		value = value * 10 + (*text++ - '0');
	return value;
}

static void copy(char *to, const char *from, u32 len)
{
	while (len--)
		*to++ = *from++;
}

/* gcc may call it for a structure. */
void *memcpy(void *to, const void *from, u32 len)
{
	copy(to, from, len);
	return to;
}

void *memset(void *at, int byte, u32 len)
{
	for (char *to = at; len--; )
		*to++ = byte;
	return at;
}

/* Reads from the current offset to the end. */
static int read_on(int fd, u32 size, u32 *len)
{
	int got;

	while ((got = call(__NR_read, fd, (long)buffer + *len, size, 0, 0, 0)) > 0)
		*len += got;
	return got;
}

static int act(const char *what, int fd, u32 argument, char *text, u32 *len)
{
	u32 half = length(text) / 2;
	struct vec halves[2] = { { text, half }, { text + half, length(text) - half } };
	struct vec read_to[2] = { { buffer, 10 }, { buffer + 10, 20 } };
	int got = -38;

	if (equal(what, "read"))
		return read_on(fd, argument, len);
	if (equal(what, "pread"))
		got = call(__NR_pread64, fd, (long)buffer, 100, argument, 0, 0);
	if (equal(what, "readv"))
		got = call(__NR_readv, fd, (long)read_to, 2, 0, 0, 0);
	if (equal(what, "preadv"))
		got = call(__NR_preadv, fd, (long)read_to, 2, argument, 0, 0);
	if (got > 0)
		*len = got;
	if (equal(what, "seek")) {
		u64 at;

		got = call(__NR__llseek, fd, 0, argument, (long)&at, 0, 0);
		return got ? got : read_on(fd, 4096, len);
	}
	if (equal(what, "seek-far"))
		return call(__NR__llseek, fd, 0x7fffffff, argument, (long)buffer, 0, 0);
	if (equal(what, "sendfile")) {
		int pipes[2];

		got = call(__NR_pipe, (long)pipes, 0, 0, 0, 0, 0);
		return got ? got : call(__NR_sendfile64, pipes[1], fd, 0, 100, 0, 0);
	}
	if (equal(what, "getdents")) {
		/* Only their number: the numbers of inodes are not compared. */
		while ((got = call(__NR_getdents64, fd, (long)buffer, argument, 0, 0, 0)) > 0)
			for (int at = 0; at < got; at += *(unsigned short *)(buffer + at + 16))
				++*len;
		for (u32 i = 0; i < *len; i++)
			buffer[i] = '.';
		return got;
	}
	if (equal(what, "ioctl"))
		return call(__NR_ioctl, fd, argument, (long)text, 0, 0, 0);
	if (equal(what, "write"))
		return call(__NR_write, fd, (long)text, length(text), 0, 0, 0);
	if (equal(what, "writev"))
		return call(__NR_writev, fd, (long)halves, 2, 0, 0, 0);
	if (equal(what, "pwrite"))
		return call(__NR_pwrite64, fd, (long)text, length(text), argument, 0, 0);
	if (equal(what, "pwritev"))
		return call(__NR_pwritev, fd, (long)&halves[1], 1, argument, 0, 0);
	/* A user event: the index, and a number. */
	if (equal(what, "event")) {
		u32 event[2] = { argument, number(text) };

		return call(__NR_write, fd, (long)event, sizeof(event), 0, 0, 0);
	}
	if (equal(what, "getpgid"))
		return call(__NR_getpgid, fd, 0, 0, 0, 0, 0);
	return got;
}

static u32 print(char *to, int value)
{
	char digits[12];
	u32 n = 0, len = 0;
	u32 rest = value < 0 ? -(u32)value : (u32)value;

	if (value < 0)
		to[len++] = '-';
	do
		digits[n++] = '0' + rest % 10;
	while (rest /= 10);
	while (n)
		to[len++] = digits[--n];
	to[len++] = ':';
	return len;
}

__attribute__((used, noreturn))
static void run(char **stack)
{
	int argc = *(int *)stack, fd, result;
	char **argv = stack + 1;
	u32 len = 0, said;

	if (argc < 3)
		call(__NR_exit, 2, 0, 0, 0, 0, 0);
	fd = argv[2][0] >= '0' && argv[2][0] <= '9' ? (int)number(argv[2]) :
	     /* O_LARGEFILE is 0100000 here */
	     call(__NR_open, (long)argv[2], argc > 4 ? 0100001 : 0100000, 0, 0, 0, 0);
	result = fd < 0 ? fd : act(argv[1], fd, argc > 3 ? number(argv[3]) : 0, argc > 4 ? argv[4] : "", &len);
	said = print(answer, result);
	copy(answer + said, buffer, len);
	call(__NR_write, 1, (long)answer, said + len, 0, 0, 0);
	for (;;)
		call(__NR_exit, 0, 0, 0, 0, 0, 0);
}

__asm__(".globl _start\n_start: movl %esp, %eax; andl $-16, %esp; subl $12, %esp; pushl %eax; call run");
