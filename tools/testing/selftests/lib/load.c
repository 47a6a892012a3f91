// SPDX-License-Identifier: GPL-2.0
/*
 * load COMM KIND [N [ARG]]
 *
 * Does something N times under the name COMM, so that the right count of a recipe for that name is
 * known. Prints its own numbers, one "NAME NUMBER" a line:
 *   cpu              nanoseconds that it ran
 *   wall, outer_wall nanoseconds that it took; the second with the time before it took the name and
 *                    after
 *   switches, outer_switches
 *                    likewise how often it was switched out
 *   faults, outer_faults
 *                    likewise page faults
 * and those that some kinds add. Kinds:
 *   getpgid          calls getpgid(0)
 *   badfd            closes no file: EBADF
 *   enosys CALLS     calls a system call that does not exist, so often: first number 1000, then the
 *                    next one, so that each number is a key that is only counted for a short time
 *   sleep USECS      sleeps for so long
 *   many USECS       makes a thread that sleeps for so long; N of them sleep at once
 *   spin USECS       keeps the processor busy for so long, then sleeps for a millisecond
 *   ring COMM        wakes up a child of this name by a pipe, every 5 milliseconds; the child
 *                    sleeps until then; adds "slept", how often it did
 *   exec FILE        runs FILE in a child
 *   signal           sends itself SIGUSR1, which it ignores
 *   reuse USECS      makes a child that exits at once, and waits for so long; all of them have the
 *                    same number
 *   handler USECS    sleeps until a signal interrupts it after so long
 *   alarm USECS      waits for an interval timer; adds "late", the nanoseconds that it waited too
 *                    long
 *   tty              writes a line to a pseudoterminal, and reads it at the other end
 *   pipe             makes a pipe, and closes it
 *   touch            touches a page for the first time
 *   move             moves itself to the other processor
 *   read FILE        reads 4096 bytes past the page cache; a multiple of that from where it was
 *                    before
 *   sync FILE        writes 4096 bytes, and calls fsync()
 *   vfs FILE         opens FILE, reads 1 byte twice, writes 1 byte three times
 *   lock FILE        writes to FILE while a thread that writes to it holds its lock; for 50
 *                    milliseconds after it waits. A FIFO's lock is a mutex, and the thread takes it
 *                    once more for 50 milliseconds before the other one can
 *   send BYTES       sends so many to itself by TCP, reads them, and sends one back; adds "port",
 *                    and "rtt" in microseconds
 *   connect          connects to itself by TCP, and closes after 30 milliseconds; adds "port"
 *   connect6         likewise, by IPv6
 *   refuse           tries to connect to itself by TCP where nobody listens
 *   lose             sends one byte to a socket that drops it, until it was sent again
 *   timewait         sends a segment to a connection that is in TIME_WAIT; once only
 *   timewait6        likewise, by IPv6
 *   drop             sends N packets by UDP to a connected socket that drops them
 *   user             registers user_events:rhist_load, says "registered 1", and writes it N times
 *                    after it got a line
 *   fill             touches pages of a control group until it is killed
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/sock_diag.h>
#include <linux/userfaultfd.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/user_events.h>

#define PAGE 4096

static const char *comm, *arg;
static long n;

static int64_t now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Any failure here fails the test, since the right counts are unknown then. */
static long check(long result, const char *what)
{
	if (result < 0)
		err(1, "%s", what);
	return result;
}

static void nap(long usecs)
{
	struct timespec time = { usecs / 1000000, usecs % 1000000 * 1000 };

	while (nanosleep(&time, &time))
		;
}

static void getpgid_(void)
{
	syscall(SYS_getpgid, 0);
}

static void badfd(void)
{
	if (!close(-1) || errno != EBADF)
		errx(1, "close(-1)");
}

static void enosys(void)
{
	static long number = 1000;

	for (long calls = atol(arg); calls; calls--)
		if (syscall(number) != -1 || errno != ENOSYS)
			errx(1, "system call %ld", number);
	number++;
}

static void sleep_(void)
{
	nap(atol(arg));
}

static void *sleeper(void *unused)
{
	(void)unused;
	nap(atol(arg));
	return NULL;
}

