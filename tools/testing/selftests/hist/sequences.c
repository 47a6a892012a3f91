// SPDX-License-Identifier: GPL-2.0
/*
 * Sequences of commands and events, given to the kernel's own triggers and to ours step by step:
 * after each step errno, error_log, triggers and histograms are the same.
 */
#define _GNU_SOURCE
#include "errorlog.h"

/*
 * One step a line:
 *   fire EVENT KEY COUNT       system calls with that argument
 *   truncate EVENT             opens its trigger file with O_TRUNC
 *   EVENT TEXT                 writes TEXT to its trigger file
 * EVENT is getpgid or getsid.
 */
static const struct sequence {
	const char *name, *steps;
} sequences[] = {
	{ "pause, continue, clear",
	  "getpgid hist:keys=pid\n"
	  "fire getpgid 7 3\n"
	  "getpgid hist:keys=pid:pause\n"
	  "fire getpgid 7 4\n"
	  "getpgid hist:keys=pid:pause\n"
	  "getpgid hist:keys=pid:cont\n"
	  "fire getpgid 8 2\n"
	  "getpgid hist:keys=pid:clear\n"
	  "fire getpgid 9 1\n"
	  "getpgid hist:keys=pid:pause\n"
	  "getpgid hist:keys=pid:clear\n"
	  "fire getpgid 9 1\n"
	  "getpgid hist:keys=pid:continue\n"
	  "fire getpgid 9 1\n"
	  "getpgid hist:keys=pid:size=128:vals=hitcount:pause:cont:clear\n"
	  "getpgid hist:keys=pid:cont\n"
	  "getpgid !hist:keys=pid:pause\n" },
	{ "pause and clear of what is not there",
	  "getpgid hist:keys=pid:cont\n"
	  "getpgid hist:keys=pid:clear\n"
	  "getpgid !hist:keys=pid:clear\n"
	  "getpgid hist:keys=pid:pause\n"
	  "fire getpgid 7 3\n"
	  "getpgid hist:keys=common_pid:cont\n"
	  "getpgid hist:keys=pid:cont\n"
	  "fire getpgid 7 3\n" },
	{ "one of several is paused",
	  "getpgid hist:keys=pid\n"
	  "getpgid hist:keys=common_pid.execname\n"
	  "getpgid hist:keys=pid,common_pid.execname\n"
	  "fire getpgid 7 3\n"
	  "getpgid hist:keys=common_pid.execname:pause\n"
	  "fire getpgid 8 3\n"
	  "getpgid hist:keys=pid:clear\n"
	  "fire getpgid 9 3\n"
	  "getpgid !hist:keys=common_pid.execname\n"
	  "fire getpgid 9 3\n"
	  "getpgid hist:keys=common_pid.execname\n"
	  "fire getpgid 9 3\n" },
	{ "the same again, and removal",
	  "getpgid hist:keys=pid\n"
	  "getpgid hist:keys=pid\n"
	  "getpgid hist:keys=pid:size=128\n"
	  "getpgid hist:keys=pid:sort=pid\n"
	  "getpgid hist:keys=pid:sort=pid.descending\n"
	  "getpgid hist:keys=pid:sort=hitcount.descending\n"
	  "getpgid hist:keys=pid:vals=common_pid\n"
	  "getpgid hist:keys=pid.hex\n"
	  "getpgid hist:keys=pid.buckets=10\n"
	  "getpgid hist:keys=pid:nohitcount:vals=common_pid\n"
	  "fire getpgid 25 2\n"
	  "getpgid !hist:keys=pid:sort=pid\n"
	  "getpgid !hist:keys=pid:size=65536\n"
	  "getpgid !hist:keys=pid\n"
	  "getpgid !hist:keys=nosuch\n"
	  "getpgid !hist:keys=pid.hex:sort=pid\n"
	  "getpgid !hist:keys=pid.hex\n"
	  "fire getpgid 25 2\n"
	  "truncate getpgid\n" },
	{ "a name on two events",
	  "getpgid hist:name=rhist_one:keys=pid\n"
	  "fire getpgid 7 2\n"
	  "getsid hist:name=rhist_one:keys=pid\n"
	  "fire getsid 7 3\n"
	  "fire getsid 8 1\n"
	  "getsid hist:name=rhist_one:keys=pid\n"
	  "getpgid hist:keys=pid\n"
	  "fire getpgid 7 1\n"
	  "getsid hist:name=rhist_one:keys=pid:pause\n"
	  "fire getsid 9 1\n"
	  "fire getpgid 9 1\n"
	  "getpgid hist:name=rhist_one:keys=pid:clear\n"
	  "fire getsid 9 1\n"
	  "fire getpgid 9 1\n"
	  "getsid hist:name=rhist_one:keys=pid:cont\n"
	  "fire getsid 9 1\n"
	  "getpgid !hist:name=rhist_one:keys=pid\n"
	  "fire getsid 10 1\n"
	  "fire getpgid 10 1\n"
	  "getpgid hist:name=rhist_one:keys=pid\n"
	  "fire getpgid 10 1\n"
	  "truncate getsid\n"
	  "fire getpgid 10 1\n"
	  "truncate getpgid\n"
	  "getsid hist:name=rhist_one:keys=common_pid\n" },
	{ "names that do not match",
	  "getpgid hist:name=rhist_two:keys=pid\n"
	  "getsid hist:name=rhist_two:keys=common_pid\n"
	  "getsid hist:name=rhist_two:keys=pid,common_pid\n"
	  "getsid hist:name=rhist_two:keys=pid:vals=pid\n"
	  "getsid hist:name=rhist_two:keys=pid:sort=pid\n"
	  "getsid hist:name=rhist_two:keys=pid:size=128\n"
	  "getsid hist:name=rhist_three:keys=pid\n"
	  "getsid hist:name=rhist_three:keys=pid\n"
	  "getsid !hist:name=rhist_two:keys=common_pid\n"
	  "fire getpgid 7 1\n"
	  "fire getsid 7 1\n" },
	{ "truncation",
	  "getpgid hist:keys=pid\n"
	  "getpgid hist:name=rhist_four:keys=pid\n"
	  "getpgid hist:keys=common_pid:pause\n"
	  "getsid hist:keys=pid\n"
	  "fire getpgid 7 1\n"
	  "fire getsid 7 1\n"
	  "truncate getpgid\n"
	  "fire getpgid 7 1\n"
	  "fire getsid 7 1\n"
	  "truncate getpgid\n"
	  "getpgid hist:keys=pid\n"
	  "fire getpgid 7 1\n" },
	{ "histograms that another event lets go on, and pauses",
	  "getsid hist:keys=pid:pause\n"
	  "getsid hist:keys=common_pid\n"
	  "getpgid enable_hist:syscalls:sys_enter_getsid:2 if pid == 7\n"
	  "getpgid enable_hist:syscalls:sys_enter_getsid\n"
	  "getpgid disable_hist:syscalls:sys_enter_getsid\n"
	  "fire getpgid 6 1\n"
	  "fire getsid 1 2\n"
	  "fire getpgid 7 1\n"
	  "fire getsid 1 2\n"
	  "fire getpgid 7 1\n"
	  "getsid hist:keys=pid:pause\n"
	  "fire getpgid 7 1\n"
	  "fire getsid 1 2\n"
	  "getpgid !disable_hist:syscalls:sys_enter_getpgid\n"
	  "getpgid !disable_hist:syscalls:sys_enter_getsid:x if nosuch\n"
	  "getpgid !enable_hist:syscalls:sys_enter_getsid\n"
	  "getpgid disable_hist:syscalls:sys_enter_getsid:18446744073709551615\n"
	  "fire getsid 1 1\n"
	  "fire getpgid 3 1\n"
	  "fire getsid 1 1\n"
	  "getsid hist:keys=pid.hex\n"
	  "fire getsid 1 1\n"
	  "fire getpgid 3 1\n"
	  "fire getsid 1 1\n"
	  "truncate getsid\n"
	  "fire getpgid 3 1\n"
	  "getsid hist:keys=pid\n"
	  "fire getsid 1 1\n"
	  "fire getpgid 3 1\n"
	  "fire getsid 1 1\n"
	  "truncate getpgid\n"
	  "fire getpgid 3 1\n"
	  "getsid hist:keys=pid:cont\n"
	  "fire getsid 1 1\n" },
	{ "an event that switches itself, and several",
	  "getpgid hist:keys=pid\n"
	  "getpgid disable_hist:syscalls:sys_enter_getpgid:1\n"
	  "fire getpgid 5 2\n"
	  "getpgid hist:keys=pid:cont\n"
	  "fire getpgid 5 2\n"
	  "getpgid enable_hist:syscalls:sys_enter_getsid if pid == 2\n"
	  "getpgid disable_hist:syscalls:sys_exit_getsid:3:4:5\n"
	  "getsid disable_hist:syscalls:sys_enter_getpgid if pid == 9\n"
	  "getpgid hist:keys=common_pid if pid == 2\n"
	  "fire getsid 9 1\n"
	  "fire getpgid 2 2\n"
	  "getpgid !hist:keys=pid\n"
	  "getpgid !hist:keys=common_pid if pid == 2\n"
	  "fire getpgid 2 2\n"
	  "getpgid hist:keys=pid\n"
	  "fire getpgid 2 2\n"
	  "truncate getpgid\n"
	  "getpgid !disable_hist:syscalls:sys_enter_getpgid\n"
	  "getsid !disable_hist:syscalls:sys_enter_getpgid\n" },
	{ "switches that are wrong",
	  "getpgid enable_hist\n"
	  "getpgid enable_hist:\n"
	  "getpgid enable_hist:syscalls\n"
	  "getpgid enable_hist:syscalls if pid == 1\n"
	  "getpgid enable_hist::sys_enter_getsid\n"
	  "getpgid enable_hist:syscalls:\n"
	  "getpgid enable_hist:syscalls:nosuch\n"
	  "getpgid !enable_hist:syscalls:nosuch\n"
	  "getpgid enable_hist:ftrace:print\n"
	  "getpgid disable_hist:syscalls:sys_enter_getsid:\n"
	  "getpgid disable_hist:syscalls:sys_enter_getsid:x\n"
	  "getpgid disable_hist:syscalls:sys_enter_getsid:5x\n"
	  "getpgid disable_hist:syscalls:sys_enter_getsid:-1\n"
	  "getpgid disable_hist:syscalls:sys_enter_getsid:18446744073709551616\n"
	  "getpgid disable_hist:syscalls:sys_enter_getsid:x if nosuch == 1\n"
	  "getpgid disable_hist:syscalls:sys_enter_getsid if\n"
	  "getpgid disable_hist:syscalls:sys_enter_getsid iff pid == 1\n"
	  "getpgid disable_hist:syscalls:sys_enter_getsid pid == 1\n"
	  "getpgid disable_hist:syscalls:sys_enter_getsid if nosuch == 1\n"
	  "getpgid disable_hist:syscalls:sys_enter_getsid:3  if  pid == 1 && (\n"
	  "getpgid disable_hist:syscalls:sys_enter_getsid if\tpid == 1\n"
	  "getpgid !disable_hist:syscalls:sys_enter_getsid\n"
	  "getpgid disable_hist syscalls:sys_enter_getsid:+0x10  if pid == 0x1\n"
	  "fire getpgid 1 1\n"
	  "getpgid !enable_hist syscalls:sys_enter_getsid\n"
	  "getpgid disable_hist:syscalls:sys_enter_getsid:0\n"
	  "getpgid !disable_hist:syscalls:sys_enter_getsid:\n" },
	{ "a mistake between",
	  "getpgid hist:keys=pid\n"
	  "fire getpgid 7 1\n"
	  "getpgid hist:keys=nosuch\n"
	  "getpgid hist:keys=pid:vals=nosuch\n"
	  "getpgid hist:keys=pid:size=1\n"
	  "fire getpgid 7 1\n"
	  "getpgid !hist:keys=pid:vals=nosuch\n"
	  "getpgid !hist\n"
	  "fire getpgid 7 1\n" },
};

