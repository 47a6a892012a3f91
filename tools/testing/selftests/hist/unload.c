// SPDX-License-Identifier: GPL-2.0
/*
 * The module can never be unloaded while one of its files is open, and always otherwise, under
 * load, and with processes in its directories.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include "tracing.h"

static volatile bool stop;
static char ko[PATH_MAX];

/* As rmmod(8) does it. A module in use is EAGAIN. */
static int unload(void)
{
	return syscall(SYS_delete_module, "rhist", O_NONBLOCK) ? -errno : 0;
}

/*
 * The same, for a module that may still be held for a moment, as by a user event until it is freed.
 */
static int unload_within(int seconds)
{
	double until = now() + seconds;
	int error;

	while ((error = unload()) == -EAGAIN && now() < until)
		sleep_ms(1);
	return error;
}

static bool loaded(void)
{
	char *modules = slurp("/proc/modules");
	bool is = modules && (!strncmp(modules, "rhist ", 6) || strstr(modules, "\nrhist "));

	free(modules);
	return is;
}

static const char *in_tree(const char *name)
{
	return pathf("%s/%s", tracing_dir(), name);
}

/* --- files that are open */

static void refused(const char *name, int flags)
{
	int fd = open(in_tree(name), flags | O_CLOEXEC | O_NONBLOCK), error;

	if (fd < 0) {
		ok(false, "%s can be opened: %s", name, errno_name(errno));
		return;
	}
	error = unload();
	ok(error == -EAGAIN && loaded(), "in use while %s is open%s", name, (flags & O_ACCMODE) ? " for writing" : "");
	if (error != -EAGAIN)
		note("%s", errno_name(error));
	close(fd);
	if (!error && load_module(ko))
		die("loading it again");
}

static void open_files(void)
{
	static const struct { const char *name; int flags; } files[] = {
		{ "events/sched/sched_switch/trigger", O_RDONLY },
		{ "events/sched/sched_switch/trigger", O_WRONLY | O_APPEND },
		{ "events/sched/sched_switch/hist", O_RDONLY },
		{ "events/sched/sched_switch/hist_debug", O_RDONLY },
		{ "events/sched/sched_switch/hist_jsonl", O_RDONLY },
		{ "events/sched/sched_switch/hist_delta", O_RDONLY },
		{ "events/sched/sched_switch/hist_delta_jsonl", O_RDONLY },
		{ "error_log", O_RDONLY },
		{ ".", O_RDONLY | O_DIRECTORY },
		{ "events", O_RDONLY | O_DIRECTORY },
		{ "events/sched", O_RDONLY | O_DIRECTORY },
		{ "events/sched/sched_switch", O_RDONLY | O_DIRECTORY },
		{ "per_cpu/cpu0", O_RDONLY | O_DIRECTORY },
		{ "README", O_RDONLY },
		{ "trace", O_RDONLY },
		{ "trace_pipe", O_RDONLY },
		{ "trace_marker", O_WRONLY },
		{ "set_event", O_RDONLY },
		{ "options/overwrite", O_RDONLY },
		{ "per_cpu/cpu0/trace_pipe_raw", O_RDONLY },
		{ "events/sched/sched_switch/enable", O_RDONLY },
		{ "events/sched/sched_switch/format", O_RDONLY },
	};
	void *map;
	int fd;

	for (unsigned int i = 0; i < sizeof(files) / sizeof(*files); i++)
		refused(files[i].name, files[i].flags);
	/* a mapping outlives its descriptor */
	fd = open(in_tree("per_cpu/cpu0/trace_pipe_raw"), O_RDONLY | O_NONBLOCK);
	map = mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED) {
		skip("it cannot be mapped", "in use while a ring buffer is mapped");
	} else {
		ok(unload() == -EAGAIN && loaded(), "in use while a ring buffer is mapped");
		munmap(map, getpagesize());
	}
}

/* --- going under load */

