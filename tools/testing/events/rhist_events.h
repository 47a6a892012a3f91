/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rhist_events

#if !defined(RHIST_EVENTS_H) || defined(TRACE_HEADER_MULTI_READ)
#define RHIST_EVENTS_H

#include <linux/cpumask.h>
#include <linux/minmax.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>

#include "values.h"

#ifndef RHIST_EVENTS_TYPES
#define RHIST_EVENTS_TYPES

enum rhist_colour { RHIST_RED, RHIST_GREEN, RHIST_BLUE };

struct rhist_pair {
	u32 left, right;
};

struct rhist_wide {
	u64 number[3];
};

extern const char *const rhist_names[4];
unsigned long rhist_frame(u64 k);
void rhist_nest(unsigned int context);

/* The upper bits of number k that fit into a field of this type. */
#define rhist_bits(type, k) ((type)(rhist_number(k) >> (64 - 8 * sizeof(type))))

#endif

TRACE_DEFINE_ENUM(RHIST_RED);
TRACE_DEFINE_ENUM(RHIST_GREEN);
TRACE_DEFINE_ENUM(RHIST_BLUE);

/* Fields that a histogram reads as numbers. */
TRACE_EVENT(numbers,

	TP_PROTO(u64 k),

	TP_ARGS(k),

	TP_STRUCT__entry(
		__field(u8, u8)
		__field(s8, s8)
		__field(u16, u16)
		__field(s16, s16)
		__field(u32, u32)
		__field(s32, s32)
		__field(u64, u64)
		__field(s64, s64)
		__field(bool, flag)
		__field(char, letter)
		__field(enum rhist_colour, colour)
		__field(void *, pointer)
		__field(const char *, name)
	),

	TP_fast_assign(
		__entry->u8 = rhist_bits(u8, k);
		__entry->s8 = rhist_bits(s8, k);
		__entry->u16 = rhist_bits(u16, k);
		__entry->s16 = rhist_bits(s16, k);
		__entry->u32 = rhist_bits(u32, k);
		__entry->s32 = rhist_bits(s32, k);
		__entry->u64 = rhist_bits(u64, k);
		__entry->s64 = rhist_bits(s64, k);
		__entry->flag = k % 2;
		__entry->letter = 'a' + k % 26;
		__entry->colour = k % 3;
		__entry->pointer = (void *)(unsigned long)rhist_number(k);
		__entry->name = rhist_names[k % 4];
	),

	TP_printk("%u %d %u %d %u %d %llu %lld %d %c %s 0x%lx 0x%lx", __entry->u8, __entry->s8, __entry->u16,
		  __entry->s16, __entry->u32, __entry->s32, __entry->u64, __entry->s64, __entry->flag,
		  __entry->letter,
		  __print_symbolic(__entry->colour, { RHIST_RED, "red" }, { RHIST_GREEN, "green" },
				   { RHIST_BLUE, "blue" }),
		  (unsigned long)__entry->pointer, (unsigned long)__entry->name)
);

/*
 * Fields with text. full and bytes lack a NUL when the text is long, raw always lacks it, and dirty
 * has other bytes behind it each time.
 */
TRACE_EVENT(strings,

	TP_PROTO(u64 k, const char *text, size_t length),

	TP_ARGS(k, text, length),

	TP_STRUCT__entry(
		__array(char, fixed, 16)
		__array(char, full, 8)
		__array(char, dirty, 16)
		__array(unsigned char, bytes, 12)
		__string(dynamic, text)
		__string_len(counted, text, min_t(size_t, length, 8))
		__dynamic_array(unsigned char, raw, length)
		__rel_string(relative, text)
	),

	TP_fast_assign(
		memset(__entry->fixed, 0, sizeof(__entry->fixed));
		memcpy(__entry->fixed, text, min_t(size_t, length, sizeof(__entry->fixed) - 1));
		memset(__entry->full, 0, sizeof(__entry->full));
		memcpy(__entry->full, text, min_t(size_t, length, sizeof(__entry->full)));
		memset(__entry->dirty, k, sizeof(__entry->dirty));
		memcpy(__entry->dirty, text, min_t(size_t, length, 3));
		__entry->dirty[min_t(size_t, length, 3)] = 0;
		memset(__entry->bytes, 0, sizeof(__entry->bytes));
		memcpy(__entry->bytes, text, min_t(size_t, length, sizeof(__entry->bytes)));
		__assign_str(dynamic);
		__assign_str(counted);
		memcpy(__get_dynamic_array(raw), text, length);
		__assign_rel_str(relative);
	),

	TP_printk("%s %.8s %s %.12s %s %s %d %s", __entry->fixed, __entry->full, __entry->dirty, __entry->bytes,
		  __get_str(dynamic), __get_str(counted), __get_dynamic_array_len(raw), __get_rel_str(relative))
);

