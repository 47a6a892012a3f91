// SPDX-License-Identifier: GPL-2.0
/*
 * rhist's handlers for kprobe events and fprobe events. While rhist's own file is the only one that
 * enables such an event, they replace the kernel's: they make the record on the stack, if its
 * arguments are numbers, and pass it on, at a fifth of the cost of the ring buffer.
 *
 * In all other cases the kernel's handler gets the hit, and calls the trigger of the file, too
 * (event/event_file.c): if other files are enabled, or perf; if event probes are on ours; or if
 * rhist does more with the hit than count it. The same holds for probes that are added to the event
 * later.
 */
#include <linux/fprobe.h>
#include <linux/kprobes.h>
#include <linux/list.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/trace_events.h>
#include <linux/unaligned.h>

#include "handlers.h"
#include "record.h"
#include "../event/own_file.h"
#include "../memory.h"
#include "layouts_generated.h"

#ifdef TRACE_PROBE_EVENT__PROBES

/* kernel/trace/trace_probe.h */
#define TP_FLAG_TRACE	1

/*
 * A record: its head, of one word for a probe at the beginning of a function or in it (struct
 * kprobe_trace_entry_head), and two for one at the end (kretprobe_trace_entry_head); and the
 * arguments. Records of fprobe events are the same.
 */
struct record {
	struct trace_entry ent;
	unsigned long words[(RHIST_SHORT_MAX - sizeof(struct trace_entry)) / sizeof(unsigned long)];
};

#define HEAD_MAX	2

/* A kind of probes. All probes of an event are of one kind. */
struct kind {
	/*
	 * Replace the handler of a probe by ours, or put the kernel's back. The handler may be
	 * called meanwhile.
	 */
	void (*set)(struct trace_probe *tp, bool ours);
	/* Number of words of a record's head. */
	unsigned int head;
	/* Whether @fetch supports this as the first step of an argument. */
	bool (*fetches)(enum fetch_op op);
	/* Execute that step. */
	unsigned long (*fetch)(void *regs, const struct fetch_insn *code);
};

/*
 * The copy of an argument that is a register, or its lower bytes, as most are. Which register is
 * found out when the handler is set: executing the kernel's instructions takes three times as long
 * as copying it.
 */
struct copy {
	/* Offsets in the registers and in the record. */
	unsigned short from, to;
	/*
	 * Size in bytes; or OTHER, if the instructions have to be executed; or 0 behind the last
	 * argument.
	 */
	unsigned short size;
};

#define OTHER	0xffff

/* The way in which the hits of an event are counted. */
struct rhist_handled {
	struct rcu_head rcu;
	const struct rhist_probed *probed;
	const struct kind *kind;
	/* Size of a record in bytes. */
	unsigned int size;
	/* Without arguments, one copy to behind the record, so that hits need not test for that. */
	struct copy copies[];
};

/*
 * Return how the hits of a probe are counted if rhist's file is the only listener of its event;
 * NULL otherwise. Any context, with preemption off.
 */
static __always_inline const struct rhist_handled *only_listener(const struct trace_probe *tp)
{
	const void *event = tp->event;
	const struct list_head *files = event + TRACE_PROBE_EVENT__FILES, *first = READ_ONCE(files->next);
	const struct trace_event_file *file;

	/*
	 * READ_ONCE() would make the compiler load first and then compare: data_race() allows one
	 * instruction.
	 */
	if (data_race(*(unsigned int *)(event + TRACE_PROBE_EVENT__FLAGS)) != TP_FLAG_TRACE ||
	    first == files || data_race(first->next) != files)
		return NULL;
	file = list_entry(first, struct event_file_link, list)->file;
	if (!(file->flags & RHIST_EVENT_FILE))
		return NULL;
	return READ_ONCE(container_of(file, struct rhist_event_file, file)->handled);
}

/* Return whether this file supports the instructions of an argument. */
static bool is_simple(const struct probe_arg *arg, const struct kind *kind)
{
	const struct fetch_insn *code = arg->code;

	if (arg->dynamic || !(code->op == FETCH_OP_IMM || kind->fetches(code->op)))
		return false;
	do {
		code++;
	} while (code->op == FETCH_OP_DEREF);
	if (code->op != FETCH_OP_ST_RAW && code->op != FETCH_OP_ST_MEM)
		return false;
	code++;
	return code->op == FETCH_OP_END;
}

