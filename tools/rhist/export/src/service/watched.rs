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
use rhist_core::run::Wanted;
use rhist_core::table::ProgramNames;
use rhist_core::table::Row;
use rhist_core::table::Time;
use rhist_core::table::fold;
use rhist_core::threads;
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

    /// Names for the functions of programs. `None`: they are numbers.
    fn programs(&self) -> Option<Box<dyn ProgramNames>> {
        None
    }
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
    /// Hits of the current run, and hits that its filters rejected.
    counted: (u64, Option<u64>),
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
    /// Something that another program did to it.
    Disturbed(String),
}

/// Environment for starting histograms.
pub(super) struct World<'a> {
    pub planner: &'a dyn Planner,
    pub journals: &'a Journals,
    /// Returns the ID for the next run of this process.
    pub id: &'a mut dyn FnMut() -> Id,
    /// Numbers that a run is started for.
    pub wanted: Wanted,
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
            counted: (0, None),
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
        let started = Run::start_first(&tracefs, world.journals, plans, &command, world.wanted);
        let run = started.and_then(|mut run| {
            if run.plan().has_programs()
                && let Some(programs) = world.planner.programs()
            {
                // The processes that read the files of programs.
                run.leave_out_children(&threads::own());
                run.set_programs(programs);
            }
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
        let plan = run.plan();
        self.totals.remove_idle(plan.idle, plan.answer.is_of_one());
        let names = plan.names(&tracefs);
        self.follow(Box::new(run), names);
    }

    /// Counts the intervals of `source` from now on. `names` resolves their numbers.
    pub(super) fn follow(&mut self, mut source: Box<dyn Source>, names: Names) {
        if self.starts == 0 {
            self.start.clone_from(&source.total().table.time);
        }
        self.counted = (0, None);
        self.starts += 1;
        self.question = source.question().clone();
        self.totals.signed = self.question.signed.clone();
        self.names = names;
        self.state = State::Running(source);
        self.watch.start(Instant::now());
    }

    /// Asks for the end of its interval, if it is running: see [`Source::ask()`].
    pub(super) fn ask(&mut self) {
        if let State::Running(source) = &mut self.state {
            source.ask();
        }
    }

    /// Lets go of the kernel's files of intervals: see [`Source::release()`].
    pub(super) fn release(&mut self) {
        if let State::Running(source) = &mut self.state {
            source.release();
        }
    }

    /// Lets the kernel cut its intervals again: see [`Source::resume()`].
    pub(super) fn resume(&mut self) {
        if let State::Running(source) = &mut self.state {
            source.resume();
        }
    }

    /// Reads it if it is running, and pauses it if it costs too much.
    pub(super) fn read(&mut self) -> Vec<ServiceEvent> {
        let State::Running(source) = &mut self.state else {
            return Vec::new();
        };
        let mut interval = match source.interval() {
            Ok(Some(interval)) => interval,
            // End of a recording.
            Ok(None) => return Vec::new(),
            Err(error) => {
                let why = error.to_string();
                let is_passing = error.downcast_ref().is_some_and(hist_file::Error::is_passing);
                if !is_passing {
                    return vec![self.fail(why)];
                }
                // Reported once.
                let was_unread = std::mem::replace(&mut self.is_unread, true);
                return Vec::from_iter((!was_unread).then_some(ServiceEvent::Unread(why)));
            }
        };
        self.is_unread = false;
        self.fill = interval.fill;
        let (events, rejected) = self.counted;
        let (events, rejected) = (
            events.saturating_add(interval.events),
            fold::sum(rejected, interval.rejected),
        );
        self.counted = (events, rejected);
        let notes = std::mem::take(&mut interval.notes).into_iter();
        let mut happened: Vec<_> = notes.map(ServiceEvent::Disturbed).collect();
        let labeler = Labeler {
            question: &self.question,
            names: &self.names,
            addresses: self.wanted.settings.addresses,
        };
        self.totals.add(interval, |column, key| labeler.label(column, key));
        let now = Instant::now();
        if let Some(rest) = self.watch.look(now, events, rejected) {
            let share = self.watch.share.unwrap_or(0.0);
            self.stop();
            self.state = State::Resting(now + rest);
            happened.push(ServiceEvent::Paused(share, rest));
        }
        happened
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
            self.totals.forget_keys();
            self.watch.stop();
        }
    }

    /// Start of counting a row, if known, or else of the histogram: see [`Self::started()`].
    pub(super) fn began(&self, row: &Row) -> Option<u64> {
        let now = Time::clocks().realtime_ns;
        // The clock may have been set back since.
        let begin = row.begin.map(|begin| begin.at.realtime_ns);
        begin.filter(|begin| *begin <= now).or_else(|| self.started())
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
    use rhist_core::question::Interval;
    use rhist_core::question::Reading;
    use rhist_core::tracefs::events::EventName;

    use super::*;
    use crate::service::Config;

    /// Triggers that another process has created.
    struct Triggers {
        plan: Plan,
        instance: Tracefs,
        total: Reading,
    }

    impl Source for Triggers {
        fn question(&self) -> &Question {
            &self.plan.question
        }

        fn interval(&mut self) -> Result<Option<Interval>, Box<dyn std::error::Error + Send + Sync>> {
            let reading = self.plan.answer.read(&self.instance)?;
            Ok(Some(reading.since(Reading::default())))
        }

        fn total(&mut self) -> &Reading {
            &self.total
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
        histogram.state = State::Running(Box::new(Triggers {
            plan,
            instance,
            total: Reading::default(),
        }));
        // A file that can be opened but not read.
        fs::create_dir_all(&file).unwrap();
        assert!(matches!(&histogram.read()[..], [ServiceEvent::Unread(why)] if why.contains("Is a directory")));
        assert!(histogram.read().is_empty() && histogram.is_running());
        fs::remove_dir(&file).unwrap();
        assert!(matches!(&histogram.read()[..], [ServiceEvent::Failed(_)]));
        assert!(!histogram.is_running());
    }
}
