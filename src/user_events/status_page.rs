// SPDX-License-Identifier: GPL-2.0

//! The status page, which programs of the original interface map: each event has a bit in it that
//! is set while the event is enabled.

use crate::rust::shared_page::SharedPage;
use kernel::{
    bitmap::BitmapVec,
    mm::virt::VmaNew,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
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

    pub(super) fn new() -> Result<Arc<Self>> {
        let page = SharedPage::new()?;
        let mut given = BitmapVec::new(Self::BITS as usize, GFP_KERNEL)?;
        given.set_bit(0);
        Arc::pin_init(
            pin_init!(Self { page, given <- kernel::new_mutex!(given) }),
            GFP_KERNEL,
        )
    }

    /// Maps the page into a program. Called with mmap_lock held. Fails as [`SharedPage::map`].
    pub(super) fn map(&self, vma: &VmaNew) -> Result {
        self.page.map(vma)
    }
}

/// The bit of an event, if it has one. It is free again when this is dropped.
pub(super) struct StatusBit {
    page: Arc<StatusPage>,
    /// 0: none.
    number: Atomic<u32>,
}

impl StatusBit {
    /// No bit, until it is [given](Self::give) one.
    pub(super) fn new(page: &Arc<StatusPage>) -> Self {
        Self {
            page: page.clone(),
            number: Atomic::new(0),
        }
    }

    /// The number of the bit in the page.
    pub(super) fn number(&self) -> Option<u32> {
        Some(self.number.load(Relaxed)).filter(|&number| number != 0)
    }

    /// Gives the event the lowest free bit. Returns false if all are taken. Called with the
    /// registry locked.
    pub(super) fn give(&self) -> bool {
        let mut given = self.page.given.lock();
        let Some(number) = given.next_zero_bit(0) else {
            return false;
        };
        given.set_bit(number);
        self.number.store(number as u32, Relaxed);
        true
    }

    /// Takes the bit back, if the event has one. Called only while the event is disabled, so that a
    /// free bit is clear.
    pub(super) fn take_back(&self) {
        let mut given = self.page.given.lock();
        if let Some(number) = self.number() {
            given.clear_bit(number as usize);
            self.number.store(0, Relaxed);
        }
    }

    /// Writes the bit, after the event was enabled or disabled or the bit was given.
    pub(super) fn update(&self, is_enabled: impl FnOnce() -> bool) {
        // The state is read with the lock held, so that the last of concurrent updates writes the
        // current one.
        let _given = self.page.given.lock();
        if let Some(number) = self.number() {
            self.page.page.set(number, is_enabled());
        }
    }
}

impl Drop for StatusBit {
    fn drop(&mut self) {
        // Needed if the event was never listed.
        self.take_back();
    }
}
