// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors as a compiler shows them: the text, the place, and what was probably meant.

use std::fmt;
use std::fs;
use std::io::IsTerminal;
use std::ops::Range;

use annotate_snippets::AnnotationKind;
use annotate_snippets::Level;
use annotate_snippets::Renderer;
use annotate_snippets::Snippet;
use rhist_core::problem::InFile;
use rhist_core::problem::Problem;
use rhist_core::problem::floor;
use rhist_core::problem::named;
use rhist_core::suggest;
use rhist_core::table::Text;
use rhist_core::tracefs::Tracefs;
use rhist_core::tracefs::WriteError;
use rhist_core::tracefs::error_log::LogEntry;
use rhist_core::tracefs::events::EventName;
use rhist_core::tracefs::events::ResolveError;

use crate::probe;

/// What is wrong with a text. As an [`anyhow::Error`] it is shown by `main`.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Where the text was written: an option, the name of an argument, or a file of tracefs.
    origin: String,
    source: String,
    problem: Problem,
    /// The number of the line, if the text is one of a file.
    line: Option<usize>,
}

/// A text that somebody wrote.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// Where: an option, or the name of an argument.
    pub origin: &'a str,
    /// The text.
    pub text: &'a str,
}

impl Diagnostic {
    /// A problem of the text `source`.
    pub fn new(origin: impl Into<String>, source: impl Into<String>, problem: Problem) -> Self {
        Self {
            origin: origin.into(),
            source: source.into(),
            problem,
            line: None,
        }
    }

    /// A problem of a file.
    pub fn in_file(found: InFile) -> Self {
        Self {
            origin: found.path.display().to_string(),
            source: found.source,
            problem: found.problem,
            line: Some(found.line),
        }
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The text that it is about.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// As lines for people, with a newline at the end.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let (mut source, mut at) = safe(&self.source, &self.problem.at);
        // As it stands on the command line.
        if self.origin.starts_with('-') && self.line.is_none() {
            let option = escape(&self.origin) + " ";
            at = at.start + option.len()..at.end + option.len();
            source = option + &source;
        }
        let annotation = AnnotationKind::Primary.span(at);
        let annotation = match self.problem.label.as_str() {
            "" => annotation,
            label => annotation.label(escape(label)),
        };
        let is_file = self.origin.starts_with('/') || self.line.is_some();
        let file = is_file.then(|| escape(&self.origin));
        // A text that is no line of a file has one line, so its number says nothing.
        let snippet = Snippet::source(source)
            .path(file)
            .line_start(self.line.unwrap_or(1))
            .line_numbering(self.line.is_some())
            .annotation(annotation);
        let group = Level::ERROR
            .primary_title(escape(&self.problem.title))
            .element(snippet)
            .elements(self.problem.help.iter().map(|help| Level::HELP.message(escape(help))));
        renderer.render(&[group]) + "\n"
    }

    /// Writes it to stderr, with colours if that is a terminal and nobody objects.
    pub fn print(&self) {
        let colour =
            std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        say!("{}", self.render(colour).trim_end_matches('\n'));
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", escape(&self.origin), escape(&self.problem.to_string()))
    }
}

impl std::error::Error for Diagnostic {}

/// Nothing that a terminal would interpret.
fn escape(text: &str) -> String {
    Text::from(text).to_string()
}

/// Bytes of a text that are marked.
const MOST_MARKED: usize = 100;

/// Escapes a text, and says where a part of it is then.
fn safe(source: &str, at: &Range<usize>) -> (String, Range<usize>) {
    let end = at.end.min(source.len());
    let start = at.start.min(end);
    let part = |range: Range<usize>| escape(source.get(range).unwrap_or_default());
    let mut text = part(0..start);
    let from = text.len();
    text += &part(start..end);
    let to = text.len();
    text += &part(end..source.len());
    // Something to point at behind the end.
    if from == text.len() {
        text.push(' ');
    }
    // To point at the begin of a long one is enough, and the rest need not be shown.
    let to = floor(&text, to.min(from + MOST_MARKED));
    (text, from..to.max(from + 1))
}

