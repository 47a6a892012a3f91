// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist clean`: removes objects that runs have left in the kernel.

use std::io;
use std::io::Write;
use std::process::ExitCode;

use rhist_core::journal::Journals;
use rhist_core::run;

use crate::run::tracefs;
use crate::screen::plain;

/// Removes everything left by dead runs and by `--keep`, and lists it. With `dry_run`, only lists
/// it.
pub fn run(dry_run: bool) -> anyhow::Result<ExitCode> {
    let tracefs = tracefs(None)?;
    let journals = Journals::find();
    let mut out = io::stdout().lock();
    let (word, done, failed) = match dry_run {
        true => {
            let left = journals.list().into_iter().filter(|(_, is_alive)| !is_alive);
            ("would remove", left.map(|(entries, _)| entries).collect(), Vec::new())
        }
        false => {
            let (done, failed) = run::reap(&tracefs, &journals, true);
            ("removed", done, failed)
        }
    };
    for entries in &done {
        writeln!(out, "{word} {}: {}", entries.id.instance(), plain(&entries.command))?;
    }
    for (entries, error) in &failed {
        say!(
            "rhist: {} (rhist {}) could not be removed: {error}",
            entries.id.instance(),
            plain(&entries.command)
        );
    }
    if done.is_empty() && failed.is_empty() {
        writeln!(out, "nothing to remove")?;
    }
    Ok(if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
