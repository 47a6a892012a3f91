// SPDX-License-Identifier: GPL-2.0
/*
 * hist_delta and hist_delta_jsonl: open files, rounds, waiting, the begins and ends of histograms,
 * and the contents of an interval.
 */
#define _GNU_SOURCE
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/time.h>

#include "events.h"
#include "intervals.h"

#define EVENT "rhist_events/wake"
#define OTHER "rhist_events/run"
#define PLAIN "hist:keys=key:size=128"
#define INSTANCE "instances/rhist_i"

/* How long a cut may take at most, in ms. */
#define SOON (slow_kernel() ? 60000 : 20000)

static const char *in_instance(const char *file)
{
	return pathf("%s/" INSTANCE "/events/" EVENT "/%s", tracing_dir(), file);
}

static int opened(const char *event, const char *file, int flags)
{
	int fd = open(in_event(event, file), O_RDONLY | O_CLOEXEC | flags);

	if (fd < 0)
		die("%s: %s", in_event(event, file), strerror(errno));
	return fd;
}

static void reset(void)
{
	truncate_file(in_event(EVENT, "trigger"));
	truncate_file(in_event(OTHER, "trigger"));
}

/* Fires an event `count` times, with the numbers `first`, `first` + 1, and so on. */
static void fire_event(const char *event, unsigned long first, unsigned long count)
{
	const char *order = pathf("%s task 0 %lu %lu %lu", strchr(event, '/') + 1, first, count, count);

	if (write(event_source, order, strlen(order)) < 0)
		die("%s: %s", order, strerror(errno));
}

static void fire(unsigned long count)
{
	fire_event(EVENT, 1, count);
}

#define PARTS 40

/* The histograms in one round of hist_delta_jsonl. */
struct round {
	int n;			/* their number; -1 if the text is not whole */
	int error;
	unsigned long long before, after;	/* when it was read */
	struct part parts[PARTS];
};

/* Reads the rest of a round. The last one is kept in memory. */
static const struct round *read_round(int fd)
{
	static struct round round;
	static char *text;

	free(text);
	round.before = boot_ns();
	text = round_of(fd);
	round.error = text ? 0 : errno;
	round.after = boot_ns();
	round.n = text ? parts_of(text, round.parts, PARTS) : -1;
	return &round;
}

/* Reads a round, and returns the hits of all histograms in it; -1 without a whole one. */
static long long hits_in(int fd)
{
	const struct round *r = read_round(fd);
	long long hits = r->n > 0 ? 0 : -1;

	for (int i = 0; i < r->n; i++)
		hits += r->parts[i].hits;
	return hits;
}

/* Returns the events of poll(), or 0 after a timeout. */
static int polled(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLPRI };

	return poll(&p, 1, ms) > 0 ? p.revents : 0;
}

/* Notes the contents of a round. */
static void told(const struct round *r)
{
	note("%d histograms, %s", r->n, errno_name(r->error));
	for (int i = 0; i < r->n; i++)
		note("%s: life %llu, %llu to %llu, %s, %llu hits, %llu lost", r->parts[i].trigger, r->parts[i].life,
		     r->parts[i].begin, r->parts[i].end, *r->parts[i].ended ? r->parts[i].ended : "counts",
		     r->parts[i].hits, r->parts[i].lost);
}

/* --- rounds */

static void rounds(void)
{
	unsigned long long first_end, life;
	const struct round *r;
	int fd = opened(EVENT, "hist_delta_jsonl", 0);
	char byte;

	ok(read(fd, &byte, 1) == 0 && read(fd, &byte, 1) == 0, "an event without histograms: EOF at once, each time");
	ok(polled(fd, 0) == POLLIN, "it can be read without waiting");
	add_trigger(EVENT, PLAIN);
	fire(10);
	r = read_round(fd);
	if (!ok(r->n == 1 && r->parts[0].hits == 10 && r->parts[0].entries == 4,
		"a histogram that is added afterwards begins when it is made: all hits are there"))
		told(r);
	ok(r->parts[0].begin == r->parts[0].life && r->parts[0].begin < r->before, "its first interval begins with it");
	ok(r->parts[0].end >= r->before && r->parts[0].end <= r->after, "an interval ends after its read began");
	life = r->parts[0].life;
	first_end = r->parts[0].end;
	ok(lseek(fd, 0, SEEK_CUR) == 0, "after EOF, the position is 0 again");
	fire(3);
	r = read_round(fd);
	if (!ok(r->n == 1 && r->parts[0].hits == 3 && r->parts[0].entries == 3, "the next round has the hits since then"))
		told(r);
	ok(r->parts[0].begin == first_end && r->parts[0].end >= r->before && r->parts[0].life == life,
	   "and begins where the last one ended");
	r = read_round(fd);
	if (!ok(r->n == 1 && !r->parts[0].hits && !r->parts[0].entries && !strncmp(r->parts[0].rows, "{\"type\":\"trailer\"", 17),
		"an empty interval is a header and totals of 0"))
		told(r);
	close(fd);

	first_end = boot_ns();
	fd = opened(EVENT, "hist_delta_jsonl", 0);
	life = boot_ns();
	fire(2);
	r = read_round(fd);
	if (!ok(r->n == 1 && r->parts[0].hits == 2 && r->parts[0].begin >= first_end && r->parts[0].begin <= life,
		"a histogram that is there when the file is opened: open() is an edge"))
		told(r);
	close(fd);
	reset();
}

/* Runs a text in the shell, with the path of the file in $F. The caller frees the output. */
static char *shell(const char *file, const char *script)
{
	char *text = calloc(1, 1 << 16);
	size_t used = 0, got;
	FILE *pipe;

	setenv("F", in_event(EVENT, file), 1);
	pipe = popen(script, "r");
	while (pipe && (got = fread(text + used, 1, (1 << 16) - 1 - used, pipe)) > 0)
		used += got;
	if (pipe)
		pclose(pipe);
	return text;
}

/* Programs that know nothing of intervals. */
static void shells(void)
{
	static const char again[] = "echo wake task 0 1 4 4 >/dev/rhist_events;";
	char *text, *at;
	int n = 0;

	add_trigger(EVENT, PLAIN);
	text = shell("hist_delta", pathf("exec 3<$F; for i in 1 2 3; do %s cat <&3; done", again));
	for (at = text; (at = strstr(at, "\n    Hits: 4\n")); at++)
		n++;
	if (!ok(n == 3, "in a shell: exec 3<hist_delta; each `cat <&3` is an interval"))
		note("%s", text);
	free(text);
	text = shell("hist_delta", pathf("exec 3<$F; %s dd bs=20 count=1 <&3 2>/dev/null; %s cat <&3; echo; echo ---; cat <&3", again, again));
	at = strstr(text, "---");
	ok(at && !strncmp(text, "# event histogram\n#\n", 20) && (!strstr(text + 2, "# event") || strstr(text + 2, "# event") > at) &&
	   strstr(text, "\n    Hits: 4\n") < at && strstr(at, "\n    Hits: 4\n"), "a program that stops early leaves the round open for the next one");
	if (!at || !strstr(at, "\n    Hits: 4\n"))
		note("%s", text);
	free(text);
	reset();
}

