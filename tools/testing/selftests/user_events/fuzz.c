// SPDX-License-Identifier: GPL-2.0
// fuzz [--seconds N] [--seed N]
//
// Random requests and writes, most of them nearly right, by four processes at once, one of them
// without privileges, that take their memory away, fork and exit, while events are enabled and
// disabled. Each answer has to be a documented one, memory that was never given to the module stays
// as it was, and in the end nothing is left. Any report of the kernel fails the run.
#define _GNU_SOURCE
#include <dirent.h>
#include <getopt.h>
#include <signal.h>
#include <sys/prctl.h>

#include "client.h"

#define WORKERS 4
#define FILES 4
#define WORDS 64

static unsigned long long seed, state;
static double seconds, end;
static long page;
/* A user who may open user_events_data and nothing else. */
static bool unprivileged;

/* The state of one process. */
static int files[FILES], perf[2];
/* Words that bits are registered in, and all bits ever used: no others may change. */
static volatile unsigned int words[WORDS] __attribute__((aligned(8)));
static unsigned int given[WORDS];
/* A page that comes and goes; a read-only page; no page; and a page followed by unmapped memory. */
static char *restless, *read_only, *nothing, *edge;
static unsigned long operations, successes, written;

static const unsigned int pattern = 0xa5c3a5c3;
static const char *const names[] = { "fz_a", "fz_b", "fz_c", "fz_d" };

static unsigned int below(unsigned int limit)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545f4914f6cdd1dull >> 33) % limit;
}

static bool one_in(unsigned int count)
{
	return !below(count);
}

#define any(array) (array)[below(sizeof(array) / sizeof(*(array)))]

/* Prints an unexpected answer and ends the process, which is a failure. */
static void unexpected(const char *what, int answer)
{
	printf("# %s: %s (%d) after %lu operations\n", what, errno_name(answer), answer, operations);
	fflush(stdout);
	_exit(1);
}

static void expect(const char *what, int answer, const int *allowed, unsigned int count)
{
	operations++;
	successes += answer >= 0;
	for (unsigned int i = 0; answer < 0 && i < count; i++)
		if (answer == -allowed[i])
			return;
	if (answer < 0)
		unexpected(what, answer);
}

#define expect(what, answer, ...) do {							\
	const int allowed[] = { __VA_ARGS__ };					\
	expect(what, answer, allowed, sizeof(allowed) / sizeof(*allowed));		\
} while (0)

static void *hostile(void)
{
	void *const pointers[] = {
		NULL, (void *)1, nothing, nothing - 1, nothing - 3, nothing - 4, read_only, restless,
		edge + page - 1, edge + page - below(40), (void *)0x7fffffffffffull, (void *)0x7ffffffff000ull,
		(void *)0x7ffffffffff8ull, (void *)0x8000000000000000ull, (void *)0xffff888000000000ull,
		(void *)0xffffffff81000000ull, (void *)-4096l, (void *)-8l, (void *)-1l,
		(void *)((uintptr_t)below(1 << 30) << 17 | below(1 << 17)),
	};

	return any(pointers);
}

static char *description(void)
{
	static char text[1200];
	static const char *const types[] = {
		"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "int", "char", "short", "unsigned int",
		"unsigned char", "unsigned short", "char[8]", "char[1024]", "unsigned char[3]",
		"__data_loc char[]", "__rel_loc char[]", "__rel_loc u8[]", "__data_loc unsigned char[]",
		"long", "char[0]", "char[1025]", "char[", "__rel_loc", "struct", "",
	};
	/* Often the same, so that processes collide. */
	static const char *const common[] = { "", " u32 a", " u32 a;u64 b", " __rel_loc char[] s",
		" u8 a;__data_loc char[] s;__rel_loc char[] t", " struct my b 20" };
	int len = sprintf(text, "%s", any(names)), fields = below(5), i;

	if (!one_in(3)) {
		len += sprintf(text + len, "%s", any(common));
	} else {
		for (i = 0; i < fields; i++) {
			if (one_in(8))
				len += sprintf(text + len, " struct %c f%d %u", 'a' + below(26), i,
					       one_in(4) ? below(1u << 31) : below(100));
			else
				len += sprintf(text + len, " %s f%d", any(types), below(20) ? i : 0);
			len += sprintf(text + len, "%s", one_in(10) ? "" : ";");
		}
	}
	if (one_in(10))
		for (i = below(5); i >= 0; i--)
			text[below(len + 1)] = one_in(3) ? (char)below(256) : any(" ;:/.[]_\t\n0u");
	if (one_in(50)) {
		memset(text + strlen(text), ';', 600);
		text[505 + below(12)] = 0;
	}
	return text;
}

