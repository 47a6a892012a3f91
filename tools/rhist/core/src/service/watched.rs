// SPDX-License-Identifier: MIT OR Apache-2.0

//! A histogram of a configuration: it runs, rests, or waits until it can run.

use std::time::Duration;
use std::time::Instant;

use super::budget::Watch;
use super::config::Wanted;
use super::label::Labeler;
use super::totals::Totals;
use crate::cost;
use crate::hist_file;
use crate::journal::Journals;
use crate::names::Names;
use crate::plan::Id;
use crate::plan::Plans as Ways;
use crate::problem::InFile;
use crate::question::Backend;
use crate::question::Fill;
use crate::question::Question;
use crate::question::Source;
use crate::run;
use crate::run::Run;
use crate::run::StartError;
use crate::table::Column;
use crate::table::Key;
use crate::table::Time;
use crate::tracefs::Tracefs;

/// After so long it is tried again to make what could not be made, at first.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// And at last: the module may be being upgraded, or not be there for days.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Ways to make a histogram on this machine, the best first.
pub struct Plans {
    /// Where.
    pub tracefs: Tracefs,
    /// What to do there.
    pub plans: Ways,
}

/// Finds out what the texts of a configuration mean.
pub trait Planner {
    /// Plans a histogram on this machine, as it is now. What is made has names by `id`.
    fn plan(&self, wanted: &Wanted, id: &Id) -> Result<Plans, Box<InFile>>;
}

/// A histogram of a configuration.
pub struct Watched {
    /// What it is.
    pub wanted: Wanted,
    /// What it has counted.
    pub totals: Totals,
    /// What it costs.
    pub watch: Watch,
    /// What is known about it. That of the last run, if it does not run now.
    pub question: Question,
    /// Since when it has been counted.
    pub(super) start: Time,
    /// How full its fullest histogram is.
    pub fill: Fill,
    /// How often it was made.
    pub starts: u64,
    pub(super) names: Names,
    state: State,
    /// Whether reading has failed last time.
    is_unread: bool,
    /// How long it waits when it cannot be made.
    wait: Duration,
}

/// What a histogram does.
enum State {
    /// Dropped, what it has in the kernel is gone.
    Running(Box<dyn Source>),
    /// It has cost too much.
    Resting(Instant),
    /// It cannot be made now.
    Waiting(Instant),
}

/// What happened to a histogram, for the log.
#[derive(Clone, Debug, PartialEq)]
pub enum Happened {
    /// It runs. What is to be known of what it counts, as that it could not be measured in the best
    /// way.
    Started(Vec<String>),
    /// It cannot be made now, or is gone.
    Failed(String),
    /// It counts, but cannot be read now.
    Unread(String),
    /// It has cost this part of a CPU, which is too much, and rests for so long.
    Paused(f64, Duration),
}

/// What all histograms of a service need.
pub(super) struct World<'a> {
    pub planner: &'a dyn Planner,
    pub journals: &'a Journals,
    /// The next run of this process.
    pub id: &'a mut dyn FnMut() -> Id,
}

impl Watched {
    /// One that does not run yet.
    pub fn new(wanted: Wanted, now: Instant) -> Self {
        Self {
            totals: Totals::new(wanted.settings.limit),
            watch: Watch::new(wanted.settings.budget),
            question: Question::default(),
            start: Time::default(),
            fill: Fill::default(),
            starts: 0,
            names: Names::elsewhere(),
            state: State::Waiting(now),
            is_unread: false,
            wait: FIRST_WAIT,
            wanted,
        }
    }

    /// Whether it counts.
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    /// Whether it rests, since it has cost too much.
    pub fn is_paused(&self) -> bool {
        matches!(self.state, State::Resting(_))
    }

    /// When there is something to do, if it does not run.
    pub fn due(&self) -> Option<Instant> {
        match self.state {
            State::Running(_) => None,
            State::Resting(until) | State::Waiting(until) => Some(until),
        }
    }

    /// Whether it is to be made now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// Makes it. Of failures in a row, only the first is returned.
    pub(super) fn start(&mut self, world: &mut World<'_>, now: Instant) -> Option<Happened> {
        match self.make(world) {
            Ok(run) => {
                self.begin(*run);
                self.wait = FIRST_WAIT;
                Some(Happened::Started(self.question.notes.clone()))
            }
            Err(why) => {
                self.state = State::Waiting(now + self.wait);
                // It is told once.
                let is_first = self.wait == FIRST_WAIT;
                self.wait = (self.wait * 2).min(LONGEST_WAIT);
                is_first.then_some(Happened::Failed(why))
            }
        }
    }

