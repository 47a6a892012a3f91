// SPDX-License-Identifier: GPL-2.0
/*
 * State that a hit looks up: the stack of the traced function, and the time on every clock. Also
 * names that the kernel does not export: the names of system calls.
 */
#define _GNU_SOURCE
#include <sys/prctl.h>

#include "tracing.h"

static const char *const trace_event = "syscalls/sys_enter_getpgid";

static const char *in_kernel(const char *event, const char *file)
{
	return pathf("%s/events/%s/%s", kernel_dir(), event, file);
}

/*
 * Returns the entries of a hist file, without the lines above and below them; the caller frees
 * them.
 */
static char *entries(const char *path)
{
	char *text = slurp(path), *from = text ? strstr(text, "\n{ ") : NULL, *to = from ? strstr(from, "\n\nTotals:") : NULL;
	char *found = from && to ? strndup(from + 1, to - from) : strdup("");

	free(text);
	return found;
}

/* --- stacks */

/*
 * Functions between the traced one and the trigger, and the trigger itself: stacks begin below
 * them.
 */
static const char *const handlers[] = {
	"[rhist]", "event_triggers_call", "trace_event_raw_event_", "trace_event_buffer_commit", "__traceiter_",
	"ftrace_syscall_", "kprobe_dispatcher", "kprobe_ftrace_handler", "kprobe_int3_handler", "exc_int3",
	"kretprobe_dispatcher", "rethook_trampoline", "kprobe_brk_handler", "el1_brk64", "el1h_64_sync", "fprobe_ftrace_entry", "fprobe_handler",
	"fentry_dispatcher", "fexit_dispatcher", "fprobe_return", "fprobe_exit_handler", "return_to_handler", "stack_trace_save",
	"arch_ftrace_ops_list_func", "ftrace_call+", "ftrace_regs_call+", "ftrace_caller+",
	" 0xffff",
};

static const struct kind {
	const char *name, *definition, *event;
	/* functions that may come first, up to a NULL */
	const char *first[7];
} kinds[] = {
	{ "system call", NULL, "syscalls/sys_enter_getpgid",
	  { "do_syscall_64+", "trace_syscall_enter+", "syscall_trace_enter", "__do_syscall", "trace_sys_enter+" } },
	{ "end of a system call", NULL, "syscalls/sys_exit_getpgid",
	  { "do_syscall_64+", "trace_syscall_exit+", "syscall_exit_", "syscall_trace_exit+", "__do_syscall", "trace_sys_exit+" } },
	{ "any system call", NULL, "raw_syscalls/sys_enter",
	  { "do_syscall_64+", "trace_syscall_enter+", "syscall_trace_enter", "__do_syscall", "trace_sys_enter+" } },
	{ "static event", NULL, "task/task_rename", { "__set_task_comm+" } },
	{ "kprobe at the beginning", "p:rhist_kp " SYS_FUNCTION("getpgid"), "kprobes/rhist_kp", { SYS_FUNCTION("getpgid") "+" } },
	{ "kprobe inside", "p:rhist_ki " SYS_INSIDE("getpgid"), "kprobes/rhist_ki", { SYS_FUNCTION("getpgid") "+" } },
	{ "kretprobe", "r:rhist_kr " SYS_FUNCTION("getpgid"), "kprobes/rhist_kr", { "do_syscall_64+", "x64_sys_call+", "invoke_syscall+" } },
	{ "fprobe", "f:rhist_fp " SYS_FUNCTION("getpgid"), "fprobes/rhist_fp", { SYS_FUNCTION("getpgid") "+" } },
	{ "fprobe at the end", "f:rhist_fr " SYS_FUNCTION("getpgid") "%return", "fprobes/rhist_fr",
	  { "do_syscall_64+", "x64_sys_call+", "invoke_syscall+" } },
};

static void fire(void)
{
	for (int i = 0; i < 3; i++) {
		syscall(SYS_getpgid, 0);
		prctl(PR_SET_NAME, "moments");
	}
}

/* Checks each stack of a hist file; returns their number. */
static int check_stacks(const struct kind *kind, const char *text, bool *good)
{
	static const char begin[] = "{ common_stacktrace:\n";
	int stacks = 0;

	*good = true;
	for (const char *at = text; (at = strstr(at, begin)); ) {
		const char *first = at + sizeof(begin) - 1 + 9, *end = strstr(at, "\n} hitcount:");
		bool found = false;

		stacks++;
		for (int i = 0; kind->first[i]; i++)
			found |= !strncmp(first, kind->first[i], strlen(kind->first[i]));
		for (unsigned int i = 0; i < sizeof(handlers) / sizeof(*handlers); i++) {
			const char *handler = strstr(at, handlers[i]);

			found &= !handler || handler > end;
		}
		if (!found && *good)
			note("%.*s", (int)(end - at), at);
		*good &= found;
		at = end;
	}
	return stacks;
}

