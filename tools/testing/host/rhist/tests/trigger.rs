// SPDX-License-Identifier: GPL-2.0

//! The trigger language: which commands are accepted, and the sentence and caret of the others.

mod table;
#[path = "trigger/walk.rs"]
mod walk;

use kernel::fault;
use kernel::prelude::{EEXIST, EINVAL, ENOMEM, ERANGE};
use rhist::trigger::*;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use walk::walk;

type Errno = kernel::error::Error;

/// Parses a command. Panics unless it is a `hist` command.
fn params(written: &str) -> &[u8] {
    Command::parse(written.as_bytes()).hist().expect(written)
}

fn parse(written: &str) -> Trigger {
    match Trigger::parse(params(written)) {
        Ok(trigger) => trigger,
        Err(error) => panic!("{written}: {error:?}"),
    }
}

fn text<'a>(trigger: &'a Trigger, span: Span) -> &'a str {
    std::str::from_utf8(trigger.typed(span)).unwrap()
}

/// The log of a command, and the result of its write.
fn outcome(written: &str) -> (Vec<Error>, Result<(), Errno>) {
    let (log, result) = walk(params(written));
    (log, result.map(drop).map_err(|error| error.errno))
}

#[test]
fn errors() {
    for row in table::rows(&["fields", "host"]) {
        let written = String::from_utf8(row.command).unwrap();
        let command = Command::parse(written.as_bytes());
        let (log, result) = match command.hist() {
            Ok(params) => walk(params),
            Err(error) => (Vec::new(), Err(error)),
        };
        let error = result.map(drop).expect_err(&written);
        assert_eq!(error.errno, row.errno, "{written}");
        let Some(last) = log.last() else {
            let mut own = HintText::ALL.iter();
            let own = own
                .find(|own| own.as_str() == row.sentence)
                .expect(&written);
            assert_eq!(
                error,
                Error::own(*own, row.caret).with(row.errno),
                "{written}"
            );
            continue;
        };
        let text = last.text.unwrap().as_str();
        if text == row.sentence {
            assert_eq!(last.caret, row.caret, "{written}");
            continue;
        }
        let hint = last.hint.expect(&written);
        let both = format!("{text}: {}", hint.text.as_str());
        assert_eq!(
            (&both[..], hint.caret),
            (row.sentence, row.caret),
            "{written}"
        );
    }
}

#[track_caller]
fn accepted(written: &str) {
    let (log, result) = outcome(written);
    assert_eq!((log, result), (Vec::new(), Ok(())), "{written}");
}

#[test]
fn command() {
    #[track_caller]
    fn check(written: &[u8], remove: bool, name: &str, params: Option<&str>) {
        let command = Command::parse(written);
        assert_eq!(command.remove, remove);
        assert_eq!(command.name, name.as_bytes());
        assert_eq!(command.params, params.map(str::as_bytes));
    }
    let params = Some("keys=pid");
    check(b"hist:keys=pid", false, "hist", params);
    check(b"!hist:keys=pid\n", true, "hist", params);
    check(b" \t hist keys=pid \n", false, "hist", params);
    check(b"hist\tkeys=pid", false, "hist", params);
    check(b"hist: \x0b\xa0keys=pid\xa0", false, "hist", params);
    check(b"hist:keys=pid\0:vals=x", false, "hist", params);
    check(b"hist::keys=pid", false, "hist", Some(":keys=pid"));
    check(b"hist", false, "hist", None);
    check(b"hist: ", false, "hist", None);
    check(b"", false, "", None);
    check(b" \n", false, "", None);
    check(b"\0hist:keys=pid", false, "", None);
    check(b"!", true, "", None);
    check(b"! hist:keys=pid", true, "", Some("hist:keys=pid"));
    check(b"!!hist:keys=pid", true, "!hist", params);
}

#[test]
fn command_name() {
    let error = |written: &[u8]| Command::parse(written).hist().unwrap_err();
    assert_eq!(error(b"hist"), Error::own(HintText::NoKeys, 4));
    assert_eq!(error(b"!hist:"), Error::own(HintText::NoKeys, 4));
    for ours in ["enable_hist", "!disable_hist:5", "enable_hist if pid == 1"] {
        assert!(Command::parse(ours.as_bytes()).is_ours(), "{ours}");
    }
    assert!(Command::parse(b"hist").is_ours());
    assert!(Command::parse(b" !hist:\0").is_ours());
    for kernels in [
        "",
        "!",
        "histo:keys=pid",
        "HIST:keys=pid",
        "!!hist:keys=pid",
        "traceon",
        "!traceoff:5",
        "snapshot if pid == 1",
        "stacktrace",
        "enable_event:a:b",
        "disable_event hist",
    ] {
        assert!(!Command::parse(kernels.as_bytes()).is_ours(), "{kernels}");
    }
}

