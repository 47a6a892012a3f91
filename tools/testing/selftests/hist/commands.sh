#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Commands of a trigger file other than histograms belong to the kernel: for every use of them,
# alone or with histograms beside them, rhist answers, lists and acts like the kernel's own file.

. "$(dirname "$0")/../lib/tracing.sh"

ONE=events/syscalls/sys_enter_getpgid
TWO=events/syscalls/sys_enter_getsid
MARKER=events/ftrace/print

# step EVENT COMMAND: prints the result of the write, then the file's list
step()
{
	echo "$2: $(io write "$1/trigger" a "$2")"
	cat "$1/trigger"
}

# A clock may go by hundredths of a second, as user-mode Linux's does: events within one have no
# order.
tick() { sleep 0.03; }

scene()
{
	: >error_log
	echo 0 >$TWO/enable
	for command in traceoff traceon:0 snapshot:1 "stacktrace if pid == 5" "traceon:3 if pid > 1 && pid < 3" \
		disable_event:syscalls:sys_enter_getsid "enable_event:syscalls:sys_enter_getsid:2 if pid==1"; do
		step $ONE "$command"
		step $ONE "$command"
		step $ONE "!$command"
		step $ONE "!$command"
	done
	# wrong in all ways
	for command in traceonn snapshots traceon:x traceon:3x "traceoff if" "traceoff if nosuch == 1" "traceoff x" \
		enable_event enable_event: enable_event:syscalls enable_event:syscalls:nosuch enable_event:ftrace:print \
		"snapshot if pid ==" "!enable_event:nosuch:nosuch" "!traceon if nosuch" "stacktrace:1 if (pid == 1" \
		"traceoff:1:2"; do
		step $ONE "$command"
		# Each command has an entry of its own: the log holds eight, and C has fewer of
		# them.
		c_entries error_log
		: >error_log
	done
	step $ONE "!traceoff"
	# From the kernel, from us, and from a file that is the kernel's in both: in the order of
	# their times.
	tick
	step $ONE "hist:keys=nosuch"
	tick
	io write synthetic_events a "rhist_nosuch x"
	tick
	step $ONE "snapshot if nosuch > 1"
	c_entries error_log
	: >error_log
	cat error_log
	# The order of all triggers, with histograms among them.
	step $ONE "hist:keys=pid"
	step $ONE "traceoff:1 if pid == 123456"
	step $ONE "hist:keys=$COMM if pid == 1"
	step $ONE "snapshot if pid == 123456"
	step $ONE "stacktrace:7 if pid == 123456 ||
hist:keys"
	step $ONE "stacktrace:7 if pid == 123456 ||
pid == 123457"
	step $ONE "enable_event:syscalls:sys_enter_getsid if pid == 77"
	step $ONE "disable_event:syscalls:sys_exit_getsid:5 if pid == 78"
	cat $TWO/enable $ONE/enable
	# With commands for histograms, while older and newer triggers go.
	step $ONE "enable_hist:syscalls:sys_enter_getsid"
	step $ONE "!stacktrace"
	step $ONE "stacktrace"
	step $ONE "disable_hist:syscalls:sys_exit_getsid:5 if pid == 79"
	step $ONE "disable_hist:syscalls:sys_exit_getsid:5 if pid == 80"
	step $ONE "!traceon"
	step $ONE "!traceon"
	step $ONE "traceon if pid == 123456"
	step $ONE "!enable_event:syscalls:sys_enter_getsid"
	step $ONE "!enable_hist:syscalls:sys_enter_getsid"
	step $ONE "enable_event:syscalls:sys_enter_getsid if pid == 77"
	step $ONE "enable_hist:syscalls:sys_enter_getsid"
	step $ONE "!stacktrace"
	step $ONE "!disable_hist:syscalls:sys_exit_getsid"
	step $ONE "!enable_hist:syscalls:sys_enter_getsid"
	step $ONE "!hist:keys=pid"
	step $ONE "!traceon"
	step $ONE "!hist:keys=$COMM if pid == 1"
	step $ONE "hist:keys=pid"
	# of all events, in the kernel's order
	for event in syscalls/sys_enter_sched_get_priority_max sched/sched_waking $probe; do
		step events/$event "hist:keys=common_pid if common_pid == 123456 ||
common_pid == 123457"
		step events/$event "hist:keys=$COMM"
		step events/$event "snapshot if common_pid == 123456 ||
common_pid == 123457"
		step events/$event "enable_hist:syscalls:sys_enter_getsid"
	done
	step events/syscalls/sys_exit_sched_get_priority_max "traceoff if common_pid == 123456"
	step $MARKER "hist:keys=common_pid"
	[ ! -e "$KERNEL/show_event_triggers" ] || cat show_event_triggers
	[ ! -e "$KERNEL/show_event_triggers" ] || io write show_event_triggers a traceon
	for event in syscalls/sys_enter_sched_get_priority_max sched/sched_waking $probe ftrace/print; do
		step events/$event "!snapshot"
		: >events/$event/trigger
	done
	step events/syscalls/sys_exit_sched_get_priority_max "!traceoff"
	[ ! -e "$KERNEL/show_event_triggers" ] || cat show_event_triggers
	# Their effect
	fire getpgid 77 78:10
	cat $TWO/enable $ONE/trigger
	: >$ONE/trigger
	cat $ONE/trigger
	step $ONE "hist:keys=pid"
	step $ONE "traceoff:2"
	fire getpgid 1:3
	cat tracing_on $ONE/trigger
	echo 1 >tracing_on
	fire getpgid 1:3
	echo 1 >tracing_on
	fire getpgid 1:3
	cat tracing_on
	entries $ONE/hist
	: >$ONE/trigger
	for command in stacktrace disable_event:syscalls:sys_exit_getsid enable_event:syscalls:sys_enter_getsid snapshot \
		traceoff; do
		step $ONE "!$command"
	done
	# Every other file of the marker's event is empty.
	step $MARKER "traceoff:4"
	echo "rhist was here" >trace_marker
	cat tracing_on $MARKER/trigger
	step $MARKER "!traceoff"
	echo 1 >tracing_on
	: >trace
	: >error_log
}

