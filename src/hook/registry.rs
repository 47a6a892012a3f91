// SPDX-License-Identifier: GPL-2.0

//! The events that have triggers.
//!
//! # Locks
//!
//! The lock of the registry is taken in task context with no other lock held, and is the outermost
//! one of the module: inside it event_mutex is taken and grace periods are waited for. Nothing
//! that the kernel calls with event_mutex held takes it.

use super::trigger::HistData;
use super::trigger::HistTrigger;
use super::Hook;
use super::Shared;
use super::Triggers;
use crate::ftrace::event::Event;
use crate::ftrace::instance::Instance;
use kernel::prelude::*;
use kernel::sync::lock::mutex::MutexGuard;
use kernel::sync::Arc;
use kernel::sync::Mutex;

/// All hooks. Dropping it unhooks every event.
#[pin_data(PinnedDrop)]
pub(crate) struct Registry {
    #[pin]
    hooks: Mutex<KVec<Hook>>,
    pub(crate) shared: Shared,
}

impl Registry {
    pub(crate) fn new(instance: Arc<Instance>) -> Result<Pin<KBox<Self>>> {
        let shared = Shared::new(instance)?;
        KBox::pin_init(
            pin_init!(Self {
                hooks <- kernel::new_mutex!(KVec::new()),
                shared,
            }),
            GFP_KERNEL,
        )
    }

    /// Locks it, for reading and changing what an event has.
    pub(crate) fn lock(&self) -> Hooks<'_> {
        Hooks {
            hooks: self.hooks.lock(),
            shared: &self.shared,
        }
    }
}

#[pinned_drop]
impl PinnedDrop for Registry {
    fn drop(self: Pin<&mut Self>) {
        // Here, since the hooks would each wait on their own.
        Hook::disconnect(&mut self.hooks.lock());
    }
}

/// The registry, locked.
pub(crate) struct Hooks<'a> {
    hooks: MutexGuard<'a, KVec<Hook>>,
    shared: &'a Shared,
}

impl Hooks<'_> {
    fn position(&self, event: &Event) -> Option<usize> {
        self.hooks.iter().position(|hook| hook.is_of(event))
    }

    /// The triggers of an event, in the order in which they were added; `None` if it has none.
    pub(crate) fn triggers(&self, event: &Event) -> Option<Arc<Triggers>> {
        self.position(event)
            .map(|index| self.hooks[index].triggers())
    }

    /// What the triggers with this name share, on whatever event they are.
    pub(crate) fn named(&self, name: &[u8]) -> Option<Arc<HistData>> {
        self.hooks.iter().find_map(|hook| {
            let triggers = hook.triggers();
            let named = triggers
                .iter()
                .find(|trigger| trigger.data.name() == Some(name));
            named.map(|trigger| trigger.data.clone())
        })
    }

    /// Adds a trigger to an event.
    pub(crate) fn add(&mut self, event: Event, trigger: HistTrigger) -> Result {
        if let Some(index) = self.position(&event) {
            return self.hooks[index].add(trigger);
        }
        self.hooks.reserve(1, GFP_KERNEL)?;
        let hook = Hook::new(self.shared, event, trigger)?;
        self.hooks.push_within_capacity(hook).map_err(|_| ENOMEM)
    }

    /// Removes the trigger at `index` of those of an event.
    pub(crate) fn remove(&mut self, event: &Event, index: usize) -> Result {
        let Some(hook) = self.position(event) else {
            return Err(EINVAL);
        };
        match self.hooks[hook].triggers().len() {
            0 | 1 => self.remove_all(event),
            _ => self.hooks[hook].remove(index)?,
        }
        Ok(())
    }

    /// Removes all triggers of an event. Cannot fail.
    pub(crate) fn remove_all(&mut self, event: &Event) {
        drop(self.position(event).map(|index| self.hooks.remove(index)));
    }
}
