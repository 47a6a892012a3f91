#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Scenes of triggers with mistakes in them, under load, for some seconds, fewer if user-mode Linux does
# it, too; with LONG, for ten minutes.

seconds=20
[ ! "$RHIST_REST" ] || [ "$SLOW" ] || seconds=5
[ ! "$LONG" ] || seconds=600
exec "$OUT/scenarios" --fuzz $seconds
