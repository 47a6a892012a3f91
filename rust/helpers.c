// SPDX-License-Identifier: GPL-2.0
/*
 * Inline functions and macros of the kernel, as functions that Rust can call.
 * Unless a comment says otherwise they may be called where the thing that they
 * wrap may be.
 */
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/ring_buffer.h>
#include <linux/sched.h>
#include <linux/security.h>
#include <linux/smp.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>

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

/* TASK_COMM_LEN bytes with a NUL among them; any context, NMI included. */
const char *rhist_current_comm(void)
{
	static_assert(TASK_COMM_LEN == 16);
	return current->comm;
}

struct list_head *rhist_event_fields(struct trace_event_call *call)
{
	return trace_get_fields(call);
}

/*
 * Bytes that may be read of a record that was just reserved; any context, NMI
 * included. The length of an event on the per-CPU page for events that will
 * probably be discarded comes out four bytes short if it is a long one (its
 * array[0] is the length of the record alone, see
 * trace_event_buffer_lock_reserve()), and the two kinds cannot be told apart.
 * So long events get four more: in a real ring buffer those are still in the
 * buffer, and only a dynamic field that claims to reach there would have them
 * read.
 */
size_t rhist_record_len(struct ring_buffer_event *event)
{
	return ring_buffer_event_length(event) + (event->type_len ? 0 : sizeof(event->array[0]));
}

/* Task context, may sleep; event_mutex held (kprobe events edit lists under it). */
int rhist_event_reg(struct trace_event_call *call, struct trace_event_file *file, bool on)
{
	return call->class->reg(call, on ? TRACE_REG_REGISTER : TRACE_REG_UNREGISTER, file);
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

/*
 * The address of a function, or 0. There is no exported look-up of names, but
 * a probe that is never switched on has to be told where it would sit. Task
 * context, may sleep.
 */
unsigned long rhist_function_address(const char *name)
{
	struct kprobe probe = { .symbol_name = name, .flags = KPROBE_FLAG_DISABLED };
	unsigned long address;

	if (register_kprobe(&probe))
		return 0;
	address = (unsigned long)probe.addr;
	unregister_kprobe(&probe);
	return address;
}

/* Any context, NMI included, and any address: false if not all of it can be read. */
bool rhist_read_kernel(void *to, const void *from, size_t size)
{
	return !copy_from_kernel_nofault(to, from, size);
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
