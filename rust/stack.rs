// SPDX-License-Identifier: GPL-2.0

//! The kernel's stack of the running task.
//!
//! C header: `include/linux/stacktrace.h`.

use super::bindings;
use super::event::Event;
use super::probe;

/// Fills `entries` with return addresses, the caller's own first. Returns how many there are. Any
/// context, NMI included.
#[inline(always)]
pub(crate) fn save(entries: &mut [usize]) -> usize {
    let len = entries.len() as u32;
    // SAFETY: `entries` is valid for its length.
    unsafe { bindings::stack_trace_save(entries.as_mut_ptr(), len, 0) as usize }
}

/// Our own functions that the tracepoints of all system calls call.
pub(crate) fn syscall_handlers() -> [usize; 2] {
    let mut probes = [0; 2];
    // SAFETY: There is room for both.
    unsafe { bindings::rhist_syscall_probes(probes.as_mut_ptr()) };
    probes
}

/// The functions that a tracepoint calls for `event`: the kernel's probe, that for perf, and ours (0 for
/// what there is not), and, if it may have called that, the one that calls all probes of the
/// tracepoint. `None` if no tracepoint of its own fires it.
pub(crate) fn handlers(event: &Event) -> Option<[usize; 4]> {
    let ours = probe::find(event).map_or(0, |probe| probe.as_ptr() as usize);
    // SAFETY: The event is referenced, its class never changes, and a tracepoint stays as long as
    // its event.
    unsafe {
        match bindings::rhist_event_iterator(event.call()) {
            0 => None,
            iterator => Some([
                (*(*event.call()).class).probe as usize,
                bindings::rhist_perf_probe(event.call()),
                ours,
                iterator,
            ]),
        }
    }
}
