#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# hist:keys=FIELD on every kind of event and field: the exact text of the histogram, for events
# whose number and arguments are known.
. "$(dirname "$0")/../lib/tracing.sh"

cd "$TRACING/events" || exit 1
kernel_events=$KERNEL/events

clean()
{
	for e in syscalls/sys_enter_getpgid syscalls/sys_enter_chdir syscalls/sys_exit_getpgid task/task_rename \
		oom/oom_score_adj_update sched/sched_process_exec raw_syscalls/sys_enter irq/softirq_entry \
		timer/itimer_expire sched/sched_waking kprobes/rhist_b synthetic/rhist_b uprobes/rhist_bu \
		nullb/nullb_zone_op; do
		[ ! -e $e/trigger ] || : >$e/trigger
		[ ! -e "$kernel_events/$e/trigger" ] || : >"$kernel_events/$e/trigger"
	done
	! grep -q '^rhist_b	' "$KERNEL/synthetic_events" || echo '!rhist_b' >>"$KERNEL/synthetic_events"
	! grep -q 'kprobes/rhist_b ' "$KERNEL/kprobe_events" || echo '-:rhist_b' >>"$KERNEL/kprobe_events"
	! grep -q 'uprobes/rhist_bu ' "$KERNEL/uprobe_events" || echo '-:rhist_bu' >>"$KERNEL/uprobe_events"
	! lsmod | grep -q '^null_blk ' || rmmod null_blk
}
clean 2>/dev/null

# pad NUMBER, wide TEXT: as they are shown
pad() { printf '%10s' "$1"; }
wide() { printf '%-50s' "$1"; }

# histogram KEYS SIZE HITS ENTRIES DROPPED: prints the text of a histogram, with the entries from
# stdin
histogram()
{
	printf '# event histogram\n#\n# trigger info: hist:keys=%s:vals=hitcount:sort=hitcount:size=%s [active]\n#\n\n' "$1" "$2"
	cat
	printf '\nTotals:\n    Hits: %s\n    Entries: %s\n    Dropped: %s\n' "$3" "$4" "$5"
}

# line KEYS [SIZE]: the trigger's line
line() { printf 'hist:keys=%s:vals=hitcount:sort=hitcount:size=%s [active]\n' "$1" "${2:-2048}"; }

idle()
{
	cat <<-EOF
	# Available triggers:
	# $commands
	EOF
}

if ! rest_only; then

# --- the life of a histogram

cd syscalls/sys_enter_getpgid || exit 1
idle | same trigger "trigger lists the commands when there is none"
same hist "hist is empty when there is none" </dev/null
if have_debug || [ "$TRACING" != "$KERNEL" ]; then
	same hist_debug "hist_debug is empty when there is none" </dev/null
fi

yes "hist:keys=pid" sh -c 'echo hist:keys=pid >trigger'
line pid | same trigger "the line of the trigger"
histogram pid 2048 0 0 0 </dev/null | same hist "a histogram without entries"
fire getpgid 7:1 1:3 0xffffffffffffffff:2 70000:4 0x123456789abcdef:5
histogram pid 2048 15 5 0 <<EOF | same hist "its entries"
{ pid:          7 } hitcount:          1
{ pid: 18446744073709551615 } hitcount:          2
{ pid:          1 } hitcount:          3
{ pid:      70000 } hitcount:          4
{ pid: 81985529216486895 } hitcount:          5
EOF
fire getpgid 7:9
histogram pid 2048 24 5 0 <<EOF | same hist "they go on counting, and are sorted anew"
{ pid: 18446744073709551615 } hitcount:          2
{ pid:          1 } hitcount:          3
{ pid:      70000 } hitcount:          4
{ pid: 81985529216486895 } hitcount:          5
{ pid:          7 } hitcount:         10
EOF
is "$(dd if=hist bs=1 count=17 status=none; dd if=hist bs=7 skip=3 count=2 status=none)" "# event histogram trigger info:" \
	"hist can be read in pieces"
