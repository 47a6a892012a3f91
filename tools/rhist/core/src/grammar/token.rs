// SPDX-License-Identifier: MIT OR Apache-2.0

//! Splits keys and filters into words and signs with their positions.

use std::ops::Range;

/// A word, number, string or sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Word, number, string or sign.
    pub kind: TokenKind,
    /// Text as written.
    pub text: &'a str,
    /// Range of bytes in the whole text.
    pub at: Range<usize>,
}

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Name; begins with `$` for a variable.
    Word,
    /// Starts with a digit.
    Number,
    /// String with its quotes.
    Quoted,
    /// String whose closing quote is missing.
    OpenQuote,
    /// Sign or operator, the longest match.
    Sign,
    /// Character that occurs in no key or filter.
    Other,
}

const SIGNS: [&str; 23] = [
    "&&", "||", "==", "!=", "<=", ">=", "<>", "=<", "=>", "(", ")", "{", "}", "<", ">", "&", "|", "~", "!", "=", ",",
    ".", ":",
];

/// Arithmetic operators.
const OPERATORS: [&str; 4] = ["+", "-", "*", "/"];

/// Splits a text into tokens. They cover everything except white space.
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

/// Kind and length of the first token; the kind is `None` for white space.
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

/// Splits a list of keys at the commas outside parentheses. Returns the range of each key.
pub fn split_list(text: &str) -> Vec<Range<usize>> {
    split(text, ",")
}

/// Splits a text at a sign outside parentheses. Returns the range of each part.
pub fn split(text: &str, sign: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0usize);
    for token in tokens(text) {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            other if other == sign && depth == 0 => {
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