/* Fields that are neither numbers nor text; some have the size of a number. */
TRACE_EVENT(arrays,

	TP_PROTO(u64 k),

	TP_ARGS(k),

	TP_STRUCT__entry(
		__array(unsigned long, args, 6)
		__array(u32, words, 4)
		__array(u8, three, 3)
		__array(s8, four, 4)
		__array(u8, eight, 8)
		__field_struct(struct rhist_pair, pair)
		__field_struct(struct rhist_wide, wide)
		__dynamic_array(u32, list, k % 4)
		__bitmask(bits, 64)
		__cpumask(cpus)
		__rel_cpumask(others)
	),

	TP_fast_assign(
		unsigned long number = rhist_number(k);
		size_t i;

		for (i = 0; i < ARRAY_SIZE(__entry->args); i++)
			__entry->args[i] = rhist_number(k + i);
		for (i = 0; i < ARRAY_SIZE(__entry->words); i++)
			__entry->words[i] = rhist_bits(u32, k + i);
		memset(__entry->three, k, sizeof(__entry->three));
		memset(__entry->four, k, sizeof(__entry->four));
		memset(__entry->eight, k, sizeof(__entry->eight));
		__entry->pair.left = k;
		__entry->pair.right = ~k;
		memset(&__entry->wide, k, sizeof(__entry->wide));
		for (i = 0; i < k % 4; i++)
			((u32 *)__get_dynamic_array(list))[i] = k;
		__assign_bitmask(bits, &number, 64);
		__assign_cpumask(cpus, cpumask_bits(cpumask_of(k % nr_cpu_ids)));
		__assign_rel_cpumask(others, cpumask_bits(cpumask_of((k + 1) % nr_cpu_ids)));
	),

	TP_printk("%s %s %s %s %s", __print_array(__entry->args, 6, sizeof(unsigned long)),
		  __print_array(__get_dynamic_array(list), __get_dynamic_array_len(list) / 4, 4),
		  __get_bitmask(bits), __get_cpumask(cpus), __get_rel_cpumask(others))
);

/*
 * A stack like in synthetic events: the field has the offset of the frames in the record, and their
 * first number is the count.
 */
TRACE_EVENT(stacks,

	TP_PROTO(u64 k),

	TP_ARGS(k),

	TP_STRUCT__entry(
		__field(u64, k)
		__field_ext(u32, stack, FILTER_STACKTRACE)
		__dynamic_array(unsigned long, frames, rhist_depth(k) + 1)
	),

	TP_fast_assign(
		unsigned long *frames = __get_dynamic_array(frames);
		size_t i;

		__entry->k = k;
		__entry->stack = __entry->__data_loc_frames;
		frames[0] = rhist_depth(k);
		for (i = 0; i < rhist_depth(k); i++)
			frames[1 + i] = rhist_frame(k + i);
	),

	TP_printk("%llu %zu", __entry->k, rhist_depth(__entry->k))
);

/*
 * Three events that follow each other in the life of a task, like the kernel's own: with common
 * keys, some under other names, and fields that only one of them has. Their common values come from
 * the last two bits of k.
 */
