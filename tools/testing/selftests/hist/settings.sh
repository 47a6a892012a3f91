#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Effect of the other files of a tracing directory on histograms: the lists of tasks in
# set_event_pid and set_event_notrace_pid select the hits that are counted. No other
# setting keeps hits from being counted, except if it keeps marks from being recorded. C and rhist
# count the same hits at once, from each source.

. "$(dirname "$0")/../lib/tracing.sh"

if [ "$TRACING" = "$KERNEL" ]; then
	skip "C and rhist at once" "there is no rhist"
	finish
fi

GETPGID=events/syscalls/sys_enter_getpgid
GETSID=events/syscalls/sys_enter_getsid
PRINT=events/ftrace/print
X=instances/rhist_x
EMIT=instances/rhist_emit

# start: three programs that wait for orders
start()
{
	mkfifo "$work/a" "$work/b" "$work/c" "$work/from_a" "$work/from_b" "$work/from_c" || exit 1
	fire -c 0 -i <"$work/a" >"$work/from_a" &
	A=$!
	fire -c 0 -i <"$work/b" >"$work/from_b" &
	B=$!
	fire -c 0 -i <"$work/c" >"$work/from_c" &
	C=$!
	exec 3>"$work/a" 4<"$work/from_a" 5>"$work/b" 6<"$work/from_b" 7>"$work/c" 8<"$work/from_c"
	rm "$work/a" "$work/b" "$work/c" "$work/from_a" "$work/from_b" "$work/from_c"
}

stop()
{
	exec 3>&- 4<&- 5>&- 6<&- 7>&- 8<&-
	wait $A $B $C
}

# tell WHOM LINE: gives one of them an order, and waits for the answer
tell()
{
	case $1 in
	A) echo "$2" >&3 && read -r answer <&4 ;;
	B) echo "$2" >&5 && read -r answer <&6 ;;
	C) echo "$2" >&7 && read -r answer <&8 ;;
	esac
	[ -z "$answer" ] || echo "$1 could not: $2"
}

# all LINE: A does it 3 times, B 5 times, C 7 times: an @ stands for the number. So a sum shows
# whose hits are in it.
all()
{
	tell A "${1%@*}3${1#*@}"
	tell B "${1%@*}5${1#*@}"
	tell C "${1%@*}7${1#*@}"
}

# list DIR NAMES NAMES: sets both lists, the first in the kernel's directory and the second in
# rhist's
list()
{
	pids "$2" >"$KERNEL/$1/set_event_pid"
	pids "$3" >"$TRACING/$1/set_event_notrace_pid"
}

# pids NAMES: prints the pid of A, of B, or both for A,B; nothing for -
pids()
{
	case $1 in
	A) echo $A ;;
	B) echo $B ;;
	A,B) echo $A $B ;;
	esac
}

# True if other runs test the rest: each step has histograms of all sources, for half a second each
# on a slow kernel.
brief() { rest_only || [ "$SLOW" ]; }

# One line for each source of hits: its event, and an order to `fire` that makes it happen.
sources()
{
	echo 'syscalls/sys_enter_getpgid getpgid 7:@'
	brief || cat <<-END
	task/task_rename name rhist_name:@
	syscalls/sys_exit_getpgid getpgid 7:@
	syscalls/sys_enter_chdir chdir /rhist_nosuch:@
	synthetic/rhist_s getpgid 7:@
	END
	brief || [ ! -d events/user_events/rhist_fire ] || echo 'user_events/rhist_fire user 7:@'
	rest_only || [ ! -d events/rhist_events ] || echo 'rhist_events/numbers write /dev/rhist_events numbers task 0 0 @ 1'
	! have_probes || cat <<-END
	kprobes/rhist_k getpgid 7:@
	kprobes/rhist_r getpgid 7:@
	uprobes/rhist_u mark 7:@
	fprobes/rhist_f getpgid 7:@
	tracepoints/rhist_t name rhist_name:@
	eprobes/rhist_e getpgid 7:@
	END
}

