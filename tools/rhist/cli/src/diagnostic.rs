// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors in the style of a compiler: the text, the position, and a suggestion.

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
use rhist_core::query;
use rhist_core::query::Written;
use rhist_core::query::probe;
use rhist_core::table::Text;
use rhist_core::tracefs::Tracefs;
use rhist_core::tracefs::WriteError;
use rhist_core::tracefs::error_log::LogEntry;
use rhist_core::tracefs::events::EventName;
use rhist_core::tracefs::events::ResolveError;

use crate::screen::lines;

/// Exit status for invalid input.
pub const USAGE: u8 = 2;

/// An error in a text. `main` prints it if it is the cause of an [`anyhow::Error`].
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Origin of the text: an option, the name of an argument, or a file of tracefs.
    origin: String,
    source: String,
    problem: Problem,
    /// Line number, if the text is part of a file.
    line: Option<usize>,
}

impl Diagnostic {
    /// Creates an error in the text `source`.
    pub fn new(origin: impl Into<String>, source: impl Into<String>, problem: Problem) -> Self {
        Self {
            origin: origin.into(),
            source: source.into(),
            problem,
            line: None,
        }
    }

    /// Creates an error in a file.
    pub fn in_file(found: InFile) -> Self {
        Self {
            origin: found.path.display().to_string(),
            source: found.source,
            problem: found.problem,
            line: Some(found.line),
        }
    }

    /// Finds an error in a text among the causes of an error.
    pub fn of(error: &anyhow::Error) -> Option<Self> {
        if let Some(query::Error::Text { origin, text, problem }) = error.downcast_ref() {
            return Some(Self::new(*origin, text, Problem::clone(problem)));
        }
        error.downcast_ref().cloned()
    }

    /// The fault, relative to the text.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Formats the error for people, with a newline at the end.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let (mut source, mut at) = safe(&self.source, &self.problem.at);
        // Shows the option as on the command line.
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
        // A text outside of a file is a single line, so its number is useless.
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

    /// Prints it on stderr, in colour if that is a terminal and `NO_COLOR` is not set.
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

/// Escapes characters that a terminal would interpret.
fn escape(text: &str) -> String {
    Text::from(text).to_string()
}

/// Limit of the marked part, in bytes.
const MOST_MARKED: usize = 100;

/// Escapes a text, and translates a range of it.
fn safe(source: &str, at: &Range<usize>) -> (String, Range<usize>) {
    let end = at.end.min(source.len());
    let start = at.start.min(end);
    let part = |range: Range<usize>| escape(source.get(range).unwrap_or_default());
    let mut text = part(0..start);
    let from = text.len();
    text += &part(start..end);
    let to = text.len();
    text += &part(end..source.len());
    // Adds a blank, to mark the position after the end.
    if from == text.len() {
        text.push(' ');
    }
    // Marks only the beginning of a long part.
    let to = floor(&text, to.min(from + MOST_MARKED));
    (text, from..to.max(from + 1))
}

/// Resolves the name of an event.
pub fn resolve(tracefs: &Tracefs, origin: &str, text: &str) -> anyhow::Result<EventName> {
    tracefs.resolve(text).map_err(|error| match error {
        ResolveError::Name(problem) => Diagnostic::new(origin, text, problem).into(),
        ResolveError::Io(_) => error.into(),
    })
}

/// Message of a kernel that was built without this kind of probe.
const NO_SUCH_PROBES: &str = "No matching dynamic event type";

/// Explains why the kernel rejected a command. If the fault is in a text that the user wrote, shows
/// that text, otherwise the command.
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
            format!("the kernel rejected this: {reason}"),
        );
        return Diagnostic::new(file, error.text.trim_end(), problem);
    };
    let title = format!("the kernel rejected this: {}", entry.sentence);
    if entry.sentence == NO_SUCH_PROBES {
        let problem = Problem::new(0..error.text.trim_end().len(), title);
        let problem = problem.help("this kernel lacks this kind of probe: see rhist doctor");
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

/// If a probe was rejected because its function does not exist, suggests similar ones. `symbols`
/// reads `/proc/kallsyms`.
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

/// Prints an error. Escapes it, since it may quote a file.
pub fn complain(error: &anyhow::Error) {
    say!("rhist: {}", lines(&format!("{error:#}")));
}

#[cfg(test)]
mod tests;
