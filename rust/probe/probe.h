/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_PROBE_PROBE_H
#define RHIST_PROBE_PROBE_H

struct rhist_probed;
struct trace_event_call;

void *rhist_probe_find(struct trace_event_call *call);
int rhist_probe_connect(struct trace_event_call *call, void *probe, struct rhist_probed *probed);
void rhist_probe_disconnect(struct trace_event_call *call, void *probe, struct rhist_probed *probed);

#endif
