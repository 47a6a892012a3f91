#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Every command of Documentation/guide.rst, question by question, while processes do a little of
# everything. Where the guide shows output, the command prints the same except for names and
# numbers: the same triggers, with the same keys, values and totals, and some of each. The last
# commands of each question undo it.
#
# RHIST_GUIDE   a folder for the output of the commands, to renew the document from
. "$(dirname "$0")/../lib/tracing.sh"

top=$here/../../../..
PATH=$(dirname "$RHIST_COMMAND"):$PATH
cd "$TRACING" || exit 1
if ! have_probes; then
	skip "the commands of the guide" "this kernel has not all of these events"
	finish
fi

# --- contents of the document
#
# One line each, PLACE a file and a line of it, the text behind a tab:
#   question PLACE	its title
#   command PLACE	of the shell
#   prints PLACE	a line that the last command has printed
cd "$top" || exit 1
awk '
	{ place = FILENAME ":" FNR }
	/^===+$/ && last != "" { print "question " place "\t" last }
	/^    rhist# / { line = place; command = ""; within = 1; last = "" }
	/^    rhist# /, !/\\$/ {
		command = command substr($0, command == "" ? 12 : 8)
		if (!sub(/\\$/, "", command)) print "command " line "\t" command
		next
	}
	/^[^ ]/ { within = 0 }
	within && /^    ./ { print "prints " place "\t" substr($0, 5) }
	{ last = $0 }
' Documentation/guide.rst >"$work/document"
cd "$TRACING" || exit 1

# --- playing it

loop= group=
# Probes of the kernel's functions, by the document's names.
probes="opened fault_end fault"
clean()
{
	[ ! "$asker" ] || kill "$asker"
	asker=
	echo >set_event
	remove_triggers $(sed -n 's/^\([a-z_0-9]*\):\([a-z_0-9]*\) .*/events\/\1\/\2/p' show_event_triggers | sort -u)
	for name in $(sed 's/[ 	].*//' synthetic_events); do
		echo "!$name" >>synthetic_events
	done
	for name in $probes; do
		! grep -q ":kprobes/$name " "$KERNEL/kprobe_events" || echo "-:$name" >>"$KERNEL/kprobe_events"
	done
	: >error_log
} 2>/dev/null

# undone: checks that the last question has left nothing
undone()
{
	[ "$asked" ] || return
	{
		grep hist: show_event_triggers
		cat synthetic_events
		for name in $probes; do
			grep ":kprobes/$name " "$KERNEL/kprobe_events"
		done
	} >"$work/left"
	[ ! -s "$work/left" ]
	ok $? "$asked: its last commands undo what it has done" || sed 's/^/# /' "$work/left"
	asked=
}

# act: uses files, a disk, pipes, timers, signals, packets, and processes that live for a while
act()
{
	cat /rhist.none /proc/self/maps
	kill -USR1 "$(sh -c 'sleep 10 >/dev/null & echo $!')"
	dd if="$loop" of=/dev/null bs=64k count=20 iflag=direct
	dd if=/dev/zero of="$loop" bs=16k count=20 oflag=direct
	(
		[ ! "$group" ] || echo $(sh -c 'echo $PPID') >"$group/cgroup.procs"
		dd if=/dev/zero of="$work/written" bs=1M count=4
	)
	for writer in 1 2 3 4; do
		dd if=/dev/zero bs=1 count=1000 &
	done | wc -c
	fire tcp 4000
} >/dev/null 2>&1

# shape: reduces the output of a command to its shape, each line once: descriptions unchanged, of
# all other lines the names
shape()
{
	awk '
		function named(text,    word, i, n, names)
		{
			gsub(/[{},]/, " ", text)
			n = split(text, word, /[ \t]+/)
			for (i = 1; i <= n; i++)
				if (word[i] ~ /^[A-Za-z_][A-Za-z_0-9]*:-?[0-9]*$/) {
					sub(/:.*/, "", word[i])
					names = names " " word[i]
				}
			return names
		}
		/^# trigger info: / { print; next }
		/^#/ || /^$/ || /^\.\.\.$/ { next }
		/^\{/ { entry = "" }
		/^\{/, /\} hitcount:/ { entry = entry " " $0; if (!/\} hitcount:/) next; $0 = entry }
		{ print named($0) }
	' "$1" | sort -u
}

# is_empty FILE: it shows a histogram without entries
is_empty()
{
	grep -q '^# event histogram' "$1" && ! grep -q '^{' "$1"
}

# run PLACE COMMAND: checks that it succeeds
run()
{
	case $2 in cat\ *) act ;; esac
	case $2 in
	*\&)
		sh -c "$2 echo \$! >'$work/asker'" >"$work/said" 2>&1
		read -r asker <"$work/asker"
		# Wait for its event before using it: a machine may be slow.
		soon test -e events/user_events/request
		: >"$work/printed" ;;
	*)
		# On a busy machine some events, such as waiting for a lock, may not happen at
		# first.
		for again in 1 2 3 4 5; do
			sh -c "$2" >"$work/printed" 2>&1
			status=$?
			is_empty "$work/printed" || break
			act
		done
		[ $status = 0 ] ;;
	esac
	ok $? "$1: $2" || sed 's/^/# /' "$work/printed" error_log
	[ ! "$RHIST_GUIDE" ] || cp "$work/printed" "$RHIST_GUIDE/${1##*/}"
}

# shown: runs the last command and compares its output with the document's
shown()
{
	[ "$line" ] || return
	lacking=
	case $command in
	*/exceptions/*) [ -d "$KERNEL/events/exceptions" ] || lacking="only x86 has these events" ;;
	*/mod_memcg_*) [ -d "$KERNEL/events/memcg" ] || lacking="this kernel is older than these events" ;;
	*/block/* | */synthetic/disk/*) [ "$loop" ] || lacking="there is no disk" ;;
	esac
	if [ "$lacking" ]; then
		skip "$line: $command" "$lacking"
		line=
		return
	fi
	run "$line" "$command"
	if [ -s "$work/shown" ]; then
		shape "$work/shown" >"$work/shape"
		shape "$work/printed" >"$work/got.shape"
		same "$work/got.shape" "$line: it prints what the guide shows" <"$work/shape"
		! grep -q 'Hits: 0$' "$work/printed"
		ok $? "$line: none of its histograms is empty"
	elif [ -s "$work/printed" ]; then
		ok 1 "$line: it prints nothing, as the guide shows" || sed 's/^/# /' "$work/printed"
	fi
	line=
}

# A control group for processes of act().
if [ -e /sys/fs/cgroup/cgroup.subtree_control ]; then
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir /sys/fs/cgroup/rhist_guide && group=/sys/fs/cgroup/rhist_guide
fi
modprobe loop 2>/dev/null
truncate -s 16M "$work/disk" && loop=$(losetup -f --show "$work/disk") || skip "a disk" "no loop device"
asker= line= asked=
clean
tab=$(printf '\t')
while IFS=$tab read -r what text; do
	case $what in
	prints*) printf '%s\n' "$text" >>"$work/shown" ;;
	*)
		shown
		: >"$work/shown" ;;
	esac
	case $what in
	question*)
		undone
		clean ;;
	command*) line=${what#* } command=$text asked=$line ;;
	esac
done <"$work/document"
shown
undone
clean
[ ! "$group" ] || rmdir "$group"
[ ! "$loop" ] || losetup -d "$loop"
[ "$(grep -c '^question.*?$' "$work/document")" -ge 20 ]
ok $? "questions: $(grep -c '^question.*?$' "$work/document")"
finish
