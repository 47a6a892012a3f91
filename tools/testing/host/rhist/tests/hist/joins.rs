// SPDX-License-Identifier: GPL-2.0

//! Joins by another key than the histogram's, and distributions of the found values.

use kernel::prelude::EEXIST;
use rhist::trigger::{Error, ErrorText, HintText};

use super::events::waking;
use super::events::{hist_file, Bytes, ZOO_END};
use super::world::*;

fn wake(world: &World, pid: i32, time: u64) {
    world.hit(
        "sched_waking",
        &waking(b"a task", pid),
        Moment { time, ..NOW },
    );
}

fn switch_to(world: &World, comm: &[u8], pid: i32, time: u64) {
    let record = switch((b"before", 1), (comm, pid));
    world.hit("sched_switch", &record, Moment { time, ..NOW });
}

fn latencies(keys: &str) -> std::sync::Arc<World> {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:ts0=common_timestamp");
    let trigger = format!("hist:{keys}:vals=(common_timestamp-$ts0).dist:quantiles(50)");
    world.add("sched_switch", &trigger);
    world
}

fn entries(world: &World) -> Vec<String> {
    let entries = &world.entries("sched_switch")[0];
    let mut entries: Vec<_> = entries.lines().map(squeezed).collect();
    entries.sort();
    entries
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Tasks of one name are counted together, each found by its own id; a found variable is unset.
#[test]
fn by_name() {
    let world = latencies("keys=next_comm:on(next_pid)");
    for (pid, time) in [(5, 100), (6, 200), (7, 300)] {
        wake(&world, pid, time);
    }
    switch_to(&world, b"worker", 5, 1100);
    switch_to(&world, b"worker", 6, 2200);
    switch_to(&world, b"other", 7, 800);
    switch_to(&world, b"other", 7, 900);
    switch_to(&world, b"stranger", 9, 900);
    assert_eq!(
        entries(&world),
        [
            "{ next_comm: other } hitcount: 1 (common_timestamp-$ts0).dist: count: 1 min: 500 p50: 500 max: 500 avg: 500",
            "{ next_comm: worker } hitcount: 2 (common_timestamp-$ts0).dist: count: 2 min: 1000 p50: 1000 max: 2000 avg: 1500",
        ]
    );
    assert_eq!(world.histogram("sched_switch", 0).unresolved(), 2);
}

/// By one number that counts, by a number with strings beside it, or by something outside of the
/// key.
#[test]
fn any_keys() {
    for keys in [
        "keys=next_prio:on(next_pid)",
        "keys=next_comm,next_prio:on(next_pid)",
        "keys=common_cpu:on(next_pid)",
        "keys=next_pid:on(next_pid)",
        "keys=next_pid-1:on(next_pid+0)",
    ] {
        let world = latencies(keys);
        wake(&world, 5, 100);
        switch_to(&world, b"worker", 5, 300);
        let entries = entries(&world);
        assert_eq!(entries.len(), 1, "{keys}: {entries:?}");
        assert!(
            entries[0].ends_with("count: 1 min: 200 p50: 200 max: 200 avg: 200"),
            "{entries:?}"
        );
    }
}

/// Strings are looked up in the same form as they are counted.
#[test]
fn by_strings() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=comm,pid:ts0=common_timestamp");
    world.add(
        "sched_switch",
        "hist:keys=next_prio:on(next_comm,next_pid):vals=(common_timestamp-$ts0).max",
    );
    wake(&world, 5, 100);
    switch_to(&world, b"another", 5, 200);
    switch_to(&world, b"a task", 6, 200);
    switch_to(&world, b"a task", 5, 400);
    let entries = entries(&world);
    assert_eq!(entries.len(), 1);
    assert!(
        entries[0].ends_with("hitcount: 1 (common_timestamp-$ts0).max: 300"),
        "{entries:?}"
    );
    assert_eq!(world.histogram("sched_switch", 0).unresolved(), 2);
}

/// Actions see the variables of the counted element, and the found values.
#[test]
fn actions() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:ts0=common_timestamp");
    world.add(
        "sched_switch",
        "hist:keys=next_comm:on(next_pid):lat=common_timestamp-$ts0:onmax($lat).save(next_pid,prev_comm)",
    );
    for (pid, woken, switched) in [(5, 100, 300), (6, 100, 900), (7, 100, 500)] {
        wake(&world, pid, woken);
        switch_to(&world, b"worker", pid, switched);
    }
    assert_eq!(
        squeezed(&world.entries("sched_switch")[0]),
        "{ next_comm: worker } hitcount: 3 max: 800 next_pid: 6 prev_comm: before"
    );
}

