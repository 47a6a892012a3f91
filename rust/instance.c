// SPDX-License-Identifier: GPL-2.0
/*
 * The trace instance of rhist: access to members of struct trace_array that are private to
 * kernel/trace/.
 *
 * All functions are called in task context and may sleep. They take event_mutex and i_rwsem of the
 * instance's directory, one after the other; rhist_set_busy() only i_rwsem.
 */
#include <linux/bits.h>
#include <linux/dcache.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/trace.h>
#include <linux/uaccess.h>

#include "instance.h"
#include "event/own_events.h"
#include "tracefs/tracefs.h"
#include "layouts_generated.h"

/* The name of the instance, and of the only system whose events it has. */
static const char name[] = "rhist";

/*
 * With @busy, rmdir(2) of a directory fails with EBUSY, unless it is being removed
 * already: tracefs checks that before it waits for event_mutex.
 */
void rhist_set_busy(struct dentry *dir, bool busy)
{
	struct inode *inode = d_inode(dir);

	inode_lock(inode);
	if (busy)
		inode->i_flags |= S_KERNEL_FILE;
	else
		inode->i_flags &= ~S_KERNEL_FILE;
	inode_unlock(inode);
}

/**
 * rhist_instance_create - create the instance
 * @dir: set to its directory in tracefs, with a reference
 *
 * Only a kernel module can make an instance that has the events of one system only: that
 * distinguishes rhist's instance from others of its name. One that is left from an earlier load,
 * because a file of it was open, is used again.
 *
 * The options record-cmd and record-tgid of the instance are cleared. With them, enabling an event
 * registers probes of scheduler tracepoints, which patches code, to record names of tasks, which
 * are not needed.
 *
 * If the kernel was locked down at boot, tracing directories do not exist, so the instance would
 * have none.
 *
 * Return: the instance with a reference, or an ERR_PTR: -EPERM if the kernel is locked down, -EBUSY
 * if rhist did not make the instance of this name, otherwise -ENOMEM, whatever the reason; or an
 * error of rhist_sync_init().
 */
struct trace_array *rhist_instance_create(struct dentry **dir)
{
	TRACE_ARRAY__TRACE_FLAGS__TYPE *flags, names = BIT_ULL(TRACE_ITER_RECORD_CMD_BIT) | BIT_ULL(TRACE_ITER_RECORD_TGID_BIT);
	int err = rhist_locked_down();
	struct trace_array *tr;
	const char *systems;

	if (err)
		return ERR_PTR(err);
	tr = trace_array_get_by_name(name, name);
	if (!tr)
		return ERR_PTR(-ENOMEM);
	systems = *(const char **)((void *)tr + TRACE_ARRAY__SYSTEM_NAMES);
	if (!systems || strcmp(systems, name)) {
		trace_array_put(tr);
		return ERR_PTR(-EBUSY);
	}
	err = rhist_sync_init(name);
	if (err) {
		trace_array_put(tr);
		return ERR_PTR(err);
	}
	flags = (void *)tr + TRACE_ARRAY__TRACE_FLAGS;
	WRITE_ONCE(*flags, READ_ONCE(*flags) & ~names);
	*dir = dget(*(struct dentry **)((void *)tr + TRACE_ARRAY__DIR));
	rhist_set_busy(*dir, true);
	return tr;
}

/**
 * rhist_instance_destroy - remove the instance
 * @tr: the instance
 * @dir: its directory; the caller keeps that reference
 *
 * trace_array_destroy() fails while the instance has references, and after the last one is put,
 * rmdir(2) could free the instance first, and mkdir(2) create another one at the same address,
 * which would be removed then. So rmdir(2) is refused from the creation of the instance on, not
 * only by the reference.
 *
 * Return: 0, or -EBUSY if a file of the instance is open. It stays then, until rmdir(2) removes it.
 */
int rhist_instance_destroy(struct trace_array *tr, struct dentry *dir)
{
	int err;

	trace_array_put(tr);
	err = trace_array_destroy(tr);
	if (err)
		rhist_set_busy(dir, false);
	return err;
}

/**
 * rhist_set_trigger - write to a trigger file of the kernel
 * @trigger: the file, below events/
 * @text: the trigger
 *
 * Called in the task that loads or unloads the module, without any lock. The write()
 * operation only takes user memory, so a page is mapped into that task for a
 * moment. Other threads of the program can change or replace the page. That
 * harms only the program itself, which may load modules, and so may do anything.
 *
 * Opening the file would take a mount of tracefs. But write() only uses the inode of the file.
 *
 * Return: 0; -EINVAL for a kernel thread; or a negative errno.
 */
int rhist_set_trigger(struct dentry *trigger, const char *text)
{
	struct file file = { .f_inode = d_inode(trigger), .f_mode = FMODE_WRITE };
	const struct file_operations *fops = d_inode(trigger)->i_fop;
	ssize_t len = strlen(text), done = -EFAULT;
	unsigned long page;
	loff_t pos = 0;

	if (!current->mm || !fops->write || len > PAGE_SIZE)
		return -EINVAL;
	page = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (IS_ERR_VALUE(page))
		return page;
	if (!copy_to_user((void __user *)page, text, len))
		done = fops->write(&file, (void __user *)page, len, &pos);
	vm_munmap(page, PAGE_SIZE);
	if (done < 0)
		return done;
	return done == len ? 0 : -EIO;
}
