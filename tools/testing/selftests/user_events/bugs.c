// SPDX-License-Identifier: GPL-2.0
// Bugs of the kernel's own user events: one point or more for each, named after its fix.
#define _GNU_SOURCE
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>

#include "client.h"

static volatile unsigned int word, other_word;
static long page;

static bool traced(const char *text)
{
	char *all = slurp(pathf("%s/trace", kernel_dir()));
	bool found = all && strstr(all, text);

	free(all);
	return found;
}

static bool listed(const char *text)
{
	char *all = slurp(pathf("%s/user_events_status", tracing_dir()));
	bool found = !all || strstr(all, text);

	free(all);
	return found;
}

/* CVE-2023-54139 "Ensure write index cannot be negative" */
static void negative_index(void)
{
	int fd = open_data(), index, value = 1, i, wrong = 0;

	reg(fd, "ub_index u32 a", &word, &index);
	enable("ub_index", true);
	for (i = 0; i < 31; i++) {
		wrong += emit(fd, -(1 << i), &value, 4) != -EINVAL;
		wrong += emit(fd, 1 - (1 << i), &value, 4) != (i ? -EINVAL : 8);
	}
	wrong += emit(fd, INT_MIN, &value, 4) != -EINVAL;
	wrong += emit(fd, INT_MAX, &value, 4) != -ENOENT;
	ok(!wrong, "CVE-2023-54139: the write index cannot be negative");
	enable("ub_index", false);
	unreg(fd, &word, 0);
	close(fd);
}

static volatile bool stop;

/* Registers and unregisters bits of events that nothing else keeps. */
static void *come_and_go(void *bits)
{
	volatile unsigned int *at = bits;

	while (!stop) {
		int fd = open_data();

		for (int i = 0; i < 16; i++)
			reg_flags(fd, pathf("ub_dup%d u32 a", i % 4), at, 4, i, 0, NULL);
		close(fd);
		for (int i = 0; i < 16; i++)
			unreg(STDIN_FILENO, at, i);
	}
	return NULL;
}

/* "Fix use-after-free in user_event_mm_dup()", and of events whose last bit is removed meanwhile */
static void fork_while_unregistering(void)
{
	static volatile unsigned int bits[2];
	double end = now() + repeats(2, 4, 60);
	unsigned int forks = 0, failed = 0;
	pthread_t threads[2];
	int fd = open_data(), status, i;

	/* Where come_and_go() finds it. */
	dup2(fd, STDIN_FILENO);
	close(fd);
	stop = false;
	for (i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, come_and_go, (void *)&bits[i]);
	while (now() < end) {
		pid_t pid = fork();

		if (!pid) {
			for (i = 0; i < 32; i++)
				if (forks % 2)
					unreg(STDIN_FILENO, &bits[i / 16], i % 16);
			_exit(0);
		}
		forks++;
		if (forks % 3 == 0)
			enable(pathf("ub_dup%u", forks % 4), forks % 2);
		failed += waitpid(pid, &status, 0) != pid || status;
	}
	stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < 4; i++)
		enable(pathf("ub_dup%d", i), false);
	close(STDIN_FILENO);
	open("/dev/null", O_RDONLY);
	ok(forks && !failed && within_seconds(10, !listed("ub_dup")),
	   "use after free in user_event_mm_dup(): forked %u times while bits came and went", forks);
}

/* "Clear bit upon unregistering", "Prevent same address and bit per process" */
static void stale_bits(void)
{
	int fd = open_data();

	reg(fd, "ub_stale u32 a", &word, NULL);
	enable("ub_stale", true);
	ok(word == 1 && !unreg(fd, &word, 0) && word == 0, "the bit is cleared when it is unregistered");
	enable("ub_stale", false);
	enable("ub_stale", true);
	ok(!within_seconds(0.2, word), "and not set any more");
	enable("ub_stale", false);

	reg(fd, "ub_stale u32 a", &word, NULL);
	ok(reg(fd, "ub_stale u32 a", &word, NULL) == -EADDRINUSE && reg(fd, "ub_alias", &word, NULL) == -EADDRINUSE,
	   "the same address and bit cannot be registered twice");
	ok(!exists("ub_alias"), "nor does an event come of it");
	ok(!unreg(fd, &word, 0) && unreg(fd, &word, 0) == -ENOENT, "so they are not unregistered twice either");
	close(fd);
}

/*
 * "Limit max fault-in attempts"; and from the review of fixup_user_fault(): the flag "lock was
 * dropped" was read uninitialized, and it slept in atomic context. The page is missing, and the
 * program decides when it arrives.
 */
