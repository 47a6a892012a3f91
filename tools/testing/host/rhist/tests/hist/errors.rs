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
    let before = (world.count(), world.trigger_file(event));
    let users = || world.users();
    let users_before = users();
    let Err(error) = world.write(event, command.as_bytes()) else {
        panic!("{event}: {command} is taken");
    };
    let found = world.log();
    let found: Vec<_> = found
        .iter()
        .map(|error| (error.text.unwrap(), error.caret))
        .collect();
    let caret = |at: &str| match at {
        "" => 0,
        _ => command
            .find(at)
            .unwrap_or_else(|| panic!("{command}: {at}")),
    };
    let expected: Vec<_> = log.iter().map(|&(text, at)| (text, caret(at))).collect();
    assert_eq!(
        (found, error.errno),
        (expected, errno),
        "{event}: {command}"
    );
    assert_eq!(
        (world.count(), world.trigger_file(event)),
        before,
        "{command}"
    );
    assert_eq!(users(), users_before, "{command}");
}

/// Like [`refused`], for errors with `EINVAL`.
fn invalid(world: &World, event: &str, cases: &[(&str, Log<'_>)]) {
    for (command, log) in cases {
        refused(world, event, command, log, EINVAL);
    }
}

/// `n` variables `v0`, `v1` and so on.
fn variables(n: usize, is: &str) -> String {
    let vars: Vec<_> = (0..n).map(|n| format!("v{n}={is}")).collect();
    vars.join(",")
}

#[test]
fn definitions() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:ts0=common_timestamp.usecs");
    invalid(
        &world,
        "sched_waking",
        &[
            ("keys=prio:ts0=pid", &[(DuplicateVar, "ts0")]),
            (
                "keys=pid:ts0=common_timestamp.usecs",
                &[(DuplicateVar, "ts0")],
            ),
            ("keys=prio:v=pid,v=prio", &[(DuplicateVar, "v")]),
            // The caret goes to the first such letter.
            ("keys=pid:x=1,y", &[(MalformedAssignment, "ys=")]),
            ("keys=pid:x=", &[(EmptyAssignment, "x=")]),
            ("keys=pid:x=nosuch", &[(FieldNotFound, "nosuch")]),
            ("keys=pid:x=prio.log2", &[(BadFieldModifier, "prio.log2")]),
            (
                "keys=pid:x=prio.buckets=3",
                &[(BadFieldModifier, "prio.buckets=3")],
            ),
            ("keys=pid:x=prio.graph", &[(BadFieldModifier, "graph")]),
            ("keys=pid:x=08", &[(ExpectNumber, "08")]),
        ],
    );
    // Variables of different events may have the same name, and a trigger may be removed even if
    // another event has such a variable.
    world.add("sched_wakeup", "hist:keys=pid:ts0=common_timestamp.usecs");
    world.add("sched_waking", "!hist:keys=pid:ts0=common_timestamp.usecs");
    assert_eq!(world.trigger_file("sched_waking"), "");
    // 16 is the maximum.
    world.add("zoo", &format!("hist:keys=u8:{}", variables(16, "u16")));
    world.add("zoo", &format!("!hist:keys=u8:{}", variables(16, "u16")));
    let many = format!("keys=u8:{}", variables(17, "u16"));
    invalid(&world, "zoo", &[(&many, &[(TooManyVars, "v16")])]);
    let tokens = (0..17).map(|n| format!(":v{n}=u16")).collect::<String>();
    invalid(
        &world,
        "zoo",
        &[(&format!("keys=u8{tokens}"), &[(TooManyVars, "v16=u16")])],
    );
}

#[test]
fn references() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:ts=common_timestamp.usecs,only=prio,c=comm,s=common_stacktrace",
    );
    world.add(
        "sched_wakeup",
        "hist:keys=pid:ts=common_timestamp.usecs,zero=0",
    );
    world.add("print", "hist:keys=common_pid:printed=common_type");
    invalid(
        &world,
        "sched_switch",
        &[
            (
                "keys=next_pid:x=$nosuch",
                &[(VarNotFound, "nosuch"), (FieldNotFound, "$nosuch")],
            ),
            (
                "keys=next_pid:vals=$nosuch",
                &[(VarNotFound, "nosuch"), (FieldNotFound, "$nosuch")],
            ),
            (
                "keys=next_pid:x=$nosuch.hex",
                &[(VarNotFound, "nosuch.hex"), (FieldNotFound, "$nosuch")],
            ),
            (
                "keys=next_pid:x=$only.nosuch",
                &[(VarNotFound, "only.nosuch"), (BadFieldModifier, "nosuch")],
            ),
            (
                "keys=next_pid:x=next_prio-$nosuch",
                &[(VarNotFound, "nosuch"), (FieldNotFound, "$nosuch")],
            ),
            // Two events have it.
            (
                "keys=next_pid:x=$ts",
                &[
                    (VarNotUnique, "ts"),
                    (VarNotFound, "ts"),
                    (FieldNotFound, "$ts"),
                ],
            ),
            (
                "keys=next_pid:x=$ts:onmatch(sched.sched_waking).number(next_prio):\
                 onmatch(sched.sched_wakeup).number(next_prio)",
                &[
                    (VarNotUnique, "ts"),
                    (VarNotFound, "ts"),
                    (FieldNotFound, "$ts"),
                ],
            ),
            // Another event has the variable, or none does.
            (
                "keys=next_pid:x=sched.sched_wakeup.$only",
                &[(VarNotFound, "only"), (FieldNotFound, "$only")],
            ),
            (
                "keys=next_pid:x=sched.nosuch.$only",
                &[(VarNotFound, "only"), (FieldNotFound, "$only")],
            ),
            (
                "keys=next_pid:x=nosuch.sched_waking.$only",
                &[(VarNotFound, "only"), (FieldNotFound, "$only")],
            ),
            // It cannot be enabled.
            (
                "keys=next_pid:x=ftrace.print.$printed",
                &[(VarNotFound, "printed"), (FieldNotFound, "$printed")],
            ),
            // Its own variable, also by the full name.
            (
                "keys=next_pid:x=$x",
                &[(VarNotFound, "x"), (FieldNotFound, "$x")],
            ),
            // Not defined yet.
            (
                "keys=next_pid:b=$a,a=next_prio+1",
                &[(VarNotFound, "a"), (FieldNotFound, "$a")],
            ),
            (
                "keys=next_pid:vals=$a:a=next_prio+1",
                &[(VarNotFound, "a"), (FieldNotFound, "$a")],
            ),
            (
                "keys=next_pid:a=next_prio+$a",
                &[(VarNotFound, "a"), (FieldNotFound, "$a")],
            ),
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
                "keys=next_pid:a=$only,b=$a",
                &[(VarNotFound, "a"), (FieldNotFound, "$a")],
            ),
            (
                "keys=next_pid:a=next_prio+1,b=sched.sched_waking.$a",
                &[(VarNotFound, "a"), (FieldNotFound, "$a")],
            ),
            // Its definition takes its place, and is looked up as a field.
            ("keys=next_pid:a=5,b=$a", &[(FieldNotFound, "5")]),
            // In keys.
            ("keys=$a:a=next_prio-$only", &[(InvalidRefKey, "$a")]),
            ("keys=$only", &[(InvalidRefKey, "$only")]),
            ("keys=next_pid+$only", &[(InvalidRefKey, "next_pid")]),
            ("keys=sched.sched_waking.$only", &[(InvalidRefKey, "sched")]),
            // Not a number.
            ("keys=next_pid:vals=$s", &[(BadFieldModifier, "$s")]),
            ("keys=next_pid:x=$s+1", &[(InvalidStrOperand, "$s")]),
            ("keys=next_pid:x=1+$c", &[(InvalidStrOperand, "$c")]),
            ("keys=next_pid:x=-($c)", &[(InvalidStrOperand, "$c")]),
            // `$ts/2` is accepted, `$nosuch` is not.
            (
                "keys=next_pid:x=$ts/2:vals=$nosuch",
                &[(VarNotFound, "nosuch"), (FieldNotFound, "$nosuch")],
            ),
        ],
    );
    refused(
        &world,
        "sched_switch",
        "keys=next_pid:x=next_prio/$zero",
        &[(DivisionByZero, "$zero")],
        EDOM,
    );
    refused(
        &world,
        "sched_switch",
        "keys=next_pid:x=7/$zero",
        &[(DivisionByZero, "$zero")],
        EDOM,
    );
    // A unique name, a full name, and a name in the handler's event are accepted.
    world.add("sched_switch", "hist:keys=next_pid:x=$printed");
    world.add(
        "sched_switch",
        "hist:keys=next_pid:y=sched.sched_waking.$ts",
    );
    world.add(
        "sched_switch",
        "hist:keys=next_pid:z=$ts:onmatch(sched.sched_wakeup).small(next_prio)",
    );
}

