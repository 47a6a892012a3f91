// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist check`: checks a configuration against this machine.

use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use rhist_core::plan::Id;
use rhist_core::quantity;
use rhist_export::push;
use rhist_export::push::Environment;
use rhist_export::service::Config;
use rhist_export::service::ConfigError;
use rhist_export::service::Planner;
use rhist_export::service::PushSettings;

use super::planner::ConfigPlanner;
use crate::diagnostic;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::USAGE;
use crate::run;
use crate::screen::plain;

/// Default folder of the configuration.
pub const FOLDER: &str = "/etc/rhist";

/// Arguments of `rhist check`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Files of a configuration; by default /etc/rhist/*.toml
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Checks the files, and prints the faults, or that all is well.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = match args.files.as_slice() {
        [] => Config::read_folder(Path::new(FOLDER)),
        files => Config::read(files),
    };
    let config = match config {
        Ok(config) => config,
        Err(error) => return refused(error),
    };
    push_settings(&config)?;
    // Any configuration needs a tracing directory.
    run::tracefs(None)?;
    let planner = ConfigPlanner::default();
    let mut is_wrong = false;
    for wanted in &config.histograms {
        if let Err(problem) = planner.plan(wanted, &Id::example()) {
            Diagnostic::in_file(*problem).print();
            is_wrong = true;
        }
    }
    if is_wrong {
        return Ok(ExitCode::from(USAGE));
    }
    if config.histograms.is_empty() {
        let files: Vec<String> = args.files.iter().map(|file| plain(&file.to_string_lossy())).collect();
        let place = if files.is_empty() { FOLDER } else { &files.join(", ") };
        writeln!(io::stdout(), "no histograms are configured in {place}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let count = quantity::things(config.histograms.len() as u64, "histograms");
    writeln!(io::stdout(), "{count}: this machine supports all of them")?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the faults in files; fails if they cannot be read.
fn refused(error: ConfigError) -> anyhow::Result<ExitCode> {
    match error {
        // Wrapped in a message, since a plain I/O error counts as an error of the output.
        ConfigError::Io(path, error) => Err(anyhow::anyhow!("{error}")).with_context(|| path.display().to_string()),
        ConfigError::Problems(problems) => {
            for problem in problems {
                Diagnostic::in_file(problem).print();
            }
            Ok(ExitCode::from(USAGE))
        }
    }
}

/// Settings for pushing, completed by the environment. `None` if the configuration does not push.
pub fn push_settings(config: &Config) -> Result<Option<PushSettings>, push::Error> {
    let get = |name: &str| std::env::var(name).ok();
    let destination = config.push.as_ref();
    destination
        .map(|push| push.settings(&Environment::new(&get)))
        .transpose()
}

/// Reads the configuration of a folder. On a fault, prints it and returns `None`.
pub fn read(folder: &Path) -> Option<Config> {
    match Config::read_folder(folder) {
        Ok(config) => Some(config),
        Err(error) => {
            if let Err(error) = refused(error) {
                diagnostic::complain(&error);
            }
            None
        }
    }
}
