// SPDX-License-Identifier: GPL-2.0

//! What a hit executes, compiled from the spec of a trigger.
//!
//! Flat lists of what to read and where to put it, decided in advance: a hit neither allocates nor looks anything up by
//! name.

mod compile;
pub(in crate::hist) mod content;
pub(in crate::hist) mod key;
pub(in crate::hist) mod number;
pub(in crate::hist) mod vars;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    Draft,
    Histogram,
    Spec,
    Targets, //
};
use crate::{
    event::{
        Hit,
        Number,
        Scale, //
    },
    map::{
        Column,
        OnceText, //
    },
    trigger::Error, //
};
use content::Content;
use key::{
    KeyPart,
    KeyReader,
    LookupKey, //
};
use number::{
    compute,
    ColumnValue,
    Step,
    Value, //
};
use vars::VarFields;

/// Where an element has a variable.
#[derive(Clone, Copy)]
pub(in crate::hist) enum Cell {
    /// A variable of the map, which a reference unsets when it reads it.
    Once(usize),
    /// A variable of the map.
    Number(usize),
    /// A wide cell.
    Wide(usize),
}

/// A reference to a variable of another histogram, which a hit needs before it inserts its key.
pub(in crate::hist) struct Import {
    pub(in crate::hist) home: Arc<Histogram>,
    /// Whether it is to the same histogram as the one before.
    pub(in crate::hist) again: bool,
    pub(in crate::hist) cell: Cell,
    /// Where its value is put.
    pub(in crate::hist) slot: usize,
}

/// What an [`Import`] of a number comes to on the fast path: see [`vars`].
pub(in crate::hist) struct VarImport {
    /// The key of its element.
    pub(in crate::hist) on: Number,
    pub(in crate::hist) home: Arc<Histogram>,
    pub(in crate::hist) var: usize,
    /// Whether it is unset then.
    pub(in crate::hist) once: bool,
}

/// A variable of the map, and the number that it is set to.
pub(in crate::hist) struct VarStore {
    pub(in crate::hist) var: usize,
    pub(in crate::hist) value: Value,
    /// The slot of the reference that actions of this trigger have to it. Larger than any slot if there is none.
    pub(in crate::hist) slot: usize,
}

/// A wide cell of the map, of so many words, and the string or stack that it is set to.
pub(in crate::hist) struct WideStore {
    pub(in crate::hist) cell: usize,
    pub(in crate::hist) words: usize,
    pub(in crate::hist) content: Content,
}

/// The variable that `onmax()` or `onchange()` tracks.
pub(in crate::hist) struct TrackCode {
    /// The slot of the reference to the variable.
    pub(in crate::hist) slot: usize,
    /// Whether it has to be larger.
    pub(in crate::hist) larger: bool,
    /// The wide cell with its last value, and behind that what `save()` saves.
    pub(in crate::hist) cell: usize,
}

/// What `trace()` gives a synthetic event.
#[derive(Default)]
pub(in crate::hist) struct TraceValues {
    /// Which value each field of the event gets (`var_ref_idx[]`): that of the reference in this slot; or,
    /// [`VARS_MAX`](crate::limits::VARS_MAX) more, the characters at the address that is this value.
    pub(in crate::hist) idx: KVec<u32>,
    /// Slots of values that are numbers of this hit, and those numbers.
    pub(in crate::hist) numbers: KVec<(usize, Value)>,
    /// Values that are characters or stacks.
    pub(in crate::hist) wide: KVec<(usize, Content)>,
}

/// What a hit does for an action, besides calling its
/// [target](crate::hist::spec::target::Target).
pub(in crate::hist) struct ActionCode {
    /// The variable that has to be larger than before, or to have changed. `None`: the action is always done.
    pub(in crate::hist) track: Option<TrackCode>,
    /// For `trace()`.
    pub(in crate::hist) trace: TraceValues,
}

/// A trigger that can be attached: what it is, what a hit executes, and what its actions call.
pub struct Compiled {
    /// What it is.
    pub spec: Arc<Spec>,
    /// What a hit executes.
    pub program: Arc<Program>,
    /// What the program was compiled with.
    pub targets: Targets,
}

