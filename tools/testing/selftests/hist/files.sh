#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The tree: the same names as in the kernel's own directory, with our files in place of the
# kernel's.
. "$(dirname "$0")/../lib/tracing.sh"

cd "$TRACING" || exit 1

clean()
{
	for name in rhist_f rhist_f2; do
		grep -q "kprobes/$name " "$KERNEL/kprobe_events" && echo "-:kprobes/$name" >>"$KERNEL/kprobe_events"
		grep -q "^$name	" "$KERNEL/synthetic_events" && echo "!$name" >>"$KERNEL/synthetic_events"
	done
	! lsmod | grep -q '^nbd ' || rmmod nbd
	echo 0 >"$KERNEL/events/sched/sched_waking/enable"
	echo 0 >"$KERNEL/events/sched/sched_waking/filter"
	echo 0 >"$KERNEL/events/oom/enable"
}
clean 2>/dev/null

# --- the module

if [ "$TRACING" = "$KERNEL" ]; then
	skip "the module's version" "this is not rhist"
else
	version=$(sed -n 's/^MODULE_VERSION("\(.*\)");$/\1/p' "$here/../../../../rust/module.c")
	yes "the sources have a version: $version" test "$version"
	is "$(modinfo -F version "$RHIST_KO")" "$version" "modinfo tells it"
	is "$(cat /sys/module/rhist/version)" "$version" "/sys/module/rhist/version tells it"
	is "$(awk '$4 == "[rhist]" && length($3) > 255 { n++ } END { print n + 0 }' /proc/kallsyms)" 0 \
		"no symbol has a name that is longer than what programs that read /proc/kallsyms have room for"
	yes "and there are some" grep -q '\[rhist\]$' /proc/kallsyms
fi

# --- the top directory

top() { (cd "$1" && ls -A) | grep -v '^rhist$'; }
# Listing more names than the kernel is fine, listing fewer is an error.
is "$(top "$KERNEL" | while read -r f; do [ -e "$f" ] || echo "$f"; done)" "" \
	"every file of the kernel's directory can be looked up"
top . >"$work/listed"
is "$(top "$KERNEL" | grep -vxF -f "$work/listed")" "" "every file of the kernel's directory is listed"
probe_files=
! have_probes || probe_files="kprobe_events uprobe_events"
! have_synthetic || probe_files="$probe_files synthetic_events"
for f in README trace trace_pipe trace_marker tracing_on set_event dynamic_events $probe_files \
	snapshot error_log available_events trace_clock; do
	[ -f $f ] || echo $f
done >"$work/missing"
is "$(cat "$work/missing")" "" "files of the top directory are files"
for d in events options per_cpu per_cpu/cpu0 events/sched events/sched/sched_switch instances; do
	yes "$d is a directory" test -d $d
done
is "$(cat README)" "$(cat "$KERNEL/README")" "README is the kernel's"
is "$(cat available_events)" "$(cat "$KERNEL/available_events")" "available_events is the kernel's"
is "$(ls options per_cpu per_cpu/cpu0)" "$(cd "$KERNEL" && ls options per_cpu per_cpu/cpu0)" \
	"options and per_cpu have the kernel's files"
is "$(cat options/overwrite per_cpu/cpu0/buffer_size_kb)" \
	"$(cd "$KERNEL" && cat options/overwrite per_cpu/cpu0/buffer_size_kb)" "files below the top can be read"
if [ "$TRACING" = "$KERNEL" ]; then
	skip "rhist is not visible inside rhist" "this is not rhist"
else
	is "$(ls -A . | grep -x rhist; test -e rhist && echo found)" "" "rhist is not visible inside rhist"
fi
is "$(find . -maxdepth 0 -perm /027)" "" "nobody but the owner may come in and change, nobody else see"

# --- the events

started=$(date +%s)
# list DIRECTORY: name, type and mode of the files of its events
list() { (cd "$1" && find . -mindepth 3 -maxdepth 3 -printf '%P %y %m\n' | sort); }
list "$KERNEL/events" >"$work/kernel"
list events >"$work/ours"
# names FILE: prints such a list without hist_debug, which the kernel may lack, and the files that
# it always lacks
names() { sed '/\/hist_debug /d; /\/hist_jsonl /d; /\/hist_delta /d; /\/hist_delta_jsonl /d; /^rhist\/sample\/\(source\|frequency\|period\) /d; s/ [0-7]*$//' "$1" | if have_c; then cat; else grep -v '/hist '; fi; }
# modes NAME: how many of our files have which mode
modes() { sed -n "s,.*/$1 f ,,p" "$work/ours" | sort | uniq -c | tr -s ' '; }
triggers=$(grep -c '/trigger ' "$work/kernel") hists=$(grep -c '/hist ' "$work/kernel")
# If the kernel lacks hist, each event has ours, like with C.
have_c || hists=$(grep -c '/format ' "$work/kernel")
is "$(cd events && find . -mindepth 1 -maxdepth 2 -type d | sort)" \
	"$(cd "$KERNEL/events" && find . -mindepth 1 -maxdepth 2 -type d | sort)" \
	"systems and events are the kernel's: $(find events -mindepth 2 -maxdepth 2 -type d | wc -l)"
