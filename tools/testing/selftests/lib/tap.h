/* SPDX-License-Identifier: GPL-2.0 */
/* Points of a test, by the kernel's own kselftest.h. Their number is known at the end only. */
#ifndef TAP_H
#define TAP_H

#include "kselftest.h"

/* Before the first line of a test: the header, and lines that are printed as they end. */
static inline void tap_begin(void)
{
	static bool has_begun;

	if (!has_begun)
		ksft_print_header();
	has_begun = true;
}

/* One test point. Returns whether it passed. */
__attribute__((format(printf, 2, 3)))
static inline bool ok(bool passed, const char *name, ...)
{
	va_list args;
	char *text;

	va_start(args, name);
	if (vasprintf(&text, name, args) < 0)
		abort();
	va_end(args);
	tap_begin();
	ksft_test_result(passed, "%s\n", text);
	free(text);
	return passed;
}

#define skip(reason, ...) do {						\
	tap_begin();							\
	ksft_test_result_skip(__VA_ARGS__);				\
	printf(" (%s)\n", reason);					\
} while (0)

/* A remark; each of its lines gets a mark. */
__attribute__((format(printf, 1, 2)))
static inline void note(const char *format, ...)
{
	char *text, *line, *rest;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		abort();
	va_end(args);
	tap_begin();
	rest = text;
	while ((line = strsep(&rest, "\n")))
		if (*line || rest)
			ksft_print_msg("%s\n", line);
	free(text);
}

/* Ends a test that cannot go on, with one failed point. */
#define die(...) do { ok(false, __VA_ARGS__); finish(); } while (0)

__attribute__((noreturn))
static inline void finish(void)
{
	ksft_set_plan(ksft_test_num());
	ksft_finished();
}

#endif