static void stack_of(const struct kind *kind, bool with_c)
{
	const char *trigger = pathf("hist:keys=common_stacktrace:size=256 if common_pid == %d", getpid());
	const char *with = with_c ? " when C counts it too" : "";
	char *ours, *c;
	bool good;
	int stacks;

	if (append(in_event(kind->event, "trigger"), trigger)) {
		ok(false, "%s: stack%s", kind->name, with);
		return;
	}
	if (with_c)
		append(in_kernel(kind->event, "trigger"), trigger);
	fire();
	ours = entries(in_event(kind->event, "hist"));
	c = with_c ? entries(in_kernel(kind->event, "hist")) : NULL;
	append(in_event(kind->event, "trigger"), pathf("!%s", trigger));
	if (with_c)
		append(in_kernel(kind->event, "trigger"), pathf("!%s", trigger));
	stacks = check_stacks(kind, ours, &good);
	ok(stacks && good, "%s: the stack begins at the traced function%s", kind->name, with);
	/* The same stack, where C may leave out more or less. */
	if (with_c && stacks == 1) {
		const char *a = strchr(ours, '\n'), *b = strchr(c, '\n');
		size_t la = a ? strstr(a, "\n}") - a : 0, lb = b ? strstr(b, "\n}") - b : 0;

		ok(la && lb && (la < lb ? !strncmp(a, b + lb - la, la) : !strncmp(a + la - lb, b, lb)),
		   "%s: and goes on as C's", kind->name);
	}
	free(ours);
	free(c);
}

/*
 * Returns true if a probe at the end of a function replaces its return address: the graph tracer
 * does so, too.
 */
static bool replaces_return(const struct kind *kind)
{
	char *symbols;
	bool replaces;

	if (*kind->definition == 'r')
		return true;
	/* fprobes of Linux 6.12 */
	symbols = slurp("/proc/kallsyms");
	replaces = strstr(kind->definition, "%return") && symbols && strstr(symbols, " fprobe_exit_handler\n");
	free(symbols);
	return replaces;
}

/*
 * If others trace the function of a probe, too, the kernel calls the probe through one more
 * function.
 */
static void stack_traced(const struct kind *kind)
{
	static const char *const tracers[] = { "function", "function_graph" };
	const char *trigger = pathf("hist:keys=common_stacktrace:size=256 if common_pid == %d", getpid());
	const char *filter = pathf("%s/set_ftrace_filter", kernel_dir()), *current = pathf("%s/current_tracer", kernel_dir());
	unsigned int fired = 3;
	struct totals t;
	char *text;
	bool good;

	append(in_event(kind->event, "trigger"), trigger);
	fire();
	append(filter, SYS_FUNCTION("getpgid"));
	for (unsigned int i = 0; i < sizeof(tracers) / sizeof(*tracers); i++) {
		/*
		 * If both have replaced a return address, the kernel's unwinder finds only one of
		 * them, and stops there.
		 */
		if (!strcmp(tracers[i], "function_graph") && replaces_return(kind))
			continue;
		if (append(current, tracers[i])) {
			skip("this kernel does not have it", "%s: the stack with the tracer %s", kind->name, tracers[i]);
			continue;
		}
		fire();
		fired += 3;
		append(current, "nop");
		text = slurp(in_event(kind->event, "hist"));
		parse_totals(text, &t);
		ok(check_stacks(kind, text, &good) == 1 && good && t.hits == fired,
		   "%s: the stack is the same with the tracer %s", kind->name, tracers[i]);
		free(text);
	}
	truncate_file(filter);
	append(in_event(kind->event, "trigger"), pathf("!%s", trigger));
}

static void stacks(void)
{
	/* The kernel cannot unwind behind the trampoline of an optimized kprobe. */
	append("/proc/sys/debug/kprobes-optimization", "0");
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const struct kind *kind = &kinds[i];

		if (kind->definition && append(pathf("%s/dynamic_events", kernel_dir()), kind->definition)) {
			skip("this kernel does not have it", "%s: stack", kind->name);
			continue;
		}
		stack_of(kind, false);
		stack_of(kind, true);
		if (kind->definition) {
			stack_traced(kind);
			append(pathf("%s/dynamic_events", kernel_dir()), pathf("-:%s", kind->event));
		}
	}
}

