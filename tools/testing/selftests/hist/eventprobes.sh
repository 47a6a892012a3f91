#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Event probes: events that the kernel makes in a trigger of another event. Their histograms count
# the same as C's, whoever else enables the events, and in whatever order listeners go.

. "$(dirname "$0")/../lib/tracing.sh"

DYNAMIC=$KERNEL/dynamic_events
X=instances/rhist_x

have_probes && [ "$TRACING" != "$KERNEL" ] || { skip "event probes" "not in this kernel, or C is tested"; finish; }

# define TEXT...: dynamic events
define() { for text; do is "$(io write "$DYNAMIC" a "$text")" OK "$text"; done; }

# both EVENT TEXT: adds the same trigger for C and rhist
both()
{
	is "$(io write "$KERNEL/events/$1/trigger" a "$2") $(io write "$TRACING/events/$1/trigger" a "$2")" "OK OK" "$1: $2"
}

# counted EVENT NAME HITS: checks the counts of C and rhist
counted()
{
	is "$(entries "$TRACING/events/$1/hist")" "$(entries "$KERNEL/events/$1/hist")" "$2: the entries are C's"
	is "$(total Hits "$TRACING/events/$1/hist")" "$3" "$2: hits"
}

# targets: tests an event probe on each kind of event that can have one. A line has the name, the
# command that fires it, the number of hits, the target and the fields. Nobody else has any of them
# enabled.
targets()
{
	insmod "$RHIST_EVENTS" || return
	define "f:rhist_f ${SYS_FUNCTION}getpgid" 's:rhist_s u64 n' 'u:rhist_u u32 n'
	echo 'hist:keys=common_pid:n=pid:onchange($n).trace(rhist_s,$n)' >"$KERNEL/events/syscalls/sys_enter_getpgid/trigger"
	while read -r name hits target; do
		define "e:rhist_$name $target"
		field=${target#* }
		both "eprobes/rhist_$name" "hist:keys=${field%%=*}"
	done <"$work/targets"
	fire getpgid 1:3 2:2 1
	fire chdir /rhist/a:2 /rhist/b
	fire name rhist_1:2 rhist_2:3
	taskset -c 0 sh -c 'echo "numbers task 0 1 20 4" >/dev/rhist_events'
	while read -r name hits target; do
		counted "eprobes/rhist_$name" "$name" "$hits"
		remove_triggers "$KERNEL/events/eprobes/rhist_$name" "$TRACING/events/eprobes/rhist_$name"
		define "-:rhist_$name"
	done <"$work/targets"
	remove_triggers "$KERNEL/events/syscalls/sys_enter_getpgid"
	define -:rhist_f -:rhist_s '-:rhist_u u32 n'
	yes "the module with the target can go" rmmod rhist_events
}

# An event has hits only after it was fired. User events are missing here, since only their program
# can write them.
cat >"$work/targets" <<END
syscall 6 syscalls.sys_enter_getpgid pid=\$pid:u64
exit 6 syscalls.sys_exit_getpgid ret=\$ret:s64
string 3 syscalls.sys_enter_chdir name=+0(\$filename):ustring
raw 6 raw_syscalls.sys_enter id=\$id:u64 if id == $GETPGID
probe 5 task.task_rename name=\$newcomm:string if newcomm ~ "rhist_*"
module 20 rhist_events.numbers n=\$u32:u64
function 6 fprobes.rhist_f ip=\$__probe_ip:x64
synthetic 3 synthetic.rhist_s n=\$n:u64
user 0 user_events.rhist_u n=\$n:u64
END

TARGET=syscalls/sys_enter_chdir
PROBE=eprobes/rhist_p

# step LETTER: enables the event for its user, adds a trigger of rhist, and undoes either
step()
{
	case $1 in
	E) echo 1 >"$KERNEL/$user/events/$PROBE/enable" ;;
	e) echo 0 >"$KERNEL/$user/events/$PROBE/enable" ;;
	T) echo 'hist:keys=name' >>"$TRACING/$ours/events/$PROBE/trigger" ;;
	t) echo '!hist:keys=name' >>"$TRACING/$ours/events/$PROBE/trigger" ;;
	C) echo 'hist:keys=name' >>"$KERNEL/$user/events/$PROBE/trigger" ;;
	c) echo '!hist:keys=name' >>"$KERNEL/$user/events/$PROBE/trigger" ;;
	esac
}

