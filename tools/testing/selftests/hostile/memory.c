// SPDX-License-Identifier: GPL-2.0
// Memory that is never ready, comes and goes, or is changed by others.
#define _GNU_SOURCE
#include <dirent.h>

#include "fuse.h"

#define EVENT EVIL " u32 a"

/* --- faults that are never answered --- */

/* Memory that never arrives; each thread uses a page. */
static char *never;
static int evil_fd, evil_index;
static volatile unsigned int evil_bit;

/* Requests and writes, each with another part in memory that never arrives. */
static void waits_for_ever(long which)
{
	char *at = never + which * page;
	volatile unsigned int bit;
	int fd = open_evil();

	/* Count it now, since the call is meant to take for ever. */
	did();
	switch (which) {
	case 0: ioctl(fd, DIAG_IOCSREG, at); break;
	case 1: ioctl(fd, DIAG_IOCSUNREG, at); break;
	case 2: ioctl(fd, DIAG_IOCSDEL, at); break;
	case 3: reg(fd, at, &bit, NULL); break;
	case 4: reg(fd, EVENT, (void *)at, NULL); break;
	case 5: reg_original(fd, at, NULL, NULL); break;
	case 6: ioctl(fd, DIAG_IOCSREG, at - 20); break;
	case 7: if (write(fd, at, 8) < 0) {} break;
	default:
		/* A payload, as soon as the event is enabled. */
		while (emit(evil_fd, evil_index, at, which % 2 ? 4 : 3000) == -EBADF)
			sleep_ms(1);
	}
}

static void registers_again_and_again(__maybe long none)
{
	volatile unsigned int bit;
	int fd = open_evil();

	for (;;) {
		if (!reg(fd, EVENT, &bit, NULL))
			unreg(fd, &bit, 0);
		did();
	}
}

static void all_wait_for_ever(void)
{
	evil_fd = open_evil();
	if (reg(evil_fd, EVENT, &evil_bit, &evil_index))
		return;
	start_threads(14, waits_for_ever);
	threads(1, registers_again_and_again);
}

static void userfaults_as_arguments(void)
{
	never = pages_of(14);
	keep_away(never, 14, UFFDIO_REGISTER_MODE_MISSING);
	all_wait_for_ever();
}

static void fuse_as_arguments(void)
{
	start_fuse(FOPEN_KEEP_CACHE);
	never = mmap(NULL, 14 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fuse_file(), 0);
	all_wait_for_ever();
}

/* The description can be read, but writing the index never ends. */
static void userfault_as_result(void)
{
	struct user_reg reg;

	never = pages_of(1);
	reg = (struct user_reg){ .size = sizeof(reg), .enable_size = 4, .enable_addr = (uintptr_t)&evil_bit,
				 .name_args = (uintptr_t)EVENT };
	memcpy(never, &reg, sizeof(reg));
	keep_away(never, 1, UFFDIO_REGISTER_MODE_WP);
	evil_fd = open_evil();
	start_threads(1, registers_again_and_again);
	did();
	ioctl(evil_fd, DIAG_IOCSREG, never);
}

enum { BITS = 48 };

/* Registers bits in existing pages, which are replaced later. */
static char *register_bits(void)
{
	char *at = pages_of(BITS);
	int fd = open(data_path(), O_RDWR);

	for (int i = 0; i < BITS; i++)
		if (reg(fd, EVENT, (void *)(at + i * page), NULL))
			cannot("a bit was not registered");
	return at;
}

/* Each change of the event makes the kernel write the bits. */
static void keep_registering(void)
{
	did();
	threads(2, registers_again_and_again);
}

static void userfaults_under_bits(void)
{
	for (int i = 0; i < 4; i++)
		if (!fork()) {
			char *at = register_bits();

			madvise(at, BITS * page, MADV_DONTNEED);
			keep_away(at, BITS, UFFDIO_REGISTER_MODE_MISSING);
			keep_registering();
		}
}

static void protected_pages_under_bits(void)
{
	char *at = register_bits();

	keep_away(at, BITS, UFFDIO_REGISTER_MODE_WP);
	keep_registering();
}

static void fuse_under_bits(void)
{
	start_fuse(FOPEN_KEEP_CACHE);
	for (int i = 0; i < 4; i++)
		if (!fork()) {
			char *at = register_bits();

			mmap(at, BITS * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fuse_file(), 0);
			keep_registering();
		}
}

