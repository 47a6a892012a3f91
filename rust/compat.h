/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between versions and architectures of the kernel. Test for a feature where possible,
 * and for LINUX_VERSION_CODE otherwise. Other files contain no such tests.
 */
#ifndef RHIST_COMPAT_H
#define RHIST_COMPAT_H

#include <linux/cleanup.h>
#include <linux/dcache.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/namei.h>
#include <linux/preempt.h>
#include <linux/stringhash.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>
#include <linux/version.h>

/* The table of the native system calls: x86 makes it by another script. */
#if __has_include(<asm/syscalls_64.h>)
#define RHIST_SYSCALL_TABLE <asm/syscalls_64.h>
#else
#define RHIST_SYSCALL_TABLE <asm/syscall_table_64.h>
#endif

/*
 * A name in that table which differs from the name in the call's metadata
 * (arch/arm64/kernel/sys.c).
 */
#ifdef CONFIG_ARM64
#define sys_personality sys_arm64_personality
#endif

/*
 * 6.12, by the names of 7.2. Versions in between were not tried. Documentation/porting.rst lists
 * all interfaces that rhist uses and that differ, including those that need nothing here.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)

/*
 * Tracepoints: all probes are called with preemption off, not in a section of tracepoint_srcu
 * (__DO_TRACE()); so are probes of system calls, which read no user memory. So a hit does not turn
 * preemption off again, which would be counted twice. Waiting for hits includes waiting for RCU on
 * all kernels.
 */
#define rhist_guard_hit()		do { } while (0)
#define rhist_guard_probes()		do { } while (0)
#define rhist_guard_call()		guard(preempt_notrace)()
#define rhist_guard_tracepoint()	guard(preempt_notrace)()
#define rhist_guard_faultable()		guard(preempt_notrace)()
#define tracepoint_is_faultable(tp)	false
#define rhist_reads_user_memory(meta)	false
#define cpuid_base_hypervisor(signature, leaves)	hypervisor_cpuid_base(signature, leaves)
typedef unsigned long rhist_clone_flags_t;
#define cmp_int(a, b)			(((a) > (b)) - ((a) < (b)))
#define current_task			pcpu_hot.current_task
/* HIST_STACKTRACE_DEPTH (trace.h) minus one. */
#define RHIST_SYNTH_STACK_MOST		15

/*
 * Turn preemption on for a probe that takes spinlocks and allocates, which needs that with
 * PREEMPT_RT: the tracepoint has to be one that is called with it on. RCU then keeps the array of
 * probes, and makes unregistration wait.
 */
static inline void rhist_probe_may_lock(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		rcu_read_lock();
		preempt_enable_notrace();
	}
}

static inline void rhist_probe_locks_no_more(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		preempt_disable_notrace();
		rcu_read_unlock();
	}
}

/*
 * A flag says whether triggers count in sm_ref, which decides there whether the event may be
 * unregistered.
 */
static inline void rhist_soft_mode_changed(struct trace_event_file *file)
{
	if (atomic_read(&file->sm_ref) > 0)
		set_bit(EVENT_FILE_FL_SOFT_MODE_BIT, &file->flags);
	else
		clear_bit(EVENT_FILE_FL_SOFT_MODE_BIT, &file->flags);
}

/* The registers that handlers of fprobes get (6.14). */
#define rhist_fprobe_regs		pt_regs
#define rhist_fprobe_argument(regs, n)	regs_get_kernel_argument(regs, n)
#define rhist_fprobe_return_value(regs)	regs_return_value(regs)

/* These kernels lack lazy preemption. */
#define tif_test_bit(bit)		false
#define TIF_NEED_RESCHED_LAZY		0
#define TRACE_FLAG_NEED_RESCHED_LAZY	0

/* 6.13 has made one function of these two steps. */
static inline void hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}

#define icount_read(inode)		atomic_read(&(inode)->i_count)
#define QSTR_LEN(name, len)		((struct qstr)QSTR_INIT(name, len))

#ifdef CONFIG_PER_VMA_LOCK
/* Like vma_start_write(), which waits for readers without a bound. */
static inline int vma_start_write_killable(struct vm_area_struct *vma)
{
	unsigned int seq;

	if (__is_vma_write_locked(vma, &seq))
		return 0;
	if (down_write_killable(&vma->vm_lock->lock))
		return -EINTR;
	WRITE_ONCE(vma->vm_lock_seq, seq);
	up_write(&vma->vm_lock->lock);
	return 0;
}
#else
#define vma_start_write_killable(vma)	0
#endif

