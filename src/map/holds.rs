// SPDX-License-Identifier: GPL-2.0

//! How readers that add up counts in several steps, and the worker, which moves counts of entries
//! that are taken out, wait for each other.
//!
//! A reader joins a *group*. When the worker is about to move counts, readers that come from then
//! on join the other one, and it waits until the first one is empty. So a move comes after one pass
//! of each reader at most, and readers that come later do not delay it. Such a reader may find that
//! counts have moved, and starts again; but the next move waits for it.

/// The readers of a map, and the moves of counts.
#[derive(Default)]
pub(super) struct Holds {
    /// Odd while counts move from elements that are taken out; another number after that.
    pub(super) version: u64,
    /// Number of readers in each group.
    pub(super) readers: [u32; 2],
    /// The group that readers join.
    pub(super) joined: usize,
}

impl Holds {
    /// Has readers join the other group from now on. Returns the group before, which is to be
    /// [empty](Holds::is_empty) when counts move.
    pub(super) fn close(&mut self) -> usize {
        let group = self.joined;
        self.joined = 1 - group;
        group
    }

    /// Returns whether a group is empty.
    pub(super) fn is_empty(&self, group: usize) -> bool {
        self.readers[group] == 0
    }

    /// Counts are about to move, or have moved.
    pub(super) fn turn(&mut self) {
        self.version += 1;
    }

    /// Returns whether counts are being moved.
    pub(super) fn is_moving(&self) -> bool {
        self.version % 2 != 0
    }
}