# hits DIR: of the histogram there, or none
hits() { total Hits "$1/events/$PROBE/hist" 2>/dev/null; }

# orders: in each order of enabling an event probe, counting it by C, counting it by rhist, and
# undoing all that, each listener gets the hits of its own time, and nothing stays behind.
orders()
{
	for place in '. .' ". $X" "$X ." "$X $X"; do
		user=${place% *} ours=${place#* }
		some='ETet TEte ECTcet TECtec'
		[ "$place" != '. .' ] && [ -z "$LONG" ] || some='ETet ETte TEet TEte TCct TCtc CTct CTtc ECTcet TECtec'
		for order in $some; do
			echo 'e:rhist_p syscalls.sys_enter_chdir name=+0($filename):ustring' >>$DYNAMIC
			echo >"$KERNEL/$user/trace"
			enabled=0 recorded=0 added=0 counted=0
			got= expected=
			for letter in $(echo $order | sed 's/./& /g'); do
				step $letter
				case $letter in
				E) enabled=1 ;;
				e) enabled=0 ;;
				T) added=1 counted=0 ;;
				t) added=0 counted= ;;
				esac
				fire chdir /rhist/c:2
				recorded=$((recorded + 2 * enabled))
				[ $added = 0 ] || counted=$((counted + 2))
				[ $added = 1 ] || counted=
				got="$got $letter:$(grep -c rhist_p: "$KERNEL/$user/trace"),$(hits "$TRACING/$ours")"
				expected="$expected $letter:$recorded,$counted"
			done
			is "$got" "$expected" "user in $user, histogram in $ours, $order: recorded and counted"
			is "$(io write $DYNAMIC a -:rhist_p)" OK "$order: the event can go"
			fire chdir /rhist/c:2
		done
	done
}

