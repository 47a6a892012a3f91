// SPDX-License-Identifier: GPL-2.0

//! The objects that words of stacks name: mapped files, and executable memory without a file.
//!
//! A hit gives each object a number when it meets it first, by its [identity](Identity). A file
//! that has changed since has another identity, and so another number: rules for the old one do not
//! hold for it. Numbers stay until the table is dropped.
//!
//! # Files
//!
//! The hit also takes a reference to the file, for tasks that want to read it: the program may end
//! at any moment, and the file may be in another mount namespace. A reference keeps the file system
//! from being unmounted, so the worker puts it [soon](Objects::BEATS_HELD). The file of a known
//! object is held again when somebody [wants](Objects::want) it.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc,
        Mutex, //
    },
};

use super::{
    known::Known,
    learned::Learned,
    End,
    Era,
    FileVersion,
    Here,
    Key,
    Mapping,
    Near,
    Place,
    Plain,
    Rule,
    Rulebook,
    Rules,
    Word, //
};
use crate::{
    event::{
        LongBuffer,
        LongBuffers, //
    },
    map::{
        Column,
        Cpus,
        Map,
        Room,
        Shape, //
    },
    sync::{
        Load,
        PreemptOff, //
    },
};

/// A version of a file: the same numbers for all processes that map it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FileIdentity {
    /// The number of the file system's device (`s_dev`): its major number above 20 bits of its
    /// minor number.
    pub device: u32,
    /// The number of the inode.
    pub inode: u64,
    /// The generation of the inode, which differs if its number is used again.
    pub generation: u32,
    /// Size in bytes.
    pub size: u64,
    /// The time of the last change of its data, in nanoseconds since 1970.
    pub changed_ns: u64,
}

/// Objects with different identities have different numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Identity {
    /// A mapped file.
    File(FileIdentity),
    /// Executable memory of a process without a file.
    Memory {
        /// The id of the process.
        process: u32,
        /// A number for its address space. Not to be shown.
        space: u64,
        /// The address. To be shown only to a task that may see the mappings of the process.
        begin: u64,
    },
}

/// Words of a key.
const KEY: usize = 5;

/// In the upper half of the first word of a key.
const FILE: u64 = 1;
const MEMORY: u64 = 2;

impl Identity {
    #[inline(always)]
    fn key(&self) -> [u64; KEY] {
        match *self {
            Self::File(file) => [
                FILE << 32 | u64::from(file.device),
                file.inode,
                u64::from(file.generation),
                file.size,
                file.changed_ns,
            ],
            Self::Memory {
                process,
                space,
                begin,
            } => [MEMORY << 32 | u64::from(process), space, begin, 0, 0],
        }
    }

    fn of_key([first, second, third, fourth, fifth]: [u64; KEY]) -> Self {
        match first >> 32 {
            MEMORY => Self::Memory {
                process: first as u32,
                space: second,
                begin: third,
            },
            _ => Self::File(FileIdentity {
                device: first as u32,
                inode: second,
                generation: third as u32,
                size: fourth,
                changed_ns: fifth,
            }),
        }
    }
}

/// References to files.
pub trait ExecFiles: Sync {
    /// Takes another reference to a file. Any context.
    ///
    /// # Safety
    ///
    /// The caller has a reference.
    unsafe fn get(&self, file: usize);

    /// Returns another file instead of one that a hit has taken, with a reference for the caller:
    /// it keeps no more than the path, so that programs do not notice it. `None` if the file is to
    /// be kept as it is. Task context, may sleep.
    ///
    /// # Safety
    ///
    /// The caller has a reference, and keeps it during the call.
    unsafe fn settle(&self, file: usize) -> Option<usize>;

    /// Puts a reference to a file. Task context.
    ///
    /// # Safety
    ///
    /// The caller has the reference, and gives it up.
    unsafe fn put(&self, file: usize);
}

/// A reference to a mapped file, as a hit has taken it; or none.
///
/// # Invariants
///
/// `0` is [`WANTED`] or [`NEVER`], or a file with a reference that belongs to this, a multiple of
/// 8, maybe plus [`OTHER`].
pub struct Held(usize);

