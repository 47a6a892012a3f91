#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Stacks of programs by the rules that the command writes, compared with gdb's.
exec python3 -B "$(dirname "$0")/unwind.py"
