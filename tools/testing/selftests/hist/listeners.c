// SPDX-License-Identifier: GPL-2.0
/*
 * What an action passes to a synthetic event gets to all who listen: traces with filters and without, in the top
 * directory and in another instance, perf, histograms of the kernel and of rhist.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "tracing.h"

#define FIRST "events/syscalls/sys_enter_getsid/trigger"
#define SECOND "events/task/task_rename/trigger"
#define HEARD "events/synthetic/rhist_heard"
#define INSTANCE "instances/rhist_x"
#define HIST "hist:keys=comm:vals=number:size=128"
#define HITS 200
#define NAME "rhist-%u"	/* hit i, i % 5 */
#define FILTER "comm == \"rhist-3\""
#define FILTERED 40	/* that pass it */
#define PAGES 64

#define must(condition) do { if (!(condition)) die("line %d: %s", __LINE__, #condition); } while (0)

static int define(const char *text)
{
	return append(pathf("%s/synthetic_events", kernel_dir()), text);
}

/* Hit i passes on a number of the first event, less a constant, and a name of the second. */
static unsigned long number(unsigned int i)
{
	return 1000 + i;
}

static void happen(void)
{
	char name[16];

	for (unsigned int i = 0; i < HITS; i++) {
		syscall(SYS_getsid, number(i) + 7);
		snprintf(name, sizeof(name), NAME, i % 5);
		prctl(PR_SET_NAME, name);
	}
}

/* --- perf */

struct perf {
	int fd;
	struct perf_event_mmap_page *page;
};

/* User-mode Linux has no perf. */
static bool have_perf(void)
{
	return !access("/proc/sys/kernel/perf_event_paranoid", F_OK);
}

/* All records of this process, or those that pass the filter. */
static struct perf perf_open(const char *filter)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .sample_type = PERF_SAMPLE_RAW, .sample_period = 1,
	};
	char *id = slurp(pathf("%s/" HEARD "/id", kernel_dir()));
	struct perf perf = { .fd = -1 };

	attr.config = id ? atoi(id) : 0;
	free(id);
	perf.fd = syscall(__NR_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (perf.fd < 0 || (filter && ioctl(perf.fd, PERF_EVENT_IOC_SET_FILTER, filter)))
		die("perf listens: %s", errno_name(-errno));
	perf.page = mmap(NULL, (1 + PAGES) * sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, perf.fd, 0);
	if (perf.page == MAP_FAILED)
		die("perf has a buffer: %s", errno_name(-errno));
	return perf;
}

/* How many of the records are right, which are all from the first on; stops at one that is not. */
static unsigned int perf_read(struct perf *perf, bool filtered)
{
	struct {
		struct perf_event_header header;
		uint32_t size;
		char raw[];
	} *record;
	/* The common fields have 8 bytes, and so has each number; each string has 256. */
	struct {
		uint64_t common, number, pid;
		char comm[256];
		uint32_t text;
	} *fields;
	const char *data = (const char *)perf->page + sysconf(_SC_PAGESIZE);
	unsigned int n = 0, i = 0;
	char name[16];
	uint64_t at = 0, head = __atomic_load_n(&perf->page->data_head, __ATOMIC_ACQUIRE);

	for (; at < head; at += record->header.size, n++, i++) {
		record = (void *)(data + at);
		fields = (void *)record->raw;
		while (filtered && i % 5 != 3)
			i++;
		snprintf(name, sizeof(name), NAME, i % 5);
		if (record->header.type != PERF_RECORD_SAMPLE || fields->number != number(i) || fields->pid != (uint64_t)getpid() ||
		    strcmp(record->raw + (fields->text & 0xffff), name))
			break;
	}
	munmap(perf->page, (1 + PAGES) * sysconf(_SC_PAGESIZE));
	close(perf->fd);
	return n;
}

/* --- traces */

/* How many lines of a trace are right, each the next one; stops at one that is not. */
static unsigned int trace_read(const char *dir, bool filtered)
{
	char *trace = slurp(pathf("%s/trace", dir)), *p = trace, expected[128];
	unsigned int n = 0, i = 0;

	for (; p && (p = strstr(p, ": rhist_heard: ")); n++, i++) {
		p += strlen(": rhist_heard: ");
		while (filtered && i % 5 != 3)
			i++;
		snprintf(expected, sizeof(expected), "number=%lu pid=%d comm=" NAME " text=" NAME " stack=", number(i), getpid(),
			 i % 5, i % 5);
		if (strncmp(p, expected, strlen(expected))) {
			note("%.*s instead of %s", (int)strcspn(p, "\n"), p, expected);
			break;
		}
	}
	free(trace);
	return n;
}