impl Held {
    /// The file could not be held now.
    pub const NONE: Self = Self(WANTED);

    /// The object is memory without a file, or its file cannot be held.
    pub const NEVER: Self = Self(NEVER);

    /// A reference to a file; `fits` is false if it is not the object's, because the mapping has
    /// changed meanwhile: then it is put, and not used.
    ///
    /// # Safety
    ///
    /// The caller has a reference to the file, which is a multiple of 8 and not 0, and gives it to
    /// this.
    pub unsafe fn new(file: usize, fits: bool) -> Self {
        // INVARIANT: The caller guarantees it.
        Self(if fits { file } else { file | OTHER })
    }
}

// A slot of a file that is not held has one of these values.

/// Hits are to hold the file.
const WANTED: usize = 0;
/// A hit is holding the file.
const HOLDING: usize = 1;
/// Nobody wants the file.
const UNWANTED: usize = 2;
/// Hits cannot hold it.
const NEVER: usize = 3;

/// Set in a slot whose file is not the object's.
const OTHER: usize = 4;

/// The file and the rules of an object.
struct Slot {
    /// A file with a reference that belongs to the slot, maybe plus [`OTHER`]; or [`WANTED`],
    /// [`HOLDING`], [`UNWANTED`] or [`NEVER`].
    file: Atomic<usize>,
    /// From `Arc::into_raw()`, or null. Set once.
    rules: Atomic<*mut Rules>,
}

/// Returns the file in a slot with this word, if it is the object's.
fn file_in(word: usize) -> Option<usize> {
    (word > NEVER && word & OTHER == 0).then_some(word)
}

impl Slot {
    fn new() -> Self {
        Self {
            file: Atomic::new(WANTED),
            rules: Atomic::new(core::ptr::null_mut()),
        }
    }

    #[inline(always)]
    fn rules(&self) -> Option<&Rules> {
        // SAFETY: Null, or from `Arc::into_raw()`; it is freed with the slot.
        unsafe { self.rules.acquire().as_ref() }
    }
}

/// Number of stacks of a CPU, by their ends. In cache lines of its own.
#[repr(align(128))]
struct Ends([Atomic<u64>; End::ALL.len()]);

impl Ends {
    fn new() -> Self {
        Self(End::ALL.map(|_| Atomic::new(0)))
    }
}

/// The state of an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ObjectState {
    /// Its file can be read, and rules can be written for it.
    Readable,
    /// Its file cannot be read, unless a hit comes that finds it wanted.
    Released,
    /// It has rules.
    Ruled {
        /// Number of rows.
        rows: usize,
        /// Bytes of memory.
        bytes: usize,
        /// Whether its file can be read.
        readable: bool,
    },
}

/// An object, as it is listed.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// The number in words.
    pub number: u32,
    /// Its identity; `None` for [`Objects::VDSO`].
    pub identity: Option<Identity>,
    /// Whether it has rules, and whether its file can be read.
    pub state: ObjectState,
}

/// The table of objects. Shared by all CPUs.
///
/// # Invariants
///
/// `slots` has a slot for [`Objects::VDSO`], and then one for each element of `map`.
pub struct Objects {
    map: Map,
    slots: KVVec<Slot>,
    /// The numbers of other objects are higher.
    base: u32,
    /// Number of objects without a file, and of attempts to add one.
    memories: Atomic<u32>,
    /// Hits with an object without a file that did not get a number.
    memories_lost: Atomic<u64>,
    /// For each possible CPU, the stacks that were taken there.
    ends: KVVec<Ends>,
    /// Mappings that walks know.
    known: Known,
    /// Rules that walks know.
    learned: Learned,
    /// For the words of long stacks.
    long: LongBuffers,
    /// Number of [eras](Era) that have begun for all mappings.
    eras: Atomic<u32>,
    /// Bytes of all rules.
    bytes: Atomic<usize>,
    /// Number of changes in the list, other than new objects.
    changes: Atomic<u64>,
    /// For the worker, for each slot: number of beats for which its file has been held.
    beats: Pin<KBox<Mutex<KVVec<u8>>>>,
    files: &'static dyn ExecFiles,
}

impl Objects {
    /// log2 of the maximum number of objects.
    const BITS: u32 = 12;

