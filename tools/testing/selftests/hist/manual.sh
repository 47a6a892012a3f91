#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The manual pages: every example of rhist-hist(7) counts something, and rhist(4) has every parameter of the module.
. "$(dirname "$0")/../lib/tracing.sh"

cd "$TRACING" || exit 1
pages=$here/../../../../Documentation/man
events="sched/sched_waking sched/sched_switch kmem/kmalloc raw_syscalls/sys_exit syscalls/sys_enter_read"

clean()
{
	for try in 1 2; do
		for event in synthetic/wakeup_latency $events; do
			[ ! -e "events/$event/trigger" ] || : >"events/$event/trigger"
		done
	done
	! grep -q '^wakeup_latency	' synthetic_events || echo '!wakeup_latency' >>synthetic_events
}
clean 2>/dev/null

# --- the examples
#
# A file for each, with the roff taken out; only those with commands.
awk -v work="$work" '
	/^\.EX/ { file = work "/example" ++n; next }
	/^\.EE/ { file = ""; next }
	file { gsub(/\\\(aq/, "\047"); gsub(/\\-/, "-"); sub(/\\e$/, "\\"); print >file }' "$pages/rhist-hist.7"

examples=0
for example in "$work"/example*; do
	grep -q '^echo' "$example" || continue
	examples=$((examples + 1))
	yes "taken: $(grep -m 1 hist: "$example")" sh -e "$example"
	for i in 1 2 3 4 5; do
		# Not busybox's, which reads nothing: it has the kernel copy.
		/usr/bin/cat /etc/passwd /nosuch >/dev/null 2>&1
		sleep 0.1
	done
	for event in $(sed -n 's,.*>> events/\(.*\)/trigger$,\1,p' "$example" | sort -u); do
		yes "$event is counted" grep -q '} hitcount: ' "events/$event/hist"
	done
	clean
done
is "$examples" "$(awk '/^\.EX/ { getline; n += /^echo/ } END { print n }' "$pages/rhist-hist.7")" "those were all"

# --- the parameters

if [ "$TRACING" = "$KERNEL" ]; then
	skip "rhist(4) has every parameter" "this is not rhist"
else
	for parameter in $(modinfo -F parm "$RHIST_KO" | cut -d: -f1); do
		yes "rhist(4) has $parameter" grep -q "^\.BI.*$parameter=" "$pages/rhist.4"
	done
fi

cd /
clean 2>/dev/null
finish
