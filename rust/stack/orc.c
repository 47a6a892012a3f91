// SPDX-License-Identifier: GPL-2.0
/*
 * Walk the stack of the running task by rules that are learned from the kernel's ORC unwinder.
 *
 * For each frame, the unwinder searches its tables for the code address, and checks the entry: 400
 * to 800 instructions. The result is a constant of the address: where to find the sp, the bp and
 * the return address of the caller. So the unwinder is asked once for each address, about a made-up
 * frame, on a stack of ours whose words identify themselves (learn_rule()); the answer is kept in a
 * cache. A frame then costs some 25 instructions.
 *
 * Only plain rules are kept. For others, the unwinder is asked for this one frame
 * (ask_for_frame()), or for the whole stack, by the caller: where code has no tables, where
 * trampolines have replaced return addresses, where a stack continues on one that is not known
 * here. All words that are read are on the stack that a walk is on, whatever the rules say. One
 * walk in some thousands is compared with the unwinder's, and the first difference ends the use of
 * rules until the module is loaded again.
 *
 * A rule is valid while the code exists. Text of the kernel stays; rules of modules are forgotten
 * when any module comes or goes, and when the init of one is freed; other text gets no rules.
 */
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "orc.h"
#include "stack.h"
#include "../module.h"
#include "../symbols.h"

#ifdef CONFIG_UNWINDER_ORC

#include <asm/cpu_entry_area.h>
#include <asm/unwind.h>

/*
 * A rule and its key are one word, so that a reader never sees the halves of two rules: addresses
 * of kernel text have their upper 33 bits set (__START_KERNEL_map), so 32 bits hold the whole key.
 * Numbers are in words of the stack.
 *
 *	63..32	the key: the address that the unwinder looks up
 *	if bit 12 is not set, as for nearly all frames: the caller's sp is the callee's plus an
 *	offset
 *		0..11	the offset
 *		13	set if the caller's bp was saved; else it is the callee's
 *		20..31	how far above sp it was saved
 *	if bit 12 is set:
 *		0..11	offset for sp, signed
 *		13..15	enum rule_kind
 *		16..17	enum rule_bp
 *		20..31	offset for bp, signed
 */
#define RULE_OFFSET	0xfffu
#define RULE_OTHER	(1u << 12)
#define RULE_SAVED_BP	(1u << 13)

enum rule_kind {
	RULE_SP,		/* sp + offset */
	RULE_BP,		/* bp + offset */
	RULE_SP_INDIRECT,	/* the word at sp, + offset */
	RULE_BP_INDIRECT,	/* the word at bp + offset */
	RULE_REGS,		/* struct pt_regs at sp + offset: interrupted code */
	RULE_END,		/* the outermost frame */
	RULE_ASK,		/* not known */
};

enum rule_bp {
	RULE_BP_SAME,		/* unchanged */
	RULE_BP_BY_SP,		/* the word at the caller's sp + offset */
	RULE_BP_BY_BP,		/* the word at the callee's bp + offset */
};

#define RULE_UNKNOWN	(RULE_OTHER | RULE_ASK << 13)

static enum rule_kind kind_of(u32 rule)
{
	return rule & RULE_OTHER ? rule >> 13 & 7 : RULE_SP;
}

static enum rule_bp bp_of(u32 rule)
{
	return rule >> 16 & 3;
}

static long sp_offset_of(u32 rule)
{
	return (s32)(rule << 20) >> 20;
}

static long bp_offset_of(u32 rule)
{
	return (s32)rule >> 20;
}

static u32 rule_of(enum rule_kind kind, enum rule_bp bp, long sp_offset, long bp_offset)
{
	if (kind == RULE_SP && bp == RULE_BP_SAME)
		return sp_offset;
	if (kind == RULE_SP && bp == RULE_BP_BY_SP)
		return RULE_SAVED_BP | sp_offset | (u32)(sp_offset + bp_offset) << 20;
	return RULE_OTHER | (sp_offset & RULE_OFFSET) | kind << 13 | bp << 16 | (u32)bp_offset << 20;
}

/* The cache: a key has two places, which differ in the lowest bit. */
#define RULES	8192

/*
 * The key of an empty place: no text is at this address, so the unwinder is asked about it, as for
 * all addresses without a rule.
 */
#define EMPTY	((u64)(u32)__START_KERNEL_map << 32 | RULE_UNKNOWN)

static u64 rules[RULES];

static enum rhist_orc_mode mode;

