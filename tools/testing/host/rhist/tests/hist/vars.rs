// SPDX-License-Identifier: GPL-2.0

//! The fast path of triggers with variables, against the general program.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;

use proptest::prelude::*;
use rhist::hist::Tag;
use rhist::hook::trigger::Entry;

use super::events::waking;
use super::events::CPUS;
use super::world::*;

const SET: Entry = Entry::new(Tag::Set);
const LATENCY: Entry = Entry::new(Tag::Latency);
const TRACE: Entry = Entry::new(Tag::Trace);
const EXECUTE: Entry = Entry::new(Tag::Execute);

/// Triggers of `sched_waking`, and the path of their hits.
const SETTERS: [(&str, Entry); 18] = [
    ("keys=pid:ts0=common_timestamp.usecs", SET),
    ("keys=pid:ts0=common_timestamp", SET),
    ("keys=pid:ts0=prio", SET),
    ("keys=pid:ts0=prio-target_cpu", SET),
    (
        "keys=pid:ts0=common_timestamp.usecs if prio > 110",
        SET.ranged(),
    ),
    (
        "keys=pid:ts0=common_timestamp.usecs if prio > 110 && pid != 3",
        SET.filtered(),
    ),
    ("keys=target_cpu:ts0=prio", SET),
    ("keys=comm:ts0=prio", EXECUTE),
    ("keys=pid:ts0=common_timestamp-common_timestamp", EXECUTE),
    ("keys=pid:ts0=common_timestamp.usecs:clock=mono", EXECUTE),
    ("keys=pid:ts0=common_timestamp.usecs,x=prio", EXECUTE),
    ("keys=pid,target_cpu:ts0=common_timestamp.usecs", SET),
    ("keys=pid,target_cpu:ts0=prio if prio > 110", SET.ranged()),
    ("keys=pid,target_cpu,common_flags:ts0=common_timestamp", SET),
    (
        "keys=target_cpu,pid,common_flags,prio:ts0=common_timestamp.usecs",
        SET,
    ),
    (
        "keys=target_cpu,pid,common_flags,common_type,prio:ts0=prio",
        EXECUTE,
    ),
    ("keys=pid,comm:ts0=prio", EXECUTE),
    ("keys=common_cpu:ts0=common_timestamp.usecs", SET),
];

/// Triggers of `sched_switch`, and the path of their hits if a key of the variable is a number.
/// Those with [`Tag::Trace`] are emitters.
const READERS: [(&str, Entry); 27] = [
    (
        "keys=next_pid:lat=common_timestamp.usecs-$ts0",
        LATENCY,
    ),
    ("keys=next_pid:lat=common_timestamp-$ts0", LATENCY),
    ("keys=next_pid:lat=$ts0", LATENCY),
    ("keys=next_pid:lat=$ts0-next_prio", LATENCY),
    ("keys=next_pid:lat=$ts0-7", LATENCY),
    ("keys=next_pid:lat=next_prio-$ts0", LATENCY),
    ("keys=next_pid:lat=next_prio+$ts0", EXECUTE),
    (
        "keys=next_pid:lat=$ts0:onmatch(sched.sched_waking).after(common_timestamp)",
        EXECUTE,
    ),
    (
        "keys=next_pid:vals=common_timestamp.usecs-$ts0",
        LATENCY,
    ),
    (
        "keys=next_pid:vals=(common_timestamp.usecs-$ts0).dist",
        LATENCY,
    ),
    (
        "keys=next_pid:vals=(common_timestamp.usecs-$ts0).min:sort=next_pid",
        LATENCY,
    ),
    (
        "keys=prev_pid:on(next_pid):vals=common_timestamp.usecs-$ts0",
        LATENCY,
    ),
    (
        "keys=prev_pid:on(next_pid):lat=common_timestamp.usecs-$ts0 if next_prio < 120",
        LATENCY.ranged(),
    ),
    (
        "keys=next_pid:lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).latency($lat,next_pid)",
        TRACE,
    ),
    (
        "keys=next_pid:lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).latency($ts0,prev_pid)",
        TRACE,
    ),
    (
        "keys=prev_pid:on(next_pid):lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).latency($lat,next_pid)",
        TRACE,
    ),
    (
        "keys=next_pid:lat=common_timestamp.usecs-$ts0:onmax($lat).latency($lat,next_pid)",
        EXECUTE,
    ),
    (
        "keys=next_pid:lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).task(next_comm,next_pid)",
        EXECUTE,
    ),
    (
        "keys=next_pid:lat=common_timestamp.usecs-$ts0,x=next_prio",
        EXECUTE,
    ),
    (
        "keys=next_pid,prev_pid:lat=common_timestamp.usecs-$ts0",
        LATENCY,
    ),
    (
        "keys=next_pid,prev_pid,common_flags:vals=(common_timestamp.usecs-$ts0).dist",
        LATENCY,
    ),
    (
        "keys=next_prio:on(next_pid,prev_pid):vals=common_timestamp.usecs-$ts0 if prev_pid < 3",
        LATENCY.ranged(),
    ),
    (
        "keys=prev_pid,next_pid,common_flags,next_prio:on(next_pid):lat=$ts0",
        LATENCY,
    ),
    (
        "keys=next_pid,prev_pid:lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).latency($lat,next_pid)",
        TRACE,
    ),
    (
        "keys=common_cpu:on(next_pid):vals=(common_timestamp.usecs-$ts0).dist",
        LATENCY,
    ),
    (
        "keys=next_pid:on(common_cpu):vals=common_timestamp.usecs-$ts0",
        LATENCY,
    ),
    (
        "keys=next_comm:on(next_pid,prev_pid):vals=common_timestamp.usecs-$ts0",
        EXECUTE,
    ),
];

