// SPDX-License-Identifier: GPL-2.0

//! Files that programs have mapped, for tasks that may read them.

use super::{
    bindings,
    user_stack::{
        self,
        File, //
    },
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::from_err_ptr,
    ffi,
    iov::IovIterDest,
    prelude::*, //
};

/// A reference to a file.
///
/// # Invariants
///
/// Owns a reference to an open file.
struct FileRef(NonNull<bindings::file>);

impl Drop for FileRef {
    fn drop(&mut self) {
        // SAFETY: By the type invariant `self` owns a reference, which is not used afterwards.
        unsafe { bindings::fput(self.0.as_ptr()) }
    }
}

// SAFETY: A reference to a file may be dropped by any task.
unsafe impl Send for FileRef {}
// SAFETY: All that is done with a shared reference may be done concurrently: the file operations
// lock for themselves, and `f_pos` is not used.
unsafe impl Sync for FileRef {}

/// The file of a mapping.
pub(crate) struct MappedFile(FileRef);

impl MappedFile {
    /// Takes another reference to a file. Any context.
    ///
    /// # Safety
    ///
    /// The caller must have a reference to the file.
    pub(crate) unsafe fn hold(file: File) -> Result<Self> {
        let held = NonNull::new(ptr::with_exposed_provenance_mut(file)).ok_or(ENOENT)?;
        // SAFETY: The caller has a reference to the file.
        unsafe { user_stack::get(file) };
        // INVARIANT: The reference was taken above.
        Ok(Self(FileRef(held)))
    }

    /// Opens the file for reading, with the credentials of the running task, and without locks.
    ///
    /// # Errors
    ///
    /// `EACCES` if the task may not read it, or it is not a regular file; as `open()` of its file
    /// system, which may be FUSE, and wait.
    pub(crate) fn open(&self) -> Result<ReadFile> {
        // SAFETY: By the type invariant the file is open.
        let opened = from_err_ptr(unsafe { bindings::rhist_open_mapped(self.0 .0.as_ptr()) })?;
        // INVARIANT: `rhist_open_mapped` returns an open file with a reference.
        NonNull::new(opened)
            .map(|file| ReadFile(FileRef(file)))
            .ok_or(ENOMEM)
    }
}

/// A mapped file that is open for reading.
pub(crate) struct ReadFile(FileRef);

impl ReadFile {
    /// Reads at `pos`, which is advanced, and returns the number of bytes. Fails as `read(2)`. May
    /// wait, for as long as the file system does.
    pub(crate) fn read(&self, pos: &mut i64, to: &mut IovIterDest<'_>) -> Result<usize> {
        // SAFETY: By the type invariant the file is open. `to` is a valid iterator, borrowed
        // exclusively. The type is the same one, from another run of bindgen.
        let done =
            unsafe { bindings::rhist_read_mapped(self.0 .0.as_ptr(), to.as_raw().cast(), pos) };
        usize::try_from(done).map_err(|_| Error::from_errno(done as ffi::c_int))
    }

    /// The size in bytes.
    pub(crate) fn size(&self) -> i64 {
        // SAFETY: By the type invariant the file is open.
        unsafe { bindings::rhist_size_of_mapped(self.0 .0.as_ptr()) }
    }
}
