// SPDX-License-Identifier: GPL-2.0

//! The callbacks of the VFS for rhist's files.
//!
//! All functions are called in task context, on a file that is open, which pins the module, or is
//! being opened.

use super::{
    dentry::{
        dentry_of,
        Dentry, //
    },
    gate::{
        self,
        ModulePin, //
    },
    kernel_file::{
        KernelFile,
        UserBuffer, //
    },
    node::{
        Contents,
        NodeOps, //
    },
    object::{
        forget,
        object_of,
        Object, //
    },
};
use crate::rust::{
    bindings,
    poll::{
        self,
        Mask,
        PollTable, //
    },
};
use core::{
    cell::Cell,
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    ffi,
    mm::virt::VmaNew,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
};

/// Returns the operations of rhist's files: with `poll` if `polls` is true, and with `write` if
/// `writes` is.
pub(super) fn file_operations<N: NodeOps>(polls: bool, writes: bool) -> bindings::file_operations {
    bindings::file_operations {
        owner: gate::owner(),
        open: Some(open::<N>),
        read: Some(read::<N>),
        write: writes.then_some(write::<N>),
        poll: polls.then_some(poll::<N>),
        mmap: Some(mmap::<N>),
        llseek: Some(llseek),
        release: Some(release::<N>),
        ..Default::default()
    }
}

/// The operations of one of the kernel's files, which may belong to another module.
///
/// # Invariants
///
/// The operations are valid and constant, and `self` owns a reference on their owner, taken by
/// `rhist_get_fops()`.
pub(super) struct KernelFops(NonNull<bindings::file_operations>);

impl KernelFops {
    /// Pins the operations of `real`; `None` if it has been removed, or its owner is being
    /// unloaded.
    pub(super) fn of(real: &Dentry) -> Option<Self> {
        // INVARIANT: `rhist_get_fops` takes the reference.
        // SAFETY: `real` holds a reference on the dentry.
        NonNull::new(unsafe { bindings::rhist_get_fops(real.as_ptr()) }.cast_mut()).map(Self)
    }

    pub(super) fn as_ptr(&self) -> *const bindings::file_operations {
        self.0.as_ptr()
    }

    /// Returns the operations for rhist's file: the kernel's, except `owner`, `open` and `release`.
    /// They are stored at the beginning of its [`Object`].
    pub(super) fn mirrored<N: NodeOps>(&self) -> bindings::file_operations {
        bindings::file_operations {
            owner: gate::owner(),
            open: Some(open_kernel::<N>),
            release: Some(release_kernel::<N>),
            ..**self
        }
    }

    /// Hands the reference over to the file that is being opened.
    fn keep(self) {
        core::mem::forget(self);
    }

    /// Takes the reference back from an open file.
    ///
    /// # Safety
    ///
    /// Must be called once for each call of [`KernelFops::keep`], with the result of
    /// [`KernelFops::as_ptr`].
    unsafe fn from_file(fops: *const bindings::file_operations) -> Option<Self> {
        // INVARIANT: Takes over the reference that `keep` has forgotten.
        NonNull::new(fops.cast_mut()).map(Self)
    }
}

impl Deref for KernelFops {
    type Target = bindings::file_operations;

    fn deref(&self) -> &bindings::file_operations {
        // SAFETY: By the type invariant the operations are valid and constant.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for KernelFops {
    fn drop(&mut self) {
        // SAFETY: By the type invariant `self` owns a reference, which is not used afterwards.
        unsafe { bindings::rhist_put_fops(self.as_ptr()) }
    }
}

/// Returns the operations with which a special file is opened. They are stored at the beginning of
/// its [`Object`]. An open file has [`Object::operations`].
pub(super) fn special_operations<N: NodeOps>() -> bindings::file_operations {
    bindings::file_operations {
        owner: gate::owner(),
        open: Some(open_special::<N>),
        ..Default::default()
    }
}

/// # Safety
///
/// Must be called by the VFS, through [`special_operations`].
unsafe extern "C" fn open_special<N: NodeOps>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    from_result(|| {
        let _pin = ModulePin::new()?;
        // SAFETY: `file` is being opened with the operations at the beginning of its object.
        let object = unsafe { stored_in::<N>(file) };
        if object.removed() {
            // SAFETY: The VFS has set the path of `file`, which holds a reference on the dentry of
            // the object.
            return Err(unsafe { forget::<N>(dentry_of(file), ENOENT) });
        }
        let operations = object.operations.as_ref().ok_or(ENODEV)?.fops();
        // SAFETY: The operations are valid and constant: the object keeps them, and it is not
        // dropped while the file is open. They have the same owner. `file` is not used by others
        // before `open` returns, and the VFS reads `f_op` again afterwards, as for `chrdev_open()`.
        unsafe {
            (*file).f_op = operations;
            let open = (*operations).open.ok_or(ENODEV)?;
            to_result(open(inode, file)).map(|()| 0)
        }
    })
}

