// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs of a plan: the triggers exist in the kernel as long as the [`Run`].

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use crate::hist_file;
use crate::intervals::Intervals;
use crate::journal::Entries;
use crate::journal::Journal;
use crate::journal::Journals;
use crate::missed;
use crate::plan;
use crate::plan::FORKS;
use crate::plan::Id;
use crate::plan::Instead;
use crate::plan::NO_TASK;
use crate::plan::NO_TASKS;
use crate::plan::Plan;
use crate::plan::Plans;
use crate::plan::Step;
use crate::plan::TASKS;
use crate::plan::task_list;
use crate::question::Cost;
use crate::question::Interval;
use crate::question::Question;
use crate::question::Reading;
use crate::question::Source;
use crate::samples;
use crate::samples::Samples;
use crate::table::Histogram;
use crate::table::Losses;
use crate::table::Numbered;
use crate::table::ProgramNames;
use crate::table::Table;
use crate::table::Time;
use crate::table::fold;
use crate::tracefs::Tracefs;
use crate::tracefs::WriteError;
use crate::tracefs::error_log::LogEntry;

/// Limit for retries of a removal while something is busy: readers in other processes, or running
/// hits.
const PATIENCE: Duration = Duration::from_secs(2);

/// Limit for attempts to open the files of intervals between hits, and to list all tasks of a run.
const ATTEMPTS: u32 = 20;

/// Longest wait for names of functions at the end of a run, and at the end of an interval.
const SETTLE: Duration = Duration::from_secs(2);
const SETTLE_INTERVAL: Duration = Duration::from_millis(300);

/// Error for an instance that cannot be removed.
const IN_USE: &str = "in use, for example by a program that has one of its files open; the next rhist tries again";

/// A running measurement. Dropping it removes everything it has created.
#[derive(Debug)]
pub struct Run {
    tracefs: Tracefs,
    plan: Plan,
    /// `None` after everything was undone, or kept.
    journal: Option<Journal>,
    /// Number of completed steps of the plan.
    made: usize,
    cost: Cost,
    /// Highest number of ends without a start in any reading. Each reading is a lower bound.
    unresolved: u64,
    /// Hits of its events that were missed before it began, if known.
    missed_before: Option<u64>,
    /// Hits missed since then, from the last reading that knew.
    missed: Option<u64>,
    /// Time just before the first trigger began to count.
    begin: Time,
    /// The kernel's intervals; `None` if they are differences of totals.
    intervals: Option<Intervals>,
    /// If the kernel is to cut intervals again: the number of attempts left to open their files
    /// between hits.
    resuming: Option<u32>,
    /// Sum of all intervals.
    total: Reading,
    /// For `rhist:sample`: the ticks when it began, and at the last reading.
    ticks: Option<[Samples; 2]>,
    /// The ticks from its begin to the last reading.
    samples: Option<Samples>,
    /// Whether `total` lacks the rows, which the sums of the intervals have.
    is_bare: bool,
    /// Names of the functions of programs.
    programs: Box<dyn ProgramNames>,
    /// `total` with these names, if it has stacks of programs. `None` until somebody asks for it.
    named: Option<Reading>,
}

/// Numbers that a run is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Totals: [`Run::reading()`].
    Totals,
    /// Intervals: [`Source::interval()`]. The kernel takes memory for them.
    Intervals,
}

/// Reason why a run did not start.
#[derive(Debug)]
pub enum StartError {
    /// The journal could not be written.
    Journal(io::Error),
    /// The instance could not be created.
    Instance(io::Error),
    /// Samples are taken at another frequency: at this one, and begun by this program.
    Frequency(Option<String>),
    /// A frequency is asked for, and samples are taken by counters of cycles.
    Cycles,
    /// The kernel rejected a command.
    Step(WriteError),
}

/// Missing feature of a kernel.
#[derive(Debug, PartialEq, Eq)]
enum Lack {
    /// Probe with this definition.
    Probe(String),
    /// The function that a filter names.
    Function(String),
    /// Names of tasks in histograms of C.
    Names,
    /// Histograms that grow, or take out entries: why the kernel refused one.
    Room(String),
}

impl Lack {
    /// Derives the missing feature from a rejected command. `None` if the command itself may be
    /// wrong, such as a filter written by the user.
    fn of(why: &WriteError) -> Option<Self> {
        if why.path.ends_with("dynamic_events") {
            return Some(Lack::Probe(why.text.clone()));
        }
        match &why.log {
            Some(log) if log.sentence == "Function not found" => {
                let name = log.command.get(LogEntry::word_at(&log.command, log.position));
                Some(Lack::Function(name.unwrap_or_default().to_owned()))
            }
            log if plan::has_room(&why.text) => {
                let sentence = log.as_ref().map(|log| log.sentence.clone());
                Some(Lack::Room(sentence.unwrap_or_else(|| why.error.to_string())))
            }
            _ => why.text.contains("common_comm").then_some(Lack::Names),
        }
    }

    /// Note for the answer of a plan that replaces one for this reason. `None` if this reason does
    /// not justify the replacement.
    fn note(&self, instead: Instead, name: &str) -> Option<String> {
        match (instead, self) {
            (Instead::ById, Lack::Names) => Some(
                "this kernel's histograms cannot use names of tasks as keys: tasks are counted by ID, and shown with their first name"
                    .to_owned(),
            ),
            (Instead::Fixed, Lack::Room(why)) => Some(format!(
                "this module refuses histograms that grow, and forget idle entries, so they have a fixed size: {why}"
            )),
            (Instead::LessExact, Lack::Probe(definition)) => {
                Some(otherwise(&format!("this kernel refuses the probe {definition:?}"), name))
            }
            (Instead::LessExact, Lack::Function(function)) => {
                Some(otherwise(&format!("this kernel has no function {function}"), name))
            }
            _ => None,
        }
    }
}

/// Note that a fallback was used, with the reason.
pub fn otherwise(why: &str, name: &str) -> String {
    format!("{why}, so another way to measure was used: see rhist {name} --help")
}

