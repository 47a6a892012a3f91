// SPDX-License-Identifier: GPL-2.0
/*
 * rhist's inodes and dentries in tracefs.
 *
 * tracefs exports only the creation of a file, so directories are created with
 * the functions that tracefs itself uses. Rules for objects that tracefs does
 * not know: d_fsdata is NULL or an eventfs object with a reference for it, see
 * rhist_keep_name(), and rhist's inodes do not use the directory operations of
 * tracefs (they expect private data).
 *
 * All functions are called in task context and may sleep.
 */
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/fsnotify.h>
#include <linux/kref.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/namei.h>
#include <linux/rcupdate.h>
#include <linux/security.h>
#include <linux/seq_file.h>
#include <linux/trace_events.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/user_namespace.h>

#include "tracefs.h"
#include "../compat.h"
#include "layouts_generated.h"

/*
 * The owner of rhist's file operations.
 *
 * The VFS pins the owner before it calls open(), and warns if that fails. It
 * would fail for a module that is unloading and has not removed its files yet.
 * So the owner is not THIS_MODULE but this gate, which can always be pinned:
 * try_module_get() and module_put() only use the fields that are set here.
 * rhist's open() then pins the module itself, or fails as if the file were not
 * there.
 *
 * The count is 1 plus the files that are open, or being opened, with rhist's
 * operations. Those being opened include tasks that sleep in a security module
 * or wait for a fanotify listener.
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
 * rhist_gate_wait - wait for open files
 *
 * Waits until no file with rhist's operations is open or being opened. None of
 * these operations is running then.
 *
 * Context: Task, sleeps. During unload, after rhist_inode_close() of every
 * inode, so that no new open can begin.
 */
void rhist_gate_wait(void)
{
	/* A task does not sleep between reading i_fop and pinning its owner. */
	synchronize_rcu_tasks();
	while (atomic_read(&gate.refcnt) > 1)
		fsleep(1000);
}

/*
 * Pins the module, for an open file or another user of its code. Returns false
 * if the module is unloading, or its init has not succeeded yet: if init fails,
 * the module is freed without waiting for its reference count.
 */
bool rhist_enter(void)
{
	return READ_ONCE(THIS_MODULE->state) == MODULE_STATE_LIVE && try_module_get(THIS_MODULE);
}

/*
 * Unpins the module. Something else must keep the code of the caller: release()
 * and a failing open() run while the VFS holds the gate.
 */
void rhist_leave(void)
{
	module_put(THIS_MODULE);
}

/* Return the root directory of the file system that @dir is in, with a reference. */
struct dentry *rhist_root_of(struct dentry *dir)
{
	return dget(dir->d_sb->s_root);
}

/*
 * Members that other kernels have in unnamed structures. The name is constant while a directory
 * cannot be renamed.
 */
const struct qstr *rhist_name_of(const struct dentry *dentry)
{
	return &dentry->d_name;
}

struct dentry *rhist_dentry_of(const struct file *file)
{
	return file->f_path.dentry;
}

/**
 * rhist_new_inode - create an inode like one of the kernel's
 * @like: the kernel's inode, to copy owner and group from
 * @mode: type and permissions, or 0 to copy them from @like
 * @iop: inode operations, or NULL for the defaults of new_inode()
 * @fop: file operations
 * @private: i_private, or NULL to copy i_private of @like, where the kernel's file operations
 *	expect their data
 *
 * Return: the inode with one reference, or NULL if an allocation fails.
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
	if (!S_ISDIR(inode->i_mode)) {
		/* tracefs stores the CPU of a per-CPU file here. */
		inode->i_cdev = like->i_cdev;
		i_size_write(inode, i_size_read(like));
	}
	return inode;
}