/// Returns the object of a file with operations of [`KernelFops::mirrored`], or with
/// [`special_operations`].
///
/// # Safety
///
/// `file` must be open, or being opened, with these operations.
unsafe fn stored_in<'a, N: NodeOps>(file: *mut bindings::file) -> &'a Object<N> {
    // SAFETY: `f_op` points to `Object::fops`, the first field of the object, which is not dropped
    // while the file is open.
    unsafe { &*(*file).f_op.cast() }
}

/// # Safety
///
/// Must be called by the VFS, through [`KernelFops::mirrored`].
unsafe extern "C" fn open_kernel<N: NodeOps>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    from_result(|| {
        let pin = ModulePin::new()?;
        // SAFETY: `file` is being opened with the mirrored operations.
        let object = unsafe { stored_in::<N>(file) };
        // The dentry was still in the cache, but the kernel may have freed the object that
        // `i_private` points to.
        if object.real.removed() {
            // SAFETY: The VFS has set the path of `file`, which holds a reference on the dentry of
            // the object.
            return Err(unsafe { forget::<N>(dentry_of(file), ENODEV) });
        }
        // Fails if the kernel's operations are not the ones that the object has copied.
        let real = KernelFops::of(&object.real)
            .filter(|real| ptr::eq(real.as_ptr(), object.real_fops))
            .ok_or(ENODEV)?;
        if let Some(open) = real.open {
            // SAFETY: `inode` has the `i_private` and `i_cdev` of the kernel's inode, and the
            // kernel's `open` uses nothing else of it. The operations' owner is pinned.
            to_result(unsafe { open(inode, file) })?;
        }
        real.keep();
        pin.keep();
        Ok(0)
    })
}

/// # Safety
///
/// Must be called by the VFS, through [`KernelFops::mirrored`].
unsafe extern "C" fn release_kernel<N: NodeOps>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    // SAFETY: `open_kernel` has called `ModulePin::keep`, and the VFS calls `release` once.
    let _pin = unsafe { ModulePin::from_file() };
    // SAFETY: `file` is open with the mirrored operations.
    let object = unsafe { stored_in::<N>(file) };
    // SAFETY: `open_kernel` has called `KernelFops::keep` for these operations, and the VFS calls
    // `release` once.
    let real = unsafe { KernelFops::from_file(object.real_fops) };
    match real.as_ref().and_then(|real| real.release) {
        // SAFETY: `open_kernel` has called the kernel's `open` with the same inode and file. The
        // owner is pinned until `real` is dropped.
        Some(release) => unsafe { release(inode, file) },
        None => 0,
    }
}

/// An open file of rhist.
#[pin_data]
struct OpenFile<N: NodeOps> {
    open: N::OpenState,
    /// The contents since a read at position 0. Not locked while user memory is written.
    #[pin]
    text: Mutex<Option<Reading<N::Contents>>>,
    /// Number of contents so far.
    begun: Atomic<u64>,
    /// See [`NodeOps::is_read_in_rounds`].
    in_rounds: bool,
    /// The state of the round in `text`: see [`round`].
    round: Atomic<u32>,
    behind: Behind,
}

/// States of a round of a file that is read in rounds.
mod round {
    /// The next read at position 0 begins one.
    pub(super) const NONE: u32 = 0;
    /// It has not been read to its end.
    pub(super) const BEGUN: u32 = 1;
    /// Nothing of it was read, since the read that began it has failed.
    pub(super) const UNREAD: u32 = 2;
}

/// The contents of a file that is being read.
struct Reading<C: Contents> {
    contents: C,
    /// Number of earlier contents of the open file.
    nth: u64,
    /// The piece that was read last.
    piece: Option<Arc<C::Piece>>,
    /// The position at which the piece begins.
    start: usize,
}

impl<C: Contents> Reading<C> {
    fn new(contents: C, nth: u64) -> Self {
        Self {
            contents,
            nth,
            piece: None,
            start: 0,
        }
    }

