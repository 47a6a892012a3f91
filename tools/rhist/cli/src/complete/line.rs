// SPDX-License-Identifier: MIT OR Apache-2.0

//! What was typed before the word that is completed.

use std::ffi::OsString;

use rhist_core::recipe::Measure;
use rhist_core::tracefs::Tracefs;
use rhist_core::tracefs::events::EventName;
use rhist_core::tracefs::format::Format;

use crate::recipes;

/// What was typed, and the machine that it is about.
#[derive(Debug)]
pub(super) struct Line {
    /// Without the name of the program.
    words: Vec<String>,
    /// `None` if nothing can be read of it: then nothing of it is completed.
    pub tracefs: Option<Tracefs>,
}

impl Line {
    /// A line that begins with the name of the program.
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

    /// Whether this word is on it.
    pub fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|other| other == word)
    }

    /// Whether the time between two events is measured.
    pub fn is_between(&self) -> bool {
        self.has_word("between")
    }

    /// The recipe on it: what it measures, with the option of another way.
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

    /// The fields of the events on it, or of those that its recipe counts, in this order.
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
