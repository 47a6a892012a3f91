// SPDX-License-Identifier: GPL-2.0

//! A snapshot of a histogram's entries, in the order in which they are shown.

use core::cmp::Ordering;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    row::{
        self,
        number,
        read_consistent,
        ColumnTotals,
        Row, //
    },
    sort::heapsort, //
};
use crate::{
    event::Whole,
    hist::{
        buckets::{
            BucketCount,
            Buckets, //
        },
        spec::{
            field::Compare,
            SortBy,
            SortKey,
            Statistic, //
        },
        Histogram, //
    },
    limits::{
        self,
        COMM_LEN, //
    },
    map::{
        Elt,
        Generation,
        OnceText, //
    },
    sync::smp_rmb,
    text::until_nul,
    trigger::ModifierKind, //
};

/// Number of slots or entries visited between calls of `check_signal`.
const BATCH: usize = 1024;

/// The entries of a histogram with their columns, each read once. Later hits do not change the
/// values that are sorted and shown. It is kept while the file is open, so it takes little memory
/// for each entry, and is charged to the reader.
pub(super) struct Snapshot {
    hist: Arc<Histogram>,
    contents: Arc<Generation>,
    /// Slots of the entries.
    slots: KVVec<u32>,
    /// The columns of all entries, entry by entry.
    columns: KVVec<u64>,
    /// Indices of the entries, in the order in which they are shown.
    order: KVVec<u32>,
    /// Total and maximum of each column.
    totals: KVec<ColumnTotals>,
    /// The buckets of distributions, sorted by their keys.
    buckets: KVVec<BucketCount>,
    /// For each sort key that is computed, its number for each entry; empty for other keys.
    computed: KVec<KVVec<i128>>,
    drops: u64,
    without_bucket: u64,
    losses: Losses,
}

/// Losses that `hist` does not show.
#[derive(Clone, Copy)]
pub(super) struct Losses {
    /// Number of excess elements, whose hits are dropped: see [`Generation::excess`].
    pub(super) excess: usize,
    /// See [`Histogram::unresolved`].
    pub(super) unresolved: u64,
    /// See [`Histogram::missed`].
    pub(super) missed: u64,
    /// See [`Histogram::rejected`].
    pub(super) rejected: u64,
}

impl Snapshot {
    /// Reads and sorts the entries. Fails with `ENOMEM`, and with the error of `check_signal`,
    /// which is called now and then.
    pub(super) fn take(hist: &Arc<Histogram>, check_signal: &dyn Fn() -> Result) -> Result<Self> {
        let contents = hist.map.contents();
        let mut snapshot = Self {
            hist: hist.clone(),
            slots: KVVec::new(),
            columns: KVVec::new(),
            order: KVVec::new(),
            totals: KVec::new(),
            buckets: KVVec::new(),
            computed: KVec::new(),
            drops: contents.drops(),
            without_bucket: Buckets::of(&contents).map_or(0, Buckets::lost),
            losses: Losses {
                excess: contents.excess(),
                unresolved: hist.unresolved(),
                missed: hist.missed(),
                rejected: hist.rejected().counted(),
            },
            contents,
        };
        snapshot.read(check_signal)?;
        snapshot.add_up()?;
        // Pairs with `DistributionCode::count()`.
        smp_rmb();
        snapshot.read_buckets(check_signal)?;
        snapshot.compute(check_signal)?;
        snapshot.sort(check_signal)?;
        Ok(snapshot)
    }

    fn read(&mut self, check_signal: &dyn Fn() -> Result) -> Result {
        let (contents, len) = (&self.contents, self.contents.len());
        let n_columns = self.n_columns();
        // Enough, unless more keys are inserted meanwhile.
        self.slots.reserve(len, GFP_KERNEL_ACCOUNT)?;
        self.columns.reserve(len * n_columns, GFP_KERNEL_ACCOUNT)?;
        for (slot, entry) in (0..).map_while(|slot| Some((slot, contents.slot(slot)?))) {
            if slot as usize % BATCH == 0 {
                check_signal()?;
            }
            let Some(entry) = entry else {
                continue;
            };
            let hitcount = entry.column(0);
            // The hit that inserted it has not counted yet.
            if hitcount == 0 {
                continue;
            }
            self.slots.push(slot, GFP_KERNEL_ACCOUNT)?;
            self.columns.push(hitcount, GFP_KERNEL_ACCOUNT)?;
            for number in 1..n_columns {
                self.columns
                    .push(entry.column(number), GFP_KERNEL_ACCOUNT)?;
            }
        }
        Ok(())
    }

