#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scripts/event-sources finds the expected types in the source of a kernel, and refuses the source
# of another one.
#
# usage: event-sources.sh SOURCE KDIR BTF MODULES    of the lab's kernel

set -u
[ $# = 4 ] || { sed -n 's/^# \(usage: \)/\1/p' "$0" >&2; exit 2; }
source=$1
shift
cd "$(dirname "$0")/../../.." || exit 1
. tools/testing/selftests/lib/tap.sh
shown=$work/said

# The needed parts of the source, with links to all files that are only read.
mkdir -p "$work"/source/{arch/x86,fs,net}
cp "$source/Makefile" "$work/source"
cp -as "$source/include" "$work/source"
cp -as "$source/arch/x86/include" "$work/source/arch/x86"
cp -as "$source"/fs/{Makefile,iomap,nfsd} "$work/source/fs"
cp -as "$source"/net/{Makefile,mac80211} "$work/source/net"
# A comment that is not UTF-8.
rm "$work/source/fs/iomap/trace.h"
{ printf '/* \xe9 */\n' && cat "$source/fs/iomap/trace.h"; } >"$work/source/fs/iomap/trace.h"
find_events() { scripts/event-sources "$work/source" "$@" >"$work/found" 2>"$work/said"; }
of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]][sys.argv[3]])' "$work/found" "$@"; }
refused() { # refused NAME SENTENCE
	yes "$1: status 1" [ $? = 1 ]
	yes "$1: said" grep -qF "$2" "$work/said"
}

find_events "$@"
yes "the lab's kernel: status 0" [ $? = 0 ]
yes "events of the kernel itself" [ "$(of fs/iomap/trace module)" = None ]
yes "events of a module" eval '[[ $(of net/mac80211/trace module) = */mac80211.ko* ]]'
yes "what the source file includes before" eval '[[ $(of net/mac80211/trace before) = *driver-ops.h* ]]'
no "but what defines tracepoints" eval '[[ $(of net/mac80211/trace before) = *CREATE_TRACE_POINTS* ]]'
yes "what the makefile says" eval '[[ $(of net/mac80211/trace options) = *-DDEBUG* ]]'
no "no events that only a module has which is not there" of fs/xfs/xfs_trace module

rm "$work/source/include/linux/sched.h"
find_events "$@"
refused "a source without a header" "include/linux/sched.h is not the one in"
sed 's/TASK_RUNNING/TASK_WALKING/' "$source/include/linux/sched.h" >"$work/source/include/linux/sched.h"
find_events "$@"
refused "a source with another header" "include/linux/sched.h is not the one in"
sed -i 's/^SUBLEVEL = .*/SUBLEVEL = 99/' "$work/source/Makefile"
find_events "$@"
refused "another version" "the kernel that is built for is"
rm "$work/source/Makefile"
find_events "$@"
refused "no source" "is not the source of a kernel"
finish
