/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attacks, and the watchers that must go on meanwhile.
 *
 * An attack is a function that runs as a user who may open user_events_data and nothing else, until
 * it is killed with all its processes. The watchers run all the time, in processes of their own:
 *
 *   tracing   root enables and disables events, sets and removes a hist trigger, and reads
 *   program   another user registers and unregisters, deletes, and forks
 *   writing   and writes events whenever its bit is set
 *   machine   patches code of the kernel and waits for all processors, as tracing does, without
 *             tracing
 *
 * Each repeats a list of steps, which are timed. Before the first attack they are timed beside as
 * many processes as an attack has, which only compute: that is the baseline. A step is late if it
 * takes more than a second, more than FACTOR times the longest step of the baseline, and more than
 * FACTOR times the time of the machine watcher during the attack. The machine of a guest may stand
 * still or become slow at any time, also for a single processor and after the baseline was taken,
 * while a real attack holds up others each time it is run. So if a step was late, the baseline is
 * taken anew and the attack repeated. The attack fails if a step is late in each of RUNS runs, if a
 * step has a wrong result, or if something is left when the attack's processes are gone.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <linux/membarrier.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "client.h"

enum { VICTIM = 1001, MALLORY = 1002, ACCOMPLICE = 1003 };
enum { FACTOR = 3, RUNS = 3, MAX_STEPS = 12, MAX_PROCESSES = 100, RUNNING = 4, WATCHERS = 4 };

/* Instances that an attack can make, as root. */
enum { INSTANCES = 6 };

__maybe static const char *instance(int i)
{
	return pathf("%s/instances/ho_%d", kernel_dir(), i);
}

struct attack {
	const char *name;
	/* Runs until it is killed. */
	void (*run)(void);
	/* It starts as root, and calls become_mallory() itself. */
	bool prepares;
	/* One processor is enough for it, and user-mode Linux can run it. */
	bool anywhere;
};

struct step {
	const char *name;
	/* Runs the step. Returns false if its result is wrong. */
	bool (*run)(void);
};

struct watcher {
	const char *name;
	const struct step *steps;
	/* The current step, and since when; 0 between two steps. */
	volatile int step;
	volatile double since;
	volatile unsigned long done;
	volatile bool stop;
	/* For each step, since the attack began. */
	double longest[MAX_STEPS];
	char wrong[160];
};

/* Shared by all processes of the test. */
static struct board {
	/* The bit of the program. */
	volatile unsigned int bit;
	/* Writes of the program that were begun, and that succeeded. */
	volatile unsigned long begun, written;
	struct watcher tracing, program, writing, machine;
	/*
	 * Number of things that the attack has done, the reason why it cannot be made here, and
	 * anything that should have been refused.
	 */
	volatile unsigned long did;
	char skipped[80], found[160];
} *board;

static long page;
/* An open file that root and the attackers share. */
static int shared_fd;

/* --- for attacks --- */

__maybe static void did(void)
{
	__atomic_add_fetch(&board->did, 1, __ATOMIC_RELAXED);
}

__attribute__((noreturn))
__maybe static void cannot(const char *why)
{
	snprintf(board->skipped, sizeof(board->skipped), "%s", why);
	for (;;)
		pause();
}

/* Notes something that the module should have refused. */
__attribute__((format(printf, 1, 2)))
__maybe static void found(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(board->found, sizeof(board->found), format, args);
	va_end(args);
}

/* Opens user_events_data. Returns -1 on failure. */
__maybe static int open_evil(void)
{
	return open(data_path(), O_RDWR | O_CLOEXEC);
}

__maybe static void become(uid_t uid)
{
	struct rlimit processes = { MAX_PROCESSES, MAX_PROCESSES };

	setrlimit(RLIMIT_NPROC, &processes);
	become_user(uid);
}

