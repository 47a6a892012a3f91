#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The commands that inspect: ls, show, doctor; exec, which replaces tools/rhist-exec; and an error
# that only the kernel finds.
. "$(dirname "$0")/../lib/tracing.sh"

event=events/syscalls/sys_enter_getpgid
rhist() { "$RHIST_COMMAND" "$@"; }
# As a user other than root, from a folder that such a user can read.
cp "$RHIST_COMMAND" "$work/rhist"
chmod 755 "$work" "$work/rhist"
as_nobody() { setpriv --reuid 65534 --clear-groups "$work/rhist" "$@"; }

clean()
{
	remove_triggers_of=$TRACING/instances/rhist_x
	[ ! -d "$remove_triggers_of" ] || { : >"$remove_triggers_of/$event/trigger"; rmdir "$remove_triggers_of"; }
} 2>/dev/null
clean

# --- ls and show

{ cat "$TRACING/available_events"; echo ftrace:print; } | sort -u >"$work/expected"
rhist ls events | sort >"$work/got"
yes "ls events: all that can be counted" cmp "$work/expected" "$work/got"
is "$(rhist ls events sched/sched_switch)" sched:sched_switch "and one of them"
rhist ls events no_such_event >"$work/out" 2>&1
is "$? $(grep -c 'no event matches' "$work/out")" "2 1" "a name of none"
wrong=
for name in $(sed -n '0~40p' "$work/expected"); do
	fields=$(sed -n '/common_/d; s/^\tfield:[^;]*[ *]\([A-Za-z0-9_]*\)\(\[[^;]*\)*;.*/\1/p' \
		"$TRACING/events/$(echo "$name" | tr : /)/format" | tr '\n' ' ')
	shown=$(rhist show "$name" | sed -n '3,/^$/{/^FIELD/d; s/  .*//p}' | tr '\n' ' ')
	[ "$fields" = "$shown" ] || wrong="$wrong $name: $fields/ $shown"
done
is "$wrong" "" "show: the fields of its format, of each 40th event"
is "$(rhist ls runs)" "" "ls runs: none"

# --- doctor

rhist doctor >"$work/out"
is "$? $(grep -c '^  ok  module  *rhist' "$work/out")" "0 1" "doctor: the module is loaded"
is "$(grep -c 'no event [a-z_]*:[a-z_]*$' "$work/out")" "$(rhist doctor --format json | grep -o '"lacks":\["no event [^]]*' |
	grep -c '"no event [a-z_]*:[a-z_]*"$')" "as text and as JSON, the same recipes are not possible"
as_nobody doctor >"$work/out"
is "$? $(grep -c 'you may not' "$work/out")" "1 1" "doctor: not root"
unshare -m sh -c 'umount -l /sys/kernel/tracing; umount -l /sys/kernel/debug/tracing; umount -l /sys/kernel/debug
	exec "$1" doctor' sh "$RHIST_COMMAND" >"$work/out" 2>/dev/null
is "$? $(grep -c 'mount -t tracefs' "$work/out")" "1 1" "doctor: tracefs is not mounted"

# --- exec

# refused STATUS SENTENCE NAME COMMAND...
refused()
{
	refused_status=$1 refused_text=$2 refused_name=$3
	shift 3
	refused_said=$("$@" 2>&1)
	is "$? $refused_said" "$refused_status rhist: $refused_text" "exec: $refused_name"
}

refused 125 "only root may do this: mounting a directory over another needs CAP_SYS_ADMIN" "not root" as_nobody exec true
refused 125 "/sys/kernel/tracing/rhist is not there: load the module first, with modprobe rhist" "no module" \
	unshare -m sh -c 'mount -t tmpfs none /sys/kernel/tracing && exec "$1" exec true' sh "$RHIST_COMMAND"
refused 125 "no instance rhist_x: make it first, with mkdir /sys/kernel/tracing/rhist/instances/rhist_x" \
	"no instance" rhist exec -i rhist_x true
refused 127 "command not found: rhist_none" "no such command" rhist exec rhist_none
refused 125 "missing COMMAND: rhist exec [-i INSTANCE] COMMAND [ARG]..." "no command at all" rhist exec
is "$(rhist exec sh -c 'echo "$1"; exit 7' sh 'a  b'; echo $?)" "a  b
7" "exec: arguments and status are passed on"
is "$(rhist exec cat /sys/kernel/tracing/hist_stats | grep -c '^commands:')" 1 "exec: rhist's directory in the place of the kernel's"
is "$(rhist exec sh -c '[ ! -d /sys/kernel/debug/tracing ] || grep -c "^commands:" /sys/kernel/debug/tracing/hist_stats')" \
	"$([ ! -d /sys/kernel/debug/tracing ] || echo 1)" "exec: and below debugfs"
is "$(rhist exec "$RHIST_COMMAND" exec cat /sys/kernel/tracing/hist_stats | grep -c '^commands:')" 1 "exec: in itself, it is the same"
mkdir "$TRACING/instances/rhist_x"
rhist exec -i rhist_x sh -c "echo hist:keys=pid >>/sys/kernel/tracing/$event/trigger"
is "$(grep -c '^hist:keys=pid:' "$TRACING/instances/rhist_x/$event/trigger" "$TRACING/$event/trigger" | sed 's/.*://' | tr '\n' ' ')" \
	"1 0 " "exec: the directory of an instance"
no "exec: outside, nothing is mounted there" test -e /sys/kernel/tracing/hist_stats
clean

# --- errors that only the kernel finds

rhist count timer:hrtimer_start --by mode --where 'function.function == no_such_function' -d 0.1 >"$work/out" 2>"$work/err"
is "$? $(grep -c 'the kernel rejected this: Function not found' "$work/err") $(grep -c -e '--where function.function == no_such_function' "$work/err")" \
	"2 1 1" "an error of the kernel, in the text that was written" || sed 's/^/# /' "$work/err"
finish
