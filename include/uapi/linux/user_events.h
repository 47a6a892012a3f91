/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * User events: the ioctls of user_events_data and /dev/user_events, and the
 * structures that are passed to them. See Documentation/user_events.rst.
 */
#ifndef _UAPI_LINUX_USER_EVENTS_H
#define _UAPI_LINUX_USER_EVENTS_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Systems of the events; the second one for USER_EVENT_REG_MULTI_FORMAT. */
#define USER_EVENTS_SYSTEM		"user_events"
#define USER_EVENTS_MULTI_SYSTEM	"user_events_multi"
/* Prefix of a user event in dynamic_events. */
#define USER_EVENTS_PREFIX		"u:"

/* Value of a __data_loc or __rel_loc field: offset and size of its data. */
#define DYN_LOC(offset, size)		((size) << 16 | (offset))

/* For user_reg.flags. */
enum user_reg_flag {
	/* The event stays after its last use has ended. Requires CAP_PERFMON. */
	USER_EVENT_REG_PERSIST		= 1 << 0,
	/* Events with the same name and different fields may exist at the same time. */
	USER_EVENT_REG_MULTI_FORMAT	= 1 << 1,
	/* The first flag that does not exist. */
	USER_EVENT_REG_MAX		= 1 << 2,
};

/* Register an event, and a bit in memory that is set while the event is enabled. */
struct user_reg {
	/* In: size of this structure in bytes. */
	__u32	size;
	/* In: number of the bit in the value at enable_addr. */
	__u8	enable_bit;
	/* In: size of that value in bytes: 4 or 8. */
	__u8	enable_size;
	/* In: flags of enum user_reg_flag. */
	__u16	flags;
	/* In: address of the value; a multiple of its size. */
	__u64	enable_addr;
	/* In: pointer to the description: "name type field;type field;..." */
	__u64	name_args;
	/* Out: index of the event; each write of the event begins with it. */
	__u32	write_index;
} __attribute__((__packed__));

/*
 * The structure of DIAG_IOCSREG in the original interface, which is accepted too:
 * its size identifies it. mmap() of user_events_status gives a page with a bit for
 * each event, set while the event is enabled: 1 << b % 8 of byte b / 8 for bit b.
 * An event registered this way stays until it is deleted.
 */
struct user_reg_original {
	/* In: size of this structure in bytes. */
	__u32	size;
	/* In: pointer to the description. */
	__u64	name_args;
	/* Out: number of the bit b, never 0. */
	__u32	status_bit;
	/* Out: index of the event; each write of the event begins with it. */
	__u32	write_index;
} __attribute__((__packed__));

/* Unregister a bit: it is cleared, and not written any more. */
struct user_unreg {
	/* In: size of this structure in bytes. */
	__u32	size;
	/* In: number of the bit in the value at disable_addr. */
	__u8	disable_bit;
	/* In: must be 0. */
	__u8	__reserved;
	/* In: must be 0. */
	__u16	__reserved2;
	/* In: address of the value. */
	__u64	disable_addr;
} __attribute__((__packed__));

#define DIAG_IOC_MAGIC	'*'

/*
 * Takes a struct user_reg or a struct user_reg_original. Fails with EADDRINUSE if
 * the bit is registered already, or an event of this name has other fields; with
 * EDQUOT if the user has reached kernel.user_events_max_user_kb; with EMFILE if
 * all users have reached kernel.user_events_max or kernel.user_events_max_kb.
 */
#define DIAG_IOCSREG	_IOWR(DIAG_IOC_MAGIC, 0, struct user_reg *)
/* Delete an event by its name. Fails with EBUSY if the event is in use. */
#define DIAG_IOCSDEL	_IOW(DIAG_IOC_MAGIC, 1, char *)
#define DIAG_IOCSUNREG	_IOW(DIAG_IOC_MAGIC, 2, struct user_unreg *)

#endif
