// SPDX-License-Identifier: GPL-2.0
/*
 * Event probes (kernel/trace/trace_eprobe.c): events that are made in a trigger of another event,
 * the target.
 */
#include <linux/list.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/trace_events.h>

#include "event_probe.h"
#include "layouts_generated.h"

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
 * removed. Task context; returns 0 or -ENOMEM. rhist_event_probe_free() is called in any case.
 */
int rhist_event_probe_copy(struct rhist_event_probe *copy, struct trace_event_call *call)
{
	const struct trace_eprobe *ep = event_probe(call);
	struct trace_eprobe *probe = kmemdup(ep, struct_size(ep, tp.args, ep->tp.nr_args), GFP_KERNEL);
	void *event = kmemdup((void *)call - TRACE_PROBE_EVENT__CALL, TRACE_PROBE_EVENT__FILTER, GFP_KERNEL);

	copy->probe = probe;
	copy->event = event;
	if (!probe || !event)
		return -ENOMEM;
	*(unsigned int *)(event + TRACE_PROBE_EVENT__FLAGS) = 0;
	INIT_LIST_HEAD(event + TRACE_PROBE_EVENT__FILES);
	INIT_LIST_HEAD(event + TRACE_PROBE_EVENT__PROBES);
	list_add(&probe->tp.list, event + TRACE_PROBE_EVENT__PROBES);
	probe->tp.event = event;
	copy->call = event + TRACE_PROBE_EVENT__CALL;
	return 0;
}

/*
 * Return the target of an event probe, whose hits cause the hits of @call; for any other event
 * @call itself. Task context; the event is referenced, and so keeps its target.
 */
struct trace_event_call *rhist_event_target(struct trace_event_call *call)
{
	const struct trace_eprobe *ep = event_probe(call);

	return ep ? ep->event : call;
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

int rhist_event_probe_copy(struct rhist_event_probe *copy, struct trace_event_call *call)
{
	return -ENODEV;
}

struct trace_event_call *rhist_event_target(struct trace_event_call *call)
{
	return call;
}

int rhist_event_probe_pin(struct trace_event_call *call)
{
	return -ENODEV;
}

void rhist_event_probe_unpin(struct trace_event_call *call)
{
}

#endif

/* Free a copy. Any context but NMI. */
void rhist_event_probe_free(struct rhist_event_probe *copy)
{
	kfree(copy->probe);
	kfree(copy->event);
}
