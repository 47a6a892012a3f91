/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contents of the events of rhist_events, which are computed from one number. Tests compute them,
 * too.
 */
#ifndef RHIST_EVENTS_VALUES_H
#define RHIST_EVENTS_VALUES_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

/* A number field of N bits holds the N upper ones: 0 to 4 give the edges of every width. */
static inline uint64_t rhist_number(uint64_t k)
{
	static const uint64_t edges[] = {
		0, ~0ull, 1ull << 63, ~0ull >> 1, 0x0101010101010101,
	};

	return k < sizeof(edges) / sizeof(*edges) ? edges[k] : k * 0x9e3779b97f4a7c15;
}

#define RHIST_TEXT 300	/* bytes of the longest text, without its NUL */
#define RHIST_LONGEST 9	/* the number of one with that length */

/*
 * Writes text k and returns its length, which is near the lengths at which C cuts strings. The
 * longest texts differ only behind the 255 bytes that fit into a key.
 */
static inline size_t rhist_text(uint64_t k, char text[RHIST_TEXT + 1])
{
	static const unsigned short lengths[] = { 7, 0, 1, 8, 15, 16, 254, 255, 256, RHIST_TEXT };
	size_t length = lengths[k % 10], digits = 0, i;
	char number[20];
	uint64_t rest = k;

	do {
		number[digits++] = '0' + rest % 10;
	} while (rest /= 10);
	for (i = 0; i < length; i++)
		text[i] = length == RHIST_TEXT && i < 255 ? '=' : number[digits - 1 - i % digits];
	text[length] = 0;
	return length;
}

#define RHIST_DEPTH 16	/* frames of the deepest stack: the most that C keeps */

/* From here on stacks are deeper, up to 200 frames: more than C allows for. */
#define RHIST_DEEP 1000

/* How many frames stack k has. */
static inline size_t rhist_depth(uint64_t k)
{
	if (k < RHIST_DEEP)
		return k % (RHIST_DEPTH + 1);
	return (k - RHIST_DEEP) % 201;
}

#endif
