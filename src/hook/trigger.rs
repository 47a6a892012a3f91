// SPDX-License-Identifier: GPL-2.0

//! An attached hist trigger.

use crate::{
    event::{
        record,
        Context,
        Hit,
        Record, //
    },
    filter::{
        FieldRange,
        Filter,
        Memory, //
    },
    hist::{
        program::VarPath,
        Compiled,
        Histogram,
        Spec, //
    },
    map::Tally,
    sync::{
        Load,
        PreemptOff,
        Published, //
    },
    text::Text, //
};
use core::ops::Range;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
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
    /// The text `name=…`, if it has one.
    name: Option<KVec<u8>>,
}

impl HistData {
    /// Shares `histogram`. `name` is the text `name=…`. Fails with `ENOMEM`.
    pub fn new(histogram: Arc<Histogram>, name: Option<KVec<u8>>) -> Result<Arc<Self>> {
        let histogram = Published::new(histogram);
        Ok(Arc::new(Self { histogram, name }, GFP_KERNEL)?)
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
    /// one keep it. May sleep. `empty` creates a histogram of the same trigger; if it fails, its
    /// error is returned and nothing changes.
    pub fn clear<E>(
        &self,
        empty: impl FnOnce(&Histogram) -> Result<Arc<Histogram>, E>,
    ) -> Result<(), E> {
        let empty = empty(&self.histogram())?;
        self.histogram.replace(empty);
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
    code: Compiled,
    filter: Option<Condition>,
    /// The filter as a range, for [`Entry::Ranged`] and for the entries of variables.
    range: FieldRange,
    /// Number of rejected hits, shared with the histogram: see [`Histogram::rejected`].
    rejected: Tally,
    /// Whether it was created for the actions of other triggers, and is removed with the last of
    /// these.
    pub helper: bool,
    /// The [`Entry`] and [`PAUSED`]. A hit loads it once.
    flags: Atomic<u32>,
}

/// Initial flags of a trigger.
pub struct AttachFlags {
    /// Whether it is paused at first.
    pub paused: bool,
    /// See [`HistTrigger::helper`].
    pub helper: bool,
}

/// The way in which a trigger that is a [leaf](HistTrigger::is_leaf) or an
/// [emitter](HistTrigger::is_emitter) counts a hit. Decided when the trigger is created, so that a
/// hit does not turn back on its way. If tasks are listed in `set_event_pid`, hits of a leaf are
/// counted as [`Entry::Filtered`], which tests the task first.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Entry {
    /// Key and values are plain fields of the record, or the key is a string of it; a hit only
    /// counts and sums. No filter.
    Fast = 0,
    /// The program is executed. No filter.
    Plain = 1,
    /// A filter is evaluated first, then the program is executed.
    Filtered = 2,
    /// Like `Fast`, with columns of any kind, and distributions. Tested later than `Fast`, so that
    /// it costs that nothing.
    Columns = 3,
    /// Like `Fast`, with a filter that is a range of one number of the record, such as `a > 1`:
    /// tested first.
    Ranged = 4,
    /// Fast path of variables: one is set, and none of another histogram is read. A filter is at
    /// most a range.
    Set = 5,
    /// Fast path of variables: one of another histogram is read. A filter is at most a range.
    Latency = 6,
    /// Fast path of an emitter: a synthetic event is emitted. A filter is at most a range.
    Trace = 7,
}

impl Entry {
    /// Converts an entry's number; `None` for other numbers.
    #[inline(always)]
    fn of(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Fast,
            1 => Self::Plain,
            2 => Self::Filtered,
            3 => Self::Columns,
            4 => Self::Ranged,
            5 => Self::Set,
            6 => Self::Latency,
            7 => Self::Trace,
            _ => return None,
        })
    }
}

