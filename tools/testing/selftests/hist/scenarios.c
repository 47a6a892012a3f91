// SPDX-License-Identifier: GPL-2.0
/*
 * scenarios [--count N] [--seed S] [--index I] [--script FILE] [--print] [--fuzz SECONDS]
 *
 * Scenes of triggers, played to the kernel's own implementation and then to ours, since both use
 * the same synthetic events. After each line errno, error_log and the lines of all triggers are the
 * same; after events the histograms, hist_debug where the kernel has it, and the records of the
 * synthetic events; in scenes from files histograms and hist_debug after each command. At the end
 * nothing is left.
 *
 * First come the scenes in the files scenes/NAME.scene, with a point for each line, then N that
 * scenes.h makes from random numbers with seed S. Known differences are listed in known[]; a scene
 * from a file names its differences.
 *
 *   --count N      by default 2000 on user-mode Linux, where this takes a minute, else 300; with
 *                  LONG=1 50000
 *   --seed S       by default the same one each time, with LONG=1 another one. It is printed.
 *   --index I      only this one, with all texts of both sides
 *   --script FILE  scenes from a file ("-": standard input), also as a failure prints them
 *   --print        only prints the scenes
 *   --fuzz SECONDS scenes with mistakes in them for that long, while other threads fire the same
 *                  events: here the kernel has to stay well, each command to end soon, and nothing
 *                  to be left. On user-mode Linux, C takes and refuses the same commands, where it
 *                  can be asked: it does not survive all of them.
 *
 * With TRACING=/sys/kernel/tracing C is compared with itself, which shows whether a scene always
 * gives the same result.
 */
#define _GNU_SOURCE
#include <glob.h>
#include <pthread.h>

#include "ceilings.h"
#include "errorlog.h"
#include "events.h"
#include "scenes.h"

static bool verbose, fuzzing;

/* The slowest command. */
static struct {
	double seconds;
	char *text;
} slowest;

/* --- known differences */

enum what { ANSWER, LINES, HIST, DEBUG, EMITTED };

static const char *const what_names[] = { "the answers", "the triggers", "the histograms", "hist_debug", "what the events say" };

struct finding {
	enum what what;
	const char *said;	/* the lines of the scene so far */
	const char *c, *ours;
};

/* Returns the bytes of the keys in a line, counting only fields of our own events. */
static unsigned int size_of_keys(const char *line)
{
	const char *keys = strstr(line, "keys=");
	unsigned int size = 0;

	if (!keys)
		return 0;
	keys += strlen("keys=");
	for (;;) {
		size_t len = strcspn(keys, ",: \n");

		size += memmem(keys, len, "comm", 4) && !memmem(keys, len, "common_pid", 10) ? 256 :
			memmem(keys, len, "who", 3) ? 16 : 8;
		if (keys[len] != ',')
			return size;
		keys += len + 1;
	}
}

/* Returns true if a trigger refers to variables, and another one has a longer key. */
static bool longer_key(const struct finding *f)
{
	unsigned int longest = 0, shortest = 1000;

	if (f->what == ANSWER || f->what == LINES)
		return false;
	for (const char *line = f->said; *line; line += strcspn(line, "\n"), line += !!*line) {
		char one[2000];
		unsigned int size;

		snprintf(one, sizeof(one), "%.*s", (int)strcspn(line, "\n"), line);
		size = strstr(one, "hist:") ? size_of_keys(one) : 0;
		if (size > longest)
			longest = size;
		if (size && size < shortest && strchr(one, '$'))
			shortest = size;
	}
	return shortest < longest;
}

/*
 * Returns true for a quotient by a number other than a power of two, or by a variable, which may be
 * constant.
 */
static bool constant_quotient(const struct finding *f)
{
	for (const char *at = f->said; (at = strchr(at, '/')); at++) {
		unsigned long long by = strtoull(at + 1, NULL, 0);

		if (isdigit((unsigned char)at[1]) ? by & (by - 1) : memchr(at, '$', strcspn(at, ",:\n")) != NULL)
			return true;
	}
	return false;
}

static bool stacks(const struct finding *f)
{
	return f->what != ANSWER && strstr(f->said, "stack");
}

static bool ours_says(const struct finding *f, const char *text)
{
	return f->what == ANSWER && strstr(f->ours, text);
}

static bool too_many(const struct finding *f)
{
	return ours_says(f, "Too many variables defined");
}

static bool string_computed(const struct finding *f)
{
	return ours_says(f, "String used as a value") ||
		(!strncmp(f->c, "OK", 2) && (ours_says(f, "String type can not be an operand") || ours_says(f, "Invalid field modifier")));
}

static bool other_type(const struct finding *f)
{
	return !strncmp(f->c, "OK", 2) && ours_says(f, "Param type doesn't match") && strstr(f->said, "char");
}

/* A third histogram can notice that the first one has another string by now. */
static bool string_alias(const struct finding *f)
{
	return f->what == EMITTED && (strstr(f->said, "=$str") || strstr(f->said, ".$str"));
}

static bool saved_modifier(const struct finding *f)
{
	for (const char *at = f->said; (at = strstr(at, "save(")); at++)
		if (memchr(at, '.', strcspn(at, ")\n")))
			return true;
	return false;
}

/* Returns the lines of a text except helper triggers'; the caller frees it. */
static char *without_helpers(const char *text)
{
	char *rest = malloc(strlen(text) + 1), *to = rest;

	for (; *text; text += strcspn(text, "\n"), text += !!*text) {
		size_t len = strcspn(text, "\n");

		if (!memmem(text, len, ":synthetic_", 11))
			to = mempcpy(to, text, len), *to++ = '\n';
	}
	*to = 0;
	return rest;
}

static bool helpers(const struct finding *f)
{
	char *c, *ours;
	bool same;

	if (f->what != LINES)
		return false;
	c = without_helpers(f->c);
	ours = without_helpers(f->ours);
	same = !strcmp(c, ours);
	free(c);
	free(ours);
	return same;
}

/* The last of these lines. */
static const char *last_line(const char *lines)
{
	const char *line = lines + strlen(lines);

	for (line -= line > lines; line > lines && line[-1] != '\n'; line--)
		;
	return line;
}

/* `x=a+b,y=$x`, and `x=a+$x` */
static bool cut_definition(const struct finding *f)
{
	const char *line = last_line(f->said);
	size_t event = strcspn(line, " ");

	for (const char *at = line; f->what <= LINES && (at = strchr(at, '$')); at++) {
		size_t len = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_0123456789");

		/* of another event */
		if (at[-1] == '.' && strncmp(at - 1 - event, line, event))
			continue;
		for (const char *equals = line; (equals = strchr(equals, '=')); equals++) {
			const char *name = equals - len;

			if (len && name > line && !strncmp(name, at + 1, len) && strchr(":,", name[-1]) &&
			    strcspn(equals, "+-*/") < strcspn(equals, ",:\n"))
				return true;
		}
	}
	return false;
}

