// SPDX-License-Identifier: MIT OR Apache-2.0

//! Perf maps: names of code that a program compiled while it ran.

use crate::limits::MOST_LINES;
use crate::limits::MOST_MAP_BYTES;
use crate::limits::MOST_RAW;
use crate::name::Name;
use crate::spans::Spans;
use std::ops::Range;

/// The names in a perf map, a file such as `/tmp/perf-PID.map`, which compilers at run time (JIT)
/// write; perf's documentation describes it (`jit-interface.txt`). Each line has the address and
/// the size, in hexadecimal digits, and the name, which is the rest of the line.
#[derive(Clone, Debug, Default)]
pub struct PerfMap {
    text: Vec<u8>,
    /// Begins of functions, and their names as ranges of the text; by line.
    entries: Vec<(u64, Range<u32>)>,
    spans: Spans,
    /// Lines that are not of that form.
    pub malformed: usize,
    /// Whether lines are left out, as the text has more than [`MOST_MAP_BYTES`] or [`MOST_LINES`].
    pub is_cut: bool,
}

impl PerfMap {
    /// Reads the text of a perf map. If functions overlap, the last line counts where they do, as
    /// later code takes the memory of code that is gone. The last line may lack its end, since the
    /// program may be writing it; it is left out then.
    pub fn read(text: &[u8]) -> Self {
        let kept = &text[..text.len().min(MOST_MAP_BYTES)];
        let end = kept.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let mut map = Self {
            text: kept[..end].to_vec(),
            is_cut: kept.len() < text.len(),
            ..Self::default()
        };
        let mut ranges = Vec::new();
        let mut at = 0;
        for (number, line) in map.text.split_inclusive(|&byte| byte == b'\n').enumerate() {
            if number == MOST_LINES {
                map.is_cut = true;
                break;
            }
            match entry(line) {
                Some((addresses, name)) => {
                    // Fits, as the text has less than 4 GiB.
                    let place = |index: usize| (at + index) as u32;
                    map.entries.push((addresses.start, place(name.start)..place(name.end)));
                    ranges.push(addresses);
                }
                None => map.malformed += 1,
            }
            at += line.len();
        }
        map.spans = Spans::of_unsorted(&ranges);
        map
    }

    /// The name of the function that an address is in, and how far it is behind its begin.
    pub fn find(&self, address: u64) -> Option<(Name<'_>, u64)> {
        let (name, start) = self.entry(self.spans.find(address)?);
        Some((name, address - start))
    }

    /// All addresses that belong to functions, in parts that do not overlap, ascending: each with
    /// the name of its function, and how far it is behind the begin of that.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, Name<'_>, u64)> {
        self.spans.iter().map(|(part, number)| {
            let (name, start) = self.entry(number);
            let distance = part.start - start;
            (part, name, distance)
        })
    }

    /// The name of a function, and where it begins.
    fn entry(&self, number: u32) -> (Name<'_>, u64) {
        let (start, name) = &self.entries[number as usize];
        let name = Name {
            raw: &self.text[name.start as usize..name.end as usize],
            is_plt: false,
        };
        (name, *start)
    }

    /// The number of functions, including hidden ones.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it lacks functions.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// The addresses of a function, and where its name is in the line; `None` if it is malformed, or
/// its size is 0.
fn entry(line: &[u8]) -> Option<(Range<u64>, Range<usize>)> {
    let line = line.trim_ascii_end();
    let (start, at) = hex(line, 0)?;
    let (size, at) = hex(line, at)?;
    let end = start.checked_add(size)?;
    let name = at..line.len().min(at + MOST_RAW);
    let is_whole = !name.is_empty() && !line[name.clone()].contains(&0);
    (start < end && is_whole).then_some((start..end, name))
}

/// Reads a number and the spaces behind it. Returns it and where the rest begins.
fn hex(line: &[u8], at: usize) -> Option<(u64, usize)> {
    let rest = line.get(at..)?;
    let digits = rest.iter().position(|&byte| byte == b' ')?;
    let number = str::from_utf8(&rest[..digits]).ok()?;
    // perf writes none, but programs do.
    let number = number.strip_prefix("0x").unwrap_or(number);
    if number.starts_with('+') {
        return None;
    }
    let number = u64::from_str_radix(number, 16).ok()?;
    let blanks = rest[digits..].iter().take_while(|&&byte| byte == b' ').count();
    Some((number, at + digits + blanks))
}