static void many(void)
{
	static pthread_t *threads;
	static long made;
	pthread_attr_t attributes;

	if (!threads && !(threads = calloc(n, sizeof(*threads))))
		err(1, "calloc");
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 32768);
	errno = pthread_create(&threads[made], &attributes, sleeper, NULL);
	if (errno)
		err(1, "pthread_create");
	if (++made == n)
		while (made)
			pthread_join(threads[--made], NULL);
}

static void spin(void)
{
	int64_t end = now(CLOCK_MONOTONIC) + atol(arg) * 1000;

	while (now(CLOCK_MONOTONIC) < end)
		;
	nap(1000);
}

static long slept;

static void ring(void)
{
	static int pipes[2];
	static long rung;
	struct rusage usage;

	if (!rung) {
		check(pipe(pipes), "pipe");
		if (!check(fork(), "fork")) {
			char byte;

			prctl(PR_SET_NAME, arg);
			for (long i = 0; i < n; i++)
				check(read(pipes[0], &byte, 1), "read");
			prctl(PR_SET_NAME, "load");
			_exit(0);
		}
	}
	nap(5000);
	check(write(pipes[1], "", 1), "write");
	if (++rung == n) {
		wait(NULL);
		getrusage(RUSAGE_CHILDREN, &usage);
		slept = usage.ru_nvcsw;
	}
}

static void exec(void)
{
	pid_t child = check(vfork(), "vfork");
	int status;

	if (!child) {
		execl(arg, arg, NULL);
		_exit(1);
	}
	if (waitpid(child, &status, 0) != child || status)
		errx(1, "%s", arg);
}

static void signal_(void)
{
	signal(SIGUSR1, SIG_IGN);
	kill(getpid(), SIGUSR1);
}

static void reuse(void)
{
	static pid_t number;
	struct clone_args args = { .exit_signal = SIGCHLD };
	pid_t child;

	if (number) {
		args.set_tid = (uintptr_t)&number;
		args.set_tid_size = 1;
	}
	child = check(syscall(SYS_clone3, &args, sizeof(args)), "clone3");
	if (!child)
		_exit(0);
	number = child;
	check(waitpid(child, NULL, 0), "waitpid");
	nap(atol(arg));
}

static void handle(int number)
{
	(void)number;
}

static void handler(void)
{
	/* Repeats, since the first signal may come before the sleep begins. */
	struct itimerval often = { { 0, atol(arg) }, { 0, atol(arg) } }, never = { };
	struct sigaction action = { .sa_handler = handle };
	struct timespec longer = { 10, 0 };

	check(sigaction(SIGALRM, &action, NULL), "sigaction");
	check(setitimer(ITIMER_REAL, &often, NULL), "setitimer");
	if (!nanosleep(&longer, NULL) || errno != EINTR)
		errx(1, "no signal");
	check(setitimer(ITIMER_REAL, &never, NULL), "setitimer");
}

static int64_t late;

static void alarm_(void)
{
	long usecs = atol(arg);
	struct itimerval once = { .it_value = { usecs / 1000000, usecs % 1000000 } };
	int64_t start = now(CLOCK_MONOTONIC);
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	check(setitimer(ITIMER_REAL, &once, NULL), "setitimer");
	sigwait(&set, &number);
	late += now(CLOCK_MONOTONIC) - start - usecs * 1000;
}

static void tty(void)
{
	static int master = -1, slave;
	char line[8];

	if (master < 0) {
		master = check(posix_openpt(O_RDWR | O_NOCTTY), "posix_openpt");
		grantpt(master);
		unlockpt(master);
		slave = check(open(ptsname(master), O_RDWR | O_NOCTTY), "open");
	}
	check(write(master, "load\n", 5), "write");
	check(read(slave, line, sizeof(line)), "read");
	/* The echo has gone the same way. */
	check(read(master, line, sizeof(line)), "read");
}

static void pipe_(void)
{
	int ends[2];

	check(pipe(ends), "pipe");
	close(ends[0]);
	close(ends[1]);
}

static void touch(void)
{
	static char *pages;

	if (!pages) {
		pages = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (pages == MAP_FAILED)
			err(1, "mmap");
		madvise(pages, n * PAGE, MADV_NOHUGEPAGE);
	}
	*(volatile char *)pages = 1;
	pages += PAGE;
}

