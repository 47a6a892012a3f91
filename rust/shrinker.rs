// SPDX-License-Identifier: GPL-2.0

//! Giving back memory when the kernel is short of it.
//!
//! C header: `include/linux/shrinker.h`.

use super::bindings;
use core::{
    ffi::CStr,
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    ffi,
    prelude::*, //
};

/// Stops a scan (`SHRINK_STOP`, which bindgen does not know).
const SHRINK_STOP: usize = usize::MAX;

/// An owner of memory that can be freed when the kernel is short of it.
///
/// Both functions are called in any task that allocates memory, with any locks held under which memory may be
/// allocated. So they must not wait for a lock.
pub(super) trait Shrink: Sync {
    /// Returns about how many objects there are.
    fn count(&self) -> usize;

    /// Frees the objects that are not in use, and returns how many; `None` if that is not possible now.
    fn shrink(&self) -> Option<usize>;
}

/// Has the kernel call a [`Shrink`], from [`Shrinker::register`] until this is dropped.
///
/// # Invariants
///
/// The pointer is from `shrinker_alloc()`, and is freed by `drop` only. Its callbacks are those for `T`.
pub(super) struct Shrinker<T: Shrink>(NonNull<bindings::shrinker>, PhantomData<fn(&T)>);

impl<T: Shrink> Shrinker<T> {
    /// Creates a shrinker that is not called yet. Fails with `ENOMEM`.
    pub(super) fn new(name: &CStr) -> Result<Self> {
        // SAFETY: The name ends in a NUL, and is one without conversions.
        let shrinker =
            unsafe { bindings::shrinker_alloc(0, c"%s".as_char_ptr(), name.as_char_ptr()) };
        let shrinker = NonNull::new(shrinker).ok_or(ENOMEM)?;
        // SAFETY: The shrinker was just allocated, and nobody else has it.
        unsafe {
            (*shrinker.as_ptr()).count_objects = Some(count::<T>);
            (*shrinker.as_ptr()).scan_objects = Some(scan::<T>);
        }
        // INVARIANT: The pointer is from `shrinker_alloc()`, and the callbacks were set above.
        Ok(Self(shrinker, PhantomData))
    }

    /// Has the kernel call `of`. May sleep.
    ///
    /// # Safety
    ///
    /// Must be called once at most, and `of` be valid until this is dropped.
    pub(super) unsafe fn register(&self, of: *const T) {
        // SAFETY: By the type invariant the shrinker is valid, and by the contract it is not registered yet.
        unsafe {
            (*self.0.as_ptr()).private_data = of.cast_mut().cast();
            bindings::shrinker_register(self.0.as_ptr());
        }
    }
}

impl<T: Shrink> Drop for Shrinker<T> {
    /// Waits until the callbacks do not run any more. Task context, sleeps.
    fn drop(&mut self) {
        // SAFETY: By the type invariant the shrinker was allocated and not freed.
        unsafe { bindings::shrinker_free(self.0.as_ptr()) }
    }
}

// SAFETY: Any task may register and free a shrinker; `T` is `Sync`, so any task may call it.
unsafe impl<T: Shrink> Send for Shrinker<T> {}
// SAFETY: A shared reference only allows `register`, which is called once.
unsafe impl<T: Shrink> Sync for Shrinker<T> {}

/// # Safety
///
/// Must be called by the kernel, for a shrinker of [`Shrinker::register`].
unsafe extern "C" fn count<T: Shrink>(
    shrinker: *mut bindings::shrinker,
    _control: *mut bindings::shrink_control,
) -> ffi::c_ulong {
    // SAFETY: By the contract of `register`, `private_data` is valid until the shrinker is dropped, which waits for
    // this.
    unsafe { &*(*shrinker).private_data.cast::<T>() }.count()
}

/// # Safety
///
/// As for [`count`].
unsafe extern "C" fn scan<T: Shrink>(
    shrinker: *mut bindings::shrinker,
    control: *mut bindings::shrink_control,
) -> ffi::c_ulong {
    // SAFETY: As in `count`; and the kernel passes a valid `control`.
    let (of, flags) = unsafe { (&*(*shrinker).private_data.cast::<T>(), (*control).gfp_mask) };
    // Without __GFP_FS, the task may hold locks of a file system.
    let freed = match flags & bindings::RHIST_GFP_FS != 0 {
        true => of.shrink(),
        false => None,
    };
    freed.unwrap_or(SHRINK_STOP)
}
