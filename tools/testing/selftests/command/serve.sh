#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# rhist serve: scrapes equal the kernel's counts, whatever happens meanwhile.
exec python3 -B "$(dirname "$0")/serve.py"