#[test]
fn switches() {
    let switch =
        |written: &'static str| enable::EnableCommand::parse(&Command::parse(written.as_bytes()));
    let parsed = |written| switch(written).expect(written);

    let plain = parsed("enable_hist:sys:event");
    assert!(plain.enable);
    assert_eq!((plain.system, plain.event), (&b"sys"[..], &b"event"[..]));
    assert_eq!(plain.target, b"sys:event");
    assert_eq!(plain.count(), Ok(enable::UNLIMITED));
    assert_eq!(plain.filter(), Ok(None));

    let full = parsed("!disable_hist sys:event:0x10:x\t if\ta == 1 ");
    assert!(!full.enable);
    assert_eq!(full.target, b"sys:event");
    assert_eq!(full.count(), Ok(16));
    assert_eq!(full.filter(), Ok(Some(&b"a == 1"[..])));
    assert_eq!(parsed("enable_hist::").target, b":");
    assert_eq!(
        parsed("enable_hist:a:b if  c").filter(),
        Ok(Some(&b" c"[..]))
    );

    for (bad, caret) in [
        ("enable_hist", 11),
        ("enable_hist:", 11),
        ("enable_hist:sys", 15),
        ("enable_hist:sys if a:b", 15),
    ] {
        let expected = Error::own(HintText::SwitchEvent, caret);
        assert_eq!(switch(bad), Err(expected), "{bad}");
    }
    for (bad, errno) in [
        ("enable_hist:a:b:", EINVAL),
        ("enable_hist:a:b:-1", EINVAL),
        ("enable_hist:a:b:1x", EINVAL),
        ("enable_hist:a:b:18446744073709551616", ERANGE),
    ] {
        let expected = Error::own(HintText::SwitchCount, 16).with(errno);
        assert_eq!(parsed(bad).count(), Err(expected), "{bad}");
    }
    for (bad, caret) in [
        ("enable_hist:a:b if", 16),
        ("enable_hist:a:b:1  c == 1", 19),
        ("enable_hist:a:b iff c", 16),
    ] {
        let expected = Error::own(HintText::SwitchFilter, caret);
        assert_eq!(parsed(bad).filter(), Err(expected), "{bad}");
    }
    let gone = parsed("enable_hist:a:b");
    assert_eq!(gone.no_event(EINVAL), Error::own(HintText::NoEvent, 12));
    let no_memory = Error::own(HintText::NoMemory, 12);
    assert_eq!(gone.no_event(ENOMEM), no_memory);
}

#[test]
fn listing() {
    let listed = |text: &'static str| -> Vec<&str> {
        let triggers = KernelTriggers::new(text.as_bytes());
        triggers.map(|t| std::str::from_utf8(t).unwrap()).collect()
    };
    assert!(listed("").is_empty());
    assert!(listed("# Available triggers:\n# traceon traceoff\n").is_empty());
    assert!(listed("hist:keys=pid [active]\n").is_empty());
    assert_eq!(
        listed("hist:name=a\nb:keys=pid [active]\ntraceon:unlimited\nhist:name=\nc:x [paused]\n"),
        ["traceon:unlimited\n"]
    );
    assert_eq!(
        listed(
            "snapshot:unlimited if a == 1 ||\nb == 2\nenable_hist:a:b:unlimited if c ==\n3\n\
             traceoff:count=3\nhist:keys=pid if x ==\n1 [active]\nhist:keys=a [paused]\nsome:x"
        ),
        [
            "snapshot:unlimited if a == 1 ||\nb == 2\n",
            "traceoff:count=3\n",
            "some:x"
        ]
    );
}

