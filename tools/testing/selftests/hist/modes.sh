#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Modes and owners: changes to the kernel's files show on rhist's, and permissions work like the
# kernel's own.
. "$(dirname "$0")/../lib/tracing.sh"

cd "$TRACING" || exit 1

EVENT=events/irq/irq_handler_entry OTHER=events/irq/irq_handler_exit GROUP=12 USER=4711

# Files that mirror the kernel's, outside of events/ and below it.
outside="README trace tracing_on set_event options options/overwrite per_cpu/cpu0 per_cpu/cpu0/trace instances"
below="events events/irq events/enable events/irq/filter $EVENT $EVENT/enable $EVENT/format"
# rhist's own files whose names the kernel has, too.
own="$EVENT/trigger $EVENT/hist"
top_own=error_log
[ ! -e "$KERNEL/show_event_triggers" ] || top_own="$top_own show_event_triggers"

# stat(2) makes tracefs update the owner, so ask for the kernel's file last.
owner() { stat -c '%n %u:%g %a' "$@"; }
ours() { (cd "$TRACING" && owner "$@"); }
kernels() { (cd "$KERNEL" && owner "$@"); }

# Drops unused names and inodes, with the memory that rhist has for them.
forget()
{
	sync
	for i in 1 2 3; do echo 2 >/proc/sys/vm/drop_caches; done
}

# can PATH: prints the access that a user has through the group alone: r, w
can()
{
	for mode in r w; do
		[ "$(setpriv --reuid $USER --regid $GROUP --clear-groups "$io" open "$1" $mode)" != OK ] || printf $mode
	done
}
# both PATH: prints the access to the kernel's file, and to ours
both() { echo "C: $(can "$KERNEL/$1") ours: $(can "$TRACING/$1")"; }

remount() { mount -o "remount,$1" "$KERNEL"; }

if [ "$TRACING" = "$KERNEL" ]; then
	skip "modes and owners" "this is not rhist"
	finish
fi

# A program that the group can reach.
io=/tmp/rhist-io
cp "$(command -v io)" $io && chmod 755 $io || exit 1
root_before=$(stat -c '%u:%g %a' "$KERNEL") top_before=$(stat -c '%u:%g %a' "$TRACING")

clean()
{
	remount uid=0,gid=0,mode=700
	chmod "${root_before#* }" "$KERNEL"
	chown "${root_before% *}" "$KERNEL"
	chmod "${top_before#* }" "$TRACING"
	chown "${top_before% *}" "$TRACING"
	rm -f $io
}

# --- as they are

is "$(ours $outside $below $own $top_own)" "$(kernels $outside $below $own $top_own)" "modes and owners are the kernel's"
is "$(ours hist_stats user_events_status $EVENT/hist_jsonl $EVENT/hist_delta $EVENT/hist_delta_jsonl)" "hist_stats 0:0 440
user_events_status 0:0 440
$EVENT/hist_jsonl 0:0 440
$EVENT/hist_delta 0:0 440
$EVENT/hist_delta_jsonl 0:0 440" "and those of what the kernel does not have"

# --- changes to the kernel's files

for path in $outside $below; do
	was=$(cd "$KERNEL" && stat -c '%u:%g %a' $path)
	ours $path >/dev/null
	chown $USER:$GROUP "$KERNEL/$path"
	chmod 751 "$KERNEL/$path"
	is "$(ours $path)" "$path $USER:$GROUP 751" "$path: chmod and chown of the kernel's hold here"
	forget
	is "$(ours $path) $(kernels $path)" "$path $USER:$GROUP 751 $path $USER:$GROUP 751" "$path: also when it is looked up anew"
	chown "${was% *}" $path
	chmod "${was#* }" $path
	is "$(kernels $path)" "$path $was" "$path: and those of ours hold there"
done

# --- times can be set and seen, and are the kernel's

when() { stat -c '%n %X %Y' "$@"; }
for path in $outside $below $own; do
	touch -d '2001-02-03 04:05:06' $path
	is "$(when $path)" "$path 981173106 981173106" "$path: times can be set"
done
is "$(cd "$KERNEL" && when $outside $below)" "$(when $outside $below)" "those of the kernel's are the same"
touch README
no "README: and to the present" test "$(stat -c %Y README)" = 981173106

# --- chown clears some bits of a mode, and must not restore a cleared one

chmod 4666 tracing_on
chmod 600 "$KERNEL/tracing_on"
$io own tracing_on >/dev/null
is "$(kernels tracing_on)" "tracing_on 0:0 600" "chown clears bits of the mode that the kernel's has now"
chmod 4640 "$KERNEL/tracing_on"
$io own tracing_on >/dev/null
is "$(ours tracing_on) $(kernels tracing_on)" "tracing_on 0:0 640 tracing_on 0:0 640" "and they are cleared of both"

# --- rhist's own files keep a mode or owner that is set, as the kernel's do

number=$(stat -c %i $OTHER/trigger)
for path in $own $top_own hist_stats $EVENT/hist_jsonl $EVENT/hist_delta; do
	was=$(stat -c '%u:%g %a' $path)
	chown $USER:$GROUP $path && chmod 604 $path
	if [ -e "$KERNEL/$path" ]; then
		is "$(kernels $path)" "$path $was" "$path: the kernel's own is left alone"
		chown $USER:$GROUP "$KERNEL/$path" && chmod 604 "$KERNEL/$path"
	fi
	forget
	is "$(ours $path)" "$path $USER:$GROUP 604" "$path: chmod and chown last when it is looked up anew"
	[ ! -e "$KERNEL/$path" ] || is "$(kernels $path)" "$path $USER:$GROUP 604" "$path: as of the kernel's"
	for dir in "$TRACING" "$KERNEL"; do
		[ ! -e "$dir/$path" ] || { chown "${was% *}" "$dir/$path" && chmod "${was#* }" "$dir/$path"; }
	done
