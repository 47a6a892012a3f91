// SPDX-License-Identifier: MIT OR Apache-2.0

//! A feeder in a thread of its own.

use std::io;
use std::io::PipeWriter;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread::Builder;
use std::thread::JoinHandle;
use std::time::Duration;
use std::time::Instant;

use crate::feeder::Feeder;
use crate::feeder::Settings;
use crate::feeder::Until;
use crate::folder::Folder;
use crate::names::Names;
use crate::news::News;

/// Lines of failures that are kept.
const MOST_FAILURES: usize = 20;

/// The list is read this often while somebody waits.
const LOOK: Duration = Duration::from_millis(100);

/// Reasons to show, and how many more came.
#[derive(Debug, Default)]
struct Failures {
    lines: Vec<String>,
    more: usize,
}

impl Failures {
    fn add(&mut self, line: String) {
        match self.lines.len() < MOST_FAILURES {
            true => self.lines.push(line),
            false => self.more += 1,
        }
    }
}

/// A feeder in a thread of its own. It stops, and the thread is joined, when this is dropped.
#[derive(Debug)]
pub struct FeederThread {
    names: Option<Names>,
    /// The same list as the feeder's.
    list: Mutex<Folder>,
    failures: Arc<Mutex<Failures>>,
    /// The feeder stops when this is closed.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl FeederThread {
    /// Starts a feeder for the folder `user_objects/` at this path.
    ///
    /// # Errors
    ///
    /// As for [`Feeder::new()`]; or the thread cannot be started.
    pub fn start(folder: &Path, settings: Settings) -> io::Result<Self> {
        let list = Mutex::new(Folder::open(folder)?);
        let names = settings.names.clone();
        let mut feeder = Feeder::new(folder, settings)?;
        let (stopped, stop) = io::pipe()?;
        let failures = Arc::new(Mutex::new(Failures::default()));
        let kept = Arc::clone(&failures);
        let add = move |line| kept.lock().unwrap_or_else(PoisonError::into_inner).add(line);
        let thread = Builder::new().name("rhist-feeder".to_owned()).spawn(move || {
            let mut tell = |news: News<'_>| {
                if let News::Failed { .. } = news {
                    add(news.to_string());
                }
            };
            if let Err(error) = feeder.run(stopped.as_fd(), Until::Stopped, &mut tell) {
                add(format!("the list of objects cannot be read: {error}"));
            }
        })?;
        Ok(Self {
            names,
            list,
            failures,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Whether it has not ended by itself, as when the module was unloaded.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Waits until no names are awaited, at most so long: all objects that are in the list now have
    /// been tried. Returns at once if the feeder has ended, or reads no names.
    pub fn settle(&self, most: Duration) {
        let Some(names) = &self.names else { return };
        let end = Instant::now() + most;
        while self.is_running() && !self.is_settled(names) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            names.wait(left.min(LOOK));
        }
    }

    /// Whether the feeder has seen the objects of the list, and has nothing to do.
    fn is_settled(&self, names: &Names) -> bool {
        // The feeder says that it is busy before it says which objects it has seen.
        let objects = self.list.lock().unwrap_or_else(PoisonError::into_inner).objects();
        // If the list cannot be read, the feeder ends soon.
        objects.is_ok_and(|objects| objects.iter().all(|object| names.has(object))) && !names.are_awaited()
    }

    /// Objects that have failed since the last call, a line for each with the reason, safe to
    /// print: the first 20, and then a line that says how many more.
    pub fn take_failures(&self) -> Vec<String> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let Failures { lines, more } = std::mem::take(&mut *failures);
        let more = (more > 0).then(|| format!("and {more} more"));
        lines.into_iter().chain(more).collect()
    }
}

impl Drop for FeederThread {
    fn drop(&mut self) {
        self.stop = None;
        // A panic was reported when it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
