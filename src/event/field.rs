// SPDX-License-Identifier: GPL-2.0

//! The description of an event: its fields (`struct ftrace_event_field`).

use kernel::prelude::*;

use crate::text::copy;

/// The kind of data in a field (`FILTER_*` of include/linux/trace_events.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterType {
    /// A number, or anything else.
    Other,
    /// A character array in the record.
    StaticString,
    /// `__data_loc` characters.
    DynString,
    /// `__rel_loc` characters.
    RelDynString,
    /// A pointer to characters: the record holds the pointer only.
    PtrString,
    /// The pointer of a traced function (function trace events).
    TraceFn,
    /// `__data_loc cpumask_t`.
    CpuMask,
    /// The running task's name (no bytes in the record).
    Comm,
    /// The CPU (no bytes in the record).
    Cpu,
    /// A stored stack, or the present one (no bytes in the record).
    Stacktrace,
}

impl FilterType {
    /// Returns whether C compares such fields as strings (`is_string_field()`).
    pub fn is_string(self) -> bool {
        matches!(
            self,
            Self::StaticString
                | Self::DynString
                | Self::RelDynString
                | Self::PtrString
                | Self::Comm
        )
    }
}

/// One field of an event (`struct ftrace_event_field`).
#[derive(Debug)]
pub struct EventField {
    /// Name of the field.
    pub name: KVec<u8>,
    /// Declared type, for example `unsigned long` or `__data_loc char[]`.
    pub type_: KVec<u8>,
    /// Where it starts in the record, in bytes.
    pub offset: u32,
    /// Size in the record in bytes; 0 if the field has no bytes there.
    pub size: u32,
    /// Whether a number in it is signed.
    pub signed: bool,
    /// Kind of data.
    pub filter: FilterType,
    /// Whether it is one of the `common_*` fields that every event has.
    pub common: bool,
}

impl EventField {
    /// Makes a field from copies of its name and type. Fails with `ENOMEM`.
    pub fn new(
        name: &[u8],
        type_: &[u8],
        offset: u32,
        size: u32,
        signed: bool,
        filter: FilterType,
        common: bool,
    ) -> Result<Self> {
        Ok(Self {
            name: copy(name)?,
            type_: copy(type_)?,
            offset,
            size,
            signed,
            filter,
            common,
        })
    }

    /// Makes a copy. Fails with `ENOMEM`.
    pub fn try_clone(&self) -> Result<Self> {
        Self::new(
            &self.name,
            &self.type_,
            self.offset,
            self.size,
            self.signed,
            self.filter,
            self.common,
        )
    }

    /// Returns whether a histogram reads the same from `other`, which may be at another offset.
    pub fn same(&self, other: &Self) -> bool {
        self.name[..] == other.name[..]
            && self.type_[..] == other.type_[..]
            && self.size == other.size
            && self.signed == other.signed
    }
}

/// Fields that every event has without bytes in its record: name, type, and kind of data.
const GENERIC: [(&[u8], &[u8], FilterType); 7] = [
    (b"CPU", b"int", FilterType::Cpu),
    (b"cpu", b"int", FilterType::Cpu),
    (b"common_cpu", b"int", FilterType::Cpu),
    (b"COMM", b"char *", FilterType::Comm),
    (b"comm", b"char *", FilterType::Comm),
    (b"stacktrace", b"char *", FilterType::Stacktrace),
    (b"STACKTRACE", b"char *", FilterType::Stacktrace),
];

/// An event and its fields.
pub struct EventDesc {
    system: KVec<u8>,
    name: KVec<u8>,
    fields: KVec<EventField>,
}

impl EventDesc {
    /// Describes the event `system:name`, without fields yet. Fails with `ENOMEM`.
    pub fn new(system: &[u8], name: &[u8]) -> Result<Self> {
        Ok(Self {
            system: copy(system)?,
            name: copy(name)?,
            fields: KVec::new(),
        })
    }

    /// Adds a field. The event's own ones come in the order they are defined in. Fails with
    /// `ENOMEM`.
    pub fn add(&mut self, field: EventField) -> Result {
        Ok(self.fields.push(field, GFP_KERNEL)?)
    }

    /// The event's system.
    pub fn system(&self) -> &[u8] {
        &self.system
    }

    /// The event's name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Looks `name` up as the kernel does (`trace_find_event_field()`): among the event's own
    /// fields (of several with one name the last defined), the generic ones, the common ones.
    /// Fails with `ENOMEM`.
    pub fn find(&self, name: &[u8]) -> Result<Option<EventField>> {
        let listed = |common: bool| {
            let mut fields = self.fields.iter().rev();
            fields.find(|f| f.common == common && f.name[..] == *name)
        };
        if let Some(own) = listed(false) {
            return own.try_clone().map(Some);
        }
        if let Some((_, type_, filter)) = GENERIC.iter().find(|g| g.0 == name) {
            let signed = *filter == FilterType::Cpu;
            return EventField::new(name, type_, 0, 0, signed, *filter, false).map(Some);
        }
        listed(true).map(EventField::try_clone).transpose()
    }
}
