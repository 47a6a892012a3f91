// SPDX-License-Identifier: GPL-2.0
/*
 * A `hist` file with the largest number of rows: the time to read and to poll it, the memory
 * needed; its reader can be killed, and does not block removals.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#include "tracing.h"

#define PLAIN "syscalls/sys_enter_getpriority"
#define NAMED "syscalls/sys_enter_setpriority"

static unsigned int rows = 131072;

static const char *file_of(const char *event, const char *name)
{
	return pathf("%s/events/%s/%s", tracing_dir(), event, name);
}

/*
 * Makes an entry for each of n calls. Their first argument is invalid, so that no task is affected;
 * it serves as the number of a system call.
 */
static void fill(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		syscall(SYS_getpriority, 3 + i % 300, i);
		syscall(SYS_setpriority, 3 + i % 300, i, 0);
	}
}

static int add(const char *event, const char *text)
{
	return append(file_of(event, "trigger"), pathf("%s:size=%u", text, rows));
}

static char *text;
static size_t text_len;

/* Returns how many seconds it takes to read a file in one go. */
static double reading(const char *path, double unused __maybe)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	double began = now();
	size_t size = 64 << 20;
	ssize_t got;

	text = text ?: malloc(size);
	for (text_len = 0; (got = read(fd, text + text_len, size - text_len)) > 0; text_len += got)
		;
	close(fd);
	return got ? -1 : now() - began;
}

/* The best of some attempts: other programs may run, too. */
static double best(double (*of)(const char *, double), const char *path, double argument)
{
	double least = -1;

	for (int i = 0; i < 3; i++) {
		double took = of(path, argument);

		if (took >= 0 && (least < 0 || took < least))
			least = took;
	}
	return least;
}

/* Returns how many kB the kernel has allocated. */
static long allocated(void)
{
	static const char *const ways[] = { "\nSlab: %ld", "\nVmallocUsed: %ld" };
	char *info = slurp("/proc/meminfo");
	long sum = 0, kb;

	for (int i = 0; i < 2; i++) {
		char *at = info ? memmem(info, strlen(info), ways[i], strcspn(ways[i], ":")) : NULL;

		if (at && sscanf(at, ways[i], &kb) == 1)
			sum += kb;
	}
	free(info);
	return sum;
}

/*
 * Returns how many more kB the kernel has allocated while the rest of a file is read after its
 * first byte; -1 if it cannot be read.
 */
static long reading_on(int fd)
{
	long before = allocated(), most = 0, more;
	char part[30000];
	ssize_t got;

	for (int i = 0; (got = read(fd, part, sizeof(part))) > 0; i++) {
		if (i % 16)
			continue;
		more = allocated() - before;
		most = more > most ? more : most;
	}
	return got ? -1 : most;
}

/*
 * Puts the header of hist_jsonl that fd has read into the whole text of another reader. It has the
 * time of the first read, of more digits or fewer.
 */
static bool take_header(int fd, char *whole, size_t *len)
{
	char header[4096];
	ssize_t got = pread(fd, header, sizeof(header), 1);
	char *old = memchr(whole, '\n', *len), *end = got > 0 ? memchr(header, '\n', got) : NULL;
	size_t more = end ? end - header : 0, rest = old ? whole + *len - old : 0;

	if (!old || !end)
		return false;
	memmove(whole + 1 + more, old, rest);
	memcpy(whole + 1, header, more);
	*len = 1 + more + rest;
	return true;
}

/* The parts of a file add up to its whole text, at whatever offset reading starts. */
static bool parts(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *whole, part[100000];
	bool right = reading(path, 0) >= 0;
	size_t at = 0, len = text_len;
	ssize_t got;

	whole = memcpy(malloc(len + 4096), text, len);
	for (unsigned int i = 0; right && (got = read(fd, part, 1 + i * 7919 % sizeof(part))); i++) {
		right = got > 0 && at + got <= len && !memcmp(part, whole + at, got);
		at += got;
		if (i == 0 && *whole == '{')
			right = take_header(fd, whole, &len) && right;
	}
	right = right && at == len && read(fd, part, 1) == 0;
	for (unsigned int i = 1; right && i < 6; i++) {
		/* forwards and backwards */
		at = len / 6 * (i * 5 % 6);
		got = pread(fd, part, sizeof(part), at);
		right = got > 0 && !memcmp(part, whole + at, got);
	}
	right = right && pread(fd, part, sizeof(part), len) == 0 && pread(fd, part, sizeof(part), len - 1) == 1;
	if (!right)
		note("at %zu of %zu", at, len);
	close(fd);
	free(whole);
	return right;
}

