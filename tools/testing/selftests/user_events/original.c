// SPDX-License-Identifier: GPL-2.0
// The original interface: a bit in a mapped page, persistent events, beside the current interface.
#define _GNU_SOURCE
#include "client.h"

#define DEVICE "/dev/user_events"

static long page;
static char *unmapped;		/* behind a writable page; a fault beyond it */
static unsigned int bits[4];

static bool is_error(int got, int expected, const char *what)
{
	bool same = ok(got == expected, "%s: %s", what, errno_name(expected));

	if (!same)
		note("%s", errno_name(got));
	return same;
}

static const char *status_path(void)
{
	return pathf("%s/user_events_status", tracing_dir());
}

/* The page as a program maps it. */
static volatile unsigned char *map(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);
	void *at = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);

	if (fd < 0 || at == MAP_FAILED)
		die("%s is mapped: %s", path, strerror(errno));
	close(fd);
	return at;
}

static bool is_set(volatile unsigned char *map, int bit)
{
	return map[bit / 8] & 1 << bit % 8;
}

static int bits_set(volatile unsigned char *map)
{
	int n = 0;

	for (int i = 0; i < page; i++)
		n += __builtin_popcount(map[i]);
	return n;
}

static bool status_says(const char *expected)
{
	char *text = slurp(status_path());
	bool same = text && !strcmp(text, expected);

	free(text);
	return same;
}

/* The same, with retries: an event without users goes within moments. */
static bool status_is(const char *expected)
{
	bool same = within_seconds(5, status_says(expected));

	if (!same)
		note("%s", slurp(status_path()));
	return same;
}

/* Sends a request of @size bytes whose structure ends with mapped memory, after @len bytes. */
static int raw(int fd, const struct user_reg_original *r, size_t len, unsigned int size)
{
	char bytes[64] = {}, *at = unmapped - len;

	memcpy(bytes, r, sizeof(*r));
	memcpy(bytes, &size, sizeof(size));
	memcpy(at, bytes, len);
	return ioctl(fd, DIAG_IOCSREG, at) ? -errno : 0;
}

static void requests(void)
{
	static const char *const bad[] = {
		"", ":", ":flag u32 a", " u32 a", ".", "..", ".:x", "or/or", "or\t", "or u32", "or long a", "or u32  a",
		"or:flag long a", "or char[0] a", "or struct a b", "enable", "filter:flag u32 a", "or#:flag", "or u32 a\nb",
		"or u32 common_pid",
	};
	struct user_reg_original r = { .name_args = (uintptr_t)"or_request u32 a" };
	int fd = open_data(), bit, index;
	char text[600];

	for (unsigned int size = 0; size < 28; size++)
		if (size != sizeof(r))
			is_error(raw(fd, &r, 28, size), -EINVAL, pathf("a structure of %u bytes", size));
	is_error(raw(fd, &r, 28, page + 1), -E2BIG, "one beyond a page");
	is_error(raw(fd, &r, 3, 20), -EFAULT, "a size cut off by the end of memory");
	is_error(raw(fd, &r, 19, 20), -EFAULT, "a structure cut off");
	ok(!exists("or_request"), "no event came of that");
	r.name_args = (uintptr_t)unmapped;
	is_error(raw(fd, &r, 20, 20), -EFAULT, "a name that is not there");
	r.name_args = -4096ul;
	is_error(raw(fd, &r, 20, 20), user_mode_linux() ? -ENOMEM : -EFAULT, "a name that is the kernel's");
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		is_error(reg_original(fd, bad[i], &bit, &index), -EINVAL, pathf("\"%s\"", bad[i]));
	memset(text, 'n', sizeof(text));
	text[512] = 0;
	is_error(reg_original(fd, text, &bit, &index), -EINVAL, "a description of 513 bytes");

	/* Read-only memory: the answer is lost, as it is with C. */
	r.name_args = (uintptr_t)"or_request u32 a";
	r.size = sizeof(r);
	memcpy(unmapped - page, &r, sizeof(r));
	mprotect(unmapped - page, page, PROT_READ);
	is_error(ioctl(fd, DIAG_IOCSREG, unmapped - page) ? -errno : 0, 0, "a structure that cannot be written to");
	mprotect(unmapped - page, page, PROT_READ | PROT_WRITE);

	is_error(reg_original(fd, "or_request:flags,of,old u32 a", &bit, &index), 0, "flags that nobody knows");
	ok(bit == 1 && index == 0, "the first bit is 1, the first index 0");
	is_error(reg_original(fd, "or_request u32 a;", &bit, &index), 0, "the same event");
	ok(bit == 1 && index == 0, "has the same");
	is_error(reg_original(fd, "or_request u64 a", &bit, &index), -EADDRINUSE, "other fields");
	is_error(reg_original(fd, "or_request long a", &bit, &index), -EADDRINUSE, "other fields, which are none");
	is_error(reg_original(fd, "or_second", &bit, &index), 0, "a second event");
	ok(bit == 2 && index == 1, "has the next bit and index");
	ok(status_is("1:or_request\n2:or_second\n\nActive: 2\nBusy: 0\nMax: 32768\n"),
	   "user_events_status has both by their bits");
	enable("or_second", true);
	ok(status_is("1:or_request\n2:or_second # Used by ftrace\n\nActive: 2\nBusy: 1\nMax: 32768\n"),
	   "and says who listens");
	enable("or_second", false);
	is_error(del(fd, "or_second"), -EBUSY, "to delete what a file has");
	close(fd);

	fd = open_data();
	ok(exists("or_request") && exists("or_second"), "they stay without the file");
	enable("or_second", true);
	is_error(del(fd, "or_second"), -EBUSY, "to delete what somebody listens to");
	enable("or_second", false);
	is_error(del(fd, "or_request"), 0, "to delete what nobody has");
	is_error(del(fd, "or_request"), -ENOENT, "twice");
	is_error(reg_original(fd, "or_third", &bit, &index), 0, "another event");
	ok(bit == 1 && index == 0, "has the bit that is free again");
	ok(status_is("2:or_second\n1:or_third\n\nActive: 2\nBusy: 0\nMax: 32768\n"), "in the order of creation");
	close(fd);
	fd = open_data();
	ok(!del(fd, "or_second") && !del(fd, "or_third"), "all are deleted");
	ok(status_is("\nActive: 0\nBusy: 0\nMax: 32768\n"), "and none is left");
	close(fd);
}

