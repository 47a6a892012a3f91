/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_TASK_H
#define RHIST_TASK_H

#include <linux/types.h>

void rhist_current_comm(char *to);
bool rhist_comm_of(u32 pid, char *to);
u32 rhist_current_tgid(void);
u32 rhist_current_ppid(void);
struct task_struct *rhist_task_of(u32 nr);
bool rhist_yield_unless_killed(void);
void rhist_sleep_us(unsigned int us);
bool rhist_perfmon_capable(void);
bool rhist_may_exceed_limits(void);
uid_t rhist_charged_user(void);

#endif