/// Note that the kernel has intervals, and not for this run.
fn differences(why: &dyn fmt::Display) -> String {
    format!("the kernel refuses to cut intervals, so they are differences of totals: {why}")
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Journal(error) => {
                write!(f, "cannot write the journal, so nothing was started: {error}")
            }
            StartError::Instance(error) => write!(f, "cannot make an instance: {error}"),
            StartError::Frequency(others) => {
                let others = others.as_deref().unwrap_or("another frequency, for another program");
                write!(
                    f,
                    "all programs take samples at one frequency, at present {others}: leave out --frequency, or wait until they end"
                )
            }
            StartError::Cycles => write!(
                f,
                "samples are taken by counters of cycles: leave out --frequency, or choose the clock: echo clock > {}",
                samples::SOURCE
            ),
            StartError::Step(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

impl Run {
    /// Starts the first plan that the kernel accepts, without counting yet: see [`Self::begin()`].
    ///
    /// A less exact plan is used only if the kernel lacks a feature that the better plan needs, and
    /// then its answer says so. Of several errors, returns the first.
    pub fn start_first(
        tracefs: &Tracefs,
        journals: &Journals,
        plans: Plans,
        command: &str,
        wanted: Wanted,
    ) -> Result<Self, StartError> {
        let start = |plan| Self::start(tracefs.clone(), journals, plan, command, wanted);
        let first = match start(plans.best) {
            Err(StartError::Step(why)) => why,
            result => return result,
        };
        let mut lack = Lack::of(&first);
        let mut notes = Vec::new();
        for (instead, mut plan) in plans.others {
            let Some(note) = lack.as_ref().and_then(|lack| lack.note(instead, &plan.question.name)) else {
                continue;
            };
            // The less exact plan may still count tasks by name.
            if instead == Instead::LessExact {
                notes.clear();
            }
            notes.push(note);
            plan.question.notes.extend(notes.iter().cloned());
            match start(plan) {
                Err(StartError::Step(why)) => lack = Lack::of(&why),
                result => return result,
            }
        }
        Err(StartError::Step(first))
    }

    /// Starts a plan without counting yet: see [`Self::begin()`]. If a step fails, removes
    /// everything created so far.
    pub fn start(
        tracefs: Tracefs,
        journals: &Journals,
        plan: Plan,
        command: &str,
        wanted: Wanted,
    ) -> Result<Self, StartError> {
        let journal = journals.create(&plan.id, command).map_err(StartError::Journal)?;
        let mut run = Self {
            tracefs,
            plan,
            journal: Some(journal),
            made: 0,
            cost: Cost::default(),
            unresolved: 0,
            missed_before: None,
            missed: None,
            begin: Time::now(),
            intervals: (wanted == Wanted::Intervals).then(Intervals::default),
            resuming: None,
            total: Reading::default(),
            ticks: None,
            samples: None,
            is_bare: false,
            programs: Box::new(Numbered),
            named: None,
        };
        match run.inherit_frequency(journals).and_then(|()| run.make()) {
            Ok(()) => Ok(run),
            // Dropping `run` undoes the completed steps.
            Err(error) => Err(error),
        }
    }

    /// Completes the step that sets the frequency of samples. If another run has set it, this run
    /// is the one to change it back, if it ends later.
    fn inherit_frequency(&mut self, journals: &Journals) -> Result<(), StartError> {
        if !self.plan.takes_samples() {
            return Ok(());
        }
        let present = samples::frequency(&self.tracefs).ok_or(StartError::Frequency(None))?;
        let others = journals.list();
        let mut steps = others.iter().flat_map(|(entries, _)| &entries.steps);
        let inherited = steps.find_map(|step| match step {
            Step::Frequency { hertz, before } if *hertz == present => Some(before.clone()),
            _ => None,
        });
        let mut own = self.plan.steps.iter_mut();
        let own = own.find_map(|step| match step {
            Step::Frequency { before, .. } => Some(before),
            _ => None,
        });
        if own.is_some() && samples::are_by_cycles(&self.tracefs) {
            return Err(StartError::Cycles);
        }
        match (own, inherited) {
            (Some(before), inherited) => *before = inherited.unwrap_or(present),
            (None, Some(before)) => self.plan.steps.insert(0, Step::Frequency { hertz: present, before }),
            (None, None) => {}
        }
        Ok(())
    }

    fn make(&mut self) -> Result<(), StartError> {
        let instance = self.instance();
        if let Err(error) = fs::create_dir(instance.dir()) {
            // Nothing was created. An existing instance of this name belongs to another process.
            if let Some(journal) = self.journal.take() {
                let _ = journal.remove();
            }
            return Err(StartError::Instance(error));
        }
        if_there(instance.write(TASKS, NO_TASK))?;
        for step in &self.plan.steps {
            if let (Some(intervals), Step::Trigger { event, .. }) = (&mut self.intervals, step) {
                match intervals.open(&instance, event) {
                    Ok(true) => {}
                    Ok(false) => self.intervals = None,
                    Err(why) => {
                        self.intervals = None;
                        self.plan.question.notes.push(differences(&why));
                    }
                }
            }
            if let Some(journal) = &mut self.journal {
                journal.note(step).map_err(StartError::Journal)?;
            }
            let (in_instance, file) = step.file();
            let dir = if in_instance { &instance } else { &self.tracefs };
            // Kernels before 6.14 limit the number of concurrent calls that an fprobe can track.
            let roomy = step.with_room().is_some_and(|text| dir.write(&file, &text).is_ok());
            if !roomy {
                let written = dir.write(file, step.text());
                written.map_err(|why| match step {
                    Step::Frequency { .. } if why.error.kind() == io::ErrorKind::ResourceBusy => {
                        StartError::Frequency(samples::taker(&self.tracefs))
                    }
                    _ => StartError::Step(why),
                })?;
            }
            self.made += 1;
        }
        // Now that samples are taken, it cannot change.
        for step in &self.plan.steps {
            if let Step::Frequency { hertz, .. } = step
                && samples::frequency(&self.tracefs).as_ref() != Some(hertz)
            {
                return Err(StartError::Frequency(samples::taker(&self.tracefs)));
            }
        }
        if let Some(intervals) = &mut self.intervals {
            // An error comes again in Self::begin().
            let _ = intervals.ask();
        }
        Ok(())
    }

    /// Makes all triggers count at once: the measurement begins here. It excludes the creation of
    /// the triggers. No start is matched with a later end because the trigger for its own end did
    /// not exist yet.
    pub fn begin(&mut self) -> Result<(), StartError> {
        if let Some(intervals) = &mut self.intervals
            && let Err(why) = intervals.begin()
        {
            self.intervals = None;
            self.plan.question.notes.push(differences(&*why));
        }
        self.plan.question.has_exact_intervals = self.intervals.is_some();
        self.begin = Time::now();
        self.total = self.beginning();
        self.named = None;
        self.missed_before = missed::read(&self.tracefs, &self.plan);
        self.plan
            .question
            .notes
            .extend(missed::disabled(&self.plan).map(str::to_owned));
        self.start_counting()?;
        if self.plan.takes_samples() {
            let begin = samples::read(&self.tracefs, &self.plan.id.instance());
            self.ticks = begin.map(|begin| [begin; 2]);
            if samples::are_by_cycles(&self.tracefs) {
                let note = format!(
                    "samples are taken by counters of cycles ({}), which hist_stats accounts for",
                    samples::SOURCE
                );
                self.plan.question.notes.push(note);
            }
        }
        if let Some(journal) = &mut self.journal {
            // If this fails, `--keep` does not work when the process is terminated.
            let _ = journal.note_begun();
        }
        Ok(())
    }

    /// Lets the hits of all tasks into the histograms, or of the plan's processes.
    fn start_counting(&self) -> Result<(), StartError> {
        let instance = self.instance();
        if self.plan.processes.is_empty() {
            return if_there(instance.truncate(TASKS));
        }
        instance.clone().with_c().write(FORKS, "1").map_err(StartError::Step)?;
        let threads = self.plan.threads();
        instance.write(TASKS, &task_list(&threads)).map_err(StartError::Step)?;
        // Also threads that were started meanwhile.
        let later = &self.plan.threads() - &threads;
        match later.is_empty() {
            true => Ok(()),
            false => instance.write(TASKS, &task_list(&later)).map_err(StartError::Step),
        }
    }

    /// Reads the ticks of `rhist:sample` since the start, before the table: a table that is read
    /// later has at least as many samples.
    fn read_samples(&mut self) {
        let Some([begin, last]) = self.ticks else { return };
        let Some(now) = samples::read(&self.tracefs, &self.plan.id.instance()) else {
            return;
        };
        self.ticks = Some([begin, now]);
        let mut since = now.since(begin, last);
        since.has_fallen |= self.samples.is_some_and(|samples| samples.has_fallen);
        self.samples = Some(match self.plan.processes.is_empty() {
            true => since,
            false => since.with_others(),
        });
    }

    /// A run whose triggers another process has created.
    #[cfg(test)]
    fn of_others(tracefs: Tracefs, plan: Plan) -> Self {
        Self {
            tracefs,
            plan,
            journal: None,
            made: 0,
            cost: Cost::default(),
            unresolved: 0,
            missed_before: Some(0),
            missed: None,
            begin: Time::default(),
            intervals: None,
            resuming: None,
            total: Reading::default(),
            ticks: None,
            samples: None,
            is_bare: false,
            programs: Box::new(Numbered),
            named: None,
        }
    }

    /// The plan, with its question and answer.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Tracing directory in which the run was started.
    pub fn tracefs(&self) -> &Tracefs {
        &self.tracefs
    }

    /// Tracing directory of the run's own instance.
    pub fn instance(&self) -> Tracefs {
        self.tracefs.instance(&self.plan.id.instance())
    }

    /// Stores the measured cost of a hit.
    pub fn set_cost(&mut self, cost: Cost) {
        self.cost = cost;
        if let Some(journal) = &mut self.journal {
            // Best effort: the journal has it for people only.
            let _ = journal.note_cost(cost);
        }
    }

    /// See [`Self::set_cost()`].
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Names the functions of programs in its readings; without, they are numbers.
    pub fn set_programs(&mut self, programs: Box<dyn ProgramNames>) {
        self.programs = programs;
    }

    /// Leaves out what these threads start from now on, but for samples: ticks of tasks that are
    /// left out are not accounted for. If that fails, they count.
    pub fn leave_out_children(&self, threads: &[i32]) {
        if !self.plan.takes_samples() && !threads.is_empty() {
            let instance = self.instance();
            let _ = instance.clone().with_c().write(FORKS, "1");
            let _ = instance.write(NO_TASKS, &task_list(threads));
        }
    }

    /// Empty reading at the beginning of the run.
    pub fn beginning(&self) -> Reading {
        let table = Table {
            time: self.begin.clone(),
            ..Table::default()
        };
        Reading {
            table,
            ..Reading::default()
        }
    }

    /// Reads the current totals.
    ///
    /// # Errors
    ///
    /// A file cannot be read (`NotFound` if the module was unloaded), or does not parse as
    /// histograms.
    pub fn reading(&mut self) -> Result<Reading, Box<dyn std::error::Error + Send + Sync>> {
        self.read_samples();
        let reading = self.plan.answer.read(&self.instance())?;
        let mut reading = self.complete(reading);
        self.settle(SETTLE);
        reading.table.name_programs(&*self.programs);
        Ok(reading)
    }

    /// Waits for the names of the last functions, at most so long.
    fn settle(&self, most: Duration) {
        if self.plan.has_programs() {
            self.programs.settle(most);
        }
    }

    /// Adds missed hits, the cost, and the highest bound of ends without a start.
    fn complete(&mut self, mut reading: Reading) -> Reading {
        let missed = missed::read(&self.tracefs, &self.plan).zip(self.missed_before);
        // Never falls, even while the kernel's files cannot be matched.
        self.missed = self.missed.max(missed.map(|(now, before)| now.saturating_sub(before)));
        reading.table.losses.missed_hits = self.missed;
        if let Some(unresolved) = &mut reading.table.losses.unresolved {
            self.unresolved = self.unresolved.max(*unresolved);
            *unresolved = self.unresolved;
        }
        reading.cost = self.cost;
        reading.samples = self.samples;
        reading
    }

    /// The increase since the last reading of the totals.
    fn difference(&mut self) -> Result<Interval, Box<dyn std::error::Error + Send + Sync>> {
        let histograms = self.plan.answer.histograms(&self.instance())?;
        let resumed = self.resuming.map(|_| {
            let totals = histograms.iter();
            let totals = totals.map(|(event, totals)| ((*event).to_owned(), totals.clone()));
            totals.collect::<BTreeMap<_, _>>()
        });
        let now = self.plan.answer.combine(histograms)?;
        let resumed = resumed.map(|totals| (totals, now.table.rows.clone()));
        let mut now = self.complete(now);
        let before = std::mem::take(&mut self.total);
        let is_cleared = before.exceeds(&now, &self.plan.question);
        let mut interval = now.whole_since(before);
        if is_cleared {
            // It is unknown which one, and how much it had counted before.
            interval.delta.rows.clear();
            interval.delta.losses = Losses::default();
            (interval.events, interval.rejected) = (0, interval.rejected.and(Some(0)));
            let note = "another program cleared a trigger of this run: the hits of this interval are left out";
            interval.notes.push(note.to_owned());
        }
        self.total = now;
        if let Some((totals, rows)) = resumed
            // A part of a sum that is held back belongs to the next difference.
            && rows == self.total.table.rows
        {
            match self.cut_from(totals) {
                Ok(true) => self.resuming = None,
                Ok(false) => self.resuming = self.resuming.map(|left| left.saturating_sub(1)),
                Err(note) => {
                    self.resuming = None;
                    interval.notes.push(note);
                }
            }
        }
        Ok(interval)
    }

    /// Opens the files of intervals, which go on from these totals, unless the kernel has none.
    /// Returns `false` to try it again, as hits came meanwhile: after the last attempt, only the
    /// first difference after [`Source::release()`] has them.
    fn cut_from(&mut self, totals: BTreeMap<String, Vec<Histogram>>) -> Result<bool, String> {
        let instance = self.instance();
        let mut intervals = Intervals::default();
        for event in totals.keys() {
            if !intervals.open(&instance, event).map_err(|why| differences(&why))? {
                return Ok(true);
            }
        }
        if !intervals.follow(&instance, totals) && self.resuming != Some(0) {
            return Ok(false);
        }
        self.intervals = Some(intervals);
        self.plan.question.has_exact_intervals = true;
        Ok(true)
    }

    /// See [`Source::interval()`].
    fn next_interval(&mut self) -> Result<Option<Interval>, Box<dyn std::error::Error + Send + Sync>> {
        let mut interval = self.unnamed_interval()?;
        self.settle(SETTLE_INTERVAL);
        self.name(interval.as_mut());
        Ok(interval)
    }

    /// Names the functions of programs in an interval.
    fn name(&self, interval: Option<&mut Interval>) {
        if let Some(interval) = interval {
            interval.delta.name_programs(&*self.programs);
        }
    }

    /// See [`Source::interval()`], with functions of programs as places.
    fn unnamed_interval(&mut self) -> Result<Option<Interval>, Box<dyn std::error::Error + Send + Sync>> {
        self.named = None;
        let Some(intervals) = &mut self.intervals else {
            return self.difference().map(Some);
        };
        let mut cut = intervals.read()?;
        let histograms = cut.histograms.iter_mut();
        let histograms = histograms.map(|(event, histograms)| (event.as_str(), std::mem::take(histograms)));
        let table = self.plan.answer.combine(histograms.collect())?.table;
        // All but the rows is little, and some of it is only known of the whole run: ends without a
        // start in any of several histograms.
        let mut now = self.plan.answer.combine(intervals.sums_without_rows())?;
        now = self.complete(now);
        now.table.time = cut.to.clone();
        let mut interval = now.since(std::mem::replace(&mut self.total, now.clone()));
        self.is_bare = true;
        (interval.from, interval.to, interval.notes) = (cut.from, cut.to, cut.notes);
        (interval.delta.keys, interval.delta.values) = (table.keys, table.values);
        interval.delta.rows = table.rows;
        Ok(Some(interval))
    }

    /// Ends the last interval. If the kernel cuts the intervals, keeps all further hits out of the
    /// histograms before, and compares the sum of all intervals with the totals: a note tells if
    /// they differ, or could not be compared.
    ///
    /// # Errors
    ///
    /// As for [`Run::reading()`].
    pub fn last(&mut self) -> Result<Option<Interval>, Box<dyn std::error::Error + Send + Sync>> {
        self.read_samples();
        let held = self.intervals.as_ref().map(|_| self.hold());
        let mut interval = self.unnamed_interval()?;
        // Names may take a while, in which no hit is to count.
        self.settle(SETTLE);
        self.name(interval.as_mut());
        let Some(held) = held else {
            return Ok(interval);
        };
        Ok(interval.map(|mut interval| {
            let compared = held.and_then(|()| self.compare());
            interval.notes.extend(match compared {
                Ok(None) => None,
                Ok(Some(difference)) => Some(format!(
                    "warning: the sum of the intervals is not the total: {difference}"
                )),
                Err(why) => Some(format!(
                    "the sum of the intervals was not compared with the total: {why}"
                )),
            });
            interval
        }))
    }

    /// Keeps all further hits out of the histograms.
    fn hold(&self) -> Result<(), String> {
        let instance = self.instance();
        let write = |file, tasks: &str| instance.write(file, tasks).map_err(|why| why.to_string());
        if self.plan.processes.is_empty() {
            return write(TASKS, NO_TASK);
        }
        // A list can only be extended, or emptied, which lets all hits in: so the tasks are also
        // listed as ones that do not count. What these start later is then in both lists.
        let read = |file| {
            let text = fs::read_to_string(instance.dir().join(file)).map_err(|why| why.to_string())?;
            let tasks = text.lines().filter_map(|line| line.parse::<i32>().ok());
            Ok::<BTreeSet<_>, String>(tasks.collect())
        };
        for _ in 0..ATTEMPTS {
            let held = read(NO_TASKS)?;
            let later = &read(TASKS)? - &held;
            if later.is_empty() {
                return Ok(());
            }
            write(NO_TASKS, &task_list(&later))?;
        }
        Err("its processes start others too fast".to_owned())
    }

    /// See [`Intervals::compare()`].
    fn compare(&self) -> Result<Option<String>, String> {
        let compared = self
            .intervals
            .as_ref()
            .map(|intervals| intervals.compare(&self.instance()));
        compared.transpose().map(Option::flatten).map_err(|why| why.to_string())
    }

    /// Removes everything that the run has created.
    ///
    /// # Errors
    ///
    /// An object could not be removed. The journal stays, so that the next rhist tries again.
    pub fn stop(mut self) -> io::Result<()> {
        self.undo()
    }

    /// Leaves everything in the kernel, for `rhist clean`.
    pub fn keep(mut self) -> io::Result<()> {
        self.journal.take().map_or(Ok(()), Journal::keep)
    }

    fn undo(&mut self) -> io::Result<()> {
        // The kernel removes no instance with an open file.
        self.intervals = None;
        let Some(journal) = self.journal.take() else {
            return Ok(());
        };
        undo(&self.tracefs, &self.plan.id, &self.plan.steps[..self.made])?;
        journal.remove()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // After a failure, the journal still lists the objects.
        let _ = self.undo();
    }
}

impl Source for Run {
    fn question(&self) -> &Question {
        &self.plan.question
    }

    /// # Errors
    ///
    /// As for [`Run::reading()`].
    fn interval(&mut self) -> Result<Option<Interval>, Box<dyn std::error::Error + Send + Sync>> {
        self.read_samples();
        self.next_interval()
    }

    fn ask(&mut self) {
        if let Some(intervals) = &mut self.intervals {
            // An error comes again in Self::interval().
            let _ = intervals.ask();
        }
    }

    fn release(&mut self) {
        self.resuming = None;
        // Now with the rows.
        let _ = self.total();
        let Some(intervals) = self.intervals.take() else { return };
        self.plan.question.has_exact_intervals = false;
        // After a clear, the kernel's totals are less than the sums.
        let totals = intervals.since_clear().map(|totals| self.plan.answer.combine(totals));
        if let Some(Ok(totals)) = totals {
            let all = std::mem::replace(&mut self.total, totals);
            self.named = None;
            self.unresolved = self.total.table.losses.unresolved.unwrap_or(0);
            self.total.table.losses.missed_hits = all.table.losses.missed_hits;
            (self.total.table.time, self.total.cost) = (all.table.time, all.cost);
        }
    }

    fn resume(&mut self) {
        self.resuming = self.intervals.is_none().then_some(ATTEMPTS);
    }

    fn total(&mut self) -> &Reading {
        if let (true, Some(intervals)) = (self.is_bare, &self.intervals)
            && let Ok(all) = self.plan.answer.combine(intervals.sums())
        {
            self.total.table.rows = all.table.rows;
            self.is_bare = false;
        }
        if !self.plan.has_programs() {
            return &self.total;
        }
        let (total, programs) = (&self.total, &*self.programs);
        self.named.get_or_insert_with(|| {
            let mut named = total.clone();
            named.table.name_programs(programs);
            named
        })
    }
}

/// Hits of all triggers of a run so far, and hits rejected by their filters: see
/// [`Reading::events`] and [`Reading::rejected`]. The run may belong to another process. `None` if
/// they cannot be read.
pub fn events(tracefs: &Tracefs, entries: &Entries) -> Option<(u64, Option<u64>)> {
    let instance = tracefs.instance(&entries.id.instance());
    // rhist's triggers are in its own directory, C's in the kernel's.
    [instance.clone(), instance.with_c()].iter().find_map(|instance| {
        let mut events: Vec<&String> = entries
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Trigger { event, .. } => Some(event),
                _ => None,
            })
            .collect();
        events.sort();
        events.dedup();
        let mut hits = 0u64;
        let mut rejected = None;
        for event in events {
            for histogram in hist_file::read(instance, event).ok()? {
                hits += histogram.hits;
                rejected = fold::sum(rejected, histogram.rejected);
            }
        }
        (hits > 0 || rejected > Some(0)).then_some((hits, rejected))
    })
}

