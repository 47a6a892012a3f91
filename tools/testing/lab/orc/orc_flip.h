/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A module whose twin has frames of other sizes at the same addresses: there, rules of one are
 * wrong for the other. SIZE is roughly the size of its frames.
 */
#include <linux/init.h>
#include <linux/module.h>

#include "orc_test.h"

static noinline int middle(int n)
{
	volatile char buffer[SIZE];

	buffer[n] = 1;
	orc_test_walk(middle);
	return buffer[n];
}

/* This is freed when the module is initialized, and later code may get its place. */
static noinline __init int of_init(int n)
{
	volatile char buffer[2 * SIZE];

	buffer[n] = 1;
	orc_test_walk(NULL);
	return buffer[n] - middle(n);
}

static int __init flip_init(void)
{
	return of_init(3);
}
module_init(flip_init);

static void __exit flip_exit(void)
{
}
module_exit(flip_exit);

MODULE_DESCRIPTION("Has frames of other sizes than its twin");
MODULE_LICENSE("GPL");
