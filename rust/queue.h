/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_QUEUE_H
#define RHIST_QUEUE_H

#include <linux/types.h>

struct work_struct;
struct workqueue_struct;

struct workqueue_struct *rhist_alloc_workqueue(void);
bool rhist_queue_now(struct workqueue_struct *queue, struct work_struct *work);
bool rhist_cancel_work(struct work_struct *work);

#endif
