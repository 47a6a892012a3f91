// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is wrong with a text that somebody wrote, and where.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::path::PathBuf;

/// What is wrong with a text, where, and what was probably meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// One sentence, without a full stop.
    pub title: String,
    /// Where in the text, in bytes, on boundaries of characters. May be empty, as at the end of the text.
    pub at: Range<usize>,
    /// What to say at that place. May be empty.
    pub label: String,
    /// What helps: sentences, without a full stop.
    pub help: Vec<String>,
}

impl Problem {
    /// A problem with a title only.
    pub fn new(at: Range<usize>, title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            at,
            ..Self::default()
        }
    }

    /// Says this at the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a sentence that helps.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Says which of these names was probably meant, if there is one.
    #[must_use]
    pub fn near<S: AsRef<str>>(self, names: &[S]) -> Self {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        match names.split_last() {
            None => self,
            Some((last, [])) => self.label(format!("did you mean {last}?")),
            Some((last, others)) => self.label(format!("did you mean {} or {last}?", others.join(", "))),
        }
    }

    /// The same problem in a text that has this one behind its first `offset` bytes.
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
    /// The file.
    pub path: PathBuf,
    /// The line in which the problem begins, from 1.
    pub line: usize,
    /// This line, without its newline.
    pub source: String,
    /// What is wrong, and where in the line.
    pub problem: Problem,
}

impl InFile {
    /// A problem of this text, which is that of the file.
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

    /// Adds a sentence that helps.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.problem = self.problem.help(help);
        self
    }

    /// The column of the first character that is wrong, from 1.
    pub fn column(&self) -> usize {
        let before = self.source.get(..self.problem.at.start).unwrap_or(&self.source);
        before.chars().count() + 1
    }
}

/// A name as a sentence has it. One with nothing to see is in quotes, and of a long one there is
/// the begin.
pub fn named(name: &str) -> String {
    const MOST: usize = 100;
    match name.char_indices().nth(MOST) {
        _ if name.trim().is_empty() => format!("{name:?}"),
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// The boundary of a character at or before this place.
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