    fn make(&self, world: &mut World<'_>) -> Result<Box<Run>, String> {
        let id = (world.id)();
        let Plans { tracefs, plans } = world
            .planner
            .plan(&self.wanted, &id)
            .map_err(|problem| problem.to_string())?;
        // Buckets of C are others, so nothing that was counted by rhist can go on there.
        if self.starts > 0 && self.question.backend == Backend::Rhist && tracefs.backend() == Backend::C {
            return Err("the module is not loaded: modprobe rhist".to_owned());
        }
        let command = format!("serve ({})", self.wanted.name);
        // What could not be removed when it ended, as tracefs was away.
        run::reap(&tracefs, world.journals, false);
        let run = Run::start_first(&tracefs, world.journals, plans, &command).and_then(|mut run| {
            // Before it counts: what is done for that is not to be counted.
            if let Ok(cost) = cost::measure(&tracefs, world.journals, run.plan()) {
                run.set_cost(cost);
            }
            run.begin()?;
            Ok(Box::new(run))
        });
        run.map_err(|error| match error {
            StartError::Step(error) => {
                let sentence = error.log.as_ref().map(|entry| format!(": {}", entry.sentence));
                format!("the kernel refused it: {error}{}", sentence.unwrap_or_default())
            }
            error => error.to_string(),
        })
    }

    fn begin(&mut self, run: Run) {
        let tracefs = run.tracefs().clone();
        self.watch.cost = run.cost();
        let (start, names) = (run.beginning().table.time, run.plan().names(&tracefs));
        self.follow(Box::new(run), start, names);
    }

    /// Counts what `source` reads, from now on. `start` is when that was nothing, `names` are those of its numbers.
    pub(super) fn follow(&mut self, source: Box<dyn Source>, start: Time, names: Names) {
        if self.starts == 0 {
            self.start = start;
        }
        self.starts += 1;
        self.question = source.question().clone();
        self.totals.signed = self.question.signed.clone();
        self.names = names;
        self.state = State::Running(source);
        self.watch.start(Instant::now());
    }

    /// Reads it, if it runs, and ends it if it costs too much.
    pub(super) fn read(&mut self) -> Option<Happened> {
        let State::Running(source) = &mut self.state else {
            return None;
        };
        let reading = match source.read() {
            Ok(Some(reading)) => reading,
            // A recording has ended.
            Ok(None) => return None,
            Err(error) => {
                let why = error.to_string();
                let is_passing = error.downcast_ref().is_some_and(hist_file::Error::is_passing);
                if !is_passing {
                    return Some(self.fail(why));
                }
                // It is told once.
                let was_unread = std::mem::replace(&mut self.is_unread, true);
                return (!was_unread).then_some(Happened::Unread(why));
            }
        };
        self.is_unread = false;
        let (events, rejected) = (reading.events, reading.rejected);
        self.fill = reading.fill;
        let labeler = Labeler {
            question: &self.question,
            names: &self.names,
            addresses: self.wanted.settings.addresses,
        };
        let label = |column: &Column, key: &Key| labeler.label(column, key);
        if let Err(fallen) = self.totals.take(reading, label) {
            return Some(self.fail(fallen.to_string()));
        }
        let now = Instant::now();
        let rest = self.watch.look(now, events, rejected)?;
        let share = self.watch.share.unwrap_or(0.0);
        self.stop();
        self.state = State::Resting(now + rest);
        Some(Happened::Paused(share, rest))
    }

    /// Removes it from the kernel, to be made again at once: it does not count as it should.
    fn fail(&mut self, why: String) -> Happened {
        self.stop();
        self.state = State::Waiting(Instant::now());
        Happened::Failed(why)
    }

    /// Removes it from the kernel. What was read of it is kept.
    ///
    /// What cannot be removed has its journal still: the next rhist tries again.
    pub(super) fn stop(&mut self) {
        if let State::Running(source) = std::mem::replace(&mut self.state, State::Waiting(Instant::now())) {
            drop(source);
            self.totals.rebase();
            self.watch.stop();
        }
    }

    /// Since when it has been counted, if it has been: `CLOCK_REALTIME` in nanoseconds, as the clock is now.
    pub fn started(&self) -> Option<u64> {
        (self.starts > 0).then(|| self.start.realtime_before(&Time::clocks()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::plan::Plan;
    use crate::service::Config;
    use crate::tracefs::events::EventName;
    use crate::tracefs::fixture;

    #[test]
    fn only_what_is_gone_is_made_again() {
        let (_dir, tracefs) = fixture::tracefs(true);
        let name = EventName::parse("sched:sched_switch").unwrap();
        let triggers = [(name, "hist:keys=next_pid".to_owned())];
        let plan = Plan::of_triggers(&tracefs, Id::example(), &triggers, Question::default()).unwrap();
        let run = Run::of_others(tracefs, plan);
        let file = run.instance().dir().join("events/sched/sched_switch/hist_jsonl");
        let text = "[histogram.a]\ncount = \"x\"\n".to_owned();
        let mut config = Config::parse([(PathBuf::from("a.toml"), text)]).unwrap();
        let mut histogram = Watched::new(config.histograms.remove(0), Instant::now());
        histogram.state = State::Running(Box::new(run));
        // It can be opened, and not be read.
        fs::create_dir_all(&file).unwrap();
        assert!(matches!(histogram.read(), Some(Happened::Unread(why)) if why.contains("Is a directory")));
        assert!(histogram.read().is_none() && histogram.is_running());
        fs::remove_dir(&file).unwrap();
        assert!(matches!(histogram.read(), Some(Happened::Failed(_))));
        assert!(!histogram.is_running());
    }
}
