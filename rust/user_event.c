// SPDX-License-Identifier: GPL-2.0
/*
 * A trace event whose records come from user space.
 *
 * The kernel registers a struct trace_event_call that is given to it with
 * event_mutex held, and makes the files of the event. Whoever listens is put on
 * the list of a tracepoint that nothing but rhist_user_event_write() fires: a
 * trace instance by its struct trace_event_file, perf as a whole.
 */
#include <linux/ctype.h>
#include <linux/perf_event.h>
#include <linux/ring_buffer.h>
#include <linux/slab.h>
#include <linux/srcu.h>
#include <linux/trace_events.h>
#include <linux/trace_seq.h>
#include <linux/tracepoint.h>
#include <linux/unaligned.h>

#include "helpers.h"
#include "layouts_generated.h"

struct rhist_user_event {
	struct trace_event_call call;
	struct trace_event_class class;
	struct tracepoint tracepoint;
	rhist_user_event_changed_t changed;
	const void *owner;
	/* Written under event_mutex: whether it is registered, and listeners. */
	bool visible;
	unsigned int files, perf;
};

typedef void (*user_probe_t)(struct rhist_user_event *event, const void *payload, size_t size,
			     void *data);

static void to_ftrace(struct rhist_user_event *event, const void *payload, size_t size, void *data)
{
	struct trace_event_file *file = data;
	struct trace_event_buffer buffer;
	struct trace_entry *entry;

	if (trace_trigger_soft_disabled(file))
		return;
	/* Fails while recording is off, among others. */
	entry = trace_event_buffer_reserve(&buffer, file, sizeof(*entry) + size);
	if (!entry)
		return;
	memcpy(entry + 1, payload, size);
	trace_event_buffer_commit(&buffer);
}

static void to_perf(struct rhist_user_event *event, const void *payload, size_t size, void *data)
{
	struct hlist_head *head = this_cpu_ptr(event->call.perf_events);
	struct trace_entry *entry;
	struct pt_regs *regs;
	int context;

	if (hlist_empty(head))
		return;
	size += sizeof(*entry);
	entry = perf_trace_buf_alloc(ALIGN(size, sizeof(u64)), &regs, &context);
	if (!entry)
		return;
	perf_fetch_caller_regs(regs);
	memcpy(entry + 1, payload, size - sizeof(*entry));
	perf_trace_buf_submit(entry, size, context, event->call.event.type, 1, regs, head, NULL);
}

/* class->reg: somebody begins or stops to listen. event_mutex is held. */
static int user_event_reg(struct trace_event_call *call, enum trace_reg type, void *data)
{
	struct rhist_user_event *event = container_of(call, struct rhist_user_event, call);
	int err = 0;

	switch (type) {
	case TRACE_REG_REGISTER:
		err = tracepoint_probe_register(call->tp, to_ftrace, data);
		if (err)
			return err;
		event->files++;
		break;
	case TRACE_REG_UNREGISTER:
		tracepoint_probe_unregister(call->tp, to_ftrace, data);
		event->files--;
		break;
	case TRACE_REG_PERF_REGISTER:
		err = tracepoint_probe_register(call->tp, to_perf, data);
		if (err)
			return err;
		event->perf++;
		break;
	case TRACE_REG_PERF_UNREGISTER:
		tracepoint_probe_unregister(call->tp, to_perf, data);
		event->perf--;
		break;
	default:
		/* Each perf event that is opened, closed, and scheduled. */
		return 0;
	}
	event->changed(event->owner, event->files, event->perf);
	return 0;
}

/* The place and length that a dynamic field has of its data; false if those are not there. */
static bool locate(struct trace_iterator *iter, struct ftrace_event_field *field, bool relative,
		   const u8 **data, unsigned int *len)
{
	u32 loc = get_unaligned((u32 *)((void *)iter->ent + field->offset));
	unsigned int at = (loc & 0xffff) + (relative ? field->offset + sizeof(loc) : 0);

	*len = loc >> 16;
	*data = (u8 *)iter->ent + at;
	return at + *len <= iter->ent_size;
}

static bool is_text(char c)
{
	return isascii(c) && isprint(c);
}

