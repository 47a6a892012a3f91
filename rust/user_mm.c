// SPDX-License-Identifier: GPL-2.0
/*
 * Set bits in the memory of processes, and watch processes exit and fork.
 *
 * A reference on a struct rhist_mm pins the struct mm_struct (mm_count), so that
 * its address is not reused, but not the address space (mm_users): that is
 * pinned only during an access. An mmu notifier is called when the last process
 * has left the mm, by exit() or exec(). A probe of the tracepoint task_newtask
 * is called for a fork. It must not sleep, so it adds task work to the child,
 * which runs before the child first returns to user space. The parent may exit
 * at once, so its mm is pinned (mm_users) until then.
 *
 * Locks: mmap_lock is only waited for without any other lock.
 */
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/highmem.h>
#include <linux/hugetlb.h>
#include <linux/magic.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/task_work.h>
#include <linux/tracepoint.h>
#include <linux/wait_bit.h>
#include <trace/events/task.h>

#include "compat.h"
#include "tracefs/tracefs.h"
#include "user_mm.h"

struct rhist_mm {
	struct mmu_notifier notifier;
};

/* Written only while neither notifier nor probe is registered, so read without a lock. */
static struct rhist_mm_watcher watcher;
/* Bit 0: a watcher is registered. */
static unsigned long watched;
static struct tracepoint *newtask;

static struct mmu_notifier *alloc_notifier(struct mm_struct *mm)
{
	struct rhist_mm *memory = kzalloc(sizeof(*memory), GFP_KERNEL_ACCOUNT);

	return memory ? &memory->notifier : ERR_PTR(-ENOMEM);
}

static void free_notifier(struct mmu_notifier *notifier)
{
	kfree(container_of(notifier, struct rhist_mm, notifier));
}

/* Called when the last process has left the mm, whose pages are about to be freed. May sleep. */
static void release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	watcher.exited(watcher.owner, mm);
}

static const struct mmu_notifier_ops notifier_ops = {
	.alloc_notifier = alloc_notifier,
	.free_notifier = free_notifier,
	.release = release,
};

/*
 * Lock all VMAs of an mm until its mmap_lock is unlocked; -EINTR if the task is being killed.
 * mm_take_all_locks() locks them, too, but with a mutex held that all processes share, while a
 * process can make a page fault in another thread keep a VMA locked for any time. So wait for the
 * VMAs before calling it.
 */
static int lock_vmas(struct mm_struct *mm)
{
	VMA_ITERATOR(iterator, mm, 0);
	struct vm_area_struct *vma;
	int err = 0;

	for_each_vma(iterator, vma) {
		err = vma_start_write_killable(vma);
		if (err)
			break;
	}
	return err;
}

/*
 * mmu_notifier_get_locked(), which fails with -EINTR if a signal is pending. That error is useless
 * here: a program cannot do anything about it, and a child that is traced, or that a signal reaches
 * before it first returns to user space, would lose its bits. So ignore signals meanwhile. Blocking
 * them does not suffice, because stops by a tracer, the freezer and work of io_uring count as
 * signals, too.
 */
static struct mmu_notifier *get_notifier(struct mm_struct *mm)
{
	bool signal = false, notify = false;
	struct mmu_notifier *notifier;

	do {
		signal |= test_and_clear_thread_flag(TIF_SIGPENDING);
		notify |= test_and_clear_thread_flag(TIF_NOTIFY_SIGNAL);
		notifier = mmu_notifier_get_locked(&notifier_ops, mm);
	} while (notifier == ERR_PTR(-EINTR) && !__fatal_signal_pending(current));
	if (signal)
		set_thread_flag(TIF_SIGPENDING);
	if (notify)
		set_thread_flag(TIF_NOTIFY_SIGNAL);
	return notifier;
}

/**
 * rhist_mm_get - take a reference on the mm of the running task
 *
 * Context: task, may sleep, mmap_lock not held. Waits for mmap_lock and page faults of the process
 * until the task is killed.
 *
 * Return: the reference, to be put by rhist_mm_put(), or an ERR_PTR: -ENOMEM, -ESRCH if the task
 * lacks an mm, or -EINTR if it is being killed.
 */
