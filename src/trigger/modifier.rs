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
    HintText,
    Span, //
};
use crate::{
    event::{
        Exponential,
        Scale,
        Unit, //
    },
    map::{
        Column,
        Extreme, //
    },
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
    /// `.log2=N`: exponential buckets, 2^N of them between a number and its double.
    Exponential(u8),
    /// `.min`
    Min,
    /// `.max`
    Max,
    /// `.avg`
    Avg,
    /// `.dist` or `.dist=N`: a distribution in such buckets.
    Dist(u8),
    /// `.ip`
    Ip,
    /// `.string`
    String,
}

/// How a modifier is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syntax {
    /// The word.
    Word,
    /// The word, for a field of this name only.
    WordFor(&'static str),
    /// The word. As all that C has not, it is a modifier only where it is allowed: elsewhere the error is C's.
    WordHere,
    /// What begins with the word. Looked at only in a place where it is allowed.
    Prefix,
    /// The word, with or without its last letter, then `=N`.
    WithNumber,
    /// The word, then `=N`, where N is a scale of exponential buckets.
    WithScale,
    /// The word, or the word and `=N`, where N is a scale of exponential buckets.
    WithScaleOrNot,
}

/// A row of the table.
struct Row {
    /// The modifier; of one with a number any.
    kind: ModifierKind,
    word: &'static str,
    syntax: Syntax,
    /// Where it may stand.
    places: &'static [Place],
    /// How a number is scaled before it is stored, by the number of the modifier, and whether it is signed.
    scale: fn(usize, bool) -> Scale,
    /// C's function if it is scaled, without `hist_field_`.
    function: Option<&'static str>,
    /// What a value with it makes of the hits of an entry, by whether it is signed.
    columns: fn(bool) -> &'static [Column],
}

const ANYWHERE: &[Place] = &[
    Place::Key,
    Place::Value,
    Place::Variable,
    Place::Saved,
    Place::Operand,
];
const NOT_AS_VALUE: &[Place] = &[Place::Key, Place::Variable, Place::Saved, Place::Operand];
const IN_KEYS: &[Place] = &[Place::Key, Place::Operand];
const IN_VALUES: &[Place] = &[Place::Value, Place::Operand];

const AS_KEY: &[Place] = &[Place::Key];
const AS_VALUE: &[Place] = &[Place::Value];
const AS_KEY_OR_SAVED: &[Place] = &[Place::Key, Place::Saved];
const NOT_A_NUMBER: &[Place] = &[Place::Key, Place::Variable, Place::Saved];

/// Not scaled.
const PLAIN: fn(usize, bool) -> Scale = |_, _| Scale::One;

const LOG2: fn(usize, bool) -> Scale = |_, _| Scale::Log2;
const BUCKET: fn(usize, bool) -> Scale = |width, _| Scale::Bucket(width as u64);
const EXPONENTIAL: fn(usize, bool) -> Scale =
    |scale, signed| Scale::Exponential(Exponential::new(scale as u8, Unit::One, signed));

/// Added up.
pub(super) const SUM: fn(bool) -> &'static [Column] = |_| &[Column::Sum];

/// The smallest and the largest value, and the sum.
const SPREAD: fn(bool) -> &'static [Column] = |signed| match signed {
    true => const { &spread(true) },
    false => const { &spread(false) },
};

const MIN: fn(bool) -> &'static [Column] = |signed| &SPREAD(signed)[..1];
const MAX: fn(bool) -> &'static [Column] = |signed| &SPREAD(signed)[1..2];

const fn spread(signed: bool) -> [Column; 3] {
    [
        Column::Extreme(Extreme::min(signed)),
        Column::Extreme(Extreme::max(signed)),
        Column::Sum,
    ]
}

