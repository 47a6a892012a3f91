/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Scenes: several triggers on several events, with what passes from one to the other: variables,
 * references, actions, synthetic events. README.rst describes the lines of a scene. What
 * make_scene() makes depends on the state of the random numbers only.
 */
#ifndef SCENES_H
#define SCENES_H

#include "random.h"

struct scene {
	char name[80];
	unsigned int count;
	char *lines[80];
	size_t lens[80];		/* they may hold any bytes, and have one more for a NUL */
	char *answers[80];		/* C's answers as in the file, or NULL */
	bool written;			/* in a file, by hand */
	unsigned int differs;		/* known differences that it may show, a bit each */
};

static void forget_scene(struct scene *scene)
{
	while (scene->count) {
		free(scene->lines[--scene->count]);
		free(scene->answers[scene->count]);
	}
}

static void add_line(struct scene *scene, const char *line, size_t len)
{
	char *copy;

	if (scene->count == sizeof(scene->lines) / sizeof(*scene->lines))
		return;
	copy = malloc(len + 1);
	memcpy(copy, line, len);
	copy[len] = 0;
	scene->lines[scene->count] = copy;
	scene->answers[scene->count] = NULL;
	scene->lens[scene->count++] = len;
}

/* --- building blocks of generated scenes */

/*
 * Type of value in a field or a variable. Times differ each time: names of variables and fields
 * that hold them begin with ts or lat, so that they can be taken out of the texts that are
 * compared.
 */
enum kind { NUMBER, TEXT, TIME, STACK };

struct field {
	char name[20], type[24];
	enum kind kind;
};

struct event {
	char word[16], name[40];		/* in a line of a scene, and in a trigger */
	/* Its fields with counterparts in other events, or NULL. */
	const char *key, *task, *who;
	unsigned int count;
	struct field fields[10];
};

static const struct event first_events[] = {
	{ "wake", "rhist_events.wake", "key", "task", "who", 7,
	  { { "key", "u64", NUMBER }, { "task", "pid_t", NUMBER }, { "who", "char[16]", TEXT }, { "amount", "u32", NUMBER },
	    { "small", "s8", NUMBER }, { "level", "int", NUMBER }, { "path", "__data_loc char[]", TEXT } } },
	{ "run", "rhist_events.run", "next_key", "next_task", "next_who", 7,
	  { { "next_key", "u64", NUMBER }, { "next_task", "pid_t", NUMBER }, { "next_who", "char[16]", TEXT },
	    { "total", "u64", NUMBER }, { "part", "u16", NUMBER }, { "change", "s64", NUMBER },
	    { "file", "__data_loc char[]", TEXT } } },
	{ "stop", "rhist_events.stop", "key", "task", "who", 7,
	  { { "key", "u64", NUMBER }, { "task", "pid_t", NUMBER }, { "who", "char[16]", TEXT }, { "total", "u64", NUMBER },
	    { "amount", "u32", NUMBER }, { "status", "int", NUMBER }, { "reason", "__rel_loc char[]", TEXT } } },
	{ "getsid", "syscalls.sys_enter_getsid", NULL, "pid", NULL, 2,
	  { { "pid", "pid_t", NUMBER }, { "__syscall_nr", "int", NUMBER } } },
	{ "stacks", "rhist_events.stacks", "k", NULL, NULL, 2, { { "k", "u64", NUMBER }, { "stack", "unsigned long[]", STACK } } },
};

#define FIRST_EVENTS (sizeof(first_events) / sizeof(*first_events))

struct variable {
	char name[24], type[24];
	enum kind kind;
	bool usecs;
	unsigned int event, key_size;
};

/* Everything that the scene has created so far. */
static struct setup {
	struct event events[FIRST_EVENTS + 4];
	unsigned int count;
	struct variable variables[40];
	unsigned int variable_count;
	unsigned int shape;
	struct scene definitions;
	struct { unsigned int event; struct text text; } triggers[6];
	unsigned int trigger_count;
} setup;

enum { KEY_SHAPE, TASK_SHAPE, WHO_SHAPE, KEY_TASK_SHAPE, PID_SHAPE, COMM_SHAPE, TASK_WHO_SHAPE, SHAPES };

/*
 * Appends the keys of an event in some shape, and returns their size. Uses common_pid if the event
 * lacks such fields.
 */
