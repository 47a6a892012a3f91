// SPDX-License-Identifier: MIT OR Apache-2.0

//! Combines tables: sums over keys, sums of tables, and differences over time.

use std::borrow::Cow;
use std::hash::Hash;
use std::hash::Hasher;

use foldhash::HashMap;
use foldhash::HashMapExt;

use super::Column;
use super::Dist;
use super::Fold;
use super::Forgets;
use super::Key;
use super::Keys;
use super::Losses;
use super::Other;
use super::Row;
use super::Table;
use super::Value;
use super::Worst;

impl Table {
    /// Adds the rows and losses of `other`, which has the same columns. Keeps the later of the two
    /// times.
    pub fn merge(&mut self, other: Table) {
        self.add(other, |ours, row, values| ours.merge(&row, values));
    }

    /// Adds the interval that follows: see [`Row::append()`].
    pub fn append(&mut self, next: Table) {
        self.add(next, Row::append);
    }

    fn add(&mut self, other: Table, add: impl Fn(&mut Row, Row, &[Column])) {
        if self.keys.is_empty() && self.values.is_empty() && self.rows.is_empty() {
            (self.keys, self.values) = (other.keys, other.values);
        }
        if self.rows.is_empty() {
            self.rows = other.rows;
        } else {
            let places: Vec<_> = places(&other.rows, &self.rows).collect();
            for (row, place) in other.rows.into_iter().zip(places) {
                match place.and_then(|place| self.rows.get_mut(place)) {
                    Some(ours) => add(ours, row, &self.values),
                    None => self.rows.push(row),
                }
            }
        }
        self.losses.merge(&other.losses);
        self.time = other.time.max(std::mem::take(&mut self.time));
    }

    /// Increase since `earlier`, an older state of this table. Omits rows without an increase, and
    /// keeps the order of the others. A decrease counts as 0, as after `clear`.
    ///
    /// A minimum or maximum is [`Value::Unknown`] or `None` unless it must be among the new values.
    ///
    /// Hits of a row that was taken out since then are in no row but the one of all that were taken
    /// out: in that row, the ones that `earlier` has already do not count as an increase.
    pub fn since(&self, mut earlier: Table) -> Table {
        let places: Vec<_> = places(&self.rows, &earlier.rows).collect();
        let gone = match self.has_taken_out() {
            true => self.take_gone(&mut earlier, &places),
            false => None,
        };
        // Reuses the rows of `earlier`: for a hundred thousand rows, allocations would take most of
        // the time.
        let delta = |(row, place): (&Row, Option<usize>)| match place.and_then(|place| earlier.rows.get_mut(place)) {
            None => Some(row.clone()),
            Some(before) if row.hits < before.hits => None,
            // `earlier` may have been read during a hit, when the hit was counted but its values
            // were not.
            Some(before) if row.hits == before.hits && row.values == before.values => None,
            Some(before) => Some(row.since(std::mem::take(before), &self.values)),
        };
        let mut rows: Vec<Row> = self.rows.iter().zip(places).filter_map(delta).collect();
        if let Some(mut gone) = gone {
            for row in rows.iter_mut().filter(|row| row.is_taken_out()) {
                gone.keys.clone_from(&row.keys);
                let all = row.clone();
                *row = all.since(gone.clone(), &self.values);
                gone = gone.since(all, &self.values);
            }
            rows.retain(|row| !row.is_taken_out() || row.hits > 0);
        }
        Table {
            keys: self.keys.clone(),
            values: self.values.clone(),
            rows,
            losses: self.losses.since(&earlier.losses),
            time: self.time.clone(),
        }
    }

