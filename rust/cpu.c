// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs: wrappers of the kernel's inline functions and macros, which Rust cannot call.
 */
#include <linux/cpumask.h>
#include <linux/nodemask.h>
#include <linux/smp.h>
#include <linux/topology.h>
#include <asm/barrier.h>

#include "cpu.h"

/* Return the current CPU. Any context; stable only while preemption is off. */
notrace unsigned int rhist_cpu(void)
{
	return raw_smp_processor_id();
}

unsigned int rhist_nr_cpu_ids(void)
{
	return nr_cpu_ids;
}

/* Return one more than the highest number of a CPU that is online. Any context. */
unsigned int rhist_online_end(void)
{
	return cpumask_last(cpu_online_mask) + 1;
}

/* Return the node on which to allocate memory of a CPU, or NUMA_NO_NODE. */
int rhist_cpu_to_node(unsigned int cpu)
{
	int node = cpu_possible(cpu) ? cpu_to_mem(cpu) : NUMA_NO_NODE;

	return node != NUMA_NO_NODE && node_online(node) ? node : NUMA_NO_NODE;
}

/*
 * smp_mb() is a macro, and takes an argument in some versions of the kernel crate. Any context, NMI
 * included.
 */
notrace void rhist_smp_mb(void)
{
	smp_mb();
}