static unsigned int put_keys(struct text *text, const struct event *event, unsigned int shape)
{
	const char *modifier = percent(4) ? ".hex" : "";

	switch (shape) {
	case KEY_SHAPE:
		if (event->key)
			return put(text, "%s%s", event->key, modifier), 8;
		break;
	case TASK_SHAPE:
		if (event->task)
			return put(text, "%s%s", event->task, modifier), 8;
		break;
	case WHO_SHAPE:
		if (event->who)
			return put(text, "%s", event->who), 16;
		break;
	case KEY_TASK_SHAPE:
		if (event->key && event->task)
			return put(text, "%s,%s%s", event->key, event->task, modifier), 16;
		break;
	case TASK_WHO_SHAPE:
		if (event->who && event->task)
			return put(text, "%s,%s", event->task, event->who), 24;
		break;
	case COMM_SHAPE:
		return put(text, "common_comm"), 256;
	}
	return put(text, "common_pid%s", modifier), 8;
}

static const struct field *pick_field(const struct event *event, enum kind kind)
{
	unsigned int first = below(event->count ?: 1);

	for (unsigned int i = 0; i < event->count; i++) {
		const struct field *field = &event->fields[(first + i) % event->count];

		if (field->kind == kind)
			return field;
	}
	return NULL;
}

/*
 * Returns a variable of this kind, or NULL: seldom one of the same event, and preferably one with
 * keys of this size.
 */
static const struct variable *pick_variable(enum kind kind, unsigned int event, unsigned int key_size)
{
	const struct variable *found = NULL;
	unsigned int first = below(setup.variable_count ?: 1);

	for (unsigned int i = 0; i < setup.variable_count; i++) {
		const struct variable *variable = &setup.variables[(first + i) % setup.variable_count];

		if (variable->kind != kind || (variable->event == event && percent(85)))
			continue;
		/* the beginning of a longer key finds a shorter one */
		if (variable->key_size == key_size || percent(variable->key_size < key_size ? 40 : 3))
			return variable;
		if (percent(3))
			found = variable;
	}
	return found;
}

static void put_reference(struct text *text, const struct variable *variable)
{
	if (percent(2))
		put(text, "$nosuch");
	else if (percent(2))
		put(text, "%s.$%s", setup.events[below(setup.count)].name, variable->name);
	else if (percent(40))
		put(text, "%s.$%s", setup.events[variable->event].name, variable->name);
	else
		put(text, "$%s", variable->name);
}

/* A trigger that is being made. */
struct trigger {
	unsigned int event, key_size;
	struct variable own[20];
	unsigned int own_count;
	int other;				/* the event that a variable came from, or -1 */
	bool times;
};

static const char *some_literal(void)
{
	static const char *const literals[] = { "1", "2", "3", "5", "8", "10", "0x10", "100", "1000", "4294967296", "0" };

	return PICK(literals);
}

/* Appends one operand of an expression with numbers, and sets its type. */
static void put_operand(struct text *text, struct trigger *trigger, char type[24])
{
	const struct field *field = pick_field(&setup.events[trigger->event], NUMBER);
	const struct variable *variable = NULL;

	if (percent(50))
		variable = pick_variable(NUMBER, trigger->event, trigger->key_size);
	if (variable) {
		put_reference(text, variable);
		trigger->other = variable->event;
		strcpy(type, variable->type);
	} else if (field && percent(65)) {
		put(text, "%s%s", field->name, percent(4) ? PICK(((const char *const[]){ ".hex", ".usecs", ".log2", ".buckets=4" })) : "");
		strcpy(type, field->type);
	} else {
		put(text, "%s", some_literal());
		strcpy(type, "u64");
	}
}

static void put_expression(struct text *text, struct trigger *trigger, char type[24])
{
	unsigned int operators = 1 + percent(35) + percent(15) + percent(4);
	char ignored[24];

	if (percent(6)) {
		put(text, "-(");
		put_operand(text, trigger, type);
		put(text, ")");
		return;
	}
	put_operand(text, trigger, type);
	while (operators--) {
		char operator = "++--**/"[below(7)];

		put(text, "%c", operator);
		if (operator == '/' && percent(70))
			put(text, "%s", percent(92) ? PICK(((const char *const[]){ "1", "2", "4", "16", "1024" })) : some_literal());
		else
			put_operand(text, trigger, ignored);
	}
}

