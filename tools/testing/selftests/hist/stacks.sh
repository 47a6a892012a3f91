#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Stacks by rules that are learned from the kernel's unwinder (rust/stack/orc.c): here each one is
# compared with the unwinder's, in every context, while return addresses are replaced by kretprobes
# and the function graph tracer. The first difference would end the use of rules, and show in
# hist_stats.

. "$(dirname "$0")/../lib/tracing.sh"

walks()
{
	sed -n 's/^stacks: //p' "$TRACING/hist_stats"
}

# number WORD: prints the number before this word
number()
{
	walks | sed -n "s/.*[^0-9]\([0-9][0-9]*\) $1.*/\1/p"
}

load()
{
	rmmod rhist && insmod "$RHIST_KO" "$@"
}

# An emulated processor takes a quarter of a millisecond to compare a stack, beside other hits.
seconds=2 most=50000 calls=500 folders="/proc/self/task /sys/kernel/tracing/rhist/events/sched/sched_switch"
[ -z "$LONG$SLOW" ] || calls=2000 folders="/proc/self /sys/kernel/tracing/rhist/events/sched"
if [ "$LONG" ]; then
	seconds=120 most=2000000
elif [ "$SLOW" ]; then
	seconds=20 most=20000
fi

# watch EVENT...: count by stack
watch()
{
	for event; do
		[ ! -e "$TRACING/events/$event/trigger" ] ||
			echo 'hist:keys=common_stacktrace:size=2048' >"$TRACING/events/$event/trigger"
	done
}

