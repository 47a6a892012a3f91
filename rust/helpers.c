// SPDX-License-Identifier: GPL-2.0
/*
 * Inline functions and macros of the kernel, as functions that Rust can call.
 * Unless a comment says otherwise they may be called where the thing that they
 * wrap may be.
 */
#include <linux/bitops.h>
#include <linux/capability.h>
#include <linux/highmem.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/ring_buffer.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/trace_events.h>
#include <linux/topology.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#ifdef CONFIG_X86
#include <asm/msr.h>
#include <asm/tsc.h>
#endif
#include <linux/workqueue.h>

#include "helpers.h"
#include "layouts_generated.h"

/* Any context; stable only while preemption is off. */
unsigned int rhist_cpu(void)
{
	return raw_smp_processor_id();
}

unsigned int rhist_nr_cpu_ids(void)
{
	return nr_cpu_ids;
}

/* The node with the memory nearest to a CPU, or NUMA_NO_NODE. */
int rhist_cpu_to_node(unsigned int cpu)
{
	int node = cpu_possible(cpu) ? cpu_to_mem(cpu) : NUMA_NO_NODE;

	return node != NUMA_NO_NODE && node_online(node) ? node : NUMA_NO_NODE;
}

/*
 * TASK_COMM_LEN bytes; any context, NMI included. A task may be renamed by
 * another one, or be interrupted while it renames itself, which takes no lock
 * that could be taken here: whatever is there meanwhile will do.
 */
void rhist_current_comm(char *to)
{
	static_assert(TASK_COMM_LEN == 16);
	data_race(memcpy(to, current->comm, TASK_COMM_LEN));
}

/*
 * The function that the probes of a tracepoint are called by if it has more
 * than one; 0 for events that are not fired by a tracepoint of their own.
 */
unsigned long rhist_event_iterator(struct trace_event_call *call)
{
	if (!(call->flags & TRACE_EVENT_FL_TRACEPOINT) || call->class->reg != trace_event_reg)
		return 0;
	return (unsigned long)call->tp->iterator;
}

/* The time stamp counter, for the trace clock x86-tsc; any context, NMI included. */
u64 rhist_tsc(void)
{
#ifdef CONFIG_X86
	return rdtsc_ordered();
#else
	return 0;
#endif
}

/* An inline function where the time stamp counter cannot become unstable. Any context. */
u64 rhist_local_clock(void)
{
	return local_clock();
}

/* A macro where tasks are preempted only where they say so. Sleeps. */
void rhist_synchronize_rcu_tasks(void)
{
	synchronize_rcu_tasks();
}

/*
 * The name of a system call, or NULL; the number is the kernel's own, not that
 * of another ABI. The kernel need not be configured to have it.
 */
const char *rhist_syscall_name(u64 number)
{
#define __SYSCALL(nr, name) [nr] = #name,
#define __SYSCALL_NORETURN(nr, name) __SYSCALL(nr, name)
	static const char *const names[] = {
#include <asm/syscalls_64.h>
	};
#undef __SYSCALL_NORETURN
#undef __SYSCALL

	return number < ARRAY_SIZE(names) ? names[number] : NULL;
}

struct list_head *rhist_event_fields(struct trace_event_call *call)
{
	return trace_get_fields(call);
}

/*
 * Bytes of a record that was just reserved; any context, NMI included. One that
 * will probably be discarded is at the beginning of a page of its own, and its
 * array[0] is the length of the record alone, not that of the event as in a ring
 * buffer: see trace_event_buffer_lock_reserve(). In a ring buffer no event is at
 * the beginning of a page, which is the header of a sub-buffer, unless sub-buffers
 * have been made larger than a page.
 */
size_t rhist_record_len(struct ring_buffer_event *event)
{
	if (!event->type_len && !offset_in_page(event))
		return event->array[0];
	return ring_buffer_event_length(event);
}

/* Task context, may sleep; event_mutex held (kprobe events edit lists under it). */
int rhist_event_reg(struct trace_event_call *call, struct trace_event_file *file, bool on)
{
	return call->class->reg(call, on ? TRACE_REG_REGISTER : TRACE_REG_UNREGISTER, file);
}

/* The files of all events in an instance; event_mutex held. */
struct list_head *rhist_events(struct trace_array *tr)
{
	return (void *)tr + TRACE_ARRAY__EVENTS;
}

const char *rhist_event_name(struct trace_event_call *call)
{
	return trace_event_name(call);
}

/* The file of ftrace:print in an instance, which stays as long as that; NULL if it has none. */
struct trace_event_file *rhist_marker_file(struct trace_array *tr)
{
	return *(struct trace_event_file **)((void *)tr + TRACE_ARRAY__TRACE_MARKER_FILE);
}

/* Task context; event_mutex held. */
void rhist_trigger_list(struct trace_event_file *file, struct event_trigger_data *data)
{
	list_add_tail_rcu(&data->list, &file->triggers);
}

/* Task context; event_mutex held. Who found it there before may still call it. */
void rhist_trigger_unlist(struct event_trigger_data *data)
{
	list_del_rcu(&data->list);
}

/* Task context, sleeps. */
void rhist_tracepoint_synchronize_unregister(void)
{
	tracepoint_synchronize_unregister();
}

