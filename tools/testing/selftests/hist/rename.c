// SPDX-License-Identifier: GPL-2.0
/*
 * rename(2) locks two directories, in an order that depends on their places in the tree, before it
 * looks up the names. Any user may call it. Meanwhile others look up names, list directories, and
 * make and remove instances: nobody may get stuck, or see an error without a reason.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>

#include "tracing.h"

#define MAX_WORKERS 24
/*
 * Seconds in which every worker makes progress. A machine may be slow; workers in a deadlock wait
 * for ever.
 */
#define PATIENCE (slow_kernel() ? 120 : 30)

struct worker {
	const char *name;
	void (*work)(struct worker *w);
	unsigned int seed;
	pid_t pid;
	unsigned long done, wrong;
	char why[200];
};

static struct {
	bool stop;
	struct worker workers[MAX_WORKERS];
} *shared;

/* Directories that both trees have, with a name in each. */
static const char *const dirs[][2] = {
	{ ".", "README" }, { "instances", "rhist_r" }, { "instances/rhist_r", "trace" }, { "events", "sched" },
	{ "events/sched", "sched_switch" }, { "events/sched/sched_switch", "enable" },
	{ "events/sched/sched_waking", "trigger" }, { "instances/rhist_r/events/sched", "sched_waking" },
	{ "options", "overwrite" }, { "per_cpu/cpu0", "trace" },
};
#define DIRS (sizeof(dirs) / sizeof(*dirs))

static unsigned int below(struct worker *w, unsigned int limit)
{
	return rand_r(&w->seed) / 16 % limit;
}

static const char *either_tree(struct worker *w)
{
	return below(w, 2) ? tracing_dir() : kernel_dir();
}

/* Notes a failure. The first one of a worker is shown. */
static void wrong(struct worker *w, const char *what, const char *path, int error)
{
	if (!w->wrong++)
		snprintf(w->why, sizeof(w->why), "%s %s: %s (%d)", what, path, errno_name(error), error);
}

/* --- workers that rename */

static const char *some_name(struct worker *w)
{
	unsigned int dir = below(w, DIRS);

	return pathf("%s/%s/%s", either_tree(w), dirs[dir][0], below(w, 3) ? "nosuch" : dirs[dir][1]);
}

static void rename_once(struct worker *w, const char *from, const char *to, unsigned int flags)
{
	static const int expected[] = { ENOENT, EPERM, EEXIST, EINVAL, ENOTEMPTY, ENOTDIR, EISDIR };
	bool is = false;

	if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags)) {
		for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
			is |= errno == expected[i];
	} else {
		/* A name to itself. */
		is = !strcmp(from, to);
		errno = 0;
	}
	if (!is)
		wrong(w, from, to, errno);
}

static void rename_any(struct worker *w)
{
	/* RENAME_NOREPLACE, RENAME_EXCHANGE */
	static const unsigned int flags[] = { 0, 1, 2 };

	rename_once(w, some_name(w), some_name(w), flags[below(w, 3)]);
}

static void rename_down(struct worker *w)
{
	unsigned int dir = below(w, DIRS);

	rename_once(w, pathf("%s/%s/x", kernel_dir(), dirs[dir][0]), pathf("%s/%s/y", tracing_dir(), dirs[dir][0]), 0);
}

static void rename_from_top(struct worker *w)
{
	rename_once(w, pathf("%s/x", kernel_dir()), pathf("%s/y", tracing_dir()), 0);
}

/* --- workers that do not */

static void look(struct worker *w)
{
	unsigned int dir = below(w, DIRS);
	const char *there = pathf("%s/%s/%s", tracing_dir(), dirs[dir][0], dirs[dir][1]);
	const char *missing = pathf("%s/%s/nosuch%u", tracing_dir(), dirs[dir][0], below(w, 100));
	struct stat st;

	if (stat(there, &st))
		wrong(w, "stat", there, errno);
	if (!stat(missing, &st) || errno != ENOENT)
		wrong(w, "stat", missing, errno);
}