/* Set owner and group of an inode that is not published yet; -1 leaves them unchanged. */
void rhist_inode_own(struct inode *inode, uid_t uid, gid_t gid)
{
	kuid_t kuid = make_kuid(&init_user_ns, uid);
	kgid_t kgid = make_kgid(&init_user_ns, gid);

	if (uid_valid(kuid))
		inode->i_uid = kuid;
	if (gid_valid(kgid))
		inode->i_gid = kgid;
}

/* Set the size that stat(2) shows of an inode that is not published yet, in bytes. */
void rhist_inode_size(struct inode *inode, u64 size)
{
	i_size_write(inode, size);
}

void *rhist_inode_private(struct inode *inode)
{
	return inode->i_private;
}

/**
 * rhist_get_fops - pin the operations of one of the kernel's files
 * @file: a referenced dentry of the kernel
 *
 * The operations, and with them the name of their owner, may be in the memory
 * of another module, which a reference on the dentry does not pin. But a module
 * removes its files before its memory is freed, and in between free_module()
 * waits for RCU. So operations of a file that is found to be still there can be
 * read until the end of the read-side critical section, and the owner can be
 * pinned in it.
 *
 * Return: the operations, to be released by rhist_put_fops(), or NULL if the
 * file was removed or its owner is being unloaded.
 */
const struct file_operations *rhist_get_fops(struct dentry *file)
{
	guard(rcu)();
	return rhist_removed(file) ? NULL : fops_get(READ_ONCE(d_inode(file)->i_fop));
}

void rhist_put_fops(const struct file_operations *fops)
{
	fops_put(fops);
}

/*
 * Return whether the inode can be dropped: the caller's reference is the last one, and
 * mode and owner were not changed, or the file was @removed. Takes i_lock.
 */
bool rhist_inode_unused(struct inode *inode, bool removed)
{
	bool unused;

	spin_lock(&inode->i_lock);
	unused = icount_read(inode) == 1 && (removed || !inode->i_generation);
	spin_unlock(&inode->i_lock);
	return unused;
}

/**
 * rhist_inode_close - make further opens of an inode fail
 * @inode: one of rhist's inodes
 * @bad: a revoked inode, whose i_fop is the kernel's: open() fails with -EIO
 *
 * Takes no lock. Does not wait for opens that have begun: see
 * rhist_gate_wait().
 */
void rhist_inode_close(struct inode *inode, struct inode *bad)
{
	WRITE_ONCE(inode->i_fop, bad->i_fop);
}

/**
 * rhist_inode_revoke - detach an inode from rhist's operations
 * @inode: one of rhist's inodes
 *
 * The inode may still be in use, for example as a current directory. Takes
 * i_rwsem, with which the inode operations of rhist's directories are called:
 * on return none of them is running or can begin.
 */
void rhist_inode_revoke(struct inode *inode)
{
	inode_lock(inode);
	inode->i_flags |= S_DEAD;
	make_bad_inode(inode);
	inode_unlock(inode);
}

/**
 * rhist_create_dir - create a directory of rhist in one of the kernel's
 * @parent: the kernel's directory; takes its i_rwsem
 * @name: name of the new directory
 * @inode: its inode, on which the dentry takes a reference
 *
 * Return: the dentry, which stays until rhist_remove_dir(), or an ERR_PTR.
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
 * rhist_create_file - create a file of rhist in one of the kernel's directories
 * @parent: the kernel's directory; takes its i_rwsem
 * @name: name of the new file
 * @inode: its inode, on which the dentry takes a reference
 *
 * Return: the dentry, which stays until simple_recursive_removal(), or an
 * ERR_PTR.
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
 * rhist_remove_dir - remove a directory that rhist_create_dir() has created
 * @dir: the directory; its inode must have been revoked
 *
 * Takes i_rwsem of the parent. The dentries below @dir were created by lookup;
 * those in use stay until their last reference is dropped.
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

/* Return whether the running task has locked the directory exclusively. */
static bool locked_by_us(struct inode *dir)
{
#ifdef CONFIG_PREEMPT_RT
	/* A writer has the mutex, whose bit 0 says whether others wait for it. */
	return ((long)READ_ONCE(dir->i_rwsem.rwbase.rtmutex.owner) & ~1L) == (long)current;
#else
	/* Bit 0 of the owner is set for a reader, bit 1 does not concern the owner. */
	return (atomic_long_read(&dir->i_rwsem.owner) & ~2L) == (long)current;
#endif
}

