// SPDX-License-Identifier: GPL-2.0

//! Readers of the intervals of a histogram.

use core::mem;

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
};

use super::Histogram;
use crate::{
    event::Moment,
    map::{
        Elt,
        Interval,
        ListedEntry,
        PerMap,
        Totals, //
    },
};

/// A reader of the intervals of a histogram. Dropping it ends it.
///
/// Its memory is charged to the task that creates it.
pub struct IntervalReader {
    histogram: Arc<Histogram>,
    /// Its identity in the map.
    id: u64,
    /// Rejected hits at the end of the last interval.
    rejected: Atomic<u64>,
    pub(in crate::hist) seen: Pin<KBox<Mutex<Seen>>>,
}

impl Histogram {
    /// Bytes of memory that another reader of its intervals takes, with the bank and the totals
    /// that the first one makes. `None`: the size overflows. May sleep.
    pub fn reader_bytes(&self) -> Option<usize> {
        self.map.reader_bytes()?.checked_add(Seen::bytes(self)?)
    }

    /// Bytes of memory that an interval takes while it is read.
    pub fn interval_bytes(&self) -> usize {
        self.map.totals_bytes()
    }

    /// Number of readers of its intervals, of cuts so far, and bytes of memory for both; `None` if
    /// it never had a reader. May sleep.
    pub fn intervals(&self) -> Option<(usize, u64, usize)> {
        let (readers, cuts) = self.map.readers_and_cuts()?;
        let seen = Seen::bytes(self)?.checked_mul(readers)?;
        let bytes = self.map.interval_bytes().checked_add(seen)?;
        Some((readers, cuts, bytes))
    }
}

/// Numbers of entries that were taken out of a histogram.
#[derive(Clone, Copy, Default)]
pub(in crate::hist) struct Gone {
    /// Entries that were idle, or had variables that were taken.
    pub(in crate::hist) expired: u64,
    /// Expired entries in which a variable was set.
    pub(in crate::hist) expired_set: u64,
    /// Entries that gave way to others.
    pub(in crate::hist) recycled: u64,
}

impl Gone {
    /// The number since then, from the numbers `before` and now.
    fn since(self, before: Self) -> Self {
        Self {
            expired: self.expired.wrapping_sub(before.expired),
            expired_set: self.expired_set.wrapping_sub(before.expired_set),
            recycled: self.recycled.wrapping_sub(before.recycled),
        }
    }
}

impl Histogram {
    /// Entries that were taken out of it so far. May sleep.
    pub(in crate::hist) fn gone(&self) -> Gone {
        let gone = self.map.room().map(|room| Gone {
            expired: room.expired,
            expired_set: room.expired_set,
            recycled: room.recycled,
        });
        gone.unwrap_or_default()
    }
}

/// An interval that a reader has taken: see [`IntervalReader::take`].
pub struct HistInterval {
    /// Columns and losses, and the edges.
    pub(in crate::hist) counts: Interval,
    /// Rejected hits since the last interval was taken.
    pub(in crate::hist) rejected: u64,
    /// Entries that were taken out since then.
    pub(in crate::hist) gone: Gone,
}

impl HistInterval {
    /// Takes the whole life of a histogram that has ended, after its last hit, for a reader that
    /// has read nothing of it. May sleep. Fails with `ENOMEM`, and with the error of
    /// `check_signal`, which is called now and then.
    pub fn whole(
        histogram: &Histogram,
        end: End,
        check_signal: &dyn Fn() -> Result,
    ) -> Result<Self> {
        let begin = histogram.begin();
        Ok(Self {
            counts: Interval {
                totals: histogram.map.totals(GFP_KERNEL_ACCOUNT, check_signal)?,
                begin,
                end: end.at.later(begin),
            },
            rejected: end.rejected_of(histogram),
            gone: histogram.gone(),
        })
    }

    /// The edge at which it begins.
    pub fn begin(&self) -> Moment {
        self.counts.begin
    }

    /// The edge at which it ends.
    pub fn end(&self) -> Moment {
        self.counts.end
    }
}

/// Memory for an interval, allocated before it is taken.
pub struct Room(PerMap<Totals>);

/// The end of a histogram.
#[derive(Clone, Copy)]
pub struct End {
    /// How it has ended.
    pub how: Ended,
    /// The time after which no hit begins to count.
    pub at: Moment,
    /// Rejected hits of all its life; `None` if they are known after its last hit.
    pub rejected: Option<u64>,
    /// Whether it lives on elsewhere, under its name: hits go on to count.
    pub lives_on: bool,
}

