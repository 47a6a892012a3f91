/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Texts for a trigger file, made from the grammar of hist triggers: valid ones, ones whose parts
 * are combined at random, and both with bytes and words deleted, doubled, swapped and inserted. The
 * state of the random numbers alone determines the text.
 */
#ifndef GRAMMAR_H
#define GRAMMAR_H

#include "random.h"

/* The fields of an event, each list ending with NULL. */
struct fields {
	const char *const *numbers, *const *strings, *const *others;
};

/*
 * common_flags and common_preempt_count are only in a row: they may change between C's record and
 * ours.
 */
static const char *pseudo_field(void)
{
	static const char *const names[] = {
		"common_pid", "common_pid", "common_cpu", "cpu", "CPU", "common_comm", "comm", "COMM", "common_type", "hitcount",
		 "common_timestamp", "common_stacktrace", "stacktrace",
		"STACKTRACE",
	};

	return PICK(names);
}

/* A name of a field, or of none. */
static const char *any_field(const struct fields *fields)
{
	static const char *const odd[] = {
		"nosuch", "", " pid", "pid ", "PID", "x.y.pid", "x.y.nosuch", "sched.sched_switch.next_pid", "$x", "$", "$$",
		"x.y.$z", "syscalls.sys_enter_getpgid.$x", "synthetic.rhist_c.$a", "5", "0x10", "\"pid\"", "common_timestamp",
		"\xff", "common_", "if", "hist", "keys", "...", ".", "x.y", "a.b.c.d", "$x.hex", "-", "common_pid.b.hex",
	};

	switch (below(10)) {
	case 0: case 1: case 2: case 3:
		return pick(fields->numbers);
	case 4: case 5:
		return pick(fields->strings);
	case 6:
		return pick(fields->others);
	case 7:
		return PICK(odd);
	default:
		return pseudo_field();
	}
}

static void any_modifier(struct text *text)
{
	static const char *const modifiers[] = {
		"hex", "sym", "sym-offset", "symXoffset", "execname", "syscall", "log2", "usecs", "percent", "graph",
		"stacktrace", "percentage", "graphs", "descending", "ascending", "HEX", "", "hexx", "log", "strings",
		"buckets", "bucket", "bucketss=2", "buckets=", "ustring", "function", "\xc3\xa4",
	};

	if (percent(20))
		put(text, ".bucket%s=%s", percent(70) ? "s" : "", number(true));
	else
		put(text, ".%s", PICK(modifiers));
}

enum place { KEY, VALUE, OPERAND };

/* A field with a suitable modifier, if any. */
static void good_field(struct text *text, const struct fields *fields, enum place place)
{
	static const char *const for_keys[] = {
		"hex", "sym", "sym-offset", "syscall", "log2", "usecs", "log2", "hex",
	};
	static const char *const for_values[] = { "hex", "usecs", "percent", "graph", "hex" };
	const char *name = percent(70) ? pick(fields->numbers) : pseudo_field();
	bool computed;

	if (place == KEY && percent(25)) {
		put(text, "%s", pick(fields->strings));
		return;
	}
	/* pointless in values */
	computed = !strstr(name, "stacktrace") && !strstr(name, "STACKTRACE") && strcasecmp(name, "comm") &&
		   strcmp(name, "common_comm") && strcmp(name, "hitcount");
	if (!computed && place != KEY)
		name = pick(fields->numbers);
	if (percent(5))
		put(text, "x.y.");
	put(text, "%s", name);
	if ((!computed && place == KEY) || percent(55))
		return;
	if (!strcmp(name, "common_pid") && percent(50))
		put(text, ".execname");
	else if (place == VALUE)
		put(text, ".%s", PICK(for_values));
	else if (percent(30))
		put(text, ".buckets=%s", PICK(((const char *const[]){ "1", "2", "7", "10", "100", "0x10", "4294967296" })));
	else
		put(text, ".%s", PICK(for_keys));
}

