// SPDX-License-Identifier: GPL-2.0

//! The stacks in the keys of a histogram.
//!
//! A stack that is one of several keys is *interned*: its words are the key of an element in a map
//! of stacks, and the key in the histogram's own map has the number of that element instead, in one
//! word. So keys are short, equal stacks are stored once, and different ones have different
//! numbers. Readers find the words again by the number.
//!
//! # A hit without a stack would have been a drop
//!
//! The map of stacks has as many places as the entries of the histogram have stacks. When all are
//! taken, hits with at least as many different keys as the histogram has places have come: each
//! brought at most as many new stacks as a key has. So a hit with yet another stack has a key that
//! would lack a place, too.
//!
//! If the histogram grows, the map of stacks does so in steps of the same size, as far as its
//! elements can be numbered. While the histogram is full, for lack of memory or until entries are
//! taken out, hits bring no new stacks, which would take places without a key.
//!
//! # Stacks go with the last entry
//!
//! If entries are taken out of the histogram, their stacks may be [unused](USED) now. The worker
//! unsets the variable of all stacks. A hit sets it again, before it inserts its key. A grace
//! period later, hits that found it set have inserted their keys, and the worker sets it for the
//! stacks of all keys. Then it takes out the others, as entries of which a variable was taken.
//! Until they are gone, they have places: a histogram that forgets has twice as many for stacks.
//!
//! A reader finds a key first, then its stack. Numbers are used again only after all readers have
//! ended that may have found a key with the old stack: see [`Stacks::hold`].

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    limits::STACK_SIZE,
    map::{
        self,
        Column,
        Cpus,
        Generation,
        Held,
        Map,
        Policy,
        Request,
        Room,
        RoomCounts,
        Shape, //
    },
    sync::PreemptOff,
};

/// The stacks in the keys of a histogram.
pub(in crate::hist) struct Stacks {
    map: Map,
    /// It grows, or forgets.
    is_tended: bool,
    /// Stacks are taken out.
    forgets: bool,
}

/// The variable of a stack that may be in a key: see the module's documentation.
const USED: usize = 0;

/// Number of stacks between two calls of `between`.
const BATCH: usize = 1024;

/// The words of a stack, and zeros behind them.
type StackBytes = [u8; STACK_SIZE as usize];

