// SPDX-License-Identifier: GPL-2.0

//! What a `trigger` file of the kernel lists.

use super::command;
use core::iter;
use core::iter::zip;
use kernel::prelude::*;

/// The triggers in a listing of the kernel, each with the newline at its end, those excepted whose
/// commands are ours: they were put in through a file of the kernel and concern its histograms.
///
/// The newest comes first.
///
/// Names and filters may hold newlines, so a trigger may take several lines; only the first begins with
/// the name of a command, and a histogram ends with whether it is paused.
pub struct KernelTriggers<'a>(&'a [u8]);

impl<'a> KernelTriggers<'a> {
    /// The triggers in `listing`; none if that says which commands there are.
    pub fn new(listing: &'a [u8]) -> Self {
        match listing.first() {
            Some(b'#') => Self(&[]),
            _ => Self(listing),
        }
    }

    /// All of them. Fails with `ENOMEM`.
    pub fn all(listing: &'a [u8]) -> Result<KVec<&'a [u8]>> {
        let mut all = KVec::new();
        for trigger in Self::new(listing) {
            all.push(trigger, GFP_KERNEL)?;
        }
        Ok(all)
    }
}

impl<'a> Iterator for KernelTriggers<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let name = command_of(self.0);
            let hist = name == Some(b"hist");
            let mut end = 0;
            for line in self.0.split_inclusive(|&byte| byte == b'\n') {
                if !hist && end > 0 && command_of(line).is_some() {
                    break;
                }
                end += line.len();
                if hist && (line.ends_with(b" [active]\n") || line.ends_with(b" [paused]\n")) {
                    break;
                }
            }
            let (trigger, rest) = self.0.split_at(end);
            self.0 = rest;
            match name {
                _ if end == 0 => return None,
                Some(name) if command::is_ours(name) => (),
                _ => return Some(trigger),
            }
        }
    }
}

/// Lists others among the triggers of the kernel, all with the newest first: each of `ours` has the number
/// of those in `theirs` that are older.
pub fn merge_by_age<'a>(
    ours: impl Iterator<Item = (usize, &'a [u8])>,
    mut theirs: &'a [&'a [u8]],
) -> impl Iterator<Item = &'a [u8]> {
    let mut ours = ours.peekable();
    iter::from_fn(move || {
        if let Some((_, line)) = ours.next_if(|&(older, _)| older >= theirs.len()) {
            return Some(line);
        }
        let (newest, older) = theirs.split_first()?;
        theirs = older;
        Some(*newest)
    })
}

/// How many of the oldest triggers are the same in two listings: what is gone was newer.
pub fn count_same_oldest(before: &[&[u8]], after: &[&[u8]]) -> usize {
    zip(before.iter().rev(), after.iter().rev())
        .take_while(|(before, after)| before == after)
        .count()
}

/// The name of the command that a line begins with.
fn command_of(line: &[u8]) -> Option<&[u8]> {
    let name = line.get(..line.iter().position(|&byte| byte == b':')?)?;
    let letters = |byte: &u8| matches!(byte, b'a'..=b'z' | b'_');
    (!name.is_empty() && name.iter().all(letters)).then_some(name)
}
