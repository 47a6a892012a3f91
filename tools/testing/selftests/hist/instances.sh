#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Instances: each has histograms, triggers and an error_log of its own, and takes them along when it
# is removed.

. "$(dirname "$0")/../lib/tracing.sh"

ONE=events/syscalls/sys_enter_getpgid
TWO=events/syscalls/sys_enter_getsid
X=instances/rhist_x
Y=instances/rhist_y

# step DIR EVENT COMMAND: prints the result of the write
step() { echo "$1 $3: $(io write "$1/$2/trigger" a "$3")"; }

show()
{
	for dir in . $X $Y; do
		echo "$dir"
		cat "$dir/$1/trigger" "$dir/$1/hist"
		[ ! -e "$KERNEL/show_event_triggers" ] || cat "$dir/show_event_triggers"
	done
}

scene()
{
	mkdir $X $Y
	: >error_log
	for dir in $X . $Y; do
		step $dir $ONE "hist:keys=pid"
		step $dir $ONE "hist:keys=pid"
	done
	step $X $ONE "traceoff:3 if pid == 123456"
	fire getpgid 1:3 2
	show $ONE
	step $X $ONE "hist:keys=pid:pause"
	step $Y $ONE "hist:keys=pid:clear"
	fire getpgid 3
	show $ONE
	step . $ONE "!hist:keys=pid"
	step $Y $TWO "!hist:keys=pid"
	show $ONE
	# A name is shared by all instances.
	step $X $TWO "hist:name=rhist_i:keys=pid"
	step . $TWO "hist:name=rhist_i:keys=common_pid"
	step . $TWO "hist:name=rhist_i:keys=pid"
	step $X $TWO "hist:name=rhist_i:keys=pid"
	fire getsid 1:2
	show $TWO
	# Before its instance goes: C's next access to the shared histogram would be to freed
	# memory.
	step . $TWO "!hist:name=rhist_i:keys=pid"
	step $X $TWO "!hist:name=rhist_i:keys=pid"
	show $TWO
	# Only in the same instance.
	step $Y $TWO "disable_hist:syscalls:sys_enter_getpgid"
	step $Y $TWO "disable_hist:syscalls:sys_enter_getpgid"
	step . $ONE "hist:keys=pid"
	fire getsid 1
	fire getpgid 1
	show $ONE
	show $TWO
	step . $TWO "!disable_hist:syscalls:sys_enter_getpgid"
	show $TWO
	step . $ONE "!hist:keys=pid"
	# errors
	step $X $ONE "hist:keys=nosuch"
	step $Y $ONE "traceoff if nosuch == 1"
	step . $ONE "hist:keys=pid.nosuch"
	for dir in . $X $Y; do c_entries $dir/error_log | sed "s|^\[\]|$dir|"; done
	: >$X/error_log
	for dir in . $X $Y; do c_entries $dir/error_log | sed "s|^\[\]|$dir|"; done
	: >$X/$ONE/trigger
	show $ONE
	# Variables belong to one instance, and keep it.
	step $X $ONE 'hist:keys=pid:v=pid'
	step . $TWO 'hist:keys=pid:w=$v'
	step $Y $TWO 'hist:keys=pid:w=syscalls.sys_enter_getpgid.$v'
	step $X $TWO 'hist:keys=pid:w=$v'
	step $X $ONE '!hist:keys=pid:v=pid'
	rmdir $X 2>&1 && echo "removed with variables"
	fire getpgid 1:2
	fire getsid 1:2 5
	show $TWO
	step $X $TWO '!hist:keys=pid:w=$v'
	rmdir $X 2>&1 && echo "removed with a variable"
	step $X $ONE '!hist:keys=pid:v=pid'
	for dir in . $X $Y; do
		c_entries $dir/error_log | sed "s|^\[\]|$dir|"
		: >$dir/error_log
	done
	# Things that go with an instance.
	step $X $ONE "hist:keys=$COMM"
	exec 7<$X/$ONE/hist
	rmdir $X 2>/dev/null && echo "removed while hist is open"
	exec 7<&- 7<$X/$ONE/trigger
	step $X $ONE "hist:keys=pid"
	rmdir $X || echo "not removed"
	echo "open trigger: $(io read 7)"
	exec 7<&-
	[ ! -e $X ] || echo "still there"
	mkdir $X
	cat $X/error_log
	fire getpgid 1:3
	fire getsid 1:3
	show $ONE
	show $TWO
	rmdir $X $Y
	: >$ONE/trigger
	: >$TWO/trigger
	: >error_log
}

