// SPDX-License-Identifier: GPL-2.0
// The bit in a program's memory stays right through all changes of that memory.
#define _GNU_SOURCE
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "client.h"

static const char event[] = "pr_event";
static volatile unsigned int bit;
static long page;
static int data;

/* Runs a function in a child. Returns true if it returned true. */
static bool in_child(bool (*what)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(what() ? 0 : 1);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool follows(void)
{
	bool fine = true;

	for (int i = 0; i < 4 && fine; i++) {
		enable(event, i % 2 == 0);
		fine = within_seconds(2, bit == (i % 2 == 0));
	}
	return fine;
}

static bool unregisters(void)
{
	return !unreg(data, &bit, 0) && unreg(data, &bit, 0) == -ENOENT && !enable(event, true) &&
	       !within_seconds(0.2, bit);
}

static bool grandchild_follows(void)
{
	return in_child(follows);
}

static void forks(void)
{
	ok(in_child(follows), "a child has a bit of its own that follows");
	ok(in_child(grandchild_follows), "and so has its child");
	enable(event, false);
	ok(in_child(unregisters) && within_seconds(5, bit), "a child gives back its own bit alone");
	enable(event, false);
}

/* The parent has exited before the child looks for the first time. */
static void orphan(void)
{
	int pipes[2], i, orphans = 20;
	unsigned int fine = 0;
	char answer;

	if (pipe(pipes))
		die("pipe");
	for (i = 0; i < orphans; i++) {
		pid_t pid = fork();

		if (!pid) {
			if (fork())
				_exit(0);
			answer = within_seconds(120, bit) ? 'y' : 'n';
			_exit(write(pipes[1], &answer, 1) != 1);
		}
		waitpid(pid, NULL, 0);
	}
	sleep_ms(50);
	enable(event, true);
	for (i = 0; i < orphans; i++)
		fine += read(pipes[0], &answer, 1) == 1 && answer == 'y';
	ok(fine == (unsigned int)orphans, "daemons whose parents are gone: %u of %d", fine, orphans);
	enable(event, false);
	close(pipes[0]);
	close(pipes[1]);
}

/* Toggled while processes are forked: each sees the final state. */
static void *toggle(void *stop)
{
	for (int i = 0; !*(volatile bool *)stop; i++)
		enable(event, i % 2);
	enable(event, true);
	return NULL;
}

static bool sees_end(void)
{
	return within_seconds(20, bit);
}

static void fork_storm(void)
{
	pid_t pids[150];
	unsigned int fine = 0, count = slow_kernel() ? 40 : 150;
	volatile bool stop = false;
	pthread_t thread;
	int status;

	pthread_create(&thread, NULL, toggle, (void *)&stop);
	for (unsigned int i = 0; i < count; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			sleep_ms(i % 7);
			/* Many see it disabled first. Wait until the bit settles. */
			sleep_ms(700);
			_exit(sees_end() ? 0 : 1);
		}
	}
	stop = true;
	pthread_join(thread, NULL);
	for (unsigned int i = 0; i < count; i++)
		fine += waitpid(pids[i], &status, 0) == pids[i] && !status;
	ok(fine == count, "enabled while it forks: %u of %u children know", fine, count);
	enable(event, false);
}

static bool child_follows_and_exits(void)
{
	return in_child(follows);
}

/*
 * A child whose tracer stops it, which counts as a signal, before its first return to user space.
 */
static void traced(void)
{
	bool fine = false;
	pid_t pid, first = fork();
	int status;

	if (!first) {
		raise(SIGSTOP);
		_exit(child_follows_and_exits() ? 0 : 1);
	}
	if (waitpid(first, &status, WUNTRACED) != first ||
	    ptrace(PTRACE_SEIZE, first, NULL, PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL) || kill(first, SIGCONT)) {
		skip("no ptrace()", "a child of a program that is traced");
		return;
	}
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		if (pid == first && !WIFSTOPPED(status)) {
			fine = !status;
			break;
		}
		if (WIFSTOPPED(status))
			ptrace(PTRACE_CONT, pid, NULL, 0);
	}
	ok(fine, "a child of a program that is traced has a bit");
	enable(event, false);
}

/*
 * A child has the parent's bits at the time of the fork, even if the parent changes them before the
 * child first runs: which is soon, as both have the same processor.
 */