/// The event that a text means.
pub fn resolve(tracefs: &Tracefs, origin: &str, text: &str) -> anyhow::Result<EventName> {
    tracefs.resolve(text).map_err(|error| match error {
        ResolveError::Name(problem) => Diagnostic::new(origin, text, problem).into(),
        ResolveError::Io(_) => error.into(),
    })
}

/// Turns what a check of `rhist_core::grammar` found in a text into an error.
pub fn checked(origin: &str, text: &str, result: Result<(), Problem>) -> anyhow::Result<()> {
    result.map_err(|problem| Diagnostic::new(origin, text, problem).into())
}

/// A name that is none of those that exist: `what` is `recipe`, or `run`.
pub fn unknown_name<'a>(origin: &str, name: &str, what: &str, names: impl IntoIterator<Item = &'a str>) -> Diagnostic {
    let problem = Problem::new(0..name.len(), format!("there is no {what} {}", named(name)));
    let nearest = suggest::near(name, names);
    let problem = match nearest.is_empty() {
        true => problem.help(match what {
            "recipe" => "rhist ls recipes lists them, rhist --help the other commands".to_owned(),
            _ => format!("rhist ls {what}s lists them"),
        }),
        false => problem.near(&nearest),
    };
    Diagnostic::new(origin, name, problem)
}

/// What the kernel says of a probe of a kind that it was built without.
const NO_SUCH_PROBES: &str = "No matching dynamic event type";

/// Why the kernel refused a command. If the place is in one of the texts that the command was made of, that is shown,
/// otherwise the command.
pub fn refused(error: &WriteError, written: &[Written<'_>]) -> Diagnostic {
    if let Some(diagnostic) = no_function(error, || fs::read_to_string("/proc/kallsyms").unwrap_or_default()) {
        return diagnostic;
    }
    let file = error.path.display().to_string();
    let Some(entry) = &error.log else {
        let text = error.error.to_string();
        let reason = text.split(" (os error").next().unwrap_or_default();
        let problem = Problem::new(
            0..error.text.trim_end().len(),
            format!("the kernel refused this: {reason}"),
        );
        return Diagnostic::new(file, error.text.trim_end(), problem);
    };
    let title = format!("the kernel refused this: {}", entry.sentence);
    if entry.sentence == NO_SUCH_PROBES {
        let problem = Problem::new(0..error.text.trim_end().len(), title);
        let problem = problem.help("this kernel has no such probes: rhist doctor tells which it has");
        return Diagnostic::new(file, error.text.trim_end(), problem);
    }
    for part in written {
        if let Some(position) = entry.position_in(part.text) {
            let at = LogEntry::word_at(part.text, position);
            return Diagnostic::new(part.origin, part.text, Problem::new(at, title));
        }
    }
    let at = LogEntry::word_at(&entry.command, entry.position);
    Diagnostic::new(file, entry.command.as_str(), Problem::new(at, title))
}

/// If a probe was refused whose function is not there, the ones that may be meant. `symbols` is what `/proc/kallsyms` has.
fn no_function(error: &WriteError, symbols: impl FnOnce() -> String) -> Option<Diagnostic> {
    if !error.path.ends_with("dynamic_events") {
        return None;
    }
    let definition = error.text.trim_end();
    let name = probe::function(definition)?;
    let near = probe::near_functions(name, &symbols());
    if near.is_empty() {
        return None;
    }
    let at = definition.find(name)?;
    let problem = Problem::new(at..at + name.len(), format!("the kernel has no function {name}"));
    Some(Diagnostic::new(
        error.path.display().to_string(),
        definition,
        problem.near(&near),
    ))
}

#[cfg(test)]
mod tests;
