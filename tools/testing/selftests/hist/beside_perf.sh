#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# rhist:sample and `perf record -F` at the same time, of a load with known shares: both have as many
# samples, and these shares.

. "$(dirname "$0")/../lib/tracing.sh"
. "$(dirname "$0")/../lib/shares.sh"

cd "$TRACING" || exit 1
sample=events/rhist/sample
perf=$RHIST_CLIENTS/usr/bin/perf
if [ ! -x "$perf" ]; then
	skip "perf" "it is not in the lab: scripts/lab clients"
	finish
fi
export LD_LIBRARY_PATH="$RHIST_CLIENTS/usr/lib/x86_64-linux-gnu"

seconds=4
[ -z "$LONG" ] || seconds=60

# both: true if the samples of both have the shares of the load
both()
{
	echo 'hist:keys=comm if comm ~ "share_*"' >$sample/trigger
	"$perf" record -q -F 499 -e cpu-clock -o "$work/data" "$OUT/shares" $seconds $LOAD \
		>"$work/spent" 2>"$work/said" || return 1
	samples $sample/hist >"$work/ours"
	: >$sample/trigger
	"$perf" script -i "$work/data" -F comm 2>>"$work/said" |
		awk '/^ *share_/ { n[$1]++ } END { for (name in n) print name, n[name] }' >"$work/theirs"
	fit rhist "$work/spent" "$work/ours"
	ours=$?
	fit perf "$work/spent" "$work/theirs" || return 1
	# The interrupt of one may make the other's late: then it has fewer samples.
	awk 'FNR == NR { ours += $2; next } { theirs += $2 }
		END { print "#", ours, "and", theirs, "samples"; exit !(ours > 0.9 * theirs && theirs > 0.9 * ours) }' \
		"$work/ours" "$work/theirs" && return $ours
}

echo 499 >$sample/frequency
both || both
ok $? "both have the shares of the time, and as many samples" || sed 's/^/# /' "$work/said"
: >$sample/trigger
echo 99 >$sample/frequency
finish