/* How many seconds a reader lives after a signal that ends it. */
static double killed_after(const char *path, double delay)
{
	struct itimerval timer = { .it_value = { .tv_sec = delay, .tv_usec = (long)(delay * 1e6) % 1000000 } };
	double began = now();
	int status;
	pid_t pid = fork();

	if (!pid) {
		setitimer(ITIMER_REAL, &timer, NULL);
		reading(path, 0);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? now() - began - delay : -1;
}

/* Calls of poll() that find nothing new, and one after a hit. */
static bool polling(const char *path, double limit)
{
	struct pollfd p = { .fd = open(path, O_RDONLY | O_CLOEXEC), .events = POLLIN | POLLPRI };
	bool right = poll(&p, 1, 0) == 1;
	double took;

	while (read(p.fd, text, 64 << 20) > 0)
		;
	right = right && poll(&p, 1, 0) == 0;
	took = now();
	for (int i = 0; i < 1000; i++)
		right = poll(&p, 1, 0) == 0 && right;
	took = now() - took;
	syscall(SYS_getpriority, 3, 0);
	right = poll(&p, 1, 0) == 1 && (p.revents & POLLIN) && right;
	note("1000 calls without a hit: %.3f s", took);
	close(p.fd);
	return right && took < limit;
}

static volatile bool at_work, done;

static void *reader(void *path)
{
	size_t size = 64 << 20;
	char *mine = malloc(size);

	while (!done) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		at_work = true;
		if (read(fd, mine, size) < 0)
			at_work = true;
		close(fd);
	}
	free(mine);
	return NULL;
}

/*
 * A histogram is read in an instance: its trigger can be removed, and at once everything that it
 * used can be removed and used again.
 */
static bool nothing_held(void)
{
	const char *instance = strdup(pathf("%s/instances/rhist_l", tracing_dir())), *events = pathf("%s/events", instance);
	const char *trigger = strdup(pathf("%s/" PLAIN "/trigger", events)), *hist = strdup(pathf("%s/" PLAIN "/hist", events));
	unsigned int n = rows / 8, refused = 0;
	bool snapshots, right = true;

	for (int i = 0; i < 3 && right; i++) {
		const char *line = pathf("hist:keys=which,who:x=who:onmax($x).rhist_l($x):size=%u", n);
		const char *snapshot = pathf("hist:keys=which,who:x=who:onmax($x).snapshot():size=%u", n);
		pthread_t thread;
		int error;

		right = !append(pathf("%s/synthetic_events", kernel_dir()), "rhist_l u64 x") && !mkdir(instance, 0755);
		snapshots = i % 2 && !access(pathf("%s/snapshot", instance), F_OK);
		line = snapshots ? snapshot : line;
		right = right && !append(trigger, line);
		fill(n);
		done = at_work = false;
		pthread_create(&thread, NULL, reader, (void *)hist);
		while (!at_work)
			sleep_ms(1);
		sleep_ms(5);
		right = !append(trigger, pathf("!%s", line)) && right;
		if (snapshots) {
			error = append(trigger, line);
			refused += error == -EBUSY;
			right = !append(trigger, pathf("!%s", line)) && right;
		}
		error = append(pathf("%s/synthetic_events", kernel_dir()), "!rhist_l");
		refused += error == -EBUSY;
		done = true;
		error = rmdir(instance) ? -errno : 0;
		/* the file is still open, or not */
		right = (!error || error == -EBUSY) && right;
		pthread_join(thread, NULL);
		if (error)
			right = !rmdir(instance) && right;
		append(pathf("%s/synthetic_events", kernel_dir()), "!rhist_l");
	}
	note("%u of the attempts refused", refused);
	return right && !refused;
}