struct counts {
	u64 learned, frames, failed, checked;
};

/* Counted with this_cpu_inc(), which is one instruction, so that an NMI cannot come in between. */
static DEFINE_PER_CPU(struct counts, counts);

/*
 * Trampolines whose addresses replace return addresses: of the function graph tracer, and of
 * kretprobes.
 */
static unsigned long graph_trampoline, rethook_trampoline;

static bool is_trampoline(unsigned long address)
{
	return address == graph_trampoline || address == rethook_trampoline;
}

static unsigned int place_of(unsigned long key)
{
	return key & (RULES - 1);
}

static bool is_key_of(u64 entry, unsigned long key)
{
	return (s64)entry >> 32 == (s64)key;
}

static __always_inline unsigned long load(unsigned long address)
{
	return READ_ONCE_NOCHECK(*(unsigned long *)address);
}

/*
 * The stack that the unwinder is asked about. Each word identifies itself (TAG + index); but some
 * are pointers into the stack, since rules may take sp from memory: the words at the two places of
 * sp, and POINTERS words below the two places of bp, each of which points to a place of its own.
 * Written when the module is loaded, and never again.
 */
#define WORDS		2048
#define TAG		0x5a5a000000000000ul
#define SP_1		64
#define SP_2		80
#define SP_1_POINTS_TO	600
#define SP_2_POINTS_TO	648
#define BP_1		1200
#define BP_2		1240
#define POINTERS	16
#define BP_1_POINT_TO	1300
#define BP_2_POINT_TO	1600

static unsigned long made_up_stack[WORDS] __aligned(16);

/*
 * The task of that stack: not the running one, for which the unwinder would print warnings. The
 * unwinder only looks up its stack.
 */
static struct task_struct *made_up_task;

static unsigned long address_of(unsigned int word)
{
	return (unsigned long)&made_up_stack[word];
}

/* The address in the word that is @nth below @bp. */
static unsigned long pointed_below(unsigned int bp, unsigned int nth)
{
	return address_of((bp == BP_1 ? BP_1_POINT_TO : BP_2_POINT_TO) + 8 * nth);
}

static void make_up_stack(void)
{
	for (unsigned int i = 0; i < WORDS; i++)
		made_up_stack[i] = TAG + i;
	made_up_stack[SP_1] = address_of(SP_1_POINTS_TO);
	made_up_stack[SP_2] = address_of(SP_2_POINTS_TO);
	for (unsigned int nth = 1; nth <= POINTERS; nth++) {
		made_up_stack[BP_1 - nth] = pointed_below(BP_1, nth);
		made_up_stack[BP_2 - nth] = pointed_below(BP_2, nth);
	}
}

/* Return which word below @bp points to @address; 0 if none does. */
static unsigned int pointer_below(unsigned int bp, unsigned long address)
{
	for (unsigned int nth = 1; nth <= POINTERS; nth++)
		if (address == pointed_below(bp, nth))
			return nth;
	return 0;
}

/* The index of the word of the made-up stack that has @value, or -1. */
static long word_of(unsigned long value)
{
	unsigned int nth;

	if (value >= TAG && value < TAG + WORDS)
		return value - TAG;
	if (value == address_of(SP_1_POINTS_TO))
		return SP_1;
	if (value == address_of(SP_2_POINTS_TO))
		return SP_2;
	nth = pointer_below(BP_1, value);
	if (nth)
		return BP_1 - nth;
	nth = pointer_below(BP_2, value);
	return nth ? BP_2 - nth : -1;
}

static long words_between(unsigned long from, unsigned long to)
{
	return (long)(to - from) / (long)sizeof(long);
}

/* Ask the unwinder for the caller of the code at @key with sp and bp at these words. */
static bool ask_about(struct unwind_state *caller, unsigned long key, unsigned int sp, unsigned int bp)
{
	*caller = (struct unwind_state){
		.stack_info = { STACK_TYPE_TASK, made_up_stack, made_up_stack + WORDS },
		.task = made_up_task,
		.ip = key,
		.sp = address_of(sp),
		.bp = address_of(bp),
		/* Makes the unwinder look up the address itself. */
		.signal = true,
	};
	return unwind_next_frame(caller) && !caller->error;
}

/*
 * Find out how the caller's sp is computed. @a and @b have different sp, @a and @c different bp.
 * False if no kind of rule fits.
 */
