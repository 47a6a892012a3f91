#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Histograms of rhist grow, and keys without an entry are counted together.
exec python3 -B "$(dirname "$0")/room.py"