/* `-(x.log2)` and `-(x.buckets=4)` */
static bool scaled_negative(const struct finding *f)
{
	const char *line = f->what == ANSWER ? strstr(last_line(f->said), "=-(") : NULL;

	return line && (strstr(line, ".log2") || strstr(line, ".bucket")) && !strncmp(f->c, "EINVAL", 6);
}

/* Returns true for an expression in a line, a constant, or the width of a bucket. */
static bool computes(const char *line, size_t len)
{
	for (size_t i = 0; i + 1 < len; i++)
		if (strchr("+-*/", line[i]) || (strchr("=,", line[i]) && isdigit((unsigned char)line[i + 1]) &&
						(i < 5 || strncmp(line + i - 5, ":size", 5))))
			return true;
	return false;
}

/* Two such triggers of one event: only mistakes create two that are so similar. */
static bool compared_constants(const struct finding *f)
{
	unsigned int computing[2] = { 0 };
	const char *last = last_line(f->said), *end;

	for (const char *line = f->said; fuzzing && f->what <= LINES && *line; line = end + !!*end) {
		end = line + strcspn(line, "\n");
		if (strncmp(line, last, strcspn(last, " ") + 1))
			continue;
		computing[line == last] += computes(line, end - line);
	}
	return computing[0] && computing[1];
}

/* A printed line is written back after one of its names has got another meaning, or none. */
static bool other_variable(const struct finding *f)
{
	const char *line = strstr(f->ours, ": !hist:") ?: strstr(last_line(f->said), " !hist:");

	return f->what == ANSWER && line && strncmp(f->ours, "EINVAL", 6) && !strncmp(f->c, "EINVAL", 6);
}

/* C has two entries with the same text as their key, or misses a variable of that key. */
static bool text_as_key(const struct finding *f)
{
	/* the names of such fields, see scenes.h */
	for (const char *line = f->said; (f->what == HIST || f->what == EMITTED) && (line = strstr(line, "\nsc_")); line++) {
		const char *keys = strstr(line, "keys=");
		size_t len = keys ? strcspn(keys, ":\n") : 0;

		if (memmem(keys, len, "who", 3) && memchr(line + 1, '$', strcspn(line + 1, "\n")))
			return true;
	}
	for (const char *line = f->c; f->what == HIST && (line = strstr(line, "\n{ ")); line++) {
		const char *end = strchr(line + 1, '}'), *next;
		char key[400];

		snprintf(key, sizeof(key), "%.*s", end ? (int)(end - line) : 0, line);
		next = end && end - line < (long)sizeof(key) ? strstr(end, key) : NULL;
		/* within the same histogram */
		if (next && !memmem(end, next - end, "\nTotals:", 8) && !strstr(key, "\n{ common_stacktrace"))
			return true;
	}
	return false;
}

/* A number that is not the address of a string. */
static bool no_address(const struct finding *f)
{
	return f->what == EMITTED && strstr(f->ours, "(fault)");
}

/* C shows them as common_cpu and common_comm, and does not accept these as the same later. */
static bool other_name(const struct finding *f)
{
	static const char *const names[] = { "cpu", "CPU", "comm", "COMM" };

	for (unsigned int i = 0; f->what <= LINES && i < sizeof(names) / sizeof(*names); i++)
		for (const char *at = f->said; (at = strstr(at, names[i])); at++)
			if (strchr("=,(*+-/ ", at[-1]) && strchr("=,):.*+-/\n", at[strlen(names[i])]))
				return true;
	return false;
}

/* A clause that C does not know: it fails without an entry in error_log. */
static bool on_clause(const struct finding *f)
{
	return ours_says(f, ":on(") && !strcmp(f->c, "EINVAL\n");
}

/*
 * Known differences; `explains` says whether a finding is one. The headings are from
 * Documentation/differences.rst.
 */
static struct known {
	const char *heading, *reason;
	bool (*explains)(const struct finding *f);
	struct ceiling ceiling;
	struct tally tally;
} known[] = {
	{ "References to histograms with longer keys", "C reads behind the key", .explains = longer_key,
	  .ceiling = { 0, "other seeds make it" } },
	{ "Division by a constant", "C rounds up", .explains = constant_quotient,
	  .ceiling = { 2, NULL } },
	{ "Stacks", "C leaves out five frames whatever they are", .explains = stacks,
	  .ceiling = { 1, NULL } },
	{ "More than 16 variables in one token", "C ignores the surplus", .explains = too_many,
	  .ceiling = { 23, NULL } },
	{ "Strings as operands", "C computes with their addresses", .explains = string_computed,
	  .ceiling = { 0, "other seeds make it" } },
	{ "The negative of a scaled field", "C cannot print it", .explains = scaled_negative,
	  .ceiling = { 1, NULL } },
	{ "x=a+b,y=$x", "C has cut the text of x by then", .explains = cut_definition,
	  .ceiling = { 11, NULL } },
	{ "Types of parameters", "C compares sizes", .explains = other_type,
	  .ceiling = { 0, "other seeds make it" } },
	{ "Text in arrays of synthetic events, as keys", "C takes what is behind its NUL for a part of it", .explains = text_as_key,
	  .ceiling = { 0, "other seeds make it" } },
	{ "Types of parameters", "C reads what is no string", .explains = no_address,
	  .ceiling = { 0, "other seeds make it" } },
	{ "An alias of a string or a stack", "C copies the address", .explains = string_alias,
	  .ceiling = { 0, "other seeds make it" } },
	{ "save() in the trigger line", "C leaves out modifiers", .explains = saved_modifier,
	  .ceiling = { 0, "other seeds make it" } },
	{ "Bucket widths, constants and operators", "C takes triggers for the same that differ in them", .explains = compared_constants,
	  .ceiling = { 0, "mistakes make it: see fuzz" } },
	{ "Other names of common_cpu and common_comm", "C does not find the trigger of such a line", .explains = other_name,
	  .ceiling = { 0, "mistakes make it: see fuzz" } },
	{ "A line that is written back with a !", "C looks up its names once more", .explains = other_variable,
	  .ceiling = { 3, NULL } },
	{ "on(field,...)", "C has no such clause", .explains = on_clause,
	  .ceiling = { 0, "other seeds make it" } },
	{ "Helper triggers", "C removes one with the trigger that it was made for, or never", .explains = helpers,
	  .ceiling = { 0, "other seeds make it" } },
};

#define KNOWN (sizeof(known) / sizeof(*known))

