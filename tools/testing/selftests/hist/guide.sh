#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Every command of Documentation/guide.rst, question by question, while processes do a little of everything. Where the
# document shows what a command prints, it prints the same but for names and numbers: the same triggers, with the same
# keys, values and totals, and of each something.
#
# RHIST_GUIDE   a folder for what the commands print, to renew the document from
. "$(dirname "$0")/../lib/tracing.sh"

top=$here/../../../..
PATH=$PATH:$top/tools
cd "$TRACING" || exit 1
if ! have_probes; then
	skip "the commands of the guide" "this kernel has not all of these events"
	finish
fi

# --- what the document has
#
# One line each, the text behind a tab:
#   question LINE	its title
#   command LINE	of the shell
#   prints LINE		a line that the last command has printed
awk '
	/^===/ && last != "" { print "question " NR - 1 "\t" last }
	/^    rhist# / { line = NR; command = ""; within = 1; last = "" }
	/^    rhist# /, !/\\$/ {
		command = command substr($0, command == "" ? 12 : 8)
		if (!sub(/\\$/, "", command)) print "command " line "\t" command
		next
	}
	/^[^ ]/ { within = 0 }
	within && /^    ./ { print "prints " NR "\t" substr($0, 5) }
	{ last = $0 }
' "$top/Documentation/guide.rst" >"$work/document"

# --- playing it

loop=
clean()
{
	[ ! "$asker" ] || kill "$asker"
	asker=
	echo >set_event
	remove_triggers $(sed -n 's/^\([a-z_0-9]*\):\([a-z_0-9]*\) .*/events\/\1\/\2/p' show_event_triggers | sort -u)
	for name in $(sed 's/[ 	].*//' synthetic_events); do
		echo "!$name" >>synthetic_events
	done
	! grep -q :kprobes/opened "$KERNEL/kprobe_events" || echo '-:opened' >>"$KERNEL/kprobe_events"
	: >error_log
} 2>/dev/null

# act: files, a disk, pipes, timers, signals, packets, and processes that have some time to live
act()
{
	cat /rhist.none /proc/self/maps
	kill -USR1 "$(sh -c 'sleep 10 >/dev/null & echo $!')"
	dd if="$loop" of=/dev/null bs=64k count=20 iflag=direct
	dd if=/dev/zero of="$loop" bs=16k count=20 oflag=direct
	for writer in 1 2 3 4; do
		dd if=/dev/zero bs=1 count=1000 &
	done | wc -c
	fire tcp 4000
} >/dev/null 2>&1

# shape: of what a command prints, each line once: descriptions as they are, of all else the names
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

# run LINE COMMAND: it succeeds
run()
{
	case $2 in cat\ *) act ;; esac
	case $2 in
	*\&)
		sh -c "$2 echo \$! >'$work/asker'" >"$work/said" 2>&1
		read -r asker <"$work/asker"
		: >"$work/printed" ;;
	*) sh -c "$2" >"$work/printed" 2>&1 ;;
	esac
	ok $? "line $1: $2" || sed 's/^/# /' "$work/printed" error_log
	[ ! "$RHIST_GUIDE" ] || cp "$work/printed" "$RHIST_GUIDE/$1"
}

# shown: runs the last command; what the document shows of it is what it prints
shown()
{
	[ "$line" ] || return
	case $command in
	*/exceptions/*)
		if [ ! -d "$KERNEL/events/exceptions" ]; then
			skip "line $line: $command" "only x86 has these events"
			line=
			return
		fi ;;
	esac
	run "$line" "$command"
	if [ -s "$work/shown" ]; then
		shape "$work/shown" >"$work/shape"
		shape "$work/printed" >"$work/got.shape"
		same "$work/got.shape" "line $line: it prints what the guide shows" <"$work/shape"
		! grep -q 'Hits: 0$' "$work/printed"
		ok $? "line $line: none of its histograms is empty"
	elif [ -s "$work/printed" ]; then
		ok 1 "line $line: it prints nothing, as the guide shows" || sed 's/^/# /' "$work/printed"
	fi
	line=
}

modprobe loop 2>/dev/null
truncate -s 16M "$work/disk" && loop=$(losetup -f --show "$work/disk") || skip "a disk" "no loop device"
asker= line=
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
	question*) clean ;;
	command*) line=${what#* } command=$text ;;
	esac
done <"$work/document"
shown
clean
[ ! "$loop" ] || losetup -d "$loop"
[ "$(grep -c '^question.*?$' "$work/document")" -ge 20 ]
ok $? "questions: $(grep -c '^question.*?$' "$work/document")"
finish
