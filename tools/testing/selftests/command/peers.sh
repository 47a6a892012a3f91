#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Recipes beside the tools of bcc that answer the same question, with the same loads at the same
# time.
exec python3 -B "$(dirname "$0")/peers.py"
