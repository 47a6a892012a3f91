// SPDX-License-Identifier: GPL-2.0
// Errors of a request, and the order in which they are checked.
#define _GNU_SOURCE
#include <linux/aio_abi.h>

#include "client.h"

static int fd;
static unsigned int bits[4];
static unsigned int *unmapped, *read_only;
static long page;

static void is_error(int got, int expected, const char *name)
{
	if (!ok(got == expected, "%s: %s", name, errno_name(expected)))
		note("got %s", errno_name(got));
}

/* A structure at the end of mapped memory, or one longer than ours. */
static int raw_reg(const void *bytes, size_t len, unsigned int size)
{
	char *at = (char *)read_only + page - len;

	mprotect(read_only, page, PROT_READ | PROT_WRITE);
	memcpy(at, bytes, len);
	if (len >= 4)
		memcpy(at, &size, 4);
	return ioctl(fd, DIAG_IOCSREG, at) ? -errno : 0;
}

static void sizes(void)
{
	char bytes[64] = {};
	struct user_reg *r = (void *)bytes;

	is_error(ioctl(fd, DIAG_IOCSREG, unmapped) ? -errno : 0, -EFAULT, "no size");
	is_error(ioctl(fd, DIAG_IOCSREG, NULL) ? -errno : 0, -EFAULT, "no structure");
	is_error(raw_reg(bytes, 28, 27), -EINVAL, "a size that is too small");
	is_error(raw_reg(bytes, 28, 0), -EINVAL, "size 0");
	is_error(raw_reg(bytes, 28, page + 1), -E2BIG, "a size beyond a page");
	is_error(raw_reg(bytes, 28, ~0u), -E2BIG, "a huge size");
	is_error(raw_reg(bytes, 20, 28), -EFAULT, "a structure cut off by the end of memory");
	is_error(raw_reg(bytes, 28, 32), -EFAULT, "a tail cut off by the end of memory");
	bytes[40] = 1;
	is_error(raw_reg(bytes, 64, 64), -E2BIG, "a tail that is not zero");
	bytes[40] = 0;
	is_error(raw_reg(bytes, 64, 64), -EINVAL, "a tail of zeros, then the value's size 0");
	r->enable_size = 4;
	r->enable_addr = (uintptr_t)bits;
	r->name_args = (uintptr_t)"rq_tail u32 a";
	is_error(raw_reg(bytes, 64, 64), 0, "a longer structure");
	is_error(unreg(fd, bits, 0), 0, "and away with it");
}

static void values(void)
{
	static const struct {
		int size, bit, flags;
		intptr_t addr;
		int expected;
	} of[] = {
		{ 4, 0, 4, 0, -EINVAL }, { 4, 0, 0x8000, 0, -EINVAL }, { 1, 0, 0, 0, -EINVAL },
		{ 2, 0, 0, 0, -EINVAL }, { 5, 0, 0, 0, -EINVAL }, { 0, 0, 0, 0, -EINVAL },
		{ 16, 0, 0, 0, -EINVAL }, { 128, 0, 0, 0, -EINVAL }, { 4, 32, 0, 0, -EINVAL },
		{ 8, 64, 0, 0, -EINVAL }, { 4, 255, 0, 0, -EINVAL }, { 4, 0, 0, 2, -EINVAL },
		{ 8, 0, 0, 4, -EINVAL }, { 4, 0, 0, -1, -EINVAL },
		/* The kernel's addresses, which programs lack. */
		{ 4, 0, 0, -4096, -EFAULT }, { 8, 63, 0, -8, -EFAULT },
		/* The value is checked before the place. */
		{ 4, 0, 4, -4096, -EINVAL },
	};

	for (unsigned int i = 0; i < sizeof(of) / sizeof(*of); i++) {
		void *at = of[i].addr < 0 ? (void *)of[i].addr : (char *)bits + of[i].addr;

		is_error(reg_flags(fd, "rq_value", at, of[i].size, of[i].bit, of[i].flags, NULL),
			 of[i].expected,
			 pathf("size %d, bit %d, flags %x, address %s%ld", of[i].size, of[i].bit,
			       of[i].flags, of[i].addr < 0 ? "" : "+", (long)of[i].addr));
	}
	ok(!exists("rq_value"), "no event came of that");
}

