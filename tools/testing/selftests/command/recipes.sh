#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Counts of recipes for loads of known shape, on rhist and on C at once.
exec python3 -B "$(dirname "$0")/recipes.py"