static void print_string(struct trace_seq *s, const char *text, unsigned int len)
{
	unsigned int i;

	for (i = 0; i < len && (!text[i] || is_text(text[i])); i++)
		;
	if (i == len) {
		trace_seq_printf(s, "%.*s", len, text);
		return;
	}
	for (i = 0; i < len; i++)
		trace_seq_putc(s, is_text(text[i]) ? text[i] : '.');
	for (i = 0; i < len; i++)
		trace_seq_printf(s, i ? ":%02x" : " (%02x", (u8)text[i]);
	trace_seq_putc(s, ')');
}

static void print_number(struct trace_seq *s, const void *at, unsigned int size)
{
	u64 value;

	switch (size) {
	case 1:
		if (isprint(*(u8 *)at))
			trace_seq_printf(s, "'%c'", *(u8 *)at);
		trace_seq_printf(s, "(%d)", *(u8 *)at);
		break;
	case 2:
		value = get_unaligned((u16 *)at);
		trace_seq_printf(s, "0x%x (%d)", (u16)value, (u16)value);
		break;
	case 4:
		value = get_unaligned((u32 *)at);
		trace_seq_printf(s, "0x%x (%d)", (u32)value, (int)value);
		break;
	case 8:
		value = get_unaligned((u64 *)at);
		if (sizeof(long) == 8)
			trace_seq_printf(s, "%pS (%lld)", (void *)(long)value, value);
		else
			trace_seq_printf(s, "0x%llx (%lld)", value, value);
		break;
	default:
		trace_seq_puts(s, "<INVALID-SIZE>");
	}
}

static void print_field(struct trace_iterator *iter, struct ftrace_event_field *field)
{
	bool relative = str_has_prefix(field->type, "__rel_loc");
	bool dynamic = relative || str_has_prefix(field->type, "__data_loc");
	const void *at = (void *)iter->ent + field->offset;
	struct trace_seq *s = &iter->seq;
	unsigned int i, len;
	const u8 *data;

	trace_seq_printf(s, " %s=", field->name);
	if (field->offset + field->size > iter->ent_size ||
	    (dynamic && !locate(iter, field, relative, &data, &len))) {
		trace_seq_puts(s, "<OVERFLOW>");
		return;
	}
	switch (field->filter_type) {
	case FILTER_STATIC_STRING:
		trace_seq_printf(s, "%.*s", field->size, (char *)at);
		break;
	case FILTER_DYN_STRING:
	case FILTER_RDYN_STRING:
		print_string(s, data, len);
		break;
	case FILTER_OTHER:
		if (!dynamic) {
			print_number(s, at, field->size);
			break;
		}
		for (i = 0; i < len; i++)
			trace_seq_printf(s, i ? ",%02x" : "%02x", data[i]);
		break;
	default:
		trace_seq_puts(s, "<INVALID-TYPE>");
	}
}

/*
 * The text of a record, as print_event_fields() of the kernel makes it, which
 * is not exported. The kernel holds the event registered meanwhile.
 */
static enum print_line_t print_record(struct trace_iterator *iter, int flags,
				      struct trace_event *event)
{
	struct trace_event_call *call = container_of(event, struct trace_event_call, event);
	struct ftrace_event_field *field;

	trace_seq_printf(&iter->seq, "%s:", trace_event_name(call));
	if (list_empty(&call->class->fields))
		trace_seq_puts(&iter->seq, "No fields found\n");
	else {
		list_for_each_entry_reverse(field, &call->class->fields, link)
			print_field(iter, field);
		trace_seq_putc(&iter->seq, '\n');
	}
	return trace_handle_return(&iter->seq);
}

/* The kernel puts functions that print nothing where there are none. */
static struct trace_event_functions user_event_funcs = { .trace = print_record };
static struct trace_event_fields no_more_fields[] = { {} };

/**
 * rhist_user_event_new - make an event that nobody sees yet
 * @system: its system
 * @name: its name
 * @print_fmt: its print format
 * @changed: called with event_mutex held after the number of listeners changed
 *
 * The strings stay as long as the event.
 *
 * Return: the event, or NULL without memory.
 */
