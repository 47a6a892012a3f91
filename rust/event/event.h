/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_EVENT_H
#define RHIST_EVENT_H

#include <linux/types.h>

struct event_trigger_data;
struct list_head;
struct module;
struct ring_buffer_event;
struct trace_array;
struct trace_event_call;
struct trace_event_file;

const char *rhist_event_name(struct trace_event_call *call);
struct list_head *rhist_event_fields(struct trace_event_call *call);
bool rhist_event_is_own(struct trace_event_call *call);
int rhist_event_get_module(struct trace_event_call *call, struct module **module);
void rhist_module_put(struct module *module);
bool rhist_event_built_in(struct trace_event_call *call);
bool rhist_event_may_fault(struct trace_event_call *call);
unsigned long rhist_event_iterator(struct trace_event_call *call);
int rhist_event_reg(struct trace_event_call *call, struct trace_event_file *file, bool on);
struct list_head *rhist_events(struct trace_array *tr);
void rhist_file_get(struct trace_event_file *file);
void rhist_file_put(struct trace_event_file *file);
bool rhist_file_ignores_task(struct trace_event_file *file);
struct trace_event_file *rhist_marker_file(struct trace_array *tr);
void rhist_trigger_list(struct trace_event_file *file, struct event_trigger_data *data);
void rhist_trigger_unlist(struct event_trigger_data *data);
size_t rhist_record_len(struct ring_buffer_event *event);

#endif
