// SPDX-License-Identifier: MIT OR Apache-2.0

//! Command line before the word to complete.

use std::ffi::OsString;

use rhist_core::recipe::Measure;
use rhist_core::tracefs::Tracefs;
use rhist_core::tracefs::events::EventName;
use rhist_core::tracefs::format::Format;

use crate::recipes;

/// Words typed so far, and the machine that they refer to.
#[derive(Debug)]
pub(super) struct Line {
    /// Words after the name of the program.
    words: Vec<String>,
    /// Tracing directory. `None` if it cannot be read; then events are not completed.
    pub tracefs: Option<Tracefs>,
}

impl Line {
    /// Creates a line. The first word is the name of the program.
    pub fn new(words: &[OsString]) -> Self {
        let words = words
            .iter()
            .skip(1)
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        Self {
            words,
            tracefs: Tracefs::find().ok(),
        }
    }

    /// The same line on another machine.
    #[cfg(test)]
    pub fn on(words: &[OsString], tracefs: Tracefs) -> Self {
        Self {
            tracefs: Some(tracefs),
            ..Self::new(words)
        }
    }

    /// Returns whether the line contains this word.
    pub fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|other| other == word)
    }

    /// Returns whether the command is `between`.
    pub fn is_between(&self) -> bool {
        self.has_word("between")
    }

    /// Measure of the recipe on the line, including the option of a variant.
    pub fn measure(&self) -> Option<Measure> {
        let names = recipes::names();
        let name = self.words.iter().find(|word| names.binary_search(word).is_ok())?;
        let recipe = recipes::find(name).ok()??;
        let variant = recipe
            .variants
            .iter()
            .find(|(name, _)| self.has_word(&format!("--{name}")));
        Some(variant.map_or(recipe.measure, |(_, variant)| variant.measure.clone()))
    }

    /// Formats of the events on the line, or of the ones that its recipe counts, in this order.
    pub fn formats(&self) -> Vec<Format> {
        let Some(tracefs) = &self.tracefs else {
            return Vec::new();
        };
        let mut names: Vec<String> = match self.measure() {
            Some(measure) => {
                let ends = measure.end.into_iter().map(|point| point.event);
                measure.count.into_iter().map(|count| count.event).chain(ends).collect()
            }
            None => self
                .words
                .iter()
                .filter(|word| !word.starts_with('-'))
                .cloned()
                .collect(),
        };
        names.dedup();
        let mut all = None;
        let mut find = |text: &str| match EventName::parse(text) {
            Some(name) => tracefs.format(&name).ok(),
            None => {
                let events = all.get_or_insert_with(|| tracefs.events().unwrap_or_default());
                let name = events.iter().find(|name| name.event == text)?;
                tracefs.format(name).ok()
            }
        };
        names.iter().filter_map(|name| find(name)).collect()
    }
}