#[test]
fn listing_by_time() {
    let listed = |ours: &[(usize, &'static str)], theirs: &[&'static str]| -> Vec<String> {
        let theirs: Vec<_> = theirs.iter().map(|line| line.as_bytes()).collect();
        let ours = ours.iter().map(|(older, line)| (*older, line.as_bytes()));
        let lines = merge_by_age(ours, &theirs);
        lines
            .map(|line| String::from_utf8_lossy(line).into())
            .collect()
    };
    let theirs = ["c", "b", "a"];
    assert!(listed(&[], &[]).is_empty());
    assert_eq!(listed(&[], &theirs), theirs);
    assert_eq!(listed(&[(0, "2"), (0, "1")], &[]), ["2", "1"]);
    assert_eq!(
        listed(&[(3, "5"), (2, "4"), (2, "3"), (0, "2"), (0, "1")], &theirs),
        ["5", "c", "4", "3", "b", "a", "2", "1"]
    );
    // Some went unnoticed.
    assert_eq!(
        listed(&[(7, "2"), (1, "1")], &theirs),
        ["2", "c", "b", "1", "a"]
    );
}

#[test]
fn what_is_gone_of_a_listing() {
    let same = |before: [&str; 3], after: &[&str]| {
        let after: Vec<_> = after.iter().map(|line| line.as_bytes()).collect();
        count_same_oldest(&before.map(str::as_bytes), &after)
    };
    let before = ["c", "b", "a"];
    assert_eq!(same(before, &["b", "a"]), 2);
    assert_eq!(same(before, &["c", "a"]), 1);
    assert_eq!(same(before, &["c", "b"]), 0);
    assert_eq!(same(before, &[]), 0);
    assert_eq!(same(before, &before), 3);
}

#[test]
fn command_text() {
    let text = |written: &[u8]| Command::parse(written).text().unwrap().to_vec();
    assert_eq!(
        text(b" !hist \t keys=pid  if  a\n"),
        b"hist:keys=pid  if  a"
    );
    assert_eq!(text(b"traceon"), b"traceon");
    let params = b"keys=a.sym-offset if b";
    let trigger = Trigger::parse(params).unwrap();
    assert_eq!(trigger.command(), text(&[&b"hist:"[..], params].concat()));
}

#[test]
fn attributes() {
    let trigger = parse(
        "hist:key=a:keys=pid,prio:val=a:values=b:vals=lat,hitcount,id:sort=a:sort=pid,lat.descending\
         :size=100:size=0x81:name=a:name=foo bar:clock=a:clock= mono\t\
         :nohitcount:pause:cont:clear if x > 1",
    );
    let texts = |exprs: &ParsedList<Expr>| -> Vec<String> {
        let items = exprs.items().iter();
        items
            .map(|expr| text(&trigger, expr.text()).into())
            .collect()
    };
    assert_eq!(texts(&trigger.keys), ["pid", "prio"]);
    assert_eq!(texts(&trigger.vals), ["lat", "id"]);
    let sort: Vec<_> = trigger.sort.items().iter().collect();
    assert_eq!(text(&trigger, sort[0].name), "pid");
    assert_eq!(sort[0].order, Ok(Order::Ascending));
    assert_eq!(text(&trigger, sort[1].name), "lat");
    assert_eq!(sort[1].order, Ok(Order::Descending));
    assert_eq!(trigger.size.unwrap().bits, 8);
    assert_eq!(text(&trigger, trigger.name.unwrap()), "name=foo bar");
    assert_eq!(text(&trigger, trigger.clock.unwrap()), "mono");
    assert_eq!(text(&trigger, trigger.nohitcount.unwrap()), "nohitcount");
    assert_eq!(text(&trigger, trigger.pause.unwrap()), "pause");
    assert_eq!(text(&trigger, trigger.cont.unwrap()), "cont");
    assert_eq!(text(&trigger, trigger.clear.unwrap()), "clear");
    assert_eq!(text(&trigger, trigger.filter.unwrap().clause), "if x > 1");

    let trigger = parse("hist keys=pid:NOHC:continue:vals=hitcount.hex");
    assert!(trigger.nohitcount.is_some() && trigger.cont.is_some());
    assert!(trigger.pause.is_none() && trigger.clear.is_none());
    assert!(trigger.size.is_none() && trigger.name.is_none() && trigger.clock.is_none());
    assert!(trigger.filter.is_none() && trigger.sort.text.is_none());
}

#[test]
fn tokens() {
    accepted("hist keys=pid");
    accepted("hist:keys=pid:name=1:clock= :pause");
}

#[test]
fn size() {
    let bits = |size: &str| {
        parse(&format!("hist:keys=pid:size={size}:pause"))
            .size
            .unwrap()
            .bits
    };
    assert_eq!(bits("65"), 7);
    assert_eq!(bits("128"), 7);
    assert_eq!(bits("129"), 8);
    assert_eq!(bits("2048"), 11);
    assert_eq!(bits("+2049"), 12);
    assert_eq!(bits("0x1000"), 12);
    assert_eq!(bits("010000"), 12);
    assert_eq!(bits("131072"), 17);
    assert_eq!(bits("128\n"), 7);
}

/// Both sizes are rounded up, and the second one is above the first one then.
#[test]
fn sizes() {
    for (size, bits) in [
        ("128", (7, None)),
        ("65..129", (7, Some(8))),
        ("128..256", (7, Some(8))),
        ("131072..131073", (17, Some(18))),
        ("100..1048576", (7, Some(20))),
        ("0x80..0x1000", (7, Some(12))),
    ] {
        let trigger = parse(&format!("hist:keys=pid:size={size}"));
        let size = trigger.size.unwrap();
        assert_eq!((size.bits, size.bits_max), bits);
    }
}

#[test]
fn expire() {
    let expire = |text: &str| {
        let trigger = parse(&format!("hist:keys=pid:x=1:expire({text})"));
        trigger.clauses.expire.unwrap().value
    };
    for (text, ns, shown) in [
        ("1s", 1_000_000_000, "1s"),
        ("1000ms", 1_000_000_000, "1s"),
        ("1500ms", 1_500_000_000, "1500ms"),
        ("060s", 60_000_000_000, "1m"),
        ("90s", 90_000_000_000, "90s"),
        ("120m", 7_200_000_000_000, "2h"),
        ("31536000s", 31_536_000_000_000_000, "8760h"),
        ("8760h", 31_536_000_000_000_000, "8760h"),
    ] {
        for (text, taken, shown) in [
            (text.to_owned(), false, shown.to_owned()),
            (format!("{text},taken"), true, format!("taken,{shown}")),
            (format!("taken,{text}"), true, format!("taken,{shown}")),
        ] {
            let expire = expire(&text);
            let idle_ns = Some(ns);
            assert_eq!(expire, Expire { idle_ns, taken }, "{text}");
            assert_eq!(expire.to_string(), shown);
        }
    }
    let taken = Expire {
        idle_ns: None,
        taken: true,
    };
    assert_eq!((expire("taken"), &taken.to_string()[..]), (taken, "taken"));
}

#[test]
fn full() {
    for (text, [recycle, other], shown) in [
        ("other", [false, true], "other"),
        ("recycle", [true, false], "recycle"),
        ("other,recycle", [true, true], "recycle,other"),
        ("recycle,other", [true, true], "recycle,other"),
    ] {
        let trigger = parse(&format!("hist:keys=pid:full({text})"));
        let full = trigger.clauses.full.unwrap().value;
        assert_eq!(full, Full { recycle, other }, "{text}");
        assert_eq!(full.to_string(), shown);
    }
}

#[test]
fn numbers() {
    for (text, value) in [
        ("0", Ok(0)),
        ("00", Ok(0)),
        ("017", Ok(15)),
        ("0xfF", Ok(255)),
        ("0XfF", Ok(255)),
        ("18446744073709551615", Ok(u64::MAX)),
        ("0xffffffffffffffff", Ok(u64::MAX)),
        ("01777777777777777777777", Ok(u64::MAX)),
        ("18446744073709551616", Err(ERANGE)),
        ("0x10000000000000000", Err(ERANGE)),
        ("0x1ffffffffffffffffffff", Err(ERANGE)),
        ("02000000000000000000000", Err(ERANGE)),
        ("+0x1\n", Ok(1)),
        ("", Err(EINVAL)),
        ("\n", Err(EINVAL)),
        ("0xg", Err(EINVAL)),
        ("0b1", Err(EINVAL)),
        ("1 ", Err(EINVAL)),
        ("09", Err(EINVAL)),
    ] {
        assert_eq!(number(text.as_bytes()), value, "{text:?}");
    }
}

#[test]
fn filter() {
    let filter = |written: &str| {
        let trigger = parse(written);
        let filter = trigger.filter.expect(written);
        let keys = trigger.keys.text.unwrap();
        (
            text(&trigger, keys).to_owned(),
            text(&trigger, filter.text).to_owned(),
            filter.clause.start,
        )
    };
    let expect = |keys: &str, text: &str, at| (keys.to_owned(), text.to_owned(), at);
    assert_eq!(filter("hist:keys=pid if a"), expect("pid", "a", 14));
    assert_eq!(filter("hist:keys=pid \t if\ta"), expect("pid", "a", 16));
    // Blanks before the filter are kept, except the first one.
    assert_eq!(
        filter("hist:keys=pid if   a if b "),
        expect("pid", "  a if b", 14)
    );
    assert_eq!(filter("hist:keys=diff if x"), expect("diff", "x", 15));
    assert_eq!(filter("hist:keys=p if_x if x"), expect("p if_x", "x", 17));
    assert_eq!(filter("hist:keys=p if.x if x"), expect("p if.x", "x", 17));

    accepted("hist:keys=pid if whatever ( it is");
}

#[test]
fn fields() {
    let field = |written: &str| {
        let trigger = parse(written);
        let field = match &trigger.keys.items()[0] {
            Expr::Field(field) => *field,
            _ => panic!("{written}: not a field"),
        };
        (
            text(&trigger, field.name).to_owned(),
            field.modifier.map(|modifier| modifier.kind),
            field.qualifier.map(|qualifier| {
                let Qualifier { system, event } = qualifier;
                (
                    text(&trigger, system).to_owned(),
                    text(&trigger, event).to_owned(),
                )
            }),
        )
    };
    let plain = |name: &str, kind| (name.to_owned(), kind, None);
    let full = |name: &str, kind, system: &str, event: &str| {
        (
            name.to_owned(),
            kind,
            Some((system.to_owned(), event.to_owned())),
        )
    };
    assert_eq!(field("hist:keys=pid"), plain("pid", None));
    for (word, kind) in [
        ("hex", ModifierKind::Hex),
        ("sym", ModifierKind::Sym),
        ("sym-offset", ModifierKind::SymOffset),
        ("symXoffset", ModifierKind::SymOffset),
        ("syscall", ModifierKind::Syscall),
        ("log2", ModifierKind::Log2),
        ("usecs", ModifierKind::Usecs),
        ("stacktrace", ModifierKind::Stacktrace),
        ("buckets=10", ModifierKind::Buckets(10)),
        ("bucket=0x10", ModifierKind::Buckets(16)),
    ] {
        assert_eq!(
            field(&format!("hist:keys=pid.{word}")),
            plain("pid", Some(kind))
        );
    }
    let execname = Some(ModifierKind::Execname);
    assert_eq!(
        field("hist:keys=common_pid.execname"),
        plain("common_pid", execname)
    );
    assert_eq!(field("hist:keys=a.b.pid"), full("pid", None, "a", "b"));
    let hex = Some(ModifierKind::Hex);
    assert_eq!(field("hist:keys=a.b.pid.hex"), full("pid", hex, "a", "b"));
    assert_eq!(field("hist:keys=..pid"), full("pid", None, "", ""));
    // C parses `common_pid.b` as an event.
    assert_eq!(
        field("hist:keys=common_pid.b.hex"),
        full("hex", None, "common_pid", "b")
    );
    assert_eq!(field("hist:keys=$"), plain("$", None));
}

#[test]
fn modifiers() {
    let (log, _) = outcome("hist:keys=pid.hexx");
    assert_eq!(log[0].hint, None);
    accepted("hist:keys=pid:vals=lat.percentXYZ,lat.graphs");
    accepted("hist:keys=pid,lat.percent+1");
    for modifier in ["log2", "buckets=10", "sym", "syscall"] {
        accepted(&format!("hist:keys=pid.{modifier}:vals=lat.{modifier}+1"));
    }
    accepted("hist:keys=pid.sym-offset-1:x=lat.sym-offset");
    for modifier in ["hex", "sym", "syscall", "usecs"] {
        accepted(&format!("hist:keys=pid:x=lat.{modifier}"));
    }
    accepted("hist:keys=pid:vals=common_pid.execname,lat.hex");
    accepted("hist:keys=stack.stacktrace");
}

#[test]
fn keys_and_values() {
    accepted("hist:keys=pid,prio,lat");
    accepted("hist:keys=common_comm,common_stacktrace");
    accepted("hist:keys=stacktrace");
    accepted("hist:keys=1,name");

    let vals = |vals: &str| {
        let trigger = parse(&format!("hist:keys=pid:vals={vals}"));
        (trigger.vals.items().len(), trigger.vals.error())
    };
    assert_eq!(vals("hitcount"), (0, None));
    assert_eq!(vals("hitcount,hitcount"), (1, None));
    assert_eq!(vals("lat,hitcount,id"), (2, None));
    assert_eq!(vals("lat,id,hitcount"), (2, None));
    assert_eq!(vals("hitcount,lat,id"), (2, None));
    assert_eq!(vals("hitcount.hex"), (1, None));
    // Numbers of values beyond C's limit.
    assert_eq!(vals("lat,id,prio"), (3, None));
    assert_eq!(vals("lat,id,hitcount,hitcount"), (2, None));
    assert_eq!(vals("hitcount,lat,id,prio"), (3, None));
    assert_eq!(vals("hitcount,hitcount,hitcount,lat"), (3, None));
    let too_many = |caret| {
        Some(Error::own(
            HintText::TooManyVals,
            "hist:keys=pid:vals=".len() + caret,
        ))
    };
    let eight = "lat,id,lat,id,lat,id,lat,id";
    assert_eq!(vals(eight), (8, None));
    assert_eq!(vals(&format!("{eight},hitcount")), (8, None));
    assert_eq!(vals(&format!("{eight},prio")), (8, too_many(28)));
    assert_eq!(vals(&format!("{eight},")), (8, too_many(28)));

    accepted("hist:keys=pid:NOHC:vals=hitcount,lat");
    accepted("hist:keys=pid:NOHC:vals=hitcount.percent");
}

#[test]
fn sort() {
    accepted("hist:keys=pid,prio:vals=lat:sort=lat,pid.descending");
    accepted("hist:keys=pid.hex:sort=pid.ascending,hitcount.descending");
    accepted("hist:keys=pid:vals=lat+1,prio.hex:sort=lat+1,prio");
}

#[test]
fn assignments() {
    let trigger = parse("hist:keys=pid:a=lat,b=$ts0:c=d=e,=pid:key =lat:x=1,keys=2");
    let vars: Vec<_> = (trigger.vars.items().iter())
        .map(|var| (text(&trigger, var.name), text(&trigger, var.expr.text())))
        .collect();
    assert_eq!(
        vars,
        [
            ("a", "lat"),
            ("b", "$ts0"),
            ("c", "d=e"),
            ("", "pid"),
            ("key ", "lat"),
            ("x", "1"),
            ("keys", "2"),
        ]
    );

    let many = |count: usize, separator: &str| {
        let vars: Vec<_> = (0..count).map(|i| format!("v{i:02}=pid")).collect();
        vars.join(separator)
    };
    accepted(&format!("hist:keys=pid:{}", many(16, ",")));
    accepted(&format!("hist:keys=pid:{}", many(16, ":")));
}

/// An expression with parentheses around everything, so that its shape shows.
fn shape(trigger: &Trigger, expr: &Expr) -> String {
    match expr {
        Expr::Literal { value, .. } => value.to_string(),
        Expr::Field(field) => text(trigger, field.text).into(),
        Expr::Reference(reference) => text(trigger, reference.text).into(),
        Expr::Stacktrace { .. } => "stacktrace!".into(),
        Expr::Parens { operand, .. } => format!("({})", shape(trigger, operand)),
        Expr::Negation { operand, .. } => format!("(-{})", shape(trigger, operand)),
        Expr::Binary {
            operator,
            left,
            right,
            ..
        } => {
            let sign = match operator {
                Operator::Plus => "+",
                Operator::Minus => "-",
                Operator::Times => "*",
                Operator::Over => "/",
            };
            format!("({}{sign}{})", shape(trigger, left), shape(trigger, right))
        }
        Expr::Bad { error, .. } => format!("{error:?}"),
    }
}

#[test]
fn expressions() {
    let expr = |written: &str| {
        let trigger = parse(&format!("hist:keys=pid:x={written}"));
        shape(&trigger, &trigger.vars.items()[0].expr)
    };
    assert_eq!(expr("a"), "a");
    assert_eq!(expr("16-8-4-2"), "(((16-8)-4)-2)");
    assert_eq!(expr("64/8/4/2"), "(((64/8)/4)/2)");
    assert_eq!(expr("16-8+4+2"), "(((16-8)+4)+2)");
    assert_eq!(expr("4*3/2*2"), "(((4*3)/2)*2)");
    assert_eq!(expr("4+3*2-2"), "((4+(3*2))-2)");
    assert_eq!(expr("4+6/2-2"), "((4+(6/2))-2)");
    assert_eq!(
        expr("common_timestamp.usecs-$ts0"),
        "(common_timestamp.usecs-$ts0)"
    );
    assert_eq!(expr("a.b.$c*d.e.f.hex"), "(a.b.$c*d.e.f.hex)");
    assert_eq!(expr("-(a)"), "(-a)");
    assert_eq!(expr("-(a+b*c)"), "(-(a+(b*c)))");
    assert_eq!(expr("-(a)-b"), "((-a)-b)");
    assert_eq!(
        expr("a.sym-offset-b.sym-offset"),
        "(a.sym-offset-b.sym-offset)"
    );
    assert_eq!(expr("0x10+010"), "(16+8)");
    // C has no parentheses, but takes all other texts for names.
    assert_eq!(expr("(a)"), "(a)");
    assert_eq!(expr("-x(a)"), "(-(a)");
}

#[test]
fn limits_of_expressions() {
    accepted("hist:keys=pid:x=-(1+2+3)");
    accepted("hist:keys=pid:x=1+2+3+4:vals=1+2+3+4,4+3+2+1");
    accepted("hist:keys=pid:x=18446744073709551615");
}

#[test]
fn references() {
    let log = |written: &str| -> Vec<_> {
        let (log, result) = outcome(written);
        assert_eq!(result, Err(EINVAL), "{written}");
        (log.iter())
            .map(|error| (error.text.unwrap(), error.caret))
            .collect()
    };
    use ErrorText::{BadFieldModifier, FieldNotFound, VarNotFound};
    // A name without a variable is looked up as a field.
    let both = [(VarNotFound, 18), (FieldNotFound, 17)];
    assert_eq!(log("hist:keys=pid:xx=$ts0"), both);
    assert_eq!(log("hist:keys=pid:xx=$ts0+1"), both);
    let both = [(VarNotFound, 21), (FieldNotFound, 20)];
    assert_eq!(log("hist:keys=pid:x=a.b.$ts0"), both);
    let both = [(VarNotFound, 18), (BadFieldModifier, 22)];
    assert_eq!(log("hist:keys=pid:xx=$ts0.what"), both);
    assert_eq!(log("hist:keys=pid:xx=$"), [(FieldNotFound, 17)]);

    // A definition of this trigger takes the place of its name.
    accepted("hist:keys=$p:p=pid");
    accepted("hist:keys=pid:vals=$x:x=lat.hex,y=$x");
    assert_eq!(
        log("hist:keys=pid:vals=$x:x=lat.log2")[0].0,
        BadFieldModifier
    );
    assert_eq!(log("hist:keys=pid:a=5,b=$a"), [(FieldNotFound, 16)]);
    let both = [(VarNotFound, 14), (FieldNotFound, 24)];
    assert_eq!(log("hist:keys=pid:x=lat+1,y=$x"), both);
    let both = [(VarNotFound, 14), (FieldNotFound, 28)];
    assert_eq!(log("hist:keys=pid:xy=lat+1:vals=$xy"), both);
}

#[test]
fn actions() {
    let trigger = parse(
        "hist:keys=pid:x=lat:onmatch(sched.sched_waking).trace(latency, $x ,pid,a.b.$y)\
         :onmax($x) what .save(prio,common_pid.execname,a+b):onchange($x).snapshot(whatever)\
         :onmatch(sched.sched.waking).latency(prio) what:onmax().traces(ab)",
    );
    let show = |span: Span| text(&trigger, span);
    let param = |param: &Param| {
        let qualifier = match param.qualifier {
            Ok(Some(Qualifier { system, event })) => format!("{}|{}|", show(system), show(event)),
            Ok(None) => String::new(),
            Err(error) => format!("{error:?}"),
        };
        assert_eq!(param.atom.text(), param.rest);
        format!("{qualifier}{}", show(param.rest))
    };
    let actions: Vec<_> = (trigger.actions.items().iter())
        .map(|action| {
            let handler = match action.handler {
                ActionHandler::OnMatch { system, event } => {
                    format!("match {}|{}", show(system), show(event))
                }
                ActionHandler::OnMax { var } => format!("max {}", show(var)),
                ActionHandler::OnChange { var } => format!("change {}", show(var)),
            };
            let (act, params) = match action.act.as_ref().unwrap() {
                Act::Save { name, params } => (format!("save {}", show(*name)), &params[..]),
                Act::Snapshot { name } => (format!("snapshot {}", show(*name)), &[][..]),
                Act::Trace {
                    name,
                    event,
                    params,
                } => (
                    format!("trace {} {}", show(*name), show(*event)),
                    &params[..],
                ),
            };
            let params: Vec<_> = params.iter().map(param).collect();
            format!("{handler}: {act}: {}", params.join(" "))
        })
        .collect();
    assert_eq!(
        actions,
        [
            "match sched|sched_waking: trace trace latency: $x pid a|b|$y",
            "max $x: save save: prio common_pid.execname a+b",
            "change $x: snapshot snapshot: ",
            "match sched|sched.waking: trace latency latency: prio",
            "max : trace traces ab: ",
        ]
    );
    // A name with one dot is checked when the action is made.
    let trigger = parse("hist:keys=pid:onmax($x).latency(lat.hex)");
    match trigger.actions.items()[0].act.as_ref().unwrap() {
        Act::Trace { params, .. } => {
            let expected = Error::own(HintText::ParamEvent, 32);
            assert_eq!(params[0].qualifier.unwrap_err(), expected);
        }
        _ => panic!("no trace action"),
    }
}

#[test]
fn limits_of_actions() {
    // Accepted, but with an entry in the log.
    let note = |marked: &str| {
        let (before, after) = marked.split_once('^').unwrap_or((marked, ""));
        let written = format!("{before}{after}");
        accepted(&written);
        let note = parse(&written).note();
        let expected = Hint {
            text: HintText::ParenAdded,
            caret: before.len(),
        };
        assert_eq!(note, marked.contains('^').then_some(expected), "{marked}");
    };
    note("hist:keys=pid:onmax($x).save(pid^");
    note("hist:keys=pid:onmax($x).trace(pid^:size=128");
    note("hist:keys=pid:onmax($x).save(pid):onmatch(sched.sched_waking).a_b(pid^ if pid == 1");
    note("hist:keys=pid:onmax($x).save(pid)");
    note("hist:keys=pid:onmax($x).trace(pid)x");

    let params = |count: usize| vec!["ab"; count].join(",");
    accepted(&format!("hist:keys=pid:onmax($x).save({})", params(64)));
    accepted(&format!("hist:keys=pid:onmax($x).trace({})", params(65)));

    let many = |count: usize| ":onmax($x).save(pid)".repeat(count);
    accepted(&format!("hist:keys=pid{}", many(8)));
}

#[test]
fn commands_of_the_kernel() {
    use HintText::*;
    for (written, hint, caret) in [
        ("", NoCommand, 0),
        (" \n", NoCommand, 0),
        ("!", NoCommand, 0),
        (":", NoCommand, 0),
        ("nosuch", UnknownCommand, 0),
        ("traceonn:5", UnknownCommand, 0),
        ("keys=pid", NoHist, 0),
        ("his:vals=lat:keys=pid", NoHist, 13),
        ("hist;keys=pid", NoHist, 5),
        ("! hist:keys=pid", NoHist, 6),
        ("traceon:keys=", Invalid, 0),
        ("enable_event:a:b", Invalid, 0),
    ] {
        let error = Command::parse(written.as_bytes()).refused(EINVAL);
        assert_eq!(error, Error::own(hint, caret), "{written}");
    }
    let exists = Command::parse(b"traceon").refused(EEXIST);
    assert_eq!(exists, Error::own(Exists, 0).with(EEXIST));
}

/// C's names of the texts, as `HIST_ERR_…`.
fn c_name(text: ErrorText) -> String {
    let mut name = String::new();
    for letter in format!("{text:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_uppercase());
    }
    name
}

#[test]
fn error_texts() {
    assert_eq!(ErrorText::ALL.len(), 48);
    let all = ErrorText::ALL.iter().map(|text| text.as_str());
    let own = HintText::ALL.iter().map(|text| text.as_str());
    let mut texts: Vec<_> = all.chain(own).collect();
    let count = texts.len();
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), count);
    assert!(texts.iter().all(|text| !text.is_empty() && text.is_ascii()));

    let Some(source) = kernel_source() else {
        return;
    };
    let source = fs::read_to_string(source.join("kernel/trace/trace_events_hist.c")).unwrap();
    let table = source.split("#define ERRORS").nth(1).unwrap();
    let table = table.split("#undef C").next().unwrap();
    let theirs: Vec<_> = table
        .split("C(")
        .skip(2)
        .map(|row| {
            let (name, text) = row.split_once(',').unwrap();
            let text = text.split('"').nth(1).unwrap();
            (name.to_owned(), text.to_owned())
        })
        .collect();
    let ours: Vec<_> = (ErrorText::ALL.iter())
        .map(|&text| (c_name(text), text.as_str().to_owned()))
        .collect();
    assert_eq!(ours, theirs);
}

