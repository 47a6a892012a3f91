// SPDX-License-Identifier: MIT OR Apache-2.0

//! Faults in texts that a person wrote, with their position.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::path::PathBuf;

/// A fault in a text: its position, and the probable intention.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// One sentence, without a full stop.
    pub title: String,
    /// Range of bytes in the text, on boundaries of characters. May be empty, as at the end of the
    /// text.
    pub at: Range<usize>,
    /// Remark shown at that position. May be empty.
    pub label: String,
    /// Hints: sentences, without a full stop.
    pub help: Vec<String>,
}

impl Problem {
    /// Creates a problem with only a title.
    pub fn new(at: Range<usize>, title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            at,
            ..Self::default()
        }
    }

    /// Sets the remark at the position.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Suggests these names, if any.
    #[must_use]
    pub fn near<S: AsRef<str>>(self, names: &[S]) -> Self {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        match names.split_last() {
            None => self,
            Some((last, [])) => self.label(format!("did you mean {last}?")),
            Some((last, others)) => self.label(format!("did you mean {} or {last}?", others.join(", "))),
        }
    }

    /// Moves the problem into a longer text that contains this one after its first `offset` bytes.
    #[must_use]
    pub fn moved(mut self, offset: usize) -> Self {
        self.at = self.at.start + offset..self.at.end + offset;
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title)?;
        if !self.label.is_empty() {
            write!(f, ": {}", self.label)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

/// A problem in a file of several lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of the line in which the problem begins, from 1.
    pub line: usize,
    /// Text of this line, without its newline.
    pub source: String,
    /// The problem, with its position relative to the line.
    pub problem: Problem,
}

impl InFile {
    /// Locates a problem of `text`, the contents of the file.
    pub fn new(path: &Path, text: &str, problem: Problem) -> Self {
        let start = floor(text, problem.at.start);
        let begin = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let source = text[begin..].lines().next().unwrap_or_default();
        let end = floor(text, problem.at.end).clamp(start, (begin + source.len()).max(start));
        Self {
            path: path.to_owned(),
            line: text[..begin].matches('\n').count() + 1,
            source: source.to_owned(),
            problem: Problem {
                at: start - begin..end - begin,
                ..problem
            },
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.problem = self.problem.help(help);
        self
    }

    /// Column of the first wrong character, from 1.
    pub fn column(&self) -> usize {
        let before = self.source.get(..self.problem.at.start).unwrap_or(&self.source);
        before.chars().count() + 1
    }
}

/// Formats a name for a sentence: quotes an invisible one, and truncates a long one.
pub fn named(name: &str) -> String {
    const MOST: usize = 100;
    match name.char_indices().nth(MOST) {
        _ if name.trim().is_empty() => format!("{name:?}"),
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Boundary of a character at or before this offset.
pub fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

impl fmt::Display for InFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}: {}",
            self.path.display(),
            self.line,
            self.column(),
            self.problem
        )
    }
}

impl std::error::Error for InFile {}
