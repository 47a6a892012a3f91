// SPDX-License-Identifier: GPL-2.0

//! The task that runs, and the one that the tracepoint of a hit was called with.

use super::bindings;
#[cfg(any(all(CONFIG_X86_64, CONFIG_SMP, not(CONFIG_UML)), CONFIG_ARM64))]
use core::arch::asm;
use core::{
    ffi::c_void,
    marker::PhantomData,
    ptr, //
};

/// Reads a word of a C type, once: `READ_ONCE()`.
///
/// # Safety
///
/// A `T` must be at `offset` from `base`, in memory that stays.
#[inline(always)]
pub(super) unsafe fn load<T: Copy>(base: *const c_void, offset: usize) -> T {
    // SAFETY: The caller guarantees it.
    unsafe { base.byte_add(offset).cast::<T>().read_volatile() }
}

/// Returns the running task. Where that is one instruction, no function of C is called: the caller
/// would save its registers for it. Any context.
#[inline(always)]
pub(super) fn current() -> *const c_void {
    #[cfg(all(CONFIG_X86_64, CONFIG_SMP, not(CONFIG_UML)))]
    {
        let task;
        // SAFETY: Reads the variable of this CPU that `current` is. Wherever the task runs, it is
        // the running one.
        unsafe {
            asm!(
                "mov {task}, gs:[{at}]",
                task = lateout(reg) task,
                at = in(reg) bindings::rhist_current_at,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        task
    }
    #[cfg(CONFIG_ARM64)]
    {
        let task;
        // SAFETY: The kernel keeps the running task in this register.
        unsafe {
            asm!(
                "mrs {task}, sp_el0",
                task = lateout(reg) task,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        task
    }
    #[cfg(not(any(all(CONFIG_X86_64, CONFIG_SMP, not(CONFIG_UML)), CONFIG_ARM64)))]
    // SAFETY: The function only returns a pointer.
    unsafe {
        bindings::rhist_current().cast()
    }
}

/// A task among the arguments of a tracepoint: a search by its process id finds it at once, also
/// after it has been released.
///
/// # Invariants
///
/// The pointer is null, or right before it is a pointer to a task, which stays for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct TaskArg<'a>(*const c_void, PhantomData<&'a ()>);

impl TaskArg<'_> {
    /// No task.
    // INVARIANT: The pointer is null.
    pub(crate) const NONE: Self = Self(ptr::null(), PhantomData);

    /// The task right before a record.
    ///
    /// # Safety
    ///
    /// The pointer is null, or a pointer to a task is right before it. That stays for the lifetime
    /// of the result.
    pub(crate) unsafe fn before(record: *const c_void) -> Self {
        // INVARIANT: The caller guarantees it.
        Self(record, PhantomData)
    }

    /// Returns this task or the running one, if it has this number in the first pid namespace:
    /// `rhist_task_of()`, without the search. [`TaskArg::NONE`] finds neither.
    #[inline(always)]
    pub(super) fn find(self, pid: u32) -> Option<*const c_void> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: A pointer to a task is before the record, by the invariant.
        let task: *const c_void = unsafe { self.0.cast::<*const c_void>().sub(1).read() };
        // SAFETY: These are tasks, which have their number there.
        let has_pid = |task| unsafe { load::<u32>(task, bindings::RHIST_TASK_PID) } == pid;
        if !task.is_null() && has_pid(task) {
            return Some(task);
        }
        Some(current()).filter(|&task| has_pid(task))
    }

    /// The pointer for functions in C.
    pub(super) fn as_ptr(self) -> *const c_void {
        self.0
    }
}
