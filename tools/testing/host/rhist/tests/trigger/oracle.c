// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's parser of hist triggers as a program: reads commands, one per line in hexadecimal,
 * and writes the logged errors and the result of each.
 *
 * types.h, functions.h and split.h are pieces of the kernel's source. Here is just enough around
 * them. Only one trigger exists at a time, and memory is not freed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef long long s64;

/* Types and numbers */

#define noinline
#define unlikely(x) (x)
#define __free(x)
#define return_ptr(x) return x
#define ALIGN(x, a) (((x) + (a) - 1) & ~((a) - 1))
#define check_mul_overflow(a, b, d) __builtin_mul_overflow(a, b, d)
#define check_add_overflow(a, b, d) __builtin_add_overflow(a, b, d)
#define ERR_PTR(x) ((void *)(long)(x))
#define PTR_ERR(x) ((long)(x))
#define ERR_CAST(x) ((void *)(x))
#define IS_ERR(x) ((unsigned long)(x) >= (unsigned long)-4095)

/* hitcount.log2 makes the kernel warn. */
#define WARN_ON(x) (x)
#define WARN_ON_ONCE(x) (x)

#define KSTRTOX_OVERFLOW (1U << 31)
#define _tolower(c) ((char)((c) | 0x20))
#define isdigit(c) ((c) >= '0' && (c) <= '9')
#define isxdigit(c) (isdigit(c) || (_tolower(c) >= 'a' && _tolower(c) <= 'f'))
#define _parse_integer(s, base, p) _parse_integer_limit(s, base, p, INT_MAX, 0)

static unsigned int ilog2(unsigned long n)
{
	return 63 - __builtin_clzl(n);
}

static unsigned long roundup_pow_of_two(unsigned long n)
{
	/* Undefined in the kernel for 0, and beyond the largest power of two. */
	return n < 2 || n > 1UL << 63 ? 1 : 1UL << (64 - __builtin_clzl(n - 1));
}

/* Strings and memory */

#define GFP_KERNEL 0
#define kzalloc(size, flags) calloc(1, size)
#define kzalloc_obj(type) calloc(1, sizeof(type))
#define kstrdup(s, flags) strdup(s)
#define kstrdup_const(s, flags) strdup(s)
#define kfree(p) ((void)(p))
#define kfree_const(p) ((void)(p))
#define str_has_prefix(s, prefix) (strncmp(s, prefix, strlen(prefix)) ? 0 : strlen(prefix))

static bool isspace(unsigned char c)
{
	return (c >= '\t' && c <= '\r') || c == ' ' || c == 0xa0;
}

static char *strstrip(char *s)
{
	size_t length;

	while (isspace(*s))
		s++;
	for (length = strlen(s); length && isspace(s[length - 1]); length--)
		s[length - 1] = '\0';
	return s;
}

struct seq_buf {
	char *buffer;
	size_t size;
	size_t len;
};

static void seq_buf_init(struct seq_buf *s, char *buffer, size_t size)
{
	*s = (struct seq_buf){ buffer, size, 0 };
}

static void seq_buf_printf(struct seq_buf *s, const char *format, ...)
{
	size_t room = s->len < s->size ? s->size - s->len : 0;
	va_list args;

	va_start(args, format);
	s->len += vsnprintf(room ? s->buffer + s->len : NULL, room, format, args);
	va_end(args);
	if (s->len >= s->size)
		s->len = s->size + 1;
}
#define seq_buf_puts(s, text) seq_buf_printf(s, "%s", text)
#define seq_buf_putc(s, c) seq_buf_printf(s, "%c", c)
#define seq_buf_has_overflowed(s) ((s)->len > (s)->size)

/* The event of walk.rs */

#define MAX_FILTER_STR_VAL 256U
#define STR_VAR_LEN_MAX 256
#define TRACING_MAP_BITS_DEFAULT 11
#define TRACING_MAP_BITS_MAX 17
#define TRACING_MAP_BITS_MIN 7
#define TRACING_MAP_KEYS_MAX 3
#define TRACING_MAP_VALS_MAX 3
#define TRACING_MAP_FIELDS_MAX 6
#define TRACING_MAP_VARS_MAX 16
#define TRACING_MAP_SORT_KEYS_MAX 2
#define SYNTH_FIELDS_MAX 64
#define HIST_STACKTRACE_DEPTH 31
#define HIST_STACKTRACE_SIZE (HIST_STACKTRACE_DEPTH * 8)

struct tracing_map_sort_key {
	unsigned int field_idx;
	bool descending;
};

struct trace_array;
struct trace_event_class {
	const char *system;
};
struct trace_event_call {
	struct trace_event_class *class;
	const char *name;
};
struct trace_event_file {
	struct trace_array *tr;
	struct trace_event_call *event_call;
};
#define trace_event_name(call) ((call)->name)

enum {
	FILTER_OTHER,
	FILTER_STATIC_STRING,
	FILTER_DYN_STRING,
	FILTER_RDYN_STRING,
	FILTER_PTR_STRING,
	FILTER_COMM,
	FILTER_CPU,
	FILTER_STACKTRACE,
};
struct ftrace_event_field {
	const char *name;
	const char *type;
	int filter_type;
	int size;
	int is_signed;
};
#define is_function_field(field) false
#define is_string_field(field) ((field)->filter_type >= FILTER_STATIC_STRING && \
				(field)->filter_type <= FILTER_PTR_STRING)

