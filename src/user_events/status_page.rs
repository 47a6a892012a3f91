// SPDX-License-Identifier: GPL-2.0

//! The page that programs of the original interface map: a bit for each event, set while it is
//! enabled.

use super::registry::UserEventState;
use super::registry::UserEvents;
use crate::ftrace::shared_page::SharedPage;
use kernel::bitmap::BitmapVec;
use kernel::mm::virt::VmaNew;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::sync::Mutex;

/// The page, and which of its bits are in use.
#[pin_data]
pub(super) struct StatusPage {
    page: SharedPage,
    /// Which bits are in use. Taken last, also to write to the page.
    #[pin]
    given: Mutex<BitmapVec>,
}

impl StatusPage {
    /// Bits in the page. The first one belongs to no event and stays clear: programs can test it for an
    /// event that they failed to register.
    pub(super) const BITS: u32 = SharedPage::BITS;

    pub(super) fn new() -> Result<impl PinInit<Self>> {
        let page = SharedPage::new()?;
        let mut given = BitmapVec::new(Self::BITS as usize, GFP_KERNEL)?;
        given.set_bit(0);
        Ok(pin_init!(Self { page, given <- kernel::new_mutex!(given) }))
    }

    /// Maps it into a program. Fails as [`SharedPage::map`].
    pub(super) fn map(&self, vma: &VmaNew) -> Result {
        self.page.map(vma)
    }

    /// Writes the bit of an event that was enabled, disabled, or given its bit.
    pub(super) fn update(&self, event: &UserEventState) {
        // Of two that run at once, the later one writes the state that both have left.
        let _given = self.given.lock();
        if let Some(bit) = event.status_bit() {
            self.page.set(bit, event.is_enabled());
        }
    }
}

/// The bit of an event. It is given back while the event is disabled, so it is clear then.
pub(super) struct StatusBit {
    number: u32,
    events: Arc<UserEvents>,
}

impl StatusBit {
    /// Takes the lowest bit that is free; `None` if there is none.
    pub(super) fn take(events: &Arc<UserEvents>) -> Option<Self> {
        let mut given = events.status_page.given.lock();
        let number = given.next_zero_bit(0)?;
        given.set_bit(number);
        Some(Self {
            number: number as u32,
            events: events.clone(),
        })
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for StatusBit {
    fn drop(&mut self) {
        let mut given = self.events.status_page.given.lock();
        given.clear_bit(self.number as usize);
    }
}
