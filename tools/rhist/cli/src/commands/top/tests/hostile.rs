// SPDX-License-Identifier: MIT OR Apache-2.0

//! Any readings and any keys of the keyboard, on screens of any size.

use proptest::prelude::*;
use rhist_core::question::Cost;
use rhist_core::question::Fill;
use rhist_core::question::Question;
use rhist_core::question::Reading;
use rhist_core::table::Column;
use rhist_core::table::Dist;
use rhist_core::table::Fold;
use rhist_core::table::Key;
use rhist_core::table::Losses;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Text;
use rhist_core::table::Time;
use rhist_core::table::Unit;
use rhist_core::table::Value;
use rhist_core::table::Worst;

use super::sample;
use super::sample::Fed;
use crate::commands::top::input;
use crate::commands::top::keyboard;
use crate::commands::top::look::Look;

#[derive(Clone, Debug)]
enum Step {
    Press(input::Key),
    Read(Box<Reading>),
    Draw(u16, u16),
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("\x1b]0;owned\x07\x1b[2J".to_owned()),
        Just("a\u{301}漢\u{202e}\u{9b}31m👩‍👩‍👧".to_owned()),
        "\\PC{0,40}",
        any::<String>(),
    ]
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![
        any::<i64>().prop_map(|number| Key::Number(number.into())),
        name().prop_map(|name| Key::Text(Text::from(name.as_str()))),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| Key::Text(Text::from(&*bytes))),
        (any::<i64>(), name()).prop_map(|(pid, comm)| Key::Task {
            pid,
            comm: Text::from(comm.as_str())
        }),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let number = prop_oneof![any::<i64>().prop_map(i128::from), any::<u64>().prop_map(i128::from)];
    prop_oneof![
        number.clone().prop_map(Value::Number),
        Just(Value::Unknown),
        (
            0..=20u8,
            prop::collection::vec((number, any::<u64>()), 0..5),
            any::<u64>()
        )
            .prop_map(|(scale, values, lost)| {
                let mut dist = Dist::new(scale);
                values.iter().for_each(|&(value, count)| dist.record(value, count));
                dist.count = dist.count.saturating_add(lost & 1);
                Value::Dist(dist)
            }),
    ]
}

fn column() -> impl Strategy<Value = Column> {
    let unit = prop_oneof![
        Just(Unit::Plain),
        Just(Unit::Nanoseconds),
        Just(Unit::Microseconds),
        Just(Unit::Bytes)
    ];
    let fold = prop_oneof![Just(Fold::Sum), Just(Fold::Min), Just(Fold::Max)];
    (name(), unit, fold).prop_map(|(name, unit, fold)| Column { name, unit, fold })
}

fn reading() -> impl Strategy<Value = Reading> {
    let worst = (any::<i64>(), name(), key()).prop_map(|(value, name, key)| Worst {
        value: value.into(),
        saved: [(name.into(), key)].into(),
    });
    let row = (
        prop::collection::vec(key(), 0..3),
        any::<u64>(),
        prop::collection::vec(value(), 0..4),
        prop::option::of(worst),
    );
    let row = row.prop_map(|(keys, hits, values, worst)| Row {
        keys: keys.into(),
        hits,
        values,
        worst,
        begin: None,
        last_ns: None,
    });
    (
        prop::collection::vec(column(), 0..3),
        prop::collection::vec(column(), 0..4),
        prop::collection::vec(row, 0..6),
        [any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()],
        prop::option::of(any::<f64>()),
    )
        .prop_map(|(keys, values, rows, [a, b, c, d, e], event_ns)| Reading {
            table: Table {
                keys,
                values,
                rows,
                losses: Losses {
                    dropped: a,
                    dropped_starts: b,
                    no_bucket: Some(b),
                    unresolved: None,
                    missed: Some(c),
                    missed_hits: Some(d),
                    expired_starts: Some(a),
                },
                time: Time {
                    monotonic_ns: d,
                    ..Time::default()
                },
            },
            events: e,
            rejected: Some(a),
            cost: Cost {
                event_ns,
                rejected_ns: event_ns,
            },
            samples: None,
            fill: Fill {
                entries: a,
                size: b,
                is_of_starts: a % 2 == 0,
            },
        })
}

fn step() -> impl Strategy<Value = Step> {
    let code = prop_oneof![
        prop::sample::select("qwtbs/r<>123456789 ?hjkz漢".chars().collect::<Vec<_>>()).prop_map(input::Key::Char),
        prop::sample::select(vec![
            input::Key::Enter,
            input::Key::Esc,
            input::Key::Up,
            input::Key::Down,
            input::Key::PageUp,
            input::Key::PageDown,
            input::Key::Home,
            input::Key::End,
            input::Key::Backspace,
            input::Key::Control('a'),
        ]),
    ];
    prop_oneof![
        4 => code.prop_map(Step::Press),
        2 => reading().prop_map(|reading| Step::Read(Box::new(reading))),
        1 => (1..130u16, 1..50u16).prop_map(|(width, height)| Step::Draw(width, height)),
        1 => (1..12u16, 1..6u16).prop_map(|(width, height)| Step::Draw(width, height)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_no_control_character_is_drawn(
        steps in prop::collection::vec(step(), 1..30),
        name in name(),
        color in any::<bool>(),
        ascii in any::<bool>(),
    ) {
        let question = Question {
            name: name.clone(),
            summary: name.clone(),
            worst: format!("{{{name}}}"),
            triggers: vec![name.clone()],
            notes: vec![name.clone()],
            host: name.clone(),
            kernel: name.clone(),
            ..Question::default()
        };
        let mut state = Fed::new(question, Reading::default());
        state.recording = Some(name.clone());
        for step in steps {
            match step {
                Step::Press(key) => {
                    keyboard::press(&mut state.state, &state.total, key);
                }
                Step::Read(reading) => {
                    sample::feed(&mut state, *reading);
                }
                Step::Draw(width, height) => {
                    let buffer = sample::draw(&mut state, Look { color, ascii }, width, height);
                    for cell in buffer.content() {
                        let symbol = cell.symbol();
                        prop_assert!(!symbol.chars().any(char::is_control), "{symbol:?}");
                        prop_assert!(!symbol.contains(['\u{202e}', '\u{2066}', '\u{200f}']), "{symbol:?}");
                        prop_assert!(!ascii || symbol.is_ascii(), "{symbol:?}");
                    }
                }
            }
        }
    }
}