static void listen(const char *dir, const char *filter)
{
	must(!truncate_file(pathf("%s/trace", dir)));
	must(!append(pathf("%s/" HEARD "/filter", dir), filter));
	must(!append(pathf("%s/" HEARD "/enable", dir), "1"));
}

static void stop_listening(const char *dir)
{
	append(pathf("%s/" HEARD "/enable", dir), "0");
	append(pathf("%s/" HEARD "/filter", dir), "0");
	truncate_file(pathf("%s/trace", dir));
}

/* --- histograms */

/*
 * Whether a histogram has all that happened. The kernel's has more than one entry of a name, because it takes the bytes
 * behind the end of a string into the key.
 */
static bool counted(const char *dir)
{
	char *text = slurp(pathf("%s/" HEARD "/hist", dir));
	unsigned long hits[5] = { 0 }, sums[5] = { 0 }, n, sum;
	bool right = text != NULL;
	unsigned int k;

	for (char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (sscanf(line, "{ comm: " NAME " } hitcount: %lu number: %lu", &k, &n, &sum) == 3 && k < 5) {
			hits[k] += n;
			sums[k] += sum;
		}
	}
	for (k = 0; k < 5; k++) {
		for (unsigned int i = k; i < HITS; i += 5)
			sums[k] -= number(i);
		right = right && hits[k] == HITS / 5 && !sums[k];
	}
	if (!right)
		note("%s", text ? text : errno_name(-errno));
	free(text);
	return right;
}

int main(void)
{
	char top[PATH_MAX], kernels[PATH_MAX], ours[PATH_MAX];
	const char *dirs[] = { kernel_dir(), tracing_dir(), kernels, ours };
	static const char *const names[] = {
		"the kernel's histogram", "rhist's histogram", "the kernel's histogram in an instance",
		"rhist's histogram in an instance",
	};
	struct perf all, some;

	/* With C as the one tested, both are the kernel's. */
	snprintf(top, sizeof(top), "%s", kernel_dir());
	snprintf(kernels, sizeof(kernels), "%s/" INSTANCE, kernel_dir());
	snprintf(ours, sizeof(ours), "%s/" INSTANCE, tracing_dir());
	must(!mkdir(kernels, 0755));
	must(!define("rhist_heard u64 number; pid_t pid; char comm[16]; char text[]; long stack[]"));

	must(!append(pathf("%s/" FIRST, tracing_dir()), "hist:keys=common_pid:first=pid:st=common_stacktrace:size=128"));
	must(!append(pathf("%s/" SECOND, tracing_dir()),
		     "hist:keys=common_pid:number=$first-7,stack=$st:"
		     "onmatch(syscalls.sys_enter_getsid).trace(rhist_heard,$number,pid,newcomm,newcomm,$stack):size=128"));
	happen();
	ok(!trace_read(top, false), "nobody listens, and nothing is recorded");

	listen(top, "0");
	listen(kernels, FILTER);
	for (unsigned int i = 0; i < (testing_c() ? 1 : 2); i++) {
		must(!append(pathf("%s/" HEARD "/trigger", dirs[i]), HIST));
		must(!append(pathf("%s/" HEARD "/trigger", dirs[i + 2]), HIST));
	}
	if (have_perf()) {
		all = perf_open(NULL);
		some = perf_open(FILTER);
	}
	happen();
	if (have_perf()) {
		ok(perf_read(&all, false) == HITS, "perf has all records");
		ok(perf_read(&some, true) == FILTERED, "perf with a filter has those that pass");
	} else {
		skip("no perf", "perf has all records");
		skip("no perf", "perf with a filter has those that pass");
	}
	ok(trace_read(top, false) == HITS, "the trace has all records");
	ok(trace_read(kernels, true) == FILTERED, "that of an instance has those that pass its filter");
	for (unsigned int i = 0; i < 4; i++) {
		if (testing_c() && i % 2)
			skip("C is tested", "%s", names[i]);
		else
			ok(counted(dirs[i]), "%s has counted all", names[i]);
	}

	for (unsigned int i = 0; i < 4; i++)
		truncate_file(pathf("%s/" HEARD "/trigger", dirs[i]));
	stop_listening(top);
	stop_listening(kernels);
	truncate_file(pathf("%s/" SECOND, tracing_dir()));
	truncate_file(pathf("%s/" FIRST, tracing_dir()));
	ok(!define("!rhist_heard") && !rmdir(kernels), "in the end the event and the instance can be removed");
	finish();
}
