// SPDX-License-Identifier: GPL-2.0

//! A hist trigger as it is attached to an event.

use super::published::Published;
use super::Placed;
use crate::event::record;
use crate::event::Hit;
use crate::event::Record;
use crate::filter::Filter;
use crate::filter::Memory;
use crate::ftrace::memory;
use crate::ftrace::tracefs::TracingDir;
use crate::hist::Histogram;
use crate::hist::Plan;
use crate::map::load::Load;
use core::ops::Range;
use kernel::prelude::*;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;
use kernel::sync::Arc;

/// What the triggers of one name share, and a trigger without a name has for itself: the
/// histogram (`hist_trigger_data`).
pub(crate) struct HistData {
    histogram: Published<Histogram>,
    /// The text `name=…`, if it has one.
    name: Option<KVec<u8>>,
}

impl HistData {
    pub(crate) fn new(histogram: Histogram, name: Option<KVec<u8>>) -> Result<Arc<Self>> {
        let histogram = Published::new(Arc::new(histogram, GFP_KERNEL)?);
        Ok(Arc::new(Self { histogram, name }, GFP_KERNEL)?)
    }

    /// The histogram as it is now. It goes on counting unless it is cleared.
    pub(crate) fn histogram(&self) -> Arc<Histogram> {
        self.histogram.get()
    }

    pub(crate) fn name(&self) -> Option<&[u8]> {
        self.name.as_deref()
    }

    /// Begins anew for all triggers that share it. Who reads the histogram meanwhile has the old
    /// one, whole. Fails with `ENOMEM`, and is then as it was.
    pub(crate) fn clear(&self, seed: u64, cpus: usize) -> Result {
        let empty = Histogram::from_plan(self.histogram().shared_plan(), seed, cpus)?;
        self.histogram.replace(Arc::new(empty, GFP_KERNEL)?);
        Ok(())
    }
}

/// A trigger of an event (`event_trigger_data`).
pub(crate) struct HistTrigger {
    /// Where the event is whose trigger it is.
    pub(crate) dir: TracingDir,
    pub(crate) data: Arc<HistData>,
    /// What is read of the records of this event. Those of another event with a trigger of the same
    /// name may have the same fields in other places.
    plan: Arc<Plan>,
    filter: Option<Condition>,
    /// [`PAUSED`] and [`FILTERED`]: flags that keep a hit off the fast path. One load tests both.
    flags: Atomic<u32>,
}

/// It is paused.
const PAUSED: u32 = 1;

/// It has a filter.
const FILTERED: u32 = 2;

/// The flags of a trigger.
fn flags(paused: bool, filter: &Option<Condition>) -> u32 {
    u32::from(paused) * PAUSED | u32::from(filter.is_some()) * FILTERED
}

/// A filter, and the text it was made from: it is shown, and compared, as it was written.
pub(crate) struct Condition {
    pub(crate) filter: Filter,
    pub(crate) text: KVec<u8>,
}

/// What a filter reads behind pointers in a record.
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
        plan: Arc<Plan>,
        filter: Option<Condition>,
        paused: bool,
    ) -> Self {
        Self {
            dir,
            data,
            plan,
            flags: Atomic::new(flags(paused, &filter)),
            filter,
        }
    }

    /// Counts a hit, unless it is paused or the filter does not let it pass: then it returns false.
    /// Any context.
    ///
    /// # Safety
    ///
    /// Preemption must be off.
    #[inline]
    pub(super) unsafe fn hit(&self, hit: &Hit<'_>) -> bool {
        if self.flags.relaxed() & PAUSED != 0 {
            return false;
        }
        if let Some(condition) = &self.filter {
            if !condition.filter.matches(hit, &Nofault) {
                return false;
            }
        }
        // SAFETY: By the contract.
        unsafe { self.data.histogram.read() }.hit_as(&self.plan, hit);
        true
    }

    /// Does it look at what is at these offsets of records?
    fn reads(&self, offsets: Range<u32>) -> bool {
        let filter = self.filter.as_ref();
        let filters = filter.is_some_and(|condition| condition.filter.reads(offsets.clone()));
        filters || self.plan.reads(offsets)
    }

    /// Does it look at what records tell of the context of a hit?
    pub(super) fn reads_context(&self) -> bool {
        self.reads(record::CONTEXT)
    }

    /// Whether a hit needs nothing that other events may be traced in, and not what records begin with.
    pub(super) fn is_leaf(&self) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|condition| condition.filter.is_leaf())
            && self.plan.is_leaf()
            && !self.reads(record::HEAD)
    }

    /// Fast path: as [`HistTrigger::hit`], if there is no filter and the histogram only reads plain fields of
    /// the record. Else returns false, and has done nothing.
    ///
    /// # Safety
    ///
    /// Preemption must be off.
    #[inline(always)]
    pub(super) unsafe fn hit_fast(&self, record: Record<'_>, cpu: usize) -> bool {
        if self.flags.relaxed() != 0 {
            return false;
        }
        // SAFETY: By the contract.
        let histogram = unsafe { self.data.histogram.read() };
        histogram.hit_fast(&self.plan, record, cpu)
    }

    pub(crate) fn paused(&self) -> bool {
        self.flags.load(Relaxed) & PAUSED != 0
    }

    /// Pauses it or lets it go on. A hit that is running may still be counted.
    pub(crate) fn pause(&self, paused: bool) {
        self.flags.store(flags(paused, &self.filter), Relaxed);
    }

    /// The text of the filter.
    pub(crate) fn filter(&self) -> Option<&[u8]> {
        self.filter.as_ref().map(|condition| &condition.text[..])
    }

    /// Is this the trigger that a command with `plan` and `filter` means? `named` is the data of the name in
    /// the command, if there is such a name: then only triggers that share it are meant, and
    /// otherwise only those without a name (`hist_trigger_match()`).
    pub(crate) fn is_meant(
        &self,
        plan: &Plan,
        filter: Option<&[u8]>,
        named: Option<&Arc<HistData>>,
    ) -> bool {
        let who = match named {
            Some(named) => Arc::ptr_eq(&self.data, named),
            None => self.data.name().is_none(),
        };
        who && self.filter() == filter && self.plan.matches(plan)
    }
}
