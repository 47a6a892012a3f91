// SPDX-License-Identifier: GPL-2.0
/*
 * No memory: each allocation of an operation fails once, the first, the second, and so on until it
 * succeeds. What fails says ENOMEM and leaves everything as it was. Needs a kernel with failslab.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>

#include "fail_nth.h"
#include "intervals.h"

struct target {
	const char *event, *text, *second;
	/*
	 * A trigger of another event that this one refers to; it stays as it is when an allocation
	 * fails.
	 */
	const char *other, *referred;
};

#define GETPGID "syscalls/sys_enter_getpgid"
#define SETPGID "syscalls/sys_enter_setpgid"
#define IN_INSTANCE "../instances/rhist_n/events/"

static const struct target targets[] = {
	{ .event = GETPGID, .text = "hist:keys=pid:size=128", .second = "hist:keys=common_comm:size=128" },
	{ .event = GETPGID, .text = "hist:keys=pid:size=65536" },
	{ .event = "kprobes/rhist_n", .text = "hist:keys=pid:size=128", .second = "hist:keys=common_cpu:size=128" },
	{ .event = "sched/sched_waking", .text = "hist:keys=comm:size=128" },
	/* A filter, an expression, a stack, times; then names of tasks, and a shared name. */
	{ .event = GETPGID,
	  .text = "hist:keys=common_stacktrace,pid.log2:vals=pid,common_timestamp-5:sort=pid.descending,hitcount:size=128"
	  " if pid < 100 && common_pid != 0",
	  .second = "hist:name=rhist_n:keys=pid*2+1,common_pid.execname:size=128" },
	/* Accepted by the kernel's own file, and by ours */
	{ .event = GETPGID, .text = "hist:keys=pid:size=128", .second = "disable_hist:sched:sched_waking:5 if pid == 3" },
	/* the next table, and the elements of other */
	{ .event = GETPGID, .text = "hist:keys=pid:vals=pid.dist:size=128..1024:full(other)",
	  .second = "hist:keys=common_pid:v=pid:size=128:expire(taken,1h):full(recycle)" },
	/* A map of stacks, with its next table, and the groups. */
	{ .event = "sched/sched_waking",
	  .text = "hist:keys=common_stacktrace,common_cgroup,pid.cgroup:size=128..1024:full(other)" },
	{ .event = "synthetic/rhist_n", .text = "hist:keys=a:size=128" },
	{ .event = "ftrace/print", .text = "hist:keys=common_comm:size=128" },
	{ .event = IN_INSTANCE "ftrace/print", .text = "hist:keys=common_comm:size=128" },
	{ .event = IN_INSTANCE "sched/sched_waking", .text = "hist:keys=common_cpu:size=128" },
	/*
	 * Variables, strings and stacks among them; a second trigger on the event, and one on
	 * another event.
	 */
	{ .event = "sched/sched_waking", .text = "hist:keys=pid:s=comm:st=common_stacktrace:n=prio:size=128",
	  .second = "hist:keys=pid:a=$s:b=$st:c=$n+prio:size=128" },
	{ .event = GETPGID, .text = "hist:keys=pid:x=$v+1,y=$v-pid:vals=$v:size=128 if pid > 3",
	  .other = SETPGID, .referred = "hist:keys=pid:v=pgid:size=128" },
	/* a helper on the other event, a synthetic event, a variable for a field */
	{ .event = GETPGID, .text = "hist:keys=pid:x=$v+1:onmatch(syscalls.sys_enter_setpgid).trace(rhist_ns,$x,pgid,pid):size=128",
	  .second = "hist:keys=pid:z=$v+1:onmax($z).rhist_ns($z,pid,pid):size=128",
	  .other = SETPGID, .referred = "hist:keys=pid:v=pgid:size=128" },
	{ .event = IN_INSTANCE GETPGID,
	  .text = "hist:keys=pid:x=$v+1:onmatch(syscalls.sys_enter_setpgid).trace(rhist_ns,$x,pgid,pid):size=128",
	  .second = "hist:keys=pid:onmatch(syscalls.sys_enter_setpgid).trace(rhist_nt,pgid,$s,$st):size=128",
	  .other = IN_INSTANCE SETPGID, .referred = "hist:keys=pid:v=pgid:s=common_pid.execname:st=common_stacktrace:size=128" },
	{ .event = GETPGID, .text = "hist:keys=common_pid,pid.log2=3:on(pid):vals=(pid-$v).dist,pid.min:quantiles(50,99):"
	  "sort=pid.min,(pid-$v).p99:limit(5):size=128",
	  .second = "hist:keys=pid,common_cpu,common_comm,common_pid:vals=pid.max,pid.avg,pid.dist=5,(pid+1).hex:unit(s):buckets(2):size=128",
	  .other = SETPGID, .referred = "hist:keys=pid:v=pgid:size=128" },
	{ .event = GETPGID, .text = "hist:keys=common_pid:m=pid:onmax($m).save(pid,common_cpu):onchange($m).trace(rhist_ns,$m,pid,$m):size=128",
	  .second = "hist:keys=pid:n=common_pid:onchange($n).save(pid,common_pid.execname,common_stacktrace):size=128" },
	{ .event = "synthetic/rhist_ns", .text = "hist:keys=x:y=x:onchange($y).trace(rhist_ns,$y,pgid,pid):size=128" },
	{ .event = IN_INSTANCE GETPGID, .text = "hist:keys=common_pid:m=pid:onmax($m).snapshot():size=128" },
	{ .event = IN_INSTANCE GETPGID,
	  .text = "hist:keys=common_pid:m=pid:onchange($m).snapshot():onmax($m).save(common_comm):size=128" },
	/* a helper with a filter, and one that a second trigger uses as well */
	{ .event = GETPGID, .text = "hist:keys=pid:onmatch(syscalls.sys_enter_setpgid).rhist_ns(pgid,pgid,pid):size=128",
	  .second = "hist:keys=pid:c=5,d=pid,f=$d,e=-(pid):x=syscalls.sys_enter_setpgid.$v*2:"
		    "onmatch(syscalls.sys_enter_setpgid).rhist_ns(syscalls.sys_enter_setpgid.pgid,pid,$v):size=128",
	  .other = SETPGID, .referred = "hist:keys=pid:v=pgid:size=128 if pid != 7 && pgid < 100000" },
	/* strings and stacks of any length */
	{ .event = "sched/sched_waking", .text = "hist:keys=pid:s=comm:st=common_stacktrace:n=prio:"
		    "onchange($n).trace(rhist_nd,$s,comm,$st):size=128" },
};

