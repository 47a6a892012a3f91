#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The source cycles of rhist:sample: each period of the counter of each CPU is a sample, or late,
# and each sample is counted, filtered or lost. Where processors lack a counter, cycles are refused,
# and then rhist_events is their counter, which counts as this says, and interrupts by NMIs.

. "$(dirname "$0")/../lib/tracing.sh"

cd "$TRACING" || exit 1
sample=events/rhist/sample
shown="$work/stats"
other=/sys/devices/system/cpu/cpu1/online
counter=/sys/module/rhist_events/parameters

turns=20
[ -z "$SLOW" ] || turns=5
[ -z "$LONG" ] || turns=300

# stats: prints the lines of hist_stats about samples
stats() { sed -n 's/^rhist:sample  *//p' hist_stats | tee "$work/stats"; }

# exact: true if for each CPU, samples and late ones are the periods of its count, give or take one,
# and if the first histogram has all samples
exact()
{
	stats | awk -v period="$(cat $sample/period)" '
		/^[0-9]* cycles for / {
			for (i = 2; i <= NF; i++)
				n[$i] = $(i - 1)
		}
		/^cpu [0-9]*: / {
			cpus++
			periods += $5
			samples += $7
			late += $9
			rest = $5 - $7 - $9
			if (rest < -1 || rest > 1 || int($3 / period) != $5)
				wrong++
		}
		/^hist 1: .* samples, / && !seen++ { sum = $3 + $5 + $7 }
		END {
			if (periods != n["periods,"] || late != n["late,"]) wrong++
			if (sum < samples || sum > samples + n["more"]) wrong++
			exit !(cpus && seen && !wrong)
		}'
}

# accepts FILE TEXT: true if the file of the event takes the text
accepts() { sh -c "echo '$2' >$sample/$1" 2>/dev/null; }

# refuses FILE TEXT: true if it does not, and contains the same as before
refuses()
{
	before=$(cat "$sample/$1")
	! accepts "$1" "$2" && [ "$(cat "$sample/$1")" = "$before" ]
}

# logged TEXT: true if that is the latest error
logged() { sed -n 's/.*error: //p' error_log | tail -n 1 | grep -qxF "$1"; }

# detach: removes the histograms
detach() { : >$sample/trigger; }

# busy SECONDS: all processors have something to do for this time
busy()
{
	for cpu in $(seq "$(nproc)"); do
		timeout "$1" sh -c 'while :; do dd if=/dev/zero of=/dev/null bs=64k count=200; done' 2>/dev/null &
	done
	wait
}

# --- the files

is "$(find events -name source) $(find events -name period)" "$sample/source $sample/period" "one event has these files"
is "$(cat $sample/source)" "[clock] cycles" "the clock by default"
is "$(cat $sample/period)" 20000003 "20 million cycles by default"
failed=
for text in '' cycle 'cycles 1' '[cycles]' 0; do
	refuses source "$text" || failed="$failed '$text'"
done
for text in 0 999999 1073741825 -1 2000000x '' 0x1000f4240; do
	refuses period "$text" || failed="$failed '$text'"
done
is "$failed" "" "other texts, and numbers that are too low or too high, are refused, and change nothing"
accepts period 1073741824 && accepts period 1000000
ok $? "the lowest and the highest number are not"

# --- processors without a counter

real=
if accepts source cycles; then
	real=1
	echo "# these processors have a counter"
else
	is "$(cat $sample/source)" "[clock] cycles" "cycles are refused"
	yes "with the reason" logged "CPU 0 has no counter of cycles"
	echo 'hist:keys=cpu' >$sample/trigger
	stats | grep -qx 'clock, 0 lost' && grep -q ' Hz for ' "$work/stats" && ! grep -q 'instead of cycles' "$work/stats"
	ok $? "the clock goes on"
	detach
fi

# --- a counter

emulated=
if [ -z "$real" ] && [ -e "$RHIST_EVENTS" ] && insmod "$RHIST_EVENTS" counters=1 2>/dev/null && [ -e $counter/counters ]; then
	emulated=1
	accepts source cycles
	ok $? "cycles are accepted as soon as there is a counter"
fi
[ -n "$real$emulated" ] || {
	skip "all else" "no counter"
	[ ! -e "$counter" ] || rmmod rhist_events
	finish
}

