// SPDX-License-Identifier: MIT OR Apache-2.0

//! From a file to its table.

use crate::error::Error;
use crate::frames::Fault;
use crate::frames::Frames;
use crate::image::Image;
use crate::image::Mapped;
use crate::rule::Rule;
use crate::rules::Draft;
use crate::rules::Rules;
use std::ops::Range;

/// A function in a segment of code.
struct Function {
    /// Where it begins in the file.
    offset: u64,
    addresses: Range<u64>,
    /// Offset of its entry in `.eh_frame`.
    entry: usize,
}

/// Compiles the unwind information of a program or library to a table.
///
/// A function whose entry is malformed is left out, and does not spoil others. If a function begins
/// in another one, the rest of the other one is left out, as unwinders look for the last function
/// that begins before an address. Of two that begin at the same place, the first entry counts.
///
/// # Errors
///
/// The file is not an ELF file of 64 bits for a supported architecture, it lacks unwind
/// information, or the table would be too large.
pub fn compile(image: &[u8]) -> Result<Rules, Error> {
    let image = Image::parse(image)?;
    let mut frames = Frames::new(image.machine, &image.eh_frame()?);
    let mut draft = Draft::new(image.machine);
    let (mut malformed, mut outside, mut overlapping) = (0, 0, 0);

    let code = image.code();
    let mut functions = Vec::new();
    for entry in frames.entries() {
        let entry = entry?;
        let addresses = match frames.addresses(entry) {
            Ok(addresses) => addresses,
            Err(Fault::File(error)) => return Err(error),
            Err(Fault::Malformed) => {
                malformed += 1;
                continue;
            }
        };
        if addresses.is_empty() {
            continue;
        }
        match place(&code, addresses, entry) {
            Some(function) => functions.push(function),
            None => outside += 1,
        }
    }
    functions.sort_by_key(|function| (function.offset, function.entry));
    functions.dedup_by(|later, first| {
        let is_same = later.offset == first.offset;
        overlapping += usize::from(is_same);
        is_same
    });

    let mut rules: Vec<(u64, Rule)> = Vec::new();
    for at in 0..functions.len() {
        let Function {
            offset,
            ref addresses,
            entry,
        } = functions[at];
        let mut size = addresses.end - addresses.start;
        if let Some(next) = functions.get(at + 1)
            && next.offset - offset < size
        {
            size = next.offset - offset;
            overlapping += 1;
        }
        let end = addresses.start + size;
        rules.clear();
        match frames.rules(entry, end, &mut rules) {
            Ok(()) => (),
            Err(Fault::File(error)) => return Err(error),
            Err(Fault::Malformed) => {
                malformed += 1;
                continue;
            }
        }
        let ends = rules.iter().skip(1).map(|&(start, _)| start).chain([end]);
        for (&(start, rule), end) in rules.iter().zip(ends) {
            draft.add(start - addresses.start + offset..end - addresses.start + offset, rule)?;
        }
    }

    let mut rules = draft.finish()?;
    (rules.malformed, rules.outside, rules.overlapping) = (malformed, outside, overlapping);
    Ok(rules)
}

/// Finds the place of a function in the file: in the segment in which it begins. What lies behind
/// that segment is left out.
fn place(code: &[Mapped], addresses: Range<u64>, entry: usize) -> Option<Function> {
    let behind = code.partition_point(|segment| segment.addresses.start <= addresses.start);
    let segment = code[..behind].last()?;
    segment.addresses.contains(&addresses.start).then(|| Function {
        offset: addresses.start - segment.addresses.start + segment.offset,
        addresses: addresses.start..addresses.end.min(segment.addresses.end),
        entry,
    })
}
