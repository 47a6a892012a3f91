// SPDX-License-Identifier: GPL-2.0
/*
 * Bugs that C's implementation had or still has must not happen here: one point for each bug, with
 * its number if it has one.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "../../events/values.h"
#include "tracing.h"

#define GETPGID "syscalls/sys_enter_getpgid"
#define GETSID "syscalls/sys_enter_getsid"
#define SETPGID "syscalls/sys_enter_setpgid"
#define CHDIR "syscalls/sys_enter_chdir"
#define GETPRIORITY "syscalls/sys_enter_getpriority"
#define SETPRIORITY "syscalls/sys_enter_setpriority"
#define MODULE "rhist_events"

static const char *file_of(const char *event, const char *name)
{
	return pathf("%s/events/%s/%s", tracing_dir(), event, name);
}

static int command(const char *event, const char *text)
{
	return append(file_of(event, "trigger"), text);
}

static void reset(const char *event)
{
	truncate_file(file_of(event, "trigger"));
}

static int define(const char *text)
{
	return append(pathf("%s/synthetic_events", kernel_dir()), text);
}

/*
 * Ignored hits of the only trigger with variables of an event, from a line of hist_stats; -1
 * without such a line.
 */
static long unresolved(const char *event)
{
	char *text = slurp(pathf("%s/hist_stats", tracing_dir())), column[64], *at = text;
	long count = -1;

	snprintf(column, sizeof(column), "%s ", event);
	*strchr(column, '/') = ':';
	while (at && count < 0 && (at = strstr(at, column))) {
		at += strlen(column);
		sscanf(at, " hist %*u: %ld unresolved", &count);
	}
	free(text);
	return count;
}

/* Returns the trigger and hist files of an event as one text. */
static char *all_of(const char *event)
{
	char *trigger = slurp(file_of(event, "trigger")), *hist = slurp(file_of(event, "hist")), *both = NULL;

	if (!trigger || !hist || asprintf(&both, "%s\n%s", trigger, hist) < 0)
		both = NULL;
	free(trigger);
	free(hist);
	return both;
}

/*
 * Checks that a text is refused with that errno, twice, and with an entry in the log unless C has
 * none; the event stays as it is.
 */
static bool refused(const char *event, const char *text, int error, const char *entry)
{
	char *before = all_of(event), *after;
	struct log_entry e;
	bool right = true;

	for (int i = 0; i < 2; i++) {
		int got;

		truncate_file(pathf("%s/error_log", tracing_dir()));
		got = command(event, text);
		read_log(tracing_dir(), &e);
		if (got != error || (entry && strcmp(e.text, entry))) {
			note("%s: %s, %s", text, errno_name(got), e.text);
			right = false;
		}
		free_log(&e);
		if (!got)
			command(event, pathf("!%s", text));
	}
	after = all_of(event);
	if (!before || !after || strcmp(before, after)) {
		note("%s: left something behind", text);
		right = false;
	}
	free(before);
	free(after);
	return right;
}

/* --- load of system calls */

struct load {
	pthread_t thread;
	int cpu;
	/* argument of call i: first + i % keys; limit 0: until stop */
	unsigned long first, keys, limit;
	unsigned long fired;
};

static volatile bool stop;
static pthread_barrier_t together;

static void *fire_load(void *arg)
{
	struct load *r = arg;

	pin(r->cpu);
	pthread_barrier_wait(&together);
	for (r->fired = 0; r->limit ? r->fired < r->limit : !stop; r->fired++)
		syscall(SYS_getpgid, r->first + r->fired % r->keys);
	return NULL;
}

#define CPUS 8

/* Starts load on every CPU, all with the same keys. Returns the number of CPUs. */
static int begin(struct load loads[CPUS], unsigned long keys, unsigned long limit)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);

	cpus = cpus < CPUS ? cpus : CPUS;
	stop = false;
	pthread_barrier_init(&together, NULL, cpus);
	for (int i = 0; i < cpus; i++) {
		loads[i] = (struct load){ .cpu = i, .first = 1, .keys = keys, .limit = limit };
		pthread_create(&loads[i].thread, NULL, fire_load, &loads[i]);
	}
	return cpus;
}

static unsigned long end(struct load loads[CPUS], int cpus)
{
	unsigned long fired = 0;

	stop = true;
	for (int i = 0; i < cpus; i++) {
		pthread_join(loads[i].thread, NULL);
		fired += loads[i].fired;
	}
	return fired;
}

/* Returns true if a key from 1 to most is in a histogram twice, or another line is there. */
static bool duplicates(const char *hist, const char *field, unsigned long most)
{
	char *seen = calloc(most + 1, 1), entry[64];
	const char *p = hist;
	bool found = false;

	snprintf(entry, sizeof(entry), "{ %s:", field);
	while ((p = strstr(p, entry))) {
		unsigned long key = strtoul(p += strlen(entry), NULL, 10);

		if (!key || key > most || seen[key]++)
			found = true;
	}
	free(seen);
	return found;
}

/* --- the map */

/* Two CPUs insert the same keys while the histogram is read. */
static bool visible_before_its_key(void)
{
	int rounds = repeats(15, 30, 300);
	bool right = true;

	for (int i = 0; i < rounds && right; i++) {
		struct load loads[CPUS];
		struct totals t = { 0 };
		unsigned long fired;
		char *text;
		int cpus;

		reset(GETPGID);
		right = !command(GETPGID, "hist:keys=pid:size=1024");
		cpus = begin(loads, 500, 1500);
		for (int j = 0; j < 5 && right; j++) {
			text = slurp(file_of(GETPGID, "hist"));
			right = text && !duplicates(text, "pid", 500);
			free(text);
		}
		fired = end(loads, cpus);
		text = slurp(file_of(GETPGID, "hist"));
		right = right && text && parse_totals(text, &t) && !duplicates(text, "pid", 500) && t.entries == 500 &&
			t.hits == fired && t.sum == fired && !t.dropped;
		if (!right)
			note("round %d: %lu fired, %llu hits, %llu entries, %llu dropped", i, fired, t.hits, t.entries,
			     t.dropped);
		free(text);
	}
	reset(GETPGID);
	return right;
}

/* More keys than entries, from every CPU: the last entry is neither lost nor given twice. */
static bool slot_given_back(void)
{
	bool right = true;

	for (int i = 0; i < repeats(10, 20, 20) && right; i++) {
		struct load loads[CPUS];
		struct totals t = { 0 };
		unsigned long fired;
		char *text;

		reset(GETPGID);
		right = !command(GETPGID, "hist:keys=pid:size=128");
		fired = end(loads, begin(loads, 400, 2000));
		text = slurp(file_of(GETPGID, "hist"));
		right = right && text && parse_totals(text, &t) && !duplicates(text, "pid", 400) && t.entries == 128 &&
			t.lines == 128 && t.sum == t.hits && t.hits + t.dropped == fired;
		if (!right)
			note("%lu fired, %llu hits, %llu entries, %llu dropped", fired, t.hits, t.entries, t.dropped);
		free(text);
	}
	reset(GETPGID);
	return right;
}

struct order {
	pthread_t thread;
	const char *context;
	int cpu, error;
};

#define ORDERED 4000UL	/* hits of one order */

