// SPDX-License-Identifier: GPL-2.0

//! Effects of handlers and actions, and their lines in the `hist` file.

use std::sync::atomic::Ordering::SeqCst;

use super::events::waking;
use super::events::Bytes;
use super::events::Hits as _;
use super::events::ZOO_END;
use super::world::*;

/// A wakeup of `pid` with `prio`.
fn wake(world: &World, pid: i32, prio: i32, comm: &[u8]) {
    let record = waking(comm, pid).put(28, &prio.to_ne_bytes());
    world.hit("sched_waking", &record, NOW);
}

fn latency(world: &World, pid: i32, since: u64, until: u64) {
    world.hit(
        "sched_waking",
        &waking(b"woken", pid),
        Moment { time: since, ..NOW },
    );
    let record = switch((b"before", 1), (b"woken", pid));
    world.hit("sched_switch", &record, Moment { time: until, ..NOW });
}

/// The lines of the only histogram of `event`.
fn lines(world: &World, event: &str) -> Vec<String> {
    world.entries(event)[0].lines().map(String::from).collect()
}

#[test]
fn onmax_saves_what_goes_with_the_maximum() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:p=prio:onmax($p).save(comm,target_cpu,common_timestamp.usecs)",
    );
    wake(&world, 5, 0, b"zero");
    // 0 is not a new maximum: nothing is saved.
    let none = |name: &str| format!("  {name}: {:<32}", "(null)");
    let entry = "{ pid:          5 } hitcount:          1";
    let saved = format!(
        "\tmax:          0{}  target_cpu:          0  common_timestamp.usecs:          0",
        none("comm")
    );
    assert_eq!(lines(&world, "sched_waking"), [entry, &saved]);
    wake(&world, 5, 120, b"first");
    wake(&world, 5, 100, b"less");
    wake(&world, 5, 120, b"as much");
    let entry = "{ pid:          5 } hitcount:          4";
    let first = format!(
        "\tmax:        120  comm: {:<32}  target_cpu:          3  common_timestamp.usecs:       1000",
        "first"
    );
    assert_eq!(lines(&world, "sched_waking"), [entry, &first]);
    // Compared as unsigned.
    wake(&world, 5, -1, b"most");
    wake(&world, 5, i32::MAX, b"less");
    assert!(
        lines(&world, "sched_waking")[1].starts_with("\tmax: 18446744073709551615  comm: most ")
    );
    // Each entry has its own values.
    wake(&world, 6, 1, b"six");
    let file = lines(&world, "sched_waking");
    assert!(file[0].contains("pid:          6"), "{file:?}");
    assert!(
        file[1].starts_with("\tmax:          1  comm: six "),
        "{file:?}"
    );
}

#[test]
fn onchange_saves_what_goes_with_the_last_change() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:p=prio:onchange($p).save(comm)",
    );
    let changed = |value: u64, comm: &str| format!("\tchanged: {value:>10}  comm: {comm:<32}");
    for (prio, comm, expected) in [
        (0, "zero", changed(0, "(null)")),
        (2, "two", changed(2, "two")),
        (2, "again", changed(2, "two")),
        (1, "one", changed(1, "one")),
        (0, "zero", changed(0, "zero")),
        (0, "again", changed(0, "zero")),
    ] {
        wake(&world, 5, prio, comm.as_bytes());
        assert_eq!(lines(&world, "sched_waking")[1], expected, "{comm}");
    }
}

/// All kinds of fields can be saved. A process id with a comm shows as a number here, and a stack
/// is not shown.
#[test]
fn saved_fields() {
    let world = World::usual();
    world.add(
        "zoo",
        "hist:keys=u64:m=u8:onmax($m).save(odd,even,dyn,rel,common_comm,common_pid.execname,s8,s64.hex,common_cpu,hitcount)",
    );
    let record = Bytes::new(ZOO_END)
        .put(4, &9i32.to_ne_bytes())
        .put(8, &[0xff, 7])
        .put(22, &(-2i64).to_ne_bytes())
        .put(30, &1u64.to_ne_bytes())
        .put(38, b"ABCDEFGHIJKLM")
        .put(51, b"sixteen\0")
        .data_loc(67, &[b'd'; 300])
        .rel_loc(71, b"rel\0");
    world.hit("zoo", &record, NOW);
    let saved = &lines(&world, "zoo")[1];
    let texts = [
        ("odd", "ABCDEFGHIJKL"),
        ("even", "sixteen"),
        ("dyn", &"d".repeat(255)),
        ("rel", "rel"),
        ("common_comm", "task"),
    ];
    let mut expected = "\tmax:          7".to_string();
    for (name, text) in texts {
        expected += &format!("  {name}: {text:<32}");
    }
    for (name, number) in [
        ("common_pid.execname", 9),
        ("s8", u64::MAX),
        ("s64.hex", u64::MAX - 1),
        ("common_cpu", 1),
        ("hitcount", 1),
    ] {
        expected += &format!("  {name}: {number:>10}");
    }
    assert_eq!(*saved, expected);
}

