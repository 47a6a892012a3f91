/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads and writes the files of a tracing directory. Define _GNU_SOURCE before <stdio.h> is
 * included.
 */
#ifndef TRACING_H
#define TRACING_H

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <regex.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

#define __maybe __attribute__((unused))

/*
 * For the definition of a probe: the function of a system call, an instruction inside of it, and
 * the first argument of the call, which that function gets in the registers of the program.
 */
#ifdef __aarch64__
#define SYS_FUNCTION(name)	"__arm64_sys_" name
#define SYS_INSIDE(name)	SYS_FUNCTION(name) "+8"
#define SYS_ARGUMENT		"+0(%x0)"
#else
#define SYS_FUNCTION(name)	"__x64_sys_" name
#define SYS_INSIDE(name)	SYS_FUNCTION(name) "+9"
#define SYS_ARGUMENT		"+112(%di)"
#endif

/* The kernel's own directory: C's implementation. */
__maybe static const char *kernel_dir(void)
{
	const char *dir = getenv("KERNEL");

	return dir ? dir : "/sys/kernel/tracing";
}

/* The directory under test. */
__maybe static const char *tracing_dir(void)
{
	const char *dir = getenv("TRACING");

	return dir ? dir : "/sys/kernel/tracing/rhist";
}

/* Returns true if the directory under test is the kernel's own. */
__maybe static bool testing_c(void)
{
	return !strcmp(kernel_dir(), tracing_dir());
}

__maybe static bool long_run(void)
{
	const char *set = getenv("LONG");

	return set && *set;
}

/*
 * Returns true for a kernel with sanitizers, which takes seconds to make one of C's maps of the
 * usual size.
 */
__maybe static bool slow_kernel(void)
{
	const char *set = getenv("SLOW");

	return set && *set;
}

/* Number of repetitions: in a short run, on a kernel that looks for faults, and in a long run. */
__maybe static int repeats(int few, int more, int many)
{
	return long_run() ? many : slow_kernel() ? more : few;
}

/* Returns true if this kernel has probes at functions and events, unlike user-mode Linux. */
__maybe static bool have_probes(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/kprobe_events", kernel_dir());
	return !access(path, F_OK);
}

/* Returns true if points that user-mode Linux tests are to be left out. */
__maybe static bool rest_only(void)
{
	return getenv("RHIST_REST") && have_probes();
}

/*
 * Returns true on user-mode Linux, which has one processor, neither probes nor perf, and in which
 * strnlen_user() takes unreadable memory for a negative length.
 */
__maybe static bool user_mode_linux(void)
{
	return !access("/proc/exitcode", F_OK);
}

/* The contexts that rhist_events can fire in. */
__maybe static const char *const contexts[] = { "task", "softirq", "hardirq", "nmi" };

/* Returns how many of them this kernel has. The last one is NMI, which only x86 has. */
__maybe static int contexts_there(void)
{
#ifdef __x86_64__
	return user_mode_linux() ? 3 : 4;
#else
	return 3;
#endif
}

/* Formats into one of a few buffers, so that a call can hold several paths. */
__attribute__((format(printf, 1, 2)))
__maybe static const char *pathf(const char *format, ...)
{
	static __thread char buffers[16][PATH_MAX];
	static __thread unsigned int next;
	char *path = buffers[next++ % 16];
	va_list args;

	va_start(args, format);
	vsnprintf(path, PATH_MAX, format, args);
	va_end(args);
	return path;
}

/* "OK", "EINVAL"... for 0 or a positive or negative errno. */
__maybe static const char *errno_name(int error)
{
	const char *name = error ? strerrorname_np(abs(error)) : "OK";

	return name ? name : "?";
}

/*
 * Returns the whole text of a file, and its length; the caller frees it. NULL and errno if it
 * cannot be read.
 */