static void *obey(void *arg)
{
	struct order *o = arg;

	pin(o->cpu);
	o->error = append("/dev/" MODULE, pathf("numbers %s %d 100 %lu 1000", o->context, o->cpu, ORDERED));
	return NULL;
}

/* Task, softirq, interrupt and NMI of one CPU insert the same keys, one interrupting the other. */
static bool interrupted_insertion(void)
{
	struct order orders[] = { { .context = "task" }, { .context = "softirq" }, { .context = "hardirq" },
				  { .context = "nmi" } };
	const char *event = MODULE "/numbers";
	struct totals t = { 0 };
	bool right = !command(event, "hist:keys=u64:size=2048");
	unsigned int n = contexts_there();

	for (unsigned int i = 0; i < n; i++)
		pthread_create(&orders[i].thread, NULL, obey, &orders[i]);
	for (unsigned int i = 0; i < n; i++) {
		pthread_join(orders[i].thread, NULL);
		if (orders[i].error)
			note("%s: %s", orders[i].context, errno_name(orders[i].error));
		right = right && !orders[i].error;
	}
	right = read_totals(file_of(event, "hist"), &t) && right && t.hits == n * ORDERED && t.sum == t.hits &&
		t.entries == 1000 && t.lines == 1000 && !t.dropped;
	if (!right)
		note("%llu hits, %llu entries, %llu dropped", t.hits, t.entries, t.dropped);
	reset(event);
	return right;
}

/*
 * A record with more frames than fit into a key: the first ones are the key, and memory behind it
 * stays intact.
 */
static bool deep_stack(void)
{
	const char *event = MODULE "/stacks";
	unsigned int frames = 0;
	struct totals t = { 0 };
	char *text;
	bool right = !command(event, "hist:keys=stack.stacktrace:vals=k:size=128");

	pin(0);
	/* 32 to 131 frames, which begin in twenty ways */
	right = right && !append("/dev/" MODULE, pathf("stacks task 0 %d 100 100", RHIST_DEEP + 32));
	text = slurp(file_of(event, "hist"));
	for (char *p = text; p && (p = strstr(p, "[" MODULE "]\n")); p++)
		frames++;
	right = right && text && parse_totals(text, &t) && t.entries == 20 && t.hits == 100 && frames == 20 * 31;
	if (!right)
		note("%llu entries, %llu hits, %u frames", t.entries, t.hits, frames);
	free(text);
	reset(event);
	return right;
}

/*
 * A string whose length goes beyond its record, into the rest of an older one: it ends with the
 * record.
 */
static bool beyond_the_record(void)
{
	const char *event = MODULE "/beyond";
	bool right = !command(event, "hist:keys=text:vals=k:size=128");
	char *text;

	pin(0);
	right = right && !append("/dev/" MODULE, "beyond task 0 1 10 2");
	text = slurp(file_of(event, "hist"));
	right = right && text && strstr(text, "    Hits: 10\n    Entries: 2\n") && strstr(text, "{ text: xxxxxxxxxxxx  ");
	if (!right)
		note("%s", text ? text : "no text");
	free(text);
	reset(event);
	return right;
}

/* A histogram is cleared under hits: none from before is left after. */
static bool cleared_under_hits(void)
{
	struct load loads[CPUS];
	bool right = !command(GETPGID, "hist:keys=pid:size=512");
	struct totals t = { 0 };
	unsigned long fired;
	int cpus = begin(loads, 300, 0);

	for (int i = 0; i < repeats(40, 100, 100) && right; i++) {
		char *text;

		right = !command(GETPGID, "hist:keys=pid:clear");
		text = slurp(file_of(GETPGID, "hist"));
		right = right && text && parse_totals(text, &t) && !duplicates(text, "pid", 300) && t.sum == t.hits &&
			t.lines == t.entries && !t.dropped;
		free(text);
	}
	fired = end(loads, cpus);
	if (!right || t.hits > fired)
		note("%lu fired, %llu hits, %llu dropped", fired, t.hits, t.dropped);
	right = right && t.hits <= fired && !command(GETPGID, "hist:keys=pid:clear");
	for (int i = 0; i < 1000; i++)
		syscall(SYS_getpgid, 1 + i % 300);
	right = read_totals(file_of(GETPGID, "hist"), &t) && right && t.hits == 1000 && t.entries == 300;
	reset(GETPGID);
	return right;
}

/* A read sorts, and computes percentages, with numbers that stay fixed while CPUs count on. */
static bool moving_sums(void)
{
	struct load loads[CPUS];
	bool right = !command(GETPGID, "hist:keys=pid:vals=hitcount.percent:sort=hitcount:size=512");
	int cpus = begin(loads, 97, 0), reads;

	for (reads = 0; reads < repeats(60, 200, 200) && right; reads++) {
		unsigned long long last = 0, sum;
		char *text = slurp(file_of(GETPGID, "hist")), *p = text;
		double percent;
		struct totals t;

		right = text && parse_totals(text, &t);
		while (right && (p = strstr(p, "{ pid:"))) {
			right = sscanf(p, "{ pid: %*u } hitcount: %llu hitcount (%%): %lf", &sum, &percent) == 2 &&
				sum >= last && percent > 100.0 * sum / t.hits - 0.02 &&
				percent < 100.0 * sum / t.hits + 0.02;
			if (!right)
				note("after %llu of %llu: %.80s", last, t.hits, p);
			last = sum;
			p++;
		}
		free(text);
	}
	end(loads, cpus);
	reset(GETPGID);
	return right;
}

/* --- creation that fails */

/* Objects in the caches of kmalloc(), and KiB of vmalloc() and of memory per CPU. */
struct memory {
	unsigned long objects[512];
	unsigned int caches;
	unsigned long vmalloc, percpu;
};

static void look_at_memory(struct memory *m)
{
	char *slabs = slurp("/proc/slabinfo"), *info = slurp("/proc/meminfo"), *p;

	memset(m, 0, sizeof(*m));
	for (p = slabs; p && (p = strstr(p, "\nkmalloc-")) && m->caches < 512; p++)
		sscanf(p, "\n%*s %lu", &m->objects[m->caches++]);
	if (info && (p = strstr(info, "VmallocUsed:")))
		sscanf(p, "VmallocUsed: %lu", &m->vmalloc);
	if (info && (p = strstr(info, "Percpu:")))
		sscanf(p, "Percpu: %lu", &m->percpu);
	free(slabs);
	free(info);
}

#define TIMES 1000

/*
 * Returns true unless at least one object was lost each time, whatever its size. Not for KASAN,
 * which keeps freed memory: there kmemleak finds even a single lost object, in the end.
 */
static bool memory_is_kept(const struct memory *before)
{
	struct memory now;
	bool right;

	if (slow_kernel())
		return true;
	/* what waits for RCU */
	sleep_ms(500);
	look_at_memory(&now);
	right = now.caches && now.caches == before->caches && now.vmalloc < before->vmalloc + TIMES &&
		now.percpu < before->percpu + TIMES;
	for (unsigned int i = 0; i < now.caches; i++)
		if (now.objects[i] > before->objects[i] + TIMES * 3 / 4) {
			note("kmalloc cache %u: %lu objects, then %lu", i, before->objects[i], now.objects[i]);
			right = false;
		}
	if (!right)
		note("vmalloc %lu KiB, then %lu; per CPU %lu KiB, then %lu", before->vmalloc, now.vmalloc,
		     before->percpu, now.percpu);
	return right;
}

