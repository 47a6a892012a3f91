// SPDX-License-Identifier: GPL-2.0

//! The reader of a hit: evaluates the values and contents of a program, and makes the key.

use core::{
    cmp::min,
    slice, //
};

use super::{
    code::{
        Cell,
        Program, //
    },
    content::Content,
    key::{
        KeyPart,
        LookupKey, //
    },
    number::{
        compute,
        recorded_number,
        Value, //
    },
    place::{
        KeyPlace,
        Sink, //
    },
};
use crate::{
    event::{
        number::Numbers,
        pointed::read_text,
        Hit,
        LongBuffer,
        Scale,
        Stack,
        LONG_WORDS, //
    },
    limits::{
        self,
        COMM_LEN,
        STACK_DEPTH, //
    },
    map::{
        text_to_words,
        Read,
        WideCell, //
    },
    text::until_nul,
    user_stack::{
        End,
        Word, //
    },
};

/// The comm of the task with process id 0.
pub(in crate::hist) const IDLE: &[u8; COMM_LEN] = b"<idle>\0\0\0\0\0\0\0\0\0\0";

/// The comm of a task that is gone.
const GONE: &[u8; COMM_LEN] = b"<gone>\0\0\0\0\0\0\0\0\0\0";

impl Program {
    /// Evaluates `value` for `hit` with these values of references.
    #[inline(never)]
    pub(in crate::hist) fn read(&self, value: &Value, hit: &Hit<'_>, vals: &[u64]) -> u64 {
        match *value {
            Value::Simple { ref operand, scale } => scale.apply(operand.read(hit, vals)),
            Value::Pair {
                operator,
                ref left,
                ref right,
            } => operator.apply(left.read(hit, vals), right.read(hit, vals)),
            Value::Computed { start, end } => {
                let code = self.code.get(start..end).unwrap_or_default();
                compute(code, hit, vals)
            }
        }
    }

    /// [`Program::read`] that inlines unscaled numbers.
    #[inline(always)]
    pub(in crate::hist) fn read_inline(&self, value: &Value, hit: &Hit<'_>, vals: &[u64]) -> u64 {
        match *value {
            Value::Simple {
                ref operand,
                scale: Scale::One,
            } => operand.read(hit, vals),
            _ => self.read(value, hit, vals),
        }
    }

    /// [`Program::read`] that inlines the result of an operator on two numbers: the form of most
    /// latencies.
    #[inline(always)]
    pub(in crate::hist) fn read_pair_inline(
        &self,
        value: &Value,
        hit: &Hit<'_>,
        vals: &[u64],
    ) -> u64 {
        match *value {
            Value::Pair {
                operator,
                ref left,
                ref right,
            } => operator.apply(left.read(hit, vals), right.read(hit, vals)),
            _ => self.read(value, hit, vals),
        }
    }

    /// Bytes of a hit's key without zeros at the end, if the record says how many.
    #[inline]
    pub(in crate::hist) fn key_used(&self, hit: &Hit<'_>) -> usize {
        used(&self.parts, hit)
    }

    /// [`Program::key_used`] of a key with the numbers of stacks.
    #[inline]
    pub(in crate::hist) fn interned_used(&self, hit: &Hit<'_>) -> usize {
        used(&self.interned, hit)
    }

    /// Writes the key of a hit to `key`, which has [`Program::interned_used`] bytes, all zero.
    /// `number` returns the number of the stack that a content is. Returns false if it returns
    /// `None`.
    #[inline(always)]
    pub(in crate::hist) fn put_interned(
        &self,
        key: &mut [u8],
        hit: &Hit<'_>,
        number: impl Fn(&Content) -> Option<u64>,
    ) -> bool {
        for part in &self.interned {
            let word = match part.content {
                Content::Stack
                | Content::StoredStack(_)
                | Content::UserStack(_)
                | Content::LongUserStack(_) => match number(&part.content) {
                    Some(number) => number,
                    None => return false,
                },
                Content::Number(ref value) => self.read_inline(value, hit, &[]),
                _ => {
                    put_parts_slow(self, slice::from_ref(part), key, hit);
                    continue;
                }
            };
            let place = key.get_mut(part.at..).and_then(<[u8]>::first_chunk_mut);
            if let Some(place) = place {
                *place = word.to_ne_bytes();
            }
        }
        true
    }

    /// Writes the key of a hit to `key`, which has [`Program::key_used`] bytes, all zero.
    #[inline]
    pub(in crate::hist) fn put_key(&self, key: &mut [u8], hit: &Hit<'_>) {
        put_parts(self, &self.parts, key, hit);
    }

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

/// Bytes of a key of these parts without zeros at the end, if the record says how many.
#[inline]
fn used(parts: &[KeyPart], hit: &Hit<'_>) -> usize {
    let last = parts.last();
    last.map_or(0, |part| part.at + part.used(hit))
}

impl LookupKey {
    /// Writes the key of a hit to `key`, whose bytes are zero. Returns it.
    #[inline]
    pub(in crate::hist) fn put<'a>(
        &self,
        program: &Program,
        key: &'a mut [u8],
        hit: &Hit<'_>,
    ) -> &'a [u8] {
        let key = key.get_mut(..self.size()).unwrap_or_default();
        put_parts(program, &self.parts, key, hit);
        key
    }
}

