// SPDX-License-Identifier: GPL-2.0

//! A trigger with all names resolved: its keys, values, variables and actions.
//!
//! A [`Draft`] makes a [`Spec`] from the syntax tree of a trigger, with a [`Scope`] to look names
//! up in. All views of a trigger are made from its spec, and the code of a hit is compiled from it
//! ([`Program`](super::Program)). `hist_debug` shows it as the fields, references and variables of
//! C's `struct hist_trigger_data`.

pub mod action;
mod draft;
mod expr;
pub mod field;
pub mod field_var;
mod params;
mod scope;
pub mod target;
pub mod variable;

use core::ops::Range;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::Histogram;
use crate::{
    event::{
        Clock,
        Exponential,
        Unit, //
    },
    limits, map,
    trigger::{
        self,
        Expire,
        Full,
        Quantile,
        Trigger, //
    },
};

use action::{
    Action,
    ActionKind, //
};
pub use draft::Draft;
use field::{
    Function,
    HistField, //
};
use field_var::FieldVar;
pub use scope::{
    AttachedHist,
    Scope, //
};
use variable::Reference;

/// A field that entries are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// The field.
    pub by: SortBy,
    /// Whether the largest come first.
    pub descending: bool,
}

/// The value, statistic or key to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortBy {
    /// The value with this index; 0 is the hitcount.
    Value(usize),
    /// A number of the distribution with this index.
    Distribution(usize, Statistic),
    /// The key with this index.
    Key(usize),
}

/// A number of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The average.
    Avg,
    /// An estimate of a quantile.
    Quantile(Quantile),
}

/// How a trigger shows distributions.
pub(in crate::hist) struct Distributions {
    /// The quantiles to show.
    pub(in crate::hist) quantiles: KVec<Quantile>,
    /// The unit of their buckets.
    pub(in crate::hist) unit: Unit,
    /// Average number of buckets of each distribution per entry.
    pub(in crate::hist) buckets: u32,
}

/// The clauses by which a histogram makes room for new keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// `size=A..B`: log2 of the number of entries at first, and of the largest number of them.
    /// `None`: the number is fixed.
    pub sizes: Option<[u32; 2]>,
    /// Idle entries that are taken out.
    pub expire: Expire,
    /// How new keys are treated while it is full.
    pub full: Full,
}

/// A trigger, resolved in its scope. Made by a [`Draft`].
pub struct Spec {
    /// The name of its event, with the system, if a field is that.
    pub(in crate::hist) event: KVec<u8>,
    /// The values, the hitcount first.
    pub(in crate::hist) vals: KVec<HistField>,
    /// The variables that other triggers can refer to.
    pub(in crate::hist) vars: KVec<HistField>,
    pub(in crate::hist) keys: KVec<HistField>,
    /// The fields in `on(…)`.
    pub(in crate::hist) on: KVec<HistField>,
    pub(in crate::hist) distributions: Distributions,
    /// Maximum number of entries that are shown; `None`: all.
    pub(in crate::hist) limit: Option<u64>,
    /// Maximum number of words of a stack of the program.
    pub(in crate::hist) ustack: u32,
    /// The variables that it refers to.
    pub(in crate::hist) refs: KVec<Reference>,
    /// Length of the longest chain of references to other histograms, at most
    /// [`CHAIN_MAX`](crate::limits::CHAIN_MAX).
    chain: usize,
    pub(in crate::hist) actions: KVec<Action>,
    /// Fields that `trace()` reads.
    pub(in crate::hist) field_vars: KVec<FieldVar>,
    /// Fields that `save()` saves.
    pub(in crate::hist) save_vars: KVec<FieldVar>,
    pub(in crate::hist) sort: KVec<SortKey>,
    /// log2 of the number of entries, at first if it grows.
    pub(in crate::hist) bits: u32,
    /// log2 of the number of entries up to which it grows; `bits` if it does not.
    pub(in crate::hist) bits_max: u32,
    /// Idle entries that are taken out.
    pub(in crate::hist) expire: Expire,
    /// How new keys are treated while it is full.
    pub(in crate::hist) full: Full,
    pub(in crate::hist) nohitcount: bool,
    /// Whether a field reads the clock.
    pub(in crate::hist) timed: bool,
    /// The clock of the times.
    pub(in crate::hist) clock: Clock,
}

impl Distributions {
    fn of(trigger: &Trigger) -> Result<Self> {
        let clauses = &trigger.clauses;
        let given = clauses.quantiles.as_ref().map(|clause| &clause.value[..]);
        let mut quantiles = KVec::new();
        quantiles.extend_from_slice(given.unwrap_or(&Quantile::DEFAULT), GFP_KERNEL)?;
        Ok(Self {
            quantiles,
            unit: clauses.unit.map_or(Unit::One, |clause| clause.value),
            buckets: clauses
                .buckets
                .map_or(limits::BUCKETS_DEFAULT, |clause| clause.value),
        })
    }

