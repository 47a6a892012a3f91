// SPDX-License-Identifier: MIT OR Apache-2.0

//! Journals of runs: lists of everything a run has created in the kernel, so that it can be removed
//! however the run ends.
//!
//! A run has a file in `/run/rhist`, and writes a line before it creates each object. It holds a
//! lock (`flock(2)`) on the file for its whole life. A file without a lock means that the owner has
//! died: the process that finds it undoes the lines ([`Journals::reap()`]), and removes the file
//! last. A reaper can thus die at any point too, and another one repeats the work.
//!
//! The file appears under its name with the lock already held (`O_TMPFILE` and `linkat(2)`), so it
//! never looks like the file of a dead owner.

use std::fs;
use std::fs::File;
use std::io;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs::AtFlags;
use rustix::fs::CWD;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::lock::LockFile;
use crate::plan::Id;
use crate::plan::Step;
use crate::question::Cost;

/// Variable that names a folder instead of `/run/rhist`, for tests.
pub const DIR_VARIABLE: &str = "RHIST_RUN";

/// Limit for reading a journal, in bytes. A run has some dozens of lines.
const MAX_BYTES: u64 = 1 << 20;

/// Keywords of the lines with the cost of a hit, in nanoseconds.
const EVENT_COST: &str = "event_cost";
const REJECTED_COST: &str = "rejected_cost";

/// Characters of the command line that are kept, to show to people.
const COMMAND_CHARS: usize = 1000;

/// Journal of a run of this process. Holds the lock until it is dropped.
#[derive(Debug)]
pub struct Journal {
    file: LockFile,
    path: PathBuf,
}

/// Folder with the journals of all runs.
#[derive(Clone, Debug)]
pub struct Journals {
    dir: PathBuf,
}

/// Content of a journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Entries {
    /// The run.
    pub id: Id,
    /// Objects that the run has created, or was about to create.
    pub steps: Vec<Step>,
    /// Whether its triggers count. A run before this point has measured nothing.
    pub begun: bool,
    /// Whether the owner left the run in the kernel on request.
    pub kept: bool,
    /// Command line of the owner.
    pub command: String,
    /// Cost of a hit of its triggers.
    pub cost: Cost,
}

impl Journals {
    /// The folder of this machine, or the one named by [`DIR_VARIABLE`].
    pub fn find() -> Self {
        let dir = std::env::var_os(DIR_VARIABLE).filter(|dir| !dir.is_empty());
        Self::at(dir.map_or_else(|| PathBuf::from("/run/rhist"), PathBuf::from))
    }

