#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Synthetic events fired by hits: their stacks begin at the hits' traced functions, for each kind of
# event and action, with and without other listeners. No function of rhist shows up in them.

. "$(dirname "$0")/../lib/tracing.sh"

cd "$TRACING" || exit 1
num=events/synthetic/rhist_num txt=events/synthetic/rhist_txt next=events/synthetic/rhist_next
enter=events/raw_syscalls/sys_enter

# first FILE: prints the first functions of a histogram's stacks, each once, and how many functions
# in them are rhist's
first()
{
	awk '/\[rhist\]/ { own++ }
		begin { sub(/\+0x.*/, "", $1) }
		begin && !seen[$1]++ {
			for (i = count++; i && names[i] > $1; i--)
				names[i + 1] = names[i]
			names[i + 1] = $1
		}
		{ begin = /^[{]/ }
		END { for (i = 1; i <= count; i++) printf "%s ", names[i]; print ", " own + 0 }' "$1"
}

# clear EVENT: removes all triggers, first those that refer to others
clear()
{
	for e in $num $txt $next "events/$1" $enter; do
		last_first=
		while IFS= read -r line; do
			[ "$line" = "${line% \[active\]}" ] || last_first="${line% \[active\]}
$last_first"
		done <"$e/trigger"
		while IFS= read -r line; do
			[ -z "$line" ] || printf '!%s' "$line" >>"$e/trigger"
		done <<-END
			$last_first
		END
	done
}

# add EVENT TRIGGER
add()
{
	printf %s "$2" >>"$1/trigger" || {
		ok 1 "$1: $2"
		sed 's/^/# /' error_log
	}
}

for definition in 'rhist_num u64 x' 'rhist_txt u64 x; char c[]' 'rhist_next u64 x'; do
	yes "$definition" sh -c 'echo "$1" >>synthetic_events' sh "$definition"
done

# way EVENT NAME: makes hits of the event fire a synthetic one, named $made. If the name ends with
# ",C", the event is enabled in the kernel's own files, too.
way()
{
	made=$num
	case $2 in
	max) add "$1" 'hist:keys=common_type:x=common_timestamp:onmax($x).trace(rhist_num,$x)' ;;
	change) add "$1" 'hist:keys=common_type:x=common_timestamp:onchange($x).trace(rhist_num,$x)' ;;
	match)
		add "$1" 'hist:keys=common_pid:rt=common_timestamp'
		add "$1" "hist:keys=common_pid:rd=common_timestamp-\$rt:onmatch($system.$name).trace(rhist_num,\$rd)"
		;;
	alone) # The only trigger of the event, and no action of it but one of numbers.
		add $enter 'hist:keys=common_pid:rt=common_timestamp'
		add "$1" 'hist:keys=common_pid:rd=common_timestamp-$rt:onmatch(raw_syscalls.sys_enter).trace(rhist_num,$rd)'
		;;
	text)
		made=$txt
		add "$1" 'hist:keys=common_type:x=common_timestamp,c=common_comm:onmax($x).trace(rhist_txt,$x,$c)'
		;;
	chain)
		made=$next
		add "$1" 'hist:keys=common_type:x=common_timestamp,c=common_comm:onmax($x).trace(rhist_txt,$x,$c)'
		add $txt 'hist:keys=common_type:y=x:onmax($y).trace(rhist_num,$y)'
		add $num 'hist:keys=common_type:z=x:onmax($z).trace(rhist_next,$z)'
		;;
	esac
}

# event SYSTEM/NAME COMMAND...: tests all ways with an event that the command fires
event()
{
	system=${1%/*} name=${1#*/} event=events/$1
	shift
	add $event 'hist:keys=common_stacktrace'
	"$@" >/dev/null 2>&1
	expected=$(first $event/hist)
	yes "$system:$name happens in ${expected%, 0}" [ "${expected%%, *}" -a "${expected%, 0}" != "$expected" ]
	clear "$system/$name"
	for way in $ways; do
		way $event ${way%,C}
		add $made 'hist:keys=common_stacktrace'
		[ $way = ${way%,C} ] || echo 1 >"$KERNEL/$made/enable"
		"$@" >/dev/null 2>&1
		is "$(first $made/hist)" "$expected" "$system:$name, $way"
		[ $way = ${way%,C} ] || echo 0 >"$KERNEL/$made/enable"
		clear "$system/$name"
	done
}

ways="max change match alone text chain max,C text,C"
rename() { sh -c 'echo renamed >/proc/$$/comm; echo again >/proc/$$/comm'; }
mark() { echo mark >"$TRACING/trace_marker" && echo mark >"$TRACING/trace_marker"; }
getpgid() { fire getpgid 1:10; }

event task/task_rename rename
event raw_syscalls/sys_exit getpgid
event syscalls/sys_enter_getpgid getpgid
event ftrace/print mark
if have_probes; then
	for line in "p:kprobes/rhist_p ${SYS_FUNCTION}getpgid" "p:kprobes/rhist_int3 ${SYS_FUNCTION}getpgid+4" \
		"r:kprobes/rhist_r ${SYS_FUNCTION}getpgid" "f:fprobes/rhist_f ${SYS_FUNCTION}getpgid" \
		"f:fprobes/rhist_fr ${SYS_FUNCTION}getpgid%return" "e:eprobes/rhist_e syscalls/sys_enter_getpgid"; do
		probe=${line#*:} && probe=${probe%% *}
		if echo "$line" >>"$KERNEL/dynamic_events" 2>/dev/null; then
			event "$probe" getpgid
			echo "-:$probe" >>"$KERNEL/dynamic_events"
		else
			echo "# not here: $line"
		fi
	done
fi
if [ -e "$RHIST_EVENTS" ]; then
	yes "the events are there" insmod "$RHIST_EVENTS"
	for context in task softirq hardirq nmi; do
		numbers() { taskset 1 sh -c "echo 'numbers $context 0 1 40 4' >/dev/rhist_events"; }
		[ $context != nmi ] || have_probes || continue
		# That many events do not nest in an NMI.
		[ $context != nmi ] || ways="max change match alone text max,C text,C"
		event rhist_events/numbers numbers
	done
	rmmod rhist_events
fi
for name in rhist_num rhist_txt rhist_next; do
	yes "$name is not used any more" sh -c 'echo "!$1" >>synthetic_events' sh $name
done
finish
