// SPDX-License-Identifier: GPL-2.0

//! The worker's steps on one map, which grows, and loses entries.
//!
//! The steps are *beats*: the worker tends many maps, and shares grace periods between them. A
//! *cycle* of beats replaces the table of the map, of the second one, or both:
//!
//! 1. *Sweep*: counts the hits of all entries. Entries to be taken out become Going (E1).
//! 2. A grace period later, *judge*: counts hits again. Entries without a hit since then die (E3).
//!    Then the first table is sealed (W1). A cycle for growth begins with that.
//! 3. A grace period later, *copy*: copies the entries of the first table (W2), some slots in each
//!    beat. A generation is published with the next table as its first one; and with another next
//!    table, and the elements for it, if the map may grow or loses entries. The counts of dead
//!    entries move to [`Other`].
//! 4. A grace period later, *end*: clears the elements of dead entries, frees their numbers and
//!    places, and opens the next table, which takes keys as soon as the first one is full.
//!
//! So a map that may grow has its next table at rest, and the elements for it: four times the
//! places of the first one. Hits use these without the worker.
//!
//! Cuts go on beside these steps, and neither waits for the other. If memory lacks, the map stays
//! as it is, and the worker tries again later.

use core::fmt;

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};

use super::{
    counters::{
        Loss,
        Move, //
    },
    elt::Elt,
    generation::{
        growth_flags,
        Parts, //
    },
    index::Index,
    intervals::{
        Since,
        Statistics, //
    },
    request::Request,
    table::{
        Slot,
        SlotState,
        Table, //
    },
    totals::PerMap,
    Generation,
    Map,
    Other,
    BATCH, //
};
use crate::sync::Retired;

/// When entries are taken out of a map, and what its growth may take.
#[derive(Clone)]
pub struct Policy {
    /// An entry without hits for so long is taken out.
    pub idle_ns: Option<u64>,
    /// An entry is taken out when any of these variables, a bit for each, was taken.
    pub taken: u32,
    /// The wide cells that are variables, a bit for each. They are counted if they are set when
    /// their entry is taken out, as variables of one word are.
    pub wide_vars: u32,
    /// The entries that were idle for longest are taken out of a map that is nearly full.
    pub recycle: bool,
    /// Returns how many bytes of memory one step of growth may take now.
    pub max_bytes: fn() -> usize,
    /// Number of triggers of the map that are not paused. At 0 entries do not become idle.
    pub active: Arc<Atomic<u32>>,
}

impl Policy {
    /// Returns whether entries are taken out.
    fn forgets(&self) -> bool {
        self.idle_ns.is_some() || self.taken != 0 || self.recycle
    }

    /// The age at which an entry is taken out, in units of [`Found`]. A sweep notices hits of an
    /// entry up to a quarter of the limit after the last one.
    fn idle_units(&self) -> Option<u32> {
        let units = |limit| (limit / 4 * 3 >> Found::UNIT) as u32;
        self.idle_ns.map(units)
    }

    /// Nanoseconds between sweeps, unless hits ask for one.
    fn period_ns(&self) -> u64 {
        let idle = self.idle_ns.map_or(u64::MAX, |limit| limit / 4);
        match self.taken != 0 || self.recycle {
            true => idle.min(SECOND),
            false => idle,
        }
    }

    /// Nanoseconds after a sweep before hits may have another one; `None` if it would not help.
    fn asked_ns(&self) -> Option<u64> {
        match (self.taken != 0, self.recycle) {
            (true, _) => Some(SECOND / 10),
            (false, true) => Some(SECOND / 4),
            _ => None,
        }
    }
}

const SECOND: u64 = 1_000_000_000;

/// Number of slots that are copied in a beat.
const COPIED: usize = 1 << 16;

/// The longest time between two attempts to get memory, in nanoseconds.
const RETRY_MAX_NS: u64 = 64 * SECOND;

/// Nanoseconds between looks whether readers still add up counts, which are not moved meanwhile.
const READING_NS: u64 = SECOND / 100;

/// Number of elements whose counts are moved while the state is locked once.
const MOVED: usize = 64;

/// The keys of the second map are words, which have the number of an element of the map from this
/// bit on.
pub const ELEMENT_SHIFT: u32 = 24;

/// The worker's own data of a map: its step there, and the findings of its sweeps.
pub struct Tending {
    policy: Policy,
    /// Sweeps come on demand only, and whether one is wanted. `None`: they come by the policy.
    demand: Option<bool>,
    step: Step,
    /// The map and the second one.
    halves: PerMap<Half>,
    sweep: Sweep,
    /// When memory is asked for again, and how long the last wait for that is; 0: none is lacking.
    retry_at: u64,
    retry_ns: u64,
    /// The last beat has failed.
    has_failed: bool,
    /// The group of readers that the next move of counts waits for.
    awaited: Option<usize>,
    /// When the cycle began.
    cycle_at: u64,
}

/// The worker's own data of one table: the map's, or the second one's.
struct Half {
    /// log2 of the entries that the first table is for. Further keys go to the next one.
    bits: u32,
    /// Why its table is being replaced.
    cycle: Option<Cycle>,
    /// Number of slots that a path of the next table needs for all copies.
    path_max: u32,
    /// The entries that are taken out, in the order of their numbers.
    entries: KVVec<Dying>,
    /// The numbers of elements in excess that are taken out, in their order.
    excess: KVVec<u32>,
    /// Number of slots of the present tables with dead elements whose numbers are free.
    dead: usize,
    /// A number for each column.
    row: KVVec<u64>,
}