    /// Uses the folder `dir`.
    pub fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Creates the journal of a run, locked.
    ///
    /// # Errors
    ///
    /// An error of the file system; then no journal exists.
    pub fn create(&self, id: &Id, command: &str) -> io::Result<Journal> {
        self.make(id, command)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.dir.display())))
    }

    fn make(&self, id: &Id, command: &str) -> io::Result<Journal> {
        match rustix::fs::mkdir(&self.dir, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let path = self.dir.join(format!("{id}.journal"));
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(&self.dir, flags, Mode::from_raw_mode(0o644))?);
        let mut file = LockFile::new(file);
        file.lock()?;
        let command: String = command.escape_default().take(COMMAND_CHARS).collect();
        write_line(&mut file, &format!("command {command}"))?;
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        rustix::fs::linkat(CWD, own, CWD, &path, AtFlags::SYMLINK_FOLLOW)?;
        Ok(Journal { file, path })
    }

    /// Reads all journals. The flag says whether the owner lives.
    pub fn list(&self) -> Vec<(Entries, bool)> {
        self.files()
            .into_iter()
            .filter_map(|(id, path)| Some((read(&id, &path).ok()?, is_held(&path))))
            .collect()
    }

    /// Undoes the runs of dead owners; with `also_kept`, also runs that their owners left on
    /// request. Calls `undo` for each journal, and removes the journal if that succeeds. Returns
    /// the runs that were undone, and the failures.
    pub fn reap<E>(
        &self,
        also_kept: bool,
        mut undo: impl FnMut(&Entries) -> Result<(), E>,
    ) -> (Vec<Entries>, Vec<(Entries, E)>) {
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for (id, path) in self.files() {
            let Ok(file) = fs::OpenOptions::new().read(true).write(true).open(&path) else {
                continue;
            };
            let file = LockFile::new(file);
            if file.lock().is_err() || !is_linked(&file, &path) {
                continue;
            }
            let Ok(entries) = read(&id, &path) else { continue };
            if entries.kept && !also_kept {
                continue;
            }
            match undo(&entries) {
                Ok(()) => {
                    let _ = fs::remove_file(&path);
                    done.push(entries);
                }
                Err(error) => failed.push((entries, error)),
            }
        }
        (done, failed)
    }

    /// Undoes all runs of this process, although it holds their locks itself: for use when their
    /// owner can no longer do it. With `keep`, leaves the run `first` in the kernel, as its owner
    /// would, provided that it has begun. A run that has not begun would never count.
    pub fn abandon<E>(&self, first: &Id, keep: bool, mut undo: impl FnMut(&Entries) -> Result<(), E>) {
        for (id, path) in self.files().into_iter().filter(|(id, _)| id.is_of(first)) {
            let Ok(entries) = read(&id, &path) else { continue };
            if keep && id == *first && entries.begun {
                // If the write fails, the next measurement removes the run.
                let file = fs::OpenOptions::new().append(true).open(&path);
                let _ = file.and_then(|mut file| write_line(&mut file, "kept"));
            } else if undo(&entries).is_ok() {
                let _ = fs::remove_file(&path);
            }
        }
    }

    fn files(&self) -> Vec<(Id, PathBuf)> {
        let Ok(entries) = fs::read_dir(&self.dir) else {
            return Vec::new();
        };
        let id = |path: &Path| Id::parse(path.file_name()?.to_str()?.strip_suffix(".journal")?);
        let mut files: Vec<_> = entries
            .flatten()
            // Regular files only: a FIFO could block the reader, and a link could point elsewhere.
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
            .map(|entry| entry.path())
            .filter_map(|path| Some((id(&path)?, path)))
            .collect();
        files.sort_by(|a, b| a.1.cmp(&b.1));
        files
    }
}

impl Journal {
    /// Records a step before it is done.
    ///
    /// # Errors
    ///
    /// An error of the file system; then the step must not be done.
    pub fn note(&mut self, step: &Step) -> io::Result<()> {
        let text = match step {
            Step::Probe { name, .. } => format!("probe {name}"),
            Step::Synthetic { name, .. } => format!("synthetic {name}"),
            Step::Trigger { event, command } => format!("trigger {event} {command}"),
            Step::Frequency { hertz, before } => format!("frequency {hertz} {before}"),
        };
        write_line(&mut self.file, &text)
    }

    /// Records the cost of a hit, for `rhist` in other terminals.
    pub fn note_cost(&mut self, cost: Cost) -> io::Result<()> {
        for (word, ns) in [(EVENT_COST, cost.event_ns), (REJECTED_COST, cost.rejected_ns)] {
            if let Some(ns) = ns {
                write_line(&mut self.file, &format!("{word} {ns}"))?;
            }
        }
        Ok(())
    }

    /// Records that the triggers count.
    pub fn note_begun(&mut self) -> io::Result<()> {
        write_line(&mut self.file, "begun")
    }

    /// Leaves all objects of the run in the kernel. `rhist clean` will find them.
    pub fn keep(mut self) -> io::Result<()> {
        write_line(&mut self.file, "kept")
    }

    /// Removes the journal after all objects are gone.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Appends a line. A line without a newline at its end was cut off, and readers ignore it.
fn write_line(file: &mut File, text: &str) -> io::Result<()> {
    let line = format!("{}\n", text.replace('\n', " "));
    // A single write: a full disk stores the whole line, or part of it and reports an error.
    let written = file.write(line.as_bytes())?;
    if written < line.len() {
        Err(io::ErrorKind::StorageFull.into())
    } else {
        Ok(())
    }
}

/// Returns whether the path still refers to this file. Another process may have reaped it before
/// this one got the lock.
fn is_linked(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(file), Ok(path)) => (file.dev(), file.ino()) == (path.dev(), path.ino()),
        _ => false,
    }
}

fn is_held(path: &Path) -> bool {
    match File::open(path) {
        Ok(file) => LockFile::new(file).lock_shared().is_err(),
        Err(_) => false,
    }
}

