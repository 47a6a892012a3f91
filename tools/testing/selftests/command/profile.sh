#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# rhist profile: every tick of a run is accounted for; shares of a load are shares of samples; the
# frequency is changed for a run, and then back, however the run ends; --children has the tasks that
# a process starts later, and no others.

. "$(dirname "$0")/../lib/tracing.sh"

cd "$TRACING" || exit 1
frequency=events/rhist/sample/frequency
shown=$work/errors
# A debug kernel takes long for each interrupt.
fast=499
[ -z "$SLOW" ] || fast=49

# profile ARGUMENT…: runs it, with JSON in $work/out
profile() { "$RHIST_COMMAND" profile --format json "$@" >"$work/out" 2>"$work/errors"; }

# begun: true if a run lets hits into its histogram
begun()
{
	for instance in instances/rhist-*; do
		grep -qs '^[^#]' "$instance/events/rhist/sample/trigger" || continue
		! grep -qx 1073741823 "$instance/set_event_pid" || grep -qx "$parent" "$instance/set_event_pid" || continue
		return 0
	done
	return 1
}

# total EXPRESSION: of the last line of JSON; `row` is by the first key
total()
{
	tail -n 1 "$work/out" | python3 -c '
import json, sys
line = json.load(sys.stdin)
ticks = line["samples"]
row = {str(row["keys"][0]): row["hits"] for row in line["rows"]}
hits = sum(row.values())
rest = sum(ticks[name] for name in ("samples", "filtered", "lost", "late", "off", "others")) - ticks["ticks"]
exact = ticks["adds_up"] and -ticks["fewer"] <= rest <= ticks["more"]
print(eval(sys.argv[1]))' "$1"
}

# killed: kills the run
killed()
{
	kill -KILL $run
	wait $run 2>/dev/null
}

# sampled HERTZ: begins a run at this frequency
sampled()
{
	"$RHIST_COMMAND" profile -d 60 -F "$1" >/dev/null 2>&1 &
	run=$!
	soon begun
}

cp "$(command -v sh)" "$work/busy_a"
"$work/busy_a" -c 'while :; do :; done' &
a=$! parent=none

# --- every tick

profile -d 2 -F $fast --by comm
is $? 0 "profile runs"
is "$(total exact)" True "each tick is accounted for: $(total ticks)"
is "$(total 'ticks["frequency"]')" $fast "at the frequency that was asked for"
least=$(($(nproc) * fast * 2 * 9 / 10))
yes "there are as many as the clock has" test "$(total 'ticks["ticks"]')" -ge $least
is "$(total '0 <= hits - ticks["samples"] <= max(20, ticks["ticks"] // 4)')" True \
	"its rows have hardly more: $(total 'hits - ticks["samples"]')"
yes "the busy task has samples" test "$(total 'row["busy_a"]')" -gt 0
is "$(total '"rhist" in row')" False "rhist has none"
is "$(cat $frequency)" 99 "the frequency is what it was"
profile -d 2 -i 1 --by mode
is "$? $(wc -l <"$work/out")" "0 3" "intervals, and a total"
is "$(total exact)" True "whose ticks add up: $(total ticks)"
"$RHIST_COMMAND" profile -d 1 >"$work/out" 2>"$work/errors"
yes "people see the ticks" grep -q '^ticks:  *[0-9,]* ticks at 99 Hz = [0-9,]* counted' "$work/out"
no "and no doubt" grep -q 'add up' "$work/out"
"$RHIST_COMMAND" profile -d 1 --by comm,pid,stack >"$work/out" 2>&1
is $? 0 "by task and stack"
no "in a histogram that grows" grep -q 'fixed size' "$work/out"

# Another program clears the histogram.
"$RHIST_COMMAND" profile >"$work/out" 2>"$work/errors" &
run=$!
yes "a run has begun" soon begun
sleep 1
trigger=$(echo instances/rhist-*/events/rhist/sample/trigger)
grep -v '^#' "$trigger" | sed 's/ \[active\]$//; s/ if /:clear&/' >"$work/clear"
cat "$work/clear" >>"$trigger"
kill -INT $run
wait $run
yes "a total that does not add up says so" grep -q 'add up' "$work/out"

# --- shares

"$RHIST_COMMAND" profile -F $fast -c 'share_*' --by comm --format json >"$work/out" 2>"$work/errors" &
run=$!
yes "another run has begun" soon begun
"$OUT/shares" 5 share_a=50 share_b=30 share_c=20 >"$work/spent"
kill -INT $run
wait $run
spent=$(sed 's/\(.*\) \(.*\)/"\1": \2,/' "$work/spent" | tr -d '\n')
is "$(total "all(abs(row[name] - hits * part) <= 4 * (hits * part * (1 - part)) ** 0.5
	for spent in ({$spent},) for name in spent for part in (spent[name] / sum(spent.values()),))")" True \
	"shares of a load's time are shares of samples: $(total row) of $spent"

