// SPDX-License-Identifier: GPL-2.0
/*
 * Every way to call: each system call that opens, reads, writes or queries a file or directory
 * below rhist gets the same answer as on the kernel's own file of that name, and has the same
 * effect. 32-bit programs too.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "uring.h"

#define EVENT "events/syscalls/sys_enter_getpgid"
static const char trigger[] = "hist:keys=pid:size=2048";

static struct uring ring;
static bool have_uring;
static aio_context_t aio;
static char *buffer;			/* registered with the ring */
static void *volatile nowhere = (void *)8;
enum { BUFFER = 1 << 18 };

/* --- reading: the bytes are in the buffer; returns the length, or a negative errno */

static long answer(long result)
{
	return result < 0 ? -errno : result;
}

/* Reads on until the end, as a program does. */
static long rest(int fd, size_t size)
{
	long len = 0, got;

	while ((got = read(fd, buffer + len, size)) > 0)
		len += got;
	return got < 0 ? answer(got) : len;
}

static long reads(int fd) { return rest(fd, 65536); }
static long reads_a_byte_each(int fd) { return rest(fd, 1); }
static long reads_seven(int fd) { return rest(fd, 7); }
static long reads_pages(int fd) { return rest(fd, 4096); }
static long reads_nothing(int fd) { return answer(read(fd, buffer, 0)); }
static long reads_to_nowhere(int fd) { return answer(read(fd, nowhere, 100)); }
static long preads(int fd) { return answer(pread(fd, buffer, 100, 0)); }
static long preads_later(int fd) { return answer(pread(fd, buffer, 100, 30)); }
static long preads_behind(int fd) { return answer(pread(fd, buffer, 100, 1 << 24)); }
static long preads_before(int fd) { return answer(pread(fd, buffer, 100, -1)); }

static long preads_back_and_forth(int fd)
{
	long len = 0;

	for (int at = 200; at >= 0; at -= 50) {
		long got = pread(fd, buffer + len, 60, at);

		if (got < 0)
			return answer(got);
		len += got;
	}
	return len;
}

static const struct iovec *segments(void)
{
	static struct iovec io[4];

	io[0] = (struct iovec){ buffer, 10 };
	io[1] = (struct iovec){ buffer + 10, 0 };
	io[2] = (struct iovec){ buffer + 10, 50 };
	io[3] = (struct iovec){ buffer + 60, 20000 };
	return io;
}

static long readvs(int fd) { return answer(readv(fd, segments(), 4)); }
static long preadvs(int fd) { return answer(preadv(fd, segments(), 4, 20)); }
static long preadv2s(int fd) { return answer(preadv2(fd, segments(), 4, 20, 0)); }
static long preadv2s_here(int fd) { return answer(preadv2(fd, segments(), 4, -1, 0)); }
static long preadv2s_now(int fd) { return answer(preadv2(fd, segments(), 4, 0, RWF_NOWAIT)); }
static long preadv2s_polled(int fd) { return answer(preadv2(fd, segments(), 4, 0, RWF_HIPRI)); }
static long preadv2s_else(int fd) { return answer(preadv2(fd, segments(), 4, 0, 1 << 30)); }

static long seeks(int fd)
{
	static const int whences[] = { SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA, SEEK_HOLE, 77 };
	/* Of larger ones tracing_lseek() returns the lower half. */
	static const long offsets[] = { 0, 5, 40, -3, 1 << 24, LONG_MIN };
	long len = 0;

	for (unsigned int i = 0; i < sizeof(whences) / sizeof(*whences); i++)
		for (unsigned int j = 0; j < sizeof(offsets) / sizeof(*offsets); j++) {
			long at;

			lseek(fd, 0, SEEK_SET);
			if (read(fd, buffer + len, 10) < 0) {}
			at = lseek(fd, offsets[j], whences[i]);
			len += sprintf(buffer + len, "%d,%ld:%ld ", whences[i], offsets[j], at < 0 ? answer(at) : at);
		}
	return len;
}

static long seeks_and_reads(int fd)
{
	long at = lseek(fd, 35, SEEK_SET);

	return at < 0 ? answer(at) : rest(fd, 100);
}

static long from_pipe(int fd, long got)
{
	return got < 0 ? answer(got) : answer(read(fd, buffer, BUFFER));
}

static long splices(int fd)
{
	int pipes[2];
	long got;

	if (pipe2(pipes, O_NONBLOCK))
		return 0;
	got = from_pipe(pipes[0], splice(fd, NULL, pipes[1], NULL, 4096, 0));
	close(pipes[0]);
	close(pipes[1]);
	return got;
}

static long sendfiles(int fd)
{
	int pipes[2];
	long got;

	if (pipe2(pipes, O_NONBLOCK))
		return 0;
	got = from_pipe(pipes[0], sendfile(pipes[1], fd, NULL, 4096));
	close(pipes[0]);
	close(pipes[1]);
	return got;
}

static long copies_range(int fd)
{
	int memory = memfd_create("callers", 0);
	long got = answer(copy_file_range(fd, NULL, memory, NULL, 4096, 0));

	close(memory);
	return got;
}