static void faults(void)
{
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC), fd = open_data(), i;
	volatile unsigned int *at;
	char name[] = "/tmp/rhist-XXXXXX";
	int file = mkstemp(name);
	double began;

	/* A page beyond the end of its file. */
	if (ftruncate(file, page))
		die("ftruncate");
	at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	reg(fd, "ub_fault u32 a", at, NULL);
	reg(fd, "ub_fault u32 a", &word, NULL);
	if (ftruncate(file, 0))
		die("ftruncate");
	began = now();
	for (i = 0; i < 20; i++)
		enable("ub_fault", i % 2 == 0);
	ok(now() - began < 60 && !word, "a page that cannot be had is given up on");
	ok(unreg(fd, at, 0) == -EFAULT && unreg(fd, at, 0) == -ENOENT, "and its bit is given back");
	munmap((void *)at, page);
	unlink(name);
	close(file);

	at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (uintptr_t)at;
	range.range.len = page;
	reg(fd, "ub_fault u32 a", at, NULL);
	map_anew(at, page);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &range)) {
		skip("no userfaultfd", "a page that the program keeps away");
	} else {
		began = now();
		for (i = 0; i < 21; i++)
			enable("ub_fault", i % 2 == 0);
		ok(now() - began < 60 && word == 1, "a page that is kept away holds up nobody");
		/* The lock of the memory was dropped during the wait. */
		alarm(60);
		close(uffd);
		ok(within_seconds(10, *at == 1) && mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
		   != MAP_FAILED && !munmap((void *)at, page), "when it comes it is written, and no lock is left");
		alarm(0);
	}
	enable("ub_fault", false);
	unreg(fd, at, 0);
	unreg(fd, &word, 0);
	close(fd);
}

/*
 * "Ensure events with different arguments are not the same", "Handle matching arguments that is
 * null from dyn_events", "Fix matching of structs", "Allow events without spaces between fields"
 */
static void matching(void)
{
	static const struct {
		const char *first, *second;
		bool same;
	} of[] = {
		{ "u32 a", "u32 b", false }, { "u32 a", "s32 a", false }, { "u32 a", "u32 a;u32 b", false },
		{ "u32 a;u32 b", "u32 a", false }, { "u32 a", "", false }, { "", "u32 a", false }, { "", "", true },
		{ "struct my a 20", "struct my a 21", false }, { "struct my a 20", "struct my a 20", true },
		{ "struct my a 20", "struct other a 20", false }, { "u32 a;u32 b", "u32 a; u32 b", true },
		{ "u32 a; u32 b", "u32 a;u32 b", true }, { "u32 a;u32 b;", "u32 a;u32 b", true },
		{ "unsigned int a;u8 b", "unsigned  int  a;  u8 b", true }, { "u32 a;u32 b", "u32 b;u32 a", false },
	};

	for (unsigned int i = 0; i < sizeof(of) / sizeof(*of); i++) {
		int fd = open_data(), first, second, expected = of[i].same ? 0 : -EADDRINUSE, command = expected;

		first = reg(fd, pathf("ub_match%u %s", i, of[i].first), &word, NULL);
		second = reg(fd, pathf("ub_match%u %s", i, of[i].second), &other_word, NULL);
		/*
		 * The same text as a command, which the kernel splits. If the kernel has user
		 * events of its own, the command goes to those.
		 */
		if (!testing_c() && !kernel_has_own() && exists(pathf("ub_match%u", i)) && listed(pathf("ub_match%u\n", i)))
			command = append(pathf("%s/dynamic_events", kernel_dir()),
					 pathf("u:ub_match%u %s", i, of[i].second));
		if (!ok(!first && second == expected && command == expected, "\"%s\" and \"%s\" are %s",
			of[i].first, of[i].second, of[i].same ? "the same" : "not the same"))
			note("%s, %s, %s", errno_name(first), errno_name(second), errno_name(command));
		if (!second)
			unreg(fd, &other_word, 0);
		unreg(fd, &word, 0);
		close(fd);
	}
}

/* "Use EBADF when no event is enabled", "Fix record of events without fields" */
static void writing(void)
{
	int fd = open_data(), index, value = 7;

	reg(fd, "ub_write u32 a", &word, &index);
	ok(emit(fd, index, &value, 4) == -EBADF, "when nobody listens, to write is an error");
	unreg(fd, &word, 0);

	reg(fd, "ub_empty", &word, &index);
	ok(emit(fd, index, NULL, 0) == -EBADF, "also without fields");
	truncate_file(pathf("%s/trace", kernel_dir()));
	enable("ub_empty", true);
	ok(emit(fd, index, NULL, 0) == 4 && traced(": ub_empty:"), "an event without fields is recorded");
	ok(emit(fd, index, &value, 4) == 8, "even with data behind them");
	enable("ub_empty", false);
	unreg(fd, &word, 0);
	close(fd);
}

/* "Fix union collision of module and refcnt for dynamic events" */
static void references(void)
{
	static const char trigger[] = "enable_event:user_events:ub_ref";
	char *of = strdup(pathf("%s/events/sched/sched_process_wait/trigger", kernel_dir()));
	int fd = open_data(), other = open_data();

	reg(fd, "ub_ref u32 a", &word, NULL);
	ok(!append(of, trigger), "an event that a trigger has a reference to");
	unreg(fd, &word, 0);
	close(fd);
	/* These ask each event for its module; the references share a union with that. */
	append(pathf("%s/set_event", kernel_dir()), ":mod:rhist");
	append(pathf("%s/set_event", kernel_dir()), "user_events:*:mod:none");
	ok(del(other, "ub_ref") == -EBUSY && !within_seconds(0.3, !exists("ub_ref")),
	   "union of module and references: it stays");
	ok(!append(of, pathf("!%s", trigger)) && within_seconds(10, !exists("ub_ref")),
	   "until the trigger goes");
	free(of);
	truncate_file(pathf("%s/set_event", kernel_dir()));
	close(other);
}

int main(void)
{
	page = sysconf(_SC_PAGESIZE);
	negative_index();
	fork_while_unregistering();
	stale_bits();
	faults();
	matching();
	writing();
	references();
	ok(within_seconds(10, !listed("ub_")), "nothing is left");
	finish();
}
