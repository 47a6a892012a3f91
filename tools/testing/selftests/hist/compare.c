// SPDX-License-Identifier: GPL-2.0
/*
 * The same trigger on the kernel's own event and on ours, and the same events: entries, totals and
 * lines are equal, byte by byte and in order. The kernel's own implementation is the measure.
 */
#define _GNU_SOURCE
#include <sys/uio.h>

#include "events.h"

static const struct comparison {
	const char *event, *trigger;
	void (*fire)(void);
} comparisons[] = {
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:size=1024", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:sort=pid", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:sort=pid.descending", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:sort=hitcount.descending", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:size=8192", many },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:size=8192:sort=pid.descending", many },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid", numbers },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:sort=pid", numbers },
	{ "kprobes/rhist_c", "hist:keys=u8", numbers },
	{ "kprobes/rhist_c", "hist:keys=s8:sort=s8", numbers },
	{ "kprobes/rhist_c", "hist:keys=u16:sort=u16", numbers },
	{ "kprobes/rhist_c", "hist:keys=s16:sort=s16.descending", numbers },
	{ "kprobes/rhist_c", "hist:keys=u32", numbers },
	{ "kprobes/rhist_c", "hist:keys=s32:sort=s32", numbers },
	{ "kprobes/rhist_c", "hist:keys=s64:sort=s64", numbers },
	{ "kprobes/rhist_c", "hist:keys=x:sort=x", numbers },
	{ "kprobes/rhist_c", "hist:keys=bits", numbers },
	{ "kprobes/rhist_c", "hist:keys=char", numbers },
	{ "kprobes/rhist_c", "hist:keys=array", numbers },
	{ "kprobes/rhist_c", "hist:keys=comm", comms },
	{ "kprobes/rhist_c", "hist:keys=comm:sort=comm", comms },
	{ "kprobes/rhist_c", "hist:keys=__probe_ip", numbers },
	{ "kprobes/rhist_cp", "hist:keys=path", paths },
	{ "kprobes/rhist_cp", "hist:keys=path:sort=path", paths },
	{ "kprobes/rhist_cr", "hist:keys=ret", numbers },
	{ "syscalls/sys_enter_chdir", "hist:keys=__filename_val", paths },
	{ "syscalls/sys_enter_chdir", "hist:keys=__filename_val:sort=__filename_val.descending", paths },
	{ "syscalls/sys_enter_chdir", "hist:keys=filename", paths },
	{ "syscalls/sys_exit_getpgid", "hist:keys=ret:sort=ret", numbers },
	{ "task/task_rename", "hist:keys=newcomm", names },
	{ "task/task_rename", "hist:keys=oldcomm:sort=oldcomm", names },
	{ "task/task_rename", "hist:keys=oom_score_adj", names },
	{ "oom/oom_score_adj_update", "hist:keys=oom_score_adj", scores },
	{ "oom/oom_score_adj_update", "hist:keys=oom_score_adj:sort=oom_score_adj", scores },
	{ "oom/oom_score_adj_update", "hist:keys=comm", scores },
	{ "task/task_newtask", "hist:keys=clone_flags", children },
	{ "task/task_newtask", "hist:keys=pid:sort=pid", children },
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_pid", children },
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_pid:sort=common_pid", children },
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_cpu", cpus },
	{ "syscalls/sys_enter_getpgid", "hist:keys=cpu:sort=cpu", cpus },
	{ "syscalls/sys_enter_getpgid", "hist:keys=CPU", cpus },
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_comm", comms },
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_comm:sort=common_comm", comms },
	{ "syscalls/sys_enter_getpgid", "hist:keys=comm:sort=comm", comms },
	{ "syscalls/sys_enter_getpgid", "hist:keys=COMM", comms },
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_type", ties },
	{ "synthetic/rhist_c", "hist:keys=a:sort=a", numbers },
	{ "synthetic/rhist_c", "hist:keys=h:sort=h", numbers },
	{ "synthetic/rhist_c", "hist:keys=c", numbers },
	{ "synthetic/rhist_c", "hist:keys=d:sort=d", comms },
	{ "synthetic/rhist_cs", "hist:keys=s", names },
	{ "synthetic/rhist_cs", "hist:keys=s:sort=s.descending", names },
	{ "synthetic/rhist_cs", "hist:keys=p", names },
	{ "user_events/rhist_c", "hist:keys=s", relative },
	{ "user_events/rhist_c", "hist:keys=s:sort=s.descending", relative },
	{ "user_events/rhist_c", "hist:keys=n:sort=n", relative },
	{ "user_events/rhist_c", "hist:keys=n,s:vals=n", relative },
	{ "timer/itimer_expire", "hist:keys=pid", alarms },
	/*
	 * The context of a hit in its record, except for "need resched": a tick may come between
	 * the two counting hits.
	 */
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_preempt_count if !(common_flags & 0x19)", ties },
	{ "syscalls/sys_exit_getpgid", "hist:keys=common_preempt_count:vals=common_pid if !(common_flags & 0x19)", ties },
	{ "task/task_rename", "hist:keys=newcomm,pid:vals=oom_score_adj if oom_score_adj >= 0", names },
	{ "task/task_rename", "hist:keys=common_preempt_count:vals=common_pid if !(common_flags & 0x19)", names },
	/* in an interrupt, on PREEMPT_RT in a soft one */
	{ "timer/itimer_expire", "hist:keys=common_preempt_count if common_flags & 0x18", alarms },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid if !(common_flags & 0x19) && common_preempt_count == 0", ties },
	/* several keys */
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid,common_comm", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_comm,pid,common_cpu", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_comm,pid:sort=common_comm,pid.descending", comms },
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_pid,pid:sort=pid,common_pid", children },
	{ "task/task_rename", "hist:keys=oldcomm,newcomm", names },
	{ "task/task_rename", "hist:keys=newcomm,oom_score_adj:sort=oom_score_adj,newcomm.descending", names },
	{ "kprobes/rhist_c", "hist:keys=s8,u16,s64:sort=s8.descending,u16", numbers },
	{ "kprobes/rhist_c", "hist:keys=comm,u8:sort=comm,hitcount", comms },
	{ "syscalls/sys_enter_chdir", "hist:keys=common_pid,__filename_val:sort=__filename_val", paths },
	/* values */
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:vals=pid", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_cpu:vals=pid,common_pid", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:vals=hitcount,pid:sort=pid.descending", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:vals=hitcount,hitcount", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:vals=pid.hex:nohitcount", numbers },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:vals=hitcount.percent", numbers },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:vals=hitcount,hitcount.graph", numbers },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:vals=pid.percent,pid.graph", ties },
	{ "kprobes/rhist_c", "hist:keys=u8:vals=s8,s16:sort=s16", numbers },
	{ "kprobes/rhist_c", "hist:keys=u8:vals=s64.percent:sort=s64.descending", numbers },
	/* modifiers */
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid.hex", numbers },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid.hex:sort=pid", numbers },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid.log2", numbers },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid.log2:sort=pid", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid.buckets=100", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid.buckets=0x10:sort=pid.descending", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid.usecs", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=__syscall_nr.syscall", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_pid.execname,pid.log2", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid.sym", numbers },
	{ "kprobes/rhist_c", "hist:keys=__probe_ip.sym", numbers },
	{ "kprobes/rhist_c", "hist:keys=__probe_ip.sym-offset,s8.log2", numbers },
	{ "kprobes/rhist_c", "hist:keys=s16.log2:vals=u8:sort=u8", numbers },
	{ "kprobes/rhist_c", "hist:keys=s8.buckets=7:sort=s8", numbers },
	/* names, expressions, filters */
	{ "syscalls/sys_enter_getpgid", "hist:name=rhist_compared:keys=pid", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:pause", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid/128:vals=pid*2", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid+common_pid-common_pid,-(pid):sort=hitcount", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid:vals=pid*pid,pid-16/4", ties },
	{ "kprobes/rhist_c", "hist:keys=s8+1:vals=s16-u8", numbers },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid-common_pid:sort=hitcount", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid if pid < 3000 && pid > 100", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid if pid & 1 || comm == \"nobody\"", ties },
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_comm if comm ~ \"comm-1*\"", comms },
	{ "task/task_rename", "hist:keys=newcomm:sort=newcomm if newcomm ~ \"a*\"", names },
	{ "task/task_rename", "hist:keys=newcomm if newcomm == \"abc\" || newcomm != \"\" && oom_score_adj >= 0", names },
	{ "syscalls/sys_enter_chdir", "hist:keys=__filename_val if __filename_val ~ \"*mno*\"", paths },
	{ "syscalls/sys_enter_chdir", "hist:keys=__filename_val if __filename_val ~ \"*[0-4]\"", paths },
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid if !(pid > 300 || pid == 5) && common_pid > 1", ties },
	{ "kprobes/rhist_c", "hist:keys=s8 if s8 < 0 || u16 & 0x8000", numbers },
	{ "kprobes/rhist_c", "hist:keys=u64 if s64 <= -1 && u64 >= 0x8000000000000001", numbers },
	{ "syscalls/sys_enter_getpgid", "hist:keys=cpu if cpu == 0 || CPU & CPUS{1}", cpus },
};