static long aio_request(int fd, int opcode, const void *at, size_t len, long offset)
{
	struct iocb request = { .aio_lio_opcode = opcode, .aio_fildes = fd, .aio_buf = (uintptr_t)at, .aio_nbytes = len,
				.aio_offset = offset }, *requests = &request;
	struct io_event event;

	if (syscall(SYS_io_submit, aio, 1, &requests) != 1)
		return -errno;
	return syscall(SYS_io_getevents, aio, 1, 1, &event, NULL) == 1 ? (long)event.res : -ETIME;
}

static long aio_reads(int fd) { return aio_request(fd, IOCB_CMD_PREAD, buffer, 100, 0); }
static long aio_readvs(int fd) { return aio_request(fd, IOCB_CMD_PREADV, segments(), 4, 0); }

static long uring_reads(int fd) { return uring_rw(&ring, IORING_OP_READ, fd, buffer, 100, 0); }
static long uring_reads_all(int fd) { return uring_rw(&ring, IORING_OP_READ, fd, buffer, 1 << 17, 0); }
static long uring_reads_later(int fd) { return uring_rw(&ring, IORING_OP_READ, fd, buffer, 100, 30); }
static long uring_readvs(int fd) { return uring_rw(&ring, IORING_OP_READV, fd, segments(), 4, 0); }
static long uring_reads_fixed(int fd) { return uring_rw(&ring, IORING_OP_READ_FIXED, fd, buffer, 100, 0); }
static long uring_syncs(int fd) { return uring_rw(&ring, IORING_OP_FSYNC, fd, NULL, 0, 0); }

static long uring_reads_here(int fd)
{
	long first = uring_rw(&ring, IORING_OP_READ, fd, buffer, 20, -1), second;

	/*
	 * io_uring polls a file that has poll(): after a read of a histogram it waits for the next
	 * hit of it.
	 */
	syscall(SYS_getpgid, 1);
	second = uring_rw(&ring, IORING_OP_READ, fd, buffer + 20, 20, -1);
	return first < 0 ? first : second < 0 ? second : first + second;
}

/* --- all other system calls on a descriptor */

static long maps(int fd)
{
	static const int kinds[][2] = {
		{ PROT_READ, MAP_SHARED }, { PROT_READ, MAP_PRIVATE }, { PROT_READ | PROT_WRITE, MAP_SHARED },
		{ PROT_EXEC, MAP_PRIVATE },
	};
	long len = 0;

	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		void *at = mmap(NULL, 4096, kinds[i][0], kinds[i][1], fd, 0);

		len += sprintf(buffer + len, "%s ", errno_name(at == MAP_FAILED ? errno : 0));
	}
	return len;
}

#define SAY(call) (len += sprintf(buffer + len, "%s ", errno_name((call) < 0 ? errno : 0)))

static long changes(int fd)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } };
	long len = 0;

	SAY(fsync(fd)); SAY(fdatasync(fd)); SAY(ftruncate(fd, 0)); SAY(ftruncate(fd, 100)); SAY(fallocate(fd, 0, 0, 100));
	SAY(sync_file_range(fd, 0, 100, 0)); SAY(readahead(fd, 0, 100)); SAY(-posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	SAY(futimens(fd, times)); SAY(fsetxattr(fd, "user.x", "", 0, 0)); SAY(fsetxattr(fd, "trusted.x", "", 0, 0));
	SAY(fgetxattr(fd, "user.x", NULL, 0)); SAY(flistxattr(fd, NULL, 0)); SAY(fremovexattr(fd, "user.x"));
	SAY(flock(fd, LOCK_EX | LOCK_NB)); SAY(flock(fd, LOCK_UN)); SAY(fchdir(fd));
	SAY(fcntl(fd, F_SETLEASE, F_RDLCK)); SAY(fcntl(fd, F_SETLEASE, F_UNLCK)); SAY(fcntl(fd, F_SETFL, O_DIRECT));
	SAY(fcntl(fd, F_SETFL, O_ASYNC)); SAY(fcntl(fd, F_SETFL, O_APPEND)); SAY(fcntl(fd, F_SETFL, 0));
	SAY(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE)); SAY(fcntl(fd, F_SETPIPE_SZ, 4096));
	if (chdir("/"))
		return -errno;
	return len;
}