/// The flag of a paused trigger, beside its [`Entry`].
const PAUSED: u32 = 16;

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
        code: Compiled,
        filter: Option<Condition>,
        flags: AttachFlags,
    ) -> Self {
        let range = filter.as_ref().and_then(|c| c.filter.field_range());
        let program = &code.program;
        let entry = match (&filter, program.var_path()) {
            (Some(_), _) if range.is_none() => Entry::Filtered,
            (_, Some(VarPath::Set)) => Entry::Set,
            (_, Some(VarPath::Latency)) => Entry::Latency,
            (_, Some(VarPath::Trace)) => Entry::Trace,
            (Some(_), _) if program.is_fast() => Entry::Ranged,
            (Some(_), _) => Entry::Filtered,
            _ if program.is_fast() => Entry::Fast,
            _ if program.has_columns() => Entry::Columns,
            _ => Entry::Plain,
        };
        Self {
            site,
            rejected: data.histogram().rejected().clone(),
            data,
            code,
            helper: flags.helper,
            flags: Atomic::new(entry as u32 | u32::from(flags.paused) * PAUSED),
            filter,
            range: range.unwrap_or(FieldRange::NONE),
        }
    }

    /// Counts a hit. Returns false if it did not: the trigger is paused, ignores the task, or its
    /// filter rejects the hit. Any context.
    #[inline(always)]
    pub fn hit(&self, hit: &Hit<'_>) -> bool {
        self.flags.relaxed() & PAUSED == 0 && self.hit_unless_rejected(hit)
    }

    /// Counts a hit of a trigger that is not paused: see [`HistTrigger::hit`].
    #[inline(always)]
    pub fn hit_unless_rejected(&self, hit: &Hit<'_>) -> bool {
        if self.site.ignores(hit.preempt()) {
            return false;
        }
        if let Some(condition) = &self.filter {
            if !condition.filter.matches(hit, &S::MEMORY) {
                self.rejected.count(hit.preempt());
                return false;
            }
        }
        let histogram = self.data.histogram.read(hit.preempt());
        histogram.hit(&self.code.program, &self.code.targets, hit);
        true
    }

    /// Counts a hit of a leaf that enters as [`Entry::Plain`]. Any context.
    #[inline(always)]
    pub fn hit_plain(&self, hit: &Hit<'_>) {
        let histogram = self.data.histogram.read(hit.preempt());
        histogram.execute(&self.code.program, &self.code.targets, hit);
    }

    /// Counts a hit of a leaf that enters as [`Entry::Columns`]. Returns false, and has done
    /// nothing, if the record is too short. Any context.
    #[inline(always)]
    pub fn hit_columns(&self, preempt: PreemptOff<'_>, record: Record<'_>) -> bool {
        let histogram = self.data.histogram.read(preempt);
        histogram.hit_columns(&self.code.program, record, preempt)
    }

    /// Counts a hit of a leaf that enters as [`Entry::Ranged`], unless the filter rejects it.
    /// Returns false, and has done nothing, if the record is too short. Any context.
    #[inline(always)]
    pub fn hit_ranged(&self, preempt: PreemptOff<'_>, record: Record<'_>) -> bool {
        if !self.range.has(record) {
            self.rejected.count(preempt);
            return true;
        }
        let histogram = self.data.histogram.read(preempt);
        histogram.hit_fast(&self.code.program, record, preempt)
    }

    /// Returns whether a record passes the filter, which is a range or missing. Counts rejected
    /// hits.
    #[inline(always)]
    fn passes(&self, preempt: PreemptOff<'_>, record: Record<'_>) -> bool {
        let passes = self.filter.is_none() || self.range.has(record);
        if !passes {
            self.rejected.count(preempt);
        }
        passes
    }

    /// Counts a hit of a leaf that enters as [`Entry::Set`], unless the filter rejects it. `clock`
    /// reads the global clock, in ns. Any context.
    #[inline(always)]
    pub fn hit_set(&self, preempt: PreemptOff<'_>, record: Record<'_>, clock: impl Fn() -> u64) {
        if self.passes(preempt, record) {
            let histogram = self.data.histogram.read(preempt);
            histogram.hit_set(&self.code.program, record, preempt, clock);
        }
    }

    /// [`HistTrigger::hit_set`] for [`Entry::Latency`].
    #[inline(always)]
    pub fn hit_latency(
        &self,
        preempt: PreemptOff<'_>,
        record: Record<'_>,
        clock: impl Fn() -> u64,
    ) {
        if self.passes(preempt, record) {
            let histogram = self.data.histogram.read(preempt);
            histogram.hit_latency(&self.code.program, record, preempt, clock);
        }
    }

    /// Counts a hit of an [emitter](HistTrigger::is_emitter), unless the filter rejects it. `clock`
    /// reads the global clock, in ns, and `context` has the stack of the hit. Returns false, and
    /// has done nothing, if the hit has to take the slow path. Any context.
    #[inline(always)]
    pub fn hit_trace(
        &self,
        preempt: PreemptOff<'_>,
        record: Record<'_>,
        clock: impl Fn() -> u64,
        context: &dyn Context,
    ) -> bool {
        // A paused trigger has another value here.
        if self.flags.relaxed() != Entry::Trace as u32 || self.site.lists_tasks() {
            return false;
        }
        if !self.passes(preempt, record) {
            return true;
        }
        let histogram = self.data.histogram.read(preempt);
        let (program, targets) = (&self.code.program, &self.code.targets);
        histogram.hit_trace(program, targets, record, preempt, clock, context)
    }

    /// Returns whether it reads fields at these offsets of records.
    fn reads(&self, offsets: Range<u32>) -> bool {
        let filter = self.filter.as_ref();
        let filters = filter.is_some_and(|condition| condition.filter.reads(offsets.clone()));
        filters || self.code.spec.reads(offsets)
    }

    /// Returns whether it reads `common_flags` or `common_preempt_count`.
    pub fn reads_context(&self) -> bool {
        self.reads(record::CONTEXT)
    }

    /// Returns whether it may be on the fast path: no hit can nest in it, since it calls no
    /// function that can be traced, and it does not read the [beginning](record::HEAD) of records,
    /// which rhist's probes fill in on the slow path only. Clocks hit no event; probes in them
    /// bound their own recursion.
    pub fn is_leaf(&self) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|condition| condition.filter.is_leaf())
            && self.code.program.is_leaf()
            && !self.reads(record::HEAD)
    }

    /// Returns whether it would be a leaf, except that it emits a synthetic event, on a fast path
    /// of its own.
    pub fn is_emitter(&self) -> bool {
        self.flags.relaxed() & !PAUSED == Entry::Trace as u32 && !self.reads(record::HEAD)
    }

    /// Fast path: counts a hit of a leaf. Returns false, and has done nothing, if the
    /// [entry](Entry) is another one, or the record is too short. Any context.
    #[inline(always)]
    pub fn hit_fast(&self, preempt: PreemptOff<'_>, record: Record<'_>) -> bool {
        if self.flags.relaxed() != Entry::Fast as u32 || self.site.lists_tasks() {
            return false;
        }
        let histogram = self.data.histogram.read(preempt);
        histogram.hit_fast(&self.code.program, record, preempt)
    }

    /// Returns the entry for a hit of a leaf that did not take the fast path. `None`: the trigger
    /// is paused. Any context.
    #[inline(always)]
    pub fn entry(&self) -> Option<Entry> {
        // With `PAUSED`, it is not the number of an entry.
        let entry = Entry::of(self.flags.relaxed())?;
        match self.site.lists_tasks() {
            false => Some(entry),
            true => Some(Entry::Filtered),
        }
    }

    /// The parsed trigger.
    pub fn spec(&self) -> &Spec {
        &self.code.spec
    }

    /// Returns whether it is paused.
    pub fn paused(&self) -> bool {
        self.flags.load(Relaxed) & PAUSED != 0
    }

    /// Pauses or resumes it. Hits in progress may still be counted.
    pub fn pause(&self, paused: bool) {
        // The entry never changes.
        let entry = self.flags.load(Relaxed) & !PAUSED;
        self.flags
            .store(entry | u32::from(paused) * PAUSED, Relaxed);
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
        name_matches && self.filter() == filter && self.code.spec.matches(spec)
    }
}
