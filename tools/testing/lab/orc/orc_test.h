/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ORC_TEST_H
#define ORC_TEST_H

void orc_test_walk(const void *function);

#endif
