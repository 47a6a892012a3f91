/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_PROBE_HANDLERS_H
#define RHIST_PROBE_HANDLERS_H

#include <linux/types.h>

struct rhist_handled;
struct rhist_probed;
struct trace_event_call;

#define RHIST_HANDLERS	4

void rhist_handlers(unsigned long functions[RHIST_HANDLERS]);
struct rhist_handled *rhist_handlers_set(struct trace_event_call *call, const struct rhist_probed *probed);
void rhist_handlers_reset(struct trace_event_call *call, struct rhist_handled *handled);

#endif
