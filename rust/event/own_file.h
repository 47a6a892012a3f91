/* SPDX-License-Identifier: GPL-2.0 */
/* rhist's own file of an event, as it is made by event_file.c, and read by handlers. */
#ifndef RHIST_OWN_FILE_H
#define RHIST_OWN_FILE_H

#include <linux/bits.h>
#include <linux/trace_events.h>

#include "event_probe.h"

struct rhist_handled;

/* Flag of files of rhist. The kernel uses the lowest bits. */
#define RHIST_EVENT_FILE	BIT(BITS_PER_LONG - 1)

struct rhist_event_file {
	/* Its ->list is on a list of event_file.c; its ->ref keeps the memory. */
	struct trace_event_file file;
	/* The event. For an event probe, file.event_call is the copy instead. */
	struct trace_event_call *call;
	/* Number of times it is connected. */
	unsigned int users;
	/* For an event probe: the file of the target, and the copy. */
	struct rhist_event_file *target;
	struct rhist_event_probe copy;
	/*
	 * The way in which handlers of rhist count hits, if the event has any
	 * (rust/probe/handlers.c); and the same while they are to do so.
	 */
	struct rhist_handled *handlers, *handled;
};

#endif