static bool has_simple_args(const struct trace_probe *tp, const struct kind *kind)
{
	if (tp->size > sizeof_field(struct record, words) - HEAD_MAX * sizeof(unsigned long))
		return false;
	for (unsigned int i = 0; i < tp->nr_args; i++) {
		if (!is_simple(&tp->args[i], kind))
			return false;
	}
	return true;
}

/* Find out how to copy an argument, which is simple. */
static struct copy copy_of(const struct probe_arg *arg, const struct kind *kind)
{
	const struct fetch_insn *code = arg->code;
	struct copy copy = { .to = offsetof(struct record, words[kind->head]) + arg->offset, .size = OTHER };
	/*
	 * Each word contains its own number, from 1: so the fetched value identifies its word. 0 is
	 * fetched if it is none of them.
	 */
	unsigned long regs[sizeof(struct pt_regs) / sizeof(unsigned long)], number;

	for (unsigned int i = 0; i < ARRAY_SIZE(regs); i++)
		regs[i] = i + 1;
	if (code->op == FETCH_OP_IMM || code[1].op != FETCH_OP_ST_RAW)
		return copy;
	number = kind->fetch(regs, code);
	if (number && number <= ARRAY_SIZE(regs)) {
		copy.from = (number - 1) * sizeof(*regs);
		copy.size = code[1].size;
	}
	return copy;
}

/* Store a number of @size bytes. Returns false if no number has that size. */
static __always_inline bool store(void *to, unsigned long value, unsigned int size)
{
	if (likely(size == sizeof(u32)))
		put_unaligned((u32)value, (u32 *)to);
	else if (size == sizeof(u64))
		put_unaligned((u64)value, (u64 *)to);
	else if (size == sizeof(u16))
		put_unaligned((u16)value, (u16 *)to);
	else if (size == sizeof(u8))
		*(u8 *)to = value;
	else
		return false;
	return true;
}

/*
 * Read memory at an unchecked address: the kernel's, or the program's if addresses distinguish them
 * (probe_mem_read()).
 */
static noinline notrace bool read_memory(void *to, unsigned long from, size_t size)
{
	if (IS_ENABLED(CONFIG_ARCH_HAS_NON_OVERLAPPING_ADDRESS_SPACE) && from < TASK_SIZE)
		return rhist_read_user(to, from, size);
	return rhist_read_kernel(to, (void *)from, size);
}

/*
 * Make an argument in a record. An argument that cannot be read is 0: the kernel's handler leaves
 * the previous contents there.
 */
static notrace void execute(const struct probe_arg *arg, void *to, void *regs, const struct kind *kind)
{
	const struct fetch_insn *code = arg->code;
	unsigned long value = code->op == FETCH_OP_IMM ? code->immediate : kind->fetch(regs, code);
	bool read = true;

	for (code++; code->op == FETCH_OP_DEREF; code++)
		read = read && read_memory(&value, value + code->offset, sizeof(value));
	if (code->op == FETCH_OP_ST_RAW && read)
		store(to, value, code->size);
	else if (!read || !read_memory(to, value + code->offset, code->size))
		memset(to, 0, code->size);
}

/* Count a hit whose record has all its arguments, as count() does. */
static __always_inline bool pass(const struct rhist_handled *handled, struct record *record)
{
	record->ent = (struct trace_entry){ .pid = current->pid };
	rhist_probe_hit(handled->probed, record, handled->size, raw_smp_processor_id());
	return !record->ent.type;
}

/* Count a hit as count() does, but execute the instructions of all arguments. */
static noinline notrace bool count_others(const struct rhist_handled *handled, const struct trace_probe *tp,
					  struct record *record, void *regs)
{
	for (unsigned int i = 0; i < tp->nr_args; i++)
		execute(&tp->args[i], (void *)record + handled->copies[i].to, regs, handled->kind);
	return pass(handled, record);
}

/*
 * Count a hit whose record has its head. Returns false if more has to be done with the hit: then
 * rhist_probe_hit_slow() has set the type.
 */
