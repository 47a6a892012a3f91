#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Events of modules that rhist has probes for, and events of the kernel that use types which only
# its source defines (out of BTF: scripts/private_types.py, or out of the source:
# scripts/event-sources): each field has the same value as in C's record of the same hit.

. "$(dirname "$0")/../lib/tracing.sh"

source_of()
{
	sed -n "s|^$(echo "$1" | tr / :) *\([a-z_]*\), .*|\1|p" "$TRACING/hist_stats"
}

# Fields that are not compared. C and rhist read the fields of a hit one after the other, and these
# may change in between: a reference count, a number of another thread's, times in jiffies. And in
# 6.12, C takes arrays of bytes for text: the key ends at the first 0. Later kernels, and rhist, use
# all bytes.
left='\b(refcount|issued_to|age|period|paused);'
case $(uname -r) in
6.12.*) left="$left|unsigned char.*\[" ;;
esac

if ! modprobe -qna sd_mod scsi_debug ext4; then
	skip "events of modules" "this kernel has no scsi_debug or ext4 that is a module"
	finish
fi
for module in sd_mod "scsi_debug dev_size_mb=48" ext4; do
	yes "modprobe $module" modprobe $module
done
mkdir "$work/mount" "$work/found"
for try in 1 2 3 4 5 6 7 8 9 10; do
	disk=$(grep -ls '^scsi_debug' /sys/class/block/sd*/device/model 2>/dev/null | head -n 1)
	[ -z "$disk" ] || break
	sleep 1
done
disk=/dev/$(echo "$disk" | sed -n 's|/sys/class/block/\(sd[a-z]*\)/.*|\1|p')
yes "a disk of the module scsi_debug is there" test -b "$disk"
yes "it is formatted" busybox mke2fs "$disk"
yes "and mounted by ext4" mount -t ext4 "$disk" "$work/mount"

