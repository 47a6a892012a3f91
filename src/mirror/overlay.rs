// SPDX-License-Identifier: GPL-2.0

//! Files of rhist in a mirrored tracing directory.

use super::{
    Dir,
    Numbered, //
};
use crate::rust::{
    poll::{
        Mask,
        PollTable, //
    },
    tracefs::{
        Access,
        Contents,
        Dentry,
        EventName,
        KernelFile,
        SpecialFops,
        TracingDir,
        UserBuffer, //
    },
};
use kernel::{
    mm::virt::VmaNew,
    prelude::*,
    sync::Arc, //
};

/// A file of rhist in a mirrored directory, with the properties that the mirror handles.
///
/// Start from [`OverlayFile::new`], and set those that differ: `OverlayFile { polls: true,
/// ..OverlayFile::new(…) }`.
pub(crate) struct OverlayFile<T: Overlay> {
    pub(crate) name: &'static CStr,
    /// Permission bits, unless [`FileOps::access`] returns others. A file without write permission
    /// has no `write()`.
    pub(crate) mode: u16,
    pub(crate) ops: &'static dyn FileOps<T>,
    /// System and name of the only event whose directory has the file. For files in [`Dir::Event`].
    pub(crate) only_of: Option<[&'static CStr; 2]>,
    /// The file exists only where the kernel has a file of this name, or [`OverlayFile::stand_in`].
    pub(crate) replaces_only: bool,
    /// The kernel's file that is opened with this one where the kernel has none of its name.
    pub(crate) stand_in: Option<&'static CStr>,
    /// The file has `poll()`. Without it a file is always ready, and epoll refuses it.
    pub(crate) polls: bool,
    /// The file is read in rounds: EOF ends one, and the next read begins the next one, at position
    /// 0. It can be read after its directory was removed.
    pub(crate) rounds: bool,
    /// The file is in the root of tracefs, too, unless the kernel has a file of this name there.
    /// For files in [`Dir::Root`].
    pub(crate) also_in_tracefs_root: bool,
    /// The file can be opened while the kernel is locked down (`LOCKDOWN_TRACEFS`).
    pub(crate) ignores_lockdown: bool,
}

impl<T: Overlay> OverlayFile<T> {
    /// Describes a file without `poll()`, in the mirror only, that lockdown applies to.
    pub(crate) const fn new(name: &'static CStr, mode: u16, ops: &'static dyn FileOps<T>) -> Self {
        Self {
            name,
            mode,
            ops,
            only_of: None,
            replaces_only: false,
            stand_in: None,
            polls: false,
            rounds: false,
            also_in_tracefs_root: false,
            ignores_lockdown: false,
        }
    }

    /// Returns whether it may be in the directory of an event, whose counterpart in the kernel is
    /// `real`.
    pub(super) fn is_of(&self, real: &Dentry) -> bool {
        let names = || [real.parent_name(), real.name()];
        self.only_of.is_none_or(|only| only == names())
    }

    /// Finds the kernel's file behind this one with `lookup`. Fails as it does; with `ENOENT` if
    /// the kernel has neither the file nor its stand-in.
    pub(super) fn in_kernel<D>(&self, lookup: impl Fn(&[u8]) -> Result<D>) -> Result<D> {
        match (lookup(self.name.to_bytes()), self.stand_in) {
            (Err(err), Some(stand_in)) if err == ENOENT => lookup(stand_in.to_bytes()),
            (found, _) => found,
        }
    }
}

/// The folder of rhist in the root of a mirror.
pub(crate) struct OverlayFolder {
    pub(crate) name: &'static CStr,
    /// Permission bits of the folder, and of each folder in it.
    pub(crate) mode: u16,
}

/// A file of rhist with operations of its own.
pub(crate) struct OverlaySpecial {
    pub(crate) operations: Arc<SpecialFops>,
    /// The size that `stat(2)` shows, in bytes.
    pub(crate) size: u64,
}

/// A file of rhist that is open, or being opened.
#[derive(Clone, Copy)]
pub(crate) struct Opened<'a> {
    /// The tracing directory that it is in or below.
    pub(crate) dir: &'a TracingDir,
    /// The event in whose directory it is. `None` outside of [`Dir::Event`]; see [`Opened::event`].
    pub(super) event: Option<EventName<'a>>,
    /// The folder for a number that it is in. `None` outside of [`Dir::Numbered`]; see
    /// [`Opened::folder`].
    pub(super) folder: Option<Numbered>,
    /// The kernel's file that it replaces, or the stand-in for that, if the kernel has either. A
    /// list of triggers that was opened only to be read is left out while it is empty.
    pub(crate) kernel: Option<&'a KernelFile>,
    /// The file must not wait (`O_NONBLOCK`).
    pub(crate) nonblock: bool,
    /// The kernel's directory that it is in. Removed only while a file is used that is read in
    /// [rounds](OverlayFile::rounds).
    pub(crate) real: &'a Dentry,
}

