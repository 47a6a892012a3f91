// SPDX-License-Identifier: GPL-2.0

//! Views of a histogram: a snapshot of its entries, rows of typed cells, and their printers.

mod file;
mod hist;
mod hist_debug;
mod jsonl;
mod key;
mod others;
mod row;
mod snapshot;
pub mod sort;
mod trigger;
mod user_stack;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    reader::{
        Ended,
        HistInterval,
        IntervalReader, //
    },
    Histogram, //
};
use crate::text::Text;

pub use file::HistFile;
pub use hist_debug::hist_debug_file;
pub use jsonl::{
    Now,
    Origin, //
};
pub use trigger::{
    command,
    event_column,
    trigger_line,
    triggers,
    NO_TRIGGERS, //
};

/// Services of the kernel: names of addresses and system calls, and whether the reader still waits.
pub trait Names {
    /// Appends the symbol at `address` (`%ps`), with the offset in it if `offset` (`%pS`). Fails
    /// with `ENOMEM`.
    fn symbol(&self, out: &mut Text, address: u64, offset: bool) -> Result;

    /// The name of the system call `number`.
    fn syscall(&self, number: u64) -> Option<&[u8]>;

    /// Appends an identifier for the address of a histogram (`%p`). Fails with `ENOMEM`.
    fn address(&self, out: &mut Text, histogram: &Histogram) -> Result;

    /// Yields the CPU. Fails with `EINTR` if the reader was killed.
    fn check_signal(&self) -> Result;
}

/// A histogram as it is attached to an event, for printing.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The histogram, which may be shared by several triggers.
    pub hist: &'a Arc<Histogram>,
    /// Looks up names.
    pub names: &'a dyn Names,
    /// The whole token `name=…` of its trigger.
    pub name: Option<&'a [u8]>,
    /// The text of its trigger's filter, without `if`.
    pub filter: Option<&'a [u8]>,
    /// Whether it is paused.
    pub paused: bool,
}

/// An interval of a histogram, for printing.
pub struct IntervalView<'a> {
    /// The histogram of the reader.
    pub view: View<'a>,
    /// The reader, which has taken the interval; `None` for the whole life of a histogram.
    pub reader: Option<&'a IntervalReader>,
    /// Its counts, and its edges. The counts of entries that were taken out of the map since are
    /// moved to `other`.
    pub interval: &'a mut HistInterval,
    /// Why it is the last one, if it is.
    pub ended: Option<Ended>,
    /// Number of histograms of the file that ended, and were forgotten before they were read.
    pub lost: u64,
}

impl Ended {
    /// The word for it.
    fn word(self) -> &'static str {
        match self {
            Self::Cleared => "cleared",
            Self::Removed => "removed",
        }
    }
}