static __always_inline bool count(const struct rhist_handled *handled, const struct trace_probe *tp, struct record *record,
				  void *regs)
{
	const struct copy *copy = handled->copies;

	/* Most events have one argument. */
	do {
		if (!store((void *)record + copy->to, *(unsigned long *)(regs + copy->from), copy->size))
			return count_others(handled, tp, record, regs);
		copy++;
	} while (unlikely(copy->size));
	return pass(handled, record);
}

/*
 * The arguments of a handler, and the record of the hit. In memory, so that no registers have to be
 * saved while the hit is counted.
 */
#define HIT(...)	struct { __VA_ARGS__ struct record record; } hit __uninitialized

/*
 * Like the kernel's handlers, they are not traced themselves. And no canary behind the record: it
 * is not written by index.
 */
#define HANDLER		static notrace __no_stack_protector

/* Replace @handler by @hit, and keep it as @dispatcher; or put it back. */
#define SET_HANDLER(handler, hit, dispatcher, ours) do {		\
	if ((ours) && (handler) != (hit)) {				\
		(dispatcher) = (handler);				\
		smp_store_release(&(handler), hit);			\
	} else if (!(ours) && (handler) == (hit)) {			\
		WRITE_ONCE(handler, dispatcher);			\
	}								\
} while (0)

#ifdef TRACE_KPROBE__RP

/* The kernel's handlers, once they were replaced: the same for all events. */
static kprobe_pre_handler_t kprobe_dispatcher;
static kretprobe_handler_t kretprobe_dispatcher;

static bool fetches_kprobe(enum fetch_op op)
{
	return op == FETCH_OP_REG || op == FETCH_OP_ARG;
}

static notrace unsigned long fetch_kprobe(void *regs, const struct fetch_insn *code)
{
	return code->op == FETCH_OP_REG ? regs_get_register(regs, code->param) :
					  regs_get_kernel_argument(regs, code->param);
}

static bool fetches_kretprobe(enum fetch_op op)
{
	return op == FETCH_OP_REG || op == FETCH_OP_RETVAL;
}

static notrace unsigned long fetch_kretprobe(void *regs, const struct fetch_insn *code)
{
	return code->op == FETCH_OP_REG ? regs_get_register(regs, code->param) : regs_return_value(regs);
}

static __always_inline void *kprobe_of(struct kretprobe *rp)
{
	return (void *)rp - TRACE_KPROBE__RP;
}

static struct kretprobe *kretprobe_of(struct trace_probe *tp)
{
	return (void *)tp - TRACE_KPROBE__TP + TRACE_KPROBE__RP;
}

/* Count a hit for kprobe_profile. */
static __always_inline void count_in_profile(void *tk)
{
	raw_cpu_inc(**(unsigned long __percpu **)(tk + TRACE_KPROBE__NHIT));
}

HANDLER int hit_kprobe(struct kprobe *kp, struct pt_regs *regs)
{
	const struct trace_probe *tp = kprobe_of(container_of(kp, struct kretprobe, kp)) + TRACE_KPROBE__TP;
	const struct rhist_handled *handled = only_listener(tp);
	HIT(struct kprobe *kp; struct pt_regs *regs;);

	if (!handled)
		return kprobe_dispatcher(kp, regs);
	hit.kp = kp;
	hit.regs = regs;
	hit.record.words[0] = (unsigned long)kp->addr;
	if (!count(handled, tp, &hit.record, regs))
		return kprobe_dispatcher(hit.kp, hit.regs);
	count_in_profile(kprobe_of(container_of(hit.kp, struct kretprobe, kp)));
	return 0;
}
NOKPROBE_SYMBOL(hit_kprobe);

HANDLER int hit_kretprobe(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct kretprobe *rp = get_kretprobe(ri);
	const struct trace_probe *tp = kprobe_of(rp) + TRACE_KPROBE__TP;
	/* NULL if it was unregistered meanwhile. */
	const struct rhist_handled *handled = rp ? only_listener(tp) : NULL;
	HIT(struct kretprobe_instance *ri; struct kretprobe *rp; struct pt_regs *regs;);

	if (!handled)
		return kretprobe_dispatcher(ri, regs);
	hit.ri = ri;
	hit.rp = rp;
	hit.regs = regs;
	hit.record.words[0] = (unsigned long)rp->kp.addr;
	hit.record.words[1] = get_kretprobe_retaddr(ri);
	if (!count(handled, tp, &hit.record, regs))
		return kretprobe_dispatcher(hit.ri, hit.regs);
	count_in_profile(kprobe_of(hit.rp));
	return 0;
}
NOKPROBE_SYMBOL(hit_kretprobe);

