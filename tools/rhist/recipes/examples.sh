#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# examples.sh PROGRAM FOLDER: runs recipes on a busy machine, and writes their output to
# FOLDER/NAME.txt, for the manual. Run it as root in a guest with the module:
#
#   scripts/vm -- sh tools/rhist/recipes/examples.sh build/command/rhist build/examples
#
# Then review the files, and copy the instructive ones to recipes/examples.

set -u
rhist=$1 out=$2
mkdir -p "$out"
work=$(mktemp -d)

# Load: a disk that takes 2 ms per request, and programs that use it, the CPUs, the network, and
# signals.
modprobe null_blk nr_devices=1 gb=1 irqmode=2 completion_nsec=2000000 queue_mode=2 2>/dev/null
ip link set lo up
(cd "$work" && exec python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1) &
(while :; do ls -lR /usr/share/perl5 /etc 2>/dev/null | sort | uniq -c | wc >/dev/null; done) &
(while :; do dd if=/dev/zero of=/dev/nullb0 bs=64k count=20 conv=fsync 2>/dev/null; done) &
(while :; do dd if=/dev/nullb0 of=/dev/null bs=4k count=50 iflag=direct 2>/dev/null; sleep 0.05; done) &
(exec python3 -c '
import time, urllib.request
while True:
    try:
        urllib.request.urlopen("http://127.0.0.1:8000/").read()
    except OSError:
        pass
    time.sleep(0.02)
') &
sh -c 'trap : USR1; while :; do sleep 0.1; kill -USR1 $$; done' &
sleep 3

# show NAME ARGUMENT…: stores the command line, and the first lines of its output
show()
{
	name=$1
	shift
	echo "# $name" >&2
	{
		echo "# rhist $name $*"
		COLUMNS=79 timeout 60 "$rhist" "$name" "$@" -q >"$work/printed" 2>&1
		sed 's/[[:blank:]]*$//' "$work/printed" | head -n 22
		[ "$(wc -l <"$work/printed")" -le 22 ] || echo '…'
	} >"$out/$name.txt"
}

for name in runqlat cpudist wakeuptime biolatency bitesize biotop hardirqs softirqs wqlat timerlag lockwait tcpconnlat tcplife \
	tcpdrop tcptop tcprtt kmem pagefaults vfsstat fsync-latency execs signals migrations cpuidle profile; do
	show $name -d 3
done
show offcputime -d 2 -c dd
show syscount -d 2 --errors
show syscall-latency -d 2 -c dd
show funclatency vfs_read -d 2 --by comm
tc qdisc add dev lo root netem loss 10% 2>/dev/null
show tcpretrans -d 4
kill $(jobs -p) 2>/dev/null
rm -rf "$work"
