// SPDX-License-Identifier: GPL-2.0
/*
 * Trace events whose records come from user space.
 *
 * trace_add_event_call() registers the struct trace_event_call of an event and
 * creates its files. Enabling the event registers a probe with its tracepoint,
 * once for each trace instance (with the struct trace_event_file as data) and
 * once for perf. Only rhist_user_event_write() and
 * rhist_user_event_write_direct() call these probes.
 */
#include <linux/bits.h>
#include <linux/cleanup.h>
#include <linux/ctype.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/ring_buffer.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/string.h>
#include <linux/trace_events.h>
#include <linux/trace_seq.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/unaligned.h>

#include "compat.h"
#include "event/event.h"
#include "event/own_events.h"
#include "tracefs/tracefs.h"
#include "user_event.h"
#include "layouts_generated.h"

struct rhist_user_event {
	struct trace_event_call call;
	struct trace_event_class class;
	struct tracepoint tracepoint;
	struct dyn_event dynamic;
	const char *declaration;
	const struct rhist_user_event_ops *ops;
	const void *owner;
	/* Whether it is registered; and how often it is enabled. Written with event_mutex held. */
	bool visible;
	unsigned int files, perf;
	/* Set while it is unregistered: see get_fields(). */
	bool removing;
	/*
	 * The event that its records are printed by: see rhist_user_events_look(). Its type number
	 * is registered.
	 */
	struct trace_event_call printed;
	struct trace_event_class printed_class;
	/*
	 * Whether it has been recorded in a ring buffer of ftrace; after its removal, the instances
	 * that may have records.
	 */
	bool recorded;
	struct list_head holders;
	/* The fields, of which @n_fields are defined: newest first, as the kernel has them. */
	struct list_head fields;
	unsigned int n_fields, max_fields;
	struct ftrace_event_field field[] __counted_by(max_fields);
};

/* A payload to write: bytes that are copied and checked, or their source and a check. */
struct payload {
	size_t size;
	/* NULL if the payload is copied from @source, and checked by @accept. */
	const void *bytes;
	struct iov_iter *source;
	rhist_accept_t accept;
	const void *fields;
	/* Set once the payload was copied from @source into a record that is committed. */
	bool written;
};

typedef void (*user_probe_t)(struct rhist_user_event *event, struct payload *payload, void *data);

/*
 * Fill a reserved record. Return false if it must be discarded. Called with preemption disabled, so
 * no page is faulted in.
 */
static bool fill(struct payload *payload, void *record)
{
	size_t copied;

	if (payload->bytes) {
		memcpy(record, payload->bytes, payload->size);
		return true;
	}
	pagefault_disable();
	/* The record has room for the payload, so the check of copy_from_iter() is not needed. */
	copied = _copy_from_iter(record, payload->size, payload->source);
	pagefault_enable();
	payload->written = copied == payload->size &&
			   (!payload->accept ||
			    payload->accept(payload->fields, record, payload->size));
	return payload->written;
}

/*
 * Return whether trace_trigger_soft_disabled() does more for a file with these flags than return
 * false: it calls the triggers, if any, none of which reads a record, and decides whether a record
 * is needed at all.
 */
static bool calls_triggers_first(unsigned long flags)
{
	return flags & (EVENT_FILE_FL_TRIGGER_MODE | EVENT_FILE_FL_SOFT_DISABLED | EVENT_FILE_FL_PID_FILTER) &&
	       !(flags & EVENT_FILE_FL_TRIGGER_COND);
}

static void to_ftrace(struct rhist_user_event *event, struct payload *payload, void *data)
{
	/* A commit to this file discards the record. */
	static struct trace_event_file nowhere = { .flags = EVENT_FILE_FL_SOFT_DISABLED };
	struct trace_event_file *file = data;
	struct trace_event_buffer buffer;
	struct trace_entry *entry;

	/*
	 * Triggers are called for a payload that is known to be valid. One that is not copied yet
	 * may turn out to be invalid.
	 */
	if (payload->bytes ? trace_trigger_soft_disabled(file) :
			     calls_triggers_first(READ_ONCE(file->flags)))
		return;
	/* Fails, for example, while recording is off. */
	entry = trace_event_buffer_reserve(&buffer, file, sizeof(*entry) + payload->size);
	if (!entry)
		return;
	if (!fill(payload, entry + 1))
		buffer.trace_file = &nowhere;
	else if (!READ_ONCE(event->recorded))
		WRITE_ONCE(event->recorded, true);
	trace_event_buffer_commit(&buffer);
}

