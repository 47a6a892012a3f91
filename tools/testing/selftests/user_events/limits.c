// SPDX-License-Identifier: GPL-2.0
// The memory of user events is charged to the program's control group and to its user, within
// limits.
#define _GNU_SOURCE
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include "client.h"

#define MAX_KB "/proc/sys/kernel/user_events_max_kb"
#define MAX_USER_KB "/proc/sys/kernel/user_events_max_user_kb"

enum { ROOT = 0, USER = 1001, OTHER = 1002, MANY = 1 << 17 };

/* Bits in every process of this test. */
static volatile unsigned int bits[MANY / 32];

/* A process that obeys requests until it is ended. */
struct worker {
	pid_t pid;
	int to, from;
};

/* Result of a request: how often it worked, and the errno that ended it. */
struct answer {
	int count, error;
};

/* A request: the operation, how often at most, and a text for it. */
struct question {
	enum { EVENTS, ORIGINALS, BITS, FORK, ENTER, NAMESPACE, HELPER, UNPRIVILEGED, EXIT } what;
	int most;
	char text[512];
};

static struct answer events(int fd, const struct question *q)
{
	static int number;
	struct answer answer = {};

	/* A name that no other process uses, and fields. */
	for (; answer.count < q->most && !answer.error; answer.count++) {
		const char *text = pathf("l%x_%x%s", getpid(), number++, q->text);
		int index, bit;

		if (q->what == ORIGINALS)
			answer.error = reg_original(fd, text, &bit, &index);
		else
			answer.error = reg(fd, text, bits, &index);
		if (q->what == EVENTS && !answer.error)
			unreg(fd, bits, 0);
		answer.count -= !!answer.error;
	}
	return answer;
}

static struct answer all_bits(int fd, const struct question *q)
{
	static int number;
	struct answer answer = {};

	for (; answer.count < q->most && !answer.error; answer.count++) {
		int at = number % MANY;

		answer.error = reg_flags(fd, q->text, &bits[at / 32], 4, at % 32, 0, NULL);
		number += !answer.error;
		answer.count -= !!answer.error;
	}
	return answer;
}

/* Counts how many of the first bits a forked process has. */
static struct answer fork_once(int fd, const struct question *q)
{
	struct answer answer = {};
	int tell[2];
	pid_t pid;

	if (pipe(tell) || (pid = fork()) < 0)
		return (struct answer){ .error = -errno };
	if (!pid) {
		for (int i = 0; i < q->most; i++)
			answer.count += !unreg(fd, &bits[i / 32], i % 32);
		_exit(write(tell[1], &answer, sizeof(answer)) != sizeof(answer));
	}
	close(tell[1]);
	if (read(tell[0], &answer, sizeof(answer)) != sizeof(answer))
		answer.error = -EIO;
	close(tell[0]);
	waitpid(pid, NULL, 0);
	return answer;
}

