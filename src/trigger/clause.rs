// SPDX-License-Identifier: GPL-2.0

//! The clauses `word(…)`, which C lacks: a token without `=` that is not one of C's words is an
//! error there.

use core::fmt;

use super::{
    error::{
        Error,
        HintText, //
    },
    expr::Expr,
    list::ParsedList,
    number::number,
    room::{
        Expire,
        Full, //
    },
    text::{
        SourceText,
        Span, //
    },
};
use crate::{
    event::Unit,
    limits::{
        BUCKETS_MAX,
        QUANTILES_MAX,
        USER_STACK_MAX, //
    },
};
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// A part of all sorted values, in thousandths of a percent: more than none, and less than all of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantile(u32);

impl Quantile {
    /// All values, in thousandths of a percent.
    pub const ALL: u32 = 100_000;

    /// The quantiles of a distribution that are shown by default.
    pub const DEFAULT: [Self; 4] = [Self(50_000), Self(90_000), Self(99_000), Self(99_900)];

    /// Thousandths of a percent.
    pub fn thousandths(self) -> u32 {
        self.0
    }

    /// Parses a percentage with at most three decimals, as in `99.9`. `None`: it is invalid, 0, or
    /// not below 100.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut pieces = text.splitn(2, |&byte| byte == b'.');
        let (whole, decimals) = (pieces.next()?, pieces.next());
        if whole.is_empty() || whole.len() > 2 || decimals.is_some_and(<[u8]>::is_empty) {
            return None;
        }
        let decimals = decimals.unwrap_or_default();
        if decimals.len() > 3 {
            return None;
        }
        let zeros = [b'0'; 3];
        let decimals = Iterator::chain(decimals.iter(), &zeros[decimals.len()..]);
        let digits = Iterator::chain(whole.iter(), decimals);
        let mut value = 0;
        for &digit in digits {
            value = value * 10 + char::from(digit).to_digit(10)?;
        }
        (value > 0).then_some(Self(value))
    }
}

impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, mut decimals, mut width) = (self.0 / 1000, self.0 % 1000, 3);
        while width > 0 && decimals % 10 == 0 {
            (decimals, width) = (decimals / 10, width - 1);
        }
        write!(f, "{whole}")?;
        match width {
            0 => Ok(()),
            width => write!(f, ".{decimals:0width$}"),
        }
    }
}

/// A clause as written: the whole token, and its value.
#[derive(Clone, Copy)]
pub struct Clause<T> {
    /// The token, where the caret goes.
    pub text: Span,
    /// The value in its parentheses.
    pub value: T,
}

/// The clauses of a trigger. If one is given several times, the last one counts.
pub struct Clauses {
    /// The fields in `on(…)`, by which references are looked up. Empty: the keys.
    pub on: ParsedList<Expr>,
    /// `quantiles(…)`: the quantiles of distributions to show.
    pub quantiles: Option<Clause<KVec<Quantile>>>,
    /// `unit(…)`: the unit for distributions of nanoseconds.
    pub unit: Option<Clause<Unit>>,
    /// `buckets(N)`: the average number of buckets of distributions per entry for which memory is
    /// allocated.
    pub buckets: Option<Clause<u32>>,
    /// `limit(N)`: the maximum number of entries to show.
    pub limit: Option<Clause<u64>>,
    /// `ustack(N)`: the maximum number of words of a stack of the program.
    pub ustack: Option<Clause<u32>>,
    /// `expire(…)`: idle entries that are taken out.
    pub expire: Option<Clause<Expire>>,
    /// `full(…)`: how new keys are treated while the map is full.
    pub full: Option<Clause<Full>>,
}

impl Clauses {
    /// Allocates an empty set of clauses. On the heap, since the kernel's stack is small. Fails
    /// with `ENOMEM`.
    #[inline(never)]
    pub(super) fn none() -> Result<KBox<Self>, AllocError> {
        let none = Self {
            on: ParsedList::new(None),
            quantiles: None,
            unit: None,
            buckets: None,
            limit: None,
            ustack: None,
            expire: None,
            full: None,
        };
        KBox::new(none, GFP_KERNEL)
    }

    /// Stores `token` if it is a clause. Returns false if it is not.
    pub(super) fn store(&mut self, text: &SourceText, token: Span) -> Result<bool, Error> {
        let bytes = text.bytes(token);
        let Some(open) = bytes.iter().position(|&byte| byte == b'(') else {
            return Ok(false);
        };
        let inside = match bytes.last() {
            Some(b')') => token.first(bytes.len() - 1).skip(open + 1),
            _ => token.skip(open + 1),
        };
        let within = text.bytes(inside);
        match &bytes[..open] {
            b"on" => self.on = ParsedList::new(Some(inside)),
            b"quantiles" => {
                let mut value = KVec::new();
                let bad = || text.own(HintText::BadQuantiles, inside);
                for piece in within.split(|&byte| byte == b',') {
                    let quantile = Quantile::parse(piece).ok_or_else(bad)?;
                    // A duplicate would be shown twice.
                    if value.len() >= QUANTILES_MAX || value.contains(&quantile) {
                        return Err(bad());
                    }
                    value.push(quantile, GFP_KERNEL)?;
                }
                self.quantiles = Some(Clause { text: token, value });
            }
            b"unit" => {
                let unit = Unit::ALL.into_iter().find(|unit| unit.name() == within);
                let value = unit.ok_or_else(|| text.own(HintText::BadUnit, inside))?;
                self.unit = Some(Clause { text: token, value });
            }
            b"buckets" => {
                let value = match number(within).map(u32::try_from) {
                    Ok(Ok(buckets @ 1..=BUCKETS_MAX)) => buckets,
                    _ => return Err(text.own(HintText::BadBuckets, inside)),
                };
                self.buckets = Some(Clause { text: token, value });
            }
            b"limit" => {
                let value = match number(within) {
                    Ok(limit @ 1..) => limit,
                    _ => return Err(text.own(HintText::BadLimit, inside)),
                };
                self.limit = Some(Clause { text: token, value });
            }
            b"ustack" => {
                let value = match number(within).map(u32::try_from) {
                    Ok(Ok(depth @ 1..)) if depth <= USER_STACK_MAX as u32 => depth,
                    _ => return Err(text.own(HintText::BadUserStack, inside)),
                };
                self.ustack = Some(Clause { text: token, value });
            }
            b"expire" => {
                let bad = || text.own(HintText::BadExpire, inside);
                let value = Expire::parse(within).ok_or_else(bad)?;
                self.expire = Some(Clause { text: token, value });
            }
            b"full" => {
                let bad = || text.own(HintText::BadFull, inside);
                let value = Full::parse(within).ok_or_else(bad)?;
                self.full = Some(Clause { text: token, value });
            }
            _ => return Ok(false),
        }
        match bytes.last() {
            Some(b')') => Ok(true),
            _ => Err(text.own(HintText::ClauseNotClosed, token.after())),
        }
    }
}