/* Each of the texts fails, again and again, and memory is as before. */
static bool fails_for_ever(const char *const texts[], unsigned int n)
{
	int fd = open(file_of(GETPGID, "trigger"), O_WRONLY | O_APPEND | O_CLOEXEC);
	struct memory before;
	bool right = true;

	/* The first passes make allocations that later ones reuse. */
	for (int i = -100; i < (slow_kernel() ? 0 : TIMES) && right; i++) {
		if (i == 0)
			look_at_memory(&before);
		for (unsigned int j = 0; j < n && right; j++) {
			right = write(fd, texts[j], strlen(texts[j])) < 0;
			if (!right)
				note("%s: taken", texts[j]);
		}
	}
	close(fd);
	return right && memory_is_kept(&before);
}

static bool creation_leaks(void)
{
	static const char *const texts[] = {
		"hist:keys=pid:sort=nosuch:size=128",
		"hist:keys=pid,common_comm,common_stacktrace:vals=pid.hex,common_cpu.nosuch",
		"hist:keys=pid:size=128 if nosuch == 1",
		"hist:keys=pid:size=128 if pid == 1 &&",
		"hist:keys=pid/0",
		"hist:keys=pid+1+2+3+4+5",
		"hist:keys=common_pid:size=128",	/* exists */
		/* does not match the one of that name */
		"hist:name=taken:keys=pid,common_cpu:size=128",
		"hist:keys=nosuch",
		"hist:keys=pid:x=pid,y=$x+nosuch",
		"hist:keys=pid:s=common_pid.execname:st=common_stacktrace:x=$nosuch",
		"hist:keys=pid:m=pid:onmax($m).save(pid,common_cpu,nosuch)",
		"hist:keys=pid:m=pid:onmax($m).save(pid):onchange($m).save(pid)",
		"hist:keys=pid:m=pid:onmax($m).save(pid):onchange($nosuch).snapshot()",
		"hist:keys=pid:m=pid:onmax($m).trace(rhist_bl,$m)",		/* has two fields */
		"hist:keys=pid:m=pid:onmax($m).trace(rhist_bl,$m,$nosuch)",
		/* another type */
		"hist:keys=pid:m=pid:onmatch(syscalls.sys_enter_getsid).rhist_bl($m,common_comm)",
		"hist:keys=pid:m=pid:onmatch(nosuch.nosuch).trace(rhist_bl,$m,nosuch)",
	};
	bool right = !define("rhist_bl pid_t a; pid_t b") && !command(GETPGID, "hist:keys=common_pid:size=128") &&
		     !command(GETPGID, "hist:name=taken:keys=pid:size=128") &&
		     fails_for_ever(texts, sizeof(texts) / sizeof(*texts));

	reset(GETPGID);
	return !define("!rhist_bl") && right;
}

/*
 * A trigger on the other event is created for one of its fields, before the next parameter turns
 * out not to be a field.
 */
static bool helper_left_behind(void)
{
	static const char text[] = "hist:keys=pid:onmatch(syscalls.sys_enter_setpgid).trace(rhist_bl,pgid,nosuch)";
	bool right = !define("rhist_bl pid_t a; pid_t b") && !command(SETPGID, "hist:keys=pid:size=128");
	char *before = all_of(SETPGID), *after;

	right = right && refused(GETPGID, text, -EINVAL, NULL);
	after = all_of(SETPGID);
	right = right && before && after && !strcmp(before, after);
	if (!right)
		note("%s", after ? after : "");
	free(before);
	free(after);
	reset(SETPGID);
	return !define("!rhist_bl") && right;
}

/* The printed line of a trigger removes it, whatever its names refer to by then. */
static bool name_of_two(void)
{
	static const char line[] = "hist:keys=pid:vals=hitcount:m=$n:sort=hitcount:size=128";
	bool right = !command(GETPGID, "hist:keys=pid:n=pid:size=128") && !command(GETSID, line);
	char *shown, *left;

	/* now $n is a variable of two events */
	right = right && !command(SETPGID, "hist:keys=pid:n=pgid:size=128");
	shown = slurp(file_of(GETSID, "trigger"));
	right = right && shown && !strncmp(shown, line, strlen(line)) && !command(GETSID, pathf("!%s", line));
	left = slurp(file_of(GETSID, "trigger"));
	right = right && left && !strstr(left, "hist:keys");
	if (!right)
		note("shown: %s left: %s", shown, left);
	free(shown);
	free(left);
	reset(GETSID);
	reset(GETPGID);
	reset(SETPGID);
	return right;
}

/*
 * The text of a reference that cannot be resolved, and all that is allocated for it, is freed once.
 */
static bool reference_freed_twice(void)
{
	static const char *const texts[] = {
		"hist:keys=pid:x=$nosuch",
		"hist:keys=pid:x=sched.sched_waking.$nosuch",
		"hist:keys=pid:vals=$nosuch",
		"hist:keys=pid:x=1:y=$x-$nosuch",
	};

	return fails_for_ever(texts, sizeof(texts) / sizeof(*texts));
}

/* A histogram that failed to be created leaves its name free. */
static bool name_left_behind(void)
{
	bool right = true;

	for (int i = 0; i < 2; i++) {
		/* the variable is not there */
		right = right && command(GETPGID, "hist:name=bad:keys=common_pid:onmax(bogus).save(common_pid)") == -EINVAL;
		right = right && command(GETPGID, "hist:name=bad:keys=pid if nosuch == 1") == -EINVAL;
		right = right && command(GETPGID, "hist:name=bad:keys=pid:sort=nosuch") == -EINVAL;
		/* with other keys than before: a histogram of that name would not match */
		right = right && !command(GETPGID, "hist:name=bad:keys=common_pid");
		right = right && !command(GETSID, "hist:name=bad:keys=common_pid");
		syscall(SYS_getsid, 0);
		syscall(SYS_getpgid, 0);
		right = right && !command(GETPGID, "!hist:name=bad:keys=common_pid");
		right = right && !command(GETSID, "!hist:name=bad:keys=common_pid");
		right = right && !command(GETPGID, "hist:name=bad:keys=pid");
		reset(GETPGID);
	}
	return right;
}

static bool modifiers_of_values(void)
{
	static const char *const values[] = {
		"hitcount.buckets=8", "hitcount.log2", "hitcount.sym", "hitcount.sym-offset", "hitcount.execname",
		"hitcount.syscall", "hitcount.stacktrace", "pid.buckets=8", "pid.log2", "pid.sym", "pid.sym-offset",
		"pid.execname", "pid.syscall", "pid.stacktrace",
	};
	bool right = true;

	command(GETPGID, "hist:keys=pid:size=128");
	syscall(SYS_getpgid, 1);
	for (unsigned int i = 0; i < sizeof(values) / sizeof(*values); i++)
		right = refused(GETPGID, pathf("hist:keys=common_pid:vals=%s", values[i]), -EINVAL,
				"Invalid field modifier") && right;
	reset(GETPGID);
	return right;
}

