/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_TRACEFS_H
#define RHIST_TRACEFS_H

#include <linux/types.h>

struct dentry;
struct dir_context;
struct file;
struct file_operations;
struct iattr;
struct inode;
struct inode_operations;
struct kstat;
struct mnt_idmap;
struct module;
struct path;

int rhist_locked_down(void);
struct module *rhist_gate(void);
void rhist_gate_wait(void);
bool rhist_enter(void);
void rhist_leave(void);
struct dentry *rhist_root_of(struct dentry *dir);
const struct qstr *rhist_name_of(const struct dentry *dentry);
struct dentry *rhist_dentry_of(const struct file *file);
struct inode *rhist_new_inode(struct inode *like, umode_t mode,
			      const struct inode_operations *iop,
			      const struct file_operations *fop, void *private);
int rhist_permission(struct mnt_idmap *idmap, struct inode *mirror, struct inode *real, int mask);
int rhist_getattr(const struct path *mirror, struct dentry *real, struct kstat *stat,
		  u32 request_mask, unsigned int flags);
int rhist_setattr(struct mnt_idmap *idmap, struct dentry *mirror, struct dentry *real,
		  struct iattr *attr);
int rhist_setattr_own(struct mnt_idmap *idmap, struct dentry *file, struct iattr *attr);
int rhist_fsync(struct file *real, loff_t start, loff_t end, int datasync);
void rhist_inode_own(struct inode *inode, uid_t uid, gid_t gid);
void rhist_inode_size(struct inode *inode, u64 size);
void *rhist_inode_private(struct inode *inode);
const struct file_operations *rhist_get_fops(struct dentry *file);
void rhist_put_fops(const struct file_operations *fops);
bool rhist_inode_unused(struct inode *inode, bool removed);
void rhist_inode_close(struct inode *inode, struct inode *bad);
void rhist_inode_revoke(struct inode *inode);
struct dentry *rhist_create_dir(struct dentry *parent, const char *name, struct inode *inode);
struct dentry *rhist_create_file(struct dentry *parent, const char *name, struct inode *inode);
void rhist_remove_dir(struct dentry *dir);
void rhist_keep_name(struct dentry *name, struct dentry *real);
struct dentry *rhist_lookup_nested(struct dentry *dir, const char *name, unsigned int len);
struct dentry *rhist_lookup(struct dentry *dir, const char *name, unsigned int len);
struct file *rhist_open_dir(struct file *mirror, struct dentry *real);
struct file *rhist_open_beside(struct file *file, struct dentry *real, unsigned int flags);
ssize_t rhist_read_seq(struct file *file, void *to, size_t len, loff_t *pos);
ssize_t rhist_write(struct file *file, const char __user *from, size_t len);
void rhist_unlock_dir(struct inode *dir, struct inode *child);
void rhist_relock_dir(struct inode *dir, struct inode *child);
void rhist_unlock_dir_shared(struct inode *dir);
void rhist_relock_dir_shared(struct inode *dir);
bool rhist_emit_dots(struct file *dir, struct dir_context *ctx);
int rhist_mkdir(struct mnt_idmap *idmap, struct dentry *dir, const char *name,
		unsigned int len, umode_t mode);
int rhist_rmdir(struct dentry *dir, const char *name, unsigned int len);
bool rhist_removed(struct dentry *dentry);
bool rhist_lists_triggers(struct dentry *dentry);
bool rhist_has_triggers(struct dentry *trigger);
int rhist_forget(struct dentry *dentry);
struct dentry *rhist_dget(struct dentry *dentry);

#endif
