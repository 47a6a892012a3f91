// SPDX-License-Identifier: GPL-2.0
/*
 * rhist's handlers for kprobe events and fprobe events. While rhist's own file is the only one that such an event is
 * enabled for, they take the place of the kernel's: they make the record on the stack, as long as its arguments are
 * numbers, and pass it on, which is a third of what the way through the ring buffer takes.
 *
 * Whatever else is to be done with a hit is done by the kernel's handler, which then calls the trigger of the file, too
 * (rust/event_file.c): other files are enabled, or perf; event probes are on ours; or rhist would do more with the hit than
 * count it. So it is for a probe that is added to the event later.
 */
#include <linux/fprobe.h>
#include <linux/kprobes.h>
#include <linux/list.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/trace_events.h>
#include <linux/unaligned.h>

#include "handlers.h"
#include "probe.h"
#include "../event_file.h"
#include "../memory.h"
#include "layouts_generated.h"

#ifdef TRACE_PROBE_EVENT__PROBES

/* kernel/trace/trace_probe.h */
#define TP_FLAG_TRACE	1

/*
 * A record: its head, of one word for a probe at the beginning of a function or in it (struct kprobe_trace_entry_head), and
 * two for one at the end (kretprobe_trace_entry_head); and the arguments. Those of fprobe events are the same.
 */
struct record {
	struct trace_entry ent;
	unsigned long words[(RHIST_SHORT_MAX - sizeof(struct trace_entry)) / sizeof(unsigned long)];
};

#define HEAD_MAX	2

/*
 * Who gets the hits of a probe if nobody else does: rhist's file is the only one of its event. Any context, with
 * preemption off.
 */
static __always_inline const struct rhist_probed *only_listener(const struct trace_probe *tp)
{
	const void *event = tp->event;
	const struct list_head *files = event + TRACE_PROBE_EVENT__FILES, *first = READ_ONCE(files->next);
	const struct trace_event_file *file;

	if (READ_ONCE(*(unsigned int *)(event + TRACE_PROBE_EVENT__FLAGS)) != TP_FLAG_TRACE ||
	    first == files || READ_ONCE(first->next) != files)
		return NULL;
	file = list_entry(first, struct event_file_link, list)->file;
	if (!(file->flags & RHIST_EVENT_FILE) || READ_ONCE(file->triggers.next->next) != &file->triggers)
		return NULL;
	return READ_ONCE(container_of(file, struct rhist_event_file, file)->probed);
}

/*
 * Whether this file knows what an argument is made of. @fetches says so of its first step, which is another one for each
 * kind of probe.
 */
static bool is_simple(const struct probe_arg *arg, bool (*fetches)(enum fetch_op op))
{
	const struct fetch_insn *code = arg->code;

	if (arg->dynamic || !(code->op == FETCH_OP_IMM || fetches(code->op)))
		return false;
	do {
		code++;
	} while (code->op == FETCH_OP_DEREF);
	if (code->op != FETCH_OP_ST_RAW && code->op != FETCH_OP_ST_MEM)
		return false;
	code++;
	return code->op == FETCH_OP_END;
}

static bool has_simple_args(const struct trace_probe *tp, bool (*fetches)(enum fetch_op op))
{
	if (tp->size > sizeof_field(struct record, words) - HEAD_MAX * sizeof(unsigned long))
		return false;
	for (unsigned int i = 0; i < tp->nr_args; i++) {
		if (!is_simple(&tp->args[i], fetches))
			return false;
	}
	return true;
}

static __always_inline void store(void *to, unsigned long value, unsigned int size)
{
	switch (size) {
	case 1:
		*(u8 *)to = value;
		break;
	case 2:
		put_unaligned((u16)value, (u16 *)to);
		break;
	case 4:
		put_unaligned((u32)value, (u32 *)to);
		break;
	default:
		put_unaligned(value, (unsigned long *)to);
	}
}

/*
 * Reads memory at an address that may be none: the kernel's, or that of the program where these are told apart
 * (probe_mem_read()).
 */
static noinline bool read_memory(void *to, unsigned long from, size_t size)
{
	if (IS_ENABLED(CONFIG_ARCH_HAS_NON_OVERLAPPING_ADDRESS_SPACE) && from < TASK_SIZE)
		return rhist_read_user(to, from, size);
	return rhist_read_kernel(to, (void *)from, size);
}

/*
 * Makes an argument in a record from @value, which its first step has fetched. What cannot be read is 0: with the kernel's
 * handler it is what was there before.
 */
