// SPDX-License-Identifier: GPL-2.0
/* Access to memory of the kernel and of programs, without faults in hits. */
#include <linux/bitops.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/vmstat.h>

#include "memory.h"

/*
 * Return the number of pages that a module can allocate without swapping, as far as the kernel
 * knows. si_mem_available() includes pages that are reserved for large blocks for devices (CMA):
 * only movable memory may use these. Any context.
 */
long rhist_available_pages(void)
{
	return si_mem_available() - (long)global_zone_page_state(NR_FREE_CMA_PAGES);
}

/*
 * Copy kernel memory from any address; false if not all of it can be read. Any
 * context, NMI included.
 *
 * Strings are read in blocks, the last of which may go beyond the end of the
 * string's object. User-mode Linux copies in C, where KASAN would report that,
 * so it is disabled during the copy.
 */
notrace bool rhist_read_kernel(void *to, const void *from, size_t size)
{
	bool done;

#if defined(CONFIG_UML) && defined(CONFIG_KASAN)
	current->kasan_depth++;
#endif
	done = !copy_from_kernel_nofault(to, from, size);
#if defined(CONFIG_UML) && defined(CONFIG_KASAN)
	current->kasan_depth--;
#endif
	return done;
}

/* Copy user memory of the running task without faulting it in. Any context, NMI included. */
notrace bool rhist_read_user(void *to, unsigned long from, size_t size)
{
	return !copy_from_user_nofault(to, (const void __user *)from, size);
}

/* Return whether the range is in user space. */
bool rhist_access_ok(unsigned long addr, size_t size)
{
	return access_ok((const void __user *)addr, size);
}

/*
 * Read a number from @source and advance it; false if it cannot be read. May
 * sleep. The buffer of write(2) takes a single load, unlike copy_from_iter().
 */
bool rhist_read_number(struct iov_iter *source, int *number)
{
	if (!iter_is_ubuf(source) || iov_iter_count(source) < sizeof(*number))
		return copy_from_iter_full(number, sizeof(*number), source);
	if (get_user(*number, (int __user *)(source->ubuf + source->iov_offset)))
		return false;
	iov_iter_advance(source, sizeof(*number));
	return true;
}

/* Set or clear a bit of a page: mask 1 << bit % 8 of byte bit / 8. Any context. */
void rhist_set_page_bit(struct page *page, unsigned int bit, bool on)
{
	void *at = kmap_local_page(page);

	if (on)
		set_bit_le(bit, at);
	else
		clear_bit_le(bit, at);
	kunmap_local(at);
}
