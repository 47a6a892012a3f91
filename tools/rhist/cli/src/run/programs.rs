// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rules and names for the stacks of programs that a run takes.

use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use rhist_core::journal::Journals;
use rhist_core::plan::Plan;
use rhist_core::query::Query;
use rhist_core::run::Run;
use rhist_core::run::Wanted;
use rhist_core::table::Place;
use rhist_core::table::ProgramNames;
use rhist_core::table::Text;
use rhist_core::tracefs::Tracefs;
use rhist_feeder::FeederThread;
use rhist_feeder::Names;
use rhist_feeder::Settings;

/// Longest time for which stacks are taken before a run begins.
const WARM_UP: Duration = Duration::from_millis(1500);

/// So long without a new file, all are taken as known.
const QUIET: Duration = Duration::from_millis(300);

const STEP: Duration = Duration::from_millis(20);

/// A thread that gives the module rules for the programs that hits have found, and reads the names
/// of their functions. Ends when dropped.
#[derive(Debug)]
pub struct Programs {
    thread: FeederThread,
    names: Names,
    is_quiet: bool,
}

impl Programs {
    /// Starts the thread, if a plan takes stacks of programs. Without the rights to, says so: then
    /// stacks end early, and functions are numbers. Unless it is to be quiet, it says at its end
    /// which files it could not read.
    pub fn start(tracefs: &Tracefs, plan: &Plan, is_quiet: bool) -> Option<Self> {
        if !plan.has_programs() {
            return None;
        }
        let names = Names::default();
        let settings = Settings {
            names: Some(names.clone()),
            ..Settings::default()
        };
        let folder = tracefs.user_objects();
        match FeederThread::start(&folder, settings) {
            Ok(thread) => Some(Self {
                thread,
                names,
                is_quiet,
            }),
            Err(error) => {
                say!("{}", lacks(&folder, &error));
                None
            }
        }
    }

    /// Takes the stacks of a run, which is made and does not count yet, for a moment before it
    /// begins: so its first ones do not end at files that nobody has read yet. They do without
    /// that, as for a process that is given, of which no event is to be missed.
    pub fn warm_up(&self, tracefs: &Tracefs, journals: &Journals, query: &Query, plan: &Plan) {
        if !query.pids.is_empty() {
            return;
        }
        let query = Query {
            // As the run has set it.
            frequency: None,
            ..query.clone()
        };
        let Ok(plans) = query.plans(tracefs, &plan.id.second()) else {
            return;
        };
        let run = Run::start_first(tracefs, journals, plans, "(files of programs)", Wanted::Totals);
        let Ok(mut run) = run else { return };
        if run.begin().is_ok() {
            let end = Instant::now() + WARM_UP;
            let mut last = Instant::now();
            while Instant::now() < end && last.elapsed() < QUIET {
                sleep(STEP);
                if self.names.are_awaited() {
                    last = Instant::now();
                }
            }
        }
        // If something stays, the journal has it.
        let _ = run.stop();
    }
}

/// A message for a folder of which no files can be read.
pub fn lacks(folder: &Path, error: &io::Error) -> String {
    let folder = folder.display();
    format!("rhist: stacks of programs have neither rules nor names: {folder}: {error}")
}

/// A name without an offset, so that a function is one, wherever it calls from; or an offset in a
/// file without names.
pub fn function(names: &Names, place: Place) -> String {
    let shown = names.function(place.object, place.offset, place.is_exact);
    // It is escaped again when it is shown.
    Text::shown(&shown).to_lossy()
}

impl ProgramNames for Programs {
    fn name(&self, place: Place) -> String {
        function(&self.names, place)
    }

    fn settle(&self, most: Duration) {
        self.thread.settle(most);
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        if !self.is_quiet {
            self.thread.take_failures().iter().for_each(|why| say!("rhist: {why}"));
        }
    }
}