/// Undoes runs whose processes have ended; with `also_kept`, also runs that were left on request.
pub fn reap(tracefs: &Tracefs, journals: &Journals, also_kept: bool) -> (Vec<Entries>, Vec<(Entries, io::Error)>) {
    journals.reap(also_kept, |entries| undo(tracefs, &entries.id, &entries.steps))
}

/// Undoes all runs of this process, when their owner cannot. With `keep`, leaves the first one if
/// it has begun.
pub fn abandon(tracefs: &Tracefs, journals: &Journals, keep: bool) {
    if let Ok(first) = Id::of_this_process() {
        journals.abandon(&first, keep, |entries| {
            let is_under_way = !has_last(tracefs, entries);
            undo(tracefs, &entries.id, &entries.steps)?;
            match is_under_way {
                // Keeps the journal: the next rhist undoes a step that completes later.
                true => Err(io::Error::from(io::ErrorKind::ResourceBusy)),
                false => Ok(()),
            }
        });
    }
}

/// Returns whether the last object in a journal exists. If not, the kernel may be about to create
/// it.
fn has_last(tracefs: &Tracefs, entries: &Entries) -> bool {
    match entries.steps.last() {
        None => tracefs.instance(&entries.id.instance()).kernel().exists(),
        // An instance cannot be removed while a write to it is in progress.
        Some(Step::Trigger { .. }) => true,
        Some(step) => exists(tracefs, step),
    }
}