/* Takes known differences out of C's texts, as far as text can be cut. */
static void adjust(enum what what, char *text)
{
	if (what != ANSWER)
		without_differences(text);
	/* C's additions to references */
	for (char *at = text; what != ANSWER && (at = strchr(at, '$')); ) {
		at += 1 + strspn(at + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
		while (!strncmp(at, ".usecs", 6))
			cut(at, at + 6);
	}
	/* error_log after a command that has succeeded */
	if (what == ANSWER && !strncmp(text, "OK\n", 3))
		for (char *at = text + 3, *caret; strstr(at, ": error: ") && (caret = strstr(at, "^\n")); )
			cut(at, caret + 2);
}

static bool explained(const struct scene *scene, const struct finding *f)
{
	for (unsigned int i = 0; i < KNOWN; i++)
		if ((!scene->written || scene->differs & 1u << i) && known[i].explains(f)) {
			known[i].tally.met++;
			return true;
		}
	return false;
}

/* --- transcript of one side */

struct record {
	enum what what;
	unsigned int line;		/* of the scene */
	char *text;
};

struct transcript {
	unsigned int count;
	struct record records[400];
	bool left;			/* something could not be removed */
	bool stopped;			/* C is not asked any further */
};

/* Takes over the text. */
static void note_down(struct transcript *t, enum what what, unsigned int line, char *text)
{
	if (t->count < sizeof(t->records) / sizeof(*t->records))
		t->records[t->count++] = (struct record){ what, line, text ?: strdup("(unreadable)\n") };
	else
		free(text);
}

static void forget_transcript(struct transcript *t)
{
	while (t->count)
		free(t->records[--t->count].text);
	t->left = t->stopped = false;
}

/* A growing text. */
struct pieces {
	char *text;
	size_t len;
};

__attribute__((format(printf, 2, 3)))
static void append_piece(struct pieces *pieces, const char *format, ...)
{
	va_list args;
	char *piece;
	int len;

	va_start(args, format);
	len = vasprintf(&piece, format, args);
	va_end(args);
	if (len < 0)
		abort();
	pieces->text = realloc(pieces->text, pieces->len + len + 1);
	memcpy(pieces->text + pieces->len, piece, len + 1);
	pieces->len += len;
	free(piece);
}

/* The events of a scene, as paths below events/. */
static struct events {
	unsigned int count, made;
	char paths[16][64], synthetic[8][24];
	bool others[16];		/* hit by others, too: not ours, getpgid or getsid */
	bool times_tracked;
	unsigned int timed;
	char times[16][24];		/* fields of synthetic events that get times */
} events;

/* Its path below events/, or NULL. */
static const char *event_path(const char *word)
{
	static const char *const own[] = { "wake", "run", "stop", "stacks" };

	if (strchr(word, '/'))
		return word;
	if (!strcmp(word, "getpgid") || !strcmp(word, "getsid"))
		return pathf("syscalls/sys_enter_%s", word);
	if (!strncmp(word, "sc_", 3))
		return pathf("synthetic/%s", word);
	for (unsigned int i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strcmp(word, own[i]))
			return pathf("rhist_events/%s", word);
	return NULL;
}

static void add_event(const char *path)
{
	for (unsigned int i = 0; i < events.count; i++)
		if (!strcmp(events.paths[i], path))
			return;
	if (events.count < 16) {
		events.others[events.count] = strncmp(path, "rhist_events/", 13) && strncmp(path, "synthetic/", 10) &&
					      strncmp(path, "syscalls/sys_enter_get", 22);
		snprintf(events.paths[events.count++], sizeof(*events.paths), "%s", path);
	}
}

/* The name of the nth field of a synthetic event, or an empty one. */
static void field_of(const struct scene *scene, const char *event, unsigned int n, char name[24])
{
	size_t len = strlen(event);

	*name = 0;
	for (unsigned int i = 0; i < scene->count && !*name; i++) {
		const char *field = scene->lines[i], *end;

		if (strncmp(field, "synthetic ", 10) || strncmp(field + 10, event, len) || field[10 + len] != ' ')
			continue;
		for (field += 10 + len; n && (field = strchr(field, ';')); n--)
			field++;
		if (!field)
			return;
		/* the last word, without the size of an array */
		for (end = field + strcspn(field, ";["); end > field && end[-1] == ' '; end--)
			;
		for (field = end; field[-1] != ' '; field--)
			;
		snprintf(name, 24, "%.*s", (int)(end - field), field);
	}
}

/* Returns true if a parameter is a time, or a field that has got one. */
static bool is_time(const char *param, size_t len)
{
	if (memmem(param, len, "$ts", 3) || memmem(param, len, "$lat", 4) || memmem(param, len, "timestamp", 9))
		return true;
	for (unsigned int i = 0; i < events.timed; i++)
		if (len == strlen(events.times[i]) && !strncmp(param, events.times[i], len))
			return true;
	return false;
}

/* Finds the fields of synthetic events that get times from a trigger. */
static void find_times(const struct scene *scene, const char *line)
{
	for (const char *at = line; (at = strstr(at, "sc_")); ) {
		unsigned int n = 0;
		char event[24], *name;

		snprintf(event, sizeof(event), "%.*s", (int)strcspn(at, " ,()."), at);
		at += strlen(event);
		while ((*at == '(' || *at == ',') && events.timed < 16) {
			size_t len = strcspn(++at, ",)");

			name = events.times[events.timed];
			field_of(scene, event, n++, name);
			if (*name && is_time(at, len))
				events.timed++;
			at += len;
		}
	}
}

static void find_events(const struct scene *scene)
{
	memset(&events, 0, sizeof(events));
	add_event("rhist_events/wake");
	add_event("rhist_events/run");
	add_event("rhist_events/stop");
	for (unsigned int i = 0; i < scene->count; i++) {
		const char *line = scene->lines[i];
		char word[64], name[24];

		if (sscanf(line, "synthetic %23s", name) == 1 && *name != '!' && events.made < 8) {
			snprintf(events.synthetic[events.made++], sizeof(name), "%s", name);
			add_event(pathf("synthetic/%s", name));
		} else if (sscanf(line, "%63s", word) == 1 && event_path(word)) {
			add_event(event_path(word));
		}
		if (strstr(line, "onmax($ts") || strstr(line, "onchange($ts") || strstr(line, "onmax($lat") || strstr(line, "onchange($lat"))
			events.times_tracked = true;
		find_times(scene, line);
	}
}

/* Replaces a number, and the blanks before it, with a star. */
static char *hide_number(char *at)
{
	size_t len = strspn(at, " ");

	if (!isdigit((unsigned char)at[len]))
		return at;
	len += strspn(at + len, "0123456789");
	*at = '*';
	cut(at + 1, at + len);
	return at + 1;
}

/*
 * Takes times out of a text: fields and variables whose names begin with ts or lat, fields that get
 * times, and numbers that are compared with them.
 */
static char *without_varying(char *text)
{
	static const char *const names[] = { "ts", "lat", "common_timestamp" };

	for (char *at = text; at && *at; at++) {
		size_t len = 0;

		if (at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))
			continue;
		for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (!strncmp(at, names[i], strlen(names[i])))
				len = strspn(at, "abcdefghijklmnopqrstuvwxyz_.0123456789");
		for (unsigned int i = 0; i < events.timed; i++)
			if (!strncmp(at, events.times[i], strlen(events.times[i])) && strchr(":=", at[strlen(events.times[i])]))
				len = strlen(events.times[i]);
		if (!len && events.times_tracked) {
			if (!strncmp(at, "max:", 4))
				len = 3;
			else if (!strncmp(at, "changed:", 8))
				len = 7;
			else if (!strncmp(at, "triggering value {", 18))
				len = strcspn(at, "}") + 2;
		}
		if (len && (at[len] == ':' || at[len] == '='))
			hide_number(at + len + 1);
	}
	return text;
}

