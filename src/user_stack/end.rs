// SPDX-License-Identifier: GPL-2.0

//! How stacks end.

/// How a stack ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum End {
    /// With the outermost function.
    Whole,
    /// After as many words as were wanted; the next function is not looked for.
    Depth,
    /// At code without rules, and without frame pointers that lead on; or the rules are of another
    /// form.
    NoRules,
    /// At memory that is not there, or cannot be read without waiting.
    NoMemory,
    /// At a mapping that is being changed.
    Changing,
    /// At an address that is in no executable mapping, or a frame below its callee's.
    Astray,
    /// Before it began: the task is a thread of the kernel, or its program has ended.
    NoProgram,
    /// Before it began: the program is of another architecture, as one of 32 bits.
    Foreign,
    /// Before it began: a stack is taken on this CPU, and that has caused the hit.
    Nested,
    /// Before it began: an NMI has come before the kernel had stored the program's registers.
    Entering,
}

impl End {
    /// All ends, by their number.
    pub const ALL: [Self; 10] = [
        Self::Whole,
        Self::Depth,
        Self::NoRules,
        Self::NoMemory,
        Self::Changing,
        Self::Astray,
        Self::NoProgram,
        Self::Foreign,
        Self::Nested,
        Self::Entering,
    ];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Depth => "depth",
            Self::NoRules => "no rules",
            Self::NoMemory => "not in memory",
            Self::Changing => "mapping in change",
            Self::Astray => "astray",
            Self::NoProgram => "no program",
            Self::Foreign => "foreign",
            Self::Nested => "nested",
            Self::Entering => "entering",
        }
    }

    /// The number that [`End::of_number`] takes.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The end with this number.
    pub fn of_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}
