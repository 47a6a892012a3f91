// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist unwind`: gives the module rules for the stacks of programs.

use std::io;
use std::io::ErrorKind;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::ExitCode;

use anyhow::Context;
use rhist_core::quantity::things;
use rhist_core::tracefs::Backend;
use rhist_feeder::Feeder;
use rhist_feeder::News;
use rhist_feeder::Settings;
use rhist_feeder::Summary;
use rhist_feeder::Until;

use crate::run::Failed;
use crate::run::tracefs;
use crate::signals::Signals;

/// Arguments of `rhist unwind`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// End when each object that is known now has rules, or was tried
    #[arg(long)]
    pub once: bool,
    /// Print a line for each object
    #[arg(short, long)]
    pub verbose: bool,
}

/// Gives rules to objects until SIGINT, SIGTERM or SIGHUP, or with `--once` until all were tried.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let signals = Signals::new().context("signals")?;
    let tracefs = tracefs(Some(Backend::Rhist))?;
    let folder = tracefs.user_objects();
    let mut feeder = Feeder::new(&folder, Settings::default()).map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!("{}: this module takes no stacks of programs", folder.display()),
        ErrorKind::PermissionDenied => anyhow::anyhow!("{}: only root may read it: try sudo", folder.display()),
        _ => anyhow::anyhow!("{}: {error}", folder.display()),
    })?;
    let until = match args.once {
        true => Until::Tried,
        false => Until::Stopped,
    };
    let mut out = io::stdout().lock();
    let mut written = Ok(());
    let mut tell = |news: News<'_>| match news {
        News::Failed { .. } => say!("rhist: {news}"),
        News::Fed { .. } | News::NotHeld(_) if args.verbose && written.is_ok() => written = writeln!(out, "{news}"),
        News::Fed { .. } | News::NotHeld(_) => {}
    };
    feeder
        .run(signals.as_fd(), until, &mut tell)
        .with_context(|| folder.display().to_string())
        .context(Failed)?;
    written?;
    writeln!(out, "{}", sentence(&feeder.summary()))?;
    Ok(ExitCode::SUCCESS)
}

/// Formats a summary: `12 objects: 9 given 1,234 rows in 5,678 bytes, 2 with rules of another
/// program, 1 failed`.
fn sentence(summary: &Summary) -> String {
    let number = |count: usize, noun: &str| things(count as u64, noun);
    let mut parts = vec![format!(
        "{} given {} in {}",
        summary.fed,
        number(summary.rows, "rows"),
        number(summary.bytes, "bytes")
    )];
    for (count, what) in [
        (summary.others, "with rules before"),
        (summary.not_held, "not readable until the next hit"),
        (summary.failed, "failed"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    format!("{}: {}", number(summary.objects, "objects"), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries() {
        let none = Summary::default();
        assert_eq!(sentence(&none), "0 objects: 0 given 0 rows in 0 bytes");
        let some = Summary {
            objects: 1012,
            fed: 1000,
            rows: 1_234_567,
            bytes: 1,
            others: 9,
            not_held: 1,
            failed: 2,
        };
        assert_eq!(
            sentence(&some),
            "1,012 objects: 1000 given 1,234,567 rows in 1 byte, 9 with rules before, 1 not readable until the next hit, 2 failed"
        );
    }
}