/* `name=something` for a variable of this trigger. */
static void put_assignment(struct text *text, struct trigger *trigger)
{
	const struct event *event = &setup.events[trigger->event];
	struct variable *own = &trigger->own[trigger->own_count];
	const struct variable *other = NULL;
	const struct field *field;
	const char *name = "n";
	struct text value = { .len = 0 };

	if (trigger->own_count >= 20)
		return;
	memset(own, 0, sizeof(*own));
	own->event = trigger->event;
	own->key_size = trigger->key_size;
	strcpy(own->type, "u64");
	switch (below(20)) {
	case 0: case 1: case 2:		/* a time */
		own->kind = TIME;
		own->usecs = percent(60);
		name = "ts";
		put(&value, "common_timestamp%s", own->usecs ? ".usecs" : "");
		break;
	case 3: case 4: case 5:		/* how long it took */
		own->kind = TIME;
		name = "lat";
		other = pick_variable(TIME, trigger->event, trigger->key_size);
		if (other && !strncmp(other->name, "ts", 2)) {
			own->usecs = percent(97) ? other->usecs : !other->usecs;
			put(&value, "common_timestamp%s-", own->usecs ? ".usecs" : "");
			put_reference(&value, other);
			break;
		}
		name = "ts";
		put(&value, "common_timestamp");
		break;
	case 6: case 7: case 8:		/* a text */
		own->kind = TEXT;
		name = "str";
		field = pick_field(event, TEXT);
		if (percent(40)) {
			other = pick_variable(TEXT, trigger->event, trigger->key_size);
			if (other) {
				put_reference(&value, other);
				strcpy(own->type, other->type);
				break;
			}
		}
		if (field && percent(70)) {
			put(&value, "%s", field->name);
			strcpy(own->type, field->type);
		} else {
			put(&value, "%s", percent(50) ? "common_comm" : "common_pid.execname");
			strcpy(own->type, "char[]");
		}
		break;
	case 9: case 10: case 11:	/* another one's */
		other = pick_variable(NUMBER, trigger->event, trigger->key_size);
		if (other) {
			put_reference(&value, other);
			strcpy(own->type, other->type);
			break;
		}
		/* fall through */
	case 12: case 13: case 14: case 15:
		if (percent(4)) {
			put(&value, "common_cpu");
			strcpy(own->type, "unsigned int");
			break;
		}
		field = pick_field(event, NUMBER);
		if (field) {
			put(&value, "%s%s", field->name, percent(8) ? PICK(((const char *const[]){ ".hex", ".usecs", ".sym", ".log2" })) : "");
			strcpy(own->type, field->type);
			break;
		}
		/* fall through */
	case 16: case 17: case 18:
		put_expression(&value, trigger, own->type);
		break;
	case 19:
		if (percent(15)) {
			own->kind = STACK;
			name = "st";
			strcpy(own->type, "unsigned long[]");
			put(&value, "%s", pick_field(event, STACK) && percent(50) ? "stack" : "common_stacktrace");
		} else if (trigger->own_count && percent(50)) {
			put(&value, "$%s", trigger->own[0].name);
			own->kind = trigger->own[0].kind;
			strcpy(own->type, trigger->own[0].type);
			name = own->kind == TIME ? "ts" : "n";
		} else {
			put(&value, "%s", some_literal());
		}
	}
	if (other)
		trigger->other = other->event;
	trigger->times |= own->kind == TIME;
	if (percent(5))
		snprintf(own->name, sizeof(own->name), "%s", name);
	else if (percent(12))
		snprintf(own->name, sizeof(own->name), "%s%u", name, below(3));
	else
		snprintf(own->name, sizeof(own->name), "%s%u%c", name, setup.trigger_count, 'a' + trigger->own_count);
	put(text, "%s=", own->name);
	put_bytes(text, value.bytes, value.len);
	trigger->own_count++;
}

