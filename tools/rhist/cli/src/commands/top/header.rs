// SPDX-License-Identifier: MIT OR Apache-2.0

//! The first lines: question, cost, and losses.

use ratatui::style::Modifier;
use ratatui::style::Style;
use rhist_core::quantity::things;
use rhist_core::table::Unit;

use super::number;
use super::paint::Paint;
use super::paint::safe;
use super::paint::width;
use super::screenful;
use super::state::State;

/// Share of entries in use from which a histogram counts as nearly full.
const NEARLY_FULL: f64 = 0.9;

/// Draws the header into `height` lines. The figures come first; title and status need more lines.
pub fn draw(state: &State, paint: &mut Paint, height: u16) {
    let columns = paint.area().width;
    let figures = figures(state, paint);
    if height == 1 {
        paint.texts(0, 0, columns, &figures);
    }
    if height >= 3 {
        title(state, paint);
        paint.texts(0, 1, columns, &figures);
        let status = status(state, paint);
        paint.texts(0, 2, columns, &status);
    }
}

fn title(state: &State, paint: &mut Paint) {
    let question = &state.question;
    let look = paint.look;
    let columns = paint.area().width;
    let name = format!("rhist top {}", safe(&question.name));
    let end = paint.text(0, 0, columns, &name, look.strong());
    let end = paint.text(end, 0, columns, &format!("  {}", safe(&question.summary)), Style::new());
    let cpus = match question.cpus {
        0 => String::new(),
        1 => " · 1 CPU".into(),
        cpus => format!(" · {cpus} CPUs"),
    };
    let machine = format!("{} · {}{cpus}", safe(&question.host), safe(&question.kernel));
    let room = columns.saturating_sub(end + 2);
    if !question.kernel.is_empty() && width(&machine) <= room {
        paint.right(end + 2, 0, room, &machine, look.faint());
    }
}

fn figures(state: &State, paint: &Paint) -> Vec<(String, Style)> {
    let look = paint.look;
    let shown = state.shown();
    let plain = Style::new();
    let bold = plain.add_modifier(Modifier::BOLD);
    if shown.seconds == 0.0 {
        return vec![("waiting for the first interval".into(), plain)];
    }
    let mut texts = vec![
        ("events ".into(), plain),
        (format!("{}/s", number::short(shown.events, Unit::Plain)), bold),
        ("  cost ".into(), plain),
    ];
    match shown.cost {
        Some(cost) => {
            texts.push((number::percent(cost), bold));
            texts.push((" of a CPU".into(), plain));
        }
        None => texts.push(("not measured".into(), plain)),
    }
    let fill = shown.fill;
    if fill.size > 0 {
        let part = fill.entries as f64 / fill.size as f64;
        texts.push((
            if fill.is_of_starts { "  starts fill " } else { "  fill " }.into(),
            plain,
        ));
        texts.push(match part < NEARLY_FULL {
            true => (number::percent(part), bold),
            false => (format!("!{}", number::percent(part)), look.bad()),
        });
    }
    texts.push(("  losses".into(), plain));
    let before = texts.len();
    for (name, count) in screenful::losses(&shown.losses) {
        let count = number::short(count as f64, Unit::Plain);
        texts.push((format!(" !{count} {name}"), look.bad()));
    }
    if texts.len() == before {
        texts.push((" none".into(), look.good()));
    }
    texts
}

fn status(state: &State, paint: &Paint) -> Vec<(String, Style)> {
    let look = paint.look;
    let shown = state.shown();
    let plain = Style::new();
    let mut texts = Vec::new();
    if state.is_frozen() {
        texts.push(("FROZEN  ".into(), look.bad()));
    }
    if state.ended {
        texts.push(("END OF RECORDING  ".into(), look.strong()));
    }
    if !state.filter.is_empty() {
        texts.push((format!("filter {}  ", safe(&state.filter)), look.strong()));
    }
    if let Some(baseline) = &state.baseline {
        let seconds = number::seconds(baseline.seconds);
        texts.push((format!("against baseline of {seconds}  "), look.strong()));
    }
    if let Some(file) = &state.recording {
        texts.push((format!("recording to {}  ", safe(file)), look.strong()));
    }
    let keys = match (state.order.len(), shown.lines.len()) {
        (some, all) if some < all => format!("{some} of {}", things(all as u64, "keys")),
        (_, all) => things(all as u64, "keys"),
    };
    let interval = number::seconds(shown.seconds);
    texts.push((
        format!("{keys} · interval {interval} · {}", number::clock(shown.elapsed)),
        plain,
    ));
    texts
}
