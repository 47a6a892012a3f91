// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs a measurement from its start to its end.

use std::fmt;
use std::io;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::bail;
use rhist_core::cost;
use rhist_core::journal::Journals;
use rhist_core::plan::Plan;
use rhist_core::plan::Plans;
use rhist_core::quantity;
use rhist_core::question::Backend;
use rhist_core::question::Interval;
use rhist_core::question::Reading;
use rhist_core::run;
use rhist_core::run::Run;
use rhist_core::run::StartError;
use rhist_core::table::Unit;
use rhist_core::tracefs::ROOT_VARIABLE;
use rhist_core::tracefs::Tracefs;

use crate::args::BackendArg;
use crate::diagnostic;
use crate::query::Query;
use crate::screen::Printer;
use crate::signals::GRACE;
use crate::signals::Guard;
use crate::signals::Signals;
use crate::signals::ends;

/// Consumer of a measurement: the screen, a file, or a receiver.
pub trait Sink {
    /// Called after the run has begun.
    fn begin(&mut self, plan: &Plan) -> anyhow::Result<()>;
    /// Time that the sink may need after the end of the run.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
    /// Called before the run begins, to tell people that something happens: the kernel takes some
    /// time for each trigger.
    fn announce(&self, _: &Plan) -> anyhow::Result<()> {
        Ok(())
    }
    /// Called after each interval.
    fn interval(&mut self, interval: &Interval) -> anyhow::Result<()>;
    /// Called at the end of the run with its totals.
    fn end(&mut self, reading: &Reading, seconds: f64) -> anyhow::Result<()>;
}

/// Measures, and prints the results.
pub fn run(query: &Query) -> anyhow::Result<ExitCode> {
    let (tracefs, plans) = prepare(query)?;
    if query.common.dry_run {
        return dry_run(&tracefs, &plans.best);
    }
    go(query, &tracefs, &mut Printer::new(query, &tracefs))
}

/// Finds the tracing directory, and plans the question: see [`Query::plans`].
pub fn prepare(query: &Query) -> anyhow::Result<(Tracefs, Plans)> {
    let tracefs = tracefs(query.run.backend)?;
    let plans = query.plans(&tracefs)?;
    Ok((tracefs, plans))
}

/// Finds the tracing directory for this choice of histograms.
pub fn tracefs(backend: BackendArg) -> anyhow::Result<Tracefs> {
    let is_named = std::env::var_os(ROOT_VARIABLE).is_some_and(|root| !root.is_empty());
    let tracefs = Tracefs::find().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            anyhow::anyhow!("only root, and the group that tracefs is given to, may trace: try sudo")
        }
        _ if is_named => anyhow::anyhow!("{error}: {ROOT_VARIABLE} names it"),
        _ => anyhow::anyhow!("{error}: mount -t tracefs tracefs /sys/kernel/tracing"),
    })?;
    match (backend, tracefs.backend()) {
        (BackendArg::C, _) => Ok(tracefs.with_c()),
        (BackendArg::Rhist, Backend::C) => bail!("the module is not loaded: modprobe rhist"),
        _ => Ok(tracefs),
    }
}

/// Prints the commands for the kernel, and the ones that undo them.
pub fn dry_run(tracefs: &Tracefs, plan: &Plan) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    for line in plan.shell(tracefs) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "# and to undo it:")?;
    for line in plan.shell_undo(tracefs) {
        writeln!(out, "{line}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes objects of dead runs, then starts the first of these plans that the kernel accepts. The
/// triggers count when this returns.
pub fn start(query: &Query, tracefs: &Tracefs, plans: Plans) -> anyhow::Result<Run> {
    let journals = Journals::find();
    for (entries, error) in run::reap(tracefs, &journals, false).1 {
        say!(
            "rhist: {}, which another rhist has left, could not be removed: {error}",
            entries.id.instance()
        );
    }
    let command = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ");
    let run = Run::start_first(tracefs, &journals, plans, &command).and_then(|mut run| {
        // Before the triggers count, since the measurement causes hits. If it fails, the cost stays
        // unknown.
        if let Ok(cost) = cost::measure(tracefs, &journals, run.plan()) {
            run.set_cost(cost);
        }
        run.begin()?;
        Ok(run)
    });
    run.map_err(|error| match error {
        StartError::Step(why) => diagnostic::refused(&why, &query.written()).into(),
        error => error.into(),
    })
}

/// Context of errors after the beginning of a run, in the kernel or in the output.
#[derive(Clone, Copy, Debug)]
pub struct Failed;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the measurement was ended")
    }
}

/// Measures until the time is over, or a signal arrives.
pub fn go(query: &Query, tracefs: &Tracefs, sink: &mut dyn Sink) -> anyhow::Result<ExitCode> {
    let signals = Signals::new().context("signals")?;
    let guard = guard(tracefs, ends(), query.common.keep, sink.patience())?;
    // Plans only now, when the threads of the guard and the sink exist, so that the measurement
    // leaves them out.
    let plans = query.plans(tracefs)?;
    sink.announce(&plans.best)?;
    let mut run = start(query, tracefs, plans)?;
    let begin = run.beginning().table.time;
    let reading = watch(query, &mut run, &signals, sink).context(Failed)?;
    guard.goes_on();
    // Counts from the start of the triggers: start() returns later, because the kernel waits for
    // running hits.
    let seconds = reading.table.time.monotonic_ns.saturating_sub(begin.monotonic_ns) as f64 / 1e9;
    finish(run, tracefs, query.common.keep).context(Failed)?;
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

/// Reads intervals, and passes them to the sink until the end. Returns the last reading.
fn watch(query: &Query, run: &mut Run, signals: &Signals, sink: &mut dyn Sink) -> anyhow::Result<Reading> {
    let begin = Instant::now();
    sink.begin(run.plan())?;
    let mut last = run.beginning();
    let end = query
        .run
        .duration
        .map(|seconds| begin + Duration::from_secs_f64(seconds));
    let step = query.run.interval.map(Duration::from_secs_f64);
    let mut next = step.map(|step| begin + step);
    loop {
        let until = [end, next].into_iter().flatten().min();
        let is_enough = signals.wait(until).context("signals")?;
        let mut reading = run.reading().map_err(anyhow::Error::from_boxed)?;
        let now = Instant::now();
        let is_over = is_enough || end.is_some_and(|end| now >= end);
        if let (Some(step), Some(due)) = (step, next.as_mut())
            && (is_over || now >= *due)
        {
            sink.interval(&reading.whole_since(last))?;
            // If this machine is too slow, an interval is longer.
            while *due <= now {
                *due += step;
            }
            last = reading;
        } else if is_over {
            last = reading;
        }
        if is_over {
            return Ok(last);
        }
    }
}

/// Removes the run from the kernel, or prints how to remove it.
pub fn finish(run: Run, tracefs: &Tracefs, keep: bool) -> anyhow::Result<()> {
    if !keep {
        return run
            .stop()
            .context("not all could be removed; the next rhist will try again");
    }
    let lines = run.plan().shell_undo(tracefs);
    run.keep().context("the journal")?;
    say!("rhist: all of it was left in the kernel; rhist clean removes it, or:");
    for line in lines {
        say!("    {line}");
    }
    Ok(())
}

/// Parses a time, in nanoseconds.
pub fn nanoseconds(text: &str) -> anyhow::Result<u64> {
    let time = quantity::parse(text, Unit::Nanoseconds)?;
    u64::try_from(time).with_context(|| format!("{text:?} is no time"))
}
