// SPDX-License-Identifier: GPL-2.0

//! Commands: the results of the engine, and the triggers that they leave.

use kernel::sync::atomic::Relaxed;
use rhist::engine::failure::Failure;
use rhist::trigger::Error;
use rhist::trigger::ErrorText;
use rhist::trigger::HintText;

use super::events::Hits as _;
use super::world::switch;
use super::world::World;
use super::world::NOW;

const WAKING: &str = "hist:keys=pid:ts0=common_timestamp.usecs";
const LATENCY: &str = "hist:keys=next_pid:lat=common_timestamp.usecs-$ts0";

/// Why `command` is refused.
fn failure(world: &World, event: &str, command: &str) -> Failure {
    match world.execute(event, command.as_bytes()) {
        Err(failure) => failure,
        Ok(_) => panic!("{event}: {command} was accepted"),
    }
}

fn error(world: &World, event: &str, command: &str) -> Error {
    failure(world, event, command).error()
}

#[test]
fn a_trigger_that_is_referred_to_stays_and_says_who_refers() {
    let world = World::usual();
    world.add("sched_waking", WAKING);
    world.add("sched_switch", LATENCY);
    let Failure::Referenced(text) = failure(&world, "sched_waking", &format!("!{WAKING}")) else {
        panic!("not refused for a reference");
    };
    let text = String::from_utf8_lossy(text.as_bytes()).into_owned();
    assert!(
        text.starts_with(
            "Not removed, a variable is used by the trigger of sched:sched_switch: hist:keys=next_pid:"
        ),
        "{text}"
    );
    assert_eq!(world.count(), 2);
    world.add("sched_switch", &format!("!{LATENCY}"));
    world.add("sched_waking", &format!("!{WAKING}"));
    assert_eq!(world.count(), 0);
}

#[test]
fn a_line_removes_its_trigger_although_its_names_mean_something_else_now() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:v=prio");
    world.add("sched_switch", "hist:keys=next_pid:w=$v");
    let line = world.lines("sched_switch").remove(0);
    // Now `v` is ambiguous.
    world.add("sched_wakeup", "hist:keys=pid:v=prio");
    world.add("sched_switch", &format!("!{line}"));
    assert!(world.lines("sched_switch").is_empty());
}

#[test]
fn names_close_no_circle() {
    let world = World::usual();
    let named = "hist:name=one:keys=common_pid:v=$w:onmatch(sched.sched_switch).number($v)";
    world.add("sched_waking", "hist:keys=common_pid:w=common_timestamp");
    world.add("sched_wakeup", named);
    world.add("sched_switch", "hist:keys=common_pid:w=$v");
    // Here `$w` is the variable of sched_switch, which refers to the histogram of this name.
    let refused = error(&world, "after", named);
    assert!(refused.has_hint(HintText::NamedCircle), "{refused:?}");
    assert_eq!((world.count(), world.users()), (3, 1));
    world.add("sched_switch", "!hist:keys=common_pid:w=$v");
    world.add("after", named);
}

#[test]
fn a_name_shares_a_histogram_among_events() {
    let world = World::usual();
    let command = "hist:name=both:keys=pid";
    world.add("sched_waking", command);
    world.add("sched_wakeup", command);
    let record = switch((b"a\0", 1), (b"b\0", 2));
    world.hit("sched_waking", &record, NOW);
    world.hit("sched_wakeup", &record, NOW);
    assert_eq!(world.histogram("sched_waking", 0).hits(), 2);
    assert_eq!(world.histogram("sched_wakeup", 0).hits(), 2);
    // Both are cleared.
    world.add("sched_wakeup", &format!("{command}:clear"));
    assert_eq!(world.histogram("sched_waking", 0).hits(), 0);
}

#[test]
fn pause_cont_and_clear() {
    let world = World::usual();
    let (command, record) = ("hist:keys=next_pid", switch((b"a\0", 1), (b"b\0", 2)));
    let hits = || world.histogram("sched_switch", 0).hits();
    for new in ["cont", "clear"] {
        let refused = error(&world, "sched_switch", &format!("{command}:{new}"));
        assert_eq!(refused.text, Some(ErrorText::TriggerEnoentClear));
    }
    world.add("sched_switch", &format!("{command}:pause"));
    assert!(world.trigger_file("sched_switch").contains(" [paused]"));
    world.hit("sched_switch", &record, NOW);
    assert_eq!(hits(), 0);
    world.add("sched_switch", &format!("{command}:cont"));
    world.hit("sched_switch", &record, NOW);
    world.hit("sched_switch", &record, NOW);
    assert_eq!(hits(), 2);
    world.add("sched_switch", &format!("{command}:pause"));
    world.hit("sched_switch", &record, NOW);
    assert_eq!(hits(), 2);
    world.add("sched_switch", &format!("{command}:clear"));
    assert_eq!(hits(), 0);
    let refused = error(&world, "sched_switch", command);
    assert_eq!(refused.text, Some(ErrorText::TriggerEexist));
}

