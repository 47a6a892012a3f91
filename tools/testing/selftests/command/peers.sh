#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What recipes say beside the tools of bcc that answer the same question, of the same loads at the
# same time.
exec python3 -B "$(dirname "$0")/peers.py"
