/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_CLOCK_H
#define RHIST_CLOCK_H

#include <linux/types.h>

u64 rhist_tsc(void);
u64 rhist_local_clock(void);
void rhist_clock_init(void);
u64 rhist_global_clock(void);

#endif
