/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Texts for a trigger file, made from the grammar of hist triggers: good ones, ones put together without regard for
 * what fits, and both with bytes and words deleted, doubled, swapped and put in. What is made depends on the state of
 * the random numbers only.
 */
#ifndef GRAMMAR_H
#define GRAMMAR_H

#include "tracing.h"

/* A text, which may hold any bytes, and one byte more for a NUL. */
struct text {
	size_t len;
	char bytes[5000];
};

#define TEXT_MAX (sizeof(((struct text *)0)->bytes) - 1)

/* The fields of an event, each list ending with NULL. */
struct fields {
	const char *const *numbers, *const *strings, *const *others;
};

static uint64_t random_state;

/* The same numbers for the same seed and index (splitmix64). */
static void seed_random(uint64_t seed, uint64_t index)
{
	random_state = seed * 0x9e3779b97f4a7c15 + index * 0xd1342543de82ef95 + 1;
}

static uint64_t random_bits(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static unsigned int below(unsigned int n)
{
	return random_bits() % n;
}

static bool percent(unsigned int chance)
{
	return below(100) < chance;
}

static void put_bytes(struct text *text, const char *bytes, size_t len)
{
	if (len > TEXT_MAX - text->len)
		len = TEXT_MAX - text->len;
	memmove(text->bytes + text->len, bytes, len);
	text->len += len;
	text->bytes[text->len] = 0;
}

__attribute__((format(printf, 2, 3)))
static void put(struct text *text, const char *format, ...)
{
	char piece[600];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(piece, sizeof(piece), format, args);
	va_end(args);
	put_bytes(text, piece, len < (int)sizeof(piece) ? (size_t)len : sizeof(piece) - 1);
}

#define PICK(array) ((array)[below(sizeof(array) / sizeof(*(array)))])

static const char *pick(const char *const *list)
{
	unsigned int count = 0;

	while (list[count])
		count++;
	return count ? list[below(count)] : "nosuch";
}

/* Numbers, most of which are good ones; some are on the edges of what C takes. */
static const char *number(bool wild)
{
	static const char *const good[] = {
		"0", "1", "2", "3", "4", "5", "7", "8", "10", "12", "16", "0x10", "017", "64", "100", "128", "255", "1000",
		"1024", "4096", "65536", "1048576", "1048577", "0x7fffffff", "0xffffffff", "4294967296",
		"9223372036854775807", "9223372036854775808", "18446744073709551615", "0xFFFFFFFFFFFFFFFF", "0x0", "00",
	};
	static const char *const bad[] = {
		"08", "0x", "1z", "18446744073709551616", "99999999999999999999999999", "0xffffffffffffffffff", "-1", "--1",
		"+1", "1.5", "1e3", "0b1", "1 ", " 1", "0x1g", "01777777777777777777777", "02000000000000000000000",
	};

	return wild && percent(30) ? PICK(bad) : PICK(good);
}

/* common_flags and common_preempt_count are asked for in a row only: they may change between C's record and ours. */
static const char *pseudo_field(void)
{
	static const char *const names[] = {
		"common_pid", "common_pid", "common_cpu", "cpu", "CPU", "common_comm", "comm", "COMM", "common_type", "hitcount",
		 "common_timestamp", "common_stacktrace", "stacktrace",
		"STACKTRACE",
	};

	return PICK(names);
}

/* A name that is, or is not, one of a field. */
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
		"stacktrace", "percentage", "graphs", "descending", "ascending", "HEX", "", "hexx", "log", "string",
		"buckets", "bucket", "bucketss=2", "buckets=", "ustring", "function", "\xc3\xa4",
	};

	if (percent(20))
		put(text, ".bucket%s=%s", percent(70) ? "s" : "", number(true));
	else
		put(text, ".%s", PICK(modifiers));
}

enum place { KEY, VALUE, OPERAND };

