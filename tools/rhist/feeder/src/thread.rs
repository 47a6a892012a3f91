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

use crate::feeder::Feeder;
use crate::feeder::Settings;
use crate::feeder::Until;
use crate::news::News;

/// Lines of failures that are kept.
const MOST_FAILURES: usize = 20;

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
    failures: Arc<Mutex<Failures>>,
    /// The feeder stops when this is closed.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl FeederThread {
    /// Starts a feeder for the folder [`FOLDER`](crate::FOLDER) at this path.
    ///
    /// # Errors
    ///
    /// As for [`Feeder::new()`]; or the thread cannot be started.
    pub fn start(folder: &Path, settings: Settings) -> io::Result<Self> {
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
            failures,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Waits until no names are awaited, at most so long.
    pub fn settle(&self, most: Duration) {
        let _ = most;
    }

    /// Objects that failed, a line for each with the reason, safe to print: the first 20, and then
    /// a line that says how many more.
    pub fn failures(&self) -> Vec<String> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let more = (failures.more > 0).then(|| format!("and {} more", failures.more));
        failures.lines.iter().cloned().chain(more).collect()
    }
}

impl Drop for FeederThread {
    fn drop(&mut self) {
        self.stop = None;
        // A panic was reported when it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
