/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_EVENT_FILE_H
#define RHIST_EVENT_FILE_H

#include <linux/types.h>

struct event_trigger_data;
struct trace_array;
struct trace_event_call;

struct rhist_event_file;
struct rhist_event_file *rhist_event_file_connect(struct trace_array *tr, struct trace_event_call *call,
						  struct event_trigger_data *data);
void rhist_event_file_disconnect(struct rhist_event_file *file, struct event_trigger_data *data);
void rhist_event_file_put(struct rhist_event_file *file);
struct trace_event_call *rhist_event_target(struct trace_event_call *call);
int rhist_event_probe_pin(struct trace_event_call *call);
void rhist_event_probe_unpin(struct trace_event_call *call);

#endif
