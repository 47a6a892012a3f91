/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_SYNTHETIC_H
#define RHIST_SYNTHETIC_H

#include <linux/types.h>

struct trace_array;
struct trace_event_call;
struct tracepoint;

#ifdef CONFIG_SYNTH_EVENTS
struct synth_field;
#else
/* A kernel without synthetic events: no event has such fields. */
struct synth_field {
	char *type, *name;
	size_t size;
	bool is_signed, is_string, is_dynamic, is_stack;
};
#endif

bool rhist_is_synthetic(struct trace_event_call *call);
void rhist_synthetic_count(struct trace_event_call *call, int users);
struct synth_field **rhist_synthetic_fields(struct trace_event_call *call, unsigned int *n);
bool rhist_synthetic_emit(struct tracepoint *tp, struct trace_array *tr, const u64 *vals,
			  const unsigned int *idx, const void *origin);
const void *rhist_synthetic_origin(const struct tracepoint *tp);

#endif
