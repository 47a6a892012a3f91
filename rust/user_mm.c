// SPDX-License-Identifier: GPL-2.0
/*
 * Bits in the memory of processes, and when such memory comes and goes.
 *
 * A reference on a struct rhist_mm keeps the struct mm_struct, so that it can be
 * told from all others, but not the memory: what needs that takes it for a
 * moment, as long as a process has it. When the last process has left it, by
 * exit() or exec(), a notifier of the memory tells. A fork is told by a
 * tracepoint, but nobody may sleep there: the rest is done by the child itself,
 * before it returns to user space for the first time, with the memory of the
 * parent held until then, since the parent may exit at once.
 *
 * Locks: those of the caller -> mmap_lock.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/tracepoint.h>
#include <trace/events/task.h>

#include "helpers.h"

struct rhist_mm {
	struct mmu_notifier notifier;
};

/* Set while no notifier and no probe is registered. */
static struct rhist_mm_watcher watcher;
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

/* The last process has left the memory, whose pages are about to go. */
static void release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	watcher.exited(watcher.owner);
}

static const struct mmu_notifier_ops notifier_ops = {
	.alloc_notifier = alloc_notifier,
	.free_notifier = free_notifier,
	.release = release,
};

/**
 * rhist_mm_get - the memory of the running task
 *
 * Context: task, may sleep, mmap_lock not held.
 *
 * Return: a reference for rhist_mm_put(), or an ERR_PTR.
 */
struct rhist_mm *rhist_mm_get(void)
{
	struct mmu_notifier *notifier = mmu_notifier_get(&notifier_ops, current->mm);

	return IS_ERR(notifier) ? ERR_CAST(notifier) :
				  container_of(notifier, struct rhist_mm, notifier);
}

/* Any task context. */
void rhist_mm_put(struct rhist_mm *memory)
{
	mmu_notifier_put(&memory->notifier);
}

/* What the memory of the running task is told from others by. */
struct mm_struct *rhist_current_mm(void)
{
	return current->mm;
}

struct mm_struct *rhist_mm_of(const struct rhist_mm *memory)
{
	return memory->notifier.mm;
}

/* Is there a process that has the memory? */
bool rhist_mm_alive(const struct rhist_mm *memory)
{
	return atomic_read(&memory->notifier.mm->mm_users) > 0;
}

/**
 * rhist_mm_write_bit - set or clear a bit, if that is possible right now
 * @memory: where
 * @addr: of the value, which is aligned to its size
 * @bit: of the value
 * @size: of the value: 4 or 8 bytes
 * @on: set it
 *
 * Context: task, sleeps for mmap_lock, but never faults a page in.
 *
 * Return: 0, -ENOENT if no process has the memory any more, or -EFAULT if the
 * page is not there or not writable: see rhist_mm_fault_in().
 */
int rhist_mm_write_bit(struct rhist_mm *memory, unsigned long addr, unsigned int bit,
		       unsigned int size, bool on)
{
	struct mm_struct *mm = memory->notifier.mm;
	unsigned long word = ALIGN_DOWN(addr, sizeof(long));
	struct page *page;
	int err = 0;

	/* Bits are set in whole words, of which a value may be one half. */
	if (size < sizeof(long) && (addr == word) == IS_ENABLED(CONFIG_CPU_BIG_ENDIAN))
		bit += 8 * size;
	if (!mmget_not_zero(mm))
		return -ENOENT;
	mmap_read_lock(mm);
	if (pin_user_pages_remote(mm, word, 1, FOLL_WRITE | FOLL_NOFAULT, &page, NULL) == 1) {
		void *at = kmap_local_page(page);
		unsigned long *value = at + offset_in_page(word);

		/* Programs change the bits beside it. */
		if (on)
			set_bit(bit, value);
		else
			clear_bit(bit, value);
		kunmap_local(at);
		unpin_user_pages_dirty_lock(&page, 1, true);
	} else {
		err = -EFAULT;
	}
	mmap_read_unlock(mm);
	/* If it was the last reference, the memory does not go here: locks may be held. */
	mmput_async(mm);
	return err;
}

/**
 * rhist_mm_fault_in - make a page writable, as if a process wrote to it
 * @memory: where
 * @addr: in the page
 *
 * Context: task without locks. Sleeps as long as the page takes, which may be
 * as long as a process likes.
 *
 * Return: 0, -ENOENT if no process has the memory any more, or -EFAULT.
 */
int rhist_mm_fault_in(struct rhist_mm *memory, unsigned long addr)
{
	struct mm_struct *mm = memory->notifier.mm;
	bool unlocked;
	int err;

	if (!mmget_not_zero(mm))
		return -ENOENT;
	mmap_read_lock(mm);
	err = fixup_user_fault(mm, addr, FAULT_FLAG_WRITE | FAULT_FLAG_REMOTE, &unlocked);
	mmap_read_unlock(mm);
	mmput_async(mm);
	return err;
}

struct fork {
	struct callback_head work;
	struct mm_struct *parent;
};

/* In the child, or in the exit of one that never ran: it has no memory then. */
static void forked(struct callback_head *work)
{
	struct fork *fork = container_of(work, struct fork, work);

	if (current->mm)
		watcher.forked(watcher.owner, fork->parent);
	mmput_async(fork->parent);
	kfree(fork);
	/* What is left of this function is waited for by rhist_mm_unwatch(). */
	rhist_leave();
}

/* In the parent, at each fork. Must not sleep. */
static void probe_newtask(void *data, struct task_struct *child, u64 clone_flags)
{
	struct mm_struct *parent = current->mm;
	struct fork *fork;

	if (!parent || !child->mm || child->mm == parent || !data_race(mm_has_notifiers(parent)))
		return;
	/* Without memory for this the child starts with no bits, as one of the kernel would. */
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
	if (task_work_add(child, &fork->work, TWA_RESUME)) {
		mmput_async(parent);
		kfree(fork);
		rhist_leave();
	}
}

static void find_newtask(struct tracepoint *tracepoint, void *data)
{
	if (!strcmp(tracepoint->name, "task_newtask"))
		newtask = tracepoint;
}

/**
 * rhist_mm_watch - begin to be told of processes
 * @with: what is called, in task context without locks: @exited must not
 *	sleep; @forked runs in the child and may
 *
 * Return: 0 or a negative error.
 */
int rhist_mm_watch(const struct rhist_mm_watcher *with)
{
	check_trace_callback_type_task_newtask(probe_newtask);
	for_each_kernel_tracepoint(find_newtask, NULL);
	if (!newtask)
		return -ENOENT;
	watcher = *with;
	return tracepoint_probe_register(newtask, probe_newtask, NULL);
}

/**
 * rhist_mm_unwatch - undo rhist_mm_watch()
 *
 * All memory has been put. Afterwards nothing of this file runs. Context: the
 * exit of the module, which no fork keeps any more.
 */
void rhist_mm_unwatch(void)
{
	tracepoint_probe_unregister(newtask, probe_newtask, NULL);
	tracepoint_synchronize_unregister();
	mmu_notifier_synchronize();
	/* Between giving back the module and leaving forked() nobody sleeps. */
	synchronize_rcu_tasks();
}
