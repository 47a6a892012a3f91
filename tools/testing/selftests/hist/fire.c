// SPDX-License-Identifier: GPL-2.0
/*
 * fire [-c CPU] KIND ARG[:COUNT]...
 *
 * Makes events whose number and arguments are known:
 *   getpgid PID   syscalls:sys_enter_getpgid and whatever probes that call; PID as unsigned long
 *   getsid PID    likewise
 *   chdir NAME    syscalls:sys_enter_chdir; NAME should not exist
 *   name COMM     task:task_rename, to COMM
 *   oom ADJ       oom:oom_score_adj_update
 *   alarm USECS   timer:itimer_expire, in the interrupt of a timer
 *   recv BYTES    syscalls:sys_enter_recvfrom, of no socket
 *   tcp BYTES     net:*, tcp:* of a connection over the loopback with so many bytes
 *   mark N        rhist_mark(N), for a uprobe
 * COUNT is 1 if it is not given. "fire offset" prints the offset of rhist_mark() in this file.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "tracing.h"

__attribute__((noinline, noclone)) void rhist_mark(unsigned long n)
{
	asm volatile("" : : "r"(n) : "memory");
}

/* Where in this file rhist_mark() lies. */
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

static int talk(size_t bytes)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), end;
	socklen_t len = sizeof(address);
	char buffer[1024] = "";

	if (bind(server, (void *)&address, len) || listen(server, 1) || getsockname(server, (void *)&address, &len) ||
	    connect(client, (void *)&address, len) || (end = accept(server, NULL, NULL)) < 0)
		return 1;
	while (bytes) {
		ssize_t n = send(client, buffer, bytes < sizeof(buffer) ? bytes : sizeof(buffer), 0);

		if (n <= 0 || recv(end, buffer, n, MSG_WAITALL) != n)
			return 1;
		bytes -= n;
	}
	return close(end) || close(client) || close(server);
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
	} else if (!strcmp(kind, "tcp")) {
		return talk(n);
	} else if (!strcmp(kind, "mark")) {
		rhist_mark(n);
	} else {
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *kind;
	int i = 1;

	if (argc > 2 && !strcmp(argv[i], "-c")) {
		pin(atoi(argv[2]));
		i = 3;
	}
	if (i >= argc)
		return 2;
	kind = argv[i++];
	if (!strcmp(kind, "offset"))
		return print_offset();
	for (; i < argc; i++) {
		char *colon = strrchr(argv[i], ':');
		unsigned long count = colon ? strtoul(colon + 1, NULL, 0) : 1;

		if (colon)
			*colon = 0;
		while (count--)
			if (fire(kind, argv[i])) {
				fprintf(stderr, "fire: %s %s: %s\n", kind, argv[i], strerror(errno));
				return 1;
			}
	}
	return 0;
}
