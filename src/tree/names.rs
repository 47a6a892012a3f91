// SPDX-License-Identifier: GPL-2.0

//! Names of symbols and system calls, for the text of histograms.

use crate::{
    engine::ShownTrigger,
    hist::{
        show::{
            Names,
            View, //
        },
        Histogram, //
    },
    rust::{
        cpu,
        event::Event,
        text, //
    },
    text::Text, //
};
use core::{
    cell::Cell,
    str, //
};
use kernel::{
    prelude::*,
    str::CString, //
};

/// Names of symbols and system calls of the running kernel.
#[derive(Default)]
pub(crate) struct KernelNames {
    /// System calls that were looked up already, a bit for each. A lookup takes event_mutex and
    /// visits all events, and a file may show a hundred thousand system calls.
    looked_up: [Cell<u64>; 8],
    /// The system calls among these that the kernel has.
    found: [Cell<u64>; 8],
}

impl Names for KernelNames {
    fn symbol(&self, out: &mut Text, address: u64, offset: bool) -> Result {
        out.bytes(text::symbol(address, offset).as_bytes())
    }

    fn address(&self, out: &mut Text, histogram: &Histogram) -> Result {
        out.bytes(text::hash_pointer(histogram).as_bytes())
    }

    fn syscall(&self, number: u64) -> Option<&[u8]> {
        // C keeps only 32 bits of the number.
        let number = number as u32;
        let name = text::syscall(u64::from(number))?.to_bytes();
        let (word, bit) = ((number / u64::BITS) as usize, 1 << (number % u64::BITS));
        let (Some(looked_up), Some(found)) = (self.looked_up.get(word), self.found.get(word))
        else {
            return has_syscall(name).then_some(name);
        };
        if looked_up.get() & bit == 0 {
            looked_up.set(looked_up.get() | bit);
            found.set(found.get() | if has_syscall(name) { bit } else { 0 });
        }
        (found.get() & bit != 0).then_some(name)
    }

    fn check_signal(&self) -> Result {
        cpu::yield_unless_killed()
    }
}

/// Returns whether this kernel has the system call `name` (`sys_…`): it has an event then.
fn has_syscall(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"sys_").map(str::from_utf8);
    let Some(Ok(name)) = name else {
        return false;
    };
    let event = CString::try_from_fmt(fmt!("sys_enter_{name}"));
    event.is_ok_and(|event| Event::exists(c"syscalls", &event))
}

/// Describes a trigger for `src/hist/`.
pub(super) fn view<'a>(attached: &'a ShownTrigger, names: &'a KernelNames) -> View<'a> {
    View {
        hist: &attached.histogram,
        names,
        name: attached.name.as_deref(),
        filter: attached.filter.as_deref(),
        paused: attached.paused,
    }
}
