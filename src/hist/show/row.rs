// SPDX-License-Identifier: GPL-2.0

//! Rows of typed cells, which printers turn into text.

use core::{
    cmp::min,
    net::IpAddr, //
};

use kernel::prelude::*;

use super::key::{
    number,
    RowKey, //
};
use crate::{
    event::{
        address,
        group,
        Exponential,
        Groups,
        Scale,
        Tenths,
        Whole, //
    },
    hist::{
        buckets::BucketCount,
        program::Cell,
        spec::{
            action::ActionKind,
            field::{
                Function,
                HistField, //
            },
            field_var::FieldVar,
            variable::ValueKind, //
        },
        Program,
        Spec, //
    },
    limits::{
        self,
        COMM_LEN,
        WIDE_WORDS, //
    },
    map::{
        words_to_text,
        ListedEntry,
        Read, //
    },
    text::{
        until_nul,
        Text, //
    },
    trigger::{
        ModifierKind,
        Quantile, //
    },
};

/// Total and maximum of a column over all entries.
#[derive(Clone, Copy)]
pub(super) struct ColumnTotals {
    pub(super) total: u64,
    pub(super) max: u64,
}

/// An entry as a row.
pub(super) struct Row<'a> {
    pub(super) spec: &'a Spec,
    pub(super) program: &'a Program,
    pub(super) groups: Option<&'a Groups>,
    pub(super) key: RowKey<'a>,
    pub(super) comm: [u8; COMM_LEN],
    pub(super) columns: &'a [u64],
    pub(super) totals: &'a [ColumnTotals],
    /// The buckets of all entries, sorted.
    pub(super) buckets: &'a [BucketCount],
    /// The number of the element, by which its buckets are found; `None` for a key without one.
    pub(super) element: Option<u32>,
    /// The entry; `None` for a row that is none.
    pub(super) entry: Option<ListedEntry<'a>>,
    /// The actions whose values are shown, by a bit for each; in an interval, only changed ones.
    pub(super) actions: u8,
}

/// The cell of a key field.
pub(super) enum KeyCell<'a> {
    Number(u64),
    Hex(u64),
    /// A process id and its comm.
    Task {
        pid: u64,
        comm: &'a [u8],
    },
    /// An address in the kernel, shown as a symbol; with the offset into it if `offset`.
    Symbol {
        address: u64,
        offset: bool,
    },
    /// The exponent of a power of two.
    Log2(u64),
    /// A range of numbers, as C shows it: the last one may have wrapped.
    Bucket {
        first: u64,
        last: u64,
    },
    /// A range of numbers that may be negative. `None`: no number is in it.
    Range(Option<(Whole, Whole)>),
    Syscall(u64),
    Stack(Stack<'a>),
    UserStack(Stack<'a>),
    /// A string without its NUL.
    Text(&'a [u8]),
    Address(IpAddr),
    Group(GroupCell<'a>),
}

/// A control group.
#[derive(Clone, Copy)]
pub(super) struct GroupCell<'a> {
    pub(super) id: u64,
    groups: Option<&'a Groups>,
}

impl GroupCell<'_> {
    /// Appends the path of the group, or a word for a task without one. Returns false if nothing is
    /// known but the id. Fails with `ENOMEM`.
    pub(super) fn show(self, out: &mut Text) -> Result<bool> {
        match (self.id, self.groups) {
            (group::IDLE, _) => out.bytes(b"idle").map(|()| true),
            (group::GONE, _) => out.bytes(b"<gone>").map(|()| true),
            (id, Some(groups)) => groups.path(out, id),
            (_, None) => Ok(false),
        }
    }
}

impl KeyCell<'_> {
    /// The smallest and the largest number in the range of a key that is `signed` before it is
    /// scaled. `None`: the cell is not a range.
    ///
    /// `.log2` and `.buckets` scale numbers as unsigned, as in C. So negative numbers follow the
    /// others; a bucket with both gets the whole range of signed numbers.
    pub(super) fn range(&self, signed: bool) -> Option<(Whole, Whole)> {
        let (first, last) = match *self {
            Self::Range(range) => return range,
            Self::Log2(0) => (0, 1),
            Self::Log2(power @ 1..=63) => ((1 << (power - 1)) + 1, 1 << power),
            Self::Log2(64) => ((1 << 63) + 1, u64::MAX),
            // The last bucket has fewer numbers than the others.
            Self::Bucket { first, last } if last < first => (first, u64::MAX),
            Self::Bucket { first, last } => (first, last),
            _ => return None,
        };
        let whole = |number| Whole::new(number, signed);
        match whole(first) <= whole(last) {
            true => Some((whole(first), whole(last))),
            false => Some((whole(i64::MIN as u64), whole(i64::MAX as u64))),
        }
    }
}

