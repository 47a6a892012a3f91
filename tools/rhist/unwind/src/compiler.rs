// SPDX-License-Identifier: MIT OR Apache-2.0

//! From a file to its table.

use crate::code;
use crate::eh_frame::EhFrame;
use crate::error::Error;
use crate::frames::Fault;
use crate::frames::Frames;
use crate::rule::Rule;
use crate::rules::Draft;
use crate::rules::Rules;
use rhist_elf::Code;
use rhist_elf::Image;
use std::ops::Range;

/// A function in a segment of code.
struct Function {
    /// Where it begins in the file.
    offset: u64,
    addresses: Range<u64>,
    /// Offset of its entry in `.eh_frame`.
    entry: usize,
}

impl Function {
    /// The place behind it in the file.
    fn end(&self) -> u64 {
        self.offset + (self.addresses.end - self.addresses.start)
    }
}

/// Bytes of code without unwind information at the entry of a file that belong to the outermost
/// function: glibc's dynamic linker has 61 on x86-64.
const ENTRY: u64 = 128;

/// The code of the outermost function, where the kernel starts a program, if it lacks unwind
/// information, as in the dynamic linker, where it is written in assembler.
fn entry(image: &Image<'_>, code: &Code, functions: &[Function]) -> Option<Range<u64>> {
    let address = image.entry()?;
    let segment = code.segment(address)?;
    let start = address - segment.addresses.start + segment.offset;
    let next = functions.partition_point(|function| function.offset <= start);
    let room = functions.get(next).map_or(u64::MAX, |next| next.offset);
    let end = segment.offset + (segment.addresses.end - segment.addresses.start);
    Some(start..(start + ENTRY).min(room).min(end))
}

/// The rule for a table by which functions of other files are called, of which `.eh_frame` says
/// nothing.
fn of_linkage_table(pushes: bool) -> Rule {
    match pushes {
        true => Rule::Plt {
            from: 11,
            fp: 0,
            ra: -1,
        },
        false => Rule::Sp { cfa: 8, fp: 0, ra: -1 },
    }
}

/// Bytes from a system call at the end of a function on that still have its last rule. In glibc's
/// `clone()` and `clone3()` the unwind information ends before the system call, as it would be
/// wrong in the child; but the parent is there when it creates a process or a thread.
const BEHIND_A_CALL: u64 = 32;

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
    let gap = match code::keeps_frame_pointers(&image) {
        true => Rule::Frame,
        false => Rule::None,
    };
    let mut draft = Draft::new(image.machine(), gap);
    let eh_frame = match EhFrame::find(&image) {
        Err(Error::NoFrames) if gap == Rule::Frame => return draft.finish(),
        other => other?,
    };
    let mut frames = Frames::new(image.machine(), &eh_frame);
    let (mut malformed, mut outside, mut overlapping) = (0, 0, 0);

    let segments = image.code();
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
        match place(&segments, addresses, entry) {
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

    let tables = code::linkage_tables(&image).into_iter();
    let mut others: Vec<(Range<u64>, Rule)> = tables
        .map(|(range, pushes)| (range, of_linkage_table(pushes)))
        .collect();
    if gap == Rule::None {
        others.extend(entry(&image, &segments, &functions).map(|range| (range, Rule::End)));
    }
    others.sort_by_key(|(range, _)| range.start);
    others.retain(|(range, _)| {
        let behind = functions.partition_point(|function| function.offset < range.end);
        let last = functions[..behind].last();
        last.is_none_or(|last| last.end() <= range.start)
    });
    others.dedup_by(|later, first| later.0.start < first.0.end);
    let mut others = others.into_iter().peekable();

    let mut rules: Vec<(u64, Rule)> = Vec::new();
    for at in 0..functions.len() {
        let Function {
            offset,
            ref addresses,
            entry,
        } = functions[at];
        while let Some((range, rule)) = others.next_if(|(range, _)| range.start < offset) {
            draft.add(range, rule)?;
        }
        let mut size = addresses.end - addresses.start;
        let room = functions.get(at + 1).map_or(u64::MAX, |next| next.offset - offset);
        if room < size {
            size = room;
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
        if let Some(&(_, rule)) = rules.last()
            && is_before_a_call(rule)
            && code::is_system_call(&image, offset + size)
        {
            let other = others.peek().map_or(u64::MAX, |(range, _)| range.start - offset);
            let more = room.min(other).saturating_sub(size).min(BEHIND_A_CALL);
            draft.add(offset + size..offset + size + more, rule)?;
        }
    }

    for (range, rule) in others {
        draft.add(range, rule)?;
    }
    let mut rules = draft.finish()?;
    (rules.malformed, rules.outside, rules.overlapping) = (malformed, outside, overlapping);
    Ok(rules)
}

/// Whether a function with such a rule has nothing on the stack but its return address.
fn is_before_a_call(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::Sp { cfa: 8, fp: 0, ra: -1 } | Rule::Sp { cfa: 0, fp: 0, ra: 0 }
    )
}

/// Finds the place of a function in the file: in the segment in which it begins. What lies behind
/// that segment is left out.
fn place(code: &Code, addresses: Range<u64>, entry: usize) -> Option<Function> {
    let segment = code.segment(addresses.start)?;
    Some(Function {
        offset: addresses.start - segment.addresses.start + segment.offset,
        addresses: addresses.start..addresses.end.min(segment.addresses.end),
        entry,
    })
}
