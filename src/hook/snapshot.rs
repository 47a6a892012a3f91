// SPDX-License-Identifier: GPL-2.0

//! The conditional snapshot of a tracing directory, for actions.

use crate::{
    event::Hit,
    hist::spec::target::SnapshotTarget,
    rust::snapshot, //
};

/// The conditional snapshot of a tracing directory, enabled as long as this exists.
pub(crate) struct CondSnapshot(pub(crate) snapshot::KernelSnapshot);

impl SnapshotTarget for CondSnapshot {
    fn take(&self, hit: &Hit<'_>, decide: &mut dyn FnMut() -> bool) {
        self.0.take(hit.preempt(), decide);
    }
}
