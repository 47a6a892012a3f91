#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Programs that turn SQL into histograms and synthetic events, as Debian ships them: `trace-cmd
# sqlhist`, and sqlhist from the manual of libtracefs. In a mount namespace where rhist's directory
# lies over the kernel's they must create the same things as in the kernel's own; and since both
# exist at the same time, they count the same events.
. "$(dirname "$0")/../lib/tracing.sh"

if [ "$TRACING" -ef "$KERNEL" ]; then
	skip "programs that know SQL" "there is no other directory"
	finish
fi

used="events/sched/sched_waking events/sched/sched_switch events/raw_syscalls/sys_enter events/raw_syscalls/sys_exit"

# clean DIRECTORY
clean() { (cd "$1" && remove_triggers $used events/synthetic/rhist_*) 2>/dev/null; }

# clean_all: triggers first
clean_all()
{
	clean "$TRACING"
	clean "$KERNEL"
	for name in $(sed -n 's/^\(rhist_[a-z]*\)	.*/\1/p' "$KERNEL/synthetic_events"); do
		echo "!$name" >>"$KERNEL/synthetic_events"
	done
	: >"$TRACING/error_log"
}
clean_all

# over DIRECTORY COMMAND...: runs it with this directory in place of the kernel's
over()
{
	DIRECTORY=$1 unshare -m sh -c 'mount --bind "$DIRECTORY" /sys/kernel/tracing && shift && exec "$@"' sh "$@"
}

# left DIRECTORY: prints the triggers and synthetic events of this test that exist there
left()
{
	list_triggers "$1" sched raw_syscalls synthetic | grep 'hist:'
	grep '^rhist_' "$1/synthetic_events"
}

# made SIDE DIRECTORY PROGRAM OPTIONS SQL: prints the output, the status and the created triggers
# and events, without the random numbers in their names
made()
{
	over "$2" $3 -e -n "rhist_$1" $4 "$5" >"$work/said" 2>&1
	echo "status $?" >>"$work/said"
	# Both sides define their synthetic events in the same place.
	{ cat "$work/said"; left "$2" | grep -v "^rhist_[^$1]"; } |
		sed -E "s/(__[a-z]+)_[0-9]+(_[0-9]+)/\1\2/g; s/rhist_$1\>/rhist_x/g; s/^( *)\[[ 0-9.]+\]/\1[]/"
}

# Real-time processes like those of cyclictest. The last one is woken up by a process that keeps the
# processor, so that its latencies are long enough for coarse clocks.
cp "$(command -v dash)" "$work/cyclictest"
act()
{
	chrt -f 80 "$work/cyclictest" -c 'for i in 1 2 3 4 5; do (:); /bin/true; fire getpgid 1:10; done'
	chrt -f 90 sh -c 'for i in 1 2 3; do echo; n=60000; while [ $((n -= 1)) != 0 ]; do :; done; sleep 0.01; done' |
		chrt -f 80 "$work/cyclictest" -c 'while read -r line; do :; done'
}

# last_hits FILE: of the last histogram
last_hits() { sed -n 's/^    Hits: //p' "$1" | tail -n 1; }

# counted FILE: prints entries with their hitcounts, without values, which are times
counted() { sed -nE 's/^(\{.*\} hitcount: *[0-9]+).*/\1/p' "$1" | sort; }

# query PROGRAM NAME TRIGGERS EVENT KEYS OPTIONS SQL: the program creates the same on both sides:
# TRIGGERS triggers, the last one on EVENT. Both count the same, as does a histogram of the
# synthetic event with KEYS, if given
query()
{
	made c "$KERNEL" "$1" "$6" "$7" >"$work/c"
	made r "$TRACING" "$1" "$6" "$7" >"$work/r"
	same "$work/r" "$1, $2: what it says and makes" <"$work/c" || sed 's/^/# /' "$TRACING/error_log"
	is "$(grep -cE '^[a-z_]+:[a-z_]+.*hist:' "$work/r") $(grep '^status' "$work/r")" "$3 status 0" "$1, $2: it has done so"
	[ -z "$5" ] || for side in "c $KERNEL" "r $TRACING"; do
		yes "$1, $2: a histogram of its event" \
			sh -c 'echo "hist:keys=$3" >>"$2/events/synthetic/rhist_$1/trigger"' sh ${side% *} "${side#* }" "$5"
	done
	act
	counted "$KERNEL/$4/hist" >"$work/c"
	counted "$TRACING/$4/hist" >"$work/r"
	same "$work/r" "$1, $2: the same hits" <"$work/c"
	hits=$(last_hits "$TRACING/$4/hist")
	[ "$hits" -ge 5 ]
	ok $? "$1, $2: $hits of them"
	case $6 in
	# Their number depends on nanoseconds; with a coarse clock, times may be 0 for a while.
	*-m*)
		for _ in 1 2 3 4 5 6 7 8 9 10; do
			maxima=$(last_hits "$TRACING/events/synthetic/rhist_r/hist")
			[ "$maxima" -lt 1 ] || break
			act
		done
		yes "$1, $2: events for new maxima" test "$maxima" -ge 1 ;;
	*)
		if [ "$5" ]; then
			counted "$KERNEL/events/synthetic/rhist_c/hist" >"$work/c"
			counted "$TRACING/events/synthetic/rhist_r/hist" >"$work/r"
			same "$work/r" "$1, $2: its event is counted alike" <"$work/c"
			is "$(last_hits "$TRACING/events/synthetic/rhist_r/hist")" "$hits" "$1, $2: each hit is an event"
		fi ;;
	esac
	clean_all
	is "$(left "$TRACING")" "" "$1, $2: all of it can be removed"
}

