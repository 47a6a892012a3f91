// SPDX-License-Identifier: GPL-2.0

//! Errors of triggers with variables, expressions and actions; a refused trigger leaves nothing.

use std::sync::atomic::Ordering::SeqCst;

use kernel::error::code::*;
use kernel::error::Error as Errno;
use rhist::trigger::ErrorText;
use rhist::trigger::ErrorText::*;

use super::world::*;

/// Entries of the error log: each sentence with the text at its caret.
type Log<'a> = &'a [(ErrorText, &'a str)];

/// Checks that `event` refuses `command`, after `hist:`, with this errno and these entries of the
/// error log: each sentence with the text at its caret; empty: the caret is at the start.
fn refused(world: &World, event: &str, command: &str, log: Log<'_>, errno: Errno) {
    let command = format!("hist:{command}");
    let caret = |at: &str| match at {
        "" => 0,
        _ => command
            .find(at)
            .unwrap_or_else(|| panic!("{command}: {at}")),
    };
    let log: Vec<_> = log.iter().map(|&(text, at)| (text, caret(at))).collect();
    refused_at(world, event, &command, &log, errno);
}

/// Checks that `event` refuses `command` with this errno and these entries of the error log, and
/// that nothing is left of it.
fn refused_at(world: &World, event: &str, command: &str, log: &[(ErrorText, usize)], errno: Errno) {
    let state = || (world.count(), world.trigger_file(event), world.users());
    let before = state();
    let Err(error) = world.write(event, command.as_bytes()) else {
        panic!("{event}: {command} is taken");
    };
    let found = world.log();
    let found: Vec<_> = found
        .iter()
        .map(|error| (error.text.unwrap(), error.caret))
        .collect();
    assert_eq!(
        (&found[..], error.errno),
        (log, errno),
        "{event}: {command}"
    );
    assert_eq!(state(), before, "{command}");
}

/// Like [`refused`], for errors with `EINVAL`.
fn invalid(world: &World, event: &str, cases: &[(&str, Log<'_>)]) {
    for (command, log) in cases {
        refused(world, event, command, log, EINVAL);
    }
}

/// Plays the scenes that guests play to C, too (tools/testing/selftests/hist/README.rst).
#[test]
fn scenes() {
    let errors = [
        ("EINVAL", EINVAL),
        ("EEXIST", EEXIST),
        ("ENOMEM", ENOMEM),
        ("E2BIG", E2BIG),
        ("EDOM", EDOM),
    ];
    let mut world = World::usual();
    let text = include_str!("../../../../selftests/hist/scenes/errors.scene");
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let (word, rest) = line.split_once(' ').unwrap_or_default();
        let Some((_, event)) = word.split_once('/') else {
            if word == "scene" {
                world = World::usual();
            }
            continue;
        };
        let Some(errno) = lines.peek().and_then(|line| line.strip_prefix("fails ")) else {
            world.add(event, rest);
            continue;
        };
        let errno = errors.iter().find(|error| error.0 == errno).unwrap().1;
        lines.next();
        let mut log = Vec::new();
        while let Some(entry) = lines.next_if(|line| line.starts_with("log ")) {
            let (caret, sentence) = entry[4..].split_once(' ').unwrap();
            let text = ErrorText::ALL.iter().find(|text| text.as_str() == sentence);
            log.push((*text.expect(sentence), caret.parse().unwrap()));
        }
        refused_at(&world, event, rest, &log, errno);
    }
}

/// Cases that C does not refuse, and such with events that only tests on the host have.
#[test]
fn beside_the_scenes() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:only=prio,c=comm,s=common_stacktrace",
    );
    let not_found: Log<'_> = &[(VarNotFound, "a"), (FieldNotFound, "$a")];
    let no_file: Log<'_> = &[(EventFileNotFound, "ip")];
    let cases: &[(&str, Log<'_>)] = &[
        ("keys=next_pid:a=next_prio+$a", not_found),
        (
            "keys=next_pid:a=next_prio+1,b=sched.sched_waking.$a",
            not_found,
        ),
        ("keys=$a:a=next_prio-$only", &[(InvalidRefKey, "$a")]),
        ("keys=next_pid:x=$s+1", &[(InvalidStrOperand, "$s")]),
        ("keys=next_pid:x=1+$c", &[(InvalidStrOperand, "$c")]),
        ("keys=next_pid:x=-($c)", &[(InvalidStrOperand, "$c")]),
        // The operators of both count.
        (
            "keys=next_pid:a=next_prio+1+2,b=$a+3+4",
            &[(TooManySubexpr, "$a+3+4")],
        ),
        (
            "keys=next_pid:a=next_prio+1+2+3,b=-($a)",
            &[(TooManySubexpr, "-($a)")],
        ),
        (
            "keys=next_pid:x=next_prio:onmax($x).small(ftrace.print.ip)",
            no_file,
        ),
        (
            "keys=next_pid:onmatch(ftrace.print).small(nosuch)",
            &[
                (FieldNotFound, "nosuch"),
                (FieldVarParseFail, "nosuch"),
                (EventFileNotFound, "nosuch"),
            ],
        ),
    ];
    invalid(&world, "sched_switch", cases);
    // 16 variables are the maximum.
    world.add("zoo", &format!("hist:keys=u8:{}", variables(16, "u16")));
    world.add("zoo", &format!("!hist:keys=u8:{}", variables(16, "u16")));
    let many = format!("keys=u8:{}", variables(17, "u16"));
    invalid(&world, "zoo", &[(&many, &[(TooManyVars, "v16")])]);
    let tokens = (0..17).map(|n| format!(":v{n}=u16")).collect::<String>();
    let many = format!("keys=u8{tokens}");
    invalid(&world, "zoo", &[(&many, &[(TooManyVars, "v16=u16")])]);
    // The first of these errors determines the errno.
    let lost = &[(FieldVarParseFail, "args"), (FieldVarCreateFail, "args")];
    let saved = "keys=u8:x=u8:onmax($x).save(args)";
    refused(&world, "zoo", saved, lost, ENOMEM);
    // The same errors as for a missing field.
    let lost: Log<'_> = &[(FieldVarParseFail, "args"), (HistNotFound, "args")];
    let small = "keys=u8:onmatch(sched.sched_waking).small(args)";
    invalid(&world, "zoo", &[(small, lost)]);
}

/// Eight actions, each of which holds its synthetic event.
#[test]
fn eight_actions() {
    let world = World::usual();
    let action = ":onmatch(sched.sched_waking).small($x)";
    let actions = format!("hist:keys=next_pid:x=next_prio+0{}", action.repeat(8));
    world.add("sched_switch", &actions);
    assert_eq!(world.users(), 8);
    world.add("sched_switch", &format!("!{actions}"));
    assert_eq!(world.users(), 0);
}

/// `n` variables `v0`, `v1` and so on.
fn variables(n: usize, is: &str) -> String {
    let vars: Vec<_> = (0..n).map(|n| format!("v{n}={is}")).collect();
    vars.join(",")
}

#[test]
fn helpers_that_are_too_long() {
    let world = World::usual();
    // The text of this helper has 255 characters.
    let rest = "keys=pid:synthetic_target_cpu=target_cpu if prio > ".len();
    let filter = format!(" if prio > {}1", " ".repeat(254 - rest));
    world.add("sched_waking", &format!("hist:keys=pid{filter}"));
    let command = "keys=next_pid:onmatch(sched.sched_waking).small(target_cpu)";
    world.add("sched_switch", &format!("hist:{command}"));
    let helper = world.lines("sched_waking").pop().unwrap();
    assert!(helper.contains(&filter), "{helper}");
    world.add("sched_switch", &format!("!hist:{command}"));
    world.add("sched_waking", &format!("!hist:keys=pid{filter}"));
    world.add(
        "sched_waking",
        &format!("hist:keys=pid{}", filter.replace("> ", ">  ")),
    );
    let log: Log<'_> = &[
        (FieldNotFound, "target_cpu"),
        (FieldVarParseFail, "target_cpu"),
    ];
    invalid(&world, "sched_switch", &[(command, log)]);
}

#[test]
fn removal() {
    let world = World::usual();
    let waking = "hist:keys=pid:ts0=common_timestamp.usecs";
    let switch = "hist:keys=next_pid:lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).small(target_cpu)";
    world.add("sched_waking", waking);
    world.add("sched_switch", switch);
    // Beside the helper.
    assert_eq!(world.count(), 3);
    let helper = world.lines("sched_waking").pop().unwrap();
    assert_eq!(
        helper,
        "hist:keys=pid:vals=hitcount:synthetic_target_cpu=target_cpu:sort=hitcount:size=2048"
    );
    for command in [waking, &helper] {
        refused_removal(&world, "sched_waking", command);
    }
    // Its own references do not keep it. A command with only a part of the trigger removes nothing.
    world.add(
        "sched_switch",
        "!hist:keys=next_pid:lat=common_timestamp.usecs-$ts0",
    );
    assert_eq!(world.count(), 3);
    world.add("sched_switch", &format!("!{switch}"));
    assert_eq!(world.lines("sched_waking").len(), 1);
    assert_eq!(world.users(), 0);
    // The command of a removal is checked for wrong names, too.
    let missing = b"!hist:keys=next_pid:lat=common_timestamp.usecs-$nosuch";
    assert_eq!(
        world.write("sched_switch", missing).unwrap_err().errno,
        EINVAL
    );
    world.add("sched_waking", &format!("!{waking}"));
    assert_eq!(world.count(), 0);
}

fn refused_removal(world: &World, event: &str, command: &str) {
    let error = world
        .write(event, format!("!{command}").as_bytes())
        .unwrap_err();
    assert_eq!((error.text, error.errno), (None, EBUSY), "{command}");
}

/// A helper serves all triggers that need it, and is removed with the last.
#[test]
fn shared_helpers() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid if prio < 100");
    let user = |x| {
        format!("hist:keys=next_pid:{x}=next_prio:onmatch(sched.sched_waking).small(target_cpu)")
    };
    world.add("sched_switch", &user("a"));
    world.add("sched_switch", &user("b"));
    assert_eq!(world.lines("sched_waking").len(), 2);
    assert!(world.lines("sched_waking")[1].ends_with(" if prio < 100"));
    world.add("sched_switch", &format!("!{}", user("a")));
    assert_eq!(world.lines("sched_waking").len(), 2);
    world.add("sched_switch", &format!("!{}", user("b")));
    assert_eq!(world.lines("sched_waking").len(), 1);
    // Triggers written by the user are not removed.
    world.add(
        "sched_waking",
        "hist:keys=pid:synthetic_target_cpu=target_cpu",
    );
    world.add("sched_switch", &user("a"));
    assert_eq!(world.lines("sched_waking").len(), 2);
    world.add("sched_switch", &format!("!{}", user("a")));
    assert_eq!(world.lines("sched_waking").len(), 2);
}

