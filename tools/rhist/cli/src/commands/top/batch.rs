// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints lines of JSON, for programs, if the output is not a terminal.

use std::io;
use std::time::Instant;

use rhist_core::question::Reading;
use rhist_core::question::Source;

use super::options::Options;
use crate::options::Format;
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
        if is_over {
            break;
        }
        next += options.interval;
        let until = options.end.map_or(next, |end| next.min(end));
        // A replay does not wait.
        let is_enough = signals.wait(Some(if options.is_replay { Instant::now() } else { until }))?;
        // Read once more, however long the first reading takes: an interval needs two.
        is_over = is_enough || options.end.is_some_and(|end| Instant::now() >= end);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::time::Duration;

    use rhist_core::names::Names;
    use rhist_core::question::Question;

    use super::*;

    struct Endless(Question);

    impl Source for Endless {
        fn question(&self) -> &Question {
            &self.0
        }

        fn read(&mut self) -> Result<Option<Reading>, Box<dyn Error + Send + Sync>> {
            Ok(Some(Reading::default()))
        }
    }

    #[test]
    fn an_interval_has_two_readings() {
        let now = Instant::now();
        let options = Options {
            interval: Duration::from_secs(1),
            format: Format::Json,
            end: Some(now),
            is_replay: false,
            names: Names::elsewhere(),
        };
        let mut readings = 0;
        let count = |_| {
            readings += 1;
            Ok(())
        };
        follow(
            &mut Endless(Question::default()),
            &options,
            &Signals::of(&[]).unwrap(),
            count,
        )
        .unwrap();
        assert_eq!(readings, 2);
    }
}
