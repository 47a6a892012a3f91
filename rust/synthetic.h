/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_SYNTHETIC_H
#define RHIST_SYNTHETIC_H

#include <linux/types.h>

struct synth_field;
struct trace_array;
struct trace_event_call;
struct tracepoint;

bool rhist_is_synthetic(struct trace_event_call *call);
void rhist_synthetic_count(struct trace_event_call *call, int users);
struct synth_field **rhist_synthetic_fields(struct trace_event_call *call, unsigned int *n);
bool rhist_synthetic_emit(struct tracepoint *tp, struct trace_array *tr, const u64 *vals,
			  const unsigned int *idx);

#endif
