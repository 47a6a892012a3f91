#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Losses of rhist, and of other tools that print and clear their counts, with the same load.
exec python3 -B "$(dirname "$0")/losses.py"
