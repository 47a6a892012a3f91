#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The worked examples of the kernel's histogram design notes
# (Documentation/trace/histogram-design.rst): the commands as printed there, and the resulting
# hist_debug as this kernel prints it: with functions, and today's sizes. If the kernel has
# hist_debug, C's has to be the same.
. "$(dirname "$0")/../lib/tracing.sh"

# --- hist_debug, piece by piece

# begin LINE ADDRESS VALS KEYS FIELDS
begin()
{
	printf '# event histogram\n#\n# trigger info: %s [active]\n#\n\n' "$1"
	printf 'hist_data: %s\n\n  n_vals: %s\n  n_keys: %s\n  n_fields: %s\n\n  val fields:\n' "$2" "$3" "$4" "$5"
}

# lines LINE...: flags, which are in capitals, are further to the right
lines()
{
	for line_of_block; do
		case $line_of_block in
		HIST_* | VAL:*) printf '        %s\n' "$line_of_block" ;;
		*) printf '      %s\n' "$line_of_block" ;;
		esac
	done
}

# block NAME LINE...
block()
{
	printf '\n    hist_data->%s:\n      flags:\n' "$1"
	shift
	lines "$@"
}

# type TYPE SIZE SIGNED FUNCTION: the end of each block
type() { lines "type: $1" "size: $2" "is_signed: $3" "function: hist_field_$4()"; }

hitcount()
{
	block 'fields[0]' 'VAL: HIST_FIELD_FL_HITCOUNT'
	type u64 8 0 counter
}

# value N FIELD TYPE SIZE SIGNED FUNCTION
value()
{
	block "fields[$1]" 'VAL: normal u64 value' "ftrace_event_field name: $2"
	shift 2
	type "$@"
}

# key N FIELD TYPE SIZE SIGNED FUNCTION
key()
{
	block "fields[$1]" HIST_FIELD_FL_KEY "ftrace_event_field name: $2"
	shift 2
	type "$@"
}

keys() { printf '\n  key fields:\n'; }

index='var.idx (into tracing_map_elt.vars[])'
slot='var_ref_idx (into hist_data->var_refs[])'

# variable N NAME INDEX TYPE SIZE SIGNED FUNCTION
variable()
{
	block "fields[$1]" HIST_FIELD_FL_VAR "var.name: $2" "$index: $3"
	shift 3
	type "$@"
}

# named N FIELD NAME INDEX TYPE SIZE SIGNED FUNCTION: a variable that is a field of the event
named()
{
	block "fields[$1]" HIST_FIELD_FL_VAR "ftrace_event_field name: $2" "var.name: $3" "$index: $4"
	shift 4
	type "$@"
}

# reference WHERE NAME INDEX ADDRESS SLOT TYPE SIZE SIGNED
reference()
{
	block "$1" HIST_FIELD_FL_VAR_REF "name: $2" "$index: $3" "var.hist_data: $4" "$slot: $5"
	shift 5
	type "$@" var_ref
}

# field_variable LIST N NAME INDEX TYPE SIZE SIGNED
field_variable()
{
	printf '\n    hist_data->%s[%s]:\n\n      %s[%s].var:\n      flags:\n' "$1" "$2" "$1" "$2"
	lines HIST_FIELD_FL_VAR "var.name: $3" "$index: $4"
	printf '\n      %s[%s].val:\n' "$1" "$2"
	lines "ftrace_event_field name: $3" "type: $5" "size: $6" "is_signed: $7"
}

references() { printf '\n  variable reference fields:\n'; }
field_variables() { printf '\n  field variables:\n'; }
tracking() { printf '\n  action tracking variables (for onmax()/onchange()/onmatch()):\n'; }
saved() { printf '\n  save action variables (save() params):\n'; }

# match N SYSTEM EVENT
match()
{
	printf '\n    hist_data->actions[%s].match_data.event_system: %s\n' "$1" "$2"
	printf '    hist_data->actions[%s].match_data.event: %s\n' "$1" "$3"
}

# The block of sched_waking, in most examples.
ts0()
{
	begin 'hist:keys=pid:vals=hitcount:ts0=common_timestamp.usecs:sort=hitcount:size=2048:clock=global' "$1" 2 1 3
	hitcount
	variable 1 ts0 0 u64 8 0 timestamp
	keys
	key 2 pid pid_t 8 1 s32
}

# --- running them