/*
 * mmap() of a direct I/O file waits for its page, which another process reads, while it holds
 * mmap_lock for writing.
 */
static void mmap_lock_is_kept(void)
{
	start_fuse(FOPEN_DIRECT_IO | FOPEN_KEEP_CACHE);
	if (!fork()) {
		volatile char *at = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fuse_file(), 0);

		return (void)*at;
	}
	sleep_ms(100);
	for (int i = 0; i < 4; i++)
		if (!fork()) {
			int file = fuse_file();

			register_bits();
			start_threads(1, registers_again_and_again);
			sleep_ms(20 * i);
			did();
			mmap(NULL, page, PROT_READ, MAP_PRIVATE, file, 0);
		}
}

static void opens_for_ever(long which)
{
	did();
	if (open(never + which * page, O_RDONLY) >= 0)
		found("a file was opened");
}

/* Root records a system call, which reads the name of a file from memory that never arrives. */
static void system_call_never_comes(void)
{
	if (append(pathf("%s/events/" SYSCALL "/enable", kernel_dir()), "1"))
		cannot("no events of system calls");
	become_mallory();
	never = pages_of(4);
	keep_away(never, 4, UFFDIO_REGISTER_MODE_MISSING);
	threads(4, opens_for_ever);
}

/* An open file that root reads, too. */
static void reads_for_ever(long which)
{
	did();
	if (pread(shared_fd, never + which * page, page, 0) < 0)
		found("a shared file cannot be read");
}

static void shared_file_is_kept(void)
{
	never = pages_of(4);
	keep_away(never, 4, UFFDIO_REGISTER_MODE_MISSING);
	threads(4, reads_for_ever);
}

/* --- memory that nobody can get --- */

/* A control group at its limit, whose processes can be killed, but free nothing. */
enum { GROUP_MB = 48, DECOYS = 40, DECOY_KB = 512 };

/* Its memory.current, memory.events and, to enter it, cgroup.procs; opened as root. */
static int group_current, group_events, group_procs;

static void make_group(void)
{
	static char top[] = "/tmp/ho-XXXXXX";
	const char *group;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || !mkdtemp(top) ||
	    mount("none", top, "cgroup2", 0, NULL) || append(pathf("%s/cgroup.subtree_control", top), "+memory"))
		cannot("no control groups");
	group = strdup(pathf("%s/ho", top));
	if ((mkdir(group, 0700) && errno != EEXIST) || append(pathf("%s/memory.max", group), pathf("%dM", GROUP_MB)))
		cannot("no memory control groups");
	append(pathf("%s/memory.swap.max", group), "0");
	group_current = open(pathf("%s/memory.current", group), O_RDONLY);
	group_events = open(pathf("%s/memory.events", group), O_RDONLY);
	group_procs = open(pathf("%s/cgroup.procs", group), O_WRONLY);
}

static long group_has(void)
{
	char text[32] = {};

	return pread(group_current, text, sizeof(text) - 1, 0) > 0 ? atol(text) : 0;
}

static long killed_in_group(void)
{
	char text[256] = {}, *at;

	if (pread(group_events, text, sizeof(text) - 1, 0) <= 0)
		return 0;
	at = strstr(text, "oom_kill ");
	return at ? atol(at + 9) : 0;
}

/* The OOM killer waits for it a second, in vain: it keeps mmap_lock. */
static void becomes_decoy(void)
{
	int file = fuse_file();

	memset(pages_of(DECOY_KB / 4), 1, DECOY_KB << 10);
	mmap(NULL, page, PROT_READ, MAP_PRIVATE, file, 0);
}

/*
 * Fills the group up to `less` bytes below its limit, with a file: its memory has no process to be
 * killed for.
 */
static void fill_group(long less)
{
	static char bytes[1 << 16];
	static int memory;

	if (!memory)
		memory = memfd_create("ho", MFD_CLOEXEC);
	while (group_has() < (GROUP_MB << 20) - less)
		if (write(memory, bytes, sizeof(bytes)) < 0)
			return;
}

/* Set when the group is full. */
static volatile bool *is_full;

/* New events, and files with many indices. */
static void registers_at_the_limit(long which)
{
	static volatile unsigned int bit;
	static char text[512];

	for (int number = 0;;) {
		int fd = open_evil();

		for (int i = 0; i < 40; i++, number++) {
			int len = sprintf(text, "ho_%lx_%x ", which, number);

			while (len < 500)
				len += sprintf(text + len, "u8 a;");
			if (!reg(fd, text, &bit, NULL))
				unreg(fd, &bit, 0);
			while (!*is_full)
				sleep_ms(10);
		}
		close(fd);
	}
}

