// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist record`: stores measurements in a file.

use std::path::PathBuf;
use std::process::ExitCode;

use rhist_core::names::Names;
use rhist_core::plan::Plan;
use rhist_core::plan::word;
use rhist_core::quantity;
use rhist_core::question::Interval;
use rhist_core::question::Reading;
use rhist_core::recording::Writer;
use rhist_core::tracefs::Tracefs;

use crate::args::Common;
use crate::args::RecordArgs;
use crate::measure;
use crate::measure::Sink;
use crate::query::Query;
use crate::screen::until;

/// Measures, and writes each interval to the file.
pub fn run(args: &RecordArgs, common: &Common) -> anyhow::Result<ExitCode> {
    let mut query = Query::parse(&args.words, common)?;
    query.common.check("record")?;
    query.run.interval.get_or_insert(1.0);
    let (tracefs, plans) = measure::prepare(&query)?;
    if query.common.dry_run {
        return measure::dry_run(&tracefs, &plans.best);
    }
    // Created before the triggers, so that an error about the file is reported at once.
    let writer = Writer::create(&args.file, &plans.best.question)?;
    let mut recorder = Recorder {
        writer,
        tracefs: &tracefs,
        names: Names::new(),
        path: args.file.clone(),
        duration: query.run.duration,
        is_quiet: query.common.quiet,
        intervals: 0,
    };
    measure::go(&query, &tracefs, &mut recorder)
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