/* Stack stored in the record of a synthetic event. */
static void stored_stack(void)
{
	static const char event[] = "synthetic/rhist_stack", trigger[] = "hist:keys=stack.stacktrace:size=128";
	static const char enter[] = "hist:keys=common_pid:rhist_st=common_stacktrace:size=128",
			  leave[] = "hist:keys=common_pid:rhist_s=$rhist_st:size=128"
				    ":onmatch(syscalls.sys_enter_getpgid).trace(rhist_stack,$rhist_s)";
	char *ours, *c, *line;

	if (append(pathf("%s/synthetic_events", kernel_dir()), "rhist_stack unsigned long[] stack") ||
	    append(in_kernel("syscalls/sys_enter_getpgid", "trigger"), enter) ||
	    append(in_kernel("syscalls/sys_exit_getpgid", "trigger"), leave)) {
		ok(false, "an event with a stack can be made: %s", errno_name(errno));
		return;
	}
	ok(!append(in_event(event, "trigger"), trigger), "a stack in a record is a key");
	append(in_kernel(event, "trigger"), trigger);
	fire();
	ours = entries(in_event(event, "hist"));
	c = entries(in_kernel(event, "hist"));
	if (!ok(*ours && !strcmp(ours, c), "a stack in a record: entries are C's"))
		note_difference(c, ours);
	line = slurp(in_event(event, "trigger"));
	ok(!strcmp(line, "hist:keys=stack.stacktrace:vals=hitcount:sort=hitcount:size=128 [active]\n"),
	   "a stack in a record: the trigger's line");
	free(line);
	ok(append(in_event(event, "trigger"), "hist:keys=stack") == -EEXIST, "it is the same without the modifier");
	ok(!append(in_event(event, "trigger"), pathf("!%s", trigger)), "and is removed");
	append(in_kernel(event, "trigger"), pathf("!%s", trigger));
	append(in_kernel("syscalls/sys_exit_getpgid", "trigger"), pathf("!%s", leave));
	append(in_kernel("syscalls/sys_enter_getpgid", "trigger"), pathf("!%s", enter));
	ok(!append(pathf("%s/synthetic_events", kernel_dir()), "!rhist_stack"), "the event can be deleted");
	free(ours);
	free(c);
}

/* --- times */

/* Reads the keys of a histogram by common_timestamp, in its order; returns their number. */
static int times(const char *text, unsigned long long *to, int max)
{
	int n = 0;

	for (const char *at = text; n < max && (at = strstr(at, "{ common_timestamp: ")); at++)
		to[n++] = strtoull(at + strlen("{ common_timestamp: "), NULL, 10);
	return n;
}

/* Fires three hits, and reads their times. */
static int three(const char *clock, const char *unit, unsigned long long t[3])
{
	const char *trigger = pathf("hist:keys=common_timestamp%s:sort=common_timestamp:size=128:clock=%s if common_pid == %d",
				    unit, clock, getpid());
	char *text;
	int n = 0, error = append(in_event(trace_event, "trigger"), trigger);

	if (error)
		return error;
	for (int i = 0; i < 3; i++) {
		syscall(SYS_getpgid, 0);
		sleep_ms(i ? 0 : 30);
	}
	text = entries(in_event(trace_event, "hist"));
	n = times(text, t, 3);
	free(text);
	text = slurp(in_event(trace_event, "trigger"));
	if (!strstr(text, pathf(":size=128:clock=%s if ", clock)))
		n = -1;
	*strchrnul(text, '[') = 0;
	if (append(in_event(trace_event, "trigger"), pathf("!%s", text)))
		n = -1;
	free(text);
	text = slurp(in_event(trace_event, "trigger"));
	if (*text != '#')
		n = -1;
	free(text);
	return n;
}

