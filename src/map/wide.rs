// SPDX-License-Identifier: GPL-2.0

//! Wide cells of elements: values of several words, which are read whole.
//!
//! Hits on any CPU replace the value, and hits of other events read it. C copies strings and stacks
//! word by word into the element, and [`onmax()`'s](WideCell::replace_if) saved values one after
//! the other. So a reader can see the beginning of one value and the end of another, and values
//! saved by one hit beside the maximum of another. Here a value is written to a buffer of its own,
//! and one access to one word makes it the cell's value.
//!
//! # Representation
//!
//! A cell is a run of words, all zero at first: the *state*, and [`BUFFERS`] buffers. A buffer is a
//! *version* and the words of a value. Each write to a buffer gives it a new number, one more than
//! the last:
//!
//! * version: that number, and [`BUSY`] until the writer is done with the buffer;
//! * state: the number and the buffer of the cell's value, which is the *current* buffer; 0: not
//!   set.
//!
//! A writer claims a buffer that is neither current nor busy: one compare-and-swap of the version
//! gives it its new number and makes it busy. It stores the words, then the state, and only then is
//! the buffer not busy any more. Numbers have 62 bits: at a thousand million writes a second they
//! last 146 years. So a word of a state or version that was replaced does not come back, other than
//! the 0 of a state.
//!
//! **The current buffer is never written.** To claim one, a writer first loads the version, then
//! the state, then swaps the version. If the swap succeeds, the buffer was not busy in all that
//! time; and a buffer only becomes current while it is busy. So it was not current when the state
//! was loaded, and does not become it before this writer's own store.
//!
//! # Bound
//!
//! No operation waits for another context. [`WideCell::write`] looks at all buffers at most
//! [`TRIES`] times, and tries one compare-and-swap each time on each. It fails if it finds none to
//! claim: two other writers, interrupted by this one or on other CPUs, have the buffers that are
//! not current; or others write again and again while it looks.
//!
//! The other operations load the state, use the buffer, and then verify that it was not claimed
//! meanwhile, or that the state is the same. If not, they start over, at most [`TRIES`] times in
//! all. Only a write that was completed in between makes a try fail, or another take. A writer that
//! is interrupted makes none fail: its buffer is not current before it is done with the words. So
//! readers in an NMI see the last value, whatever they have interrupted.
//!
//! # Memory ordering
//!
//! *Readers see all words of a write.* The store to the state is a release, the load an acquire.
//!
//! *Readers see no later words.* All stores of words are releases and all loads of them acquires,
//! as are those of the version. A reader that loads a word of a later write therefore sees the
//! version that this writer had swapped in before, or a still later one, when it loads the version
//! after the words: its number differs from the state's. [`WideCell::take`] and
//! [`WideCell::replace_if`] swap the state instead. If that succeeds, no other state has come after
//! the one that was loaded. Had the reader seen words of a later write, that writer would have
//! loaded a state older than the swap; but to claim the buffer, it must have loaded the state of
//! the swap, or a later one.
//!
//! *Writers see which buffer is current.* The last store of a writer, which makes the version not
//! busy, is a release. A writer that claims the buffer afterwards has loaded this version
//! (acquire), so it sees the state that this one has stored, or a later one. The swap is a release:
//! a reader that finds its version on a failed try, and starts over, sees a later state than
//! before.
//!
//! *Each value is taken at most once*, since the swap of a take puts 0 in the place of a state that
//! does not come back. *A replacement replaces the value that `decide` saw*, since its swap finds
//! the state that the decision belongs to. (If that is 0, the cell may have been set and taken in
//! between; it is unset again, as `decide` saw it.)

use core::{
    iter,
    ops::Range, //
};

use kernel::{
    alloc::{
        Flags,
        NumaNode, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed,
        Release, //
    },
};

use super::{
    chunks::{
        zeroed,
        Chunks,
        Numbering, //
    },
    shared::Shared, //
};
use crate::{
    event::words_of,
    sync::{
        Load,
        Store, //
    },
    text::until_nul, //
};

/// Buffers of a cell: the current one, and two for writers at work.
const BUFFERS: usize = 3;

/// How often an operation is tried.
const TRIES: usize = 4;

/// The unit of write numbers, in states and versions.
const NUMBER: u64 = 4;