is "$(names "$work/ours")" "$(names "$work/kernel")" "every event's directory lists the kernel's files"
is "$(modes trigger)" " $triggers 640" "trigger: mode 640, as many as the kernel has"
is "$(modes hist)" " $hists 440" "hist: mode 440, as many as the kernel has"
if have_debug; then
	is "$(modes hist_debug)" " $hists 440" "hist_debug: mode 440, as many as the kernel has hist"
elif [ "$TRACING" = "$KERNEL" ]; then
	skip "hist_debug: mode 440, as many as the kernel has hist" "this kernel has no hist_debug"
else
	ok 1 "hist_debug: mode 440, as many as the kernel has hist"
fi
for file in hist_jsonl hist_delta hist_delta_jsonl; do
	if [ "$TRACING" = "$KERNEL" ]; then
		skip "$file: mode 440, as many as the kernel has hist" "this is not rhist"
	else
		is "$(modes $file)" " $hists 440" "$file: mode 440, as many as the kernel has hist"
	fi
done
is "$(stat -c '%a %F %U' events events/sched events/sched/sched_switch events/sched/sched_switch/enable \
	events/sched/sched_switch/format events/enable events/sched/filter)" \
	"$(cd "$KERNEL" && stat -c '%a %F %U' events events/sched events/sched/sched_switch \
	events/sched/sched_switch/enable events/sched/sched_switch/format events/enable events/sched/filter)" \
	"modes of the other files and directories are the kernel's"
is "$(cat events/*/*/id)" "$(cat "$KERNEL"/events/*/*/id)" "id of every event is the kernel's"
# Files that rhist passes on to the kernel's own, all in the same way.
if ! rest_only; then
	is "$(cat events/*/*/format | cksum)" "$(cat "$KERNEL"/events/*/*/format | cksum)" \
		"format of every event is the kernel's"
	is "$(cat events/*/*/enable | sort | uniq -c)" "$(cat "$KERNEL"/events/*/*/enable | sort | uniq -c)" \
		"enable of every event is the kernel's"
	is "$(cat events/*/*/filter | sort | uniq -c)" "$(cat "$KERNEL"/events/*/*/filter | sort | uniq -c)" \
		"filter of every event is the kernel's"
fi
is "$(cat events/*/*/trigger | sort | uniq -c | tr -s ' ')" \
	" $triggers # Available triggers:
 $triggers # $commands" \
	"trigger of every event lists the commands"
is "$(cat events/*/*/hist)" "" "hist of every event is empty"
is "$(ls events/sched/sched_switch/hist)" "events/sched/sched_switch/hist" "ls names a file"
elapsed=$(($(date +%s) - started))
limit=180
[ -z "$SLOW" ] || limit=900
yes "all of that took $elapsed s, under $limit" test $elapsed -lt $limit

for p in events/nosuch events/sched/nosuch events/nosuch/sched_switch events/sched/sched_switch/nosuch nosuch; do
	is "$(io open $p r)" ENOENT "$p: ENOENT"
done
is "$(io open events/sched/sched_switch/trigger d)" ENOTDIR "a file is no directory"
is "$(io open events/sched/sched_switch w)" EISDIR "a directory cannot be written"
is "$(io open events/sched/sched_switch/trigger/x r)" ENOTDIR "nothing lies below a file"
no "no directory can be made among the events" mkdir events/sched/rhist_d
no "no file can be made among the events" sh -c ': >events/sched/sched_switch/rhist_d'
no "no event can be removed by rmdir" rmdir events/sched/sched_switch
no "trigger cannot be removed by rm" rm -f events/sched/sched_switch/trigger
no "trigger cannot be renamed" mv events/sched/sched_switch/trigger events/sched/sched_switch/t
yes "and all is still there" test -f events/sched/sched_switch/trigger

# --- writing through

