// SPDX-License-Identifier: MIT OR Apache-2.0

//! A histogram of a configuration with its state: running, paused, or waiting until it can run.

use std::time::Duration;
use std::time::Instant;

use rhist_core::cost;
use rhist_core::hist_file;
use rhist_core::journal::Journals;
use rhist_core::names::Names;
use rhist_core::plan::Id;
use rhist_core::plan::Plans as Ways;
use rhist_core::problem::InFile;
use rhist_core::question::Fill;
use rhist_core::question::Question;
use rhist_core::question::Source;
use rhist_core::run;
use rhist_core::run::Run;
use rhist_core::run::StartError;
use rhist_core::table::Column;
use rhist_core::table::Key;
use rhist_core::table::Time;
use rhist_core::tracefs::Backend;
use rhist_core::tracefs::Tracefs;

use super::budget::Watch;
use super::config::HistogramConfig;
use super::label::Labeler;
use super::totals::Totals;

/// First delay before another attempt to start.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Longest delay. The module may be about to be upgraded, or be missing for days.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Ways to run a histogram on this machine, the best first.
pub struct Plans {
    /// Tracing directory for the plans.
    pub tracefs: Tracefs,
    /// Plans to try in order.
    pub plans: Ways,
}

/// Interprets the texts of a configuration.
pub trait Planner {
    /// Plans a histogram for the current state of this machine. `id` goes into the names of its
    /// objects.
    fn plan(&self, wanted: &HistogramConfig, id: &Id) -> Result<Plans, Box<InFile>>;
}

/// A histogram of a configuration.
pub struct Watched {
    /// Its configuration.
    pub wanted: HistogramConfig,
    /// Its counts.
    pub totals: Totals,
    /// Its cost and budget.
    pub watch: Watch,
    /// Details of the measurement, from the current or the last run.
    pub question: Question,
    /// Start of counting.
    pub(super) start: Time,
    /// Fill level of its fullest histogram in the kernel.
    pub fill: Fill,
    /// Number of starts.
    pub starts: u64,
    pub(super) names: Names,
    state: State,
    /// Whether the last read failed.
    is_unread: bool,
    /// Delay before the next attempt to start.
    wait: Duration,
}

/// State of a histogram.
enum State {
    /// Running. Dropping the source removes its objects from the kernel.
    Running(Box<dyn Source>),
    /// Paused until this time, because it cost too much.
    Resting(Instant),
    /// Cannot start before this time.
    Waiting(Instant),
}

/// An event for the log.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceEvent {
    /// Started, with notes about the numbers, for example that the best plan was not possible.
    Started(Vec<String>),
    /// Cannot start, or was removed.
    Failed(String),
    /// Counts, but cannot be read at the moment.
    Unread(String),
    /// Paused for this time, because it cost this share of a CPU, more than its budget.
    Paused(f64, Duration),
}

/// Environment for starting histograms.
pub(super) struct World<'a> {
    pub planner: &'a dyn Planner,
    pub journals: &'a Journals,
    /// Returns the ID for the next run of this process.
    pub id: &'a mut dyn FnMut() -> Id,
}