/// Triggers of the synthetic event `latency`.
const LISTENERS: [&[&str]; 6] = [
    &[],
    &["keys=pid"],
    &["keys=lat.log2"],
    &["keys=pid:vals=lat"],
    &["keys=pid", "keys=lat"],
    // A hit of it fires another event.
    &["keys=pid:l=lat:onmatch(sched.sched_waking).number($l)"],
];

/// A hit.
#[derive(Clone, Copy, Debug)]
struct Happens {
    wakes: bool,
    pid: i32,
    other: i32,
    prio: i32,
    cpu: usize,
    after: u64,
}

fn happens() -> impl Strategy<Value = Happens> {
    let pid = -2i32..6;
    (
        any::<bool>(),
        pid.clone(),
        pid,
        90i32..130,
        0..CPUS,
        0u64..5000,
    )
        .prop_map(|(wakes, pid, other, prio, cpu, after)| Happens {
            wakes,
            pid,
            other,
            prio,
            cpu,
            after,
        })
}

fn world(setter: &str, reader: &str, listeners: &[&str]) -> Arc<World> {
    let world = World::usual();
    world.add("sched_waking", &format!("hist:{setter}"));
    // With a key of another type the reference is refused, which leaves nothing to compare.
    if world
        .write("sched_switch", format!("hist:{reader}").as_bytes())
        .is_ok()
    {
        for listener in listeners {
            world.add("latency", &format!("hist:{listener}"));
        }
    }
    world
}

fn run(world: &World, hits: &[Happens]) {
    let mut time = 1_000_000;
    for hit in hits {
        time += hit.after;
        let moment = Moment {
            cpu: hit.cpu,
            time,
            ..NOW
        };
        match hit.wakes {
            true => {
                let record = waking(b"woken", hit.pid)
                    .put(28, &hit.prio.to_ne_bytes())
                    .put(32, &hit.other.to_ne_bytes());
                world.hit("sched_waking", &record, moment);
            }
            false => {
                let record = switch((b"before", hit.other), (b"woken", hit.pid));
                world.hit("sched_switch", &record, moment);
            }
        }
    }
}

/// All output visible to a user.
fn seen(world: &World) -> Vec<String> {
    let events = ["sched_waking", "sched_switch", "latency", "number"];
    let mut seen: Vec<_> = events.iter().map(|event| world.hist_file(event)).collect();
    seen.extend(events.iter().map(|event| world.hist_jsonl(event)));
    for name in ["latency", "number", "task"] {
        seen.push(format!("{:?}", world.given(name)));
    }
    seen
}

#[test]
fn entries() {
    for (setter, entry) in SETTERS {
        let world = world(setter, "keys=next_pid", &[]);
        let path = world.path("sched_waking");
        assert_eq!(path, Some(entry), "{setter}");
    }
    for (reader, entry) in READERS {
        // With times of the same unit.
        let setter = SETTERS[usize::from(!reader.contains("usecs"))].0;
        let world = world(setter, reader, &[]);
        let path = world.path("sched_switch");
        assert_eq!(path, Some(entry), "{reader}");
    }
    // The types of `dev` and `sector` of `block:block_rq_issue`.
    let world = World::usual();
    world.add("zoo", "hist:keys=u32,u64:ts0=common_timestamp.usecs");
    assert_eq!(world.path("zoo"), Some(SET));
}