/* Replaces addresses with numbers, in the order of their appearance. */
static char *without_addresses(char *text)
{
	char seen[64][20];
	unsigned int count = 0;

	for (char *at = text; at && (at = strstr(at, "hist_data: ")); ) {
		char address[20], number[8];
		unsigned int i;
		size_t len;

		at += strlen("hist_data: ");
		len = strspn(at, "0123456789abcdef");
		snprintf(address, sizeof(address), "%.*s", (int)len, at);
		for (i = 0; i < count && strcmp(seen[i], address); i++)
			;
		if (i == count && count < 64)
			strcpy(seen[count++], address);
		snprintf(number, sizeof(number), "#%u", i);
		if (len > strlen(number)) {
			memcpy(at, number, strlen(number));
			cut(at + strlen(number), at + len);
		}
	}
	return text;
}

/* Returns one file of all events. */
static char *file_of_events(const char *dir, const char *name)
{
	struct pieces all = { 0 };

	append_piece(&all, "%s", "");
	for (unsigned int i = 0; i < events.count; i++) {
		char *text = slurp(pathf("%s/events/%s/%s", dir, events.paths[i], name));

		/* The list of available commands may differ, and so may the hits of others. */
		if (text && *text && !(*text == '#' && !strcmp(name, "trigger")) && !(events.others[i] && !strcmp(name, "hist")))
			append_piece(&all, "%s:\n%s", events.paths[i], text);
		free(text);
	}
	return all.text;
}

static const char hold[] = "scenarios_hold", listener[] = "scenarios";
static int pipe_of_listener = -1;

/* Bytes. */
#define EMITTED_MAX (1 << 20)

/* Returns the names and fields of the synthetic events that have happened since the last call. */
static char *emitted(void)
{
	struct pieces all = { 0 }, said = { 0 };
	char buffer[16384], *rest, *line;
	ssize_t len;

	append_piece(&all, "%s", "");
	append_piece(&said, "%s", "");
	/* Under load it would not end. */
	while ((!fuzzing || all.len < EMITTED_MAX) && (len = read(pipe_of_listener, buffer, sizeof(buffer))) > 0)
		append_piece(&all, "%.*s", (int)len, buffer);
	rest = all.text;
	while ((line = strsep(&rest, "\n"))) {
		char *name = strstr(line, ": sc_");

		/* the frames of a stack have lines of their own */
		if (name)
			append_piece(&said, "%s\n", name + 2);
	}
	free(all.text);
	return said.text;
}

/* Writes a command. Returns the result. */
static char *answer_to(const char *dir, const char *file, const char *text, size_t len, int *error)
{
	struct pieces answer = { 0 };
	double began = now();
	char *log;

	if (text)
		*error = put_len(file, O_APPEND, text, len);
	else
		*error = truncate_file(file);
	if (now() - began > slowest.seconds) {
		slowest.seconds = now() - began;
		free(slowest.text);
		slowest.text = text ? escaped(text, len) : strdup("truncation");
	}
	log = slurp(pathf("%s/error_log", dir));
	if (log && *log) {
		truncate_file(pathf("%s/error_log", kernel_dir()));
		if (strcmp(dir, kernel_dir()))
			truncate_file(pathf("%s/error_log", dir));
	}
	without_times(log);
	append_piece(&answer, "%s\n%s", errno_name(*error), log ?: "(no error_log)\n");
	if (*error && !access(file, F_OK) && log && !*log && strcmp(dir, kernel_dir()) && strstr(file, "/trigger"))
		append_piece(&answer, "(nothing is logged)\n");
	free(log);
	return answer.text;
}

/* Adds the histograms, and hist_debug, which some kernels lack. */
static void look(const char *dir, unsigned int line, struct transcript *t)
{
	char *debug;

	note_down(t, HIST, line, without_varying(file_of_events(dir, "hist")));
	if (access(pathf("%s/events/rhist_events/wake/hist_debug", kernel_dir()), F_OK))
		return;
	debug = without_addresses(file_of_events(dir, "hist_debug"));
	as_c_debugs(debug);
	note_down(t, DEBUG, line, debug);
}

struct order {
	char event[16];
	unsigned int first, count, keys;
};

/* Reads the first order; false if it is none. */
static bool read_order(const char *orders, struct order *o)
{
	return sscanf(orders, " %15[a-z] %u %u %u", o->event, &o->first, &o->count, &o->keys) == 4 && o->keys && event_path(o->event);
}

static const char *next_order(const char *orders)
{
	orders = strchr(orders, ',');
	return orders ? orders + 1 : NULL;
}

static void fire(const char *orders)
{
	struct order o;

	for (; orders; orders = next_order(orders)) {
		if (!read_order(orders, &o)) {
			note("no order: %s", orders);
			return;
		}
		if (!strcmp(o.event, "getsid") || !strcmp(o.event, "getpgid")) {
			for (unsigned int i = 0; i < o.count; i++)
				syscall(strcmp(o.event, "getsid") ? SYS_getpgid : SYS_getsid, (unsigned long)o.first + i % o.keys);
		} else {
			const char *order = pathf("%s task 0 %u %u %u", o.event, o.first, o.count, o.keys);

			if (write(event_source, order, strlen(order)) < 0)
				note("rhist_events: %s: %s", order, strerror(errno));
		}
	}
}

/* Returns true if play() can play this line of a file, rather than leave it out with a note. */
static bool is_line(const char *line)
{
	static const char *const words[] = { "enable", "remove", "synthetic", "truncate" };
	struct order o;
	char word[64];

	if (sscanf(line, "%63s", word) != 1)
		return false;
	if (!strcmp(word, "fire")) {
		for (const char *orders = line + 4; orders; orders = next_order(orders))
			if (!read_order(orders, &o))
				return false;
		return true;
	}
	for (unsigned int i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(word, words[i]))
			return true;
	return event_path(word);
}

