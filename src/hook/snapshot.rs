// SPDX-License-Identifier: GPL-2.0

//! Implements the conditional snapshot of a tracing directory for actions.

use crate::{
    event::Hit,
    hist::spec::target::SnapshotTarget,
    rust::snapshot::KernelSnapshot, //
};

impl SnapshotTarget for KernelSnapshot {
    fn take(&self, hit: &Hit<'_>, decide: &mut dyn FnMut() -> bool) {
        KernelSnapshot::take(self, hit.preempt(), decide);
    }
}