static void mappings(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at;

	if (fd < 0)
		die("%s opens: %s", path, strerror(errno));
	ok(mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EINVAL,
	   "%s: two pages are too many", path);
	close(fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ok(mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EPERM &&
	   mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EPERM,
	   "nobody writes to it");
	at = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	ok(at != MAP_FAILED && mprotect(at, page, PROT_READ | PROT_WRITE) && errno == EACCES, "nor later");
	munmap(at, page);
	at = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 3 * page);
	ok(at != MAP_FAILED && !*(volatile char *)at, "the offset does not matter");
	ok(mremap(at, page, 2 * page, MREMAP_MAYMOVE) == MAP_FAILED, "it does not grow");
	ok(!munmap(at, page) && !close(fd), "it is unmapped");
}

/* The calls of a typical program, through @data, with the page of @status. */
static void program(const char *dir, const char *data, const char *status)
{
	volatile unsigned char *at = map(pathf("%s/%s", dir, status), O_RDONLY);
	int fd = open(pathf("%s/%s", dir, data), O_RDWR | O_CLOEXEC), bit, index, perf, other, i;
	struct { unsigned int index, value; } e = { .value = 7 };
	unsigned long word;
	char *trace;

	if (fd < 0)
		die("%s/%s opens: %s", dir, data, strerror(errno));
	for (i = 0; i < 9; i++)
		if (reg_original(fd, pathf("or_program%d u32 value", i), &bit, &index))
			die("event %d: %s", i, strerror(errno));
	ok(bit == 9 && index == 8, "%s/%s: nine events", dir, data);
	e.index = index;
	ok(write(fd, &e, sizeof(e)) == sizeof(e), "when nobody listens, writing succeeds");
	ok(emit(fd, index, (void *)unmapped, 4) == 8, "without reading");
	is_error(emit(fd, index, &e.value, 3), -EINVAL, "but not if it is too short");
	is_error(emit(fd, 9, &e.value, 4), -ENOENT, "nor with an index that was not given");
	is_error(emit(fd, -1, &e.value, 4), -EINVAL, "nor a negative one");
	is_error(write(fd, &e, 3) < 0 ? -errno : 0, -EFAULT, "nor less than an index");
	ok(!bits_set(at), "%s/%s: no bit is set", dir, status);
	enable("or_program8", true);
	ok(is_set(at, 9) && bits_set(at) == 1, "the one of the event that is enabled");
	memcpy(&word, (void *)at, sizeof(word));
	ok(word & 1ul << 9, "in the word, too");
	truncate_file(pathf("%s/trace", kernel_dir()));
	ok(write(fd, &e, sizeof(e)) == sizeof(e) && emit(fd, index, &e.value, 4) == 8, "it is written");
	trace = slurp(pathf("%s/trace", kernel_dir()));
	ok(trace && strstr(trace, ": or_program8: value=0x7 (7)\n"), "and traced");
	free(trace);
	is_error(emit(fd, index, unmapped, 4), -EFAULT, "what cannot be read");
	enable("or_program0", true);
	ok(is_set(at, 1) && is_set(at, 9) && bits_set(at) == 2, "two are enabled");
	enable("or_program8", false);
	ok(is_set(at, 1) && bits_set(at) == 1, "one is disabled");
	if (have_perf()) {
		perf = perf_open("or_program8");
		ok(perf >= 0 && is_set(at, 9), "perf enables it");
		close(perf);
	} else {
		skip("no perf", "perf enables it");
	}
	enable("or_program0", false);
	ok(!bits_set(at), "and disables it");

	other = open(pathf("%s/%s", dir, data), O_RDONLY | O_CLOEXEC);
	is_error(reg_original(other, "or_program3 u32 value", &bit, &index), 0, "a file that is open for reading");
	ok(bit == 4 && index == 0, "has its own indices, and the same bits");
	is_error(ioctl(other, _IO('*', 0), NULL) ? -errno : 0, -ENOTTY, "an unknown command");
	close(fd);
	is_error(del(other, "or_program3"), -EBUSY, "the file has it");
	close(other);
	other = open(pathf("%s/%s", dir, data), O_RDONLY | O_CLOEXEC);
	for (i = 0; i < 9; i++)
		if (del(other, pathf("or_program%d", i)))
			die("event %d is deleted: %s", i, strerror(errno));
	close(other);
	munmap((void *)at, page);
}