/*
 * Returns true if a helper trigger may be used by two others: if the trigger that it was made for
 * goes first, C warns in the kernel's log. Two triggers with a parameter of this name are enough.
 */
static bool shared_helper(const char *dir)
{
	char *lines = file_of_events(dir, "trigger");
	bool shared = false;

	for (char *helper = lines; !shared && (helper = strstr(helper, ":synthetic_")); ) {
		size_t len;
		unsigned int users = 0;

		helper += strlen(":synthetic_");
		len = strcspn(helper, "=");
		for (char *line = lines; *line; line += strcspn(line, "\n"), line += !!*line) {
			size_t end = strcspn(line, "\n");
			char *at = memmem(line, end, ":on", 3);

			while (at && (at = memmem(at + 1, line + end - at - 1, helper, len)) &&
			       (!strchr("(,.", at[-1]) || !strchr(",)", at[len])))
				;
			users += at != NULL;
		}
		shared = users > 1;
	}
	free(lines);
	return shared;
}

/*
 * Returns true for a line that an older kernel's C must not get: a logarithm, a field that it
 * lacks, or an action that may need a helper trigger with keys that it cannot name.
 */
static bool faulty_in_c(const struct scene *scene, unsigned int last)
{
	if (!c_scales_all() && strstr(scene->lines[last], ".log2"))
		return true;
	if (!c_has_comm() && names_comm(scene->lines[last]))
		return true;
	if (c_names_keys() || !strstr(scene->lines[last], "onmatch("))
		return false;
	for (unsigned int i = 0; i < last; i++) {
		const char *keys = strstr(scene->lines[i], "keys=");
		size_t len = keys ? strcspn(keys += 5, ": \n") : 0;

		if (len && (strspn(keys, "abcdefghijklmnopqrstuvwxyz_0123456789,") < len || memmem(keys, len, "comm", 4) ||
			    memmem(keys, len, "cpu", 3) || memmem(keys, len, "stack", 5)))
			return true;
	}
	return false;
}

/* Writes the printed lines back with a `!`, in an order that the number determines. */
static void remove_lines(const char *dir, unsigned int at, unsigned int number, struct transcript *t)
{
	seed_random(number, 0);
	for (unsigned int tries = 0; tries < 20; tries++) {
		struct { unsigned int event; char *line; } shown[32];
		unsigned int count = 0, chosen;
		struct pieces what = { 0 };
		char *text, *answer;
		int error;

		if (t->stopped || (!strcmp(dir, kernel_dir()) && shared_helper(dir))) {
			t->stopped = true;
			return;
		}
		for (unsigned int i = 0; i < events.count; i++) {
			char *lines = slurp(pathf("%s/events/%s/trigger", dir, events.paths[i])), *rest = lines, *line;

			while (lines && (line = strsep(&rest, "\n")) && *line && *line != '#') {
				char *end = strstr(line, " [active]") ?: strstr(line, " [paused]");

				if (end && count < 32) {
					shown[count].event = i;
					shown[count++].line = strndup(line, end - line);
				}
			}
			free(lines);
		}
		if (!count)
			return;
		chosen = below(count);
		/* Adjusted to the line that C would accept. */
		adjust(LINES, shown[chosen].line);
		if (asprintf(&text, "!%s", shown[chosen].line) < 0)
			abort();
		answer = answer_to(dir, pathf("%s/events/%s/trigger", dir, events.paths[shown[chosen].event]), text, strlen(text), &error);
		append_piece(&what, "%s%s: %s\n", answer, events.paths[shown[chosen].event], text);
		note_down(t, ANSWER, at, what.text);
		note_down(t, LINES, at, file_of_events(dir, "trigger"));
		free(answer);
		free(text);
		while (count)
			free(shown[--count].line);
	}
}

static void enable(const char *name, bool on)
{
	append(pathf("%s/instances/%s/events/synthetic/%s/enable", kernel_dir(), listener, name), on ? "1" : "0");
}

/* Removes everything that is left; returns false if that fails. */
static bool remove_all(const struct scene *scene, const char *dir)
{
	bool clean = false;
	char *left;

	/* The last one first: nothing refers to it. */
	for (unsigned int i = scene->count; i-- && !clean; ) {
		const char *path;
		char word[64];
		int at = 0;

		left = file_of_events(dir, "trigger");
		clean = !*left;
		free(left);
		if (!clean && sscanf(scene->lines[i], "%63s %nhist", word, &at) == 1 && at && (path = event_path(word)) &&
		    !strncmp(scene->lines[i] + at, "hist", 4))
			append(pathf("%s/events/%s/trigger", dir, path), pathf("!%s", scene->lines[i] + at));
	}
	for (unsigned int round = 0; round < 8 && !clean; round++) {
		for (unsigned int i = 0; i < events.count; i++)
			truncate_file(pathf("%s/events/%s/trigger", dir, events.paths[i]));
		left = file_of_events(dir, "trigger");
		clean = !*left;
		free(left);
	}
	for (unsigned int i = 0; i < events.made; i++) {
		int error;

		enable(events.synthetic[i], false);
		/* C releases it some time after the trigger has been removed. */
		for (unsigned int tries = 0; tries < 100; tries++) {
			error = append(pathf("%s/synthetic_events", kernel_dir()), pathf("!%s", events.synthetic[i]));
			if (error != -EBUSY)
				break;
			sleep_ms(5);
		}
		clean &= !error || error == -ENOENT || error == -EINVAL;
	}
	return clean;
}

/* Instances share the synthetic events of the top directory. */
static const char *definitions_of(const char *dir)
{
	return strstr(dir, "/instances/") ? tracing_dir() : dir;
}

