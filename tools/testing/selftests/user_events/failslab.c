// SPDX-License-Identifier: GPL-2.0
/*
 * No memory: each allocation of a request, of an attach, of a write and so on fails once, the
 * first, the second, and so on until it succeeds. A failure is reported and leaves everything as it
 * was. Needs a kernel with failslab.
 */
#define _GNU_SOURCE
#include "fail_nth.h"
#include "client.h"

#define FIELDS " u32 a;char[8] b;__rel_loc char[] c;struct some d 12"

static unsigned int bits[4];
static int data = -1, other = -1, got = -1, index_of, status_bit;
static struct perf_event_attr attr;
static volatile unsigned char *map;
static void *mapped = MAP_FAILED;
static char payload[4000];
static long page;

/*
 * Writes the listeners and events to `out`, to compare before an operation and after one that
 * failed or was undone.
 */
static void status(char *out)
{
	int fd = open(pathf("%s/user_events_status", tracing_dir()), O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, out, 4095);

	if (len < 0)
		die("user_events_status: %s", strerror(errno));
	out[len] = 0;
	close(fd);
}

/* State that an operation works on, made and undone without failures. */

static void open_both(void)
{
	data = open_data();
	other = open_data();
}

static void close_both(void)
{
	if (got >= 0)
		close(got);
	close(data);
	close(other);
	got = -1;
}

static void an_event(void)
{
	open_both();
	if (reg(other, "uf_event" FIELDS, &bits[1], &index_of))
		die("an event");
}

static void an_event_no_more(void)
{
	if (got >= 0)
		close(got);
	got = -1;
	enable("uf_event", false);
	unreg(other, &bits[0], 0);
	unreg(other, &bits[1], 0);
	close_both();
}

static void a_listener(void)
{
	an_event();
	if (enable("uf_event", true) || bits[1] != 1)
		die("a listener");
}

static void one_that_stays(void)
{
	open_both();
	if (reg_flags(data, "uf_stays" FIELDS, &bits[0], 4, 0, USER_EVENT_REG_PERSIST, &index_of) ||
	    unreg(data, &bits[0], 0) || close(data))
		die("an event that stays");
	data = open_data();
}

static void deleted(void)
{
	unreg(other, &bits[0], 0);
	close_both();
	data = open_data();
	del(data, "uf_stays");
	close(data);
}

static void for_perf(void)
{
	char *id;

	an_event();
	id = slurp(event_file("uf_event", "id"));
	attr = (struct perf_event_attr) {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1, .config = id ? atoi(id) : -1,
	};
	free(id);
}

/* The operations. They return 0 or a negative errno. */

static int fd_or_error(int fd)
{
	got = fd;
	return fd < 0 ? -errno : 0;
}

static int open_file(void) { return fd_or_error(open(data_path(), O_RDWR | O_CLOEXEC)); }
static int open_device(void) { return fd_or_error(open("/dev/user_events", O_RDWR | O_CLOEXEC)); }
static int register_new(void) { return reg(data, "uf_new" FIELDS, &bits[0], NULL); }
static int register_same(void) { return reg(data, "uf_event" FIELDS, &bits[0], NULL); }
static int register_original(void) { return reg_original(data, "uf_stays" FIELDS, &status_bit, &index_of); }
static int register_same_original(void) { return reg_original(data, "uf_event" FIELDS, &status_bit, &index_of); }
static int give_back(void) { return unreg(data, &bits[1], 0); }
static int delete(void) { return del(data, "uf_stays"); }
static int attach(void) { return enable("uf_event", true); }
static int detach(void) { return enable("uf_event", false); }
static int attach_perf(void) { return fd_or_error(syscall(__NR_perf_event_open, &attr, 0, -1, -1, 0)); }

/* Both must get the same bytes, so a write copies them first. */
static void two_listeners(void)
{
	for_perf();
	if (attach_perf() || enable("uf_event", true) || bits[1] != 1)
		die("two listeners");
}

static int register_persistent(void)
{
	return reg_flags(data, "uf_stays" FIELDS, &bits[0], 4, 0, USER_EVENT_REG_PERSIST, NULL);
}

static int register_format(void)
{
	return reg_flags(data, "uf_new" FIELDS, &bits[0], 8, 0, USER_EVENT_REG_MULTI_FORMAT, NULL);
}

static int write_len(int len)
{
	int done = emit(other, index_of, payload, len);

	return done < 0 ? done : done == len + 4 ? 0 : -EIO;
}

static int write_small(void) { return write_len(100); }
static int write_large(void) { return write_len(sizeof(payload)); }

static int map_page(void)
{
	mapped = mmap(NULL, page, PROT_READ, MAP_SHARED, data, 0);
	return mapped == MAP_FAILED ? -errno : 0;
}

static void unmap_page(void)
{
	if (mapped != MAP_FAILED)
		munmap(mapped, page);
	mapped = MAP_FAILED;
	close_both();
}

