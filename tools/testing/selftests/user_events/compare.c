// SPDX-License-Identifier: GPL-2.0
// compare [--steps N] [--seed N]
//
// Sends the same random requests to the kernel's own user events and to rhist's: answers, bits,
// formats, traced texts and user_events_status have to be the same, except for the differences that
// Documentation/differences.rst lists. Needs a kernel with CONFIG_USER_EVENTS.
#define _GNU_SOURCE
#include <getopt.h>

#include "client.h"

#define NAMES 5
#define FILES 2
#define WORDS 4
#define BITS 12		/* of each word; others are rare */

enum { C, OURS, SIDES };

/* Events of the two have names that begin with another letter. */
static const char letters[SIDES] = { 'c', 'r' };
static int files[SIDES][FILES];
/* Bits of each; equal if all goes well. */
static volatile unsigned int words[SIDES][WORDS] __attribute__((aligned(8)));

static unsigned long long seed, state;
static unsigned long step, successes, records, excused, unprintable;
static int wrong;

static unsigned int below(unsigned int limit)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545f4914f6cdd1dull >> 33) % limit;
}

#define any(array) (array)[below(sizeof(array) / sizeof(*(array)))]

static const char *dir(int side)
{
	return side == C ? kernel_dir() : tracing_dir();
}

static const char *name(int side, unsigned int event)
{
	return pathf("%c_compare%u", letters[side], event);
}

__attribute__((format(printf, 1, 2)))
static void differs(const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (wrong++ < 10)
		note("step %lu: %s", step, text);
}

static bool same_answer(const char *what, const int answer[SIDES])
{
	if (answer[C] == answer[OURS]) {
		successes += answer[C] >= 0;
		return true;
	}
	differs("%s: C %s (%d), ours %s (%d)", what, errno_name(answer[C] < 0 ? answer[C] : 0), answer[C],
		errno_name(answer[OURS] < 0 ? answer[OURS] : 0), answer[OURS]);
	return false;
}

/* An event without users goes within moments, with C as well, and is busy until then. */
static bool is_passing(int answer)
{
	return answer == -EBUSY || answer == -EADDRINUSE;
}

/* Does something on both sides, and repeats it if it may have been too early. */
#define on_both(answer, side, expression) do {							\
	double end = now() + 5;									\
	for (int side = 0; side < SIDES; side++)						\
		(answer)[side] = (expression);							\
	while ((answer)[C] != (answer)[OURS] && now() < end) {					\
		bool again = false;								\
		for (int side = 0; side < SIDES; side++)					\
			if (is_passing((answer)[side])) {					\
				(answer)[side] = (expression);					\
				again = true;							\
			}									\
		if (!again)									\
			break;									\
		sleep_ms(5);									\
	}											\
} while (0)

static void same_bits(const char *what)
{
	for (int i = 0; i < WORDS; i++)
		if (words[C][i] != words[OURS][i])
			differs("%s: word %d: C %x, ours %x", what, i, words[C][i], words[OURS][i]);
}

/* Waits until all events that go by themselves are gone. */
static void settle(void)
{
	for (unsigned int i = 0; i < NAMES; i++)
		if (!within_seconds(10, exists(name(C, i)) == exists(name(OURS, i))))
			differs("event %u: C %s, ours %s", i, exists(name(C, i)) ? "is there" : "is gone",
				exists(name(OURS, i)) ? "is there" : "is gone");
}

/* Returns the format file of an event without its name and number. */
static char *format_of(int side, unsigned int event)
{
	char *text = slurp(event_file(name(side, event), "format")), *at = text ? strstr(text, "\nformat:") : NULL;

	if (side == C && text)
		without_lengths(text);
	return at ? cut(text, at) : text;
}