if ! rest_only; then
	(cd "$KERNEL" && scene) >"$work/kernel" 2>&1
	(cd "$TRACING" && scene) >"$work/rhist" 2>&1
	grep -c : "$work/kernel" >"$work/lines"
	ok "$([ "$(cat "$work/lines")" -gt 100 ]; echo $?)" "the kernel's own triggers play the scene"
	same "$work/rhist" "rhist plays it to the byte" <"$work/kernel"
fi

cd "$TRACING" || exit 1
mkdir $X
if have_probes; then
	echo 'p:rhist_p do_nanosleep' >>kprobe_events
	for by in "$TRACING" "$KERNEL"; do
		is "$(io write $X/events/kprobes/rhist_p/trigger a hist:keys=common_pid)" OK "a histogram in an instance"
		is "$(io write kprobe_events a -:rhist_p)" EBUSY "keeps its event"
		yes "but not the instance, by way of $by" rmdir "$by/$X"
		yes "which can be made anew" mkdir "$by/$X"
		is "$(cat $X/events/kprobes/rhist_p/hist)" "" "without its histogram"
	done
	is "$(io write kprobe_events a -:rhist_p)" OK "which keeps nothing any more"
else
	skip "a histogram in an instance keeps its event" "no kprobes"
fi
if [ "$TRACING" = "$KERNEL" ]; then
	skip "triggers of one name in several instances" "C crashes"
else
	io write $X/$TWO/trigger a hist:name=rhist_i:keys=pid >/dev/null
	io write $TWO/trigger a hist:name=rhist_i:keys=pid >/dev/null
	fire getsid 1:3
	rmdir $X
	mkdir $X
	fire getsid 1:3
	is "$(total Hits $TWO/hist) $(cat $X/$TWO/hist)" "9 " "what triggers of one name share outlives an instance"
	: >$TWO/trigger

	# Triggers that make the kernel register an event of the module's own, but not unregister it
	# again. A wait for that would last until they are gone, so they are removed before the test
	# goes on.
	own=$KERNEL/instances/rhist/events/rhist
	echo 'rhist_own char[16] text' >>synthetic_events
	for line in "never enable_event:rhist:sync" "never disable_event:rhist:sync" "sync traceoff"; do
		file=${line%% *}/trigger command=${line#* }
		io write events/synthetic/rhist_own/trigger a hist:keys=text >/dev/null
		is "$(io write "$own/$file" a "$command")" OK "rhist:${line%% *} takes the trigger $command"
		{ cat show_event_triggers && io write events/synthetic/rhist_own/trigger a '!hist:keys=text' &&
			io write events/synthetic/rhist_own/trigger a hist:keys=text; } >"$work/own" 2>&1 &
		yes "with which commands are carried out" soon sh -c "[ \$(grep -cx OK '$work/own') = 2 ]"
		is "$(io write "$own/$file" a "!$command")" OK "and which can be removed"
		wait
		is "$(io write events/synthetic/rhist_own/trigger a '!hist:keys=text')" OK "with others as well"
	done
	echo '!rhist_own' >>synthetic_events
fi
# Names that were used stay in memory.
cat $X/$ONE/trigger >/dev/null
rmdir "$KERNEL/$X"
no "one whose files were read is gone at once" test -e $X
mkdir $X
# somebody stands in it
(cd $X/$ONE && rmdir "$TRACING/$X" && mkdir "$TRACING/$X" && io write "$TRACING/$X/$ONE/trigger" a hist:keys=pid &&
	cat trigger) >"$work/inside" 2>&1
is "$(sed "s/^.*trigger'*/trigger/" "$work/inside")" "OK
trigger: No such file or directory" "who stands in a removed one sees nothing of the new one"
is "$(cat $X/$ONE/trigger)" "hist:keys=pid:vals=hitcount:sort=hitcount:size=2048 [active]" "which has its own"
rmdir $X

# An instance comes and goes under load.
under_load()
{
	while [ -e "$work/load" ]; do fire getpgid 1:100; done
}
: >"$work/load"
under_load &
for _ in 1 2 3 4 5 6 7 8 9 10; do
	mkdir $X
	io write $X/$ONE/trigger a hist:keys=pid
	cat $X/$ONE/hist >/dev/null
	rmdir $X || echo "not removed"
done | sort | uniq -c | tr -s ' ' >"$work/said"
rm "$work/load"
wait
is "$(cat "$work/said")" " 10 OK" "instances with histograms come and go under load"

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

finish