/// Triggers that C accepts, if their events and variables exist.
const ACCEPTED: &[&str] = &[
    "hist:keys=pid",
    "hist:key=comm if comm == \"sleep\"",
    "hist:keys=skbaddr.hex:vals=len if len > 4096",
    "hist:keys=call_site.sym-offset:val=bytes_req:sort=bytes_req.descending",
    "hist:keys=call_site.sym:values=bytes_req,bytes_alloc:sort=bytes_alloc.descending",
    "hist:keys=common_stacktrace:values=bytes_req,bytes_alloc:sort=bytes_alloc",
    "hist:key=common_pid.execname:val=count:sort=count.descending",
    "hist:key=id.syscall,common_pid.execname:val=hitcount:sort=id,hitcount if id == 16",
    "hist:key=child_comm:val=hitcount:size=256:pause",
    "hist:name=foo:keys=skbaddr.hex:vals=len:clear",
    "hist:keys=pid,prio,lat.log2:sort=lat",
    "hist:keys=lat.buckets=10:vals=hitcount.percent,len.graph:nohitcount",
    "hist:timer_pid=common_pid:key=timer_pid:clock=mono",
    "hist:keys=pid:ts0=common_timestamp.usecs,b=field1:vals=$ts0,$b",
    "hist:keys=next_pid:timestamp_secs=common_timestamp/$us_per_sec:us_per_sec=1000000",
    "hist:keys=next_pid:wakeup_lat=common_timestamp.usecs-sched.sched_wakeup.$ts0\
     :onmatch(sched.sched_waking).wakeup_latency($wakeup_lat,next_pid,sched.sched_waking.prio)",
    "hist:keys=prev_pid:delta=common_timestamp.usecs-$ts,s=$st\
     :onmax($delta).trace(block_lat,prev_pid,$delta,$s)",
    "hist:keys=delta.buckets=100,stack.stacktrace:sort=delta",
    "hist:keys=comm:newprio=prio:onchange($newprio).save(comm,prio)\
     :onchange($newprio).snapshot() if comm==\"ping\"",
    "hist:keys=common_pid:x=-(a+b*2)",
    "hist:keys=$testpid:testpid=pid:onmatch(sched.sched_wakeup_new).wakeup_new_test($testpid)",
];

