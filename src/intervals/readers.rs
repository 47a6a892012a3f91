// SPDX-License-Identifier: GPL-2.0

//! All open files of intervals.

use super::reader::Reader;
use crate::{
    rust::{
        event::EventId,
        tracefs::{
            Dentry,
            TracingDir, //
        },
    },
    worker::Worker,
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// All open files of intervals.
#[pin_data]
pub(crate) struct Readers {
    #[pin]
    readers: Mutex<KVec<Arc<Reader>>>,
    worker: Arc<Worker>,
}

/// A reader on the list. Dropping it takes it off.
pub(crate) struct Listed {
    readers: Arc<Readers>,
    reader: Arc<Reader>,
}

impl Readers {
    /// Creates an empty list. `worker` cuts for the readers. Fails with `ENOMEM`.
    pub(crate) fn new(worker: Arc<Worker>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                readers <- kernel::new_mutex!(KVec::new()),
                worker,
            }),
            GFP_KERNEL,
        )
    }

    /// Adds a reader of an event in a tracing directory, whose own directory is `real`. Fails with
    /// `ENOMEM`.
    pub(crate) fn add(
        self: &Arc<Self>,
        event: EventId,
        dir: TracingDir,
        real: Dentry,
    ) -> Result<Listed> {
        let reader = Reader::new(event, dir, real, self.worker.clone())?;
        self.readers.lock().push(reader.clone(), GFP_KERNEL)?;
        Ok(Listed {
            readers: self.clone(),
            reader,
        })
    }

    /// Calls `f` for each reader, with its event and tracing directory.
    pub(crate) fn each(&self, f: impl Fn(&Reader, EventId, &TracingDir)) {
        for reader in self.readers.lock().iter() {
            let (event, dir) = reader.site();
            f(reader, event, dir);
        }
    }

    /// Wakes the tasks that poll, since an event may be gone.
    pub(crate) fn wake(&self) {
        self.worker.wake();
    }
}

impl Listed {
    /// The reader, as long as it is on the list.
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut readers = self.readers.readers.lock();
        let nth = readers
            .iter()
            .position(|other| Arc::ptr_eq(other, &self.reader));
        let removed = nth.and_then(|nth| readers.remove(nth).ok());
        drop(readers);
        drop(removed);
    }
}
