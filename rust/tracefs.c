// SPDX-License-Identifier: GPL-2.0
/*
 * Inodes and dentries of ours in tracefs.
 *
 * tracefs exports the creation of a file and nothing else, so directories are
 * made with the functions that tracefs uses itself. What it demands of foreign
 * objects: d_fsdata stays NULL (otherwise it is taken for an eventfs object),
 * and the directory operations of tracefs are not used on our inodes (they
 * expect private data behind them).
 *
 * All of these are called in task context and may sleep.
 */
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/fsnotify.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/namei.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/tracefs.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/user_namespace.h>

#include "helpers.h"

/*
 * The owner of the operations of our inodes.
 *
 * The VFS pins the owner before it calls open(), and warns if that fails, as it
 * does for a module that rmmod has begun to remove but that has not had the
 * time to take its files away. So the owner is not the module but this, which
 * can always be pinned: of a struct module, the kernel looks at nothing but
 * what is set here when it takes and gives back a reference. open() of ours
 * then pins the module itself, or fails as if the file were not there.
 *
 * The count is 1 plus the files that are open, or being opened, with
 * operations of ours. Those being opened include tasks that sleep in a security
 * module or wait for a listener of fanotify.
 */
static struct module gate = {
	.name = KBUILD_MODNAME,
	.state = MODULE_STATE_LIVE,
	.refcnt = ATOMIC_INIT(1),
};

struct module *rhist_gate(void)
{
	return &gate;
}

/**
 * rhist_gate_wait - wait until nobody is on the way in
 *
 * To be called while the module is going, after rhist_inode_close() of every
 * inode. Afterwards none of the operations of ours is running, nor is any that
 * opened files have: no file is open.
 */
void rhist_gate_wait(void)
{
	/* Between reading i_fop and pinning its owner nobody sleeps. */
	synchronize_rcu_tasks();
	while (atomic_read(&gate.refcnt) > 1)
		fsleep(1000);
}

/*
 * open() of ours, and whatever else leads in: pins the module. False if it is
 * going away; or if its init has not succeeded yet, since then nobody would wait
 * for those who are in if it fails.
 */
bool rhist_enter(void)
{
	return READ_ONCE(THIS_MODULE->state) == MODULE_STATE_LIVE && try_module_get(THIS_MODULE);
}

/* release() of ours, whose caller still holds the gate; or open() that fails. */
void rhist_leave(void)
{
	module_put(THIS_MODULE);
}

/**
 * rhist_tracefs_root - the root directory of tracefs
 * @name: a name that is free in it
 *
 * Mounting tracefs once more to get at its root would change the options that
 * the file system remembers. So a file is created in the root and removed.
 *
 * Return: the root with a reference, or NULL: the name is taken, or the
 * kernel is locked down, or there is no memory; tracefs does not say which.
 */
struct dentry *rhist_tracefs_root(const char *name)
{
	static const struct file_operations none;
	struct dentry *file = tracefs_create_file(name, 0, NULL, NULL, &none);
	struct dentry *root;

	if (IS_ERR_OR_NULL(file))
		return NULL;
	root = dget(file->d_parent);
	dget(file);
	simple_recursive_removal(file, NULL);
	dput(file);
	return root;
}

/**
 * rhist_new_inode - an inode of ours
 * @like: the kernel's inode that gives owner, group and permissions
 * @mode: type and permissions; 0 stands for those of @like
 * @iop: inode operations, or NULL for those of a plain file
 * @fop: file operations
 * @private: i_private, or NULL for what @like has: the kernel's functions find
 *	what they work on there
 *
 * Return: the inode with one reference, or NULL without memory.
 */
struct inode *rhist_new_inode(struct inode *like, umode_t mode,
			      const struct inode_operations *iop,
			      const struct file_operations *fop, void *private)
{
	struct inode *inode = new_inode(like->i_sb);

	if (!inode)
		return NULL;
	inode->i_ino = get_next_ino();
	simple_inode_init_ts(inode);
	inode->i_mode = mode ?: like->i_mode;
	inode->i_uid = like->i_uid;
	inode->i_gid = like->i_gid;
	if (iop)
		inode->i_op = iop;
	inode->i_fop = fop;
	inode->i_private = private ?: like->i_private;
	if (S_ISDIR(inode->i_mode)) {
		set_nlink(inode, 2);
		/*
		 * Our directories are locked around the kernel's, so lockdep
		 * has to see two classes. This key belongs to the file system
		 * type, which does not use it: it stays valid when the module
		 * is gone and somebody still stands in one of the directories.
		 */
		lockdep_set_class(&inode->i_rwsem, &inode->i_sb->s_type->i_mutex_dir_key);
	} else {
		/* tracefs keeps the number of the CPU of a per-CPU file here. */
		inode->i_cdev = like->i_cdev;
		i_size_write(inode, i_size_read(like));
	}
	return inode;
}