/// Undoes steps: first the triggers, then the others, each in reverse order. Missing objects count
/// as undone, unless tracefs itself is missing: it may be mounted again, with all objects.
fn undo(tracefs: &Tracefs, id: &Id, steps: &[Step]) -> io::Result<()> {
    // The run that finds a journal may have C's histograms, and the module may have been loaded or
    // unloaded since.
    let tracefs = &Tracefs::at(tracefs.kernel().to_owned())?;
    let instance = tracefs.instance(&id.instance());
    let (triggers, others): (Vec<_>, Vec<_>) = steps
        .iter()
        .rev()
        .partition(|step| matches!(step, Step::Trigger { .. }));
    let dirs = [instance.clone(), instance.clone().with_c()];
    patiently(|| {
        for step in &triggers {
            let (_, file) = step.file();
            for dir in &dirs {
                // Tells nothing: the removal of a trigger of the other directory succeeds, too.
                let _ = dir.write(&file, &step.undo());
            }
        }
        is_gone(fs::remove_dir(instance.kernel()))
    })
    .map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => io::Error::new(error.kind(), IN_USE),
        _ => error,
    })?;
    for step in others {
        let (_, file) = step.file();
        if let Step::Frequency { hertz, before } = step {
            undo_frequency(tracefs, hertz, before)?;
            continue;
        }
        patiently(|| match tracefs.write(&file, &step.undo()) {
            Err(error) if exists(tracefs, step) => Err(error.error),
            _ => Ok(()),
        })?;
    }
    Ok(())
}

