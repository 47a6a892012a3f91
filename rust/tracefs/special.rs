// SPDX-License-Identifier: GPL-2.0

//! Files, in tracefs or as devices, with `write_iter`, `ioctl` and `mmap` of their own.
//!
//! All functions of an open file are called in task context; the file pins the module.

use super::gate;
use super::gate::ModulePin;
use crate::ftrace::bindings;
use core::ptr;
use kernel::error::from_result;
use kernel::ffi;
use kernel::iov::IovIterSource;
use kernel::mm::virt::VmaNew;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The operations of such a file. Each may sleep.
#[vtable]
pub(crate) trait Special: Send + Sync + Sized + 'static {
    /// The state of an open file.
    type OpenState: Send + Sync;

    /// Opens the file.
    fn open(self: &Arc<Self>) -> Result<Self::OpenState>;

    /// One `write(2)` or `writev(2)`, at position 0. Returns the bytes written.
    fn write(_file: &Self::OpenState, _source: &mut IovIterSource<'_>) -> Result<usize> {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// One `ioctl(2)` of a 64-bit program.
    fn ioctl(_file: &Self::OpenState, _command: u32, _arg: usize) -> Result {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// One `mmap(2)`, with mmap_lock held. The mapping keeps the file open.
    fn mmap(_file: &Self::OpenState, _vma: &VmaNew) -> Result {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }
}

/// The file operations of a special file, and the data that they work on. It is pinned, and outlives all
/// inodes and devices that use it.
#[repr(C)]
pub(crate) struct SpecialFops {
    /// First, so that `file->f_op` leads here.
    fops: bindings::file_operations,
    special: *const ffi::c_void,
    drop: unsafe fn(*const ffi::c_void),
}

// SAFETY: `special` is an `Arc` of what is `Send` and `Sync`.
unsafe impl Send for SpecialFops {}
// SAFETY: As above.
unsafe impl Sync for SpecialFops {}

impl SpecialFops {
    pub(crate) fn new<S: Special>(special: Arc<S>) -> Result<Arc<Self>> {
        /// # Safety
        ///
        /// `special` must come from an `Arc` that nobody uses afterwards.
        unsafe fn drop_special<S>(special: *const ffi::c_void) {
            // SAFETY: `special` came from `Arc::into_raw`, and this is the end of that reference.
            drop(unsafe { Arc::<S>::from_raw(special.cast()) });
        }

        let operations = Arc::new(
            Self {
                fops: bindings::file_operations {
                    owner: gate::owner(),
                    open: Some(open::<S>),
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

    pub(in crate::ftrace) fn fops(&self) -> *const bindings::file_operations {
        ptr::from_ref(self).cast()
    }
}

impl Drop for SpecialFops {
    fn drop(&mut self) {
        // SAFETY: `new` made it of an `Arc`, and no file is open that used it.
        unsafe { (self.drop)(self.special) }
    }
}

/// # Safety
///
/// `file` must have been opened by [`open`].
unsafe fn open_file<'a, S: Special>(file: *mut bindings::file) -> &'a S::OpenState {
    // SAFETY: `open` has put it there, and it stays until `release`.
    unsafe { &*(*file).private_data.cast() }
}

/// # Safety
///
/// For [`SpecialFops`] only.
unsafe extern "C" fn open<S: Special>(
    _inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    from_result(|| {
        let pin = ModulePin::new()?;
        // SAFETY: The operations of the file are the beginning of an `SpecialFops` for `S`, whose
        // `Arc` is only borrowed.
        let special = core::mem::ManuallyDrop::new(unsafe {
            Arc::<S>::from_raw((*(*file).f_op.cast::<SpecialFops>()).special.cast())
        });
        let open = KBox::into_raw(KBox::new(special.open()?, GFP_KERNEL_ACCOUNT)?);
        // SAFETY: The file is ours while it is opened.
        unsafe { (*file).private_data = open.cast() };
        pin.keep();
        Ok(0)
    })
}

/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn release<S: Special>(
    _inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    // SAFETY: `open` kept it.
    let _pin = unsafe { ModulePin::from_file() };
    // SAFETY: `open` put a box there, and this is the end of the file.
    drop(unsafe { KBox::from_raw((*file).private_data.cast::<S::OpenState>()) });
    0
}

/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn write_iter<S: Special>(
    iocb: *mut bindings::kiocb,
    iter: *mut bindings::iov_iter,
) -> isize {
    // SAFETY: The VFS gives both, with an open file.
    let (open, pos) = unsafe { (open_file::<S>((*iocb).ki_filp), (*iocb).ki_pos) };
    // There is no place in such a file but its beginning.
    if pos != 0 {
        return EFAULT.to_errno() as isize;
    }
    // SAFETY: The iterator is a source while the operation runs. The type is the same one, from
    // another run of bindgen.
    let source = unsafe { IovIterSource::from_raw(iter.cast()) };
    match S::write(open, source) {
        Ok(written) => written as isize,
        Err(err) => err.to_errno() as isize,
    }
}

/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn ioctl<S: Special>(
    file: *mut bindings::file,
    command: ffi::c_uint,
    arg: ffi::c_ulong,
) -> ffi::c_long {
    // SAFETY: The file is open.
    let open = unsafe { open_file::<S>(file) };
    match S::ioctl(open, command, arg) {
        Ok(()) => 0,
        Err(err) => err.to_errno() as ffi::c_long,
    }
}

/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn mmap<S: Special>(
    file: *mut bindings::file,
    vma: *mut bindings::vm_area_struct,
) -> ffi::c_int {
    // SAFETY: The file is open; the VFS gives a new area, locked. The type is the same one, from
    // another run of bindgen.
    let (open, vma) = unsafe { (open_file::<S>(file), VmaNew::from_raw(vma.cast())) };
    from_result(|| S::mmap(open, vma).map(|()| 0))
}
