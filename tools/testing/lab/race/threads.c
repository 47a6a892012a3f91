// SPDX-License-Identifier: GPL-2.0
/* Two threads that increment the same counter while the module is being loaded. */

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>

#define SECONDS 5

void race_count(u64 *counter);

static u64 counter;

static int count(void *unused)
{
	while (!kthread_should_stop()) {
		race_count(&counter);
		cond_resched();
	}
	return 0;
}

static int __init race_init(void)
{
	struct task_struct *threads[2];
	int i, started, err = 0;

	for (started = 0; started < ARRAY_SIZE(threads); started++) {
		threads[started] = kthread_run(count, NULL, "race%d", started);
		if (IS_ERR(threads[started])) {
			err = PTR_ERR(threads[started]);
			break;
		}
	}
	if (!err)
		msleep(SECONDS * MSEC_PER_SEC);
	for (i = 0; i < started; i++)
		kthread_stop(threads[i]);
	return err;
}
module_init(race_init);

static void __exit race_exit(void)
{
}
module_exit(race_exit);

MODULE_DESCRIPTION("Races with itself, to be found");
MODULE_LICENSE("GPL");
