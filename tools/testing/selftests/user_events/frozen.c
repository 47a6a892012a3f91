// SPDX-License-Identifier: GPL-2.0
// Programs whose memory faults are never answered: only their own calls hang.
//
// Their memory is a file of a FUSE server, which is part of this test and decides when a page
// comes.
#define _GNU_SOURCE
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mount.h>

#include "client.h"

/* Limit in seconds for a healthy program's wait. A failure takes for ever. */
enum { SOON = 5 };

enum { MANY = 1100 };

/* Shared by all processes of this test. */
static struct {
	/* The server does not answer READ. */
	volatile bool hold;
	/* Requests that it has not answered. */
	volatile unsigned int held;
	/* Bits are registered. */
	volatile unsigned int ready;
	/* Number of processes that find their bits right, and wrong. */
	volatile unsigned int right, wrong;
	volatile bool end;
} *shared;

static volatile unsigned int bit, second_bit;
static long page;
static int data;
static char directory[] = "/tmp/frozen-XXXXXX";

/* --- the server --- */

static void answer(int fuse, uint64_t unique, int error, const void *body, size_t len)
{
	struct fuse_out_header header = { .len = sizeof(header) + len, .error = error, .unique = unique };
	struct iovec io[2] = {
		{ .iov_base = &header, .iov_len = sizeof(header) },
		{ .iov_base = (void *)body, .iov_len = len },
	};

	/* The request may have been cancelled. */
	if (writev(fuse, io, 2) < 0 && errno != ENOENT)
		_exit(1);
}

static struct fuse_attr attr_of(uint64_t node)
{
	return (struct fuse_attr) {
		.ino = node, .size = node == 1 ? 0 : 2 * page, .blksize = page,
		.mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0644, .nlink = 1,
	};
}

