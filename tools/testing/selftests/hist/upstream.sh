#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The kernel's whole ftracetest, unmodified: each of its folders first with the kernel's tracing
# directory, then with the directory under test in its place. Each script has to end in the same
# way, except those in known() below.
#
# upstream.sh [NAME...]: all of them, or these
#
# RHIST_KERNEL_SOURCE   the source of the kernel that is running
# RHIST_EVENTS          beside its folder is "samples", with modules that some scripts load (make
#                       samples)

[ "$OWN_NAMESPACE" ] || OWN_NAMESPACE=1 exec unshare -m "$0" "$@"
. "$(dirname "$0")/../lib/ftrace.sh"

# The differences, each with its reason: NAME C RHIST REASON. One that does not occur is a failure,
# too.
known()
{
	sed 's/^\t*//' <<-'END'
	END
}

# Scripts that show nothing on an emulated processor, each with its reason: NAME REASON.
left_out()
{
	# scripts/vm loads it on an emulated processor.
	[ -d /sys/module/stale_int3 ] || return
	sed 's/^\t*//' <<-'END'
	dynevent/add_remove_multiple_fprobe it begins only if ftrace calls for no function; stale_int3 has it call for one
	ftrace/fgraph-multi-filter all functions with two graphs: nothing else goes on between two ticks of the timer
	trigger/trigger-hist-poll the process may still be there when poll() returns, with C as well; see the test poll
	END
}

# A slower script is ended, with the result TIMEOUT. The longest takes a minute on an emulated
# processor, and six under load from others.
limit=900
# At least this many have to pass with both; otherwise the set-up is wrong.
enough=130
have_probes || enough=60

cp "$OUT/ftrace-poll" "$ftrace/poll" || exit 1

# Some need more of awk than busybox has.
! command -v gawk >/dev/null || cp "$(command -v gawk)" "$work/bin/awk"

# A module is loaded from where it was built.
samples=$(dirname "$(dirname "$RHIST_EVENTS")")/samples
mkdir "$work/samples"
find "$samples" -name '*.ko' -exec cp {} "$work/samples/" \; 2>/dev/null
cat >"$work/bin/modprobe" <<END
#!/bin/sh
# modprobe MODULE
[ ! -d "/sys/module/\$(echo "\$1" | tr - _)" ] || exit 0
exec insmod "$work/samples/\$1.ko"
END
chmod +x "$work/bin/modprobe"

# family PID: the processes that it has started
family() { for child in $(pgrep -P "$1"); do family "$child"; echo "$child"; done; }

# watch PID LOGS: ends scripts that take too long, in the ftracetest with this PID; each script adds
# a log
watch()
{
	begun= waited=0
	while sleep 2; [ -d "/proc/$1" ]; do
		now=$(ls "$2" | grep -c '^[0-9].*-log\.')
		waited=$((waited + 2))
		[ "$now" = "$begun" ] || waited=0 begun=$now
		[ $waited -ge $limit ] || continue
		: >"$2/ended-$now"
		kill -9 $(family "$1") 2>/dev/null
		waited=0
	done
}