static void play(const struct scene *scene, const char *dir, struct transcript *t)
{
	free(emitted());
	truncate_file(pathf("%s/error_log", kernel_dir()));
	if (strcmp(dir, kernel_dir()))
		truncate_file(pathf("%s/error_log", dir));
	for (unsigned int i = 0; i < scene->count && !t->stopped; i++) {
		const char *line = scene->lines[i], *path = NULL;
		size_t len = scene->lens[i];
		char word[64];
		int at = 0, error;

		if (sscanf(line, "%63s%n", word, &at) != 1)
			continue;
		at += line[at] == ' ';
		line += at;
		len -= at;
		if (!strcmp(dir, kernel_dir()) && (faulty_in_c(scene, i) ||
		    ((*line == '!' || !strcmp(word, "truncate")) && shared_helper(dir)))) {
			t->stopped = true;
		} else if (!strcmp(word, "fire")) {
			fire(line);
			look(dir, i, t);
			note_down(t, EMITTED, i, without_varying(emitted()));
		} else if (!strcmp(word, "enable")) {
			enable(line, true);
		} else if (!strcmp(word, "remove")) {
			remove_lines(dir, i, strtoul(line, NULL, 0), t);
		} else if (!strcmp(word, "synthetic")) {
			/* see remove_all() */
			if (*line == '!')
				sleep_ms(5);
			note_down(t, ANSWER, i, answer_to(dir, pathf("%s/synthetic_events", definitions_of(dir)), line, len, &error));
		} else if (!strcmp(word, "truncate")) {
			path = event_path(line);
			note_down(t, ANSWER, i, answer_to(dir, pathf("%s/events/%s/trigger", dir, path ?: "?"), NULL, 0, &error));
			note_down(t, LINES, i, file_of_events(dir, "trigger"));
		} else if ((path = event_path(word))) {
			note_down(t, ANSWER, i, answer_to(dir, pathf("%s/events/%s/trigger", dir, path), line, len, &error));
			note_down(t, LINES, i, file_of_events(dir, "trigger"));
		} else {
			note("no line of a scene: %s", scene->lines[i]);
		}
		if (scene->written && path)
			look(dir, i, t);
	}
	t->left = !remove_all(scene, dir);
}

/* --- the same events from other threads */

static volatile bool load_on, load_ends;

static void *load(void *cpu)
{
	static const char *const words[] = { "wake", "run", "stop", "stacks" };
	/* On a slow kernel, leave the players some CPU time. */
	unsigned int seed = (long)cpu, count = slow_kernel() ? 5 : 50;

	pin((long)cpu);
	while (!load_ends) {
		if (load_on) {
			const char *order = pathf("%s %s %ld %u %u %u", words[rand_r(&seed) % 4],
						  contexts[rand_r(&seed) % contexts_there()], (long)cpu, rand_r(&seed) % 8,
						  count, 1 + rand_r(&seed) % 8);

			if (write(event_source, order, strlen(order)) < 0)
				note("rhist_events: %s: %s", order, strerror(errno));
			syscall(SYS_getsid, 100ul + rand_r(&seed) % 4);
		}
		sleep_ms(slow_kernel() ? 20 : 1);
	}
	return NULL;
}

/* --- comparing */

enum verdict { SAME, UNASKED, DIFFERENT, LEFT, FAILED, VERDICTS };

static unsigned int shown_failures, commands, taken, said_something;

/* In the form of a file. */
static void note_scene(const struct scene *scene)
{
	note("scene %s", scene->name);
	for (unsigned int i = 0; i < scene->count; i++) {
		char *line = escaped(scene->lines[i], scene->lens[i]);

		note("%s", line);
		free(line);
	}
}

static void ok_line(const struct scene *scene, unsigned int line, bool same)
{
	char *text = escaped(scene->lines[line], scene->lens[line]);

	ok(same, "%s: %u: %s", scene->name, line + 1, text);
	free(text);
}

/* Returns true if an answer of C and one of ours are the same. Ours may have more in error_log. */
static bool same_answer(const char *c, const char *ours)
{
	size_t len = strcspn(c, "\n") + 1;

	return !strncmp(c, ours, len) && same_entries(c + len, ours + len, strncmp(c, "OK", 2));
}

/* Returns true if C's errno and the entries of its error_log are the file's (README.rst). */
static bool as_written(const char *answer, const char *text)
{
	struct log_lines entry = { 0 };
	char error[16], sentence[200];
	unsigned int caret;

	if (!answer)
		return true;
	if (sscanf(answer, "fails %15s", error) != 1 || strncmp(text, error, strlen(error)) || text[strlen(error)] != '\n')
		return false;
	text += strlen(error) + 1;
	for (answer = strchr(answer, '\n'); answer && sscanf(answer, " log %u %199[^\n]", &caret, sentence) == 2; answer = strchr(answer + 1, '\n')) {
		text = next_lines(text, &entry);
		/* The line of the caret begins with as many blanks as "  Command: " has. */
		if (!text || !is_piece(entry.text, sentence) || entry.caret.len != caret + strlen("  Command: "))
			return false;
	}
	return !*text;
}

/* Compares both sides. A line of a scene from a file is a point. */
static enum verdict compare(const struct scene *scene, struct transcript *c, struct transcript *ours)
{
	struct pieces said = { 0 };
	enum verdict verdict = SAME;
	unsigned int line = 0, shown = 0;

	append_piece(&said, "%s", "");
	for (unsigned int i = 0; i < c->count || (!c->stopped && i < ours->count); i++) {
		static struct record none = { ANSWER, 0, (char *)"(nothing)" };
		struct record *a = i < c->count ? &c->records[i] : &none, *b = i < ours->count ? &ours->records[i] : &none;
		struct finding finding = { .what = a->what, .c = a->text, .ours = b->text };

		while (line < scene->count && line <= a->line)
			append_piece(&said, "%s\n", scene->lines[line++]);
		for (; scene->written && a != &none && shown < a->line; shown++)
			ok_line(scene, shown, true);
		finding.said = said.text;
		if (!testing_c() && a != &none)
			adjust(a->what, a->text);
		if (verbose)
			note("--- %s: %s\n%s", a == &none ? "(nothing)" : scene->lines[a->line], what_names[a->what], a->text);
		if (a->what == ANSWER && a != &none && !as_written(scene->answers[a->line], a->text))
			note("C's answer is not the file's: %s\n%s", a->text, scene->answers[a->line]);
		else if (a->what == b->what && (!strcmp(a->text, b->text) || (a->what == ANSWER && same_answer(a->text, b->text))))
			continue;
		/*
		 * The events of the other threads are counted, too; and texts are compared
		 * elsewhere, by the runs without mistakes.
		 */
		if (fuzzing && a->what == b->what && (a->what >= HIST ||
		    (a->what == ANSWER && !strncmp(a->text, "OK", 2) == !strncmp(b->text, "OK", 2))))
			continue;
		if (explained(scene, &finding)) {
			verdict = DIFFERENT;
			/* from here on they are not in the same state */
			if (a->what <= LINES)
				break;
			continue;
		}
		verdict = FAILED;
		if (shown_failures++ < 20) {
			note_scene(scene);
			note("%s differ after: %s", what_names[a->what], scene->lines[a->line]);
			if (a->what == ANSWER || verbose)
				note("C:\n%s\nours:\n%s", a->text, b->text);
			else
				note_difference(a->text, b->text);
		}
		break;
	}
	for (; scene->written && shown < line; shown++)
		ok_line(scene, shown, verdict != FAILED || shown + 1 < line);
	free(said.text);
	return verdict;
}