static bool learn_sp(const struct unwind_state *a, const struct unwind_state *b, const struct unwind_state *c,
		     enum rule_kind *kind, long *offset)
{
	unsigned int nth = pointer_below(BP_1, a->sp);
	long by_sp = words_between(a->sp, b->sp), by_bp = words_between(a->sp, c->sp);

	if (a->sp % sizeof(long))
		return false;
	if (!by_bp && by_sp == SP_2 - SP_1) {
		*kind = RULE_SP;
		*offset = words_between(address_of(SP_1), a->sp);
		return *offset > 0;
	}
	if (!by_bp && by_sp == SP_2_POINTS_TO - SP_1_POINTS_TO) {
		*kind = RULE_SP_INDIRECT;
		*offset = words_between(address_of(SP_1_POINTS_TO), a->sp);
		return true;
	}
	if (!by_sp && by_bp == BP_2 - BP_1) {
		*kind = RULE_BP;
		*offset = words_between(address_of(BP_1), a->sp);
		return true;
	}
	if (!by_sp && nth && nth == pointer_below(BP_2, c->sp)) {
		*kind = RULE_BP_INDIRECT;
		*offset = -(long)nth;
		return true;
	}
	return false;
}

/* Find out how the caller's bp is computed, likewise. */
static bool learn_bp(const struct unwind_state *a, const struct unwind_state *b, const struct unwind_state *c,
		     enum rule_bp *bp, long *offset)
{
	long at_a = word_of(a->bp), at_b = word_of(b->bp), at_c = word_of(c->bp);

	*offset = 0;
	if (a->bp == address_of(BP_1)) {
		*bp = RULE_BP_SAME;
		return b->bp == a->bp && c->bp == address_of(BP_2);
	}
	if (at_a < 0 || at_b < 0 || at_c < 0)
		return false;
	if (at_b - at_a == words_between(a->sp, b->sp) && at_c - at_a == words_between(a->sp, c->sp)) {
		*bp = RULE_BP_BY_SP;
		*offset = at_a - words_between(address_of(0), a->sp);
		return *offset < 0;
	}
	if (at_a == at_b && at_c - at_a == BP_2 - BP_1) {
		*bp = RULE_BP_BY_BP;
		*offset = at_a - BP_1;
		return true;
	}
	return false;
}

static bool fits(long offset)
{
	return offset >= -2048 && offset <= 2047;
}

/* Learn the rule for interrupted code, whose registers @a, @b and @c have. */
static u32 learn_regs(const struct unwind_state *a, const struct unwind_state *b, const struct unwind_state *c)
{
	const struct pt_regs *regs = a->regs;
	long offset = words_between(address_of(SP_1), (unsigned long)regs);

	if (!a->full_regs || !a->signal || (unsigned long)regs % sizeof(long) || offset < 0 || !fits(offset))
		return RULE_UNKNOWN;
	if (c->regs != regs || words_between((unsigned long)regs, (unsigned long)b->regs) != SP_2 - SP_1)
		return RULE_UNKNOWN;
	if (a->ip != regs->ip || a->sp != regs->sp || a->bp != regs->bp)
		return RULE_UNKNOWN;
	return rule_of(RULE_REGS, RULE_BP_SAME, offset, 0);
}

/*
 * Learn the rule of the code at @key, by asking with two places of sp and two of bp. Any context.
 */
static u32 learn_rule(unsigned long key)
{
	struct unwind_state a, b, c;
	long sp_offset, bp_offset;
	enum rule_kind kind;
	enum rule_bp bp;

	if (!ask_about(&a, key, SP_1, BP_1))
		return a.error ? RULE_UNKNOWN : rule_of(RULE_END, RULE_BP_SAME, 0, 0);
	if (!ask_about(&b, key, SP_2, BP_1) || !ask_about(&c, key, SP_1, BP_2))
		return RULE_UNKNOWN;
	if (a.regs)
		return learn_regs(&a, &b, &c);
	if (a.signal || !learn_sp(&a, &b, &c, &kind, &sp_offset) || !learn_bp(&a, &b, &c, &bp, &bp_offset))
		return RULE_UNKNOWN;
	/* The return address has to be where every call puts it. */
	if (word_of(a.ip) != words_between(address_of(0), a.sp) - 1)
		return RULE_UNKNOWN;
	/*
	 * The fast rule does not check that the saved bp is on the stack: it is below the return
	 * address.
	 */
	if (kind == RULE_SP && bp == RULE_BP_BY_SP && -bp_offset > sp_offset)
		return RULE_UNKNOWN;
	return fits(sp_offset) && fits(bp_offset) ? rule_of(kind, bp, sp_offset, bp_offset) : RULE_UNKNOWN;
}

