/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_INSTANCE_H
#define RHIST_INSTANCE_H

#include <linux/types.h>

struct dentry;
struct trace_array;

void rhist_set_busy(struct dentry *dir, bool busy);
struct trace_array *rhist_instance_create(struct dentry **dir);
int rhist_instance_destroy(struct trace_array *tr, struct dentry *dir);
int rhist_set_trigger(struct dentry *trigger, const char *text);

#endif
