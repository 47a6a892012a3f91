// SPDX-License-Identifier: MIT OR Apache-2.0

//! Locks on files (`flock(2)`).

use std::fs::File;
use std::ops::Deref;
use std::ops::DerefMut;

use rustix::fs::FlockOperation;
use rustix::fs::flock;
use rustix::io::Result;

/// A file that can be locked. Dropping it removes the lock.
///
/// Closing the file is not enough for that: a process that another thread has forked has it open,
/// too, until it executes its program, and would keep the lock for so long.
#[derive(Debug)]
pub struct LockFile(File);

impl LockFile {
    /// Not locked yet.
    pub fn new(file: File) -> Self {
        Self(file)
    }

    /// Locks the file. Fails with `EWOULDBLOCK` if another open file has a lock on it.
    pub fn lock(&self) -> Result<()> {
        flock(&self.0, FlockOperation::NonBlockingLockExclusive)
    }

    /// Takes a shared lock. Fails with `EWOULDBLOCK` if another open file has an exclusive one.
    pub fn lock_shared(&self) -> Result<()> {
        flock(&self.0, FlockOperation::NonBlockingLockShared)
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // It fails only where there can be no lock.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

impl Deref for LockFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for LockFile {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A duplicate of the file stands in for the one that a forked process has.
    #[test]
    fn no_forked_process_keeps_a_lock() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let open = || LockFile::new(File::open(&path).unwrap());
        let first = open();
        first.lock().unwrap();
        let _forked = first.try_clone().unwrap();
        assert!(open().lock().is_err() && open().lock_shared().is_err());
        drop(first);
        open().lock().unwrap();
        let [second, third] = [open(), open()];
        second.lock_shared().unwrap();
        third.lock_shared().unwrap();
        assert!(open().lock().is_err());
    }
}
