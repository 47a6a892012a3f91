/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_OWN_EVENTS_H
#define RHIST_OWN_EVENTS_H

#include <linux/types.h>

struct trace_array;

int rhist_sync_init(const char *instance);
int rhist_with_event_mutex(struct trace_array *tr, int (*fn)(void *), void *arg);

#endif