/* Sizes out of range. */
static bool sizes(void)
{
	static const char *const wrong[] = { "0", "64", "131073", "9223372036854775809", "18446744073709551615" };
	bool right = true;

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		right = refused(GETPGID, pathf("hist:keys=pid:size=%s", wrong[i]), -EINVAL, NULL) && right;
	right = refused(GETPGID, "hist:keys=pid:size=18446744073709551616", -ERANGE, NULL) && right;
	return right;
}

/* One name, and keys of other sizes: each hit would read beyond the other's key. */
static bool key_sizes(void)
{
	static const char text[] = "hist:name=sizes:keys=arg:size=128";
	bool right;

	append(pathf("%s/kprobe_events", kernel_dir()), "p:rhist_bn " SYS_FUNCTION("getpgid") " arg=" SYS_ARGUMENT ":u64");
	append(pathf("%s/kprobe_events", kernel_dir()), "p:rhist_bs " SYS_FUNCTION("getpgid") " arg=\\\"text\":string");
	right = !command("kprobes/rhist_bn", text) &&
		refused("kprobes/rhist_bs", text, -EINVAL,
			"Named hist trigger doesn't match existing named trigger (includes variables)");
	syscall(SYS_getpgid, 1);
	reset("kprobes/rhist_bn");
	reset("kprobes/rhist_bs");
	right = !append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_bn") && right;
	right = !append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_bs") && right;
	return right;
}

/* --- checks of the text */

/* The printed line of a trigger, fed back with a !, removes it. */
static bool fed_back(const char *text)
{
	char *line, *hist = NULL;
	int error = command(GETPGID, text);
	bool right = false;

	line = slurp(file_of(GETPGID, "trigger"));
	if (!error && line) {
		line[strcspn(line, "[\n")] = 0;
		right = !command(GETPGID, pathf("!%s", line));
		hist = slurp(file_of(GETPGID, "hist"));
		right = right && hist && !*hist;
	}
	if (!right)
		note("%s: %s; %s", text, errno_name(error), line ? line : "");
	free(line);
	free(hist);
	reset(GETPGID);
	return right;
}

static bool cpu_twice(void)
{
	char *line;
	bool right = fed_back("hist:keys=common_cpu,pid:vals=common_cpu");

	command(GETPGID, "hist:keys=common_cpu");
	line = slurp(file_of(GETPGID, "trigger"));
	right = right && line && !strncmp(line, "hist:keys=common_cpu:", 21);
	free(line);
	reset(GETPGID);
	return right;
}

static bool widths(void)
{
	char *text;
	bool right = !command(GETPGID, "hist:keys=pid.buckets=10") && !command(GETPGID, "hist:keys=pid.buckets=20") &&
		     command(GETPGID, "hist:keys=pid.buckets=10") == -EEXIST && !command(GETPGID, "hist:keys=pid+1") &&
		     !command(GETPGID, "hist:keys=pid-1") && !command(GETPGID, "hist:keys=pid+2") &&
		     !command(GETPGID, "!hist:keys=pid.buckets=10") && !command(GETPGID, "!hist:keys=pid+1");

	text = slurp(file_of(GETPGID, "trigger"));
	right = right && text && strstr(text, "keys=pid.buckets=20:") && strstr(text, "keys=pid-1:") &&
		strstr(text, "keys=pid+2:") && !strstr(text, "buckets=10:") && !strstr(text, "pid+1:");
	if (!right)
		note("%s", text ? text : "");
	free(text);
	reset(GETPGID);
	return right;
}

static bool division(void)
{
	bool right = true;

	for (unsigned int by = 1; by <= 1000 && right; by = by * 3 + 1) {
		unsigned long quotient, hits, lines = 0;
		char *text, *p;

		right = !command(GETPGID, pathf("hist:keys=pid/%u:size=512", by));
		for (int i = 0; i < 300; i++)
			syscall(SYS_getpgid, i);
		p = text = slurp(file_of(GETPGID, "hist"));
		while (right && (p = strstr(p, "{ pid/"))) {
			/* The number of values below 300 with this quotient. */
			const unsigned long last = 300 - 1;
			unsigned long most;

			right = sscanf(p, "{ pid/%*u: %lu } hitcount: %lu", &quotient, &hits) == 2;
			most = quotient == last / by ? last % by + 1 : by;
			right = right && quotient <= last / by && hits == most;
			if (!right)
				note("by %u: %.60s", by, p);
			lines++;
			p++;
		}
		right = right && lines == (300 - 1) / by + 1;
		free(text);
		reset(GETPGID);
	}
	return right;
}

/* --- pointers of user space */

static bool user_pointers(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *end = map + page;
	const char *const bad[] = {
		NULL, (char *)1, (char *)-1, (char *)0x8000000000000000, (char *)0xffffffffffffff00, map,
		memcpy(end - 3, "rhi", 3),	/* goes on into an unmapped page */
	};
	const char *const texts[] = {
		"hist:keys=common_pid:size=128 if filename.ustring ~ \"rhist*\"",
		"hist:keys=common_type:size=128 if filename ~ \"rhist*\"",
	};
	bool right = true;
	struct totals t = { 0 };

	munmap(end, page);
	for (int i = 0; i < 2; i++) {
		right = !command(CHDIR, texts[i]) && right;
		for (unsigned int j = 0; j < sizeof(bad) / sizeof(*bad); j++)
			syscall(SYS_chdir, bad[j]);
		syscall(SYS_chdir, "rhist no such directory");
		/* The field points to user space, not to the kernel. */
		right = read_totals(file_of(CHDIR, "hist"), &t) && t.hits == !i && right;
		if (!right)
			note("%s: %llu hits", texts[i], t.hits);
		reset(CHDIR);
	}
	/* as a key it is a number */
	right = !command(CHDIR, "hist:keys=filename.hex:size=128") && right;
	for (unsigned int j = 0; j < sizeof(bad) / sizeof(*bad); j++)
		syscall(SYS_chdir, bad[j]);
	right = read_totals(file_of(CHDIR, "hist"), &t) && t.entries == sizeof(bad) / sizeof(*bad) && right;
	reset(CHDIR);
	munmap(map, page);
	return right;
}

/* --- coming and going */

/* Triggers are created and removed at full speed, under hits from every CPU. */
static bool freed_too_early(void)
{
	int times = repeats(20, 60, 2000);
	struct load loads[CPUS];
	int cpus = begin(loads, 64, 0);
	bool right = true;

	for (int i = 0; i < times && right; i++) {
		right = !command(GETPGID, "hist:keys=pid,common_comm:vals=pid:size=128 if pid > 3");
		if (i % 3 == 0)
			right = !command(GETPGID, "hist:name=early:keys=pid:size=128") && right;
		if (i % 2)
			right = !command(GETPGID, "!hist:keys=pid,common_comm:vals=pid if pid > 3") && right;
		reset(GETPGID);
	}
	end(loads, cpus);
	return right;
}

/*
 * An event is deleted while its files are open: the reader gets an error or all of the text, and no
 * poll() sleeps.
 */