# ordinals: replaces addresses, which are hashed, with numbers in the order of their appearance
ordinals()
{
	awk '{
		if (match($0, /hist_data: [0-9a-f]+$/)) {
			address = substr($0, RSTART + 11)
			if (!(address in number)) number[address] = ++count
			$0 = substr($0, 1, RSTART + 10) "#" number[address]
		}
		print
	}'
}

# debug EVENT...: hist_debug of events
debug()
{
	for e; do
		echo "$e:"
		cat "events/$e/hist_debug" 2>&1
	done | ordinals
}

waking=sched/sched_waking switch=sched/sched_switch
# The type in the event's definition. The format file shows the number.
comm='char[TASK_COMM_LEN]'

# example NAME [LEFT]: stdin has the commands of the notes, "cat" for events whose hist_debug is
# checked, and the commands that remove all triggers except LEFT. $work/expected_debug has the
# expected hist_debug.
example()
{
	cat >"$work/commands"
	for dir in "$KERNEL" "$TRACING"; do
		who=rhist
		[ "$dir" = "$TRACING" ] || who=C
		(
			cd "$dir" || exit 1
			# One side at a time: its triggers are gone before the other side runs the
			# same commands.
			: >"$work/failed"
			while IFS= read -r command; do
				case $command in
				cat\ *)
					[ ! -e "events/$waking/hist_debug" ] || debug ${command#cat } >"$work/$who" ;;
				*) (eval "$command") 2>>"$work/failed" || echo "$command" >>"$work/failed" ;;
				esac
			done <"$work/commands"
			cp "$work/failed" "$work/$who.failed"
			grep -h '^hist:' events/$waking/trigger events/$switch/trigger events/kmem/kmalloc/trigger >"$work/$who.left"
			: >events/$waking/trigger
		)
		is "$(cat "$work/$who.failed")" "" "$1: $who takes all commands"
		is "$(cat "$work/$who.left")" "$2" "$1: $who has nothing${2:+ else} left"
		[ "$who" = rhist ] || [ -e "$KERNEL/events/$waking/hist_debug" ] || continue
		if [ "$who" = rhist ] || c_has trace_events_hist.c 'function: hist_field_%s()'; then
			cp "$work/expected_debug" "$work/debug"
		else
			grep -v '^ *function: ' "$work/expected_debug" >"$work/debug"
		fi
		same "$work/$who" "$1: hist_debug of $who" <"$work/debug"
		[ "$TRACING" != "$KERNEL" ] || break
	done
}

{
	echo 'kmem/kmalloc:'
	begin 'hist:keys=common_pid,call_site.sym:vals=hitcount,bytes_req,bytes_alloc:sort=hitcount:size=2048' '#1' 3 2 5
	hitcount
	value 1 bytes_req size_t 8 0 u64
	value 2 bytes_alloc size_t 8 0 u64
	keys
	key 3 common_pid int 8 1 s32
	key 4 call_site 'unsigned long' 8 0 u64
} >"$work/expected_debug"
example 'Basic histogram test' <<'END'
echo 'hist:keys=common_pid,call_site.sym:values=bytes_req,bytes_alloc,hitcount' >> events/kmem/kmalloc/trigger
cat kmem/kmalloc
echo '!hist:keys=common_pid,call_site.sym:values=bytes_req,bytes_alloc,hitcount' >> events/kmem/kmalloc/trigger
END

{
	echo "$waking:"
	ts0 '#1'
	echo "$switch:"
	begin 'hist:keys=next_pid:vals=hitcount:wakeup_lat=common_timestamp.usecs-$ts0:sort=hitcount:size=2048:clock=global' '#2' 2 1 3
	hitcount
	variable 1 wakeup_lat 0 u64 8 0 minus
	keys
	key 2 next_pid pid_t 8 1 s32
	references
	reference 'var_refs[0]' ts0 0 '#1' 0 u64 8 0
} >"$work/expected_debug"
example 'Variable and variable reference test' <<'END'
echo 'hist:keys=pid:ts0=common_timestamp.usecs' >> events/sched/sched_waking/trigger
echo 'hist:keys=next_pid:wakeup_lat=common_timestamp.usecs-$ts0' >> events/sched/sched_switch/trigger
cat sched/sched_waking sched/sched_switch
echo '!hist:keys=next_pid:wakeup_lat=common_timestamp.usecs-$ts0' >> events/sched/sched_switch/trigger
echo '!hist:keys=pid:ts0=common_timestamp.usecs' >> events/sched/sched_waking/trigger
END