/* Give an inode that nobody else has yet an owner and a group; -1 leaves what it has. */
void rhist_inode_own(struct inode *inode, uid_t uid, gid_t gid)
{
	kuid_t kuid = make_kuid(&init_user_ns, uid);
	kgid_t kgid = make_kgid(&init_user_ns, gid);

	if (uid_valid(kuid))
		inode->i_uid = kuid;
	if (gid_valid(kgid))
		inode->i_gid = kgid;
}

void *rhist_inode_private(struct inode *inode)
{
	return inode->i_private;
}

/* The file operations of an inode of the kernel. */
const struct file_operations *rhist_inode_fop(struct inode *inode)
{
	return inode->i_fop;
}

/* Is the caller's reference the only one left? Takes i_lock. */
bool rhist_inode_only_ours(struct inode *inode)
{
	bool only;

	spin_lock(&inode->i_lock);
	only = icount_read(inode) == 1;
	spin_unlock(&inode->i_lock);
	return only;
}

/**
 * rhist_inode_close - let nobody open an inode any more
 * @inode: one of ours
 * @bad: an inode that was revoked
 *
 * Takes no lock. The operations of a revoked inode are the kernel's own and
 * answer EIO.
 */
void rhist_inode_close(struct inode *inode, struct inode *bad)
{
	WRITE_ONCE(inode->i_fop, bad->i_fop);
}

/**
 * rhist_inode_revoke - make an inode useless for whoever still holds it
 * @inode: one of ours
 *
 * Afterwards no operation on it, running ones included, is in our code: the
 * operations that our directories have are called with the inode locked.
 */
void rhist_inode_revoke(struct inode *inode)
{
	inode_lock(inode);
	inode->i_flags |= S_DEAD;
	make_bad_inode(inode);
	inode_unlock(inode);
}

/**
 * rhist_create_dir - enter a directory of ours
 * @parent: where
 * @name: its name
 * @inode: its inode; the directory takes a reference of its own
 *
 * Return: the directory, which stays until rhist_remove_dir(), or an ERR_PTR.
 */
struct dentry *rhist_create_dir(struct dentry *parent, const char *name, struct inode *inode)
{
	struct dentry *dir = simple_start_creating(parent, name);

	if (IS_ERR(dir))
		return dir;
	ihold(inode);
	d_make_persistent(dir, inode);
	inc_nlink(d_inode(parent));
	fsnotify_mkdir(d_inode(parent), dir);
	simple_done_creating(dir);
	return dir;
}

/**
 * rhist_create_file - enter a file of ours in a directory of the kernel
 * @parent: where
 * @name: its name
 * @inode: its inode; the file takes a reference of its own
 *
 * Return: the file, which stays until simple_recursive_removal(), or an ERR_PTR.
 */
struct dentry *rhist_create_file(struct dentry *parent, const char *name, struct inode *inode)
{
	struct dentry *file = simple_start_creating(parent, name);

	if (IS_ERR(file))
		return file;
	ihold(inode);
	d_make_persistent(file, inode);
	fsnotify_create(d_inode(parent), file);
	simple_done_creating(file);
	return file;
}

/**
 * rhist_remove_dir - undo rhist_create_dir()
 * @dir: the directory; its inode has been revoked
 *
 * What is below it came by lookup and leaves when the last user does.
 */
void rhist_remove_dir(struct dentry *dir)
{
	struct inode *parent = d_inode(dir->d_parent);

	inode_lock(parent);
	drop_nlink(parent);
	inode_unlock(parent);
	d_invalidate(dir);
	d_make_discardable(dir);
}

/* A name in a directory of the kernel: a reference to it, or an ERR_PTR. */
struct dentry *rhist_lookup(struct dentry *dir, const char *name, unsigned int len)
{
	return lookup_noperm_positive_unlocked(&QSTR_LEN(name, len), dir);
}

/* Open a directory of the kernel beside the open file of the one that mirrors it. */
struct file *rhist_open_dir(struct file *mirror, struct dentry *real)
{
	struct path path = { .mnt = mirror->f_path.mnt, .dentry = real };

	return dentry_open(&path, O_RDONLY | O_DIRECTORY, current_cred());
}