static void handle(int fuse, const struct fuse_in_header *in, const void *argument)
{
	static char zeros[1 << 16];

	switch (in->opcode) {
	case FUSE_INIT: {
		struct fuse_init_out out = {
			.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = page,
		};

		answer(fuse, in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_LOOKUP: {
		struct fuse_entry_out out = { .nodeid = 2, .attr = attr_of(2) };

		answer(fuse, in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_GETATTR: {
		struct fuse_attr_out out = { .attr = attr_of(in->nodeid) };

		answer(fuse, in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_OPEN: {
		const struct fuse_open_in *open = argument;
		/*
		 * mmap() of a file that is opened for direct I/O waits for its pages, with
		 * mmap_lock held.
		 */
		struct fuse_open_out out = {
			.open_flags = (open->flags & O_ACCMODE) == O_RDWR ?
				      FOPEN_DIRECT_IO | FOPEN_KEEP_CACHE : 0,
		};

		answer(fuse, in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_READ: {
		const struct fuse_read_in *read = argument;

		answer(fuse, in->unique, 0, zeros, read->size < sizeof(zeros) ? read->size : sizeof(zeros));
		break;
	}
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		answer(fuse, in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(fuse, in->unique, -ENOSYS, NULL, 0);
	}
}

/* Until the file system is unmounted. */
static void serve(int fuse)
{
	struct request {
		struct fuse_in_header header;
		char argument[1 << 17];
	};
	static struct request request, waiting[8];
	struct pollfd poll_for = { .fd = fuse, .events = POLLIN };

	for (;;) {
		for (; !shared->hold && shared->held; shared->held--)
			handle(fuse, &waiting[shared->held - 1].header, waiting[shared->held - 1].argument);
		if (poll(&poll_for, 1, 10) < 1)
			continue;
		if (read(fuse, &request, sizeof(request)) < 0) {
			if (errno == ENODEV)
				_exit(0);
			continue;
		}
		if (shared->hold && request.header.opcode == FUSE_READ && shared->held < 8)
			waiting[shared->held++] = request;
		else
			handle(fuse, &request.header, request.argument);
	}
}

/* Mounts it. Returns the process of the server, or 0 without FUSE. */
static pid_t start_server(void)
{
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	pid_t pid;

	if (fuse < 0)
		return 0;
	if (!mkdtemp(directory) || mount("frozen", directory, "fuse", 0,
					 pathf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse)))
		die("a file system is mounted: %s", strerror(errno));
	pid = fork();
	if (!pid)
		serve(fuse);
	close(fuse);
	return pid;
}

static int open_served(int flags)
{
	int fd = open(pathf("%s/file", directory), flags | O_CLOEXEC);

	if (fd < 0)
		_exit(2);
	return fd;
}

/* --- work of others meanwhile --- */

/* Runs a function in a process. Returns true if it returned true, and soon. */
static bool soon(bool (*what)(void))
{
	double begin = now();
	pid_t pid = fork();
	int status = 1;

	if (!pid)
		_exit(what() ? 0 : 1);
	if (!within_seconds(SOON, waitpid(pid, &status, WNOHANG) == pid)) {
		/* It may hang where it cannot be killed. */
		kill(pid, SIGKILL);
		note("not within %d seconds", SOON);
		return false;
	}
	note("%.0f ms", 1000 * (now() - begin));
	return !status;
}

static bool enables_it(void)
{
	return !enable("fz_frozen", true);
}

static bool disables_it(void)
{
	return !enable("fz_frozen", false);
}

static bool enables_other(void)
{
	return !enable("fz_other", true);
}

static bool disables_other(void)
{
	return !enable("fz_other", false);
}

static bool lists(void)
{
	return slurp(pathf("%s/dynamic_events", kernel_dir()));
}

static bool registers(void)
{
	static volatile unsigned int own;
	int fd = open_data(), index, value = 1;

	return !reg(fd, "fz_new u32 a", &own, &index) && emit(fd, index, &value, 4) == -EBADF &&
	       !unreg(fd, &own, 0);
}

static bool registers_again(void)
{
	return !unreg(data, &second_bit, 0) && !reg(data, "fz_other", &second_bit, NULL);
}

/* All others go on while the bit of the enabled event cannot be written. */
static void others_go_on(const char *when)
{
	ok(soon(enables_it), "%s: its event is enabled", when);
	ok(soon(lists), "%s: dynamic_events is read", when);
	ok(soon(registers), "%s: another program registers, for the first time", when);
	/* In a page that is shared with children, so it cannot be written at once. */
	ok(soon(enables_other) && within_seconds(SOON, bit), "%s: bits of another program follow", when);
	ok(soon(disables_other) && within_seconds(SOON, !bit), "%s: and again", when);
	ok(soon(registers_again), "%s: another program registers once more", when);
}

/* --- frozen programs --- */

static void tell(bool right)
{
	__atomic_add_fetch(right ? &shared->right : &shared->wrong, 1, __ATOMIC_RELAXED);
}

static volatile unsigned int frozen_bit;

static void *registers_always(void *fd)
{
	static volatile unsigned int own;

	while (!shared->end) {
		reg(*(int *)fd, "fz_frozen", &own, NULL);
		unreg(*(int *)fd, &own, 0);
	}
	return NULL;
}

/* Waits for a page with mmap_lock held for writing. */
static void freeze(void)
{
	mmap(NULL, page, PROT_READ, MAP_PRIVATE, open_served(O_RDWR), 0);
	/* Looks seldom, as a thousand of these keep the processor busy. */
	for (int i = 0; i < 120 * 4 && !frozen_bit; i++)
		sleep_ms(250);
	tell(frozen_bit);
	_exit(0);
}

/* Has children that freeze, and freezes. */
static void freezes(unsigned int children)
{
	int fd = open_data();
	pthread_t thread;

	if (reg(fd, "fz_frozen", &frozen_bit, NULL))
		_exit(1);
	for (unsigned int i = 0; i < children; i++) {
		pid_t pid = fork();

		if (pid < 0)
			_exit(1);
		if (!pid) {
			__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELAXED);
			freeze();
		}
	}
	pthread_create(&thread, NULL, registers_always, &fd);
	sleep_ms(50);
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELAXED);
	freeze();
}

/* Returns true if a process waits uninterruptibly. */
static bool stuck(pid_t pid)
{
	char *stat = slurp(pathf("/proc/%d/stat", pid)), *state = stat ? strrchr(stat, ')') : NULL;
	bool is = state && state[2] == 'D';

	free(stat);
	return is;
}

static void begin(void)
{
	shared->ready = shared->right = shared->wrong = 0;
	shared->end = false;
	shared->hold = true;
}

/* The server answers, and processes see their bits. */
static void release(unsigned int processes, const char *who)
{
	shared->hold = false;
	within_seconds(130, shared->right + shared->wrong >= processes);
	ok(shared->right == processes, "%s: %u of %u find their bits right when the page comes", who,
	   shared->right, processes);
	shared->end = true;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	ok(soon(disables_it), "%s: its event is disabled", who);
}

static void mmap_lock(const char *who, unsigned int children)
{
	pid_t reader, pid;
	char byte;

	begin();
	reader = fork();
	if (!reader)
		/* The page is locked until it arrives. */
		_exit(read(open_served(O_RDONLY), &byte, 1) != 1);
	within_seconds(20, shared->held);
	pid = fork();
	if (!pid)
		freezes(children);
	ok(within_seconds(120, shared->ready == children + 1) && within_seconds(20, stuck(pid)),
	   "%s holds its mmap_lock", who);
	/* The children, too. */
	sleep_ms(500);
	others_go_on(who);
	release(children + 1, who);
	waitpid(reader, NULL, 0);
}

/* The page of the bit is a private copy of a page in the file, which it removes. */
static void loses_page(void)
{
	int fd = open_data();
	volatile unsigned int *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE,
					 open_served(O_RDONLY), page);

	if (at == MAP_FAILED || reg(fd, "fz_frozen", at, NULL))
		_exit(1);
	madvise((void *)at, page, MADV_DONTNEED);
	/* The next open() removes it from the page cache. */
	open_served(O_RDONLY);
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELAXED);
	/* Looking at the bit would bring the page. */
	within_seconds(20, shared->hold);
	within_seconds(120, !shared->hold);
	tell(within_seconds(120, *at));
	_exit(0);
}

static char elsewhere[] = "/tmp/frozen-XXXXXX";

/*
 * It has also mapped a file of a file system that stays in use as long as the address space exists.
 */
static void loses_page_and_waits(void)
{
	int fd = open(pathf("%s/file", elsewhere), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, page) || mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED || close(fd))
		_exit(1);
	loses_page();
}

/* Only the server can end the wait for a page, but that does not keep a dead program's memory. */
static void dead_program(void)
{
	static const char who[] = "a program that ends while its page does not come";
	pid_t pid;

	if (!mkdtemp(elsewhere) || mount("frozen", elsewhere, "tmpfs", 0, NULL))
		die("a file system is mounted: %s", strerror(errno));
	begin();
	shared->hold = false;
	pid = fork();
	if (!pid)
		loses_page_and_waits();
	ok(within_seconds(20, shared->ready), "%s", who);
	shared->hold = true;
	ok(soon(enables_it) && within_seconds(SOON, shared->held), "%s: it is asked for", who);
	kill(pid, SIGKILL);
	ok(waitpid(pid, NULL, 0) == pid, "%s: it ends", who);
	ok(within_seconds(SOON, !umount(elsewhere)), "%s: and what it had is free", who);
	ok(shared->held, "%s: before the page comes", who);
	release(0, who);
	umount2(elsewhere, MNT_DETACH);
	rmdir(elsewhere);
}

static void file_page(void)
{
	static const char who[] = "a page of a file that does not come";

	begin();
	shared->hold = false;
	if (!fork())
		loses_page();
	ok(within_seconds(20, shared->ready), "%s", who);
	shared->hold = true;
	others_go_on(who);
	ok(within_seconds(SOON, shared->held), "%s: it is asked for", who);
	release(1, who);
}

int main(void)
{
	pid_t server;

	page = sysconf(_SC_PAGESIZE);
	shared = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	server = start_server();
	if (!server) {
		skip("no /dev/fuse", "programs that freeze their memory");
		finish();
	}
	data = open_data();
	ok(!reg(data, "fz_other", &bit, NULL) && !reg(data, "fz_other", &second_bit, NULL), "another program");
	mmap_lock("a program", 0);
	mmap_lock("more of them than work is done at once", slow_kernel() ? 40 : MANY);
	file_page();
	dead_program();
	unreg(data, &bit, 0);
	unreg(data, &second_bit, 0);
	close(data);
	umount2(directory, MNT_DETACH);
	rmdir(directory);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	ok(within_seconds(10, !exists("fz_frozen") && !exists("fz_other") && !exists("fz_new")), "in the end all is gone");
	finish();
}
