// SPDX-License-Identifier: MIT OR Apache-2.0

//! Totals of a histogram since it was first started. They include counts of triggers that are gone,
//! and limit the number of label sets. Idle label sets are removed.

use foldhash::HashMap;
use foldhash::HashMapExt;
use rhist_core::question::Interval;
use rhist_core::question::is_signed;
use rhist_core::room::Idle;
use rhist_core::table::Begin;
use rhist_core::table::Column;
use rhist_core::table::Fold;
use rhist_core::table::Key;
use rhist_core::table::Keys;
use rhist_core::table::Losses;
use rhist_core::table::Other;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Text;
use rhist_core::table::Time;
use rhist_core::table::fold;

/// Value of each label of the label set that collects the folded keys.
pub const OTHER: &str = "other";

/// Index of the label set of the folded keys.
const FOLDED: usize = 0;

/// Totals of a histogram: the sum of its intervals. They never fall, whatever happens to the
/// triggers. A label set that is removed begins with 0 if it comes again.
#[derive(Debug)]
pub struct Totals {
    /// Names of values and fields that can be negative, so that their sums can fall.
    pub signed: Vec<String>,
    /// Counts are pushed, too: a label set is kept until its last counts are.
    pub is_pushed: bool,
    /// Limit of label sets, besides the folded one.
    limit: usize,
    /// Columns of keys and values, from the first reading.
    keys: Vec<Column>,
    values: Vec<Column>,
    /// Label sets; the first one collects the folded keys, and is never removed.
    sets: Vec<LabelSet>,
    /// Indices in `sets` by label set.
    places: HashMap<Vec<String>, usize>,
    /// Indices in `sets` of removed label sets, for others to take.
    free: Vec<usize>,
    /// Keys seen. A key that was folded once stays folded, until it is idle.
    known: HashMap<Keys, Known>,
    /// Time after which an idle key or label set is removed.
    idle: Option<Idle>,
    /// Rows have a begin: a later one means that the kernel has taken out the row before.
    has_begins: bool,
    /// Hits of keys that were taken out, which no label set has: since they were idle, and since
    /// their places were needed. `None` if keys are not taken out.
    expired: Option<u64>,
    recycled: Option<u64>,
    /// All counts.
    total: Counted,
    /// Counts since [`Totals::take_fresh()`].
    fresh: Counted,
    /// End of the last interval.
    time: Time,
    /// End of the last interval that was taken.
    taken: Option<Time>,
}

/// A label set.
#[derive(Debug, Default)]
struct LabelSet {
    labels: Vec<String>,
    /// Number of known keys with these labels.
    keys: u64,
    /// Time of the last hits: `CLOCK_MONOTONIC` in nanoseconds.
    last_ns: u64,
}

/// A key with its label set.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Index of the label set.
    place: usize,
    /// When its row in the kernel began, if known.
    begin: Option<Begin>,
    /// Time of the last hits: `CLOCK_MONOTONIC` in nanoseconds.
    last_ns: u64,
}

/// Counts by the indices of label sets.
#[derive(Clone, Debug, Default)]
struct Counted {
    rows: Vec<Option<Row>>,
    losses: Losses,
    events: u64,
    rejected: Option<u64>,
}

/// A label set with its counts.
#[derive(Clone, Copy, Debug)]
pub struct Set<'a> {
    /// Values of labels, parallel to [`Totals::keys()`].
    pub labels: &'a [String],
    /// Counts, without keys.
    pub row: &'a Row,
}

impl Totals {
    /// Creates empty totals.
    pub fn new(limit: u32) -> Self {
        Self {
            signed: Vec::new(),
            is_pushed: false,
            limit: limit as usize,
            keys: Vec::new(),
            values: Vec::new(),
            sets: vec![LabelSet::default()],
            places: HashMap::new(),
            free: Vec::new(),
            known: HashMap::new(),
            idle: None,
            has_begins: false,
            expired: None,
            recycled: None,
            total: Counted::default(),
            fresh: Counted::default(),
            time: Time::default(),
            taken: None,
        }
    }

    /// Sets after which time idle keys are removed, as the kernel does, and whether the begin of a
    /// row tells that the kernel has taken out an earlier row of its keys: not if a row is the sum
    /// of several rows of the kernel.
    pub fn remove_idle(&mut self, idle: Option<Idle>, has_begins: bool) {
        (self.idle, self.has_begins) = (idle, has_begins);
        if idle.is_some() {
            self.expired.get_or_insert(0);
        }
    }

