#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Every command of the kernel's documentation of histograms (Documentation/trace/histogram.rst) that
# writes to a file of the tracing directory, example by example: first in the kernel's own
# directory, then in the one under test. Both answer the same, and show the same triggers after each
# command. Where the document shows a histogram, ours has the same description, keys, values and
# saved fields.
#
# RHIST_KERNEL_SOURCE   the source of the kernel that is running
#
# Known differences, which are not looked at, and why:
#   sort= in the trigger line	C shows modifiers there, but does not accept them again
#   vals= in the document	older kernels did not list hitcount there
#   vals=bytes_req.buckets=32	C refuses it, since only keys have buckets, and shows no histogram
#   common_timestamp-ts0:	older kernels showed variables among the values
#   events of systems that this kernel lacks: these commands are skipped
. "$(dirname "$0")/../lib/tracing.sh"

document=$RHIST_KERNEL_SOURCE/Documentation/trace/histogram.rst
if [ ! -e "$document" ]; then
	skip "the commands of the kernel's documentation" "RHIST_KERNEL_SOURCE is not the source of a kernel"
	finish
fi

# --- contents of the document
#
# One line each:
#   example LINE		the ones above are removed
#   instead			the next command is another one for the trigger before
#   command LINE TEXT		TEXT has $newline for a newline
#   show FILE			this file is shown here
#   shown TEXT
# An example ends with its section, with a bullet, and with a cd. Some are for no event in
# particular, and in a literal block each: they get one with such fields, and lose the dots.
newline=$(printf '\001')
awk -v newline="$newline" '
	function example() { print "example", NR }
	function command(line, text,    target)
	{
		target = text
		sub(/.*>[ \\\001\t]*/, "", target)
		if (target ~ /^event[0-9]?\/trigger/) {
			if (block != last_block) example()
			last_block = block
			sub(/ \.\.\.\047? /, "\047 ", text)
			gsub(/field1/, "prio", text)
			sub(/event1\/trigger/, "events/sched/sched_waking/trigger", text)
			sub(/event2\/trigger/, "events/sched/sched_switch/trigger", text)
			sub(/event3\/trigger/, "events/sched/sched_wakeup/trigger", text)
			sub(/event\/trigger/, "events/sched/" (text ~ /next_pid/ ? "sched_switch" : "sched_waking") "/trigger", text)
		}
		if (instead) print "instead"
		instead = showing = 0
		print "command", line, text
		file = target
	}
	/^[0-9]+\.([0-9]+\.)? / || /^ *- / { example() }
	/::$/ { block++ }
	/equivalently/ { instead = 1 }
	collecting {
		text = text newline $0
		if (!/\\$/) { collecting = 0; command(first, text) }
		next
	}
	/^[ \t]*# cd / { example(); next }
	/^[ \t]*# echo / {
		first = NR; text = $0
		sub(/^[ \t]*# /, "", text)
		if (/\\$/) collecting = 1
		else command(first, text)
		next
	}
	/^[ \t]*# cat / {
		showing = $NF ~ /\/(hist|trigger);?$/
		if (showing) { sub(/;$/, "", $NF); print "show", $NF }
		next
	}
	/^[ \t]*# trigger info:/ && !showing { showing = sub(/trigger$/, "hist", file); print "show", file }
	/^[ \t]*# (ls|event histogram|tracer)/ { next }
	showing { print "shown", $0 }
' "$document" >"$work/document"

# A kernel that runs natively elsewhere has tested all that needs no network.
if rest_only; then
	needed='events/(net|tcp)/|recvfrom'
	awk '/^(command|show) / { left_out = /kmem|raw_syscalls|sys_enter_read\// } !(left_out && /^(command|show|shown)/)' \
		"$work/document" >"$work/rest"
	mv "$work/rest" "$work/document"
fi

# events: the ones that it names, except synthetic ones
events=$(sed -n 's/^command.*events\/\([a-z_]*\/[a-z_]*\)\/trigger.*/events\/\1/p' "$work/document" | grep -v synthetic | sort -u)

# --- playing it

clean()
{
	remove_triggers $events events/synthetic/*
	for name in $(sed 's/[ 	].*//' synthetic_events); do
		echo "!$name" >>synthetic_events
	done
	echo 0 >events/enable
	: >error_log
}

