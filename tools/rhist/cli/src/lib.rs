// SPDX-License-Identifier: MIT OR Apache-2.0

//! The command `rhist`, as a library, so that its manual pages can be generated from its arguments.

// These macros panic if the output cannot be written.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

/// Prints a line on standard error. Ignores errors, since a full disk must not end the measurement.
macro_rules! say {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($arg)*);
    }};
}

pub mod command_line;
pub mod commands;
mod complete;
pub mod diagnostic;
pub mod options;
pub mod recipes;
mod run;
pub mod screen;
mod signals;

use std::ffi::OsStr;
use std::ffi::OsString;
use std::io;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use command_line::CommandLine;
use command_line::usage_status;
use diagnostic::Diagnostic;
use rhist_core::query;
use rhist_feeder::compiler;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let given: Vec<OsString> = std::env::args_os().collect();
    if given.first().is_some_and(|name| name == compiler::NAME) {
        return compiler::main(&given);
    }
    complete::run();
    let words = words(given.into_iter());
    let result = CommandLine::parse_from(&words)
        .map_err(anyhow::Error::from)
        .and_then(CommandLine::run);
    match result {
        Ok(code) => code,
        Err(error) => failed(&error, &words),
    }
}

/// Returns the words of the command line. Called as `rhist-exec`, which packages link to this
/// program until 1.0, it is `rhist exec`.
fn words(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<_> = given.collect();
    let name = words.first().and_then(|path| Path::new(path).file_name());
    if name == Some(OsStr::new("rhist-exec")) {
        words.splice(..1, ["rhist".into(), "exec".into()]);
    }
    words
}

/// Reports an error of a command line, and returns the exit status.
fn failed(error: &anyhow::Error, words: &[OsString]) -> ExitCode {
    // The reader has closed the pipe, which is not an error.
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    if let Some(error) = error.downcast_ref::<clap::Error>() {
        return usage(error, words);
    }
    match Diagnostic::of(error) {
        Some(diagnostic) => diagnostic.print(),
        None => diagnostic::complain(error),
    }
    // Errors of input files are wrapped, so a plain I/O error concerns the output.
    let is_unread = matches!(error.downcast_ref(), Some(query::Error::Io(..)));
    match error.is::<run::Failed>() || error.is::<io::Error>() || is_unread {
        true => ExitCode::FAILURE,
        false => ExitCode::from(usage_status(words)),
    }
}

/// Prints help, the version, or an error in the command line.
fn usage(error: &clap::Error, words: &[OsString]) -> ExitCode {
    match error.print().and_then(|()| io::stdout().flush()) {
        Err(error) => failed(&error.into(), words),
        Ok(()) if error.use_stderr() => ExitCode::from(usage_status(words)),
        Ok(()) => ExitCode::SUCCESS,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(is_broken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_called_rhist_exec_is_the_command_exec() {
        let words = |given: &[&str]| words(given.iter().map(OsString::from));
        assert_eq!(
            words(&["/usr/bin/rhist-exec", "-i", "x", "ls"]),
            ["rhist", "exec", "-i", "x", "ls"]
        );
        assert_eq!(words(&["rhist-exec"]), ["rhist", "exec"]);
        assert_eq!(
            words(&["/opt/rhist-exec/rhist", "doctor"]),
            ["/opt/rhist-exec/rhist", "doctor"]
        );
        assert_eq!(words(&[]), [""; 0]);
    }
}
