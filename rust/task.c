// SPDX-License-Identifier: GPL-2.0
/* The running task: its name and rights, and yielding to other tasks. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/idr.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/user_namespace.h>

#include "compat.h"
#include "task.h"

#if defined(CONFIG_X86_64) && defined(CONFIG_SMP) && !defined(CONFIG_UML)
const unsigned long rhist_current_at = (__force unsigned long)&current_task;
#endif

/* Return the running task. Any context. */
notrace struct task_struct *rhist_current(void)
{
	return current;
}

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

/*
 * Find a task by its number in the first pid namespace, as records have it. Any context, with
 * preemption off: until it is on, the task stays. Lockdep wants rcu_read_lock() for pid_task().
 */
notrace struct task_struct *rhist_find_task(u32 nr)
{
	struct pid *pid = idr_find(&init_pid_ns.idr, nr);
	struct hlist_node *first;

	if (!pid)
		return NULL;
	first = rcu_dereference_raw(hlist_first_rcu(&pid->tasks[PIDTYPE_PID]));
	return first ? hlist_entry(first, struct task_struct, pid_links[PIDTYPE_PID]) : NULL;
}

/* As rhist_current_comm(), of the task that rhist_task_of() finds; or return false. */
notrace bool rhist_comm_of(u32 nr, const void *record, char *to)
{
	struct task_struct *task = rhist_task_of(nr, record);

	if (task)
		data_race(memcpy(to, task->comm, TASK_COMM_LEN));
	return task;
}

/* Return the number of the running task's process. Any context, NMI included. */
notrace u32 rhist_current_tgid(void)
{
	return current->tgid;
}

/*
 * Return the number of the process that the running task is a child of; 0 if none is. As above.
 *
 * A task that nobody waits for, such as a thread, is released before it stops running. From then on
 * nobody updates its real_parent, which may be freed. While pid_alive() is true, it stays until
 * preemption is on.
 */
notrace u32 rhist_current_ppid(void)
{
	return pid_alive(current) ? rcu_dereference_raw(current->real_parent)->tgid : 0;
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

/* Return whether the running task may see the mappings of all processes. */
bool rhist_may_see_mappings(void)
{
	return capable(CAP_SYS_PTRACE);
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

/* Sleep for so many microseconds, or somewhat longer. */
void rhist_sleep_us(unsigned int us)
{
	fsleep(us);
}