/* Positions, shared descriptors, failed reads. */
static void positions(void)
{
	int fd = opened(EVENT, "hist_delta_jsonl", 0), other, second, status = -1;
	void *nowhere = mmap(NULL, getpagesize(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char buffer[1 << 14], whole[1 << 14], *text;
	unsigned long long end;
	const struct round *r;
	struct part p;
	ssize_t got, used;
	long long n;
	pid_t pid;

	add_trigger(EVENT, PLAIN);
	fire(5);
	for (used = 0; (got = read(fd, buffer + used, 1)) == 1; used++)
		;
	buffer[used] = 0;
	ok(!got && part_of(buffer, &p) && !*p.rest && p.hits == 5, "read byte by byte it is one interval");

	fire(5);
	got = read(fd, buffer, 100);
	fire(7);
	text = round_of(fd);
	memcpy(buffer + got, text, strlen(text) + 1);
	ok(part_of(buffer, &p) && p.hits == 5, "hits in the middle of a round are not in it");
	end = p.end;
	free(text);
	ok(read(fd, buffer, 0) == 0 && hits_in(fd) == 7, "they are in the next one");

	fire(5);
	got = read(fd, buffer, 100);
	ok(pread(fd, whole, sizeof(whole) - 1, 50) > 50 && !memcmp(whole, buffer + 50, 50) && lseek(fd, 0, SEEK_CUR) == 100,
	   "pread() behind the begin reads the same round, and moves nothing");
	ok(lseek(fd, 30, SEEK_SET) == 30 && read(fd, whole, 50) == 50 && !memcmp(whole, buffer + 30, 50), "so does lseek() behind the begin");
	part_of(buffer, &p);
	text = round_of(fd);
	ok(strlen(text) > 100, "and the round goes on from there");
	free(text);

	fire(5);
	read(fd, buffer, 100);
	lseek(fd, 0, SEEK_SET);
	fire(2);
	r = read_round(fd);
	if (!ok(r->n == 1 && r->parts[0].hits == 2 && r->parts[0].begin > end, "lseek() to 0 drops the round"))
		told(r);

	fire(3);
	got = pread(fd, buffer, sizeof(buffer) - 1, 0);
	buffer[got > 0 ? got : 0] = 0;
	ok(got > 0 && part_of(buffer, &p) && p.hits == 3 && lseek(fd, 0, SEEK_CUR) == 0, "pread() at the begin begins a round");
	fire(1);
	got = pread(fd, buffer, sizeof(buffer) - 1, 0);
	buffer[got > 0 ? got : 0] = 0;
	end = p.end;
	ok(got > 0 && part_of(buffer, &p) && p.hits == 1 && p.begin == end, "and the next one the next round");
	lseek(fd, 0, SEEK_SET);

	fire(4);
	errno = 0;
	ok(read(fd, nowhere, 100) < 0 && errno == EFAULT, "a buffer that is not there: EFAULT");
	fire(2);
	n = hits_in(fd);
	ok(n == 4 && hits_in(fd) == 2, "nothing was lost by that");

	other = dup(fd);
	second = opened(EVENT, "hist_delta_jsonl", 0);
	fire(6);
	got = read(fd, buffer, 100);
	text = round_of(other);
	memcpy(buffer + got, text, strlen(text) + 1);
	free(text);
	ok(part_of(buffer, &p) && p.hits == 6 && !*p.rest, "dup() shares the round");
	pid = fork();
	if (!pid)
		_exit(hits_in(fd));
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "fork() shares the reader");
	fire(1);
	pid = fork();
	if (!pid)
		_exit(hits_in(fd) == 1 ? 0 : 1);
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && !WEXITSTATUS(status) && hits_in(fd) == 0, "what a child has read, its parent does not read again");
	ok(hits_in(second) == 7, "a second open file is a reader of its own");
	close(other);
	close(fd);
	fire(2);
	ok(hits_in(second) == 2, "which goes on when the first one is closed");
	close(second);
	reset();
}

/* Takes the lines about the interval out of a text of hist_delta. */
static void without_edges(char *text)
{
	static const char *const begins[] = { "\n# begin: ", "\n# end: ", "\n# cleared\n", "\n# removed\n", "\n# lost: " };

	for (unsigned int i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		for (char *at = text; (at = strstr(at, begins[i])); )
			cut(at, strchr(at + 1, '\n'));
}

/* Takes the interval and the time of the read out of lines of JSON. */
static void without_interval(char *text)
{
	static const char *const begins[] = { ",\"realtime_ns\":", ",\"monotonic_ns\":", ",\"interval\":{\"begin\":{" };

	for (unsigned int i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		for (char *at = text; (at = strstr(at, begins[i])); ) {
			char *to = at + strlen(begins[i]);

			to += i < 2 ? (int)strspn(to, "0123456789") : strstr(to, ",\"keys\"") - to;
			cut(at, to);
		}
}

/* Both files look like hist and hist_jsonl. */
static void forms(void)
{
	static const char *const all[] = {
		PLAIN,
		"hist:keys=level:vals=amount,small,level.min,level.max,level.avg:sort=amount.descending:size=128",
		"hist:keys=who,key.hex:vals=amount.percent,level.dist,small.dist:sort=level.p99:limit(3):size=128",
		"hist:keys=path:l=level:onmax($l).save(amount,who):size=128 if level != 3",
	};
	int text_fd = opened(EVENT, "hist_delta", 0), lines_fd = opened(EVENT, "hist_delta_jsonl", 0);
	char *ours, *theirs;

	for (unsigned int i = 0; i < sizeof(all) / sizeof(*all); i++)
		add_trigger(EVENT, all[i]);
	fire(30);
	ours = round_of(text_fd);
	theirs = slurp(in_event(EVENT, "hist"));
	ok(strstr(ours, " [active]\n# begin: ") && strstr(ours, " ns since 1970\n# end: ") && strstr(ours, " ns since 1970\n#\n\n"),
	   "hist_delta has two lines more");
	without_edges(ours);
	if (!ok(!strcmp(ours, theirs), "and is hist for the rest: 4 histograms"))
		note_difference(theirs, ours);
	free(ours);
	free(theirs);
	ours = round_of(lines_fd);
	theirs = slurp(in_event(EVENT, "hist_jsonl"));
	ok(strstr(ours, ",\"interval\":{\"begin\":{\"boottime_ns\":") && strstr(ours, ",\"ended\":null,\"lost_histograms\":0},\"keys\""),
	   "hist_delta_jsonl has a member more");
	without_interval(ours);
	without_interval(theirs);
	if (!ok(!strcmp(ours, theirs), "and is hist_jsonl for the rest"))
		note_difference(theirs, ours);
	free(ours);
	free(theirs);
	close(text_fd);
	close(lines_fd);
	reset();
}

/* --- waiting */

static void nonblocking(void)
{
	int fd, ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN }, got;
	unsigned long long before, begin;
	const struct round *r;
	struct timeval soon = { SOON / 1000, 0 };
	fd_set set;
	char byte;

	add_trigger(EVENT, PLAIN);
	before = boot_ns();
	fd = opened(EVENT, "hist_delta_jsonl", O_NONBLOCK);
	ok(polled(fd, 0) == 0, "O_NONBLOCK: nothing is there before a read asks");
	errno = 0;
	ok(read(fd, &byte, 1) < 0 && errno == EAGAIN, "read() asks for a cut: EAGAIN");
	begin = boot_ns();
	ok(polled(fd, SOON) == POLLIN, "poll() says when the round can be read");
	ok(polled(fd, 0) == POLLIN, "and goes on to say so");
	r = read_round(fd);
	if (!ok(r->n == 1 && !r->parts[0].hits && r->parts[0].begin >= before, "the first interval begins after open()"))
		told(r);
	begin = r->parts[0].end;
	ok(polled(fd, 0) == 0, "after the round there is nothing");
	fire(5);
	ok(read(fd, &byte, 1) < 0 && errno == EAGAIN && polled(fd, SOON) == POLLIN, "the next one is asked for");
	fire(3);
	sleep_ms(20);
	ok(read(fd, &byte, 1) == 1 && byte == '{', "it is read");
	ok(polled(fd, 0) == POLLIN, "in the middle of a round there is more");
	free(round_of(fd));
	read(fd, &byte, 1);
	polled(fd, SOON);
	r = read_round(fd);
	if (!ok(r->n == 1 && r->parts[0].hits == 3 && r->parts[0].begin > begin, "hits after the edge are in the next one"))
		told(r);

	fire(2);
	read(fd, &byte, 1);
	polled(fd, SOON);
	read(fd, &byte, 1);
	lseek(fd, 0, SEEK_SET);
	ok(polled(fd, 0) == 0, "a round that is dropped by lseek() is not waited for");
	errno = 0;
	ok(read(fd, &byte, 1) < 0 && errno == EAGAIN && polled(fd, 0) == 0 && polled(fd, SOON) == POLLIN && hits_in(fd) == 0,
	   "the next one is");

	fire(2);
	errno = 0;
	read(fd, &byte, 1);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	ok(errno == EAGAIN && select(fd + 1, &set, NULL, NULL, &soon) == 1, "select() waits for it");
	ok(hits_in(fd) == 2, "and it has the hits");

	ok(!epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event) && epoll_wait(ep, &got, 1, 0) == 0, "epoll: nothing is there");
	fire(4);
	read(fd, &byte, 1);
	ok(epoll_wait(ep, &got, 1, SOON) == 1 && got.events == EPOLLIN && hits_in(fd) == 4, "epoll waits for it, too");
	ok(epoll_wait(ep, &got, 1, 50) == 0, "and is quiet again");
	event.events = EPOLLIN | EPOLLET;
	epoll_ctl(ep, EPOLL_CTL_MOD, fd, &event);
	for (int i = 0; i < 3; i++) {
		fire(1);
		read(fd, &byte, 1);
		ok(epoll_wait(ep, &got, 1, SOON) == 1 && hits_in(fd) == 1, "epoll by edges: round %d", i + 1);
	}
	close(ep);

	fire(1);
	fcntl(fd, F_SETFL, 0);
	ok(hits_in(fd) == 1, "without O_NONBLOCK, read() waits");
	fcntl(fd, F_SETFL, O_NONBLOCK);
	fire(2);
	read(fd, &byte, 1);
	fcntl(fd, F_SETFL, 0);
	ok(hits_in(fd) == 2, "also for what was asked for before");
	fire(1);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	read(fd, &byte, 1);
	reset();
	ok(polled(fd, SOON) & POLLIN, "its histogram is removed after a read has asked: it can be read");
	r = read_round(fd);
	ok(r->n == 1 && r->parts[0].hits == 1, "with its hits");
	close(fd);

	/* files that are closed while they are waited for */
	add_trigger(EVENT, PLAIN);
	for (int i = 0; i < 20; i++) {
		fd = opened(EVENT, "hist_delta_jsonl", O_NONBLOCK);
		read(fd, &byte, 1);
		close(fd);
	}
	fd = opened(EVENT, "hist_delta_jsonl", 0);
	fire(3);
	ok(hits_in(fd) == 3, "files that are closed before their cut disturb nobody");
	close(fd);
	reset();
}

