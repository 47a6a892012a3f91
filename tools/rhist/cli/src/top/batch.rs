// SPDX-License-Identifier: MIT OR Apache-2.0

//! Lines of JSON, for programs, where no terminal is.

use std::io;
use std::time::Instant;

use rhist_core::question::Source;

use super::Options;
use crate::args::Format;
use crate::screen::Page;
use crate::screen::Screen;
use crate::screen::View;
use crate::signals::Signals;

/// Prints a line for each interval until the source ends, time is over, a signal comes, or nobody reads.
pub fn run(source: &mut dyn Source, options: &Options, signals: &Signals) -> anyhow::Result<()> {
    let question = source.question().clone();
    let screen = Screen {
        question: &question,
        names: &options.names,
        page: Page::of(&io::stdout()),
        format: Format::Json,
        by: true,
        quiet: true,
    };
    let read = |source: &mut dyn Source| source.read().map_err(|error| anyhow::anyhow!(error));
    let Some(mut last) = read(source)? else {
        return Ok(());
    };
    let mut next = Instant::now();
    loop {
        next += options.interval;
        let until = options.end.map_or(next, |end| next.min(end));
        // A recording has no need to wait.
        let is_over = signals.wait(Some(if options.is_replay { Instant::now() } else { until }))?;
        let Some(reading) = read(source)? else {
            return Ok(());
        };
        match screen.print(&mut io::stdout().lock(), &View::interval(&reading.since(&last))) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            result => result?,
        }
        last = reading;
        if is_over || options.end.is_some_and(|end| Instant::now() >= end) {
            return Ok(());
        }
    }
}