static const char *const triggers[][2] = {
	{ "syscalls/sys_enter_getpgid", "hist:keys=pid" },
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_cpu:size=128" },
	/* Makes an object: see kept. */
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_ustack:size=128" },
	{ "raw_syscalls/sys_enter", "hist:keys=id" },
	{ "sched/sched_switch", "hist:keys=next_pid" },
	{ "sched/sched_waking", "hist:keys=comm" },
	{ "irq/softirq_entry", "hist:keys=vec" },
	{ "timer/hrtimer_expire_entry", "hist:keys=function" },
	{ "kprobes/rhist_u", "hist:keys=pid" },
	{ "synthetic/rhist_u", "hist:keys=a" },
};

#define CHAIN "synthetic/rhist_uc"
#define SNAPSHOT ":onchange($c).snapshot()"

/*
 * A chain: the exit of a system call fires a synthetic event, with a field of the entry, which
 * needs a helper trigger. Its histogram saves, and takes snapshots.
 */
static const char *const chain[][2] = {
	{ "syscalls/sys_enter_getpgid", "hist:keys=common_pid:p=pid:size=128" },
	{ "syscalls/sys_exit_getpgid", "hist:keys=common_pid:q=$p:onmatch(syscalls.sys_enter_getpgid).trace(rhist_uc,$q,pid,common_comm)"
				       ":onmax($q).save(ret,common_comm):size=128" },
	{ CHAIN, "hist:keys=who:c=p/64,d=q:onmax($d).save(who)" SNAPSHOT ":size=128" },
};

static bool have_snapshots(void)
{
	return !access(pathf("%s/snapshot", kernel_dir()), F_OK);
}

static int define_chain(void)
{
	return append(pathf("%s/synthetic_events", kernel_dir()), "rhist_uc pid_t p; pid_t q; char who[]");
}

/* Parts of the tree that a process may keep without having them open. */
static const char *const kept[] = {
	".", "events", "events/sched", "events/sched/sched_switch", "events/kprobes/rhist_u", "per_cpu/cpu0",
	"events/sched/sched_switch/trigger", "events/sched/sched_switch/hist", "events/sched/sched_switch/hist_debug",
	"events/sched/sched_switch/hist_jsonl", "events/sched/sched_switch/hist_delta", "events/sched/sched_switch/enable", "error_log", "README", "trace",
	"user_objects", "user_objects/list", "user_objects/0", "user_objects/0/rules", "user_objects/0/image",
};
#define KEPT (sizeof(kept) / sizeof(*kept))

static void *fire_load(void *cpu)
{
	/* Leave CPU time for the threads that unload. */
	struct timespec t = { 0, long_run() && !slow_kernel() ? 1000 : 1000000 };

	pin((long)cpu);
	for (unsigned long i = 0; !stop; i++) {
		syscall(SYS_getpgid, i % 500);
		if (i % 64 == 0)
			nanosleep(&t, NULL);
	}
	return NULL;
}

/* Walks, lists, reads and writes all the time, with or without the tree. */
static void *visit(void *unused)
{
	unsigned int seed = 1;

	(void)unused;
	while (!stop) {
		DIR *dir = opendir(in_tree(kept[rand_r(&seed) % 6]));
		struct stat st;

		while (dir && readdir(dir))
			;
		if (dir)
			closedir(dir);
		stat(in_tree("events/irq/softirq_entry/hist"), &st);
		free(slurp(in_tree("events/sched/sched_waking/hist")));
		free(slurp(in_tree("events/sched/sched_waking/hist_delta")));
		append(in_tree("events/task/task_newtask/trigger"), "hist:keys=pid:size=128");
		append(in_tree("events/task/task_newtask/trigger"), "!hist:keys=pid");
		append(in_tree("events/task/task_newtask/trigger"), "hist:keys=nosuch");
		sleep_ms(5);
	}
	return NULL;
}

/*
 * Returns true for an error that means "no longer there". The inode of a dead directory has lost
 * all rights: EACCES.
 */
static bool gone(int error)
{
	return error == EACCES || error == ENOENT || error == EIO || error == ENODEV || error == ESTALE || error == ENXIO || error == ENOTDIR;
}