    /// The same table with one row for all keys without a row, as people see it.
    pub fn with_one_other(&self) -> Cow<'_, Table> {
        if !self.has_taken_out() {
            return Cow::Borrowed(self);
        }
        let (others, rows): (Vec<_>, Vec<_>) = self.rows.iter().cloned().partition(|row| row.other().is_some());
        let mut table = Table {
            keys: self.keys.clone(),
            values: self.values.clone(),
            rows,
            losses: self.losses.clone(),
            time: self.time.clone(),
        };
        let other = others.into_iter().reduce(|mut sum, row| {
            sum.merge(&row, &self.values);
            sum
        });
        table.rows.extend(other.map(|mut other| {
            other.keys.fill(Key::Other(Other::Folded));
            other
        }));
        Cow::Owned(table)
    }

    /// Number of rows that stand for keys of their own.
    pub fn entries(&self) -> u64 {
        self.rows.iter().filter(|row| row.other().is_none()).count() as u64
    }

    /// Hits of all rows.
    pub fn hits(&self) -> u64 {
        self.rows.iter().fold(0, |sum, row| sum.saturating_add(row.hits))
    }

    /// Returns whether rows were taken out: a row may then be missing, or have begun again.
    fn has_taken_out(&self) -> bool {
        self.rows.iter().any(Row::is_taken_out)
    }

    /// Takes the rows out of `earlier` that were taken out of this table since then. Returns their
    /// sum. `places` are the indices of this table's rows in `earlier`.
    fn take_gone(&self, earlier: &mut Table, places: &[Option<usize>]) -> Option<Row> {
        let mut stays = vec![false; earlier.rows.len()];
        for (row, place) in self.rows.iter().zip(places) {
            if let Some((place, before)) = place.and_then(|place| Some((place, earlier.rows.get(place)?))) {
                stays[place] = row.hits >= before.hits && !row.is_after(before);
            }
        }
        let mut gone: Option<Row> = None;
        for (row, _) in earlier.rows.iter_mut().zip(stays).filter(|(_, stays)| !stays) {
            // In its place, a row without counts stays.
            let none = Row {
                hits: 0,
                values: row.values.iter().map(Value::none).collect(),
                keys: row.keys.clone(),
                ..Row::default()
            };
            let row = std::mem::replace(row, none);
            match &mut gone {
                Some(gone) => gone.merge(&row, &self.values),
                None => gone = Some(row),
            }
        }
        gone
    }

    /// Moves rows whose keys have begun again in another row to the one of rows that were taken
    /// out: for a moment, the kernel shows both.
    pub(crate) fn take_out_former(&mut self) {
        let mut latest: HashMap<&[Key], usize> = HashMap::with_capacity(self.rows.len());
        let mut former = Vec::new();
        for (place, row) in self.rows.iter().enumerate() {
            let Some(other) = latest.insert(&row.keys, place) else {
                continue;
            };
            let is_latest = row.is_after(&self.rows[other]);
            if !is_latest {
                latest.insert(&row.keys, other);
            }
            former.push(if is_latest { other } else { place });
        }
        self.take_out(former);
    }

    /// Moves rows that begin again in `next`, the interval that follows, to the one of rows that
    /// were taken out.
    pub(super) fn take_out_reborn(&mut self, next: &Table) {
        let places = places(&next.rows, &self.rows);
        let reborn = next.rows.iter().zip(places).filter_map(|(row, place)| {
            let place = place?;
            row.is_after(self.rows.get(place)?).then_some(place)
        });
        let reborn = reborn.collect();
        self.take_out(reborn);
    }

    /// Moves rows that the kernel does not have any more at this time to the one of rows that were
    /// taken out, as far as that is known. The kernel keeps at most `size`.
    pub(super) fn take_out_old(&mut self, forgets: Forgets, now_ns: u64, size: u64) {
        let most = usize::try_from(size.saturating_mul(2)).unwrap_or(usize::MAX);
        let own = self.rows.iter().enumerate().filter(|(_, row)| row.other().is_none());
        let mut old: Vec<_> = own.map(|(place, row)| (row.last_ns.unwrap_or(0), place)).collect();
        match forgets {
            // Results never include rows of starts.
            Forgets { taken: true, .. } => {}
            Forgets {
                idle_ns: Some(idle_ns), ..
            } => {
                old.retain(|(last_ns, _)| now_ns.saturating_sub(*last_ns) > idle_ns.saturating_mul(2));
            }
            _ if old.len() > most => {
                // Half of them, so that this is rare.
                let half = old.len() / 2;
                old.select_nth_unstable(half);
                old.truncate(half);
            }
            _ => return,
        }
        self.take_out(old.into_iter().map(|(_, place)| place).collect());
    }

    /// Moves these rows to the one of rows that were taken out.
    fn take_out(&mut self, mut places: Vec<usize>) {
        // The last ones first, so that the others keep their places.
        places.sort_unstable_by(|a, b| b.cmp(a));
        for place in places {
            let mut row = self.rows.swap_remove(place);
            row.keys.fill(Key::Other(Other::Expired));
            (row.worst, row.begin, row.last_ns) = (None, None, None);
            match self.rows.iter_mut().find(|other| other.keys == row.keys) {
                Some(expired) => expired.merge(&row, &self.values),
                None => self.rows.push(row),
            }
        }
    }

    /// Describes the first row that differs from the one with the same keys in `total`; `None` if
    /// the rows are equal. Compares sums as the kernel adds: modulo 2^64.
    pub fn difference(&self, total: &Table) -> Option<String> {
        if self.has_taken_out() || total.has_taken_out() {
            // Which of its counts a row has taken along is known to the kernel only.
            let is_equal = self.total().is_equal(&total.total());
            return (!is_equal).then(|| {
                let (ours, theirs) = (self.hits(), total.hits());
                format!("all rows: the intervals add up to {ours} hits, the histogram has {theirs}, or other values")
            });
        }
        let none = |row: &Row| Row {
            hits: 0,
            values: Vec::new(),
            ..row.clone()
        };
        let row = |ours: &Row, theirs: &Row| {
            let keys: Vec<String> = ours.keys.iter().map(Key::to_string).collect();
            let what = match ours.hits == theirs.hits {
                true => format!(
                    "the intervals add up to other values, with the same {} hits",
                    theirs.hits
                ),
                false => format!(
                    "the intervals add up to {} hits, the histogram has {}",
                    ours.hits, theirs.hits
                ),
            };
            (!ours.is_equal(theirs)).then(|| format!("{}: {what}", keys.join(", ")))
        };
        let known = self.rows.iter().zip(places(&self.rows, &total.rows));
        let ours = known.map(|(ours, place)| match place.and_then(|place| total.rows.get(place)) {
            Some(theirs) => row(ours, theirs),
            None => row(ours, &none(ours)),
        });
        let unknown = total.rows.iter().zip(places(&total.rows, &self.rows));
        let theirs = unknown.filter(|(_, place)| place.is_none());
        ours.chain(theirs.map(|(theirs, _)| row(&none(theirs), theirs)))
            .flatten()
            .next()
    }

    /// Returns whether a number that cannot fall is lower in `later`, so that this is not its
    /// earlier state. `can_fall` tells so for the sums of a column.
    pub fn exceeds(&self, later: &Table, can_fall: impl Fn(&Column) -> bool) -> bool {
        if later.has_taken_out() {
            return self.losses.exceed(&later.losses) || self.hits() > later.hits();
        }
        let fell = |(row, place): (&Row, Option<usize>)| match place.and_then(|place| later.rows.get(place)) {
            Some(later) => row.exceeds(later, &self.values, &can_fall),
            None => row.hits > 0,
        };
        self.losses.exceed(&later.losses) || self.rows.iter().zip(places(&self.rows, &later.rows)).any(fell)
    }

    /// Moves sums without a value from `delta`, the increase since an older state, to the next one:
    /// the reading happened during a hit that had added only to the sum.
    pub fn hold_back(&mut self, delta: &mut Table) {
        for row in &mut delta.rows {
            for (n, value) in row.values.iter_mut().enumerate() {
                let Value::Dist(Dist {
                    count: 0,
                    sum: Some(early),
                    ..
                }) = value
                else {
                    continue;
                };
                let early = std::mem::take(early);
                // Rare, so a linear search is enough.
                let ours = match early {
                    0 => None,
                    _ => self.rows.iter_mut().find(|ours| ours.keys == row.keys),
                };
                if let Some(Value::Dist(ours)) = ours.and_then(|ours| ours.values.get_mut(n)) {
                    ours.sum = ours.sum.map(|sum| sum.saturating_sub(early));
                }
            }
        }
    }

    /// Sum of all rows, without keys. Without rows: no hits, and unknown values.
    pub fn total(&self) -> Row {
        let none = Row {
            keys: Keys::new(),
            hits: 0,
            values: self.values.iter().map(|_| Value::Unknown).collect(),
            worst: None,
            begin: None,
            last_ns: None,
        };
        let Some((first, rest)) = self.rows.split_first() else {
            return none;
        };
        let mut total = Row {
            keys: Keys::new(),
            ..first.clone()
        };
        for row in rest {
            total.merge(row, &self.values);
        }
        // A sum of rows whose maxima are not all known knows less than the rows.
        total.worst = self.worst().cloned();
        total
    }

    /// The largest value of all rows, as [`Table::total`] has it. `None` if a row may have had a
    /// larger one.
    pub fn worst(&self) -> Option<&Worst> {
        let worst = self.rows.iter().filter_map(|row| row.worst.as_ref()).max()?;
        let mut counted = self.rows.iter().filter(|row| row.hits > 0);
        counted.all(|row| row.is_at_most(worst)).then_some(worst)
    }

    /// Removes a key column, and merges rows that differ only in it. If the column does not exist,
    /// returns a copy.
    pub fn without_key(&self, key: usize) -> Table {
        self.grouped(key, self.values.clone(), Cow::Borrowed)
    }

    /// Turns a key with ranges of numbers (`.log2`) into a distribution: removes the key, and
    /// appends the value `column`. If value `sum` is the sum of these numbers, moves it to
    /// [`Dist::sum`].
    ///
    /// The buckets have scale 0. Ranges that match none of them (`.buckets=`), and keys that are
    /// not numbers, count without a bucket.
    ///
    /// Calls `change` for the distribution of each row before merging rows.
    pub fn fold_range(&self, key: usize, column: Column, sum: Option<usize>, change: impl Fn(&mut Dist)) -> Table {
        let sum = sum.filter(|&sum| sum < self.values.len());
        let mut values = self.values.clone();
        if let Some(sum) = sum {
            values.remove(sum);
        }
        values.push(column);
        self.grouped(key, values, |row| {
            let mut row = row.clone();
            let mut dist = match row.keys.get(key) {
                Some(key) => ranged(key, row.hits),
                None => Dist::default(),
            };
            if let Some(sum) = sum.filter(|&sum| sum < row.values.len()) {
                dist.sum = match row.values.remove(sum) {
                    Value::Number(number) => Some(number),
                    _ => None,
                };
            }
            change(&mut dist);
            row.values.push(Value::Dist(dist));
            Cow::Owned(row)
        })
    }

    /// Returns whether keys or saved fields contain addresses. `has_address` decides for a single
    /// one and its column.
    pub fn has_addresses(&self, has_address: impl Fn(&str, &Key) -> bool) -> bool {
        self.rows.iter().any(|row| {
            let mut saved = row.worst.iter().flat_map(|worst| worst.saved.iter());
            let mut keys = self.keys.iter().zip(&row.keys);
            keys.any(|(column, key)| has_address(&column.name, key)) || saved.any(|(name, key)| has_address(name, key))
        })
    }

    /// Removes addresses but keeps symbols, and merges rows that differ only in addresses.
    /// `has_address` as for [`Self::has_addresses()`].
    pub fn without_addresses(&self, has_address: impl Fn(&str, &Key) -> bool) -> Table {
        let mut places = HashMap::with_capacity(self.rows.len());
        let mut rows: Vec<Row> = Vec::new();
        for row in &self.rows {
            let mut row = row.clone();
            for (column, key) in self.keys.iter().zip(&mut row.keys) {
                if has_address(&column.name, key) {
                    key.remove_address();
                }
            }
            if let Some(worst) = &mut row.worst {
                let mut saved = worst.saved.to_vec();
                let addresses = saved.iter_mut().filter(|(name, key)| has_address(name, key));
                addresses.for_each(|(_, key)| key.remove_address());
                worst.saved = saved.into();
            }
            let place = *places.entry(row.keys.clone()).or_insert(rows.len());
            match rows.get_mut(place) {
                Some(ours) => ours.merge(&row, &self.values),
                None => rows.push(row),
            }
        }
        Table {
            keys: self.keys.clone(),
            values: self.values.clone(),
            rows,
            losses: self.losses.clone(),
            time: self.time.clone(),
        }
    }

    /// Applies `make` to each row, removes this key, and merges rows.
    fn grouped<'a>(&'a self, key: usize, values: Vec<Column>, make: impl Fn(&'a Row) -> Cow<'a, Row>) -> Table {
        let mut places = HashMap::with_capacity(self.rows.len());
        let mut rows: Vec<Row> = Vec::new();
        for row in &self.rows {
            let place = *places.entry(OtherKeys { keys: &row.keys, key }).or_insert(rows.len());
            let made = make(row);
            match rows.get_mut(place) {
                Some(row) => row.merge(&made, &values),
                None => {
                    let mut made = made.into_owned();
                    if key < made.keys.len() {
                        made.keys.remove(key);
                    }
                    rows.push(made);
                }
            }
        }
        let mut keys = self.keys.clone();
        if key < keys.len() {
            keys.remove(key);
        }
        Table {
            keys,
            values,
            rows,
            losses: self.losses.clone(),
            time: self.time.clone(),
        }
    }
}

