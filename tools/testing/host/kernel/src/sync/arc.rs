// SPDX-License-Identifier: GPL-2.0

//! [`Arc`] and [`ArcBorrow`].

use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;

use crate::alloc::AllocError;
use crate::alloc::Flags;
use crate::fault;

/// A value that is shared, and freed with the last reference on it.
pub struct Arc<T>(std::sync::Arc<Shared<T>>);

#[repr(transparent)]
struct Shared<T>(T);

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        fault::free();
    }
}

impl<T> Arc<T> {
    /// Moves `contents` into new memory.
    pub fn new(contents: T, _flags: Flags) -> Result<Self, AllocError> {
        fault::allocate(true)?;
        Ok(Self(std::sync::Arc::new(Shared(contents))))
    }

    /// Turns the reference into a pointer to the value.
    pub fn into_raw(self) -> *const T {
        std::sync::Arc::into_raw(self.0).cast()
    }

    /// Turns the pointer back into the reference.
    ///
    /// # Safety
    ///
    /// It is from [`Arc::into_raw`], and used once.
    pub unsafe fn from_raw(ptr: *const T) -> Self {
        // SAFETY: The caller passes a pointer from `into_raw()`, and only once. `Shared` is
        // represented like its value.
        Self(unsafe { std::sync::Arc::from_raw(ptr.cast()) })
    }

    /// Whether both are references on the same value.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        std::sync::Arc::ptr_eq(&this.0, &other.0)
    }
}

impl<T> Clone for Arc<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0 .0
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