/// Sets the old frequency of samples again, unless somebody else has changed it since, or the
/// module is gone. While another program takes samples, it is left to that program: a run of rhist
/// has the number before in its own journal.
fn undo_frequency(tracefs: &Tracefs, hertz: &str, before: &str) -> io::Result<()> {
    if samples::frequency(tracefs).is_none_or(|present| present != hertz) {
        return Ok(());
    }
    match tracefs.write(samples::FREQUENCY, before) {
        Err(why) if why.error.kind() != io::ErrorKind::ResourceBusy => Err(why.error),
        _ => Ok(()),
    }
}

/// Returns whether a probe or synthetic event exists.
fn exists(tracefs: &Tracefs, step: &Step) -> bool {
    let folder = match step {
        Step::Probe { name, .. } => name.clone(),
        Step::Synthetic { name, .. } => format!("synthetic/{name}"),
        Step::Trigger { event, .. } => event.clone(),
        Step::Frequency { .. } => return true,
    };
    Path::new(tracefs.kernel()).join("events").join(folder).exists()
}

fn is_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Accepts the result of a write to a file that may be missing: without it, triggers count as soon
/// as they are created.
fn if_there(result: Result<(), WriteError>) -> Result<(), StartError> {
    match result {
        Err(why) if why.error.kind() != io::ErrorKind::NotFound => Err(StartError::Step(why)),
        _ => Ok(()),
    }
}

