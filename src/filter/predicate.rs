// SPDX-License-Identifier: GPL-2.0

//! One predicate, compiled: `field operator value`.

use kernel::prelude::*;

use super::{
    cpus::CpuSet,
    pattern::Pattern,
    range::NumberRange, //
};
use crate::{
    event::{
        number::Numbers,
        pointed::read_text,
        AddressField,
        EventField,
        GroupPlace,
        Hit,
        Network,
        Number,
        NumberType,
        Record, //
    },
    limits::POINTED_MAX, //
};

/// Reads strings behind pointers without faulting.
///
/// Called in any context, NMI included, with preemption off, for any address. No read crosses a
/// multiple of [`BLOCK`](crate::event::pointed::BLOCK).
pub trait Memory {
    /// Fills `to` from kernel memory at `address`. False if not all of it can be read
    /// (`copy_from_kernel_nofault()`).
    fn read_kernel(&self, to: &mut [u8], address: usize) -> bool;

    /// Fills `to` from memory of the running task at `address`. False if not all of it can be read
    /// (`copy_from_user_nofault()`).
    fn read_user(&self, to: &mut [u8], address: usize) -> bool;
}

/// A compiled predicate: the value of a hit to read, and how to compare it (`struct filter_pred`).
/// The first `u32` of a variant is an offset in the record, the second one of `Array` a length.
pub(super) enum Predicate {
    /// Always true, or always false.
    Constant(bool),
    /// The number is in a range.
    Range(Number, NumberRange),
    /// Any of these bits of the number is set.
    Bits(Number, u64),
    /// The number is a CPU in the mask.
    Member(Number, CpuSet),
    Cpu(NumberRange),
    CpuMember(CpuSet),
    /// The mask in the record equals this one, or does not.
    CpusEqual(u32, CpuSet, bool),
    CpusIntersect(u32, CpuSet),
    Array(u32, u32, Pattern),
    DataLoc(u32, Pattern),
    RelLoc(u32, Pattern),
    Comm(Pattern),
    /// The running task's control group is the one with this id, or is not.
    Group(u64, bool),
    /// The running task's control group is this one, or one below it.
    GroupBelow(GroupPlace),
    /// The address is in the network, or is not.
    Address(AddressField, Network, bool),
    /// A string in the kernel's memory, with its pointer in the record.
    Kernel(u32, Pattern),
    /// A string in the running task's memory, with its pointer in the record.
    User(u32, Pattern),
}

/// A number of the record, of one of the commonest types, and the range that is accepted.
#[derive(Clone, Copy)]
pub struct FieldRange {
    number: Number,
    range: NumberRange,
}

impl FieldRange {
    /// A range that no record is in.
    pub const NONE: Self = Self {
        number: Number::new(NumberType::U8, 0),
        range: NumberRange::EMPTY,
    };

    /// Returns whether the number of this record is in the range. Any context.
    #[inline(always)]
    pub fn has(&self, record: Record<'_>) -> bool {
        let number = record.common_number(self.number);
        number.is_some_and(|number| self.range.contains(number))
    }
}

impl Predicate {
    /// Evaluates the predicate.
    #[inline(always)]
    pub(super) fn holds(&self, hit: &Hit<'_>, memory: &impl Memory) -> bool {
        // Fast path for the most common predicate.
        if let Self::Range(number, range) = self {
            if let Some(number) = hit.record().common_number(*number) {
                return range.contains(number);
            }
        }
        self.another_holds(hit, memory)
    }