static long asks(int fd)
{
	struct file_handle handle = { 0 };
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN | POLLOUT | POLLPRI };
	struct epoll_event event = { .events = EPOLLIN };
	struct statfs fs;
	struct statx x;
	int epoll = epoll_create1(0), notify = inotify_init(), number, mount;
	long len = 0;

	SAY(ioctl(fd, FIONREAD, &number)); SAY(ioctl(fd, FIGETBSZ, &number)); SAY(ioctl(fd, FS_IOC_GETFLAGS, &number));
	SAY(ioctl(fd, FIFREEZE, 0)); SAY(ioctl(fd, FIONBIO, &number)); SAY(ioctl(fd, 0x5401, buffer + 65536));
	SAY(ioctl(fd, 0xdeadbeef, 0)); SAY(ioctl(fd, _IO('R', 0x20), 0));
	SAY(name_to_handle_at(fd, "", &handle, &mount, AT_EMPTY_PATH));
	SAY(inotify_add_watch(notify, pathf("/proc/self/fd/%d", fd), IN_ACCESS));
	SAY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)); SAY(getdents64(fd, buffer + 65536, 0));
	SAY(fstatfs(fd, &fs)); SAY(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &x));
	SAY(linkat(AT_FDCWD, pathf("/proc/self/fd/%d", fd), AT_FDCWD, "/tmp/callers", AT_SYMLINK_FOLLOW));
	poll(&poll_fd, 1, 0);
	close(epoll);
	close(notify);
	return len + sprintf(buffer + len, "poll %x type %lx mode %o nlink %u:%u:%u size %llu block %u blocks %llu attr %llx",
			     poll_fd.revents, (long)fs.f_type, x.stx_mode, x.stx_nlink, x.stx_uid, x.stx_gid, x.stx_size,
			     x.stx_blksize, x.stx_blocks, x.stx_attributes);
}

static long asks_what_is_below(int fd)
{
	char *name;
	long len = 0;

	if (asprintf(&name, "/proc/self/fd/%d/x", fd) < 0)
		return -ENOMEM;
	SAY(open(name, O_CREAT | O_WRONLY, 0600)); SAY(mkdir(name, 0700)); SAY(symlink("/", name)); SAY(mknod(name, S_IFIFO, 0));
	SAY(unlink(name)); SAY(rmdir(name)); SAY(access(name, F_OK)); SAY(rename(name, "/tmp/x")); SAY(truncate(name, 0));
	SAY(unlinkat(fd, "", AT_REMOVEDIR)); SAY(openat(fd, ".", O_TMPFILE | O_RDWR, 0600)); SAY(openat(fd, "..", O_PATH));
	SAY(link("/proc/version", name)); SAY(chmod(name, 0)); SAY(execveat(fd, "", (char *[]){ NULL }, NULL, AT_EMPTY_PATH));
	free(name);
	return len;
}

static const struct reading {
	const char *name;
	long (*run)(int fd);
	bool uring, again;	/* again: a short run has it even if user-mode Linux runs it, too */
} readings[] = {
	{ "read()", reads, false, false }, { "read() of a byte each", reads_a_byte_each, false, false },
	{ "read() of seven bytes each", reads_seven, false, false }, { "read() of a page each", reads_pages, false, false },
	{ "read() of nothing", reads_nothing, false, false }, { "read() into no memory", reads_to_nowhere, false, false },
	{ "pread()", preads, false, false }, { "pread() at another position", preads_later, false, false },
	{ "pread() behind the end", preads_behind, false, false }, { "pread() before the beginning", preads_before, false, false },
	{ "pread() back and forth", preads_back_and_forth, false, false },
	{ "readv()", readvs, false, false }, { "preadv()", preadvs, false, false }, { "preadv2()", preadv2s, false, false },
	{ "preadv2() where the file is", preadv2s_here, false, false }, { "preadv2(RWF_NOWAIT)", preadv2s_now, false, false },
	{ "preadv2(RWF_HIPRI)", preadv2s_polled, false, false }, { "preadv2() with an unknown flag", preadv2s_else, false, false },
	{ "lseek() everywhere", seeks, false, false }, { "lseek() and read()", seeks_and_reads, false, false },
	{ "splice() to a pipe", splices, false, false }, { "sendfile() to a pipe", sendfiles, false, false },
	{ "copy_file_range()", copies_range, false, false },
	{ "aio: read", aio_reads, false, false }, { "aio: readv", aio_readvs, false, false },
	{ "io_uring: read", uring_reads, true, true }, { "io_uring: read all", uring_reads_all, true, true },
	{ "io_uring: read at another position", uring_reads_later, true, true },
	{ "io_uring: read where the file is", uring_reads_here, true, true },
	{ "io_uring: readv", uring_readvs, true, true }, { "io_uring: read into a fixed buffer", uring_reads_fixed, true, true },
	{ "io_uring: fsync", uring_syncs, true, true },
	{ "mmap()", maps, false, false }, { "calls that change a file", changes, false, false },
	{ "calls that ask a file", asks, false, false },
	{ "calls for what could be below it", asks_what_is_below, false, false },
};

/* --- writing: returns the number of bytes written, or a negative errno */

static long writes(int fd) { return answer(write(fd, trigger, strlen(trigger))); }
static long writes_nothing(int fd) { return answer(write(fd, trigger, 0)); }
static long writes_from_nowhere(int fd) { return answer(write(fd, nowhere, 20)); }
static long pwrites(int fd) { return answer(pwrite(fd, trigger, strlen(trigger), 0)); }
static long pwrites_later(int fd) { return answer(pwrite(fd, trigger, strlen(trigger), 7)); }
static long pwrites_before(int fd) { return answer(pwrite(fd, trigger, strlen(trigger), -1)); }

/* The command ends with its page; the next page is unreadable. */
static long writes_over_the_edge(int fd)
{
	char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long done;

	munmap(at + 4096, 4096);
	memcpy(at + 4096 - 10, trigger, 10);
	done = answer(write(fd, at + 4096 - 10, strlen(trigger)));
	munmap(at, 4096);
	return done;
}