before=$(cat "$KERNEL/tracing_on")
echo 0 >"$KERNEL/tracing_on"
fire getpgid 7:1
is "$(grep 'pid:          7 ' hist)" "{ pid:          7 } hitcount:         11" "it counts while tracing is off"
echo "$before" >"$KERNEL/tracing_on"
no "and records nothing in the kernel's trace" grep -q sys_getpgid "$KERNEL/trace"
is "$(cat enable | tr -d '*')" 0 "and leaves the event disabled"
if [ "$TRACING" = "$KERNEL" ]; then
	skip "the kernel's own files show nothing of it" "this is the kernel's own"
else
	is "$(cat "$kernel_events/syscalls/sys_enter_getpgid/hist")$(head -n 1 "$kernel_events/syscalls/sys_enter_getpgid/trigger")" \
		"# Available triggers:" "the kernel's own files show nothing of it"
fi

# Other events are not counted.
fire getsid 7:3
is "$(total Hits hist)" 25 "another event is not counted"

yes "the printed line behind a ! removes it" sh -c 'echo "!$(sed "s/ \[.*//" trigger)" >>trigger'
idle | same trigger "none is left"
same hist "and no histogram" </dev/null
yes "removing what is not there succeeds" sh -c 'echo "!hist:keys=pid" >>trigger'
fire getpgid 7:9
same hist "events count for nobody then" </dev/null

# --- several

yes "a first" sh -c 'echo hist:keys=pid >>trigger'
yes "a second" sh -c 'echo hist:keys=common_comm:size=300 >>trigger'
yes "a third" sh -c 'echo hist:keys=__syscall_nr:size=128 >>trigger'
{ line pid; line common_comm 512; line __syscall_nr 128; } | same trigger "are listed in the order they came"
fire getpgid 5:2 6:1
{
	histogram pid 2048 3 2 0 <<-EOF
	{ pid:          6 } hitcount:          1
	{ pid:          5 } hitcount:          2
	EOF
	printf '\n\n'
	histogram common_comm 512 3 1 0 <<-EOF
	{ common_comm: fire                                               } hitcount:          3
	EOF
	printf '\n\n'
	histogram __syscall_nr 128 3 1 0 <<-EOF
	{ __syscall_nr:        $GETPGID } hitcount:          3
	EOF
} | same hist "and shown in that order"
is "$(io write trigger a hist:keys=pid)" EEXIST "the same once more: EEXIST"
is "$(io write trigger a hist:keys=pid:size=4096)" EEXIST "another size makes it no other"
yes "the middle one goes by the text that made it" sh -c 'echo "!hist:keys=common_comm:size=300" >>trigger'
{ line pid; line __syscall_nr 128; } | same trigger "the others stay"
fire getpgid 5:1
{
	histogram pid 2048 4 2 0 <<-EOF
	{ pid:          6 } hitcount:          1
	{ pid:          5 } hitcount:          3
	EOF
	printf '\n\n'
	histogram __syscall_nr 128 4 1 0 <<-EOF
	{ __syscall_nr:        $GETPGID } hitcount:          4
	EOF
} | same hist "with what they have counted"
yes "the first goes, named as it need not be" sh -c 'echo "!hist:keys=pid:vals=hitcount:sort=hitcount:size=256" >>trigger'
line __syscall_nr 128 | same trigger "one is left"
yes "a new one by >" sh -c 'echo hist:keys=common_pid >trigger'
line common_pid | same trigger "replaces it"
yes "truncation" sh -c ': >trigger'
idle | same trigger "removes it"
printf 'hist:keys=pid' | dd of=trigger bs=4096 conv=notrunc status=none
printf 'hist:keys=common_pid' | dd of=trigger bs=4096 conv=notrunc status=none
{ line pid; line common_pid; } | same trigger "opening without truncation adds"
is "$(io open trigger r) $(io open trigger a) $(io open trigger rw)" "OK OK OK" "opening alone is allowed"
{ line pid; line common_pid; } | same trigger "and changes nothing"
is "$(io write trigger t '')$(head -n 1 trigger)" "OK# Available triggers:" "a write of nothing is none"
is "$(io write hist w x)" EINVAL "hist cannot be written"
! have_debug || is "$(io write hist_debug w x)" EINVAL "nor can hist_debug"

