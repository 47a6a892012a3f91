// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of the functions of programs, which outlive the programs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use rhist_symbols::Name;
use rhist_symbols::Shown;

use crate::list::Object;
use crate::name_table::NameTable;

/// Most bytes of all names, unless [`Names::new()`] says otherwise.
const MOST_BYTES: usize = 128 << 20;

/// Objects that are remembered: 16 full tables of the module, which has another one with other
/// numbers after some time.
const MOST_OBJECTS: usize = 1 << 16;

/// Names of the functions of programs. Cheap to clone; filled by a feeder while it runs.
///
/// The module gives no number to another object while it is loaded, so a name stays right after
/// its object has left the list.
#[derive(Clone, Debug)]
pub struct Names(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Most bytes of all tables.
    most: usize,
    state: Mutex<State>,
    /// Notified when less is awaited.
    changed: Condvar,
}

#[derive(Default, Debug)]
struct State {
    objects: BTreeMap<u32, Known>,
    /// All tables, and perhaps some that no object has any more. Files of the same contents share
    /// one.
    tables: Vec<Arc<NameTable>>,
    /// Whether children run or wait.
    is_busy: bool,
    /// Until when a hit is likely to come in files that are not held.
    hits_until: Option<Instant>,
}

/// An object of the list, which may be gone.
#[derive(Clone, Default, Debug)]
struct Known {
    identity: String,
    /// Of code without a file.
    process: Option<u32>,
    /// Of the file, without its folders; empty if it is not known.
    base_name: Arc<[u8]>,
    table: Option<Arc<NameTable>>,
}

impl Default for Names {
    /// With at most [`MOST_BYTES`].
    fn default() -> Self {
        Self::new(MOST_BYTES)
    }
}

impl Names {
    /// No names yet, and never more than so many bytes of them.
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Shared {
            most,
            state: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Forgets all names: their numbers are other objects' now.
    pub fn clear(&self) {
        let mut state = self.lock();
        state.objects.clear();
        state.tables.clear();
    }

    /// Most bytes of all names.
    pub(crate) fn most(&self) -> usize {
        self.0.most
    }

    /// A word of a stack as text: `malloc+0x1d`; without a known function `libc.so.6+0x9a1d`, or in
    /// code without a file `[memory of 77]+0x12`, with the process; of an object that is not known
    /// `[object 12]+0x9a1d`. All is escaped, and safe to print, also in a folded stack.
    ///
    /// `offset` is in bytes from the begin of the file. A return address (`is_exact` false) belongs
    /// to the function of the byte before it.
    pub fn frame(&self, object: u32, offset: u64, is_exact: bool) -> String {
        self.shown(object, offset, is_exact, |name, distance| {
            format!("{}+{distance:#x}", name.shown())
        })
    }

    /// As [`Names::frame()`], but a known function without the offset in it: `malloc`.
    pub fn function(&self, object: u32, offset: u64, is_exact: bool) -> String {
        self.shown(object, offset, is_exact, |name, _| name.shown().to_string())
    }

    /// A word as text; `named` makes it of the function, and of the distance from its begin.
    fn shown(&self, object: u32, offset: u64, is_exact: bool, named: impl FnOnce(Name<'_>, u64) -> String) -> String {
        let known = self.lock().objects.get(&object).cloned().unwrap_or_default();
        let before = u64::from(!is_exact);
        let place = offset.checked_sub(before).zip(known.table.as_ref());
        if let Some((name, distance)) = place.and_then(|(place, table)| table.find(place)) {
            return named(name, distance + before);
        }
        match known.process {
            Some(process) => format!("[memory of {process}]+{offset:#x}"),
            None if known.base_name.is_empty() => format!("[object {object}]+{offset:#x}"),
            None => format!("{}+{offset:#x}", Shown::of_text(&known.base_name)),
        }
    }

    /// Whether names may still come: rules or names are being made, or wait for that. For two
    /// seconds after it was tried, a file counts that the module does not hold: the next hit in it
    /// makes it readable.
    pub fn are_awaited(&self) -> bool {
        self.lock().are_awaited()
    }

    /// Waits until less is awaited, at most so long.
    pub(crate) fn wait(&self, most: Duration) {
        // The caller looks again, for whatever reason it wakes up.
        drop(self.0.changed.wait_timeout(self.lock(), most));
    }

    /// Says whether children run or wait, and until when hits are likely that make more of them.
    pub(crate) fn await_more(&self, is_busy: bool, hits_until: Option<Instant>) {
        let mut state = self.lock();
        state.is_busy = is_busy;
        state.hits_until = hits_until;
        if !state.are_awaited() {
            self.0.changed.notify_all();
        }
    }

    /// Takes over a list. Objects that are not in it stay known, but not if their number is now
    /// another object's.
    pub(crate) fn list(&self, objects: &[Object]) {
        let mut state = self.lock();
        for object in objects {
            let known = state.objects.entry(object.number).or_default();
            if known.identity != object.identity {
                *known = Known {
                    identity: object.identity.clone(),
                    process: object.process,
                    ..Known::default()
                };
            }
        }
        while state.objects.len() > MOST_OBJECTS {
            // The oldest one, but for the vDSO.
            let oldest = state.objects.range(1..).next().map(|(number, _)| *number);
            oldest.and_then(|number| state.objects.remove(&number));
        }
    }

    /// Whether an object has been in a list.
    pub(crate) fn has(&self, object: &Object) -> bool {
        self.lock().known(object).is_some()
    }

    /// Gives the file of an object its name.
    pub(crate) fn set_base_name(&self, object: &Object, name: &[u8]) {
        if let Some(known) = self.lock().known(object) {
            known.base_name = name.into();
        }
    }

    /// Gives an object its names, in place of earlier ones. Returns false if all tables would
    /// take more bytes than they may.
    pub(crate) fn set_table(&self, object: &Object, table: NameTable) -> bool {
        let mut state = self.lock();
        state.tables.retain(|table| Arc::strong_count(table) > 1);
        let same = state.tables.iter().find(|other| ***other == table).cloned();
        let table = match same {
            Some(same) => same,
            None => {
                let bytes: usize = state.tables.iter().map(|table| table.size()).sum();
                if bytes + table.size() > self.0.most {
                    return false;
                }
                let table = Arc::new(table);
                state.tables.push(Arc::clone(&table));
                table
            }
        };
        if let Some(known) = state.known(object) {
            known.table = Some(table);
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn are_awaited(&self) -> bool {
        self.is_busy || self.hits_until.is_some_and(|until| Instant::now() < until)
    }

    fn known(&mut self, object: &Object) -> Option<&mut Known> {
        let known = self.objects.get_mut(&object.number);
        known.filter(|known| known.identity == object.identity)
    }
}

#[cfg(test)]
mod tests;