static void validators(void)
{
	struct { unsigned int loc; char text[4]; } e;
	int fd = open_data(), bit, index;

	ok(!reg_original(fd, "or_valid __rel_loc char[] text", &bit, &index), "an event with a string");
	e.loc = DYN_LOC(0, 4);
	memcpy(e.text, "text", 4);
	ok(emit(fd, index, &e, sizeof(e)) == 4 + sizeof(e), "nobody looks at it when nobody listens");
	enable("or_valid", true);
	is_error(emit(fd, index, &e, sizeof(e)), -EFAULT, "a string without an end");
	e.text[3] = 0;
	ok(emit(fd, index, &e, sizeof(e)) == 4 + sizeof(e), "with one");
	e.loc = DYN_LOC(1, 4);
	is_error(emit(fd, index, &e, sizeof(e)), -EFAULT, "a string beyond the payload");
	enable("or_valid", false);
	close(fd);
	fd = open_data();
	is_error(del(fd, "or_valid"), 0, "it is deleted");
	close(fd);
}

/* One event, programs of both kinds. */
static void mixed(void)
{
	volatile unsigned char *at = map(status_path(), O_RDONLY);
	int old = open_data(), new = open_data(), bit, index[3];
	char *first, *trace, *status;
	unsigned int value = 5;

	ok(!reg(new, "or_mixed u32 value", &bits[0], &index[0]) &&
	   !reg_original(old, "or_mixed u32 value;", &bit, &index[1]), "an event of both interfaces");
	ok(bit == 1 && status_is("1:or_mixed\n\nActive: 1\nBusy: 0\nMax: 32768\n"), "is one");
	is_error(emit(new, index[0], &value, 4), -EBADF, "when nobody listens, the current one says so");
	ok(emit(old, index[1], &value, 4) == 8, "the original one does not");
	enable("or_mixed", true);
	ok(bits[0] == 1 && is_set(at, bit), "enabled, both are told");
	truncate_file(pathf("%s/trace", kernel_dir()));
	ok(emit(new, index[0], &value, 4) == 8 && emit(old, index[1], &value, 4) == 8, "both write");
	trace = slurp(pathf("%s/trace", kernel_dir()));
	first = trace ? strstr(trace, "or_mixed: value=0x5") : NULL;
	ok(first && strstr(first + 1, "or_mixed: value=0x5"), "both are traced");
	free(trace);
	enable("or_mixed", false);
	ok(!bits[0] && !is_set(at, bit), "disabled, both are told");

	ok(!reg_original(new, "or_mixed u32 value", &bit, &index[1]) &&
	   !reg_flags(new, "or_mixed u32 value", &bits[1], 4, 0, 0, &index[2]), "one file, by both interfaces");
	ok(index[0] == 0 && index[1] == 1 && index[2] == 0, "has an index for each");
	ok(emit(new, index[1], &value, 4) == 8 && emit(new, index[0], &value, 4) == -EBADF,
	   "which says what a write is like");
	is_error(unreg(old, &bits[0], 0), 0, "one bit is given back");
	is_error(unreg(old, &bits[1], 0), 0, "and the other");
	close(new);
	ok(!within_seconds(0.3, !exists("or_mixed")), "the program of the original interface keeps it");
	close(old);
	ok(within_seconds(5, !exists("or_mixed")), "but it was not made to stay");

	old = open_data();
	new = open_data();
	reg_original(old, "or_mixed u32 value", &bit, &index[0]);
	ok(!reg(new, "or_mixed u32 value", &bits[0], &index[1]) && !unreg(new, &bits[0], 0), "the other way round");
	close(old);
	close(new);
	ok(!within_seconds(0.3, !exists("or_mixed")), "it stays");
	new = open_data();
	is_error(reg_flags(new, "or_mixed u32 value", &bits[0], 4, 0, USER_EVENT_REG_MULTI_FORMAT, &index[0]), 0,
		 "one of several formats is another");
	status = slurp(status_path());
	ok(status && strstr(status, "1:or_mixed\n2:or_mixed.") == status, "with a bit as well");
	free(status);
	is_error(unreg(new, &bits[0], 0), 0, "its bit is given back");
	close(new);
	new = open_data();
	ok(status_is("1:or_mixed\n\nActive: 1\nBusy: 0\nMax: 32768\n"), "it goes");
	is_error(del(new, "or_mixed"), 0, "the other one is deleted");
	close(new);
	munmap((void *)at, page);
}

