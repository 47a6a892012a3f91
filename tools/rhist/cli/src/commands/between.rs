// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist between`: measures the time between two events.

use std::process::ExitCode;

use rhist_core::query::Query;

use crate::options::Common;
use crate::options::RunArgs;
use crate::run;
use crate::run::Measurement;

/// Arguments of `rhist between`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Event with which the time begins
    #[arg(value_name = "A")]
    pub start: String,
    /// Event with which it ends
    #[arg(value_name = "B")]
    pub end: String,
    /// Keys that A and B have in common: FIELD, or FIELD_OF_A=FIELD_OF_B; by default common_pid,
    /// the running task
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub on: Vec<String>,
    /// Options of the measurement.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Measures, and prints the results.
pub fn run(args: Args, common: Common) -> anyhow::Result<ExitCode> {
    run::run(&measurement(args, common)?)
}

/// The measurement of these arguments.
pub fn measurement(args: Args, common: Common) -> anyhow::Result<Measurement> {
    let query = Query::between(&args.start, &args.end, &args.on)?;
    Ok(Measurement::new(query, args.run, common))
}