/// An element that is taken out.
#[derive(Clone, Copy)]
struct Dying {
    number: u32,
    why: Why,
    /// Of a bucket: the index of its slot in both tables of the next generation, one after the
    /// other.
    nth: u32,
}

impl Dying {
    /// All that are taken out of a table.
    fn all<'a>(entries: &'a [Self], excess: &'a [u32]) -> impl Iterator<Item = Self> + 'a {
        let excess = excess.iter().map(|&number| Self {
            number,
            why: Why::Excess,
            nth: u32::MAX,
        });
        Iterator::chain(entries.iter().copied(), excess)
    }
}

/// Why an element is taken out of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Idle,
    Taken,
    Recycled,
    Excess,
}

impl Why {
    /// The element with the counts of such entries. `None`: they are drops.
    fn other(self) -> Option<Other> {
        match self {
            Self::Idle | Self::Taken => Some(Other::Expired),
            Self::Recycled => Some(Other::Recycled),
            Self::Excess => None,
        }
    }
}

/// Why a table is replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cycle {
    /// The map has to grow.
    Grow,
    /// To be rid of elements that are dead or in excess.
    Renew,
}

/// The step that comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The begin of another cycle.
    Begin,
    /// Idle entries are going, and all hits know both tables.
    Judge,
    /// All elements of the first tables are decided: entries in slots from this one on are copied.
    Copy(usize),
    /// Hits use the present tables alone.
    End,
}

/// The counts of hits by which entries are idle.
#[derive(Default)]
struct Sweep {
    /// The findings of the last sweep, for each element.
    found: KVVec<Found>,
    /// When the last sweep came.
    at: Option<u64>,
    /// The time that has passed while a trigger was active, in nanoseconds.
    clock: u64,
    /// Until when `clock` goes.
    clock_at: u64,
}

/// The findings of a sweep about an element.
#[derive(Clone, Copy, Default)]
struct Found {
    /// Number of hits.
    hits: u64,
    /// The clock of the sweep when these were new, in units of 2^[`Found::UNIT`] nanoseconds.
    since: u32,
    /// Why it is going.
    why: Option<Why>,
}

impl Found {
    /// 16.8 ms.
    const UNIT: u32 = 24;
}

/// The worker's next step after a beat.
pub enum Beat {
    /// Nothing until this time, in nanoseconds since boot, unless the map's [`Request`] wakes the
    /// worker before. `u64::MAX`: nothing until that.
    At(u64),
    /// The next beat, after beats of other maps.
    Again,
    /// The next beat after a grace period from now. The generation, if any, is dropped after it.
    GracePeriod(Option<Retired<Generation>>),
}

/// The room in a map, for its statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomCounts {
    /// Places taken by entries.
    pub places: u32,
    /// Number of places.
    pub capacity: u32,
    /// Places that are free without a further step.
    pub ahead: u32,
    /// How long the last step took, in nanoseconds; 0 before the first one.
    pub step_ns: u64,
    /// Times that all slots on the path of a new key, or of a new bucket, were full.
    pub path: u64,
    /// Hits that found no place while memory was lacking.
    pub no_memory: u64,
    /// Entries that were taken out because they were idle, or a variable of theirs was taken.
    pub expired: u64,
    /// Entries among `expired` that were idle while a variable of theirs was set.
    pub expired_set: u64,
    /// Entries that were taken out to make room.
    pub recycled: u64,
    /// Variables that were set when their entries were taken out, for any reason.
    pub set_vars: u64,
    /// Bytes of memory that the map takes.
    pub bytes: usize,
}

impl fmt::Display for RoomCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            places,
            capacity,
            ahead,
            path,
            no_memory,
            expired,
            recycled,
            set_vars,
            bytes,
            ..
        } = self;
        let step_ms = self.step_ns / 1_000_000;
        write!(
            f,
            "{places} of {capacity} places, {ahead} ahead, last step {step_ms} ms, path full {path}, \
             no memory {no_memory}, expired {expired}, recycled {recycled}, {set_vars} variables set, \
             {bytes} bytes"
        )
    }
}

impl Tending {
    /// Begins to tend `map`. One task does, for as long as the map exists. May sleep. Fails with
    /// `ENOMEM`.
    pub fn new(map: &Map, policy: Policy) -> Result<Self> {
        let contents = map.contents();
        let mut sweep = Sweep::default();
        sweep.grow(&policy, contents.elements())?;
        Ok(Self {
            policy,
            demand: None,
            step: Step::Begin,
            halves: contents.per_map(Half::new)?,
            sweep,
            retry_at: 0,
            retry_ns: 0,
            has_failed: false,
            awaited: None,
            cycle_at: 0,
        })
    }

    /// Has the table of the map, or of the second one, replaced, as if it had many dead elements.
    /// For tests.
    #[cfg(not(MODULE))]
    pub fn renew(&mut self, second: bool) {
        let half = self.halves.iter_mut().nth(usize::from(second));
        half.expect("a second map").dead = Half::ALL_DEAD;
    }

    /// Returns whether it is between two cycles. For tests.
    #[cfg(not(MODULE))]
    pub fn is_at_rest(&self) -> bool {
        self.step == Step::Begin && self.halves.iter().all(|half| half.dead < Half::ALL_DEAD)
    }