static void names(void)
{
	char text[600];
	static const char *const bad[] = {
		"rq:flag u32 a", "rq: u32 a", "rq u32", "rq long a", "rq u32 a b", "rq u32  a",
		"rq char[0] a", "rq char[1025] a", "rq struct a b",
	};
	/* C accepts them, or fails with another error. */
	static const char *const bad_here[] = {
		"", " u32 a", "rq struct a b 70000", ".", "..", "rq/rq u32 a", "rq\t u32 a", "rq\n", "enable", "filter u32 a",
		"rq#", "rq u32 a\nb", "rq u32 a\t", "rq struct a\nb c 4", "rq u32 a\np:kprobes/rq do_exit", "rq u32 a\x7f",
		"rq u32 a;u8 b\r", "rq u32 a#b", "rq u32 a\"", "rq u32 a%s", "rq u32 a\\",
		"rq u32 common_pid", "rq u32 a;u64 common_timestamp", "rq char[16] common_comm", "rq struct x common_ 4",
		"rq __data_loc char[] common_stacktrace",
	};

	is_error(reg(fd, (char *)unmapped, bits, NULL), -EFAULT, "a name that is not there");
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		is_error(reg(fd, bad[i], bits, NULL), -EINVAL, pathf("\"%s\"", bad[i]));
	for (unsigned int i = 0; !testing_c() && i < sizeof(bad_here) / sizeof(*bad_here); i++)
		is_error(reg(fd, bad_here[i], bits, NULL), -EINVAL, pathf("\"%s\"", bad_here[i]));
	memset(text, 'n', sizeof(text));
	text[512] = 0;
	is_error(reg(fd, text, bits, NULL), -EINVAL, "a description of 513 bytes");
	text[256] = 0;
	if (!testing_c())
		is_error(reg(fd, text, bits, NULL), -EINVAL, "a name of 256 bytes, which no folder can have");
	text[255] = 0;
	if (!testing_c())
		is_error(reg_flags(fd, text, bits, 4, 0, USER_EVENT_REG_MULTI_FORMAT, NULL), -EINVAL,
			 "one of 255, and a number behind it");
	is_error(reg(fd, text, bits, NULL), 0, "one of 255 alone");
	ok(exists(text), "which is a folder");
	is_error(unreg(fd, bits, 0), 0, "and away with it");
	memset(text, 'n', sizeof(text));
	memcpy(text, "rq_long ", 8);
	memset(text + 8, ';', sizeof(text) - 8);
	text[511] = 0;
	is_error(reg(fd, text, bits, NULL), 0, "one of 512 bytes");
	is_error(unreg(fd, bits, 0), 0, "and away with it");
}

static void order(void)
{
	int index = -1;

	close(fd);
	fd = open_data();
	is_error(reg(fd, "rq_one u32 a;u32 b", bits, &index), 0, "an event");
	is_error(reg(fd, (char *)unmapped, bits, NULL), -EADDRINUSE,
		 "a bit that is taken, and a name that is not there");
	is_error(reg(fd, "rq_other", bits, NULL), -EADDRINUSE, "a bit that is taken by another event");
	is_error(reg_flags(fd, "rq_one u32 a", bits, 4, 1, 0, NULL), -EADDRINUSE, "other fields");
	is_error(reg_flags(fd, "rq_one long a", bits, 4, 1, 0, NULL), -EADDRINUSE,
		 "other fields, which are none");
	is_error(reg_flags(fd, "rq_one u32 a; u32 b;", bits, 4, 1, 0, &index), 0, "the same fields");
	ok(index == 0, "and the same index");
	is_error(reg_flags(fd, "rq_two", bits, 4, 2, 0, &index), 0, "another event");
	ok(index == 1, "and the next index");
	is_error(reg(fd, "rq_three", unmapped, NULL), -ENOMEM, "a bit in no memory");
	mprotect(read_only, page, PROT_READ);
	is_error(reg(fd, "rq_three", read_only, NULL), -ENOMEM, "a bit in read-only memory");
	is_error(reg_flags(fd, "rq_four", bits, 4, 3, 0, &index), 0, "one more event");
	ok(index == 3, "the file has the one without a bit");

	is_error(ioctl(fd, _IO('*', 0), NULL) ? -errno : 0, -ENOTTY, "an unknown command");
	is_error(ioctl(fd, _IOWR('*', 3, void *), NULL) ? -errno : 0, -ENOTTY, "an unknown number");
	is_error(ioctl(fd, _IOWR('*', 0, struct user_reg), NULL) ? -errno : 0, -ENOTTY, "another size");
}

static void unregistering(void)
{
	struct user_unreg u = { .size = sizeof(u), .disable_addr = (uintptr_t)bits };
	struct { struct user_unreg u; char tail[8]; } longer = { .u = u };

	is_error(ioctl(fd, DIAG_IOCSUNREG, unmapped) ? -errno : 0, -EFAULT, "to unregister nothing");
	u.size = 15;
	is_error(ioctl(fd, DIAG_IOCSUNREG, &u) ? -errno : 0, -EINVAL, "too small a size");
	u.size = page + 1;
	is_error(ioctl(fd, DIAG_IOCSUNREG, &u) ? -errno : 0, -E2BIG, "too big a size");
	u.size = sizeof(u);
	u.__reserved = 1;
	is_error(ioctl(fd, DIAG_IOCSUNREG, &u) ? -errno : 0, -EINVAL, "the first reserved field");
	u.__reserved = 0;
	u.__reserved2 = 1;
	is_error(ioctl(fd, DIAG_IOCSUNREG, &u) ? -errno : 0, -EINVAL, "the second one");
	longer.u.size = sizeof(longer);
	longer.tail[3] = 1;
	is_error(ioctl(fd, DIAG_IOCSUNREG, &longer) ? -errno : 0, -E2BIG, "a tail that is not zero");
	is_error(unreg(fd, bits, 20), -ENOENT, "another bit");
	is_error(unreg(fd, bits + 1, 0), -ENOENT, "another address");
	longer.tail[3] = 0;
	is_error(ioctl(fd, DIAG_IOCSUNREG, &longer) ? -errno : 0, 0, "a longer structure");
	is_error(unreg(fd, bits, 0), -ENOENT, "twice");
}

