// SPDX-License-Identifier: GPL-2.0
/*
 * Event files of the instance rhist: one for each event that is counted through the kernel's own
 * probe.
 *
 * class->reg() connects the probe of an event to any trace_event_file, not only to those on the
 * kernel's lists. The files here are in the state of a file that has a trigger: enabled,
 * soft-disabled, and with a reference of trigger mode, so that the kernel's own counting never
 * disables them.
 *
 * An event has one file here, however many users: the kernel keeps one file per instance for each
 * system call (trace_array.enter_syscall_files).
 *
 * An event probe has its hits in a trigger of its target. enable_eprobe() adds that trigger to the
 * file that the target has in the instance of the event probe's own file, and only for the first
 * file that is enabled. So with a file of ours it would find no target, or would find the event
 * probe enabled already, or take the trigger of another instance away when it is disabled.
 * Therefore an event probe is copied: the copy is enabled here only, and its target is a file of
 * ours, which the kernel finds since it is on the list of the instance during that call.
 *
 * All functions are called with event_mutex held, except rhist_event_file_put(),
 * rhist_event_file_has_handlers() and rhist_trigger_hit_slow().
 */
#include <linux/err.h>
#include <linux/list.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>

#include "event.h"
#include "event_file.h"
#include "event_probe.h"
#include "own_file.h"
#include "../probe/handlers.h"
#include "../stack/stack.h"

/* All connected files; protected by event_mutex. */
static LIST_HEAD(files);

/**
 * rhist_event_file_put - put a reference
 * @file: a file, which is freed if this was the last one
 *
 * If it was connected with that reference, it has been disconnected, and the
 * hits have been waited for.
 *
 * Context: any but NMI.
 */
void rhist_event_file_put(struct rhist_event_file *file)
{
	if (!refcount_dec_and_test(&file->file.ref))
		return;
	if (file->target)
		rhist_event_file_put(file->target);
	rhist_event_probe_free(&file->copy);
	kfree(file);
}

/* Connect or disconnect the probe of the event. */
static int reg(struct rhist_event_file *file, bool on)
{
	struct trace_event_call *call = file->file.event_call;
	int err;

	/* The kernel looks for the target by name: it finds the first one. */
	if (file->target)
		list_move(&file->target->file.list, rhist_events(file->file.tr));
	err = rhist_event_reg(call, &file->file, on);
	if (file->target)
		list_move(&file->target->file.list, &files);
	return err;
}

/*
 * Make handlers of rhist count hits, unless event probes use the file: they have their triggers on
 * its list, which only the kernel calls.
 */
static void choose_handlers(struct rhist_event_file *file)
{
	smp_store_release(&file->handled, file->users == 1 ? file->handlers : NULL);
}

static void disconnect(struct rhist_event_file *file)
{
	if (--file->users) {
		choose_handlers(file);
		return;
	}
	reg(file, false);
	list_del(&file->file.list);
	if (file->target)
		disconnect(file->target);
}

/* Allocate the file of an event, which is not connected yet. */
static struct rhist_event_file *new_file(struct trace_array *tr, struct trace_event_call *call)
{
	struct rhist_event_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return NULL;
	file->call = call;
	file->file.event_call = call;
	file->file.tr = tr;
	file->file.flags = EVENT_FILE_FL_ENABLED | EVENT_FILE_FL_SOFT_DISABLED | EVENT_FILE_FL_TRIGGER_MODE |
			   EVENT_FILE_FL_TRIGGER_COND | RHIST_EVENT_FILE;
	refcount_set(&file->file.ref, 1);
	atomic_set(&file->file.sm_ref, 1);
	atomic_set(&file->file.tm_ref, 1);
	INIT_LIST_HEAD(&file->file.triggers);
	return file;
}

/* Make handlers of rhist count the hits of an event for @probed, unless that is NULL. */
static void set_handlers(struct rhist_event_file *file, const struct rhist_probed *probed)
{
	WRITE_ONCE(file->handlers, probed ? rhist_handlers_set(file->call, probed) : NULL);
	choose_handlers(file);
}

