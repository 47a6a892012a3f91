// SPDX-License-Identifier: GPL-2.0

//! The program of a histogram: from where a hit fetches each number and string, and where in the key it puts it.
//! Compiled when the histogram is built.

use core::cmp::min;

use kernel::prelude::*;

use super::comm;
use super::field::Function;
use super::field::HistField;
use crate::event::hit::COMM_LEN;
use crate::event::hit::STACK_DEPTH;
use crate::event::Clock;
use crate::event::Hit;
use crate::event::Number;
use crate::event::NumberType;
use crate::event::Scale;
use crate::map::Column;
use crate::map::KeyWord;
use crate::map::RecordFields;
use crate::text::until_nul;
use crate::trigger::ModifierKind;
use crate::trigger::Operator;
use crate::trigger::OPERATORS_MAX;

const NS_PER_US: u64 = 1000;

/// A number of a hit.
#[derive(Clone, Copy)]
pub(super) enum Operand {
    Constant(u64),
    Cpu,
    Time(Clock),
    TimeInUsecs(Clock),
    Recorded(Number),
}

impl Operand {
    /// Whether reading it calls no function that can be traced.
    fn is_leaf(self) -> bool {
        !matches!(self, Self::Time(_) | Self::TimeInUsecs(_))
    }

    /// Reads it, sign-extended to 64 bits.
    #[inline]
    pub(super) fn read(&self, hit: &Hit<'_>) -> u64 {
        match *self {
            Self::Constant(number) => number,
            Self::Cpu => hit.cpu as u64,
            Self::Time(clock) => hit.context.time(clock),
            Self::TimeInUsecs(clock) => hit.context.time(clock) / NS_PER_US,
            Self::Recorded(ref number) => number.read(&hit.record),
        }
    }
}

/// A number that is stored: a part of the key, or what a column is updated with.
#[derive(Clone, Copy)]
pub(super) enum Value {
    /// A single number.
    Simple { operand: Operand, scale: Scale },
    /// The result of the steps from `start` to `end`.
    Computed { start: usize, end: usize },
}

impl Value {
    const ONE: Self = Self::Simple {
        operand: Operand::Constant(1),
        scale: Scale::One,
    };
}

/// A step of an expression, in reverse Polish notation.
#[derive(Clone, Copy)]
enum Step {
    Read(Operand, Scale),
    Negate,
    Apply(Operator),
}

/// The maximum depth of the stack of an expression.
const DEPTH: usize = OPERATORS_MAX + 1;

/// The result of `operator` on two numbers. A division by zero yields all ones.
#[inline]
pub(super) fn apply(operator: Operator, left: u64, right: u64) -> u64 {
    match operator {
        Operator::Plus => left.wrapping_add(right),
        Operator::Minus => left.wrapping_sub(right),
        Operator::Times => left.wrapping_mul(right),
        Operator::Over => left.checked_div(right).unwrap_or(u64::MAX),
    }
}

/// Evaluates an expression.
fn compute(code: &[Step], hit: &Hit<'_>) -> u64 {
    // The stack; its top is in `number`.
    let mut waiting = [0; DEPTH];
    let mut depth = 0;
    let mut number = 0;
    for step in code {
        match *step {
            Step::Read(next, scale) => {
                if let Some(place) = waiting.get_mut(depth) {
                    *place = number;
                    depth += 1;
                }
                number = scale.apply(next.read(hit));
            }
            Step::Negate => number = number.wrapping_neg(),
            Step::Apply(operator) => {
                depth = depth.saturating_sub(1);
                let left = waiting.get(depth).copied().unwrap_or(0);
                number = apply(operator, left, number);
            }
        }
    }
    number
}

/// What is put into a part of the key.
#[derive(Clone, Copy)]
enum Content {
    Number(Value),
    Array { offset: u32, len: u32 },
    DataLoc(u32),
    RelLoc(u32),
    Comm,
    Stack,
    StoredStack(u32),
}

