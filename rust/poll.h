/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_POLL_H
#define RHIST_POLL_H

#include <linux/irq_work.h>
#include <linux/types.h>
#include <linux/wait.h>

struct file;
struct poll_table_struct;

struct rhist_poll_queue {
	wait_queue_head_t waiting;
	struct irq_work wake;
};

void rhist_poll_queue_init(struct rhist_poll_queue *queue);
void rhist_poll_queue_end(struct rhist_poll_queue *queue);
void rhist_poll_wait(struct file *file, struct rhist_poll_queue *queue,
		     struct poll_table_struct *table);
void rhist_poll_wake(struct rhist_poll_queue *queue);
bool rhist_poll_error(struct file *file, struct poll_table_struct *table);

#endif
