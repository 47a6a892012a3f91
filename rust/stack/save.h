/* SPDX-License-Identifier: GPL-2.0 */
/* The definition of each function states its calling context. */
#ifndef RHIST_SAVE_H
#define RHIST_SAVE_H

struct rhist_frame;

unsigned int rhist_stack_save(const struct rhist_frame *frame, unsigned long *entries, unsigned int n);

#endif
