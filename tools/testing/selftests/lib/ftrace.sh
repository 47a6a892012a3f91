# SPDX-License-Identifier: GPL-2.0
#
# Shared by the tests that run the kernel's own ftracetest. To be sourced, in a mount namespace of
# its own: it makes $ftrace, a copy of these tests, and the programs that they need.

# In memory: the test of kmem_cache_free looks for its most frequent caller among the kernel's
# built-in functions, and a root file system from a module (9p) would be that caller. So ls has to
# be there, too.
export TMPDIR=/dev/shm
. "$(dirname "$0")/../lib/tracing.sh"
mkdir "$work/bin"
cp "$(command -v busybox)" "$work/bin/ls" && PATH=$work/bin:$PATH

upstream=$RHIST_KERNEL_SOURCE/tools/testing/selftests/ftrace
if [ ! -e "$upstream/ftracetest" ]; then
	skip "ftracetest" "RHIST_KERNEL_SOURCE is not the source of a kernel"
	finish
fi

# A copy, since the tests need a program of theirs beside them, and write there.
ftrace=$work/ftrace
mkdir "$ftrace"
cp -r "$upstream/ftracetest" "$upstream/test.d" "$ftrace/"

# They wake up processes called ping. Without a network, a stand-in of that name has to do.
ip link set lo up 2>/dev/null
if ! ping -c 1 127.0.0.1 >/dev/null 2>&1; then
	cat >"$work/bin/ping" <<-'END'
	#!/bin/sh
	# ping ADDRESS -c COUNT
	for i in $(seq "$3"); do sleep 0.2; done
	END
	chmod +x "$work/bin/ping"
fi

# tests NAME...: prints the files of these tests
tests() { for n; do find "$ftrace/test.d" -name "$n.tc"; done; }

# Prints how often rhist accepted a hist command or showed a histogram: two numbers in hist_stats.
asked() { awk '/^(commands|reads):/ { n += $2 } END { print n + 0 }' "$KERNEL/hist_stats" 2>/dev/null; }
