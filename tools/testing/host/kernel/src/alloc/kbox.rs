// SPDX-License-Identifier: GPL-2.0

//! [`Box`].

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ops::DerefMut;
use core::pin::Pin;

use super::allocator::KVmalloc;
use super::allocator::Kmalloc;
use super::allocator::Vmalloc;
use super::AllocError;
use super::Allocator;
use super::Flags;
use crate::fault;

/// One value in memory of its own.
pub struct Box<T: ?Sized, A: Allocator>(Option<std::boxed::Box<T>>, PhantomData<A>);

/// A [`Box`] from [`Kmalloc`].
pub type KBox<T> = Box<T, Kmalloc>;
/// A [`Box`] from [`Vmalloc`].
pub type VBox<T> = Box<T, Vmalloc>;
/// A [`Box`] from [`KVmalloc`].
pub type KVBox<T> = Box<T, KVmalloc>;

impl<T, A: Allocator> Box<T, A> {
    /// Moves `x` into new memory.
    pub fn new(x: T, _flags: Flags) -> Result<Self, AllocError> {
        if size_of::<T>() > A::MAX {
            return Err(AllocError);
        }
        if size_of::<T>() > 0 {
            fault::allocate(true)?;
        }
        Ok(Self(Some(std::boxed::Box::new(x)), PhantomData))
    }

    /// Moves `x` into new memory, which it stays in. In the kernel, it is initialised there.
    pub fn pin_init(x: T, flags: Flags) -> Result<Pin<Self>, AllocError> {
        Self::new(x, flags).map(Into::into)
    }

    /// Moves the value out and frees the memory.
    pub fn into_inner(mut b: Self) -> T {
        if size_of::<T>() > 0 {
            fault::free();
        }
        *b.0.take().expect("taken only here")
    }
}

impl<T: ?Sized, A: Allocator> Box<T, A> {
    /// Takes over a value in its own memory. Only the host has this, for trait objects: for the
    /// kernel's [`Box`], the compiler does that conversion.
    pub fn of(inner: std::boxed::Box<T>) -> Result<Self, AllocError> {
        if size_of_val(&*inner) > 0 {
            fault::allocate(true)?;
        }
        Ok(Self(Some(inner), PhantomData))
    }
}

impl<T: ?Sized, A: Allocator> From<Box<T, A>> for Pin<Box<T, A>> {
    fn from(b: Box<T, A>) -> Self {
        // SAFETY: The value is in memory of its own, and is not moved out of a pinned box.
        unsafe { Pin::new_unchecked(b) }
    }
}

impl<T: ?Sized, A: Allocator> Drop for Box<T, A> {
    fn drop(&mut self) {
        if let Some(inner) = self.0.take() {
            if size_of_val(&*inner) > 0 {
                fault::free();
            }
        }
    }
}

impl<T: ?Sized, A: Allocator> Deref for Box<T, A> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_deref().expect("taken only at the end")
    }
}

impl<T: ?Sized, A: Allocator> DerefMut for Box<T, A> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_deref_mut().expect("taken only at the end")
    }
}

impl<T: ?Sized + fmt::Debug, A: Allocator> fmt::Debug for Box<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display, A: Allocator> fmt::Display for Box<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
