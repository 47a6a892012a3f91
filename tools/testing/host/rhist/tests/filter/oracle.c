// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's event filters as a program: reads an event, records and filters, one per line, and
 * writes for each filter the logged errors, its errno, and the records that it holds for.
 *
 * library.h, types.h and filter.h are pieces of the kernel's source. Here is just enough around
 * them. Memory of the parser is not freed.
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
#include <strings.h>

/* Otherwise a prototype that mentions it first would declare a type of its own. */
struct regex;

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef long long s64;

#define noinline
#define unlikely(x) (x)
#define __always_inline inline
#define __percpu
#define __pure
#define __rcu
#define __user
#define fallthrough __attribute__((fallthrough))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define check_mul_overflow(a, b, d) __builtin_mul_overflow(a, b, d)
#define check_add_overflow(a, b, d) __builtin_add_overflow(a, b, d)
#define ERR_PTR(x) ((void *)(long)(x))
#define PTR_ERR(x) ((long)(x))
#define IS_ERR(x) ((unsigned long)(x) >= (unsigned long)-4095)
#define WARN_ON(x) ((x) ? abort(), 1 : 0)
#define WARN_ON_ONCE(x) WARN_ON(x)
#define EXPORT_SYMBOL_GPL(x)
#define rcu_dereference_raw(x) (x)
#define rcu_assign_pointer(p, x) ((p) = (x))

/* Strings, numbers and memory */

#define GFP_KERNEL 0
#define kfree(p) ((void)(p))
#define kmalloc(size, flags) malloc(size)
#define kzalloc(size, flags) calloc(1, size)
#define kmalloc_array(n, size, flags) malloc((n) * (size))
#define kmalloc_obj(x) malloc(sizeof(x))
#define kzalloc_obj(x) calloc(1, sizeof(x))
#define kmalloc_objs(x, n) malloc((n) * sizeof(x))
#define kzalloc_objs(x, n) calloc(n, sizeof(x))
#define alloc_percpu(type) calloc(1, sizeof(type))
#define this_cpu_ptr(p) (p)
#define str_has_prefix(s, prefix) (strncmp(s, prefix, strlen(prefix)) ? 0 : strlen(prefix))

#define KSTRTOX_OVERFLOW (1U << 31)
#define _parse_integer(s, base, p) _parse_integer_limit(s, base, p, INT_MAX, 0)

static void *kmemdup_nul(const char *s, size_t len, int flags)
{
	return strndup(s, len);
}

static void strscpy(char *to, const char *from, size_t size)
{
	snprintf(to, size, "%s", from);
}

static char *strnstr(const char *s, const char *part, size_t len)
{
	return memmem(s, len, part, strlen(part));
}

static void bitmap_zero(unsigned long *map, unsigned int bits)
{
	memset(map, 0, (bits + 63) / 64 * 8);
}

static void bitmap_set(unsigned long *map, unsigned int start, unsigned int count)
{
	for (; count--; start++)
		map[start / 64] |= 1UL << start % 64;
}

#include "library.h"

static int kstrtoul(const char *s, unsigned int base, unsigned long *value)
{
	unsigned long long wide;
	int ret = kstrtoull(s, base, &wide);

	if (!ret)
		*value = wide;
	return ret;
}

/* The machine */

#define TASK_COMM_LEN 16

static unsigned int nr_cpu_ids;

struct cpumask {
	unsigned long bits[16];
};

#define cpumask_size() sizeof(struct cpumask)
#define cpulist_parse(s, mask) bitmap_parselist(s, (mask)->bits, nr_cpu_ids)

static bool cpumask_test_cpu(unsigned int cpu, const struct cpumask *mask)
{
	return mask->bits[cpu / 64] >> cpu % 64 & 1;
}

static unsigned int cpumask_nth(unsigned int n, const struct cpumask *mask)
{
	unsigned int cpu;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		if (cpumask_test_cpu(cpu, mask) && !n--)
			break;
	return cpu;
}

static unsigned int cpumask_first(const struct cpumask *mask)
{
	return cpumask_nth(0, mask);
}

static unsigned int cpumask_weight(const struct cpumask *mask)
{
	unsigned int cpu, weight = 0;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		weight += cpumask_test_cpu(cpu, mask);
	return weight;
}

static bool cpumask_equal(const struct cpumask *a, const struct cpumask *b)
{
	unsigned int cpu;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		if (cpumask_test_cpu(cpu, a) != cpumask_test_cpu(cpu, b))
			return false;
	return true;
}

static bool cpumask_intersects(const struct cpumask *a, const struct cpumask *b)
{
	unsigned int cpu;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		if (cpumask_test_cpu(cpu, a) && cpumask_test_cpu(cpu, b))
			return true;
	return false;
}

struct task {
	char comm[TASK_COMM_LEN];
};

/* Where a hit happens. */
static struct task *current;
static int this_cpu;

#define raw_smp_processor_id() this_cpu

/* Memory that pointers in records point to. */
struct space {
	unsigned long base;
	char *bytes;
	size_t len;
};

static struct space kernel, user;