was=$(cat "$KERNEL/tracing_on")
probe=
if have_probes; then
	probe=kprobes/rhist_p
	echo 'p:rhist_p do_nanosleep' >>"$KERNEL/kprobe_events"
fi
(cd "$KERNEL" && scene) >"$work/kernel" 2>&1
(cd "$TRACING" && scene) >"$work/rhist" 2>&1
grep -c : "$work/kernel" >"$work/lines"
ok "$([ "$(cat "$work/lines")" -gt 150 ]; echo $?)" "the kernel's own triggers play the scene"
same "$work/rhist" "rhist plays it to the byte" <"$work/kernel"

cd "$TRACING" || exit 1
if [ "$TRACING" = "$KERNEL" ]; then
	skip "triggers of the kernel's own file" "this is not rhist"
else
	echo 'hist:keys=pid' >>"$KERNEL/$ONE/trigger"
	is "$(head -n 1 $ONE/trigger)" "# Available triggers:" "a histogram of the kernel's own is not listed"
	echo 'traceoff:1 if pid == 5' >>"$KERNEL/$ONE/trigger"
	is "$(cat $ONE/trigger)" "traceoff:count=1 if pid == 5" "but what is neither's is"
	echo 'hist:keys=common_pid' >>$ONE/trigger
	: >$ONE/trigger
	is "$(cat "$KERNEL/$ONE/trigger")" "traceoff:count=1 if pid == 5
hist:keys=pid:vals=hitcount:sort=hitcount:size=2048 [active]" "truncation does nothing to the kernel's own"
	echo 'enable_hist:syscalls:sys_enter_getsid' >>$ONE/trigger
	echo '!traceoff' >>"$KERNEL/$ONE/trigger"
	echo 'snapshot if pid == 5' >>$ONE/trigger
	is "$(cat $ONE/trigger)" "enable_hist:syscalls:sys_enter_getsid:unlimited
snapshot:unlimited if pid == 5" "what is removed there unseen leaves its place to newer ones"
	echo '!snapshot' >>$ONE/trigger
	: >$ONE/trigger
	: >"$KERNEL/$ONE/trigger"
fi
if have_probes; then
	# An event probe attaches something to its event that is not a trigger anybody could see.
	echo 'e:rhist_e syscalls/sys_enter_getpgid' >>dynamic_events
	echo 1 >events/eprobes/rhist_e/enable
	if [ -e "$KERNEL/show_event_triggers" ]; then
		is "$(tr -d " " <"$KERNEL/show_event_triggers")" "syscalls:sys_enter_getpgid" "C shows half a line for an event probe"
	else
		skip "C shows half a line for an event probe" "this kernel has no show_event_triggers"
	fi
	[ "$TRACING" = "$KERNEL" ] || is "$(cat show_event_triggers)" "" "rhist does not"
	echo 0 >events/eprobes/rhist_e/enable
	echo '-:rhist_e' >>dynamic_events
	echo '-:rhist_p' >>kprobe_events
else
	skip "C shows half a line for an event probe" "no event probes"
fi
is "$(tail -n 1 $ONE/trigger)" "# $commands" "nothing is left"
echo "$was" >tracing_on
finish
