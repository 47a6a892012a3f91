/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_SYMBOLS_H
#define RHIST_SYMBOLS_H

#include <linux/types.h>

size_t rhist_symbol(char *buf, size_t size, const void *address, bool offset);
size_t rhist_hash_pointer(char *buf, size_t size, const void *pointer);
bool rhist_function(unsigned long address, unsigned long *start, unsigned long *size);
bool rhist_function_begins(unsigned long address, const char *prefix);
bool rhist_function_addresses(const char *const *names, unsigned long *addresses, size_t n);
const char *rhist_syscall_name(u64 number);

#endif