static const struct operation {
	const char *what;
	void (*before)(void);
	int (*run)(void);
	void (*after)(void);
	/* It may fail without memory; if it needs any, it must. */
	bool may_fail;
} operations[] = {
	{ "opening user_events_data", open_both, open_file, close_both, true },
	{ "opening the device", open_both, open_device, close_both, true },
	{ "registering an event", open_both, register_new, deleted, true },
	{ "registering one of several formats", open_both, register_format, deleted, true },
	{ "registering one that is there", an_event, register_same, an_event_no_more, true },
	{ "registering one that stays", open_both, register_persistent, deleted, true },
	{ "registering by the original interface", open_both, register_original, deleted, true },
	{ "the same with one that is there", an_event, register_same_original, an_event_no_more, true },
	{ "giving a bit back", an_event, give_back, an_event_no_more, false },
	{ "deleting an event", one_that_stays, delete, deleted, true },
	{ "enabling an event", an_event, attach, an_event_no_more, true },
	{ "disabling an event", a_listener, detach, an_event_no_more, true },
	{ "attaching perf", for_perf, attach_perf, an_event_no_more, true },
	{ "writing 100 bytes", a_listener, write_small, an_event_no_more, false },
	{ "writing 4000 bytes", a_listener, write_large, an_event_no_more, false },
	{ "writing 4000 bytes to two", two_listeners, write_large, an_event_no_more, true },
	{ "mapping the page", open_both, map_page, unmap_page, true },
};

static bool needs_perf(const struct operation *o)
{
	return o->before == for_perf || o->before == two_listeners;
}

/* Returns true if the bit, the page and the event itself agree. */
static bool agree(void)
{
	bool on;
	char *text;

	if (!exists("uf_event"))
		return true;
	text = slurp(event_file("uf_event", "enable"));
	/* That file does not show perf. */
	on = (text && *text == '1') || got >= 0;
	free(text);
	if (bits[1] != on || !!(map[0] & ~1u) != on)
		note("enabled: %d, the bit: %u, the page: %x", on, bits[1], map[0]);
	return bits[1] == on && !!(map[0] & ~1u) == on;
}

static void each_fails(const struct operation *o)
{
	static char before[4096], now_[4096];
	int n, error = 0, failures = 0, others = 0, left = 0;
	bool fired = true;

	status(before);
	for (n = 1; n < MOST && fired; n++) {
		o->before();
		fail(n);
		error = o->run();
		fired = failed();
		/*
		 * The kernel has an error other than ENOMEM if it cannot allocate the event's
		 * number.
		 */
		if (error && fired && (excused(error) || error == -ENODEV))
			failures += error != -EFAULT;
		else if (error && !others++)
			note("allocation %d: %s", n, errno_name(error));
		if (o->run != give_back && !agree())
			others++;
		o->after();
		if (!within_seconds(20, (status(now_), !strcmp(before, now_))) && !left++)
			note("allocation %d: %s", n, now_);
	}
	ok(!others && !left && n < MOST && !error && (o->may_fail ? failures : !failures),
	   "%s: whichever of %d allocations fails, %d with an error", o->what, n - 2, failures);
}

/* The trace has exactly the successful writes. */
static void records(void)
{
	int n, written = 0, traced = 0;
	bool fired = true;
	char *text, *at;

	two_listeners();
	truncate_file(pathf("%s/trace", kernel_dir()));
	for (n = 1; n < MOST && fired; n++) {
		fail(n);
		written += !write_large();
		fired = failed();
	}
	at = text = slurp(pathf("%s/trace", kernel_dir()));
	while (at && (at = strstr(at, ": uf_event: "))) {
		at++;
		traced++;
	}
	free(text);
	ok(written && traced == written, "%d of %d writes succeeded, and have a record each", written, n - 1);
	if (traced != written)
		note("%d records", traced);
	an_event_no_more();
}

