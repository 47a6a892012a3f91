// SPDX-License-Identifier: GPL-2.0
/*
 * request [COUNT]: an example program with an event of its own.
 *
 * It answers requests that it makes up, ten in a second, with an event for each. After COUNT
 * requests, it prints how many events had a listener; without COUNT, it runs for ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/user_events.h>

/* Bit 0 is set while the event has a listener. The kernel may write it at any time. */
static volatile uint32_t enabled;
static int data_file, write_index;

static int register_event(void)
{
	struct user_reg reg = {
		.size = sizeof(reg),
		.enable_bit = 0,
		.enable_size = sizeof(enabled),
		.enable_addr = (uintptr_t)&enabled,
		.name_args = (uintptr_t)"request u32 id;s32 status;__rel_loc char[] path",
	};

	data_file = open("/sys/kernel/tracing/user_events_data", O_RDWR | O_CLOEXEC);
	if (data_file < 0 || ioctl(data_file, DIAG_IOCSREG, &reg))
		return -1;
	write_index = reg.write_index;
	return 0;
}

/* The bit must be unregistered before its memory is used for something else. */
static void unregister_event(void)
{
	struct user_unreg unreg = {
		.size = sizeof(unreg),
		.disable_bit = 0,
		.disable_addr = (uintptr_t)&enabled,
	};

	ioctl(data_file, DIAG_IOCSUNREG, &unreg);
	close(data_file);
}

/* Returns whether the event had a listener: the last one may just have stopped. */
static bool write_event(uint32_t id, int32_t status, const char *path)
{
	size_t len = strlen(path) + 1;
	/*
	 * The fields as they were described, without gaps. The contents of a __rel_loc begin behind
	 * it.
	 */
	struct {
		uint32_t id;
		int32_t status;
		uint32_t path;
	} __attribute__((packed)) fields = { id, status, DYN_LOC(0, len) };
	struct iovec pieces[] = {
		{ &write_index, sizeof(write_index) },
		{ &fields, sizeof(fields) },
		{ (void *)path, len },
	};

	return writev(data_file, pieces, 3) >= 0;
}

int main(int argc, char **argv)
{
	static const char *const paths[] = { "/", "/about", "/missing" };
	unsigned long id, told = 0, count = argc > 1 ? strtoul(argv[1], NULL, 10) : -1ul;

	/* Without the kernel's help, go on without a listener. */
	if (register_event())
		fprintf(stderr, "request: no event: %s\n", strerror(errno));
	for (id = 1; id <= count; id++) {
		const char *path = paths[id % 3];
		int status = strcmp(path, "/missing") ? 200 : 404;

		if (enabled)
			told += write_event(id, status, path);
		usleep(100000);
	}
	unregister_event();
	printf("%lu of %lu\n", told, count);
	return 0;
}
