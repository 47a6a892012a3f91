// SPDX-License-Identifier: GPL-2.0
/*
 * Every way to call: the alternatives of a program to write(2) and writev(2), and 32-bit programs.
 * The expected answers come from the source of the kernel's own user events; `theirs` checks them
 * on kernels that have those.
 */
#define _GNU_SOURCE
#include <linux/aio_abi.h>
#include <sys/sendfile.h>

#include "client.h"
#include "uring.h"

#define EVENT "ca_one"

static int fd, index_of_one;
static unsigned int bit;
static struct uring ring;
static struct event {
	int index;
	unsigned int a;
} *event;			/* registered with the ring */

/* Counts the trace's records of the event with the current value of its field. */
static unsigned int records(void)
{
	char *text = slurp(pathf("%s/trace", kernel_dir())), *at = text;
	unsigned int count = 0;

	while ((at = strstr(at, EVENT ": a="))) {
		at += strlen(EVENT ": a=");
		count += strtoul(at, NULL, 0) == event->a;
	}
	free(text);
	return count;
}

/*
 * Checks that a call to write the event returns the expected result, and makes a record if that is
 * positive.
 */
static void writes(const char *how, long expected, long (*call)(void))
{
	unsigned int before, after;
	long result;

	event->index = index_of_one;
	event->a++;
	before = records();
	result = call();
	after = records();
	if (!ok(result == expected && after - before == (expected > 0), "%s: %s", how,
		expected < 0 ? errno_name(expected) : "written"))
		note("%ld (%s), %u records", result, errno_name(result < 0 ? result : 0), after - before);
}

static long answer(long result)
{
	return result < 0 ? -errno : result;
}

static const struct iovec *parts(void)
{
	static struct iovec io[3];

	io[0] = (struct iovec){ event, 2 };
	io[1] = (struct iovec){ (char *)event + 2, 3 };
	io[2] = (struct iovec){ (char *)event + 5, 3 };
	return io;
}

static long by_write(void) { return answer(write(fd, event, sizeof(*event))); }
static long by_writev(void) { return answer(writev(fd, parts(), 3)); }
static long by_pwrite(void) { return answer(pwrite(fd, event, sizeof(*event), 0)); }
static long by_pwrite_later(void) { return answer(pwrite(fd, event, sizeof(*event), 8)); }
static long by_pwritev(void) { return answer(pwritev(fd, parts(), 3, 0)); }
static long by_pwritev_later(void) { return answer(pwritev(fd, parts(), 3, 8)); }
static long by_pwritev2(void) { return answer(pwritev2(fd, parts(), 3, -1, 0)); }
static long by_pwritev2_synced(void) { return answer(pwritev2(fd, parts(), 3, 0, RWF_SYNC)); }
static long by_pwritev2_appending(void) { return answer(pwritev2(fd, parts(), 3, 0, RWF_APPEND)); }
static long by_pwritev2_polled(void) { return answer(pwritev2(fd, parts(), 3, 0, RWF_HIPRI)); }
static long by_pwritev2_now(void) { return answer(pwritev2(fd, parts(), 3, 0, RWF_NOWAIT)); }
static long by_pwritev2_else(void) { return answer(pwritev2(fd, parts(), 3, 0, 1 << 30)); }

static long by_sendfile(void)
{
	int memory = memfd_create("callers", 0);
	long done = write(memory, event, sizeof(*event));

	lseek(memory, 0, SEEK_SET);
	done = answer(sendfile(fd, memory, NULL, done));
	close(memory);
	return done;
}

static long by_splice(void)
{
	int pipes[2];
	long done;

	if (pipe(pipes))
		return -EIO;
	done = write(pipes[1], event, sizeof(*event));
	done = answer(splice(pipes[0], NULL, fd, NULL, done, 0));
	close(pipes[0]);
	close(pipes[1]);
	return done;
}

