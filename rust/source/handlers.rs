// SPDX-License-Identifier: GPL-2.0

//! Addresses of the functions that the kernel calls for a hit, so that they are on its stack
//! between the traced function and rhist.

use super::probe;
use crate::rust::{
    bindings,
    event::Event, //
};

/// Returns the addresses of rhist's probes for the tracepoints of all system calls.
pub(crate) fn of_syscalls() -> [usize; 2] {
    let mut probes = [0; 2];
    // SAFETY: The function writes two addresses to `probes`.
    unsafe { bindings::rhist_syscall_probes(probes.as_mut_ptr()) };
    probes
}

/// Returns the addresses of rhist's handlers for kprobe events and fprobe events; 0 for a missing
/// one.
pub(crate) fn of_probe_events() -> [usize; bindings::RHIST_HANDLERS as usize] {
    let mut handlers = [0; bindings::RHIST_HANDLERS as usize];
    // SAFETY: The function writes as many addresses as `handlers` has items.
    unsafe { bindings::rhist_handlers(handlers.as_mut_ptr()) };
    handlers
}

/// Returns the functions that may be on the stack of a hit of `event`: the kernel's probe, rhist's
/// probe (0 if it has none), and the iterator that calls them if the tracepoint has several probes.
/// `None` if the event does not have its own tracepoint.
pub(crate) fn of_event(event: &Event) -> Option<[usize; 3]> {
    let ours = probe::find(event).map_or(0, |probe| probe.as_ptr() as usize);
    // SAFETY: `Event` keeps its event registered, and so its class and its tracepoint, which do not
    // change.
    unsafe {
        match bindings::rhist_event_iterator(event.call()) {
            0 => None,
            iterator => Some([(*(*event.call()).class).probe as usize, ours, iterator]),
        }
    }
}