struct rhist_mm *rhist_mm_get(void)
{
	struct mm_struct *mm = current->mm;
	struct mmu_notifier *notifier;
	int err;

	if (!mm)
		return ERR_PTR(-ESRCH);
	if (mmap_write_lock_killable(mm))
		return ERR_PTR(-EINTR);
	err = lock_vmas(mm);
	notifier = err ? ERR_PTR(err) : get_notifier(mm);
	mmap_write_unlock(mm);
	return IS_ERR(notifier) ? ERR_CAST(notifier) :
				  container_of(notifier, struct rhist_mm, notifier);
}

/* Put a reference of rhist_mm_get(). Any task context; does not sleep. */
void rhist_mm_put(struct rhist_mm *memory)
{
	mmu_notifier_put(&memory->notifier);
}

/* Return the mm of the running task, for comparisons only; NULL if it has none. */
struct mm_struct *rhist_current_mm(void)
{
	return current->mm;
}

/* Return the mm of a reference. */
struct mm_struct *rhist_mm_of(const struct rhist_mm *memory)
{
	return memory->notifier.mm;
}

/*
 * Set or clear a bit of a value of @size bytes (4 or 8), aligned to that, at the user
 * address @addr, which is in @page. Any context; the page is pinned.
 */
static void write_bit(struct page *page, unsigned long addr, unsigned int bit,
		      unsigned int size, bool on)
{
	unsigned long word = ALIGN_DOWN(addr, sizeof(long));
	void *at = kmap_local_page(page);
	unsigned long *value = at + offset_in_page(word);

	/* set_bit() works on a long; a value of 4 bytes may be its upper half. */
	if (size < sizeof(long) && (addr == word) == IS_ENABLED(CONFIG_CPU_BIG_ENDIAN))
		bit += 8 * size;
	/* Atomic, because programs change the other bits. */
	if (on)
		set_bit(bit, value);
	else
		clear_bit(bit, value);
	kunmap_local(at);
}

/*
 * Lock mmap_lock for reading, unless it is taken. Returns 0, to be followed by unlock_mm(); -EAGAIN
 * if it is taken; or -ENOENT if the last process has left the mm.
 */
static int try_lock_mm(struct mm_struct *mm)
{
	if (!mmget_not_zero(mm))
		return -ENOENT;
	if (mmap_read_trylock(mm))
		return 0;
	mmput_async(mm);
	return -EAGAIN;
}

/* Undo try_lock_mm(). Task context; locks may be held. */
static void unlock_mm(struct mm_struct *mm)
{
	mmap_read_unlock(mm);
	/* Asynchronous, because the last mmput() tears the mm down. */
	mmput_async(mm);
}

/**
 * rhist_mm_try_write_bit - set or clear a bit, if that needs no waiting
 * @memory: the mm
 * @addr: address of the value, aligned to its size
 * @bit: the bit of the value, less than 8 * @size
 * @size: size of the value: 4 or 8 bytes
 * @on: whether to set the bit
 *
 * Context: task; locks may be held. Waits neither for mmap_lock nor for the lock of the page, as a
 * process can hold both for any time if it maps a file of its own FUSE server. Faults no page in.
 *
 * Return: 0; -EAGAIN if one of these locks is taken; -EFAULT if the page is not present or not
 * writable; or -ENOENT if no process uses the mm any more.
 */
int rhist_mm_try_write_bit(struct rhist_mm *memory, unsigned long addr, unsigned int bit,
			   unsigned int size, bool on)
{
	struct mm_struct *mm = memory->notifier.mm;
	struct folio *folio;
	struct page *page;
	int err = try_lock_mm(mm);

	if (err)
		return err;
	err = -EAGAIN;
	if (pin_user_pages_remote(mm, addr, 1, FOLL_WRITE | FOLL_NOFAULT, &page, NULL) == 1) {
		folio = page_folio(page);
		if (folio_trylock(folio)) {
			write_bit(page, addr, bit, size, on);
			folio_mark_dirty(folio);
			folio_unlock(folio);
			err = 0;
		}
		unpin_user_page(page);
	} else {
		err = -EFAULT;
	}
	unlock_mm(mm);
	return err;
}

/*
 * Return whether a page fault in a VMA is handled by the kernel alone, or by a file system on a
 * block device: as opposed to one served by a process (FUSE) or another machine, which may take any
 * time.
 */
