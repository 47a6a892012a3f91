// SPDX-License-Identifier: MIT OR Apache-2.0

//! A plan that is carried out: triggers that are in the kernel as long as this lives.

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

/// How long removal is tried again while something is busy: readers of other processes, or hits on their way.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why an instance cannot be removed.
const IN_USE: &str = "it is in use, as by a program that has one of its files open; the next rhist tries again";

/// A measurement that runs. Dropping it undoes all that it made.
#[derive(Debug)]
pub struct Run {
    tracefs: Tracefs,
    plan: Plan,
    /// `None` when all is undone, or kept.
    journal: Option<Journal>,
    /// How many of the plan's steps were made.
    made: usize,
    cost: Cost,
    /// Most ends without a start that a reading had: each tells at least how many there are.
    unresolved: u64,
    /// Hits of its events that were missed before it began, if that is known.
    missed_before: Option<u64>,
    /// And since then, as of the last reading that knows.
    missed: Option<u64>,
    /// When the first trigger was about to count.
    begin: Time,
}

/// Why a run did not start.
#[derive(Debug)]
pub enum StartError {
    /// Its journal could not be written.
    Journal(io::Error),
    /// Its instance could not be made.
    Instance(io::Error),
    /// The kernel refused a command.
    Step(WriteError),
}

/// What a kernel has not that a command needs.
#[derive(Debug, PartialEq, Eq)]
enum Lack {
    /// A probe.
    Probe(String),
    /// A function of its own, by the name that a filter has.
    Function(String),
    /// Names of tasks in histograms of C.
    Names,
}

impl Lack {
    /// The thing that a kernel lacks and has therefore refused a command. `None` if the command
    /// itself may be wrong, such as a filter that the user has written.
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

