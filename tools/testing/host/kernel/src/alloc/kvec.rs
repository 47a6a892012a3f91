// SPDX-License-Identifier: GPL-2.0

//! [`Vec`].

use core::borrow::Borrow;
use core::borrow::BorrowMut;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::ops::Deref;
use core::ops::DerefMut;
use core::ops::Index;
use core::ops::IndexMut;
use core::slice;
use core::slice::SliceIndex;

use super::allocator::KVmalloc;
use super::allocator::Kmalloc;
use super::allocator::Vmalloc;
use super::AllocError;
use super::Allocator;
use super::Flags;
use super::Zeroable;
use crate::error::code::EINVAL;
use crate::error::Error;
use crate::fault;

/// A growable array.
pub struct Vec<T, A: Allocator>(std::vec::Vec<T>, PhantomData<A>);

/// A [`Vec`] from [`Kmalloc`].
pub type KVec<T> = Vec<T, Kmalloc>;
/// A [`Vec`] from [`Vmalloc`].
pub type VVec<T> = Vec<T, Vmalloc>;
/// A [`Vec`] from [`KVmalloc`].
pub type KVVec<T> = Vec<T, KVmalloc>;

/// [`Vec::push_within_capacity`] found the vector full.
pub struct PushError<T>(pub T);

impl<T> fmt::Debug for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no capacity left")
    }
}

impl<T> From<PushError<T>> for Error {
    fn from(_: PushError<T>) -> Error {
        EINVAL
    }
}

/// [`Vec::remove`] found no element of that index.
#[derive(Debug)]
pub struct RemoveError;

impl From<RemoveError> for Error {
    fn from(_: RemoveError) -> Error {
        EINVAL
    }
}

impl<T, A: Allocator> Vec<T, A> {
    /// An empty vector. Allocates nothing.
    pub const fn new() -> Self {
        Self(std::vec::Vec::new(), PhantomData)
    }

    /// An empty vector with room for `capacity` elements.
    pub fn with_capacity(capacity: usize, flags: Flags) -> Result<Self, AllocError> {
        let mut v = Self::new();
        v.reserve(capacity, flags)?;
        Ok(v)
    }

    /// `n` elements, all zero.
    pub fn zeroed(n: usize, flags: Flags) -> Result<Self, AllocError>
    where
        T: Zeroable,
    {
        let mut v = Self::with_capacity(n, flags)?;
        // SAFETY: All-zero memory is a `T`, by `Zeroable`.
        v.0.resize_with(n, || unsafe { mem::zeroed() });
        Ok(v)
    }

    #[doc(hidden)]
    pub fn from_array<const N: usize>(array: [T; N]) -> Result<Self, AllocError> {
        let mut v = Self::with_capacity(N, super::flags::GFP_KERNEL)?;
        v.0.extend(array);
        Ok(v)
    }

    /// Number of elements it can hold without growing.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the vector has no element.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The elements.
    pub fn as_slice(&self) -> &[T] {
        self
    }

