#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The clock global: read without a lock where the kernel's clock is one for all processors, and only
# there. Then no time that a processor reads is before one that another processor has read.
. "$(dirname "$0")/../lib/tracing.sh"

cd "$TRACING" || exit 1
waking=events/sched/sched_waking switch=events/sched/sched_switch

# The kernel's verdict on its clock: see kernel/sched/debug.c and kernel/sched/clock.c.
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
stable=$(sed -n 's/^sched_clock_stable() *: *//p' /sys/kernel/debug/sched/debug 2>/dev/null)
unstable=$(dmesg | grep -c 'Marking TSC unstable')
echo "# $(nproc) processors, stable: $stable, marked as unstable: $unstable, $(grep ^clock hist_stats)"
case $stable$unstable in
10) expected=without ;;
*) expected=with ;;
esac
is "$(grep ^clock hist_stats)" "clock: global, $expected a lock" "the lock is left out where the kernel's clock is one"

# A task on each processor, woken up from any: latency from the wake-up on one processor to running
# on another.
echo 'hist:keys=pid:ts0=common_timestamp if comm == "rhist_woken"' >$waking/trigger
echo 'hist:keys=next_pid:vals=(common_timestamp-$ts0).dist if next_comm == "rhist_woken"' >$switch/trigger
cp "$OUT/fire" "$work/rhist_woken"
tasks=$(nproc)
cpu=0
while [ $cpu -lt "$tasks" ]; do
	mkfifo "$work/to$cpu" "$work/from$cpu"
	"$work/rhist_woken" -c $cpu -i <"$work/to$cpu" >"$work/from$cpu" &
	cpu=$((cpu + 1))
done
# say CPU FILE: makes the task of a processor answer, again and again
say()
{
	exec 7>"$work/to$1" 8<"$work/from$1"
	calls=0
	while [ $((calls += 1)) -le 500 ]; do
		echo "getpgid 1" >&7
		read -r said <&8
		[ -z "$said" ] || return 1
	done
}
cpu=0
others=
while [ $cpu -lt "$tasks" ]; do
	(say $cpu) &
	others="$others $!"
	cpu=$((cpu + 1))
done
failed=0
for other in $others; do
	wait "$other" || failed=1
done
ok $failed "each task is woken up"
entries $switch/hist >"$work/entries"
sed 's/^/# /' "$work/entries" | head -n 8
is "$(grep -c . "$work/entries")" "$tasks" "there are latencies of each"
[ "$(total Hits $switch/hist)" -ge "$((tasks * 250))" ]
ok $? "and enough of them"
is "$(grep -c 'min: *-' "$work/entries")" 0 "none is negative"
: >$switch/trigger
: >$waking/trigger
finish