static bool faults_are_local(struct vm_area_struct *vma)
{
	const struct super_block *sb;

	if (!vma->vm_file || vma_is_anonymous(vma) || is_vm_hugetlb_page(vma) ||
	    shmem_mapping(vma->vm_file->f_mapping))
		return true;
	sb = file_inode(vma->vm_file)->i_sb;
	return sb->s_bdev && sb->s_magic != FUSE_SUPER_MAGIC;
}

/*
 * Return whether a page can be charged to the control groups of a process. At a limit, a fault
 * returns only after memory was reclaimed or the OOM killer has freed some, which may take as long
 * as the group has processes to kill.
 */
static bool can_be_charged(struct mm_struct *mm)
{
	bool can = true;
#ifdef CONFIG_MEMCG
	struct mem_cgroup *of_mm = get_mem_cgroup_from_mm(mm), *group;

	for (group = of_mm; group && can; group = parent_mem_cgroup(group))
		can = page_counter_read(&group->memory) < READ_ONCE(group->memory.max);
	mem_cgroup_put(of_mm);
#endif
	return can;
}

/* Bit 0: a page of a process at a limit is being faulted in. */
static unsigned long at_limit;

/*
 * Fault in a page for writing, without waiting for the page. Processes at a limit of their memory
 * take turns, so that all of them together occupy a single worker. Called with mmap_lock held.
 * Returns 0; -EAGAIN if it would have to wait, or it is another process' turn; or another error.
 */
static int fault_in_now(struct mm_struct *mm, unsigned long addr)
{
	bool limited = !can_be_charged(mm);
	long done;

	if (limited && test_and_set_bit_lock(0, &at_limit))
		return -EAGAIN;
	done = get_user_pages_remote(mm, addr, 1, FOLL_WRITE | FOLL_NOWAIT, NULL, NULL);
	if (limited)
		clear_bit_unlock(0, &at_limit);
	/* With FOLL_NOWAIT, 0 pages means that the fault would have to wait. */
	return done == 1 ? 0 : done ?: -EAGAIN;
}

/**
 * rhist_mm_try_fault_in - fault in a page for writing, without waiting for the process
 * @memory: the mm
 * @addr: an address in the page
 *
 * Context: task without locks; sleeps.
 *
 * Return: 0; -EAGAIN if mmap_lock is taken, or the page is not available at once, because it is
 * being read from a disk, the process has to provide it (userfaultfd), or the process is one of
 * several at their limits of memory; -EXDEV if it needs rhist_mm_fault_in(); -ENOENT if no process
 * uses the mm any more; or -EFAULT or another error if the page cannot be made writable.
 */
int rhist_mm_try_fault_in(struct rhist_mm *memory, unsigned long addr)
{
	struct mm_struct *mm = memory->notifier.mm;
	struct vm_area_struct *vma;
	int err = try_lock_mm(mm);

	if (err)
		return err;
	/* The other functions that look an address up remove its tag themselves. */
	vma = vma_lookup(mm, untagged_addr_remote(mm, addr));
	if (!vma)
		err = -EFAULT;
	else if (!faults_are_local(vma))
		err = -EXDEV;
	else
		err = fault_in_now(mm, addr);
	unlock_mm(mm);
	return err;
}

/*
 * Return whether a fault reads the page of the file into the page cache, and takes it from there.
 */
static bool faults_are_read(struct vm_area_struct *vma, pgoff_t index)
{
	struct inode *inode = vma->vm_file ? file_inode(vma->vm_file) : NULL;

	return inode && vma->vm_ops && vma->vm_ops->fault == filemap_fault && !IS_DAX(inode) &&
	       index < DIV_ROUND_UP(i_size_read(inode), PAGE_SIZE);
}

/**
 * rhist_mm_fault_in - fault in a page for writing, and wait for its file system
 * @memory: the mm
 * @addr: an address in the page
 *
 * With FOLL_NOWAIT, such a fault may wait nevertheless: a file system that a process serves can
 * have readahead wait for its answer. So the page is first read into the page cache, by its file.
 * The server of the file can delay that for any time, but the address space is not pinned
 * meanwhile: otherwise, if the process ended, its memory could not be freed, not even by the OOM
 * killer.
 *
 * Context: task without locks, sleeps.
 *
 * Return: 0; -EAGAIN if mmap_lock is taken, or the fault would have to wait; -ENOENT if no process
 * uses the mm any more; or -EFAULT or another error if the page cannot be read or made writable.
 */
