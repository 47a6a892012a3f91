// SPDX-License-Identifier: GPL-2.0

//! What strings are compared with.

use kernel::prelude::*;

use crate::hist::text::until_nul;

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
fn glob(pattern: &[u8], string: &[u8]) -> bool {
    // Both are read beyond their ends, as if they had their NUL.
    let byte = |bytes: &[u8], at: usize| bytes.get(at).copied().unwrap_or(0);
    let (mut p, mut s) = (0, 0);
    // What follows the latest `*`, and where in the string to try it next.
    let mut retry = None;
    loop {
        let c = byte(string, s);
        let ends = s >= string.len();
        let matches = match byte(pattern, p) {
            b'*' => {
                p += 1;
                if p >= pattern.len() {
                    return true;
                }
                retry = Some((p, s));
                continue;
            }
            b'?' | b'[' if ends => return false,
            b'?' => {
                p += 1;
                true
            }
            b'[' => match class(pattern.get(p + 1..).unwrap_or_default(), c) {
                Some((len, matches)) => {
                    p += 1 + len;
                    matches
                }
                None => {
                    p += 1;
                    c == b'['
                }
            },
            literal => {
                let literal = match literal {
                    b'\\' => {
                        p += 1;
                        byte(pattern, p)
                    }
                    literal => literal,
                };
                if ends && p >= pattern.len() {
                    return true;
                }
                p += 1;
                c == literal
            }
        };
        if matches {
            s += 1;
            continue;
        }
        match &mut retry {
            Some((after, from)) if !ends => {
                *from += 1;
                (p, s) = (*after, *from);
            }
            _ => return false,
        }
    }
}

/// Looks `c` up in the class that `pattern` starts with, after its `[`. Gives its length with its
/// `]` and whether `c` is one of it, or nothing if it is not closed.
fn class(pattern: &[u8], c: u8) -> Option<(usize, bool)> {
    let invert = pattern.first() == Some(&b'!');
    let mut at = usize::from(invert);
    let mut found = false;
    loop {
        let first = *pattern.get(at)?;
        at += 1;
        let last = match pattern.get(at..)? {
            [b'-', b']', ..] => first,
            [b'-', last, ..] => {
                at += 2;
                *last
            }
            [b'-'] => return None,
            _ => first,
        };
        found |= (first..=last).contains(&c);
        if *pattern.get(at)? == b']' {
            return Some((at + 1, found != invert));
        }
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
