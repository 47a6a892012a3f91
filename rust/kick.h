/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_KICK_H
#define RHIST_KICK_H

#include <linux/irq_work.h>

void rhist_kick_init(struct irq_work *irq, void (*func)(struct irq_work *irq));

#endif