/*
 * Whether a VMA that is found without a lock is freed only after a grace period; and all files,
 * for which backing files of overlayfs are the exception here.
 */
#define RHIST_VMAS_STAY			IS_ENABLED(CONFIG_PER_VMA_LOCK)
#define RHIST_FILES_STAY		false
/* Take a reference to a file, unless the last one was put. */
#define rhist_file_try_get(file)	atomic_long_inc_not_zero(&(file)->f_count)

#ifdef CONFIG_PER_VMA_LOCK
/* Begin to read mappings without mmap_lock; false if somebody has it for writing (6.14). */
static inline bool mmap_lock_speculate_try_begin(struct mm_struct *mm, unsigned int *seq)
{
	*seq = raw_read_seqcount(&mm->mm_lock_seq);
	return !(*seq & 1);
}

/* Return whether somebody has had mmap_lock for writing since. */
static inline bool mmap_lock_speculate_retry(struct mm_struct *mm, unsigned int seq)
{
	return read_seqcount_retry(&mm->mm_lock_seq, seq);
}
#endif

/*
 * A dentry that stays in a directory has one more reference, which simple_recursive_removal() puts.
 */
static inline void d_make_persistent(struct dentry *dentry, struct inode *inode)
{
	d_instantiate(dentry, inode);
	dget(dentry);
}

#define d_make_discardable(dentry)	dput(dentry)

/*
 * Lookup without a check of permissions: the caller's permissions were checked for rhist's
 * directory, and do not matter for rhist's own lookups. Unlike lookup_one_len(),
 * lookup_one_qstr_excl() does not check them. It requires i_rwsem of the directory to be held
 * exclusively.
 */
#define RHIST_LOOKUP_SHARED		false

static inline int lookup_noperm_common(struct qstr *name, struct dentry *dir)
{
	name->hash = full_name_hash(dir, name->name, name->len);
	if (!name->len || (name->name[0] == '.' && (name->len == 1 || (name->len == 2 && name->name[1] == '.'))))
		return -EACCES;
	return memchr(name->name, '/', name->len) || memchr(name->name, 0, name->len) ? -EACCES : 0;
}

static inline struct dentry *try_lookup_noperm(struct qstr *name, struct dentry *dir)
{
	int err = lookup_noperm_common(name, dir);

	return err ? ERR_PTR(err) : d_lookup(dir, name);
}

static inline struct dentry *lookup_noperm(struct qstr *name, struct dentry *dir)
{
	int err = lookup_noperm_common(name, dir);

	return err ? ERR_PTR(err) : lookup_one_qstr_excl(name, dir, 0);
}

static inline struct dentry *lookup_noperm_positive_unlocked(struct qstr *name, struct dentry *dir)
{
	struct dentry *found;

	if (down_write_killable(&d_inode(dir)->i_rwsem))
		return ERR_PTR(-EINTR);
	found = lookup_noperm(name, dir);
	inode_unlock(d_inode(dir));
	if (IS_ERR(found) || !d_flags_negative(smp_load_acquire(&found->d_flags)))
		return found;
	dput(found);
	return ERR_PTR(-ENOENT);
}

/* Lock a directory to create a name in it or to remove one. Undone by rhist_end_dirop(). */
static inline struct dentry *rhist_start_dirop(struct dentry *dir, struct qstr *name, unsigned int flags)
{
	int err = lookup_noperm_common(name, dir);
	struct dentry *dentry;

	if (err)
		return ERR_PTR(err);
	inode_lock_nested(d_inode(dir), I_MUTEX_PARENT);
	dentry = lookup_one_qstr_excl(name, dir, flags);
	if (!IS_ERR(dentry) && d_is_negative(dentry) && !(flags & LOOKUP_CREATE)) {
		dput(dentry);
		dentry = ERR_PTR(-ENOENT);
	}
	if (!IS_ERR(dentry) && d_is_positive(dentry) && flags & LOOKUP_EXCL) {
		dput(dentry);
		dentry = ERR_PTR(-EEXIST);
	}
	if (IS_ERR(dentry))
		inode_unlock(d_inode(dir));
	return dentry;
}

static inline void rhist_end_dirop(struct dentry *dentry)
{
	inode_unlock(d_inode(dentry->d_parent));
	dput(dentry);
}

static inline struct dentry *simple_start_creating(struct dentry *dir, const char *name)
{
	return rhist_start_dirop(dir, &QSTR_LEN(name, strlen(name)), LOOKUP_CREATE | LOOKUP_EXCL);
}

#define simple_done_creating(dentry)	rhist_end_dirop(dentry)

