#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Lockdown: files that can still be opened, read and written, compared with the kernel's own.
# Lockdown cannot be undone, so this is the last test of its guest.
. "$(dirname "$0")/../lib/tracing.sh"

LOCK=/sys/kernel/security/lockdown
GETPGID_EVENT=events/syscalls/sys_enter_getpgid
[ -d /sys/kernel/security/lsm ] || mount -t securityfs securityfs /sys/kernel/security 2>/dev/null

if [ "$TRACING" = "$KERNEL" ]; then
	skip "lockdown" "this is not rhist"
	finish
elif [ ! -w $LOCK ]; then
	skip "lockdown" "this kernel has none"
	finish
elif grep -q '\[confidentiality\]' $LOCK; then
	skip "lockdown" "it is locked down already"
	finish
fi

files="$GETPGID_EVENT/trigger $GETPGID_EVENT/hist $GETPGID_EVENT/hist_debug $GETPGID_EVENT/enable $GETPGID_EVENT/filter
	$GETPGID_EVENT/format $GETPGID_EVENT/id events/enable events/syscalls/enable events/syscalls/filter error_log
	show_event_triggers README available_events set_event trace trace_pipe trace_marker tracing_on current_tracer
	synthetic_events dynamic_events snapshot options/overwrite per_cpu/cpu0/trace per_cpu/cpu0/stats events/header_page"
dirs=". events events/syscalls $GETPGID_EVENT instances options"

# compare WHEN: each way to open each file
compare()
{
	for file in $files; do
		[ -e "$KERNEL/$file" ] || continue
		expected= got=
		for mode in r w rw t; do
			expected="$expected $mode: $(io open "$KERNEL/$file" $mode)"
			got="$got $mode: $(io open "$TRACING/$file" $mode)"
		done
		is "$got" "$expected" "$1: $file:$expected"
	done
	for dir in $dirs; do
		is "$(io open "$TRACING/$dir" d)" "$(io open "$KERNEL/$dir" d)" "$1: $dir"
		is "$(stat -c %A "$TRACING/$dir")" "$(stat -c %A "$KERNEL/$dir")" "$1: mode of $dir"
	done
	is "$(ls "$TRACING/$GETPGID_EVENT" | grep -vx -e hist_debug -e hist_jsonl -e hist_delta -e hist_delta_jsonl)" \
		"$(ls "$KERNEL/$GETPGID_EVENT" | grep -vx hist_debug)" \
		"$1: names are listed"
}

# Nobody else writes while this shell has them open, so it can tell the numbers apart.
number=$$
hist="hist:keys=pid:size=128 if pid >= $number"
open_all()
{
	exec 3>>"$KERNEL/$GETPGID_EVENT/trigger" 4<"$KERNEL/$GETPGID_EVENT/trigger" 5<"$KERNEL/$GETPGID_EVENT/hist"
	exec 6>>"$TRACING/$GETPGID_EVENT/trigger" 7<"$TRACING/$GETPGID_EVENT/trigger" 8<"$TRACING/$GETPGID_EVENT/hist"
	exec 9<"$TRACING/$GETPGID_EVENT/hist_delta"
}
# The example program of the documentation, with an event of its own, in the file that it finds.
program() { "$OUT/request" 1 >/dev/null 2>&1; }

# --- none, and integrity

is "$(io write "$KERNEL/$GETPGID_EVENT/trigger" a "$hist") $(io write "$TRACING/$GETPGID_EVENT/trigger" a "$hist")" "OK OK" \
	"a histogram of both"
compare none
for dir in "$KERNEL" "$TRACING"; do
	: >>"$dir/$GETPGID_EVENT/trigger"
	: >"$dir/$GETPGID_EVENT/trigger"
done
echo integrity >$LOCK
yes "the kernel keeps its integrity" grep -q '\[integrity\]' $LOCK
compare integrity
is "$(io write "$KERNEL/$GETPGID_EVENT/trigger" a "$hist") $(io write "$TRACING/$GETPGID_EVENT/trigger" a "$hist")" "OK OK" \
	"integrity: a histogram of both"
fire getpgid $((number + 1)):3
is "$(entries "$TRACING/$GETPGID_EVENT/hist")" "$(entries "$KERNEL/$GETPGID_EVENT/hist")" "integrity: both count the same"
is "$(total Hits "$TRACING/$GETPGID_EVENT/hist")" 3 "integrity: what there is to be counted"
yes "integrity: a program registers its event" program

# --- confidentiality

open_all
echo confidentiality >$LOCK
yes "the kernel keeps its secrets" grep -q '\[confidentiality\]' $LOCK
compare confidentiality
for file in "$GETPGID_EVENT/hist_debug" "$GETPGID_EVENT/hist_jsonl" "$GETPGID_EVENT/hist_delta" "$GETPGID_EVENT/hist_delta_jsonl" \
	hist_stats; do
	is "$(io open "$TRACING/$file" r)" EPERM "confidentiality: $file, which this kernel does not have: EPERM"
done
is "$(io open "$TRACING/$GETPGID_EVENT/trigger" r) $(io open "$TRACING/$GETPGID_EVENT/hist" r)" "EPERM EPERM" \
	"confidentiality: triggers and histograms are closed"
# The source of the kernel's own user events does not check lockdown.
is "$(io open "$TRACING/user_events_data" rw) $(io open "$TRACING/user_events_status" r) $(io open /dev/user_events rw)" \
	"OK OK OK" "confidentiality: the files of user events are open to programs"
yes "confidentiality: a program registers its event" program

# Files that were opened before.
fire getpgid $((number + 2)):4
for command in "hist:keys=common_pid:size=128 if pid == 0" "!hist:keys=common_pid:size=128 if pid == 0" "hist:keys=nosuch"; do
	is "$(io writefd 6 "$command")" "$(io writefd 3 "$command")" "confidentiality: to an open trigger: $command"
done
is "$(io writefd 6 traceon:1) $(io writefd 6 '!traceon:1')" "OK OK" "confidentiality: and what it passes on to the kernel"
# The kernel's list, which is nearly always empty, is opened when it is read: see
# Documentation/security.rst.
is "$(io read 7)" EPERM "confidentiality: an open trigger is not read while the event has triggers of the kernel"
cat <&5 >"$work/c"
cat <&8 >"$work/ours"
is "$(entries "$work/ours")" "$(entries "$work/c")" "confidentiality: open histograms are read"
is "$(total Hits "$work/ours")" 7 "confidentiality: and have gone on to count"
cat <&9 >"$work/ours"
is "$(total Hits "$work/ours")" 4 "confidentiality: open intervals are read"
cat <&4 >"$work/c"
is "$(io writefd 3 "!$hist")" OK "confidentiality: the kernel's open trigger removes its histogram"
is "$(cat <&7)" "$(cat "$work/c")" "confidentiality: an open trigger is read when that is gone"
is "$(io writefd 6 "!$hist")" OK "confidentiality: an open trigger removes its histogram"
exec 3>&- 4<&- 5<&- 6>&- 7<&- 8<&- 9<&-
is "$(io open "$TRACING/$GETPGID_EVENT/trigger" r)" EPERM "confidentiality: what is closed stays closed"
finish