/// Keys of a row except one, as a key of a hash table.
struct OtherKeys<'a> {
    keys: &'a [Key],
    key: usize,
}

impl OtherKeys<'_> {
    fn iter(&self) -> impl Iterator<Item = &Key> {
        let keys = self.keys.iter().enumerate();
        keys.filter(|&(n, _)| n != self.key).map(|(_, key)| key)
    }
}

impl PartialEq for OtherKeys<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for OtherKeys<'_> {}

impl Hash for OtherKeys<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.iter().for_each(|key| key.hash(state));
    }
}

/// Indices of `rows` among `others`, by their keys.
pub fn places<'a>(rows: &'a [Row], others: &'a [Row]) -> impl Iterator<Item = Option<usize>> + 'a {
    let mut finder = Finder::new(others);
    rows.iter().map(move |row| finder.find(&row.keys))
}

/// Finds rows by their keys. Tries the row after the last match first, since two readings of a
/// histogram have most rows in the same order. This is far faster than a hash table, which is built
/// only when needed.
struct Finder<'a> {
    rows: &'a [Row],
    next: usize,
    by_keys: Option<HashMap<&'a [Key], usize>>,
}

impl<'a> Finder<'a> {
    fn new(rows: &'a [Row]) -> Self {
        Finder {
            rows,
            next: 0,
            by_keys: None,
        }
    }