    /// Adds an interval. `label` turns keys into labels.
    pub fn add(&mut self, interval: Interval, label: impl Fn(&Column, &Key) -> String) {
        let mut table = interval.delta;
        if self.values.is_empty() && self.keys.is_empty() {
            (self.keys, self.values) = (table.keys, table.values);
            self.sets[FOLDED].labels = vec![OTHER.to_owned(); self.keys.len()];
            // A real key named `other` shares this label set. A table without keys has a single
            // row, which is never folded.
            if !self.keys.is_empty() {
                self.places.insert(self.sets[FOLDED].labels.clone(), FOLDED);
            }
            // Gives label sets of their own to the keys with most hits.
            table.rows.sort_by_key(|row| std::cmp::Reverse(row.hits));
        }
        let mut now = Counted {
            losses: table.losses,
            events: interval.events,
            rejected: interval.rejected,
            ..Counted::default()
        };
        let now_ns = interval.to.monotonic_ns;
        for mut row in table.rows {
            let other = row.other();
            let keys = std::mem::take(&mut row.keys);
            let place = match other {
                Some(Other::Folded) => FOLDED,
                // History of keys is in their label sets; only the last hits of each are new.
                Some(Other::Expired) => {
                    self.expired = fold::sum(self.expired, Some(row.hits));
                    continue;
                }
                Some(Other::Recycled) => {
                    self.recycled = fold::sum(self.recycled, Some(row.hits));
                    continue;
                }
                None => self.place(keys, row.begin, now_ns, &label),
            };
            self.sets[place].last_ns = now_ns;
            // A label set may have been removed while the kernel kept the row.
            if let (Some(_), Some(begin)) = (self.idle, &mut row.begin)
                && self.total.rows.get(place).is_none_or(Option::is_none)
            {
                begin.at.realtime_ns = begin.at.realtime_ns.max(self.time.realtime_ns);
            }
            now.add(place, row, |ours, row| ours.merge(&row, &self.values));
        }
        self.fresh.append(now.clone(), &self.values);
        self.total.append(now, &self.values);
        self.time = interval.to;
        self.remove_before(now_ns);
    }

    /// Removes keys and label sets that were idle for too long at this time.
    fn remove_before(&mut self, now_ns: u64) {
        let Some(idle) = self.idle else { return };
        let is_idle = |last_ns: u64| now_ns.saturating_sub(last_ns) >= idle.ns();
        self.known.retain(|_, known| {
            let stays = !is_idle(known.last_ns);
            if !stays {
                self.sets[known.place].keys -= 1;
            }
            stays
        });
        for place in FOLDED + 1..self.sets.len() {
            let is_fresh = self.fresh.rows.get(place).is_some_and(Option::is_some);
            let is_awaited = self.is_pushed && is_fresh;
            if !is_idle(self.sets[place].last_ns) || is_awaited || !self.restart(place) {
                continue;
            }
            if let Some(fresh) = self.fresh.rows.get_mut(place) {
                *fresh = None;
            }
            let LabelSet { labels, .. } = std::mem::take(&mut self.sets[place]);
            self.places.remove(&labels);
            self.free.push(place);
        }
    }

    /// Lets a label set begin with 0 at its next hits. Returns whether it had any.
    fn restart(&mut self, place: usize) -> bool {
        let row = self.total.rows.get_mut(place).and_then(Option::take);
        if let Some(row) = &row {
            self.expired = fold::sum(self.expired, Some(row.hits));
        }
        row.is_some()
    }

    /// Returns whether the sums of a column never fall. A column may be an expression of fields.
    pub fn is_counter(&self, column: &Column) -> bool {
        column.fold == Fold::Sum && !is_signed(&self.signed, &column.name)
    }

    /// Forgets the keys, since new triggers may count others. Only label sets are permanent.
    pub fn forget_keys(&mut self) {
        self.known.clear();
        self.sets.iter_mut().for_each(|set| set.keys = 0);
    }

