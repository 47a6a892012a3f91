// SPDX-License-Identifier: GPL-2.0

//! Variables and references to them: how a name is resolved, and the value in a hit.

use std::sync::atomic::Ordering::SeqCst;

use rhist::event::FilterType;

use super::events::event;
use super::events::waking;
use super::events::Bytes;
use super::events::Hits as _;
use super::events::ZOO_END;
use super::world::*;

/// Returns value `name` in the entries of histogram `n` of `event`, by key.
fn values(world: &World, event: &str, n: usize, name: &str) -> Vec<(String, u64)> {
    let entries = &world.entries(event)[n];
    let mut values: Vec<_> = entries
        .lines()
        .map(|entry| {
            let (key, values) = entry.split_once(" } ").unwrap();
            let value = values.split_once(&format!("  {name}: "));
            let (_, value) = value.unwrap_or_else(|| panic!("{name}: {entry}"));
            let value = value.trim_start().split(' ').next().unwrap();
            let key = key.rsplit_once(": ").unwrap().1.trim();
            (key.to_string(), value.parse().unwrap())
        })
        .collect();
    values.sort();
    values
}

/// Returns the only value of [`values`]; its key is 5.
fn value(world: &World, n: usize, name: &str) -> u64 {
    let values = values(world, "sched_switch", n, name);
    let [(key, value)] = &values[..] else {
        panic!("{values:?}");
    };
    assert_eq!(key, "5");
    *value
}

fn wake(world: &World, event: &str, pid: i32, time: u64) {
    world.hit(event, &waking(b"a task", pid), Moment { time, ..NOW });
}

fn switch_to(world: &World, pid: i32, time: u64) {
    let record = switch((b"before", 1), (b"after", pid));
    world.hit("sched_switch", &record, Moment { time, ..NOW });
}

/// Each name is resolved to one variable, whatever other variables are called.
#[test]
fn order_of_resolution() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:ts=common_timestamp,w=prio*10",
    );
    world.add(
        "sched_wakeup",
        "hist:keys=pid:ts=common_timestamp,k=prio*20",
    );
    wake(&world, "sched_waking", 5, 1000);
    wake(&world, "sched_wakeup", 5, 2000);
    for (n, (trigger, name, expected)) in [
        ("keys=next_pid:vals=$w", "w", 1200),
        ("keys=next_pid:vals=$k", "k", 2400),
        ("keys=next_pid:vals=sched.sched_waking.$ts", "sched.sched_waking.$ts", 1000),
        ("keys=next_pid:vals=sched.sched_wakeup.$ts", "sched.sched_wakeup.$ts", 2000),
        // The events of handlers come first.
        ("keys=next_pid:vals=$ts:onmatch(sched.sched_waking).small(next_prio)", "ts", 1000),
        ("keys=next_pid:vals=$ts:onmatch(sched.sched_wakeup).small(next_prio)", "ts", 2000),
        ("keys=next_pid:vals=$k:onmatch(sched.sched_waking).small(next_prio)", "k", 2400),
        // A full name comes before them.
        (
            "keys=next_pid:vals=sched.sched_wakeup.$ts:onmatch(sched.sched_waking).small(next_prio)",
            "sched.sched_wakeup.$ts",
            2000,
        ),
        // A definition in the same trigger comes first of all: the field takes its place.
        ("keys=next_pid:w=next_prio:vals=$w", "next_prio", 110),
        ("keys=next_pid:vals=sched.sched_switch.$n:n=prev_prio", "prev_prio", 100),
    ]
    .into_iter()
    .enumerate()
    {
        world.add("sched_switch", &format!("hist:{trigger}"));
        switch_to(&world, 5, 3000);
        // Each hit has added to it.
        assert_eq!(value(&world, n, name), expected, "{trigger}");
    }
}