/* Appends a parameter of an action, and sets the field that a synthetic event needs for it. */
static void put_param(struct text *text, struct trigger *trigger, int match, unsigned int number, struct field *is)
{
	const struct event *event = &setup.events[trigger->event], *other = match < 0 ? NULL : &setup.events[match];
	const struct variable *variable = NULL;
	const struct field *field = NULL;
	const char *name = NULL;

	switch (below(10)) {
	case 0: case 1: case 2:
		if (trigger->own_count) {
			variable = &trigger->own[below(trigger->own_count)];
			put(text, "$%s", variable->name);
			break;
		}
		/* fall through */
	case 3: case 4:
		variable = pick_variable(below(4) ? NUMBER : percent(50) ? TEXT : TIME, trigger->event, trigger->key_size);
		if (variable) {
			put_reference(text, variable);
			break;
		}
		/* fall through */
	case 5: case 6:
		if (other) {
			field = pick_field(other, percent(75) ? NUMBER : TEXT);
			if (field) {
				if (percent(35))
					put(text, "%s.", other->name);
				put(text, "%s", field->name);
				break;
			}
		}
		/* fall through */
	default:
		field = percent(92) ? pick_field(event, percent(75) ? NUMBER : TEXT) : NULL;
		if (field) {
			if (percent(5))
				put(text, "%s.", event->name);
			put(text, "%s", field->name);
			if (event->key && !strcmp(field->name, event->key))
				name = "key";
			else if (event->task && !strcmp(field->name, event->task))
				name = "task";
			else if (event->who && !strcmp(field->name, event->who))
				name = "who";
			break;
		}
		if (percent(40)) {
			put(text, "common_timestamp");
			*is = (struct field){ .type = "u64", .kind = TIME };
		} else if (percent(50)) {
			put(text, "common_pid");
			*is = (struct field){ .type = "int", .kind = NUMBER };
		} else {
			put(text, "common_comm");
			*is = (struct field){ .type = "char[]", .kind = TEXT };
		}
	}
	if (variable) {
		is->kind = variable->kind;
		strcpy(is->type, variable->type);
	} else if (field) {
		*is = *field;
	}
	if (name)
		strcpy(is->name, name);
	else
		snprintf(is->name, sizeof(is->name), "%s%u", ((const char *const[]){ "n", "s", "ts", "st" })[is->kind], number);
}

/* Defines a synthetic event with these fields, and returns its name. */
static const char *define(const struct field *fields, unsigned int count)
{
	char letter = 'a' + (setup.count - FIRST_EVENTS);
	struct event *event = &setup.events[setup.count++];
	struct text line = { .len = 0 };

	memset(event, 0, sizeof(*event));
	snprintf(event->word, sizeof(event->word), "sc_%c", letter);
	snprintf(event->name, sizeof(event->name), "synthetic.sc_%c", letter);
	put(&line, "synthetic %s", event->word);
	for (unsigned int i = 0; i < count && i < 10; i++) {
		struct field *field = &event->fields[i];
		static const char *const wrong[] = { "u64", "pid_t", "int", "u32", "s64", "char[16]", "char[]", "bool", "s8", "unsigned long" };
		const char *dynamic, *bracket;

		*field = fields[i];
		if (percent(2)) {
			strcpy(field->type, PICK(wrong));
			/* Shown with a wrong type, the value may be an address. */
			field->kind = strchr(field->type, '[') ? TEXT : field->kind == NUMBER ? NUMBER : TIME;
		}
		for (unsigned int before = 0; before < i; before++)
			if (!strcmp(event->fields[before].name, field->name))
				snprintf(field->name, sizeof(field->name), "%.10s_%u", fields[i].name, i);
		dynamic = strstr(field->type, "char[]");
		bracket = strstr(field->type, "char[");
		if (dynamic)
			strcpy(field->type, "__data_loc char[]");
		if (bracket)
			put(&line, "%s char %s%s", i ? ";" : "", field->name, dynamic ? "[]" : bracket + strlen("char"));
		else
			put(&line, "%s %s %s", i ? ";" : "", field->type, field->name);
		if (!strcmp(field->name, "key") && !strcmp(field->type, "u64"))
			event->key = "key";
		if (!strcmp(field->name, "task") && !strcmp(field->type, "pid_t"))
			event->task = "task";
		if (!strcmp(field->name, "who") && !strcmp(field->type, "char[16]"))
			event->who = "who";
		event->count = i + 1;
	}
	add_line(&setup.definitions, line.bytes, line.len);
	if (percent(80)) {
		line.len = 0;
		put(&line, "enable %s", event->word);
		add_line(&setup.definitions, line.bytes, line.len);
	}
	return event->word;
}