#ifdef CONFIG_PERF_EVENTS
static void to_perf(struct rhist_user_event *unused, struct payload *payload, void *data)
{
	/*
	 * The data with which the probe itself was found: perf's lists of hits were set before
	 * that, and are read after it.
	 */
	struct rhist_user_event *event = data;
	/* An empty list: submitting to it drops the record and puts the recursion context. */
	static struct hlist_head nobody;
	struct hlist_head *head = this_cpu_ptr(event->call.perf_events);
	size_t size = sizeof(struct trace_entry) + payload->size;
	struct trace_entry *entry;
	struct pt_regs *regs;
	int context;

	/* perf_trace_buf_alloc() warns if the size is too large. */
	if (hlist_empty(head) || size > PERF_MAX_TRACE_SIZE)
		return;
	entry = perf_trace_buf_alloc(ALIGN(size, sizeof(u64)), &regs, &context);
	if (!entry)
		return;
	perf_fetch_caller_regs(regs);
	if (!fill(payload, entry + 1))
		head = &nobody;
	perf_trace_buf_submit(entry, size, context, event->call.event.type, 1, regs, head, NULL);
}
#endif

static struct dyn_event_operations dynamic_ops;
static struct dyn_event anchor = { .list = LIST_HEAD_INIT(anchor.list), .ops = &dynamic_ops };

/* class->reg(): register or unregister a probe. Called with event_mutex held. */
static int user_event_reg(struct trace_event_call *call, enum trace_reg type, void *data)
{
	struct rhist_user_event *event = container_of(call, struct rhist_user_event, call);
	int err = 0;

	switch (type) {
	case TRACE_REG_REGISTER:
		err = tracepoint_probe_register(call->tp, to_ftrace, data);
		if (err)
			return err;
		WRITE_ONCE(event->files, event->files + 1);
		break;
	case TRACE_REG_UNREGISTER:
		tracepoint_probe_unregister(call->tp, to_ftrace, data);
		WRITE_ONCE(event->files, event->files - 1);
		break;
#ifdef CONFIG_PERF_EVENTS
	case TRACE_REG_PERF_REGISTER:
		err = tracepoint_probe_register(call->tp, to_perf, event);
		if (err)
			return err;
		WRITE_ONCE(event->perf, event->perf + 1);
		break;
	case TRACE_REG_PERF_UNREGISTER:
		tracepoint_probe_unregister(call->tp, to_perf, event);
		WRITE_ONCE(event->perf, event->perf - 1);
		break;
#endif
	default:
		/* TRACE_REG_PERF_OPEN, CLOSE, ADD and DEL of a single perf event. */
		return 0;
	}
	event->ops->changed(event->owner, event->files, event->perf);
	return 0;
}

/* Find the data of a dynamic field. Return false if it is not within the record. */
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
		/*
		 * The kernel prints strings unchecked: a newline in one would begin a line of the
		 * program's own.
		 */
		print_string(s, at, strnlen(at, field->size));
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
 * Print a record like print_event_fields() of the kernel, which is not exported.
 * The caller keeps the event registered.
 */
static enum print_line_t print_record(struct trace_iterator *iter, int flags,
				      struct trace_event *event)
{
	struct trace_event_call *call = container_of(event, struct trace_event_call, event);
	struct rhist_user_event *owner = call->data;
	struct ftrace_event_field *field;

	trace_seq_printf(&iter->seq, "%s:", trace_event_name(call));
	if (list_empty(&owner->fields))
		trace_seq_puts(&iter->seq, "No fields found\n");
	else {
		list_for_each_entry_reverse(field, &owner->fields, link)
			print_field(iter, field);
		trace_seq_putc(&iter->seq, '\n');
	}
	return trace_handle_return(&iter->seq);
}

/* Not const: register_trace_event() replaces NULL members by trace_nop_print(). */
static struct trace_event_functions user_event_funcs = { .trace = print_record };
static struct trace_event_fields no_more_fields[] = { {} };

/*
 * class->get_fields(): return the list of fields. They are allocated with the event, so that they
 * are charged to the program. When an event is unregistered, the kernel frees all fields in the
 * list, as if it had allocated them itself, so the list is an empty one then. Called with
 * event_mutex or trace_event_sem held; unregistering takes both, so the fields are not used any
 * more when they are freed.
 */
static struct list_head *get_fields(struct trace_event_call *call)
{
	struct rhist_user_event *event = container_of(call, struct rhist_user_event, call);

	return READ_ONCE(event->removing) ? &event->class.fields : &event->fields;
}

/* The same for the event that records are printed by, which the kernel does not unregister. */
static struct list_head *get_printed_fields(struct trace_event_call *call)
{
	struct rhist_user_event *event = call->data;

	return &event->fields;
}

