#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The same events through every source: the module is loaded without probes of its own, and with
# them, and each time counts the same as C. Under load nothing is lost.

. "$(dirname "$0")/../lib/tracing.sh"

# source_of EVENT: prints the source of its hits, and how many it has lost
source_of()
{
	sed -n "s/^$(echo "$1" | tr / :) *//p" "$TRACING/hist_stats"
}

load()
{
	rmmod rhist && insmod "$RHIST_KO" "$@"
}

# sources NAME STATIC PROBE: checks the source of static events and most system calls, and of kprobe
# events
sources()
{
	never=$KERNEL/instances/rhist/events/rhist/never/trigger
	is "$(grep -v ^# "$never")" "traceoff:unlimited" "$1: records are made without the ring buffer"
	echo 'p:rhist_p do_sys_openat2' >>"$KERNEL/kprobe_events"
	yes "$1: a trigger of who has not all capabilities" setpriv --bounding-set -sys_admin \
		sh -c 'echo hist:keys=common_pid >"$1"' sh "$TRACING/events/kprobes/rhist_p/trigger"
	is "$(source_of kprobes/rhist_p)" "$3, 0 lost" "$1: its events are counted"
	: >"$TRACING/events/kprobes/rhist_p/trigger"
	while read -r source event; do
		[ $source != static ] || source=$2
		echo 'hist:keys=common_pid' >"$TRACING/events/$event/trigger"
		is "$(source_of "$event")" "$source, 0 lost" "$1: the source of $event"
		: >"$TRACING/events/$event/trigger"
		is "$(source_of "$event")" "" "$1: $event has none any more"
	done <<-END
	static sched/sched_waking
	static kmem/kmalloc
	static syscalls/sys_enter_getpgid
	static syscalls/sys_exit_getpgid
	static raw_syscalls/sys_enter
	$(grep -q __filename_val "$KERNEL/events/syscalls/sys_enter_openat/format" && echo event_file || echo static) syscalls/sys_enter_openat
	$3 kprobes/rhist_p
	marker ftrace/print
	END
	echo '-:rhist_p' >>"$KERNEL/kprobe_events"
}

busy='sched/sched_switch irq/softirq_entry timer/hrtimer_expire_entry raw_syscalls/sys_enter kmem/kmalloc'

seconds=1
[ -z "$LONG$SLOW" ] || seconds=3

# load_on_all SOURCE: hits that interrupt each other have records of their own.
load_on_all()
{
	for event in $busy; do
		echo 'hist:keys=common_stacktrace:size=4096' >"$TRACING/events/$event/trigger"
	done
	for i in 1 2 3 4; do
		timeout $seconds sh -c 'while :; do read -r x; done </proc/version; while :; do cat /proc/stat; done' >/dev/null &
	done
	wait
	for event in $busy; do
		is "$(source_of $event)" "$1, 0 lost" "$1: $event loses nothing under load"
		yes "$1: $event was counted" grep -q '^    Hits: [1-9]' "$TRACING/events/$event/hist"
		: >"$TRACING/events/$event/trigger"
	done
}

# long_records SOURCE: records that fit into C's page of the ring buffer are counted here, too
long_records()
{
	file=events/sched/sched_process_exec
	for top in "$KERNEL" "$TRACING"; do
		echo 'hist:keys=common_cpu if filename ~ "//*"' >"$top/$file/trigger"
	done
	lengths='100 3900 4000 4040 4060 4070 4075 4080 4090 4095'
	for length in $lengths; do
		path=$(printf "%${length}s" bin/true | tr ' ' /)
		$path
	done
	theirs=$(total Hits "$KERNEL/$file/hist")
	ours=$(total Hits "$TRACING/$file/hist")
	stats=$(source_of sched/sched_process_exec)
	echo "# of records with $lengths bytes more, C counts $theirs, rhist $ours; $stats"
	yes "$1: long records that C counts are counted" [ "$ours" -ge "$theirs" ]
	if [ "$1" = probe ]; then
		lost=${stats#probe, }
		is $((ours + ${lost%% *})) "$(echo $lengths | wc -w)" "$1: and those that are too long are lost"
	fi
	remove_triggers "$KERNEL/$file" "$TRACING/$file"
}

# slow_hits COMMAND...: prints how many hits of sys_enter_getpgid leave the fast path while another
# processor fires them
slow_hits()
{
	calls=/sys/module/rhist_events/parameters/calls
	fire -c 1 getpgid 1:100000000 &
	echo rhist_probe_hit_all >$calls
	"$@" >/dev/null
	cat $calls
	echo >$calls
	kill $!
	wait $!
}

read_often()
{
	i=0
	while [ $i -lt 300 ]; do
		read -r x <"$1"
		i=$((i + 1))
	done
}

# Events that are only looked at stay as they were: only a change of an event's triggers takes its
# hits off the fast path.
undisturbed()
{
	event=$TRACING/events/syscalls/sys_enter_getpgid
	other=$TRACING/events/sched/sched_waking
	echo 'hist:keys=pid' >"$other/trigger"
	yes "the events are there" insmod "$RHIST_EVENTS"
	echo 'hist:keys=pid' >"$event/trigger"
	is "$(slow_hits sleep 0.2)" 0 "a key that is a number: no hit is slow"
	is "$(slow_hits read_often "$event/hist")" 0 "nor one while its histogram is read"
	is "$(slow_hits read_often "$other/hist")" 0 "nor one while that of another event is"
	is "$(slow_hits read_often "$event/trigger")" 0 "nor one while its triggers are listed"
	: >"$event/trigger"
	echo 'hist:keys=common_stacktrace' >"$event/trigger"
	is "$([ "$(slow_hits sleep 0.2)" -gt 0 ]; echo $?)" 0 "with the stack as the key all are"
	: >"$event/trigger"
	: >"$other/trigger"
	rmmod rhist_events
}

while read -r probes name static probe; do
	yes "loaded with probes=$probes" load probes=$probes
	sources "$name" "$static" "$probe"
	yes "$name: it counts what C counts" "$OUT/sidebyside" --count 0
	load_on_all "$static"
	long_records "$static"
done <<-END
0 none event_file event_file
1 all probe handler
END
yes "loaded as it was" load
undisturbed

# The field is at another place in another event's record: C reads it at the first event's place.
(
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
)
finish
