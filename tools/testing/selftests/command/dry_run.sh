#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The commands that --dry-run prints, executed by a shell, create the same as rhist itself, and the
# last ones undo it.
. "$(dirname "$0")/../lib/tracing.sh"

rhist=$RHIST_COMMAND
export RHIST_RUN="$work/run" HOME="$work"

# made INSTANCE: prints all triggers of a run, the tasks that it counts, and its probes and
# synthetic events
made()
{
	for dir in "$TRACING/instances/$1" "$KERNEL/instances/$1"; do
		for file in "$dir"/events/sched/*/trigger "$dir"/events/raw_syscalls/*/trigger "$dir"/events/synthetic/*/trigger \
			"$dir"/events/rhist_*/*/trigger; do
			[ ! -e "$file" ] || sed -n "s|^[^#]|${file#"$dir/events/"}: &|p" "$file"
		done
	done
	cat "$KERNEL/instances/$1/set_event_pid" "$KERNEL/dynamic_events" 2>/dev/null || cat "$KERNEL/synthetic_events"
}

# all INSTANCE: the same, without parts that differ from run to run
all() { made "$1" | sed 's/rhist[-_][0-9_]*[0-9]/RUN/g' | sort; }

# try ARGUMENT...: the printed commands, executed by a shell, have the same effect as rhist itself
try()
{
	"$rhist" "$@" --self --backend $backend --dry-run >"$work/printed"
	sed '/^# to undo it:/,$d' "$work/printed" >"$work/do"
	sed '1,/^# to undo it:/d' "$work/printed" >"$work/undo"
	sh -e "$work/do" 2>"$work/err" || sed 's/^/# /' "$work/err"
	all rhist-1 >"$work/by_shell"
	yes "$backend: $1: the last lines undo it" sh -e "$work/undo"
	no "$backend: $1: nothing of it is left" rmdir "$KERNEL/instances/rhist-1"
	"$rhist" "$@" --self --backend $backend -d 0.05 --keep >/dev/null 2>"$work/err" || sed 's/^/# /' "$work/err"
	all "$(ls "$KERNEL/instances" | grep '^rhist-')" >"$work/by_rhist"
	"$rhist" clean >/dev/null
	yes "$backend: $1: a shell makes of it what rhist makes" cmp "$work/by_shell" "$work/by_rhist" ||
		diff "$work/by_shell" "$work/by_rhist" | sed 's/^/# /'
	yes "$backend: $1: which are some triggers" grep -q ': hist:' "$work/by_rhist"
}

for backend in rhist c; do
	if ! rest_only; then
		try runqlat --slower 1ms --by comm
		try wakeuptime
		# \c, which ends the text of some shells' echo, and quotes.
		try count sched:sched_switch --where 'prev_comm ~ "*\c*" || next_comm == "it'\''s"'
		mkdir "$work/else where"
		mount -t tracefs tracefs "$work/else where"
		RHIST_TRACEFS="$work/else where" try syscount
		umount "$work/else where"
		rmdir "$work/else where"
	fi
	! have_probes || try funclatency vfs_read
	! have_probes || try biolatency
	! have_probes || try offcputime
done
finish
