#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Keys made from the contents of a field: addresses of the internet protocol (.ip), and strings that
# a field points to (.string).

. "$(dirname "$0")/../lib/tracing.sh"

if [ "$TRACING" = "$KERNEL" ]; then
	skip "addresses and strings" "this is not rhist"
	finish
fi
cd "$TRACING/events" || exit 1

# hits FILE: keys and hits of its entries
hits() { entries "$1" | sed 's/^{ //; s/ *}  *hitcount: */ /; s/:  */=/g; s/  *,/,/g' | sort; }

# numbers COUNT: fires COUNT events with four names in turn
numbers() { taskset 1 sh -c "echo 'numbers task 0 0 $1 4' >/dev/rhist_events"; }

# Strings of the kernel.
yes "the events are there" insmod "$RHIST_EVENTS"
event=rhist_events/numbers
echo 'hist:keys=name.string' >$event/trigger
echo 'hist:keys=common_pid:n=name.string,u=u8:onmax($u).save(name.string)' >>$event/trigger
echo 'hist:keys=name.string,u8' >>$event/trigger
numbers 20
is "$(hits $event/hist | sed '/,/d; /pid/d')" "name=one 5
name=three 5
name=two 5
name=zero 5" "names are counted as what they are"
yes "the trigger is shown as it was written" grep -q "^hist:keys=name.string:vals=hitcount:" $event/trigger
yes "JSON has the string" grep -qF '"keys":["three"]' $event/hist_jsonl
yes "save() saves it" grep -qE "max: *[0-9]+  name.string: (zero|one|two|three) " $event/hist
remove_triggers $event
# Without a modifier, a pointer stays a number.
echo 'hist:keys=name' >$event/trigger
numbers 4
is "$(entries $event/hist | grep -c '^{ name: *[0-9]* } hitcount: *1$')" 4 "without the modifier, a number"
remove_triggers $event
echo 'hist:keys=u32.ip' >$event/trigger
numbers 4
is "$(entries $event/hist | grep -c '^{ u32: [0-9]*\.[0-9]*\.[0-9]*\.[0-9]*  *} hitcount: *1$')" 4 "a number of 4 bytes can be an address"
remove_triggers $event
rmmod rhist_events

# Connections. User-mode Linux lacks a network.
if [ ! -d sock/inet_sock_set_state ]; then
	skip "connections" "this kernel has no network"
	finish
fi
ip link set lo up
state=sock/inet_sock_set_state
established='newstate == 1 && protocol == 6'
echo "hist:keys=daddr_v6.ip if $established" >$state/trigger
echo "hist:keys=saddr_v6.ip,daddr_v6.ip if daddr_v6.ip == ::1 && $established" >>$state/trigger
echo "hist:keys=family if daddr_v6.ip == 127.0.0.0/8 && $established" >>$state/trigger
echo 'hist:keys=daddr.ip' >tcp/tcp_probe/trigger
fire tcp 5000:2
fire tcp6 5000:3
# Both ends of the connection are on this machine.
is "$(hits $state/hist)" "daddr_v6=127.0.0.1 4
daddr_v6=::1 6
family=2 4
saddr_v6=::1, daddr_v6=::1 6" "connections by either protocol"
is "$(hits tcp/tcp_probe/hist | sed 's/ .*//')" "daddr=127.0.0.1
daddr=::1" "socket addresses"
yes "JSON has the address" grep -qF '"keys":["::1"]' $state/hist_jsonl
remove_triggers $state tcp/tcp_probe

finish