static void same_text(char *c, char *ours, const char *what, const struct comparison *with)
{
	bool same = c && ours && !strcmp(c, ours);

	ok(same, "%s of %s on %s", what, with->trigger, with->event);
	if (!same)
		note_difference(c ? c : "(unreadable)", ours ? ours : "(unreadable)");
}

/* On a kernel that shows it in C, too. */
static void compare_debug(const char *c_dir, const char *our_dir, const struct comparison *with)
{
	char *c = slurp(pathf("%s/hist_debug", c_dir)), *ours = slurp(pathf("%s/hist_debug", our_dir));

	if (c) {
		mask(c);
		mask(ours);
		as_c_debugs(ours);
		if (!testing_c())
			without_differences(c);
		same_text(c, ours, "hist_debug", with);
	}
	free(c);
	free(ours);
}

/* Returns why the comparison is impossible, or NULL. */
static const char *lacking(const struct comparison *with)
{
	if (!c_scales_all() && strstr(with->trigger, ".log2"))
		return "C shifts by 64";
	/* Events of system calls lack a field of this name. */
	if (!c_has_comm() && strstr(with->event, "syscalls/")) {
		char keys[256];

		snprintf(keys, sizeof(keys), "%.*s", (int)strcspn(with->trigger, " "), with->trigger);
		if (names_comm(keys))
			return "C has no common_comm";
	}
	if (!c_reads_texts() && strstr(with->trigger, "_val"))
		return "the event has no such field";
	if (!c_counts_preemption() && strstr(with->event, "syscalls/") && strstr(with->trigger, "common_preempt_count"))
		return "C counts its own";
	return NULL;
}