/// Retries while something is busy.
fn patiently(mut attempt: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && start.elapsed() < PATIENCE => {
                sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intervals::tests::Kernel;
    use crate::intervals::tests::Part;
    use crate::plan::Answer;
    use crate::plan::Options;
    use crate::plan::hist_jsonl;
    use crate::recipe::Count;
    use crate::recipe::Measure;
    use crate::table::Value;
    use crate::tracefs::fixture;

    #[test]
    fn what_the_kernel_lacks() {
        let refused = |file: &str, text: &str, log: Option<(&str, &str, usize)>| WriteError {
            path: file.into(),
            text: text.to_owned(),
            error: io::ErrorKind::InvalidInput.into(),
            log: log.map(|(sentence, command, position)| LogEntry {
                sentence: sentence.to_owned(),
                command: command.to_owned(),
                position,
            }),
        };
        let lack = |file: &str, text: &str, log| Lack::of(&refused(file, text, log));
        let probe = lack("/t/dynamic_events", "p:g/x do_it", None).unwrap();
        assert!(probe.note(Instead::LessExact, "x").is_some() && probe.note(Instead::ById, "x").is_none());
        let filter = "function.function == do_it";
        let function = lack("/t/trigger", filter, Some(("Function not found", filter, 21)));
        assert_eq!(function, Some(Lack::Function("do_it".to_owned())));
        // Fallbacks do not apply to faults in a user's own text.
        let own = "hist:keys=rq:ts0=common_timestamp:pause if dev == 5";
        assert_eq!(lack("/t/trigger", own, Some(("Field not found", "dev == 5", 4))), None);
        let names = lack("/t/trigger", "hist:keys=common_comm:pause", None).unwrap();
        assert!(names.note(Instead::ById, "x").is_some() && names.note(Instead::LessExact, "x").is_none());
    }

    /// A request that the kernel delays may complete after its run has ended.
    #[test]
    fn what_may_come_later_stays_in_the_journal() {
        let root = tempfile::tempdir().unwrap();
        let id = Id::of_this_process().unwrap();
        fs::create_dir(root.path().join("events")).unwrap();
        let tracefs = Tracefs::at(root.path().to_owned()).unwrap();
        let journals = Journals::at(root.path().join("run"));
        let instance = root.path().join("instances").join(id.instance());
        for is_made in [false, true] {
            let journal = journals.create(&id, "x").unwrap();
            if is_made {
                fs::create_dir_all(&instance).unwrap();
            }
            abandon(&tracefs, &journals, false);
            assert_eq!(journals.list().len(), usize::from(!is_made));
            assert!(!instance.exists());
            drop(journal);
            reap(&tracefs, &journals, false);
            assert!(journals.list().is_empty());
        }
    }

    #[test]
    fn an_instance_of_somebody_else_stays() {
        let (dir, tracefs) = fixture::tracefs(false);
        let path = |name: &str| dir.path().join(name);
        let measure = Measure {
            count: vec![Count {
                event: "sched:sched_switch".to_owned(),
                ..Count::default()
            }],
            ..Measure::default()
        };
        let id = Id::parse("1_2").unwrap();
        fs::create_dir_all(path("instances/rhist-1_2")).unwrap();
        let plan = Plan::new(&tracefs, id, &measure, &Options::default(), Question::default()).unwrap();
        let journals = Journals::at(path("run"));
        let error = Run::start(tracefs, &journals, plan, "x", Wanted::Totals).unwrap_err();
        assert!(matches!(error, StartError::Instance(_)), "{error}");
        assert!(path("instances/rhist-1_2").exists());
        assert!(journals.list().is_empty());
    }

    #[test]
    fn what_was_made_stays_in_the_journal_while_tracefs_is_away() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir_all(path("tracing/events")).unwrap();
        fs::create_dir_all(path("tracing/instances")).unwrap();
        let tracefs = Tracefs::at(path("tracing")).unwrap();
        let id = Id::parse("1_2").unwrap();
        let plan = Plan::of_triggers(&tracefs, id, &[], Question::default()).unwrap();
        let journals = Journals::at(path("run"));
        let run = Run::start(tracefs.clone(), &journals, plan, "x", Wanted::Totals).unwrap();
        let instance = run.instance();
        fs::rename(path("tracing"), path("away")).unwrap();
        assert_eq!(run.stop().unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(reap(&tracefs, &journals, false).1.len(), 1);
        fs::rename(path("away"), path("tracing")).unwrap();
        assert!(instance.dir().exists());
        assert_eq!(reap(&tracefs, &journals, false).0.len(), 1);
        assert!(!instance.dir().exists() && journals.list().is_empty());
    }

    #[test]
    fn losses_never_become_less() {
        let (dir, tracefs) = fixture::tracefs(true);
        let path = |name: &str| dir.path().join(name);
        let point = |event: &str, on: &str| crate::recipe::Point {
            event: event.to_owned(),
            on: vec![on.to_owned()],
            ..Default::default()
        };
        let measure = Measure {
            start: vec![
                point("sched:sched_waking", "pid"),
                point("sched:sched_switch", "prev_pid"),
            ],
            end: vec![point("sched:sched_switch", "next_pid")],
            ..Measure::default()
        };
        let id = Id::parse("1_2").unwrap();
        let plan = Plan::new(&tracefs, id, &measure, &Options::default(), Question::default()).unwrap();
        let mut run = Run::of_others(tracefs, plan);
        let missed = std::cell::Cell::new(None);
        let mut unresolved = |first: (u64, u64), second: (u64, u64)| {
            let ends = [(1, 0), first, second];
            for (event, triggers) in [("sched_waking", &[(1, 0)][..]), ("sched_switch", &ends)] {
                let folder = path(&format!("instances/rhist-1_2/events/sched/{event}"));
                fs::create_dir_all(&folder).unwrap();
                let triggers: Vec<_> = triggers.iter().map(|(hits, none)| (*hits, 0, *none)).collect();
                fs::write(folder.join("hist_jsonl"), hist_jsonl(&triggers)).unwrap();
            }
            fs::write(
                path("hist_stats"),
                format!("sched:sched_switch  probe, {} lost\n", first.0),
            )
            .unwrap();
            let losses = run.reading().unwrap().table.losses;
            missed.set(losses.missed_hits);
            losses.unresolved
        };
        assert_eq!(unresolved((4, 6), (3, 7)), Some(3));
        // Seven more hits after the read of the first trigger.
        assert_eq!(unresolved((4, 6), (10, 7)), Some(3));
        assert_eq!(unresolved((4, 17), (10, 11)), Some(7));
        // The number of missed hits does not fall, even if the kernel reports a lower one for a
        // while.
        assert_eq!(unresolved((3, 18), (10, 11)), Some(8));
        assert_eq!(missed.get(), Some(4));
    }

    /// A run of the event a/b, whose file of intervals is a pipe.
    fn run_of(kernel: &Kernel) -> Run {
        let answer = Answer::of_one("a/b");
        let plan = Plan::of_triggers(&kernel.tracefs(), Id::example(), &[], Question::default()).unwrap();
        let mut run = Run::of_others(kernel.tracefs(), Plan { answer, ..plan });
        run.intervals = Some(kernel.intervals());
        run
    }

    #[test]
    fn intervals_are_exact_and_their_sum_is_the_total() {
        let kernel = Kernel::new();
        let mut run = run_of(&kernel);
        let part = |rows: &[(u32, u64, u64, u64, u64)], run: &mut Run| {
            let part = Part {
                rows,
                ..Part::default()
            };
            kernel.round(&[part], || run.interval().unwrap().unwrap())
        };
        let number = |value: &Value| match value {
            Value::Number(number) => *number,
            other => panic!("{other:?}"),
        };
        let maxima = |table: &Table| -> Vec<_> {
            let rows = table.rows.iter();
            rows.map(|row| (row.keys[0].to_string(), row.hits, number(&row.values[1])))
                .collect()
        };
        let of = |rows: &[(&str, u64, i128)]| -> Vec<_> {
            rows.iter()
                .map(|(key, hits, max)| ((*key).to_owned(), *hits, *max))
                .collect()
        };
        let first = part(&[(7, 100, 2, 30, 20), (8, 100, 1, 5, 5)], &mut run);
        assert_eq!(maxima(&first.delta), of(&[("7", 2, 20), ("8", 1, 5)]));
        assert_eq!((first.events, first.seconds(), first.fill.entries), (3, 1.0, 2));
        // The maximum of the interval is known, although it is none of the run. A row without hits
        // is left out, and stays in the total.
        let second = part(&[(7, 100, 3, 9, 4)], &mut run);
        assert_eq!(maxima(&second.delta), of(&[("7", 3, 4)]));
        assert_eq!((second.events, second.fill.entries), (3, 2));
        assert_eq!(maxima(&run.total().table), of(&[("7", 5, 20), ("8", 1, 5)]));
        assert_eq!(run.total().events, 6);
        // Nothing happens.
        let third = part(&[], &mut run);
        assert_eq!((third.delta.rows.len(), third.events), (0, 0));
        assert_eq!(third.delta.values.len(), 2);
        assert_eq!(maxima(&run.total().table), of(&[("7", 5, 20), ("8", 1, 5)]));
    }

    /// For example, if the kernel lacks memory for a reader.
    #[test]
    fn a_run_without_its_intervals_has_differences() {
        let kernel = Kernel::new();
        let mut run = run_of(&kernel);
        kernel.round(&[Part::default()], || run.begin().unwrap());
        assert!(run.question().has_exact_intervals && run.question().notes.is_empty());
        let mut run = run_of(&kernel);
        kernel.round_of_text("no histogram\n", || run.begin().unwrap());
        assert!(!run.question().has_exact_intervals);
        let notes = &run.question().notes;
        assert!(
            notes[0].contains("refuses to cut intervals") && notes[0].contains("line 1"),
            "{notes:?}"
        );
        kernel.totals(&[Part {
            rows: &[(7, 100, 2, 30, 20)],
            ..Part::default()
        }]);
        assert_eq!(run.interval().unwrap().unwrap().events, 2);
    }

    /// A histogram with one row: its begin in seconds of boot time, hits, sum, and maximum.
    fn row(begin: u64, hits: u64, sum: u64, max: u64) -> [(u32, u64, u64, u64, u64); 1] {
        [(7, begin, hits, sum, max)]
    }

    /// Hits, sum, events and notes of the next interval, of a histogram with one row.
    fn next(run: &mut Run) -> (u64, i128, u64, Vec<String>) {
        let interval = run.interval().unwrap().unwrap();
        let mut numbers = (0, 0, interval.events, interval.notes);
        for row in interval.delta.rows {
            let Value::Number(sum) = row.values[0] else {
                panic!("{row:?}")
            };
            (numbers.0, numbers.1) = (row.hits, sum);
        }
        numbers
    }

    #[test]
    fn nothing_is_lost_or_counted_twice_between_intervals_and_differences() {
        let kernel = Kernel::new();
        let mut run = run_of(&kernel);
        let part = |rows: &[(u32, u64, u64, u64, u64)], run: &mut Run| {
            let part = Part {
                rows,
                ..Part::default()
            };
            kernel.round(&[part], || next(run))
        };
        let total = |rows: &[(u32, u64, u64, u64, u64)], run: &mut Run| {
            kernel.totals(&[Part {
                rows,
                ..Part::default()
            }]);
            next(run)
        };
        assert_eq!(part(&row(100, 2, 30, 20), &mut run), (2, 30, 2, vec![]));
        assert_eq!(part(&row(100, 3, 9, 4), &mut run), (3, 9, 3, vec![]));
        run.release();
        assert!(run.intervals.is_none() && !run.question().has_exact_intervals);
        // One hit since the last interval, and two more.
        assert_eq!(total(&row(100, 6, 46, 20), &mut run), (1, 7, 1, vec![]));
        assert_eq!(total(&row(100, 8, 50, 20), &mut run), (2, 4, 2, vec![]));
        run.resume();
        assert_eq!(total(&row(100, 9, 51, 20), &mut run), (1, 1, 1, vec![]));
        assert!(run.intervals.is_some() && run.question().has_exact_intervals);
        assert_eq!(part(&row(100, 4, 10, 5), &mut run), (4, 10, 4, vec![]));
        assert_eq!((run.total().events, run.total().table.rows[0].hits), (13, 13));
        run.release();
        // Two hits came before the files were opened, and one since the last interval.
        assert_eq!(total(&row(100, 16, 64, 20), &mut run), (3, 3, 3, vec![]));
    }

    #[test]
    fn differences_go_on_after_a_clear_between_intervals() {
        let kernel = Kernel::new();
        let mut run = run_of(&kernel);
        let part = |rows, ended| Part {
            rows,
            ended,
            ..Part::default()
        };
        let rows = row(100, 9, 90, 20);
        kernel.round(&[part(&rows, "null")], || next(&mut run));
        let (old, new) = (row(100, 1, 1, 1), row(101, 2, 4, 2));
        let both = [part(&old, "\"cleared\""), part(&new, "null")];
        assert_eq!(kernel.round(&both, || next(&mut run)).0, 3);
        let rows = row(101, 1, 2, 2);
        assert_eq!(kernel.round(&[part(&rows, "null")], || next(&mut run)).0, 1);
        assert_eq!(run.total().events, 13);
        run.release();
        kernel.totals(&[part(&row(101, 5, 16, 9), "null")]);
        assert_eq!(next(&mut run), (2, 10, 2, vec![]));
    }

    #[test]
    fn a_kernel_without_intervals_keeps_differences() {
        let kernel = Kernel::new();
        let mut run = run_of(&kernel);
        run.release();
        kernel.remove();
        run.resume();
        kernel.totals(&[Part {
            rows: &row(100, 2, 30, 20),
            ..Part::default()
        }]);
        assert_eq!(next(&mut run), (2, 30, 2, vec![]));
        assert_eq!(next(&mut run), (0, 0, 0, vec![]));
        assert!(run.intervals.is_none());
    }

    /// Only a bug of the kernel makes this difference.
    #[test]
    fn the_last_interval_tells_if_the_sum_of_all_is_not_the_total() {
        let kernel = Kernel::new();
        let last = |total: &[(u32, u64, u64, u64, u64)]| {
            let mut run = run_of(&kernel);
            let part = |rows| Part {
                rows,
                ..Part::default()
            };
            let parts = [row(100, 2, 30, 20), row(100, 3, 9, 4)];
            kernel.round(&[part(&parts[0])], || next(&mut run));
            kernel.totals(&[part(total)]);
            let last = kernel.round(&[part(&parts[1])], || run.last().unwrap().unwrap());
            assert_eq!((last.events, run.total().events), (3, 5));
            last.notes
        };
        // Without a file to keep hits out, the totals may have more of them.
        let notes = last(&row(100, 5, 39, 20));
        assert!(
            notes.len() == 1 && notes[0].contains("was not compared") && notes[0].contains(TASKS),
            "{notes:?}"
        );
        let tasks = kernel.tracefs().dir().join(TASKS);
        fs::write(&tasks, "").unwrap();
        assert!(last(&row(100, 5, 39, 20)).is_empty());
        assert_eq!(fs::read_to_string(&tasks).unwrap().trim_end(), NO_TASK);
        assert_eq!(
            last(&row(100, 6, 39, 20)),
            [
                "warning: the sum of the intervals is not the total: a/b: hits: the intervals add up to 5, the histogram has 6"
            ]
        );
    }

    /// Their sum is the total.
    #[test]
    fn the_last_difference_is_not_compared() {
        let kernel = Kernel::new();
        let mut run = run_of(&kernel);
        run.intervals = None;
        kernel.totals(&[Part {
            rows: &row(100, 2, 30, 20),
            ..Part::default()
        }]);
        let last = run.last().unwrap().unwrap();
        assert_eq!((last.events, last.notes.len()), (2, 0));
    }

    #[test]
    fn differences_tell_that_somebody_cleared_a_histogram() {
        let kernel = Kernel::new();
        let mut run = run_of(&kernel);
        run.intervals = None;
        let mut read = |hits| {
            let rows = [(7, 100, hits, hits, 1)];
            kernel.totals(&[Part {
                rows: &rows,
                ..Part::default()
            }]);
            let interval = run.interval().unwrap().unwrap();
            (interval.events, interval.notes.len())
        };
        assert_eq!([read(5), read(7), read(3), read(4)], [(5, 0), (2, 0), (0, 1), (1, 0)]);
    }
}