begin()
{
	# Not in rhist's directory, which could not be unloaded then.
	cd "$KERNEL" || exit 1
	start
	mkdir $X $EMIT
	echo 'rhist_s u64 p' >>synthetic_events
	# In an instance without lists, so that all tasks fire it.
	echo 'hist:keys=common_pid:p=pid:onmatch(syscalls.sys_enter_getpgid).trace(rhist_s,$p)' >>$EMIT/$GETPGID/trigger
	tell A user\ 7
	insmod "$RHIST_EVENTS" || echo "# no events of a module"
	if have_probes; then
		for probe in "p:kprobes/rhist_k ${SYS_FUNCTION}getpgid" "r:kprobes/rhist_r ${SYS_FUNCTION}getpgid" \
			"p:uprobes/rhist_u $(command -v fire):$(fire offset)" "f:fprobes/rhist_f ${SYS_FUNCTION}getpgid" \
			"t:tracepoints/rhist_t task_rename" 'e:eprobes/rhist_e syscalls/sys_enter_getpgid p=$pid:u64'; do
			echo "$probe" >>dynamic_events
		done
	fi
	sources >"$work/sources"
	cut -d ' ' -f 2- "$work/sources" | sort -u >"$work/orders"
	is "$(attach . && every && counted .; detach .)" "$(each "C 15 rhist 15")" "each source counts"
}

end()
{
	stop
	remove_triggers $EMIT/$GETPGID
	rmdir $X $EMIT
	echo '!rhist_s u64 p' >>synthetic_events
	[ ! -d events/rhist_events ] || rmmod rhist_events
	sed -n '/^[prfte].*rhist_/s/^[a-z0-9]*:\([^ ]*\).*/-:\1/p' dynamic_events | sort >"$work/probes"
	while read -r probe; do
		echo "$probe" >>dynamic_events
	done <"$work/probes"
}

# every: each source gets its hits
every()
{
	while read -r line; do
		all "$line"
	done <"$work/orders"
}

# attach DIR [EVENT]: adds histograms of C and of rhist to EVENT, or to the events of all sources
attach()
{
	: >"$work/was_${1##*/}"
	files=
	for event in ${2:-$(cut -d ' ' -f 1 "$work/sources")}; do
		# A filter on a return value has a path of its own.
		case $event in
		syscalls/sys_exit_getpgid) trigger="hist:keys=common_pid if ret >= -3" ;;
		*) trigger=hist:keys=common_pid ;;
		esac
		for top in "$KERNEL" "$TRACING"; do
			files="$files $top/$1/events/$event/hist"
			said=$(io write "$top/$1/events/$event/trigger" a "$trigger")
			[ $said = OK ] || echo "$top/$1: $event: $said"
		done
	done
	echo "$files" >"$work/files_${1##*/}"
}

detach()
{
	for event in $(cut -d ' ' -f 1 "$work/sources") ftrace/print syscalls/sys_enter_getsid; do
		remove_triggers "$KERNEL/$1/events/$event" "$TRACING/$1/events/$event"
	done
}

# counted DIR: prints the hits of A, B and C since the last call, counted by C and by rhist
counted()
{
	read -r files <"$work/files_${1##*/}"
	awk -v state="$work/was_${1##*/}" -v pids=" $A $B $C " '
		FILENAME == state { was[$1] = $2; next }
		$2 == "common_pid:" && index(pids, " " $3 " ") { sum[FILENAME] += $NF }
		END {
			for (i = 2; i < ARGC; i += 2) {
				c = ARGV[i]
				r = ARGV[i + 1]
				name = c
				sub(".*/events/", "", name)
				sub("/hist$", "", name)
				print name ": C " (sum[c] - was[c]) " rhist " (sum[r] - was[r])
				print c, sum[c] + 0 >state
				print r, sum[r] + 0 >state
			}
		}' "$work/was_${1##*/}" $files
}