static void same_format(unsigned int event)
{
	char *text[SIDES] = { format_of(C, event), format_of(OURS, event) };

	if (!text[C] || !text[OURS] ? text[C] != text[OURS] : strcmp(text[C], text[OURS])) {
		differs("format of event %u", event);
		note_difference(text[C] ?: "", text[OURS] ?: "");
	}
	free(text[C]);
	free(text[OURS]);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/*
 * Returns the lines of a user_events_status in alphabetical order, without the lines that only
 * ours has.
 */
static char *status_of(int side)
{
	char *text = slurp(pathf("%s/user_events_status", dir(side))), *rest = text, *line, *lines[128];
	char *out = calloc(1, 16384);
	int n = 0;

	while (text && (line = strsep(&rest, "\n")) && n < 128) {
		line += strspn(line, "0123456789") ? strspn(line, "0123456789") + 1 : 0;
		if (!strncmp(line, "Max: ", 5) || !*line)
			continue;
		/* Events of several formats have numbers in their names. */
		if (line[0] == letters[side]) {
			char *dot = strchr(line, '.');

			line[0] = '*';
			if (dot)
				cut(dot + 1, dot + 1 + strspn(dot + 1, "0123456789abcdef"));
		}
		lines[n++] = line;
	}
	qsort(lines, n, sizeof(*lines), by_text);
	for (int i = 0; i < n; i++)
		strcat(strcat(out, lines[i]), "\n");
	free(text);
	return out;
}

static void same_status(void)
{
	char *text[SIDES] = {};

	within_seconds(10, ({
		free(text[C]);
		free(text[OURS]);
		text[C] = status_of(C);
		text[OURS] = status_of(OURS);
		!strcmp(text[C], text[OURS]);
	}));
	if (strcmp(text[C], text[OURS])) {
		differs("user_events_status");
		note_difference(text[C], text[OURS]);
	}
	free(text[C]);
	free(text[OURS]);
}

static const char *const fields[] = {
	"u8 a", "s8 b", "u16 c", "s16 d", "u32 e", "s32 f", "u64 g", "s64 h", "int i", "unsigned int j", "char k",
	"unsigned char l", "short m", "unsigned short n", "char[8] o", "unsigned char[4] p", "char[0x10] q",
	"char[1024] r", "__rel_loc char[] s", "__data_loc char[] t", "__rel_loc u8[] u", "__data_loc u32[] v",
	"__rel_loc unsigned char[] w", "struct some x 12", "struct some y 010", "struct some z +5",
	/* Refused, or nearly */
	"long a", "unsigned long b", "u32", "u32 a 4", "u32  a", "u32 a ", "struct some", "struct some a",
	"struct some a 0", "struct some a x", "struct some a 4 4", "char[] a", "char[0] a", "char[1025] a",
	"char[00000008] a", "char[8 a", "char[8]x a", "char [8] a", "  u32 blanks", "U32 a",
	"unsigned a", "signed int a", "__rel_loc a", "__data_loc", "__rel_loc  char[] a", "void *a", "bool a", "_Bool a",
	"float a", "u128 a", "char a[8]", "struct  some a 4", "union some a 4", "enum some a", "u32 \xe9", "u32 a.b", "u32 a,b",
};

/* Fields with blanks before their end may be nameless, and tabs may be in names. C accepts both. */
static bool is_refused(const char *text)
{
	size_t len = strlen(text);

	return strstr(text, " ;") || strchr(text, '\t') || (len && text[len - 1] == ' ');
}

/* Returns a random text to follow an event's name. */
static const char *description(void)
{
	static const char *const between[] = { ";", "; ", ";", "; ", ";;", ";  " };
	static const char alphabet[] = " ;[]01ucs_ax\t";
	static char text[1024];
	unsigned int n = below(5), limit = below(3) ? 26 : sizeof(fields) / sizeof(*fields);

	*text = 0;
	/* Few of them, so that they are met again. */
	if (!below(3))
		return "u32 value; __rel_loc char[] text";
	if (!below(4))
		return "u32 value";
	for (unsigned int i = 0; i < n; i++) {
		if (i)
			strcat(text, any(between));
		strcat(text, fields[below(limit)]);
	}
	if (!below(4))
		strcat(text, ";");
	if (*text && !below(6)) {
		unsigned int at = below(strlen(text));
		char was = text[at];

		text[at] = alphabet[below(sizeof(alphabet) - 1)];
		if (is_refused(text))
			text[at] = was;
	}
	return text;
}

static void request(void)
{
	static const int sizes[] = { 4, 4, 4, 4, 8, 8, 8, 0, 1, 2, 3, 16 };
	static const char *const flags[] = { "", "", "", "", "", "", "", "", "", ":", ":flag" };
	int answer[SIDES], index[SIDES] = { -1, -1 };
	unsigned int event = below(NAMES), file = below(FILES), word = below(WORDS), size = any(sizes);
	unsigned int bit = below(8) ? below(BITS) : below(70), mode = below(20) ? 0 : below(8);
	unsigned int offset = below(20) ? 0 : below(8);
	const char *what = description(), *flag = any(flags);
	char text[SIDES][1200];

	if (!below(6))
		mode |= USER_EVENT_REG_MULTI_FORMAT;
	if (size == 8)
		word &= ~1u;
	for (int side = 0; side < SIDES; side++)
		snprintf(text[side], sizeof(*text), "%s%s %s", name(side, event), flag, what);
	on_both(answer, side, reg_flags(files[side][file], text[side], (char *)(words[side] + word) + offset, size,
					bit, mode, &index[side]));
	if (!same_answer(pathf("register \"%s\", size %u, bit %u, flags %u", text[OURS] + 2, size, bit, mode), answer))
		return;
	if (index[C] != index[OURS])
		differs("register \"%s\": index: C %d, ours %d", text[OURS] + 2, index[C], index[OURS]);
	same_bits("register");
	same_format(event);
}

static void give_back(void)
{
	unsigned int file = below(FILES), word = below(WORDS), bit = below(BITS);
	int answer[SIDES];

	on_both(answer, side, unreg(files[side][file], words[side] + word, bit));
	same_answer("unregister", answer);
	same_bits("unregister");
	settle();
}

/*
 * An event that is about to go on both sides may have gone on one of them only. Returns true if it
 * goes on the other as well, once all listeners are gone.
 */
static bool is_going(const int answer[SIDES], unsigned int event)
{
	if ((answer[C] == -ENOENT) == (answer[OURS] == -ENOENT))
		return false;
	for (int side = 0; side < SIDES; side++)
		enable(name(side, event), false);
	settle();
	return true;
}

static void delete(void)
{
	unsigned int event = below(NAMES);
	int answer[SIDES];

	on_both(answer, side, del(files[side][0], name(side, event)));
	if (is_going(answer, event))
		return;
	same_answer(pathf("delete event %u", event), answer);
	settle();
}

static void listen_or_not(void)
{
	unsigned int event = below(NAMES);
	bool on = below(4);
	int answer[SIDES];

	on_both(answer, side, enable(name(side, event), on));
	if (is_going(answer, event))
		return;
	same_answer(pathf("enable event %u: %d", event, on), answer);
	same_bits("enable");
	if (!on)
		settle();
}

static void reopen(void)
{
	unsigned int file = below(FILES);

	for (int side = 0; side < SIDES; side++) {
		close(files[side][file]);
		files[side][file] = open(pathf("%s/user_events_data", dir(side)), O_RDWR | O_CLOEXEC);
	}
	settle();
}

/* Collects the records of an event since the trace was emptied. */
static const char *traced(const char *trace, int side, char *out)
{
	char from[4] = { ' ', letters[side], '_', 0 };

	*out = 0;
	for (const char *at = trace; at && (at = strstr(at, from)); at++)
		strncat(out, at + 3, strcspn(at + 3, "\n") + 1);
	return out;
}

/* Returns true for printable ASCII, in lines. */
static bool is_plain(const char *text)
{
	while ((*text >= ' ' && *text <= '~') || *text == '\n')
		text++;
	return !*text;
}

static void emit_some(void)
{
	static char text[SIDES][1 << 16];
	unsigned int file = below(FILES), len = below(2) ? 8 + below(40) : below(1200);
	int index = below(12) ? (int)below(4) : (int)below(300) - 20, answer[SIDES];
	unsigned char payload[1200];
	char *trace;

	/* A newline would end C's output of a character array. */
	for (unsigned int i = 0; i < len; i++)
		while ((payload[i] = below(3) ? 0 : below(256)) == '\n')
			;
	/* Places near the beginning, so that some are within. */
	for (unsigned int i = 0; i + 4 <= len && i < 12; i++)
		if (!below(6)) {
			unsigned int loc = DYN_LOC(below(24), below(12));

			memcpy(payload + i, &loc, 4);
		}
	truncate_file(pathf("%s/trace", kernel_dir()));
	for (int side = 0; side < SIDES; side++)
		answer[side] = emit(files[side][file], index, payload, len);
	/* A string in front of the payload. */
	if (answer[OURS] == -EFAULT && answer[C] >= 0) {
		excused++;
		return;
	}
	if (!same_answer(pathf("write %u bytes to index %d", len, index), answer) || answer[C] < 0)
		return;
	records++;
	trace = slurp(pathf("%s/trace", kernel_dir()));
	if (strcmp(traced(trace, C, text[C]), traced(trace, OURS, text[OURS]))) {
		/* C shows unprintable characters of arrays unchanged. */
		if (is_plain(text[C])) {
			differs("what is traced");
			note_difference(text[C], text[OURS]);
		} else {
			unprintable++;
		}
	}
	free(trace);
}

/* Ends all listening, and gives everything back. */
static void end(void)
{
	for (int side = 0; side < SIDES; side++) {
		for (unsigned int i = 0; i < NAMES; i++)
			enable(name(side, i), false);
		append(pathf("%s/events/user_events_multi/enable", kernel_dir()), "0");
		for (int word = 0; word < WORDS; word++)
			for (int bit = 0; bit < 64; bit++)
				unreg(files[side][0], words[side] + word, bit);
		for (int i = 0; i < FILES; i++)
			close(files[side][i]);
		files[side][0] = open(pathf("%s/user_events_data", dir(side)), O_RDWR | O_CLOEXEC);
		for (unsigned int i = 0; i < NAMES; i++)
			within_seconds(5, del(files[side][0], name(side, i)) != -EBUSY);
		close(files[side][0]);
	}
	settle();
	same_status();
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "steps", required_argument, NULL, 'n' }, { "seed", required_argument, NULL, 's' }, {},
	};
	unsigned long steps = long_run() ? 20000 : 1500;
	int option;

	/* A short run repeats the same requests each time; a long run tries others. */
	seed = long_run() ? time(NULL) ^ getpid() : 1;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'n': steps = strtoul(optarg, NULL, 0); break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		default: return 2;
		}
	}
	if (!kernel_has_own()) {
		skip("the kernel has none of its own", "the same requests to both");
		finish();
	}
	note("--seed %llu --steps %lu", seed, steps);
	state = seed | 1;
	for (int side = 0; side < SIDES; side++)
		for (int i = 0; i < FILES; i++)
			files[side][i] = open(pathf("%s/user_events_data", dir(side)), O_RDWR | O_CLOEXEC);
	for (step = 0; step < steps && wrong < 50; step++) {
		switch (below(100)) {
		case 0 ... 34: request(); break;
		case 35 ... 42: give_back(); break;
		case 43 ... 45: delete(); break;
		case 46 ... 57: listen_or_not(); break;
		case 58: reopen(); break;
		case 59: same_status(); break;
		default: emit_some();
		}
	}
	end();
	ok(!wrong, "%lu steps, %lu of them with success, %lu records: the same", step, successes, records);
	ok(successes > steps / 10 && records > steps / 100, "and some of each");
	note("%lu strings in front of a payload, %lu records with unprintable strings", excused, unprintable);
	finish();
}