impl End {
    /// Rejected hits of `histogram`, which has ended so.
    fn rejected_of(self, histogram: &Histogram) -> u64 {
        let counted = || histogram.rejected().counted();
        self.rejected.unwrap_or_else(counted)
    }
}

/// Ways in which a histogram ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Another one has replaced it.
    Cleared,
    /// Its trigger was removed.
    Removed,
}

/// The begin of the first interval of a reader.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// The edge of the next cut.
    AtNextEdge,
    /// The creation of the histogram.
    WithHistogram,
}

impl IntervalReader {
    /// Creates a reader. Task context, may sleep.
    ///
    /// # Errors
    ///
    /// `EUSERS` if the histogram has too many; `ENOMEM`.
    pub fn new(histogram: &Arc<Histogram>, begins: Begins) -> Result<Self> {
        let map = &histogram.map;
        map.begin_intervals(histogram.begin())?;
        let (created, rejected) = match begins {
            Begins::AtNextEdge => (None, histogram.rejected().counted()),
            Begins::WithHistogram => (Some(histogram.begin()), 0),
        };
        let mut seen = Seen::new(histogram)?;
        if begins == Begins::AtNextEdge {
            seen.see_all(histogram);
            seen.gone = histogram.gone();
        }
        let seen = KBox::pin_init(kernel::new_mutex!(seen), GFP_KERNEL_ACCOUNT)?;
        Ok(Self {
            // Last: if anything fails, no reader is left.
            id: map.add_reader(created, GFP_KERNEL_ACCOUNT)?,
            histogram: histogram.clone(),
            rejected: Atomic::new(rejected),
            seen,
        })
    }

    /// The histogram, which it keeps.
    pub fn histogram(&self) -> &Arc<Histogram> {
        &self.histogram
    }

    /// Makes room for the next interval. May sleep. Fails with `ENOMEM`.
    pub fn room(&self) -> Result<Room> {
        let map = &self.histogram.map;
        map.zero_totals(GFP_KERNEL_ACCOUNT).map(Room)
    }

    /// Takes the interval since the last one: up to the last cut; or to the end of the histogram,
    /// if it has `ended`, after its last hit. One task at a time. May sleep.
    ///
    /// # Errors
    ///
    /// `EAGAIN` while a cut moves counts, if a cut came after [`IntervalReader::room`], and before
    /// the first interval.
    pub fn take(&self, room: Room, ended: Option<End>) -> Result<HistInterval> {
        let until = ended.filter(|end| !end.lives_on).map(|end| end.at);
        let counts = self.histogram.map.take_interval(self.id, room.0, until)?;
        let rejected = match ended {
            Some(end) => end.rejected_of(&self.histogram),
            None => self.histogram.rejected().counted(),
        };
        let before = self.rejected.xchg(rejected, Relaxed);
        Ok(HistInterval {
            counts,
            rejected: rejected.wrapping_sub(before),
            gone: self.seen.lock().begin_interval(self.histogram.gone()),
        })
    }

    /// Makes up for entries that were taken out of the map since the interval was taken: their hits
    /// are in `other` then. To be called before entries are found for it. May sleep. Fails with
    /// `ENOMEM`.
    pub(in crate::hist) fn settle(&self, interval: &mut HistInterval) -> Result {
        let map = &self.histogram.map;
        map.settle(self.id, &mut interval.counts, GFP_KERNEL_ACCOUNT)
    }

    /// Gives the last interval back, which is not shown: the next one has its hits and changed
    /// values, too.
    pub fn put_back(&self, interval: &HistInterval) {
        self.histogram.map.put_back(self.id, &interval.counts);
        self.rejected.fetch_sub(interval.rejected, Relaxed);
        self.seen.lock().put_back();
    }
}

impl Drop for IntervalReader {
    fn drop(&mut self) {
        self.histogram.map.remove_reader(self.id);
    }
}

/// The values of actions that a reader has seen: the version of each.
pub(in crate::hist) struct Seen {
    /// For each element, a version for each action.
    versions: KVVec<u64>,
    actions: usize,
    snapshot: u64,
    /// Indices of the versions that changed in the last interval, with the versions before.
    before: KVVec<(usize, u64)>,
    snapshot_before: u64,
    /// Entries that were taken out of the map up to the last interval, and up to the one before.
    gone: Gone,
    gone_before: Gone,
}