struct child {
	pid_t pid;
	int go, said;
};

/* A process with its working directory in the tree, like a shell; it looks around on command. */
static struct child stand_in(const char *name)
{
	int go[2], said[2];
	struct child child;

	if (pipe2(go, O_CLOEXEC) || pipe2(said, O_CLOEXEC))
		abort();
	child.pid = fork();
	if (!child.pid) {
		char c, answer[128] = "";
		int fd;

		/* Close all other files of the visitor, and the other ends of the pipes. */
		if (dup2(go[0], 100) < 0 || dup2(said[1], 101) < 0)
			_exit(1);
		close_range(3, 99, 0);
		close_range(102, ~0U, 0);
		go[0] = 100;
		said[1] = 101;
		if (chdir(in_tree(name)))
			snprintf(answer, sizeof(answer), "chdir: %s", errno_name(errno));
		if (write(said[1], "x", 1) != 1 || read(go[0], &c, 1) != 1)
			_exit(1);
		fd = open(".", O_RDONLY | O_DIRECTORY);
		if (!*answer && (fd >= 0 || !gone(errno)))
			snprintf(answer, sizeof(answer), "open .: %s", errno_name(fd < 0 ? errno : 0));
		fd = open("trigger", O_RDONLY);
		if (!*answer && (fd >= 0 || !gone(errno)))
			snprintf(answer, sizeof(answer), "open trigger: %s", errno_name(fd < 0 ? errno : 0));
		fd = open("sched_switch/hist", O_RDONLY);
		if (!*answer && (fd >= 0 || !gone(errno)))
			snprintf(answer, sizeof(answer), "open hist: %s", errno_name(fd < 0 ? errno : 0));
		mkdir("x", 0700);
		rmdir("trigger");
		unlink("trigger");
		if (write(said[1], answer, strlen(answer) + 1) < 0)
			_exit(1);
		_exit(0);
	}
	close(go[0]);
	close(said[1]);
	child.go = go[1];
	child.said = said[0];
	/* Wait until it is in the directory. */
	if (read(child.said, &(char){ 0 }, 1) != 1)
		note("a child died");
	return child;
}

/* Returns the child's complaint; empty if all is well. */
static const char *look(struct child *child, char answer[128])
{
	answer[0] = 0;
	if (write(child->go, "g", 1) != 1 || read(child->said, answer, 127) <= 0)
		strcpy(answer, "a child died");
	close(child->go);
	close(child->said);
	waitpid(child->pid, NULL, 0);
	return answer;
}

static unsigned int failures;

static void wrong(int round, const char *what, const char *detail)
{
	if (failures++ < 20)
		note("round %d: %s: %s", round, what, detail);
}

static void attach(int round)
{
	for (unsigned int i = 0; i < sizeof(triggers) / sizeof(*triggers); i++) {
		int error = append(pathf("%s/events/%s/trigger", tracing_dir(), triggers[i][0]), triggers[i][1]);

		if (error)
			wrong(round, triggers[i][0], errno_name(error));
	}
	for (unsigned int i = 0; i < sizeof(chain) / sizeof(*chain); i++) {
		const char *text = chain[i][1], *snapshot = have_snapshots() ? NULL : strstr(text, SNAPSHOT);
		int error;

		if (snapshot)
			text = pathf("%.*s%s", (int)(snapshot - text), text, snapshot + strlen(SNAPSHOT));
		error = append(pathf("%s/events/%s/trigger", tracing_dir(), chain[i][0]), text);
		if (error)
			wrong(round, chain[i][0], errno_name(error));
	}
}

static unsigned long long chain_hits;

/* Waits until the chain has worked to its end, so that it is active when the module goes. */
static void await_chain(int round)
{
	struct totals t = { 0 };

	for (double until = now() + 20; !t.hits && now() < until; sleep_ms(1))
		if (!read_totals(in_tree("events/" CHAIN "/hist"), &t))
			break;
	if (!t.hits)
		wrong(round, "the chain", "it has no hits");
	if (append(pathf("%s/synthetic_events", kernel_dir()), "!rhist_uc") != -EBUSY)
		wrong(round, "the synthetic event of the chain", "it can be deleted");
	chain_hits += t.hits;
}

