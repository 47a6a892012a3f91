#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Latencies, the purpose of variables and synthetic events: of wake-ups, system calls, the run
# queue, block I/O and page faults. The processes have names of their own, so that the number of
# hits is limited.
. "$(dirname "$0")/../lib/tracing.sh"

cd "$TRACING" || exit 1
waking=events/sched/sched_waking switch=events/sched/sched_switch
enter=events/raw_syscalls/sys_enter leave=events/raw_syscalls/sys_exit
issue=events/block/block_rq_issue complete=events/block/block_rq_complete
fault=events/kprobes/rhist_fault back=events/kprobes/rhist_back
loop=
# User-mode Linux has a clock that advances only with each tick.
least=1
[ ! -e /proc/exitcode ] || least=0

# clear: removes all triggers, first those that refer to others
clear()
{
	for e in $switch $waking $leave $enter $complete $issue $back $fault events/synthetic/rhist_*; do
		[ -e $e/trigger ] || continue
		tac $e/trigger | sed -n 's/ \[active\]$//p' | while IFS= read -r line; do
			printf '!%s' "$line" >>$e/trigger
		done
	done
	for name in $(sed -n 's/^\(rhist_[a-z]*\)	.*/\1/p' synthetic_events); do
		echo "!$name" >>synthetic_events || return 1
	done
	! grep -q 'kprobes/rhist_' "$KERNEL/kprobe_events" 2>/dev/null || {
		echo '-:rhist_back' >>"$KERNEL/kprobe_events"
		echo '-:rhist_fault' >>"$KERNEL/kprobe_events"
	}
}
clear
for name in wake sys rq fault; do
	cp "$OUT/fire" "$work/rhist_$name"
done

# add FILE TEXT: writes a command that has to be accepted
add() { yes "$2" sh -c 'printf %s "$2" >>"$1"' sh "$1" "$2" || sed 's/^/# /' error_log; }

# uptime: in hundredths of a second; without zeros in front, which would make it octal for the shell
uptime() { awk '{ printf "%.0f\n", $1 * 100 }' /proc/uptime; }

# usecs COMMAND...: runs it, and prints how long that took
usecs()
{
	usecs_from=$(uptime)
	"$@" >/dev/null 2>&1
	echo $((($(uptime) - usecs_from + 2) * 10000))
}

# sum NAME FILE: of a value, over all entries
sum() { sed -n "s/^{.* $1: *\([0-9][0-9]*\).*/\1/p" "$2" | awk '{ n += $1 } END { printf "%d\n", n }'; }

# shape FILE PATTERN: all entries are like this, and they add up to the hits
shape()
{
	[ "$(entries "$1" | grep -c .)" -gt 0 ] && [ "$(entries "$1" | grep -vcE "$2")" = 0 ]
	ok $? "entries of $1 look like $2" || entries "$1" | grep -vE "$2" | head -n 5 | sed 's/^/# /'
	is "$(sum hitcount "$1") $(entries "$1" | grep -c .) $(total Dropped "$1")" "$(total Hits "$1") $(total Entries "$1") 0" \
		"totals of $1 are those of its entries"
}

# between LOW NUMBER HIGH NAME
between()
{
	[ "$2" -ge "$1" ] && [ "$2" -le "$3" ]
	ok $? "$4: $2 lies between $1 and $3"
}

# --- from the wake-up to running: a timer's interrupt wakes up a process

