// SPDX-License-Identifier: GPL-2.0

//! The key of a hit's element.

use kernel::prelude::*;

use super::{
    content::Content,
    number::{
        Operand,
        Value, //
    },
};
use crate::{
    event::{
        Hit,
        Number,
        Scale, //
    },
    limits::STACK_DEPTH,
};

/// The way in which the executed program makes the key of a hit. Chosen when the program is
/// compiled, so that a hit tests nothing else.
// With `repr(u32)` the tag is a plain number. Otherwise it would be put into a variant, and testing
// it would take six instructions.
#[repr(u32)]
pub(in crate::hist) enum KeyReader {
    /// The key is one number. No variables, references or actions.
    Number(Value),
    /// The parts of the key are put into a buffer. No variables, references or actions.
    Parts,
    /// The key is one number of the record. Variables or actions, and at most [`FEW_REFS`]
    /// references, which are looked up by the key.
    NumberFewRefs(Number),
    /// Like `NumberFewRefs`, with more references.
    NumberRefs(Number),
    /// The parts of the key are put into a buffer. Variables, references or actions. References are
    /// looked up by the key, or by another one, in `on()`.
    PartsRefs,
    /// The key is one number of the record, and so is the key in `on()`, by which at most
    /// [`FEW_REFS`] references are looked up.
    JoinedNumbers { key: Number, on: Number },
    /// The key is the id of a control group, of [this task](super::number::TaskNumber::Group). No
    /// variables, references or actions.
    Group(Option<Number>),
    /// The parts of the key are put into a buffer, and some are ids of control groups. No
    /// variables, references or actions.
    GroupParts,
    /// Like `PartsRefs`; parts of the key are ids of control groups, which nothing else stores.
    GroupPartsRefs,
    /// Like `PartsRefs`; ids of control groups are stored by any hit, not only by one with a new
    /// key.
    GroupRefs,
    /// A reference is to a histogram with longer keys, so that its lookup always fails: each hit is
    /// unresolved.
    Unreachable,
}

/// See [`KeyReader::NumberFewRefs`].
pub(in crate::hist) const FEW_REFS: usize = 3;

impl KeyReader {
    /// The reader for a key of `parts` if `refs` references are looked up by `on`.
    pub(super) fn joined(parts: &[KeyPart], on: &LookupKey, refs: usize) -> Self {
        match (recorded_number(parts), on.number) {
            (Some(key), Some(on)) if refs <= FEW_REFS => Self::JoinedNumbers { key, on },
            _ => Self::PartsRefs,
        }
    }

    /// The reader for a key of `parts` if a hit stores ids of control groups, `only_key` if only in
    /// the key; `variables` as in [`KeyReader::new`].
    pub(super) fn with_groups(parts: &[KeyPart], variables: bool, only_key: bool) -> Self {
        match (variables, only_number(parts).and_then(Value::group)) {
            (true, _) if only_key => Self::GroupPartsRefs,
            (true, _) => Self::GroupRefs,
            (false, Some(task)) => Self::Group(task),
            (false, None) => Self::GroupParts,
        }
    }

    /// The reader for a key of these parts. `variables` is true if the trigger has variables,
    /// references or actions; `refs` is the number of references.
    pub(super) fn new(parts: &[KeyPart], variables: bool, refs: usize) -> Self {
        match (variables, only_number(parts), recorded_number(parts)) {
            (false, Some(number), _) => Self::Number(number),
            (false, None, _) => Self::Parts,
            (true, _, Some(number)) if refs <= FEW_REFS => Self::NumberFewRefs(number),
            (true, _, Some(number)) => Self::NumberRefs(number),
            (true, ..) => Self::PartsRefs,
        }
    }
}

/// Returns the number that is the whole key of these parts; `None` for other keys.
fn only_number(parts: &[KeyPart]) -> Option<Value> {
    match *parts {
        [KeyPart {
            content: Content::Number(number),
            ..
        }] => Some(number),
        _ => None,
    }
}

/// Returns the unscaled number of the record that is the whole key of these parts; `None` for other
/// keys.
fn recorded_number(parts: &[KeyPart]) -> Option<Number> {
    match parts {
        [part] => part.number(),
        _ => None,
    }
}

/// The part of the map's key that a key field takes.
#[derive(Clone, Copy)]
pub(in crate::hist) struct KeyPart {
    pub(in crate::hist) content: Content,
    /// Offset in the key, a multiple of 8.
    pub(in crate::hist) at: usize,
    /// Length in bytes, a multiple of 8.
    pub(in crate::hist) len: usize,
}

impl KeyPart {
    /// Returns the unscaled number of the record that the part is; `None` for other parts.
    pub(in crate::hist) fn number(&self) -> Option<Number> {
        match self.content {
            Content::Number(number) => match number.recorded()? {
                (number, Scale::One) => Some(number),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns whether the part is the stack of the program, not a long one.
    pub(in crate::hist) fn is_user_stack(&self) -> bool {
        matches!(self.content, Content::UserStack(_))
    }

    /// Returns whether the part is a long stack of the program.
    pub(in crate::hist) fn is_long(&self) -> bool {
        matches!(self.content, Content::LongUserStack(_))
    }

    /// Returns whether the part is a stack.
    pub(in crate::hist) fn is_stack(&self) -> bool {
        self.content.is_stack()
    }

    /// Returns whether the part is the unscaled number of the CPU.
    pub(in crate::hist) fn is_cpu(&self) -> bool {
        matches!(
            self.content,
            Content::Number(Value::Simple {
                operand: Operand::Cpu,
                scale: Scale::One,
            })
        )
    }

    /// Its length in the key of `hit` without zeros at the end, if the record says that: a multiple
    /// of 8, and not 0.
    #[inline]
    pub(super) fn used(&self, hit: &Hit<'_>) -> usize {
        let len = match self.content {
            Content::DataLoc(offset) => hit.record().data_loc(offset).len(),
            Content::RelLoc(offset) => hit.record().rel_loc(offset).len(),
            Content::StoredStack(offset) => hit.record().stack(offset, STACK_DEPTH).len(),
            _ => return self.len,
        };
        len.next_multiple_of(8).clamp(8, self.len)
    }

    /// Maximum number of characters of a string: the last byte of the part stays zero
    /// (`add_to_key()`).
    pub(in crate::hist) fn max_chars(&self) -> usize {
        self.len.saturating_sub(1)
    }
}

/// The key by which references are looked up, if it differs from the element's key.
pub(in crate::hist) struct LookupKey {
    pub(in crate::hist) parts: KVec<KeyPart>,
    /// Size in bytes.
    size: usize,
    /// The number of the record that is the whole key, if it is one.
    pub(in crate::hist) number: Option<Number>,
}

impl LookupKey {
    pub(super) fn new(parts: KVec<KeyPart>, size: usize) -> Self {
        let number = recorded_number(&parts);
        Self {
            parts,
            size,
            number,
        }
    }

    /// Size in bytes.
    pub(in crate::hist) fn size(&self) -> usize {
        self.size
    }
}