#[test]
fn units_of_times() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:us=common_timestamp.usecs,ns=common_timestamp,n=prio",
    );
    invalid(
        &world,
        "sched_switch",
        &[
            (
                "keys=next_pid:x=common_timestamp-$us",
                &[(TimestampMismatch, "")],
            ),
            (
                "keys=next_pid:x=common_timestamp.usecs-$ns",
                &[(TimestampMismatch, "")],
            ),
            (
                "keys=next_pid:x=common_timestamp.usecs/1000",
                &[(TimestampMismatch, "")],
            ),
            ("keys=next_pid:x=$us*2", &[(TimestampMismatch, "")]),
            (
                "keys=next_pid:x=common_timestamp.usecs-$us-$n",
                &[(TimestampMismatch, "")],
            ),
        ],
    );
    world.add(
        "sched_switch",
        "hist:keys=next_pid:a=common_timestamp.usecs-$us",
    );
    world.add(
        "sched_switch",
        "hist:keys=next_pid:b=common_timestamp-$ns,c=$ns*2",
    );
    // A variable computed from a timestamp is one, too.
    let computed = "keys=prev_pid:d=$a+1";
    refused(
        &world,
        "sched_switch",
        computed,
        &[(TimestampMismatch, "")],
        EINVAL,
    );
}

