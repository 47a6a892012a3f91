/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Wrappers of the kernel's inline functions and macros, and code that must be
 * C. The definition of each function states its calling context.
 */
#ifndef RHIST_HELPERS_H
#define RHIST_HELPERS_H

#include <linux/irq_work.h>
#include <linux/sched/task_stack.h>
#include <linux/types.h>
#include <linux/wait.h>

struct dentry;
struct event_trigger_data;
struct file;
struct file_operations;
struct iattr;
struct inode;
struct inode_operations;
struct iov_iter;
struct list_head;
struct mm_struct;
struct mnt_idmap;
struct page;
struct poll_table_struct;
struct ring_buffer_event;
struct synth_field;
struct trace_array;
struct trace_event_call;
struct trace_event_file;
struct tracepoint;
struct workqueue_struct;

/* parameters.c */
struct rhist_parameters {
	bool probes;
	unsigned short user_events_data_mode;
	unsigned short user_events_status_mode;
	unsigned int user_events_uid;
	unsigned int user_events_gid;
	bool user_events_lossy;
	bool user_events_status_bits;
};
extern struct rhist_parameters rhist_parameters;

/* helpers.c */
void rhist_smp_mb(void);
long rhist_available_pages(void);
unsigned int rhist_cpu(void);
unsigned int rhist_nr_cpu_ids(void);
unsigned int rhist_online_end(void);
int rhist_cpu_to_node(unsigned int cpu);
void rhist_current_comm(char *to);
struct list_head *rhist_event_fields(struct trace_event_call *call);
size_t rhist_record_len(struct ring_buffer_event *event);
int rhist_event_reg(struct trace_event_call *call, struct trace_event_file *file, bool on);
struct list_head *rhist_events(struct trace_array *tr);
const char *rhist_event_name(struct trace_event_call *call);
struct trace_event_file *rhist_marker_file(struct trace_array *tr);
void rhist_file_get(struct trace_event_file *file);
void rhist_file_put(struct trace_event_file *file);
bool rhist_file_ignores_task(struct trace_event_file *file);
void rhist_trigger_list(struct trace_event_file *file, struct event_trigger_data *data);
void rhist_trigger_unlist(struct event_trigger_data *data);
void rhist_tracepoint_synchronize_unregister(void);
void rhist_synchronize_tracepoint_srcu(void);
bool rhist_event_may_fault(struct trace_event_call *call);
bool rhist_event_built_in(struct trace_event_call *call);
int rhist_locked_down(void);
size_t rhist_hash_pointer(char *buf, size_t size, const void *pointer);
size_t rhist_symbol(char *buf, size_t size, const void *address, bool offset);
bool rhist_function(unsigned long address, unsigned long *start, unsigned long *size);
bool rhist_function_begins(unsigned long address, const char *prefix);
bool rhist_function_addresses(const char *const *names, unsigned long *addresses, size_t n);
unsigned long rhist_event_iterator(struct trace_event_call *call);
u64 rhist_tsc(void);
u64 rhist_local_clock(void);
void rhist_synchronize_rcu_tasks(void);
const char *rhist_syscall_name(u64 number);
bool rhist_yield_unless_killed(void);
bool rhist_read_kernel(void *to, const void *from, size_t size);
bool rhist_read_user(void *to, unsigned long from, size_t size);
struct workqueue_struct *rhist_alloc_workqueue(void);
bool rhist_perfmon_capable(void);
bool rhist_may_exceed_limits(void);
uid_t rhist_charged_user(void);
bool rhist_access_ok(unsigned long addr, size_t size);
bool rhist_read_number(struct iov_iter *source, int *number);
void rhist_set_page_bit(struct page *page, unsigned int bit, bool on);

/* event_file.c */
struct rhist_event_file;
struct rhist_event_file *rhist_event_file_connect(struct trace_array *tr, struct trace_event_call *call,
						  struct event_trigger_data *data);
void rhist_event_file_disconnect(struct rhist_event_file *file, struct event_trigger_data *data);
void rhist_event_file_put(struct rhist_event_file *file);
struct trace_event_call *rhist_event_target(struct trace_event_call *call);
int rhist_event_probe_pin(struct trace_event_call *call);
void rhist_event_probe_unpin(struct trace_event_call *call);

/* instance.c */
void rhist_set_busy(struct dentry *dir, bool busy);
struct trace_array *rhist_instance_create(struct dentry **dir);
int rhist_instance_destroy(struct trace_array *tr, struct dentry *dir);
int rhist_set_trigger(struct dentry *trigger, const char *text);

/* tracefs.c */
struct module *rhist_gate(void);
void rhist_gate_wait(void);
bool rhist_enter(void);
void rhist_leave(void);
struct dentry *rhist_tracefs_root(const char *name);
struct inode *rhist_new_inode(struct inode *like, umode_t mode,
			      const struct inode_operations *iop,
			      const struct file_operations *fop, void *private);
int rhist_permission(struct mnt_idmap *idmap, struct inode *mirror, struct inode *real, int mask);
int rhist_getattr(const struct path *mirror, struct dentry *real, struct kstat *stat,
		  u32 request_mask, unsigned int flags);
