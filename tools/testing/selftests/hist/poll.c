// SPDX-License-Identifier: GPL-2.0
/* poll(2) on hist: the same answers from C and from rhist, no early wake-up, and no missed hit. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <signal.h>

#include "tracing.h"

#define PGID "syscalls/sys_enter_getpgid"
#define SID "syscalls/sys_enter_getsid"
#define ALL (POLLIN | POLLRDNORM | POLLPRI)

static const char *dir;

static const char *at(const char *event, const char *file)
{
	return pathf("%s/events/%s/%s", dir, event, file);
}

static void fire(int times)
{
	while (times--)
		syscall(SYS_getpgid, 1);
}

/* Returns the events of poll(), or 0 after a timeout of `ms` milliseconds. */
static int polled(int fd, int events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, ms) > 0 ? p.revents : 0;
}

static void read_all(int fd)
{
	char buffer[4096];

	lseek(fd, 0, SEEK_SET);
	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
}

/* Answers of one implementation in a scene, one byte for each question. */
static char answers[256];

static void answer(int events)
{
	size_t used = strlen(answers);

	snprintf(answers + used, sizeof(answers) - used, "%s%s%s%s%s ", events & POLLIN ? "i" : "",
		 events & POLLRDNORM ? "r" : "", events & POLLPRI ? "p" : "", events & POLLERR ? "e" : "",
		 events ? "" : "-");
}

static void scene_idle(void)
{
	int fd = open(at(PGID, "hist"), O_RDONLY);

	answer(polled(fd, ALL, 100));
	read_all(fd);
	answer(polled(fd, ALL, 100));
	append(at(PGID, "trigger"), sized("hist:keys=pid"));
	answer(polled(fd, ALL, 100));
	close(fd);
}

static void scene_hits(void)
{
	int fd = open(at(PGID, "hist"), O_RDONLY), late;

	append(at(PGID, "trigger"), sized("hist:keys=pid"));
	fire(3);
	late = open(at(PGID, "hist"), O_RDONLY);
	/* The first file was opened before the hits, the second after them. */
	answer(polled(fd, ALL, 1000));
	answer(polled(late, ALL, 1000));
	answer(polled(fd, ALL, 1000));
	answer(polled(fd, POLLPRI, 100));
	read_all(fd);
	answer(polled(fd, ALL, 100));
	answer(polled(late, ALL, 0));
	fire(1);
	answer(polled(fd, POLLPRI, 1000));
	answer(polled(fd, POLLPRI, 100));
	answer(polled(fd, POLLIN, 1000));
	/* A report counts even if poll() did not ask for its kind. */
	fire(1);
	answer(polled(fd, POLLIN, 1000));
	answer(polled(fd, POLLPRI, 100));
	fire(1);
	read_all(fd);
	answer(polled(fd, ALL, 100));
	close(fd);
	close(late);
}

static void scene_changes(void)
{
	int fd = open(at(PGID, "hist"), O_RDONLY);

	append(at(PGID, "trigger"), sized("hist:keys=pid"));
	fire(3);
	read_all(fd);
	append(at(PGID, "trigger"), sized("hist:keys=pid:clear"));
	answer(polled(fd, ALL, 1000));
	read_all(fd);
	answer(polled(fd, ALL, 100));
	fire(2);
	read_all(fd);
	append(at(PGID, "trigger"), sized("hist:keys=pid:pause"));
	fire(2);
	answer(polled(fd, ALL, 100));
	append(at(PGID, "trigger"), sized("hist:keys=pid:cont"));
	answer(polled(fd, ALL, 100));
	fire(2);
	answer(polled(fd, ALL, 1000));
	read_all(fd);
	truncate_file(at(PGID, "trigger"));
	answer(polled(fd, ALL, 1000));
	read_all(fd);
	append(at(PGID, "trigger"), sized("hist:keys=pid if pid == 5"));
	fire(2);
	answer(polled(fd, ALL, 100));
	close(fd);
}

/* Waits in a thread while something happens. */
struct waiter {
	pthread_t thread;
	int fd, events, revents, ms;
	double waited;
};