static void changes_after_fork(void)
{
	static volatile unsigned int before, after;
	unsigned int fine = 0, count = slow_kernel() ? 40 : rest_only() ? 50 : 200;
	cpu_set_t all;
	char byte;

	sched_getaffinity(0, sizeof(all), &all);
	pin(0);
	enable(event, true);
	for (unsigned int i = 0; i < count; i++) {
		int done[2], status;
		pid_t pid;

		before = after = 0;
		if (pipe(done) || reg(data, event, &before, NULL))
			die("a bit");
		pid = fork();
		if (!pid) {
			close(done[1]);
			/* Until the other end is closed. */
			_exit(read(done[0], &byte, 1) || unreg(data, &before, 0) ||
			      unreg(data, &after, 0) != -ENOENT || after);
		}
		if (unreg(data, &before, 0) || reg(data, event, &after, NULL))
			die("bits of the parent");
		close(done[0]);
		close(done[1]);
		fine += waitpid(pid, &status, 0) == pid && !status;
		unreg(data, &after, 0);
	}
	sched_setaffinity(0, sizeof(all), &all);
	ok(fine == count, "%u of %u children have the bits that there were at the fork", fine, count);
	enable(event, false);
}

static bool exec_forgets(void)
{
	static volatile unsigned int own;
	int fd = open_data();

	if (reg(fd, "pr_exec", &own, NULL))
		return false;
	execl("/bin/true", "true", NULL);
	return false;
}

static bool exit_forgets(void)
{
	static volatile unsigned int own;

	return !reg(data, "pr_exit", &own, NULL);
}

static void ends(void)
{
	int fd;

	ok(in_child(exec_forgets) && within_seconds(5, !exists("pr_exec")), "exec() gives all back");
	ok(in_child(exit_forgets), "a child registers with the file of its parent, and exits");
	ok(exists("pr_exit"), "the event stays with the file");
	fd = open_data();
	ok(within_seconds(5, del(fd, "pr_exit") == -EBUSY), "which is busy");
	close(fd);
}

static bool registers(const char *what)
{
	static volatile unsigned int own;
	int fd = open_data();

	/* And exits with the file open and the bit registered. */
	return !reg(fd, what, &own, NULL);
}

static bool one_registers(void)
{
	return registers("pr_one");
}

/* The event is referenced as long as its program lives, and longer. */
static bool referred_registers(void)
{
	return registers("pr_referred") &&
	       !append(pathf("%s/events/sched/sched_process_exec/trigger", tracing_dir()),
		       "enable_hist:user_events:pr_referred");
}

/* Only references keep an event. */
static void referred(void)
{
	if (testing_c()) {
		skip("references do not keep the kernel's own", "what a reference keeps");
		return;
	}
	ok(in_child(referred_registers), "a trigger refers to an event whose program exits");
	sleep_ms(200);
	ok(exists("pr_referred"), "the event stays");
	ok(in_child(one_registers) && within_seconds(5, !exists("pr_one")), "that of another program that exits does not");
	ok(!append(pathf("%s/events/sched/sched_process_exec/trigger", tracing_dir()),
		   "!enable_hist:user_events:pr_referred") && within_seconds(5, !exists("pr_referred")),
	   "and it goes with the trigger");
}

static bool clone_shares(void)
{
	return enable(event, true) == 0 && within_seconds(5, bit == 1);
}

static int clone_run(void *arg)
{
	(void)arg;
	_exit(clone_shares() ? 0 : 1);
}

static void clones(void)
{
	char *stack = malloc(1 << 16);
	int pid = clone(clone_run, stack + (1 << 16), CLONE_VM | SIGCHLD, NULL), status;

	ok(waitpid(pid, &status, 0) == pid && !status && bit == 1, "a clone has the same memory, and bit");
	enable(event, false);
	pid = vfork();
	if (!pid)
		_exit(0);
	ok(waitpid(pid, &status, 0) == pid && !enable(event, true) && within_seconds(5, bit),
	   "after vfork() it still follows");
	enable(event, false);
}

