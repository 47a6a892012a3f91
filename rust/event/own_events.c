// SPDX-License-Identifier: GPL-2.0
/*
 * The trace events of the module itself, except rhist:sample (sample.c). They never fire; each one
 * is defined for a side effect in the kernel.
 *
 * rhist:sync is for calling a function with event_mutex held. event_mutex is not exported, but the
 * lists of users of a kprobe, uprobe or event probe may be changed only with it held. Enabling an
 * event through trace_array_set_clr_event(), which is exported, calls the event's class->reg() with
 * event_mutex held, and reg() below calls the pending function. Locks: sync_lock -> event_mutex ->
 * locks that the function takes.
 *
 * rhist:never is for a trigger. While any event has a trigger, the kernel keeps a page per CPU for
 * records that are likely to be discarded. rhist discards each record that it reads, and that page
 * costs far less than reserving and discarding in a ring buffer. trace_buffered_event_enable(),
 * which allocates these pages, is not exported, so Instance::set_trigger() in rust/instance.rs
 * writes to a file.
 */
#include <linux/err.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/trace.h>
#include <linux/trace_events.h>

#include "own_events.h"
#include "../compat.h"
#include "../sample.h"

static DEFINE_MUTEX(sync_lock);

/*
 * Function to call. Written with sync_lock held. reg() reads it, with event_mutex held, in any
 * task that enables the event.
 */
static struct {
	struct task_struct *task;
	int (*fn)(void *arg);
	void *arg;
	int ret;
} pending;

static struct trace_event_call sync_call;

/*
 * The file of rhist:sync in rhist's instance. It exists as long as the module is loaded and the
 * instance is.
 */
static struct trace_event_file *sync_file;

/* class->reg() of both events. Called with event_mutex held. */
static int reg(struct trace_event_call *call, enum trace_reg type, void *data)
{
	/* Users may enable the event, too: the function is called only in the task that set it. */
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

/*
 * The section in which the kernel looks for the events of a module. One array: the linker may leave
 * gaps between several.
 */
static struct trace_event_call *calls[] __used __section("_ftrace_events") = {
	&sync_call,
	&never_call,
	&rhist_sample_call,
};

/**
 * rhist_sync_init - find the file of rhist:sync, for rhist_with_event_mutex()
 * @instance: name of rhist's instance
 *
 * Return: 0 or a negative errno.
 */
int rhist_sync_init(const char *instance)
{
	struct trace_event_file *file = trace_get_event_file(instance, class.system, sync_call.name);

	if (IS_ERR(file))
		return PTR_ERR(file);
	sync_file = file;
	/* The reference would pin the module. */
	trace_put_event_file(file);
	return 0;
}

/**
 * rhist_with_event_mutex - call a function with event_mutex held
 * @tr: a trace instance with the event rhist:sync
 * @fn: the function; must not take event_mutex itself
 * @arg: its argument
 *
 * Context: task, may sleep; called without event_mutex and the locks that nest
 * inside it. Works while the module is being unloaded.
 *
 * While a trigger of an event enables rhist:sync or would do so, the kernel
 * neither registers nor unregisters it any more: sm_ref counts such triggers. So
 * the count is 0 while the event is disabled here. A trigger that a user adds or
 * removes in between only adds its 1 to that.
 *
 * Return: the result of @fn; or if @fn was not called, -EBUSY because a user
 * kept enabling the event, or the error of trace_array_set_clr_event().
 */
int rhist_with_event_mutex(struct trace_array *tr, int (*fn)(void *), void *arg)
{
	int tries = 16, err = 0, triggers;

	mutex_lock(&sync_lock);
	pending.fn = fn;
	pending.arg = arg;
	WRITE_ONCE(pending.task, current);
	/* reg() is called only for a change: disable first, as a user may have enabled it. */
	while (READ_ONCE(pending.task) && tries--) {
		triggers = atomic_xchg(&sync_file->sm_ref, 0);
		rhist_soft_mode_changed(sync_file);
		trace_array_set_clr_event(tr, "rhist", "sync", false);
		atomic_add(triggers, &sync_file->sm_ref);
		rhist_soft_mode_changed(sync_file);
		err = trace_array_set_clr_event(tr, "rhist", "sync", true);
	}
	trace_array_set_clr_event(tr, "rhist", "sync", false);
	if (!READ_ONCE(pending.task))
		err = pending.ret;
	else if (!err)
		err = -EBUSY;
	if (err == -EBUSY && READ_ONCE(pending.task))
		pr_warn_once("rhist: commands fail while a program keeps enabling the event rhist:sync\n");
	WRITE_ONCE(pending.task, NULL);
	mutex_unlock(&sync_lock);
	return err;
}
