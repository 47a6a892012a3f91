// SPDX-License-Identifier: MIT OR Apache-2.0

//! Histograms that run as long as a service: chosen by its configuration, with the totals of their
//! counts.

mod budget;
mod config;
mod destination;
mod families;
mod family_names;
mod label;
#[cfg(test)]
mod load;
mod pushing;
mod totals;
mod watched;

use std::error::Error;
use std::time::Duration;
use std::time::Instant;

pub use config::Config;
pub use config::ConfigError;
pub use config::HistogramConfig;
pub use config::Settings;
pub use config::What;
pub use destination::Destination;
pub use destination::PushSettings;
pub use pushing::Pushing;
pub use totals::OTHER;
pub use watched::Planner;
pub use watched::Plans;
pub use watched::ServiceEvent;
pub use watched::Watched;

use rhist_core::journal::Journals;
use rhist_core::names::Names;
use rhist_core::plan::Id;
use rhist_core::question::Source;
use rhist_core::recording::Replay;
use rhist_core::run::Wanted;
use watched::World;

/// Longest time between reads, if nobody scrapes. A reading keeps the counts of a histogram that
/// disappears, and yields its cost.
const READ_EACH: Duration = Duration::from_secs(15);

/// Delay of the first read, to find a too expensive histogram soon.
const READ_FIRST: Duration = Duration::from_secs(3);

/// Time without files of intervals, in which the module can be unloaded.
const RELEASED: Duration = Duration::from_secs(60);

/// The histograms of a configuration.
pub struct Service {
    /// Histograms in the order of the configuration.
    histograms: Vec<Watched>,
    journals: Journals,
    id: Id,
    /// Number of runs that this process has begun.
    runs: u32,
    /// Time of the last read of all histograms, and its duration.
    last_read: Option<(Instant, Duration)>,
    /// Start of the first run that has not been read yet.
    fresh: Option<Instant>,
    /// Time of the last [`Self::release()`].
    released: Option<Instant>,
    /// Its counts are pushed, too.
    is_pushed: bool,
}

/// Differences between two configurations.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Names of new histograms.
    pub added: Vec<String>,
    /// Names of histograms that were removed.
    pub removed: Vec<String>,
    /// Names of histograms that restart, because their settings differ.
    pub changed: Vec<String>,
    /// Number of histograms that continue.
    pub same: usize,
}

impl Service {
    /// Creates a service without histograms. `id` is the ID of this process.
    pub fn new(id: Id, journals: Journals) -> Self {
        Self {
            histograms: Vec::new(),
            journals,
            id,
            runs: 0,
            last_read: None,
            fresh: None,
            released: None,
            is_pushed: false,
        }
    }

    /// Applies another configuration. A histogram continues if nothing but its budget and its
    /// classic buckets differs.
    pub fn apply(&mut self, config: Config, now: Instant) -> Changes {
        let mut changes = Changes::default();
        let mut before = std::mem::take(&mut self.histograms);
        for wanted in config.histograms {
            let place = before.iter().position(|old| old.wanted.name == wanted.name);
            let old = place.map(|place| before.remove(place));
            self.histograms.push(match old {
                Some(mut old) if is_same(&old.wanted.settings, &wanted.settings) => {
                    changes.same += 1;
                    old.watch.budget = wanted.settings.budget;
                    old.wanted = wanted;
                    old
                }
                old => {
                    let list = if old.is_some() {
                        &mut changes.changed
                    } else {
                        &mut changes.added
                    };
                    list.push(wanted.name.clone());
                    drop(old);
                    Watched::new(wanted, now)
                }
            });
        }
        changes.removed = before.into_iter().map(|old| old.wanted.name).collect();
        changes
    }

    /// Feeds a histogram of the configuration from a recording instead of this machine, one reading
    /// at a time. `names` resolves the recording's numbers. For tests with metrics of many
    /// machines.
    pub fn replay(
        &mut self,
        name: &str,
        mut recording: Replay,
        names: Names,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let histogram = self.histograms.iter_mut().find(|one| one.wanted.name == name);
        let histogram = histogram.ok_or_else(|| format!("no histogram is called {name}"))?;
        histogram.watch.cost = recording.total().cost;
        histogram.follow(Box::new(recording), names);
        Ok(())
    }