__maybe static char *slurp_len(const char *path, size_t *len)
{
	size_t used = 0, size = 1 << 16;
	char *text = malloc(size);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = -1;

	while (fd >= 0 && (got = read(fd, text + used, size - used - 1)) > 0) {
		used += got;
		if (size - used < 4096)
			text = realloc(text, size *= 2);
	}
	if (got < 0) {
		int error = errno;

		if (fd >= 0)
			close(fd);
		free(text);
		errno = error;
		return NULL;
	}
	close(fd);
	text[used] = 0;
	if (len)
		*len = used;
	return text;
}

__maybe static char *slurp(const char *path)
{
	return slurp_len(path, NULL);
}

/* A line in a file of kernel/trace that shows that a bug of C is fixed in this kernel. */
struct mend {
	const char *file, *text;
	enum { UNKNOWN, THERE, MISSING } state;
};

/*
 * Returns true if the running kernel's C has it, by its source. Without a source, it is assumed to
 * be the C that rhist reproduces.
 */
__maybe static bool c_has(struct mend *mend)
{
	const char *source = getenv("RHIST_KERNEL_SOURCE");
	char path[PATH_MAX], *text;

	if (mend->state == UNKNOWN) {
		snprintf(path, sizeof(path), "%s/kernel/trace/%s", source ?: "", mend->file);
		text = source ? slurp(path) : NULL;
		mend->state = !text || strstr(text, mend->text) ? THERE : MISSING;
		free(text);
	}
	return mend->state == THERE;
}

/* Defines a function that returns this. */
#define C_HAS(name, file, text)							\
	__maybe static bool name(void)						\
	{									\
		static struct mend mend = { file, text, UNKNOWN };		\
										\
		return c_has(&mend);						\
	}

/* Filters that end with an operator are refused. */
C_HAS(c_wants_operands, "trace_events_filter.c", "if (N) {")

/* Expressions are printed with the widths of buckets. */
C_HAS(c_prints_widths, "trace_events_hist.c", "\"=%lu\", field->buckets")

/*
 * Helper triggers get keys with modifiers and expressions as they are. Without this, they get the
 * fields of these keys, and read at NULL for a key without a field.
 */
C_HAS(c_names_keys, "trace_events_hist.c", "expr_field_str(key_field")

/*
 * .log2 of 0, and of numbers from 2^63 on, is a number. Without this, C shifts by 64, which UBSAN
 * reports.
 */
C_HAS(c_scales_all, "trace_events_hist.c", "order_base_2(")

/* The name of the task is a field, common_comm. */
C_HAS(c_has_comm, "trace_events_hist.c", "\"common_comm\"")

/* Returns true if a text contains this field, by any of its names. */
__maybe static bool names_comm(const char *text)
{
	static const char *const names[] = { "common_comm", "comm", "COMM" };

	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++)
		for (const char *at = text; (at = strstr(at, names[i])); at++) {
			char after = at[strlen(names[i])];

			if ((at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')) &&
			    !isalnum((unsigned char)after) && after != '_')
				return true;
		}
	return false;
}

/* Events of system calls have the texts of their arguments, in fields such as __filename_val. */
C_HAS(c_reads_texts, "trace_syscalls.c", "__%s_val")

/* Keys have all bytes of a text, also those behind a NUL. Without this, they end there. */
C_HAS(c_compares_all, "trace_events_hist.c", "\t}\n\tmemcpy(compound_key")

/* Stacks have 31 entries. Without this, 16. */
C_HAS(c_walks_far, "trace.h", "HIST_STACKTRACE_DEPTH\t31")

/*
 * common_preempt_count of system calls has the call's value. Without this it is one more, since
 * both the tracepoint and its probe turn preemption off.
 */
C_HAS(c_counts_preemption, "../../include/linux/tracepoint.h", "srcu_fast_notrace")

/* perf can listen to synthetic events. */
C_HAS(c_lets_perf_listen, "trace_events_synth.c", "perf_event_raw_event_synth")

/* hist_debug names the function that reads a field. */
C_HAS(c_names_functions, "trace_events_hist.c", "function: hist_field_%s()")

