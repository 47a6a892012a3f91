// SPDX-License-Identifier: GPL-2.0
/*
 * Queues of tasks in poll(2), for those who may not take a lock.
 *
 * A hit may come where the scheduler's locks are held, or in an NMI, so it
 * cannot wake anybody itself: it queues work for an interrupt.
 */
#include <linux/irq_work.h>
#include <linux/poll.h>
#include <linux/wait.h>

#include "helpers.h"

static void wake_waiting(struct irq_work *work)
{
	wake_up_all(&container_of(work, struct rhist_poll_queue, wake)->waiting);
}

void rhist_poll_queue_init(struct rhist_poll_queue *queue)
{
	init_waitqueue_head(&queue->waiting);
	init_irq_work(&queue->wake, wake_waiting);
}

/* Nobody waits any more, nor wakes; may sleep. Afterwards the memory may go. */
void rhist_poll_queue_end(struct rhist_poll_queue *queue)
{
	irq_work_sync(&queue->wake);
}

/* In poll() of @file, which keeps the queue while it is open. */
void rhist_poll_wait(struct file *file, struct rhist_poll_queue *queue,
		     struct poll_table_struct *table)
{
	poll_wait(file, &queue->waiting, table);
}

/* Any context, NMI included. */
void rhist_poll_wake(struct rhist_poll_queue *queue)
{
	irq_work_queue(&queue->wake);
}

/* Has another file an error to tell? If not, who polls waits for that one too. */
bool rhist_poll_error(struct file *file, struct poll_table_struct *table)
{
	return vfs_poll(file, table) & EPOLLERR;
}
