/* SPDX-License-Identifier: GPL-2.0 */
/* The Test Anything Protocol, as kselftest speaks it. */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int tap_points, tap_failures;

/* One test point. Returns whether it passed. */
__attribute__((format(printf, 2, 3)))
static inline bool ok(bool passed, const char *name, ...)
{
	va_list args;

	tap_points++;
	if (!passed)
		tap_failures++;
	printf("%sok %d - ", passed ? "" : "not ", tap_points);
	va_start(args, name);
	vprintf(name, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	return passed;
}

__attribute__((format(printf, 2, 3)))
static inline void skip(const char *reason, const char *name, ...)
{
	va_list args;

	printf("ok %d - ", ++tap_points);
	va_start(args, name);
	vprintf(name, args);
	va_end(args);
	printf(" # SKIP %s\n", reason);
	fflush(stdout);
}

/* A remark; each of its lines gets a mark. */
__attribute__((format(printf, 1, 2)))
static inline void note(const char *format, ...)
{
	char *text = NULL, *line, *rest;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		abort();
	va_end(args);
	rest = text;
	while ((line = strsep(&rest, "\n")))
		if (*line || rest)
			printf("# %s\n", line);
	fflush(stdout);
	free(text);
}

/* Ends a test that cannot go on, with one failed point. */
#define die(...) do { ok(false, __VA_ARGS__); finish(); } while (0)

__attribute__((noreturn))
static inline void finish(void)
{
	printf("1..%d\n", tap_points);
	fflush(stdout);
	exit(tap_failures ? 1 : 0);
}

#endif
