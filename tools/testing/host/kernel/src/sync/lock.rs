// SPDX-License-Identifier: GPL-2.0

//! Locks.

pub mod mutex {
    //! [`Mutex`], on the standard library's, or loom's.

    use core::ops::Deref;
    use core::ops::DerefMut;

    #[cfg(not(loom))]
    use std::sync::TryLockError;
    #[cfg(not(loom))]
    use std::thread;

    #[cfg(loom)]
    use loom::sync as inner;
    #[cfg(not(loom))]
    use std::sync as inner;

    /// A lock that a task sleeps for.
    pub struct Mutex<T>(inner::Mutex<T>);

    /// The locked value of a [`Mutex`].
    pub struct MutexGuard<'a, T> {
        #[cfg_attr(loom, allow(dead_code))]
        pub(in crate::sync) mutex: &'a Mutex<T>,
        /// `None` while a condition variable has unlocked it.
        pub(in crate::sync) inner: Option<inner::MutexGuard<'a, T>>,
    }

    impl<T> Mutex<T> {
        /// Makes an unlocked one. In the kernel, `new_mutex!` gives it a name, too.
        pub fn new(value: T) -> Self {
            Self(inner::Mutex::new(value))
        }

        /// Waits for the lock.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard {
                mutex: self,
                inner: Some(self.lock_inner()),
            }
        }

        #[cfg(loom)]
        fn lock_inner(&self) -> inner::MutexGuard<'_, T> {
            self.0.lock().expect("no holder has panicked")
        }

        /// Tries again and again: the standard library's code that sleeps for it is not
        /// instrumented, so ThreadSanitizer would not know that one holder came after the other.
        #[cfg(not(loom))]
        pub(in crate::sync) fn lock_inner(&self) -> inner::MutexGuard<'_, T> {
            loop {
                match self.0.try_lock() {
                    Ok(guard) => return guard,
                    Err(TryLockError::WouldBlock) => thread::yield_now(),
                    Err(TryLockError::Poisoned(_)) => panic!("a holder has panicked"),
                }
            }
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;
        fn deref(&self) -> &T {
            self.inner.as_ref().expect("it is locked")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.inner.as_mut().expect("it is locked")
        }
    }
}