/* As before, with a partly read file: the rest can still be read. */
static bool half_read(void)
{
	const char *line = pathf("hist:keys=which,who:x=who:onmax($x).rhist_l($x):size=%u", rows);
	bool right = !append(pathf("%s/synthetic_events", kernel_dir()), "rhist_l u64 x") && !append(file_of(PLAIN, "trigger"), line);
	struct totals t = { 0 };
	size_t len = 0;
	ssize_t got;
	int fd;

	fill(rows / 8);
	fd = open(file_of(PLAIN, "hist"), O_RDONLY | O_CLOEXEC);
	len = read(fd, text, 1000);
	right = len == 1000 && !append(file_of(PLAIN, "trigger"), pathf("!%s", line)) && right;
	right = !append(pathf("%s/synthetic_events", kernel_dir()), "!rhist_l") && right;
	while ((got = read(fd, text + len, (64 << 20) - 1 - len)) > 0)
		len += got;
	close(fd);
	text[len] = 0;
	right = right && !got && parse_totals(text, &t) && t.lines == rows / 8 && t.sum == t.hits && t.hits >= rows / 8;
	if (!right)
		note("%zu bytes, %llu lines", len, t.lines);
	return right;
}

int main(void)
{
	const char *plain = strdup(file_of(PLAIN, "hist")), *named = strdup(file_of(NAMED, "hist"));
	const char *lines = strdup(file_of(PLAIN, "hist_jsonl"));
	double all, with_names, lived;
	/* KASAN keeps freed memory for a while, and it counts as used. */
	const long kept = slow_kernel() ? 128 << 10 : 0;
	long before, after, more;
	char byte;
	int fd;

	if (slow_kernel())
		rows /= 8;
	else if (rest_only())
		rows /= 4;
	truncate_file(file_of(PLAIN, "trigger"));
	truncate_file(file_of(NAMED, "trigger"));
	ok(!add(PLAIN, "hist:keys=which,who") && !add(NAMED, "hist:keys=which.syscall,who"), "two histograms");
	fill(rows);

	before = allocated();
	fd = open(plain, O_RDONLY | O_CLOEXEC);
	all = now();
	if (read(fd, &byte, 1) != 1)
		note("nothing to read");
	all = now() - all;
	after = allocated();
	close(fd);
	note("the first byte takes %.3f s and %ld bytes a row", all, (after - before) * 1024 / rows);
	ok(after > before && (after - before) * 1024 <= 20l * rows + kept, "the rows take no more than 20 bytes each while they are read");

	/* The machine may become slower meanwhile. */
	for (int i = 0; i < 5; i++) {
		all = best(reading, plain, 0);
		with_names = best(reading, named, 0);
		if (with_names < 2 * all)
			break;
	}
	note("%u rows take %.3f s and %zu bytes, with names of system calls %.3f s", rows, all, text_len, with_names);
	ok(all > 0 && with_names > 0 && with_names < 2 * all, "names of system calls are looked up once");
	ok(parts(plain), "parts of the text are those of the whole");
	if (testing_c()) {
		skip("hist_jsonl takes little memory while it is read", "C has no such file");
	} else {
		ok(parts(lines), "hist_jsonl: parts of the text are those of the whole");
		fd = open(lines, O_RDONLY | O_CLOEXEC);
		before = allocated();
		if (read(fd, &byte, 1) != 1)
			note("nothing to read");
		after = allocated();
		more = reading_on(fd);
		close(fd);
		lived = best(reading, lines, 0);
		note("hist_jsonl takes %.3f s and %zu bytes, %ld bytes a row, and at most %ld KiB while it is read on", lived,
		     text_len, (after - before) * 1024 / rows, more);
		/* Others allocate, too. */
		ok((after - before) * 1024 <= 20l * rows + kept && more >= 0 && (more <= 64 + 64 || slow_kernel()),
		   "hist_jsonl takes little memory while it is read");
	}

	lived = best(killed_after, plain, all / 8);
	note("a reader lives for %.3f s after it was killed", lived);
	ok(lived >= 0 && lived < all / 2, "a reader can be killed");
	ok(polling(plain, all), "poll() counts only if there was a hit");
	truncate_file(file_of(PLAIN, "trigger"));
	truncate_file(file_of(NAMED, "trigger"));
	ok(nothing_held(), "a reader holds nothing that its trigger has used");
	ok(half_read(), "nor does one who goes on reading later");
	finish();
}
