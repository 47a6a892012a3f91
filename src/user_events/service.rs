// SPDX-License-Identifier: GPL-2.0

//! The service of user events: its state and its work; starts with the module and stops with it.

use super::{
    description::Description,
    enabler::Enablers,
    event::{
        EventOwner,
        EventUse,
        Keep,
        Name,
        UserEvent,
        UserEventState, //
    },
    quota::Quota,
    registry::{
        NewEvent,
        UserEventRegistry,
        REST, //
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
        user_event::{
            self,
            DynEventOps,
            DynamicEvents, //
        },
        user_mm::{
            MmId,
            Watch,
            Watcher, //
        },
    },
    text::Text,
};
use kernel::{
    mm::virt::VmaNew,
    prelude::*,
    rbtree::RBTree,
    sync::{
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    workqueue::{
        impl_has_work,
        new_work,
        Work,
        WorkItem, //
    },
};

/// Returns whether a request failed at one of the limits that removed events count for.
fn is_at_limit(error: Error) -> bool {
    error == EMFILE || error == edquot()
}

/// The user events of the module, and their shared state.
#[pin_data]
pub(crate) struct UserEvents {
    pub(super) instance: Arc<Instance>,
    /// Queue for [`EventOwner::clean_up`], a separate one because its work does not wait for
    /// programs.
    cleaning_queue: Queue,
    #[pin]
    pub(super) registry: Mutex<UserEventRegistry>,
    pub(super) enablers: Arc<Enablers>,
    status_page: Arc<StatusPage>,
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
        let quota = Quota::new()?;
        Arc::pin_init(
            pin_init!(Self {
                instance,
                cleaning_queue: Queue::new()?,
                registry <- kernel::new_mutex!(UserEventRegistry::new()),
                enablers: Enablers::new(&quota)?,
                status_page: StatusPage::new()?,
                settings,
                quota,
                max: match cfg!(CONFIG_USER_EVENTS) {
                    true => None,
                    false => Some(Sysctl::new(c"user_events_max", USER_EVENTS_MAX)?),
                },
                cleaning <- new_work!("rhist::UserEvents::cleaning"),
            }? Error),
            GFP_KERNEL,
        )
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
            let deleted = self
                .registry
                .lock()
                .delete_next(&self.instance, name, &mut below)?;
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
            done &= self
                .registry
                .lock()
                .remove_unused(&self.instance, &mut from);
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
        let looked = registry.look(&self.instance);
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
                None if registry.look(&self.instance).is_err() => return false,
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

            let new = NewEvent::new(&name, description, id, |fields| {
                UserEventState::new(
                    self.clone(),
                    &self.status_page,
                    &self.quota,
                    &name,
                    fields,
                    keep,
                )
            })?;
            let mut registry = self.registry.lock();
            // Another task may have created it meanwhile.
            if let Some(used) = registry.find(&name)? {
                return Ok(used);
            }
            match registry.add(new, self.max(), &self.instance) {
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
        if state.status_bit.number().is_none() {
            // The registry is locked, so no other task gives it one.
            if !state.status_bit.give() {
                return Err(EMFILE);
            }
            state.status_bit.update(|| state.is_enabled());
        }
        drop(registry);
        let bit = state.status_bit.number().ok_or(EMFILE)?;
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

impl EventOwner for UserEvents {
    fn changed(&self, event: &Arc<UserEvent>) {
        self.enablers.update(event);
    }

    fn clean_up(self: Arc<Self>) {
        // Fails if the work is pending already.
        let _ = self.cleaning_queue.get().enqueue(self.clone());
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
            kernel::pr_notice_once!("a forked process starts without enable bits: {error:?}\n");
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
        if let Err(error) = &commands {
            pr_warn!("dynamic_events does not accept u: commands: {error:?}\n");
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
        // In this order: work of enablers may have dropped the last use of an event and queued its
        // clean-up.
        self.events.enablers.drain();
        self.events.cleaning_queue.drain();
        // Records of removed events cannot be printed once the module is gone.
        let mut registry = self.events.registry.lock();
        if !registry.removed.is_empty() {
            user_event::remove_records(&self.events.instance);
        }
        let _removed = core::mem::replace(&mut registry.removed, RBTree::new());
    }
}
