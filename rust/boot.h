/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_BOOT_H
#define RHIST_BOOT_H

#include <linux/types.h>

ssize_t rhist_read_boot_id(char *to, size_t size);

#endif