#[test]
fn expressions() {
    let world = World::usual();
    world.add("sched_waking", "hist:keys=pid:k=prio");
    invalid(
        &world,
        "sched_switch",
        &[
            ("keys=next_pid:x=$k+$k+$k+$k+$k", &[(TooManySubexpr, "$k")]),
            (
                "keys=next_pid:x=-(1+$k)+1",
                &[(UnaryMinusSubexpr, "1+$k)+1")],
            ),
            ("keys=next_pid:x=-($k", &[]),
            ("keys=next_pid:x=-5", &[]),
            ("keys=next_pid:x=$k+", &[]),
            (
                "keys=next_pid:x=next_comm+$k",
                &[(InvalidStrOperand, "next_comm")],
            ),
        ],
    );
    refused(
        &world,
        "sched_switch",
        "keys=next_pid:x=$k/0",
        &[(DivisionByZero, "0")],
        EDOM,
    );
    world.add("sched_switch", "hist:keys=next_pid:x=$k+$k*$k-$k");
    // Its text may have 255 characters.
    let name = "n".repeat(126);
    world.add(
        "sched_wakeup",
        &format!("hist:keys=pid:{name}=prio,xx=prio"),
    );
    world.add(
        "sched_switch",
        &format!("hist:keys=next_pid:a=${name}+${name}"),
    );
    let long = format!("keys=next_pid:b=${name}+${name}+$xx");
    refused(&world, "sched_switch", &long, &[], E2BIG);
}

