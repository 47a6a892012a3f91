// SPDX-License-Identifier: GPL-2.0

//! The fields of a histogram: what each value and key is, and what it is called.

use super::event::EventField;
use super::event::FilterType;
use super::limits;

/// How a field's content is had at a hit. Named after the functions of C that `hist_debug` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// 1.
    Counter,
    /// The CPU's number.
    Cpu,
    /// The running task's name.
    Comm,
    /// The characters of an array in the record.
    String,
    /// The characters that a `__data_loc` field refers to.
    DynString,
    /// The characters that a `__rel_loc` field refers to.
    RelDynString,
    /// A number in the record.
    Number {
        /// Its width in bytes.
        size: Width,
        /// Whether it is signed.
        signed: bool,
    },
}

/// The widths of numbers that can be used: C takes no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 8 bits.
    One,
    /// 16 bits.
    Two,
    /// 32 bits.
    Four,
    /// 64 bits.
    Eight,
}

impl Width {
    /// Returns the width of `size` bytes, if there is such a number.
    pub fn new(size: u32) -> Option<Self> {
        Some(match size {
            1 => Self::One,
            2 => Self::Two,
            4 => Self::Four,
            8 => Self::Eight,
            _ => return None,
        })
    }
}

impl Function {
    /// C's name for it, without `hist_field_`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Cpu => "cpu",
            Self::Comm => "comm",
            Self::String => "string",
            Self::DynString => "dynstring",
            Self::RelDynString => "reldynstring",
            Self::Number { size, signed } => match (size, signed) {
                (Width::One, true) => "s8",
                (Width::One, false) => "u8",
                (Width::Two, true) => "s16",
                (Width::Two, false) => "u16",
                (Width::Four, true) => "s32",
                (Width::Four, false) => "u32",
                (Width::Eight, true) => "s64",
                (Width::Eight, false) => "u64",
            },
        }
    }

    /// Whether it yields characters and not a number.
    pub fn is_string(self) -> bool {
        matches!(
            self,
            Self::Comm | Self::String | Self::DynString | Self::RelDynString
        )
    }
}

/// What a field is in its histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Summed up per entry.
    Value,
    /// Part of what tells entries apart.
    Key,
}

/// How two entries are compared when sorted by a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// All are equal.
    Nothing,
    /// As strings.
    Text,
    /// As numbers, the low bytes of the 64 stored.
    Number(Width, bool),
}

/// One field of a histogram (`struct hist_field`).
#[derive(Debug)]
pub struct HistField {
    /// What it is in its histogram.
    pub role: Role,
    /// How its content is had.
    pub function: Function,
    /// The event's field, unless the content comes from elsewhere. The other names of
    /// `common_cpu` and `common_comm` are fields too, without a place in the record.
    pub event_field: Option<EventField>,
    /// Bytes it takes; for keys a multiple of [`limits::KEY_ALIGN`].
    pub size: u32,
    /// Where it is among the keys.
    pub offset: u32,
}

impl HistField {
    /// The number of hits of an entry.
    pub fn hitcount() -> Self {
        Self::plain(Function::Counter, 8, None)
    }

    /// The CPU, called by the name of `event_field` if there is one.
    pub fn cpu(event_field: Option<EventField>) -> Self {
        Self::plain(Function::Cpu, 4, event_field)
    }

    /// The running task's name, called by the name of `event_field` if there is one.
    pub fn comm(event_field: Option<EventField>) -> Self {
        Self::plain(Function::Comm, limits::STRING, event_field)
    }

    /// A field of the record. `None` if it is of a kind that C has no function for.
    pub fn recorded(field: EventField) -> Option<Self> {
        let (function, size) = match field.filter {
            FilterType::TraceFn | FilterType::Stacktrace => return None,
            FilterType::StaticString => (Function::String, field.size),
            FilterType::DynString => (Function::DynString, limits::STRING),
            FilterType::RelDynString => (Function::RelDynString, limits::STRING),
            _ => {
                let size = Width::new(field.size)?;
                let signed = field.signed;
                (Function::Number { size, signed }, field.size)
            }
        };
        Some(Self::plain(function, size, Some(field)))
    }

    fn plain(function: Function, size: u32, event_field: Option<EventField>) -> Self {
        Self {
            role: Role::Value,
            function,
            event_field,
            size,
            offset: 0,
        }
    }

    /// Makes it a key that starts `offset` bytes into the keys.
    pub fn into_key(mut self, offset: u32) -> Self {
        self.role = Role::Key;
        self.size = self.size.next_multiple_of(limits::KEY_ALIGN);
        self.offset = offset;
        self
    }

    /// What it is called in the `hist` file and in `sort=`.
    pub fn name(&self) -> &[u8] {
        match (&self.event_field, self.function) {
            (Some(field), _) => &field.name,
            (None, Function::Cpu) => b"common_cpu",
            (None, Function::Comm) => b"common_comm",
            (None, Function::Counter) => b"hitcount",
            (None, _) => b"",
        }
    }

    /// What it is called in a trigger's line: what gives the same field when written.
    pub fn command_name(&self) -> &[u8] {
        match self.function {
            Function::Cpu => b"common_cpu",
            Function::Comm => b"common_comm",
            _ => self.name(),
        }
    }

    /// Its type as `hist_debug` shows it.
    pub fn type_(&self) -> &[u8] {
        match (self.function, &self.event_field) {
            (Function::Counter, _) => b"u64",
            (Function::Cpu, _) => b"unsigned int",
            (Function::Comm, _) => b"char[]",
            (_, Some(field)) => &field.type_,
            (_, None) => b"",
        }
    }

    /// Whether its content is a signed number.
    pub fn signed(&self) -> bool {
        matches!(self.function, Function::Number { signed: true, .. })
    }

    /// How entries are compared by this key (`create_tracing_map_fields()`).
    pub fn compare(&self) -> Compare {
        let number = |size, signed| match Width::new(size) {
            Some(width) => Compare::Number(width, signed),
            None => Compare::Nothing,
        };
        match (&self.event_field, self.function) {
            (None, _) | (_, Function::Cpu) => number(self.size, self.signed()),
            (Some(field), _) if field.filter.is_string() => Compare::Text,
            (Some(field), _) => number(field.size, field.signed),
        }
    }

    /// Whether a histogram with this field is, as far as this field goes, the one with `other`
    /// (`hist_trigger_match()`). The names of the CPU and of the task's name are as good as one
    /// another: a trigger's line has one of them only, and must find its trigger.
    pub fn matches(&self, other: &Self) -> bool {
        let fields_match = match (&self.event_field, &other.event_field) {
            _ if matches!(self.function, Function::Cpu | Function::Comm) => true,
            (Some(a), Some(b)) => a.same(b),
            (None, None) => true,
            _ => false,
        };
        fields_match
            && self.role == other.role
            && self.function == other.function
            && self.size == other.size
            && self.offset == other.offset
    }
}
