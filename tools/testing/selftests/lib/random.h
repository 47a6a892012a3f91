/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random numbers, texts made from them, changes to such texts, and the choice of the texts to make.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include <getopt.h>

#include "tracing.h"

/* A text, which may hold any bytes, and one byte more for a NUL. */
struct text {
	size_t len;
	char bytes[5000];
};

#define TEXT_MAX (sizeof(((struct text *)0)->bytes) - 1)

static uint64_t random_state;

/* A random number that depends only on seed and index (splitmix64). */
__maybe static void seed_random(uint64_t seed, uint64_t index)
{
	random_state = seed * 0x9e3779b97f4a7c15 + index * 0xd1342543de82ef95 + 1;
}

/* Chosen inputs: `count` with this seed from the first on, or only the one with this index. */
struct choice {
	uint64_t count, seed, index;
	bool single;
};

#define CHOICE_OPTIONS \
	{ "count", required_argument, NULL, 'c' }, { "seed", required_argument, NULL, 's' }, \
	{ "index", required_argument, NULL, 'i' }

/* Defaults without options: a long run has another seed each time. */
__maybe static struct choice choose(uint64_t count)
{
	struct choice choice = { .count = count, .seed = 1 };

	if (long_run()) {
		if (syscall(SYS_getrandom, &choice.seed, sizeof(choice.seed), 0) != sizeof(choice.seed))
			die("no random seed");
		choice.seed >>= 32;
	}
	return choice;
}

/* Handles an option from getopt_long(). Returns true if it is one of CHOICE_OPTIONS. */
__maybe static bool take_option(struct choice *choice, int option)
{
	switch (option) {
	case 'c':
		choice->count = strtoull(optarg, NULL, 0);
		return true;
	case 's':
		choice->seed = strtoull(optarg, NULL, 0);
		return true;
	case 'i':
		choice->index = strtoull(optarg, NULL, 0);
		choice->single = true;
		return true;
	}
	return false;
}

__maybe static uint64_t random_bits(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

__maybe static unsigned int below(unsigned int n)
{
	return random_bits() % n;
}

__maybe static bool percent(unsigned int chance)
{
	return below(100) < chance;
}

__maybe static void put_bytes(struct text *text, const char *bytes, size_t len)
{
	if (len > TEXT_MAX - text->len)
		len = TEXT_MAX - text->len;
	memmove(text->bytes + text->len, bytes, len);
	text->len += len;
	text->bytes[text->len] = 0;
}

__attribute__((format(printf, 2, 3)))
__maybe static void put(struct text *text, const char *format, ...)
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

__maybe static const char *pick(const char *const *list)
{
	unsigned int count = 0;

	while (list[count])
		count++;
	return count ? list[below(count)] : "nosuch";
}

/* Numbers, most of which are valid; some are at the limits of what C accepts. */
__maybe static const char *number(bool wild)
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

/* Finds the first word of a text from `from` on. Returns its begin, and sets its end. */
__maybe static size_t word_at(const struct text *text, size_t from, size_t *end)
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

__maybe static void replace(struct text *text, size_t from, size_t to, const char *bytes, size_t len)
{
	struct text tail = { .len = 0 };

	put_bytes(&tail, text->bytes + to, text->len - to);
	text->len = from;
	put_bytes(text, bytes, len);
	put_bytes(text, tail.bytes, tail.len);
}

/* One change. */
__maybe static void mutate_once(struct text *text)
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
	case 7: case 8:		/* removes or repeats a word */
		word = word_at(text, at, &end);
		memcpy(piece, text->bytes + word, end - word);
		if (percent(50))
			replace(text, word, end, "", 0);
		else
			replace(text, word, word, piece, end - word);
		break;
	case 9: case 10:	/* replaces a word with another one */
		word = word_at(text, at, &end);
		other = word_at(text, below(text->len + 1), &other_end);
		memcpy(piece, text->bytes + other, other_end - other);
		replace(text, word, end, piece, other_end - other);
		break;
	case 11:		/* replaces a word with a number, or a huge one */
		word = word_at(text, at, &end);
		memset(piece, '9', 300);
		if (percent(20)) {
			replace(text, word, end, piece, 1 + below(300));
		} else {
			const char *digits = number(true);

			replace(text, word, end, digits, strlen(digits));
		}
		break;
	/* Repeats a byte, or a piece, up to more than may be written. */
	case 12:
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

__maybe static void mutate(struct text *text)
{
	for (unsigned int changes = 1 + below(3); changes; changes--)
		mutate_once(text);
}

#endif