static void set_kprobe(struct trace_probe *tp, bool ours)
{
	SET_HANDLER(kretprobe_of(tp)->kp.pre_handler, hit_kprobe, kprobe_dispatcher, ours);
}

static void set_kretprobe(struct trace_probe *tp, bool ours)
{
	SET_HANDLER(kretprobe_of(tp)->handler, hit_kretprobe, kretprobe_dispatcher, ours);
}

static const struct kind *kind_of_kprobe(struct trace_probe *tp)
{
	static const struct kind entry = { set_kprobe, 1, fetches_kprobe, fetch_kprobe };
	static const struct kind exit = { set_kretprobe, 2, fetches_kretprobe, fetch_kretprobe };

	return kretprobe_of(tp)->handler ? &exit : &entry;
}

#else

static const struct kind *kind_of_kprobe(struct trace_probe *tp)
{
	return NULL;
}

#endif

#ifdef TRACE_FPROBE__FP

static fprobe_entry_cb fentry_dispatcher;
static fprobe_exit_cb fexit_dispatcher;

static bool fetches_fentry(enum fetch_op op)
{
	return op == FETCH_OP_ARG;
}

static notrace unsigned long fetch_fentry(void *regs, const struct fetch_insn *code)
{
	return rhist_fprobe_argument(regs, code->param);
}

static bool fetches_fexit(enum fetch_op op)
{
	return op == FETCH_OP_RETVAL;
}

static notrace unsigned long fetch_fexit(void *regs, const struct fetch_insn *code)
{
	return rhist_fprobe_return_value(regs);
}

static struct fprobe *fprobe_of(struct trace_probe *tp)
{
	return (void *)tp - TRACE_FPROBE__TP + TRACE_FPROBE__FP;
}

HANDLER int hit_fentry(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, struct rhist_fprobe_regs *regs, void *data)
{
	const struct trace_probe *tp = (void *)fp - TRACE_FPROBE__FP + TRACE_FPROBE__TP;
	const struct rhist_handled *handled = only_listener(tp);
	HIT(struct fprobe *fp; unsigned long ret_ip; struct rhist_fprobe_regs *regs; void *data;);

	if (!handled)
		return fentry_dispatcher(fp, ip, ret_ip, regs, data);
	hit.fp = fp;
	hit.ret_ip = ret_ip;
	hit.regs = regs;
	hit.data = data;
	hit.record.words[0] = ip;
	if (!count(handled, tp, &hit.record, regs))
		return fentry_dispatcher(hit.fp, hit.record.words[0], hit.ret_ip, hit.regs, hit.data);
	return 0;
}
NOKPROBE_SYMBOL(hit_fentry);

HANDLER void hit_fexit(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, struct rhist_fprobe_regs *regs, void *data)
{
	const struct trace_probe *tp = (void *)fp - TRACE_FPROBE__FP + TRACE_FPROBE__TP;
	const struct rhist_handled *handled = only_listener(tp);
	HIT(struct fprobe *fp; unsigned long ret_ip; struct rhist_fprobe_regs *regs; void *data;);

	if (!handled)
		return fexit_dispatcher(fp, ip, ret_ip, regs, data);
	hit.fp = fp;
	hit.ret_ip = ret_ip;
	hit.regs = regs;
	hit.data = data;
	hit.record.words[0] = ip;
	hit.record.words[1] = ret_ip;
	if (!count(handled, tp, &hit.record, regs))
		fexit_dispatcher(hit.fp, hit.record.words[0], hit.ret_ip, hit.regs, hit.data);
}
NOKPROBE_SYMBOL(hit_fexit);

static void set_fentry(struct trace_probe *tp, bool ours)
{
	SET_HANDLER(fprobe_of(tp)->entry_handler, hit_fentry, fentry_dispatcher, ours);
}

static void set_fexit(struct trace_probe *tp, bool ours)
{
	SET_HANDLER(fprobe_of(tp)->exit_handler, hit_fexit, fexit_dispatcher, ours);
}

