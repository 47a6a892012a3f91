// SPDX-License-Identifier: GPL-2.0

//! Contents that a hit stores: numbers, strings and stacks.

use super::number::Value;
#[cfg(doc)]
use crate::event::Stack;
use crate::event::{
    AddressField,
    Number, //
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
    /// The comm of the task with this process id.
    CommOf(Number),
    /// The name of the trigger's event.
    Event,
    Stack,
    StoredStack(u32),
    /// The stack of the program, of at most so many words: no more than a [`Stack`] has.
    UserStack(u32),
    /// Likewise, of more words.
    LongUserStack(u32),
    /// The string or stack in another histogram's variable, by the slot of the reference.
    Imported(usize),
}

impl Content {
    /// Returns whether it is a stack.
    pub(in crate::hist) fn is_stack(&self) -> bool {
        matches!(
            self,
            Self::Stack | Self::StoredStack(_) | Self::UserStack(_) | Self::LongUserStack(_)
        )
    }

    /// Returns the task whose control group it is: see [`Value::group`].
    pub(in crate::hist) fn group(&self) -> Option<Option<Number>> {
        match self {
            Self::Number(value) => value.group(),
            _ => None,
        }
    }
}