static bool is_text(unsigned long address)
{
	struct unwind_state state = { .stack_info.type = STACK_TYPE_TASK, .ip = address };

	return unwind_get_return_address(&state);
}

/*
 * Return whether @address is in a module, and not in a BPF program or a trampoline of ftrace or
 * kprobes. Any context.
 */
static noinline bool is_in_module(unsigned long address)
{
	char name[KSYM_SYMBOL_LEN], *module;

	sprint_symbol(name, address);
	module = strrchr(name, '[');
	return module && !strstarts(module, "[bpf]") && !strstarts(module, "[__builtin__");
}

/* Return whether code at @key has a rule that stays valid, as far as is known. */
static bool may_have_rule(unsigned long key)
{
	if (key <= __START_KERNEL_map || key >= MODULES_END - 1)
		return false;
	/* Replaced return addresses are not a property of the code. */
	if (is_trampoline(key) || is_trampoline(key + 1))
		return false;
	if (!is_text(key) || !is_text(key + 1))
		return false;
	/*
	 * Looking up the name takes a kilobyte of the stack, which the contexts below this hit may
	 * have used already.
	 */
	return key < MODULES_VADDR || (rhist_stack_suffices() && is_in_module(key));
}

/*
 * Keep @rule. The previous rule in its place moves to the other place of the key, unless its key is
 * the same.
 */
static void keep(unsigned long key, u32 rule)
{
	u64 *place = &rules[place_of(key)];
	u64 old = READ_ONCE(*place);

	if (old != EMPTY && !is_key_of(old, key))
		WRITE_ONCE(rules[place_of(key) ^ 1], old);
	WRITE_ONCE(*place, key << 32 | rule);
}

/* Return the rule of the code at @key, which is not in its first place. Any context. */
static noinline u32 find_or_learn(unsigned long key)
{
	u64 entry = READ_ONCE(rules[place_of(key) ^ 1]);
	u32 rule;

	if (is_key_of(entry, key))
		return entry;
	if (!may_have_rule(key))
		return RULE_UNKNOWN;
	rule = learn_rule(key);
	this_cpu_inc(counts.learned);
	keep(key, rule);
	return rule;
}

static bool is_of_module(u64 entry)
{
	return (unsigned long)((s64)entry >> 32) >= MODULES_VADDR;
}

static void clear_modules(void)
{
	for (unsigned int i = 0; i < RULES; i++) {
		u64 entry = READ_ONCE(rules[i]);

		if (is_of_module(entry))
			cmpxchg(&rules[i], entry, EMPTY);
	}
}

/*
 * Forget the rules of modules. Task context, sleeps.
 *
 * keep() may have read a rule from a place before that was cleared, or have learned one before, and
 * write it afterwards. That ends within a grace period, as preemption is off meanwhile.
 */
static void forget_modules(void)
{
	clear_modules();
	synchronize_rcu();
	clear_modules();
}

/*
 * A module that is going does not run any more, nor does the init of a live one, which is freed
 * then. Other code may get their addresses afterwards. But functions that they have run by
 * async_schedule() may last longer: the kernel waits for these after this notifier. So clear such
 * rules before a module comes.
 */
static int module_changes(struct notifier_block *block, unsigned long state, void *module)
{
	if (state == MODULE_STATE_LIVE || state == MODULE_STATE_GOING)
		forget_modules();
	else if (state == MODULE_STATE_COMING)
		clear_modules();
	return NOTIFY_DONE;
}

static struct notifier_block module_notifier = { .notifier_call = module_changes };

/* The position of a walk. */
struct walk {
	unsigned long ip, sp, bp;
	/* The code address with which the rule of this frame is looked up. */
	unsigned long key;
	/* The stack that sp is on. */
	unsigned long begin, end;
	enum stack_type stack_type;
};

/*
 * Stacks of a CPU that do not belong to a task. They never move; end is 0 while they are not known.
 */
struct known_stack {
	unsigned long begin, end;
	enum stack_type type;
};

static DEFINE_PER_CPU(struct known_stack[2], known_stacks);

static bool is_on(const struct known_stack *stack, unsigned long sp)
{
	return sp >= stack->begin && sp < stack->end;
}