#[test]
fn what_is_substituted_is_a_copy() {
    let world = World::usual();
    world.add(
        "sched_switch",
        "hist:keys=$k:k=next_pid,a=next_prio.hex,b=$a:vals=$a,$k",
    );
    let line = &world.lines("sched_switch")[0];
    assert_eq!(
        line,
        "hist:keys=next_pid:vals=hitcount,next_prio.hex,next_pid:k=next_pid,a=next_prio.hex,b=next_prio.hex:\
         sort=hitcount:size=128"
    );
}

/// An expression is copied as a whole into a variable, a key, or an operand; and only after its
/// variable.
#[test]
fn expressions_are_copied() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:ts0=common_timestamp");
    world.add(
        "sched_switch",
        "hist:keys=next_pid:a=next_pid+next_prio,b=$a,c=-($a),l=common_timestamp-$ts0,m=$l,n=$l/1000,k=1+2,o=$k",
    );
    let line = &world.lines("sched_switch")[0];
    assert_eq!(
        line,
        "hist:keys=next_pid:vals=hitcount:a=next_pid+next_prio,b=next_pid+next_prio,c=-(next_pid+next_prio),\
         l=common_timestamp-$ts0,m=common_timestamp-$ts0,n=common_timestamp-$ts0/1000,k=3,o=3:\
         sort=hitcount:size=128:clock=global"
    );
    wake(&world, "sched_waking", 5, 1000);
    switch_to(&world, 5, 9000);
    world.add("sched_wakeup", "hist:keys=pid:vals=$l,$m");
    wake(&world, "sched_wakeup", 5, 9500);
    let entry = &world.entries("sched_wakeup")[0];
    assert!(entry.contains("  l:       8000  m:       8000"), "{entry}");
}

/// References without a value: the hit is ignored, and counted as unresolved.
#[test]
fn unresolved_hits() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:ts0=common_timestamp");
    world.add(
        "sched_switch",
        "hist:keys=next_pid:lat=common_timestamp-$ts0:vals=next_prio:onmatch(sched.sched_waking).number($lat)",
    );
    let hist = world.histogram("sched_switch", 0);
    switch_to(&world, 5, 500);
    wake(&world, "sched_waking", 6, 600);
    switch_to(&world, 5, 700);
    assert_eq!(
        (hist.unresolved(), hist.hits(), hist.drops(), hist.missed()),
        (2, 0, 0, 0)
    );
    assert_eq!(world.entries("sched_switch"), [""]);
    assert_eq!(world.given("number"), [[]; 0]);
    switch_to(&world, 6, 700);
    assert_eq!(world.given("number"), [[100.into()]]);
    assert_eq!(
        (hist.unresolved(), hist.hits(), hist.drops(), hist.missed()),
        (2, 1, 0, 0)
    );
}

/// An operand of a binary operator is read once.
#[test]
fn read_once() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:ts0=common_timestamp,other=prio",
    );
    let (once, again, negative) = (
        "hist:keys=next_pid:x=common_timestamp-$ts0",
        "hist:keys=next_pid:vals=$ts0",
        "hist:keys=next_pid:y=-($ts0)",
    );
    for command in [once, again, negative] {
        world.add("sched_switch", command);
    }
    let hits = || [0, 1, 2].map(|n| world.histogram("sched_switch", n).hits());
    wake(&world, "sched_waking", 5, 10);
    switch_to(&world, 5, 20);
    // The first trigger has taken the value.
    assert_eq!(hits(), [1, 0, 0]);
    switch_to(&world, 5, 20);
    assert_eq!(hits(), [1, 0, 0]);
    world.add("sched_switch", &format!("!{once}"));
    wake(&world, "sched_waking", 5, 30);
    switch_to(&world, 5, 40);
    switch_to(&world, 5, 50);
    assert_eq!(
        [0, 1].map(|n| world.histogram("sched_switch", n).hits()),
        [2, 2]
    );
    assert_eq!(value(&world, 0, "ts0"), 60);
    // Once for the whole trigger. A variable taken before another one is missed stays taken.
    world.add("sched_wakeup", "hist:keys=pid:late=prio");
    world.add(
        "sched_switch",
        "hist:keys=next_pid:a=$other+1,b=$late+1:vals=$other,$late",
    );
    switch_to(&world, 5, 60);
    let hist = world.histogram("sched_switch", 2);
    assert_eq!((hist.hits(), hist.unresolved()), (0, 1));
    wake(&world, "sched_wakeup", 5, 70);
    switch_to(&world, 5, 80);
    assert_eq!((hist.hits(), hist.unresolved()), (0, 2));
    wake(&world, "sched_waking", 5, 90);
    switch_to(&world, 5, 100);
    assert_eq!((hist.hits(), hist.unresolved()), (1, 2));
}