/// The part of the map's key that a key field takes.
#[derive(Clone, Copy)]
pub(super) struct KeyPart {
    content: Content,
    /// Where it starts, a multiple of 8.
    pub(super) at: usize,
    /// How many bytes it takes, a multiple of 8.
    len: usize,
}

impl KeyPart {
    /// Its length without zeros at the end, as far as the record says that: a multiple of 8, and not 0.
    #[inline]
    fn used(&self, hit: &Hit<'_>) -> usize {
        let len = match self.content {
            Content::DataLoc(offset) => hit.record.data_loc(offset).len(),
            Content::RelLoc(offset) => hit.record.rel_loc(offset).len(),
            Content::StoredStack(offset) => hit.record.stack(offset, STACK_DEPTH).len(),
            _ => return self.len,
        };
        len.next_multiple_of(8).clamp(8, self.len)
    }

    /// Writes it to `key`, which is zero there, and may end behind [`KeyPart::used`] bytes.
    ///
    /// A string is copied in the length that the record has for it, with what follows its NUL. The last byte
    /// stays zero (`add_to_key()`).
    #[inline]
    fn put(&self, key: &mut [u8], program: &Program, hit: &Hit<'_>) {
        let Some(place) = key.get_mut(self.at..min(self.at + self.len, key.len())) else {
            return;
        };
        let comm;
        let string = match self.content {
            Content::Number(number) => {
                place.copy_from_slice(&program.read(number, hit).to_ne_bytes());
                return;
            }
            Content::Array { offset, len } => hit.record.bytes(offset as usize, len as usize),
            Content::DataLoc(offset) => hit.record.data_loc(offset),
            Content::RelLoc(offset) => hit.record.rel_loc(offset),
            Content::Comm => {
                comm = hit.context.comm();
                until_nul(&comm)
            }
            Content::Stack => return put_stack(place, hit),
            Content::StoredStack(offset) => {
                let entries = hit.record.stack(offset, STACK_DEPTH);
                place[..entries.len()].copy_from_slice(entries);
                return;
            }
        };
        let len = min(string.len(), min(self.len - 1, place.len()));
        place[..len].copy_from_slice(&string[..len]);
    }
}

/// Writes the stack of the traced function to `place`, which is zero.
#[inline(always)]
fn put_stack(place: &mut [u8], hit: &Hit<'_>) {
    let mut entries = [0; STACK_DEPTH];
    let len = hit.context.stack(&mut entries);
    for (bytes, entry) in place
        .chunks_exact_mut(8)
        .zip(&entries[..len.min(STACK_DEPTH)])
    {
        bytes.copy_from_slice(&entry.to_ne_bytes());
    }
}

/// The number of the record that `value` is, and its scale; `None` if it is something else.
fn recorded(value: Value) -> Option<(Number, Scale)> {
    match value {
        Value::Simple {
            operand: Operand::Recorded(number),
            scale,
        } => Some((number, scale)),
        _ => None,
    }
}

