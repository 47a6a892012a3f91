/* SPDX-License-Identifier: GPL-2.0 */
/* The calls of a program with user events. */
#ifndef CLIENT_H
#define CLIENT_H

#include <grp.h>
#include <linux/perf_event.h>
#include <linux/user_events.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "tracing.h"

__maybe static const char *data_path(void)
{
	return pathf("%s/user_events_data", tracing_dir());
}

/*
 * Returns true if the kernel has user events, too: then they are in its tracing directory, in place
 * of ours.
 */
__maybe static bool kernel_has_own(void)
{
	struct stat ours, kernels;

	return !testing_c() && !stat(data_path(), &ours) &&
	       !stat(pathf("%s/user_events_data", kernel_dir()), &kernels) && ours.st_ino != kernels.st_ino;
}

__maybe static int open_data(void)
{
	int fd = open(data_path(), O_RDWR | O_CLOEXEC);

	if (fd < 0)
		die("%s opens: %s", data_path(), strerror(errno));
	return fd;
}

/* Registers an event. Returns 0 and sets the index, or returns a negative errno. */
__maybe static int reg_flags(int fd, const char *what, volatile void *at, int size, int bit, int flags,
			     int *index)
{
	struct user_reg reg = {
		.size = sizeof(reg), .enable_bit = bit, .enable_size = size, .flags = flags,
		.enable_addr = (uintptr_t)at, .name_args = (uintptr_t)what, .write_index = -1,
	};

	if (ioctl(fd, DIAG_IOCSREG, &reg))
		return -errno;
	if (index)
		*index = reg.write_index;
	return 0;
}

__maybe static int reg(int fd, const char *what, volatile void *at, int *index)
{
	return reg_flags(fd, what, at, 4, 0, 0, index);
}

/*
 * Registers by the original interface. Returns 0 and sets the bit of the page and the index, or
 * returns a negative errno.
 */
__maybe static int reg_original(int fd, const char *what, int *status_bit, int *index)
{
	struct user_reg_original reg = { .size = sizeof(reg), .name_args = (uintptr_t)what };

	if (ioctl(fd, DIAG_IOCSREG, &reg))
		return -errno;
	*status_bit = reg.status_bit;
	*index = reg.write_index;
	return 0;
}

__maybe static int unreg(int fd, volatile void *at, int bit)
{
	struct user_unreg unreg = {
		.size = sizeof(unreg), .disable_bit = bit, .disable_addr = (uintptr_t)at,
	};

	return ioctl(fd, DIAG_IOCSUNREG, &unreg) ? -errno : 0;
}

__maybe static int del(int fd, const char *name)
{
	return ioctl(fd, DIAG_IOCSDEL, name) ? -errno : 0;
}

/* Writes an event. Returns the number of bytes, or a negative errno. */
__maybe static int emit(int fd, int index, const void *payload, size_t len)
{
	struct iovec io[2] = {
		{ .iov_base = &index, .iov_len = sizeof(index) },
		{ .iov_base = (void *)payload, .iov_len = len },
	};
	int done = writev(fd, io, len ? 2 : 1);

	return done < 0 ? -errno : done;
}

/* A file of an event, in the kernel's own directory. */
__maybe static const char *event_file(const char *event, const char *file)
{
	return pathf("%s/events/user_events/%s/%s", kernel_dir(), event, file);
}

__maybe static int enable(const char *event, bool on)
{
	return append(event_file(event, "enable"), on ? "1" : "0");
}

/* A format without the lengths of arrays, which C's user events never set. */
__maybe static void without_lengths(char *format)
{
	while ((format = strchr(format, '[')))
		format = cut(format + 1, format + 1 + strspn(format + 1, "-0123456789"));
}

__maybe static bool exists(const char *event)
{
	return !access(event_file(event, "format"), F_OK);
}

/* Opens user_events_data to the group, as an administrator would, or closes it. */
enum { SOME_GROUP = 4711 };
__maybe static void open_to_group(bool open)
{
	if (chmod(kernel_dir(), open ? 0711 : 0700) || chmod(tracing_dir(), open ? 0711 : 0700) ||
	    chown(data_path(), 0, open ? SOME_GROUP : 0) || chmod(data_path(), open ? 0660 : 0640))
		die("%s is opened to a group: %s", data_path(), strerror(errno));
}

/* Changes to an unprivileged user in that group. */
__maybe static void become_user(uid_t uid)
{
	if (setgroups(0, NULL) || setgid(SOME_GROUP) || setuid(uid))
		_exit(99);
}

/* A point that C is known to fail, see Documentation/differences.rst; skipped with C. */
#define ours(passed, name) do {					\
	if (testing_c())					\
		skip("otherwise with C", name);			\
	else							\
		ok(passed, name);				\
} while (0)

/* Waits for a condition that becomes true soon, but not at once. */
#define within_seconds(seconds, condition) ({			\
	double end = now() + (seconds);				\
	bool met;						\
	while (!(met = (condition)) && now() < end)		\
		sleep_ms(5);					\
	met;							\
})

/* Replaces a page with one that is not present yet. Not every kernel has madvise(). */
__maybe static void map_anew(volatile void *at, long page)
{
	if (mmap((void *)at, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
		die("mmap: %s", strerror(errno));
}

/* User-mode Linux lacks perf and ids of events. */
__maybe static bool have_perf(void)
{
	return !access("/proc/sys/kernel/perf_event_paranoid", F_OK);
}

/*
 * Opens a perf event on all records of an event of this process. Returns a negative errno on
 * failure.
 */
__maybe static int perf_open(const char *event)
{
	char *id = slurp(event_file(event, "id"));
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1, .wakeup_events = 1,
	};
	int fd;

	if (!id)
		return -errno;
	attr.config = atoi(id);
	free(id);
	fd = syscall(__NR_perf_event_open, &attr, 0, -1, -1, 0);
	return fd < 0 ? -errno : fd;
}

#endif