static void compare(const struct comparison *with)
{
	const char *event = with->event;
	char c_dir[PATH_MAX], our_dir[PATH_MAX];
	char *c_line, *our_line, *c_hist, *our_hist;
	struct totals totals;
	int error;

	if (lacking(with)) {
		skip(lacking(with), "%s on %s", with->trigger, event);
		return;
	}
	snprintf(c_dir, sizeof(c_dir), "%s/events/%s", kernel_dir(), event);
	snprintf(our_dir, sizeof(our_dir), "%s/events/%s", tracing_dir(), event);
	error = append(pathf("%s/trigger", c_dir), sized(with->trigger));
	if (error) {
		ok(false, "%s on %s: C says %s", with->trigger, event, errno_name(error));
		return;
	}
	truncate_file(pathf("%s/error_log", tracing_dir()));
	error = testing_c() ? 0 : append(pathf("%s/trigger", our_dir), sized(with->trigger));
	if (error) {
		ok(false, "%s on %s: %s", with->trigger, event, errno_name(error));
		truncate_file(pathf("%s/trigger", c_dir));
		return;
	}
	with->fire();
	c_line = slurp(pathf("%s/trigger", c_dir));
	our_line = slurp(pathf("%s/trigger", our_dir));
	c_hist = slurp(pathf("%s/hist", c_dir));
	our_hist = slurp(pathf("%s/hist", our_dir));
	if (!testing_c() && c_line && c_hist) {
		without_differences(c_line);
		without_differences(c_hist);
	}
	same_text(c_line, our_line, "line", with);
	same_text(c_hist, our_hist, "histogram", with);
	if (!our_hist || !parse_totals(our_hist, &totals))
		memset(&totals, 0, sizeof(totals));
	/* Without hitcounts, nothing can be added up; a paused trigger has no hits. */
	if (!strstr(with->trigger, "nohitcount") && !strstr(with->trigger, "hitcount.percent") &&
	    !strstr(with->trigger, "hitcount,hitcount") && !strstr(with->trigger, ":pause"))
		ok(totals.hits && totals.hits == totals.sum && totals.entries == totals.lines && (!totals.dropped || slow_kernel()),
		   "%llu hits and %llu entries add up", totals.hits, totals.entries);
	compare_debug(c_dir, our_dir, with);
	truncate_file(pathf("%s/trigger", c_dir));
	truncate_file(pathf("%s/trigger", our_dir));
	free(c_line);
	free(our_line);
	free(c_hist);
	free(our_hist);
}

