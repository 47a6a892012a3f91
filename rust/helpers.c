// SPDX-License-Identifier: GPL-2.0
/*
 * Wrappers of the kernel's inline functions and macros, which Rust cannot call.
 * Unless a comment says otherwise, a wrapper may be called in the same contexts
 * as what it wraps.
 */
#include <linux/bitops.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/highmem.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/ring_buffer.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/trace_events.h>
#include <linux/topology.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/user_namespace.h>
#include <linux/vmstat.h>
#ifdef CONFIG_X86
#include <asm/msr.h>
#include <asm/tsc.h>
#endif
#include <linux/workqueue.h>

#include "compat.h"
#include "helpers.h"
#include "layouts_generated.h"

/* The version of rhist, which the packages have too. The macro of Rust's that describes a module knows none. */
MODULE_VERSION("0.9.0");

/* Return the current CPU. Any context; stable only while preemption is off. */
unsigned int rhist_cpu(void)
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

/* Return the node to allocate memory of a CPU on, or NUMA_NO_NODE. */
int rhist_cpu_to_node(unsigned int cpu)
{
	int node = cpu_possible(cpu) ? cpu_to_mem(cpu) : NUMA_NO_NODE;

	return node != NUMA_NO_NODE && node_online(node) ? node : NUMA_NO_NODE;
}

/*
 * Copy the comm of the running task, TASK_COMM_LEN bytes. Any context, NMI
 * included. A rename of the task may run at the same time, and its lock cannot
 * be taken here; a mix of both names is accepted.
 */
void rhist_current_comm(char *to)
{
	static_assert(TASK_COMM_LEN == 16);
	data_race(memcpy(to, current->comm, TASK_COMM_LEN));
}

/*
 * Return the function that calls the probes of an event's tracepoint if there
 * are several; 0 for events without a tracepoint. An event probe has that of its
 * target.
 */
unsigned long rhist_event_iterator(struct trace_event_call *call)
{
	call = rhist_event_target(call);
	if (!(call->flags & TRACE_EVENT_FL_TRACEPOINT) || call->class->reg != trace_event_reg)
		return 0;
	return (unsigned long)call->tp->iterator;
}

/* Read the time stamp counter, for the trace clock x86-tsc. Any context, NMI included. */
u64 rhist_tsc(void)
{
#ifdef CONFIG_X86
	return rdtsc_ordered();
#else
	return 0;
#endif
}

/*
 * Return the pages that a module can allocate without swapping, as far as the kernel can say. si_mem_available()
 * counts those that are kept for what devices need in one piece, too (CMA): only what can be moved may use them.
 * Any context.
 */
long rhist_available_pages(void)
{
	return si_mem_available() - (long)global_zone_page_state(NR_FREE_CMA_PAGES);
}

/* smp_mb() is a macro, and takes an argument in some versions of the kernel crate. Any context, NMI included. */
void rhist_smp_mb(void)
{
	smp_mb();
}

/* local_clock() is inline without CONFIG_HAVE_UNSTABLE_SCHED_CLOCK. Any context. */
u64 rhist_local_clock(void)
{
	return local_clock();
}

/* synchronize_rcu_tasks() is a macro without CONFIG_TASKS_RCU. Sleeps. */
void rhist_synchronize_rcu_tasks(void)
{
	synchronize_rcu_tasks();
}

/* Let other tasks run. Return whether this one has not been killed. Sleeps. */
bool rhist_yield_unless_killed(void)
{
	cond_resched();
	return !fatal_signal_pending(current);
}

/*
 * Return the name of a system call, or NULL. @number is that of the kernel's
 * native 64-bit ABI. Includes system calls that the kernel is configured
 * without.
 */