# each TEXT: prints it once for each source
each() { sed "s!^\([^ ]*\) .*!\1: $1!" "$work/sources"; }

# --- set_event_pid and set_event_notrace_pid

# Children of listed tasks. All hits count here, as the children's pids are none of A, B and C.
forks()
{
	for what in "A -" "- A"; do
		list . $what
		for fork in 0 1; do
			echo $fork >options/event-fork
			attach . syscalls/sys_enter_getpgid
			tell A "getpgid 7:2"
			tell A "fork getpgid 7:4"
			tell B "fork getpgid 7:9"
			echo "$what, event-fork $fork: C $(total Hits $GETPGID/hist) rhist $(total Hits "$TRACING/$GETPGID/hist")"
			detach .
		done
		soon only_a || cat set_event_pid set_event_notrace_pid
		echo 0 >options/event-fork
	done
	list . - -
}

# The kernel takes ended children off the list.
only_a() { [ "$(cat set_event_pid set_event_notrace_pid)" = $A ]; }

# scheduled EVENT FIRST SECOND: A and B run beside each other and wake the reader of their answers.
# An event of two tasks counts if one of them is listed, or not both are left out. Each line names
# the tasks that had hits without the other one.
scheduled()
{
	trigger="hist:keys=$2,$3:size=2048"
	filter="if $2 == $A || $2 == $B || $3 == $A || $3 == $B"
	for top in "$KERNEL" "$TRACING"; do
		io write "$top/events/$1/trigger" a "$trigger $filter" | grep -v OK
	done
	for what in "- -" "A -" "- A" "- A,B" "A,B B"; do
		list . $what
		asleep $A
		asleep $B
		for top in "$KERNEL" "$TRACING"; do
			echo "$trigger:clear $filter" >>"$top/events/$1/trigger"
		done
		for _ in 1 2 3; do
			echo "spin 20000" >&3
			echo "spin 20000" >&5
			read -r answer <&4
			read -r answer <&6
		done
		asleep $A
		asleep $B
		entries "events/$1/hist" | sort >"$work/c_counted"
		entries "$TRACING/events/$1/hist" | sort >"$work/rhist_counted"
		diff "$work/c_counted" "$work/rhist_counted"
		awk -v a=$A -v b=$B -v what="$what" '{
			gsub(",", "")
			with_a = $3 == a || $5 == a
			with_b = $3 == b || $5 == b
			if (with_a && !with_b) of_a = " A"
			if (with_b && !with_a) of_b = " B"
		} END { print what ":" of_a of_b }' "$work/rhist_counted"
	done
	list . - -
	remove_triggers events/$1 "$TRACING/events/$1"
}

# asleep PID: waits until a task sleeps, and is off its processor
asleep()
{
	until grep -q '^State:.S' /proc/$1/status; do :; done
	sleep 0.05
}

# step DIR EVENT COMMAND: prints the result of the write
step() { echo "$1 $3: $(io write "$1/$2/trigger" a "$3")"; }

