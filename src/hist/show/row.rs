// SPDX-License-Identifier: GPL-2.0

//! Rows of typed cells, from which printers make text.

use kernel::prelude::*;

use crate::{
    hist::{
        spec::{
            action::ActionKind,
            field::HistField,
            variable::ValueKind, //
        },
        Program,
        Spec, //
    },
    limits::{
        self,
        COMM_LEN,
        VARS_MAX,
        WIDE_WORDS, //
    },
    map::{
        words_to_text,
        Elt,
        Read, //
    },
    text::until_nul,
    trigger::ModifierKind, //
};

/// Total and maximum of a column over all entries.
#[derive(Clone, Copy)]
pub(super) struct ColumnTotals {
    pub(super) total: u64,
    pub(super) max: u64,
}

/// An entry as a row.
pub(super) struct Row<'a> {
    pub(super) spec: &'a Spec,
    pub(super) program: &'a Program,
    pub(super) key: &'a [u8],
    pub(super) comm: [u8; COMM_LEN],
    pub(super) columns: &'a [u64],
    pub(super) totals: &'a [ColumnTotals],
    /// The element; `None` for a key without one.
    pub(super) elt: Option<Elt<'a>>,
}

/// The cell of a key field.
pub(super) enum KeyCell<'a> {
    Number(u64),
    Hex(u64),
    /// A process id and its comm.
    Task {
        pid: u64,
        comm: &'a [u8],
    },
    /// An address in the kernel, shown as a symbol, with the offset in that if `offset`.
    Symbol {
        address: u64,
        offset: bool,
    },
    /// The exponent of a power of two.
    Log2(u64),
    /// A range of numbers.
    Bucket {
        first: u64,
        last: u64,
    },
    Syscall(u64),
    Stack(Stack<'a>),
    /// A string without its NUL.
    Text(&'a [u8]),
}

/// A stored stack.
#[derive(Clone, Copy)]
pub(super) struct Stack<'a>(&'a [u8]);

impl<'a> Stack<'a> {
    /// Return addresses, the innermost first.
    pub(super) fn entries(self) -> impl Iterator<Item = u64> + 'a {
        self.0
            .chunks_exact(8)
            .map(number)
            .take_while(|&entry| entry != 0)
    }
}

/// The cell of a value.
pub(super) enum ValueCell {
    Number(u64),
    Hex(u64),
    /// Hundredths of a percent of the total of the column; `None` if they cannot be computed.
    Percent(Option<u32>),
    /// Hundredths of a percent of the maximum of the column; `None` if they cannot be computed.
    Graph(Option<u32>),
}

/// The cell of a saved field.
pub(super) enum SavedCell<'a> {
    Number(u64),
    /// A string without its NUL; `None` if nothing was saved yet.
    Text(Option<&'a [u8]>),
}

/// Most words of a tracked value and what is saved with it.
const TRACKED_WORDS: usize = 1 + VARS_MAX * WIDE_WORDS;

/// What the actions of a trigger have stored in an entry.
pub(super) struct TrackedBuf {
    /// The tracked value of the action that saves, and what it has saved.
    words: KVec<u64>,
    /// Whether there is one yet.
    set: bool,
}

impl TrackedBuf {
    /// Memory for the entries of a histogram. Fails with `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        let words = KVec::from_elem(0, TRACKED_WORDS, GFP_KERNEL)?;
        Ok(Self { words, set: false })
    }
}

impl<'a> Row<'a> {
    /// The value that the `n`th action tracks: its greatest, or last, value so far. For the action with `save()`, the
    /// value stored together with the saved fields in `buf`.
    ///
    /// Fails as [`read_consistent`].
    pub(super) fn tracked(&self, n: usize, buf: &TrackedBuf) -> Result<u64> {
        if self.saving() == Some(n) {
            return Ok(buf.words.first().copied().unwrap_or(0));
        }
        let mut words = [0];
        self.read_tracked(n, &mut words)?;
        Ok(words[0])
    }

    /// Reads the tracked value of the `n`th action and what is saved with it. False: it tracks none, or there is none
    /// yet. Fails as [`read_consistent`].
    fn read_tracked(&self, n: usize, words: &mut [u64]) -> Result<bool> {
        let cell = self.program.tracked(n);
        let cell = cell.and_then(|cell| self.elt?.wide(cell));
        cell.map_or(Ok(false), |cell| read_consistent(|| cell.read(words)))
    }