/**
 * rhist_user_event_new - allocate an event, which is not registered yet
 * @system: its system
 * @name: its name
 * @print_fmt: its print format
 * @declaration: name and fields, as in dynamic_events
 * @max_fields: how many fields it will have
 * @ops: its callbacks
 *
 * The strings and @ops must be valid as long as the event.
 *
 * Context: task, may sleep.
 *
 * Return: the event, to be freed by rhist_user_event_free(), or NULL without memory.
 */
struct rhist_user_event *rhist_user_event_new(const char *system, char *name, char *print_fmt,
					      const char *declaration, unsigned int max_fields,
					      const struct rhist_user_event_ops *ops)
{
	struct rhist_user_event *event = kzalloc(struct_size(event, field, max_fields),
						 GFP_KERNEL_ACCOUNT);

	if (!event)
		return NULL;
	event->max_fields = max_fields;
	INIT_LIST_HEAD(&event->fields);
	INIT_LIST_HEAD(&event->class.fields);
	event->class.get_fields = get_fields;
	event->class.system = system;
	event->class.fields_array = no_more_fields;
	event->class.probe = to_ftrace;
#ifdef CONFIG_PERF_EVENTS
	event->class.perf_probe = to_perf;
#endif
	event->class.reg = user_event_reg;
	event->tracepoint.name = name;
	event->call.class = &event->class;
	event->call.tp = &event->tracepoint;
	event->call.print_fmt = print_fmt;
	event->call.data = event;
	/* Dynamic: references are counted in call->refcnt; they do not pin a module. */
	event->call.flags = TRACE_EVENT_FL_TRACEPOINT | TRACE_EVENT_FL_DYNAMIC;
	event->printed_class.system = system;
	event->printed_class.get_fields = get_printed_fields;
	event->printed.class = &event->printed_class;
	event->printed.tp = &event->tracepoint;
	event->printed.flags = event->call.flags;
	event->printed.event.funcs = &user_event_funcs;
	event->printed.data = event;
	INIT_LIST_HEAD(&event->holders);
	INIT_LIST_HEAD(&event->dynamic.list);
	event->dynamic.ops = &dynamic_ops;
	event->declaration = declaration;
	event->ops = ops;
	return event;
}

/*
 * Return the filter type (FILTER_*) of a field. filter_assign_type() of the kernel, which is not
 * exported, also finds __data_loc in the middle of a type: a filter would follow an offset that
 * was not checked. And it finds cpumask_t, for which a filter reads more bytes than were checked.
 */
static int filter_type(const char *type)
{
	if (!strstr(type, "char"))
		return FILTER_OTHER;
	if (str_has_prefix(type, "__data_loc "))
		return FILTER_DYN_STRING;
	if (str_has_prefix(type, "__rel_loc "))
		return FILTER_RDYN_STRING;
	return strchr(type, '[') ? FILTER_STATIC_STRING : FILTER_OTHER;
}

/*
 * Define the next field of an event that is not registered yet, in the order of the record; at most
 * as many as it was allocated for. The strings must be valid as long as the event.
 */
void rhist_user_event_field(struct rhist_user_event *event, const char *type, const char *name,
			    unsigned int offset, unsigned int size, bool is_signed)
{
	struct ftrace_event_field *field;

	if (WARN_ON_ONCE(event->n_fields == event->max_fields))
		return;
	field = &event->field[event->n_fields++];
	field->type = type;
	field->name = name;
	field->offset = offset;
	field->size = size;
	field->is_signed = is_signed;
	field->filter_type = filter_type(type);
	list_add(&field->link, &event->fields);
}

static void unregister_type(struct rhist_user_event *event)
{
	if (event->printed.event.type)
		unregister_trace_event(&event->printed.event);
	event->printed.event.type = 0;
}

/* An instance that may have records of removed events. */
struct history {
	struct list_head list;
	struct trace_array *tr;
	/* One for each of these events. */
	struct list_head holders;
};

/*
 * The reason for which a removed event is kept: records of it in an instance, made at this time of
 * its clock or before.
 */
struct holder {
	struct list_head of_event, of_history;
	u64 last;
};

/* Protects these lists. Nests inside event_mutex; locks of ring buffers nest inside. */
static DEFINE_MUTEX(histories_lock);
static LIST_HEAD(histories);

/* Free a holder. Called with histories_lock held, and put_histories() afterwards. */
static void drop_holder(struct holder *holder)
{
	list_del(&holder->of_event);
	list_del(&holder->of_history);
	kfree(holder);
}

/* Free the histories that keep no event. Called with histories_lock held. */
static void put_histories(void)
{
	struct history *history, *next;

	list_for_each_entry_safe(history, next, &histories, list) {
		if (list_empty(&history->holders)) {
			list_del(&history->list);
			kfree(history);
		}
	}
}

