#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Intervals of rhist are exact, and add up to the total.
exec python3 -B "$(dirname "$0")/intervals.py"
