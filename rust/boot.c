// SPDX-License-Identifier: GPL-2.0
/* The id of this boot of the kernel. Modules can only read it from its file in /proc. */
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>

#include "boot.h"

/*
 * Read the file with the boot id, as the running task sees it: in its root and mount namespace.
 * Return the number of bytes that were read, or an errno. Task context, may sleep.
 */
ssize_t rhist_read_boot_id(char *to, size_t size)
{
	struct file *file = filp_open("/proc/sys/kernel/random/boot_id", O_RDONLY, 0);
	loff_t pos = 0;
	ssize_t len;

	if (IS_ERR(file))
		return PTR_ERR(file);
	len = kernel_read(file, to, size, &pos);
	fput(file);
	return len;
}