/// Bit of a version: its writer is not done. A state has the index of the current buffer in these
/// bits.
const BUSY: u64 = 1;

/// A value of several words, or none. Shared by all CPUs.
///
/// All operations can be called in any context, NMI included, and on all CPUs at once.
#[derive(Clone, Copy)]
pub struct WideCell<'a> {
    state: &'a Atomic<u64>,
    buffers: &'a [Atomic<u64>],
    /// Words of a buffer: the version and the value.
    width: usize,
}

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Read {
    /// The cell has no value.
    Unset,
    /// The value was copied.
    Done,
    /// The value was replaced in every try: the copy is not consistent. The caller counts a miss.
    Busy,
}

impl Read {
    /// Maximum number of reads of [`Read::retry`].
    pub const RETRIES: usize = 1000;

    /// Reads until no write interferes; for tasks, which may retry longer than hits. Returns
    /// whether the cell is set; `None`: all reads were disturbed.
    pub fn retry(mut read: impl FnMut() -> Self) -> Option<bool> {
        (0..Self::RETRIES).find_map(|_| match read() {
            Self::Done => Some(true),
            Self::Unset => Some(false),
            Self::Busy => None,
        })
    }
}

/// Result of a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Replace {
    /// The value stays, as `decide` said.
    Kept,
    /// It is replaced.
    Done,
    /// The value should be replaced and is not, since other contexts are writing to the cell. The
    /// caller counts a miss.
    Lost,
}

impl<'a> WideCell<'a> {
    /// Returns the number of words of a cell for values of `words` words. `None`: it overflows.
    pub fn size(words: usize) -> Option<usize> {
        words.checked_add(1)?.checked_mul(BUFFERS)?.checked_add(1)
    }

    /// The cell in these words, which are all zero at first and used by nothing else. `None`:
    /// `words` is empty.
    #[inline]
    pub fn new(words: &'a [Atomic<u64>]) -> Option<Self> {
        let (state, buffers) = words.split_first()?;
        Some(Self {
            state,
            buffers,
            width: buffers.len() / BUFFERS,
        })
    }

    /// Replaces the value. Missing words are zero, surplus ones are left out. Returns false if it
    /// is not replaced, since other contexts are writing to the cell; the caller counts a miss.
    #[must_use]
    #[inline]
    pub fn write(&self, words: impl IntoIterator<Item = u64>) -> bool {
        let Some(claim) = self.claim() else {
            return false;
        };
        claim.fill(words);
        self.state.release(claim.state);
        true
    }

    /// The state: another number after each write; 0 if the cell is not set.
    pub fn state(&self) -> u64 {
        self.state.load(Relaxed)
    }

    /// Copies the first words of the value to `to`, as many as both have.
    #[inline]
    pub fn read(&self, to: &mut [u64]) -> Read {
        self.copy(to, |state| self.has(state))
    }

    /// Copies the value as [`WideCell::read`] does, and unsets the cell if it returns it. No two
    /// takes return the same value.
    #[inline]
    pub fn take(&self, to: &mut [u64]) -> Read {
        self.copy(to, |state| self.state.cmpxchg(state, 0, Relaxed).is_ok())
    }

    /// Replaces the value by `words`, as [`WideCell::write`] does, if `decide` returns true for the
    /// first word of the current value; `None`: the cell is not set. `decide` may be called several
    /// times, also with words that were never a value; the result for these is ignored.
    ///
    /// For `onmax()` and `onchange()`: the tracked value is the first word, and saved fields follow
    /// it. Most hits are not a new maximum: these store nothing.
    #[inline]
    pub fn replace_if(
        &self,
        decide: impl Fn(Option<u64>) -> bool,
        words: impl IntoIterator<Item = u64>,
    ) -> Replace {
        let mut words = words.into_iter();
        let mut claimed = None;
        for _ in 0..TRIES {
            let state = self.state.acquire();
            let first = self.current(state).and_then(|buffer| buffer.words.first());
            if !decide(first.map(|word| word.acquire())) {
                if self.has(state) {
                    return Replace::Kept;
                }
                continue;
            }
            let claim = match &claimed {
                Some(claim) => claim,
                None => {
                    let Some(claim) = self.claim() else {
                        return Replace::Lost;
                    };
                    claim.fill(words.by_ref());
                    &*claimed.insert(claim)
                }
            };
            if self.state.cmpxchg(state, claim.state, Release).is_ok() {
                return Replace::Done;
            }
        }
        Replace::Lost
    }

