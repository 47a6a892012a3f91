#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Control groups of cgroup v2 as keys, variables, saved fields, and in filters: counts of groups
# that are nested, removed, made anew, and made and removed 1,000 times; of victim and culprit at a
# switch; the number of groups whose paths are kept; and tasks that are idle, gone, or released.
. "$(dirname "$0")/../lib/tracing.sh"

cd "$TRACING" || exit 1
top=$work/cgroup
mkdir "$top"
mount -t cgroup2 none "$top" || { ktap ktap_skip_all "no cgroup v2"; exit 4; }
own=$top$(sed -n 's/^0:://p' /proc/self/cgroup)
own=${own%/}
rename=events/task/task_rename switch=events/sched/sched_switch free=events/sched/sched_process_free
only='if newcomm == "rhist_group"'

# hit: a hit of task_rename, by this shell
hit() { printf rhist_group >"/proc/$$/comm"; }

# enter GROUP: this shell goes there
enter() { echo $$ >"$top$1/cgroup.procs"; }

# leave: this shell goes back
leave() { echo $$ >"$own/cgroup.procs"; }

# short_lived GROUP...: makes groups, hits once in each, and removes them
short_lived()
{
	(cd "$top" && mkdir "$@")
	for group in "$@"; do
		enter /$group
		hit
	done
	leave
	(cd "$top" && rmdir "$@")
}

# add FILE TEXT: writes a command that has to be accepted
add() { yes "$2" sh -c 'printf %s "$2" >>"$1/trigger"' sh "$1" "$2" || sed 's/^/# /' error_log; }

# clear: removes all triggers
clear()
{
	for e in $rename $switch $free events/synthetic/rhist_group; do
		[ -e $e/trigger ] || continue
		tac $e/trigger | sed -n 's/ \[active\]$//p' | while IFS= read -r line; do
			printf '!%s' "$line" >>$e/trigger
		done
	done
	grep -q '^rhist_group	' synthetic_events && echo '!rhist_group' >>synthetic_events
}

# entries EVENT: its entries, without blanks that only fill columns
entries() { grep '^{' "$1/hist" | tr -s ' '; }

# id GROUP: its id
id() { stat -c %i "$top$1"; }

# kept EVENT: how many groups its first histogram keeps, and how often it could not keep one
kept() { sed -n "s/^[^ ]*:${1##*/} .*hist 1: \([0-9]*\) control groups kept, \([0-9]*\) .*/\1 \2/p" hist_stats; }

clear
mkdir -p "$top/rhist_a/b/c" "$top/rhist_z"
add $rename "hist:keys=common_cgroup:sort=common_cgroup $only"
enter /rhist_a/b/c
hit; hit; hit
enter /rhist_z
hit
enter /rhist_a
hit; hit
leave
is "$(entries $rename | sort)" "$(printf '{ common_cgroup: %s } hitcount: %s\n' /rhist_a 2 /rhist_a/b/c 3 /rhist_z 1)" \
	"nested groups by their paths"
for group in /rhist_a /rhist_a/b/c /rhist_z; do
	echo "{\"value\":$(id $group),\"cgroup\":\"$group\"}"
done | sort >"$work/ids"
grep -o '{"value":[0-9]*,"cgroup":"[^"]*"}' $rename/hist_jsonl | sort >"$work/shown"
yes "their ids are the inodes of the directories" cmp "$work/ids" "$work/shown"
first=$(id /rhist_z)
rmdir "$top/rhist_a/b/c" "$top/rhist_a/b" "$top/rhist_a" "$top/rhist_z"
is "$(entries $rename | sort)" "$(printf '{ common_cgroup: %s } hitcount: %s\n' /rhist_a 2 /rhist_a/b/c 3 /rhist_z 1)" \
	"removed groups by the paths that they had"

# A group made anew is another one, in keys and in filters.
mkdir "$top/rhist_z"
enter /rhist_z
hit
leave
is "$(entries $rename | grep -c rhist_z)" 2 "a group made anew is another entry"
no "its id is another one" test "$(id /rhist_z)" = "$first"
clear
add $rename "hist:keys=common_cgroup $only && common_cgroup == \"/rhist_z\""
enter /rhist_z
hit; hit
leave
rmdir "$top/rhist_z"
mkdir "$top/rhist_z"
enter /rhist_z
hit
leave
hit
is "$(entries $rename)" '{ common_cgroup: /rhist_z } hitcount: 2' "a filter is for the group that it has found"
rmdir "$top/rhist_z"
yes "it is removed after its group" sh -c "echo '!hist:keys=common_cgroup $only && common_cgroup == \"/rhist_z\"' >>$rename/trigger"
no "no trigger is left" grep -q '^hist' $rename/trigger