static bool reader_outlives_event(void)
{
	bool right = true;

	for (int i = 0; i < 20 && right; i++) {
		static char text[65536];
		struct pollfd p = { .events = POLLIN };
		ssize_t got;
		int trigger;

		append(pathf("%s/kprobe_events", kernel_dir()), "p:rhist_b " SYS_FUNCTION("getpgid") " pid=" SYS_ARGUMENT ":u64");
		right = !command("kprobes/rhist_b", "hist:keys=pid:size=128");
		syscall(SYS_getpgid, 1);
		p.fd = open(file_of("kprobes/rhist_b", "hist"), O_RDONLY | O_CLOEXEC);
		trigger = open(file_of("kprobes/rhist_b", "trigger"), O_RDWR | O_APPEND | O_CLOEXEC);
		if (i % 2)
			got = read(p.fd, text, 10);
		right = right && p.fd >= 0 && trigger >= 0;
		right = !command("kprobes/rhist_b", "!hist:keys=pid") && right;
		right = !append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_b") && right;
		right = poll(&p, 1, 5000) == 1 && right;
		got = read(p.fd, text, sizeof(text) - 1);
		right = (got >= 0 || errno == ENODEV) && right;
		got = read(trigger, text, sizeof(text) - 1);
		right = (got >= 0 || errno == ENODEV) && right;
		right = write(trigger, "hist:keys=pid", 13) < 0 && errno == ENODEV && right;
		close(trigger);
		close(p.fd);
		right = access(file_of("kprobes/rhist_b", "hist"), F_OK) && right;
	}
	return right;
}

/*
 * Unloading of the module while its events have triggers, under hits: it stays with all hits, or
 * goes. First the functions to load and unload it; they return 0 or a negative errno.
 */
static int load(void)
{
	int fd = open(getenv("RHIST_EVENTS"), O_RDONLY | O_CLOEXEC), error = 0;

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		error = -errno;
	close(fd);
	return error;
}

static int unload(void)
{
	for (int i = 0; ; i++) {
		if (!syscall(SYS_delete_module, MODULE, O_NONBLOCK))
			return 0;
		if (i == 50)
			return -errno;
		sleep_ms(100);
	}
}

static bool module_goes(void)
{
	bool right = true;

	for (int i = 0; i < repeats(4, 10, 10) && right; i++) {
		struct order o = { .context = "task", .cpu = 1 % sysconf(_SC_NPROCESSORS_ONLN) };
		struct totals t = { 0 };
		int error;

		right = !command(MODULE "/numbers", "hist:keys=u8:size=512") &&
			!command(MODULE "/strings", "hist:keys=fixed:size=128");
		pthread_create(&o.thread, NULL, obey, &o);
		error = syscall(SYS_delete_module, MODULE, O_NONBLOCK) ? -errno : 0;
		pthread_join(o.thread, NULL);
		if (error) {
			/* it is kept, and so are its hits */
			right = right && error == -EWOULDBLOCK && !o.error &&
				read_totals(file_of(MODULE "/numbers", "hist"), &t) && t.hits == ORDERED;
			reset(MODULE "/numbers");
			reset(MODULE "/strings");
			error = unload();
		}
		right = right && !error && access(file_of(MODULE "/numbers", "trigger"), F_OK) && !load();
		if (!right)
			note("%s, %llu hits", errno_name(error), t.hits);
	}
	return right;
}

/*
 * The module of a file in the tree goes while a process keeps its name: the name leads nowhere, and
 * not to a new module.
 */
static bool file_goes(void)
{
	bool right = true;
	char text[64];

	for (int i = 0; i < 10 && right; i++) {
		const char *name = pathf("%s/" MODULE, tracing_dir());
		int fd = open(name, O_RDONLY | O_CLOEXEC), path = open(name, O_PATH | O_CLOEXEC);
		const char *kept = pathf("/proc/self/fd/%d", path);

		right = fd >= 0 && path >= 0 && read(fd, text, sizeof(text)) > 0 &&
			syscall(SYS_delete_module, MODULE, O_NONBLOCK) && errno == EWOULDBLOCK;
		close(fd);
		right = right && !unload() &&
			open(kept, O_RDONLY) < 0 && errno == ENODEV && open(name, O_RDONLY) < 0 && errno == ENOENT &&
			!load() && open(kept, O_RDONLY) < 0 && errno == ENODEV && !access(name, R_OK);
		if (!right)
			note("round %d: %s", i, errno_name(errno));
		close(path);
	}
	return right;
}

/* --- variables and actions */

/* As many parameters as an event can have fields, and one more. */
static bool too_many_parameters(void)
{
	char event[2048] = "rhist_bp", text[2048] = "hist:keys=pid:w=$v:onmatch(syscalls.sys_enter_getpgid).trace(rhist_bp", *end, *hist;
	bool right;

	for (int i = 0; i < 64; i++) {
		snprintf(event + strlen(event), 32, "%s u64 f%d", i ? ";" : "", i);
		strcat(text, ",$w");
	}
	end = text + strlen(text);
	right = !define(event) && !command(GETPGID, "hist:keys=pid:v=7+pid:size=128");
	strcpy(end, ",$w)");
	right = right && refused(GETSID, text, -EINVAL, NULL);
	strcpy(end, ")");
	if (right && command(GETSID, text)) {
		note("%s: refused", text);
		right = false;
	}
	right = right && !command("synthetic/rhist_bp", "hist:keys=f0:vals=f16,f63:size=128");
	syscall(SYS_getpgid, 5);
	syscall(SYS_getsid, 5);
	hist = slurp(file_of("synthetic/rhist_bp", "hist"));
	right = right && hist && strstr(hist, "{ f0:         12 } hitcount:          1  f16:         12  f63:         12\n");
	if (!right)
		note("as far as: %s.", hist ? hist : "");
	free(hist);
	reset("synthetic/rhist_bp");
	reset(GETSID);
	reset(GETPGID);
	if (define("!rhist_bp")) {
		note("the event is still in use");
		right = false;
	}
	return right;
}

/*
 * The only variable of the trigger in the middle of a chain refers to the first trigger. While hits
 * read all of them, none can be removed before the triggers that use it.
 */
static bool referenced_variable(void)
{
	static const char *const events[] = { GETPGID, GETSID, GETPGID };
	static const char *const texts[] = {
		"hist:keys=pid:rhist_b=common_timestamp:size=128",
		"hist:keys=pid:rhist_w=$rhist_b:size=128",
		"hist:keys=pid:vals=$rhist_w:size=128",
	};
	int rounds = repeats(8, 20, 200);
	struct load loads[CPUS];
	int cpus = begin(loads, 64, 0);
	bool right = true;

	for (int i = 0; i < rounds && right; i++) {
		for (int j = 0; j < 3; j++) {
			right = !command(events[j], texts[j]) && right;
			for (int k = 0; k < j; k++)
				right = command(events[k], pathf("!%s", texts[k])) == -EBUSY && right;
		}
		for (int j = 0; j < 100; j++)
			syscall(SYS_getsid, 1 + j % 64);
		/* A referenced trigger stays; like C, the write returns no error. */
		reset(GETSID);
		for (int j = 2; j >= 0; j--)
			right = !command(events[j], pathf("!%s", texts[j])) && right;
	}
	end(loads, cpus);
	reset(GETPGID);
	reset(GETSID);
	reset(GETPGID);
	return right;
}