static void forget_holders(struct rhist_user_event *event)
{
	struct holder *holder, *next;

	if (list_empty(&event->holders))
		return;
	guard(mutex)(&histories_lock);
	list_for_each_entry_safe(holder, next, &event->holders, of_event)
		drop_holder(holder);
	put_histories();
}

/* Free an event that is not registered. Does not read its strings. May sleep. */
void rhist_user_event_free(struct rhist_user_event *event)
{
	unregister_type(event);
	forget_holders(event);
	kfree(event);
}

/*
 * Register an event. @owner is passed to its callbacks, and must be valid as
 * long as the event is registered. Called with event_mutex held; may sleep.
 *
 * Return: 0, -EEXIST if it is registered, -ENODEV if no event type number is
 * free, or the error of trace_add_event_call().
 */
int rhist_user_event_add(struct rhist_user_event *event, const void *owner)
{
	int err;

	if (event->visible)
		return -EEXIST;
	event->owner = owner;
	if (!register_trace_event(&event->printed.event))
		return -ENODEV;
	event->call.event.type = event->printed.event.type;
	/*
	 * Not registered with these functions. They are for tp_printk, which prints records while
	 * they are made.
	 */
	event->call.event.funcs = &user_event_funcs;
	err = trace_add_event_call(&event->call);
	if (err) {
		unregister_type(event);
		return err;
	}
	event->visible = true;
	/* Before the anchor, so that the events are listed in the order of their creation. */
	if (!list_empty(&anchor.list))
		list_add_tail(&event->dynamic.list, &anchor.list);
	return 0;
}

/*
 * Return whether an event is enabled or referenced. Any context. An event for which
 * this is false stays so as long as event_mutex is held.
 */
bool rhist_user_event_busy(struct rhist_user_event *event)
{
	return READ_ONCE(event->files) || READ_ONCE(event->perf) ||
	       atomic_read(&event->call.refcnt);
}

/*
 * Take a reference on an event if it is a user event of rhist, which is not removed until
 * rhist_user_event_put(). Called with event_mutex held and @call registered. Return false for any
 * other event.
 */
bool rhist_user_event_get(struct trace_event_call *call)
{
	bool ours = call->class->reg == user_event_reg;

	if (ours)
		atomic_inc(&call->refcnt);
	return ours;
}

/* Put a reference of rhist_user_event_get(). Any context. */
void rhist_user_event_put(struct trace_event_call *call)
{
	atomic_dec(&call->refcnt);
}

/*
 * Return the buffer of an instance, or the one that snapshots swap with it; NULL if the kernel has
 * none.
 */
static struct trace_buffer *buffer_of(struct trace_array *tr, bool of_snapshot)
{
	unsigned long at = TRACE_ARRAY__ARRAY_BUFFER;

	if (of_snapshot) {
#ifdef TRACE_ARRAY__SNAPSHOT_BUFFER
		at = TRACE_ARRAY__SNAPSHOT_BUFFER;
#else
		return NULL;
#endif
	}
	return READ_ONCE(*(struct trace_buffer **)((void *)tr + at + ARRAY_BUFFER__BUFFER));
}

/* The top instance, which is never removed. */
static struct trace_array *top;

/* Set @top_array, the top instance, before an event is registered. */
void rhist_user_events_init(struct trace_array *top_array)
{
	top = top_array;
}

static struct list_head *next_instance(const struct trace_array *tr)
{
	return ((struct list_head *)((void *)tr + TRACE_ARRAY__LIST))->next;
}

/*
 * Walk the kernel's list of instances, with event_mutex held. Its head, ftrace_trace_arrays, is not
 * exported. But it comes after the top instance: the kernel makes that one first, and adds others
 * at the head.
 */
#define for_each_instance(tr)									\
	for (tr = (void *)next_instance(top)->next - TRACE_ARRAY__LIST;			\
	     (void *)tr + TRACE_ARRAY__LIST != next_instance(top);				\
	     tr = (void *)next_instance(tr) - TRACE_ARRAY__LIST)

/*
 * Return the file of an event in an instance, if it was enabled there; or NULL. event_mutex held.
 */
static struct trace_event_file *file_that_was_enabled(struct rhist_user_event *event,
						      struct trace_array *tr)
{
	struct trace_event_file *file;

	list_for_each_entry(file, rhist_events(tr), list) {
		if (file->event_call == &event->call)
			return file->flags & EVENT_FILE_FL_WAS_ENABLED ? file : NULL;
	}
	return NULL;
}

/*
 * Return the history of an instance; NULL if its allocation fails. Called with histories_lock held.
 */
static struct history *history_of(struct trace_array *tr)
{
	struct history *history;