/* These do check permissions. */
static inline struct dentry *start_creating(struct mnt_idmap *idmap, struct dentry *dir, struct qstr *name)
{
	int err = inode_permission(idmap, d_inode(dir), MAY_EXEC);

	return err ? ERR_PTR(err) : rhist_start_dirop(dir, name, LOOKUP_CREATE);
}

static inline struct dentry *start_removing(struct mnt_idmap *idmap, struct dentry *dir, struct qstr *name)
{
	int err = inode_permission(idmap, d_inode(dir), MAY_EXEC);

	return err ? ERR_PTR(err) : rhist_start_dirop(dir, name, 0);
}

#define end_removing(dentry)		rhist_end_dirop(dentry)

static inline int rhist_vfs_mkdir(struct mnt_idmap *idmap, struct dentry *dir, struct dentry *made, umode_t mode)
{
	int err = vfs_mkdir(idmap, d_inode(dir), made, mode);

	rhist_end_dirop(made);
	return err;
}

#define rhist_vfs_rmdir(dir, gone)	vfs_rmdir(&nop_mnt_idmap, dir, gone)
#define rhist_revalidate(dentry)	((dentry)->d_op->d_revalidate(dentry, 0))

#else

/* To be called after sm_ref was changed. */
#define rhist_soft_mode_changed(file)	do { } while (0)
/*
 * In a probe of a tracepoint that is called with preemption on: between these two, it may take
 * spinlocks and allocate.
 */
#define rhist_probe_may_lock()		do { } while (0)
#define rhist_probe_locks_no_more()	do { } while (0)
/* In a probe: turn preemption off until the end of the block. */
#define rhist_guard_hit()		guard(preempt_notrace)()
/*
 * With preemption off: keep the probes of all tracepoints, and the memory that they use, until the
 * end of the block.
 */
#define rhist_guard_probes()		guard(srcu_fast_notrace)(&tracepoint_srcu)
/* Both guards, to call probes. */
#define rhist_guard_call()		rhist_guard_probes(); rhist_guard_hit()
/*
 * The guards that a tracepoint takes before it calls its probes, and a faultable one: for
 * benchmarks.
 */
#define rhist_guard_tracepoint()	rhist_guard_probes()
#define rhist_guard_faultable()		guard(rcu_tasks_trace)()
/* Whether a hit of a system call's event reads user memory. */
#define rhist_reads_user_memory(meta)	((meta)->user_mask)
#define RHIST_LOOKUP_SHARED		true
#define RHIST_VMAS_STAY			true
#define RHIST_FILES_STAY		true
#define rhist_file_try_get(file)	file_ref_get(&(file)->f_ref)
#define rhist_fprobe_regs		ftrace_regs
#define rhist_fprobe_argument(regs, n)	ftrace_regs_get_argument(regs, n)
#define rhist_fprobe_return_value(regs)	ftrace_regs_get_return_value(regs)
/*
 * Maximum number of return addresses of a stack in the record of a synthetic event: of the
 * HIST_STACKTRACE_DEPTH words that the kernel copies, one is their number (trace_stack(),
 * trace_events_synth.c).
 */
#define RHIST_SYNTH_STACK_MOST		30
typedef u64 rhist_clone_flags_t;

/* Call mkdir() of a file system, then undo start_creating(). Return 0 or a negative errno. */
static inline int rhist_vfs_mkdir(struct mnt_idmap *idmap, struct dentry *dir, struct dentry *made, umode_t mode)
{
	made = vfs_mkdir(idmap, d_inode(dir), made, mode, NULL);
	end_creating(made);
	return PTR_ERR_OR_ZERO(made);
}

#define rhist_vfs_rmdir(dir, gone)	vfs_rmdir(&nop_mnt_idmap, dir, gone, NULL)
#define rhist_revalidate(dentry) \
	((dentry)->d_op->d_revalidate(d_inode((dentry)->d_parent), &(dentry)->d_name, dentry, 0))

#endif

/*
 * Whether a hit is in the code of a task that has mmap_lock of @mm for writing, while its sequence
 * count is odd: no other task changes the mappings then. An interrupt may have come in the middle
 * of a change. A writer is in the lock's owner without flags (kernel/locking/rwsem.c). With
 * PREEMPT_RT, the lock is of another kind.
 */
static inline bool rhist_holds_mappings(struct mm_struct *mm)
{
#ifdef CONFIG_PREEMPT_RT
	return false;
#else
	return in_task() && atomic_long_read(&mm->mmap_lock.owner) == (long)current;
#endif
}

#endif
