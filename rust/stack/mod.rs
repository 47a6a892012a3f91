// SPDX-License-Identifier: GPL-2.0

//! The kernel stack of the running task.
//!
//! C headers: `include/linux/stacktrace.h`, `arch/x86/include/asm/unwind.h`,
//! `arch/um/include/asm/stacktrace.h`.

use super::bindings;
use crate::sync::PreemptOff;
use core::mem::MaybeUninit;

// C's unsigned long is read as a u64.
const _: () = assert!(size_of::<usize>() == size_of::<u64>());

/// Whether [`save`] can begin at a given frame.
pub(crate) const CAN_BEGIN: bool = cfg!(any(
    CONFIG_UNWINDER_ORC,
    CONFIG_UNWINDER_FRAME_POINTER,
    all(CONFIG_UML_X86, CONFIG_FRAME_POINTER)
));

/// The stack frame of a function that does not return before the end of `'a`.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    frame: &'a bindings::rhist_frame,
    /// Maximum number of functions from this one to the traced one.
    pub(crate) before: usize,
}

impl Frame<'_> {
    /// No frame: the stack is empty.
    pub(crate) const NONE: Frame<'static> = Frame {
        frame: &bindings::rhist_frame {
            ip: 0,
            sp: 0,
            bp: 0,
        },
        // More than any buffer holds, so nothing is saved.
        before: usize::MAX / 2,
    };

    /// The address of an instruction in the function.
    pub(crate) fn ip(&self) -> u64 {
        self.frame.ip as u64
    }

    /// # Safety
    ///
    /// `frame` must be valid for `'a`, and filled by `rhist_frame_of_caller()` with the frame of a
    /// function that does not return before the end of `'a`.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(frame: *const bindings::rhist_frame, before: usize) -> Self {
        // SAFETY: The caller keeps `frame` valid for `'a`.
        let frame = unsafe { &*frame };
        Self { frame, before }
    }
}

/// Calls `run` with the frame of this function. Up to `before` functions may be between it and the
/// traced one. Any context.
#[inline(never)]
pub(crate) fn with_frame(before: usize, run: impl FnOnce(Frame<'_>)) {
    let mut frame = MaybeUninit::uninit();
    // SAFETY: The function fills `frame` with the frame of its caller, which is this function: it
    // is not inlined, and returns after `run`.
    unsafe {
        bindings::rhist_frame_here(frame.as_mut_ptr());
        run(Frame::from_raw(frame.as_ptr(), before));
    }
}

/// Rules by which stacks are walked, learned from the kernel's unwinder: see `rust/stack/orc.c`.
/// Dropping it ends that: [`save`] must not be called afterwards.
pub(crate) struct Rules(());

impl Rules {
    /// Prepares for learning. If that is not possible, the unwinder walks. Task context, sleeps. To
    /// be called once.
    pub(crate) fn new() -> Self {
        // SAFETY: Task context. It is called once, before the first hit.
        unsafe { bindings::rhist_orc_init() };
        Self(())
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        // SAFETY: Task context, and all hits have ended.
        unsafe { bindings::rhist_orc_exit() };
    }
}

/// Statistics of stack walks.
pub(crate) struct Walks {
    pub(crate) mode: Mode,
    /// Number of rules that were learned.
    pub(crate) learned: u64,
    /// Number of frames for which the kernel's unwinder was asked.
    pub(crate) frames: u64,
    /// Number of stacks that it had to walk.
    pub(crate) failed: u64,
    /// Number of stacks that were walked both ways, to compare.
    pub(crate) checked: u64,
}

/// The first difference between rules and the kernel's unwinder. Addresses are 0 behind the end of
/// a stack.
pub(crate) struct Difference {
    /// The index of the frame, from 0.
    pub(crate) nth: u32,
    pub(crate) by_rules: usize,
    pub(crate) by_unwinder: usize,
    /// The frame before, at which both agree.
    pub(crate) callee: usize,
}

/// The way in which stacks are walked.
pub(crate) enum Mode {
    /// Rules are not possible on this kernel.
    Unwinder,
    Rules,
    /// Rules had another result than the kernel's unwinder once.
    Wrong(Difference),
}

/// Returns statistics of stack walks since the module was loaded. Task context.
pub(crate) fn walks() -> Walks {
    let mut stats = MaybeUninit::uninit();
    // SAFETY: The function fills `stats`.
    let stats: bindings::rhist_orc_stats = unsafe {
        bindings::rhist_orc_stats(stats.as_mut_ptr());
        stats.assume_init()
    };
    Walks {
        mode: match stats.mode {
            bindings::rhist_orc_mode_RHIST_ORC_ON => Mode::Rules,
            bindings::rhist_orc_mode_RHIST_ORC_WRONG => Mode::Wrong(Difference {
                nth: stats.different,
                by_rules: stats.by_rules as usize,
                by_unwinder: stats.by_unwinder as usize,
                callee: stats.callee as usize,
            }),
            _ => Mode::Unwinder,
        },
        learned: stats.learned,
        frames: stats.frames,
        failed: stats.failed,
        checked: stats.checked,
    }
}

/// Fills `places` with the stack of the running task: an address in the function at `frame`, then
/// the return addresses of that function and its callers. Without [`CAN_BEGIN`] the stack begins at
/// this function or one that it calls. Returns the places that are filled; `None` if `places` is
/// empty. Any context, NMI included.
#[inline(always)]
pub(crate) fn save<'p>(
    frame: Frame<'_>,
    places: &'p mut [MaybeUninit<u64>],
    _preempt: PreemptOff<'_>,
) -> Option<&'p mut [u64]> {
    let (to, n) = (places.as_mut_ptr().cast(), places.len() as u32);
    if n == 0 {
        return None;
    }
    // SAFETY: `places` is valid for `n` addresses, and `n` is not 0. By the lifetime of `Frame` the
    // function of the frame has not returned. Preemption is off.
    let len = unsafe { bindings::rhist_stack_save(frame.frame, to, n) };
    let filled = places.get_mut(..len as usize)?;
    // SAFETY: The function has filled this many places.
    Some(unsafe { &mut *(core::ptr::from_mut(filled) as *mut [u64]) })
}

/// Returns whether enough of the stack is left for an event that is emitted by a hit, and the hits
/// that nest in it. Any context, NMI included.
pub(crate) fn suffices(_preempt: PreemptOff<'_>) -> bool {
    // SAFETY: Preemption is off.
    unsafe { bindings::rhist_stack_suffices_outlined() }
}
