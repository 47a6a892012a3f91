// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints lines of JSON, for programs, if the output is not a terminal.

use std::io;
use std::time::Instant;

use rhist_core::question::Reading;
use rhist_core::question::Source;

use super::Options;
use crate::args::Format;
use crate::screen::Page;
use crate::screen::Screen;
use crate::screen::View;
use crate::signals::Signals;

/// Prints a line for each interval until the source ends, the time is over, a signal arrives, or
/// the reader closes the pipe.
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
    let mut last: Option<Reading> = None;
    follow(source, options, signals, |reading| {
        if let Some(last) = last.take() {
            screen.print(&mut io::stdout().lock(), &View::interval(&reading.since(last)))?;
        }
        last = Some(reading);
        Ok(())
    })
}

/// Passes on each reading until the source ends, the time is over, or a signal arrives.
pub fn follow(
    source: &mut dyn Source,
    options: &Options,
    signals: &Signals,
    mut take: impl FnMut(Reading) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut next = Instant::now();
    let mut is_over = false;
    while let Some(reading) = source.read().map_err(anyhow::Error::from_boxed)? {
        take(reading)?;
        if is_over || options.end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
        next += options.interval;
        let until = options.end.map_or(next, |end| next.min(end));
        // Replays without pauses.
        is_over = signals.wait(Some(if options.is_replay { Instant::now() } else { until }))?;
    }
    Ok(())
}
