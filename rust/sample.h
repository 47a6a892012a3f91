/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_SAMPLE_H
#define RHIST_SAMPLE_H

#include <linux/sched.h>
#include <linux/types.h>

struct rhist_probed;
struct trace_event_call;

extern struct trace_event_call rhist_sample_call;

/* Highest rate in Hz. */
#define RHIST_SAMPLE_FREQUENCY_MAX	10000

/* The ticks of all CPUs since the event was connected. */
struct rhist_ticks {
	/* Ticks by the clock, and the three ways in which they were counted: see sample.c. */
	u64 due, passed, late, off;
	/* Ticks per second on each CPU. */
	unsigned int frequency;
	/* The program that connected the event; empty if it is not connected. */
	pid_t tgid;
	char comm[TASK_COMM_LEN];
};

bool rhist_is_sample(const struct trace_event_call *call);
int rhist_sample_connect(struct rhist_probed *probed);
void rhist_sample_disconnect(void);
void rhist_sample_ticks(struct rhist_ticks *ticks);
unsigned int rhist_sample_frequency(void);
int rhist_sample_set_frequency(unsigned int frequency);

#endif