int rhist_setattr(struct mnt_idmap *idmap, struct dentry *mirror, struct dentry *real,
		  struct iattr *attr);
int rhist_setattr_own(struct mnt_idmap *idmap, struct dentry *file, struct iattr *attr);
int rhist_fsync(struct file *real, loff_t start, loff_t end, int datasync);
void rhist_inode_own(struct inode *inode, uid_t uid, gid_t gid);
void *rhist_inode_private(struct inode *inode);
const struct file_operations *rhist_get_fops(struct dentry *file);
void rhist_put_fops(const struct file_operations *fops);
bool rhist_inode_unused(struct inode *inode, bool removed);
void rhist_inode_close(struct inode *inode, struct inode *bad);
void rhist_inode_revoke(struct inode *inode);
struct dentry *rhist_create_dir(struct dentry *parent, const char *name, struct inode *inode);
struct dentry *rhist_create_file(struct dentry *parent, const char *name, struct inode *inode);
void rhist_remove_dir(struct dentry *dir);
void rhist_keep_name(struct dentry *name, struct dentry *real);
struct dentry *rhist_lookup_nested(struct dentry *dir, const char *name, unsigned int len);
struct dentry *rhist_lookup(struct dentry *dir, const char *name, unsigned int len);
struct file *rhist_open_dir(struct file *mirror, struct dentry *real);
struct file *rhist_open_beside(struct file *file, struct dentry *real, unsigned int flags);
ssize_t rhist_read_seq(struct file *file, void *to, size_t len, loff_t *pos);
ssize_t rhist_write(struct file *file, const char __user *from, size_t len);
void rhist_unlock_dir(struct inode *dir, struct inode *child);
void rhist_relock_dir(struct inode *dir, struct inode *child);
void rhist_unlock_dir_shared(struct inode *dir);
void rhist_relock_dir_shared(struct inode *dir);
int rhist_mkdir(struct mnt_idmap *idmap, struct dentry *dir, const char *name,
		unsigned int len, umode_t mode);
int rhist_rmdir(struct dentry *dir, const char *name, unsigned int len);
bool rhist_removed(struct dentry *dentry);
bool rhist_lists_triggers(struct dentry *dentry);
bool rhist_has_triggers(struct dentry *trigger);
int rhist_forget(struct dentry *dentry);
struct dentry *rhist_dget(struct dentry *dentry);

/* stack.c */
/* How rhist_stack_save() begins at a given frame; neither is defined if it cannot. */
#if defined(CONFIG_UNWINDER_ORC) || defined(CONFIG_UNWINDER_FRAME_POINTER)
#define RHIST_STACK_UNWINDER
#elif defined(CONFIG_UML_X86) && defined(CONFIG_FRAME_POINTER)
#define RHIST_STACK_FRAMES
#endif

/* A stack frame: registers of a function that has not returned yet. */
struct rhist_frame {
	unsigned long ip, sp, bp;
};

/* Get the frame of the caller of the function that this is inlined into. */
static __always_inline void rhist_frame_of_caller(struct rhist_frame *frame)
{
#if defined(RHIST_STACK_UNWINDER) || defined(RHIST_STACK_FRAMES)
	const unsigned long *here = __builtin_frame_address(0);

	frame->bp = here[0];
	frame->ip = here[1];
	frame->sp = (unsigned long)&here[2];
#endif
}

unsigned int rhist_stack_save(const struct rhist_frame *frame, unsigned long *entries,
			      unsigned int n);
bool rhist_interrupt_stack_suffices(void);
bool rhist_stack_suffices_outlined(void);

/*
 * What a hit of a synthetic event takes of the stack at most until it asks again, with the probe that it is in, and with
 * what others do in theirs. A test measures that.
 */
#define RHIST_HIT_STACK	(THREAD_SIZE * 5 / 16)

/*
 * Whether enough of the stack is left for an event that happens within a hit. Hits nest in that, so this is asked before
 * anything of it is on the stack, and says no unless as much is left as these take until they ask in turn, and then as
 * those take who may interrupt them there. Interrupts of a task have another stack. Any context, with preemption off.
 */
static __always_inline bool rhist_stack_suffices(void)
{
	unsigned long left = current_stack_pointer - (unsigned long)task_stack_page(current);

	return likely(left < THREAD_SIZE) ? left >= RHIST_HIT_STACK : rhist_interrupt_stack_suffices();
}

/* poll.c */
struct rhist_poll_queue {
	wait_queue_head_t waiting;
	struct irq_work wake;
};

void rhist_poll_queue_init(struct rhist_poll_queue *queue);
void rhist_poll_queue_end(struct rhist_poll_queue *queue);
void rhist_poll_wait(struct file *file, struct rhist_poll_queue *queue,
		     struct poll_table_struct *table);
void rhist_poll_wake(struct rhist_poll_queue *queue);
bool rhist_poll_error(struct file *file, struct poll_table_struct *table);

