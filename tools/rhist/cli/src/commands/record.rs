// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist record`: stores measurements in a file.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use rhist_core::names::Names;
use rhist_core::plan::Plan;
use rhist_core::plan::word;
use rhist_core::quantity;
use rhist_core::question::Interval;
use rhist_core::question::Reading;
use rhist_core::recording::Writer;
use rhist_core::sink::Sink;
use rhist_core::tracefs::Tracefs;

use super::words;
use crate::options::Common;
use crate::run;
use crate::screen::until;

/// Arguments of `rhist record`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// File to write
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Measurement: RECIPE, count or between, with its options
    #[arg(
        value_name = "RECIPE",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true
    )]
    pub words: Vec<OsString>,
}

/// Measures, and writes each interval to the file.
pub fn run(args: &Args, common: &Common) -> anyhow::Result<ExitCode> {
    let mut measurement = words::measurement(&args.words, common)?;
    measurement.common.check("record")?;
    measurement.interval.get_or_insert(1.0);
    let (tracefs, plans) = run::prepare(&measurement)?;
    if measurement.common.dry_run {
        return run::dry_run(&tracefs, &plans.best);
    }
    // Created before the triggers, so that an error about the file is reported at once.
    let writer = Writer::create(&args.file, &plans.best.question)?;
    let mut recorder = Recorder {
        writer,
        tracefs: &tracefs,
        names: Names::new(),
        path: args.file.clone(),
        duration: measurement.duration,
        is_quiet: measurement.common.quiet,
        intervals: 0,
    };
    run::go(&measurement, &tracefs, &plans.best, &mut recorder)
}

struct Recorder<'a> {
    writer: Writer,
    tracefs: &'a Tracefs,
    names: Names,
    path: PathBuf,
    duration: Option<f64>,
    is_quiet: bool,
    intervals: u64,
}

impl Sink for Recorder<'_> {
    type Error = anyhow::Error;

    fn begin(&mut self, plan: &Plan) -> anyhow::Result<()> {
        // The plan in use may be a fallback, with a different question.
        self.writer.set_question(&plan.question);
        self.names = plan.names(self.tracefs);
        if !self.is_quiet {
            say!(
                "{}: recorded in {}, {}",
                plan.question.summary,
                self.path.display(),
                until(self.duration)
            );
        }
        Ok(())
    }

    fn interval(&mut self, interval: &Interval) -> anyhow::Result<()> {
        self.intervals += 1;
        Ok(self.writer.append(interval, &self.names)?)
    }

    fn end(&mut self, _: &Reading, _: f64) -> anyhow::Result<()> {
        if !self.is_quiet {
            let path = self.path.display();
            let intervals = quantity::things(self.intervals, "intervals");
            say!(
                "{intervals} in {path}: rhist report {} shows them",
                word(&path.to_string())
            );
        }
        Ok(())
    }
}
