// SPDX-License-Identifier: MIT OR Apache-2.0

//! What each command does.

use std::process::ExitCode;

use anyhow::bail;

use crate::args::Args;
use crate::args::Command;

/// Runs a command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        None => bail!("there is no command"),
        Some(Command::Recipe(words)) => bail!("there is no command {:?}", words[0]),
    }
}
