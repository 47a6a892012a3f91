#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Histograms of writes to trace_marker: rhist answers, shows and logs the same as C, and the
# kernel's own files do not show that anybody else listens.

. "$(dirname "$0")/../lib/tracing.sh"

PRINT=events/ftrace/print
M=instances/rhist_m

step() { echo "$1: $(io write $PRINT/trigger a "$1")"; }

show() { cat $PRINT/trigger $PRINT/hist; }

mark() { for text; do printf '%s' "$text" >trace_marker; done; }

scene()
{
	: >error_log
	show
	step "hist:keys=$COMM"
	step 'hist:keys=ip.sym:vals=common_type if buf == "start"'
	step "hist:keys=ip.sym,$COMM:sort=$COMM if buf ~ \"*art*\" && buf != \"start\""
	step 'hist:keys=buf'
	step 'hist:keys=ip:vals=buf'
	step 'hist:keys=ip if buf == 1'
	step 'hist:keys=ip if nosuch == 1'
	step "hist:keys=$COMM"
	mark start start stop restart "$(printf 'start\n')x" art "
start"
	echo start >trace_marker
	show
	step "hist:keys=$COMM:pause"
	mark start
	step '!hist:keys=ip.sym:vals=common_type if buf == "start"'
	step 'disable_hist:syscalls:sys_enter_getpgid:5 if buf == "off"'
	step 'enable_hist:ftrace:print'
	io write events/syscalls/sys_enter_getpgid/trigger a hist:keys=pid
	mark on off
	fire getpgid 1
	cat events/syscalls/sys_enter_getpgid/hist
	show
	# Recording is off, so nothing is counted.
	echo 0 >tracing_on
	step "hist:keys=$COMM:cont"
	mark start
	echo 1 >tracing_on
	show
	step "hist:keys=$COMM:clear"
	mark $(seq 1000)
	show
	c_entries error_log
	: >$PRINT/trigger
	: >events/syscalls/sys_enter_getpgid/trigger
	: >error_log
	mark start
	show
}

for where in . $M; do
	[ $where = . ] || mkdir "$KERNEL/$where"
	(cd "$KERNEL/$where" && scene) >"$work/kernel" 2>&1
	(cd "$TRACING/$where" && scene) >"$work/rhist" 2>&1
	is "$(grep -c 'hitcount: *1000$' "$work/kernel")" 1 "the kernel's own triggers play the scene in $where"
	same "$work/rhist" "rhist plays it to the byte" <"$work/kernel"
done

cd "$TRACING" || exit 1
listed() { cat "$KERNEL/$PRINT/trigger" && list_triggers "$KERNEL" ftrace; }
before=$(listed)
io write $PRINT/trigger a hist:keys=$COMM >/dev/null
if [ "$TRACING" != "$KERNEL" ]; then
	is "$(listed)" "$before" "the kernel's own files do not show that somebody listens"
	io write "$KERNEL/$PRINT/trigger" a hist:keys=$COMM >/dev/null
	mark one two
	is "$(total Hits $PRINT/hist) $(total Hits "$KERNEL/$PRINT/hist")" "2 2" "both count at once"
	: >"$KERNEL/$PRINT/trigger"
	mark three
	is "$(total Hits $PRINT/hist) $(cat "$KERNEL/$PRINT/hist")" "3 " "and the one without the other"
fi
echo other >$M/trace_marker
mark here
is "$(total Hits $PRINT/hist)" "$([ "$TRACING" = "$KERNEL" ] && echo 1 || echo 4)" "marks of other instances do not count"
is "$(cat $M/$PRINT/hist)" "" "nor have those a histogram"
is "$(io write $M/$PRINT/trigger a hist:keys=$COMM)" OK "unless they get one"
echo other >$M/trace_marker
is "$(total Hits $M/$PRINT/hist)" 1 "which counts their own marks"
: >$PRINT/trigger
is "$(total Hits $M/$PRINT/hist)" 1 "and stays without the first"

if [ "$TRACING" = "$KERNEL" ]; then
	yes "an instance may go with its histogram" rmdir $M
	mkdir $M
else
	for by in "$TRACING" "$KERNEL"; do
		is "$(rmdir "$by/$M" 2>&1 | grep -c 'busy$')" 1 "an instance stays as long as its marks are counted"
	done
	: >$M/$PRINT/trigger
fi

# Writes marks while histograms and the instance come and go.
under_load()
{
	while [ -e "$work/load" ]; do echo mark >$M/trace_marker; done 2>/dev/null
}
: >"$work/load"
under_load &
for _ in 1 2 3 4 5 6 7 8 9 10; do
	until rmdir $M 2>/dev/null; do :; done
	mkdir $M
	io write $M/$PRINT/trigger a hist:keys=$COMM
	cat $M/$PRINT/hist >/dev/null
	: >$M/$PRINT/trigger
done | sort | uniq -c | tr -s ' ' >"$work/said"
rm "$work/load"
wait
is "$(cat "$work/said")" " 10 OK" "instances with histograms of marks come and go"
yes "nothing keeps the last one" rmdir $M

io write $PRINT/trigger a hist:keys=common_stacktrace >/dev/null
mark here
is "$(grep -c '^ *\(write_marker_to_buffer\|tracing_mark_write\)+' $PRINT/hist)" "$(grep -c mark $PRINT/hist)" \
	"the stack has what writes the mark"
is "$(sed -n '/^{ common_stacktrace/ { n; s/^ *\([a-z_]*\)+.*/\1/p }' $PRINT/hist | grep -c mark)" 1 "and begins there"
: >$PRINT/trigger

finish
