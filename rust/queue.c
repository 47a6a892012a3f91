// SPDX-License-Identifier: GPL-2.0
/*
 * Workqueue of the module. alloc_workqueue() is a macro.
 */
#include <linux/workqueue.h>

#include "queue.h"

/* Allocate a workqueue for work that may block for long, with the default limit of active work. */
struct workqueue_struct *rhist_alloc_workqueue(void)
{
	return alloc_workqueue("rhist", WQ_UNBOUND, 0);
}

/*
 * Queue the work of a struct delayed_work without its delay. Return whether it was queued or
 * waiting already. Task or interrupt context, but not NMI.
 */
bool rhist_queue_now(struct workqueue_struct *queue, struct work_struct *work)
{
	return mod_delayed_work(queue, to_delayed_work(work), 0);
}

/*
 * Cancel the work of a struct delayed_work, and wait for it if it is running: it cannot queue
 * itself again then. Return whether it was queued or waiting. Sleeps.
 */
bool rhist_cancel_work(struct work_struct *work)
{
	return cancel_delayed_work_sync(to_delayed_work(work));
}
