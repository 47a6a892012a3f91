#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Measurements are correct: intervals add up to the total, an end that a filter rejects still ends
# its time, a time below zero does not show as centuries, a process may have any number of threads,
# --size applies to starts, too, the output has the hits that a filter rejects or the kernel misses,
# rhist does not count its own work, and filters do not make a measurement less exact.
. "$(dirname "$0")/../lib/tracing.sh"

rhist=$RHIST_COMMAND
export RHIST_RUN="$work/run" HOME="$work"
insmod "$RHIST_EVENTS" || { skip "no module with events"; finish; exit; }
fire() { echo "$*" >/dev/rhist_events; }

# hits FILE TYPE: prints the sum of the hits in the lines of JSON of this type
hits() { grep "\"type\":\"$2\"" "$1" | grep -o '"hits":[0-9]*' | awk -F: '{ sum += $2 } END { print sum + 0 }'; }

# fire_20000: 20,000 different things begin, and then all of them end
fire_20000()
{
	fire numbers task 0 1 20000 20000
	fire stop task 0 1 20000 20000
}

# begins_together CALLS: prints whether an instance gets triggers before set_event_pid has an unused
# pid, and whether it gets more than 40 until that is emptied; for the instance with the most
begins_together()
{
	awk '{ match($0, /instances\/[^\/"]*/); name = substr($0, RSTART, RLENGTH) }
		/set_event_pid".*O_APPEND/ { state[name] = 1 }
		/set_event_pid".*O_TRUNC/ { state[name] = 2 }
		/\/trigger".*O_APPEND/ { n[name, state[name] + 0]++; if (++all[name] > most) { most = all[name]; longest = name } }
		END { print (n[longest, 0] ? "some" : "none") " before, " (n[longest, 1] > 40 ? "all" : "not all") " meanwhile" }' "$1"
}

# start COMMAND...: runs it in the background until `stop`
start()
{
	$rhist "$@" >"$work/out" 2>"$work/err" &
	run=$!
	soon ready
}
ready()
{
	# The first instance: the cost of a hit is measured in another one.
	instance=$(ls "$KERNEL/instances" | grep "^rhist-${run}_" | head -n 1)
	grep -qs active "$rhist_dir/instances/$instance/events/rhist_events/$event/trigger" &&
		# Hits are counted only after it is emptied.
		! grep -q '^[0-9]' "$KERNEL/instances/$instance/set_event_pid" && sleep 0.2
}
stop() { kill -INT $run; wait $run; }

mkdir -p "$HOME/.config/rhist/recipes"
cat >"$HOME/.config/rhist/recipes/rhist-below.toml" <<-EOF
	summary = "Times below zero"
	about = "Times below zero"
	example = "rhist-below"
	noun = "times"
	unit = "ns"
	save = ["next_who"]
	[[start]]
	event = "rhist_events:wake"
	on = ["key"]
	[[end]]
	event = "rhist_events:run"
	on = ["next_key"]
	value = "total-{start}"
EOF

# Of two starts with one end, the first counts; a start that another event cancels does not.
cat >"$HOME/.config/rhist/recipes/rhist-first.toml" <<-EOF
	summary = "Values since the first start"
	about = "Values since the first start"
	example = "rhist-first"
	noun = "values"
	[[start]]
	event = "rhist_events:wake"
	on = ["key"]
	value = "amount"
	first = true
	[[forget]]
	event = "rhist_events:stop"
	on = ["key"]
	[[end]]
	event = "rhist_events:run"
	on = ["next_key"]
	value = "total-{start}"
	alone = true
EOF

# Starts with "wake"; "stop" pauses and "wake" resumes any number of times.
cat >"$HOME/.config/rhist/recipes/rhist-again.toml" <<-EOF
	summary = "Values since the first start"
	about = "Values since the first start"
	example = "rhist-again"
	noun = "values"
	[[start]]
	event = "rhist_events:wake"
	on = ["key"]
	value = "amount"
	[[start]]
	event = "rhist_events:stop"
	on = ["key"]
	value = "{start} + 0"
	of = 0
	[[forget]]
	event = "rhist_events:wake"
	on = ["key"]
	of = 0
	given = 1
	[[end]]
	event = "rhist_events:run"
	on = ["next_key"]
	value = "total-{start}"
