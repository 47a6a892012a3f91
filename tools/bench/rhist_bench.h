/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rhist_bench

#if !defined(RHIST_BENCH_H) || defined(TRACE_HEADER_MULTI_READ)
#define RHIST_BENCH_H

#include <linux/tracepoint.h>

/* An event without a header in the kernel. */
TRACE_EVENT(number,

	TP_PROTO(u32 key, u64 val, u64 val2),

	TP_ARGS(key, val, val2),

	TP_STRUCT__entry(
		__field(u32, key)
		__field(u64, val)
		__field(u64, val2)
	),

	TP_fast_assign(
		__entry->key = key;
		__entry->val = val;
		__entry->val2 = val2;
	),

	TP_printk("%u %llu %llu", __entry->key, __entry->val, __entry->val2)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE rhist_bench
#include <trace/define_trace.h>