# happen SECONDS: cycles pass on all processors
# fire CPU CYCLES TIMES [CONTEXT]: cycles pass in the emulated counter
fire() { echo "cycles ${4:-nmi} $1 $2 $3 1" >/dev/rhist_events; }
happen()
{
	if [ -n "$real" ]; then
		busy "$1"
	else
		for cpu in $(seq 0 $(($(nproc) - 1))); do
			fire "$cpu" 300007 1000
		done
	fi
}

is "$(cat $sample/source)" "clock [cycles]" "the file says so"
echo 'hist:keys=mode,cpu' >$sample/trigger
is "$(stats | head -n 1)" "cycles, 0 lost" "hist_stats names the source"
stats | sed -n 2p | grep -Eq "^1000000 cycles for ${0##*/} \($$\), [0-9]+ periods, [0-9]+ late, [0-9]+ throttled"
ok $? "and the period, and who has begun"
is "$(grep -c '^cpu [0-9]*: ' "$work/stats")" "$(nproc)" "and has a line for each processor"
yes "another source is refused meanwhile" refuses source clock
yes "with the reason" logged "The source cannot be changed while the event has a histogram"
yes "and another period" refuses period 2000000
accepts source cycles && accepts period 1000000 && accepts frequency 99
ok $? "the same are not"
[ ! -e /proc/timer_list ] || ! grep -q rhist_sample_tick /proc/timer_list
ok $? "there is no timer"

# --- each period, to the last one

if [ -n "$emulated" ]; then
	fire 0 250000 1000
	fire 1 300000 1000 hardirq
	is "$(stats | grep '^cpu [01]:')" "cpu 0: 250000000 cycles, 250 periods, 250 samples, 0 late
cpu 1: 300000000 cycles, 300 periods, 300 samples, 0 late" "each period is a sample, in NMIs and in interrupts"
	echo 'hist:keys=cpu:size=128 if cpu == 0' >>$sample/trigger
	fire 0 3500000 10
	fire 1 999999 1
	is "$(stats | grep '^cpu [01]:')" "cpu 0: 285000000 cycles, 285 periods, 260 samples, 25 late
cpu 1: 300999999 cycles, 300 periods, 300 samples, 0 late" "periods without an interrupt are late"
	fire 1 1 1
	is "$(stats | grep '^hist .* samples, ')" "hist 1: 561 samples, 0 filtered, 0 lost
hist 2: 10 samples, 1 filtered, 0 lost" "each sample is counted, or filtered"
	is "$(stats | grep -o ', 0 throttled')" ", 0 throttled" "the counter was never stopped"
	echo 1 >$counter/throttling
	fire 1 1000000 5
	echo 0 >$counter/throttling
	is "$(stats | grep -o ', 5 throttled')" ", 5 throttled" "it is told if it is stopped"
else
	busy 3
	stats | grep '^cpu ' | sed 's/^/# /'
	[ "$(grep '^cpu ' "$work/stats" | awk '$7 > 20' | wc -l)" = "$(nproc)" ]
	ok $? "there are samples of each processor"
fi
yes "samples and late ones are the periods of the count" exact
detach

wrong=0
for turn in $(seq $turns); do
	first='hist:keys=mode,comm if pid > 0' second='hist:keys=common_stacktrace,cpu:size=128'
	[ $((turn % 2)) -ne 0 ] || { first=$second second='hist:keys=ip if mode == "kernel"'; }
	echo $((1000000 + turn * 97003 % 2000000)) >$sample/period
	echo "$first" >$sample/trigger
	echo "$second" >>$sample/trigger
	for read in 1 2 3; do
		happen 0.3
		exact || { wrong=$((wrong + 1)); cp "$work/stats" "$work/wrong"; }
	done
	detach
done
is $wrong 0 "they are each time, with histograms that lose samples, too ($turns times)"
[ ! -e "$work/wrong" ] || sed 's/^/# /' "$work/wrong"
accepts period 1000000

# rain: cycles pass all the time, on all processors
rain()
{
	: >"$work/rain"
	drops=
	for cpu in $(seq 0 $(($(nproc) - 1))); do
		(while [ -e "$work/rain" ]; do
			if [ -n "$emulated" ]; then
				fire "$cpu" 300007 200
			else
				dd if=/dev/zero of=/dev/null bs=64k count=200
			fi
		done 2>/dev/null) &
		drops="$drops $!"
	done
}