static long writes_of(int fd, size_t len)
{
	memset(buffer, ' ', len);
	memcpy(buffer, trigger, strlen(trigger));
	return answer(write(fd, buffer, len));
}

static long writes_nearly_a_page(int fd) { return writes_of(fd, 4095); }
static long writes_a_page(int fd) { return writes_of(fd, 4096); }
static long writes_much(int fd) { return writes_of(fd, BUFFER); }

/* Each segment is a command. */
static const struct iovec *commands(void)
{
	static const struct iovec io[3] = {
		{ (char *)trigger, sizeof(trigger) - 1 }, { "hist:keys=common_pid:size=128", 29 },
		{ "hist:keys=common_cpu:size=128", 29 },
	};

	return io;
}

/* The first one is taken. */
static const struct iovec *broken(void)
{
	static const struct iovec io[3] = {
		{ (char *)trigger, sizeof(trigger) - 1 }, { "hist:keys=", 10 }, { "pid", 3 },
	};

	return io;
}

static long writevs(int fd) { return answer(writev(fd, commands(), 3)); }
static long writevs_broken(int fd) { return answer(writev(fd, broken(), 3)); }
static long pwritevs(int fd) { return answer(pwritev(fd, commands(), 3, 0)); }
static long pwritevs_later(int fd) { return answer(pwritev(fd, commands(), 3, 9)); }
static long pwritev2s(int fd) { return answer(pwritev2(fd, commands(), 3, 9, 0)); }
static long pwritev2s_here(int fd) { return answer(pwritev2(fd, commands(), 3, -1, 0)); }
static long pwritev2s_synced(int fd) { return answer(pwritev2(fd, commands(), 3, 0, RWF_SYNC)); }
static long pwritev2s_appending(int fd) { return answer(pwritev2(fd, commands(), 3, 0, RWF_APPEND)); }
static long pwritev2s_now(int fd) { return answer(pwritev2(fd, commands(), 3, 0, RWF_NOWAIT)); }
static long pwritev2s_polled(int fd) { return answer(pwritev2(fd, commands(), 3, 0, RWF_HIPRI)); }

static long sends(int fd)
{
	int memory = memfd_create("callers", 0);
	long done;

	if (write(memory, trigger, strlen(trigger)) < 0 || lseek(memory, 0, SEEK_SET))
		return -EIO;
	done = answer(sendfile(fd, memory, NULL, strlen(trigger)));
	close(memory);
	return done;
}

static long splices_from(int fd)
{
	int pipes[2];
	long done;

	if (pipe(pipes) || write(pipes[1], trigger, strlen(trigger)) < 0)
		return -EIO;
	done = answer(splice(pipes[0], NULL, fd, NULL, strlen(trigger), 0));
	close(pipes[0]);
	close(pipes[1]);
	return done;
}

static long copies_range_to(int fd)
{
	int memory = memfd_create("callers", 0);
	long done;

	if (write(memory, trigger, strlen(trigger)) < 0 || lseek(memory, 0, SEEK_SET))
		return -EIO;
	done = answer(copy_file_range(memory, NULL, fd, NULL, strlen(trigger), 0));
	close(memory);
	return done;
}

/* Runs each kind of write(), with a removal before it. */
static long writes_twice_and_removes(int fd)
{
	const char *remove = pathf("!%s", trigger);
	long done = writes(fd);

	return done < 0 ? done : answer(write(fd, remove, strlen(remove)));
}

static long aio_writes(int fd) { return aio_request(fd, IOCB_CMD_PWRITE, trigger, strlen(trigger), 0); }
static long aio_writevs(int fd) { return aio_request(fd, IOCB_CMD_PWRITEV, commands(), 3, 0); }
static long uring_writes(int fd) { return uring_rw(&ring, IORING_OP_WRITE, fd, trigger, strlen(trigger), 0); }
static long uring_writes_later(int fd) { return uring_rw(&ring, IORING_OP_WRITE, fd, trigger, strlen(trigger), 5); }
static long uring_writes_here(int fd) { return uring_rw(&ring, IORING_OP_WRITE, fd, trigger, strlen(trigger), -1); }
static long uring_writevs(int fd) { return uring_rw(&ring, IORING_OP_WRITEV, fd, commands(), 3, 0); }
static long uring_writevs_broken(int fd) { return uring_rw(&ring, IORING_OP_WRITEV, fd, broken(), 3, 0); }
static long uring_writes_from_nowhere(int fd) { return uring_rw(&ring, IORING_OP_WRITE, fd, nowhere, 20, 0); }

static long uring_writes_fixed(int fd)
{
	memcpy(buffer, trigger, sizeof(trigger));
	return uring_rw(&ring, IORING_OP_WRITE_FIXED, fd, buffer, strlen(trigger), 0);
}

