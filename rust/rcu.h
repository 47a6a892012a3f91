/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_RCU_H
#define RHIST_RCU_H

#include <linux/types.h>

void rhist_synchronize_rcu_tasks(void);
void rhist_tracepoint_synchronize_unregister(void);
void rhist_synchronize_tracepoint_srcu(void);

#endif