/* probe.c */
/* What a probe is registered with. */
struct rhist_probed {
	/* Of the records, in their common field. */
	unsigned short type;
	/* A trigger reads common_flags or common_preempt_count. */
	bool context;
	/* Of a synthetic event; 0 for others. */
	unsigned int n_fields;
};
void rhist_probe_hit_slow(const struct rhist_probed *probed, void *record, size_t size);
int rhist_probes_init(void);
void rhist_probes_exit(void);
void rhist_syscall_probes(unsigned long probes[2]);
void *rhist_probe_find(struct trace_event_call *call);
int rhist_probe_connect(struct trace_event_call *call, void *probe, struct rhist_probed *probed);
void rhist_probe_disconnect(struct trace_event_call *call, void *probe, struct rhist_probed *probed);

/* own_events.c */
int rhist_sync_init(const char *instance);
int rhist_with_event_mutex(struct trace_array *tr, int (*fn)(void *), void *arg);

/* snapshot.c */
/* Whether to take a snapshot, for what was passed to rhist_snapshot_take(). Interrupts are off. */
typedef bool (*rhist_update_t)(struct trace_array *tr, void *cond_data);
int rhist_snapshot_enable(struct trace_array *tr, rhist_update_t update);
void rhist_snapshot_disable(struct trace_array *tr);
void rhist_snapshot_take(struct trace_array *tr, void *cond_data);

/* synthetic.c */
bool rhist_is_synthetic(struct trace_event_call *call);
void rhist_synthetic_count(struct trace_event_call *call, int users);
struct synth_field **rhist_synthetic_fields(struct trace_event_call *call, unsigned int *n);
bool rhist_synthetic_emit(struct tracepoint *tp, struct trace_array *tr, const u64 *vals,
			  const unsigned int *idx);

/* user_event.c */
struct rhist_user_event;
/*
 * Callbacks of the owner of an event, in task context; all but create() with event_mutex held.
 * @owner is that of rhist_user_event_add(), and in create() that of rhist_dynamic_events_enter().
 */
struct rhist_user_event_ops {
	/*
	 * Create an event for a "u:" command, of which @description is the rest. Called with
	 * dyn_event_ops_mutex held; may sleep. 0 or a negative errno.
	 */
	int (*create)(const void *owner, const char *description);
	/* The event was enabled or disabled: now in @files instances, by perf if @perf is not 0. */
	void (*changed)(const void *owner, unsigned int files, unsigned int perf);
	/* Allow the removal of the event, and refuse new users then; or return a negative errno. */
	int (*retire)(const void *owner, bool by_command);
	/* Whether the event has users other than those that have it enabled. */
	bool (*busy)(const void *owner);
	/* The event was removed by a command of dynamic_events; the last call for @owner. */
	void (*removed)(const void *owner);
	/* Whether a delete command is for this event. @system may be NULL; @argv: declaration. */
	bool (*matches)(const void *owner, const char *system, const char *event, int argc,
			const char **argv);
};

/* Whether a payload is valid for the @fields of an event. Called with preemption disabled. */
typedef bool (*rhist_accept_t)(const void *fields, const void *payload, size_t size);

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
size_t rhist_user_event_limit(struct rhist_user_event *event);
void rhist_user_event_write(struct rhist_user_event *event, const void *payload, size_t size);
bool rhist_user_event_write_direct(struct rhist_user_event *event, struct iov_iter *source,
				   rhist_accept_t accept, const void *fields);
int rhist_dynamic_events_enter(struct trace_array *tr, const struct rhist_user_event_ops *ops,
			       const void *owner);
void rhist_dynamic_events_leave(struct trace_array *tr);

/* user_mm.c */
struct rhist_mm;
/* Callbacks for exit and fork of processes, in task context. */
struct rhist_mm_watcher {
	const void *owner;
	/* The last process has left @mm, of which there is a struct rhist_mm. May sleep. */
	void (*exited)(const void *owner, struct mm_struct *mm);
	/* current->mm is a copy of @parent, whose mm_users is held during the call. May sleep. */
	void (*forked)(const void *owner, struct mm_struct *parent);
};
struct rhist_mm *rhist_mm_get(void);
void rhist_mm_put(struct rhist_mm *memory);
struct mm_struct *rhist_current_mm(void);
struct mm_struct *rhist_mm_of(const struct rhist_mm *memory);
int rhist_mm_try_write_bit(struct rhist_mm *memory, unsigned long addr, unsigned int bit,
			   unsigned int size, bool on);
int rhist_mm_try_fault_in(struct rhist_mm *memory, unsigned long addr);
int rhist_mm_fault_in(struct rhist_mm *memory, unsigned long addr);
int rhist_user_pin(unsigned long addr, struct page **page);
void rhist_user_write_bit(struct page *page, unsigned long addr, unsigned int bit,
			  unsigned int size, bool on);
void rhist_user_unpin(struct page *page);
int rhist_mm_wait_for_forks(void);
int rhist_mm_watch(const struct rhist_mm_watcher *with);
void rhist_mm_unwatch(void);

#endif