/*
 * Find the stack that @sp is on, which is the one that this function runs on, and remember it.
 * Preemption is off.
 */
static noinline const struct known_stack *look_up_stack(unsigned long sp)
{
	struct known_stack *stack;
	struct unwind_state state;

	unwind_start(&state, current, NULL, NULL);
	if (state.stack_info.type == STACK_TYPE_IRQ)
		stack = this_cpu_ptr(&known_stacks[0]);
	else if (state.stack_info.type == STACK_TYPE_EXCEPTION + ESTACK_NMI)
		stack = this_cpu_ptr(&known_stacks[1]);
	else
		return NULL;
	/* A context that interrupts this sees no stack, or all of it: each writes the same. */
	WRITE_ONCE(stack->end, 0);
	barrier();
	WRITE_ONCE(stack->begin, (unsigned long)state.stack_info.begin);
	WRITE_ONCE(stack->type, state.stack_info.type);
	barrier();
	WRITE_ONCE(stack->end, (unsigned long)state.stack_info.end);
	return is_on(stack, sp) ? stack : NULL;
}

static void set_stack(struct walk *walk, const struct known_stack *stack)
{
	walk->begin = stack->begin;
	walk->end = stack->end;
	walk->stack_type = stack->type;
}

/* Find the stack that a walk begins on, if that is not the task's. Preemption is off. */
static noinline bool find_stack(struct walk *walk)
{
	const struct known_stack *stack = this_cpu_ptr(&known_stacks[in_nmi() ? 1 : 0]);

	/* The walk may begin in the interrupt that the NMI has interrupted. */
	if (in_nmi() && is_on(this_cpu_ptr(&known_stacks[0]), walk->sp))
		stack = this_cpu_ptr(&known_stacks[0]);
	if (!is_on(stack, walk->sp))
		stack = look_up_stack(walk->sp);
	if (!stack)
		return false;
	set_stack(walk, stack);
	return true;
}

static void begin_on_task(struct walk *walk)
{
	walk->begin = (unsigned long)task_stack_page(current);
	walk->end = walk->begin + THREAD_SIZE;
	walk->stack_type = STACK_TYPE_TASK;
}

/*
 * Go from the stack of an interrupt or an NMI to the interrupted one, which @sp is on. Preemption
 * is off.
 */
static bool switch_stack(struct walk *walk, unsigned long sp)
{
	const struct known_stack *irq = this_cpu_ptr(&known_stacks[0]);

	if (walk->stack_type == STACK_TYPE_TASK)
		return false;
	if (sp - (unsigned long)task_stack_page(current) < THREAD_SIZE)
		begin_on_task(walk);
	else if (walk->stack_type != STACK_TYPE_IRQ && is_on(irq, sp))
		set_stack(walk, irq);
	else
		return false;
	return true;
}

enum step {
	STEP_DONE,		/* to the caller */
	STEP_REVEALED,		/* none, but the return address of this frame is known now */
	STEP_END,		/* the outermost frame */
	STEP_FAILED,
	STEP_ASK,		/* the unwinder has to be asked */
};

static void state_of(struct unwind_state *state, const struct walk *walk)
{
	*state = (struct unwind_state){
		.stack_info = { walk->stack_type, (unsigned long *)walk->begin, (unsigned long *)walk->end },
		.stack_mask = 1ul << walk->stack_type,
		.task = current,
		.ip = walk->ip,
		.sp = walk->sp,
		.bp = walk->bp,
		.signal = walk->key == walk->ip,
	};
}

/*
 * Find the return address that a trampoline's address has replaced: the unwinder does that when it
 * gets there from the callee. So ask it for the caller of the first instruction of a function, to
 * whose return address sp points.
 */
static enum step reveal(struct walk *walk)
{
	struct unwind_state state;

	state_of(&state, walk);
	state.ip = (unsigned long)unwind_next_frame;
	state.sp = walk->sp - sizeof(long);
	state.signal = true;
	if (!unwind_next_frame(&state) || state.error || state.regs || state.sp != walk->sp || state.ip == walk->ip)
		return STEP_FAILED;
	walk->ip = state.ip;
	walk->key = state.ip - 1;
	return STEP_REVEALED;
}

/*
 * Ask the unwinder for one frame. It handles cases without a rule, and frames on other stacks. Any
 * context.
 */
