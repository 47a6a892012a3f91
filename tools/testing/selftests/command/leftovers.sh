#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Nothing is left behind, whether a run ends by itself, by signals, by kill -9 at any moment, with a
# full disk, without its module, with a closed pipe, or with one that nobody reads; and nothing of
# others is touched.
. "$(dirname "$0")/../lib/tracing.sh"

rhist=$RHIST_COMMAND
export RHIST_RUN="$work/run"

# Things of others: triggers in both top directories, an instance, a synthetic event, and a probe if
# possible.
foreign=$KERNEL/instances/foreign
mkdir "$foreign"
echo 'foreign_event u64 lat' >>"$KERNEL/synthetic_events"
! have_probes || echo 'p:foreign/probe vfs_read' >>"$KERNEL/dynamic_events"
for dir in "$KERNEL" "$TRACING" "$foreign"; do
	echo 'hist:keys=pid:ts0=common_timestamp' >>"$dir/events/sched/sched_waking/trigger"
	echo 'hist:keys=next_pid:lat0=common_timestamp-$ts0' >>"$dir/events/sched/sched_switch/trigger"
done

# Everything that a run could leave or spoil.
state()
{
	ls "$KERNEL/instances"
	cat "$KERNEL/dynamic_events" 2>/dev/null || cat "$KERNEL/synthetic_events"
	for dir in "$KERNEL" "$TRACING" "$foreign"; do
		cat "$dir"/events/sched/sched_waking/trigger "$dir"/events/sched/sched_switch/trigger
	done
	ls "$RHIST_RUN" 2>/dev/null
}
state >"$work/before"

# untouched TEXT: nothing to remove, and the things of others are unchanged
untouched()
{
	state >"$work/after"
	yes "$1" cmp "$work/before" "$work/after" || diff "$work/before" "$work/after" | sed 's/^/# /'
}

# running: a run has begun
running() { [ "$(ls "$KERNEL/instances" | grep -c '^rhist-')" -gt 0 ]; }

# counting BACKEND: a run of runqlat counts. Where a step of its begin takes five seconds, a signal
# would end it then.
counting()
{
	top=$TRACING
	[ $1 = rhist ] || top=$KERNEL
	# The first instance: the cost of a hit is measured in another one.
	instance=$(ls "$KERNEL/instances" | grep '^rhist-' | head -n 1)
	grep -qs active "$top/instances/$instance/events/sched/sched_switch/trigger" &&
		! grep -q '^[0-9]' "$KERNEL/instances/$instance/set_event_pid"
}

# none_alive: no run is alive
none_alive() { ! grep -qx rhist /proc/[0-9]*/comm 2>/dev/null; }

# Recipes with variables, with synthetic events, with probes.
recipes="runqlat
runqlat --slower 1ms --by comm
offcputime
syscount"
! have_probes || recipes="$recipes
funclatency vfs_read"
# User-mode Linux tests the others; here, only those with probes.
! rest_only || recipes="funclatency vfs_read"

# ended BACKEND: runs that a signal or a closed pipe ends, and some that a full pipe stops
ended()
{
	backend=$1
	for signal in INT TERM HUP; do
		$rhist runqlat --backend $backend >"$work/out" 2>&1 &
		soon counting $backend
		kill -s $signal $!
		wait $!
		is $? 0 "$backend: SIG$signal ends a run"
		yes "$backend: and it shows what it has measured" [ -s "$work/out" ]
		untouched "$backend: and it undoes what it made"
	done

	$rhist runqlat -i 0.05 --backend $backend 2>"$work/err" | head -n 1 >/dev/null
	untouched "$backend: who reads no more ends a run"
	no "$backend: without a panic" grep -q panicked "$work/err"

	# The reader neither reads nor goes away: SIGTERM ends a run that waits to write, and --keep
	# still keeps the instance.
	mkfifo "$work/full"
	exec 7<>"$work/full"
	timeout 2 cat /dev/zero >&7
	$rhist runqlat -i 0.05 --backend $backend >"$work/full" 2>/dev/null 7>&- &
	waiting=$!
	$rhist syscount -i 0.05 --keep --backend $backend >"$work/full" 2>/dev/null 7>&- &
	keeping=$!
	soon running
	sleep 2
	kill -s TERM $waiting $keeping
	wait $waiting
	is $? 143 "$backend: SIGTERM ends a run whose output nobody reads"
	wait $keeping
	exec 7>&-
	rm "$work/full"
	is "$($rhist ls runs | sed 's/^[^ ]* *//; s/ .*//')" kept "$backend: with --keep, it is kept"
	$rhist clean >"$work/out"
	untouched "$backend: and it undoes what it made"
}

