// SPDX-License-Identifier: GPL-2.0
/*
 * Compares the rules of rust/stack/orc.c, which is compiled into this, with the tables of the
 * kernel's unwinder.
 *
 * The unwinder is a black box to orc.c, which sees only the results for a made-up stack. Here the
 * tables are read, and the right rule of each address is derived from them. So two ways lead to the
 * same rule, which have nothing in common but its format.
 *
 * The kernel exports none of these tables, so the addresses are parameters, by the names that they
 * have in /proc/kallsyms. (Calling kallsyms_lookup_name() would not work: with IBT or CFI, the
 * kernel does not let itself be called at just any function.) Other parameters are results, each of
 * which is made when it is read:
 *
 *	of_kernel	at each address where an entry of the kernel's own table begins
 *	of_calls	at the return address of each direct call in the kernel's text; and of other
 *			bytes that look like one, which does no harm, since each byte of text has an
 *			entry
 *	of_modules	at each address where an entry of a loaded module begins
 *	walks		how often orc_test_walk() was called, and with which result
 *	survivors	rules of a module that are left when it is forgotten while another CPU keeps
 *			such rules
 *	beyond		entries that are written beyond the end of an array of one, by the unwinder
 *			and by rules
 */
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sprintf.h>
#include <asm/orc_types.h>
#include <asm/text-patching.h>

/* rhist has the same functions, which does no harm, since neither module exports them. */
#include "stack/orc.c"
#include "stack/stack.c"
#include "symbols.c"

#include "orc_test.h"

/* rust/stack/orc.c does not compare this module's walks. */
struct rhist_parameters rhist_parameters = { .stack_check = UINT_MAX };

static unsigned long stext, etext, sinittext, einittext;
static unsigned long start_ip, stop_ip, start_orc, list_of_modules, mutex_of_modules;
module_param_named(_stext, stext, ulong, 0);
module_param_named(_etext, etext, ulong, 0);
module_param_named(_sinittext, sinittext, ulong, 0);
module_param_named(_einittext, einittext, ulong, 0);
module_param_named(__start_orc_unwind_ip, start_ip, ulong, 0);
module_param_named(__stop_orc_unwind_ip, stop_ip, ulong, 0);
module_param_named(__start_orc_unwind, start_orc, ulong, 0);
module_param_named(modules, list_of_modules, ulong, 0);
module_param_named(module_mutex, mutex_of_modules, ulong, 0);

/* A table: sorted by addresses, each relative to its own place. */
struct table {
	const int *ips;
	const struct orc_entry *entries;
	unsigned int n;
};

static struct table table_of_kernel(void)
{
	const int *ips = (const int *)start_ip;

	return (struct table){ ips, (const struct orc_entry *)start_orc, (const int *)stop_ip - ips };
}

static unsigned long address_in(const struct table *table, unsigned int nth)
{
	return (unsigned long)&table->ips[nth] + table->ips[nth];
}

/* Returns the entry for code at @key: the last one that begins at or before it. */
static const struct orc_entry *entry_of(const struct table *table, unsigned long key)
{
	unsigned int begin = 0, end = table->n;

	while (begin < end) {
		unsigned int middle = begin + (end - begin) / 2;

		if (address_in(table, middle) <= key)
			begin = middle + 1;
		else
			end = middle;
	}
	return begin ? &table->entries[begin - 1] : NULL;
}

