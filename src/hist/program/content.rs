// SPDX-License-Identifier: GPL-2.0

//! Contents that a hit stores: numbers, strings and stacks, and how they are read.

use core::cmp::min;

use super::{
    number::Value,
    Cell,
    Program, //
};
use crate::{
    event::{
        address::V6,
        number::Numbers,
        pointed::read_text,
        AddressField,
        Hit,
        Stack, //
    },
    hist::spec::target::Wide,
    limits::{
        self,
        COMM_LEN,
        STACK_DEPTH,
        WIDE_WORDS, //
    },
    map::{
        text_to_words,
        Read,
        WideCell, //
    },
    text::until_nul, //
};

/// The content of a part of the key, or of a variable.
#[derive(Clone, Copy)]
pub(in crate::hist) enum Content {
    Number(Value),
    Array {
        offset: u32,
        len: u32,
        /// Whether bytes behind its NUL are ignored, since they may be anything.
        unpadded: bool,
    },
    DataLoc(u32),
    RelLoc(u32),
    /// The string at the address that is the value of the reference in this slot.
    Pointed(usize),
    /// The string in kernel memory at the address at this offset of the record.
    RecordedPointer(u32),
    Address(AddressField),
    Comm,
    /// The comm of the task with this process id, which is the current task.
    Execname(Value),
    Stack,
    StoredStack(u32),
    /// The string or stack in another histogram's variable, by the slot of the reference.
    Imported(usize),
}

/// A destination of a content.
pub(in crate::hist) trait Sink {
    /// Writes a number.
    fn number(&mut self, number: u64);

    /// Writes a string, which ends at its first NUL or at its end. `size` is the size of its field
    /// in the record, if that is an array.
    fn text(&mut self, text: &[u8], size: usize);

    /// Writes an IPv6 address.
    fn address(&mut self, address: &[u8; V6]);

    /// Writes a stack. `fill` adds the entries to an empty one.
    fn stack(&mut self, fill: impl FnOnce(&mut Stack));

    /// Copies a wide cell. Returns false if the cell is unset or being replaced.
    fn cell(&mut self, cell: WideCell<'_>) -> bool;
}

/// The comm of the task with process id 0.
pub(in crate::hist) const IDLE: &[u8; COMM_LEN] = b"<idle>\0\0\0\0\0\0\0\0\0\0";

impl Content {
    /// Reads the content during `hit`, with these values of references, and writes it to `to`.
    /// Returns false if it is lost because another CPU is replacing it. Any context.
    #[inline(always)]
    pub(in crate::hist) fn read(
        &self,
        program: &Program,
        hit: &Hit<'_>,
        vals: &[u64],
        to: &mut impl Sink,
    ) -> bool {
        const WHOLE: usize = usize::MAX;
        match *self {
            Self::Number(ref value) => to.number(program.read(value, hit, vals)),
            Self::Array {
                offset,
                len,
                unpadded,
            } => {
                let len = len as usize;
                let text = hit.record().bytes(offset as usize, len);
                to.text(if unpadded { until_nul(text) } else { text }, len);
            }
            Self::DataLoc(offset) => to.text(hit.record().data_loc(offset), WHOLE),
            Self::RelLoc(offset) => to.text(hit.record().rel_loc(offset), WHOLE),
            Self::Pointed(slot) => match vals.get(slot) {
                Some(&address) => {
                    read_pointed(address, to, |to, address| hit.context().read(to, address))
                }
                None => return false,
            },
            Self::RecordedPointer(offset) => {
                read_pointed(hit.record().u64(offset), to, |to, address| {
                    hit.context().read_kernel(to, address)
                })
            }
            Self::Address(field) => to.address(&field.read(hit.record())),
            Self::Comm => to.text(&current_comm(hit), WHOLE),
            Self::Execname(ref pid) => match program.read(pid, hit, vals) {
                0 => to.text(IDLE, WHOLE),
                _ => to.text(&current_comm(hit), WHOLE),
            },
            Self::Stack => to.stack(|stack| hit.context().stack(hit.preempt(), stack)),
            Self::StoredStack(offset) => to.stack(|stack| {
                let bytes = hit.record().stack(offset, STACK_DEPTH);
                let len = bytes.len() / size_of::<u64>();
                stack.extend(text_to_words(bytes, STACK_DEPTH).take(len));
            }),
            Self::Imported(slot) => {
                let cell = program.imported_cell(slot, hit, vals);
                return cell.is_some_and(|cell| to.cell(cell));
            }
        }
        true
    }
}

impl Program {
    /// The wide cell that the reference in `slot` found. The reference's value is the number of the
    /// element.
    fn imported_cell<'a>(
        &'a self,
        slot: usize,
        hit: &Hit<'a>,
        vals: &[u64],
    ) -> Option<WideCell<'a>> {
        let import = self.imports.iter().find(|import| import.slot == slot)?;
        let Cell::Wide(number) = import.cell else {
            return None;
        };
        let home = import.home.map.read(hit.preempt());
        home.wide_at(*vals.get(slot)? as u32, number)
    }
}

