/* SPDX-License-Identifier: GPL-2.0 */
/* Known differences between the kernel's hist triggers and ours: all of them, with the reasons. */
#ifndef DIFFERENCES_H
#define DIFFERENCES_H

#include "ceilings.h"
#include "errorlog.h"
#include "grammar.h"

/* One side's errno for a command, and its files after that. */
struct answer {
	int error;			/* 0, or a negative errno */
	char *log;			/* the entries that it made, without the times */
	char *lines, *hist, *debug;	/* the files of the events; NULL: not read, or not there */
};

/* Both answers to a command, and the commands that led there. */
struct question {
	const char *event;
	const struct text *text;	/* the command */
	/* all commands so far, one a line, up to the first NUL of each */
	const char *said;
	const char *before;		/* the same without the filters */
	struct answer c, ours;
};

static bool logged(const struct answer *answer, const char *text)
{
	return answer->log && strstr(answer->log, text);
}

static bool refused_as(const struct answer *answer, const char *text)
{
	return answer->error && logged(answer, text);
}

/* Where the filter of a command begins, or its end. */
static const char *filter_of(const char *text)
{
	for (const char *filter = text; (filter = strstr(filter, "if")); filter += 2)
		if (filter > text && isspace((unsigned char)filter[-1]) && isspace((unsigned char)filter[2]))
			return filter;
	return text + strlen(text);
}

/* Is there a digit behind this word? */
static bool number_behind(const char *text, const char *word)
{
	while ((text = strstr(text, word))) {
		text += strlen(word);
		if (isdigit((unsigned char)*text))
			return true;
	}
	return false;
}

static bool bad_size(const struct question *q)
{
	const char *said = q->before;

	while ((said = strstr(said, "size="))) {
		unsigned long long size = strtoull(said += strlen("size="), NULL, 0);

		if (!size || size > 1ull << 63)
			return true;
	}
	return false;
}

static bool nameless(const struct question *q)
{
	const char *said = q->before;

	return strstr(said, "hitcount.log2") || strstr(said, "hitcount.bucket") || strcasestr(said, "stacktrace.log2") ||
	       strcasestr(said, "stacktrace.bucket");
}

