#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The kernel's own tests of triggers, filters, synthetic events and owners, unmodified, with the
# directory under test as their tracing directory: in a mount namespace where it lies over the
# kernel's. A test that skips itself has to do so with C, too.
#
# ftracetest.sh [NAME...]: all of them, or these
#
# RHIST_KERNEL_SOURCE   the source of the kernel that is running

[ "$OWN_NAMESPACE" ] || OWN_NAMESPACE=1 exec unshare -m "$0" "$@"

. "$(dirname "$0")/../lib/ftrace.sh"

mount --bind "$TRACING" "$KERNEL" || exit 1

# result NUMBER PASSED WHAT: prints a point for a result of ftracetest of the test in WHAT
result()
{
	log=$(echo "$logs/$1"-*)
	name=${log##*/"$1"-}
	name=${name%.tc-log.*}
	title=$name passed=$2
	case $3 in
	*"(instance)"*) title="$name in an instance" ;;
	esac
	before=$(cat "$work/asked")
	asked >"$work/asked"
	case $3 in
	*"# SKIP"*)
		tests "$name" >>"$work/skipped"
		return ;;
	esac
	if [ "$TRACING" != "$KERNEL" ] && grep -q 'hist:' "$(tests "$name")" && [ "$(cat "$work/asked")" = "$before" ]; then
		echo "# $name: rhist was not asked"
		passed=1
	fi
	if [ "$passed" != 0 ] && tail -n 9 "$log" | grep -q '^poll exits too soon'; then
		# poll() returned while the process was still exiting: the event comes before its
		# end, and either may win. In software emulation C loses as well, each time; the
		# test poll checks that poll() does not return too early.
		if [ "$tries" -gt 1 ]; then
			echo "# $title: once more, the process had not been reaped yet"
			tests "$name" >>"$work/again"
		else
			skip "$title" "the process is still there when poll() returns, as with C"
		fi
	elif ok "$passed" "$title"; then
		echo "$name" >>"$work/passed"
	else
		tail -n 20 "$log" | cut -c 1-200 | sed 's/^/# /'
	fi
}

# ftracetest TEST...
ftracetest()
{
	logs=$(mktemp -d "$work/logs.XXX") || exit 1
	echo none >"$work/done"
	echo all >"$work/planned"
	# Once only, if user-mode Linux runs it in instances, too.
	! rest_only || find "$ftrace/test.d" -name '*.tc' -exec sed -i 's/^# flags: instance/# flags:/' {} +
	sh "$ftrace/ftracetest" -K -k -l "$logs" "$@" 2>&1 </dev/null |
	while IFS= read -r line; do
		case $line in
		"ok "*) passed=0 line=${line#ok } ;;
		"not ok "*) passed=1 line=${line#not ok } ;;
		1..*) echo "${line#1..}" >"$work/planned"; continue ;;
		*) echo "# $line"; continue ;;
		esac
		number=${line%%[!0-9]*}
		result "$number" "$passed" "${line#"$number"}"
		echo "$number" >"$work/done"
	done
	is "$(cat "$work/done")" "$(cat "$work/planned")" "ftracetest has run to its end"
}

# An emulated processor takes many minutes for the tests that user-mode Linux runs as well. There,
# run only those that depend on functions, symbols and probes of the real kernel. On each of the
# known kernels, at least this many pass.
least=1
if [ $# = 0 ] && rest_only; then
	least=3
	set -- event-filter-function trigger-hist-mod trigger-synthetic-eprobe
else
	cp "$OUT/ftrace-poll" "$ftrace/poll" || exit 1
fi
if [ $# -gt 0 ]; then
	set -- $(tests "$@")
else
	least=36
	have_probes || least=34
	set -- "$ftrace"/test.d/00basic/test_ownership.tc \
		"$ftrace"/test.d/filter/*.tc "$ftrace"/test.d/trigger/*.tc "$ftrace"/test.d/trigger/inter-event/*.tc \
		$(grep -l synth "$ftrace"/test.d/dynevent/*.tc)
fi
: >"$work/skipped"
: >"$work/passed"
asked >"$work/asked"
tries=5
while [ $# -gt 0 ]; do
	: >"$work/again"
	ftracetest "$@"
	set -- $(sort -u "$work/again")
	tries=$((tries - 1))
done

# Tests that skip themselves: with C, too?
umount -l "$KERNEL"
for test in $(sort -u "$work/skipped"); do
	name=$(basename "$test" .tc)
	if sh "$ftrace/ftracetest" -K -l "$work/c" "$test" 2>/dev/null </dev/null | grep -q '# SKIP'; then
		skip "$name" "with C, too"
	else
		ok 1 "$name skips itself, but not with C"
	fi
done

passed=$(sort -u "$work/passed" | wc -l)
echo "# $passed scripts have passed"
ok $([ "$passed" -ge $least ]; echo $?) "at least $least scripts have passed"
finish