    /// Returns the piece with the byte at `pos`, and the offset of that byte in it; `None` behind
    /// the end.
    fn at(&mut self, pos: usize) -> Result<Option<(Arc<C::Piece>, usize)>> {
        if pos < self.start {
            self.contents.rewind();
            self.piece = None;
            self.start = 0;
        }
        loop {
            let len = self
                .piece
                .as_deref()
                .map_or(0, |piece| piece.as_ref().len());
            if let Some(piece) = self.piece.as_ref().filter(|_| pos - self.start < len) {
                return Ok(Some((piece.clone(), pos - self.start)));
            }
            let Some(next) = self.contents.next_piece()? else {
                return Ok(None);
            };
            self.piece = Some(next);
            self.start += len;
        }
    }
}

/// The kernel's file that a file of rhist replaces.
enum Behind {
    None,
    Open(KernelFile),
    /// The list of an event's triggers, to be read only. Nearly all such lists are empty, so the
    /// kernel's file is opened only for a read that finds triggers: opening it would take most of
    /// the time.
    Triggers(Dentry),
}

impl Behind {
    /// Opens the kernel's file that a file of rhist replaces, unless that can wait for a read.
    ///
    /// # Safety
    ///
    /// `file` must be a file of rhist that is being opened.
    unsafe fn open<N: NodeOps>(file: *mut bindings::file, object: &Object<N>) -> Result<Self> {
        let real = match object.behind() {
            Ok(real) => real,
            Err(err) if err == ENOENT => return Ok(Self::None),
            Err(err) => return Err(err),
        };
        // SAFETY: The VFS passes a valid file.
        let write = unsafe { (*file).f_mode } & bindings::RHIST_FMODE_WRITE != 0;
        if !write && real.lists_triggers() {
            return Ok(Self::Triggers(real));
        }
        // SAFETY: `file` is being opened, and `real` is in the same tracefs.
        unsafe { KernelFile::open(file, &real) }.map(Self::Open)
    }

    /// Returns the open file, unless its opening waits for a read.
    fn kernel(&self) -> Option<&KernelFile> {
        match self {
            Self::Open(kernel) => Some(kernel),
            Self::None | Self::Triggers(_) => None,
        }
    }

