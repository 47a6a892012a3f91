/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_TASK_H
#define RHIST_TASK_H

#include <linux/types.h>

void rhist_current_comm(char *to);
bool rhist_yield_unless_killed(void);
bool rhist_perfmon_capable(void);
bool rhist_may_exceed_limits(void);
uid_t rhist_charged_user(void);

#endif