static void deleting(void)
{
	char text[600];
	int other = open_data();

	memset(text, 'n', sizeof(text));
	text[599] = 0;
	is_error(ioctl(other, DIAG_IOCSDEL, unmapped) ? -errno : 0, -EFAULT, "to delete no name");
	is_error(del(other, text), -EINVAL, "a name that is too long");
	is_error(del(other, "rq_none"), -ENOENT, "an event that is not");
	is_error(del(other, ""), -ENOENT, "an empty name");
	is_error(del(other, "rq_one"), -EBUSY, "an event that somebody has");
	close(other);
}

/* Returns the result of an asynchronous write. */
static int aio(const void *bytes, size_t len, long long position)
{
	struct iocb request = {
		.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = fd, .aio_buf = (uintptr_t)bytes, .aio_nbytes = len,
		.aio_offset = position,
	}, *requests[] = { &request };
	aio_context_t context = 0;
	struct io_event event = { .res = -EIO };

	if (syscall(SYS_io_setup, 1, &context))
		return -errno;
	if (syscall(SYS_io_submit, context, 1, requests) != 1 ||
	    syscall(SYS_io_getevents, context, 1, 1, &event, NULL) != 1)
		event.res = -errno;
	syscall(SYS_io_destroy, context);
	return event.res;
}

static void writing(void)
{
	struct { int index; unsigned int a, b; } e = { 0, 1, 2 };

	is_error(write(fd, &e, 3) < 0 ? -errno : 0, -EFAULT, "to write less than an index");
	is_error(write(fd, unmapped, 12) < 0 ? -errno : 0, -EFAULT, "an index that is not there");
	is_error(emit(fd, -1, &e.a, 8), -EINVAL, "a negative index");
	is_error(emit(fd, 4, &e.a, 8), -ENOENT, "an index that was not given");
	is_error(emit(fd, 1 << 30, &e.a, 8), -ENOENT, "a huge index");
	is_error(emit(fd, 4, &e.a, 1), -ENOENT, "that, and too short");
	is_error(emit(fd, 0, &e.a, 7), -EINVAL, "too short");
	is_error(emit(fd, 0, &e.a, 8), -EBADF, "when nobody listens");
	is_error(emit(fd, 0, unmapped, 8), -EBADF, "that, and not there");
	enable("rq_one", true);
	is_error(emit(fd, 0, &e.a, 7), -EINVAL, "too short when somebody listens");
	is_error(emit(fd, 0, unmapped, 8), -EFAULT, "a payload that is not there");
	is_error(pwrite(fd, &e, 12, 4) < 0 ? -errno : 0, -EFAULT, "another position");
	ok(pwrite(fd, &e, 12, 0) == 12, "position 0");
	ok(aio(&e, 12, 0) == 12, "an asynchronous write");
	is_error(aio(&e, 11, 0), -EINVAL, "one that is too short");
	is_error(lseek(fd, 4, SEEK_SET) < 0 ? -errno : 0, -ESPIPE, "to seek");
	is_error(read(fd, &e, 4) < 0 ? -errno : 0, -EINVAL, "to read");
	enable("rq_one", false);
}

static void modes(void)
{
	int other = open(data_path(), O_RDONLY), index;
	struct stat s;

	is_error(reg_flags(other, "rq_one u32 a;u32 b", bits, 4, 9, 0, &index), 0,
		 "a file that is open for reading takes requests");
	is_error(emit(other, index, bits, 8), -EBADF, "but no writes");
	close(other);
	ok(!stat(data_path(), &s) && s.st_mode == (S_IFREG | 0640), "mode of user_events_data: 0640");
	ok(!stat(pathf("%s/user_events_status", tracing_dir()), &s) && s.st_mode == (S_IFREG | 0440),
	   "mode of user_events_status: 0440");
}

int main(void)
{
	page = sysconf(_SC_PAGESIZE);
	read_only = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unmapped = (void *)((char *)read_only + page);
	munmap(unmapped, page);
	fd = open_data();
	sizes();
	values();
	names();
	order();
	unregistering();
	deleting();
	writing();
	modes();
	close(fd);
	finish();
}