    /// Maximum number of objects.
    pub const MAX: usize = 1 << Self::BITS;

    /// Maximum number of objects without a file: a program can make any number of them.
    pub const MEMORIES_MAX: u32 = 1 << (Self::BITS - 2);

    /// The number for the code that the kernel maps into each program (vDSO).
    pub const VDSO: u32 = 0;

    /// A file is held for so many [beats](Objects::beat), or one more.
    pub const BEATS_HELD: u8 = 9;

    /// Creates an empty table, which gives other numbers than the table `before`. `seed` is a
    /// random number, so that keys that collide cannot be made up. May sleep. Fails with `ENOMEM`.
    pub fn new(
        cpus: Cpus,
        seed: u64,
        files: &'static dyn ExecFiles,
        before: Option<&Self>,
    ) -> Result<Self> {
        let shape = Shape {
            bits: Self::BITS,
            key_size: KEY * size_of::<u64>(),
            columns: &[Column::Hits],
            vars: 0,
            wide: &[],
            side: 0,
            clock: None,
            cpus: Cpus { own: 1, ..cpus },
            seed,
            room: Room {
                numbered: true,
                ..Room::fixed(Self::BITS)
            },
            request: None,
        };
        let map = Map::new(shape)?;
        let len = 1 + map.contents().elements();
        let mut slots = KVVec::with_capacity(len, GFP_KERNEL)?;
        for _ in 0..len {
            slots.push(Slot::new(), GFP_KERNEL)?;
        }
        let beats = KVVec::from_elem(0, len, GFP_KERNEL)?;
        let mut ends = KVVec::with_capacity(cpus.count, GFP_KERNEL)?;
        for _ in 0..cpus.count {
            ends.push(Ends::new(), GFP_KERNEL)?;
        }
        let behind = |before: &Self| before.base + before.slots.len() as u32;
        let base = before.map_or(0, behind);
        // INVARIANT: As many as it says.
        Ok(Self {
            map,
            // They begin anew when they would be too large for a word.
            base: match base + (len as u32) < Word::NUMBERS {
                true => base,
                false => 0,
            },
            slots,
            memories: Atomic::new(0),
            memories_lost: Atomic::new(0),
            ends,
            known: Known::new(cpus.count)?,
            learned: Learned::new()?,
            long: LongBuffers::new(cpus.count)?,
            eras: Atomic::new(0),
            bytes: Atomic::new(0),
            changes: Atomic::new(0),
            beats: KBox::pin_init(new_mutex!(beats), GFP_KERNEL)?,
            files,
        })
    }

    /// The number of an object, given to it now if it is new. `hold` takes a reference to its file,
    /// if that is wanted: it is called at most once. `None`: too many objects have a number, which
    /// is counted. Any context.
    #[inline(always)]
    pub fn number(
        &self,
        preempt: PreemptOff<'_>,
        identity: &Identity,
        hold: impl FnOnce() -> Held,
    ) -> Option<u32> {
        let contents = self.map.read(preempt);
        let key = identity.key();
        let elt = match identity {
            Identity::File(_) => contents.insert_words(preempt, &key)?,
            Identity::Memory { .. } => match contents.lookup_words(&key) {
                Some(elt) => elt,
                None => {
                    self.count_memory()?;
                    contents.insert_words(preempt, &key)?
                }
            },
        };
        let nth = contents.nth(elt.number()) + 1;
        let slot = self.slots.get(nth)?;
        if slot.file.load(Relaxed) == WANTED {
            Self::hold(slot, hold);
        }
        Some(self.base + nth as u32)
    }

    /// Begins a walk of the address space with this number, which no other one has. `mappings` is
    /// another number than in other walks of that, if one of its mappings has changed in between;
    /// odd if that is not known. Any context.
    #[inline(always)]
    pub fn era(&self, space: u64, mappings: u64) -> Era {
        // Before slots are looked at.
        let eras = u64::from(self.eras.acquire());
        Era {
            space,
            number: mappings.wrapping_add(eras << 32),
        }
    }

