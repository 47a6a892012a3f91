// SPDX-License-Identifier: GPL-2.0
/*
 * A synthetic event that an action fires reaches all listeners: traces with filters and without, in
 * the top directory and in another instance, perf, histograms of the kernel and of rhist. So do
 * stacks; all listeners get as many frames as the record holds.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "../../events/values.h"
#include "events.h"

#define FIRST "events/syscalls/sys_enter_getsid/trigger"
#define SECOND "events/task/task_rename/trigger"
#define HEARD "events/synthetic/rhist_heard"
#define INSTANCE "instances/rhist_x"
/* The kernel's may have an entry for each hit: see counted(). */
#define HIST "hist:keys=comm:vals=number:size=256"
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

/* Hit i passes on a number of the first event, minus a constant, and a name of the second. */
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

/* User-mode Linux lacks perf, and perf on older kernels lacks synthetic events. */
static bool have_perf(void)
{
	return !access("/proc/sys/kernel/perf_event_paranoid", F_OK) && c_lets_perf_listen();
}

/* Opens perf for this process: all records, or only the ones that pass the filter. */
static struct perf perf_open(const char *event, const char *filter)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .sample_type = PERF_SAMPLE_RAW, .sample_period = 1,
	};
	char *id = slurp(pathf("%s/%s/id", kernel_dir(), event));
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

struct sample {
	struct perf_event_header header;
	uint32_t size;
	char raw[];
};

static void perf_close(struct perf *perf)
{
	munmap(perf->page, (1 + PAGES) * sysconf(_SC_PAGESIZE));
	close(perf->fd);
}

/* Counts the right records, from the first on; stops at a wrong one. */
static unsigned int perf_read(struct perf *perf, bool filtered)
{
	struct sample *record;
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
	perf_close(perf);
	return n;
}

/* --- traces */

/* Counts the right lines of a trace, from the first on; stops at a wrong one. */
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
 * Returns true if a histogram has counted everything. The kernel's has more than one entry of a
 * name, because its key includes the bytes behind the end of a string.
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

/* --- stacks */

#define MODULE "rhist_events"
#define STACKS "events/" MODULE "/stacks/trigger"
#define STRINGS "events/" MODULE "/strings/trigger"
#define TEXT "events/synthetic/rhist_text/trigger"
#define DEEP "events/synthetic/rhist_deep"
#define DEEP_HIST "hist:keys=stack.stacktrace:size=128"
/* Frames that the kernel copies to the record of a synthetic event. */
#define MOST (c_walks_far() ? 30u : 15u)
#define TIMES 8

/*
 * Returns true if a record has a stack of so many frames, limited by its field and by the stored
 * length.
 */
static bool is_deep(const char *raw, size_t size, unsigned int frames)
{
	/* Each field has 8 bytes; for a stack they hold its offset and length. */
	struct {
		uint64_t common, number;
		uint16_t at, len;
	} fields;
	uint64_t stack[1 + 30];

	memcpy(&fields, raw, sizeof(fields));
	if (fields.len != (1 + frames) * sizeof(*stack) || (size_t)fields.at + fields.len > size) {
		note("a stack of %u frames has %u bytes", frames, fields.len);
		return false;
	}
	memcpy(stack, raw + fields.at, fields.len);
	if (stack[0] != frames)
		note("a stack of %u frames has %llu", frames, (unsigned long long)stack[0]);
	for (unsigned int i = 1; i <= frames; i++)
		if (!stack[i])
			return false;
	return stack[0] == frames;
}

static unsigned int deep_in_perf(struct perf *perf, unsigned int frames)
{
	const char *data = (const char *)perf->page + sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&perf->page->data_head, __ATOMIC_ACQUIRE);
	const struct sample *record;
	unsigned int n = 0;

	for (uint64_t at = 0; at < head; at += record->header.size) {
		record = (void *)(data + at);
		n += record->header.type == PERF_RECORD_SAMPLE && is_deep(record->raw, record->size, frames);
	}
	perf_close(perf);
	return n;
}