static void *wait_for(void *arg)
{
	struct waiter *w = arg;
	double start = now();

	w->revents = polled(w->fd, w->events, w->ms);
	w->waited = now() - start;
	return NULL;
}

static void start_waiting(struct waiter *w, int fd, int events)
{
	*w = (struct waiter){ .fd = fd, .events = events, .ms = 20000 };
	pthread_create(&w->thread, NULL, wait_for, w);
}

/* Returns true if the wait has ended through an event, neither before it nor by a timeout. */
static bool woken(struct waiter *w)
{
	pthread_join(w->thread, NULL);
	return w->waited > 0.1 && w->waited < 19;
}

static void answer_waiting(struct waiter *w)
{
	bool in_time = woken(w);

	answer(in_time ? w->revents : 0);
}

static void scene_waiting(void)
{
	int fd = open(at(PGID, "hist"), O_RDONLY);
	struct waiter w;

	/* The trigger comes after the poller. */
	start_waiting(&w, fd, ALL);
	sleep_ms(200);
	append(at(PGID, "trigger"), sized("hist:keys=pid"));
	fire(1);
	answer_waiting(&w);
	start_waiting(&w, fd, POLLPRI);
	sleep_ms(200);
	fire(1);
	answer_waiting(&w);
	read_all(fd);
	start_waiting(&w, fd, POLLIN);
	sleep_ms(200);
	fire(1);
	answer_waiting(&w);
	/* Another trigger instead. */
	truncate_file(at(PGID, "trigger"));
	read_all(fd);
	start_waiting(&w, fd, ALL);
	sleep_ms(200);
	append(at(PGID, "trigger"), sized("hist:keys=common_pid"));
	fire(1);
	answer_waiting(&w);
	close(fd);
}

/* The histogram of a name grows by the hits of another event. */
static void scene_named(void)
{
	int fd = open(at(SID, "hist"), O_RDONLY);
	struct waiter w;

	append(at(SID, "trigger"), sized("hist:name=rhist_p:keys=pid"));
	append(at(PGID, "trigger"), sized("hist:name=rhist_p:keys=pid"));
	start_waiting(&w, fd, ALL);
	sleep_ms(200);
	fire(1);
	answer_waiting(&w);
	close(fd);
}

static void kprobe(const char *command)
{
	if (append(pathf("%s/kprobe_events", kernel_dir()), command))
		note("%s: %s", command, strerror(errno));
}

static void scene_removal(void)
{
	const char *event = "kprobes/rhist_poll";
	struct waiter w, never_polled;
	int fd, idle;

	kprobe("p:rhist_poll do_nanosleep");
	sleep_ms(10);
	fd = open(at(event, "hist"), O_RDONLY);
	idle = open(at(event, "hist"), O_RDONLY);
	append(at(event, "trigger"), sized("hist:keys=common_pid"));
	sleep_ms(1);
	read_all(fd);
	truncate_file(at(event, "trigger"));
	read_all(fd);
	start_waiting(&w, fd, ALL);
	sleep_ms(200);
	kprobe("-:rhist_poll");
	answer_waiting(&w);
	answer(polled(fd, POLLIN, 0));
	answer(polled(fd, 0, 1000));
	/* Another event of that name does not count. */
	kprobe("p:rhist_poll do_nanosleep");
	answer(polled(fd, ALL, 1000));
	answer(polled(idle, ALL, 1000));
	close(fd);
	close(idle);
	fd = open(at(event, "hist"), O_RDONLY);
	start_waiting(&never_polled, fd, ALL);
	sleep_ms(200);
	append(at(event, "trigger"), sized("hist:keys=common_pid"));
	sleep_ms(1);
	answer_waiting(&never_polled);
	truncate_file(at(event, "trigger"));
	close(fd);
	kprobe("-:rhist_poll");
}

