/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sources of events, and the questions about them, one by one: promises of the kernel's
 * documentation and its source.
 */
#ifndef ROWS_H
#define ROWS_H

#include "grammar.h"
#include "events.h"

/*
 * An event, with a second one that has the same fields, or none, and the function that fires both.
 */
struct source {
	const char *event, *sibling;
	struct fields fields;
	void (*fire)(void);
};

#define LIST(...) (const char *const[]){ __VA_ARGS__, NULL }

/*
 * Few, since it runs for each command; with some ties, since sorting shows the order of equal
 * entries.
 */
static void some_numbers(void)
{
	static const unsigned long values[] = {
		0, 1, 2, 7, 100, 127, 128, 255, 32768, 65536, 0x80000000, 0xffffffff, 0x7fffffffffffffff, ~0UL, 7, 7, 100, 2,
	};

	for (unsigned int i = 0; i < sizeof(values) / sizeof(*values); i++) {
		syscall(SYS_getpgid, values[i]);
		if (i % 3 == 0)
			syscall(SYS_getsid, values[i]);
	}
}

static void some_names(void)
{
	static const char *const few[] = { "abc", "", "abcdefghijklmno", "a", "\xff\x01", "abc", "x5y", "sidebyside" };

	for (unsigned int i = 0; i < sizeof(few) / sizeof(*few); i++)
		prctl(PR_SET_NAME, few[i]);
}

static void some_paths(void)
{
	static const char *const few[] = { "/nosuch/a", "", "/nosuch/5", "/nosuch/a", "abc", "\xc3\xa4%s", "/nosuch/5" };

	for (unsigned int i = 0; i < sizeof(few) / sizeof(*few); i++)
		chdir(few[i]);
}

static void fire_source(const char *event)
{
	char line[64];
	int len = snprintf(line, sizeof(line), "%s task 0 0 26 19", event);

	if (write(event_source, line, len) != len)
		note("rhist_events: %s: %s", line, strerror(errno));
}

static void fire_numbers(void) { fire_source("numbers"); }
static void fire_strings(void) { fire_source("strings"); }
static void fire_arrays(void) { fire_source("arrays"); }
static void fire_stacks(void) { fire_source("stacks"); }

