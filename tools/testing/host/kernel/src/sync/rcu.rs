// SPDX-License-Identifier: GPL-2.0

//! RCU.
//!
//! Each thread counts in a counter of its own when it begins and when it ends a section, so that is
//! odd within one. A grace period waits until each counter that it found odd has changed. So
//! readers wait for nobody, and do not order each other's accesses, which would hide missing
//! ordering between them from loom and ThreadSanitizer.
//!
//! The begin of a section and the look of a grace period at the counter are both
//! read-modify-writes, so one of them comes first: either the grace period finds the section, and
//! waits for its end, or the section sees all that happened before the grace period.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::Ordering::Release;

#[cfg(not(loom))]
use std::{sync::atomic::AtomicBool, sync::atomic::AtomicUsize, thread, thread_local};

#[cfg(loom)]
use loom::{sync::atomic::AtomicBool, sync::atomic::AtomicUsize, thread, thread_local};

/// Largest number of threads at one time.
#[cfg(not(loom))]
const THREADS: usize = 256;

#[cfg(not(loom))]
static READERS: [Reader; THREADS] = [const { Reader::new() }; THREADS];

#[cfg(loom)]
loom::lazy_static! {
    static ref READERS: [Reader; 5] = std::array::from_fn(|_| Reader::default());
}

thread_local! {
    static THREAD: Thread = Thread::new();
}

/// The counter of a thread.
#[cfg_attr(loom, derive(Default))]
struct Reader {
    /// True while a thread uses the counter.
    taken: AtomicBool,
    /// Number of sections begun and ended.
    sections: AtomicUsize,
}

#[cfg(not(loom))]
impl Reader {
    const fn new() -> Self {
        Self {
            taken: AtomicBool::new(false),
            sections: AtomicUsize::new(0),
        }
    }
}

/// State of a thread.
struct Thread {
    /// The index of its counter.
    reader: usize,
    /// Number of nested sections.
    depth: Cell<usize>,
    /// Number of grace periods that it has waited for.
    waits: Cell<usize>,
}

impl Thread {
    fn new() -> Self {
        let take = |reader: &Reader| !reader.taken.swap(true, Relaxed);
        Self {
            reader: READERS.iter().position(take).expect("too many threads"),
            depth: Cell::new(0),
            waits: Cell::new(0),
        }
    }

    /// Sets the number of nested sections. Counts when a thread enters its outermost section, or
    /// leaves it.
    fn nest(&self, depth: usize, ordering: Ordering) {
        if self.depth.replace(depth) == 0 || depth == 0 {
            READERS[self.reader].sections.fetch_add(1, ordering);
        }
    }
}

// In loom, a model has few threads, and the counters are freed when its last thread ends.
#[cfg(not(loom))]
impl Drop for Thread {
    fn drop(&mut self) {
        READERS[self.reader].taken.store(false, Relaxed);
    }
}

/// A section of this thread, until it is dropped.
pub struct Guard(PhantomData<*mut ()>);

impl Guard {
    /// Begins a section.
    #[expect(clippy::new_without_default)]
    pub fn new() -> Self {
        THREAD.with(|thread| thread.nest(thread.depth.get() + 1, AcqRel));
        Self(PhantomData)
    }

    /// Ends it.
    pub fn unlock(self) {}
}

impl Drop for Guard {
    fn drop(&mut self) {
        THREAD.with(|thread| thread.nest(thread.depth.get() - 1, Release));
    }
}

/// Begins a section.
pub fn read_lock() -> Guard {
    Guard::new()
}

/// Waits for the end of each section that has begun.
///
/// # Panics
///
/// If this thread is in one.
pub fn synchronize_rcu() {
    THREAD.with(|thread| {
        assert_eq!(thread.depth.get(), 0, "waits for itself");
        thread.waits.set(thread.waits.get() + 1);
    });
    for reader in READERS.iter() {
        let before = reader.sections.fetch_add(0, AcqRel);
        while before % 2 == 1 && reader.sections.load(Acquire) == before {
            thread::yield_now();
        }
    }
}

/// Number of grace periods that this thread has waited for. Only the host has this.
pub fn waits() -> usize {
    THREAD.with(|thread| thread.waits.get())
}