static void scene_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLPRI | EPOLLET }, got;
	int fd = open(at(PGID, "hist"), O_RDONLY), ep = epoll_create1(0);
	static const char *const others[] = { "trigger", "format" };

	append(at(PGID, "trigger"), sized("hist:keys=pid"));
	answer(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event) ? POLLERR : 0);
	answer(epoll_wait(ep, &got, 1, 0) > 0 ? (int)got.events : 0);
	for (int i = 0; i < 3; i++) {
		fire(1);
		answer(epoll_wait(ep, &got, 1, 1000) > 0 ? (int)got.events : 0);
		/* Edge-triggered epoll reports once. */
		answer(epoll_wait(ep, &got, 1, 100) > 0 ? (int)got.events : 0);
	}
	for (int i = 0; i < 2; i++) {
		int other = open(at(PGID, others[i]), O_RDONLY);

		answer(epoll_ctl(ep, EPOLL_CTL_ADD, other, &event) && errno == EPERM ? POLLERR : 0);
		answer(polled(other, POLLIN, 0));
		close(other);
	}
	close(fd);
	close(ep);
}

static const struct {
	const char *name;
	void (*play)(void);
	const char *expected;
} scenes[] = {
	{ "an idle histogram", scene_idle, "- - - " },
	{ "hits since the last read, and since the last report", scene_hits,
	  "irp ir ir - - ir p - i i - - " },
	{ "clear, pause, removal of the trigger, a filter", scene_changes, "irp - - - irp irp - " },
	{ "waiting for a hit", scene_waiting, "irp p i irp " },
	{ "a hit of another event with the same name=", scene_named, "irp " },
	{ "the event goes", scene_removal, "e e e e e irp " },
	{ "epoll", scene_epoll, "- - ip - ip - ip - e i e i " },
};

static void play(unsigned int i, const char *where)
{
	dir = where;
	answers[0] = 0;
	scenes[i].play();
	truncate_file(at(PGID, "trigger"));
	truncate_file(at(SID, "trigger"));
	if (!ok(!strcmp(answers, scenes[i].expected), "%s: %s", scenes[i].name,
		where == kernel_dir() ? "C" : "under test"))
		note("expected: %s\ngot:      %s", scenes[i].expected, answers);
}

/* Each of many pollers of two events is woken up by the one hit of its event, and only by that. */
static void many(void)
{
	enum { MANY = 200 };
	static struct waiter w[MANY];
	int early = 0, late = 0;

	append(at(PGID, "trigger"), sized("hist:keys=pid"));
	append(at(SID, "trigger"), sized("hist:keys=pid"));
	for (int i = 0; i < MANY; i++)
		start_waiting(&w[i], open(at(i % 2 ? SID : PGID, "hist"), O_RDONLY), i % 4 < 2 ? POLLIN : POLLPRI);
	sleep_ms(slow_kernel() ? 5000 : 1000);
	fire(1);
	for (int i = 0; i < MANY; i += 2)
		late += !woken(&w[i]) || !w[i].revents;
	for (int i = 1; i < MANY; i += 2)
		early += pthread_tryjoin_np(w[i].thread, NULL) == 0;
	syscall(SYS_getsid, 0);
	for (int i = 1; i < MANY; i += 2)
		late += !woken(&w[i]) || !w[i].revents;
	ok(!late, "%d pollers: %d were not woken", MANY, late);
	ok(!early, "%d pollers: %d woke when nothing had happened for them", MANY, early);
	for (int i = 0; i < MANY; i++)
		close(w[i].fd);
	truncate_file(at(PGID, "trigger"));
	truncate_file(at(SID, "trigger"));
}

static void *fire_when_told(void *arg)
{
	unsigned int *asked = arg, seed = 1;

	for (unsigned int done = 0;; done++) {
		while (__atomic_load_n(asked, __ATOMIC_ACQUIRE) == done)
			sched_yield();
		if (__atomic_load_n(asked, __ATOMIC_ACQUIRE) == ~0u)
			return NULL;
		/* At a random moment while the poller goes to sleep. */
		for (volatile int i = rand_r(&seed) % 20000; i; i--)
			;
		syscall(SYS_getpgid, 1);
	}
}

/*
 * Every hit ends the poll() in progress, however close to its beginning; with new files, and with
 * polled ones.
 */
