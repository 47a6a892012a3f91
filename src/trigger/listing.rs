// SPDX-License-Identifier: GPL-2.0

//! Parses the listing of the kernel's `trigger` file.

use super::command;
use core::iter::{
    self,
    zip, //
};
use kernel::prelude::*;

/// Iterates over the triggers in a listing of the kernel, each with its newline. Skips `hist`,
/// `enable_hist` and `disable_hist` triggers, which were written to the kernel's own file.
///
/// The newest comes first.
///
/// Names and filters may hold newlines, so a trigger may take several lines. Only the first one
/// begins with the name of a command; a histogram's ends with `[active]` or `[paused]`.
pub struct KernelTriggers<'a>(&'a [u8]);

impl<'a> KernelTriggers<'a> {
    /// The triggers in `listing`; none if it is the list of available triggers.
    pub fn new(listing: &'a [u8]) -> Self {
        match listing.first() {
            Some(b'#') => Self(&[]),
            _ => Self(listing),
        }
    }

    /// Collects all triggers. Fails with `ENOMEM`.
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

/// Merges two lists of triggers, newest first. Each of `ours` comes with the number of triggers in
/// `theirs`, the kernel's, that are older.
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

/// Counts the oldest triggers that are equal in two listings, before and after a newer trigger was
/// removed.
pub fn count_same_oldest(before: &[&[u8]], after: &[&[u8]]) -> usize {
    zip(before.iter().rev(), after.iter().rev())
        .take_while(|(before, after)| before == after)
        .count()
}

/// The name of the command at the beginning of a line.
fn command_of(line: &[u8]) -> Option<&[u8]> {
    let name = line.get(..line.iter().position(|&byte| byte == b':')?)?;
    let letters = |byte: &u8| matches!(byte, b'a'..=b'z' | b'_');
    (!name.is_empty() && name.iter().all(letters)).then_some(name)
}
