#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# rhist:sample: each tick of the clock is a sample, or filtered, lost, late or off, to the tick. The
# samples are right: shares of a load, stacks, modes. Nothing runs while no histogram is attached.

. "$(dirname "$0")/../lib/tracing.sh"
. "$(dirname "$0")/../lib/shares.sh"

cd "$TRACING" || exit 1
sample=events/rhist/sample
shown="$work/stats $work/differences"
user_mode=1 # user-mode Linux takes all its samples in the kernel
have_probes || user_mode=

# A debug kernel takes long for each interrupt.
turns=20 seconds=2 slowest=99 rate=499 fast=997 faster=1999
! have_probes || turns=8
[ -z "$SLOW" ] || turns=4 slowest=9 rate=49 fast=79 faster=99
[ -z "$LONG" ] || turns=400 seconds=60

# stats: prints the lines of hist_stats about samples
stats() { sed -n 's/^rhist:sample  *//p' hist_stats | tee "$work/stats"; }

# exact: true if the ticks are the sum of what became of them, for the first histogram. If a tick
# came during each try of hist_stats, the sum may have these, too. Waits for the first tick.
exact()
{
	for _ in $(seq 100); do
		adds_up
		status=$?
		[ $status -eq 2 ] || return $status
	done
	return 1
}

# adds_up: the same, without waiting: 2 before the first tick
adds_up()
{
	stats | awk '
		/ ticks, / {
			for (i = 2; i <= NF; i++)
				n[$i] = $(i - 1)
			rest = n["ticks,"] - n["late,"] - n["off"] - n["off,"]
		}
		/^hist 1: .* samples, / && ($3 + $5 + $7 < rest || $3 + $5 + $7 > rest + n["more"]) { wrong++ }
		/^hist 1: .* samples, / { seen++ }
		END { exit !seen || wrong ? 1 : rest ? 0 : 2 }'
}

# ticks WHICH: prints the number of ticks, late or off
ticks() { stats | sed -n "s/.* \([0-9]*\) $1.*/\1/p"; }

# uptime: prints the time in 1/100 seconds
uptime() { sed 's/\([0-9]*\)\.\([0-9]*\) .*/\1\2/' /proc/uptime; }

# work SECONDS: a task for each processor does something for this time, in the kernel and out of it
work()
{
	end=$(($(uptime) + $1 * 100))
	for cpu in $(seq "$(nproc)"); do
		(while [ "$(uptime)" -lt $end ]; do
			dd if=/dev/zero of=/dev/null bs=64k count=200
		done 2>/dev/null) &
	done
	wait
}

# detach: removes the histograms
detach() { : >$sample/trigger; }

# --- the file frequency

is "$(find events -name frequency)" "$sample/frequency" "one event has the file frequency"
is "$(cat $sample/frequency)" 99 "99 samples a second by default"
failed=
for text in 0 10001 -1 99x '' 0x100000063; do
	sh -c "echo '$text' >$sample/frequency" 2>/dev/null && failed="$failed '$text'"
done
is "$failed" "" "numbers that are too low or too high, and other texts, are refused"
is "$(cat $sample/frequency)" 99 "and change nothing"
stats >/dev/null
is "$(cat "$work/stats")" "" "hist_stats says nothing of samples before there are any"

# --- every tick is accounted for

wrong=0 all=0 settled=0
for turn in $(seq $turns); do
	echo $((turn * 97 % (faster - slowest) + slowest)) >$sample/frequency
	first='hist:keys=mode,comm if pid > 0' second='hist:keys=common_stacktrace,cpu:size=128'
	[ $((turn % 2)) -ne 0 ] || { first=$second second='hist:keys=ip if mode == "kernel"'; }
	echo "$first" >$sample/trigger
	echo "$second" >>$sample/trigger
	for read in 1 2 3 4 5; do
		ls /proc >/dev/null 2>&1
		exact || wrong=$((wrong + 1))
		grep -q meanwhile "$work/stats" || settled=$((settled + 1))
	done
	all=$((all + $(ticks ticks)))
	detach
