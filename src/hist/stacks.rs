// SPDX-License-Identifier: GPL-2.0

//! The stacks in the keys of a histogram.
//!
//! A stack that is one of several keys is *interned*: its words are the key of an element in a map
//! of stacks, and the key in the histogram's own map has the number of that element instead, in one
//! word. So keys are short, equal stacks are stored once, and different ones have different
//! numbers. Readers find the words again by the number.
//!
//! # Long stacks
//!
//! An element has the words of one stack of the kernel. A stack of a program may have four times as
//! many. It is stored in pieces, the outermost functions first, and each other piece ends with a
//! link: the number of the piece behind it. The stack has the number of its innermost piece. So
//! a short stack takes no more memory beside long ones, and stacks that begin with the same
//! functions share pieces.
//!
//! # A hit without a stack would have been a drop
//!
//! The map of stacks has as many places as the entries of the histogram have stacks. When all are
//! taken, hits with at least as many different keys as the histogram has places have come: each
//! brought at most as many new stacks as a key has. So a hit with yet another stack has a key that
//! would lack a place, too.
//!
//! For long stacks that is true only while the histogram grows: it can have as many places as keys
//! can have pieces. A histogram of a fixed size has two places for each, since pieces are shared,
//! and a hit whose stack lacks one is a drop.
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

use core::iter;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    limits::{
        STACK_SIZE,
        USER_STACK_MAX, //
    },
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
    /// It has long stacks.
    is_long: bool,
}

/// The variable of a stack that may be in a key: see the module's documentation.
const USED: usize = 0;

/// Number of stacks between two calls of `between`.
const BATCH: usize = 1024;

/// Words of an element.
const PIECE: usize = STACK_SIZE as usize / size_of::<u64>();

/// Most pieces of a stack.
const PIECES_MAX: usize = pieces(USER_STACK_MAX);

/// Number of pieces of a stack of so many words.
const fn pieces(words: usize) -> usize {
    match words > PIECE && PIECE > 1 {
        true => 1 + (words - PIECE).div_ceil(PIECE - 1),
        false => 1,
    }
}

/// Four bits of a link: no word of a program's stack has these, see
/// [`Word`](crate::user_stack::Word).
const LINK: u64 = 6;
const LINK_BITS: u32 = 4;

/// The link to the piece with this number.
fn link(number: u64) -> u64 {
    number << LINK_BITS | LINK
}

/// The number of the piece that a word is a link to.
fn linked(word: u64) -> Option<u32> {
    let number: u32 = (word >> LINK_BITS).try_into().ok()?;
    (link(u64::from(number)) == word).then_some(number)
}

/// The numbers of the pieces of the stack with this number, the innermost first.
fn pieces_of(contents: &Generation, is_long: bool, number: u32) -> impl Iterator<Item = u32> + '_ {
    let next = move |&number: &u32| match is_long {
        true => {
            let words = contents.key_at(number)?;
            linked(words.take_while(|&word| word != 0).last()?)
        }
        false => None,
    };
    iter::successors(Some(number), next).take(PIECES_MAX)
}

