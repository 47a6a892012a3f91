// SPDX-License-Identifier: MIT OR Apache-2.0

//! Data printed at one time.

use rhist_core::question::Cost;
use rhist_core::question::Fill;
use rhist_core::question::Interval;
use rhist_core::question::Reading;
use rhist_core::samples::Samples;
use rhist_core::table::Table;
use rhist_core::table::Time;

/// Data printed at one time: an interval, or the total since the start.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub(super) table: &'a Table,
    /// Its begin. `None` for a total, which began `seconds` before.
    pub(super) from: Option<&'a Time>,
    pub(super) to: &'a Time,
    /// Duration in seconds. `None` if unknown.
    pub(super) seconds: Option<f64>,
    pub(super) events: u64,
    pub(super) rejected: Option<u64>,
    pub(super) cost: Cost,
    /// Only for a total: see [`Reading::fill`].
    pub(super) fill: Option<Fill>,
    /// Only for a total: see [`Reading::samples`].
    pub(super) samples: Option<Samples>,
}

impl<'a> View<'a> {
    /// The total after `seconds`, which a run prints last.
    pub fn total(reading: &'a Reading, seconds: f64) -> Self {
        View {
            table: &reading.table,
            from: None,
            to: &reading.table.time,
            seconds: Some(seconds).filter(|seconds| *seconds > 0.0),
            events: reading.events,
            rejected: reading.rejected,
            cost: reading.cost,
            fill: Some(reading.fill),
            samples: reading.samples,
        }
    }

    /// The increase of an interval.
    pub fn interval(interval: &'a Interval) -> Self {
        View {
            table: &interval.delta,
            from: Some(&interval.from),
            to: &interval.to,
            seconds: Some(interval.seconds()).filter(|seconds| *seconds > 0.0),
            events: interval.events,
            rejected: interval.rejected,
            cost: interval.cost,
            fill: None,
            samples: None,
        }
    }

    pub(super) fn is_total(&self) -> bool {
        self.fill.is_some()
    }

    /// Number per second.
    pub(super) fn rate(&self, count: u64) -> Option<f64> {
        self.seconds.map(|seconds| count as f64 / seconds)
    }

    /// Share of one CPU that its hits cost.
    pub(super) fn cpus(&self) -> Option<f64> {
        Some(self.cost.of(self.events, self.rejected)? / 1e9 / self.seconds?)
    }
}