__maybe static void become_mallory(void)
{
	become(MALLORY);
	/* Otherwise /proc/PID and ptrace() would belong to root, as after a setuid program. */
	prctl(PR_SET_DUMPABLE, 1);
}

struct task {
	void (*run)(long which);
	long which;
};

__maybe static void *run_task(void *task)
{
	struct task mine = *(struct task *)task;

	free(task);
	mine.run(mine.which);
	return NULL;
}

__maybe static void start_threads(int count, void (*run)(long which))
{
	pthread_t thread;

	for (long i = 0; i < count; i++) {
		struct task *task = malloc(sizeof(*task));

		*task = (struct task){ run, i };
		pthread_create(&thread, NULL, run_task, task);
	}
}

/* Threads that run until all are killed. */
__attribute__((noreturn))
__maybe static void threads(int count, void (*run)(long which))
{
	start_threads(count, run);
	for (;;)
		pause();
}

__maybe static void *pages_of(long count)
{
	void *at = mmap(NULL, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Makes faults in pages wait for ever: in missing pages, or in write-protected ones. */
__maybe static void keep_away(void *at, long count, int mode)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range = { (uintptr_t)at, count * page }, .mode = mode };
	struct uffdio_writeprotect protect = { .range = range.range, .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range) ||
	    (mode == UFFDIO_REGISTER_MODE_WP && ioctl(fd, UFFDIO_WRITEPROTECT, &protect)))
		cannot("no such userfaultfd");
}

/* A small random number; each thread has its own. */
__maybe static unsigned int below(unsigned int limit)
{
	static __thread unsigned long long state;

	if (!state)
		state = 0x9e3779b97f4a7c15ull * syscall(SYS_gettid);
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545f4914f6cdd1dull >> 33) % limit;
}

/* --- the watchers --- */

#define GOOD "ho_good"
#define EVIL "ho_evil"
static const char trigger[] = "hist:keys=magic:size=128";

static int program_fd, program_index;

static bool bit_is(bool set)
{
	return within_seconds(60, board->bit == set);
}

static bool hist_is_set(void)
{
	return !append(pathf("%s/events/user_events/%s/trigger", tracing_dir(), GOOD), trigger) && bit_is(true);
}

/*
 * All writes of the program between two readings, and nothing else; a write may be in progress at
 * each.
 */
static bool hist_counts(void)
{
	const char *path = pathf("%s/events/user_events/%s/hist", tracing_dir(), GOOD);
	unsigned long written[2], begun[2], hits;
	struct totals totals[2];

	for (int i = 0; i < 2; i++) {
		written[i] = board->written;
		if (!read_totals(path, &totals[i]))
			return false;
		begun[i] = board->begun;
		if (!i && !within_seconds(60, board->written >= begun[0] + 3))
			return false;
	}
	hits = totals[1].hits - totals[0].hits;
	return hits >= written[1] - begun[0] && hits <= begun[1] - written[0] && totals[1].entries == 1 &&
	       !totals[1].dropped;
}

static bool hist_is_removed(void)
{
	return !append(pathf("%s/events/user_events/%s/trigger", tracing_dir(), GOOD), pathf("!%s", trigger)) &&
	       bit_is(false);
}

static bool is_enabled(void)
{
	return !enable(GOOD, true) && bit_is(true);
}

static bool is_disabled(void)
{
	return !enable(GOOD, false) && bit_is(false);
}

/* The attackers' event, which comes and goes. */
static bool evil_is(bool enabled)
{
	int error = enable(EVIL, enabled);

	return !error || error == -ENOENT || error == -ENODEV;
}

static bool evil_is_enabled(void)
{
	return evil_is(true);
}

static bool evil_is_disabled(void)
{
	return evil_is(false);
}

#define SYSCALL "syscalls/sys_enter_openat"