static void move(void)
{
	static int to;
	cpu_set_t set;

	/* Start on a processor that the first move does not lead to. */
	for (int i = to == 0 ? 0 : 1; i < 2; i++) {
		CPU_ZERO(&set);
		CPU_SET(to % 2, &set);
		if (i == 0)
			prctl(PR_SET_NAME, "load");
		check(sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
		if (i == 0)
			prctl(PR_SET_NAME, comm);
		to++;
	}
}

static void read_(void)
{
	static char *buffer;
	static int file;

	if (!buffer) {
		buffer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		file = check(open(arg, O_RDONLY | O_DIRECT), arg);
	}
	if (check(read(file, buffer, PAGE), "read") != PAGE)
		errx(1, "%s is too short", arg);
}

static void sync_(void)
{
	static char buffer[PAGE];
	static int file = -1;

	if (file < 0)
		file = check(open(arg, O_RDWR | O_CREAT, 0600), arg);
	check(write(file, buffer, PAGE), "write");
	check(fsync(file), "fsync");
}

static void vfs(void)
{
	char byte = 0;
	int file = check(open(arg, O_RDWR), arg);

	for (int i = 0; i < 2; i++)
		check(pread(file, &byte, 1, 0), "read");
	for (int i = 0; i < 3; i++)
		check(pwrite(file, &byte, 1, 0), "write");
	close(file);
}

/*
 * Opened before, since opening takes the mutex of a FIFO, too: once by the thread that holds its
 * lock, and once by the one that waits for it.
 */
static int holds, waits;
static int pages;

/* Once for each page. In between, the thread that it wakes up does not run: both are on one CPU. */
static void *hold(void *page)
{
	struct sched_param first = { .sched_priority = 1 };

	prctl(PR_SET_NAME, "load");
	check(sched_setscheduler(0, SCHED_FIFO, &first), "SCHED_FIFO");
	for (int i = 0; i < pages; i++)
		check(write(holds, (char *)page + i * PAGE, PAGE), "write");
	return NULL;
}

static pid_t waiter;

static void *wait_for_lock(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, comm);
	__atomic_store_n(&waiter, syscall(SYS_gettid), __ATOMIC_RELEASE);
	check(write(waits, "", 1), "write");
	return NULL;
}

static int sleeps(pid_t task)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", task);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		errx(1, "%s", path);
	fclose(file);
	return state == 'D';
}

/* The holder of the file's lock writes from pages that this thread does not provide for a while. */
static void lock(void)
{
	char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char zero[PAGE];
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range = { (uintptr_t)page, 2 * PAGE }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_copy copy = { .dst = (uintptr_t)page, .src = (uintptr_t)zero, .len = PAGE };
	int uffd = check(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK), "userfaultfd");
	struct pollfd fault = { uffd, POLLIN, 0 };
	pthread_t holder, other;
	struct stat file;
	cpu_set_t cpu;

	holds = check(open(arg, O_RDWR), arg);
	waits = check(open(arg, O_RDWR), arg);
	check(fstat(holds, &file), arg);
	pages = S_ISFIFO(file.st_mode) ? 2 : 1;
	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	check(sched_setaffinity(0, sizeof(cpu), &cpu), "sched_setaffinity");
	prctl(PR_SET_NAME, "load");
	check(ioctl(uffd, UFFDIO_API, &api), "UFFDIO_API");
	check(ioctl(uffd, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
	__atomic_store_n(&waiter, 0, __ATOMIC_RELEASE);
	pthread_create(&holder, NULL, hold, page);
	if (poll(&fault, 1, -1) != 1 || fault.revents != POLLIN)
		errx(1, "poll of userfaultfd");
	pthread_create(&other, NULL, wait_for_lock, NULL);
	while (!__atomic_load_n(&waiter, __ATOMIC_ACQUIRE) || !sleeps(waiter))
		nap(100);
	for (int i = 0; i < pages; i++, copy.dst += PAGE) {
		nap(50000);
		check(ioctl(uffd, UFFDIO_COPY, &copy), "UFFDIO_COPY");
	}
	pthread_join(holder, NULL);
	pthread_join(other, NULL);
	close(holds);
	close(waits);
	close(uffd);
}

static int listener = -1;
/* Of either family; the port is at the same place. */
static union {
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
} address = { .v4 = { .sin_family = AF_INET } };

static void listen_(void)
{
	socklen_t len = sizeof(address);

	if (listener >= 0)
		return;
	if (address.v4.sin_family == AF_INET)
		address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		address.v6.sin6_addr = in6addr_loopback;
	listener = check(socket(address.v4.sin_family, SOCK_STREAM, 0), "socket");
	check(bind(listener, (void *)&address, len), "bind");
	check(listen(listener, 16), "listen");
	check(getsockname(listener, (void *)&address, &len), "getsockname");
	printf("port %d\n", ntohs(address.v4.sin_port));
	fflush(stdout);
}

static void connect_both(int *client, int *server)
{
	listen_();
	*client = check(socket(address.v4.sin_family, SOCK_STREAM, 0), "socket");
	check(connect(*client, (void *)&address, sizeof(address)), "connect");
	*server = check(accept(listener, NULL, NULL), "accept");
}

static void send_(void)
{
	static int client = -1, server;
	static long done;
	char buffer[65536];
	long bytes = atol(arg);
	int on = 1;

	if (client < 0) {
		connect_both(&client, &server);
		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	}
	if (check(send(client, buffer, bytes, 0), "send") != bytes)
		errx(1, "send");
	if (check(recv(server, buffer, bytes, MSG_WAITALL), "recv") != bytes)
		errx(1, "recv");
	check(send(server, buffer, 1, 0), "send");
	check(recv(client, buffer, 1, 0), "recv");
	if (++done == n) {
		struct tcp_info info;
		socklen_t len = sizeof(info);

		check(getsockopt(client, IPPROTO_TCP, TCP_INFO, &info, &len), "TCP_INFO");
		printf("rtt %u\n", info.tcpi_rtt);
	}
}

static void connect_(void)
{
	int client, server;

	connect_both(&client, &server);
	nap(30000);
	close(client);
	close(server);
}

static void connect6(void)
{
	address.v6.sin6_family = AF_INET6;
	connect_();
}

static void refuse(void)
{
	int client = check(socket(AF_INET, SOCK_STREAM, 0), "socket");
	struct sockaddr_in nobody = { .sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	if (!connect(client, (void *)&nobody, sizeof(nobody)) || errno != ECONNREFUSED)
		errx(1, "connect");
	close(client);
}

static void drop_all(int socket)
{
	struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = { 1, &none };

	check(setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)), "SO_ATTACH_FILTER");
}