/* Operands and operators; `wild` ones may be of any kind and any number. */
static void expression(struct text *text, const struct fields *fields, bool wild)
{
	unsigned int operators = wild ? 1 + below(5) : 1 + below(3);
	bool minus = percent(15);

	if (minus)
		put(text, wild && percent(30) ? "-" : "-(");
	for (unsigned int i = 0; i <= operators; i++) {
		/* C would take a minus inside for the operator of the whole expression. */
		if (i)
			put(text, "%c", minus && !wild ? "+*/"[below(3)] : "+-*/"[below(4)]);
		if (percent(35))
			put(text, "%s", number(wild));
		else if (wild && percent(40))
			put(text, "%s", any_field(fields));
		else
			good_field(text, fields, OPERAND);
		if (wild && percent(15))
			any_modifier(text);
		if (wild && percent(5))
			put(text, "-(%s)", pick(fields->numbers));
	}
	if (minus)
		put(text, wild && percent(30) ? "" : ")");
}

static void atom(struct text *text, const struct fields *fields, enum place place, bool wild)
{
	if (percent(15)) {
		expression(text, fields, wild);
	} else if (percent(4)) {
		put(text, "%s", number(wild));
	} else if (wild && percent(40)) {
		put(text, "%s", any_field(fields));
		if (percent(35))
			any_modifier(text);
	} else {
		good_field(text, fields, place);
	}
}

/* The list after the equals sign of keys or values. */
static void list(struct text *text, const struct fields *fields, enum place place, bool wild)
{
	unsigned int count = 1 + below(place == KEY ? 3 : 2) + (wild && percent(15));

	for (unsigned int i = 0; i < count; i++) {
		if (i)
			put(text, ",");
		if (place == VALUE && percent(20))
			put(text, "hitcount%s", percent(60) ? "" : PICK(((const char *const[]){ ".percent", ".graph", ".hex" })));
		else
			atom(text, fields, place, wild);
	}
}

static void assignments(struct text *text, const struct fields *fields, bool wild)
{
	unsigned int count = percent(3) ? 14 + below(5) : 1 + below(2);

	for (unsigned int i = 0; i < count; i++) {
		put(text, "%s%s%u=", i ? "," : "", percent(50) ? "v" : "x_", i);
		if (wild && percent(10))
			put(text, "%s", PICK(((const char *const[]){ "", "=", "1,y", "$x", "$v0", "v0" })));
		else if (count > 3)
			put(text, "%u", i);
		else
			atom(text, fields, OPERAND, wild);
	}
}

static void action(struct text *text, const struct fields *fields, bool wild)
{
	static const char *const handlers[] = {
		"onmatch(sched.sched_switch)", "onmatch(syscalls.sys_enter_getpgid)", "onmax($v0)", "onchange($v0)", "onmax($x)",
	};
	static const char *const odd_handlers[] = {
		"onmatch()", "onmatch(", "onmatch(x)", "onmatch(x.y)", "onmatch(sched.sched_switch", "onmax()", "onmax(v0)",
		"onmax($nosuch)", "onchange(", "onchange($v0", "onmatch(sched.nosuch)", "onmatch(.)", "onmatch(x.)", "onmatch",
		"onmax", "onmatch(sched.sched_switch)x", "onmatch(ftrace.print)", "onmatch(sched.sched_switch.x)",
	};
	static const char *const words[] = { "save", "trace", "snapshot", "rhist_c", "saved", "traces", "snapshots" };
	static const char *const odd_words[] = { "", "nosuch", "Save", "save ", "rhist_nosuch", "\xff", "tracer" };
	const char *word = wild && percent(30) ? PICK(odd_words) : PICK(words);
	unsigned int count = percent(3) ? 60 + below(8) : below(4);

	put(text, "%s.%s(", wild && percent(40) ? PICK(odd_handlers) : PICK(handlers), word);
	if (!strncmp(word, "trace", 5))
		put(text, "%s%s", PICK(((const char *const[]){ "rhist_c", "rhist_nosuch", "x", "" })), count ? "," : "");
	for (unsigned int i = 0; i < count && strncmp(word, "snapshot", 8); i++) {
		put(text, "%s", i ? PICK(((const char *const[]){ ",", ", ", " ,", "," })) : "");
		if (percent(30))
			put(text, "$%s", PICK(((const char *const[]){ "v0", "x", "nosuch", "" })));
		else if (wild && percent(30))
			put(text, "%s", any_field(fields));
		else
			put(text, "%s", pick(percent(60) ? fields->numbers : fields->strings));
	}
	put(text, "%s", wild && percent(15) ? PICK(((const char *const[]){ "", "))", ")x", ",)", ").x()" })) : ")");
}