/// Appends the words that `part` is to those of a key; `false` if it is something else.
fn add_words(part: &KeyPart, key: &mut KVec<(KeyWord, Scale)>) -> Result<bool> {
    match part.content {
        Content::Number(value) => match recorded(value) {
            Some((number, scale)) => key.push((KeyWord::number(number), scale), GFP_KERNEL)?,
            None => return Ok(false),
        },
        // Of characters the last one is taken for a NUL, as [`KeyPart::put`] does it.
        Content::Array { offset, len } if len as usize == part.len && len >= 8 && len % 8 == 0 => {
            for at in (offset..offset + len - 8).step_by(8) {
                let word = KeyWord::number(Number::new(NumberType::U64, at));
                key.push((word, Scale::One), GFP_KERNEL)?;
            }
            key.push((KeyWord::tail(offset + len - 8), Scale::One), GFP_KERNEL)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The fields of the record that `parts` and `values` are; `None` if some are something else. Fails with
/// `ENOMEM`.
fn plain_fields(parts: &[KeyPart], values: &[Value]) -> Result<Option<RecordFields>> {
    let mut key = KVec::new();
    for part in parts {
        if !add_words(part, &mut key)? {
            return Ok(None);
        }
    }
    let mut sums = KVec::with_capacity(values.len(), GFP_KERNEL)?;
    for &value in values {
        let Some((number, Scale::One)) = recorded(value) else {
            return Ok(None);
        };
        sums.push(number, GFP_KERNEL)?;
    }
    Ok(RecordFields::new(&key, sums))
}

/// How a hit makes its key.
#[derive(Clone, Copy)]
pub(super) enum KeyShape {
    /// Key and values are plain fields of the record: [`Program::fields`].
    Record,
    /// The key is one number: [`Program::number`].
    Number,
    /// The parts of the key are put into a buffer.
    Parts,
}

/// What a hit executes: how it makes its key, and what it updates the element with.
pub(super) struct Program {
    pub(super) shape: KeyShape,
    /// For the fast path: the fields of [`KeyShape::Record`], else none.
    pub(super) fields: RecordFields,
    /// The key of [`KeyShape::Number`], else anything.
    pub(super) number: Value,
    parts: KVec<KeyPart>,
    /// Bytes of a key in the map. Fewer than in C for a comm, which takes 16.
    pub(super) key_size: usize,
    /// The columns of an element: the count of hits, and one for each of the values.
    pub(super) columns: KVec<Column>,
    pub(super) values: KVec<Value>,
    /// The process id, if its comm is stored as side data.
    pub(super) pid: Option<Value>,
    code: KVec<Step>,
}

impl Program {
    /// Compiles the values, of which the first is the hitcount, and the keys of a histogram. Fails
    /// with `ENOMEM`, and with `EINVAL` for a value that is no number.
    pub(super) fn compile(fields: &[HistField], n_vals: usize, clock: Clock) -> Result<Self> {
        let (vals, keys) = fields.split_at(n_vals);
        // As in C, one `.usecs` applies to all times of the histogram.
        let time = match fields.iter().any(|field| field.is_time(true)) && clock.in_ns() {
            true => Operand::TimeInUsecs(clock),
            false => Operand::Time(clock),
        };
        let mut code = KVec::new();
        let mut columns = KVec::with_capacity(vals.len(), GFP_KERNEL)?;
        let mut values = KVec::with_capacity(vals.len(), GFP_KERNEL)?;
        columns.push(Column::Hits, GFP_KERNEL)?;
        for field in vals {
            // Values may share a column.
            if field.column() != Some(columns.len()) {
                continue;
            }
            let Content::Number(value) = content(field, time, &mut code)? else {
                return Err(EINVAL);
            };
            columns.push(Column::Sum, GFP_KERNEL)?;
            values.push(value, GFP_KERNEL)?;
        }
        let mut parts = KVec::with_capacity(keys.len(), GFP_KERNEL)?;
        let mut at = 0;
        let mut pid = None;
        for field in keys {
            let content = content(field, time, &mut code)?;
            if let (Content::Number(number), Some(ModifierKind::Execname)) =
                (content, field.modifier)
            {
                pid = Some(number);
            }
            let len = match content {
                Content::Number(_) => size_of::<u64>(),
                Content::Comm => COMM_LEN,
                _ => field.size as usize,
            };
            parts.push(KeyPart { content, at, len }, GFP_KERNEL)?;
            at += len;
        }
        let fields = match pid {
            Some(_) => None,
            None => plain_fields(&parts, &values)?,
        };
        let number = match parts[..] {
            [KeyPart {
                content: Content::Number(number),
                ..
            }] => Some(number),
            _ => None,
        };
        Ok(Self {
            shape: match (&fields, number) {
                (Some(_), _) => KeyShape::Record,
                (None, Some(_)) => KeyShape::Number,
                (None, None) => KeyShape::Parts,
            },
            fields: fields.unwrap_or(RecordFields::none()),
            number: number.unwrap_or(Value::ONE),
            parts,
            key_size: at,
            columns,
            values,
            pid,
            code,
        })
    }

    /// Evaluates `value` for `hit`.
    #[inline]
    pub(super) fn read(&self, value: Value, hit: &Hit<'_>) -> u64 {
        match value {
            Value::Simple { ref operand, scale } => scale.apply(operand.read(hit)),
            Value::Computed { start, end } => {
                compute(self.code.get(start..end).unwrap_or_default(), hit)
            }
        }
    }

    /// Words of side data of an element.
    pub(super) fn side(&self) -> usize {
        match self.pid {
            Some(_) => comm::WORDS,
            None => 0,
        }
    }

    /// Whether it calls no function that can be traced, as those for the time and the stack.
    pub(super) fn is_leaf(&self) -> bool {
        let numbers = |value: &Value| match *value {
            Value::Simple { operand, .. } => operand.is_leaf(),
            // All code is tested below.
            Value::Computed { .. } => true,
        };
        let step = |step: &Step| match *step {
            Step::Read(operand, _) => operand.is_leaf(),
            Step::Negate | Step::Apply(_) => true,
        };
        let part = |part: &KeyPart| match part.content {
            Content::Number(value) => numbers(&value),
            Content::Stack => false,
            _ => true,
        };
        self.parts.iter().all(part) && self.values.iter().all(numbers) && self.code.iter().all(step)
    }

    /// The parts of the map's key, in the order of the key fields.
    pub(super) fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// Bytes of a hit's key without zeros at the end, as far as the record says that.
    #[inline]
    pub(super) fn key_used(&self, hit: &Hit<'_>) -> usize {
        let last = self.parts.last();
        last.map_or(0, |part| part.at + part.used(hit))
    }

    /// Writes the key of a hit to `key`, which has [`Program::key_used`] bytes, all zero.
    #[inline]
    pub(super) fn put_key(&self, key: &mut [u8], hit: &Hit<'_>) {
        for part in &self.parts {
            part.put(key, self, hit);
        }
    }
}

/// What a field puts into the key or adds to a column. Appends to `code` if it is an expression.
fn content(field: &HistField, time: Operand, code: &mut KVec<Step>) -> Result<Content> {
    let event_field = field.event_field.as_ref();
    let (offset, len) = event_field.map_or((0, 0), |f| (f.offset, f.size));
    Ok(match field.function {
        Function::Comm => Content::Comm,
        Function::String => Content::Array { offset, len },
        Function::DynString => Content::DataLoc(offset),
        Function::RelDynString => Content::RelLoc(offset),
        Function::Stack => Content::Stack,
        Function::StoredStack => Content::StoredStack(offset),
        _ => Content::Number(match operand(field, time) {
            Some(operand) => {
                let scale = field.scale();
                Value::Simple { operand, scale }
            }
            None => {
                let start = code.len();
                translate(field, time, code)?;
                let end = code.len();
                let reads = |step: &&Step| matches!(step, Step::Read(..));
                if code[start..end].iter().filter(reads).count() > DEPTH {
                    return Err(EINVAL);
                }
                Value::Computed { start, end }
            }
        }),
    })
}

/// The number that a field is; `None` if it is an expression, or no number.
fn operand(field: &HistField, time: Operand) -> Option<Operand> {
    let offset = field.event_field.as_ref().map_or(0, |f| f.offset);
    Some(match field.function {
        Function::Counter => Operand::Constant(1),
        Function::Const(number) => Operand::Constant(number),
        Function::Cpu => Operand::Cpu,
        Function::Timestamp => time,
        Function::Number(type_) => Operand::Recorded(Number::new(type_, offset)),
        _ => return None,
    })
}

/// Appends the steps that compute `field`. Fails with `ENOMEM`, and with `EINVAL` for an operand
/// that is no number.
fn translate(field: &HistField, time: Operand, code: &mut KVec<Step>) -> Result {
    for operand in &field.operands {
        translate(operand, time, code)?;
    }
    let step = match field.function {
        Function::Negative => Step::Negate,
        Function::Binary(operator) => Step::Apply(operator),
        _ => Step::Read(operand(field, time).ok_or(EINVAL)?, field.scale()),
    };
    Ok(code.push(step, GFP_KERNEL)?)
}
