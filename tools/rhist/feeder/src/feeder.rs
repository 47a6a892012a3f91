// SPDX-License-Identifier: MIT OR Apache-2.0

//! Watches the list of objects, and gives them rules and names.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use rhist_unwind::Form;
use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;

use crate::compilation::Compilation;
use crate::compilation::Job;
use crate::compilation::Outcome;
use crate::folder::Folder;
use crate::input::VDSO;
use crate::list::Object;
use crate::map_file;
use crate::map_file::MEMORY;
use crate::name_table::NameTable;
use crate::namer::NAMES;
use crate::namer::is_trusted;
use crate::names::Names;
use crate::news::News;
use crate::news::Summary;
use crate::queue::Queue;
use crate::queue::Task;

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

/// For so long after it was tried, a file that is not held is likely to be hit, and seen as held.
const HITS: Duration = Duration::from_secs(2);

/// Pieces of memory with code, the newest ones, whose names are read: each takes a child, again and
/// again.
const MOST_MEMORY: usize = 64;

/// Names of code in memory are read again after this time, and after twice as long each time up to
/// the second one: programs make most of their code in their first seconds.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(16)];

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
    /// Each object in the list has rules, and names if these are read, or was tried.
    Tried,
    /// It is stopped.
    Stopped,
}

/// How far the rules of an object are, or its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Of names: after the rules, since the same reason is reported once.
    Later,
    /// In the queue, or with a running child.
    Begun,
    /// Its file was not held. Trying to open it has asked hits to hold it.
    Wanted,
    /// Made by this feeder.
    Fed,
    /// Not made by this feeder: rules of another one, or names that nobody reads.
    Others,
    Failed,
}

/// An object of the list that has code, or whose names are read.
#[derive(Debug)]
struct Known {
    object: Object,
    rules: Progress,
    names: Progress,
    /// The reason why it gets no rules, which need not be given twice.
    why: Option<String>,
    /// A file with more names.
    debug: Option<PathBuf>,
    /// Of memory: when its names are read again, and how long that is after the last time.
    again: Option<(Instant, Duration)>,
}

impl Known {
    fn is_any(&self, progress: Progress) -> bool {
        self.rules == progress || self.names == progress
    }
}

/// An object with its child.
#[derive(Debug)]
struct Running {
    object: Object,
    task: Task,
    child: Compilation,
}

/// Gives rules and names to objects.
#[derive(Debug)]
pub struct Feeder {
    folder: Folder,
    settings: Settings,
    /// All objects of the list for which rules can be made, and memory whose names are read.
    objects: BTreeMap<u32, Known>,
    /// Of memory in the list, by what says which it is: when its process began; `None` if that has
    /// ended.
    processes: BTreeMap<String, Option<u64>>,
    queue: Queue,
    running: Vec<Running>,
    leaving: Vec<Compilation>,
    /// Rows and bytes of all rules that were given.
    given: (usize, usize),
    /// Until when hits are likely that make files readable.
    hits_until: Option<Instant>,
    /// Whether children look for names of files in the mappings of processes.
    is_searching: bool,
    /// Finds the file with the debugging information of a build.
    find_debug: fn(&[u8]) -> Option<PathBuf>,
}

impl Feeder {
    /// A feeder for the folder `user_objects/` at this path.
    ///
    /// # Errors
    ///
    /// The list cannot be opened: `NotFound` if the module is not loaded, `PermissionDenied`.
    pub fn new(folder: &Path, settings: Settings) -> io::Result<Self> {
        let folder = Folder::open(folder)?;
        if let Some(names) = &settings.names {
            // Until the list is read.
            names.await_more(true, None);
        }
        Ok(Self {
            folder,
            settings,
            objects: BTreeMap::new(),
            processes: BTreeMap::new(),
            queue: Queue::default(),
            running: Vec::new(),
            leaving: Vec::new(),
            given: (0, 0),
            hits_until: None,
            is_searching: true,
            find_debug: debug_file,
        })
    }

