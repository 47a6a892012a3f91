// SPDX-License-Identifier: MIT OR Apache-2.0

use proptest::collection::btree_map;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::question::Interval;
use crate::table::Column;
use crate::table::Frame;
use crate::table::Text;
use crate::table::Time;

fn question() -> Question {
    Question {
        name: "runqlat".to_owned(),
        summary: "How long tasks wait for a CPU".to_owned(),
        noun: "waits".to_owned(),
        unit: Unit::Nanoseconds,
        host: "lab".to_owned(),
        kernel: "7.3.4".to_owned(),
        cpus: 4,
        ..Question::default()
    }
}

/// Two hills. `load` from 0 to 1 moves values to the upper one.
fn dist(load: f64) -> Dist {
    let mut dist = Dist::new(3);
    for i in 0..200 {
        let hill = |middle: f64, width: f64| (-((f64::from(i) - middle) / width).powi(2)).exp();
        let count = 4_000.0 * (1.0 - load * 0.5) * hill(60.0, 12.0) + 600.0 * load * hill(150.0, 15.0);
        dist.record(1_000.0f64.mul_add(1.07f64.powi(i), 0.0) as i128, count as u64);
    }
    dist
}

fn table(keys: &[&str], rows: Vec<Row>, value: Option<Unit>) -> Table {
    let column = |name: &str, unit| Column {
        name: name.to_owned(),
        unit,
        ..Column::default()
    };
    Table {
        keys: keys.iter().map(|name| column(name, Unit::Plain)).collect(),
        values: value.iter().map(|unit| column("wait", *unit)).collect(),
        rows,
        ..Table::default()
    }
}

fn row(keys: Vec<Key>, hits: u64, values: Vec<Value>) -> Row {
    Row {
        keys: keys.into(),
        hits,
        values,
        worst: None,
        begin: None,
        last_ns: None,
    }
}

fn text(text: &str) -> Key {
    Key::Text(Text::from(text))
}

fn intervals(count: u64, dist: impl Fn(u64) -> Dist) -> Vec<Interval> {
    let time = |seconds: u64| Time {
        monotonic_ns: 5_000_000_000 + seconds * 1_000_000_000,
        ..Time::default()
    };
    let interval = |i| Interval {
        from: time(i),
        to: time(i + 1),
        delta: table(
            &[],
            vec![row(Vec::new(), 1, vec![Value::Dist(dist(i))])],
            Some(Unit::Nanoseconds),
        ),
        ..Interval::default()
    };
    (0..count).map(interval).collect()
}

fn stack(names: &str) -> Key {
    let frame = |name: &str| Frame {
        address: None,
        symbol: Some(name.to_owned()),
    };
    Key::Stack(names.split(';').rev().map(frame).collect())
}

/// Hits of stacks.
fn hits(stacks: &[(&str, u64)]) -> Table {
    let rows = stacks
        .iter()
        .map(|(names, hits)| row(vec![stack(names)], *hits, vec![]));
    table(&["stack"], rows.collect(), None)
}

/// Two stacks of `a` are in `b`, too, of which one has the same share.
fn flame_difference() -> String {
    let a = hits(&[
        ("entry;read;copy", 40),
        ("entry;read;lock;spin", 30),
        ("entry;write", 20),
        ("idle;halt", 10),
    ]);
    let b = hits(&[("entry;read;copy", 80), ("entry;write", 100), ("entry;poll", 20)]);
    let side = |name, table| Side {
        name,
        table,
        seconds: 60.0,
    };
    difference(&question(), &side("before.jsonl", &a), &side("after.jsonl", &b))
}

/// Title, colour and width of each box of a flame graph.
fn boxes(svg: &str) -> Vec<(String, String, f64)> {
    let boxes = svg.split("<rect ").skip(1).filter(|part| part.contains("data-span"));
    let part = |text: &str, from: &str, to: &str| text.split_once(from).unwrap().1.split_once(to).unwrap().0.to_owned();
    let parts = boxes.map(|text| {
        let width = part(text, " width=\"", "\"").parse().unwrap();
        (part(text, "<title>", "</title>"), part(text, "fill=\"", "\""), width)
    });
    parts.collect()
}

