/* SPDX-License-Identifier: GPL-2.0 */
/* A file whose reads never end: its server, a process of the attacker, does not answer. */
#ifndef FUSE_H
#define FUSE_H

#include <linux/fuse.h>
#include <sys/mount.h>

#include "hostile.h"

enum { FUSE_FILE = 2, FUSE_FILE_PAGES = 64 };

static const char fuse_dir[] = "/mnt";

static void answer(int fd, const struct fuse_in_header *in, int error, const void *data, size_t len)
{
	struct fuse_out_header out = { .len = sizeof(out) + len, .error = error, .unique = in->unique };
	struct iovec io[2] = { { &out, sizeof(out) }, { (void *)data, len } };

	if (writev(fd, io, len ? 2 : 1) < 0)
		return;
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node, .mode = node == FUSE_FILE ? S_IFREG | 0666 : S_IFDIR | 0777, .nlink = 1,
		.size = FUSE_FILE_PAGES * page, .uid = MALLORY,
	};
}

__attribute__((noreturn))
static void serve(int fd, unsigned int open_flags)
{
	static char request[1 << 17];
	const struct fuse_in_header *in = (void *)request;

	for (;;) {
		if (read(fd, request, sizeof(request)) < 0) {
			if (errno == EINTR || errno == ENOENT || errno == EAGAIN)
				continue;
			_exit(0);
		}
		switch (in->opcode) {
		case FUSE_INIT: {
			struct fuse_init_out out = {
				.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
				.max_background = 64, .max_write = 4096,
			};

			answer(fd, in, 0, &out, sizeof(out));
			break;
		}
		case FUSE_LOOKUP: {
			struct fuse_entry_out out = { .nodeid = FUSE_FILE, .entry_valid = 3600, .attr_valid = 3600,
						      .attr = attributes(FUSE_FILE) };

			answer(fd, in, 0, &out, sizeof(out));
			break;
		}
		case FUSE_GETATTR: {
			struct fuse_attr_out out = { .attr_valid = 3600, .attr = attributes(in->nodeid) };

			answer(fd, in, 0, &out, sizeof(out));
			break;
		}
		case FUSE_OPEN: {
			struct fuse_open_out out = { .fh = 1, .open_flags = open_flags };

			answer(fd, in, 0, &out, sizeof(out));
			break;
		}
		case FUSE_READ:
		case FUSE_FORGET:
		case FUSE_INTERRUPT:
			break;
		default:
			answer(fd, in, -ENOSYS, NULL, 0);
		}
	}
}

/*
 * Starts a server and becomes its user; the mount is what fusermount would do for that user. Called
 * as root. fuse_file() opens its file.
 */
static void start_fuse(unsigned int open_flags)
{
	char options[100];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		cannot("no FUSE");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d,allow_other", fd, MALLORY,
		 SOME_GROUP);
	if (mount("rhist", fuse_dir, "fuse", MS_NOSUID | MS_NODEV, options))
		cannot("FUSE cannot be mounted");
	become_mallory();
	if (!fork())
		serve(fd, open_flags);
	close(fd);
}

static int fuse_file(void)
{
	int fd = open(pathf("%s/file", fuse_dir), O_RDWR | O_CLOEXEC);

	if (fd < 0)
		cannot("a file of FUSE does not open");
	return fd;
}

#endif
