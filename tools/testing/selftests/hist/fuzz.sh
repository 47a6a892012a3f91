#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Scenes of triggers with mistakes in them, under load, for some seconds; with LONG, for ten minutes.
exec "$OUT/scenarios" --fuzz "$([ "$LONG" ] && echo 600 || echo 20)"
