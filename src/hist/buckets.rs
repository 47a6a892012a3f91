// SPDX-License-Identifier: GPL-2.0

//! The buckets of a histogram's distributions.
//!
//! They are the entries of the [second](Generation::second) map beside the histogram's. Its key is
//! one word: the number of the element, the number of the distribution, and the code of the bucket.
//! So a bucket takes memory only if a value is in it, and elements share the memory for buckets.
//! Keys are in the order of elements, distributions and values.

use core::mem;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    program::number::DistributionCode,
    Spec, //
};
use crate::{
    limits::{
        BUCKETS_BITS_GROWN,
        BUCKETS_BITS_MAX, //
    },
    map::{
        Column,
        Generation,
        Request,
        Room,
        Shape,
        Totals, //
    },
    sync::{
        smp_wmb,
        PreemptOff, //
    },
};

/// The buckets of all distributions of a histogram.
#[derive(Clone, Copy)]
pub(in crate::hist) struct Buckets<'a>(&'a Generation);

/// A bucket with values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::hist) struct BucketCount {
    key: u64,
    /// Number of values.
    pub(in crate::hist) count: u64,
}

/// Number of buckets read between calls of `check_signal`.
const BATCH: usize = 1024;

const CODE_BITS: u32 = 16;
const NUMBER_BITS: u32 = 8;

/// The key of a bucket of distribution `number` of an element.
#[inline(always)]
fn key(element: u32, number: u16, code: u16) -> u64 {
    (u64::from(element) << NUMBER_BITS | u64::from(number)) << CODE_BITS | u64::from(code)
}

impl BucketCount {
    /// The lowest key of distribution `number` of an element.
    pub(in crate::hist) fn first_key(element: u32, number: u16) -> u64 {
        key(element, number, 0)
    }

    pub(in crate::hist) fn key(&self) -> u64 {
        self.key
    }

    /// The number of the element.
    pub(in crate::hist) fn element(&self) -> u32 {
        (self.key >> (NUMBER_BITS + CODE_BITS)) as u32
    }

    /// This bucket, as one of `element`.
    pub(in crate::hist) fn of(mut self, element: u32) -> Self {
        let below = NUMBER_BITS + CODE_BITS;
        self.key = u64::from(element) << below | self.key & ((1 << below) - 1);
        self
    }

    /// The code of the bucket.
    pub(in crate::hist) fn code(&self) -> u16 {
        self.key as u16
    }
}

impl DistributionCode {
    /// Counts a value of an element of `generation` in its bucket. The caller counts the hit after
    /// this: a reader of an entry's hits and then of its buckets finds the value of each hit in
    /// them. Any context.
    #[inline(always)]
    pub(in crate::hist) fn count(
        &self,
        generation: &Generation,
        preempt: PreemptOff<'_>,
        element: u32,
        value: u64,
    ) {
        if let Some(buckets) = Buckets::of(generation) {
            buckets.count(preempt, element, self.number, self.buckets.code(value));
            smp_wmb();
        }
    }
}

impl<'a> Buckets<'a> {
    /// Returns the shape of the map for the distributions of `spec`, beside a map of shape `of`;
    /// `None` if it has none. Hits ask its worker by `request`.
    pub(super) fn shape<'s>(
        spec: &Spec,
        of: &Shape<'_>,
        request: Option<&'s Arc<Request>>,
    ) -> Option<Shape<'s>> {
        let distributions = spec.distributions().count() as u64;
        if distributions == 0 {
            return None;
        }
        let of_entry = u64::from(spec.distributions.buckets) * distributions;
        let bits = |entries: u32| (of_entry << entries).next_power_of_two().ilog2();
        let bits_first = bits(of.bits).min(BUCKETS_BITS_MAX);
        let bits_max = match of.room.grows(of.bits) {
            true => bits(of.room.bits_max).min(BUCKETS_BITS_GROWN),
            false => bits_first,
        };
        Some(Shape {
            bits: bits_first,
            key_size: size_of::<u64>(),
            columns: &[Column::Hits],
            vars: 0,
            wide: &[],
            side: 0,
            clock: None,
            cpus: of.cpus,
            // Different from the histogram's.
            seed: !of.seed,
            room: Room {
                bits_max,
                // The buckets of entries that are taken out become buckets of `other`.
                others: of.room.forgets,
                folds: false,
                forgets: of.room.forgets,
                sparse: of.room.sparse,
                numbered: false,
            },
            request,
        })
    }

    /// The buckets beside the elements of `generation`; `None` without distributions. Any context.
    #[inline(always)]
    pub(in crate::hist) fn of(generation: &'a Generation) -> Option<Self> {
        generation.second().map(Self)
    }

    /// Counts a value of distribution `number` of an element. Any context.
    #[inline(always)]
    fn count(self, preempt: PreemptOff<'_>, element: u32, number: u16, code: u16) {
        if let Some(bucket) = self.0.insert_word(preempt, key(element, number, code)) {
            bucket.count(preempt);
        }
    }

    /// Number of values that are in no bucket, because the map was full, in `totals`.
    pub(in crate::hist) fn lost(self, totals: &Totals) -> u64 {
        totals.drops(self.0)
    }

    /// Reads the buckets with values in `totals`, in the order of the elements, which `generation`
    /// has; the buckets of an element are in no order. Task context. Fails with `ENOMEM`, and with
    /// the error of `check_signal`, which is called now and then.
    pub(in crate::hist) fn read(
        self,
        generation: &Generation,
        totals: &Totals,
        check_signal: &dyn Fn() -> Result,
    ) -> Result<KVVec<BucketCount>> {
        let mut buckets = KVVec::new();
        for (n, elt) in self.0.elts().enumerate() {
            if n % BATCH == 0 {
                check_signal()?;
            }
            let count = totals.column(elt.number(), 0);
            if count == 0 {
                continue;
            }
            let key = elt.key_words().next().unwrap_or(0);
            buckets.push(BucketCount { key, count }, GFP_KERNEL_ACCOUNT)?;
        }
        let nth = |bucket: &BucketCount| generation.nth(bucket.element());
        by_element(&buckets, nth, check_signal)
    }
}

/// Orders buckets by element, the index of which `nth` returns. A counting sort.
fn by_element(
    buckets: &[BucketCount],
    nth: impl Fn(&BucketCount) -> usize,
    check_signal: &dyn Fn() -> Result,
) -> Result<KVVec<BucketCount>> {
    let elements = buckets.iter().map(|bucket| nth(bucket) + 1).max();
    // For each element, first its number of buckets, then the place of its next one.
    let mut places = KVVec::from_elem(0, elements.unwrap_or(0), GFP_KERNEL_ACCOUNT)?;
    for bucket in buckets {
        places[nth(bucket)] += 1;
    }
    let mut begin = 0;
    for place in &mut places {
        begin += mem::replace(place, begin);
    }
    let none = BucketCount { key: 0, count: 0 };
    let mut ordered = KVVec::from_elem(none, buckets.len(), GFP_KERNEL_ACCOUNT)?;
    for (n, bucket) in buckets.iter().enumerate() {
        if n % BATCH == 0 {
            check_signal()?;
        }
        let place = &mut places[nth(bucket)];
        ordered[*place] = *bucket;
        *place += 1;
    }
    Ok(ordered)
}