#[test]
fn triggers_that_are_not_paused_are_counted() {
    let world = World::usual();
    let (first, second) = (
        "hist:keys=next_pid:name=n",
        "hist:name=n:keys=next_pid if next_pid > 5",
    );
    let active = || world.histogram("sched_switch", 0).active().load(Relaxed);
    world.add("sched_switch", &format!("{first}:pause"));
    assert_eq!(active(), 0);
    world.add("sched_switch", second);
    assert_eq!(active(), 1);
    for _ in 0..2 {
        world.add("sched_switch", &format!("{first}:cont"));
        assert_eq!(active(), 2);
    }
    world.add("sched_switch", &format!("{first}:clear"));
    assert_eq!(active(), 2);
    for _ in 0..2 {
        world.add(
            "sched_switch",
            "hist:name=n:keys=next_pid:pause if next_pid > 5",
        );
        assert_eq!(active(), 1);
    }
    world.add("sched_switch", &format!("!{second}"));
    assert_eq!(active(), 1);
    world.add("sched_switch", &format!("{first}:pause"));
    assert_eq!(active(), 0);
}

#[test]
fn wide_entries_cannot_be_as_many() {
    let world = World::usual();
    let command = |entries| format!("hist:keys=common_stacktrace:size=65..{entries}");
    let refused = error(&world, "sched_switch", &command(1 << 20));
    let hint = refused.hint.map(|hint| (hint.text, hint.caret));
    let caret = "hist:keys=common_stacktrace:size=".len();
    assert_eq!(hint, Some((HintText::TooWide, caret)));
    world.add("sched_switch", &command(1 << 19));
    world.add("sched_switch", "hist:keys=next_pid:size=65..1048576");
}

#[test]
fn names_are_short_in_keys_that_c_does_not_know() {
    let world = World::usual();
    let keys = "hist:keys=common_comm,common_pid,common_stacktrace";
    world.add("sched_switch", &format!("{keys}:size=128..512:full(other)"));
    for pid in [7, 7, 8] {
        world.hit("sched_switch", &switch((b"a\0", pid), (b"b\0", 1)), NOW);
    }
    let histogram = world.histogram("sched_switch", 0);
    assert_eq!(histogram.hits(), 3);
    // A variable makes a name take 256 bytes.
    let refused = error(
        &world,
        "sched_switch",
        &format!("{keys}:ts=next_pid:size=128..512"),
    );
    assert_eq!(
        refused.hint.map(|hint| hint.text),
        Some(HintText::KeysTooLong)
    );
}

#[test]
fn filters_decide_which_hits_count() {
    let world = World::usual();
    world.add("sched_switch", "hist:keys=next_pid if next_pid > 5");
    // A trigger without a filter differs from all triggers with one.
    world.add("sched_switch", "hist:keys=next_pid");
    for pid in 1..=9 {
        world.hit("sched_switch", &switch((b"a\0", 1), (b"b\0", pid)), NOW);
    }
    assert_eq!(world.histogram("sched_switch", 0).hits(), 4);
    assert_eq!(world.histogram("sched_switch", 1).hits(), 9);
    world.add("sched_switch", "!hist:keys=next_pid");
    assert_eq!(world.lines("sched_switch").len(), 1);
    assert!(world.lines("sched_switch")[0].ends_with(" if next_pid > 5"));
}

#[test]
fn helpers_go_with_the_last_action() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid");
    let action = |event: &str| format!("hist:keys=next_pid:onmatch(sched.sched_waking).{event}");
    let [first, second] = [action("small(target_cpu)"), action("signed(target_cpu)")];
    world.add("sched_switch", &first);
    assert_eq!(world.count(), 3);
    // Both actions share one helper, if its variable fits.
    let _ = world.write("sched_switch", second.as_bytes());
    let with_both = world.count();
    world.add("sched_switch", &format!("!{first}"));
    world.add("sched_switch", &format!("!{second}"));
    assert!(with_both >= 3);
    assert_eq!(world.lines("sched_waking").len(), 1);
    assert_eq!(world.users(), 0);
}