# --- other parts of the text

# accepted TEXT KEYS SIZE
accepted()
{
	is "$(io write trigger a "$1"; cat trigger)" "OK
$(line "$2" "$3")" "accepted: $(printf %s "$1" | tr '\n\t' '/>')"
	: >trigger
}
accepted 'hist keys=pid' pid 2048
accepted 'hist	keys=pid' pid 2048
accepted '  hist:keys=pid  ' pid 2048
accepted '
hist:keys=pid
' pid 2048
accepted 'hist: keys=pid' pid 2048
accepted 'hist:key=pid' pid 2048
accepted 'hist:keys=pid:vals=hitcount' pid 2048
accepted 'hist:keys=pid:val=hitcount' pid 2048
accepted 'hist:keys=pid:values=hitcount' pid 2048
accepted 'hist:keys=pid:sort=hitcount' pid 2048
accepted 'hist:keys=pid:sort=hitcount.ascending' pid 2048
accepted 'hist:sort=hitcount:size=128:vals=hitcount:keys=pid' pid 128
accepted 'hist:keys=pid:size=65' pid 128
accepted 'hist:keys=pid:size=128' pid 128
accepted 'hist:keys=pid:size=129' pid 256
accepted 'hist:keys=pid:size=0x100' pid 256
accepted 'hist:keys=pid:size=0400' pid 256
accepted 'hist:keys=pid:size=65536' pid 65536
accepted 'hist:keys=pid:size=65537' pid 131072
accepted 'hist:keys=pid:size=131072' pid 131072
accepted 'hist:keys=common_pid:keys=pid' pid 2048
accepted 'hist:keys=pid:size=128:size=256' pid 256
accepted 'hist:keys=a.b.pid' pid 2048
cd ../..

fi

# --- widths and signs, through a probe that reads one argument in all of them

widths=
for type in u8 s8 u16 s16 u32 s32 u64 s64; do widths="$widths $type=$SYS_ARGUMENT:$type"; done
! have_probes || echo "p:rhist_b ${SYS_FUNCTION}getpgid$widths" >>"$KERNEL/kprobe_events"
if ! have_probes; then
	skip "all widths and signs" "no kprobes"
elif [ ! -d kprobes/rhist_b ]; then
	ok 1 "a kprobe event"
else
	cd kprobes/rhist_b
	# width FIELD: entries in $work/entries
	width()
	{
		echo "hist:keys=$1" >trigger
		fire getpgid 1:2 0xffffffffffffff80:3 0x81:4 0x8000000000008001:5 0x7fffffff7fff7f7f:9
		histogram "$1" 2048 23 "$(wc -l <"$work/entries")" 0 <"$work/entries" | same hist "$1: extended and printed"
		yes "$1: removed by its line" sh -c 'echo "!$(sed "s/ \[.*//" trigger)" >>trigger; test -z "$(cat hist)"'
		: >trigger
	}
	cat >"$work/entries" <<-EOF
	{ u8:        128 } hitcount:          3
	{ u8:        129 } hitcount:          4
	{ u8:          1 } hitcount:          7
	{ u8:        127 } hitcount:          9
	EOF
	width u8
	cat >"$work/entries" <<-EOF
	{ s8: 18446744073709551488 } hitcount:          3
	{ s8: 18446744073709551489 } hitcount:          4
	{ s8:          1 } hitcount:          7
	{ s8:        127 } hitcount:          9
	EOF
	width s8
	cat >"$work/entries" <<-EOF
	{ u16:          1 } hitcount:          2
	{ u16:      65408 } hitcount:          3
	{ u16:        129 } hitcount:          4
	{ u16:      32769 } hitcount:          5
	{ u16:      32639 } hitcount:          9
	EOF
	width u16
	cat >"$work/entries" <<-EOF
	{ s16:          1 } hitcount:          2
	{ s16: 18446744073709551488 } hitcount:          3
	{ s16:        129 } hitcount:          4
	{ s16: 18446744073709518849 } hitcount:          5
	{ s16:      32639 } hitcount:          9
	EOF
	width s16
	cat >"$work/entries" <<-EOF
	{ u32:          1 } hitcount:          2
	{ u32: 4294967168 } hitcount:          3
	{ u32:        129 } hitcount:          4
	{ u32:      32769 } hitcount:          5
	{ u32: 2147450751 } hitcount:          9
	EOF
	width u32
	cat >"$work/entries" <<-EOF
	{ s32:          1 } hitcount:          2
	{ s32: 18446744073709551488 } hitcount:          3
	{ s32:        129 } hitcount:          4
	{ s32:      32769 } hitcount:          5
	{ s32: 2147450751 } hitcount:          9
	EOF
	width s32
	for f in u64 s64; do
		cat >"$work/entries" <<-EOF
		{ $f:          1 } hitcount:          2
		{ $f: 18446744073709551488 } hitcount:          3
		{ $f:        129 } hitcount:          4
		{ $f: 9223372036854808577 } hitcount:          5
		{ $f: 9223372034707259263 } hitcount:          9
		EOF
		width $f
	done
	cd ../..
