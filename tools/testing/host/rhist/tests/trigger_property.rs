// SPDX-License-Identifier: GPL-2.0

//! Whatever is written: no panic, no loss on the way through the printer, no memory left behind.

#[path = "trigger/shape.rs"]
mod shape;
#[path = "trigger/walk.rs"]
mod walk;

use kernel::fault;
use kernel::prelude::KVec;
use kernel::prelude::ENOMEM;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rhist::trigger::*;
use shape::shape;
use walk::walk;

fn printed(trigger: &Trigger) -> Vec<u8> {
    let mut out = KVec::new();
    trigger.print(&mut out).unwrap();
    out.to_vec()
}

/// Checks that a tree and the tree of its print are the same.
fn survives_print(trigger: &Trigger) {
    let print = printed(trigger);
    let show = String::from_utf8_lossy(&print).into_owned();
    match Trigger::parse(&print) {
        Ok(again) => {
            assert_eq!(shape(trigger), shape(&again), "{show}");
            assert_eq!(print, printed(&again), "{show}");
        }
        Err(error) => panic!("{show}: {error:?}"),
    }
}

/// Takes a command through everything there is.
fn exercise(written: &[u8]) {
    let command = Command::parse(written);
    let text = command.text().unwrap();
    let Ok(params) = command.hist() else { return };
    let (log, result) = walk(params);
    for error in &log {
        assert!(error.caret <= text.len());
        assert!(error.text.is_some());
    }
    assert!(!matches!(&result, Err(error) if error.errno == ENOMEM));
    if let Ok(trigger) = Trigger::parse(params) {
        assert_eq!(trigger.command(), &text[..]);
        survives_print(&trigger);
    }
}

/// Pieces of triggers, good and bad, in any order.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(
        &[
            "keys=",
            "key=",
            "vals=",
            "values=",
            "sort=",
            "size=",
            "name=",
            "clock=",
            "x=",
            "y=",
            "=",
            ":",
            ":",
            ",",
            ",",
            ".",
            ".",
            "+",
            "-",
            "*",
            "/",
            "-(",
            "(",
            ")",
            ")",
            "$",
            "$x",
            "pid",
            "prio",
            "lat",
            "name",
            "stack",
            "hitcount",
            "stacktrace",
            "common_pid",
            "common_timestamp",
            "nosuch",
            ".hex",
            ".sym-offset",
            ".log2",
            ".buckets=2",
            ".execname",
            ".percent",
            ".usecs",
            ".stacktrace",
            ".descending",
            "128",
            "0",
            "08",
            "0x10",
            "nohitcount",
            "pause",
            "clear",
            "onmatch(",
            "sched.sched_waking",
            "onmax($x).",
            "onchange($x)",
            "save(",
            "snapshot()",
            "trace(",
            "latency(",
            " ",
            "\t",
            " if ",
            "if",
            "\u{b}",
            "a.b.",
        ][..],
    );
    vec(piece, 0..24).prop_map(|pieces| pieces.concat().into_bytes())
}

fn name() -> impl Strategy<Value = String> {
    select(
        &[
            "pid",
            "lat",
            "name",
            "common_pid",
            "a b",
            "hitcount",
            "if",
            "",
        ][..],
    )
    .prop_map(str::to_owned)
}

fn atom() -> impl Strategy<Value = String> {
    let modifier = select(
        &[
            "",
            "",
            "",
            ".hex",
            ".sym",
            ".sym-offset",
            ".syscall",
            ".log2",
            ".usecs",
            ".buckets=0x10",
            ".bucket=3",
            ".percentage",
            ".graph",
            ".stacktrace",
            ".wrong",
        ][..],
    );
    let qualifier = || select(&["", "", "sched.sched_waking."][..]);
    prop_oneof![
        4 => (qualifier(), name(), modifier).prop_map(|(a, b, c)| format!("{a}{b}{c}")),
        1 => (qualifier(), "[a-z]{1,3}").prop_map(|(a, b)| format!("{a}${b}")),
        1 => any::<u64>().prop_map(|value| value.to_string()),
        1 => any::<u64>().prop_map(|value| format!("{value:#x}")),
        1 => Just("common_pid.execname".to_owned()),
    ]
}

fn expr() -> impl Strategy<Value = String> {
    atom().prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| format!("-({inner})")),
            (inner.clone(), select(&["+", "-", "*", "/"][..]), inner)
                .prop_map(|(left, operator, right)| format!("{left}{operator}{right}")),
        ]
    })
}

fn list<T: Strategy<Value = String>>(
    prefixes: &'static [&'static str],
    item: T,
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = String> {
    (select(prefixes), vec(item, count))
        .prop_map(|(prefix, items)| prefix.to_owned() + &items.join(","))
}

fn action() -> impl Strategy<Value = String> {
    let handler = select(
        &[
            "onmatch(sched.sched_waking)",
            "onmatch(a.b)",
            "onmax($lat)",
            "onchange($lat)",
            "onmax()",
        ][..],
    );
    let act = select(&["save", "snapshot", "trace", "latency", "saved", "traced"][..]);
    let param = select(
        &[
            "pid",
            "$lat",
            "a.b.pid",
            "a.b.$lat",
            "common_pid.hex",
            " pid ",
            "x",
        ][..],
    );
    (handler, act, vec(param, 0..4))
        .prop_map(|(handler, act, params)| format!("{handler}.{act}({})", params.join(",")))
}