static noinline enum step ask_for_frame(struct walk *walk)
{
	struct unwind_state state;

	this_cpu_inc(counts.frames);
	if (walk->key != walk->ip && is_trampoline(walk->ip))
		return reveal(walk);
	/*
	 * Interrupted at its beginning. The unwinder finds its return address if it gets there from
	 * the registers.
	 */
	if (walk->ip == rethook_trampoline)
		return STEP_FAILED;
	/*
	 * Interrupted code may have its sp in a register (R10 if a function aligns its stack). Then
	 * the unwinder would warn about missing registers, except for a task that does not run: so
	 * ask about the made-up one first.
	 */
	if (walk->key == walk->ip && !ask_about(&state, walk->key, SP_1, BP_1) && state.error)
		return STEP_FAILED;
	state_of(&state, walk);
	if (!unwind_next_frame(&state))
		return state.error ? STEP_FAILED : STEP_END;
	if (state.error)
		return STEP_FAILED;
	if (state.regs && user_mode(state.regs))
		return STEP_END;
	if (state.regs && !state.full_regs)
		return STEP_FAILED;
	if (!on_stack(&state.stack_info, (void *)state.sp, sizeof(long)))
		return STEP_FAILED;
	walk->begin = (unsigned long)state.stack_info.begin;
	walk->end = (unsigned long)state.stack_info.end;
	walk->stack_type = state.stack_info.type;
	walk->ip = state.ip;
	walk->sp = state.sp;
	walk->bp = state.bp;
	walk->key = state.signal ? state.ip : state.ip - 1;
	return STEP_DONE;
}

/* Go to the code that was interrupted with the registers at @address. */
static enum step interrupted(struct walk *walk, unsigned long address)
{
	const struct pt_regs *regs = (const struct pt_regs *)address;
	unsigned long sp;

	if (address < walk->sp || address > walk->end - sizeof(*regs))
		return STEP_FAILED;
	/* Interrupted in user space, as in user_mode(). */
	if (load((unsigned long)&regs->cs) & 3)
		return STEP_END;
	sp = READ_ONCE_NOCHECK(regs->sp);
	if ((sp <= walk->sp || sp >= walk->end) && !switch_stack(walk, sp))
		return STEP_FAILED;
	walk->ip = READ_ONCE_NOCHECK(regs->ip);
	walk->bp = READ_ONCE_NOCHECK(regs->bp);
	walk->sp = sp;
	walk->key = walk->ip;
	return STEP_DONE;
}

/* Go to the caller by a rule other than a plain offset of sp. Any context. */
static noinline enum step step(struct walk *walk, u32 rule)
{
	unsigned long sp, at;

	switch (kind_of(rule)) {
	case RULE_SP:
		sp = walk->sp + sizeof(long) * sp_offset_of(rule);
		break;
	case RULE_BP:
		sp = walk->bp + sizeof(long) * sp_offset_of(rule);
		break;
	case RULE_SP_INDIRECT:
		if (walk->sp > walk->end - sizeof(long))
			return STEP_FAILED;
		sp = load(walk->sp) + sizeof(long) * sp_offset_of(rule);
		break;
	case RULE_BP_INDIRECT:
		at = walk->bp + sizeof(long) * sp_offset_of(rule);
		if (at < walk->sp || at > walk->end - sizeof(long))
			return STEP_FAILED;
		sp = load(at);
		break;
	case RULE_REGS:
		return interrupted(walk, walk->sp + sizeof(long) * sp_offset_of(rule));
	case RULE_END:
		return STEP_END;
	case RULE_ASK:
	default:
		return STEP_ASK;
	}
	if (sp < walk->sp + sizeof(long) || sp > walk->end) {
		/* The stack of an interrupt begins with a pointer to the stack before. */
		if (kind_of(rule) != RULE_SP_INDIRECT || !switch_stack(walk, sp - sizeof(long)))
			return STEP_FAILED;
		walk->sp = walk->begin;
		if (sp < walk->sp + sizeof(long))
			return STEP_FAILED;
	}
	if (bp_of(rule) != RULE_BP_SAME) {
		at = bp_of(rule) == RULE_BP_BY_SP ? sp : walk->bp;
		at += sizeof(long) * bp_offset_of(rule);
		if (at < walk->sp || at > walk->end - sizeof(long))
			return STEP_FAILED;
		walk->bp = load(at);
	}
	walk->ip = load(sp - sizeof(long));
	walk->sp = sp;
	walk->key = walk->ip - 1;
	return STEP_DONE;
}