static const struct reading writings[] = {
	{ "write()", writes, false, false }, { "write() of nothing", writes_nothing, false, false },
	{ "write() of no memory", writes_from_nowhere, false, false },
	{ "write() of a text that ends in no memory", writes_over_the_edge, false, false },
	{ "write() of 4095 bytes", writes_nearly_a_page, false, false }, { "write() of a page", writes_a_page, false, false },
	{ "write() of a quarter of a megabyte", writes_much, false, false },
	{ "write() of a trigger, and of its removal", writes_twice_and_removes, false, false },
	{ "pwrite()", pwrites, false, false }, { "pwrite() at another position", pwrites_later, false, false },
	{ "pwrite() before the beginning", pwrites_before, false, false },
	{ "writev()", writevs, false, false }, { "writev() of parts of a command", writevs_broken, false, false },
	{ "pwritev()", pwritevs, false, false }, { "pwritev() at another position", pwritevs_later, false, false },
	{ "pwritev2()", pwritev2s, false, false }, { "pwritev2() where the file is", pwritev2s_here, false, false },
	{ "pwritev2(RWF_SYNC)", pwritev2s_synced, false, false }, { "pwritev2(RWF_APPEND)", pwritev2s_appending, false, false },
	{ "pwritev2(RWF_NOWAIT)", pwritev2s_now, false, false }, { "pwritev2(RWF_HIPRI)", pwritev2s_polled, false, false },
	{ "sendfile() of a file", sends, false, false }, { "splice() of a pipe", splices_from, false, false },
	{ "copy_file_range()", copies_range_to, false, false },
	{ "aio: write", aio_writes, false, false }, { "aio: writev", aio_writevs, false, false },
	{ "io_uring: write", uring_writes, true, true }, { "io_uring: write at another position", uring_writes_later, true, true },
	{ "io_uring: write where the file is", uring_writes_here, true, true },
	{ "io_uring: writev", uring_writevs, true, true },
	{ "io_uring: writev of parts of a command", uring_writevs_broken, true, true },
	{ "io_uring: write of no memory", uring_writes_from_nowhere, true, true },
	{ "io_uring: write from a fixed buffer", uring_writes_fixed, true, true },
};

/* --- opening */

static const struct {
	const char *name;
	int flags;
} modes[] = {
	{ "O_RDONLY", O_RDONLY }, { "O_WRONLY", O_WRONLY }, { "O_RDWR", O_RDWR }, { "O_ACCMODE", O_ACCMODE },
	{ "O_PATH", O_PATH }, { "O_DIRECTORY", O_DIRECTORY }, { "O_NOFOLLOW", O_NOFOLLOW }, { "O_DIRECT", O_DIRECT },
	{ "O_CREAT", O_CREAT | O_RDWR }, { "O_EXCL", O_CREAT | O_EXCL | O_RDWR }, { "O_TRUNC, to be read", O_TRUNC },
	{ "O_TRUNC", O_TRUNC | O_WRONLY }, { "O_TRUNC and O_RDWR", O_TRUNC | O_RDWR }, { "O_APPEND", O_APPEND | O_RDWR },
	{ "O_TMPFILE", O_TMPFILE | O_RDWR }, { "O_SYNC", O_SYNC | O_RDWR }, { "O_NOATIME", O_NOATIME },
	{ "O_NONBLOCK", O_NONBLOCK | O_RDWR }, { "O_ASYNC", O_ASYNC | O_RDWR },
};

/* --- both sides */

static const char *shown(const char *text, long len)
{
	static char lines[2][200];
	static int next;
	char *line = escaped(text, len > 40 ? 40 : len);

	snprintf(lines[++next % 2], sizeof(*lines), "%s%s", line, len > 40 ? "..." : "");
	free(line);
	return lines[next % 2];
}

static char *trigger_text(const char *dir)
{
	char *text = slurp(pathf("%s/" EVENT "/trigger", dir));

	without_differences(text);
	return text;
}

/* Result of one side: the return value, the file's offset afterwards, and a text. */
struct said {
	long result, at;
	char *text;
	long len;
};

/* hist_debug shows the address of the histogram, also in parts. */
static void without_addresses(char *text)
{
	for (; *text; text++)
		if (isxdigit((unsigned char)*text))
			*text = '0';
}

static bool same(const struct said *c, const struct said *ours)
{
	return c->result == ours->result && c->at == ours->at && c->len == ours->len && !memcmp(c->text, ours->text, c->len);
}

static void compare(struct said *said, const char *file, const char *how)
{
	const struct said *c = &said[0], *ours = &said[1];

	if (!ok(same(c, ours), "%s: %s: %s", file, how, c->result < 0 ? errno_name(c->result) : "taken")) {
		long i = 0;

		while (i < c->len && i < ours->len && c->text[i] == ours->text[i])
			i++;
		i -= i > 10 ? 10 : i;
		note("C:    %ld (%s), at %ld, %ld bytes: %s", c->result, errno_name(c->result < 0 ? c->result : 0), c->at, c->len,
		     shown(c->text + i, c->len - i));
		note("ours: %ld (%s), at %ld, %ld bytes: %s", ours->result, errno_name(ours->result < 0 ? ours->result : 0),
		     ours->at, ours->len, shown(ours->text + i, ours->len - i));
	}
	free(c->text);
	free(ours->text);
}

static const char *dir_of(int side)
{
	return side ? tracing_dir() : kernel_dir();
}

