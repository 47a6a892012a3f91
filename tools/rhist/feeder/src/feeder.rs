// SPDX-License-Identifier: MIT OR Apache-2.0

//! Watches the list of objects, and gives them rules.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;

use crate::compilation::Compilation;
use crate::compilation::Outcome;
use crate::compiler::VDSO;
use crate::folder::Folder;
use crate::list::Object;
use crate::names::Names;
use crate::news::News;
use crate::news::Summary;

/// Children that run at the same time.
const CHILDREN: usize = 2;

/// Killed children that have not ended, as their file system ignores that, until no more are
/// started.
const MOST_LEAVING: usize = 16;

/// The list is read at most once in this time, so that many changes cost little.
const PAUSE: Duration = Duration::from_millis(250);

/// The list is read this often while an object waits for a hit: the module holds its file for ten
/// seconds then, and may not say so.
const BEAT: Duration = Duration::from_secs(1);

/// How a feeder works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program that calls [`crate::compiler::main()`] if it is called by that name.
    pub program: PathBuf,
    /// Time in which a file has to be read and compiled.
    pub patience: Duration,
    /// Time after which a file that is not compiled yet makes way for others that wait. It is tried
    /// again when all others were tried, beside objects that come then.
    pub share: Duration,
    /// Where names of functions go; `None`: none are read.
    pub names: Option<Names>,
}

impl Default for Settings {
    /// With the program of this process.
    fn default() -> Self {
        Self {
            program: "/proc/self/exe".into(),
            patience: Duration::from_secs(30),
            share: Duration::from_secs(5),
            names: None,
        }
    }
}

/// The end of [`Feeder::run()`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Each object in the list has rules, or was tried.
    Tried,
    /// It is stopped.
    Stopped,
}

/// How far an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// In the queue, or with a running child.
    Begun,
    /// Its file was not held. Trying to open it has asked hits to hold it.
    Wanted,
    /// Given rules by this feeder.
    Fed,
    /// It has the rules of another one.
    Others,
    Failed,
}

/// An object with its child.
#[derive(Debug)]
struct Running {
    object: Object,
    child: Compilation,
    /// Whether the object has made way for others before. At most one of these runs.
    is_slow: bool,
}

/// Gives rules to objects.
#[derive(Debug)]
pub struct Feeder {
    folder: Folder,
    settings: Settings,
    /// All objects of the list for which rules can be made.
    objects: BTreeMap<u32, (Object, Progress)>,
    queue: VecDeque<u32>,
    /// Objects that have made way for others.
    slow: VecDeque<u32>,
    running: Vec<Running>,
    leaving: Vec<Compilation>,
    /// Rows and bytes of all rules that were given.
    given: (usize, usize),
}

impl Feeder {
    /// A feeder for the folder [`crate::FOLDER`] at this path.
    ///
    /// # Errors
    ///
    /// The list cannot be opened: `NotFound` if the module is not loaded, `PermissionDenied`.
    pub fn new(folder: &Path, settings: Settings) -> io::Result<Self> {
        Ok(Self {
            folder: Folder::open(folder)?,
            settings,
            objects: BTreeMap::new(),
            queue: VecDeque::new(),
            slow: VecDeque::new(),
            running: Vec::new(),
            leaving: Vec::new(),
            given: (0, 0),
        })
    }

