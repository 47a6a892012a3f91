#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The kernel's own tests of triggers and filters, as they stand in its source, with the directory
# under test as their tracing directory: in a mount namespace where it lies over the kernel's.
#
# ftracetest.sh [NAME...]: all of them, or these
#
# RHIST_KERNEL_SOURCE   the source of the kernel that is running

[ "$OWN_NAMESPACE" ] || OWN_NAMESPACE=1 exec unshare -m "$0" "$@"

# In memory: the test of kmem_cache_free looks for its most frequent caller among the kernel's built-in
# functions, and a root file system from a module (9p) would be that caller. So ls has to be there, too.
export TMPDIR=/dev/shm
. "$(dirname "$0")/lib.sh"
mkdir "$work/bin"
cp "$(command -v busybox)" "$work/bin/ls" && PATH=$work/bin:$PATH

# What has to fail so far, and why. Whatever is not named here has to pass. The tests of
# test.d/trigger/inter-event are not run: they are about variables and actions.
cat >"$work/missing" <<'END'
trigger-hist-expressions		variables
trigger-trace-marker-synthetic		variables
trigger-trace-marker-synthetic-kernel	variables
END

upstream=$RHIST_KERNEL_SOURCE/tools/testing/selftests/ftrace
if [ ! -e "$upstream/ftracetest" ]; then
	skip "ftracetest" "RHIST_KERNEL_SOURCE is no source of a kernel"
	finish
fi

# A copy, since the tests want a program of theirs beside them, and write there.
ftrace=$work/ftrace
mkdir -p "$ftrace/test.d"
cp "$upstream/ftracetest" "$ftrace/"
for part in functions trigger filter; do
	cp -r "$upstream/test.d/$part" "$ftrace/test.d/"
done
cc -o "$ftrace/poll" "$upstream/poll.c" || exit 1

mount --bind "$TRACING" "$KERNEL" || exit 1

# How often rhist took a hist command or showed a histogram: two numbers in hist_stats.
asked() { awk '/^(commands|reads):/ { n += $2 } END { print n + 0 }' "$KERNEL/hist_stats" 2>/dev/null; }

# result NUMBER PASSED WHAT: a point for what ftracetest says of a test in WHAT
result()
{
	log=$(echo "$logs/$1"-*)
	name=${log##*/"$1"-}
	name=${name%.tc-log.*}
	title=$name passed=$2
	case $3 in
	*"(instance)"*) title="$name in an instance" ;;
	esac
	lacks=$(sed -n "s/^\($name\|$title\)		*//p" "$work/missing")
	case $3 in
	# for ftracetest that is no failure
	*"# SKIP"*) passed=1 ;;
	esac
	before=$(cat "$work/asked")
	asked >"$work/asked"
	if [ "$TRACING" = "$KERNEL" ]; then
		lacks=
	elif grep -q 'hist:' "$ftrace"/test.d/*/"$name.tc" &&
	     [ "$(cat "$work/asked")" = "$before" ]; then
		echo "# $name: rhist was not asked"
		passed=1 lacks=
	fi
	if [ "$lacks" ]; then
		[ "$passed" != 0 ]
		ok $? "$title fails for want of: $lacks"
	elif [ "$passed" != 0 ] && tail -n 9 "$log" | grep -q '^poll exits too soon'; then
		# poll() returned while the process was still on its way out: the event comes before its
		# end, and either may win. In software emulation C loses as well, each time; that poll()
		# does not return before the event is looked at by the test poll.
		if [ "$tries" -gt 1 ]; then
			echo "# $title: once more, the process had not been reaped yet"
			echo "$ftrace"/test.d/*/"$name.tc" >>"$work/again"
		else
			skip "$title" "the process is still there when poll() returns, as with C"
		fi
	else
		ok "$passed" "$title" || tail -n 20 "$log" | cut -c 1-200 | sed 's/^/# /'
	fi
}

# ftracetest TEST...
ftracetest()
{
	logs=$(mktemp -d "$work/logs.XXX") || exit 1
	echo none >"$work/done"
	echo all >"$work/planned"
	# Once, where user-mode Linux does it in instances, too.
	! rest_only || sed -i 's/^# flags: instance/# flags:/' "$ftrace"/test.d/*/*.tc
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

# What user-mode Linux shows as well takes ten minutes where the processor is emulated: there, what goes by
# functions, modules, symbols and interrupts of the real kernel.
if [ $# = 0 ] && rest_only; then
	set -- event-filter-function trigger-eventonoff trigger-hist-mod trigger-snapshot
fi
wanted=
for name; do
	wanted="$wanted $(echo "$ftrace"/test.d/*/"$name.tc")"
done
set -- $wanted
[ $# -gt 0 ] || set -- "$ftrace"/test.d/filter/*.tc "$ftrace"/test.d/trigger/*.tc
asked >"$work/asked"
tries=2
while [ $# -gt 0 ]; do
	: >"$work/again"
	ftracetest "$@"
	set -- $(sort -u "$work/again")
	tries=$((tries - 1))
done
finish