/* The records of the first page of CPU 0, as libtraceevent reads them. */
static unsigned int deep_in_ring_buffer(unsigned int frames)
{
	static char page[65536];
	int fd = open(pathf("%s/per_cpu/cpu0/trace_pipe_raw", kernel_dir()), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t got = read(fd, page, sizeof(page)), end = got;
	unsigned int n = 0;
	uint64_t commit;

	close(fd);
	if (got < 16)
		return 0;
	memcpy(&commit, page + 8, sizeof(commit));
	commit &= 0xfffff;
	if (end > (ssize_t)(16 + commit))
		end = 16 + commit;
	for (ssize_t at = 16; at + 4 <= end; ) {
		uint32_t head, len;

		memcpy(&head, page + at, sizeof(head));
		at += 4;
		switch (head % 32) {
		case 29:
			memcpy(&len, page + at, sizeof(len));
			at += len;
			break;
		case 30 ... 31:
			at += 4;
			break;
		case 0:
			memcpy(&len, page + at, sizeof(len));
			n += is_deep(page + at + 4, len - 4, frames);
			at += len;
			break;
		default:
			len = head % 32 * 4;
			n += is_deep(page + at, len, frames);
			at += len;
		}
	}
	return n;
}

/*
 * Returns true if a histogram has one entry with so many frames. The first frame is in the line of
 * the entry. A frame of a function has a name; a word of uninitialized memory would not.
 */
static bool one_stack(const char *dir, unsigned int frames)
{
	char *text = slurp(pathf("%s/" DEEP "/hist", dir));
	struct totals t = { 0 };
	unsigned int lines = 0;
	bool right;

	for (char *p = text; p && (p = strstr(p, "         ")); p += strspn(p, " "))
		lines++;
	/* and blanks precede the number of hits */
	right = text && parse_totals(text, &t) && t.hits == TIMES && t.entries == 1 && lines == frames + 1;
	if (!right)
		note("%s: %llu hits, %llu entries, %llu frames in all", dir, t.hits, t.entries, lines - t.entries);
	free(text);
	return right;
}

/*
 * Fires a stack, several times. Before each, an event with another text leaves its bytes in the
 * place where the record is made.
 */
static void happen_deep(unsigned int frames)
{
	for (unsigned int i = 0; i < TIMES; i++) {
		must(!append("/dev/" MODULE, pathf("strings task 0 %u 1 1", 7 + 10 * i)));
		must(!append("/dev/" MODULE, pathf("stacks task 0 %u 1 1", RHIST_DEEP + frames)));
	}
}

static void deep_stacks(void)
{
	static const unsigned int depths[] = { 1, 14, 15, 16, 17, 29, 30, 31, 32, 100 };
	bool right[4] = { true, true, true, true }, perf_there = have_perf();
	char *text;

	pin(0);
	must(!define("rhist_deep u64 number; long[] stack") && !define("rhist_text u64 number; char text[]"));
	must(!append(pathf("%s/" TEXT, kernel_dir()), "hist:keys=number:size=128"));
	must(!append(pathf("%s/" TEXT, tracing_dir()), "hist:keys=text:size=128"));
	must(!append(pathf("%s/" STRINGS, tracing_dir()),
		     "hist:keys=common_pid:n=common_timestamp:s=dynamic:onmatch(" MODULE ".strings).trace(rhist_text,$n,$s):size=128"));
	must(!append(pathf("%s/" STACKS, tracing_dir()),
		     "hist:keys=k:n=k:st=stack:onmatch(" MODULE ".stacks).trace(rhist_deep,$n,$st):size=128"));
	for (unsigned int i = 0; i < sizeof(depths) / sizeof(*depths); i++) {
		unsigned int frames = depths[i] < MOST ? depths[i] : MOST, got;
		struct perf perf;

		must(!append(pathf("%s/" DEEP "/trigger", kernel_dir()), DEEP_HIST));
		must(!append(pathf("%s/" DEEP "/trigger", tracing_dir()), DEEP_HIST));
		if (perf_there)
			perf = perf_open(DEEP, NULL);
		happen_deep(depths[i]);
		right[0] &= one_stack(kernel_dir(), frames);
		right[1] &= one_stack(tracing_dir(), frames);
		if (perf_there) {
			got = deep_in_perf(&perf, frames);
			if (got != TIMES)
				note("perf: %u of a stack of %u frames", got, depths[i]);
			right[2] &= got == TIMES;
		}
		truncate_file(pathf("%s/" DEEP "/trigger", tracing_dir()));
		truncate_file(pathf("%s/" DEEP "/trigger", kernel_dir()));
		must(!truncate_file(pathf("%s/trace", kernel_dir())));
		must(!append(pathf("%s/" DEEP "/enable", kernel_dir()), "1"));
		happen_deep(depths[i]);
		append(pathf("%s/" DEEP "/enable", kernel_dir()), "0");
		got = deep_in_ring_buffer(frames);
		if (got != TIMES)
			note("ring buffer: %u of a stack of %u frames", got, depths[i]);
		right[3] &= got == TIMES;
	}
	ok(right[0], "stacks: the kernel's histogram has all frames that there are, and no other");
	ok(right[1], "stacks: rhist's histogram, too");
	if (perf_there)
		ok(right[2], "stacks: perf's records have as many as they say");
	else
		skip("no perf", "stacks: perf's records have as many as they say");
	ok(right[3], "stacks: those of the ring buffer, too");

	/* The kernel does not store the length of an empty stack. */
	must(!append(pathf("%s/" DEEP "/trigger", tracing_dir()), "hist:keys=number:size=128"));
	happen_deep(0);
	text = slurp(pathf("%s/hist_stats", tracing_dir()));
	ok(text && strstr(text, pathf(" %u missed", TIMES)), "stacks: an event without any is missed");
	free(text);
	truncate_file(pathf("%s/" DEEP "/trigger", tracing_dir()));
	truncate_file(pathf("%s/" STACKS, tracing_dir()));
	truncate_file(pathf("%s/" STRINGS, tracing_dir()));
	truncate_file(pathf("%s/" TEXT, tracing_dir()));
	truncate_file(pathf("%s/" TEXT, kernel_dir()));
	must(!truncate_file(pathf("%s/trace", kernel_dir())));
	ok(!define("!rhist_deep") && !define("!rhist_text"), "stacks: the events can be removed");
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

	/* If C is under test, both are the kernel's. */
	snprintf(top, sizeof(top), "%s", kernel_dir());
	snprintf(kernels, sizeof(kernels), "%s/" INSTANCE, kernel_dir());
	snprintf(ours, sizeof(ours), "%s/" INSTANCE, tracing_dir());
	must(!mkdir(kernels, 0755));
	/* Large enough for all records, however small an earlier test has made the buffer. */
	must(!append(pathf("%s/buffer_size_kb", top), "1408"));
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
		all = perf_open(HEARD, NULL);
		some = perf_open(HEARD, FILTER);
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

	load_events();
	if (testing_c()) {
		skip("C's variables have no stack of a record", "stacks");
	} else if (event_source < 0) {
		skip("the module with the events is not there: make events", "stacks");
	} else {
		deep_stacks();
		unload_events();
	}
	finish();
}
