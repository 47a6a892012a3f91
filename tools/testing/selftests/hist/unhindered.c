// SPDX-License-Identifier: GPL-2.0
/*
 * Readers of intervals hold nobody up: times of commands, of `hist` and of other readers, with and
 * without a reader of the largest histogram that reads all the time, and one that has stopped in
 * the middle of a round.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>

#include "events.h"
#include "intervals.h"

#define EVENT "rhist_events/wake"
#define OTHER "rhist_events/run"

/* How many rounds the reader has to begin while times are taken, at least. */
#define ROUNDS 12

static unsigned int rows = 131072;

/* With four columns: hits, a sum, a minimum and a maximum. */
static const char *large(const char *switched)
{
	return pathf("hist:keys=level:vals=amount,level.min,level.max:size=%u%s", rows, switched);
}

static int opened(const char *event)
{
	int fd = open(in_event(event, "hist_delta_jsonl"), O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("%s: %s", in_event(event, "hist_delta_jsonl"), strerror(errno));
	return fd;
}

/* Makes a hit in each row, on the first processor. */
static void fill(void)
{
	enum { PIECE = 4096 };

	for (unsigned int first = 0; first < rows; first += PIECE) {
		const char *order = pathf("wake task 0 %u %u %u", first, PIECE, PIECE);

		if (write(event_source, order, strlen(order)) < 0)
			die("%s: %s", order, strerror(errno));
	}
}

/* Returns how many seconds it takes to read the first byte. */
static double first_byte(int fd)
{
	double began = now();
	char byte;

	if (read(fd, &byte, 1) != 1)
		die("nothing to read: %s", strerror(errno));
	return now() - began;
}

/* --- works, which return their seconds */

static double command(void)
{
	static bool paused;
	double began = now();
	int error;

	paused = !paused;
	error = append(in_event(EVENT, "trigger"), large(paused ? ":pause" : ":cont"));
	if (error)
		die("pause or cont: %s", errno_name(error));
	return now() - began;
}

static double hist(void)
{
	int fd = open(in_event(EVENT, "hist"), O_RDONLY | O_CLOEXEC);
	double took = first_byte(fd);

	close(fd);
	return took;
}

static int same = -1, small = -1;

/* Each of its intervals has all rows. */
static double reader(void)
{
	double took = first_byte(same);

	lseek(same, 0, SEEK_SET);
	return took;
}

static double small_reader(void)
{
	double took = first_byte(small);

	lseek(small, 0, SEEK_SET);
	return took;
}

enum { COMMAND, SMALL, HIST, READER, WORKS };

static const struct {
	const char *name;
	double (*once)(void);
	int times;
} works[WORKS] = {
	[COMMAND] = { "pause and cont", command, 20 },
	[SMALL] = { "a read of a small histogram's interval", small_reader, 20 },
	[HIST] = { "a read of hist", hist, 4 },
	[READER] = { "another read of the large histogram's interval", reader, 4 },
};

/* --- beside others */

/* Rounds that the reader has begun, which is another process. */
static int *rounds;

/*
 * Starts a process that makes hits all the time, and reads rounds if `reads`: every fourth one to
 * its end, which takes longest.
 */
static pid_t busy(bool reads)
{
	pid_t pid = fork();
	int fd;

	if (pid)
		return pid;
	pin(0);
	fd = reads ? opened(EVENT) : -1;
	for (int n = 0;; n++) {
		fill();
		if (!reads)
			continue;
		first_byte(fd);
		__atomic_add_fetch(rounds, 1, __ATOMIC_RELAXED);
		if (n % 4 == 0)
			free(round_of(fd));
		else
			lseek(fd, 0, SEEK_SET);
	}
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/*
 * Takes the longest time of each work, at different moments of the other process. Returns the
 * shortest time of a read of the large histogram's interval.
 */
static double measure(double longest[WORKS], int least_rounds)
{
	double shortest = 1e9;
	int done[WORKS] = { 0 };
	bool all = false;

	memset(longest, 0, WORKS * sizeof(*longest));
	for (int n = 0; !all || __atomic_load_n(rounds, __ATOMIC_RELAXED) < least_rounds; n++) {
		all = true;
		for (int i = 0; i < WORKS; i++) {
			double took;

			if (done[i] >= works[i].times && i >= HIST)
				continue;
			sleep_ms(10 + n * 37 % 70);
			took = works[i].once();
			longest[i] = took > longest[i] ? took : longest[i];
			if (i == READER && took < shortest)
				shortest = took;
			all &= ++done[i] >= works[i].times;
		}
	}
	return shortest;
}

int main(void)
{
	/* It runs before other processes, and so its times do not depend on their number. */
	const struct sched_param first = { .sched_priority = 1 };
	double alone[WORKS], beside[WORKS], read_alone;
	char part[100];
	cpu_set_t cpus;
	int stopped;
	pid_t pid;

	if (testing_c()) {
		skip("this is C", "readers of intervals");
		finish();
	}
	load_events();
	if (event_source < 0)
		die("the module rhist_events");
	if (slow_kernel())
		rows /= 8;
	rounds = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (rounds == MAP_FAILED || sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first))
		die("a page and a priority: %s", strerror(errno));
	truncate_file(in_event(EVENT, "trigger"));
	truncate_file(in_event(OTHER, "trigger"));
	add_trigger(EVENT, large(""));
	add_trigger(OTHER, "hist:keys=next_key:size=128");
	same = opened(EVENT);
	small = opened(OTHER);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	pin(0);
	fill();
	sched_setaffinity(0, sizeof(cpus), &cpus);

	pid = busy(false);
	read_alone = measure(alone, 0);
	end(pid);

	stopped = opened(EVENT);
	pin(0);
	fill();
	sched_setaffinity(0, sizeof(cpus), &cpus);
	if (read(stopped, part, sizeof(part)) != sizeof(part))
		die("nothing to read: %s", strerror(errno));
	pid = busy(true);
	measure(beside, ROUNDS);
	end(pid);

	note("%d rounds began meanwhile", *rounds);
	for (int i = 0; i < WORKS; i++) {
		/* Other programs may run meanwhile. A work that waits for reads takes longer. */
		double most = 4 * alone[i] + read_alone;

		ok(beside[i] <= most, "%s takes no longer beside readers: %.4f s, and %.4f s without", works[i].name, beside[i], alone[i]);
		note("at most %.4f s", most);
	}
	close(stopped);
	close(same);
	close(small);
	truncate_file(in_event(EVENT, "trigger"));
	truncate_file(in_event(OTHER, "trigger"));
	unload_events();
	finish();
}