/* A text is read whole, or the read fails. */
static void texts(void)
{
	static char whole[4096], text[4096];
	int n, wrong = 0, refused = 0;
	bool fired = true;

	an_event();
	status(whole);
	for (n = 1; n < MOST && fired; n++) {
		ssize_t len = -1;
		int fd, error;

		fail(n);
		fd = open(pathf("%s/user_events_status", tracing_dir()), O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			len = read(fd, text, sizeof(text) - 1);
		error = errno;
		fired = failed();
		if (fd >= 0)
			close(fd);
		if (len < 0)
			refused++;
		text[len < 0 ? 0 : len] = 0;
		if (len < 0 ? !fired || !excused(-error) : strcmp(text, whole))
			wrong++;
	}
	ok(refused && !wrong, "user_events_status is read whole or not at all, whichever of %d allocations fails", n - 2);
	an_event_no_more();
}

/*
 * Children whose bits cannot be copied: some allocations for them and for the fork fail at random.
 */
static void forks(void)
{
	int i, status_, made = 0, told = 0;
	pid_t pid;

	a_listener();
	set("failslab/task-filter", "Y");
	set("failslab/probability", "3");
	set("failslab/interval", "1");
	set("failslab/times", "-1");
	for (i = 0; i < (slow_kernel() ? 100 : 300); i++) {
		put_len("/proc/self/make-it-fail", 0, "1", 1);
		pid = fork();
		if (!pid) {
			/*
			 * Either bits were copied and are written, or only the memory was copied.
			 */
			_exit(bits[1] != 1 ? 1 : unreg(other, &bits[1], 0) ? 2 : 3);
		}
		put_len("/proc/self/make-it-fail", 0, "0", 1);
		if (pid < 0 || waitpid(pid, &status_, 0) != pid)
			continue;
		made++;
		told += WIFEXITED(status_) && WEXITSTATUS(status_) == 3;
	}
	set("failslab/probability", "0");
	set("failslab/task-filter", "N");
	ok(made && told, "%d of %d forks were made, %d children were told of events", made, i, told);
	ok(!enable("uf_event", false) && !bits[1] && !enable("uf_event", true) && bits[1] == 1, "the parent is told");
	an_event_no_more();
}

/* Shared by the loader of the module and the process that tries to get in meanwhile. */
static volatile struct {
	bool try, tries, end;
	unsigned int entered;
} *door;

static void tries_to_enter(void)
{
	int fd;

	while (!door->end) {
		door->tries = door->try;
		if (!door->tries || door->entered)
			continue;
		fd = open(data_path(), O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		door->entered += !reg(fd, "uf_early", &bits[2], NULL);
		/* A failing load of the module waits for this. */
		within_seconds(1, !door->try);
		unreg(fd, &bits[2], 0);
		close(fd);
	}
	_exit(0);
}

/*
 * Loads the module with the n-th allocation failing, while another process tries to open its files.
 */
static int load(int n, bool *fired, int *left)
{
	int fd = open(getenv("RHIST_KO"), O_RDONLY | O_CLOEXEC), error = 0;
	char text[16] = "";

	if (!within_seconds(10, !syscall(SYS_delete_module, "rhist", O_NONBLOCK) || errno == ENOENT))
		die("the module goes: %s", strerror(errno));
	door->entered = 0;
	door->try = true;
	within_seconds(10, door->tries);
	fail(n);
	if (syscall(SYS_finit_module, fd, "", 0))
		error = -errno;
	*left = pread(nth, text, sizeof(text) - 1, 0) > 0 ? atoi(text) : 0;
	*fired = failed();
	if (!error)
		within_seconds(10, door->entered);
	door->try = false;
	within_seconds(10, !door->tries);
	close(fd);
	return error;
}

/*
 * A failing load leaves no user in the module: its last allocations come when its files already
 * exist.
 */
static void loads(void)
{
	int n, left, tried, failures = 0, early = 0;
	bool fired;
	pid_t pid;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		skip("one processor", "nobody gets into a module that fails to load");
		return;
	}
	/* The kernel logs a failed allocation of a page at length, with a trace. */
	set("fail_page_alloc/ignore-gfp-wait", "Y");
	door = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = fork();
	if (!pid)
		tries_to_enter();
	ok(!load(MOST, &fired, &left) && !fired && door->entered, "who tries to get in while the module is loaded does");
	/* Many of these failures do not prevent the load. */
	for (n = MOST - left, tried = 0; failures < 2 && tried < 20; n -= 2, tried++) {
		if (!load(n, &fired, &left))
			continue;
		failures++;
		early += door->entered;
	}
	ok(failures && !early, "but nobody while it fails: %u of %u", early, failures);
	ok(!load(MOST, &fired, &left), "it is loaded when nothing fails");
	door->end = true;
	waitpid(pid, NULL, 0);
}

int main(void)
{
	static char before[4096], after[4096];
	char *names = strdup(pathf("%s/events/oom/mark_victim/enable", kernel_dir()));
	int fd;

	if (!prepare()) {
		skip("this kernel has no fault injection", "allocations that fail");
		finish();
	}
	page = sysconf(_SC_PAGESIZE);
	/*
	 * The first event that is enabled starts the recording of tasks' names. Without memory for
	 * that, the kernel goes on, and warns when the last event is disabled. So one stays
	 * enabled, which never fires.
	 */
	if (append(names, "1"))
		die("%s: %s", names, strerror(errno));
	fd = open("/dev/user_events", O_RDONLY | O_CLOEXEC);
	map = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	if (fd < 0 || map == MAP_FAILED)
		die("the page: %s", strerror(errno));
	close(fd);
	status(before);
	for (unsigned int i = 0; i < sizeof(operations) / sizeof(*operations); i++)
		if (needs_perf(&operations[i]) && !have_perf())
			skip("no perf", "%s", operations[i].what);
		else if (needs_perf(&operations[i]) || !rest_only())
			each_fails(&operations[i]);
	if (have_perf())
		records();
	else
		skip("no perf", "what is traced of writes that fail");
	if (!rest_only())
		texts();
	forks();
	ok(within_seconds(20, (status(after), !strcmp(before, after))), "nothing is left");
	munmap((void *)map, page);
	append(names, "0");
	loads();
	finish();
}