/// A longer key is never found; a shorter one is found if this one begins with it.
#[test]
fn keys_of_other_sizes() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:one=prio");
    world.add("sched_wakeup", "hist:keys=pid,prio:two=prio");
    wake(&world, "sched_waking", 5, 1);
    wake(&world, "sched_wakeup", 5, 1);
    for (trigger, found) in [
        ("keys=next_pid:vals=$one", true),
        ("keys=next_pid:vals=$two", false),
        // The longer key begins with the shorter one.
        ("keys=next_pid,prev_prio:vals=$one", true),
        ("keys=prev_prio,next_pid:vals=$one", false),
        ("keys=next_comm:vals=$one", false),
        ("keys=next_comm:vals=$two", false),
        ("keys=next_pid:vals=$one,$two", false),
        ("keys=next_pid.log2:vals=$one", false),
        ("keys=next_pid+0:vals=$one", true),
        ("keys=4+1:vals=$one", true),
    ] {
        let command = format!("hist:{trigger}");
        world.add("sched_switch", &command);
        switch_to(&world, 5, 2);
        let hist = world.histogram("sched_switch", 0);
        let expected = (u64::from(found), u64::from(!found));
        assert_eq!((hist.hits(), hist.unresolved()), expected, "{trigger}");
        world.add("sched_switch", &format!("!{command}"));
    }
    // Two numbers are as long as a name, and are compared as bytes.
    world.add("sched_wakeup", "hist:keys=comm:named=prio");
    wake(&world, "sched_wakeup", 5, 3);
    world.add("sched_switch", "hist:keys=next_pid,prev_prio:vals=$named");
    switch_to(&world, 5, 4);
    assert_eq!(world.histogram("sched_switch", 0).unresolved(), 1);
    world.add("sched_switch", "hist:keys=next_comm:vals=$named");
    let record = switch((b"before", 1), (b"a task", 5));
    world.hit("sched_switch", &record, NOW);
    assert_eq!(world.histogram("sched_switch", 1).hits(), 1);
}

/// A number with its field's sign and width, extended to 64 bits.
#[test]
fn numbers() {
    let world = World::usual();
    world.add(
        "zoo",
        "hist:keys=u64:a=s8,b=u8,c=s16,d=u16,e=s32,f=u32,g=s64,h=common_cpu,i=hitcount,j=7",
    );
    let record = Bytes::new(ZOO_END)
        .put(8, &[0x80])
        .put(9, &[0x80])
        .put(10, &(-2i16).to_ne_bytes())
        .put(12, &0xfffeu16.to_ne_bytes())
        .put(14, &(-3i32).to_ne_bytes())
        .put(18, &u32::MAX.to_ne_bytes())
        .put(22, &i64::MIN.to_ne_bytes())
        .put(30, &5u64.to_ne_bytes());
    world.hit("zoo", &record, NOW);
    for (n, (name, number)) in [
        ("a", -128i64 as u64),
        ("b", 128),
        ("c", -2i64 as u64),
        ("d", 0xfffe),
        ("e", -3i64 as u64),
        ("f", u32::MAX.into()),
        ("g", 1 << 63),
        ("h", 1),
        ("i", 1),
        ("j", 7),
    ]
    .into_iter()
    .enumerate()
    {
        world.add("sched_switch", &format!("hist:keys=next_pid:vals=${name}"));
        switch_to(&world, 5, 1);
        assert_eq!(value(&world, n, name), number, "{name}");
    }
}

