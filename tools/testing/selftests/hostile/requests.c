// SPDX-License-Identifier: GPL-2.0
// Requests and writes: too many, too large, wrong, and all at once.
#define _GNU_SOURCE
#include "hostile.h"

#define EVENT EVIL " u32 a"

static int evil_fd, evil_index;
static volatile unsigned int evil_bit;

static void register_evil(const char *description)
{
	evil_fd = open_evil();
	if (reg(evil_fd, description, &evil_bit, &evil_index))
		cannot("the event was not registered");
}

/* --- maximum numbers --- */

static void many_descriptors(void)
{
	struct rlimit all;
	int fd, index;

	getrlimit(RLIMIT_NOFILE, &all);
	all.rlim_cur = all.rlim_max;
	setrlimit(RLIMIT_NOFILE, &all);
	register_evil(EVENT);
	for (;;) {
		fd = open_evil();
		if (fd < 0)
			break;
		reg_original(fd, EVENT, &index, &index);
		did();
	}
	for (;;) {
		close(fd - 1 - (int)below(10));
		open_evil();
		did();
	}
}

static void many_bits(void)
{
	enum { PAGES = 1024 };
	unsigned int *bits = pages_of(PAGES);

	evil_fd = open_evil();
	for (int i = 0; i < 2; i++)
		fork();
	for (unsigned long i = 0; i < PAGES * page / sizeof(*bits) * 32; i++) {
		int error = reg_flags(evil_fd, EVENT, bits + i / 32, 4, i % 32, 0, NULL);

		if (!error)
			did();
		/* At the limit: replace one by another. */
		else
			unreg(evil_fd, bits + below(i) / 32, below(32));
	}
}

static void many_events(void)
{
	unsigned int *bits = pages_of(64);
	int fd = open_evil();

	for (int i = 0;; i++) {
		int error = reg(fd, pathf("ho_many_%d_%d u32 a;u32 b;u32 c;u32 d", getpid(), i), bits + i % 16384, NULL);

		if (!error)
			did();
		else
			sleep_ms(1);
	}
}

/*
 * All events of a program that has exited are removed, each from all instances; or deleted by name.
 * When the registry was locked until all of them were removed, root's step that reads
 * user_events_status took 6 to 26 seconds on user-mode Linux, in each of RUNS runs. With one lock
 * for each event, the longest step of all takes 0.13 seconds. A slow kernel takes 45 milliseconds
 * for each event, so it gets only 200.
 */
static void registers_and_exits(void)
{
	int count = slow_kernel() ? 200 : INT_MAX;
	unsigned int *bits = pages_of(8);

	for (int i = 0; i < INSTANCES; i++)
		mkdir(instance(i), 0700);
	become_mallory();
	for (;;) {
		int fd = open_evil(), i = 0;
		pid_t pid = fork();

		if (!pid) {
			while (i < count && !reg_flags(fd, pathf("ho_all u32 a%d_%d", getpid(), i), bits + i, 4, 0,
						       USER_EVENT_REG_MULTI_FORMAT, NULL))
				i++;
			_exit(0);
		}
		close(fd);
		waitpid(pid, NULL, 0);
		did();
		fd = open_evil();
		del(fd, "ho_all");
		close(fd);
	}
}

/* --- mistakes --- */

static void *anywhere(void)
{
	static unsigned int value;
	void *const pointers[] = {
		NULL, (void *)1, &value, (char *)&value + 1, (char *)&value + 2, (void *)register_evil,
		(void *)0x7ffffffff000ull, (void *)0x7ffffffffff8ull, (void *)0x7fffffffffffull,
		(void *)0x8000000000000000ull, (void *)0xffff888000000000ull, (void *)0xffffffff81000000ull,
		(void *)0xffffffffff600000ull, (void *)-8l, (void *)-1l, (void *)((unsigned long)below(~0u) << 16),
	};

	return pointers[below(sizeof(pointers) / sizeof(*pointers))];
}

static void asks_wrongly(__maybe long which)
{
	static const unsigned int commands[] = { DIAG_IOCSREG, DIAG_IOCSUNREG, DIAG_IOCSDEL };
	static const unsigned int sizes[] = { 0, 4, 20, 24, 28, 32, 64, 4096, 4097, ~0u };
	int fd = open_evil();

	for (;;) {
		struct {
			struct user_reg reg;
			char rest[64];
		} request = { .reg = {
			.size = sizes[below(10)], .enable_bit = below(80), .enable_size = below(4) ? 4u << below(2) : below(256),
			.flags = below(4) ? 0 : below(65536), .enable_addr = (uintptr_t)anywhere(),
			.name_args = (uintptr_t)(below(2) ? EVENT : anywhere()),
		} };

		request.rest[below(64)] = !below(4);
		ioctl(fd, below(9) ? commands[below(3)] : below(~0u), below(5) ? &request : anywhere());
		did();
	}
}

static void wrong_requests(void)
{
	threads(3, asks_wrongly);
}

