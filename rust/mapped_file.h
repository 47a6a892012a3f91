/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_MAPPED_FILE_H
#define RHIST_MAPPED_FILE_H

#include <linux/types.h>

struct file;
struct iov_iter;

struct file *rhist_open_mapped(struct file *mapped);
ssize_t rhist_read_mapped(struct file *file, struct iov_iter *to, loff_t *pos);
loff_t rhist_size_of_mapped(struct file *file);

#endif