static const struct kind *kind_of_fprobe(struct trace_probe *tp)
{
	static const struct kind entry = { set_fentry, 1, fetches_fentry, fetch_fentry };
	static const struct kind exit = { set_fexit, 2, fetches_fexit, fetch_fexit };

	return fprobe_of(tp)->exit_handler ? &exit : &entry;
}

#else

static const struct kind *kind_of_fprobe(struct trace_probe *tp)
{
	return NULL;
}

#endif

static const struct kind *kind_of(const struct trace_event_call *call, struct trace_probe *tp)
{
	if (call->flags & TRACE_EVENT_FL_KPROBE)
		return kind_of_kprobe(tp);
	return call->flags & TRACE_EVENT_FL_FPROBE ? kind_of_fprobe(tp) : NULL;
}

/*
 * Allocate the description of how hits of the event of @tp, whose arguments are simple, are
 * counted. NULL if that fails. Task context.
 */
static struct rhist_handled *new_handled(const struct trace_probe *tp, const struct kind *kind, const struct rhist_probed *probed)
{
	struct rhist_handled *handled = kzalloc(struct_size(handled, copies, max(tp->nr_args, 1) + 1), GFP_KERNEL);

	if (!handled)
		return NULL;
	handled->probed = probed;
	handled->kind = kind;
	handled->size = offsetof(struct record, words[kind->head]) + tp->size;
	handled->copies[0] = (struct copy){ .to = handled->size, .size = sizeof(u32) };
	for (unsigned int i = 0; i < tp->nr_args; i++)
		handled->copies[i] = copy_of(&tp->args[i], kind);
	return handled;
}

/*
 * Add another probe of the event. Its arguments have the same places in the record, but arguments
 * from other registers have to be executed.
 */
static void add_probe(struct rhist_handled *handled, const struct trace_probe *tp)
{
	for (unsigned int i = 0; i < tp->nr_args; i++) {
		struct copy copy = copy_of(&tp->args[i], handled->kind);

		if (copy.from != handled->copies[i].from || copy.size == OTHER)
			handled->copies[i].size = OTHER;
	}
}

static struct list_head *probes_of(struct trace_event_call *call)
{
	return (void *)call - TRACE_PROBE_EVENT__CALL + TRACE_PROBE_EVENT__PROBES;
}

/*
 * Replace the handlers of an event's probes by ours, which count its hits for @probed once
 * event/event_file.c has put the result into the event's file. Returns NULL if none was replaced.
 * event_mutex is held: it protects the list of probes.
 */
struct rhist_handled *rhist_handlers_set(struct trace_event_call *call, const struct rhist_probed *probed)
{
	struct rhist_handled *handled = NULL;
	struct trace_probe *tp;

	if (!(call->flags & (TRACE_EVENT_FL_KPROBE | TRACE_EVENT_FL_FPROBE)))
		return NULL;
	list_for_each_entry(tp, probes_of(call), list) {
		const struct kind *kind = kind_of(call, tp);

		if (!kind || !has_simple_args(tp, kind))
			continue;
		if (handled)
			add_probe(handled, tp);
		else
			handled = new_handled(tp, kind, probed);
	}
	if (!handled)
		return NULL;
	list_for_each_entry(tp, probes_of(call), list) {
		if (has_simple_args(tp, handled->kind))
			handled->kind->set(tp, true);
	}
	return handled;
}

/*
 * Put the kernel's handlers back. Handlers are called with preemption off, so waiting for RCU waits
 * for running ones. Hits do not find @handled any more. event_mutex is held.
 */
void rhist_handlers_reset(struct trace_event_call *call, struct rhist_handled *handled)
{
	struct trace_probe *tp;

	list_for_each_entry(tp, probes_of(call), list)
		handled->kind->set(tp, false);
	kfree_rcu(handled, rcu);
}

#else

struct rhist_handled *rhist_handlers_set(struct trace_event_call *call, const struct rhist_probed *probed)
{
	return NULL;
}

void rhist_handlers_reset(struct trace_event_call *call, struct rhist_handled *handled)
{
}

#endif

/*
 * Set @functions to our handlers, 0 for missing ones: they may be on the stack of a hit. Any
 * context.
 */
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