/* Returns one of the trigger's own numbers for onmax() or onchange() to track, or NULL. */
static const struct variable *tracked(const struct trigger *trigger)
{
	unsigned int first = below(trigger->own_count ?: 1);

	for (unsigned int i = 0; i < trigger->own_count; i++) {
		const struct variable *own = &trigger->own[(first + i) % trigger->own_count];

		if (own->kind == NUMBER)
			return own;
	}
	return NULL;
}

static void put_trace(struct text *text, struct trigger *trigger, int match)
{
	unsigned int count = percent(1) ? 12 + below(8) : percent(1) ? 65 : 1 + below(4);
	struct field fields[10] = { 0 }, more;
	struct text params = { .len = 0 };
	unsigned int first;
	const char *name;

	for (unsigned int i = 0; i < count; i++) {
		put(&params, "%s", i ? PICK(((const char *const[]){ ",", ",", ",", ", ", " ," })) : "");
		put_param(&params, trigger, match, i, i < 10 ? &fields[i] : &more);
	}
	/* Only later events, since a cycle would never end. */
	first = trigger->event < FIRST_EVENTS ? FIRST_EVENTS : trigger->event + 1;
	if (setup.count < FIRST_EVENTS + 4 && percent(setup.count == first ? 97 : 60))
		name = define(fields, percent(97) ? count : count - 1 ?: 2);
	else if (setup.count > first)
		name = setup.events[first + below(setup.count - first)].word;
	else
		name = "sc_none";
	if (percent(50))
		put(text, "trace(%s,", name);
	else
		put(text, "%s(", name);
	put_bytes(text, params.bytes, params.len);
	put(text, ")");
}

static void put_action(struct text *text, struct trigger *trigger)
{
	const struct variable *own = tracked(trigger);
	const struct event *event = &setup.events[trigger->event];
	int match = trigger->other >= 0 && percent(85) ? trigger->other : (int)below(setup.count);

	if (percent(own ? 45 : 96)) {
		put(text, "onmatch(%s).", setup.events[match].name);
		if (percent(97)) {
			put_trace(text, trigger, match);
			return;
		}
	} else {
		put(text, "%s($%s).", percent(50) ? "onmax" : "onchange", own ? own->name : percent(50) ? "nosuch" : "n0a");
		if (percent(35)) {
			put_trace(text, trigger, -1);
			return;
		}
	}
	if (percent(92)) {
		put(text, "save(");
		for (unsigned int i = 0, count = 1 + below(4); i < count; i++) {
			const struct field *field = pick_field(event, percent(70) ? NUMBER : TEXT);

			put(text, "%s%s", i ? "," : "", field && percent(90) ? field->name : PICK(((const char *const[]){
				"common_pid", "common_comm", "common_timestamp", "nosuch", "$n0a", "common_timestamp.usecs", "common_pid.hex" })));
		}
		put(text, ")");
	} else {
		put(text, "snapshot()");
	}
}

static void put_filter(struct text *text, const struct event *event)
{
	const struct field *number = pick_field(event, NUMBER), *string = pick_field(event, TEXT);

	if (string && percent(30))
		put(text, " if %s != \"task-%u\"", string->name, below(4));
	else if (number && percent(80))
		put(text, " if %s %s %u", number->name, PICK(((const char *const[]){ ">", "!=", "&", "<=" })), below(6));
	else
		put(text, " if common_pid > 0");
}

