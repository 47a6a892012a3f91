/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_CPU_H
#define RHIST_CPU_H

#include <linux/types.h>

unsigned int rhist_cpu(void);
unsigned int rhist_nr_cpu_ids(void);
unsigned int rhist_online_end(void);
int rhist_cpu_to_node(unsigned int cpu);
void rhist_smp_mb(void);

#endif
