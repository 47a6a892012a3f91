// SPDX-License-Identifier: GPL-2.0

//! Arrays that the generations of a map share.

use core::{
    ops::Deref,
    ptr::NonNull,
    slice, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A reference-counted array. Each owner keeps the address of the items, so that a hit need not
/// load it from the shared allocation.
///
/// # Invariants
///
/// `start` points to the `len` items of `array`.
pub(super) struct Shared<T> {
    start: NonNull<T>,
    len: usize,
    array: Arc<KVVec<T>>,
}

// SAFETY: It owns shared items, as an `Arc` does.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: It owns shared items, as an `Arc` does.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Shares `array`. Fails with `ENOMEM`.
    pub(super) fn new(array: KVVec<T>) -> Result<Self> {
        let array = Arc::new(array, GFP_KERNEL)?;
        // INVARIANT: An array that is shared is neither changed nor moved.
        Ok(Self {
            start: NonNull::from(&array[..]).cast(),
            len: array.len(),
            array,
        })
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self {
            start: self.start,
            len: self.len,
            array: self.array.clone(),
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: By the invariants `start` points to `len` items, and `self` keeps the array
        // alive.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}