fn token() -> impl Strategy<Value = String> {
    let sort = (
        name(),
        select(&["", ".ascending", ".descending", ".wrong"][..]),
    )
        .prop_map(|(name, order)| name + order);
    let assignment = (name(), expr()).prop_map(|(name, expr)| format!("{name}={expr}"));
    prop_oneof![
        list(&["keys=", "key="], expr(), 1..5),
        list(&["vals=", "val=", "values="], expr(), 1..5),
        list(&["sort="], sort, 1..4),
        list(&[""], assignment, 1..4),
        action(),
        (100u32..200_000).prop_map(|size| format!("size={size}")),
        select(
            &[
                "nohitcount",
                "NOHC",
                "pause",
                "cont",
                "continue",
                "clear",
                "x=1,y",
                "clock= "
            ][..]
        )
        .prop_map(str::to_owned),
        name().prop_map(|name| format!("name={name}x")),
        name().prop_map(|name| format!("clock= {name}x")),
    ]
}

/// Triggers that are mostly right.
fn triggers() -> impl Strategy<Value = String> {
    let filter = select(&["", "", " if pid == 1", "\tif  a if b"][..]);
    (
        list(&["keys="], expr(), 1..4),
        vec(token(), 0..6),
        any::<prop::sample::Index>(),
        filter,
    )
        .prop_map(|(keys, mut tokens, at, filter)| {
            tokens.insert(at.index(tokens.len() + 1), keys);
            tokens.join(":") + filter
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(written in vec(any::<u8>(), 0..512)) {
        exercise(&written);
        exercise(&[b"hist:", &written[..]].concat());
        exercise(&[b"hist:keys=pid:", &written[..]].concat());
    }

    #[test]
    fn any_pieces(written in pieces()) {
        exercise(&[b"hist:", &written[..]].concat());
        exercise(&[b"hist:keys=pid:", &written[..]].concat());
        exercise(&[b"hist:keys=", &written[..]].concat());
        exercise(&[b"hist:keys=pid:x=", &written[..]].concat());
    }

    #[test]
    fn any_trigger(written in triggers()) {
        exercise(format!("hist:{written}").as_bytes());
    }

    #[test]
    fn any_number(value: u64) {
        prop_assert_eq!(number(value.to_string().as_bytes()), Ok(value));
        prop_assert_eq!(number(format!("{value:#x}").as_bytes()), Ok(value));
        prop_assert_eq!(number(format!("0{value:o}").as_bytes()), Ok(value));
    }

    /// What the kernel's `if` is looked for with, one byte after the other.
    #[test]
    fn any_filter(text in "[if \tx]{0,8}", tail in "[if \tx]{0,6}") {
        let params = format!("k{text}:keys=pid{tail}");
        let params = params.trim_end_matches([' ', '\t']);
        let expected = (1..params.len()).find_map(|at| {
            let blank = |byte: Option<char>| matches!(byte, Some(' ' | '\t'));
            let (before, rest) = params.split_at(at);
            (rest.starts_with("if") && blank(before.chars().next_back())).then_some(())?;
            match rest.len() {
                0..=3 => Some(None),
                _ => blank(rest.chars().nth(2)).then_some(Some(at)),
            }
        });
        let found = match Trigger::parse(params.as_bytes()) {
            Ok(trigger) => Some(trigger.filter.map(|filter| filter.clause.start - 5)),
            Err(_) => None,
        };
        match expected {
            // Nothing after it.
            Some(None) => prop_assert_eq!(found, None),
            Some(Some(at)) if found.is_some() => prop_assert_eq!(found, Some(Some(at))),
            Some(Some(_)) => (),
            None => prop_assert!(matches!(found, None | Some(None))),
        }
    }

    /// Every allocation fails once.
    #[test]
    fn no_memory(written in triggers()) {
        let live = fault::live();
        let parse = || Trigger::parse(written.as_bytes());
        let (trigger, _) = fault::each(parse, |result| {
            assert_eq!(result.err(), Some(Error::silent(ENOMEM)));
        });
        if let Ok(trigger) = trigger {
            let print = || {
                let mut out = KVec::new();
                trigger.print(&mut out)
            };
            let (result, allocations) = fault::each(print, |result| {
                assert_eq!(result, Err(Error::silent(ENOMEM)));
            });
            prop_assert_eq!(result, Ok(()));
            prop_assert!(allocations > 0);
            drop(trigger);
        }
        prop_assert_eq!(fault::live(), live);
    }
}

/// Commands as long as a write may be, of what the grammar likes least.
#[test]
fn hostile() {
    let fill = |prefix: &str, unit: &str| {
        let mut text = prefix.to_owned();
        while text.len() + unit.len() < 4096 {
            text += unit;
        }
        text
    };
    for prefix in [
        "hist:keys=",
        "hist:keys=pid:x=",
        "hist:",
        "hist:keys=pid:onmax($x).save(",
    ] {
        for unit in [
            "(",
            "-(",
            "-",
            "(-",
            ")",
            ")-",
            "+",
            "a+",
            "+a",
            "a*",
            "*",
            "-(a)",
            ".",
            "a.",
            "$",
            "$a",
            ",",
            "a,",
            ",a=1",
            ":",
            "a=1:",
            ":a",
            "if",
            " if",
            "if ",
            " ifx",
            ".sym-offset",
            "-a.sym-offset",
            "onmax(",
            ":onmax($x).save(ab)",
            "a",
            "\u{b}",
            "0",
            "1",
            "0x",
            "=",
            "a=",
            "sort=a,",
            "ab,",
        ] {
            exercise(fill(prefix, unit).as_bytes());
        }
    }
    let nested = "-(".repeat(1000) + &")".repeat(1000);
    exercise(format!("hist:keys={nested}").as_bytes());
    exercise(format!("hist:keys=pid:x=-({nested})").as_bytes());
}
