// SPDX-License-Identifier: GPL-2.0

//! Files of rhist in a mirrored tracing directory.

use super::Dir;
use crate::ftrace::poll::Mask;
use crate::ftrace::poll::PollTable;
use crate::ftrace::tracefs::Access;
use crate::ftrace::tracefs::Contents;
use crate::ftrace::tracefs::EventName;
use crate::ftrace::tracefs::KernelFile;
use crate::ftrace::tracefs::SpecialFops;
use crate::ftrace::tracefs::TracingDir;
use crate::ftrace::tracefs::UserBuffer;
use kernel::mm::virt::VmaNew;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A file of rhist.
pub(crate) struct OverlayFile {
    pub(crate) name: &'static CStr,
    /// Permission bits, unless [`Overlay::access`] says which. A file that nobody may write has no `write()`.
    pub(crate) mode: u16,
    /// The file exists only where the kernel has a file of this name.
    pub(crate) only_over: bool,
    /// The file has `poll()`. Without it a file is always ready, and epoll refuses it.
    pub(crate) polls: bool,
    /// It is in the kernel's tracing directory as well, unless that has a file of this name. For
    /// files in [`Dir::Root`].
    pub(crate) in_kernels: bool,
}

/// A file of rhist that is open, or being opened.
#[derive(Clone, Copy)]
pub(crate) struct Opened<'a> {
    /// Its name, as [`Overlay::files`] has it.
    pub(crate) name: &'static CStr,
    /// The tracing directory that it is in or below.
    pub(crate) dir: &'a TracingDir,
    /// `None` outside of [`Dir::Event`].
    pub(crate) event: Option<EventName<'a>>,
    /// The kernel's file in whose place it is, if there is one. A list of triggers that was opened to be read
    /// only counts as none while it is empty.
    pub(crate) kernel: Option<&'a KernelFile>,
}

/// Files of rhist in a mirrored tracing directory.
///
/// Every function is called in task context and may sleep, without locks unless it says otherwise.
/// Those of a file are not called any more when the kernel has removed the directory that the file
/// is in: that fails with `ENODEV`.
pub(crate) trait Overlay: Send + Sync + 'static {
    /// The contents of a file, kept while it is read.
    type Contents: Contents;

    /// State of an open file.
    type OpenState: Send + Sync;

    /// The files of a directory of kind `dir`.
    fn files(dir: Dir) -> &'static [OverlayFile];

    /// Who may open a file; `None` if its mode alone says that.
    fn access(&self, dir: Dir, name: &CStr) -> Option<Access>;

    /// The operations of a file that has its own; the functions below are not called for it.
    fn special(&self, dir: Dir, name: &CStr) -> Option<&Arc<SpecialFops>>;

    /// Opens a file, and empties it if `truncate`. An error is returned by `open(2)`. The kernel's
    /// file is already open, and not emptied.
    fn open(&self, file: &Opened<'_>, truncate: bool) -> Result<Self::OpenState>;

    /// The contents of the file as they are now.
    fn read(&self, file: &Opened<'_>, open: &Self::OpenState) -> Result<Self::Contents>;

    /// One `write(2)`. Returns by how much the position of the file moves.
    fn write(&self, file: &Opened<'_>, data: &UserBuffer) -> Result<usize>;

    /// What the file is ready for. Has the caller wait for a change of that, by `table`, before it
    /// looks. An error is [`poll::ERR`](crate::ftrace::poll::ERR), which the mirror adds by
    /// itself when the kernel's file of this name has it.
    fn poll(
        &self,
        file: &Opened<'_>,
        open: &Self::OpenState,
        table: &PollTable<'_>,
    ) -> Result<Mask>;

    /// One `mmap(2)`, with mmap_lock held; `ENODEV` for a file that cannot be mapped. The mapping
    /// keeps the file open.
    fn map(&self, file: &Opened<'_>, vma: &VmaNew) -> Result;

    /// `rmdir(2)` below the mirror has had the kernel remove an instance. One that is removed in
    /// the kernel's own directory goes unnoticed.
    fn instance_removed(&self);
}