/*
 * Lock one of the kernel's inodes, while one of rhist's is locked.
 *
 * For directories that is the wrong order: rename(2) locks one of the kernel
 * first, and then one of rhist, which is below it. So the task that has locked
 * this one may be waiting for the caller. So try to lock it, and if it stays
 * locked, restart the system call, which unlocks rhist's directory. Without a
 * rename, a directory is locked no longer than a lookup takes.
 *
 * Return: 0; -ERESTARTNOINTR; or -EAGAIN in a task that does not return to user
 * space, such as a worker of io_uring.
 */
static int lock_nested(struct inode *inode, bool shared)
{
	for (int tries = 0; tries < 5; tries++) {
		if (shared ? inode_trylock_shared(inode) : inode_trylock(inode))
			return 0;
		fsleep(1000);
	}
	return current->flags & (PF_KTHREAD | PF_USER_WORKER) ? -EAGAIN : restart_syscall();
}

/* Return a dentry that was found; if it is negative, put the reference and return -ENOENT. */
static struct dentry *positive(struct dentry *found)
{
	if (IS_ERR(found) || !d_flags_negative(smp_load_acquire(&found->d_flags)))
		return found;
	dput(found);
	return ERR_PTR(-ENOENT);
}

/*
 * Find a name of one of the kernel's directories in the dentry cache, without a lock. Outside of
 * events/, all names are in the cache while the files exist.
 *
 * Return: a positive dentry with a reference; NULL if a lookup is needed; or an ERR_PTR, such as
 * -ENOENT.
 */
static struct dentry *find_cached(struct dentry *dir, struct qstr *name)
{
	struct dentry *found = try_lookup_noperm(name, dir);

	if (IS_ERR(found))
		return found;
	if (found && !rhist_removed(found))
		return positive(found);
	dput(found);
	/* All directories below events/ have an eventfs object, and no other has. */
	return dir->d_fsdata ? NULL : ERR_PTR(-ENOENT);
}

/**
 * rhist_lookup_nested - look up a name in one of the kernel's directories, in a lookup of rhist
 * @dir: the kernel's directory
 * @name: the name
 * @len: its length
 *
 * i_rwsem of a directory of rhist is held, so this does not wait for i_rwsem of
 * @dir, which a name below events/ takes that is not in the dentry cache.
 *
 * Return: a positive dentry with a reference, or an ERR_PTR: -ENOENT, -ENOMEM,
 * or if another task has @dir locked for some time, -ERESTARTNOINTR or -EAGAIN.
 */
struct dentry *rhist_lookup_nested(struct dentry *dir, const char *name, unsigned int len)
{
	struct qstr qname = QSTR_LEN(name, len);
	/* rename(2) locks both directories that it looks names up in. */
	bool locked = locked_by_us(d_inode(dir));
	struct dentry *found = find_cached(dir, &qname);
	int err;

	if (found)
		return found;
	err = locked ? 0 : lock_nested(d_inode(dir), RHIST_LOOKUP_SHARED);
	if (err)
		return ERR_PTR(err);
	found = lookup_noperm(&qname, dir);
	if (!locked && RHIST_LOOKUP_SHARED)
		inode_unlock_shared(d_inode(dir));
	else if (!locked)
		inode_unlock(d_inode(dir));
	return positive(found);
}

/*
 * Look up a name in one of the kernel's directories, without i_rwsem of any directory held. May
 * wait for i_rwsem of @dir. Returns a reference or an ERR_PTR.
 */
