// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads `hist`, the text for people, from C, and from rhist where it prints the same.
//!
//! The trigger line says which names and kinds of keys and values to expect, since strings may
//! contain any characters. The text does not show everything:
//!
//! * numbers are printed unsigned, so a negative one reads as a large one;
//! * spaces at the end of a string look like its padding;
//! * sums with `.percent` or `.graph`, and averages, are [`crate::table::Value::Unknown`];
//! * distributions come without buckets, so they have no quantiles;
//! * losses are limited to hits without an entry and, in rhist, values without a bucket.

use std::io::BufRead;

use crate::table::Forgets;
use crate::table::Histogram;
use crate::table::Key;
use crate::table::Other;
use crate::table::ReadError;

mod entry;
mod layout;
mod scanner;

use layout::Layout;
use scanner::Scanner;

/// Begin of the last row, with the counts of keys without one. No key has a name that begins so.
const OTHER: &[u8] = b"{ other }";

/// Reads all histograms of a `hist` file. An empty file has none.
pub fn read(reader: impl BufRead) -> Result<Vec<Histogram>, ReadError> {
    let mut text = Scanner::new(reader);
    let mut histograms = Vec::new();
    loop {
        while text.take(b"\n")? {}
        if text.is_at_end()? {
            return Ok(histograms);
        }
        let (mut histogram, layout) = header(&mut text)?;
        while text.is_at(b"{ ")? {
            // Looks at no more than the line.
            let row = match text.is_at(b"{ o")? && text.take(OTHER)? {
                true => layout.other(&mut text)?,
                false => layout.entry(&mut text)?,
            };
            histogram.table.rows.push(row);
        }
        totals(&mut text, &mut histogram)?;
        histograms.push(histogram);
    }
}

/// Reads the lines before the entries, and from them the layout of the entries.
fn header<R: BufRead>(text: &mut Scanner<R>) -> Result<(Histogram, Layout), ReadError> {
    let begin: [&[u8]; 3] = [b"# event histogram\n", b"#\n", b"# trigger info: "];
    for part in begin {
        if !text.take(part)? {
            return Err(text.unknown("expected the header of a histogram"));
        }
    }
    let (line, is_whole) = text.line()?;
    if !is_whole {
        return Err(text.incomplete());
    }
    let header = layout::read(&line).map_err(|what| text.wrong(what))?;
    if !text.take(b"#\n\n")? {
        return Err(text.incomplete());
    }
    Ok(header)
}

/// Reads the lines after the entries.
fn totals<R: BufRead>(text: &mut Scanner<R>, histogram: &mut Histogram) -> Result<(), ReadError> {
    // The line of a snapshot by an action may come first.
    if text.is_at(b"\nSnapshot taken")? {
        text.take(b"\n")?;
        while !text.is_at(b"\nTotals:\n")? {
            if text.is_at_end()? {
                return Err(text.incomplete());
            }
            text.line()?;
        }
    }
    if !text.take(b"\nTotals:\n")? {
        return Err(match text.is_at_end()? || text.is_at(b"# event histogram")? {
            true => text.incomplete(),
            false => text.unknown("expected an entry or the totals"),
        });
    }
    let (mut hits, mut dropped, mut hidden) = (None, None, 0);
    let mut folded = 0;
    while text.take(b"    ")? {
        let name = text.while_in(|byte| !b":\n".contains(byte))?;
        text.expect(b":")?;
        let number = text.number(10)?;
        if !text.take(b"\n")? {
            return Err(text.incomplete());
        }
        match name.as_slice() {
            b"Hits" => hits = Some(number),
            b"Entries" => histogram.entries = number,
            b"Dropped" => dropped = Some(number),
            b"Not shown" => hidden = number,
            b"Folded" => folded = number,
            b"Expired" | b"Recycled" => histogram.forgets = Some(Forgets::default()),
            b"Without bucket" => histogram.table.losses.no_bucket = Some(number),
            _ => (),
        }
    }
    let (Some(hits), Some(dropped)) = (hits, dropped) else {
        return Err(text.incomplete());
    };
    let rows = histogram.table.entries();
    let shown = histogram.entries.saturating_sub(hidden);
    if rows != shown {
        return Err(text.wrong(format!("entries before this line: expected {shown}, found {rows}")));
    }
    // The row is the sum of three.
    let mut others = histogram.table.rows.iter_mut().filter(|row| row.other().is_some());
    if let Some(other) = others.next().filter(|other| other.hits > folded) {
        other.keys.fill(Key::Other(Other::Expired));
    }
    histogram.hits = hits;
    histogram.table.losses.dropped = dropped;
    Ok(())
}

#[cfg(test)]
mod tests;