static void predicate(struct text *text, const struct fields *fields, bool wild)
{
	static const char *const comparisons[] = { "==", "!=", "<", "<=", ">", ">=", "&" };
	static const char *const operators[] = {
		"==", "!=", "~", "<", "<=", ">", ">=", "&", "=", "!", "!~", "===", "<>", "&&", "|", "^", "", "==!", "<<",
	};
	static const char *const strings[] = {
		"", "a", "abc", "abc*", "*c", "*b*", "a*c", "a?c", "[a-c]*", "!abc", "!a*", "1*", "*", "**", "/nosuch/*", "*5*",
		"\\*", "[", "[]", "sidebyside", "side*", "x y", "(", "if", "a\\",
	};
	static const char *const cpus[] = {
		"0", "0-1", "1,3", "0-N", "all", "N", "", "x", "9-1", "0-3:1/2", "4096", "99999999999", "0,", "0 1", "0-3:5/2",
	};
	static const char *const odd_values[] = {
		"x", "'x", "\"x", "x'", "CPUS{0", "CPUS{", "CPUS0}", "CPUS", "{0}", "12345678901234567890123456", "'", "''x",
		"schedule", "0x", "-", "", "1 2", "\xff", "1)", "(1", "\"a'", "'a\"", "nosuch_function", "0xffffffff81000000",
	};
	const char *blank = percent(80) ? " " : PICK(((const char *const[]){ "", "  ", "\t", " \n" }));
	unsigned int kind = wild ? below(8) : below(4);
	const char *quote = percent(80) ? "\"" : "'";

	if (kind == 0 || kind == 1) {
		put(text, "%s%s%s%s%s%s", percent(80) ? pick(fields->numbers) : "common_pid", blank, PICK(comparisons), blank,
		    percent(10) ? "-" : "", number(wild));
	} else if (kind == 2) {
		put(text, "%s%s%s%s%s%s%s", percent(60) ? pick(fields->strings) : percent(50) ? "comm" : "COMM", blank,
		    PICK(((const char *const[]){ "==", "!=", "~", "~" })), blank, quote, PICK(strings), quote);
	} else if (kind == 3) {
		put(text, "%s%s%s%sCPUS{%s}", PICK(((const char *const[]){ "cpu", "CPU", "common_cpu", "common_pid" })), blank,
		    PICK(((const char *const[]){ "==", "!=", "&" })), blank, wild ? PICK(cpus) : PICK(((const char *const[]){ "0", "0-1", "1-2" })));
	} else {
		put(text, "%s%s%s%s%s", any_field(fields), percent(10) ? ".function" : percent(10) ? ".ustring" : "", blank,
		    PICK(operators), blank);
		switch (below(5)) {
		case 0:
			put(text, "%s", number(true));
			break;
		case 1:
			put(text, "%s%s%s", quote, PICK(strings), quote);
			break;
		case 2:
			put(text, "CPUS{%s}", PICK(cpus));
			break;
		case 3:
			put(text, "%s", pick(fields->numbers));
			break;
		default:
			put(text, "%s", PICK(odd_values));
		}
	}
}

static void condition(struct text *text, const struct fields *fields, bool wild, unsigned int depth)
{
	unsigned int terms = 1 + (percent(35) ? 1 + below(2) : 0);

	for (unsigned int i = 0; i < terms; i++) {
		if (i)
			put(text, "%s", PICK(((const char *const[]){ " && ", " || ", "&&", "||" })));
		if (percent(10))
			put(text, "!");
		if (depth < 4 && percent(20)) {
			put(text, "(");
			condition(text, fields, wild, depth + 1);
			put(text, ")");
		} else {
			predicate(text, fields, wild && percent(60));
		}
	}
}

/* The display name of the field that begins at `from`: up to a modifier or the end of it. */
static void put_name(struct text *text, const char *from)
{
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(from, ".,"), from);
	put(text, "%s", name);
}

