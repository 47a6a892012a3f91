#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# pause, cont, clear and name=: rhist and the kernel's own triggers answer, show and log the same
# for every sequence.

. "$(dirname "$0")/../lib/tracing.sh"

ONE=events/syscalls/sys_enter_getpgid
TWO=events/syscalls/sys_enter_getsid

# step EVENT COMMAND: prints the result of the write
step() { echo "$2: $(io write "$1/trigger" a "$2")"; }

show() { for event; do cat "$event/trigger" "$event/hist"; done; }

scene()
{
	: >error_log
	step $ONE "hist:keys=pid:cont"
	step $ONE "hist:keys=pid:clear"
	step $ONE "hist:keys=pid:pause"
	fire getpgid 1:3
	show $ONE
	step $ONE "hist:keys=pid"
	step $ONE "hist:keys=pid:continue"
	fire getpgid 1:3 2
	show $ONE
	step $ONE "hist:keys=pid:pause:cont"
	fire getpgid 1
	step $ONE "hist:keys=pid:clear"
	show $ONE
	step $ONE "hist:keys=pid:cont"
	fire getpgid 3:2
	show $ONE
	step $ONE "!hist:keys=pid:pause"

	step $ONE "hist:name=rhist_n:keys=pid"
	step $ONE "hist:name=rhist_n:keys=pid"
	step $TWO "hist:name=rhist_n:keys=__syscall_nr"
	step $TWO "hist:name=rhist_n:keys=pid:cont"
	step $TWO "hist:name=rhist_n:keys=pid:pause"
	step $TWO "hist:name=rhist_n:keys=pid"
	step $TWO "hist:keys=pid"
	fire getpgid 1:4
	fire getsid 1:5
	show $ONE $TWO
	step $TWO "hist:name=rhist_n:keys=pid:cont"
	fire getsid 1:5 7
	show $ONE $TWO
	step $TWO "hist:name=rhist_n:keys=pid:clear"
	show $ONE $TWO
	fire getpgid 9
	step $ONE "!hist:name=rhist_n:keys=pid"
	fire getsid 9
	show $ONE $TWO
	step $TWO "!hist:name=rhist_other:keys=pid"
	show $TWO
	step $TWO "!hist:name=rhist_n:keys=pid"
	step $ONE "hist:name=rhist_n:keys=pid"
	show $ONE $TWO
	c_entries error_log
	: >$ONE/trigger
	: >$TWO/trigger
	: >error_log
	show $ONE $TWO
}

if ! rest_only; then
	(cd "$KERNEL" && scene) >"$work/kernel"
	(cd "$TRACING" && scene) >"$work/rhist"
	grep -c : "$work/kernel" >"$work/lines"
	ok "$([ "$(cat "$work/lines")" -gt 150 ]; echo $?)" "the kernel's own triggers play the scene"
	same "$work/rhist" "rhist plays it to the byte" <"$work/kernel"
	is "$(grep -c 'name=rhist_n.*\[paused\]' "$work/rhist")" 2 "a trigger of a name is paused alone"
fi

# Variables of one name, which two triggers refer to, may differ in sign. C puts both triggers into
# one histogram.
(
	cd "$TRACING/instances" || exit 1
	mkdir rhist_n1 rhist_n2
	one=rhist_n1/events/sched two=rhist_n2/events/sched
	least='hist:keys=next_pid:vals=($x).min:name=rhist_s'
	echo 'hist:keys=pid:x=common_timestamp' >$one/sched_waking/trigger
	echo "$least" >$one/sched_switch/trigger
	echo 'hist:keys=pid:x=common_timestamp-1' >$two/sched_waking/trigger
	is "$(io write $two/sched_switch/trigger w "$least")" EINVAL "a number with a sign and one without share no histogram"
	is "$(tail -n 3 rhist_n2/error_log | head -n 1 | sed 's/^.*: error: //')" \
		"Named hist trigger doesn't match existing named trigger (includes variables)" "error_log says why"
	echo "!hist:keys=pid:x=common_timestamp-1" >$two/sched_waking/trigger
	echo 'hist:keys=pid:x=common_timestamp' >$two/sched_waking/trigger
	is "$(io write $two/sched_switch/trigger w "$least")" OK "two of one kind do"
	for events in $one $two; do
		: >$events/sched_switch/trigger
		: >$events/sched_waking/trigger
	done
	rmdir rhist_n1 rhist_n2
)

# The field is at another place in another event's record: C reads it at the first event's place.
if ! have_probes; then
	skip "events with one name may have the key in different places" "no kprobes"
	finish
fi
cd "$TRACING" || exit 1
printf '%s\n' 'p:rhist_a do_nanosleep x=\5:u32 y=\6:u32' >>kprobe_events
printf '%s\n' 'p:rhist_b do_nanosleep y=\6:u32 x=\5:u32' >>kprobe_events
io write events/kprobes/rhist_a/trigger a "hist:name=rhist_k:keys=x" >/dev/null
io write events/kprobes/rhist_b/trigger a "hist:name=rhist_k:keys=x" >/dev/null
sleep 0.01
is "$(grep -c '^{ x:          5 }' events/kprobes/rhist_b/hist) $(grep -c '^{ x' events/kprobes/rhist_b/hist)" "1 1" \
	"events with one name may have the key in different places"
: >events/kprobes/rhist_a/trigger
: >events/kprobes/rhist_b/trigger
echo '-:rhist_a' >>kprobe_events
echo '-:rhist_b' >>kprobe_events

finish