/* A text at a random place: anywhere, at the end of mapped memory, or in unmapped memory. */
static void *text_somewhere(char *text)
{
	size_t len = strlen(text) + 1;

	switch (below(12)) {
	case 0:
		return hostile();
	case 1:
		/* At the end of mapped memory, with its NUL or without. */
		len -= one_in(2);
		return memcpy(edge + page - len, text, len);
	default:
		return text;
	}
}

static unsigned int struct_size(unsigned int right)
{
	const unsigned int sizes[] = { 0, 4, 16, 19, 20, 21, 27, 28, 29, 32, 64, page, page + 1, ~0u, below(100) };

	return one_in(6) ? any(sizes) : right;
}

/* Puts the structure of a request at a random place, followed by zeros or by junk. */
static void *struct_somewhere(const void *bytes, size_t len)
{
	static char room[8192];
	char *at = room + below(8);

	if (one_in(12))
		return hostile();
	if (one_in(6))
		return memcpy(edge + page - len, bytes, len);
	memset(room, 0, sizeof(room));
	if (one_in(10))
		room[below(100)] = 1;
	return memcpy(at, bytes, len);
}

/* A place for a bit, mostly in our words. */
static void *place(unsigned int size, unsigned int bit)
{
	unsigned int word = below(WORDS);

	if (one_in(8))
		return restless + (below(page) & ~7u);
	if (one_in(8))
		return hostile();
	if (size == 8)
		word &= ~1u;
	/* Note the bit in any case: it may be written to. */
	if (bit < 32)
		given[word] |= 1u << bit;
	else if (bit < 64)
		given[word | 1] |= 1u << (bit - 32);
	return (char *)(words + word) + (one_in(30) ? 1 + below(3) : 0);
}

static void request(int fd)
{
	struct user_reg reg = { .size = struct_size(sizeof(reg)) };
	unsigned int size = one_in(20) ? below(256) : one_in(2) ? 4 : 8;

	reg.enable_bit = one_in(20) ? below(256) : below(size == 8 ? 64 : 32);
	/* Few bits, so that they are used again. */
	if (!one_in(4))
		reg.enable_bit &= 3;
	reg.enable_size = size;
	reg.flags = one_in(15) ? below(65536) : below(4);
	reg.enable_addr = (uintptr_t)place(size, reg.enable_bit);
	reg.name_args = (uintptr_t)text_somewhere(description());
	if (one_in(6)) {
		struct user_reg_original *original = (void *)&reg;

		original->name_args = reg.name_args;
		original->size = struct_size(sizeof(*original));
	}
	expect("register", ioctl(fd, DIAG_IOCSREG, struct_somewhere(&reg, sizeof(reg))) ? -errno : 0,
	       EFAULT, E2BIG, EINVAL, EADDRINUSE, EPERM, EMFILE, ENODEV, ENOMEM);
}

static void give_back(int fd)
{
	struct user_unreg unreg = { .size = struct_size(sizeof(unreg)) };
	unsigned int size = one_in(2) ? 4 : 8;

	unreg.disable_bit = one_in(4) ? below(256) : below(4);
	unreg.__reserved = one_in(30) ? below(256) : 0;
	unreg.__reserved2 = one_in(30) ? below(65536) : 0;
	unreg.disable_addr = (uintptr_t)place(size, unreg.disable_bit);
	expect("unregister", ioctl(fd, DIAG_IOCSUNREG, struct_somewhere(&unreg, sizeof(unreg))) ? -errno : 0,
	       EFAULT, E2BIG, EINVAL, ENOENT);
}

static void delete(int fd)
{
	char *text = description();

	if (!one_in(4))
		text[strcspn(text, " ")] = 0;
	expect("delete", ioctl(fd, DIAG_IOCSDEL, text_somewhere(text)) ? -errno : 0,
	       EFAULT, EINVAL, ENOENT, EBUSY, EPERM, user_mode_linux() ? ENOMEM : EPERM);
}

static void other_ioctl(int fd)
{
	unsigned int command = one_in(2) ? _IOC(below(4), '*', below(4), below(64)) : below(~0u);

	if (command == DIAG_IOCSREG || command == DIAG_IOCSDEL || command == DIAG_IOCSUNREG)
		return;
	/* Other commands are answered before they reach the file. */
	if (_IOC_TYPE(command) == '*')
		expect("ioctl", ioctl(fd, command, hostile()) ? -errno : 0, ENOTTY);
}

