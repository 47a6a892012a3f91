// SPDX-License-Identifier: GPL-2.0

//! The kernel stack of the running task.
//!
//! C headers: `include/linux/stacktrace.h`, `arch/x86/include/asm/unwind.h`,
//! `arch/um/include/asm/stacktrace.h`.

use super::{
    bindings,
    event::Event,
    source::probe, //
};
use crate::sync::PreemptOff;

/// Whether [`save`] can begin at a given frame.
pub(crate) const CAN_BEGIN: bool = cfg!(any(
    CONFIG_UNWINDER_ORC,
    CONFIG_UNWINDER_FRAME_POINTER,
    all(CONFIG_UML_X86, CONFIG_FRAME_POINTER)
));

/// The stack frame of a function that does not return before the end of `'a`.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a>(&'a bindings::rhist_frame);

impl Frame<'_> {
    /// # Safety
    ///
    /// `frame` must be valid for `'a`, and filled by `rhist_frame_of_caller()` with the frame of a function
    /// that does not return before the end of `'a`.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(frame: *const bindings::rhist_frame) -> Self {
        // SAFETY: The caller keeps `frame` valid for `'a`.
        Self(unsafe { &*frame })
    }
}

/// Fills `entries` with the stack of the running task: an address in the function at `frame`, then the return
/// addresses of that function and its callers. Without `frame` or [`CAN_BEGIN`] the stack begins at this function or
/// one that it calls. Returns the number of addresses. Any context, NMI included.
pub(crate) fn save(frame: Option<Frame<'_>>, entries: &mut [usize]) -> usize {
    let frame = frame.map_or(core::ptr::null(), |frame| core::ptr::from_ref(frame.0));
    let len = entries.len() as u32;
    if len == 0 {
        return 0;
    }
    // SAFETY: `entries` is valid for `len` addresses, and `len` is not 0. `frame` is null, or by the lifetime
    // of `Frame` that of a function that has not returned.
    unsafe { bindings::rhist_stack_save(frame, entries.as_mut_ptr(), len) as usize }
}

/// Whether enough of the stack is left for an event that happens within a hit, and the hits that nest in it. Any context,
/// NMI included.
pub(crate) fn suffices(_preempt: PreemptOff<'_>) -> bool {
    // SAFETY: Preemption is off.
    unsafe { bindings::rhist_stack_suffices_outlined() }
}

/// Returns the addresses of rhist's probes for the tracepoints of all system calls.
pub(crate) fn syscall_handlers() -> [usize; 2] {
    let mut probes = [0; 2];
    // SAFETY: The function writes two addresses to `probes`.
    unsafe { bindings::rhist_syscall_probes(probes.as_mut_ptr()) };
    probes
}

/// Returns the functions that may be on the stack of a hit of `event`: the kernel's probe, rhist's probe (0
/// if there is none), and the iterator that calls them if the tracepoint has several probes. `None` if the
/// event has no tracepoint of its own.
pub(crate) fn handlers(event: &Event) -> Option<[usize; 3]> {
    let ours = probe::find(event).map_or(0, |probe| probe.as_ptr() as usize);
    // SAFETY: `Event` keeps its event registered, and so its class and its tracepoint, which do not change.
    unsafe {
        match bindings::rhist_event_iterator(event.call()) {
            0 => None,
            iterator => Some([(*(*event.call()).class).probe as usize, ours, iterator]),
        }
    }
}