	/* If an instance was removed and another one has its address, both share one history. */
	list_for_each_entry(history, &histories, list) {
		if (history->tr == tr)
			return history;
	}
	history = kmalloc(sizeof(*history), GFP_KERNEL);
	if (history) {
		history->tr = tr;
		INIT_LIST_HEAD(&history->holders);
		list_add(&history->list, &histories);
	}
	return history;
}

/*
 * Find the instances in which an event was enabled. event_mutex held. Return 0, or -ENOMEM, after
 * which forget_holders() has to be called.
 */
static int find_holders(struct rhist_user_event *event)
{
	struct history *history;
	struct holder *holder;
	struct trace_array *tr;

	if (!event->recorded)
		return 0;
	guard(mutex)(&histories_lock);
	for_each_instance(tr) {
		if (!file_that_was_enabled(event, tr))
			continue;
		history = history_of(tr);
		holder = kmalloc(sizeof(*holder), GFP_KERNEL);
		if (!history || !holder) {
			kfree(holder);
			put_histories();
			return -ENOMEM;
		}
		holder->last = ring_buffer_time_stamp(buffer_of(tr, false));
		list_add(&holder->of_event, &event->holders);
		/* Later events behind it: see rhist_user_events_look(). */
		list_add_tail(&holder->of_history, &history->holders);
	}
	return 0;
}

/*
 * Keep the kernel from emptying the buffers in which an event may have been recorded. Because of
 * the flag that is cleared here, it would do so when any dynamic event is deleted next. As the type
 * number of the event is kept, that is not necessary. event_mutex held.
 */
static void keep_buffers(struct rhist_user_event *event)
{
	struct trace_event_file *file;
	struct trace_array *tr;

	for_each_instance(tr) {
		file = file_that_was_enabled(event, tr);
		if (file)
			clear_bit(EVENT_FILE_FL_WAS_ENABLED_BIT, &file->flags);
	}
}

/*
 * Maximum difference between the clocks of processors: a second if the clock of the buffer counts
 * nanoseconds.
 */
#define SKEW NSEC_PER_SEC

/* The bits of the length of a page's data, beside which it has two flags. */
#define RB_LEN_MASK (BIT(30) - 1)

/*
 * Return the time of the oldest record in a processor's part of a buffer, or an earlier time;
 * U64_MAX if it is empty. An iterator would give the time, but while it exists, the buffer cannot
 * be resized.
 */
static u64 oldest_of_cpu(struct trace_buffer *buffer, int cpu)
{
	void *part, *page, *data;
	unsigned long flags, len;
	raw_spinlock_t *lock;
	u64 oldest;

	if (!buffer || ring_buffer_empty_cpu(buffer, cpu))
		return U64_MAX;
	/*
	 * The oldest time in the pages that consuming readers have not reached. A page that they
	 * reach meanwhile becomes the reader page, which is looked at below. Pages are replaced
	 * with reader_lock held.
	 */
	oldest = ring_buffer_oldest_event_ts(buffer, cpu);
	part = (*(void ***)((void *)buffer + TRACE_BUFFER__BUFFERS))[cpu];
	lock = part + RING_BUFFER_PER_CPU__READER_LOCK;
	raw_spin_lock_irqsave(lock, flags);
	page = *(void **)(part + RING_BUFFER_PER_CPU__READER_PAGE);
	data = *(void **)(page + BUFFER_PAGE__PAGE);
	len = local_read((local_t *)(data + BUFFER_DATA_PAGE__COMMIT)) & RB_LEN_MASK;
	if (*(unsigned int *)(page + BUFFER_PAGE__READ) < len)
		oldest = min(oldest, *(u64 *)(data + BUFFER_DATA_PAGE__TIME_STAMP));
	raw_spin_unlock_irqrestore(lock, flags);
	return oldest;
}

/*
 * The time of the oldest record in the buffers of an instance that exists: see oldest_of_cpu().
 * event_mutex held.
 */
static u64 oldest_of(struct trace_array *tr)
{
	struct trace_buffer *buffer = buffer_of(tr, false), *of_snapshot = buffer_of(tr, true);
	u64 oldest = U64_MAX;
	int cpu;

	/* The buffers are being swapped. */
	if (buffer == of_snapshot)
		return 0;
	for_each_possible_cpu(cpu) {
		/* One of them twice, since latency tracers swap the parts of a processor. */
		oldest = min(oldest, oldest_of_cpu(buffer, cpu));
		oldest = min(oldest, oldest_of_cpu(of_snapshot, cpu));
		oldest = min(oldest, oldest_of_cpu(buffer, cpu));
	}
	return oldest;
}

static bool exists(const struct trace_array *tr)
{
	struct trace_array *other;

	for_each_instance(other) {
		if (other == tr)
			return true;
	}
	return false;
}

