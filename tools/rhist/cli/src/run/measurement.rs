// SPDX-License-Identifier: MIT OR Apache-2.0

//! A question, and how long it is measured.

use anyhow::Context;
use rhist_core::plan::Id;
use rhist_core::plan::Plans;
use rhist_core::query::Query;
use rhist_core::table::BucketUnit;
use rhist_core::tracefs::Tracefs;

use crate::options::Common;
use crate::options::RunArgs;

/// A question, and how long it is measured.
#[derive(Debug)]
pub struct Measurement {
    /// The question.
    pub query: Query,
    /// Seconds until the end; `None` for no limit.
    pub duration: Option<f64>,
    /// Seconds of an interval; `None` for only one.
    pub interval: Option<f64>,
    /// Options common to all commands.
    pub common: Common,
}

impl Measurement {
    /// Completes a question with the options of the command line.
    pub fn new(query: Query, run: RunArgs, common: Common) -> Self {
        Self {
            query: Query {
                by: run.by,
                pids: run.pid,
                children: run.children,
                frequency: run.frequency,
                comm: run.comm,
                cgroup: run.cgroup,
                container: run.container,
                slower: run.slower,
                faster: run.faster,
                filter: run.filter,
                counts_self: run.itself,
                size: run.size,
                expire: run.expire,
                unit: run.unit.map(BucketUnit::from).unwrap_or_default(),
                backend: run.backend.into(),
                is_dry_run: common.dry_run,
                ..query
            },
            duration: run.duration,
            interval: run.interval,
            common,
        }
    }

    /// Plans the question for this machine: see [`Query::plans()`].
    pub fn plans(&self, tracefs: &Tracefs) -> anyhow::Result<Plans> {
        let id = if self.common.dry_run {
            Id::example()
        } else {
            Id::of_this_process().context("/proc")?
        };
        Ok(self.query.plans(tracefs, &id)?)
    }
}
