// SPDX-License-Identifier: MIT OR Apache-2.0

//! Triggers of histograms: `hist:keys=…:vals=… if FILTER`.

use super::check_filter;
use super::check_key;
use super::check_value;
use super::token;
use crate::problem::Problem;
use crate::tracefs::format::Format;

/// A trigger of a histogram, split into its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger<'a> {
    /// Parts between colons; the first one is `hist`.
    pub clauses: Vec<Part<'a>>,
    /// Filter after `if`.
    pub filter: Option<Part<'a>>,
}

/// A part of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Position in the text, in bytes.
    pub at: usize,
    /// Part as written.
    pub text: &'a str,
}

impl<'a> Trigger<'a> {
    /// Splits a trigger. Any text has parts, so this cannot fail.
    pub fn parse(text: &'a str) -> Self {
        const IF: &str = " if ";
        let (command, filter) = match text.split_once(IF) {
            Some((command, filter)) => (command, Some(filter)),
            None => (text, None),
        };
        let whole = Part { at: 0, text: command };
        Self {
            clauses: whole.split(":").collect(),
            filter: filter.map(|text| Part {
                at: command.len() + IF.len(),
                text,
            }),
        }
    }

    /// Keys as written, with modifiers.
    pub fn keys(&self) -> impl Iterator<Item = Part<'a>> {
        let lists = self.clauses.iter().filter_map(|clause| clause.list());
        let keys = lists.filter(|(word, _)| is_keys(word)).map(|(_, list)| list);
        keys.filter(|list| !list.text.is_empty())
            .take(1)
            .flat_map(|list| list.split(","))
    }

    /// Finds faults that the kernel would reject, as far as known: fields of keys and values, and
    /// the filter.
    pub fn check(&self, format: &Format) -> Result<(), Problem> {
        if let Some(filter) = self.filter {
            check_filter(format, filter.text).map_err(|problem| problem.moved(filter.at))?;
        }
        for (word, list) in self.clauses.iter().filter_map(|clause| clause.list()) {
            // Only the kernel knows variables.
            for item in list.split(",").filter(|item| !item.text.contains('$')) {
                match word {
                    _ if is_keys(word) => check_key(format, item.text),
                    "values" | "vals" | "val" if item.text != "hitcount" => check_value(format, item.text),
                    _ => Ok(()),
                }
                .map_err(|problem| problem.moved(item.at))?;
            }
        }
        Ok(())
    }
}

fn is_keys(word: &str) -> bool {
    matches!(word, "keys" | "key")
}

impl<'a> Part<'a> {
    /// Splits `word=list`.
    fn list(&self) -> Option<(&'a str, Part<'a>)> {
        let (word, text) = self.text.split_once('=')?;
        let at = self.at + word.len() + 1;
        Some((word, Part { at, text }))
    }

    /// Splits at a sign outside parentheses.
    fn split(self, sign: &str) -> impl Iterator<Item = Part<'a>> {
        let parts = token::split(self.text, sign).into_iter();
        parts.map(move |at| Part {
            at: self.at + at.start,
            text: self.text.get(at).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_their_positions() {
        let text = "hist:keys=pid,(a+b).hex:lat=common_timestamp-$ts0:onmatch(x.y).trace(z,$lat) if pid > 3 if 4";
        let trigger = Trigger::parse(text);
        let parts = |parts: &[Part<'_>]| {
            for part in parts {
                assert_eq!(&text[part.at..part.at + part.text.len()], part.text);
            }
            parts.iter().map(|part| part.text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            parts(&trigger.clauses),
            "hist keys=pid,(a+b).hex lat=common_timestamp-$ts0 onmatch(x.y).trace(z,$lat)"
        );
        assert_eq!(parts(&trigger.keys().collect::<Vec<_>>()), "pid (a+b).hex");
        assert_eq!(parts(trigger.filter.as_slice()), "pid > 3 if 4");
    }

    #[test]
    fn without_keys() {
        for text in [
            "",
            "hist",
            "hist:",
            "hist:keys",
            "hist:keys=",
            "hist:vals=x",
            "hist if keys=x",
        ] {
            assert_eq!(Trigger::parse(text).keys().count(), 0, "{text}");
        }
    }
}