/* A field with a modifier that fits, if any. */
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
	/* what it is no use to ask of values */
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
		/* a minus inside would be the one that counts */
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

/* What follows the equals sign of keys or values. */
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

/* Where a word of a text begins that is not before `from`, and its end. */
static size_t word_at(const struct text *text, size_t from, size_t *end)
{
	static const char between[] = ":=,.+-*/()$ &|!<>~{}\"'";
	size_t start = from;

	while (start < text->len && text->bytes[start] && strchr(between, text->bytes[start]))
		start++;
	*end = start;
	while (*end < text->len && !(text->bytes[*end] && strchr(between, text->bytes[*end])))
		(*end)++;
	return start;
}

static void replace(struct text *text, size_t from, size_t to, const char *bytes, size_t len)
{
	struct text tail = { .len = 0 };

	put_bytes(&tail, text->bytes + to, text->len - to);
	text->len = from;
	put_bytes(text, bytes, len);
	put_bytes(text, tail.bytes, tail.len);
}

/* One change. */
static void mutate_once(struct text *text)
{
	static const char special[] = "\0\0\xff\x80\xc3 \t\n::==,,..$$(()){}+-*/&|!~<>\"'[]\\#%;0129axX_";
	size_t at = below(text->len + 1), to = at + below(4), end, other_end, word, other;
	char piece[TEXT_MAX + 1];

	if (to > text->len)
		to = text->len;
	switch (below(14)) {
	case 0: case 1:
		replace(text, at, to, "", 0);
		break;
	case 2: case 3: case 4: {
		char byte = special[below(sizeof(special) - 1)];

		replace(text, at, percent(50) ? at : to, &byte, 1);
		break;
	}
	case 5:
		memcpy(piece, text->bytes + at, to - at);
		replace(text, at, at, piece, to - at);
		break;
	case 6:
		if (text->len > 1) {
			size_t a = below(text->len), b = below(text->len);
			char byte = text->bytes[a];

			text->bytes[a] = text->bytes[b];
			text->bytes[b] = byte;
		}
		break;
	case 7: case 8:		/* a word goes, or comes twice */
		word = word_at(text, at, &end);
		memcpy(piece, text->bytes + word, end - word);
		if (percent(50))
			replace(text, word, end, "", 0);
		else
			replace(text, word, word, piece, end - word);
		break;
	case 9: case 10:	/* a word in the place of another one */
		word = word_at(text, at, &end);
		other = word_at(text, below(text->len + 1), &other_end);
		memcpy(piece, text->bytes + other, other_end - other);
		replace(text, word, end, piece, other_end - other);
		break;
	case 11:		/* a number, or a huge one, in the place of a word */
		word = word_at(text, at, &end);
		memset(piece, '9', 300);
		if (percent(20)) {
			replace(text, word, end, piece, 1 + below(300));
		} else {
			const char *digits = number(true);

			replace(text, word, end, digits, strlen(digits));
		}
		break;
	case 12:		/* a byte, or a piece, over and over, up to more than may be written */
		if (percent(15)) {
			size_t much = percent(50) ? below(600) : 3000 + below(1500);
			char byte = special[below(sizeof(special) - 1)];

			if (percent(50)) {
				memset(piece, byte, much);
			} else {
				static const char *const pieces[] = { "(", "-(", "!(", "pid+", "a,", "x=1,", "pid:", "$x,", "1&&", "))", "." };
				const char *repeated = PICK(pieces);

				for (size_t i = 0; i < much; i++)
					piece[i] = repeated[i % strlen(repeated)];
			}
			replace(text, at, at, piece, much);
		}
		break;
	case 13:		/* any bytes */
		to = 1 + below(8);
		for (size_t i = 0; i < to; i++)
			piece[i] = random_bits();
		replace(text, at, at, piece, to);
		break;
	}
}

static void mutate(struct text *text)
{
	for (unsigned int changes = 1 + below(3); changes; changes--)
		mutate_once(text);
}

#endif