/* A pointer of the program in a variable, and from there in a string of a synthetic event. */
static bool user_pointer_in_string(void)
{
	static const char *const bad[] = {
		NULL, (char *)1, (char *)-1, (char *)0x8000000000000000, (char *)0xffffffffffffff00, (char *)0x1000,
	};
	bool right = !define("rhist_bs char s[]") && !define("rhist_bt char s[16]");
	int error[2], taken = 0;
	char *text, *p;

	error[0] = command(CHDIR, "hist:keys=common_pid:p=filename:onmatch(syscalls.sys_enter_chdir).trace(rhist_bs,$p):size=128");
	error[1] = command(CHDIR, "hist:keys=common_cpu:q=filename:onchange($q).trace(rhist_bt,$q):size=128");
	for (int i = 0; i < 2; i++)
		if (error[i] && error[i] != -EINVAL)
			right = false;
	right = !command("synthetic/rhist_bs", "hist:keys=s:size=128") && !command("synthetic/rhist_bt", "hist:keys=s:size=128") && right;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		syscall(SYS_chdir, bad[i]);
	syscall(SYS_chdir, "rhist no such directory");
	for (int i = 0; i < 2; i++) {
		p = text = slurp(file_of(i ? "synthetic/rhist_bt" : "synthetic/rhist_bs", "hist"));
		while (p && (p = strstr(p, "{ s: "))) {
			p += strlen("{ s: ");
			taken++;
			if (strncmp(p, "(fault) ", 8) && strncmp(p, "rhist no such d", 15)) {
				note("%.60s", p);
				right = false;
			}
		}
		free(text);
	}
	note("%s, %s, %d strings", errno_name(error[0]), errno_name(error[1]), taken);
	reset(CHDIR);
	reset("synthetic/rhist_bs");
	reset("synthetic/rhist_bt");
	return !define("!rhist_bs") && !define("!rhist_bt") && right;
}

/*
 * A variable defined by another one of its trigger, which is an expression; that becomes its first
 * operand.
 */
static bool variable_of_expression(void)
{
	static const struct {
		const char *text, *line;
	} shown[] = {
		{ "hist:keys=$x:x=which+who,y=$x,z=$x-who:size=128",
		  "hist:keys=which+who:vals=hitcount:x=which+who,y=which+who,z=which+who-who:sort=hitcount:size=128 " },
		{ "hist:keys=common_pid:x=which+who*2,y=syscalls.sys_enter_getpriority.$x:size=128",
		  "hist:keys=common_pid:vals=hitcount:x=which+who*2,y=which+who*2:sort=hitcount:size=128 " },
	};
	bool right = true;
	char *text;

	for (unsigned int i = 0; i < sizeof(shown) / sizeof(*shown); i++) {
		int error = append(pathf("%s/events/" GETPRIORITY "/trigger", kernel_dir()), shown[i].text);

		truncate_file(pathf("%s/events/" GETPRIORITY "/trigger", kernel_dir()));
		right = !error && !command(GETPRIORITY, shown[i].text) && right;
		text = slurp(file_of(GETPRIORITY, "trigger"));
		if (!text || strncmp(text, shown[i].line, strlen(shown[i].line))) {
			note("C: %s, here: %s", errno_name(error), text);
			right = false;
		}
		free(text);
		/* the line that is shown removes it */
		right = !command(GETPRIORITY, pathf("!%s", shown[i].line)) && right;
	}
	/* the operands are read once, for both */
	right = !command(GETPGID, "hist:keys=common_pid:n=pid:size=128") && right;
	right = !command(GETPRIORITY, "hist:keys=common_pid:x=who-$n,y=$x:size=128") && right;
	right = !command(GETSID, "hist:keys=common_pid:vals=$x,$y:size=128") && right;
	for (int i = 0; i < 3; i++) {
		syscall(SYS_getpgid, 1000);
		syscall(SYS_getpriority, 7, 1000 + 10);
		syscall(SYS_getsid, 0);
	}
	text = slurp(file_of(GETSID, "hist"));
	right = right && text && strstr(text, "hitcount:          3  x:         30  y:         30\n");
	if (!right)
		note("%s", text);
	free(text);
	/* Together with its own operators, that makes four. */
	right = refused(SETPRIORITY, "hist:keys=common_pid:a=which+who+who,b=$a*which-1:size=128", -EINVAL, "Too many subexpressions (3 max)") && right;
	reset(GETSID);
	reset(GETPRIORITY);
	reset(GETPGID);
	return right;
}

/*
 * Triggers that refer to each other in a circle, by the name that two of them share, could not be
 * removed: the last one is refused. In C, a reference belongs to the first trigger of the name, so
 * circles do not occur.
 */
#define FIRST		"hist:keys=common_pid:w=common_timestamp:size=128"
#define NAMED(param)	"hist:name=rhist_n:keys=common_pid:v=$w:size=128:onmatch(syscalls.sys_enter_setpgid).rhist_s(" param ")"
#define CIRCLE_MAX	6

static const struct circle {
	const char *what;
	bool closed;
	struct {
		const char *event, *text;
		bool instance;		/* where C crashes if a name is shared */
	} lines[CIRCLE_MAX];
} circles[] = {
	{ "a name", true, {
		{ GETPGID, FIRST, false },
		{ GETSID, NAMED("$v"), false },
		{ SETPGID, "hist:keys=common_pid:w=$v:size=128", false },
		{ CHDIR, NAMED("$v"), false } } },
	{ "a longer way", true, {
		{ GETPGID, FIRST, false },
		{ GETSID, NAMED("$v"), false },
		{ GETPRIORITY, "hist:keys=common_pid:a=$v:size=128", false },
		{ SETPRIORITY, "hist:keys=common_pid:b=$a:size=128", false },
		{ SETPGID, "hist:keys=common_pid:w=$b:size=128", false },
		{ CHDIR, NAMED("$v"), false } } },
	{ "two names", true, {
		{ GETPGID, FIRST, false },
		{ GETSID, NAMED("$v"), false },
		{ GETPRIORITY, "hist:name=rhist_m:keys=common_pid:w=$v:size=128", false },
		{ SETPGID, "hist:name=rhist_m:keys=common_pid:w=$v:size=128", false },
		{ CHDIR, NAMED("$v"), false } } },
	{ "a field as a parameter", true, {
		{ GETPGID, FIRST, false },
		{ GETSID, NAMED("pid"), false },
		{ SETPGID, "hist:keys=common_pid:synthetic_pid=$v:size=128", false },
		{ CHDIR, NAMED("pid"), false } } },
	{ "two instances", true, {
		{ GETPGID, FIRST, false },
		{ GETSID, NAMED("$v"), false },
		{ GETPGID, FIRST, true },
		{ GETSID, NAMED("$v"), true },
		{ SETPGID, "hist:keys=common_pid:w=$v:size=128", true },
		{ CHDIR, NAMED("$v"), true } } },
	{ "none, but a trigger for a field", false, {
		{ GETPGID, FIRST, false },
		{ GETSID, NAMED("pid"), false },
		{ SETPGID, "hist:keys=common_pid:u=$v:size=128", false },
		{ CHDIR, NAMED("pid"), false } } },
};

static const char *circle_file(const struct circle *circle, int line, const char *dir, const char *name)
{
	return pathf("%s%s/%s", dir, circle->lines[line].instance ? "/instances/rhist_c" : "", name);
}

