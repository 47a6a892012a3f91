// SPDX-License-Identifier: GPL-2.0
/*
 * fire [-c CPU] KIND ARG[:COUNT]...
 * fire [-c CPU] -i
 *
 * Makes events whose number and arguments are known:
 *   getpgid PID   syscalls:sys_enter_getpgid and any probes that call hits; PID as unsigned long
 *   getsid PID    likewise
 *   chdir NAME    syscalls:sys_enter_chdir; NAME should not exist
 *   name COMM     task:task_rename, to COMM
 *   oom ADJ       oom:oom_score_adj_update
 *   alarm USECS   timer:itimer_expire, in the interrupt of a timer
 *   recv BYTES    syscalls:sys_enter_recvfrom, of no socket
 *   send N        __sys_sendto(-1, N, N + 1, N + 2, N + 3, N + 4)
 *   tcp BYTES     net:*, tcp:* of a connection over the loopback with so many bytes
 *   tcp6 BYTES    likewise, by IPv6
 *   mark N        rhist_mark(N), for a uprobe
 *   user N        user_events:rhist_fire, with N as its field x
 *   spin USECS    keeps the processor busy for so long
 * COUNT is 1 if it is not given. "fire offset" prints the offset of rhist_mark() in this file.
 *
 * With -i the same process reads lines, obeys them, and answers each with one line, which is empty
 * unless it failed. A line has the same form as the arguments, or
 *   write PATH TEXT   one write of TEXT, which begins behind one space
 *   fork LINE         a child does that
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <linux/user_events.h>

#include "tracing.h"

__attribute__((noinline, noclone)) void rhist_mark(unsigned long n)
{
	asm volatile("" : : "r"(n) : "memory");
}

/* Prints the offset of rhist_mark() in this file. */
static int print_offset(void)
{
	unsigned long start, end, offset, at = (unsigned long)rhist_mark;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && at >= start && at < end) {
			printf("0x%lx\n", at - start + offset);
			return 0;
		}
	}
	return 1;
}

static int talk(int family, size_t bytes)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int server = socket(family, SOCK_STREAM, 0), client = socket(family, SOCK_STREAM, 0), end;
	void *address = family == AF_INET ? (void *)&v4 : &v6;
	socklen_t len = family == AF_INET ? sizeof(v4) : sizeof(v6);
	char buffer[1024] = "";

	if (bind(server, address, len) || listen(server, 1) || getsockname(server, address, &len) ||
	    connect(client, address, len) || (end = accept(server, NULL, NULL)) < 0)
		return 1;
	while (bytes) {
		ssize_t n = send(client, buffer, bytes < sizeof(buffer) ? bytes : sizeof(buffer), 0);

		if (n <= 0 || recv(end, buffer, n, MSG_WAITALL) != n)
			return 1;
		bytes -= n;
	}
	return close(end) || close(client) || close(server);
}

/* The event stays until this program ends, and longer with a listener. */
static int write_user_event(uint32_t x)
{
	static uint32_t enabled;
	static struct user_reg reg = {
		.size = sizeof(reg),
		.enable_size = sizeof(enabled),
		.name_args = (uintptr_t)"rhist_fire u32 x",
	};
	static int file = -1;
	struct iovec pieces[] = {
		{ &reg.write_index, sizeof(reg.write_index) },
		{ &x, sizeof(x) },
	};

	if (file < 0) {
		reg.enable_addr = (uintptr_t)&enabled;
		file = open(pathf("%s/user_events_data", kernel_dir()), O_RDWR | O_CLOEXEC);
		if (file < 0 || ioctl(file, DIAG_IOCSREG, &reg))
			return 1;
	}
	/* Nobody listens. */
	return writev(file, pieces, 2) < 0 && errno != EBADF;
}

static int fire(const char *kind, const char *arg)
{
	unsigned long n = strtoul(arg, NULL, 0);
	int fd;

	if (!strcmp(kind, "getpgid")) {
		syscall(SYS_getpgid, n);
	} else if (!strcmp(kind, "getsid")) {
		syscall(SYS_getsid, n);
	} else if (!strcmp(kind, "chdir")) {
		syscall(SYS_chdir, arg);
	} else if (!strcmp(kind, "alarm")) {
		struct itimerval once = { .it_value.tv_usec = n };
		sigset_t set;
		int sig;

		sigemptyset(&set);
		sigaddset(&set, SIGALRM);
		sigprocmask(SIG_BLOCK, &set, NULL);
		if (setitimer(ITIMER_REAL, &once, NULL) || sigwait(&set, &sig))
			return 1;
	} else if (!strcmp(kind, "name")) {
		prctl(PR_SET_NAME, arg);
	} else if (!strcmp(kind, "oom")) {
		fd = open("/proc/self/oom_score_adj", O_WRONLY);
		if (fd < 0 || write(fd, arg, strlen(arg)) < 0)
			return 1;
		close(fd);
	} else if (!strcmp(kind, "recv")) {
		syscall(SYS_recvfrom, -1, NULL, n, 0, NULL, NULL);
	} else if (!strcmp(kind, "send")) {
		syscall(SYS_sendto, -1, n, n + 1, n + 2, n + 3, n + 4);
	} else if (!strcmp(kind, "tcp")) {
		return talk(AF_INET, n);
	} else if (!strcmp(kind, "tcp6")) {
		return talk(AF_INET6, n);
	} else if (!strcmp(kind, "mark")) {
		rhist_mark(n);
	} else if (!strcmp(kind, "user")) {
		return write_user_event(n);
	} else if (!strcmp(kind, "spin")) {
		for (double end = now() + n / 1e6; now() < end;)
			;
	} else {
		return 1;
	}
	return 0;
}

static int fire_all(const char *kind, char **args, int count)
{
	for (int i = 0; i < count; i++) {
		char *colon = strrchr(args[i], ':');
		unsigned long times = colon ? strtoul(colon + 1, NULL, 0) : 1;

		if (colon)
			*colon = 0;
		while (times--)
			if (fire(kind, args[i])) {
				fprintf(stderr, "fire: %s %s: %s\n", kind, args[i], strerror(errno));
				return 1;
			}
	}
	return 0;
}

static int obey(char *line)
{
	char *word = strsep(&line, " "), *args[64];
	int count = 0, status, fd;

	if (line && !strcmp(word, "write")) {
		word = strsep(&line, " ");
		fd = open(word, O_WRONLY);
		status = fd < 0 || !line || write(fd, line, strlen(line)) < 0;
		close(fd);
		return status;
	}
	if (line && !strcmp(word, "fork")) {
		pid_t child = fork();

		if (!child)
			_exit(obey(line));
		return waitpid(child, &status, 0) != child || status;
	}
	while (line && count < 64)
		args[count++] = strsep(&line, " ");
	return fire_all(word, args, count);
}

static int obey_lines(void)
{
	char line[4096];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		puts(obey(line) ? "failed" : "");
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int i = 1;

	if (argc > 2 && !strcmp(argv[i], "-c")) {
		pin(atoi(argv[2]));
		i = 3;
	}
	if (i >= argc)
		return 2;
	if (!strcmp(argv[i], "offset"))
		return print_offset();
	if (!strcmp(argv[i], "-i"))
		return obey_lines();
	return fire_all(argv[i], argv + i + 1, argc - i - 1);
}
