# SPDX-License-Identifier: GPL-2.0
#
# Shared by the shell tests of a suite: points, and reading and writing a tracing directory. To be
# sourced.

# TRACING is the directory under test, KERNEL the kernel's own; if they are the same, C is tested.
KERNEL=${KERNEL:-/sys/kernel/tracing}
TRACING=${TRACING:-$KERNEL/rhist}
here=$(cd "$(dirname "$0")" && pwd)
OUT=${OUT:-$here/../../../../build/selftests/hist}
PATH=$PATH:/usr/sbin:/sbin:$OUT
export LC_ALL=C
# The number of getpgid(). For the definition of a probe: the prefix of functions of system calls,
# and the first argument of such a call, and of any function.
case $(uname -m) in
aarch64) GETPGID=155 SYS_FUNCTION=__arm64_sys_ SYS_ARGUMENT='+0(%x0)' ARGUMENT=%x0 ;;
*) GETPGID=121 SYS_FUNCTION=__x64_sys_ SYS_ARGUMENT='+112(%di)' ARGUMENT=%di ;;
esac
. "$here/../lib/tap.sh"

# Commands in the list of a trigger file.
commands="traceon traceoff snapshot stacktrace enable_event disable_event enable_hist disable_hist hist"

# c_has FILE TEXT: true if a file of kernel/trace of the running kernel has a line with TEXT; see
# tracing.h
c_has() { [ -z "$RHIST_KERNEL_SOURCE" ] || grep -qF "$2" "$RHIST_KERNEL_SOURCE/kernel/trace/$1"; }

# list_triggers FOLDER SYSTEM…: prints at least the triggers of these systems' events. On a kernel
# without show_event_triggers, reads the files of the events: sorted, with one blank behind the
# event.
list_triggers()
(
	top=$1
	shift
	if [ -e "$KERNEL/show_event_triggers" ]; then
		cat "$top/show_event_triggers"
	else
		for system; do
			grep '^[^#]' "$top/events/$system"/*/trigger
		done | sed "s|^.*/\([^/]*\)/\([^/]*\)/trigger:|\1:\2 |" | sort
	fi
)

# A key for scenes that C plays, too: the name of the task, or if C lacks this field, one with the
# same value for all hits.
COMM=common_comm
c_has trace_events_hist.c '"common_comm"' || COMM=common_type

# have_debug: true if the directory under test has hist_debug
have_debug() { [ -e "$TRACING/events/sched/sched_switch/hist_debug" ]; }

# have_probes: true if this kernel has probes at functions and events, unlike user-mode Linux
have_probes() { [ -e "$KERNEL/kprobe_events" ]; }

# have_c: true if this kernel has hist triggers itself, have_synthetic: and synthetic events; some
# distributions leave them out
have_c() { [ -e "$KERNEL/events/sched/sched_switch/hist" ]; }
have_synthetic() { [ -e "$KERNEL/synthetic_events" ]; }

# rest_only: true if points that user-mode Linux tests are to be left out
rest_only() { [ "$RHIST_REST" ] && have_probes; }

# shown_on_um: the same in tests of races, which kernels that look for races run whole
shown_on_um() { rest_only && [ -z "$SLOW" ]; }

# remove_triggers EVENT...: removes the triggers of these event directories. Truncating removes no
# trigger whose variable is used, not even by another one of the same file.
remove_triggers()
{
	for try in 1 2 3; do
		for e; do
			[ -e "$e/trigger" ] || continue
			# An event may be removed meanwhile, which must not end this shell.
			command : >"$e/trigger" || continue
			sed -n 's/ \[[a-z]*\]$//; s/^hist:/!&/p' "$e/trigger" >"$work/lines"
			while IFS= read -r trigger; do
				printf '%s\n' "$trigger" >>"$e/trigger"
			done <"$work/lines"
		done
	done
}

# c_entries FILE...: prints an error_log without its times, and without the entries that C lacks
# (errorlog.h)
c_entries()
{
	sed 's/^\[[^]]*\]/[]/' "$@" | awk '/^\[\] rhist:/ { own = 1 } !own { print } /^           *\^$/ { own = 0 }'
}

# entries FILE: the lines between the description of a histogram and its totals
entries() { sed -n '/^{/p' "$1"; }

# total WHICH FILE: Hits, Entries or Dropped of the first histogram
total() { sed -n "/^    $1: /{s///p;q;}" "$2"; }

# soon COMMAND...: waits until the command succeeds, at most two minutes, since machines may be slow
soon()
{
	soon_left=1200
	until "$@"; do
		[ $((soon_left -= 1)) -ge 0 ] || {
			echo "# waited in vain: $*" >&2
			return 1
		}
		sleep 0.1
	done
}