/* A whole trigger on an event. */
static void make_trigger(struct text *text, unsigned int event)
{
	struct trigger trigger = { .event = event, .other = -1 };
	struct text tokens[8], keys = { .len = 0 };
	unsigned int count = 0, variables = percent(2) ? 14 + below(5) : percent(12) ? 0 : 1 + below(3), actions = 0;
	bool same_shape = percent(88);

	memset(tokens, 0, sizeof(tokens));
	trigger.key_size = put_keys(&keys, &setup.events[event], same_shape ? setup.shape : below(SHAPES));
	put(&tokens[count], "keys=");
	put_bytes(&tokens[count++], keys.bytes, keys.len);
	if (variables) {
		/* in one token or in several */
		bool together = percent(50);

		for (unsigned int i = 0; i < variables; i++) {
			if (i && together)
				put(&tokens[count], ",");
			else if (i && count < 4)
				count++;
			else if (i)
				break;
			put_assignment(&tokens[count], &trigger);
		}
		count++;
	}
	if (percent(20)) {
		const struct variable *variable = pick_variable(percent(85) ? NUMBER : TIME, event, trigger.key_size);
		char type[24];

		put(&tokens[count], "vals=");
		if (variable && percent(60))
			put_reference(&tokens[count], variable);
		else if (percent(60) && pick_field(&setup.events[event], NUMBER))
			put(&tokens[count], "%s", pick_field(&setup.events[event], NUMBER)->name);
		else
			put_expression(&tokens[count], &trigger, type);
		count++;
	}
	if (percent(setup.trigger_count ? 65 : 25))
		actions = 1 + percent(20) + percent(3);
	while (actions-- && count < 7)
		put_action(&tokens[count++], &trigger);
	if (percent(15))
		put(&tokens[count - 1], ":sort=%s%s", percent(70) ? keys.bytes : "hitcount", percent(30) ? ".descending" : "");
	if (percent(97))
		put(&tokens[count++], "size=128");
	put(text, "hist:");
	if (percent(2))
		put(text, "name=sc_named:");
	for (unsigned int i = 0; i < count; i++) {
		put(text, "%s", i ? ":" : "");
		put_bytes(text, tokens[i].bytes, tokens[i].len);
	}
	if (percent(2))
		put(text, ":%s", PICK(((const char *const[]){ "pause", "clear", "nohitcount", "clock=mono", "clock=local" })));
	if (percent(15))
		put_filter(text, &setup.events[event]);
	for (unsigned int i = 0; i < trigger.own_count && setup.variable_count < 40; i++)
		setup.variables[setup.variable_count++] = trigger.own[i];
}

/* Returns true if the text fits into a line, and C can be asked. Times do not serve as keys. */
static bool is_plain(const struct text *text)
{
	const char *keys = strstr(text->bytes, "keys=");

	if (keys && memmem(keys, strcspn(keys, ":"), "common_timestamp", 16))
		return false;
	if (!text->len || text->len > 1500 || strcasestr(text->bytes, "size=0") || strstr(text->bytes, "hitcount.") ||
	    strcasestr(text->bytes, "stacktrace."))
		return false;
	for (size_t i = 0; i < text->len; i++)
		if (text->bytes[i] < ' ' || text->bytes[i] > '~')
			return false;
	return true;
}

/* Changes the line into another trigger's. */
static void change_line(struct text *text)
{
	static const char *const words[] = {
		"nosuch", "key", "next_key", "total", "wake", "run", "stop", "rhist_events", "synthetic", "sc_a", "sc_b", "n0a",
		"n1a", "ts0a", "save", "trace", "snapshot", "onmatch", "onmax", "onchange", "common_pid", "who", "path", "5", "x",
		"task", "level", "common_timestamp", "usecs", "hist", "vals", "keys",
	};
	struct text before = *text;
	size_t at = below(text->len + 1), end, word;
	const char *other = PICK(words);

	if (percent(45)) {
		word = word_at(text, at, &end);
		replace(text, word, end, other, strlen(other));
	} else {
		mutate_once(text);
	}
	if (!is_plain(text))
		*text = before;
}

static void add_trigger_line(struct scene *scene, unsigned int event, const char *prefix, const struct text *text, const char *token)
{
	const char *filter = strstr(text->bytes, " if ");
	size_t len = filter && *token ? (size_t)(filter - text->bytes) : text->len;
	struct text line = { .len = 0 };

	put(&line, "%s %s", setup.events[event].word, prefix);
	put_bytes(&line, text->bytes, len);
	put(&line, "%s", token);
	if (len < text->len)
		put_bytes(&line, filter, text->len - len);
	add_line(scene, line.bytes, line.len);
}

static void add_fire(struct scene *scene)
{
	struct text line = { .len = 0 };

	put(&line, "fire ");
	for (unsigned int i = 0, count = 5 + below(6); i < count; i++) {
		unsigned int event = percent(90) ? below(3) : 3 + below(2);

		put(&line, "%s%s %u %u %u", i ? ", " : "", first_events[event].word, below(6), 1 + below(5), 1 + below(5));
	}
	add_line(scene, line.bytes, line.len);
}

static unsigned int some_event(void)
{
	if (setup.count > FIRST_EVENTS && percent(25))
		return FIRST_EVENTS + below(setup.count - FIRST_EVENTS);
	return percent(92) ? below(3) : 3 + below(2);
}

