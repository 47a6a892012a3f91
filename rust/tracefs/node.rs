// SPDX-License-Identifier: GPL-2.0

//! Nodes: `src/mirror/` implements the directories and files, and says what to make of each.

use super::{
    dentry::{
        Dentry,
        DentryKind,
        Inode, //
    },
    kernel_file::{
        KernelFile,
        UserBuffer, //
    },
    special::SpecialFops, //
};
use crate::rust::poll::{
    Mask,
    PollTable, //
};
use kernel::{
    mm::virt::VmaNew,
    prelude::*,
    sync::Arc, //
};

/// The contents of a file, which are read in pieces. Task context, may sleep.
pub(crate) trait Contents: Send + Unpin {
    /// A piece of the text.
    type Piece: AsRef<[u8]> + Send + Sync;

    /// Returns the next piece, which is not empty; `None` at the end. After an error, the next call
    /// returns the piece that this one should have returned.
    fn next_piece(&mut self) -> Result<Option<Arc<Self::Piece>>>;

    /// Starts again with the first piece.
    fn rewind(&mut self);
}

/// Callbacks of an object, implemented by `src/mirror/`.
///
/// Every function is called in task context and may sleep, without locks unless documented
/// otherwise. `real` is the kernel's dentry that the object is for: the directory that a directory
/// mirrors, the directory that a file of rhist is in, or the kernel's file. The callers check first
/// that the kernel has not removed it, and that the object is not [gone](NodeOps::is_gone).
pub(crate) trait NodeOps: Send + Sync + Sized + 'static {
    /// Identifies an object among the objects for the same dentry of the kernel.
    type Id: Copy + Ord + Send + Unpin;

    /// The contents of a file, kept while it is read.
    type Contents: Contents;

    /// State of an open file.
    type OpenState: Send + Sync;

    /// Looks up a name in a directory; `ENOENT` if it does not exist. Called with `i_rwsem` of
    /// rhist's directory held: see [`Dentry::lookup_nested`].
    fn lookup(&self, real: &Dentry, name: &[u8]) -> Result<LookedUp>;

    /// Returns whether `readdir` leaves out this name of the kernel's directory. Called with
    /// `i_rwsem` of the kernel's directory held shared.
    fn hides(&self, name: &[u8]) -> bool;

    /// Passes rhist's entries in a directory to `each`, in the order of their indexes, from the
    /// index `from` on, until that returns false. An entry keeps its index. Fails with `ENOMEM`.
    fn entries(
        &self,
        real: &Dentry,
        from: u64,
        each: impl FnMut(u64, &[u8], DentryKind) -> bool,
    ) -> Result;

    /// Notifies of a subdirectory that `rmdir(2)` has removed.
    fn child_removed(&self);

    /// Looks up, in the kernel's directory, the file that a file of rhist replaces, or which is
    /// opened with it; `ENOENT` if it does not exist. May take `i_rwsem` of the kernel's directory.
    fn behind(&self, real: &Dentry) -> Result<Dentry>;

    /// Returns whether a directory that the kernel does not have is gone, or the one that this file
    /// is in: then it will not come back. Takes no lock.
    fn is_gone(&self) -> bool;

    /// Returns whether the file is read in rounds: EOF ends one, and the next read begins the next
    /// one, at position 0. Such a file is read and polled after `real` was removed, too.
    fn is_read_in_rounds(&self) -> bool;

    /// Opens a file, and truncates it if `truncate` is set. An error is returned by `open(2)`. With
    /// `nonblock` (`O_NONBLOCK`), it does not wait for others. `kernel` is open already, and was
    /// not truncated; here and below it is `None` for a list of triggers that can only be read and
    /// is empty.
    fn open(
        &self,
        real: &Dentry,
        kernel: Option<&KernelFile>,
        truncate: bool,
        nonblock: bool,
    ) -> Result<Self::OpenState>;

    /// Returns the contents of a file as they are now. `nonblock` as in [`NodeOps::open`]: fails
    /// with `EAGAIN` if they would have to be waited for.
    fn read(
        &self,
        real: &Dentry,
        kernel: Option<&KernelFile>,
        open: &Self::OpenState,
        nonblock: bool,
    ) -> Result<Self::Contents>;

    /// Handles one `write(2)`. Returns the number of bytes by which the position of the file moves.
    fn write(
        &self,
        real: &Dentry,
        kernel: Option<&KernelFile>,
        open: &Self::OpenState,
        data: &UserBuffer,
    ) -> Result<usize>;

    /// Queues the caller of `poll(2)` with `table`, then returns the events that the file is ready
    /// for. An error is reported as [`poll::ERR`](crate::rust::poll::ERR). Not called if `kernel`
    /// reports that already.
    fn poll(
        &self,
        real: &Dentry,
        kernel: Option<&KernelFile>,
        open: &Self::OpenState,
        table: &PollTable<'_>,
    ) -> Result<Mask>;

    /// Handles one `mmap(2)`; `ENODEV` for a file that cannot be mapped. Called with mmap_lock held
    /// for writing. The mapping keeps the file open.
    fn map(&self, real: &Dentry, kernel: Option<&KernelFile>, vma: &VmaNew) -> Result;
}

/// Result of the lookup of a name in a directory of rhist.
pub(crate) struct LookedUp {
    pub(crate) inode: Inode,
    /// The kernel's file or directory with whose removal the name becomes stale. If that is below
    /// `events/`, the name stays in the dentry cache until then.
    pub(crate) lasts_as: Dentry,
}

/// The kind of an object.
pub(crate) enum ObjectType {
    /// A directory that mirrors one of the kernel's.
    Dir,
    /// A directory of rhist, with these permission bits. The kernel has none like it: `real` is the
    /// root of tracefs.
    Folder { mode: u16 },
    /// A file of the kernel, with the kernel's operations and data.
    Kernel,
    /// A file of rhist. Without `polls` it is always ready, and `epoll_ctl(2)` fails with `EPERM`.
    /// Without `writes`, `write(2)` fails with `EINVAL`.
    File {
        access: Access,
        polls: bool,
        writes: bool,
    },
    /// A file of rhist with its own file operations. `size` is shown by `stat(2)`, in bytes.
    Special {
        access: Access,
        operations: Arc<SpecialFops>,
        size: u64,
    },
}

/// Permissions and ownership of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Permission bits.
    pub(crate) mode: u16,
    /// User ID of the owner, or [`Access::SAME`].
    pub(crate) uid: u32,
    /// Group ID, or [`Access::SAME`].
    pub(crate) gid: u32,
}

impl Access {
    /// Keeps the ID of the kernel's directory.
    pub(crate) const SAME: u32 = u32::MAX;
}
