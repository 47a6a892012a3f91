// SPDX-License-Identifier: GPL-2.0
/*
 * Wait queues for poll(2) that can be woken from any context.
 *
 * A hit may occur with the scheduler's locks held, or in an NMI, so it cannot
 * wake tasks itself. It queues an irq_work that does.
 */
#include <linux/irq_work.h>
#include <linux/poll.h>
#include <linux/wait.h>

#include "poll.h"

static void wake_waiting(struct irq_work *work)
{
	wake_up_all(&container_of(work, struct rhist_poll_queue, wake)->waiting);
}

void rhist_poll_queue_init(struct rhist_poll_queue *queue)
{
	init_waitqueue_head(&queue->waiting);
	init_irq_work(&queue->wake, wake_waiting);
}

/*
 * Wait for a wakeup that is still running; may sleep. By then, tasks must neither wait nor wake.
 * Afterwards the memory may be freed.
 */
void rhist_poll_queue_end(struct rhist_poll_queue *queue)
{
	irq_work_sync(&queue->wake);
}

/* Queue the caller of poll() of @file. @queue must live as long as @file is open. */
void rhist_poll_wait(struct file *file, struct rhist_poll_queue *queue,
		     struct poll_table_struct *table)
{
	poll_wait(file, &queue->waiting, table);
}

/* Wake all waiting tasks, from an interrupt. Any context, NMI included. */
void rhist_poll_wake(struct rhist_poll_queue *queue)
{
	irq_work_queue(&queue->wake);
}

/*
 * Return whether poll() of another file reports EPOLLERR. Also queues the caller on the
 * wait queues of that file.
 */
bool rhist_poll_error(struct file *file, struct poll_table_struct *table)
{
	return vfs_poll(file, table) & EPOLLERR;
}
