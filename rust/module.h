/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_MODULE_H
#define RHIST_MODULE_H

#include <linux/types.h>

struct rhist_parameters {
	bool probes;
	unsigned short user_events_data_mode;
	unsigned short user_events_status_mode;
	unsigned int user_events_uid;
	unsigned int user_events_gid;
	bool user_events_lossy;
	bool user_events_status_bits;
	unsigned int stack_check;
	unsigned int unwind_mb;
};
extern struct rhist_parameters rhist_parameters;

#endif
