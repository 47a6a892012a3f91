// SPDX-License-Identifier: GPL-2.0

//! Which triggers are accepted, and the errors of the others.

use kernel::error::code::*;
use kernel::error::Error as Errno;
use rhist::event::EventDesc;
use rhist::trigger::Error;
use rhist::trigger::ErrorText::*;
use rhist::trigger::HintText;
use rhist::trigger::HintText::*;
use rhist::trigger::Trigger;

use super::events::*;
use super::table;

/// Checks an error that C does not log: the sentence, and the place of the caret, which a `^`
/// marks.
#[track_caller]
fn own(event: &EventDesc, marked: &str, text: HintText, errno: Errno) {
    let (before, after) = marked.split_once('^').expect("no caret");
    let Err(error) = build(event, &format!("{before}{after}")) else {
        panic!("{marked} is taken");
    };
    let caret = "hist:".len() + before.len();
    assert_eq!(error, Error::own(text, caret).with(errno), "{marked}");
}

#[test]
fn errors() {
    for (event, name) in [(zoo(), "zoo"), (sched_waking(), "sched/sched_waking")] {
        for row in table::rows(&[name]) {
            let command = String::from_utf8(row.command).unwrap();
            let Err(error) = build(&event, &command["hist:".len()..]) else {
                panic!("{command} is taken");
            };
            let Some(text) = error.text else {
                let mut own = HintText::ALL.iter();
                let own = own.find(|own| own.as_str() == row.sentence);
                let expected = Error::own(*own.expect(&command), row.caret).with(row.errno);
                assert_eq!(error, expected, "{command}");
                continue;
            };
            let found = (text.as_str(), error.caret, error.errno);
            assert_eq!(found, (row.sentence, row.caret, row.errno), "{command}");
        }
    }
}

#[test]
fn generic_fields_have_no_bytes() {
    for name in ["cpu", "CPU", "comm", "COMM", "common_cpu", "common_comm"] {
        hist(&zoo(), &format!("keys={name}"));
    }
    // A field of the event takes precedence.
    let event = event(
        "x",
        "y",
        &[("u32", "cpu", 8, 4, false, rhist::event::FilterType::Other)],
    );
    let hist = hist(&event, "keys=cpu");
    Bytes(vec![0; 12]).put(8, &9u32.to_ne_bytes()).hit(&hist);
    assert_eq!(entries(&hist), ["{ cpu:          9 } hitcount:          1"]);
    assert!(line(&hist).starts_with("hist:keys=cpu:"));
}

#[test]
fn operands() {
    hist(&zoo(), "keys=fits");
    hist(&zoo(), "keys=u8.usecs-u16.usecs");
    // The text of an expression may have 255 bytes.
    let name = "n".repeat(126);
    let event = event(
        "x",
        "y",
        &[
            ("u8", &name, 8, 1, false, rhist::event::FilterType::Other),
            ("u8", "one", 9, 1, false, rhist::event::FilterType::Other),
            ("u8", "four", 9, 1, false, rhist::event::FilterType::Other),
        ],
    );
    hist(&event, &format!("keys={name}+{name}"));
    own(
        &event,
        &format!("keys=^{name}+{name}+one"),
        ExprTooLong,
        E2BIG,
    );
    hist(&event, &format!("keys={name}+{name}-1"));
    own(
        &event,
        &format!("keys=^{name}+{name}-10"),
        ExprTooLong,
        E2BIG,
    );
}

#[test]
fn references() {
    let event = zoo();
    for (params, variable, text, culprit) in [
        ("keys=$x", "x", FieldNotFound, "$x"),
        ("keys=u8:vals=$x:sort=nosuch", "x", FieldNotFound, "$x"),
        ("keys=u8:y=$x.hex", "x.hex", FieldNotFound, "$x"),
        (
            "keys=u8:y=$x.nosuch",
            "x.nosuch",
            BadFieldModifier,
            "nosuch",
        ),
        ("keys=u8+zoo.animals.$x", "x", FieldNotFound, "$x"),
        // A sum cannot take the place of a variable elsewhere.
        ("keys=u8:vals=$x:x=u8+u16", "x", FieldNotFound, "$x"),
        // Nor can a variable of that name in another event.
        ("keys=u8:vals=a.b.$x:x=u16", "x", FieldNotFound, "$x"),
    ] {
        let caret = |what| "hist:".len() + params.find(what).unwrap();
        let trigger = Trigger::parse(params.as_bytes()).unwrap();
        let scope = Only::new(&event);
        let error = compiled(&scope, &trigger).err().unwrap();
        let before = Error::new(VarNotFound, caret(variable));
        assert_eq!(*scope.log.borrow(), [before], "{params}");
        let found = (error.text, error.caret, error.errno);
        assert_eq!(found, (Some(text), caret(culprit), EINVAL), "{params}");
    }
}