int rhist_mm_fault_in(struct rhist_mm *memory, unsigned long addr)
{
	struct mm_struct *mm = memory->notifier.mm;
	struct vm_area_struct *vma;
	struct folio *folio = NULL;
	struct file *file = NULL;
	int err = try_lock_mm(mm);
	struct page *page;
	pgoff_t index;

	if (err)
		return err;
	vma = vma_lookup(mm, untagged_addr_remote(mm, addr));
	if (!vma) {
		err = -EFAULT;
	} else if (get_user_pages_remote(mm, addr, 1, FOLL_NOFAULT, &page, NULL) == 1) {
		/*
		 * The page is present, and only has to be made writable: most often by copying it.
		 */
		folio = page_folio(page);
	} else {
		index = linear_page_index(vma, untagged_addr_remote(mm, addr));
		if (faults_are_read(vma, index))
			file = get_file(vma->vm_file);
	}
	unlock_mm(mm);
	if (file) {
		folio = read_mapping_folio(file->f_mapping, index, file);
		fput(file);
		err = PTR_ERR_OR_ZERO(folio);
	}
	if (err)
		return err;
	if (folio)
		/* Required before a page of a file is made writable. */
		folio_wait_writeback(folio);
	err = try_lock_mm(mm);
	if (!err) {
		err = fault_in_now(mm, addr);
		unlock_mm(mm);
	}
	if (folio)
		folio_put(folio);
	return err;
}

/**
 * rhist_user_pin - pin a page of the running task for writing
 * @addr: an address in the page
 * @page: set to the page
 *
 * Context: task without locks. Sleeps for mmap_lock and a page fault, until the task is
 * killed.
 *
 * Return: 0, to be followed by rhist_user_unpin(), or a negative errno: -EFAULT if the
 * page cannot be made writable, or another one of pin_user_pages_fast().
 */
int rhist_user_pin(unsigned long addr, struct page **page)
{
	int done = current->mm ? pin_user_pages_fast(addr, 1, FOLL_WRITE, page) : -ESRCH;

	return done == 1 ? 0 : done ?: -EFAULT;
}

/* As rhist_mm_try_write_bit(), in a page that rhist_user_pin() has pinned. Any context. */
void rhist_user_write_bit(struct page *page, unsigned long addr, unsigned int bit,
			  unsigned int size, bool on)
{
	write_bit(page, addr, bit, size, on);
}

/*
 * Undo rhist_user_pin(). Context: task without locks. Sleeps for the lock of the page until the
 * task is killed, after which the page is not needed.
 */
void rhist_user_unpin(struct page *page)
{
	struct folio *folio = page_folio(page);

	if (!folio_lock_killable(folio)) {
		folio_mark_dirty(folio);
		folio_unlock(folio);
	}
	unpin_user_page(page);
}

/* A fork whose child has not run its task work yet. */
struct fork {
	struct callback_head work;
	struct mm_struct *parent;
	/* In @forks. */
	struct hlist_node node;
	/* Forks have ascending numbers. */
	u64 number;
};

/* All forks, by parent. */
static DEFINE_HASHTABLE(forks, 8);
static u64 last_fork;
/* Protects forks and last_fork; innermost lock. */
static DEFINE_SPINLOCK(forks_lock);

static void end_fork(struct fork *fork)
{
	spin_lock(&forks_lock);
	hash_del(&fork->node);
	spin_unlock(&forks_lock);
	/* Orders the removal before the check for waiters. */
	smp_mb();
	wake_up_var(fork->parent);
	mmput_async(fork->parent);
	kfree(fork);
	/* rhist_mm_unwatch() waits for the rest of this function and of its caller. */
	rhist_leave();
}

/*
 * Task work: call the watcher in the child. A child that exits before it first returns to user
 * space runs this without an mm.
 */
static void forked(struct callback_head *work)
{
	struct fork *fork = container_of(work, struct fork, work);

	if (current->mm)
		watcher.forked(watcher.owner, fork->parent);
	end_fork(fork);
}

