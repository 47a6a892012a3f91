// SPDX-License-Identifier: GPL-2.0

//! Triggers that set or read one variable, such as latencies: what their hits need.
//!
//! Such a hit calls nothing that can be traced. That includes a `trace()` of up to six numbers if
//! the only listener of the event is a histogram of rhist that is a leaf (`SynthTarget::leaf()`).
//! Each hit tests that before anything is done: the hit of the event is then a record on the stack,
//! passed to that histogram, without a tracepoint or a place in a ring buffer. Otherwise the hit
//! takes the slow path, where the program is executed.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::var_key::VarKey;
use crate::{
    event::{
        Clock,
        Number,
        Scale, //
    },
    hist::{
        program::{
            key::KeyReader,
            number::{
                ColumnValue,
                DistributionCode,
                Operand,
                Value, //
            },
            ActionCode,
            Cell,
            Import,
            Program, //
        },
        spec::{
            target::{
                Target,
                Targets, //
            },
            variable::ValueKind, //
        },
        Histogram, //
    },
    map::ColumnSet,
    trigger::Operator, //
};

/// A hit whose key is a [`VarKey`]. It reads at most one variable of another histogram,
/// and computes at most one number, which sets a variable or updates columns. It emits at most one
/// event, whose fields are numbers.
///
/// All of it is decided when the program is compiled, so a hit needs neither a list, nor slots for
/// the values of references, nor a context.
pub(in crate::hist) struct VarFields {
    pub(super) key: VarKey,
    pub(super) import: Option<VarImport>,
    pub(super) value: VarValue,
    pub(super) used: Use,
    /// The values for the fields of the synthetic event.
    pub(super) trace: Option<TraceFields>,
}

/// The variable of another histogram that a hit reads.
pub(super) struct VarImport {
    /// The key of its element.
    pub(super) on: VarKey,
    pub(super) home: Arc<Histogram>,
    pub(super) var: usize,
    /// Whether reading it unsets it.
    pub(super) once: bool,
}

/// The number that a hit computes.
#[repr(u32)]
pub(super) enum VarValue {
    /// The time in microseconds, less the variable, if one is read.
    Usecs,
    Other(Difference),
}

/// A number, less another one if present.
pub(super) struct Difference {
    pub(super) left: VarOperand,
    pub(super) right: Option<VarOperand>,
}

/// A number of a hit on the fast path. Times are read from [`Clock::Global`].
// With a tag of its own: it takes nine instructions to test one that is inside the number.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(super) enum VarOperand {
    TimeInUsecs,
    Time,
    Reference,
    Recorded(Number),
    Constant(u64),
}

/// The use of the number that a hit computes.
#[repr(u32)]
pub(super) enum Use {
    /// It sets this variable.
    Variable(usize),
    /// It updates the columns of the only value, and is counted in its distribution.
    Columns(ColumnSet, Option<DistributionCode>),
    /// None: the hit is only counted.
    None,
}

/// The values for the fields of a synthetic event, in their order.
pub(super) type TraceFields = KVec<TraceField>;

/// The value for a field of a synthetic event.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(super) enum TraceField {
    /// The number that the hit computes.
    Computed,
    Operand(VarOperand),
}

/// Maximum number of fields of an event on the fast path.
const TRACE_FIELDS_MAX: usize = 6;

/// Maximum number of words of its record: the fields and the head.
pub(super) const TRACE_WORDS: usize = 1 + TRACE_FIELDS_MAX;

impl VarFields {
    /// Describes the hits of `program`; `None` if they need more. Fails with `ENOMEM`.
    pub(super) fn new(program: &Program, targets: &Targets) -> Result<Option<Self>> {
        let unreachable = matches!(program.key, KeyReader::Unreachable);
        if unreachable || program.pid.is_some() || !program.wide_stores.is_empty() {
            return Ok(None);
        }
        let Some(key) = VarKey::new(&program.parts) else {
            return Ok(None);
        };
        let (import, slot) = match &program.imports[..] {
            [] => (None, None),
            [import] => match VarImport::new(program, import) {
                None => return Ok(None),
                some => (some, Some(import.slot)),
            },
            _ => return Ok(None),
        };
        let (value, used) = match (&program.stores[..], &program.values[..]) {
            ([], []) => (None, Use::None),
            ([store], []) => (Some(&store.value), Use::Variable(store.var)),
            ([], [value]) => {
                let ColumnValue {
                    value,
                    columns,
                    distribution,
                } = value;
                (Some(value), Use::Columns(*columns, *distribution))
            }
            _ => return Ok(None),
        };
        let Some(value) = VarValue::new(value, slot) else {
            return Ok(None);
        };
        let trace = match (&program.actions[..], &targets.0[..]) {
            ([], []) => None,
            ([action], [target]) => match trace_fields(program, action, target, slot)? {
                None => return Ok(None),
                some => some,
            },
            _ => return Ok(None),
        };
        Ok(Some(Self {
            key,
            import,
            value,
            used,
            trace,
        }))
    }
}