static volatile unsigned int *new_page(int prot, int flags, int fd)
{
	volatile unsigned int *at = mmap(NULL, page, prot, flags, fd, 0);

	if (at == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	return at;
}

static void pages(void)
{
	volatile unsigned int *at = new_page(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	char name[] = "/tmp/rhist-XXXXXX";
	int file = mkstemp(name), copy = 7;

	ok(!reg(data, "pr_event", at, NULL), "a page that nobody touched");
	map_anew(at, page);
	enable(event, true);
	ok(within_seconds(2, *at == 1), "a page that is not there comes");
	mprotect((void *)at, page, PROT_READ);
	enable(event, false);
	sleep_ms(100);
	mprotect((void *)at, page, PROT_READ | PROT_WRITE);
	ok(*at == 1, "a page that must not be written to is not");
	enable(event, true);
	enable(event, false);
	ok(within_seconds(5, *at == 0), "until it may be");
	munmap((void *)at, page);
	ok(!enable(event, true) && within_seconds(5, bit), "one that is gone disturbs nobody");
	ok(unreg(data, at, 0) == -EFAULT && unreg(data, at, 0) == -ENOENT, "and is given back all the same");
	enable(event, false);

	if (ftruncate(file, page))
		die("ftruncate");
	at = new_page(PROT_READ | PROT_WRITE, MAP_SHARED, file);
	ok(!reg(data, "pr_event", at, NULL) && !enable(event, true) && within_seconds(2, *at == 1) &&
	   pread(file, &copy, 4, 0) == 4 && copy == 1, "a page of a file, which has the bit too");
	enable(event, false);
	ok(within_seconds(2, *at == 0) && !unreg(data, at, 0), "and back");
	munmap((void *)at, page);
	/* A private page of a file that was never written to is shared with the file. */
	at = new_page(PROT_READ | PROT_WRITE, MAP_PRIVATE, file);
	copy = 0;
	ok(!reg(data, "pr_event", at, NULL) && !enable(event, true) && within_seconds(2, *at == 1) &&
	   pread(file, &copy, 4, 0) == 4 && copy == 0, "a private page of a file, which is not changed");
	enable(event, false);
	unreg(data, at, 0);
	munmap((void *)at, page);
	close(file);
	unlink(name);
}

/* Bytes of a huge page: 2 MiB where pages have 4 KiB. */
static size_t huge_size(void)
{
	char *text = slurp("/proc/meminfo"), *at = text ? strstr(text, "Hugepagesize:") : NULL;
	size_t kib = at ? strtoul(at + strlen("Hugepagesize:"), NULL, 10) : 2048;

	free(text);
	return kib << 10;
}

/* Returns true if a place is in a huge page. */
static bool in_huge_page(const volatile void *at)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	bool here = false, huge = false;
	unsigned long from, to, kib;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = from <= (unsigned long)at && (unsigned long)at < to;
		else if (here && (sscanf(line, "AnonHugePages: %lu", &kib) == 1 ||
				  sscanf(line, "KernelPageSize: %lu", &kib) == 1))
			huge |= kib << 10 >= huge_size();
	}
	if (maps)
		fclose(maps);
	return huge;
}

static volatile unsigned int *watched;

static bool watched_follows(void)
{
	return !enable(event, true) && within_seconds(2, *watched == 1) &&
	       !enable(event, false) && within_seconds(2, *watched == 0);
}

/*
 * The first write to the shared huge zero page allocates a huge page, or without this function
 * small ones.
 */
C_HAS(zero_pages_stay_huge, "../../mm/huge_memory.c", "do_huge_zero_wp_pmd(")

/*
 * Checks a bit in the middle of a huge page, also in a child after fork(), and that nothing beside
 * it changes.
 */
static void one_huge_page(const char *kind, bool is_huge, volatile unsigned int *at)
{
	watched = at;
	at[-1] = at[1] = 0x55;
	if (!is_huge)
		skip("this kernel splits it", "%s", kind);
	else
		ok(in_huge_page(at), "%s", kind);
	ok(!reg(data, "pr_event", at, NULL) && watched_follows(), "%s: a bit in it follows", kind);
	ok(in_child(watched_follows), "%s: so does that of a child", kind);
	ok(watched_follows() && at[-1] == 0x55 && at[1] == 0x55, "%s: and still, and nothing beside it changes", kind);
	ok(!unreg(data, at, 0), "%s: given back", kind);
}

static void huge_pages(void)
{
	const size_t at_byte = 5 * page + 12, size = huge_size();
	static const char transparent[] = "a transparent huge page", hugetlb[] = "a page of hugetlbfs";
	char *area = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *at;
	char *reserved = slurp("/proc/sys/vm/nr_hugepages");

	at = (char *)(((unsigned long)area + size - 1) & ~(size - 1));
	if (madvise(at, size, MADV_HUGEPAGE)) {
		skip("this kernel has none", "%s", transparent);
	} else {
		/* Only read, so that it is the shared huge zero page at first. */
		(void)*(volatile char *)at;
		one_huge_page(transparent, zero_pages_stay_huge(), (void *)(at + at_byte));
	}
	munmap(area, 2 * size);

	if (!reserved) {
		skip("this kernel has none", "%s", hugetlb);
		return;
	}
	/* The second is for the child, which gets a copy. */
	append("/proc/sys/vm/nr_hugepages", "2");
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (at == MAP_FAILED)
		die("%s: %s", hugetlb, strerror(errno));
	one_huge_page(hugetlb, true, (void *)(at + at_byte));
	munmap(at, size);
	append("/proc/sys/vm/nr_hugepages", reserved);
	free(reserved);
}