#[test]
fn syntax_of_actions() {
    let world = World::usual();
    invalid(
        &world,
        "sched_switch",
        &[
            (
                "keys=next_pid:onmatch(sched.sched_waking",
                &[(NoClosingParen, "sched.sched_waking")],
            ),
            (
                "keys=next_pid:onmatch(sched_waking).number(next_pid)",
                &[(SubsysNotFound, "sched_waking")],
            ),
            (
                "keys=next_pid:onmatch(sched.nosuch).number(next_pid)",
                &[(InvalidSubsysEvent, "nosuch")],
            ),
            (
                "keys=next_pid:onmatch(nosuch.sched_waking).number(next_pid)",
                &[(InvalidSubsysEvent, "sched_waking")],
            ),
            ("keys=next_pid:onmax($x", &[]),
            ("keys=next_pid:onchange($x", &[]),
            ("keys=next_pid:onmax($x)", &[(ActionNotFound, "")]),
            ("keys=next_pid:onmax($x).save", &[(ActionNotFound, "")]),
            ("keys=next_pid:onmax($x).snapshot(", &[(NoClosingParen, "")]),
            ("keys=next_pid:onmax($x).save()", &[(InvalidParam, "")]),
            ("keys=next_pid:onmax($x).save(a)", &[(InvalidParam, "ax(")]),
            ("keys=next_pid:onmax($x).trace()", &[(InvalidParam, "")]),
            (
                "keys=next_pid:onmatch(sched.sched_waking).save(next_pid)",
                &[(ActionMismatch, "save")],
            ),
            (
                "keys=next_pid:onmatch(sched.sched_waking).snapshot()",
                &[(ActionMismatch, "snapshot")],
            ),
            ("keys=next_pid:ondemand($x).save(next_pid)", &[]),
            // Reported before fields are checked.
            ("keys=nosuch:onmax($x)", &[(ActionNotFound, "")]),
        ],
    );
    let action = |params: usize| {
        let params = vec!["next_pid"; params].join(",");
        format!("keys=next_pid:onmatch(sched.sched_waking).number({params})")
    };
    invalid(
        &world,
        "sched_switch",
        &[(&action(65), &[(TooManyParams, "")])],
    );
    invalid(
        &world,
        "sched_switch",
        &[(&action(64), &[(SynthTypeMismatch, "next_pid")])],
    );
    // Eight actions.
    let actions = |n: usize| {
        let action = ":onmatch(sched.sched_waking).number($x)";
        format!("keys=next_pid:x=next_prio+0{}", action.repeat(n))
    };
    world.add(
        "sched_switch",
        &format!("hist:{}", actions(8).replace("number($x)", "small($x)")),
    );
    assert_eq!(world.users(), 8);
    world.add(
        "sched_switch",
        &format!("!hist:{}", actions(8).replace("number($x)", "small($x)")),
    );
    assert_eq!(world.users(), 0);
    invalid(&world, "sched_switch", &[(&actions(9), &[])]);
}

#[test]
fn tracked_variables() {
    let world = World::usual();
    world.add(
        "sched_waking",
        &format!("hist:keys=pid:{}", variables(16, "prio")),
    );
    invalid(
        &world,
        "sched_switch",
        &[
            (
                "keys=next_pid:lat=next_prio:onmax(lat).save(next_comm)",
                &[(OnxNotVar, "lat")],
            ),
            (
                "keys=next_pid:lat=next_prio:onchange().snapshot()",
                &[(OnxNotVar, "")],
            ),
            (
                "keys=next_pid:lat=next_prio:onmax($nosuch).save(next_comm)",
                &[(OnxVarNotFound, "nosuch")],
            ),
            // A variable of another event does not count.
            (
                "keys=next_pid:lat=next_prio:onmax($v1).save(next_comm)",
                &[(OnxVarNotFound, "v1")],
            ),
            // In this order.
            (
                "keys=next_pid:lat=nosuch:onmax(lat).save(next_comm)",
                &[(FieldNotFound, "nosuch")],
            ),
            (
                "keys=next_pid:lat=next_prio:onmax(lat).number($nosuch)",
                &[(OnxNotVar, "lat")],
            ),
            // The name is reserved for the action.
            (
                "keys=next_pid:__max=next_prio:onmax($__max).snapshot()",
                &[(OnxVarCreateFail, "")],
            ),
        ],
    );
    let full = variables(16, "next_prio");
    let full = format!("keys=next_pid:{full}:onmax($v0).snapshot()");
    invalid(
        &world,
        "sched_switch",
        &[(&full, &[(OnxVarCreateFail, "")])],
    );
    // The table of references is full.
    let refs: Vec<_> = (0..15).map(|n| format!("a{n}=$v{n}")).collect();
    let refs = |more| format!("keys=next_pid:{}{more}", refs.join(","));
    world.add(
        "sched_switch",
        &format!("hist:{}", refs(":onmax($a0).snapshot()")),
    );
    world.add(
        "sched_switch",
        &format!("!hist:{}", refs(":onmax($a0).snapshot()")),
    );
    let full = refs(":vals=$v15:onmax($a0).snapshot()");
    refused(&world, "sched_switch", &full, &[], ENOMEM);
    // References of one trigger are looked up by at most 16 names.
    world.add("sched_wakeup", "hist:keys=pid:more=prio");
    let more = refs(",a15=$v15:vals=$more");
    invalid(
        &world,
        "sched_switch",
        &[(&more, &[(VarNotFound, "v15"), (FieldNotFound, "$v15")])],
    );
}

