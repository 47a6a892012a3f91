// SPDX-License-Identifier: GPL-2.0

//! Numbers of a hit: read from the record or the context, scaled, or computed.

use crate::{
    event::{
        number::Numbers,
        Clock,
        Exponential,
        Hit,
        Number,
        NumberType,
        Record,
        Scale, //
    },
    limits::OPERATORS_MAX,
    map::ColumnSet,
    trigger::Operator, //
};

const NS_PER_US: u64 = 1000;

/// A number of a hit.
#[derive(Clone, Copy)]
pub(in crate::hist) enum Operand {
    Constant(u64),
    Cpu,
    Time(Clock),
    TimeInUsecs(Clock),
    Recorded(Number),
    /// The value of the reference with this number.
    Reference(usize),
    /// A number of a task.
    Task(TaskNumber),
}

/// A number of a task.
#[derive(Clone, Copy)]
pub(in crate::hist) enum TaskNumber {
    /// The id of a control group: of the task with the process id in the record, or of the running
    /// one.
    Group(Option<Number>),
    /// The id of the running task's process.
    Tgid,
    /// The id of the process whose child the running task is.
    Ppid,
}

impl TaskNumber {
    #[inline(never)]
    fn read(self, hit: &Hit<'_>) -> u64 {
        match self {
            Self::Group(task) => group_id(task, hit),
            Self::Tgid => hit.context().tgid().into(),
            Self::Ppid => hit.context().ppid().into(),
        }
    }
}

/// Reads the id of the control group of the task with the process id in the record, or of the
/// running one.
#[inline(always)]
pub(in crate::hist) fn group_id(task: Option<Number>, hit: &Hit<'_>) -> u64 {
    match task {
        None => hit.context().cgroup(),
        Some(pid) => hit
            .context()
            .cgroup_of(recorded_number(&pid, hit.record()) as u32),
    }
}

impl Operand {
    /// Reads the number, sign-extended to 64 bits. `vals` are the values of references.
    #[inline(always)]
    pub(super) fn read(&self, hit: &Hit<'_>, vals: &[u64]) -> u64 {
        match *self {
            Self::Constant(number) => number,
            Self::Cpu => hit.cpu() as u64,
            Self::Time(clock) => hit.context().time(clock),
            Self::TimeInUsecs(clock) => ns_to_usecs(hit.context().time(clock)),
            Self::Recorded(ref number) => recorded_number(number, hit.record()),
            Self::Reference(slot) => vals.get(slot).copied().unwrap_or(0),
            Self::Task(number) => number.read(hit),
        }
    }
}

/// Converts nanoseconds to microseconds, rounded as in C (`ns2usecs()`).
#[inline(always)]
pub(in crate::hist) fn ns_to_usecs(time: u64) -> u64 {
    time.wrapping_add(NS_PER_US / 2) / NS_PER_US
}

/// Reads a number of the record, sign-extended to 64 bits.
#[inline(always)]
pub(in crate::hist) fn recorded_number(number: &Number, record: Record<'_>) -> u64 {
    // The less common types are read out of line, which keeps callers short.
    common_number(number, record).unwrap_or_else(|| read_number(number, record))
}

/// Reads a number of the record, if it has one of the most common types.
#[inline(always)]
pub(in crate::hist) fn common_number(number: &Number, record: Record<'_>) -> Option<u64> {
    Some(match (number.type_(), number.offset()) {
        (NumberType::S32, at) => record.u32(at) as i32 as u64,
        (NumberType::U32, at) => record.u32(at).into(),
        (NumberType::U64, at) => record.u64(at),
        _ => return None,
    })
}

#[inline(never)]
fn read_number(number: &Number, record: Record<'_>) -> u64 {
    number.read(&record)
}

/// A number that is stored: a part of the key, or the value of a column.
#[derive(Clone, Copy)]
pub(in crate::hist) enum Value {
    /// A single number.
    Simple { operand: Operand, scale: Scale },
    /// The result of an operator on two numbers: the form of most expressions.
    Pair {
        operator: Operator,
        left: Operand,
        right: Operand,
    },
    /// The result of the steps of the program's code from `start` to `end`.
    Computed { start: usize, end: usize },
}

impl Value {
    /// Returns the task whose control group it is, as [`TaskNumber::Group`] has it; `None` for a
    /// value of another kind.
    pub(in crate::hist) fn group(self) -> Option<Option<Number>> {
        match self {
            Self::Simple {
                operand: Operand::Task(TaskNumber::Group(task)),
                ..
            } => Some(task),
            _ => None,
        }
    }

    /// Returns the number of the record and its scale; `None` for a value of another kind.
    pub(in crate::hist) fn recorded(self) -> Option<(Number, Scale)> {
        match self {
            Self::Simple {
                operand: Operand::Recorded(number),
                scale,
            } => Some((number, scale)),
            _ => None,
        }
    }
}

/// A number of a hit, and the columns that are updated with it.
pub(in crate::hist) struct ColumnValue {
    pub(in crate::hist) value: Value,
    /// The columns, which follow the columns of the value before.
    pub(in crate::hist) columns: ColumnSet,
    /// The distribution of the values.
    pub(in crate::hist) distribution: Option<DistributionCode>,
}

/// A distribution that a value is counted in.
#[derive(Clone, Copy)]
pub(in crate::hist) struct DistributionCode {
    pub(in crate::hist) buckets: Exponential,
    /// Its index among the distributions of the histogram.
    pub(in crate::hist) number: u16,
}

/// A step of an expression, in reverse Polish notation.
#[derive(Clone, Copy)]
pub(super) enum Step {
    Read(Operand, Scale),
    Negate,
    Apply(Operator),
}

/// The maximum depth of the stack of an expression.
pub(super) const DEPTH: usize = OPERATORS_MAX + 1;

/// Evaluates an expression.
pub(super) fn compute(code: &[Step], hit: &Hit<'_>, vals: &[u64]) -> u64 {
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
                number = scale.apply(next.read(hit, vals));
            }
            Step::Negate => number = number.wrapping_neg(),
            Step::Apply(operator) => {
                depth = depth.saturating_sub(1);
                let left = waiting.get(depth).copied().unwrap_or(0);
                number = operator.apply(left, number);
            }
        }
    }
    number
}