/* Checks that nothing of it is held after the module is gone. */
static void chain_is_gone(int round)
{
	int error = append(pathf("%s/synthetic_events", kernel_dir()), "!rhist_uc");

	if (error)
		wrong(round, "deleting the synthetic event of the chain", errno_name(error));
	error = define_chain();
	if (error)
		wrong(round, "defining it again", errno_name(error));
	/* While a conditional snapshot is enabled, snapshot cannot be written to. */
	error = have_snapshots() ? append(pathf("%s/snapshot", kernel_dir()), "1") : 0;
	if (error)
		wrong(round, "a snapshot of the kernel's own", errno_name(error));
}

/* Checks that the tree works: a number of events is counted. */
static void counts(int round)
{
	struct totals t;
	int error = append(in_tree("events/syscalls/sys_enter_getsid/trigger"), "hist:keys=pid");

	if (error) {
		wrong(round, "a trigger after loading", errno_name(error));
		return;
	}
	for (int i = 0; i < 5; i++)
		syscall(SYS_getsid, 0);
	if (!read_totals(in_tree("events/syscalls/sys_enter_getsid/hist"), &t) || t.hits != 5 || t.sum != 5)
		wrong(round, "counting after loading", pathf("%llu hits", t.hits));
	/* and stays attached when the module goes */
}

/* Kept descriptors must lead nowhere. */
static void probe_kept(int round, int *fds, const char *when)
{
	for (unsigned int i = 0; i < KEPT; i++) {
		static const char *const below[] = { ".", "events", "trigger", "hist", "sched/sched_switch/hist", "stats" };
		char buffer[64];
		int fd = open(pathf("/proc/self/fd/%d", fds[i]), O_RDONLY | O_NONBLOCK);

		if (fd >= 0 || !gone(errno))
			wrong(round, pathf("%s: opening what was %s", when, kept[i]), errno_name(fd < 0 ? errno : 0));
		if (fd >= 0) {
			if (read(fd, buffer, sizeof(buffer)) > 0)
				wrong(round, "and reading it", kept[i]);
			close(fd);
		}
		for (unsigned int j = 0; j < sizeof(below) / sizeof(*below); j++) {
			fd = openat(fds[i], below[j], O_RDONLY | O_NONBLOCK);
			if (fd >= 0 || !gone(errno))
				wrong(round, pathf("%s: opening %s below what was %s", when, below[j], kept[i]),
				      errno_name(fd < 0 ? errno : 0));
			if (fd >= 0)
				close(fd);
		}
	}
}

