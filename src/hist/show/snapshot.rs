// SPDX-License-Identifier: GPL-2.0

//! A snapshot of a histogram's entries, in the order in which they are shown.

use core::cmp::Ordering;

use kernel::{
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

use super::{
    key::{
        number,
        RowKey, //
    },
    others::Others,
    row::{
        self,
        read_consistent,
        ColumnTotals,
        Row, //
    },
    sort::heapsort,
    IntervalView,
    View, //
};
use crate::{
    event::Whole,
    hist::{
        buckets::{
            BucketCount,
            Buckets, //
        },
        reader::{
            Gone,
            Seen, //
        },
        spec::{
            field::Compare,
            SortBy,
            SortKey,
            Statistic, //
        },
        stacks::{
            StackList,
            Stacks, //
        },
        HistInterval,
        Histogram,
        Program, //
    },
    limits::{
        self,
        COMM_LEN, //
    },
    map::{
        EntryList,
        Generation,
        ListedEntry,
        Loss,
        OnceText,
        Other,
        PerMap,
        Totals, //
    },
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
    entries: EntryList,
    /// The stacks in their keys, if these are interned.
    stacks: Option<KBox<StackList>>,
    /// The columns of all entries, entry by entry.
    columns: KVVec<u64>,
    /// Indices of the entries, in the order in which they are shown.
    order: KVVec<u32>,
    /// Total and maximum of each column.
    totals: KVec<ColumnTotals>,
    /// Hits without an entry.
    others: Option<Others>,
    /// Entries that were taken out of the map.
    gone: Gone,
    /// The buckets of distributions, sorted by their keys.
    buckets: KVVec<BucketCount>,
    /// For each sort key that is computed, its number for each entry; empty for other keys.
    computed: KVec<KVVec<i128>>,
    /// The values of actions that changed, for an interval.
    changes: Option<Changes>,
    drops: u64,
    without_bucket: u64,
    losses: Losses,
}

/// Values of actions that have changed since a reader of intervals has seen them.
struct Changes {
    /// For each entry, a bit for each action.
    actions: KVVec<u8>,
    /// Whether a snapshot of the ring buffer was taken.
    snapshot: bool,
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
    /// Reads and sorts the entries. Fails with `ENOMEM`, and as [`Names::check_signal`].
    pub(super) fn take(view: &View<'_>) -> Result<Self> {
        let check_signal = || view.names.check_signal();
        let hist = view.hist;
        let mut snapshot = hist.map.whole(|held| {
            let totals = held.totals(GFP_KERNEL_ACCOUNT, &check_signal)?;
            let (rejected, gone) = (hist.rejected().counted(), hist.gone());
            Self::read(hist, &totals, rejected, gone, &check_signal)
        })?;
        snapshot.finish(None, &check_signal)?;
        Ok(KBox::into_inner(snapshot))
    }

    /// Sorts the entries with hits in an interval. Fails as [`Snapshot::take`].
    pub(super) fn of_interval(view: &mut IntervalView<'_>) -> Result<Self> {
        let names = view.view.names;
        let check_signal = || names.check_signal();
        let (hist, reader) = (view.view.hist, view.reader);
        let mut snapshot = hist.map.whole(|_| {
            if let Some(reader) = reader {
                reader.settle(view.interval)?;
            }
            let HistInterval {
                counts,
                rejected,
                gone,
            } = &*view.interval;
            Self::read(hist, &counts.totals, *rejected, *gone, &check_signal)
        })?;
        snapshot.finish(reader.map(|reader| &*reader.seen), &check_signal)?;
        Ok(KBox::into_inner(snapshot))
    }

    /// Reads the entries and losses.
    // Not inlined, as it needs much of the kernel's stack.
    #[inline(never)]
    fn read(
        hist: &Arc<Histogram>,
        totals: &PerMap<Totals>,
        rejected: u64,
        gone: Gone,
        check_signal: &dyn Fn() -> Result,
    ) -> Result<KBox<Self>> {
        // Before the keys are read: so their stacks stay.
        let _held = hist.stacks.as_ref().map(Stacks::hold);
        let contents = hist.map.contents();
        let buckets = Buckets::of(&contents).zip(totals.second.as_ref());
        let without_bucket = buckets.map_or(0, |(buckets, totals)| buckets.lost(totals));
        let buckets = match buckets {
            Some((buckets, totals)) => buckets.read(&contents, totals, check_signal)?,
            None => KVVec::new(),
        };
        let snapshot = Self {
            hist: hist.clone(),
            entries: EntryList::new(contents.clone()),
            stacks: None,
            columns: KVVec::new(),
            order: KVVec::new(),
            totals: KVec::new(),
            others: Others::read(hist, &contents, &totals.first, &buckets)?,
            gone,
            buckets,
            computed: KVec::new(),
            changes: None,
            drops: totals.first.drops(&contents),
            without_bucket,
            losses: Losses {
                excess: contents.in_excess().count(),
                unresolved: totals.first.loss(Loss::Unresolved),
                missed: totals.first.loss(Loss::Missed),
                rejected,
            },
            contents,
        };
        let mut snapshot = KBox::new(snapshot, GFP_KERNEL)?;
        snapshot.read_entries(&totals.first, check_signal)?;
        snapshot.read_stacks(check_signal)?;
        Ok(snapshot)
    }

    /// Sorts the entries, and computes totals and sort keys; for an interval, finds the values of
    /// actions that have changed since they were seen.
    fn finish(&mut self, seen: Option<&Mutex<Seen>>, check_signal: &dyn Fn() -> Result) -> Result {
        if let Some(seen) = seen {
            self.find_changes(seen, check_signal)?;
        }
        self.add_up()?;
        self.sort_buckets(check_signal)?;
        self.compute(check_signal)?;
        self.sort(check_signal)
    }

    fn read_entries(&mut self, totals: &Totals, check_signal: &dyn Fn() -> Result) -> Result {
        let contents = &self.contents;
        let n_columns = self.n_columns();
        for (slot, entry) in (0..).map_while(|slot| Some((slot, contents.slot(slot)?))) {
            if slot as usize % BATCH == 0 {
                check_signal()?;
            }
            let Some(entry) = entry else {
                continue;
            };
            let column = |number| totals.column(entry.number(), number);
            // The hit that inserted it has not counted yet, or it has none in the interval.
            if column(0) == 0 {
                continue;
            }
            self.entries.push(entry, GFP_KERNEL_ACCOUNT)?;
            for number in 0..n_columns {
                self.columns.push(column(number), GFP_KERNEL_ACCOUNT)?;
            }
        }
        Ok(())
    }

    /// The code of its hits.
    pub(super) fn program(&self) -> &Program {
        &self.hist.code.program
    }

    /// Reads the stacks in the keys of the entries.
    fn read_stacks(&mut self, check_signal: &dyn Fn() -> Result) -> Result {
        let Some(stacks) = &self.hist.stacks else {
            return Ok(());
        };
        let mut list = StackList::new(stacks)?;
        let parts = self.hist.code.program.interned.iter();
        for part in parts.filter(|part| part.is_stack()) {
            for entry in 0..self.entries.len() {
                if entry % BATCH == 0 {
                    check_signal()?;
                }
                let key = self.entries.get(entry).map(ListedEntry::key);
                let bytes = key.and_then(|key| key.get(part.at..)).unwrap_or(&[]);
                list.add(number(bytes), part.is_long())?;
            }
        }
        self.stacks = Some(KBox::new(list, GFP_KERNEL)?);
        Ok(())
    }

    /// Finds the entries in which actions have stored values that a reader has not seen.
    fn find_changes(&mut self, seen: &Mutex<Seen>, check_signal: &dyn Fn() -> Result) -> Result {
        let mut actions = KVVec::with_capacity(self.len(), GFP_KERNEL_ACCOUNT)?;
        let mut seen = seen.lock();
        seen.grow(&self.hist)?;
        let snapshot = seen.snapshot_changed(&self.hist);
        for entry in (0..).take(self.len()) {
            if entry as usize % BATCH == 0 {
                check_signal()?;
            }
            let changed = match self.listed(entry) {
                Some(listed) => seen.changed(&self.hist, listed)?,
                None => 0,
            };
            actions.push(changed, GFP_KERNEL_ACCOUNT)?;
        }
        self.changes = Some(Changes { actions, snapshot });
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
        // It would make the bars of `.graph` short.
        let others = self.others.iter().flat_map(Others::sum);
        for (totals, &column) in self.totals.iter_mut().zip(others) {
            totals.total = totals.total.wrapping_add(column);
        }
        Ok(())
    }

    fn sort_buckets(&mut self, check_signal: &dyn Fn() -> Result) -> Result {
        // A histogram may have many buckets, but an element has few.
        let is_same = |a: &BucketCount, b: &BucketCount| a.element() == b.element();
        for (n, buckets) in self.buckets.chunk_by_mut(is_same).enumerate() {
            if n % BATCH == 0 {
                check_signal()?;
            }
            buckets.sort_unstable_by_key(BucketCount::key);
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
        let listed = self.listed(entry);
        Row {
            spec: &self.hist.spec,
            program: &self.hist.code.program,
            groups: self.hist.groups.as_ref(),
            key: self.key(entry),
            // Empty if none is stored.
            comm: listed.map_or([0; COMM_LEN], ListedEntry::text),
            columns: self.columns(entry),
            totals: &self.totals,
            buckets: &self.buckets,
            element: listed.map(ListedEntry::number),
            entry: listed,
            actions: match &self.changes {
                Some(changes) => changes.actions[entry as usize],
                None => u8::MAX,
            },
        }
    }

    /// Returns whether the cause of the last snapshot of the ring buffer is shown: not in an
    /// interval in which none was taken.
    pub(super) fn shows_last_snapshot(&self) -> bool {
        self.changes.as_ref().is_none_or(|changes| changes.snapshot)
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
        self.entries.len()
    }

    /// Number of hits of all entries, and of hits without one in `other`.
    pub(super) fn hits(&self) -> u64 {
        self.totals[0].total
    }

    /// The hits of one kind without an entry, as a row. `None`: the trigger has none.
    pub(super) fn other(&self, other: Other) -> Option<Row<'_>> {
        let others = self.others.as_ref()?;
        let row = others.row(&self.hist, other, &self.totals, &self.buckets);
        self.hist.spec.has_other(other).then_some(row)
    }

    /// The hits without an entry, as a row. `None`: the trigger has none.
    pub(super) fn others(&self) -> Option<Row<'_>> {
        let others = self.others.as_ref()?;
        Some(others.sum_row(&self.hist, &self.totals))
    }

    /// Entries that were taken out of the map.
    pub(super) fn gone(&self) -> Gone {
        self.gone
    }

    /// Losses other than drops.
    pub(super) fn losses(&self) -> Losses {
        self.losses
    }

    /// Number of hits that were dropped.
    pub(super) fn drops(&self) -> u64 {
        self.drops
    }

    fn listed(&self, entry: u32) -> Option<ListedEntry<'_>> {
        self.entries.get(entry as usize)
    }

    fn key(&self, entry: u32) -> RowKey<'_> {
        let bytes = self.listed(entry).map_or(&[][..], ListedEntry::key);
        RowKey::new(&self.hist, bytes, self.stacks.as_deref())
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
            |&a, &b| self.key(a).compare(&self.key(b)),
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
                let by = spec.keys[n].compare();
                compare_keys(by, self.key(a).part(n), self.key(b).part(n))
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
            groups: hist.groups.as_ref(),
            key: RowKey::new(hist, &self.key, None),
            comm: self.comm,
            columns: &[],
            totals: &[],
            buckets: &[],
            element: None,
            entry: None,
            actions: u8::MAX,
        }
    }
}