/// One picture of each kind, with typical contents.
fn pictures() -> Vec<(&'static str, String)> {
    let question = question();
    let load = |i: u64| if (30..50).contains(&i) { 1.0 } else { 0.1 };
    let comms = [
        "kworker/u8:3",
        "ksoftirqd/0",
        "rcu_preempt",
        "a <b> & \u{1b}[31m\u{202e}",
        "bash",
    ];
    let comms = |factor: u64| {
        let row = |(i, comm): (usize, &&str)| {
            row(
                vec![text(comm), Key::Number(i as i128)],
                12_345 * factor / (i as u64 + 1),
                vec![],
            )
        };
        table(&["comm", "cpu"], comms.iter().enumerate().map(row).collect(), None)
    };
    let stacks = [
        ("entry;do_syscall_64;ksys_read;vfs_read;pipe_read;schedule", 5_000),
        (
            "entry;do_syscall_64;ksys_read;vfs_read;ext4_file_read_iter;filemap_read",
            2_100,
        ),
        ("entry;do_syscall_64;do_futex;futex_wait;schedule", 3_200),
        ("ret_from_fork;kthread;worker_thread;schedule", 900),
    ];
    let stacks = stacks.map(|(names, us)| {
        let mut dist = Dist::new(3);
        dist.record(us * 1_000, 3);
        row(vec![text("sed"), stack(names)], 3, vec![Value::Dist(dist)])
    });
    let stacks = table(&["comm", "stack"], stacks.to_vec(), Some(Unit::Nanoseconds));
    let whole = |load| {
        table(
            &[],
            vec![row(Vec::new(), 1, vec![Value::Dist(dist(load))])],
            Some(Unit::Nanoseconds),
        )
    };
    let (before, after) = (whole(0.1), whole(0.8));
    let side = |name, table| Side {
        name,
        table,
        seconds: 60.0,
    };
    let mut signed = Dist::new(3);
    for value in [-5_000, -300, 0, 0, 7, 40_000] {
        signed.record(value, 2);
    }
    let cells = |text: &str, ink, is_reversed| -> Vec<Cell> {
        let style = Style {
            ink,
            is_reversed,
            is_bold: is_reversed,
        };
        let cell = |character: char| Cell {
            symbol: character.to_string(),
            width: if character == '漢' { 2 } else { 1 },
            style,
        };
        text.chars().map(cell).collect()
    };
    let lines = [
        [
            cells("top ", Ink::Cyan, false),
            cells("a<b>&  漢\u{1b}", Ink::Plain, false),
        ]
        .concat(),
        cells("rate  trend ▁█", Ink::Plain, true),
        cells(" ▂▂▄ ░░▓─", Ink::Blue, false),
        Vec::new(),
    ];
    vec![
        ("screen", screen("A <screen>", 14, &lines)),
        ("empty screen", screen("", 0, &[])),
        ("bars", bars(&question, &dist(0.5))),
        ("signed", bars(&question, &signed)),
        ("keys", of(&question, &comms(1))),
        ("heat_map", heat_map(&question, &intervals(80, |i| dist(load(i))))),
        ("flame", of(&question, &stacks)),
        (
            "difference",
            difference(&question, &side("before.jsonl", &before), &side("after.jsonl", &after)),
        ),
        (
            "rates",
            difference(
                &question,
                &side("before.jsonl", &comms(1)),
                &side("after.jsonl", &comms(2)),
            ),
        ),
        ("flame_difference", flame_difference()),
        ("empty bars", bars(&question, &Dist::default())),
        ("empty keys", keys(&question, &Table::default())),
        ("empty heat map", heat_map(&question, &[])),
        ("empty flame", flame(&question, &table(&["stack"], vec![], None))),
    ]
}

/// Returns whether all tags are closed in order, and each `&` begins an entity.
fn is_well_formed(svg: &str) -> bool {
    let mut open = Vec::new();
    let mut parts = svg.split('<');
    if parts.next() != Some("") {
        return false;
    }
    for part in parts {
        let Some((tag, text)) = part.split_once('>') else {
            return false;
        };
        let entities = part.split('&').skip(1);
        let are_entities = entities.into_iter().all(|entity| {
            ["amp;", "lt;", "gt;", "quot;"]
                .iter()
                .any(|known| entity.starts_with(known))
        });
        let is_text = |text: &str| text.chars().all(|c| c == '\n' || !c.is_control());
        if !are_entities || text.contains('>') || !is_text(part) || tag.matches('"').count() % 2 == 1 {
            return false;
        }
        match (tag.strip_prefix('/'), tag.ends_with('/')) {
            (Some(name), _) if open.pop() != Some(name) => return false,
            (None, false) => open.push(tag.split(' ').next().unwrap_or_default()),
            _ => (),
        }
    }
    open.is_empty()
}

#[test]
fn pictures_are_well_formed() {
    assert!(!is_well_formed("<a><b></a></b>") && !is_well_formed("<a>&nbsp;</a>") && !is_well_formed("<a b=\"></a>"));
    for (name, svg) in pictures() {
        assert!(is_well_formed(&svg), "{name}: {svg}");
        for word in ["NaN", "inf"] {
            assert!(
                !svg.contains(&format!("\"{word}")) && !svg.contains(&format!(" {word}")),
                "{name}: {svg}"
            );
        }
    }
}

