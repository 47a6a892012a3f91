// SPDX-License-Identifier: MIT OR Apache-2.0

//! The screen: header, view and footer.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use rhist_core::question::Reading;

use super::header;
use super::heat_map;
use super::look::Look;
use super::paint::Paint;
use super::paint::safe;
use super::state::State;
use super::state::View;
use super::table;
use super::text;

/// Keys shown in the footer, the most important first.
const HINTS: &[(&str, &str)] = &[
    ("q", "quit"),
    ("?", "help"),
    ("Enter", "over time"),
    ("/", "filter"),
    ("< >", "sort"),
    ("Space", "freeze"),
    ("b", "baseline"),
    ("t", "triggers"),
    ("w", "record"),
];

/// Draws the whole screen, of any size. `total` is the one at the end of the last interval.
pub fn draw(state: &mut State, total: &Reading, look: Look, buffer: &mut Buffer) {
    let mut paint = Paint::new(buffer, look);
    let area = paint.area();
    let header = match area.height {
        10.. => 3,
        5.. => 1,
        _ => 0,
    };
    let footer = u16::from(area.height >= 3);
    header::draw(state, &mut paint, header);
    let body = Rect {
        y: header,
        height: area.height.saturating_sub(header + footer),
        ..area
    };
    match state.view {
        View::Table => table::draw(state, &total.table, &mut paint, body),
        View::HeatMap => heat_map::draw(state, total, &mut paint, body),
        View::Triggers => {
            let paragraphs = text::triggers(state, &paint);
            text_view(state, &paragraphs, &mut paint, body);
        }
        View::Help => {
            let paragraphs = text::help(&paint);
            text_view(state, &paragraphs, &mut paint, body);
        }
    }
    if footer > 0 {
        draw_footer(state, &mut paint, area);
    }
}

fn text_view(state: &mut State, paragraphs: &[(String, Style)], paint: &mut Paint, body: Rect) {
    state.set_page(body.height);
    let last = text::draw(paragraphs, state.scroll, paint, body);
    state.scroll = state.scroll.min(last);
}

fn draw_footer(state: &State, paint: &mut Paint, area: Rect) {
    let y = area.bottom() - 1;
    let plain = Style::new();
    if state.editing {
        let end = paint.text(
            0,
            y,
            area.width,
            &format!("/{}", safe(&state.filter)),
            paint.look.strong(),
        );
        let end = paint.text(end, y, 1, " ", paint.look.bar());
        let hint = "  Enter keeps it, Esc drops it";
        paint.text(end, y, area.width.saturating_sub(end), hint, paint.look.faint());
        return;
    }
    if let Some(message) = &state.message {
        paint.text(0, y, area.width, &safe(message), paint.look.strong());
        return;
    }
    let mut x = 0;
    for (key, what) in HINTS {
        let cells = (key.len() + 1 + what.len()) as u16;
        if x + cells > area.width {
            break;
        }
        x = paint.text(x, y, cells, key, paint.look.strong());
        x = paint.text(x + 1, y, cells, what, plain) + 2;
    }
}
