// SPDX-License-Identifier: GPL-2.0
/*
 * Grace periods that are inline functions or macros.
 */
#include <linux/rcupdate.h>
#include <linux/srcu.h>
#include <linux/tracepoint.h>

#include "rcu.h"

/* synchronize_rcu_tasks() is a macro without CONFIG_TASKS_RCU. Sleeps. */
void rhist_synchronize_rcu_tasks(void)
{
	synchronize_rcu_tasks();
}

/* Task context; a program can make it sleep for any time: see rhist_event_may_fault(). */
void rhist_tracepoint_synchronize_unregister(void)
{
	tracepoint_synchronize_unregister();
}

/*
 * Wait for the probes of tracepoints that do not read user memory. On 6.12 that takes a grace
 * period of RCU, too. Task context, sleeps.
 */
void rhist_synchronize_tracepoint_srcu(void)
{
	synchronize_srcu(&tracepoint_srcu);
}