{
	echo "$waking:"
	ts0 '#1'
	echo "$switch:"
	begin 'hist:keys=next_pid:vals=hitcount:wakeup_lat=common_timestamp.usecs-$ts0:sort=hitcount:size=2048:clock=global:onmatch(sched.sched_waking).wakeup_latency($wakeup_lat,next_pid,next_comm)' '#2' 2 1 3
	hitcount
	variable 1 wakeup_lat 0 u64 8 0 minus
	keys
	key 2 next_pid pid_t 8 1 s32
	references
	reference 'var_refs[0]' ts0 0 '#1' 0 u64 8 0
	reference 'var_refs[1]' wakeup_lat 0 '#2' 1 u64 8 0
	reference 'var_refs[2]' next_pid 1 '#2' 2 pid_t 4 0
	reference 'var_refs[3]' next_comm 2 '#2' 3 "$comm" 16 0
	field_variables
	field_variable field_vars 0 next_pid 1 pid_t 4 1
	field_variable field_vars 1 next_comm 2 "$comm" 16 0
	tracking
	match 0 sched sched_waking
} >"$work/expected_debug"
example 'trace() action field variable test' <<'END'
echo 'wakeup_latency u64 lat; pid_t pid; char comm[16]' >> synthetic_events
echo 'hist:keys=pid:ts0=common_timestamp.usecs' >> events/sched/sched_waking/trigger
echo 'hist:keys=next_pid:wakeup_lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).wakeup_latency($wakeup_lat,next_pid,next_comm)' >> events/sched/sched_switch/trigger
cat sched/sched_waking sched/sched_switch
echo '!hist:keys=next_pid:wakeup_lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).wakeup_latency($wakeup_lat,next_pid,next_comm)' >> events/sched/sched_switch/trigger
echo '!hist:keys=pid:ts0=common_timestamp.usecs' >> events/sched/sched_waking/trigger
echo '!wakeup_latency u64 lat; pid_t pid; char comm[16]' >> synthetic_events
END

{
	echo "$waking:"
	ts0 '#1'
	echo "$switch:"
	begin 'hist:keys=next_pid:vals=hitcount:wakeup_lat=common_timestamp.usecs-$ts0:sort=hitcount:size=2048:clock=global:onmax($wakeup_lat).save(next_comm,prev_pid,prev_prio,prev_comm)' '#2' 2 1 3
	hitcount
	variable 1 wakeup_lat 0 u64 8 0 minus
	keys
	key 2 next_pid pid_t 8 1 s32
	references
	reference 'var_refs[0]' ts0 0 '#1' 0 u64 8 0
	reference 'var_refs[1]' wakeup_lat 0 '#2' 1 u64 8 0
	tracking
	reference 'actions[0].track_data.var_ref' wakeup_lat 0 '#2' 1 u64 8 0
	block 'actions[0].track_data.track_var' HIST_FIELD_FL_VAR 'var.name: __max' "$index: 1"
	type u64 8 0 nop
	saved
	field_variable save_vars 0 next_comm 2 "$comm" 16 0
	field_variable save_vars 1 prev_pid 3 pid_t 4 1
	field_variable save_vars 2 prev_prio 4 int 4 1
	field_variable save_vars 3 prev_comm 5 "$comm" 16 0
} >"$work/expected_debug"
example 'save() action field variable test' <<'END'
echo 'hist:keys=pid:ts0=common_timestamp.usecs' >> events/sched/sched_waking/trigger
echo 'hist:keys=next_pid:wakeup_lat=common_timestamp.usecs-$ts0:onmax($wakeup_lat).save(next_comm,prev_pid,prev_prio,prev_comm)' >> events/sched/sched_switch/trigger
cat sched/sched_waking sched/sched_switch
echo '!hist:keys=next_pid:wakeup_lat=common_timestamp.usecs-$ts0:onmax($wakeup_lat).save(next_comm,prev_pid,prev_prio,prev_comm)' >> events/sched/sched_switch/trigger
echo '!hist:keys=pid:ts0=common_timestamp.usecs' >> events/sched/sched_waking/trigger
END