    fn add_up(&mut self) -> Result {
        let n = self.n_columns();
        self.totals = KVec::from_elem(ColumnTotals { total: 0, max: 0 }, n, GFP_KERNEL)?;
        for columns in self.columns.chunks_exact(n) {
            for (totals, &column) in self.totals.iter_mut().zip(columns) {
                totals.total = totals.total.wrapping_add(column);
                totals.max = totals.max.max(column);
            }
        }
        Ok(())
    }

    fn read_buckets(&mut self, check_signal: &dyn Fn() -> Result) -> Result {
        if let Some(buckets) = Buckets::of(&self.contents) {
            self.buckets = buckets.read(check_signal)?;
            // A histogram may have many buckets, but an element has few.
            let is_same = |a: &BucketCount, b: &BucketCount| a.element() == b.element();
            for (n, buckets) in self.buckets.chunk_by_mut(is_same).enumerate() {
                if n % BATCH == 0 {
                    check_signal()?;
                }
                buckets.sort_unstable_by_key(BucketCount::key);
            }
        }
        Ok(())
    }

    /// Computes the sort keys that are statistics, once for each entry.
    fn compute(&mut self, check_signal: &dyn Fn() -> Result) -> Result {
        let hist = self.hist.clone();
        for key in &hist.spec.sort {
            let mut numbers = KVVec::new();
            let is_computed = match key.by {
                SortBy::Distribution(..) => true,
                SortBy::Value(n) => hist.spec.vals[n]
                    .modifier
                    .is_some_and(ModifierKind::is_statistic),
                SortBy::Key(_) => false,
            };
            if is_computed {
                numbers.reserve(self.len(), GFP_KERNEL_ACCOUNT)?;
                for entry in (0..).take(self.len()) {
                    if entry as usize % BATCH == 0 {
                        check_signal()?;
                    }
                    let number = self.number(key.by, entry).unwrap_or(i128::MIN);
                    numbers.push(number, GFP_KERNEL_ACCOUNT)?;
                }
            }
            self.computed.push(numbers, GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Computes the sort key `by` of an entry. `None`: the entry has no such number.
    fn number(&self, by: SortBy, entry: u32) -> Option<i128> {
        let spec = &self.hist.spec;
        let (n, statistic) = match by {
            SortBy::Distribution(n, statistic) => (n, statistic),
            SortBy::Value(n) => {
                let number = row::statistic(spec, self.columns(entry), &spec.vals[n]);
                return number.map(Whole::value);
            }
            SortBy::Key(_) => return None,
        };
        let distribution = self.entry(entry).distribution(n)?;
        Some(match statistic {
            Statistic::Min => distribution.min.value(),
            Statistic::Max => distribution.max.value(),
            Statistic::Avg => distribution.avg.value(),
            Statistic::Quantile(quantile) => distribution.quantile(quantile)?.tenths(),
        })
    }

    /// Number of columns of an entry.
    fn n_columns(&self) -> usize {
        self.hist.code.program.columns.len()
    }

    pub(super) fn hist(&self) -> &Histogram {
        &self.hist
    }

    /// The entry that is shown as number `n`, from 0; `None` if that is not shown.
    pub(super) fn row(&self, n: usize) -> Option<Row<'_>> {
        if n >= self.shown() {
            return None;
        }
        Some(self.entry(*self.order.get(n)?))
    }

    fn entry(&self, entry: u32) -> Row<'_> {
        Row {
            spec: &self.hist.spec,
            program: &self.hist.code.program,
            key: self.key(entry),
            comm: self.comm(entry),
            columns: self.columns(entry),
            totals: &self.totals,
            buckets: &self.buckets,
            elt: self.elt(entry),
        }
    }

    /// Number of entries that are shown.
    pub(super) fn shown(&self) -> usize {
        let limit = self.hist.spec.limit.map(usize::try_from);
        self.len()
            .min(limit.and_then(Result::ok).unwrap_or(usize::MAX))
    }

    /// Number of values that are in no bucket of a distribution; `None` without distributions.
    pub(super) fn without_bucket(&self) -> Option<u64> {
        Buckets::of(&self.contents).map(|_| self.without_bucket)
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Number of hits of all entries.
    pub(super) fn hits(&self) -> u64 {
        self.totals[0].total
    }

    /// Losses other than drops.
    pub(super) fn losses(&self) -> Losses {
        self.losses
    }

    /// Number of hits that were dropped.
    pub(super) fn drops(&self) -> u64 {
        self.drops
    }

    fn elt(&self, entry: u32) -> Option<Elt<'_>> {
        self.contents.slot(self.slots[entry as usize]).flatten()
    }

    fn key(&self, entry: u32) -> &[u8] {
        self.elt(entry).map_or(&[], Elt::key)
    }

    /// The comm of the entry; an empty one if none is stored.
    fn comm(&self, entry: u32) -> [u8; COMM_LEN] {
        let text = self.elt(entry).and_then(|elt| OnceText::of(elt.side()));
        text.map_or([0; COMM_LEN], OnceText::load)
    }

    fn columns(&self, entry: u32) -> &[u64] {
        let n = self.n_columns();
        &self.columns[entry as usize * n..][..n]
    }

    /// Sorts by the bytes of the keys, then by the sort keys of the trigger: see [`super::sort`].
    fn sort(&mut self, check_signal: &dyn Fn() -> Result) -> Result {
        let mut order = KVVec::with_capacity(self.len(), GFP_KERNEL_ACCOUNT)?;
        for entry in (0..).take(self.len()) {
            order.push(entry, GFP_KERNEL_ACCOUNT)?;
        }
        heapsort(
            &mut order,
            |&a, &b| self.key(a).cmp(self.key(b)),
            check_signal,
        )?;
        self.sort_by(
            &mut order,
            &self.hist.spec.sort,
            &self.computed,
            check_signal,
        )?;
        self.order = order;
        Ok(())
    }

    /// Sorts by the first of `keys`, then runs of equal entries by the rest.
    fn sort_by(
        &self,
        mut order: &mut [u32],
        keys: &[SortKey],
        computed: &[KVVec<i128>],
        check_signal: &dyn Fn() -> Result,
    ) -> Result {
        let (Some((key, rest)), Some((numbers, others))) =
            (keys.split_first(), computed.split_first())
        else {
            return Ok(());
        };
        let compare = |a, b| self.compare(key, numbers, a, b);
        heapsort(order, |&a, &b| compare(a, b), check_signal)?;
        if rest.is_empty() {
            return Ok(());
        }
        while let Some(&first) = order.first() {
            let equal = |&entry: &u32| compare(first, entry).is_eq();
            let n = order.iter().take_while(|entry| equal(entry)).count();
            let (run, next) = order.split_at_mut(n.max(1));
            self.sort_by(run, rest, others, check_signal)?;
            order = next;
        }
        Ok(())
    }

    fn compare(&self, key: &SortKey, numbers: &[i128], a: u32, b: u32) -> Ordering {
        let spec = &self.hist.spec;
        let order = match key.by {
            _ if !numbers.is_empty() => numbers[a as usize].cmp(&numbers[b as usize]),
            SortBy::Distribution(..) => Ordering::Equal,
            SortBy::Value(n) => match spec.vals[n].column() {
                Some(column) => self.columns(a)[column].cmp(&self.columns(b)[column]),
                None => Ordering::Equal,
            },
            SortBy::Key(n) => {
                let at = self.hist.code.program.parts[n].at;
                let by = spec.keys[n].compare();
                compare_keys(by, &self.key(a)[at..], &self.key(b)[at..])
            }
        };
        match key.descending {
            true => order.reverse(),
            false => order,
        }
    }
}

/// Compares the key fields at the start of `a` and `b`.
fn compare_keys(by: Compare, a: &[u8], b: &[u8]) -> Ordering {
    match by {
        Compare::Nothing => Ordering::Equal,
        Compare::Text => until_nul(a).cmp(until_nul(b)),
        Compare::Number(type_) => type_.compare(number(a), number(b)),
        Compare::Bytes(count) => a.get(..count).cmp(&b.get(..count)),
    }
}

/// The hit that the last snapshot of the ring buffer was taken for.
pub(super) struct LastSnapshot {
    /// The value that triggered it.
    pub(super) value: u64,
    key: KVec<u8>,
    comm: [u8; COMM_LEN],
}

impl LastSnapshot {
    /// Reads the value and key stored with the last snapshot of `hist`; `None` if none was taken.
    /// Fails with `ENOMEM`, and as [`read_consistent`].
    pub(super) fn read(hist: &Histogram) -> Result<Option<Self>> {
        let Some(cell) = hist.last_snapshot() else {
            return Ok(None);
        };
        let key_words = hist.map.contents().key_size() / size_of::<u64>();
        let mut words = [0; 1 + limits::KEY_SIZE_MAX as usize / size_of::<u64>() + OnceText::WORDS];
        if !read_consistent(|| cell.read(&mut words))? {
            return Ok(None);
        }
        let mut key = KVec::new();
        for word in &words[1..=key_words] {
            key.extend_from_slice(&word.to_ne_bytes(), GFP_KERNEL)?;
        }
        Ok(Some(Self {
            value: words[0],
            key,
            comm: OnceText::of_words([words[1 + key_words], words[2 + key_words]]),
        }))
    }

    /// Its key as a row.
    pub(super) fn row<'a>(&'a self, hist: &'a Histogram) -> Row<'a> {
        Row {
            spec: &hist.spec,
            program: &hist.code.program,
            key: &self.key,
            comm: self.comm,
            columns: &[],
            totals: &[],
            buckets: &[],
            elt: None,
        }
    }
}
