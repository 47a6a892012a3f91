// SPDX-License-Identifier: GPL-2.0

//! Atomics with the kernel's interface and, where the host's memory model allows it, no more
//! ordering than the kernel's promises: a failed [`Atomic::cmpxchg`] orders nothing.

#[cfg(loom)]
use loom::sync::atomic as host;
#[cfg(not(loom))]
use std::sync::atomic as host;

use crate::interrupt;

pub use ordering::Acquire;
pub use ordering::Full;
pub use ordering::Relaxed;
pub use ordering::Release;

/// The orderings, as types.
pub mod ordering {
    use super::host::Ordering as Host;

    /// Orders nothing.
    pub struct Relaxed;
    /// Later accesses are not reordered before the load.
    pub struct Acquire;
    /// Earlier accesses are not reordered after the store.
    pub struct Release;
    /// Both, and more.
    pub struct Full;

    /// Any ordering.
    pub trait Ordering {
        #[doc(hidden)]
        const HOST: Host;
    }

    impl Ordering for Relaxed {
        const HOST: Host = Host::Relaxed;
    }
    impl Ordering for Acquire {
        const HOST: Host = Host::Acquire;
    }
    impl Ordering for Release {
        const HOST: Host = Host::Release;
    }
    impl Ordering for Full {
        const HOST: Host = Host::SeqCst;
    }

    /// The orderings of a load.
    pub trait AcquireOrRelaxed: Ordering {}
    impl AcquireOrRelaxed for Acquire {}
    impl AcquireOrRelaxed for Relaxed {}

    /// The orderings of a store.
    pub trait ReleaseOrRelaxed: Ordering {}
    impl ReleaseOrRelaxed for Release {}
    impl ReleaseOrRelaxed for Relaxed {}
}

/// Types with atomic accesses.
pub trait AtomicType: Copy {
    #[doc(hidden)]
    type Host;
    #[doc(hidden)]
    fn new(v: Self) -> Self::Host;
    #[doc(hidden)]
    fn load(a: &Self::Host, o: host::Ordering) -> Self;
    #[doc(hidden)]
    fn store(a: &Self::Host, v: Self, o: host::Ordering);
    #[doc(hidden)]
    fn xchg(a: &Self::Host, v: Self, o: host::Ordering) -> Self;
    #[doc(hidden)]
    fn cmpxchg(a: &Self::Host, old: Self, new: Self, o: host::Ordering) -> Result<Self, Self>;
    #[doc(hidden)]
    #[cfg(loom)]
    unsafe fn unsync_load(a: &Self::Host) -> Self;
    #[doc(hidden)]
    #[cfg(not(loom))]
    fn as_ptr(a: &Self::Host) -> *mut Self;
    #[doc(hidden)]
    #[cfg(not(loom))]
    fn get_mut(a: &mut Self::Host) -> &mut Self;
}

/// Types whose atomics can be added to.
pub trait AtomicAdd<Rhs = Self>: AtomicType {
    #[doc(hidden)]
    fn fetch_add(a: &Self::Host, v: Rhs, o: host::Ordering) -> Self;
    #[doc(hidden)]
    fn fetch_sub(a: &Self::Host, v: Rhs, o: host::Ordering) -> Self;
}

