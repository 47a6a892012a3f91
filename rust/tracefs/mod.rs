// SPDX-License-Identifier: GPL-2.0

//! A mirror of the tracing directory with files of ours in it.
//!
//! [`Mirror`] makes one directory in the root of tracefs. Whatever is looked up below it is looked
//! up in the kernel's own tracing directory at that moment, so events appear and vanish with the
//! kernel's. A directory becomes a directory of ours, which mirrors it in turn; a file becomes a
//! file of ours with the kernel's operations and the kernel's data. Files that an [`Overlay`]
//! names are put beside them, or in the place of the kernel's file of that name.
//!
//! # Lifetime
//!
//! Each object that was looked up is a [`mirror::Node`], which holds a reference on its inode and on the
//! kernel's dentry behind it. The nodes are kept in a tree until nobody but the tree holds the
//! inode, and are the means to make every inode useless when the module goes: a current
//! directory, an `O_PATH` descriptor or an inotify watch does not pin the module. An open file or
//! directory does, those with the kernel's operations included.
//!
//! # Locks
//!
//! `i_rwsem` of our directory, then `i_rwsem` of the kernel's directory that it mirrors; then, with
//! the latter released again, the nodes of the mirror.
//!
//! C headers: `include/linux/fs.h`, `include/linux/dcache.h`, `include/linux/tracefs.h`.

mod dentry;
mod dir;
mod file;
mod gate;
mod kernel_file;
mod mirror;
mod special;

use super::bindings;
use super::poll::Mask;
use super::poll::PollTable;
use core::ffi::CStr;
use core::ptr::NonNull;
use dentry::Dentry;
use kernel::mm::virt::VmaNew;
use kernel::prelude::*;

pub(super) use gate::wait as wait_for_open_files;
pub(crate) use gate::Entry;
pub(crate) use kernel_file::KernelFile;
pub(crate) use kernel_file::Written;
pub(crate) use mirror::Mirror;
pub(crate) use special::Operations;
pub(crate) use special::Special;

/// The directories of a tracing directory that differ in what is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dir {
    /// The tracing directory itself.
    Root,
    /// `instances/`
    Instances,
    /// `instances/<instance>/`, a tracing directory of its own.
    Instance,
    /// `events/`
    Events,
    /// `events/<system>/`
    System,
    /// `events/<system>/<event>/`
    Event,
    /// Any other.
    Other,
}

impl Dir {
    /// What the directory `name` in this one is.
    fn child(self, name: &[u8]) -> Self {
        match self {
            Dir::Root | Dir::Instance if name == b"events" => Dir::Events,
            Dir::Root if name == b"instances" => Dir::Instances,
            Dir::Instances => Dir::Instance,
            Dir::Events => Dir::System,
            Dir::System => Dir::Event,
            _ => Dir::Other,
        }
    }
}

/// A tracing directory: the top one or that of an instance.
///
/// It does not keep an instance from being removed. One that is made anew by the same name has
/// another directory.
#[derive(Clone)]
pub(crate) struct TracingDir(Dentry);

impl TracingDir {
    /// Is it that of the top instance?
    pub(crate) fn is_top(&self) -> bool {
        self.0.is_root()
    }

    /// The name, which is that of the instance.
    pub(crate) fn name(&self) -> &CStr {
        self.0.name()
    }

    /// Has the instance been removed?
    pub(crate) fn removed(&self) -> bool {
        self.0.removed()
    }

    /// The instance itself.
    ///
    /// # Errors
    ///
    /// `ENODEV` if it has been removed, or only shows what an earlier boot has left; `ENOMEM`.
    ///
    /// # Safety
    ///
    /// event_mutex must be held as long as the result is used: an instance is removed with it held,
    /// its files before itself.
    pub(crate) unsafe fn array(&self) -> Result<NonNull<bindings::trace_array>> {
        // Any file of it that is there as long as the instance would do.
        let file = match self.0.lookup(b"trace_marker") {
            Err(error) if error == ENOENT => Err(ENODEV),
            file => file,
        }?;
        if self.removed() {
            return Err(ENODEV);
        }
        // SAFETY: The file is referenced.
        let array = unsafe { bindings::rhist_inode_private(file.inode()) };
        NonNull::new(array.cast()).ok_or(ENODEV)
    }
}