/* A user with access to the file, and nothing else. */
static void nobody(void)
{
	int fd = open_data(), other = open_data(), map = open(status_path(), O_RDONLY), status;
	pid_t pid = fork();

	if (!pid) {
		int bit, index;

		if (setgid(65534) || setuid(65534))
			_exit(1);
		if (reg_original(fd, "or_user", &bit, &index))
			_exit(2);
		if (mmap(NULL, page, PROT_READ, MAP_SHARED, map, 0) == MAP_FAILED)
			_exit(3);
		if (mmap(NULL, page, PROT_WRITE, MAP_SHARED, map, 0) != MAP_FAILED)
			_exit(4);
		close(fd);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	close(fd);
	close(map);
	ok(WIFEXITED(status) && !WEXITSTATUS(status), "without capabilities, an event can be registered");
	if (WEXITSTATUS(status))
		note("step %d", WEXITSTATUS(status));
	ok(exists("or_user"), "and stays");
	pid = fork();
	if (!pid)
		_exit(setgid(65534) || setuid(65534) || del(other, "or_user"));
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && !WEXITSTATUS(status) && !exists("or_user"), "until such a user deletes it");
	fd = open_data();
	reg_flags(fd, "or_root", &bits[0], 4, 0, USER_EVENT_REG_PERSIST, NULL);
	unreg(fd, &bits[0], 0);
	close(fd);
	pid = fork();
	if (!pid)
		_exit(setgid(65534) || setuid(65534) || del(other, "or_root") != -EPERM);
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && !WEXITSTATUS(status) && exists("or_root"),
	   "one that was kept by the current interface is root's");
	is_error(del(other, "or_root"), 0, "who deletes it");
	close(other);
}