struct dentry *rhist_lookup(struct dentry *dir, const char *name, unsigned int len)
{
	struct qstr qname = QSTR_LEN(name, len);

	return find_cached(dir, &qname) ?: lookup_noperm_positive_unlocked(&qname, dir);
}

/*
 * A mirrored file or directory has the mode and owner of the kernel's. They are
 * copied whenever the VFS calls permission() or getattr(), because they change in
 * several ways: chmod(2) and chown(2) of either file; a remount of tracefs; and a
 * new owner of the tracing directory, which files outside of events/ inherit when
 * they are looked at. Code of the VFS that reads the inode directly sees the last
 * copy. tracefs updates its own inodes in the same way.
 */
static void copy_mode_and_owner(struct inode *mirror, struct inode *real)
{
	if (mirror->i_mode != real->i_mode)
		WRITE_ONCE(mirror->i_mode, real->i_mode);
	if (!uid_eq(mirror->i_uid, real->i_uid))
		mirror->i_uid = real->i_uid;
	if (!gid_eq(mirror->i_gid, real->i_gid))
		mirror->i_gid = real->i_gid;
}

/* Check permissions for rhist's file or directory: those of the kernel's @real apply. */
int rhist_permission(struct mnt_idmap *idmap, struct inode *mirror, struct inode *real, int mask)
{
	int err = inode_permission(idmap, real, mask);

	copy_mode_and_owner(mirror, real);
	return err;
}

/*
 * stat(2): everything except the inode number comes from the kernel's @real, whose times
 * rhist_setattr() sets, too.
 */
int rhist_getattr(const struct path *mirror, struct dentry *real, struct kstat *stat,
		  u32 request_mask, unsigned int flags)
{
	struct path path = { .mnt = mirror->mnt, .dentry = real };
	struct inode *inode = d_inode(mirror->dentry);
	int err = vfs_getattr_nosec(&path, stat, request_mask, flags);

	copy_mode_and_owner(inode, d_inode(real));
	stat->ino = inode->i_ino;
	return err;
}

/**
 * rhist_setattr - chmod(2), chown(2), utimensat(2) of a mirrored file or directory
 * @idmap: of the mount of @mirror
 * @mirror: rhist's file or directory, with i_rwsem held
 * @real: the kernel's
 * @attr: what to change
 *
 * Return: 0; a negative errno; or as lock_nested().
 */
int rhist_setattr(struct mnt_idmap *idmap, struct dentry *mirror, struct dentry *real,
		  struct iattr *attr)
{
	const unsigned int owners = ATTR_MODE | ATTR_UID | ATTR_GID;
	const unsigned int times = ATTR_ATIME | ATTR_ATIME_SET | ATTR_MTIME | ATTR_MTIME_SET | ATTR_TOUCH;
	const unsigned int kill = ATTR_KILL_SUID | ATTR_KILL_SGID;
	struct iattr own = *attr, both = *attr;
	int err;

	own.ia_valid &= ~(owners | kill);
	both.ia_valid &= owners | kill | times;
	/*
	 * Let chown(2) clear setuid and setgid in the mode of the kernel's file: the copy in
	 * @mirror may be older.
	 */
	if (both.ia_valid & kill)
		both.ia_valid &= ~ATTR_MODE;
	/*
	 * open(2) with O_TRUNC: the kernel's file is opened next, which sets its times if it is
	 * truncated.
	 */
	if (attr->ia_valid & ATTR_SIZE)
		both.ia_valid &= ~times;
	if (both.ia_valid) {
		both.ia_valid |= ATTR_CTIME;
		err = lock_nested(d_inode(real), false);
		if (err)
			return err;
		err = notify_change(idmap, real, &both, NULL);
		inode_unlock(d_inode(real));
		if (err)
			return err;
		copy_mode_and_owner(d_inode(mirror), d_inode(real));
	}
	return simple_setattr(idmap, mirror, &own);
}