static volatile int alarms_seen;

static void on_alarm(int signal)
{
	(void)signal;
	alarms_seen++;
}

/* Reads rounds while signals come every millisecond. */
static void signals(bool restart)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = restart ? SA_RESTART : 0 };
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { 0 };
	int fd = opened(EVENT, "hist_delta_jsonl", 0), rounds_read = 0, interrupted = 0, others = 0;
	struct accounts accounts = { 0 };
	const char *wrong = NULL;
	unsigned long fired = 0;

	add_trigger(EVENT, PLAIN);
	sigaction(SIGALRM, &action, NULL);
	alarms_seen = 0;
	while (rounds_read < 10 && !wrong && interrupted < 100000) {
		char *text;

		fire(5);
		fired += 5;
		setitimer(ITIMER_REAL, &often, NULL);
		text = round_of(fd);
		if (!text) {
			others += errno != EINTR;
			interrupted += errno == EINTR;
			if (restart || interrupted % 8 == 0)
				setitimer(ITIMER_REAL, &never, NULL);
			if (interrupted % 8 == 0)
				text = round_of(fd);
		}
		setitimer(ITIMER_REAL, &never, NULL);
		if (text) {
			wrong = add_text(&accounts, text);
			rounds_read++;
		}
		free(text);
	}
	ok(alarms_seen && !others && (restart ? !interrupted : interrupted), "signals %s: %d alarms, %d reads were interrupted",
	   restart ? "with SA_RESTART" : "without SA_RESTART", alarms_seen, interrupted);
	ok(!wrong && accounts.n == 1 && sum_named(&accounts.all[0], "hits") == (long long)fired,
	   "%d rounds with signals lose nothing: %s", rounds_read, wrong ? wrong : "all hits are there");
	free_accounts(&accounts);
	close(fd);
	reset();
}

/* A child is killed while it waits for a round, and its parent reads on. */
static void killed(void)
{
	int fd = opened(EVENT, "hist_delta_jsonl", 0);
	struct accounts accounts = { 0 };
	const char *wrong = NULL;
	unsigned long fired = 0;
	char *text;

	add_trigger(EVENT, PLAIN);
	for (int i = 0; i < 20 && !wrong; i++) {
		char byte;
		pid_t pid;

		fire(5);
		fired += 5;
		pid = fork();
		if (!pid)
			_exit(read(fd, &byte, 1));
		usleep(i * 700);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		/* It may have begun a round. */
		if (lseek(fd, 0, SEEK_CUR) == 1) {
			text = round_of(fd);
			memmove(text + 1, text, strlen(text) + 1);
			*text = '{';
		} else {
			text = round_of(fd);
		}
		wrong = add_text(&accounts, text);
		free(text);
	}
	ok(!wrong && accounts.n == 1 && sum_named(&accounts.all[0], "hits") == (long long)fired,
	   "who is killed while it waits loses nothing: %s", wrong ? wrong : "all hits are there");
	free_accounts(&accounts);
	close(fd);
	reset();
}

/* --- edges */

static int by_time(const void *a, const void *b)
{
	unsigned long long x = *(const unsigned long long *)a, y = *(const unsigned long long *)b;

	return x < y ? -1 : x > y;
}

/* Two processes and more than one event: as fast as they can. */
static void edges(void)
{
	enum { ROUNDS = 12 };
	static unsigned long long times[3 * ROUNDS];
	unsigned long long least = ~0ull, begin, took, shared = 0;
	int fds[2], pipes[2], n = 0, tries;
	pid_t pid;

	add_trigger(EVENT, PLAIN);
	add_trigger(OTHER, "hist:keys=next_key:size=128");
	fds[0] = opened(EVENT, "hist_delta_jsonl", 0);
	fds[1] = opened(OTHER, "hist_delta_jsonl", 0);
	if (pipe(pipes))
		die("pipe");
	pid = fork();
	if (!pid) {
		int fd = opened(EVENT, "hist_delta_jsonl", 0);

		for (int i = 0; i < ROUNDS; i++) {
			const struct round *r = read_round(fd);

			if (write(pipes[1], &r->parts[0].end, sizeof(r->parts[0].end)) < 0)
				_exit(1);
		}
		_exit(0);
	}
	begin = boot_ns();
	for (int i = 0; i < ROUNDS; i++)
		times[n++] = read_round(fds[0])->parts[0].end;
	took = boot_ns() - begin;
	waitpid(pid, NULL, 0);
	for (int i = 0; i < ROUNDS; i++)
		if (read(pipes[0], &times[n], sizeof(*times)) == sizeof(*times))
			n++;
	for (int i = 0; i < ROUNDS; i++)
		times[n++] = read_round(fds[1])->parts[0].end;
	qsort(times, n, sizeof(*times), by_time);
	for (int i = 1; i < n; i++) {
		unsigned long long apart = times[i] - times[i - 1];

		shared += !apart;
		if (apart && apart < least)
			least = apart;
	}
	if (!ok(n == 3 * ROUNDS && least >= 10000000, "edges are at least 10 ms apart, of whichever histograms: %llu us", least / 1000))
		note("%d edges", n);
	note("%d rounds took %llu ms each; %llu edges were shared", ROUNDS, took / ROUNDS / 1000000, shared);

	/*
	 * Histograms of two events, asked for together. On a slow machine, the first may be cut
	 * before the second is asked for.
	 */
	for (int i = 0; i < 2; i++)
		fcntl(fds[i], F_SETFL, O_NONBLOCK);
	shared = tries = 0;
	for (; shared < 3 && tries < 100; tries++) {
		unsigned long long ends[2];
		char byte;

		read(fds[0], &byte, 1);
		read(fds[1], &byte, 1);
		for (int j = 0; j < 2; j++) {
			polled(fds[j], SOON);
			ends[j] = read_round(fds[j])->parts[0].end;
		}
		shared += ends[0] == ends[1];
	}
	ok(shared == 3, "those that are asked for together share their edge");
	note("%d tries", tries);
	close(fds[0]);
	close(fds[1]);
	close(pipes[0]);
	close(pipes[1]);
	reset();
}

/* One of two processes that wait for a round: when its read began, and the edge that it got. */
struct waited {
	unsigned long long before, end;
};

/* Reads a round with one histogram. */
static struct waited await_round(int fd)
{
	const struct round *r = read_round(fd);

	return (struct waited){ r->before, r->n == 1 ? r->parts[0].end : 0 };
}

/*
 * Two readers that wait in read() at the same time share an edge. On a slow machine one of them may
 * begin to wait too late for the other's edge, so they try again until they share one.
 */
