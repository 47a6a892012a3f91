// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist clean`: removes what runs have left.

use std::process::ExitCode;

use anyhow::Context;
use rhist_core::journal::Journals;
use rhist_core::run;
use rhist_core::tracefs::Tracefs;

/// Removes what dead runs and `--keep` have left, and says so.
pub fn run() -> anyhow::Result<ExitCode> {
    let tracefs = Tracefs::find().context("tracefs")?;
    let (done, failed) = run::reap(&tracefs, &Journals::find(), true);
    for entries in &done {
        println!("removed {}: {}", entries.id.instance(), entries.command);
    }
    for (entries, error) in &failed {
        eprintln!(
            "rhist: {} could not be removed: {error}: {}",
            entries.id.instance(),
            entries.command
        );
    }
    if done.is_empty() && failed.is_empty() {
        println!("nothing was left");
    }
    Ok(if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
