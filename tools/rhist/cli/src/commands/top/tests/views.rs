// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests the appearance of each view.

use insta::assert_snapshot;
use ratatui::style::Color;
use ratatui::style::Modifier;

use super::sample;
use super::sample::counts;
use super::sample::feed;
use super::sample::press;
use super::sample::reading;
use super::sample::show;
use super::sample::state;
use crate::commands::top::look::Look;
use crate::commands::top::picture;

const FULL: Look = Look {
    color: true,
    ascii: false,
};
const ASCII: Look = Look {
    color: false,
    ascii: true,
};

#[test]
fn table() {
    let mut state = state(reading, 40);
    press(&mut state, "<Down><Down>");
    assert_snapshot!("table_80x24", show(&mut state, FULL, 80, 24));
    assert_snapshot!("table_ascii", show(&mut state, ASCII, 80, 24));
    assert_snapshot!("table_40x10", show(&mut state, FULL, 40, 10));
    assert_snapshot!("table_120x40", show(&mut state, FULL, 120, 40));
    press(&mut state, "s>r");
    assert_snapshot!("table_medians_by_change_reversed", show(&mut state, FULL, 80, 12));
}

#[test]
fn table_without_distributions() {
    let mut state = state(counts, 3);
    assert_snapshot!("counts_80x24", show(&mut state, FULL, 80, 24));
    assert_snapshot!("counts_120x40", show(&mut state, FULL, 120, 40));
    press(&mut state, "<Enter>");
    assert_snapshot!("counts_over_time", show(&mut state, FULL, 80, 24));
}

#[test]
fn heat_map() {
    let mut state = state(reading, 100);
    press(&mut state, "/node<Enter><Enter>");
    assert_snapshot!("heat_map_80x24", show(&mut state, FULL, 80, 24));
    assert_snapshot!("heat_map_ascii", show(&mut state, ASCII, 80, 24));
    assert_snapshot!("heat_map_40x10", show(&mut state, FULL, 40, 10));
    assert_snapshot!("heat_map_120x40", show(&mut state, FULL, 120, 40));
}

#[test]
fn texts() {
    let mut state = state(reading, 2);
    press(&mut state, "t");
    assert_snapshot!("triggers_80x24", show(&mut state, FULL, 80, 24));
    assert_snapshot!("triggers_40x10", show(&mut state, FULL, 40, 10));
    press(&mut state, "?");
    assert_snapshot!("help_80x24", show(&mut state, FULL, 80, 24));
    press(&mut state, "<Down><Down><Down>");
    assert_snapshot!("help_scrolled", show(&mut state, ASCII, 40, 10));
}

#[test]
fn modes() {
    let mut state = state(reading, 10);
    press(&mut state, "b /ng");
    for second in 11..14 {
        feed(&mut state, reading(second));
    }
    state.recording = Some("rhist-20261126-064505.jsonl".into());
    assert_snapshot!("frozen_with_baseline_while_editing", show(&mut state, FULL, 120, 12));
    press(&mut state, "<Esc> ");
    state.ended = true;
    assert_snapshot!("baseline_at_the_end", show(&mut state, FULL, 80, 14));
}

#[test]
fn a_picture_of_the_screen() {
    let mut state = state(reading, 30);
    let svg = picture::draw(&mut state.state, &state.total, 80, 8);
    assert_snapshot!("picture", svg);
    press(&mut state, "/node<Enter><Enter>");
    let heat_map = picture::draw(&mut state.state, &state.total, 120, 40);
    assert!(heat_map.len() < 60_000, "{}", heat_map.len());
}

#[test]
fn before_the_first_interval() {
    assert_snapshot!("waiting", show(&mut state(reading, 0), FULL, 80, 12));
}

/// Style of the first character of a text on the screen.
fn style_of(text: &str, look: Look) -> (Color, Modifier) {
    let mut state = state(counts, 3);
    let at = show(&mut state, look, 80, 24)
        .lines()
        .enumerate()
        .find_map(|(y, line)| {
            let x = line.find(text)?;
            Some((line[..x].chars().count() as u16, y as u16))
        });
    let cell = &sample::draw(&mut state, look, 80, 24)[at.unwrap()];
    (cell.fg, cell.modifier)
}

#[test]
fn losses_stand_out() {
    assert_eq!(style_of("!37 k dropped", FULL), (Color::Red, Modifier::BOLD));
    assert_eq!(style_of("!37 k dropped", ASCII), (Color::Reset, Modifier::BOLD));
    assert_eq!(style_of("!100 %", FULL), (Color::Red, Modifier::BOLD));
}