watched()
{
	cd "$TRACING/events" && grep -l '^hist:keys=common_stacktrace' */*/trigger | sed 's|/trigger||'
}

# Interrupts of every kind that nest, and tasks in system calls, with deep stacks: for so many
# seconds, but each at least once.
busy()
{
	end=$(($(date +%s) + $1))
	again() { [ "$(date +%s)" -lt $end ]; }
	(
		while :; do
			for context in softirq hardirq nmi; do
				echo "numbers $context 0 1 400 40" >/dev/rhist_events
			done
			again || break
		done
	) &
	(
		while :; do
			taskset 1 sh -c 'echo "nested task 0 1 20 5" >/dev/rhist_events'
			again || break
		done
	) &
	(
		while :; do
			ls -R $folders >/dev/null 2>&1
			fire getpgid 1:$calls
			cat /proc/stat /proc/meminfo >/dev/null
			echo x >"$work/file" && sync "$work/file" 2>/dev/null
			again || break
		done
	) &
	wait
}

if walks | grep -q 'by the unwinder'; then
	is "$(walks)" "by the unwinder" "this kernel has no unwinder to learn from"
	finish
	exit
fi
yes "the module is loaded" load
yes "no rule is known" [ "$(number rules)" = 0 ]
watch raw_syscalls/sys_enter
ls / >/dev/null
remove_triggers "$TRACING/events/raw_syscalls/sys_enter"
yes "rules are learned" [ "$(number rules)" -gt 0 ]
yes "loaded with stack_check=0" load stack_check=0
is "$(walks)" "by the unwinder" "then the unwinder walks all"
yes "loaded with stack_check=1" load stack_check=1
# Hits of the deepest nesting leave little of the stack for a comparison.
[ -z "$LONG" ] || yes "hits that nest as deep as they can are compared, too" "$OUT/chains"
yes "the events are there" insmod "$RHIST_EVENTS"

cd "$TRACING/events"
watch $(ls -d sched/sched_[a-v]* sched/sched_wak* irq/* timer/* kmem/kmalloc kmem/mm_page_alloc kmem/mm_page_free signal/* task/* \
	workqueue/* raw_syscalls/* syscalls/sys_*_getpgid power/cpu_idle rhist_events/numbers rhist_events/nested 2>/dev/null)
cd "$here"
echo "# $(watched | wc -l) events"

busy $((seconds / 2))
echo "# $(walks)"
asked=$(number frames)

# A function that aligns its stack has its sp in another register for some instructions. The
# unwinder lacks a rule for a task that is interrupted there, and warns in the kernel's log if it is
# asked without the registers.
optimized=$(cat /proc/sys/debug/kprobes-optimization)
echo 0 >/proc/sys/debug/kprobes-optimization
offset=0
while [ $offset -lt 48 ]; do
	# Refused in the middle of an instruction.
	echo "p:rhist_a$offset notify_change+$offset" >>"$KERNEL/kprobe_events" && watch "kprobes/rhist_a$offset"
	offset=$((offset + 1))
done 2>/dev/null
aligned=$(watched | grep '^kprobes/rhist_a')
touch "$work/file" && chmod 600 "$work/file"
counted=$(for event in $aligned; do grep '^    Hits: [1-9]' "$TRACING/events/$event/hist"; done | wc -l)
yes "instructions of a function that aligns its stack: $counted" [ "$counted" -ge 5 ]
for event in $aligned; do
	remove_triggers "$TRACING/events/$event"
	echo "-:$event" >>"$KERNEL/kprobe_events"
done
echo "$optimized" >/proc/sys/debug/kprobes-optimization

echo "p:rhist_sp ${SYS_FUNCTION}getpgid
r:rhist_sr ${SYS_FUNCTION}getpgid
r:rhist_sv vfs_read
r:rhist_so do_sys_openat2
r:rhist_st ktime_get" | while read -r line; do
	echo "$line" >>"$KERNEL/kprobe_events" || echo "# no $line"
done
watch kprobes/rhist_sp kprobes/rhist_sr kprobes/rhist_sv kprobes/rhist_so kprobes/rhist_st
busy "$seconds"
echo "# with kretprobes: $(walks)"

# The unwinder warns in the kernel's log of code that was interrupted in return_to_handler(): so
# events that happen in interrupts, such as ktime_get(), are not counted meanwhile.
#
# leave EVENT...: removes the triggers, and notes which of the events below were counted: reading
# all takes long
leave()
{
	for event; do
		case " $shown_events " in
		*" $event "*) grep -q '^    Hits: [1-9]' "$TRACING/events/$event/hist" && echo "$event" >>"$work/hit" ;;
		esac
		remove_triggers "$TRACING/events/$event"
	done
}
shown_events="rhist_events/numbers rhist_events/nested sched/sched_switch irq/softirq_entry kprobes/rhist_sp kprobes/rhist_sr"
leave $(watched | grep -vE '^(kprobes/rhist_s[^t]|raw_syscalls/|syscalls/)')
echo "vfs_read vfs_write ${SYS_FUNCTION}getpgid" >"$KERNEL/set_graph_function"
# Patching all functions would take a while.
echo "vfs_* ${SYS_FUNCTION}getpgid *pipe* *mutex* security_* __wake_up* schedule*" >"$KERNEL/set_ftrace_filter"
echo function_graph >"$KERNEL/current_tracer"
busy "$seconds"
echo "# with the function graph tracer, too: $(walks)"
echo nop >"$KERNEL/current_tracer"
echo >"$KERNEL/set_ftrace_filter"
echo >"$KERNEL/set_graph_function"

yes "no stack differs from the unwinder's" [ -n "$(number checked)" ]
yes "at least $most were compared" [ "$(number checked)" -ge $most ]
yes "replaced return addresses are asked for" [ "$(number frames)" -gt "$asked" ]
leave $(watched)
for event in $shown_events; do
	yes "$event was counted" grep -qx $event "$work/hit"
done

# stack: prints the entries of a kprobe's histogram, whose key is the stack
stack()
{
	watch kprobes/rhist_sp
	fire getpgid 1:3
	sed -n '/^{/,/^}/p' "$TRACING/events/kprobes/rhist_sp/hist"
	remove_triggers "$TRACING/events/kprobes/rhist_sp"
}

# With the module's own functions traced, return addresses are replaced from the very first on.
expected=$(stack)
echo :mod:rhist >"$KERNEL/set_ftrace_filter"
echo function_graph >"$KERNEL/current_tracer"
is "$(stack)" "$expected" "it is the same if functions of the module are traced"
echo nop >"$KERNEL/current_tracer"
echo >"$KERNEL/set_ftrace_filter"
yes "and begins at the function of the kprobe" [ "${expected#*${SYS_FUNCTION}getpgid+}" != "$expected" ]

for name in sp sr sv so st; do
	echo "-:rhist_$name" >>"$KERNEL/kprobe_events"
done 2>/dev/null
rmmod rhist_events
yes "loaded as it was" load
finish