/// Reads the string at `address` by `read`, up to its NUL. If it cannot be read, the text is
/// `(fault)`, as in C.
#[inline(never)]
fn read_pointed(address: u64, to: &mut impl Sink, read: impl Fn(&mut [u8], usize) -> bool) {
    // All characters except the NUL.
    let mut text = [0; limits::STRING_MAX as usize - 1];
    let text = match read_text(&mut text, address as usize, read) {
        true => until_nul(&text),
        false => b"(fault)",
    };
    to.text(text, usize::MAX);
}

/// The comm of the current task, padded with NULs.
pub(in crate::hist) fn current_comm(hit: &Hit<'_>) -> [u8; COMM_LEN] {
    let mut comm = hit.context().comm();
    let len = until_nul(&comm).len().min(COMM_LEN - 1);
    comm[len..].fill(0);
    comm
}

/// A buffer for a variable or a field of a synthetic event that is a string or a stack. Receives
/// the characters of a string, with at least one NUL behind them; or the number of return addresses
/// of a stack, and the addresses.
///
/// Contents are written in place, without a copy on the kernel's stack, since synthetic events nest
/// there.
pub(in crate::hist) struct WidePlace<'a> {
    words: &'a mut Wide,
    size: usize,
}

impl<'a> WidePlace<'a> {
    /// Clears `words`; at most the first `used` will be written to.
    pub(in crate::hist) fn new(words: &'a mut Wide, used: usize) -> Self {
        words.fill(0);
        Self {
            words,
            size: min(used, WIDE_WORDS) * size_of::<u64>(),
        }
    }
}

impl Sink for WidePlace<'_> {
    fn number(&mut self, number: u64) {
        self.words[0] = number;
    }

    fn text(&mut self, text: &[u8], size: usize) {
        let text = until_nul(text);
        let text = &text[..min(text.len(), min(size, self.size).saturating_sub(1))];
        for (to, word) in self.words.iter_mut().zip(text_to_words(text, WIDE_WORDS)) {
            *to = word;
        }
    }

    fn address(&mut self, address: &[u8; V6]) {
        for (to, word) in self.words.iter_mut().zip(text_to_words(address, V6 / 8)) {
            *to = word;
        }
    }

    fn stack(&mut self, fill: impl FnOnce(&mut Stack)) {
        let mut stack = Stack::new();
        fill(&mut stack);
        let [count, words @ ..] = &mut *self.words;
        *count = stack.entries().len() as u64;
        for (word, &entry) in words.iter_mut().zip(stack.entries()) {
            *word = entry;
        }
    }

    fn cell(&mut self, cell: WideCell<'_>) -> bool {
        cell.read(self.words) == Read::Done
    }
}
