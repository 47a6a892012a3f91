// SPDX-License-Identifier: GPL-2.0
// Choices of an administrator: parameters of the module, and the limit on events.
#define _GNU_SOURCE
#include "client.h"

#define MAX_EVENTS "/proc/sys/kernel/user_events_max"

static unsigned int bits[4];

/* Reloads the module, with parameters. Returns 0 or a negative errno. */
static int reload(const char *parameters)
{
	int fd = open(getenv("RHIST_KO"), O_RDONLY | O_CLOEXEC), error = 0;

	/* Events go within moments, and keep the module until then. */
	if (!within_seconds(5, !syscall(SYS_delete_module, "rhist", O_NONBLOCK) || errno == ENOENT))
		die("the module goes: %s", strerror(errno));
	if (syscall(SYS_finit_module, fd, parameters, 0))
		error = -errno;
	close(fd);
	return error;
}

static bool is(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
	struct stat s;

	if (stat(path, &s))
		return false;
	if (s.st_mode != mode || s.st_uid != uid || s.st_gid != gid)
		note("%s: %o, %u:%u", path, s.st_mode, s.st_uid, s.st_gid);
	return s.st_mode == mode && s.st_uid == uid && s.st_gid == gid;
}

static bool status_is(const char *expected)
{
	char *text = slurp(pathf("%s/user_events_status", tracing_dir()));
	bool same = text && !strcmp(text, expected);

	if (!same)
		note("%s", text ? text : strerror(errno));
	free(text);
	return same;
}

static void access_rights(bool kernels)
{
	const char *const dirs[] = { tracing_dir(), kernel_dir() };

	for (int i = 0; i < 1 + !kernels; i++) {
		ok(is(pathf("%s/user_events_data", dirs[i]), S_IFREG | 0640, 0, 0) &&
		   is(pathf("%s/user_events_status", dirs[i]), S_IFREG | 0440, 0, 0),
		   "%s: modes and owner by themselves", dirs[i]);
	}
	ok(is("/dev/user_events", S_IFCHR | 0640, 0, 0), "those of the device");
	ok(!reload("user_events_data_mode=0662 user_events_status_mode=0444 user_events_uid=12 user_events_gid=34"),
	   "others are asked for");
	for (int i = 0; i < 1 + !kernels; i++) {
		ok(is(pathf("%s/user_events_data", dirs[i]), S_IFREG | 0662, 12, 34) &&
		   is(pathf("%s/user_events_status", dirs[i]), S_IFREG | 0444, 12, 34), "%s: and had", dirs[i]);
	}
	ok(is("/dev/user_events", S_IFCHR | 0662, 0, 0), "for the device, its mode");
	ok(!reload("user_events_gid=34") && is(data_path(), S_IFREG | 0640, 0, 34), "or just the group");
	ok(reload("user_events_data_mode=01777") == -EINVAL, "a mode has permission bits only");
	ok(reload("user_events_data_mode=rw") == -EINVAL, "and is a number");
}

static void status_text(void)
{
	int fd, index;

	if (reload("user_events_status_bits=0"))
		die("the text without bits is asked for");
	fd = open_data();
	reg(fd, "se_text u32 a", &bits[0], &index);
	ok(status_is("se_text\n\nActive: 1\nBusy: 0\n"), "the text without bits");
	enable("se_text", true);
	ok(status_is("se_text # Used by ftrace\n\nActive: 1\nBusy: 1\n"), "and with a listener");
	enable("se_text", false);
	unreg(fd, &bits[0], 0);
	close(fd);
}

/* Events that are too long for this listener, for another one, and for all. */
static void lossy(void)
{
	static char big[70000];
	int fd, index, perf, i;
	char *trace;

	if (reload("user_events_lossy=1"))
		die("losses are asked for");
	fd = open_data();
	reg(fd, "se_lossy u8 a", &bits[0], &index);
	truncate_file(pathf("%s/trace", kernel_dir()));
	enable("se_lossy", true);
	ok(emit(fd, index, big, 5000) == 5004, "a payload that is too long for ftrace");
	ok(emit(fd, index, big, 65536) == 65540 && emit(fd, index, big, 65537) == 65541, "one for everybody");
	ok(emit(fd, index, big, 4000) == 4004, "one that is not too long");
	perf = perf_open("se_lossy");
	for (i = 0; i < 2; i++)
		ok(emit(fd, index, big, 8184 + i) == 8188 + i, "%d bytes for perf", 8184 + i);
	close(perf);
	enable("se_lossy", false);
	trace = slurp(pathf("%s/trace", kernel_dir()));
	trace = trace ? strstr(trace, ": se_lossy: ") : NULL;
	ok(trace && !strstr(trace + 1, ": se_lossy: "), "ftrace has the one that it could take");
	unreg(fd, &bits[0], 0);
	close(fd);
}

static void most(bool kernels)
{
	int fd, other, index, status_bit;
	char *text;

	if (reload(""))
		die("the module as it is by itself");
	if (kernels) {
		skip("the kernel has it", MAX_EVENTS);
		return;
	}
	text = slurp(MAX_EVENTS);
	ok(text && !strcmp(text, "32768\n") && is(MAX_EVENTS, S_IFREG | 0644, 0, 0), MAX_EVENTS " is 32768");
	free(text);
	ok(append(MAX_EVENTS, "-1\n") == -EINVAL && append(MAX_EVENTS, "many\n") == -EINVAL &&
	   append(MAX_EVENTS, "4294967296\n") == -EINVAL, "only a number is one");
	fd = open_data();
	other = open_data();
	ok(!append(MAX_EVENTS, "2\n"), "two events are enough");
	ok(!reg(fd, "se_max1", &bits[0], &index) && !reg_original(fd, "se_max2", &status_bit, &index), "they come");
	ok(reg(fd, "se_max3", &bits[1], &index) == -EMFILE &&
	   reg_original(fd, "se_max3", &status_bit, &index) == -EMFILE, "and no third one");
	ok(reg(fd, "se_max3 long a", &bits[1], &index) == -EINVAL, "unless it is none");
	ok(append(pathf("%s/dynamic_events", kernel_dir()), "u:se_max3") == -EMFILE, "nor by a command");
	ok(!exists("se_max3"), "really");
	ok(!reg(fd, "se_max2", &bits[1], &index) && index == 2, "those that are there can be had");
	ok(!append(MAX_EVENTS, "0\n") && exists("se_max1") && exists("se_max2"), "a lower number removes none");
	ok(!append(MAX_EVENTS, "3\n") && !reg(fd, "se_max3", &bits[2], &index), "with a higher one the third comes");
	for (int i = 0; i < 3; i++)
		unreg(fd, &bits[i], 0);
	close(fd);
	ok(!del(other, "se_max2"), "the one that stays is deleted");
	close(other);
	ok(!reload(""), "the module anew");
	text = slurp(MAX_EVENTS);
	ok(text && !strcmp(text, "32768\n"), "has the number it had at first");
	free(text);
}

int main(void)
{
	bool kernels;

	if (testing_c() || !getenv("RHIST_KO") || access(getenv("RHIST_KO"), R_OK)) {
		skip("RHIST_KO is not there", "settings");
		finish();
	}
	if (reload(""))
		die("the module comes without parameters");
	kernels = kernel_has_own();
	access_rights(kernels);
	status_text();
	lossy();
	most(kernels);
	finish();
}