static void sort_keys(struct text *text, const char *keys, const char *values, bool wild)
{
	unsigned int count = 1 + percent(50) + (wild && percent(15));

	for (unsigned int i = 0; i < count; i++) {
		const char *from = percent(70) ? keys : values;
		const char *second = strchr(from, ',');

		put(text, "%s", i ? "," : "");
		if (wild && percent(25))
			put(text, "%s", PICK(((const char *const[]){ "nosuch", "", "common_pid", "hitcount", "pid", "comm", "$x" })));
		else if (!*from || percent(25))
			put(text, "hitcount");
		else
			put_name(text, second && percent(50) ? second + 1 : from);
		if (percent(40))
			put(text, ".%s", wild && percent(20) ? "up" : percent(70) ? "descending" : "ascending");
	}
}

/* A whole trigger. */
static void hist(struct text *text, const struct fields *fields, bool wild)
{
	static const char *const flags[] = { "nohitcount", "NOHC", "pause", "cont", "continue", "clear" };
	static const char *const odd_tokens[] = {
		"", "x", "size=", "size=x", "size=1", "size=64", "size=131073", "size=0x80", "size=18446744073709551616", "size=99",
		"size=-1", "sort=", "sort=,", "keys=", "vals=", "vals=hitcount", "values=hitcount", "val=hitcount,hitcount",
		"name=", "clock=", "clock=nosuch", "clock= mono ", "x=", "=", "=x", "onmatch", "onmax", "keys=nosuch", "Pause",
		"key=pid", "sizes=128", " pause", "pause ", "nohitcount=1", "keys=common_cpu", "size=128,256", "if", "=,=",
		"size=..", "expire", "expire(", "expire(0)", "full", "full()", "full(x)",
	};
	struct text tokens[12], keys = { 0 }, values = { 0 };
	unsigned int count = 0;

	list(&keys, fields, KEY, wild);
	if (percent(40))
		list(&values, fields, VALUE, wild);
	memset(tokens, 0, sizeof(tokens));
	put(&tokens[count++], "%s%.*s", wild && percent(3) ? "key=" : "keys=", 500, keys.bytes);
	if (values.len)
		put(&tokens[count++], "%s=%.*s", PICK(((const char *const[]){ "vals", "vals", "values", "val" })), 500, values.bytes);
	if (percent(90))
		put(&tokens[count++], "size=%s", percent(90) ? "128" : PICK(((const char *const[]){ "65", "129", "0x100", "0400", "512" })));
	if (percent(45)) {
		put(&tokens[count], "sort=");
		sort_keys(&tokens[count++], keys.bytes, values.bytes, wild);
	}
	if (percent(wild ? 25 : 8))
		put(&tokens[count++], "%s", PICK(flags));
	if (percent(6))
		put(&tokens[count++], "name=rhist_%c", "ab"[below(2)]);
	if (percent(4))
		put(&tokens[count++], "clock=%s", PICK(((const char *const[]){ "mono", "local", "boot", "global", "counter", "nosuch" })));
	if (percent(wild ? 20 : 6))
		assignments(&tokens[count++], fields, wild);
	if (percent(wild ? 20 : 4))
		action(&tokens[count++], fields, wild);
	if (wild && percent(25))
		put(&tokens[count++], "%s", PICK(odd_tokens));
	/* in any order */
	for (unsigned int i = count; percent(50) && i > 1; i--) {
		unsigned int other = below(i);
		struct text swapped = tokens[i - 1];

		tokens[i - 1] = tokens[other];
		tokens[other] = swapped;
	}
	put(text, "%s", wild && percent(10) ? PICK(((const char *const[]){ "hist ", "hist", "Hist:", " hist:", "hist::", "hist: ", "!hist:" })) : "hist:");
	for (unsigned int i = 0; i < count; i++) {
		put(text, "%s", i ? ":" : "");
		put_bytes(text, tokens[i].bytes, tokens[i].len);
	}
	if (percent(30)) {
		put(text, "%s", wild && percent(15) ? PICK(((const char *const[]){ " if", "if ", " IF ", "\tif\t", "  if  ", " if if ", " ifx " })) : " if ");
		condition(text, fields, wild, 0);
	}
}

#endif