/* With its own trigger and the kernel's record, which contains the name of the file. */
static bool system_call_is_traced(void)
{
	const char *path = pathf("%s/events/" SYSCALL "/trigger", tracing_dir());

	return access(path, F_OK) || (!append(path, "hist:keys=common_cpu:size=128") &&
				      !append(path, "!hist:keys=common_cpu:size=128"));
}

static bool reads(const char *path, const char *text)
{
	char *all = slurp(path);
	bool right = all && strstr(all, text);

	free(all);
	return right;
}

static bool dynamic_events_are_read(void)
{
	/* If the kernel has user events of its own, it lists only those there. */
	return reads(pathf("%s/dynamic_events", kernel_dir()), kernel_has_own() ? "" : "u:" GOOD " ");
}

static bool status_is_read(void)
{
	return reads(pathf("%s/user_events_status", tracing_dir()), ":" GOOD);
}

static bool shared_file_is_read(void)
{
	char text[64];

	return pread(shared_fd, text, sizeof(text), 0) > 0;
}

static const struct step tracing_steps[] = {
	{ "enables the attackers' event", evil_is_enabled },
	{ "sets a hist trigger", hist_is_set }, { "counts what is written", hist_counts },
	{ "removes the trigger", hist_is_removed }, { "enables an event", is_enabled }, { "disables it", is_disabled },
	{ "traces a system call for a moment", system_call_is_traced },
	{ "reads dynamic_events", dynamic_events_are_read }, { "reads user_events_status", status_is_read },
	{ "reads from a shared file", shared_file_is_read },
	{ "disables the attackers' event", evil_is_disabled }, {},
};

static volatile unsigned int other_bit;

static bool opens(void)
{
	int fd = open(data_path(), O_RDWR | O_CLOEXEC);

	return fd >= 0 && !close(fd);
}

static bool registers(void)
{
	return !reg(program_fd, "ho_other u32 a", &other_bit, NULL);
}

static bool unregisters(void)
{
	return !unreg(program_fd, &other_bit, 0);
}

static bool deletes(void)
{
	return del(program_fd, "ho_nothing") == -ENOENT;
}