int rhist_locked_down(void)
{
	return security_locked_down(LOCKDOWN_TRACEFS);
}

/* The kernel's hashed form of a pointer (%p), for text that users see. */
size_t rhist_hash_pointer(char *buf, size_t size, const void *pointer)
{
	return scnprintf(buf, size, "%p", pointer);
}

/* Task context. */
size_t rhist_symbol(char *buf, size_t size, const void *address, bool offset)
{
	return scnprintf(buf, size, offset ? "%pS" : "%ps", address);
}

/*
 * Where the function begins that has @address in it, and how many bytes it has; false if there is
 * none. Task context.
 */
bool rhist_function(unsigned long address, unsigned long *start, unsigned long *size)
{
	char name[KSYM_SYMBOL_LEN], *plus;
	unsigned long offset;

	sprint_symbol(name, address);
	plus = strrchr(name, '+');
	if (!plus || sscanf(plus, "+0x%lx/0x%lx", &offset, size) != 2)
		return false;
	*start = address - offset;
	return true;
}

/* Whether the name of the function that has @address in it begins with @prefix. Any context. */
bool rhist_function_begins(unsigned long address, const char *prefix)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol_no_offset(name, address);
	return strstarts(name, prefix);
}

/*
 * The addresses of functions, 0 for those that are not known. There is no
 * exported look-up of names, but a probe that is never switched on has to be
 * told where it would sit, also where none may sit. False without memory. Task
 * context, sleeps, once for all of them.
 */
bool rhist_function_addresses(const char *const *names, unsigned long *addresses, size_t n)
{
	struct kprobe *probes = kcalloc(n, sizeof(*probes), GFP_KERNEL);
	struct kprobe **registered = kcalloc(n, sizeof(*registered), GFP_KERNEL);
	int n_registered = 0;
	bool done = false;
	size_t i;

	if (!probes || !registered)
		goto out;
	for (i = 0; i < n; i++) {
		probes[i].symbol_name = names[i];
		probes[i].flags = KPROBE_FLAG_DISABLED;
		if (!register_kprobe(&probes[i]))
			registered[n_registered++] = &probes[i];
		addresses[i] = (unsigned long)probes[i].addr;
	}
	if (n_registered)
		unregister_kprobes(registered, n_registered);
	done = true;
out:
	kfree(registered);
	kfree(probes);
	return done;
}

/*
 * Any context, NMI included, and any address: false if not all of it can be read. A string is read in blocks, of which
 * the last one goes beyond its end. User-mode Linux reads them in C, which KASAN would look at.
 */
bool rhist_read_kernel(void *to, const void *from, size_t size)
{
	bool done;

#if defined(CONFIG_UML) && defined(CONFIG_KASAN)
	current->kasan_depth++;
#endif
	done = !copy_from_kernel_nofault(to, from, size);
#if defined(CONFIG_UML) && defined(CONFIG_KASAN)
	current->kasan_depth--;
#endif
	return done;
}

bool rhist_read_user(void *to, unsigned long from, size_t size)
{
	return !copy_from_user_nofault(to, (const void __user *)from, size);
}

/*
 * While an event of an instance is enabled, the names of tasks are recorded if
 * the instance has that option, by probes in the scheduler. Nobody looks at
 * records of ours, so the option goes: otherwise each hook would have the
 * scheduler's code patched. Task context; nobody else changes the options of
 * the instance yet.
 */
void rhist_record_no_names(struct trace_array *tr)
{
	u64 *flags = (void *)tr + TRACE_ARRAY__TRACE_FLAGS;
	u64 names = BIT_ULL(TRACE_ITER_RECORD_CMD_BIT) | BIT_ULL(TRACE_ITER_RECORD_TGID_BIT);

	WRITE_ONCE(*flags, READ_ONCE(*flags) & ~names);
}

/* A queue for work that may wait long; no more at once than the system lets anybody. */
struct workqueue_struct *rhist_alloc_workqueue(void)
{
	return alloc_workqueue("rhist", WQ_UNBOUND, 0);
}

/* May the running task watch the whole system? */
bool rhist_perfmon_capable(void)
{
	return perfmon_capable();
}

/* Is it memory that a program could have? */
bool rhist_access_ok(unsigned long addr, size_t size)
{
	return access_ok((const void __user *)addr, size);
}

/*
 * Take a number from the beginning of @source; false if it cannot be read. For what write(2) wrote
 * that is a single load, unlike copy_from_iter(). May sleep.
 */
bool rhist_read_number(struct iov_iter *source, int *number)
{
	if (!iter_is_ubuf(source) || iov_iter_count(source) < sizeof(*number))
		return copy_from_iter_full(number, sizeof(*number), source);
	if (get_user(*number, (int __user *)(source->ubuf + source->iov_offset)))
		return false;
	iov_iter_advance(source, sizeof(*number));
	return true;
}

/* Set or clear the bit 1 << bit % 8 of byte bit / 8 of a page. Any context. */
void rhist_set_page_bit(struct page *page, unsigned int bit, bool on)
{
	void *at = kmap_local_page(page);

	if (on)
		set_bit_le(bit, at);
	else
		clear_bit_le(bit, at);
	kunmap_local(at);
}
