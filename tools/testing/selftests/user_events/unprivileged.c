// SPDX-License-Identifier: GPL-2.0
// A user without rights other than access to user_events_data by its group: no request changes
// memory or files of others, takes their events away, or lets the user trace.
#define _GNU_SOURCE
#include <sys/auxv.h>
#include <sys/personality.h>

#include "client.h"

enum { VICTIM = 1001, MALLORY = 1002 };

/* At the same address in every process of this test. */
static volatile unsigned int word;
static long page;
/* A file of root that all users may read. */
static char readable[] = "/tmp/rhist-XXXXXX";

/* Runs a function as a user; a failed step is the exit status. */
static bool as(uid_t uid, int (*what)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		become_user(uid);
		_exit(what());
	}
	if (waitpid(pid, &status, 0) == pid && !status)
		return true;
	note("step %d (status %x)", WEXITSTATUS(status), status);
	return false;
}

/* A step is identified by its line. */
#define must(condition) do { if (!(condition)) return __LINE__ % 200 + 1; } while (0)

static int is_kept_out(void)
{
	must(open(data_path(), O_RDONLY) < 0 && errno == EACCES);
	return 0;
}

static int is_let_in(void)
{
	int fd = open_data(), index, value = 1;

	must(!reg(fd, "un_own u32 a", &word, &index));
	must(emit(fd, index, &value, 4) == -EBADF);
	must(reg_flags(fd, "un_kept", &word, 4, 1, USER_EVENT_REG_PERSIST, NULL) == -EPERM);
	must(!unreg(fd, &word, 0));
	return 0;
}

static int cannot_trace(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .config = 1,
					.sample_type = PERF_SAMPLE_RAW };

	must(enable("un_victim", true) == -EACCES);
	must(open(event_file("un_victim", "format"), O_RDONLY) < 0 && errno == EACCES);
	must(append(pathf("%s/dynamic_events", kernel_dir()), "u:un_mine") == -EACCES);
	must(open(pathf("%s/dynamic_events", kernel_dir()), O_WRONLY | O_TRUNC) < 0 && errno == EACCES);
	must(open(pathf("%s/trace", kernel_dir()), O_RDONLY) < 0 && errno == EACCES);
	must(open(pathf("%s/user_events_status", tracing_dir()), O_RDONLY) < 0 && errno == EACCES);
	must(chmod(data_path(), 0666) && errno == EPERM);
	must(syscall(__NR_perf_event_open, &attr, -1, 0, -1, 0) < 0 && errno == (have_perf() ? EACCES : ENOSYS));
	return 0;
}

/* The number of the victim's event, which only root can read, but anybody can guess. */
static int victim_id;

/*
 * Counts the event in this process, with perf. That enables it for all programs that have
 * registered it.
 */
static int counts(struct perf_event_attr attr, long long expected)
{
	int fd = open_data(), index, perf, value = 5;
	long long count = -1;

	attr.type = PERF_TYPE_TRACEPOINT;
	attr.size = sizeof(attr);
	attr.config = victim_id;
	must(!reg_flags(fd, "un_victim u32 a", &word, 4, 7, 0, &index));
	perf = syscall(__NR_perf_event_open, &attr, 0, -1, -1, 0);
	if (perf < 0) {
		must(expected < 0 && (errno == EACCES || errno == EPERM) && !(word & 1 << 7));
		return 0;
	}
	must(within_seconds(5, word & 1 << 7));
	must(emit(fd, index, &value, 4) == 8);
	must(read(perf, &count, sizeof(count)) == sizeof(count) && count == expected);
	close(perf);
	must(within_seconds(5, !(word & 1 << 7)));
	return 0;
}

static int is_refused(void)
{
	return counts((struct perf_event_attr){ .exclude_kernel = 1 }, -1);
}

/* Counts hits outside the kernel only, which never happen. */
static int enables(void)
{
	return counts((struct perf_event_attr){ .exclude_kernel = 1 }, 0);
}

static int does_count(void)
{
	return counts((struct perf_event_attr){}, 1);
}

static int does_not_record(void)
{
	return counts((struct perf_event_attr){ .sample_type = PERF_SAMPLE_RAW, .sample_period = 1 }, -1);
}

#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