echo 1 >events/sched/sched_waking/enable
is "$(cat "$KERNEL/events/sched/sched_waking/enable" events/sched/sched_waking/enable)" "1
1" "enable acts on the kernel's event"
echo 0 >events/sched/sched_waking/enable
is "$(cat "$KERNEL/events/sched/sched_waking/enable")" 0 "and takes it back"
echo 'prio < 3' >events/sched/sched_waking/filter
is "$(cat "$KERNEL/events/sched/sched_waking/filter")" "prio < 3" "filter acts on the kernel's event"
echo 0 >events/sched/sched_waking/filter
is "$(cat "$KERNEL/events/sched/sched_waking/filter")" none "and takes it back"
is "$(io write events/sched/sched_waking/filter w 'nosuch == 3')" EINVAL "the kernel's errors come through"
echo 1 >events/oom/enable
is "$(cat "$KERNEL/events/oom/oom_score_adj_update/enable")" 1 "enable of a system acts on the kernel's events"
echo 0 >events/oom/enable
is "$(cat "$KERNEL/events/oom/oom_score_adj_update/enable")" 0 "and takes it back"
echo oom:oom_score_adj_update >>set_event
is "$(cat "$KERNEL/set_event")" oom:oom_score_adj_update "set_event acts on the kernel's"
echo '!oom:oom_score_adj_update' >>set_event
is "$(cat "$KERNEL/set_event")" "" "and takes it back"
was=$(cat "$KERNEL/tracing_on")
echo 0 >tracing_on
is "$(cat "$KERNEL/tracing_on" tracing_on)" "0
0" "tracing_on acts on the kernel's"
echo 1 >tracing_on
echo "rhist was here $$" >trace_marker
yes "trace_marker writes into the kernel's trace" grep -q "tracing_mark_write: rhist was here $$\$" "$KERNEL/trace"
yes "which our trace shows too" grep -q "tracing_mark_write: rhist was here $$\$" trace
echo >trace
no "and empties" grep -q "rhist was here" "$KERNEL/trace"
echo "$was" >"$KERNEL/tracing_on"
is "$(io write README w x)" "$(io write "$KERNEL/README" w x)" "a read-only file refuses as the kernel's does"

# --- events come and go

# comes_and_goes EVENT CREATE REMOVE: the commands make and remove the event
comes_and_goes()
{
	dir=events/$1
	no "$1: not there before" test -e "$dir"
	no "$1: nor listed" sh -c "ls events/${1%/*} 2>&1 | grep -qx ${1#*/}"
	yes "$1: can be made" sh -c "$2"
	yes "$1: there at once" test -d "$dir"
	is "$(ls "$dir" | grep -x -e trigger -e hist -e enable -e format | tr '\n' ' ')" "enable format hist trigger " \
		"$1: its files are listed"
	yes "$1: listed" sh -c "ls events/${1%/*} | grep -qx ${1#*/}"
	is "$(cat "$dir/format")" "$(cat "$KERNEL/$dir/format")" "$1: its format is the kernel's"
	is "$(cat "$dir/trigger" | head -n 1)" "# Available triggers:" "$1: its trigger can be read"
	is "$(io write "$dir/trigger" w hist:keys=common_pid)" OK "$1: takes a histogram"
	is "$(io write "$dir/trigger" w '!hist:keys=common_pid')" OK "$1: gives it back"
	yes "$1: can be removed" sh -c "$3"
	no "$1: gone at once" test -e "$dir"
	is "$(io open "$dir/trigger" r)" ENOENT "$1: no trigger any more"
	no "$1: no longer listed" sh -c "ls events/${1%/*} 2>&1 | grep -qx ${1#*/}"
	yes "$1: can be made anew" sh -c "$2"
	exec 7<>"$dir/trigger" 8<"$dir/hist" 9<"$dir"
	yes "$1: can be removed while its files are open" sh -c "$3"
	no "$1: not listed then" sh -c "ls events/${1%/*} 2>&1 | grep -qx ${1#*/}"
	# A name may stay as long as a process holds it open, but leads nowhere.
	no "$1: nor can its trigger be opened" sh -c ": <$dir/trigger"
	is "$(io read 7)" ENODEV "$1: reading the open trigger says ENODEV"
	is "$(io writefd 7 hist:keys=common_pid)" ENODEV "$1: writing the open trigger says ENODEV"
	is "$(io read 8)" ENODEV "$1: reading the open hist says ENODEV"
	is "$(ls -A /proc/self/fd/9/ 2>/dev/null)" "" "$1: the open directory is empty"
	yes "$1: can be made again" sh -c "$2"
	is "$(sed -n /^ID/p "$dir/format")" "$(sed -n /^ID/p "$KERNEL/$dir/format")" "$1: which is the new one, while the old is open"
	is "$(io write "$dir/trigger" w hist:keys=common_pid)" OK "$1: and takes a histogram"
	is "$(io read 7) $(io writefd 7 hist:keys=common_pid) $(io read 8)" "ENODEV ENODEV ENODEV" \
		"$1: of which the old files know nothing"
	exec 7<&- 8<&- 9<&-
	is "$(tail -n 1 "$dir/trigger")" "hist:keys=common_pid:vals=hitcount:sort=hitcount:size=2048 [active]" \
		"$1: and has it when that is closed"
	is "$(io open "$dir/trigger" t)" OK "$1: which truncation removes"
	is "$(head -n 1 "$dir/trigger")" "# Available triggers:" "$1: so that none is left"
	yes "$1: removed again" sh -c "$3"
}