/* Adds to a text. */
__attribute__((format(printf, 2, 3)))
static void add(char *text, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, 65536 - used, format, args);
	va_end(args);
}

/* Adds the result of a system call. */
#define ADD(text, call) do { \
	long result = (call); \
	add(text, "%s: %ld %s\n", #call, result, result < 0 ? errno_name(errno) : ""); \
} while (0)

/* Reads the files in all manners. Returns the sizes, offsets, errors and bytes as text. */
static char *manners(const char *dir)
{
	char *said = calloc(1, 65536), buffer[4096], *volatile nowhere = (char *)8;
	const char *event = "events/syscalls/sys_enter_getpgid";
	static const char *const files[] = { "hist", "trigger" };

	if (append(pathf("%s/%s/trigger", dir, event), "hist:keys=pid:size=128"))
		return said;
	for (unsigned long i = 0; i < 20; i++)
		syscall(SYS_getpgid, i % 6);
	for (unsigned int f = 0; f < 2; f++) {
		int fd = open(pathf("%s/%s/%s", dir, event, files[f]), O_RDONLY);
		int other = open(pathf("%s/%s/%s", dir, event, files[f]), O_RDONLY);
		ssize_t got;

		/* piece by piece */
		while ((got = read(fd, buffer, 7)) > 0)
			add(said, "%.*s", (int)got, buffer);
		add(said, "\nend %zd, at %ld\n", got, (long)lseek(fd, 0, SEEK_CUR));
		/* somewhere else, and behind the end */
		got = pread(fd, buffer, 30, 20);
		add(said, "%zd %.*s\n", got, (int)(got > 0 ? got : 0), buffer);
		ADD(said, pread(fd, buffer, 30, 100000));
		ADD(said, lseek(fd, -5, SEEK_SET));
		ADD(said, lseek(fd, 0, SEEK_END));
		ADD(said, lseek(fd, 10, SEEK_SET));
		got = read(fd, buffer, 20);
		add(said, "%zd %.*s\n", got, (int)(got > 0 ? got : 0), buffer);
		/* From the start on, the text is made anew. */
		syscall(SYS_getpgid, 99);
		ADD(said, lseek(fd, 0, SEEK_SET));
		while ((got = read(fd, buffer, sizeof(buffer))) > 0)
			add(said, "%.*s", (int)got, buffer);
		/* Each descriptor has its own position. */
		got = read(other, buffer, 11);
		add(said, "%zd %.*s\n", got, (int)(got > 0 ? got : 0), buffer);
		ADD(said, read(other, nowhere, 11));
		ADD(said, write(fd, "x", 1));
		close(fd);
		close(other);
	}
	/* several pieces of one writev are several commands */
	int fd = open(pathf("%s/%s/trigger", dir, event), O_RDWR | O_APPEND);
	struct iovec pieces[] = { { "!hist:keys=pid", 14 }, { "hist:keys=common_pid", 20 } };

	ADD(said, writev(fd, pieces, 2));
	ADD(said, lseek(fd, 0, SEEK_CUR));
	ADD(said, read(fd, buffer, sizeof(buffer)));
	close(fd);
	fd = open(pathf("%s/%s/trigger", dir, event), O_RDONLY);
	buffer[0] = 0;
	if (read(fd, buffer, 19) == 19)
		add(said, "%.19s\n", buffer);
	close(fd);
	truncate_file(pathf("%s/%s/trigger", dir, event));
	return said;
}