/* All lines but a last one that is REFUSED are accepted, and can be removed again. */
static bool comes_and_goes(const struct circle *circle, const char *dir, bool refused)
{
	bool right = true, there[CIRCLE_MAX] = {};
	const char *files[CIRCLE_MAX];
	int n = 0, left = 0;

	for (; n < CIRCLE_MAX && circle->lines[n].text; n++) {
		files[n] = strdup(circle_file(circle, n, dir, pathf("events/%s/trigger", circle->lines[n].event)));
		left++;
	}
	for (int i = 0; i < n; i++) {
		int error = append(files[i], circle->lines[i].text);

		there[i] = !error;
		left -= !there[i];
		if (error != (refused && i == n - 1 ? -ELOOP : 0)) {
			note("%s: %s: line %d: %s", dir, circle->what, i + 1, errno_name(error));
			right = false;
		}
	}
	if (refused) {
		struct log_entry e;

		read_log(circle_file(circle, n - 1, dir, "."), &e);
		if (strcmp(e.text, "Histograms of this name would refer to themselves") || e.caret != (int)strlen("hist:")) {
			note("%s: %s: %s, caret %d", dir, circle->what, e.text, e.caret);
			right = false;
		}
		free_log(&e);
	}
	for (int round = 0; round < n && left; round++)
		for (int i = n; i--; )
			if (there[i] && !append(files[i], pathf("!%s", circle->lines[i].text))) {
				there[i] = false;
				left--;
			}
	for (int i = 0; i < n; i++) {
		char *text;

		/* C creates the trigger for a field, but nothing refers to it. */
		if (!strcmp(dir, kernel_dir()))
			truncate_file(files[i]);
		text = slurp(files[i]);
		if (!text || strstr(text, "hist:")) {
			note("%s: %s: left: %s", dir, circle->what, text);
			right = false;
		}
		free(text);
		free((char *)files[i]);
	}
	return right;
}

static bool circles_of_references(void)
{
	const char *instance = strdup(pathf("%s/instances/rhist_c", kernel_dir()));
	bool right = !define("rhist_s u64 v") && !mkdir(instance, 0755);
	int error = 0;

	for (unsigned int i = 0; i < sizeof(circles) / sizeof(*circles); i++) {
		const struct circle *circle = &circles[i];

		if (!circle->lines[CIRCLE_MAX - 1].instance)
			right = comes_and_goes(circle, kernel_dir(), false) && right;
		if (!testing_c())
			right = comes_and_goes(circle, tracing_dir(), circle->closed) && right;
	}
	right = !rmdir(instance) && right;
	free((char *)instance);
	/* C releases it some time after the trigger has been removed. */
	for (int tries = 0; tries < 100 && (error = define("!rhist_s")) == -EBUSY; tries++)
		sleep_ms(5);
	return !error && right;
}

/* A reference looks up the other histogram's key with the key size of that histogram. */
static bool key_sizes_of_references(void)
{
	static const char *const keys[] = { "pid", "common_cpu", "common_comm", "pid,common_cpu", "common_stacktrace" };
	const unsigned int n = sizeof(keys) / sizeof(*keys);
	bool right = true;

	pin(0);
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int j = 0; j < n; j++) {
			struct totals t = { 0 };
			long ignored;
			bool found;

			/*
			 * Skip pairs with the same key, or, with both, numbers that may be equal by
			 * chance; or a key that begins with the other.
			 */
			if (i == j || (i < 2 && j < 2) || (i < 2 && j == 3))
				continue;
			found = !command(GETPGID, pathf("hist:keys=%s:v=pid:size=128", keys[i])) &&
				!command(GETSID, pathf("hist:keys=%s:x=$v:size=128", keys[j]));
			syscall(SYS_getpgid, 0);
			for (int k = 0; k < 10; k++)
				syscall(SYS_getsid, 0);
			ignored = unresolved(GETSID);
			found = found && read_totals(file_of(GETSID, "hist"), &t) && !t.hits && ignored == 10;
			if (!found)
				note("%s in %s: %llu hits, %ld ignored", keys[j], keys[i], t.hits, ignored);
			right = right && found;
			reset(GETSID);
			reset(GETPGID);
		}
	return right;
}

static void *both_calls(void *arg)
{
	struct load *r = arg;

	pin(r->cpu);
	pthread_barrier_wait(&together);
	for (r->fired = 0; r->fired < r->limit; r->fired++) {
		syscall(SYS_getpgid, 1);
		syscall(SYS_getsid, 1);
	}
	return NULL;
}

/*
 * Several CPUs hit one key of two triggers with references. In C, the entry points to the values
 * that the last hit has read through the references. They lie in memory of its CPU, which hits of
 * the other trigger use, too: an alias of a stack becomes a number of the other trigger, and the
 * kernel reads at that address. Here each hit uses the values that it has read itself.
 */
static bool references_of_another_cpu(void)
{
	struct load loads[CPUS];
	struct totals stacks = { 0 }, numbers = { 0 };
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char *text;
	bool right;

	right = !define("rhist_alias u64 d; unsigned long stack[]") && !define("rhist_number u64 n; u64 m");
	right = right && !command(GETPGID, "hist:keys=pid:rs=common_stacktrace,rt=common_timestamp,rn=pid:size=128");
	right = right && !command(GETSID, "hist:keys=pid:sk=$rs,d=common_timestamp-$rt:"
				  "onmatch(syscalls.sys_enter_getpgid).trace(rhist_alias,$d,$sk):size=128");
	right = right && !command(GETSID, "hist:keys=pid:n=$rn,m=7:"
				  "onmatch(syscalls.sys_enter_getpgid).trace(rhist_number,$n,$m):size=128");
	right = right && !command("synthetic/rhist_alias", "hist:keys=stack.stacktrace:size=128");
	right = right && !command("synthetic/rhist_number", "hist:keys=n,m:size=128");
	cpus = cpus < CPUS ? cpus : CPUS;
	pthread_barrier_init(&together, NULL, cpus);
	for (int i = 0; i < cpus && right; i++) {
		loads[i] = (struct load){ .cpu = i, .limit = repeats(5000, 20000, 20000) };
		pthread_create(&loads[i].thread, NULL, both_calls, &loads[i]);
	}
	for (int i = 0; i < cpus && right; i++)
		pthread_join(loads[i].thread, NULL);
	text = slurp(file_of("synthetic/rhist_number", "hist"));
	right = right && read_totals(file_of("synthetic/rhist_alias", "hist"), &stacks) && text && parse_totals(text, &numbers);
	if (!right || stacks.entries != 1 || !stacks.hits || numbers.entries != 1 || !numbers.hits ||
	    !strstr(text, "{ n:          1, m:          7 }")) {
		note("%llu stacks of %llu hits, %llu numbers of %llu hits", stacks.entries, stacks.hits, numbers.entries,
		     numbers.hits);
		right = false;
	}
	free(text);
	reset("synthetic/rhist_alias");
	reset("synthetic/rhist_number");
	reset(GETSID);
	reset(GETPGID);
	return !define("!rhist_alias") && !define("!rhist_number") && right;
}

/* A task that waits for another one on each CPU, which is idle otherwise. Returns their number. */
static int start_waiting(pid_t *pids, int cpus)
{
	int count = 0;

	for (int i = 0; i < cpus; i++) {
		int ends[2];

		if (pipe(ends))
			die("pipe");
		for (int writes = 0; writes < 2; writes++) {
			pid_t pid = fork();
			char byte = 'w';

			if (pid) {
				pids[count++] = pid;
				continue;
			}
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pin(i);
			while ((writes ? write(ends[1], &byte, 1) : read(ends[0], &byte, 1)) == 1)
				if (writes)
					usleep(500);
			_exit(1);
		}
		close(ends[0]);
		close(ends[1]);
	}
	return count;
}