/// The modifiers, in the order in which C compares them (`parse_field()`, `__create_val_field()`, trace_events_hist.c),
/// and behind those what C has not.
#[rustfmt::skip]
static TABLE: [Row; 18] = {
    use ModifierKind::*;
    use Syntax::*;
    const fn row(
        kind: ModifierKind, word: &'static str, syntax: Syntax, places: &'static [Place],
        scale: fn(usize, bool) -> Scale, function: Option<&'static str>, columns: fn(bool) -> &'static [Column],
    ) -> Row {
        Row { kind, word, syntax, places, scale, function, columns }
    }
    [
        row(Hex,            "hex",        Word,                  ANYWHERE,     PLAIN,       None,           SUM),
        row(Sym,            "sym",        Word,                  NOT_AS_VALUE, PLAIN,       None,           SUM),
        row(SymOffset,      "sym-offset", Word,                  NOT_AS_VALUE, PLAIN,       None,           SUM),
        row(Execname,       "execname",   WordFor("common_pid"), ANYWHERE,     PLAIN,       None,           SUM),
        row(Syscall,        "syscall",    Word,                  NOT_AS_VALUE, PLAIN,       None,           SUM),
        row(Stacktrace,     "stacktrace", Word,                  ANYWHERE,     PLAIN,       None,           SUM),
        row(Log2,           "log2",       Word,                  IN_KEYS,      LOG2,        Some("log2"),   SUM),
        row(Usecs,          "usecs",      Word,                  ANYWHERE,     PLAIN,       None,           SUM),
        row(Buckets(0),     "buckets",    WithNumber,            IN_KEYS,      BUCKET,      Some("bucket"), SUM),
        row(Percent,        "percent",    Prefix,                IN_VALUES,    PLAIN,       None,           SUM),
        row(Graph,          "graph",      Prefix,                IN_VALUES,    PLAIN,       None,           SUM),
        row(Exponential(0), "log2",       WithScale,             AS_KEY,       EXPONENTIAL, Some("log2"),   SUM),
        row(Min,            "min",        WordHere,              AS_VALUE,     PLAIN,       None,           MIN),
        row(Max,            "max",        WordHere,              AS_VALUE,     PLAIN,       None,           MAX),
        row(Avg,            "avg",        WordHere,              AS_VALUE,     PLAIN,       None,           SUM),
        row(Dist(0),        "dist",       WithScaleOrNot,        AS_VALUE,     PLAIN,       None,           SPREAD),
        row(Ip,             "ip",         WordHere,              AS_KEY_OR_SAVED, PLAIN,    None,           SUM),
        row(String,         "string",     WordHere,              NOT_A_NUMBER, PLAIN,       None,           SUM),
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

    /// The scale of a distribution if it is not given.
    pub const SCALE_DEFAULT: u8 = 3;

    /// The number behind it.
    pub fn number(self) -> Option<usize> {
        match self {
            Self::Buckets(width) => Some(width),
            Self::Dist(Self::SCALE_DEFAULT) => None,
            Self::Exponential(scale) | Self::Dist(scale) => Some(scale.into()),
            _ => None,
        }
    }

    /// Whether a field with it may be in `place`.
    pub fn is_allowed(self, place: Place) -> bool {
        self.row().places.contains(&place)
    }

    /// How a number is scaled before it is stored.
    pub fn scale(self, signed: bool) -> Scale {
        (self.row().scale)(self.number().unwrap_or(0), signed)
    }

    /// The name of C's function for a field that it scales, without `hist_field_`.
    pub fn function(self) -> Option<&'static str> {
        self.row().function
    }

    /// What a value with it makes of the hits of an entry.
    pub fn columns(self, signed: bool) -> &'static [Column] {
        (self.row().columns)(signed)
    }

    /// Whether a value with it is not the sum over all hits.
    pub fn is_statistic(self) -> bool {
        matches!(self, Self::Min | Self::Max | Self::Avg | Self::Dist(_))
    }

    /// Whether it says what is in the field's bytes, which are no number then.
    pub fn is_content(self) -> bool {
        matches!(self, Self::Ip | Self::String)
    }

    /// The columns of a value without a modifier.
    pub fn columns_without() -> &'static [Column] {
        SUM(false)
    }

    /// Parses the modifier of the field `name` in `place`. A place where it is not allowed is an error only here if its
    /// [syntax](Syntax) says so, since C looks the field up before it checks others.
    ///
    /// # Errors
    ///
    /// The text for the caret: all of it, or what is there for the number; and a hint.
    pub(super) fn parse(
        text: &SourceText,
        name: Span,
        modifier: Span,
        place: Place,
    ) -> Result<Self, Culprit> {
        for row in &TABLE {
            if let Some(kind) = row.parse(text, name, modifier, place)? {
                return Ok(kind);
            }
        }
        let mut rows = TABLE.iter();
        let elsewhere = rows.find(|row| row.word.as_bytes() == text.bytes(modifier));
        Err((modifier, elsewhere.and_then(|row| row.kind.hint())))
    }

    /// A hint for where this modifier cannot be, if C's text alone does not explain it.
    pub fn hint(self) -> Option<HintText> {
        match self {
            Self::Ip => Some(HintText::Address),
            Self::String => Some(HintText::PointedText),
            _ => None,
        }
    }
}

