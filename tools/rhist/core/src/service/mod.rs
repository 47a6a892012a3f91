// SPDX-License-Identifier: MIT OR Apache-2.0

//! Histograms that are there as long as a service runs: which ones, by its configuration, and what they have counted.

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
mod words;

use std::error::Error;
use std::time::Duration;
use std::time::Instant;

pub use config::Config;
pub use config::ConfigError;
pub use config::Settings;
pub use config::Wanted;
pub use config::What;
pub use destination::Destination;
pub use destination::PushSettings;
pub use pushing::Pushing;
pub use totals::OTHER;
pub use watched::Happened;
pub use watched::Planner;
pub use watched::Plans;
pub use watched::Watched;
pub use words::Word;
pub use words::split;

use crate::journal::Journals;
use crate::names::Names;
use crate::plan::Id;
use crate::question::Source;
use crate::recording::Replay;
use watched::World;

/// How long nobody may have read before they are read for their own sake: a reading is what is kept of a histogram that is
/// gone, and what its cost is known by.
const READ_EACH: Duration = Duration::from_secs(15);

/// The first time: a histogram that costs too much is found soon.
const READ_FIRST: Duration = Duration::from_secs(3);

/// The histograms of a configuration.
pub struct Service {
    /// In the order of the configuration.
    histograms: Vec<Watched>,
    journals: Journals,
    id: Id,
    /// Runs that this process has begun.
    runs: u32,
    /// When all were read last, and how long it took.
    last_read: Option<(Instant, Duration)>,
    /// Since when some have run that nobody has read yet.
    fresh: Option<Instant>,
}

/// What a new configuration changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Names of histograms that were not there.
    pub added: Vec<String>,
    /// Those that are no longer there.
    pub removed: Vec<String>,
    /// Those that begin anew, since they are others.
    pub changed: Vec<String>,
    /// How many are as they were.
    pub same: usize,
}

impl Service {
    /// A service without histograms. `id` is that of this process.
    pub fn new(id: Id, journals: Journals) -> Self {
        Self {
            histograms: Vec::new(),
            journals,
            id,
            runs: 0,
            last_read: None,
            fresh: None,
        }
    }

    /// Takes another configuration. Histograms that are the same in both go on; one whose budget alone is another, too.
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

    /// Has a histogram of the configuration count what a recording has, from reading to reading, and not what happens on this
    /// machine. `names` are those of its numbers. For tests of what is made of the metrics of many machines.
    pub fn replay(
        &mut self,
        name: &str,
        mut recording: Replay,
        names: Names,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let histogram = self.histograms.iter_mut().find(|one| one.wanted.name == name);
        let histogram = histogram.ok_or_else(|| format!("no histogram is called {name}"))?;
        let beginning = recording.read()?.unwrap_or_default();
        histogram.watch.cost = beginning.cost;
        histogram.follow(Box::new(recording), beginning.table.time, names);
        Ok(())
    }

    /// Makes one histogram that is due, so that the caller can answer scrapes before the next.
    /// Returns what is to be logged.
    pub fn tick(&mut self, planner: &dyn Planner, now: Instant) -> Option<(String, Happened)> {
        let Self {
            histograms,
            journals,
            id,
            runs,
            fresh,
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
        };
        let histogram = histograms.iter_mut().find(|one| one.is_due(now))?;
        let happened = histogram.start(&mut world, now)?;
        if matches!(happened, Happened::Started(_)) {
            fresh.get_or_insert(Instant::now());
        }
        Some((histogram.wanted.name.clone(), happened))
    }

    /// Whether [`Self::tick()`] has something to make.
    pub fn has_due(&self, now: Instant) -> bool {
        self.histograms.iter().any(|one| one.is_due(now))
    }

    /// Reads all, unless they were read at most so long ago.
    pub fn read(&mut self, age: Duration) -> Vec<(String, Happened)> {
        let begin = Instant::now();
        if self
            .last_read
            .is_some_and(|(last, _)| begin.saturating_duration_since(last) < age)
        {
            return Vec::new();
        }
        let mut all = Vec::new();
        for histogram in &mut self.histograms {
            if let Some(happened) = histogram.read() {
                all.push((histogram.wanted.name.clone(), happened));
            }
        }
        self.last_read = Some((Instant::now(), begin.elapsed()));
        self.fresh = None;
        all
    }

    /// When [`Self::tick()`] or [`Self::read()`] is due.
    pub fn due(&self) -> Option<Instant> {
        let starts = self.histograms.iter().filter_map(Watched::due).min();
        [starts, self.read_due()].into_iter().flatten().min()
    }

    /// When all are to be read, also if nobody asks.
    pub fn read_due(&self) -> Option<Instant> {
        self.histograms.iter().any(Watched::is_running).then_some(())?;
        let fresh = self.fresh.map(|fresh| fresh + READ_FIRST);
        let each = self.last_read.map(|(last, _)| last + READ_EACH);
        [fresh, each].into_iter().flatten().min()
    }

    /// The histograms.
    pub fn histograms(&self) -> &[Watched] {
        &self.histograms
    }

    /// How long the last reading took.
    pub fn read_time(&self) -> Option<Duration> {
        self.last_read.map(|(_, took)| took)
    }

    /// Has all of them made anew, after what they have counted was read: what their triggers leave
    /// out is another now.
    pub fn remake(&mut self) -> Vec<(String, Happened)> {
        if !self.histograms.iter().any(Watched::is_running) {
            return Vec::new();
        }
        let happened = self.read(Duration::ZERO);
        self.histograms.iter_mut().for_each(Watched::stop);
        happened
    }

    /// Removes all from the kernel, one after the other. `goes_on` is called after each.
    pub fn stop(&mut self, mut goes_on: impl FnMut()) {
        for histogram in self.histograms.drain(..) {
            drop(histogram);
            goes_on();
        }
    }
}

/// Whether a histogram can go on with these settings.
fn is_same(old: &Settings, new: &Settings) -> bool {
    *old == Settings {
        budget: old.budget,
        bounds: old.bounds.clone(),
        ..new.clone()
    }
}

#[cfg(test)]
mod tests;
