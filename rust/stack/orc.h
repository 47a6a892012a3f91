/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_ORC_H
#define RHIST_ORC_H

#include <linux/types.h>

struct rhist_frame;

/* The way in which stacks are walked. */
enum rhist_orc_mode {
	/* The kernel lacks the ORC unwinder, or its unwinder differs from the known one. */
	RHIST_ORC_UNAVAILABLE,
	RHIST_ORC_ON,
	/* A walk by rules had another result than the kernel's unwinder. */
	RHIST_ORC_WRONG,
};

/* Statistics of walks. */
struct rhist_orc_stats {
	enum rhist_orc_mode mode;
	/* Number of rules that were learned. */
	u64 learned;
	/* Number of frames for which the unwinder was asked. */
	u64 frames;
	/* Number of stacks that could not be walked by rules. */
	u64 failed;
	/* Number of stacks that were walked both ways, to compare. */
	u64 checked;
	/*
	 * With RHIST_ORC_WRONG: the index of the frame that differed, from 0; its address by rules
	 * and by the unwinder; and the address of the frame before.
	 */
	unsigned int different;
	unsigned long by_rules, by_unwinder, callee;
};

void rhist_orc_init(void);
void rhist_orc_exit(void);
void rhist_orc_stats(struct rhist_orc_stats *stats);
int rhist_orc_walk(const struct rhist_frame *frame, unsigned long *entries, unsigned int n);

#endif