{
	echo "$waking:"
	ts0 '#1'
	printf '\n\n'
	begin 'hist:keys=pid:vals=hitcount:synthetic_prio=prio:sort=hitcount:size=2048' '#2' 2 1 3
	hitcount
	named 1 prio synthetic_prio 0 int 4 1 s32
	keys
	key 2 pid pid_t 8 1 s32
	echo "$switch:"
	begin 'hist:keys=next_pid:vals=hitcount:wakeup_lat=common_timestamp.usecs-$ts0:sort=hitcount:size=2048:clock=global:onmatch(sched.sched_waking).wakeup_latency($wakeup_lat,next_pid,prio)' '#3' 2 1 3
	hitcount
	variable 1 wakeup_lat 0 u64 8 0 minus
	keys
	key 2 next_pid pid_t 8 1 s32
	references
	reference 'var_refs[0]' ts0 0 '#1' 0 u64 8 0
	reference 'var_refs[1]' wakeup_lat 0 '#3' 1 u64 8 0
	reference 'var_refs[2]' next_pid 1 '#3' 2 pid_t 4 0
	reference 'var_refs[3]' synthetic_prio 0 '#2' 3 int 4 1
	field_variables
	field_variable field_vars 0 next_pid 1 pid_t 4 1
	tracking
	match 0 sched sched_waking
} >"$work/expected_debug"
example 'Test of field variables on other histograms' <<'END'
echo 'wakeup_latency u64 lat; pid_t pid; int prio' >> synthetic_events
echo 'hist:keys=pid:ts0=common_timestamp.usecs' >> events/sched/sched_waking/trigger
echo 'hist:keys=next_pid:wakeup_lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).wakeup_latency($wakeup_lat,next_pid,prio)' >> events/sched/sched_switch/trigger
cat sched/sched_waking sched/sched_switch
echo '!hist:keys=next_pid:wakeup_lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).wakeup_latency($wakeup_lat,next_pid,prio)' >> events/sched/sched_switch/trigger
echo '!hist:keys=pid:ts0=common_timestamp.usecs' >> events/sched/sched_waking/trigger
echo '!wakeup_latency u64 lat; pid_t pid; int prio' >> synthetic_events
END

{
	echo "$waking:"
	begin 'hist:keys=pid:vals=hitcount:waking_pid=pid,ts0=common_timestamp.usecs:sort=hitcount:size=2048:clock=global' '#1' 3 1 4
	hitcount
	named 1 pid waking_pid 0 pid_t 4 1 s32
	variable 2 ts0 1 u64 8 0 timestamp
	keys
	key 3 pid pid_t 8 1 s32
	echo "$switch:"
	begin 'hist:keys=next_pid:vals=hitcount:woken_pid=$waking_pid,wakeup_lat=common_timestamp.usecs-$ts0:sort=hitcount:size=2048:clock=global:onmatch(sched.sched_waking).wakeup_latency($wakeup_lat,$woken_pid,next_comm)' '#2' 3 1 4
	hitcount
	block 'fields[1]' HIST_FIELD_FL_VAR HIST_FIELD_FL_ALIAS 'var.name: woken_pid' "$index: 0" "$slot: 0"
	type pid_t 4 1 var_ref
	variable 2 wakeup_lat 1 u64 8 0 minus
	keys
	key 3 next_pid pid_t 8 1 s32
	references
	reference 'var_refs[0]' waking_pid 0 '#1' 0 pid_t 4 1
	reference 'var_refs[1]' ts0 1 '#1' 1 u64 8 0
	reference 'var_refs[2]' wakeup_lat 1 '#2' 2 u64 8 0
	reference 'var_refs[3]' woken_pid 0 '#2' 3 pid_t 4 1
	reference 'var_refs[4]' next_comm 2 '#2' 4 "$comm" 16 0
	field_variables
	field_variable field_vars 0 next_comm 2 "$comm" 16 0
	tracking
	match 0 sched sched_waking
} >"$work/expected_debug"
# The notes remove the trigger with a line that does not match it, so it stays.
left='hist:keys=pid:vals=hitcount:waking_pid=pid,ts0=common_timestamp.usecs:sort=hitcount:size=2048:clock=global [active]'
example 'Alias test' "$left" <<'END'
echo 'wakeup_latency u64 lat; pid_t pid; char comm[16]' >> synthetic_events
echo 'hist:keys=pid:waking_pid=pid:ts0=common_timestamp.usecs' >> events/sched/sched_waking/trigger
echo 'hist:keys=next_pid:woken_pid=$waking_pid:wakeup_lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).wakeup_latency($wakeup_lat,$woken_pid,next_comm)' >> events/sched/sched_switch/trigger
cat sched/sched_waking sched/sched_switch
echo '!hist:keys=next_pid:woken_pid=$waking_pid:wakeup_lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).wakeup_latency($wakeup_lat,$woken_pid,next_comm)' >> events/sched/sched_switch/trigger
echo '!hist:keys=pid:ts0=common_timestamp.usecs' >> events/sched/sched_waking/trigger
echo '!wakeup_latency u64 lat; pid_t pid; char comm[16]' >> synthetic_events
END

finish
