// SPDX-License-Identifier: MIT OR Apache-2.0

//! Inputs of a plan.

use std::collections::BTreeMap;

use crate::recipe::Measure;
use crate::room::Idle;
use crate::room::Size;
use crate::table::BucketUnit;
use crate::tracefs::Backend;
use crate::tracefs::Tracefs;

/// Settings from the command line that modify a measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Keys; `None` for the keys of the recipe.
    pub by: Option<Vec<String>>,
    /// Threads to measure; empty for all.
    pub threads: Vec<i32>,
    /// Threads to leave out: the ones of rhist itself.
    pub own: Vec<i32>,
    /// Measures only tasks with this name; a pattern if it contains `*`.
    pub comm: Option<String>,
    /// Measures only tasks of this control group, and of the ones below it.
    pub cgroup: Option<String>,
    /// Processes that [`Self::threads`] belong to, if tasks that they start are measured, too.
    pub children_of: Vec<i32>,
    /// Samples per second on each CPU, for `rhist:sample`; `None` for the machine's setting.
    pub frequency: Option<u32>,
    /// Lower limit of values, in the unit of the recipe.
    pub slower: Option<u64>,
    /// Upper limit of values, exclusive.
    pub faster: Option<u64>,
    /// Filter for hits.
    pub filter: Option<String>,
    /// Number of entries for results, and the minimum for starts.
    pub size: Option<Size>,
    /// Time after which an entry of the results without hits is taken out.
    pub expire: Option<Idle>,
    /// Default of [`Self::expire`] for results by keys whose values come and go.
    pub expire_passing: Option<Idle>,
    /// No histogram grows, and no entry is taken out: for modules that cannot, and for shapes of
    /// entries that are too wide.
    pub is_fixed: bool,
    /// Unit of the buckets of times: see [`BucketUnit`].
    pub unit: BucketUnit,
    /// Whether only the buckets of distributions are read. The kernel then estimates as few
    /// quantiles as it can; estimates take most of the time of a read.
    pub only_buckets: bool,
    /// Values for the recipe's arguments.
    pub args: BTreeMap<String, String>,
    /// Whether to count tasks by ID and merge them by name afterwards: for kernels whose C lacks
    /// `common_comm`.
    pub comm_by_pid: bool,
}

/// Inputs for all triggers of a plan.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub tracefs: &'a Tracefs,
    pub measure: &'a Measure,
    pub options: &'a Options,
    /// Keys as the kernel names them.
    pub keys: &'a [String],
}

impl Asked<'_> {
    /// Returns whether histograms may grow, and forget entries: rhist's can.
    pub(super) fn has_room(&self) -> bool {
        has_dist(self.tracefs) && !self.options.is_fixed
    }
}

/// Returns whether histograms support distributions: rhist's do.
pub(super) fn has_dist(tracefs: &Tracefs) -> bool {
    tracefs.backend() == Backend::Rhist
}
