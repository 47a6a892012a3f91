#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The manual pages: every example of rhist-hist(7) counts something, limits and other figures are
# true, and rhist(4) has every parameter of the module, and all else that modinfo shows of it.
. "$(dirname "$0")/../lib/tracing.sh"

cd "$TRACING" || exit 1
pages=$here/../../../../Documentation/man
events="sched/sched_waking sched/sched_switch kmem/kmalloc raw_syscalls/sys_exit raw_syscalls/sys_enter syscalls/sys_enter_read
	sched/sched_process_exit sched/sched_process_exec syscalls/sys_enter_getpgid task/task_rename ftrace/print"
synthetic="wakeup_latency ran rhist_limit"

clean()
{
	for try in 1 2; do
		for event in $(printf 'synthetic/%s ' $synthetic) $events; do
			[ ! -e "events/$event/trigger" ] || : >"events/$event/trigger"
		done
	done
	for name in $synthetic; do
		! grep -q "^$name	" synthetic_events || echo "!$name" >>synthetic_events
	done
}
clean 2>/dev/null

# --- the examples
#
# A file for each, without the roff; only those with commands.
awk -v work="$work" '
	/^\.SH/ { examples = /EXAMPLES/ }
	/^\.EX/ && examples { file = sprintf("%s/example%02d", work, ++n); next }
	/^\.EE/ { file = ""; next }
	file { gsub(/\\\(aq/, "\047"); gsub(/\\-/, "-"); sub(/\\e$/, "\\"); print >file }' "$pages/rhist-hist.7"

# left: triggers and synthetic events
left() { grep hist: show_event_triggers || grep . synthetic_events; }

examples=0
for example in "$work"/example*; do
	if grep -q '^: >' "$example"; then
		yes "ended: $(tail -n 1 "$example")" sh -e "$example"
		no "nothing of it is left" left
	fi
	grep -q '^echo.*hist:' "$example" || continue
	clean
	examples=$((examples + 1))
	yes "taken: $(grep -m 1 hist: "$example")" sh -e "$example"
	for i in 1 2 3 4 5; do
		# Not busybox's, which copies in the kernel instead of reading.
		/usr/bin/cat /etc/passwd /nosuch >/dev/null 2>&1
		sleep 0.1
	done
	for event in $(sed -n 's,.*>> events/\(.*\)/trigger$,\1,p' "$example" | sort -u); do
		yes "$event is counted" grep -q '} hitcount: ' "events/$event/hist"
	done
done
is "$examples" "$(awk '/^\.SH EX/ { within = 1 } within && /^\.EX/ { getline; n += /^echo/ } END { print n }' "$pages/rhist-hist.7")" \
	"those were all"
clean

# --- statements of rhist-hist(7) about keys and filters

getpgid=events/syscalls/sys_enter_getpgid
# counts EVENT: the keys, and how often each was counted
counts() { sed -nE 's/^\{ (.*[^ ]) *\} hitcount: *([0-9]+)$/\1 \2/p' "$1/hist" | tr -s ' '; }

echo 'hist:keys=pid.log2:sort=pid' >>$getpgid/trigger
fire getpgid 0:1 1:1 64:1 65:1 128:1 129:1
is "$(counts $getpgid)" "pid: ~ 2^0 2
pid: ~ 2^6 1
pid: ~ 2^7 2
pid: ~ 2^8 1" ".log2 rounds up: 2^7 are 65 to 128"
yes "rhist-hist(7) says so" grep -q "are the numbers from 65 to 128" "$pages/rhist-hist.7"
: >$getpgid/trigger

echo 'hist:keys=pid.buckets=10:sort=pid' >>$getpgid/trigger
fire getpgid 19:1 20:1 29:1 30:1
is "$(counts $getpgid)" "pid: ~ 10-19 1
pid: ~ 20-29 2
pid: ~ 30-39 1" ".buckets=10: 20 to 29"
: >$getpgid/trigger

echo 'hist:keys=pid.log2=1:sort=pid' >>$getpgid/trigger
fire getpgid 0:1 90:1 91:1 128:1 129:1
is "$(counts $getpgid)" "pid: ~ 0-0 1
pid: ~ 65-90 1
pid: ~ 91-128 2
pid: ~ 129-181 1" ".log2=1: 91 to 128"
yes "rhist-hist(7) says so" grep -q "are the numbers from 91 to 128" "$pages/rhist-hist.7"
: >$getpgid/trigger

# values EVENT: prints the values, that is the text behind the hitcount
values() { sed -n 's/^{.*} hitcount: *[0-9]*//p' "$1/hist" | tr -s ' '; }

echo 'hist:keys=common_comm:vals=pid.min,pid.max,pid.avg,(pid*2).max,pid.dist:quantiles(50,99)' >>$getpgid/trigger
fire getpgid 10:1 21:1 1000:1
is "$(values $getpgid)" " pid.min: 10 pid.max: 1000 pid.avg: 343 (pid*2).max: 2000 pid.dist: count: 3 min: 10 p50: 21.5 p99: 981.1 max: 1000 avg: 343" \
	"smallest, largest, average, and a distribution"
is "$(total "Without bucket" $getpgid/hist)" 0 "all of them are in buckets"
: >$getpgid/trigger

echo 'hist:keys=pid:vals=pid.max:sort=pid.max.descending:limit(2)' >>$getpgid/trigger
fire getpgid 10:1 21:1 1000:1
is "$(counts $getpgid | sed 's/ .*//'; total Hits $getpgid/hist) $(total "Not shown" $getpgid/hist)" "3 1" "limit(): the others are counted"
is "$(sed -n 's/^{.*pid.max: *//p' $getpgid/hist | tr '\n' ' ')" "1000 21 " "sort= by the largest value"
: >$getpgid/trigger

# More than 128 buckets, all of one entry.
echo 'hist:keys=common_comm:vals=pid.dist=5:size=128:buckets(1)' >>$getpgid/trigger
fire getpgid $(n=32; while [ $n -lt $((1 << 40)) ]; do echo $n; n=$((n + n / 31)); done)
lost=$(total "Without bucket" $getpgid/hist)
[ "$lost" -gt 0 ]
ok $? "without a bucket: $lost"
is "$(values $getpgid | sed 's/.*count: \([0-9]*\) .*/\1/')" "$(total Hits $getpgid/hist)" "values without a bucket are in the count"
: >$getpgid/trigger

for name in comm COMM; do
	echo "hist:keys=pid if $name == \"fire\"" >>$getpgid/trigger
	fire getpgid 1:2
	is "$(counts $getpgid)" "pid: 1 2" "$name in a filter"
	: >$getpgid/trigger
done
no "common_comm in a filter" sh -c "echo 'hist:keys=pid if common_comm == \"fire\"' >>$getpgid/trigger"

# A sleeper is woken up by others, and wakes others up.
waking=events/sched/sched_waking
cp "$(command -v fire)" "$work/rhist_sleep"
echo 'hist:keys=comm if comm == "rhist_sleep"' >>$waking/trigger
"$work/rhist_sleep" alarm 1000:5
is "$(counts $waking | sed 's/ [0-9]*$//')" "comm: rhist_sleep" "comm is a field of the event, if it has one"
: >$waking/trigger
echo 'hist:keys=comm if COMM == "rhist_sleep"' >>$waking/trigger
"$work/rhist_sleep" alarm 1000:5
yes "COMM is the task" sh -c "grep hitcount: $waking/hist | grep -v rhist_sleep"
: >$waking/trigger

rename=events/task/task_rename
for key in common_pid.execname common_comm; do
	echo "hist:keys=$key if newcomm ~ \"rhist_*\"" >>$rename/trigger
	fire name rhist_a:1 rhist_b:1
	case $key in
	common_comm) is "$(total Hits $rename/hist) $(total Entries $rename/hist)" "2 2" "common_comm: each name" ;;
	*) is "$(counts $rename | sed 's/\[.*\]//' | tr -s ' ')" "common_pid: fire 2" ".execname: the name of the first hit" ;;
	esac
	: >$rename/trigger
