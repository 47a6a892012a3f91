// SPDX-License-Identifier: GPL-2.0

//! Control groups in keys, variables, saved fields and filters, and which of them a histogram
//! keeps.

use rhist::cpu::Cpu;
use rhist::event::Groups;
use rhist::limits::GROUPS_MAX;
use rhist::text::Text;

use super::group_tree::*;
use super::others::Worker;
use super::world::*;

fn switched(world: &World, prev: i32, next: i32, group: u64) {
    let record = switch((b"prev", prev), (b"next", next));
    world.hit("sched_switch", &record, Moment { group, ..NOW });
}

fn rows(world: &World, event: &str) -> Vec<String> {
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let entries = &world.entries(event)[0];
    let mut rows: Vec<_> = entries.lines().map(squeezed).collect();
    rows.sort();
    rows
}

/// The id is counted, the path is shown; and a group is kept once, however many entries have it,
/// until the histogram is gone.
#[test]
fn as_key() {
    let world = World::usual();
    world.add("sched_switch", "hist:keys=common_cgroup,next_pid");
    for (group, next) in [(5001, 1), (5001, 2), (5001, 1), (13, 1)] {
        switched(&world, 7, next, group);
    }
    assert_eq!(
        rows(&world, "sched_switch"),
        [
            "{ common_cgroup: /group-5001 , next_pid: 1 } hitcount: 2",
            "{ common_cgroup: /group-5001 , next_pid: 2 } hitcount: 1",
            "{ common_cgroup: 13 , next_pid: 1 } hitcount: 1",
        ]
    );
    assert_eq!(held(5001), 1);
    world.add("sched_switch", "!hist:keys=common_cgroup,next_pid");
    assert_eq!(held(5001), 0);
}

/// A key that is one id takes another way.
#[test]
fn as_only_key() {
    let world = World::usual();
    let trigger = "hist:keys=common_cgroup:vals=next_prio:sort=common_cgroup.descending";
    world.add("sched_switch", trigger);
    for group in [6001, 6002, 6001] {
        switched(&world, 7, 8, group);
    }
    let file = world.hist_file("sched_switch");
    let [first, second] = ["/group-6002", "/group-6001"].map(|path| file.find(path).unwrap());
    assert!(first < second, "{file}");
    assert!(
        file.contains("hitcount:          2  next_prio:        220"),
        "{file}"
    );
    assert_eq!([held(6001), held(6002)], [1, 1]);
}

/// Beside a stack, which is interned.
#[test]
fn beside_a_stack() {
    let world = World::usual();
    let trigger = "hist:keys=common_stacktrace,common_cgroup,next_pid.cgroup";
    world.add("sched_switch", trigger);
    for group in [5501, 5502, 5501] {
        switched(&world, 7, 5503, group);
    }
    let file = world.hist_file("sched_switch");
    for path in ["/group-5501", "/group-5502", "/group-6503"] {
        assert!(file.contains(path), "{file}");
    }
    assert_eq!([held(5501), held(5502), held(6503)], [1; 3]);
}

/// The worker lets go of the groups of forgotten entries, and of no others.
#[test]
fn forgotten() {
    for (trigger, [idle, busy]) in [
        ("hist:keys=next_prio,common_cgroup:expire(1s)", [5601, 5602]),
        (
            "hist:keys=common_stacktrace,common_cgroup:expire(1s)",
            [5603, 5604],
        ),
    ] {
        let world = World::usual();
        world.add("sched_switch", trigger);
        let mut worker = Worker::new(&world.histogram("sched_switch", 0));
        worker.work(0);
        switched(&world, 7, 8, idle);
        switched(&world, 7, 8, busy);
        assert_eq!([held(idle), held(busy)], [1, 1], "{trigger}");
        for _ in 0..12 {
            switched(&world, 7, 8, busy);
            worker.work(250);
        }
        assert_eq!([held(idle), held(busy)], [0, 1], "{trigger}");
        let file = world.hist_file("sched_switch");
        assert!(file.contains(&format!("/group-{busy} ")), "{file}");
    }
}