impl VarFields {
    /// Returns whether a hit reads a variable of another histogram.
    pub(super) fn reads(&self) -> bool {
        self.import.is_some()
    }

    /// Returns whether a hit emits a synthetic event.
    pub(super) fn emits(&self) -> bool {
        self.trace.is_some()
    }
}

impl VarImport {
    /// Converts an import of `program`. `None`: the variable is not a number, or the key of its
    /// element is not numbers of the record.
    fn new(program: &Program, import: &Import) -> Option<Self> {
        let on = match &program.on {
            Some(on) => VarKey::new(&on.parts)?,
            None => VarKey::new(&program.parts)?,
        };
        let (var, once) = match import.cell {
            Cell::Once(var) => (var, true),
            Cell::Number(var) => (var, false),
            Cell::Wide(_) => return None,
        };
        let home = import.home.clone();
        Some(Self {
            on,
            home,
            var,
            once,
        })
    }
}

impl VarValue {
    /// Converts `value`; the variable that is read has this slot. `None`: the fast path has no such
    /// number.
    fn new(value: Option<&Value>, slot: Option<usize>) -> Option<Self> {
        let Some(value) = value else {
            return Some(Self::Usecs);
        };
        let value = Difference::new(value, slot)?;
        Some(match (value.left, value.right, slot) {
            (VarOperand::TimeInUsecs, Some(VarOperand::Reference), _)
            | (VarOperand::TimeInUsecs, None, None) => Self::Usecs,
            _ => Self::Other(value),
        })
    }
}

impl Difference {
    /// See [`VarValue::new`].
    fn new(value: &Value, slot: Option<usize>) -> Option<Self> {
        let (left, right) = match value {
            Value::Simple {
                operand,
                scale: Scale::One,
            } => (operand, None),
            Value::Pair {
                operator: Operator::Minus,
                left,
                right,
            } => (left, Some(right)),
            _ => return None,
        };
        let right = match right {
            None => None,
            Some(right) => Some(VarOperand::new(right, slot)?),
        };
        let left = VarOperand::new(left, slot)?;
        // A hit has one time, but this path would read the clock twice.
        if left.is_time() && right.is_some_and(VarOperand::is_time) {
            return None;
        }
        Some(Self { left, right })
    }
}

impl VarOperand {
    fn new(operand: &Operand, slot: Option<usize>) -> Option<Self> {
        Some(match *operand {
            Operand::TimeInUsecs(Clock::Global) => Self::TimeInUsecs,
            Operand::Time(Clock::Global) => Self::Time,
            Operand::Recorded(number) => Self::Recorded(number),
            Operand::Constant(number) => Self::Constant(number),
            Operand::Reference(number) if Some(number) == slot => Self::Reference,
            _ => return None,
        })
    }

    fn is_time(self) -> bool {
        matches!(self, Self::TimeInUsecs | Self::Time)
    }
}

/// Compiles the values for the event of `action`. `None`: it is not a plain `trace()`, or some
/// values are not numbers of the hit.
fn trace_fields(
    program: &Program,
    action: &ActionCode,
    target: &Target,
    slot: Option<usize>,
) -> Result<Option<TraceFields>> {
    let (Target::Trace(event), None) = (target, &action.track) else {
        return Ok(None);
    };
    let trace = &action.trace;
    let mut kinds = event.fields().iter().map(|field| field.kind);
    if !kinds.all(|kind| kind == ValueKind::Number) || trace.idx.len() > TRACE_FIELDS_MAX {
        return Ok(None);
    }
    let mut fields = KVec::with_capacity(trace.idx.len(), GFP_KERNEL)?;
    for &idx in &trace.idx {
        let place = idx as usize;
        let number = trace.numbers.iter().find(|(slot, _)| *slot == place);
        let made = program
            .stores
            .first()
            .is_some_and(|store| store.slot == place);
        let field = match number {
            Some((
                _,
                Value::Simple {
                    operand,
                    scale: Scale::One,
                },
            )) => VarOperand::new(operand, slot)
                .filter(|operand| !operand.is_time())
                .map(TraceField::Operand),
            Some(_) => None,
            None if made => Some(TraceField::Computed),
            None if Some(place) == slot => Some(TraceField::Operand(VarOperand::Reference)),
            None => None,
        };
        let Some(field) = field else {
            return Ok(None);
        };
        fields.push(field, GFP_KERNEL)?;
    }
    Ok(Some(fields))
}
