#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The rules for walking stacks, which are learned from the kernel's ORC unwinder, compared with its
# tables; and rules of modules that replace each other. tools/testing/lab/orc has the module that
# compares.
. "$(dirname "$0")/../lib/tracing.sh"

modules=$(dirname "$(dirname "$RHIST_EVENTS")")/orc
results=/sys/module/orc_test/parameters

# addresses: the parameters of the module
addresses()
{
	awk '
		BEGIN {
			n = split("_stext _etext _sinittext _einittext __start_orc_unwind_ip __stop_orc_unwind_ip " \
				"__start_orc_unwind modules module_mutex", names)
			for (i = 1; i <= n; i++)
				wanted[names[i]]
		}
		$3 in wanted && NF == 3 { print $3 "=0x" $1 }' /proc/kallsyms
}

if ! grep -qw __start_orc_unwind /proc/kallsyms; then
	yes "a kernel without these tables: its own unwinder walks" grep -q '^stacks: by the unwinder$' "$TRACING/hist_stats"
	finish
fi

times=10
if [ "$LONG" ]; then
	# Modules with much code: finding out that an address is in one takes longer the more
	# functions it has.
	modprobe nf_tables 2>/dev/null
	modprobe xfs 2>/dev/null
	times=100
fi

yes "the tables are found" insmod "$modules/orc_test.ko" $(addresses)
[ -d $results ] || finish

# result NAME: of those in the file that was read last
result() { sed -n "s/^$1: //p" "$work/result"; }

# compare WHAT LEAST MOST: at least LEAST addresses are compared, and at most MOST lack a rule that
# they could have
compare()
{
	cat "$results/$1" >"$work/result"
	sed "s/^/# $1: /" "$work/result"
	shown=$work/result
	[ "$(result compared)" -ge "$2" ]
	ok $? "$1: at least $2 addresses are compared"
	is "$(result wrong)" 0 "$1: no rule is wrong"
	is "$(($(result equal) + $(result asked)))" "$(result compared)" "$1: all others are what the table says"
	[ "$(result asked)" -le "$3" ]
	ok $? "$1: at most $3 have no rule although the table says what a rule could"
	shown=
}

compare of_kernel 100000 500
for kind in sp bp sp_indirect bp_indirect regs end none; do
	[ "$(result $kind)" -gt 0 ]
	ok $? "of_kernel: rules of this kind: $kind"
done
compare of_calls 50000 500
compare of_modules 1000 10

# --- modules that replace each other: rules of the one are wrong for the other

i=0
while [ $i -lt $times ]; do
	for module in orc_flip_a orc_flip_b; do
		insmod "$modules/$module.ko" && rmmod $module || break 2
	done
	i=$((i + 1))
done
is $i $times "modules come and go"
cat $results/walks >"$work/result"
sed 's/^/# walks: /' "$work/result"
is "$(result walks)" $((4 * times)) "walks through them"
is "$(result different)" 0 "none has another result than the unwinder's"
is "$(result failed) $(result frames)" "0 0" "none by a rule that does not fit, or without one"
[ "$(result places)" -gt $times ]
ok $? "most of them are where the other one was"

# --- rules that a CPU moves while they are forgotten

cat $results/survivors >"$work/result"
sed 's/^/# survivors: /' "$work/result"
[ "$(result kept)" -gt 100 ]
ok $? "rules of a module are kept"
is "$(result left)" 0 "none is left when they were forgotten"

# --- an array of one entry

cat $results/beyond >"$work/result"
is "$(result entries)" "1 1" "one entry is asked for, and one is there"
is "$(result beyond)" 0 "nothing is written beyond it"

yes "nothing is left" rmmod orc_test
finish
