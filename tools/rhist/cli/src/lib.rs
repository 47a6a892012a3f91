// SPDX-License-Identifier: MIT OR Apache-2.0

//! The command `rhist`, as a library, so that its manual pages can be generated from its arguments.

// They panic if nothing can be printed.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

/// Prints a line on standard error, if that is possible: a full disk behind it must not end what goes on.
macro_rules! say {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($arg)*);
    }};
}

pub mod args;
pub mod ask;
pub mod commands;
mod complete;
pub mod diagnostic;
mod measure;
mod probe;
pub mod recipes;
pub mod screen;
mod signals;
mod top;

use std::io;
use std::process::ExitCode;

use clap::Parser;

/// What the program exits with if what it was given is wrong.
const USAGE: u8 = 2;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    complete::run();
    let args = args::Args::parse();
    match commands::run(args) {
        Ok(code) => code,
        // Who reads the output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            match error.downcast_ref::<diagnostic::Diagnostic>() {
                Some(diagnostic) => diagnostic.print(),
                None => say!("rhist: {error:#}"),
            }
            match error.downcast_ref::<measure::Failed>() {
                Some(_) => ExitCode::FAILURE,
                None => ExitCode::from(USAGE),
            }
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(is_broken))
}
