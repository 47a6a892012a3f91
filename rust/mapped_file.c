// SPDX-License-Identifier: GPL-2.0
/* Files that programs have mapped, for tasks that may read them. */
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/mount.h>
#include <linux/namei.h>
#include <linux/uio.h>

#include "mapped_file.h"

/*
 * Return 0 if the running task may read a file, or a negative errno. To some files no path leads
 * (memfd_create()), so their modes let all read them: only their owners may.
 */
static int may_read(const struct path *path)
{
	struct inode *inode = d_inode(path->dentry);
	int err = path_permission(path, MAY_OPEN | MAY_READ);

	if (err || !(path->mnt->mnt_flags & MNT_INTERNAL))
		return err;
	return inode_owner_or_capable(mnt_idmap(path->mnt), inode) ? 0 : -EACCES;
}

/**
 * rhist_open_mapped - open a mapped file for reading, for the running task
 * @mapped: the file of a mapping, with a reference
 *
 * The task must have the permission to read the file, as if it opened the file by a path. It needs
 * none for a directory, and the file may be in another mount namespace. A file of overlayfs is
 * opened where its pages are, and the permissions of both files are asked.
 *
 * Context: Task, sleeps, without locks: the file system may be FUSE.
 * Return: the open file, or an ERR_PTR: -EACCES if it is not a regular file, or the task may not
 * read it; or as the open() of its file system.
 */
struct file *rhist_open_mapped(struct file *mapped)
{
	const struct path *shown = file_user_path(mapped);
	int err;

	/* Opening a device may do something. */
	if (!S_ISREG(file_inode(mapped)->i_mode))
		return ERR_PTR(-EACCES);
	err = may_read(shown);
	if (!err && shown != &mapped->f_path)
		err = path_permission(&mapped->f_path, MAY_OPEN | MAY_READ);
	return err ? ERR_PTR(err) : dentry_open(&mapped->f_path, O_RDONLY | O_LARGEFILE, current_cred());
}

/* Read from an open file. Return as read(2). Task context, sleeps. */
ssize_t rhist_read_mapped(struct file *file, struct iov_iter *to, loff_t *pos)
{
	return vfs_iter_read(file, to, pos, 0);
}

/* Return the size of a file in bytes. */
loff_t rhist_size_of_mapped(struct file *file)
{
	return i_size_read(file_inode(file));
}