#[test]
fn duplicates() {
    let world = World::usual();
    let action = "hist:keys=next_pid:onmatch(sched.sched_waking).small(prev_prio)";
    world.add("sched_switch", action);
    let same = world.write("sched_switch", action.as_bytes()).unwrap_err();
    assert_eq!((same.text, same.errno), (Some(TriggerEexist), EEXIST));
    world.add(
        "sched_switch",
        "hist:keys=next_pid:onmatch(sched.sched_waking).trace(small,next_prio)",
    );
    // The same, with other blanks.
    let same = b"hist:keys=next_pid:onmatch(sched.sched_waking).trace(small, prev_prio )";
    assert_eq!(world.write("sched_switch", same).unwrap_err().errno, EEXIST);
    let other = [
        "hist:keys=next_pid:onmatch(sched.sched_wakeup).small(prev_prio)",
        "hist:keys=next_pid:onmatch(sched.sched_waking).small(next_prio):onmatch(sched.sched_waking).small(prev_prio)",
        "hist:keys=next_pid",
    ];
    for other in other {
        world.add("sched_switch", other);
    }
    // Histograms of one name must have the same variables and actions.
    world.add("sched_waking", "hist:keys=pid:name=n:x=prio");
    let other = "hist:keys=pid:name=n:y=prio";
    let mismatch = world.write("sched_wakeup", other.as_bytes()).unwrap_err();
    let caret = other.find("name=n");
    assert_eq!(
        (mismatch.text, Some(mismatch.caret)),
        (Some(NamedMismatch), caret)
    );
    world.add("sched_wakeup", "hist:keys=pid:name=n:x=prio");
    // Only one trigger can take snapshots.
    let snapshot = |v| format!("hist:keys=next_pid:{v}=next_prio:onmax(${v}).snapshot()");
    world.add("sched_switch", &snapshot("x"));
    let busy = world
        .write("sched_switch", snapshot("y").as_bytes())
        .unwrap_err();
    assert_eq!((busy.text, busy.errno), (None, EBUSY));
    world.add("sched_switch", &format!("!{}", snapshot("x")));
    world.add("sched_switch", &snapshot("y"));
    assert_eq!(world.synth("small").users.load(SeqCst), 5);
}
