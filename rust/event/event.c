// SPDX-License-Identifier: GPL-2.0
/*
 * Trace events, their event files and lists of triggers: wrappers for inline functions, and access
 * to members and functions that are not exported.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/rculist.h>
#include <linux/refcount.h>
#include <linux/ring_buffer.h>
#include <linux/slab.h>
#include <linux/srcu.h>
#include <linux/string.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>

#include "event.h"
#include "event_probe.h"
#include "../compat.h"
#include "layouts_generated.h"

const char *rhist_event_name(struct trace_event_call *call)
{
	return trace_event_name(call);
}

struct list_head *rhist_event_fields(struct trace_event_call *call)
{
	return trace_get_fields(call);
}

/* Return whether an event is part of the kernel, so that it is never removed. */
bool rhist_event_built_in(struct trace_event_call *call)
{
	return !(call->flags & TRACE_EVENT_FL_DYNAMIC) && !call->module;
}

/* Return whether an event is one of rhist itself, which exists as long as this module. */
bool rhist_event_is_own(struct trace_event_call *call)
{
	return !(call->flags & TRACE_EVENT_FL_DYNAMIC) && call->module == THIS_MODULE;
}

/*
 * Take a reference on the module of an event, and set @module to it, or to NULL if it has none.
 * Fails with -EBUSY if the module is being loaded or unloaded: if its init fails, it is removed in
 * spite of references (do_init_module()). Called with event_mutex held, which keeps the event.
 */
int rhist_event_get_module(struct trace_event_call *call, struct module **module)
{
	*module = call->flags & TRACE_EVENT_FL_DYNAMIC ? NULL : call->module;
	if (!*module)
		return 0;
	if (!try_module_get(*module))
		return -EBUSY;
	if (READ_ONCE((*module)->state) == MODULE_STATE_LIVE)
		return 0;
	module_put(*module);
	return -EBUSY;
}

/* Any context. */
void rhist_module_put(struct module *module)
{
	module_put(module);
}

/*
 * Return whether a hit of an event may wait for user memory: the kernel reads arguments of system
 * calls and of uprobes when their event is hit, and the memory may belong to a FUSE server or
 * userfaultfd that never answers. Such hits run under RCU-tasks-trace.
 */
bool rhist_event_may_fault(struct trace_event_call *call)
{
	call = rhist_event_target(call);
	return call->flags & TRACE_EVENT_FL_UPROBE || !strcmp(call->class->system, "syscalls") ||
	       (call->flags & TRACE_EVENT_FL_TRACEPOINT && tracepoint_is_faultable(call->tp));
}

/*
 * Return the function that calls the probes of an event's tracepoint if these are several; 0 for
 * events without a tracepoint. For an event probe, use the tracepoint of its target.
 */
unsigned long rhist_event_iterator(struct trace_event_call *call)
{
	call = rhist_event_target(call);
	if (!(call->flags & TRACE_EVENT_FL_TRACEPOINT) || call->class->reg != trace_event_reg)
		return 0;
	return (unsigned long)call->tp->iterator;
}

/*
 * Register or unregister a probe of an event (class->reg()). Task context, may
 * sleep; event_mutex held, which protects the lists of kprobe events.
 */
int rhist_event_reg(struct trace_event_call *call, struct trace_event_file *file, bool on)
{
	return call->class->reg(call, on ? TRACE_REG_REGISTER : TRACE_REG_UNREGISTER, file);
}

/* Return the list of an instance's event files; event_mutex held. */
struct list_head *rhist_events(struct trace_array *tr)
{
	return (void *)tr + TRACE_ARRAY__EVENTS;
}

/*
 * Take a reference on an event file, which keeps its memory, but not its instance. event_mutex
 * held.
 */
void rhist_file_get(struct trace_event_file *file)
{
	refcount_inc(&file->ref);
}

/* Put a reference of rhist_file_get(). Any context but NMI. */
void rhist_file_put(struct trace_event_file *file)
{
	/*
	 * kfree() frees objects of a cache, too; event_file_put() and that cache are not exported.
	 */
	if (refcount_dec_and_test(&file->ref))
		kfree(file);
}

/*
 * Return whether set_event_pid or set_event_notrace_pid of its instance exclude the running task
 * from an event file. Any context, NMI included, with preemption off. The file may have been
 * removed with its instance: that clears the flag first, and then waits for hits that may have seen
 * it (__ftrace_clear_event_pids()).
 */
notrace bool rhist_file_ignores_task(struct trace_event_file *file)
{
	rhist_guard_probes();

	return READ_ONCE(file->flags) & EVENT_FILE_FL_PID_FILTER && trace_event_ignore_this_pid(file);
}

/* Return the file of ftrace:print in an instance, or NULL. It lives as long as the instance. */
struct trace_event_file *rhist_marker_file(struct trace_array *tr)
{
	return *(struct trace_event_file **)((void *)tr + TRACE_ARRAY__TRACE_MARKER_FILE);
}

/* Add a trigger to its event file. Task context; event_mutex held. */
void rhist_trigger_list(struct trace_event_file *file, struct event_trigger_data *data)
{
	list_add_tail_rcu(&data->list, &file->triggers);
}

/*
 * Remove a trigger from its event file. Task context; event_mutex held. Until a
 * grace period has passed, running hits may still call it.
 */
void rhist_trigger_unlist(struct event_trigger_data *data)
{
	list_del_rcu(&data->list);
}

/*
 * Return the length of a record that was just reserved. Any context, NMI included. Hits of leaves
 * call it, so it calls nothing that can be traced.
 *
 * trace_event_buffer_lock_reserve() may put a record that will probably be discarded at the
 * beginning of a per-CPU page. Its array[0] is then the length of the record, while in a ring
 * buffer it is the length of the event. In a ring buffer an event is never at the beginning of a
 * page, where the header of a sub-buffer is, unless sub-buffers are larger than a page.
 */
notrace size_t rhist_record_len(struct ring_buffer_event *event)
{
	if (!event->type_len && !offset_in_page(event))
		return event->array[0];
	return ring_buffer_event_length(event);
}
