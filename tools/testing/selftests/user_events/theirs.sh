#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The expectations of the tests hold for the kernel's own user events, where it has some.

. "$(dirname "$0")/../lib/tracing.sh"

if [ "$KERNEL/user_events_data" -ef "$TRACING/user_events_data" ]; then
	skip "the tests with C" "the kernel has none of its own"
	finish
fi
tests="requests callers events payloads processes"
# On user-mode Linux, C does not find the pages of files, and forgets bits.
[ ! -e /proc/exitcode ] || tests="requests callers events payloads"
for test in $tests; do
	TRACING=$KERNEL timeout -k 5 900 "$OUT/$test" >"$work/tap" 2>&1 </dev/null
	yes "$test with C" [ $? = 0 ] || sed '/^ok /d; s/^/# /' "$work/tap" | head -40
done
finish