    /// Notes that memory lacks: it is asked for again after 1, 2, 4 … 64 seconds.
    fn lacks_memory(&mut self, now_ns: u64) {
        self.retry_ns = (self.retry_ns * 2).clamp(SECOND, RETRY_MAX_NS);
        self.retry_at = now_ns + self.retry_ns;
    }
}

impl Half {
    /// More dead elements than a table has slots. For tests.
    #[cfg(not(MODULE))]
    const ALL_DEAD: usize = usize::MAX / 2;

    fn new(map: &Generation) -> Result<Self> {
        let (room, limit) = (map.index.pool.room(), map.index.table.limit());
        let bits = (0..u32::BITS).find(|&bits| room.places(bits).is_none_or(|n| n >= limit));
        Ok(Self {
            bits: bits.unwrap_or(0),
            cycle: None,
            path_max: 0,
            entries: KVVec::new(),
            excess: KVVec::new(),
            dead: 0,
            row: KVVec::from_elem(0, map.counters.columns().len(), GFP_KERNEL)?,
        })
    }

    /// Returns why the table is to be replaced, if it is.
    fn wants(&self, map: &Generation) -> Option<Cycle> {
        let (table, pool) = (&map.index.table, &map.index.pool);
        let opens_at = map.index.next.as_ref().and_then(Table::opens_at);
        // Keys that found no place in the first table are in the next one.
        let is_full = opens_at.is_some_and(|places| pool.places() > places);
        // Otherwise a key in excess would stay without a place, although one is free.
        let has_excess = pool.excess() > 0 && pool.entries() < pool.capacity();
        let has_many_dead = self.dead > table.slots().len() / 8;
        match is_full {
            true => Some(Cycle::Grow),
            false => (has_excess || has_many_dead).then_some(Cycle::Renew),
        }
    }

    /// Returns whether it lacks the next, larger table. Hits find that open otherwise.
    fn lacks_growth(&self, map: &Generation) -> bool {
        let opens_at = map.index.next.as_ref().and_then(Table::opens_at);
        map.index.pool.room().grows(self.bits) && opens_at.is_none()
    }

    /// Returns whether it lacks a table that takes the place of the first one.
    fn lacks_table(&self, map: &Generation, is_swept: bool) -> bool {
        map.index.next.is_none() && (is_swept || self.cycle.is_some())
    }

    /// How full the first table is, if it can be replaced by a larger one: 256ths.
    fn fill(&self, map: &Generation) -> Option<u64> {
        let opens_at = map.index.next.as_ref()?.opens_at()?;
        Some((u64::from(map.index.pool.places()) << 8) / u64::from(opens_at.max(1)))
    }

    /// Returns why the element with this number is taken out, if it is.
    fn why(&self, number: u32) -> Option<Why> {
        let found = self
            .entries
            .binary_search_by_key(&number, |dying| dying.number);
        let entry = found.ok().and_then(|nth| self.entries.get(nth));
        let is_excess = || self.excess.binary_search(&number).is_ok();
        match entry {
            Some(dying) => Some(dying.why),
            None => is_excess().then_some(Why::Excess),
        }
    }

    /// Parts with `table` as the first one, for 2^`bits` entries, and with the next table after it
    /// and the elements for that. Fails with `ENOMEM`, also if they take more than `max_bytes`.
    #[inline(never)]
    fn with_next(
        map: &Generation,
        table: Table,
        bits: u32,
        bytes: impl Fn(usize) -> Option<usize>,
        max_bytes: usize,
    ) -> Result<Parts> {
        let (index, pool) = (&map.index, &map.index.pool);
        let size = index.next_size(bits).ok_or(ENOMEM)?;
        let elements = pool
            .elements_for(pool.room().next_bits(bits))
            .ok_or(ENOMEM)? as usize;
        let has_more = elements > map.elements();
        let bytes = match has_more {
            true => bytes(elements),
            false => Some(0),
        };
        let bytes = bytes.and_then(|bytes| bytes.checked_add(size.bytes()));
        if bytes.is_none_or(|bytes| bytes > max_bytes) {
            return Err(ENOMEM);
        }
        let next = size.next_table()?;
        if !has_more {
            return map.parts_with(&table, Some(&next));
        }
        let index = index.extended(elements, growth_flags())?;
        Parts::new(index.with_tables(&table, Some(&next)), elements)
    }
}

impl Tending {
    /// From now on, entries are only looked for on demand, whatever hits ask for: see
    /// [`Tending::want_sweep`].
    pub fn sweep_on_demand(&mut self) {
        self.demand = Some(false);
    }

    /// Has the next beat that begins a cycle look for entries to be taken out.
    pub fn want_sweep(&mut self) {
        self.demand = Some(true);
    }

    /// Returns whether entries are going: the next beat decides about them.
    pub fn is_judging(&self) -> bool {
        matches!(self.step, Step::Judge)
    }