# snapshots PROGRAM NAME OPTIONS SQL: one after the other, since an instance has one snapshot
snapshots()
{
	for side in "c $KERNEL" "r $TRACING"; do
		made ${side% *} "${side#* }" "$1" "$3" "$4" >"$work/${side% *}"
		act
		# The kind of snapshot and its key. How many processes had to be woken up, each with
		# its maximum, is a matter of chance.
		sed -nE 's/[0-9]+/N/g; s/ +/ /g; /Snapshot|trigger(ing|ed)|max:/p' "${side#* }/events/sched/sched_switch/hist" | uniq >>"$work/${side% *}"
		clean_all
	done
	same "$work/r" "$1, $2: the same is made and shown" <"$work/c"
	is "$(grep -c 'Snapshot taken' "$work/r")" 1 "$1, $2: a snapshot was taken"
}

# refused PROGRAM NAME SQL: the kernel refuses the last trigger, and the program undoes its earlier
# steps
long=$(printf '%300s' '' | tr ' ' x)
refused()
{
	made c "$KERNEL" "$1" "" "$3" >"$work/c"
	made r "$TRACING" "$1" "" "$3" >"$work/r"
	same "$work/r" "$1, $2: what it says" <"$work/c"
	[ "$(grep -c '^status 0' "$work/r")" = 0 ]
	ok $? "$1, $2: it fails"
	is "$(left "$TRACING")" "" "$1, $2: nothing is left"
	clean_all
}

from='FROM sched_waking AS start JOIN sched_switch AS end ON start.pid = end.next_pid'
calls='FROM sys_enter AS start JOIN sys_exit AS end ON start.common_pid = end.common_pid'
# From the manual of sqlhist.
wakeups="SELECT end.next_comm AS comm, (end.TIMESTAMP_USECS - start.TIMESTAMP_USECS) AS lat $from WHERE end.next_prio < 100 && end.next_comm == \"cyclictest\""
for program in "trace-cmd sqlhist" sqlhist; do
	if ! command -v ${program% *} >/dev/null; then
		skip "$program" "no such program"
		continue
	fi
	query "$program" "system calls" 2 events/raw_syscalls/sys_exit id.syscall,ret "" \
		"SELECT start.id, end.ret, TIMESTAMP_DELTA AS lat $calls WHERE start.id == $GETPGID"
	refused "$program" "a filter of the second event that is too long" \
		"SELECT start.pid, TIMESTAMP_DELTA AS lat $from WHERE end.next_comm == \"$long\""
	# On an emulated processor, a program takes half a minute to read the list of events.
	! rest_only || break
	snapshots "$program" "longest wake-ups, with a snapshot" "-T -m lat" "$wakeups"
	query "$program" "longest wake-ups" 2 events/sched/sched_switch comm,lat "-m lat" "$wakeups"
	query "$program" "wake-ups" 2 events/sched/sched_switch pid "" \
		"SELECT start.pid, TIMESTAMP_DELTA_USECS AS lat $from WHERE start.comm == \"cyclictest\""
	query "$program" "changes, with fields that are saved" 2 events/sched/sched_switch "" "-c lat -S prev_comm,prev_prio" \
		"SELECT start.prio AS prio, TIMESTAMP_DELTA AS lat $from WHERE start.comm == \"cyclictest\" && end.prev_prio > 0"
	query "$program" "stacks" 2 events/sched/sched_switch pid "" \
		"SELECT start.prev_pid AS pid, TIMESTAMP_DELTA_USECS AS delta, start.STACKTRACE AS stack
		FROM sched_switch AS start JOIN sched_switch AS end ON start.prev_pid = end.next_pid WHERE start.prev_comm == \"cyclictest\""
	query "$program" "no join" 1 events/raw_syscalls/sys_enter "" "" \
		"SELECT CAST(common_pid AS comm), CAST(id AS syscall) FROM sys_enter WHERE id == $GETPGID"
	refused "$program" "a filter of the first event that is too long" \
		"SELECT start.pid, TIMESTAMP_DELTA AS lat $from WHERE start.comm == \"$long\""
	refused "$program" "no such field" "SELECT start.pid, end.rhist_none AS f $from"
done
finish