/// Groups of other tasks: of the victim and of the culprit.
#[test]
fn of_tasks() {
    let world = World::usual();
    world.add("sched_switch", "hist:keys=next_pid.cgroup,prev_pid.cgroup");
    for (prev, next) in [(7001, 0), (0, 7001), (999, 7002), (7001, 0)] {
        switched(&world, prev, next, 1);
    }
    assert_eq!(
        rows(&world, "sched_switch"),
        [
            "{ next_pid: /group-8001 , prev_pid: idle } hitcount: 1",
            "{ next_pid: /group-8002 , prev_pid: <gone> } hitcount: 1",
            "{ next_pid: idle , prev_pid: /group-8001 } hitcount: 2",
        ]
    );
    let json = world.hist_jsonl("sched_switch");
    for key in [
        r#"[{"value":8001,"cgroup":"/group-8001"},{"value":0,"cgroup":"idle"}]"#,
        r#"[{"value":8002,"cgroup":"/group-8002"},{"value":null,"cgroup":"<gone>"}]"#,
    ] {
        assert!(json.contains(key), "{json}");
    }
    assert!(
        json.contains(r#""type":"u64","modifier":"cgroup""#),
        "{json}"
    );
}

/// A variable, fields saved with a maximum, and a synthetic event.
#[test]
fn stored() {
    let world = World::usual();
    let trigger = "hist:keys=next_prio:cg=prev_pid.cgroup:\
                   onmax($cg).save(common_cgroup,next_pid.cgroup)";
    world.add("sched_switch", trigger);
    switched(&world, 9001, 9002, 9500);
    let file = world.hist_file("sched_switch");
    let saved = "common_cgroup: /group-9500  next_pid.cgroup: /group-10002";
    assert!(file.contains(saved), "{file}");
    let json = world.hist_jsonl("sched_switch");
    assert!(
        json.contains(r#""variables":[{"value":10001,"cgroup":"/group-10001"}]"#),
        "{json}"
    );
    assert_eq!([held(9500), held(10001), held(10002)], [1; 3]);
}

/// A field of that name is not the control group.
#[test]
fn field_of_that_name() {
    let world = World::new(
        vec![],
        vec![],
        &[("named", &[("u64", "common_cgroup")])],
        false,
    );
    world.add("named", "hist:keys=common_cgroup");
    let record = super::events::Bytes::new(16).put(8, &77u64.to_ne_bytes());
    world.hit("named", &record, NOW);
    assert_eq!(rows(&world, "named"), ["{ common_cgroup: 77 } hitcount: 1"]);
    world.add(
        "named",
        "hist:keys=common_cgroup.hex if common_cgroup == 78",
    );
    world.hit("named", &record, NOW);
    assert_eq!(world.entries("named")[1].lines().count(), 0);
}

/// Filters by a group, and by those below it.
#[test]
fn filters() {
    let world = World::usual();
    for (nth, (filter, groups)) in [
        (r#"common_cgroup == "/a""#, &[20][..]),
        (r#"common_cgroup != '/a'"#, &[1, 21]),
        (r#"common_cgroup ~ "/a""#, &[20, 21]),
        (r#"!(common_cgroup~"/a") && next_pid > 0"#, &[1]),
    ]
    .into_iter()
    .enumerate()
    {
        let trigger = format!("hist:keys=next_prio,common_cgroup if {filter}");
        world.add("sched_switch", &trigger);
        for group in [1, 20, 21] {
            switched(&world, 7, 8, group);
        }
        assert_eq!(
            world.entries("sched_switch")[nth].lines().count(),
            groups.len(),
            "{filter}"
        );
    }
}

/// A group that is gone, or never was: a trigger with it is refused, and can be removed.
#[test]
fn filter_without_group() {
    let world = World::usual();
    let trigger = r#"hist:keys=next_prio if common_cgroup == "/gone""#;
    assert!(world.write("sched_switch", trigger.as_bytes()).is_err());
    world.add("sched_switch", &format!("!{trigger}"));
}

/// A histogram keeps so many groups, and counts how often it could not keep another one. Groups
/// without an entry are let go of, unless a hit has stored their ids meanwhile.
#[test]
fn bounded() {
    let cpu = Cpu::enter(0);
    let hold = |groups: &Groups, id| groups.hold(node(cpu.preempt(), id).unwrap());
    let path = |groups: &Groups, id| {
        let mut out = Text::new();
        groups
            .path(&mut out, id)
            .unwrap()
            .then(|| out.as_bytes().to_vec())
    };
    let groups = Groups::new(&Nodes).unwrap();
    let ids = 1_000_000..1_000_000 + u64::from(GROUPS_MAX);
    for id in ids.clone() {
        hold(&groups, id);
        hold(&groups, id);
        assert_eq!(held(id), 1);
    }
    assert_eq!((groups.held(), groups.refused()), (GROUPS_MAX, 0));
    hold(&groups, 1);
    assert_eq!((groups.held(), groups.refused()), (GROUPS_MAX, 1));
    assert_eq!(path(&groups, 1), None);
    let [kept, stored, gone] = [0, 1, 2].map(|n| ids.start + n);
    groups.begin_to_let_go();
    hold(&groups, stored);
    groups.keep(kept);
    groups.let_go();
    assert_eq!(groups.held(), 2);
    assert_eq!([kept, stored, gone].map(held), [1, 1, 0]);
    assert_eq!(
        path(&groups, stored),
        Some(format!("/group-{stored}").into_bytes())
    );
    assert_eq!(path(&groups, gone), None);
    hold(&groups, gone);
    assert_eq!(held(gone), 1);
    drop(groups);
    assert_eq!([kept, stored, gone].map(held), [0; 3]);
}

/// Names and process ids of tasks, and the name of the event for triggers that share a histogram.
#[test]
fn of_tasks_and_events() {
    let world = World::usual();
    world.add(
        "sched_switch",
        "hist:keys=next_pid.comm,common_tgid,common_ppid:sort=next_pid",
    );
    for next in [4, 0, 999, 4] {
        switched(&world, 1, next, 1);
    }
    let entries = world.entries("sched_switch")[0].clone();
    let names: Vec<_> = entries
        .lines()
        .map(|line| line.split_whitespace().nth(2).unwrap())
        .collect();
    assert_eq!(names, ["<gone>", "<idle>", "task-4"]);
    assert!(
        entries.contains("common_tgid:         70, common_ppid:         60 }"),
        "{entries}"
    );
    for event in ["sched_waking", "sched_switch"] {
        world.add(event, "hist:name=both:keys=common_event,common_tgid");
    }
    switched(&world, 1, 4, 1);
    world.hit("sched_waking", &super::events::waking(b"x", 1), NOW);
    world.hit("sched_waking", &super::events::waking(b"x", 2), NOW);
    assert_eq!(
        rows(&world, "sched_waking"),
        [
            "{ common_event: sched:sched_switch , common_tgid: 70 } hitcount: 1",
            "{ common_event: sched:sched_waking , common_tgid: 70 } hitcount: 2",
        ]
    );
}