/*
 * chmod(2), chown(2) of rhist's own files. Only their inodes store the result, so they are kept:
 * see rhist_inode_unused(). tracefs does not use i_generation.
 */
int rhist_setattr_own(struct mnt_idmap *idmap, struct dentry *file, struct iattr *attr)
{
	int err = simple_setattr(idmap, file, attr);

	if (!err && attr->ia_valid & (ATTR_MODE | ATTR_UID | ATTR_GID))
		d_inode(file)->i_generation = 1;
	return err;
}

/* fsync(2) of a directory, which some of the kernel's have and some have not. */
int rhist_fsync(struct file *real, loff_t start, loff_t end, int datasync)
{
	return vfs_fsync_range(real, start, end, datasync);
}

/**
 * rhist_keep_name - let a name stay in the dentry cache as long as an object of eventfs lives
 * @name: a new dentry of rhist, which is not published yet
 * @real: a referenced dentry of the kernel
 *
 * tracefs deletes a dentry with its last reference, so that the next lookup creates
 * it and its inode again; but not a dentry below events/, which has an object of
 * eventfs, with a reference, in d_fsdata. tracefs treats such a dentry as stale once
 * that object has been removed, and puts the reference when it releases the dentry.
 * So @name gets the object of @real, if it has one.
 *
 * tracefs does not call rhist for it, so such a dentry may outlive the module.
 */
void rhist_keep_name(struct dentry *name, struct dentry *real)
{
	/* Set before @real was published, and constant. */
	void *ei = real->d_fsdata;

	if (!ei)
		return;
	kref_get(ei + EVENTFS_INODE__KREF);
	name->d_fsdata = ei;
}

/* dentry_open() for a file that may belong to another module: -ENODEV if it has been removed. */
static struct file *open_real(struct vfsmount *mnt, struct dentry *real, int flags,
			      const struct cred *cred)
{
	const struct file_operations *fops = rhist_get_fops(real);
	struct path path = { .mnt = mnt, .dentry = real };
	struct file *file;

	if (!fops)
		return ERR_PTR(-ENODEV);
	file = dentry_open(&path, flags, cred);
	fops_put(fops);
	return file;
}

/* Open @real, one of the kernel's directories, on the mount of @mirror, which mirrors it. */
struct file *rhist_open_dir(struct file *mirror, struct dentry *real)
{
	return open_real(mirror->f_path.mnt, real, O_RDONLY | O_DIRECTORY, current_cred());
}

/**
 * rhist_open_beside - open a file with mount and credentials of an open one
 * @file: a file that is open, or being opened, to take mount and credentials of
 * @real: the file to open
 * @flags: the access mode, and O_TRUNC or not
 *
 * Permissions of @real are not checked, since the permissions of @file were.
 *
 * Return: the open file, or an ERR_PTR.
 */
struct file *rhist_open_beside(struct file *file, struct dentry *real, unsigned int flags)
{
	return open_real(file->f_path.mnt, real, flags | O_LARGEFILE, file->f_cred);
}

/**
 * rhist_read_seq - read a seq_file into kernel memory
 * @file: an open file
 * @to: buffer
 * @len: size of @to
 * @pos: position to read at, advanced; 0 generates the text anew
 *
 * Return: bytes read, 0 at the end, or a negative errno; -EINVAL if @file is
 * not a seq_file or not open for reading.
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

/* Write user memory to a file at position 0. -EINVAL if it is not open for writing. */
ssize_t rhist_write(struct file *file, const char __user *from, size_t len)
{
	loff_t pos = 0;

	if (!(file->f_mode & FMODE_WRITE) || !file->f_op->write)
		return -EINVAL;
	return file->f_op->write(file, from, len, &pos);
}

/*
 * Unlock rhist's directory, which the VFS has locked for mkdir(2) or rmdir(2), and
 * for the latter @child, too, so that the caller can wait for the kernel's directory.
 * tracefs unlocks its own directories, too, while an instance is created or removed.
 */