# A path that is too long to be shown: 17 groups below each other, of 250 bytes each.
add $rename "hist:keys=common_cgroup $only"
name=$(printf '%0250d' 0)
(cd "$top" && for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do mkdir $name && cd $name || exit; done; stat -c %i . >"$work/deep"; echo $$ >cgroup.procs)
hit
leave
is "$(entries $rename)" "{ common_cgroup: $(cat "$work/deep") } hitcount: 1" "a group whose path is too long, by its id"
clear
(cd "$top" && find $name -depth -type d -delete)

mkdir -p "$top/rhist_a/b" "$top/rhist_ab"

# The only trigger of an event, with a filter that is a range, and a sum.
adj=$(cat /proc/$$/oom_score_adj)
echo 7 >/proc/$$/oom_score_adj
add $rename 'hist:keys=common_cgroup:vals=oom_score_adj if oom_score_adj == 7'
enter /rhist_a
hit; hit; hit
leave
is "$(entries $rename | grep rhist_a)" "{ common_cgroup: /rhist_a } hitcount: 3 oom_score_adj: 21" "hits and sums of a group"
clear
echo "$adj" >/proc/$$/oom_score_adj

# Filters: a group, not it, and all below it; unknown groups and wildcards are refused.
add $rename "hist:keys=common_cgroup $only && common_cgroup ~ \"/rhist_a\""
add $rename "hist:keys=common_cgroup,common_pid $only && common_cgroup != \"/rhist_a\""
for group in /rhist_a /rhist_a/b /rhist_ab; do
	enter $group
	hit
done
leave
is "$(sed '/common_pid/,$d' $rename/hist | grep '^{' | tr -s ' ' | sort)" \
	"$(printf '{ common_cgroup: %s } hitcount: 1\n' /rhist_a /rhist_a/b)" "a group and those below it"
is "$(sed '1,/common_pid/d' $rename/hist | grep -o '/rhist_[^ ]*' | sort | tr '\n' ' ')" "/rhist_a/b /rhist_ab " "not a group"
for wrong in '== "/nosuch"' '== "rhist_a"' '~ "/rhist_*"' '== 1' '> "/rhist_a"'; do
	no "$wrong" sh -c "echo 'hist:keys=pid if common_cgroup $wrong' >>$rename/trigger"
done
yes "the last error says what is wrong with a wildcard" grep -q 'a path has no wildcards here' error_log
yes "and with an unknown path" grep -q 'expecting the path of a control group that exists' error_log
clear

# A variable, saved fields, a synthetic event.
add $rename "hist:keys=common_pid:cg=common_cgroup:onmax(\$cg).save(common_cgroup,common_pid.cgroup) $only"
enter /rhist_a/b
hit
leave
yes "saved fields" grep -q 'common_cgroup: /rhist_a/b  common_pid.cgroup: /rhist_a/b' $rename/hist
yes "a variable" grep -q "\"variables\":\[{\"value\":$(id /rhist_a/b),\"cgroup\":\"/rhist_a/b\"}\]" $rename/hist_jsonl
clear
add $rename "hist:keys=common_pid:zero=pid-pid:onmax(\$zero).save(common_cgroup) $only"
hit
yes "a group that was not saved yet" grep -q '	max:          0  common_cgroup: (null)$' $rename/hist
clear
if [ -e synthetic_events ]; then
	echo 'rhist_group u64 cg' >>synthetic_events
	add events/synthetic/rhist_group 'hist:keys=cg'
	add $rename "hist:keys=common_pid:cg=common_cgroup:onmatch(task.task_rename).rhist_group(\$cg) $only"
	enter /rhist_ab
	hit; hit
	leave
	is "$(entries events/synthetic/rhist_group)" "{ cg: $(id /rhist_ab) } hitcount: 2" "a field of a synthetic event"
	clear
else
	skip "a field of a synthetic event" "none in this kernel"
fi

# Victim and culprit: both groups of each switch between two tasks, compared with their process ids.
# The last switch of a task that exits is left out: it may have been waited for, and be gone.
cpu=$(($(nproc) - 1))
mkfifo "$work/start"
# spin GROUP: a task that waits there, then keeps the processor busy
spin()
{
	sh -c 'echo $$ >"$1/cgroup.procs"; read line <"$2"; exec fire -c "$3" spin 400000' sh "$top$1" "$work/start" $cpu &
}
spin /rhist_a/b
a=$!
spin /rhist_ab
b=$!
for task in $a $b; do
	for n in $(seq 300); do
		grep -q '^0::/rhist_a' /proc/$task/cgroup && break
		sleep 0.1
	done
