/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replaces the kernel's file of this name, which each header with events includes at its end. The
 * header is read again for each stage of the kernel's own probes (include/trace/trace_events.h),
 * but neither tracepoints nor events are defined.
 */
#ifdef CREATE_TRACE_POINTS
#undef CREATE_TRACE_POINTS

#define TRACE_HEADER_MULTI_READ

/* Tracepoints without an event. */
#undef DECLARE_TRACE
#define DECLARE_TRACE(name, proto, args)
#undef DECLARE_TRACE_CONDITION
#define DECLARE_TRACE_CONDITION(name, proto, args, cond)
#undef DECLARE_TRACE_EVENT
#define DECLARE_TRACE_EVENT(name, proto, args)
#undef DECLARE_TRACE_EVENT_CONDITION
#define DECLARE_TRACE_EVENT_CONDITION(name, proto, args, cond)
#undef TRACE_EVENT_NOP
#define TRACE_EVENT_NOP(name, proto, args, tstruct, assign, print)
#undef DECLARE_EVENT_NOP
#define DECLARE_EVENT_NOP(name, proto, args)
#undef DECLARE_EVENT_CLASS_NOP
#define DECLARE_EVENT_CLASS_NOP(name, proto, args, tstruct, assign, print)
#undef DEFINE_EVENT_NOP
#define DEFINE_EVENT_NOP(template, name, proto, args)
#undef TRACE_EVENT_FLAGS
#define TRACE_EVENT_FLAGS(name, value)
#undef TRACE_EVENT_PERF_PERM
#define TRACE_EVENT_PERF_PERM(name, expr...)

/* All other macros define a class and an event of it. */
#undef TRACE_EVENT
#define TRACE_EVENT(name, proto, args, tstruct, assign, print)					\
	DECLARE_EVENT_CLASS(name, PARAMS(proto), PARAMS(args), PARAMS(tstruct),			\
			    PARAMS(assign), PARAMS(print))					\
	DEFINE_EVENT(name, name, PARAMS(proto), PARAMS(args))
#undef TRACE_EVENT_SYSCALL
#define TRACE_EVENT_SYSCALL(name, proto, args, tstruct, assign, print, reg, unreg)		\
	DECLARE_EVENT_SYSCALL_CLASS(name, PARAMS(proto), PARAMS(args), PARAMS(tstruct),		\
				    PARAMS(assign), PARAMS(print))				\
	DEFINE_EVENT(name, name, PARAMS(proto), PARAMS(args))
#undef TRACE_EVENT_CONDITION
#define TRACE_EVENT_CONDITION(name, proto, args, cond, tstruct, assign, print)			\
	TRACE_EVENT(name, PARAMS(proto), PARAMS(args), PARAMS(tstruct), PARAMS(assign),		\
		    PARAMS(print))
#undef TRACE_EVENT_FN
#define TRACE_EVENT_FN(name, proto, args, tstruct, assign, print, reg, unreg)			\
	TRACE_EVENT(name, PARAMS(proto), PARAMS(args), PARAMS(tstruct), PARAMS(assign),		\
		    PARAMS(print))
#undef TRACE_EVENT_FN_COND
#define TRACE_EVENT_FN_COND(name, proto, args, cond, tstruct, assign, print, reg, unreg)	\
	TRACE_EVENT(name, PARAMS(proto), PARAMS(args), PARAMS(tstruct), PARAMS(assign),		\
		    PARAMS(print))
#undef DEFINE_EVENT_FN
#define DEFINE_EVENT_FN(template, name, proto, args, reg, unreg)				\
	DEFINE_EVENT(template, name, PARAMS(proto), PARAMS(args))
#undef DEFINE_EVENT_PRINT
#define DEFINE_EVENT_PRINT(template, name, proto, args, print)					\
	DEFINE_EVENT(template, name, PARAMS(proto), PARAMS(args))
#undef DEFINE_EVENT_CONDITION
#define DEFINE_EVENT_CONDITION(template, name, proto, args, cond)				\
	DEFINE_EVENT(template, name, PARAMS(proto), PARAMS(args))

