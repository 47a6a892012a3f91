// SPDX-License-Identifier: GPL-2.0
/*
 * The events of the module itself. Nobody fires them; they are there for what the kernel does about them.
 *
 * rhist:sync is for running code with event_mutex held. That is not exported,
 * but the lists that a kprobe, uprobe or event probe keeps of its users may be
 * changed only under it. Switching an event on through
 * trace_array_set_clr_event(), which is exported, calls the event's
 * class->reg() with event_mutex held. That of this one runs what is pending
 * here. Locks: sync_lock -> event_mutex -> whatever the function takes.
 *
 * rhist:never is for a trigger. While any event has one, the kernel keeps a
 * page for each processor to make records in that are likely to be thrown
 * away, as are those that we look at: that costs far less than to reserve and
 * discard them in a ring buffer. What switches it on is not exported
 * (trace_buffered_event_enable()); Instance::spare_ring_buffer() in
 * rust/instance.rs writes the trigger.
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

static struct trace_event_call sync_call;

static int reg(struct trace_event_call *call, enum trace_reg type, void *data)
{
	/* Anybody may switch the event on: only the task that asked is served. */
	if (call == &sync_call && type == TRACE_REG_REGISTER && READ_ONCE(pending.task) == current) {
		WRITE_ONCE(pending.task, NULL);
		pending.ret = pending.fn(pending.arg);
	}
	return 0;
}

static enum print_line_t print(struct trace_iterator *iter, int flags, struct trace_event *event)
{
	return TRACE_TYPE_HANDLED;
}

static struct trace_event_functions funcs = { .trace = print };
static struct trace_event_fields no_fields[] = { {} };

static struct trace_event_class class = {
	.system = "rhist",
	.fields_array = no_fields,
	.fields = LIST_HEAD_INIT(class.fields),
	.raw_init = trace_event_raw_init,
	.reg = reg,
};

static struct trace_event_call sync_call = {
	.class = &class,
	.name = "sync",
	.event.funcs = &funcs,
	.print_fmt = "\"\"",
};

static struct trace_event_call never_call = {
	.class = &class,
	.name = "never",
	.event.funcs = &funcs,
	.print_fmt = "\"\"",
};

/* The section that the kernel reads a module's events from. */
static struct trace_event_call *calls[] __used __section("_ftrace_events") = {
	&sync_call,
	&never_call,
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