#[test]
fn clocks() {
    let event = zoo();
    let checked = |params: &str| {
        let trigger = Trigger::parse(params.as_bytes()).unwrap();
        let compiled = compiled(&Only::new(&event), &trigger).unwrap();
        compiled.spec.check_clock(&trigger)
    };
    for clock in [
        "local", "global", "counter", "uptime", "perf", "mono", "mono_raw", "boot", "tai",
    ] {
        let params = format!("keys=common_timestamp:clock= {clock} ");
        assert_eq!(checked(&params), Ok(()), "{clock}");
    }
    assert_eq!(checked("keys=common_timestamp"), Ok(()));
    // Only a trigger that uses the time needs a clock.
    assert_eq!(checked("keys=u8:clock=nosuch"), Ok(()));
    for params in [
        "keys=common_timestamp:clock=nosuch",
        "keys=u8:vals=common_timestamp-1:clock=nosuch",
    ] {
        let error = checked(params).unwrap_err();
        let caret = "hist:".len() + params.find("nosuch").unwrap();
        assert_eq!(
            (error.text, error.caret, error.errno),
            (Some(SetClockFail), caret, EINVAL)
        );
    }
}

#[test]
fn duplicates() {
    let event = sched_waking();
    let matches = |a, b| {
        let (a, b) = (hist(&event, a), hist(&event, b));
        assert_eq!(a.spec().matches(b.spec()), b.spec().matches(a.spec()));
        a.spec().matches(b.spec())
    };
    assert!(matches(
        "keys=pid",
        "keys=pid:vals=hitcount:sort=hitcount:size=100"
    ));
    assert!(matches("keys=pid", "keys=pid:clock=mono"));
    assert!(matches("keys=cpu", "keys=common_cpu"));
    assert!(matches("keys=COMM", "keys=common_comm"));
    assert!(matches("keys=pid:sort=pid", "keys=pid:sort=pid.ascending"));
    assert!(matches("keys=stacktrace", "keys=common_stacktrace"));
    assert!(matches(
        "keys=common_timestamp",
        "keys=common_timestamp:clock=mono"
    ));
    assert!(!matches(
        "keys=common_timestamp",
        "keys=common_timestamp.usecs"
    ));
    // Both are called common_cpu in the line, which sorts by the first.
    assert!(matches(
        "keys=common_cpu.buckets=16,cpu:sort=cpu",
        "keys=common_cpu.buckets=16,common_cpu:sort=common_cpu"
    ));
    assert!(!matches("keys=pid", "keys=prio"));
    assert!(!matches("keys=pid", "keys=common_pid"));
    assert!(!matches("keys=comm", "keys=common_comm"));
    assert!(!matches("keys=common_cpu", "keys=target_cpu"));
    assert!(!matches("keys=pid", "keys=pid:sort=pid"));
    assert!(!matches("keys=pid", "keys=pid:sort=hitcount.descending"));
    assert!(matches(
        "keys=pid,prio.hex:vals=prio",
        "keys=pid,prio.hex:vals=hitcount,prio"
    ));
    assert!(matches(
        "keys=pid:vals=prio",
        "keys=pid:vals=prio:nohitcount"
    ));
    assert!(!matches("keys=pid,prio", "keys=prio,pid"));
    assert!(!matches("keys=pid", "keys=pid,prio"));
    assert!(!matches("keys=pid", "keys=pid:vals=prio"));
    assert!(!matches("keys=pid:vals=prio", "keys=pid,prio"));
    assert!(!matches("keys=pid", "keys=pid.hex"));
    assert!(!matches("keys=pid:sort=pid", "keys=pid:sort=pid,hitcount"));
    assert!(matches("keys=pid+prio", "keys=pid+prio:vals=hitcount"));
    assert!(!matches("keys=pid+prio", "keys=pid+target_cpu"));
    assert!(!matches("keys=-(pid)", "keys=pid"));
    assert!(matches("keys=1+2", "keys=3"));
    // C considers these the same.
    assert!(!matches("keys=pid+prio", "keys=pid-prio"));
    assert!(!matches("keys=pid+1", "keys=pid+2"));
    assert!(!matches("keys=pid.buckets=2", "keys=pid.buckets=3"));
    assert!(!matches("keys=1", "keys=2"));
    // The same key in another event, as with named triggers: name, type, size and sign decide.
    let like = |type_, size, signed| {
        use rhist::event::FilterType::Other;
        let other = super::events::event("a", "b", &[(type_, "pid", 40, size, signed, Other)]);
        hist(&event, "keys=pid")
            .spec()
            .matches(hist(&other, "keys=pid").spec())
    };
    assert!(like("pid_t", 4, true));
    assert!(!like("int", 4, true));
    assert!(!like("pid_t", 4, false));
    assert!(!like("pid_t", 8, true));
}