const char *rhist_syscall_name(u64 number)
{
#define __SYSCALL(nr, name) [nr] = __stringify(name),
#define __SYSCALL_NORETURN(nr, name) __SYSCALL(nr, name)
#define __SYSCALL_WITH_COMPAT(nr, name, compat) __SYSCALL(nr, name)
	static const char *const names[] = {
#include RHIST_SYSCALL_TABLE
	};
#undef __SYSCALL_WITH_COMPAT
#undef __SYSCALL_NORETURN
#undef __SYSCALL

	return number < ARRAY_SIZE(names) ? names[number] : NULL;
}

struct list_head *rhist_event_fields(struct trace_event_call *call)
{
	return trace_get_fields(call);
}

/*
 * Return the length of a record that was just reserved. Any context, NMI
 * included.
 *
 * trace_event_buffer_lock_reserve() may put a record that will probably be
 * discarded at the beginning of a per-CPU page. Its array[0] is then the length
 * of the record, while in a ring buffer it is the length of the event. In a ring
 * buffer no event is at the beginning of a page, where the header of a
 * sub-buffer is, unless sub-buffers are larger than a page.
 */
size_t rhist_record_len(struct ring_buffer_event *event)
{
	if (!event->type_len && !offset_in_page(event))
		return event->array[0];
	return ring_buffer_event_length(event);
}

/*
 * Register or unregister a probe of an event (class->reg()). Task context, may
 * sleep; event_mutex held, which protects the lists of kprobe events.
 */
int rhist_event_reg(struct trace_event_call *call, struct trace_event_file *file, bool on)
{
	return call->class->reg(call, on ? TRACE_REG_REGISTER : TRACE_REG_UNREGISTER, file);
}

/* Return the list of an instance's event files; event_mutex held. */
struct list_head *rhist_events(struct trace_array *tr)
{
	return (void *)tr + TRACE_ARRAY__EVENTS;
}

const char *rhist_event_name(struct trace_event_call *call)
{
	return trace_event_name(call);
}

/* Return the file of ftrace:print in an instance, or NULL. It lives as long as the instance. */
struct trace_event_file *rhist_marker_file(struct trace_array *tr)
{
	return *(struct trace_event_file **)((void *)tr + TRACE_ARRAY__TRACE_MARKER_FILE);
}

/* Take a reference on an event file, which keeps its memory, but not its instance. event_mutex held. */
void rhist_file_get(struct trace_event_file *file)
{
	refcount_inc(&file->ref);
}

/* Put that reference. Any context but NMI. */
void rhist_file_put(struct trace_event_file *file)
{
	/* kfree() frees objects of a cache, too; event_file_put() and that cache are not exported. */
	if (refcount_dec_and_test(&file->ref))
		kfree(file);
}

/*
 * Whether set_event_pid or set_event_notrace_pid of its instance keep an event file from hits of the running task. Any
 * context, NMI included, with preemption off. The file may be one that was removed with its instance: that clears the
 * flag first, and then waits for those that may have seen it (__ftrace_clear_event_pids()).
 */
bool rhist_file_ignores_task(struct trace_event_file *file)
{
	guard(srcu_fast_notrace)(&tracepoint_srcu);

	return READ_ONCE(file->flags) & EVENT_FILE_FL_PID_FILTER && trace_event_ignore_this_pid(file);
}

/* Add a trigger to its event file. Task context; event_mutex held. */
void rhist_trigger_list(struct trace_event_file *file, struct event_trigger_data *data)
{
	list_add_tail_rcu(&data->list, &file->triggers);
}

/*
 * Remove a trigger from its event file. Task context; event_mutex held. Until a
 * grace period has passed, running hits may still call it.
 */
void rhist_trigger_unlist(struct event_trigger_data *data)
{
	list_del_rcu(&data->list);
}

/* Task context, sleeps as long as a program likes: see rhist_event_may_fault(). */
void rhist_tracepoint_synchronize_unregister(void)
{
	tracepoint_synchronize_unregister();
}

/* Wait for the probes of tracepoints that do not read user memory. Task context, sleeps. */
void rhist_synchronize_tracepoint_srcu(void)
{
	synchronize_srcu(&tracepoint_srcu);
}

