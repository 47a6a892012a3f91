// SPDX-License-Identifier: GPL-2.0

//! Stacks of programs in keys, variables and saved fields.

use kernel::error::code::EINVAL;
use rhist::trigger::HintText;
use rhist::user_stack::{End, Place, Word};

use super::events::waking;
use super::world::*;

/// The words of two functions of object 12, of the vDSO, and an end.
fn stack(first: u64, end: Option<End>) -> &'static [u64] {
    let place = |offset| Place::File { object: 12, offset };
    let words = [
        Word::new(place(first), true),
        Word::new(place(0x200), false),
        Word::new(Place::Vdso { offset: 0x30 }, false),
    ];
    let words = words.into_iter().chain(end.map(Word::end));
    Vec::leak(words.map(Word::to_u64).collect())
}

fn switched(world: &World, next: i32, user_stack: &'static [u64]) {
    let record = switch((b"prev", 1), (b"next", next));
    world.hit("sched_switch", &record, Moment { user_stack, ..NOW });
}

const SHOWN: &str = "\
{ common_ustack:
         12+0x100
         12+0x200
         0+0x30
         (no rules)
}";

/// A stack that is the whole key, and is counted by its words.
#[test]
fn as_only_key() {
    let world = World::usual();
    world.add("sched_switch", "hist:keys=common_ustack");
    for first in [0x100, 0x101, 0x100] {
        switched(&world, 7, stack(first, Some(End::NoRules)));
    }
    switched(&world, 7, &[]);
    let file = world.hist_file("sched_switch");
    assert!(
        file.contains(&format!("{SHOWN} hitcount:          2\n")),
        "{file}"
    );
    assert_eq!(file.matches("} hitcount:").count(), 3, "{file}");
    assert!(
        file.contains("hist:keys=common_ustack:vals=hitcount:sort=hitcount:size=128 "),
        "{file}"
    );
    let json = world.hist_jsonl("sched_switch");
    let words = r#"{"ustack":[{"object":12,"offset":256,"exact":true},{"object":12,"offset":512,"exact":false},{"object":0,"offset":48,"exact":false}],"end":"no rules"}"#;
    assert!(json.contains(words), "{json}");
    assert!(json.contains(r#"{"ustack":[],"end":"whole"}"#), "{json}");
}

/// Beside others, it is interned; with a variable, it is not.
#[test]
fn beside_others() {
    for variable in ["", ":v=next_prio"] {
        let world = World::usual();
        let trigger = format!("hist:keys=next_pid,common_ustack,common_stacktrace{variable}");
        world.add("sched_switch", &trigger);
        for next in [7, 8, 7] {
            switched(&world, next, stack(0x100, None));
        }
        switched(&world, 7, stack(0x100, Some(End::Astray)));
        let file = world.hist_file("sched_switch");
        let rows = file.matches("12+0x100").count();
        assert_eq!(rows, 3, "{file}");
        assert_eq!(file.matches("(astray)").count(), 1, "{file}");
    }
}

/// `ustack()` has the maximum number of words.
#[test]
fn depth() {
    let world = World::usual();
    let trigger = "hist:keys=common_ustack:vals=hitcount:sort=hitcount:ustack(2):size=128";
    world.add("sched_switch", trigger);
    for end in [None, Some(End::NoRules)] {
        switched(&world, 7, stack(0x100, end));
    }
    let file = world.hist_file("sched_switch");
    assert!(file.contains(trigger), "{file}");
    assert!(!file.contains("0+0x30"), "{file}");
    assert!(file.contains("hitcount:          2"), "{file}");
    let json = world.hist_jsonl("sched_switch");
    assert!(json.contains(r#""end":"depth""#), "{json}");
}

#[test]
fn as_variable_and_saved() {
    let world = World::usual();
    let trigger = "hist:keys=next_pid:s=common_ustack,p=next_prio:\
                   onmax($p).save(common_ustack,prev_pid)";
    world.add("sched_switch", trigger);
    switched(&world, 7, stack(0x100, Some(End::Changing)));
    let file = world.hist_file("sched_switch");
    let saved = "common_ustack: 12+0x100;12+0x200;0+0x30;(mapping in change)  prev_pid:";
    assert!(file.contains(saved), "{file}");
    let json = world.hist_jsonl("sched_switch");
    let words = r#"{"ustack":[{"object":12,"offset":256,"exact":true},"#;
    assert_eq!(json.matches(words).count(), 2, "{json}");
}

/// `save()` may be the only one with a stack.
#[test]
fn depth_of_a_saved_stack() {
    let world = World::usual();
    let trigger = "hist:keys=next_pid:p=next_prio:ustack(1):onmax($p).save(common_ustack)";
    world.add("sched_switch", trigger);
    switched(&world, 7, stack(0x100, None));
    let file = world.hist_file("sched_switch");
    assert!(file.contains("common_ustack: 12+0x100\n"), "{file}");
    assert!(file.contains(":ustack(1):"), "{file}");
}

/// A helper trigger has keys of the same depth as the histogram beside it.
#[test]
fn helper_of_the_same_depth() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=common_ustack:ustack(3)");
    let trigger = "hist:keys=common_ustack:ustack(3):x=next_prio:\
                   onmatch(sched.sched_waking).small(target_cpu)";
    world.add("sched_switch", trigger);
    let helper = world.trigger_file("sched_waking");
    let lines: Vec<_> = helper
        .lines()
        .filter(|line| line.contains("synthetic_"))
        .collect();
    assert_eq!(lines.len(), 1, "{helper}");
    assert!(lines[0].contains(":ustack(3):"), "{helper}");
    let moment = Moment {
        user_stack: stack(0x100, None),
        ..NOW
    };
    world.hit("sched_waking", &waking(b"a task", 7), moment);
    let record = switch((b"prev", 1), (b"next", 7));
    world.hit("sched_switch", &record, moment);
    assert_eq!(world.given("small").len(), 1);
}

/// Where a number is wanted, or addresses of the kernel; and clauses that are wrong or needless.
#[test]
fn refused() {
    use HintText::{BadUserStack, NoUserStack, UserStackParam, UserStackValue};
    let world = World::usual();
    for (trigger, hint, at) in [
        ("hist:keys=next_pid:vals=common_ustack", UserStackValue, 24),
        ("hist:keys=next_pid:x=common_ustack+1", UserStackValue, 21),
        ("hist:keys=common_ustack:ustack(0)", BadUserStack, 31),
        ("hist:keys=common_ustack:ustack(32)", BadUserStack, 31),
        ("hist:keys=common_stacktrace:ustack(3)", NoUserStack, 28),
        (
            "hist:keys=prev_pid:s=common_ustack:onmatch(sched.sched_waking).small($s)",
            UserStackParam,
            69,
        ),
    ] {
        let refused = world.write("sched_switch", trigger.as_bytes()).unwrap_err();
        let found = refused.hint.map(|hint| (hint.text, hint.caret));
        assert_eq!(
            (found, refused.errno),
            (Some((hint, at)), EINVAL),
            "{trigger}"
        );
    }
    // As for other fields without this modifier.
    let hex = world.write("sched_switch", b"hist:keys=common_ustack.hex");
    assert_eq!(hex.unwrap_err().errno, EINVAL);
    assert_eq!(
        world.trigger_file("sched_switch").matches("hist:").count(),
        0
    );
}