/// The text that is no modifier, and a hint.
pub(super) type Culprit = (Span, Option<HintText>);

impl Row {
    /// The modifier, if it is that of this row.
    fn parse(
        &self,
        text: &SourceText,
        name: Span,
        modifier: Span,
        place: Place,
    ) -> Result<Option<ModifierKind>, Culprit> {
        let written = text.bytes(modifier);
        // The parser reads `-`, which is no operator here, as `X`.
        let letters = self.word.bytes();
        let is_word = letters
            .map(|letter| if letter == b'-' { b'X' } else { letter })
            .eq(written.iter().copied());
        let found = match self.syntax {
            Syntax::WordHere | Syntax::WithScale | Syntax::WithScaleOrNot
                if !self.places.contains(&place) =>
            {
                false
            }
            Syntax::Word | Syntax::WordHere => is_word,
            Syntax::WordFor(field) => is_word && text.bytes(name) == field.as_bytes(),
            Syntax::Prefix => {
                written.starts_with(self.word.as_bytes()) && self.places.contains(&place)
            }
            Syntax::WithNumber => return self.parse_with_number(text, modifier),
            Syntax::WithScale => return self.parse_with_scale(text, modifier),
            Syntax::WithScaleOrNot if is_word => {
                return Ok(Some(self.with_scale(ModifierKind::SCALE_DEFAULT)))
            }
            Syntax::WithScaleOrNot => return self.parse_with_scale(text, modifier),
        };
        Ok(found.then_some(self.kind))
    }

    fn with_scale(&self, scale: u8) -> ModifierKind {
        match self.kind {
            ModifierKind::Dist(_) => ModifierKind::Dist(scale),
            _ => ModifierKind::Exponential(scale),
        }
    }

    /// The modifier with a scale, if it is that of this row.
    fn parse_with_scale(
        &self,
        text: &SourceText,
        modifier: Span,
    ) -> Result<Option<ModifierKind>, Culprit> {
        let rest = text.bytes(modifier).strip_prefix(self.word.as_bytes());
        if !rest.is_some_and(|rest| rest.starts_with(b"=")) {
            return Ok(None);
        }
        let value = modifier.skip(self.word.len() + 1);
        match text.bytes(value) {
            &[digit @ b'0'..=b'5'] => Ok(Some(self.with_scale(digit - b'0'))),
            // The caret is where C has it.
            _ => Err((modifier, Some(HintText::ScaleNumber))),
        }
    }

    /// The modifier with a number, if it is that of this row.
    fn parse_with_number(
        &self,
        text: &SourceText,
        modifier: Span,
    ) -> Result<Option<ModifierKind>, Culprit> {
        let written = text.bytes(modifier);
        let [singular @ .., last] = self.word.as_bytes() else {
            return Ok(None);
        };
        let Some(rest) = written.strip_prefix(singular) else {
            return Ok(None);
        };
        let plural = usize::from(rest.first() == Some(last));
        let value = modifier.skip(singular.len() + plural);
        let hint = |at: Span| (at.start > modifier.start).then_some(HintText::BucketWidth);
        if !text.bytes(value).starts_with(b"=") {
            return Err((value, hint(value)));
        }
        let value = value.skip(1);
        match number(text.bytes(value)).map(usize::try_from) {
            Ok(Ok(number @ 1..)) => Ok(Some(ModifierKind::Buckets(number))),
            _ => Err((value, hint(value))),
        }
    }
}