    /// The elements, writable.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self
    }

    /// Makes room for `additional` more elements; at least doubles the capacity if it has to grow.
    pub fn reserve(&mut self, additional: usize, _flags: Flags) -> Result<(), AllocError> {
        let (len, capacity) = (self.len(), self.capacity());
        if capacity - len >= additional {
            return Ok(());
        }
        let wanted = len
            .checked_add(additional)
            .ok_or(AllocError)?
            .max(capacity * 2);
        if wanted
            .checked_mul(size_of::<T>())
            .is_none_or(|bytes| bytes > A::MAX)
        {
            return Err(AllocError);
        }
        fault::allocate(capacity == 0)?;
        let grown = self.0.try_reserve_exact(wanted - len);
        if grown.is_err() && capacity == 0 {
            fault::free();
        }
        grown.map_err(|_| AllocError)
    }

    /// Appends `v`.
    pub fn push(&mut self, v: T, flags: Flags) -> Result<(), AllocError> {
        self.reserve(1, flags)?;
        self.0.push(v);
        Ok(())
    }

    /// Appends `v`, or returns it as the error if the vector is full.
    pub fn push_within_capacity(&mut self, v: T) -> Result<(), PushError<T>> {
        if self.len() == self.capacity() {
            return Err(PushError(v));
        }
        self.0.push(v);
        Ok(())
    }

    /// Removes the last element.
    pub fn pop(&mut self) -> Option<T> {
        self.0.pop()
    }

    /// Removes element `i`; those behind it move up.
    pub fn remove(&mut self, i: usize) -> Result<T, RemoveError> {
        if i < self.len() {
            Ok(self.0.remove(i))
        } else {
            Err(RemoveError)
        }
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Removes the elements from `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Keeps the elements for which `f` is true, in their order.
    pub fn retain(&mut self, f: impl FnMut(&mut T) -> bool) {
        self.0.retain_mut(f);
    }

    /// Removes all elements and hands them out.
    pub fn drain_all(&mut self) -> impl Iterator<Item = T> + '_ {
        self.0.drain(..)
    }
}

impl<T: Clone, A: Allocator> Vec<T, A> {
    /// Appends `n` copies of `value`.
    pub fn extend_with(&mut self, n: usize, value: T, flags: Flags) -> Result<(), AllocError> {
        self.reserve(n, flags)?;
        self.0.resize(self.len() + n, value);
        Ok(())
    }

    /// Appends copies of `other`'s elements.
    pub fn extend_from_slice(&mut self, other: &[T], flags: Flags) -> Result<(), AllocError> {
        self.reserve(other.len(), flags)?;
        self.0.extend_from_slice(other);
        Ok(())
    }

    /// `n` copies of `value`.
    pub fn from_elem(value: T, n: usize, flags: Flags) -> Result<Self, AllocError> {
        let mut v = Self::with_capacity(n, flags)?;
        v.extend_with(n, value, flags)?;
        Ok(v)
    }

    /// Cuts off elements or appends copies of `value` until the length is `new_len`.
    pub fn resize(&mut self, new_len: usize, value: T, flags: Flags) -> Result<(), AllocError> {
        match new_len.checked_sub(self.len()) {
            Some(n) => self.extend_with(n, value, flags),
            None => {
                self.truncate(new_len);
                Ok(())
            }
        }
    }
}

impl<T, A: Allocator> Drop for Vec<T, A> {
    fn drop(&mut self) {
        if size_of::<T>() > 0 && self.0.capacity() > 0 {
            fault::free();
        }
    }
}

impl<T, A: Allocator> Default for Vec<T, A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug, A: Allocator> fmt::Debug for Vec<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T, A: Allocator> Deref for Vec<T, A> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T, A: Allocator> DerefMut for Vec<T, A> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T, A: Allocator> Borrow<[T]> for Vec<T, A> {
    fn borrow(&self) -> &[T] {
        self
    }
}

impl<T, A: Allocator> BorrowMut<[T]> for Vec<T, A> {
    fn borrow_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T, I: SliceIndex<[T]>, A: Allocator> Index<I> for Vec<T, A> {
    type Output = I::Output;
    fn index(&self, index: I) -> &I::Output {
        &self.0[index]
    }
}

impl<T, I: SliceIndex<[T]>, A: Allocator> IndexMut<I> for Vec<T, A> {
    fn index_mut(&mut self, index: I) -> &mut I::Output {
        &mut self.0[index]
    }
}

impl<T: Eq, A: Allocator> Eq for Vec<T, A> {}

impl<T: PartialEq<U>, U, A: Allocator, B: Allocator> PartialEq<Vec<U, B>> for Vec<T, A> {
    fn eq(&self, other: &Vec<U, B>) -> bool {
        self[..] == other[..]
    }
}

macro_rules! slice_eq {
    ($([$($generics:tt)*] $other:ty,)*) => {
        $(
            impl<T: PartialEq<U>, U, A: Allocator, $($generics)*> PartialEq<$other> for Vec<T, A> {
                fn eq(&self, other: &$other) -> bool {
                    self[..] == other[..]
                }
            }
        )*
    };
}
slice_eq! {
    [] [U],
    [] &[U],
    [] &mut [U],
    [const N: usize] [U; N],
    [const N: usize] &[U; N],
}

/// The elements of a vector, by value.
pub struct IntoIter<T, A: Allocator>(std::vec::IntoIter<T>, bool, PhantomData<A>);

impl<T, A: Allocator> Iterator for IntoIter<T, A> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T, A: Allocator> Drop for IntoIter<T, A> {
    fn drop(&mut self) {
        if self.1 {
            fault::free();
        }
    }
}

impl<T, A: Allocator> IntoIterator for Vec<T, A> {
    type Item = T;
    type IntoIter = IntoIter<T, A>;

    fn into_iter(mut self) -> IntoIter<T, A> {
        let elements = mem::take(&mut self.0);
        let allocated = size_of::<T>() > 0 && elements.capacity() > 0;
        IntoIter(elements.into_iter(), allocated, PhantomData)
    }
}

impl<'a, T, A: Allocator> IntoIterator for &'a Vec<T, A> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> slice::Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T, A: Allocator> IntoIterator for &'a mut Vec<T, A> {
    type Item = &'a mut T;
    type IntoIter = slice::IterMut<'a, T>;

    fn into_iter(self) -> slice::IterMut<'a, T> {
        self.iter_mut()
    }
}