/* Events of an excluded class are excluded. */
#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(name, proto, args, tstruct, assign, print)				\
	CONCATENATE(RHIST_CLASS_, __is_defined(RHIST_WITHOUT_##name))				\
		(name, PARAMS(proto), PARAMS(args), PARAMS(tstruct), PARAMS(assign))
#undef DEFINE_EVENT
#define DEFINE_EVENT(template, name, proto, args)						\
	CONCATENATE(RHIST_EVENT_, __is_defined(RHIST_WITHOUT_##template))(template, name)
#define RHIST_CLASS_1(name, proto, args, tstruct, assign)
#define RHIST_EVENT_0(template, name)
#define RHIST_EVENT_1(template, name)
#undef DECLARE_EVENT_SYSCALL_CLASS
#define DECLARE_EVENT_SYSCALL_CLASS DECLARE_EVENT_CLASS

/* Only printing needs the names of numbers. */
#undef TRACE_DEFINE_ENUM
#define TRACE_DEFINE_ENUM(a)
#undef TRACE_DEFINE_SIZEOF
#define TRACE_DEFINE_SIZEOF(a)

/* Stage: the structure of the record. */
#include <trace/stages/stage1_struct_define.h>
#undef RHIST_CLASS_0
#define RHIST_CLASS_0(name, proto, args, tstruct, assign)					\
	struct trace_event_raw_##name {								\
		struct trace_entry ent;								\
		tstruct										\
		char __data[];									\
	};
#include RHIST_EVENTS

/* Stage: the offsets of dynamic fields. */
#include <trace/stages/stage2_data_offsets.h>
#undef RHIST_CLASS_0
#define RHIST_CLASS_0(name, proto, args, tstruct, assign)					\
	struct trace_event_data_offsets_##name {						\
		tstruct										\
	};
#include RHIST_EVENTS

/* Stage: the fields of the event. */
#include <trace/stages/stage4_event_fields.h>
#undef RHIST_CLASS_0
#define RHIST_CLASS_0(name, proto, args, tstruct, assign)					\
	static const struct trace_event_fields rhist_fields_##name[] = { tstruct {} };
#include RHIST_EVENTS

/* Stage: the length of the record. */
#include <trace/stages/stage5_get_offsets.h>
#undef RHIST_CLASS_0
#define RHIST_CLASS_0(name, proto, args, tstruct, assign)					\
	static inline notrace int rhist_dynamic_size_##name(					\
		struct trace_event_data_offsets_##name *__data_offsets, proto)			\
	{											\
		struct trace_event_raw_##name __maybe_unused *entry;				\
		int __maybe_unused __item_length;						\
		int __data_size = 0;								\
												\
		tstruct										\
		return __data_size;								\
	}
#include RHIST_EVENTS

/*
 * Stage: the probe, which fills in the record. Without a stack protector: a record on the stack has
 * a fixed length, which neither a caller nor a program can exceed. It is zeroed right before its
 * fields are assigned, so that the compiler leaves out stores to words that are assigned in any
 * case.
 */
#include <trace/stages/stage6_event_callback.h>
#undef __perf_count
#define __perf_count(count) (count)
#undef __perf_task
#define __perf_task(task) (task)
#undef RHIST_CLASS_0
#define RHIST_CLASS_0(name, proto, args, tstruct, assign)					\
	static notrace __no_stack_protector void rhist_probe_##name(void *__data, proto)	\
	{											\
		const struct rhist_probed *__probed = __data;					\
		struct trace_event_data_offsets_##name __maybe_unused __data_offsets;		\
		struct trace_event_raw_##name *entry;						\
		enum {										\
			__SIZE = RHIST_SHORT_SIZE(sizeof(*entry), sizeof(__data_offsets)),	\
			__TASK = RHIST_HAS_TASK_ARG(args),					\
		};										\
		struct {									\
			const struct task_struct *task[__SIZE && __TASK];			\
			char record[__SIZE] __aligned(8);					\
		} __short __aligned(8) __uninitialized;						\
		unsigned char __context = 0;							\
		size_t __size;									\
												\
		rhist_guard_hit();								\
		__size = sizeof(*entry) + rhist_dynamic_size_##name(&__data_offsets, args);	\
		if (__SIZE)									\
			entry = rhist_zero_fields(__short.record, __SIZE);			\
		else										\
			entry = rhist_record_begin(__probed, __size, &__context);		\
		if (!entry)									\
			return;									\
		if (__TASK)									\
			((const struct task_struct **)entry)[-1] = RHIST_TASK_ARG(args);	\
		entry->ent.pid = current->pid;							\
		tstruct										\
		{ assign; }									\
		rhist_record_end(__probed, entry, __size, __TASK, __context);			\
	}
#include RHIST_EVENTS

#undef RHIST_CLASS_0
#define RHIST_CLASS_0(name, proto, args, tstruct, assign)

/* Each probe has the prototype of its tracepoint. */
#undef RHIST_EVENT_0
#define RHIST_EVENT_0(template, event)								\
	{											\
		static const struct rhist_probe probe = {					\
			.system = __stringify(TRACE_SYSTEM),					\
			.name = #event,								\
			.fields = rhist_fields_##template,					\
			.probe = rhist_probe_##template,					\
		};										\
												\
		check_trace_callback_type_##event(rhist_probe_##template);			\
		visit(&probe, arg);								\
	}
void RHIST_VISIT(void (*visit)(const struct rhist_probe *probe, void *arg), void *arg)
{
#include RHIST_EVENTS
}

#endif
