// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of a reader of intervals, in control groups of version 2. Its own totals are charged
 * to the group of the task that opens the file; totals and banks that readers share, to nobody.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#include "events.h"
#include "intervals.h"

#define EVENT "rhist_events/wake"
/* Four columns: hits, a sum, a minimum and a maximum. */
#define TRIGGER "hist:keys=level:vals=amount,level.min,level.max:size=131072"

/* At least 8 bytes for each column and entry. */
#define LEAST (8l * 4 * 131072)

static char top[] = "/tmp/rhist-XXXXXX";
static const char *group;

/* Makes a group. Returns false if that fails: user-mode Linux has none. */
static bool make_group(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || !mkdtemp(top) ||
	    mount("none", top, "cgroup2", 0, NULL))
		return false;
	append(pathf("%s/cgroup.subtree_control", top), "+memory");
	group = strdup(pathf("%s/rhist_i", top));
	return !mkdir(group, 0755) && !access(pathf("%s/memory.current", group), F_OK);
}

/* Bytes that are charged to the group. */
static long charged(void)
{
	char *text = slurp(pathf("%s/memory.current", group));
	long bytes = text ? atol(text) : -1;

	free(text);
	return bytes;
}

/* Bytes in hist_stats: of all readers, with the bank and the totals. */
static long in_stats(void)
{
	char *text = slurp(pathf("%s/hist_stats", tracing_dir())), *at = text ? strstr(text, " readers of intervals, ") : NULL;
	long bytes = 0;

	if (at)
		sscanf(at, " readers of intervals, %*u cuts, %ld bytes for them", &bytes);
	free(text);
	return bytes;
}

/* Returns the bytes that a second reader takes in addition. */
static long bytes_of_reader(void)
{
	int fds[2];
	long bytes[2];

	for (int i = 0; i < 2; i++) {
		fds[i] = open(in_event(EVENT, "hist_delta_jsonl"), O_RDONLY | O_CLOEXEC);
		bytes[i] = in_stats();
	}
	close(fds[0]);
	close(fds[1]);
	return bytes[1] - bytes[0];
}

/* Bytes by which the kernel may round a large allocation up: it takes whole huge pages. */
#define HUGE_PAGE (2l << 20)

/* Returns true if a reader takes about so many. Bank and totals take twice as many, at least. */
static bool is_reader(long bytes, long reader)
{
	note("%ld bytes of %ld", bytes, reader);
	return bytes >= reader - reader / 8 && bytes <= reader + reader / 8 + HUGE_PAGE;
}

/* A process in the group, which the OOM killer spares. It obeys one byte at a time, and answers. */
static int orders, answers;

static void obey(int from, int to)
{
	int fd = -1, answer;
	char order;

	while (read(from, &order, 1) == 1) {
		answer = 0;
		if (order == 'o') {
			fd = open(in_event(EVENT, "hist_delta_jsonl"), O_RDONLY | O_CLOEXEC);
			answer = fd < 0 ? -errno : 0;
		} else if (close(fd)) {
			answer = -errno;
		}
		if (write(to, &answer, sizeof(answer)) != sizeof(answer))
			break;
	}
	_exit(0);
}

static pid_t start(void)
{
	int there[2], back[2];
	pid_t pid;

	if (pipe(there) || pipe(back))
		die("pipe");
	pid = fork();
	if (!pid) {
		close(there[1]);
		if (append("/proc/self/oom_score_adj", "-1000") || append(pathf("%s/cgroup.procs", group), "0"))
			_exit(1);
		obey(there[0], back[1]);
	}
	close(there[0]);
	close(back[1]);
	orders = there[1];
	answers = back[0];
	return pid;
}

/* 'o': opens hist_delta_jsonl; 'c': closes it. Returns 0 or a negative errno. */
static int order(char what)
{
	int answer;

	if (write(orders, &what, 1) != 1 || read(answers, &answer, sizeof(answer)) != sizeof(answer))
		die("the process in the group has ended");
	return answer;
}

int main(void)
{
	long before, after, reader;
	int error, fd;
	pid_t pid;

	if (testing_c()) {
		skip("this is C", "readers of intervals");
		finish();
	}
	load_events();
	if (event_source < 0)
		die("the module rhist_events");
	if (!make_group()) {
		skip("this kernel has no memory control groups", "who pays for a reader of intervals");
		finish();
	}
	truncate_file(in_event(EVENT, "trigger"));
	add_trigger(EVENT, TRIGGER);
	reader = bytes_of_reader();
	if (reader < LEAST)
		die("hist_stats tells of %ld bytes for a reader", reader);
	pid = start();
	/* The process itself needs memory for these calls. */
	order('o');
	order('c');

	before = charged();
	error = order('o');
	after = charged();
	if (!ok(!error && is_reader(after - before, reader), "a reader is charged to the group of the task that opens the file"))
		note("%s", errno_name(error));
	before = after;
	order('c');
	after = charged();
	ok(is_reader(before - after, reader), "until it is closed");

	before = charged();
	fd = open(in_event(EVENT, "hist_delta_jsonl"), O_RDONLY | O_CLOEXEC);
	after = charged();
	ok(fd >= 0 && after - before < reader / 8, "one that is opened by a task outside is not");
	note("%ld bytes", after - before);
	close(fd);

	append(pathf("%s/memory.max", group), pathf("%ld", charged() + reader / 2));
	error = order('o');
	if (!ok(error == -ENOMEM, "in a group that has no room for it, open() fails with ENOMEM"))
		note("%s", errno_name(error));
	append(pathf("%s/memory.max", group), "max");
	error = order('o');
	if (!ok(!error, "and when there is room, it does not"))
		note("%s", errno_name(error));

	/* The first reader of a histogram has a bank and the totals made. */
	order('c');
	truncate_file(in_event(EVENT, "trigger"));
	add_trigger(EVENT, TRIGGER);
	before = charged();
	error = order('o');
	after = charged();
	ok(!error && is_reader(after - before, reader), "the first reader of a histogram pays for no more");

	close(orders);
	waitpid(pid, NULL, 0);
	truncate_file(in_event(EVENT, "trigger"));
	rmdir(group);
	umount(top);
	rmdir(top);
	unload_events();
	finish();
}
