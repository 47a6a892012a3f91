// SPDX-License-Identifier: GPL-2.0

//! A user event: its name, its state, and the references that keep it registered.

use super::{
    description::Description,
    field::{
        declares,
        normalized,
        UserFields, //
    },
    quota::{
        Charge,
        Quota, //
    },
    status_page::{
        StatusBit,
        StatusPage, //
    },
};
use crate::{
    rust::{
        cpu,
        user_event::{
            self,
            FieldDef,
            UserEventOps, //
        },
    },
    text::copy_charged,
};
use core::cmp::Ordering;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc, //
    },
};

/// Whether an event is kept when it is neither used nor enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// It is removed as soon as it is unused.
    No,
    /// It is kept until any user deletes it: an event of the original interface.
    Original,
    /// It is kept until a user with `CAP_PERFMON` deletes it (`USER_EVENT_REG_PERSIST`).
    Privileged,
}

/// Identity of an event for programs: name and fields.
#[derive(PartialEq, Eq)]
pub(super) struct Name {
    /// The name that it was registered with, without the suffix of a multi-format event.
    pub(super) name: KVec<u8>,
    pub(super) multi: bool,
    /// Its fields, as [`normalized`].
    pub(super) fields: KVec<u8>,
}

impl Name {
    /// Creates a name. Fails with `ENOMEM`.
    pub(super) fn new(description: Description<'_>, multi: bool) -> Result<Arc<Self>> {
        let name = Self {
            name: copy_charged(description.name)?,
            multi,
            fields: normalized(description.fields)?,
        };
        Ok(Arc::new(name, GFP_KERNEL_ACCOUNT)?)
    }

    /// The order of `UserEventRegistry::by_name`. Names are equal if only one of the events can
    /// be registered: the fields of a multi-format event are part of its name.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let order = (self.multi, &self.name[..]).cmp(&(other.multi, &other.name[..]));
        match self.multi {
            true => order.then_with(|| self.fields[..].cmp(&other.fields[..])),
            false => order,
        }
    }
}

/// The owner of events, which removes them when they are unused.
pub(super) trait EventOwner: Send + Sync {
    /// Updates the bits of programs after an event was enabled or disabled. Called with event_mutex
    /// held.
    fn changed(&self, event: &Arc<UserEvent>);

    /// Queues the work that removes unused events. Does not sleep.
    fn clean_up(self: Arc<Self>);
}

/// The state of a user event (`struct user_event`).
pub(super) struct UserEventState {
    pub(super) name: Arc<Name>,
    fields: UserFields,
    pub(super) keep: Keep,
    /// Its bit in the status page: none if all were taken, or the event is removed.
    pub(super) status_bit: StatusBit,
    /// The number of [`EventUse`]s: in tables of open files, in enablers and temporary ones; or
    /// [`RETIRED`].
    uses: Atomic<u32>,
    /// The users that have enabled it: [`FTRACE`], [`PERF`]. Written with event_mutex held.
    pub(super) status: Atomic<u32>,
    owner: Arc<dyn EventOwner>,
    _charge: Charge,
}

/// Flag of [`UserEventState::status`]: enabled in a trace instance.
pub(super) const FTRACE: u32 = 1;
/// Flag of [`UserEventState::status`]: enabled by perf.
pub(super) const PERF: u32 = 2;

/// Value of [`UserEventState::uses`] once the event is being removed.
const RETIRED: u32 = u32::MAX;

pub(super) type UserEvent = user_event::UserEvent<UserEventState>;

impl UserEventState {
    /// Creates the state of an event with these fields, which is neither used nor enabled. Fails as
    /// [`Charge::event`].
    pub(super) fn new(
        owner: Arc<dyn EventOwner>,
        page: &Arc<StatusPage>,
        quota: &Arc<Quota>,
        name: &Arc<Name>,
        fields: UserFields,
        keep: Keep,
    ) -> Result<Self> {
        Ok(Self {
            name: name.clone(),
            _charge: Charge::event(quota, fields.len())?,
            fields,
            keep,
            status_bit: StatusBit::new(page),
            uses: Atomic::new(0),
            status: Atomic::new(0),
            owner,
        })
    }

