#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# rhist serve: what is scraped is what the kernel has counted, whatever happens meanwhile.
exec python3 -B "$(dirname "$0")/serve.py"
