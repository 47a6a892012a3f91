// SPDX-License-Identifier: GPL-2.0

//! An entry of a histogram as cells that say what is in them, and leave it to others how that is shown.

use super::field::HistField;
use super::limits;
use super::snapshot::number;
use super::snapshot::Whole;
use super::Plan;
use crate::event::hit::COMM_LEN;
use crate::text::until_nul;
use crate::trigger::ModifierKind;

/// An entry.
pub(super) struct Row<'a> {
    pub(super) plan: &'a Plan,
    pub(super) key: &'a [u8],
    pub(super) comm: [u8; COMM_LEN],
    pub(super) columns: &'a [u64],
    pub(super) wholes: &'a [Whole],
}

/// What an entry has of one of the keys.
pub(super) enum KeyCell<'a> {
    Number(u64),
    Hex(u64),
    /// A process, and the name of one of its tasks when it was first counted.
    Task {
        pid: u64,
        comm: &'a [u8],
    },
    /// An address in the kernel, to be shown as the name of what is there, with where in that it is if
    /// `offset`.
    Symbol {
        address: u64,
        offset: bool,
    },
    /// The power of two that the number was rounded to.
    Log2(u64),
    /// The numbers from the first to the last.
    Bucket {
        first: u64,
        last: u64,
    },
    Syscall(u64),
    Stack(Stack<'a>),
    /// Up to its NUL.
    Text(&'a [u8]),
}

/// The stack of a hit.
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

/// What an entry has of one of the values.
pub(super) enum ValueCell {
    Number(u64),
    Hex(u64),
    /// Hundredths of a percent of what all entries together have; `None` if that cannot be said.
    Percent(Option<u32>),
    /// Hundredths of a percent of the largest of all entries; `None` if that cannot be said.
    Graph(Option<u32>),
}

impl<'a> Row<'a> {
    /// The keys with their cells.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&'a HistField, KeyCell<'_>)> {
        let keys = self.plan.keys().iter().zip(self.plan.program.parts());
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
                KeyCell::Stack(Stack(&content[..limits::STACK as usize]))
            }
            _ if field.function.is_string() => KeyCell::Text(until_nul(content)),
            _ => KeyCell::Number(number),
        }
    }

    /// The values that are shown, with their cells.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'a HistField, ValueCell)> + '_ {
        let vals = self.plan.vals().iter();
        vals.skip(usize::from(self.plan.nohitcount))
            // C sums expressions up, sorts by them, and does not show them.
            .filter(|field| field.operands.is_empty())
            .filter_map(|field| {
                let column = field.column()?;
                let cell = value_cell(field, self.columns[column], &self.wholes[column]);
                Some((field, cell))
            })
    }
}

fn value_cell(field: &HistField, sum: u64, whole: &Whole) -> ValueCell {
    match field.modifier {
        Some(ModifierKind::Percent) => ValueCell::Percent(hundredths(sum, whole.total)),
        Some(ModifierKind::Graph) => ValueCell::Graph(hundredths(sum, whole.max)),
        Some(ModifierKind::Hex) => ValueCell::Hex(sum),
        _ => ValueCell::Number(sum),
    }
}

/// How many hundredths of a percent of `whole` the `part` is, if that can be said. It may be more than
/// all of it when the sum of all has wrapped. `u32::MAX` is how C says that it cannot be said.
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