/*
 * Two sets of triggers that trace-cmd sqlhist makes of published queries: for how long, and where,
 * tasks were blocked, and for how long they waited in wait_event(). The idle task is a key of
 * sched_switch on all CPUs, and has references in both sets: as above. C crashes within a minute.
 */
static bool two_published_sets(void)
{
	static const char *const sets[][2] = {
		{ "sched/sched_switch", "hist:keys=prev_pid:rst=prev_state,rts=common_timestamp.usecs,rsk=common_stacktrace" },
		{ "sched/sched_switch", "hist:keys=next_pid:st=$rst,co=next_comm,d=common_timestamp.usecs-$rts,sk=$rsk:"
		  "onmatch(sched.sched_switch).trace(rhist_blocked,$st,$co,$d,$sk)" },
		{ "kprobes/rhist_wait", "hist:keys=common_pid:rp=common_pid,rt=common_timestamp.usecs" },
		{ "sched/sched_switch", "hist:keys=prev_pid:p=$rp,e=common_timestamp.usecs-$rt:"
		  "onmatch(kprobes.rhist_wait).trace(rhist_waited,$p,$e) if prev_state & 3" },
		{ "synthetic/rhist_blocked", "hist:keys=state,stack.stacktrace:vals=delta" },
		{ "synthetic/rhist_waited", "hist:keys=pid" },
	};
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), count;
	char *blocked, *waited;
	pid_t pids[2 * CPUS];
	bool right;

	cpus = cpus < CPUS ? cpus : CPUS;
	right = !define("rhist_blocked s64 state; char comm[16]; u64 delta; unsigned long stack[]") &&
		!define("rhist_waited s32 pid; u64 delta") &&
		!append(pathf("%s/kprobe_events", kernel_dir()), "p:rhist_wait prepare_to_wait_event");
	for (unsigned int i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		right = right && !command(sets[i][0], sets[i][1]);
	count = start_waiting(pids, cpus);
	sleep_ms(repeats(2000, 10000, 60000));
	for (int i = 0; i < count; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	blocked = slurp(file_of("synthetic/rhist_blocked", "hist"));
	waited = slurp(file_of("synthetic/rhist_waited", "hist"));
	/* The stack belongs to a sleeping task, and each reader sees its own number. */
	right = right && blocked && waited && strstr(blocked, "nanosleep");
	for (int i = 0; i < count && right; i += 2)
		right = strstr(waited, pathf("{ pid: %10d }", pids[i]));
	/*
	 * A state has a few bits. A value read by the other trigger would be a number of a task, or
	 * of microseconds.
	 */
	for (char *at = blocked; right && (at = strstr(at, "state:")); at++)
		right = strtoul(at + strlen("state:"), NULL, 10) <= 0x1000;
	if (!right)
		note("blocked: %.2000s\nwaited: %.1000s", blocked ? blocked : "", waited ? waited : "");
	free(blocked);
	free(waited);
	/* Triggers that refer to others are removed first. */
	for (int i = sizeof(sets) / sizeof(*sets) - 1; i >= 0; i--)
		right = !command(sets[i][0], pathf("!%s", sets[i][1])) && right;
	right = !append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_wait") && right;
	return !define("!rhist_blocked") && !define("!rhist_waited") && right;
}

static const struct bug {
	const char *name;
	bool (*absent)(void);
	bool needs_module;
} bugs[] = {
	{ "CVE-2024-26645 element visible before its key", visible_before_its_key, false },
	{ "CVE-2025-21899 name of a histogram that was not made", name_left_behind, false },
	{ "CVE-2023-53093 values with modifiers that cannot be printed", modifiers_of_values, false },
	{ "CVE-2022-48768, CVE-2022-49648 memory lost when a creation fails", creation_leaks, false },
	{ "CVE-2022-49410 double free for a reference that fails", reference_freed_twice, false },
	{ "CVE-2022-50553 more parameters than their array", too_many_parameters, false },
	{ "CVE-2023-53560 referenced variable removed", referenced_variable, false },
	{ "CVE-2022-50255 string behind a pointer of user space", user_pointers, false },
	{ "CVE-2022-50255 pointer of user space in a string of a synthetic event", user_pointer_in_string, false },
	{ "trigger for a field of another event left behind", helper_left_behind, false },
	{ "a line that is shown and names what is ambiguous by now", name_of_two, false },
	{ "keys of two sizes, one with a reference to the other", key_sizes_of_references, false },
	{ "the first operand of an expression for all of it", variable_of_expression, false },
	{ "references in a circle", circles_of_references, false },
	{ "an alias of a stack, and references of another CPU's hit", references_of_another_cpu, false },
	{ "two published sets of sqlhist on one event", two_published_sets, false },
	{ "CVE-2026-68177 module of the event goes", module_goes, true },
	{ "79097812153b trigger freed while hits use it", freed_too_early, false },
	{ "trace-v7.0-2 reader and poller outlive the event", reader_outlives_event, false },
	{ "a name outlives the module of the file", file_goes, true },
	{ "interrupt or NMI meets a slot that is claimed and empty, fifth context", interrupted_insertion, true },
	{ "full map: a slot given back while another CPU looks for it", slot_given_back, false },
	{ "stack in a record deeper than a key", deep_stack, true },
	{ "text behind the end of a record", beyond_the_record, true },
	{ "sort and percentages of moving sums", moving_sums, false },
	{ "clear races with hits", cleared_under_hits, false },
	{ "common_cpucommon_cpu", cpu_twice, false },
	{ "bucket widths, operators and constants are not compared", widths, false },
	{ "keys of two sizes under one name", key_sizes, false },
	{ "division rounds up", division, false },
	{ "size=0 shifts by 64", sizes, false },
};

int main(void)
{
	const char *module = getenv("RHIST_EVENTS");
	bool loaded = module && !access(module, R_OK) && !load();

	reset(GETPGID);
	reset(GETSID);
	reset(SETPGID);
	reset(CHDIR);
	for (unsigned int i = 0; i < sizeof(bugs) / sizeof(*bugs); i++) {
		const struct bug *bug = &bugs[i];
		double began = now();

		if (bug->needs_module && !loaded) {
			skip("the module with the events is not there: make events", "%s", bug->name);
			continue;
		}
		if (testing_c() &&
		    (bug->absent == deep_stack || bug->absent == beyond_the_record || bug->absent == file_goes ||
		     bug->absent == references_of_another_cpu || bug->absent == two_published_sets)) {
			skip("C would go beyond memory", "%s", bug->name);
			continue;
		}
		if (bug->absent == file_goes && access(pathf("%s/" MODULE, tracing_dir()), F_OK)) {
			skip("modules cannot make a file in tracefs", "%s", bug->name);
			continue;
		}
		ok(bug->absent(), "%s", bug->name);
		if (now() - began > 10)
			note("%.0f s", now() - began);
	}
	if (loaded)
		ok(!unload(), "nothing holds the module of the events");
	finish();
}
