/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_EVENT_PROBE_H
#define RHIST_EVENT_PROBE_H

struct trace_event_call;

/* A copy of an event probe. */
struct rhist_event_probe {
	/* struct trace_eprobe, and the struct trace_probe_event around the call. */
	void *probe, *event;
	/* Its event. */
	struct trace_event_call *call;
};

struct trace_event_call *rhist_event_target(struct trace_event_call *call);
int rhist_event_probe_pin(struct trace_event_call *call);
void rhist_event_probe_unpin(struct trace_event_call *call);
int rhist_event_probe_copy(struct rhist_event_probe *copy, struct trace_event_call *call);
void rhist_event_probe_free(struct rhist_event_probe *copy);

#endif
