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
use rhist_core::tracefs::Tracefs;

use super::Page;
use super::Screen;
use super::View;
use super::number;
use super::page::plain;
use crate::args::Format;
use crate::measure::Sink;
use crate::query::Query;

/// Sink that prints intervals, and the total at the end.
#[derive(Debug)]
pub struct Printer<'a> {
    query: &'a Query,
    tracefs: &'a Tracefs,
    question: Question,
    names: Names,
}

impl<'a> Printer<'a> {
    /// Creates a printer for a question.
    pub fn new(query: &'a Query, tracefs: &'a Tracefs) -> Self {
        Printer {
            query,
            tracefs,
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
            format: self.query.common.format(),
            by: !self.query.by().is_empty(),
            quiet: self.query.common.quiet,
        };
        let mut out = io::BufWriter::new(stdout.lock());
        screen.print(&mut out, view)?;
        Ok(out.flush()?)
    }
}

impl Sink for Printer<'_> {
    fn announce(&self, plan: &Plan) -> anyhow::Result<()> {
        let stdout = io::stdout();
        if self.query.common.format() == Format::Text && !self.query.common.quiet && stdout.is_terminal() {
            let until = number::until(self.query.run.duration);
            let line = format!("{}: measuring {until}…\n", plain(&plan.question.summary));
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
        match self.query.common.format() {
            Format::Text | Format::Json => self.print(&View::interval(interval)),
            Format::Folded | Format::Svg => Ok(()),
        }
    }

    fn end(&mut self, reading: &Reading, seconds: f64) -> anyhow::Result<()> {
        self.print(&View::total(reading, seconds))
    }
}