    /// Starts one histogram that is due, so that the caller can answer scrapes before the next.
    /// Returns an event for the log.
    pub fn tick(&mut self, planner: &dyn Planner, now: Instant) -> Option<(String, ServiceEvent)> {
        let Self {
            histograms,
            journals,
            id,
            runs,
            fresh,
            released,
            ..
        } = self;
        let mut next = || {
            *runs += 1;
            id.numbered(*runs)
        };
        let mut world = World {
            planner,
            journals,
            id: &mut next,
            wanted: match is_released(*released, now) {
                true => Wanted::Totals,
                false => Wanted::Intervals,
            },
        };
        let histogram = histograms.iter_mut().find(|one| one.is_due(now))?;
        let happened = histogram.start(&mut world, now)?;
        if matches!(happened, ServiceEvent::Started(_)) {
            fresh.get_or_insert(Instant::now());
        }
        Some((histogram.wanted.name.clone(), happened))
    }

    /// Returns whether [`Self::tick()`] has a histogram to start.
    pub fn has_due(&self, now: Instant) -> bool {
        self.histograms.iter().any(|one| one.is_due(now))
    }

    /// Reads all histograms, unless the last read is younger than `age`.
    pub fn read(&mut self, age: Duration) -> Vec<(String, ServiceEvent)> {
        let begin = Instant::now();
        if self
            .last_read
            .is_some_and(|(last, _)| begin.saturating_duration_since(last) < age)
        {
            return Vec::new();
        }
        if self.released.is_some() && !is_released(self.released, begin) {
            self.released = None;
            self.histograms.iter_mut().for_each(Watched::resume);
        }
        // Asked together, all share a cut of the kernel.
        self.histograms.iter_mut().for_each(Watched::ask);
        let mut all = Vec::new();
        for histogram in &mut self.histograms {
            histogram.totals.is_pushed = self.is_pushed;
            for happened in histogram.read() {
                all.push((histogram.wanted.name.clone(), happened));
            }
        }
        self.last_read = Some((Instant::now(), begin.elapsed()));
        self.fresh = None;
        all
    }

    /// Reads all histograms, and closes the kernel's files of intervals for a minute, so that the
    /// module can be unloaded. Meanwhile, intervals are differences of totals.
    pub fn release(&mut self) -> Vec<(String, ServiceEvent)> {
        let happened = self.read(Duration::ZERO);
        self.histograms.iter_mut().for_each(Watched::release);
        self.released = Some(Instant::now());
        happened
    }

    /// Whether the module may be unloaded at present: see [`Self::release()`].
    pub fn is_released(&self, now: Instant) -> bool {
        is_released(self.released, now)
    }

    /// Time at which [`Self::tick()`] or [`Self::read()`] is due.
    pub fn due(&self) -> Option<Instant> {
        let starts = self.histograms.iter().filter_map(Watched::due).min();
        [starts, self.read_due()].into_iter().flatten().min()
    }

    /// Time at which to read all histograms even without a scrape.
    pub fn read_due(&self) -> Option<Instant> {
        self.histograms.iter().any(Watched::is_running).then_some(())?;
        let fresh = self.fresh.map(|fresh| fresh + READ_FIRST);
        let each = self.last_read.map(|(last, _)| last + READ_EACH);
        [fresh, each].into_iter().flatten().min()
    }

    /// All histograms, running or not.
    pub fn histograms(&self) -> &[Watched] {
        &self.histograms
    }

    /// Duration of the last read.
    pub fn read_time(&self) -> Option<Duration> {
        self.last_read.map(|(_, took)| took)
    }

    /// Restarts all histograms after a last read: their triggers must leave out other threads now.
    pub fn remake(&mut self) -> Vec<(String, ServiceEvent)> {
        if !self.histograms.iter().any(Watched::is_running) {
            return Vec::new();
        }
        let happened = self.read_last();
        self.histograms.iter_mut().for_each(Watched::stop);
        happened
    }

    /// Reads all histograms before they end: also hits that came just before the files of intervals
    /// were opened, which only totals have.
    pub fn read_last(&mut self) -> Vec<(String, ServiceEvent)> {
        let mut happened = self.read(Duration::ZERO);
        self.histograms.iter_mut().for_each(Watched::release);
        happened.extend(self.read(Duration::ZERO));
        happened
    }

    /// Removes all histograms from the kernel, one after the other, and calls `goes_on` after each.
    pub fn stop(&mut self, mut goes_on: impl FnMut()) {
        for histogram in self.histograms.drain(..) {
            drop(histogram);
            goes_on();
        }
    }
}

/// Returns whether the module may be unloaded now.
fn is_released(released: Option<Instant>, now: Instant) -> bool {
    released.is_some_and(|since| now.saturating_duration_since(since) < RELEASED)
}

/// Returns whether a histogram can continue with these settings.
fn is_same(old: &Settings, new: &Settings) -> bool {
    *old == Settings {
        budget: old.budget,
        bounds: old.bounds.clone(),
        ..new.clone()
    }
}

#[cfg(test)]
mod tests;