/* Returns @entry as a rule; RULE_UNKNOWN if a rule cannot express it. */
static u32 expected_of_call(const struct orc_entry *entry)
{
	static const u8 kinds[ORC_REG_MAX + 1] = {
		[0 ... ORC_REG_MAX] = RULE_ASK,
		[ORC_REG_SP] = RULE_SP,
		[ORC_REG_BP] = RULE_BP,
		[ORC_REG_SP_INDIRECT] = RULE_SP_INDIRECT,
		[ORC_REG_BP_INDIRECT] = RULE_BP_INDIRECT,
	};
	long sp_offset = entry->sp_offset / 8, bp_offset = entry->bp_offset / 8;
	enum rule_kind kind = kinds[entry->sp_reg];
	enum rule_bp bp;

	switch (entry->bp_reg) {
	case ORC_REG_UNDEFINED:
		bp = RULE_BP_SAME;
		bp_offset = 0;
		break;
	case ORC_REG_PREV_SP:
		bp = RULE_BP_BY_SP;
		break;
	case ORC_REG_BP:
		bp = RULE_BP_BY_BP;
		break;
	default:
		return RULE_UNKNOWN;
	}
	if (entry->signal || kind == RULE_ASK)
		return RULE_UNKNOWN;
	if (kind == RULE_SP && sp_offset <= 0)
		return RULE_UNKNOWN;
	/* It has to be saved within the frame. */
	if (kind == RULE_SP && bp == RULE_BP_BY_SP && (bp_offset >= 0 || sp_offset + bp_offset < 0))
		return RULE_UNKNOWN;
	return rule_of(kind, bp, sp_offset, bp_offset);
}

static u32 expected_of(const struct orc_entry *entry)
{
	if (!entry || entry->sp_offset % 8 || entry->bp_offset % 8)
		return RULE_UNKNOWN;
	/* A rule has 12 bits for each offset, in words. */
	if (entry->sp_offset < 8 * -2048 || entry->sp_offset > 8 * 2047 ||
	    entry->bp_offset < 8 * -2048 || entry->bp_offset > 8 * 2047)
		return RULE_UNKNOWN;
	switch (entry->type) {
	case ORC_TYPE_END_OF_STACK:
		return rule_of(RULE_END, RULE_BP_SAME, 0, 0);
	case ORC_TYPE_CALL:
		return expected_of_call(entry);
	case ORC_TYPE_REGS:
		if (entry->sp_reg != ORC_REG_SP || entry->bp_reg != ORC_REG_UNDEFINED || !entry->signal)
			return RULE_UNKNOWN;
		return rule_of(RULE_REGS, RULE_BP_SAME, entry->sp_offset / 8, 0);
	default:
		return RULE_UNKNOWN;
	}
}

#define KINDS	(RULE_ASK + 1)

static const char *const names[KINDS] = {
	[RULE_SP] = "sp",
	[RULE_BP] = "bp",
	[RULE_SP_INDIRECT] = "sp_indirect",
	[RULE_BP_INDIRECT] = "bp_indirect",
	[RULE_REGS] = "regs",
	[RULE_END] = "end",
	[RULE_ASK] = "none",
};

struct difference {
	unsigned long key;
	u32 rule, expected;
};

struct comparison {
	/* asked: the rule is missing although one could express the table's entry. */
	unsigned long compared, equal, wrong, asked;
	/* Equal ones, by kind. */
	unsigned long kinds[KINDS];
	struct difference first_wrong, first_asked;
};

/* Returns the rule for code at @key, as in a walk. */
static u32 rule_at(unsigned long key)
{
	u64 entry = READ_ONCE(rules[place_of(key)]);

	return is_key_of(entry, key) ? entry : find_or_learn(key);
}

static void compare(struct comparison *comparison, unsigned long key, u32 expected)
{
	const u32 rule = rule_at(key);

	comparison->compared++;
	/* The second lookup comes from the cache. */
	if (rule_at(key) == rule && rule == expected) {
		comparison->equal++;
		comparison->kinds[kind_of(rule)]++;
	} else if (rule == RULE_UNKNOWN) {
		if (!comparison->asked++)
			comparison->first_asked = (struct difference){ key, rule, expected };
	} else if (!comparison->wrong++) {
		comparison->first_wrong = (struct difference){ key, rule, expected };
	}
	if (comparison->compared % 256 == 0)
		cond_resched();
}

static int show_difference(char *to, const char *what, const struct difference *difference)
{
	if (!difference->key)
		return 0;
	return sprintf(to, "first %s: %pS %#lx: rule %#x, by the table %#x\n", what, (void *)difference->key, difference->key,
		       difference->rule, difference->expected);
}