/* The page in children, and in a child that has executed another program. */
static void children(void)
{
	volatile unsigned char *at = map(status_path(), O_RDONLY);
	int fd = open_data(), to[2], from[2], status, bit, index;
	char c;
	pid_t pid;

	reg_original(fd, "or_child", &bit, &index);
	if (pipe(to) || pipe(from))
		die("a pipe");
	pid = fork();
	if (!pid) {
		close(to[1]);
		close(from[0]);
		for (int i = 0; i < 2; i++)
			if (read(to[0], &c, 1) != 1 || is_set(at, bit) != !i || write(from[1], &c, 1) != 1)
				_exit(1 + i);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	enable("or_child", true);
	ok(write(to[1], "", 1) == 1 && read(from[0], &c, 1) == 1, "a child sees the bit set");
	munmap((void *)at, page);
	close(fd);
	enable("or_child", false);
	ok(write(to[1], "", 1) == 1 && read(from[0], &c, 1) == 1, "and cleared, with the page unmapped here");
	ok(waitpid(pid, &status, 0) == pid && !status, "it ends");
	close(to[1]);
	close(from[0]);
	fd = open_data();
	is_error(del(fd, "or_child"), 0, "the event is deleted");
	close(fd);
}

static int unload(void)
{
	return syscall(SYS_delete_module, "rhist", O_NONBLOCK) ? -errno : 0;
}

/* Without the module, and with it again. */
static void module(void)
{
	const char *ko = getenv("RHIST_KO");
	bool own = kernel_has_own();
	volatile unsigned char *at[2];
	int fd, bit, index;

	fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	is_error(unload(), -EAGAIN, "the device keeps the module while it is open");
	reg_original(fd, "or_module", &bit, &index);
	at[0] = map(DEVICE, O_RDONLY);
	at[1] = map(status_path(), O_RDONLY);
	enable("or_module", true);
	close(fd);
	is_error(unload(), -EAGAIN, "so does an event");
	enable("or_module", false);
	fd = open_data();
	is_error(del(fd, "or_module"), 0, "which is deleted");
	close(fd);
	is_error(unload(), -EAGAIN, "a mapping of the device");
	munmap((void *)at[0], page);
	is_error(unload(), -EAGAIN, "or of the status");
	ok(!bits_set(at[1]), "which is valid");
	munmap((void *)at[1], page);
	if (!ko || access(ko, R_OK)) {
		skip("RHIST_KO is not there", "unloading");
		return;
	}
	if (!is_error(unload(), 0, "without them it goes"))
		return;
	ok(access(DEVICE, F_OK) && access(tracing_dir(), F_OK) &&
	   (own || access("/proc/sys/kernel/user_events_max", F_OK)), "and all that it had");
	fd = open(ko, O_RDONLY | O_CLOEXEC);
	ok(fd >= 0 && !syscall(SYS_finit_module, fd, "", 0), "it comes again");
	close(fd);
}

/* The page has fewer bits than the number of possible events. */
static void all_bits(void)
{
	int fd = open_data(), status_bit = 0, index, i, wrong = 0;

	if (!long_run() || slow_kernel()) {
		skip("a long run", "all bits are given away");
		close(fd);
		return;
	}
	for (i = 1; i < 32768 && !wrong; i++) {
		wrong = reg_original(fd, pathf("or_all%d", i), &status_bit, &index);
		if (!wrong && (status_bit != i || index != i - 1))
			wrong = 1;
	}
	ok(!wrong, "bits up to 32767 are given away");
	if (wrong)
		note("at %d: %s", i, errno_name(wrong));
	is_error(reg_original(fd, "or_one_more", &status_bit, &index), -EMFILE, "then there is none");
	ok(!exists("or_one_more"), "nor an event");
	is_error(reg(fd, "or_one_more", &bits[0], &index), 0, "the current interface needs none");
	is_error(reg_original(fd, "or_one_more", &status_bit, &index), -EMFILE, "the original one does");
	is_error(reg(fd, "or_too_many", &bits[1], &index), -EMFILE, "and events end as well");
	close(fd);
	fd = open_data();
	ok(!del(fd, "or_all100") && !reg_original(fd, "or_again", &status_bit, &index) && status_bit == 100,
	   "the one that is free is given away again");
	close(fd);
	fd = open_data();
	/* The newest one is found first. */
	for (i = 32767, wrong = 0; i > 0; i--)
		wrong += i != 100 && del(fd, pathf("or_all%d", i));
	ok(!wrong && !del(fd, "or_again"), "all are deleted");
	unreg(fd, &bits[0], 0);
	close(fd);
}

int main(void)
{
	struct stat s;

	page = sysconf(_SC_PAGESIZE);
	unmapped = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unmapped += page;
	mprotect(unmapped, page, PROT_NONE);
	if (!status_is("\nActive: 0\nBusy: 0\nMax: 32768\n"))
		die("there are no events at first");
	requests();
	mappings(status_path());
	mappings(DEVICE);
	program(tracing_dir(), "user_events_data", "user_events_status");
	program("/dev", "user_events", "user_events");
	if (kernel_has_own())
		skip("the kernel has them", "user_events_data of the kernel's directory");
	else
		program(kernel_dir(), "user_events_data", "user_events_status");
	ok(!stat(DEVICE, &s) && s.st_mode == (S_IFCHR | 0640), "mode of " DEVICE ": 0640");
	validators();
	mixed();
	nobody();
	children();
	all_bits();
	module();
	finish();
}
