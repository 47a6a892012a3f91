// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that look for triggers, as trace-cmd and libtracefs do, read the trigger file of every
 * event. This takes no longer in the directory under test than in the kernel's own. And readers do
 * not wait for a grace period that somebody else's removal needs.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <sys/mman.h>

#include "tracing.h"

/*
 * Largest allowed ratio to the time in the kernel's directory. In an idle guest it is 0.9 to 1.1;
 * and 2 or more if each event is looked up, or each name anew, or the kernel's own file is opened
 * too. On kernels that watch memory and locks, it is up to 1.4.
 */
#define LIMIT (slow_kernel() ? 1.5 : 1.3)

/* Least duration of a round, in seconds: clocks may be coarse. */
#define LEAST 0.3

static char **triggers;
static int n_triggers;

static int is_dir(const struct dirent *entry)
{
	return entry->d_type == DT_DIR && entry->d_name[0] != '.';
}

static void find_triggers(void)
{
	struct dirent **systems, **events;
	int n = scandir(pathf("%s/events", kernel_dir()), &systems, is_dir, alphasort);

	for (int i = 0; i < n; i++) {
		const char *system = systems[i]->d_name;
		int m = scandir(pathf("%s/events/%s", kernel_dir(), system), &events, is_dir, alphasort);

		for (int j = 0; j < m; j++) {
			const char *name = pathf("events/%s/%s/trigger", system, events[j]->d_name);

			if (!access(pathf("%s/%s", kernel_dir(), name), F_OK)) {
				triggers = realloc(triggers, (n_triggers + 1) * sizeof(*triggers));
				triggers[n_triggers++] = strdup(name);
			}
			free(events[j]);
		}
		free(systems[i]);
	}
}

/* Reads all of them in a tracing directory, so many times. Returns how long it took, in seconds. */
static double read_all(const char *dir, int times)
{
	static char text[1 << 16];
	double from = now();

	for (int i = 0; i < times * n_triggers; i++) {
		char path[PATH_MAX];
		ssize_t got;
		int fd;

		snprintf(path, sizeof(path), "%s/%s", dir, triggers[i % n_triggers]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		do
			got = fd < 0 ? fd : read(fd, text, sizeof(text));
		while (got > 0);
		if (got < 0)
			die("%s: %s", path, strerror(errno));
		close(fd);
	}
	return now() - from;
}

/* Counts files with different texts in the two directories. */
static int differing(void)
{
	int n = 0;

	for (int i = 0; i < n_triggers; i++) {
		char *c = slurp(pathf("%s/%s", kernel_dir(), triggers[i]));
		char *ours = slurp(pathf("%s/%s", tracing_dir(), triggers[i]));

		n += !c || !ours || strcmp(c, ours);
		free(c);
		free(ours);
	}
	return n;
}

/* Inodes of the whole machine. */
static long inodes(void)
{
	char *text = slurp("/proc/sys/fs/inode-nr");
	long n = text ? atol(text) : -1;

	free(text);
	return n;
}

/* Names that were read stay in memory until it is short. */
static void memory(void)
{
	long before, after, least;

	for (int i = 0; i < 3; i++)
		put_len("/proc/sys/vm/drop_caches", 0, "2", 1);
	before = inodes();
	read_all(tracing_dir(), 1);
	after = inodes();
	/* One for a directory and one for its trigger, and as many of the kernel. */
	ok(after - before > 3 * n_triggers, "inodes after all were read: %ld more", after - before);
	least = after;
	for (int i = 0; i < 50 && least - before > n_triggers / 4; i++) {
		long left;

		put_len("/proc/sys/vm/drop_caches", 0, "2", 1);
		sleep_ms(20);
		left = inodes();
		least = left < least ? left : least;
	}
	ok(least - before <= n_triggers / 4, "when memory is short they are given back: %ld more", least - before);
}

/*
 * Removing triggers of single system calls patches no code, which takes long on a busy machine.
 * User-mode Linux lacks these events, but patches code in no time.
 */
static bool is_cheap(const char *trigger)
{
	if (!access(pathf("%s/events/syscalls", kernel_dir()), F_OK))
		return strstr(trigger, "/sys_enter_");
	return strstr(trigger, "/sched/") || strstr(trigger, "/timer/");
}

/*
 * Removes an instance with `count` triggers. Returns the longest time that readers waited
 * meanwhile, in seconds.
 */
static double removed(int count, volatile double *longest)
{
	const char *dir = strdup(pathf("%s/instances/readers", tracing_dir()));
	int set = 0;
	pid_t pid;

	if (mkdir(pathf("%s/instances/readers", kernel_dir()), 0700))
		die("an instance");
	for (int i = 0; i < n_triggers && set < count; i++)
		if (is_cheap(triggers[i]))
			set += !append(pathf("%s/%s", dir, triggers[i]), "hist:keys=common_pid:size=128");
	if (set < count)
		die("%d of %d triggers", set, count);
	*longest = 0;
	pid = fork();
	if (!pid) {
		for (;;) {
			double took = now();

			free(slurp(pathf("%s/hist_stats", tracing_dir())));
			took = now() - took;
			*longest = took > *longest ? took : *longest;
		}
	}
	sleep_ms(100);
	if (rmdir(pathf("%s/instances/readers", kernel_dir())))
		die("the instance is removed");
	free(slurp(pathf("%s/hist_stats", tracing_dir())));
	sleep_ms(500);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return *longest;
}

/* The remover alone waits for a grace period of RCU, and only once. */
static void removals(void)
{
	volatile double *longest = mmap(NULL, sizeof(*longest), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	enum { FEW = 2, MANY = 40 };
	double few = removed(FEW, longest), many = removed(MANY, longest);

	note("readers waited for %.0f ms when %d triggers were removed with their instance, and for %.0f ms with %d",
	     few * 1e3, FEW, many * 1e3, MANY);
	ok(many < 4 * few + 0.2, "nobody waits for each of many triggers that are removed with their instance");
}

int main(void)
{
	double c, ours, least_c = 1e9, least = 1e9;
	int times, different, rounds = repeats(9, 1, 21);

	find_triggers();
	ok(n_triggers > 100, "trigger files: %d", n_triggers);
	if (testing_c()) {
		skip("there is no other directory", "reading all of them takes no longer than in the kernel's directory");
		finish();
	}
	c = read_all(kernel_dir(), 1);
	ours = read_all(tracing_dir(), 1);
	note("for the first time: %.0f ms in the kernel's directory, %.0f ms in rhist's", c * 1e3, ours * 1e3);
	different = differing();
	ok(!different, "they say the same, but for %d", different);

	times = 1 + LEAST / (read_all(kernel_dir(), 1) + 1e-3);
	for (int round = 0; round < rounds; round++) {
		/* In turns, and each equally often the first. */
		if (round % 2)
			ours = read_all(tracing_dir(), times);
		c = read_all(kernel_dir(), times);
		if (round % 2 == 0)
			ours = read_all(tracing_dir(), times);
		note("%.1f ms in the kernel's directory, %.1f ms in rhist's: %.2f", c * 1e3 / times, ours * 1e3 / times, ours / c);
		least_c = c < least_c ? c : least_c;
		least = ours < least ? ours : least;
	}
	/* Other load on this machine can only make it longer. */
	ok(least <= LIMIT * least_c, "reading all of them takes %.2f times as long as in the kernel's directory, at most %.1f",
	   least / least_c, LIMIT);
	memory();
	removals();
	finish();
}
