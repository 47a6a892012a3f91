// SPDX-License-Identifier: GPL-2.0

//! The row of hits without an entry, `other`.

use kernel::prelude::*;

use super::{
    key::RowKey,
    row::{
        ColumnTotals,
        Row, //
    }, //
};
use crate::{
    hist::{
        buckets::BucketCount,
        Histogram,
        Spec, //
    },
    limits::COMM_LEN,
    map::{
        Generation,
        Other,
        Totals, //
    },
};

/// Hits without an entry, of a trigger with `expire()` or `full()`.
pub(super) struct Others {
    /// The columns of each [`Other`], one after the other.
    columns: KVec<u64>,
    /// The columns of all of them.
    sum: KVec<u64>,
    /// The buckets of all of them, as buckets of the first.
    buckets: KVec<BucketCount>,
}

impl Spec {
    /// Returns whether hits of this trigger may count in `other`.
    pub(super) fn has_other(&self, other: Other) -> bool {
        match other {
            Other::Folded => self.full.other,
            Other::Expired => self.expire.idle_ns.is_some() || self.expire.taken,
            Other::Recycled => self.full.recycle,
        }
    }
}

impl Others {
    /// The hits without an entry in `totals`. `contents` has the elements, and `buckets` is in the
    /// order of these. Returns `None` for a map without such hits. Fails with `ENOMEM`.
    pub(super) fn read(
        hist: &Histogram,
        contents: &Generation,
        totals: &Totals,
        buckets: &[BucketCount],
    ) -> Result<Option<Self>> {
        if contents.others().next().is_none() {
            return Ok(None);
        }
        let kinds = &hist.code.program.columns;
        let mut columns = KVec::new();
        let mut sum = KVec::with_capacity(kinds.len(), GFP_KERNEL)?;
        for other in Other::ALL {
            for (n, kind) in kinds.iter().enumerate() {
                let column = totals.column(other.number(), n);
                columns.push(column, GFP_KERNEL)?;
                match sum.get_mut(n) {
                    Some(sum) => *sum = kind.join(*sum, column),
                    None => sum.push(column, GFP_KERNEL)?,
                }
            }
        }
        Ok(Some(Self {
            columns,
            sum,
            buckets: Self::join(buckets)?,
        }))
    }

    /// The buckets of all of them, which come first in `buckets`, in the order of their codes.
    /// Fails with `ENOMEM`.
    fn join(buckets: &[BucketCount]) -> Result<KVec<BucketCount>> {
        let last = Other::ALL.map(Other::number).into_iter().max();
        let others = buckets.partition_point(|bucket| Some(bucket.element()) <= last);
        let mut all = KVec::with_capacity(others, GFP_KERNEL)?;
        for bucket in &buckets[..others] {
            all.push(bucket.of(Other::Folded.number()), GFP_KERNEL)?;
        }
        all.sort_unstable_by_key(BucketCount::key);
        Ok(all)
    }

    /// The columns of one of them.
    fn columns(&self, other: Other) -> &[u64] {
        let width = self.sum.len();
        &self.columns[other as usize * width..][..width]
    }

    /// The columns of all of them.
    pub(super) fn sum(&self) -> &[u64] {
        &self.sum
    }

    /// One of them as a row. `buckets` has the buckets of all elements.
    pub(super) fn row<'a>(
        &'a self,
        hist: &'a Histogram,
        other: Other,
        totals: &'a [ColumnTotals],
        buckets: &'a [BucketCount],
    ) -> Row<'a> {
        Row {
            spec: &hist.spec,
            program: &hist.code.program,
            groups: hist.groups.as_ref(),
            key: RowKey::new(hist, &[], None),
            comm: [0; COMM_LEN],
            columns: self.columns(other),
            totals,
            buckets,
            element: Some(other.number()),
            entry: None,
            actions: 0,
        }
    }

    /// All of them as a row.
    pub(super) fn sum_row<'a>(
        &'a self,
        hist: &'a Histogram,
        totals: &'a [ColumnTotals],
    ) -> Row<'a> {
        Row {
            columns: &self.sum,
            buckets: &self.buckets,
            ..self.row(hist, Other::Folded, totals, &[])
        }
    }
}