static void list(struct worker *w)
{
	unsigned int dir = below(w, DIRS);
	const char *path = pathf("%s/%s", tracing_dir(), dirs[dir][0]);
	DIR *listing = opendir(path);
	bool found = false;
	struct dirent *d;

	if (!listing) {
		wrong(w, "opendir", path, errno);
		return;
	}
	for (errno = 0; (d = readdir(listing)); errno = 0)
		found |= !strcmp(d->d_name, dirs[dir][1]);
	if (errno)
		wrong(w, "readdir", path, errno);
	else if (!found)
		wrong(w, path, "does not list all", 0);
	closedir(listing);
}

/* Locks the directory of a name exclusively, by opening a name that is not in memory. */
static void open_or_create(struct worker *w)
{
	unsigned int dir = below(w, DIRS);
	const char *there, *missing, *tree = either_tree(w);
	int fd;

	if (!strcmp(dirs[dir][0], "events") || strstr(dirs[dir][1], "sched_") || !strcmp(dirs[dir][0], "instances"))
		dir = 5;
	there = pathf("%s/%s/%s", tree, dirs[dir][0], dirs[dir][1]);
	missing = pathf("%s/%s/nosuch", tree, dirs[dir][0]);
	fd = open(there, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		wrong(w, "open", there, errno);
	else
		close(fd);
	fd = open(missing, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0 || errno != EACCES)
		wrong(w, "create", missing, errno);
}

/* An instance that nobody else knows, made and removed in either tree. */
static void instance(struct worker *w)
{
	const char *name = pathf("instances/rhist_r%d", (int)getpid());
	const char *made = pathf("%s/%s", either_tree(w), name), *gone = pathf("%s/%s", either_tree(w), name);
	const char *file = pathf("%s/%s/events/sched/sched_switch/hist", tracing_dir(), name);
	struct stat st;

	if (mkdir(made, 0700)) {
		wrong(w, "mkdir", made, errno);
		return;
	}
	if (stat(file, &st))
		wrong(w, "stat", file, errno);
	if (rmdir(gone))
		wrong(w, "rmdir", gone, errno);
	if (!stat(file, &st) || errno != ENOENT)
		wrong(w, "stat", file, errno);
}

/*
 * Instance that several workers make and remove: its maker finds it, and latecomers get an error.
 */
static void contended(struct worker *w)
{
	const char *path = pathf("%s/instances/rhist_rc", tracing_dir());

	if (below(w, 2)) {
		if (mkdir(path, 0700) && errno != EEXIST)
			wrong(w, "mkdir", path, errno);
	} else if (rmdir(path) && errno != ENOENT && errno != ENODEV && errno != EBUSY) {
		wrong(w, "rmdir", path, errno);
	}
}

/* Adds a variable, which keeps the instance. */
static void variable(struct worker *w)
{
	const char *trigger = pathf("%s/instances/rhist_r/events/sched/sched_waking/trigger", tracing_dir());
	int error = append(trigger, "hist:keys=pid:v=prio:size=128");

	if (!error)
		error = append(trigger, "!hist:keys=pid:v=prio:size=128");
	if (error)
		wrong(w, "write", trigger, -error);
}

static void change_mode(struct worker *w)
{
	const char *path = pathf("%s/events/sched/%s", either_tree(w), below(w, 2) ? "." : "sched_switch/enable");

	if (chmod(path, strstr(path, "enable") ? 0640 : 0755))
		wrong(w, "chmod", path, errno);
}

/* Drops names from the kernel's memory. */
static void forget(struct worker *w)
{
	int error = put_len("/proc/sys/vm/drop_caches", 0, "2", 1);

	if (error)
		wrong(w, "write", "drop_caches", -error);
	sleep_ms(20);
}

/* --- */

/* The workers that the arguments select, by a part of their name; all without any. */
static char **selected;

static bool is_selected(const char *name)
{
	for (char **part = selected; *part; part++)
		if (strstr(name, *part))
			return true;
	return !*selected;
}

static void start(const char *name, void (*work)(struct worker *w), int number)
{
	static unsigned int seed;
	pid_t pid;

	if (!is_selected(name))
		return;
	for (struct worker *w = shared->workers; number--; ) {
		while (w->work)
			w++;
		*w = (struct worker){ .name = name, .work = work, .seed = seed += 7919 };
		fflush(stdout);
		pid = fork();
		if (pid < 0)
			die("a process");
		if (pid) {
			w->pid = pid;
			continue;
		}
		while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
			work(w);
			__atomic_add_fetch(&w->done, 1, __ATOMIC_RELAXED);
		}
		_exit(0);
	}
}