#[test]
fn a_picture_is_what_it_was() {
    let pictures = pictures();
    for of in ["keys", "flame", "screen"] {
        let (_, svg) = pictures.iter().find(|(name, _)| *name == of).unwrap();
        let shapes = svg.split_once("<style>").map_or(svg.as_str(), |(shapes, _)| shapes);
        insta::assert_snapshot!(of, shapes);
    }
}

#[test]
fn only_flame_graphs_have_a_script() {
    for (name, svg) in pictures() {
        let [style, script] = ["style", "script"].map(|tag| {
            let (_, rest) = svg.split_once(&format!("<{tag}>"))?;
            rest.split_once(&format!("</{tag}>"))
        });
        let is_flame = name.starts_with("flame");
        assert_eq!((style.is_some(), script.is_some()), (is_flame, is_flame), "{name}");
        if let (Some((style, _)), Some((script, rest))) = (style, script) {
            assert_eq!(rest, "\n</svg>\n");
            assert!(style.len() + script.len() < 5_000, "{} {}", style.len(), script.len());
            for outside in ["http", "url(", "import", "eval", "Function(", "innerHTML", "fetch"] {
                assert!(!style.contains(outside) && !script.contains(outside), "{outside}");
            }
            // It has the lengths of the picture.
            let lengths = format!(
                "margin = {MARGIN}, room = {}, character = {};",
                1200.0 - 2.0 * MARGIN,
                svg::CHARACTER
            );
            assert!(script.contains(&lengths), "{lengths}");
        }
    }
}

#[test]
fn names_in_a_flame_are_text() {
    let long = "x".repeat(10_000);
    let names = [
        "</script><script>alert(1)</script>",
        "a\" onclick=\"b",
        "' & \u{1b}[2J",
        "]]>",
        &long,
    ];
    let svg = flame(&question(), &hits(&[(&names.join(";"), 3)]));
    assert!(is_well_formed(&svg), "{svg}");
    assert_eq!(
        (svg.matches("<script>").count(), svg.matches("</script>").count()),
        (1, 1)
    );
    let titles: Vec<_> = boxes(&svg).into_iter().map(|(title, ..)| title).collect();
    assert_eq!(
        titles[1],
        "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;: 3, 100.0 %"
    );
    assert_eq!(titles[3], "' &amp; \\u{1b}[2J: 3, 100.0 %");
    assert_eq!(titles[5], "x".repeat(479) + "…: 3, 100.0 %");
}

#[test]
fn functions_of_a_flame_have_no_offset_and_ends_are_grey() {
    let stacks = [
        "operator+(A)+0x1/0x20;f+0x1/0x20",
        "operator+(A)+0x9/0x20;f+0x8/0x20",
        "(no rules);(a)::b()",
    ];
    let rows = stacks
        .map(|names| row(vec![text("(sd-pam)"), stack(names)], 1, vec![]))
        .to_vec();
    let boxes = boxes(&flame(&question(), &table(&["comm", "stack"], rows, None)));
    let shown: Vec<_> = boxes
        .iter()
        .map(|(title, colour, _)| (title.split_once(": ").unwrap().0, colour == "#b8b8b8"))
        .collect();
    assert_eq!(
        shown,
        [
            ("all", false),
            ("(sd-pam)", false),
            ("(no rules)", true),
            ("(a)::b()", false),
            ("operator+(A)", false),
            ("f", false)
        ]
    );
}

/// A program's stack is below the kernel's, if it is the key before it.
#[test]
fn stacks_of_a_row_are_on_top_of_each_other() {
    let keys = vec![stack("main;read"), stack("entry;vfs_read"), text("sed")];
    let rows = vec![row(keys, 1, vec![])];
    let boxes = boxes(&flame(&question(), &table(&["ustack", "stack", "comm"], rows, None)));
    let names = boxes.iter().map(|(title, ..)| title.split_once(": ").unwrap().0);
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["all", "sed", "main", "read", "entry", "vfs_read"]
    );
}

