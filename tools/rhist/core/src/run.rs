// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs of a plan: the triggers exist in the kernel as long as the [`Run`].

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use crate::hist_file;
use crate::journal::Entries;
use crate::journal::Journal;
use crate::journal::Journals;
use crate::missed;
use crate::plan::Id;
use crate::plan::Instead;
use crate::plan::NO_TASK;
use crate::plan::Plan;
use crate::plan::Plans;
use crate::plan::Step;
use crate::plan::TASKS;
use crate::question::Cost;
use crate::question::Question;
use crate::question::Reading;
use crate::question::Source;
use crate::table::Table;
use crate::table::Time;
use crate::table::fold;
use crate::tracefs::Tracefs;
use crate::tracefs::WriteError;
use crate::tracefs::error_log::LogEntry;

/// Limit for retries of a removal while something is busy: readers in other processes, or running
/// hits.
const PATIENCE: Duration = Duration::from_secs(2);

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
}

/// Reason why a run did not start.
#[derive(Debug)]
pub enum StartError {
    /// The journal could not be written.
    Journal(io::Error),
    /// The instance could not be created.
    Instance(io::Error),
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

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Journal(error) => {
                write!(f, "cannot write the journal, so nothing was started: {error}")
            }
            StartError::Instance(error) => write!(f, "cannot make an instance: {error}"),
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
    ) -> Result<Self, StartError> {
        let start = |plan| Self::start(tracefs.clone(), journals, plan, command);
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
    pub fn start(tracefs: Tracefs, journals: &Journals, plan: Plan, command: &str) -> Result<Self, StartError> {
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
        };
        match run.make() {
            Ok(()) => Ok(run),
            // Dropping `run` undoes the completed steps.
            Err(error) => Err(error),
        }
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
            if let Some(journal) = &mut self.journal {
                journal.note(step).map_err(StartError::Journal)?;
            }
            let (in_instance, file) = step.file();
            let dir = if in_instance { &instance } else { &self.tracefs };
            // Kernels before 6.14 limit the number of concurrent calls that an fprobe can track.
            let roomy = step.with_room().is_some_and(|text| dir.write(&file, &text).is_ok());
            if !roomy {
                dir.write(file, step.text()).map_err(StartError::Step)?;
            }
            self.made += 1;
        }
        Ok(())
    }

    /// Makes all triggers count at once: the measurement begins here. It excludes the creation of
    /// the triggers. No start is matched with a later end because the trigger for its own end did
    /// not exist yet.
    pub fn begin(&mut self) -> Result<(), StartError> {
        self.begin = Time::now();
        self.missed_before = missed::read(&self.tracefs, &self.plan);
        self.plan
            .question
            .notes
            .extend(missed::disabled(&self.plan).map(str::to_owned));
        let instance = self.instance();
        if_there(instance.truncate(TASKS))?;
        if let Some(journal) = &mut self.journal {
            // If this fails, `--keep` does not work when the process is terminated.
            let _ = journal.note_begun();
        }
        Ok(())
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
        let mut reading = self.plan.answer.read(&self.instance())?;
        let missed = missed::read(&self.tracefs, &self.plan).zip(self.missed_before);
        // Never falls, even while the kernel's files cannot be matched.
        self.missed = self.missed.max(missed.map(|(now, before)| now.saturating_sub(before)));
        reading.table.losses.missed_hits = self.missed;
        if let Some(unresolved) = &mut reading.table.losses.unresolved {
            self.unresolved = self.unresolved.max(*unresolved);
            *unresolved = self.unresolved;
        }
        Ok(Reading {
            cost: self.cost,
            ..reading
        })
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

    fn read(&mut self) -> Result<Option<Reading>, Box<dyn std::error::Error + Send + Sync>> {
        self.reading().map(Some)
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
    fs::metadata(tracefs.kernel().join("events"))?;
    let instance = tracefs.instance(&id.instance());
    let (triggers, others): (Vec<_>, Vec<_>) = steps
        .iter()
        .rev()
        .partition(|step| matches!(step, Step::Trigger { .. }));
    // The module may have been loaded or unloaded since; the kernel's directory always exists.
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
        patiently(|| match tracefs.write(&file, &step.undo()) {
            Err(error) if exists(tracefs, step) => Err(error.error),
            _ => Ok(()),
        })?;
    }
    Ok(())
}

/// Returns whether a probe or synthetic event exists.
fn exists(tracefs: &Tracefs, step: &Step) -> bool {
    let folder = match step {
        Step::Probe { name, .. } => name.clone(),
        Step::Synthetic { name, .. } => format!("synthetic/{name}"),
        Step::Trigger { event, .. } => event.clone(),
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
    use crate::plan::Options;
    use crate::plan::hist_jsonl;
    use crate::recipe::Count;
    use crate::recipe::Measure;
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
        let error = Run::start(tracefs, &journals, plan, "x").unwrap_err();
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
        let run = Run::start(tracefs.clone(), &journals, plan, "x").unwrap();
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
}
