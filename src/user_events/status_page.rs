// SPDX-License-Identifier: GPL-2.0

//! The status page, which programs of the original interface map: each event has a bit in it that
//! is set while the event is enabled.

use super::event::UserEventState;
use crate::rust::shared_page::SharedPage;
use kernel::{
    bitmap::BitmapVec,
    mm::virt::VmaNew,
    prelude::*,
    sync::{
        atomic::Relaxed,
        Mutex, //
    },
};

/// The page and the allocation of its bits.
#[pin_data]
pub(super) struct StatusPage {
    page: SharedPage,
    /// The bits in use. Also locked to write to the page. Innermost lock.
    #[pin]
    given: Mutex<BitmapVec>,
}

impl StatusPage {
    /// The number of bits in the page. Bit 0 belongs to no event and is always clear, so that
    /// programs can test it for an event that they failed to register.
    pub(super) const BITS: u32 = SharedPage::BITS;

    pub(super) fn new() -> Result<impl PinInit<Self>> {
        let page = SharedPage::new()?;
        let mut given = BitmapVec::new(Self::BITS as usize, GFP_KERNEL)?;
        given.set_bit(0);
        Ok(pin_init!(Self { page, given <- kernel::new_mutex!(given) }))
    }

    /// Maps the page into a program. Called with mmap_lock held. Fails as [`SharedPage::map`].
    pub(super) fn map(&self, vma: &VmaNew) -> Result {
        self.page.map(vma)
    }

    /// Gives an event the lowest free bit. Returns false if all are taken. Called with the registry
    /// locked.
    pub(super) fn give(&self, event: &UserEventState) -> bool {
        let mut given = self.given.lock();
        let Some(number) = given.next_zero_bit(0) else {
            return false;
        };
        given.set_bit(number);
        event.status_bit.store(number as u32, Relaxed);
        true
    }

    /// Takes the bit of an event back, if it has one. Called only while the event is disabled, so
    /// that a free bit is clear.
    pub(super) fn take_back(&self, event: &UserEventState) {
        let mut given = self.given.lock();
        if let Some(bit) = event.status_bit() {
            given.clear_bit(bit as usize);
            event.status_bit.store(0, Relaxed);
        }
    }

    /// Writes the bit of an event, after the event was enabled or disabled or the bit was given.
    pub(super) fn update(&self, event: &UserEventState) {
        // The state is read with the lock held, so that the last of concurrent updates writes the
        // current one.
        let _given = self.given.lock();
        if let Some(bit) = event.status_bit() {
            self.page.set(bit, event.is_enabled());
        }
    }
}