static void lose(void)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int client, server;

	connect_both(&client, &server);
	drop_all(server);
	check(send(client, "", 1, 0), "send");
	while (info.tcpi_total_retrans < 1) {
		nap(10000);
		check(getsockopt(client, IPPROTO_TCP, TCP_INFO, &info, &len), "TCP_INFO");
	}
	/* A reset ends it. */
	setsockopt(client, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));
	close(client);
	close(server);
}

static void timewait(void)
{
	socklen_t len = sizeof(address);
	__typeof__(address) own;
	int client, server, on = 1;
	char byte;

	connect_both(&client, &server);
	check(getsockname(client, (void *)&own, &len), "getsockname");
	/* The first one that is closed waits. */
	close(server);
	check(recv(client, &byte, 1, 0), "recv");
	close(client);
	close(listener);
	client = check(socket(own.v4.sin_family, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket");
	check(setsockopt(client, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), "SO_REUSEADDR");
	/* The other one is gone when the last segment has arrived. */
	while (bind(client, (void *)&own, sizeof(own))) {
		if (errno != EADDRINUSE)
			err(1, "bind");
		nap(10000);
	}
	if (!connect(client, (void *)&address, sizeof(address)) || errno != EINPROGRESS)
		errx(1, "connect to TIME_WAIT");
	nap(300000);
	close(client);
}

static void timewait6(void)
{
	address.v6.sin6_family = AF_INET6;
	timewait();
}

static void drop(void)
{
	static int from = -1, to;
	static long done;
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t size = sizeof(info);

	if (from < 0) {
		socklen_t len = sizeof(address);

		address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		from = check(socket(AF_INET, SOCK_DGRAM, 0), "socket");
		to = check(socket(AF_INET, SOCK_DGRAM, 0), "socket");
		check(bind(from, (void *)&address, len), "bind");
		check(bind(to, (void *)&address, len), "bind");
		check(getsockname(from, (void *)&address, &len), "getsockname");
		check(connect(to, (void *)&address, len), "connect");
		check(getsockname(to, (void *)&address, &len), "getsockname");
		drop_all(to);
	}
	/* A filter drops the packet without an error for the sender. */
	check(sendto(from, "", 1, 0, (void *)&address, sizeof(address)), "sendto");
	if (++done < n)
		return;
	/* They may be on the way, and would find no socket. */
	while (info[SK_MEMINFO_DROPS] < n) {
		nap(10000);
		check(getsockopt(to, SOL_SOCKET, SO_MEMINFO, info, &size), "SO_MEMINFO");
	}
}

static void user(void)
{
	static uint32_t enabled, x;
	static struct user_reg reg = {
		.size = sizeof(reg),
		.enable_size = sizeof(enabled),
		.name_args = (uintptr_t)"rhist_load u32 x",
	};
	static int file = -1;
	struct iovec pieces[] = { { &reg.write_index, sizeof(reg.write_index) }, { &x, sizeof(x) } };

	if (file < 0) {
		reg.enable_addr = (uintptr_t)&enabled;
		file = check(open("/sys/kernel/tracing/user_events_data", O_RDWR | O_CLOEXEC), "user_events_data");
		check(ioctl(file, DIAG_IOCSREG, &reg), "DIAG_IOCSREG");
		puts("registered 1");
		fflush(stdout);
		getchar();
		if (!__atomic_load_n(&enabled, __ATOMIC_ACQUIRE))
			errx(1, "nobody listens to user_events:rhist_load");
	}
	check(writev(file, pieces, 2), "writev");
}

static void fill(void)
{
	for (;;) {
		char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED)
			err(1, "mmap");
		*(volatile char *)page = 1;
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = {
	{ "getpgid", getpgid_ }, { "badfd", badfd }, { "enosys", enosys }, { "sleep", sleep_ }, { "many", many }, { "spin", spin }, { "ring", ring }, { "exec", exec },
	{ "signal", signal_ }, { "reuse", reuse }, { "handler", handler }, { "refuse", refuse }, { "alarm", alarm_ }, { "tty", tty }, { "pipe", pipe_ }, { "touch", touch }, { "move", move },
	{ "read", read_ }, { "sync", sync_ }, { "vfs", vfs }, { "lock", lock }, { "send", send_ }, { "connect", connect_ },
	{ "connect6", connect6 },
	{ "lose", lose }, { "timewait", timewait }, { "timewait6", timewait6 }, { "drop", drop }, { "user", user }, { "fill", fill },
};

static long switches(const struct rusage *usage)
{
	return usage->ru_nvcsw + usage->ru_nivcsw;
}

static long faults(const struct rusage *usage)
{
	return usage->ru_minflt + usage->ru_majflt;
}

int main(int argc, char **argv)
{
	struct rusage outer[2], inner[2];
	void (*run)(void) = NULL;
	int64_t outer_wall, wall, cpu;

	comm = argc > 2 ? argv[1] : "";
	n = argc > 3 ? atol(argv[3]) : 1;
	arg = argc > 4 ? argv[4] : "0";
	for (size_t i = 0; argc > 2 && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(argv[2], kinds[i].name))
			run = kinds[i].run;
	if (!run)
		errx(2, "usage: load COMM KIND [N [ARG]]");

	outer_wall = now(CLOCK_MONOTONIC);
	getrusage(RUSAGE_SELF, &outer[0]);
	prctl(PR_SET_NAME, comm);
	getrusage(RUSAGE_SELF, &inner[0]);
	wall = now(CLOCK_MONOTONIC);
	cpu = now(CLOCK_THREAD_CPUTIME_ID);
	for (long i = 0; i < n; i++)
		run();
	cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
	wall = now(CLOCK_MONOTONIC) - wall;
	getrusage(RUSAGE_SELF, &inner[1]);
	prctl(PR_SET_NAME, "load");
	getrusage(RUSAGE_SELF, &outer[1]);
	outer_wall = now(CLOCK_MONOTONIC) - outer_wall;

	if (late)
		printf("late %lld\n", (long long)late);
	if (slept)
		printf("slept %ld\n", slept);
	printf("pid %d\ncpu %lld\n", getpid(), (long long)cpu);
	printf("wall %lld\nouter_wall %lld\n", (long long)wall, (long long)outer_wall);
	printf("switches %ld\nouter_switches %ld\n", switches(&inner[1]) - switches(&inner[0]), switches(&outer[1]) - switches(&outer[0]));
	printf("faults %ld\nouter_faults %ld\n", faults(&inner[1]) - faults(&inner[0]), faults(&outer[1]) - faults(&outer[0]));
	return 0;
}
