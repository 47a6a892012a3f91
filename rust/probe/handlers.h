/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_PROBE_HANDLERS_H
#define RHIST_PROBE_HANDLERS_H

#include <linux/types.h>

struct rhist_probed;
struct trace_event_call;

#define RHIST_HANDLERS	4

void rhist_handlers(unsigned long functions[RHIST_HANDLERS]);
bool rhist_handlers_set(struct trace_event_call *call, bool ours);

/*
 * In Rust; any context, with preemption off: counts a hit on the fast path, as rhist_probe_hit() does; but if it cannot, does
 * nothing and returns false.
 */
bool rhist_probe_hit_fast(const struct rhist_probed *probed, const void *record, size_t size, unsigned int cpu);

#endif