#[test]
fn computed_values() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:a=prio,b=target_cpu-4,c=pid*0,ten=10,three=3,zero=0",
    );
    for (n, (expression, expected)) in [
        ("$a+$b", 119),
        ("$b-$a", (-121i64) as u64),
        ("$a*$a", 14400),
        ("$a/7", 17),
        ("$a/$ten", 12),
        ("$b/2", u64::MAX / 2),
        // A division by zero.
        ("$a/$c", u64::MAX),
        ("-($a)", -120i64 as u64),
        ("$a+$a*2-1", 359),
        ("next_prio-$a", -10i64 as u64),
        // Known from the triggers.
        ("100/$ten", 10),
        ("$ten*$three-1", 29),
        ("$ten/$three", 3),
        ("7/3", 2),
        ("$zero-1", u64::MAX),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("x{n}");
        world.add(
            "sched_switch",
            &format!("hist:keys=next_pid:{name}={expression}"),
        );
        // A value with it is not shown, a variable with it is.
        world.add("zoo", &format!("hist:keys=u64:vals=${name}"));
        wake(&world, "sched_waking", 5, 1);
        switch_to(&world, 5, 1);
        world.hit(
            "zoo",
            &Bytes::new(ZOO_END).put(30, &5u64.to_ne_bytes()),
            NOW,
        );
        let values = values(&world, "zoo", 0, &name);
        assert_eq!(values, [("5".to_string(), expected)], "{expression}");
        world.add("zoo", &format!("!hist:keys=u64:vals=${name}"));
        world.add(
            "sched_switch",
            &format!("!hist:keys=next_pid:{name}={expression}"),
        );
    }
}

/// A constant known from the triggers is a number in the line; the variables still have to exist.
#[test]
fn folded_constants() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:ten=10");
    let command = "hist:keys=next_pid:x=$ten*2+1";
    world.add("sched_switch", command);
    assert_eq!(
        world.lines("sched_switch"),
        ["hist:keys=next_pid:vals=hitcount:x=21:sort=hitcount:size=128"]
    );
    let busy = world
        .write("sched_waking", b"!hist:keys=pid:ten=10")
        .unwrap_err();
    assert_eq!(busy.errno, kernel::error::code::EBUSY);
    switch_to(&world, 5, 1);
    assert_eq!(world.histogram("sched_switch", 0).unresolved(), 1);
    wake(&world, "sched_waking", 5, 1);
    switch_to(&world, 5, 1);
    assert_eq!(world.histogram("sched_switch", 0).hits(), 1);
    world.add("sched_switch", &format!("!{command}"));
    assert_eq!(world.lines("sched_switch"), [""; 0]);
}

/// A variable of a variable has a value of its own.
#[test]
fn aliases() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:ts0=common_timestamp.usecs,name=comm,st=common_stacktrace",
    );
    world.add(
        "sched_switch",
        "hist:keys=next_pid:a=$ts0,b=$name,c=$st:vals=$ts0",
    );
    world.add(
        "sched_wakeup",
        "hist:keys=pid:onmatch(sched.sched_switch).number($a):onmatch(sched.sched_switch).text($b):\
         onmatch(sched.sched_switch).stacked($c,$a)",
    );
    assert!(world.lines("sched_switch")[0].contains(":a=$ts0,b=$name,c=$st:"));
    wake(&world, "sched_waking", 5, 5000);
    switch_to(&world, 5, 6000);
    // This changes only the original.
    world.hit(
        "sched_waking",
        &waking(b"renamed", 5),
        Moment {
            time: 9000,
            stack: &[7],
            ..NOW
        },
    );
    wake(&world, "sched_wakeup", 5, 9000);
    assert_eq!(world.given("number"), [[5.into()]]);
    assert_eq!(world.given("text"), [["a task".into()]]);
    assert_eq!(
        world.given("stacked"),
        [[Given::Stack(vec![0x1010, 0x2020, 0x3030]), 5.into()]]
    );
    // The unit is copied, too.
    world.add("sched_wakeup", "hist:keys=pid:d=common_timestamp.usecs-$a");
    let error = world
        .write("sched_wakeup", b"hist:keys=pid:e=common_timestamp-$a")
        .unwrap_err();
    assert_eq!(
        error.text,
        Some(rhist::trigger::ErrorText::TimestampMismatch)
    );
}

