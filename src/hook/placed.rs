// SPDX-License-Identifier: GPL-2.0

//! Triggers and switches by their tracing directory.

use crate::rust::tracefs::TracingDir;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A trigger or a switch, which belongs to one tracing directory.
pub(crate) trait Placed {
    /// Its tracing directory.
    fn dir(&self) -> &TracingDir;
}

/// The triggers or switches of an event in one tracing directory.
pub(crate) struct InDir<T: Placed> {
    pub(crate) all: Arc<KVec<Arc<T>>>,
    pub(crate) dir: TracingDir,
}

impl<T: Placed> InDir<T> {
    /// Iterates over them in the order of the list.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.all.iter().filter(|item| *item.dir() == self.dir)
    }
}
