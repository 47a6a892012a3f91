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
	for keys in stack.stacktrace,k stack.stacktrace,k:vals=k:sort=k:size=256 \
		$(shown_on_um || echo k,stack.stacktrace:sort=k.descending stack.stacktrace,k.log2 \
			stack.stacktrace,common_type:sort=hitcount.descending stack.stacktrace,k:size=128); do
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

if shown_on_um; then
	rmmod rhist_events
	finish
	exit
fi

# One that grows: no key and no stack is lost, although each hit brings both, and they are the same
# as in one that has the places at first.
echo 'hist:keys=k,stack.stacktrace:size=128..16384' >events/$EVENT/trigger
echo 'hist:keys=stack.stacktrace,k:size=8192' >>events/$EVENT/trigger
for first in $(seq 0 100 4400); do
	stacks $first 100 100
	for _ in $(seq 100); do
		ahead=$(sed -n "s/^rhist_events:stacks  *hist 1: .* places, \([0-9]*\) ahead,.*/\1/p" "$TRACING/hist_stats")
		[ "${ahead:-0}" -lt 200 ] || break
		sleep 0.02
	done
done
kinds=$(stored | sed -n 's/^2: \([0-9]*\) stacks, 0 .*/\1/p')
is "$(stored)" "1: $kinds stacks, 0 hits without stack
2: $kinds stacks, 0 hits without stack" "stacks of a histogram that grows"
yes "which are $kinds: their map has grown twice" [ "$kinds" -gt 512 ]
for nth in 1 2; do
	awk -v nth=$nth '/^# event histogram/ { hist++ } hist == nth' events/$EVENT/hist >"$work/grown.$nth"
done
is "$(total Entries "$work/grown.1") $(total Dropped "$work/grown.1")" "4500 0" "and its keys"
for nth in 1 2; do grep -c '+0x.* .rhist_events.$' "$work/grown.$nth"; done >"$work/words"
is "$(uniq "$work/words" | grep -c .)" 1 "with all words"
remove_triggers events/$EVENT

# One that forgets: stacks go with the last entry that has them, while others come, and entries are
# read. Each key has the stack that it has in a histogram that keeps all.
pairs() { # pairs PATTERN REPLACEMENT: prints each number with its stack, in the histogram whose keys are so
	sed -nE "s/.*\"keys\":\\[$1\\],\"values.*/$2/p" "$work/jsonl" | sort -u
}
number='([0-9]+)' words='(\{"stack":.*\})'
mkdir instances/rhist_i
echo 'hist:keys=k,stack.stacktrace:size=8192' >instances/rhist_i/events/$EVENT/trigger
echo 'hist:keys=stack.stacktrace,k:size=128..256:full(recycle):expire(1s)' >events/$EVENT/trigger
: >"$work/seen"
for first in $(seq 0 30 1200); do
	stacks $first 30 30 &
	cat events/$EVENT/hist_jsonl >"$work/jsonl"
	pairs "$words,$number" '\2 \1' >>"$work/seen"
	wait
	sleep 0.1
done
cat instances/rhist_i/events/$EVENT/hist_jsonl >"$work/jsonl"
pairs "$number,$words" '\1 \2' >"$work/all"
: >instances/rhist_i/events/$EVENT/trigger
rmdir instances/rhist_i
sort -u "$work/seen" >"$work/sorted"
is "$(comm -13 "$work/all" "$work/sorted" | head -n 4)" "" "each key has its stack, while stacks come and go"
is "$(grep -c . "$work/all")" 1230 "of all that came"
yes "$(grep -c . "$work/sorted") of them were read while they were there" [ "$(grep -c . "$work/sorted")" -gt 300 ]
dropped=$(total Dropped events/$EVENT/hist) without=$(stored | sed 's/.*, \([0-9]*\) hits without stack/\1/')
is $(($(total Hits events/$EVENT/hist) + dropped)) 1230 "hits and drops, which are $dropped, are the events"
yes "$without for want of a stack are among these" [ "$without" -le "$dropped" ]
for _ in $(seq 100); do
	stored | grep -q '^1: 0 stacks' && break
	sleep 0.1
done
is "$(stored)" "1: 0 stacks, $without hits without stack" "no stack is left without entries"
remove_triggers events/$EVENT
rmmod rhist_events

finish