# Creates entries for the histograms of the document: by processes with the names used there.
cp "$(command -v dash)" "$work/cyclictest"
mkfifo "$work/fifo"
act()
{
	# A process that is created, sleeps, and reports its begin and end; the waiter is not
	# disturbed.
	"$work/cyclictest" -c '
		for i in 1 2 3 4; do
			printf start >trace_marker
			(:)
			printf end >trace_marker
			/bin/true
		done'
	# Also a task that is woken and has to wait, so that its latency is above zero even with a
	# clock that advances only with each tick. The waker makes sure that it sleeps, is not
	# preempted by it, and runs on for some ticks.
	chrt --idle 0 "$work/cyclictest" -c 'read -r line <"$1"' sh "$work/fifo" &
	exec 9>"$work/fifo"
	soon grep -q '^State:.S' /proc/$!/status
	echo >&9
	i=0
	while [ $((i += 1)) -lt 20000 ]; do :; done
	exec 9>&-
	wait $!
	fire recv 64:3
	fire tcp 8000
} >/dev/null 2>&1

# without_modifiers: of sort keys; and with hitcount in front, which older kernels did not show
without_modifiers()
{
	sed -E ':a; s/(:sort=[^: ]*)\.(sym-offset|sym|hex|execname|syscall|log2|buckets=[0-9]+|usecs|stacktrace)/\1/; ta
		/:vals=[^:]*hitcount/! s/:vals=/:vals=hitcount,/'
}

# histograms FILE: a line for each, with its description, and how its first entry begins
histograms()
{
	awk '
		function flush() { if (info != "" || names != "") print info "\t" names; info = names = ""; entries = 0 }
		function named(text,    word, i, n)
		{
			gsub(/[{},]/, " ", text)
			n = split(text, word, /[ \t]+/)
			for (i = 1; i <= n; i++) {
				if (word[i] !~ /^[A-Za-z_][A-Za-z_0-9]*:-?[0-9]*$/ && word[i] !~ /\.stacktrace$/) continue
				sub(/:.*|\.stacktrace$/, "", word[i])
				names = names " " word[i]
			}
		}
		/^[ \t]*# trigger info: / { flush(); info = $0; sub(/.*trigger info: /, "", info); within = 1; next }
		/^[ \t]*\{/ { if (!entries++) names = ""; within = 1 }
		/^[ \t]*(Totals:|Snapshot taken)/ { within = 0; flush() }
		# The last two may be in one line.
		/^[ \t]*(Snapshot taken|triggering value|triggered by)/ {
			if (/Snapshot/) print "\tSnapshot"
			if (match($0, /triggering value \{ [^}]*\}/)) print "\t" substr($0, RSTART, RLENGTH)
			if (match($0, /triggered by .*\{ [a-z_]*/)) print "\t" substr($0, RSTART, RLENGTH)
		}
		within && entries == 1 { named($0) }
		END { flush() }
	' "$1" | without_modifiers
}

# compare LINE FILE: checks FILE against the histograms that the document shows at that line
compare()
{
	histograms "$work/shown" >"$work/theirs"
	[ -s "$work/theirs" ] || return
	histograms "$2" >"$work/ours"
	if [ ! -s "$work/ours" ]; then
		echo "# line $1: nothing to be shown"
		return
	fi
	# Histograms without a description have entries; if one side has none, only the descriptions
	# are compared.
	awk -F'\t' '
		NR == FNR { ours[$1] = $2; shown[$2] = 1; next }
		$1 == "" && !($2 in shown) || $1 != "" && !($1 in ours) { print "the document has: " $0; bad = 1 }
		$1 != "" && $1 in ours && $2 != "" {
			if (ours[$1] == "") print "no entry: " $0
			else if (ours[$1] != $2) { print "the document has: " $0; bad = 1 }
		}
		END { exit bad }
	' "$work/ours" "$work/theirs" >"$work/differs"
	if ok $? "line $1: the histogram of the document"; then
		sed 's/^/# /' "$work/differs"
	else
		sed 's/^/# /' "$work/differs"
		sed 's/^/# ours: /' "$work/ours"
	fi
}

# play FORM: plays the example file of that name in this directory; prints the results of the
# commands
play()
{
	directory=$(pwd -P)
	touched=
	while read -r word rest; do
		case $word in
		instead) : >"$last" ;;
		command)
			line=${rest%% *}
			text=$(printf '%s\n' "${rest#* }" | sed -E "s#/sys/kernel/(debug/)?tracing#$directory#g" | tr "$newline" '\n')
			# The intended command: lines are joined, without blanks in a trigger except
			# before its filter.
			case $1$text in
			"meantecho 'hist:"*) text=$(printf '%s\n' "$text" | sed -E ':a; /\\$/ { N; s/[ \t]*\\\n[ \t]*//; ta }; s/([^ ])if ([a-z_]* *==)/\1 if \2/') ;;
			meant*) text=$(printf '%s\n' "$text" | sed -E ':a; /\\$/ { N; s/[ \t]*\\\n[ \t]*/ /; ta }') ;;
			esac
			target=$(printf '%s\n' "$text" | sed -nE '$s/.*[> \t]([^ \t]+)$/\1/p')
			target=${target#"$directory/"}
			echo "line $line: $text" | sed "s#$directory##g"
			case $target in
			events/synthetic/*) ;;
			*)
				if [ ! -e "$target" ]; then
					echo "no ${target%/*} here"
					continue
				fi ;;
			esac
			case $target$text in
			*synthetic_events*\'!*) ;;
			*synthetic_events*) definition=$text ;;
			*/trigger*) last=$target touched="$touched ${target%/trigger}" ;;
			esac
			if sh -c "$text" 2>"$work/said"; then
				echo OK
			else
				sed 's/.*: //' "$work/said"
				c_entries error_log
			fi
			: >error_log
			# The document goes on with the event whose removal it has shown.
			case $target$text in *synthetic_events*\'!*) sh -c "$definition" ;; esac
			cat synthetic_events
			for e in $(printf '%s\n' $touched | sort -u); do
				echo "$e:"
				cat "$e/trigger"
			done ;;
		show)
			file=$(printf '%s\n' "$rest" | sed -E 's#/sys/kernel/(debug/)?tracing/##')
			[ -e "$file" ] && [ ! "$compared" ] || continue
			act
			cat "$file" >"$work/file" || echo "$file is not to be read"
			# The text that follows it in the document.
			sed -n "/^command $line /,/^command [^ ]* *[^ ]*/p" "$work/example" |
				awk -v file="$rest" '$1 == "show" { on = $2 == file } $1 == "shown" && on { print substr($0, 7) }' >"$work/shown"
			case $file in */hist) compare "$line" "$work/file" >&3 ;; esac ;;
		esac
	done <"$work/example"
	clean 2>/dev/null
}