    /// The map and the second one, with the worker's data of each.
    fn with_maps<'a>(
        &'a mut self,
        contents: &'a Generation,
    ) -> impl Iterator<Item = (&'a mut Half, &'a Generation)> {
        self.halves.iter_mut().zip(contents.maps())
    }

    /// Chooses the tables to replace, also by requests of hits.
    fn choose(&mut self, contents: &Generation, asked: u32) {
        for (half, map) in self.with_maps(contents) {
            half.cycle = half.wants(map);
        }
        if asked & Request::PATH != 0 {
            // Hits do not tell in which of both maps a path is full.
            let fullest = self
                .with_maps(contents)
                .max_by_key(|(half, map)| half.fill(map));
            if let Some((half, map)) = fullest {
                if half.fill(map).is_some() {
                    half.cycle = Some(Cycle::Grow);
                }
            }
        }
    }

    fn lacks_growth(&mut self, contents: &Generation) -> bool {
        let mut maps = self.with_maps(contents);
        maps.any(|(half, map)| half.lacks_growth(map))
    }

    fn lacks_table(&mut self, contents: &Generation) -> bool {
        let is_swept = self.policy.forgets();
        let mut maps = self.with_maps(contents).zip([is_swept, false]);
        maps.any(|((half, map), is_swept)| half.lacks_table(map, is_swept))
    }

    /// Returns whether the table of the map or of the second one is being replaced.
    fn is_replacing(&self) -> bool {
        self.halves.iter().any(|half| half.cycle.is_some())
    }
}

impl Sweep {
    /// Makes room for so many elements, if entries are taken out. Fails with `ENOMEM`.
    fn grow(&mut self, policy: &Policy, elements: usize) -> Result {
        if policy.forgets() && self.found.len() < elements {
            let flags = growth_flags();
            self.found.resize(elements, Found::default(), flags)?;
        }
        Ok(())
    }

    /// Moves the clock to `now_ns`. It stands still while no trigger is active.
    fn tick(&mut self, now_ns: u64, is_active: bool) {
        if is_active {
            self.clock += now_ns.saturating_sub(self.clock_at);
        }
        self.clock_at = now_ns;
    }

    /// The clock in units of [`Found`].
    fn units(&self) -> u32 {
        (self.clock >> Found::UNIT) as u32
    }

    /// The findings of the last sweep about an element.
    fn found_mut(&mut self, elt: Elt<'_>) -> Option<&mut Found> {
        self.found.get_mut(elt.nth()?)
    }

    /// When the next sweep is due.
    fn due_at(&self, policy: &Policy, now_ns: u64, is_asked: bool) -> u64 {
        let asked_ns = policy.asked_ns().filter(|_| is_asked);
        let after = asked_ns.unwrap_or(u64::MAX).min(policy.period_ns());
        self.at.unwrap_or(now_ns).saturating_add(after)
    }
}

/// Returns a function to be called at each step of a long loop, without a lock. It calls `between`
/// now and then.
fn paced(between: &impl Fn()) -> impl FnMut() + '_ {
    let mut steps = 0u32;
    move || {
        steps = steps.wrapping_add(1);
        if steps % BATCH == 0 {
            between();
        }
    }
}

/// The ages of idle entries.
struct Ages([u32; Ages::CLASSES]);

impl Ages {
    const CLASSES: usize = 32 << 2;

    /// The class of an age, one of 4 for each power of two.
    fn class(age: u32) -> usize {
        let bits = age.checked_ilog2().unwrap_or(0);
        let below = (u64::from(age) << 2 >> bits) as usize & 3;
        (bits as usize) << 2 | below
    }

    /// Chooses `wanted` entries that are as old as possible: all above a class, and some of this
    /// class. Returns the class, and how many of it.
    fn oldest(&self, wanted: u32) -> (usize, u32) {
        let mut left = wanted;
        for (class, &entries) in self.0.iter().enumerate().rev() {
            match left.checked_sub(entries) {
                Some(rest) if rest > 0 => left = rest,
                _ => return (class, left),
            }
        }
        (0, left)
    }
}

impl Map {
    /// Carries out one step of the map's growth, or of the removal of its entries. `now_ns` is the
    /// time since boot. Calls `between` now and then, without a lock. Task context, may sleep; only
    /// the worker calls it, with the only [`Tending`] of this map.
    ///
    /// It may be called at any step of a cut, and a cut may go on between beats.
    // Not inlined, like its steps: together they need much of the kernel's stack.
    #[inline(never)]
    pub fn beat(&self, tending: &mut Tending, now_ns: u64, between: impl Fn()) -> Beat {
        if tending.has_failed && now_ns < tending.retry_at {
            return Beat::At(tending.retry_at);
        }
        let beat = match tending.step {
            Step::Begin => self.begin_cycle(tending, now_ns, &between),
            Step::Judge => Ok(self.judge_going(tending, &between)),
            Step::Copy(begin) => self.copy_batch(tending, begin, now_ns, &between),
            Step::End => Ok(self.end_cycle(tending, now_ns, &between)),
        };
        tending.has_failed = beat.is_err();
        // Nothing has changed: the same step is tried again.
        beat.unwrap_or_else(|_| {
            self.lacks_memory(tending, now_ns);
            Beat::At(tending.retry_at)
        })
    }

    fn lacks_memory(&self, tending: &mut Tending, now_ns: u64) {
        let contents = self.contents();
        contents
            .maps()
            .for_each(|map| map.index.set_no_memory(true));
        tending.lacks_memory(now_ns);
    }