/**
 * rhist_user_events_look - find out which removed events still have records
 *
 * The kernel finds the event of a record by its type number. If a number were used again while a
 * buffer has records with it, these would be printed as records of another event: by its name, and
 * with the offsets of its fields, which may lead behind the end of the record. So the number stays
 * registered, with the event that prints its records, until each buffer that the event was recorded
 * in has been reset, or overwritten, or its instance removed: while rhist_user_event_held().
 *
 * Each buffer is looked at once, however many events there are.
 *
 * Context: task, may sleep; event_mutex held.
 */
void rhist_user_events_look(void)
{
	struct holder *holder, *next;
	struct history *history;
	u64 oldest;

	guard(mutex)(&histories_lock);
	list_for_each_entry(history, &histories, list) {
		oldest = exists(history->tr) ? oldest_of(history->tr) : U64_MAX;
		list_for_each_entry_safe(holder, next, &history->holders, of_history) {
			/*
			 * Holders are in order of time. If the clock was changed since, events are
			 * only kept longer.
			 */
			if (holder->last + SKEW >= oldest)
				break;
			drop_holder(holder);
		}
		cond_resched();
	}
	put_histories();
}

/* Return whether a removed event has to be kept: a buffer may have records of it. */
bool rhist_user_event_held(struct rhist_user_event *event)
{
	return !list_empty(&event->holders);
}

/*
 * Empty the buffers that may have records of events that were removed, as the kernel does when a
 * module with events is unloaded. Task context, sleeps; event_mutex held.
 */
void rhist_user_events_empty(void)
{
	struct history *history;

	/* So that buffers without such records stay as they are. */
	rhist_user_events_look();
	guard(mutex)(&histories_lock);
	list_for_each_entry(history, &histories, list) {
		if (!exists(history->tr))
			continue;
		ring_buffer_reset(buffer_of(history->tr, false));
		if (buffer_of(history->tr, true))
			ring_buffer_reset(buffer_of(history->tr, true));
	}
}

static int remove_event(struct rhist_user_event *event, bool by_command)
{
	int err;

	if (!event->visible)
		return -ENOENT;
	if (rhist_user_event_busy(event))
		return -EBUSY;
	err = find_holders(event);
	if (!err)
		err = event->ops->retire(event->owner, by_command);
	if (err) {
		forget_holders(event);
		return err;
	}
	/*
	 * If the kernel was told to delete this event, it empties the buffers at once, which is
	 * intended.
	 */
	if (!by_command)
		keep_buffers(event);
	WRITE_ONCE(event->removing, true);
	/*
	 * With these functions the kernel would unregister the type. The event is not written any
	 * more.
	 */
	event->call.event.funcs = NULL;
	/* Fails only for an enabled event, which this is not. */
	err = trace_remove_event_call(&event->call);
	if (WARN_ON_ONCE(err)) {
		event->call.event.funcs = &user_event_funcs;
		WRITE_ONCE(event->removing, false);
		forget_holders(event);
		return err;
	}
	event->visible = false;
	list_del_init(&event->dynamic.list);
	if (list_empty(&event->holders))
		unregister_type(event);
	return 0;
}

/*
 * Unregister an event. Called with event_mutex held; may sleep.
 *
 * Return: 0, -ENOENT if it is not registered, -EBUSY if it is enabled or
 * referenced, or the error of ops->retire().
 */
int rhist_user_event_remove(struct rhist_user_event *event)
{
	return remove_event(event, false);
}

/*
 * Return the size in bytes of the largest payload that fits all buffers for which the event is
 * enabled. Buffers that are too small drop a larger payload; so does a smaller buffer for which the
 * event is enabled later.
 */
size_t rhist_user_event_limit(struct rhist_user_event *event)
{
	size_t limit = SIZE_MAX;
	struct tracepoint_func *func;

	rhist_guard_call();
	func = rcu_dereference_raw(event->tracepoint.funcs);
	for (; func && func->func; func++) {
		size_t max = PERF_MAX_TRACE_SIZE;

		if (func->func == to_ftrace) {
			struct trace_event_file *file = func->data;

			max = ring_buffer_max_event_size(buffer_of(file->tr, false));
		}
		limit = min(limit, max - sizeof(struct trace_entry));
	}
	return limit;
}

/**
 * rhist_user_event_write - write a payload to all buffers for which the event is enabled
 * @event: a registered event
 * @bytes: the payload
 * @size: its size in bytes; see rhist_user_event_limit()
 *
 * Context: task; does not sleep.
 */