add synthetic_events 'rhist_wakeup u64 lat; pid_t pid; int prio'
add $waking/trigger 'hist:keys=pid:ts0=common_timestamp.usecs if comm == "rhist_wake"'
add $switch/trigger 'hist:keys=next_pid:wakeup_lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).rhist_wakeup($wakeup_lat,next_pid,prio):onmax($wakeup_lat).save(prev_comm,prev_pid) if next_comm == "rhist_wake"'
add events/synthetic/rhist_wakeup/trigger 'hist:keys=pid,prio:vals=lat:sort=lat'
add events/synthetic/rhist_wakeup/trigger 'hist:keys=lat.log2:sort=lat'
took=$(usecs "$work/rhist_wake" alarm 1000:60)
between 55 "$(total Hits $waking/hist)" 1000 "wake-ups"
between 50 "$(total Hits $switch/hist)" "$(total Hits $waking/hist)" "wake-ups that led to running, each one once"
is "$(total Hits events/synthetic/rhist_wakeup/hist)" "$(total Hits $switch/hist)" "each is an event of its own"
number='[ ]*[0-9]+'
sed '/^Totals/q' events/synthetic/rhist_wakeup/hist >"$work/first"
grep -qE "^\{ pid:$number, prio:$number \} hitcount:$number  lat:$number$" "$work/first"
ok $? "latencies by process"
between 0 "$(sum lat "$work/first")" "$took" "all of them together, in microseconds"
sed '1,/^    Dropped/d' events/synthetic/rhist_wakeup/hist >"$work/second"
shape "$work/second" "^\{ lat: ~ 2\^$number *\} hitcount:$number$"
grep -qE "^	max:$number  prev_comm: [^ ]+ +prev_pid:$number$" $switch/hist
ok $? "the longest one, with whom it waited for"
between "$(($(sum lat "$work/first") / $(total Hits $switch/hist)))" "$(sed -n 's/^	max: *\([0-9]*\).*/\1/p' $switch/hist | sort -n | tail -n 1)" \
	"$(sum lat "$work/first")" "it lies between their mean and their sum"
grep -q 'hist:keys=pid:vals=hitcount:synthetic_prio=prio:' $waking/trigger
ok $? "the priority comes from a histogram of its own"
clear
is "$(cat $waking/trigger)" "# Available triggers:
# $commands" "which has gone with its user"

# --- system calls, from entry to exit

add synthetic_events 'rhist_syscall long id; u64 lat'
add $enter/trigger 'hist:keys=common_pid:ts0=common_timestamp if comm == "rhist_sys"'
add $leave/trigger 'hist:keys=common_pid:lat=common_timestamp-$ts0:onmatch(raw_syscalls.sys_enter).trace(rhist_syscall,id,$lat) if comm == "rhist_sys"'
add events/synthetic/rhist_syscall/trigger 'hist:keys=id.syscall:vals=lat:sort=lat.descending'
took=$(usecs "$work/rhist_sys" getpgid 1:1000 2:500)
hist=events/synthetic/rhist_syscall/hist
shape $hist "^\{ id: [a-z_0-9]+ *\[$number\] \} hitcount:$number  lat:$number$"
is "$(sed -n "s/^{ id:.*\[ *$GETPGID\] } hitcount: *\([0-9]*\) .*/\1/p" $hist)" 1500 "each call of getpgid() is there"
is "$(total Hits $hist)" "$(total Hits $leave/hist)" "each exit that has an entry is an event"
between $least "$(($(sum lat $hist) / 1000))" "$took" "all of them together, in microseconds"
clear

# --- from losing the processor to getting it back: triggers of one event that refer to each other

add synthetic_events 'rhist_runqueue u64 lat; pid_t pid'
add $switch/trigger 'hist:keys=prev_pid:rq0=common_timestamp.usecs if prev_comm == "rhist_rq" && (prev_state == 0 || prev_state == 256)'
add $switch/trigger 'hist:keys=next_pid:rq_lat=common_timestamp.usecs-sched.sched_switch.$rq0:onmatch(sched.sched_switch).rhist_runqueue($rq_lat,next_pid) if next_comm == "rhist_rq"'
add events/synthetic/rhist_runqueue/trigger 'hist:keys=pid:vals=lat'
took=$(usecs sh -c 'timeout 2 "$1" -c 0 getpgid 1:100000000 & timeout 2 "$1" -c 0 getpgid 1:100000000; wait' sh "$work/rhist_rq")
hist=events/synthetic/rhist_runqueue/hist
shape $hist "^\{ pid:$number \} hitcount:$number  lat:$number$"
between 2 "$(total Hits $hist)" 1000000 "times that two processes waited for each other"
between 1000 "$(sum lat $hist)" "$((2 * took))" "all of them together, in microseconds"
sed '1,/^    Dropped/d' $switch/hist >"$work/second"
is "$(total Hits $hist)" "$(total Hits "$work/second")" "each is an event of its own"
clear