/* Sets up both sides: a trigger that has counted the same hits, and an error in both logs. */
static void prepare(void)
{
	for (int side = 0; side < 2; side++) {
		int error = append(pathf("%s/" EVENT "/trigger", dir_of(side)),
				   pathf("%s if common_pid == %d", trigger, getpid()));

		if (error && !(side && testing_c()))
			die("%s: a trigger: %s", dir_of(side), errno_name(error));
	}
	for (long i = 0; i < 800; i++)
		syscall(SYS_getpgid, i * 7919 % 1000);
	truncate_file(pathf("%s/error_log", dir_of(1)));
	append(pathf("%s/" EVENT "/trigger", kernel_dir()), "hist:keys=nosuch");
}

static void clean(void)
{
	for (int side = 0; side < 2; side++)
		truncate_file(pathf("%s/" EVENT "/trigger", dir_of(side)));
	truncate_file(pathf("%s/error_log", dir_of(1)));
}

static void reading(const char *file, const struct reading *how, int flags)
{
	struct said said[2];

	for (int side = 0; side < 2; side++) {
		int fd = open(pathf("%s/%s", dir_of(side), file), flags);

		memset(buffer, 0, 1 << 17);
		if (fd < 0) {
			said[side] = (struct said){ -errno, 0, calloc(1, 1), 0 };
			continue;
		}
		said[side].result = how->run(fd);
		said[side].at = lseek(fd, 0, SEEK_CUR);
		said[side].len = said[side].result > 0 ? said[side].result : 0;
		said[side].text = malloc(said[side].len + 1);
		memcpy(said[side].text, buffer, said[side].len);
		said[side].text[said[side].len] = 0;
		if (strstr(file, "hist_debug"))
			without_addresses(said[side].text);
		close(fd);
	}
	compare(said, file, how->name);
}

static void writing(const char *file, const struct reading *how, int flags)
{
	struct said said[2];

	for (int side = 0; side < 2; side++) {
		int fd = open(pathf("%s/%s", dir_of(side), file), flags);

		clean();
		if (fd < 0) {
			said[side] = (struct said){ -errno, 0, calloc(1, 1), 0 };
			continue;
		}
		said[side].result = how->run(fd);
		said[side].at = lseek(fd, 0, SEEK_CUR);
		said[side].text = trigger_text(dir_of(side));
		said[side].len = strlen(said[side].text);
		close(fd);
	}
	clean();
	compare(said, file, how->name);
}

static void opening(const char *file, int mode)
{
	struct said said[2];

	for (int side = 0; side < 2; side++) {
		const char *path = pathf("%s/%s", dir_of(side), file);
		int fd;

		clean();
		append(pathf("%s/" EVENT "/trigger", dir_of(side)), trigger);
		fd = open(path, modes[mode].flags, 0600);
		said[side].result = fd < 0 ? -errno : 0;
		said[side].at = fd < 0 ? 0 : fcntl(fd, F_GETFL);
		said[side].text = trigger_text(dir_of(side));
		said[side].len = strlen(said[side].text);
		if (fd >= 0)
			close(fd);
	}
	clean();
	compare(said, file, modes[mode].name);
}

/* --- 32-bit programs */

static const struct {
	const char *file, *call, *argument, *text;
} calls32[] = {
	{ EVENT "/hist", "read", "4096", NULL }, { EVENT "/hist", "read", "11", NULL }, { EVENT "/hist", "pread", "30", NULL },
	{ EVENT "/hist", "readv", "0", NULL }, { EVENT "/hist", "preadv", "25", NULL }, { EVENT "/hist", "seek", "35", NULL },
	{ EVENT "/hist", "seek-far", "4294967295", NULL }, { EVENT "/hist", "sendfile", "0", NULL },
	{ EVENT "/hist", "ioctl", "21531", "" }, { EVENT "/hist", "getdents", "100", NULL },
	{ EVENT "/trigger", "read", "4096", NULL }, { EVENT "/trigger", "seek", "3", NULL },
	{ EVENT "/trigger", "ioctl", "21531", "" }, { "error_log", "read", "4096", NULL }, { "error_log", "preadv", "10", NULL },
	{ EVENT "/format", "read", "4096", NULL }, { "events/irq", "getdents", "4096", NULL }, { "events/irq", "getdents", "30", NULL },
	{ "events", "getdents", "100", NULL }, { "events", "getdents", "10", NULL },
	{ EVENT "/trigger", "write", "0", "hist:keys=pid:size=128" }, { EVENT "/trigger", "write", "0", "hist:keys=nosuch" },
	{ EVENT "/trigger", "writev", "0", "hist:keys=pid:size=128hist:keys=common_cpu   " },
	{ EVENT "/trigger", "pwrite", "5", "hist:keys=pid:size=128" },
	{ EVENT "/trigger", "pwritev", "5", "                      hist:keys=pid:size=128" },
	{ EVENT "/enable", "write", "0", "2" }, { EVENT "/hist", "write", "0", "x" }, { "error_log", "write", "0", "x" },
};