    fn find(&mut self, keys: &[Key]) -> Option<usize> {
        let rows = self.rows;
        let place = match rows.get(self.next) {
            Some(row) if *row.keys == *keys => self.next,
            _ => {
                let numbered = rows.iter().enumerate();
                let index = || numbered.map(|(place, row)| (row.keys.as_slice(), place)).collect();
                *self.by_keys.get_or_insert_with(index).get(keys)?
            }
        };
        self.next = place + 1;
        Some(place)
    }
}

/// A distribution of scale 0 with `hits` values in this range.
fn ranged(key: &Key, hits: u64) -> Dist {
    let mut dist = Dist::new(0);
    match *key {
        Key::Number(number) => {
            dist.record(number, hits);
            return dist;
        }
        Key::Range { first: 0, last: 1 } => {
            dist.record(1, hits);
            dist.one_has_zero = true;
        }
        Key::Range { first, last } => {
            let (mut lowest, mut highest) = (Dist::new(0), Dist::new(0));
            lowest.record(first, hits);
            highest.record(last, hits);
            dist.count = hits;
            if lowest.buckets().eq(highest.buckets()) {
                dist = lowest;
            }
        }
        _ => dist.count = hits,
    }
    (dist.sum, dist.min, dist.max) = (None, None, None);
    dist
}