    /// Returns whether [`WideCell::replace_if`] would keep the value. False, too, if other contexts
    /// are writing to the cell. Cheaper than computing words that most hits do not store.
    #[inline(always)]
    pub fn keeps(&self, decide: impl Fn(Option<u64>) -> bool) -> bool {
        let state = self.state.acquire();
        let first = self.current(state).and_then(|buffer| buffer.words.first());
        !decide(first.map(|word| word.acquire())) && self.has(state)
    }

    /// Copies the value. `valid` returns whether the copy made in a state is consistent; otherwise
    /// it is made again.
    #[inline(always)]
    fn copy(&self, to: &mut [u64], valid: impl Fn(u64) -> bool) -> Read {
        for _ in 0..TRIES {
            let state = self.state.acquire();
            let Some(buffer) = self.current(state) else {
                return Read::Unset;
            };
            for (to, word) in to.iter_mut().zip(buffer.words) {
                *to = word.acquire();
            }
            if valid(state) {
                return Read::Done;
            }
        }
        Read::Busy
    }

    /// Returns whether words loaded from the current buffer of `state` belong to `state`. True for
    /// an unset cell.
    #[inline]
    fn has(&self, state: u64) -> bool {
        self.current(state)
            .is_none_or(|buffer| buffer.version.acquire() / NUMBER == state / NUMBER)
    }

    /// The current buffer in this state. `None`: not set.
    #[inline]
    fn current(&self, state: u64) -> Option<Buffer<'a>> {
        match state {
            0 => None,
            _ => self.buffer(state % NUMBER),
        }
    }

    #[inline]
    fn buffer(&self, index: u64) -> Option<Buffer<'a>> {
        let start = self.width.wrapping_mul(index as usize);
        let (version, words) = self
            .buffers
            .get(start..)?
            .get(..self.width)?
            .split_first()?;
        Some(Buffer { version, words })
    }

    /// Claims a buffer for a write. `None`: other writers have all of them.
    #[inline]
    fn claim(&self) -> Option<Claim<'a>> {
        (0..TRIES).find_map(|_| self.claim_once())
    }

    fn claim_once(&self) -> Option<Claim<'a>> {
        (0..BUFFERS as u64).find_map(|index| {
            let buffer = self.buffer(index)?;
            // In this order: see the module's documentation.
            let version = buffer.version.acquire();
            let state = self.state.acquire();
            if version & BUSY != 0 || state != 0 && state % NUMBER == index {
                return None;
            }
            let done = version.wrapping_add(NUMBER);
            buffer.version.cmpxchg(version, done | BUSY, Release).ok()?;
            Some(Claim {
                buffer,
                done,
                state: done | index,
            })
        })
    }
}

/// A buffer and its version.
#[derive(Clone, Copy)]
struct Buffer<'a> {
    version: &'a Atomic<u64>,
    words: &'a [Atomic<u64>],
}

/// A buffer that this context may write to, until it is dropped.
struct Claim<'a> {
    buffer: Buffer<'a>,
    /// Its version when it is not busy any more.
    done: u64,
    /// The state that makes it the current one. Not stored before the words, and not after the
    /// drop.
    state: u64,
}

impl Claim<'_> {
    #[inline]
    fn fill(&self, words: impl IntoIterator<Item = u64>) {
        let words = Iterator::chain(words.into_iter(), iter::repeat(0));
        for (to, word) in self.buffer.words.iter().zip(words) {
            to.release(word);
        }
    }
}

impl Drop for Claim<'_> {
    #[inline]
    fn drop(&mut self) {
        self.buffer.version.release(self.done);
    }
}

/// The wide cells of all elements.
#[derive(Clone)]
pub(super) struct WideCells {
    words: Chunks<Atomic<u64>>,
    /// For each cell, its range in the words of an element, and the words of one of its buffers.
    cells: Shared<(Range<usize>, usize)>,
}

