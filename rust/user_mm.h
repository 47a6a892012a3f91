/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_USER_MM_H
#define RHIST_USER_MM_H

#include <linux/types.h>

struct mm_struct;
struct page;

struct rhist_mm;
/* Callbacks for exit and fork of processes, in task context. */
struct rhist_mm_watcher {
	const void *owner;
	/* Notifies that the last process has left @mm, which has a struct rhist_mm. May sleep. */
	void (*exited)(const void *owner, struct mm_struct *mm);
	/*
	 * Notifies of a fork: current->mm is a copy of @parent, whose mm_users is held during the
	 * call. May sleep.
	 */
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