static void describes_wrongly(__maybe long which)
{
	static const char *const parts[] = {
		"ho_evil", " ", "u32", ";", "a", "__rel_loc", "__data_loc", "char[", "]", "struct", "1024", "4294967295",
		"-1", ":", "\n", "\t", "\\", "%s%n", "..", "/", "unsigned", "char[1024]", "\xff",
	};
	int fd = open_evil();

	for (;;) {
		volatile unsigned int bit;
		char text[1000];
		int len = sprintf(text, "ho_evil ");

		if (below(8) == 0) {
			/* About the longest possible text, or longer; or as many fields as fit. */
			for (int i = 0; len < 510; i++)
				len += below(2) ? sprintf(text + len, "u8 %c%d;", 'a' + i % 26, i) : sprintf(text + len, "x");
			text[505 + below(12)] = 0;
		} else {
			for (int i = below(20); i > 0; i--)
				len += sprintf(text + len, "%s%s", parts[below(sizeof(parts) / sizeof(*parts))],
					       below(2) ? " " : "");
		}
		if (!reg(fd, text, &bit, NULL))
			unreg(fd, &bit, 0);
		text[strcspn(text, " ")] = 0;
		del(fd, text);
		did();
	}
}

static void wrong_descriptions(void)
{
	threads(3, describes_wrongly);
}

/* --- everything at once --- */

static void deletes_all(__maybe long which)
{
	int fd = open_evil(), index;

	for (;;) {
		if (!del(fd, GOOD))
			found("the other program's event was deleted");
		del(fd, EVIL);
		reg_original(fd, EVENT, &index, &index);
		close(fd);
		fd = open_evil();
		del(fd, EVIL);
		did();
	}
}

static void delete_storm(void)
{
	threads(4, deletes_all);
}

/* Events that come and go, and bits of one event. */
static void comes_and_goes(long which)
{
	const char *description = which % 2 ? EVENT : pathf("ho_evil_%ld u32 a", which);
	volatile unsigned int bits[2];

	for (;;) {
		int fd = open_evil();

		for (int i = 0; i < 20; i++) {
			reg(fd, description, &bits[0], NULL);
			reg(fd, EVENT, &bits[1], NULL);
			unreg(fd, &bits[1], 0);
			unreg(fd, &bits[0], 0);
			did();
		}
		close(fd);
	}
}

static void register_storm(void)
{
	for (int i = 0; i < 2; i++)
		fork();
	threads(3, comes_and_goes);
}

static void original_interface(long which)
{
	for (;;) {
		int fd = open_evil(), bit, index, value = 1;
		void *status = mmap(NULL, page << below(2), below(4) ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				    below(4) ? 0 : page);

		reg_original(fd, which ? EVENT : "ho_evil_original", &bit, &index);
		if (status != MAP_FAILED && mprotect(status, page, PROT_READ | PROT_WRITE) == 0)
			found("the status page was made writable");
		if (!fork())
			_exit(status != MAP_FAILED && *(volatile char *)status & 1);
		wait(NULL);
		emit(fd, index, &value, sizeof(value));
		if (status != MAP_FAILED)
			munmap(status, page);
		del(fd, "ho_evil_original");
		close(fd);
		did();
	}
}

static void original_storm(void)
{
	threads(3, original_interface);
}

/* --- writes --- */

static char *payload;
enum { PAYLOAD_PAGES = 20 };

/* Some of its pages are missing, and some never arrive. */
static void writes_much(long which)
{
	static const unsigned int lens[] = { 4, 100, 1024, 1025, 2048, 3000, 4000, 4072, 9000, 65536, 70000 };

	for (;;) {
		unsigned int len = lens[below(sizeof(lens) / sizeof(*lens))];
		struct iovec io[3] = {
			{ &evil_index, 4 }, { payload + below(3 * page), len },
			{ below(2) ? anywhere() : payload + page, below(3) ? 0 : below(200) },
		};

		if (writev(evil_fd, io, 3) >= 0)
			did();
		if (which == 0)
			madvise(payload + below(PAYLOAD_PAGES) * page, page, MADV_DONTNEED);
	}
}

static void write_storm(const char *description)
{
	payload = pages_of(PAYLOAD_PAGES);
	register_evil(description);
	for (int i = 0; i < 2; i++)
		fork();
	threads(2, writes_much);
}

static void plain_writes(void)
{
	write_storm(EVENT);
}

static void checked_writes(void)
{
	write_storm(EVIL " u32 a;__rel_loc char[] s;__data_loc u8[] t");
}

int main(int argc, char **argv)
{
	static const struct attack attacks[] = {
		{ "as many descriptors as there may be", many_descriptors, false, true },
		{ "as many bits as there may be", many_bits, false, false },
		{ "as many events as there may be", many_events, false, true },
		{ "registers to the quota, exits, repeats", registers_and_exits, true, true },
		{ "wrong requests", wrong_requests, false, true },
		{ "wrong descriptions", wrong_descriptions, false, true },
		{ "deletes all the time", delete_storm, false, false },
		{ "registers and unregisters all the time", register_storm, false, false },
		{ "the original interface all the time", original_storm, false, false },
		{ "writes all the time", plain_writes, false, false },
		{ "writes what has to be checked all the time", checked_writes, false, false },
		{},
	};

	return run_attacks(attacks, argc, argv);
}