static int show(char *to, const struct comparison *comparison)
{
	int len = sprintf(to, "compared: %lu\nequal: %lu\nwrong: %lu\nasked: %lu\n", comparison->compared, comparison->equal,
			  comparison->wrong, comparison->asked);

	for (int kind = 0; kind < KINDS; kind++)
		len += sprintf(to + len, "%s: %lu\n", names[kind], comparison->kinds[kind]);
	len += show_difference(to + len, "wrong", &comparison->first_wrong);
	len += show_difference(to + len, "asked", &comparison->first_asked);
	return len;
}

static int of_kernel(char *to, const struct kernel_param *param)
{
	const struct table table = table_of_kernel();
	struct comparison comparison = {};

	for (unsigned int i = 0; i < table.n; i++) {
		unsigned long key = address_in(&table, i);
		/*
		 * The unwinder uses this table only here. Text of init is freed by now, but its
		 * addresses are not reused.
		 */
		bool there = (key >= stext && key < etext) || (key >= sinittext && key < einittext);

		compare(&comparison, key, there ? expected_of(entry_of(&table, key)) : RULE_UNKNOWN);
	}
	return show(to, &comparison);
}

static int of_calls(char *to, const struct kernel_param *param)
{
	const struct table table = table_of_kernel();
	struct comparison comparison = {};

	for (unsigned long at = stext; at + CALL_INSN_SIZE < etext; at++) {
		unsigned long next = at + CALL_INSN_SIZE, called;

		if (at % PAGE_SIZE == 0)
			cond_resched();
		if (*(const u8 *)at != CALL_INSN_OPCODE)
			continue;
		called = next + *(const s32 *)(at + 1);
		if (called < stext || called >= etext)
			continue;
		/* For a caller, the unwinder looks up the byte before the return address. */
		compare(&comparison, next - 1, expected_of(entry_of(&table, next - 1)));
	}
	return show(to, &comparison);
}

static void compare_module(struct comparison *comparison, const struct module *module)
{
	const struct table table = { module->arch.orc_unwind_ip, module->arch.orc_unwind, module->arch.num_orcs };

	for (unsigned int i = 0; i < table.n; i++) {
		unsigned long key = address_in(&table, i);

		/* Another module may be at the place of its init. */
		if (within_module_core(key, module))
			compare(comparison, key, expected_of(entry_of(&table, key)));
	}
}

static int of_modules(char *to, const struct kernel_param *param)
{
	struct comparison comparison = {};
	struct module *module;

	/* Modules stay loaded under this lock, with their tables. */
	guard(mutex)((struct mutex *)mutex_of_modules);
	list_for_each_entry(module, (struct list_head *)list_of_modules, list)
		if (module->state == MODULE_STATE_LIVE)
			compare_module(&comparison, module);
	return show(to, &comparison);
}

#define DEPTH	31

/* Calls do not overlap. */
static unsigned long walks, different;
/* Walks without a result by rules, and frames that the unwinder was asked for. */
static unsigned long failed, frames;
/* Calls that reported their place, and those with the same place as the one before. */
static unsigned long calls, at_same_place;
static const void *last_function;

/*
 * Walks the stack by rules and by the unwinder, and compares. If @function is set, counts the calls
 * from the same place as the last one. Task context.
 */
void orc_test_walk(const void *function)
{
	unsigned long by_rules[DEPTH] = {}, by_unwinder[DEPTH] = {};
	struct rhist_frame frame;
	u64 asked;

	if (function) {
		calls++;
		at_same_place += function == last_function;
		last_function = function;
	}
	guard(preempt)();
	rhist_frame_of_caller(&frame);
	asked = this_cpu_read(counts.frames);
	walks++;
	if (walk_by_rules(&frame, by_rules, DEPTH) > 0) {
		rhist_stack_unwind(&frame, by_unwinder, DEPTH);
		different += !!memcmp(by_rules, by_unwinder, sizeof(by_rules));
	} else {
		failed++;
	}
	frames += this_cpu_read(counts.frames) - asked;
}
EXPORT_SYMBOL_GPL(orc_test_walk);