fi

# --- strings

echo hist:keys=newcomm >task/task_rename/trigger
fire name abc:1 abcdefghijklmnopqrstuvwxyz:2 x:3 'a b%s\':4
# Starting a program renames its task, too.
grep -v -e ': fire ' -e ': cat ' -e ': grep ' -e ': sh ' -e ': basic.sh ' -e '^[ T]' task/task_rename/hist >"$work/static"
histogram newcomm 2048 x x x <<'EOF' | sed '/^Totals/,$d' | same "$work/static" "a static string"
{ newcomm: abc                                                } hitcount:          1
{ newcomm: abcdefghijklmno                                    } hitcount:          2
{ newcomm: x                                                  } hitcount:          3
{ newcomm: a b%s\                                             } hitcount:          4
EOF
: >task/task_rename/trigger

if grep -q __filename_val syscalls/sys_enter_chdir/format; then
echo hist:keys=__filename_val >syscalls/sys_enter_chdir/trigger
long=/nosuch/$(printf '%0100d' 0)
fire chdir /nosuch/a:1 "$long:2" /nosuch/:3 /nosuch/abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuv:4
is "$(total Hits syscalls/sys_enter_chdir/hist)" 10 "a dynamic string: all are counted"
entries syscalls/sys_enter_chdir/hist | grep -v 00000000 >"$work/dynamic"
same "$work/dynamic" "a dynamic string" <<'EOF'
{ __filename_val: /nosuch/a                                          } hitcount:          1
{ __filename_val: /nosuch/                                           } hitcount:          3
{ __filename_val: /nosuch/abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuv } hitcount:          4
EOF
yes "a long one is shown as long as the event gives it" \
	grep -Eq '^\{ __filename_val: /nosuch/0{50,100}(\.\.\.)? } hitcount:          2$' syscalls/sys_enter_chdir/hist
: >syscalls/sys_enter_chdir/trigger
else
	for point in "all are counted" "the entries" "a long one"; do
		skip "a dynamic string: $point" "the events of system calls have none"
	done
fi

cp /bin/true "$work/program"
echo hist:keys=filename >sched/sched_process_exec/trigger
for _ in 1 2 3 4 5; do "$work/program"; done
is "$(grep -F "$work/program " sched/sched_process_exec/hist)" \
	"$(printf '{ filename: %-50s } hitcount: %10u' "$work/program" 5)" "sched_process_exec by filename"
: >sched/sched_process_exec/trigger

# --- a field of 16 bits in a static event

echo hist:keys=oom_score_adj >oom/oom_score_adj_update/trigger
fire oom 1000:1 500:2 0:4 -999:3
histogram oom_score_adj 2048 10 4 0 <<'EOF' | same oom/oom_score_adj_update/hist "a short of a static event"
{ oom_score_adj:       1000 } hitcount:          1
{ oom_score_adj:        500 } hitcount:          2
{ oom_score_adj: 18446744073709550617 } hitcount:          3
{ oom_score_adj:          0 } hitcount:          4
EOF
: >oom/oom_score_adj_update/trigger

if ! rest_only; then

# --- common fields of all events

cd syscalls/sys_enter_getpgid || exit 1

