#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Stacks as keys beside others: rhist shows the same as C, and stores equal ones once.

. "$(dirname "$0")/../lib/tracing.sh"

EVENT=rhist_events/stacks
cd "$TRACING/events" || exit 1
yes "the events are there" insmod "$RHIST_EVENTS"

# stacks FIRST COUNT KINDS: fires COUNT events with as many kinds of stacks in turn
stacks() { taskset 1 sh -c "echo 'stacks task 0 $*' >/dev/rhist_events"; }

# scene KEYS
scene()
{
	echo "hist:keys=$1" >>$EVENT/trigger
	stacks 0 40 15
	stacks 3 500 40
	cat $EVENT/trigger $EVENT/hist
	echo "hist:keys=$1:pause" >>$EVENT/trigger
	stacks 0 10 10
	echo "hist:keys=$1:cont" >>$EVENT/trigger
	stacks 100 300 300
	cat $EVENT/trigger $EVENT/hist
	echo "hist:keys=$1:clear" >>$EVENT/trigger
	cat $EVENT/trigger $EVENT/hist
	stacks 0 700 10
	cat $EVENT/trigger $EVENT/hist
	remove_triggers $EVENT
}

if [ "$TRACING" != "$KERNEL" ] && have_c; then
	for keys in stack.stacktrace,k k,stack.stacktrace:sort=k.descending stack.stacktrace,k.log2 \
		stack.stacktrace,common_type:sort=hitcount.descending stack.stacktrace,k:size=128 \
		stack.stacktrace,k:vals=k:sort=k:size=256; do
		(cd "$KERNEL/events" && scene $keys) >"$work/kernel" 2>&1
		scene $keys >"$work/rhist" 2>&1
		yes "$keys: the kernel's own triggers play the scene" grep -q 'hitcount: ' "$work/kernel"
		same "$work/rhist" "$keys: to the byte" <"$work/kernel"
	done
fi

if [ "$TRACING" = "$KERNEL" ]; then
	skip "how stacks are stored" "this is not rhist"
	rmmod rhist_events
	finish
	exit
fi

# stored: prints what hist_stats tells about the stacks of the event's histograms
stored() { sed -n "s/^rhist_events:stacks  *hist \([0-9]*: [0-9]* stacks, .*\)/\1/p" "$TRACING/hist_stats"; }

echo 'hist:keys=k,stack.stacktrace' >$EVENT/trigger
stacks 1 12 12
stacks 1 12 12
is "$(stored)" "1: 12 stacks, 0 hits without stack" "each stack is stored once"
echo 'hist:keys=stack.stacktrace,common_stacktrace:size=128' >>$EVENT/trigger
stacks 1 12 12
is "$(stored)" "1: 12 stacks, 0 hits without stack
2: 13 stacks, 0 hits without stack" "two in each key, too"
is "$(entries $EVENT/hist | grep -c .)" 24 "with an entry for each key"
cd "$TRACING" || exit 1
remove_triggers events/$EVENT
is "$(stored)" "" "they go with the histogram"

# Full: as many stacks as entries have, and no hit is lost uncounted.
echo 'hist:keys=k,stack.stacktrace:size=128' >events/$EVENT/trigger
stacks 0 3000 1000
is "$(total Entries events/$EVENT/hist)" 128 "a full histogram"
is $(($(total Hits events/$EVENT/hist) + $(total Dropped events/$EVENT/hist))) 3000 "hits and drops are the events"
remove_triggers events/$EVENT
echo 'hist:keys=k,stack.stacktrace:size=128:full(other)' >events/$EVENT/trigger
stacks 0 3000 1000
is "$(total Hits events/$EVENT/hist) $(total Dropped events/$EVENT/hist)" "3000 0" "with full(other) all hits count"
remove_triggers events/$EVENT

# Intervals, JSON and a shared histogram show the words.
echo 'hist:keys=k,stack.stacktrace:name=rhist_i' >events/$EVENT/trigger
mkdir instances/rhist_i
echo 'hist:keys=k,stack.stacktrace:name=rhist_i' >instances/rhist_i/events/$EVENT/trigger
(
	exec 3<events/$EVENT/hist_delta
	stacks 5 30 3
	cat <&3 >"$work/delta"
	stacks 6 3 1
	cat <&3 >"$work/next"
)
is "$(total Hits "$work/delta") $(total Hits "$work/next")" "60 6" "intervals of a histogram that instances share"
is "$(grep -c '+0x.* .rhist_events.$' "$work/next")" 6 "with the words of the stack"
is "$(grep -o '"stack":\[[^]]*\]' events/$EVENT/hist_jsonl | sort | uniq -c | wc -l)" 3 "JSON, too"
: >instances/rhist_i/events/$EVENT/trigger
rmdir instances/rhist_i
remove_triggers events/$EVENT

# In interrupts of every kind, on all CPUs, while entries are read.
echo 'hist:keys=stack.stacktrace,k' >events/$EVENT/trigger
for context in softirq hardirq nmi; do
	echo "stacks $context 0 0 2000 100" >/dev/rhist_events &
done 2>/dev/null
for _ in 1 2 3 4 5; do cat events/$EVENT/hist >/dev/null; done
stacks 0 2000 100
wait
hits=$(total Hits events/$EVENT/hist)
is "$((hits % 2000)) $(total Entries events/$EVENT/hist) $(total Dropped events/$EVENT/hist)" "0 100 0" "in interrupts: $hits hits"
is "$(entries events/$EVENT/hist | grep -c .)" 100 "each key once"
# Six of them, from 0 to 85, are empty.
is "$(stored)" "1: 95 stacks, 0 hits without stack" "and each stack"
remove_triggers events/$EVENT
rmmod rhist_events

finish