# together: several probes on one target, which is counted, too
together()
{
	define 'e:rhist_p syscalls.sys_enter_chdir name=+0($filename):ustring' \
		'e:rhist_q syscalls.sys_enter_chdir name=+0($filename):ustring if common_pid != 0'
	for order in "$TARGET $PROBE eprobes/rhist_q" "$PROBE $TARGET eprobes/rhist_q" "eprobes/rhist_q $PROBE $TARGET"; do
		for event in $order; do
			key=name
			[ $event != $TARGET ] || key=filename.hex
			echo "hist:keys=$key" >>"$TRACING/events/$event/trigger"
		done
		got= left=$order
		for event in $order; do
			fire chdir /rhist/d:3
			for other in $left; do
				got="$got $(total Hits "$TRACING/events/$other/hist")"
			done
			remove_triggers "$TRACING/events/$event"
			left=${left#* }
		done
		is "$got" " 3 3 3 6 6 9" "$order: each counts until it is removed"
	done
	define -:rhist_p -:rhist_q
}

# kept: an event probe with a histogram stays
kept()
{
	define 'e:rhist_p syscalls.sys_enter_chdir name=+0($filename):ustring'
	for top in "$KERNEL" "$TRACING"; do
		echo hist:keys=name >>"$top/events/$PROBE/trigger"
		is "$(io write $DYNAMIC a -:rhist_p)" EBUSY "$top: it cannot be removed while it is counted"
		echo '!hist:keys=name' >>"$top/events/$PROBE/trigger"
	done
	# Unloading the module removes its histogram.
	echo hist:keys=name >>"$TRACING/events/$PROBE/trigger"
	fire chdir /rhist/e
	yes "the module can go" rmmod rhist
	fire chdir /rhist/e
	define -:rhist_p
	fire chdir /rhist/e
	yes "and come back" insmod "$RHIST_KO"
}

# readers: reading the histograms of an event probe does not block its removal
readers()
{
	while :; do
		cat "$TRACING/events/$PROBE/hist" "$TRACING/events/$PROBE/hist_debug"
	done >/dev/null 2>&1 &
	refused=0
	for i in $(seq 100); do
		echo 'e:rhist_p syscalls.sys_enter_chdir name=+0($filename):ustring' >>$DYNAMIC
		sleep 0.02
		while ! echo -:rhist_p >>$DYNAMIC; do
			refused=$((refused + 1))
		done 2>/dev/null
	done
	kill $!
	wait $! 2>/dev/null
	is $refused 0 "it can be removed while its files are read"
}

# instances: an event probe is counted in the histogram's instance, and goes with it
instances()
{
	define 'e:rhist_p syscalls.sys_enter_chdir name=+0($filename):ustring'
	mkdir "$TRACING/instances/rhist_y"
	for dir in . $X instances/rhist_y; do
		echo 'hist:keys=name' >>"$TRACING/$dir/events/$PROBE/trigger"
	done
	fire chdir /rhist/f:4
	is "$(hits "$TRACING") $(hits "$TRACING/$X") $(hits "$TRACING/instances/rhist_y")" "4 4 4" "in three instances"
	yes "an instance goes with its histogram" rmdir "$TRACING/instances/rhist_y"
	fire chdir /rhist/f:4
	is "$(hits "$TRACING") $(hits "$TRACING/$X")" "8 8" "those of the others stay"
	remove_triggers "$TRACING/events/$PROBE" "$TRACING/$X/events/$PROBE"
	define -:rhist_p
}

# stacks: stacks of the probe begin where the target's do
stacks()
{
	define 'e:rhist_p task.task_rename name=$newcomm:string'
	for event in task/task_rename $PROBE; do
		echo hist:keys=common_stacktrace >>"$TRACING/events/$event/trigger"
	done
	fire name rhist_1
	is "$(entries "$TRACING/events/$PROBE/hist" | sed 's/+.*//')" \
		"$(entries "$TRACING/events/task/task_rename/hist" | sed 's/+.*//')" "a stack is that of the target"
	remove_triggers "$TRACING/events/task/task_rename" "$TRACING/events/$PROBE"
	define -:rhist_p
}

# The second example of Documentation/trace/eprobetrace.rst. In 6.12, an event probe gets the first
# element of an array instead of its address, so it finds no file.
example()
{
	openat=257 names=FAULTS
	[ "$(uname -m)" != aarch64 ] || openat=56
	! c_has trace_eprobe.c 'This is an array, point to the addr itself' || names=NAMES
	define 'e:openat_start raw_syscalls.sys_enter nr=$id filename=+8($args):x64' 's:filename u64 file'
	define 'e:openat synthetic.filename filename=+0($file):ustring'
	echo 1 >"$TRACING/events/eprobes/openat/enable"
	for top in "$KERNEL" "$TRACING"; do
		is "$(io write "$top/events/eprobes/openat_start/trigger" w \
			"hist:keys=common_pid:f=filename if nr == $openat")" OK "example: the first trigger in $top"
		is "$(io write "$top/events/raw_syscalls/sys_exit/trigger" w "hist:keys=common_pid:file=\$f:onmatch(\
eprobes.openat_start).trace(filename,\$file) if id == $openat")" OK "example: the second trigger in $top"
		echo >"$KERNEL/trace"
		cat /proc/version >/dev/null
		is "$(sed -n 's/.*cat-.*openat: (synthetic.filename) filename="\/proc\/version"$/NAMES/p
			s/.*cat-.*openat: (synthetic.filename) filename=(fault)$/FAULTS/p' "$KERNEL/trace" | sort -ru | head -n 1)" $names \
			"example: the file in $top"
		remove_triggers "$top/events/raw_syscalls/sys_exit" "$top/events/eprobes/openat_start"
	done
	echo 0 >"$TRACING/events/eprobes/openat/enable"
	define -:openat -:openat_start -:filename
}

mkdir "$KERNEL/$X"
targets
orders
together
instances
rmdir "$KERNEL/$X"
stacks
readers
example
kept
finish