done

print=events/ftrace/print
no "the text of a mark is no key" sh -c "echo 'hist:keys=buf' >>$print/trigger"
echo 'hist:keys=common_pid if buf ~ "*rhist_text*"' >>$print/trigger
echo a rhist_text here >trace_marker
echo another one >trace_marker
is "$(total Hits $print/hist)" 1 "a filter tests it"
: >$print/trigger

# Longer than 255 bytes, which only a text of variable length can be.
exec=events/sched/sched_process_exec
folder=$work/$(printf %0200d 0)
mkdir "$folder"
cp "$(command -v fire)" "$folder/$(printf %0100d 0)"
echo 'rhist_limit char[] file' >>synthetic_events
echo 'hist:keys=filename if filename ~ "*0000000000"' >>$exec/trigger
echo 'hist:keys=common_pid:path=filename if filename ~ "*0000000000"' >>$exec/trigger
echo 'hist:keys=pid:was=$path:onmatch(sched.sched_process_exec).rhist_limit($was)' >>events/sched/sched_process_exit/trigger
echo 'hist:keys=file' >>events/synthetic/rhist_limit/trigger
"$folder"/0* getpgid 1:1
# length FILE: characters of the text that is the key
length() { sed -n 's/^{ [a-z]*: \([^ ]*\).*/\1/p' "$1" | head -n 1 | tr -d '\n' | wc -c; }
is "$(length $exec/hist) $(length events/synthetic/rhist_limit/hist)" "255 255" "of a text of $(echo "$folder"/0* | wc -c) bytes, so many are kept"
clean