done
no "what nobody has changed was forgotten meanwhile" test "$number" = "$(stat -c %i $OTHER/trigger)"

# A removed event leaves nothing of its modes to a new one of its name.
echo 'rhist_m u64 a' >>"$KERNEL/synthetic_events"
chmod 666 events/synthetic/rhist_m/trigger "$KERNEL/events/synthetic/rhist_m/trigger"
echo '!rhist_m' >>"$KERNEL/synthetic_events"
echo 'rhist_m u64 a' >>"$KERNEL/synthetic_events"
is "$(ours events/synthetic/rhist_m/trigger)" "$(kernels events/synthetic/rhist_m/trigger)" \
	"a new event has nothing of an old one with its name"
echo '!rhist_m' >>"$KERNEL/synthetic_events"

# --- the tracing directory is given to a group

# Files whose group was changed do not follow until the next remount.
remount uid=0,gid=0
chgrp $GROUP "$KERNEL" && chmod 750 "$KERNEL"
is "$(ours $outside $below)" "$(kernels $outside $below)" "after chgrp of the tracing directory"
is "$(kernels README trace)" "README 0:$GROUP 440
trace 0:$GROUP 640" "which files outside of events/ follow"
chmod 711 .
for path in README trace options/overwrite tracing_on events/enable $EVENT/enable $EVENT/format; do
	is "$(both $path)" "C: $(can "$KERNEL/$path") ours: $(can "$KERNEL/$path")" "$path: what its members may do"
done
is "$(can trace)" r "they may read trace"
chgrp 0 "$KERNEL" && chmod 711 "$KERNEL"
# As seen by a user who uses rhist's directory only.
is "$(can trace)$(can README)" "" "and not any more when it was taken from them"
is "$(ours $outside $below)" "$(kernels $outside $below)" "after that"

# --- a file is given, and taken

for path in trace $EVENT/enable; do
	is "$(both $path)" "C:  ours: " "$path: of root only"
	chgrp $GROUP "$KERNEL/$path" && chmod 660 "$KERNEL/$path"
	is "$(both $path)" "C: rw ours: rw" "$path: given to a group"
	chmod 640 "$KERNEL/$path"
	is "$(both $path)" "C: r ours: r" "$path: to read only"
	chgrp 0 "$KERNEL/$path"
	is "$(both $path)" "C:  ours: " "$path: taken"
done
chgrp $GROUP $EVENT/trigger "$KERNEL/$EVENT/trigger"
chmod 660 $EVENT/trigger "$KERNEL/$EVENT/trigger"
is "$(both $EVENT/trigger)" "C: rw ours: rw" "$EVENT/trigger: given to a group"
chgrp 0 $EVENT/trigger "$KERNEL/$EVENT/trigger"
chmod 640 $EVENT/trigger "$KERNEL/$EVENT/trigger"
is "$(both $EVENT/trigger)" "C:  ours: " "$EVENT/trigger: taken"

# --- remount

# Some names are in memory, the others are looked up later.
all="$outside $below $own $top_own"
chgrp 13 $EVENT/enable $EVENT/trigger "$KERNEL/$EVENT/trigger" trace
remount gid=$GROUP
is "$(ours $all $OTHER/trigger hist_stats | grep -vc ":$GROUP ")" 0 "remount with gid=: all belong to the group"
is "$(ours $all)" "$(kernels $all)" "as the kernel's do, also those that were another's"
forget
is "$(ours $all $OTHER/trigger hist_stats | grep -vc ":$GROUP ")" 0 "also when they are looked up anew"
is "$(ours $all)" "$(kernels $all)" "as the kernel's"
is "$(both $EVENT/trigger) $(both $EVENT/hist) $(both $EVENT/enable) $(both error_log)" \
	"C: r ours: r C: r ours: r C: r ours: r C: r ours: r" "its members may read them"
echo 'rhist_m u64 a' >>"$KERNEL/synthetic_events"
is "$(ours events/synthetic/rhist_m/trigger events/synthetic/rhist_m/enable)" \
	"$(kernels events/synthetic/rhist_m/trigger events/synthetic/rhist_m/enable)" "and the files of a new event"
echo '!rhist_m' >>"$KERNEL/synthetic_events"
mkdir instances/rhist_m
for path in . trace events $EVENT/enable $EVENT/trigger error_log; do
	is "$(ours instances/rhist_m/$path)" "$(kernels instances/rhist_m/$path)" "and of a new instance: $path"
done
rmdir instances/rhist_m
chgrp 0 $EVENT/enable
is "$(ours $EVENT/enable)" "$(kernels $EVENT/enable)" "they can be given to others again"
remount uid=$USER
is "$(ours $all)" "$(kernels $all)" "remount with uid="
remount uid=0,gid=0
is "$(ours $all)" "$(kernels $all)" "remount with both"
is "$(ours $all | grep -vc ' 0:0 ')" 0 "gives all back to root"
was=$(stat -c '%u:%g %a' .)
remount mode=755
is "$(stat -c %a "$KERNEL") $(stat -c '%u:%g %a' .)" "755 $was" "remount with mode= is for the tracing directory only"
is "$(ours $all)" "$(kernels $all)" "and changes no file"
mkdir "$work/mount"
mount -t tracefs -o mode=700,gid=$GROUP tracefs "$work/mount"
is "$(ours $all)" "$(kernels $all)" "another mount with options is a remount"
umount "$work/mount"

clean
is "$(ours $all | grep -vc ' 0:0 ')" 0 "in the end all belongs to root"
finish
