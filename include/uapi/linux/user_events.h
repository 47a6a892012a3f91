/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Events that programs describe and write: what is passed to the ioctls of
 * user_events_data and /dev/user_events. See Documentation/user_events.rst.
 */
#ifndef _UAPI_LINUX_USER_EVENTS_H
#define _UAPI_LINUX_USER_EVENTS_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* The systems that the events are in. */
#define USER_EVENTS_SYSTEM		"user_events"
#define USER_EVENTS_MULTI_SYSTEM	"user_events_multi"
/* What precedes an event in dynamic_events. */
#define USER_EVENTS_PREFIX		"u:"

/* Offset and size of data that a field of type __data_loc or __rel_loc locates. */
#define DYN_LOC(offset, size)		((size) << 16 | (offset))

/* For user_reg.flags. */
enum user_reg_flag {
	/* The event stays when nobody has it any more. Needs CAP_PERFMON. */
	USER_EVENT_REG_PERSIST		= 1 << 0,
	/* Events of one name with different fields stand beside each other. */
	USER_EVENT_REG_MULTI_FORMAT	= 1 << 1,
	/* The first flag that does not exist. */
	USER_EVENT_REG_MAX		= 1 << 2,
};

/* Register an event, and a bit in memory that says whether anybody listens. */
struct user_reg {
	/* In: bytes of this structure. */
	__u32	size;
	/* In: the bit of the value at enable_addr. */
	__u8	enable_bit;
	/* In: bytes of that value: 4 or 8. */
	__u8	enable_size;
	/* In: of enum user_reg_flag. */
	__u16	flags;
	/* In: where the value is; a multiple of its size. */
	__u64	enable_addr;
	/* In: pointer to the description: "name type field;type field;..." */
	__u64	name_args;
	/* Out: what a write of the event begins with. */
	__u32	write_index;
} __attribute__((__packed__));

/*
 * The structure that DIAG_IOCSREG had at first, and takes as well: its size says
 * which one it is. Bit b of the page that user_events_status is mapped as, the
 * bit 1 << b % 8 of byte b / 8, says whether anybody listens. Such an event stays
 * until it is deleted.
 */
struct user_reg_original {
	/* In: bytes of this structure. */
	__u32	size;
	/* In: pointer to the description. */
	__u64	name_args;
	/* Out: the bit, never 0. */
	__u32	status_bit;
	/* Out: what a write of the event begins with. */
	__u32	write_index;
} __attribute__((__packed__));

/* Have a bit cleared, and not written any more. */
struct user_unreg {
	/* In: bytes of this structure. */
	__u32	size;
	/* In: the bit of the value at disable_addr. */
	__u8	disable_bit;
	/* In: 0. */
	__u8	__reserved;
	/* In: 0. */
	__u16	__reserved2;
	/* In: where the value is. */
	__u64	disable_addr;
} __attribute__((__packed__));

#define DIAG_IOC_MAGIC	'*'

/* Or a struct user_reg_original. */
#define DIAG_IOCSREG	_IOWR(DIAG_IOC_MAGIC, 0, struct user_reg *)
/* Delete an event by its name: nobody may have it. */
#define DIAG_IOCSDEL	_IOW(DIAG_IOC_MAGIC, 1, char *)
#define DIAG_IOCSUNREG	_IOW(DIAG_IOC_MAGIC, 2, struct user_unreg *)

#endif
