// SPDX-License-Identifier: GPL-2.0
/* Writes each line of its input to the kernel's log, where kernel_report() finds it. */
#define _GNU_SOURCE

#include "tracing.h"

int main(void)
{
	char line[400];

	open_kernel_log();
	while (fgets(line, sizeof(line), stdin)) {
		/* A file that stays open may write only ten lines in five seconds. */
		int kmsg = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
		ssize_t written = write(kmsg, line, strlen(line));
		char *report = kernel_report();

		line[strcspn(line, "\n")] = 0;
		ok(written > 0 && report && strstr(report, line), "%s", line);
		free(report);
		close(kmsg);
	}
	finish();
}