impl Watched {
    /// Creates a histogram that is due to start at `now`.
    pub fn new(wanted: HistogramConfig, now: Instant) -> Self {
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

    /// Returns whether it is counting.
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    /// Returns whether it is paused because it cost too much.
    pub fn is_paused(&self) -> bool {
        matches!(self.state, State::Resting(_))
    }

    /// Time of the next attempt to start; `None` while it runs.
    pub fn due(&self) -> Option<Instant> {
        match self.state {
            State::Running(_) => None,
            State::Resting(until) | State::Waiting(until) => Some(until),
        }
    }

    /// Returns whether to start it now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// Starts it. Of consecutive failures, returns only the first.
    pub(super) fn start(&mut self, world: &mut World<'_>, now: Instant) -> Option<ServiceEvent> {
        match self.make(world) {
            Ok(run) => {
                self.begin(*run);
                self.wait = FIRST_WAIT;
                Some(ServiceEvent::Started(self.question.notes.clone()))
            }
            Err(why) => {
                self.state = State::Waiting(now + self.wait);
                // Reported once.
                let is_first = self.wait == FIRST_WAIT;
                self.wait = (self.wait * 2).min(LONGEST_WAIT);
                is_first.then_some(ServiceEvent::Failed(why))
            }
        }
    }

    fn make(&self, world: &mut World<'_>) -> Result<Box<Run>, String> {
        let id = (world.id)();
        let Plans { tracefs, plans } = world
            .planner
            .plan(&self.wanted, &id)
            .map_err(|problem| problem.to_string())?;
        // C has other buckets, so rhist's counts cannot continue there.
        if self.starts > 0 && self.question.backend == Backend::Rhist && tracefs.backend() == Backend::C {
            return Err("the module is not loaded: modprobe rhist".to_owned());
        }
        let command = format!("serve ({})", self.wanted.name);
        // Removes objects of earlier runs that could not be removed while tracefs was unmounted.
        run::reap(&tracefs, world.journals, false);
        let run = Run::start_first(&tracefs, world.journals, plans, &command).and_then(|mut run| {
            // Before the triggers count, since the measurement causes hits.
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

    /// Counts the readings of `source` from now on. `start` is the time at which they were empty;
    /// `names` resolves their numbers.
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

    /// Reads it if it is running, and pauses it if it costs too much.
    pub(super) fn read(&mut self) -> Option<ServiceEvent> {
        let State::Running(source) = &mut self.state else {
            return None;
        };
        let reading = match source.read() {
            Ok(Some(reading)) => reading,
            // End of a recording.
            Ok(None) => return None,
            Err(error) => {
                let why = error.to_string();
                let is_passing = error.downcast_ref().is_some_and(hist_file::Error::is_passing);
                if !is_passing {
                    return Some(self.fail(why));
                }
                // Reported once.
                let was_unread = std::mem::replace(&mut self.is_unread, true);
                return (!was_unread).then_some(ServiceEvent::Unread(why));
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
        Some(ServiceEvent::Paused(share, rest))
    }

    /// Removes it from the kernel after an error, and schedules a new start at once.
    fn fail(&mut self, why: String) -> ServiceEvent {
        self.stop();
        self.state = State::Waiting(Instant::now());
        ServiceEvent::Failed(why)
    }

    /// Removes it from the kernel. Keeps the counts read so far.
    ///
    /// An object that cannot be removed stays in the journal, for the next rhist.
    pub(super) fn stop(&mut self) {
        if let State::Running(source) = std::mem::replace(&mut self.state, State::Waiting(Instant::now())) {
            drop(source);
            self.totals.rebase();
            self.watch.stop();
        }
    }

    /// Start of counting, in nanoseconds of the current `CLOCK_REALTIME`. `None` if it never
    /// started.
    pub fn started(&self) -> Option<u64> {
        (self.starts > 0).then(|| self.start.realtime_before(&Time::clocks()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use rhist_core::plan::Plan;
    use rhist_core::question::Reading;
    use rhist_core::tracefs::events::EventName;

    use super::*;
    use crate::service::Config;

    /// Triggers that another process has created.
    struct Triggers {
        plan: Plan,
        instance: Tracefs,
    }

    impl Source for Triggers {
        fn question(&self) -> &Question {
            &self.plan.question
        }

        fn read(&mut self) -> Result<Option<Reading>, Box<dyn std::error::Error + Send + Sync>> {
            self.plan.answer.read(&self.instance).map(Some)
        }
    }

    #[test]
    fn only_what_is_gone_is_made_again() {
        let root = tempfile::tempdir().unwrap();
        let events = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/fixtures/events");
        symlink(events, root.path().join("events")).unwrap();
        // Marks a directory of rhist.
        fs::write(root.path().join("hist_stats"), "").unwrap();
        let tracefs = Tracefs::at(root.path().to_owned()).unwrap();
        let name = EventName::parse("sched:sched_switch").unwrap();
        let triggers = [(name, "hist:keys=next_pid".to_owned())];
        let plan = Plan::of_triggers(&tracefs, Id::example(), &triggers, Question::default()).unwrap();
        let instance = tracefs.instance(&plan.id.instance());
        let file = instance.dir().join("events/sched/sched_switch/hist_jsonl");
        let text = "[histogram.a]\ncount = \"x\"\n".to_owned();
        let mut config = Config::parse([(PathBuf::from("a.toml"), text)]).unwrap();
        let mut histogram = Watched::new(config.histograms.remove(0), Instant::now());
        histogram.state = State::Running(Box::new(Triggers { plan, instance }));
        // A file that can be opened but not read.
        fs::create_dir_all(&file).unwrap();
        assert!(matches!(histogram.read(), Some(ServiceEvent::Unread(why)) if why.contains("Is a directory")));
        assert!(histogram.read().is_none() && histogram.is_running());
        fs::remove_dir(&file).unwrap();
        assert!(matches!(histogram.read(), Some(ServiceEvent::Failed(_))));
        assert!(!histogram.is_running());
    }
}
