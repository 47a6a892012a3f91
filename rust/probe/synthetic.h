/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_PROBE_SYNTHETIC_H
#define RHIST_PROBE_SYNTHETIC_H

struct rhist_probed;
struct trace_event_call;
struct tracepoint;

void *rhist_synthetic_find(struct trace_event_call *call);
const struct rhist_probed *rhist_synthetic_listener(struct tracepoint *tp);

#endif
