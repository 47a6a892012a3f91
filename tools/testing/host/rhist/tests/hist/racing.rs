// SPDX-License-Identifier: GPL-2.0

//! Variables and actions on several CPUs at once, and in interrupts.

use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;
use std::thread;

use kernel::interrupt;

use super::events::waking;
use super::events::Hits as _;
use super::events::CPUS;
use super::world::*;

/// Variables of every kind, and actions of every kind with these.
fn world() -> Arc<World> {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:ts0=common_timestamp,c=comm,s=common_stacktrace",
    );
    world.add(
        "sched_switch",
        "hist:keys=next_pid:x=common_timestamp-sched.sched_waking.$ts0,name=sched.sched_waking.$c:onmatch(sched.sched_waking).number($x):\
         onmatch(sched.sched_waking).text(sched.sched_waking.$c):onmatch(sched.sched_waking).stacked(sched.sched_waking.$s,$x):\
         onmax($x).save(next_comm,prev_comm):onchange($x).snapshot()",
    );
    world
}

const STACKS: [[u64; 31]; 2] = [[0x7000; 31], [0x9000; 31]];

/// A name that shares no part with other names.
fn name(n: usize) -> [u8; 15] {
    [b'a' + (n % 26) as u8; 15]
}

/// A wakeup with number `n`.
fn wake(world: &World, cpu: usize, n: usize) {
    let moment = Moment {
        cpu,
        time: n as u64,
        stack: &STACKS[n % 2],
        ..NOW
    };
    world.hit("sched_waking", &waking(&name(n), 5), moment);
}

/// A switch that is later than all wakeups.
fn switch_to(world: &World, cpu: usize, n: usize) {
    let moment = Moment {
        cpu,
        time: 1 << 40,
        ..NOW
    };
    world.hit(
        "sched_switch",
        &switch((&name(n), 1), (&name(n), 5)),
        moment,
    );
}

/// Checks the results of `wakeups` and `switches`: each wakeup was found by one switch at most,
/// emitted values are whole, and all others are counted. Returns the number of found wakeups.
fn check(world: &World, switches: usize) -> usize {
    let hist = world.histogram("sched_switch", 0);
    let mut found = HashSet::new();
    let given = world.given("number");
    for number in &given {
        assert!(found.insert(format!("{number:?}")), "{number:?} twice");
    }
    assert_eq!(hist.hits() + hist.unresolved(), switches as u64);
    for text in world.given("text") {
        let [Given::Text(text)] = &text[..] else {
            panic!()
        };
        assert_eq!(text.len(), 15);
        assert!(
            text.bytes().all(|byte| byte == text.as_bytes()[0]),
            "{text}"
        );
    }
    for stacked in world.given("stacked") {
        let [Given::Stack(stack), _] = &stacked[..] else {
            panic!()
        };
        assert_eq!(stack.len(), 31);
        assert!(stack.iter().all(|&entry| entry == stack[0]), "{stack:x?}");
    }
    let entries = world.entries("sched_switch").remove(0);
    if let Some((_, saved)) = entries.split_once("next_comm: ") {
        let (next, rest) = saved.split_once("  prev_comm: ").unwrap();
        let prev = rest.lines().next().unwrap();
        assert_eq!(next.trim(), prev.trim(), "{entries}");
    }
    assert!(given.len() as u64 <= hist.hits());
    // Missing ones were counted.
    assert!(given.len() as u64 + hist.missed() >= hist.hits());
    given.len()
}

/// At every point of a hit another hit comes on the same CPU, of the same event or of the other
/// one, and a third one at every point of that.
#[test]
fn interrupts() {
    type Event = fn(&World, usize, usize);
    const EVENTS: [Event; 2] = [wake, switch_to];
    let is_switch = |event: usize| usize::from(event == 1);
    for events in 0..16 {
        let [before, first, second, third] = [0, 1, 2, 3].map(|bit| events >> bit & 1);
        for n in 0.. {
            let world = world();
            EVENTS[before](&world, 1, 1);
            let come = Arc::new(AtomicUsize::new(0));
            let handler = {
                let (world, come) = (world.clone(), come.clone());
                move || {
                    let inner = world.clone();
                    interrupt::at(
                        n,
                        move || EVENTS[third](&inner, 1, 3),
                        || EVENTS[second](&world, 1, 2),
                    );
                    come.store(1, SeqCst);
                }
            };
            let ((), came) = interrupt::at(n, handler, || EVENTS[first](&world, 1, 4));
            assert_eq!(come.load(SeqCst), usize::from(came));
            if !came {
                assert!(n > 1, "{events}: {n}");
                break;
            }
            switch_to(&world, 2, 5);
            // The third hit may have had no point left.
            let hist = world.histogram("sched_switch", 0);
            let switches = (hist.hits() + hist.unresolved()) as usize;
            let least = is_switch(before) + is_switch(first) + is_switch(second) + 1;
            assert!(
                (least..=least + is_switch(third)).contains(&switches),
                "{events}: {n}: {switches}"
            );
            check(&world, switches);
        }
    }
}

/// Producers and consumers on different CPUs, each interrupted by the other now and then.
#[test]
fn crowds() {
    const HITS: usize = 2000;
    let world = world();
    let next = Arc::new(AtomicUsize::new(1));
    let switches = Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        for cpu in 0..CPUS {
            let (world, next, switches) = (&world, &next, &switches);
            scope.spawn(move || {
                let event = {
                    let (world, next, switches) = (world.clone(), next.clone(), switches.clone());
                    move |wakes: bool| match wakes {
                        true => wake(&world, cpu, next.fetch_add(1, SeqCst)),
                        false => {
                            switches.fetch_add(1, SeqCst);
                            switch_to(&world, cpu, cpu);
                        }
                    }
                };
                for n in 0..HITS {
                    let wakes = (n + cpu) % 2 == 0;
                    let handler = event.clone();
                    interrupt::at(n % 97, move || handler(!wakes), || event(wakes));
                }
            });
        }
    });
    let found = check(&world, switches.load(SeqCst));
    assert!(found > 0 && found < next.load(SeqCst));
    // No more snapshots than changes.
    assert!(world.snapshot.taken.load(SeqCst) <= found);
}
