// SPDX-License-Identifier: GPL-2.0

//! Disconnected sources whose last hits may wait for user memory, for an unbounded time.

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

/// A source that work drops when its last hit has returned, so that nothing waits for it with a
/// lock held.
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

/// Drops a disconnected source when its last hit has returned. Waits here if the allocation for
/// doing so later fails. The event is built in, or its hits have ended: its reference may be put
/// before.
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
        // This cannot fail: the work is new.
        let _ = queue.get().enqueue(Arc::from(disconnected));
    }
}
