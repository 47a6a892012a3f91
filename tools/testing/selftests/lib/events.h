/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events of the tests' own, and calls that fire them and others a known number of times. Include it
 * with _GNU_SOURCE defined.
 */
#ifndef EVENTS_H
#define EVENTS_H

#include <signal.h>
#include <linux/user_events.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/time.h>

#include "tracing.h"

/* Numbers with many ties, to compare the order of equal entries after sorting. */
__maybe static void ties(void)
{
	for (unsigned int i = 0; i < 700; i++)
		for (unsigned int n = 0; n <= i % 3; n++)
			syscall(SYS_getpgid, (unsigned long)i * 2654435761u % 10007);
}

__maybe static void many(void)
{
	for (unsigned long i = 0; i < 6000; i++)
		for (unsigned long n = 0; n <= i % 2; n++)
			syscall(SYS_getpgid, i * 2654435761u % 1000003 % 5003);
}

/* Both ends of every width. */
__maybe static void numbers(void)
{
	static const unsigned long values[] = {
		0, 1, 127, 128, 129, 255, 256, 32767, 32768, 65535, 65536, 0x7fffffff, 0x80000000, 0xffffffff,
		0x100000000, 0x7fffffffffffffff, 0x8000000000000000, 0x8000000000000001, 0xfffffffffffffffe, ~0UL,
	};

	for (unsigned int i = 0; i < sizeof(values) / sizeof(*values); i++)
		for (unsigned int n = 0; n <= i % 4; n++)
			syscall(SYS_getpgid, values[i]);
}

__maybe static void names(void)
{
	char name[64];

	for (unsigned int i = 0; i < 120; i++) {
		snprintf(name, sizeof(name), "%.*s%u", (int)(i % 14), "abcdefghijklmno", i * 7 % 40);
		for (unsigned int n = 0; n <= i % 3; n++)
			prctl(PR_SET_NAME, name);
	}
	/* The bytes behind the NUL of a string in an array are part of the key. */
	prctl(PR_SET_NAME, "abcdefghijklmno");
	prctl(PR_SET_NAME, "abc");
	prctl(PR_SET_NAME, "");
	prctl(PR_SET_NAME, "\xff\xfe\x80\x01");
	prctl(PR_SET_NAME, program_invocation_short_name);
}

__maybe static void scores(void)
{
	static const int values[] = { 1000, 999, 500, 0, -1, -500, -1000, 256, 255, 1, -256 };
	int fd = open("/proc/self/oom_score_adj", O_WRONLY);
	char text[16];

	for (unsigned int i = 0; i < 40; i++) {
		int len = snprintf(text, sizeof(text), "%d", values[i * i % 11]);

		if (write(fd, text, len) != len)
			note("oom_score_adj: %s", strerror(errno));
	}
	if (write(fd, "0", 1) != 1)
		note("oom_score_adj: %s", strerror(errno));
	close(fd);
}

__maybe static void paths(void)
{
	char path[300];

	for (unsigned int i = 0; i < 90; i++) {
		snprintf(path, sizeof(path), "/nosuch/%.*s%u", (int)(i % 60),
			 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl", i * 11 % 30);
		for (unsigned int n = 0; n <= i % 3; n++)
			chdir(path);
	}
	memset(path, 'x', sizeof(path));
	memcpy(path, "/nosuch/", 8);
	for (unsigned int len = 20; len < sizeof(path) - 1; len += 23) {
		path[len] = 0;
		chdir(path);
		path[len] = 'x';
	}
	chdir("");
	chdir("/nosuch/\xc3\xa4\xff\x01%s");
}

__maybe static void cpus(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	for (long cpu = 0; cpu < count; cpu++) {
		pin(cpu);
		for (long n = 0; n <= cpu % 3; n++)
			syscall(SYS_getpgid, 0);
	}
	pin(0);
}

__maybe static void comms(void)
{
	char name[16];

	for (unsigned int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "comm-%u", i * 13 % 37);
		prctl(PR_SET_NAME, name);
		syscall(SYS_getpgid, 0);
	}
	prctl(PR_SET_NAME, program_invocation_short_name);
}

