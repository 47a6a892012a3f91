// SPDX-License-Identifier: GPL-2.0

//! Stacks of programs as text.

use kernel::prelude::*;

use super::trigger::listed;
use crate::{
    text::Text,
    user_stack::{
        End,
        Objects,
        Place,
        Word, //
    },
};

/// Appends a word: an object and an offset in it, as in `12+0x1a2b3`; `?` for a place without an
/// object; or the end of the stack in parentheses. Fails with `ENOMEM`.
pub(super) fn word(out: &mut Text, word: u64) -> Result {
    match Word::place(word) {
        Some((place, _)) => match object(place) {
            Some((object, offset)) => out.format(format_args!("{object}+{offset:#x}")),
            None => out.bytes(b"?"),
        },
        None => {
            let end = Word::as_end(word).map_or("?", End::name);
            out.format(format_args!("({end})"))
        }
    }
}

/// Appends a stack of at most `most` words as JSON: its functions, and how it ended. Fails with
/// `ENOMEM`.
pub(super) fn jsonl(out: &mut Text, words: impl Iterator<Item = u64>, most: usize) -> Result {
    let mut end = None;
    let mut len = 0;
    let words = words.inspect(|&word| {
        len += 1;
        end = Word::as_end(word);
    });
    out.bytes(b"{\"ustack\":[")?;
    let places = words.filter_map(Word::place);
    listed(out, b",", places, |out, (place, exact)| {
        match object(place) {
            Some((object, offset)) => {
                out.format(format_args!("{{\"object\":{object},\"offset\":{offset}"))?
            }
            None => out.bytes(b"{\"object\":null,\"offset\":null")?,
        }
        out.format(format_args!(",\"exact\":{exact}}}"))
    })?;
    let end = end.unwrap_or(match len < most {
        true => End::Whole,
        false => End::Depth,
    });
    out.format(format_args!("],\"end\":\"{}\"}}", end.name()))
}

/// The number of an object, and an offset in it.
fn object(place: Place) -> Option<(u32, u64)> {
    match place {
        Place::File { object, offset } => Some((object, offset)),
        Place::Memory { mapping, offset } => Some((mapping, offset)),
        Place::Vdso { offset } => Some((Objects::VDSO, offset)),
        Place::Unlisted => None,
    }
}