# --- its limits

switch=events/sched/sched_switch
is "$(sed -n '/^\.SS Limits/,/^\.SH/s/^[0-9]*$/&/p' "$pages/rhist-hist.7" | tr '\n' ' ')" "8 8 2 16 8 3 64 2097152 255 31 16 32 4095 " \
	"rhist-hist(7) has them"
# repeat N TEXT: with the number in the place of %d
repeat() { awk -v n="$1" -v text="$2" 'BEGIN { while (i++ < n) { line = text; gsub(/%d/, i, line); printf "%s", line } }'; }

# taken FILE TEXT: accepted, and removed again
taken()
{
	echo "$2" >>"$1" && case $1 in
	synthetic_events) echo "!${2%% *}" >>"$1" ;;
	*) echo "!$2" >>"$1" ;;
	esac
} 2>/dev/null

# limit NAME FILE TAKEN REFUSED
limit()
{
	yes "at most $1" taken "$2" "$3"
	no "no more than $1" taken "$2" "$4"
}
trigger=$switch/trigger
limit "8 keys" $trigger "hist:keys=prev_pid$(repeat 7 ,prev_pid+%d)" "hist:keys=prev_pid$(repeat 8 ,prev_pid+%d)"
limit "8 values" $trigger "hist:keys=prev_pid:vals=hitcount$(repeat 8 ,prev_pid+%d)" "hist:keys=prev_pid:vals=hitcount$(repeat 9 ,prev_pid+%d)"
dist=hist:keys=prev_pid:vals=next_prio.dist
limit "scale 5" $trigger $dist=5 $dist=6
limit "8 quantiles" $trigger "$dist:quantiles(50$(repeat 7 ,%d))" "$dist:quantiles(50$(repeat 8 ,%d))"
limit "3 decimals" $trigger "$dist:quantiles(0.001,99.999)" "$dist:quantiles(99.9999)"
limit "1024 buckets" $trigger "$dist:size=128:buckets(1024)" "$dist:size=128:buckets(1025)"
limit "2 fields to sort by" $trigger hist:keys=prev_pid,next_pid,prev_prio:sort=prev_pid,next_pid \
	hist:keys=prev_pid,next_pid,prev_prio:sort=prev_pid,next_pid,prev_prio
limit "16 variables" $trigger "hist:keys=prev_pid$(repeat 16 :v%d=next_pid)" "hist:keys=prev_pid$(repeat 17 :v%d=next_pid)"
limit "16 variables with those of save()" $trigger "hist:keys=prev_pid$(repeat 14 :v%d=next_pid):onmax(\$v1).save(next_prio)" \
	"hist:keys=prev_pid$(repeat 15 :v%d=next_pid):onmax(\$v1).save(next_prio)"
limit "3 operators" $trigger hist:keys=prev_pid:v=next_pid+1+2+3 hist:keys=prev_pid:v=next_pid+1+2+3+4
limit "131072 entries" $trigger hist:keys=prev_pid:size=131072 hist:keys=prev_pid:size=131073
limit "65 entries" $trigger hist:keys=prev_pid:size=65 hist:keys=prev_pid:size=64
limit "1048576 entries after growth" $trigger hist:keys=prev_pid:size=65..1048576 hist:keys=prev_pid:size=65..1048577
limit "1 s without hits" $trigger "hist:keys=prev_pid:expire(1s)" "hist:keys=prev_pid:expire(999ms)"
limit "8760 hours without hits" $trigger "hist:keys=prev_pid:expire(8760h)" "hist:keys=prev_pid:expire(31536001s)"
limit "255 characters in a filter" $trigger "hist:keys=prev_pid if prev_comm == \"$(repeat 255 x)\"" \
	"hist:keys=prev_pid if prev_comm == \"$(repeat 256 x)\""