# If the module was built with the source of the kernel: an NVMe disk, which is a file behind a
# loop, and a radio.
event=iomap/iomap_iter nvme='' radio='' config=/sys/kernel/config/nvmet
echo 'hist:keys=dev' >"$TRACING/events/$event/trigger"
source=$(source_of $event)
: >"$TRACING/events/$event/trigger"
if [ "$source" = probe ] && modprobe -qna nvme_loop mac80211_hwsim; then
	yes "modprobe nvme_loop" modprobe nvme_loop
	yes "modprobe mac80211_hwsim" modprobe mac80211_hwsim radios=1
	[ -e $config ] || mount -t configfs configfs ${config%/*}
	mkdir $config/subsystems/rhist $config/subsystems/rhist/namespaces/1 $config/ports/1
	truncate -s 8M "$work/mount/disk"
	echo 1 >$config/subsystems/rhist/attr_allow_any_host
	echo "$work/mount/disk" >$config/subsystems/rhist/namespaces/1/device_path
	echo 1 >$config/subsystems/rhist/namespaces/1/enable
	echo loop >$config/ports/1/addr_trtype
	ln -s $config/subsystems/rhist $config/ports/1/subsystems/rhist
	echo transport=loop,nqn=rhist >/dev/nvme-fabrics
	yes "a disk of NVMe is there" soon test -b /dev/nvme0n1
	nvme=/dev/nvme0n1
	radio=$(basename "$(ls -d /sys/class/ieee80211/*/device/net/* | head -n 1)")
	yes "and a radio" test "$radio"
else
	skip "events that only the source of the kernel defines" "RHIST_KERNEL_SOURCE was not set when the module was built"
fi

# The one task whose hits are counted. It stops until all triggers exist, so that it does not even
# read a page of its program between the two triggers of an event.
cat >"$work/task.py" <<'END'
import fcntl, mmap, os, signal, socket, struct, sys
place, nvme, radio = sys.argv[1:]
os.chdir(place)
names = sorted(os.listdir("/usr/bin"))[:40]
os.kill(os.getpid(), signal.SIGSTOP)
for number in range(12):
    os.makedirs(f"d{number}/e", exist_ok=True)
    with open(f"d{number}/file", "wb") as file:
        for block in range(40):
            file.write(bytes([block]) * 4096 * (1 + block % 3))
        file.flush()
        os.fsync(file.fileno())
        os.ftruncate(file.fileno(), 4096 * (number + 1))
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    os.rename(f"d{number}/file", f"d{number}/e/g{number}")
    os.symlink("x" * (20 * number + 1), f"d{number}/link")
    os.link(f"d{number}/e/g{number}", f"d{number}/hard")
    with open(f"d{number}/hard", "r+b") as file:
        with mmap.mmap(file.fileno(), 4096) as pages:
            pages[5] = 7
            pages.flush()
        os.pread(file.fileno(), 4096, 0)
for number in range(0, 12, 2):
    os.unlink(f"d{number}/hard")
    os.unlink(f"d{number}/e/g{number}")
    os.rmdir(f"d{number}/e")
os.sync()
pages = mmap.mmap(-1, 8192)
for disk in "direct", nvme:
    if disk:
        direct = os.open(disk, os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
        for number in range(8):
            os.pwritev(direct, [pages], 8192 * number)
            os.preadv(direct, [pages], 8192 * number)
        os.close(direct)
if radio:
    SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP, IFF_PROMISC = 0x8913, 0x8914, 0x1, 0x100
    device = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    request = fcntl.ioctl(device, SIOCGIFFLAGS, struct.pack("16sh14x", radio.encode(), 0))
    flags = struct.unpack("16sh14x", request)[1]
    for wanted in IFF_UP, IFF_UP | IFF_PROMISC, 0:
        fcntl.ioctl(device, SIOCSIFFLAGS, struct.pack("16sh14x", radio.encode(), flags | wanted))
for name in names:
    os.stat("/usr/bin/" + name)
    with open("/usr/bin/" + name, "rb") as file:
        file.read(65536)
END
python3 "$work/task.py" "$work/mount" "$nvme" "$radio" &
task=$!
yes "the task is ready" soon grep -q '^State:.T' /proc/$task/status

# Each event of these systems that rhist has a probe for: all fields of events from the source,
# three at a time; of the others, the last three that can be keys, as C allocates all entries of a
# histogram in advance, which takes long here.
cat >"$work/triggers.py" <<'END'
import glob, re, sys
kernel, tracing, task, left, *systems = sys.argv[1:]
whole = {"iomap", "nvme", "nvmet", "mac80211"}

def add(folder, trigger):
    try:
        with open(f"{folder}/trigger", "a") as file:
            file.write(trigger)
    except OSError as error:
        return error

for event in sorted({event for system in systems for event in glob.glob(f"{kernel}/events/{system}")}):
    name = event.removeprefix(f"{kernel}/events/")
    try:
        with open(f"{event}/format") as file:
            lines = [line[:-1] for line in file if line.startswith("\tfield:") and "common_" not in line]
    except OSError:
        continue
    fields = [re.sub(r".*[ *]", "", re.sub(r"\[[^]]*\]$", "", line.split(";")[0])) for line in lines if not re.search(left, line)]
    print(name)
    for i in reversed(range(0, len(fields), 3)):
        trigger = f"hist:keys={','.join(fields[i : i + 3])} if common_pid == {task}\n"
        if not add(event, trigger):
            if error := add(f"{tracing}/events/{name}", trigger):
                print(f"{name}: rhist does not take {trigger[:-1]}: {error}", file=sys.stderr)
            if name.split("/")[0] not in whole:
                break
END
systems="9p/* ext4/* netfs/* scsi/* workqueue/* kmem/kmem_cache_* kmem/mm_page_* writeback/* compaction/*"
[ ! "$radio" ] || systems="$systems iomap/iomap_iter iomap/iomap_dio_* nvme/* nvmet/* mac80211/drv_start
	mac80211/drv_return_* mac80211/drv_*_interface mac80211/drv_config*"
set -f
python3 "$work/triggers.py" "$KERNEL" "$TRACING" $task "$left" $systems >"$work/all" 2>"$work/refused"
yes "triggers were written" test $? = 0
set +f
shown="$work/refused"
yes "rhist takes what C takes" test ! -s "$work/refused"
sed -n 's|^\([a-z0-9_]*\):\([a-z0-9_]*\) *\([a-z_]*\), .*|\1/\2 \3|p' "$TRACING/hist_stats" | sort -u >"$work/sources"
sed -n 's/ probe$//p' "$work/sources" >"$work/events"
events=$(grep -c . "$work/events")
echo "# $events events with a probe; without: $(sed -n 's/ event_file$//p' "$work/sources" | paste -sd' ')"
yes "there are many" test "$events" -ge 100

kill -CONT $task
wait $task
yes "the task has done all of it" test $? = 0

cat >"$work/entries.py" <<'END'
import sys
from collections import Counter
kernel, tracing, different, found = sys.argv[1:]

def entries(folder, name):
    with open(f"{folder}/events/{name}/hist", errors="surrogateescape") as file:
        return [line for line in file if line.startswith("{")]

for name in sys.stdin.read().split():
    theirs, ours = entries(kernel, name), entries(tracing, name)
    if theirs or ours:
        with open(f"{found}/{name.split('/')[0]}", "a") as file:
            print(name, file=file)
    if theirs != ours:
        with open(different, "a", errors="surrogateescape") as file:
            print(name, file=file)
            theirs, ours = Counter(theirs), Counter(ours)
            only = ["C: " + line for line in theirs - ours] + ["rhist: " + line for line in ours - theirs]
            file.writelines(only[:12] or ["the order\n"])
END
python3 "$work/entries.py" "$KERNEL" "$TRACING" "$work/different" "$work/found" <"$work/events"
yes "all histograms were read" test $? = 0
shown="$work/different"
yes "each field of each hit is what it is in C" test ! -s "$work/different"
for system in 9p:1 ext4:30 netfs:4 scsi:1 workqueue:1 kmem:2 ${radio:+iomap:2 nvme:1 nvmet:1 mac80211:5}; do
	count=$(grep -c . "$work/found/${system%:*}" 2>/dev/null)
	yes "of ${system%:*}, ${count:-0} events were hit" test "${count:-0}" -ge "${system#*:}"
done

# It stays as long as its events are counted.
if [ "$radio" ]; then
	echo 1 >/sys/class/nvme/nvme0/delete_controller
	rm $config/ports/1/subsystems/rhist
	rmdir $config/ports/1 $config/subsystems/rhist/namespaces/1 $config/subsystems/rhist
fi
umount "$work/mount"
while read -r name; do
	: >"$TRACING/events/$name/trigger"
	: >"$KERNEL/events/$name/trigger"
done <"$work/all"
event=ext4/ext4_sync_file_enter
echo 'hist:keys=dev,ino' >"$TRACING/events/$event/trigger"
is "$(source_of $event)" probe "the source of $event"
no "ext4 cannot be unloaded while its events are counted" rmmod ext4
: >"$TRACING/events/$event/trigger"
yes "ext4 is unloaded" rmmod ext4
no "its events are gone" test -e "$TRACING/events/$event/trigger"
yes "and loaded again" modprobe ext4
yes "mounted again" mount -t ext4 "$disk" "$work/mount"
echo 'hist:keys=dev,ino' >"$TRACING/events/$event/trigger"
sync "$work/mount/direct"
is "$(total Hits "$TRACING/events/$event/hist")" 1 "its events are counted again"
is "$(source_of $event)" probe "by a probe"
: >"$TRACING/events/$event/trigger"
umount "$work/mount"

# A module whose init fails may go, even with references.
event=rhist_events/numbers
for fails in 1 0; do
	insmod "$RHIST_EVENTS" init_ms=3000 init_fails=$fails 2>/dev/null &
	yes "a module is being loaded" soon test -e "$TRACING/events/$event/trigger"
	is "$(io write "$TRACING/events/$event/trigger" a 'hist:keys=u32')" ENODEV "its events cannot be counted yet"
	no "nor switched by another trigger" sh -c 'echo "$1" >>"$2"' sh "enable_hist:${event%/*}:${event#*/}" \
		"$TRACING/events/task/task_rename/trigger"
	wait $!
	is $? $fails "it is loaded, or not: init_fails=$fails"
	is "$(grep -c "${event%/*}:" "$TRACING/hist_stats")" 0 "nothing is counted"
done
is "$(io write "$TRACING/events/$event/trigger" a 'hist:keys=u32')" OK "when it is loaded, its events can be counted"
: >"$TRACING/events/$event/trigger"
rmmod rhist_events

# A module of another kernel may have other structures of the same names.
yes "a module of another source has an event with the name of one of the kernel's" insmod "$RHIST_EVENTS"
event=watchdog/watchdog_ping
echo 'hist:keys=id' >"$TRACING/events/$event/trigger"
is "$(source_of $event)" event_file "which its own probe counts"
: >"$TRACING/events/$event/trigger"

# held: prints the references on both modules
held() { echo $(cat /sys/module/rhist_events/refcnt /sys/module/watchdog/refcnt); }
yes "the kernel's module is there, too" modprobe watchdog
is "$(held)" "0 0" "none of the two is used"
echo 'hist:keys=id' >"$TRACING/events/$event/trigger"
is "$(source_of $event), $(held)" "event_file, 1 0" "the event of the module that was loaded first is counted, whose directory it is"
yes "the other one can go" rmmod watchdog
no "and this one cannot" rmmod rhist_events
: >"$TRACING/events/$event/trigger"
yes "until nothing is counted" rmmod rhist_events
finish
