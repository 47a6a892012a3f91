// SPDX-License-Identifier: GPL-2.0

//! Open files of the kernel, for rhist's files that replace them.

use super::{
    dentry::{
        dentry_of,
        Dentry, //
    },
    tracing_dir::TracingDir, //
};
use crate::rust::{
    bindings,
    poll::PollTable, //
};
use core::{
    ffi::CStr,
    ptr::NonNull, //
};
use kernel::{
    error::from_err_ptr,
    ffi,
    prelude::*,
    uaccess::{
        UserPtr,
        UserSlice, //
    },
};

/// Number of bytes that are copied at once.
const CHUNK: usize = 4096;

/// The buffer of a `write(2)`, in user memory.
pub(crate) struct UserBuffer {
    start: *const ffi::c_char,
    len: usize,
}

impl UserBuffer {
    pub(super) fn new(start: *const ffi::c_char, len: usize) -> Self {
        Self { start, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Copies the buffer. The program may change it afterwards, so a second copy may differ.
    pub(crate) fn read(&self) -> Result<KVec<u8>> {
        let start = UserPtr::from_ptr(self.start.cast_mut().cast());
        let mut copy = KVec::new();
        UserSlice::new(start, self.len).read_all(&mut copy, GFP_KERNEL)?;
        Ok(copy)
    }

    /// Copies the buffer piece by piece, in order, and passes each to `each`, until that fails. For
    /// a buffer of any length.
    ///
    /// # Errors
    ///
    /// `EFAULT`, `ENOMEM`, and the errors of `each`.
    pub(crate) fn read_pieces(&self, mut each: impl FnMut(&[u8]) -> Result) -> Result {
        let start = UserPtr::from_ptr(self.start.cast_mut().cast());
        let mut user = UserSlice::new(start, self.len).reader();
        let mut copy = KVec::from_elem(0, CHUNK.min(self.len), GFP_KERNEL)?;
        while !user.is_empty() {
            copy.truncate(user.len());
            user.read_slice(&mut copy)?;
            each(&copy)?;
        }
        Ok(())
    }
}

/// A file of the kernel, opened with the mount and the credentials of a file of rhist.
///
/// Use it in task context and without locks of the kernel: its operations take `event_mutex` and
/// more.
///
/// # Invariants
///
/// Owns a reference on an open file of tracefs.
pub(crate) struct KernelFile(NonNull<bindings::file>);

impl KernelFile {
    /// Opens `real` with the access mode of `ours`, and does not truncate it.
    ///
    /// # Safety
    ///
    /// `ours` must be open, or being opened, and `real` a file of the same tracefs.
    pub(super) unsafe fn open(ours: *mut bindings::file, real: &Dentry) -> Result<Self> {
        // SAFETY: `ours` is open or being opened. `real` holds a reference on a file of the same
        // tracefs.
        unsafe { Self::open_beside(ours, real.as_ptr(), (*ours).f_flags & bindings::O_ACCMODE) }
    }

    /// Opens `real` with `flags`, on the mount and with the credentials of `file`.
    ///
    /// # Safety
    ///
    /// `file` must be open, or being opened, and `real` a referenced file of the same tracefs.
    unsafe fn open_beside(
        file: *mut bindings::file,
        real: *mut bindings::dentry,
        flags: u32,
    ) -> Result<Self> {
        // SAFETY: `file` has a path and credentials. `real` is referenced, and in the file system
        // of that path.
        let opened = from_err_ptr(unsafe { bindings::rhist_open_beside(file, real, flags) })?;
        // INVARIANT: `rhist_open_beside` returns an open file with a reference.
        NonNull::new(opened).map(Self).ok_or(ENOMEM)
    }

    /// Opens the same file again.
    fn reopen(&self, flags: u32) -> Result<Self> {
        // SAFETY: By the type invariant the file is open, and holds a reference on its dentry.
        unsafe { Self::open_beside(self.0.as_ptr(), dentry_of(self.0.as_ptr()), flags) }
    }

    /// Opens another file for reading, as [`KernelFile::open_other`].
    pub(crate) fn open_other_for_reading(&self, dir: &TracingDir, path: &[&CStr]) -> Result<Self> {
        self.open_other(dir, path, bindings::O_RDONLY)
    }

    /// Opens another file, by its path in a tracing directory. Permissions are not checked.
    ///
    /// # Errors
    ///
    /// `ENOENT` if the file does not exist, `ENOMEM`, and the errors of the kernel's `open`.
    pub(in crate::rust) fn open_other(
        &self,
        dir: &TracingDir,
        path: &[&CStr],
        flags: u32,
    ) -> Result<Self> {
        let mut real = dir.dentry().clone();
        for name in path {
            real = real.lookup(name.to_bytes())?;
        }
        // SAFETY: By the type invariant this file is open. `real` was looked up in a tracing
        // directory, which is in the same tracefs.
        unsafe { Self::open_beside(self.0.as_ptr(), real.as_ptr(), flags) }
    }

    /// Reads the whole file from the beginning.
    ///
    /// # Errors
    ///
    /// The errors of the kernel's `read`; `EINVAL` if it is not open for reading, or not a
    /// seq_file; `ENOMEM`.
    pub(crate) fn read(&self) -> Result<KVVec<u8>> {
        let mut text = KVVec::new();
        let mut pos = 0;
        loop {
            let len = text.len();
            text.resize(len + CHUNK, 0, GFP_KERNEL)?;
            // SAFETY: By the type invariant the file is open. `text` was resized to `len + CHUNK`
            // bytes. `pos` is a local variable.
            let done = unsafe {
                let to = text.as_mut_ptr().add(len).cast();
                bindings::rhist_read_seq(self.0.as_ptr(), to, CHUNK, &mut pos)
            };
            text.truncate(len + usize::try_from(done).unwrap_or(0));
            match done {
                0 => return Ok(text),
                ..0 => return Err(Error::from_errno(done as ffi::c_int)),
                _ => (),
            }
        }
    }

    /// Reads the whole file, even if it is open for writing only. The text must not be passed to
    /// the program. Fails as [`KernelFile::read`], and as the kernel's `open`.
    pub(crate) fn reopen_and_read(&self) -> Result<KVVec<u8>> {
        self.reopen(bindings::O_RDONLY)?.read()
    }

    /// Writes a program's buffer to the file.
    ///
    /// The kernel copies the buffer itself, and so may see other text than [`UserBuffer::read`].
    /// That is harmless: the program may write to the kernel's file anyway.
    ///
    /// # Errors
    ///
    /// The errors of the kernel's `write`; `EINVAL` if it is not open for writing; `EIO` if only a
    /// part was written.
    pub(crate) fn write(&self, data: &UserBuffer) -> Result {
        // SAFETY: By the type invariant the file is open. `write` checks `data.start` as a user
        // pointer.
        let done = unsafe { bindings::rhist_write(self.0.as_ptr(), data.start, data.len) };
        written(done, data.len)
    }

    /// Returns whether `poll(2)` of the file reports `EPOLLERR`. Also queues the caller of `poll()`
    /// on its wait queues.
    pub(super) fn poll_error(&self, table: &PollTable<'_>) -> bool {
        // SAFETY: By the type invariant the file is open, and the open file of rhist keeps it so
        // while a task is queued. `table` is valid during `poll()`.
        unsafe { bindings::rhist_poll_error(self.0.as_ptr(), table.as_ptr()) }
    }

    /// Truncates the file, by opening it again with `O_TRUNC`. Fails as the kernel's `open`.
    pub(crate) fn truncate(&self) -> Result {
        self.reopen(bindings::O_WRONLY | bindings::O_TRUNC)
            .map(drop)
    }
}

/// Converts the result of a write of `len` bytes. Fails with `EIO` if only a part was written.
fn written(done: isize, len: usize) -> Result {
    match usize::try_from(done) {
        Ok(done) if done == len => Ok(()),
        Ok(_) => Err(EIO),
        Err(_) => Err(Error::from_errno(done as ffi::c_int)),
    }
}

impl Drop for KernelFile {
    fn drop(&mut self) {
        // SAFETY: By the type invariant `self` owns a reference, which is not used afterwards.
        unsafe { bindings::fput(self.0.as_ptr()) }
    }
}

// SAFETY: A reference on a file may be dropped by any task.
unsafe impl Send for KernelFile {}
// SAFETY: The file operations may be called concurrently: they lock for themselves, and no method
// uses `f_pos`.
unsafe impl Sync for KernelFile {}