#[test]
fn a_difference_of_stacks_has_both_numbers() {
    let boxes = boxes(&flame_difference());
    let shown = boxes
        .iter()
        .map(|(title, colour, width)| format!("{colour} {width:6} {title}"));
    insta::assert_snapshot!(shown.collect::<Vec<_>>().join("\n"), @r##"
    #ececec 1167.5 all: A 100, 100.0 %; B 200, 100.0 %; +0.0 points
    #edbbb7 1167.5 entry: A 90, 90.0 %; B 200, 100.0 %; +10.0 points
    #edbbb7  116.3 poll: A 0, 0.0 %; B 20, 10.0 %; +10.0 points
    #5490e8  466.7 read: A 70, 70.0 %; B 80, 40.0 %; -30.0 points
    #ececec  466.7 copy: A 40, 40.0 %; B 80, 40.0 %; +0.0 points
    #ee5a4c  583.5 write: A 20, 20.0 %; B 100, 50.0 %; +30.0 points
    #ececec  466.7 only in A: A 40, 40.0 %, in stacks that B lacks
    #ececec  349.9 entry: A 30, 30.0 %, in stacks that B lacks
    #ececec  349.9 read: A 30, 30.0 %, in stacks that B lacks
    #5490e8  349.9 lock: A 30, 30.0 %, in stacks that B lacks
    #5490e8  349.9 spin: A 30, 30.0 %, in stacks that B lacks
    #5490e8  116.3 idle: A 10, 10.0 %, in stacks that B lacks
    #5490e8  116.3 halt: A 10, 10.0 %, in stacks that B lacks
    "##);
}

/// The texts of the pictures without a snapshot.
#[test]
fn pictures_have_their_texts() {
    let texts = |svg: &str| {
        let texts = svg.split("</text>").filter_map(|part| part.rsplit_once('>'));
        texts
            .map(|(_, text)| text.trim().to_owned())
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join(" | ")
    };
    let pictures = pictures();
    let shown = pictures.iter().map(|(name, svg)| format!("{name}: {}", texts(svg)));
    insta::assert_snapshot!(shown.collect::<Vec<_>>().join("\n"));
}

fn any_dist() -> impl Strategy<Value = Dist> {
    let buckets = |scale: u8| btree_map(-(128 << scale)..=128i32 << scale, any::<u64>(), 0..40);
    let numbers = (
        any::<u64>(),
        any::<u64>(),
        proptest::option::of(any::<i128>()),
        any::<bool>(),
    );
    (0..=20u8, numbers)
        .prop_flat_map(move |(scale, numbers)| (Just(scale), Just(numbers), buckets(scale), buckets(scale)))
        .prop_map(|(scale, (count, zero, max, one_has_zero), positive, negative)| Dist {
            scale,
            count,
            zero,
            max,
            one_has_zero,
            positive: positive.into_iter().collect(),
            negative: negative.into_iter().collect(),
            ..Dist::default()
        })
}

#[test]
fn a_flame_has_the_widest_boxes() {
    let names = |i: u64| {
        (0..100)
            .map(|depth| format!("f{i}_{depth}"))
            .collect::<Vec<_>>()
            .join(";")
    };
    let rows = (0..400)
        .map(|i| row(vec![stack(&names(i))], 1_000 + i, vec![]))
        .collect();
    let svg = flame(&question(), &table(&["stack"], rows, None));
    let boxes = svg.matches("<rect").count();
    assert!((19_900..=20_000).contains(&boxes), "{boxes}");
    assert!(svg.contains("f399_99:") && !svg.contains("f0_0:"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn pictures_of_anything_are_bounded(dists in vec(any_dist(), 1..12), name in any::<String>()) {
        let question = Question { summary: name.clone(), host: name.clone(), ..question() };
        let most = 4 << 20;
        let svg = heat_map(&question, &intervals(dists.len() as u64, |i| dists[i as usize].clone()));
        prop_assert!(svg.len() < most && is_well_formed(&svg), "{} {svg:.2000}", svg.len());
        let svg = bars(&question, &dists[0]);
        prop_assert!(svg.len() < most && is_well_formed(&svg));
        let tables = [dists.first(), dists.last()].map(|dist| {
            table(&[], vec![row(vec![], 1, vec![Value::Dist(dist.unwrap().clone())])], Some(Unit::Bytes))
        });
        let side = |table| Side { name: &name, table, seconds: 0.0 };
        let svg = difference(&question, &side(&tables[0]), &side(&tables[1]));
        prop_assert!(svg.len() < most && is_well_formed(&svg));
    }

    #[test]
    fn flames_of_anything_are_bounded(names in vec(vec("\\PC{0,3}|[a-c]", 0..150), 0..12)) {
        let stack = |names: &Vec<String>| row(vec![stack(&names.join(";"))], u64::MAX, vec![]);
        let svg = flame(&question(), &table(&["stack"], names.iter().map(stack).collect(), None));
        prop_assert!(svg.len() < 8 << 20 && is_well_formed(&svg), "{}", svg.len());
        let tables = [names.get(1..).unwrap_or_default(), &names]
            .map(|names| table(&["stack"], names.iter().map(stack).collect(), None));
        let side = |table| Side { name: "a", table, seconds: 0.0 };
        let svg = difference(&question(), &side(&tables[0]), &side(&tables[1]));
        prop_assert!(svg.len() < 8 << 20 && is_well_formed(&svg), "{}", svg.len());
    }
}
