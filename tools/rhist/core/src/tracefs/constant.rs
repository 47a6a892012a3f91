// SPDX-License-Identifier: MIT OR Apache-2.0

//! Evaluates constant expressions of C, as they occur in print formats.

/// Limit of nested parentheses. Print formats of gfp flags need 20.
const MAX_DEPTH: u32 = 100;

/// Binary operators of C, lowest precedence first. Within a level, an operator stands before its
/// own prefixes.
const OPERATORS: [&[&str]; 6] = [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];

/// Evaluates `text` with a value for `REC->field`. `None` if it contains another name without a
/// value, or is not an expression. Ignores casts.
pub(super) fn evaluate(text: &str, variable: Option<(&str, i128)>) -> Option<i128> {
    let mut parser = Parser {
        rest: text,
        variable,
        depth: 0,
    };
    let value = parser.binary(0)?;
    parser.rest.trim_start().is_empty().then_some(value)
}

struct Parser<'a> {
    rest: &'a str,
    variable: Option<(&'a str, i128)>,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn accept(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes a name or a number.
    fn word(&mut self) -> &'a str {
        let text = self.rest.trim_start();
        let end = text
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        word
    }

    /// Evaluates operators of a level and above.
    fn binary(&mut self, level: usize) -> Option<i128> {
        let Some(operators) = OPERATORS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.accept(operator)) {
            let right = self.binary(level + 1)?;
            let shift = || u32::try_from(right).ok().filter(|right| *right < 64);
            left = match *operator {
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                // A shift of 64 bits fits in 128.
                "<<" => i128::from(i64::try_from(left).ok()?) << shift()?,
                ">>" => left >> shift()?,
                "+" => left.checked_add(right)?,
                "-" => left.checked_sub(right)?,
                "*" => left.checked_mul(right)?,
                "/" => left.checked_div(right)?,
                _ => left.checked_rem(right)?,
            };
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<i128> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let value = if self.accept("~") {
            !self.unary()?
        } else if self.accept("-") {
            self.unary()?.checked_neg()?
        } else if self.accept("(") {
            if self.cast() {
                self.unary()?
            } else {
                let value = self.binary(0)?;
                self.accept(")").then_some(value)?
            }
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Some(value)
    }

    /// Skips the rest of a cast: names of a type, and `)`.
    fn cast(&mut self) -> bool {
        let before = self.rest;
        let mut names = 0;
        loop {
            let word = self.word();
            if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit()) {
                break;
            }
            names += 1;
        }
        let cast = names > 0 && self.accept(")");
        if !cast {
            self.rest = before;
        }
        cast
    }

    fn primary(&mut self) -> Option<i128> {
        let word = self.word();
        if word == "REC" {
            let (field, value) = self.variable.filter(|_| self.accept("->"))?;
            return (self.word() == field).then_some(value);
        }
        let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
        let (digits, radix) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(digits) => (digits, 16),
            None if digits.len() > 1 && digits.starts_with('0') => (digits, 8),
            None => (digits, 10),
        };
        u64::from_str_radix(digits, radix).ok().map(i128::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values() {
        for (text, expected) in [
            ("1", 1),
            ("0x40000000", 0x4000_0000),
            ("017", 15),
            (" ( gfp_t)((((1UL))) << (31)) ", 1 << 31),
            ("( unsigned long)(1 | 2) & ~(2)", 1),
            ("1 + 2 * 3 << 1 | 1", 15),
            ("-1", -1),
            ("(-(4)) + 10 % 7 - 6 / 4", -2),
            ("6 ^ 3 & 1", 7),
            ("18446744073709551615ULL", u64::MAX.into()),
        ] {
            assert_eq!(evaluate(text, None), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_variable() {
        let value = |text| evaluate(text, Some(("state", 0x102)));
        assert_eq!(value("REC->state & (0x80 << 1) - 1"), Some(2));
        assert_eq!(value("( unsigned long)REC->state"), Some(0x102));
        assert_eq!(value("REC->states"), None);
        assert_eq!(evaluate("REC->state", None), None);
    }

    #[test]
    fn no_values() {
        for text in [
            "",
            "SKB_REASON",
            "1 +",
            "(1",
            "1)",
            "1 2",
            "1 / 0",
            "1 << 64",
            "sizeof(int)",
            "x ? 1 : 2",
            "0xg",
            "u",
        ] {
            assert_eq!(evaluate(text, None), None, "{text}");
        }
        assert_eq!(evaluate(&"(".repeat(1 << 20), None), None);
        assert_eq!(evaluate(&"~".repeat(1 << 20), None), None);
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "[0-9a-z()<>|&~+*/% -]{0,40}") {
            let _ = evaluate(&text, None);
        }

        #[test]
        fn operators_are_those_of_integers(a in any::<u32>(), b in 1..u32::MAX, c in 0..32u32) {
            let [x, y] = [i128::from(a), i128::from(b)];
            let text = format!("{a} / {b} + ({a} % {b}) * {b:#x} | ~{a} ^ {b} << {c}");
            prop_assert_eq!(evaluate(&text, None), Some((x / y + x % y * y) | (!x ^ (y << c))));
        }
    }
}