# dry: until here
dry()
{
	rm "$work/rain"
	wait $drops
}

# --- the fields of a sample

echo 'hist:keys=mode,comm,pid,tgid,common_pid,cpu,common_cpu:size=1024' >$sample/trigger
echo 'hist:keys=ip.sym-offset,mode,common_stacktrace:size=4096' >>$sample/trigger
if [ -n "$emulated" ]; then
	busy 4 &
	load=$!
	# Always in user mode.
	timeout 60 sh -c 'while :; do :; done' &
	program=$!
	for turn in $(seq 100); do
		happen
		[ "$turn" -lt 6 ] || ! grep -q 'mode: user' $sample/hist || break
		sleep 0.2
	done
	kill $program
	wait $load
	happen
else
	busy 4
fi
sed -n '/^{ mode/p' $sample/hist >"$work/modes"
sed -n '/^{ ip/,/^Totals/p' $sample/hist >"$work/stacks"
detach
sed 's/^/# /' "$work/modes" | tail -n 6
grep -q 'mode: user .*comm: ' "$work/modes"
ok $? "a program is a sample of mode user"
grep -q 'mode: kernel' "$work/modes"
ok $? "there are samples of mode kernel"
grep 'mode: idle' "$work/modes" | grep -qv 'pid: *0,'
is $? 1 "and of mode idle for no task but pid 0"
awk '{ gsub(/[{},:]/, ""); for (i = 1; i < NF; i++) v[$i] = $(i + 1)
	if (v["pid"] != v["common_pid"] || v["cpu"] != v["common_cpu"]) exit 1 }' "$work/modes"
ok $? "pid and cpu are those of the sample"
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

# --- counters that others use

if [ -n "$emulated" ]; then
	echo 2 >$counter/counters_taken
	echo 'hist:keys=cpu' >$sample/trigger
	sleep 0.3
	is "$(stats | sed -n 1p)" "clock, 0 lost" "the clock stands in if another one uses the counter of a CPU"
	is "$(grep '^clock instead' "$work/stats")" "clock instead of cycles: all counters of CPU 1 are in use" "as hist_stats says"
	grep -q '^99 Hz for ' "$work/stats"
	ok $? "at the frequency of the clock"
	is "$(cat $sample/source)" "clock [cycles]" "cycles are the choice"
	detach
	accepts source clock
	refuses source cycles && logged "all counters of CPU 1 are in use"
	ok $? "they cannot be chosen meanwhile"
	echo 0 >$counter/counters_taken
	accepts source cycles
	echo 'hist:keys=cpu' >$sample/trigger
	is "$(stats | sed -n 1p)" "cycles, 0 lost" "they can afterwards"
	detach
fi

# --- processors that come and go

if [ -w $other ]; then
	rain
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
	is $wrong 0 "the periods are exact while a processor goes and comes, and a histogram, too"
	sed 's/^/# /' "$work/stats"
	if [ -n "$emulated" ]; then
		echo 0 >$other
		echo 2 >$counter/counters_taken
		echo 1 >$other
		is "$(cat $other) $(stats | grep -c '^cpu 1: .*, no counter$')" "1 1" "one without a counter comes, too, and is told"
		yes "the periods are those of the others" exact
		echo 0 >$counter/counters_taken
	fi
	detach
	dry
else
	skip "processors that come and go" "this kernel cannot"
fi

# --- the end of the module

rain
echo 'hist:keys=comm' >$sample/trigger
cd /
if [ -n "$emulated" ]; then
	sh -c 'rmmod rhist_events' 2>/dev/null
	is $? 1 "the module with the counters cannot be unloaded while they count"
fi
rmmod rhist
ok $? "rhist can, while they interrupt"
dry
insmod "$RHIST_KO"
ok $? "and loaded again"
cd "$TRACING" && is "$(cat $sample/source)" "[clock] cycles" "with the clock"
if [ -n "$emulated" ]; then
	accepts source cycles
	rmmod rhist_events
	ok $? "the module with the counters can be unloaded then"
	echo 'hist:keys=cpu' >$sample/trigger
	is "$(stats | grep '^clock instead')" "clock instead of cycles: CPU 0 has no counter of cycles" "and the clock stands in"
	detach
	accepts source clock
fi
finish