EOF

# Many triggers are made between the start's and the end's.
{
	sed '/first = true/d; /alone/d' "$HOME/.config/rhist/recipes/rhist-first.toml"
	for forget in $(seq 40); do
		printf '[[forget]]\nevent = "rhist_events:stop"\non = ["key"]\n'
	done
} >"$HOME/.config/rhist/recipes/rhist-each.toml"

# System calls of rhist itself while it measures: it opens the files of histograms.
openat=257
[ "$(uname -m)" = x86_64 ] || openat=56
cat >"$HOME/.config/rhist/recipes/rhist-opens.toml" <<-EOF
	summary = "How long files take to open"
	about = "How long files take to open"
	example = "rhist-opens"
	noun = "opens"
	unit = "ns"
	by = ["comm"]
	filter_at = "start"
	keys = { comm = "common_comm" }
	[[start]]
	event = "raw_syscalls:sys_enter"
	if = "id == $openat"
	on = ["common_pid"]
	[[end]]
	event = "raw_syscalls:sys_exit"
	if = "id == $openat"
	on = ["common_pid"]
EOF

cat >"$HOME/.config/rhist/recipes/rhist-other.toml" <<-EOF
	summary = "Numbers"
	about = "Numbers"
	example = "rhist-other"
	[[count]]
	event = "rhist_events:none"
	[[alternatives]]
	[[alternatives.count]]
	event = "rhist_events:numbers"
EOF