static void close_calls(bool new_file)
{
	unsigned int rounds = repeats(1, 5, 100) * (new_file ? 20 : 1000), lost = 0, i;
	int fd = open(at(PGID, "hist"), O_RDONLY);
	unsigned int asked = 0;
	pthread_t thread;

	append(at(PGID, "trigger"), sized("hist:keys=pid"));
	polled(fd, POLLPRI, 1);
	pthread_create(&thread, NULL, fire_when_told, &asked);
	for (i = 0; i < rounds && !lost; i++) {
		if (new_file) {
			close(fd);
			fd = open(at(PGID, "hist"), O_RDONLY);
		}
		__atomic_add_fetch(&asked, 1, __ATOMIC_RELEASE);
		lost += polled(fd, POLLPRI, 10000) != POLLPRI;
	}
	__atomic_store_n(&asked, ~0u, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	ok(!lost, "%s: %u polls, none slept through a hit", new_file ? "files just opened" : "one file", i);
	close(fd);
	truncate_file(at(PGID, "trigger"));
}

static void alarm_soon(void)
{
	struct itimerval once = { .it_value.tv_usec = 1000 };
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	setitimer(ITIMER_REAL, &once, NULL);
	sigwait(&set, &sig);
}

/* Sends an NMI to all CPUs: the kernel prints their backtraces, here not on the console. */
static void show_backtraces(void)
{
	char *levels = slurp("/proc/sys/kernel/printk");

	put_len("/proc/sys/kernel/printk", 0, "1", 1);
	put_len("/proc/sysrq-trigger", 0, "l", 1);
	/* Backtraces from NMIs are printed later. */
	sleep_ms(500);
	if (levels)
		put_len("/proc/sys/kernel/printk", 0, levels, strlen(levels));
	free(levels);
}

static void mark(void)
{
	append(pathf("%s/trace_marker", dir), "rhist");
}

/* Somebody else is woken. */
static void wake(void)
{
	int fd = open(at(PGID, "hist"), O_RDONLY);

	append(at(PGID, "trigger"), "hist:keys=pid:size=128");
	polled(fd, POLLPRI, 1);
	fire(1);
	sleep_ms(20);
	truncate_file(at(PGID, "trigger"));
	close(fd);
}

static void nap(void)
{
	sleep_ms(20);
}

/* A hit may come in a context that must not take locks. */
static void in_contexts(void)
{
	static const struct {
		const char *event, *name;
		void (*happen)(void);
	} all[] = {
		{ "timer/itimer_expire", "in an interrupt", alarm_soon },
		{ "irq/softirq_entry", "in a softirq", nap },
		{ "sched/sched_waking", "under a lock of the scheduler", nap },
		{ "sched/sched_switch", "in the scheduler", nap },
		{ "irq_vectors/irq_work_entry", "of waking itself", wake },
		{ "ftrace/print", "by a mark", mark },
		{ "nmi/nmi_handler", "in an NMI", show_backtraces },
	};

	for (unsigned int i = 0; i < sizeof(all) / sizeof(*all); i++) {
		int fd = open(at(all[i].event, "hist"), O_RDONLY);
		struct totals t;
		struct waiter w;

		if (fd < 0) {
			skip("no such event", "a hit %s", all[i].name);
			continue;
		}
		start_waiting(&w, fd, POLLPRI);
		sleep_ms(200);
		append(at(all[i].event, "trigger"), "hist:keys=common_cpu:size=128");
		all[i].happen();
		pthread_join(w.thread, NULL);
		/* Some machines lack these. */
		if (!w.revents && read_totals(at(all[i].event, "hist"), &t) && !t.hits)
			skip("it does not happen here", "a hit %s", all[i].name);
		else
			ok(w.revents == POLLPRI, "a hit %s wakes", all[i].name);
		truncate_file(at(all[i].event, "trigger"));
		close(fd);
	}
}

int main(void)
{
	sigset_t set;

	/* For sigwait(), in all threads. */
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (unsigned int i = 0; i < sizeof(scenes) / sizeof(*scenes); i++) {
		play(i, kernel_dir());
		if (!testing_c())
			play(i, tracing_dir());
	}
	dir = tracing_dir();
	many();
	close_calls(false);
	close_calls(true);
	in_contexts();
	finish();
}