void rhist_user_event_write(struct rhist_user_event *event, const void *bytes, size_t size)
{
	struct payload payload = { .bytes = bytes, .size = size };
	struct tracepoint_func *func;

	rhist_guard_call();
	func = rcu_dereference_raw(event->tracepoint.funcs);
	for (; func && func->func; func++)
		((user_probe_t)func->func)(event, &payload, func->data);
}

/**
 * rhist_user_event_write_direct - copy a payload into the only buffer that has the event enabled
 * @event: a registered event
 * @source: the payload, and nothing else
 * @accept: checks the payload; NULL if every payload is valid
 * @fields: argument for @accept
 *
 * Context: task; does not sleep.
 *
 * Return: true if the payload was written. If not, no trigger was called and @source is unchanged:
 * the event is not enabled exactly once, has a trigger that reads no record, or the payload does
 * not fit, is not all in memory, or is not valid.
 */
bool rhist_user_event_write_direct(struct rhist_user_event *event, struct iov_iter *source,
				   rhist_accept_t accept, const void *fields)
{
	struct payload payload = {
		.size = iov_iter_count(source), .source = source,
		.accept = accept, .fields = fields,
	};
	struct tracepoint_func *func;

	rhist_guard_call();
	func = rcu_dereference_raw(event->tracepoint.funcs);
	if (func && func->func && !func[1].func)
		((user_probe_t)func->func)(event, &payload, func->data);
	if (!payload.written)
		iov_iter_revert(source, payload.size - iov_iter_count(source));
	return payload.written;
}

/*
 * Commands of dynamic_events.
 *
 * The kernel has a list of the types of dynamic events (dyn_event_ops_list, under
 * dyn_event_ops_mutex) and a list of the events (dyn_event_list, under event_mutex). Neither these
 * nor dyn_event_ops_mutex is exported. But a kprobe event is linked into both lists, by itself and
 * by its type, and creating one is exported. So one is created and deleted again, and two entries
 * are inserted after it: dynamic_ops after its type, and after the event an anchor, which is not an
 * event and stays linked, as the position of user events.
 *
 * dynamic_ops is inserted and removed without dyn_event_ops_mutex. That is safe, because the
 * readers of the list follow only the next pointers. After removal dyn_event_ops_mutex is taken
 * once, to wait for readers.
 *
 * Locks: dyn_event_ops_mutex -> locks of ops->create().
 */
static const struct rhist_user_event_ops *commands;
static const void *commands_owner;

static struct rhist_user_event *of_dynamic(struct dyn_event *dynamic)
{
	return dynamic == &anchor ? NULL : container_of(dynamic, struct rhist_user_event, dynamic);
}

static int dynamic_create(const char *command)
{
	int err;

	if (!str_has_prefix(command, "u:") || !rhist_enter())
		return -ECANCELED;
	err = commands->create(commands_owner, skip_spaces(command + strlen("u:")));
	/* The caller holds dyn_event_ops_mutex, for which rhist_dynamic_events_leave() waits. */
	rhist_leave();
	return err;
}

static int dynamic_show(struct seq_file *m, struct dyn_event *dynamic)
{
	struct rhist_user_event *event = of_dynamic(dynamic);

	if (event)
		seq_printf(m, "u:%s\n", event->declaration);
	return 0;
}

static bool dynamic_is_busy(struct dyn_event *dynamic)
{
	struct rhist_user_event *event = of_dynamic(dynamic);

	return event && (rhist_user_event_busy(event) || event->ops->busy(event->owner));
}

static int dynamic_free(struct dyn_event *dynamic)
{
	struct rhist_user_event *event = of_dynamic(dynamic);
	int err = event ? remove_event(event, true) : 0;

	if (event && !err)
		event->ops->removed(event->owner);
	return err;
}

static bool dynamic_match(const char *system, const char *name, int argc, const char **argv,
			  struct dyn_event *dynamic)
{
	struct rhist_user_event *event = of_dynamic(dynamic);

	return event && event->ops->matches(event->owner, system, name, argc, argv);
}

static struct dyn_event_operations dynamic_ops = {
	.create = dynamic_create,
	.show = dynamic_show,
	.is_busy = dynamic_is_busy,
	.free = dynamic_free,
	.match = dynamic_match,
};

#ifdef CONFIG_KPROBE_EVENTS

/*
 * The kprobe event by which the lists are found; and the function that it probes, which any kernel
 * has.
 */
static const char kprobe_name[] = "rhist_anchor", kprobe_place[] = "filp_open";

/*
 * Return the dynamic event of a kprobe event: the one of its first probe. Others can be removed
 * without the event, under event_mutex.
 */
static struct dyn_event *dynamic_of(struct trace_event_call *call)
{
	struct list_head *probes = (void *)call - TRACE_PROBE_EVENT__CALL + TRACE_PROBE_EVENT__PROBES;