impl Stacks {
    /// The shape of the map for `stacks` stacks in each key of a map of shape `of`. If that grows,
    /// hits ask for more places by `request`.
    pub(super) fn shape<'a>(
        stacks: usize,
        of: &Shape<'_>,
        request: Option<&'a Arc<Request>>,
    ) -> Shape<'a> {
        let mut shape = Shape {
            bits: 0,
            key_size: STACK_SIZE as usize,
            // Hits do not count here: these columns are as few as a map can have.
            columns: &[Column::Hits],
            vars: usize::from(of.room.forgets),
            wide: &[],
            side: 0,
            clock: None,
            cpus: Cpus { own: 1, ..of.cpus },
            // Different from the histogram's.
            seed: !of.seed,
            room: Room {
                others: of.room.forgets,
                forgets: of.room.forgets,
                sparse: of.room.sparse,
                numbered: true,
                ..Room::fixed(0)
            },
            request,
        };
        let more = stacks.next_power_of_two().ilog2() + u32::from(of.room.forgets);
        let most = shape.bits_max_of();
        shape.bits = (of.bits + more).min(Shape::BITS_MAX).min(most);
        shape.room.bits_max = (of.room.bits_max + more).clamp(shape.bits, most);
        shape
    }

    /// Creates an empty map of stacks. May sleep. Fails with `ENOMEM`.
    pub(super) fn new(shape: Shape<'_>) -> Result<Self> {
        Ok(Self {
            is_tended: shape.request.is_some(),
            forgets: shape.room.forgets,
            map: Map::new(shape)?,
        })
    }

    /// The worker's own data of it, by the policy of the histogram's map. Fails with `ENOMEM`.
    // Not inlined, as it needs much of the kernel's stack.
    #[inline(never)]
    pub(super) fn tending(&self, of: &Policy) -> Result<KBox<map::Tending>> {
        let policy = Policy {
            idle_ns: None,
            taken: u32::from(self.forgets) << USED,
            wide_vars: 0,
            recycle: false,
            ..of.clone()
        };
        let mut tending = map::Tending::new(&self.map, policy)?;
        tending.sweep_on_demand();
        Ok(KBox::new(tending, GFP_KERNEL)?)
    }

    /// The room in it; `None` if it neither grows nor forgets.
    pub(super) fn room(&self) -> Option<RoomCounts> {
        self.map.room()
    }

    /// A step of the worker: see [`Map::beat`]. Not between [`Stacks::unset`] and the last
    /// [`Stacks::keep`].
    pub(super) fn beat(
        &self,
        tending: &mut map::Tending,
        now_ns: u64,
        between: impl Fn(),
    ) -> map::Beat {
        self.map.beat(tending, now_ns, between)
    }

    /// Notes that no key has a stack. Hits set that right for stacks that they find from then on;
    /// the caller [keeps](Stacks::keep) the stacks of other keys.
    pub(super) fn unset(&self, between: &impl Fn()) {
        for (nth, stack) in self.map.contents().elts().enumerate() {
            if nth % BATCH == 0 {
                between();
            }
            stack.take_var(USED);
        }
    }

    /// Notes that keys have the stacks whose numbers `each` passes on. A grace period after
    /// [`Stacks::unset`].
    pub(super) fn keep(&self, each: impl FnOnce(&mut dyn FnMut(u64))) {
        let contents = self.map.contents();
        each(&mut |number| contents.set_var_at(number as u32, USED, 1));
    }

    /// Keeps the stacks of all keys that the caller finds from now on. Task context, may sleep.
    pub(in crate::hist) fn hold(&self) -> Held<'_> {
        self.map.hold()
    }

    /// The number of the stack with these entries, for a key in `keys`. `None`: it lacks a place,
    /// which is counted; or it is new, and `keys` lacks a place for a new key. Any context.
    #[inline(always)]
    pub(in crate::hist) fn number(
        &self,
        preempt: PreemptOff<'_>,
        keys: &Generation,
        entries: &[u64],
    ) -> Option<u64> {
        let words = match entries {
            [] => &[0],
            entries => entries,
        };
        let stacks = self.map.read(preempt);
        let stack = match stacks.lookup_words(words) {
            Some(stack) if !self.forgets || stack.var(USED).is_some() => stack,
            // Stacks without a key would take the places.
            None if self.is_tended && keys.is_full() => return None,
            _ => {
                let stack = stacks.insert_words(preempt, words)?;
                if self.forgets {
                    let _ = stack.set_var(USED, 1);
                }
                stack
            }
        };
        Some(stack.number().into())
    }

    /// Hits without a stack so far. Task context, may sleep.
    pub(super) fn lost(&self) -> u64 {
        self.map.drops()
    }

    /// Number of stacks. Task context.
    pub(super) fn len(&self) -> usize {
        self.map.contents().len()
    }
}

/// The stacks in the keys that a reader shows, each once.
pub(in crate::hist) struct StackList {
    stacks: Arc<Generation>,
    /// For each element, the index of its stack in `list`, plus 1; 0: it is not there.
    indices: KVVec<u32>,
    list: KVVec<StackBytes>,
}

impl StackList {
    /// An empty list. Fails with `ENOMEM`.
    pub(in crate::hist) fn new(stacks: &Stacks) -> Result<Self> {
        let stacks = stacks.map.contents();
        Ok(Self {
            indices: KVVec::from_elem(0, stacks.elements(), GFP_KERNEL_ACCOUNT)?,
            stacks,
            list: KVVec::new(),
        })
    }

    /// Adds the stack with this number, which was in a key. Fails with `ENOMEM`.
    pub(in crate::hist) fn add(&mut self, number: u64) -> Result {
        let number = number as u32;
        let index = self.indices.get_mut(self.stacks.nth(number));
        let (Some(index @ 0), Some(words)) = (index, self.stacks.key_at(number)) else {
            return Ok(());
        };
        let mut stack = [0; STACK_SIZE as usize];
        for (bytes, word) in stack.chunks_exact_mut(size_of::<u64>()).zip(words) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        self.list.push(stack, GFP_KERNEL_ACCOUNT)?;
        *index = self.list.len() as u32;
        Ok(())
    }

    /// The words of the stack with this number; all 0 for one that is not in the list.
    pub(in crate::hist) fn get(&self, number: u64) -> &StackBytes {
        const NONE: &StackBytes = &[0; STACK_SIZE as usize];
        let index = self.indices.get(self.stacks.nth(number as u32));
        let index = index.and_then(|&index| (index as usize).checked_sub(1));
        index.and_then(|index| self.list.get(index)).unwrap_or(NONE)
    }
}