static __always_inline void put(void *to, const struct fetch_insn *code, unsigned long value)
{
	bool read = true;

	for (; code->op == FETCH_OP_DEREF; code++)
		read = read && read_memory(&value, value + code->offset, sizeof(value));
	if (code->op == FETCH_OP_ST_RAW && read)
		store(to, value, code->size);
	else if (!read || !read_memory(to, value + code->offset, code->size))
		memset(to, 0, code->size);
}

/*
 * Counts a hit whose record begins with @head, of @n words, and whose arguments @fetch reads from @regs; or returns false if
 * that is not all to be done with it.
 */
static __always_inline bool count(const struct rhist_probed *probed, const struct trace_probe *tp,
				  const unsigned long *head, unsigned int n, void *regs,
				  unsigned long (*fetch)(void *regs, const struct fetch_insn *code))
{
	struct record record __uninitialized;
	char *args = (char *)&record.words[n];

	for (unsigned int i = 0; i < tp->nr_args; i++) {
		const struct probe_arg *arg = &tp->args[i];
		const struct fetch_insn *code = arg->code;
		unsigned long value = code->op == FETCH_OP_IMM ? code->immediate : fetch(regs, code);

		put(args + arg->offset, code + 1, value);
	}
	for (unsigned int i = 0; i < n; i++)
		record.words[i] = head[i];
	record.ent.pid = current->pid;
	return rhist_probe_hit_fast(probed, &record, args + tp->size - (char *)&record, raw_smp_processor_id());
}

/*
 * Replaces @handler by @hit, and keeps it as @dispatcher; or puts it back. Evaluates to whether it is @hit now. It may be
 * called meanwhile.
 */
#define SET_HANDLER(handler, hit, dispatcher, ours)	({		\
	bool set = ours;						\
									\
	if (set && (handler) != (hit)) {				\
		(dispatcher) = (handler);				\
		smp_store_release(&(handler), hit);			\
	} else if (!set && (handler) == (hit)) {			\
		WRITE_ONCE(handler, dispatcher);			\
	}								\
	set;								\
})

#ifdef TRACE_KPROBE__RP

/* The kernel's handlers, once they were replaced: they are the same for all events. */
static kprobe_pre_handler_t kprobe_dispatcher;
static kretprobe_handler_t kretprobe_dispatcher;

static bool fetches_kprobe(enum fetch_op op)
{
	return op == FETCH_OP_REG || op == FETCH_OP_ARG;
}

static __always_inline unsigned long fetch_kprobe(void *regs, const struct fetch_insn *code)
{
	return code->op == FETCH_OP_REG ? regs_get_register(regs, code->param) :
					  regs_get_kernel_argument(regs, code->param);
}

static bool fetches_kretprobe(enum fetch_op op)
{
	return op == FETCH_OP_REG || op == FETCH_OP_RETVAL;
}

static __always_inline unsigned long fetch_kretprobe(void *regs, const struct fetch_insn *code)
{
	return code->op == FETCH_OP_REG ? regs_get_register(regs, code->param) : regs_return_value(regs);
}

/* Counts a hit for kprobe_profile. */
static __always_inline void count_in_profile(void *tk)
{
	raw_cpu_inc(**(unsigned long __percpu **)(tk + TRACE_KPROBE__NHIT));
}

static int hit_kprobe(struct kprobe *kp, struct pt_regs *regs)
{
	void *tk = (void *)container_of(kp, struct kretprobe, kp) - TRACE_KPROBE__RP;
	const struct trace_probe *tp = tk + TRACE_KPROBE__TP;
	const struct rhist_probed *probed = only_listener(tp);
	unsigned long head[] = { (unsigned long)kp->addr };

	if (!probed || !count(probed, tp, head, ARRAY_SIZE(head), regs, fetch_kprobe))
		return kprobe_dispatcher(kp, regs);
	count_in_profile(tk);
	return 0;
}
NOKPROBE_SYMBOL(hit_kprobe);

static int hit_kretprobe(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct kretprobe *rp = get_kretprobe(ri);
	void *tk = (void *)rp - TRACE_KPROBE__RP;
	const struct trace_probe *tp = tk + TRACE_KPROBE__TP;
	const struct rhist_probed *probed = rp ? only_listener(tp) : NULL;
	unsigned long head[] = { rp ? (unsigned long)rp->kp.addr : 0, get_kretprobe_retaddr(ri) };

	/* Without rp it was unregistered meanwhile. */
	if (!probed || !count(probed, tp, head, ARRAY_SIZE(head), regs, fetch_kretprobe))
		return kretprobe_dispatcher(ri, regs);
	count_in_profile(tk);
	return 0;
}
NOKPROBE_SYMBOL(hit_kretprobe);

