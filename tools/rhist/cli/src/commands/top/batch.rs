// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints lines of JSON, for programs, if the output is not a terminal.

use std::io;
use std::time::Instant;

use rhist_core::question::Interval;
use rhist_core::question::Source;

use super::options::Options;
use crate::options::Format;
use crate::screen::Page;
use crate::screen::Screen;
use crate::screen::View;
use crate::screen::lines;
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
    follow(source, options, signals, |interval, _| {
        for note in &interval.notes {
            say!("rhist: {}", lines(note));
        }
        Ok(screen.print(&mut io::stdout().lock(), &View::interval(&interval))?)
    })
}

/// Passes on each interval until the source ends, the time is over, or a signal arrives: then the
/// last one.
pub fn follow(
    source: &mut dyn Source,
    options: &Options,
    signals: &Signals,
    mut take: impl FnMut(Interval, &mut dyn Source) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut next = Instant::now();
    let mut is_over = false;
    while !is_over {
        next += options.interval;
        let until = options.end.map_or(next, |end| next.min(end));
        // A replay does not wait.
        let is_enough = signals.wait(Some(if options.is_replay { Instant::now() } else { until }))?;
        is_over = is_enough || options.end.is_some_and(|end| Instant::now() >= end);
        let Some(interval) = source.interval().map_err(anyhow::Error::from_boxed)? else {
            break;
        };
        take(interval, source)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::time::Duration;

    use rhist_core::names::Names;
    use rhist_core::question::Question;
    use rhist_core::question::Reading;

    use super::*;

    #[derive(Default)]
    struct Endless(Question, Reading);

    impl Source for Endless {
        fn question(&self) -> &Question {
            &self.0
        }

        fn interval(&mut self) -> Result<Option<Interval>, Box<dyn Error + Send + Sync>> {
            Ok(Some(Interval::default()))
        }

        fn total(&mut self) -> &Reading {
            &self.1
        }
    }

    #[test]
    fn there_is_an_interval_however_short_the_time_is() {
        let now = Instant::now();
        let options = Options {
            interval: Duration::from_secs(1),
            format: Format::Json,
            end: Some(now),
            is_replay: false,
            names: Names::elsewhere(),
        };
        let mut intervals = 0;
        let count = |_, _: &mut dyn Source| {
            intervals += 1;
            Ok(())
        };
        follow(&mut Endless::default(), &options, &Signals::of(&[]).unwrap(), count).unwrap();
        assert_eq!(intervals, 1);
    }
}