static const char *const events[] = { "getpgid", "getsid" };

static const char *file(const char *dir, const char *event, const char *name)
{
	return pathf("%s/events/syscalls/sys_enter_%s/%s", dir, event, name);
}

/* Executes a step. Returns 0 or a negative errno. */
static int act(const char *dir, const char *step)
{
	char event[16], text[256];
	int at = 0;

	if (sscanf(step, "truncate %15s", event) == 1)
		return truncate_file(file(dir, event, "trigger"));
	if (sscanf(step, "%15s %n", event, &at) != 1 || !at)
		return -EPROTO;
	snprintf(text, sizeof(text), "%s", step + at);
	return append(file(dir, event, "trigger"), sized(text));
}

/* Returns the texts of the trigger and hist files of all events. */
static char *state(const char *dir)
{
	char *all = strdup(""), *more;

	for (unsigned int i = 0; i < 2; i++) {
		char *lines = slurp(file(dir, events[i], "trigger")), *hist = slurp(file(dir, events[i], "hist"));

		/* The list of available commands may differ. */
		if (lines && lines[0] == '#')
			lines[0] = 0;
		if (asprintf(&more, "%s%s:\n%s%s", all, events[i], lines ? lines : "(unreadable)\n",
			     hist ? hist : "(unreadable)\n") < 0)
			abort();
		free(all);
		free(lines);
		free(hist);
		all = more;
	}
	return all;
}