fn read(id: &Id, path: &Path) -> io::Result<Entries> {
    if fs::metadata(path)?.len() > MAX_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(parse(id, &String::from_utf8_lossy(&fs::read(path)?)))
}

fn nanoseconds(number: &str) -> Option<f64> {
    number.parse().ok().filter(|ns: &f64| ns.is_finite() && *ns >= 0.0)
}

/// Parses a journal without trusting it: steps are accepted only for names of this run.
fn parse(id: &Id, text: &str) -> Entries {
    let mut entries = Entries {
        id: id.clone(),
        steps: Vec::new(),
        begun: false,
        kept: false,
        command: String::new(),
        cost: Cost::default(),
    };
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "command" => entries.command = rest.chars().filter(|c| !c.is_control()).collect(),
            "begun" => entries.begun = true,
            "kept" => entries.kept = true,
            EVENT_COST => entries.cost.event_ns = nanoseconds(rest),
            REJECTED_COST => entries.cost.rejected_ns = nanoseconds(rest),
            "probe" if rest.starts_with(&format!("{}/", id.group())) => {
                entries.steps.push(Step::Probe {
                    name: rest.to_owned(),
                    definition: String::new(),
                });
            }
            "synthetic" if rest.starts_with(&id.synthetic("")) => {
                entries.steps.push(Step::Synthetic {
                    name: rest.to_owned(),
                    definition: String::new(),
                });
            }
            "frequency" => {
                let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                if let Some((hertz, before)) = rest.split_once(' ')
                    && is_number(hertz)
                    && is_number(before)
                {
                    entries.steps.push(Step::Frequency {
                        hertz: hertz.to_owned(),
                        before: before.to_owned(),
                    });
                }
            }
            "trigger" => {
                if let Some((event, command)) = rest.split_once(' ')
                    && !event.split('/').any(|part| part.is_empty() || part.starts_with('.'))
                {
                    entries.steps.push(Step::Trigger {
                        event: event.to_owned(),
                        command: command.to_owned(),
                    });
                }
            }
            _ => {}
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "123_456";

    fn steps() -> Vec<Step> {
        let trigger = |command: &str| Step::Trigger {
            event: "sched/sched_switch".to_owned(),
            command: command.to_owned(),
        };
        vec![
            Step::Probe {
                name: "rhist_123_456/probe0".to_owned(),
                definition: String::new(),
            },
            Step::Synthetic {
                name: "rhist_123_456_lat".to_owned(),
                definition: String::new(),
            },
            Step::Frequency {
                hertz: "499".to_owned(),
                before: "99".to_owned(),
            },
            trigger("hist:keys=pid if comm == \"a b\""),
        ]
    }

    fn id() -> Id {
        Id::parse(ID).unwrap()
    }

    fn journals() -> (tempfile::TempDir, Journals) {
        let dir = tempfile::tempdir().unwrap();
        let journals = Journals::at(dir.path().join("rhist"));
        (dir, journals)
    }

    fn reap(journals: &Journals, also_kept: bool) -> Vec<Entries> {
        journals.reap(also_kept, |_| Ok::<_, io::Error>(())).0
    }

    #[test]
    fn it_is_told_which_folder_takes_no_journal() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let journals = Journals::at(file.path().to_owned());
        let error = journals.create(&id(), "runqlat").unwrap_err().to_string();
        assert!(error.starts_with(file.path().to_str().unwrap()), "{error}");
    }

    #[test]
    fn a_live_owner_is_left_alone() {
        let (_dir, journals) = journals();
        let journal = journals.create(&id(), "runqlat").unwrap();
        assert!(reap(&journals, true).is_empty());
        assert_eq!(journals.list().len(), 1);
        assert!(journals.list()[0].1);
        journal.remove().unwrap();
        assert!(journals.list().is_empty());
    }

    #[test]
    fn a_dead_owner_is_reaped_once() {
        let (_dir, journals) = journals();
        let mut journal = journals.create(&id(), "runqlat -d 1").unwrap();
        for step in steps() {
            journal.note(&step).unwrap();
        }
        let cost = Cost {
            event_ns: Some(62.5),
            rejected_ns: Some(20.25),
        };
        journal.note_cost(cost).unwrap();
        journal.note_begun().unwrap();
        drop(journal);
        assert!(!journals.list()[0].1);
        let reaped = reap(&journals, false);
        assert_eq!(reaped.len(), 1);
        assert_eq!(
            reaped[0],
            Entries {
                id: id(),
                steps: steps(),
                begun: true,
                kept: false,
                command: "runqlat -d 1".to_owned(),
                cost
            }
        );
        assert!(reap(&journals, false).is_empty());
    }

    #[test]
    fn what_cannot_be_undone_stays() {
        let (_dir, journals) = journals();
        drop(journals.create(&id(), "x").unwrap());
        let (done, failed) = journals.reap(false, |_| Err(io::Error::other("busy")));
        assert_eq!((done.len(), failed.len()), (0, 1));
        assert_eq!(reap(&journals, false).len(), 1);
    }

    #[test]
    fn kept_is_for_clean_only() {
        let (_dir, journals) = journals();
        journals.create(&id(), "x").unwrap().keep().unwrap();
        assert!(reap(&journals, false).is_empty());
        assert_eq!(reap(&journals, true).len(), 1);
    }

    #[test]
    fn a_process_that_is_kept_waiting_leaves_nothing() {
        for (keep, begun) in [(false, true), (true, true), (true, false)] {
            let (_dir, journals) = journals();
            let ids = ["123_456", "123_4560", "123_456000007", "124_456"].map(|id| Id::parse(id).unwrap());
            let mut held: Vec<_> = ids.iter().map(|id| journals.create(id, "x").unwrap()).collect();
            if begun {
                held.iter_mut().for_each(|journal| journal.note_begun().unwrap());
            }
            // A run that has not begun would never count.
            let keeps = keep && begun;
            let mut undone = Vec::new();
            journals.abandon(&ids[0], keep, |entries| {
                undone.push(entries.id.clone());
                Ok::<_, io::Error>(())
            });
            assert_eq!(undone, ids[usize::from(keeps)..3]);
            // Journals of other processes stay.
            let left: Vec<_> = journals
                .list()
                .into_iter()
                .map(|(entries, _)| (entries.id, entries.kept))
                .collect();
            let expected = [(ids[0].clone(), true), (ids[3].clone(), false)];
            assert_eq!(left, expected[usize::from(!keeps)..]);
            drop(held);
        }
    }

    #[test]
    fn nothing_foreign_is_undone() {
        let text = "command x\nprobe kprobes/other\nsynthetic other\nsynthetic rhist_9_9_x\nprobe rhist_123_456x/a\n\
                    trigger ../../events/sched/sched_switch hist:keys=pid\ntrigger /etc/passwd x\nnonsense\n\
                    synthetic rhist_123_456_lat";
        // The last line lacks its newline, so its step was never done.
        assert!(parse(&id(), text).steps.is_empty());
    }

    #[test]
    fn what_others_have_put_there() {
        let (dir, journals) = journals();
        drop(journals.create(&id(), "x").unwrap());
        let dir = dir.path().join("rhist");
        rustix::fs::mknodat(CWD, dir.join("1_1.journal"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.join("1_2.journal")).unwrap();
        fs::create_dir(dir.join("1_3.journal")).unwrap();
        fs::write(dir.join("1_4.journal"), "command \u{1b}[2Jx\n").unwrap();
        let commands: Vec<_> = journals
            .list()
            .into_iter()
            .map(|(entries, _)| entries.command)
            .collect();
        assert_eq!(commands, ["x", "[2Jx"]);
        assert_eq!(reap(&journals, true).len(), 2);
    }

    #[test]
    fn a_long_command_line() {
        let (_dir, journals) = journals();
        drop(journals.create(&id(), &"\u{1f600}".repeat(1 << 20)).unwrap());
        assert_eq!(reap(&journals, false)[0].command.len(), COMMAND_CHARS);
    }

    #[test]
    fn names_that_are_not_ours_are_no_journals() {
        for name in ["", "a", "1_", "_1", "1_2_3", "1", "../1_2", "1_2 "] {
            assert_eq!(Id::parse(name), None, "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "(?s).{0,400}") {
            for step in parse(&id(), &text).steps {
                let (_, file) = step.file();
                proptest::prop_assert!(!file.split('/').any(|part| part == ".."));
            }
        }
    }
}