/* Returns the output of a program; the caller frees it. */
static char *output_of(long *len, const char *program, const char *const *arguments)
{
	char *text = calloc(1, 1 << 17);
	int pipes[2];
	ssize_t got;
	pid_t pid;

	*len = 0;
	if (pipe(pipes))
		die("pipe: %s", strerror(errno));
	if (!(pid = fork())) {
		dup2(pipes[1], 1);
		execv(program, (char *const *)arguments);
		_exit(127);
	}
	close(pipes[1]);
	while ((got = read(pipes[0], text + *len, (1 << 17) - *len - 1)) > 0)
		*len += got;
	close(pipes[0]);
	waitpid(pid, NULL, 0);
	return text;
}

static const char *program32;

static char *say32(long *len, const char *call, const char *path, const char *argument, const char *text)
{
	const char *const arguments[] = { program32, call, path, argument, text, NULL };

	return output_of(len, program32, arguments);
}

static void calls_of_32_bits(void)
{
	char *text;
	long len;

	text = program32 ? say32(&len, "getpgid", "0", NULL, NULL) : NULL;
	if (!text || !len) {
		free(text);
		skip("this kernel runs no 32-bit programs", "32-bit programs");
		return;
	}
	free(text);
	for (unsigned int i = 0; i < sizeof(calls32) / sizeof(*calls32); i++) {
		struct said said[2];

		clean();
		if (!calls32[i].text)
			prepare();
		for (int side = 0; side < 2; side++) {
			const char *path = pathf("%s/%s", dir_of(side), calls32[i].file);

			text = say32(&said[side].len, calls32[i].call, path, calls32[i].argument, calls32[i].text);
			said[side].result = strtol(text, NULL, 10);
			said[side].at = 0;
			if (calls32[i].text) {
				free(text);
				text = trigger_text(dir_of(side));
				said[side].len = strlen(text);
			}
			said[side].text = text;
		}
		compare(said, calls32[i].file, pathf("32 bits: %s%s%s", calls32[i].call, calls32[i].text ? " of " : "",
						     calls32[i].text ?: ""));
	}
	clean();

	/* The kernel has no separate events for these programs' system calls. */
	for (int side = 0; side < 2; side++) {
		append(pathf("%s/" EVENT "/trigger", dir_of(side)), "hist:keys=pid:size=128 if pid == 4711");
		append(pathf("%s/events/raw_syscalls/sys_enter/trigger", dir_of(side)), "hist:keys=id:size=2048 if id == 132");
	}
	free(say32(&len, "getpgid", "4711", NULL, NULL));
	for (int side = 0; side < 2; side++) {
		struct totals named = {}, raw = {};

		ok(read_totals(pathf("%s/" EVENT "/hist", dir_of(side)), &named) &&
		   read_totals(pathf("%s/events/raw_syscalls/sys_enter/hist", dir_of(side)), &raw) && !named.hits && raw.hits == 1,
		   "%s: a system call of a 32-bit program hits raw_syscalls, and no event of that call", side ? "ours" : "C");
		truncate_file(pathf("%s/events/raw_syscalls/sys_enter/trigger", dir_of(side)));
	}
	clean();
}

/* Adds to a text. */
__attribute__((format(printf, 2, 3)))
static void add(char *text, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, 65536 - used, format, args);
	va_end(args);
}

/* Adds the result of a system call. */
#define ADD(text, call) do { \
	long result = (call); \
	add(text, "%s: %ld %s\n", #call, result, result < 0 ? errno_name(errno) : ""); \
} while (0)

/* Reads the files in all manners. Returns the sizes, offsets, errors and bytes as text. */
static char *manners(const char *dir)
{
	char *said = calloc(1, 65536), buffer[4096], *volatile nowhere = (char *)8;
	const char *event = "events/syscalls/sys_enter_getpgid";
	static const char *const files[] = { "hist", "trigger" };

	if (append(pathf("%s/%s/trigger", dir, event), "hist:keys=pid:size=128"))
		return said;
	for (unsigned long i = 0; i < 20; i++)
		syscall(SYS_getpgid, i % 6);
	for (unsigned int f = 0; f < 2; f++) {
		int fd = open(pathf("%s/%s/%s", dir, event, files[f]), O_RDONLY);
		int other = open(pathf("%s/%s/%s", dir, event, files[f]), O_RDONLY);
		ssize_t got;

		/* piece by piece */
		while ((got = read(fd, buffer, 7)) > 0)
			add(said, "%.*s", (int)got, buffer);
		add(said, "\nend %zd, at %ld\n", got, (long)lseek(fd, 0, SEEK_CUR));
		/* somewhere else, and behind the end */
		got = pread(fd, buffer, 30, 20);
		add(said, "%zd %.*s\n", got, (int)(got > 0 ? got : 0), buffer);
		ADD(said, pread(fd, buffer, 30, 100000));
		ADD(said, lseek(fd, -5, SEEK_SET));
		ADD(said, lseek(fd, 0, SEEK_END));
		ADD(said, lseek(fd, 10, SEEK_SET));
		got = read(fd, buffer, 20);
		add(said, "%zd %.*s\n", got, (int)(got > 0 ? got : 0), buffer);
		/* From the start on, the text is made anew. */
		syscall(SYS_getpgid, 99);
		ADD(said, lseek(fd, 0, SEEK_SET));
		while ((got = read(fd, buffer, sizeof(buffer))) > 0)
			add(said, "%.*s", (int)got, buffer);
		/* Each descriptor has its own position. */
		got = read(other, buffer, 11);
		add(said, "%zd %.*s\n", got, (int)(got > 0 ? got : 0), buffer);
		ADD(said, read(other, nowhere, 11));
		ADD(said, write(fd, "x", 1));
		close(fd);
		close(other);
	}
	/* several pieces of one writev are several commands */
	int fd = open(pathf("%s/%s/trigger", dir, event), O_RDWR | O_APPEND);
	struct iovec pieces[] = { { "!hist:keys=pid", 14 }, { "hist:keys=common_pid", 20 } };

	ADD(said, writev(fd, pieces, 2));
	ADD(said, lseek(fd, 0, SEEK_CUR));
	ADD(said, read(fd, buffer, sizeof(buffer)));
	close(fd);
	fd = open(pathf("%s/%s/trigger", dir, event), O_RDONLY);
	buffer[0] = 0;
	if (read(fd, buffer, 19) == 19)
		add(said, "%.19s\n", buffer);
	close(fd);
	truncate_file(pathf("%s/%s/trigger", dir, event));
	return said;
}

