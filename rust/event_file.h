/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_EVENT_FILE_H
#define RHIST_EVENT_FILE_H

#include <linux/bits.h>
#include <linux/trace_events.h>
#include <linux/types.h>

struct event_trigger_data;
struct rhist_frame;
struct rhist_handled;
struct rhist_probed;
struct trace_array;

/* Flag of files of rhist. The kernel uses the lowest bits. */
#define RHIST_EVENT_FILE	BIT(BITS_PER_LONG - 1)

struct rhist_event_file {
	/* Its ->list is on a list of rust/event_file.c; its ->ref keeps the memory. */
	struct trace_event_file file;
	/* The event. For an event probe, file.event_call is the copy instead. */
	struct trace_event_call *call;
	/* Number of times it is connected. */
	unsigned int users;
	/* For an event probe: the file of the target, and the copy. */
	struct rhist_event_file *target;
	void *probe_event;
	void *probe;
	/*
	 * The way in which handlers of rhist count hits, if the event has any
	 * (rust/probe/handlers.c); and the same while they are to do so.
	 */
	struct rhist_handled *handlers, *handled;
};

struct rhist_event_file *rhist_event_file_connect(struct trace_array *tr, struct trace_event_call *call,
						  struct event_trigger_data *data, const struct rhist_probed *probed);
void rhist_event_file_disconnect(struct rhist_event_file *file, struct event_trigger_data *data);
void rhist_event_file_put(struct rhist_event_file *file);
bool rhist_event_file_has_handlers(const struct rhist_event_file *file);
struct trace_event_call *rhist_event_target(struct trace_event_call *call);
int rhist_event_probe_pin(struct trace_event_call *call);
void rhist_event_probe_unpin(struct trace_event_call *call);

/*
 * In Rust: passes a hit with a complete record to all triggers. Any context, with preemption off.
 */
void rhist_trigger_hit_all(const void *receiver, const void *record, size_t size, unsigned int cpu,
			   const struct rhist_frame *frame);
void rhist_trigger_hit_slow(const void *receiver, const void *record, size_t size);

#endif