/* Gives up CAP_SYS_RESOURCE. */
static int become_unprivileged(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	data[0].effective &= ~(1u << CAP_SYS_RESOURCE);
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static void work(uid_t uid, int from, int to)
{
	struct question q;
	struct answer answer;
	int fd;

	if (uid)
		become_user(uid);
	fd = open(data_path(), O_RDWR | O_CLOEXEC);
	while (read(from, &q, sizeof(q)) == sizeof(q)) {
		switch (q.what) {
		case EVENTS:
		case ORIGINALS:
			answer = events(fd, &q);
			break;
		case BITS:
			answer = all_bits(fd, &q);
			break;
		case FORK:
			answer = fork_once(fd, &q);
			break;
		case ENTER:
			answer = (struct answer){ .error = append(q.text, "0") };
			break;
		case NAMESPACE:
			answer = (struct answer){ .error = unshare(CLONE_NEWUSER) ? -errno : 0 };
			break;
		case HELPER:
			/* A program of the user that is setuid root. */
			answer = (struct answer){ .error = setresuid(USER, 0, 0) || unshare(CLONE_NEWUSER) ? -errno : 0 };
			break;
		case UNPRIVILEGED:
			answer = (struct answer){ .error = become_unprivileged() };
			break;
		case EXIT:
			_exit(0);
		}
		if (write(to, &answer, sizeof(answer)) != sizeof(answer))
			break;
	}
	_exit(0);
}

static struct worker start(uid_t uid)
{
	struct worker worker;
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC) || (worker.pid = fork()) < 0)
		die("a process: %s", strerror(errno));
	if (!worker.pid) {
		close(to[1]);
		close(from[0]);
		work(uid, to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	worker.to = to[1];
	worker.from = from[0];
	return worker;
}

static struct answer ask(struct worker worker, int what, int most, const char *text)
{
	struct question q = { .what = what, .most = most };
	struct answer answer = { .error = -EPIPE };

	strncpy(q.text, text, sizeof(q.text) - 1);
	if (write(worker.to, &q, sizeof(q)) == sizeof(q) &&
	    read(worker.from, &answer, sizeof(answer)) != sizeof(answer))
		answer.error = -EPIPE;
	return answer;
}

static bool nothing_left(void)
{
	char *text = slurp(pathf("%s/user_events_status", tracing_dir()));
	bool none = text && strstr(text, "\nActive: 0\n");

	free(text);
	return none;
}

/* The exit of the process returns its resources. */
static void end(struct worker worker)
{
	ask(worker, EXIT, 0, "");
	waitpid(worker.pid, NULL, 0);
	close(worker.to);
	close(worker.from);
}

static bool all_gone(void)
{
	return within_seconds(slow_kernel() ? 300 : 60, nothing_left());
}

static void set(const char *path, long value)
{
	if (append(path, pathf("%ld\n", value)))
		die("%s: %s", path, strerror(errno));
}

static long number_in(const char *path, const char *after)
{
	char *text = slurp(path), *at = text ? strstr(text, after) : NULL;
	long value = at ? strtol(at + strlen(after), NULL, 10) : -1;

	free(text);
	return value;
}

/* Unreclaimable slab of the machine, in kB. */
static long slab(void)
{
	return number_in("/proc/meminfo", "\nSUnreclaim:");
}

static void defaults(long max_kb, long max_user_kb)
{
	ok(max_kb == 262144 && max_user_kb == 16384, "the limits by themselves");
	ok(append(MAX_USER_KB, "-1\n") == -EINVAL && append(MAX_KB, "much\n") == -EINVAL, "they are numbers");
}

/* Returns 100 fields, which just fit into a description. */
static const char *fields(void)
{
	static char text[512] = " ";

	if (!text[1])
		for (int i = 0; i < 100; i++)
			strcat(text, i < 99 ? "u8 a;" : "u8 b");
	return text;
}

static void of_a_user(void)
{
	struct worker one = start(USER), same = start(USER), other = start(OTHER), root = start(ROOT);
	struct answer a, b;
	int first;

	set(MAX_USER_KB, 400);
	a = ask(one, EVENTS, MANY, " u32 a");
	first = a.count;
	ok(a.error == -EDQUOT && a.count >= 60 && a.count <= 100, "a user has %d events in 400 kB (%s)", a.count,
	   errno_name(a.error));
	a = ask(one, ORIGINALS, 1, " u32 a");
	b = ask(same, EVENTS, 1, " u32 a");
	ok(a.error == -EDQUOT && b.error == -EDQUOT, "and no more, by any interface or process");
	a = ask(other, EVENTS, 20, " u32 a");
	ok(!a.error && a.count == 20, "another user has some");
	a = ask(root, EVENTS, 2 * first, " u32 a");
	ok(!a.error && a.count == 2 * first, "and root as many as it likes");
	set(MAX_USER_KB, 800);
	a = ask(same, EVENTS, MANY, " u32 a");
	ok(a.error == -EDQUOT && a.count > first / 2 && a.count < 2 * first, "twice the limit, %d more", a.count);
	set(MAX_USER_KB, 0);
	a = ask(other, EVENTS, 1, " u32 a");
	ok(a.error == -EDQUOT, "none, and nobody has more");
	end(one);
	end(same);
	end(other);
	end(root);
	ok(all_gone(), "they exit, and all goes");

	set(MAX_USER_KB, 400);
	for (int i = 0; i < 4; i++) {
		one = start(USER);
		a = ask(one, EVENTS, MANY, " u32 a");
		end(one);
		if (!all_gone() || a.count != first)
			break;
	}
	ok(a.count == first, "the same number is had again and again");

	one = start(ROOT);
	a = ask(one, UNPRIVILEGED, 0, "");
	b = ask(one, EVENTS, MANY, " u32 a");
	if (!ok(!a.error && b.error == -EDQUOT && b.count == first,
		"root without CAP_SYS_RESOURCE is a user like others"))
		note("%s; %d events in place of %d, then %s", errno_name(a.error), b.count, first, errno_name(b.error));
	end(one);
	all_gone();

	one = start(USER);
	a = ask(one, EVENTS, MANY, fields());
	ok(a.error == -EDQUOT && a.count >= 10 && a.count < first / 3, "events of 100 fields count more: %d", a.count);
	end(one);
	all_gone();
}

static void of_all(void)
{
	struct worker one = start(USER), root = start(ROOT);
	struct answer a, b;

	set(MAX_KB, 400);
	set(MAX_USER_KB, 600);
	a = ask(one, EVENTS, MANY, " u32 a");
	b = ask(root, EVENTS, 1, " u32 a");
	ok(a.error == -EMFILE && b.error == -EMFILE, "what all have together is limited, for root as well: %d", a.count);
	if (kernel_has_own())
		skip("the kernel has them", "by a command, too");
	else
		ok(append(pathf("%s/dynamic_events", kernel_dir()), "u:li_command") == -EMFILE, "by a command, too");
	set(MAX_KB, 800);
	b = ask(root, EVENTS, 1, " u32 a");
	ok(!b.error, "until the limit is raised");
	end(one);
	end(root);
	ok(all_gone(), "all goes");
}

static void of_bits(void)
{
	struct worker one = start(USER), other = start(OTHER);
	struct answer a, b;
	int first;

	set(MAX_USER_KB, 400);
	a = ask(one, BITS, MANY, "li_bits u32 a");
	first = a.count;
	ok(a.error == -EDQUOT && a.count > 1000 && a.count < 1600, "a user has %d bits in 400 kB", a.count);
	b = ask(other, BITS, 100, "li_bits u32 a");
	ok(!b.error && b.count == 100, "another user has some of the same event");
	a = ask(one, FORK, first, "");
	ok(!a.error && !a.count, "a process that is forked has none, and goes on");
	set(MAX_USER_KB, 1000);
	a = ask(one, FORK, first, "");
	ok(!a.error && a.count == first, "and has all when there is room for them");
	a = ask(one, FORK, first, "");
	ok(!a.error && a.count == first, "again, as the first one has given them back");
	end(one);
	end(other);
	ok(all_gone(), "all goes");
}

/* In a namespace one user may have many ids. */
static void of_a_namespace(void)
{
	struct worker one, inside = start(USER);
	struct answer a, b;

	set(MAX_USER_KB, 400);
	a = ask(inside, NAMESPACE, 0, "");
	if (a.error || append(pathf("/proc/%d/uid_map", inside.pid), "0 100000 1000\n")) {
		skip("no user namespaces", "users of a namespace");
		end(inside);
		return;
	}
	one = start(USER);
	a = ask(one, EVENTS, MANY, " u32 a");
	b = ask(inside, EVENTS, 1, " u32 a");
	ok(a.error == -EDQUOT && b.error == -EDQUOT, "users of a namespace share the limit of who has made it");
	end(one);
	b = (struct answer){};
	ok(within_seconds(60, !(b = ask(inside, EVENTS, 1, " u32 a")).error), "and what that one gives back");
	end(inside);
	all_gone();
}

/*
 * A setuid program can make a namespace for a user, so that the maker's user is not the one who
 * asked for it.
 */
static void of_a_helper(void)
{
	struct worker one, inside = start(ROOT), root = start(ROOT);
	struct answer a, b;

	set(MAX_USER_KB, 400);
	a = ask(inside, HELPER, 0, "");
	if (a.error || append(pathf("/proc/%d/uid_map", inside.pid), "0 100000 1000\n")) {
		skip("no user namespaces", "a namespace that root has made for a user");
		end(inside);
		end(root);
		return;
	}
	one = start(USER);
	a = ask(one, EVENTS, MANY, " u32 a");
	b = ask(inside, EVENTS, MANY, " u32 a");
	ok(a.error == -EDQUOT && b.error == -EDQUOT && a.count == b.count,
	   "a namespace that a setuid program has made for a user is charged to root");
	ask(root, UNPRIVILEGED, 0, "");
	a = ask(root, EVENTS, 1, " u32 a");
	ok(a.error == -EDQUOT, "which has no more, but with CAP_SYS_RESOURCE");
	end(one);
	end(inside);
	end(root);
	all_gone();
}

/* Limits of a user by default, from the kernel's own numbers. */
static void under_64_mb(void)
{
	static const struct { int what; const char *of, *text; } kinds[] = {
		{ EVENTS, "events without fields", "" },
		/* A name of 250 letters. */
		{ EVENTS, "events with long names", "" },
		{ EVENTS, "events of 100 fields", "" },
		{ BITS, "bits", "li_bits u32 a" },
	};
	char name[240] = {};

	memset(name, 'n', sizeof(name) - 1);
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const char *text = i == 1 ? name : i == 2 ? fields() : kinds[i].text;
		struct worker one = start(USER);
		long before = slab(), took;
		struct answer a = ask(one, kinds[i].what, MANY, text);

		took = slab() - before;
		ok(a.error == -EDQUOT && took < 16384 + 1024, "%d %s take %ld kB, %ld bytes each", a.count, kinds[i].of,
		   took, took * 1024 / (a.count ?: 1));
		end(one);
		all_gone();
	}
}

