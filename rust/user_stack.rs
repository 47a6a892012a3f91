// SPDX-License-Identifier: GPL-2.0

//! Registers, mappings and memory of the running program: see `rust/user_stack.c`.

use super::bindings;
use crate::sync::PreemptOff;
use core::{
    mem::MaybeUninit,
    ptr, //
};

/// Why the stack of the running program cannot be walked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Absence {
    /// The task is a thread of the kernel, or the memory of its program is gone.
    NoProgram,
    /// The program is of another architecture: of 32 bits, or x32.
    Foreign,
    /// A stack is being walked in this context.
    Nested,
    /// An NMI has come before the kernel had stored the registers.
    Entering,
}

/// The registers of a program when it entered the kernel, or was interrupted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserRegisters {
    pub(crate) ip: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    /// A register that may have the return address: `x30`, `rdi`.
    pub(crate) lr: u64,
}

/// Why a mapping cannot be found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unmapped {
    /// The address is in no executable mapping.
    Astray,
    /// The mapping is being changed.
    Changing,
}

/// The contents of a mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mapped {
    /// A regular file.
    File {
        /// As in `s_dev`.
        device: u32,
        inode: u64,
        generation: u32,
        /// In bytes.
        size: u64,
        /// Time of the last change of its data, in nanoseconds since 1970.
        changed_ns: u64,
    },
    /// Executable memory that is of no regular file.
    Memory,
    /// Code that the kernel maps into each program.
    Vdso,
}

/// An executable mapping of the running program, in the hit that has found it.
pub(crate) struct UserMapping<'a> {
    raw: bindings::rhist_user_mapping,
    mapped: Mapped,
    _hit: PreemptOff<'a>,
}

impl UserMapping<'_> {
    /// Its first address.
    pub(crate) fn begin(&self) -> u64 {
        self.raw.begin
    }

    /// The address behind it.
    pub(crate) fn end(&self) -> u64 {
        self.raw.end
    }

    /// The offset of its first byte in the file or in the vDSO.
    pub(crate) fn offset(&self) -> u64 {
        self.raw.offset
    }

    /// Whether it is of a file that can be held, if not now.
    pub(crate) fn can_be_held(&self) -> bool {
        matches!(self.mapped, Mapped::File { .. }) && self.raw.stays
    }

    /// A number for the inode of its file: see [`UserProgram::is_same_file`]. Not to be shown.
    pub(crate) fn inode(&self) -> u64 {
        self.raw.inode
    }

    /// Its contents.
    pub(crate) fn mapped(&self) -> Mapped {
        self.mapped
    }
}

/// A file to which its owner has a reference, as a number: a multiple of 8, not 0.
pub(crate) type File = usize;

/// Room for the registers and numbers of a program that is walked.
pub(crate) struct Room(MaybeUninit<bindings::rhist_user>);

impl Room {
    /// Empty.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self(MaybeUninit::uninit())
    }
}

/// The running program, whose stack is being walked: no other one in this context meanwhile.
///
/// # Invariants
///
/// `raw` was filled by `rhist_user_begin()` in this hit.
pub(crate) struct UserProgram<'a, 'b> {
    raw: &'b bindings::rhist_user,
    hit: PreemptOff<'a>,
}

impl<'a, 'b> UserProgram<'a, 'b> {
    /// Begins a walk, for which `room` is used. Any context.
    #[inline(always)]
    pub(crate) fn begin(preempt: PreemptOff<'a>, room: &'b mut Room) -> Result<Self, Absence> {
        // SAFETY: Preemption is off.
        match unsafe { bindings::rhist_user_begin(room.0.as_mut_ptr()) } {
            bindings::rhist_user_state_RHIST_USER_RUNS => Ok(Self {
                // INVARIANT: The function has filled it.
                // SAFETY: As above.
                raw: unsafe { room.0.assume_init_ref() },
                hit: preempt,
            }),
            bindings::rhist_user_state_RHIST_USER_FOREIGN => Err(Absence::Foreign),
            bindings::rhist_user_state_RHIST_USER_NESTED => Err(Absence::Nested),
            bindings::rhist_user_state_RHIST_USER_ENTERING => Err(Absence::Entering),
            _ => Err(Absence::NoProgram),
        }
    }

    /// Its registers when it entered the kernel, or was interrupted.
    pub(crate) fn registers(&self) -> UserRegisters {
        let bindings::rhist_user { ip, sp, fp, lr, .. } = *self.raw;
        UserRegisters { ip, sp, fp, lr }
    }

    /// The bits of a return address that are its address; the others authenticate it.
    pub(crate) fn code(&self) -> u64 {
        match cfg!(CONFIG_ARM64) {
            true => self.raw.code,
            false => u64::MAX,
        }
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.raw.process
    }

    /// A number for its address space, which no other one has had. Not to be shown.
    pub(crate) fn space(&self) -> u64 {
        self.raw.space
    }

    /// Another number than in any other walk of this address space, if one of its mappings has
    /// changed in between. Odd if that is not known.
    pub(crate) fn mappings(&self) -> u64 {
        self.raw.mappings
    }

    /// The context in which it is walked: 0 a task, 1 a softirq, 2 an interrupt, 3 an NMI.
    pub(crate) fn context(&self) -> usize {
        self.raw.context.into()
    }

