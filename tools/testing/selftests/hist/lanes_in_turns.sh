#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The test lanes, in a guest with more CPUs than a machine of the lab can run at once.
exec "$OUT/lanes"