# common KEY NAME-IN-LINE ENTRY COMMAND...: ENTRY is the key's value as shown
common()
{
	key=$1 shown=$2 entry=$3
	shift 3
	echo "hist:keys=$key" >trigger
	"$@"
	line "$shown" | same trigger "$key: its line"
	histogram "$shown" 2048 3 1 0 <<-EOF | same hist "$key: its histogram"
	{ $key: $entry } hitcount:          3
	EOF
	yes "$key: removed by the text that made it" sh -c "echo '!hist:keys=$key' >>trigger; test -z \"\$(cat hist)\""
	echo "hist:keys=$key" >trigger
	yes "$key: removed by its line" sh -c 'echo "!$(sed "s/ \[.*//" trigger)" >>trigger; test -z "$(cat hist)"'
	: >trigger
}
last=$(($(nproc) - 1))
id=$(sed -n 's/^ID: //p' format)
common common_type common_type "$(pad "$id")" fire getpgid 1:3
common common_cpu common_cpu "$(pad $last)" fire -c $last getpgid 1:3
common cpu common_cpu "$(pad $last)" fire -c $last getpgid 1:3
common CPU common_cpu "$(pad 0)" fire -c 0 getpgid 1:3
common common_comm common_comm "$(wide fire)" fire getpgid 1:3
common comm common_comm "$(wide fire)" fire getpgid 1:3
common COMM common_comm "$(wide fire)" fire getpgid 1:3
echo hist:keys=common_pid >trigger
fire getpgid 1:3 &
pid=$!
wait $pid
histogram common_pid 2048 3 1 0 <<EOF | same hist "common_pid"
{ common_pid: $(pad $pid) } hitcount:          3
EOF
: >trigger
echo "hist:keys=common_pid if common_type == $id" >trigger
fire getpgid 1:3
is "$(total Hits hist)" 3 "a filter on common_type"
: >trigger
for key in common_flags common_preempt_count; do
	echo hist:keys=$key >trigger
	fire getpgid 1:3
	is "$(total Hits hist) $(sed -n "s/^{ $key: *[0-9]* } hitcount: *//p" hist | awk '{ n += $1 } END { print n }')" "3 3" "$key"
	: >trigger
done
cd ../..

fi

# --- kinds of events

echo hist:keys=id >raw_syscalls/sys_enter/trigger
fire getpgid 1:5
is "$(sed -n "/^{ id: *$GETPGID }/p" raw_syscalls/sys_enter/hist)" "{ id:        $GETPGID } hitcount:          5" "raw_syscalls"
: >raw_syscalls/sys_enter/trigger

echo hist:keys=ret >syscalls/sys_exit_getpgid/trigger
fire getpgid 1:5 0x7ffffff0:2
histogram ret 2048 7 2 0 <<'EOF' | same syscalls/sys_exit_getpgid/hist "the exit of a system call"
{ ret: 18446744073709551613 } hitcount:          2
{ ret:          0 } hitcount:          5
EOF
: >syscalls/sys_exit_getpgid/trigger

if ! have_synthetic; then
	skip "synthetic events" "no synthetic events"
else

if [ -d kprobes/rhist_b ]; then
	echo 'rhist_b u64 a; s64 s' >>"$KERNEL/synthetic_events"
	echo 'hist:keys=common_pid:a=u64,s=s64:onmatch(kprobes.rhist_b).trace(rhist_b,$a,$s)' \
		>>"$kernel_events/kprobes/rhist_b/trigger"
	echo hist:keys=a >synthetic/rhist_b/trigger
	fire getpgid 3:3 0xffffffffffffffff:4
	histogram a 2048 7 2 0 <<-'EOF' | same synthetic/rhist_b/hist "a synthetic event"
	{ a:          3 } hitcount:          3
	{ a: 18446744073709551615 } hitcount:          4
	EOF
	: >synthetic/rhist_b/trigger
	: >"$kernel_events/kprobes/rhist_b/trigger"
fi

# The largest number of strings from one reference. Strings of fixed length would be too long for a
# record.
if [ -e synthetic/rhist_b ]; then
	echo '!rhist_b' >>"$KERNEL/synthetic_events"
