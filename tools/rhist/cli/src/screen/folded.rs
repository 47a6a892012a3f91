// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints lines for flame graph tools: the keys of a row separated by `;`, a space, and the hits. A
//! stack follows the other keys, with its outermost function first. Offsets are left out, so that a
//! function is one frame wherever it calls from.

use std::collections::BTreeMap;
use std::io;
use std::io::Write;

use rhist_core::picture;
use rhist_core::table::Key;
use rhist_core::table::Table;
use rhist_core::table::shown;

use super::Screen;
use super::View;

/// Prints a line for each row, sorted by the keys. A row without keys gets the question's noun as
/// its name.
pub(super) fn print(screen: &Screen<'_>, out: &mut dyn Write, view: &View<'_>) -> io::Result<()> {
    for (line, hits) in lines(screen, view.table) {
        writeln!(out, "{line} {hits}")?;
    }
    Ok(())
}

/// Prints such a line for each row of one or both tables, with the hits in the first and in the
/// second one, as difffolded.pl does. Each table has the screen with its names.
pub(super) fn print_both(out: &mut dyn Write, sides: [(&Screen<'_>, &Table); 2]) -> io::Result<()> {
    let mut both: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (i, (screen, table)) in sides.into_iter().enumerate() {
        for (line, hits) in lines(screen, table) {
            both.entry(line).or_default()[i] = hits;
        }
    }
    for (line, [a, b]) in both {
        writeln!(out, "{line} {a} {b}")?;
    }
    Ok(())
}

/// The hits of each line.
fn lines(screen: &Screen<'_>, table: &Table) -> BTreeMap<String, u64> {
    let labels = screen.labels();
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for row in &table.rows {
        let mut frames = Vec::new();
        let mut stack = Vec::new();
        for (column, key) in table.keys.iter().zip(shown(&row.keys)) {
            match key {
                Key::Stack(functions) => stack.extend(functions.iter().rev().map(picture::function)),
                _ => frames.push(labels.key(column, key)),
            }
        }
        frames.append(&mut stack);
        if frames.is_empty() {
            frames.push(screen.noun());
        }
        // A `;` within a name would split the frame.
        let frames: Vec<_> = frames.iter().map(|frame| frame.replace(';', ":")).collect();
        let hits = lines.entry(frames.join(";")).or_insert(0);
        *hits = hits.saturating_add(row.hits);
    }
    lines
}