/* Takes out of rhist's hist_debug the parts that C's lacks. */
__maybe static void as_c_debugs(char *text)
{
	char *at, *end;

	while (text && !c_names_functions() && (at = strstr(text, "      function: "))) {
		end = strchrnul(at, '\n');
		end += *end == '\n';
		memmove(at, end, strlen(end) + 1);
	}
}

/*
 * Returns true if this kernel's C is older than the one that rhist reproduces, as far as the tests
 * know.
 */
__maybe static bool c_is_older(void)
{
	return !c_wants_operands() || !c_prints_widths() || !c_names_keys() || !c_scales_all() || !c_has_comm();
}

/* Returns a bit for each context in which rhist_events fires its event nested. */
__maybe static unsigned int nesting(void)
{
	char *text = slurp("/sys/module/rhist_events/parameters/nesting");
	unsigned int contexts = text ? strtoul(text, NULL, 10) : 0;

	free(text);
	return contexts;
}

/*
 * One open and one write. Returns 0 or a negative errno, of the open as well. A short write is
 * -EIO.
 */
__maybe static int put_len(const char *path, int flags, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags);
	int error = 0;
	ssize_t done;

	if (fd < 0)
		return -errno;
	done = write(fd, data, len);
	if (done < 0)
		error = -errno;
	else if ((size_t)done != len)
		error = -EIO;
	close(fd);
	return error;
}

/* echo -n TEXT >> path */
__maybe static int append(const char *path, const char *text)
{
	return put_len(path, O_APPEND, text, strlen(text));
}

/* The path of a file of an event, in the tree under test. */
__maybe static const char *in_event(const char *event, const char *file)
{
	return pathf("%s/events/%s/%s", tracing_dir(), event, file);
}

/* Loads a module. Returns 0 or a negative errno. */
__maybe static int load_module(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error = 0;

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		error = -errno;
	if (fd >= 0)
		close(fd);
	return error;
}

/* Adds a trigger to an event. If that fails, a test has failed. */
__maybe static void add_trigger(const char *event, const char *text)
{
	int error = append(in_event(event, "trigger"), text);

	if (error)
		ok(false, "%s on %s: %s", text, event, errno_name(error));
}

/* : > path */
__maybe static int truncate_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Returns a trigger as it is, or with a small map on a slow kernel. */
__maybe static const char *sized(const char *trigger)
{
	const char *filter = strstr(trigger, " if ");
	int len = filter ? filter - trigger : (int)strlen(trigger);

	if (!slow_kernel() || !strstr(trigger, "keys=") || strstr(trigger, "size="))
		return trigger;
	return pathf("%.*s:size=128%s", len, trigger, filter ? filter : "");
}

/* Numbers of the first histogram in a hist file. */
struct totals {
	unsigned long long hits, entries, dropped;	/* as printed under Totals */
	unsigned long long lines, sum;			/* entries counted, hitcounts added */
};

__maybe static bool parse_totals(const char *text, struct totals *t)
{
	const char *p = text, *end = strstr(text, "\nTotals:\n");

	memset(t, 0, sizeof(*t));
	if (!end || sscanf(end, "\nTotals:\n Hits: %llu\n Entries: %llu\n Dropped: %llu\n", &t->hits,
			   &t->entries, &t->dropped) != 3)
		return false;
	while ((p = strstr(p, " hitcount: ")) && p < end) {
		p += strlen(" hitcount: ");
		t->sum += strtoull(p, NULL, 10);
		t->lines++;
	}
	return true;
}

__maybe static bool read_totals(const char *path, struct totals *t)
{
	char *text = slurp(path);
	bool found = text && parse_totals(text, t);

	free(text);
	return found;
}

/* The last entry of an error_log. */
struct log_entry {
	unsigned int count;		/* entries in the log */
	char location[160], text[256];
	char *command;			/* NULL if missing */
	int caret;			/* column under the command, or -1 */
};

