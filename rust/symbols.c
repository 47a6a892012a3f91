// SPDX-License-Identifier: GPL-2.0
/*
 * Names: symbols and their addresses, hashed pointers, system calls.
 */
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/slab.h>
#include <linux/sprintf.h>
#include <linux/string.h>

#include "compat.h"
#include "symbols.h"

/* Task context. */
size_t rhist_symbol(char *buf, size_t size, const void *address, bool offset)
{
	return scnprintf(buf, size, offset ? "%pS" : "%ps", address);
}

/* Format the hash of a pointer (%p), for text that users see. */
size_t rhist_hash_pointer(char *buf, size_t size, const void *pointer)
{
	return scnprintf(buf, size, "%p", pointer);
}

/*
 * Get start and size in bytes of the function that contains @address; false if @address is in no
 * function. Task context.
 */
bool rhist_function(unsigned long address, unsigned long *start, unsigned long *size)
{
	char name[KSYM_SYMBOL_LEN], *plus;
	unsigned long offset;

	sprint_symbol(name, address);
	plus = strrchr(name, '+');
	if (!plus || sscanf(plus, "+0x%lx/0x%lx", &offset, size) != 2)
		return false;
	*start = address - offset;
	return true;
}

/*
 * Return whether the name of the function that contains @address begins with @prefix. Any context.
 */
bool rhist_function_begins(unsigned long address, const char *prefix)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol_no_offset(name, address);
	return strstarts(name, prefix);
}

/*
 * Look up the addresses of functions; 0 for functions that are not found. Returns false if an
 * allocation fails. Task context; sleeps once for all of them.
 *
 * The kernel exports no lookup by name. But registering a disabled kprobe stores the address in it,
 * even if kprobes are not allowed there. With IBT that is the address after the ENDBR instruction.
 */
bool rhist_function_addresses(const char *const *names, unsigned long *addresses, size_t n)
{
	struct kprobe *probes = kcalloc(n, sizeof(*probes), GFP_KERNEL);
	struct kprobe **registered = kcalloc(n, sizeof(*registered), GFP_KERNEL);
	int n_registered = 0;
	bool done = false;
	size_t i;

	if (!probes || !registered)
		goto out;
	for (i = 0; i < n; i++) {
		probes[i].symbol_name = names[i];
		probes[i].flags = KPROBE_FLAG_DISABLED;
		if (!register_kprobe(&probes[i]))
			registered[n_registered++] = &probes[i];
		addresses[i] = (unsigned long)probes[i].addr;
	}
	if (n_registered)
		unregister_kprobes(registered, n_registered);
	done = true;
out:
	kfree(registered);
	kfree(probes);
	return done;
}

/*
 * Return the name of a system call, or NULL. @number is from the kernel's native 64-bit ABI.
 * Includes system calls that the kernel is configured without.
 */
const char *rhist_syscall_name(u64 number)
{
#define __SYSCALL(nr, name) [nr] = __stringify(name),
#define __SYSCALL_NORETURN(nr, name) __SYSCALL(nr, name)
#define __SYSCALL_WITH_COMPAT(nr, name, compat) __SYSCALL(nr, name)
	static const char *const names[] = {
#include RHIST_SYSCALL_TABLE
	};
#undef __SYSCALL_WITH_COMPAT
#undef __SYSCALL_NORETURN
#undef __SYSCALL

	return number < ARRAY_SIZE(names) ? names[number] : NULL;
}
