/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_EVENT_FILE_H
#define RHIST_EVENT_FILE_H

#include <linux/types.h>

struct event_trigger_data;
struct rhist_event_file;
struct rhist_frame;
struct rhist_probed;
struct trace_array;
struct trace_event_call;

struct rhist_event_file *rhist_event_file_connect(struct trace_array *tr, struct trace_event_call *call,
						  struct event_trigger_data *data, const struct rhist_probed *probed);
void rhist_event_file_disconnect(struct rhist_event_file *file, struct event_trigger_data *data);
void rhist_event_file_put(struct rhist_event_file *file);
bool rhist_event_file_has_handlers(const struct rhist_event_file *file);

/*
 * In Rust: passes a hit with a complete record to all triggers. Any context, with preemption off.
 */
void rhist_trigger_hit_all(const void *receiver, const void *record, size_t size, unsigned int cpu,
			   const struct rhist_frame *frame);
void rhist_trigger_hit_slow(const void *receiver, const void *record, size_t size);

#endif