static bool forks(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

static const struct step program_steps[] = {
	{ "opens the file", opens }, { "registers", registers }, { "forks", forks }, { "unregisters", unregisters },
	{ "deletes", deletes }, {},
};

static bool writes(void)
{
	const unsigned int magic = 0x600d;
	int done;

	if (!board->bit)
		return true;
	board->begun++;
	done = emit(program_fd, program_index, &magic, sizeof(magic));
	if (done == sizeof(int) + sizeof(magic))
		board->written++;
	else
		board->begun--;
	/* It may have been disabled just now. */
	return done > 0 || done == -EBADF;
}

static const struct step writing_steps[] = { { "writes", writes }, {} };

/*
 * The waits of most tracing steps: for all processors to see a change of the kernel's code, and for
 * RCU's readers. Both take longer on a slow or busy machine.
 */
static bool patches_and_waits(void)
{
	for (int i = 0; i < 2; i++) {
		append("/proc/sys/kernel/sched_schedstats", i ? "0" : "1");
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	}
	return true;
}

/* The others want to patch, too. */
static bool rests(void)
{
	sleep_ms(20);
	return true;
}

static const struct step machine_steps[] = {
	{ "patches code and waits", patches_and_waits }, { "rests", rests }, {},
};

static void watch(struct watcher *watcher)
{
	while (!watcher->stop) {
		for (int i = 0; watcher->steps[i].name; i++) {
			double began = now(), took;

			watcher->step = i;
			watcher->since = began;
			if (!watcher->steps[i].run() && !*watcher->wrong)
				snprintf(watcher->wrong, sizeof(watcher->wrong), "%s", watcher->steps[i].name);
			took = now() - began;
			watcher->since = 0;
			if (took > watcher->longest[i])
				watcher->longest[i] = took;
			watcher->done++;
		}
		sleep_ms(2);
	}
}

static void *watch_writing(void *none)
{
	(void)none;
	watch(&board->writing);
	return NULL;
}

static void program(int ready)
{
	pthread_t thread;

	become_user(VICTIM);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	program_fd = open_data();
	if (reg(program_fd, GOOD " u32 magic", &board->bit, &program_index) || write(ready, "r", 1) != 1)
		_exit(1);
	pthread_create(&thread, NULL, watch_writing, NULL);
	watch(&board->program);
	pthread_join(thread, NULL);
	_exit(0);
}

/* --- the tests --- */

static struct watcher *watchers[WATCHERS];
static pid_t watcher_pids[3];

/* Seconds that a step may take: at least; by the baseline; and at most, even on a slow machine. */
static double least = 1, limit, most = 5;

/* Seconds that a step may take during this attack. */
static double allowed(void)
{
	double machine = FACTOR * board->machine.longest[0];

	if (machine > most)
		machine = most;
	return machine > limit ? machine : limit;
}

/* How many steps each watcher has done. */
struct progress {
	unsigned long done[WATCHERS];
};

static struct progress progress(void)
{
	struct progress progress;

	for (int i = 0; i < WATCHERS; i++)
		progress.done[i] = watchers[i]->done;
	return progress;
}

/*
 * Returns true if each watcher has gone through all its steps `count` times since then, and is in
 * another step by now.
 */
static bool rounds(struct progress since, unsigned int count)
{
	for (int i = 0; i < WATCHERS; i++) {
		unsigned int steps = 0;

		while (watchers[i]->steps[steps].name)
			steps++;
		if (watchers[i]->done <= since.done[i] + count * steps)
			return false;
	}
	return true;
}

static bool is_stuck(void)
{
	for (int i = 0; i < WATCHERS; i++) {
		double since = watchers[i]->since;

		if (since && now() - since > 2 * allowed())
			return true;
	}
	return false;
}

/*
 * Waits for some time, for a whole round, and for the attack to begin; or until a watcher is stuck.
 */
static void let_watch(double seconds)
{
	struct progress since = progress();
	double begin = now();

	while (!is_stuck() && !*board->skipped &&
	       (now() < begin + seconds || !rounds(since, 1) || (!board->did && now() < begin + 40)))
		sleep_ms(20);
}

/* Waits until watchers that were held up go on. */
static bool watchers_are_back(void)
{
	struct progress since = progress();

	return within_seconds(60, rounds(since, 0));
}

/* Kills all processes of a group, and waits for them. */
static bool end_group(pid_t group)
{
	return within_seconds(60, ({
		kill(-group, SIGKILL);
		while (waitpid(-group, NULL, WNOHANG) > 0)
			;
		kill(-group, 0) && errno == ESRCH;
	}));
}

/* Removes instances, and persistent events of the attackers. Returns true if all are gone. */
static bool is_clean(void)
{
	char *text = slurp(pathf("%s/user_events_status", tracing_dir())), *rest = text, *line;
	bool clean = text;
	int fd = open_data();

	for (int i = 0; i < INSTANCES; i++)
		rmdir(instance(i));
	enable(EVIL, false);
	append(pathf("%s/events/" SYSCALL "/enable", kernel_dir()), "0");
	while ((line = strsep(&rest, "\n")) && *line) {
		line = strchr(line, ':') ? strchr(line, ':') + 1 : line;
		line[strcspn(line, " .")] = 0;
		if (!strcmp(line, GOOD) || !strcmp(line, "ho_other"))
			continue;
		del(fd, line);
		clean = false;
	}
	close(fd);
	free(text);
	return clean;
}

/*
 * Stands in for an attacker in the baseline: registers a bit for an event, and computes. It takes
 * time from the watchers like an attacker that always runs: with fewer processors than these,
 * watchers wait for their turn.
 */
static void only_computes(void)
{
	static volatile unsigned int bit;

	if (!reg(open_evil(), EVIL " u32 a", &bit, NULL))
		did();
	for (int i = 0; i < RUNNING - 1 && fork() > 0; i++)
		;
	for (;;)
		bit += 0;
}

static pid_t start_attack(const struct attack *attack)
{
	pid_t pid = fork();

	if (!pid) {
		setpgid(0, 0);
		/*
		 * The watchers measure waiting for locks, not for a processor; on a single
		 * processor this does not help.
		 */
		if (sysconf(_SC_NPROCESSORS_ONLN) > 1 && nice(10) < 0)
			_exit(1);
		if (!attack->prepares)
			become_mallory();
		attack->run();
		for (;;)
			pause();
	}
	setpgid(pid, pid);
	return pid;
}

static void forget(void)
{
	board->did = 0;
	*board->skipped = *board->found = 0;
	for (int i = 0; i < WATCHERS; i++) {
		memset(watchers[i]->longest, 0, sizeof(watchers[i]->longest));
		*watchers[i]->wrong = 0;
	}
}

static void take_baseline(void)
{
	static const struct attack nothing = { .run = only_computes };
	const char *longest = "";
	pid_t pid;

	forget();
	limit = least;
	pid = start_attack(&nothing);
	let_watch(slow_kernel() ? 5 : 3);
	end_group(pid);
	for (int i = 0; i < WATCHERS; i++) {
		if (*watchers[i]->wrong)
			die("baseline: %s: %s is wrong", watchers[i]->name, watchers[i]->wrong);
		for (int j = 0; watchers[i]->steps[j].name; j++) {
			if (limit >= FACTOR * watchers[i]->longest[j])
				continue;
			limit = FACTOR * watchers[i]->longest[j];
			longest = watchers[i]->steps[j].name;
		}
	}
	note("baseline: a step may take %.1f s%s%s", limit, *longest ? ", by: " : "", longest);
	within_seconds(20, is_clean());
}

/* Returns true if a step of a watcher was late. Prints the longest step, or all late ones. */
static bool is_late(const struct watcher *watcher)
{
	int worst = 0;
	bool late = false;

	for (int i = 0; watcher->steps[i].name; i++) {
		if (watcher->longest[i] > watcher->longest[worst])
			worst = i;
		if (watcher->longest[i] > allowed()) {
			note("%s: took %.2f s: %s", watcher->name, watcher->longest[i], watcher->steps[i].name);
			late = true;
		}
	}
	if (!late)
		note("%s: longest %.2f s: %s", watcher->name, watcher->longest[worst], watcher->steps[worst].name);
	return late;
}

/* One run of an attack. */
struct outcome {
	bool late, wrong, ended, clean;
};

static struct outcome make_attack(const struct attack *attack)
{
	double seconds = long_run() ? 10 : slow_kernel() ? 1 : 0.5;
	struct outcome outcome = {};
	pid_t pid;

	forget();
	pid = start_attack(attack);
	let_watch(seconds);
	outcome.ended = end_group(pid);
	if (!watchers_are_back())
		die("%s: the watchers never come back", attack->name);
	outcome.clean = within_seconds(slow_kernel() ? 60 : 20, is_clean());
	if (*board->skipped)
		return outcome;
	note("a step may take %.1f s: the machine itself took %.2f s", allowed(), board->machine.longest[0]);
	for (int i = 0; i < WATCHERS - 1; i++) {
		outcome.late |= is_late(watchers[i]);
		if (*watchers[i]->wrong) {
			note("%s: wrong: %s", watchers[i]->name, watchers[i]->wrong);
			outcome.wrong = true;
		}
	}
	if (*board->found) {
		note("not refused: %s", board->found);
		outcome.wrong = true;
	}
	outcome.wrong |= !board->did;
	return outcome;
}

static void run_attack(const struct attack *attack)
{
	struct outcome outcome = make_attack(attack);

	for (int run = 1; run < RUNS && outcome.late && !outcome.wrong && outcome.ended && outcome.clean; run++) {
		note("%s: once more, is it the machine?", attack->name);
		take_baseline();
		outcome = make_attack(attack);
	}
	if (*board->skipped) {
		skip(board->skipped, "%s", attack->name);
		return;
	}
	ok(!outcome.late && !outcome.wrong, "%s: nobody else is held up (%lu times)", attack->name, board->did);
	if (!ok(outcome.ended && outcome.clean, "%s: and nothing is left", attack->name))
		note("processes are %s; %s", outcome.ended ? "gone" : "left",
		     slurp(pathf("%s/user_events_status", tracing_dir())));
}

static pid_t start_watcher(struct watcher *watcher)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	watch(watcher);
	_exit(0);
}