    /// Opens the list of triggers for a read, if the event has any in the kernel.
    ///
    /// # Safety
    ///
    /// `file` must be the open file of rhist that this belongs to.
    unsafe fn open_triggers(&self, file: *mut bindings::file) -> Result<Option<KernelFile>> {
        match self {
            Self::Triggers(real) if real.has_triggers() => {
                // SAFETY: `file` is open, and `real` is in the same tracefs.
                unsafe { KernelFile::open(file, real) }.map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// Returns the state of an open file.
///
/// # Safety
///
/// `file` must have been opened by [`open`], and not be released while the result is used.
unsafe fn open_file<'a, N: NodeOps>(file: *mut bindings::file) -> &'a OpenFile<N> {
    // SAFETY: `open` has stored a box of this type in `private_data`, which `release` frees.
    unsafe { &*(*file).private_data.cast() }
}

/// Returns the object of a file of rhist. Fails with `ENODEV` if it was removed, unless `in_rounds`
/// and the file is read in rounds.
///
/// # Safety
///
/// `file` must be a file of rhist that is open, or being opened, while the result is used.
unsafe fn present<'a, N: NodeOps>(
    file: *mut bindings::file,
    in_rounds: bool,
) -> Result<&'a Object<N>> {
    // SAFETY: `file` is a file of rhist and holds a reference on its inode.
    let object = unsafe { object_of::<N>((*file).f_inode) };
    let lasts = in_rounds && object.node.is_read_in_rounds();
    (lasts || !object.removed()).then_some(object).ok_or(ENODEV)
}

/// Opens the file, and the kernel's file that it replaces.
///
/// # Safety
///
/// Must be called by the VFS, through [`file_operations`].
unsafe extern "C" fn open<N: NodeOps>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    from_result(|| {
        let pin = ModulePin::new()?;
        // SAFETY: Only rhist's files have these operations, and `file` holds a reference on the
        // inode.
        let object = unsafe { object_of::<N>(inode) };
        if object.removed() {
            // SAFETY: The VFS has set the path of `file`, which holds a reference on the dentry of
            // the object.
            return Err(unsafe { forget::<N>(dentry_of(file), ENODEV) });
        }
        // SAFETY: The VFS is opening `file`, whose object this is.
        let behind = unsafe { Behind::open(file, object) }?;
        // SAFETY: The VFS passes a valid file.
        let (mode, flags) = unsafe { ((*file).f_mode, (*file).f_flags) };
        let write = mode & bindings::RHIST_FMODE_WRITE != 0;
        // Truncation cannot be undone, so allocate before it.
        let memory = KBox::new_uninit(GFP_KERNEL)?;
        let truncate = write && flags & bindings::O_TRUNC != 0;
        let nonblock = flags & bindings::O_NONBLOCK != 0;
        let kernel = behind.kernel();
        let open = object.node.open(&object.real, kernel, truncate, nonblock)?;
        let open = memory.write_pin_init(pin_init!(OpenFile::<N> {
            open,
            text <- kernel::new_mutex!(None),
            begun: Atomic::new(0),
            in_rounds: object.node.is_read_in_rounds(),
            round: Atomic::new(round::NONE),
            behind,
        }))?;
        // SAFETY: The box is not moved out of until `release` drops it in place.
        let open = KBox::into_raw(unsafe { Pin::into_inner_unchecked(open) });
        // SAFETY: `file` is not used by others before `open` returns.
        unsafe {
            (*file).private_data = open.cast();
            // As in `seq_open()`: reads have positions, writes do not.
            if mode & bindings::RHIST_FMODE_READ != 0 || (*(*file).f_op).write.is_none() {
                (*file).f_mode &= !bindings::RHIST_FMODE_PWRITE;
            }
        }
        pin.keep();
        Ok(0)
    })
}

/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn release<N: NodeOps>(
    _inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    // SAFETY: `open` has called `ModulePin::keep`, and the VFS calls `release` once.
    let _pin = unsafe { ModulePin::from_file() };
    // SAFETY: `open` has stored the box there, and nothing uses the file after `release`.
    drop(unsafe { KBox::from_raw((*file).private_data.cast::<OpenFile<N>>()) });
    0
}

/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn read<N: NodeOps>(
    file: *mut bindings::file,
    buf: *mut ffi::c_char,
    count: usize,
    pos: *mut bindings::loff_t,
) -> isize {
    // SAFETY: `file` was opened by `open` and stays open during the call. The VFS passes a valid
    // `pos`.
    let (open, from) = unsafe { (open_file::<N>(file), *pos) };
    let Ok(from) = usize::try_from(from) else {
        return EINVAL.to_errno() as isize;
    };
    // The contents that this call reads.
    let nth = Cell::new(None);
    let piece_at = |pos| {
        let mut text = open.text.lock();
        if pos == 0 && open.round.xchg(round::NONE, Relaxed) != round::UNREAD {
            *text = None;
        }
        let reading = match &mut *text {
            Some(reading) => reading,
            None => {
                // SAFETY: `file` is a file of rhist and stays open during the call.
                let object = unsafe { present::<N>(file, true) }?;
                // SAFETY: `file` is open, and `open` is its state.
                let triggers = unsafe { open.behind.open_triggers(file) }?;
                let kernel = open.behind.kernel().or(triggers.as_ref());
                // SAFETY: `file` is valid during the call.
                let nonblock = unsafe { (*file).f_flags } & bindings::O_NONBLOCK != 0;
                let node = &object.node;
                let contents = node.read(&object.real, kernel, &open.open, nonblock)?;
                let nth = open.begun.fetch_add(1, Relaxed);
                text.insert(Reading::new(contents, nth))
            }
        };
        // Another thread has begun to read at position 0: no piece of its contents belongs behind
        // the pieces of this call.
        if nth
            .replace(Some(reading.nth))
            .is_some_and(|nth| nth != reading.nth)
        {
            return Ok(None);
        }
        if open.in_rounds {
            open.round.store(round::BEGUN, Relaxed);
        }
        reading.at(pos)
    };
    let mut done = 0;
    while done < count {
        let copied = match piece_at(from + done) {
            Ok(Some((piece, at))) => {
                let bytes = (*piece).as_ref();
                let mut at = at as bindings::loff_t;
                // SAFETY: `bytes` is valid for its length, and `at` is valid. The rest of `buf` is
                // checked as a user pointer.
                unsafe {
                    bindings::simple_read_from_buffer(
                        buf.wrapping_add(done).cast(),
                        count - done,
                        &mut at,
                        bytes.as_ptr().cast(),
                        bytes.len(),
                    )
                }
            }
            Ok(None) => break,
            Err(err) => err.to_errno() as isize,
        };
        match usize::try_from(copied) {
            Ok(copied) => done += copied,
            // Return the bytes that were read before the error.
            Err(_) if done > 0 => break,
            Err(_) => {
                // The next read at position 0 gets a round of which nothing was read.
                if from == 0 {
                    let _ = open.round.cmpxchg(round::BEGUN, round::UNREAD, Relaxed);
                }
                return copied;
            }
        }
    }
    let mut to = from.wrapping_add(done);
    if done == 0 && count > 0 && open.round.xchg(round::NONE, Relaxed) != round::NONE {
        // The end of the round was read.
        *open.text.lock() = None;
        to = 0;
    }
    // SAFETY: The VFS passes a valid `pos`.
    unsafe { *pos = to as bindings::loff_t };
    done as isize
}

/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn write<N: NodeOps>(
    file: *mut bindings::file,
    buf: *const ffi::c_char,
    count: usize,
    pos: *mut bindings::loff_t,
) -> isize {
    if count == 0 {
        return 0;
    }
    let write = || -> Result<usize> {
        // SAFETY: `file` was opened by `open` and stays open during the call.
        let (object, open) = unsafe { (present::<N>(file, false)?, open_file::<N>(file)) };
        let data = UserBuffer::new(buf, count);
        let kernel = open.behind.kernel();
        object.node.write(&object.real, kernel, &open.open, &data)
    };
    match write() {
        Ok(moved) => {
            // SAFETY: The VFS passes a valid `pos`.
            unsafe { *pos = (*pos).wrapping_add(moved as i64) };
            count as isize
        }
        Err(err) => err.to_errno() as isize,
    }
}

/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn poll<N: NodeOps>(
    file: *mut bindings::file,
    table: *mut bindings::poll_table_struct,
) -> Mask {
    let poll = || -> Result<Mask> {
        // SAFETY: `file` was opened by `open` and stays open during the call. `table` is used
        // before this returns only.
        let (open, table) = unsafe { (open_file::<N>(file), PollTable::new(file, table)) };
        let kernel = open.behind.kernel();
        // When an event is removed, the kernel wakes only tasks that poll its own file.
        if kernel.is_some_and(|kernel| kernel.poll_error(&table)) {
            return Ok(poll::ERR);
        }
        // SAFETY: `file` is a file of rhist and stays open during the call.
        let object = unsafe { present::<N>(file, true) }?;
        let mask = object.node.poll(&object.real, kernel, &open.open, &table)?;
        // SAFETY: `file` is valid during the call.
        let at_begin = unsafe { (*file).f_pos } == 0;
        Ok(match open.round.load(Relaxed) {
            round::UNREAD => mask | poll::IN,
            round::BEGUN if !at_begin => mask | poll::IN,
            _ => mask,
        })
    };
    poll().unwrap_or(poll::ERR)
}

/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn mmap<N: NodeOps>(
    file: *mut bindings::file,
    vma: *mut bindings::vm_area_struct,
) -> ffi::c_int {
    from_result(|| {
        // SAFETY: `file` was opened by `open`. The VFS passes a VMA that is being set up, with
        // mmap_lock held for writing. The type is the same one, from another run of bindgen.
        let (open, vma) = unsafe { (open_file::<N>(file), VmaNew::from_raw(vma.cast())) };
        // SAFETY: `file` is a file of rhist and stays open during the call.
        let object = unsafe { present::<N>(file, false) }?;
        object
            .node
            .map(&object.real, open.behind.kernel(), vma)
            .map(|()| 0)
    })
}

/// Moves the position as `tracing_lseek()` does: `SEEK_SET` and `SEEK_CUR` if the file is open for
/// reading, otherwise to 0.
///
/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn llseek(
    file: *mut bindings::file,
    offset: bindings::loff_t,
    whence: ffi::c_int,
) -> bindings::loff_t {
    // SAFETY: The VFS calls `llseek` on an open file with `f_pos_lock` held.
    unsafe {
        let target = if (*file).f_mode & bindings::RHIST_FMODE_READ == 0 {
            Some(0)
        } else {
            match whence as u32 {
                bindings::SEEK_SET => Some(offset),
                bindings::SEEK_CUR => (*file).f_pos.checked_add(offset),
                _ => None,
            }
        };
        match target {
            Some(target) if target >= 0 => {
                (*file).f_pos = target;
                target
            }
            _ => i64::from(EINVAL.to_errno()),
        }
    }
}
