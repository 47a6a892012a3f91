#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The commands that inspect: ls, show, doctor; and an error that only the kernel finds.
. "$(dirname "$0")/../lib/tracing.sh"

rhist() { "$RHIST_COMMAND" "$@"; }
# As a user other than root, from a folder that such a user can read.
cp "$RHIST_COMMAND" "$work/rhist"
chmod 755 "$work" "$work/rhist"
as_nobody() { setpriv --reuid 65534 --clear-groups "$work/rhist" "$@"; }

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

# --- errors that only the kernel finds

rhist count timer:hrtimer_start --by mode --where 'function.function == no_such_function' -d 0.1 >"$work/out" 2>"$work/err"
is "$? $(grep -c 'the kernel rejected this: Function not found' "$work/err") $(grep -c -e '--where function.function == no_such_function' "$work/err")" \
	"2 1 1" "an error of the kernel, in the text that was written" || sed 's/^/# /' "$work/err"
finish
