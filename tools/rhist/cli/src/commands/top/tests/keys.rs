// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests the effects of keys.

use rhist_core::table::Dist;
use rhist_core::table::Key;
use rhist_core::table::Other;
use rhist_core::table::Row;
use rhist_core::table::Value;

use super::sample::feed;
use super::sample::press;
use super::sample::reading;
use super::sample::show;
use super::sample::state;
use crate::commands::top::keyboard::Request;
use crate::commands::top::line::Column;
use crate::commands::top::look::Look;
use crate::commands::top::state::State;
use crate::commands::top::state::View;

/// Keys shown, in order.
fn order(state: &State) -> Vec<&str> {
    state.order.iter().map(|&key| state.keys.label(key)).collect()
}

fn selected(state: &State) -> Option<&str> {
    state.selected.map(|key| state.keys.label(key))
}

#[test]
fn a_line_is_followed() {
    let mut state = state(reading, 2);
    press(&mut state, "<Down><Down><Down>");
    let name = selected(&state).unwrap().to_owned();
    let before = state.place();
    let moved = (3..20).any(|second| {
        feed(&mut state, reading(second));
        assert_eq!(order(&state)[state.place()], name);
        state.place() != before
    });
    assert!(moved);
    press(&mut state, "<Home>");
    assert_eq!((selected(&state), state.place()), (None, 0));
}

#[test]
fn any_column_sorts() {
    let mut state = state(reading, 8);
    press(&mut state, "1");
    let mut by_name = order(&state);
    assert!(by_name.is_sorted());
    by_name.reverse();
    let by_name: Vec<_> = by_name.into_iter().map(str::to_owned).collect();
    press(&mut state, "r");
    assert_eq!(order(&state), by_name);
    let mut seen = vec![];
    for _ in 0..state.columns.len() {
        press(&mut state, ">");
        seen.push(state.sort);
        let sort = state.sort;
        let numbers: Vec<_> = state
            .order
            .iter()
            .map(|&key| sort.number(state.shown().line(key).unwrap(), None))
            .collect();
        assert!(
            sort == Column::Key || numbers.is_sorted_by(|a, b| a >= b),
            "{sort:?} {numbers:?}"
        );
    }
    assert_eq!(seen, [&state.columns[1..], &state.columns[..1]].concat());
    press(&mut state, "<");
    assert_eq!(state.sort, Column::Max);
    press(&mut state, "9");
    assert_eq!(state.sort, Column::Max);
}

/// Keys without a line are one line, the last one, whatever sorts.
#[test]
fn others_come_last() {
    let with_others = |second| {
        let mut reading = reading(second);
        for (other, hits) in Other::ALL.into_iter().zip([5, 50_000, 1_000]) {
            let other = Row {
                keys: [Key::Other(other)].into(),
                hits: hits * second,
                values: vec![Value::Dist(Dist::new(3))],
                ..Row::default()
            };
            reading.table.rows.push(other);
        }
        reading
    };
    let mut state = state(with_others, 8);
    for _ in 0..state.columns.len() {
        for reversed in [false, true] {
            assert_eq!(state.reversed, reversed);
            assert_eq!(order(&state).last(), Some(&"other"), "{:?}", state.sort);
            assert_eq!(order(&state).iter().filter(|key| **key == "other").count(), 1);
            assert_eq!(order(&state).len(), 9);
            press(&mut state, "r");
        }
        press(&mut state, ">");
    }
    let other = *state.order.last().unwrap();
    assert_eq!(state.shown().line(other).unwrap().rate, 51_005.0);
}

#[test]
fn a_filter_grows_and_shrinks() {
    let mut state = state(reading, 2);
    let all = state.order.len();
    press(&mut state, "/NO");
    assert_eq!(order(&state), ["node"]);
    press(&mut state, "q");
    assert!(order(&state).is_empty());
    assert!(show(&mut state, Look::default(), 80, 24).contains(&format!("0 of {all} keys")));
    press(&mut state, "<BS><Enter>");
    assert_eq!(order(&state), ["node"]);
    assert!(!state.editing);
    press(&mut state, "<Esc>");
    assert_eq!(state.order.len(), all);
    press(&mut state, "/x<Esc>");
    assert_eq!((state.order.len(), state.editing), (all, false));
}

#[test]
fn frozen_is_what_is_shown_not_what_is_measured() {
    let mut state = state(reading, 5);
    press(&mut state, " ");
    let before = state.shown().clone();
    feed(&mut state, reading(6));
    assert_eq!(state.shown(), &before);
    press(&mut state, " ");
    assert_eq!(state.shown().pushed, before.pushed + 1);
    assert_eq!(state.history.pushed, 6);
}

#[test]
fn a_baseline_is_the_run_so_far() {
    let mut state = state(reading, 4);
    press(&mut state, "b");
    let node = state
        .order
        .iter()
        .copied()
        .find(|&key| state.keys.label(key) == "node")
        .unwrap();
    let hits = |second: u64| reading(second).table.rows.last().unwrap().hits as f64;
    assert_eq!(state.base(node).unwrap().rate, hits(4) / 4.0);
    feed(&mut state, reading(5));
    let line = state.shown().line(node).unwrap();
    let change = Column::Change.number(line, state.base(node).as_ref());
    assert_eq!(change, Some((hits(5) - hits(4)) / (hits(4) / 4.0) - 1.0));
    press(&mut state, "b");
    assert_eq!(state.baseline, None);
}

#[test]
fn views_come_and_go() {
    let mut state = state(reading, 2);
    for (keys, view) in [
        ("t", View::Triggers),
        ("?", View::Help),
        ("?", View::Table),
        ("<Enter>", View::HeatMap),
        ("<Esc>", View::Table),
        ("<Enter>/", View::Table),
        ("<Esc>t<Esc>", View::Table),
    ] {
        press(&mut state, keys);
        assert_eq!(state.view, view, "{keys}");
    }
    assert_eq!(press(&mut state, "w"), Some(Request::Record));
    assert_eq!(press(&mut state, "q"), Some(Request::Quit));
}