    /// Index of the label set for a row.
    fn place(
        &mut self,
        keys: Keys,
        begin: Option<Begin>,
        now_ns: u64,
        label: impl Fn(&Column, &Key) -> String,
    ) -> usize {
        if let Some(known) = self.known.get_mut(&keys) {
            let place = known.place;
            let is_reborn = self.has_begins
                && known
                    .begin
                    .zip(begin)
                    .is_some_and(|(before, now)| now.is_after(&before));
            (known.begin, known.last_ns) = (begin.or(known.begin), now_ns);
            // Other keys with the same labels may go on.
            if is_reborn && place != FOLDED && self.sets[place].keys == 1 {
                self.restart(place);
            }
            return place;
        }
        let labels: Vec<String> = self
            .keys
            .iter()
            .zip(&keys)
            .map(|(column, key)| label(column, key))
            .collect();
        let place = match self.places.get(&labels) {
            Some(&place) => place,
            None if self.sets.len() - self.free.len() <= self.limit => {
                let place = self.free.pop().unwrap_or(self.sets.len());
                let set = LabelSet {
                    labels: labels.clone(),
                    ..LabelSet::default()
                };
                match self.sets.get_mut(place) {
                    Some(free) => *free = set,
                    None => self.sets.push(set),
                }
                self.places.insert(labels, place);
                place
            }
            None => FOLDED,
        };
        self.sets[place].keys += 1;
        let known = Known {
            place,
            begin,
            last_ns: now_ns,
        };
        self.known.insert(keys, known);
        place
    }

    /// Columns of keys. Empty before the first reading.
    pub fn keys(&self) -> &[Column] {
        &self.keys
    }

    /// Columns of values. Empty before the first reading.
    pub fn values(&self) -> &[Column] {
        &self.values
    }

    /// Label sets with hits.
    pub fn sets(&self) -> impl Iterator<Item = Set<'_>> {
        let sets = self.sets.iter().zip(&self.total.rows);
        sets.filter_map(|(set, row)| {
            Some(Set {
                labels: &set.labels,
                row: row.as_ref()?,
            })
        })
    }

    /// Number of folded hits, and of folded keys, as far as these are known: the kernel folds keys,
    /// too.
    pub fn folded(&self) -> (u64, u64) {
        let row = self.total.rows.first().and_then(Option::as_ref);
        (row.map_or(0, |row| row.hits), self.sets[FOLDED].keys)
    }

    /// Hits of keys that were taken out, since they were idle, and since their places were needed.
    /// `None` if no key is.
    pub fn taken_out(&self) -> [Option<u64>; 2] {
        [self.expired, self.recycled]
    }

    /// Returns whether a label set was not removed: the keys of a row of [`Self::take_fresh()`].
    pub fn has(&self, labels: &[Key]) -> bool {
        let labels: Vec<String> = labels.iter().map(Key::to_string).collect();
        self.places.contains_key(&labels)
    }

    /// Takes the counts since the last call, or else since `start`, by label set. `None` without a
    /// reading since then.
    pub fn take_fresh(&mut self, start: &Time) -> Option<Interval> {
        let to = Some(&self.time).filter(|time| **time != Time::default())?.clone();
        let from = match self.taken.replace(to.clone()) {
            Some(taken) if taken == to => return None,
            taken => taken.unwrap_or_else(|| start.clone()),
        };
        let fresh = std::mem::take(&mut self.fresh);
        let row = |(set, row): (&LabelSet, Option<Row>)| {
            let keys = set.labels.iter().map(|label| Key::Text(Text::shown(label))).collect();
            row.map(|row| Row { keys, ..row })
        };
        Some(Interval {
            from,
            delta: Table {
                keys: self.keys.clone(),
                values: self.values.clone(),
                rows: self.sets.iter().zip(fresh.rows).filter_map(row).collect(),
                losses: fresh.losses,
                time: to.clone(),
            },
            to,
            events: fresh.events,
            rejected: fresh.rejected,
            ..Interval::default()
        })
    }

    /// Total losses.
    pub fn losses(&self) -> &Losses {
        &self.total.losses
    }

    /// Hits of all triggers, without hits rejected by a filter.
    pub fn events(&self) -> u64 {
        self.total.events
    }

    /// Hits rejected by the filters. `None` if the kernel does not count them.
    pub fn rejected(&self) -> Option<u64> {
        self.total.rejected
    }
}

impl Counted {
    fn add(&mut self, place: usize, row: Row, add: impl Fn(&mut Row, Row)) {
        if place >= self.rows.len() {
            self.rows.resize(place + 1, None);
        }
        match &mut self.rows[place] {
            Some(sum) => add(sum, row),
            empty => *empty = Some(row),
        }
    }

    /// Adds the next interval.
    fn append(&mut self, next: Counted, values: &[Column]) {
        for (place, row) in next.rows.into_iter().enumerate() {
            if let Some(row) = row {
                self.add(place, row, |ours, row| ours.append(row, values));
            }
        }
        self.losses.merge(&next.losses);
        self.events = self.events.saturating_add(next.events);
        self.rejected = fold::sum(self.rejected, next.rejected);
    }
}

#[cfg(test)]
mod tests;
