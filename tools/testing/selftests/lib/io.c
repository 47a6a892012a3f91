// SPDX-License-Identifier: GPL-2.0
/*
 * io OPERATION...: makes one system call on a file, and prints the result: "OK", or the name of the
 * errno.
 *
 *   io open PATH MODE           MODE: r, w, a (append), t (truncate), rw, d (directory), p (O_PATH)
 *   io write PATH MODE TEXT     one write of TEXT, printf escapes done by the caller
 *   io read FD                  reads from an inherited descriptor: "OK" and the number of bytes
 *   io writefd FD TEXT          writes to an inherited descriptor
 *   io poll FD                  "OK" if poll(2) finds it readable, EAGAIN if not
 *   io map FD                   maps a page of an inherited descriptor to read it
 *   io memory PROGRAM ARGUMENT  runs a copy of a program that is in memory only
 *   io rename OLD NEW
 *   io own PATH                 gives it to root, without a look at it before, as chown(1) takes
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sys/mman.h>

#include "tracing.h"

static int flags(const char *mode)
{
	static const struct { const char *name; int flags; } modes[] = {
		{ "r", O_RDONLY }, { "w", O_WRONLY }, { "a", O_WRONLY | O_APPEND },
		{ "t", O_WRONLY | O_TRUNC }, { "rw", O_RDWR }, { "d", O_RDONLY | O_DIRECTORY }, { "p", O_PATH },
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(mode, modes[i].name))
			return modes[i].flags;
	fprintf(stderr, "io: no mode %s\n", mode);
	exit(2);
}

/* Runs a copy of a program. Returns an errno. */
static int run_in_memory(const char *path, char *argument)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), fd = memfd_create("io", MFD_CLOEXEC);
	char *arguments[] = { "io", argument, NULL }, *environment[] = { NULL }, buffer[4096];
	ssize_t n;

	while ((n = read(from, buffer, sizeof(buffer))) > 0)
		if (write(fd, buffer, n) != n)
			break;
	if (!n)
		fexecve(fd, arguments, environment);
	return errno;
}

int main(int argc, char **argv)
{
	char buffer[65536];
	ssize_t n = -1;
	int fd;

	if (argc == 4 && !strcmp(argv[1], "open")) {
		fd = open(argv[2], flags(argv[3]));
		puts(errno_name(fd < 0 ? errno : 0));
	} else if (argc == 5 && !strcmp(argv[1], "write")) {
		fd = open(argv[2], flags(argv[3]));
		if (fd >= 0)
			n = write(fd, argv[4], strlen(argv[4]));
		puts(errno_name(n < 0 ? errno : 0));
	} else if (argc == 4 && !strcmp(argv[1], "rename")) {
		puts(errno_name(rename(argv[2], argv[3]) ? errno : 0));
	} else if (argc == 3 && !strcmp(argv[1], "own")) {
		puts(errno_name(chown(argv[2], 0, 0) ? errno : 0));
	} else if (argc == 3 && !strcmp(argv[1], "read")) {
		n = read(atoi(argv[2]), buffer, sizeof(buffer));
		if (n < 0)
			puts(errno_name(errno));
		else
			printf("OK %zd\n", n);
	} else if (argc == 3 && !strcmp(argv[1], "map")) {
		void *at = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_PRIVATE, atoi(argv[2]), 0);

		puts(errno_name(at == MAP_FAILED ? errno : 0));
	} else if (argc == 4 && !strcmp(argv[1], "memory")) {
		puts(errno_name(run_in_memory(argv[2], argv[3])));
	} else if (argc == 3 && !strcmp(argv[1], "poll")) {
		struct pollfd look = { .fd = atoi(argv[2]), .events = POLLIN };

		n = poll(&look, 1, 0);
		puts(errno_name(n < 0 ? errno : look.revents & POLLIN ? 0 : EAGAIN));
	} else if (argc == 4 && !strcmp(argv[1], "writefd")) {
		n = write(atoi(argv[2]), argv[3], strlen(argv[3]));
		puts(errno_name(n < 0 ? errno : 0));
	} else {
		fprintf(stderr, "usage: io open|write|read|writefd|poll|map|memory|rename|own ...\n");
		return 2;
	}
	return 0;
}
