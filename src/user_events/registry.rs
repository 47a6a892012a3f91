// SPDX-License-Identifier: GPL-2.0

//! The list of all user events; adds and removes events.

use super::{
    description::Description,
    event::{
        EventUse,
        Keep,
        Name,
        UserEvent,
        UserEventState,
        FTRACE,
        PERF, //
    },
    field::UserFields,
    status_page::StatusPage,
};
use crate::{
    errno::eaddrinuse,
    rust::{
        instance::Instance,
        tracefs::ModulePin,
        user_event::{
            self,
            Declaration, //
        },
    },
    text::{
        copy_charged,
        Text, //
    },
};
use core::cmp::Ordering;
use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        atomic::Relaxed,
        Arc, //
    },
    time::{
        Delta,
        Instant,
        Monotonic, //
    },
};

/// Maximum length of a directory name (`NAME_MAX`).
const MAX_NAME: usize = 255;

/// Maximum number of events that are visited without unlocking the registry. A program can register
/// thousands. Removing one takes long, since it has files in each trace instance, so at most one is
/// removed.
const BATCH: usize = 64;

/// The minimum rest after a look for records of removed events. Each look visits all ring buffers
/// with such records, and programs can cause looks at any time. So the rest is [`RESTS`] times as
/// long as the look.
pub(super) const REST: Delta = Delta::from_millis(10);
const RESTS: i64 = 20;

/// A key of [`UserEventRegistry::by_name`]. Includes the number of the event, since the removal of
/// older events with its name may not be complete.
struct NameKey(Arc<Name>, u64);