static void waiting(void)
{
	int fd, orders[2], answers[2], tries = 0, wrong = 0;
	struct waited own, other;
	bool shared = false;
	pid_t pid;

	add_trigger(EVENT, PLAIN);
	fd = opened(EVENT, "hist_delta_jsonl", 0);
	if (pipe(orders) || pipe(answers))
		die("pipe");
	pid = fork();
	if (!pid) {
		char order;

		close(fd);
		close(orders[1]);
		fd = opened(EVENT, "hist_delta_jsonl", 0);
		while (read(orders[0], &order, 1) == 1) {
			own = await_round(fd);
			if (write(answers[1], &own, sizeof(own)) != sizeof(own))
				_exit(1);
		}
		_exit(0);
	}
	close(answers[1]);
	while (!shared && tries < 50) {
		tries++;
		if (write(orders[1], "", 1) != 1)
			break;
		own = await_round(fd);
		if (read(answers[0], &other, sizeof(other)) != sizeof(other))
			break;
		wrong += own.end < own.before || other.end < other.before;
		shared = own.end == other.end;
	}
	ok(shared && !wrong, "two readers that wait in read() at the same time share an edge, which comes after both began");
	note("%d tries", tries);
	close(orders[0]);
	close(orders[1]);
	close(answers[0]);
	waitpid(pid, NULL, 0);
	close(fd);
	reset();
}

/* Histograms of so many events that are asked for together, as the command `rhist serve` does. */
#define TOGETHER 30

/*
 * 30 histograms of 30 events that are asked for together have one edge, and so take one cut, not
 * thirty; or two, if the last edge is so long ago that the first request is answered at once. On a
 * slow machine more edges may come between the first request and the last one, so they are asked
 * for again.
 */
static void together(void)
{
	static const char *const systems[] = { "rhist_events", "sched", "task", "signal", "irq" };
	static const char trigger[] = "hist:keys=common_pid:size=128";
	unsigned long long ends[TOGETHER];
	const char *events[TOGETHER];
	int fds[TOGETHER], n = 0, tries = 0, edges = TOGETHER, wrong = 0;
	/* The first reads may come much earlier than the last ones. */
	int most = slow_kernel() ? 5 : 2;

	for (unsigned int i = 0; i < sizeof(systems) / sizeof(*systems); i++) {
		glob_t found;

		if (glob(in_event(systems[i], "*/hist_delta_jsonl"), 0, NULL, &found))
			continue;
		for (size_t j = 0; j < found.gl_pathc && n < TOGETHER; j++) {
			char *path = found.gl_pathv[j];

			*strrchr(path, '/') = 0;
			events[n] = strdup(pathf("%s/%s", systems[i], strrchr(path, '/') + 1));
			if (!append(in_event(events[n], "trigger"), trigger)) {
				fds[n] = opened(events[n], "hist_delta_jsonl", O_NONBLOCK);
				n++;
			}
		}
		globfree(&found);
	}
	while (n == TOGETHER && edges > most && tries < 30) {
		char byte;

		tries++;
		for (int i = 0; i < n; i++)
			wrong += read(fds[i], &byte, 1) >= 0 || errno != EAGAIN;
		for (int i = 0; i < n; i++) {
			const struct round *r;

			polled(fds[i], SOON);
			r = read_round(fds[i]);
			wrong += r->n != 1;
			ends[i] = r->parts[0].end;
		}
		qsort(ends, n, sizeof(*ends), by_time);
		edges = 1;
		for (int i = 1; i < n; i++)
			edges += ends[i] != ends[i - 1];
	}
	ok(edges <= most && !wrong, "%d histograms of %d events that are asked for together have one edge, or two", n, n);
	note("%d tries, %d edges in the last one, %d answers were wrong", tries, edges, wrong);
	while (n) {
		close(fds[--n]);
		truncate_file(in_event(events[n], "trigger"));
	}
}

/* --- how many */

static void limits(void)
{
	int fds[READERS + 1], n = 0, fd, error;
	long long hits = 0;
	char byte;

	add_trigger(EVENT, PLAIN);
	for (; n < READERS; n++)
		fds[n] = opened(EVENT, n % 2 ? "hist_delta" : "hist_delta_jsonl", O_NONBLOCK);
	fd = open(in_event(EVENT, "hist_delta_jsonl"), O_RDONLY);
	error = fd < 0 ? errno : 0;
	if (!ok(error == EUSERS, "%d open files of a histogram, and no more: EUSERS", READERS))
		note("%s", errno_name(error));
	if (fd >= 0)
		close(fd);
	fd = open(in_event(EVENT, "hist_delta_jsonl"), O_RDONLY | O_NONBLOCK);
	ok(fd < 0 && errno == EUSERS, "nor with O_NONBLOCK");
	fd = open(in_event(OTHER, "hist_delta_jsonl"), O_RDONLY);
	ok(fd >= 0, "those of another event are not counted");
	close(fd);
	close(fds[--n]);
	fd = open(in_event(EVENT, "hist_delta_jsonl"), O_RDONLY);
	fire(3);
	ok(fd >= 0 && hits_in(fd) == 3, "when one is closed there is room again");
	fds[n++] = fd;
	while (n)
		close(fds[--n]);
	reset();

	/* Files that are opened before the event has a histogram. */
	for (; n < READERS + 1; n++)
		fds[n] = opened(EVENT, "hist_delta_jsonl", 0);
	add_trigger(EVENT, PLAIN);
	fire(2);
	for (int i = 0; i < READERS; i++)
		hits += hits_in(fds[i]);
	errno = 0;
	ok(hits == 2 * READERS && read(fds[READERS], &byte, 1) < 0 && errno == EUSERS,
	   "files that are opened before the histogram: the read of the last one fails");
	close(fds[0]);
	fire(1);
	ok(hits_in(fds[READERS]) == 3, "it has lost nothing when there is room");
	for (int i = 1; i < READERS + 1; i++)
		close(fds[i]);
	reset();
}

/* --- begins and ends of histograms */

/* Checks one histogram in a round: its end, and its hits. */
static bool shows(const struct round *r, int i, const char *ended, unsigned long long hits)
{
	return r->n > i && !strcmp(r->parts[i].ended, ended) && r->parts[i].hits == hits;
}

