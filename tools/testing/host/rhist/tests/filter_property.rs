// SPDX-License-Identifier: GPL-2.0

//! Any text is accepted or refused without a panic, and an accepted filter matches by its meaning.

#![cfg(not(loom))]

#[path = "filter/exercise.rs"]
mod exercise;
#[path = "filter/scene.rs"]
mod scene;
#[path = "filter/strategy.rs"]
mod strategy;

use exercise::exercise;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use scene::Scene;

/// A filter as text, and the records that it matches, computed in another way.
#[derive(Clone, Debug)]
enum Expr {
    /// Field, operator, value.
    Compare(&'static str, &'static str, i128),
    Not(Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
}

impl Expr {
    /// The text. Parentheses are where precedence needs them, and sometimes elsewhere.
    fn text(&self, around: u8, more: bool) -> String {
        let (strength, text) = match self {
            Expr::Compare(field, op, value) => (3, format!("{field} {op} {value}")),
            Expr::Not(inner) => (2, format!("!{}", inner.text(2, more))),
            Expr::And(a, b) => (1, format!("{} && {}", a.text(1, more), b.text(1, more))),
            Expr::Or(a, b) => (0, format!("{}||{}", a.text(0, more), b.text(0, more))),
        };
        match strength < around || more && strength < 2 {
            true => format!("({text})"),
            false => text,
        }
    }

