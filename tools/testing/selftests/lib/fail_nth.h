/* SPDX-License-Identifier: GPL-2.0 */
/* Failing allocations on demand: /proc/thread-self/fail-nth. */
#ifndef FAIL_NTH_H
#define FAIL_NTH_H

#include <sys/mount.h>

#include "tracing.h"

#define MOST 20000	/* allocations of one operation; more means that it never succeeds */

static int nth = -1;

/*
 * Errors that an operation may return after an injected failure. Where copies to and from user
 * space can be made to fail, they are counted with the allocations.
 */
__maybe static bool excused(int error)
{
	return error == -ENOMEM || error == -ENFILE || error == -EFAULT;
}

/* Makes the n-th allocation of this thread from now on fail; 0: none. */
__maybe static void fail(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	if (pwrite(nth, text, len, 0) != len)
		die("fail-nth: %s", strerror(errno));
}

/*
 * Returns true if the allocation was reached and failed. If not, a copy to or from user space by
 * this function may fail instead.
 */
__maybe static bool failed(void)
{
	char text[16] = "";
	bool has = pread(nth, text, sizeof(text) - 1, 0) > 0 && atoi(text) == 0;

	while (pwrite(nth, "0", 1, 0) != 1)
		if (errno != EFAULT)
			die("fail-nth: %s", strerror(errno));
	return has;
}

__maybe static void set(const char *file, const char *text)
{
	put_len(pathf("/sys/kernel/debug/%s", file), 0, text, strlen(text));
}

__maybe static bool prepare(void)
{
	static const char *const kinds[] = { "failslab", "fail_page_alloc" };

	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (nth < 0 || access("/sys/kernel/debug/failslab", F_OK))
		return false;
	for (int i = 0; i < 2; i++) {
		/* Count allocations that may wait, too. */
		set(pathf("%s/ignore-gfp-wait", kinds[i]), "N");
		set(pathf("%s/ignore-gfp-highmem", kinds[i]), "N");
		set(pathf("%s/min-order", kinds[i]), "0");
		set(pathf("%s/verbose", kinds[i]), "0");
	}
	return true;
}

#endif