    fn matches(&self, other: &Self) -> bool {
        self.quantiles[..] == other.quantiles[..]
            && self.unit == other.unit
            && self.buckets == other.buckets
    }
}

impl Spec {
    /// Creates a spec of `trigger` with all names unresolved. Fails with `ENOMEM`.
    // Not inlined, as it needs much of the kernel's stack.
    #[inline(never)]
    fn unresolved(trigger: &Trigger) -> Result<KBox<Self>> {
        let clock = trigger.clock.map_or(Some(Clock::Global), |clock| {
            Clock::new(trigger.bytes(clock))
        });
        let clauses = &trigger.clauses;
        let bits = trigger
            .size
            .map_or(limits::MAP_BITS_DEFAULT, |size| size.bits);
        let spec = Self {
            event: KVec::new(),
            vals: KVec::new(),
            vars: KVec::new(),
            keys: KVec::new(),
            on: KVec::new(),
            distributions: Distributions::of(trigger)?,
            limit: clauses.limit.map(|limit| limit.value),
            ustack: clauses
                .ustack
                .map_or(limits::STACK_DEPTH as u32, |depth| depth.value),
            refs: KVec::new(),
            chain: 0,
            actions: KVec::new(),
            field_vars: KVec::new(),
            save_vars: KVec::new(),
            sort: KVec::new(),
            bits,
            bits_max: trigger.size.and_then(|size| size.bits_max).unwrap_or(bits),
            expire: clauses
                .expire
                .map(|expire| expire.value)
                .unwrap_or_default(),
            full: clauses.full.map(|full| full.value).unwrap_or_default(),
            nohitcount: trigger.nohitcount.is_some(),
            timed: false,
            // `Spec::check_clock()` reports an unknown clock, after all other errors.
            clock: clock.unwrap_or(Clock::Global),
        };
        Ok(KBox::new(spec, GFP_KERNEL)?)
    }

    /// Checks the name of the clock in `trigger`, from which this spec was made. Last, as in C.
    ///
    /// # Errors
    ///
    /// The clock is unknown.
    pub fn check_clock(&self, trigger: &Trigger) -> Result<(), trigger::Error> {
        match trigger.clock {
            Some(clock) if self.timed && Clock::new(trigger.bytes(clock)).is_none() => {
                Err(trigger.error(trigger::ErrorText::SetClockFail, clock))
            }
            _ => Ok(()),
        }
    }

    /// The index of the variable `name` (`find_var_field()`).
    fn find_var(&self, name: &[u8]) -> Option<usize> {
        let is = |field: &HistField| {
            let variable = field.variable.as_ref();
            variable.is_some_and(|variable| variable.name[..] == *name)
        };
        self.vars.iter().position(is)
    }

    /// The field that variable `index` is set to; the variable may be one that only `trace()` uses.
    pub(in crate::hist) fn var_value(&self, index: usize) -> Option<&HistField> {
        let hidden = || {
            let mut vars = self.field_vars.iter();
            let var = vars.find(|var| var.variable.index == index)?;
            Some(&var.value)
        };
        self.vars.get(index).or_else(hidden)
    }

    /// The action that takes snapshots.
    pub(in crate::hist) fn snapshot_action(&self) -> Option<&Action> {
        let mut actions = self.actions.iter();
        actions.find(|action| action.kind == ActionKind::Snapshot)
    }

    /// Returns whether it has variables, or refers to some (`has_hist_vars()`).
    pub fn has_vars(&self) -> bool {
        !self.vars.is_empty() || !self.refs.is_empty()
    }

    /// Returns whether it refers to variables of `histogram`, which is not its own.
    pub fn refers_to(&self, histogram: &Arc<Histogram>) -> bool {
        let mut homes = self.refs.iter().flat_map(|reference| &reference.var.home);
        homes.any(|home| Arc::ptr_eq(home, histogram))
    }

    /// Values, variables and keys, in the order of C's `fields[]`.
    pub(in crate::hist) fn fields(&self) -> impl Iterator<Item = &HistField> {
        Iterator::chain(Iterator::chain(self.vals.iter(), &self.vars), &self.keys)
    }

    /// All fields that a hit reads: values, variables, keys, and those for actions.
    pub(in crate::hist) fn all_fields(&self) -> impl Iterator<Item = &HistField> {
        let field_vars = Iterator::chain(self.field_vars.iter(), &self.save_vars);
        let field_vars = field_vars.map(|var| &var.value);
        Iterator::chain(self.fields(), Iterator::chain(self.on.iter(), field_vars))
    }

    /// The keys by which references are looked up.
    pub(in crate::hist) fn lookup_keys(&self) -> &[HistField] {
        match self.on.is_empty() {
            true => &self.keys,
            false => &self.on,
        }
    }

