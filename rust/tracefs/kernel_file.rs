// SPDX-License-Identifier: GPL-2.0

//! Files of the kernel whose place files of rhist take.

use super::dentry::Dentry;
use super::object::dentry_of;
use super::TracingDir;
use crate::ftrace::bindings;
use crate::ftrace::poll::PollTable;
use core::ffi::CStr;
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::ffi;
use kernel::prelude::*;
use kernel::uaccess::UserPtr;
use kernel::uaccess::UserSlice;

/// Bytes that are asked for at once.
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

    /// Copies it. The program may change it before the next time.
    pub(crate) fn read(&self) -> Result<KVec<u8>> {
        let start = UserPtr::from_ptr(self.start.cast_mut().cast());
        let mut copy = KVec::new();
        UserSlice::new(start, self.len).read_all(&mut copy, GFP_KERNEL)?;
        Ok(copy)
    }
}

/// A file of the kernel, opened with the access mode and the credentials of a file of rhist.
///
/// Task context, with no lock of the kernel's held: its operations take `event_mutex` and more.
pub(crate) struct KernelFile(NonNull<bindings::file>);

impl KernelFile {
    /// Opens `real` beside `ours`, without emptying it.
    ///
    /// # Safety
    ///
    /// `ours` must be open, or being opened, and `real` a file of the same file system.
    pub(super) unsafe fn open(ours: *mut bindings::file, real: &Dentry) -> Result<Self> {
        // SAFETY: `ours` is being opened, and `real` is in the kernel's own tracefs, as what ours shows.
        unsafe { Self::open_beside(ours, real.as_ptr(), (*ours).f_flags & bindings::O_ACCMODE) }
    }

    /// Opens `real` for what `flags` say.
    ///
    /// # Safety
    ///
    /// As for [`KernelFile::open`].
    unsafe fn open_beside(
        file: *mut bindings::file,
        real: *mut bindings::dentry,
        flags: u32,
    ) -> Result<Self> {
        // SAFETY: `file` is valid, and `real` a dentry of the same file system.
        let opened = from_err_ptr(unsafe { bindings::rhist_open_beside(file, real, flags) })?;
        NonNull::new(opened).map(Self).ok_or(ENOMEM)
    }

    /// Opens the same file once more.
    fn reopen(&self, flags: u32) -> Result<Self> {
        // SAFETY: The file is open, and its own path is one of the same file system.
        unsafe { Self::open_beside(self.0.as_ptr(), dentry_of(self.0.as_ptr()), flags) }
    }

    /// Opens another file for reading, as [`KernelFile::other`].
    pub(crate) fn open_other_for_reading(&self, dir: &TracingDir, path: &[&CStr]) -> Result<Self> {
        self.open_other(dir, path, bindings::O_RDONLY)
    }

    /// Opens another file, by its path in a tracing directory. Permissions are not looked at.
    pub(in crate::ftrace) fn open_other(
        &self,
        dir: &TracingDir,
        path: &[&CStr],
        flags: u32,
    ) -> Result<Self> {
        let mut real = dir.0.clone();
        for name in path {
            real = real.lookup(name.to_bytes())?;
        }
        // SAFETY: This file is open, and a tracing directory is in the same file system.
        unsafe { Self::open_beside(self.0.as_ptr(), real.as_ptr(), flags) }
    }

    /// The top tracing directory.
    pub(crate) fn top(&self) -> TracingDir {
        // SAFETY: The file is open, and keeps its dentry.
        let mut dir = unsafe { Dentry::of(dentry_of(self.0.as_ptr())) };
        while !dir.is_root() {
            dir = dir.parent();
        }
        TracingDir(dir)
    }

    /// The whole text, as it is now.
    ///
    /// # Errors
    ///
    /// What the kernel's `read` fails with; `EINVAL` if it is not open for reading, or no file
    /// that is read as a sequence.
    pub(crate) fn read(&self) -> Result<KVVec<u8>> {
        let mut text = KVVec::new();
        let mut pos = 0;
        loop {
            let len = text.len();
            text.resize(len + CHUNK, 0, GFP_KERNEL)?;
            // SAFETY: The file is open; there are `CHUNK` bytes at the end of the text. Nobody else
            // moves the position, which is our own.
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

    /// As [`KernelFile::read`], also if it is open for writing only: the text is not for the program that
    /// opened it.
    pub(crate) fn reopen_and_read(&self) -> Result<KVVec<u8>> {
        self.reopen(bindings::O_RDONLY)?.read()
    }

    /// Writes the buffer of a program to it, all or nothing.
    ///
    /// The kernel copies the buffer itself. A program that changed it after [`UserBuffer::read`] could as well
    /// have written to the kernel's file in the first place.
    ///
    /// # Errors
    ///
    /// What the kernel's `write` fails with; `EINVAL` if it is not open for writing.
    pub(crate) fn write(&self, data: &UserBuffer) -> Result {
        // SAFETY: The file is open. What `data` points to is checked by who reads it.
        let done = unsafe { bindings::rhist_write(self.0.as_ptr(), data.start, data.len) };
        written(done, data.len)
    }

    /// Writes a text. Takes `mmap_lock`.
    ///
    /// # Errors
    ///
    /// As for [`KernelFile::write`]; `EPERM` without `CAP_SYS_ADMIN`; `ENOMEM` if the running task can have no
    /// memory for it.
    pub(crate) fn write_text(&self, text: &[u8]) -> Result {
        // SAFETY: The file is open, and `text` is valid for its length.
        let done = unsafe {
            bindings::rhist_write_text(self.0.as_ptr(), text.as_ptr().cast(), text.len())
        };
        written(done, text.len())
    }

    /// Whether `poll(2)` of it returns an error. If not, the caller waits for one, too.
    pub(super) fn poll_error(&self, table: &PollTable<'_>) -> bool {
        // SAFETY: The file is open as long as ours, and the table is for this call.
        unsafe { bindings::rhist_poll_error(self.0.as_ptr(), table.as_ptr()) }
    }

    /// Empties the file, by opening it once more with `O_TRUNC`.
    ///
    /// # Errors
    ///
    /// What the kernel's `open` fails with.
    pub(crate) fn truncate(&self) -> Result {
        self.reopen(bindings::O_WRONLY | bindings::O_TRUNC)
            .map(drop)
    }
}

/// What became of a write of `len` bytes: `EIO` if it was not all of them.
fn written(done: isize, len: usize) -> Result {
    match usize::try_from(done) {
        Ok(done) if done == len => Ok(()),
        Ok(_) => Err(EIO),
        Err(_) => Err(Error::from_errno(done as ffi::c_int)),
    }
}

impl Drop for KernelFile {
    fn drop(&mut self) {
        // SAFETY: The reference is ours to give back.
        unsafe { bindings::fput(self.0.as_ptr()) }
    }
}

// SAFETY: References on files may be given back by any task.
unsafe impl Send for KernelFile {}
// SAFETY: Reading and writing lock for themselves, as the kernel's operations do.
unsafe impl Sync for KernelFile {}
