// SPDX-License-Identifier: GPL-2.0
// Descriptors passed to other processes, and files that a user lacks the rights for.
#define _GNU_SOURCE
#include <dirent.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/xattr.h>

#include "hostile.h"

#define EVENT EVIL " u32 a"

/* --- passed on --- */

static int send_fd(int socket, int fd)
{
	char byte = 'f', control[CMSG_SPACE(sizeof(fd))] = {};
	struct iovec io = { &byte, 1 };
	struct msghdr message = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(socket, &message, 0);
}

static int receive_fd(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec io = { &byte, 1 };
	struct msghdr message = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* Uses files that another user has opened, also after that user's process has exited. */
static void uses_passed_on(int socket)
{
	volatile unsigned int bit;
	int fd, value = 1, index;

	while ((fd = receive_fd(socket)) >= 0) {
		emit(fd, 0, &value, sizeof(value));
		if (!reg(fd, EVENT, &bit, &index)) {
			emit(fd, index, &value, sizeof(value));
			if (below(2))
				unreg(fd, &bit, 0);
		}
		if (!fork())
			_exit(0);
		wait(NULL);
		close(fd);
		did();
	}
}

static void passed_by_sockets(void)
{
	for (;;) {
		int sockets[2], fd;

		if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
			cannot("no sockets");
		if (!fork()) {
			close(sockets[1]);
			become(ACCOMPLICE);
			uses_passed_on(sockets[0]);
			_exit(0);
		}
		if (!fork()) {
			volatile unsigned int bit;

			become_mallory();
			for (int i = 0; i < 20; i++) {
				fd = open_evil();
				reg(fd, EVENT, &bit, NULL);
				send_fd(sockets[1], fd);
				/* Some descriptors in flight, in a socket that holds itself. */
				send_fd(sockets[0], sockets[1]);
				close(fd);
				unreg(fd, &bit, 0);
			}
			_exit(0);
		}
		close(sockets[0]);
		close(sockets[1]);
		while (wait(NULL) > 0)
			;
	}
}

/*
 * Another user can take a descriptor neither through /proc nor by pidfd_getfd(); the same user can.
 */
static void taken_from_processes(void)
{
	int pipes[2], fd, mine, value = 1;
	pid_t owner;

	if (pipe(pipes))
		return;
	if (!(owner = fork())) {
		become_mallory();
		fd = open_evil();
		reg(fd, EVENT, &value, NULL);
		if (write(pipes[1], &fd, sizeof(fd))) {}
		pause();
	}
	if (read(pipes[0], &fd, sizeof(fd)) != sizeof(fd))
		return;
	if (!fork()) {
		become_mallory();
		for (;;) {
			int pidfd = syscall(SYS_pidfd_open, owner, 0);

			mine = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
			emit(mine, 0, &value, sizeof(value));
			close(mine);
			mine = open(pathf("/proc/%d/fd/%d", owner, fd), O_RDWR);
			/* It is another file, with indices of its own. */
			if (mine >= 0 && emit(mine, 0, &value, sizeof(value)) != -ENOENT)
				found("a new file has indices of another");
			close(mine);
			close(pidfd);
			did();
		}
	}
	become(ACCOMPLICE);
	for (;;) {
		int pidfd = syscall(SYS_pidfd_open, owner, 0);

		if (syscall(SYS_pidfd_getfd, pidfd, fd, 0) >= 0 || open(pathf("/proc/%d/fd/%d", owner, fd), O_RDWR) >= 0)
			found("a descriptor of another user was taken");
		close(pidfd);
		did();
	}
}

/* --- files without permission --- */

enum { MAX_PATHS = 2000 };
static char *paths[MAX_PATHS];
static int path_count;

/* Collects all names in a directory, as root; others cannot list it. */
static void collect(const char *dir)
{
	DIR *open = opendir(dir);
	struct dirent *entry;

	while (open && (entry = readdir(open)) && path_count < MAX_PATHS)
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, "user_events_data"))
			paths[path_count++] = strdup(pathf("%s/%s", dir, entry->d_name));
	closedir(open);
}

