/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_USER_STACK_H
#define RHIST_USER_STACK_H

#include <linux/types.h>

struct file;

/* Whether the stack of the running program can be walked. */
enum rhist_user_state {
	RHIST_USER_RUNS,
	/* The task is a thread of the kernel, or the memory of its program is gone. */
	RHIST_USER_NONE,
	/* The program is of another architecture: of 32 bits, or x32. */
	RHIST_USER_FOREIGN,
	/* A stack is being walked in this context. */
	RHIST_USER_NESTED,
	/* An NMI has come before the kernel had stored the registers. */
	RHIST_USER_ENTERING,
};

/* A program whose stack is walked. */
struct rhist_user {
	/* lr: a register that may have the return address: x30, rdi. */
	u64 ip, sp, fp, lr;
	/* The bits of a return address that are its address; the others authenticate it. */
	u64 code;
	/* A number for its address space, which no other one has had: not to be shown. */
	u64 space;
	/*
	 * Another number than in any other walk of that, if a mapping has changed in between. Odd
	 * if that is not known.
	 */
	u64 mappings;
	/* The number of its process. */
	u32 process;
	/* The context in which it is walked: interrupt_context_level(). */
	u8 context;
	/* Its memory can be read in this context. */
	bool reads;
};

/* A version of a file. */
struct rhist_user_file {
	u64 inode, size;
	/* Time of the last change of its data, in nanoseconds since 1970. */
	u64 changed_ns;
	/* As in s_dev. */
	u32 device;
	u32 generation;
};

/* Kinds of mappings that an address may be in. */
enum rhist_user_kind {
	/* No executable mapping. */
	RHIST_USER_ASTRAY,
	/* A mapping that is being changed. */
	RHIST_USER_CHANGING,
	RHIST_USER_FILE,
	/* Executable memory that is of no regular file. */
	RHIST_USER_MEMORY,
	/* Code that the kernel maps into each program. */
	RHIST_USER_VDSO,
};

/* An executable mapping. */
struct rhist_user_mapping {
	u64 begin, end;
	/* Offset of its first byte in the file or in the vDSO. */
	u64 offset;
	/* Of RHIST_USER_FILE. The file itself may be gone. */
	struct rhist_user_file identity;
	/* The address of its inode, for rhist_user_same_file(). */
	u64 inode;
	struct file *file;
	/* At @file, a struct file will be until preemption is on: the same one, or another. */
	bool stays;
};

/* Words of a program's memory. */
struct rhist_user_words {
	u64 first, second;
};

enum rhist_user_state rhist_user_begin(struct rhist_user *program);
void rhist_user_end(const struct rhist_user *program);
enum rhist_user_kind rhist_user_mapping(u64 address, struct rhist_user_mapping *to);
bool rhist_user_read(const struct rhist_user *program, u64 address, u64 *word);
u64 rhist_user_load(u64 address);
struct rhist_user_words rhist_user_load_two(u64 first, u64 between);
bool rhist_user_same_file(u64 inode, u64 size, u64 changed_ns);
struct file *rhist_user_hold(const struct rhist_user_mapping *mapping, bool *fits);
void rhist_user_file_get(struct file *file);
struct file *rhist_user_file_settle(struct file *file);

#endif
