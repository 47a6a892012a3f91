#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Kprobe events and fprobe events, which handlers of rhist count as long as nobody else listens:
# they count the same as C, for all kinds of arguments, while others come and go, and with other
# triggers on the same hit.

. "$(dirname "$0")/../lib/tracing.sh"

DYNAMIC=$KERNEL/dynamic_events
FUNCTION=${SYS_FUNCTION}getpgid
# The argument of getpgid(), as a probe of each kind finds it.
MEMORY=${SYS_ARGUMENT%%(*}
# Its arguments are numbers in registers.
SENDTO=__sys_sendto

have_probes && have_c && [ "$TRACING" != "$KERNEL" ] || { skip "handlers" "not in this kernel, or C is tested"; finish; }

# define TEXT...: dynamic events
define() { for text; do is "$(io write "$DYNAMIC" a "$text")" OK "$text"; done; }

# source_of EVENT: prints the source of its hits
source_of() { sed -n "s/^$(echo "$1" | tr / :) *\([^,]*\), 0 lost$/\1/p" "$TRACING/hist_stats"; }

hits() { total Hits "$TRACING/events/$1/hist"; }

# profile EVENT: how many hits kprobe_profile says it has had
profile() { awk -v name="${1#*/}" '$1 == name { print $2 }' "$KERNEL/kprobe_profile"; }

mkfifo "$work/to" "$work/from" || exit 1
fire -i <"$work/to" >"$work/from" &
exec 7>"$work/to" 8<"$work/from"

# tell LINE: gives one long-lived program an order, since another one takes long to start
tell()
{
	echo "$1" >&7
	read -r said <&8
	[ -z "$said" ] || echo "# fire $1: $said"
}

# call: calls each of the functions that have probes here
call() { tell "getpgid 1:3 2:2 100000 -5" && tell "send 1:3 0x1234567887654321 -5" && tell "recv 64:2"; }

# same_as_c SOURCE TYPE PLACE ARGUMENT KEY: compares two events with the same definition, one of
# which C counts. Skipped if the kernel does not know this kind of argument.
same_as_c()
{
	source=$1 type=$2 place=$3 argument=$4 key=$5
	name="$type $place $argument, keys=$key"
	if ! printf '%s\n' "$type:handlers/c $place $argument" >>"$DYNAMIC" 2>/dev/null; then
		skip "$name" "this kernel has no such argument"
		return
	fi
	printf '%s\n' "$type:handlers/o $place $argument" >>"$DYNAMIC"
	# One after the other: with two probes at the end of a function, one returns into the other.
	echo "hist:keys=$key" >"$KERNEL/events/handlers/c/trigger"
	call
	entries "$KERNEL/events/handlers/c/hist" >"$work/entries"
	remove_triggers "$KERNEL/events/handlers/c"
	echo "hist:keys=$key" >"$TRACING/events/handlers/o/trigger"
	is "$(source_of handlers/o)" "$source" "$name: the source"
	call
	is "$(entries "$TRACING/events/handlers/o/hist")" "$(cat "$work/entries")" "$name: the entries are C's"
	case $place in
	"$SENDTO"*) all=5 ;;
	*) all=7 ;;
	esac
	is "$(hits handlers/o)" $all "$name: hits"
	remove_triggers "$TRACING/events/handlers/o"
	printf '%s\n' -:handlers/c -:handlers/o >>"$DYNAMIC"
}

