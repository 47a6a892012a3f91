// SPDX-License-Identifier: MIT OR Apache-2.0

//! Enforces the CPU budget of histograms.

use std::time::Duration;
use std::time::Instant;

use rhist_core::question::Cost;

/// Window for the average. A shorter one would overestimate bursts, such as during boot.
const WINDOW: Duration = Duration::from_secs(10);

/// A histogram that exceeds its budget by this factor is stopped after the shorter time.
const FAR: f64 = 10.0;
const SOON: Duration = Duration::from_secs(2);

/// First pause of a histogram that has exceeded its budget.
const FIRST_REST: Duration = Duration::from_secs(60);

/// Longest pause. Each pause is twice as long as the one before.
const LONGEST_REST: Duration = Duration::from_secs(3600);

/// Monitors the cost of a histogram.
#[derive(Debug)]
pub struct Watch {
    /// Allowed share of one CPU.
    pub budget: f64,
    /// Cost of a hit. If it could not be measured, the budget has no effect.
    pub cost: Cost,
    /// Share of one CPU in the current interval, up to the last call of [`Self::look()`].
    pub share: Option<f64>,
    /// Number of pauses so far.
    pub pauses: u64,
    /// Start of the interval, and the cost of all hits up to then, in nanoseconds of CPU time.
    since: Option<(Instant, f64)>,
    /// Start of the current run.
    started: Option<Instant>,
    rest: Duration,
}

impl Watch {
    /// Creates a monitor for a histogram that has not run yet.
    pub fn new(budget: f64) -> Self {
        Self {
            budget,
            cost: Cost::default(),
            share: None,
            pauses: 0,
            since: None,
            started: None,
            rest: FIRST_REST,
        }
    }

    /// Notes that the histogram starts.
    pub fn start(&mut self, now: Instant) {
        self.since = Some((now, 0.0));
        self.started = Some(now);
        self.share = None;
    }

    /// Notes that the histogram has stopped.
    pub fn stop(&mut self) {
        (self.since, self.share) = (None, None);
    }

    /// Takes the hits since the start, and the hits rejected by filters. Returns the length of the
    /// pause if the histogram costs too much.
    pub fn look(&mut self, now: Instant, events: u64, rejected: Option<u64>) -> Option<Duration> {
        let (then, before) = self.since?;
        let time = now.saturating_duration_since(then);
        if time < SOON {
            return None;
        }
        let spent = self.cost.of(events, rejected)?;
        let share = (spent - before).max(0.0) / time.as_nanos() as f64;
        self.share = Some(share);
        if time < WINDOW && share <= self.budget * FAR {
            return None;
        }
        self.since = Some((now, spent));
        if share <= self.budget {
            return None;
        }
        // A long time within the budget resets the pauses.
        if self
            .started
            .is_some_and(|started| now.saturating_duration_since(started) > LONGEST_REST)
        {
            self.rest = FIRST_REST;
        }
        let rest = self.rest;
        self.rest = (rest * 2).min(LONGEST_REST);
        self.pauses += 1;
        Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(start: Instant) -> Watch {
        let mut watch = Watch {
            cost: Cost {
                event_ns: Some(100.0),
                rejected_ns: Some(20.0),
            },
            ..Watch::new(0.005)
        };
        watch.start(start);
        watch
    }

    #[test]
    fn within_its_budget() {
        let start = Instant::now();
        let mut watch = watch(start);
        // 50,000 hits of 100 ns per second are half a per cent.
        for second in 1..100 {
            let now = start + Duration::from_secs(second * 5);
            assert_eq!(watch.look(now, second * 5 * 50_000, None), None);
        }
        assert!((watch.share.unwrap() - 0.005).abs() < 1e-9);
    }

    #[test]
    fn a_burst_may_be_short() {
        let start = Instant::now();
        let after = |second| start + Duration::from_secs(second);
        let mut watch_one = watch(start);
        // Five times the budget for three seconds.
        assert_eq!(watch_one.look(after(3), 750_000, None), None);
        assert_eq!(watch_one.look(after(18), 800_000, None), None);
        // And for ten.
        let mut watch_one = watch(start);
        assert_eq!(watch_one.look(after(3), 750_000, None), None);
        assert_eq!(watch_one.look(after(10), 2_500_000, None), Some(FIRST_REST));
        // Twenty times.
        let mut watch_one = watch(start);
        assert_eq!(watch_one.look(after(3), 3_000_000, None), Some(FIRST_REST));
    }

    #[test]
    fn each_rest_is_longer() {
        let mut now = Instant::now();
        let mut watch = watch(now);
        let mut rests = Vec::new();
        for _ in 0..8 {
            watch.start(now);
            // Too short for an estimate.
            assert_eq!(watch.look(now + Duration::from_secs(1), 1_000_000_000, None), None);
            now += Duration::from_secs(10);
            rests.push(watch.look(now, 600_000, None).unwrap().as_secs());
            watch.stop();
            assert_eq!(watch.look(now + Duration::from_secs(60), 600_000, None), None);
        }
        assert_eq!(rests, [60, 120, 240, 480, 960, 1920, 3600, 3600]);
        assert_eq!(watch.pauses, 8);
        watch.start(now);
        now += Duration::from_secs(4000);
        assert_eq!(watch.look(now, 0, None), None);
        now += Duration::from_secs(10);
        assert_eq!(watch.look(now, 600_000, None), Some(FIRST_REST));
    }

    #[test]
    fn hits_that_are_rejected_cost_too() {
        let start = Instant::now();
        let mut watch = watch(start);
        // 250,000 hits of 20 ns per second are half a per cent.
        let after = |second| start + Duration::from_secs(second);
        assert_eq!(watch.look(after(10), 0, Some(2_500_000)), None);
        assert!((watch.share.unwrap() - 0.005).abs() < 1e-9);
        assert_eq!(watch.look(after(20), 0, Some(5_100_000)), Some(FIRST_REST));
    }

    #[test]
    fn a_cost_that_is_not_known() {
        let start = Instant::now();
        let mut watch = Watch {
            cost: Cost::default(),
            ..watch(start)
        };
        assert_eq!(watch.look(start + Duration::from_secs(10), u64::MAX, None), None);
        assert_eq!(watch.share, None);
    }
}
