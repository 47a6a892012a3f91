/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_USER_EVENT_H
#define RHIST_USER_EVENT_H

#include <linux/types.h>

struct iov_iter;
struct trace_array;
struct trace_event_call;

struct rhist_user_event;
/*
 * Callbacks of the owner of an event, in task context; all except create() with event_mutex held.
 * @owner was passed to rhist_user_event_add(); for create(), to rhist_dynamic_events_enter().
 */
struct rhist_user_event_ops {
	/*
	 * Create an event for the command "u:@description". Called with
	 * dyn_event_ops_mutex held; may sleep. 0 or a negative errno.
	 */
	int (*create)(const void *owner, const char *description);
	/*
	 * Notify that the event was enabled or disabled: it is now enabled in @files instances, and
	 * by perf if @perf is not 0.
	 */
	void (*changed)(const void *owner, unsigned int files, unsigned int perf);
	/* Allow the removal of the event, and refuse new users then; or return a negative errno. */
	int (*retire)(const void *owner, bool by_command);
	/* Whether the event has users other than the listeners that have enabled it. */
	bool (*busy)(const void *owner);
	/*
	 * Notify that a command of dynamic_events has removed the event; the last call for @owner.
	 */
	void (*removed)(const void *owner);
	/* Whether a delete command is for this event. @system may be NULL; @argv: declaration. */
	bool (*matches)(const void *owner, const char *system, const char *event, int argc,
			const char **argv);
};

/* Check whether a payload is valid for the @fields of an event. Called with preemption disabled. */
typedef bool (*rhist_accept_t)(const void *fields, const void *payload, size_t size);

void rhist_user_events_init(struct trace_array *top_array);
struct rhist_user_event *rhist_user_event_new(const char *system, char *name, char *print_fmt,
					      const char *declaration, unsigned int max_fields,
					      const struct rhist_user_event_ops *ops);
void rhist_user_event_field(struct rhist_user_event *event, const char *type, const char *name,
			    unsigned int offset, unsigned int size, bool is_signed);
void rhist_user_event_free(struct rhist_user_event *event);
int rhist_user_event_add(struct rhist_user_event *event, const void *owner);
bool rhist_user_event_busy(struct rhist_user_event *event);
bool rhist_user_event_get(struct trace_event_call *call);
void rhist_user_event_put(struct trace_event_call *call);
int rhist_user_event_remove(struct rhist_user_event *event);
bool rhist_user_event_held(struct rhist_user_event *event);
void rhist_user_events_look(void);
void rhist_user_events_empty(void);
size_t rhist_user_event_limit(struct rhist_user_event *event);
void rhist_user_event_write(struct rhist_user_event *event, const void *payload, size_t size);
bool rhist_user_event_write_direct(struct rhist_user_event *event, struct iov_iter *source,
				   rhist_accept_t accept, const void *fields);
int rhist_dynamic_events_enter(struct trace_array *tr, const struct rhist_user_event_ops *ops,
			       const void *owner);
void rhist_dynamic_events_leave(struct trace_array *tr);

#endif