    /// The distributions, each with the index of its value.
    pub(in crate::hist) fn distributions(&self) -> impl Iterator<Item = (usize, Exponential)> + '_ {
        let unit = self.distributions.unit;
        let vals = self.vals.iter().enumerate();
        vals.filter_map(move |(n, field)| Some((n, field.distribution(unit)?)))
    }

    /// The field that entries are sorted by.
    pub(in crate::hist) fn sort_field(&self, field: SortBy) -> &HistField {
        match field {
            SortBy::Value(n) | SortBy::Distribution(n, _) => &self.vals[n],
            SortBy::Key(n) => &self.keys[n],
        }
    }

    /// Size of the keys in C, in bytes.
    pub(in crate::hist) fn c_key_size(&self) -> u32 {
        size_of_keys(&self.keys)
    }

    /// Size in C of the keys by which references are looked up, in bytes.
    pub(in crate::hist) fn c_lookup_size(&self) -> u32 {
        size_of_keys(self.lookup_keys())
    }

    /// Returns whether a hit reads a field of the record at these offsets.
    pub fn reads(&self, offsets: Range<u32>) -> bool {
        self.all_fields().any(|field| field.reads(offsets.clone()))
    }

    /// Returns whether fields, sort keys and actions of two triggers are the same
    /// (`hist_trigger_match()`). Size, `expire()`, `full()` and `nohitcount` are not compared. The
    /// caller compares names and filters.
    pub fn matches(&self, other: &Self) -> bool {
        same_all(&self.vals, &other.vals, HistField::matches)
            && same_all(&self.vars, &other.vars, HistField::matches)
            && same_all(&self.keys, &other.keys, HistField::matches)
            && same_all(&self.actions, &other.actions, Action::matches)
            && self.sort[..] == other.sort[..]
            && same_all(&self.on, &other.on, HistField::matches)
            && self.distributions.matches(&other.distributions)
            && self.limit == other.limit
            && self.ustack == other.ustack
    }

    /// Returns whether triggers with this spec and with `other` can share one histogram. Stricter
    /// than [`Spec::matches`], which is all that C compares: references have to hold the same kind
    /// of number, too. `self` is the spec of the histogram.
    pub fn can_share(&self, other: &Self) -> bool {
        let mut fields = self.all_fields().zip(other.all_fields());
        self.matches(other)
            && fields.all(|(a, b)| a.holds_the_same(b))
            && self.allows_room_of(other)
    }

    /// Returns whether `other`, which is to share the histogram of `self`, repeats its clauses that
    /// make room, or leaves out all of them.
    pub fn allows_room_of(&self, other: &Self) -> bool {
        other.room() == Room::default() || other.room() == self.room()
    }

    /// The room in the map of its histogram.
    pub(in crate::hist) fn map_room(&self) -> map::Room {
        let forgets = self.expire != Expire::default() || self.full.recycle;
        map::Room {
            bits_max: self.bits_max,
            others: forgets || self.full.other,
            folds: self.full.other,
            forgets,
            sparse: self.bits_max > self.bits,
            numbered: false,
        }
    }

    /// Returns whether the worker tends its histogram: it grows or loses entries.
    pub(in crate::hist) fn is_tended(&self) -> bool {
        let room = self.map_room();
        room.grows(self.bits) || room.forgets
    }

    /// Returns whether its keys have numbers of stacks, if they are more than a stack: only in its
    /// own map. Other histograms look up keys with variables by their words.
    pub(in crate::hist) fn interns(&self) -> bool {
        self.only_counts()
    }

    /// Returns whether a name of a task counts in the length of its keys as the map has it: in a
    /// trigger that C does not know. C counts 256 bytes.
    pub(in crate::hist) fn has_short_names(&self) -> bool {
        self.only_counts() && self.is_tended()
    }

    /// Returns whether a hit only updates columns: without variables, references and actions.
    fn only_counts(&self) -> bool {
        !self.has_vars() && self.actions.is_empty()
    }

    /// Returns whether a hit takes the stack of the program.
    pub fn takes_user_stacks(&self) -> bool {
        self.all_fields()
            .any(|field| field.function == Function::UserStack)
    }

    /// The clauses by which it makes room for new keys.
    pub fn room(&self) -> Room {
        Room {
            sizes: (self.bits_max > self.bits).then_some([self.bits, self.bits_max]),
            expire: self.expire,
            full: self.full,
        }
    }
}

fn size_of_keys(keys: &[HistField]) -> u32 {
    keys.last().map_or(0, |key| key.offset + key.size)
}

/// Returns whether two lists have the same length, and all their items match.
fn same_all<T>(a: &[T], b: &[T], matches: impl Fn(&T, &T) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| matches(a, b))
}