/// As in C, the saved fields are shown after each action that tracks a value, except the one with
/// snapshots.
#[test]
fn several_actions() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:p=prio,q=target_cpu:onchange($q).save(comm):onmax($p).small($p):\
         onmatch(sched.sched_waking).small($q):onchange($p).snapshot()",
    );
    wake(&world, 5, 7, b"a");
    wake(&world, 5, 6, b"b");
    let saved = format!("  comm: {:<32}", "a");
    assert_eq!(
        lines(&world, "sched_waking")[1..3],
        [
            format!("\tchanged:          3{saved}"),
            format!("\tmax:          7{saved}")
        ]
    );
    // In their order.
    assert_eq!(world.given("small"), [[7.into()], [3.into()], [3.into()]]);
    assert_eq!(world.snapshot.taken.load(SeqCst), 2);
}

#[test]
fn snapshots() {
    let world = World::usual();
    let command = "hist:keys=pid,comm:p=prio:onmax($p).snapshot()";
    world.add("sched_waking", command);
    assert_eq!(lines(&world, "sched_waking"), [""; 0]);
    wake(&world, 5, 0, b"none");
    assert_eq!(lines(&world, "sched_waking").len(), 1);
    let taken = |value: u64, pid: i32, comm: &str, handler: &str| {
        format!(
            "\nSnapshot taken (see tracing/snapshot).  Details:\n\ttriggering value {{ {handler} }}: \
             {value:>10}\ttriggered by event with key: {{ pid: {pid:>10}, comm: {comm:<50} }}\n"
        )
    };
    for (pid, prio, comm, expected) in [
        (5, 10, "first", Some((10, 5, "first"))),
        // A maximum of its entry, but not of all.
        (6, 9, "less", None),
        (6, 11, "more", Some((11, 6, "more"))),
        (6, 11, "as much", None),
        (5, 10, "first", None),
    ] {
        let before = world.snapshot.taken.load(SeqCst);
        wake(&world, pid, prio, comm.as_bytes());
        let taken_now = world.snapshot.taken.load(SeqCst) - before;
        assert_eq!(taken_now, usize::from(expected.is_some()), "{comm}");
        if let Some((value, pid, comm)) = expected {
            let file = world.hist_file("sched_waking");
            let text = taken(value, pid, comm, "onmax($p)");
            assert!(file.contains(&format!("{text}\nTotals:\n")), "{file}");
        }
    }
    // Unlike with other actions, the value is not shown with the entry.
    assert!(!world.hist_file("sched_waking").contains("max: "));
    world.add("sched_waking", &format!("!{command}"));
    world.add(
        "sched_waking",
        "hist:keys=common_pid.execname:p=prio:onchange($p).snapshot()",
    );
    wake(&world, 5, 3, b"x");
    let file = world.hist_file("sched_waking");
    let key = format!("{{ common_pid: {:<16}[{:>10}] }}", "<idle>", 0);
    assert!(
        file.contains(&format!(
            "{{ onchange($p) }}:          3\ttriggered by event with key: {key}\n"
        )),
        "{file}"
    );
}

