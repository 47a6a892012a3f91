// SPDX-License-Identifier: MIT OR Apache-2.0

//! Splits a text into words like a shell.

use std::ops::Range;

use crate::problem::Problem;

/// A word with its range in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Text without quotes.
    pub(super) text: String,
    /// Range in bytes, including quotes.
    pub(super) at: Range<usize>,
}

/// Splits a text at blanks. In `'…'` every character is literal, in `"…"` all but `\"` and `\\`;
/// elsewhere `\` makes the next character literal. No other character is special, not even `$` or
/// `*`.
pub(super) fn split(text: &str) -> Result<Vec<Word>, Problem> {
    let mut words: Vec<Word> = Vec::new();
    let mut open: Option<Word> = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c.is_whitespace() {
            words.extend(open.take());
            continue;
        }
        let word = open.get_or_insert_with(|| Word {
            text: String::new(),
            at: at..at,
        });
        match c {
            '\'' | '"' => loop {
                match chars.next() {
                    None => return Err(Problem::new(at..at + 1, "unterminated quote")),
                    Some((_, next)) if next == c => break,
                    Some((_, '\\')) if c == '"' && matches!(chars.peek(), Some((_, '"' | '\\'))) => {
                        word.text.extend(chars.next().map(|(_, next)| next));
                    }
                    Some((_, next)) => word.text.push(next),
                }
            },
            '\\' => match chars.next() {
                None => return Err(Problem::new(at..at + 1, "nothing follows this backslash")),
                Some((_, next)) => word.text.push(next),
            },
            _ => word.text.push(c),
        }
        word.at.end = chars.peek().map_or(text.len(), |(next, _)| *next);
    }
    words.extend(open);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let words = split(text).unwrap();
        words.into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn as_a_shell() {
        assert_eq!(
            texts("  count  sched_switch\t--by comm "),
            ["count", "sched_switch", "--by", "comm"]
        );
        assert_eq!(
            texts(r#"--where 'comm == "a b"' x"#),
            ["--where", r#"comm == "a b""#, "x"]
        );
        assert_eq!(texts(r#""a \" \\ \n" b\ c '' é"#), [r#"a " \ \n"#, "b c", "", "é"]);
        assert_eq!(texts(r#"--where='a b'c"#), ["--where=a bc"]);
        assert!(texts("").is_empty());
    }

    #[test]
    fn where_they_stand() {
        let text = "é 'b c' d";
        let at: Vec<&str> = split(text).unwrap().iter().map(|word| &text[word.at.clone()]).collect();
        assert_eq!(at, ["é", "'b c'", "d"]);
    }

    #[test]
    fn what_does_not_end() {
        assert_eq!(split("a 'b").unwrap_err().at, 2..3);
        assert_eq!(split("a \"b\\\"").unwrap_err().at, 2..3);
        assert_eq!(split("a \\").unwrap_err().at, 2..3);
    }

    proptest! {
        #[test]
        fn quoted_words_are_what_they_were(words in prop::collection::vec("[^']*", 0..5)) {
            let text = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(texts(&text), words);
        }

        #[test]
        fn any_text_has_an_answer(text in any::<String>()) {
            for word in split(&text).unwrap_or_default() {
                prop_assert!(text.get(word.at).is_some());
            }
        }
    }
}