impl Ord for NameKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.order(&other.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for NameKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for NameKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for NameKey {}

/// An event that is not registered yet, with the memory for its list entries.
pub(super) struct NewEvent {
    event: Arc<UserEvent>,
    by_number: RBTreeNodeReservation<u64, Arc<UserEvent>>,
    by_name: RBTreeNodeReservation<NameKey, Listed>,
    module: ModulePin,
}

/// An event that is registered.
struct Listed {
    event: Arc<UserEvent>,
    /// It pins the module.
    _module: ModulePin,
}

impl NewEvent {
    /// Creates an event. Called without locks, since the program is charged for the memory, and may
    /// have to wait for it. `id` is the suffix of a multi-format event; `state` makes the state of
    /// an event with these fields.
    ///
    /// # Errors
    ///
    /// `EINVAL` for invalid fields, or a name that is too long for a directory; the errors of
    /// `state`; `ENOMEM`.
    pub(super) fn new(
        name: &Name,
        description: Description<'_>,
        id: u64,
        state: impl FnOnce(UserFields) -> Result<UserEventState>,
    ) -> Result<Self> {
        let mut full = Text::new();
        full.bytes(description.name)?;
        let mut system = c"user_events";
        if name.multi {
            full.format(format_args!(".{id:x}"))?;
            system = c"user_events_multi";
        }
        // C accepts longer names, and creates directories that cannot be opened.
        if full.as_bytes().len() > MAX_NAME {
            return Err(EINVAL);
        }
        full.bytes(b"\0")?;
        let fields = description.parse_fields()?;
        let declaration = Declaration {
            system,
            name: copy_charged(full.as_bytes())?,
            print_fmt: fields.print_fmt()?,
            line: fields.line(description.name)?,
        };
        let state = state(fields)?;
        Ok(Self {
            module: ModulePin::new()?,
            event: UserEvent::new(declaration, state)?,
            by_number: RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
            by_name: RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
        })
    }
}

/// The list of all events. Its mutex is the outermost lock of user events; only the kernel's mutex
/// of `dynamic_events` may be held. No charged memory is allocated with it held: for a program at
/// its limit, that may take as long as the OOM killer needs to kill processes of the program's
/// control group.
pub(super) struct UserEventRegistry {
    /// In the order of their creation.
    by_number: RBTree<u64, Arc<UserEvent>>,
    by_name: RBTree<NameKey, Listed>,
    /// Removed events of which a ring buffer may have records. They keep their type number until
    /// the buffer is emptied or overwritten, and their user stays charged for them.
    pub(super) removed: RBTree<u64, Arc<UserEvent>>,
    /// The number of looks for such records; and when the last look ended, with the length of the
    /// rest after it.
    pub(super) looks: u64,
    looked: Option<(Instant<Monotonic>, Delta)>,
    /// Number of events, including removed ones.
    len: usize,
    /// The number of the next event.
    next_number: u64,
    /// The suffix for the name of the next multi-format event (`USER_EVENT_REG_MULTI_FORMAT`).
    pub(super) next_id: u64,
}

impl UserEventRegistry {
    pub(super) fn new() -> Self {
        Self {
            by_number: RBTree::new(),
            by_name: RBTree::new(),
            removed: RBTree::new(),
            looks: 0,
            looked: None,
            len: 0,
            next_number: 0,
            next_id: 0,
        }
    }

    /// Finds the event of this name. Fails with `EADDRINUSE` if it has other fields.
    pub(super) fn find(&self, name: &Arc<Name>) -> Result<Option<EventUse>> {
        let mut key = NameKey(name.clone(), 0);
        while let Some(cursor) = self.by_name.cursor_lower_bound(&key) {
            let (found, listed) = cursor.current();
            if found.0.order(name) != Ordering::Equal {
                break;
            }
            match EventUse::new(&listed.event) {
                Some(used) if found.0.fields[..] == name.fields[..] => return Ok(Some(used)),
                Some(_) => return Err(eaddrinuse()),
                // It is being removed.
                None => key.1 = found.1 + 1,
            }
        }
        Ok(None)
    }

    /// Registers an event, if fewer than `max` are registered. Takes event_mutex.
    ///
    /// # Errors
    ///
    /// `EMFILE` if the limit of events is reached, or all bits are taken and the event is one of
    /// the original interface; the errors of [`user_event::UserEvent::publish`].
    pub(super) fn add(
        &mut self,
        new: NewEvent,
        max: usize,
        instance: &Arc<Instance>,
    ) -> Result<EventUse> {
        if self.len >= max {
            return Err(EMFILE);
        }
        let state = new.event.state();
        if !state.status_bit.give() && state.keep == Keep::Original {
            return Err(EMFILE);
        }
        let used = EventUse::new(&new.event).ok_or(EINVAL)?;
        new.event.publish(instance)?;
        let number = self.next_number;
        let key = NameKey(state.name.clone(), number);
        let listed = Listed {
            event: new.event.clone(),
            _module: new.module,
        };
        self.by_name.insert(new.by_name.into_node(key, listed));
        self.by_number
            .insert(new.by_number.into_node(number, new.event));
        self.next_number += 1;
        self.len += 1;
        Ok(used)
    }

    /// Takes an event that is not registered any more off the list.
    fn remove(&mut self, number: u64, event: &UserEvent) {
        let state = event.state();
        let removed = self.by_number.remove_node(&number);
        self.by_name.remove(&NameKey(state.name.clone(), number));
        state.status_bit.take_back();
        match removed {
            Some(node) if event.is_held() => {
                self.removed.insert(node);
            }
            _ => self.len -= 1,
        }
    }

    /// The time until the next look may begin: the remainder of the rest after the last one.
    pub(super) fn rest(&self) -> Option<Delta> {
        let (ended, rest) = self.looked.as_ref()?;
        Some(*rest - ended.elapsed()).filter(|left| !left.is_zero() && !left.is_negative())
    }

    /// Looks for records of removed events. Takes event_mutex.
    ///
    /// # Errors
    ///
    /// If event_mutex could not be taken: no buffer was visited.
    pub(super) fn look(&mut self, instance: &Arc<Instance>) -> Result {
        let began = Instant::<Monotonic>::now();
        user_event::look_for_records(instance)?;
        let rest = (began.elapsed() * RESTS).max(REST);
        self.looked = Some((Instant::now(), rest));
        self.looks += 1;
        Ok(())
    }

    /// Visits the next [`BATCH`] removed events from the number `from`, and drops the ones whose
    /// records are gone. Sets `from` to the number to go on from, or to `None` at the end.
    pub(super) fn drop_removed(&mut self, from: &mut Option<u64>) {
        for _ in 0..BATCH {
            let cursor = from.and_then(|from| self.removed.cursor_lower_bound(&from));
            let next = cursor.map(|cursor| {
                let (number, event) = cursor.current();
                (*number, event.is_held())
            });
            *from = next.map(|(number, _)| number + 1);
            match next {
                Some((number, false)) => {
                    self.removed.remove(&number);
                    self.len -= 1;
                }
                Some(_) => (),
                None => break,
            }
        }
    }

    /// The first event with this number or a greater one.
    fn next(&self, number: u64) -> Option<(u64, Arc<UserEvent>)> {
        let cursor = self.by_number.cursor_lower_bound(&number)?;
        let (number, event) = cursor.current();
        Some((*number, event.clone()))
    }

    /// The last event with a lower number.
    fn previous(&self, number: u64) -> Option<(u64, Arc<UserEvent>)> {
        let owned = |(number, event): (&u64, &Arc<UserEvent>)| (*number, event.clone());
        match self.by_number.cursor_lower_bound(&number) {
            Some(cursor) => cursor.peek_prev().map(owned),
            None => self
                .by_number
                .cursor_back()
                .map(|last| owned(last.current())),
        }
    }

    /// Visits the next [`BATCH`] events below the number `below`, the newest first, and deletes the
    /// first one that was registered with a name. Lowers `below` to the number of the last one that
    /// was visited. Returns whether it has deleted one, and `None` if all events were visited.
    /// Takes event_mutex.
    ///
    /// # Errors
    ///
    /// `EBUSY` if the event is used, enabled or referenced; `EPERM` if it is [`Keep::Privileged`]
    /// and the caller lacks `CAP_PERFMON`.
    pub(super) fn delete_next(
        &mut self,
        instance: &Arc<Instance>,
        name: &[u8],
        below: &mut u64,
    ) -> Result<Option<bool>> {
        for _ in 0..BATCH {
            let Some((number, event)) = self.previous(*below) else {
                return Ok(None);
            };
            *below = number;
            let state = event.state();
            if state.name.name[..] != *name || state.is_retired() {
                continue;
            }
            if state.in_use() {
                return Err(EBUSY);
            }
            if !state.may_delete() {
                return Err(EPERM);
            }
            event.withdraw(instance)?;
            self.remove(number, &event);
            return Ok(Some(true));
        }
        Ok(Some(false))
    }

    /// Visits the next [`BATCH`] events from the number `from`. Drops the ones that were deleted
    /// through `dynamic_events`, and removes the first [`Keep::No`] one that is neither used nor
    /// enabled. Sets `from` to the number to go on from, or to `None` at the end. Returns false if
    /// the caller must try again later, because an unused event is still referenced. Takes
    /// event_mutex.
    pub(super) fn remove_unused(
        &mut self,
        instance: &Arc<Instance>,
        from: &mut Option<u64>,
    ) -> bool {
        let mut done = true;
        for _ in 0..BATCH {
            let Some((number, event)) = from.and_then(|from| self.next(from)) else {
                *from = None;
                break;
            };
            *from = Some(number + 1);
            let state = event.state();
            if state.is_retired() {
                self.remove(number, &event);
            } else if state.keep == Keep::No && !state.in_use() {
                match event.withdraw(instance) {
                    Ok(()) => {
                        self.remove(number, &event);
                        break;
                    }
                    // If the event is in use again, the end of that use queues the next clean-up.
                    Err(_) => done &= state.in_use(),
                }
            }
        }
        done
    }

    /// Maximum number of bytes of the output of [`Self::status`].
    pub(super) fn status_size(&self) -> usize {
        // The number of the bit, a colon, and the users of the event; and the numbers at the end.
        let line = |event: &Arc<UserEvent>| event.name().len() + 40;
        self.by_number.values().map(line).sum::<usize>() + 100
    }

    /// Formats `user_events_status`: each event with the users that have enabled it, and the
    /// numbers of events. With `with_bits` also the bits in the status page, as in the original
    /// interface.
    pub(super) fn status(&self, with_bits: bool, out: &mut Text) -> Result {
        let (mut active, mut busy) = (0, 0);
        for event in self
            .by_number
            .values()
            .filter(|event| !event.state().is_retired())
        {
            active += 1;
            if with_bits {
                let bit = event.state().status_bit.number().unwrap_or(0);
                out.format(format_args!("{bit}:"))?;
            }
            out.bytes(event.name())?;
            let status = event.state().status.load(Relaxed);
            if status != 0 {
                out.bytes(b" # Used by")?;
                for (listener, name) in [(FTRACE, b" ftrace" as &[u8]), (PERF, b" perf")] {
                    if status & listener != 0 {
                        out.bytes(name)?;
                    }
                }
                busy += 1;
            }
            out.bytes(b"\n")?;
        }
        out.format(format_args!("\nActive: {active}\nBusy: {busy}\n"))?;
        if with_bits {
            out.format(format_args!("Max: {}\n", StatusPage::BITS))?;
        }
        Ok(())
    }
}
