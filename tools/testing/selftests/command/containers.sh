#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Counts by control groups, containers and units, and of one of these only.
exec python3 -B "$(dirname "$0")/containers.py"