macro_rules! atomic_types {
    ($([$($generic:ident)?] $ty:ty => $host:ty $(, $add:ident)?;)*) => {
        $(
            impl$(<$generic>)? AtomicType for $ty {
                type Host = $host;
                fn new(v: Self) -> Self::Host {
                    <$host>::new(v)
                }
                #[inline]
                fn load(a: &Self::Host, o: host::Ordering) -> Self {
                    a.load(o)
                }
                #[inline]
                fn store(a: &Self::Host, v: Self, o: host::Ordering) {
                    a.store(v, o)
                }
                #[inline]
                fn xchg(a: &Self::Host, v: Self, o: host::Ordering) -> Self {
                    a.swap(v, o)
                }
                #[inline]
                fn cmpxchg(
                    a: &Self::Host,
                    old: Self,
                    new: Self,
                    o: host::Ordering,
                ) -> Result<Self, Self> {
                    a.compare_exchange(old, new, o, host::Ordering::Relaxed)
                }
                #[cfg(loom)]
                unsafe fn unsync_load(a: &Self::Host) -> Self {
                    // SAFETY: The caller promises that all stores happened before, and loom checks
                    // it.
                    unsafe { a.unsync_load() }
                }
                #[cfg(not(loom))]
                fn as_ptr(a: &Self::Host) -> *mut Self {
                    a.as_ptr()
                }
                #[cfg(not(loom))]
                fn get_mut(a: &mut Self::Host) -> &mut Self {
                    a.get_mut()
                }
            }
            $(
                impl $add for $ty {
                    #[inline]
                    fn fetch_add(a: &Self::Host, v: Self, o: host::Ordering) -> Self {
                        a.fetch_add(v, o)
                    }
                    #[inline]
                    fn fetch_sub(a: &Self::Host, v: Self, o: host::Ordering) -> Self {
                        a.fetch_sub(v, o)
                    }
                }
            )?
        )*
    };
}
atomic_types! {
    [] bool => host::AtomicBool;
    [] i32 => host::AtomicI32, AtomicAdd;
    [] u32 => host::AtomicU32, AtomicAdd;
    [] i64 => host::AtomicI64, AtomicAdd;
    [] u64 => host::AtomicU64, AtomicAdd;
    [] isize => host::AtomicIsize, AtomicAdd;
    [] usize => host::AtomicUsize, AtomicAdd;
    [T] *mut T => host::AtomicPtr<T>;
}

/// A memory location that several contexts may use at once.
#[repr(transparent)]
pub struct Atomic<T: AtomicType>(T::Host);

impl<T: AtomicType> Atomic<T> {
    /// One that holds `v`. (In the kernel this is `const`.)
    pub fn new(v: T) -> Self {
        Self(T::new(v))
    }

    /// Reads.
    #[inline]
    pub fn load<O: ordering::AcquireOrRelaxed>(&self, _: O) -> T {
        interrupt::point();
        T::load(&self.0, O::HOST)
    }

    /// Writes.
    #[inline]
    pub fn store<O: ordering::ReleaseOrRelaxed>(&self, v: T, _: O) {
        interrupt::point();
        T::store(&self.0, v, O::HOST)
    }

    /// Stores a value and returns the old one.
    #[inline]
    pub fn xchg<O: ordering::Ordering>(&self, new: T, _: O) -> T {
        interrupt::point();
        T::xchg(&self.0, new, O::HOST)
    }

    /// Writes `new` if the value is `old`. Returns the old value: as `Ok` if it was written, and
    /// otherwise as `Err`, without any ordering.
    #[inline]
    pub fn cmpxchg<O: ordering::Ordering>(&self, old: T, new: T, _: O) -> Result<T, T> {
        interrupt::point();
        T::cmpxchg(&self.0, old, new, O::HOST)
    }

    /// Adds, wrapping.
    #[inline]
    pub fn add<Rhs>(&self, v: Rhs, _: Relaxed)
    where
        T: AtomicAdd<Rhs>,
    {
        interrupt::point();
        T::fetch_add(&self.0, v, host::Ordering::Relaxed);
    }

    /// Adds, wrapping, and returns the old value.
    #[inline]
    pub fn fetch_add<Rhs, O: ordering::Ordering>(&self, v: Rhs, _: O) -> T
    where
        T: AtomicAdd<Rhs>,
    {
        interrupt::point();
        T::fetch_add(&self.0, v, O::HOST)
    }

    /// Subtracts, wrapping, and returns the old value.
    #[inline]
    pub fn fetch_sub<Rhs, O: ordering::Ordering>(&self, v: Rhs, _: O) -> T
    where
        T: AtomicAdd<Rhs>,
    {
        interrupt::point();
        T::fetch_sub(&self.0, v, O::HOST)
    }

    /// Reads as plain memory. Only for loom, whose atomics are not plain memory; panics if a store
    /// did not happen before.
    ///
    /// # Safety
    ///
    /// As for a plain read: all stores happened before.
    #[cfg(loom)]
    pub unsafe fn unsync_load(&self) -> T {
        // SAFETY: The caller promises that all stores happened before.
        unsafe { T::unsync_load(&self.0) }
    }

    /// The address of the value.
    #[cfg(not(loom))]
    pub fn as_ptr(&self) -> *mut T {
        T::as_ptr(&self.0)
    }

    /// The value; the exclusive reference rules out other accesses.
    #[cfg(not(loom))]
    pub fn get_mut(&mut self) -> &mut T {
        T::get_mut(&mut self.0)
    }
}