# This kprobe event keeps its system's directory.
if have_probes; then
	comes_and_goes kprobes/rhist_f "echo 'p:rhist_f ${SYS_FUNCTION}getsid' >>kprobe_events" "echo '-:rhist_f' >>kprobe_events"
else
	skip "kprobes/rhist_f" "no kprobes"
fi
if have_synthetic; then
	comes_and_goes synthetic/rhist_f "echo 'rhist_f u64 a; char s[16]' >>synthetic_events" \
		"echo '!rhist_f' >>synthetic_events"
else
	skip "synthetic/rhist_f" "no synthetic events"
fi

# A module's events leave with the module; in C, an open file of theirs does not keep it.
if modprobe -n nbd 2>/dev/null; then
	no "nbd: not there before" test -e events/nbd
	yes "nbd: can be loaded" modprobe nbd nbds_max=0
	is "$(ls events/nbd)" "$(ls "$KERNEL/events/nbd")" "nbd: its events are there at once"
	is "$(cat events/nbd/*/id)" "$(cat "$KERNEL"/events/nbd/*/id)" "nbd: and can be read"
	is "$(io write events/nbd/nbd_send_request/trigger w hist:keys=dev_index)" OK "nbd: takes a histogram"
	is "$(io write events/nbd/nbd_send_request/trigger w '!hist:keys=dev_index')" OK "nbd: gives it back"
	yes "nbd: can be removed" rmmod nbd
	no "nbd: gone at once" test -e events/nbd
	is "$(ls events | grep -x nbd)" "" "nbd: no longer listed"
	yes "nbd: can be loaded again" modprobe nbd nbds_max=0
	exec 7<events/nbd/nbd_send_request/trigger
	yes "nbd: can be removed while a trigger of it is open" rmmod nbd
	is "$(io read 7)" ENODEV "nbd: reading the open trigger says ENODEV"
	exec 7<&-
else
	skip "events of a module" "no module nbd"
fi

# --- owner and mode

# owned PATH: in the directory under test, and in the kernel's
owned() { echo "$(stat -c '%u:%g %a' "$1") $(stat -c '%u:%g %a' "$KERNEL/$1")"; }

for path in instances events/irq events/irq/irq_handler_entry/enable options/overwrite; do
	was=$(stat -c '%u:%g %a' $path)
	chgrp 12 $path
	chmod 751 $path
	is "$(owned $path)" "${was%%:*}:12 751 ${was%%:*}:12 751" "group and mode of $path are the kernel's"
	[ $path = instances ] || chown "${was% *}" $path
	chmod "${was#* }" $path
done
mkdir instances/rhist_f
for path in . trace events events/irq/irq_handler_entry/enable events/irq/irq_handler_entry/hist; do
	is "$(stat -c %g instances/rhist_f/$path)" 12 "an instance has the group of instances: $path"
done
rmdir instances/rhist_f
chgrp 0 instances
if [ "$TRACING" != "$KERNEL" ]; then
	was=$(stat -c '%u:%g %a' "$KERNEL")
	chgrp 12 . && chmod 701 .
	is "$(stat -c '%u:%g %a' "$KERNEL")" "$was" "the directory itself is not the kernel's"
	chgrp 0 . && chmod "${was#* }" .
fi

# --- rename

# Both directories are locked while names are looked up in them: see the test rename.
for dir in . instances events events/sched events/sched/sched_waking; do
	is "$(io rename "$KERNEL/$dir/nosuch" "$dir/nosuch")" ENOENT "no rename from the kernel's $dir"
	is "$(io rename "$dir/nosuch" "$KERNEL/$dir/nosuch")" ENOENT "no rename to the kernel's $dir"
done
is "$(io rename "$KERNEL/README" ./nosuch)" EPERM "no rename from the kernel's directory"
is "$(io rename ./README "$KERNEL/nosuch")" EPERM "no rename to the kernel's directory"

cd /
clean 2>/dev/null
finish
