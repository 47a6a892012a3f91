// SPDX-License-Identifier: GPL-2.0

//! Condition variables.

#[cfg(not(loom))]
use std::sync::atomic::AtomicUsize;
#[cfg(not(loom))]
use std::sync::atomic::Ordering;
#[cfg(not(loom))]
use std::thread;

use super::lock::mutex::MutexGuard;

/// A condition variable. It counts notifications, and a task that waits looks again and again, as
/// for a [`Mutex`](super::Mutex).
#[cfg(not(loom))]
#[derive(Default)]
pub struct CondVar(AtomicUsize);

/// A condition variable.
#[cfg(loom)]
#[derive(Default)]
pub struct CondVar(loom::sync::Condvar);

impl CondVar {
    /// Unlocks the mutex until it is notified.
    #[cfg(not(loom))]
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let before = self.0.load(Ordering::Relaxed);
        guard.inner = None;
        while self.0.load(Ordering::Relaxed) == before {
            thread::yield_now();
        }
        guard.inner = Some(guard.mutex.lock_inner());
    }

    /// Wakes all tasks that wait.
    #[cfg(not(loom))]
    pub fn notify_all(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Unlocks the mutex until it is notified.
    #[cfg(loom)]
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let inner = guard.inner.take().expect("it is locked");
        guard.inner = Some(self.0.wait(inner).expect("no holder has panicked"));
    }

    /// Wakes all tasks that wait.
    #[cfg(loom)]
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
