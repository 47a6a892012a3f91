/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The probes for the events of one header of the kernel, RHIST_EVENTS, except the classes NAME with
 * RHIST_WITHOUT_NAME. Each header is compiled by itself, since few of them tolerate others beside
 * them: see scripts/probe-cc.
 */
#ifndef RHIST_WITHOUT_KERNEL
#include "kernel.h"
#endif

/* Call @visit for each event. Task context. */
void RHIST_VISIT(void (*visit)(const struct rhist_probe *probe, void *arg), void *arg);

/* At its end, a header with events includes trace/define_trace.h: ours, beside this file. */
#define CREATE_TRACE_POINTS
#ifndef RHIST_WITHOUT_ALL
#include RHIST_EVENTS
#endif

#ifdef CREATE_TRACE_POINTS
void RHIST_VISIT(void (*visit)(const struct rhist_probe *probe, void *arg), void *arg)
{
}
#endif
