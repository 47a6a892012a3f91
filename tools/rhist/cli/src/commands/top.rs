// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist top`: shows keys as they change, full screen.
//!
//! `state` holds the data shown and the effects of keys, `screen` draws it into cells, and the
//! loop in `live` connects both with the source and the terminal.

mod baseline;
mod batch;
mod date;
mod header;
mod heat_map;
mod history;
mod input;
mod keyboard;
mod keys;
mod line;
mod live;
mod look;
mod number;
mod options;
mod paint;
mod picture;
mod screen;
mod screenful;
mod state;
mod table;
mod terminal;
mod text;

use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use rhist_core::names::Names;
use rhist_core::recording::Reader;
use rhist_core::recording::Replay;
use rhist_core::run::Wanted;

use self::options::Options;
use super::words;
use crate::options::Common;
use crate::options::Format;
use crate::options::seconds;
use crate::run;
use crate::signals::GRACE;
use crate::signals::Guard;
use crate::signals::Signals;
use crate::signals::ends;

/// Show keys as they change, on the whole screen
#[derive(Debug, clap::Args)]
#[command(after_help = keyboard::help())]
pub struct Args {
    /// Show this recording instead of measuring
    #[arg(long, value_name = "FILE", conflicts_with = "words")]
    pub replay: Option<PathBuf>,
    /// Seconds from one interval to the next
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds, default_value = "1")]
    interval: f64,
    /// Print a line of JSON for each interval, as without a terminal
    #[arg(long)]
    batch: bool,
    /// Measurement: RECIPE, count or between, with its options
    #[arg(value_name = "RECIPE", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Shows a measurement, or a recording.
pub fn run(args: &Args, common: &Common) -> anyhow::Result<ExitCode> {
    let mut options = Options {
        interval: Duration::from_secs_f64(args.interval),
        format: format(common.format(), args.batch),
        end: None,
        is_replay: args.replay.is_some(),
        names: Names::elsewhere(),
    };
    if let Some(file) = &args.replay {
        options.names = recorded_names(file)?;
        let mut replay = Replay::new(Reader::open(file)?);
        let signals = Signals::new().context("signals")?;
        let _guard = Guard::start(ends(), GRACE, || ()).context("signals")?;
        let shown = live::run(&mut replay, options, &signals);
        if let (Some(note), false) = (replay.note(), common.quiet) {
            say!("rhist: {note}");
        }
        shown?;
        return Ok(ExitCode::SUCCESS);
    }
    let measurement = words::measurement(&args.words, common)?;
    measurement.common.check("top")?;
    options.format = format(measurement.common.format(), args.batch);
    let (tracefs, plans) = run::prepare(&measurement)?;
    if measurement.common.dry_run {
        return run::dry_run(&tracefs, &plans.best);
    }
    if let Some(seconds) = measurement.interval {
        options.interval = Duration::from_secs_f64(seconds);
    }
    // From here on, a signal must not end the process before the run is removed.
    let signals = Signals::new().context("signals")?;
    let guard = run::guard(&tracefs, ends(), measurement.common.keep, Duration::ZERO)?;
    let programs = run::Programs::start(&tracefs, &plans.best, measurement.common.quiet);
    // Plans only now, when these threads exist, so that the measurement leaves them out.
    let plans = measurement.plans(&tracefs)?;
    let mut run = run::start(&measurement, &tracefs, plans, Wanted::Intervals, programs)?;
    options.names = run.plan().names(&tracefs);
    options.end = measurement
        .duration
        .map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let result = live::run(&mut run, options, &signals);
    guard.goes_on();
    if result.is_ok() && !measurement.common.keep {
        run::check_sum(&mut run);
        guard.goes_on();
    }
    run::finish(run, &tracefs, measurement.common.keep)?;
    result?;
    Ok(ExitCode::SUCCESS)
}

/// Collects the names of numbers from all lines of a recording before showing it. Standard input
/// can be read only once, so it has none.
fn recorded_names(file: &Path) -> anyhow::Result<Names> {
    if file == Path::new("-") {
        return Ok(Names::elsewhere());
    }
    let mut reader = Reader::open(file)?;
    // Errors in a line are reported when it is shown.
    reader.by_ref().for_each(drop);
    Ok(reader.into_names())
}

/// Output format if it does not use a terminal.
fn format(format: Format, batch: bool) -> Format {
    match format {
        Format::Text if batch => Format::Json,
        _ => format,
    }
}

#[cfg(test)]
mod tests;