/// Strings of every kind, up to their end, with room for a NUL.
#[test]
fn strings() {
    let world = World::usual();
    world.add(
        "zoo",
        "hist:keys=u64:odd=odd,even=even,dyn=dyn,rel=rel,comm=common_comm,exec=common_pid.execname",
    );
    let long = "x".repeat(300);
    type Record = fn(&str) -> Bytes;
    let cases: [(&str, Record, &str, &str); 8] = [
        (
            "odd",
            |s| Bytes::new(ZOO_END).put(38, s.as_bytes()),
            "ABCDEFGHIJKLM",
            "ABCDEFGHIJKL",
        ),
        (
            "odd",
            |s| Bytes::new(ZOO_END).put(38, s.as_bytes()),
            "a\0b",
            "a",
        ),
        (
            "even",
            |s| Bytes::new(ZOO_END).put(51, s.as_bytes()),
            "0123456789abcdef",
            "0123456789abcde",
        ),
        (
            "dyn",
            |s| Bytes::new(ZOO_END).data_loc(67, s.as_bytes()),
            &long,
            &long[..255],
        ),
        (
            "dyn",
            |s| Bytes::new(ZOO_END).data_loc(67, s.as_bytes()),
            "",
            "",
        ),
        (
            "rel",
            |s| Bytes::new(ZOO_END).rel_loc(71, s.as_bytes()),
            "rel\0ative",
            "rel",
        ),
        ("comm", |_| Bytes::new(ZOO_END), "", "task"),
        ("exec", |_| Bytes::new(ZOO_END), "", "task"),
    ];
    for (name, record, written, expected) in cases {
        let command = format!("hist:keys=next_pid:onmatch(test.zoo).text(${name})");
        world.add("sched_switch", &command);
        let record = record(written).put(30, &5u64.to_ne_bytes());
        world.hit("zoo", &record, NOW);
        switch_to(&world, 5, 2);
        assert_eq!(
            world.given("text"),
            [[expected.into()]],
            "{name}: {written}"
        );
        world.add("sched_switch", &format!("!{command}"));
    }
    // The idle task.
    world.add(
        "sched_switch",
        "hist:keys=next_pid:onmatch(test.zoo).text($exec)",
    );
    let idle = Bytes::new(ZOO_END)
        .put(4, &[0; 4])
        .put(30, &5u64.to_ne_bytes());
    world.hit("zoo", &idle, NOW);
    switch_to(&world, 5, 2);
    assert_eq!(world.given("text"), [["<idle>".into()]]);
}

/// A variable of a stack in the record has that stack: as many entries as the record says, limited
/// by its size.
#[test]
fn stacks() {
    let world = World::usual();
    world.add(
        "zoo",
        "hist:keys=u64:k=u64,now=common_stacktrace,old=stack,older=stack.stacktrace",
    );
    let stack: Vec<u8> = [3u64, 0xaaaa, 0xbbbb]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let record = Bytes::new(ZOO_END)
        .put(30, &5u64.to_ne_bytes())
        .data_loc(87, &stack)
        .data_loc(67, b"behind\0\0");
    world.hit("zoo", &record, NOW);
    for (name, expected) in [
        ("now", vec![0x1010, 0x2020, 0x3030]),
        ("old", vec![0xaaaa, 0xbbbb]),
        ("older", vec![0xaaaa, 0xbbbb]),
    ] {
        let command = format!("hist:keys=next_pid:onmatch(test.zoo).stacked(${name},$k)");
        world.add("sched_switch", &command);
        world.hit("zoo", &record, NOW);
        switch_to(&world, 5, 2);
        assert_eq!(
            world.given("stacked"),
            [[Given::Stack(expected), 5.into()]],
            "{name}"
        );
        world.add("sched_switch", &format!("!{command}"));
    }
    // The deepest.
    const DEEP: [u64; 40] = [0x5000; 40];
    world.add(
        "sched_switch",
        "hist:keys=next_pid:onmatch(test.zoo).stacked($now,$k)",
    );
    world.hit(
        "zoo",
        &record,
        Moment {
            stack: &DEEP,
            ..NOW
        },
    );
    switch_to(&world, 5, 2);
    let given = world.given("stacked");
    assert_eq!(given, [[Given::Stack(vec![0x5000; 31]), 5.into()]]);
}

