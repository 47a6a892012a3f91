// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs a measurement from its start to its end: opens the run, reads intervals, and hands them on.

mod measurement;
mod open;
mod programs;

use std::fmt;
use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::bail;
use rhist_core::journal::Journals;
use rhist_core::plan::Plan;
use rhist_core::question::Reading;
use rhist_core::question::Source;
use rhist_core::run;
use rhist_core::run::Run;
use rhist_core::run::Wanted;
use rhist_core::sink::Sink;
use rhist_core::tracefs::Tracefs;

use crate::screen::Printer;
use crate::screen::lines;
use crate::signals::GRACE;
use crate::signals::Guard;
use crate::signals::Signals;
use crate::signals::ends;

pub use measurement::Measurement;
pub use open::dry_run;
pub use open::prepare;
pub use open::start;
pub use open::tracefs;
pub use programs::Programs;
pub use programs::function;
pub use programs::lacks;

/// Measures, and prints the results.
pub fn run(measurement: &Measurement) -> anyhow::Result<ExitCode> {
    let (tracefs, plans) = prepare(measurement)?;
    if measurement.common.dry_run {
        return dry_run(&tracefs, &plans.best);
    }
    let mut printer = Printer::new(
        &tracefs,
        &measurement.common,
        !measurement.query.keys().is_empty(),
        measurement.duration,
    );
    go(measurement, &tracefs, &plans.best, &mut printer)
}

/// Context of errors after the beginning of a run, in the kernel or in the output.
#[derive(Clone, Copy, Debug)]
pub struct Failed;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the measurement was ended")
    }
}

/// Measures until the time is over, or a signal arrives. `first` is the best plan before threads
/// exist for it.
pub fn go(
    measurement: &Measurement,
    tracefs: &Tracefs,
    first: &Plan,
    sink: &mut dyn Sink<Error = anyhow::Error>,
) -> anyhow::Result<ExitCode> {
    let signals = Signals::new().context("signals")?;
    let guard = guard(tracefs, ends(), measurement.common.keep, sink.patience())?;
    let programs = Programs::start(tracefs, first, measurement.common.quiet);
    // Plans only now, when the threads of the guard, the sink and the names exist, so that the
    // measurement leaves them out.
    let plans = measurement.plans(tracefs)?;
    sink.announce(&plans.best)?;
    let wanted = match measurement.interval {
        Some(_) => Wanted::Intervals,
        None => Wanted::Totals,
    };
    let mut run = start(measurement, tracefs, plans, wanted, programs)?;
    let (reading, seconds) = watch(measurement, &mut run, &signals, sink).context(Failed)?;
    guard.goes_on();
    finish(run, tracefs, measurement.common.keep).context(Failed)?;
    guard.goes_on();
    sink.end(&reading, seconds).context(Failed)?;
    Ok(ExitCode::SUCCESS)
}

/// Makes sure that a signal removes the run, or keeps it if requested, even if this process is
/// blocked.
pub fn guard(tracefs: &Tracefs, signals: &[i32], keep: bool, patience: Duration) -> anyhow::Result<Guard> {
    let tracefs = tracefs.clone();
    let leave = move || run::abandon(&tracefs, &Journals::find(), keep);
    Guard::start(signals, GRACE + patience, leave).context("signals")
}

/// Reads intervals, and passes them to the sink until the end. Returns the total, and its length in
/// seconds.
fn watch(
    measurement: &Measurement,
    run: &mut Run,
    signals: &Signals,
    sink: &mut dyn Sink<Error = anyhow::Error>,
) -> anyhow::Result<(Reading, f64)> {
    let begin = Instant::now();
    sink.begin(run.plan())?;
    let end = measurement
        .duration
        .map(|seconds| begin + Duration::from_secs_f64(seconds));
    let Some(step) = measurement.interval.map(Duration::from_secs_f64) else {
        while !signals.wait(end).context("signals")? && end.is_none_or(|end| Instant::now() < end) {}
        let reading = run.reading().map_err(anyhow::Error::from_boxed)?;
        // Counts from the start of the triggers: they are started later than this function is
        // called, because the kernel waits for running hits.
        let from = run.beginning().table.time.monotonic_ns;
        let seconds = reading.table.time.monotonic_ns.saturating_sub(from) as f64 / 1e9;
        return Ok((reading, seconds));
    };
    let mut next = begin + step;
    let mut seconds = 0.0;
    loop {
        let until = end.map_or(next, |end| end.min(next));
        let is_enough = signals.wait(Some(until)).context("signals")?;
        let now = Instant::now();
        let is_over = is_enough || end.is_some_and(|end| now >= end);
        if !is_over && now < next {
            continue;
        }
        let interval = match is_over && !measurement.common.keep {
            true => run.last(),
            // A run that is kept goes on counting.
            false => run.interval(),
        };
        let Some(interval) = interval.map_err(anyhow::Error::from_boxed)? else {
            bail!("the intervals have ended");
        };
        for note in &interval.notes {
            say!("rhist: {}", lines(note));
        }
        seconds += interval.seconds();
        sink.interval(&interval)?;
        if is_over {
            return Ok((run.total().clone(), seconds));
        }
        // If this machine is too slow, an interval is longer.
        while next <= now {
            next += step;
        }
    }
}

/// Prints what [`Run::last()`] notes, for a page that shows no last interval.
pub fn check_sum(run: &mut Run) {
    if !run.plan().question.has_exact_intervals {
        return;
    }
    match run.last() {
        Ok(interval) => {
            let notes = interval.map(|interval| interval.notes);
            notes.iter().flatten().for_each(|note| say!("rhist: {}", lines(note)));
        }
        Err(why) => say!(
            "rhist: the sum of the intervals was not compared with the total: {}",
            lines(&why.to_string())
        ),
    }
}

/// Removes the run from the kernel, or prints how to remove it.
pub fn finish(run: Run, tracefs: &Tracefs, keep: bool) -> anyhow::Result<()> {
    if !keep {
        return run
            .stop()
            .context("cannot remove everything; the next rhist will try again");
    }
    let lines = run.plan().shell_undo(tracefs);
    run.keep().context("the journal")?;
    say!("rhist: the triggers stay in the kernel; to remove them: rhist clean, or:");
    for line in lines {
        say!("    {line}");
    }
    Ok(())
}
