// SPDX-License-Identifier: GPL-2.0

//! What strings are compared with.

use kernel::prelude::*;

use crate::text::until_nul;

/// Where in a string a pattern has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Whole,
    Start,
    End,
    Anywhere,
    Glob,
}

/// A string, or a set of strings.
pub(super) struct Pattern {
    kind: Kind,
    /// Whether it is for the strings that it does not describe.
    invert: bool,
    text: KVec<u8>,
}

impl Pattern {
    /// The pattern that `text` is after `==`. Fails with `ENOMEM`.
    pub(super) fn literal(text: &[u8], invert: bool) -> Result<Self> {
        Self::new(Kind::Whole, invert, text)
    }

    /// The pattern that `text` is after `~`. Fails with `ENOMEM`.
    ///
    /// As `filter_parse_regex()`: what starts with a digit has no wildcards.
    pub(super) fn wildcards(text: &[u8]) -> Result<Self> {
        let (invert, text) = match text {
            [b'!', text @ ..] => (true, text),
            _ => (false, text),
        };
        let plain = |text: &[u8]| !text.iter().any(|byte| b"*[?\\".contains(byte));
        let (kind, text) = match text {
            [b'0'..=b'9', ..] => (Kind::Whole, text),
            [b'*', text @ .., b'*'] if plain(text) => (Kind::Anywhere, text),
            [b'*', text @ ..] if plain(text) => (Kind::End, text),
            [text @ .., b'*'] if plain(text) => (Kind::Start, text),
            text if plain(text) => (Kind::Whole, text),
            text => (Kind::Glob, text),
        };
        Self::new(kind, invert, text)
    }

    fn new(kind: Kind, invert: bool, bytes: &[u8]) -> Result<Self> {
        let mut text = KVec::with_capacity(bytes.len(), GFP_KERNEL)?;
        text.extend_from_slice(bytes, GFP_KERNEL)?;
        Ok(Self { kind, invert, text })
    }

    /// Whether it is a pattern for the string in `bytes`, which ends at the first NUL if there is
    /// one.
    pub(super) fn matches(&self, bytes: &[u8]) -> bool {
        let string = until_nul(bytes);
        let matches = match self.kind {
            Kind::Whole => *string == self.text[..],
            Kind::Start => string.starts_with(&self.text),
            Kind::End => string.ends_with(&self.text),
            Kind::Anywhere => contains(string, &self.text),
            Kind::Glob => glob(&self.text, string),
        };
        matches != self.invert
    }
}

fn contains(string: &[u8], part: &[u8]) -> bool {
    part.is_empty() || string.windows(part.len()).any(|window| window == part)
}

/// Whether the pattern describes the whole string: `*`, `?`, `[a-z]`, `[!a-z]`, `\` before what is
/// meant literally. A bracket that is not closed is literal (`lib/glob.c`).
///
/// Takes no more steps than the product of both lengths.
fn glob(mut pattern: &[u8], mut string: &[u8]) -> bool {
    // What follows the latest `*`, and the string from where it was tried last.
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

/// What follows the first element of a pattern, if that fits `byte`.
fn first(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (fits, after) = match pattern {
        [] | [b'\\'] => return None,
        [b'?', after @ ..] => (true, after),
        [b'[', after @ ..] => class(after, byte).unwrap_or((byte == b'[', after)),
        [b'\\', literal, after @ ..] | [literal, after @ ..] => (byte == *literal, after),
    };
    fits.then_some(after)
}

/// Whether `byte` is one of the class that `pattern` starts with, after its `[`, and what follows
/// its `]`. Nothing if it is not closed.
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
    fn kinds() {
        for (text, kind, rest, invert) in [
            ("", Kind::Whole, "", false),
            ("a", Kind::Whole, "a", false),
            ("!a", Kind::Whole, "a", true),
            ("!", Kind::Whole, "", true),
            ("!!a", Kind::Whole, "!a", true),
            ("a*", Kind::Start, "a", false),
            ("*a", Kind::End, "a", false),
            ("!*a", Kind::End, "a", true),
            ("*a*", Kind::Anywhere, "a", false),
            ("*", Kind::End, "", false),
            ("**", Kind::Anywhere, "", false),
            ("***", Kind::Glob, "***", false),
            ("a*b", Kind::Glob, "a*b", false),
            ("*a*b", Kind::Glob, "*a*b", false),
            ("*a*b*", Kind::Glob, "*a*b*", false),
            ("a?", Kind::Glob, "a?", false),
            ("[a", Kind::Glob, "[a", false),
            ("a]", Kind::Whole, "a]", false),
            ("\\", Kind::Glob, "\\", false),
            ("1*", Kind::Whole, "1*", false),
            ("!1*", Kind::Whole, "1*", true),
            ("*1*", Kind::Anywhere, "1", false),
        ] {
            let pattern = Pattern::wildcards(text.as_bytes()).unwrap();
            assert_eq!(pattern.kind, kind, "{text}");
            assert_eq!(pattern.text, rest.as_bytes(), "{text}");
            assert_eq!(pattern.invert, invert, "{text}");
        }
    }
}