__maybe static void children(void)
{
	for (int i = 0; i < 6; i++) {
		pid_t pid = fork();

		if (!pid) {
			for (int n = 0; n <= i % 3; n++)
				syscall(SYS_getpgid, 0);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

__maybe static void alarms(void)
{
	struct itimerval once = { .it_value.tv_usec = 1000 };
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < 10; i++)
		if (setitimer(ITIMER_REAL, &once, NULL) || sigwait(&set, &sig))
			note("setitimer: %s", strerror(errno));
}

static int user_events = -1;
static __u32 user_index, user_enabled;

/*
 * Registers an event of this program, with a string whose position is relative to the field that
 * locates it.
 */
__maybe static void make_user_event(void)
{
	struct user_reg reg = {
		.size = sizeof(reg), .enable_bit = 0, .enable_size = sizeof(user_enabled),
		.enable_addr = (__u64)(unsigned long)&user_enabled,
		.name_args = (__u64)(unsigned long)"rhist_c __rel_loc char[] s;u32 n",
	};

	user_events = open(pathf("%s/user_events_data", kernel_dir()), O_RDWR | O_CLOEXEC);
	if (user_events < 0 || ioctl(user_events, DIAG_IOCSREG, &reg)) {
		if (user_events >= 0)
			note("user_events: %s", strerror(errno));
		user_events = -1;
	}
	user_index = reg.write_index;
}

__maybe static void relative(void)
{
	struct { __u32 index, s, n; char text[64]; } record = { .index = user_index };

	for (unsigned int i = 0; i < 60; i++) {
		int len = snprintf(record.text, sizeof(record.text), "%.*s-%u", (int)(i % 23), "abcdefghijklmnopqrstuvwxyz",
				   i * 7 % 20) + 1;

		/* Behind n, which has 4 bytes. */
		record.s = (__u32)len << 16 | 4;
		record.n = i % 9;
		if (write(user_events, &record, 12 + len) < 0)
			note("user_events: %s", strerror(errno));
	}
}

__maybe static void make(const char *file, const char *text)
{
	int error = append(pathf("%s/%s", kernel_dir(), file), text);

	if (error)
		note("%s: %s: %s", file, text, errno_name(error));
}

__maybe static void remove_events(void)
{
	truncate_file(pathf("%s/events/kprobes/rhist_c/trigger", kernel_dir()));
	truncate_file(pathf("%s/events/task/task_rename/trigger", kernel_dir()));
	append(pathf("%s/synthetic_events", kernel_dir()), "!rhist_c");
	append(pathf("%s/synthetic_events", kernel_dir()), "!rhist_cs");
	append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_c");
	append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_cp");
	append(pathf("%s/kprobe_events", kernel_dir()), "-:rhist_cr");
}

/* Events that are fired besides the kernel's own. */
__maybe static void make_events(void)
{
	remove_events();
	if (have_probes()) {
		make("kprobe_events", "p:rhist_c " SYS_FUNCTION("getpgid") " u8=" SYS_ARGUMENT ":u8 s8=" SYS_ARGUMENT ":s8 u16=" SYS_ARGUMENT ":u16 "
		     "s16=" SYS_ARGUMENT ":s16 u32=" SYS_ARGUMENT ":u32 s32=" SYS_ARGUMENT ":s32 u64=" SYS_ARGUMENT ":u64 s64=" SYS_ARGUMENT ":s64 "
		     "x=" SYS_ARGUMENT ":x32 bits=" SYS_ARGUMENT ":b5@3/32 char=" SYS_ARGUMENT ":char array=" SYS_ARGUMENT ":u8[4] comm=$comm");
		make("kprobe_events", "p:rhist_cp " SYS_FUNCTION("chdir") " path=+0(" SYS_ARGUMENT "):ustring");
		make("kprobe_events", "r:rhist_cr " SYS_FUNCTION("getpgid") " ret=$retval:s64");
	}
	make("synthetic_events", "rhist_c u64 a; s16 h; u8 c; char d[]");
	make("synthetic_events", "rhist_cs char s[16]; pid_t p");
	make_user_event();
}

/* The module rhist_events; see tools/testing/events. */
static int event_source = -1;

/* Loads the module; the runner knows its path. */
__maybe static void load_events(void)
{
	const char *module = getenv("RHIST_EVENTS"), *rhist = getenv("RHIST_KO");
	int error;

	if (!module && rhist && strrchr(rhist, '/'))
		module = pathf("%.*s/events/rhist_events.ko", (int)(strrchr(rhist, '/') - rhist), rhist);
	error = module ? load_module(module) : -ENOENT;
	if (error && error != -EEXIST && error != -ENOENT)
		note("%s: %s", module, strerror(-error));
	event_source = open("/dev/rhist_events", O_WRONLY | O_CLOEXEC);
}

__maybe static void unload_events(void)
{
	close(event_source);
	event_source = -1;
	syscall(SYS_delete_module, "rhist_events", O_NONBLOCK);
}

/* Masks addresses, which are hashed, and differ for each histogram. */
__maybe static void mask(char *text)
{
	for (char *at = text; at && (at = strstr(at, "hist_data: ")); ) {
		at += strlen("hist_data: ");
		memset(at, '*', strspn(at, "0123456789abcdef"));
	}
}

#endif