/* An address with a tag in its upper byte, as from a memory sanitizer. */
static void tagged_address(void)
{
	static const char name[] = "a tagged address";
#ifdef __aarch64__
	unsigned int *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int *tagged = (unsigned int *)((unsigned long)at | 0x2aul << 56);

	if (prctl(PR_SET_TAGGED_ADDR_CTRL, PR_TAGGED_ADDR_ENABLE, 0, 0, 0)) {
		skip("this kernel takes none", "%s", name);
		return;
	}
	watched = at;
	ok(!reg(data, event, tagged, NULL) && watched_follows(), "%s: a bit there follows", name);
	ok(in_child(watched_follows), "%s: so does that of a child", name);
	ok(!unreg(data, tagged, 0), "%s: given back", name);
	munmap(at, page);
#else
	skip("only arm64 has them", "%s", name);
#endif
}

static void words(void)
{
	static union {
		unsigned int half[2];
		unsigned long long whole;
	} w __attribute__((aligned(8)));
	unsigned int size, i, wrong = 0;

	for (size = 4; size <= 8; size += 4)
		for (i = 0; i < size * 8; i++) {
			unsigned int *at = size == 4 ? &w.half[1] : &w.half[0];
			unsigned long long all = 0x5555aaaa33330f0full, one = 1ull << (i + (size == 4) * 32);

			w.whole = all;
			wrong += !!reg_flags(data, "pr_event", at, size, i, 0, NULL);
			wrong += w.whole != (all & ~one);
			enable(event, true);
			wrong += w.whole != (all | one);
			wrong += !!unreg(data, at, i);
			wrong += w.whole != (all & ~one);
			enable(event, false);
		}
	ok(!wrong, "every bit of values of 4 and 8 bytes, and no other");
}

