// SPDX-License-Identifier: GPL-2.0

//! Sources that were disconnected, and whose last hits may wait for user memory as long as a program likes.

use crate::rust::{
    queue::Queue,
    source::{
        self,
        Source, //
    },
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        UniqueArc, //
    },
    workqueue::{
        impl_has_work,
        new_work,
        Work,
        WorkItem, //
    },
};

/// A source that is dropped by work when its last hit has returned, so that nobody waits for it with a lock held.
#[pin_data]
struct Disconnected {
    _source: KBox<dyn Source>,
    #[pin]
    dropping: Work<Disconnected>,
}

impl_has_work! {
    impl HasWork<Self> for Disconnected { self.dropping }
}

impl WorkItem for Disconnected {
    type Pointer = Arc<Self>;

    fn run(_this: Arc<Self>) {
        source::synchronize_all();
    }
}

/// Drops a source of a built-in event, which was disconnected, when its last hit has returned. Waits here if
/// there is no memory to do so later.
pub(super) fn drop_later(queue: &Queue, source: KBox<dyn Source>) {
    let Ok(memory) = UniqueArc::new_uninit(GFP_KERNEL) else {
        source::synchronize_all();
        return;
    };
    let disconnected: Result<_> = memory.write_pin_init(pin_init!(Disconnected {
        _source: source,
        dropping <- new_work!("rhist::Disconnected::dropping"),
    }? Error));
    if let Ok(disconnected) = disconnected {
        // Does not fail: the work is new.
        let _ = queue.get().enqueue(Arc::from(disconnected));
    }
}
