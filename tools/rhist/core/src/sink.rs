// SPDX-License-Identifier: MIT OR Apache-2.0

//! Consumers of a run.

use std::time::Duration;

use crate::plan::Plan;
use crate::question::Interval;
use crate::question::Reading;

/// Consumer of a run: the screen, a file, or a receiver.
pub trait Sink {
    /// Error of the consumer, which ends the run.
    type Error;

    /// Called before the run begins, to tell people that something happens: the kernel takes some
    /// time for each trigger.
    fn announce(&self, _: &Plan) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Time that the sink may need after the end of the run.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }

    /// Called after the run has begun.
    fn begin(&mut self, plan: &Plan) -> Result<(), Self::Error>;

    /// Called after each interval.
    fn interval(&mut self, interval: &Interval) -> Result<(), Self::Error>;

    /// Called at the end of the run with its totals.
    fn end(&mut self, reading: &Reading, seconds: f64) -> Result<(), Self::Error>;
}
