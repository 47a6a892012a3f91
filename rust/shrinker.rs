// SPDX-License-Identifier: GPL-2.0

//! Shrinkers: free memory when the kernel is short of it.
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

/// Stops a scan (`SHRINK_STOP`, for which bindgen generates nothing).
const SHRINK_STOP: usize = usize::MAX;

/// An owner of memory that can be freed when the kernel is short of it.
///
/// Both functions are called in any task that allocates memory, with any locks held under which
/// memory may be allocated. So they must not wait for a lock.
pub(super) trait Shrink: Sync {
    /// Returns the approximate number of objects.
    fn count(&self) -> usize;

    /// Frees unused objects, and returns their number; `None` if that is not possible now.
    fn shrink(&self) -> Option<usize>;
}

/// A registration of a [`Shrink`]: the kernel calls it from [`Shrinker::register`] until this is
/// dropped.
///
/// # Invariants
///
/// The pointer is from `shrinker_alloc()`, and is freed by `drop` only. Its callbacks are the ones
/// for `T`.
pub(super) struct Shrinker<T: Shrink>(NonNull<bindings::shrinker>, PhantomData<fn(&T)>);

impl<T: Shrink> Shrinker<T> {
    /// Creates a shrinker that is not called yet. Fails with `ENOMEM`.
    pub(super) fn new(name: &CStr) -> Result<Self> {
        // SAFETY: Both strings end in a NUL, and the format takes one string.
        let shrinker =
            unsafe { bindings::shrinker_alloc(0, c"%s".as_char_ptr(), name.as_char_ptr()) };
        let shrinker = NonNull::new(shrinker).ok_or(ENOMEM)?;
        // SAFETY: The shrinker was just allocated and is not registered, so this is the only use.
        unsafe {
            (*shrinker.as_ptr()).count_objects = Some(count::<T>);
            (*shrinker.as_ptr()).scan_objects = Some(scan::<T>);
        }
        // INVARIANT: The pointer is from `shrinker_alloc()`, and the callbacks were set above.
        Ok(Self(shrinker, PhantomData))
    }

    /// Makes the kernel call `of`. May sleep.
    ///
    /// # Safety
    ///
    /// Must be called at most once, and `of` must stay valid until this is dropped.
    pub(super) unsafe fn register(&self, of: *const T) {
        // SAFETY: By the type invariant the shrinker is valid. The caller guarantees that it is not
        // registered yet.
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
    // SAFETY: The caller of `register` keeps `private_data` valid until the shrinker is dropped,
    // which waits for this.
    unsafe { &*(*shrinker).private_data.cast::<T>() }.count()
}

/// # Safety
///
/// As for [`count`].
unsafe extern "C" fn scan<T: Shrink>(
    shrinker: *mut bindings::shrinker,
    control: *mut bindings::shrink_control,
) -> ffi::c_ulong {
    // SAFETY: The caller of `register` keeps `private_data` valid until the shrinker is dropped,
    // which waits for this. The kernel passes a valid `control`.
    let (of, flags) = unsafe { (&*(*shrinker).private_data.cast::<T>(), (*control).gfp_mask) };
    // Without __GFP_FS, the task may hold locks of a file system.
    let freed = match flags & bindings::RHIST_GFP_FS != 0 {
        true => of.shrink(),
        false => None,
    };
    freed.unwrap_or(SHRINK_STOP)
}
