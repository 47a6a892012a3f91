// SPDX-License-Identifier: GPL-2.0

//! The kernel's stack of the running task.
//!
//! C header: `include/linux/stacktrace.h`.

use super::bindings;
use super::event::Event;

/// Fills `entries` with return addresses, the caller's own first. Returns how many there are. Any
/// context, NMI included.
pub(crate) fn save(entries: &mut [usize]) -> usize {
    let len = entries.len() as u32;
    // SAFETY: `entries` is valid for its length.
    unsafe { bindings::stack_trace_save(entries.as_mut_ptr(), len, 0) as usize }
}

/// The functions that a tracepoint calls for `event`: the probe and, if it may have called that,
/// the one that calls all probes of the tracepoint. `None` if no tracepoint of its own fires it.
pub(crate) fn handlers(event: &Event) -> Option<[usize; 2]> {
    // SAFETY: The event is referenced, its class never changes, and a tracepoint stays as long as
    // its event.
    unsafe {
        match bindings::rhist_event_iterator(event.call()) {
            0 => None,
            iterator => Some([(*(*event.call()).class).probe as usize, iterator]),
        }
    }
}