static void read_in_all_manners(void)
{
	char *c = manners(kernel_dir()), *ours = manners(tracing_dir());

	ok(*c && !strcmp(c, ours), "reading and writing in all manners");
	if (strcmp(c, ours))
		note_difference(c, ours);
	free(c);
	free(ours);
}

int main(void)
{
	static const char *const files[] = {
		EVENT "/hist", EVENT "/trigger", EVENT "/hist_debug", "error_log", "show_event_triggers", EVENT "/format",
		EVENT "/enable", EVENT "/filter", "events/syscalls/filter", "set_event", "trace", "tracing_on", "README",
	};
	static const char *const dirs[] = { EVENT, "events/syscalls", "events", "instances", "options", "." };
	static const char *const written[] = { EVENT "/trigger", EVENT "/hist", EVENT "/enable", "error_log", "README" };
	const char *out = getenv("OUT");
	int error;

	if (testing_c()) {
		skip("this is C itself", "answers to all system calls");
		finish();
	}
	buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	syscall(SYS_io_setup, 8, &aio);
	error = uring_open(&ring);
	if (!error)
		error = uring_register(&ring, buffer, BUFFER);
	have_uring = !error;
	if (!have_uring)
		skip(errno_name(error), "requests by io_uring");
	program32 = out ? strdup(pathf("%s/caller32", out)) : NULL;
	if (program32 && access(program32, X_OK))
		program32 = NULL;
	clean();
	/* Earlier tests may have left more there than is compared. */
	truncate_file(pathf("%s/trace", kernel_dir()));
	for (unsigned int i = 0; i < sizeof(files) / sizeof(*files); i++) {
		if (access(pathf("%s/%s", kernel_dir(), files[i]), F_OK))
			continue;
		if (strstr(files[i], "hist_debug") && !c_names_functions()) {
			skip("this kernel's C says less there", "%s", files[i]);
			continue;
		}
		prepare();
		for (unsigned int j = 0; j < sizeof(readings) / sizeof(*readings); j++)
			if (readings[j].uring ? have_uring : !rest_only() || readings[j].again)
				reading(files[i], &readings[j], O_RDONLY);
		clean();
	}
	for (unsigned int i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
		for (unsigned int j = 0; j < sizeof(readings) / sizeof(*readings); j++) {
			/* Owner, mode and links of the top directory differ. */
			if (!strcmp(dirs[i], ".") && readings[j].run == asks)
				continue;
			if (readings[j].uring ? have_uring : !rest_only() || readings[j].again)
				reading(dirs[i], &readings[j], O_RDONLY);
		}
	for (unsigned int i = 0; i < sizeof(written) / sizeof(*written); i++)
		for (unsigned int j = 0; j < sizeof(writings) / sizeof(*writings); j++) {
			/* With poll(), and never ready to be written: io_uring waits for ever. */
			if (writings[j].uring && strstr(written[i], "/hist"))
				continue;
			if (writings[j].uring ? have_uring : !rest_only() || writings[j].again)
				writing(written[i], &writings[j], strstr(written[i], "trigger") ? O_WRONLY : O_RDWR);
		}
	for (unsigned int j = 0; j < sizeof(writings) / sizeof(*writings); j++)
		if (writings[j].uring ? have_uring : !rest_only() || writings[j].again)
			writing(EVENT "/trigger", &writings[j], O_RDWR);
	if (!rest_only())
		for (unsigned int j = 0; j < sizeof(modes) / sizeof(*modes); j++) {
			opening(EVENT "/trigger", j);
			opening(EVENT "/hist", j);
			opening("error_log", j);
			opening(EVENT "/enable", j);
			opening(EVENT, j);
			opening("instances", j);
		}
	calls_of_32_bits();
	clean();
	read_in_all_manners();
	finish();
}
