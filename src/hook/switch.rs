// SPDX-License-Identifier: GPL-2.0

//! A trigger that pauses the histograms of an event, or lets them go on.

use super::published::Published;
use super::trigger::Condition;
use super::trigger::Nofault;
use super::Placed;
use super::Triggers;
use crate::event::record;
use crate::event::Hit;
use crate::ftrace::tracefs::TracingDir;
use crate::trigger::switch::UNLIMITED;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;
use kernel::sync::Arc;

/// What a switch is to be.
pub(crate) struct Settings {
    /// Where the event is whose switch it is, and that with the histograms.
    pub(crate) dir: TracingDir,
    pub(crate) enable: bool,
    /// The event with the histograms, as `SYSTEM:EVENT`.
    pub(crate) target: KVec<u8>,
    /// How often it works, or [`UNLIMITED`].
    pub(crate) count: u64,
    pub(crate) filter: Option<Condition>,
    /// Triggers of the kernel that its event has already.
    pub(crate) older: usize,
}

/// `enable_hist` or `disable_hist`, as it is attached to an event.
pub(crate) struct Switch {
    settings: Settings,
    /// How often it still works, or [`UNLIMITED`].
    left: Atomic<u64>,
    /// Triggers of the kernel that its event had before, as far as they are still there: it is listed
    /// above them.
    older: Atomic<usize>,
    /// Those of the other event, or of this one. That event keeps its hook as long as it is meant.
    triggers: Arc<Published<Triggers>>,
}

impl Placed for Switch {
    fn dir(&self) -> &TracingDir {
        &self.settings.dir
    }
}

impl Switch {
    pub(super) fn new(settings: Settings, triggers: Arc<Published<Triggers>>) -> Self {
        Self {
            left: Atomic::new(settings.count),
            older: Atomic::new(settings.older),
            settings,
            triggers,
        }
    }

    /// Does it mean the event with these triggers, in some tracing directory?
    pub(crate) fn means(&self, triggers: &Arc<Published<Triggers>>) -> bool {
        Arc::ptr_eq(&self.triggers, triggers)
    }

    /// Is it the switch in `dir` for the event with these triggers?
    pub(crate) fn is(&self, dir: &TracingDir, triggers: &Arc<Published<Triggers>>) -> bool {
        self.settings.dir == *dir && self.means(triggers)
    }

    /// Does it look at what records tell of the context?
    pub(super) fn reads_context(&self) -> bool {
        let filter = self.settings.filter.as_ref();
        filter.is_some_and(|condition| condition.filter.reads(record::CONTEXT))
    }

    /// Works, unless it has done so often enough or the filter does not let the hit pass. Any
    /// context.
    ///
    /// # Safety
    ///
    /// Preemption must be off.
    #[inline]
    pub(super) unsafe fn hit(&self, hit: &Hit<'_>) {
        if let Some(condition) = &self.settings.filter {
            if !condition.filter.matches(hit, &Nofault) {
                return;
            }
        }
        // Whoever is disturbed here was so by another hit that made the number smaller.
        loop {
            match self.left.load(Relaxed) {
                0 => return,
                UNLIMITED => break,
                left if self.left.cmpxchg(left, left - 1, Relaxed).is_ok() => break,
                _ => (),
            }
        }
        // SAFETY: By the contract.
        for trigger in unsafe { self.triggers.read() } {
            // Mostly there is nothing to change, and no cache line to be taken from other CPUs.
            if trigger.dir == self.settings.dir && trigger.paused() == self.settings.enable {
                trigger.pause(!self.settings.enable);
            }
        }
    }

    /// How many of the kernel's triggers are older than it.
    pub(crate) fn older(&self) -> usize {
        self.older.load(Relaxed)
    }

    /// One of the kernel's triggers is gone, which had `older` ones below it.
    pub(crate) fn forget_older(&self, older: usize) {
        let now = self.older();
        if now > older {
            self.older.store(now - 1, Relaxed);
        }
    }

    /// Its line in the `trigger` file, as C prints it.
    pub(crate) fn line(&self) -> Result<KVec<u8>> {
        let name = match self.settings.enable {
            true => "enable_hist",
            false => "disable_hist",
        };
        let mut line = KVec::new();
        let mut append = |bytes: &[u8]| line.extend_from_slice(bytes, GFP_KERNEL);
        append(name.as_bytes())?;
        append(b":")?;
        append(&self.settings.target)?;
        match self.left.load(Relaxed) {
            UNLIMITED => append(b":unlimited")?,
            // C has a signed number here.
            left => append(CString::try_from_fmt(fmt!(":count={}", left as i64))?.to_bytes())?,
        }
        if let Some(filter) = &self.settings.filter {
            append(b" if ")?;
            append(&filter.text)?;
        }
        append(b"\n")?;
        Ok(line)
    }
}