static void one_round(int round)
{
	static const char *const stands[] = { ".", "events", "events/sched", "events/sched/sched_switch" };
	struct child children[4];
	int fds[KEPT], inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), watches[KEPT], error;
	char bound[] = "/tmp/rhist-bound-XXXXXX", answer[128], buffer[4096];
	bool mounted;
	int looked = 0;

	attach(round);
	for (int i = 0; i < 4; i++)
		children[i] = stand_in(stands[i]);
	for (unsigned int i = 0; i < KEPT; i++) {
		fds[i] = open(in_tree(kept[i]), O_PATH | O_CLOEXEC);
		if (fds[i] < 0)
			wrong(round, kept[i], errno_name(errno));
		watches[i] = inotify_add_watch(inotify, in_tree(kept[i]), IN_ALL_EVENTS);
		if (watches[i] < 0)
			wrong(round, "inotify_add_watch", errno_name(errno));
	}
	/* A mount of a directory of the tree elsewhere must not keep the module, either. */
	mounted = round % 2 && mkdtemp(bound) && !mount(in_tree("events"), bound, NULL, MS_BIND, NULL);

	await_chain(round);
	/* Visitors hold files open now and then. */
	error = unload_within(60);
	if (error) {
		wrong(round, "unloading", errno_name(error));
		goto out;
	}
	if (!access(tracing_dir(), F_OK) || errno != ENOENT)
		wrong(round, "the tree is gone", "it is not");
	if (!access(pathf("%s/instances/rhist", kernel_dir()), F_OK))
		wrong(round, "the instance is gone", "it is not");
	/* Nothing is held any more: the events can be deleted and created again. */
	error = append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_u");
	if (error)
		wrong(round, "deleting the kprobe event", errno_name(error));
	append(pathf("%s/kprobe_events", kernel_dir()), "p:rhist_u " SYS_FUNCTION("getpgid") " pid=" SYS_ARGUMENT ":u64");
	error = append(pathf("%s/synthetic_events", kernel_dir()), "!rhist_u");
	if (error)
		wrong(round, "deleting the synthetic event", errno_name(error));
	append(pathf("%s/synthetic_events", kernel_dir()), "rhist_u u64 a");
	chain_is_gone(round);

	probe_kept(round, fds, "unloaded");
	if (mounted && access(pathf("%s/sched/sched_switch/trigger", bound), F_OK) == 0)
		wrong(round, "the bind mount", "still leads to a trigger");
	for (; looked < 2; looked++)
		if (*look(&children[looked], answer))
			wrong(round, pathf("standing in %s", stands[looked]), answer);
	error = load_module(ko);
	if (error) {
		wrong(round, "loading", errno_name(error));
		printf("# dmesg tells why\n");
		goto out;
	}
	counts(round);
	/* Paths kept from the old tree must not lead into the new one. */
	probe_kept(round, fds, "loaded again");
out:
	for (; looked < 4; looked++)
		if (*look(&children[looked], answer))
			wrong(round, pathf("standing in %s", stands[looked]), answer);
	while (read(inotify, buffer, sizeof(buffer)) > 0)
		;
	if (round % 3)
		for (unsigned int i = 0; i < KEPT; i++)
			inotify_rm_watch(inotify, watches[i]);
	close(inotify);
	if (mounted && umount2(bound, 0))
		wrong(round, "umount", errno_name(errno));
	rmdir(bound);
	for (unsigned int i = 0; i < KEPT; i++)
		close(fds[i]);
}

static void under_load(int rounds)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t loads[cpus], visitor;
	char *text;
	double from = now();

	append(pathf("%s/kprobe_events", kernel_dir()), "p:rhist_u " SYS_FUNCTION("getpgid") " pid=" SYS_ARGUMENT ":u64");
	append(pathf("%s/synthetic_events", kernel_dir()), "rhist_u u64 a");
	/* both ring buffers are as large as this, and swapped all the time */
	append(pathf("%s/buffer_size_kb", kernel_dir()), "64");
	if (define_chain())
		die("a synthetic event");
	for (long i = 0; i < cpus; i++)
		pthread_create(&loads[i], NULL, fire_load, (void *)i);
	pthread_create(&visitor, NULL, visit, NULL);
	for (int round = 1; round <= rounds && failures < 20; round++) {
		one_round(round);
		if (round % 20 == 0)
			note("%d rounds, %.0f s", round, now() - from);
	}
	stop = true;
	pthread_join(visitor, NULL);
	for (long i = 0; i < cpus; i++)
		pthread_join(loads[i], NULL);
	ok(!failures, "unloaded and loaded %d times under load, with a chain of triggers of %llu hits", rounds, chain_hits);

	if (!loaded())
		ok(!load_module(ko), "loaded in the end");
	ok(!unload(), "not in use when nothing is open");
	text = slurp("/proc/vmallocinfo");
	ok(text && !strstr(text, "[rhist]"), "no memory of the module's is left in vmalloc");
	free(text);
	append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_u");
	append(pathf("%s/synthetic_events", kernel_dir()), "!rhist_u");
	ok(!append(pathf("%s/synthetic_events", kernel_dir()), "!rhist_uc"), "the synthetic event of the chain can be deleted");
	append(pathf("%s/snapshot", kernel_dir()), "0");
	ok(access(pathf("%s/events/kprobes/rhist_u", kernel_dir()), F_OK), "no event of the test is left");

	/* Only kernels that look for leaks have this. */
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	if (access("/sys/kernel/debug/kmemleak", W_OK)) {
		skip("this kernel does not look for leaks", "no leak");
	} else {
		/*
		 * kmemleak does not judge fresh allocations yet: two scans with a pause between
		 * them
		 */
		put_len("/sys/kernel/debug/kmemleak", 0, "scan", 4);
		sleep_ms(6000);
		put_len("/sys/kernel/debug/kmemleak", 0, "scan", 4);
		text = slurp("/sys/kernel/debug/kmemleak");
		ok(text && !strstr(text, "rhist"), "no leak");
		if (text && strstr(text, "rhist"))
			note("%.3000s", text);
		free(text);
	}
	ok(!load_module(ko), "and it can be loaded again");
}