# kept BACKEND: instances that a reader keeps busy, or that are to be kept
kept()
{
	backend=$1
	# A process holds a file of the instance open: the run ends, and the instance is removed
	# later.
	$rhist runqlat --backend $backend >/dev/null 2>&1 &
	soon running
	instance=$(ls "$KERNEL/instances" | grep '^rhist-' | head -n 1)
	# The instance may exist before its files.
	soon [ -e "$KERNEL/instances/$instance/trace_pipe" ]
	exec 9<"$KERNEL/instances/$instance/trace_pipe"
	kill -9 $!
	wait $! 2>/dev/null
	$rhist clean >"$work/out" 2>&1
	yes "$backend: a reader keeps it busy, which is told" grep -q "in use, for example by a program" "$work/out"
	exec 9<&-
	$rhist >/dev/null
	untouched "$backend: what a reader has kept busy goes when it can"

	$rhist runqlat -d 0.05 --keep --backend $backend >/dev/null 2>"$work/err"
	is $? 0 "$backend: --keep"
	yes "$backend: leaves the instance" running
	$rhist >/dev/null
	yes "$backend: which the next one leaves alone" running
	sed -n 's/^    //p' "$work/err" >"$work/undo"
	sh -e "$work/undo" 2>"$work/err2"
	no "$backend: the commands that it has printed undo it" running
	$rhist clean >/dev/null
	$rhist runqlat -d 0.05 --keep --backend $backend >/dev/null 2>&1
	$rhist clean >/dev/null
	untouched "$backend: and so does rhist clean"
}

for backend in rhist c; do
	echo "$recipes" | while read -r recipe; do
		$rhist $recipe -d 0.1 --backend $backend >"$work/out" 2>&1 || echo "# $(cat "$work/out")"
		echo $? >"$work/status"
	done
	untouched "$backend: each recipe undoes what it made"

	# User-mode Linux has shown these.
	rest_only || ended $backend

	# The next run cleans up after a killed one. How long a run takes depends on the machine.
	rounds=${LONG:+500}
	rounds=${rounds:-$(rest_only && echo 4 || echo 12)}
	read -r begin _ </proc/uptime
	$rhist $(echo "$recipes" | head -n 1) -d 0.06 --backend $backend >/dev/null 2>&1
	read -r end _ </proc/uptime
	failed=0 left=0
	for round in $(seq "$rounds"); do
		recipe=$(echo "$recipes" | sed -n "$((round % $(echo "$recipes" | wc -l) + 1))p")
		# From almost no time to somewhat more than a whole run.
		moment=$(awk -v seed="$round" -v pid=$$ -v begin="$begin" -v end="$end" \
			'BEGIN { srand(seed * 7919 + pid); printf "%.4f", rand() * (end - begin) * 1.2 + 0.001 }')
		timeout -s KILL "$moment" $rhist $recipe -d 0.06 --backend $backend >/dev/null 2>&1
		# timeout does not wait for the killed process, which may have to wait in the kernel
		# before it dies.
		soon none_alive || echo "# $recipe, $moment: is still there"
		! state | cmp -s "$work/before" - && left=$((left + 1))
		$rhist >/dev/null 2>"$work/err" || failed=$((failed + 1))
		state >"$work/after"
		cmp -s "$work/before" "$work/after" || {
			failed=$((failed + 1))
			diff "$work/before" "$work/after" | sed "s/^/# $recipe, $moment: /"
			break
		}
	done
	is $failed 0 "$backend: nothing is left of $rounds runs that were killed"
	# With few rounds, all may have been too early or too late.
	[ "$rounds" -lt 12 ] || yes "$backend: of which some had left something ($left)" [ $left -gt 0 ]

	rest_only || kept $backend
done

# A full disk: the journal cannot be written, so nothing is made.
mkdir -p "$work/full"
mount -t tmpfs -o size=4k none "$work/full"
dd if=/dev/zero of="$work/full/file" bs=4k count=4 2>/dev/null
RHIST_RUN=$work/full $rhist runqlat -d 0.1 >/dev/null 2>"$work/err"
no "no room for the journal: the run fails" [ $? = 0 ]
yes "with a sentence" grep -q journal "$work/err"
umount "$work/full"
untouched "and nothing is left"

# measuring: a run has all its triggers, and counts: only then is its set_event_pid without a number
measuring()
{
	for dir in "$TRACING"/instances/rhist-*; do
		grep -qs active "$dir/events/sched/sched_switch/trigger" && ! grep -qs '^[0-9]' "$dir/set_event_pid" && return
	done
	return 1
}

# A run with intervals keeps the module loaded, and goes on.
$rhist runqlat -i 0.1 -d 3 >/dev/null 2>"$work/err" &
soon measuring
no "the module stays while intervals are read" rmmod rhist 2>/dev/null
wait $!
is "$? $(cat "$work/err")" "0 " "and the run goes on"

# The module is unloaded while the run measures. Before, its triggers cannot be made.
$rhist runqlat >/dev/null 2>"$work/err" &
soon measuring
for dir in "$KERNEL" "$TRACING" "$foreign"; do
	remove_triggers "$dir/events/sched/sched_switch" "$dir/events/sched/sched_waking"
done
# Fails while rhist has a file of the module open.
unloaded() { rmmod rhist 2>/dev/null; }
if soon unloaded; then
	kill -s INT $!
	wait $!
	is $? 1 "the module goes away: the run fails"
	yes "with a sentence" [ -s "$work/err" ]
	insmod "$RHIST_KO"
	$rhist >/dev/null
	no "and nothing is left" running
	is "$(ls "$RHIST_RUN")" "" "no journal either"
else
	kill $!
	wait $!
	skip "the module is in use"
fi

rmdir "$foreign"
echo '!foreign_event' >>"$KERNEL/synthetic_events"
! have_probes || echo '-:foreign/probe' >>"$KERNEL/dynamic_events"
finish