fi
strings=$(printf '; char s%d[]' $(seq 0 63))
echo "rhist_b ${strings#; }" >>"$KERNEL/synthetic_events"
strings=$(printf ',%.0s$c' $(seq 0 63))
echo "hist:keys=pid:c=comm:onmatch(sched.sched_waking).trace(rhist_b$strings)" >sched/sched_waking/trigger
: >"$KERNEL/trace"
echo 1 >"$kernel_events/synthetic/rhist_b/enable"
sleep 0.2
echo 0 >"$kernel_events/synthetic/rhist_b/enable"
# Each line has the names of 64 fields, and one value only.
sed -n 's/.* rhist_b: s0=//p' "$KERNEL/trace" >"$work/strings"
yes "there are events of 64 strings" [ -s "$work/strings" ]
is "$(awk -F ' s[0-9]+=' '{ n = NF; for (i = 1; i <= NF; i++) if ($i != $1) n = 0; print n }' \
	"$work/strings" | sort -u)" 64 "and these are the same"
if [ "$TRACING" != "$KERNEL" ]; then
	is "$(sed -n 's/^sched:sched_waking .* \([0-9]*\) missed.*/\1/p' "$TRACING/hist_stats")" 0 "none is missed"
fi
echo "!hist:keys=pid:c=comm:onmatch(sched.sched_waking).trace(rhist_b$strings)" >>sched/sched_waking/trigger

fi

if [ -e "$KERNEL/uprobe_events" ]; then
	cp "$OUT/fire" "$work/fire"
	echo "p:rhist_bu $work/fire:$("$work/fire" offset) n=$ARGUMENT:u64" >>"$KERNEL/uprobe_events"
	yes "a uprobe takes a histogram" sh -c 'echo hist:keys=n >uprobes/rhist_bu/trigger'
	"$work/fire" mark 5:3 6:4
	histogram n 2048 7 2 0 <<-'EOF' | same uprobes/rhist_bu/hist "a uprobe"
	{ n:          5 } hitcount:          3
	{ n:          6 } hitcount:          4
	EOF
	: >uprobes/rhist_bu/trigger
else
	skip "a uprobe" "no uprobes"
fi

if modprobe null_blk nr_devices=1 zoned=1 gb=1 zone_size=64 2>/dev/null; then
	yes "an event of a module takes a histogram" sh -c 'echo hist:keys=zone_no >nullb/nullb_zone_op/trigger'
	soon [ -e /dev/nullb0 ]
	blkzone open -o 0 -c 1 /dev/nullb0
	blkzone close -o 0 -c 1 /dev/nullb0
	blkzone finish -o 131072 -c 1 /dev/nullb0
	histogram zone_no 2048 3 2 0 <<-'EOF' | same nullb/nullb_zone_op/hist "an event of a module"
	{ zone_no:          1 } hitcount:          1
	{ zone_no:          0 } hitcount:          2
	EOF
	: >nullb/nullb_zone_op/trigger
	yes "the module can go after that" rmmod null_blk
else
	skip "an event of a module" "no module null_blk"
fi

echo hist:keys=pid >timer/itimer_expire/trigger
fire alarm 2000:10 &
pid=$!
wait $pid
histogram pid 2048 10 1 0 <<EOF | same timer/itimer_expire/hist "an event in an interrupt"
{ pid: $(pad $pid) } hitcount:         10
EOF
: >timer/itimer_expire/trigger
echo hist:keys=vec >irq/softirq_entry/trigger
sleep 0.3
cat irq/softirq_entry/hist >"$work/softirq"
: >irq/softirq_entry/trigger
yes "events in soft interrupts are counted" test "$(total Hits "$work/softirq")" -gt 0
is "$(entries "$work/softirq" | grep -cv '^{ vec:          [0-9] } hitcount: *[1-9][0-9]*$')" 0 "by numbers there are"

# node_free NODE: kB of memory that are free on a node
node_free() { awk '/ MemFree:/ { print $4 }' "/sys/devices/system/node/node$1/meminfo"; }