/// Two hits: one that wakes a task, and one when it runs.
fn a_latency() -> [Happens; 2] {
    [true, false].map(|wakes| Happens {
        wakes,
        pid: 5,
        other: 1,
        prio: 120,
        cpu: 0,
        after: 10,
    })
}

/// Eligible triggers take the fast path if a histogram is the only listener.
#[test]
fn fast_hits() {
    for (listeners, fast) in [
        (&["keys=pid"][..], 2),
        (&["keys=pid", "keys=lat"], 1),
        (&[], 1),
    ] {
        let world = world(SETTERS[0].0, READERS[13].0, listeners);
        run(&world, &a_latency());
        assert_eq!(world.fast_hits.load(SeqCst), fast, "{listeners:?}");
    }
}

/// An event that gets another listener while a hit fires it has the stack of that hit, as the world
/// checks.
#[test]
fn another_listener_comes() {
    let world = world(SETTERS[0].0, READERS[13].0, &["keys=pid"]);
    world.synth("latency").gets_listener.store(true, SeqCst);
    run(&world, &a_latency());
    assert_eq!(world.fast_hits.load(SeqCst), 2);
    assert_eq!(world.given("latency").len(), 1);
}

/// Runs `hits` in two worlds with these triggers, on the fast path and by the executed program, and
/// checks that these have the same output. Returns it, with the number of hits on the fast path.
fn compared(
    setter: &str,
    reader: &str,
    listeners: &[&str],
    run: impl Fn(&World),
) -> (Vec<String>, usize) {
    let [fast, executed] = [true, false].map(|fast| {
        let world = world(setter, reader, listeners);
        world.fast.store(fast, SeqCst);
        run(&world);
        world
    });
    assert_eq!(executed.fast_hits.load(SeqCst), 0);
    let seen = [&fast, &executed].map(|world| seen(world));
    assert_eq!(seen[0], seen[1], "{setter} and {reader}");
    let [seen, _] = seen;
    (seen, fast.fast_hits.load(SeqCst))
}

const PAIR: (&str, &str) = (
    "keys=pid,target_cpu:ts0=common_timestamp.usecs:size=128",
    "keys=next_pid,prev_pid:lat=common_timestamp.usecs-$ts0:size=128",
);

/// A key of two numbers is found by both, also if the last is zero.
#[test]
fn pair() {
    let (seen, fast) = compared(PAIR.0, PAIR.1, &[], |world| {
        for other in [0, 1] {
            run(world, &a_latency().map(|hit| Happens { other, ..hit }));
        }
        // Only one number is the same.
        run(
            world,
            &[Happens {
                pid: 4,
                wakes: false,
                ..a_latency()[0]
            }],
        );
    });
    assert_eq!(fast, 5);
    // The last hit of `sched_switch` found no variable.
    assert!(seen[1].contains("Hits: 2\n"), "{}", seen[1]);
}

/// Records that end within a key, or before it.
#[test]
fn short_records() {
    for setter in SETTERS.map(|(setter, _)| setter) {
        for reader in READERS.map(|(reader, _)| reader) {
            compared(setter, reader, &[], |world| {
                for len in (0..=36).rev() {
                    let mut record = waking(b"woken", 5).put(28, &7i32.to_ne_bytes());
                    record.0.truncate(len);
                    world.hit("sched_waking", &record, NOW);
                }
                for len in (0..=64).rev() {
                    let mut record = switch((b"before", 7), (b"woken", 5));
                    record.0.truncate(len);
                    world.hit("sched_switch", &record, NOW);
                }
            });
        }
    }
}

/// Hits with new keys are dropped when a map is full.
#[test]
fn full_map() {
    let (seen, fast) = compared(PAIR.0, PAIR.1, &[], |world| {
        for pid in 0..400 {
            run(world, &a_latency().map(|hit| Happens { pid, ..hit }));
        }
    });
    assert_eq!(fast, 800);
    assert!(!seen[0].contains("Dropped: 0"), "{}", seen[0]);
}

proptest! {
    #[test]
    fn same_as_the_program(
        setter in 0..SETTERS.len(),
        reader in 0..READERS.len(),
        listeners in 0..LISTENERS.len(),
        hits in prop::collection::vec(happens(), 0..60),
    ) {
        compared(SETTERS[setter].0, READERS[reader].0, LISTENERS[listeners], |world| {
            run(world, &hits);
        });
    }
}