    /// Begins a cycle, or a sweep, if the map needs one. Fails with `ENOMEM`.
    #[inline(never)]
    fn begin_cycle(&self, tending: &mut Tending, now_ns: u64, between: &impl Fn()) -> Result<Beat> {
        let contents = self.contents();
        let is_active = tending.policy.active.load(Relaxed) > 0;
        tending.sweep.tick(now_ns, is_active);
        tending.cycle_at = now_ns;
        // Requests that cannot be met now stay: hits do not wake the worker for them again.
        let to_take = match tending.lacks_growth(&contents) {
            true => Request::GROW,
            false => Request::GROW | Request::PATH,
        };
        let requests = contents.maps().filter_map(|map| map.index.request());
        let asked = requests.fold(0, |asked, request| asked | request.take(to_take));
        tending.choose(&contents, asked);
        let mut at = u64::MAX;
        if tending.lacks_growth(&contents) {
            if now_ns >= tending.retry_at {
                match self.prepare(tending, &contents, Half::lacks_growth) {
                    Ok(beat) => return Ok(beat),
                    Err(_) => self.lacks_memory(tending, now_ns),
                }
            }
            at = tending.retry_at;
        }
        if tending.lacks_table(&contents) {
            return self.prepare(tending, &contents, |_, _| false);
        }
        if tending.is_replacing() {
            return Ok(self.seal_tables(tending, between));
        }
        let Tending {
            sweep,
            policy,
            demand,
            ..
        } = tending;
        if !policy.forgets() || *demand == Some(false) {
            return Ok(Beat::At(at));
        }
        let for_sweep = Request::SWEEP | Request::RECYCLE;
        let request = contents.index.request();
        let is_asked = request.is_some_and(|request| request.has(for_sweep));
        let due_at = match demand {
            Some(wanted) => {
                *wanted = false;
                now_ns
            }
            None => sweep.due_at(policy, now_ns, is_asked),
        };
        if sweep.at.is_some() && now_ns < due_at {
            return Ok(Beat::At(at.min(due_at)));
        }
        sweep.at = Some(now_ns);
        if let (Some(request), Some(_)) = (request, policy.asked_ns()) {
            request.take(for_sweep);
        }
        if self.sweep(tending, &contents, between) > 0 {
            tending.step = Step::Judge;
        }
        // Also if no entry goes: so the next sweep compares with counts older than a grace period.
        Ok(Beat::GracePeriod(None))
    }

    /// Publishes the next tables that lack: larger ones if `grows`. Fails with `ENOMEM`.
    #[inline(never)]
    fn prepare(
        &self,
        tending: &mut Tending,
        contents: &Generation,
        grows: impl Fn(&Half, &Generation) -> bool,
    ) -> Result<Beat> {
        let max_bytes = (tending.policy.max_bytes)();
        let is_swept = tending.policy.forgets();
        let mut maps = tending.with_maps(contents).zip([is_swept, false]);
        let parts = contents.per_map(|_| {
            let ((half, map), is_swept) = maps.next().ok_or(EINVAL)?;
            let table = &map.index.table;
            if grows(half, map) {
                let bytes = |elements| self.step_bytes(map, elements);
                return Half::with_next(map, table.clone(), half.bits, bytes, max_bytes);
            }
            if half.lacks_table(map, is_swept) {
                let next = Table::new_next(table.bits(), table.limit(), table.path_max())?;
                return map.parts_with(table, Some(&next));
            }
            map.parts()
        })?;
        drop(maps);
        tending.sweep.grow(&tending.policy, parts.first.elements)?;
        let retired = self.publish(&parts, false)?;
        // A cycle begins after that.
        for half in tending.halves.iter_mut() {
            half.cycle = None;
        }
        tending.step = Step::End;
        Ok(Beat::GracePeriod(Some(retired)))
    }

    /// Bytes of memory that growth to so many elements takes. `None`: the size overflows.
    fn step_bytes(&self, map: &Generation, elements: usize) -> Option<usize> {
        let counters = map.counters.step_bytes(elements)?;
        let counts = match &self.state.lock().intervals {
            None => counters,
            Some(intervals) => {
                let (readers, _) = intervals.counts();
                let since = Since::bytes(map, elements)?.checked_mul(1 + readers)?;
                counters.checked_mul(2)?.checked_add(since)?
            }
        };
        counts.checked_add(map.index.step_bytes(elements)?)
    }

