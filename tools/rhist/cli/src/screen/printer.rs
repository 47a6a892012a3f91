// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints a run on standard output during the measurement.

use std::io;
use std::io::IsTerminal;
use std::io::Write;

use rhist_core::names::Names;
use rhist_core::plan::Plan;
use rhist_core::question::Interval;
use rhist_core::question::Question;
use rhist_core::question::Reading;
use rhist_core::sink::Sink;
use rhist_core::tracefs::Tracefs;

use super::Page;
use super::Screen;
use super::View;
use super::number;
use super::page::plain;
use crate::options::Common;
use crate::options::Format;

/// Sink that prints intervals, and the total at the end.
#[derive(Debug)]
pub struct Printer<'a> {
    tracefs: &'a Tracefs,
    format: Format,
    by: bool,
    quiet: bool,
    duration: Option<f64>,
    question: Question,
    names: Names,
}

impl<'a> Printer<'a> {
    /// Creates a printer for a run of so many seconds. `by` says whether rows are shown by key.
    pub fn new(tracefs: &'a Tracefs, common: &Common, by: bool, duration: Option<f64>) -> Self {
        Printer {
            tracefs,
            format: common.format(),
            by,
            quiet: common.quiet,
            duration,
            question: Question::default(),
            names: Names::default(),
        }
    }

    fn print(&self, view: &View<'_>) -> anyhow::Result<()> {
        let stdout = io::stdout();
        let screen = Screen {
            question: &self.question,
            names: &self.names,
            page: Page::of(&stdout),
            format: self.format,
            by: self.by,
            quiet: self.quiet,
        };
        let mut out = io::BufWriter::new(stdout.lock());
        screen.print(&mut out, view)?;
        Ok(out.flush()?)
    }
}

impl Sink for Printer<'_> {
    type Error = anyhow::Error;

    fn announce(&self, plan: &Plan) -> anyhow::Result<()> {
        let stdout = io::stdout();
        if self.format == Format::Text && !self.quiet && stdout.is_terminal() {
            let until = number::until(self.duration);
            // See Programs::warm_up().
            let first = if plan.has_programs() {
                "looking at programs, then "
            } else {
                ""
            };
            let line = format!("{}: {first}measuring {until}…\n", plain(&plan.question.summary));
            writeln!(&stdout, "{}", Page::of(&stdout).text(&line))?;
        }
        Ok(())
    }

    fn begin(&mut self, plan: &Plan) -> anyhow::Result<()> {
        self.question = plan.question.clone();
        self.names = plan.names(self.tracefs);
        Ok(())
    }

    fn interval(&mut self, interval: &Interval) -> anyhow::Result<()> {
        match self.format {
            Format::Text | Format::Json => self.print(&View::interval(interval)),
            Format::Folded | Format::Svg => Ok(()),
        }
    }

    fn end(&mut self, reading: &Reading, seconds: f64) -> anyhow::Result<()> {
        self.print(&View::total(reading, seconds))
    }
}