/// A stored stack: of the kernel, or of a program.
#[derive(Clone, Copy)]
pub(super) struct Stack<'a>(&'a [u8]);

impl<'a> Stack<'a> {
    /// Return addresses, or words of a program's stack, the innermost first.
    pub(super) fn entries(self) -> impl Iterator<Item = u64> + 'a {
        self.0
            .chunks_exact(8)
            .map(number)
            .take_while(|&entry| entry != 0)
    }
}

/// The cell of a value.
pub(super) enum ValueCell<'a> {
    Number(u64),
    Hex(u64),
    /// Hundredths of a percent of the total of the column; `None` if they cannot be computed.
    Percent(Option<u32>),
    /// Hundredths of a percent of the maximum of the column; `None` if they cannot be computed.
    Graph(Option<u32>),
    /// The smallest or the largest value, or the average.
    Statistic(Whole),
    Distribution(Distribution<'a>),
}

/// The distribution of a value in an entry.
#[derive(Clone, Copy)]
pub(super) struct Distribution<'a> {
    pub(super) buckets: Exponential,
    /// Number of values.
    pub(super) count: u64,
    /// Their sum, wrapping.
    pub(super) sum: u64,
    pub(super) min: Whole,
    pub(super) max: Whole,
    pub(super) avg: Whole,
    /// The buckets with their counts, in the order of the values.
    pub(super) counts: &'a [BucketCount],
}

impl Distribution<'_> {
    /// Number of values in buckets.
    fn in_buckets(&self) -> u64 {
        let counts = self.counts.iter().map(|bucket| bucket.count);
        counts.fold(0, u64::wrapping_add)
    }

    /// Number of values outside of buckets, since these were full; a lower bound, as hits since the
    /// count was read may be in buckets. A hit counts in its bucket before it is counted itself, so
    /// the result has no values of concurrent hits.
    pub(super) fn without_bucket(&self) -> u64 {
        self.count.saturating_sub(self.in_buckets())
    }

    /// Estimates a quantile: finds the bucket of the value with this rank, rounded up, and returns
    /// the middle of the bucket. `None`: all buckets are empty.
    pub(super) fn quantile(&self, quantile: Quantile) -> Option<Tenths> {
        let all = self.in_buckets();
        let part = u64::from(quantile.thousandths());
        let whole = u64::from(Quantile::ALL);
        // Split, as the product may need more than 64 bits.
        let rank = (all / whole) * part + (all % whole * part).div_ceil(whole);
        let mut below = 0u64;
        let bucket = self.counts.iter().find(|bucket| {
            below = below.wrapping_add(bucket.count);
            below >= rank && bucket.count > 0
        })?;
        let middle = self.buckets.middle(bucket.code())?;
        // Extremes and buckets may be inconsistent if hits have come meanwhile.
        let (min, max) = (Tenths::whole(self.min), Tenths::whole(self.max));
        Some(if min <= max {
            middle.clamp(min, max)
        } else {
            middle
        })
    }
}