# Tests all triggers of an event, in the current tracing directory.
scene()
{
	list . A -
	step . $GETSID hist:keys=common_pid:pause
	# A trigger that needs no record is called before anybody looks at the lists ...
	step . $GETPGID enable_hist:syscalls:sys_enter_getsid:5
	tell B "getpgid 7:2"
	cat $GETPGID/trigger $GETSID/trigger
	# ... unless something beside it needs one, paused or not.
	for beside in hist:keys=common_pid "hist:keys=pid:pause if pid == 8" "traceoff if pid == 123456"; do
		step . $GETPGID "$beside"
		tell B "getpgid 7:2"
		tell A getpgid\ 7
		cat $GETPGID/trigger $GETPGID/hist
		step . $GETPGID "!$beside"
		tell B getpgid\ 7
		cat $GETPGID/trigger
	done
	step . $GETPGID '!enable_hist:syscalls:sys_enter_getsid:5'
	step . $GETPGID 'disable_hist:syscalls:sys_enter_getsid:5 if pid == 7'
	cat $GETSID/trigger
	tell B "getpgid 7:2"
	cat $GETPGID/trigger $GETSID/trigger
	tell A "getpgid 7:2 8:2"
	cat $GETPGID/trigger $GETSID/trigger
	# Many at once.
	step . $GETPGID enable_hist:syscalls:sys_exit_getsid
	step . $GETPGID hist:keys=common_pid
	step . $GETPGID 'hist:keys=pid if pid == 7'
	step . $GETPGID "hist:keys=common_pid,pid:vals=pid if pid == 8 || common_pid == $B"
	step . $GETPGID hist:keys=pid.hex:pause
	all getpgid\ 7:@
	list . - A
	all getpgid\ 8:@
	list . - -
	all getpgid\ 9:@
	cat $GETPGID/trigger $GETPGID/hist
	remove_triggers $GETPGID $GETSID
	# A histogram of two directories: each trigger has the lists of its own.
	list . B -
	list $X A -
	step $X $GETPGID hist:name=rhist_n:keys=common_pid
	step . $GETSID hist:name=rhist_n:keys=common_pid
	all getpgid\ 7:@
	all getsid\ 7:@
	cat $GETSID/hist
	# In this order: C crashes otherwise.
	step . $GETSID '!hist:name=rhist_n:keys=common_pid'
	step $X $GETPGID '!hist:name=rhist_n:keys=common_pid'
	list . - -
	list $X - -
	# Marks count for any writer.
	list . A -
	step . $PRINT hist:keys=$COMM
	echo mark >trace_marker
	tell A "write trace_marker mark"
	cat $PRINT/hist
	step . $PRINT "!hist:keys=$COMM"
	list . - -
}

# An instance is removed with its lists and histograms, through each directory.
removed()
{
	for by in "$TRACING" "$KERNEL"; do
		list $X A -
		attach $X
		every
		# Otherwise C would never release the synthetic event.
		echo '!hist:keys=common_pid' >>$X/events/synthetic/rhist_s/trigger
		rmdir "$by/$X"
		every
		mkdir $X
		attach $X syscalls/sys_enter_getpgid
		all getpgid\ 7:@
		echo "$(cat $X/set_event_pid)$(counted $X)"
		detach $X
	done
}

# Lists and histograms come and go under hits.
under_load()
{
	: >"$work/load"
	while [ -e "$work/load" ]; do fire getpgid 7:100; done &
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		mkdir $X
		list $X A -
		for trigger in hist:keys=common_pid enable_hist:syscalls:sys_enter_getsid; do
			io write "$TRACING/$X/$GETPGID/trigger" a $trigger
		done
		total Hits "$TRACING/$X/$GETPGID/hist"
		rmdir $X
	done | sort | uniq -c | tr -s ' '
	rm "$work/load"
	wait $!
}

# The module goes while lists and histograms are in use, and comes back.
reloaded()
{
	# Without user events, which keep the module.
	stop
	sed -i /user/d "$work/sources" "$work/orders"
	start
	list . A -
	attach .
	every
	counted . >"$work/before"
	rmmod rhist
	every
	insmod "$RHIST_KO"
	detach .
	attach .
	every
	counted . | diff "$work/before" -
	list . - -
	every
	counted .
	detach .
}

# --- other settings

mask=$(cat "$KERNEL/tracing_cpumask")

enable_all()
{
	for event in $(cut -d ' ' -f 1 "$work/sources"); do echo $1 >events/$event/enable; done
}

filter_all()
{
	for event in $(cut -d ' ' -f 1 "$work/sources"); do echo "$1" >events/$event/filter; done
}

set_all()
{
	for event in $(cut -d ' ' -f 1 "$work/sources"); do echo "$1$event" | tr / : >>set_event; done
}

# Kept records fill the buffer.
fill()
{
	echo 4 >buffer_size_kb
	echo 0 >options/overwrite
	enable_all 1
	every
	every
	until [ "$(tell A "write trace_marker mark")" ]; do :; done
	counted . >"$work/before"
}