/**
 * rhist_open_beside - open a file of the kernel beside one that is open
 * @file: open, or being opened; gives mount and credentials
 * @real: the file to be opened
 * @flags: the access mode, and O_TRUNC or not
 *
 * Permissions are not looked at: @file has been opened.
 *
 * Return: the file, or an ERR_PTR.
 */
struct file *rhist_open_beside(struct file *file, struct dentry *real, unsigned int flags)
{
	struct path path = { .mnt = file->f_path.mnt, .dentry = real };

	return dentry_open(&path, flags | O_LARGEFILE, file->f_cred);
}

/**
 * rhist_read_seq - read a sequence file into memory of the kernel
 * @file: an open file
 * @to: where to
 * @len: bytes there
 * @pos: position, moved on; 0 begins anew
 *
 * Return: bytes read, 0 at the end, or an errno; -EINVAL for other files.
 */
ssize_t rhist_read_seq(struct file *file, void *to, size_t len, loff_t *pos)
{
	struct kvec vec = { .iov_base = to, .iov_len = len };
	struct iov_iter iter;
	struct kiocb iocb;
	ssize_t done;

	if (!(file->f_mode & FMODE_READ) || file->f_op->read != seq_read)
		return -EINVAL;
	init_sync_kiocb(&iocb, file);
	iocb.ki_pos = *pos;
	iov_iter_kvec(&iter, ITER_DEST, &vec, 1, len);
	done = seq_read_iter(&iocb, &iter);
	*pos = iocb.ki_pos;
	return done;
}

/* write(2) to a file of the kernel, from memory of the user. */
ssize_t rhist_write(struct file *file, const char __user *from, size_t len)
{
	loff_t pos = 0;

	if (!(file->f_mode & FMODE_WRITE) || !file->f_op->write)
		return -EINVAL;
	return file->f_op->write(file, from, len, &pos);
}

/*
 * The same, of a text of ours. Files of tracefs read memory of a program only, so the running task is lent a
 * page with it. Its other threads can write there meanwhile: -EPERM if they may not do all there is to do.
 */
ssize_t rhist_write_text(struct file *file, const char *text, size_t len)
{
	unsigned long page;
	ssize_t done;

	if (!ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN))
		return -EPERM;
	if (!current->mm || len > PAGE_SIZE)
		return -EINVAL;
	page = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (IS_ERR_VALUE(page))
		return page;
	if (copy_to_user((void __user *)page, text, len))
		done = -EFAULT;
	else
		done = rhist_write(file, (const char __user *)page, len);
	vm_munmap(page, PAGE_SIZE);
	return done;
}

/* mkdir(2) in a directory of the kernel, where it allows that (instances/). */
int rhist_mkdir(struct mnt_idmap *idmap, struct dentry *dir, const char *name,
		unsigned int len, umode_t mode)
{
	struct dentry *made = start_creating(idmap, dir, &QSTR_LEN(name, len));

	if (IS_ERR(made))
		return PTR_ERR(made);
	made = vfs_mkdir(idmap, d_inode(dir), made, mode, NULL);
	end_creating(made);
	return PTR_ERR_OR_ZERO(made);
}

/* rmdir(2) in a directory of the kernel. */
int rhist_rmdir(struct dentry *dir, const char *name, unsigned int len)
{
	struct dentry *gone = start_removing(&nop_mnt_idmap, dir, &QSTR_LEN(name, len));
	int err;

	if (IS_ERR(gone))
		return PTR_ERR(gone);
	err = vfs_rmdir(&nop_mnt_idmap, d_inode(dir), gone, NULL);
	end_removing(gone);
	return err;
}

/*
 * Has the kernel taken the object out of its tree? What is below events/ leaves
 * the dentry cache when it is next looked up; until then only a look-up finds
 * out that it is gone.
 */
bool rhist_removed(struct dentry *dentry)
{
	const struct dentry_operations *ops = dentry->d_op;

	if (IS_ROOT(dentry))
		return false;
	return data_race(d_unhashed(dentry)) ||
	       (ops && ops->d_revalidate &&
		!ops->d_revalidate(d_inode(dentry->d_parent), &dentry->d_name, dentry, 0));
}

/* Have a name looked up anew the next time; false if it would be anyway. */
bool rhist_forget(struct dentry *dentry)
{
	if (data_race(d_unhashed(dentry)))
		return false;
	d_drop(dentry);
	return true;
}

struct dentry *rhist_dget(struct dentry *dentry)
{
	return dget(dentry);
}