/* Addresses of modules whose rules share a place in the cache, so that one replaces the other. */
#define ONE	MODULES_VADDR
#define OTHER	(MODULES_VADDR + RULES)

/* True while code at these addresses runs. */
static bool runs;

/* Keeps rules in the cache as long as the code runs. */
static int keep_rules(void *unused)
{
	while (!kthread_should_stop()) {
		scoped_guard(preempt) {
			if (READ_ONCE(runs)) {
				keep(ONE, 1);
				keep(OTHER, 1);
			}
		}
		cond_resched();
	}
	return 0;
}

#define ROUNDS	300

static int survivors(char *to, const struct kernel_param *param)
{
	struct task_struct *keeper = kthread_run(keep_rules, NULL, "orc_test");
	unsigned long kept = 0, left = 0;

	if (IS_ERR(keeper))
		return PTR_ERR(keeper);
	for (int round = 0; round < ROUNDS; round++) {
		WRITE_ONCE(runs, true);
		while (!is_of_module(READ_ONCE(rules[place_of(ONE) ^ 1])))
			cond_resched();
		kept++;
		udelay(round % 7);
		WRITE_ONCE(runs, false);
		forget_modules();
		for (unsigned int i = 0; i < RULES; i++) {
			unsigned long key = (s64)READ_ONCE(rules[i]) >> 32;

			left += key == ONE || key == OTHER;
		}
	}
	kthread_stop(keeper);
	return sprintf(to, "kept: %lu\nleft: %lu\n", kept, left);
}

static int beyond(char *to, const struct kernel_param *param)
{
	unsigned long by_rules[2] = {}, by_unwinder[2] = {};
	struct rhist_frame frame;

	guard(preempt)();
	rhist_frame_of_caller(&frame);
	return sprintf(to, "entries: %d %u\nbeyond: %d\n", walk_by_rules(&frame, by_rules, 1),
		       rhist_stack_unwind(&frame, by_unwinder, 1), !!by_rules[1] + !!by_unwinder[1]);
}

static int show_walks(char *to, const struct kernel_param *param)
{
	return sprintf(to, "walks: %lu\ndifferent: %lu\nfailed: %lu\nframes: %lu\ncalls: %lu\nplaces: %lu\n", walks, different,
		       failed, frames, calls, at_same_place);
}

static const struct kernel_param_ops of_kernel_ops = { .get = of_kernel };
static const struct kernel_param_ops of_calls_ops = { .get = of_calls };
static const struct kernel_param_ops of_modules_ops = { .get = of_modules };
static const struct kernel_param_ops walks_ops = { .get = show_walks };
static const struct kernel_param_ops survivors_ops = { .get = survivors };
static const struct kernel_param_ops beyond_ops = { .get = beyond };
module_param_cb(of_kernel, &of_kernel_ops, NULL, 0400);
module_param_cb(of_calls, &of_calls_ops, NULL, 0400);
module_param_cb(of_modules, &of_modules_ops, NULL, 0400);
module_param_cb(walks, &walks_ops, NULL, 0400);
module_param_cb(survivors, &survivors_ops, NULL, 0400);
module_param_cb(beyond, &beyond_ops, NULL, 0400);

static int __init orc_test_init(void)
{
	if (!stext || !etext || !sinittext || !einittext || !start_ip || !stop_ip || !start_orc || !list_of_modules ||
	    !mutex_of_modules)
		return -EINVAL;
	rhist_orc_init();
	return mode == RHIST_ORC_ON ? 0 : -ENODEV;
}
module_init(orc_test_init);

static void __exit orc_test_exit(void)
{
	rhist_orc_exit();
}
module_exit(orc_test_exit);

MODULE_DESCRIPTION("Compares the rules by which stacks are walked with the kernel's tables");
MODULE_LICENSE("GPL");
