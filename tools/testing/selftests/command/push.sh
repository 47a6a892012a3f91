#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What is pushed is what the kernel has counted.
exec python3 -B "$(dirname "$0")/push.py"
