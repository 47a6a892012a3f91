// SPDX-License-Identifier: GPL-2.0

//! The modifiers of fields.
//!
//! [`TABLE`] has all that there is to know of a modifier, but for how it is shown: see `KeyCell` and `ValueCell` in
//! `src/hist/show/row.rs`.

use core::mem;

use super::{
    number::number,
    text::SourceText,
    tree::Place,
    Span, //
};
use crate::{
    event::Scale,
    map::Column, //
};

/// The modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModifierKind {
    /// `.hex`
    Hex,
    /// `.sym`
    Sym,
    /// `.sym-offset`
    SymOffset,
    /// `.execname`
    Execname,
    /// `.syscall`
    Syscall,
    /// `.stacktrace`
    Stacktrace,
    /// `.log2`
    Log2,
    /// `.buckets=N` or `.bucket=N`, N not being 0.
    Buckets(usize),
    /// `.usecs`
    Usecs,
    /// `.percent`, also with a suffix, as in C.
    Percent,
    /// `.graph`, also with a suffix, as in C.
    Graph,
}

/// How a modifier is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syntax {
    /// The word.
    Word,
    /// The word, for a field of this name only.
    WordFor(&'static str),
    /// What begins with the word. Looked at only in a place where it is allowed.
    Prefix,
    /// The word, with or without its last letter, then `=N`.
    WithNumber,
}

/// A row of the table.
struct Row {
    /// The modifier; of one with a number any.
    kind: ModifierKind,
    word: &'static str,
    syntax: Syntax,
    /// Where it may stand.
    places: &'static [Place],
    /// How a number is scaled before it is stored, by the number of the modifier.
    scale: fn(usize) -> Scale,
    /// C's function if it is scaled, without `hist_field_`.
    function: Option<&'static str>,
    /// What a value with it makes of the hits of an entry.
    column: Column,
}

const ANYWHERE: &[Place] = &[Place::Key, Place::Value, Place::Variable, Place::Operand];
const NOT_AS_VALUE: &[Place] = &[Place::Key, Place::Variable, Place::Operand];
const IN_KEYS: &[Place] = &[Place::Key, Place::Operand];
const IN_VALUES: &[Place] = &[Place::Value, Place::Operand];

/// Not scaled.
const PLAIN: fn(usize) -> Scale = |_| Scale::One;

/// The modifiers, in the order in which C compares them (`parse_field()`, `__create_val_field()`, trace_events_hist.c).
#[rustfmt::skip]
static TABLE: [Row; 11] = {
    use ModifierKind::*;
    use Syntax::*;
    const fn row(
        kind: ModifierKind, word: &'static str, syntax: Syntax, places: &'static [Place], scale: fn(usize) -> Scale,
        function: Option<&'static str>,
    ) -> Row {
        Row { kind, word, syntax, places, scale, function, column: Column::Sum }
    }
    [
        row(Hex,        "hex",        Word,                  ANYWHERE,     PLAIN, None),
        row(Sym,        "sym",        Word,                  NOT_AS_VALUE, PLAIN, None),
        row(SymOffset,  "sym-offset", Word,                  NOT_AS_VALUE, PLAIN, None),
        row(Execname,   "execname",   WordFor("common_pid"), ANYWHERE,     PLAIN, None),
        row(Syscall,    "syscall",    Word,                  NOT_AS_VALUE, PLAIN, None),
        row(Stacktrace, "stacktrace", Word,                  ANYWHERE,     PLAIN, None),
        row(Log2,       "log2",       Word,                  IN_KEYS,      |_| Scale::Log2, Some("log2")),
        row(Usecs,      "usecs",      Word,                  ANYWHERE,     PLAIN, None),
        row(Buckets(0), "buckets",    WithNumber,            IN_KEYS,      |n| Scale::Bucket(n as u64), Some("bucket")),
        row(Percent,    "percent",    Prefix,                IN_VALUES,    PLAIN, None),
        row(Graph,      "graph",      Prefix,                IN_VALUES,    PLAIN, None),
    ]
};

impl ModifierKind {
    fn row(self) -> &'static Row {
        let same = |row: &&Row| mem::discriminant(&row.kind) == mem::discriminant(&self);
        // Each modifier has a row.
        TABLE.iter().find(same).unwrap_or(&TABLE[0])
    }

    /// The name of the modifier, without a number.
    pub fn word(self) -> &'static str {
        self.row().word
    }

    /// The number behind it.
    pub fn number(self) -> Option<usize> {
        match self {
            Self::Buckets(width) => Some(width),
            _ => None,
        }
    }

    /// Whether a field with it may be in `place`.
    pub fn is_allowed(self, place: Place) -> bool {
        self.row().places.contains(&place)
    }

    /// How a number is scaled before it is stored.
    pub fn scale(self) -> Scale {
        (self.row().scale)(self.number().unwrap_or(0))
    }

    /// The name of C's function for a field that it scales, without `hist_field_`.
    pub fn function(self) -> Option<&'static str> {
        self.row().function
    }

    /// What a value with it makes of the hits of an entry.
    pub fn column(self) -> Column {
        self.row().column
    }

    /// Parses the modifier of the field `name` in `place`. A place where it is not allowed is an error only here if its
    /// [syntax](Syntax) says so, since C looks the field up before it checks others.
    ///
    /// # Errors
    ///
    /// The text for the caret: all of it, or what is there for the number.
    pub(super) fn parse(
        text: &SourceText,
        name: Span,
        modifier: Span,
        place: Place,
    ) -> Result<Self, Span> {
        for row in &TABLE {
            if let Some(kind) = row.parse(text, name, modifier, place)? {
                return Ok(kind);
            }
        }
        Err(modifier)
    }
}

impl Row {
    /// The modifier, if it is that of this row.
    fn parse(
        &self,
        text: &SourceText,
        name: Span,
        modifier: Span,
        place: Place,
    ) -> Result<Option<ModifierKind>, Span> {
        let written = text.bytes(modifier);
        // The parser reads `-`, which is no operator here, as `X`.
        let letters = self.word.bytes();
        let is_word = letters
            .map(|letter| if letter == b'-' { b'X' } else { letter })
            .eq(written.iter().copied());
        let found = match self.syntax {
            Syntax::Word => is_word,
            Syntax::WordFor(field) => is_word && text.bytes(name) == field.as_bytes(),
            Syntax::Prefix => {
                written.starts_with(self.word.as_bytes()) && self.places.contains(&place)
            }
            Syntax::WithNumber => return self.parse_with_number(text, modifier),
        };
        Ok(found.then_some(self.kind))
    }

    /// The modifier with a number, if it is that of this row.
    fn parse_with_number(
        &self,
        text: &SourceText,
        modifier: Span,
    ) -> Result<Option<ModifierKind>, Span> {
        let written = text.bytes(modifier);
        let [singular @ .., last] = self.word.as_bytes() else {
            return Ok(None);
        };
        let Some(rest) = written.strip_prefix(singular) else {
            return Ok(None);
        };
        let plural = usize::from(rest.first() == Some(last));
        let value = modifier.skip(singular.len() + plural);
        if !text.bytes(value).starts_with(b"=") {
            return Err(value);
        }
        let value = value.skip(1);
        match number(text.bytes(value)).map(usize::try_from) {
            Ok(Ok(number @ 1..)) => Ok(Some(ModifierKind::Buckets(number))),
            _ => Err(value),
        }
    }
}