kinds()
{
	while IFS='|' read -r source type place argument key; do
		same_as_c "$source" "$type" "$place" "$argument" "$key"
	done <<-END
	handler|p|$FUNCTION|n=$MEMORY(\$arg1):u32|n
	handler|p|$FUNCTION|n=$MEMORY($ARGUMENT):s32|n
	handler|p|$FUNCTION|n=$MEMORY(\$arg1):s64|n
	handler|p|$FUNCTION|n=$MEMORY(\$arg1):s8|n
	handler|p|$FUNCTION|n=$MEMORY(\$arg1):x16|n
	handler|p|$FUNCTION|n=$MEMORY(\$arg1)|n.hex
	handler|p|$FUNCTION|n=\\7:u32|n
	handler|p|$FUNCTION|a=$MEMORY(\$arg1):u8 b=\\7:u64 c=$MEMORY(\$arg1):u16|a,b,c
	handler|p|$FUNCTION|n=$MEMORY(\$arg1):u32|__probe_ip.hex,n
	handler|p|$FUNCTION|n=$MEMORY(\$arg1):u32|__probe_ip.sym
	handler|p|$FUNCTION|n=$MEMORY(\$arg1):u32|n.log2
	handler|p|$FUNCTION+4|n=\\7:u32|n
	handler|p|$SENDTO|a=\$arg1:s32 b=\$arg2:u64 c=\$arg3:u32 d=\$arg4:u16 e=\$arg5:u8 f=\$arg6:x32|a,b.hex,c
	handler|p|$SENDTO|a=\$arg1:s32 b=\$arg2:u64 c=\$arg3:u32 d=\$arg4:u16 e=\$arg5:u8 f=\$arg6:x32|d,e,f
	handler|p|$SENDTO|a=\$arg2:s8 b=\$arg2:s16 c=\$arg2:s32|a,b,c
	handler|p|$SENDTO|a=\$arg2:s64 b=\\7:u16 c=\$arg3:u32|a,b,c
	handler|p|$SENDTO|n=\$arg2|n.hex
	handler|p|$SENDTO|n=$ARGUMENT:s32|n
	handler|p|$SENDTO||__probe_ip.sym
	handler|r|$SENDTO||__probe_func.sym,__probe_ret_ip.sym
	handler|r|$SENDTO|a=\$retval:s64 b=\$retval:u16 c=\\7:u8|a,b,c
	handler|f|$SENDTO|a=\$arg1:s32 b=\$arg2:u64 c=\$arg3:u32 d=\$arg4:u16 e=\$arg5:u8 f=\$arg6:x32|a,b.hex,c
	handler|f|$SENDTO|a=\$arg1:s32 b=\$arg2:u64 c=\$arg3:u32 d=\$arg4:u16 e=\$arg5:u8 f=\$arg6:x32|d,e,f
	handler|f|$SENDTO|a=\$arg2:s8 b=\\7:u16 c=\$arg2:s32|a,b,c
	handler|f|$SENDTO||__probe_ip.sym
	handler|f|$SENDTO%return|a=\$retval:s64 b=\$retval:u16 c=\\7:u8|a,b,c
	handler|r|$FUNCTION|n=\$retval:s64|n
	handler|r|$FUNCTION|n=\$retval:s32|n,__probe_func.sym
	handler|r|$FUNCTION|n=\$retval:s32|__probe_ret_ip.sym
	handler|r|$FUNCTION|n=\\7:u32|n
	handler|f|$FUNCTION|n=$MEMORY(\$arg1):s32|n
	handler|f|$FUNCTION|n=$MEMORY(\$arg1):s32|n,__probe_ip.sym
	handler|f|$FUNCTION%return|n=\$retval:s64|n
	handler|f|$FUNCTION%return|n=\$retval:s64|__probe_func.sym,__probe_ret_ip.sym
	event_file|r|$FUNCTION|n=$MEMORY(\$arg1):u32|n
	event_file|f|$FUNCTION%return|n=$MEMORY(\$arg1):u32|n
	event_file|p|$FUNCTION|n=$MEMORY(\$arg1):b4@2/32|n
	event_file|p|$FUNCTION|n=$MEMORY(\$arg1):u8[4]|__probe_ip.hex
	event_file|p|$FUNCTION|n=\$comm:string|n
	event_file|p|$FUNCTION|n=\$stack0:x64|__probe_ip.hex
	END
}

# Reads arguments that the function lacks, whose values differ in each call: equal histograms show
# that C and rhist count the same calls.
same_calls()
{
	for type in p f; do
		name="$type $SENDTO n=\$arg7:u64 m=\$arg3:u32"
		define "$type:handlers/c $SENDTO n=\$arg7:u64 m=\$arg3:u32" "$type:handlers/o $SENDTO n=\$arg7:u64 m=\$arg3:u32"
		echo 'hist:keys=n,m' >"$KERNEL/events/handlers/c/trigger"
		echo 'hist:keys=n,m' >"$TRACING/events/handlers/o/trigger"
		is "$(source_of handlers/o)" handler "$name: the source"
		call
		is "$(entries "$TRACING/events/handlers/o/hist" | sort)" "$(entries "$KERNEL/events/handlers/c/hist" | sort)" \
			"$name: the entries are C's"
		is "$(hits handlers/o)" 5 "$name: hits"
		remove_triggers "$KERNEL/events/handlers/c" "$TRACING/events/handlers/o"
		define -:handlers/c -:handlers/o
	done
}