/// A field of the other event comes from a helper trigger whose keys are those in `on()`.
#[test]
fn helper() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:ts0=common_timestamp");
    world.add(
        "sched_switch",
        "hist:keys=next_comm:on(next_pid):lat=common_timestamp-$ts0:\
         onmatch(sched.sched_waking).small(prio)",
    );
    assert!(world
        .lines("sched_waking")
        .iter()
        .any(|line| line.contains("synthetic_prio=prio")));
}

fn line(params: &str) -> String {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:ts0=common_timestamp");
    world.add("sched_switch", params);
    let line = world.lines("sched_switch")[0].clone();
    let again = format!("!{line}");
    world.write("sched_switch", again.as_bytes()).unwrap();
    assert!(world.lines("sched_switch").is_empty(), "{line}");
    line
}

/// The line of a trigger has the clause in one place, and removes the trigger.
#[test]
fn lines() {
    assert_eq!(
        line(
            "hist:limit(3):unit(ms):quantiles(5,99.99):buckets(2):on(next_pid):keys=next_comm:sort=(common_timestamp-$ts0).p5:\
             vals=(common_timestamp-$ts0).dist=5"
        ),
        "hist:keys=next_comm:on(next_pid):vals=hitcount,(common_timestamp-$ts0).dist=5:quantiles(5,99.99):unit(ms):buckets(2):\
         sort=(common_timestamp-$ts0).p5:limit(3):size=128:clock=global"
    );
    assert_eq!(
        line("hist:keys=next_pid.log2=4:vals=next_prio.min,next_prio.dist=3:sort=next_prio.avg.descending"),
        "hist:keys=next_pid.log2=4:vals=hitcount,next_prio.min,next_prio.dist:sort=next_prio.avg.descending:size=128"
    );
    assert_eq!(
        line("hist:full(other):full(other,recycle):expire(90s,taken):keys=next_pid:v=next_prio:size=65..129:size=100..3000"),
        "hist:keys=next_pid:vals=hitcount:v=next_prio:sort=hitcount:size=128..4096:expire(taken,90s):full(recycle,other)"
    );
    assert_eq!(
        line("hist:keys=next_pid:limit(1):full(other):expire(3600000ms)"),
        "hist:keys=next_pid:vals=hitcount:sort=hitcount:limit(1):size=128:expire(1h):full(other)"
    );
    // Sorts by one of several values that have the number.
    assert_eq!(
        line("hist:keys=next_pid:vals=next_prio.dist,next_prio.max:sort=next_prio"),
        "hist:keys=next_pid:vals=hitcount,next_prio.dist,next_prio.max:sort=next_prio.max:size=128"
    );
}

/// Each clause distinguishes a trigger from others.
#[test]
fn all_of_it_is_compared() {
    let base = "hist:keys=next_comm:on(next_pid):vals=(common_timestamp-$ts0).dist";
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:ts0=common_timestamp");
    world.add("sched_switch", base);
    assert_eq!(
        world
            .write("sched_switch", base.as_bytes())
            .unwrap_err()
            .errno,
        EEXIST
    );
    for other in [":quantiles(50)", ":unit(s)", ":buckets(9)", ":limit(1)"] {
        world.add("sched_switch", &format!("{base}{other}"));
    }
    for other in [
        "hist:keys=next_comm:on(next_prio):vals=(common_timestamp-$ts0).dist",
        "hist:keys=next_comm:on(next_pid):vals=(common_timestamp-$ts0).dist=2",
        "hist:keys=next_comm:on(next_pid):vals=(common_timestamp-$ts0).max",
        "hist:keys=next_comm:on(next_pid):vals=(common_timestamp-$ts0)",
        "hist:keys=next_comm:on(next_pid):vals=common_timestamp-$ts0",
    ] {
        world.add("sched_switch", other);
    }
    assert_eq!(world.lines("sched_switch").len(), 10);
}

/// The clauses that make room are not compared, as `size=` is not: a text without them finds its
/// trigger.
#[test]
fn room_is_not_compared() {
    let world = World::usual();
    world.add(
        "sched_switch",
        "hist:keys=next_pid:size=128..256:expire(5s):full(other)",
    );
    for same in ["", ":size=256..512", ":expire(1h)", ":full(recycle)"] {
        let text = format!("hist:keys=next_pid{same}");
        let error = world.write("sched_switch", text.as_bytes()).unwrap_err();
        assert_eq!(error.errno, EEXIST, "{same}");
        world.add("sched_switch", &format!("{text}:pause"));
    }
    world.add("sched_switch", "!hist:keys=next_pid");
    assert!(world.lines("sched_switch").is_empty());
}

