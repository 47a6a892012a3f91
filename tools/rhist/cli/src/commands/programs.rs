// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rules and names for the stacks of programs that the histograms of a service take.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use rhist_core::table::Place;
use rhist_core::table::ProgramNames;
use rhist_feeder::FeederThread;
use rhist_feeder::Names;
use rhist_feeder::Settings;

use crate::run::function;
use crate::run::lacks;

/// Most bytes of names. A service has less memory than a run that somebody waits for.
const MOST_BYTES: usize = 24 << 20;

/// Histograms that are read within this time are read together.
const TOGETHER: Duration = Duration::from_secs(1);

/// A feeder for all histograms of a service. Cheap to clone; without a thread until a histogram
/// needs one.
#[derive(Clone, Debug)]
pub struct ServicePrograms(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    names: Names,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    thread: Option<FeederThread>,
    /// `user_objects/`, since a thread has begun.
    folder: PathBuf,
    /// Device and inode of that folder: each time when the module is loaded, it is another one.
    identity: Option<(u64, u64)>,
    /// The thread was ended, so that the module can be unloaded.
    is_released: bool,
    /// A thread has begun since somebody asked.
    has_begun: bool,
    /// Failures are logged once.
    has_failed: bool,
    /// When names were waited for last.
    settled: Option<Instant>,
}

impl Default for ServicePrograms {
    /// Without a thread.
    fn default() -> Self {
        Self(Arc::new(Shared {
            names: Names::new(MOST_BYTES),
            state: Mutex::default(),
        }))
    }
}

impl ServicePrograms {
    /// Starts the thread for the folder `user_objects/` at this path, unless it runs or is
    /// released. Returns whether it has started. Logs a failure: then stacks end early, and
    /// functions are numbers.
    pub fn start(&self, folder: &Path) -> bool {
        let mut state = self.lock();
        let identity = fs::metadata(folder).map(|found| (found.dev(), found.ino())).ok();
        if identity != state.identity {
            // Its numbers begin anew.
            self.0.names.clear();
            state.identity = identity;
        }
        if state.is_released || state.thread.as_ref().is_some_and(FeederThread::is_running) {
            return false;
        }
        let settings = Settings {
            names: Some(self.0.names.clone()),
            ..Settings::default()
        };
        match FeederThread::start(folder, settings) {
            Ok(thread) => {
                state.thread = Some(thread);
                folder.clone_into(&mut state.folder);
                (state.has_begun, state.has_failed) = (true, false);
                true
            }
            Err(error) => {
                if !std::mem::replace(&mut state.has_failed, true) {
                    say!("{}", lacks(folder, &error));
                }
                false
            }
        }
    }

    /// Whether a thread has begun since the last call.
    pub fn has_begun(&self) -> bool {
        std::mem::take(&mut self.lock().has_begun)
    }

    /// Ends the thread, whose open files keep the module loaded.
    pub fn release(&self) {
        let mut state = self.lock();
        state.is_released |= state.thread.take().is_some();
    }

    /// Starts the thread again after [`Self::release()`], or if it has ended, as when the module
    /// was unloaded. Logs files that could not be read.
    pub fn go_on(&self) {
        let mut state = self.lock();
        state.is_released = false;
        if let Some(thread) = &state.thread {
            thread.take_failures().iter().for_each(|why| say!("rhist: {why}"));
        }
        let has_ended = !state.thread.as_ref().is_some_and(FeederThread::is_running);
        if has_ended && !state.folder.as_os_str().is_empty() {
            let folder = state.folder.clone();
            drop(state);
            self.start(&folder);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgramNames for ServicePrograms {
    fn name(&self, place: Place) -> String {
        function(&self.0.names, place)
    }

    /// Once for all histograms that are read together, so that many of them do not delay a scrape.
    fn settle(&self, most: Duration) {
        let mut state = self.lock();
        let is_settled = state.settled.is_some_and(|at| at.elapsed() < TOGETHER);
        if let Some(thread) = state.thread.as_ref().filter(|_| !is_settled) {
            thread.settle(most);
            state.settled = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_unless_the_module_may_be_unloaded() {
        let folder = tempfile::tempdir().unwrap();
        let programs = ServicePrograms::default();
        // A module that takes no stacks of programs.
        assert!(!programs.start(folder.path()) && !programs.has_begun());
        fs::write(folder.path().join("list"), "# number kind\n").unwrap();
        let is_open = || {
            let files = fs::read_dir("/proc/self/fd").unwrap().flatten();
            let mut files = files.filter_map(|file| fs::read_link(file.path()).ok());
            files.any(|file| file.starts_with(folder.path()))
        };
        assert!(programs.start(folder.path()) && programs.has_begun() && is_open());
        // It runs already.
        assert!(!programs.start(folder.path()) && !programs.has_begun());
        programs.go_on();
        assert!(!programs.has_begun());
        programs.release();
        assert!(!is_open());
        assert!(!programs.start(folder.path()) && !is_open());
        programs.go_on();
        assert!(programs.has_begun() && is_open());
        drop(programs);
        assert!(!is_open());
    }

    #[test]
    fn another_module_has_other_numbers() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("user_objects");
        let load = |list: &str| {
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("list"), list).unwrap();
        };
        let programs = ServicePrograms::default();
        let name = || {
            programs.name(Place {
                object: 5,
                offset: 1,
                is_exact: true,
            })
        };
        load("# number kind process state\n5 memory 77 released\n");
        assert!(programs.start(&folder));
        programs.settle(Duration::from_secs(60));
        assert_eq!(name(), "[memory of 77]+0x1");
        programs.release();
        assert!(!programs.start(&folder));
        assert_eq!(name(), "[memory of 77]+0x1");
        // Another one gets a number of its own while the first one is there.
        fs::rename(&folder, root.path().join("before")).unwrap();
        load("# number kind process state\n");
        assert!(!programs.start(&folder), "it is released");
        assert_eq!(name(), "[object 5]+0x1");
    }
}
