/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_PROBE_H
#define RHIST_PROBE_H

#include <linux/types.h>

struct trace_event_call;

/* Private data that a probe is registered with. */
struct rhist_probed {
	/* Type number of the event, for common_type of the records. */
	unsigned short type;
	/* Whether a trigger reads common_flags or common_preempt_count. */
	bool context;
	/*
	 * Whether it belongs to a handler of rhist: on the slow path, the kernel's handler gets its
	 * hits.
	 */
	bool handler;
	/* Number of fields of a synthetic event; 0 for other events. */
	unsigned int n_fields;
};
void rhist_probe_hit_slow(const struct rhist_probed *probed, void *record, size_t size);
int rhist_probes_init(void);
void rhist_probes_exit(void);
void rhist_syscall_probes(unsigned long probes[2]);
void *rhist_probe_find(struct trace_event_call *call);
int rhist_probe_connect(struct trace_event_call *call, void *probe, struct rhist_probed *probed);
void rhist_probe_disconnect(struct trace_event_call *call, void *probe, struct rhist_probed *probed);

#endif