static void make_scene(struct scene *scene, uint64_t seed, uint64_t index)
{
	unsigned int triggers, changed;
	struct scene rest = { .count = 0 };
	struct text line;

	seed_random(seed, index);
	memset(&setup, 0, sizeof(setup));
	memcpy(setup.events, first_events, sizeof(first_events));
	setup.count = FIRST_EVENTS;
	setup.shape = below(percent(60) ? 2 : SHAPES);
	snprintf(scene->name, sizeof(scene->name), "--seed %llu --index %llu", (unsigned long long)seed, (unsigned long long)index);
	triggers = 2 + below(3);
	changed = percent(30) ? below(triggers) : triggers;
	for (unsigned int i = 0; i < triggers; i++) {
		unsigned int event = some_event();

		memset(&setup.triggers[i].text, 0, sizeof(setup.triggers[i].text));
		setup.triggers[i].event = event;
		make_trigger(&setup.triggers[i].text, event);
		if (i == changed)
			change_line(&setup.triggers[i].text);
		setup.trigger_count++;
		add_trigger_line(&rest, event, "", &setup.triggers[i].text, "");
		if (percent(10))
			add_fire(&rest);
		if (percent(4)) {
			unsigned int which = below(i + 1);

			add_trigger_line(&rest, setup.triggers[which].event, "", &setup.triggers[which].text,
					 PICK(((const char *const[]){ ":pause", ":cont", ":clear", "", "" })));
		}
		if (percent(7)) {
			unsigned int which = below(i + 1);

			add_trigger_line(&rest, setup.triggers[which].event, "!", &setup.triggers[which].text, "");
		}
		if (percent(3)) {
			memset(&line, 0, sizeof(line));
			put(&line, "truncate %s", setup.events[setup.triggers[below(i + 1)].event].word);
			add_line(&rest, line.bytes, line.len);
		}
		if (setup.count > FIRST_EVENTS && percent(4)) {
			memset(&line, 0, sizeof(line));
			put(&line, "synthetic !%s", setup.events[FIRST_EVENTS].word);
			add_line(&rest, line.bytes, line.len);
		}
	}
	add_fire(&rest);
	for (unsigned int i = 0; i < setup.definitions.count; i++)
		add_line(scene, setup.definitions.lines[i], strlen(setup.definitions.lines[i]));
	for (unsigned int i = 0; i < rest.count; i++)
		add_line(scene, rest.lines[i], strlen(rest.lines[i]));
	forget_scene(&setup.definitions);
	forget_scene(&rest);
	memset(&line, 0, sizeof(line));
	put(&line, "remove %u", below(1000));
	add_line(scene, line.bytes, line.len);
}

/*
 * The same with mistakes: lines are changed in any way, go to another event, are missing, come
 * twice or in another order. Returns true if C can be asked, too.
 */
static bool make_mistakes(struct scene *scene, uint64_t seed, uint64_t index)
{
	struct scene whole = { .count = 0 };
	bool plain = true;

	make_scene(&whole, seed, index);
	snprintf(scene->name, sizeof(scene->name), "%s", whole.name);
	for (unsigned int i = 0; i < whole.count; i++) {
		size_t word = strcspn(whole.lines[i], " "), len = whole.lens[i];
		const char *line = whole.lines[i], *text = line + word + (word < len);
		bool definition = !strncmp(line, "synthetic ", 10), trigger = !strncmp(text, "hist:", 5) || !strncmp(text, "!hist:", 6);
		struct text changed = { .len = 0 }, result = { .len = 0 };

		if (percent(3))
			continue;
		put_bytes(&changed, text, line + len - text);
		if (trigger && percent(45))
			mutate(&changed);
		else if (definition && percent(15))
			change_line(&changed);
		plain &= !trigger || is_plain(&changed);
		if (trigger && percent(5))
			put(&result, "%s", setup.events[below(setup.count)].word);
		else
			put_bytes(&result, line, word);
		put(&result, " ");
		put_bytes(&result, changed.bytes, changed.len);
		for (unsigned int times = 1 + percent(3); times; times--)
			add_line(scene, result.bytes, result.len);
	}
	forget_scene(&whole);
	if (scene->count && percent(20)) {
		unsigned int a = below(scene->count), b = below(scene->count);
		char *line = scene->lines[a];
		size_t len = scene->lens[a];

		scene->lines[a] = scene->lines[b];
		scene->lens[a] = scene->lens[b];
		scene->lines[b] = line;
		scene->lens[b] = len;
	}
	return plain;
}

#endif