# Two probes of one event that fetch its argument from different places.
siblings()
{
	while IFS='|' read -r type place argument other other_argument; do
		name="$type $place $argument, $other $other_argument"
		for event in c o; do
			define "$type:handlers/$event $place $argument" "$type:handlers/$event $other $other_argument"
		done
		echo 'hist:keys=n' >"$KERNEL/events/handlers/c/trigger"
		call
		entries "$KERNEL/events/handlers/c/hist" >"$work/entries"
		remove_triggers "$KERNEL/events/handlers/c"
		echo 'hist:keys=n' >"$TRACING/events/handlers/o/trigger"
		is "$(source_of handlers/o)" handler "$name: the source"
		call
		is "$(entries "$TRACING/events/handlers/o/hist")" "$(cat "$work/entries")" "$name: the entries are C's"
		remove_triggers "$TRACING/events/handlers/o"
		define -:handlers/c -:handlers/o
	done <<-END
	p|$SENDTO|n=\$arg3:u32|$FUNCTION|n=$MEMORY(\$arg1):u32
	p|$FUNCTION|n=$MEMORY(\$arg1):u32|$SENDTO|n=\$arg3:u32
	p|$SENDTO|n=\$arg3:u32|${SYS_FUNCTION}sendto|n=\\7:u32
	r|$SENDTO|n=\$retval:u32|$FUNCTION|n=\\7:u32
	f|$SENDTO|n=\$arg3:u32|$FUNCTION|n=$MEMORY(\$arg1):u32
	f|$SENDTO|n=\$arg3:u32|__sys_recvfrom|n=\$arg2:u32
	END
}

# The record has the task of the hit.
tasks()
{
	define "p:handlers/o $FUNCTION"
	echo 'hist:keys=common_pid' >"$TRACING/events/handlers/o/trigger"
	is "$(source_of handlers/o)" handler "an event without arguments: the source"
	pid=$(sh -c 'echo $$; exec fire getpgid 1:3')
	is "$(entries "$TRACING/events/handlers/o/hist" | tr -s ' ')" "{ common_pid: $pid } hitcount: 3" "its key is the task"
	remove_triggers "$TRACING/events/handlers/o"
	define -:handlers/o
}

# An unreadable value is 0, and still counts as a hit.
unreadable()
{
	for definition in "p:handlers/o $FUNCTION n=+0($MEMORY(\$arg1)):u32" "p:handlers/o $FUNCTION n=+8(+0($MEMORY(\$arg1))):u64"; do
		define "$definition"
		echo 'hist:keys=n:vals=hitcount' >"$TRACING/events/handlers/o/trigger"
		is "$(source_of handlers/o)" handler "the source"
		tell "getpgid 1:3 2:2"
		is "$(entries "$TRACING/events/handlers/o/hist")" "{ n:          0 } hitcount:          5" "what cannot be read is 0"
		remove_triggers "$TRACING/events/handlers/o"
		define -:handlers/o
	done
}

NUMBER="n=$MEMORY(\$arg1):s32"

# step WHAT: another listener comes or goes
step()
{
	case $1 in
	enabled) echo 1 >"$KERNEL/events/handlers/o/enable" ;;
	disabled) echo 0 >"$KERNEL/events/handlers/o/enable" ;;
	counted) echo hist:keys=n >>"$KERNEL/events/handlers/o/trigger" ;;
	uncounted) echo '!hist:keys=n' >>"$KERNEL/events/handlers/o/trigger" ;;
	probed) echo "e:handlers/e handlers.o n=\$n:s32" >>"$DYNAMIC" && echo hist:keys=n >"$TRACING/events/handlers/e/trigger" ;;
	unprobed) : >"$TRACING/events/handlers/e/trigger" && echo -:handlers/e >>"$DYNAMIC" ;;
	filtered) echo 'hist:keys=n if n == 2' >>"$TRACING/events/handlers/o/trigger" ;;
	unfiltered) echo '!hist:keys=n if n == 2' >>"$TRACING/events/handlers/o/trigger" ;;
	stacks) echo 'hist:keys=common_stacktrace' >>"$TRACING/events/handlers/o/trigger" ;;
	unstacked) echo '!hist:keys=common_stacktrace' >>"$TRACING/events/handlers/o/trigger" ;;
	paused) echo 'hist:keys=n:pause' >>"$TRACING/events/handlers/o/trigger" ;;
	continued) echo 'hist:keys=n:cont' >>"$TRACING/events/handlers/o/trigger" ;;
	elsewhere) echo 'hist:keys=n' >>"$TRACING/$X/events/handlers/o/trigger" ;;
	gone) echo '!hist:keys=n' >>"$TRACING/$X/events/handlers/o/trigger" ;;
	others) echo 1 >"$KERNEL/set_event_pid" ;;
	everyone) : >"$KERNEL/set_event_pid" ;;
	esac
}