/* Add task work to a child of the running process. Must not sleep. */
static void add_fork(struct mm_struct *parent, struct task_struct *child)
{
	struct fork *fork;

	/*
	 * If the allocation fails, the child gets no enable bits, as with the kernel's user events.
	 */
	fork = kmalloc(sizeof(*fork), GFP_NOWAIT | __GFP_ACCOUNT);
	if (!fork)
		return;
	if (!rhist_enter()) {
		kfree(fork);
		return;
	}
	mmget(parent);
	fork->parent = parent;
	init_task_work(&fork->work, forked);
	spin_lock(&forks_lock);
	fork->number = ++last_fork;
	hash_add(forks, &fork->node, (unsigned long)parent);
	spin_unlock(&forks_lock);
	if (task_work_add(child, &fork->work, TWA_RESUME))
		end_fork(fork);
}

/* Probe of task_newtask, which copy_process() calls in the parent, with preemption on. */
static void probe_newtask(void *data, struct task_struct *child, rhist_clone_flags_t clone_flags)
{
	struct mm_struct *parent = current->mm;

	if (!parent || !child->mm || child->mm == parent || !data_race(mm_has_notifiers(parent)))
		return;
	rhist_probe_may_lock();
	add_fork(parent, child);
	rhist_probe_locks_no_more();
}

/* Return whether a fork of an mm, with a number up to @number, is under way. */
static bool fork_under_way(struct mm_struct *parent, u64 number)
{
	bool found = false;
	struct fork *fork;

	spin_lock(&forks_lock);
	hash_for_each_possible(forks, fork, node, (unsigned long)parent)
		found |= fork->parent == parent && fork->number <= number;
	spin_unlock(&forks_lock);
	return found;
}

/**
 * rhist_mm_wait_for_forks - wait for the children that the running process has forked
 *
 * Waits until the watcher was called for each that was forked before the call. That is
 * when the child first runs.
 *
 * Context: task without locks, sleeps.
 *
 * Return: 0, or -ERESTARTSYS if the task is killed.
 */
int rhist_mm_wait_for_forks(void)
{
	struct mm_struct *mm = current->mm;
	u64 number;

	spin_lock(&forks_lock);
	number = last_fork;
	spin_unlock(&forks_lock);
	return wait_var_event_killable(mm, !fork_under_way(mm, number));
}

static void find_newtask(struct tracepoint *tracepoint, void *data)
{
	if (!strcmp(tracepoint->name, "task_newtask"))
		newtask = tracepoint;
}

/**
 * rhist_mm_watch - register callbacks for exit and fork of processes
 * @with: the callbacks and their owner, copied. They are called in task context
 *	without locks and may sleep: @exited in the last task that uses or inspects an mm, @forked
 *	in the child
 *
 * Context: task, may sleep. No reference of rhist_mm_get() exists.
 *
 * Return: 0, -EBUSY if a watcher is registered, -ENOENT if the kernel lacks the tracepoint
 * task_newtask, or the error of tracepoint_probe_register().
 */
int rhist_mm_watch(const struct rhist_mm_watcher *with)
{
	int err = -ENOENT;

	check_trace_callback_type_task_newtask(probe_newtask);
	if (test_and_set_bit(0, &watched))
		return -EBUSY;
	for_each_kernel_tracepoint(find_newtask, NULL);
	watcher = *with;
	if (newtask)
		err = tracepoint_probe_register(newtask, probe_newtask, NULL);
	if (err)
		clear_bit(0, &watched);
	return err;
}

/**
 * rhist_mm_unwatch - undo rhist_mm_watch()
 *
 * Called after all references of rhist_mm_get() were put. When it returns, no
 * callback or other code of this file runs.
 *
 * Context: module exit; sleeps. No task work is pending, as it pins the module.
 */
void rhist_mm_unwatch(void)
{
	tracepoint_probe_unregister(newtask, probe_newtask, NULL);
	tracepoint_synchronize_unregister();
	mmu_notifier_synchronize();
	/* end_fork() and its caller do not sleep after rhist_leave(). */
	synchronize_rcu_tasks();
	clear_bit(0, &watched);
}