static struct ftrace_event_field *trace_find_event_field(struct trace_event_call *call,
							 const char *name)
{
	static struct ftrace_event_field fields[] = {
		{ "pid", "long", FILTER_OTHER, 8, 1 },
		{ "prio", "long", FILTER_OTHER, 8, 1 },
		{ "lat", "u64", FILTER_OTHER, 8, 0 },
		{ "id", "long", FILTER_OTHER, 8, 1 },
		{ "name", "char[16]", FILTER_STATIC_STRING, 16, 0 },
		{ "stack", "unsigned long[]", FILTER_STACKTRACE, 4, 0 },
		{ "common_pid", "int", FILTER_OTHER, 4, 1 },
		{ "common_type", "unsigned short", FILTER_OTHER, 2, 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (!strcmp(fields[i].name, name))
			return &fields[i];
	}
	return NULL;
}

/* The log */

static char *last_cmd;

static unsigned int errpos(const char *s)
{
	const char *found = s ? strstr(last_cmd, s) : NULL;

	return found ? found - last_cmd : 0;
}

static void hist_err(struct trace_array *tr, u8 type, u16 pos);

#include "types.h"

static void hist_err(struct trace_array *tr, u8 type, u16 pos)
{
	printf("[%s@%u] ", err_text[type], pos);
}

/* Stubs of functions that need other triggers, or a histogram */

#define destroy_hist_trigger_attrs(attrs)
#define destroy_hist_field(field, level)
#define free_var_defs(hist_data)
#define track_data_destroy(hist_data, data)
#define onmatch_destroy(data)
#define create_alias(hist_data, field, name) NULL
#define create_var_ref(hist_data, field, system, event) NULL
#define find_event_var(hist_data, system, event, name) NULL
#define find_var(hist_data, file, name) find_var_field(hist_data, name)
#define field_has_hist_vars(field, level) false
#define hist_field_get_div_fn(divisor) HIST_FIELD_FN_DIV
#define check_track_val_max NULL
#define check_track_val_changed NULL
#define save_track_data_vars NULL
#define save_track_data_snapshot NULL
#define action_trace NULL
#define ontrack_action NULL
#define event_trigger_empty_param(param) (!(param))

static struct hist_field *find_var_field(struct hist_trigger_data *hist_data, const char *name)
{
	unsigned int i;

	for_each_hist_field(i, hist_data) {
		struct hist_field *field = hist_data->fields[i];

		if (field && field->flags & HIST_FIELD_FL_VAR && !strcmp(field->var.name, name))
			return field;
	}
	return NULL;
}

static void *event_file(struct trace_array *tr, const char *system, const char *event)
{
	if (!strcmp(system, "sched") && !strcmp(event, "sched_waking"))
		return NULL;
	return ERR_PTR(-EINVAL);
}

/* Of two constants. */
static u64 hist_fn_call(struct hist_field *field, void *elt, void *buffer, void *rbe, void *event)
{
	u64 a = field->operands[0]->constant;
	u64 b = field->operands[1]->constant;

	switch (field->fn_num) {
	case HIST_FIELD_FN_PLUS:
		return a + b;
	case HIST_FIELD_FN_MINUS:
		return a - b;
	case HIST_FIELD_FN_MULT:
		return a * b;
	default:
		return a / b;
	}
}

static struct hist_field *parse_expr(struct hist_trigger_data *hist_data,
				     struct trace_event_file *file, char *str,
				     unsigned long flags, char *var_name,
				     unsigned int *n_subexprs);

static int kstrtoul(const char *s, unsigned int base, unsigned long *value);

#include "functions.h"

static int kstrtoul(const char *s, unsigned int base, unsigned long *value)
{
	unsigned long long wide;
	int ret = kstrtoull(s, base, &wide);

	if (!ret)
		*value = wide;
	return ret;
}

static int parse(char *param_and_filter)
{
	struct trace_event_class class = { "sched" };
	struct trace_event_call call = { &class, "sched_switch" };
	struct trace_event_file file = { NULL, &call };
	struct hist_trigger_data *hist_data;
	struct hist_trigger_attrs *attrs;
	char *param, *filter, *p, *start;
	int ret;

#include "split.h"

	attrs = parse_hist_trigger_attrs(NULL, param);
	if (IS_ERR(attrs))
		return PTR_ERR(attrs);
	hist_data = calloc(1, sizeof(*hist_data));
	hist_data->attrs = attrs;
	hist_data->event_file = &file;
	ret = parse_actions(hist_data);
	if (!ret)
		ret = create_hist_fields(hist_data, &file);
	if (!ret)
		ret = create_sort_keys(hist_data);
	return ret;
}

int main(void)
{
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		char *written = calloc(1, strlen(line)), *params;
		size_t i;

		for (i = 0; sscanf(line + 2 * i, "%2hhx", (u8 *)written + i) == 1; i++)
			;
		params = strstrip(written);
		strsep(&params, ": \t");
		while (params && isspace(*params))
			params++;
		if (params && !*params)
			params = NULL;
		if (asprintf(&last_cmd, "hist:%s", params ? params : "") < 0)
			return 1;
		printf("%d\n", parse(params));
	}
	return 0;
}
