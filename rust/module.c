// SPDX-License-Identifier: GPL-2.0
/*
 * Version and parameters of the module. In C, since the kernel crate's module! supports no version,
 * and in some kernel versions no bool. Parameters are set before the module's init function is
 * called, and never afterwards.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "module.h"

/* The packages have the same version: see scripts/package/version. */
MODULE_VERSION("0.9.0");

struct rhist_parameters rhist_parameters __ro_after_init = {
	.probes = true,
	.user_events_data_mode = 0640,
	.user_events_status_mode = 0440,
	.user_events_uid = U32_MAX,
	.user_events_gid = U32_MAX,
	.user_events_status_bits = true,
	.stack_check = 4096,
	.unwind_mb = 64,
};

#define PARAMETER(name, type, description)				\
	module_param_named(name, rhist_parameters.name, type, 0);	\
	MODULE_PARM_DESC(name, description)

PARAMETER(probes, bool, "Count events of the kernel with rhist's own probes, which are faster (default: 1)");
PARAMETER(user_events_data_mode, ushort, "Permission bits of user_events_data and /dev/user_events (default: 0640)");
PARAMETER(user_events_status_mode, ushort, "Permission bits of user_events_status (default: 0440)");
PARAMETER(user_events_uid, uint, "Owner of both files (default: that of the tracing directory)");
PARAMETER(user_events_gid, uint, "Group of both files (default: that of the tracing directory)");
PARAMETER(user_events_lossy, bool,
	  "Payloads that are too long are lost, as in the kernel, without an error (default: 0)");
PARAMETER(user_events_status_bits, bool,
	  "user_events_status shows the bit of each event, as before Linux 6.4 (default: 1)");
PARAMETER(stack_check, uint,
	  "Of this many stacks, one is compared with the kernel's unwinder; 0: the unwinder walks all (default: 4096)");
PARAMETER(unwind_mb, uint, "Megabytes that rules for stacks of programs may take, all together (default: 64)");
