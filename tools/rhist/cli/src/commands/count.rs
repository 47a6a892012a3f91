// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist count`: counts events.

use std::process::ExitCode;

use rhist_core::query::Query;
use rhist_core::recipe::Count;

use crate::options::Common;
use crate::options::RunArgs;
use crate::run;
use crate::run::Measurement;

/// Arguments of `rhist count`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Event: sched:sched_switch, kprobe:FUNCTION, uprobe:FILE:FUNCTION
    #[arg(value_name = "EVENT")]
    pub event: String,
    /// Show the sum of this field
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub sum: Vec<String>,
    /// Show smallest, average and largest value of this field
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub stat: Vec<String>,
    /// Show the distribution of this field
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub dist: Vec<String>,
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
    let count = Count {
        sum: args.sum,
        stat: args.stat,
        dist: args.dist,
        ..Count::default()
    };
    Ok(Measurement::new(Query::count(&args.event, count)?, args.run, common))
}