# --- the frequency

echo 77 >$frequency
sampled $fast
ok $? "a run at this frequency has begun"
is "$(cat $frequency)" $fast "which all can read"
"$RHIST_COMMAND" profile -d 1 -F 33 >"$work/out" 2>"$work/errors"
is $? 2 "another run cannot have another one"
yes "and is told of the first" grep -q "at present $fast Hz for rhist ($run): leave out --frequency" "$work/errors"
profile -d 1
is "$? $(total 'ticks["frequency"]')" "0 $fast" "but can have the same"

killed
is "$(cat $frequency)" $fast "a run that is killed leaves its frequency"
"$RHIST_COMMAND" count sched:sched_switch -d 0.1 >/dev/null 2>&1
is "$(cat $frequency)" 77 "which the next one sets to what it was"
for next in $fast 33; do
	sampled $fast
	killed
	profile -d 1 -F $next
	is "$? $(total 'ticks["frequency"]') $(cat $frequency)" "0 $next 77" "also the next one at $next Hz"
done
sampled $fast
killed
"$RHIST_COMMAND" count sched:sched_switch --backend c -d 0.1 >/dev/null 2>&1
is "$(cat $frequency)" 77 "or the next one with C's histograms"

# The last one of several changes it back, whether it asked for it or not.
for option in "-F $fast" ''; do
	sampled $fast
	first=$run
	"$RHIST_COMMAND" profile -d 60 $option >/dev/null 2>&1 &
	run=$!
	two() { [ "$(grep -sl begun /run/rhist/*_*.journal | wc -l)" -ge 2 ] && begun; }
	soon two
	sleep 1
	kill -INT $first
	wait $first
	is "$(cat $frequency)" $fast "the first of two runs ends: the second one goes on"
	kill -INT $run
	wait $run
	is "$(cat $frequency)" 77 "and changes it back${option:+, as the first}"
done
profile -d 1
is "$? $(total 'ticks["frequency"]')" "0 77" "without an option, the frequency is the machine's"
echo 99 >$frequency

# --- tasks that are started later

mkfifo "$work/go"
cp "$(command -v sh)" "$work/parent"
cp "$(command -v sh)" "$work/child"
"$work/parent" -c 'read word <"$1"; "$2" -c "while :; do :; done" & wait' parent "$work/go" "$work/child" &
parent=$!
for option in '' --children; do
	"$RHIST_COMMAND" profile -d 60 -p $parent $option --by comm --format json >"$work/out" 2>"$work/errors" &
	run=$!
	yes "profile -p PID $option has begun" soon begun
	[ ! "$option" ] || echo go >"$work/go"
	sleep 2
	kill -INT $run
	wait $run
	[ "$option" ] || is "$(total hits)" 0 "a task that waits has no samples"
done
yes "the task that it started has" test "$(total 'row.get("child", 0)')" -gt 0
is "$(total '"busy_a" in row')" False "other tasks have none"
is "$(total 'ticks["adds_up"] and ticks["others"] > 0')" True "their ticks are told: $(total ticks)"
pkill -f "$work/child"
sh -c 'while :; do /bin/true; done' &
forks=$!
"$RHIST_COMMAND" syscount -d 3 -i 1 -p $forks --children >"$work/out" 2>"$work/errors"
kill $forks
no "intervals of tasks that come and go are their total" grep 'sum of the intervals' "$work/errors"
yes "with their system calls" grep -q '^execve ' "$work/out"
kill $a $parent 2>/dev/null

# --- by cycles

events=/sys/module/rhist_events
source=events/rhist/sample/source
insmod "$RHIST_EVENTS" counters=1 2>/dev/null
# On a kernel without such counters, the module lacks this parameter, and is loaded all the same.
if [ -e $events/parameters/counters ] && echo cycles >$source; then
	"$RHIST_COMMAND" profile -d 1 >"$work/out" 2>&1
	yes "people are told that samples are by cycles" grep -q 'by counters of cycles' "$work/out"
	"$RHIST_COMMAND" profile -d 1 -F 99 >"$work/out" 2>"$work/errors"
	is "$? $(grep -c "echo clock > $source" "$work/errors")" "2 1" "which have no frequency"
	echo clock >$source
else
	skip "samples by cycles" "no counter"
	skip "which have no frequency" "no counter"
fi
[ ! -e $events ] || rmmod rhist_events

for words in 'runqlat -F 9' 'count sched:sched_switch -F 9' 'profile --children' 'runqlat --children -p 1' \
	'wqlat --children -p 1' 'timerlag --children -p 1' \
	'count sched:sched_switch --children -p 1' 'profile -F 0' 'profile -F 10001'; do
	"$RHIST_COMMAND" $words -d 1 >"$work/out" 2>"$work/errors"
	is $? 2 "refused: rhist $words"
done
is "$(ls instances | grep -c ^rhist-)" 0 "nothing is left"

finish