    /// The action that saves.
    fn saving(&self) -> Option<usize> {
        let mut actions = self.spec.actions.iter();
        actions.position(|action| action.kind == ActionKind::Save)
    }

    /// Reads the saved fields to `buf`, and the value that they belong to. Fails as [`read_consistent`].
    pub(super) fn read_saved(&self, buf: &mut TrackedBuf) -> Result {
        let Some(n) = self.saving() else {
            return Ok(());
        };
        buf.words.fill(0);
        buf.set = self.read_tracked(n, &mut buf.words)?;
        Ok(())
    }

    /// Calls `show` for each saved field in `buf`, with its name.
    pub(super) fn saved(
        &self,
        buf: &TrackedBuf,
        mut show: impl FnMut(&[u8], SavedCell<'_>) -> Result,
    ) -> Result {
        let mut at = 1;
        for (var, &(_, words)) in self.spec.save_vars.iter().zip(&self.program.saved) {
            let content = &buf.words[at..at + words];
            at += words;
            let mut text = [0; limits::STRING_MAX as usize];
            let cell = match var.value.kind() {
                ValueKind::Number | ValueKind::Stack => SavedCell::Number(content[0]),
                ValueKind::Text => {
                    SavedCell::Text(buf.set.then(|| words_to_text(content, &mut text)))
                }
            };
            show(&var.variable.name, cell)?;
        }
        Ok(())
    }

    /// The keys with their cells.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&'a HistField, KeyCell<'_>)> {
        let keys = self.spec.keys.iter().zip(&self.program.parts);
        keys.map(|(field, part)| (field, self.key_cell(field, &self.key[part.at..])))
    }

    fn key_cell<'b>(&'b self, field: &HistField, content: &'b [u8]) -> KeyCell<'b> {
        let number = number(content);
        match field.modifier {
            Some(ModifierKind::Hex) => KeyCell::Hex(number),
            Some(ModifierKind::Execname) => KeyCell::Task {
                pid: number,
                comm: until_nul(&self.comm),
            },
            Some(ModifierKind::Sym) => KeyCell::Symbol {
                address: number,
                offset: false,
            },
            Some(ModifierKind::SymOffset) => KeyCell::Symbol {
                address: number,
                offset: true,
            },
            Some(ModifierKind::Log2) => KeyCell::Log2(number),
            Some(ModifierKind::Buckets(width)) => KeyCell::Bucket {
                first: number,
                last: number.wrapping_add(width as u64 - 1),
            },
            Some(ModifierKind::Syscall) => KeyCell::Syscall(number),
            _ if field.function.is_stack() => {
                KeyCell::Stack(Stack(&content[..limits::STACK_SIZE as usize]))
            }
            _ if field.function.is_string() => KeyCell::Text(until_nul(content)),
            _ => KeyCell::Number(number),
        }
    }

    /// All values with their cells, the hitcount first.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'a HistField, ValueCell)> + '_ {
        self.spec.vals.iter().filter_map(|field| {
            let column = field.column()?;
            let cell = value_cell(field, self.columns[column], &self.totals[column]);
            Some((field, cell))
        })
    }
}

fn value_cell(field: &HistField, sum: u64, totals: &ColumnTotals) -> ValueCell {
    match field.modifier {
        Some(ModifierKind::Percent) => ValueCell::Percent(hundredths(sum, totals.total)),
        Some(ModifierKind::Graph) => ValueCell::Graph(hundredths(sum, totals.max)),
        Some(ModifierKind::Hex) => ValueCell::Hex(sum),
        _ => ValueCell::Number(sum),
    }
}

/// `part` in hundredths of a percent of `whole`: over 10000 if the total has wrapped. `None` if they cannot be
/// computed, for which C has `u32::MAX`.
fn hundredths(part: u64, whole: u64) -> Option<u32> {
    let quotient = if part < u64::MAX / 10000 {
        (part * 10000).checked_div(whole)
    } else {
        part.checked_div(whole / 10000)
    };
    match quotient {
        None if part == 0 => Some(0),
        quotient => quotient?.try_into().ok().filter(|&part| part != u32::MAX),
    }
}

/// Reads a wide cell until no hit replaces it meanwhile. False: it is not set. Fails with `EAGAIN` if hits replace it
/// again and again.
pub(super) fn read_consistent(read: impl FnMut() -> Read) -> Result<bool> {
    Read::retry(read).ok_or(EAGAIN)
}

/// The number that `bytes`, part of a key, start with.
pub(super) fn number(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |chunk| u64::from_ne_bytes(*chunk))
}
