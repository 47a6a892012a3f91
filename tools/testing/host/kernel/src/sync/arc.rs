// SPDX-License-Identifier: GPL-2.0

//! [`Arc`] and [`ArcBorrow`].

use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::NonNull;
use std::boxed::Box;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::atomic::Ordering::Relaxed;

use crate::alloc::AllocError;
use crate::alloc::Flags;
use crate::fault;

/// A value that is shared, and freed with the last reference on it.
///
/// Not the standard library's, which orders its last access to the count and the end of the value
/// by a fence: ThreadSanitizer knows no fences.
pub struct Arc<T>(NonNull<Counted<T>>, PhantomData<Counted<T>>);

/// A value and the number of references on it.
#[repr(C)]
struct Counted<T> {
    /// First, so that it has the address of the whole.
    value: T,
    count: AtomicUsize,
}

// SAFETY: References on the value are shared, and the last one to be dropped drops it.
unsafe impl<T: Send + Sync> Send for Arc<T> {}
// SAFETY: As above: a shared `Arc` can be cloned.
unsafe impl<T: Send + Sync> Sync for Arc<T> {}

impl<T> Arc<T> {
    /// Moves `contents` into new memory.
    pub fn new(contents: T, _flags: Flags) -> Result<Self, AllocError> {
        fault::allocate(true)?;
        let counted = Box::new(Counted {
            value: contents,
            count: AtomicUsize::new(1),
        });
        Ok(Self(NonNull::from(Box::leak(counted)), PhantomData))
    }

    /// Turns the reference into a pointer to the value.
    pub fn into_raw(self) -> *const T {
        ManuallyDrop::new(self).0.as_ptr().cast()
    }

    /// Turns the pointer back into the reference.
    ///
    /// # Safety
    ///
    /// It is from [`Arc::into_raw`], and used once.
    pub unsafe fn from_raw(ptr: *const T) -> Self {
        // SAFETY: The caller passes a pointer from `into_raw()`, which is not null.
        let counted = unsafe { NonNull::new_unchecked(ptr.cast_mut().cast()) };
        Self(counted, PhantomData)
    }

    /// Whether both are references on the same value.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        this.0 == other.0
    }

    fn counted(&self) -> &Counted<T> {
        // SAFETY: This reference keeps the value.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Clone for Arc<T> {
    fn clone(&self) -> Self {
        self.counted().count.fetch_add(1, Relaxed);
        Self(self.0, PhantomData)
    }
}

impl<T> Drop for Arc<T> {
    fn drop(&mut self) {
        if self.counted().count.fetch_sub(1, AcqRel) == 1 {
            // SAFETY: It is from `Box::leak()`, and nobody else has a reference on it any more.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
            fault::free();
        }
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.counted().value
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Arc<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

/// A borrowed reference, whose owner keeps the count.
pub struct ArcBorrow<'a, T>(ManuallyDrop<Arc<T>>, PhantomData<&'a T>);

impl<T> ArcBorrow<'_, T> {
    /// Borrows the reference that `ptr` was made from.
    ///
    /// # Safety
    ///
    /// It is from [`Arc::into_raw`], and that reference is held as long as this exists.
    pub unsafe fn from_raw(ptr: *const T) -> Self {
        // SAFETY: The caller passes a pointer from `into_raw()` whose reference outlives this.
        // `ManuallyDrop` keeps that reference's count.
        let held = unsafe { Arc::from_raw(ptr) };
        Self(ManuallyDrop::new(held), PhantomData)
    }
}

impl<T> From<ArcBorrow<'_, T>> for Arc<T> {
    fn from(borrow: ArcBorrow<'_, T>) -> Self {
        Arc::clone(&borrow.0)
    }
}