static void try_path(const char *path)
{
	static const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR, O_WRONLY | O_TRUNC };
	const char *inside = pathf("%s/ho", path);
	struct timespec times[2] = {};

	for (unsigned int i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		int fd = open(path, modes[i] | O_CLOEXEC | O_NONBLOCK);
		struct stat stat;

		/* All users may list the kernel's directories below the top one. */
		if (fd >= 0 && (fstat(fd, &stat) || !S_ISDIR(stat.st_mode)))
			found("%s was opened (%x)", path, modes[i]);
		if (fd >= 0)
			close(fd);
	}
	if (!truncate(path, 0) || !chmod(path, 0777) || !chown(path, getuid(), -1) || !unlink(path) || !rmdir(path) ||
	    !rename(path, pathf("%s.ho", path)) || !link(path, pathf("%s.ho", path)) || !symlink("/", inside) ||
	    !mkdir(inside, 0777) || !mknod(inside, S_IFREG, 0) || !utimensat(AT_FDCWD, path, times, 0) ||
	    !setxattr(path, "user.ho", "", 0, 0))
		found("%s was changed", path);
}

static void files_without_rights(void)
{
	collect(kernel_dir());
	collect(tracing_dir());
	collect(pathf("%s/events/user_events/%s", kernel_dir(), GOOD));
	collect(pathf("%s/events/user_events/%s", tracing_dir(), GOOD));
	collect(pathf("%s/events/sched/sched_waking", tracing_dir()));
	collect(pathf("%s/instances", tracing_dir()));
	become_mallory();
	for (;;)
		for (int i = 0; i < path_count; i++) {
			try_path(paths[i]);
			did();
		}
}

/* --- other system calls on a descriptor --- */

static volatile int some_fd = -1;

/* The descriptor is closed during operations on it. */
static void reopens(__maybe long which)
{
	volatile unsigned int bit;

	for (;;) {
		int fd = open_evil(), before = some_fd;

		reg(fd, EVENT, &bit, NULL);
		some_fd = fd;
		sleep_ms(below(3));
		if (before >= 0)
			close(before);
		unreg(fd, &bit, 0);
		did();
	}
}

static void does_something(__maybe long which)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), memory = memfd_create("ho", MFD_CLOEXEC), pipes[2], out;
	aio_context_t aio = 0;
	char bytes[64] = {};

	if (pipe2(pipes, O_NONBLOCK | O_CLOEXEC) || ftruncate(memory, page))
		return;
	syscall(SYS_io_setup, 8, &aio);
	for (;;) {
		int fd = some_fd;
		struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLET };
		struct pollfd poll_fd = { .fd = fd, .events = POLLIN | POLLOUT | POLLPRI };
		struct iocb request = { .aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = fd, .aio_buf = (uintptr_t)bytes,
					.aio_nbytes = sizeof(bytes) }, *requests = &request;
		loff_t at = below(2);
		fd_set set;

		switch (below(14)) {
		case 0: epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event); epoll_wait(epoll, &event, 1, 0); break;
		case 1: poll(&poll_fd, 1, 1); break;
		case 2: FD_ZERO(&set); if (fd >= 0 && fd < FD_SETSIZE) FD_SET(fd, &set); break;
		case 3: request.aio_lio_opcode = below(10); syscall(SYS_io_submit, aio, 1, &requests); break;
		case 4: splice(pipes[0], NULL, fd, NULL, 64, SPLICE_F_NONBLOCK); break;
		case 5: at = 0; if (sendfile(fd, memory, &at, 64)) {} break;
		case 6: if (write(pipes[1], bytes, sizeof(bytes))) {} break;
		case 7: if (pread(fd, bytes, sizeof(bytes), at) >= 0) found("user_events_data was read"); break;
		case 8: if (pwrite(fd, bytes, sizeof(bytes), at)) {} break;
		case 9: fsync(fd); if (ftruncate(fd, 0)) {} posix_fallocate(fd, 0, 1); lseek(fd, below(100), below(5)); break;
		case 10: flock(fd, LOCK_EX | LOCK_NB); fcntl(fd, F_SETLEASE, F_RDLCK); fcntl(fd, F_SETFL, O_APPEND | O_ASYNC); break;
		case 11: out = dup(fd); ioctl(out, below(~0u), bytes); close(out); break;
		case 12: copy_file_range(memory, NULL, fd, NULL, 64, 0); break;
		default:
			if (mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED)
				found("user_events_data was mapped writable");
		}
		did();
	}
}

static void everything_on_a_descriptor(void)
{
	signal(SIGIO, SIG_IGN);
	start_threads(1, reopens);
	threads(4, does_something);
}

int main(int argc, char **argv)
{
	static const struct attack attacks[] = {
		{ "descriptors are passed to another user", passed_by_sockets, true, false },
		{ "descriptors are taken from processes", taken_from_processes, true, true },
		{ "opens and changes files without rights", files_without_rights, true, true },
		{ "does everything with a descriptor", everything_on_a_descriptor, false, false },
		{},
	};

	return run_attacks(attacks, argc, argv);
}
