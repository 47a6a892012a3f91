// SPDX-License-Identifier: GPL-2.0

//! Queries about all triggers: references between them, names, and helper triggers.
//!
//! A reference (`VarRef`) holds the histogram that has the variable, so that a hit reads it without
//! a lock. References are not counted: before a trigger is removed, all others are searched for
//! one, and the command fails with `EBUSY`.
//!
//! A trigger refers to older ones only, except that a name lets an older histogram have a newer
//! trigger. A trigger that would refer to its own histogram by way of others is refused: none of
//! these could be removed.
//!
//! An action that passes a field of another event to a synthetic event needs a variable there. If
//! it does not exist, the action adds a helper trigger to that event (`Scope::add_helper()`): an
//! ordinary trigger, but it is removed when nothing refers to it any more. That is checked after a
//! trigger was removed, and after a command that failed.
//!
//! A trigger holds the targets of its actions (`Targets`): synthetic events, which cannot be
//! deleted meanwhile, or the conditional snapshot, of which each instance has only one. Readers of
//! a histogram share its spec, but not these: after a trigger was removed, its targets can be
//! deleted or used again at once.

use crate::{
    hist::{
        show,
        AttachedHist,
        Histogram,
        Spec, //
    },
    hook::trigger::{
        HistData,
        HistTrigger,
        Site, //
    },
    text::{
        copy,
        Text, //
    },
};
use core::ops::ControlFlow;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A trigger and its event.
pub struct Listed<'a, S: Site> {
    /// A number that identifies the event.
    pub event: usize,
    /// System and name of the event.
    pub names: [&'a [u8]; 2],
    /// The trigger, which hits may be using.
    pub trigger: &'a Arc<HistTrigger<S>>,
}

/// The triggers of all events in all tracing directories. The set does not change while the value
/// exists.
pub trait Triggers {
    /// The site of a trigger.
    type Site: Site;