impl WideCells {
    /// Allocates unset cells for each of `elements` elements; `values` has the words of each cell's
    /// value. Fails with `ENOMEM`.
    pub(super) fn new(elements: usize, numbering: Numbering, values: &[usize]) -> Result<Self> {
        let mut cells = KVVec::with_capacity(values.len(), GFP_KERNEL)?;
        for (n, words) in values.iter().enumerate() {
            let end = |n| values.get(..n).and_then(Self::width).ok_or(ENOMEM);
            cells.push((end(n)?..end(n + 1)?, words + 1), GFP_KERNEL)?;
        }
        let width = Self::width(values).ok_or(ENOMEM)?;
        let zeros = |n| zeroed(n, NumaNode::NO_NODE, GFP_KERNEL);
        Ok(Self {
            words: Chunks::new(elements, numbering, width, zeros)?,
            cells: Shared::new(cells)?,
        })
    }

    /// The cells of `elements` elements, the present ones among them; the others are unset. Fails
    /// with `ENOMEM`.
    pub(super) fn extended(
        &self,
        elements: usize,
        numbering: Numbering,
        flags: Flags,
    ) -> Result<Self> {
        Ok(Self {
            words: self.words.extended_by_zeros(elements, numbering, flags)?,
            cells: self.cells.clone(),
        })
    }

    /// Bytes of memory that an extension takes. `None`: the size overflows.
    pub(super) fn step_bytes(&self, elements: usize, numbering: Numbering) -> Option<usize> {
        self.words.step_bytes(elements, numbering)
    }

    /// Bytes of memory that they take.
    pub(super) fn bytes(&self) -> usize {
        self.words.bytes()
    }

    /// Words of an element. `None`: too many.
    pub(super) fn width(values: &[usize]) -> Option<usize> {
        values.iter().try_fold(0usize, |sum, &words| {
            sum.checked_add(WideCell::size(words)?)
        })
    }

    /// Unsets the cells of element `number`, which belongs to no entry any more. Their versions go
    /// on, so no former state comes back.
    ///
    /// # Safety
    ///
    /// An element has this number.
    pub(super) unsafe fn clear(&self, number: u32) {
        for cell in 0..self.cells.len() {
            // SAFETY: The caller guarantees that an element has this number.
            let cell = unsafe { self.of(number, cell) };
            cell.iter().for_each(|cell| cell.state.store(0, Relaxed));
        }
    }

    /// Blocks the cells of element `number`, which are unset: they never get a value, and writes to
    /// them fail.
    ///
    /// # Safety
    ///
    /// An element has this number.
    pub(super) unsafe fn block(&self, number: u32) {
        for cell in 0..self.cells.len() {
            // SAFETY: The caller guarantees that an element has this number.
            let cell = unsafe { self.of(number, cell) };
            let buffers = cell
                .iter()
                .flat_map(|cell| (0..BUFFERS as u64).map(|i| cell.buffer(i)));
            for buffer in buffers.flatten() {
                buffer.version.store(BUSY, Relaxed);
            }
        }
    }

    /// A cell of element `number`, if elements have so many.
    ///
    /// # Safety
    ///
    /// An element has this number.
    #[inline]
    pub(super) unsafe fn of(&self, number: u32, cell: usize) -> Option<WideCell<'_>> {
        let (place, width) = self.cells.get(cell)?;
        // SAFETY: The caller guarantees that an element has this number.
        let (state, buffers) = unsafe { self.words.of(number) }
            .get(place.clone())?
            .split_first()?;
        Some(WideCell {
            state,
            buffers,
            width: *width,
        })
    }
}

/// Returns `text` in `n` words, padded with NULs, and truncated if it does not fit.
#[inline]
pub fn text_to_words(text: &[u8], n: usize) -> impl Iterator<Item = u64> + '_ {
    Iterator::chain(words_of(text), iter::repeat(0)).take(n)
}

/// Copies the text in `words` to `to`, with a NUL behind it; truncates it if it does not fit.
/// Returns the text in `to`, without the NUL.
#[inline]
pub fn words_to_text<'a>(words: &[u64], to: &'a mut [u8]) -> &'a [u8] {
    for (to, word) in to.chunks_mut(8).zip(words) {
        to.iter_mut()
            .zip(word.to_ne_bytes())
            .for_each(|(to, from)| *to = from);
    }
    if let Some(end) = to.get_mut(size_of_val(words)) {
        *end = 0;
    }
    if let Some(last) = to.last_mut() {
        *last = 0;
    }
    until_nul(to)
}