impl PartialEq for TracingDir {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_ptr() == other.0.as_ptr()
    }
}

/// The event in whose directory a file is.
#[derive(Clone, Copy)]
pub(crate) struct EventName<'a> {
    pub(crate) dir: &'a TracingDir,
    pub(crate) system: &'a CStr,
    pub(crate) event: &'a CStr,
}

/// A file of ours.
pub(crate) struct OverlayFile {
    pub(crate) name: &'static CStr,
    /// Permission bits, unless [`Overlay::access`] says which.
    pub(crate) mode: u16,
    /// It exists only where the kernel has a file of this name.
    pub(crate) only_over: bool,
    /// It can be polled. Others are always ready, and refused by epoll.
    pub(crate) polls: bool,
    /// It is in the kernel's tracing directory as well, unless that has a file of this name. For
    /// files in [`Dir::Root`].
    pub(crate) in_kernels: bool,
}

/// Who may open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Permission bits.
    pub(crate) mode: u16,
    /// The number of the owner; `u32::MAX` stands for that of the directory.
    pub(crate) uid: u32,
    /// That of the group, likewise.
    pub(crate) gid: u32,
}

/// A file of ours that somebody has open, or is opening.
#[derive(Clone, Copy)]
pub(crate) struct Opened<'a> {
    /// Its name, as [`Overlay::files`] has it.
    pub(crate) name: &'static CStr,
    /// The tracing directory that it is in or below.
    pub(crate) dir: &'a TracingDir,
    /// `None` outside of [`Dir::Event`].
    pub(crate) event: Option<EventName<'a>>,
    /// The kernel's file in whose place it is, if there is one.
    pub(crate) kernel: Option<&'a KernelFile>,
}

/// Files of ours in a mirrored tracing directory.
///
/// Every function is called in task context and may sleep, without locks unless it says otherwise.
/// Those of a file are not called any more when the kernel has removed the directory that the file
/// is in: that fails with `ENODEV`.
pub(crate) trait Overlay: Send + Sync + 'static {
    /// What a file is read as.
    type Text: AsRef<[u8]> + Send + Unpin;

    /// What is remembered while a file is open.
    type Open: Send + Sync;

    /// The files of a directory of kind `dir`.
    fn files(dir: Dir) -> &'static [OverlayFile];

    /// Who may open a file; `None` if its mode alone says that.
    fn access(&self, dir: Dir, name: &CStr) -> Option<Access>;

    /// The operations of a file that has its own; the functions below are not called for it.
    fn special(&self, dir: Dir, name: &CStr) -> Option<&Operations>;

    /// The file is being opened, to be emptied first if `truncate`; an error is that of `open(2)`.
    /// The kernel's file is already open, and not emptied.
    fn open(&self, file: &Opened<'_>, truncate: bool) -> Result<Self::Open>;

    /// The whole text of the file as it is now.
    fn read(&self, file: &Opened<'_>, open: &Self::Open) -> Result<Self::Text>;

    /// One `write(2)` of at least one byte.
    fn write(&self, file: &Opened<'_>, data: &Written) -> Result;

    /// What the file is ready for. Has the caller wait for a change of that, by `table`, before it
    /// looks. An error is [`poll::ERR`](super::poll::ERR), which the mirror adds by itself when the
    /// kernel's file of this name has it.
    fn poll(&self, file: &Opened<'_>, open: &Self::Open, table: &PollTable<'_>) -> Result<Mask>;

    /// One `mmap(2)`, with mmap_lock held; `ENODEV` for a file that cannot be mapped. The mapping
    /// keeps the file open.
    fn map(&self, file: &Opened<'_>, vma: &VmaNew) -> Result;

    /// `rmdir(2)` below the mirror has had the kernel remove an instance. One that is removed in
    /// the kernel's own directory goes unnoticed. Directories of the mirror are locked.
    fn instance_removed(&self);
}