static char *text_of(const char *event, const char *file)
{
	return slurp(pathf("%s/events/%s/%s", tracing_dir(), event, file));
}

static bool same_text(const char *event, const char *file, const char *before)
{
	char *now = text_of(event, file);
	bool same = now && before && !strcmp(now, before);

	free(now);
	return same;
}

/* Returns true if an event has no trigger. */
static bool unused(const char *event)
{
	char *text = text_of(event, "trigger");
	bool is = text && !strncmp(text, "# Available triggers:\n", 22);

	free(text);
	return is;
}

static int write_fd(int fd, const char *text)
{
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* Creation: after each failure, the trigger file must read as before. */
static void create(const struct target *t, const char *text)
{
	char *before = text_of(t->event, "trigger"), *other = t->other ? text_of(t->other, "trigger") : NULL;
	int fd = open(pathf("%s/events/%s/trigger", tracing_dir(), t->event), O_WRONLY | O_APPEND | O_CLOEXEC);
	int n, error = 0, failures = 0, others = 0, left = 0, lucky = 0;
	char undo[256];
	bool fired = true;

	snprintf(undo, sizeof(undo), "!%s", text);
	for (n = 1; n < MOST && fired; n++) {
		fail(n);
		error = write_fd(fd, text);
		fired = failed();
		if (!fired)
			break;
		if (!error) {
			/* That allocation was optional. */
			lucky++;
			if (write_fd(fd, undo))
				left++;
		} else if (excused(error)) {
			failures += error == -ENOMEM;
		} else if (!others++) {
			note("allocation %d: %s", n, errno_name(error));
		}
		if (!same_text(t->event, "trigger", before) && !left++)
			note("allocation %d: the trigger file has changed", n);
		if (other && !same_text(t->other, "trigger", other) && !left++)
			note("allocation %d: that of %s has changed", n, t->other);
	}
	ok(failures > 3 && !others && !left && n < MOST, "%s on %s: each of %d allocations failed, %d of them with ENOMEM", text,
	   t->event, n - 1, failures);
	note("%d were not needed", lucky);
	ok(!fired && !error, "%s on %s: made when none fails", text, t->event);
	ok(!same_text(t->event, "trigger", before), "%s on %s: and listed", text, t->event);
	close(fd);
	free(before);
	free(other);
}

/* Removal may fail for lack of memory; then the trigger is still there, else it is gone. */
static void destroy(const struct target *t, const char *text)
{
	int fd = open(pathf("%s/events/%s/trigger", tracing_dir(), t->event), O_WRONLY | O_APPEND | O_CLOEXEC);
	int n, error = 0, wrong = 0;
	char undo[256];
	bool fired = true;

	snprintf(undo, sizeof(undo), "!%s", text);
	for (n = 1; n < MOST && fired; n++) {
		char *before = text_of(t->event, "trigger");

		fail(n);
		error = write_fd(fd, undo);
		fired = failed();
		if (error && (!excused(error) || !same_text(t->event, "trigger", before)) && !wrong++)
			note("allocation %d: %s", n, errno_name(error));
		if (!error && same_text(t->event, "trigger", before) && !wrong++)
			note("allocation %d: success, and nothing has changed", n);
		free(before);
		if (!error) {
			if (!fired)
				break;
			/* Created once more, until no allocation is left to fail. */
			if (write_fd(fd, text) && !wrong++)
				note("it cannot be made again");
		}
	}
	ok(!wrong && n < MOST && !error, "%s on %s: removed, whichever of %d allocations failed", text, t->event, n - 1);
	close(fd);
}

/* Truncation removes all triggers, or fails and removes none. */
static void clear(const struct target *t)
{
	const char *file = pathf("%s/events/%s/trigger", tracing_dir(), t->event);
	char *before = text_of(t->event, "trigger");
	int n, error = 0, wrong = 0;
	bool fired = true;

	for (n = 1; n < MOST && fired; n++) {
		fail(n);
		error = truncate_file(file);
		fired = failed();
		if (error && (!excused(error) || !same_text(t->event, "trigger", before)) && !wrong++)
			note("allocation %d: %s", n, errno_name(error));
		if (error)
			continue;
		if (!unused(t->event) && !wrong++)
			note("allocation %d: success, and a trigger is left", n);
		if (fired && (append(file, t->text) || (t->second && append(file, t->second))) && !wrong++)
			note("they cannot be made again");
	}
	ok(!wrong && n < MOST && !error, "%s: all are removed by truncation, whichever of %d allocations failed", t->event, n - 1);
	free(before);
}

/* A wrong text: the error has to be EINVAL, or ENOMEM; the log keeps its form. */
static void refuse(void)
{
	int fd = open(pathf("%s/events/syscalls/sys_enter_getpgid/trigger", tracing_dir()), O_WRONLY | O_APPEND | O_CLOEXEC);
	struct log_entry e;
	int n, error, wrong = 0;
	bool fired = true;

	for (n = 1; n < MOST && fired; n++) {
		fail(n);
		error = write_fd(fd, "hist:keys=nosuch");
		fired = failed();
		if (!excused(error) && error != -EINVAL && !wrong++)
			note("allocation %d: %s", n, errno_name(error));
		read_log(tracing_dir(), &e);
		/* From this failure, or from the one before if memory for the entry was lacking. */
		if (e.count && (!strcmp(e.text, "Not enough memory") || !strcmp(e.text, "Memory of the command cannot be read")))
			e.count = 0;
		if (e.count && (e.count > 8 || strcmp(e.text, "Couldn't find field") || e.caret != 10) && !wrong++)
			note("allocation %d: the log says %s, caret %d", n, e.text, e.caret);
		free_log(&e);
	}
	ok(!wrong && n > 3, "a mistake is refused, whichever of %d allocations fails", n - 1);
	close(fd);
}

/* Cuts out the time of the read, which hist_jsonl has for each histogram. */
static void without_read_times(char *text)
{
	static const char *const names[] = { "\"realtime_ns\":", "\"monotonic_ns\":" };

	for (int i = 0; i < 2; i++)
		for (char *at = text; (at = strstr(at, names[i]));) {
			const char *rest;

			at += strlen(names[i]);
			rest = at + strspn(at, "0123456789");
			memmove(at, rest, strlen(rest) + 1);
		}
}

/* A text is read whole, or the read fails. */
static void read_file(const char *path)
{
	char *whole = slurp(path);
	int n, wrong = 0, refused = 0;
	bool fired = true;

	if (whole)
		without_read_times(whole);
	for (n = 1; n < MOST && fired; n++) {
		static char text[1 << 18];
		ssize_t got = -1, used = 0;
		int fd, error;

		fail(n);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		while (fd >= 0 && (got = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
			used += got;
		error = errno;
		fired = failed();
		if (fd >= 0)
			close(fd);
		text[used] = 0;
		without_read_times(text);
		if (got < 0) {
			refused++;
			if (!excused(-error) && !wrong++)
				note("allocation %d: %s", n, errno_name(error));
		} else if ((!whole || strcmp(text, whole)) && !wrong++) {
			note("allocation %d: another text", n);
		}
		if (!fired && got < 0 && !wrong++)
			note("nothing failed, and yet: %s", errno_name(error));
	}
	ok(whole && !wrong && n > 1, "%s: read whole or not at all, whichever of %d allocations fails",
	   path + strlen(tracing_dir()) + 1, n - 1);
	free(whole);
}

/* Number of names below a directory; -1 and errno on failure. */
static int names(const char *path)
{
	char buffer[32768];
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), count = 0, error;
	long got = -1;

	while (fd >= 0 && (got = syscall(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0)
		for (long at = 0; at < got; at += *(unsigned short *)(buffer + at + 16))
			count++;
	error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
	return got < 0 ? -1 : count;
}

static void read_directory(const char *path)
{
	int whole = names(path), n, count, wrong = 0;
	bool fired = true;

	for (n = 1; n < MOST && fired; n++) {
		int error;

		fail(n);
		count = names(path);
		error = errno;
		fired = failed();
		if (count < 0 ? (!fired || !excused(-error)) : count != whole)
			if (!wrong++)
				note("allocation %d: %d names of %d, %s", n, count, whole, errno_name(count < 0 ? error : 0));
	}
	ok(whole > 2 && !wrong && n > 1, "%s: %d names or none, whichever of %d allocations fails", path, whole, n - 1);
}

static void look_up(const char *path, int expected)
{
	int n, wrong = 0;
	bool fired = true;
	struct stat st;

	for (n = 1; n < MOST && fired; n++) {
		int error;

		fail(n);
		error = stat(path, &st) ? errno : 0;
		fired = failed();
		if ((!fired && error != expected) || (fired && error != expected && !excused(-error)))
			if (!wrong++)
				note("allocation %d: %s", n, errno_name(error));
	}
	ok(!wrong && n > 1, "%s: %s or ENOMEM, whichever of %d allocations fails", path, errno_name(expected), n - 1);
}

/* Result of poll() on a hist file; -errno if it cannot be opened or polled. */
static int asked(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), answer;
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLPRI };

	if (fd < 0)
		return -errno;
	answer = poll(&p, 1, 0) < 0 ? -errno : p.revents;
	close(fd);
	return answer;
}

static void ask(const char *path)
{
	int answer = asked(path), n, now, wrong = 0;
	bool fired = true;

	for (n = 1; n < MOST && fired; n++) {
		fail(n);
		now = asked(path);
		fired = failed();
		if (now != answer && !(fired && excused(now)) && !wrong++)
			note("allocation %d: %d, not %d", n, now, answer);
	}
	ok(answer >= 0 && !wrong && n > 1, "%s: polled, whichever of %d allocations fails",
	   path + strlen(tracing_dir()) + 1, n - 1);
}

/* --- intervals */

/* Reads a round whose n-th allocation fails, and goes on where the read has failed. */
static const char *read_on(int fd, int n, bool *fired, int *error)
{
	static char text[1 << 18];
	ssize_t used = 0, got;

	*error = 0;
	fail(n);
	while ((got = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += got;
	if (got < 0)
		*error = -errno;
	*fired = failed();
	while (got) {
		got = read(fd, text + used, sizeof(text) - 1 - used);
		if (got < 0)
			return NULL;
		used += got;
	}
	text[used] = 0;
	return text;
}

/* Readers of the first histogram in hist_stats that has had one; -1 without. */
static int readers_there(void)
{
	char *text = slurp(pathf("%s/hist_stats", tracing_dir())), *at = text ? strstr(text, " readers of intervals") : NULL;
	int n = -1;

	while (at && at > text && at[-1] != ' ')
		at--;
	if (at)
		n = atoi(at);
	free(text);
	return n;
}

/* Intervals lose nothing when a read or an open fails. */
static void intervals(const char *trigger)
{
	char *file = strdup(pathf("%s/events/" GETPGID "/trigger", tracing_dir()));
	char *path = strdup(pathf("%s/events/" GETPGID "/hist_delta_jsonl", tracing_dir()));
	int fd = open(path, O_RDONLY | O_CLOEXEC), n, error, refused = 0, others = 0, wrong = 0;
	struct accounts accounts = { 0 };
	unsigned long hits = 0;
	bool fired = true;

	/* The first read makes a reader of the histogram, later ones do not. */
	for (n = 1; n < MOST && fired; n++) {
		struct part p;

		truncate_file(file);
		close(fd);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		append(file, trigger);
		syscall(SYS_getpgid, 7);
		if ((!part_of(read_on(fd, n, &fired, &error), &p) || p.hits != 1) && !wrong++)
			note("allocation %d: %s", n, errno_name(error));
		refused += error == -ENOMEM;
		others += error && !excused(error);
	}
	ok(!wrong && !others && refused > 3 && n < MOST,
	   "the first interval of %s has all hits, whichever of %d allocations fails, %d of them with ENOMEM", trigger, n - 1, refused);
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	refused = others = wrong = 0;
	for (n = 1, fired = true; n < MOST && fired; n++) {
		const char *text, *mistake;

		for (int i = 0; i < 3; i++, hits++)
			syscall(SYS_getpgid, n + i);
		text = read_on(fd, n, &fired, &error);
		mistake = text ? add_text(&accounts, text) : strerror(errno);
		if (mistake && !wrong++)
			note("allocation %d: %s, %s", n, errno_name(error), mistake);
		refused += error == -ENOMEM;
		others += error && !excused(error);
	}
	ok(!wrong && !others && refused && n < MOST && accounts.n == 1 && sum_named(&accounts.all[0], "hits") == (long long)hits,
	   "its intervals lose none of %lu hits, whichever of %d allocations fails, %d of them with ENOMEM", hits, n - 1, refused);
	refused = others = 0;
	for (n = 1, fired = true; n < MOST && fired; n++) {
		int second;

		fail(n);
		second = open(path, O_RDONLY | O_CLOEXEC);
		error = second < 0 ? -errno : 0;
		fired = failed();
		refused += error == -ENOMEM;
		others += error && !excused(error);
		if (second >= 0)
			close(second);
	}
	ok(!others && refused > 3 && n < MOST && readers_there() == 1, "a second file is opened or not, whichever of %d allocations fails",
	   n - 1);
	free_accounts(&accounts);
	close(fd);
	truncate_file(file);
	free(file);
	free(path);
}

static bool counts(const struct target *t)
{
	struct totals totals;

	syscall(SYS_getpgid, 0);
	return read_totals(pathf("%s/events/%s/hist", tracing_dir(), t->event), &totals) && !totals.dropped;
}

int main(void)
{
	if (!prepare()) {
		skip("this kernel has no fault injection", "allocations that fail");
		finish();
	}
	append(pathf("%s/kprobe_events", kernel_dir()), "p:rhist_n " SYS_FUNCTION("getpgid") " pid=" SYS_ARGUMENT ":u64");
	append(pathf("%s/synthetic_events", kernel_dir()), "rhist_n u64 a");
	append(pathf("%s/synthetic_events", kernel_dir()), "rhist_ns pid_t x; pid_t pgid; pid_t pid");
	append(pathf("%s/synthetic_events", kernel_dir()), "rhist_nt pid_t pgid; char comm[]; long stack[]");
	append(pathf("%s/synthetic_events", kernel_dir()), "rhist_nd char s[]; char comm[16]; long stack[]");
	mkdir(pathf("%s/instances/rhist_n", tracing_dir()), 0755);
	/* Each page of a snapshot is an allocation. */
	append(pathf("%s/instances/rhist_n/buffer_size_kb", tracing_dir()), "8");
	for (unsigned int i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		const struct target *t = &targets[i];

		if (!strncmp(t->event, "kprobes/", 8) && !have_probes()) {
			skip("no kprobes", "%s counts", t->event);
			continue;
		}
		if (strstr(t->text, "snapshot()") && access(pathf("%s/snapshot", kernel_dir()), F_OK)) {
			skip("no snapshots", "%s counts", t->event);
			continue;
		}
		truncate_file(pathf("%s/events/%s/trigger", tracing_dir(), t->event));
		if (t->other)
			ok(!append(pathf("%s/events/%s/trigger", tracing_dir(), t->other), t->referred), "%s on %s", t->referred,
			   t->other);
		create(t, t->text);
		if (t->second)
			create(t, t->second);
		ok(counts(t), "%s counts", t->event);
		/* The second trigger saves, and tracks. */
		if (i == 0 || (t->second && strstr(t->second, "save("))) {
			read_file(pathf("%s/events/%s/trigger", tracing_dir(), t->event));
			read_file(pathf("%s/events/%s/hist", tracing_dir(), t->event));
			if (!access(pathf("%s/events/%s/hist_debug", tracing_dir(), t->event), F_OK))
				read_file(pathf("%s/events/%s/hist_debug", tracing_dir(), t->event));
			if (!access(pathf("%s/events/%s/hist_jsonl", tracing_dir(), t->event), F_OK))
				read_file(pathf("%s/events/%s/hist_jsonl", tracing_dir(), t->event));
			read_file(pathf("%s/show_event_triggers", tracing_dir()));
			if (!access(pathf("%s/hist_stats", tracing_dir()), F_OK))
				read_file(pathf("%s/hist_stats", tracing_dir()));
		}
		if (i == 0) {
			ask(pathf("%s/events/%s/hist", tracing_dir(), t->event));
			truncate_file(pathf("%s/error_log", tracing_dir()));
			refuse();
			read_file(pathf("%s/error_log", tracing_dir()));
		}
		/* Without memory the kernel itself cannot disarm a probe, and warns. */
		if (!strncmp(t->event, "kprobes/", 8)) {
			truncate_file(pathf("%s/events/%s/trigger", tracing_dir(), t->event));
			continue;
		}
		/* the helpers, too */
		if (t->other)
			clear(t);
		if (t->other && (append(pathf("%s/events/%s/trigger", tracing_dir(), t->event), t->text) ||
				 (t->second && append(pathf("%s/events/%s/trigger", tracing_dir(), t->event), t->second))))
			ok(false, "%s: made once more", t->event);
		/* the second may refer to the first */
		if (t->second)
			destroy(t, t->second);
		destroy(t, t->text);
		if (t->other) {
			const char *file = pathf("%s/events/%s/trigger", tracing_dir(), t->other);

			ok(!append(file, pathf("!%s", t->referred)) && unused(t->other), "nothing is left on %s", t->other);
		}
	}
	intervals("hist:keys=pid:vals=pid.max,pid.dist:size=128");
	intervals("hist:keys=common_pid:m=pid:onmax($m).save(pid):size=128");
	intervals("hist:keys=pid:vals=pid.max,pid.dist:size=128..65536:expire(1h):full(other)");
	look_up(pathf("%s/events/irq/irq_handler_entry/hist", tracing_dir()), 0);
	look_up(pathf("%s/events/irq/irq_handler_entry/trigger", tracing_dir()), 0);
	look_up(pathf("%s/events/irq/irq_handler_entry/format", tracing_dir()), 0);
	look_up(pathf("%s/events/irq/nosuch/hist", tracing_dir()), ENOENT);
	look_up(pathf("%s/per_cpu/cpu0/stats", tracing_dir()), 0);
	read_directory(tracing_dir());
	read_directory(pathf("%s/events", tracing_dir()));
	read_directory(pathf("%s/events/sched", tracing_dir()));
	read_directory(pathf("%s/events/sched/sched_switch", tracing_dir()));
	ok(!rmdir(pathf("%s/instances/rhist_n", tracing_dir())), "the instance is held by nothing");
	if (have_probes())
		ok(!append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_n"), "the kprobe event is held by nothing");
	ok(!append(pathf("%s/synthetic_events", kernel_dir()), "!rhist_n"), "nor is the synthetic event");
	ok(!append(pathf("%s/synthetic_events", kernel_dir()), "!rhist_ns") &&
	   !append(pathf("%s/synthetic_events", kernel_dir()), "!rhist_nt") &&
	   !append(pathf("%s/synthetic_events", kernel_dir()), "!rhist_nd"), "nor are those of actions");
	finish();
}
