// SPDX-License-Identifier: GPL-2.0

//! An attached hist trigger.

use crate::{
    event::{
        record,
        Context,
        GroupTask,
        Hit,
        Record, //
    },
    filter::{
        FieldRange,
        Filter,
        Memory, //
    },
    hist::{
        Code,
        Compiled,
        Histogram,
        Spec,
        Tag,
        Tenancy, //
    },
    map::Tally,
    sync::{
        Load,
        PreemptOff,
        Published, //
    },
    text::Text, //
};
use core::{
    mem,
    ops::Range, //
};
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

/// The site of a trigger: an event in a tracing directory.
pub trait Site: Send + Sync + 'static {
    /// Reads memory behind pointers in a record, for filters.
    type Memory: Memory;

    /// An instance of it.
    const MEMORY: Self::Memory;

    /// Returns whether tasks are listed in the tracing directory. Any context.
    fn lists_tasks(&self) -> bool;

    /// Returns whether hits of the running task are ignored. Any context.
    fn ignores(&self, preempt: PreemptOff<'_>) -> bool;

    /// Returns whether `other` is in the same tracing directory.
    fn is_beside(&self, other: &Self) -> bool;

    /// Appends the prefix for names of its events: `instances/NAME ` in an instance, else nothing.
    /// Fails with `ENOMEM`.
    fn show_dir(&self, out: &mut Text) -> Result;
}

/// A histogram and its name (`hist_trigger_data`), shared by triggers of that name.
pub struct HistData {
    histogram: Published<Histogram>,
    /// Has the histogram tended.
    tenancy: Pin<KBox<Mutex<Option<Tenancy>>>>,
    /// The text `name=…`, if it has one.
    name: Option<KVec<u8>>,
}

impl HistData {
    /// Shares `histogram`, which is tended by `tenancy`. `name` is the text `name=…`. Fails with
    /// `ENOMEM`.
    pub fn new(
        histogram: Arc<Histogram>,
        tenancy: Option<Tenancy>,
        name: Option<KVec<u8>>,
    ) -> Result<Arc<Self>> {
        let new = Self {
            histogram: Published::new(histogram),
            tenancy: KBox::pin_init(kernel::new_mutex!(tenancy), GFP_KERNEL)?,
            name,
        };
        Ok(Arc::new(new, GFP_KERNEL)?)
    }

    /// The current histogram. It is updated by hits until it is cleared.
    pub fn histogram(&self) -> Arc<Histogram> {
        self.histogram.get()
    }

    /// The text `name=…`, if it has one.
    pub fn name(&self) -> Option<&[u8]> {
        self.name.as_deref()
    }

    /// Replaces the histogram by an empty one, for all triggers that share it. Readers of the old
    /// one keep it, but it is not tended any more. May sleep. `empty` creates a histogram of the
    /// same trigger, and has it tended; if it fails, its error is returned and nothing changes.
    pub fn clear<E>(
        &self,
        empty: impl FnOnce(&Histogram) -> Result<(Arc<Histogram>, Option<Tenancy>), E>,
    ) -> Result<(), E> {
        let (empty, tenancy) = empty(&self.histogram())?;
        self.histogram.replace(empty);
        let old = mem::replace(&mut *self.tenancy.lock(), tenancy);
        // Without the lock: this may free the old histogram.
        drop(old);
        Ok(())
    }
}

/// A trigger of an event (`event_trigger_data`).
pub struct HistTrigger<S: Site> {
    /// Event site of the trigger.
    pub site: S,
    /// Its histogram.
    pub data: Arc<HistData>,
    /// The compiled trigger. Not shared: another event with a trigger of the same name may have the
    /// same fields at other offsets of its record.
    compiled: Compiled,
    filter: Option<Condition>,
    /// The filter as a range, for [`Entry::is_ranged`].
    range: FieldRange,
    /// Number of rejected hits, shared with the histogram: see [`Histogram::rejected`].
    rejected: Tally,
    /// Number of triggers of the histogram that are not paused, shared with these: see
    /// [`Histogram::active`].
    active: Arc<Atomic<u32>>,
    /// Whether it was created for the actions of other triggers, and is removed with the last of
    /// these.
    pub helper: bool,
    /// The number of the [`Entry`].
    entry: Atomic<u32>,
}

/// Initial flags of a trigger.
pub struct AttachFlags {
    /// Whether it is paused at first.
    pub paused: bool,
    /// See [`HistTrigger::helper`].
    pub helper: bool,
}

/// The way in which a hit of a trigger that is a [leaf](HistTrigger::is_leaf) or an
/// [emitter](HistTrigger::is_emitter) is counted: the kind of the filter, and the path. Decided
/// when the trigger is created, so that a hit does not turn back on its way.
///
/// A number: the [`Tag`] of the path, and the bits below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u32);

impl Entry {
    /// The most common one: plain fields of the record, no filter.
    pub const FIELDS: Self = Self::new(Tag::Fields);