# results SIDE SCRIPT...: how they end, a line for each in the file SIDE: NAME RESULT SECONDS LOG
results()
{
	side=$1
	shift
	logs=$(mktemp -d "$work/logs.XXX") || exit 1
	began=$(date +%s)
	sh -c 'echo $$ >"$0" && exec sh "$@"' "$work/pid" "$ftrace/ftracetest" -k -l "$logs" "$@" 2>&1 </dev/null |
	while IFS= read -r line; do
		case $line in
		"==="*) watch "$(cat "$work/pid")" "$logs" & continue ;;
		"["*"["[A-Z]*"]") ;;
		"#"* | "") continue ;;
		# It cannot remove the instance in which trigger-trace-marker-hist has counted
		# marks: see "Instances whose marks are counted" in differences.rst.
		*) echo "# $line"; continue ;;
		esac
		number=${line#"["} number=${number%%"]"*}
		result=${line##*"["} result=${result%"]"}
		[ ! -e "$logs/ended-$number" ] || result=TIMEOUT
		log=$(echo "$logs/$number"-*)
		name=$(sed -n '1s|^execute\(.*\): .*/test\.d/\(.*\)\.tc$|\2\1|p' "$log" | sed 's/ (instance)/@instance/; s/ *$//')
		now=$(date +%s)
		echo "# $side: $name: $result, $((now - began)) s"
		echo "$name $result $((now - began)) $log" >>"$work/$side"
		began=$now
	done
}

# both SCRIPT...: the results of both sides
both()
{
	results C "$@"
	mount --bind "$TRACING" "$KERNEL" || exit 1
	results rhist "$@"
	asked >"$work/asked"
	umount -l "$KERNEL"
}

# field SIDE NAME NUMBER: prints the field of the last result
field() { awk -v name="$2" -v field="$3" '$1 == name { found = $field } END { print found }' "$work/$1"; }

# listed NAME C RHIST: prints the known reason for the difference
listed()
{
	[ "$TRACING" != "$KERNEL" ] || return 1
	known | awk -v name="$1" -v c="$2" -v rhist="$3" '
		$1 == name && $2 == c && $3 == rhist { sub(/([^ ]+ +){3}/, ""); print; found = 1 } END { exit !found }'
}

# names SCRIPT...: prints their names, twice for scripts that also run in an instance
names()
{
	for script; do
		name=${script#"$ftrace/test.d/"} name=${name%.tc}
		echo "$name"
		! grep -q '^#[ 	]*flags:.*instance' "$script" || echo "$name@instance"
	done
}

# differing NAME...: prints the scripts that end differently for C and rhist, for no known reason
differing()
{
	for name; do
		c=$(field C "$name" 2) rhist=$(field rhist "$name" 2)
		[ "$c" = "$rhist" ] || listed "$name" "$c" "$rhist" >/dev/null || echo "$ftrace/test.d/${name%@instance}.tc"
	done | sort -u
}

# point NAME: one for this script
point()
{
	c=$(field C "$1" 2) rhist=$(field rhist "$1" 2)
	if [ "$c" != "$rhist" ]; then
		why=$(listed "$1" "$c" "$rhist")
		ok $? "$1: $c, here $rhist${why:+: $why}" && return
		for side in C rhist; do
			echo "# $side:"
			tail -n 20 "$(field $side "$1" 4)" | cut -c 1-200 | sed 's/^/#    /'
		done
	elif [ "$TRACING" != "$KERNEL" ] && known | grep -q "^$1 "; then
		ok 1 "$1: $c, and known() says that it differs"
	else
		case $c in
		PASS | XFAIL) echo "$1" >>"$work/passed"; ok 0 "$1: $c" ;;
		FAIL) ok 0 "$1: $c with both" ;;
		# Its last line, except traced commands.
		UN*) skip "$1: $c" "$(grep -v '^+' "$(field C "$1" 4)" | tail -n 1 | cut -c 1-100)" ;;
		*) ok 1 "$1: $c" ;;
		esac
	fi
}

# Names of scripts contain no blanks.
least=1
if [ $# -gt 0 ]; then
	set -- $(tests "$@")
else
	least=$enough
	set -- $(find "$ftrace/test.d" -name '*.tc' | sort)
fi
: >"$work/C"
: >"$work/rhist"
: >"$work/passed"
echo 0 >"$work/asked"
for folder in $(for script; do dirname "$script"; done | sort -u); do
	scripts=
	for script; do
		name=${script#"$ftrace/test.d/"} name=${name%.tc}
		[ "${script%/*}" = "$folder" ] || continue
		if why=$(left_out | sed -n "s|^$name ||p") && [ "$why" ]; then
			skip "$name" "$why"
		else
			scripts="$scripts $script"
		fi
	done
	[ "$scripts" ] || continue
	both $scripts
	# Many depend on something happening within some time.
	again=$(differing $(names $scripts))
	if [ "$again" ]; then
		echo "# once more: $(names $again | tr '\n' ' ')"
		both $again
	fi
	for name in $(names $scripts); do
		point "$name"
	done
done
# If nothing could run, nothing would differ.
echo "# $(wc -l <"$work/passed") scripts pass with both, those in an instance counted once more"
ok $([ "$(wc -l <"$work/passed")" -ge $least ]; echo $?) "at least $least scripts pass with both"
if [ $least -gt 1 ] && [ "$TRACING" != "$KERNEL" ]; then
	echo "# rhist was asked $(cat "$work/asked") times"
	ok $([ "$(cat "$work/asked")" -ge 100 ]; echo $?) "rhist was asked a hundred times or more"
fi
finish