TRACE_EVENT(wake,

	TP_PROTO(u64 k, const char *text),

	TP_ARGS(k, text),

	TP_STRUCT__entry(
		__field(u64, key)
		__field(pid_t, task)
		__array(char, who, 16)
		__field(u32, amount)
		__field(s8, small)
		__field(int, level)
		__string(path, text)
	),

	TP_fast_assign(
		__entry->key = k % 4;
		__entry->task = 100 + k % 4;
		memset(__entry->who, 0, sizeof(__entry->who));
		snprintf(__entry->who, sizeof(__entry->who), "task-%llu", k % 4);
		__entry->amount = k * 10;
		__entry->small = rhist_bits(s8, k);
		__entry->level = k;
		__assign_str(path);
	),

	TP_printk("%llu %d %s %u %d %d %s", __entry->key, __entry->task, __entry->who, __entry->amount, __entry->small,
		  __entry->level, __get_str(path))
);

TRACE_EVENT(run,

	TP_PROTO(u64 k, const char *text),

	TP_ARGS(k, text),

	TP_STRUCT__entry(
		__field(u64, next_key)
		__field(pid_t, next_task)
		__array(char, next_who, 16)
		__field(u64, total)
		__field(u16, part)
		__field(s64, change)
		__string(file, text)
	),

	TP_fast_assign(
		__entry->next_key = k % 4;
		__entry->next_task = 100 + k % 4;
		memset(__entry->next_who, 0, sizeof(__entry->next_who));
		snprintf(__entry->next_who, sizeof(__entry->next_who), "task-%llu", k % 4);
		__entry->total = k * k;
		__entry->part = rhist_bits(u16, k);
		__entry->change = rhist_bits(s64, k);
		__assign_str(file);
	),

	TP_printk("%llu %d %s %llu %u %lld %s", __entry->next_key, __entry->next_task, __entry->next_who, __entry->total,
		  __entry->part, __entry->change, __get_str(file))
);

TRACE_EVENT(stop,

	TP_PROTO(u64 k, const char *text),

	TP_ARGS(k, text),

	TP_STRUCT__entry(
		__field(u64, key)
		__field(pid_t, task)
		__array(char, who, 16)
		__field(u64, total)
		__field(u32, amount)
		__field(int, status)
		__rel_string(reason, text)
	),

	TP_fast_assign(
		__entry->key = k % 4;
		__entry->task = 100 + k % 4;
		memset(__entry->who, 0, sizeof(__entry->who));
		snprintf(__entry->who, sizeof(__entry->who), "task-%llu", k % 4);
		__entry->total = k * 3;
		__entry->amount = rhist_bits(u32, k);
		__entry->status = -(int)k;
		__assign_rel_str(reason);
	),

	TP_printk("%llu %d %s %llu %u %d %s", __entry->key, __entry->task, __entry->who, __entry->total, __entry->amount,
		  __entry->status, __get_rel_str(reason))
);

/* An event that is interrupted while its record is made. */
TRACE_EVENT(nested,

	TP_PROTO(u64 k, unsigned int context),

	TP_ARGS(k, context),

	TP_STRUCT__entry(
		__field(u64, k)
		__field(u8, context)
	),

	TP_fast_assign(
		__entry->k = k;
		rhist_nest(context);
		__entry->context = context;
	),

	TP_printk("%llu %u", __entry->k, __entry->context)
);

/* An event that fires another one while its record is made. */
TRACE_EVENT(outer,

	TP_PROTO(u64 k),

	TP_ARGS(k),

	TP_STRUCT__entry(
		__field(u64, k)
	),

	TP_fast_assign(
		__entry->k = k;
		trace_nested(k, 0);
	),

	TP_printk("%llu", __entry->k)
);

/*
 * An event whose text, if it is the short one, claims to extend four bytes beyond the end of the
 * record.
 */
TRACE_EVENT(beyond,

	TP_PROTO(u64 k),

	TP_ARGS(k),

	TP_STRUCT__entry(
		__field(u64, k)
		__dynamic_array(char, text, k % 2 ? 12 : 60)
		/* Otherwise four bytes of padding would follow the text. */
		__field(u32, more)
	),

	TP_fast_assign(
		__entry->k = k;
		memset(__get_dynamic_array(text), k % 2 ? 'x' : 'y', k % 2 ? 12 : 60);
		__entry->more = 0;
		if (k % 2)
			__entry->__data_loc_text += 4 << 16;
	),

	TP_printk("%llu", __entry->k)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE rhist_events
#include <trace/define_trace.h>