    /// Gives rules to objects, until that or until `stop` is readable. Passes all that happens to
    /// `tell`. Children end with the thread that calls this.
    ///
    /// # Errors
    ///
    /// The list cannot be read any more, such as after the module was unloaded.
    pub fn run(&mut self, stop: BorrowedFd<'_>, until: Until, tell: &mut dyn FnMut(News<'_>)) -> io::Result<()> {
        let mut is_changed = true;
        let mut next_look = Instant::now();
        loop {
            let now = Instant::now();
            if is_changed && now >= next_look {
                self.look()?;
                is_changed = false;
                next_look = now + PAUSE;
            }
            self.start(tell);
            if self.is_idle() && until == Until::Tried {
                // Objects may have come meanwhile.
                self.look()?;
                self.start(tell);
                if self.is_idle() {
                    break;
                }
            }
            let list = (!is_changed).then(|| self.folder.as_fd());
            let Some(is_listed) = self.wait(stop, list, is_changed.then_some(next_look))? else {
                break;
            };
            is_changed |= is_listed;
            self.go_on(tell)?;
        }
        self.running.clear();
        Ok(())
    }

    /// Numbers of all objects in the list, and of all rules that were given.
    pub fn summary(&self) -> Summary {
        let count = |wanted| {
            self.objects
                .values()
                .filter(|(_, progress)| *progress == wanted)
                .count()
        };
        Summary {
            objects: self.objects.len(),
            fed: count(Progress::Fed),
            rows: self.given.0,
            bytes: self.given.1,
            others: count(Progress::Others),
            not_held: count(Progress::Wanted),
            failed: count(Progress::Failed),
        }
    }

    /// Whether nothing can be done now.
    fn is_idle(&self) -> bool {
        let is_done = self.queue.is_empty() && self.slow.is_empty();
        self.running.is_empty() && (is_done || self.leaving.len() >= MOST_LEAVING)
    }

    /// Reads the list: forgets objects that are gone, and queues objects that can be tried.
    fn look(&mut self) -> io::Result<()> {
        let listed: BTreeMap<u32, Object> = self
            .folder
            .objects()?
            .into_iter()
            .filter(Object::has_code)
            .map(|object| (object.number, object))
            .collect();
        let is_same = |object: &Object| {
            let now = listed.get(&object.number);
            // Rules are lost only with the whole table of objects, whose numbers begin anew then.
            now.is_some_and(|now| now.identity == object.identity && now.has_rules >= object.has_rules)
        };
        self.objects.retain(|_, (object, _)| is_same(object));
        for queue in [&mut self.queue, &mut self.slow] {
            queue.retain(|number| self.objects.contains_key(number));
        }
        for (number, object) in listed {
            let before = self.objects.get(&number).map(|(_, progress)| *progress);
            let progress = match before {
                None | Some(Progress::Wanted) if object.has_rules => Progress::Others,
                // A released one, too, so that hits are asked to hold it.
                None => Progress::Begun,
                Some(Progress::Wanted) if object.is_readable => Progress::Begun,
                Some(before) => before,
            };
            if progress == Progress::Begun && before != Some(Progress::Begun) {
                self.queue.push_back(number);
            }
            self.objects.insert(number, (object, progress));
        }
        Ok(())
    }

    /// Starts children for objects of the queue, while some may be started.
    fn start(&mut self, tell: &mut dyn FnMut(News<'_>)) {
        self.leaving.retain_mut(|child| !child.is_gone());
        while self.running.len() < CHILDREN && self.leaving.len() < MOST_LEAVING {
            let (number, is_slow) = match self.queue.pop_front() {
                None if self.running.iter().any(|running| running.is_slow) => break,
                None => (self.slow.pop_front(), true),
                number => (number, false),
            };
            let Some((object, _)) = number.and_then(|number| self.objects.get(&number)) else {
                break;
            };
            let object = object.clone();
            let image = match object.is_vdso() {
                true => OsString::from(VDSO),
                false => self.folder.image(object.number).into_os_string(),
            };
            match Compilation::start(&self.settings.program, &image, self.settings.patience) {
                Ok(child) => self.running.push(Running { object, child, is_slow }),
                Err(error) => {
                    let why = format!("the compiler cannot be started: {error}");
                    self.finish(&object, Outcome::Failed(why), tell);
                }
            }
        }
    }

    /// Waits for a child, for a change of the list, or for the time to read it. Returns whether the
    /// list is to be read; `None` if the feeder is stopped.
    fn wait(
        &self,
        stop: BorrowedFd<'_>,
        list: Option<BorrowedFd<'_>>,
        look: Option<Instant>,
    ) -> io::Result<Option<bool>> {
        let is_waiting = self.objects.values().any(|(_, progress)| *progress == Progress::Wanted);
        let beat = (is_waiting || !self.leaving.is_empty()).then(|| Instant::now() + BEAT);
        let ends = self.running.iter().map(|running| match self.makes_way(running) {
            true => running.child.begin() + self.settings.share,
            false => running.child.end(),
        });
        let until = ends.chain(beat).chain(look).min();
        let mut fds: Vec<PollFd<'_>> = [Some(stop), list]
            .into_iter()
            .flatten()
            .chain(self.running.iter().flat_map(|running| running.child.fds()))
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN | PollFlags::PRI))
            .collect();
        let timeout = until.map(|until| timespec(until.saturating_duration_since(Instant::now())));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        if is_ready(0) {
            return Ok(None);
        }
        let is_beat = is_waiting && beat.is_some_and(|beat| Instant::now() >= beat);
        Ok(Some(is_beat || list.is_some() && is_ready(1)))
    }

    /// Takes the results of children.
    fn go_on(&mut self, tell: &mut dyn FnMut(News<'_>)) -> io::Result<()> {
        let mut at = 0;
        while let Some(running) = self.running.get_mut(at) {
            let outcome = running.child.step()?;
            let has_had = running.child.begin().elapsed() >= self.settings.share;
            let is_late = outcome.is_none() && has_had && self.running.get(at).is_some_and(|one| self.makes_way(one));
            if outcome.is_none() && !is_late {
                at += 1;
                continue;
            }
            let Running { object, mut child, .. } = self.running.remove(at);
            child.kill();
            self.leaving.push(child);
            match outcome {
                Some(outcome) => self.finish(&object, outcome, tell),
                None => self.slow.push_back(object.number),
            }
        }
        Ok(())
    }

    /// Whether a child gets only its share of time.
    fn makes_way(&self, running: &Running) -> bool {
        !running.is_slow && !self.queue.is_empty()
    }

    /// Takes the result for an object.
    fn finish(&mut self, object: &Object, outcome: Outcome, tell: &mut dyn FnMut(News<'_>)) {
        let (progress, news) = match outcome {
            Outcome::NotHeld => (Progress::Wanted, Some(News::NotHeld(object))),
            Outcome::Failed(why) => (Progress::Failed, Some(News::Failed { object, why })),
            Outcome::Table(form, table) => match self.give(object, &table) {
                Ok(()) => {
                    let (rows, bytes) = (form.rows, table.len());
                    self.given = (self.given.0 + rows, self.given.1 + bytes);
                    (Progress::Fed, Some(News::Fed { object, rows, bytes }))
                }
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => (Progress::Others, None),
                Err(error) => {
                    let why = refusal(&error);
                    (Progress::Failed, Some(News::Failed { object, why }))
                }
            },
        };
        // It may be gone, or its number may be another object's.
        let known = self.objects.get_mut(&object.number);
        if let Some((_, kept)) = known.filter(|(known, _)| known.identity == object.identity) {
            *kept = progress;
            news.into_iter().for_each(tell);
        }
    }

    /// Writes the rules of an object, if its number has not been given to another one meanwhile.
    fn give(&mut self, object: &Object, table: &[u8]) -> io::Result<()> {
        let now = self.folder.objects()?;
        let is_it = |now: &Object| now.number == object.number && now.identity == object.identity;
        match now.iter().any(is_it) {
            true => self.folder.write(object.number, table),
            false => Err(rustix::io::Errno::NOENT.into()),
        }
    }
}

/// Why the module refuses a table.
fn refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => "all rules would take more memory than the parameter unwind_mb allows".to_owned(),
        Some(libc::EINVAL) => "the module does not accept the rules: see error_log".to_owned(),
        Some(libc::ENOENT) => "the object is gone".to_owned(),
        _ => format!("the rules cannot be written: {error}"),
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
