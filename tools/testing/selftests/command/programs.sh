#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Stacks of programs with the names of their functions, in recipes.
exec python3 -B "$(dirname "$0")/programs.py"