static long by_aio(int opcode, const void *at, size_t len)
{
	struct iocb request = { .aio_lio_opcode = opcode, .aio_fildes = fd, .aio_buf = (uintptr_t)at, .aio_nbytes = len };
	struct iocb *requests = &request;
	struct io_event done = { .res = -EIO };
	aio_context_t context = 0;

	if (syscall(SYS_io_setup, 1, &context))
		return -errno;
	if (syscall(SYS_io_submit, context, 1, &requests) != 1 || syscall(SYS_io_getevents, context, 1, 1, &done, NULL) != 1)
		done.res = -errno;
	syscall(SYS_io_destroy, context);
	return done.res;
}

static long by_aio_write(void) { return by_aio(IOCB_CMD_PWRITE, event, sizeof(*event)); }
static long by_aio_writev(void) { return by_aio(IOCB_CMD_PWRITEV, parts(), 3); }
static long by_uring(void) { return uring_rw(&ring, IORING_OP_WRITE, fd, event, sizeof(*event), 0); }
static long by_uring_here(void) { return uring_rw(&ring, IORING_OP_WRITE, fd, event, sizeof(*event), -1); }
static long by_uring_later(void) { return uring_rw(&ring, IORING_OP_WRITE, fd, event, sizeof(*event), 8); }
static long by_uring_writev(void) { return uring_rw(&ring, IORING_OP_WRITEV, fd, parts(), 3, 0); }
static long by_uring_fixed(void) { return uring_rw(&ring, IORING_OP_WRITE_FIXED, fd, event, sizeof(*event), 0); }
static long by_uring_short(void) { return uring_rw(&ring, IORING_OP_WRITE, fd, event, 3, 0); }
static long by_uring_nothing(void) { return uring_rw(&ring, IORING_OP_WRITE, fd, NULL, sizeof(*event), 0); }
static long read_by_uring(void) { return uring_rw(&ring, IORING_OP_READ, fd, event, sizeof(*event), 0); }

static long by_uring_wrongly(void)
{
	event->index = 4711;
	return by_uring();
}

/* A worker of io_uring writes it, which is another task of the process. */
static long by_uring_worker(void)
{
	return uring_request(&ring, (struct io_uring_sqe){
		.opcode = IORING_OP_WRITE, .flags = IOSQE_ASYNC, .fd = fd, .addr = (uintptr_t)event, .len = sizeof(*event),
	});
}

/* A page of the payload is not present yet. */
static long by_uring_absent(void)
{
	long page = sysconf(_SC_PAGESIZE), done;
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* The payload reads as zeros: make records() count those. */
	memcpy(at + page - sizeof(int), &event->index, sizeof(int));
	event->a = 0;
	done = uring_rw(&ring, IORING_OP_WRITE, fd, at + page - sizeof(int), sizeof(*event), 0);
	munmap(at, 2 * page);
	return done;
}

static void io_uring(void)
{
	int error = uring_open(&ring);

	if (!error)
		error = uring_register(&ring, event, sizeof(*event));
	if (error) {
		skip(errno_name(error), "io_uring");
		return;
	}
	writes("io_uring: write", sizeof(*event), by_uring);
	writes("io_uring: write where the file is", sizeof(*event), by_uring_here);
	/* C ignores the position; see Documentation/differences.rst */
	writes("io_uring: write at another position", testing_c() ? (long)sizeof(*event) : -EFAULT, by_uring_later);
	writes("io_uring: writev", sizeof(*event), by_uring_writev);
	writes("io_uring: write from a fixed buffer", sizeof(*event), by_uring_fixed);
	writes("io_uring: write by a worker", sizeof(*event), by_uring_worker);
	writes("io_uring: write of a payload that is not there yet", sizeof(*event), by_uring_absent);
	writes("io_uring: less than an index", -EFAULT, by_uring_short);
	writes("io_uring: no memory", -EFAULT, by_uring_nothing);
	writes("io_uring: an index that was not given", -ENOENT, by_uring_wrongly);
	writes("io_uring: read", -EINVAL, read_by_uring);
}

/*
 * --- 32-bit programs: none can register, but one can write an event that another one has
 * registered
 */