static void lives(void)
{
	int fd = opened(EVENT, "hist_delta_jsonl", 0), text_fd;
	static const char second[] = "hist:keys=level:size=128";
	unsigned long long hits, before, after, lost;
	static char buffer[1 << 14];
	const struct round *r;
	bool all, contiguous;
	char *text;
	ssize_t got;
	struct part p;

	add_trigger(EVENT, PLAIN);
	fire(2);
	hits_in(fd);
	fire(3);
	add_trigger(EVENT, second);
	fire(4);
	r = read_round(fd);
	if (!ok(r->n == 2 && shows(r, 0, "", 7) && shows(r, 1, "", 4) && r->parts[1].begin == r->parts[1].life,
		"a second histogram begins when it is made"))
		told(r);
	ok(r->parts[0].end == r->parts[1].end, "both intervals end at the same edge");

	fire(5);
	before = boot_ns();
	add_trigger(EVENT, pathf("!%s", second));
	after = boot_ns();
	fire(1);
	r = read_round(fd);
	if (!ok(r->n == 2 && ((shows(r, 0, "", 6) && shows(r, 1, "removed", 5)) || (shows(r, 1, "", 6) && shows(r, 0, "removed", 5))),
		"a histogram that was removed is shown once more, with the hits up to then"))
		told(r);
	else
		ok(r->parts[1].end >= before && r->parts[1].end <= after, "it ends when it was removed");
	r = read_round(fd);
	ok(r->n == 1 && shows(r, 0, "", 0), "then it is gone");

	fire(3);
	before = boot_ns();
	add_trigger(EVENT, PLAIN ":clear");
	after = boot_ns();
	fire(2);
	r = read_round(fd);
	if (!ok(r->n == 2 && shows(r, 0, "cleared", 3) && shows(r, 1, "", 2),
		"clear: the hits up to then are shown, and the next life follows in the same round"))
		told(r);
	ok(r->n == 2 && r->parts[0].end >= before && r->parts[0].end <= after && r->parts[1].begin == r->parts[0].end &&
	   r->parts[1].life == r->parts[1].begin, "one ends where the other begins");
	r = read_round(fd);
	ok(r->n == 1 && shows(r, 0, "", 0), "then there is one");

	for (int i = 1; i <= 5; i++) {
		fire(i);
		add_trigger(EVENT, PLAIN ":clear");
	}
	fire(6);
	r = read_round(fd);
	all = r->n == 6;
	for (int i = 0; i < 6; i++)
		all &= shows(r, i, i < 5 ? "cleared" : "", i + 1);
	if (!ok(all, "cleared five times: six lives"))
		told(r);

	/* added and removed between two reads */
	add_trigger(EVENT, second);
	fire(2);
	add_trigger(EVENT, pathf("!%s", second));
	r = read_round(fd);
	if (!ok(r->n == 2 && (shows(r, 0, "removed", 2) || shows(r, 1, "removed", 2)), "added and removed between two reads: shown once"))
		told(r);
	hits_in(fd);
	add_trigger(EVENT, second);
	fire(2);
	add_trigger(EVENT, pathf("!%s", second));
	add_trigger(EVENT, second);
	fire(3);
	r = read_round(fd);
	hits = 0;
	for (int i = 0; i < r->n; i++)
		hits += strcmp(r->parts[i].trigger, PLAIN) ? r->parts[i].hits : 0;
	if (!ok(r->n == 3, "removed and added again: three histograms"))
		told(r);
	add_trigger(EVENT, pathf("!%s", second));
	hits_in(fd);

	/* in the middle of a round */
	fire(4);
	got = read(fd, buffer, 64);
	add_trigger(EVENT, PLAIN ":clear");
	fire(1);
	text = round_of(fd);
	memcpy(buffer + got, text, strlen(text) + 1);
	free(text);
	ok(part_of(buffer, &p) && p.hits == 4 && !*p.ended && !*p.rest, "a clear in the middle of a round does not change it");
	r = read_round(fd);
	if (!ok(r->n == 2 && shows(r, 0, "cleared", 0) && shows(r, 1, "", 1), "the next one tells of it"))
		told(r);

	/* nobody reads */
	text_fd = opened(EVENT, "hist_delta", 0);
	for (int i = 0; i < 20; i++) {
		fire(1);
		add_trigger(EVENT, PLAIN ":clear");
	}
	fire(1);
	r = read_round(fd);
	all = r->n == 17;
	lost = r->parts[0].lost;
	contiguous = true;
	for (int i = 0; i < r->n; i++) {
		all &= shows(r, i, i < 16 ? "cleared" : "", 1);
		contiguous &= !i || r->parts[i].begin == r->parts[i - 1].end;
	}
	if (!ok(all && contiguous && lost == 4, "20 times cleared: 16 are kept, and %llu lost", lost))
		told(r);
	r = read_round(fd);
	ok(r->n == 1 && !r->parts[0].lost, "which is told once");
	text = round_of(text_fd);
	ok(strstr(text, "\n# cleared\n") && strstr(text, "\n# lost: 4 histograms\n"), "hist_delta has lines of it");
	free(text);
	text = round_of(text_fd);
	ok(!strstr(text, "\n# cleared\n") && !strstr(text, "# lost"), "and then no more");
	free(text);
	close(text_fd);

	/* all */
	fire(2);
	add_trigger(EVENT, second);
	fire(1);
	truncate_file(in_event(EVENT, "trigger"));
	r = read_round(fd);
	if (!ok(r->n == 2 && shows(r, 0, "removed", 3) && shows(r, 1, "removed", 1), "truncation removes all"))
		told(r);
	r = read_round(fd);
	ok(r->n == 0 && polled(fd, 0) == POLLIN, "and leaves EOF");
	add_trigger(EVENT, PLAIN);
	fire(3);
	r = read_round(fd);
	ok(r->n == 1 && shows(r, 0, "", 3), "until there is another one");
	close(fd);
	reset();
}

/* Cuts and clears at the same time: intervals follow each other, and lose nothing. */
static void cleared_during_cuts(void)
{
	int fd = opened(EVENT, "hist_delta_jsonl", 0), rounds_read = 0, status;
	struct accounts accounts = { 0 };
	unsigned long long hits = 0;
	const char *wrong = NULL;
	bool done = false;
	pid_t pid;

	add_trigger(EVENT, PLAIN);
	pid = fork();
	if (!pid) {
		for (int i = 0; i < 30; i++) {
			fire(1);
			usleep(i * 500);
			append(in_event(EVENT, "trigger"), PLAIN ":clear");
		}
		_exit(0);
	}
	while (!wrong && !done) {
		char *text;

		done = waitpid(pid, &status, WNOHANG) == pid;
		text = round_of(fd);
		wrong = add_text(&accounts, text);
		free(text);
		rounds_read++;
	}
	for (int i = 0; i < accounts.n; i++)
		hits += sum_named(&accounts.all[i], "hits");
	ok(!wrong && accounts.n == 31 && hits == 30, "30 clears during %d cuts: %s", rounds_read, wrong ? wrong : "each life is whole");
	if (!done)
		waitpid(pid, NULL, 0);
	free_accounts(&accounts);
	close(fd);
	reset();
}

static void switches(void)
{
	int fd = opened(EVENT, "hist_delta_jsonl", 0), text_fd = opened(EVENT, "hist_delta", 0);
	const struct round *r;
	char *text;

	add_trigger(EVENT, PLAIN);
	fire(3);
	add_trigger(EVENT, PLAIN ":pause");
	fire(4);
	r = read_round(fd);
	ok(r->n == 1 && r->parts[0].paused && shows(r, 0, "", 3), "pause: hits do not count");
	text = round_of(text_fd);
	ok(strstr(text, " [paused]\n# begin: "), "and hist_delta says so");
	free(text);
	fire(4);
	ok(hits_in(fd) == 0, "nor in the next round");
	add_trigger(EVENT, PLAIN ":cont");
	fire(2);
	r = read_round(fd);
	ok(r->n == 1 && !r->parts[0].paused && shows(r, 0, "", 2), "cont: they do again");
	add_trigger(EVENT, PLAIN ":pause");
	add_trigger(EVENT, PLAIN ":clear");
	fire(2);
	r = read_round(fd);
	if (!ok(r->n == 2 && shows(r, 0, "cleared", 0), "paused and cleared: a new life"))
		told(r);
	close(fd);
	close(text_fd);
	reset();
}

/* Triggers of several events with one histogram. */
static void names_shared(void)
{
	static const char wake[] = "hist:name=rhist_i:keys=common_pid:size=128", run[] = "hist:name=rhist_i:keys=common_pid:size=128";
	int fd = opened(EVENT, "hist_delta_jsonl", 0), other;
	const struct round *r;

	add_trigger(EVENT, wake);
	fire(2);
	add_trigger(OTHER, run);
	other = opened(OTHER, "hist_delta_jsonl", 0);
	fire(3);
	fire_event(OTHER, 1, 4);
	ok(hits_in(fd) == 9 && hits_in(other) == 7, "a name of two events: each file shows the hits of both");
	fire(1);
	ok(hits_in(fd) == 1 && hits_in(other) == 1, "and goes on so");
	fire(2);
	fire_event(OTHER, 1, 1);
	add_trigger(OTHER, "hist:name=rhist_i:keys=common_pid:size=128:clear");
	fire(4);
	r = read_round(fd);
	if (!ok(r->n == 2 && shows(r, 0, "cleared", 3) && shows(r, 1, "", 4), "cleared by one of them: both files tell"))
		told(r);
	r = read_round(other);
	if (!ok(r->n == 2 && shows(r, 0, "cleared", 3) && shows(r, 1, "", 4), "the other one, too"))
		told(r);
	fire(1);
	fire_event(OTHER, 1, 2);
	add_trigger(OTHER, "!hist:name=rhist_i:keys=common_pid:size=128");
	fire(5);
	r = read_round(fd);
	if (!ok(r->n == 1 && shows(r, 0, "", 8), "one trigger is removed: the file of the other one goes on"))
		told(r);
	r = read_round(other);
	if (!ok(r->n == 1 && !strcmp(r->parts[0].ended, "removed") && r->parts[0].hits >= 3, "that of the removed one ends"))
		told(r);
	ok(read_round(other)->n == 0, "and is empty then");
	/* Two triggers of one event. */
	add_trigger(EVENT, "hist:name=rhist_i:keys=common_pid:size=128 if level > 100");
	fire(2);
	r = read_round(fd);
	if (!ok(r->n == 2 && shows(r, 0, "", 2), "two triggers of one event with one name: both are shown"))
		told(r);
	close(fd);
	close(other);
	reset();
}

