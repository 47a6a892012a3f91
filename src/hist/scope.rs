// SPDX-License-Identifier: GPL-2.0

//! Where the names in a trigger are looked up.

use kernel::prelude::*;

use crate::event::EventDesc;

/// What a trigger can name: the fields of its own event, and other events of its tracing directory.
pub trait Scope {
    /// The event of the trigger.
    fn event(&self) -> &EventDesc;

    /// Whether there is an event `system:name`. Fails with `ENODEV` if the instance is gone, and with `ENOMEM`.
    fn has_event(&self, system: &[u8], name: &[u8]) -> Result<bool>;
}
