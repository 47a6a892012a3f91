// SPDX-License-Identifier: GPL-2.0

//! The task that the tracepoint of a hit was called with.

use core::{
    ffi::c_void,
    marker::PhantomData,
    ptr, //
};

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

    /// The pointer for functions in C.
    pub(super) fn as_ptr(self) -> *const c_void {
        self.0
    }
}
