// SPDX-License-Identifier: GPL-2.0

//! An attached hist trigger.

use super::Placed;
use crate::{
    event::{
        record,
        Hit,
        Record, //
    },
    filter::{
        Filter,
        Memory, //
    },
    hist::{
        Compiled,
        Histogram,
        Spec, //
    },
    rust::{
        event::TaskFilter,
        memory,
        tracefs::TracingDir, //
    },
    sync::{
        Load,
        PreemptOff,
        Published, //
    },
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

/// A histogram and its name (`hist_trigger_data`), shared by triggers of that name.
pub(crate) struct HistData {
    histogram: Published<Histogram>,
    /// The text `name=…`, if it has one.
    name: Option<KVec<u8>>,
}

impl HistData {
    pub(crate) fn new(histogram: Arc<Histogram>, name: Option<KVec<u8>>) -> Result<Arc<Self>> {
        let histogram = Published::new(histogram);
        Ok(Arc::new(Self { histogram, name }, GFP_KERNEL)?)
    }

    /// The current histogram. It is updated by hits until it is cleared.
    pub(crate) fn histogram(&self) -> Arc<Histogram> {
        self.histogram.get()
    }

    pub(crate) fn name(&self) -> Option<&[u8]> {
        self.name.as_deref()
    }

    /// Replaces the histogram by an empty one, for all triggers that share it. Readers that have the old one keep
    /// it. May sleep. Fails with the error of `empty`, which makes one of the same trigger, and has then changed
    /// nothing.
    pub(crate) fn clear<E>(
        &self,
        empty: impl FnOnce(&Histogram) -> Result<Arc<Histogram>, E>,
    ) -> Result<(), E> {
        let empty = empty(&self.histogram())?;
        self.histogram.replace(empty);
        Ok(())
    }
}

/// A trigger of an event (`event_trigger_data`).
pub(crate) struct HistTrigger {
    /// Its tracing directory.
    pub(crate) dir: TracingDir,
    pub(crate) data: Arc<HistData>,
    /// Another event with a trigger of the same name may have the same fields at other offsets of its record.
    code: Compiled,
    filter: Option<Condition>,
    /// The tasks whose hits do not count.
    tasks: TaskFilter,
    /// Whether it was made for the actions of other triggers, and goes with the last of these.
    pub(crate) helper: bool,
    /// An [`Entry`], and [`PAUSED`]. One load tells a hit where to go.
    flags: Atomic<u32>,
}

/// What a trigger is made as.
pub(crate) struct AttachFlags {
    pub(crate) paused: bool,
    /// See [`HistTrigger::helper`].
    pub(crate) helper: bool,
}

/// How a hit enters a trigger that is a [leaf](HistTrigger::is_leaf). Decided when the trigger is made, so that a hit
/// does not find out on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// Key and values are plain fields of the record, and there is no filter.
    Fast,
    /// The program has to be executed, and there is no filter.
    Plain,
    /// There is a filter.
    Filtered,
}

/// The flag of a paused trigger, beside its [`Entry`].
const PAUSED: u32 = 4;

/// A filter and its text, which is shown and compared.
pub(crate) struct Condition {
    pub(crate) filter: Filter,
    pub(crate) text: KVec<u8>,
}

/// Reads strings that pointers in a record refer to.
pub(super) struct Nofault;

impl Memory for Nofault {
    fn read_kernel(&self, to: &mut [u8], address: usize) -> bool {
        memory::read_kernel(to, address)
    }

    fn read_user(&self, to: &mut [u8], address: usize) -> bool {
        memory::read_user(to, address)
    }
}

impl Placed for HistTrigger {
    fn dir(&self) -> &TracingDir {
        &self.dir
    }
}

impl HistTrigger {
    pub(crate) fn new(
        dir: TracingDir,
        data: Arc<HistData>,
        code: Compiled,
        filter: Option<Condition>,
        tasks: TaskFilter,
        flags: AttachFlags,
    ) -> Self {
        let entry = match &filter {
            Some(_) => Entry::Filtered,
            None if code.program.is_fast() => Entry::Fast,
            None => Entry::Plain,
        };
        Self {
            dir,
            data,
            code,
            tasks,
            helper: flags.helper,
            flags: Atomic::new(entry as u32 | u32::from(flags.paused) * PAUSED),
            filter,
        }
    }