static void write_some(int fd)
{
	static char bytes[70000];
	static const unsigned int lens[] = { 0, 1, 2, 4, 8, 12, 14, 20, 40, 257, 1100, 4000, 9000, 66000 };
	int index = one_in(20) ? (int)below(~0u) : (int)below(10) - one_in(10);
	unsigned int len = one_in(4) ? below(300) : any(lens), done = 0, count = 0, i;
	struct iovec pieces[8];
	bool fair = true;
	size_t total = 0;
	ssize_t answer;

	for (i = 0; i < len && i < 64; i++)
		bytes[i] = one_in(3) ? below(256) : 0;
	/* In front, sometimes a plausible field of a dynamic string. */
	if (len >= 8 && one_in(2))
		*(unsigned int *)bytes = DYN_LOC(below(20), below(len + 4));
	pieces[count++] = (struct iovec){ &index, one_in(40) ? below(4) : 4 };
	while (done < len && count < 8) {
		unsigned int piece = count == 7 || one_in(2) ? len - done : 1 + below(len - done);

		pieces[count].iov_base = one_in(20) ? hostile() : bytes + done;
		fair &= pieces[count].iov_base == bytes + done;
		pieces[count++].iov_len = piece;
		done += piece;
	}
	for (i = 0; i < count; i++)
		total += pieces[i].iov_len;
	if (fair && one_in(3)) {
		static char whole[70004];

		memcpy(whole, &index, 4);
		memcpy(whole + 4, bytes, len);
		total = len + 4;
		answer = one_in(10) ? pwrite(fd, whole, total, below(3)) : write(fd, whole, total);
	} else {
		answer = writev(fd, pieces, count);
	}
	if (answer >= 0 && (size_t)answer != total)
		unexpected("a write of a part", answer);
	written += answer >= 0;
	expect("write", answer < 0 ? -errno : 0, EFAULT, EINVAL, ENOENT, EBADF, E2BIG);
}

/* Finds the folder of a random event; returns false if it has found none. */
static bool some_event(char *path, size_t size)
{
	const char *system = one_in(3) ? "user_events_multi" : "user_events";
	DIR *dir = opendir(pathf("%s/events/%s", kernel_dir(), system));
	unsigned int seen = 0;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (!strncmp(entry->d_name, "fz", 2) && one_in(++seen))
			snprintf(path, size, "events/%s/%s", system, entry->d_name);
	if (dir)
		closedir(dir);
	return seen;
}

/* Events come and go, so all of this may fail. */
static void listen(void)
{
	static const char *const triggers[] = { "hist:keys=common_pid:size=128", "!hist:keys=common_pid:size=128" };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .sample_type = PERF_SAMPLE_RAW, .sample_period = 1,
	};
	unsigned int which = below(2);
	char event[300];
	char *id;

	if (!some_event(event, sizeof(event)))
		return;
	switch (below(8)) {
	case 0 ... 3:
		append(pathf("%s/%s/enable", kernel_dir(), event), one_in(2) ? "0" : "1");
		break;
	case 4:
		append(pathf("%s/%s/trigger", tracing_dir(), event), any(triggers));
		break;
	case 5 ... 6:
		close(perf[which]);
		perf[which] = -1;
		id = slurp(pathf("%s/%s/id", kernel_dir(), event));
		if (id && one_in(2)) {
			attr.config = atoi(id);
			perf[which] = syscall(__NR_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
		}
		free(id);
		break;
	default:
		free(slurp(pathf("%s/%s/format", kernel_dir(), event)));
	}
}

static void read_some(void)
{
	static char text[1 << 16];
	const char *const paths[] = {
		pathf("%s/user_events_status", tracing_dir()), pathf("%s/trace", kernel_dir()),
		pathf("%s/dynamic_events", kernel_dir()), pathf("%s/events/header_page", kernel_dir()),
	};
	int fd = open(any(paths), O_RDONLY | O_CLOEXEC);

	if (read(fd, text, sizeof(text)) < 0 && !unprivileged)
		unexpected("to read", -errno);
	close(fd);
}

static void command(void)
{
	static const char *const kinds[] = { "u:", "u: ", "-:", "!u:", "-:user_events/" };
	const char *text = pathf("%s%s", any(kinds), description());

	/* Several lines would contain commands for other subsystems. */
	if (strchr(text, '\n'))
		return;
	if (unprivileged || kernel_has_own())
		return;
	expect("command", append(pathf("%s/dynamic_events", kernel_dir()), text),
	       EINVAL, ENOENT, EBUSY, EADDRINUSE, EPERM, EMFILE, ENODEV, ENOMEM, E2BIG);
}

static void move_memory(void)
{
	switch (below(6)) {
	case 0: munmap(restless, page); break;
	case 1: mprotect(restless, page, PROT_READ); break;
	case 2: mprotect(restless, page, PROT_NONE); break;
	case 3: madvise(restless, page, MADV_DONTNEED); break;
	default: mmap(restless, page, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_ANONYMOUS |
		      (one_in(2) ? MAP_SHARED : MAP_PRIVATE), -1, 0);
	}
}

static void step(void);

