// SPDX-License-Identifier: MIT OR Apache-2.0

//! Settings for all output of a run, and the names that follow from them.

use rhist_core::names::Names;
use rhist_core::question::Question;

use super::label::Labels;
use super::page::Page;
use super::page::plain;
use crate::options::Format;

/// Settings for all output of a run.
#[derive(Clone, Copy, Debug)]
pub struct Screen<'a> {
    /// The question that the counts answer.
    pub question: &'a Question,
    /// Names of numbers.
    pub names: &'a Names,
    /// The page to print on.
    pub page: Page,
    /// Output format.
    pub format: Format,
    /// Whether rows are shown by key, rather than their total.
    pub by: bool,
    /// Leaves out everything that is printed once at the end: notes, cost and triggers.
    pub quiet: bool,
}

impl Screen<'_> {
    pub(super) fn labels(&self) -> Labels<'_> {
        Labels {
            question: self.question,
            names: self.names,
        }
    }

    /// Noun for the counted things, in the plural.
    pub(super) fn noun(&self) -> String {
        match self.question.noun.as_str() {
            "" => "hits".to_owned(),
            noun => plain(noun),
        }
    }
}