impl Seen {
    /// Fails with `ENOMEM`.
    fn new(histogram: &Histogram) -> Result<Self> {
        let actions = Self::actions(histogram);
        let len = Self::len(histogram).ok_or(ENOMEM)?;
        Ok(Self {
            versions: KVVec::from_elem(0, len, GFP_KERNEL_ACCOUNT)?,
            actions,
            snapshot: 0,
            before: KVVec::new(),
            snapshot_before: 0,
            gone: Gone::default(),
            gone_before: Gone::default(),
        })
    }

    /// Makes room for the versions of all elements, after the map has grown. Fails with `ENOMEM`.
    pub(in crate::hist) fn grow(&mut self, histogram: &Histogram) -> Result {
        let len = Self::len(histogram).ok_or(ENOMEM)?;
        if len > self.versions.len() {
            self.versions.resize(len, 0, GFP_KERNEL_ACCOUNT)?;
        }
        Ok(())
    }

    /// Bytes of memory for a histogram. `None`: the size overflows.
    fn bytes(histogram: &Histogram) -> Option<usize> {
        Self::len(histogram)?.checked_mul(size_of::<u64>())
    }

    /// Number of versions of a histogram. `None`: it overflows.
    fn len(histogram: &Histogram) -> Option<usize> {
        let elements = histogram.map.contents().elements();
        elements.checked_mul(Self::actions(histogram))
    }

    /// Number of actions, if one of them stores values; otherwise 0.
    fn actions(histogram: &Histogram) -> usize {
        let actions = &histogram.spec.actions;
        match actions.iter().any(|action| action.track.is_some()) {
            true => actions.len(),
            false => 0,
        }
    }

    /// Notes the values of all entries.
    fn see_all(&mut self, histogram: &Histogram) {
        let contents = histogram.map.contents();
        for elt in contents.elts() {
            for action in 0..self.actions {
                if let Some((_, seen)) = self.version_of(elt, action) {
                    *seen = version(histogram, elt, action);
                }
            }
        }
        self.snapshot_changed(histogram);
    }

    /// The version of an action's value in an element.
    fn version_of(&mut self, elt: Elt<'_>, action: usize) -> Option<(usize, &mut u64)> {
        let index = elt.nth()?.checked_mul(self.actions)?.checked_add(action)?;
        Some((index, self.versions.get_mut(index)?))
    }

    /// Begins the next interval: the values of the last one are seen for good. Returns the entries
    /// that were taken out of the map in it; `gone` counts all so far.
    fn begin_interval(&mut self, gone: Gone) -> Gone {
        self.before = KVVec::new();
        self.snapshot_before = self.snapshot;
        self.gone_before = mem::replace(&mut self.gone, gone);
        gone.since(self.gone_before)
    }

    /// Returns which of the actions, by a bit for each, have stored a value in this element since
    /// the last call. Fails with `ENOMEM`.
    pub(in crate::hist) fn changed(
        &mut self,
        histogram: &Histogram,
        entry: ListedEntry<'_>,
    ) -> Result<u8> {
        let mut changed = 0;
        for action in 0..self.actions {
            let read = entry.read(|elt| (elt, version(histogram, elt, action)));
            let Some((elt, now)) = read else {
                continue;
            };
            let Some((index, &mut seen)) = self.version_of(elt, action) else {
                continue;
            };
            // An entry of which nothing is stored may have a number of which a value was seen.
            if now != 0 && seen != now {
                self.before.push((index, seen), GFP_KERNEL_ACCOUNT)?;
                self.versions[index] = now;
                changed |= 1 << action;
            }
        }
        Ok(changed)
    }

    /// Returns whether a snapshot of the ring buffer was taken since the last call.
    pub(in crate::hist) fn snapshot_changed(&mut self, histogram: &Histogram) -> bool {
        let now = histogram.last_snapshot().map_or(0, |cell| cell.state());
        mem::replace(&mut self.snapshot, now) != now
    }

    /// Makes the values that changed in the last interval new ones.
    fn put_back(&mut self) {
        for (index, before) in mem::replace(&mut self.before, KVVec::new()).iter().rev() {
            self.versions[*index] = *before;
        }
        self.snapshot = self.snapshot_before;
        self.gone = self.gone_before;
    }
}

/// The version of the value that an action has stored in an element; 0 without one.
fn version(histogram: &Histogram, elt: Elt<'_>, action: usize) -> u64 {
    let cell = histogram.code.program.tracked(action);
    let cell = cell.and_then(|cell| elt.wide(cell));
    cell.map_or(0, |cell| cell.state())
}