static long strncpy_nofault(char *to, struct space *space, unsigned long from, long count)
{
	long i;

	for (i = 0; i < count; i++) {
		if (from + i - space->base >= space->len)
			return -EFAULT;
		to[i] = space->bytes[from + i - space->base];
		if (!to[i])
			return i + 1;
	}
	to[count - 1] = 0;
	return count;
}

#define strncpy_from_kernel_nofault(to, from, count) \
	strncpy_nofault(to, &kernel, (unsigned long)(from), count)
#define strncpy_from_user_nofault(to, from, count) \
	strncpy_nofault(to, &user, (unsigned long)(from), count)

struct symbol {
	char name[16];
	unsigned long start, size;
};

static struct symbol symbols[16];
static int n_symbols;

static unsigned long kallsyms_lookup_name(const char *name)
{
	int i;

	for (i = 0; i < n_symbols; i++)
		if (!strcmp(symbols[i].name, name))
			return symbols[i].start;
	return 0;
}

static int kallsyms_lookup_size_offset(unsigned long at, unsigned long *size, unsigned long *offset)
{
	int i;

	for (i = 0; i < n_symbols; i++) {
		*size = symbols[i].size;
		*offset = at - symbols[i].start;
		if (!*offset || *offset < *size)
			return 1;
	}
	return 0;
}

/* The event */

#define MAX_FILTER_STR_VAL 256U

enum {
	FILTER_OTHER,
	FILTER_STATIC_STRING,
	FILTER_DYN_STRING,
	FILTER_RDYN_STRING,
	FILTER_PTR_STRING,
	FILTER_TRACE_FN,
	FILTER_CPUMASK,
	FILTER_COMM,
	FILTER_CPU,
	FILTER_STACKTRACE,
};

struct ftrace_event_field {
	char name[32];
	int filter_type, offset, size, is_signed;
};

struct trace_event_call {
	struct ftrace_event_field fields[64];
	int n_fields;
};

static struct trace_event_call event;

static struct ftrace_event_field *
trace_find_event_field(struct trace_event_call *call, const char *name)
{
	int i;

	for (i = 0; i < call->n_fields; i++)
		if (!strcmp(call->fields[i].name, name))
			return call->fields + i;
	return NULL;
}

#define ftrace_event_is_function(call) false

struct trace_array;

struct trace_seq {
	struct {
		int len;
	} seq;
	char buffer[1];
};

#define trace_seq_init(s) ((s)->seq.len = 0)
#define trace_seq_puts(s, text) ((void)(s))
#define trace_seq_putc(s, c) ((void)(s))
#define trace_seq_printf(s, ...) ((void)(s))

static void tracing_log_err(struct trace_array *tr, const char *loc, const char *cmd,
			    const char **errs, u8 type, u16 pos)
{
	printf("[%s: %s@%u] ", loc, errs[type], pos);
}

#include "types.h"
#include "filter.h"

/* Each line is one command. */

struct hit {
	struct task task;
	int cpu;
	void *record;
};

static struct hit hits[64];
static int n_hits;

static char *unhex(const char *hex, size_t *len)
{
	char *bytes = calloc(1, strlen(hex) / 2 + 1);

	for (*len = 0; sscanf(hex + 2 * *len, "%2hhx", (u8 *)bytes + *len) == 1; ++*len)
		;
	return bytes;
}

static void try(char *text)
{
	struct event_filter *filter = calloc(1, sizeof(*filter));
	struct filter_parse_error pe = {};
	int i, err;

	filter->filter_string = text;
	err = process_preds(&event, text, filter, &pe);
	if (err)
		append_filter_err(NULL, &pe, filter);
	printf("%d", err);
	for (i = 0; !err && i < n_hits; i++) {
		current = &hits[i].task;
		this_cpu = hits[i].cpu;
		printf("%s%d", i ? "" : " ", filter_match_preds(filter, hits[i].record));
	}
	puts("");
}

int main(void)
{
	static char line[65536], hex[65536], name[32];
	struct ftrace_event_field *field;
	struct symbol *symbol;
	struct space *space;
	struct hit *hit;
	size_t len;

	while (fgets(line, sizeof(line), stdin)) {
		char *rest = line + 1;

		switch (line[0]) {
		case 'n':
			nr_cpu_ids = atoi(rest);
			break;
		case 'e':
			field = event.fields + event.n_fields++;
			sscanf(rest, "%31s %d %d %d %d", field->name, &field->offset, &field->size,
			       &field->is_signed, &field->filter_type);
			break;
		case 's':
			symbol = symbols + n_symbols++;
			sscanf(rest, "%15s %lu %lu", symbol->name, &symbol->start, &symbol->size);
			break;
		case 'm':
			space = *rest++ == 'k' ? &kernel : &user;
			sscanf(rest, "%lu %s", &space->base, hex);
			space->bytes = unhex(hex, &space->len);
			break;
		case 'r':
			hit = hits + n_hits++;
			sscanf(rest, "%d %s", &hit->cpu, hex);
			memcpy(hit->task.comm, unhex(hex, &len), sizeof(hit->task.comm));
			hit->record = unhex(strrchr(rest, ' ') + 1, &len);
			break;
		case 'f':
			try(unhex(rest + 1, &len));
			break;
		}
	}
	return 0;
}