/* Starts processes that run when the group is full; and decoys. */
static void be_at_the_limit(int processes, void (*run)(long which))
{
	long before = killed_in_group();

	start_fuse(FOPEN_DIRECT_IO | FOPEN_KEEP_CACHE);
	/* By then, tasks have waited for memory for some seconds. */
	if (!fork()) {
		while (killed_in_group() < before + DECOYS / 8)
			sleep_ms(100);
		return did();
	}
	if (!fork()) {
		volatile char *at = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fuse_file(), 0);

		return (void)*at;
	}
	sleep_ms(100);
	if (write(group_procs, "0", 1) != 1)
		cannot("the group cannot be entered");
	is_full = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < processes; i++)
		if (!fork())
			return run(i);
	for (int i = 0; i < DECOYS; i++)
		if (!fork())
			return becomes_decoy();
	sleep_ms(1500);
	fill_group(128 << 10);
	*is_full = true;
}

static void memory_limit_is_reached(void)
{
	make_group();
	be_at_the_limit(4, registers_at_the_limit);
}

/* Counts the workers that wait for memory charged to programs; as root. */
static unsigned int waiting_workers(void)
{
	unsigned int waiting = 0;
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	while (dir && (entry = readdir(dir))) {
		char *comm, *stack;

		if (!isdigit(*entry->d_name) || !(comm = slurp(pathf("/proc/%s/comm", entry->d_name))))
			continue;
		stack = strncmp(comm, "kworker/u", 9) ? NULL : slurp(pathf("/proc/%s/stack", entry->d_name));
		waiting += stack && strstr(stack, "rhist_mm_") && strstr(stack, "try_charge_memcg");
		free(stack);
		free(comm);
	}
	if (dir)
		closedir(dir);
	return waiting;
}

/* The page of its bit is gone when the group is full, and the event is enabled and disabled. */
static void loses_page_at_the_limit(__maybe long which)
{
	volatile unsigned int *at = (void *)pages_of(1);

	if (reg(open_evil(), EVENT, at, NULL))
		return;
	while (!*is_full)
		sleep_ms(10);
	for (;;) {
		madvise((void *)at, page, MADV_DONTNEED);
		/* Fill the memory that this has freed. */
		if (which == 0)
			fill_group(0);
		sleep_ms(200);
	}
}

static void late_bits_at_the_limit(void)
{
	make_group();
	/* One process at a time waits, and another one while the limit is just being reached. */
	if (!fork())
		for (;;) {
			unsigned int waiting = waiting_workers();

			if (waiting > 2)
				found("%u workers wait for memory of one group", waiting);
			sleep_ms(200);
		}
	be_at_the_limit(24, loses_page_at_the_limit);
}

/* --- memory that changes --- */

static char *changing;
static int file;

static void uses_changing(__maybe long which)
{
	int fd = open_evil(), index = 0;
	volatile unsigned int bit;

	if (reg(fd, EVENT, &bit, &index))
		return;
	for (;;) {
		volatile void *at = changing + below(4) * page + below(8) * 4;

		reg(fd, EVENT, at, NULL);
		emit(fd, index, (void *)at, 4);
		emit(fd, index, (void *)at, 3 * page);
		unreg(fd, at, 0);
		did();
	}
}

static void changes_memory(__maybe long none)
{
	for (;;) {
		char *at = changing + below(4) * page;

		switch (below(7)) {
		case 0: munmap(at, page); break;
		case 1: mprotect(at, page, PROT_READ); break;
		case 2: mprotect(at, page, PROT_NONE); break;
		case 3: madvise(at, page, MADV_DONTNEED); break;
		case 4: mmap(at, page, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED, file, 0); break;
		case 5: if (mremap(at, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, changing + 5 * page) == at) {} break;
		default: map_anew(at, page);
		}
	}
}

static void memory_is_unmapped(void)
{
	changing = pages_of(8);
	file = memfd_create("ho", MFD_CLOEXEC);
	if (ftruncate(file, page)) {}
	start_threads(2, changes_memory);
	threads(3, uses_changing);
}

static void truncates(__maybe long none)
{
	for (;;) {
		if (ftruncate(file, 0) || ftruncate(file, 4 * page)) {}
		if (below(3) == 0)
			sleep_ms(1);
	}
}