void rhist_unlock_dir(struct inode *dir, struct inode *child)
{
	inode_unlock(dir);
	if (child)
		inode_unlock(child);
}

/* Lock the directories again that rhist_unlock_dir() has unlocked. */
void rhist_relock_dir(struct inode *dir, struct inode *child)
{
	inode_lock_nested(dir, I_MUTEX_PARENT);
	if (child)
		inode_lock(child);
}

/*
 * Unlock rhist's directory, which the VFS has locked shared for getdents(2). May be
 * done as in dir_relax_shared().
 */
void rhist_unlock_dir_shared(struct inode *dir)
{
	inode_unlock_shared(dir);
}

void rhist_relock_dir_shared(struct inode *dir)
{
	inode_lock_shared(dir);
}

/* List "." and ".." of an open directory, at the positions 0 and 1; false if the buffer is full. */
bool rhist_emit_dots(struct file *dir, struct dir_context *ctx)
{
	return ctx->pos > 1 || dir_emit_dots(dir, ctx);
}

/* mkdir(2) in one of the kernel's directories, if it allows that (instances/). */
int rhist_mkdir(struct mnt_idmap *idmap, struct dentry *dir, const char *name,
		unsigned int len, umode_t mode)
{
	struct dentry *made = start_creating(idmap, dir, &QSTR_LEN(name, len));

	return IS_ERR(made) ? PTR_ERR(made) : rhist_vfs_mkdir(idmap, dir, made, mode);
}

/* rmdir(2) in one of the kernel's directories. */
int rhist_rmdir(struct dentry *dir, const char *name, unsigned int len)
{
	struct dentry *gone = start_removing(&nop_mnt_idmap, dir, &QSTR_LEN(name, len));
	int err;

	if (IS_ERR(gone))
		return PTR_ERR(gone);
	err = rhist_vfs_rmdir(d_inode(dir), gone);
	end_removing(gone);
	return err;
}

/*
 * Return whether the kernel has removed the file or directory. A dentry below events/
 * stays hashed until the next lookup, so revalidate it as a lookup does.
 */
bool rhist_removed(struct dentry *dentry)
{
	const struct dentry_operations *ops = dentry->d_op;

	if (IS_ROOT(dentry))
		return false;
	return data_race(d_unhashed(dentry)) || (ops && ops->d_revalidate && !rhist_revalidate(dentry));
}

/*
 * Return whether it is the kernel's `trigger` of an event: no other directory below events/ has
 * that name.
 */
bool rhist_lists_triggers(struct dentry *dentry)
{
	return dentry->d_fsdata && !strcmp(dentry->d_name.name, "trigger");
}

/**
 * rhist_has_triggers - whether an event has triggers
 * @trigger: the kernel's file of that name, for which rhist_lists_triggers() is true
 *
 * The event's file, which the inode refers to, is freed only after eventfs has
 * released the object that @trigger has a reference on. No lock is needed, since
 * only the head of the list is read; the answer may be outdated at once.
 */
bool rhist_has_triggers(struct dentry *trigger)
{
	struct trace_event_file *file = d_inode(trigger)->i_private;

	return !list_empty(&file->triggers);
}

/*
 * Unhash a dentry, so that its name is looked up anew, and drop the dentries below it. Return 0 if
 * it was not hashed; otherwise -ESTALE, which makes the VFS repeat the path walk.
 */
int rhist_forget(struct dentry *dentry)
{
	if (data_race(d_unhashed(dentry)))
		return 0;
	d_invalidate(dentry);
	return -ESTALE;
}

struct dentry *rhist_dget(struct dentry *dentry)
{
	return dget(dentry);
}

/* Return whether the kernel is locked down (LOCKDOWN_TRACEFS): 0 or -EPERM. Task context. */
int rhist_locked_down(void)
{
	return security_locked_down(LOCKDOWN_TRACEFS);
}