    /// Calls `f` for each trigger, event by event, in the order in which the triggers of an event
    /// were added, until `f` breaks.
    fn each(&self, f: &mut dyn FnMut(Listed<'_, Self::Site>) -> ControlFlow<()>);

    /// Returns the result of `f` for the first trigger for which it is `Some`.
    fn find_map<R>(&self, mut f: impl FnMut(Listed<'_, Self::Site>) -> Option<R>) -> Option<R> {
        let mut found = None;
        self.each(&mut |listed| {
            found = f(listed);
            match found {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        });
        found
    }

    /// Calls `f` for each trigger until it fails.
    fn try_each(&self, mut f: impl FnMut(Listed<'_, Self::Site>) -> Result) -> Result {
        let failed = self.find_map(|listed| f(listed).err());
        failed.map_or(Ok(()), Err)
    }

    /// The shared data of histograms with this name, of any event.
    fn named(&self, name: &[u8]) -> Option<Arc<HistData>> {
        self.find_map(|Listed { trigger, .. }| {
            let is = trigger.data.name() == Some(name);
            is.then(|| trigger.data.clone())
        })
    }

    /// Returns the result of `f` for a trigger of another histogram that refers to a variable of
    /// `trigger`'s histogram.
    fn referrer<R>(
        &self,
        trigger: &HistTrigger<Self::Site>,
        f: impl Fn(Listed<'_, Self::Site>) -> R,
    ) -> Option<R> {
        let histogram = trigger.data.histogram();
        self.find_map(|listed| {
            let other = listed.trigger;
            let refers =
                !Arc::ptr_eq(&other.data, &trigger.data) && other.spec().refers_to(&histogram);
            refers.then(|| f(listed))
        })
    }

    /// Returns whether a trigger of another histogram refers to a variable of `trigger`'s
    /// histogram.
    fn is_referenced(&self, trigger: &HistTrigger<Self::Site>) -> bool {
        self.referrer(trigger, |_| ()).is_some()
    }

    /// The message for a trigger of another histogram that refers to a variable of `trigger`'s
    /// histogram; `None` if none does. Fails with `ENOMEM`.
    fn referrer_text(&self, trigger: &HistTrigger<Self::Site>) -> Result<Option<Text>> {
        let text = self.referrer(trigger, |referrer| {
            let [system, event] = referrer.names;
            let mut text = Text::uncharged();
            text.bytes(b"Not removed, a variable is used by the trigger of ")?;
            if !referrer.trigger.site.is_beside(&trigger.site) {
                referrer.trigger.site.show_dir(&mut text)?;
            }
            text.bytes(system)?;
            text.bytes(b":")?;
            text.bytes(event)?;
            text.bytes(b": ")?;
            show_command(&mut text, referrer.trigger)?;
            Ok(text)
        });
        text.transpose()
    }

    /// Returns whether a trigger with `spec` that shares `data` would refer to itself by way of
    /// others, so that none of these could be removed. Only a shared name makes that possible: all
    /// other triggers are newer than the triggers they refer to. Fails with `ENOMEM`.
    fn closes_circle(&self, spec: &Spec, data: &Arc<HistData>) -> Result<bool> {
        let mut reached = KVec::new();
        self.add_homes(spec, &mut reached)?;
        // Triggers of one name may refer to each other.
        reached.retain(|home| !Arc::ptr_eq(home, data));
        let mut done = 0;
        while let Some(home) = reached.get(done).cloned() {
            self.try_each(
                |Listed { trigger, .. }| match Arc::ptr_eq(&trigger.data, &home) {
                    true => self.add_homes(trigger.spec(), &mut reached),
                    false => Ok(()),
                },
            )?;
            done += 1;
        }
        Ok(reached.iter().any(|home| Arc::ptr_eq(home, data)))
    }

    /// Adds the histograms that `spec` refers to, each once. Fails with `ENOMEM`.
    fn add_homes(&self, spec: &Spec, homes: &mut KVec<Arc<HistData>>) -> Result {
        self.try_each(|Listed { trigger, .. }| {
            let data = &trigger.data;
            let known = homes.iter().any(|home| Arc::ptr_eq(home, data));
            if !known && spec.refers_to(&data.histogram()) {
                homes.push(data.clone(), GFP_KERNEL)?;
            }
            Ok(())
        })
    }

    /// Returns whether a trigger was created for actions that are gone.
    fn is_unused_helper(&self, trigger: &HistTrigger<Self::Site>) -> bool {
        trigger.helper && !self.is_referenced(trigger)
    }

    /// Returns whether a trigger in the tracing directory selected by `is_here` has variables, or
    /// refers to some.
    fn has_vars(&self, is_here: impl Fn(&Self::Site) -> bool) -> bool {
        let with_vars = |Listed { trigger, .. }: Listed<'_, Self::Site>| {
            (is_here(&trigger.site) && trigger.spec().has_vars()).then_some(())
        };
        self.find_map(with_vars).is_some()
    }

    /// The histograms of the triggers selected by `is_here`, each once, with the number of its
    /// event. Fails with `ENOMEM`.
    fn histograms(
        &self,
        is_here: impl Fn(&Self::Site) -> bool,
    ) -> Result<KVec<(usize, Arc<Histogram>)>> {
        let mut all: KVec<(usize, Arc<Histogram>)> = KVec::new();
        self.try_each(|Listed { event, trigger, .. }| {
            let histogram = trigger.data.histogram();
            let known = all.iter().any(|(_, known)| Arc::ptr_eq(known, &histogram));
            if is_here(&trigger.site) && !known {
                all.push((event, histogram), GFP_KERNEL)?;
            }
            Ok(())
        })?;
        Ok(all)
    }
}

/// The histograms of `triggers`, with the texts of their filters. Fails with `ENOMEM`.
pub(super) fn attached<'a, S: Site + 'a>(
    triggers: impl Iterator<Item = &'a Arc<HistTrigger<S>>>,
) -> Result<KVec<AttachedHist>> {
    let mut attached = KVec::new();
    for trigger in triggers {
        let histogram = trigger.data.histogram();
        let filter = trigger.filter().map(copy).transpose()?;
        attached.push(AttachedHist { histogram, filter }, GFP_KERNEL)?;
    }
    Ok(attached)
}

/// Returns whether `trigger` is shown as this command. Fails with `ENOMEM`.
pub(super) fn is_shown_as<S: Site>(trigger: &HistTrigger<S>, command: &[u8]) -> Result<bool> {
    let mut shown = Text::uncharged();
    show_command(&mut shown, trigger)?;
    Ok(shown.as_bytes() == command)
}

/// Appends the command that creates a trigger.
fn show_command<S: Site>(out: &mut Text, trigger: &HistTrigger<S>) -> Result {
    let histogram = trigger.data.histogram();
    show::command(out, histogram.spec(), trigger.data.name(), trigger.filter())
}
