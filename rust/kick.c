// SPDX-License-Identifier: GPL-2.0
/*
 * Kicks: calls from an interrupt that any context asks for. init_irq_work() is inline.
 */
#include <linux/irq_work.h>

#include "kick.h"

/* Initialise @irq. @func is called in a hard interrupt, or in a task with PREEMPT_RT. */
void rhist_kick_init(struct irq_work *irq, void (*func)(struct irq_work *irq))
{
	init_irq_work(irq, func);
}