/* Returns true if all have ended. A worker that waits for a lock for ever cannot be killed. */
static bool ended(void)
{
	bool all = true;

	for (struct worker *w = shared->workers; w->work; w++) {
		if (w->pid > 0 && waitpid(w->pid, NULL, WNOHANG) == w->pid)
			w->pid = 0;
		all &= !w->pid;
	}
	return all;
}

/* Runs the workers. Returns false if one is stuck. */
static bool play(const char *what, double seconds)
{
	unsigned long before[MAX_WORKERS] = {}, stuck = 0;
	double until = now() + seconds, limit;
	bool all;

	while (now() < until)
		sleep_ms(100);
	for (int i = 0; i < MAX_WORKERS; i++)
		before[i] = __atomic_load_n(&shared->workers[i].done, __ATOMIC_RELAXED);
	limit = now() + PATIENCE;
	do {
		sleep_ms(100);
		stuck = 0;
		for (int i = 0; i < MAX_WORKERS && shared->workers[i].work; i++)
			stuck += __atomic_load_n(&shared->workers[i].done, __ATOMIC_RELAXED) == before[i];
	} while (stuck && now() < limit);
	ok(!stuck, "%s: everybody gets on", what);
	shared->stop = true;
	limit = now() + (stuck ? 2 : PATIENCE);
	while (!(all = ended()) && now() < limit)
		sleep_ms(10);
	ok(all, "%s: and comes to an end", what);
	for (struct worker *w = shared->workers; w->work; w++) {
		if (w->pid) {
			kill(w->pid, SIGKILL);
			note("%s is stuck after %lu", w->name, w->done);
		}
		ok(w->done && !w->wrong, "%s: %s, %lu times", what, w->name, w->done);
		if (w->wrong)
			note("%lu wrong, the first: %s", w->wrong, w->why);
	}
	memset(shared, 0, sizeof(*shared));
	return all;
}

static void bystanders(void)
{
	start("looking names up", look, 3);
	start("listing", list, 2);
	start("opening with O_CREAT", open_or_create, 1);
	start("an instance of its own", instance, 1);
	start("an instance of all", contended, 2);
	start("a variable in an instance", variable, 1);
	start("changing modes", change_mode, 1);
	start("forgetting names", forget, 1);
}

static void reload(void)
{
	const char *ko = getenv("RHIST_KO");
	double until = now() + PATIENCE;
	int fd = ko ? open(ko, O_RDONLY | O_CLOEXEC) : -1, error;

	if (fd < 0 || testing_c()) {
		skip("RHIST_KO is no file", "unloading");
		return;
	}
	while ((error = syscall(SYS_delete_module, "rhist", O_NONBLOCK) ? errno : 0) == EAGAIN && now() < until)
		sleep_ms(10);
	ok(!error, "the module can be unloaded: %s", errno_name(error));
	ok(!syscall(SYS_finit_module, fd, "", 0) && !access(pathf("%s/README", tracing_dir()), F_OK), "and loaded again");
	close(fd);
}

int main(int argc, char **argv)
{
	double seconds = long_run() ? 60 : slow_kernel() ? 10 : 4;

	(void)argc;
	selected = argv + 1;
	/* The kernel need not say each time that it forgets names. */
	put_len("/proc/sys/vm/drop_caches", 0, "4", 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("memory");
	mkdir(pathf("%s/instances/rhist_r", kernel_dir()), 0700);
	bystanders();
	if (!play("without a rename", seconds))
		finish();
	bystanders();
	start("renaming", rename_any, 2);
	start("renaming to rhist's", rename_down, 1);
	start("renaming from the top", rename_from_top, 1);
	if (!play("with renames", 2 * seconds))
		finish();
	rmdir(pathf("%s/instances/rhist_rc", kernel_dir()));
	ok(!rmdir(pathf("%s/instances/rhist_r", kernel_dir())), "the instance can be removed");
	reload();
	finish();
}