impl Row {
    /// Reason why its keys lack a row of their own, if it stands for such keys.
    pub fn other(&self) -> Option<Other> {
        match self.keys.first() {
            Some(Key::Other(other)) => Some(*other),
            _ => None,
        }
    }

    /// The distribution of the values whose largest one is [`Row::worst`], with its index.
    pub fn first_dist(&self) -> Option<(usize, &Dist)> {
        self.values.iter().enumerate().find_map(|(i, value)| match value {
            Value::Dist(dist) => Some((i, dist)),
            Value::Number(_) | Value::Unknown => None,
        })
    }

    /// Returns whether it stands for rows that were taken out.
    fn is_taken_out(&self) -> bool {
        matches!(self.other(), Some(Other::Expired | Other::Recycled))
    }

    /// Returns whether it has begun after another row of the same keys: see [`Begin::is_after()`].
    fn is_after(&self, before: &Row) -> bool {
        let begins = self.begin.zip(before.begin);
        begins.is_some_and(|(now, before)| now.is_after(&before))
    }

    /// Adds the counts of `other`, whose values have the same columns.
    ///
    /// In an interval, `onmax()` only stores a value that is larger than all before. So a row may
    /// lack its largest one; if that may be the largest one of both, the sum lacks it, too.
    pub fn merge(&mut self, other: &Row, values: &[Column]) {
        let is_alone = self.hits == 0 || other.hits == 0;
        let worst = self.worst.as_ref().max(other.worst.as_ref());
        let worst = worst.filter(|worst| is_alone || self.is_at_most(worst) && other.is_at_most(worst));
        let worst = worst.cloned();
        self.add_counts(other, values);
        self.worst = worst;
    }