/* Returns true for a width, an operator, or a constant as a key or a value. */
static bool not_compared_in_c(const char *before)
{
	static const char *const words[] = { "keys=", "key=", "vals=", "values=", "val=", "," };

	for (unsigned int i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (number_behind(before, words[i]))
			return true;
	return strstr(before, ".bucket") || strpbrk(before, "+-*/");
}

static bool compared_more(const struct question *q)
{
	/* To us these are two triggers; to C they are the same. */
	return (refused_as(&q->c, "already exists") || !q->c.error) && not_compared_in_c(q->before) &&
	       (!q->ours.error || refused_as(&q->ours, "nonexistent") || refused_as(&q->ours, "doesn't match existing named"));
}

static bool other_names(const struct question *q)
{
	return (!q->c.error || refused_as(&q->c, "nonexistent")) && (!q->ours.error || refused_as(&q->ours, "already exists")) &&
	       (strstr(q->said, "cpu") || strstr(q->said, "CPU") || strcasestr(q->said, "comm"));
}

static bool string_computed(const struct question *q)
{
	return refused_as(&q->ours, "String used as a value") ||
	       (refused_as(&q->ours, "Invalid field modifier") && (strstr(q->before, ".log2") || strstr(q->before, ".bucket")));
}

static bool seventeen(const struct question *q)
{
	return refused_as(&q->ours, "Too many variables defined");
}

/* Returns true if a list of the command is longer than C accepts. */
static bool longer_lists(const struct question *q)
{
	static const struct {
		const char *word;
		int commas;
	} lists[] = { { "keys=", 3 }, { "key=", 3 }, { "vals=", 2 }, { "val=", 2 }, { "values=", 2 } };

	if (!q->c.error)
		return false;
	for (unsigned int i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		for (const char *at = q->before; (at = strstr(at, lists[i].word)); at++) {
			int commas = 0;

			for (const char *c = at; *c && *c != ':' && *c != '\n'; c++)
				commas += *c == ',';
			if (commas >= lists[i].commas)
				return true;
		}
	return false;
}

/* Returns true for keys that are too long for C, one of them a stack. */
static bool long_with_stack(const struct question *q)
{
	return q->c.error && !logged(&q->c, "error: ") && strcasestr(q->before, "stack") && strchr(q->before, ',');
}

static bool constant_quotient(const struct question *q)
{
	return number_behind(q->before, "/");
}

static bool cut_definition(const struct question *q)
{
	return strchr(q->before, '$') && strpbrk(q->before, "+-*/");
}

/* Times and stacks may differ, but not the number of hits. */
static bool same_hits(const struct question *q)
{
	struct totals c, ours;

	return parse_totals(q->c.hist, &c) && parse_totals(q->ours.hist, &ours) && c.hits == ours.hits;
}

/*
 * C and rhist seldom read the same time, except on user-mode Linux, where the time advances only
 * with a tick of its timer.
 */
static bool clock_is_fine(void)
{
	return !user_mode_linux();
}

static bool times(const struct question *q)
{
	return strstr(q->before, "common_timestamp") && same_hits(q);
}

/*
 * Returns true for arrays whose end the event does not write: in C, equal entries are ordered by
 * all bytes.
 */
static bool rest_of_text(const struct question *q)
{
	return strstr(q->before, "newcomm") && same_hits(q);
}

static bool has_stack(const struct question *q)
{
	return strcasestr(q->before, "stack") || strstr(q->before, "frames");
}

static bool stacks(const struct question *q)
{
	return has_stack(q) && same_hits(q);
}

static bool stack_operand(const struct question *q)
{
	return refused_as(&q->ours, "String type can not be an operand") && has_stack(q);
}

/* A stack of the record is longer in C without .stacktrace: another key. */
static bool same_stack(const struct question *q)
{
	return (!q->c.error || refused_as(&q->c, "nonexistent")) && (!q->ours.error || refused_as(&q->ours, "already exists")) &&
	       has_stack(q);
}

static bool stack_taken(const struct question *q)
{
	return stack_operand(q) || same_stack(q);
}

static bool many_percent(const struct question *q)
{
	return (strstr(q->before, ".percent") || strstr(q->before, ".graph")) && strstr(q->ours.hist, "[ERROR]");
}

/* Prints widths of 2^63 and more as unsigned. */
static void unsigned_widths(char *text)
{
	while ((text = strstr(text, ".buckets=-"))) {
		char width[24], *end, *rest;

		text += strlen(".buckets=");
		snprintf(width, sizeof(width), "%llu", (unsigned long long)strtoll(text, &end, 10));
		rest = strdup(end);
		strcpy(text, width);
		strcat(text, rest);
		free(rest);
	}
}

static bool end_of_string(const struct question *q)
{
	return strchr(q->said, '~') && strstr(q->said, " if");
}

static bool wrapped_group(const struct question *q)
{
	const char *cpus = strstr(q->said, "CPUS{");

	return cpus && strchr(cpus, '/');
}

/* Returns true for a field that C has only in newer kernels. */
static bool newer_field(const struct question *q)
{
	if (!c_has_comm() && names_comm(q->before))
		return true;
	if (!c_reads_texts() && strstr(q->said, "_val"))
		return true;
	if (!c_counts_preemption() && strstr(q->said, "preempt_count"))
		return true;
	/* Fields of a fixed length, with arbitrary bytes behind the NUL. */
	return !c_compares_all() && (strstr(q->before, "dirty") || strstr(q->before, "newcomm") || strstr(q->before, "oldcomm"));
}

/*
 * A filter that ends with an operator, an expression with a bucket width, a logarithm, a newer
 * field.
 */
static bool mended_since(const struct question *q)
{
	size_t len = strlen(q->said);

	while (len && isspace((unsigned char)q->said[len - 1]))
		len--;
	if (!c_wants_operands() && len > 2 && (!strncmp(q->said + len - 2, "&&", 2) || !strncmp(q->said + len - 2, "||", 2)))
		return true;
	if (!c_prints_widths() && strstr(q->before, ".bucket") && strpbrk(q->before, "+-*/"))
		return true;
	return (!c_scales_all() && strstr(q->before, ".log2")) || newer_field(q);
}

/* Difference that errorlog.h knows; the script goes on. */
#define LOG_DIFFERS "error_log where C says nothing"

/*
 * Each heading is one of Documentation/differences.rst. A difference is one of
 *   adjust    that can be taken out of C's texts
 *   answers   that explains why one of the two takes a command and the other does not
 *   shows     that explains why the histograms differ
 *   lines     that explains why lines of triggers differ
 *   unasked   that is a fault of C which the kernel reports, or of the C of an older kernel: rhist
 *             only is asked
 * The ceilings are numbers of sidebyside: see ceilings.h.
 */
static struct difference {
	const char *heading, *reason;
	void (*adjust)(char *text);
	bool (*answers)(const struct question *q);
	bool (*shows)(const struct question *q);
	bool (*lines)(const struct question *q);
	bool (*unasked)(const struct question *q);
	struct ceiling ceiling;
	struct tally tally;
} differences[] = {
	{ "common_cpu in the trigger line", "C prints the name of a CPU field twice", .adjust = name_cpu_once,
	  .ceiling = { 165, NULL } },
	{ "sort= in the trigger line", "C prints modifiers that it does not take back", .adjust = sort_by_names,
	  .ceiling = { 130, NULL } },
	{ "Other names of common_cpu and common_comm", "the line that they are printed as does not find them in C",
	  .answers = other_names,
	  .ceiling = { 377, NULL } },
	{ "Bucket widths, constants and operators", "C does not look at them when it compares triggers", .answers = compared_more,
	  .ceiling = { 3, NULL } },
	{ "Division by a constant", "C rounds up", .shows = constant_quotient, .lines = constant_quotient,
	  .ceiling = { 17, NULL } },
	{ "hitcount.log2 and hitcount.buckets=N as keys", "C has no name for them, and warns", .unasked = nameless,
	  .ceiling = { 13, NULL } },
	{ "Strings as operands", "C computes with their addresses", .answers = string_computed,
	  .ceiling = { 34, NULL } },
	{ "Strings in filters", "C looks at what is behind their end", .shows = end_of_string,
	  .ceiling = { 1, NULL } },
	{ "CPUS{first-last:used/group} in filters", "C begins at CPU 0 again", .shows = wrapped_group,
	  .ceiling = { 0, "it takes several processors" } },
	{ "More than 16 variables in one token", "C ignores the surplus", .answers = seventeen,
	  .ceiling = { 1, NULL } },
	{ "More than 3 keys or 2 values", "C refuses them", .answers = longer_lists,
	  .ceiling = { 19, NULL } },
	{ "Long keys with a stack", "C refuses them", .answers = long_with_stack,
	  .ceiling = { 31, NULL } },
	{ "Percentages of 2^32 hundredths and more", "C shows the low 32 bits of them", .shows = many_percent,
	  .ceiling = { 0, "sums of these events do not wrap to so little" } },
	{ "x=a+b,y=$x", "C has cut the text of x by then", .answers = cut_definition, .shows = cut_definition,
	  .lines = cut_definition,
	  .ceiling = { 1, NULL } },
	{ "Bucket widths of 2^63 and more", "C prints them as negative numbers", .adjust = unsigned_widths,
	  .ceiling = { 1, NULL } },
	{ "common_timestamp", "it is the time when the trigger runs", .shows = times,
	  .ceiling = { 3, NULL, clock_is_fine } },
	{ "Text in arrays, as keys", "C takes what other records have left behind its NUL for a part of it", .shows = rest_of_text,
	  .ceiling = { 20, NULL } },
	{ "Stacks", "C leaves out five frames whatever they are", .shows = stacks, .lines = has_stack, .answers = stack_taken,
	  .ceiling = { 73, NULL } },
	{ "Older kernels", "C has faults that were mended since", .unasked = mended_since,
	  .ceiling = { 0, "this kernel is not older", c_is_older } },
	{ LOG_DIFFERS, "C says nothing, or not enough", .adjust = NULL,
	  .ceiling = { 1499, NULL } },
	{ "size=0 and size= of more than 2^63", "C shifts by 64 bits, which UBSAN reports", .unasked = bad_size,
	  .ceiling = { 85, NULL } },
};

#define DIFFERENCES (sizeof(differences) / sizeof(*differences))

#endif
