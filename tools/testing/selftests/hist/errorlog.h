/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Our error_log compared with C's, as Documentation/differences.rst describes it. An entry that C
 * lacks has the location "rhist:SYSTEM:EVENT". Ours adds a sentence to some of C's texts, with a
 * caret of its own. Everything else is the same.
 */
#ifndef ERRORLOG_H
#define ERRORLOG_H

#include "tracing.h"

/* C's texts, each with the sentence that ours adds. */
static const char *const log_additions[][2] = {
	{ "Couldn't find field", "a blank is part of the name" },
	{ "Couldn't find field", "the name is missing" },
	{ "Invalid field modifier", "expecting a width, as in .buckets=10" },
	{ "Invalid field modifier", "expecting a scale from 0 to 5, as in .dist=3" },
	{ "Too many terms in predicate expression", "expecting && or || between two terms" },
	{ "Missing matching quote", "the string that begins here has no end" },
	{ "Error", "expecting a term that begins with the name of a field" },
};

/* Log entries for accepted commands. */
static const char *const log_notes[] = {
	"No closing paren found, taken as if it were at the end",
	"Not removed, a variable is used by the trigger of ",
};

#define LOG_MARK ": error: "

/* A part of a text. */
struct log_piece {
	const char *at;
	size_t len;
};

/* An entry in the text of an error_log, without its time. */
struct log_lines {
	struct log_piece location, text, command, caret;
};

static bool same_piece(struct log_piece a, struct log_piece b)
{
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

static bool is_piece(struct log_piece piece, const char *text)
{
	return piece.len == strlen(text) && !memcmp(piece.at, text, piece.len);
}

static bool starts_piece(struct log_piece piece, const char *text)
{
	return piece.len >= strlen(text) && !memcmp(piece.at, text, strlen(text));
}

/*
 * Parses the entry at the beginning of `log`. Returns the text after it, or NULL if `log` does not
 * begin with an entry.
 */
static const char *next_lines(const char *log, struct log_lines *e)
{
	const char *head = log, *end = strchr(log, '\n'), *mark, *line;

	if (*head == '[' && strspn(head + 1, " 0123456789.") == strcspn(head + 1, "]"))
		head = strstr(head, "] ") ? strstr(head, "] ") + 2 : head;
	mark = strstr(head, LOG_MARK);
	if (!end || !mark || mark > end)
		return NULL;
	e->location = (struct log_piece){ head, mark - head };
	e->text = (struct log_piece){ mark + strlen(LOG_MARK), end - mark - strlen(LOG_MARK) };
	/* a command may hold newlines */
	for (line = ++end; *line; line = end + 1) {
		size_t blanks = strspn(line, " ");

		end = strchr(line, '\n');
		if (!end)
			return NULL;
		if (blanks >= strlen("  Command: ") && line[blanks] == '^' && line + blanks + 1 == end) {
			e->command = (struct log_piece){ e->text.at + e->text.len, line - e->text.at - e->text.len };
			e->caret = (struct log_piece){ line, blanks };
			return end + 1;
		}
	}
	return NULL;
}

static bool is_added(struct log_piece c, struct log_piece ours)
{
	for (unsigned int i = 0; i < sizeof(log_additions) / sizeof(*log_additions); i++)
		if (is_piece(c, log_additions[i][0]) && is_piece(ours, pathf("%s: %s", log_additions[i][0], log_additions[i][1])))
			return true;
	return false;
}

/*
 * Returns true if our error_log matches C's after a command that ended with `error` on both sides.
 * Both were empty before. Text after the entries must match as well.
 */
static bool same_entries(const char *c, const char *ours, int error)
{
	struct log_lines from_c, from_us;
	const char *next;

	while ((next = next_lines(ours, &from_us))) {
		ours = next;
		if (starts_piece(from_us.location, "rhist:")) {
			if (error || starts_piece(from_us.text, log_notes[0]) || starts_piece(from_us.text, log_notes[1]))
				continue;
			return false;
		}
		next = next_lines(c, &from_c);
		if (!next || !same_piece(from_c.location, from_us.location) || !same_piece(from_c.command, from_us.command))
			return false;
		c = next;
		if (!is_added(from_c.text, from_us.text) &&
		    (!same_piece(from_c.text, from_us.text) || !same_piece(from_c.caret, from_us.caret)))
			return false;
	}
	return !strcmp(c, ours);
}

/* Compares two whole logs. Any error must have left an entry. */
__maybe static bool same_log(const char *c, const char *ours, int error)
{
	return c && ours && (!error || *ours) && same_entries(c, ours, error);
}

#endif
