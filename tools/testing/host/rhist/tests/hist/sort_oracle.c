// SPDX-License-Identifier: GPL-2.0
/*
 * Sorts with the kernel's lib/sort.c. Reads lines of numbers; writes for each the order of their
 * indices.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int (*cmp_func_t)(const void *a, const void *b);
typedef int (*cmp_r_func_t)(const void *a, const void *b, const void *priv);
typedef void (*swap_func_t)(void *a, void *b, int size);
typedef void (*swap_r_func_t)(void *a, void *b, int size, const void *priv);

#define __attribute_const__ __attribute__((const))
#define __always_inline inline
#define CONFIG_64BIT
#define EXPORT_SYMBOL(name)
#define cond_resched()

#include "sort.h"

static u32 numbers[1 << 16];

/* An array of pointers to the entries, as in the map (tracing_map_sort_entries()). */
static const void *sorted[1 << 16];

static int compare(const void *a, const void *b)
{
	u32 x = **(u32 **)a, y = **(u32 **)b;

	return x > y ? 1 : x < y ? -1 : 0;
}

int main(void)
{
	char *line = NULL, *end;
	size_t size = 0, n, i;

	while (getline(&line, &size, stdin) > 0) {
		char *at = line;

		for (n = 0; *at && *at != '\n'; n++, at = end) {
			numbers[n] = strtoul(at, &end, 10);
			sorted[n] = &numbers[n];
			end += *end == ' ';
		}
		sort(sorted, n, sizeof(*sorted), compare, NULL);
		for (i = 0; i < n; i++)
			printf("%s%td", i ? " " : "", (u32 *)sorted[i] - numbers);
		putchar('\n');
	}
	return 0;
}
