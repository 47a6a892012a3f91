// SPDX-License-Identifier: MIT OR Apache-2.0

//! Words and signs of keys and filters, with their places.

use std::ops::Range;

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: TokenKind,
    /// As it is written.
    pub text: &'a str,
    /// Where, in bytes.
    pub at: Range<usize>,
}

/// What a piece of a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name; with `$` in front for a variable.
    Word,
    /// Something that begins with a digit.
    Number,
    /// A string with its quotes.
    Quoted,
    /// A string without the quote at its end.
    OpenQuote,
    /// A sign, the longest that is possible there.
    Sign,
    /// No part of any key or filter.
    Other,
}

const SIGNS: [&str; 23] = [
    "&&", "||", "==", "!=", "<=", ">=", "<>", "=<", "=>", "(", ")", "{", "}", "<", ">", "&", "|", "~", "!", "=", ",",
    ".", ":",
];

/// Signs of arithmetic.
const OPERATORS: [&str; 4] = ["+", "-", "*", "/"];

/// Takes a text to pieces. All of it is in one of them, apart from white space.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(first) = text[start..].chars().next() {
        let rest = &text[start..];
        let (kind, length) = token(rest, first);
        if let Some(kind) = kind {
            tokens.push(Token {
                kind,
                text: &rest[..length],
                at: start..start + length,
            });
        }
        start += length;
    }
    tokens
}

/// Kind and length of the token that a text begins with; no kind for white space.
fn token(rest: &str, first: char) -> (Option<TokenKind>, usize) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let word = |skip: usize| rest[skip..].find(|c| !is_word(c)).map_or(rest.len(), |at| at + skip);
    match first {
        _ if first.is_ascii_whitespace() => (None, 1),
        'a'..='z' | 'A'..='Z' | '_' => (Some(TokenKind::Word), word(0)),
        '$' => (Some(TokenKind::Word), word(1)),
        '0'..='9' => (Some(TokenKind::Number), word(0)),
        '"' | '\'' => match rest[1..].find(first) {
            Some(at) => (Some(TokenKind::Quoted), at + 2),
            None => (Some(TokenKind::OpenQuote), rest.len()),
        },
        _ => match SIGNS.iter().chain(&OPERATORS).find(|sign| rest.starts_with(**sign)) {
            Some(sign) => (Some(TokenKind::Sign), sign.len()),
            None => (Some(TokenKind::Other), first.len_utf8()),
        },
    }
}

/// Cuts a list of keys at the commas that are not in parentheses; each key with its place.
pub fn split_list(text: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0usize);
    for token in tokens(text) {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            "," if depth == 0 => {
                parts.push(start..token.at.start);
                start = token.at.end;
            }
            _ => {}
        }
    }
    parts.push(start..text.len());
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pieces() {
        let texts = |text| tokens(text).iter().map(|token| token.text).collect::<Vec<_>>();
        assert_eq!(
            texts("common_timestamp.usecs-$ts0"),
            ["common_timestamp", ".", "usecs", "-", "$ts0"]
        );
        assert_eq!(
            texts("a==1 &&!(b ~ \"x y\")"),
            ["a", "==", "1", "&&", "!", "(", "b", "~", "\"x y\"", ")"]
        );
        assert_eq!(texts("10ms 'open"), ["10ms", "'open"]);
    }

    #[test]
    fn lists() {
        let parts = |text: &'static str| split_list(text).into_iter().map(|at| &text[at]).collect::<Vec<_>>();
        assert_eq!(parts("a,b.log2,(c,d)"), ["a", "b.log2", "(c,d)"]);
        assert_eq!(parts(""), [""]);
        assert_eq!(parts("a,"), ["a", ""]);
    }

    proptest! {
        #[test]
        fn all_is_in_one_piece(text in "[ -~é\t]{0,60}") {
            let mut rest = text.clone();
            let pieces = tokens(&text);
            for token in pieces.iter().rev() {
                prop_assert_eq!(&text[token.at.clone()], token.text);
                rest.replace_range(token.at.clone(), "");
            }
            prop_assert!(rest.chars().all(|c| c.is_ascii_whitespace()), "{:?}", rest);
        }
    }
}