/* Go to the caller by @rule, or ask the unwinder. */
static noinline enum step step_or_ask(struct walk *walk, u32 rule)
{
	enum step result = step(walk, rule);

	return result == STEP_ASK ? ask_for_frame(walk) : result;
}

/* See rhist_orc_walk(). */
static __always_inline int walk_by_rules(const struct rhist_frame *frame, unsigned long *entries, unsigned int n)
{
	unsigned long ip = frame->ip, sp = frame->sp, bp = frame->bp, key = ip, end;
	unsigned long *to = entries, *const last = entries + n, *revealed = NULL;
	enum step result;
	struct walk walk = { .sp = sp };

	begin_on_task(&walk);
	if (unlikely(sp - walk.begin >= THREAD_SIZE) && !find_stack(&walk))
		return -1;
	end = walk.end;
	do {
		u64 entry = READ_ONCE(rules[place_of(key)]);
		u32 rule = entry;

		if (unlikely(!is_key_of(entry, key)))
			rule = find_or_learn(key);
		if (likely(!(rule & RULE_OTHER))) {
			unsigned long caller = sp + sizeof(long) * (rule & RULE_OFFSET);

			if (unlikely(caller > end))
				return -1;
			if (rule & RULE_SAVED_BP)
				bp = load(sp + sizeof(long) * (rule >> 20));
			*to++ = ip;
			ip = load(caller - sizeof(long));
			key = ip - 1;
			sp = caller;
			continue;
		}
		walk.ip = ip;
		walk.sp = sp;
		walk.bp = bp;
		walk.key = key;
		result = step_or_ask(&walk, rule);
		if (result == STEP_FAILED)
			return -1;
		if (result == STEP_REVEALED) {
			/* Once is enough: the unwinder looks behind all trampolines. */
			if (revealed == to)
				return -1;
			revealed = to;
			ip = walk.ip;
			key = walk.key;
			continue;
		}
		/*
		 * Code with a rule is text. The stack ends before anything else, but not before its
		 * first frame.
		 */
		if (rule == RULE_UNKNOWN && to > entries && !is_text(ip))
			break;
		*to++ = ip;
		if (result == STEP_END)
			break;
		ip = walk.ip;
		sp = walk.sp;
		bp = walk.bp;
		key = walk.key;
		end = walk.end;
	} while (to < last);
	return to - entries;
}

/* Number of frames that are compared. */
#define CHECK_DEPTH	31

/* Number of walks until the next one that is compared. */
static DEFINE_PER_CPU(unsigned int, until_check);

/*
 * The results to compare, for each context that may interrupt another one. Not on the stack, of
 * which little may be left, and not in the per-CPU memory for variables of modules, of which all
 * modules together have 8 KiB (PERCPU_MODULE_RESERVE).
 */
struct two_walks {
	bool busy;
	unsigned long by_rules[CHECK_DEPTH], by_unwinder[CHECK_DEPTH];
};

struct walks_of_cpu {
	struct two_walks contexts[4];
};

static struct walks_of_cpu __percpu *walks_of_cpus;

/*
 * The first difference between rules and the unwinder: written once, by the CPU that set mode to
 * RHIST_ORC_WRONG, and then marked valid.
 */
static struct rhist_orc_stats first_difference;
static bool difference_is_valid;

/* Record that frame @nth, counted from 0, differs; behind the end of a stack addresses are 0. */
static void note_difference(unsigned int nth, const unsigned long *by_rules, const unsigned long *by_unwinder)
{
	if (cmpxchg(&mode, RHIST_ORC_ON, RHIST_ORC_WRONG) != RHIST_ORC_ON)
		return;
	first_difference = (struct rhist_orc_stats){
		.different = nth,
		.by_rules = by_rules[nth],
		.by_unwinder = by_unwinder[nth],
		.callee = nth ? by_rules[nth - 1] : 0,
	};
	smp_store_release(&difference_is_valid, true);
}

/* Walk both ways, if enough of the stack is left, and compare. */
static noinline void check(const struct rhist_frame *frame)
{
	struct two_walks *both = &this_cpu_ptr(walks_of_cpus)->contexts[interrupt_context_level()];
	unsigned int nth = 0;

	/* A function that the unwinder calls may have caused this hit within another check. */
	if (both->busy || !rhist_stack_suffices())
		return;
	both->busy = true;
	barrier();
	memset(both->by_rules, 0, sizeof(both->by_rules));
	memset(both->by_unwinder, 0, sizeof(both->by_unwinder));
	if (walk_by_rules(frame, both->by_rules, CHECK_DEPTH) >= 0) {
		this_cpu_inc(counts.checked);
		rhist_stack_unwind(frame, both->by_unwinder, CHECK_DEPTH);
		while (nth < CHECK_DEPTH && both->by_rules[nth] == both->by_unwinder[nth])
			nth++;
		if (nth < CHECK_DEPTH)
			note_difference(nth, both->by_rules, both->by_unwinder);
	}
	barrier();
	both->busy = false;
}