    /// Counts a hit. Returns false if it did not: the trigger is paused, or ignores the task, or the filter rejects the
    /// hit. Any context.
    #[inline(always)]
    pub(super) fn hit(&self, hit: &Hit<'_>) -> bool {
        self.flags.relaxed() & PAUSED == 0 && self.hit_unless_rejected(hit)
    }

    /// Counts a hit of a trigger that is not paused: see [`HistTrigger::hit`].
    #[inline(always)]
    pub(super) fn hit_unless_rejected(&self, hit: &Hit<'_>) -> bool {
        if self.tasks.ignores(hit.preempt()) {
            return false;
        }
        if let Some(condition) = &self.filter {
            if !condition.filter.matches(hit, &Nofault) {
                return false;
            }
        }
        let histogram = self.data.histogram.read(hit.preempt());
        histogram.hit(&self.code.program, &self.code.targets, hit);
        true
    }

    /// Counts a hit of a leaf that enters as [`Entry::Plain`]. Any context.
    #[inline(always)]
    pub(super) fn hit_plain(&self, hit: &Hit<'_>) {
        let histogram = self.data.histogram.read(hit.preempt());
        histogram.execute(&self.code.program, &self.code.targets, hit);
    }

    /// Whether it reads fields at these offsets of records.
    fn reads(&self, offsets: Range<u32>) -> bool {
        let filter = self.filter.as_ref();
        let filters = filter.is_some_and(|condition| condition.filter.reads(offsets.clone()));
        filters || self.code.spec.reads(offsets)
    }

    /// Whether it reads `common_flags` or `common_preempt_count`.
    pub(super) fn reads_context(&self) -> bool {
        self.reads(record::CONTEXT)
    }

    /// Whether it may be on the fast path: no hit can nest in it, since it calls no function that can be traced,
    /// and it does not read the [beginning](record::HEAD) of records, which rhist's probes fill in on the slow
    /// path only.
    pub(super) fn is_leaf(&self) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|condition| condition.filter.is_leaf())
            && self.code.program.is_leaf()
            && !self.reads(record::HEAD)
    }

    /// Fast path: counts a hit of a leaf, if it [enters](Entry) there. Else returns false, and has done nothing, as if the
    /// record is too short. Any context.
    #[inline(always)]
    pub(super) fn hit_fast(&self, preempt: PreemptOff<'_>, record: Record<'_>) -> bool {
        if self.flags.relaxed() != Entry::Fast as u32 || self.tasks.is_set() {
            return false;
        }
        let histogram = self.data.histogram.read(preempt);
        histogram.hit_fast(&self.code.program, record, preempt)
    }

    /// Where a hit of a leaf enters that did not take the fast path. `None`: it is paused. Any context.
    #[inline(always)]
    pub(super) fn entry(&self) -> Option<Entry> {
        match self.flags.relaxed() {
            flags if flags & PAUSED != 0 => None,
            flags if flags == Entry::Filtered as u32 || self.tasks.is_set() => {
                Some(Entry::Filtered)
            }
            _ => Some(Entry::Plain),
        }
    }

    /// What it is.
    pub(crate) fn spec(&self) -> &Spec {
        &self.code.spec
    }

    pub(crate) fn paused(&self) -> bool {
        self.flags.load(Relaxed) & PAUSED != 0
    }

    /// Pauses or resumes it. Hits in progress may still be counted.
    pub(crate) fn pause(&self, paused: bool) {
        // The entry never changes.
        let entry = self.flags.load(Relaxed) & !PAUSED;
        self.flags
            .store(entry | u32::from(paused) * PAUSED, Relaxed);
    }

    /// The text of the filter.
    pub(crate) fn filter(&self) -> Option<&[u8]> {
        self.filter.as_ref().map(|condition| &condition.text[..])
    }

    /// Whether a command with `spec` and `filter` refers to it (`hist_trigger_match()`). `named` is the data with
    /// the name in the command: if there is one, the trigger has to share it, else to have no name.
    pub(crate) fn matches(
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