    #[inline(never)]
    fn another_holds(&self, hit: &Hit<'_>, memory: &impl Memory) -> bool {
        let record = hit.record();
        match self {
            Self::Constant(result) => *result,
            Self::Range(number, range) => range.contains(number.read(&record)),
            Self::Bits(number, bits) => number.read(&record) & bits != 0,
            // CPU numbers have 32 bits; the upper half of a wider field is ignored.
            Self::Member(number, cpus) => cpus.contains(number.read(&record) as u32 as usize),
            Self::Cpu(range) => range.contains(hit.cpu() as u64),
            Self::CpuMember(cpus) => cpus.contains(hit.cpu()),
            Self::CpusEqual(at, cpus, equal) => cpus.equals(record.data_loc(*at)) == *equal,
            Self::CpusIntersect(at, cpus) => cpus.intersects(record.data_loc(*at)),
            Self::Array(at, len, pattern) => {
                pattern.matches(record.bytes(*at as usize, *len as usize))
            }
            Self::DataLoc(at, pattern) => pattern.matches(record.data_loc(*at)),
            Self::RelLoc(at, pattern) => pattern.matches(record.rel_loc(*at)),
            Self::Comm(pattern) => pattern.matches(&hit.context().comm()),
            Self::Group(id, equal) => (hit.context().cgroup() == *id) == *equal,
            Self::GroupBelow(group) => hit.context().is_in_cgroup(*group),
            Self::Address(field, network, inside) => {
                network.contains(field.read(record)) == *inside
            }
            Self::Kernel(at, pattern) => pointed(pattern, pointer(hit, *at), |to, address| {
                memory.read_kernel(to, address)
            }),
            Self::User(at, pattern) => pointed(pattern, pointer(hit, *at), |to, address| {
                memory.read_user(to, address)
            }),
        }
    }

    /// Returns the number of the record and its range, if the predicate is just that and the number
    /// has one of the commonest types.
    pub(super) fn field_range(&self) -> Option<FieldRange> {
        match *self {
            Self::Range(number, range)
                if matches!(number.type_(), NumberType::U32 | NumberType::U64) =>
            {
                Some(FieldRange { number, range })
            }
            _ => None,
        }
    }

    /// Returns the offset in the record that it reads, if any; and whether it reads nothing else:
    /// false if it follows a pointer.
    pub(super) fn access(&self) -> (Option<u32>, bool) {
        match self {
            Self::Constant(_)
            | Self::Cpu(_)
            | Self::CpuMember(_)
            | Self::Comm(_)
            | Self::Group(..)
            | Self::GroupBelow(_) => (None, true),
            Self::Range(number, _) | Self::Bits(number, _) | Self::Member(number, _) => {
                (Some(number.offset()), true)
            }
            Self::Address(field, ..) => (Some(field.offset()), true),
            Self::CpusEqual(at, _, _)
            | Self::CpusIntersect(at, _)
            | Self::Array(at, _, _)
            | Self::DataLoc(at, _)
            | Self::RelLoc(at, _) => (Some(*at), true),
            Self::Kernel(at, _) | Self::User(at, _) => (Some(*at), false),
        }
    }

    /// A predicate that is true if the number in `field` is in `range`. False without a range.
    pub(super) fn range(field: &EventField, range: Option<NumberRange>) -> Self {
        Self::number(field, |number| Some(Self::Range(number, range?)))
    }

    /// Creates a predicate for the number in `field`, read as unsigned. If `field` does not have
    /// the size of a number, the predicate is always false.
    pub(super) fn number(field: &EventField, ask: impl FnOnce(Number) -> Option<Self>) -> Self {
        NumberType::new(field.size, false)
            .map(|type_| Number::new(type_, field.offset))
            .and_then(ask)
            .unwrap_or(Self::Constant(false))
    }
}

fn pointer(hit: &Hit<'_>, at: u32) -> usize {
    match size_of::<usize>() {
        4 => hit.record().u32(at) as usize,
        _ => hit.record().u64(at) as usize,
    }
}

/// Compares a string behind a pointer, up to [`POINTED_MAX`] bytes. False for any pattern if the
/// string cannot be read.
// Not inlined, so that the other predicates do not get its large stack frame.
#[inline(never)]
fn pointed(pattern: &Pattern, address: usize, read: impl Fn(&mut [u8], usize) -> bool) -> bool {
    let mut string = [0; POINTED_MAX];
    read_text(&mut string, address, read) && pattern.matches(&string[..POINTED_MAX - 1])
}