unfill()
{
	enable_all 0
	echo 1 >options/overwrite
	echo 64 >buffer_size_kb
	echo >trace
}

stop_on_free()
{
	echo 1 >options/disable_on_free
	echo >free_buffer
}

go_on()
{
	echo 0 >options/disable_on_free
	echo 1 >tracing_on
	echo 64 >buffer_size_kb
}

pause()
{
	echo 1 >options/pause-on-trace
	exec 9<trace
}

unpause()
{
	exec 9<&-
	echo 0 >options/pause-on-trace
}

# stack_tracer 0|1: it looks at the depth of the stack in one function
stack_tracer()
{
	[ $1 = 0 ] || echo ${SYS_FUNCTION}getpgid >stack_trace_filter
	echo $1 >/proc/sys/kernel/stack_tracer_enabled
	[ $1 = 1 ] || echo >stack_trace_filter
}

# sysctl NAME
sysctl() { echo "/proc/sys/kernel/$1|echo 1 >/proc/sys/kernel/$1|echo 0 >/proc/sys/kernel/$1"; }

# tracer NAME FILE: it traces the function of a system call that the file names. The filter alone
# spares it the other functions, which take seconds to patch.
tracer()
{
	change="echo ${SYS_FUNCTION}getpgid >set_ftrace_filter; echo ${SYS_FUNCTION}getpgid >$2; echo $1 >current_tracer"
	echo "$2 ($1)|$change|echo nop >current_tracer; echo >$2; echo >set_ftrace_filter"
}