    /// Gives rules and names to objects, until that or until `stop` is readable. Passes all that
    /// happens to `tell`. Children end with the thread that calls this.
    ///
    /// # Errors
    ///
    /// The list cannot be read any more, such as after the module was unloaded.
    pub fn run(&mut self, stop: BorrowedFd<'_>, until: Until, tell: &mut dyn FnMut(News<'_>)) -> io::Result<()> {
        let result = self.go_on_until(stop, until, tell);
        self.running.clear();
        self.rest();
        result
    }

    fn go_on_until(&mut self, stop: BorrowedFd<'_>, until: Until, tell: &mut dyn FnMut(News<'_>)) -> io::Result<()> {
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
            self.await_names();
            let list = (!is_changed).then(|| self.folder.as_fd());
            let Some(is_listed) = self.wait(stop, list, is_changed.then_some(next_look))? else {
                break;
            };
            is_changed |= is_listed;
            self.go_on(tell)?;
        }
        Ok(())
    }

    /// Says whether names may still come.
    fn await_names(&self) {
        if let Some(names) = &self.settings.names {
            let is_busy = !self.queue.is_read() || self.running.iter().any(|running| !running.task.is_ask);
            names.await_more(is_busy, self.hits_until);
        }
    }

    /// Says that none come while the feeder does not run.
    fn rest(&self) {
        if let Some(names) = &self.settings.names {
            names.await_more(false, None);
        }
    }

    /// Numbers of all objects in the list, and of all rules that were given.
    pub fn summary(&self) -> Summary {
        let count = |wanted| self.objects.values().filter(|known| known.rules == wanted).count();
        Summary {
            objects: self.objects.values().filter(|known| known.object.has_code()).count(),
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
        self.running.is_empty() && (self.queue.is_empty() || self.leaving.len() >= MOST_LEAVING)
    }

    /// Reads the list: forgets objects that are gone, and queues objects that can be tried.
    fn look(&mut self) -> io::Result<()> {
        let all = self.folder.objects()?;
        let most = if self.settings.names.is_some() { MOST_MEMORY } else { 0 };
        let memory = self.living(&all, most);
        let listed: BTreeMap<u32, &Object> = all
            .iter()
            .filter(|object| object.has_code())
            .chain(memory)
            .map(|object| (object.number, object))
            .collect();
        let is_same = |object: &Object| {
            let now = listed.get(&object.number);
            // Rules are lost only with the whole table of objects, whose numbers begin anew then.
            now.is_some_and(|now| now.identity == object.identity && now.has_rules >= object.has_rules)
        };
        self.objects.retain(|_, known| is_same(&known.object));
        self.queue.retain(|number| self.objects.contains_key(&number));
        for (number, object) in listed {
            self.see(number, object);
        }
        // Before others learn that the objects are known.
        self.await_names();
        if let Some(names) = &self.settings.names {
            names.list(&all);
        }
        Ok(())
    }

    /// The newest pieces of memory in a list whose processes have not ended, at most so many.
    fn living<'a>(&mut self, all: &'a [Object], most: usize) -> Vec<&'a Object> {
        let is_listed = |identity: &String| all.iter().any(|object| object.identity == *identity);
        if self.processes.len() > 2 * all.len() {
            self.processes.retain(|identity, _| is_listed(identity));
        }
        let memory = all.iter().rev().filter(|object| object.is_found_memory());
        let is_living = |object: &&Object| {
            let now = object.process.and_then(map_file::start);
            let known = self.processes.entry(object.identity.clone()).or_insert(now);
            // Another process may have its number now.
            *known = known.filter(|start| now == Some(*start));
            known.is_some()
        };
        memory.filter(is_living).take(most).collect()
    }

    /// Queues an object of the list if it can be tried.
    fn see(&mut self, number: u32, object: &Object) {
        let before = self.objects.remove(&number);
        let again = before.as_ref().and_then(|known| known.again);
        // Of the vDSO, and of memory, the list does not say it.
        let is_readable = match object.is_found_memory() {
            true => again.is_none_or(|(at, _)| at <= Instant::now()),
            false => object.is_readable || object.is_vdso(),
        };
        let progress = |before: Option<Progress>| match before {
            None | Some(Progress::Wanted) if is_readable => Progress::Begun,
            None => Progress::Wanted,
            Some(before) => before,
        };
        let rules_before = before.as_ref().map(|known| known.rules);
        let mut rules = match rules_before {
            _ if !object.has_code() => Progress::Others,
            None | Some(Progress::Wanted) if object.has_rules => Progress::Others,
            before => progress(before),
        };
        let names_before = before.as_ref().map(|known| known.names);
        let mut names = match self.settings.names {
            Some(_) if names_before.is_none() && rules == Progress::Begun => Progress::Later,
            Some(_) => progress(names_before),
            None => Progress::Others,
        };
        let mut is_asked = false;
        for (job, before, now) in [
            (Job::Rules, rules_before, &mut rules),
            (Job::Names, names_before, &mut names),
        ] {
            // One that is not readable is tried once, for either job.
            let is_ask = before.is_none() && *now == Progress::Wanted && !is_asked;
            let is_new = *now == Progress::Begun && before != Some(Progress::Begun);
            if is_ask || is_new {
                is_asked = true;
                *now = Progress::Begun;
                self.queue.push(Task {
                    is_ask,
                    ..Task::new(number, job)
                });
            }
        }
        if is_readable {
            self.queue.hurry(number);
        }
        let (why, debug) = before.map_or((None, None), |known| (known.why, known.debug));
        let object = object.clone();
        let known = Known {
            object,
            rules,
            names,
            why,
            debug,
            again,
        };
        self.objects.insert(number, known);
    }

    /// Starts children for tasks of the queue, while some may be started.
    fn start(&mut self, tell: &mut dyn FnMut(News<'_>)) {
        self.leaving.retain_mut(|child| !child.is_gone());
        while self.running.len() < CHILDREN && self.leaving.len() < MOST_LEAVING {
            let Some(task) = self.queue.pop(self.running.iter().map(|running| running.task)) else {
                break;
            };
            let Some(known) = self.objects.get(&task.number) else {
                continue;
            };
            let object = known.object.clone();
            let arguments = self.arguments(known, task);
            let Settings { program, patience, .. } = &self.settings;
            match Compilation::start(program, task.job, &arguments, *patience) {
                Ok(child) => self.running.push(Running { object, task, child }),
                Err(error) => {
                    let why = format!("the compiler cannot be started: {error}");
                    self.finish(&object, task, Outcome::Failed(why), tell);
                }
            }
        }
    }

    /// Arguments of a child.
    fn arguments(&self, known: &Known, task: Task) -> Vec<OsString> {
        let object = &known.object;
        let image = match object.is_vdso() {
            true => OsString::from(VDSO),
            false => self.folder.image(object.number).into_os_string(),
        };
        match task.job {
            Job::Rules => vec![image],
            Job::Names if object.is_found_memory() => {
                let process = object.process.unwrap_or_default().to_string();
                let begin = format!("{:x}", object.begin.unwrap_or_default());
                let start = self
                    .processes
                    .get(&object.identity)
                    .copied()
                    .flatten()
                    .unwrap_or_default();
                let of_process = [process, begin, start.to_string()].map(OsString::from);
                [NAMES, MEMORY]
                    .map(OsString::from)
                    .into_iter()
                    .chain(of_process)
                    .collect()
            }
            Job::Names => {
                let file = match self.is_searching && !task.is_ask {
                    true => [object.device.as_str(), &object.inode],
                    false => ["-", "-"],
                };
                let file = file.map(OsString::from);
                let debug = known.debug.iter().map(OsString::from);
                [NAMES.into(), image].into_iter().chain(file).chain(debug).collect()
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
        let is_waiting = self.objects.values().any(|known| known.is_any(Progress::Wanted));
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
            let Running {
                object,
                task,
                mut child,
            } = self.running.remove(at);
            child.kill();
            // A process may hold the lock of its mappings for long.
            let is_stuck = self.is_searching && task.job == Job::Names && has_had && !child.has_said();
            if is_stuck {
                self.is_searching = false;
            }
            if let Some(names) = &self.settings.names
                && !child.base_name().is_empty()
            {
                names.set_base_name(&object, child.base_name());
            }
            self.leaving.push(child);
            match outcome {
                Some(outcome) if !is_stuck => self.finish(&object, task, outcome, tell),
                _ => self.queue.push(Task {
                    is_slow: true,
                    is_ask: false,
                    ..task
                }),
            }
        }
        Ok(())
    }

    /// Whether a child gets only its share of time.
    fn makes_way(&self, running: &Running) -> bool {
        !running.task.is_slow && !self.queue.is_tried()
    }

    /// Takes the result for an object.
    fn finish(&mut self, object: &Object, task: Task, outcome: Outcome, tell: &mut dyn FnMut(News<'_>)) {
        let result = match outcome {
            Outcome::NotHeld => Ok(Progress::Wanted),
            Outcome::Failed(why) => Err(why),
            Outcome::Table(form, table) => self.feed(object, form, &table, tell),
            Outcome::Names(table) => self.name(object, table),
        };
        let progress = *result.as_ref().unwrap_or(&Progress::Failed);
        // It may be gone, or its number may be another object's.
        let known = self.objects.get_mut(&object.number);
        let Some(known) = known.filter(|known| known.object.identity == object.identity) else {
            return;
        };
        if object.is_found_memory() {
            let [first, most] = AGAIN;
            let pause = known.again.map_or(first, |(_, pause)| most.min(2 * pause));
            known.again = Some((Instant::now() + pause, pause));
            if result.is_ok() {
                known.names = Progress::Wanted;
                return;
            }
        }
        if progress == Progress::Wanted {
            if !known.is_any(Progress::Wanted) {
                tell(News::NotHeld(object));
            }
            if !task.is_ask {
                self.hits_until = Some(Instant::now() + HITS);
            }
        }
        match task.job {
            Job::Rules => known.rules = progress,
            Job::Names => known.names = progress,
        }
        if known.names == Progress::Later {
            known.names = match progress {
                Progress::Wanted => Progress::Wanted,
                _ => Progress::Begun,
            };
            if known.names == Progress::Begun {
                self.queue.push(Task::new(object.number, Job::Names));
            }
        }
        let Err(why) = result else { return };
        match task.job {
            Job::Rules => {
                known.why = Some(why.clone());
                tell(News::Failed { object, why });
            }
            Job::Names if known.why.as_ref() == Some(&why) => {}
            Job::Names => {
                let what = if known.debug.is_some() { "more names" } else { "names" };
                let why = format!("{what}: {why}");
                tell(News::Failed { object, why });
            }
        }
    }

    /// Gives an object its rules.
    fn feed(
        &mut self,
        object: &Object,
        form: Form,
        table: &[u8],
        tell: &mut dyn FnMut(News<'_>),
    ) -> Result<Progress, String> {
        match self.give(object, table) {
            Ok(()) => {
                let (rows, bytes) = (form.rows, table.len());
                self.given = (self.given.0 + rows, self.given.1 + bytes);
                tell(News::Fed { object, rows, bytes });
                Ok(Progress::Fed)
            }
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(Progress::Others),
            Err(error) => Err(refusal(&error)),
        }
    }

    /// Gives an object its names, and queues it again if a file has more.
    fn name(&mut self, object: &Object, table: NameTable) -> Result<Progress, String> {
        let names = self.settings.names.as_ref().ok_or("nobody asked")?;
        // Of an object that has left the list, they are right, as its number is not used again.
        let now = self.folder.objects().map_err(|error| error.to_string())?;
        if now
            .iter()
            .any(|now| now.number == object.number && now.identity != object.identity)
        {
            return Err("the object is gone".to_owned());
        }
        let debug = (self.find_debug)(table.build_id());
        if !names.set_table(object, table) {
            let most = names.most() >> 20;
            return Err(format!("all names would take more than {most} MiB"));
        }
        let number = object.number;
        match self.objects.get_mut(&number) {
            Some(known) if known.debug.is_none() && debug.is_some() => {
                known.debug = debug;
                self.queue.push(Task::new(number, Job::Names));
                Ok(Progress::Begun)
            }
            _ => Ok(Progress::Fed),
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

/// The file with the debugging information of a build, if root has installed it.
fn debug_file(build_id: &[u8]) -> Option<PathBuf> {
    let mut paths = rhist_symbols::debug_paths(build_id).into_iter();
    paths.find(|path| fs::metadata(path).is_ok_and(|file| is_trusted(&file)))
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.rest();
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

#[cfg(test)]
mod tests;
