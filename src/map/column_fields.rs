// SPDX-License-Identifier: GPL-2.0

//! The fast path of maps with columns of any kind.

use kernel::{
    prelude::*,
    sync::atomic::Atomic, //
};

use super::{
    columns::{
        Column,
        ColumnSet,
        Extreme, //
    },
    elt::{
        Elt,
        OwnParts, //
    },
    fields::{
        Fields,
        KeyFields,
        KeyForm,
        RecordFields, //
    },
    generation::Generation, //
};
use crate::{
    event::{
        Number,
        NumberType,
        Record, //
    },
    sync::PreemptOff, //
};

/// The fields of a record that make a key, and the fields that columns of any kind are updated
/// with.
///
/// # Invariants
///
/// No field reaches beyond the `end` of `key`.
pub struct ColumnFields {
    key: RecordFields,
    values: KVec<(Number, ColumnSet)>,
    /// The commonest form, tested first.
    min_max_sum: Option<MinMaxSumFields>,
}

/// A key that is one `u32`, and one value with the columns smallest, largest and sum.
#[derive(Clone, Copy)]
struct MinMaxSumFields {
    /// Offset of the key.
    key: u32,
    value: Number,
    max: Extreme,
}

/// A hit of [`MinMaxSumFields`] whose element was found.
pub struct MinMaxSumHit<'a> {
    parts: &'a [Atomic<u64>; 4],
    max: Extreme,
    /// The number of the element.
    pub element: u32,
    /// The value read from the record.
    pub value: u64,
}

impl MinMaxSumHit<'_> {
    /// Updates the columns of the element. Any context.
    #[inline(always)]
    pub fn count(self) {
        self.max.count_min_max_sum(self.parts, self.value);
    }
}

impl ColumnFields {
    /// Fields for this key, and columns that are updated with `values`. `None`: the key has no
    /// words, or too many. Fails with `ENOMEM`.
    pub fn new(key: &KeyFields<'_>, values: KVec<(Number, ColumnSet)>) -> Result<Option<Self>> {
        let Some(mut key) = RecordFields::new(key, KVec::new())? else {
            return Ok(None);
        };
        let min_max_sum = match (&key.key, &values[..]) {
            (&KeyForm::U32(key), &[(value, ColumnSet::MinMaxSum(max))]) => {
                Some(MinMaxSumFields { key, value, max })
            }
            _ => None,
        };
        // INVARIANT: `end` is the largest end of all fields.
        let ends = values.iter().map(|(value, ..)| value.end());
        key.end = ends.fold(key.end, usize::max);
        Ok(Some(Self {
            key,
            values,
            min_max_sum,
        }))
    }

    /// Returns whether `record` is long enough for all fields.
    #[inline(always)]
    pub fn fit(&self, record: Record<'_>) -> bool {
        self.key.of(record).is_some()
    }

    /// Updates the columns of the element. Returns true.
    #[inline(always)]
    fn count(&self, fields: Fields<'_>, elt: Elt<'_>, preempt: PreemptOff<'_>) -> bool {
        let Some(OwnParts { columns, parts }) = elt.own_parts(preempt) else {
            return self.count_shared(fields, elt, preempt);
        };
        let mut next = 1;
        for (number, set) in &self.values {
            // SAFETY: By the invariants the number is before the end of the fields, which the
            // record reaches.
            let value = number.read(&unsafe { fields.unchecked() });
            set.update(columns, parts, next, value);
            next = next.wrapping_add(set.len());
        }
        // Last: see `Counters::update()`.
        Column::count_hit(parts);
        true
    }

    /// Updates the columns of the element on a CPU that shares them. Returns true.
    #[cold]
    #[inline(never)]
    fn count_shared(&self, fields: Fields<'_>, elt: Elt<'_>, preempt: PreemptOff<'_>) -> bool {
        elt.update(preempt, &self.values, |(number, set)| {
            // SAFETY: By the invariants the number is before the end of the fields, which the
            // record reaches.
            (number.read(&unsafe { fields.unchecked() }), *set)
        });
        true
    }

    /// Calls `note` with the number of the element and each value, by its index.
    #[inline(always)]
    fn note(&self, fields: Fields<'_>, elt: Elt<'_>, note: impl Fn(usize, u32, u64)) {
        for (nth, (number, _)) in self.values.iter().enumerate() {
            // SAFETY: By the invariants the number is before the end of the fields, which the
            // record reaches.
            let value = number.read(&unsafe { fields.unchecked() });
            note(nth, elt.number(), value);
        }
    }
}

impl Generation {
    /// Counts a hit whose key and values are these fields of `record`: see
    /// [`super::Map::count_columns`].
    #[inline(always)]
    pub(super) fn count_columns(
        &self,
        columns: &ColumnFields,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> bool {
        let Some(fields) = columns.key.of(record) else {
            return false;
        };
        match self.find_min_max_sum(columns, fields, preempt) {
            Some(hit) => hit.count(),
            None => return self.count_columns_slow(columns, record, preempt),
        }
        true
    }

    /// Finds the element of a hit of [`MinMaxSumFields`] in the first slot of its path, where most
    /// are. `None`: it is not there, the fields are not [`MinMaxSumFields`], or this CPU shares its
    /// columns with others. Any context.
    #[inline(always)]
    fn find_min_max_sum<'a>(
        &'a self,
        columns: &ColumnFields,
        fields: Fields<'_>,
        preempt: PreemptOff<'_>,
    ) -> Option<MinMaxSumHit<'a>> {
        let min_max_sum = columns.min_max_sum.as_ref()?;
        // SAFETY: By the invariants key and value are before the end of the fields, which the
        // record reaches.
        let bytes = unsafe { fields.unchecked() };
        let elt = self.lookup_word_first_slot(NumberType::U32.read(min_max_sum.key, &bytes))?;
        Some(MinMaxSumHit {
            parts: elt.own_parts(preempt)?.parts.first_chunk()?,
            max: min_max_sum.max,
            element: elt.number(),
            value: min_max_sum.value.read(&bytes),
        })
    }

    /// [`Generation::find_min_max_sum`] for a record: see [`super::Map::find_min_max_sum`].
    #[inline(always)]
    pub(super) fn find_min_max_sum_of<'a>(
        &'a self,
        columns: &ColumnFields,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> Option<MinMaxSumHit<'a>> {
        self.find_min_max_sum(columns, columns.key.of(record)?, preempt)
    }

    /// Slow path of [`Generation::count_columns`]. Returns true, as its caller does, so that the
    /// call is a jump.
    #[inline(never)]
    fn count_columns_slow(
        &self,
        columns: &ColumnFields,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> bool {
        // This cannot fail: the record was found to be long enough.
        self.count_columns_with(columns, record, preempt, |_, _, _| ());
        true
    }

    /// [`Generation::count_columns`] that calls `note` with each value: see
    /// [`super::Map::count_columns_with`].
    #[inline(always)]
    pub(super) fn count_columns_with(
        &self,
        columns: &ColumnFields,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        note: impl Fn(usize, u32, u64),
    ) -> bool {
        let Some(fields) = columns.key.of(record) else {
            return false;
        };
        if let Some(elt) = self.insert_fields(fields, record, preempt) {
            columns.note(fields, elt, note);
            columns.count(fields, elt, preempt);
        }
        true
    }
}
