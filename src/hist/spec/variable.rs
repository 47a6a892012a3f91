// SPDX-License-Identifier: GPL-2.0

//! Variables of a histogram, and references to them.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    hist::Histogram,
    limits, //
};

/// The kind of value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A number of 64 bits.
    Number,
    /// Characters.
    Text,
    /// Return addresses.
    Stack,
    /// Words of a program's stack.
    UserStack,
    /// An internet address.
    Address,
}

/// A variable (`var` of `struct hist_field`).
#[derive(Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name, without `$`.
    pub name: KVec<u8>,
    /// Index among all variables of the histogram.
    pub index: usize,
}

/// A reference of a trigger, and how it is read.
pub(in crate::hist) struct Reference {
    pub(in crate::hist) var: Arc<VarRef>,
    /// Whether reading the variable unsets it.
    pub(in crate::hist) once: bool,
}

/// A reference to a variable (`var_refs[]` of `struct hist_trigger_data`). A histogram has one for
/// each variable that it refers to.
pub struct VarRef {
    /// The histogram that has the variable; `None` for the histogram that has the reference.
    pub home: Option<Arc<Histogram>>,
    /// The variable's number there.
    pub index: usize,
    /// The variable's name.
    pub name: KVec<u8>,
    /// System and event, if it was written with these.
    pub qualifier: Option<[KVec<u8>; 2]>,
    /// The variable's type, as text.
    pub type_: KVec<u8>,
    /// The variable's size in bytes.
    pub size: u32,
    /// Whether the variable is a signed number.
    pub signed: bool,
    /// Whether the variable is signed in C.
    pub c_signed: bool,
    /// The kind of the variable's value.
    pub kind: ValueKind,
    /// Whether the variable is a time in microseconds.
    pub usecs: bool,
    /// The variable's value, if that is constant.
    pub constant: Option<u64>,
    /// The reference's number.
    pub slot: usize,
}

impl VarRef {
    /// Returns whether it refers to variable `index` of `home`.
    pub fn is_to(&self, home: Option<&Arc<Histogram>>, index: usize) -> bool {
        let same = match (&self.home, home) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        same && self.index == index
    }

    /// Returns whether it refers to the same as `other`, a reference of another trigger.
    pub fn same(&self, other: &Self) -> bool {
        self.is_to(other.home.as_ref(), other.index)
    }

    /// Returns whether it matches `other`, a reference of another trigger: it refers to the same
    /// variable, or is written alike. A name may refer to another variable since. C compares
    /// neither (`hist_trigger_match()`).
    pub fn matches(&self, other: &Self) -> bool {
        let written_alike = self.name == other.name && self.qualifier == other.qualifier;
        written_alike || self.same(other)
    }
}

impl core::fmt::Debug for VarRef {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "VarRef({:?})", self.name)
    }
}

/// Bytes that a variable keeps of a string of `size` bytes, with its NUL (`STR_VAR_LEN_MAX`).
pub fn text_size(size: u32) -> usize {
    size.min(limits::STRING_MAX) as usize
}
