// SPDX-License-Identifier: GPL-2.0

//! A hist trigger as it is attached to an event.

use super::published::Published;
use super::record;
use super::record::Record;
use super::Placed;
use crate::filter::Filter;
use crate::filter::Memory;
use crate::ftrace::memory;
use crate::ftrace::tracefs::TracingDir;
use crate::hist::Histogram;
use crate::hist::Hit;
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
    /// Why a hit may not be counted: [`PAUSED`] and [`FILTERED`], so that a hit asks once for both.
    bars: Atomic<u32>,
}

/// It is paused.
const PAUSED: u32 = 1;

/// It has a filter.
const FILTERED: u32 = 2;

/// The bars of a trigger.
fn bars(paused: bool, filter: &Option<Condition>) -> u32 {
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
            bars: Atomic::new(bars(paused, &filter)),
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
        if self.bars.relaxed() & PAUSED != 0 {
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

    /// Is all that it needs of a hit had without a call that might bring forth other hits, and without what
    /// records begin with?
    pub(super) fn is_quiet(&self) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|condition| condition.filter.is_quiet())
            && self.plan.is_quiet()
            && !self.reads(record::HEAD)
    }

    /// As [`HistTrigger::hit`], if words of the record are all that it takes: else returns false, and has
    /// done nothing.
    ///
    /// # Safety
    ///
    /// Preemption must be off.
    #[inline(always)]
    pub(super) unsafe fn hit_words(&self, record: Record<'_>, cpu: usize) -> bool {
        if self.bars.relaxed() != 0 {
            return false;
        }
        // SAFETY: By the contract.
        let histogram = unsafe { self.data.histogram.read() };
        histogram.hit_words(&self.plan, record, cpu)
    }

    pub(crate) fn paused(&self) -> bool {
        self.bars.load(Relaxed) & PAUSED != 0
    }

    /// Pauses it or lets it go on. A hit that is running may still be counted.
    pub(crate) fn pause(&self, paused: bool) {
        self.bars.store(bars(paused, &self.filter), Relaxed);
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
