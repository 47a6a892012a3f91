// SPDX-License-Identifier: GPL-2.0

//! The triggers `enable_hist` and `disable_hist`, which resume or pause the histograms of an event.

use super::{
    placed::Placed,
    site::{
        Nofault,
        Triggers, //
    },
    trigger::Condition, //
};
use crate::{
    event::{
        record,
        Hit, //
    },
    rust::{
        event::TaskFilter,
        tracefs::TracingDir, //
    },
    sync::Published,
    trigger::enable::UNLIMITED, //
};
use kernel::{
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};

/// The switches of an event, the newest first.
pub(crate) type Switches = KVec<Arc<Switch>>;

/// The parameters of a switch.
pub(crate) struct SwitchSettings {
    /// The tracing directory of both events.
    pub(crate) dir: TracingDir,
    pub(crate) enable: bool,
    /// The event with the histograms, as `SYSTEM:EVENT`.
    pub(crate) target: KVec<u8>,
    /// Maximum number of times that it fires, or [`UNLIMITED`].
    pub(crate) count: u64,
    pub(crate) filter: Option<Condition>,
    /// The tasks whose hits do not count: see [`Switch::hit`].
    pub(crate) tasks: TaskFilter,
    /// Number of the kernel's own triggers on its event.
    pub(crate) older: usize,
}

/// An attached `enable_hist` or `disable_hist`.
pub(crate) struct Switch {
    settings: SwitchSettings,
    /// Number of times it has fired, if that is limited. Concurrent hits may exceed the limit by
    /// one each.
    fired: Atomic<u64>,
    /// Number of the kernel's own triggers that are older, and listed below it.
    older: Atomic<usize>,
    /// The triggers of its target, whose hook is kept as long as the switch exists.
    triggers: Arc<Published<Triggers>>,
}

impl Placed for Switch {
    fn dir(&self) -> &TracingDir {
        &self.settings.dir
    }
}

impl Switch {
    pub(super) fn new(settings: SwitchSettings, triggers: Arc<Published<Triggers>>) -> Self {
        Self {
            fired: Atomic::new(0),
            older: Atomic::new(settings.older),
            settings,
            triggers,
        }
    }

    /// Returns whether it targets the event with these triggers, in some tracing directory.
    pub(crate) fn targets(&self, triggers: &Arc<Published<Triggers>>) -> bool {
        Arc::ptr_eq(&self.triggers, triggers)
    }

    /// Returns whether it is the switch in `dir` that targets the event with these triggers.
    pub(crate) fn is(&self, dir: &TracingDir, triggers: &Arc<Published<Triggers>>) -> bool {
        self.settings.dir == *dir && self.targets(triggers)
    }

    /// Returns whether its filter reads `common_flags` or `common_preempt_count`.
    pub(super) fn reads_context(&self) -> bool {
        let filter = self.settings.filter.as_ref();
        filter.is_some_and(|condition| condition.filter.reads(record::CONTEXT))
    }

    /// Returns whether its event has triggers in its tracing directory that need the record of a
    /// hit: it has a filter, one of `switches` has a filter, some of `triggers` are histograms
    /// there, or the kernel has such a trigger. Any context.
    fn records_needed(&self, switches: &Switches, triggers: &Triggers) -> bool {
        let dir = &self.settings.dir;
        let mut switches = switches.iter().map(|switch| &switch.settings);
        switches.any(|other| other.filter.is_some() && other.dir == *dir)
            || triggers.iter().any(|trigger| trigger.site.dir == *dir)
            || self.settings.tasks.needs_record()
    }

    /// Fires, unless its count is used up or its filter rejects the hit. Any context.
    ///
    /// Tasks are ignored only if the record is needed: otherwise C calls triggers before it checks
    /// the task lists (`__trace_trigger_soft_disabled()`).
    #[inline]
    pub(super) fn hit(&self, hit: &Hit<'_>, switches: &Switches, triggers: &Triggers) {
        if self.settings.tasks.ignores(hit.preempt()) && self.records_needed(switches, triggers) {
            return;
        }
        if let Some(condition) = &self.settings.filter {
            if !condition.filter.matches(hit, &Nofault) {
                return;
            }
        }
        if self.settings.count != UNLIMITED {
            // The load keeps the number from growing without bound.
            let count = self.settings.count;
            if self.fired.load(Relaxed) >= count || self.fired.fetch_add(1, Relaxed) >= count {
                return;
            }
        }
        for trigger in self.triggers.read(hit.preempt()) {
            // Write only on a change, so that the cache line stays shared.
            if trigger.site.dir == self.settings.dir && trigger.paused() == self.settings.enable {
                trigger.pause(!self.settings.enable);
            }
        }
    }

    /// Number of times it still fires, or [`UNLIMITED`].
    fn left(&self) -> u64 {
        match self.settings.count {
            UNLIMITED => UNLIMITED,
            count => count.saturating_sub(self.fired.load(Relaxed)),
        }
    }

    /// Number of the kernel's own triggers that are older.
    pub(crate) fn older(&self) -> usize {
        self.older.load(Relaxed)
    }

    /// Decrements [`Switch::older`] if the kernel's own trigger that was removed had `older`
    /// triggers below it and was older than this.
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
        match self.left() {
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
