// SPDX-License-Identifier: GPL-2.0

//! What a `trigger` file of the kernel lists.

use super::command;

/// The triggers in a listing of the kernel, each with the newline at its end, those excepted whose
/// commands are ours: they were put in through a file of the kernel and concern its histograms.
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

/// The name of the command that a line begins with.
fn command_of(line: &[u8]) -> Option<&[u8]> {
    let name = line.get(..line.iter().position(|&byte| byte == b':')?)?;
    let letters = |byte: &u8| matches!(byte, b'a'..=b'z' | b'_');
    (!name.is_empty() && name.iter().all(letters)).then_some(name)
}