static bool set_kprobe(struct trace_probe *tp, bool ours)
{
	struct kretprobe *rp = (void *)tp - TRACE_KPROBE__TP + TRACE_KPROBE__RP;

	if (rp->handler)
		return SET_HANDLER(rp->handler, hit_kretprobe, kretprobe_dispatcher,
				   ours && has_simple_args(tp, fetches_kretprobe));
	return SET_HANDLER(rp->kp.pre_handler, hit_kprobe, kprobe_dispatcher, ours && has_simple_args(tp, fetches_kprobe));
}

#else

static bool set_kprobe(struct trace_probe *tp, bool ours)
{
	return false;
}

#endif

#ifdef TRACE_FPROBE__FP

static fprobe_entry_cb fentry_dispatcher;
static fprobe_exit_cb fexit_dispatcher;

static bool fetches_fentry(enum fetch_op op)
{
	return op == FETCH_OP_ARG;
}

static __always_inline unsigned long fetch_fentry(void *regs, const struct fetch_insn *code)
{
	return rhist_fprobe_argument(regs, code->param);
}

static bool fetches_fexit(enum fetch_op op)
{
	return op == FETCH_OP_RETVAL;
}

static __always_inline unsigned long fetch_fexit(void *regs, const struct fetch_insn *code)
{
	return rhist_fprobe_return_value(regs);
}

static int hit_fentry(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, struct rhist_fprobe_regs *regs, void *data)
{
	const struct trace_probe *tp = (void *)fp - TRACE_FPROBE__FP + TRACE_FPROBE__TP;
	const struct rhist_probed *probed = only_listener(tp);
	unsigned long head[] = { ip };

	if (!probed || !count(probed, tp, head, ARRAY_SIZE(head), regs, fetch_fentry))
		return fentry_dispatcher(fp, ip, ret_ip, regs, data);
	return 0;
}
NOKPROBE_SYMBOL(hit_fentry);

static void hit_fexit(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, struct rhist_fprobe_regs *regs, void *data)
{
	const struct trace_probe *tp = (void *)fp - TRACE_FPROBE__FP + TRACE_FPROBE__TP;
	const struct rhist_probed *probed = only_listener(tp);
	unsigned long head[] = { ip, ret_ip };

	if (!probed || !count(probed, tp, head, ARRAY_SIZE(head), regs, fetch_fexit))
		fexit_dispatcher(fp, ip, ret_ip, regs, data);
}
NOKPROBE_SYMBOL(hit_fexit);

static bool set_fprobe(struct trace_probe *tp, bool ours)
{
	struct fprobe *fp = (void *)tp - TRACE_FPROBE__TP + TRACE_FPROBE__FP;

	if (fp->exit_handler)
		return SET_HANDLER(fp->exit_handler, hit_fexit, fexit_dispatcher, ours && has_simple_args(tp, fetches_fexit));
	return SET_HANDLER(fp->entry_handler, hit_fentry, fentry_dispatcher, ours && has_simple_args(tp, fetches_fentry));
}

#else

static bool set_fprobe(struct trace_probe *tp, bool ours)
{
	return false;
}

#endif

/*
 * Replaces the handlers of an event's probes by ours, or puts the kernel's back. Handlers are called with preemption off:
 * who waits for RCU then waits for those that run. Returns whether any is ours now. event_mutex is held: it protects the list
 * of probes.
 */
bool rhist_handlers_set(struct trace_event_call *call, bool ours)
{
	struct list_head *probes = (void *)call - TRACE_PROBE_EVENT__CALL + TRACE_PROBE_EVENT__PROBES;
	struct trace_probe *tp;
	bool any = false;

	if (!(call->flags & (TRACE_EVENT_FL_KPROBE | TRACE_EVENT_FL_FPROBE)))
		return false;
	list_for_each_entry(tp, probes, list)
		any |= call->flags & TRACE_EVENT_FL_KPROBE ? set_kprobe(tp, ours) : set_fprobe(tp, ours);
	return any;
}

#else

bool rhist_handlers_set(struct trace_event_call *call, bool ours)
{
	return false;
}

#endif

/* Set @functions to our handlers, or 0 where there is none: they may be on the stack of a hit. Any context. */
void rhist_handlers(unsigned long functions[RHIST_HANDLERS])
{
	memset(functions, 0, RHIST_HANDLERS * sizeof(*functions));
#if defined(TRACE_PROBE_EVENT__PROBES) && defined(TRACE_KPROBE__RP)
	functions[0] = (unsigned long)hit_kprobe;
	functions[1] = (unsigned long)hit_kretprobe;
#endif
#if defined(TRACE_PROBE_EVENT__PROBES) && defined(TRACE_FPROBE__FP)
	functions[2] = (unsigned long)hit_fentry;
	functions[3] = (unsigned long)hit_fexit;
#endif
}