/// Out-of-line [`put_parts`].
#[inline(never)]
fn put_parts_slow(program: &Program, parts: &[KeyPart], key: &mut [u8], hit: &Hit<'_>) {
    put_parts(program, parts, key, hit);
}

/// Writes the parts of a key to `key`, whose bytes are zero; parts beyond its end are cut or left
/// out.
#[inline]
fn put_parts(program: &Program, parts: &[KeyPart], key: &mut [u8], hit: &Hit<'_>) {
    for part in parts {
        let end = min(part.at + part.len, key.len());
        if let Some(bytes) = key.get_mut(part.at..end) {
            let max_chars = part.max_chars();
            let mut place = KeyPlace { bytes, max_chars };
            part.content.read(program, hit, &[], &mut place);
        }
    }
}

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
            Self::CommOf(pid) => {
                let pid = recorded_number(&pid, hit.record()) as u32;
                let comm = match pid {
                    0 => Some(*IDLE),
                    pid => hit.context().comm_of(pid),
                };
                to.text(&ended(comm.unwrap_or(*GONE)), WHOLE)
            }
            Self::Event => to.text(&program.event, WHOLE),
            Self::Stack | Self::StoredStack(_) | Self::UserStack(_) => {
                to.stack(|stack| self.read_stack(hit, stack))
            }
            Self::LongUserStack(most) => match long_stack(hit, most) {
                Some(mut buffer) => to.words(buffer.words()),
                None => to.words(&NESTED),
            },
            Self::Imported(slot) => {
                let cell = program.imported_cell(slot, hit, vals);
                return cell.is_some_and(|cell| to.cell(cell));
            }
        }
        true
    }
}

impl Content {
    /// Writes the stack that the content is to `stack`, which is empty. Any context.
    #[inline(always)]
    pub(in crate::hist) fn read_stack(&self, hit: &Hit<'_>, stack: &mut Stack) {
        match *self {
            Self::StoredStack(offset) => {
                let bytes = hit.record().stack(offset, STACK_DEPTH);
                let len = bytes.len() / size_of::<u64>();
                stack.extend(text_to_words(bytes, STACK_DEPTH).take(len));
            }
            Self::UserStack(most) => {
                stack.append(|to| hit.context().user_stack(hit.preempt(), most as usize, to))
            }
            _ => hit.context().stack(hit.preempt(), stack),
        }
    }

    /// Writes the content of a variable or a saved field of more than [`WIDE_WORDS`] words to `to`,
    /// which is empty. Returns false if it is lost. Any context.
    #[inline(never)]
    pub(in crate::hist) fn read_long(
        &self,
        program: &Program,
        hit: &Hit<'_>,
        vals: &[u64],
        to: &mut LongBuffer<'_>,
    ) -> bool {
        match *self {
            Self::LongUserStack(most) => {
                to.push(0);
                read_long_stack(hit, most, to);
                if let [count, words @ ..] = to.words() {
                    *count = words.len() as u64;
                }
                true
            }
            Self::Imported(slot) => {
                to.append(|to| (0..LONG_WORDS).for_each(|_| to.push(0)));
                let cell = program.imported_cell(slot, hit, vals);
                cell.is_some_and(|cell| cell.read(to.words()) == Read::Done)
            }
            _ => false,
        }
    }
}

/// The words of a stack that lacks a buffer, as hits of the same CPU have all of them.
pub(in crate::hist) const NESTED: [u64; 1] = [Word::end(End::Nested).to_u64()];

/// The stack of the program, of at most `most` words, in a buffer; `None`: it is [`NESTED`]. Any
/// context.
#[inline(never)]
pub(in crate::hist) fn long_stack<'a>(hit: &Hit<'a>, most: u32) -> Option<LongBuffer<'a>> {
    let mut buffer = hit.context().long_buffer(hit.preempt())?;
    read_long_stack(hit, most, &mut buffer);
    Some(buffer)
}

fn read_long_stack(hit: &Hit<'_>, most: u32, to: &mut LongBuffer<'_>) {
    to.append(|to| hit.context().user_stack(hit.preempt(), most as usize, to));
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
fn current_comm(hit: &Hit<'_>) -> [u8; COMM_LEN] {
    ended(hit.context().comm())
}

/// Pads a comm with NULs.
#[inline(always)]
fn ended(mut comm: [u8; COMM_LEN]) -> [u8; COMM_LEN] {
    let len = until_nul(&comm).len().min(COMM_LEN - 1);
    comm[len..].fill(0);
    comm
}