/// A trigger that shares a histogram repeats its clauses that make room, or leaves out all of them.
#[test]
fn room_of_a_shared_histogram() {
    let room = ":size=128..256:expire(60s):full(other)";
    let trigger = |more: &str| format!("hist:name=foo:keys=prio{more}");
    let follower = |first: &str, more: &str| {
        let world = World::usual();
        world.add("sched_waking", &trigger(first));
        let done = world.write("sched_wakeup", trigger(more).as_bytes());
        done.map(|()| world.lines("sched_wakeup").remove(0))
    };
    let shown =
        "hist:name=foo:keys=prio:vals=hitcount:sort=hitcount:size=128..256:expire(1m):full(other)";
    for more in [
        "",
        ":size=1024",
        room,
        ":full(other):expire(60000ms):size=65..200",
    ] {
        assert_eq!(follower(room, more).unwrap(), shown, "{more}");
    }
    let refused = |first: &str, more: &str| {
        let error = follower(first, more).unwrap_err();
        let expected = Error::new(ErrorText::NamedMismatch, "hist:".len());
        let expected = expected.hinted(HintText::NamedRoom, "hist:".len());
        assert_eq!(error, expected, "{first} {more}");
    };
    for more in [
        ":size=128..512:expire(60s):full(other)",
        ":size=256..512:expire(60s):full(other)",
        ":size=128..256:expire(61s):full(other)",
        ":size=128..256:expire(60s):full(recycle)",
        ":size=128..256:expire(60s):full(recycle,other)",
        ":expire(60s):full(other)",
        ":size=128..256",
    ] {
        refused(room, more);
    }
    for more in [room, ":size=128..256", ":expire(60s)", ":full(recycle)"] {
        refused("", more);
        refused(":size=128", more);
    }
    // For another mismatch, C's text is enough.
    let error = follower(room, ":vals=prio").unwrap_err();
    assert_eq!(error, Error::new(ErrorText::NamedMismatch, "hist:".len()));
}

fn refused(marked: &str, expected: impl FnOnce(usize) -> Error) {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:ts0=common_timestamp");
    let (before, after) = marked.split_once('^').expect("no caret");
    let command = format!("{before}{after}");
    let error = world.write("sched_switch", command.as_bytes()).unwrap_err();
    assert_eq!(error, expected(before.len()), "{marked}");
}

fn own(marked: &str, text: HintText) {
    refused(marked, |caret| Error::own(text, caret));
}

#[test]
fn errors() {
    own(
        "hist:keys=next_pid:on(^next_pid)",
        HintText::OnWithoutReference,
    );
    own(
        "hist:keys=next_pid:^quantiles(50)",
        HintText::NoDistribution,
    );
    own("hist:keys=next_pid:^unit(s)", HintText::NoDistribution);
    own(
        "hist:keys=next_pid:vals=next_prio:^buckets(3)",
        HintText::NoDistribution,
    );
    for bad in [
        "",
        "0",
        "100",
        "50,50",
        "x",
        "99.9999",
        ".5",
        "5.",
        "1,2,3,4,5,6,7,8,9",
    ] {
        let marked = format!("hist:keys=next_pid:vals=next_prio.dist:quantiles(^{bad})");
        own(&marked, HintText::BadQuantiles);
    }
    for bad in ["", "ns", "m", "S"] {
        own(
            &format!("hist:keys=next_pid:vals=next_prio.dist:unit(^{bad})"),
            HintText::BadUnit,
        );
    }
    for bad in ["", "0", "1025", "-1"] {
        own(
            &format!("hist:keys=next_pid:vals=next_prio.dist:buckets(^{bad})"),
            HintText::BadBuckets,
        );
    }
    for bad in ["", "0", "x"] {
        own(
            &format!("hist:keys=next_pid:limit(^{bad})"),
            HintText::BadLimit,
        );
    }
    for bad in [
        "",
        "0",
        "60",
        "s",
        "0s",
        "999ms",
        "8761h",
        "31536001s",
        "18446744073709551616s",
        "18446744073709551615h",
        "60us",
        "60S",
        "1d",
        "+60s",
        "-60s",
        "0x60s",
        "6.5s",
        " 60s",
        "60s ",
        "60 s",
        "60s,",
        ",60s",
        "60s,60s",
        "taken,taken",
        "taken,60s,taken",
        "Taken",
    ] {
        own(
            &format!("hist:keys=next_pid:v=next_prio:expire(^{bad})"),
            HintText::BadExpire,
        );
    }
    for bad in [
        "",
        "others",
        "drop",
        "other,",
        "other,other",
        "recycle,other,recycle",
        "other recycle",
    ] {
        own(
            &format!("hist:keys=next_pid:full(^{bad})"),
            HintText::BadFull,
        );
    }
    for without in ["", ":v=next_comm", ":v=common_stacktrace"] {
        own(
            &format!("hist:keys=next_pid{without}:^expire(taken,60s)"),
            HintText::ExpireTaken,
        );
    }
    for clause in [
        "expire(60s",
        "full(other",
        "limit(3",
        "unit(s",
        "on(next_pid",
        "quantiles(5",
        "buckets(3",
    ] {
        own(
            &format!("hist:keys=next_pid:vals=next_prio.dist:{clause}^"),
            HintText::ClauseNotClosed,
        );
    }
    own(
        "hist:keys=next_pid:vals=(common_timestamp.usecs-next_prio.usecs).dist:^unit(s)",
        HintText::UnitOfUsecs,
    );
    for (marked, text) in [
        ("hist:keys=next_pid.^dist", ErrorText::BadFieldModifier),
        (
            "hist:keys=next_pid:x=next_prio.^min",
            ErrorText::BadFieldModifier,
        ),
        (
            "hist:keys=next_pid:vals=hitcount.^max",
            ErrorText::BadFieldModifier,
        ),
        (
            "hist:keys=next_pid:vals=(next_prio).^usecs",
            ErrorText::BadFieldModifier,
        ),
        (
            "hist:keys=next_pid:vals=(^nosuch).max",
            ErrorText::FieldNotFound,
        ),
        (
            "hist:keys=next_pid:vals=(^next_comm).max",
            ErrorText::InvalidStrOperand,
        ),
        (
            "hist:keys=next_pid:vals=next_prio.max:sort=^next_prio.min",
            ErrorText::InvalidSortModifier,
        ),
    ] {
        let world = World::usual();
        let command = marked.replace('^', "");
        let error = world.write("sched_switch", command.as_bytes()).unwrap_err();
        assert_eq!(error.text, Some(text), "{marked}: {error:?}");
    }
    own(
        "hist:keys=next_pid:vals=^next_comm.dist",
        HintText::StringValue,
    );
}