/// The folder of the kernel's source, from `RHIST_KERNEL_SOURCE`.
fn kernel_source() -> Option<PathBuf> {
    std::env::var_os("RHIST_KERNEL_SOURCE").map(PathBuf::from)
}

/// The first error in a tree.
fn first_error(trigger: &Trigger) -> Option<Error> {
    fn in_expr(expr: &Expr) -> Option<Error> {
        match expr {
            Expr::Bad { error, .. } => Some(*error),
            Expr::Negation { operand, .. } => in_expr(operand),
            Expr::Binary { left, right, .. } => in_expr(left).or_else(|| in_expr(right)),
            _ => None,
        }
    }
    fn in_params(params: &[Param]) -> Option<Error> {
        (params.iter()).find_map(|param| param.qualifier.err().or_else(|| in_expr(&param.atom)))
    }
    let act = |action: &Action| match action.act.as_ref() {
        Ok(Act::Save { params, .. } | Act::Trace { params, .. }) => in_params(params),
        Ok(Act::Snapshot { .. }) => None,
        Err(error) => Some(*error),
    };
    let exprs =
        |exprs: &ParsedList<Expr>| (exprs.iter()).find_map(|expr| expr.map_or_else(Some, in_expr));
    (trigger.actions.iter())
        .find_map(|action| action.map_or_else(Some, act))
        .or_else(|| exprs(&trigger.vals))
        .or_else(|| {
            let mut vars = trigger.vars.iter();
            vars.find_map(|var| var.map_or_else(Some, |var| in_expr(&var.expr)))
        })
        .or_else(|| exprs(&trigger.keys))
        .or_else(|| {
            let mut sort = trigger.sort.iter();
            sort.find_map(|key| key.map_or_else(Some, |key| key.order.err()))
        })
}

