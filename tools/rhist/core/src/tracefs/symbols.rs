// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of a field's values, taken from the print format of the event.

use super::constant::evaluate;

/// Names that `__print_symbolic()` or `__print_flags()` gives to values of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbols {
    /// The named expression: the field, perhaps with a mask.
    expression: String,
    field: String,
    /// Separator of flags. `None` for values instead of flags.
    delimiter: Option<String>,
    names: Vec<(i128, String)>,
}

/// Functions of print formats, and whether they take a separator.
const FUNCTIONS: [(&str, bool); 4] = [
    ("__print_symbolic(", false),
    ("__print_symbolic_u64(", false),
    ("__print_flags(", true),
    ("__print_flags_u64(", true),
];

impl Symbols {
    /// Returns whether names stand for bits rather than for values.
    pub fn are_flags(&self) -> bool {
        self.delimiter.is_some()
    }

    /// Numbers and their names, in the order of the format.
    pub fn names(&self) -> &[(i128, String)] {
        &self.names
    }

    /// Looks up the number of a name.
    pub fn value(&self, name: &str) -> Option<i128> {
        let found = self.names.iter().find(|(_, candidate)| candidate == name);
        found.map(|(value, _)| *value)
    }

    /// Parses the contents of a `format` file, and takes the first names for `field`.
    pub fn parse(format: &str, field: &str) -> Option<Symbols> {
        let (_, print) = format.split_once("print fmt:")?;
        FUNCTIONS.iter().find_map(|(function, flags)| {
            let calls = print.match_indices(function);
            calls
                .filter_map(|(at, _)| print.get(at + function.len()..))
                .find_map(|arguments| Symbols::call(arguments, field, *flags))
        })
    }

    fn call(arguments: &str, field: &str, flags: bool) -> Option<Symbols> {
        let mut arguments = split(arguments)?.into_iter();
        let expression = arguments.next()?;
        evaluate(expression, Some((field, 0)))?;
        // The expression does not use this field: it is constant, or uses another one.
        if evaluate(expression, None).is_some() {
            return None;
        }
        let delimiter = if flags { Some(string(arguments.next()?)?) } else { None };
        let names: Vec<_> = arguments.filter_map(pair).collect();
        (!names.is_empty()).then(|| Symbols {
            expression: expression.to_owned(),
            field: field.to_owned(),
            delimiter,
            names,
        })
    }

    /// Name of a number. For flags, the names of the bits set, and the remaining bits as a number,
    /// as the kernel prints them.
    pub fn name(&self, number: i128) -> Option<String> {
        // Compares as bits: a signed field may hold an unsigned constant.
        let bits = |number: i128| number & i128::from(u64::MAX);
        let number = evaluate(&self.expression, Some((&self.field, number)))?;
        let Some(delimiter) = &self.delimiter else {
            let found = self
                .names
                .iter()
                .find(|(value, _)| *value == number || bits(*value) == bits(number));
            return found.map(|(_, name)| name.clone());
        };
        let mut rest = bits(number);
        let mut found = Vec::new();
        for (value, name) in &self.names {
            let value = bits(*value);
            if value != 0 && rest & value == value {
                found.push(name.clone());
                rest &= !value;
            }
        }
        if found.is_empty() {
            return None;
        }
        if rest != 0 {
            found.push(format!("{rest:#x}"));
        }
        Some(found.join(delimiter))
    }
}

/// Splits arguments at their commas, up to the closing parenthesis.
fn split(text: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'(' | b'{' => depth += 1,
            b')' | b'}' if depth > 0 => depth -= 1,
            b')' | b'}' | b',' if depth == 0 => {
                parts.push(text.get(start..at)?);
                if byte != b',' {
                    return Some(parts);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// Parses `{ 1, "NAME" }`. `None` also for an enum constant that the kernel has not replaced with
/// its number.
fn pair(text: &str) -> Option<(i128, String)> {
    let parts = split(text.trim_start().strip_prefix('{')?)?;
    let [value, name] = parts.as_slice() else {
        return None;
    };
    Some((evaluate(value, None)?, string(name)?))
}

/// Parses a string of C, also one of several adjacent parts.
fn string(text: &str) -> Option<String> {
    let mut result = String::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let mut characters = rest.strip_prefix('"')?.chars();
        loop {
            match characters.next()? {
                '"' => break,
                '\\' => result.push(characters.next()?),
                character => result.push(character),
            }
        }
        rest = characters.as_str().trim_start();
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(print: &str, field: &str, number: i128) -> Option<String> {
        Symbols::parse(&format!("name: x\nprint fmt: {print}"), field)?.name(number)
    }

    const REASON: &str = r#""a, __print_symbolic( %s", REC->x, __print_symbolic(REC->reason, { 1, "NO, (T" }, {(2 | 4), "SIX\""}, { E, "E" })"#;

    #[test]
    fn symbolic() {
        assert_eq!(name(REASON, "reason", 1).as_deref(), Some("NO, (T"));
        assert_eq!(name(REASON, "reason", 6).as_deref(), Some("SIX\""));
        assert_eq!(name(REASON, "reason", 2), None);
        assert_eq!(name(REASON, "x", 1), None);
    }

    #[test]
    fn signs() {
        let print = r#""%s", __print_symbolic(REC->ret, { -1, "MINUS" }, { 0xffffffffffffffffUL - 1, "BIG" })"#;
        assert_eq!(name(print, "ret", -1).as_deref(), Some("MINUS"));
        assert_eq!(name(print, "ret", -2).as_deref(), Some("BIG"));
    }

    #[test]
    fn flags() {
        let print = r#""%s", (REC->f) ? __print_flags(REC->f, "|", {( unsigned long)((( gfp_t)((((1UL))) << (3))) | 1), "BOTH"}, {1, "ONE"}, {8, "EIGHT"}, {0, "NONE"}) : "none""#;
        assert_eq!(name(print, "f", 9).as_deref(), Some("BOTH"));
        assert_eq!(name(print, "f", 8).as_deref(), Some("EIGHT"));
        assert_eq!(name(print, "f", 0x19).as_deref(), Some("BOTH|0x10"));
        assert_eq!(name(print, "f", 0x10), None);
        assert_eq!(name(print, "f", 0), None);
    }

    #[test]
    fn of_several_calls_the_one_with_the_field() {
        let print = r#""%s", __print_symbolic(REC->old, {1, "A"}), __print_flags(REC->new & (0x80 - 1), "", {1, "B"})"#;
        assert_eq!(name(print, "old", 1).as_deref(), Some("A"));
        assert_eq!(name(print, "new", 0x81).as_deref(), Some("B"));
    }

    #[test]
    fn kernel() {
        let format = include_str!("../../tests/fixtures/events/kmem/kmalloc/format");
        let gfp = Symbols::parse(format, "gfp_flags").unwrap();
        assert_eq!(gfp.name(0xcc0).as_deref(), Some("GFP_KERNEL"));
        assert_eq!(gfp.name(0xdc0).as_deref(), Some("GFP_KERNEL|__GFP_ZERO"));
        assert_eq!(Symbols::parse(format, "node"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in r#"print fmt:(__print_symbolic\(REC->f,|__print_flags\(REC->f,|\{1|,"A|"|\}|\)|\\|[a-z,(é]){0,20}"#) {
            if let Some(symbols) = Symbols::parse(&text, "f") {
                symbols.name(1);
            }
        }
    }
}
