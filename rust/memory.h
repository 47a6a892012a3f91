/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_MEMORY_H
#define RHIST_MEMORY_H

#include <linux/types.h>

struct iov_iter;
struct page;

long rhist_available_pages(void);
bool rhist_read_kernel(void *to, const void *from, size_t size);
bool rhist_read_user(void *to, unsigned long from, size_t size);
bool rhist_access_ok(unsigned long addr, size_t size);
bool rhist_read_number(struct iov_iter *source, int *number);
void rhist_set_page_bit(struct page *page, unsigned int bit, bool on);

#endif
