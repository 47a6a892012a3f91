#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# rhist serve, scraped and pushing, while all that can go wrong does so at once.
exec python3 -B "$(dirname "$0")/everything.py"
