/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_CGROUP_H
#define RHIST_CGROUP_H

#include <linux/types.h>

struct kernfs_node;

/* A control group of cgroup v2, as a hit finds it. */
struct rhist_cgroup {
	/* The number of its directory's inode. */
	u64 id;
	struct kernfs_node *node;
};

u64 rhist_cgroup_id_of(u32 nr);
bool rhist_cgroup(struct rhist_cgroup *to);
bool rhist_cgroup_of(u32 nr, const void *record, struct rhist_cgroup *to);
bool rhist_cgroup_is_below(u64 id, int level);
void rhist_cgroup_get(struct kernfs_node *node);
void rhist_cgroup_put(struct kernfs_node *node);
u64 rhist_cgroup_node_id(const struct kernfs_node *node);
int rhist_cgroup_path(struct kernfs_node *node, char *to, size_t size);
int rhist_cgroup_find(const char *path, u64 *id, int *level);
bool rhist_cgroup_only_root(void);

#endif
