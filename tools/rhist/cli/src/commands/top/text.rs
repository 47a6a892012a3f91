// SPDX-License-Identifier: MIT OR Apache-2.0

//! Draws texts that may be longer than the screen: help, and the triggers.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::keyboard::KEYS;
use super::paint;
use super::paint::Paint;
use super::paint::safe;
use super::state::State;

/// Explanation of columns and figures, below the keys of the keyboard.
const ABOUT: &str = "Rates, p50 and p99 are of the interval; max is the largest value since the start, bold if it is from \
this interval. change is against the interval before, or against the baseline, with which also p50 and p99 are then \
compared. cost is that of all hits of the triggers, as measured on this machine; fill is that of the fullest histogram: when \
it is full, hits of new keys are dropped.";

/// A paragraph, and its style.
type Paragraph = (String, Style);

/// Help: keys of the keyboard, and the meaning of the figures.
pub fn help(paint: &Paint) -> Vec<Paragraph> {
    let mut paragraphs = vec![("Keys".into(), paint.look.strong())];
    for (keys, what) in KEYS {
        paragraphs.push((format!("{keys:>20}  {what}"), Style::new()));
    }
    paragraphs.push((String::new(), Style::new()));
    paragraphs.push((ABOUT.into(), Style::new()));
    paragraphs
}

/// Commands written to the kernel, and notes.
pub fn triggers(state: &State, paint: &Paint) -> Vec<Paragraph> {
    let mut paragraphs = vec![("Triggers".into(), paint.look.strong())];
    let question = &state.question;
    for trigger in &question.triggers {
        paragraphs.push((safe(trigger), Style::new()));
    }
    if question.triggers.is_empty() {
        paragraphs.push(("none are known".into(), Style::new()));
    }
    if !question.notes.is_empty() {
        paragraphs.push((String::new(), Style::new()));
        paragraphs.push(("Notes".into(), paint.look.strong()));
    }
    for note in &question.notes {
        paragraphs.push((safe(note), Style::new()));
    }
    paragraphs
}

/// Draws paragraphs into an area, starting with line `scroll`. Returns the largest useful value of
/// `scroll`.
pub fn draw(paragraphs: &[Paragraph], scroll: u16, paint: &mut Paint, area: Rect) -> u16 {
    let lines = paragraphs.iter().flat_map(|(text, style)| {
        let lines = paint::wrap(&paint.look.text(text), area.width);
        lines.into_iter().map(move |line| (line, *style))
    });
    let lines: Vec<_> = lines.collect();
    let last = lines.len().saturating_sub(area.height.into());
    let last = u16::try_from(last).unwrap_or(u16::MAX);
    let shown = lines.iter().skip(scroll.min(last).into());
    for (y, (line, style)) in (area.y..area.bottom()).zip(shown) {
        paint.text(area.x, y, area.width, line, *style);
    }
    last
}