    /// Finds the executable mapping of an address.
    pub(crate) fn mapping(&self, address: u64) -> Result<UserMapping<'a>, Unmapped> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: The program is walked, by the invariant.
        let kind = unsafe { bindings::rhist_user_mapping(address, raw.as_mut_ptr()) };
        let is_file = match kind {
            bindings::rhist_user_kind_RHIST_USER_FILE => true,
            bindings::rhist_user_kind_RHIST_USER_MEMORY
            | bindings::rhist_user_kind_RHIST_USER_VDSO => false,
            bindings::rhist_user_kind_RHIST_USER_ASTRAY => return Err(Unmapped::Astray),
            _ => return Err(Unmapped::Changing),
        };
        // SAFETY: For these three kinds the function has filled it.
        let raw: bindings::rhist_user_mapping = unsafe { raw.assume_init() };
        let mapped = match is_file {
            true => Mapped::File {
                device: raw.identity.device,
                inode: raw.identity.inode,
                generation: raw.identity.generation,
                size: raw.identity.size,
                changed_ns: raw.identity.changed_ns,
            },
            false if kind == bindings::rhist_user_kind_RHIST_USER_VDSO => Mapped::Vdso,
            false => Mapped::Memory,
        };
        Ok(UserMapping {
            raw,
            mapped,
            _hit: self.hit,
        })
    }

    /// Reads a word of its memory; `None` if it is not there, or would have to be read from a disk.
    pub(crate) fn read(&self, address: u64) -> Option<u64> {
        let mut word = 0;
        // SAFETY: The program is walked, by the invariant. The function checks the address, and
        // handles faults.
        unsafe { bindings::rhist_user_read(self.raw, address, &raw mut word) }.then_some(word)
    }

    /// Whether [`UserProgram::load`] can read its memory in this context.
    #[inline(always)]
    pub(crate) fn reads(&self) -> bool {
        self.raw.reads
    }

    /// A word of its memory; 0 if it is not there. Only if [`UserProgram::reads`]: else it may be
    /// of another program.
    #[inline(always)]
    pub(crate) fn load(&self, address: u64) -> u64 {
        // SAFETY: The program is walked, by the invariant. The function checks the address, and
        // handles faults.
        unsafe { bindings::rhist_user_load(address) }
    }

    /// Two words, likewise, the second one less than 4 KiB above the first one. Both are 0 if one
    /// of them is not there.
    #[inline(always)]
    pub(crate) fn load_two(&self, first: u64, second: u64) -> (u64, u64) {
        // SAFETY: As above.
        let words = unsafe { bindings::rhist_user_load_two(first, second.wrapping_sub(first)) };
        (words.first, words.second)
    }

    /// Returns whether a file has this size in bytes, and this time of the last change of its data,
    /// in nanoseconds since 1970. `inode` is of a mapping that another walk of this address space
    /// has found, when [`UserProgram::mappings`] was the same number; else it means nothing.
    #[inline(always)]
    pub(crate) fn is_same_file(&self, inode: u64, size: u64, changed_ns: u64) -> bool {
        // SAFETY: The function handles faults, so any address will do. The program is walked, by
        // the invariant, so page faults are off.
        unsafe { bindings::rhist_user_same_file(inode, size, changed_ns) }
    }

    /// Takes a reference to the file of a mapping, which belongs to the caller then, and returns
    /// whether the mapping still is as it was found: else it may be another file. `None` if that
    /// is not possible now, or the mapping is of no file.
    ///
    /// The reference is to be [put] in task context, so not in the hit.
    pub(crate) fn hold(&self, mapping: &UserMapping<'a>) -> Option<(File, bool)> {
        if !matches!(mapping.mapped, Mapped::File { .. }) {
            return None;
        }
        let mut fits = false;
        // SAFETY: The mapping was found in this hit, as preemption is off for `'a`, and is of a
        // file. The program is walked, by the invariant.
        let file = unsafe { bindings::rhist_user_hold(&raw const mapping.raw, &raw mut fits) };
        (!file.is_null()).then(|| (file.expose_provenance(), fits))
    }
}

impl Drop for UserProgram<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: The walk has begun in this hit, by the invariant, and ends once.
        unsafe { bindings::rhist_user_end(self.raw) };
    }
}

/// Takes another reference to a file. Any context.
///
/// # Safety
///
/// The caller has a reference.
pub(crate) unsafe fn get(file: File) {
    // SAFETY: The caller guarantees that the file exists.
    unsafe { bindings::rhist_user_file_get(ptr::with_exposed_provenance_mut(file)) }
}

/// Returns a file that keeps no more of this one than its path, with a reference for the caller;
/// `None` if this one is to be kept as it is. Task context, may sleep.
///
/// # Safety
///
/// The caller has a reference, and keeps it during the call.
pub(crate) unsafe fn settle(file: File) -> Option<File> {
    // SAFETY: The caller guarantees that the file exists.
    let settled =
        unsafe { bindings::rhist_user_file_settle(ptr::with_exposed_provenance_mut(file)) };
    (!settled.is_null()).then(|| settled.expose_provenance())
}

/// Puts a reference to a file. Task context, also with locks held; the file is released later.
///
/// # Safety
///
/// The caller has the reference, and gives it up.
pub(crate) unsafe fn put(file: File) {
    // SAFETY: The caller gives up its reference.
    unsafe { bindings::fput(ptr::with_exposed_provenance_mut(file)) }
}