/*
 * Fill @entries with up to @n addresses, as rhist_stack_unwind() does. Returns their number, or -1
 * if that has to be called instead. Any context, with preemption off; @frame belongs to a function
 * of the running task that does not return meanwhile. @n must not be 0.
 */
int rhist_orc_walk(const struct rhist_frame *frame, unsigned long *entries, unsigned int n)
{
	int len;

	if (unlikely(READ_ONCE(mode) != RHIST_ORC_ON))
		return -1;
	/*
	 * Contexts that interrupt this may decrement it, too: then a walk is compared sooner or
	 * later than intended.
	 */
	if (unlikely(this_cpu_dec_return(until_check) == 0)) {
		this_cpu_write(until_check, rhist_parameters.stack_check);
		check(frame);
	}
	len = walk_by_rules(frame, entries, n);
	if (unlikely(len < 0))
		this_cpu_inc(counts.failed);
	return len;
}

/* Get statistics of walks. Task context. */
void rhist_orc_stats(struct rhist_orc_stats *stats)
{
	unsigned int cpu;

	*stats = smp_load_acquire(&difference_is_valid) ? first_difference : (struct rhist_orc_stats){};
	stats->mode = READ_ONCE(mode);
	for_each_possible_cpu(cpu) {
		const struct counts *one = per_cpu_ptr(&counts, cpu);

		stats->learned += READ_ONCE(one->learned);
		stats->frames += READ_ONCE(one->frames);
		stats->failed += READ_ONCE(one->failed);
		stats->checked += READ_ONCE(one->checked);
	}
}

/*
 * Prepare for walks by rules, if this kernel's unwinder answers as expected. Task context, sleeps.
 * If it fails, the unwinder walks all stacks.
 */
void rhist_orc_init(void)
{
	const char *const names[] = { "return_to_handler", "arch_rethook_trampoline" };
	unsigned long trampolines[ARRAY_SIZE(names)];
	unsigned int cpu;

	if (!rhist_parameters.stack_check)
		return;
	/* A missing trampoline replaces no return address. */
	if (!rhist_function_addresses(names, trampolines, ARRAY_SIZE(names)))
		return;
	graph_trampoline = trampolines[0];
	rethook_trampoline = trampolines[1];
	made_up_task = kzalloc(sizeof(*made_up_task), GFP_KERNEL);
	walks_of_cpus = alloc_percpu(struct walks_of_cpu);
	if (!made_up_task || !walks_of_cpus)
		goto free;
	make_up_stack();
	for (unsigned int i = 0; i < RULES; i++)
		rules[i] = EMPTY;
	/* A function's first instruction: sp points to the return address. */
	if (learn_rule((unsigned long)unwind_next_frame) != rule_of(RULE_SP, RULE_BP_SAME, 1, 0))
		goto free;
	if (register_module_notifier(&module_notifier))
		goto free;
	for_each_possible_cpu(cpu)
		per_cpu(until_check, cpu) = rhist_parameters.stack_check;
	WRITE_ONCE(mode, RHIST_ORC_ON);
	return;
free:
	free_percpu(walks_of_cpus);
	kfree(made_up_task);
	walks_of_cpus = NULL;
	made_up_task = NULL;
}

/* End walks by rules, after the last one. Task context, sleeps. */
void rhist_orc_exit(void)
{
	if (!made_up_task)
		return;
	unregister_module_notifier(&module_notifier);
	free_percpu(walks_of_cpus);
	kfree(made_up_task);
}

#else /* CONFIG_UNWINDER_ORC */

void rhist_orc_init(void)
{
}

void rhist_orc_exit(void)
{
}

void rhist_orc_stats(struct rhist_orc_stats *stats)
{
	*stats = (struct rhist_orc_stats){ .mode = RHIST_ORC_UNAVAILABLE };
}

int rhist_orc_walk(const struct rhist_frame *frame, unsigned long *entries, unsigned int n)
{
	return -1;
}

#endif