impl<'a> Opened<'a> {
    /// Returns the event of a file in [`Dir::Event`]. Fails with `ENOENT` for all other files.
    pub(crate) fn event(&self) -> Result<EventName<'a>> {
        self.event.ok_or(ENOENT)
    }

    /// Returns the folder of a file in [`Dir::Numbered`]. Fails with `ENOENT` for all other files.
    pub(crate) fn folder(&self) -> Result<Numbered> {
        self.folder.ok_or(ENOENT)
    }
}

/// The files of rhist in a mirrored tracing directory, and their shared state.
pub(crate) trait Overlay: Send + Sync + Sized + 'static {
    /// Text of a file, kept while it is read.
    type Contents: Contents;

    /// State of an open file.
    type OpenState: Default + Send + Sync;

    /// The folder of rhist in the root. Its files are in [`Dir::Folder`]. It also has a folder for
    /// each number, with the files in [`Dir::Numbered`].
    const FOLDER: OverlayFolder;

    /// Returns the folder that this number has now in [`Overlay::FOLDER`]. May sleep.
    fn numbered(&self, number: u32) -> Option<Numbered>;

    /// Returns whether a number still has a folder. Takes no lock.
    fn lasts(&self, folder: Numbered) -> bool;

    /// Returns the numbers that have a folder in [`Overlay::FOLDER`], in ascending order. May
    /// sleep. Fails with `ENOMEM`.
    fn numbers(&self) -> Result<KVVec<u32>>;

    /// Returns the files in a directory of kind `dir`, the same for all numbers.
    fn files(dir: Dir) -> &'static [OverlayFile<Self>];

    /// Called after `rmdir(2)` below the mirror had the kernel remove an instance. Not called if
    /// the instance is removed in the kernel's own directory.
    fn instance_removed(&self);
}

/// Operations of a file of rhist; `T` is the state shared by the files.
///
/// Every function is called in task context and may sleep; no lock is held unless its documentation
/// says so. After the directory of the file was removed, none is called, and the system
/// call fails with `ENODEV`; but [`FileOps::read`] and [`FileOps::poll`] of a file with
/// [`OverlayFile::rounds`] are.
pub(crate) trait FileOps<T: Overlay>: Sync {
    /// Returns owner and permissions, if a setting decides them; `None` if the file has
    /// [`OverlayFile::mode`].
    fn access(&self, _shared: &T) -> Option<Access> {
        None
    }

    /// Returns the operations of a file that has its own, such as `ioctl()`. None of the functions
    /// below is called for it. `folder` has the number of the directory, if that is
    /// a [`Dir::Numbered`]. Fails with `ENOMEM`.
    fn special(&self, _shared: &T, _folder: Option<Numbered>) -> Result<Option<OverlaySpecial>> {
        Ok(None)
    }

    /// Opens the file, and empties it if `truncate`. An error fails `open(2)`. The kernel's file is
    /// already open, and not emptied.
    fn open(&self, _shared: &T, _file: &Opened<'_>, _truncate: bool) -> Result<T::OpenState> {
        Ok(T::OpenState::default())
    }

    /// Returns the contents as they are now.
    fn read(&self, _shared: &T, _file: &Opened<'_>, _open: &T::OpenState) -> Result<T::Contents> {
        Err(EINVAL)
    }

    /// Handles one `write(2)`. Returns the number of bytes by which the position of the file moves.
    fn write(
        &self,
        _shared: &T,
        _file: &Opened<'_>,
        _open: &T::OpenState,
        _data: &UserBuffer,
    ) -> Result<usize> {
        Err(EINVAL)
    }

    /// Returns the events that the file is ready for. First adds the caller to `table`, so that a
    /// change wakes it. An error becomes [`poll::ERR`](crate::rust::poll::ERR). The mirror itself
    /// reports that, without a call, if the kernel's file of this name does. Only for files with
    /// [`OverlayFile::polls`].
    fn poll(
        &self,
        _shared: &T,
        _file: &Opened<'_>,
        _open: &T::OpenState,
        _table: &PollTable<'_>,
    ) -> Result<Mask> {
        Err(EINVAL)
    }

    /// Handles one `mmap(2)`, with mmap_lock held. The mapping keeps the file open. `ENODEV` for a
    /// file that cannot be mapped.
    fn map(&self, _shared: &T, _file: &Opened<'_>, _vma: &VmaNew) -> Result {
        Err(ENODEV)
    }
}