for backend in rhist c; do
	rhist_dir=$TRACING
	[ $backend = rhist ] || rhist_dir=$KERNEL

	# Events happen from before the start until after the end.
	event=numbers
	while :; do fire numbers task 0 1 10 3; done &
	load=$!
	for round in 1 2 3 4 5 6; do
		$rhist count rhist_events:numbers --by u8 -d 0.2 -i 0.05 --format json --backend $backend >"$work/json"
		is "$(hits "$work/json" interval)" "$(hits "$work/json" total)" "$backend: intervals add up to the total ($round)"
	done
	kill $load
	wait $load 2>/dev/null

	# The first end belongs to another task.
	event=run
	cat >"$work/ends" <<-'EOF'
		echo "wake task 0 1 1 1" >/dev/rhist_events
		sh -c 'echo "run task 0 1 1 1" >/dev/rhist_events; :'
		echo "run task 0 1 1 1" >/dev/rhist_events
		echo "wake task 0 2 1 1" >/dev/rhist_events
		echo "run task 0 2 1 1" >/dev/rhist_events
	EOF
	mkfifo "$work/fifo.$backend"
	taskset -c 0 sh -c 'read go; . "$1"' sh "$work/ends" <"$work/fifo.$backend" &
	task=$!
	exec 8>"$work/fifo.$backend"
	start between rhist_events:wake rhist_events:run --on key=next_key -p $task --format json --backend $backend
	echo go >&8
	exec 8>&-
	wait $task
	stop
	is "$(hits "$work/out" total)" 1 "$backend: an end that a filter passes over ends its time"

	start rhist-below --backend $backend
	fire wake task 0 1 10 10
	fire run task 0 1 10 10
	stop
	yes "$backend: times below zero are counted" grep -q ': [1-9][0-9]* times ' "$work/out" || sed 's/^/# /' "$work/out"
	no "$backend: but not as centuries" grep -q '[0-9] d' "$work/out"

	# Two times: a short one, and a third of a second.
	event=run
	for ways in "--slower 100ms:1" "--faster 100ms:1" "--faster 100s:2" "--slower 100ms --faster 100s:1"; do
		start between rhist_events:wake rhist_events:run --on key=next_key ${ways%:*} --format json --backend $backend
		fire wake task 0 1 1 1
		fire run task 0 1 1 1
		fire wake task 0 1 1 1
		sleep 0.3
		fire run task 0 1 1 1
		stop
		is "$(hits "$work/out" total)" "${ways#*:}" "$backend: times that are counted with ${ways%:*}"
		sum=$(grep '"type":"total"' "$work/out" | grep -o '"sum":[0-9]*' | cut -d: -f2)
		case $ways in
		"--faster 100ms"*) yes "$backend: it is the shorter one" test "$sum" -lt 100000000 ;;
		*) yes "$backend: the longer one is among them" test "$sum" -ge 200000000 ;;
		esac
	done

	# 13 * 13, in hexadecimal digits.
	for format in 'text:^0xa9  *1 ' 'json:"keys":\[{"value":169,"name":"0xa9"}\],"hits":1,'; do
		start count rhist_events:run --by total.hex --format ${format%%:*} --backend $backend
		fire run task 0 13 1 1
		stop
		yes "$backend: a key with .hex as ${format%%:*}" grep -q "${format#*:}" "$work/out" || sed 's/^/# /' "$work/out"
	done

	# The first end finds no start. The value is 169 - 10, not 169 - 50.
	event=run
	start rhist-first --format json --backend $backend
	fire run task 0 1 1 1
	fire wake task 0 1 1 1
	fire wake task 0 5 1 1
	fire run task 0 13 1 1
	fire run task 0 13 1 1
	stop
	is "$(hits "$work/out" total) $(grep -o '"sum":[0-9]*' "$work/out" | sort -u)" '1 "sum":159' \
		"$backend: the first of two starts counts"
	no "$backend: ends that need no start are not told" grep -q '"unresolved":[1-9]' "$work/out"
	start rhist-first --format json --backend $backend
	fire run task 0 1 1 1
	fire wake task 0 1 1 1
	fire stop task 0 1 1 1
	fire run task 0 13 1 1
	stop
	is "$(hits "$work/out" total)" 0 "$backend: a start that is void has no end"

	# 169 - 10 with pauses and without; 169 - 50 after a second start, or with a pause but no
	# start before it; and nothing without a start.
	start rhist-again --format json --backend $backend
	for events in "wake:1 stop:1 wake:5 stop:5 wake:9" wake:1 "wake:1 wake:5" "stop:1 wake:5 stop:9" ""; do
		for point in $events; do
			fire ${point%:*} task 0 ${point#*:} 1 1
		done
		fire run task 0 13 1 1
	done
	stop
	is "$(hits "$work/out" total) $(grep -o '"sum":[0-9]*' "$work/out" | sort -u)" '4 "sum":556' \
		"$backend: what pauses begins once"
	[ $backend = c ] || yes "$backend: and has one end" grep -q '"unresolved":1,' "$work/out"

	# One of ten ends has a start, in both ways of counting.
	[ $backend = c ] || for slower in "" "--slower 0ns"; do
		event=run
		start between rhist_events:wake rhist_events:run --on key=next_key $slower --format json --backend $backend
		fire wake task 0 1 1 1
		fire run task 0 1 10 1
		stop
		is "$(hits "$work/out" total) $(grep -o '"unresolved":[0-9]*' "$work/out")" '1 "unresolved":9' \
			"$backend: ends without a start are told $slower"
	done

	# Triggers begin together: while they are made, no task is counted, and then all are.
	if command -v strace >/dev/null; then
		strace -f -e trace=openat -o "$work/calls" $rhist rhist-each -d 0.1 --backend $backend >/dev/null 2>&1
		is "$(begins_together "$work/calls")" "none before, all meanwhile" "$backend: nothing is counted until all triggers are made"
	else
		skip "no strace" "$backend: nothing is counted until all triggers are made"
	fi

	# A filter that rejects all hits: they cost time, too, and only rhist knows their number.
	event=numbers
	[ $backend = c ] && rejected=null || rejected=20000
	start count rhist_events:numbers -c rhist-nobody --format json --backend $backend
	fire numbers task 0 1 20000 20000
	stop
	is "$(hits "$work/out" total) $(grep -o '"rejected":[^,]*' "$work/out")" "0 \"rejected\":$rejected" \
		"$backend: hits that a filter rejects are told"
	start count rhist_events:numbers -c rhist-nobody --backend $backend
	fire numbers task 0 1 20000 20000
	stop
	is "$(grep -c '^cost: .* rejected/s' "$work/out")" "$([ $backend = c ]; echo $?)" "$backend: and what they cost"

	# 20,000 wait at once: at first, starts have room for 16,384, and C's do not grow.
	event=stop
	start between rhist_events:numbers rhist_events:stop --on u32=amount --backend $backend
	fire_20000
	stop
	if [ $backend = c ]; then
		yes "$backend: starts without room are told, and the option that makes some" \
			grep -q '^lost: .*3,616 starts dropped.*--size' "$work/out" || sed 's/^/# /' "$work/out"
	else
		no "$backend: room for starts grows" grep -q '^lost:' "$work/out" || sed 's/^/# /' "$work/out"
		yes "$backend: so each end has a start" grep -q '20,000 times in ' "$work/out" || sed 's/^/# /' "$work/out"
	fi
	# Both ways of counting, C's, and rhist's by synthetic events: each end has an entry there,
	# too.
	for way in "" "--slower 0ns"; do
		start between rhist_events:numbers rhist_events:stop --on u32=amount $way --size 20000 --format json --backend $backend
		fire_20000
		stop
		is "$(hits "$work/out" total) $(grep -o '"dropped[a-z_]*":[0-9]*' "$work/out" | tr '\n' ' ')" \
			'20000 "dropped":0 "dropped_starts":0 ' "$backend: --size makes room for starts $way"
	done

	# On an idle system nothing is counted: neither rhist's preparations, nor its readings, nor
	# its measurement of a hit's cost.
	$rhist count kmem:kmalloc --by common_comm -d 1 -i 0.1 --format json --backend $backend >"$work/json"
	no "$backend: rhist does not measure itself" grep -q '"keys":\["rhist"' "$work/json"
	is "$(grep -o '"from":{"realtime_ns":[0-9]*,"monotonic_ns":[0-9]*' "$work/json" | sed 's/.*://' |
		awk 'NR == 1 { first = $1 } END { print ($1 - first < 1000 && first - $1 < 1000) }')" 1 \
		"$backend: the total begins where the first interval does"
	$rhist count kmem:kmalloc --by common_comm -d 1 -i 0.1 --format json --backend $backend --self >"$work/json"
	yes "$backend: unless it is told to" grep -q '"keys":\["rhist"' "$work/json"
	event=numbers
	start count rhist_events:numbers --backend $backend
	for thread in $(ls /proc/$run/task); do
		yes "$backend: each of its own threads is in the filter" grep -q "common_pid != $thread\>.*|| common_flags & 88" \
			"$rhist_dir/instances/$instance/events/rhist_events/numbers/trigger"
	done
	stop
	$rhist rhist-opens -d 0.5 -i 0.05 --self --format json --backend $backend >"$work/json"
	yes "$backend: rhist opens files" grep -q '"type":"total".*"keys":\["rhist"' "$work/json"
	$rhist rhist-opens -d 0.5 -i 0.05 --format json --backend $backend >"$work/json"
	no "$backend: what is left out at its start is not counted" grep -q '"keys":\["rhist"' "$work/json"
	# Except the open of set_event_pid, which begins the count.
	no "$backend: nor told as an end without a start" grep -q '"unresolved":\([2-9]\|1[0-9]\)' "$work/json"

	# Hits in interrupts do not belong to the interrupted thread: here, this shell.
	event=numbers
	start count rhist_events:numbers --where "(common_pid != $$) || common_flags & 88" --format json --backend $backend
	fire numbers task 0 1 1000 3
	fire numbers softirq 0 1 200 3
	fire numbers hardirq 0 1 30 3
	stop
	is "$(hits "$work/out" total)" 230 "$backend: what interrupts do is told by its flags"
	$rhist hardirqs -d 0.1 --backend $backend >"$work/out"
	yes "$backend: where that cannot be told, it is stated" grep -q 'own activity is *$\|own activity is counted' "$work/out"

	# In a container, its threads' numbers belong to other tasks in events.
	if unshare --pid --fork --mount-proc true 2>/dev/null; then
		unshare --pid --fork --mount-proc $rhist count rhist_events:numbers -d 0.1 --backend $backend >"$work/out"
		yes "$backend: where its threads have other numbers, it is stated" grep -q 'namespace' "$work/out"
	fi

	# A note says that an alternative was used in place of the best way to measure.
	$rhist rhist-other -d 0.1 --backend $backend >"$work/out"
	yes "$backend: why something was measured in another way is told" \
		grep -q '^note: .*no event rhist_events:none' "$work/out" || sed 's/^/# /' "$work/out"

	if have_probes; then
		# Only the other way, by device and sector, has this field.
		$rhist biolatency --where 'nr_sector > 0' -d 0.1 --backend $backend >"$work/out" 2>"$work/err"
		is "$? $(grep -c 'where nr_sector' "$work/err")" "2 1" \
			"$backend: a filter that the exact way does not know is refused, and nothing measured in another way"
	fi
	# An fprobe cannot have this argument. A kretprobe keeps notes of 4,096 returns, and the
	# kernel counts the others as missed.
	if have_probes && [ $backend = rhist ]; then
		$rhist count 'kretprobe:hrtimer_nanosleep x=%ax' -c ld_many -i 0.2 --format json >"$work/out" 2>"$work/err" &
		run=$!
		soon test -s "$work/out"
		load ld_many many 4300 30000000 >"$work/load"
		stop
		returned=$(hits "$work/out" total)
		missed=$(sed -n '/"type":"total"/s/.*"missed_hits":\([0-9]*\).*/\1/p' "$work/out")
		yes "a kretprobe misses some of 4,300 calls that are under way at once: it has $returned" test "$returned" -lt 4300
		yes "and these are told: $missed" test $((returned + missed)) -ge 4300
	fi

	# As behind nohup.
	event=numbers
	trap '' HUP
	start count rhist_events:numbers --backend $backend
	trap - HUP
	kill -HUP $run
	sleep 0.3
	yes "$backend: SIGHUP that is ignored is ignored" ready
	stop