static void reset(const char *dir)
{
	for (unsigned int i = 0; i < 2; i++)
		truncate_file(file(dir, events[i], "trigger"));
}

static void run(const struct sequence *sequence)
{
	char *steps = strdup(sequence->steps), *rest = steps, *step;
	unsigned int number = 0;

	while ((step = strsep(&rest, "\n")) && *step) {
		char *c_log = NULL, *log = NULL;
		int c_error = 0, error = 0, count;
		char event[16], *c, *ours;
		unsigned long key;
		bool same;

		number++;
		if (sscanf(step, "fire %15s %lu %d", event, &key, &count) == 3) {
			while (count--)
				syscall(!strcmp(event, "getsid") ? SYS_getsid : SYS_getpgid, key);
		} else {
			truncate_file(pathf("%s/error_log", kernel_dir()));
			c_error = act(kernel_dir(), step);
			c_log = slurp(pathf("%s/error_log", kernel_dir()));
			error = c_error;
			if (!testing_c()) {
				/* Including C's, which it shows. */
				truncate_file(pathf("%s/error_log", tracing_dir()));
				error = act(tracing_dir(), step);
			}
			log = slurp(pathf("%s/error_log", tracing_dir()));
		}
		c = state(kernel_dir());
		ours = state(tracing_dir());
		if (!testing_c())
			without_differences(c);
		same = error == c_error && !strcmp(c, ours) &&
		       (testing_c() || !strncmp(step, "fire", 4) || same_log(c_log, log, error));
		if (!ok(same, "%s: %u: %s", sequence->name, number, step)) {
			note("C: %s\n%s", errno_name(c_error), c_log ?: "");
			note("ours: %s\n%s", errno_name(error), log ?: "");
			if (strcmp(c, ours))
				note_difference(c, ours);
		}
		free(c);
		free(ours);
		free(c_log);
		free(log);
		/* All later steps would only differ as well. */
		if (!same)
			break;
	}
	free(steps);
	reset(kernel_dir());
	reset(tracing_dir());
}

int main(void)
{
	reset(kernel_dir());
	reset(tracing_dir());
	for (unsigned int i = 0; i < sizeof(sequences) / sizeof(*sequences); i++)
		run(&sequences[i]);
	finish();
}
