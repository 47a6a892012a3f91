// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints lines for flame graph tools: the keys of a row separated by `;`, a space, and the hits. A
//! stack follows the other keys, with its outermost function first. Offsets are left out, so that a
//! function is one frame wherever it calls from.

use std::collections::BTreeMap;
use std::io;
use std::io::Write;

use rhist_core::table::Frame;
use rhist_core::table::Key;
use rhist_core::table::shown;

use super::Screen;
use super::View;

/// Prints a line for each row, sorted by the keys. A row without keys gets the question's noun as
/// its name.
pub(super) fn print(screen: &Screen<'_>, out: &mut dyn Write, view: &View<'_>) -> io::Result<()> {
    let labels = screen.labels();
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for row in &view.table.rows {
        let mut frames = Vec::new();
        let mut stack = Vec::new();
        for (column, key) in view.table.keys.iter().zip(shown(&row.keys)) {
            match key {
                Key::Stack(functions) => stack.extend(functions.iter().rev().map(function)),
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
    for (line, hits) in lines {
        writeln!(out, "{line} {hits}")?;
    }
    Ok(())
}

fn function(frame: &Frame) -> String {
    let text = frame.to_string();
    match text.split_once('+') {
        Some((function, _)) if !function.is_empty() => function.to_owned(),
        _ => text,
    }
}