#[test]
fn saved_fields() {
    let world = World::usual();
    invalid(
        &world,
        "sched_switch",
        &[
            (
                "keys=next_pid:x=next_prio:onmax($x).save(nosuch)",
                &[
                    (FieldNotFound, "nosuch"),
                    (FieldVarParseFail, "nosuch"),
                    (FieldVarCreateFail, "nosuch"),
                ],
            ),
            (
                "keys=next_pid:x=next_prio:onmax($x).save(next_comm,next_pid.nosuch)",
                &[
                    (BadFieldModifier, "nosuch"),
                    (FieldVarParseFail, "next_pid.nosuch"),
                    (FieldVarCreateFail, "next_pid.nosuch"),
                ],
            ),
            (
                "keys=next_pid:next_comm=next_prio:onmax($next_comm).save(next_comm)",
                &[
                    (VarCreateFindFail, "next_comm"),
                    (FieldVarCreateFail, "next_comm"),
                ],
            ),
        ],
    );
    let twice = "keys=next_pid:x=next_prio:onmax($x).save(next_comm):onchange($x).save(prev_comm)";
    refused(
        &world,
        "sched_switch",
        twice,
        &[(TooManySaveActions, "")],
        EEXIST,
    );
    // The first of these errors determines the errno.
    let lost = &[(FieldVarParseFail, "args"), (FieldVarCreateFail, "args")];
    refused(
        &world,
        "zoo",
        "keys=u8:x=u8:onmax($x).save(args)",
        lost,
        ENOMEM,
    );
    let fourteen = variables(14, "next_prio");
    let of = |saved| format!("keys=next_pid:{fourteen}:onmax($v0).save({saved})");
    world.add("sched_switch", &format!("hist:{}", of("next_comm")));
    world.add("sched_switch", &format!("!hist:{}", of("next_comm")));
    let full = of("next_comm,prev_comm");
    let log: Log<'_> = &[
        (VarCreateFindFail, "prev_comm"),
        (FieldVarCreateFail, "prev_comm"),
    ];
    invalid(&world, "sched_switch", &[(&full, log)]);
}