/// The parameters of `trace()`, from any source.
#[test]
fn parameters() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:ts0=common_timestamp.usecs,wp=prio",
    );
    for (action, synth, expected) in [
        ("small(next_prio)", "small", vec![110.into()]),
        ("trace(small,next_prio)", "small", vec![110.into()]),
        ("trace( small , next_prio )", "small", vec![110.into()]),
        (
            "tracer(small,sched.sched_switch.next_prio)",
            "small",
            vec![110.into()],
        ),
        ("small($wp)", "small", vec![120.into()]),
        ("small(sched.sched_waking.$wp)", "small", vec![120.into()]),
        ("small(target_cpu)", "small", vec![3.into()]),
        (
            "small(sched.sched_waking.target_cpu)",
            "small",
            vec![3.into()],
        ),
        ("small(sched.sched_switch.$own)", "small", vec![100.into()]),
        (
            "latency($lat,next_pid)",
            "latency",
            vec![400.into(), 5.into()],
        ),
        (
            "task(next_comm,prev_pid)",
            "task",
            vec!["woken".into(), 1.into()],
        ),
        (
            "task(sched.sched_waking.comm,prev_pid)",
            "task",
            vec!["woken".into(), 1.into()],
        ),
        ("text(prev_comm)", "text", vec!["before".into()]),
        ("text(common_comm)", "text", vec!["task".into()]),
        (
            "stacked(common_stacktrace,$lat)",
            "stacked",
            vec![Given::Stack(vec![0x1010, 0x2020, 0x3030]), 400.into()],
        ),
        ("number(common_timestamp)", "number", vec![1400.into()]),
        (
            "number(sched.sched_switch.common_timestamp.usecs)",
            "number",
            vec![1400.into()],
        ),
        // Modifiers other than those of times change nothing.
        (
            "small(sched.sched_switch.next_prio.hex)",
            "small",
            vec![110.into()],
        ),
    ] {
        let command = format!(
            "hist:keys=next_pid:lat=common_timestamp.usecs-$ts0,own=prev_prio:onmatch(sched.sched_waking).{action}"
        );
        world.add("sched_switch", &command);
        latency(&world, 5, 1_000_000, 1_400_000);
        assert_eq!(world.given(synth), [expected], "{action}");
        // The line is a command that removes it, and its helper.
        let line = world.lines("sched_switch").remove(0);
        world.add("sched_switch", &format!("!{line}"));
        assert_eq!((world.count(), world.users()), (1, 0), "{line}");
    }
}

/// onmax and onchange with trace.
#[test]
fn traces_of_changes() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:p=prio:onmax($p).task(comm,pid):onchange($p).small($p)",
    );
    for prio in [3, 3, 5, 4, 5, 6] {
        wake(&world, 5, prio, prio.to_string().as_bytes());
    }
    let task = |comm: &str| vec![comm.into(), 5.into()];
    assert_eq!(world.given("task"), [task("3"), task("5"), task("6")]);
    assert_eq!(
        world.given("small"),
        [3, 5, 4, 5, 6].map(|prio| [prio.into()])
    );
    assert_eq!(
        lines(&world, "sched_waking"),
        [
            "{ pid:          5 } hitcount:          6",
            "\tmax:          6",
            "\tchanged:          6"
        ]
    );
    // Nobody listens.
    world.synth("small").listened.store(false, SeqCst);
    wake(&world, 5, 1, b"");
    assert_eq!(world.given("small"), [[]; 0]);
    assert_eq!(world.histogram("sched_waking", 0).missed(), 0);
}

/// Without references, onmatch applies to each hit, whatever the other event.
#[test]
fn onmatch_without_references() {
    let world = World::usual();
    world.add(
        "sched_switch",
        "hist:keys=next_pid:onmatch(sched.sched_wakeup).small(next_prio)",
    );
    world.hit("sched_switch", &switch((b"a", 1), (b"b", 2)), NOW);
    assert_eq!(world.given("small"), [[110.into()]]);
}

/// A histogram of the synthetic event, with references to its variables.
#[test]
fn chains() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:ts0=common_timestamp.usecs");
    world.add(
        "sched_switch",
        "hist:keys=next_pid:lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).latency($lat,next_pid)",
    );
    world.add(
        "latency",
        "hist:keys=pid:l=lat:vals=lat:onmax($l).number($l)",
    );
    world.add("number", "hist:keys=nn.log2:sort=nn");
    world.add(
        "number",
        "hist:keys=nn:onmatch(synthetic.latency).after(nn) if nn > 250",
    );
    latency(&world, 5, 1_000_000, 1_200_000);
    latency(&world, 5, 2_000_000, 2_100_000);
    latency(&world, 5, 3_000_000, 3_300_000);
    let lat = |lat: u64| [lat.into(), 5.into()];
    assert_eq!(world.given("latency"), [lat(200), lat(100), lat(300)]);
    assert_eq!(world.given("number"), [[200.into()], [300.into()]]);
    assert_eq!(world.given("after"), [[300.into()]]);
    assert_eq!(
        lines(&world, "latency"),
        [
            "{ pid:          5 } hitcount:          3  lat:        600",
            "\tmax:        300"
        ]
    );
    assert_eq!(
        world.entries("number")[0].lines().collect::<Vec<_>>(),
        [
            "{ nn: ~ 2^8  } hitcount:          1",
            "{ nn: ~ 2^9  } hitcount:          1"
        ]
    );
}