__maybe static void read_log(const char *dir, struct log_entry *e)
{
	char *log = slurp(pathf("%s/error_log", dir)), *p, *last = NULL, *q;

	memset(e, 0, sizeof(*e));
	e->caret = -1;
	if (!log)
		return;
	for (p = log; (p = strstr(p, ": error: ")); p++) {
		/* the start of its line */
		for (last = p; last > log && last[-1] != '\n'; last--)
			;
		e->count++;
	}
	if (!last) {
		free(log);
		return;
	}
	p = strstr(last, "] ");
	q = p ? strstr(p, ": error: ") : NULL;
	if (p && q) {
		snprintf(e->location, sizeof(e->location), "%.*s", (int)(q - p - 2), p + 2);
		q += strlen(": error: ");
		snprintf(e->text, sizeof(e->text), "%.*s", (int)strcspn(q, "\n"), q);
		if ((p = strstr(q, "\n  Command: "))) {
			/* A command may contain newlines: the caret is in the last line. */
			char *caret;

			p += strlen("\n  Command: ");
			caret = log + strlen(log);
			while (caret > p && caret[-1] != '^')
				caret--;
			if (caret > p) {
				char *line = caret - 1;

				while (line > p && line[-1] == ' ')
					line--;
				e->caret = caret - 1 - line - 11;
				e->command = strndup(p, line > p ? line - 1 - p : 0);
			}
		}
	}
	free(log);
}

__maybe static void free_log(struct log_entry *e)
{
	free(e->command);
	e->command = NULL;
}

/* Removes the bytes from..to of a text. Returns `from`, where the rest now begins. */
__maybe static char *cut(char *from, char *to)
{
	memmove(from, to, strlen(to) + 1);
	return from;
}

/*
 * Keeps one of the names of a CPU field, in lines of triggers as C prints them, or a text with such
 * lines.
 */
__maybe static void name_cpu_once(char *text)
{
	static const char *const doubled[] = { "common_cpucommon_cpu", "common_cpucpu", "common_cpuCPU" };

	for (char *at = text; at && (at = strstr(at, "common_cpu")); at += strlen("common_cpu"))
		for (unsigned int i = 0; i < 3; i++)
			if (!strncmp(at, doubled[i], strlen(doubled[i]))) {
				cut(at + strlen("common_cpu"), at + strlen(doubled[i]));
				break;
			}
}

/* Removes the modifiers behind sort=, which C prints but does not accept. */
__maybe static void sort_by_names(char *text)
{
	for (char *at = text; at && (at = strstr(at, ":sort=")); ) {
		at += strlen(":sort=");
		while (*at && !strchr(": \n", *at)) {
			char *name_end = at + strcspn(at, ".,: \n"), *end = at + strcspn(at, ",: \n");
			size_t down = strlen(".descending");

			if (end - name_end >= (ptrdiff_t)down && !strncmp(end - down, ".descending", down))
				end -= down;
			at = cut(name_end, end);
			at += strcspn(at, ",: \n");
			at += *at == ',';
		}
	}
}

/* Removes known differences from trigger lines in a text of C's. */
__maybe static void without_differences(char *text)
{
	name_cpu_once(text);
	sort_by_names(text);
}

/* Takes the times off the entries of an error_log. */
__maybe static void without_times(char *log)
{
	for (char *line = log; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (*line == '[' && strspn(line + 1, " 0123456789.") == strcspn(line + 1, "]") && strstr(line, "] "))
			cut(line, strstr(line, "] ") + 2);
	}
}

/* Returns a text in a form that fits into one line; the caller frees it. */
__maybe static char *escaped(const char *bytes, size_t len)
{
	char *line = malloc(4 * len + 1), *to = line;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = bytes[i];

		if (c < ' ' || c > '~' || c == '\\' || c == '#')
			to += sprintf(to, "\\x%02x", c);
		else
			*to++ = c;
	}
	*to = 0;
	return line;
}