done

# --- control groups, which C's histograms lack

groups=$work/groups rhist_dir=$TRACING
mkdir "$groups"
if mount -t cgroup2 none "$groups"; then
	mkdir "$groups/rhist_web"
	# in_group OPTIONS...: prints keys and hits of 5 events outside of a group, and 7 in it
	in_group()
	{
		start count rhist_events:numbers "$@" --format json
		fire numbers task 0 1 5 5
		sh -c "echo \$\$ >'$groups/rhist_web/cgroup.procs'; echo numbers task 0 1 7 7 >/dev/rhist_events"
		stop
		grep '"type":"total"' "$work/out" | grep -o '"keys":\["[^]]*\],"hits":[0-9]*'
	}
	is "$(in_group --by common_cgroup,common_event | sort)" '"keys":["/","rhist_events:numbers"],"hits":5
"keys":["/rhist_web","rhist_events:numbers"],"hits":7' "events are counted by control group"
	is "$(in_group --by common_cgroup --where 'common_cgroup ~ "/rhist_web"')" \
		'"keys":["/rhist_web"],"hits":7' "and of one control group alone"
	is "$(in_group --by common_pid.cgroup,common_pid.comm | sort)" '"keys":["/","measures.sh"],"hits":5
"keys":["/rhist_web","sh"],"hits":7' "and by control group and name of a thread"
	rmdir "$groups/rhist_web"
	umount "$groups"
else
	skip "control groups" "this kernel has none"
fi
rmmod rhist_events
finish