    /// Plain fields of the record, and a filter that is a range.
    pub const FIELDS_RANGED: Self = Self::FIELDS.ranged();

    /// The bits of the tag.
    const TAG: u32 = 7;

    /// Set if the filter is a range of one number of the record, such as `a > 1`: tested first.
    const RANGED: u32 = 8;

    /// Set for a filter of another kind, which is tested before the program is executed.
    const FILTERED: u32 = 16;

    /// Set while the trigger is paused.
    const PAUSED: u32 = 32;

    /// The entry by a path, without a filter.
    pub const fn new(tag: Tag) -> Self {
        Self(tag as u32)
    }

    /// This entry with a filter that is a range.
    #[must_use]
    pub const fn ranged(self) -> Self {
        Self(self.0 | Self::RANGED)
    }

    /// This entry with another filter.
    #[must_use]
    pub const fn filtered(self) -> Self {
        Self(self.0 | Self::FILTERED)
    }

    /// The path, unless the hit [executes](Entry::executes).
    #[inline(always)]
    pub const fn tag(self) -> Tag {
        match Tag::of(self.0 & Self::TAG) {
            Some(tag) => tag,
            None => Tag::Execute,
        }
    }

    /// Returns whether the filter is a range.
    #[inline(always)]
    pub const fn is_ranged(self) -> bool {
        self.0 & Self::RANGED != 0
    }

    /// Returns whether the path may be taken: the trigger is neither paused nor has a filter of
    /// another kind.
    #[inline(always)]
    pub const fn is_open(self) -> bool {
        self.0 & (Self::FILTERED | Self::PAUSED) == 0
    }

    /// Returns whether the trigger is paused.
    #[inline(always)]
    pub const fn is_paused(self) -> bool {
        self.0 & Self::PAUSED != 0
    }
}

/// A filter and its text, which is shown and compared.
pub struct Condition {
    /// The compiled filter.
    pub filter: Filter,
    /// The text after `if`, as written.
    pub text: KVec<u8>,
}

impl<S: Site> HistTrigger<S> {
    /// Creates a trigger, which is not added to an event yet.
    pub fn new(
        site: S,
        data: Arc<HistData>,
        compiled: Compiled,
        filter: Option<Condition>,
        flags: AttachFlags,
    ) -> Self {
        let range = filter.as_ref().and_then(|c| c.filter.field_range());
        let tag = compiled.code.tag();
        let entry = match (&filter, range) {
            (None, _) => Entry::new(tag),
            (Some(_), Some(_)) if tag != Tag::Execute => Entry::new(tag).ranged(),
            (Some(_), _) => Entry::new(tag).filtered(),
        };
        let histogram = data.histogram();
        let active = histogram.active().clone();
        active.add(u32::from(!flags.paused), Relaxed);
        Self {
            site,
            rejected: histogram.rejected().clone(),
            active,
            data,
            compiled,
            helper: flags.helper,
            entry: Atomic::new(entry.0 | u32::from(flags.paused) * Entry::PAUSED),
            filter,
            range: range.unwrap_or(FieldRange::NONE),
        }
    }

    /// Counts a hit. Returns false if it did not: the trigger is paused, ignores the task, or its
    /// filter rejects the hit. Any context.
    #[inline(always)]
    pub fn hit(&self, hit: &Hit<'_>) -> bool {
        if self.entry().is_paused() || self.site.ignores(hit.preempt()) {
            return false;
        }
        if let Some(condition) = &self.filter {
            if !condition.filter.matches(hit, &S::MEMORY) {
                self.rejected.count(hit.preempt());
                return false;
            }
        }
        let histogram = self.data.histogram.read(hit.preempt());
        histogram.hit(self.code(), &self.compiled.targets, hit);
        true
    }

    /// Counts a hit of a leaf without a filter by executing its program. Any context.
    #[inline(always)]
    pub fn execute(&self, hit: &Hit<'_>) {
        let histogram = self.data.histogram.read(hit.preempt());
        histogram.execute(self.code(), &self.compiled.targets, hit);
    }

    #[inline(always)]
    fn code(&self) -> &Code {
        &self.compiled.code
    }

    /// Returns whether a record passes the filter, if that is a range. Counts rejected hits.
    #[inline(always)]
    fn passes(&self, entry: Entry, preempt: PreemptOff<'_>, record: Record<'_>) -> bool {
        let passes = !entry.is_ranged() || self.range.has(record);
        if !passes {
            self.rejected.count(preempt);
        }
        passes
    }

    /// Counts a hit of a leaf on its fast path, unless the filter rejects it. `entry` is the
    /// trigger's, `tag` the same path as a constant of the caller. `clock` reads the global clock,
    /// in ns; `group` returns the id of a task's control group, unless that takes a search. Returns
    /// false, and has done nothing, if the hit has to be executed. Any context.
    #[inline(always)]
    pub fn hit_leaf(
        &self,
        tag: Tag,
        entry: Entry,
        preempt: PreemptOff<'_>,
        record: Record<'_>,
        clock: impl Fn() -> u64,
        group: impl Fn(GroupTask) -> Option<u64>,
    ) -> bool {
        if !self.passes(entry, preempt, record) {
            return true;
        }
        let histogram = self.data.histogram.read(preempt);
        histogram.hit_leaf(tag, self.code(), record, preempt, clock, group)
    }