static long call32(const char *call, const char *argument, const char *text)
{
	const char *program = pathf("%s/caller32", getenv("OUT") ?: ".");
	char said[100] = "", descriptor[12];
	int pipes[2];
	pid_t pid;

	snprintf(descriptor, sizeof(descriptor), "%d", fd);
	if (pipe(pipes))
		return -EIO;
	if (!(pid = fork())) {
		fcntl(fd, F_SETFD, 0);
		dup2(pipes[1], 1);
		execl(program, program, call, descriptor, argument, text, NULL);
		_exit(127);
	}
	close(pipes[1]);
	if (read(pipes[0], said, sizeof(said) - 1) <= 0)
		strcpy(said, "-8");
	close(pipes[0]);
	waitpid(pid, NULL, 0);
	return strtol(said, NULL, 10);
}

static long by_32_bits(void)
{
	return call32("event", pathf("%d", event->index), pathf("%u", event->a));
}

static void programs_of_32_bits(void)
{
	static const struct {
		const char *name;
		unsigned int command;
	} requests[] = {
		{ "DIAG_IOCSREG", DIAG_IOCSREG }, { "DIAG_IOCSDEL", DIAG_IOCSDEL }, { "DIAG_IOCSUNREG", DIAG_IOCSUNREG },
		/* As a 32-bit header would define it, with the size of its own pointers. */
		{ "its own DIAG_IOCSREG", _IOWR('*', 0, int) }, { "its own DIAG_IOCSDEL", _IOW('*', 1, int) },
		{ "its own DIAG_IOCSUNREG", _IOW('*', 2, int) },
	};

	if (call32("getpgid", "0", NULL) < 0) {
		skip("this kernel runs no 32-bit programs, or the test was not compiled for it", "32-bit programs");
		return;
	}
	for (unsigned int i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		long error = call32("ioctl", pathf("%u", requests[i].command), "ca_none");

		if (!ok(error == -ENOTTY, "%s by a 32-bit program: ENOTTY", requests[i].name))
			note("%ld", error);
	}
	writes("write() by a 32-bit program", sizeof(*event), by_32_bits);
}

int main(void)
{
	event = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	event->a = 1000;
	fd = open_data();
	if (reg(fd, EVENT " u32 a", &bit, &index_of_one))
		die("%s is registered", EVENT);
	truncate_file(pathf("%s/trace", kernel_dir()));
	enable(EVENT, true);

	writes("write()", sizeof(*event), by_write);
	writes("writev() of an index in parts", sizeof(*event), by_writev);
	writes("pwrite()", sizeof(*event), by_pwrite);
	writes("pwrite() at another position", -EFAULT, by_pwrite_later);
	writes("pwritev()", sizeof(*event), by_pwritev);
	writes("pwritev() at another position", testing_c() ? (long)sizeof(*event) : -EFAULT, by_pwritev_later);
	writes("pwritev2() where the file is", sizeof(*event), by_pwritev2);
	writes("pwritev2(RWF_SYNC)", sizeof(*event), by_pwritev2_synced);
	writes("pwritev2(RWF_APPEND)", sizeof(*event), by_pwritev2_appending);
	writes("pwritev2(RWF_HIPRI)", sizeof(*event), by_pwritev2_polled);
	writes("pwritev2(RWF_NOWAIT)", -EOPNOTSUPP, by_pwritev2_now);
	writes("pwritev2() with an unknown flag", -EOPNOTSUPP, by_pwritev2_else);
	writes("sendfile()", -EINVAL, by_sendfile);
	writes("splice()", -EINVAL, by_splice);
	writes("aio: write", sizeof(*event), by_aio_write);
	writes("aio: writev", sizeof(*event), by_aio_writev);
	io_uring();
	programs_of_32_bits();

	enable(EVENT, false);
	ok(bit == 0 && !unreg(fd, &bit, 0), "the bit is clear in the end, and is unregistered");
	close(fd);
	ok(within_seconds(20, !exists(EVENT)), "and the event goes with its file");
	truncate_file(pathf("%s/trace", kernel_dir()));
	finish();
}