    /// Returns whether no value of it can be larger.
    fn is_at_most(&self, worst: &Worst) -> bool {
        let most = match &self.worst {
            Some(own) => Some(own.value),
            None => self.first_dist().and_then(|(_, dist)| dist.at_most()),
        };
        most.is_some_and(|most| most <= worst.value)
    }

    /// Adds all of `other` but the largest value.
    fn add_counts(&mut self, other: &Row, values: &[Column]) {
        self.hits = self.hits.saturating_add(other.hits);
        let pairs = self.values.iter_mut().zip(&other.values);
        for ((value, other), column) in pairs.zip(values) {
            value.merge(other, column.fold);
        }
        self.begin = match (self.begin, other.begin) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
        self.last_ns = self.last_ns.max(other.last_ns);
    }

    /// Adds the same row of the next interval. Keeps the known begin, which the clock's corrections
    /// would move a little each time.
    ///
    /// An unknown maximum of an interval was not larger than the maximum before it. So if only one
    /// of the two is known, it stands for both. The same holds for minima, and for values that
    /// `onmax()` has stored.
    pub fn append(&mut self, mut next: Row, values: &[Column]) {
        for ((ours, theirs), column) in self.values.iter_mut().zip(&mut next.values).zip(values) {
            share_extremes(ours, theirs, column.fold);
        }
        next.begin = self.begin.or(next.begin);
        self.add_counts(&next, values);
        if next.worst > self.worst {
            self.worst = next.worst;
        }
    }

    fn is_equal(&self, other: &Row) -> bool {
        let sum = |number: i128| number as u64;
        let is_equal = |pair: (&Value, &Value)| match pair {
            (Value::Number(a), Value::Number(b)) => sum(*a) == sum(*b),
            (Value::Dist(a), Value::Dist(b)) => {
                let sums = Dist {
                    sum: b.sum,
                    ..a.clone()
                };
                a.sum.map(sum) == b.sum.map(sum) && sums == *b
            }
            // Averages, which cannot be added.
            _ => true,
        };
        self.hits == other.hits && self.values.iter().zip(&other.values).all(is_equal)
    }

    fn exceeds(&self, later: &Row, values: &[Column], can_fall: impl Fn(&Column) -> bool) -> bool {
        let mut columns = self.values.iter().zip(&later.values).zip(values);
        self.hits > later.hits
            || columns.any(|((value, later), column)| match (value, later) {
                (Value::Number(number), Value::Number(later)) => {
                    number > later && column.fold == Fold::Sum && !can_fall(column)
                }
                (Value::Dist(dist), Value::Dist(later)) => dist.exceeds(later),
                _ => false,
            })
    }

    fn since(&self, mut earlier: Row, values: &[Column]) -> Row {
        earlier.hits = self.hits.saturating_sub(earlier.hits);
        let pairs = self.values.iter().zip(&mut earlier.values);
        for ((now, before), column) in pairs.zip(values) {
            let taken = std::mem::replace(before, Value::Unknown);
            *before = now.since(taken, column.fold);
        }
        earlier.worst = match (&self.worst, &earlier.worst) {
            (Some(now), Some(before)) if now.value <= before.value => None,
            (worst, _) => worst.clone(),
        };
        (earlier.begin, earlier.last_ns) = (self.begin, self.last_ns);
        earlier
    }
}