/// The cell of a saved field.
pub(super) enum SavedCell<'a> {
    Number(u64),
    /// `None` if nothing was saved yet.
    Group(Option<GroupCell<'a>>),
    Address(IpAddr),
    /// The words of a program's stack; `None` if nothing was saved yet.
    UserStack(Option<&'a [u64]>),
    /// A string without its NUL; `None` if nothing was saved yet.
    Text(Option<&'a [u8]>),
}

/// The cell of a variable that is set.
pub(super) enum VariableCell<'a> {
    Number(u64),
    Group(GroupCell<'a>),
    /// A string without its NUL.
    Text(&'a [u8]),
    /// Return addresses, the innermost first, possibly followed by zeros.
    Stack(&'a [u64]),
    /// The words of a program's stack, the innermost first.
    UserStack(&'a [u64]),
}

/// Buffer for the values that the actions of a trigger have stored in an entry.
pub(super) struct TrackedBuf {
    /// The tracked value of the action with `save()`, and the saved fields.
    words: KVec<u64>,
    /// Whether a value has been stored.
    set: bool,
}

impl TrackedBuf {
    /// Allocates the buffer, for any entry of histograms with these programs. Fails with `ENOMEM`.
    pub(super) fn new<'a>(programs: impl Iterator<Item = &'a Program>) -> Result<Self> {
        let saved = |program: &Program| program.saved.iter().map(|(_, words)| words).sum();
        let most: usize = programs.map(saved).max().unwrap_or(0);
        let words = KVec::from_elem(0, 1 + most, GFP_KERNEL)?;
        Ok(Self { words, set: false })
    }
}

impl<'a> Row<'a> {
    /// Number of hits.
    pub(super) fn hits(&self) -> u64 {
        self.columns.first().copied().unwrap_or(0)
    }

    /// Returns whether it has hits, and so extremes.
    pub(super) fn has_hits(&self) -> bool {
        self.hits() > 0
    }

    /// Returns whether its entry was taken out of the map since, with the values that its actions
    /// had stored.
    pub(super) fn is_gone(&self) -> bool {
        self.entry.is_some_and(|entry| !entry.is_there())
    }

    /// Returns whether the value of the `n`th action is shown.
    pub(super) fn shows_action(&self, n: usize) -> bool {
        self.actions & 1 << n != 0
    }

    /// The value that the `n`th action tracks: its greatest, or last, value so far. For the action
    /// with `save()`, the value stored together with the saved fields in `buf`. `None`: none is
    /// stored yet.
    ///
    /// Fails as [`read_consistent`].
    pub(super) fn tracked(&self, n: usize, buf: &TrackedBuf) -> Result<Option<u64>> {
        if self.saving() == Some(n) {
            return Ok(buf.words.first().copied().filter(|_| buf.set));
        }
        let mut words = [0];
        let set = self.read_tracked(n, &mut words)?;
        Ok(set.then_some(words[0]))
    }

    /// Reads the tracked value of the `n`th action and the fields saved with it. Returns false if
    /// the action tracks nothing, or nothing is stored yet. Fails as [`read_consistent`].
    fn read_tracked(&self, n: usize, words: &mut [u64]) -> Result<bool> {
        match self.program.tracked(n) {
            Some(cell) => self.read_wide(cell, words),
            None => Ok(false),
        }
    }

    /// Reads a wide cell. Returns false if it is not set, or the entry is gone. Fails as
    /// [`read_consistent`].
    fn read_wide(&self, cell: usize, words: &mut [u64]) -> Result<bool> {
        let read = self.entry.and_then(|entry| {
            entry.read(|elt| {
                let wide = elt.wide(cell);
                wide.map_or(Ok(false), |wide| read_consistent(|| wide.read(words)))
            })
        });
        read.unwrap_or(Ok(false))
    }

    /// The index of the action with `save()`.
    fn saving(&self) -> Option<usize> {
        let mut actions = self.spec.actions.iter();
        actions.position(|action| action.kind == ActionKind::Save)
    }

    /// Reads the saved fields to `buf`, and the value that they belong to. Fails as
    /// [`read_consistent`].
    pub(super) fn read_saved(&self, buf: &mut TrackedBuf) -> Result {
        let Some(n) = self.saving() else {
            return Ok(());
        };
        buf.words.fill(0);
        buf.set = self.read_tracked(n, &mut buf.words)?;
        Ok(())
    }

    /// Calls `show` for each saved field in `buf`, if the value of the action that saves is shown.
    pub(super) fn saved(
        &self,
        buf: &TrackedBuf,
        mut show: impl FnMut(&FieldVar, SavedCell<'_>) -> Result,
    ) -> Result {
        if !self.saving().is_some_and(|n| self.shows_action(n)) {
            return Ok(());
        }
        let mut at = 1;
        for (var, &(_, words)) in self.spec.save_vars.iter().zip(&self.program.saved) {
            let content = &buf.words[at..at + words];
            at += words;
            let mut text = [0; limits::STRING_MAX as usize];
            let cell = match var.value.kind() {
                ValueKind::Address => {
                    let mut bytes = [0; address::V6];
                    for (to, word) in bytes.chunks_exact_mut(8).zip(content) {
                        to.copy_from_slice(&word.to_ne_bytes());
                    }
                    SavedCell::Address(address::of_bytes(&bytes, var.value.address_size()))
                }
                ValueKind::Number if var.value.is_group() => {
                    SavedCell::Group(buf.set.then(|| self.group(content[0])))
                }
                ValueKind::Number | ValueKind::Stack => SavedCell::Number(content[0]),
                ValueKind::UserStack => SavedCell::UserStack(buf.set.then(|| entries_of(content))),
                ValueKind::Text => {
                    SavedCell::Text(buf.set.then(|| words_to_text(content, &mut text)))
                }
            };
            show(var, cell)?;
        }
        Ok(())
    }

    /// Calls `show` for each variable, with `None` if it is not set. Fails as [`read_consistent`].
    #[inline(never)]
    pub(super) fn variables(
        &self,
        mut show: impl FnMut(&HistField, Option<VariableCell<'_>>) -> Result,
    ) -> Result {
        for (field, &cell) in self.spec.vars.iter().zip(&self.program.cells) {
            match cell {
                Cell::Once(number) | Cell::Number(number) => {
                    let read = self.entry.map(|entry| entry.read(|elt| elt.var(number)));
                    let number = read.flatten().flatten();
                    let cell = number.map(|number| match field.is_group() {
                        true => VariableCell::Group(self.group(number)),
                        false => VariableCell::Number(number),
                    });
                    show(field, cell)?;
                }
                Cell::Wide(number) => {
                    let wide = self.program.wide.get(number);
                    let len = wide.copied().unwrap_or(0).max(WIDE_WORDS);
                    let mut words = KVec::from_elem(0, len, GFP_KERNEL)?;
                    if !self.read_wide(number, &mut words)? {
                        show(field, None)?;
                        continue;
                    }
                    let mut text = [0; limits::STRING_MAX as usize];
                    let cell = match field.kind() {
                        ValueKind::Text => VariableCell::Text(words_to_text(&words, &mut text)),
                        ValueKind::UserStack => VariableCell::UserStack(entries_of(&words)),
                        _ => VariableCell::Stack(entries_of(&words)),
                    };
                    show(field, Some(cell))?;
                }
            }
        }
        Ok(())
    }

    /// The keys with their cells.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&'a HistField, KeyCell<'_>)> {
        let keys = self.spec.keys.iter().enumerate();
        keys.map(|(nth, field)| (field, self.key_cell(field, self.key.part(nth))))
    }

    fn group(&self, id: u64) -> GroupCell<'a> {
        let groups = self.groups;
        GroupCell { id, groups }
    }

    fn key_cell<'b>(&'b self, field: &HistField, content: &'b [u8]) -> KeyCell<'b> {
        let number = number(content);
        match field.modifier {
            Some(ModifierKind::Hex) => KeyCell::Hex(number),
            Some(ModifierKind::Execname) => KeyCell::Task {
                pid: number,
                comm: until_nul(&self.comm),
            },
            Some(ModifierKind::Sym) => KeyCell::Symbol {
                address: number,
                offset: false,
            },
            Some(ModifierKind::SymOffset) => KeyCell::Symbol {
                address: number,
                offset: true,
            },
            Some(ModifierKind::Log2) => KeyCell::Log2(number),
            Some(ModifierKind::Buckets(width)) => KeyCell::Bucket {
                first: number,
                last: number.wrapping_add(width as u64 - 1),
            },
            Some(ModifierKind::Exponential(_)) => KeyCell::Range(match field.scale() {
                Scale::Exponential(buckets) => buckets.bounds(number as u16),
                _ => None,
            }),
            Some(ModifierKind::Syscall) => KeyCell::Syscall(number),
            Some(ModifierKind::Ip) => {
                KeyCell::Address(address::of_bytes(content, field.address_size()))
            }
            _ if field.is_group() => KeyCell::Group(self.group(number)),
            _ if field.function == Function::UserStack => KeyCell::UserStack(Stack(content)),
            _ if field.function.is_stack() => KeyCell::Stack(Stack(content)),
            _ if field.function.is_string() => KeyCell::Text(until_nul(content)),
            _ => KeyCell::Number(number),
        }
    }

    /// All values with their cells, the hitcount first.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'a HistField, ValueCell<'a>)> + '_ {
        let vals = self.spec.vals.iter().enumerate();
        vals.filter_map(|(n, field)| Some((field, self.value_cell(n, field)?)))
    }

    fn value_cell(&self, n: usize, field: &HistField) -> Option<ValueCell<'a>> {
        let column = field.column()?;
        let (sum, totals) = (self.columns[column], &self.totals[column]);
        Some(match field.modifier {
            Some(ModifierKind::Percent) => ValueCell::Percent(hundredths(sum, totals.total)),
            // The largest entry has the longest bar, also if `other` is many times as large.
            Some(ModifierKind::Graph) => {
                ValueCell::Graph(hundredths(sum.min(totals.max), totals.max))
            }
            Some(ModifierKind::Hex) => ValueCell::Hex(sum),
            Some(modifier) if modifier.is_statistic() => match self.distribution(n) {
                Some(distribution) => ValueCell::Distribution(distribution),
                None => ValueCell::Statistic(statistic(self.spec, self.columns, field)?),
            },
            _ => ValueCell::Number(sum),
        })
    }

    /// The distribution of value `n`; `None` if it is not one.
    pub(super) fn distribution(&self, n: usize) -> Option<Distribution<'a>> {
        let mut distributions = self.spec.distributions().zip(0..);
        let ((_, buckets), number) = distributions.find(|((value, _), _)| *value == n)?;
        let counts = match self.element {
            Some(element) => of_distribution(self.buckets, element, number),
            None => &[],
        };
        let field = &self.spec.vals[n];
        let [min, max, sum] = *self.columns.get(field.column()?..)?.first_chunk()?;
        let [min, max] = [min, max].map(|number| Whole::new(number, buckets.signed()));
        let count = *self.columns.first()?;
        // Concurrent hits may be in the sum and not in the count: keep the order of the numbers
        // that are shown.
        Some(Distribution {
            buckets,
            count,
            sum,
            min,
            max,
            avg: Whole::new(sum, buckets.signed())
                .over(count)
                .max(min)
                .min(max),
            counts,
        })
    }
}

/// The entries of a stack as it is stored in a wide cell: their number, and the entries.
fn entries_of(words: &[u64]) -> &[u64] {
    match words {
        [len, entries @ ..] => &entries[..min(*len as usize, entries.len())],
        [] => &[],
    }
}

/// The buckets of distribution `number` of an element.
fn of_distribution(buckets: &[BucketCount], element: u32, number: u16) -> &[BucketCount] {
    let before = |key| buckets.partition_point(|bucket| bucket.key() < key);
    let first = before(BucketCount::first_key(element, number));
    let end = before(BucketCount::first_key(element, number + 1));
    &buckets[first..end]
}

/// `.min`, `.max` or `.avg` of an entry with these columns.
pub(super) fn statistic(spec: &Spec, columns: &[u64], field: &HistField) -> Option<Whole> {
    let column = columns[field.column()?];
    if field.modifier != Some(ModifierKind::Avg) {
        return Some(Whole::new(column, field.signed()));
    }
    // Concurrent hits may be in the sum and not in the count: keep the average between the extremes
    // beside it.
    let (mut min, mut max) = (None, None);
    for other in spec.vals.iter().filter(|other| other.is_same_number(field)) {
        let value = Whole::new(columns[other.column()?], field.signed());
        match other.modifier {
            Some(ModifierKind::Min) => min = Some(value),
            Some(ModifierKind::Max) => max = Some(value),
            _ => (),
        }
    }
    let average = Whole::new(column, field.signed()).over(columns[0]);
    let average = min.map_or(average, |min| average.max(min));
    Some(max.map_or(average, |max| average.min(max)))
}

/// `part` in hundredths of a percent of `whole`: over 10000 if the total has wrapped. `None` if it
/// cannot be computed, where C has `u32::MAX`.
fn hundredths(part: u64, whole: u64) -> Option<u32> {
    let quotient = if part < u64::MAX / 10000 {
        (part * 10000).checked_div(whole)
    } else {
        part.checked_div(whole / 10000)
    };
    match quotient {
        None if part == 0 => Some(0),
        quotient => quotient?.try_into().ok().filter(|&part| part != u32::MAX),
    }
}

/// Reads a wide cell until the copy is consistent. Returns false if the cell is not set. Fails with
/// `EAGAIN` if hits replace it again and again.
pub(super) fn read_consistent(read: impl FnMut() -> Read) -> Result<bool> {
    Read::retry(read).ok_or(EAGAIN)
}
