// SPDX-License-Identifier: GPL-2.0
/*
 * Running code with event_mutex held.
 *
 * event_mutex is not exported, but the lists that a kprobe, uprobe or event
 * probe keeps of its users may be changed only under it. Switching an event on
 * through trace_array_set_clr_event(), which is exported, calls the event's
 * class->reg() with event_mutex held. So the module has one event,
 * rhist:sync, that nothing ever fires: its reg() runs what is pending here.
 *
 * Locks: sync_lock -> event_mutex -> whatever the function takes.
 */
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/trace.h>
#include <linux/trace_events.h>

#include "helpers.h"

static DEFINE_MUTEX(sync_lock);

/* Written under sync_lock; read under event_mutex by whoever enables the event. */
static struct {
	struct task_struct *task;
	int (*fn)(void *arg);
	void *arg;
	int ret;
} pending;

static int sync_reg(struct trace_event_call *call, enum trace_reg type, void *data)
{
	/* Anybody may switch the event on: only the task that asked is served. */
	if (type == TRACE_REG_REGISTER && READ_ONCE(pending.task) == current) {
		WRITE_ONCE(pending.task, NULL);
		pending.ret = pending.fn(pending.arg);
	}
	return 0;
}

static enum print_line_t sync_print(struct trace_iterator *iter, int flags,
				    struct trace_event *event)
{
	return TRACE_TYPE_HANDLED;
}

static struct trace_event_functions sync_funcs = { .trace = sync_print };
static struct trace_event_fields sync_fields[] = { {} };

static struct trace_event_class sync_class = {
	.system = "rhist",
	.fields_array = sync_fields,
	.fields = LIST_HEAD_INIT(sync_class.fields),
	.raw_init = trace_event_raw_init,
	.reg = sync_reg,
};

static struct trace_event_call sync_call = {
	.class = &sync_class,
	.name = "sync",
	.event.funcs = &sync_funcs,
	.print_fmt = "\"\"",
};

/* The section that the kernel reads a module's events from. */
static struct trace_event_call *sync_calls[] __used __section("_ftrace_events") = {
	&sync_call,
};

/**
 * rhist_with_event_mutex - call a function with event_mutex held
 * @tr: an instance with the event rhist:sync
 * @fn: the function; must not take event_mutex itself
 * @arg: its argument
 *
 * Context: task, may sleep; neither event_mutex nor a lock that nests inside
 * it held. Works while the module is going away.
 *
 * Return: what @fn returned, or -EBUSY if somebody else kept the event
 * enabled, or the error of the kernel if @fn was not called at all.
 */
int rhist_with_event_mutex(struct trace_array *tr, int (*fn)(void *), void *arg)
{
	int tries = 16, err = 0;

	mutex_lock(&sync_lock);
	pending.fn = fn;
	pending.arg = arg;
	WRITE_ONCE(pending.task, current);
	/* reg() is called for a change only, and a user may have enabled it. */
	while (READ_ONCE(pending.task) && tries--) {
		trace_array_set_clr_event(tr, "rhist", "sync", false);
		err = trace_array_set_clr_event(tr, "rhist", "sync", true);
	}
	trace_array_set_clr_event(tr, "rhist", "sync", false);
	if (!READ_ONCE(pending.task))
		err = pending.ret;
	else if (!err)
		err = -EBUSY;
	WRITE_ONCE(pending.task, NULL);
	mutex_unlock(&sync_lock);
	return err;
}
