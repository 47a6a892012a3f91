# SPDX-License-Identifier: GPL-2.0
#
# What the shell tests share: TAP, and reading and writing a tracing directory. To be sourced.

# TRACING is the directory under test, KERNEL the kernel's own; with both the same C is tested.
KERNEL=${KERNEL:-/sys/kernel/tracing}
TRACING=${TRACING:-$KERNEL/rhist}
here=$(cd "$(dirname "$0")" && pwd)
OUT=${OUT:-$here/../../../../build/selftests/hist}
PATH=$PATH:/usr/sbin:/sbin:$OUT
export LC_ALL=C
# The number of getpgid(). And for the definition of a probe: how functions of system calls begin, the first argument of
# the call, and that of any function.
case $(uname -m) in
aarch64) GETPGID=155 SYS_FUNCTION=__arm64_sys_ SYS_ARGUMENT='+0(%x0)' ARGUMENT=%x0 ;;
*) GETPGID=121 SYS_FUNCTION=__x64_sys_ SYS_ARGUMENT='+112(%di)' ARGUMENT=%di ;;
esac
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# The counts live in a file, since a check may stand at the end of a pipe.
echo 0 0 >"$work/points"

# ok CONDITION-STATUS NAME
ok()
{
	read -r points failures <"$work/points"
	points=$((points + 1))
	if [ "$1" = 0 ]; then
		echo $points $failures >"$work/points"
		echo "ok $points - $2"
	else
		echo $points $((failures + 1)) >"$work/points"
		echo "not ok $points - $2"
		return 1
	fi
}

# skip NAME REASON
skip()
{
	read -r points failures <"$work/points"
	points=$((points + 1))
	echo $points $failures >"$work/points"
	echo "ok $points - $1 # SKIP $2"
}

# is GOT EXPECTED NAME: equal to the byte
is()
{
	if [ "$1" = "$2" ]; then
		ok 0 "$3"
		return
	fi
	ok 1 "$3"
	printf '%s\n' "$2" | sed 's/^/# expected: /'
	printf '%s\n' "$1" | sed 's/^/# got:      /'
	return 1
}

# same FILE NAME: the file is what stdin says, to the byte
same()
{
	cat >"$work/expected"
	cat "$1" >"$work/got" 2>&1
	if cmp -s "$work/expected" "$work/got"; then
		ok 0 "$2"
		return
	fi
	ok 1 "$2"
	diff -a -u --label expected --label got "$work/expected" "$work/got" | sed 's/^/# /' | head -60
	return 1
}

# yes NAME COMMAND...: the command succeeds
yes()
{
	yes_name=$1
	shift
	yes_said=$("$@" 2>&1)
	yes_status=$?
	ok $yes_status "$yes_name" && return
	printf '%s\n' "$yes_said" | sed 's/^/# /' | head -20
	return 1
}

# no NAME COMMAND...: the command fails
no()
{
	no_name=$1
	shift
	if no_said=$("$@" 2>&1); then
		ok 1 "$no_name"
		printf '%s\n' "$no_said" | sed 's/^/# /' | head -20
		return 1
	fi
	ok 0 "$no_name"
}

# finish: to be called last
finish()
{
	read -r points failures <"$work/points"
	echo "1..$points"
	[ $failures = 0 ] || exit 1
	exit 0
}

# The commands that a trigger file lists.
commands="traceon traceoff snapshot stacktrace enable_event disable_event enable_hist disable_hist hist"

# have_debug: the directory under test offers hist_debug
have_debug() { [ -e "$TRACING/events/sched/sched_switch/hist_debug" ]; }

# have_probes: this kernel can put probes at functions and events, which user-mode Linux cannot
have_probes() { [ -e "$KERNEL/kprobe_events" ]; }

# rest_only: what user-mode Linux can do as well is left out
rest_only() { [ "$RHIST_REST" ] && have_probes; }

# remove_triggers EVENT...: of these directories, in a tracing directory. Truncating removes no trigger whose variable is
# used, not even by another one of the same file.
remove_triggers()
{
	for try in 1 2 3; do
		for e; do
			[ -e "$e/trigger" ] || continue
			# An event may go by itself meanwhile, which must not end this shell.
			command : >"$e/trigger" || continue
			sed -n 's/ \[[a-z]*\]$//; s/^hist:/!&/p' "$e/trigger" >"$work/lines"
			while IFS= read -r trigger; do
				printf '%s\n' "$trigger" >>"$e/trigger"
			done <"$work/lines"
		done
	done
}

# entries FILE: the lines between the description of a histogram and its totals
entries() { sed -n '/^{/p' "$1"; }

# total WHICH FILE: Hits, Entries or Dropped of the first histogram
total() { sed -n "s/^    $1: //p" "$2" | head -n 1; }

# soon COMMAND...: waits up to ten seconds until the command succeeds
soon()
{
	soon_left=100
	until "$@"; do
		[ $((soon_left -= 1)) -ge 0 ] || return 1
		sleep 0.1
	done
}
