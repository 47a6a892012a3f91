/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_ORC_H
#define RHIST_ORC_H

#include <linux/types.h>

struct rhist_frame;

/* Whether walks take rules. */
enum rhist_orc_mode {
	/* The kernel has no ORC unwinder, or not the one that is known. */
	RHIST_ORC_UNAVAILABLE,
	RHIST_ORC_ON,
	/* A walk by rules had another result than the kernel's unwinder. */
	RHIST_ORC_WRONG,
};

/* How walks went. */
struct rhist_orc_stats {
	enum rhist_orc_mode mode;
	/* Rules that were learned. */
	u64 learned;
	/* Frames for which the unwinder was asked. */
	u64 frames;
	/* Stacks that could not be walked by rules. */
	u64 failed;
	/* Stacks that were walked both ways, to compare. */
	u64 checked;
	/* With RHIST_ORC_WRONG: in which frame they differed, from 0, its address by rules and by the unwinder, and the one before. */
	unsigned int different;
	unsigned long by_rules, by_unwinder, callee;
};

void rhist_orc_init(void);
void rhist_orc_exit(void);
void rhist_orc_stats(struct rhist_orc_stats *stats);
int rhist_orc_walk(const struct rhist_frame *frame, unsigned long *entries, unsigned int n);

#endif
