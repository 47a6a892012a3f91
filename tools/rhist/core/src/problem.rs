// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is wrong with a text that somebody wrote, and where.

use std::fmt;
use std::ops::Range;

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