# both FORM LINE: the example on both sides
both()
{
	compared=1
	(cd "$KERNEL" && clean && play "$1") 2>"$work/clean" | without_modifiers >"$work/c"
	[ "$1" = printed ] || compared=
	(cd "$TRACING" && clean && play "$1") 3>&1 >"$work/rhist" 2>"$work/clean"
	without_modifiers <"$work/rhist" >"$work/rhist.same"
	same "$work/rhist.same" "example at line $2, as it is $1: answers and triggers" <"$work/c"
	grep -h '^no .* here$' "$work/rhist" >>"$work/absent"
	awk '/^line / { line = $0 } /^OK$/ { taken++ } /^[A-Z].* [a-z]/ { print "# neither takes " line ": " $0 } END { print taken + 0 }' \
		"$work/rhist" >"$work/answers"
	sed '$d' "$work/answers"
	tail -n 1 "$work/answers" >>"$work/taken"
	grep -c '^line ' "$work/rhist" >>"$work/played"
	[ "$1" = printed ] || tail -n 1 "$work/played" >>"$work/played.meant"
}

: >"$work/absent"
line=
: >"$work/example"
: >"$work/played.meant"
{
	cat "$work/document"
	echo example end
} | while IFS= read -r entry; do
	case $entry in
	"example "*)
		if grep -qE "^command.*${needed:-.}" "$work/example"; then
			both meant "$line"
			# Once more with quoted text taken as printed, backslashes included.
			! grep -qE "^command [^']*'[^']*\\\\$newline" "$work/example" || both printed "$line"
		fi
		line=${entry#example }
		: >"$work/example" ;;
	*) printf '%s\n' "$entry" >>"$work/example" ;;
	esac
done

sum() { awk '{ n += $1 } END { print n + 0 }' "$work/$1"; }
[ "$needed" ] || is "$(sum played.meant)" "$(grep -c '^[ 	]*# echo ' "$document")" "all commands of the document"
[ $((2 * $(sum taken))) -gt "$(sum played)" ]
ok $? "most of them are taken: $(sum taken) of $(sum played)"
sort "$work/absent" | uniq -c | while read -r count what; do
	skip "$count commands" "$what"
done
finish