	return (void *)list_first_entry(probes, struct trace_probe, list) - TRACE_KPROBE__TP + TRACE_KPROBE__DEVENT;
}

static int insert(void *call)
{
	struct dyn_event *kprobe = dynamic_of(call);
	struct list_head *kind = &kprobe->ops->list;

	list_add(&anchor.list, &kprobe->list);
	dynamic_ops.list.prev = kind;
	dynamic_ops.list.next = kind->next;
	kind->next->prev = &dynamic_ops.list;
	/* Pairs with the address dependency in the list walk of create_dyn_event(). */
	smp_store_release(&kind->next, &dynamic_ops.list);
	return 0;
}

static int anchor_remove(void *arg)
{
	list_del_init(&anchor.list);
	return 0;
}

static int create_kprobe(void)
{
	char definition[64];
	struct dynevent_cmd cmd;
	int err;

	kprobe_event_cmd_init(&cmd, definition, sizeof(definition));
	err = kprobe_event_gen_cmd_start(&cmd, kprobe_name, kprobe_place);
	return err ?: kprobe_event_gen_cmd_end(&cmd);
}

/* Delete the event. It may be in use, for example by a program that has just enabled all events. */
static void delete_kprobe(void)
{
	int tries = 50;

	while (kprobe_event_delete(kprobe_name) == -EBUSY) {
		if (!tries--) {
			pr_warn("rhist: kprobe event %s is in use and stays; it can be deleted later\n", kprobe_name);
			return;
		}
		fsleep(10000);
	}
}

/* Link the anchor and dynamic_ops. Task context; takes event_mutex. */
static int link_dynamic(struct trace_array *tr)
{
	struct trace_event_file *file = trace_get_event_file(NULL, "kprobes", kprobe_name);
	/*
	 * An existing event of that name serves as well. Creating it would add another probe to it.
	 */
	bool ours = IS_ERR(file);
	int err;

	if (ours) {
		err = create_kprobe();
		if (err)
			return err;
		file = trace_get_event_file(NULL, "kprobes", kprobe_name);
	}
	err = PTR_ERR_OR_ZERO(file);
	if (err)
		goto out;
	/* A probe of another kind may have this name, too. */
	err = file->event_call->flags & TRACE_EVENT_FL_KPROBE ? rhist_with_event_mutex(tr, insert, file->event_call) : -EEXIST;
	trace_put_event_file(file);
out:
	if (ours)
		delete_kprobe();
	return err;
}

static void unlink_dynamic(struct trace_array *tr)
{
	struct dynevent_cmd barrier;
	char nothing[] = "x";

	if (list_empty(&anchor.list))
		return;
	dynamic_ops.list.next->prev = dynamic_ops.list.prev;
	WRITE_ONCE(dynamic_ops.list.prev->next, dynamic_ops.list.next);
	/* Take and release dyn_event_ops_mutex, by a command that creates no kprobe. */
	kprobe_event_cmd_init(&barrier, nothing, sizeof(nothing));
	dynevent_create(&barrier);
	while (rhist_with_event_mutex(tr, anchor_remove, NULL))
		fsleep(10000);
}

#else

/* Without kprobe events, the lists cannot be found. */
static int link_dynamic(struct trace_array *tr)
{
	return 0;
}

static void unlink_dynamic(struct trace_array *tr)
{
}

#endif

/**
 * rhist_dynamic_events_enter - register for "u:" commands of dynamic_events
 * @tr: for rhist_with_event_mutex()
 * @ops: its create() is called for each command
 * @owner: argument for create()
 *
 * @ops and @owner must be valid until rhist_dynamic_events_leave().
 *
 * Context: task, may sleep; takes event_mutex.
 *
 * Return: 0, also if nothing was registered because the kernel has user events
 * itself or lacks kprobe events; -EBUSY if another registration exists; or another negative errno.
 */
int rhist_dynamic_events_enter(struct trace_array *tr, const struct rhist_user_event_ops *ops,
			       const void *owner)
{
	int err = 0;

	if (cmpxchg(&commands, NULL, ops))
		return -EBUSY;
	commands_owner = owner;
	if (!IS_ENABLED(CONFIG_USER_EVENTS))
		err = link_dynamic(tr);
	if (err)
		WRITE_ONCE(commands, NULL);
	return err;
}

/*
 * Undo rhist_dynamic_events_enter(). Called when no user event is registered any more, in task
 * context; sleeps, and takes dyn_event_ops_mutex and event_mutex.
 */
void rhist_dynamic_events_leave(struct trace_array *tr)
{
	unlink_dynamic(tr);
	WRITE_ONCE(commands, NULL);
}