static const struct source pids = {
	"syscalls/sys_enter_getpgid", "syscalls/sys_enter_getsid",
	{ LIST("pid", "pid", "pid", "__syscall_nr", "common_pid"), LIST("common_comm", "comm"), LIST("common_type") }, some_numbers,
};
static const struct source widths = {
	"kprobes/rhist_c", NULL,
	{ LIST("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "x", "bits", "char", "__probe_ip"), LIST("comm", "common_comm"),
	  LIST("array", "common_type") }, some_numbers,
};
static const struct source returns = {
	"kprobes/rhist_cr", NULL,
	{ LIST("ret", "__probe_func", "__probe_ret_ip"), LIST("comm", "COMM"), LIST("common_type") }, some_numbers,
};
static const struct source tasks = {
	"task/task_rename", NULL,
	{ LIST("oom_score_adj", "pid", "common_pid"), LIST("newcomm", "oldcomm", "newcomm", "comm"), LIST("filename") }, some_names,
};
static const struct source dirs = {
	"syscalls/sys_enter_chdir", NULL,
	{ LIST("__syscall_nr", "filename", "common_pid"), LIST("__filename_val", "common_comm"), LIST("filename") }, some_paths,
};
static const struct source made_numbers = {
	"rhist_events/numbers", NULL,
	{ LIST("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "flag", "letter", "colour", "pointer"), LIST("comm"),
	  LIST("name", "pointer") }, fire_numbers,
};
static const struct source made_strings = {
	"rhist_events/strings", NULL,
	{ LIST("common_pid", "common_type"), LIST("fixed", "full", "dirty", "dynamic", "counted", "relative"), LIST("bytes", "raw") },
	fire_strings,
};
static const struct source made_arrays = {
	"rhist_events/arrays", NULL,
	{ LIST("eight", "pair", "four", "common_pid"), LIST("comm"), LIST("args", "words", "three", "wide", "list", "bits", "cpus", "others") },
	fire_arrays,
};
static const struct source made_stacks = {
	"rhist_events/stacks", NULL,
	{ LIST("k"), LIST("comm"), LIST("stack", "frames", "stack.stacktrace") }, fire_stacks,
};

static const struct source *const all_sources[] = {
	&pids, &pids, &widths, &returns, &tasks, &dirs,
	&made_numbers, &made_numbers, &made_strings, &made_strings, &made_arrays, &made_stacks,
};

/* Returns true if this kernel can have the event. */
static bool is_there(const struct source *source)
{
	if (!strncmp(source->event, "rhist_events/", 13))
		return event_source >= 0;
	if (!strncmp(source->event, "user_events/", 12))
		return user_events >= 0;
	/* A kprobe event makes the synthetic one. */
	return (strncmp(source->event, "kprobes/", 8) && strcmp(source->event, "synthetic/rhist_c")) || have_probes();
}

/* Sources that exist in this kernel. */
static const struct source *generated_sources[sizeof(all_sources) / sizeof(*all_sources)];
static unsigned int sources_there;

/* To be called after the events are made. */
static void find_sources(void)
{
	for (unsigned int i = 0; i < sizeof(all_sources) / sizeof(*all_sources); i++)
		if (is_there(all_sources[i]))
			generated_sources[sources_there++] = all_sources[i];
}

#define OK "takes it"
#define SILENT ""

/*
 * Steps are commands, one a line, for the event; @ in front: for its sibling; > : opens the file
 * with O_TRUNC. `says` is the kernel's answer to the last one: OK, SILENT for an error that is not
 * logged, or words of the sentence.
 */
static const struct row {
	const char *section;
	const struct source *source;
	const char *says, *steps;
	size_t len;
	bool exact;
} rows[] = {
#define ROW(section, source, says, steps) { section, &(source), says, steps, sizeof(steps) - 1, false }
/* No known difference may explain anything; and hits and entries add up. */
#define EXACT(event, fire, steps) \
	{ event, &(const struct source){ event, NULL, { 0 }, fire }, OK, steps, sizeof(steps) - 1, true }
	/* the file: which texts are commands */
	ROW("1.1", pids, SILENT, " "),
	ROW("1.1", pids, SILENT, "!"),
	ROW("1.1", pids, SILENT, "\0hist:keys=pid"),
	ROW("1.1", pids, SILENT, "nosuch:keys=pid"),
	ROW("1.1", pids, SILENT, "hist"),
	ROW("1.1", pids, SILENT, "hist:"),
	ROW("1.1", pids, SILENT, "! hist:keys=pid"),
	ROW("1.1", pids, OK, "hist keys=pid:size=128"),
	ROW("1.1", pids, OK, "hist\tkeys=pid:size=128"),
	ROW("1.1", pids, OK, "  hist:  keys=pid:size=128\t "),
	ROW("1.1", pids, OK, "hist:keys=pid:size=128\0:size=1"),
	ROW("1.1", pids, OK, "!hist:keys=pid:size=128"),
	ROW("1.1", pids, OK, "hist:keys=pid:size=128\nhist:keys=common_pid:size=128\nhist:keys=pid,common_pid:size=128"),
	ROW("1.1", pids, OK, "hist:keys=pid:size=128\nhist:keys=common_pid:size=128\n>\nhist:keys=pid:size=128"),
	ROW("1.1", pids, OK, "hist:keys=pid:size=128\n@hist:keys=pid:size=128\n@>\nhist:keys=pid:size=128:pause"),
	/* where the filter begins */
	ROW("1.2", pids, SILENT, "hist:keys=pid if"),
	ROW("1.2", pids, SILENT, "hist:keys=pid if "),
	ROW("1.2", pids, SILENT, "hist:keys=pid ifx"),
	ROW("1.2", pids, SILENT, "hist:if pid == 1"),
	ROW("1.2", pids, SILENT, "hist: if pid == 1"),
	ROW("1.2", pids, OK, "hist:keys=pid:size=128 if   pid == 7"),
	ROW("1.2", pids, OK, "hist:keys=pid:size=128\tif\tpid == 7"),
	ROW("1.2", pids, "Couldn't find field", "hist:keys=nosuch.sym-offset if pid == 7"),
	ROW("1.2", pids, OK, "hist:keys=pid.sym-offset:size=128"),
	ROW("1.2", pids, "Invalid field modifier", "hist:keys=pid.symXoffsett"),
	ROW("1.2", pids, OK, "hist:keys=pid.symXoffset:size=128"),
	/* tokens */
	ROW("1.3", pids, SILENT, "hist:keys=pid:"),
	ROW("1.3", pids, SILENT, "hist:keys=pid::size=128"),
	ROW("1.3", pids, SILENT, "hist:keys=pid: pause"),
	ROW("1.3", pids, SILENT, "hist:keys=pid:nosuch"),
	ROW("1.3", pids, SILENT, "hist:size=128"),
	ROW("1.3", pids, SILENT, "hist:vals=pid"),
	ROW("1.3", pids, "Empty assignment", "hist:keys="),
	ROW("1.3", pids, "Empty assignment", "hist:keys=pid:x="),
	ROW("1.3", pids, "Empty assignment", "hist:keys=pid:vals="),
	ROW("1.3", pids, "Empty assignment", "hist:keys=pid:size="),
	ROW("1.3", pids, "Empty assignment", "hist:keys=pid:name="),
	ROW("1.3", pids, "Empty assignment", "hist:="),
	ROW("1.3", pids, OK, "hist:keys=pid:vals=pid:size=128"),
	ROW("1.3", pids, OK, "hist:keys=pid:values=pid:size=128"),
	ROW("1.3", pids, OK, "hist:keys=pid:val=pid:size=128"),
	ROW("1.3", pids, OK, "hist:key=pid:size=128"),
	ROW("1.3", pids, OK, "hist:size=1024:sort=pid:vals=pid:keys=pid:sort=pid.descending:size=128"),
	ROW("1.3", pids, OK, "hist:keys=nosuch:keys=pid:size=128"),
	ROW("1.3", pids, OK, "hist:keys=pid:size=65"),
	ROW("1.3", pids, OK, "hist:keys=pid:size=129"),
	ROW("1.3", pids, OK, "hist:keys=pid:size=0x100"),
	ROW("1.3", pids, OK, "hist:keys=pid:size=0400"),
	ROW("1.3", pids, OK, "hist:keys=pid"),
	ROW("1.3", pids, SILENT, "hist:keys=pid:size=64"),
	ROW("1.3", pids, SILENT, "hist:keys=pid:size=131073"),
	ROW("1.3", pids, SILENT, "hist:keys=pid:size=x"),
	ROW("1.3", pids, SILENT, "hist:keys=pid:size=128x"),
	ROW("1.3", pids, SILENT, "hist:keys=pid:size=-128"),
	ROW("1.3", pids, SILENT, "hist:keys=pid:size=18446744073709551616"),
	ROW("1.3", pids, SILENT, "hist:keys=pid:size=18446744073709551615"),
	ROW("1.3", pids, SILENT, "hist:keys=pid:size=0"),
	ROW("1.3", pids, OK, "hist:keys=pid:clock=nosuch:size=128"),
	ROW("1.3", pids, OK, "hist:keys=pid:clock= mono :size=128"),
	ROW("1.3", pids, SILENT, "hist:keys=pid:pause=1:size=1"),
	ROW("1.3", pids, "Too many variables", "hist:keys=pid:a=1:b=1:c=1:d=1:e=1:f=1:g=1:h=1:i=1:j=1:k=1:l=1:m=1:n=1:o=1:p=1:q=1"),
	ROW("1.3", pids, SILENT, "hist:keys=pid:onmax($a).x(aa):onmax($a).x(aa):onmax($a).x(aa):onmax($a).x(aa):onmax($a).x(aa):"
	    "onmax($a).x(aa):onmax($a).x(aa):onmax($a).x(aa):onmax($a).x(aa)"),
	/* names of fields */
	ROW("1.4", pids, OK, "hist:keys=common_type,common_flags,common_preempt_count:size=128"),
	ROW("1.4", pids, OK, "hist:keys=common_cpu:size=128"),
	ROW("1.4", pids, OK, "hist:keys=cpu:size=128"),
	ROW("1.4", pids, OK, "hist:keys=CPU:size=128"),
	ROW("1.4", pids, OK, "hist:keys=common_comm:size=128"),
	ROW("1.4", pids, OK, "hist:keys=comm:size=128"),
	ROW("1.4", pids, OK, "hist:keys=COMM:size=128"),
	ROW("1.4", pids, OK, "hist:keys=common_stacktrace:size=128"),
	ROW("1.4", pids, OK, "hist:keys=stacktrace:size=128"),
	ROW("1.4", pids, OK, "hist:keys=STACKTRACE:size=128"),
	ROW("1.4", pids, OK, "hist:keys=common_timestamp:size=128"),
	ROW("1.4", pids, OK, "hist:keys=hitcount:size=128"),
	ROW("1.4", pids, OK, "hist:keys=x.y.pid:size=128"),
	ROW("1.4", pids, OK, "hist:keys=x.y.pid.hex:size=128"),
	ROW("1.4", pids, "Couldn't find field", "hist:keys=common_pid.b.hex"),
	ROW("1.4", pids, "Couldn't find field", "hist:keys=nosuch"),
	ROW("1.4", pids, "Couldn't find field", "hist:keys=pid,nosuch"),
	ROW("1.4", pids, "Couldn't find field", "hist:keys=x.y.nosuch"),
	ROW("1.4", pids, "Couldn't find field", "hist:keys=PID"),
	ROW("1.4", pids, "Couldn't find field", "hist:keys= pid"),
	ROW("1.4", pids, "Couldn't find field", "hist:keys=pid,"),
	ROW("1.4", pids, "Couldn't find field", "hist:keys=$"),
	ROW("1.4", pids, "Couldn't find field", "hist:keys=\xff\xfe"),
	ROW("1.4", widths, OK, "hist:keys=u8,s8,u16:size=128"),
	ROW("1.4", widths, OK, "hist:keys=s16,u32,s32:size=128"),
	ROW("1.4", widths, OK, "hist:keys=u64,s64,x:size=128"),
	ROW("1.4", widths, OK, "hist:keys=bits,char,__probe_ip:size=128"),
	ROW("1.4", widths, OK, "hist:keys=comm,CPU:size=128"),
	ROW("1.4", returns, OK, "hist:keys=ret,__probe_func,__probe_ret_ip:size=128"),
	ROW("1.4", tasks, OK, "hist:keys=oldcomm,newcomm,oom_score_adj:size=128"),
	ROW("1.4", dirs, OK, "hist:keys=__filename_val:size=128"),
	ROW("1.4", dirs, OK, "hist:keys=filename,__syscall_nr:size=128"),
	ROW("1.4", made_numbers, OK, "hist:keys=u8,s8,u16:vals=s16,u32:sort=u8:size=128"),
	ROW("1.4", made_numbers, OK, "hist:keys=s32,u64,s64:vals=u8,s64:sort=s32.descending:size=128"),
	ROW("1.4", made_numbers, OK, "hist:keys=flag,letter,colour:vals=flag,colour:size=128"),
	ROW("1.4", made_numbers, OK, "hist:keys=pointer,name:vals=pointer,name:size=128"),
	ROW("1.4", made_strings, OK, "hist:keys=fixed,full,dirty:sort=fixed:size=128"),
	ROW("1.4", made_strings, OK, "hist:keys=dynamic:sort=dynamic:size=128"),
	ROW("1.4", made_strings, OK, "hist:keys=counted,fixed:sort=counted.descending:size=128"),
	ROW("1.4", made_strings, OK, "hist:keys=relative:sort=relative:size=128"),
	ROW("1.4", made_arrays, SILENT, "hist:keys=args:size=128"),
	ROW("1.4", made_arrays, SILENT, "hist:keys=words:size=128"),
	ROW("1.4", made_arrays, SILENT, "hist:keys=three:size=128"),
	ROW("1.4", made_arrays, OK, "hist:keys=four:size=128"),
	ROW("1.4", made_arrays, OK, "hist:keys=eight:size=128"),
	ROW("1.4", made_arrays, OK, "hist:keys=pair:size=128"),
	ROW("1.4", made_arrays, SILENT, "hist:keys=wide:size=128"),
	ROW("1.4", made_arrays, OK, "hist:keys=list:size=128"),
	ROW("1.4", made_arrays, OK, "hist:keys=bits:size=128"),
	ROW("1.4", made_arrays, OK, "hist:keys=cpus:size=128"),
	ROW("1.4", made_stacks, OK, "hist:keys=stack.stacktrace:size=128"),
	ROW("1.4", made_stacks, OK, "hist:keys=k,stack.stacktrace:size=128"),
	ROW("1.4", made_stacks, OK, "hist:keys=stack,k:size=128"),
	/*
	 * Without .stacktrace C counts a string of 256 bytes, which is too long beside another one.
	 */
	ROW("1.4", made_stacks, OK, "hist:keys=comm,stack.stacktrace:size=128"),
	ROW("1.4", made_stacks, SILENT, "hist:keys=comm,stack:size=128"),
	/* keys */
	ROW("1.5", pids, OK, "hist:keys=pid,common_pid,common_cpu:size=128"),
	ROW("1.5", pids, SILENT, "hist:keys=pid,pid,pid,pid,pid,pid,pid,pid,pid"),
	ROW("1.5", pids, SILENT, "hist:keys=common_comm,comm"),
	ROW("1.5", pids, OK, "hist:keys=common_comm,stacktrace:size=128"),
	ROW("1.5", pids, OK, "hist:keys=pid,pid,pid:sort=pid:size=128"),
	ROW("1.5", pids, OK, "hist:keys=5:size=128"),
	ROW("1.5", pids, OK, "hist:keys=0x10,pid:size=128"),
	ROW("1.5", pids, OK, "hist:keys=pid*2,common_comm:size=128"),
	ROW("1.5", pids, "Couldn't find variable", "hist:keys=$x"),
	ROW("1.5", pids, "Couldn't find variable", "hist:keys=syscalls.sys_enter_getpgid.$x"),
	ROW("1.5", pids, OK, "hist:keys=$x:x=pid:size=128"),
	ROW("1.5", pids, OK, "hist:keys=pid:x=pid+common_pid,y=$x:size=128"),
	/* values */
	ROW("1.6", pids, OK, "hist:keys=common_pid:vals=hitcount:size=128"),
	ROW("1.6", pids, OK, "hist:keys=common_pid:vals=hitcount,hitcount:size=128"),
	ROW("1.6", pids, OK, "hist:keys=common_pid:vals=hitcount.percent,hitcount.graph:size=128"),
	ROW("1.6", pids, OK, "hist:keys=common_pid:vals=hitcount.hex,pid:size=128"),
	ROW("1.6", pids, OK, "hist:keys=common_pid:vals=pid,pid,hitcount:size=128"),
	ROW("1.6", pids, SILENT, "hist:keys=common_pid:vals=pid,pid,pid,pid,pid,pid,pid,pid,pid"),
	ROW("1.6", pids, OK, "hist:keys=common_pid:vals=hitcount,pid,pid:size=128"),
	ROW("1.6", pids, OK, "hist:keys=pid:vals=pid:nohitcount:size=128"),
	ROW("1.6", pids, OK, "hist:keys=pid:vals=pid:NOHC:size=128"),
	ROW("1.6", pids, "Non-hitcount value", "hist:keys=pid:nohitcount"),
	ROW("1.6", pids, "Non-hitcount value", "hist:keys=pid:vals=hitcount:NOHC"),
	ROW("1.6", pids, OK, "hist:keys=pid:vals=pid*2+1:sort=hitcount:size=128"),
	ROW("1.6", pids, OK, "hist:keys=pid:vals=5,0x10:size=128"),
	ROW("1.6", pids, OK, "hist:keys=pid:vals=common_comm:size=128"),
	ROW("1.6", pids, "Couldn't find field", "hist:keys=pid:vals=pid,nosuch"),
	/* sort */
	ROW("1.7", pids, OK, "hist:keys=pid:sort=pid:size=128"),
	ROW("1.7", pids, OK, "hist:keys=pid:sort=hitcount.descending:size=128"),
	ROW("1.7", pids, OK, "hist:keys=pid:sort=hitcount,pid.descending:size=128"),
	ROW("1.7", pids, OK, "hist:keys=common_pid.execname,pid:vals=pid:sort=common_pid.ascending,pid:size=128"),
	ROW("1.7", pids, OK, "hist:keys=pid,common_comm:sort=common_comm,pid:size=128"),
	ROW("1.7", pids, OK, "hist:keys=common_cpu,pid:sort=common_cpu,pid.descending:size=128"),
	ROW("1.7", pids, OK, "hist:keys=pid.log2:sort=pid:size=128"),
	ROW("1.7", pids, OK, "hist:keys=pid.buckets=10:sort=pid.descending:size=128"),
	ROW("1.7", pids, OK, "hist:keys=pid+1,pid:sort=pid+1:size=128"),
	ROW("1.7", widths, OK, "hist:keys=s8,s16:sort=s8,s16.descending:size=128"),
	ROW("1.7", widths, OK, "hist:keys=s32,s64:sort=s64:size=128"),
	ROW("1.7", widths, OK, "hist:keys=u8:vals=s64,u16:sort=u16,s64:size=128"),
	ROW("1.7", pids, "Invalid sort modifier", "hist:keys=pid:sort=pid.up"),
	ROW("1.7", pids, "Invalid sort modifier", "hist:keys=pid.hex:sort=pid.hex"),
	ROW("1.7", pids, "Empty sort field", "hist:keys=pid:sort=,"),
	ROW("1.7", pids, "Empty sort field", "hist:keys=pid:sort=pid,"),
	ROW("1.7", pids, "Empty sort field", "hist:keys=pid:sort=.descending"),
	ROW("1.7", pids, "Too many sort fields", "hist:keys=pid:sort=pid,pid,pid"),
	ROW("1.7", pids, "Sort field must be", "hist:keys=pid:sort=nosuch"),
	ROW("1.7", pids, "Sort field must be", "hist:keys=pid:sort=common_pid"),
	ROW("1.7", pids, "Sort field must be", "hist:keys=stacktrace:sort=stacktrace"),
	ROW("1.7", pids, OK, "hist:keys=stacktrace:sort=common_stacktrace:size=128"),
	ROW("1.7", pids, "Sort field must be", "hist:keys=pid:x=common_pid:sort=x"),
	/* pause, cont, clear, names, the same again */
	ROW("1.8", pids, OK, "hist:keys=pid:size=128\nhist:keys=pid:pause"),
	ROW("1.8", pids, OK, "hist:keys=pid:size=128\nhist:keys=pid:pause\nhist:keys=pid:clear\nhist:keys=pid:cont"),
	ROW("1.8", pids, OK, "hist:keys=pid:size=128\nhist:keys=pid:pause\nhist:keys=pid:continue"),
	ROW("1.8", pids, OK, "hist:keys=pid:size=128\nhist:keys=pid:clear:cont:pause"),
	ROW("1.8", pids, OK, "hist:keys=pid:pause:size=128\nhist:keys=pid:cont:clear"),
	ROW("1.8", pids, "already exists", "hist:keys=pid:size=128\nhist:keys=pid:size=256"),
	ROW("1.8", pids, "already exists", "hist:keys=pid:vals=pid:size=128\nhist:keys=pid:vals=pid:nohitcount"),
	ROW("1.8", pids, OK, "hist:keys=pid:size=128\nhist:keys=pid:size=128:sort=pid"),
	ROW("1.8", pids, OK, "hist:keys=pid:size=128\nhist:keys=pid.hex:size=128"),
	ROW("1.8", pids, OK, "hist:keys=pid:size=128\nhist:keys=pid:size=128 if pid == 7\nhist:keys=pid:size=128 if pid  == 7"),
	ROW("1.8", pids, "already exists", "hist:keys=pid:size=128 if pid == 7\nhist:keys=pid:size=128 if pid == 7"),
	ROW("1.8", pids, "already exists", "hist:keys=pid.buckets=10:size=128\nhist:keys=pid.buckets=20:size=128"),
	ROW("1.8", pids, "already exists", "hist:keys=pid+1:size=128\nhist:keys=pid*2:size=128"),
	ROW("1.8", pids, "already exists", "hist:keys=5:size=128\nhist:keys=6:size=128"),
	ROW("1.8", pids, OK, "hist:keys=cpu:size=128\nhist:keys=CPU:size=128"),
	ROW("1.8", pids, "nonexistent", "hist:keys=pid:cont"),
	ROW("1.8", pids, "nonexistent", "hist:keys=pid:clear"),
	ROW("1.8", pids, OK, "hist:keys=pid:size=128\n!hist:keys=pid\nhist:keys=pid:size=128"),
	ROW("1.8", pids, OK, "hist:keys=pid:size=128 if pid == 7\n!hist:keys=pid\n!hist:keys=pid if pid == 7"),
	ROW("1.8", pids, "Couldn't find field", "hist:keys=pid:size=128\n!hist:keys=nosuch"),
	ROW("1.8", pids, OK, "hist:keys=pid:size=128:name=rhist_a\n@hist:keys=pid:size=128:name=rhist_a"),
	ROW("1.8", pids, OK, "hist:keys=pid:size=128:name=rhist_a\n@hist:keys=pid:name=rhist_a if pid == 7\nhist:keys=pid:name=rhist_a:pause"),
	ROW("1.8", pids, OK, "hist:keys=pid:size=128:name=rhist_a\n@hist:keys=pid:name=rhist_a\n!hist:keys=pid:name=rhist_a"),
	ROW("1.8", pids, OK, "hist:keys=pid:size=128:name=rhist_a\n@hist:keys=pid:name=rhist_a:pause\n@hist:keys=pid:name=rhist_a:clear"),
	ROW("1.8", pids, OK, "hist:keys=pid:size=128\n!hist:name=rhist_nosuch:keys=pid"),
	ROW("1.8", pids, OK, "hist:keys=pid:size=128:name=rhist_a\nhist:keys=pid:size=128"),
	ROW("1.8", pids, "doesn't match", "hist:keys=pid:size=128:name=rhist_a\n@hist:keys=common_pid:name=rhist_a"),
	ROW("1.8", pids, "already exists", "hist:keys=pid:size=128:name=rhist_a\nhist:keys=pid:size=128:name=rhist_a"),
	ROW("1.8", pids, "Couldn't set trace_clock", "hist:keys=common_timestamp:clock=nosuch:size=128"),
	ROW("1.8", pids, OK, "hist:keys=pid:x=pid:size=128"),
	ROW("1.8", pids, "already defined", "hist:keys=pid:x=pid:x=common_pid:size=128"),
	/*
	 * The line: every row compares the line read back; these have parts that are rare
	 * elsewhere.
	 */
	ROW("1.9", pids, OK, "hist:keys=pid:vals=pid:sort=pid.descending,hitcount:size=128:nohitcount:name=rhist_a if pid > 0"),
	ROW("1.9", pids, OK, "hist:keys=1+2*3,common_cpu.hex,comm:vals=pid.hex,hitcount.percent:size=128"),
	ROW("1.9", pids, OK, "hist:keys=common_timestamp:clock=mono:size=128"),
	ROW("1.9", pids, OK, "hist:keys=common_timestamp.usecs:size=128"),
	/* Modifiers, by their place. */
#define EVERYWHERE(modifier, key, value, variable, operand) \
	ROW("2.1", pids, key, "hist:keys=pid." modifier ":size=128"), \
	ROW("2.1", pids, value, "hist:keys=pid:vals=common_pid." modifier ":size=128"), \
	ROW("2.1", pids, variable, "hist:keys=pid:x=common_pid." modifier ":size=128"), \
	ROW("2.1", pids, operand, "hist:keys=common_pid." modifier "+1:size=128")
#define WRONG "Invalid field modifier"
	EVERYWHERE("hex", OK, OK, OK, OK),
	EVERYWHERE("sym", OK, WRONG, OK, OK),
	EVERYWHERE("syscall", OK, WRONG, OK, OK),
	EVERYWHERE("log2", OK, WRONG, WRONG, OK),
	EVERYWHERE("buckets=7", OK, WRONG, WRONG, OK),
	EVERYWHERE("bucket=0x10", OK, WRONG, WRONG, OK),
	EVERYWHERE("percent", WRONG, OK, WRONG, OK),
	EVERYWHERE("graph", WRONG, OK, WRONG, OK),
	EVERYWHERE("percentage", WRONG, OK, WRONG, OK),
	EVERYWHERE("nosuch", WRONG, WRONG, WRONG, WRONG),
	EVERYWHERE("", WRONG, WRONG, WRONG, WRONG),
	EVERYWHERE("stacktrace", WRONG, WRONG, WRONG, WRONG),
	EVERYWHERE("buckets=0", WRONG, WRONG, WRONG, WRONG),
	EVERYWHERE("buckets=x", WRONG, WRONG, WRONG, WRONG),
	EVERYWHERE("buckets", WRONG, WRONG, WRONG, WRONG),
	EVERYWHERE("execname", WRONG, OK, OK, OK),
	ROW("2.1", pids, OK, "hist:keys=pid.usecs:vals=pid.usecs:size=128"),
	ROW("2.1", pids, OK, "hist:keys=pid.sym-offset:size=128"),
	ROW("2.1", pids, WRONG, "hist:keys=pid:vals=pid.sym-offset:size=128"),
	ROW("2.1", pids, OK, "hist:keys=common_pid.execname:size=128"),
	ROW("2.1", pids, "Couldn't find field", "hist:keys=pid.hex.hex"),
	ROW("2.1", pids, OK, "hist:keys=common_comm.hex:size=128"),
	ROW("2.1", pids, OK, "hist:keys=common_comm.log2:size=128"),
	ROW("2.1", pids, OK, "hist:keys=common_cpu.log2,cpu.buckets=2:size=128"),
	ROW("2.1", made_stacks, WRONG, "hist:keys=k.stacktrace"),
	ROW("2.1", made_stacks, OK, "hist:keys=stack.stacktrace,k:sort=k:size=128"),
	/* Formats of keys and values. */
	ROW("2.2", widths, OK, "hist:keys=__probe_ip.sym,s8.hex:size=128"),
	ROW("2.2", widths, OK, "hist:keys=__probe_ip.sym-offset,s16.log2:size=128"),
	ROW("2.2", returns, OK, "hist:keys=__probe_func.sym,ret.hex,common_pid.execname:size=128"),
	ROW("2.2", pids, OK, "hist:keys=__syscall_nr.syscall,pid.syscall:size=128"),
	ROW("2.2", made_numbers, OK, "hist:keys=u64.syscall,s64.syscall,s8.syscall:size=128"),
	ROW("2.2", pids, OK, "hist:keys=pid.log2,pid.buckets=100:size=128"),
	ROW("2.2", made_numbers, OK, "hist:keys=s8.log2,u64.log2,s64.buckets=1000000:size=128"),
	ROW("2.2", made_numbers, OK, "hist:keys=u64.hex,s64.hex,s8.hex:size=128"),
	ROW("2.2", made_numbers, OK, "hist:keys=u64.buckets=18446744073709551615:size=128"),
	ROW("2.2", pids, OK, "hist:keys=stacktrace,pid:size=128"),
	ROW("2.3", made_numbers, OK, "hist:keys=u8:vals=u64.percent,u64.graph:size=128"),
	ROW("2.3", made_numbers, OK, "hist:keys=u8:vals=s8.percent,s16.graph:nohitcount:size=128"),
	ROW("2.3", made_numbers, OK, "hist:keys=u8:vals=s64.hex,s64:sort=s64:size=128"),
	ROW("2.3", made_numbers, OK, "hist:keys=u8:vals=hitcount.percent,hitcount.graph:nohitcount:size=128"),
	ROW("2.3", pids, OK, "hist:keys=pid:vals=pid.percent,pid.graph:size=128"),
	ROW("2.3", pids, OK, "hist:keys=pid:vals=hitcount,hitcount:nohitcount:size=128"),
	ROW("2.3", pids, OK, "hist:keys=pid:vals=5,pid*2:size=128"),
	ROW("2.3", pids, "Expecting numeric literal", "hist:keys=pid:vals=0.percent:size=128"),
	/* expressions */
	ROW("3.4", pids, OK, "hist:keys=pid+1-2*3:size=128"),
	ROW("3.4", pids, OK, "hist:keys=pid*2+common_pid:sort=hitcount:size=128"),
	ROW("3.4", pids, OK, "hist:keys=-(pid):size=128"),
	ROW("3.4", pids, OK, "hist:keys=-(pid+1):size=128"),
	ROW("3.4", pids, OK, "hist:keys=-(pid)-1:size=128"),
	ROW("3.4", pids, OK, "hist:keys=pid.hex+pid.log2:size=128"),
	ROW("3.4", pids, OK, "hist:keys=pid+pid.buckets=10:size=128"),
	ROW("3.4", pids, SILENT, "hist:keys=-pid"),
	ROW("3.4", pids, SILENT, "hist:keys=-5"),
	ROW("3.4", pids, SILENT, "hist:keys=-(pid"),
	ROW("3.4", pids, "Unary minus not supported", "hist:keys=-(pid)+1"),
	ROW("3.4", pids, SILENT, "hist:keys=pid+-(pid)"),
	ROW("3.4", pids, SILENT, "hist:keys=pid+"),
	ROW("3.4", pids, SILENT, "hist:keys=+pid"),
	ROW("3.4", pids, SILENT, "hist:keys=pid++pid"),
	ROW("3.4", pids, OK, "hist:keys=pid+1+2+3:size=128"),
	ROW("3.4", pids, "Too many subexpressions", "hist:keys=pid+1+2+3+4"),
	ROW("3.4", pids, "Too many subexpressions", "hist:keys=-(pid+1+2+3)"),
	ROW("3.4", pids, "String type can not", "hist:keys=common_comm+1"),
	ROW("3.4", tasks, "String type can not", "hist:keys=pid+newcomm"),
	ROW("3.4", dirs, "String type can not", "hist:keys=__filename_val*2"),
	ROW("3.4", pids, "Expecting numeric literal", "hist:keys=1z"),
	ROW("3.4", pids, "Expecting numeric literal", "hist:keys=pid+08"),
	ROW("3.4", pids, "Expecting numeric literal", "hist:keys=18446744073709551616"),
	ROW("3.4", pids, "Timestamp units", "hist:keys=common_timestamp.usecs-1"),
	ROW("3.4", pids, "Timestamp units", "hist:keys=pid.usecs+pid"),
	ROW("3.4", pids, OK, "hist:keys=pid.usecs+common_pid.usecs:sort=hitcount:size=128"),
	ROW("3.4", widths, OK, "hist:keys=s8+1,s8*2,u8-1:size=128"),
	ROW("3.4", made_numbers, OK, "hist:keys=s8*s16,u64-s64,u32/u8:size=128"),
	ROW("3.4", pids, "Couldn't find field", "hist:keys=pid+nosuch"),
	ROW("3.4", pids, "Couldn't find field", "hist:keys=nosuch*nosuch2"),
	/* constants, division */
	ROW("3.5", pids, OK, "hist:keys=1+2:size=128"),
	ROW("3.5", pids, OK, "hist:keys=2*3+4:size=128"),
	ROW("3.5", pids, OK, "hist:keys=3-4:size=128"),
	ROW("3.5", pids, OK, "hist:keys=100/4:size=128"),
	ROW("3.5", pids, OK, "hist:keys=10/3:size=128"),
	ROW("3.5", pids, OK, "hist:keys=pid/16:size=128"),
	ROW("3.5", pids, OK, "hist:keys=pid/10:size=128"),
	ROW("3.5", pids, OK, "hist:keys=pid/1048577:size=128"),
	ROW("3.5", pids, OK, "hist:keys=pid/pid,pid/common_pid:sort=hitcount:size=128"),
	ROW("3.5", pids, OK, "hist:keys=-(5):size=128"),
	ROW("3.5", pids, "Division by zero", "hist:keys=pid/0"),
	ROW("3.5", pids, "Division by zero", "hist:keys=5/0"),
	ROW("3.5", pids, "Division by zero", "hist:keys=pid:vals=pid/0"),
	/* hist_debug of all kinds of fields, if C has it. */
	ROW("7", pids, OK, "hist:keys=common_cpu,common_comm,pid:vals=hitcount.hex,pid:size=128\nhist:keys=pid:size=128"),
	ROW("7", made_numbers, OK, "hist:keys=u8.log2,s16.buckets=7,5:vals=s64+u8,-(u32):size=128"),
	ROW("7", made_strings, OK, "hist:keys=dynamic,fixed:size=128\nhist:keys=relative,full:size=128"),
	ROW("7", pids, OK, "hist:keys=pid:size=128:name=rhist_a\n@hist:keys=pid:size=128:name=rhist_a if pid == 7"),
	/* the file */
	ROW("8.1", pids, OK, "hist:keys=pid:size=128:pause"),
	ROW("8.1", pids, OK, "hist:keys=common_pid:size=128"),
	ROW("8.1", pids, OK, "hist:keys=pid:size=128\nhist:keys=pid:size=128:sort=pid\nhist:keys=pid:vals=pid:size=128"),
	/* Sentences that are missing in the other sections. */
	ROW("9.2", pids, "Malformed assignment", "hist:keys=pid:x=1,y"),
	ROW("9.2", pids, "Couldn't find variable", "hist:keys=pid:x=$nosuch"),
	ROW("9.2", pids, "Couldn't find variable", "hist:keys=pid:vals=$nosuch"),
	ROW("9.2", pids, "Missing subsystem", "hist:keys=pid:onmatch(x).trace(yy,pid)"),
	ROW("9.2", pids, "No closing paren", "hist:keys=pid:onmatch(x"),
	ROW("9.2", pids, "No closing paren", "hist:keys=pid:onmax($x).snapshot("),
	ROW("9.2", pids, "Invalid subsystem or event", "hist:keys=pid:onmatch(sched.nosuch).trace(yy,pid)"),
	ROW("9.2", pids, "No action found", "hist:keys=pid:onmatch(sched.sched_switch)"),
	ROW("9.2", pids, "No action found", "hist:keys=pid:onmatch(ftrace.print)"),
	ROW("9.2", pids, "Invalid subsystem or event", "hist:keys=pid:onmatch(ftrace.nosuch).trace(yy,pid)"),
	ROW("9.2", pids, "Handler doesn't support", "hist:keys=pid:onmatch(sched.sched_switch).save(pid)"),
	ROW("9.2", pids, "Handler doesn't support", "hist:keys=pid:onmatch(sched.sched_switch).snapshot()"),
	ROW("9.2", pids, "Invalid action param", "hist:keys=pid:onmax($x).save()"),
	ROW("9.2", pids, "Couldn't find synthetic event", "hist:keys=pid:onmatch(sched.sched_switch).trace(nosuch,pid)"),
	ROW("9.2", pids, "must be a variable", "hist:keys=pid:onmax(pid).save(pid)"),
	ROW("9.2", pids, "Couldn't find onmax", "hist:keys=pid:onmax($nosuch).save(pid)"),
	ROW("9.2", pids, SILENT, "hist:keys=pid:onmax($x"),
	ROW("9.2", pids, OK, "hist:keys=common_pid:x=pid:onmax($x).save(pid):size=128"),
	ROW("9.2", pids, "more than one save", "hist:keys=common_pid:x=pid:onmax($x).save(pid):onchange($x).save(pid):size=128"),
	/* filters: grammar, types, errors */
#define FILTER(source, says, filter) ROW("11", source, says, "hist:keys=common_pid:size=128 if " filter)
	FILTER(pids, OK, "pid == 7"),
	FILTER(pids, OK, "pid != 7"),
	FILTER(pids, OK, "pid<7"),
	FILTER(pids, OK, "pid<=7"),
	FILTER(pids, OK, "pid > 0x7"),
	FILTER(pids, OK, "pid>=07"),
	FILTER(pids, OK, "pid & 3"),
	FILTER(pids, OK, "!(pid == 7)"),
	FILTER(pids, OK, "!pid == 7"),
	FILTER(pids, OK, "!!pid == 7"),
	FILTER(pids, OK, "pid == 7 || pid == 100 && common_pid == 1"),
	FILTER(pids, OK, "(pid == 7 || pid == 100) && common_pid != 1"),
	FILTER(pids, OK, "((((pid == 7))))"),
	FILTER(pids, OK, "!(pid == 7 && !(pid == 7 || pid == 2))"),
	FILTER(pids, OK, "comm == \"sidebyside\""),
	FILTER(pids, OK, "comm == 'sidebyside'"),
	FILTER(pids, "Field not found", "common_comm ~ \"side*\""),
	FILTER(pids, OK, "COMM ~ 's?d[e]b*'"),
	FILTER(pids, OK, "comm != \"a b\""),
	FILTER(pids, OK, "comm ~ \"!side*\""),
	FILTER(pids, OK, "cpu == 0"),
	FILTER(pids, OK, "CPU & CPUS{0-1}"),
	FILTER(pids, OK, "common_cpu != CPUS{0,1}"),
	FILTER(pids, OK, "common_cpu == CPUS{0}"),
	FILTER(pids, OK, "pid & CPUS{0,1}"),
	FILTER(widths, OK, "s8 < 0"),
	FILTER(widths, OK, "u8 == 255 || s16 == -32768"),
	FILTER(widths, OK, "s64 == -1 && u64 == 0xffffffffffffffff"),
	FILTER(widths, "Illegal integer value", "u32 == -1"),
	FILTER(made_numbers, OK, "s8 <= -1 || u16 > 0x8000 || s32 < 0"),
	FILTER(made_numbers, OK, "flag == 1 && letter != 97 && colour >= 1"),
	FILTER(made_numbers, OK, "name == \"one\""),
	FILTER(made_numbers, OK, "name ~ \"t*\" || name == 'zero'"),
	FILTER(made_strings, OK, "fixed == \"0000000\" || full != \"1\""),
	FILTER(made_strings, OK, "dynamic ~ \"1*\" || relative == \"\""),
	FILTER(made_strings, OK, "counted ~ \"*2*\" && dirty != \"333\""),
	FILTER(made_arrays, OK, "cpus & CPUS{0-1}"),
	FILTER(made_arrays, OK, "cpus == CPUS{0}"),
	FILTER(made_arrays, OK, "others != CPUS{1}"),
	FILTER(tasks, OK, "newcomm ~ \"abc*\""),
	FILTER(tasks, OK, "oldcomm == \"abc\" || newcomm == \"\""),
	FILTER(tasks, OK, "oom_score_adj >= 0 && oom_score_adj < 1001"),
	FILTER(dirs, OK, "__filename_val == \"/nosuch/a\""),
	FILTER(dirs, OK, "__filename_val ~ \"*5\""),
	FILTER(dirs, OK, "filename.ustring ~ \"/nosuch/*\""),
	FILTER(widths, OK, "__probe_ip.function == schedule"),
	FILTER(widths, OK, "__probe_ip.function != schedule"),
	FILTER(pids, "Invalid operator", "pid = 7"),
	FILTER(pids, "Invalid operator", "pid"),
	FILTER(pids, "Too many '('", "(pid == 7"),
	FILTER(pids, "Too few '('", "pid == 7)"),
	FILTER(pids, "Missing matching quote", "comm == \"x"),
	FILTER(pids, "Missing '{'", "cpu & CPUS0"),
	FILTER(pids, "Missing '}'", "cpu & CPUS{0"),
	FILTER(pids, "Operand too long", "pid == 123456789012345678901234567890"),
	FILTER(pids, "Expecting string field", "comm == 7"),
	FILTER(pids, "Expecting numeric field", "pid == \"x\""),
	FILTER(pids, "Illegal operation", "comm < \"x\""),
	FILTER(pids, "Illegal operation", "pid ~ 7"),
	FILTER(pids, "Field not found", "nosuch == 7"),
	FILTER(pids, "Illegal integer value", "pid == 0x"),
	FILTER(pids, "Illegal integer value", "pid == -"),
	FILTER(pids, "Invalid cpulist", "cpu & CPUS{x}"),
	FILTER(pids, "Invalid value (did you forget quotes)?", "comm == x"),
	FILTER(widths, "Function not found", "__probe_ip.function == nosuch_function_"),
	FILTER(pids, "event filter parse error", "pid == 7 &&"),
	FILTER(pids, "event filter parse error", "&& pid == 7"),
	FILTER(pids, "event filter parse error", "pid == 7 pid == 8"),
	FILTER(pids, "event filter parse error", "()"),
	FILTER(pids, "event filter parse error", "!"),
	FILTER(pids, "event filter parse error", "  "  "\xff"),
	/* many events, with numbers of each width, many ties, and texts of all lengths */
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid:size=1024"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid:sort=pid"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid:sort=pid.descending"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid:sort=hitcount.descending"),
	EXACT("syscalls/sys_enter_getpgid", many, "hist:keys=pid:size=8192"),
	EXACT("syscalls/sys_enter_getpgid", many, "hist:keys=pid:size=8192:sort=pid.descending"),
	EXACT("syscalls/sys_enter_getpgid", numbers, "hist:keys=pid"),
	EXACT("syscalls/sys_enter_getpgid", numbers, "hist:keys=pid:sort=pid"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=u8"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=s8:sort=s8"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=u16:sort=u16"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=s16:sort=s16.descending"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=u32"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=s32:sort=s32"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=s64:sort=s64"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=x:sort=x"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=bits"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=char"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=array"),
	EXACT("kprobes/rhist_c", comms, "hist:keys=comm"),
	EXACT("kprobes/rhist_c", comms, "hist:keys=comm:sort=comm"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=__probe_ip"),
	EXACT("kprobes/rhist_cp", paths, "hist:keys=path"),
	EXACT("kprobes/rhist_cp", paths, "hist:keys=path:sort=path"),
	EXACT("kprobes/rhist_cr", numbers, "hist:keys=ret"),
	EXACT("syscalls/sys_enter_chdir", paths, "hist:keys=__filename_val"),
	EXACT("syscalls/sys_enter_chdir", paths, "hist:keys=__filename_val:sort=__filename_val.descending"),
	EXACT("syscalls/sys_enter_chdir", paths, "hist:keys=filename"),
	EXACT("syscalls/sys_exit_getpgid", numbers, "hist:keys=ret:sort=ret"),
	EXACT("task/task_rename", names, "hist:keys=newcomm"),
	EXACT("task/task_rename", names, "hist:keys=oldcomm:sort=oldcomm"),
	EXACT("task/task_rename", names, "hist:keys=oom_score_adj"),
	EXACT("oom/oom_score_adj_update", scores, "hist:keys=oom_score_adj"),
	EXACT("oom/oom_score_adj_update", scores, "hist:keys=oom_score_adj:sort=oom_score_adj"),
	EXACT("oom/oom_score_adj_update", scores, "hist:keys=comm"),
	EXACT("task/task_newtask", children, "hist:keys=clone_flags"),
	EXACT("task/task_newtask", children, "hist:keys=pid:sort=pid"),
	EXACT("syscalls/sys_enter_getpgid", children, "hist:keys=common_pid"),
	EXACT("syscalls/sys_enter_getpgid", children, "hist:keys=common_pid:sort=common_pid"),
	EXACT("syscalls/sys_enter_getpgid", cpus, "hist:keys=common_cpu"),
	EXACT("syscalls/sys_enter_getpgid", cpus, "hist:keys=cpu:sort=cpu"),
	EXACT("syscalls/sys_enter_getpgid", cpus, "hist:keys=CPU"),
	EXACT("syscalls/sys_enter_getpgid", comms, "hist:keys=common_comm"),
	EXACT("syscalls/sys_enter_getpgid", comms, "hist:keys=common_comm:sort=common_comm"),
	EXACT("syscalls/sys_enter_getpgid", comms, "hist:keys=comm:sort=comm"),
	EXACT("syscalls/sys_enter_getpgid", comms, "hist:keys=COMM"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=common_type"),
	EXACT("synthetic/rhist_c", numbers, "hist:keys=a:sort=a"),
	EXACT("synthetic/rhist_c", numbers, "hist:keys=h:sort=h"),
	EXACT("synthetic/rhist_c", numbers, "hist:keys=c"),
	EXACT("synthetic/rhist_c", comms, "hist:keys=d:sort=d"),
	EXACT("synthetic/rhist_cs", names, "hist:keys=s"),
	EXACT("synthetic/rhist_cs", names, "hist:keys=s:sort=s.descending"),
	EXACT("synthetic/rhist_cs", names, "hist:keys=p"),
	EXACT("user_events/rhist_c", relative, "hist:keys=s"),
	EXACT("user_events/rhist_c", relative, "hist:keys=s:sort=s.descending"),
	EXACT("user_events/rhist_c", relative, "hist:keys=n:sort=n"),
	EXACT("user_events/rhist_c", relative, "hist:keys=n,s:vals=n"),
	EXACT("timer/itimer_expire", alarms, "hist:keys=pid"),
	/*
	 * The context of a hit in its record, except for "need resched": a tick may come between
	 * the two counting hits.
	 */
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=common_preempt_count if !(common_flags & 0x19)"),
	EXACT("syscalls/sys_exit_getpgid", ties, "hist:keys=common_preempt_count:vals=common_pid if !(common_flags & 0x19)"),
	EXACT("task/task_rename", names, "hist:keys=newcomm,pid:vals=oom_score_adj if oom_score_adj >= 0"),
	EXACT("task/task_rename", names, "hist:keys=common_preempt_count:vals=common_pid if !(common_flags & 0x19)"),
	/* in an interrupt, on PREEMPT_RT in a soft one */
	EXACT("timer/itimer_expire", alarms, "hist:keys=common_preempt_count if common_flags & 0x18"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid if !(common_flags & 0x19) && common_preempt_count == 0"),
	/* several keys */
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid,common_comm"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=common_comm,pid,common_cpu"),
	EXACT("syscalls/sys_enter_getpgid", comms, "hist:keys=common_comm,pid:sort=common_comm,pid.descending"),
	EXACT("syscalls/sys_enter_getpgid", children, "hist:keys=common_pid,pid:sort=pid,common_pid"),
	EXACT("task/task_rename", names, "hist:keys=oldcomm,newcomm"),
	EXACT("task/task_rename", names, "hist:keys=newcomm,oom_score_adj:sort=oom_score_adj,newcomm.descending"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=s8,u16,s64:sort=s8.descending,u16"),
	EXACT("kprobes/rhist_c", comms, "hist:keys=comm,u8:sort=comm,hitcount"),
	EXACT("syscalls/sys_enter_chdir", paths, "hist:keys=common_pid,__filename_val:sort=__filename_val"),
	/* values */
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid:vals=pid"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=common_cpu:vals=pid,common_pid"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid:vals=hitcount,pid:sort=pid.descending"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid:vals=hitcount,hitcount"),
	EXACT("syscalls/sys_enter_getpgid", numbers, "hist:keys=pid:vals=pid.hex:nohitcount"),
	EXACT("syscalls/sys_enter_getpgid", numbers, "hist:keys=pid:vals=hitcount.percent"),
	EXACT("syscalls/sys_enter_getpgid", numbers, "hist:keys=pid:vals=hitcount,hitcount.graph"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid:vals=pid.percent,pid.graph"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=u8:vals=s8,s16:sort=s16"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=u8:vals=s64.percent:sort=s64.descending"),
	/* modifiers */
	EXACT("syscalls/sys_enter_getpgid", numbers, "hist:keys=pid.hex"),
	EXACT("syscalls/sys_enter_getpgid", numbers, "hist:keys=pid.hex:sort=pid"),
	EXACT("syscalls/sys_enter_getpgid", numbers, "hist:keys=pid.log2"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid.log2:sort=pid"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid.buckets=100"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid.buckets=0x10:sort=pid.descending"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid.usecs"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=__syscall_nr.syscall"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=common_pid.execname,pid.log2"),
	EXACT("syscalls/sys_enter_getpgid", numbers, "hist:keys=pid.sym"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=__probe_ip.sym"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=__probe_ip.sym-offset,s8.log2"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=s16.log2:vals=u8:sort=u8"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=s8.buckets=7:sort=s8"),
	/* names, expressions, filters */
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:name=rhist_compared:keys=pid"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid:pause"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid/128:vals=pid*2"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid+common_pid-common_pid,-(pid):sort=hitcount"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid:vals=pid*pid,pid-16/4"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=s8+1:vals=s16-u8"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid-common_pid:sort=hitcount"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid if pid < 3000 && pid > 100"),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid if pid & 1 || comm == \"nobody\""),
	EXACT("syscalls/sys_enter_getpgid", comms, "hist:keys=common_comm if comm ~ \"comm-1*\""),
	EXACT("task/task_rename", names, "hist:keys=newcomm:sort=newcomm if newcomm ~ \"a*\""),
	EXACT("task/task_rename", names, "hist:keys=newcomm if newcomm == \"abc\" || newcomm != \"\" && oom_score_adj >= 0"),
	EXACT("syscalls/sys_enter_chdir", paths, "hist:keys=__filename_val if __filename_val ~ \"*mno*\""),
	EXACT("syscalls/sys_enter_chdir", paths, "hist:keys=__filename_val if __filename_val ~ \"*[0-4]\""),
	EXACT("syscalls/sys_enter_getpgid", ties, "hist:keys=pid if !(pid > 300 || pid == 5) && common_pid > 1"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=s8 if s8 < 0 || u16 & 0x8000"),
	EXACT("kprobes/rhist_c", numbers, "hist:keys=u64 if s64 <= -1 && u64 >= 0x8000000000000001"),
	EXACT("syscalls/sys_enter_getpgid", cpus, "hist:keys=cpu if cpu == 0 || CPU & CPUS{1}"),
};

#define ROWS (sizeof(rows) / sizeof(*rows))

#endif