impl Compiled {
    /// Resolves the actions of a trigger, and compiles it.
    ///
    /// # Errors
    ///
    /// See [`Draft::new`].
    pub fn new(mut draft: Draft<'_>) -> Result<Self, Error> {
        let targets = draft.resolve_actions()?;
        let program = Program::compile(draft.spec(), &targets)?;
        let spec = draft.into_spec()?;
        Ok(Self {
            spec,
            program,
            targets,
        })
    }
}

/// The fast path of a trigger with variables.
pub enum VarPath {
    /// No variable is read: see [`Histogram::hit_set`].
    Set,
    /// One is: see [`Histogram::hit_latency`].
    Latency,
    /// A synthetic event happens: see [`Histogram::hit_trace`].
    Trace,
}

/// What a hit executes: how it makes its key, and what it updates the element with.
pub struct Program {
    pub(in crate::hist) key: KeyReader,
    /// The parts of the map's key, in the order of the key fields.
    pub(in crate::hist) parts: KVec<KeyPart>,
    /// Bytes of a key in the map. Without variables fewer than in C for a comm, which takes 16.
    pub(in crate::hist) key_size: usize,
    /// The columns of an element: the count of hits, and one for each of the values.
    pub(in crate::hist) columns: KVec<Column>,
    pub(in crate::hist) values: KVec<ColumnValue>,
    /// How references are looked up, if not by the key.
    pub(in crate::hist) on: Option<LookupKey>,
    /// The process id, if its comm is stored as side data.
    pub(in crate::hist) pid: Option<Value>,
    /// What is read of other histograms.
    pub(in crate::hist) imports: KVec<Import>,
    pub(in crate::hist) stores: KVec<VarStore>,
    pub(in crate::hist) wide_stores: KVec<WideStore>,
    /// Where an element has each variable.
    pub(in crate::hist) cells: KVec<Cell>,
    /// Words of each wide cell of an element.
    pub(in crate::hist) wide: KVec<usize>,
    /// What `save()` saves, each in so many words.
    pub(in crate::hist) saved: KVec<(Content, usize)>,
    pub(in crate::hist) actions: KVec<ActionCode>,
    /// The fast path of a trigger with variables, if it has one.
    pub(in crate::hist) vars: Option<VarFields>,
    leaf: bool,
    code: KVec<Step>,
}

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

    /// [`Program::read`], without a call for numbers that are not scaled.
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

    /// [`Program::read`], without a call for the result of an operator on two numbers, as most latencies are.
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

    /// The wide cell of the value that the `n`th action tracks.
    pub(in crate::hist) fn tracked(&self, n: usize) -> Option<usize> {
        Some(self.actions.get(n)?.track.as_ref()?.cell)
    }

    /// Words of side data of an element.
    pub(in crate::hist) fn side(&self) -> usize {
        match self.pid {
            Some(_) => OnceText::WORDS,
            None => 0,
        }
    }

    /// Whether a hit needs nothing but plain fields of the record: see [`Histogram::hit_fast`].
    pub fn is_fast(&self) -> bool {
        matches!(self.key, KeyReader::Fields(_))
    }

    /// Whether it needs only these, and updates columns of any kind: see [`Histogram::hit_columns`].
    pub fn has_columns(&self) -> bool {
        matches!(
            self.key,
            KeyReader::Columns(_) | KeyReader::Distributions(_)
        )
    }

    /// The fast path of a trigger with variables, if it has one.
    pub fn var_path(&self) -> Option<VarPath> {
        let vars = self.vars.as_ref()?;
        Some(match (&vars.trace, &vars.import) {
            (Some(_), _) => VarPath::Trace,
            (None, Some(_)) => VarPath::Latency,
            (None, None) => VarPath::Set,
        })
    }

    /// Whether it calls no function that may hit a static event, as those for the stack and for actions may. Clocks hit
    /// none. Probes can be placed in them, but those bound their own recursion, and are no static events.
    pub fn is_leaf(&self) -> bool {
        self.leaf
    }
}