/* The trigger of an instance. */
static void instance(void)
{
	int top = opened(EVENT, "hist_delta_jsonl", 0), fd;
	const struct round *r;
	struct pollfd p;

	if (mkdir(pathf("%s/" INSTANCE, tracing_dir()), 0755))
		die("an instance: %s", strerror(errno));
	fd = open(in_instance("hist_delta_jsonl"), O_RDONLY | O_CLOEXEC);
	append(in_instance("trigger"), PLAIN);
	fire(3);
	ok(hits_in(fd) == 3 && read_round(top)->n == 0, "an instance has its own histograms");
	add_trigger(EVENT, PLAIN);
	fire(2);
	ok(hits_in(fd) == 2 && hits_in(top) == 2, "beside those of the top");
	fire(4);
	if (rmdir(pathf("%s/" INSTANCE, tracing_dir()))) {
		ok(false, "an instance is removed while a file is open: %s", strerror(errno));
	} else {
		p = (struct pollfd){ .fd = fd, .events = POLLIN };
		ok(poll(&p, 1, SOON) == 1 && p.revents == POLLIN, "an instance is removed while a file is open: POLLIN");
		fire(1);
		r = read_round(fd);
		if (!ok(r->n == 1 && shows(r, 0, "removed", 4), "the file has the last interval"))
			told(r);
		ok(read_round(fd)->n == 0 && read_round(fd)->n == 0, "and then EOF");
		ok(poll(&p, 1, 0) == 1 && p.revents == (POLLIN | POLLHUP), "and POLLHUP");
		ok(hits_in(top) == 5, "the top goes on");
	}
	close(fd);
	close(top);
	reset();
}

/* An open file, and the hits in all rounds that were read. */
struct follower {
	int fd;
	unsigned long long hits;
};

/*
 * Reads a round. Returns whether it has one histogram, with these hits and paused or not, which has
 * `ended` or not.
 */
static bool follows(struct follower *f, bool paused, const char *ended, unsigned long long hits)
{
	const struct round *r = read_round(f->fd);
	bool right = r->n == 1 && shows(r, 0, ended, hits) && r->parts[0].paused == paused;

	if (!right)
		told(r);
	for (int i = 0; i < r->n; i++)
		f->hits += r->parts[i].hits;
	return right;
}

/* Reads a round. Returns whether a histogram was cleared in it. */
static bool follows_clear(struct follower *f, unsigned long long hits, unsigned long long next)
{
	const struct round *r = read_round(f->fd);
	bool right = r->n == 2 && shows(r, 0, "cleared", hits) && shows(r, 1, "", next);

	if (!right)
		told(r);
	for (int i = 0; i < r->n; i++)
		f->hits += r->parts[i].hits;
	return right;
}

/* A trigger of the top and one of an instance with one histogram: an event is a hit of each. */
static void instances_shared(void)
{
	static const char name[] = "hist:name=rhist_i:keys=common_pid:size=128";
	struct follower top = { opened(EVENT, "hist_delta_jsonl", 0), 0 }, of_instance = { -1, 0 };
	struct totals totals = { 0 };

	if (mkdir(pathf("%s/" INSTANCE, tracing_dir()), 0755))
		die("an instance: %s", strerror(errno));
	of_instance.fd = open(in_instance("hist_delta_jsonl"), O_RDONLY | O_CLOEXEC);
	add_trigger(EVENT, name);
	append(in_instance("trigger"), name);
	ok(follows(&top, false, "", 0) && follows(&of_instance, false, "", 0), "a name in two instances: one histogram in each file");
	fire(3);
	ok(follows(&top, false, "", 6) && follows(&of_instance, false, "", 6), "each file shows the hits of both triggers");

	fire(2);
	append(in_instance("trigger"), pathf("%s:clear", name));
	fire(1);
	ok(follows_clear(&top, 4, 2) && follows_clear(&of_instance, 4, 2), "cleared in the instance: both files tell");
	fire(1);
	add_trigger(EVENT, pathf("%s:clear", name));
	fire(4);
	ok(follows_clear(&of_instance, 2, 8) && follows_clear(&top, 2, 8), "cleared in the top: both files tell, too");

	append(in_instance("trigger"), pathf("%s:pause", name));
	fire(3);
	ok(follows(&top, false, "", 3) && follows(&of_instance, true, "", 3),
	   "one trigger is paused: both files show the hits of the other one, and one says that it is paused");
	add_trigger(EVENT, pathf("%s:pause", name));
	fire(3);
	ok(follows(&top, true, "", 0) && follows(&of_instance, true, "", 0), "both are paused: no hits");
	append(in_instance("trigger"), pathf("%s:cont", name));
	fire(2);
	ok(follows(&top, true, "", 2) && follows(&of_instance, false, "", 2), "one goes on: both files show its hits");
	add_trigger(EVENT, pathf("%s:cont", name));
	fire(2);
	ok(follows(&top, false, "", 4) && follows(&of_instance, false, "", 4), "both go on: the hits of both");

	fire(1);
	append(in_instance("trigger"), pathf("!%s", name));
	fire(5);
	ok(follows(&top, false, "", 7), "the trigger of the instance is removed: the file of the top goes on");
	ok(follows(&of_instance, false, "removed", 7) && read_round(of_instance.fd)->n == 0, "the last interval of the other file ends with its read");
	if (!ok(of_instance.hits == top.hits, "up to there, the sums of both are the same"))
		note("%llu and %llu", of_instance.hits, top.hits);
	append(in_instance("trigger"), name);
	ok(follows(&of_instance, false, "", 0), "it is added again: its intervals begin with the next read");
	fire(2);
	add_trigger(EVENT, pathf("!%s", name));
	fire(1);
	ok(follows(&top, false, "removed", 5) && read_round(top.fd)->n == 0 && follows(&of_instance, false, "", 5),
	   "the trigger of the top is removed: its file ends with its read, and that of the instance goes on");
	add_trigger(EVENT, name);
	follows(&top, false, "", 0);

	fire(2);
	if (rmdir(pathf("%s/" INSTANCE, tracing_dir())))
		ok(false, "the instance is removed: %s", strerror(errno));
	fire(3);
	ok(follows(&top, false, "", 7), "the instance is removed: the file of the top goes on");
	ok(follows(&of_instance, false, "removed", 7) && read_round(of_instance.fd)->n == 0 && polled(of_instance.fd, 0) == (POLLIN | POLLHUP),
	   "the last interval of its own file ends with its read");
	/* 6 + 4 hits came before the first clear, 2 + 2 before the second. */
	if (!ok(read_totals(in_event(EVENT, "hist"), &totals) && top.hits == 6 + 4 + 2 + 2 + totals.hits && of_instance.hits == top.hits,
		"the sum of each file's intervals is the histogram, with the hits up to the clears"))
		note("%llu, %llu, and %llu in hist", top.hits, of_instance.hits, totals.hits);
	close(of_instance.fd);
	close(top.fd);
	reset();
}

/* An event that is removed while a file of it is open. */
static void event_goes(const char *what, const char *file, const char *make, const char *unmake, const char *event)
{
	const struct round *r;
	int fd, error;
	char byte;

	if (append(pathf("%s/%s", kernel_dir(), file), make)) {
		skip("this kernel has none", "%s is removed", what);
		return;
	}
	fd = opened(event, "hist_delta_jsonl", 0);
	add_trigger(event, "hist:keys=common_pid:size=128");
	read_round(fd);
	/* With a trigger, the event is in use, as in C. */
	error = append(pathf("%s/%s", kernel_dir(), file), unmake);
	ok(error == -EBUSY, "%s with a trigger is in use: %s", what, errno_name(error));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	read(fd, &byte, 1);
	truncate_file(in_event(event, "trigger"));
	error = append(pathf("%s/%s", kernel_dir(), file), unmake);
	if (!ok(!error, "%s is removed while a file is open", what))
		note("%s", errno_name(error));
	ok(polled(fd, SOON) == POLLIN, "%s: POLLIN, for an interval that was asked for", what);
	r = read_round(fd);
	ok(r->n == 1 && !*r->parts[0].ended && polled(fd, 0) == POLLIN, "%s: that is read, and there is another one", what);
	fcntl(fd, F_SETFL, 0);
	r = read_round(fd);
	if (!ok(r->n == 1 && !strcmp(r->parts[0].ended, "removed"), "%s: the last interval can be read", what))
		told(r);
	ok(read_round(fd)->n == 0 && polled(fd, 0) == (POLLIN | POLLHUP), "%s: then EOF, and POLLHUP", what);
	/* another one of its name */
	append(pathf("%s/%s", kernel_dir(), file), make);
	ok(read_round(fd)->n == 0 && polled(fd, 0) == (POLLIN | POLLHUP), "%s: another one of its name is not read", what);
	append(pathf("%s/%s", kernel_dir(), file), unmake);
	close(fd);
}

