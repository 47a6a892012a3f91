// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds the tracing directory, plans a question for it, and starts the run.

use std::io;
use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use rhist_core::cost;
use rhist_core::journal::Journals;
use rhist_core::plan::Plan;
use rhist_core::plan::Plans;
use rhist_core::run;
use rhist_core::run::Run;
use rhist_core::run::StartError;
use rhist_core::run::Wanted;
use rhist_core::table::Text;
use rhist_core::threads;
use rhist_core::tracefs::Backend;
use rhist_core::tracefs::ROOT_VARIABLE;
use rhist_core::tracefs::Tracefs;

use super::Measurement;
use super::Programs;
use crate::diagnostic;

/// Finds the tracing directory, and plans the question: see [`Measurement::plans()`].
pub fn prepare(measurement: &Measurement) -> anyhow::Result<(Tracefs, Plans)> {
    let tracefs = tracefs(measurement.query.backend)?;
    let plans = measurement.plans(&tracefs)?;
    Ok((tracefs, plans))
}

/// Finds the tracing directory for this choice of histograms; `None` for rhist's, if the module is
/// loaded.
pub fn tracefs(backend: Option<Backend>) -> anyhow::Result<Tracefs> {
    let root = std::env::var_os(ROOT_VARIABLE).filter(|root| !root.is_empty());
    let tracefs = Tracefs::find().map_err(|error| match (error.kind(), &root) {
        (io::ErrorKind::PermissionDenied, _) => {
            anyhow::anyhow!("tracing needs root, or the group that may use tracefs: try sudo")
        }
        (_, Some(root)) => anyhow::anyhow!("{ROOT_VARIABLE}={}: {error}", Text::from(root.as_encoded_bytes())),
        (_, None) => anyhow::anyhow!("{error}: mount -t tracefs tracefs /sys/kernel/tracing"),
    })?;
    match (backend, tracefs.backend()) {
        (Some(Backend::C), _) => Ok(tracefs.with_c()),
        (Some(Backend::Rhist), Backend::C) => bail!("the module is not loaded: modprobe rhist"),
        _ => Ok(tracefs),
    }
}

/// Prints the commands for the kernel, and the ones that undo them.
pub fn dry_run(tracefs: &Tracefs, plan: &Plan) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    for line in plan.shell(tracefs) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "# to undo it:")?;
    for line in plan.shell_undo(tracefs) {
        writeln!(out, "{line}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes objects of dead runs, then starts the first of these plans that the kernel accepts. The
/// triggers count when this returns.
pub fn start(
    measurement: &Measurement,
    tracefs: &Tracefs,
    plans: Plans,
    wanted: Wanted,
    programs: Option<Programs>,
) -> anyhow::Result<Run> {
    let journals = Journals::find();
    for (entries, error) in run::reap(tracefs, &journals, false).1 {
        say!(
            "rhist: cannot remove {}, left by another rhist: {error}",
            entries.id.instance()
        );
    }
    let command = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ");
    let run = Run::start_first(tracefs, &journals, plans, &command, wanted).and_then(|mut run| {
        if let Some(programs) = programs {
            if !measurement.query.counts_self {
                run.leave_out_children(&threads::own());
            }
            programs.warm_up(tracefs, &journals, &measurement.query, run.plan());
            run.set_programs(Box::new(programs));
        }
        // Before the triggers count, since the measurement causes hits. If it fails, the cost stays
        // unknown.
        if let Ok(cost) = cost::measure(tracefs, &journals, run.plan()) {
            run.set_cost(cost);
        }
        run.begin()?;
        Ok(run)
    });
    run.map_err(|error| match error {
        StartError::Step(why) => diagnostic::refused(&why, &measurement.query.written()).into(),
        error => error.into(),
    })
}
