// SPDX-License-Identifier: GPL-2.0

//! The worker's steps on a histogram that grows or loses entries.

use kernel::prelude::*;

use super::Histogram;
use crate::{
    event::Groups,
    map::{
        self,
        Beat,
        Policy, //
    },
};

/// The worker's own data of a histogram.
pub struct Tending {
    map: map::Tending,
    /// Number of entries that were taken out of it before it last let go of control groups.
    gone: u64,
    /// Set for the grace period before it lets go of control groups, in which hits that have stored
    /// their ids end.
    lets_go: bool,
}

impl Histogram {
    /// Begins to tend it: see [`map::Tending::new`]. `None`: it neither grows nor loses entries.
    pub fn tending(&self, max_bytes: fn() -> usize) -> Result<Option<Tending>> {
        let Some(policy) = self.policy(max_bytes) else {
            return Ok(None);
        };
        Ok(Some(Tending {
            map: map::Tending::new(&self.map, policy)?,
            gone: 0,
            lets_go: false,
        }))
    }

    fn policy(&self, max_bytes: fn() -> usize) -> Option<Policy> {
        let spec = &self.spec;
        spec.is_tended().then(|| Policy {
            idle_ns: spec.expire.idle_ns,
            taken: match spec.expire.taken {
                true => self.code.program.number_vars(),
                false => 0,
            },
            wide_vars: self.code.program.wide_vars(),
            recycle: spec.full.recycle,
            max_bytes,
            active: self.active().clone(),
        })
    }

    /// A step of its growth, or of the removal of its entries: see [`map::Map::beat`]. After
    /// entries were taken out, it lets go of the control groups that no other entry has.
    pub fn beat(&self, tending: &mut Tending, now_ns: u64, between: impl Fn()) -> Beat {
        let program = &self.code.program;
        let groups = self.groups().filter(|_| program.has_groups_in_keys_only());
        if let Some(groups) = groups.filter(|_| tending.lets_go) {
            self.keep_groups(groups, &between);
            groups.let_go();
            tending.lets_go = false;
        }
        let beat = self.map.beat(&mut tending.map, now_ns, between);
        match (groups, &beat) {
            (Some(groups), Beat::At(_)) => {
                let gone = self.gone();
                let gone = gone.expired.wrapping_add(gone.recycled);
                if gone == tending.gone {
                    return beat;
                }
                tending.gone = gone;
                tending.lets_go = true;
                groups.begin_to_let_go();
                Beat::GracePeriod(None)
            }
            _ => beat,
        }
    }

    /// Keeps the groups that are in keys. Histograms that are tended do not intern stacks.
    fn keep_groups(&self, groups: &Groups, between: &impl Fn()) {
        const BATCH: usize = 1024;
        for (nth, elt) in self.map.contents().elts().enumerate() {
            if nth % BATCH == 0 {
                between();
            }
            for part in &self.code.program.parts {
                if part.content.group().is_some() {
                    let id = elt.key_words().nth(part.at / size_of::<u64>());
                    groups.keep(id.unwrap_or(0));
                }
            }
        }
    }
}