/* --- contents of an interval */

/* The line of the row with this key; "" if it is not there. */
static const char *row(const struct part *p, const char *key)
{
	const char *at = memmem(p->rows, p->rest - p->rows, key, strlen(key));

	while (at && at > p->rows && at[-1] != '\n')
		at--;
	return at ? pathf("%.*s", (int)strcspn(at, "\n"), at) : "";
}

static bool row_is(const struct part *p, const char *key, const char *expected)
{
	const char *got = row(p, key);

	if (!strstr(got, expected)) {
		note("expected: %s\ngot: %s", expected, got);
		return false;
	}
	return true;
}

static void columns(void)
{
	int fd = opened(EVENT, "hist_delta_jsonl", 0);
	const struct round *r;

	add_trigger(EVENT, "hist:keys=key:vals=amount,level.min,level.max,level.avg,level.dist:size=128 if level != 3");
	fire(8);
	r = read_round(fd);
	ok(r->n == 1 && r->parts[0].rejected == 1 && row_is(&r->parts[0], "\"keys\":[1],", "\"values\":[2,60,1,5,") &&
	   row_is(&r->parts[0], "\"keys\":[0],", "\"values\":[2,120,4,8,"), "sums and extremes of the first interval");
	fire_event(EVENT, 5, 1);
	fire_event(EVENT, 3, 1);
	r = read_round(fd);
	ok(r->n == 1 && r->parts[0].entries == 1 && r->parts[0].rejected == 1 &&
	   row_is(&r->parts[0], "\"keys\":[1],", "\"values\":[1,50,5,5,") &&
	   row_is(&r->parts[0], "\"keys\":[1],", "{\"count\":1,\"no_bucket\":0,\"sum\":5,\"min\":5,\"max\":5,"),
	   "an interval has its own sums, extremes and distributions, and the rows that moved");
	fire_event(EVENT, 101, 1);
	hits_in(fd);
	fire_event(EVENT, 41, 1);
	r = read_round(fd);
	ok(r->n == 1 && row_is(&r->parts[0], "\"keys\":[1],", "\"values\":[1,410,41,41,"), "a greater value of the last one is not in it");
	close(fd);
	reset();

	fd = opened(EVENT, "hist_delta_jsonl", 0);
	add_trigger(EVENT, "hist:keys=key:l=level:onmax($l).save(amount):size=128");
	fire_event(EVENT, 9, 1);
	r = read_round(fd);
	ok(r->n == 1 && row_is(&r->parts[0], "\"keys\":[1],", "90"), "what save() stored in an interval is shown");
	fire_event(EVENT, 5, 1);
	r = read_round(fd);
	ok(r->n == 1 && r->parts[0].hits == 1 && row_is(&r->parts[0], "\"keys\":[1],", "\"actions\":[null]"), "but not if it did not change");
	fire_event(EVENT, 13, 1);
	r = read_round(fd);
	ok(r->n == 1 && row_is(&r->parts[0], "\"keys\":[1],", "130"), "if it changed again, it is");
	close(fd);
	fd = opened(EVENT, "hist_delta", 0);
	fire_event(EVENT, 5, 1);
	{
		char *text = round_of(fd);

		ok(strstr(text, "hitcount:          1") && !strstr(text, "max:"), "hist_delta has no line of what did not change");
		free(text);
		fire_event(EVENT, 17, 1);
		text = round_of(fd);
		ok(strstr(text, "max:         17") && strstr(text, "amount:        170"), "and has one of what did");
		free(text);
	}
	close(fd);
	reset();

	fd = opened(EVENT, "hist_delta_jsonl", 0);
	add_trigger(EVENT, "hist:keys=level:sort=hitcount.descending:limit(2):size=128");
	fire_event(EVENT, 7, 1);
	for (int i = 0; i < 9; i++)
		fire_event(EVENT, 1, 1);
	hits_in(fd);
	for (int i = 0; i < 3; i++)
		fire_event(EVENT, 7, 1);
	for (int i = 0; i < 2; i++)
		fire_event(EVENT, 5, 1);
	fire_event(EVENT, 1, 1);
	r = read_round(fd);
	ok(r->n == 1 && r->parts[0].entries == 3 && strstr(r->parts[0].rows, "\"keys\":[7],\"values\":[3") &&
	   strstr(r->parts[0].rows, "\"keys\":[5],\"values\":[2") > strstr(r->parts[0].rows, "\"keys\":[7],\"values\":[3") &&
	   !memmem(r->parts[0].rows, r->parts[0].rest - r->parts[0].rows, "\"keys\":[1]", 10), "rows are sorted, and limited, by the interval");
	close(fd);
	reset();
}

/* The time at which the row with this key was inserted; 0 without. */
static unsigned long long inserted(const struct part *p, const char *key)
{
	const char *at = row(p, key);

	return number_of(at, at + strlen(at), "\"begin_boottime_ns\":");
}

/* Lines of JSON tell when rows were inserted. */
static void births(void)
{
	int fd = opened(EVENT, "hist_delta_jsonl", 0);
	unsigned long long before, between, after, first, second;
	struct part whole;
	struct round r;
	char *text;

	add_trigger(EVENT, PLAIN);
	before = boot_ns();
	fire_event(EVENT, 1, 1);
	between = boot_ns();
	fire_event(EVENT, 2, 1);
	after = boot_ns();
	r = *read_round(fd);
	first = inserted(&r.parts[0], "\"keys\":[1],");
	second = inserted(&r.parts[0], "\"keys\":[2],");
	if (!ok(before <= first && first <= between && between <= second && second <= after, "a row tells when its first hit came"))
		note("%llu: %llu, %llu: %llu, %llu", before, first, between, second, after);
	fire(2);
	r = *read_round(fd);
	text = slurp(in_event(EVENT, "hist_jsonl"));
	ok(inserted(&r.parts[0], "\"keys\":[1],") == first && part_of(text, &whole) && inserted(&whole, "\"keys\":[1],") == first &&
	   whole.life == r.parts[0].life && whole.life <= before, "in later intervals, and in hist_jsonl, too");
	free(text);
	add_trigger(EVENT, PLAIN ":clear");
	fire_event(EVENT, 1, 1);
	r = *read_round(fd);
	text = slurp(in_event(EVENT, "hist_jsonl"));
	ok(r.n == 2 && inserted(&r.parts[1], "\"keys\":[1],") > after && part_of(text, &whole) && whole.life == r.parts[1].life &&
	   whole.life >= after, "both begin anew after a clear");
	free(text);
	close(fd);
	reset();
}