static unsigned long long ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void clocks(void)
{
	static const struct { const char *name; clockid_t id; } known[] = {
		{ "mono", CLOCK_MONOTONIC }, { "mono_raw", CLOCK_MONOTONIC_RAW }, { "boot", CLOCK_BOOTTIME },
		{ "tai", CLOCK_TAI },
	};
	static const char *const others[] = { "local", "global", "perf" };
	unsigned long long t[3], from, to;
	int n;

	for (unsigned int i = 0; i < sizeof(known) / sizeof(*known); i++)
		for (unsigned int unit = 1; unit <= 1000; unit *= 1000) {
			from = ns(known[i].id) / unit;
			n = three(known[i].name, unit == 1 ? "" : ".usecs", t);
			to = ns(known[i].id) / unit;
			if (!ok(n >= 2 && from <= t[0] && t[0] < t[1] && t[n - 1] <= to, "%s: the times lie between, in %s",
				known[i].name, unit == 1 ? "ns" : "us"))
				note("%d: %llu <= %llu %llu %llu <= %llu", n, from, t[0], t[1], t[2], to);
		}
	for (unsigned int i = 0; i < sizeof(others) / sizeof(*others); i++) {
		bool right = false;

		/*
		 * These clocks may run at another rate: allow a tenth more or less. If the kernel
		 * does not trust the processors' counters, they stand still while a tick is late,
		 * as on a busy machine.
		 */
		for (int tries = 0; tries < 5 && !right; tries++) {
			from = ns(CLOCK_MONOTONIC);
			n = three(others[i], "", t);
			to = ns(CLOCK_MONOTONIC);
			right = n == 3 && t[1] - t[0] >= 27000000 && t[2] - t[0] <= (to - from) * 11 / 10;
			if (!right)
				note("%d: %llu %llu %llu in %llu", n, t[0], t[1], t[2], to - from);
		}
		ok(right, "%s: as long apart as it took", others[i]);
	}
	n = three("counter", "", t);
	ok(n == 3 && t[1] == t[0] + 1 && t[2] == t[1] + 1, "counter: counts");
	n = three("counter", ".usecs", t);
	ok(n == 3 && t[1] == t[0] + 1, "counter: has no microseconds");
	from = ns(CLOCK_BOOTTIME) / 10000000;
	n = three("uptime", "", t);
	to = ns(CLOCK_BOOTTIME) / 10000000;
	/* jiffies start at any value, and none is lost later. */
	ok(n >= 2 && t[n - 1] - t[0] >= 2 && t[n - 1] - t[0] <= to - from + 2, "uptime: hundredths of a second");
#ifdef __x86_64__
	from = __builtin_ia32_rdtsc();
	n = three("x86-tsc", "", t);
	to = __builtin_ia32_rdtsc();
	ok(n == 3 && from < t[0] && t[0] < t[1] && t[1] < t[2] && t[2] < to, "x86-tsc: cycles");
#endif
}

/* The kernel's own clock and buffers stay unchanged. */
static void instance(void)
{
	char *before = slurp(pathf("%s/trace_clock", kernel_dir())), *after;

	append(in_event(trace_event, "trigger"), "hist:keys=common_timestamp:clock=mono:size=128");
	after = slurp(pathf("%s/trace_clock", kernel_dir()));
	ok(!strcmp(before, after), "the clock of the instance stays");
	append(in_event(trace_event, "trigger"), "!hist:keys=common_timestamp");
	free(before);
	free(after);
}

/* All histograms of an event have the same time for the same hit. */
static void agreed(void)
{
	static const char *const triggers[] = {
		"hist:keys=common_timestamp:sort=common_timestamp:size=128",
		"hist:keys=common_timestamp:vals=common_timestamp:sort=common_timestamp:size=128",
	};
	unsigned long long t[2][128];
	char *text, *second;
	int n[2];

	for (int i = 0; i < 2; i++)
		append(in_event(trace_event, "trigger"), triggers[i]);
	for (int i = 0; i < 100; i++)
		syscall(SYS_getpgid, 0);
	text = slurp(in_event(trace_event, "hist"));
	second = strstr(text, "\n\n\n# event histogram");
	n[1] = second ? times(second, t[1], 128) : -1;
	if (second)
		*second = 0;
	n[0] = times(text, t[0], 128);
	ok(n[0] > 0 && n[0] == n[1] && !memcmp(t[0], t[1], n[0] * sizeof(**t)), "two histograms have the same %d times", n[0]);
	free(text);
	for (int i = 0; i < 2; i++)
		append(in_event(trace_event, "trigger"), pathf("!%s", triggers[i]));
}

/* --- system calls */

static void system_calls(void)
{
	static const char trigger[] = "hist:keys=pid.syscall:sort=pid:size=1024";
	char *ours, *c;

	ok(!append(in_event(trace_event, "trigger"), trigger), "numbers of system calls are a key");
	append(in_kernel(trace_event, "trigger"), trigger);
	for (long i = -1; i < 600; i++)
		syscall(SYS_getpgid, i);
	ours = entries(in_event(trace_event, "hist"));
	c = entries(in_kernel(trace_event, "hist"));
	if (!ok(*ours && !strcmp(ours, c), "all system calls have the names that C gives them"))
		note_difference(c, ours);
	append(in_event(trace_event, "trigger"), pathf("!%s", trigger));
	append(in_kernel(trace_event, "trigger"), pathf("!%s", trigger));
	free(ours);
	free(c);
}

int main(void)
{
	/* C's stacks begin elsewhere, and its clock is the instance's. */
	if (testing_c()) {
		skip("this is C", "moments");
		finish();
	}
	stacks();
	stored_stack();
	clocks();
	instance();
	agreed();
	system_calls();
	finish();
}
