// SPDX-License-Identifier: GPL-2.0
/*
 * No memory for the worker: each allocation by which it makes a map grow or forget fails once. Hits
 * that find no place meanwhile are drops for lack of memory, and all others count; the worker tries
 * again later. Needs a kernel with failslab.
 */
#define _GNU_SOURCE
#include <dirent.h>

#include "fail_nth.h"
#include "intervals.h"

#define GETPGID "syscalls/sys_enter_getpgid"

#define WORKERS 256

/* The files by which allocations of the kernel's workers fail. */
static int workers[WORKERS], n_workers;

static void find_workers(void)
{
	DIR *tasks = opendir("/proc");
	struct dirent *task;

	while (n_workers)
		close(workers[--n_workers]);
	while (tasks && (task = readdir(tasks)) && n_workers < WORKERS) {
		char *name = isdigit((unsigned char)*task->d_name) ? slurp(pathf("/proc/%s/comm", task->d_name)) : NULL;

		if (name && !strncmp(name, "kworker/", 8)) {
			int fd = open(pathf("/proc/%s/task/%s/fail-nth", task->d_name, task->d_name), O_RDWR | O_CLOEXEC);

			if (fd >= 0)
				workers[n_workers++] = fd;
		}
		free(name);
	}
	if (tasks)
		closedir(tasks);
}

/* Makes the n-th allocation of each worker fail. */
static void fail_worker(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	find_workers();
	for (int i = 0; i < n_workers; i++)
		if (pwrite(workers[i], text, len, 0) != len)
			die("fail-nth of a worker: %s", strerror(errno));
}

/* Returns true if one has failed. From then on none does. */
static bool worker_failed(void)
{
	bool has = false;

	for (int i = 0; i < n_workers; i++) {
		char text[16] = "";

		has |= pread(workers[i], text, sizeof(text) - 1, 0) > 0 && atoi(text) == 0;
		pwrite(workers[i], "0", 1, 0);
	}
	return has;
}

/* Calls of getpgid() with numbers from..to-1: as many keys. */
static void call(int from, int to)
{
	for (int i = from; i < to; i++)
		syscall(SYS_getpgid, i);
}

/* Returns whether the hits of all rows, and of `other`, and the drops are so many. */
static bool adds_up(unsigned long long events, unsigned long long *dropped)
{
	char *text = slurp(in_event(GETPGID, "hist_jsonl"));
	unsigned long long hits = 0, other = 0;
	struct part p = { 0 };
	const char *line;
	bool right = part_of(text, &p);

	for (line = p.rows; right && !strncmp(line, "{\"type\":\"entry\"", 15); line = strchr(line, '\n') + 1)
		hits += strtoull(strstr(line, "\"values\":[") + 10, NULL, 10);
	other = p.other ? number_of(p.other, p.rest, "\"hitcount\":") : 0;
	right = right && hits + other == p.hits && p.hits + p.dropped == events && !p.no_bucket;
	if (!right)
		note("%llu hits, %llu in rows, %llu in other, and %llu dropped of %llu; %llu values without a bucket", p.hits, hits, other,
		     p.dropped, events, p.no_bucket);
	*dropped = p.dropped;
	free(text);
	return right;
}

/*
 * Growth beyond 512 places. If the worker lacks memory, hits without a place are drops, and it
 * tries again after a second.
 */
static void growth(void)
{
	static const char trigger[] = "hist:keys=pid:vals=pid.dist:size=128..2048";
	int n, failures = 0, late = 0, wrong = 0, untold = 0;
	bool fired = true;

	for (n = 1; n < MOST && fired; n++) {
		unsigned long long dropped;
		double until;
		int fd;

		truncate_file(in_event(GETPGID, "trigger"));
		append(in_event(GETPGID, "trigger"), trigger);
		/* A reader has the worker make a second set of counters, too. */
		fd = open(in_event(GETPGID, "hist_delta"), O_RDONLY | O_CLOEXEC);
		free(round_of(fd));
		if (!await_stat(GETPGID, AHEAD, 512))
			die("it has no places ahead: %ld", stat_of(GETPGID, AHEAD));
		fail_worker(n);
		call(0, 150);
		/* Either the map has grown, or its worker waits. */
		for (until = now() + 0.5; now() < until && stat_of(GETPGID, AHEAD) < 1000; )
			sleep_ms(20);
		call(150, 600);
		fired = worker_failed();
		failures += fired;
		if (!await_stat(GETPGID, AHEAD, 1000))
			die("it does not grow after allocation %d has failed: %ld places ahead", n, stat_of(GETPGID, AHEAD));
		call(600, 700);
		wrong += !adds_up(700, &dropped);
		/* The map had 512 places, and then 2048. */
		wrong += dropped > 600 - 512;
		late += dropped > 0;
		untold += stat_of(GETPGID, "no memory", "no memory %ld") != (long)dropped;
		close(fd);
	}
	truncate_file(in_event(GETPGID, "trigger"));
	ok(!wrong && failures > 3 && n < MOST,
	   "%s grows, and each hit is counted, whichever of %d allocations of its worker fails", trigger, n - 1);
	ok(late && !untold, "%d times it was late, and hist_stats has the drops, for lack of memory", late);
}

/* Entries expire, whichever allocation of the worker fails. */
static void expiry(void)
{
	static const char trigger[] = "hist:keys=pid:v=pid:size=128:expire(1s)";
	int n, failures = 0, wrong = 0;
	bool fired = true;

	for (n = 1; n < MOST && fired; n++) {
		unsigned long long dropped;

		truncate_file(in_event(GETPGID, "trigger"));
		append(in_event(GETPGID, "trigger"), trigger);
		call(0, 100);
		fail_worker(n);
		if (!await_stat(GETPGID, EXPIRED, 100))
			die("entries stay after allocation %d has failed", n);
		fired = worker_failed();
		failures += fired;
		call(200, 300);
		wrong += !adds_up(200, &dropped) || dropped;
	}
	truncate_file(in_event(GETPGID, "trigger"));
	ok(!wrong && failures && n < MOST,
	   "%s loses entries and no hit, whichever of %d allocations of its worker fails", trigger, n - 1);
}

int main(void)
{
	if (testing_c()) {
		skip("this is C", "maps that grow and forget");
		finish();
	}
	if (!prepare()) {
		skip("this kernel has no fault injection", "allocations that fail");
		finish();
	}
	/* A page that lacks is asked for again at once, so only failures of smaller ones matter. */
	set("fail_page_alloc/min-order", "10");
	growth();
	expiry();
	set("fail_page_alloc/min-order", "0");
	finish();
}