static void child(void)
{
	unsigned int steps = below(20), i;
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return;
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (i = 0; i < steps; i++)
			step();
		if (one_in(4))
			execl("/bin/true", "true", NULL);
		_exit(0);
	}
	/* The child has copied the state of the random numbers. */
	below(2);
	if (one_in(4))
		kill(pid, SIGKILL);
	while (waitpid(-1, &status, one_in(2) ? 0 : WNOHANG) > 0)
		if (WIFEXITED(status) && WEXITSTATUS(status))
			_exit(1);
}

/* Opens the file, or the device, which is equivalent for programs. */
static int reopened(void)
{
	int fd = one_in(4) ? open("/dev/user_events", O_RDWR | O_CLOEXEC) : -1;

	return fd < 0 ? open_data() : fd;
}

static void step(void)
{
	int *fd = &any(files);

	switch (below(100)) {
	case 0 ... 24: request(*fd); break;
	case 25 ... 39: give_back(*fd); break;
	case 40 ... 44: delete(*fd); break;
	case 45 ... 46: other_ioctl(*fd); break;
	case 47 ... 83: write_some(*fd); break;
	case 84 ... 87: listen(); break;
	case 88 ... 89: read_some(); break;
	case 90 ... 91: command(); break;
	case 92 ... 95: move_memory(); break;
	case 96: child(); break;
	default:
		if (!one_in(4))
			break;
		close(*fd);
		*fd = reopened();
	}
}

static void work(unsigned int worker)
{
	unsigned int i;

	state = (seed + worker * 0x9e3779b97f4a7c15ull) | 1;
	unprivileged = worker == 0;
	if (unprivileged)
		become_user(1001);
	for (i = 0; i < FILES; i++)
		files[i] = open_data();
	perf[0] = perf[1] = -1;
	while (now() < end) {
		step();
		for (i = 0; i < WORDS; i++)
			if ((words[i] ^ pattern) & ~given[i])
				unexpected("memory was changed", i);
	}
	printf("# process %u: %lu operations, %lu of them with success, %lu records\n", worker, operations,
	       successes, written);
	fflush(stdout);
	_exit(written ? 0 : 1);
}

/* Deletes persistent events, and waits for others to go by themselves. */
static bool nothing_is_left(void)
{
	static const char *const systems[] = { "user_events", "user_events_multi" };
	char *text = slurp(pathf("%s/user_events_status", tracing_dir())), *rest = text, *line;
	int fd = open_data(), i;

	for (i = 0; i < 2; i++)
		append(pathf("%s/events/%s/enable", kernel_dir(), systems[i]), "0");
	while ((line = strsep(&rest, "\n")) && *line) {
		char *end = strchr(line, ':');

		/* Names contain no colon: the bit comes before it. */
		line = end ? end + 1 : line;
		end = strstr(line, " # Used by");
		if (end)
			*end = 0;
		for (i = 0; end && i < 2; i++)
			append(pathf("%s/events/%s/%s/trigger", tracing_dir(), systems[i], line),
			       "!hist:keys=common_pid:size=128");
		del(fd, line);
		/* Events with many formats are deleted by the name without the number. */
		if ((end = strrchr(line, '.')))
			*end = 0;
		del(fd, line);
	}
	close(fd);
	line = rest ? strstr(rest, "Active: ") : NULL;
	i = line ? atoi(line + strlen("Active: ")) : -1;
	free(text);
	return !i;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seconds", required_argument, NULL, 't' }, { "seed", required_argument, NULL, 's' }, {},
	};
	unsigned int i, failed = 0;
	pid_t pids[WORKERS];
	int option, status;

	seconds = rest_only() && !slow_kernel() ? 5 : repeats(10, 20, 300);
	seed = long_run() ? time(NULL) ^ getpid() : 1;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 't': seconds = atof(optarg); break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		default: return 2;
		}
	}
	note("--seed %llu --seconds %g", seed, seconds);
	page = sysconf(_SC_PAGESIZE);
	edge = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	nothing = edge + page;
	read_only = edge + 2 * page;
	restless = edge + 3 * page;
	munmap(nothing, page);
	mprotect(read_only, page, PROT_READ);
	for (i = 0; i < WORDS; i++)
		words[i] = pattern;
	append(pathf("%s/buffer_size_kb", kernel_dir()), "64");

	open_to_group(true);
	end = now() + seconds;
	for (i = 0; i < WORKERS; i++)
		if (!(pids[i] = fork()))
			work(i);
	for (i = 0; i < WORKERS; i++) {
		bool fine = waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status) && !WEXITSTATUS(status);

		failed += !ok(fine, "process %u: each answer is one of those that are documented", i);
		if (!fine)
			note("status %x", status);
	}
	open_to_group(false);
	truncate_file(pathf("%s/trace", kernel_dir()));
	if (!ok(within_seconds(60, nothing_is_left()), "and nothing is left"))
		note("%s", slurp(pathf("%s/user_events_status", tracing_dir())));
	finish();
}
