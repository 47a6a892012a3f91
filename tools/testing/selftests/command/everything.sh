#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# rhist serve, scraped and pushing, under all kinds of failures at once.
exec python3 -B "$(dirname "$0")/everything.py"