/* Mount point of control groups. */
static char groups[] = "/tmp/rhist-XXXXXX";

/* Makes a control group whose memory is counted, if possible. */
static const char *make_group(void)
{
	const char *group;

	if (!mkdtemp(groups) || mount("none", groups, "cgroup2", 0, NULL))
		return NULL;
	group = strdup(pathf("%s/rhist", groups));
	if (!append(pathf("%s/cgroup.subtree_control", groups), "+memory") && !mkdir(group, 0700))
		return group;
	umount(groups);
	rmdir(groups);
	return NULL;
}

/* Most of the memory of 2000 events is charged to their program. */
static void of_a_group(void)
{
	const char *group = make_group(), *stat;
	long before, of_group, took, charged;
	struct worker one;
	struct answer a, b;

	if (!group) {
		skip("no memory control groups", "memory of a control group");
		return;
	}
	stat = strdup(pathf("%s/memory.stat", group));
	one = start(ROOT);
	a = ask(one, ENTER, 0, pathf("%s/cgroup.procs", group));
	/* The first one makes the system's directory. */
	ask(one, EVENTS, 1, "");
	before = slab();
	of_group = number_in(stat, "\nslab_unreclaimable ");
	b = ask(one, EVENTS, 2000, fields());
	took = slab() - before;
	charged = number_in(stat, "\nslab_unreclaimable ") - of_group;
	note("2000 events of 100 fields: %ld kB, of which %ld kB are charged", took, charged / 1024);
	/* KASAN keeps freed memory for a while, and it counts as used. */
	ok(!a.error && !b.error && b.count == 2000 && charged / 1024 > took * (slow_kernel() ? 70 : 90) / 100,
	   "more than %d %% of the memory is charged to the control group", slow_kernel() ? 70 : 90);
	end(one);
	all_gone();
	ok(within_seconds(30, !rmdir(group)), "which can be removed then");
	umount(groups);
	rmdir(groups);
}

int main(void)
{
	long max_kb = number_in(MAX_KB, ""), max_user_kb = number_in(MAX_USER_KB, "");

	if (testing_c()) {
		skip("C has but the number of events", "limits");
		finish();
	}
	open_to_group(true);
	/*
	 * Root is charged for events that another test has recorded, as long as their records
	 * exist.
	 */
	truncate_file(pathf("%s/trace", kernel_dir()));
	defaults(max_kb, max_user_kb);
	of_a_group();
	if (slow_kernel())
		skip("this kernel takes more memory for all", "what fits into the default limits");
	else
		under_64_mb();
	of_a_user();
	of_bits();
	of_a_namespace();
	of_a_helper();
	set(MAX_USER_KB, max_user_kb);
	of_all();
	set(MAX_KB, max_kb);
	set(MAX_USER_KB, max_user_kb);
	open_to_group(false);
	finish();
}
