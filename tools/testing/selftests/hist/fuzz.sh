#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Scenes of triggers with mistakes in them, under load, for some seconds, fewer if user-mode Linux
# does it, too; with LONG, for ten minutes.

. "$(dirname "$0")/../lib/tracing.sh"

seconds=20
! rest_only || [ "$SLOW" ] || seconds=5
[ ! "$LONG" ] || seconds=600
"$OUT/scenarios" --fuzz $seconds
