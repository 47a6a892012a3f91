#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# rhist exec, which packages also call rhist-exec: programs that know no other tracing directory
# than the kernel's use rhist's, unmodified.
#
# RHIST_CLIENTS   where the package of perf is unpacked
. "$(dirname "$0")/../lib/tracing.sh"

if [ "$TRACING" -ef "$KERNEL" ]; then
	skip "programs on rhist's directory" "there is no other directory"
	finish
fi

# Its two names, for users other than root, too.
mkdir "$work/bin"
cp "$RHIST_COMMAND" "$work/bin/rhist"
ln -s rhist "$work/bin/rhist-exec"
chmod 755 "$work" "$work/bin" "$work/bin/rhist"
PATH=$work/bin:$PATH
event=events/syscalls/sys_enter_getpgid

clean()
{
	for dir in "$TRACING" "$KERNEL"; do
		(cd "$dir" && remove_triggers $event events/sched/sched_waking events/sched/sched_switch events/synthetic/rhist_*)
	done
	grep -q '^rhist_lat	' "$KERNEL/synthetic_events" && echo '!rhist_lat' >>"$KERNEL/synthetic_events"
	echo >"$KERNEL/set_event"
	echo >"$KERNEL/trace"
	rmdir "$KERNEL/instances/rhist_x"
} 2>/dev/null
clean

# --- errors, and the command's view of tracefs

# refused STATUS SENTENCE NAME COMMAND...
refused()
{
	refused_status=$1 refused_text=$2 refused_name=$3
	shift 3
	refused_said=$("$@" 2>&1)
	is "$? $refused_said" "$refused_status rhist: $refused_text" "$refused_name"
}

for exec in "rhist exec" rhist-exec; do
	refused 125 "only root may do this: mounting a directory over another needs CAP_SYS_ADMIN" "$exec: not root" \
		setpriv --reuid 65534 --clear-groups $exec true
	refused 125 "/sys/kernel/tracing/rhist does not exist: load the module first, with modprobe rhist" "$exec: no module" \
		unshare -m sh -c "mount -t tmpfs none /sys/kernel/tracing && exec $exec true"
	refused 125 "no instance rhist_x: make it first, with mkdir /sys/kernel/tracing/rhist/instances/rhist_x" \
		"$exec: no instance" $exec -i rhist_x true
	refused 127 "command not found: rhist_none" "$exec: no such command" $exec rhist_none
	refused 125 "missing COMMAND: rhist exec [-i INSTANCE] COMMAND [ARG]..." "$exec: no command at all" $exec
	for words in "-x true" -V -i; do
		said=$($exec $words 2>&1)
		is "$? $(echo "$said" | sed -n '1s/^error: .*/error/p')" "125 error" "$exec $words: bad options"
	done
	refused 125 "no instance rhist_x: make it first, with mkdir /sys/kernel/tracing/rhist/instances/rhist_x" \
		"$exec: the last instance counts" $exec -i rhist_y -i rhist_x true
	refused 125 "no instance -x: make it first, with mkdir /sys/kernel/tracing/rhist/instances/-x" \
		"$exec: an instance may begin with -" $exec -i -x true
	is "$($exec -h | sed -n '1p; s/^Usage: \(rhist exec\) .*/\1/p')" "Run a program on the tracing directory of rhist
rhist exec" "$exec: help"
	is "$($exec sh -c 'echo "$1"; exit 7' sh 'a  b'; echo $?)" "a  b
7" "$exec: arguments and status are passed on"
	is "$($exec cat /sys/kernel/tracing/hist_stats | grep -c '^commands:')" 1 "$exec: rhist's directory in the place of the kernel's"
	is "$($exec sh -c '[ ! -d /sys/kernel/debug/tracing ] || grep -c "^commands:" /sys/kernel/debug/tracing/hist_stats')" \
		"$([ ! -d /sys/kernel/debug/tracing ] || echo 1)" "$exec: and below debugfs"
	is "$($exec $exec $exec cat /sys/kernel/tracing/hist_stats | grep -c '^commands:')" 1 "$exec: in itself, it is the same"
	mkdir "$TRACING/instances/rhist_x"
	$exec -i rhist_x sh -c "echo hist:keys=pid >>/sys/kernel/tracing/$event/trigger"
	is "$(grep -c '^hist:keys=pid:' "$TRACING/instances/rhist_x/$event/trigger" "$TRACING/$event/trigger" | sed 's/.*://' | tr '\n' ' ')" \
		"1 0 " "$exec: the directory of an instance"
	no "$exec: outside, nothing is mounted there" test -e /sys/kernel/tracing/hist_stats
	clean
