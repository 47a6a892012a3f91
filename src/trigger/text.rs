// SPDX-License-Identifier: GPL-2.0

//! The text of a trigger, and positions in it.

use super::{
    Error,
    ErrorText,
    HintText, //
};
use crate::text::is_space;
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// A part of a trigger's text: bytes `start..end` of the COMMAND.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// First byte after the piece.
    pub end: usize,
}

impl Span {
    /// The piece without its first `count` bytes.
    pub(super) fn skip(self, count: usize) -> Self {
        Self {
            start: self.end.min(self.start.saturating_add(count)),
            end: self.end,
        }
    }

    /// The first `count` bytes of the piece.
    pub(super) fn first(self, count: usize) -> Self {
        Self {
            start: self.start,
            end: self.end.min(self.start.saturating_add(count)),
        }
    }

    /// The empty piece after this one.
    pub(super) fn after(self) -> Self {
        Self {
            start: self.end,
            end: self.end,
        }
    }

    /// Returns whether it has no bytes.
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

/// Strips white space from both ends (`strim()`).
pub(super) fn strip(mut bytes: &[u8]) -> &[u8] {
    while let Some((&first, rest)) = bytes.split_first() {
        if !is_space(first) {
            break;
        }
        bytes = rest;
    }
    while let Some((&last, rest)) = bytes.split_last() {
        if !is_space(last) {
            break;
        }
        bytes = rest;
    }
    bytes
}

/// Index of the first occurrence of `needle` (`strstr()`).
pub(super) fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    if needle.is_empty() {
        return Some(0);
    }
    bytes
        .windows(needle.len())
        .position(|window| window == needle)
}

/// Returns whether `needle` occurs in `bytes`.
pub fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    find(bytes, needle).is_some()
}

/// The text of a hist trigger: as written, and as the parser reads it.
pub(super) struct SourceText {
    /// `hist:` and the parameters, as written. Carets count from its start.
    command: KVec<u8>,
    /// The command as the parser reads it: with each `.sym-offset` replaced by `.symXoffset`, so
    /// that every `-` is an operator, as in C.
    syntax: KVec<u8>,
    /// The text that carets refer to, if it is not the command.
    other: Option<KVec<u8>>,
}

/// The beginning of the COMMAND of the error log, whatever separated name and parameters.
pub(super) const PREFIX: &[u8] = b"hist:";

const SYM_OFFSET: &[u8] = b".sym-offset";

impl SourceText {
    pub(super) fn new(params: &[u8]) -> Result<Self, AllocError> {
        let mut command = KVec::with_capacity(PREFIX.len() + params.len(), GFP_KERNEL)?;
        command.extend_from_slice(PREFIX, GFP_KERNEL)?;
        command.extend_from_slice(params, GFP_KERNEL)?;
        let mut syntax = KVec::with_capacity(command.len(), GFP_KERNEL)?;
        syntax.extend_from_slice(&command, GFP_KERNEL)?;
        Ok(Self {
            command,
            syntax,
            other: None,
        })
    }

    /// The text of a trigger with carets for another command.
    pub(super) fn made_for(params: &[u8], command: &[u8]) -> Result<Self, AllocError> {
        let mut other = KVec::with_capacity(command.len(), GFP_KERNEL)?;
        other.extend_from_slice(command, GFP_KERNEL)?;
        Ok(Self {
            other: Some(other),
            ..Self::new(params)?
        })
    }

    /// Replaces the minus of each `.sym-offset` in a part of the text.
    pub(super) fn hide_sym_offset(&mut self, piece: Span) {
        let Some(mut rest) = self.syntax.get_mut(piece.start..piece.end) else {
            return;
        };
        while let Some(at) = find(rest, SYM_OFFSET) {
            let Some(minus) = rest.get_mut(at + 4) else {
                return;
            };
            *minus = b'X';
            let Some(tail) = rest.get_mut(at + SYM_OFFSET.len()..) else {
                return;
            };
            rest = tail;
        }
    }

    pub(super) fn command(&self) -> &[u8] {
        &self.command
    }

    pub(super) fn params(&self) -> Span {
        Span {
            start: PREFIX.len(),
            end: self.command.len(),
        }
    }

    pub(super) fn bytes(&self, piece: Span) -> &[u8] {
        self.syntax.get(piece.start..piece.end).unwrap_or(&[])
    }

    pub(super) fn typed(&self, piece: Span) -> &[u8] {
        self.command.get(piece.start..piece.end).unwrap_or(&[])
    }

    /// Splits the text before the next `separator` off `rest` (`strsep()`): `None` when nothing is
    /// left, an empty part between two separators and after a trailing one.
    pub(super) fn next(&self, rest: &mut Option<Span>, separator: u8) -> Option<Span> {
        let piece = (*rest)?;
        match self.bytes(piece).iter().position(|&byte| byte == separator) {
            Some(at) => {
                *rest = Some(piece.skip(at + 1));
                Some(piece.first(at))
            }
            None => {
                *rest = None;
                Some(piece)
            }
        }
    }

    pub(super) fn strip(&self, piece: Span) -> Span {
        let bytes = self.bytes(piece);
        let leading = bytes.iter().take_while(|&&byte| is_space(byte)).count();
        piece.skip(leading).first(strip(bytes).len())
    }

    /// Position of the caret for a text: its first occurrence in the COMMAND, as in C, which need
    /// not be where the error is; 0 if it does not occur.
    pub(super) fn caret(&self, culprit: &[u8]) -> usize {
        find(self.other.as_ref().unwrap_or(&self.command), culprit).unwrap_or(0)
    }

    /// Position of the caret for a part of the text: where that begins.
    pub(super) fn place(&self, piece: Span) -> usize {
        match self.other {
            Some(_) => self.caret(self.bytes(piece)),
            None => piece.start,
        }
    }

    pub(super) fn error(&self, text: ErrorText, culprit: Span) -> Error {
        Error::new(text, self.caret(self.bytes(culprit)))
    }

    /// An error about which C is silent.
    pub(super) fn own(&self, text: HintText, culprit: Span) -> Error {
        Error::own(text, self.place(culprit))
    }
}
