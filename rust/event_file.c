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
 * Event probes (kernel/trace/trace_eprobe.c) are events that are made in a trigger of another
 * event, the target. enable_eprobe() adds that trigger to the file that the target has in the
 * instance of the event probe's own file, and only for the first file that is enabled. So with a
 * file of ours it would find no target, or would find the event probe enabled already, or take the
 * trigger of another instance away when it is disabled. Therefore an event probe is copied: the
 * copy is enabled here only, and its target is a file of ours, which the kernel finds since it is
 * on the list of the instance during that call.
 *
 * All functions are called with event_mutex held, except rhist_event_file_put(),
 * rhist_event_file_has_handlers(), rhist_event_target() and rhist_trigger_hit_slow().
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
#include "probe/handlers.h"
#include "stack.h"
#include "layouts_generated.h"

/* All connected files; protected by event_mutex. */
static LIST_HEAD(files);

#if RHIST_EVENT_PROBES

/* Return the event probe of an event, or NULL for other events. It stays as long as the event. */
static struct trace_eprobe *event_probe(const struct trace_event_call *call)
{
	const struct list_head *probes;

	if (!(call->flags & TRACE_EVENT_FL_EPROBE))
		return NULL;
	/* The list has a single item: the kernel refuses another event probe of the same name. */
	probes = (void *)call - TRACE_PROBE_EVENT__CALL + TRACE_PROBE_EVENT__PROBES;
	return list_first_entry(probes, struct trace_eprobe, tp.list);
}

/*
 * Copy an event probe, but not the objects that it points to: the caller keeps the event from being
 * removed.
 */
static int copy_event_probe(struct rhist_event_file *file, const struct trace_eprobe *ep)
{
	struct trace_eprobe *copy = kmemdup(ep, struct_size(ep, tp.args, ep->tp.nr_args), GFP_KERNEL);
	void *event = kmemdup((void *)file->call - TRACE_PROBE_EVENT__CALL, TRACE_PROBE_EVENT__FILTER, GFP_KERNEL);

	file->probe = copy;
	file->probe_event = event;
	if (!copy || !event)
		return -ENOMEM;
	*(unsigned int *)(event + TRACE_PROBE_EVENT__FLAGS) = 0;
	INIT_LIST_HEAD(event + TRACE_PROBE_EVENT__FILES);
	INIT_LIST_HEAD(event + TRACE_PROBE_EVENT__PROBES);
	list_add(&copy->tp.list, event + TRACE_PROBE_EVENT__PROBES);
	copy->tp.event = event;
	file->file.event_call = event + TRACE_PROBE_EVENT__CALL;
	return 0;
}

static struct trace_event_call *target_of(const struct trace_eprobe *ep)
{
	return ep->event;
}

/* Replacement for the operations of a dynamic event while it is pinned. */
struct pinned_ops {
	struct dyn_event_operations ops;
	struct dyn_event_operations *unpinned;
	unsigned int pins;
};

static bool pinned_is_busy(struct dyn_event *event)
{
	return true;
}

static int pinned_free(struct dyn_event *event)
{
	return -EBUSY;
}

static struct pinned_ops *pinned_ops(const struct trace_eprobe *ep)
{
	struct dyn_event_operations *ops = ep->devent.ops;

	return ops->free == pinned_free ? container_of(ops, struct pinned_ops, ops) : NULL;
}

/*
 * Keep an event probe from being removed: removing it fails with -EBUSY, as if it were enabled. The
 * kernel uses the operations of a dynamic event with event_mutex held. Task context; returns 0 or
 * -ENOMEM.
 */
int rhist_event_probe_pin(struct trace_event_call *call)
{
	struct trace_eprobe *ep = event_probe(call);
	struct pinned_ops *pinned = pinned_ops(ep);

	if (!pinned) {
		pinned = kzalloc(sizeof(*pinned), GFP_KERNEL);
		if (!pinned)
			return -ENOMEM;
		pinned->unpinned = ep->devent.ops;
		pinned->ops = *ep->devent.ops;
		pinned->ops.is_busy = pinned_is_busy;
		pinned->ops.free = pinned_free;
		ep->devent.ops = &pinned->ops;
	}
	pinned->pins++;
	return 0;
}

/* Undo rhist_event_probe_pin(). event_mutex held, task context. */
void rhist_event_probe_unpin(struct trace_event_call *call)
{
	struct trace_eprobe *ep = event_probe(call);
	struct pinned_ops *pinned = pinned_ops(ep);

	if (--pinned->pins)
		return;
	ep->devent.ops = pinned->unpinned;
	kfree(pinned);
}

#else

struct trace_eprobe;

static struct trace_eprobe *event_probe(const struct trace_event_call *call)
{
	return NULL;
}

static int copy_event_probe(struct rhist_event_file *file, const struct trace_eprobe *ep)
{
	return -ENODEV;
}

static struct trace_event_call *target_of(const struct trace_eprobe *ep)
{
	return NULL;
}

int rhist_event_probe_pin(struct trace_event_call *call)
{
	return -ENODEV;
}

void rhist_event_probe_unpin(struct trace_event_call *call)
{
}

#endif

/*
 * Return the target of an event probe, whose hits cause the hits of @call; for any other event
 * @call itself. Task context; the event is referenced, and so keeps its target.
 */
struct trace_event_call *rhist_event_target(struct trace_event_call *call)
{
	const struct trace_eprobe *ep = event_probe(call);

	return ep ? target_of(ep) : call;
}

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
	kfree(file->probe);
	kfree(file->probe_event);
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
	const struct trace_eprobe *ep = event_probe(call);
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
	if (ep) {
		err = copy_event_probe(file, ep);
		if (!err) {
			file->target = rhist_event_file_connect(tr, target_of(ep), NULL, NULL);
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