/* A process that removes its memory all the time. */
static void hostile(void)
{
	enum { ENOUGH = 20 };
	unsigned int done = 0;
	double end = now() + 300;
	pid_t pid = fork();

	if (!pid) {
		volatile unsigned int *at = new_page(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

		if (reg(data, "pr_event", at, NULL))
			_exit(1);
		for (unsigned int i = 0;; i++) {
			switch (i % 5) {
			case 0: munmap((void *)at, page); break;
			case 1: mprotect((void *)at, page, PROT_READ); break;
			case 2: madvise((void *)at, page, MADV_DONTNEED); break;
			case 3: if (!vfork()) _exit(0); break;
			}
			map_anew(at, page);
		}
	}
	while ((done < ENOUGH || long_run()) && now() < end) {
		enable(event, true);
		enable(event, false);
		done += 2;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ok(done >= ENOUGH && !enable(event, true) && within_seconds(5, bit),
	   "a process that unmaps all the time: %u changes", done);
	enable(event, false);
}

static volatile int late_result;

static void *register_late(void *at)
{
	unsigned int own = 0;

	/* Both the description and the bit are in the late page. */
	late_result = reg(data, at, &own, NULL);
	if (late_result == -EINVAL)
		late_result = reg(data, "pr_late", at, NULL);
	return NULL;
}

static bool others_register(void)
{
	static volatile unsigned int own;

	alarm(20);
	return !reg(data, "pr_other", &own, NULL) && !unreg(data, &own, 0) && del(data, "pr_none") == -ENOENT;
}

/* A request waits for a page that its process keeps away: others do not wait. */
static void kept_away(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	volatile unsigned int *at = new_page(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	pthread_t thread;

	range.range.start = (uintptr_t)at;
	range.range.len = page;
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &range)) {
		skip("no userfaultfd", "a page that is kept away");
		return;
	}
	late_result = 1;
	pthread_create(&thread, NULL, register_late, (void *)at);
	sleep_ms(300);
	ok(late_result == 1 && in_child(others_register), "a page that is kept away holds up nobody else");
	close(uffd);
	pthread_join(thread, NULL);
	ok(!late_result, "and when it comes, the request goes on");
	unreg(data, at, 0);
}

/* Counts the faults on a missing page of bits. */
static unsigned long asked(void)
{
	char *text = slurp(pathf("%s/kprobe_profile", kernel_dir())), *line = text ? strstr(text, "rhist_asked") : NULL;
	unsigned long hits = 0;

	if (line)
		sscanf(line, "%*s %lu", &hits);
	free(text);
	return hits;
}

#define BITS 32

/*
 * Bits in a page that never arrives: the page is requested once for all of them, and less and less
 * often.
 */
static void never_comes(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	volatile unsigned int *at = new_page(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	unsigned long times;
	int failed = 0;

	range.range.start = (uintptr_t)at;
	range.range.len = page;
	if (uffd < 0 || append(pathf("%s/kprobe_events", kernel_dir()), "p:rhist_asked rhist_mm_try_fault_in")) {
		skip("no userfaultfd, kprobes or module", "a page that never comes");
		return;
	}
	failed |= append(pathf("%s/events/kprobes/rhist_asked/enable", kernel_dir()), "1");
	for (int i = 0; i < BITS; i++)
		failed |= reg(data, "pr_never", &at[i], NULL);
	failed |= ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &range);
	madvise((void *)at, page, MADV_DONTNEED);
	times = asked();
	failed |= enable("pr_never", true);
	sleep_ms(4000);
	times = asked() - times;
	/* After 1 ms, 2, 4, and so on up to 2048. */
	ok(!failed && times >= 3 && times <= 16, "a page with %d bits that never comes: asked for %lu times", BITS, times);
	close(uffd);
	ok(within_seconds(10, at[0] && at[BITS - 1]), "and when it comes, all are set");
	enable("pr_never", false);
	for (int i = 0; i < BITS; i++)
		unreg(data, &at[i], 0);
	munmap((void *)at, page);
	append(pathf("%s/events/kprobes/rhist_asked/enable", kernel_dir()), "0");
	append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_asked");
}

/* All operations at once, by several processes. */
static void storm(void)
{
	double end = now() + repeats(2, 5, 300);
	unsigned int i, count = 4, bad = 0;
	pid_t pids[4], toggler;
	int status;

	for (i = 0; i < count; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		while (now() < end) {
			volatile unsigned int own = 0;
			int fd = open_data(), index, value = 1, done;

			if (reg(fd, pathf("pr_storm%d u32 a", rand() % 3), &own, &index))
				_exit(1);
			done = emit(fd, index, &value, 4);
			if (done != 8 && done != -EBADF)
				_exit(2);
			if (!fork()) {
				if (rand() % 2)
					execl("/bin/true", "true", NULL);
				_exit(0);
			}
			if (rand() % 2)
				close(fd);
			else
				fcntl(fd, F_SETFD, 0);
			if (unreg(data, &own, 0))
				_exit(3);
			close(fd);
			while (waitpid(-1, NULL, 0) > 0)
				;
		}
		_exit(0);
	}
	toggler = fork();
	if (!toggler) {
		for (i = 0; now() < end; i++) {
			int fd = open_data();

			/* May fail, since the events come and go. */
			enable(pathf("pr_storm%d", i / 2 % 3), i % 2 == 0);
			del(fd, pathf("pr_storm%d", i / 2 % 3));
			close(fd);
		}
		for (i = 0; i < 3; i++)
			enable(pathf("pr_storm%d", i), false);
		_exit(0);
	}
	for (i = 0; i < count; i++)
		if (waitpid(pids[i], &status, 0) != pids[i] || status) {
			note("process %u: %x", i, status);
			bad++;
		}
	waitpid(toggler, NULL, 0);
	ok(!bad, "registered, written, forked, executed, deleted and toggled at once");
	ok(within_seconds(10, !exists("pr_storm0") && !exists("pr_storm1") && !exists("pr_storm2")),
	   "and nothing is left of it");
}

int main(void)
{
	page = sysconf(_SC_PAGESIZE);
	data = open_data();
	if (!ok(!reg(data, "pr_event", &bit, NULL), "an event"))
		finish();
	forks();
	orphan();
	/* C loses changes while it forks. */
	if (!testing_c())
		fork_storm();
	traced();
	changes_after_fork();
	ends();
	referred();
	clones();
	pages();
	huge_pages();
	tagged_address();
	words();
	hostile();
	/* And has everybody wait. */
	if (!testing_c()) {
		kept_away();
		never_comes();
	}
	storm();
	unreg(data, &bit, 0);
	close(data);
	ok(within_seconds(5, !exists(event)), "in the end it is gone");
	finish();
}