    /// The mapping that an address is in, if a walk of the same era has [kept](Objects::keep) it
    /// `here`, and `is_same` for the version of its file.
    #[inline(always)]
    pub fn known(
        &self,
        here: Here,
        era: &Era,
        address: u64,
        is_same: impl FnOnce(&FileVersion) -> bool,
    ) -> Option<Near> {
        self.known.find(here, era, address, is_same)
    }

    /// Keeps the mapping that an address is in, whose place was found in this walk; `version` is
    /// of its file, if it has one. Returns it, as the walk needs it.
    pub fn keep(
        &self,
        here: Here,
        era: &Era,
        address: u64,
        mapping: &Mapping,
        version: Option<FileVersion>,
    ) -> Near {
        let near = Near::new(mapping, self.key(mapping));
        let number = match mapping.place {
            Place::File { object, .. } => object,
            Place::Memory { mapping, .. } => mapping,
            Place::Vdso { .. } => Self::VDSO,
            Place::Unlisted => return near,
        };
        // A file that is still to be held is to be met again.
        let is_met = |slot: &Slot| slot.file.load(Relaxed) > HOLDING;
        if number == Self::VDSO || self.slot(number).is_some_and(is_met) {
            self.known.keep(here, era, address, &near, version);
        }
        near
    }

    /// Counts an object without a file. `None`: they are too many.
    #[inline(never)]
    fn count_memory(&self) -> Option<()> {
        // Two hits may add the same one at the same time: then it counts twice.
        if self.memories.fetch_add(1, Relaxed) < Self::MEMORIES_MAX {
            return Some(());
        }
        self.memories.fetch_sub(1, Relaxed);
        self.memories_lost.fetch_add(1, Relaxed);
        None
    }

    /// The slot of an object with this number, if it exists. Any context.
    #[inline(always)]
    fn slot(&self, number: u32) -> Option<&Slot> {
        self.slots.get(self.index(number)?)
    }

    /// The index of that slot.
    #[inline(always)]
    fn index(&self, number: u32) -> Option<usize> {
        match number {
            Self::VDSO => Some(0),
            number => Some(number.checked_sub(self.base)? as usize),
        }
    }

    #[inline(never)]
    fn hold(slot: &Slot, hold: impl FnOnce() -> Held) {
        // Others, also one that has interrupted this or that this has interrupted, leave the slot
        // to the one that was first.
        if slot.file.cmpxchg(WANTED, HOLDING, Relaxed).is_ok() {
            slot.file.store(hold().0, Release);
        }
    }

    /// The rule for the instruction at this offset of an object. `None`: no rules were written for
    /// it. Any context.
    pub fn rule(&self, _: PreemptOff<'_>, number: u32, offset: u64) -> Option<Rule> {
        let index = self.index(number)?;
        let rules = self.slots.get(index)?.rules()?;
        let known = match (Key::new(index, offset, 1), self.rulebook()) {
            (Some(key), Some(book)) => book.nth(key),
            _ => None,
        };
        let nth = known.unwrap_or_else(|| rules.find_nth(offset));
        Some(rules.nth(nth))
    }

    /// The rule for the instruction with this key, if it is a plain one. Any context.
    #[inline(always)]
    pub fn plain(&self, book: Rulebook<'_>, key: Key) -> Option<Plain> {
        match book.plain(key) {
            None => self.learn(book, key),
            plain => plain,
        }
    }

    /// Searches for that rule, and keeps it.
    #[inline(never)]
    fn learn(&self, book: Rulebook<'_>, key: Key) -> Option<Plain> {
        if book.nth(key).is_some() {
            return None;
        }
        let (index, offset) = key.parts();
        let rules = self.slots.get(index)?.rules()?;
        let nth = rules.find_nth(offset);
        book.learn(key, rules.nth(nth), nth)
    }