#[track_caller]
fn is_well_formed(written: &str) {
    if let Some(error) = first_error(&parse(written)) {
        panic!("{written}: {error:?}");
    }
}

#[test]
fn accepted_triggers() {
    ACCEPTED.iter().for_each(|written| is_well_formed(written));
}

#[test]
fn no_memory() {
    for written in ACCEPTED {
        let command = Command::parse(written.as_bytes());
        let (text, allocations) = fault::each(
            || command.text(),
            |result| assert!(result.is_err(), "{written}"),
        );
        assert_eq!(&text.unwrap()[..], written.as_bytes());
        assert!(allocations > 0);

        let live = fault::live();
        let (trigger, allocations) = fault::each(
            || Trigger::parse(params(written)),
            |result| assert_eq!(result.err(), Some(Error::silent(ENOMEM)), "{written}"),
        );
        assert!(trigger.is_ok());
        // At least two copies of the text, and a list of keys.
        assert!(allocations >= 3);
        drop(trigger);
        assert_eq!(fault::live(), live);
    }
}

/// The `hist` commands in quotes, with lines that end in a backslash joined.
fn quoted_triggers(text: &str) -> Vec<String> {
    let mut lines = String::new();
    for line in text.lines().map(str::trim_start) {
        match line.strip_suffix('\\') {
            // The document breaks lines after a colon and a blank, which C would refuse.
            Some(line) if line.ends_with(": ") => lines.push_str(line.trim_end()),
            Some(line) => lines.push_str(line),
            None => lines.extend([line, "\n"]),
        }
    }
    let mut triggers = Vec::new();
    for line in lines.lines() {
        for (at, _) in line.match_indices("hist:") {
            let before = line[..at].trim_end_matches('!');
            let quote = before
                .chars()
                .next_back()
                .filter(|byte| "'\"".contains(*byte));
            let Some((trigger, _)) = quote.and_then(|quote| line[at..].split_once(quote)) else {
                continue;
            };
            // Three dots stand for omitted text.
            if trigger.contains("key") && !trigger.contains("...") {
                triggers.push(trigger.replace("\\$", "$"));
            }
        }
    }
    triggers
}