static void file_is_truncated(void)
{
	/*
	 * User-mode Linux walks the memory of processes without a lock then, and lockdep reports
	 * it.
	 */
	if (user_mode_linux())
		cannot("not on user-mode Linux");
	file = memfd_create("ho", MFD_CLOEXEC);
	changing = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	start_threads(1, truncates);
	threads(3, uses_changing);
}

static void lowers_limits(long of_parent)
{
	static const int limits[] = { RLIMIT_AS, RLIMIT_MEMLOCK, RLIMIT_NOFILE, RLIMIT_DATA, RLIMIT_STACK, RLIMIT_FSIZE };
	pid_t other = of_parent ? getppid() : 0;

	for (;;) {
		int which = limits[below(sizeof(limits) / sizeof(*limits))];
		struct rlimit limit;

		prlimit(other, which, NULL, &limit);
		limit.rlim_cur = below(2) ? limit.rlim_max : (rlim_t)below(20) * page;
		if (limit.rlim_cur > limit.rlim_max)
			limit.rlim_cur = limit.rlim_max;
		prlimit(other, which, &limit, NULL);
		sleep_ms(below(3));
	}
}

static void registers_with_limits(__maybe long none)
{
	for (;;) {
		int fd = open_evil();
		char *at = pages_of(1 + below(50));

		if (at && !reg(fd, EVENT, at, NULL))
			unreg(fd, at, 0);
		if (at)
			munmap(at, 50 * page);
		if (fd >= 0)
			close(fd);
		did();
	}
}

static void limits_change(void)
{
	signal(SIGXFSZ, SIG_IGN);
	if (!fork())
		threads(1, registers_with_limits);
	start_threads(1, lowers_limits);
	if (!fork())
		lowers_limits(1);
	threads(2, registers_with_limits);
}

/* A parent writes to its child's memory through /proc, also to a mapping of user_events_data. */
static void memory_is_written_through_proc(void)
{
	volatile unsigned int *bits = (void *)pages_of(1);
	int fd = open(data_path(), O_RDWR), memory;
	const unsigned int *status = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	pid_t pid = fork();

	if (!pid)
		for (;;) {
			for (int i = 0; i < 32; i++)
				reg_flags(fd, EVENT, bits, 4, i, 0, NULL);
			for (int i = 0; i < 32; i++)
				unreg(fd, bits, i);
		}
	memory = open(pathf("/proc/%d/mem", pid), O_RDWR);
	if (memory < 0)
		cannot("/proc/PID/mem does not open");
	for (;;) {
		unsigned int number = below(~0u);

		if (pwrite(memory, &number, sizeof(number), (uintptr_t)bits) != sizeof(number))
			found("own memory cannot be written");
		if (status != MAP_FAILED && pwrite(memory, &number, 4, (uintptr_t)status) >= 0)
			found("the status page was written");
		if (status != MAP_FAILED && !mprotect((void *)status, page, PROT_READ | PROT_WRITE))
			found("the status page was made writable");
		did();
	}
}

int main(int argc, char **argv)
{
	static const struct attack attacks[] = {
		{ "arguments never come (userfaultfd)", userfaults_as_arguments, false, true },
		{ "arguments never come (FUSE)", fuse_as_arguments, true, false },
		{ "a result can never be written", userfault_as_result, false, false },
		{ "pages of bits never come (userfaultfd)", userfaults_under_bits, false, true },
		{ "pages of bits are never writable", protected_pages_under_bits, false, false },
		{ "pages of bits never come (FUSE)", fuse_under_bits, true, false },
		{ "mmap_lock is kept for ever", mmap_lock_is_kept, true, false },
		{ "an argument of a traced system call never comes", system_call_never_comes, true, false },
		{ "a reader of a shared file never has memory for it", shared_file_is_kept, false, true },
		{ "memory is at its limit", memory_limit_is_reached, true, false },
		{ "pages of bits are missing at its limit", late_bits_at_the_limit, true, false },
		{ "memory is unmapped, protected and moved", memory_is_unmapped, false, false },
		{ "a mapped file is truncated", file_is_truncated, false, false },
		{ "limits of memory and files change", limits_change, false, true },
		{ "memory is written through /proc", memory_is_written_through_proc, false, false },
		{},
	};

	return run_attacks(attacks, argc, argv);
}
