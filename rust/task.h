/* SPDX-License-Identifier: GPL-2.0 */
/* Tasks. The definition of each function states its calling context. */
#ifndef RHIST_TASK_H
#define RHIST_TASK_H

#include <linux/sched.h>
#include <linux/types.h>

void rhist_current_comm(char *to);
#if defined(CONFIG_X86_64) && defined(CONFIG_SMP) && !defined(CONFIG_UML)
/* Where the running task is in memory of each CPU, for %gs. */
extern const unsigned long rhist_current_at;
#endif

struct task_struct *rhist_current(void);
bool rhist_comm_of(u32 nr, const void *record, char *to);
u32 rhist_current_tgid(void);
u32 rhist_current_ppid(void);
struct task_struct *rhist_find_task(u32 nr);
bool rhist_yield_unless_killed(void);
void rhist_sleep_us(unsigned int us);
bool rhist_perfmon_capable(void);
bool rhist_may_see_mappings(void);
bool rhist_may_exceed_limits(void);
uid_t rhist_charged_user(void);

/*
 * Find a task by its number. If @record is not NULL, a task that the tracepoint was called with is
 * right before it: most records have the number of that one, or of the running one. Both are found
 * also after they have been released. Any context, with preemption off.
 */
static __always_inline struct task_struct *rhist_task_of(u32 nr, const void *record)
{
	if (record) {
		struct task_struct *task = ((struct task_struct *const *)record)[-1];

		if (task && task->pid == nr)
			return task;
		if (current->pid == nr)
			return current;
	}
	return rhist_find_task(nr);
}

#endif