static void start_watchers(void)
{
	int ready[2];
	char byte;

	board = mmap(NULL, (sizeof(*board) + page - 1) / page * page, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	board->tracing.name = "tracing";
	board->tracing.steps = tracing_steps;
	board->program.name = "program";
	board->program.steps = program_steps;
	board->writing.name = "writing";
	board->writing.steps = writing_steps;
	board->machine.name = "machine";
	board->machine.steps = machine_steps;
	watchers[0] = &board->tracing;
	watchers[1] = &board->program;
	watchers[2] = &board->writing;
	watchers[3] = &board->machine;
	shared_fd = open(pathf("%s/user_events_status", tracing_dir()), O_RDONLY | O_CLOEXEC);
	if (shared_fd < 0 || pipe(ready))
		die("user_events_status");
	if (!(watcher_pids[0] = fork()))
		program(ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		die("the program registers");
	watcher_pids[1] = start_watcher(&board->tracing);
	watcher_pids[2] = start_watcher(&board->machine);
}

/* Runs all attacks, or only those with an argument in their name. */
__maybe static int run_attacks(const struct attack *attacks, int argc, char **argv)
{
	static const char *const uffd = "/proc/sys/vm/unprivileged_userfaultfd";
	char *uffd_before = slurp(uffd), *buffer = slurp(pathf("%s/buffer_size_kb", kernel_dir()));
	int status, failed = 0;

	/* For attacks that execute a program. */
	if (argc > 1 && !strcmp(argv[1], "exit"))
		return 0;
	page = sysconf(_SC_PAGESIZE);
	/* Orphans of the attackers are waited for, too. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	open_to_group(true);
	append(uffd, "1");
	append(pathf("%s/buffer_size_kb", kernel_dir()), "64");
	start_watchers();
	/*
	 * On such a kernel, a fork alone takes many times as long, and cannot be interrupted; and
	 * a step waits again and again for a lock that an attack holds for 45 milliseconds.
	 */
	if (slow_kernel())
		least = most = 10;
	take_baseline();
	for (; attacks->name; attacks++) {
		bool wanted = argc < 2;

		for (int i = 1; i < argc; i++)
			wanted |= !!strstr(attacks->name, argv[i]);
		if (wanted && !(attacks->anywhere && rest_only()))
			run_attack(attacks);
	}

	/* Tracing depends on the program's bit and writes, so it is stopped first. */
	board->tracing.stop = board->machine.stop = true;
	for (int i = 2; i >= 0; i--) {
		if (i == 0)
			board->program.stop = board->writing.stop = true;
		failed += waitpid(watcher_pids[i], &status, 0) != watcher_pids[i] || status;
	}
	ok(!failed, "the watchers end by themselves");
	close(shared_fd);
	ok(within_seconds(20, !exists(GOOD) && !exists(EVIL) && !exists("ho_other")), "in the end all is gone");
	append(uffd, uffd_before ? uffd_before : "0");
	append(pathf("%s/buffer_size_kb", kernel_dir()), buffer ? pathf("%d", atoi(buffer)) : "1408");
	truncate_file(pathf("%s/trace", kernel_dir()));
	open_to_group(false);
	finish();
}

#endif
