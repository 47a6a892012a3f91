// SPDX-License-Identifier: GPL-2.0

//! The worker's steps on a histogram that grows or loses entries.

use kernel::prelude::*;

use super::{
    program::key::KeyPart,
    stacks::Stacks,
    Histogram, //
};
use crate::{
    event::Groups,
    map::{
        self,
        Beat,
        Generation,
        Policy, //
    },
    sync::Retired,
};

/// The worker's own data of a histogram.
pub struct Tending {
    map: map::Tending,
    /// Of the map of stacks. `None`: the histogram has none.
    stacks: Option<KBox<map::Tending>>,
    /// The generation that the map of stacks has retired in the same beat as the other map: it is
    /// dropped after a grace period of its own.
    retired: Option<Retired<Generation>>,
    /// Number of entries that were taken out before it last looked for stacks without a key.
    gone_before_stacks: u64,
    /// Set for the grace period before it keeps the stacks of all keys.
    keeps_stacks: bool,
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
        let stacks = self.stacks.as_ref().map(|stacks| stacks.tending(&policy));
        Ok(Some(Tending {
            map: map::Tending::new(&self.map, policy)?,
            stacks: stacks.transpose()?,
            retired: None,
            gone_before_stacks: 0,
            keeps_stacks: false,
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

    /// A step of its growth, or of the removal of its entries: see [`map::Map::beat`]. The map of
    /// stacks takes a step, too. If one of them waits for a grace period, both do.
    pub fn beat(&self, tending: &mut Tending, now_ns: u64, between: impl Fn()) -> Beat {
        drop(tending.retired.take());
        let Some(stacks) = &self.stacks else {
            return self.beat_entries(tending, now_ns, &between);
        };
        if tending.keeps_stacks {
            self.keep_stacks(stacks, &between);
            tending.keeps_stacks = false;
            tending
                .stacks
                .iter_mut()
                .for_each(|stacks| stacks.want_sweep());
        }
        let beat = self.beat_entries(tending, now_ns, &between);
        let gone = self.all_gone();
        let Some(of_stacks) = &mut tending.stacks else {
            return beat;
        };
        // Stacks that are going have an unset variable, and the next step decides about them by it.
        let beat_of_stacks = match gone != tending.gone_before_stacks && !of_stacks.is_judging() {
            true => {
                tending.gone_before_stacks = gone;
                stacks.unset(&between);
                tending.keeps_stacks = true;
                Beat::GracePeriod(None)
            }
            false => stacks.beat(of_stacks, now_ns, &between),
        };
        match (beat, beat_of_stacks) {
            (Beat::GracePeriod(one), Beat::GracePeriod(other)) => {
                tending.retired = other;
                Beat::GracePeriod(one)
            }
            (Beat::GracePeriod(retired), _) | (_, Beat::GracePeriod(retired)) => {
                Beat::GracePeriod(retired)
            }
            (Beat::At(one), Beat::At(other)) => Beat::At(one.min(other)),
            _ => Beat::Again,
        }
    }

    /// Number of entries that were taken out so far.
    fn all_gone(&self) -> u64 {
        let gone = self.gone();
        gone.expired.wrapping_add(gone.recycled)
    }

    /// A step of its own map. After entries were taken out, it lets go of the control groups that
    /// no other entry has.
    fn beat_entries(&self, tending: &mut Tending, now_ns: u64, between: &impl Fn()) -> Beat {
        let program = &self.code.program;
        let groups = self.groups().filter(|_| program.has_groups_in_keys_only());
        if let Some(groups) = groups.filter(|_| tending.lets_go) {
            self.keep_groups(groups, between);
            groups.let_go();
            tending.lets_go = false;
        }
        let beat = self.map.beat(&mut tending.map, now_ns, between);
        match (groups, &beat) {
            (Some(groups), Beat::At(_)) => {
                let gone = self.all_gone();
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

    /// Keeps the groups that are in keys.
    fn keep_groups(&self, groups: &Groups, between: &impl Fn()) {
        let parts = self.key_parts().iter();
        let parts = parts.filter(|part| part.content.group().is_some());
        self.each_word(parts, between, |id| groups.keep(id));
    }

    /// Keeps the stacks that are in keys.
    fn keep_stacks(&self, stacks: &Stacks, between: &impl Fn()) {
        let parts = self.key_parts().iter().filter(|part| part.is_stack());
        stacks.keep(|keep| self.each_word(parts, between, keep));
    }

    /// The parts of the keys of its map.
    fn key_parts(&self) -> &[KeyPart] {
        let program = &self.code.program;
        match self.stacks {
            Some(_) => &program.interned,
            None => &program.parts,
        }
    }

    /// Calls `f` with the first words of these parts of all keys.
    fn each_word<'a>(
        &self,
        parts: impl Iterator<Item = &'a KeyPart> + Clone,
        between: &impl Fn(),
        mut f: impl FnMut(u64),
    ) {
        const BATCH: usize = 1024;
        for (nth, elt) in self.map.contents().elts().enumerate() {
            if nth % BATCH == 0 {
                between();
            }
            for part in parts.clone() {
                let word = elt.key_words().nth(part.at / size_of::<u64>());
                f(word.unwrap_or(0));
            }
        }
    }
}