    /// Counts a hit of an [emitter](HistTrigger::is_emitter), unless the filter rejects it: like
    /// [`HistTrigger::hit_leaf`]. `context` has the stack of the hit. Returns false, and has done
    /// nothing, if the hit has to take the slow path. Any context.
    #[inline(always)]
    pub fn hit_emitter(
        &self,
        preempt: PreemptOff<'_>,
        record: Record<'_>,
        clock: impl Fn() -> u64,
        context: &dyn Context,
    ) -> bool {
        let entry = self.entry();
        if !entry.is_open() || self.site.lists_tasks() {
            return false;
        }
        if !self.passes(entry, preempt, record) {
            return true;
        }
        let histogram = self.data.histogram.read(preempt);
        let (code, targets) = (self.code(), &self.compiled.targets);
        histogram.hit_emitter(code, targets, record, preempt, clock, context)
    }

    /// Returns whether it reads fields at these offsets of records.
    fn reads(&self, offsets: Range<u32>) -> bool {
        let filter = self.filter.as_ref();
        let filters = filter.is_some_and(|condition| condition.filter.reads(offsets.clone()));
        filters || self.compiled.spec.reads(offsets)
    }

    /// Returns whether it reads `common_flags` or `common_preempt_count`.
    pub fn reads_context(&self) -> bool {
        self.reads(record::CONTEXT)
    }

    /// Returns whether it may be on the fast path: no hit can nest in it, since it calls no
    /// function that can be traced, and it does not read the [beginning](record::HEAD) of records,
    /// which rhist's probes fill in on the slow path only. Clocks hit no event; probes in them
    /// bound their own recursion. Waking the worker of a map ([`Request::ask`]) can be traced, but
    /// a hit does so once for a request, and has published its entry before: another hit that
    /// nests in it is like one in an interrupt.
    ///
    /// [`Request::ask`]: crate::map::Request::ask
    pub fn is_leaf(&self) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|condition| condition.filter.is_leaf())
            && self.code().is_leaf()
            && !self.reads(record::HEAD)
    }

    /// Returns whether it would be a leaf, except that it emits a synthetic event, on a fast path
    /// of its own.
    pub fn is_emitter(&self) -> bool {
        let entry = self.entry();
        entry.tag() == Tag::Trace && entry.0 & Entry::FILTERED == 0 && !self.reads(record::HEAD)
    }

    /// Returns how a hit of a leaf or an emitter is counted, unless [tasks are
    /// listed](HistTrigger::lists_tasks). Any context.
    #[inline(always)]
    pub fn entry(&self) -> Entry {
        Entry(self.entry.relaxed())
    }

    /// Returns whether the task of a hit has to be tested, since some are listed in
    /// `set_event_pid`. Any context.
    #[inline(always)]
    pub fn lists_tasks(&self) -> bool {
        self.site.lists_tasks()
    }

    /// The parsed trigger.
    pub fn spec(&self) -> &Spec {
        &self.compiled.spec
    }

    /// Returns whether it is paused.
    pub fn paused(&self) -> bool {
        self.entry().is_paused()
    }

    /// Pauses or resumes it. Hits in progress may still be counted. Any context.
    pub fn pause(&self, paused: bool) {
        // The rest never changes.
        let entry = self.entry.load(Relaxed) & !Entry::PAUSED;
        let entry = entry | u32::from(paused) * Entry::PAUSED;
        // Of several at once, each change counts.
        let was = Entry(self.entry.xchg(entry, Relaxed)).is_paused();
        if was && !paused {
            self.active.fetch_add(1, Relaxed);
        } else if !was && paused {
            self.active.fetch_sub(1, Relaxed);
        }
    }

    /// The text of the filter.
    pub fn filter(&self) -> Option<&[u8]> {
        self.filter.as_ref().map(|condition| &condition.text[..])
    }

    /// Returns whether a command with `spec` and `filter` refers to it (`hist_trigger_match()`).
    /// `named` is the shared data that the command names: the trigger has to share it; with `None`,
    /// it has to be unnamed.
    pub fn matches(
        &self,
        spec: &Spec,
        filter: Option<&[u8]>,
        named: Option<&Arc<HistData>>,
    ) -> bool {
        let name_matches = match named {
            Some(named) => Arc::ptr_eq(&self.data, named),
            None => self.data.name().is_none(),
        };
        name_matches && self.filter() == filter && self.compiled.spec.matches(spec)
    }
}

impl<S: Site> Drop for HistTrigger<S> {
    fn drop(&mut self) {
        self.pause(true);
    }
}