limit "4095 bytes" $trigger "hist:keys=next_pid if prev_pid == 1$(printf %4058s)" "hist:keys=next_pid if prev_pid == 1$(printf %4060s)"

echo hist:keys=prev_pid >>$trigger
is "$(python3 -c '
import errno, os, sys
files = []
try:
	while True:
		files.append(os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK))
except OSError as error:
	print(len(files), errno.errorcode[error.errno])' $switch/hist_delta)" "32 EUSERS" "at most 32 readers of intervals"
clean

limit "64 fields" synthetic_events "rhist_limit$(repeat 64 ' u64 f%d;')" "rhist_limit$(repeat 65 ' u64 f%d;')"
limit "char[256]" synthetic_events "rhist_limit char[256] text" "rhist_limit char[257] text"

echo "rhist_limit$(repeat 64 ' u64 f%d;')" >>synthetic_events
limit "64 parameters" $trigger "hist:keys=prev_pid:v=1:onmax(\$v).rhist_limit(\$v$(repeat 63 ,\$v))" \
	"hist:keys=prev_pid:v=1:onmax(\$v).rhist_limit(\$v$(repeat 64 ,\$v))"
clean
echo "rhist_limit u64 a" >>synthetic_events
limit "8 actions" $trigger "hist:keys=prev_pid:v=1$(repeat 8 :onmax\(\$v\).rhist_limit\(\$v\))" \
	"hist:keys=prev_pid:v=1$(repeat 9 :onmax\(\$v\).rhist_limit\(\$v\))"
clean
# A text has all of its bytes in the key, or 256 if its length varies.
echo "rhist_limit char[] any; char[240] text; char[248] more; u64 n" >>synthetic_events
limit "504 bytes of texts" events/synthetic/rhist_limit/trigger hist:keys=any,text,n hist:keys=any,more,n
limit "504 bytes with a stack" events/synthetic/rhist_limit/trigger hist:keys=common_comm,common_stacktrace:v=n \
	hist:keys=common_comm,common_stacktrace,n:v=n
limit "504 bytes with numbers of stacks" events/synthetic/rhist_limit/trigger hist:keys=text,common_stacktrace,any \
	hist:keys=text,common_stacktrace,any,n
clean
echo 'hist:keys=prev_pid:v0=next_pid' >>$trigger
n=0
while echo "hist:keys=prev_pid:v$((n + 1))=\$v$n" >>$trigger; do
	n=$((n + 1))
done 2>/dev/null
is "$n" 16 "histograms that refer to each other in a row"
while [ $n -gt 0 ]; do
	echo "!hist:keys=prev_pid:v$n=\$v$((n - 1))" >>$trigger
	n=$((n - 1))
done
clean
no "nothing is left" left

# Each type that the page names is accepted; the first line of its list has the types of numbers.
for type in u8 u16 u32 u64 s8 s16 s32 s64 char int long "unsigned char" "unsigned int" "unsigned long" bool pid_t gfp_t \
	"char[16]" "char[]" "unsigned long[]"; do
	yes "type $type" taken synthetic_events "rhist_limit $type field"
done
no "no other type" taken synthetic_events "rhist_limit short field"

# --- user_events(4): how a shell deletes an event

awk '/^\.EX/ { file = 1; next } /^\.EE/ { file = 0 } file && /dynamic_events$/' "$pages/user_events.4" |
	sed 's/\\(aq/'"'"'/g; s/\\-/-/g' >"$work/delete"
is "$(grep -c . "$work/delete")" 2 "user_events(4) has two commands"
yes "the first one makes an event" sh -c "$(sed 1q "$work/delete")"
yes "which stays" grep '^u:request ' "$KERNEL/dynamic_events"
yes "the second one deletes it" sh -c "$(sed 1d "$work/delete")"
no "which is gone" grep '^u:request ' "$KERNEL/dynamic_events"

# --- the parameters

if [ "$TRACING" = "$KERNEL" ]; then
	skip "rhist(4) has every parameter" "this is not rhist"
else
	for parameter in $(modinfo -F parm "$RHIST_KO" | cut -d: -f1); do
		yes "rhist(4) has $parameter" grep -q "^\.BI.*$parameter=" "$pages/rhist.4"
	done
	# A namespace is imported if the module has probes for all events of the kernel.
	for namespace in $(modinfo -F import_ns "$RHIST_KO"); do
		yes "rhist(4) has import_ns: $namespace" grep -q "import_ns: $namespace" "$pages/rhist.4"
	done
fi

cd /
clean 2>/dev/null
finish