# --- block I/O, from the request to its end

if [ ! -e $issue ]; then
	skip "block I/O" "no events of block devices"
elif ! { modprobe loop 2>/dev/null; truncate -s 16M "$work/disk" && loop=$(losetup -f --show "$work/disk" 2>/dev/null); }; then
	skip "block I/O" "no loop device"
else
	dev=$(($(stat -c '0x%t' "$loop") << 20 | $(stat -c '0x%T' "$loop")))
	add synthetic_events 'rhist_block u32 dev; u64 sector; u32 bytes; u64 lat'
	add $issue/trigger "hist:keys=dev,sector:ts0=common_timestamp.usecs,b0=bytes if dev == $dev"
	add $complete/trigger "hist:keys=dev,sector:lat=common_timestamp.usecs-\$ts0,b1=\$b0:onmatch(block.block_rq_issue).rhist_block(dev,sector,\$b1,\$lat) if dev == $dev"
	add events/synthetic/rhist_block/trigger 'hist:keys=sector:vals=bytes,lat:sort=sector'
	took=$(usecs dd if="$loop" of=/dev/null bs=4k count=100 iflag=direct)
	hist=events/synthetic/rhist_block/hist
	shape $hist "^\{ sector:$number \} hitcount:$number  bytes:$number  lat:$number$"
	is "$(total Hits $issue/hist) $(total Hits $complete/hist)" "$(total Hits $hist) $(total Hits $hist)" "each request has an end, and is an event"
	between 100 "$(total Hits $hist)" 1000 "requests"
	is "$(entries $hist | sed -n 's/.*bytes: *\([0-9]*\) .*/\1/p' | awk '{ n += $1 } END { print (n >= 409600) }')" 1 "bytes that were read"
	between 0 "$(sum lat $hist)" "$((100 * took))" "all of them together, in microseconds"
	clear
	losetup -d "$loop"
fi

# --- page faults

if ! have_probes; then
	skip "page faults" "no kprobes"
else
	echo 'p:rhist_fault handle_mm_fault address=$arg2:x64' >>"$KERNEL/kprobe_events"
	echo 'r:rhist_back handle_mm_fault' >>"$KERNEL/kprobe_events"
	add synthetic_events 'rhist_pagefault u64 page; u64 lat'
	add $fault/trigger 'hist:keys=common_pid:ts0=common_timestamp,page=address/4096 if comm == "rhist_fault"'
	add $back/trigger 'hist:keys=common_pid:lat=common_timestamp-$ts0:onmatch(kprobes.rhist_fault).rhist_pagefault($page,$lat) if comm == "rhist_fault"'
	add events/synthetic/rhist_pagefault/trigger 'hist:keys=page.hex:vals=lat'
	took=$(usecs "$work/rhist_fault" getpgid 1)
	hist=events/synthetic/rhist_pagefault/hist
	shape $hist "^\{ page: [0-9a-f]+ \} hitcount:$number  lat:$number$"
	between 5 "$(total Hits $hist)" "$(total Hits $fault/hist)" "faults, each one once"
	is "$(total Hits $hist)" "$(total Hits $back/hist)" "each is an event of its own"
	between $least "$(($(sum lat $hist) / 1000))" "$took" "all of them together, in microseconds"
	clear
fi

is "$(grep hist: show_event_triggers)" "" "nothing is left"
finish