/* The administrator decides whether users may count events with perf, of any owner. */
static void counting(void)
{
	char *before = slurp(PARANOID), *id = slurp(event_file("un_victim", "id"));

	if (!have_perf() || !id) {
		skip("no perf", "counting events");
		return;
	}
	victim_id = atoi(id);
	/* Debian's default; other kernels treat it like 2. */
	append(PARANOID, "3");
	if (access("/etc/debian_version", F_OK))
		skip("this kernel may know no 3", "perf_event_paranoid at 3");
	else
		ok(as(MALLORY, is_refused), "nor with perf, with perf_event_paranoid at 3");
	append(PARANOID, "2");
	ok(as(MALLORY, enables), "which enables it at 2");
	append(PARANOID, "1");
	ok(as(MALLORY, does_count), "counts it at 1");
	ok(as(MALLORY, does_not_record), "and never records it");
	append(PARANOID, before);
	free(before);
	free(id);
}

/* Requests the victim's bit and event, at the same address, by the same names. */
static int cannot_take_away(void)
{
	int fd = open_data(), index, value = 5;

	must(unreg(fd, &word, 0) == -ENOENT);
	must(del(fd, "un_victim") == -EBUSY);
	must(del(fd, "un_stays") == -EPERM);
	must(del(fd, "un_none") == -ENOENT);
	must(reg(fd, "enable", &word, NULL) == -EINVAL && reg(fd, "un_line u32 a\nb", &word, NULL) == -EINVAL);
	must(reg(fd, "un_victim u8 other", &word, NULL) == -EADDRINUSE);
	/*
	 * Another user can register and write the event, too: listeners can tell the writers apart
	 * only by common_pid.
	 */
	must(!reg(fd, "un_victim u32 a", &word, &index));
	must(emit(fd, index, &value, 4) == -EBADF);
	must(del(fd, "un_victim") == -EBUSY);
	must(!unreg(fd, &word, 0) && unreg(fd, &word, 0) == -ENOENT);
	return 0;
}

/* Nothing is written for a program where it must not write itself. */
static int cannot_write_elsewhere(void)
{
	int fd = open_data(), file = open(readable, O_RDONLY), memory = memfd_create("un", MFD_ALLOW_SEALING);
	const unsigned int *vdso = (void *)getauxval(AT_SYSINFO_EHDR);
	unsigned int before = vdso ? *vdso : 0;
	volatile unsigned int *at;

	must(file >= 0 && memory >= 0 && !ftruncate(memory, page));
	must(!vdso || (reg(fd, "un_victim u32 a", (void *)vdso, NULL) == -ENOMEM && *vdso == before));
	must(reg(fd, "un_victim u32 a", (void *)((uintptr_t)is_let_in & ~7ul), NULL) == -ENOMEM);
	must(reg(fd, "un_victim u32 a", (void *)0xffffffff81000000ul, NULL) == -EFAULT);
	at = mmap(NULL, page, PROT_READ, MAP_SHARED, file, 0);
	must(at != MAP_FAILED && reg(fd, "un_victim u32 a", at, NULL) == -ENOMEM);
	must(mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED);
	must(!fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE));
	at = mmap(NULL, page, PROT_READ, MAP_SHARED, memory, 0);
	must(at != MAP_FAILED && reg(fd, "un_victim u32 a", at, NULL) == -ENOMEM);
	return 0;
}

static int pipes[2];

static bool told(void)
{
	char byte;

	return read(pipes[0], &byte, 1) == 1;
}

/*
 * Bits are registered in writable memory, which is replaced then. The event is enabled meanwhile.
 */
static int moves_memory(void)
{
	int fd = open_data(), file = open(readable, O_RDONLY), flags = MAP_PRIVATE | MAP_ANONYMOUS;
	volatile unsigned int *at, *copy;

	at = mmap(NULL, page, PROT_READ | PROT_WRITE, flags, -1, 0);
	copy = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	must(!reg(fd, "un_victim u32 a", at, NULL) && !reg(fd, "un_victim u32 a", copy, NULL));
	must(mmap((void *)at, page, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) == at);
	must(told());
	/* The copy is written, the file is not. */
	must(within_seconds(5, *copy & 1) && !(*at & 1));
	must(unreg(fd, at, 0) == -EFAULT && !unreg(fd, copy, 0));
	return 0;
}

/*
 * Another program is executed: a setuid one would have more rights, and memory at the same address.
 */
static int executes(void)
{
	must(personality(ADDR_NO_RANDOMIZE) >= 0);
	execl("/proc/self/exe", "unprivileged", "first", NULL);
	return 1;
}

static int executed(bool first)
{
	int fd = open_data();

	if (first) {
		must(!reg(fd, "un_exec u32 a", &word, NULL));
		/* Inherited by the new program, so the event stays. */
		must(!fcntl(fd, F_SETFD, 0));
		execl("/proc/self/exe", "unprivileged", "second", pathf("%lx", (long)&word), NULL);
		return 1;
	}
	must(write(STDERR_FILENO, "x", 1) == 1);
	must(!within_seconds(3, word));
	must(unreg(fd, &word, 0) == -ENOENT);
	return 0;
}