struct rhist_user_event *rhist_user_event_new(const char *system, char *name, char *print_fmt,
					      rhist_user_event_changed_t changed)
{
	struct rhist_user_event *event = kzalloc(sizeof(*event), GFP_KERNEL_ACCOUNT);

	if (!event)
		return NULL;
	INIT_LIST_HEAD(&event->class.fields);
	event->class.system = system;
	event->class.fields_array = no_more_fields;
	event->class.probe = to_ftrace;
	event->class.perf_probe = to_perf;
	event->class.reg = user_event_reg;
	event->tracepoint.name = name;
	event->call.class = &event->class;
	event->call.tp = &event->tracepoint;
	event->call.event.funcs = &user_event_funcs;
	event->call.print_fmt = print_fmt;
	/* Dynamic: its users are counted, and it belongs to no module. */
	event->call.flags = TRACE_EVENT_FL_TRACEPOINT | TRACE_EVENT_FL_DYNAMIC;
	event->changed = changed;
	return event;
}

/* Add a field, the first one first. The strings stay as long as the event. */
int rhist_user_event_field(struct rhist_user_event *event, const char *type, const char *name,
			   unsigned int offset, unsigned int size, bool is_signed)
{
	return trace_define_field(&event->call, type, name, offset, size, is_signed, FILTER_OTHER);
}

/* Free an event that is not visible, or no longer. */
void rhist_user_event_free(struct rhist_user_event *event)
{
	struct ftrace_event_field *field, *next;

	list_for_each_entry_safe(field, next, &event->class.fields, link)
		kfree(field);
	kfree(event);
}

/*
 * Make an event visible. @owner is what changed() gets, and stays as long as it
 * is. Called with event_mutex held.
 */
int rhist_user_event_add(struct rhist_user_event *event, const void *owner)
{
	int err;

	if (event->visible)
		return -EEXIST;
	event->owner = owner;
	if (!register_trace_event(&event->call.event))
		return -ENODEV;
	err = trace_add_event_call(&event->call);
	if (err)
		unregister_trace_event(&event->call.event);
	else
		event->visible = true;
	return err;
}

/*
 * Make an event invisible, or fail with -EBUSY if anybody listens or has a
 * reference on it. Called with event_mutex held.
 */
int rhist_user_event_remove(struct rhist_user_event *event)
{
	int err;

	if (!event->visible)
		return -ENOENT;
	if (event->files || event->perf || atomic_read(&event->call.refcnt))
		return -EBUSY;
	/* Frees the fields as well. */
	err = trace_remove_event_call(&event->call);
	if (!err)
		event->visible = false;
	return err;
}

/*
 * The largest payload that all who listen can take, in bytes. They may be
 * others when the payload is written; those lose it then.
 */
size_t rhist_user_event_limit(struct rhist_user_event *event)
{
	size_t limit = SIZE_MAX;
	struct tracepoint_func *func;

	guard(srcu_fast_notrace)(&tracepoint_srcu);
	func = rcu_dereference_raw(event->tracepoint.funcs);
	for (; func && func->func; func++) {
		size_t max = PERF_MAX_TRACE_SIZE;

		if (func->func == to_ftrace) {
			struct trace_event_file *file = func->data;

			max = ring_buffer_max_event_size(*(struct trace_buffer **)(
				(void *)file->tr + TRACE_ARRAY__ARRAY_BUFFER +
				ARRAY_BUFFER__BUFFER));
		}
		limit = min(limit, max - sizeof(struct trace_entry));
	}
	return limit;
}

/**
 * rhist_user_event_write - give a payload to all who listen
 * @event: a visible event
 * @payload: the fields
 * @size: of them, in bytes; at most rhist_user_event_limit()
 *
 * Context: task.
 *
 * Return: whether there was anybody.
 */
bool rhist_user_event_write(struct rhist_user_event *event, const void *payload, size_t size)
{
	struct tracepoint_func *func;

	guard(srcu_fast_notrace)(&tracepoint_srcu);
	guard(preempt_notrace)();
	func = rcu_dereference_raw(event->tracepoint.funcs);
	if (!func)
		return false;
	for (; func->func; func++)
		((user_probe_t)func->func)(event, payload, size, func->data);
	return true;
}
