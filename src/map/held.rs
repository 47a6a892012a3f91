// SPDX-License-Identifier: GPL-2.0

//! Readers that add up counts in several steps: see `holds.rs`.

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use super::{
    Map,
    PerMap,
    Totals, //
};
use crate::sync::smp_rmb;

/// A time in which a reader adds up counts in several views. The worker moves no counts of elements
/// that it takes out meanwhile, unless it was about to do that before.
pub struct Held<'a> {
    map: &'a Map,
    group: usize,
    version: u64,
}

impl Map {
    /// Keeps the worker from moving the counts of entries that are taken out to `other`, unless it
    /// is about to do that. Task context, may sleep.
    pub fn hold(&self) -> Held<'_> {
        let mut state = self.state.lock();
        let holds = &mut state.holds;
        let group = holds.joined;
        holds.readers[group] += 1;
        drop(state);
        let mut held = Held {
            map: self,
            group,
            version: 0,
        };
        held.begin();
        held
    }

    /// Calls `read`, which adds up counts in several steps; once more if counts were moved
    /// meanwhile. Task context, may sleep. Fails with the error of `read`.
    pub fn whole<T>(&self, mut read: impl FnMut(&Held<'_>) -> Result<T>) -> Result<T> {
        let mut held = self.hold();
        loop {
            let result = read(&held)?;
            if held.is_whole() {
                return Ok(result);
            }
            held.begin();
        }
    }
}

impl Held<'_> {
    /// Begins another pass, once no counts move. After that, none do until the reader is done.
    fn begin(&mut self) {
        let mut state = self.map.state.lock();
        while state.holds.is_moving() {
            self.map.moved.wait(&mut state);
        }
        self.version = state.holds.version;
    }

    /// Returns whether the counts of all elements have stayed where they were: sums of them have
    /// each hit once.
    pub fn is_whole(&self) -> bool {
        self.map.state.lock().holds.version == self.version
    }

    /// The columns of all elements, and the losses, so far. A hit of an element that is in the
    /// totals has its value in the second map's. Task context, may sleep. Fails with `ENOMEM`, and
    /// with the error of `check_signal`, which is called now and then.
    pub fn totals(
        &self,
        flags: Flags,
        check_signal: &dyn Fn() -> Result,
    ) -> Result<PerMap<Totals>> {
        let contents = self.map.contents();
        let first = self.map.totals_of(&contents, false, flags, check_signal)?;
        let second = contents.second().map(|contents| {
            // The values of a hit were counted there before the hit, and their elements were
            // taken: pairs with the barrier between the two.
            smp_rmb();
            self.map.totals_of(contents, true, flags, check_signal)
        });
        Ok(PerMap {
            first,
            second: second.transpose()?,
        })
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.map.state.lock().holds.readers[self.group] -= 1;
    }
}