    /// Calls `f` for each element of the first table in this state, with its slot and its hits.
    fn each(
        &self,
        contents: &Generation,
        state: SlotState,
        between: &impl Fn(),
        mut f: impl FnMut(Slot, &Atomic<u64>, Elt<'_>, u64),
    ) {
        for slots in contents.index.table.slots().chunks(BATCH as usize) {
            let view = self.view();
            for slot in slots {
                let word = Slot::from_raw(slot.load(Acquire));
                if let Some(word) = word.filter(|word| word.state() == state) {
                    let elt = Elt::new(contents, word.number());
                    f(word, slot, elt, view.column(false, elt, 0));
                }
            }
            drop(view);
            between();
        }
    }

    /// Counts the hits of all entries of the first table, and lets go those to be taken out (E1).
    /// Returns their number.
    #[inline(never)]
    fn sweep(&self, tending: &mut Tending, contents: &Generation, between: &impl Fn()) -> u32 {
        let Tending { policy, sweep, .. } = tending;
        let now = sweep.units();
        let limit = policy.idle_units();
        let mut ages = Ages([0; Ages::CLASSES]);
        let mut going = 0;
        self.each(
            contents,
            SlotState::Entry,
            between,
            |word, slot, elt, hits| {
                let Some(found) = sweep.found_mut(elt) else {
                    return;
                };
                // Without a hit it was just inserted.
                if hits != found.hits || hits == 0 {
                    found.hits = hits;
                    found.since = now;
                }
                let age = now.wrapping_sub(found.since);
                found.why = match limit {
                    Some(limit) if age >= limit => Some(Why::Idle),
                    _ => elt.has_unset_var(policy.taken).then_some(Why::Taken),
                };
                if found.why.is_some() {
                    going += u32::from(word.let_go(slot));
                } else if age > 0 {
                    ages.0[Ages::class(age)] += 1;
                }
            },
        );
        let pool = &contents.index.pool;
        let free = pool.capacity().saturating_sub(pool.places()) + going;
        let wanted = (pool.capacity() / 8).max(1).saturating_sub(free);
        if !policy.recycle || wanted == 0 {
            return going;
        }
        let (class, mut of_class) = ages.oldest(wanted);
        self.each(contents, SlotState::Entry, between, |word, slot, elt, _| {
            let Some(found) = sweep.found_mut(elt) else {
                return;
            };
            let age = now.wrapping_sub(found.since);
            let is_chosen = match Ages::class(age) {
                _ if age == 0 => false,
                own if own == class => {
                    let chosen = of_class > 0;
                    of_class = of_class.saturating_sub(1);
                    chosen
                }
                own => own > class,
            };
            if is_chosen && word.let_go(slot) {
                found.why = Some(Why::Recycled);
                going += 1;
            }
        });
        going
    }

    /// Decides about the entries that are going (E3, E4), a grace period after that. Then seals
    /// the table if one has died.
    #[inline(never)]
    fn judge_going(&self, tending: &mut Tending, between: &impl Fn()) -> Beat {
        let contents = self.contents();
        let (sweep, taken) = (&mut tending.sweep, tending.policy.taken);
        let mut died = false;
        self.each(
            &contents,
            SlotState::Going,
            between,
            |word, slot, elt, hits| {
                let stays = sweep.found_mut(elt).is_none_or(|found| {
                    let is_set_again = found.why == Some(Why::Taken) && !elt.has_unset_var(taken);
                    hits != found.hits || is_set_again
                });
                // A hit may have just rescued it.
                match stays {
                    true => _ = word.rescue(slot),
                    false => died |= word.bury(slot),
                }
            },
        );
        tending.halves.first.cycle = died.then_some(Cycle::Renew);
        if !died {
            tending.step = Step::Begin;
            return Beat::Again;
        }
        self.seal_tables(tending, between)
    }

    /// Seals the tables that are being replaced (W1).
    fn seal_tables(&self, tending: &mut Tending, between: &impl Fn()) -> Beat {
        let contents = self.contents();
        for (half, map) in tending.with_maps(&contents) {
            if half.cycle.is_some() {
                map.index.table.seal(paced(between));
                half.path_max = 0;
            }
        }
        tending.step = Step::Copy(0);
        Beat::GracePeriod(None)
    }

    /// Copies a batch of slots (W2); and after the last one, publishes the next tables as the
    /// first ones. Fails with `ENOMEM`.
    #[inline(never)]
    fn copy_batch(
        &self,
        tending: &mut Tending,
        begin: usize,
        now_ns: u64,
        between: &impl Fn(),
    ) -> Result<Beat> {
        let contents = self.contents();
        let mut more = false;
        for (half, map) in tending.with_maps(&contents) {
            let Index { table, next, .. } = &map.index;
            let slots = table.slots().len();
            let (begin, end) = (begin.min(slots), slots.min(begin + COPIED));
            if let (Some(_), Some(next)) = (half.cycle, next) {
                for begin in (begin..end).step_by(BATCH as usize) {
                    let batch = begin..end.min(begin + BATCH as usize);
                    half.path_max = half.path_max.max(table.copy_to(next, batch));
                    between();
                }
                more |= end < slots;
            }
        }
        tending.step = Step::Copy(begin + COPIED);
        if more {
            return Ok(Beat::Again);
        }
        self.replace(tending, &contents, now_ns, between)
    }

    /// Publishes the next tables as the first ones, and moves the counts of elements that are left
    /// out. Fails with `ENOMEM`.
    #[inline(never)]
    fn replace(
        &self,
        tending: &mut Tending,
        contents: &Generation,
        now_ns: u64,
        between: &impl Fn(),
    ) -> Result<Beat> {
        if tending.awaited.is_none() {
            tending.collect(contents, between)?;
        }
        let moves = tending.halves.iter().any(|half| half.is_leaving());
        if moves && self.is_read(tending) {
            return Ok(Beat::At(now_ns + READING_NS));
        }
        let retired = match self.publish_tables(tending, contents, moves, true) {
            Ok(retired) => retired,
            Err(_) => {
                let retired = self.publish_tables(tending, contents, moves, false)?;
                self.lacks_memory(tending, now_ns);
                retired
            }
        };
        for (half, map) in tending.with_maps(contents) {
            if half.cycle == Some(Cycle::Grow) {
                half.bits = map.index.pool.room().next_bits(half.bits);
            }
        }
        if moves {
            self.move_counts(tending, between);
        }
        tending.step = Step::End;
        Ok(Beat::GracePeriod(Some(retired)))
    }

    /// Returns whether a reader adds up counts that was there before the worker was about to move
    /// some: see [`Held`](super::Held).
    fn is_read(&self, tending: &mut Tending) -> bool {
        let mut state = self.state.lock();
        let group = *tending.awaited.get_or_insert_with(|| state.holds.close());
        let is_read = !state.holds.is_empty(group);
        if !is_read {
            tending.awaited = None;
        }
        is_read
    }

    /// Publishes the next tables as the first ones; with the ones after them if `prepares`. Fails
    /// with `ENOMEM`.
    #[inline(never)]
    fn publish_tables(
        &self,
        tending: &mut Tending,
        contents: &Generation,
        moves: bool,
        prepares: bool,
    ) -> Result<Retired<Generation>> {
        let max_bytes = (tending.policy.max_bytes)();
        let is_swept = tending.policy.forgets();
        let mut maps = tending.with_maps(contents).zip([is_swept, false]);
        let parts = contents.per_map(|_| {
            let ((half, map), is_swept) = maps.next().ok_or(EINVAL)?;
            let (index, room) = (&map.index, map.index.pool.room());
            let (Some(cycle), Some(next)) = (half.cycle, &index.next) else {
                return map.parts();
            };
            let table = next.with(next.limit(), next.path_max().max(half.path_max));
            let bits = match cycle {
                Cycle::Grow => room.next_bits(half.bits),
                Cycle::Renew => half.bits,
            };
            if prepares && (room.grows(bits) || is_swept) {
                let bytes = |elements| self.step_bytes(map, elements);
                return Half::with_next(map, table, bits, bytes, max_bytes);
            }
            map.parts_with(&table, None)
        })?;
        drop(maps);
        tending.sweep.grow(&tending.policy, parts.first.elements)?;
        self.publish(&parts, moves)
    }

    /// Moves the counts of elements that were left out.
    #[inline(never)]
    fn move_counts(&self, tending: &mut Tending, between: &impl Fn()) {
        let contents = self.contents();
        let mut ended = Statistics::default();
        for ((half, map), second) in tending.with_maps(&contents).zip([false, true]) {
            let Half {
                entries,
                excess,
                row,
                ..
            } = half;
            let mut all = Dying::all(entries, excess).peekable();
            while all.peek().is_some() {
                let mut state = self.state.lock();
                for dying in all.by_ref().take(MOVED) {
                    let to = match second {
                        false => dying.why.other().map(Other::number),
                        true => map.forget_bucket(dying),
                    };
                    let nth = |number| map.counters.numbering().nth(number);
                    let to = to.and_then(nth).map_or(Move::Dropped, Move::Element);
                    if let Some(from) = nth(dying.number) {
                        state.move_counts(second, map, from, to, row);
                    }
                    match dying.why {
                        _ if second => (),
                        Why::Idle | Why::Taken => ended.expired += 1,
                        Why::Recycled => ended.recycled += 1,
                        Why::Excess => (),
                    }
                }
                drop(state);
                between();
            }
        }
        let mut state = self.state.lock();
        state.holds.turn();
        state.statistics.expired += ended.expired;
        state.statistics.recycled += ended.recycled;
        drop(state);
        self.moved.notify_all();
    }

    /// Frees the elements that were left out, and lets hits use the next table.
    #[inline(never)]
    fn end_cycle(&self, tending: &mut Tending, now_ns: u64, between: &impl Fn()) -> Beat {
        let contents = self.contents();
        let cycle_ns = tending.is_replacing().then_some(now_ns - tending.cycle_at);
        let Tending {
            policy,
            halves,
            sweep,
            ..
        } = &mut *tending;
        // First the buckets: a hit that gets a place then finds one for its value, too.
        if let Some((half, map)) = halves.second.as_mut().zip(contents.second()) {
            half.free(map, between, |_, _| ());
            half.dead += half.entries.len();
        }
        let (mut expired_set, mut set_vars) = (0, 0);
        halves.first.free(&contents, between, |elt, why| {
            let is_expired = why.other() == Some(Other::Expired);
            if why != Why::Excess {
                set_vars += elt.set_vars(policy.wide_vars) as u64;
            }
            // An entry of which a variable was taken has ended, whatever else is set.
            let has_ended = elt.has_unset_var(policy.taken);
            expired_set += u64::from(is_expired && elt.has_set_var() && !has_ended);
            if let Some(found) = sweep.found_mut(elt) {
                *found = Found::default();
            }
        });
        for (half, map) in tending.with_maps(&contents) {
            half.entries = KVVec::new();
            half.excess = KVVec::new();
            half.open_next(map);
        }
        let mut state = self.state.lock();
        state.statistics.step_ns = cycle_ns.unwrap_or(state.statistics.step_ns);
        state.statistics.expired_set += expired_set;
        state.statistics.set_vars += set_vars;
        drop(state);
        if !tending.lacks_growth(&contents) {
            contents
                .maps()
                .for_each(|map| map.index.set_no_memory(false));
            tending.retry_ns = 0;
        }
        tending.step = Step::Begin;
        Beat::Again
    }

    /// The room in the map; `None` if its size is fixed and its entries stay. Task context, may
    /// sleep.
    pub fn room(&self) -> Option<RoomCounts> {
        let contents = self.contents();
        if contents.is_fixed() {
            return None;
        }
        let pool = &contents.index.pool;
        let (places, capacity) = (pool.entries(), pool.capacity());
        let view = self.view();
        let statistics = view.state.statistics;
        let banks = 1 + usize::from(view.state.intervals.is_some());
        let no_memory = view.loss(false, Loss::NoMemory);
        drop(view);
        let of_maps: usize = contents.maps().map(|map| map.bytes(banks)).sum();
        let found = match pool.room().forgets {
            true => contents.elements() * size_of::<Found>(),
            false => 0,
        };
        let requests = contents.maps().filter_map(|map| map.index.request());
        Some(RoomCounts {
            places,
            capacity,
            ahead: capacity.saturating_sub(places),
            step_ns: statistics.step_ns,
            path: requests.map(Request::full_paths).sum(),
            no_memory,
            expired: statistics.expired,
            expired_set: statistics.expired_set,
            recycled: statistics.recycled,
            set_vars: statistics.set_vars,
            bytes: of_maps + found,
        })
    }
}

impl Half {
    /// Returns whether elements are taken out.
    fn is_leaving(&self) -> bool {
        !self.entries.is_empty() || !self.excess.is_empty()
    }

