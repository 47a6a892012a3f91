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

/*
 * Fewest cycles of a period: 6,000 interrupts per second at 6 GHz. And most cycles: they fit into
 * half of a counter of 32 bits.
 */
#define RHIST_SAMPLE_CYCLES_MIN		1000000
#define RHIST_SAMPLE_CYCLES_MAX		(1 << 30)

enum rhist_sample_source { RHIST_SAMPLE_CLOCK, RHIST_SAMPLE_CYCLES };

/* The cycles of a CPU since the event was connected. */
struct rhist_cycles {
	/* Cycles. An unfinished period of an earlier counter is left out. */
	u64 cycles;
	/* Periods by the counter, and the ways in which they were counted: see sample.c. */
	u64 periods, passed, late;
	u64 throttled;
	/* Whether its cycles are counted now, or it is online, and they are not. */
	bool counts, lacks;
};

/* The ticks, or periods, of all CPUs since the event was connected. */
struct rhist_ticks {
	/* By the clock or the counters, and the three ways in which they were counted. */
	u64 due, passed, late, off;
	/* How often the kernel has stopped a counter, since it interrupted too often. */
	u64 throttled;
	enum rhist_sample_source source;
	/* Ticks per second on each CPU, or cycles of a period. */
	unsigned int rate;
	/* If the clock stands in for cycles: the CPU without a counter, and the errno. */
	unsigned int lacking_cpu;
	int lacking;
	/* The program that connected the event; empty if it is not connected. */
	pid_t tgid;
	char comm[TASK_COMM_LEN];
};

bool rhist_is_sample(const struct trace_event_call *call);
int rhist_sample_connect(struct rhist_probed *probed);
void rhist_sample_disconnect(void);
void rhist_sample_ticks(struct rhist_ticks *ticks, struct rhist_cycles *of_cpus);
enum rhist_sample_source rhist_sample_source(void);
enum rhist_sample_source rhist_sample_chosen(void);
int rhist_sample_choose(enum rhist_sample_source new, unsigned int *without);
unsigned int rhist_sample_frequency(void);
int rhist_sample_set_frequency(unsigned int new);
unsigned int rhist_sample_cycles(void);
int rhist_sample_set_cycles(unsigned int new);

#endif