X=instances/rhist_x

# steps TYPE PLACE ARGUMENT STEP...: after each step, each hit is counted once, except while the
# event is off
steps()
{
	what=$1 place=$2 number=$3
	shift 3
	define "$what:handlers/o $place $number"
	echo 'hist:keys=n' >"$TRACING/events/handlers/o/trigger"
	got= expected= all=0 on=5
	for step; do
		step "$step"
		case $step in
		paused | others) on=0 ;;
		continued | everyone) on=5 ;;
		esac
		tell "getpgid 1:3 2:2"
		all=$((all + on))
		[ "$step" != probed ] || is "$(hits handlers/e)" 5 "an event probe on it has its hits"
		got="$got $step:$(hits handlers/o)"
		expected="$expected $step:$all"
	done
	is "$got" "$expected" "$what $place: each hit is counted once"
	[ "${what#[pr]}" ] || is "$(profile handlers/o)" $((5 * $#)) "kprobe_profile has all of them"
	: >"$TRACING/events/handlers/o/trigger"
	define -:handlers/o
}

everybody()
{
	# Only functions have event probes.
	all='enabled disabled counted uncounted filtered unfiltered stacks unstacked paused continued others everyone elsewhere
		gone enabled counted disabled uncounted stacks unstacked'
	probes='probed unprobed enabled probed counted disabled uncounted stacks unprobed unstacked'
	mkdir "$TRACING/$X"
	steps p $FUNCTION "$NUMBER" $all
	steps r $FUNCTION 'n=$retval:s32' $all
	steps f $FUNCTION "$NUMBER" $all $probes
	steps f $FUNCTION%return 'n=$retval:s32' $all $probes
	rmdir "$TRACING/$X"
}

# Hits fire a synthetic event, with and without listeners other than a histogram.
emitters()
{
	yes "a synthetic event" sh -c 'echo "rhist_handled s32 n" >>"$1"' sh "$KERNEL/synthetic_events"
	handled=$TRACING/events/synthetic/rhist_handled theirs=$KERNEL/events/synthetic/rhist_handled
	for type in p f; do
		define "$type:handlers/o $FUNCTION $NUMBER"
		echo 'hist:keys=n:m=n:onmatch(handlers.o).trace(rhist_handled,$m)' >"$TRACING/events/handlers/o/trigger"
		echo 'hist:keys=n' >"$handled/trigger"
		is "$(source_of handlers/o)" handler "$type: what makes an event happen is a handler's hit, too"
		tell "getpgid 1:3 2:2"
		is "$(entries "$handled/hist" | tr -s ' ' | sort)" "$(printf '%s\n' '{ n: 1 } hitcount: 3' '{ n: 2 } hitcount: 2')" \
			"$type: each hit makes the event happen"
		echo 1 >"$theirs/enable"
		tell "getpgid 1:3 2:2"
		echo 0 >"$theirs/enable"
		echo 'hist:keys=n' >"$theirs/trigger"
		tell "getpgid 1:3 2:2"
		is "$(hits handlers/o) $(hits synthetic/rhist_handled) $(total Hits "$theirs/hist")" "15 15 5" \
			"$type: while others listen, too"
		: >"$theirs/trigger"
		: >"$TRACING/events/handlers/o/trigger"
		: >"$handled/trigger"
		define -:handlers/o
	done
	yes "the synthetic event goes" sh -c 'echo "!rhist_handled" >>"$1"' sh "$KERNEL/synthetic_events"
}

# A probe that is added to the event while it is counted is counted, too, and removed alone.
added()
{
	define "p:handlers/o $FUNCTION $NUMBER"
	echo 'hist:keys=n' >"$TRACING/events/handlers/o/trigger"
	tell "getpgid 1:3"
	define "p:handlers/o ${SYS_FUNCTION}getsid $NUMBER"
	tell "getpgid 1:3"
	tell "getsid 2:4"
	is "$(entries "$TRACING/events/handlers/o/hist" | tr -s ' ' | sort)" "$(printf '%s\n' '{ n: 1 } hitcount: 6' '{ n: 2 } hitcount: 4')" \
		"both probes are counted"
	define "-:handlers/o $FUNCTION $NUMBER"
	tell "getpgid 1:3"
	tell "getsid 2:4"
	is "$(hits handlers/o)" 14 "and the other one when the first is gone"
	is "$(io write "$DYNAMIC" a -:handlers/o)" EBUSY "it stays as long as it is counted"
	: >"$TRACING/events/handlers/o/trigger"
	define -:handlers/o
}

# The function's module goes and comes again.
of_a_module()
{
	insmod "$RHIST_EVENTS" || return
	define 'p:handlers/o rhist_events:rhist_events_write n=\7:u32'
	echo 'hist:keys=n' >"$TRACING/events/handlers/o/trigger"
	is "$(source_of handlers/o)" handler "a function of a module: the source"
	for times in 1 2 3; do
		[ $times = 1 ] || insmod "$RHIST_EVENTS"
		echo "numbers task 0 1 20 4" >/dev/rhist_events 2>/dev/null
		is "$(hits handlers/o)" $times "module $times: the call is counted"
		yes "module $times: it can go" rmmod rhist_events
	done
	: >"$TRACING/events/handlers/o/trigger"
	define -:handlers/o
}

# After unloading, the kernel has its handlers back.
unloaded()
{
	define "p:handlers/o $FUNCTION $NUMBER" "f:handlers/f $FUNCTION $NUMBER"
	for event in o f; do
		echo 'hist:keys=n' >"$TRACING/events/handlers/$event/trigger"
		echo 'hist:keys=n' >"$KERNEL/events/handlers/$event/trigger"
	done
	tell "getpgid 1:3"
	yes "the module can go" rmmod rhist
	tell "getpgid 1:3"
	for event in o f; do
		is "$(total Hits "$KERNEL/events/handlers/$event/hist")" 6 "C counts on: $event"
		: >"$KERNEL/events/handlers/$event/trigger"
	done
	define -:handlers/o -:handlers/f
	yes "and come back" insmod "$RHIST_KO"
}

# Others come and go under hits: none is lost, or counted twice.
concurrently()
{
	define "p:handlers/o $FUNCTION $NUMBER" "f:handlers/f $FUNCTION%return n=\$retval:s32"
	for event in o f; do
		echo 'hist:keys=n' >"$TRACING/events/handlers/$event/trigger"
	done
	fire -c 1 getpgid 1:200000 &
	for i in $(seq 30); do
		for event in o f; do
			echo 1 >"$KERNEL/events/handlers/$event/enable"
			echo 'hist:keys=n if n == 2' >>"$TRACING/events/handlers/$event/trigger"
			echo 0 >"$KERNEL/events/handlers/$event/enable"
			echo '!hist:keys=n if n == 2' >>"$TRACING/events/handlers/$event/trigger"
		done
	done
	wait $!
	for event in o f; do
		is "$(hits handlers/$event)" 200000 "$event: all hits are counted"
		: >"$TRACING/events/handlers/$event/trigger"
	done
	# The histogram itself, too.
	fire -c 1 getpgid 1:200000 &
	for i in $(seq 30); do
		for event in o f; do
			echo 'hist:keys=n' >"$TRACING/events/handlers/$event/trigger"
			: >"$TRACING/events/handlers/$event/trigger"
		done
	done
	wait $!
	define -:handlers/o -:handlers/f
}

kinds
same_calls
siblings
tasks
unreadable
everybody
emitters
added
of_a_module
unloaded
concurrently
exec 7>&- 8<&-
wait
finish
