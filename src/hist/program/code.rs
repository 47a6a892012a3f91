// SPDX-License-Identifier: GPL-2.0

//! The lists that a program consists of.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    content::Content,
    key::{
        KeyPart,
        KeyReader,
        LookupKey, //
    },
    number::{
        ColumnValue,
        Step,
        Value, //
    },
};
use crate::{
    event::Number,
    hist::Histogram,
    limits::STACK_DEPTH,
    map::{
        Column,
        OnceText, //
    },
};

/// The place of a variable in an element.
#[derive(Clone, Copy)]
pub(in crate::hist) enum Cell {
    /// A variable of the map that a reference unsets when it reads it.
    Once(usize),
    /// A variable of the map.
    Number(usize),
    /// A wide cell.
    Wide(usize),
}

/// A reference to a variable of another histogram, which a hit needs before it inserts its key.
pub(in crate::hist) struct Import {
    pub(in crate::hist) home: Arc<Histogram>,
    /// Whether it refers to the same histogram as the import before.
    pub(in crate::hist) again: bool,
    pub(in crate::hist) cell: Cell,
    /// The slot that its value is put into.
    pub(in crate::hist) slot: usize,
}

/// A variable of the map, and the number that it is set to.
pub(in crate::hist) struct VarStore {
    pub(in crate::hist) var: usize,
    pub(in crate::hist) value: Value,
    /// The slot of the reference that actions of this trigger have to the variable. Larger than any
    /// slot if they have none.
    pub(in crate::hist) slot: usize,
}

/// A wide cell of the map, its number of words, and the string or stack that it is set to.
pub(in crate::hist) struct WideStore {
    pub(in crate::hist) cell: usize,
    pub(in crate::hist) words: usize,
    pub(in crate::hist) content: Content,
}

/// The variable that `onmax()` or `onchange()` tracks.
pub(in crate::hist) struct TrackCode {
    /// The slot of the reference to the variable.
    pub(in crate::hist) slot: usize,
    /// Whether the value has to be larger than the last one; otherwise, different.
    pub(in crate::hist) larger: bool,
    /// The wide cell with the last value, followed by the fields of `save()`.
    pub(in crate::hist) cell: usize,
}

/// The values of `trace()` for a synthetic event.
#[derive(Default)]
pub(in crate::hist) struct TraceValues {
    /// For each field of the event, the index of its value (`var_ref_idx[]`): the slot of a
    /// reference; or [`VARS_MAX`](crate::limits::VARS_MAX) more, for the string at the address that
    /// is the reference's value.
    pub(in crate::hist) idx: KVec<u32>,
    /// Values that are numbers of this hit, with their slots.
    pub(in crate::hist) numbers: KVec<(usize, Value)>,
    /// Values that are strings or stacks, with their indices.
    pub(in crate::hist) wide: KVec<(usize, Content)>,
}

/// The work of a hit for an action, besides calling its
/// [target](crate::hist::spec::target::Target).
pub(in crate::hist) struct ActionCode {
    /// The variable that has to be larger than before, or to have changed. `None`: the action is
    /// done for each hit.
    pub(in crate::hist) track: Option<TrackCode>,
    /// The values for `trace()`.
    pub(in crate::hist) trace: TraceValues,
}

/// The code of a hit: how it makes its key, and how it updates the element.
pub struct Program {
    pub(in crate::hist) key: KeyReader,
    /// The parts of the map's key, in the order of the key fields.
    pub(in crate::hist) parts: KVec<KeyPart>,
    /// The parts of a key with the numbers of stacks instead of their words. Empty: a stack is not
    /// there, or is the only part and not long, or the trigger has variables or actions.
    pub(in crate::hist) interned: KVec<KeyPart>,
    /// Bytes of a key in the map. Without variables, a comm takes 16 bytes, fewer than in C.
    pub(in crate::hist) key_size: usize,
    /// The columns of an element: the hitcount, and the columns of the values.
    pub(in crate::hist) columns: KVec<Column>,
    pub(in crate::hist) values: KVec<ColumnValue>,
    /// The key by which references are looked up, if not the element's.
    pub(in crate::hist) on: Option<LookupKey>,
    /// The process id whose comm is stored as side data, if any.
    pub(in crate::hist) pid: Option<Value>,
    /// The variables of other histograms to read.
    pub(in crate::hist) imports: KVec<Import>,
    pub(in crate::hist) stores: KVec<VarStore>,
    pub(in crate::hist) wide_stores: KVec<WideStore>,
    /// For each variable, its place in an element.
    pub(in crate::hist) cells: KVec<Cell>,
    /// Number of words of each wide cell of an element.
    pub(in crate::hist) wide: KVec<usize>,
    /// The fields that `save()` saves, each with its number of words.
    pub(in crate::hist) saved: KVec<(Content, usize)>,
    pub(in crate::hist) actions: KVec<ActionCode>,
    /// The name of the event, if a content is that.
    pub(in crate::hist) event: KVec<u8>,
    /// The tasks of the control groups whose ids are stored: see
    /// [`TaskNumber::Group`](super::number::TaskNumber::Group).
    pub(in crate::hist) groups: KVec<Option<Number>>,
    pub(super) leaf: bool,
    /// The steps of all values that are computed.
    pub(super) code: KVec<Step>,
}

impl Program {
    /// The wide cell of the value that the `n`th action tracks.
    pub(in crate::hist) fn tracked(&self, n: usize) -> Option<usize> {
        Some(self.actions.get(n)?.track.as_ref()?.cell)
    }

    /// The variables that are numbers, a bit for each.
    pub(in crate::hist) fn number_vars(&self) -> u32 {
        let vars = self.stores.iter().map(|store| 1u32 << store.var);
        vars.fold(0, |all, var| all | var)
    }

    /// The wide cells of variables that are strings or stacks, a bit for each.
    pub(in crate::hist) fn wide_vars(&self) -> u32 {
        let cells = self.wide_stores.iter().map(|store| 1u32 << store.cell);
        cells.fold(0, |all, cell| all | cell)
    }

    /// The stacks in a key that are interned: for each the maximum number of its words.
    pub(in crate::hist) fn stacks(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        let parts = self.interned.iter();
        parts.filter_map(|part| match part.content {
            Content::LongUserStack(depth) => Some(depth as usize),
            content => content.is_stack().then_some(STACK_DEPTH),
        })
    }

    /// Number of words of side data of an element.
    pub(in crate::hist) fn side(&self) -> usize {
        match self.pid {
            Some(_) => OnceText::WORDS,
            None => 0,
        }
    }

    /// Returns whether no variable, saved field or field of a synthetic event is a control group.
    pub(in crate::hist) fn has_groups_in_keys_only(&self) -> bool {
        let on = self.on.iter().flat_map(|on| on.parts.iter());
        let parts = Iterator::chain(self.parts.iter(), on);
        self.groups.len() == parts.filter(|part| part.content.group().is_some()).count()
    }

    /// Returns whether a hit only updates columns: without variables, references and actions.
    pub(in crate::hist) fn only_counts(&self) -> bool {
        self.stores.is_empty()
            && self.wide_stores.is_empty()
            && self.imports.is_empty()
            && self.on.is_none()
            && self.actions.is_empty()
    }

    /// Returns whether a hit calls only functions without static events: reading the stack and
    /// running actions may hit one. Clocks have none. Probes can be placed in them, but probes
    /// bound their own recursion, and are not static events.
    pub fn is_leaf(&self) -> bool {
        self.leaf
    }
}
