// SPDX-License-Identifier: GPL-2.0

//! A histogram for loom: its stacks and its worker are the module's, and the rest is as little as
//! these need. Its keys have the number of a stack, and a word.

#[expect(dead_code, reason = "readers of text are left out")]
#[path = "../../../../../src/hist/stacks.rs"]
mod stacks;
#[path = "../../../../../src/hist/tending.rs"]
mod tending;

use core::iter;

use kernel::{
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc, //
    },
};

use crate::{
    counts,
    event::Groups,
    map::{
        Column,
        Cpus,
        Elt,
        Held,
        Map,
        Room,
        RoomCounts,
        Shape, //
    },
    sync::PreemptOff,
};
use program::{
    key::KeyPart,
    Program, //
};
use stacks::{
    StackList,
    Stacks, //
};
pub use tending::Tending;

mod program {
    //! The code of a hit: the parts of its key.

    use key::KeyPart;

    pub(super) struct Program {
        pub(super) parts: [KeyPart; 2],
        pub(super) interned: [KeyPart; 2],
    }

    impl Program {
        /// One variable, which [`super::Histogram::set`] sets.
        pub(super) fn number_vars(&self) -> u32 {
            1
        }

        pub(super) fn wide_vars(&self) -> u32 {
            0
        }

        pub(super) fn has_groups_in_keys_only(&self) -> bool {
            false
        }
    }

    pub(super) mod key {
        //! The parts of a key.

        #[derive(Clone, Copy, PartialEq, Eq)]
        pub(in super::super) enum Content {
            Stack,
            Word,
        }

        impl Content {
            pub(in super::super) fn group(self) -> Option<()> {
                None
            }
        }

        #[derive(Clone, Copy)]
        pub(in super::super) struct KeyPart {
            pub(in super::super) content: Content,
            /// Its first byte in the key.
            pub(in super::super) at: usize,
        }

        impl KeyPart {
            pub(in super::super) fn is_stack(&self) -> bool {
                self.content == Content::Stack
            }
        }
    }
}

struct Code {
    program: Program,
}

struct Expire {
    idle_ns: Option<u64>,
    taken: bool,
}

struct Full {
    recycle: bool,
}

struct Spec {
    expire: Expire,
    full: Full,
}

impl Spec {
    fn is_tended(&self) -> bool {
        true
    }
}

/// A histogram with `expire(taken)`.
pub struct Histogram {
    map: Map,
    stacks: Option<Stacks>,
    spec: Spec,
    code: Code,
    active: Arc<Atomic<u32>>,
}

impl Histogram {
    /// A histogram of 2^`bits` entries for hits on `cpus` CPUs. Fails with `ENOMEM`.
    pub fn new(bits: u32, cpus: usize) -> Result<Self> {
        let requests = [counts::request(), counts::request()];
        let shape = Shape {
            bits,
            key_size: 2 * size_of::<u64>(),
            columns: &[Column::Hits],
            vars: 1,
            wide: &[],
            side: 0,
            clock: None,
            cpus: Cpus::uniform(cpus),
            seed: 1,
            room: Room {
                others: true,
                forgets: true,
                ..Room::fixed(bits)
            },
            request: Some(&requests[0]),
        };
        let stacks = Stacks::shape(iter::once(1), &shape, Some(&requests[1]));
        let parts = [
            KeyPart {
                content: program::key::Content::Stack,
                at: 0,
            },
            KeyPart {
                content: program::key::Content::Word,
                at: size_of::<u64>(),
            },
        ];
        Ok(Self {
            stacks: Some(Stacks::new(stacks, false)?),
            map: Map::new(shape)?,
            spec: Spec {
                expire: Expire {
                    idle_ns: None,
                    taken: true,
                },
                full: Full { recycle: false },
            },
            code: Code {
                program: Program {
                    parts,
                    interned: parts,
                },
            },
            active: Arc::new(Atomic::new(1), GFP_KERNEL)?,
        })
    }

    /// Counts a hit with this stack and word, as hits do whose key has a stack. `None`: it is a
    /// drop.
    pub fn hit<'a>(&'a self, preempt: PreemptOff<'a>, stack: u64, word: u64) -> Option<Elt<'a>> {
        let generation = self.map.read(preempt);
        let number = self.interned().number(preempt, generation, &[stack]);
        let mut key = [0; 16];
        let key = match number {
            Some(number) => {
                key[..8].copy_from_slice(&number.to_ne_bytes());
                key[8..].copy_from_slice(&word.to_ne_bytes());
                &key[..]
            }
            None => &[],
        };
        let elt = generation.insert(preempt, key)?;
        elt.count(preempt);
        Some(elt)
    }

    /// The map of its entries.
    pub fn map(&self) -> &Map {
        &self.map
    }

    fn interned(&self) -> &Stacks {
        self.stacks.as_ref().expect("stacks")
    }

    /// Number of stacks.
    pub fn stacks(&self) -> usize {
        self.interned().len()
    }

    /// The stack with this number; 0 if none has it. Task context.
    pub fn stack(&self, number: u64) -> u64 {
        let mut list = StackList::new(self.interned()).expect("memory");
        list.add(number, false).expect("memory");
        let first = list.get(number, false).first_chunk().expect("a word");
        u64::from_ne_bytes(*first)
    }

    /// Keeps the stacks of all keys that the caller finds from now on. Task context.
    pub fn hold(&self) -> Held<'_> {
        self.interned().hold()
    }

    fn active(&self) -> &Arc<Atomic<u32>> {
        &self.active
    }

    fn groups(&self) -> Option<&Groups> {
        None
    }

    /// The room in the map of its entries.
    pub fn gone(&self) -> RoomCounts {
        self.map.room().expect("it forgets")
    }
}
