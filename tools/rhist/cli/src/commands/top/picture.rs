// SPDX-License-Identifier: MIT OR Apache-2.0

//! Draws the screen as a picture.

use std::env;
use std::io;
use std::io::Write;
use std::mem;

use ratatui::buffer;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::style::Modifier;
use rhist_core::picture;
use rhist_core::picture::Cell;
use rhist_core::picture::Ink;
use rhist_core::picture::Style;
use rhist_core::question::Reading;
use rhist_core::question::Source;

use super::batch;
use super::look::Look;
use super::options::Options;
use super::paint::width;
use super::screen;
use super::state::State;
use crate::signals::Signals;

/// Prints the last screen when the source ends, the time is over, or a signal arrives. Its size is
/// `COLUMNS` times `LINES`, by default 80×24.
pub fn run(source: &mut dyn Source, mut options: Options, signals: &Signals) -> anyhow::Result<()> {
    let mut state = State::new(source.question().clone(), mem::take(&mut options.names));
    batch::follow(source, &options, signals, |interval, source| {
        state.read(&interval, source.total());
        Ok(())
    })?;
    let size = |name: &str, default: u16, most: u16| {
        let size = env::var(name).ok().and_then(|text| text.parse().ok());
        size.map_or(default, |size: u16| size.clamp(1, most))
    };
    let (columns, lines) = (size("COLUMNS", 80, 400), size("LINES", 24, 200));
    io::stdout().write_all(draw(&mut state, source.total(), columns, lines).as_bytes())?;
    Ok(())
}

/// Draws the screen into a picture.
pub fn draw(state: &mut State, total: &Reading, columns: u16, lines: u16) -> String {
    let look = Look {
        color: true,
        ascii: false,
    };
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, lines));
    screen::draw(state, total, look, &mut buffer);
    let lines: Vec<_> = buffer.content().chunks(columns.max(1).into()).map(line).collect();
    let title = format!("rhist top {}: {}", state.question.name, state.question.summary);
    picture::screen(&title, columns, &lines)
}

fn line(cells: &[buffer::Cell]) -> Vec<Cell> {
    let mut line = Vec::with_capacity(cells.len());
    let mut rest = cells.iter();
    while let Some(cell) = rest.next() {
        let width = width(cell.symbol()).max(1);
        line.push(Cell {
            symbol: cell.symbol().to_owned(),
            width,
            style: Style {
                ink: ink(cell.fg),
                is_bold: cell.modifier.contains(Modifier::BOLD),
                is_reversed: cell.modifier.contains(Modifier::REVERSED),
            },
        });
        // Cells covered by a wide character.
        for _ in 1..width {
            rest.next();
        }
    }
    line
}

/// Translates the colours used by [`Look`].
fn ink(color: Color) -> Ink {
    match color {
        Color::DarkGray => Ink::Faint,
        Color::Blue => Ink::Blue,
        Color::Cyan => Ink::Cyan,
        Color::Green => Ink::Green,
        Color::Red => Ink::Red,
        _ => Ink::Plain,
    }
}