/* Replaces each \xNN in a line by that byte, in place. Returns the length. */
__maybe static size_t unescape(char *line)
{
	char *to = line;
	unsigned int byte;

	for (const char *from = line; *from; to++) {
		bool hex = sscanf(from, "\\x%2x", &byte) == 1;

		*to = hex ? (char)byte : *from;
		from += hex ? 4 : 1;
	}
	*to = 0;
	return to - line;
}

static int kernel_log = -1;
static regex_t kernel_fault;

/* Starts the search for reports of the kernel: see kernel_report(). */
__maybe static void open_kernel_log(void)
{
	const char *list = getenv("FAULTS");
	char line[200], expressions[8192] = "";
	FILE *file;

	/* `run` names the list; by hand, in the checkout, it is at its own place. */
	list = list ? list : "scripts/kernel-faults";
	file = fopen(list, "r");
	if (!file)
		die("%s: %s", list, strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (*line == '#')
			continue;
		if (strlen(expressions) + strlen(line) + 2 > sizeof(expressions))
			die("%s: too long", list);
		if (*expressions)
			strcat(expressions, "|");
		strcat(expressions, line);
	}
	fclose(file);
	if (regcomp(&kernel_fault, expressions, REG_EXTENDED | REG_NOSUB))
		die("%s: no regular expressions", list);
	kernel_log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (kernel_log < 0 || lseek(kernel_log, 0, SEEK_END) < 0)
		die("/dev/kmsg: %s", strerror(errno));
}

/* Returns the first fault in the kernel's log since the last call; the caller frees it. */
__maybe static char *kernel_report(void)
{
	char record[8192], *message, *found = NULL;
	ssize_t len;

	while ((len = read(kernel_log, record, sizeof(record) - 1)) > 0 || (len < 0 && errno == EPIPE)) {
		record[len > 0 ? len : 0] = 0;
		message = strchr(record, ';');
		if (!found && message && !regexec(&kernel_fault, message + 1, 0, NULL, 0))
			found = strdup(record);
	}
	return found;
}

/* Prints the first line in which two texts differ. */
__maybe static void note_difference(const char *expected, const char *got)
{
	while (*expected && *got) {
		size_t e = strcspn(expected, "\n"), g = strcspn(got, "\n");

		if (e != g || memcmp(expected, got, e))
			break;
		expected += e + !!expected[e];
		got += g + !!got[g];
	}
	note("C:    %.*s", (int)strcspn(expected, "\n"), expected);
	note("ours: %.*s", (int)strcspn(got, "\n"), got);
}

__maybe static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		perror("sched_setaffinity");
}

__maybe static void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

__maybe static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/*
 * A number in hist_stats about the first histogram of an event that grows or loses entries: scanned
 * by `format` from the text `from` on. -1 without it.
 */
__maybe static long stat_of(const char *event, const char *from, const char *format)
{
	char *text = slurp(pathf("%s/hist_stats", tracing_dir())), *at = text, name[128];
	long number = -1;

	snprintf(name, sizeof(name), "%s", event);
	*strchrnul(name, '/') = ':';
	while (at && number < 0 && (at = strstr(at, name))) {
		char *line = strndup(at, strcspn(at, "\n")), *found = strstr(line, from);

		if (found)
			sscanf(found, format, &number);
		free(line);
		at++;
	}
	free(text);
	return number;
}

/* Places that keys find without a step of the worker, and entries that have expired. */
#define AHEAD "room:", "room: %*d of %*d places, %ld "
#define EXPIRED "expired", "expired %ld "

/* Waits until such a number is at least `least`. Returns false if it is not, for a long time. */
__maybe static bool await_stat(const char *event, const char *from, const char *format, long least)
{
	double until = now() + (slow_kernel() ? 120 : 60);

	while (stat_of(event, from, format) < least && now() < until)
		sleep_ms(10);
	return stat_of(event, from, format) >= least;
}

#endif