/* The same triggers in an instance, where nobody reads intervals. */
static void unchanged(void)
{
	static const char *const all[] = {
		"hist:keys=level:vals=amount,small,level.min,level.max:sort=level:size=128",
		"hist:keys=key:vals=level.dist,small.dist:buckets(4):sort=key:size=128",
		"hist:keys=key:l=level:onmax($l).save(amount):sort=key:size=128 if level != 3",
	};
	static const char *const files[] = { "hist", "hist_jsonl" };
	int fds[2], different = 0, between = 0;

	if (mkdir(pathf("%s/" INSTANCE, tracing_dir()), 0755))
		die("an instance: %s", strerror(errno));
	for (unsigned int i = 0; i < sizeof(all) / sizeof(*all); i++) {
		add_trigger(EVENT, all[i]);
		append(in_instance("trigger"), all[i]);
	}
	fds[0] = opened(EVENT, "hist_delta", 0);
	fds[1] = opened(EVENT, "hist_delta_jsonl", O_NONBLOCK);
	for (int i = 0; i < 12; i++) {
		char byte;

		/* In the second half they have more keys than places. */
		fire_event(EVENT, 1, i < 6 ? 40 : 200);
		if (i % 3 == 0)
			free(round_of(fds[0]));
		/* A cut goes on while they are read. */
		if (i % 3 == 1)
			between += read(fds[1], &byte, 1) < 0 && errno == EAGAIN;
		for (int j = 0; j < 2; j++) {
			char *ours = slurp(in_event(EVENT, files[j])), *theirs = slurp(in_instance(files[j]));

			without_interval(ours);
			without_interval(theirs);
			/* the begin of a histogram, and of a row */
			for (char *at = ours; (at = strstr(at, "\"begin\":{")); )
				cut(at, strchr(at, '}'));
			for (char *at = theirs; (at = strstr(at, "\"begin\":{")); )
				cut(at, strchr(at, '}'));
			for (char *at = ours; (at = strstr(at, "\"begin_boottime_ns\":")); )
				cut(at, strchr(at, ','));
			for (char *at = theirs; (at = strstr(at, "\"begin_boottime_ns\":")); )
				cut(at, strchr(at, ','));
			if (strcmp(ours, theirs) && !different++)
				note_difference(theirs, ours);
			free(ours);
			free(theirs);
		}
		if (i % 3 == 1)
			free(polled(fds[1], SOON) ? round_of(fds[1]) : NULL);
	}
	ok(!different && between, "hist and hist_jsonl are the same with and without readers of intervals: 24 times, %d during a cut", between);
	close(fds[0]);
	close(fds[1]);
	/* An instance with variables cannot be removed. */
	truncate_file(in_instance("trigger"));
	if (rmdir(pathf("%s/" INSTANCE, tracing_dir())))
		ok(false, "its instance is removed: %s", strerror(errno));
	reset();
}

/* Reads the line of a histogram in hist_stats. Returns false without one. */
static bool stats(unsigned long *readers, unsigned long *cuts, unsigned long *bytes)
{
	char *text = slurp(pathf("%s/hist_stats", tracing_dir())), *at = text ? strstr(text, " readers of intervals, ") : NULL;
	bool found = false;

	while (at && at > text && at[-1] != '\n')
		at--;
	if (at)
		found = sscanf(at, "rhist_events:wake hist 1: %lu readers of intervals, %lu cuts, %lu bytes for them", readers, cuts,
			       bytes) == 3;
	free(text);
	return found;
}

static void told_in_stats(void)
{
	unsigned long readers, cuts, bytes, more, cuts_then;
	int fd, second;

	add_trigger(EVENT, PLAIN);
	ok(!stats(&readers, &cuts, &bytes), "hist_stats has no line of a histogram without readers");
	fd = opened(EVENT, "hist_delta", 0);
	ok(stats(&readers, &cuts, &bytes) && readers == 1 && cuts == 1 && bytes > 0, "with one: its cuts and its bytes");
	second = opened(EVENT, "hist_delta", 0);
	free(round_of(fd));
	ok(stats(&readers, &cuts_then, &more) && readers == 2 && cuts_then == cuts + 2 && more > bytes, "with two: more of both");
	close(second);
	ok(stats(&readers, &cuts, &more) && readers == 1 && more == bytes, "and without the second: as before");
	close(fd);
	reset();
}

/* Bytes of memory that are available. */
static unsigned long long available(void)
{
	char *text = slurp("/proc/meminfo"), *at = text ? strstr(text, "\nMemAvailable:") : NULL;
	unsigned long long kib = at ? strtoull(at + strlen("\nMemAvailable:"), NULL, 10) : 0;

	free(text);
	return kib << 10;
}

/*
 * Readers of histograms that take more than half of the available memory together. A reader has 8
 * bytes for each column and element; the first one has the totals and a bank made, which take as
 * much each, at least.
 */
static void too_large(void)
{
	enum { COLUMNS = 9, ELEMENTS = 131072, MOST = 64 };
	static const unsigned long long bytes = 3ull * 8 * COLUMNS * ELEMENTS;
	int early = opened(EVENT, "hist_delta_jsonl", 0), fd, n = 0, error;
	unsigned long readers, cuts, more;
	const struct round *r;
	const char *text[MOST];

	while (n < MOST && 2 * n * bytes < available()) {
		text[n] = strdup(pathf("hist:keys=level:vals=amount,amount.min,amount.max,level,level.min,level.max,small.min,small.max:"
				       "size=%d if level != %d", ELEMENTS, 1000 + n));
		add_trigger(EVENT, text[n++]);
	}
	if (n == MOST) {
		skip("this machine has too much memory", "readers of large histograms");
		close(early);
		reset();
		return;
	}
	fire(1);
	fd = open(in_event(EVENT, "hist_delta_jsonl"), O_RDONLY | O_CLOEXEC);
	error = fd < 0 ? errno : 0;
	if (!ok(error == ENOMEM, "readers of %d large histograms take more than half of the memory: open() fails with ENOMEM", n))
		note("%s", errno_name(error));
	r = read_round(early);
	ok(r->n < 0 && r->error == ENOMEM, "so does the read of a file that was open before them: %s", errno_name(r->error));
	ok(!stats(&readers, &cuts, &more), "they have no readers then");
	for (int i = n / 3; i < n; i++)
		add_trigger(EVENT, pathf("!%s", text[i]));
	fire(2);
	fd = open(in_event(EVENT, "hist_delta_jsonl"), O_RDONLY | O_CLOEXEC);
	ok(fd >= 0, "a third of them has room for readers");
	r = read_round(early);
	error = r->n < 0;
	for (int i = 0; i < r->n; i++)
		error |= *r->parts[i].ended ? r->parts[i].hits != 1 : r->parts[i].hits != 3;
	if (!ok(!error && r->n >= n / 3, "and the file that was open before has lost nothing of these"))
		told(r);
	close(fd);
	close(early);
	reset();
}

static void marker(void)
{
	int fd = open(in_event("ftrace/print", "hist_delta_jsonl"), O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		skip("it has no file", "trace_marker");
		return;
	}
	add_trigger("ftrace/print", "hist:keys=common_pid:size=128");
	for (int i = 0; i < 3; i++)
		append(pathf("%s/trace_marker", tracing_dir()), "rhist");
	ok(hits_in(fd) == 3, "trace_marker: its hits");
	append(pathf("%s/trace_marker", tracing_dir()), "rhist");
	ok(hits_in(fd) == 1, "trace_marker: and those of the next interval");
	truncate_file(in_event("ftrace/print", "trigger"));
	close(fd);
}

static void modes(void)
{
	static const char *const files[] = { "hist_delta", "hist_delta_jsonl" };

	for (int i = 0; i < 2; i++) {
		struct stat st;
		char *of_hist;

		ok(!stat(in_event(EVENT, files[i]), &st) && S_ISREG(st.st_mode) && (st.st_mode & 07777) == 0440, "%s: mode 440", files[i]);
		of_hist = strdup(errno_name(put_len(in_event(EVENT, "hist"), 0, "1", 1)));
		ok(!strcmp(of_hist, errno_name(put_len(in_event(EVENT, files[i]), 0, "1", 1))), "%s: written to as hist: %s", files[i], of_hist);
		free(of_hist);
	}
}

int main(void)
{
	if (testing_c()) {
		skip("this is C", "intervals");
		finish();
	}
	load_events();
	if (event_source < 0)
		die("the module rhist_events");
	pin(0);
	modes();
	rounds();
	shells();
	positions();
	forms();
	nonblocking();
	signals(false);
	signals(true);
	killed();
	edges();
	waiting();
	together();
	limits();
	lives();
	cleared_during_cuts();
	switches();
	names_shared();
	instance();
	instances_shared();
	event_goes("a synthetic event", "synthetic_events", "rhist_i u64 a", "!rhist_i", "synthetic/rhist_i");
	event_goes("a kprobe event", "kprobe_events", "p:rhist_i do_nanosleep", "-:rhist_i", "kprobes/rhist_i");
	columns();
	births();
	unchanged();
	told_in_stats();
	if (!rest_only() && !slow_kernel())
		too_large();
	marker();
	unload_events();
	finish();
}
