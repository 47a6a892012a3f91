// SPDX-License-Identifier: GPL-2.0

//! The modifiers of fields.
//!
//! [`TABLE`] has all properties of a modifier, except how it is shown: see `KeyCell` and
//! `ValueCell` in `src/hist/show/row.rs`.

use core::mem;

use super::{
    error::HintText,
    number::number,
    text::{
        SourceText,
        Span, //
    },
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

/// The modifier of a field.
#[derive(Clone, Copy, Debug)]
pub struct Modifier {
    /// As written, without the dot.
    pub text: Span,
    /// The kind of modifier.
    pub kind: ModifierKind,
}

/// The place of an expression in a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A field in `keys=` or `on(…)`.
    Key,
    /// A field in `vals=`.
    Value,
    /// The right side of an assignment, or a parameter of an action other than `save()`.
    Variable,
    /// A parameter of `save()`.
    Saved,
    /// Inside another expression.
    Operand,
}

/// The modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModifierKind {
    /// `.hex`: a number in hexadecimal.
    Hex,
    /// `.sym`: an address as a symbol.
    Sym,
    /// `.sym-offset`: an address as a symbol and an offset.
    SymOffset,
    /// `.execname`: a process id with its comm.
    Execname,
    /// `.syscall`: the number of a system call with its name.
    Syscall,
    /// `.stacktrace`: a field of return addresses as a stack.
    Stacktrace,
    /// `.log2`: the logarithm to the base 2.
    Log2,
    /// `.buckets=N` or `.bucket=N`, N not being 0.
    Buckets(usize),
    /// `.usecs`: the time in microseconds.
    Usecs,
    /// `.percent`, also with a suffix, as in C.
    Percent,
    /// `.graph`, also with a suffix, as in C.
    Graph,
    /// `.log2=N`: exponential buckets, 2^N of them between a number and its double.
    Exponential(u8),
    /// `.min`: the smallest value of an entry.
    Min,
    /// `.max`: the largest value of an entry.
    Max,
    /// `.avg`: the average value of an entry.
    Avg,
    /// `.dist` or `.dist=N`: a distribution in such buckets.
    Dist(u8),
    /// `.ip`: an internet address.
    Ip,
    /// `.string`: the string behind a pointer.
    String,
    /// `.cgroup`: the control group of the task with a process id.
    Cgroup,
    /// `.comm`: the comm of the task with a process id.
    Comm,
}

/// How a modifier is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syntax {
    /// The word alone.
    Word,
    /// The word, for a field of this name only.
    WordFor(&'static str),
    /// The word. Like all modifiers that C lacks, it is recognized only where it is allowed:
    /// elsewhere the error is C's.
    WordHere,
    /// Any text that begins with the word. Recognized only where it is allowed.
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
    /// The modifier; with any number if it takes one.
    kind: ModifierKind,
    /// The word with its dot.
    dotted: &'static str,
    syntax: Syntax,
    /// The places where it is allowed.
    places: &'static [Place],
    /// Returns the scale of a number before it is stored, from the number of the modifier, and
    /// whether the field is signed.
    scale: fn(usize, bool) -> Scale,
    /// C's function for a field that it scales, without `hist_field_`.
    function: Option<&'static str>,
    /// Returns the columns of a value with it, which may be signed or not.
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

/// No scaling.
const PLAIN: fn(usize, bool) -> Scale = |_, _| Scale::One;

const LOG2: fn(usize, bool) -> Scale = |_, _| Scale::Log2;
const BUCKET: fn(usize, bool) -> Scale = |width, _| Scale::Bucket(width as u64);
const EXPONENTIAL: fn(usize, bool) -> Scale =
    |scale, signed| Scale::Exponential(Exponential::new(scale as u8, Unit::One, signed));

/// The sum.
pub(super) const SUM: fn(bool) -> &'static [Column] = |_| &[Column::Sum];

/// The smallest and the largest value, and the sum.
const SPREAD: fn(bool) -> &'static [Column] = |signed| match signed {
    true => const { &min_max_sum(true) },
    false => const { &min_max_sum(false) },
};

