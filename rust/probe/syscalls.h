/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_PROBE_SYSCALLS_H
#define RHIST_PROBE_SYSCALLS_H

struct rhist_probed;
struct trace_event_call;

void *rhist_syscall_find(struct trace_event_call *call);
int rhist_syscall_connect(struct trace_event_call *call, void *probe, struct rhist_probed *probed);
void rhist_syscall_disconnect(struct trace_event_call *call, void *probe);
void rhist_syscall_probes(unsigned long probes[2]);

#endif
