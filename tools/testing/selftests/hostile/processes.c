// SPDX-License-Identifier: GPL-2.0
// Processes that come, go, stop, and are stopped in the middle of a step.
#define _GNU_SOURCE
#include <sys/mount.h>
#include <sys/ptrace.h>

#include "hostile.h"

#define EVENT EVIL " u32 a"

enum { WORDS = 16 };
/* Bits, at the same addresses in every process. */
static volatile unsigned int words[WORDS];
static int evil_fd, evil_index;

static void open_and_register(void)
{
	evil_fd = open_evil();
	for (int i = 0; i < WORDS; i++)
		reg(evil_fd, EVENT, &words[i], &evil_index);
}

static void works(long which)
{
	static volatile unsigned int own[64];
	volatile unsigned int *bit = &own[which % 64];
	int fd = open_evil(), index = 0, value = 1;

	for (;;) {
		reg(fd, EVENT, bit, &index);
		emit(fd, index, &value, sizeof(value));
		unreg(fd, bit, 0);
		did();
	}
}

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void forks_and_registers(int depth)
{
	volatile unsigned int own;

	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();

		if (!pid) {
			reg(evil_fd, EVENT, &own, NULL);
			unreg(evil_fd, &words[below(WORDS)], 0);
			if (depth && below(2))
				forks_and_registers(depth - 1);
			_exit(0);
		}
		did();
		unreg(evil_fd, &words[0], 0);
		reg(evil_fd, EVENT, &words[0], NULL);
		if (pid < 0)
			sleep_ms(1);
	}
	reap();
}

static void fork_storm(void)
{
	open_and_register();
	for (int i = 0; i < 3; i++)
		if (!fork())
			break;
	for (;;)
		forks_and_registers(3);
}

/* Children that run in the memory of their parent. */
static void vfork_storm(void)
{
	open_and_register();
	start_threads(2, works);
	for (;;) {
		pid_t pid = vfork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		did();
	}
}

/*
 * A child with working threads ends at some moment: by itself, by a signal, or by executing a
 * program.
 */
static void ends_in_the_middle(void (*end)(pid_t pid, bool child))
{
	for (;;) {
		pid_t pid = fork();

		if (!pid) {
			open_and_register();
			start_threads(3, works);
			sleep_ms(below(10));
			end(0, true);
			pause();
		}
		if (pid > 0) {
			sleep_ms(below(10));
			end(pid, false);
			waitpid(pid, NULL, 0);
		}
		did();
	}
}

static void exits(pid_t pid, bool child)
{
	(void)pid;
	if (child)
		_exit(0);
}

static void is_killed(pid_t pid, bool child)
{
	if (!child)
		kill(pid, SIGKILL);
}

/* Its descriptors stay open. */
static void executes(pid_t pid, bool child)
{
	(void)pid;
	if (!child)
		return;
	fcntl(evil_fd, F_SETFD, 0);
	execl("/proc/self/exe", "hostile", "exit", NULL);
	_exit(1);
}

static void exit_in_the_middle(void)
{
	ends_in_the_middle(exits);
}

static void kill_in_the_middle(void)
{
	ends_in_the_middle(is_killed);
}

static void exec_in_the_middle(void)
{
	ends_in_the_middle(executes);
}

static void nothing(int number)
{
	(void)number;
}

/* Every system call is interrupted again and again. */
static void signals_in_the_middle(void)
{
	struct sigaction action = { .sa_handler = nothing };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	struct itimerspec often = { { 0, 200000 }, { 0, 200000 } };
	timer_t timer;

	sigaction(SIGRTMIN, &action, NULL);
	for (int i = 0; i < 4; i++)
		if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, NULL))
			cannot("no timers");
	open_and_register();
	start_threads(2, works);
	for (;;) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		did();
	}
}

static void stops_in_the_middle(void)
{
	pid_t pids[4];

	for (int i = 0; i < 4; i++)
		if (!(pids[i] = fork()))
			threads(2, works);
	for (;;) {
		for (int i = 0; i < 4; i++)
			kill(pids[i], SIGSTOP);
		sleep_ms(30);
		for (int i = 0; i < 4; i++)
			kill(pids[i], SIGCONT);
		sleep_ms(below(3));
		did();
	}
}

/* A tracer that stops its tracee in system calls, and anywhere else; and one that detaches. */
static void traces(long detaches)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		works(0);
	if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK))
		cannot("no ptrace()");
	for (;;) {
		ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
		for (int i = 0; i < 8; i++) {
			if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
				return;
			sleep_ms(10);
			did();
			ptrace(below(4) ? PTRACE_SYSCALL : PTRACE_SINGLESTEP, pid, NULL, NULL);
		}
		if (detaches) {
			ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
			waitpid(pid, &status, 0);
			ptrace(PTRACE_DETACH, pid, NULL, NULL);
			ptrace(PTRACE_SEIZE, pid, NULL, NULL);
		}
	}
}

static void ptrace_in_the_middle(void)
{
	for (int i = 0; i < 4; i++)
		if (!fork())
			traces(i % 2);
}

/* In a user namespace of its own a user is root, but lacks the rights that the module asks for. */
static void is_root_inside(void)
{
	volatile unsigned int bit;
	int fd = open_evil();

	if (fd < 0) {
		found("user_events_data does not open inside");
		return;
	}
	if (!reg_flags(fd, "ho_kept u32 a", &bit, 4, 0, USER_EVENT_REG_PERSIST, NULL))
		found("an event was made to stay");
	if (!enable(GOOD, false) || !append(pathf("%s/dynamic_events", kernel_dir()), "-:" GOOD))
		found("an event was disabled or deleted");
	if (!chmod(data_path(), 0666) || !chown(data_path(), MALLORY, -1))
		found("the file was opened to others");
	if (!mount("tracefs", "/mnt", "tracefs", 0, NULL))
		found("tracefs was mounted");
	/* Bits, in processes in a namespace whose first one is PID 1. */
	if (!reg(fd, EVENT, &bit, NULL) && !fork())
		_exit(0);
	close(fd);
}

static void namespaces(void)
{
	for (;;) {
		pid_t pid = fork();

		if (!pid) {
			uid_t uid = getuid();

			if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID))
				cannot("no user namespaces");
			append("/proc/self/uid_map", pathf("0 %d 1", uid));
			if (!fork()) {
				/*
				 * A mount over user_events_data is visible in this namespace only.
				 */
				mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL);
				is_root_inside();
				mount("/dev/null", data_path(), NULL, MS_BIND, NULL);
				_exit(0);
			}
			wait(NULL);
			_exit(0);
		}
		while (pid > 0 && !waitpid(pid, NULL, WNOHANG) && !*board->skipped)
			sleep_ms(1);
		did();
	}
}

int main(int argc, char **argv)
{
	static const struct attack attacks[] = {
		{ "a fork storm with bits", fork_storm, false, false },
		{ "vfork() with bits", vfork_storm, false, false },
		{ "exits in the middle", exit_in_the_middle, false, false },
		{ "is killed in the middle", kill_in_the_middle, false, false },
		{ "executes programs in the middle", exec_in_the_middle, false, false },
		{ "signals in the middle", signals_in_the_middle, false, false },
		{ "stops in the middle", stops_in_the_middle, false, true },
		{ "ptrace stops in the middle", ptrace_in_the_middle, false, true },
		{ "is root in a user namespace", namespaces, false, false },
		{},
	};

	return run_attacks(attacks, argc, argv);
}
