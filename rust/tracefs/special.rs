// SPDX-License-Identifier: GPL-2.0

//! Files with their own operations, such as `ioctl` and `mmap`, in tracefs or as devices.
//!
//! All callbacks are called in task context; an open file pins the module.

use super::gate::{
    self,
    ModulePin, //
};
use crate::rust::bindings;
use core::ptr;
use kernel::{
    error::from_result,
    ffi,
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    mm::virt::VmaNew,
    prelude::*,
    sync::Arc, //
};

/// Callbacks of a special file. Each may sleep.
#[vtable]
pub(crate) trait Special: Send + Sync + Sized + 'static {
    /// The state of an open file.
    type OpenState: Send + Sync;

    /// Opens the file.
    fn open(self: &Arc<Self>) -> Result<Self::OpenState>;

    /// Handles one `read(2)`, `pread(2)` or `readv(2)` at `pos`, and advances that. Returns the
    /// number of bytes read.
    fn read(_file: &Self::OpenState, _pos: &mut i64, _to: &mut IovIterDest<'_>) -> Result<usize> {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Returns the number of bytes of the file: positions are at most there. The file has
    /// positions only with this function.
    fn size(_file: &Self::OpenState) -> i64 {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Handles one `write(2)` or `writev(2)`, at position 0. Returns the number of bytes written.
    fn write(_file: &Self::OpenState, _source: &mut IovIterSource<'_>) -> Result<usize> {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Handles one `ioctl(2)` of a 64-bit program.
    fn ioctl(_file: &Self::OpenState, _command: u32, _arg: usize) -> Result {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Handles one `mmap(2)`, with mmap_lock held for writing. The mapping keeps the file open.
    fn mmap(_file: &Self::OpenState, _vma: &VmaNew) -> Result {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }
}

/// The file operations of a special file, and its [`Special`]. It is in an `Arc`, so it does not
/// move. An inode or device that uses the operations holds a reference for as long as it can be
/// opened.
///
/// # Invariants
///
/// `special` comes from `Arc::<S>::into_raw`, and `fops` and `drop` are functions for the same `S`.
#[repr(C)]
pub(crate) struct SpecialFops {
    /// First, so that `file->f_op` points to the `SpecialFops`.
    fops: bindings::file_operations,
    special: *const ffi::c_void,
    drop: unsafe fn(*const ffi::c_void),
}

// SAFETY: By the type invariant `special` is an `Arc<S>`, and `S: Special` implies `Send` and
// `Sync`. The operations are constant.
unsafe impl Send for SpecialFops {}
// SAFETY: A shared reference only gives shared access to the `S`, which is `Sync` (`Special`).
unsafe impl Sync for SpecialFops {}

impl SpecialFops {
    /// Creates the operations for `special`. Fails with `ENOMEM`.
    pub(crate) fn new<S: Special>(special: Arc<S>) -> Result<Arc<Self>> {
        /// # Safety
        ///
        /// `special` must come from `Arc::<S>::into_raw`, and not be used afterwards.
        unsafe fn drop_special<S>(special: *const ffi::c_void) {
            // SAFETY: `special` came from `Arc::<S>::into_raw`, and is not used afterwards.
            drop(unsafe { Arc::<S>::from_raw(special.cast()) });
        }

        // INVARIANT: All functions are for `S`, and `special` comes from `Arc::<S>::into_raw`.
        let operations = Arc::new(
            Self {
                fops: bindings::file_operations {
                    owner: gate::owner(),
                    open: Some(open::<S>),
                    llseek: S::HAS_SIZE.then_some(llseek::<S>),
                    read_iter: S::HAS_READ.then_some(read_iter::<S>),
                    write_iter: S::HAS_WRITE.then_some(write_iter::<S>),
                    unlocked_ioctl: S::HAS_IOCTL.then_some(ioctl::<S>),
                    mmap: S::HAS_MMAP.then_some(mmap::<S>),
                    release: Some(release::<S>),
                    ..Default::default()
                },
                special: special.into_raw().cast(),
                drop: drop_special::<S>,
            },
            GFP_KERNEL,
        )?;
        Ok(operations)
    }

    /// Returns the operations, valid as long as `self`.
    pub(in crate::rust) fn fops(&self) -> *const bindings::file_operations {
        ptr::from_ref(self).cast()
    }
}

impl Drop for SpecialFops {
    fn drop(&mut self) {
        // SAFETY: By the type invariant `special` and `drop` are for the same type. `self` is being
        // dropped, so `special` is not used afterwards.
        unsafe { (self.drop)(self.special) }
    }
}

/// Returns the state of an open file.
///
/// # Safety
///
/// `file` must have been opened by [`open`], and not be released while the result is used.
unsafe fn open_file<'a, S: Special>(file: *mut bindings::file) -> &'a S::OpenState {
    // SAFETY: `open` has stored a box of this type in `private_data`, which `release` frees.
    unsafe { &*(*file).private_data.cast() }
}

/// # Safety
///
/// Must be called by the VFS, for a file whose `f_op` is in a [`SpecialFops`] for `S`.
unsafe extern "C" fn open<S: Special>(
    _inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    from_result(|| {
        let pin = ModulePin::new()?;
        // SAFETY: `f_op` points to the first field of a `SpecialFops` for `S`, so by its invariant
        // `special` comes from `Arc::<S>::into_raw`. `ManuallyDrop` leaves the reference there.
        let special = core::mem::ManuallyDrop::new(unsafe {
            Arc::<S>::from_raw((*(*file).f_op.cast::<SpecialFops>()).special.cast())
        });
        let open = KBox::into_raw(KBox::new(special.open()?, GFP_KERNEL_ACCOUNT)?);
        // SAFETY: `file` is not used by others before `open` returns.
        unsafe { (*file).private_data = open.cast() };
        pin.keep();
        Ok(0)
    })
}

/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn release<S: Special>(
    _inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    // SAFETY: `open` has called `ModulePin::keep`, and the VFS calls `release` once.
    let _pin = unsafe { ModulePin::from_file() };
    // SAFETY: `open` has stored the box there, and nothing uses the file after `release`.
    drop(unsafe { KBox::from_raw((*file).private_data.cast::<S::OpenState>()) });
    0
}

/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn llseek<S: Special>(
    file: *mut bindings::file,
    offset: bindings::loff_t,
    whence: ffi::c_int,
) -> bindings::loff_t {
    // SAFETY: The VFS passes a file that was opened by `open`, with `f_pos_lock` held.
    unsafe {
        let size = S::size(open_file::<S>(file));
        bindings::fixed_size_llseek(file, offset, whence, size)
    }
}

/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn read_iter<S: Special>(
    iocb: *mut bindings::kiocb,
    iter: *mut bindings::iov_iter,
) -> isize {
    // SAFETY: The VFS passes a valid `iocb`, whose file was opened by `open` and stays open during
    // the call.
    let (open, pos) = unsafe { (open_file::<S>((*iocb).ki_filp), &mut (*iocb).ki_pos) };
    // SAFETY: The VFS passes a valid destination iterator to `read_iter`, which nobody else uses
    // during the call. The type is the same one, from another run of bindgen.
    let to = unsafe { IovIterDest::from_raw(iter.cast()) };
    match S::read(open, pos, to) {
        Ok(read) => read as isize,
        Err(err) => err.to_errno() as isize,
    }
}

/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn write_iter<S: Special>(
    iocb: *mut bindings::kiocb,
    iter: *mut bindings::iov_iter,
) -> isize {
    // SAFETY: The VFS passes a valid `iocb`, whose file was opened by `open` and stays open during
    // the call.
    let (open, pos) = unsafe { (open_file::<S>((*iocb).ki_filp), (*iocb).ki_pos) };
    // The file is not seekable: its position is always 0.
    if pos != 0 {
        return EFAULT.to_errno() as isize;
    }
    // SAFETY: The VFS passes a valid source iterator to `write_iter`, which nobody else uses during
    // the call. The type is the same one, from another run of bindgen.
    let source = unsafe { IovIterSource::from_raw(iter.cast()) };
    match S::write(open, source) {
        Ok(written) => written as isize,
        Err(err) => err.to_errno() as isize,
    }
}

/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn ioctl<S: Special>(
    file: *mut bindings::file,
    command: ffi::c_uint,
    arg: ffi::c_ulong,
) -> ffi::c_long {
    // SAFETY: `file` was opened by `open` and stays open during the call.
    let open = unsafe { open_file::<S>(file) };
    match S::ioctl(open, command, arg) {
        Ok(()) => 0,
        Err(err) => err.to_errno() as ffi::c_long,
    }
}

/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn mmap<S: Special>(
    file: *mut bindings::file,
    vma: *mut bindings::vm_area_struct,
) -> ffi::c_int {
    // SAFETY: `file` was opened by `open`. The VFS passes a VMA that is being set up, with
    // mmap_lock held for writing. The type is the same one, from another run of bindgen.
    let (open, vma) = unsafe { (open_file::<S>(file), VmaNew::from_raw(vma.cast())) };
    from_result(|| S::mmap(open, vma).map(|()| 0))
}
