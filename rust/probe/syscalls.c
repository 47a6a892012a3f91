// SPDX-License-Identifier: GPL-2.0
/*
 * rhist's probes for the events of system calls: one on each of the tracepoints that all calls
 * share, with a table of the calls that have a hook. Events with data of the program in their
 * records have no probe here: reading that data may sleep.
 */
#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <trace/syscall.h>
#include <asm/syscall.h>

#include "record.h"
#include "syscalls.h"

#ifdef CONFIG_FTRACE_SYSCALLS

/*
 * The record (kernel/trace/trace.h, which modules cannot include; see the format file of such an
 * event).
 */
struct record {
	struct trace_entry ent;
	int nr;
	/* On entry the six arguments; on exit only the return value. */
	unsigned long args[6];
};

/* The events of entry to, or exit from, all system calls. Changed by one task at a time. */
struct side {
	const char *tracepoint;
	unsigned int n;
	/* Private data of the event of each system call; NULL without a hook. */
	struct rhist_probed *probed[NR_syscalls];
};

static struct side enter = { .tracepoint = "sys_enter" }, leave = { .tracepoint = "sys_exit" };

static __always_inline const struct rhist_probed *wanted(const struct side *side,
							 struct pt_regs *regs, int *nr)
{
#ifdef ARCH_TRACE_IGNORE_COMPAT_SYSCALLS
	if (unlikely(arch_trace_is_compat_syscall(regs)))
		return NULL;
#endif
	*nr = syscall_get_nr(current, regs);
	return *nr < 0 || *nr >= NR_syscalls ? NULL : READ_ONCE(side->probed[*nr]);
}

static __always_inline void hit(const struct side *side, struct pt_regs *regs, bool entered)
{
	const size_t size = entered ? sizeof(struct record) : offsetof(struct record, args[1]);
	const struct rhist_probed *probed;
	struct record record __uninitialized;
	int nr;

	rhist_guard_hit();
	probed = wanted(side, regs, &nr);
	if (!probed)
		return;
	memset(&record, 0, size);
	record.ent.pid = current->pid;
	record.nr = nr;
	if (entered)
		syscall_get_arguments(current, regs, record.args);
	else
		record.args[0] = syscall_get_return_value(current, regs);
	rhist_record_end(probed, &record, size, false, 0);
}

static notrace void rhist_sys_enter(void *unused, struct pt_regs *regs, long id)
{
	hit(&enter, regs, true);
}

static notrace void rhist_sys_exit(void *unused, struct pt_regs *regs, long ret)
{
	hit(&leave, regs, false);
}

static struct side *side_of(const void *probe)
{
	return probe == rhist_sys_enter ? &enter : &leave;
}

/* The probe for a system call's event, or NULL. Task context. */
void *rhist_syscall_find(struct trace_event_call *call)
{
	const struct syscall_metadata *meta = call->data;

	/* The system may have other events, too, but those have a flag. */
	if (call->flags & ~TRACE_EVENT_FL_CAP_ANY || strcmp(call->class->system, "syscalls") ||
	    meta->syscall_nr < 0 || meta->syscall_nr >= NR_syscalls)
		return NULL;
	if (meta->exit_event == call)
		return rhist_sys_exit;
	return meta->enter_event == call && !rhist_reads_user_memory(meta) ? rhist_sys_enter : NULL;
}

struct search {
	const char *name;
	struct tracepoint *found;
};

static void match_tracepoint(struct tracepoint *tp, void *arg)
{
	struct search *search = arg;

	if (!strcmp(tp->name, search->name))
		search->found = tp;
}

static struct tracepoint *tracepoint(const char *name)
{
	struct search search = { .name = name };

	for_each_kernel_tracepoint(match_tracepoint, &search);
	return search.found;
}

int rhist_syscall_connect(struct trace_event_call *call, void *probe, struct rhist_probed *probed)
{
	const struct syscall_metadata *meta = call->data;
	struct side *side = side_of(probe);
	struct tracepoint *tp = tracepoint(side->tracepoint);
	int err = tp ? 0 : -ENODEV;

	if (!err && !side->n)
		err = tracepoint_probe_register(tp, probe, NULL);
	if (err)
		return err;
	side->n++;
	/*
	 * *probed is initialized before a hit on another CPU sees the pointer: pairs with wanted().
	 */
	smp_store_release(&side->probed[meta->syscall_nr], probed);
	return 0;
}

void rhist_syscall_disconnect(struct trace_event_call *call, void *probe)
{
	const struct syscall_metadata *meta = call->data;
	struct side *side = side_of(probe);

	WRITE_ONCE(side->probed[meta->syscall_nr], NULL);
	if (!--side->n)
		tracepoint_probe_unregister(tracepoint(side->tracepoint), probe, NULL);
}

/* The probes on the tracepoints of all system calls. */
void rhist_syscall_probes(unsigned long probes[2])
{
	probes[0] = (unsigned long)rhist_sys_enter;
	probes[1] = (unsigned long)rhist_sys_exit;
}

#else

void *rhist_syscall_find(struct trace_event_call *call)
{
	return NULL;
}

int rhist_syscall_connect(struct trace_event_call *call, void *probe, struct rhist_probed *probed)
{
	return -ENODEV;
}

void rhist_syscall_disconnect(struct trace_event_call *call, void *probe)
{
}

void rhist_syscall_probes(unsigned long probes[2])
{
	probes[0] = probes[1] = 0;
}

#endif
