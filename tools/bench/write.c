// SPDX-License-Identifier: GPL-2.0
// Measures the cost of a write() of a user event, in nanoseconds: with nobody, ftrace and perf
// listening; the kernel's own user events, if it has them, and the module's. Under QEMU's -icount a
// nanosecond is an instruction. The fastest of many rounds counts, the one without an interrupt.
#define _GNU_SOURCE
#include "client.h"

enum { ROUNDS = 400, WRITES = 50 };

struct event {
	const char *name;
	volatile unsigned int enabled;
	int fd, index;
};

static char buffer[4 + 1024];

static double nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Measures a write, which has to return `expected`. */
static double cost(int fd, size_t len, ssize_t expected)
{
	double least = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double began = nanoseconds(), each;

		for (int j = 0; j < WRITES; j++)
			if (write(fd, buffer, len) != expected)
				die("a write: %s", strerror(errno));
		each = (nanoseconds() - began) / WRITES;
		if (!i || each < least)
			least = each;
	}
	return least;
}

static void add(struct event *e, const char *dir, const char *name, int size)
{
	e->name = name;
	e->fd = open(pathf("%s/user_events_data", dir), O_RDWR);
	if (e->fd < 0 || reg(e->fd, pathf("%s char[%d] payload", name, size), &e->enabled, &e->index))
		die("%s in %s: %s", name, dir, strerror(errno));
}

/* Makes perf listen to this process, keep the newest records, and wake nobody for each. */
static int record(const char *name, void **ring)
{
	char *id = slurp(event_file(name, "id"));
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1, .watermark = 1, .wakeup_watermark = 1u << 30, .config = id ? atoi(id) : 0,
	};
	int fd = syscall(__NR_perf_event_open, &attr, 0, -1, -1, 0);

	free(id);
	*ring = mmap(NULL, 65 * sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
	if (fd < 0 || *ring == MAP_FAILED)
		die("perf: %s", strerror(errno));
	return fd;
}

static double measure(struct event *e, int size, int listener)
{
	void *ring;
	double ns;
	int fd;

	memcpy(buffer, &e->index, 4);
	switch (listener) {
	case 0:
		return cost(e->fd, 4 + size, -1);
	case 1:
		enable(e->name, true);
		ns = cost(e->fd, 4 + size, 4 + size);
		enable(e->name, false);
		return ns;
	default:
		fd = record(e->name, &ring);
		ns = cost(e->fd, 4 + size, 4 + size);
		munmap(ring, 65 * sysconf(_SC_PAGESIZE));
		close(fd);
		return ns;
	}
}

int main(void)
{
	static const char *const listeners[] = { "nobody", "ftrace", "perf" };
	static const int sizes[] = { 4, 64, 1024 };
	struct stat ours, kernels;
	int null = open("/dev/null", O_WRONLY);
	bool beside;

	beside = !stat(data_path(), &ours) && !stat(pathf("%s/user_events_data", kernel_dir()), &kernels) &&
		 ours.st_ino != kernels.st_ino;
	pin(0);
	printf("%-10s %8s %12s %12s %12s\n", "listens", "payload", "/dev/null", "kernel's own", "rhist");
	for (int s = 0; s < 3; s++) {
		struct event own = {}, module = {};

		if (beside)
			add(&own, kernel_dir(), strdup(pathf("bench_c_%d", sizes[s])), sizes[s]);
		add(&module, tracing_dir(), strdup(pathf("bench_%d", sizes[s])), sizes[s]);
		for (int l = 0; l < 3; l++) {
			printf("%-10s %8d %12.0f ", listeners[l], sizes[s], cost(null, 4 + sizes[s], 4 + sizes[s]));
			if (beside)
				printf("%12.0f ", measure(&own, sizes[s], l));
			else
				printf("%12s ", "-");
			printf("%12.0f\n", measure(&module, sizes[s], l));
			fflush(stdout);
		}
		if (beside)
			unreg(own.fd, &own.enabled, 0);
		unreg(module.fd, &module.enabled, 0);
		close(own.fd);
		close(module.fd);
	}
	return 0;
}