static void reading(void)
{
	char *c = manners(kernel_dir()), *ours = manners(tracing_dir());

	ok(*c && !strcmp(c, ours), "reading and writing in all manners");
	if (strcmp(c, ours))
		note_difference(c, ours);
	free(c);
	free(ours);
}

/*
 * Returns true if user-mode Linux makes this comparison, too, and an earlier one is of the same
 * event.
 */
static bool shown_elsewhere(unsigned int which)
{
	const struct comparison *with = &comparisons[which];
	bool again = false;

	for (unsigned int i = 0; i < which; i++)
		again |= !strcmp(comparisons[i].event, with->event);
	return again && !strstr(with->trigger, "CPUS{") && strncmp(with->event, "kprobes/", 8);
}

int main(void)
{
	make_events();
	pin(0);
	for (unsigned int i = 0; i < sizeof(comparisons) / sizeof(*comparisons); i++) {
		const char *event = comparisons[i].event;
		bool numbers = !strcmp(event, "synthetic/rhist_c"), strings = !strcmp(event, "synthetic/rhist_cs");

		if (rest_only() && shown_elsewhere(i))
			continue;
		if (!have_probes() && (numbers || !strncmp(event, "kprobes/", 8))) {
			skip("no kprobes", "%s on %s", comparisons[i].trigger, event);
			continue;
		}
		if (strstr(comparisons[i].trigger, "CPUS{") && sysconf(_SC_NPROCESSORS_CONF) < 2) {
			skip("one processor", "%s on %s", comparisons[i].trigger, event);
			continue;
		}
		if (user_events < 0 && !strncmp(event, "user_events/", 12)) {
			skip("no user_events", "%s on %s", comparisons[i].trigger, event);
			continue;
		}
		if (numbers)
			make("events/kprobes/rhist_c/trigger", "hist:keys=common_pid:va=u64,vh=s16,vc=u8:"
			     "onmatch(kprobes.rhist_c).trace(rhist_c,$va,$vh,$vc,comm)");
		if (strings)
			make("events/task/task_rename/trigger",
			     "hist:keys=common_pid:onmatch(task.task_rename).trace(rhist_cs,newcomm,pid)");
		compare(&comparisons[i]);
		if (numbers)
			truncate_file(pathf("%s/events/kprobes/rhist_c/trigger", kernel_dir()));
		if (strings)
			truncate_file(pathf("%s/events/task/task_rename/trigger", kernel_dir()));
	}
	reading();
	remove_events();
	finish();
}