done
[ $all -gt $turns ]
ok $? "there are ticks"
is $wrong 0 "samples, filtered, lost, late and off are the ticks, each time ($all ticks, $turns times)"
echo 9 >$sample/frequency
echo 'hist:keys=pid' >$sample/trigger
for read in 1 2 3 4 5 6 7 8 9; do
	exact && ! grep -q meanwhile "$work/stats" && settled=$((settled + 1))
done
detach
[ $settled -gt 0 ]
ok $? "of one moment, where no tick came meanwhile ($settled of $((turns * 5 + 9)) times)"

echo $rate >$sample/frequency
echo 'hist:keys=pid' >$sample/trigger
before=$(uptime) from=$(ticks ticks) began=$(uptime)
sleep 2
ended=$(uptime) to=$(ticks ticks) after=$(uptime)
least=$(((ended - began) * rate / 100 * $(nproc) * 95 / 100))
most=$(((after - before) * rate / 100 * $(nproc) * 105 / 100))
echo "# $((to - from)) ticks, $least to $most by the clock, on $(nproc) processors"
[ $((to - from)) -ge $least ] && [ $((to - from)) -le $most ]
ok $? "ticks come at the rate that the file says, on each processor"

# --- one rate

sh -c "echo 500 >$sample/frequency" 2>/dev/null
[ $? -ne 0 ] && [ "$(cat $sample/frequency)" = $rate ]
ok $? "another rate is refused while there is a histogram"
echo $rate >$sample/frequency
ok $? "the same one is not"
mkdir instances/sample
sh -c "echo 500 >instances/sample/$sample/frequency" 2>/dev/null
[ $? -ne 0 ] && [ "$(cat instances/sample/$sample/frequency)" = $rate ]
ok $? "nor does an instance have another one"
stats | grep -q "^$rate Hz for ${0##*/} ($$), "
ok $? "hist_stats says who has begun"
detach

# Another program keeps changing the rate while histograms come and go.
(while :; do
	for other in 49 $fast $faster; do
		echo $other >$sample/frequency
	done
done 2>/dev/null) &
changer=$!
wrong=0 rates= turn=0
several() { [ "$(for one in $rates; do echo "$one"; done | sort -u | grep -c .)" -gt 1 ]; }
while [ $((turn += 1)) -le $turns ] || { ! several && [ $turn -lt 200 ]; }; do
	echo 'hist:keys=comm if mode != "idle"' >$sample/trigger
	ls /proc >/dev/null 2>&1
	exact || wrong=$((wrong + 1))
	rates="$rates $(stats | sed -n 's/ Hz .*//p')"
	detach
done
kill $changer
wait $changer 2>/dev/null
is $wrong 0 "the ticks are exact while another program keeps changing the rate"
several
ok $? "which has changed it"

# --- the fields of a sample

echo $fast >$sample/frequency
echo 'hist:keys=mode,comm,pid,tgid,common_pid,cpu,common_cpu:size=1024' >$sample/trigger
echo 'hist:keys=ip.sym-offset,mode,common_stacktrace:size=4096' >>$sample/trigger
work $seconds
sleep 1
sed -n '/^{ mode/p' $sample/hist >"$work/modes"
sed -n '/^{ ip/,/^Totals/p' $sample/hist >"$work/stacks"
detach
sed 's/^/# /' "$work/modes" | tail -n 6
grep -q 'mode: idle .*comm: swapper/.*pid: *0,' "$work/modes"
ok $? "an idle processor is a sample of mode idle, pid 0"
grep 'mode: idle' "$work/modes" | grep -qv 'pid: *0,'
is $? 1 "and of no other task"
awk '{ gsub(/[{},:]/, ""); for (i = 1; i < NF; i++) v[$i] = $(i + 1)
	if (v["pid"] != v["common_pid"] || v["cpu"] != v["common_cpu"]) exit 1 }' "$work/modes"
ok $? "pid and cpu are those of the sample"
if [ "$user_mode" ]; then
	grep -q 'mode: user .*comm: ' "$work/modes"
	ok $? "a program is a sample of mode user"
else
	skip "a program is a sample of mode user" "user-mode Linux"