    /// Queues the removal of unused events. Does not sleep.
    fn clean_up(&self) {
        self.owner.clone().clean_up();
    }

    /// Returns whether the event is enabled anywhere.
    pub(super) fn is_enabled(&self) -> bool {
        self.status.load(Acquire) != 0
    }

    pub(super) fn in_use(&self) -> bool {
        self.is_busy() || self.is_enabled()
    }

    /// Returns whether the running task may delete the event.
    pub(super) fn may_delete(&self) -> bool {
        self.keep != Keep::Privileged || user_event::may_keep()
    }

    pub(super) fn is_retired(&self) -> bool {
        self.uses.load(Acquire) == RETIRED
    }

    /// The fields of the event.
    pub(super) fn fields(&self) -> &UserFields {
        &self.fields
    }
}

impl UserEventOps for UserEventState {
    fn changed(event: &Arc<UserEvent>, instances: u32, perf: u32) {
        let state = event.state();
        let was_enabled = state.is_enabled();
        let of_perf = if perf > 0 { PERF } else { 0 };
        let of_ftrace = if instances > 0 { FTRACE } else { 0 };
        state.status.store(of_perf | of_ftrace, Release);
        if state.is_enabled() != was_enabled {
            state.status_bit.update(|| state.is_enabled());
            state.owner.changed(event);
        }
        // Pairs with the drop of the last use: at least one of the two sees that the event is
        // unused and disabled.
        cpu::smp_mb();
        if !state.in_use() && state.keep == Keep::No {
            state.clean_up();
        }
    }

    fn retire(&self, by_command: bool) -> Result {
        if self.is_busy() {
            return Err(EBUSY);
        }
        if by_command && !self.may_delete() {
            return Err(EPERM);
        }
        self.uses.cmpxchg(0, RETIRED, Full).map_err(|_| EBUSY)?;
        Ok(())
    }

    fn is_busy(&self) -> bool {
        self.uses.load(Acquire) != 0
    }

    fn removed(event: &Arc<UserEvent>) {
        event.state().clean_up();
    }

    fn matches(&self, system: Option<&[u8]>, name: &[u8], declaration: &[u8]) -> bool {
        self.name.name[..] == *name
            && matches!(system, None | Some(b"user_events" | b"user_events_multi"))
            && declares(declaration, &self.name.fields)
    }

    fn fields(&self) -> impl Iterator<Item = FieldDef<'_>> {
        self.fields.iter().map(|field| FieldDef {
            type_: field.type_,
            name: field.name,
            offset: field.offset,
            size: field.size,
            signed: field.is_signed(),
        })
    }

    fn accepts_all(&self) -> bool {
        self.fields.accept_all()
    }

    fn accepts(&self, payload: &[u8]) -> bool {
        self.fields.accept(payload)
    }
}

/// A reference that keeps an event registered.
pub(super) struct EventUse(Arc<UserEvent>);

impl EventUse {
    /// Takes a reference; `None` if the event is retired.
    pub(super) fn new(event: &Arc<UserEvent>) -> Option<Self> {
        let uses = &event.state().uses;
        let mut seen = uses.load(Relaxed);
        while seen != RETIRED {
            match uses.cmpxchg(seen, seen + 1, Full) {
                Ok(_) => return Some(Self(event.clone())),
                Err(now) => seen = now,
            }
        }
        None
    }

    pub(super) fn event(&self) -> &Arc<UserEvent> {
        &self.0
    }

    pub(super) fn state(&self) -> &UserEventState {
        self.0.state()
    }
}

impl Clone for EventUse {
    fn clone(&self) -> Self {
        // `self` keeps the count above zero, so the event is not retired.
        self.state().uses.add(1, Relaxed);
        Self(self.0.clone())
    }
}

impl Drop for EventUse {
    fn drop(&mut self) {
        let state = self.state();
        if state.uses.fetch_sub(1, Full) == 1 && state.keep == Keep::No {
            state.clean_up();
        }
    }
}
