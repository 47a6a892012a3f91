/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_SNAPSHOT_H
#define RHIST_SNAPSHOT_H

#include <linux/types.h>

struct trace_array;

/*
 * Decides whether to take a snapshot, from the data passed to rhist_snapshot_take(). Interrupts are
 * off.
 */
typedef bool (*rhist_update_t)(struct trace_array *tr, void *cond_data);
int rhist_snapshot_enable(struct trace_array *tr, rhist_update_t update);
void rhist_snapshot_disable(struct trace_array *tr);
void rhist_snapshot_take(struct trace_array *tr, void *cond_data);

#endif
