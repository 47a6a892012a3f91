// SPDX-License-Identifier: GPL-2.0
/*
 * Control groups of tasks, in cgroup v2. Each task is in one: in the root, unless somebody moved
 * it, and always if only cgroup v1 is in use.
 *
 * A task keeps its css_set, a css_set keeps its group, and a group keeps the kernfs node of its
 * directory. All are freed after a grace period of RCU, so a hit, which has preemption off, may
 * follow these pointers from a task that it has found.
 */
#include <linux/atomic.h>
#include <linux/cgroup.h>
#include <linux/err.h>
#include <linux/kernfs.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "cgroup.h"
#include "task.h"

#ifdef CONFIG_CGROUPS

static __always_inline struct cgroup *group_of(struct task_struct *task)
{
	return READ_ONCE(rcu_dereference_raw(task->cgroups)->dfl_cgrp);
}

/*
 * Return the id of the group of the task with this number, or 0. Any context, with preemption off,
 * NMI included.
 */
notrace u64 rhist_cgroup_id_of(u32 nr)
{
	struct task_struct *task = rhist_find_task(nr);

	return task ? group_of(task)->kn->id : 0;
}

static __always_inline bool found(struct task_struct *task, struct rhist_cgroup *to)
{
	if (!task)
		return false;
	to->node = group_of(task)->kn;
	to->id = to->node->id;
	return true;
}

/* Get the running task's group. The node stays until preemption is on. Context as above. */
notrace bool rhist_cgroup(struct rhist_cgroup *to)
{
	return found(current, to);
}

/* Get the group of the task that rhist_task_of() finds, as above; or return false. */
notrace bool rhist_cgroup_of(u32 nr, const void *record, struct rhist_cgroup *to)
{
	return found(rhist_task_of(nr, record), to);
}

/*
 * Return whether the running task's group is the one with this id, which has @level groups above
 * it, or is below it. A group keeps the groups above it. Context as above.
 */
notrace bool rhist_cgroup_is_below(u64 id, int level)
{
	struct cgroup *above = cgroup_ancestor(group_of(current), level);

	return above && above->kn->id == id;
}

/*
 * Take a reference to a node that exists: kernfs_get(), which could be traced. Any context.
 */
notrace void rhist_cgroup_get(struct kernfs_node *node)
{
	atomic_inc(&node->count);
}

/* Put a reference. Any context if it is not the last one; otherwise not from an interrupt. */
void rhist_cgroup_put(struct kernfs_node *node)
{
	kernfs_put(node);
}

/* Return the id of a group whose node the caller has a reference to. Any context. */
notrace u64 rhist_cgroup_node_id(const struct kernfs_node *node)
{
	return node->id;
}

/*
 * Write the path of a group, which may have been removed. Return its length, or a negative errno.
 * Task context.
 */
int rhist_cgroup_path(struct kernfs_node *node, char *to, size_t size)
{
	int len = kernfs_path_from_node(node, NULL, to, size);

	/* The kernel cuts off a path that is too long, and returns the shorter length. */
	return len >= (int)size - 1 ? -E2BIG : len;
}

/*
 * Find a group by its path, as seen from the caller's cgroup namespace: its id, and the number of
 * groups above it. Return 0 or a negative errno. Task context.
 */
int rhist_cgroup_find(const char *path, u64 *id, int *level)
{
	struct cgroup *group = cgroup_get_from_path(path);

	if (IS_ERR(group))
		return PTR_ERR(group);
	*id = cgroup_id(group);
	*level = group->level;
	cgroup_put(group);
	return 0;
}

/* Return whether all tasks are in the root of cgroup v2, its only group. Any context. */
bool rhist_cgroup_only_root(void)
{
	return atomic_read(&cgrp_dfl_root.nr_cgrps) <= 1;
}

#else

notrace u64 rhist_cgroup_id_of(u32 nr)
{
	return 1;
}

notrace bool rhist_cgroup(struct rhist_cgroup *to)
{
	return false;
}

notrace bool rhist_cgroup_of(u32 nr, const void *record, struct rhist_cgroup *to)
{
	return false;
}

notrace bool rhist_cgroup_is_below(u64 id, int level)
{
	return false;
}

notrace void rhist_cgroup_get(struct kernfs_node *node)
{
}

void rhist_cgroup_put(struct kernfs_node *node)
{
}

notrace u64 rhist_cgroup_node_id(const struct kernfs_node *node)
{
	return 1;
}

int rhist_cgroup_path(struct kernfs_node *node, char *to, size_t size)
{
	return -ENOENT;
}

int rhist_cgroup_find(const char *path, u64 *id, int *level)
{
	return -ENOENT;
}

bool rhist_cgroup_only_root(void)
{
	return true;
}

#endif
