// SPDX-License-Identifier: GPL-2.0

//! Mappings that earlier walks on a CPU have found: a cache.
//!
//! # Validity
//!
//! A mapping is kept with the [`Era`] of the walk that has found it, and is used only by walks of
//! the same era. When another era begins for the mappings of a program is the caller's business;
//! and for all of them at once, one does when somebody wants files to be held, since walks that
//! know a mapping do not hold its file. The file itself may change in an era, so its
//! [version](FileVersion) is compared each time.
//!
//! # Contexts
//!
//! A walk may be interrupted by another one in a context of a higher level, but not in its own. So
//! each level has entries of its own, and nobody sees one that is being written.

use kernel::{
    prelude::*,
    sync::atomic::Atomic, //
};

use super::{
    Key,
    Near, //
};
use crate::sync::{
    Load,
    PreemptOff,
    Store, //
};

/// A time in which no mapping of a program changes.
#[derive(Clone, Copy, Debug)]
pub struct Era {
    /// A number for its address space, which no other one has.
    pub(super) space: u64,
    /// Differs for two eras of an address space. Odd: it has ended already.
    pub(super) number: u64,
}

impl Era {
    fn has_ended(&self) -> bool {
        self.number & 1 != 0
    }
}

/// The version of a mapped file, by which a change is noticed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FileVersion {
    /// A number for its inode, not 0.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// The time of the last change of its data, in nanoseconds since 1970.
    pub changed_ns: u64,
}

/// A mapping that is known.
struct Entry {
    /// Of the era.
    space: Atomic<u64>,
    /// Likewise; odd if the entry is not used.
    number: Atomic<u64>,
    begin: Atomic<u64>,
    end: Atomic<u64>,
    /// As in [`Near`].
    word: Atomic<u64>,
    /// Likewise.
    key: Atomic<u64>,
    /// Of the file's version; 0 if it has none.
    inode: Atomic<u64>,
    size: Atomic<u64>,
    changed_ns: Atomic<u64>,
}

impl Entry {
    fn new() -> Self {
        let [space, begin, end, word, key, inode, size, changed_ns] =
            core::array::from_fn(|_| Atomic::new(0));
        Self {
            space,
            number: Atomic::new(1),
            begin,
            end,
            word,
            key,
            inode,
            size,
            changed_ns,
        }
    }
}

/// Number of levels of contexts: tasks, softirqs, interrupts, NMIs.
const CONTEXTS: usize = 4;

/// For each level its first entry, and their number less 1.
const ENTRIES: [(usize, usize); CONTEXTS] = [(0, 31), (48, 3), (32, 15), (52, 3)];

/// Number of entries of a CPU: less than 4 KiB.
const OF_CPU: usize = 56;

const _: () = assert!(OF_CPU * size_of::<Entry>() <= 4096);

/// The caches of all CPUs.
pub(super) struct Known {
    entries: KVVec<Entry>,
}

/// In which cache a walk looks: it is used in one context of one CPU, with preemption off.
#[derive(Clone, Copy)]
pub struct Here {
    /// The index of the first entry.
    first: usize,
    /// The number of entries, a power of two, less 1.
    mask: usize,
}

impl Here {
    /// On a CPU, in a context of this level: 0 a task, 1 a softirq, 2 an interrupt, 3 an NMI.
    #[inline(always)]
    pub fn new(preempt: PreemptOff<'_>, level: usize) -> Self {
        let [.., last] = ENTRIES;
        let &(first, mask) = ENTRIES.get(level).unwrap_or(&last);
        Self {
            first: preempt.cpu() * OF_CPU + first,
            mask,
        }
    }
}

impl Known {
    /// Without mappings, for so many CPUs. May sleep. Fails with `ENOMEM`.
    pub(super) fn new(cpus: usize) -> Result<Self> {
        let mut entries = KVVec::with_capacity(cpus * OF_CPU, GFP_KERNEL)?;
        for _ in 0..cpus * OF_CPU {
            entries.push(Entry::new(), GFP_KERNEL)?;
        }
        Ok(Self { entries })
    }

    /// The entry for an address. A mapping has one for each 64 KiB that walks come to.
    #[inline(always)]
    fn entry(&self, here: Here, era: &Era, address: u64) -> Option<&Entry> {
        let hash = address >> 16 ^ era.space >> 40;
        self.entries.get(here.first + (hash as usize & here.mask))
    }

    /// The mapping that an address is in, if it is known in this era and `is_same` for the version
    /// of its file.
    #[inline(always)]
    pub(super) fn find(
        &self,
        here: Here,
        era: &Era,
        address: u64,
        is_same: impl FnOnce(&FileVersion) -> bool,
    ) -> Option<Near> {
        let entry = self.entry(here, era, address)?;
        let (begin, end) = (entry.begin.relaxed(), entry.end.relaxed());
        if entry.number.relaxed() != era.number
            || entry.space.relaxed() != era.space
            || address < begin
            || address >= end
        {
            return None;
        }
        let inode = entry.inode.relaxed();
        if inode != 0 {
            let version = FileVersion {
                inode,
                size: entry.size.relaxed(),
                changed_ns: entry.changed_ns.relaxed(),
            };
            if !is_same(&version) {
                return None;
            }
        }
        Some(Near {
            begin,
            end,
            word: entry.word.relaxed(),
            key: Key::of(entry.key.relaxed()),
        })
    }

    /// Keeps the mapping that an address is in, for walks of this era, with the version of its
    /// file, if it has one.
    pub(super) fn keep(
        &self,
        here: Here,
        era: &Era,
        address: u64,
        near: &Near,
        version: Option<FileVersion>,
    ) {
        // Not a mapping without a number: each hit in it counts as lost.
        if era.has_ended() || near.is_unlisted() {
            return;
        }
        let Some(entry) = self.entry(here, era, address) else {
            return;
        };
        let version = version.unwrap_or(FileVersion {
            inode: 0,
            size: 0,
            changed_ns: 0,
        });
        entry.space.release(era.space);
        entry.number.release(era.number);
        entry.begin.release(near.begin);
        entry.end.release(near.end);
        entry.word.release(near.word);
        entry.key.release(near.key.to_u64());
        entry.inode.release(version.inode);
        entry.size.release(version.size);
        entry.changed_ns.release(version.changed_ns);
    }
}
