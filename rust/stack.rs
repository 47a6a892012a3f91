// SPDX-License-Identifier: GPL-2.0

//! The kernel's stack of the running task.
//!
//! C headers: `include/linux/stacktrace.h`, `arch/x86/include/asm/unwind.h`,
//! `arch/um/include/asm/stacktrace.h`.

use super::bindings;
use super::event::Event;
use super::source::probe;

/// Can a stack begin at a function that has been left behind?
pub(crate) const CAN_BEGIN: bool = cfg!(any(
    CONFIG_UNWINDER_ORC,
    CONFIG_UNWINDER_FRAME_POINTER,
    all(CONFIG_UML_X86, CONFIG_FRAME_POINTER)
));

/// Where a function is that has not returned as long as this lives.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a>(&'a bindings::rhist_frame);

impl Frame<'_> {
    /// # Safety
    ///
    /// `frame` is filled by `rhist_frame_here()`, in a function that does not return before the end of the
    /// lifetime.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(frame: *const bindings::rhist_frame) -> Self {
        // SAFETY: The frame is valid for `'a`.
        Self(unsafe { &*frame })
    }
}

/// Fills `entries` with return addresses, if there is room for any. Those of the function at `frame` come
/// first, beginning with one in it, as far as the kernel can begin there; else those of functions of ours.
/// Returns how many there are. Any context, NMI included.
pub(crate) fn save(frame: Option<Frame<'_>>, entries: &mut [usize]) -> usize {
    let frame = frame.map_or(core::ptr::null(), |frame| core::ptr::from_ref(frame.0));
    let len = entries.len() as u32;
    if len == 0 {
        return 0;
    }
    // SAFETY: `entries` is valid for its length, which is not 0, and the frame is that of a function that
    // has not returned.
    unsafe { bindings::rhist_stack_save(frame, entries.as_mut_ptr(), len) as usize }
}

/// Our own functions that the tracepoints of all system calls call.
pub(crate) fn syscall_handlers() -> [usize; 2] {
    let mut probes = [0; 2];
    // SAFETY: There is room for both.
    unsafe { bindings::rhist_syscall_probes(probes.as_mut_ptr()) };
    probes
}

/// The functions that a tracepoint calls for `event`: the kernel's probe, ours (0 if there is none), and, if
/// it may have called those, the one that calls all probes of the tracepoint. `None` if no tracepoint of its
/// own fires it.
pub(crate) fn handlers(event: &Event) -> Option<[usize; 3]> {
    let ours = probe::find(event).map_or(0, |probe| probe.as_ptr() as usize);
    // SAFETY: The event is referenced, its class never changes, and a tracepoint stays as long as
    // its event.
    unsafe {
        match bindings::rhist_event_iterator(event.call()) {
            0 => None,
            iterator => Some([(*(*event.call()).class).probe as usize, ours, iterator]),
        }
    }
}
