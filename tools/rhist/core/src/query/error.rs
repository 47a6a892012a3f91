// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors of questions.

use std::fmt;
use std::io;

use crate::plan;
use crate::problem::Problem;
use crate::problem::named;
use crate::suggest;
use crate::tracefs::events::ResolveError;

/// Reason why a question cannot be asked, or not on this machine.
#[derive(Debug)]
pub enum Error {
    /// A fault in a text of the user.
    Text {
        /// Origin: an option as on the command line, or the name of an argument.
        origin: &'static str,
        /// Contents as given.
        text: String,
        /// The fault, relative to the text.
        problem: Box<Problem>,
    },
    /// An option has a value that it cannot have.
    Value {
        /// The option, as on the command line.
        option: &'static str,
        /// Value as given.
        text: String,
        /// One sentence.
        why: String,
    },
    /// The question cannot be planned for this machine.
    Plan(plan::Error),
    /// A file cannot be read.
    Io(String, io::Error),
    /// Another reason, as a sentence.
    Other(String),
}

/// A text that the user wrote.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// Origin: an option, or the name of an argument.
    pub origin: &'a str,
    /// Contents as given.
    pub text: &'a str,
}

impl Error {
    /// A fault in the text of an option or an argument.
    pub fn text(origin: &'static str, text: &str, problem: Problem) -> Self {
        Self::Text {
            origin,
            text: text.to_owned(),
            problem: Box::new(problem),
        }
    }

    /// A reason without a position.
    pub fn other(why: impl Into<String>) -> Self {
        Self::Other(why.into())
    }

    /// A name that does not exist. Suggests similar ones of `names`. `what` is `recipe` or `run`.
    pub fn unknown<'a>(origin: &'static str, name: &str, what: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let problem = Problem::new(0..name.len(), format!("unknown {what} {}", named(name)));
        let nearest = suggest::near(name, names);
        let problem = match nearest.is_empty() {
            true => problem.help(match what {
                "recipe" => "rhist ls recipes lists them, rhist --help the other commands".to_owned(),
                _ => format!("rhist ls {what}s lists them"),
            }),
            false => problem.near(&nearest),
        };
        Self::text(origin, name, problem)
    }

    /// The name of an event could not be resolved.
    pub(super) fn event(origin: &'static str, text: &str, error: ResolveError) -> Self {
        match error {
            ResolveError::Name(problem) => Self::text(origin, text, problem),
            ResolveError::Io(_) => Self::other(error.to_string()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { origin, problem, .. } => write!(f, "{origin}: {problem}"),
            Self::Value { option, why, .. } => write!(f, "{option}: {why}"),
            Self::Plan(error) => error.fmt(f),
            Self::Io(path, error) => write!(f, "{path}: {error}"),
            Self::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

impl From<plan::Error> for Error {
    fn from(error: plan::Error) -> Self {
        Self::Plan(error)
    }
}