/* Contents of synthetic_events before the first scene. */
static char *events_before;

/* Removes synthetic events whose names come from mistakes; returns false if that fails. */
static bool sweep_events(void)
{
	char *text, *rest, *line;
	bool same;

	append(pathf("%s/instances/%s/events/synthetic/enable", kernel_dir(), listener), "0");
	rest = text = slurp(pathf("%s/synthetic_events", kernel_dir()));
	while (rest && (line = strsep(&rest, "\n")) && *line) {
		line[strcspn(line, "\t ")] = 0;
		if (!strstr(events_before, line))
			append(pathf("%s/synthetic_events", kernel_dir()), pathf("!%s", line));
	}
	free(text);
	text = slurp(pathf("%s/synthetic_events", kernel_dir()));
	same = text && !strcmp(text, events_before);
	if (!same)
		note("synthetic events that are held: %s", text);
	free(text);
	return same;
}

/* C has removed all that was added to it. It keeps triggers that refer to each other. */
static bool c_is_clean = true;

/* Plays a scene in one of our directories, and to C before, if `ask`. */
static enum verdict run_in(const struct scene *scene, const char *dir, bool ask)
{
	static struct transcript c, ours;
	enum verdict verdict = SAME;
	char *report;

	find_events(scene);
	if (ask)
		play(scene, kernel_dir(), &c);
	if (ask && fuzzing)
		sweep_events();
	load_on = fuzzing;
	play(scene, dir, &ours);
	load_on = false;
	for (unsigned int i = 0; i < ours.count; i++) {
		if (ours.records[i].what == ANSWER) {
			commands++;
			taken += !strncmp(ours.records[i].text, "OK", 2);
		}
		said_something += ours.records[i].what == EMITTED && *ours.records[i].text;
	}
	/* C's leftovers keep the synthetic events, too. */
	if (ask && !c.left)
		verdict = compare(scene, &c, &ours);
	if (verdict == SAME && (c.stopped || !ask))
		verdict = UNASKED;
	c_is_clean = !c.left;
	if (ours.left || c.left) {
		note_scene(scene);
		note("%s leaves something that cannot be removed", c.left ? "C" : "rhist");
		verdict = c.left ? LEFT : FAILED;
	}
	report = kernel_report();
	if (report) {
		note_scene(scene);
		note("the kernel reports: %s", report);
		verdict = FAILED;
		free(report);
	}
	forget_transcript(&c);
	forget_transcript(&ours);
	return verdict;
}

static enum verdict run(const struct scene *scene)
{
	enum verdict verdict = run_in(scene, tracing_dir(), true);

	for (unsigned int i = 0; i < KNOWN; i++)
		count_script(&known[i].tally);
	return verdict;
}

/* Plays a scene from a file, and starts another one. */
static void end_scene(struct scene *scene, const char *name)
{
	if (scene->count)
		ok(run(scene) != FAILED, "%s: nothing is left", scene->name);
	forget_scene(scene);
	scene->differs = 0;
	snprintf(scene->name, sizeof(scene->name), "%s", name);
}

/* Plays the scenes of a file. */
static void run_file(const char *path)
{
	char *text = slurp(path), *rest = text, *line;
	struct scene scene = { .written = true };

	if (!text)
		die("%s: %s", path, strerror(errno));
	end_scene(&scene, path);
	while ((line = strsep(&rest, "\n"))) {
		if (!*line || *line == '#')
			continue;
		if (!strncmp(line, "scene ", 6)) {
			end_scene(&scene, line + 6);
		} else if (!strncmp(line, "differs ", 8)) {
			unsigned int before = scene.differs;

			for (unsigned int i = 0; i < KNOWN; i++)
				scene.differs |= !strcmp(known[i].heading, line + 8) << i;
			if (scene.differs == before)
				die("%s: no known difference: %s", path, line + 8);
		} else if (scene.count && (!strncmp(line, "fails ", 6) || !strncmp(line, "log ", 4))) {
			char **answer = &scene.answers[scene.count - 1], *before = *answer;

			if (asprintf(answer, "%s%s\n", before ?: "", line) < 0)
				abort();
			free(before);
		} else {
			size_t len = unescape(line);

			if (!is_line(line))
				die("%s: no line of a scene: %s", path, line);
			add_line(&scene, line, len);
		}
	}
	end_scene(&scene, "");
	free(text);
}

static void run_files(void)
{
	const char *folder = getenv("FOLDER");
	glob_t files;

	/* `run` names the folder of the suite; by hand, in the checkout, it is at its own place. */
	if (glob(pathf("%s/scenes/*.scene", folder ?: "tools/testing/selftests/hist"), 0, NULL, &files))
		die("no scenes");
	for (size_t i = 0; i < files.gl_pathc; i++)
		run_file(files.gl_pathv[i]);
	globfree(&files);
}

static void run_scenes(uint64_t seed, uint64_t first, uint64_t count, bool print)
{
	unsigned int verdicts[VERDICTS] = { 0 }, failures = 0;
	double began = now();

	for (uint64_t index = first; index < first + count; index++) {
		struct scene scene = { .count = 0 };
		enum verdict verdict;

		if (!c_is_clean) {
			note("C has triggers that it does not remove: no scene after these %llu can be compared",
			     (unsigned long long)(index - first));
			count = index - first;
			ok(!failures, "seed %llu, scenes before %llu", (unsigned long long)seed, (unsigned long long)index);
			break;
		}
		make_scene(&scene, seed, index);
		if (print) {
			note_scene(&scene);
			forget_scene(&scene);
			continue;
		}
		verdict = run(&scene);
		verdicts[verdict]++;
		failures += verdict == FAILED;
		forget_scene(&scene);
		if ((index + 1 - first) % 100 == 0 || index + 1 == first + count) {
			ok(!failures, "seed %llu, scenes before %llu", (unsigned long long)seed, (unsigned long long)index + 1);
			failures = 0;
		}
	}
	if (!print)
		note("%llu scenes, %.1f s: %u the same, %u not asked C to the end, %u known to differ, %u in which C leaves something, %u failed; %u of %u commands taken, "
		     "%u times synthetic events said something", (unsigned long long)count, now() - began, verdicts[SAME],
		     verdicts[UNASKED], verdicts[DIFFERENT], verdicts[LEFT], verdicts[FAILED], taken, commands, said_something);
}

/* --- scenes with mistakes */

static const char fuzz_instance[] = "scenarios_fuzz";