    /// The rules that walks know. Any context.
    #[inline(always)]
    pub fn rulebook(&self) -> Option<Rulebook<'_>> {
        self.learned.book()
    }

    /// The key of the first byte of a mapping for [`Objects::plain`]. `None`: it lacks rules, or
    /// they are not kept.
    fn key(&self, mapping: &Mapping) -> Option<Key> {
        let (number, offset) = match mapping.place {
            Place::File { object, offset } => (object, offset),
            Place::Vdso { offset } => (Self::VDSO, offset),
            Place::Memory { .. } | Place::Unlisted => return None,
        };
        let index = self.index(number)?;
        self.slots.get(index)?.rules()?;
        Key::new(index, offset, mapping.end.checked_sub(mapping.begin)?)
    }

    /// Counts a stack that has ended like this. Any context.
    #[inline(always)]
    pub fn count(&self, preempt: PreemptOff<'_>, end: End) {
        let ends = self.ends.get(preempt.cpu());
        if let Some(stacks) = ends.and_then(|ends| ends.0.get(end.number() as usize)) {
            // An NMI may come in between.
            stacks.fetch_add(1, Relaxed);
        }
    }

    /// A buffer for a long stack. `None`: the CPU has none left, which is counted as
    /// [`End::Nested`]. Any context.
    pub fn long_buffer<'a>(&'a self, preempt: PreemptOff<'a>) -> Option<LongBuffer<'a>> {
        let buffer = self.long.take(preempt);
        if buffer.is_none() {
            self.count(preempt, End::Nested);
        }
        buffer
    }

    /// Number of stacks that have ended like this.
    pub fn stacks(&self, end: End) -> u64 {
        let of_cpu = |ends: &Ends| Some(ends.0.get(end.number() as usize)?.load(Relaxed));
        self.ends.iter().filter_map(of_cpu).sum()
    }

    /// Number of times that hits came to an object that did not get a number. Task context, may
    /// sleep.
    pub fn lost(&self) -> u64 {
        self.map.drops() + self.memories_lost.load(Relaxed)
    }

    /// Bytes of all rules.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// A number that is another one when something has changed in the list. Task context.
    pub fn version(&self) -> u64 {
        // Both only grow.
        self.map.contents().len() as u64 + self.changes.load(Acquire)
    }

    /// Number of objects, the vDSO included.
    pub fn len(&self) -> usize {
        1 + self.map.contents().len()
    }

    /// Returns false: it has the vDSO.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Passes all objects to `each`, the vDSO first, the others in no order, until that fails. Task
    /// context.
    pub fn for_each(&self, mut each: impl FnMut(Object) -> Result) -> Result {
        if let Some(vdso) = self.slots.first() {
            each(Object {
                number: Self::VDSO,
                identity: None,
                state: Self::state(vdso),
            })?;
        }
        let contents = self.map.contents();
        for elt in contents.elts() {
            let nth = contents.nth(elt.number());
            let Some(slot) = self.slots.get(nth + 1) else {
                continue;
            };
            let mut key = [0; KEY];
            key.iter_mut()
                .zip(elt.key_words())
                .for_each(|(to, word)| *to = word);
            each(Object {
                number: self.base + nth as u32 + 1,
                identity: Some(Identity::of_key(key)),
                state: Self::state(slot),
            })?;
        }
        Ok(())
    }

    /// Returns whether an object has this number. Task context.
    pub fn has(&self, number: u32) -> bool {
        self.find(number).is_some()
    }

    /// The object with this number. Task context.
    pub fn object(&self, number: u32) -> Option<Object> {
        let mut found = None;
        // Fails when it is found.
        let _ = self.for_each(|object| {
            if object.number != number {
                return Ok(());
            }
            found = Some(object);
            Err(EEXIST)
        });
        found
    }

    /// The slot of the object with this number.
    fn find(&self, number: u32) -> Option<&Slot> {
        if number != Self::VDSO {
            let contents = self.map.contents();
            let number_of = |element: u32| self.base + contents.nth(element) as u32 + 1;
            contents
                .elts()
                .find(|elt| number_of(elt.number()) == number)?;
        }
        self.slot(number)
    }

    fn state(slot: &Slot) -> ObjectState {
        let readable = file_in(slot.file.load(Relaxed)).is_some();
        match slot.rules() {
            Some(rules) => ObjectState::Ruled {
                rows: rules.rows(),
                bytes: rules.size(),
                readable,
            },
            None if readable => ObjectState::Readable,
            None => ObjectState::Released,
        }
    }

    /// Publishes the rules of an object, while all rules together take at most `max_bytes`. Task
    /// context.
    ///
    /// # Errors
    ///
    /// `ENOENT` if it does not exist, `EEXIST` if it has rules, `ENOSPC` if all rules would take
    /// more, `ENOMEM`.
    pub fn set_rules(&self, number: u32, rules: Rules, max_bytes: usize) -> Result {
        let slot = self.find(number).ok_or(ENOENT)?;
        let size = rules.size();
        let rules = Arc::new(rules, GFP_KERNEL)?;
        // Locked, so that the limit holds for two that come at the same time.
        let _beats = self.beats.lock();
        if slot.rules().is_some() {
            return Err(EEXIST);
        }
        let bytes = self.bytes() + size;
        if bytes > max_bytes {
            return Err(ENOSPC);
        }
        self.bytes.store(bytes, Relaxed);
        slot.rules.store(Arc::into_raw(rules).cast_mut(), Release);
        self.begin_era();
        self.changed();
        Ok(())
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Release);
    }

    /// Passes the file of an object, which keeps its reference while `with` runs. `None`: it is not
    /// held; it is [wanted](Objects::want) now. Task context.
    pub fn with_file<T>(&self, number: u32, with: impl FnOnce(usize) -> T) -> Option<T> {
        let slot = self.find(number)?;
        // The worker takes files out of slots with the lock held only.
        let _beats = self.beats.lock();
        if let Some(file) = file_in(slot.file.load(Acquire)) {
            return Some(with(file));
        }
        self.want_in(slot);
        None
    }

    /// Replaces the file of a slot by one that only keeps the path, if it has one. The caller has
    /// `beats` locked.
    fn settle(&self, slot: &Slot, file: usize) {
        // SAFETY: The reference belongs to the slot.
        if let Some(settled) = unsafe { self.files.settle(file) } {
            slot.file.store(settled, Release);
            // SAFETY: The reference belonged to the slot.
            unsafe { self.files.put(file) };
        }
        self.changed();
    }

    /// Asks hits to hold the file of an object. Task context.
    pub fn want(&self, number: u32) {
        if let Some(slot) = self.find(number) {
            self.want_in(slot);
        }
    }

    fn want_in(&self, slot: &Slot) {
        if slot.file.cmpxchg(UNWANTED, WANTED, Relaxed).is_ok() {
            self.begin_era();
        }
    }

    /// Has walks forget the mappings that they know, after a slot was set to [`WANTED`], or has got
    /// rules: a walk that knows a mapping does not look at the slot.
    fn begin_era(&self) {
        self.eras.fetch_add(1, Release);
    }

    /// Puts the files that have been held for long enough: to be called each second. `between` is
    /// called now and then. Returns whether some file is held. Task context, may sleep.
    pub fn beat(&self, between: impl Fn()) -> bool {
        let mut is_holding = false;
        for nth in 0..self.slots.len() {
            if nth % 256 == 0 {
                between();
            }
            let mut beats = self.beats.lock();
            let (Some(slot), Some(beats)) = (self.slots.get(nth), beats.get_mut(nth)) else {
                continue;
            };
            let word = slot.file.load(Acquire);
            if word <= NEVER {
                *beats = 0;
                continue;
            }
            *beats += 1;
            let (put, left) = match file_in(word) {
                None => (word & !OTHER, WANTED),
                Some(file) if *beats > Self::BEATS_HELD => (file, UNWANTED),
                Some(file) => {
                    is_holding = true;
                    if *beats == 1 {
                        self.settle(slot, file);
                    }
                    continue;
                }
            };
            *beats = 0;
            slot.file.store(left, Relaxed);
            if left == WANTED {
                self.begin_era();
            }
            self.changed();
            // SAFETY: The reference belonged to the slot.
            unsafe { self.files.put(put) };
        }
        is_holding
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        for slot in &self.slots {
            let word = slot.file.load(Acquire);
            if word > NEVER {
                // SAFETY: The reference belonged to the slot, which nobody uses any more.
                unsafe { self.files.put(word & !OTHER) };
            }
            let rules = slot.rules.load(Acquire);
            if !rules.is_null() {
                // SAFETY: From `Arc::into_raw()`; nobody uses it any more.
                drop(unsafe { Arc::from_raw(rules) });
            }
        }
    }
}