static bool file_is_unchanged(void)
{
	unsigned int all[1024], i;
	int file = open(readable, O_RDONLY);

	if (read(file, all, sizeof(all)) != sizeof(all))
		return false;
	close(file);
	for (i = 0; i < 1024; i++)
		if (all[i])
			return false;
	return true;
}

/*
 * Pipes to and from the victim, which reports whether its bit follows the event, and nothing else
 * changes there.
 */
static int victim_pipe[2][2];

static void victim(void)
{
	static volatile unsigned int guard[2] = { 0xaaaaaaaa, 0x55555555 };
	int fd = open_data(), index;
	char byte;

	word = 0x12345600;
	if (reg(fd, "un_victim u32 a", &word, &index))
		_exit(1);
	byte = 'r';
	while (write(victim_pipe[1][1], &byte, 1) == 1 && read(victim_pipe[0][0], &byte, 1) == 1) {
		unsigned int expected = 0x12345600 | (byte == '1');

		byte = within_seconds(5, word == expected) && guard[0] == 0xaaaaaaaa && guard[1] == 0x55555555 ?
		       'y' : 'n';
	}
	_exit(0);
}

static bool victim_is_well(void)
{
	bool well = true;
	char byte;

	for (int i = 1; i >= 0; i--) {
		enable("un_victim", i);
		byte = '0' + i;
		well &= write(victim_pipe[0][1], &byte, 1) == 1 && read(victim_pipe[1][0], &byte, 1) == 1 &&
			byte == 'y';
	}
	return well;
}

int main(int argc, char **argv)
{
	int file, fd, index;
	char byte;
	pid_t pid;

	page = sysconf(_SC_PAGESIZE);
	if (argc > 1) {
		/*
		 * In the program executed by a user; with another address, nothing would be tested.
		 */
		if (argc > 2 && strtoul(argv[2], NULL, 16) != (uintptr_t)&word)
			return 98;
		return executed(argc == 2);
	}
	file = mkstemp(readable);
	if (fchmod(file, 0644) || ftruncate(file, page) || pipe(pipes) || pipe(victim_pipe[0]) || pipe(victim_pipe[1]))
		die("files");
	close(file);

	ok(as(MALLORY, is_kept_out), "a user who is not let in cannot open the file");
	open_to_group(true);
	ok(as(MALLORY, is_let_in), "one who is can register, but not to stay");
	fd = open_data();
	reg_flags(fd, "un_stays u32 a", &word, 4, 3, USER_EVENT_REG_PERSIST, &index);
	unreg(fd, &word, 3);
	close(fd);

	pid = fork();
	if (!pid) {
		become_user(VICTIM);
		close(victim_pipe[0][1]);
		close(victim_pipe[1][0]);
		victim();
	}
	close(victim_pipe[0][0]);
	close(victim_pipe[1][1]);
	ok(read(victim_pipe[1][0], &byte, 1) == 1 && victim_is_well(), "another user has an event and a bit");
	ok(as(MALLORY, cannot_trace), "cannot enable, delete, list or read events, nor let others in");
	counting();
	ok(as(MALLORY, cannot_take_away) && victim_is_well(), "cannot take the other's bit or event away");
	ok(exists("un_stays"), "nor what stays");
	ok(as(MALLORY, cannot_write_elsewhere) && file_is_unchanged() && victim_is_well(),
	   "cannot have bits written where it may not write");

	byte = 'x';
	enable("un_victim", false);
	if (!(pid = fork())) {
		sleep_ms(500);
		enable("un_victim", true);
		_exit(write(pipes[1], &byte, 1) != 1);
	}
	ok(as(MALLORY, moves_memory) && file_is_unchanged(), "nor where something else is by then");
	waitpid(pid, NULL, 0);
	ok(victim_is_well(), "which the other does not notice");

	/* Output on standard error shows that exec() was done. */
	if (!(pid = fork())) {
		dup2(pipes[1], STDERR_FILENO);
		_exit(as(MALLORY, executes) ? 0 : 1);
	}
	told();
	enable("un_exec", true);
	ok(waitpid(pid, &index, 0) == pid && !index, "a program that is executed gets no bits of the one before");
	enable("un_exec", false);

	close(victim_pipe[0][1]);
	fd = open_data();
	ok(within_seconds(10, !exists("un_victim") && !exists("un_own") && !exists("un_exec")) && !del(fd, "un_stays"),
	   "in the end all is gone");
	close(fd);
	open_to_group(false);
	unlink(readable);
	finish();
}
