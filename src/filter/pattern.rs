// SPDX-License-Identifier: GPL-2.0

//! Patterns that strings are matched with.

use kernel::prelude::*;

use crate::text::until_nul;

/// How a pattern is matched (`enum regex_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchType {
    Full,
    Front,
    End,
    Middle,
    Glob,
}

/// A pattern of a string comparison (`struct regex`).
pub(super) struct Pattern {
    type_: MatchType,
    /// The comparison is true for strings that do not match.
    invert: bool,
    text: KVec<u8>,
}

impl Pattern {
    /// The pattern for `==` and, with `invert`, `!=`: `text` as it is. Fails with `ENOMEM`.
    pub(super) fn literal(text: &[u8], invert: bool) -> Result<Self> {
        Self::new(MatchType::Full, invert, text)
    }

    /// The pattern for `~`: `text` may have wildcards. Fails with `ENOMEM`.
    ///
    /// As in `filter_parse_regex()`, a pattern that starts with a digit is taken literally.
    pub(super) fn wildcards(text: &[u8]) -> Result<Self> {
        let (invert, text) = match text {
            [b'!', text @ ..] => (true, text),
            _ => (false, text),
        };
        let plain = |text: &[u8]| !text.iter().any(|byte| b"*[?\\".contains(byte));
        let (type_, text) = match text {
            [b'0'..=b'9', ..] => (MatchType::Full, text),
            [b'*', text @ .., b'*'] if plain(text) => (MatchType::Middle, text),
            [b'*', text @ ..] if plain(text) => (MatchType::End, text),
            [text @ .., b'*'] if plain(text) => (MatchType::Front, text),
            text if plain(text) => (MatchType::Full, text),
            text => (MatchType::Glob, text),
        };
        Self::new(type_, invert, text)
    }

    fn new(type_: MatchType, invert: bool, bytes: &[u8]) -> Result<Self> {
        let mut text = KVec::with_capacity(bytes.len(), GFP_KERNEL)?;
        text.extend_from_slice(bytes, GFP_KERNEL)?;
        Ok(Self {
            type_,
            invert,
            text,
        })
    }

    /// Returns whether the comparison is true for the string in `bytes`, which ends at the first
    /// NUL.
    pub(super) fn matches(&self, bytes: &[u8]) -> bool {
        let string = until_nul(bytes);
        let matches = match self.type_ {
            MatchType::Full => *string == self.text[..],
            MatchType::Front => string.starts_with(&self.text),
            MatchType::End => string.ends_with(&self.text),
            MatchType::Middle => contains(string, &self.text),
            MatchType::Glob => glob(&self.text, string),
        };
        matches != self.invert
    }
}

fn contains(string: &[u8], part: &[u8]) -> bool {
    part.is_empty() || string.windows(part.len()).any(|window| window == part)
}

/// Matches the whole string with a pattern of `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a literal
/// character. A bracket that is not closed is literal (`lib/glob.c`).
///
/// The number of steps is bounded by the product of both lengths.
fn glob(mut pattern: &[u8], mut string: &[u8]) -> bool {
    // The pattern after the last `*`, and the part of the string that it was last tried on.
    let mut retry = None;
    loop {
        let fitting = match (pattern, string) {
            ([] | [b'\\'], []) | ([b'*'], _) => return true,
            ([b'*', after @ ..], _) => {
                retry = Some((after, string));
                pattern = after;
                continue;
            }
            (_, []) => return false,
            (_, [byte, rest @ ..]) => first(pattern, *byte).map(|after| (after, rest)),
        };
        (pattern, string) = match (fitting, retry) {
            (Some(after), _) => after,
            (None, Some((after, [_, rest @ ..]))) => {
                retry = Some((after, rest));
                (after, rest)
            }
            _ => return false,
        };
    }
}

/// Matches the first element of a pattern with `byte`. Returns the rest of the pattern.
fn first(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (fits, after) = match pattern {
        [] | [b'\\'] => return None,
        [b'?', after @ ..] => (true, after),
        [b'[', after @ ..] => class(after, byte).unwrap_or((byte == b'[', after)),
        [b'\\', literal, after @ ..] | [literal, after @ ..] => (byte == *literal, after),
    };
    fits.then_some(after)
}

/// Matches `byte` with a character class; `pattern` begins after its `[`. Returns the result and
/// the rest after its `]`. `None` if the class is not closed.
fn class(pattern: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let (invert, mut pattern) = match pattern {
        [b'!', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut found = false;
    loop {
        let (first, last, rest) = match pattern {
            [first, b'-', last, rest @ ..] if *last != b']' => (first, last, rest),
            [] | [_, b'-'] => return None,
            [only, rest @ ..] => (only, only, rest),
        };
        found |= (first..=last).contains(&&byte);
        if let [b']', rest @ ..] = rest {
            return Some((found != invert, rest));
        }
        pattern = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn match_types() {
        for (text, type_, rest, invert) in [
            ("", MatchType::Full, "", false),
            ("a", MatchType::Full, "a", false),
            ("!a", MatchType::Full, "a", true),
            ("!", MatchType::Full, "", true),
            ("!!a", MatchType::Full, "!a", true),
            ("a*", MatchType::Front, "a", false),
            ("*a", MatchType::End, "a", false),
            ("!*a", MatchType::End, "a", true),
            ("*a*", MatchType::Middle, "a", false),
            ("*", MatchType::End, "", false),
            ("**", MatchType::Middle, "", false),
            ("***", MatchType::Glob, "***", false),
            ("a*b", MatchType::Glob, "a*b", false),
            ("*a*b", MatchType::Glob, "*a*b", false),
            ("*a*b*", MatchType::Glob, "*a*b*", false),
            ("a?", MatchType::Glob, "a?", false),
            ("[a", MatchType::Glob, "[a", false),
            ("a]", MatchType::Full, "a]", false),
            ("\\", MatchType::Glob, "\\", false),
            ("1*", MatchType::Full, "1*", false),
            ("!1*", MatchType::Full, "1*", true),
            ("*1*", MatchType::Middle, "1", false),
        ] {
            let pattern = Pattern::wildcards(text.as_bytes()).unwrap();
            assert_eq!(pattern.type_, type_, "{text}");
            assert_eq!(pattern.text, rest.as_bytes(), "{text}");
            assert_eq!(pattern.invert, invert, "{text}");
        }
    }
}
