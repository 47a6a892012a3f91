// SPDX-License-Identifier: GPL-2.0

//! [`Arc`].

use core::ops::Deref;

use crate::alloc::AllocError;
use crate::alloc::Flags;
use crate::fault;

/// A value that is shared, and freed with the last reference on it.
pub struct Arc<T>(std::sync::Arc<Shared<T>>);

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
