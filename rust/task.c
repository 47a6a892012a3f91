// SPDX-License-Identifier: GPL-2.0
/* The running task: its name and rights, and yielding to other tasks. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/user_namespace.h>

#include "task.h"

/*
 * Copy the comm of the running task, TASK_COMM_LEN bytes. Any context, NMI
 * included. A rename of the task may run at the same time, and its lock cannot
 * be taken here; a mix of both names is accepted.
 */
notrace void rhist_current_comm(char *to)
{
	static_assert(TASK_COMM_LEN == 16);
	data_race(memcpy(to, current->comm, TASK_COMM_LEN));
}

/* Yield the CPU. Return whether this task has not been killed. Sleeps. */
bool rhist_yield_unless_killed(void)
{
	cond_resched();
	return !fatal_signal_pending(current);
}

/* Return whether the running task may observe the whole system (CAP_PERFMON or CAP_SYS_ADMIN). */
bool rhist_perfmon_capable(void)
{
	return perfmon_capable();
}

/* Return whether limits for users do not apply to the running task. */
bool rhist_may_exceed_limits(void)
{
	return capable(CAP_SYS_RESOURCE);
}

/*
 * Return the user to charge for a request of the running task: its real user. In a user namespace,
 * the creator of the outermost one: a namespace may have thousands of users, so a quota for each of
 * them would not limit anything.
 */
uid_t rhist_charged_user(void)
{
	struct user_namespace *ns = current_user_ns();
	kuid_t user = current_uid();

	for (; ns != &init_user_ns; ns = ns->parent)
		user = ns->owner;
	return __kuid_val(user);
}