/// An event whose histogram fires it again does so until it nests too deeply, which is counted.
#[test]
fn events_within_themselves() {
    let world = World::usual();
    world.add(
        "number",
        "hist:keys=nn:m=nn+1:onmatch(synthetic.number).number($m)",
    );
    world.hit("number", &Bytes(vec![0; 16]), NOW);
    let given = world.given("number");
    assert_eq!(given, [1, 2, 3, 4].map(|n: u64| [n.into()]));
    let hist = world.histogram("number", 0);
    assert_eq!((hist.hits(), hist.missed()), (5, 1));
    drop(hist);
    world.add("number", &format!("!{}", world.lines("number")[0]));
    assert_eq!(world.users(), 0);
}

/// The line of a trigger, and that it removes the trigger.
#[test]
fn lines_remove_their_triggers() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:ts0=common_timestamp.usecs,c=comm,k=10",
    );
    for (command, line) in [
        ("keys=next_pid:x=next_prio", "keys=next_pid:vals=hitcount:x=next_prio:sort=hitcount:size=128"),
        (
            "keys=next_pid:x=next_prio:y=prev_prio.hex,z=7",
            "keys=next_pid:vals=hitcount:x=next_prio,y=prev_prio.hex,z=7:sort=hitcount:size=128",
        ),
        (
            "x=common_timestamp.usecs-sched.sched_waking.$ts0:key=next_pid:clock=mono",
            "keys=next_pid:vals=hitcount:x=common_timestamp.usecs-sched.sched_waking.$ts0:sort=hitcount:size=128:clock=mono",
        ),
        (
            "keys=next_pid:x=sched.sched_waking.$c,y=$c:vals=$ts0,sched.sched_waking.$k:sort=ts0,next_pid.descending",
            "keys=next_pid:vals=hitcount,$ts0,sched.sched_waking.$k:x=sched.sched_waking.$c,\
             y=sched.sched_waking.$c:sort=ts0,next_pid.descending:size=128",
        ),
        (
            "keys=next_pid:a=$k*2,b=1+2*3,c=-(next_prio),d=next_prio.log2+$k,e=cpu+common_cpu",
            "keys=next_pid:vals=hitcount:a=20,b=7,c=-(next_prio),d=next_prio.log2+$k,e=cpu+common_cpu:\
             sort=hitcount:size=128",
        ),
        (
            "keys=next_pid:a=cpu,b=common_cpu,c=COMM,d=common_comm,e=common_pid.execname,f=common_stacktrace,g=stacktrace",
            "keys=next_pid:vals=hitcount:a=common_cpu,b=common_cpu,c=common_comm,d=common_comm,e=common_pid.execname,\
             f=common_stacktrace,g=common_stacktrace:sort=hitcount:size=128",
        ),
        (
            "keys=next_pid:x=common_timestamp:onmax($x) .save( next_comm , prev_pid.hex ):onchange($x).snapshot() if next_pid > 0",
            "keys=next_pid:vals=hitcount:x=common_timestamp:sort=hitcount:size=128:clock=global:\
             onmax($x).save(next_comm,prev_pid.hex):onchange($x).snapshot() if next_pid > 0",
        ),
        (
            "keys=next_pid:onmatch(sched.sched_waking).small( target_cpu ):onmatch(sched.sched_waking).trace(small,next_prio)",
            "keys=next_pid:vals=hitcount:sort=hitcount:size=128:onmatch(sched.sched_waking).small(target_cpu):\
             onmatch(sched.sched_waking).trace(small,next_prio)",
        ),
    ] {
        world.add("sched_switch", &format!("hist:{command}"));
        let shown = world.lines("sched_switch").remove(0);
        assert_eq!(shown, format!("hist:{line}"), "{command}");
        world.add("sched_switch", &format!("!{shown}"));
        assert_eq!((world.count(), world.users()), (1, 0), "{shown}");
        // The trigger that the line creates has the same line.
        world.add("sched_switch", &shown);
        assert_eq!(world.lines("sched_switch"), [shown.as_str()]);
        world.add("sched_switch", &format!("!{shown}"));
    }
}

/// An empty histogram shows no values of actions, and clearing one forgets them.
#[test]
fn clearing() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:ts0=prio");
    world.add("sched_switch", "hist:keys=next_pid:vals=$ts0");
    wake(&world, 5, 3, b"");
    world.hit("sched_switch", &switch((b"", 1), (b"", 5)), NOW);
    assert_eq!(lines(&world, "sched_switch").len(), 1);
    world.add("sched_switch", "hist:keys=next_pid:vals=$ts0:clear");
    assert_eq!(lines(&world, "sched_switch").len(), 0);
    world.hit("sched_switch", &switch((b"", 1), (b"", 5)), NOW);
    assert_eq!(
        lines(&world, "sched_switch"),
        ["{ next_pid:          5 } hitcount:          1  ts0:          3"]
    );
}