#[test]
fn documented_triggers() {
    let Some(source) = kernel_source() else {
        return;
    };
    let text = fs::read_to_string(source.join("Documentation/trace/histogram.rst")).unwrap();
    let triggers = quoted_triggers(&text);
    assert!(triggers.len() > 50, "{}", triggers.len());
    triggers.iter().for_each(|written| is_well_formed(written));
}

fn test_cases(folder: &Path, cases: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            test_cases(&path, cases);
        } else if path.extension().is_some_and(|extension| extension == "tc") {
            cases.push(path);
        }
    }
}

#[test]
fn selftests_triggers() {
    let Some(source) = kernel_source() else {
        return;
    };
    let mut cases = Vec::new();
    let folder = "tools/testing/selftests/ftrace/test.d/trigger";
    test_cases(&source.join(folder), &mut cases);
    assert!(cases.len() > 30, "{}", cases.len());

    let (mut good, mut bad) = (0, 0);
    for case in cases {
        let text = fs::read_to_string(&case).unwrap();
        let name = case.file_name().unwrap().to_str().unwrap();
        for written in quoted_triggers(&text) {
            // The cases that mark the position of the caret. Errors beyond the syntax are left to
            // the code that builds the histogram.
            if let Some((before, after)) = written.split_once('^') {
                let written = format!("{before}{after}");
                let error = match Trigger::parse(params(&written)) {
                    Ok(trigger) => first_error(&trigger),
                    Err(error) => Some(error),
                };
                if let Some(error) = error {
                    assert_eq!(error.caret, before.len(), "{written}");
                    bad += 1;
                }
                continue;
            }
            if name == "trigger-action-hist-xfail.tc" {
                let error = Trigger::parse(params(&written))
                    .map_or_else(Some, |trigger| first_error(&trigger));
                assert_eq!(error.unwrap().text, Some(ErrorText::ActionMismatch));
                bad += 1;
                continue;
            }
            is_well_formed(&written);
            good += 1;
        }
    }
    assert!(good > 60 && bad > 6, "{good} {bad}");
}