#[test]
fn parameters() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:ts=common_timestamp.usecs,wp=prio",
    );
    world.add(
        "sched_wakeup",
        "hist:keys=pid,prio:ts=common_timestamp.usecs",
    );
    let own = "keys=next_pid:x=next_prio:onmax($x)";
    let other = "keys=next_pid:x=next_prio:onmatch(sched.sched_waking)";
    let cases: &[(&str, &str, Log<'_>)] = &[
        (own, "nosuch(next_pid)", &[(SynthEventNotFound, "nosuch")]),
        (
            own,
            "trace(nosuch,next_pid)",
            &[(SynthEventNotFound, "nosuch")],
        ),
        (own, "small(a.next_pid)", &[]),
        (own, "small($nosuch)", &[(ParamNotFound, "nosuch")]),
        (
            own,
            "small(sched.sched_switch.$nosuch)",
            &[(ParamNotFound, "nosuch")],
        ),
        (
            own,
            "small(sched.sched_waking.$nosuch)",
            &[(ParamNotFound, "nosuch")],
        ),
        (own, "small(sched.nosuch.$ts)", &[(ParamNotFound, "ts")]),
        (
            own,
            "number($ts)",
            &[(VarNotUnique, "ts"), (ParamNotFound, "ts")],
        ),
        (other, "small($nosuch)", &[(ParamNotFound, "nosuch")]),
        (own, "trace(small)", &[(SynthCountMismatch, "small")]),
        (own, "latency(x,y)", &[(InvalidParam, "xt_pid")]),
        (other, "latency($ts)", &[(SynthCountMismatch, "latency")]),
        (
            other,
            "number($ts,next_pid)",
            &[(SynthTypeMismatch, "next_pid")],
        ),
        (own, "number($x)", &[(SynthTypeMismatch, "$x")]),
        (own, "small(next_comm)", &[(SynthTypeMismatch, "next_comm")]),
        (own, "text(next_pid)", &[(SynthTypeMismatch, "next_pid")]),
        (own, "task($x,next_pid)", &[(SynthTypeMismatch, "$x")]),
        (own, "stacked($x,$x)", &[(SynthTypeMismatch, "$x")]),
        (
            own,
            "number(common_stacktrace)",
            &[(SynthTypeMismatch, "common_stacktrace")],
        ),
        // A field counts as unsigned here.
        (own, "small(next_pid)", &[(SynthTypeMismatch, "next_pid")]),
        (
            own,
            "signed(prev_state)",
            &[(SynthTypeMismatch, "prev_state")],
        ),
        (
            own,
            "small(nosuch)",
            &[(FieldNotFound, "nosuch"), (FieldVarParseFail, "nosuch")],
        ),
        // Fields of the event that it names.
        (
            own,
            "small(sched.nosuch.pid)",
            &[(EventFileNotFound, "pid")],
        ),
        (own, "small(ftrace.print.ip)", &[(EventFileNotFound, "ip")]),
        (
            own,
            "small(sched.sched_wakeup.target_cpu)",
            &[(HistNotFound, "target_cpu")],
        ),
        (
            own,
            "small(sched.sched_switch.nosuch)",
            &[
                (FieldNotFound, "nosuch"),
                (FieldVarParseFail, "nosuch"),
                (HistNotFound, "nosuch"),
            ],
        ),
        (
            other,
            "small(nosuch)",
            &[
                (FieldNotFound, "nosuch"),
                (FieldVarParseFail, "nosuch"),
                (FieldNotFound, "nosuch"),
                (HistCreateFail, "nosuch"),
            ],
        ),
        (
            "keys=next_pid:onmatch(ftrace.print)",
            "small(nosuch)",
            &[
                (FieldNotFound, "nosuch"),
                (FieldVarParseFail, "nosuch"),
                (EventFileNotFound, "nosuch"),
            ],
        ),
        (
            "keys=next_comm:onmatch(sched.sched_waking)",
            "small(target_cpu)",
            &[
                (FieldNotFound, "target_cpu"),
                (FieldVarParseFail, "target_cpu"),
                (HistNotFound, "target_cpu"),
            ],
        ),
        // A variable has this name already.
        (
            "keys=next_pid:next_comm=next_prio:onmax($next_comm)",
            "text(next_comm)",
            &[(VarCreateFindFail, "next_comm")],
        ),
    ];
    for (trigger, action, log) in cases {
        let command = format!("{trigger}.{action}");
        refused(&world, "sched_switch", &command, log, EINVAL);
    }
    // The same errors as for a missing field.
    let lost: Log<'_> = &[(FieldVarParseFail, "args"), (HistNotFound, "args")];
    invalid(
        &world,
        "zoo",
        &[("keys=u8:onmatch(sched.sched_waking).small(args)", lost)],
    );
    // A failure after helpers were made removes them.
    let half = format!("{other}.small(target_cpu):onmatch(sched.sched_waking).number(nosuch)");
    let log: Log<'_> = &[
        (FieldNotFound, "target_cpu"),
        (FieldVarParseFail, "target_cpu"),
        (FieldNotFound, "nosuch"),
        (FieldVarParseFail, "nosuch"),
        (FieldNotFound, "nosuch"),
        (HistCreateFail, "nosuch"),
    ];
    invalid(&world, "sched_switch", &[(&half, log)]);
    // A command that succeeds in the end logs nothing.
    world.add("sched_switch", &format!("hist:{other}.small(target_cpu)"));
    assert_eq!(world.log(), []);
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