    fn holds(&self, record: &impl Fn(&str) -> i128) -> bool {
        match self {
            Expr::Compare(field, op, value) => {
                let number = record(field);
                match *op {
                    "==" => number == *value,
                    "!=" => number != *value,
                    "<" => number < *value,
                    "<=" => number <= *value,
                    ">" => number > *value,
                    ">=" => number >= *value,
                    "&" => number & *value != 0,
                    _ => unreachable!(),
                }
            }
            Expr::Not(inner) => !inner.holds(record),
            Expr::And(a, b) => a.holds(record) && b.holds(record),
            Expr::Or(a, b) => a.holds(record) || b.holds(record),
        }
    }
}

/// Fields with the numbers that they can have.
const LIMITS: &[(&str, i128, i128)] = &[
    ("s8", i8::MIN as i128, i8::MAX as i128),
    ("u8", 0, u8::MAX as i128),
    ("s16", i16::MIN as i128, i16::MAX as i128),
    ("u16", 0, u16::MAX as i128),
    ("s32", i32::MIN as i128, i32::MAX as i128),
    ("u32", 0, u32::MAX as i128),
    ("s64", i64::MIN as i128, i64::MAX as i128),
    ("u64", 0, u64::MAX as i128),
];

fn number((_, min, max): (&str, i128, i128)) -> BoxedStrategy<i128> {
    prop_oneof![
        4 => -2i128..6,
        1 => Just(min),
        1 => Just(max),
        1 => Just(max - 1),
        1 => Just(min + 1),
        2 => min..=max,
    ]
    .prop_map(move |number| number.clamp(min, max))
    .boxed()
}

fn comparison() -> BoxedStrategy<Expr> {
    let op = select(&["==", "!=", "<", "<=", ">", ">=", "&"][..]);
    let field = select(LIMITS);
    (field, op)
        .prop_flat_map(|(field, op)| {
            number(field).prop_map(move |value| Expr::Compare(field.0, op, value))
        })
        .boxed()
}

fn expr() -> BoxedStrategy<Expr> {
    comparison()
        .prop_recursive(8, 40, 2, |inner| {
            let pair = || (inner.clone(), inner.clone());
            prop_oneof![
                2 => inner.clone().prop_map(|a| Expr::Not(a.into())),
                3 => pair().prop_map(|(a, b)| Expr::And(a.into(), b.into())),
                3 => pair().prop_map(|(a, b)| Expr::Or(a.into(), b.into())),
            ]
        })
        .boxed()
}

fn numbers() -> BoxedStrategy<Vec<i128>> {
    LIMITS
        .iter()
        .map(|&field| number(field))
        .collect::<Vec<_>>()
        .boxed()
}

/// Pattern for one character of a string.
enum Token {
    Star,
    Any,
    Literal(u8),
    Class(bool, Vec<(u8, u8)>),
}

fn tokens(mut pattern: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    while let Some((&first, rest)) = pattern.split_first() {
        pattern = rest;
        tokens.push(match first {
            b'*' => Token::Star,
            b'?' => Token::Any,
            b'\\' => match rest.split_first() {
                Some((&literal, rest)) => {
                    pattern = rest;
                    Token::Literal(literal)
                }
                None => break,
            },
            b'[' => match class(rest) {
                Some((class, rest)) => {
                    pattern = rest;
                    class
                }
                None => Token::Literal(b'['),
            },
            literal => Token::Literal(literal),
        });
    }
    tokens
}

fn class(text: &[u8]) -> Option<(Token, &[u8])> {
    let (invert, text) = match text {
        [b'!', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let (mut rest, mut spans) = (text, Vec::new());
    loop {
        rest = match rest {
            [b']', rest @ ..] if !spans.is_empty() => {
                return Some((Token::Class(invert, spans), rest));
            }
            [first, b'-', last, rest @ ..] if *last != b']' => {
                spans.push((*first, *last));
                rest
            }
            [_, b'-'] | [] => return None,
            [only, rest @ ..] => {
                spans.push((*only, *only));
                rest
            }
        };
    }
}

/// Matches by trying everything.
fn naive(tokens: &[Token], string: &[u8]) -> bool {
    let Some((token, tokens)) = tokens.split_first() else {
        return string.is_empty();
    };
    let one = |fits: &dyn Fn(u8) -> bool| match string {
        [first, rest @ ..] => fits(*first) && naive(tokens, rest),
        [] => false,
    };
    match token {
        Token::Star => (0..=string.len()).any(|skip| naive(tokens, &string[skip..])),
        Token::Any => one(&|_| true),
        Token::Literal(literal) => one(&|byte| byte == *literal),
        Token::Class(invert, spans) => {
            one(&|byte| spans.iter().any(|&(a, b)| a <= byte && byte <= b) != *invert)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(text in vec(any::<u8>(), 0..256)) {
        exercise(&text);
        exercise(&[b"u8 == ", &text[..]].concat());
        exercise(&[b"comm ~ '", &text[..], b"'"].concat());
        exercise(&[b"mask == CPUS{", &text[..], b"}"].concat());
    }

    #[test]
    fn any_pieces(text in strategy::pieces()) {
        exercise(&text);
    }

    #[test]
    fn any_mutation(text in strategy::mutated()) {
        exercise(&text);
    }

    #[test]
    fn any_list(list in "[0-9N,:/ \n-]{0,12}") {
        exercise(format!("mask & CPUS{{{list}}}").as_bytes());
    }

    #[test]
    fn expressions_hold_for_what_they_say(expr in expr(), records in vec(numbers(), 8)) {
        let filters = [scene::filter(&expr.text(0, false)), scene::filter(&expr.text(0, true))];
        for numbers in records {
            let mut scene = Scene::new(0, "");
            for ((name, ..), number) in LIMITS.iter().zip(&numbers) {
                scene = scene.number(name, *number as u64);
            }
            let holds = expr.holds(&|name| {
                numbers[LIMITS.iter().position(|limits| limits.0 == name).unwrap()]
            });
            for filter in &filters {
                prop_assert_eq!(scene.matches(filter), holds, "{} {:?}", expr.text(0, false), numbers);
            }
        }
    }

    #[test]
    fn globs_fit_what_they_say(
        pattern in "[ab*?!1\\[\\]\\\\-]{0,8}",
        strings in vec("[ab!1\\[\\]*?\\\\-]{0,7}", 8),
    ) {
        let filter = scene::filter(&format!("dyn ~ '{pattern}'"));
        let (invert, glob) = match pattern.strip_prefix('!') {
            Some(glob) => (true, glob),
            None => (false, &pattern[..]),
        };
        for string in strings {
            let scene = Scene::new(0, "").dynamic("dyn", format!("{string}\0").as_bytes());
            let fits = match glob.starts_with('1') {
                true => string == glob,
                false => naive(&tokens(glob.as_bytes()), string.as_bytes()),
            };
            prop_assert_eq!(scene.matches(&filter), fits != invert, "{} {}", pattern, string);
        }
    }
}
