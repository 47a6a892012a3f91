#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scripts/needs finds missing symbols and members of a kernel; scripts/needs.exports is up to date,
# without a symbol by which rhist would expedite grace periods.
#
# usage: needs.sh SYMVERS BTF OBJECTS    of the lab's kernel; OBJECTS is where rhist was built for
#                                        it

set -u
symvers=${1:?} btf=${2:?} objects=${3:?}
cd "$(dirname "$0")/../../.." || exit 1
. tools/testing/selftests/lib/tap.sh
shown=$work/said

needs() { scripts/needs --symvers "$1" --btf "$2" >"$work/said" 2>&1; }

# Exactly this is missing.
lacks() { # lacks NAME SENTENCE
	local status=$?
	[ $status = 1 ] && [ "$(head -n 1 "$work/said")" = "needs: $2" ] && [ "$(wc -l <"$work/said")" = 2 ]
	ok $? "$1"
}

needs "$symvers" "$btf"
ok $? "the lab's kernel lacks nothing"

scripts/needs --exports "$objects" >"$work/exports" 2>"$work/said"
diff "$work/exports" scripts/needs.exports >>"$work/said"
ok $? "scripts/needs.exports is what the objects import"

! grep expedite scripts/needs.exports >"$work/said"
ok $? "no expedited grace period is asked for"

grep -vP '\ttrace_array_put\t' "$symvers" >"$work/symvers"
needs "$work/symvers" "$btf"
lacks "an export that is not there" "trace_array_put is not exported"

# BTF of a program without the kernel's structures.
echo 'struct dyn_event { int ops; } d; int main(void) { return 0; }' >"$work/kernel.c"
gcc -gdwarf-4 -O0 -c -o "$work/kernel.o" "$work/kernel.c" && pahole --btf_encode_detached="$work/btf" "$work/kernel.o"
needs "$symvers" "$work/btf"
[ $? = 1 ] && grep -qx "needs: the BTF in $work/btf does not describe 'struct event_command'" "$work/said" &&
	grep -qx "needs: member 'ops' of 'struct dyn_event' is 'int' in this kernel, not 'struct dyn_event_operations \*'" "$work/said" &&
	grep -qx "needs: this kernel has no enumerator 'EVENT_TRIGGER_FL_PROBE'" "$work/said"
ok $? "structures, members and enumerators, all that are missing"

finish