    /// The note of an answer that another plan has given, since the kernel lacks this. `None` if
    /// that plan is not to be taken then.
    fn note(&self, instead: Instead, name: &str) -> Option<String> {
        match (instead, self) {
            (Instead::ById, Lack::Names) => Some(
                "this kernel's histograms have no names of tasks: tasks are counted by their IDs, and shown by the first name of each"
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

/// Says why something is measured in another way than the best.
pub fn otherwise(why: &str, name: &str) -> String {
    format!("{why}, so this was measured in another way: see rhist {name} --help")
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Journal(error) => {
                write!(
                    f,
                    "no journal could be written, so nothing was started that could be left behind: {error}"
                )
            }
            StartError::Instance(error) => write!(f, "no instance could be made: {error}"),
            StartError::Step(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

impl Run {
    /// Carries out the first plan that the kernel takes, and counts nothing yet: see
    /// [`Self::begin()`].
    ///
    /// A plan that is less exact than one before it is only taken where the kernel lacks what that
    /// one needs, and says so in its answer. Of several refusals, the first is returned.
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
            // One that is measured otherwise may still be counted by names.
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

    /// Carries a plan out, without counting anything: see [`Self::begin()`]. What was made is
    /// undone if a step fails.
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
            // Dropped, it undoes what was made.
            Err(error) => Err(error),
        }
    }

    fn make(&mut self) -> Result<(), StartError> {
        let instance = self.instance();
        if let Err(error) = fs::create_dir(instance.dir()) {
            // Nothing was made; and if there is one with this name, it is somebody else's.
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
            // Kernels before 6.14 have few places to note which fprobes wait for a return.
            let roomy = step.with_room().is_some_and(|text| dir.write(&file, &text).is_ok());
            if !roomy {
                dir.write(file, step.text()).map_err(StartError::Step)?;
            }
            self.made += 1;
        }
        Ok(())
    }

    /// Lets its triggers count, all at one time: what is measured begins here. What it takes to
    /// make them is not in it, and no start is found by a later end since there was none for its
    /// own end yet.
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
            // If it cannot be noted, it is not kept when this process has to be ended.
            let _ = journal.note_begun();
        }
        Ok(())
    }

    /// One whose triggers somebody else has made.
    #[cfg(test)]
    pub(crate) fn of_others(tracefs: Tracefs, plan: Plan) -> Self {
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

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The tracing directory that it was started in.
    pub fn tracefs(&self) -> &Tracefs {
        &self.tracefs
    }

    /// The tracing directory of the run.
    pub fn instance(&self) -> Tracefs {
        self.tracefs.instance(&self.plan.id.instance())
    }

    /// What a hit costs, once it was measured.
    pub fn set_cost(&mut self, cost: Cost) {
        self.cost = cost;
        if let Some(journal) = &mut self.journal {
            // Only for people who look.
            let _ = journal.note_cost(cost);
        }
    }

    /// See [`Self::set_cost()`].
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// What there was to read before it began: nothing.
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

    /// Reads all of it.
    ///
    /// # Errors
    ///
    /// Those of the files, `NotFound` among them when the module was unloaded; or what is in a file is no histogram.
    pub fn reading(&mut self) -> Result<Reading, Box<dyn std::error::Error + Send + Sync>> {
        let mut reading = self.plan.answer.read(&self.instance())?;
        let missed = missed::read(&self.tracefs, &self.plan).zip(self.missed_before);
        // Never falls, even when the kernel's files cannot be matched for a while.
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

    /// Undoes all of it.
    ///
    /// # Errors
    ///
    /// What could not be removed. The journal stays, so that whoever comes next tries again.
    pub fn stop(mut self) -> io::Result<()> {
        self.undo()
    }

    /// Leaves all of it in the kernel, for `rhist clean`.
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
        // What cannot be removed has its journal still.
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

/// Hits of all triggers of a run until now, also of a run of another process, and those that their
/// filters have rejected: see [`Reading::events`] and [`Reading::rejected`]. `None` if they cannot
/// be read.
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

/// Undoes what runs have left whose process is gone.
pub fn reap(tracefs: &Tracefs, journals: &Journals, also_kept: bool) -> (Vec<Entries>, Vec<(Entries, io::Error)>) {
    journals.reap(also_kept, |entries| undo(tracefs, &entries.id, &entries.steps))
}

/// Undoes all runs of this process, when their owner cannot. With `keep` the first one is left, if
/// it has begun.
pub fn abandon(tracefs: &Tracefs, journals: &Journals, keep: bool) {
    if let Ok(first) = Id::of_this_process() {
        journals.abandon(&first, keep, |entries| {
            let is_under_way = !has_last(tracefs, entries);
            undo(tracefs, &entries.id, &entries.steps)?;
            match is_under_way {
                // The journal stays: the next one undoes what has come by then.
                true => Err(io::Error::from(io::ErrorKind::ResourceBusy)),
                false => Ok(()),
            }
        });
    }
}

/// Whether the last thing is there that a journal notes. If it is not, the kernel may be about to
/// make it.
fn has_last(tracefs: &Tracefs, entries: &Entries) -> bool {
    match entries.steps.last() {
        None => tracefs.instance(&entries.id.instance()).kernel().exists(),
        // Its instance cannot be removed as long as it is written.
        Some(Step::Trigger { .. }) => true,
        Some(step) => exists(tracefs, step),
    }
}

/// Undoes steps, the last one first. Whatever is not there any more is undone, unless tracefs itself is away: it may be
/// mounted again, with all that was made.
fn undo(tracefs: &Tracefs, id: &Id, steps: &[Step]) -> io::Result<()> {
    fs::metadata(tracefs.kernel().join("events"))?;
    let instance = tracefs.instance(&id.instance());
    let (triggers, others): (Vec<_>, Vec<_>) = steps
        .iter()
        .rev()
        .partition(|step| matches!(step, Step::Trigger { .. }));
    // The module may have been loaded or unloaded since: the directory of the kernel is always there.
    let dirs = [instance.clone(), instance.clone().with_c()];
    patiently(|| {
        for step in &triggers {
            let (_, file) = step.file();
            for dir in &dirs {
                // Refused if it is not there, or was not made by these files.
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

/// Whether a probe or synthetic event is there.
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

/// The result of writing a file, which need not exist: without it, triggers count as soon as they
/// are made.
fn if_there(result: Result<(), WriteError>) -> Result<(), StartError> {
    match result {
        Err(why) if why.error.kind() != io::ErrorKind::NotFound => Err(StartError::Step(why)),
        _ => Ok(()),
    }
}

/// Tries again while something is busy.
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
        // What somebody has written is wrong: nothing stands in for it.
        let own = "hist:keys=rq:ts0=common_timestamp:pause if dev == 5";
        assert_eq!(lack("/t/trigger", own, Some(("Field not found", "dev == 5", 4))), None);
        let names = lack("/t/trigger", "hist:keys=common_comm:pause", None).unwrap();
        assert!(names.note(Instead::ById, "x").is_some() && names.note(Instead::LessExact, "x").is_none());
    }

    /// The last request of a run that the kernel keeps waiting may be carried out when the run is
    /// gone.
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
        // Seven more hits while the first trigger had been read already.
        assert_eq!(unresolved((4, 6), (10, 7)), Some(3));
        assert_eq!(unresolved((4, 17), (10, 11)), Some(7));
        // The number of missed hits does not fall, even if the kernel gives a lower one for a
        // while.
        assert_eq!(unresolved((3, 18), (10, 11)), Some(8));
        assert_eq!(missed.get(), Some(4));
    }
}