/// Values without room for their bucket are counted, and still in count, extremes and average.
#[test]
fn no_room_for_buckets() {
    let hist = super::events::hist(
        &super::events::zoo(),
        "keys=u8:vals=u64.dist=5,u32.dist=5:buckets(1):size=128",
    );
    let record = |value: u64| {
        Bytes::new(ZOO_END)
            .put(30, &value.to_le_bytes())
            .put(18, &(value as u32).to_le_bytes())
            .hit(&hist);
    };
    // 128 entries have room for 256 buckets of both together.
    for power in 0..50 {
        for part in [32u64, 33, 36, 40, 45] {
            record(part << power);
        }
    }
    let file = hist_file(&hist);
    let lost = hist.without_bucket();
    assert!(lost > 0);
    assert!(
        file.contains(&format!("\n    Without bucket: {lost}\n")),
        "{file}"
    );
    assert!(file.contains("Hits: 250\n"), "{file}");
    let squeezed = squeezed(file.lines().find(|line| line.starts_with('{')).unwrap());
    let max = 45u64 << 49;
    assert!(
        squeezed.contains("u64.dist: count: 250 min: 32 "),
        "{squeezed}"
    );
    assert!(squeezed.contains(&format!(" max: {max} ")), "{squeezed}");
}

/// `hist_debug` shows it behind all of C's lines.
#[test]
fn debug() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:ts0=common_timestamp");
    world.add(
        "sched_switch",
        "hist:keys=next_comm:on(next_pid):vals=(common_timestamp-$ts0).dist=2,next_prio.max:quantiles(5,50):unit(ms):limit(3)",
    );
    let debug = world.hist_debug("sched_switch");
    let own = debug.split_once("\n  lookup key fields").unwrap().1;
    assert_eq!(
        own,
        " (on() params):

    hist_data->on[0]:
      flags:
        HIST_FIELD_FL_KEY
      ftrace_event_field name: next_pid
      type: pid_t
      size: 8
      is_signed: 1
      function: hist_field_s32()

  distribution of hist_data->fields[1]:

      scale: 2
      is_signed: 1
      unit: ms
      buckets for each entry: 8
      quantiles: 5,50

  limit: 3
"
    );
    assert!(debug.contains("VAL: statistic\n        .dist\n"), "{debug}");
    assert!(debug.contains("VAL: statistic\n        .max\n"), "{debug}");
    world.add(
        "sched_waking",
        "hist:keys=prio:v=pid:size=128..1000:full(other,recycle):expire(60s,taken):limit(1)",
    );
    let debug = world.hist_debug("sched_waking");
    let own = "\n  limit: 1\n\n  size: 128..1024\n\n  expire: taken,1m\n\n  full: recycle,other\n";
    assert!(debug.ends_with(own), "{debug}");
}
