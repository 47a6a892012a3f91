// SPDX-License-Identifier: GPL-2.0

//! The life of the table of [`Objects`]: it begins with the first histogram that takes stacks of
//! programs, and lasts as long as the module. Its files are put in time.

use super::yield_cpu;
use crate::{
    hook::user_objects,
    map::Cpus,
    rust::{
        poll::{
            PollQueue,
            PollTable, //
        },
        queue::Queue, //
    },
    user_stack::{
        ExecFiles,
        Objects, //
    },
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    time::msecs_to_jiffies,
    workqueue::{
        impl_has_delayed_work,
        new_delayed_work,
        DelayedWork,
        WorkItem, //
    },
};

/// The time between two beats of the table, in milliseconds.
const BEAT_MS: u32 = 1000;

/// Keeps the table. [`KeepsObjects`] owns it.
#[pin_data]
pub(crate) struct ObjectKeeper {
    #[pin]
    kept: Mutex<Kept>,
    /// Number of tables so far. Changes with `kept` locked.
    tables: Atomic<u32>,
    #[pin]
    beating: DelayedWork<ObjectKeeper, BEATING>,
    /// Tasks that poll for a change in the list of objects.
    polling: Pin<KBox<PollQueue>>,
    queue: Queue,
    files: &'static dyn ExecFiles,
    /// Bytes that all rules may take.
    max_bytes: usize,
}

const BEATING: u64 = 0;

impl_has_delayed_work! {
    impl HasDelayedWork<Self, BEATING> for ObjectKeeper { self.beating }
}

#[derive(Default)]
struct Kept {
    objects: Option<Arc<Objects>>,
    /// Number of histograms that use it.
    uses: usize,
    /// Its [version](Objects::version) at the last beat.
    version: u64,
}

/// The time during which a table is kept. Dropping it, after the last use and the last open file,
/// takes the table from hits, and waits for the end of all work.
pub(crate) struct KeepsObjects(Arc<ObjectKeeper>);

impl KeepsObjects {
    /// Begins without a table. Fails with `ENOMEM`.
    pub(crate) fn new(files: &'static dyn ExecFiles, max_bytes: usize) -> Result<Self> {
        let polling = KBox::pin_init(PollQueue::new(), GFP_KERNEL)?;
        let keeper = Arc::pin_init(
            pin_init!(ObjectKeeper {
                kept <- kernel::new_mutex!(Kept::default()),
                tables: Atomic::new(0),
                beating <- new_delayed_work!("rhist::ObjectKeeper::beating"),
                polling,
                queue: Queue::new()?,
                files,
                max_bytes,
            }? Error),
            GFP_KERNEL,
        )?;
        Ok(Self(keeper))
    }

    /// The keeper that works meanwhile.
    pub(crate) fn keeper(&self) -> &Arc<ObjectKeeper> {
        &self.0
    }
}

impl Drop for KeepsObjects {
    fn drop(&mut self) {
        Queue::cancel::<_, BEATING>(&self.0);
        user_objects::set(None);
    }
}

/// A use of the table by a histogram.
pub(crate) struct ObjectUse(Arc<ObjectKeeper>);

impl Drop for ObjectUse {
    fn drop(&mut self) {
        self.0.kept.lock().uses -= 1;
    }
}

impl ObjectKeeper {
    /// Has hits use the table, which is created now if it is missing: `seed` as for
    /// [`Objects::new`]. A table that nobody uses, and that is more than half full, is replaced.
    /// Fails with `ENOMEM`. Sleeps.
    pub(crate) fn begin_use(self: &Arc<Self>, cpus: Cpus, seed: u64) -> Result<ObjectUse> {
        let mut kept = self.kept.lock();
        let is_old = |objects: &Arc<Objects>| objects.len() > Objects::MAX / 2;
        let is_missing = kept.objects.is_none();
        if is_missing || kept.uses == 0 && kept.objects.as_ref().is_some_and(is_old) {
            let objects = Arc::new(
                Objects::new(cpus, seed, self.files, kept.objects.as_deref())?,
                GFP_KERNEL,
            )?;
            user_objects::set(Some(objects.clone()));
            kept.objects = Some(objects);
            self.tables.fetch_add(1, Relaxed);
            self.polling.wake();
        }
        kept.uses += 1;
        drop(kept);
        self.beat_later();
        Ok(ObjectUse(self.clone()))
    }

    /// The table; `None` if no histogram has needed one yet.
    pub(crate) fn objects(&self) -> Option<Arc<Objects>> {
        self.kept.lock().objects.clone()
    }

    /// The table, and the number of tables so far.
    pub(crate) fn table(&self) -> Option<(u32, Arc<Objects>)> {
        let kept = self.kept.lock();
        let nth = self.tables.load(Relaxed);
        kept.objects.clone().map(|objects| (nth, objects))
    }

    /// The table, if that is the `nth` one. Fails with `ENOENT`.
    pub(crate) fn nth_table(&self, nth: u32) -> Result<Arc<Objects>> {
        match self.table() {
            Some((here, objects)) if here == nth => Ok(objects),
            _ => Err(ENOENT),
        }
    }

    /// Returns whether the table is the `nth` one, or will be. Takes no lock.
    pub(crate) fn is_latest(&self, nth: u32) -> bool {
        self.tables.load(Relaxed) == nth
    }

    /// Wakes the tasks that poll for a change in the list of objects.
    pub(crate) fn wake_pollers(&self) {
        self.polling.wake();
    }

    /// Bytes that all rules may take.
    pub(crate) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Queues the caller of `poll()` for a change in the list of objects, which is noticed within a
    /// second.
    pub(crate) fn queue_poll(&self, table: &PollTable<'_>) {
        self.polling.wait(table);
    }

    fn beat_later(self: &Arc<Self>) {
        let delay = msecs_to_jiffies(BEAT_MS);
        let queue = self.queue.get();
        // Fails if it is queued already.
        let _ = queue.enqueue_delayed::<Arc<Self>, BEATING>(self.clone(), delay);
    }
}

impl WorkItem<BEATING> for ObjectKeeper {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let Some(objects) = this.objects() else {
            return;
        };
        let is_holding = objects.beat(yield_cpu);
        let mut kept = this.kept.lock();
        let version = objects.version();
        if kept.version != version {
            kept.version = version;
            this.polling.wake();
        }
        let goes_on = is_holding || kept.uses > 0;
        drop(kept);
        if goes_on {
            this.beat_later();
        }
    }
}
