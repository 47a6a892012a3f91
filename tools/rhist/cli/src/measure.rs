// SPDX-License-Identifier: MIT OR Apache-2.0

//! A measurement from its start to its end: what is shown when.

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
use crate::ask::Ask;
use crate::diagnostic;
use crate::screen::Printer;
use crate::signals::GRACE;
use crate::signals::Guard;
use crate::signals::Signals;
use crate::signals::ends;

/// Where what was measured goes: to the screen, or to a file.
pub trait Sink {
    /// The run has begun.
    fn begin(&mut self, plan: &Plan) -> anyhow::Result<()>;
    /// How long it may take what it has still to do when the run is over.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
    /// The run is about to begin: the kernel takes some time for each trigger, and people want to see that something happens.
    fn announce(&self, _: &Plan) -> anyhow::Result<()> {
        Ok(())
    }
    /// An interval is over.
    fn interval(&mut self, interval: &Interval) -> anyhow::Result<()>;
    /// The run is over.
    fn end(&mut self, reading: &Reading, seconds: f64) -> anyhow::Result<()>;
}

/// Measures, and shows it on the screen.
pub fn run(ask: &Ask) -> anyhow::Result<ExitCode> {
    let (tracefs, plans) = prepare(ask)?;
    if ask.common.dry_run {
        return dry_run(&tracefs, &plans.best);
    }
    go(ask, &tracefs, &mut Printer::new(ask, &tracefs))
}

/// Finds the tracing directory, and plans what is asked: see [`Ask::plans`].
pub fn prepare(ask: &Ask) -> anyhow::Result<(Tracefs, Plans)> {
    let tracefs = tracefs(ask.run.backend)?;
    let plans = ask.plans(&tracefs)?;
    Ok((tracefs, plans))
}

/// The tracing directory, and whose histograms are to be used.
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

/// Prints what would be written, and how to undo it.
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

/// Starts the first of these runs that the kernel does not refuse, after what dead ones have left was removed. When this
/// returns, it counts.
pub fn start(ask: &Ask, tracefs: &Tracefs, plans: Plans) -> anyhow::Result<Run> {
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
        // Before it counts: what is done for that is not to be counted. If it cannot be measured, no cost is shown.
        if let Ok(cost) = cost::measure(tracefs, &journals, run.plan()) {
            run.set_cost(cost);
        }
        run.begin()?;
        Ok(run)
    });
    run.map_err(|error| match error {
        StartError::Step(why) => diagnostic::refused(&why, &ask.written()).into(),
        error => error.into(),
    })
}

/// As the context of an error: something went wrong after the run had begun, with the kernel or with where the output goes.
#[derive(Clone, Copy, Debug)]
pub struct Failed;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the measurement was ended")
    }
}

/// Measures until the time is over, or a signal comes.
pub fn go(ask: &Ask, tracefs: &Tracefs, sink: &mut dyn Sink) -> anyhow::Result<ExitCode> {
    let signals = Signals::new().context("signals")?;
    let guard = guard(tracefs, ends(), ask.common.keep, sink.patience())?;
    // Only now: all threads are there whose doings are no part of what is measured, also those of the guard and of the sink.
    let plans = ask.plans(tracefs)?;
    sink.announce(&plans.best)?;
    let mut run = start(ask, tracefs, plans)?;
    let begin = run.beginning().table.time;
    let reading = watch(ask, &mut run, &signals, sink).context(Failed)?;
    guard.goes_on();
    // Since its triggers count: start() returns later, for the kernel waits then for hits that are at work.
    let seconds = reading.table.time.monotonic_ns.saturating_sub(begin.monotonic_ns) as f64 / 1e9;
    finish(run, tracefs, ask.common.keep).context(Failed)?;
    guard.goes_on();
    sink.end(&reading, seconds).context(Failed)?;
    Ok(ExitCode::SUCCESS)
}

/// Sees to it that a signal leaves nothing in the kernel, or what is to be kept, also if this process is kept waiting.
pub fn guard(tracefs: &Tracefs, signals: &[i32], keep: bool, patience: Duration) -> anyhow::Result<Guard> {
    let tracefs = tracefs.clone();
    let leave = move || run::abandon(&tracefs, &Journals::find(), keep);
    Guard::start(signals, GRACE + patience, leave).context("signals")
}

/// Reads and shows intervals until the end. Returns the last reading.
fn watch(ask: &Ask, run: &mut Run, signals: &Signals, sink: &mut dyn Sink) -> anyhow::Result<Reading> {
    let begin = Instant::now();
    sink.begin(run.plan())?;
    let mut last = run.beginning();
    let end = ask.run.duration.map(|seconds| begin + Duration::from_secs_f64(seconds));
    let step = ask.run.interval.map(Duration::from_secs_f64);
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
            // If this machine could not keep up, an interval is longer.
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

/// Removes the run from the kernel, or says how to do that.
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

/// A time as people write it, in nanoseconds.
pub fn nanoseconds(text: &str) -> anyhow::Result<u64> {
    let time = quantity::parse(text, Unit::Nanoseconds)?;
    u64::try_from(time).with_context(|| format!("{text:?} is no time"))
}