done

# --- trace-cmd, and sqlhist of libtracefs

# counted: rhist counts the hits, and the kernel does not
counted()
{
	fire getpgid 1:5
	is "$(total Hits "$TRACING/$1/hist") $(cat "$KERNEL/$1/hist")" "5 " "$2: counted by rhist, and not by the kernel"
}

yes "trace-cmd takes a trigger" rhist exec trace-cmd start -e syscalls:sys_enter_getpgid -R hist:keys=pid
counted $event trace-cmd
is "$(rhist exec trace-cmd show | grep -c 'sys_getpgid(pid: 1)')" 5 "trace-cmd shows the trace of the event too"
yes "trace-cmd finds the events" sh -c 'rhist exec trace-cmd list -e "^syscalls:sys_enter_getpgid$" | grep -q sys_enter_getpgid'
clean

from='FROM sched_waking AS start JOIN sched_switch AS end ON start.pid = end.next_pid'
for program in "trace-cmd sqlhist" sqlhist; do
	if ! command -v ${program% *} >/dev/null; then
		skip "$program" "no such program"
		continue
	fi
	# On an emulated processor, it takes half a minute to read the list of events.
	! rest_only || continue
	yes "$program makes its triggers" rhist exec $program -e -n rhist_lat "SELECT start.pid, TIMESTAMP_DELTA AS lat $from"
	is "$(grep -c '^sched:sched_[a-z]* .*hist:' "$TRACING/show_event_triggers") $(list_triggers "$KERNEL" sched synthetic | grep -c hist:)" \
		"2 0" "$program: they are rhist's"
	yes "$program: and fill the event that it has made" sh -c 'cd "$1" && echo hist:keys=pid >>events/synthetic/rhist_lat/trigger &&
		sleep 0.1 && grep -q "^{ pid:" events/synthetic/rhist_lat/hist' sh "$TRACING"
	clean
done

# --- perf

if [ -e /proc/exitcode ]; then
	skip "perf" "user-mode Linux has none"
elif [ ! -x "$RHIST_CLIENTS/usr/bin/perf" ]; then
	skip "perf" "it is not in the lab: scripts/lab clients"
else
	perf() { LD_LIBRARY_PATH=$RHIST_CLIENTS/usr/lib/x86_64-linux-gnu rhist exec "$RHIST_CLIENTS/usr/bin/perf" "$@"; }
	perf stat -x, -e syscalls:sys_enter_getpgid -o "$work/stat" fire getpgid 1:7
	is "$(sed -n 's/^\([0-9]*\),,syscalls:sys_enter_getpgid,.*/\1/p' "$work/stat")" 7 "perf stat counts"
	perf record -q -e syscalls:sys_enter_getpgid -o "$work/data" fire getpgid 3:4 >"$work/said" 2>&1
	is "$(perf script -i "$work/data" 2>>"$work/said" | grep -c 'sys_enter_getpgid: pid: 0x0*3$')" 4 "perf record and perf script" ||
		sed 's/^/# /' "$work/said"
	is "$(perf list 'syscalls:sys_enter_getpgid' 2>&1 | grep -c 'syscalls:sys_enter_getpgid .*Tracepoint')" 1 "perf list"
fi

# --- unloading

if [ ! -e "$RHIST_KO" ]; then
	skip "the module leaves while a command runs" "RHIST_KO is no module"
	finish
fi
mkfifo "$work/go"
rhist exec sh -c 'echo >"$1/ready"; read -r line <"$1/go"; cat /sys/kernel/tracing/hist_stats 2>&1; ls /sys/kernel/tracing 2>&1' \
	sh "$work" >"$work/said" &
soon test -e "$work/ready"
yes "the module leaves while a command runs" rmmod rhist
echo >"$work/go"
wait
is "$(sed 's/:.*//' "$work/said")" "cat
ls" "which then finds nothing any more" || sed 's/^/# /' "$work/said"
yes "and can come back" insmod "$RHIST_KO"
finish
