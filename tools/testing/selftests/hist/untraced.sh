#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A hit calls nothing that can be traced: with the function tracer on, a trigger adds nothing to the
# trace, and no kprobe fits into its path. This holds for all triggers in which no hit can nest, and
# for each clock.
. "$(dirname "$0")/../lib/tracing.sh"

cd "$KERNEL" || exit 1
event=$TRACING/events/task/task_rename
hits=50

[ -e available_filter_functions ] && grep -qw function available_tracers || {
	skip "the function tracer sees no hit" "no function tracer"
	finish
}
mkfifo "$work/to" "$work/from" || exit 1
"$OUT/fire" -i <"$work/to" >"$work/from" &
fire=$!
exec 7>"$work/to" 8<"$work/from"

# hit N: makes the event happen N times; traces only these events, not the steps around them
hit()
{
	echo 1 >tracing_on
	echo "name rhist_a:$1" >&7
	read -r said <&8
	echo 0 >tracing_on
	[ -z "$said" ] || echo "# fire: $said"
}

# functions: prints the functions traced since the trace was emptied, with their counts, without
# those in interrupts: the third of a line's flags is "." only outside of them
functions()
{
	awk '$NF ~ /^<-/ && $(NF - 3) ~ /^..[.]/ { count[$(NF - 1)]++ }
	     END { for (name in count) print count[name], name }' trace
	echo >trace
}

echo 0 >tracing_on
echo 8192 >buffer_size_kb
echo $fire >set_ftrace_pid
echo function >current_tracer
echo >trace

# baseline: how often each function is called without a trigger of rhist
baseline()
{
	hit $hits
	functions >"$work/first"
	hit $hits
	functions >"$work/second"
	awk '$1 > most[$2] { most[$2] = $1 } END { for (name in most) print most[name], name }' \
		"$work/first" "$work/second" >"$work/without"
}

baseline
grep -q . "$work/without"
ok $? "the tracer sees the call"

# more: prints the functions called once more for each hit, or nearly
more()
{
	awk -v least=$((hits / 2)) 'NR == FNR { before[$2] = $1; next } $1 >= before[$2] + least { print $2 }' \
		"$work/without" "$work/with"
}

# quiet TRIGGER: checks that it counts, and that no function is called once more for each hit
quiet()
{
	if ! echo "$1" >"$event/trigger" 2>/dev/null; then
		ok 1 "$1: is taken"
		tail -n 3 "$TRACING/error_log" | sed 's/^/# /'
		return
	fi
	hit $hits
	total Hits "$event/hist" >"$work/counted"
	total Dropped "$event/hist" >"$work/dropped"
	functions >"$work/with"
	more >"$work/more"
	# Interrupts cause other functions each time.
	for _ in 1 2 3; do
		[ -s "$work/more" ] || break
		hit $hits
		functions >"$work/with"
		more | grep -xFf "$work/more" >"$work/again"
		mv "$work/again" "$work/more"
	done
	counted='' dropped=''
	read -r counted <"$work/counted"
	read -r dropped <"$work/dropped"
	# Starting a program renames its task, too.
	[ "${counted:-0}" -ge $hits ] && [ "$dropped" = 0 ] && [ ! -s "$work/more" ]
	ok $? "$1" || {
		echo "# counted: $counted, dropped: $dropped, traced for each hit:"
		sed 's/^/# /' "$work/more" | head -n 10
	}
	: >"$event/trigger"
}

# Some clocks are read from the kernel's clock source, which may be a device. C's triggers call it,
# too.
for name in read_hpet acpi_pm_read; do
	echo "999999 $name"
done >>"$work/without"
for clock in $(sed 's/[][]//g' trace_clock); do
	quiet "hist:keys=pid:vals=common_timestamp:clock=$clock"
done
# Each hit inserts a key, and reads the time.
quiet 'hist:keys=common_timestamp'
sed -i /^999999/d "$work/without"
quiet 'hist:keys=pid'
quiet 'hist:keys=pid:vals=oom_score_adj'
quiet 'hist:keys=pid if pid > 0'
quiet 'hist:keys=pid if newcomm ~ "rhist*" || common_cpu >= 0'
quiet 'hist:keys=pid if newcomm == "rhist_a" && common_cpu & CPUS{0-1}'
quiet 'hist:keys=common_pid.execname'
quiet 'hist:keys=pid.log2'
quiet 'hist:keys=pid.log2=5'
quiet 'hist:keys=pid.buckets=100'
quiet 'hist:keys=oldcomm,newcomm,pid.hex'
quiet 'hist:keys=common_cpu'
quiet 'hist:keys=common_comm'
quiet 'hist:keys=pid+oom_score_adj,pid/3:vals=(pid*2)'
quiet 'hist:keys=pid:vals=oom_score_adj.min,oom_score_adj.max,oom_score_adj.avg'
quiet 'hist:keys=pid:vals=oom_score_adj.dist'
quiet 'hist:keys=pid:vals=common_timestamp.dist=5:unit(us)'
quiet 'hist:keys=pid:ts0=common_timestamp'
quiet 'hist:keys=pid:ts0=common_timestamp,name=newcomm,n=pid+1'
quiet 'hist:keys=pid:x=pid:onmax($x).save(newcomm,oom_score_adj)'
quiet 'hist:keys=pid:x=pid:onchange($x).save(newcomm,oom_score_adj)'

# A latency that ends with the same event.
other=$TRACING/events/syscalls/sys_enter_prctl
[ -e "$other" ] && echo 'hist:keys=common_pid:ts0=common_timestamp' >"$other/trigger"
baseline
quiet 'hist:keys=common_pid:lat=common_timestamp-$ts0:onmax($lat).save(newcomm)'
quiet 'hist:keys=common_pid:vals=(common_timestamp-$ts0).dist'
quiet 'hist:keys=common_pid:vals=(common_timestamp-$ts0).max'
: >"$other/trigger"

# With set_event_pid, which selects the tasks whose hits are counted.
echo $fire >set_event_pid
baseline
quiet 'hist:keys=pid'
echo >set_event_pid

# An event whose records the kernel makes, and for which rhist's own file is enabled.
if echo 'e:eprobes/rhist_untraced task/task_rename pid=$pid:u32' >>dynamic_events 2>/dev/null; then
	echo 1 >events/eprobes/rhist_untraced/enable
	baseline
	echo 0 >events/eprobes/rhist_untraced/enable
	event=$TRACING/events/eprobes/rhist_untraced
	quiet 'hist:keys=pid'
	echo '-:eprobes/rhist_untraced' >>dynamic_events
else
	skip "a record that the kernel makes" "no event probes"
fi

# Parts of a hit that belong to the kernel, or to the C part of the module: a user's kprobe cannot
# be there.
echo nop >current_tracer
echo >set_ftrace_pid
echo 1408 >buffer_size_kb
echo 1 >tracing_on
if have_probes; then
	for function in sched_clock_cpu sched_clock trace_clock_global trace_clock_local trace_clock_jiffies \
		ktime_get_mono_fast_ns ktime_get_raw_fast_ns ktime_get_boot_fast_ns ktime_get_tai_fast_ns \
		rhist:rhist_global_clock rhist:rhist_local_clock rhist:rhist_tsc; do
		if echo "p:rhist_clock $function" >>kprobe_events 2>/dev/null; then
			ok 1 "no kprobe can be at $function"
			echo '-:rhist_clock' >>kprobe_events
		else
			ok 0 "no kprobe can be at $function"
		fi
	done
else
	skip "no kprobe can be at a clock" "no kprobes"
fi
exec 7>&- 8<&-
wait $fire
finish
