/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between versions and architectures of the kernel. Test for a feature where possible, and for
 * LINUX_VERSION_CODE otherwise. Other files contain no such tests.
 */
#ifndef RHIST_COMPAT_H
#define RHIST_COMPAT_H

/* The table of the native system calls: x86 makes it by another script. */
#if __has_include(<asm/syscalls_64.h>)
#define RHIST_SYSCALL_TABLE <asm/syscalls_64.h>
#else
#define RHIST_SYSCALL_TABLE <asm/syscall_table_64.h>
#endif

/* A name in that table which is not the one of the call's metadata (arch/arm64/kernel/sys.c). */
#ifdef CONFIG_ARM64
#define sys_personality sys_arm64_personality
#endif

#endif