done
between="((next_pid == $a && prev_pid == $b) || (next_pid == $b && prev_pid == $a)) && !(prev_state & 0x30)"
add $switch "hist:keys=next_pid.cgroup,prev_pid.cgroup if $between"
add $switch "hist:keys=next_pid,prev_pid if $between"
exec 3<>"$work/start"
echo >&3
echo >&3
wait $a $b
exec 3>&-
sed -n '/^{ next_pid: *[0-9]/p' $switch/hist | tr -s ' ' |
	sed "s|_pid: $a |_pid: /rhist_a/b |g; s|_pid: $b |_pid: /rhist_ab |g; s|_pid: $a,|_pid: /rhist_a/b ,|g; s|_pid: $b,|_pid: /rhist_ab ,|g" | sort >"$work/truth"
sed -n '/^{ next_pid: \/.*prev_pid: \//p' $switch/hist | tr -s ' ' | sort >"$work/pairs"
yes "two tasks have taken turns" test -s "$work/truth"
yes "victim and culprit of each switch" cmp "$work/truth" "$work/pairs" || diff "$work/truth" "$work/pairs" | sed 's/^/# /'
clear
add $switch 'hist:keys=next_pid.cgroup if next_pid == 0'
sleep 1
is "$(entries $switch | sed 's/ hitcount.*//')" '{ next_pid: idle }' "the idle task is no group"
clear

# A task that is gone when the event happens, but the tracepoint is called with it.
if [ -e $free ]; then
	add $free 'hist:keys=pid.cgroup,pid.comm'
	for n in 1 2 3; do /bin/true; done
	sleep 1
	yes "tasks that have been released" grep -q '^{ pid: /.*, pid: true ' $free/hist
	clear
else
	skip "tasks that have been released" "no sched_process_free"
fi

# Many groups, made and removed one after the other.
groups=1000
! shown_on_um || groups=100
add $rename "hist:keys=common_cgroup:size=2048 $only"
for n in $(seq $groups); do
	mkdir "$top/rhist_$n"
	enter /rhist_$n
	hit
	leave
	rmdir "$top/rhist_$n"
done
entries $rename | sed 's/.*rhist_\([0-9]*\) } hitcount: 1$/\1/' | sort -n >"$work/shown"
seq $groups >"$work/truth"
yes "$groups groups made and removed" cmp "$work/truth" "$work/shown" || kept $rename
is "$(kept $rename)" "$groups 0" "all are kept"
clear

# A thread is released before it stops running: at its last switch it is without a parent, but it
# is still in its group.
last='if prev_comm == "rhist_thread" && prev_state == 16'
add $switch "hist:keys=common_ppid,prev_state $last"
add $switch "hist:keys=prev_pid.cgroup $last"
enter /rhist_a/b
load rhist_thread many 3 1000 >"$work/load"
leave
is "$(entries $switch)" "{ common_ppid: 0, prev_state: 16 } hitcount: 3
{ prev_pid: /rhist_a/b } hitcount: 3" "released threads are without a parent, and in a group"
clear

if ! shown_on_um; then
	# The number of groups that are kept is bounded, and so is what forgotten entries keep.
	add $rename "hist:keys=common_cgroup:size=16384 $only"
	for batch in 1 2 3 4 5 6 7 8 9; do
		short_lived $(seq 500 | sed "s/^/rhist_$batch-/")
	done
	read -r held refused <<-END
		$(kept $rename)
	END
	yes "$held groups are kept, at most 4096" test "$held" -le 4096 -a "$held" -ge 4000
	is $((held + refused)) 4500 "those beyond are counted"
	is "$(entries $rename | grep -c 'common_cgroup: /rhist')" "$held" "the others are shown by their ids"
	is "$(entries $rename | wc -l)" 4500 "none is lost"
	clear
	# A busy machine takes seconds to make the groups.
	idle=10s
	[ -z "$SLOW" ] || idle=30s
	add $rename "hist:keys=common_cgroup:expire($idle) $only"
	short_lived $(seq 100 | sed "s/^/rhist_/")
	is "$(kept $rename)" "100 0" "groups of entries"
	none_is_kept() { [ "$(kept $rename)" = "0 0" ]; }
	yes "groups of forgotten entries" soon none_is_kept
	clear
fi
rmdir "$top/rhist_a/b" "$top/rhist_a" "$top/rhist_ab"
umount "$top"
finish