/*
 * Whether a hit of an event may wait for user memory: the kernel reads arguments of system calls and of uprobes
 * when their event is hit, and the memory may belong to a FUSE server or userfaultfd that never answers. Such hits
 * run under RCU-tasks-trace.
 */
bool rhist_event_may_fault(struct trace_event_call *call)
{
	call = rhist_event_target(call);
	return call->flags & TRACE_EVENT_FL_UPROBE || !strcmp(call->class->system, "syscalls") ||
	       (call->flags & TRACE_EVENT_FL_TRACEPOINT && tracepoint_is_faultable(call->tp));
}

/* Whether an event is part of the kernel, so that it is never removed. */
bool rhist_event_built_in(struct trace_event_call *call)
{
	return !(call->flags & TRACE_EVENT_FL_DYNAMIC) && !call->module;
}

int rhist_locked_down(void)
{
	return security_locked_down(LOCKDOWN_TRACEFS);
}

/* Format the hash of a pointer (%p), for text that users see. */
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
 * Get start and size in bytes of the function that contains @address; false if
 * there is none. Task context.
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

/* Whether the name of the function that contains @address begins with @prefix. Any context. */
bool rhist_function_begins(unsigned long address, const char *prefix)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol_no_offset(name, address);
	return strstarts(name, prefix);
}

/*
 * Look up the addresses of functions; 0 for those that are not found. Returns
 * false if there is no memory. Task context; sleeps once for all of them.
 *
 * No lookup by name is exported. But registering a disabled kprobe stores the
 * address in it, even if kprobes are not allowed there. With IBT that is the
 * address after the ENDBR instruction.
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
 * Copy kernel memory from any address; false if not all of it can be read. Any
 * context, NMI included.
 *
 * Strings are read in blocks, the last of which may go beyond the end of the
 * string's object. User-mode Linux copies in C, where KASAN would report that,
 * so it is disabled during the copy.
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

/* Copy user memory of the running task without faulting it in. Any context, NMI included. */
bool rhist_read_user(void *to, unsigned long from, size_t size)
{
	return !copy_from_user_nofault(to, (const void __user *)from, size);
}

/* Allocate a workqueue for work that may block for long, with the default limit of active work. */
struct workqueue_struct *rhist_alloc_workqueue(void)
{
	return alloc_workqueue("rhist", WQ_UNBOUND, 0);
}

/* Whether the running task may observe the whole system (CAP_PERFMON or CAP_SYS_ADMIN). */
bool rhist_perfmon_capable(void)
{
	return perfmon_capable();
}

/* Whether limits for users do not apply to the running task. */
bool rhist_may_exceed_limits(void)
{
	return capable(CAP_SYS_RESOURCE);
}

/*
 * Return the user to charge for what the running task asks for: its real user.
 * In a user namespace, who has made the outermost one: a namespace may have
 * thousands of users, and so a quota for each would be none.
 */
uid_t rhist_charged_user(void)
{
	struct user_namespace *ns = current_user_ns();
	kuid_t user = current_uid();

	for (; ns != &init_user_ns; ns = ns->parent)
		user = ns->owner;
	return __kuid_val(user);
}

/* Whether the range is in user space. */
bool rhist_access_ok(unsigned long addr, size_t size)
{
	return access_ok((const void __user *)addr, size);
}

/*
 * Read a number from @source and advance it; false if it cannot be read. May
 * sleep. The buffer of write(2) takes a single load, unlike copy_from_iter().
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

/* Set or clear a bit of a page: mask 1 << bit % 8 of byte bit / 8. Any context. */
void rhist_set_page_bit(struct page *page, unsigned int bit, bool on)
{
	void *at = kmap_local_page(page);

	if (on)
		set_bit_le(bit, at);
	else
		clear_bit_le(bit, at);
	kunmap_local(at);
}
