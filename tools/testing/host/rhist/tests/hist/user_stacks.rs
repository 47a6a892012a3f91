// SPDX-License-Identifier: GPL-2.0

//! Stacks of programs in keys, variables and saved fields.

use kernel::error::code::EINVAL;
use rhist::cpu::Cpu;
use rhist::event::Context;
use rhist::trigger::HintText;
use rhist::user_stack::{End, Place, Word};

use super::events::waking;
use super::intervals;
use super::others::Worker;
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

/// The words of `functions` functions, the innermost first: their offsets begin with `first`.
fn deep(first: u64, functions: u64) -> &'static [u64] {
    let place = |offset| Place::File { object: 5, offset };
    let words = (first..first + functions).map(|offset| Word::new(place(offset), offset == first));
    Vec::leak(words.map(Word::to_u64).collect())
}

/// The functions of [`deep`] as `hist` shows them, with this between them.
fn shown(first: u64, functions: u64, between: &str) -> String {
    let words = (first..first + functions).map(|offset| format!("5+{offset:#x}"));
    words.collect::<Vec<_>>().join(between)
}

const BETWEEN: &str = "\n         ";

/// Long stacks in keys: all words are there, in their order, from one to the most and beyond, with
/// other keys and alone. Each length is an entry.
#[test]
fn long_keys() {
    for (keys, beside) in [
        ("common_ustack", false),
        ("next_pid,common_ustack,common_stacktrace", true),
    ] {
        let world = World::usual();
        let trigger = format!("hist:keys={keys}:vals=hitcount:sort=hitcount:ustack(127):size=128");
        world.add("sched_switch", &trigger);
        // A piece has at most 31 words, or 30 and a link.
        let lengths = || (1..=35).chain(59..=65).chain(90..=95).chain(119..=127);
        for functions in lengths().chain(128..=130).chain([94]) {
            switched(&world, 7, deep(0x1000, functions));
        }
        let file = world.hist_file("sched_switch");
        assert!(file.contains(&trigger), "{file}");
        for functions in lengths() {
            let words = shown(0x1000, functions, BETWEEN);
            let stack = match beside {
                false => format!("{{ common_ustack:{BETWEEN}{words}\n}} hitcount:"),
                true => format!("common_ustack:{BETWEEN}{words}\n, "),
            };
            assert_eq!(file.matches(&stack).count(), 1, "{functions} in {file}");
        }
        assert!(file.contains("    Entries: 57\n"), "{file}");
        let cut = file.rsplit("{ ").next().unwrap();
        assert!(cut.contains("hitcount:          4"), "{cut}");
        let json = world.hist_jsonl("sched_switch");
        assert_eq!(json.matches(r#"],"end":"depth"}"#).count(), 1, "{json}");
        assert_eq!(json.matches(r#"],"end":"whole"}"#).count(), 56, "{json}");
        let last = r#"{"object":5,"offset":4222,"exact":false}],"end":"depth"}"#;
        assert!(json.contains(last), "{json}");
    }
}

/// The word for an end counts, too.
#[test]
fn long_keys_with_ends() {
    let world = World::usual();
    world.add("sched_switch", "hist:keys=common_ustack:ustack(40)");
    for functions in [39, 40] {
        let words = deep(0x1000, functions).iter().copied();
        let words = words.chain([Word::end(End::NoRules).to_u64()]);
        switched(&world, 7, Vec::leak(words.collect()));
    }
    let file = world.hist_file("sched_switch");
    let ended = format!("{}{BETWEEN}(no rules)\n}}", shown(0x1000, 39, BETWEEN));
    assert_eq!(file.matches(&ended).count(), 1, "{file}");
    let cut = format!("{}\n}}", shown(0x1000, 40, BETWEEN));
    assert_eq!(file.matches(&cut).count(), 1, "{file}");
}

/// Number of pieces of stacks, and of hits that lacked a place for one.
fn pieces_of(world: &World) -> (usize, u64) {
    world.histogram("sched_switch", 0).interned().unwrap()
}

/// Stacks that differ in their first, their last or another function, or begin with another stack,
/// are other entries; and pieces of stacks with the same callers are stored once.
#[test]
fn long_keys_that_differ() {
    let world = World::usual();
    world.add("sched_switch", "hist:keys=common_ustack:ustack(127)");
    let usual = deep(0x1000, 100);
    let other = Word::new(Place::Vdso { offset: 1 }, false).to_u64();
    for at in (0..100).step_by(2) {
        let mut words = usual.to_vec();
        words[at] = other;
        switched(&world, 7, Vec::leak(words));
    }
    for stack in [usual, usual, &usual[..99], &usual[..31], &usual[1..]] {
        switched(&world, 7, stack);
    }
    let file = world.hist_file("sched_switch");
    assert!(file.contains("    Entries: 54\n"), "{file}");
    assert_eq!(file.matches("hitcount:          2").count(), 1, "{file}");
    // Of the outermost words 31 are in a piece, of the others 30: a change there makes this piece
    // another one, and so the ones that end with a link to it.
    let changed = 15 * 4 + 15 * 3 + 15 * 2 + 5;
    let [usual, shorter, begin, callers] = [4, 4, 1, 1];
    let pieces = changed + usual + shorter + begin + callers;
    assert_eq!(pieces_of(&world), (pieces, 0));
}

/// A histogram that is too small for all stacks loses hits, and counts them.
#[test]
fn long_keys_without_place() {
    let world = World::usual();
    world.add(
        "sched_switch",
        "hist:keys=common_ustack:ustack(127):size=128",
    );
    // 256 places for pieces, of which a stack takes five.
    for stack in 0..100 {
        switched(&world, 7, deep(0x1000 * stack, 127));
    }
    let file = world.hist_file("sched_switch");
    assert!(
        file.contains("    Hits: 51\n    Entries: 51\n    Dropped: 49\n"),
        "{file}"
    );
    assert_eq!(file.matches("5+0x").count(), 127 * 51);
    assert_eq!(pieces_of(&world), (256, 49));
    // A hit of an entry counts.
    switched(&world, 7, deep(0x1000, 127));
    let file = world.hist_file("sched_switch");
    assert!(file.contains("    Hits: 52\n"), "{file}");
}

/// Short stacks have as many places as entries.
#[test]
fn long_keys_of_short_stacks() {
    let world = World::usual();
    world.add(
        "sched_switch",
        "hist:keys=common_ustack:ustack(127):size=128",
    );
    for stack in 0..128 {
        switched(&world, 7, deep(0x1000 * stack, 31));
    }
    assert_eq!(pieces_of(&world), (128, 0));
}

/// One that grows has places for all pieces, and begins with as few as for short stacks.
#[test]
fn long_keys_of_a_growing_histogram() {
    let world = World::usual();
    world.add(
        "sched_switch",
        "hist:keys=common_ustack:ustack(127):size=128..4096",
    );
    let mut worker = Worker::new(&world.histogram("sched_switch", 0));
    for stack in 0..1000 {
        switched(&world, 7, deep(0x1000 * stack, 127));
        if stack % 5 == 0 {
            worker.work(100);
        }
    }
    let file = world.hist_file("sched_switch");
    assert!(file.contains("    Entries: 1000\n"), "{file}");
    assert_eq!(file.matches("5+0x").count(), 127 * 1000);
    assert_eq!(pieces_of(&world), (5000, 0));
}

/// All pieces of a stack stay as long as an entry has it, and go with the last one.
#[test]
fn long_keys_that_expire() {
    let world = World::usual();
    world.add(
        "sched_switch",
        "hist:keys=common_ustack:ustack(127):size=128:expire(1s)",
    );
    let mut worker = Worker::new(&world.histogram("sched_switch", 0));
    let stays = deep(0x1000, 100);
    for round in 0..40 {
        // Its outermost piece is a stack of others, too.
        for stack in [stays, &stays[69..], deep(0x10_0000 * (1 + round), 100)] {
            if stack != &stays[69..] || round % 7 == 0 {
                switched(&world, 7, stack);
            }
        }
        worker.work(400);
        let file = world.hist_file("sched_switch");
        let whole = format!(
            "{{ common_ustack:{BETWEEN}{}\n}}",
            shown(0x1000, 100, BETWEEN)
        );
        assert_eq!(file.matches(&whole).count(), 1, "{round}: {file}");
        let last = shown(0x10_0000 * (1 + round), 100, BETWEEN);
        assert_eq!(file.matches(&last).count(), 1, "{round}: {file}");
    }
    let (pieces, lost) = pieces_of(&world);
    assert!(pieces < 40 && lost == 0, "{pieces} and {lost}");
    for _ in 0..20 {
        worker.work(250);
    }
    assert_eq!(pieces_of(&world), (0, 0));
}

/// Readers of intervals see them.
#[test]
fn long_keys_in_intervals() {
    let world = World::usual();
    world.add("sched_switch", "hist:keys=common_ustack:ustack(127)");
    let reader = intervals::reader(&world.histogram("sched_switch", 0));
    for first in [0x1000, 0x2000, 0x1000] {
        switched(&world, 7, deep(first, 100));
        let words = shown(first, 100, BETWEEN);
        let entries = intervals::entries(&reader).join("\n");
        assert_eq!(entries.matches("5+0x").count(), 100, "{entries}");
        assert!(entries.contains(&words), "{entries}");
    }
}

/// Saved, and in a variable, which another one may have the value of.
#[test]
fn long_stacks_as_variables_and_saved() {
    let world = World::usual();
    let trigger = "hist:keys=next_pid:s=common_ustack,p=next_prio:ustack(127):\
                   onmax($p).save(prev_pid,common_ustack,next_comm)";
    world.add("sched_switch", trigger);
    world.add("sched_switch", "hist:keys=next_pid:t=$s");
    for functions in [127, 100, 31, 20, 110] {
        // A larger one each time.
        switched(&world, 7, deep(0x1000, functions));
        let json = world.hist_jsonl("sched_switch");
        let offset = 0x1000 + functions - 1;
        let end = if functions == 127 { "depth" } else { "whole" };
        let last = format!(r#""offset":{offset},"exact":false}}],"end":"{end}"}}"#);
        assert!(json.matches(&last).count() >= 2, "{functions}: {json}");
    }
    let file = world.hist_file("sched_switch");
    let saved = format!(
        "prev_pid:          1  common_ustack: {}  next_comm: next",
        shown(0x1000, 127, ";")
    );
    assert!(file.contains(&saved), "{file}");
}

/// A stack that only looks like a piece with a link is shown as it is, and the stack with that
/// piece is whole.
#[test]
fn long_keys_beside_words_of_pieces() {
    let world = World::usual();
    world.add(
        "sched_switch",
        "hist:keys=common_stacktrace,common_ustack:ustack(127)",
    );
    let user_stack = deep(0x1000, 40);
    for number in 0..64 {
        // One of them is the innermost piece.
        let link = number << 4 | 6;
        let stack = Vec::leak([&user_stack[..9], &[link]].concat());
        let record = switch((b"prev", 1), (b"next", 7));
        let moment = Moment {
            stack,
            user_stack,
            ..NOW
        };
        world.hit("sched_switch", &record, moment);
    }
    // Of 64 stacks of the kernel, one is the innermost piece of the program's.
    assert_eq!(pieces_of(&world), (65, 0));
    let file = world.hist_file("sched_switch");
    let words = format!("common_ustack:{BETWEEN}{}\n}}", shown(0x1000, 40, BETWEEN));
    assert_eq!(file.matches(&words).count(), 64, "{file}");
    let rows = file.split("common_stacktrace:").skip(1);
    for row in rows.filter(|row| row.contains("common_ustack")) {
        let stack = &row[..row.find("common_ustack").unwrap()];
        assert_eq!(stack.matches(BETWEEN).count(), 10, "{row}");
    }
}

/// Hits that have interrupted others, which have all buffers of the CPU, lack a stack: the key says
/// so, and a variable is missed.
#[test]
fn long_stacks_without_buffer() {
    let world = World::usual();
    for clauses in [
        ":ustack(127)",
        ":ustack(40):v=next_prio",
        ",next_pid:s=common_ustack,p=next_prio:ustack(40):onmax($p).save(common_ustack)",
    ] {
        world.add("sched_switch", &format!("hist:keys=common_ustack{clauses}"));
        {
            let (cpu, interrupted) = (Cpu::enter(NOW.cpu), NOW);
            let take = || interrupted.long_buffer(cpu.preempt());
            let taken: Vec<_> = std::iter::from_fn(take).collect();
            assert_eq!(taken.len(), 4);
            switched(&world, 7, deep(0x1000, 100));
        }
        let file = world.hist_file("sched_switch");
        let nested = format!("{{ common_ustack:{BETWEEN}(nested)\n");
        assert_eq!(file.matches(&nested).count(), 1, "{file}");
        assert!(!file.contains("5+0x"), "{file}");
        let missed = world.histogram("sched_switch", 0).missed();
        assert_eq!(missed, u64::from(clauses.contains("s=")), "{file}");
        switched(&world, 8, deep(0x1000, 100));
        let file = world.hist_file("sched_switch");
        assert!(file.contains(&shown(0x1000, 40, BETWEEN)), "{file}");
        world.remove_all();
    }
}

/// Keys that other histograms look up have the words themselves, as far as keys can be that long.
#[test]
fn long_keys_with_variables() {
    let world = World::usual();
    let trigger = "hist:keys=common_ustack,next_pid:v=next_prio:ustack(62)";
    world.add("sched_switch", trigger);
    for functions in [61, 62, 70] {
        switched(&world, 7, deep(0x1000, functions));
    }
    let file = world.hist_file("sched_switch");
    let cut = format!("{},", shown(0x1000, 62, BETWEEN));
    assert!(file.contains("Entries: 2\n"), "{file}");
    assert!(file.contains(&cut.replace(",", "")), "{file}");
    let longer = trigger.replace("v=", "w=").replace("62", "63");
    let refused = world.write("sched_switch", longer.as_bytes()).unwrap_err();
    let found = refused.hint.map(|hint| hint.text);
    assert_eq!(found, Some(HintText::KeysTooLong));
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
        ("hist:keys=common_ustack:ustack(128)", BadUserStack, 31),
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