fi

# In mode user, the stack is empty.
awk '
	/^[{] ip:/ { ip = $4; mode = $0; sub(/.*mode: /, "", mode); sub(/ .*/, "", mode); first = ""; next }
	/^  *[^ ]/ && first == "" { first = $1; next }
	/ hitcount:/ {
		if (mode == "user" && (first != "" || ip != "0x0")) wrong++
		if (mode != "user" && first != "" && first != ip) { wrong++; print ip, first }
		if (mode != "user" && first != "") same++
	}
	END { print same + 0, "begin there,", wrong + 0, "do not"; exit !(same > 2 && !wrong) }
' "$work/stacks" >"$work/differences"
ok $? "the stack of a sample begins in the interrupted function"
tail -n 1 "$work/differences" | sed 's/^/# /'

# shares SECONDS: true if a load of 50, 30 and 20 % has these shares of samples
shares()
{
	echo 'hist:keys=comm if comm ~ "share_*"' >$sample/trigger
	"$OUT/shares" "$1" $LOAD >"$work/spent"
	samples $sample/hist >"$work/hits"
	detach
	fit rhist "$work/spent" "$work/hits"
}
echo $fast >$sample/frequency
shares $((seconds * 3)) || shares $((seconds * 3))
ok $? "shares of a load are shares of samples"

# --- off costs nothing

# one_each: true if each processor has one timer. One that is started anew while timer_list is read
# may be there twice.
one_each()
{
	for _ in 1 2 3 4 5; do
		timers=$(grep -c 'rhist_sample_tick' /proc/timer_list)
		[ "$timers" != "$(nproc)" ] || return 0
	done
	echo "# $timers timers"
	return 1
}

echo 1 >$sample/frequency
if [ -e /proc/timer_list ]; then
	grep -q rhist_sample_tick /proc/timer_list
	is $? 1 "no timer without a histogram"
	echo 'hist:keys=pid' >$sample/trigger
	yes "one on each processor with one" one_each
	echo 'hist:keys=pid' >instances/sample/$sample/trigger
	detach
	yes "also while only an instance has one" one_each
	: >instances/sample/$sample/trigger
	grep -q rhist_sample_tick /proc/timer_list
	is $? 1 "none behind the last one"
else
	skip "no timer without a histogram" "no /proc/timer_list"
fi
rmdir instances/sample

if [ -e "$KERNEL/$sample/id" ]; then
	"$OUT/shares" --open "$(cat "$KERNEL/$sample/id")" >"$work/opened"
	is "$(sed 's/EACCES/EOPNOTSUPP/' "$work/opened" | uniq -c | sed 's/  *//')" "2 EOPNOTSUPP" \
		"perf cannot open the event, neither as root nor as anybody else"
else
	skip "perf cannot open the event" "no perf events"
fi

# --- processors that come and go

other=/sys/devices/system/cpu/cpu1/online
if [ -w $other ]; then
	echo $faster >$sample/frequency
	echo 'hist:keys=cpu' >$sample/trigger
	wrong=0
	for turn in $(seq $((turns / 2))); do
		echo 0 >$other
		exact || wrong=$((wrong + 1))
		[ $((turn % 3)) -ne 0 ] || {
			detach
			echo 'hist:keys=cpu' >$sample/trigger
		}
		echo 1 >$other
		exact || wrong=$((wrong + 1))
	done
	sed 's/^/# /' "$work/stats"
	is $wrong 0 "the ticks are exact while a processor goes and comes, and a histogram, too"
	[ "$(ticks off)" -gt 0 ]
	ok $? "ticks of the processor that was gone are off"
	detach
	echo 99 >$sample/frequency
else
	skip "processors that come and go" "this kernel cannot"
fi

# --- the end of the module

echo 'hist:keys=comm' >$sample/trigger
cd /
rmmod rhist
ok $? "the module can be unloaded while there is a histogram"
insmod "$RHIST_KO"
ok $? "and loaded again"
cd "$TRACING" && is "$(cat $sample/trigger | grep -c '^hist')" 0 "without it"
finish
