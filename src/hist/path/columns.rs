// SPDX-License-Identifier: GPL-2.0

//! Hits whose key and values are plain fields of the record, with columns of any kind, and
//! distributions.

use kernel::prelude::*;

use super::{
    fields::{
        Fields,
        KeyFields,
        KeyForm,
        RecordFields, //
    },
    record::insert, //
};
use crate::{
    event::{
        Number,
        NumberType,
        Record, //
    },
    hist::program::number::DistributionCode,
    map::{
        ColumnSet,
        Elt,
        Extreme,
        Generation,
        MinMaxSumParts, //
    },
    sync::PreemptOff, //
};

/// The fields of a record that make a key, and the fields that columns of any kind are updated
/// with.
///
/// # Invariants
///
/// No field reaches beyond the `end` of `key`.
pub(in crate::hist) struct ColumnFields {
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
struct MinMaxSumHit<'a> {
    parts: MinMaxSumParts<'a>,
    max: Extreme,
    /// The number of the element.
    element: u32,
    /// The value read from the record.
    value: u64,
}

impl MinMaxSumHit<'_> {
    /// Updates the columns of the element.
    #[inline(always)]
    fn count(self) {
        self.parts.count(self.max, self.value);
    }
}

impl ColumnFields {
    /// Fields for this key, and columns that are updated with `values`. `None`: the key has no
    /// words, or too many. Fails with `ENOMEM`.
    pub(super) fn new(
        key: &KeyFields<'_>,
        values: KVec<(Number, ColumnSet)>,
    ) -> Result<Option<Self>> {
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

    /// Counts a hit whose key and values are these fields of `record`. Returns false, and has done
    /// nothing, if the record is too short for them. Any context.
    #[inline(always)]
    pub(super) fn count(
        &self,
        generation: &Generation,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> bool {
        let Some(fields) = self.key.of(record) else {
            return false;
        };
        match self.find_min_max_sum(generation, fields, preempt) {
            Some(hit) => hit.count(),
            None => return self.count_slow(generation, record, preempt),
        }
        true
    }

    /// Slow path of [`ColumnFields::count`]. Returns true, as its caller does, so that the call is
    /// a jump.
    #[inline(never)]
    fn count_slow(
        &self,
        generation: &Generation,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> bool {
        // This cannot fail: the record was found to be long enough.
        self.count_with(generation, record, preempt, |_, _, _| ());
        true
    }

    /// [`ColumnFields::count`] that also calls `note` with each value: its index, the number of the
    /// element, and the value.
    #[inline(always)]
    fn count_with(
        &self,
        generation: &Generation,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        note: impl Fn(usize, u32, u64),
    ) -> bool {
        let Some(fields) = self.key.of(record) else {
            return false;
        };
        if let Some(elt) = insert(generation, fields, record, preempt) {
            self.note(fields, elt, note);
            elt.update_inline(preempt, &self.values, |(number, set)| {
                (fields.number(number), *set)
            });
        }
        true
    }

    /// Calls `note` with the number of the element and each value, by its index.
    #[inline(always)]
    fn note(&self, fields: Fields<'_>, elt: Elt<'_>, note: impl Fn(usize, u32, u64)) {
        for (nth, (number, _)) in self.values.iter().enumerate() {
            note(nth, elt.number(), fields.number(number));
        }
    }

    /// Finds the element of a hit of [`MinMaxSumFields`] in the first slot of its path, where most
    /// are. `None`: it is not there, the fields are not [`MinMaxSumFields`], or this CPU shares its
    /// columns with others.
    #[inline(always)]
    fn find_min_max_sum<'a>(
        &self,
        generation: &'a Generation,
        fields: Fields<'_>,
        preempt: PreemptOff<'_>,
    ) -> Option<MinMaxSumHit<'a>> {
        let min_max_sum = self.min_max_sum.as_ref()?;
        let key = fields.number_at(NumberType::U32, min_max_sum.key);
        let elt = generation.lookup_word_first_slot(key)?;
        Some(MinMaxSumHit {
            parts: elt.min_max_sum(preempt)?,
            max: min_max_sum.max,
            element: elt.number(),
            value: fields.number(&min_max_sum.value),
        })
    }
}

/// [`ColumnFields`], some of whose values are counted in distributions.
pub(in crate::hist) struct DistributionFields {
    columns: ColumnFields,
    /// For each value, its distribution, if it has one.
    distributions: KVec<Option<DistributionCode>>,
}

impl DistributionFields {
    pub(super) fn new(
        columns: ColumnFields,
        distributions: KVec<Option<DistributionCode>>,
    ) -> Self {
        Self {
            columns,
            distributions,
        }
    }

    /// Counts a hit whose key and values are these fields of `record`. Returns false, and has done
    /// nothing, if the record is too short for them. Any context.
    #[inline(always)]
    pub(super) fn count(
        &self,
        generation: &Generation,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> bool {
        let Some(fields) = self.columns.key.of(record) else {
            return false;
        };
        let (Some(Some(distribution)), Some(hit)) = (
            self.distributions.first(),
            self.columns.find_min_max_sum(generation, fields, preempt),
        ) else {
            return self.count_slow(generation, record, preempt);
        };
        distribution.count(generation, preempt, hit.element, hit.value);
        hit.count();
        true
    }

    /// Slow path: the hit has several values, or its element is not in the first slot of its path.
    /// Returns true, as its caller does, so that the call is a jump.
    #[inline(never)]
    fn count_slow(
        &self,
        generation: &Generation,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> bool {
        self.columns
            .count_with(generation, record, preempt, |nth, element, value| {
                if let Some(Some(distribution)) = self.distributions.get(nth) {
                    distribution.count(generation, preempt, element, value);
                }
            });
        true
    }
}
