// SPDX-License-Identifier: GPL-2.0

//! The list of all user events; creates and removes events.

use super::{
    description::Description,
    enabler::Enablers,
    field::{
        declares,
        normalized,
        UserFields, //
    },
    quota::{
        Charge,
        Quota, //
    },
    settings::Settings,
    status_page::StatusPage,
};
use crate::{
    errno::{
        eaddrinuse,
        edquot, //
    },
    limits::USER_EVENTS_MAX,
    rust::{
        cpu,
        instance::Instance,
        queue::Queue,
        sysctl::Sysctl,
        tracefs::ModulePin,
        user_event::{
            self,
            Declaration,
            DynEventOps,
            DynamicEvents,
            FieldDef,
            UserEventOps, //
        },
        user_mm::{
            MmId,
            Watch,
            Watcher, //
        },
    },
    text::{
        copy_charged,
        Text, //
    },
};
use core::cmp::Ordering;
use kernel::{
    mm::virt::VmaNew,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta,
        Instant,
        Monotonic, //
    },
    workqueue::{
        impl_has_work,
        new_work,
        Work,
        WorkItem, //
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
const REST: Delta = Delta::from_millis(10);
const RESTS: i64 = 20;

/// Returns whether a request failed at one of the limits that removed events count for.
fn is_at_limit(error: Error) -> bool {
    error == EMFILE || error == edquot()
}

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
struct Name {
    /// The name that it was registered with, without the suffix of a multi-format event.
    name: KVec<u8>,
    multi: bool,
    /// Its fields, as [`normalized`].
    fields: KVec<u8>,
}

impl Name {
    /// Creates a name. Fails with `ENOMEM`.
    fn new(description: Description<'_>, multi: bool) -> Result<Arc<Self>> {
        let name = Self {
            name: copy_charged(description.name)?,
            multi,
            fields: normalized(description.fields)?,
        };
        Ok(Arc::new(name, GFP_KERNEL_ACCOUNT)?)
    }

    /// The order of [`UserEventRegistry::by_name`]. Names are equal if only one of the events can
    /// be registered: the fields of a multi-format event are part of its name.
    fn order(&self, other: &Self) -> Ordering {
        let order = (self.multi, &self.name[..]).cmp(&(other.multi, &other.name[..]));
        match self.multi {
            true => order.then_with(|| self.fields[..].cmp(&other.fields[..])),
            false => order,
        }
    }
}

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

/// The state of a user event (`struct user_event`).
pub(super) struct UserEventState {
    name: Arc<Name>,
    fields: UserFields,
    keep: Keep,
    /// The number of its bit in the status page; 0 if none was free, or the event is removed.
    /// Written by [`StatusPage`].
    pub(super) status_bit: Atomic<u32>,
    /// The number of [`EventUse`]s: in tables of open files, in enablers and temporary ones; or
    /// [`RETIRED`].
    uses: Atomic<u32>,
    /// The users that have enabled it: [`FTRACE`], [`PERF`]. Written with event_mutex held.
    status: Atomic<u32>,
    events: Arc<UserEvents>,
    _charge: Charge,
}

impl Drop for UserEventState {
    fn drop(&mut self) {
        // Needed if it was never listed.
        self.events.status_page.take_back(self);
    }
}

/// Flag of [`UserEventState::status`]: enabled in a trace instance.
const FTRACE: u32 = 1;
/// Flag of [`UserEventState::status`]: enabled by perf.
const PERF: u32 = 2;

/// Value of [`UserEventState::uses`] once the event is being removed.
const RETIRED: u32 = u32::MAX;

pub(super) type UserEvent = user_event::UserEvent<UserEventState>;

impl UserEventState {
    /// Whether the event is enabled anywhere.
    pub(super) fn is_enabled(&self) -> bool {
        self.status.load(Acquire) != 0
    }

    fn in_use(&self) -> bool {
        self.is_busy() || self.is_enabled()
    }

    /// Whether the running task may delete the event.
    fn may_delete(&self) -> bool {
        self.keep != Keep::Privileged || user_event::may_keep()
    }

    /// The number of its bit in the status page, if it has one.
    pub(super) fn status_bit(&self) -> Option<u32> {
        Some(self.status_bit.load(Relaxed)).filter(|&bit| bit != 0)
    }

    fn is_retired(&self) -> bool {
        self.uses.load(Acquire) == RETIRED
    }

    /// The fields of the event.
    pub(super) fn fields(&self) -> &UserFields {
        &self.fields
    }

    /// The user events that this one belongs to.
    pub(super) fn events(&self) -> &Arc<UserEvents> {
        &self.events
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
            state.events.status_page.update(state);
            state.events.enablers.update(event);
        }
        // Pairs with the drop of the last use: at least one of the two sees that the event is
        // unused and disabled.
        cpu::smp_mb();
        if !state.in_use() && state.keep == Keep::No {
            state.events.clean_up();
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
        event.state().events.clean_up();
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
    fn new(event: &Arc<UserEvent>) -> Option<Self> {
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
            state.events.clean_up();
        }
    }
}

/// An event that is not registered yet, with the memory for its list entries.
struct NewEvent {
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
    /// have to wait for it. `id` is the suffix of a multi-format event.
    ///
    /// # Errors
    ///
    /// `EINVAL` for invalid fields, or a name that is too long for a directory; the errors of
    /// [`Charge::new`]; `ENOMEM`.
    fn new(
        events: &Arc<UserEvents>,
        name: &Arc<Name>,
        description: Description<'_>,
        keep: Keep,
        id: u64,
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
        let state = UserEventState {
            name: name.clone(),
            _charge: Charge::event(&events.quota, fields.len())?,
            fields,
            keep,
            status_bit: Atomic::new(0),
            uses: Atomic::new(0),
            status: Atomic::new(0),
            events: events.clone(),
        };
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
    removed: RBTree<u64, Arc<UserEvent>>,
    /// The number of looks for such records; and when the last look ended, with the length of the
    /// rest after it.
    looks: u64,
    looked: Option<(Instant<Monotonic>, Delta)>,
    /// Number of events, including removed ones.
    len: usize,
    /// The number of the next event.
    next_number: u64,
    /// The suffix for the name of the next multi-format event (`USER_EVENT_REG_MULTI_FORMAT`).
    next_id: u64,
}

impl UserEventRegistry {
    fn new() -> Self {
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
    fn find(&self, name: &Arc<Name>) -> Result<Option<EventUse>> {
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

    /// Registers an event. Takes event_mutex.
    ///
    /// # Errors
    ///
    /// `EMFILE` if the limit of events is reached, or all bits are taken and the event is one of
    /// the original interface; the errors of [`user_event::UserEvent::publish`].
    fn add(&mut self, events: &Arc<UserEvents>, new: NewEvent) -> Result<EventUse> {
        if self.len >= events.max() {
            return Err(EMFILE);
        }
        let state = new.event.state();
        if !events.status_page.give(state) && state.keep == Keep::Original {
            return Err(EMFILE);
        }
        let used = EventUse::new(&new.event).ok_or(EINVAL)?;
        new.event.publish(&events.instance)?;
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
        state.events.status_page.take_back(state);
        match removed {
            Some(node) if event.is_held() => {
                self.removed.insert(node);
            }
            _ => self.len -= 1,
        }
    }

    /// The time until the next look may begin: the remainder of the rest after the last one.
    fn rest(&self) -> Option<Delta> {
        let (ended, rest) = self.looked.as_ref()?;
        Some(*rest - ended.elapsed()).filter(|left| !left.is_zero() && !left.is_negative())
    }

    /// Looks for records of removed events. Takes event_mutex.
    ///
    /// # Errors
    ///
    /// If event_mutex could not be taken: no buffer was visited.
    fn look(&mut self, events: &UserEvents) -> Result {
        let began = Instant::<Monotonic>::now();
        user_event::look_for_records(&events.instance)?;
        let rest = (began.elapsed() * RESTS).max(REST);
        self.looked = Some((Instant::now(), rest));
        self.looks += 1;
        Ok(())
    }

    /// Visits the next [`BATCH`] removed events from the number `from`, and drops the ones whose
    /// records are gone. Sets `from` to the number to go on from, or to `None` at the end.
    fn drop_removed(&mut self, from: &mut Option<u64>) {
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
    fn delete_next(
        &mut self,
        events: &UserEvents,
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
            event.withdraw(&events.instance)?;
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
    fn remove_unused(&mut self, events: &UserEvents, from: &mut Option<u64>) -> bool {
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
                match event.withdraw(&events.instance) {
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
    fn status_size(&self) -> usize {
        // The number of the bit, a colon, and the users of the event; and the numbers at the end.
        let line = |event: &Arc<UserEvent>| event.name().len() + 40;
        self.by_number.values().map(line).sum::<usize>() + 100
    }

    /// Formats `user_events_status`: each event with the users that have enabled it, and the
    /// numbers of events. With `with_bits` also the bits in the status page, as in the original
    /// interface.
    fn status(&self, with_bits: bool, out: &mut Text) -> Result {
        let (mut active, mut busy) = (0, 0);
        for event in self
            .by_number
            .values()
            .filter(|event| !event.state().is_retired())
        {
            active += 1;
            if with_bits {
                let bit = event.state().status_bit().unwrap_or(0);
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

/// The user events of the module, and their shared state.
#[pin_data]
pub(crate) struct UserEvents {
    pub(super) instance: Arc<Instance>,
    /// Queue for work of [`Enablers`] that does not wait for programs.
    pub(super) writing: Queue,
    /// Queue for work of [`Enablers`] that a program can delay for any time, by a page fault.
    pub(super) waiting: Queue,
    /// Queue for [`UserEvents::clean_up`], a separate one because its work does not wait for
    /// programs.
    cleaning_queue: Queue,
    #[pin]
    pub(super) registry: Mutex<UserEventRegistry>,
    #[pin]
    pub(super) enablers: Enablers,
    #[pin]
    pub(super) status_page: StatusPage,
    pub(crate) settings: Settings,
    pub(super) quota: Arc<Quota>,
    /// The sysctl `kernel.user_events_max`, unless the kernel has user events and so its own.
    max: Option<Sysctl>,
    /// Work that removes unused events.
    #[pin]
    cleaning: Work<UserEvents>,
}

impl_has_work! {
    impl HasWork<Self> for UserEvents { self.cleaning }
}

impl UserEvents {
    fn new(instance: Arc<Instance>, settings: Settings) -> Result<Arc<Self>> {
        user_event::init()?;
        Arc::pin_init(
            pin_init!(Self {
                instance,
                writing: Queue::new()?,
                waiting: Queue::new()?,
                cleaning_queue: Queue::new()?,
                registry <- kernel::new_mutex!(UserEventRegistry::new()),
                enablers <- Enablers::new(),
                status_page <- StatusPage::new()?,
                settings,
                quota: Quota::new()?,
                max: match cfg!(CONFIG_USER_EVENTS) {
                    true => None,
                    false => Some(Sysctl::new(c"user_events_max", USER_EVENTS_MAX)?),
                },
                cleaning <- new_work!("rhist::UserEvents::cleaning"),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Queues the work that removes unused events. Does not sleep.
    fn clean_up(self: &Arc<Self>) {
        // Fails if the work is pending already.
        let _ = self.cleaning_queue.get().enqueue(self.clone());
    }

    /// Deletes all events that were registered with a name, the newest first. Called without locks;
    /// locks the registry.
    ///
    /// # Errors
    ///
    /// `ENOENT` if no event has the name; `EINTR` if the task was killed; the errors of
    /// [`UserEventRegistry::delete_next`]. An error stops the deletion: newer events are deleted
    /// already.
    pub(super) fn delete(&self, name: &[u8]) -> Result {
        let mut below = u64::MAX;
        let mut result = Err(ENOENT);
        loop {
            // Unlocked after each batch, for other tasks.
            let deleted = self.registry.lock().delete_next(self, name, &mut below)?;
            match deleted {
                Some(true) => result = Ok(()),
                Some(false) => (),
                None => return result,
            }
            cpu::yield_unless_killed()?;
        }
    }

    /// Removes events that are neither used nor enabled. Called without locks; locks the registry.
    /// Returns false if the caller must try again later, because one of them is still referenced.
    fn remove_unused(&self) -> bool {
        let mut done = true;
        let mut from = Some(0);
        while from.is_some() {
            // Unlocked after each batch, for other tasks.
            done &= self.registry.lock().remove_unused(self, &mut from);
        }
        done
    }

    /// Drops the removed events whose records are gone from all ring buffers, according to the last
    /// look. Called without locks; locks the registry.
    fn drop_removed(&self) {
        let mut from = Some(0);
        while from.is_some() {
            // Unlocked after each batch, for other tasks.
            self.registry.lock().drop_removed(&mut from);
        }
    }

    /// Looks for records of removed events, unless the list is empty or still in the rest after the
    /// last look, and drops events without records. Called without locks; locks the registry.
    fn drop_if_rested(&self) {
        let mut registry = self.registry.lock();
        if registry.removed.is_empty() || registry.rest().is_some() {
            return;
        }
        let looked = registry.look(self);
        drop(registry);
        if looked.is_ok() {
            self.drop_removed();
        }
    }

    /// Makes room below the limits, for which removed events count: drops those of which no ring
    /// buffer has records now. Waits for a look that begins after this was called; any thread may
    /// do that look. So programs at their limit cannot cause looks all the time. Returns whether
    /// room may have been made. Called without locks; locks the registry.
    fn make_room(&self) -> bool {
        let mut registry = self.registry.lock();
        let looks = registry.looks;
        while looks == registry.looks {
            if registry.removed.is_empty() {
                return false;
            }
            match registry.rest() {
                Some(rest) => {
                    drop(registry);
                    fsleep(rest.min(REST));
                    if cpu::yield_unless_killed().is_err() {
                        return false;
                    }
                    registry = self.registry.lock();
                }
                None if registry.look(self).is_err() => return false,
                None => {}
            }
        }
        drop(registry);
        self.drop_removed();
        true
    }

    /// Executes a request, and once more if it fails at a limit and room may have been made. Called
    /// without locks; locks the registry.
    pub(super) fn within_limits<T>(&self, request: impl Fn() -> Result<T>) -> Result<T> {
        match request() {
            Err(error) if is_at_limit(error) && self.make_room() => request(),
            result => result,
        }
    }

    /// The maximum number of events.
    fn max(&self) -> usize {
        self.max.as_ref().map_or(USER_EVENTS_MAX, Sysctl::value) as usize
    }

    /// Finds the event of a description, or creates it with `keep`. An event that exists keeps the
    /// value of its first registration. Called without locks; locks the registry.
    ///
    /// # Errors
    ///
    /// `EPERM` for [`Keep::Privileged`] without `CAP_PERFMON`; `EADDRINUSE` if an event of this
    /// name has other fields and `multi` is not set, or is one of the kernel's own user events; the
    /// errors of [`NewEvent::new`] and [`UserEventRegistry::add`].
    pub(super) fn find_or_create(
        self: &Arc<Self>,
        description: Description<'_>,
        keep: Keep,
        multi: bool,
    ) -> Result<EventUse> {
        if keep == Keep::Privileged && !user_event::may_keep() {
            return Err(EPERM);
        }
        let name = Name::new(description, multi)?;
        loop {
            let mut registry = self.registry.lock();
            if let Some(used) = registry.find(&name)? {
                return Ok(used);
            }
            let id = registry.next_id;
            registry.next_id += u64::from(multi);
            drop(registry);

            let new = NewEvent::new(self, &name, description, keep, id)?;
            let mut registry = self.registry.lock();
            // Another task may have created it meanwhile.
            if let Some(used) = registry.find(&name)? {
                return Ok(used);
            }
            match registry.add(self, new) {
                // The kernel has a user event of this name. For a multi-format event, the next
                // number may be free.
                Err(EEXIST) if multi => (),
                Err(EEXIST) => return Err(eaddrinuse()),
                result => return result,
            }
        }
    }

    /// Finds or creates an event for the original interface. Also returns the bit of the event in
    /// the status page.
    ///
    /// # Errors
    ///
    /// As [`UserEvents::find_or_create`], and `EMFILE` if no bit is free.
    pub(super) fn find_or_create_original(
        self: &Arc<Self>,
        description: Description<'_>,
    ) -> Result<(EventUse, u32)> {
        let event = self.find_or_create(description, Keep::Original, false)?;
        let state = event.state();
        let registry = self.registry.lock();
        if state.status_bit().is_none() {
            // The registry is locked, so no other task gives it one.
            if !self.status_page.give(state) {
                return Err(EMFILE);
            }
            self.status_page.update(state);
        }
        drop(registry);
        let bit = state.status_bit().ok_or(EMFILE)?;
        Ok((event, bit))
    }

    /// Formats `user_events_status`. Called without locks; locks the registry.
    pub(crate) fn status(&self) -> Result<Text> {
        let mut out = Text::new();
        loop {
            let registry = self.registry.lock();
            let size = registry.status_size();
            if size <= out.as_mut().capacity() {
                registry.status(self.settings.status_bits, &mut out)?;
                return Ok(out);
            }
            drop(registry);
            // With extra capacity for events that are created meanwhile.
            out.as_mut().reserve(size + size / 8, GFP_KERNEL_ACCOUNT)?;
        }
    }

    /// Maps the status page into a program. Called with mmap_lock held.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the mapping is not exactly one page, `EPERM` if it is writable.
    pub(crate) fn map(&self, vma: &VmaNew) -> Result {
        self.status_page.map(vma)
    }
}

/// Delays before the removal of a referenced event is tried again: the first and the longest.
/// Polled, since putting a reference does not notify.
const RETRY: [Delta; 2] = [Delta::from_millis(20), Delta::from_millis(320)];

impl WorkItem for UserEvents {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let [mut delay, longest] = RETRY;
        while !this.remove_unused() {
            // The remaining event pins the module, so that unloading does not wait for this loop.
            fsleep(delay);
            delay = longest.min(delay + delay);
        }
        this.drop_if_rested();
    }
}

impl DynEventOps for UserEvents {
    fn create(self: &Arc<Self>, description: &[u8]) -> Result {
        let description = Description::parse(description)?;
        self.within_limits(|| self.find_or_create(description, Keep::Privileged, false))?;
        Ok(())
    }
}

impl Watcher for UserEvents {
    fn exited(self: &Arc<Self>, mm: MmId) {
        self.enablers.remove_all(mm);
    }

    fn forked(self: &Arc<Self>, parent: MmId) {
        let mut copied = self.enablers.copy(parent);
        if copied.is_err_and(is_at_limit) {
            // The child runs only after this, so it must not wait for a look.
            self.drop_if_rested();
            copied = self.enablers.copy(parent);
        }
        // The child is left without enable bits then, as with the kernel's own user events.
        if let Err(error) = copied {
            kernel::pr_notice_once!("a forked process has no enable bits ({error:?})\n");
        }
    }
}

/// Starts user events when the module is loaded, and stops them when it is unloaded.
pub(crate) struct Service {
    // Dropped before the queues are drained. No enabler is left then: its event would pin the
    // module.
    watch: Option<Watch<UserEvents>>,
    commands: Option<DynamicEvents<UserEvents>>,
    events: Arc<UserEvents>,
}

impl Service {
    pub(crate) fn new(instance: Arc<Instance>, settings: Settings) -> Result<Self> {
        let events = UserEvents::new(instance.clone(), settings)?;
        let watch = Watch::new(events.clone())?;
        let commands = DynamicEvents::new(instance, events.clone());
        if commands.is_err() {
            pr_warn!("dynamic_events does not take u: commands\n");
        }
        Ok(Self {
            watch: Some(watch),
            commands: commands.ok(),
            events,
        })
    }

    pub(crate) fn events(&self) -> &Arc<UserEvents> {
        &self.events
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.commands = None;
        self.watch = None;
        // In this order: work in the first two may have dropped the last use of an event and queued
        // its clean-up.
        self.events.writing.drain();
        self.events.waiting.drain();
        self.events.cleaning_queue.drain();
        // Records of removed events cannot be printed once the module is gone.
        let mut registry = self.events.registry.lock();
        if !registry.removed.is_empty() {
            user_event::remove_records(&self.events.instance);
        }
        let _removed = core::mem::replace(&mut registry.removed, RBTree::new());
    }
}