const MIN: fn(bool) -> &'static [Column] = |signed| &SPREAD(signed)[..1];
const MAX: fn(bool) -> &'static [Column] = |signed| &SPREAD(signed)[1..2];

const fn min_max_sum(signed: bool) -> [Column; 3] {
    [
        Column::Extreme(Extreme::min(signed)),
        Column::Extreme(Extreme::max(signed)),
        Column::Sum,
    ]
}

/// The modifiers, in the order in which C compares them (`parse_field()`, `__create_val_field()`,
/// trace_events_hist.c), followed by those that C lacks.
#[rustfmt::skip]
static TABLE: [Row; 20] = {
    use ModifierKind::*;
    use Syntax::*;
    const fn row(
        kind: ModifierKind, dotted: &'static str, syntax: Syntax, places: &'static [Place],
        scale: fn(usize, bool) -> Scale, function: Option<&'static str>, columns: fn(bool) -> &'static [Column],
    ) -> Row {
        Row { kind, dotted, syntax, places, scale, function, columns }
    }
    [
        row(Hex,            ".hex",        Word,                  ANYWHERE,     PLAIN,       None,           SUM),
        row(Sym,            ".sym",        Word,                  NOT_AS_VALUE, PLAIN,       None,           SUM),
        row(SymOffset,      ".sym-offset", Word,                  NOT_AS_VALUE, PLAIN,       None,           SUM),
        row(Execname,       ".execname",   WordFor("common_pid"), ANYWHERE,     PLAIN,       None,           SUM),
        row(Syscall,        ".syscall",    Word,                  NOT_AS_VALUE, PLAIN,       None,           SUM),
        row(Stacktrace,     ".stacktrace", Word,                  ANYWHERE,     PLAIN,       None,           SUM),
        row(Log2,           ".log2",       Word,                  IN_KEYS,      LOG2,        Some("log2"),   SUM),
        row(Usecs,          ".usecs",      Word,                  ANYWHERE,     PLAIN,       None,           SUM),
        row(Buckets(0),     ".buckets",    WithNumber,            IN_KEYS,      BUCKET,      Some("bucket"), SUM),
        row(Percent,        ".percent",    Prefix,                IN_VALUES,    PLAIN,       None,           SUM),
        row(Graph,          ".graph",      Prefix,                IN_VALUES,    PLAIN,       None,           SUM),
        row(Exponential(0), ".log2",       WithScale,             AS_KEY,       EXPONENTIAL, Some("log2"),   SUM),
        row(Min,            ".min",        WordHere,              AS_VALUE,     PLAIN,       None,           MIN),
        row(Max,            ".max",        WordHere,              AS_VALUE,     PLAIN,       None,           MAX),
        row(Avg,            ".avg",        WordHere,              AS_VALUE,     PLAIN,       None,           SUM),
        row(Dist(0),        ".dist",       WithScaleOrNot,        AS_VALUE,     PLAIN,       None,           SPREAD),
        row(Ip,             ".ip",         WordHere,              AS_KEY_OR_SAVED, PLAIN,    None,           SUM),
        row(String,         ".string",     WordHere,              NOT_A_NUMBER, PLAIN,       None,           SUM),
        row(Cgroup,         ".cgroup",     WordHere,              NOT_A_NUMBER, PLAIN,       None,           SUM),
        row(Comm,           ".comm",       WordHere,              NOT_A_NUMBER, PLAIN,       None,           SUM),
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
        self.row().word()
    }

    /// The name with its dot, such as `.log2`: the form in which it follows a field.
    pub fn dotted(self) -> &'static str {
        self.row().dotted
    }

    /// The scale of a distribution if it is not given.
    pub const SCALE_DEFAULT: u8 = 3;

    /// The number after the `=`.
    pub fn number(self) -> Option<usize> {
        match self {
            Self::Buckets(width) => Some(width),
            Self::Dist(Self::SCALE_DEFAULT) => None,
            Self::Exponential(scale) | Self::Dist(scale) => Some(scale.into()),
            _ => None,
        }
    }

    /// Returns whether a field with it may be in `place`.
    pub fn is_allowed(self, place: Place) -> bool {
        self.row().places.contains(&place)
    }

    /// The scale of a number before it is stored.
    pub fn scale(self, signed: bool) -> Scale {
        (self.row().scale)(self.number().unwrap_or(0), signed)
    }

    /// The name of C's function for a field that it scales, without `hist_field_`.
    pub fn function(self) -> Option<&'static str> {
        self.row().function
    }

    /// The columns of a value with it.
    pub fn columns(self, signed: bool) -> &'static [Column] {
        (self.row().columns)(signed)
    }

    /// Returns whether a value with it is not the sum over all hits.
    pub fn is_statistic(self) -> bool {
        matches!(self, Self::Min | Self::Max | Self::Avg | Self::Dist(_))
    }

    /// Returns whether it gives the bytes of the field a meaning other than a number.
    pub fn is_content(self) -> bool {
        matches!(self, Self::Ip | Self::String | Self::Cgroup | Self::Comm)
    }

    /// The columns of a value without a modifier.
    pub fn columns_without() -> &'static [Column] {
        SUM(false)
    }

    /// Parses the modifier of the field `name` in `place`. A place where it is not allowed is an
    /// error here only if its [syntax](Syntax) requires that, since C looks the field up before it
    /// checks others.
    ///
    /// # Errors
    ///
    /// The text for the caret: all of the modifier, or the invalid number; and a hint.
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
        let elsewhere = rows.find(|row| row.word().as_bytes() == text.bytes(modifier));
        Err((modifier, elsewhere.and_then(|row| row.kind.hint())))
    }

    /// A hint for a modifier in the wrong place, if C's text alone does not explain the error.
    pub fn hint(self) -> Option<HintText> {
        match self {
            Self::Ip => Some(HintText::Address),
            Self::String => Some(HintText::PointedText),
            Self::Cgroup => Some(HintText::TaskGroup),
            Self::Comm => Some(HintText::TaskComm),
            _ => None,
        }
    }
}

