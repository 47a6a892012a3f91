// SPDX-License-Identifier: GPL-2.0

//! Which triggers are accepted, and the errors of the others.

use kernel::error::code::*;
use kernel::error::Error as Errno;
use rhist::event::EventDesc;
use rhist::trigger::Error;
use rhist::trigger::ErrorText;
use rhist::trigger::ErrorText::*;
use rhist::trigger::HintText;
use rhist::trigger::HintText::*;
use rhist::trigger::Trigger;

use super::events::*;

/// Error of `params`: the sentence, if any, the text at the caret, and the errno.
fn error<'a>(event: &EventDesc, params: &'a str) -> (Option<ErrorText>, &'a str, Errno) {
    let Err(error) = build(event, params) else {
        panic!("{params} is taken");
    };
    let at = error.caret.checked_sub("hist:".len());
    (error.text, at.map_or("", |at| &params[at..]), error.errno)
}

/// Checks the errors of `cases`: the parameters, the sentence, the text at the caret.
fn check(event: &EventDesc, cases: &[(&str, ErrorText, &str)]) {
    for &(params, text, at) in cases {
        assert_eq!(
            error(event, params),
            (Some(text), at, text.errno()),
            "{params}"
        );
    }
}

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
fn fields_that_are_not_there() {
    check(
        &sched_waking(),
        &[
            ("keys=nosuch", FieldNotFound, "nosuch"),
            ("keys=nosuch:size=100", FieldNotFound, "nosuch:size=100"),
            ("keys=pid:vals=nosuch", FieldNotFound, "nosuch"),
            ("keys=common_nosuch", FieldNotFound, "common_nosuch"),
            ("keys=a.b.nosuch", FieldNotFound, "nosuch"),
            ("keys=common_pid.b.hex", FieldNotFound, "hex"),
            // The caret goes to the first occurrence of the text, wherever that is.
            ("keys=key", FieldNotFound, "keys=key"),
            ("keys=nosuch.hex", FieldNotFound, "nosuch.hex"),
            ("keys=pid-nosuch", FieldNotFound, "nosuch"),
            // Reported before unsupported parts.
            ("keys=pid,nosuch", FieldNotFound, "nosuch"),
            ("keys=nosuch:vals=prio", FieldNotFound, "nosuch:vals=prio"),
            ("keys=nosuch if pid > 1", FieldNotFound, "nosuch if pid > 1"),
        ],
    );
    // The caret of an empty name is at the start.
    assert_eq!(
        error(&sched_waking(), "keys=pid,"),
        (Some(FieldNotFound), "", EINVAL)
    );
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
fn fields_that_c_has_no_function_for() {
    for name in ["args", "ip", "args.hex", "ip.sym", "args.log2"] {
        for params in [format!("keys=^{name}"), format!("keys=u8:vals=^{name}")] {
            if params.contains("vals") && name.contains('.') && !name.ends_with("hex") {
                continue;
            }
            own(&zoo(), &params, NoFunction, ENOMEM);
        }
    }
}

#[test]
fn keys_that_are_too_long() {
    hist(&zoo(), "keys=fits");
    own(&zoo(), "keys=^long", KeysTooLong, EINVAL);
    own(&zoo(), "keys=dyn,^rel", KeysTooLong, EINVAL);
    own(&zoo(), "keys=fits,^u8", KeysTooLong, EINVAL);
    own(&zoo(), "keys=dyn,^common_comm", KeysTooLong, EINVAL);
}

#[test]
fn modifiers() {
    check(
        &zoo(),
        &[
            ("keys=u8.nosuch", BadFieldModifier, "nosuch"),
            ("keys=u8.execname", BadFieldModifier, "execname"),
            ("keys=u8.buckets=0", BadFieldModifier, "0"),
            ("keys=u8.percent", BadFieldModifier, "percent"),
            ("keys=nosuch.nosuchmod", BadFieldModifier, "nosuchmod"),
            ("keys=u8.stacktrace", BadFieldModifier, "u8.stacktrace"),
            ("keys=cpu.stacktrace", BadFieldModifier, "cpu.stacktrace"),
            (
                "keys=stacktrace.stacktrace",
                BadFieldModifier,
                "stacktrace.stacktrace",
            ),
            ("keys=u8:vals=u16.log2", BadFieldModifier, "u16.log2"),
            (
                "keys=u8:vals=u16.buckets=3",
                BadFieldModifier,
                "u16.buckets=3",
            ),
            ("keys=u8:vals=u16.sym", BadFieldModifier, "u16.sym"),
            ("keys=u8:vals=u16.syscall", BadFieldModifier, "u16.syscall"),
            (
                "keys=u8:vals=common_stacktrace",
                BadFieldModifier,
                "common_stacktrace",
            ),
            ("keys=u8:vals=stack", BadFieldModifier, "stack"),
            // C computes with something.
            ("keys=stack+1", InvalidStrOperand, "stack+1"),
            (
                "keys=1-common_stacktrace",
                InvalidStrOperand,
                "common_stacktrace",
            ),
            // C accepts these two, and computes with addresses.
            ("keys=even.log2", BadFieldModifier, "log2"),
            ("keys=dyn.buckets=9", BadFieldModifier, "buckets=9"),
            ("keys=u8:x=u16.log2", BadFieldModifier, "u16.log2"),
            ("keys=u8:x=u16.percent", BadFieldModifier, "percent"),
        ],
    );
    assert_eq!(
        error(&zoo(), "keys=u8."),
        (Some(BadFieldModifier), "", EINVAL)
    );
}

#[test]
fn sort_keys() {
    check(
        &sched_waking(),
        &[
            ("keys=pid:sort=prio", InvalidSortField, "prio"),
            ("keys=pid:sort=pid.up", InvalidSortModifier, "up"),
            ("keys=pid:sort=hitcount.up", InvalidSortModifier, "up"),
            // The name is checked first.
            ("keys=pid:sort=prio.up", InvalidSortField, "prio.up"),
            ("keys=pid:sort=,pid", EmptySortField, "sort=,pid"),
            (
                "keys=pid:sort=.ascending",
                EmptySortField,
                "sort=.ascending",
            ),
            (
                "keys=pid:sort=pid,pid,pid",
                TooManySortFields,
                "sort=pid,pid,pid",
            ),
            // Fields come before sort keys.
            ("sort=nosuch:keys=nosort", FieldNotFound, "nosort"),
        ],
    );
}

#[test]
fn operands() {
    check(
        &zoo(),
        &[
            ("keys=even+u8", InvalidStrOperand, "even+u8"),
            ("keys=u8+dyn", InvalidStrOperand, "dyn"),
            (
                "keys=u8:x=-(common_comm)",
                InvalidStrOperand,
                "common_comm)",
            ),
            ("keys=u8+u16+nosuch", FieldNotFound, "nosuch"),
            ("keys=u8/0", DivisionByZero, "0"),
            ("keys=u8:vals=u16*2/0x0", DivisionByZero, "0x0"),
            ("keys=6/0", DivisionByZero, "0"),
        ],
    );
    // C does not name the field.
    for params in [
        "keys=u8.usecs+1",
        "keys=u8-u16.usecs",
        "keys=u8.usecs+u16.usecs+1",
    ] {
        let expected = (Some(TimestampMismatch), "", EINVAL);
        assert_eq!(error(&zoo(), params), expected, "{params}");
    }
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
fn nohitcount_needs_a_value() {
    let expected = (Some(NeedNohcVal), "", ENOENT);
    assert_eq!(error(&sched_waking(), "keys=pid:nohitcount"), expected);
    assert_eq!(
        error(&sched_waking(), "keys=pid:vals=hitcount:NOHC"),
        expected
    );
}

#[test]
fn counts() {
    own(
        &zoo(),
        "keys=u8,u16,u32,u64,u8,u16,u32,u64,^u8",
        TooManyKeys,
        EINVAL,
    );
    own(
        &zoo(),
        "keys=u8:vals=u8,u16,u32,u64,u8,u16,u32,u64,^u8",
        TooManyVals,
        EINVAL,
    );
}

#[test]
fn strings_as_values() {
    for params in [
        "keys=u8:vals=^even",
        "keys=u8:vals=^common_comm",
        "keys=u8:vals=^dyn.hex",
        "keys=u8:x=u8:vals=^dyn,odd if u8",
    ] {
        own(&zoo(), params, StringValue, EINVAL);
    }
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
    // A variable of the same trigger is replaced by its definition, which is checked then.
    check(
        &event,
        &[
            ("keys=u8:y=$x:x=nosuch", FieldNotFound, "nosuch"),
            ("keys=u8:vals=$x:x=5", FieldNotFound, "5"),
            (
                "keys=u8:vals=$x:x=u16.log2",
                BadFieldModifier,
                "$x:x=u16.log2",
            ),
            (
                "keys=u8+$x:x=common_comm",
                InvalidStrOperand,
                "$x:x=common_comm",
            ),
            ("keys=u8:x=u16:sort=x", InvalidSortField, "x=u16:sort=x"),
        ],
    );
}

/// An event that a handler names is looked up before its action is, and both before the fields.
#[test]
fn events_of_handlers() {
    check(
        &zoo(),
        &[
            (
                "keys=nofield:onmatch(sched.nosuch).trace()",
                InvalidSubsysEvent,
                "nosuch).trace()",
            ),
            (
                "keys=nofield:onmatch(nosuch.sched_switch).trace()",
                InvalidSubsysEvent,
                "sched_switch).trace()",
            ),
            (
                "keys=nofield:onmatch(sched.sched_switch).trace()",
                InvalidParam,
                "",
            ),
            (
                "keys=nofield:onmatch(sched.sched_switch).trace(ev,u8)",
                FieldNotFound,
                "nofield:onmatch(sched.sched_switch).trace(ev,u8)",
            ),
        ],
    );
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
    // Times in different units cannot be combined.
    check(
        &event,
        &[(
            "keys=common_timestamp.usecs-common_timestamp",
            TimestampMismatch,
            "",
        )],
    );
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
