// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist clean`: removes what runs have left.

use std::io;
use std::io::Write;
use std::process::ExitCode;

use rhist_core::journal::Journals;
use rhist_core::run;

use crate::args::BackendArg;
use crate::measure;

/// Removes what dead runs and `--keep` have left, and says so.
pub fn run() -> anyhow::Result<ExitCode> {
    let tracefs = measure::tracefs(BackendArg::Auto)?;
    let (done, failed) = run::reap(&tracefs, &Journals::find(), true);
    let mut out = io::stdout().lock();
    for entries in &done {
        writeln!(out, "removed {}: {}", entries.id.instance(), entries.command)?;
    }
    for (entries, error) in &failed {
        say!(
            "rhist: {} could not be removed: {error}: {}",
            entries.id.instance(),
            entries.command
        );
    }
    if done.is_empty() && failed.is_empty() {
        writeln!(out, "nothing was left")?;
    }
    Ok(if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