/// 16 references is the maximum; the 16th is found.
#[test]
fn as_many_references_as_there_can_be() {
    let world = World::usual();
    let vars: Vec<_> = (0..16).map(|n| format!("v{n}=prio+{n}")).collect();
    world.add("sched_waking", &format!("hist:keys=pid:{}", vars.join(",")));
    let refs: Vec<_> = (0..16).map(|n| format!("a{n}=$v{n}")).collect();
    world.add(
        "sched_switch",
        &format!("hist:keys=next_pid:{}", refs.join(",")),
    );
    let sum: Vec<_> = (0..16)
        .map(|n| format!("hist:keys=pid:s{n}=$a{n}:vals=$a{n}"))
        .collect();
    for sum in &sum {
        world.add("sched_wakeup", sum);
    }
    wake(&world, "sched_waking", 5, 1);
    switch_to(&world, 5, 2);
    wake(&world, "sched_wakeup", 5, 3);
    for n in 0..16 {
        let values = values(&world, "sched_wakeup", n, &format!("a{n}"));
        assert_eq!(values, [("5".to_string(), 120 + n as u64)]);
    }
    assert_eq!(world.synth("number").users.load(SeqCst), 0);
}

/// References of triggers of one event to each other: a hit sees what older triggers have set.
#[test]
fn siblings() {
    let world = World::usual();
    world.add("sched_switch", "hist:keys=next_pid:x=next_prio+0");
    world.add("sched_switch", "hist:keys=next_pid:y=$x+1");
    world.add("sched_switch", "hist:keys=next_pid:vals=$y");
    switch_to(&world, 5, 1);
    assert_eq!(value(&world, 2, "y"), 111);
}

/// Triggers share a histogram by name only if their references have values of the same type. C
/// compares the words only.
#[test]
fn what_can_share_a_histogram() {
    let trigger = |x: &str, rest: &str| {
        let fields = [
            ("u64", "u64", 8, 8, false, FilterType::Other),
            ("s64", "s64", 16, 8, true, FilterType::Other),
            ("char[8]", "text", 24, 8, false, FilterType::StaticString),
        ];
        let world = World::new(
            vec![event("test", "eight", &fields), sched_switch()],
            vec![],
            &[],
            true,
        );
        world.add("eight", &format!("hist:keys=u64:x={x}"));
        world.add("sched_switch", &format!("hist:keys=next_pid:{rest}"));
        world.histogram("sched_switch", 0)
    };
    for (a, b, rest, can_share) in [
        ("s64", "s64", "vals=($x).min", true),
        ("s64", "u64", "vals=($x).min", false),
        ("s64", "u64", "vals=($x+1).max", false),
        ("u64", "u64-1", "vals=($x).dist", false),
        ("u64", "1-u64", "y=$x", false),
        ("s64-1", "u64-1", "vals=($x).min", true),
        ("u64", "u64/2", "vals=($x).min", true),
        // The same size, but another kind.
        ("text", "u64", "y=$x", false),
    ] {
        let (a, b) = (trigger(a, rest), trigger(b, rest));
        assert!(a.spec().matches(b.spec()), "{rest}");
        assert_eq!(a.spec().can_share(b.spec()), can_share, "{rest}");
        assert_eq!(b.spec().can_share(a.spec()), can_share, "{rest}");
    }
}
