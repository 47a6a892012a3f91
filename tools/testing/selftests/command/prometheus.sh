#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Prometheus scrapes rhist serve: its quantiles, the recording rules and the dashboard of the
# package.
exec python3 -B "$(dirname "$0")/prometheus.py"