    /// Frees the elements that were left out. Calls `forget` with each before.
    fn free(
        &mut self,
        map: &Generation,
        between: &impl Fn(),
        mut forget: impl FnMut(Elt<'_>, Why),
    ) {
        let (index, pool) = (&map.index, &map.index.pool);
        let mut step = paced(between);
        for dying in Dying::all(&self.entries, &self.excess) {
            step();
            forget(Elt::new(map, dying.number), dying.why);
            // SAFETY: The number was found in a slot, so an element has it.
            unsafe { index.clear(dying.number) };
            pool.give(dying.number);
        }
        pool.give_back(self.entries.len() as u32);
        pool.give_back_excess(self.excess.len() as u32);
        if self.cycle.take().is_some() {
            self.dead = 0;
        }
    }

    /// Lets hits use the next table and its elements, if it is the larger one.
    fn open_next(&self, map: &Generation) {
        let Index { next, pool, .. } = &map.index;
        let room = pool.room();
        let next_bits = room.next_bits(self.bits);
        let next = next.as_ref().filter(|_| room.grows(self.bits));
        let sizes = room.places(self.bits).zip(room.places(next_bits));
        let elements = pool.elements_for(next_bits);
        if let (Some(next), Some((places, capacity)), Some(elements)) = (next, sizes, elements) {
            if elements as usize <= map.elements() && next.limit() >= capacity {
                pool.open(capacity, elements);
                next.open(places);
            }
        }
    }
}

impl Tending {
    /// Lists the elements that are left out of the copies, and the buckets of such elements. Fails
    /// with `ENOMEM`; then it may be called again.
    fn collect(&mut self, contents: &Generation, between: &impl Fn()) -> Result {
        let flags = growth_flags();
        let mut step = paced(between);
        let Self { halves, sweep, .. } = self;
        let first = &mut halves.first;
        first.entries.clear();
        first.excess.clear();
        let left = first
            .cycle
            .is_some()
            .then(|| contents.index.table.elements(&mut step));
        for word in left.into_iter().flatten() {
            let number = word.number();
            match word.state() {
                SlotState::Excess => first.excess.push(number, flags)?,
                SlotState::Dead => {
                    let nth = contents.counters.numbering().nth(number);
                    let found = nth.and_then(|nth| sweep.found.get(nth as usize));
                    let why = found.and_then(|found| found.why).unwrap_or(Why::Idle);
                    first.entries.push(
                        Dying {
                            number,
                            why,
                            nth: 0,
                        },
                        flags,
                    )?;
                }
                _ => (),
            }
        }
        // A table may have a million of these: a sort steps once for each comparison.
        first.entries.sort_unstable_by_key(|dying| {
            step();
            dying.number
        });
        first.excess.sort_unstable();
        let (Some(second), Some(map)) = (&mut halves.second, contents.second()) else {
            return Ok(());
        };
        second.excess.clear();
        let Index { table, next, .. } = &map.index;
        if second.cycle.is_some() {
            let excess = table
                .elements(&mut step)
                .filter(|word| word.state() == SlotState::Excess);
            for word in excess {
                second.excess.push(word.number(), flags)?;
            }
        }
        if !first.is_leaving() {
            return Ok(());
        }
        // The first table of a cycle has only copies.
        let table = Some(table).filter(|_| second.cycle.is_none());
        second.entries.clear();
        for (nth, slot) in
            (0..).zip(Iterator::chain(table.into_iter(), next).flat_map(Table::slots))
        {
            step();
            let word = Slot::from_raw(slot.load(Acquire));
            let is_entry = |word: &Slot| matches!(word.state(), SlotState::Entry);
            let Some(word) = word.filter(is_entry) else {
                continue;
            };
            // SAFETY: The slot was loaded with acquire.
            let key = unsafe { map.index.first_word(word.number()) };
            if let Some(why) = first.why((key >> ELEMENT_SHIFT) as u32) {
                let number = word.number();
                second.entries.push(Dying { number, why, nth }, flags)?;
            }
        }
        Ok(())
    }
}

impl Generation {
    /// Takes a bucket out of its slot. Returns the number of the bucket of `other` that gets its
    /// counts. `None`: they are drops.
    fn forget_bucket(&self, dying: Dying) -> Option<u32> {
        let mut tables = self.index.tables().map(Table::slots);
        let (first, next) = (tables.next()?, tables.next().unwrap_or_default());
        let nth = dying.nth as usize;
        let slot = first
            .get(nth)
            .or_else(|| next.get(nth.checked_sub(first.len())?));
        if let Some(slot) = slot {
            // No hit of this key comes any more, and only hits change the slot of an entry.
            if let Some(word) = Slot::from_raw(slot.load(Relaxed)) {
                word.forget(slot);
            }
        }
        let other = dying.why.other()?;
        // SAFETY: Its slot was loaded with acquire.
        let key = unsafe { self.index.first_word(dying.number) };
        let bucket = key & ((1 << ELEMENT_SHIFT) - 1);
        let other = u64::from(other.number()) << ELEMENT_SHIFT;
        self.index.insert_from_worker(other | bucket)
    }
}