/* --- the instance */

/* An instance of this name that a user has made is not touched. */
static void instance(void)
{
	const char *dir = pathf("%s/instances/rhist", kernel_dir());
	const char *kb = pathf("%s/buffer_size_kb", dir);
	static char log[1 << 20];
	char *before, *after;
	int fd, error;

	ok(rmdir(dir) && errno == EBUSY, "rhist's instance cannot be removed");
	if (!ok(!unload() && access(dir, F_OK) && errno == ENOENT, "it goes with the module"))
		return;
	mkdir(dir, 0700);
	before = slurp(kb);
	error = load_module(ko);
	ok(error == -EBUSY && !loaded(), "not loaded if somebody has made an instance of this name");
	ok(klogctl(3, log, sizeof(log) - 1) > 0 && strstr(log, "instances/rhist was not made by rhist"), "the log says why");
	after = slurp(kb);
	ok(before && after && !strcmp(before, after) && !access(pathf("%s/events/sched", dir), F_OK),
	   "it is as it was");
	ok(!rmdir(dir) && !load_module(ko), "loaded after it was removed");
	free(before);
	free(after);

	/* An instance of rhist's own that stayed is used again, and removed. */
	fd = open(pathf("%s/trace_pipe", dir), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ok(fd >= 0 && !unload() && !access(dir, F_OK), "rhist's instance stays while a file of it is open");
	ok(!load_module(ko) && rmdir(dir) && errno == EBUSY, "and is used again");
	close(fd);
	ok(!unload() && access(dir, F_OK), "and removed then");
	error = load_module(ko);
	fd = error ? -1 : open(pathf("%s/trace_pipe", dir), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	unload();
	close(fd);
	ok(fd >= 0 && !rmdir(dir) && !load_module(ko), "or by rmdir");
}

/*
 * While a histogram in an instance has a variable, the instance cannot be removed; unloading the
 * module removes the histogram.
 */
static void variable(void)
{
	const char *dir = pathf("%s/instances/rhist_u", kernel_dir());
	const char *trigger = in_tree("instances/rhist_u/events/syscalls/sys_enter_getpgid/trigger");
	int error;

	ok(!mkdir(dir, 0700) && !append(trigger, "hist:keys=common_pid:p=pid:size=128") && rmdir(dir) && errno == EBUSY,
	   "an instance with a variable cannot be removed");
	ok(!unload(), "but the module can");
	error = rmdir(dir) ? errno : 0;
	ok(!error, "and then the instance: %s", errno_name(error));
	if (load_module(ko))
		die("loading it again");
}

/* --- the file that is in the root of tracefs for an instant */

/* Leaves the loader of the module a processor. */
static void pause_unless_long(void)
{
	if (!long_run())
		sleep_ms(1);
}

static void *list(void *unused)
{
	(void)unused;
	while (!stop) {
		DIR *dir = opendir(kernel_dir());

		while (dir && readdir(dir))
			;
		if (dir)
			closedir(dir);
	}
	return NULL;
}

static int caught[64];
static unsigned int n_caught;
static volatile bool loading;

static void *catch(void *name)
{
	while (!stop) {
		int fd = !loading ? -1 : open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;

		if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && n_caught < 64)
			caught[n_caught++] = fd;
		else if (fd >= 0)
			close(fd);
		if (!loading)
			pause_unless_long();
	}
	return NULL;
}

/*
 * While the module is loaded, a file of the name of its directory exists for an instant. A process
 * that opens it gets nothing of the module. Listing the directory all the time makes the instant
 * longer.
 */
static void instant(int rounds)
{
	pthread_t threads[3];
	int bad = 0, error;
	char text[8];

	stop = false;
	unload();
	pthread_create(&threads[0], NULL, list, NULL);
	pthread_create(&threads[1], NULL, list, NULL);
	pthread_create(&threads[2], NULL, catch, (void *)tracing_dir());
	for (int i = 0; i < rounds; i++) {
		loading = true;
		error = load_module(ko);
		loading = false;
		if (error)
			note("loading: %s", errno_name(error));
		bad += !!error;
		unload_within(10);
	}
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	stop = false;
	bad += loaded();
	if (bad)
		note("%d times it could not be loaded or unloaded", bad);
	for (unsigned int i = 0; i < n_caught; i++) {
		bad += read(caught[i], text, sizeof(text)) != 0;
		close(caught[i]);
	}
	ok(!bad, "the file that shows the root of tracefs was opened %u times", n_caught);
	if (!loaded() && load_module(ko))
		die("loading it again");
}

/* --- the synthetic event that shows where to enter commands of dynamic_events */

static void *enable(void *file)
{
	while (!stop) {
		append(file, "1");
		append(file, "0");
		pause_unless_long();
	}
	return NULL;
}

static void anchor_event(int rounds)
{
	const char *events = pathf("%s/kprobe_events", kernel_dir());
	const char *anchor = pathf("%s/events/kprobes/rhist_anchor", kernel_dir());
	pthread_t enabling;
	int failed = 0, left = 0;

	unload();
	append(events, "p:rhist_anchor filp_close");
	ok(!load_module(ko) && !access(anchor, F_OK) &&
	   !append(pathf("%s/dynamic_events", kernel_dir()), "u:rhist_u u32 a") &&
	   !append(pathf("%s/dynamic_events", kernel_dir()), "!u:rhist_u u32 a"),
	   "commands are taken if somebody has a kprobe event of its name, which stays");
	unload_within(10);
	ok(!append(events, "-:rhist_anchor"), "and can be deleted");

	append(events, "p:rhist_u filp_open");
	pthread_create(&enabling, NULL, enable, (void *)pathf("%s/events/kprobes/enable", kernel_dir()));
	for (int i = 0; i < rounds; i++) {
		failed += !!load_module(ko);
		left += !access(anchor, F_OK);
		unload();
	}
	stop = true;
	pthread_join(enabling, NULL);
	stop = false;
	append(pathf("%s/events/kprobes/enable", kernel_dir()), "0");
	append(events, "-:rhist_u");
	ok(!failed && !left, "it is removed, although somebody enables all");
	note("%d of %d could not be loaded, %d events left", failed, rounds, left);
	if (!loaded() && load_module(ko))
		die("loading it again");
}

int main(void)
{
	const char *path = getenv("RHIST_KO");

	if (testing_c()) {
		skip("C cannot be unloaded", "unloading");
		finish();
	}
	if (!path || !realpath(path, ko) || access(ko, R_OK)) {
		skip("RHIST_KO is no file", "unloading");
		finish();
	}
	if (!loaded() && load_module(ko))
		die("%s can be loaded", ko);
	open_files();
	ok(!unload() && !loaded(), "not in use when nothing is open");
	ok(access(tracing_dir(), F_OK) && errno == ENOENT, "its tree is gone");
	ok(unload() == -ENOENT, "it cannot go twice");
	ok(!load_module(ko) && loaded() && !access(in_tree("events/sched/sched_switch/hist"), F_OK), "and it comes again");
	ok(load_module(ko) == -EEXIST, "not twice");
	instance();
	variable();
	instant(repeats(1, 10, 100));
	anchor_event(repeats(2, 10, 100));
	under_load(repeats(2, 5, 200));
	finish();
}
