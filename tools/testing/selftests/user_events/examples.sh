#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The examples of tools/user_events work as Documentation/user_events.rst describes.

. "$(dirname "$0")/../lib/tracing.sh"

event=events/user_events/request
cd "$KERNEL" || exit 1

for program in request-c request-rs; do
	: >trace
	$program 30 >"$work/said" 2>&1 &
	soon [ -e $event/format ]
	yes "$program: its event is there" [ -e $event/format ]
	yes "$program: a histogram of it" sh -c "echo 'hist:keys=path,status:sort=path' >>$TRACING/$event/trigger"
	echo 1 >$event/enable
	sleep 1
	echo 0 >$event/enable
	sed -n 's/^.*: request: //p' trace >"$work/lines"
	wait $!
	read -r told of count <"$work/said"
	# The histogram has listened from before the first line until after the program's end.
	hits=$(total Hits "$TRACING/$event/hist")
	sed -n '/^{/ s/hitcount: *[0-9]*/N/p' "$TRACING/$event/hist" >"$work/entries"

	lines=$(wc -l <"$work/lines")
	yes "$program: lines in trace" [ "$lines" -ge 3 ]
	is "$(sed -E 's/^id=0x[0-9a-f]+ \([0-9]+\) //' "$work/lines" | sort -u)" \
		"status=0x194 (404) path=/missing
status=0xc8 (200) path=/
status=0xc8 (200) path=/about" "$program: which say what it wrote"
	is "$(sed -E 's/^id=0x[0-9a-f]+ \(([0-9]+)\) .*/\1/' "$work/lines")" \
		"$(seq "$(sed -nE '1s/.*\(([0-9]+)\) status.*/\1/p' "$work/lines")" 1 \
			"$(sed -nE '$s/.*\(([0-9]+)\) status.*/\1/p' "$work/lines")")" "$program: of each request"
	is "$(sed -E 's/ +/ /g; s/ ,/,/' "$work/entries")" \
		"{ path: /, status: 200 } N
{ path: /about, status: 200 } N
{ path: /missing, status: 404 } N" "$program: the histogram has the same"
	# Where the kernel has user events, the programs find those: a listener keeps such an event,
	# some moments before the histogram counts.
	early=0
	[ user_events_data -ef "$TRACING/user_events_data" ] || early=2
	yes "$program: it told of those, and of no others" \
		[ "$lines" -le "$hits" -a "$hits" -le "$told" -a "$told" -le $((hits + early)) -a "$of $count" = "of 30" ]
	yes "$program: the event stays for its histogram" [ -e $event ]
	echo '!hist:keys=path,status:sort=path' >>"$TRACING/$event/trigger"
	yes "$program: and goes with it" soon [ ! -e $event ]
done
finish
