/* SPDX-License-Identifier: GPL-2.0 */
/* The C interface of the kernel that rhist uses: input of bindgen. */
#include <linux/cgroup-defs.h>
#include <linux/dcache.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/irq_work.h>
#include <linux/kallsyms.h>
#include <linux/kernfs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/namei.h>
#include <linux/poll.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/ring_buffer.h>
#include <linux/shrinker.h>
#include <linux/stacktrace.h>
#include <linux/timekeeping.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysctl.h>
#include <linux/trace.h>
#include <linux/trace_clock.h>
#include <linux/trace_events.h>
#include <linux/tracefs.h>
#include <linux/uio.h>
#include <linux/workqueue.h>

#include "boot.h"
#include "cgroup.h"
#include "clock.h"
#include "compat.h"
#include "cpu.h"
#include "event/event.h"
#include "event/event_file.h"
#include "event/event_probe.h"
#include "event/own_events.h"
#include "instance.h"
#include "kick.h"
#include "layouts_generated.h"
#include "mapped_file.h"
#include "memory.h"
#include "module.h"
#include "poll.h"
#include "probe/handlers.h"
#include "probe/probe.h"
#include "probe/record.h"
#include "probe/synthetic.h"
#include "probe/syscalls.h"
#include "queue.h"
#include "rcu.h"
#include "sample.h"
#include "snapshot.h"
#include "stack/orc.h"
#include "stack/save.h"
#include "stack/stack.h"
#include "symbols.h"
#include "synthetic.h"
#include "task.h"
#include "tracefs/tracefs.h"
#include "user_event.h"
#include "user_mm.h"
#include "user_stack.h"

/* Macros that bindgen cannot read. */
static const int RHIST_RING_BUFFER_ALL_CPUS = RING_BUFFER_ALL_CPUS;
static const unsigned int RHIST_FMODE_WRITE = (__force unsigned int)FMODE_WRITE;
static const unsigned int RHIST_FMODE_PWRITE = (__force unsigned int)FMODE_PWRITE;
static const unsigned int RHIST_FMODE_READ = (__force unsigned int)FMODE_READ;
static const unsigned int RHIST_EPOLLIN = (__force unsigned int)EPOLLIN;
static const unsigned int RHIST_EPOLLRDNORM = (__force unsigned int)EPOLLRDNORM;
static const unsigned int RHIST_EPOLLPRI = (__force unsigned int)EPOLLPRI;
static const unsigned int RHIST_EPOLLERR = (__force unsigned int)EPOLLERR;
static const unsigned int RHIST_EPOLLHUP = (__force unsigned int)EPOLLHUP;
static const unsigned int RHIST_GFP_FS = (__force unsigned int)__GFP_FS;
static const int RHIST_MISC_DYNAMIC_MINOR = MISC_DYNAMIC_MINOR;
static const size_t RHIST_SYMBOL_LEN = KSYM_SYMBOL_LEN;
/* Offsets in types that Rust does not know otherwise. */
static const size_t RHIST_TASK_PID = offsetof(struct task_struct, pid);
#ifdef CONFIG_CGROUPS
static const size_t RHIST_TASK_CGROUPS = offsetof(struct task_struct, cgroups);
static const size_t RHIST_CSS_SET_GROUP = offsetof(struct css_set, dfl_cgrp);
static const size_t RHIST_CGROUP_NODE = offsetof(struct cgroup, kn);
static const size_t RHIST_NODE_ID = offsetof(struct kernfs_node, id);
#endif