/// The text that is not a modifier, and a hint.
pub(super) type Culprit = (Span, Option<HintText>);

impl Row {
    fn word(&self) -> &'static str {
        self.dotted.strip_prefix('.').unwrap_or_default()
    }

    /// Parses the modifier of this row; `None` for others.
    fn parse(
        &self,
        text: &SourceText,
        name: Span,
        modifier: Span,
        place: Place,
    ) -> Result<Option<ModifierKind>, Culprit> {
        let written = text.bytes(modifier);
        // The parser reads `-`, which is not an operator here, as `X`.
        let letters = self.word().bytes();
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
                written.starts_with(self.word().as_bytes()) && self.places.contains(&place)
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

    /// Parses the modifier of this row with a scale; `None` for others.
    fn parse_with_scale(
        &self,
        text: &SourceText,
        modifier: Span,
    ) -> Result<Option<ModifierKind>, Culprit> {
        let rest = text.bytes(modifier).strip_prefix(self.word().as_bytes());
        if !rest.is_some_and(|rest| rest.starts_with(b"=")) {
            return Ok(None);
        }
        let value = modifier.skip(self.word().len() + 1);
        match text.bytes(value) {
            &[digit @ b'0'..=b'5'] => Ok(Some(self.with_scale(digit - b'0'))),
            // The caret is where C has it.
            _ => Err((modifier, Some(HintText::ScaleNumber))),
        }
    }

    /// Parses the modifier of this row with a number; `None` for others.
    fn parse_with_number(
        &self,
        text: &SourceText,
        modifier: Span,
    ) -> Result<Option<ModifierKind>, Culprit> {
        let written = text.bytes(modifier);
        let [singular @ .., last] = self.word().as_bytes() else {
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
