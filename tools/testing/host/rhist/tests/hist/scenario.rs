// SPDX-License-Identifier: GPL-2.0

//! Whole scenarios: triggers of several events that are written, hit and removed.

use rhist::trigger::Command;
use rhist::trigger::ErrorText;

use super::events::Bytes;
use super::world::*;

/// Limit on actions with synthetic events, each of which may fire the others.
const ACTIONS_MAX: usize = 4;

/// Exercises a scenario. A line that begins with a letter is written, without the letter, to the
/// trigger file of that letter's event. Each other line is hits, of two bytes each: the first
/// selects the event, and the record consists of the second.
///
/// Any text is accepted or refused without a panic; a failed command changes nothing; the line of
/// an accepted one is a command for it; an added trigger can be removed. `check` gets the texts of
/// `hist_jsonl`.
pub(crate) fn exercise(input: &[u8], check: fn(&str)) {
    let world = World::usual();
    let names = world.names();
    for line in input.split(|&byte| byte == b'\n') {
        match line.split_first() {
            Some((event, command)) if event.is_ascii_alphabetic() => {
                write(
                    &world,
                    &names[usize::from(event - b'A') % names.len()],
                    command,
                );
            }
            _ => hits(&world, &names, line),
        }
    }
    for name in &names {
        show(&world, name, check);
    }
    remove(&world, &names);
}

fn write(world: &World, event: &str, command: &[u8]) {
    let ours = Command::parse(command).name == b"hist";
    // The world shows its files as text, so skip commands with other bytes.
    if !ours || !command.is_ascii() || world.users() >= ACTIONS_MAX {
        return;
    }
    let files = || {
        world
            .names()
            .iter()
            .map(|name| world.trigger_file(name))
            .collect::<Vec<_>>()
    };
    let before = (files(), world.users());
    let written = String::from_utf8_lossy(command).into_owned();
    let done = world.write(event, command);
    let length = Command::parse(command).text().unwrap().len();
    for error in world.log() {
        assert!(error.caret <= length, "{written}: {error:?}");
    }
    if let Err(error) = done {
        assert_eq!((files(), world.users()), before, "{written}: {error:?}");
        return;
    }
    let added = world.count() > before.0.iter().map(|file| file.lines().count()).sum();
    let Some(line) = world.last_line(event).filter(|_| added) else {
        return;
    };
    // As in C, an expression shows the definition of a variable of the same trigger in its place,
    // without parentheses: if that is an expression, too, the line may mean another one, or be
    // invalid.
    let substituted = written.contains('$') && written.contains(['+', '-', '*', '/']);
    match world.is_last(event, &line) {
        Ok(same) => assert!(same || substituted, "{written}: {line}"),
        // It has a variable with the name of one that it refers to.
        Err(error) => assert!(
            substituted || error.text == Some(ErrorText::FieldNotFound) && line.contains('$'),
            "{written}: {line}: {error:?}"
        ),
    }
}

fn hits(world: &World, names: &[String], hits: &[u8]) {
    for hit in hits.chunks_exact(2).take(64) {
        let event = usize::from(hit[0].wrapping_sub(b'0'));
        let event = &names[event % names.len()];
        let moment = Moment {
            cpu: usize::from(hit[1]) % super::events::CPUS,
            time: u64::from(hit[0]) << 20,
            ..NOW
        };
        world.hit(event, &Bytes(vec![hit[1]; 160]), moment);
    }
}

fn show(world: &World, event: &str, check: fn(&str)) {
    world.hist_file(event);
    check(&world.hist_jsonl(event));
    world.hist_debug(event);
}

/// Removes all triggers by their lines, as long as those still mean the same.
fn remove(world: &World, names: &[String]) {
    loop {
        let before = world.count();
        for name in names {
            for line in world.lines(name) {
                let _ = world.write(name, format!("!{line}").as_bytes());
            }
        }
        if world.count() == before {
            break;
        }
    }
    world.remove_all();
    assert_eq!(world.users(), 0);
}
