/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Headers that the kernel's headers of events depend on. Each of those expects that the file which
 * defines its tracepoints has included these before; not all do it themselves. All of it is
 * compiled once, and read by the compiler in that form (Kbuild): it takes most of the time of
 * compiling the probes.
 *
 * Headers of code that is usually a module only compile for a kernel that has it.
 */
#ifndef RHIST_PROBE_KERNEL_H
#define RHIST_PROBE_KERNEL_H

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/tracepoint.h>
#include <net/ipv6.h>
#if IS_ENABLED(CONFIG_ATA)
#include <linux/libata.h>
#endif
#if IS_ENABLED(CONFIG_INFINIBAND)
#include <rdma/ib_mad.h>
#include <rdma/ib_smi.h>
#include <rdma/opa_smi.h>
#endif
#if IS_ENABLED(CONFIG_JBD2)
#include <linux/jbd2.h>
#endif
#if IS_ENABLED(CONFIG_KVM)
#include <linux/kvm_host.h>
#endif
#if IS_ENABLED(CONFIG_NETFS_SUPPORT)
#include <linux/netfs.h>
#endif
#if IS_ENABLED(CONFIG_NET_9P)
#include <net/9p/9p.h>
#include <net/9p/client.h>
#endif
#if IS_ENABLED(CONFIG_SCSI)
#include <scsi/scsi_cmnd.h>
#include <scsi/scsi_eh.h>
#endif
#if IS_ENABLED(CONFIG_SND_SOC)
#include <sound/jack.h>
#include <sound/soc.h>
#endif
#if IS_ENABLED(CONFIG_SUNRPC)
#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/svc.h>
#include <linux/sunrpc/svc_xprt.h>
#endif
#if IS_ENABLED(CONFIG_TARGET_CORE)
#include <target/target_core_base.h>
#endif
#if IS_ENABLED(CONFIG_VIDEOBUF2_V4L2)
#include <media/v4l2-fh.h>
#include <media/videobuf2-v4l2.h>
#endif

#include "record.h"

#endif