# Four times columns of 131072 entries take 12 MiB for each processor, half of it on each node.
# Processor 0 makes all the allocations; memory without a chosen node would come from its own. Other
# allocations and frees meanwhile can amount to 2 MiB.
if [ "$(cat /sys/devices/system/node/online 2>/dev/null)" = 0-1 ] && grep -q "" /sys/devices/system/node/node1/cpulist; then
	least=$((8192 * $(nproc) / 2)) here=$(node_free 0) there=$(node_free 1)
	taskset -c 0 sh -c 'for keys in pid prio target_cpu pid,prio; do
		echo "hist:keys=$keys:vals=prio,target_cpu:size=131072" >>sched/sched_waking/trigger
	done'
	here=$((here - $(node_free 0))) there=$((there - $(node_free 1)))
	: >sched/sched_waking/trigger
	yes "columns are in memory of their processors' nodes ($here kB and $there kB)" \
		[ $here -gt $least -a $there -gt $least ]
else
	skip "columns are in memory of their processors' nodes" "one node"
fi

# memory_free: kB of memory that are free
memory_free() { awk '/^MemFree:/ { print $2 }' /proc/meminfo; }

# taken: prints how many kB five histograms of 131072 entries take; their columns take 15 MiB for
# each processor
taken()
{
	before=$(memory_free)
	for event in syscalls/sys_enter_get?id; do
		echo hist:keys=common_pid:vals=common_pid,common_type:size=131072 >$event/trigger
	done
	echo $((before - $(memory_free)))
	for event in syscalls/sys_enter_get?id; do
		: >$event/trigger
	done
}

# turn 0|1: takes all processors but the first offline, or online
turn()
{
	for processor in /sys/devices/system/cpu/cpu[1-9]*/online; do
		echo "$1" >"$processor" || return
	done
}

fewer="a histogram takes memory for the processors that are online"
later="processors that come online after it was made are counted"
processors=$(nproc)
if [ "$TRACING" = "$KERNEL" ] || [ "$processors" -lt 3 ]; then
	skip "$fewer" "C, or less than three processors"
	skip "$later" "C, or less than three processors"
else
	all=$(taken)
	yes "all processors but one can be taken offline" turn 0
	one=$(taken)
	yes "$fewer ($all kB, and with one $one kB)" [ $((all - one)) -gt 15360 ]
	echo hist:keys=pid:vals=pid:size=128 >syscalls/sys_enter_getpgid/trigger
	turn 1
	for processor in $(seq 0 $((processors - 1))); do
		taskset -c "$processor" "$OUT/fire" getpgid 5:1000 "1$processor:1" &
	done
	wait
	for processor in $(seq 0 $((processors - 1))); do
		echo "{ pid: 1$processor } hitcount: 1 pid: 1$processor"
	done >"$work/processors"
	echo "{ pid: 5 } hitcount: ${processors}000 pid: $((processors * 5000))" >>"$work/processors"
	entries syscalls/sys_enter_getpgid/hist | tr -s ' ' | sort | same "$work/processors" "$later"
	: >syscalls/sys_enter_getpgid/trigger
fi

if [ "$TRACING" = "$KERNEL" ]; then
	skip "histograms that memory has no room for are refused" "C"
else
	: >"$TRACING/error_log"
	made=0
	for event in syscalls/sys_enter_[a-f]*; do
		# Not with echo, as a failed write closes the output of later ones.
		printf %s hist:keys=common_stacktrace:size=131072 2>/dev/null >"$event/trigger" || break
		made=$((made + 1))
	done
	is "$(tail -n 3 "$TRACING/error_log" | sed 's/^\[ *[0-9.]*\] //')" "rhist:syscalls:${event##*/}: error: Not enough memory for a histogram of this size
  Command: hist:keys=common_stacktrace:size=131072
                                            ^" "histograms that memory has no room for are refused, after $made"
	# Each took more than 32 MiB, and the next one was refused with no less than that left.
	left=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
	yes "and leave memory to others ($left kB)" [ "$left" -gt 16384 ]
	for event in syscalls/sys_enter_[a-f]*; do
		: >"$event/trigger"
	done
fi

cd /
clean 2>/dev/null
finish