# Settings that might seem to keep hits from being counted, but do not: a file that must exist, the
# change, and a command that undoes it.
settings()
{
	cat <<-END
	tracing_on|echo 0 >tracing_on|echo 1 >tracing_on
	tracing_cpumask|echo 0 >tracing_cpumask|echo $mask >tracing_cpumask
	buffer_size_kb|echo 4 >buffer_size_kb|echo 64 >buffer_size_kb
	per_cpu/cpu0/buffer_size_kb|echo 4 >per_cpu/cpu0/buffer_size_kb|echo 64 >buffer_size_kb
	buffer_subbuf_size_kb|echo 8 >buffer_subbuf_size_kb|echo 4 >buffer_subbuf_size_kb
	buffer_percent|echo 100 >buffer_percent|echo 50 >buffer_percent
	options/overwrite (the buffer is full)|fill|unfill
	trace|echo >trace|
	per_cpu/cpu0/trace|echo >per_cpu/cpu0/trace|
	options/pause-on-trace|pause|unpause
	free_buffer|echo >free_buffer|echo 64 >buffer_size_kb
	options/disable_on_free|stop_on_free|go_on
	snapshot|echo 1 >snapshot|echo 0 >snapshot
	trace_clock|echo counter >trace_clock|echo local >trace_clock
	current_tracer (nop)|echo nop >current_tracer|
	$(tracer function_graph set_graph_function)
	$(tracer function set_ftrace_filter)
	set_ftrace_notrace|echo ${SYS_FUNCTION}getpgid >set_ftrace_notrace|echo >set_ftrace_notrace
	set_ftrace_pid|echo $A >set_ftrace_pid|echo >set_ftrace_pid
	set_ftrace_notrace_pid|echo $A >set_ftrace_notrace_pid|echo >set_ftrace_notrace_pid
	max_graph_depth|echo 1 >max_graph_depth|echo 0 >max_graph_depth
	tracing_thresh|echo 1000000 >tracing_thresh|echo 0 >tracing_thresh
	saved_cmdlines_size|echo 1 >saved_cmdlines_size|echo 128 >saved_cmdlines_size
	syscall_user_buf_size|echo 0 >syscall_user_buf_size|echo 63 >syscall_user_buf_size
	events/sched/sched_switch/enable (all enabled)|enable_all 1|
	events/sched/sched_switch/enable (and disabled)|enable_all 0|
	set_event|set_all ''|
	set_event (!)|set_all '!'|
	set_event (truncated)|set_all ''; : >set_event|
	set_event (:mod:)|echo :mod:rhist_none >set_event|echo >set_event
	events/enable|echo 0 >events/enable|
	events/sched/sched_switch/filter|filter_all 'common_pid == 1'|filter_all 0
	events/sched/sched_switch/filter (enabled)|filter_all 'common_pid == 1'; enable_all 1|enable_all 0; filter_all 0
	$(sysctl tracepoint_printk)
	$(sysctl traceoff_on_warning)
	/proc/sys/kernel/stack_tracer_enabled|stack_tracer 1|stack_tracer 0
	END
	# One by one.
	brief || for option in options/*; do
		was=$(cat $option)
		echo "$option|echo $((1 - was)) >$option|echo $was >$option"
	done
}

# A setting that keeps marks from being recorded also keeps them from being counted. Same columns,
# plus the counts in the top directory and in the instance.
marks()
{
	cat <<-END
	trace_marker|||1 0
	options/markers|echo 0 >options/markers|echo 1 >options/markers|0 0
	tracing_on|echo 0 >tracing_on|echo 1 >tracing_on|0 0
	tracing_cpumask|echo 0 >tracing_cpumask|echo $mask >tracing_cpumask|0 0
	options/overwrite|fill|unfill|0 0
	options/pause-on-trace|pause|unpause|0 0
	options/disable_on_free|stop_on_free|go_on|0 0
	$X/options/copy_trace_marker|echo 1 >$X/options/copy_trace_marker|echo 0 >$X/options/copy_trace_marker|1 1
	$X/trace_marker|echo 0 >tracing_on; tell A "write $X/trace_marker mark"|echo 1 >tracing_on|0 1
	snapshot|echo 1 >snapshot|echo 0 >snapshot|1 0
	trace_clock|echo counter >trace_clock|echo local >trace_clock|1 0
	set_event_pid|list . B -|list . - -|1 0
	END
}

begin

attach .
while read -r pids notrace of_15; do
	list . $pids $notrace
	every
	is "$(counted .)" "$(each "C $of_15 rhist $of_15")" "set_event_pid $pids, set_event_notrace_pid $notrace"
done <<END
- - 15
A - 3
A,B - 8
- A 12
- A,B 7
A A 0
A,B B 3
END
detach .
attach .
every
is "$(counted .)" "$(each "C 3 rhist 3")" "the lists were there before the histograms"
list . B -
echo $A >>"$TRACING/set_event_pid"
every
is "$(counted .)" "$(each "C 8 rhist 8")" "a task is appended to another"
: >"$TRACING/set_event_pid"
every
is "$(counted .)" "$(each "C 15 rhist 15")" "there is no list any more"

attach $X
while read -r pids notrace x_pids x_notrace top x; do
	list . $pids $notrace
	list $X $x_pids $x_notrace
	every
	is "$(counted .)" "$(each "C $top rhist $top")" "set_event_pid $pids, set_event_notrace_pid $notrace beside an instance"
	# C counts an event probe's hits in the first directory that enables it.
	is "$(counted $X | sed '/eprobes/s/C [0-9]*//')" "$(each "C $x rhist $x" | sed '/eprobes/s/C [0-9]*//')" \
		"set_event_pid $x_pids, set_event_notrace_pid $x_notrace in an instance"
done <<END
A - - - 3 15
- - A - 15 3
A - B - 3 5
- A - B 12 10
END
list $X - -
list . - -
detach $X
detach .

settings >"$work/settings"
attach .
while IFS='|' read -r name do undo; do
	if [ ! -e "${name%% *}" ]; then
		skip "$name: no hit is lost" "there is none"
		continue
	fi
	eval "$do" >"$work/said" 2>"$work/errors"
	every
	eval "$undo" 2>&1
	is "$(cat "$work/said"; counted .)" "$(each "C 15 rhist 15")" "$name: no hit is lost"
done <"$work/settings"

marks >"$work/settings"
attach . ftrace/print
attach $X ftrace/print
while IFS='|' read -r name do undo want; do
	if [ ! -e "${name%% *}" ]; then
		skip "$name: marks" "there is none"
		continue
	fi
	eval "$do" >"$work/said" 2>"$work/errors"
	tell A "write trace_marker mark" >>"$work/errors"
	eval "$undo" 2>&1
	is "$(cat "$work/said"; counted .; counted $X)" \
		"$(printf 'ftrace/print: C %d rhist %d\n' ${want% *} ${want% *} ${want#* } ${want#* })" "$name: marks"
done <"$work/settings"
detach $X
detach .

if grep -q __filename_val events/syscalls/sys_enter_chdir/format; then
	chdir=events/syscalls/sys_enter_chdir
	for top in "$KERNEL" "$TRACING"; do echo hist:keys=__filename_val >>"$top/$chdir/trigger"; done
	for size in 4 0 165 63; do
		for dir in . instances/rhist; do echo $size >$dir/syscall_user_buf_size; done
		fire chdir "/rhist_nosuch$(printf %0200d 0)" /rhist:2
	done
	is "$(entries "$TRACING/$chdir/hist")" "$(entries $chdir/hist)" \
		"syscall_user_buf_size, here that of instances/rhist"
	remove_triggers "$KERNEL/$chdir" "$TRACING/$chdir"
else
	skip "syscall_user_buf_size" "no strings in events of system calls"
fi
attach . syscalls/sys_enter_getsid
echo '!hist:keys=common_pid' >>$GETSID/trigger
is "$(cat $GETSID/enable)" 0 "no event is enabled for a histogram, not even softly"
detach .
if have_probes; then
	while read -r event file column line; do
		profiled() { awk -v name=${event#*/} -v column=$column '$(column - 1) == name { print $column }' $file; }
		attach . $event
		echo '!hist:keys=common_pid' >>events/$event/trigger
		before=$(profiled)
		all "$line"
		is $(($(profiled) - before)) 15 "$file has the hits of histograms"
		detach .
	done <<-END
	kprobes/rhist_k kprobe_profile 2 getpgid 7:@
	uprobes/rhist_u uprobe_profile 3 mark 7:@
	END
else
	skip "kprobe_profile" "no kprobes"
	skip "uprobe_profile" "no uprobes"
fi

is "$(forks 2>&1)" "A -, event-fork 0: C 2 rhist 2
A -, event-fork 1: C 6 rhist 6
- A, event-fork 0: C 13 rhist 13
- A, event-fork 1: C 9 rhist 9" "children of those that are listed"
for event in "sched_switch prev_pid next_pid" "sched_waking common_pid pid" "sched_wakeup common_pid pid"; do
	scheduled sched/$event >"$work/said" 2>&1
	is "$(sed -n '/^A -:\|^[^-A]/p' "$work/said")" "A -: A" "$event counts for both tasks"
	sed 's/^/# /' "$work/said"
done
(cd "$KERNEL" && scene) >"$work/kernel" 2>&1
(cd "$TRACING" && scene) >"$work/rhist" 2>&1
yes "the kernel's own triggers play the scene" [ "$(grep -c hitcount: "$work/kernel")" -gt 12 ]
same "$work/rhist" "rhist plays it to the byte" <"$work/kernel"
is "$(removed 2>&1)" "syscalls/sys_enter_getpgid: C 15 rhist 15
syscalls/sys_enter_getpgid: C 15 rhist 15" "an instance goes with its lists and histograms"
rmdir $X
is "$(under_load 2>&1)" " 10 0
 20 OK" "instances with lists come and go under load"
mkdir $X
reloaded >"$work/said" 2>&1
is "$(cat "$work/said")" "$(each "C 15 rhist 15")" "the module goes while there are lists"
end
finish