/* Returns true if all triggers, helpers and synthetic events are gone. */
static bool nothing_left(void)
{
	bool same = sweep_events();
	char *stats = slurp(pathf("%s/hist_stats", tracing_dir())), *rest = stats, *line;
	unsigned int hooked = 0;

	/* Only lines of an event begin with "SYSTEM:EVENT ". */
	while ((line = strsep(&rest, "\n")) && *line) {
		size_t system = strcspn(line, ": ");

		if (line[system] == ':' && line[system + 1] != ' ' && hooked++ < 10)
			note("an event is hooked: %s", line);
	}
	if (!stats)
		die("hist_stats");
	free(stats);
	return same && !hooked;
}

static void fuzz(uint64_t seed, uint64_t first, uint64_t count, double seconds)
{
	unsigned int cpus = sysconf(_SC_NPROCESSORS_ONLN), asked = 0, failures = 0, verdicts[VERDICTS] = { 0 };
	double began = now(), limit = slow_kernel() ? 60 : 15;
	pthread_t threads[cpus];
	char instance[PATH_MAX];
	bool ask = user_mode_linux() && !slow_kernel();

	snprintf(instance, sizeof(instance), "%s/instances/%s", tracing_dir(), fuzz_instance);
	if (mkdir(instance, 0700))
		die("instance: %s", strerror(errno));
	events_before = slurp(pathf("%s/synthetic_events", kernel_dir()));
	fuzzing = true;
	for (unsigned long i = 0; i < cpus; i++)
		pthread_create(&threads[i], NULL, load, (void *)i);
	for (uint64_t index = first; index < first + count && now() - began < seconds && failures < 10; index++) {
		struct scene scene = { .count = 0 };
		bool plain = make_mistakes(&scene, seed, index) && ask;
		enum verdict verdict = run_in(&scene, !plain && index % 4 == 3 ? instance : tracing_dir(), plain);

		asked += plain;
		verdicts[verdict]++;
		if (!nothing_left()) {
			note_scene(&scene);
			verdict = FAILED;
		}
		failures += verdict == FAILED;
		forget_scene(&scene);
	}
	load_ends = true;
	for (unsigned int i = 0; i < cpus; i++)
		pthread_join(threads[i], NULL);
	fuzzing = false;
	count = 0;
	for (unsigned int i = 0; i < VERDICTS; i++)
		count += verdicts[i];
	ok(!failures && taken && taken < commands, "seed %llu: %llu scenes with mistakes leave nothing; %u of %u commands are taken",
	   (unsigned long long)seed, (unsigned long long)count, taken, commands);
	ok(slowest.seconds < limit, "the slowest command takes %.2f s", slowest.seconds);
	note("%.200s", slowest.text);
	ok(!rmdir(instance), "their instance can be removed");
	note("%.1f s; %u times synthetic events said something; of %u scenes that C was asked, too, %u are known to differ, and in %u C "
	     "leaves something", now() - began, said_something, asked, verdicts[DIFFERENT], verdicts[LEFT]);
	free(events_before);
}

/*
 * Sets up two instances: one keeps the events on, so that triggers do not patch the calls at them
 * in and out each time; the other one records the synthetic events.
 */
static void set_up(bool on)
{
	static const char *const events[] = {
		"rhist_events/wake", "rhist_events/run", "rhist_events/stop", "rhist_events/stacks", "syscalls/sys_enter_getsid",
	};
	static char *expedited;

	/* A kernel with one processor lacks it. */
	if (on)
		expedited = slurp("/sys/kernel/rcu_expedited");
	if (expedited)
		append("/sys/kernel/rcu_expedited", on ? "1" : expedited);
	/* Also allocates the pages in which discarded records are made. */
	append(pathf("%s/events/oom/mark_victim/trigger", kernel_dir()), on ? "traceon" : "!traceon");
	if (on && (mkdir(pathf("%s/instances/%s", kernel_dir(), hold), 0700) || mkdir(pathf("%s/instances/%s", kernel_dir(), listener), 0700)))
		die("instances: %s", strerror(errno));
	append(pathf("%s/instances/%s/tracing_on", kernel_dir(), hold), "0");
	for (unsigned int i = 0; i < sizeof(events) / sizeof(*events); i++)
		append(pathf("%s/instances/%s/events/%s/enable", kernel_dir(), hold, events[i]), on ? "1" : "0");
	if (on) {
		pipe_of_listener = open(pathf("%s/instances/%s/trace_pipe", kernel_dir(), listener), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (pipe_of_listener < 0)
			die("trace_pipe: %s", strerror(errno));
		return;
	}
	close(pipe_of_listener);
	if (rmdir(pathf("%s/instances/%s", kernel_dir(), hold)) || rmdir(pathf("%s/instances/%s", kernel_dir(), listener)))
		note("instances: %s", strerror(errno));
}

/* Scenes of the short run on user-mode Linux. */
enum { SHORT = 2000 };

int main(int argc, char **argv)
{
	static const struct option options[] = {
		CHOICE_OPTIONS, { "script", required_argument, NULL, 'f' }, { "print", no_argument, NULL, 'p' },
		{ "fuzz", required_argument, NULL, 'z' }, { 0 },
	};
	struct choice choice = choose(rest_only() || slow_kernel() ? 100 : long_run() ? 50000 : user_mode_linux() ? SHORT : 300);
	const char *script = NULL;
	double fuzz_seconds = 0;
	bool print = false;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'f':
			script = optarg;
			break;
		case 'p':
			print = true;
			break;
		case 'z':
			fuzz_seconds = strtod(optarg, NULL);
			break;
		default:
			if (!take_option(&choice, option))
				return 2;
		}
	}
	verbose = choice.single || script;
	if (print) {
		run_scenes(choice.seed, choice.index, verbose ? 1 : choice.count, true);
		return 0;
	}
	open_kernel_log();
	load_events();
	if (event_source < 0) {
		skip("no module rhist_events", "scenes");
		finish();
	}
	pin(0);
	set_up(true);
	if (script) {
		run_file(strcmp(script, "-") ? script : "/dev/stdin");
	} else if (fuzz_seconds > 0) {
		fuzz(choice.seed, choice.index, verbose ? 1 : UINT64_MAX - choice.index, fuzz_seconds);
	} else if (verbose) {
		run_scenes(choice.seed, choice.index, 1, false);
	} else {
		run_files();
		note("seed %llu", (unsigned long long)choice.seed);
		run_scenes(choice.seed, 0, choice.count, false);
		for (unsigned int i = 0; i < KNOWN; i++)
			check_ceiling(&known[i].ceiling, &known[i].tally, choice.seed == 1 && choice.count == SHORT && user_mode_linux(),
				      choice.count < SHORT ? 1 : choice.count / (double)SHORT, known[i].heading, known[i].reason);
	}
	set_up(false);
	/* The kernel warns of triggers that are left on the events of a module that goes. */
	if (c_is_clean)
		unload_events();
	finish();
}