static void reset_handlers(struct rhist_event_file *file)
{
	struct rhist_handled *handlers = file->handlers;

	WRITE_ONCE(file->handlers, NULL);
	choose_handlers(file);
	if (handlers)
		rhist_handlers_reset(file->call, handlers);
}

/* Return whether handlers of rhist record hits. Task context; the file is connected. */
bool rhist_event_file_has_handlers(const struct rhist_event_file *file)
{
	return READ_ONCE(file->handlers);
}

/**
 * rhist_event_file_connect - make the kernel call a trigger for each hit of an event
 * @tr: the instance rhist
 * @call: the event, referenced by the caller
 * @data: the trigger; or NULL, to connect the file only
 * @probed: receiver of the hits that handlers of rhist record, for which the trigger is not
 *	called; NULL for none, or if @data is NULL
 *
 * Context: task; may sleep.
 *
 * Return: the file of the event, with a reference, or an ERR_PTR: -ENOMEM, or the error of
 * class->reg().
 */
struct rhist_event_file *rhist_event_file_connect(struct trace_array *tr, struct trace_event_call *call,
						  struct event_trigger_data *data, const struct rhist_probed *probed)
{
	struct trace_event_call *target = rhist_event_target(call);
	struct rhist_event_file *file;
	int err = 0;

	list_for_each_entry(file, &files, file.list) {
		if (file->call != call)
			continue;
		file->users++;
		refcount_inc(&file->file.ref);
		if (data)
			rhist_trigger_list(&file->file, data);
		/* The kernel clears the flag with the last trigger that it knows of. */
		set_bit(EVENT_FILE_FL_TRIGGER_COND_BIT, &file->file.flags);
		if (data)
			set_handlers(file, probed);
		else
			choose_handlers(file);
		return file;
	}
	file = new_file(tr, call);
	if (!file)
		return ERR_PTR(-ENOMEM);
	if (target != call) {
		err = rhist_event_probe_copy(&file->copy, call);
		if (!err) {
			file->file.event_call = file->copy.call;
			file->target = rhist_event_file_connect(tr, target, NULL, NULL);
			err = PTR_ERR_OR_ZERO(file->target);
		}
		if (err)
			file->target = NULL;
	}
	if (!err) {
		file->users = 1;
		list_add(&file->file.list, &files);
		if (data)
			rhist_trigger_list(&file->file, data);
		err = reg(file, true);
		if (!err) {
			set_handlers(file, probed);
			return file;
		}
		if (data)
			rhist_trigger_unlist(data);
		list_del(&file->file.list);
	}
	if (file->target) {
		/* The target may have had hits. */
		disconnect(file->target);
		tracepoint_synchronize_unregister();
		synchronize_rcu();
	}
	rhist_event_file_put(file);
	return ERR_PTR(err);
}

/**
 * rhist_event_file_disconnect - undo rhist_event_file_connect()
 * @file: the file
 * @data: the trigger
 *
 * Hits that are running may still call the trigger. The caller waits for them,
 * and then puts its reference.
 *
 * Context: task; sleeps. For an event probe the kernel waits for running hits
 * here, which may wait for memory of their program.
 */
void rhist_event_file_disconnect(struct rhist_event_file *file, struct event_trigger_data *data)
{
	reset_handlers(file);
	rhist_trigger_unlist(data);
	disconnect(file);
}

/*
 * Slow path of a hit for which the kernel has called a trigger of rhist: passes it on with the
 * frame that its stack begins in. Any context, with preemption off.
 */
notrace void rhist_trigger_hit_slow(const void *receiver, const void *record, size_t size)
{
	struct rhist_frame frame __uninitialized;

	rhist_frame_of_caller(&frame);
	rhist_trigger_hit_all(receiver, record, size, raw_smp_processor_id(), &frame);
}