impl Stacks {
    /// The shape of the map for stacks of at most these numbers of words in each key of a map of
    /// shape `of`. If that grows, hits ask for more places by `request`.
    pub(super) fn shape<'a>(
        stacks: impl Iterator<Item = usize> + Clone,
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
        let more = |pieces: usize| pieces.next_power_of_two().ilog2() + u32::from(of.room.forgets);
        let places = |most: usize| stacks.clone().map(|words| pieces(words).min(most)).sum();
        let [one, two, all] = [1, 2, PIECES_MAX].map(|most| more(places(most)));
        let (first, last) = match of.room.grows(of.bits) {
            true => (one, all),
            false => (two, two),
        };
        let most = shape.bits_max_of();
        shape.bits = (of.bits + first).min(Shape::BITS_MAX).min(most);
        shape.room.bits_max = (of.room.bits_max + last).clamp(shape.bits, most);
        shape
    }

    /// Creates an empty map of stacks, `is_long` if they may be long. May sleep. Fails with
    /// `ENOMEM`.
    pub(super) fn new(shape: Shape<'_>, is_long: bool) -> Result<Self> {
        Ok(Self {
            is_tended: shape.request.is_some(),
            forgets: shape.room.forgets,
            is_long,
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
        each(&mut |number| {
            for piece in pieces_of(&contents, self.is_long, number as u32) {
                contents.set_var_at(piece, USED, 1);
            }
        });
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

    /// The number of a program's stack of these words, which may be long: see [`Stacks::number`].
    /// Overwrites some of them.
    #[inline(never)]
    pub(in crate::hist) fn number_of_long(
        &self,
        preempt: PreemptOff<'_>,
        keys: &Generation,
        words: &mut [u64],
    ) -> Option<u64> {
        let mut begin = words.len().saturating_sub(PIECE);
        let mut number = self.number(preempt, keys, words.get(begin..)?)?;
        while begin > 0 {
            // In the place of a word that is stored already.
            let end = begin;
            *words.get_mut(end)? = link(number);
            begin = (end + 1).saturating_sub(PIECE);
            number = self.number(preempt, keys, words.get(begin..=end)?)?;
        }
        Some(number)
    }

    /// Hits without a stack so far. Task context, may sleep.
    pub(super) fn lost(&self) -> u64 {
        self.map.drops()
    }

    /// Number of stacks, or of their pieces. Task context.
    pub(super) fn len(&self) -> usize {
        self.map.contents().len()
    }
}

/// The stacks in the keys that a reader shows, each once.
pub(in crate::hist) struct StackList {
    stacks: Arc<Generation>,
    /// Some may be long.
    is_long: bool,
    /// For each element, the index of its stack in `ends`, plus 1; 0: it is not there. Then the
    /// same for long stacks, if some are: only these have links.
    indices: KVVec<u32>,
    /// The words of all stacks.
    bytes: KVVec<u8>,
    /// For each stack, where its words end.
    ends: KVVec<usize>,
}

impl StackList {
    /// An empty list. Fails with `ENOMEM`.
    pub(in crate::hist) fn new(stacks: &Stacks) -> Result<Self> {
        let is_long = stacks.is_long;
        let stacks = stacks.map.contents();
        Ok(Self {
            indices: KVVec::from_elem(
                0,
                stacks.elements() << u32::from(is_long),
                GFP_KERNEL_ACCOUNT,
            )?,
            stacks,
            is_long,
            bytes: KVVec::new(),
            ends: KVVec::new(),
        })
    }

    /// The place of a stack in `indices`. `None`: it is not an element of this generation.
    fn place(&self, number: u64, is_long: bool) -> Option<usize> {
        let (nth, elements) = (self.stacks.nth(number as u32), self.stacks.elements());
        let before = match self.is_long && is_long {
            true => elements,
            false => 0,
        };
        (nth < elements).then_some(before + nth)
    }

    /// Adds the stack with this number, which was in a key; `is_long` if it may be a long one.
    /// Fails with `ENOMEM`.
    pub(in crate::hist) fn add(&mut self, number: u64, is_long: bool) -> Result {
        let place = self.place(number, is_long);
        let Some(index @ 0) = place.and_then(|place| self.indices.get_mut(place)) else {
            return Ok(());
        };
        for piece in pieces_of(&self.stacks, is_long, number as u32) {
            let words = || self.stacks.key_at(piece).into_iter().flatten();
            // A recorded stack may have zeros between others.
            let last = words().enumerate().filter(|&(_, word)| word != 0).last();
            let words = words().take(last.map_or(0, |(nth, _)| nth + 1));
            for word in words.filter(|&word| !is_long || linked(word).is_none()) {
                self.bytes
                    .extend_from_slice(&word.to_ne_bytes(), GFP_KERNEL_ACCOUNT)?;
            }
        }
        self.ends.push(self.bytes.len(), GFP_KERNEL_ACCOUNT)?;
        *index = self.ends.len() as u32;
        Ok(())
    }

    /// The words of a stack that was added with these arguments, without zeros at the end; none of
    /// another one.
    pub(in crate::hist) fn get(&self, number: u64, is_long: bool) -> &[u8] {
        let place = self.place(number, is_long);
        let index = place.and_then(|place| self.indices.get(place));
        let end = |index: usize| self.ends.get(index.checked_sub(1)?).copied();
        let bytes = index.and_then(|&index| {
            let index = index as usize;
            let begin = end(index.wrapping_sub(1)).unwrap_or(0);
            self.bytes.get(begin..end(index)?)
        });
        bytes.unwrap_or_default()
    }
}