fn share_extremes(a: &mut Value, b: &mut Value, fold: Fold) {
    match (a, b) {
        (Value::Dist(a), Value::Dist(b)) => {
            (a.min, b.min) = (a.min.or(b.min), b.min.or(a.min));
            (a.max, b.max) = (a.max.or(b.max), b.max.or(a.max));
        }
        (unknown @ Value::Unknown, known @ Value::Number(_)) | (known @ Value::Number(_), unknown @ Value::Unknown)
            if fold != Fold::Sum =>
        {
            unknown.clone_from(known);
        }
        _ => (),
    }
}

impl Value {
    /// A value of this kind before the first hit.
    fn none(&self) -> Self {
        match self {
            Value::Number(_) => Value::Number(0),
            Value::Dist(dist) => Value::Dist(Dist {
                sum: dist.sum.and(Some(0)),
                bucket_unit: dist.bucket_unit,
                ..Dist::new(dist.scale)
            }),
            Value::Unknown => Value::Unknown,
        }
    }

    /// Adds `other`. The result is unknown if one of them is unknown, or if their kinds differ.
    fn merge(&mut self, other: &Value, fold: Fold) {
        match (&mut *self, other) {
            (Value::Number(number), &Value::Number(other)) => {
                *number = match fold {
                    Fold::Sum => number.saturating_add(other),
                    Fold::Min => other.min(*number),
                    Fold::Max => other.max(*number),
                }
            }
            (Value::Dist(dist), Value::Dist(other)) => dist.merge(other),
            _ => *self = Value::Unknown,
        }
    }

    fn since(&self, earlier: Value, fold: Fold) -> Value {
        match (self, earlier) {
            (&Value::Number(now), Value::Number(before)) => match fold {
                Fold::Sum => Value::Number(now.saturating_sub(before)),
                Fold::Min if now < before => Value::Number(now),
                Fold::Max if now > before => Value::Number(now),
                Fold::Min | Fold::Max => Value::Unknown,
            },
            (Value::Dist(now), Value::Dist(before)) => Value::Dist(now.since(before)),
            _ => Value::Unknown,
        }
    }
}

/// Sum of two counts. A missing count is ignored.
pub fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

/// Increase of a count.
pub(crate) fn less(now: Option<u64>, before: Option<u64>) -> Option<u64> {
    now.map(|now| now.saturating_sub(before.unwrap_or(0)))
}

impl Losses {
    /// Adds the losses of `other`. Missing counts are ignored.
    pub fn merge(&mut self, other: &Losses) {
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.dropped_starts = self.dropped_starts.saturating_add(other.dropped_starts);
        self.no_bucket = sum(self.no_bucket, other.no_bucket);
        self.unresolved = sum(self.unresolved, other.unresolved);
        self.missed = sum(self.missed, other.missed);
        self.missed_hits = sum(self.missed_hits, other.missed_hits);
        self.expired_starts = sum(self.expired_starts, other.expired_starts);
    }

    fn exceed(&self, later: &Losses) -> bool {
        self.dropped > later.dropped
            || self.dropped_starts > later.dropped_starts
            || self.no_bucket > later.no_bucket
            || self.unresolved > later.unresolved
            || self.missed > later.missed
            || self.missed_hits > later.missed_hits
            || self.expired_starts > later.expired_starts
    }

    fn since(&self, earlier: &Losses) -> Losses {
        Losses {
            dropped: self.dropped.saturating_sub(earlier.dropped),
            dropped_starts: self.dropped_starts.saturating_sub(earlier.dropped_starts),
            no_bucket: less(self.no_bucket, earlier.no_bucket),
            unresolved: less(self.unresolved, earlier.unresolved),
            missed: less(self.missed, earlier.missed),
            missed_hits: less(self.missed_hits, earlier.missed_hits),
            expired_starts: less(self.expired_starts, earlier.expired_starts),
        }
    }
}

#[cfg(test)]
mod tests;
